"""Whole plans: examples, places of findings, the table of rules, texts that mean harm, and speed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lint_samples import only, todo

from planner import lint
from planner.catalog.tables import load_table
from planner.errors import PlanFileError, PlannerError
from planner.lint import LINT_RULES
from planner.lint.selection import PytestSettings, read_module
from planner.model.qualification import Quality
from planner.planfile.project_facts import configured_tools
from planner.planfile.tree import load_tree
from planner.planfile.validation import validate_plan, validate_plan_tree

ROOT = Path(__file__).parents[3]
PACKAGE = Path(lint.__file__).parent


@pytest.mark.parametrize("name", ["momentum", "rsi_bug"])
def test_the_examples_have_no_findings(name: str) -> None:
    assert validate_plan(ROOT / "examples" / name / "plan.yaml", today="2026-01-01") == ()


def test_the_complete_example_of_the_design_has_no_errors() -> None:
    found = validate_plan(ROOT / "fixtures" / "seeds" / "todo_list.json")
    assert [(each.rule, each.severity) for each in found] == [("tests-unwritten", "advice")]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_a_plan_in_the_documentation_validates_clean(page: Path, tmp_path: Path) -> None:
    """Even where only the plan was copied, and none of the files that it speaks of."""
    for text in re.findall(
        r"^```yaml plan\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        (tmp_path / "plan.yaml").write_text(text)
        found = validate_plan(tmp_path / "plan.yaml", boundary=tmp_path)
        allowed = () if page.name == "README.md" else ("tests-unwritten",)
        assert [each.message for each in found if each.rule not in allowed] == []


def test_findings_stand_where_they_belong_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "todo_list_id: p\nitems:\n- id: a\n  title: A\n  max_retries: 0\n  verify: pytest no.py\n"
        "  status: claimed\n- step_id: b\n  title: B\n"
        "  acceptance_criteria:\n    tests:\n    - cmd: pytest nope.py\n      timeout_seconds: 0.1\n"
    )
    found = [
        (each.line, each.column, each.rule, each.place) for each in validate_plan(path, boundary=tmp_path)
    ]
    assert found == sorted(found, key=lambda each: each[:2])
    assert (5, 16, "retries-unreasonable", "items[0].max_retries") in found
    assert (6, 11, "test-missing", "items[0].verify") in found
    assert (12, 12, "tests-unwritten", "items[1].acceptance_criteria.tests[0].cmd") in found
    assert (
        13,
        24,
        "timeout-unreasonable",
        "items[1].acceptance_criteria.tests[0].timeout_seconds",
    ) in found


def test_a_plan_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanFileError, match="does not exist"):
        validate_plan(tmp_path / "none.yaml")


def test_every_rule_of_the_table_is_used_and_none_is_missing_there() -> None:
    of_trees = PACKAGE.parent / "planfile/validation.py"
    sources = "".join(path.read_text(encoding="utf-8") for path in [*PACKAGE.glob("*.py"), of_trees])
    used = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', sources))
    used |= {each["rule"] for each in load_table("pytest_options")["doubtful"]}
    used |= {f"{noun}-missing" for noun in ("contract", "fixture", "schema")}
    used |= {f"check-{quality}" for quality in Quality}
    assert set(LINT_RULES) <= used
    found = set(re.findall(r'Finding\(\s*"([a-z-]+)"', sources))
    assert found <= set(LINT_RULES)
    assert all(row.why.endswith(".") and row.fix.endswith(".") for row in LINT_RULES.values())


def test_what_the_project_says_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_\u202ea(): pass\n)"}
    found = only("unreadable-test", tmp_path, todo("a", "pytest test_a.py"), files=files)
    assert found.message.isprintable()


def test_long_texts_are_cut(tmp_path: Path) -> None:
    files = {"t.py": "def test_a():\n    pass\n"}
    assert (
        len(only("test-missing", tmp_path, todo("a", f"pytest t.py::{'x' * 9_000}"), files=files).message)
        < 2_000
    )


_CODE = st.lists(
    st.sampled_from(
        [
            "import random",
            "from x import *",
            "x = random.random()",
            "@pytest.fixture(name=3)",
            "def test_a(self, /, a, *b, c=1, **d): pass",
            "class A(B.C, metaclass=D): test_x = 3",
            "class TestB(x[1]): pytestmark = 3",
            "pytestmark = [1, f()]",
            "with a as b: pass",
            "try: pass\nexcept (A, B): pass\nfinally: pass",
            "@x[0]\nasync def test_b(): await x",
            "@pytest.mark.skipif(*a, **b)\ndef test_c(): (lambda: x)()()",
            "def test_d(): raise",
            "f'{x!r:{y}}'",
            "import pytest as p",
        ]
    ),
    max_size=8,
)


@given(_CODE.map("\n".join) | st.text(max_size=300))
def test_no_text_breaks_the_readers(text: str) -> None:
    module = read_module(text, PytestSettings())
    assert module.problem is None or not module.tests


def test_sub_plans_are_validated_each_file_once_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(
        "todo_list_id: top\nitems:\n"
        "  - {id: one, title: One, sub_plan: part.yaml}\n"
        "  - {id: two, title: Two, sub_plan: part.yaml}\n"
    )
    (tmp_path / "part.yaml").write_text(
        "todo_list_id: part\nitems:\n"
        "  - id: a\n    title: A\n    acceptance_criteria: {expected_artifacts: [a.txt]}\n"
    )
    found = validate_plan_tree(load_tree(tmp_path / "plan.yaml"))
    assert [(each.path, each.line, each.rule) for each in found] == [("part.yaml", 5, "no-test")]
    (tmp_path / "part.yaml").write_text("todo_list_id: part\nitems: 3\n")
    with pytest.raises(PlannerError, match=r"part\.yaml"):
        validate_plan_tree(load_tree(tmp_path / "plan.yaml", boundary=tmp_path))


@pytest.mark.parametrize(
    ("files", "tools"),
    [
        ({}, set()),
        ({"mypy.ini": "", ".flake8": ""}, {"mypy", "flake8"}),
        ({"pyproject.toml": "[tool.ruff]\n[tool.basedpyright]\n[tool.other]\n"}, {"ruff", "pyright"}),
        ({"setup.cfg": "[isort]\n", "tox.ini": "[pycodestyle]\n[tox]\n"}, {"isort", "pycodestyle"}),
        ({"pyproject.toml": "[[[", "setup.cfg": "]"}, set()),
        ({"pyproject.toml": "tool = 3"}, set()),
    ],
)
def test_configured_tools_are_told_by_their_files(
    tmp_path: Path, files: dict[str, str], tools: set[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert configured_tools(tmp_path) == tools
