"""The decision tables of the planner, and its display of parents, with the real command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_project import Example
from example_project import todo as judged_by
from real_planner import Desk, Ran, failed, passed, planner, todo
from text_bundles import unpack_bundle

SEEDS = Path(__file__).parents[2] / "fixtures" / "seeds"
SEED_PLAN = json.loads((SEEDS / "todo_list.json").read_text(encoding="utf-8"))
ASK = {"auto_fix_mode": False, "max_concurrent_branches": 1000}

Desks = Callable[[str], Desk]


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Desks:
    def desk(name: str) -> Desk:
        return Desk(tmp_path_factory.mktemp(name))

    return desk


# --- the fields of a branch todo -----------------------------------------------------------------------

RSI_TEST = "tests/test_indicators.py::test_rsi_values"
RSI = SEED_PLAN["items"][1]["acceptance_criteria"]["tests"][0]["cmd"]


@pytest.fixture(scope="module")
def momentum(desks: Desks) -> Ran:
    desk = desks("momentum")
    # A proposal to a person shows every field of the branch; retries would come before it.
    items = [each | {"max_retries": 0} for each in SEED_PLAN["items"]]
    metadata = SEED_PLAN["metadata"] | ASK
    desk.write("plan.yaml", SEED_PLAN | {"metadata": metadata, "items": items})
    said = "AssertionError: expected RSI 28.5, got 32.1"
    evidence: dict[str, Any] = {"check_id": "tests[0]", "tests": [RSI_TEST], "stack_trace_head": said}
    desk.outcomes(passed("t1_data_integration"), failed("t2_indicators", **evidence))
    return desk.next()


def test_the_retries_of_a_plan_come_before_its_first_branch(desks: Desks) -> None:
    desk = desks("retries")
    desk.write("plan.yaml", SEED_PLAN)
    desk.outcomes(passed("t1_data_integration"), failed("t2_indicators"))
    asked = desk.next().asked["t2_indicators"]
    assert (asked["action"], asked["rule"]) == ("implement", "retry-by-the-same-role")
    assert asked["because"] == "its criteria failed; retry 1 of 2"
    assert asked["role"] == SEED_PLAN["items"][1]["agent_role"]


BRANCH_FIELDS: dict[str, Any] = {
    "id": "t2_indicators_branch_01",
    "parent_id": "t2_indicators",
    "title": "Repair Indicator & Candle Patterns (implementation bug)",
    "agent_role": "coder",
    "target_agent_role": "coder",
    "branch_reason": "implementation_bug",
    "branch_depth": 1,
    "dependencies": [],
    "is_temporary": True,
    "max_debug_attempts": 3,
    "max_lifetime_seconds": 600,
}


@pytest.mark.parametrize("field", BRANCH_FIELDS)
def test_a_branch_has_its_expected_fields(momentum: Ran, field: str) -> None:
    assert momentum.branch("t2_indicators").get(field, []) == BRANCH_FIELDS[field]


def test_the_criteria_of_a_branch_are_the_failing_tests_of_its_parent_and_the_report(momentum: Ran) -> None:
    criteria = momentum.branch("t2_indicators")["acceptance_criteria"]
    assert [test["cmd"] for test in criteria["tests"]] == [RSI]
    assert [test["timeout_seconds"] for test in criteria["tests"]] == [20]
    assert criteria["expected_artifacts"] == ["diagnostics/t2_indicators_failure_report.json"]


@pytest.mark.parametrize("word", [RSI_TEST, "28.5", "32.1", "pytest --planverify"])
def test_the_instructions_of_a_branch_contain_the_failure_and_its_rerun(momentum: Ran, word: str) -> None:
    assert word in momentum.branch("t2_indicators")["debug_instructions"]


def test_dependents_of_a_failed_todo_are_blocked_until_it_is_repaired(momentum: Ran) -> None:
    assert momentum.json["blocked"] == {
        "t3_entry_conditions": "t2_indicators",
        "t4_exit_conditions": "t2_indicators",
    }


# --- roles and revisions of the plan ---------------------------------------------------------------------

BUG, SPEC, SLOW, FLAKY, LACKS = (
    "implementation_bug",
    "spec_mismatch",
    "timeout",
    "flaky_test",
    "missing_dependency",
)
CATEGORIES = {  # category: default role, reason of the branch, kinds of edits besides branch and context
    "TEST_REGRESSION": ("coder", BUG, ["narrow_files", "isolate"]),
    "TEST_TIMEOUT": ("coder", SLOW, ["isolate"]),
    "FLAKY_TEST": ("tester", FLAKY, ["isolate", "quarantine"]),
    "TEST_CRASH": ("debugger", BUG, ["isolate"]),
    "TEST_NOT_FOUND": ("tester", SPEC, ["name_artifact"]),
    "COMPILATION_ERROR": ("coder", BUG, ["add_check", "narrow_files"]),
    "TYPE_ERROR": ("coder", BUG, ["add_check"]),
    "LINT_ERROR": ("coder", BUG, ["add_todo_before", "narrow_files"]),
    "IMPORT_ERROR": ("coder", LACKS, ["add_todo_before"]),
    "SPEC_MISMATCH": ("architect", SPEC, ["add_todo_before"]),
    "ARTIFACT_MISSING": ("coder", LACKS, ["name_artifact"]),
    "METRIC_UNMET": ("coder", BUG, []),
    "UNKNOWN": ("debugger", "test_failure", ["narrow_files"]),
}
ROUTES = {  # routing of the todo, category: role
    "category-before-key": ({"TEST_REGRESSION": "tester", BUG: "architect"}, "TEST_REGRESSION", "tester"),
    "category-before-its-own-default": ({"TEST_CRASH": "coder"}, "TEST_CRASH", "coder"),
    "own-default-before-key-of-crash": ({BUG: "architect"}, "TEST_CRASH", "debugger"),
    "own-default-before-key-of-not-found": ({SPEC: "architect"}, "TEST_NOT_FOUND", "tester"),
    "key-before-default": ({BUG: "architect"}, "TEST_REGRESSION", "architect"),
    "key-of-another-kind": ({SLOW: "architect"}, "TEST_REGRESSION", "coder"),
    "key-implementation-bug": ({BUG: "debugger"}, "TYPE_ERROR", "debugger"),
    "key-spec-mismatch": ({SPEC: "coder"}, "SPEC_MISMATCH", "coder"),
    "key-timeout": ({SLOW: "coder"}, "TEST_TIMEOUT", "coder"),
    "key-flaky-test": ({FLAKY: "coder"}, "FLAKY_TEST", "coder"),
    "key-missing-dependency": ({LACKS: "architect"}, "IMPORT_ERROR", "architect"),
    "unknown-has-no-key": ({BUG: "coder"}, "UNKNOWN", "debugger"),
}
_FOR_ALL: dict[str, Any] = {
    "check_id": "tests[0]",
    "location": {"path": "src/shop.py", "line": 3, "function": "total"},
    "stack_trace_head": "it broke",
}


def _special(todo_id: str) -> dict[str, Any]:
    file = f"tests/test_{todo_id.replace('-', '_')}.py"
    said: dict[str, Any] = {**_FOR_ALL, "tests": [f"{file}::test_it"]}
    if todo_id == "IMPORT_ERROR":
        said["stack_trace_head"] = "ModuleNotFoundError: No module named 'pandas'"
    if todo_id == "ARTIFACT_MISSING":
        said |= {"check_id": "expected_artifacts[0]", "tests": []}
    return said


@pytest.fixture(scope="module")
def routed(desks: Desks) -> Ran:
    desk = desks("routed")
    lacking = {"expected_artifacts": ["out/report.json"], "tests": [{"cmd": "pytest tests/test_x.py"}]}
    extra = {"ARTIFACT_MISSING": {"acceptance_criteria": lacking}}
    # A todo without a claim is ready and gets no repair, so all of these are claimed.
    todos = [todo(category, status="claimed", **extra.get(category, {})) for category in CATEGORIES]
    todos += [
        todo(name, status="claimed", failure_routing=routing) for name, (routing, _, _) in ROUTES.items()
    ]
    desk.plan(*todos, metadata=ASK)
    desk.write("pyproject.toml", "[tool.mypy]\n[tool.ruff]\n")
    desk.write("src/shop.py", "def total():\n    x = 1\n    return x\n")
    desk.outcomes(
        *(failed(category, category, **_special(category)) for category in CATEGORIES),
        *(failed(name, category) for name, (_, category, _) in ROUTES.items()),
    )
    return desk.next()


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_has_its_role_and_its_reason(routed: Ran, category: str) -> None:
    role, reason, _ = CATEGORIES[category]
    made = routed.branch(category)
    assert (made["agent_role"], made["branch_reason"]) == (role, reason)


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_has_its_revision(routed: Ran, category: str) -> None:
    kinds = [edit["edit"] for edit in routed.asked[category]["edits"]]
    assert kinds == ["add_branch", *CATEGORIES[category][2], "add_context"]


def test_the_branch_of_an_unknown_failure_has_one_attempt(routed: Ran) -> None:
    assert routed.branch("UNKNOWN")["max_debug_attempts"] == 1


@pytest.mark.parametrize("row", ROUTES)
def test_routing_of_a_todo_by_category_or_key_decides_the_role(routed: Ran, row: str) -> None:
    assert routed.branch(row)["agent_role"] == ROUTES[row][2]


def test_only_edits_of_criteria_need_approval(routed: Ran) -> None:
    edits = [edit for asked in routed.asked.values() for edit in asked["edits"]]
    asking = {edit["edit"] for edit in edits if edit["requires_approval"]}
    acting = {edit["edit"] for edit in edits if not edit["requires_approval"]}
    assert asking == {"quarantine"}
    assert not asking & acting


# --- roles for real test failures -------------------------------------------------------------------------

BROKEN = {
    "pytest.ini": "[pytest]\npythonpath = .\n",
    "shop.py": """
        def total(prices):
            return sum(prices) + 1

        def spin():
            while True:
                pass
        """,
    "tests/test_value.py": "import shop\n\ndef test_it():\n    assert shop.total([1, 2]) == 3\n",
    "tests/test_missing.py": "import no_such_module\n\ndef test_it():\n    assert no_such_module\n",
    "tests/test_signature.py": "import shop\n\ndef test_it():\n    assert shop.total([1], tax=2) == 3\n",
    "tests/test_slow.py": "import shop\n\ndef test_it():\n    shop.spin()\n",
    "tests/test_syntax.py": "def test_it(:\n    pass\n",
    "tests/test_flaky.py": """
        import pathlib

        def test_it():
            seen = pathlib.Path("seen.txt")
            first = not seen.exists()
            seen.touch()
            assert not first
        """,
    # by convention
    "tests/test_plain_name.py": "def test_it():\n    assert 1 == 1\n",
    "suffixed_test.py": "def test_it():\n    assert 1 == 1\n",
    "deep/test_prefixed.py": "def test_it():\n    assert 1 == 1\n",
    "tests/test_buffer.py": "def test_it():\n    assert 1 == 1\n",
    "Makefile": "test-made:\n\t@true\n",
}
REALLY = {  # todo: category, role, reason
    "value": ("TEST_REGRESSION", "coder", BUG),
    "missing": ("IMPORT_ERROR", "coder", LACKS),
    "signature": ("SPEC_MISMATCH", "architect", SPEC),
    "slow": ("TEST_TIMEOUT", "coder", SLOW),
    "syntax": ("COMPILATION_ERROR", "coder", BUG),
    "flaky": ("FLAKY_TEST", "tester", FLAKY),
    "nowhere": ("TEST_NOT_FOUND", "tester", SPEC),
}
CONVENTIONS = {
    "plain-name": "pytest tests/test_plain_name.py",
    "made": "make test-made",
    "suffixed": "pytest suffixed_test.py",
    "prefixed": "pytest deep/test_prefixed.py",
    "buffer-impl": "pytest tests/test_buffer.py",
    "nowhere": "pytest tests/test_nowhere.py",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, dict[str, Any]]:
    example = Example(tmp_path_factory.mktemp("broken"), BROKEN)
    named = [each for each in REALLY if each != "nowhere"]
    todos = [
        judged_by(
            each,
            {"cmd": f"pytest tests/test_{each}.py", "timeout_seconds": 1 if each == "slow" else 20},
            status="claimed",
        )
        for each in named
    ]
    todos += [judged_by("buffer-tests", "pytest tests/test_buffer.py", agent_role="tester")]
    after = {"buffer-impl": ["buffer-tests"]}
    todos += [
        {"id": each, "title": each, "status": "claimed", "dependencies": after.get(each, [])}
        for each in CONVENTIONS
    ]
    example.plan(*todos, metadata=ASK)
    verified = example.verify("plan.yaml")
    return planner("next", "plan.yaml", "--json", "--full", cwd=example.root), verified.outcomes


@pytest.mark.parametrize("row", REALLY)
def test_a_real_failure_is_routed_to_its_role(broken: Any, row: str) -> None:
    asked = broken[0].asked[row]
    made = asked["branch"]
    assert (asked["failure"]["category"], made["agent_role"], made["branch_reason"]) == REALLY[row]


@pytest.mark.parametrize("row", CONVENTIONS)
def test_a_todo_without_criteria_gets_a_conventional_command(broken: Any, row: str) -> None:
    (check,) = broken[1][row]["checks"]
    assert check["cmd"].removesuffix(" -v") == CONVENTIONS[row]
    assert check["verdict"] == ("failed" if row == "nowhere" else "passed")


def test_passing_todos_get_no_repair(broken: Any) -> None:
    assert set(broken[0].asked) == set(REALLY)


PHASES = Path(__file__).parents[2] / "fixtures" / "projects" / "phases.txt"


def findings(desk: Desk) -> set[tuple[str, str | None]]:
    """Return the rule and the todo of each finding."""
    ran = planner("validate", "plan.yaml", "--json", cwd=desk.folder)
    assert ran.status == any(each["severity"] == "error" for each in ran.json["findings"]), ran.err
    return {(each["rule"], each.get("todo_id")) for each in ran.json["findings"]}


# --- the checklist ---------------------------------------------------------------------------------------


# tests/planner/lint covers all cases of every rule; these rules read files beside the plan.
READS_FILES: dict[str, dict[str, Any]] = {  # rule: criteria that violate it
    "unseeded-random": {"tests": [{"cmd": "pytest tests/test_random.py"}]},
    "network-access": {"tests": [{"cmd": "pytest tests/test_network.py"}]},
    "fixture-missing": {"tests": [{"cmd": "pytest tests/test_pure.py", "fixture": "fixtures/none.json"}]},
}
FILES = {
    "tests/test_pure.py": "def test_it():\n    assert sorted([2, 1]) == [1, 2]\n",
    "tests/test_random.py": "import random\n\ndef test_it():\n    assert random.random() < 2\n",
    "tests/test_network.py": (
        "import urllib.request\n\ndef test_it():\n    assert urllib.request.urlopen('http://example.com')\n"
    ),
}


def test_validation_reads_the_files_that_a_todo_references(desks: Desks) -> None:
    desk = desks("checklist")
    for name, text in FILES.items():
        desk.write(name, text)
    sound = {"tests": [{"cmd": "pytest tests/test_pure.py"}]}
    criteria = {**READS_FILES, "sound": sound}
    desk.plan(*({"id": rule, "acceptance_criteria": each} for rule, each in criteria.items()))

    found = findings(desk)

    assert {(rule, rule) for rule in READS_FILES} <= found
    assert not {(rule, "sound") for rule in READS_FILES} & found


def test_circular_dependencies_make_a_plan_invalid(desks: Desks) -> None:
    desk = desks("circle")
    desk.plan(todo("a", "b"), todo("b", "a"))
    ran = planner("validate", "plan.yaml", cwd=desk.folder)
    assert ran.status == 4
    assert "a -> b -> a" in ran.err.replace("'", "") + ran.out.replace("'", "")


# --- parents and their children --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Ran, Ran, str]:
    example = Example(tmp_path_factory.mktemp("editor") / "phases")
    unpack_bundle(PHASES, example.root)
    text = example.root / "tests/test_words.py"
    text.write_text(text.read_text(encoding="utf-8") + "\n\ndef test_more():\n    assert 1 == 2\n")
    said = example.verify("plan.yaml", "--planverify-confirm=0").output
    shown = planner("status", "plan.yaml", cwd=example.root)
    return example, shown, planner("next", "plan.yaml", "--json", cwd=example.root), said


def line_of(shown: Ran, todo_id: str) -> str:
    return next(line for line in shown.out.splitlines() if f" {todo_id} " in line)


@pytest.mark.parametrize(
    ("todo_id", "progress", "state"),
    [("phase-1", "(2/2)", "done"), ("phase-2", "(3/3)", "done"), ("phase-3", "(2/3)", "in progress")],
)
def test_run_and_status_show_the_progress_of_a_parent(
    editor: Any, todo_id: str, progress: str, state: str
) -> None:
    shown = line_of(editor[1], todo_id)
    assert progress in shown
    assert state in shown
    assert progress in next(
        line for line in editor[3].splitlines() if f"  {todo_id} " in line and "(" in line
    )


def test_a_failed_child_is_repaired_in_its_sub_plan(editor: Any) -> None:
    (asked,) = editor[2].actions
    assert (asked["parent_id"], asked["todo_id"]) == ("phase-3/words", "phase-3/words_branch_01")


def test_a_todo_of_a_sub_plan_is_shown_by_its_qualified_id(editor: Any) -> None:
    ran = planner("status", "plan.yaml", "phase-3/words", cwd=editor[0].root)
    assert (ran.status, "failed" in ran.out) == (0, True)


def test_status_depth_limits_the_levels_shown(editor: Any) -> None:
    ran = planner("status", "plan.yaml", "--depth", "1", cwd=editor[0].root)
    assert "phase-3" in ran.out
    assert "Words" not in ran.out
