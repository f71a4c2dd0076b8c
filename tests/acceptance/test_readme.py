"""A run detects each change that the README shows, and reports it in the words of the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documented_commands import CONFIDENCES
from example_project import Example
from test_hygiene import Project

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
CATCHES = re.findall(r"```diff (\S+)\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": '''"""Prices in cents."""

from pathlib import Path

RATES = Path("rates.txt")


def with_tax(net: int, percent: int = 19) -> int:
    """Return the price with tax, rounded half up."""
    return net * (100 + percent) // 100
''',
    "tests/test_prices.py": """import pytest

from shop.prices import with_tax


@pytest.mark.parametrize("net, gross", [(100, 119), (999, 1189)])
def test_with_tax(net, gross):
    assert with_tax(net) == gross
""",
    "tests/test_stock.py": "def test_stock():\n    assert sum([1, 2]) == 4\n",
    "pytest.ini": "[pytest]\npythonpath = .\n",
    "plan.yaml": """todo_list_id: shop
items:
  - id: tax
    title: Round the tax half up
    acceptance_criteria:
      tests: [{cmd: pytest tests/test_prices.py}, {cmd: pytest tests/test_stock.py}]
""",
}


def test_the_readme_has_an_example_of_each_kind() -> None:
    assert len(CATCHES) == 5


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the project with its baseline. Tests must copy it, not change it."""
    project = Project(tmp_path_factory.mktemp("readme") / "shop", FILES)
    project.planverify("baseline", "plan.yaml")
    return project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Example:
    return recorded.copied_to(tmp_path / "shop")


@pytest.mark.parametrize(
    ("path", "change", "said"), CATCHES, ids=["weak", "vacuous", "special", "flaky", "old"]
)
def test_every_change_in_the_readme_is_reported_as_the_readme_shows(
    path: str, change: str, said: str, project: Example
) -> None:
    old, new = ("".join(re.findall(rf"^{sign}(.*\n)", change, re.MULTILINE)) for sign in ("-", r"\+"))
    text = (project.root / path).read_text()
    assert text.count(old) == 1
    (project.root / path).write_text(text.replace(old, new))

    confirmations = [] if "failed" in said else ["--planverify-confirm=0"]

    ran = project.verify(*confirmations)

    assert ran.exit_code != 0
    shown = _settled(ran.output)
    assert not [line for line in said.splitlines() if _settled(line) not in shown], ran.output


def _settled(text: str) -> str:
    for pattern, replacement in CONFIDENCES:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())
