"""A small repository with a todo for each module, whose test checks the name in the module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from text_bundles import write_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

PYTEST_INI = """\
[pytest]
pythonpath = .
addopts = -p pytest_planverify.plugin --planverify-confirm=0
"""
"""Settings by which the verifications of a run start no new interpreter to confirm each failure."""


def write_module_project(
    root: Path, names: Iterable[str], more: Mapping[str, str], *, limited: bool = True, metadata: str = "{}"
) -> None:
    """Write the project, and ``more`` files; ``limited`` todos may change only their own module."""
    plan = f"todo_list_id: shop\nmetadata: {metadata}\nitems:\n"
    files = {"shop/__init__.py": "", "pytest.ini": PYTEST_INI, **more}
    for name in names:
        plan += f"  - id: {name}\n    title: The module {name} knows its name\n"
        plan += f'    allowed_files: ["shop/{name}.py"]\n' if limited else ""
        plan += f"    acceptance_criteria: {{tests: [pytest tests/test_{name}.py]}}\n"
        files[f"shop/{name}.py"] = "NAME = ''\n"
        files[f"tests/test_{name}.py"] = (
            f"from shop.{name} import NAME\n\n\ndef test_name():\n    assert NAME == '{name}'\n"
        )
    write_files(root, {**files, "plan.yaml": plan})
