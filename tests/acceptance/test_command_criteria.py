"""Criteria other than pytest: commands, artifacts, metrics, data files and questions.

What decides each verdict is tested in tests/pytest_planverify/checks.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from real_planner import planner

FILES = {
    "good.py": "def rsi(series: list, period: int = 14) -> float:\n    return 0.0\n",
    "unused.py": "import os\n",
    "broken.py": "def f(:\n",
    "says.py": "import os, sys\n"
    "sys.exit(0 if os.environ.get('WORD') == 'yes' and sys.argv[1] == '*.py' else 7)\n",
    "sorted.txt": "a\nb\n",
    "unsorted.txt": "b\na\n",
    "out/report.json": '{"rows": 3}',
    "strict.json": '{"type": "object", "required": ["columns"]}',
    "test_it.py": "def test_it(): pass\n",
}

COMMANDS = {
    "python_module": ("python -m compileall -q good.py", "passed"),
    "not_compiled": ("python -m py_compile broken.py", "failed"),
    "not_linted": ("ruff check unused.py --isolated", "failed"),
    "no_shell": ("WORD=yes python says.py '*.py'", "passed"),
    "tool_of_the_plan": ("in-order sorted.txt", "passed"),
    "command_of_a_tool": ("sort --check unsorted.txt", "failed"),
}
TOOLS = [{"name": "in-order", "kind": "lint", "argv": ["sort", "--check"]}]

ARTIFACTS: dict[str, tuple[Any, str]] = {
    "exists": ("out/*.json", "passed"),
    "missing": ("out/missing.json", "failed"),
    "other_schema": ({"path": "out/report.json", "schema": "strict.json"}, "failed"),
    "other_digest": ({"path": "out/report.json", "sha256": "0" * 64}, "failed"),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("commands"), FILES)
    example.plan(
        *(todo(name, command) for name, (command, _) in COMMANDS.items()),
        *(todo(name, expected_artifacts=[spec]) for name, (spec, _) in ARTIFACTS.items()),
        metadata={"tools": TOOLS},
    )
    return example.verify("--planverify-confirm=0")


def test_each_kind_of_command_has_its_expected_verdict_and_diagnosis(ran: Verified):
    expected = {name: verdict for name, (_, verdict) in COMMANDS.items()}

    assert {name: ran.verdicts[name] for name in expected} == expected, str(ran)
    assert {ran.check(name)["kind"] for name in expected} == {"command"}
    assert ran.category("not_compiled") == "COMPILATION_ERROR"
    assert ran.category("not_linted") == "LINT_ERROR"
    assert ran.category("command_of_a_tool") == "LINT_ERROR"


def test_each_artifact_has_its_expected_verdict_and_a_missing_one_its_own_category(ran: Verified):
    verdicts = {name: ran.verdicts[name] for name in ARTIFACTS}

    assert verdicts == {name: verdict for name, (_, verdict) in ARTIFACTS.items()}, str(ran)
    assert ran.category("missing") == "ARTIFACT_MISSING"


# -- order of commands ---------------------------------------------------------------------------------

DIGEST = hashlib.sha256(b"right").hexdigest()
READS = """\
    def test_it(planverify):
        assert planverify.fixture_path.is_absolute()
        assert planverify.fixture_path.read_text() == "right"
"""
IN_ORDER = {
    "generate.py": "import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('VALUE = 42')\n",
    "test_generated.py": "import first\ndef test_it(): assert first.VALUE == 42\n",
    "test_before.py": "import pathlib\n"
    "def test_first(): assert not pathlib.Path('first.py').exists()\n"
    "def test_second(): assert not pathlib.Path('second.py').exists()\n",
    "test_after.py": "import second\ndef test_it(): assert second.VALUE == 42\n",
    "conftest.py": "",
    "test_it.py": READS,
    "test_any.py": "def test_it(): pass\n",
    "data/right.json": "right",
    "data/wrong.json": "wrong",
}


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("ordered"), IN_ORDER)
    example.plan(
        todo("use", "pytest test_generated.py", after=("make",)),
        todo("before", "pytest test_before.py::test_first"),
        todo("make", "python generate.py first.py", after=("before",)),
        todo(
            "all",
            "pytest test_before.py::test_second",
            "python generate.py second.py",
            "pytest test_after.py",
        ),
        todo("right", {"cmd": "pytest test_it.py", "fixture": "data/right.json"}),
        todo("wrong", {"cmd": "pytest test_it.py", "fixture": "data/wrong.json"}),
        todo("none", "pytest test_it.py"),
        todo("missing", {"cmd": "pytest test_any.py", "fixture": "data/missing.json"}),
        todo("unread", {"cmd": "pytest test_any.py", "fixture": "data/right.json"}),
    )
    return example.verify("--planverify-confirm=0")


def test_commands_see_files_made_by_earlier_ones_of_their_todo_and_its_dependencies(ordered: Verified):
    verdicts = {name: ordered.verdicts[name] for name in ("use", "before", "make", "all")}
    in_order = dict.fromkeys(("tests[0]", "tests[1]", "tests[2]"), "passed")

    assert verdicts == {"use": "passed", "before": "passed", "make": "passed", "all": in_order}, str(
        ordered
    )


def test_two_todos_may_run_the_same_tests_on_different_files(ordered: Verified):
    verdicts = {name: ordered.verdicts[name] for name in ("right", "wrong", "none")}

    assert verdicts == {"right": "passed", "wrong": "failed", "none": "failed"}, str(ordered)


def test_the_digest_of_a_fixture_file_is_recorded_and_a_missing_one_fails_its_criterion(ordered: Verified):
    assert ordered.check("unread")["fixture"] == {"path": "data/right.json", "sha256": DIGEST}
    assert ordered.verdicts["unread"] == "passed"
    assert ordered.verdicts["missing"] == "failed", str(ordered)
    assert ordered.check("missing")["fixture"] == {"path": "data/missing.json", "sha256": None}
    assert "data/missing.json" in ordered.output


# -- questions -----------------------------------------------------------------------------------------

ANSWERS = {"yes": "passed", "no": "failed", "The legend hides the peak.": "failed"}
"""Answers of a person, and the verdict by each."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Verified]:
    """Return a project whose todos ask a person, and a run before most of the answers."""
    example = Example(tmp_path_factory.mktemp("asked"), {"test_it.py": "def test_it(): pass\n"})
    question = {"question": "Does the chart look right?", "role": "human"}
    legend = {"question": "Is the legend complete?", "role": "human"}
    names = ("chart_0", "chart_1", "chart_2", "other_question")
    example.plan(
        *(todo(name, "pytest test_it.py", manual=[question], status="claimed") for name in names),
        todo("two", "pytest test_it.py", manual=[question, legend]),
    )
    known = {"plan": "example", "todo_id": "other_question", "check_id": "manual[0]"}
    answer = {**known, "question": "Is the chart blue?", "answer": "yes", "by": "Ada"}
    example.write({".planverify/answers.json": json.dumps({"schema_version": 1, "answers": [answer]})})
    return example, example.verify()


def test_an_open_question_waits_for_a_human_and_an_answer_to_another_one_decides_nothing(
    asked: tuple[Example, Verified],
):
    _, run = asked

    assert run.verdicts["chart_0"] == {"tests[0]": "passed", "manual[0]": "needs_human"}, str(run)
    assert run.check("other_question", "manual[0]")["verdict"] == "stale"
    assert run.states["chart_0"] == "testing"
    assert run.exit_code == 11
    assert "planverify answer plan.yaml chart_0 yes # or no, or a reason" in run.output
    assert "planverify answer plan.yaml two yes --check 'manual[0]' # or no, or a reason" in run.output


def test_the_answer_of_a_person_decides_a_manual_criterion(asked: tuple[Example, Verified], tmp_path: Path):
    example = asked[0].copied_to(tmp_path / "project")
    answers = [(f"chart_{number}", said) for number, said in enumerate(ANSWERS)]
    for words in (*answers, ("two", "yes", "--check", "manual[0]")):
        told = planner("answer", "plan.yaml", *words, "--by", "Ada", cwd=example.root)
        assert told.status == 0, told.err
        assert "next: planner next plan.yaml" in told.out

    run = example.verify()

    verdicts = [run.check(todo_id, "manual[0]")["verdict"] for todo_id, _ in answers]
    assert verdicts == list(ANSWERS.values()), str(run)
    assert "The legend hides the peak." in run.output
    expected = {"tests[0]": "passed", "manual[0]": "passed", "manual[1]": "needs_human"}
    assert run.verdicts["two"] == expected, str(run)
    assert run.exit_code == 1
    (failure,) = run.outcomes["chart_2"]["failures"]
    assert (failure.get("location"), failure["candidates"]) == (None, []), "no code is known to be at fault"
    brief = planner("next", "plan.yaml", "--brief", "chart_2", cwd=example.root).out
    assert brief.startswith("# Repair `chart_2`: a person answered no")
    assert "after the repair, a person must answer again first" in brief


# -- metrics -------------------------------------------------------------------------------------------

METRICS_FILES = {
    "conftest.py": """\
        import pytest
        @pytest.fixture(scope="session")
        def suite(record_testsuite_property):
            record_testsuite_property("from_suite", 12)
    """,
    "test_it.py": """\
        import pytest
        def test_property(record_property):
            record_property("rows", 250)
            record_property("text", "many")
            record_property("nan", float("nan"))
        @pytest.mark.parametrize("n", [1, 2, 3])
        def test_each(n, record_property): record_property("n", n)
        def test_fixture(planverify):
            planverify.metric("ratio", 0.5)
            assert planverify.fixture_path is None
        def test_suite(suite): pass
        def test_other(record_property): record_property("elsewhere", 1)
        def test_red(record_property):
            assert 0
    """,
}

METRICS: list[tuple[str, str, float, str]] = [
    ("rows", "==", 250, "passed"),
    ("rows", "==", 251, "failed"),
    ("n", ">=", 1, "passed"),
    ("n", ">=", 2, "failed"),
    ("ratio", "==", 0.5, "passed"),
    ("from_suite", "==", 12, "passed"),
    ("nobody_recorded", ">", 0, "failed"),
    ("elsewhere", "==", 1, "failed"),  # recorded by the test of another todo
    ("text", ">", 0, "failed"),
    ("nan", "!=", 0, "failed"),
]
"""Name, operator and value of each metric, and its verdict."""
TESTS = " ".join(f"test_it.py::test_{name}" for name in ("property", "each", "fixture", "suite"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run in two workers at once; test_examples.py has metrics recorded one after another."""

    def metric(name: str, operator: str, value: float) -> dict[str, Any]:
        return {"name": name, "operator": operator, "value": value}

    example = Example(tmp_path_factory.mktemp("measured"), METRICS_FILES)
    example.plan(
        todo("many", f"pytest {TESTS}", metrics=[metric(*spec[:3]) for spec in METRICS]),
        todo("unused", "pytest test_it.py::test_property", metrics=[metric("from_suite", "==", 12)]),
        todo("other", "pytest test_it.py::test_other"),
        todo("red", "pytest test_it.py::test_red", metrics=[metric("rows", ">", 0)]),
    )
    return example.verify("--planverify-confirm=0", "-p", "xdist", "-n2")


def test_every_recorded_value_must_satisfy_the_metric(measured: Verified):
    expected = {f"metrics[{number}]": verdict for number, (*_, verdict) in enumerate(METRICS)}

    assert measured.verdicts["many"] == {"tests[0]": "passed", **expected}, str(measured)
    assert measured.category("many") == "METRIC_UNMET"
    assert measured.outcomes["many"]["recorded"]["rows"] == [250]
    assert sorted(measured.outcomes["many"]["recorded"]["n"]) == [1, 2, 3]


def test_a_suite_property_counts_only_where_its_fixture_is_used(measured: Verified):
    assert measured.check("unused", "metrics[0]")["verdict"] == "failed", str(measured)


def test_a_metric_not_recorded_because_its_test_failed_is_inconclusive(measured: Verified):
    assert measured.verdicts["red"] == {"tests[0]": "failed", "metrics[0]": "inconclusive"}, str(measured)
