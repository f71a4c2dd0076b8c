"""Plan templates: YAML with Jinja2, and the variables that they use.

Every ``{{ expression }}`` is written as one YAML value, quoted where needed, so that no text that is
inserted can become syntax.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from planner.authoring.first_plan import fresh_id, short_title
from planner.authoring.outline import LONGEST_GOAL
from planner.authoring.repository import LANGUAGES, read_repository
from planner.model.verdicts import Purpose
from planner.planfile.discovery import project_root
from planner.planfile.writer import plain, yaml_flow
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).with_name("templates")


def template_names() -> dict[str, str]:
    """Return the purpose of each template by its name: the comment in its first line."""
    files = sorted(_FOLDER.glob("[!_]*.yaml"))
    return {each.stem: each.read_text(encoding="utf-8").partition("\n")[0].strip("# ") for each in files}


def fill_template(name: str, values: Mapping[str, Any]) -> str:
    """Render the template of that name, which must exist; return the text of the plan."""
    text = _ENVIRONMENT.get_template(f"{name}.yaml").render(**values)
    # A line that had template statements only is left blank.
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def _as_yaml(value: Any) -> Any:
    """Return a value as YAML on one line, as ``Markup``; the result of a macro is YAML already.

    Undefined values are returned as they are, so that rendering raises the error that names them.
    """
    if isinstance(value, Markup | StrictUndefined):
        return value
    # By way of JSON, tuples and other sequences become lists, and what YAML cannot hold raises here.
    data = value if isinstance(value, str) else json.loads(json.dumps(value, allow_nan=False, default=list))
    return Markup(yaml_flow(data))


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_FOLDER),
    undefined=StrictUndefined,
    autoescape=True,  # makes results of macros Markup, unlike inserted texts
    finalize=_as_yaml,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def read_values(goal: str, folder: Path) -> dict[str, Any]:
    """Return the variables of templates for a goal in the repository in ``folder``."""
    repository = read_repository(folder)
    places = [each.rstrip("/") for each in project_root(folder).words("testpaths")]
    tops = sorted({each.place.partition("/")[0] for each in repository.tests})
    checks = (each for each in repository.checks if each.is_installed and each.purpose is not Purpose.TEST)
    package = fresh_id(repository.name, set()).replace("-", "_")
    values: dict[str, Any] = {
        "repository": repository.name,
        "tools": [plain(each) for each in repository.tools],
        "language": repository.language,
        "existing": lambda paths: [each for each in paths if (folder / each).is_file()],
        "checks": [each.cmd for each in checks],
        "tests": next((each for each in places if (folder / each).is_dir()), "tests"),
        "pytest": repository.runner,
        "sources": list(repository.sources) or [f"{package}/**"],
        "every_test": [" ".join([repository.runner, *map(shlex.quote, tops)])] if tops else [],
    }
    if (rules := LANGUAGES.get(repository.language)) is not None:
        values |= {"sources": rules["sources"], "every_test": [rules["every_test"]]}
    return values | values_of_goal(goal, values)


def values_of_goal(
    goal: str, of_repository: Mapping[str, Any], *, taken: set[str] | None = None
) -> dict[str, Any]:
    """Return the variables that depend on the goal: text, title, id, module, and its test file and command.

    The id is none of ``taken``, and is added there.
    """
    title = one_line(goal, limit=LONGEST_GOAL)
    todo_id = fresh_id(title, set() if taken is None else taken)
    module = re.sub(r"\W", "_", todo_id)
    test_file = f"{of_repository['tests']}/test_{module}.py"
    test = f"{of_repository['pytest']} {test_file}"
    if (rules := LANGUAGES.get(of_repository["language"])) is not None:
        test_file, test = rules["test_file"].format(module), rules["test"].format(module)
    return {
        "goal": clean(goal, limit=LONGEST_GOAL).strip(),
        "title": short_title(title),
        "id": todo_id,
        "module": module,
        "test_file": test_file,
        "test": test,
    }
