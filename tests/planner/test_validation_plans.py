"""Whole plans: the examples, the places of findings, the table of rules, and texts that mean harm."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from validation_samples import GOOD_TEST, findings, only, todo

from planner.edges.validating import validate_plan, validate_plan_tree
from planner.errors import PlanFileError, PlannerError
from planner.rules import validation
from planner.rules.reading.keyword_expressions import evaluate
from planner.rules.reading.make_targets import read_targets
from planner.rules.reading.modules import read_tests
from planner.rules.validation import VALIDATION_RULES

ROOT = Path(__file__).parents[2]
PACKAGE = Path(validation.__file__).parent


@pytest.mark.parametrize("name", ["momentum", "rsi_bug"])
def test_the_examples_have_no_findings(name: str) -> None:
    assert validate_plan(ROOT / "examples" / name / "plan.yaml", today="2026-01-01") == ()


def test_findings_stand_where_they_belong_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "todo_list_id: p\nitems:\n- id: a\n  title: A\n  max_retries: 0\n  verify: pytest no.py\n"
        "  failure_routing: {implementation_bug: coder}\n- step_id: b\n  title: B\n"
        "  acceptance_criteria:\n    tests:\n    - cmd: pytest nope.py\n      timeout_seconds: 0.1\n"
    )
    found = [
        (each.line, each.column, each.rule, each.place) for each in validate_plan(path, boundary=tmp_path)
    ]
    assert found == sorted(found, key=lambda each: each[:2])
    assert (5, 16, "retries-none", "items[0].max_retries") in found
    assert (6, 11, "test-file-missing", "items[0].verify") in found
    assert (8, 3, "routing-missing", "items[1]") in found
    assert (13, 24, "timeout-short", "items[1].acceptance_criteria.tests[0].timeout_seconds") in found


def test_a_finding_says_what_why_and_what_to_do(tmp_path: Path) -> None:
    found = only("test-file-missing", tmp_path, todo("a", "pytest no.py"))
    assert found.path == "plan.json"
    assert found.todo_id == "a"
    assert all((found.message, found.why, found.fix))


def test_a_plan_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanFileError, match="no such file"):
        validate_plan(tmp_path / "none.yaml")
    (tmp_path / "plan.yaml").write_text("todo_list_id: p\nitems: []\n")
    with pytest.raises(PlanFileError, match="no todos"):
        validate_plan(tmp_path / "plan.yaml", boundary=tmp_path)


def test_every_rule_of_the_table_is_used_and_none_is_missing_there() -> None:
    sources = {path.name: path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py")}
    table = sources.pop("rule_table.py")
    used = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', "".join(sources.values())))
    used |= {f"{noun}-invalid" for noun in ("contract", "schema")}
    assert set(VALIDATION_RULES) <= used
    assert table.count("_row(") == len(VALIDATION_RULES)
    for rule, row in VALIDATION_RULES.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule)
        assert row.why.endswith(".")
        assert row.fix.endswith(".")


def test_what_the_project_says_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    evil = "def test_\u202ea():\n    pass\n"
    files = {"t.py": evil.replace("\u202e", ""), "package.json": '{"scripts": {"\\u001b[2Jtest\\n": "x"}}'}
    found = findings(tmp_path, todo("a", "npm test"), files=files)
    assert [each.rule for each in found] == ["target-missing"]
    assert "\x1b" not in found[0].fix
    assert "\n" not in found[0].fix


def test_long_texts_are_cut(tmp_path: Path) -> None:
    name = "x" * 9_000
    found = only(
        "nothing-selected", tmp_path, todo("a", f"pytest t.py -k {name}"), files={"t.py": GOOD_TEST}
    )
    assert len(found.message) < 2_000


@given(st.text(max_size=300))
def test_no_text_breaks_the_readers(text: str) -> None:
    read_tests(text)
    read_targets(text)
    assert evaluate(text, lambda _: True) in (True, False, None)


_CODE = st.lists(
    st.sampled_from(
        [
            "import random",
            "from x import *",
            "x = random.random()",
            "@pytest.fixture(name=3)",
            "def test_a(self, /, a, *b, c=1, **d): pass",
            "class A(B.C, metaclass=D): test_x = 3",
            "pytestmark = [1, f()]",
            "with a as b: pass",
            "try: pass\nexcept (A, B): pass\nfinally: pass",
            "lambda: x",
            "f'{x!r:{y}}'",
            "(Path('a') / b / 'c.json') / 3",
            "del x",
            "import pytest as p",
            "async def test_b(): await x",
            "assert (1, 'x')",
            "''.join({1, 2})",
            "s.connect(('h', 1))",
        ]
    ),
    max_size=8,
)


@given(_CODE)
def test_no_code_breaks_the_reader(lines: list[str]) -> None:
    module = read_tests("\n".join(lines))
    assert set(module.tests) <= set(module.units)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", True),
        ("b", False),
        ("u", None),
        ("not b", True),
        ("a and b", False),
        ("a and u", None),
        ("b and u", False),
        ("a or u", True),
        ("b or u", None),
        ("not (a and not b)", False),
        ("a or b and b", True),
        ("", True),
        ("a b", None),
        ("and", None),
        ("(a", None),
        ("a !", None),
        ("mark(x=1)", None),
        ("not " * 5_000 + "a", None),
    ],
)
def test_expressions_are_true_false_or_nobody_can_tell(expression: str, expected: bool | None) -> None:
    known = {"a": True, "b": False}
    assert evaluate(expression, known.get) is expected


def test_a_makefile_is_read_as_far_as_it_tells() -> None:
    text = "A := 1\n# c\n.PHONY: x\nx y: z # why\nz::\n\t@echo \\\n\t ok\nq: ; true\nloop: loop\n"
    assert read_targets(text) == {
        "x": "it has no recipe",
        "y": "it has no recipe",
        "z": "its recipe only talks",
        "q": "its recipe only talks",
        "loop": None,
    }


def test_a_large_plan_is_validated_in_bearable_time(tmp_path: Path) -> None:
    entries = [
        f"- {{id: t{at}, title: T, verify: pytest tests/test_{at % 50}.py::test_{at}, "
        f"dependencies: [{f't{at - 1}' if at else ''}]}}"
        for at in range(1_500)
    ]
    path = tmp_path / "plan.yaml"
    path.write_text("todo_list_id: p\nitems:\n" + "\n".join(entries))
    started = time.perf_counter()
    assert len(validate_plan(path, boundary=tmp_path)) > 1_500
    assert time.perf_counter() - started < 60


def test_sub_plans_are_validated_each_file_once_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write = {
        "plan.yaml": "todo_list_id: top\nitems:\n"
        "  - {id: one, title: One, sub_plan: part.yaml}\n"
        "  - {id: two, title: Two, sub_plan: part.yaml}\n",
        "part.yaml": "todo_list_id: part\nitems:\n"
        "  - id: a\n    title: A\n    acceptance_criteria: {expected_artifacts: [a.txt]}\n",
    }
    for name, text in write.items():
        (tmp_path / name).write_text(text)

    found = validate_plan_tree(tmp_path / "plan.yaml")

    assert [(each.path, each.line, each.rule) for each in found if each.rule == "no-test"] == [
        ("part.yaml", 5, "no-test")
    ]


def test_a_sub_plan_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "todo_list_id: top\nitems:\n  - {id: one, title: One, sub_plan: part.yaml}\n"
    )
    (tmp_path / "part.yaml").write_text("todo_list_id: part\nitems: 3\n")
    with pytest.raises(PlannerError, match=r"part\.yaml"):
        validate_plan_tree(tmp_path / "plan.yaml", boundary=tmp_path)
