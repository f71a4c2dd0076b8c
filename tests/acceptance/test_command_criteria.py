"""Criteria other than pytest: commands, artifacts, contracts, metrics, data files and questions."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from real_planner import planner

FILES = {
    "good.py": '"""Good."""\n',
    "unused.py": "import os\n",
    "broken.py": "def f(:\n",
    "test_unit.py": "import unittest\nclass Test(unittest.TestCase):\n    def test_it(self): pass\n",
    "no_tests.py": "",
    "Makefile": "good:\n\t@echo fine\nbad:\n\t@false\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node -e 0", "bad": "node b"}}',
    "b.js": "process.exit(3)\n",
    "says.py": "import os, sys\n"
    "sys.exit(0 if os.environ.get('WORD') == 'yes' and sys.argv[1] == '*.py' else 7)\n",
    "test_it.py": "def test_it(): pass\n",
}

COMMANDS = {
    "python_module": ("python -m compileall -q good.py", "passed"),
    "compiled": ("python -m py_compile good.py", "passed"),
    "not_compiled": ("python -m py_compile broken.py", "failed"),
    "linted": ("ruff check good.py --isolated", "passed"),
    "not_linted": ("ruff check unused.py --isolated", "failed"),
    "unittest": ("python -m unittest test_unit", "passed"),
    "unittest_of_nothing": ("python -m unittest no_tests", "failed"),
    "make_good": ("make good", "passed"),
    "make_bad": ("make bad", "failed"),
    "npm_good": ("npm test", "passed"),
    "npm_bad": ("npm run bad", "failed"),
    "no_shell": ("WORD=yes python says.py '*.py'", "passed"),
    "no_such_script": ("python nothing_here.py", "failed"),
}
NEEDS = {"make_good": "make", "make_bad": "make", "npm_good": "npm", "npm_bad": "npm"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("commands"), FILES)
    example.plan(*(todo(name, command) for name, (command, _) in COMMANDS.items()))
    return example.verify()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_kind_of_command_has_its_expected_verdict(name: str, ran: Verified):
    if name in NEEDS and shutil.which(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")

    assert ran.verdicts[name] == COMMANDS[name][1], str(ran)
    assert ran.check(name)["kind"] == "command"


def test_a_failed_command_is_diagnosed_by_its_kind(ran: Verified):
    assert ran.category("not_compiled") == "COMPILATION_ERROR"
    assert ran.category("not_linted") == "LINT_ERROR"


def test_a_tool_defined_by_the_plan_is_judged_by_its_exit_status(tmp_path: Path):
    tools = [{"name": "in-order", "kind": "lint", "argv": ["sort", "--check"]}]
    example = Example(tmp_path, {"good.txt": "a\nb\n", "bad.txt": "b\na\n"})
    example.plan(
        todo("good", "in-order good.txt"),
        todo("bad", "sort --check bad.txt"),
        metadata={"tools": tools},
    )

    run = example.verify()

    assert run.verdicts == {"good": "passed", "bad": "failed"}, str(run)
    assert run.category("bad") == "LINT_ERROR"


def test_an_undefined_tool_is_refused_with_the_line_to_add(tmp_path: Path):
    example = Example(tmp_path, {"a.txt": ""})
    example.plan(todo("a", "sort --check a.txt"))

    run = example.verify()

    assert run.exit_code == 4
    assert "metadata: {tools: [{name: sort, kind: validate, argv: [sort]}]}" in run.output


def test_a_tool_that_is_missing_is_inconclusive(tmp_path: Path):
    example = Example(tmp_path, FILES)
    example.plan(todo("rust", "cargo test"), todo("green", "pytest test_it.py"))

    run = example.verify(env={"PATH": str(tmp_path)})

    assert run.verdicts == {"rust": "inconclusive", "green": "passed"}, str(run)
    assert run.exit_code == 10
    assert run.category("rust") in (None, "ENVIRONMENT_ERROR")
    assert "cargo is not installed" in run.output


# -- order of commands ---------------------------------------------------------------------------------

GENERATING = {
    "generate.py": "import pathlib\npathlib.Path('generated.py').write_text('VALUE = 42')\n",
    "test_generated.py": "import generated\ndef test_it(): assert generated.VALUE == 42\n",
    "test_before.py": "import pathlib\ndef test_it(): assert not pathlib.Path('generated.py').exists()\n",
    "conftest.py": "",
}


@pytest.mark.parametrize("options", [(), ("--planverify-isolate",)], ids=["folded", "isolated"])
def test_dependent_todos_see_files_made_by_a_command(options: tuple[str, ...], tmp_path: Path):
    example = Example(tmp_path, GENERATING)
    example.plan(
        todo("use", "pytest test_generated.py", after=("make",)),
        todo("before", "pytest test_before.py"),
        todo("make", "python generate.py", after=("before",)),
    )

    run = example.verify(*options)

    assert run.verdicts == {"use": "passed", "before": "passed", "make": "passed"}, str(run)


def test_within_a_todo_commands_run_in_their_order(tmp_path: Path):
    example = Example(tmp_path, GENERATING)
    example.plan(todo("all", "pytest test_before.py", "python generate.py", "pytest test_generated.py"))

    run = example.verify()

    assert run.verdicts == {"all": dict.fromkeys(("tests[0]", "tests[1]", "tests[2]"), "passed")}, str(run)


CRITERIA_FILES = {
    "out/report.json": '{"rows": 3}',
    "out/empty.txt": "",
    "schema.json": '{"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}',
    "strict.json": '{"type": "object", "required": ["columns"]}',
    "indicators.py": "def rsi(series: list, period: int = 14) -> float:\n    return 0.0\n",
    "test_it.py": "def test_it(): pass\n",
    "contracts/right.json": json.dumps(
        {
            "contract_version": 1,
            "module": "indicators",
            "functions": [
                {"name": "rsi", "parameters": [{"name": "series"}, {"name": "period", "default": "14"}]}
            ],
        }
    ),
    "contracts/wrong.json": json.dumps(
        {
            "contract_version": 1,
            "module": "indicators",
            "functions": [{"name": "rsi", "parameters": [{"name": "prices"}]}],
        }
    ),
}
DIGEST = hashlib.sha256(CRITERIA_FILES["out/report.json"].encode()).hexdigest()

ARTIFACTS: dict[str, tuple[Any, str]] = {
    "exists": ("out/report.json", "passed"),
    "missing": ("out/missing.json", "failed"),
    "glob": ("out/*.json", "passed"),
    "schema": ({"path": "out/report.json", "schema": "schema.json"}, "passed"),
    "other_schema": ({"path": "out/report.json", "schema": "strict.json"}, "failed"),
    "other_digest": ({"path": "out/report.json", "sha256": "0" * 64}, "failed"),
}


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("artifacts"), CRITERIA_FILES)
    example.plan(
        *(todo(name, expected_artifacts=[spec]) for name, (spec, _) in ARTIFACTS.items()),
        todo("right", "pytest test_it.py", contract_path="contracts/right.json"),
        todo("wrong", "pytest test_it.py", contract_path="contracts/wrong.json"),
        todo("no_contract", "pytest test_it.py", contract_path="contracts/missing.json"),
    )
    return example.verify()


@pytest.mark.parametrize("name", ARTIFACTS)
def test_each_artifact_has_its_expected_verdict(name: str, looked_at: Verified):
    assert looked_at.verdicts[name] == ARTIFACTS[name][1], str(looked_at)


def test_a_missing_artifact_has_its_own_category(looked_at: Verified):
    assert looked_at.category("missing") == "ARTIFACT_MISSING"


def test_a_contract_is_compared_with_the_module(looked_at: Verified):
    verdicts = {
        name: looked_at.check(name, "contract_path")["verdict"]
        for name in ("right", "wrong", "no_contract")
    }

    assert verdicts == {"right": "passed", "wrong": "failed", "no_contract": "failed"}, str(looked_at)
    assert looked_at.category("wrong") == "SPEC_MISMATCH"


# -- questions -----------------------------------------------------------------------------------------

QUESTION = "Does the chart look right?"


def asking(folder: Path) -> Example:
    example = Example(folder, CRITERIA_FILES)
    example.plan(todo("chart", "pytest test_it.py", manual=[{"question": QUESTION, "role": "human"}]))
    return example


def test_an_open_question_waits_for_a_human(tmp_path: Path):
    run = asking(tmp_path).verify()

    assert run.verdicts["chart"] == {"tests[0]": "passed", "manual[0]": "needs_human"}, str(run)
    assert run.states["chart"] == "testing"
    assert run.exit_code == 11
    assert "planner answer plan.yaml chart yes # or no, or a reason" in run.output


def test_each_of_several_questions_shows_its_own_answer_command(tmp_path: Path):
    example = Example(tmp_path, CRITERIA_FILES)
    questions = [{"question": text, "role": "human"} for text in (QUESTION, "Is the legend complete?")]
    example.plan(todo("chart", "pytest test_it.py", manual=questions))
    assert (
        "planner answer plan.yaml chart yes --check 'manual[0]' # or no, or a reason"
        in example.verify().output
    )

    told = planner("answer", "chart", "yes", "--check", "manual[0]", "--by", "Ada", cwd=example.root)

    assert told.status == 0, told.err
    run = example.verify()
    expected = {"tests[0]": "passed", "manual[0]": "passed", "manual[1]": "needs_human"}
    assert run.verdicts["chart"] == expected, str(run)


@pytest.mark.parametrize(
    ("said", "verdict", "exit_code"),
    [("yes", "passed", 0), ("no", "failed", 1), ("The legend hides the peak.", "failed", 1)],
    ids=["yes", "no", "a reason"],
)
def test_the_answer_of_a_person_decides_a_manual_criterion(
    said: str, verdict: str, exit_code: int, tmp_path: Path
):
    example = asking(tmp_path)
    example.verify()

    told = planner("answer", "chart", said, "--by", "Ada", cwd=example.root)

    assert told.status == 0, told.err
    assert "next: planner next plan.yaml" in told.out
    run = example.verify()
    assert run.check("chart", "manual[0]")["verdict"] == verdict, str(run)
    assert run.exit_code == exit_code
    if said not in ("yes", "no"):
        assert said in run.output


@pytest.mark.parametrize(
    ("word", "question", "verdict"),
    [("yes", "Is the chart blue?", "stale"), ("perhaps", QUESTION, "needs_human")],
    ids=["another question", "no answer"],
)
def test_an_answer_to_another_question_or_an_invalid_answer_decides_nothing(
    word: str, question: str, verdict: str, tmp_path: Path
):
    example = asking(tmp_path)
    entry = {"plan": "example", "todo_id": "chart", "check_id": "manual[0]", "question": question}
    answers = {"schema_version": 1, "answers": [{**entry, "answer": word, "by": "Ada"}]}
    example.write({".planverify/answers.json": json.dumps(answers)})

    run = example.verify()

    assert run.check("chart", "manual[0]")["verdict"] == verdict, str(run)
    assert run.exit_code == 11


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

METRICS: dict[str, tuple[str, str, float, str]] = {
    "equal": ("rows", "==", 250, "passed"),
    "not_equal": ("rows", "==", 251, "failed"),
    "each": ("n", ">=", 1, "passed"),
    "not_each": ("n", ">=", 2, "failed"),
    "planverify": ("ratio", "==", 0.5, "passed"),
    "suite": ("from_suite", "==", 12, "passed"),
    "nobody": ("nobody_recorded", ">", 0, "failed"),
    "of_another_todo": ("elsewhere", "==", 1, "failed"),
    "text": ("text", ">", 0, "failed"),
    "nan": ("nan", "!=", 0, "failed"),
}
TESTS = " ".join(f"test_it.py::test_{name}" for name in ("property", "each", "fixture", "suite"))


def metric(name: str, operator: str, value: float) -> dict[str, Any]:
    return {"name": name, "operator": operator, "value": value}


@pytest.fixture(scope="module", params=[(), ("-p", "xdist", "-n2")], ids=str)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("measured"), METRICS_FILES)
    todos = [todo(name, f"pytest {TESTS}", metrics=[metric(*spec[:3])]) for name, spec in METRICS.items()]
    todos.append(
        todo("unused", "pytest test_it.py::test_property", metrics=[metric("from_suite", "==", 12)])
    )
    todos.append(todo("other", "pytest test_it.py::test_other"))
    todos.append(todo("red", "pytest test_it.py::test_red", metrics=[metric("rows", ">", 0)]))
    example.plan(*todos)
    return example.verify(*request.param, measured=not request.param)


@pytest.mark.parametrize("name", METRICS)
def test_every_recorded_value_must_satisfy_the_metric(name: str, measured: Verified):
    assert measured.verdicts[name] == {"tests[0]": "passed", "metrics[0]": METRICS[name][3]}, str(measured)


def test_a_suite_property_counts_only_where_its_fixture_is_used(measured: Verified):
    assert measured.check("unused", "metrics[0]")["verdict"] == "failed", str(measured)


def test_an_unmet_metric_has_its_own_category(measured: Verified):
    assert measured.category("not_equal") == "METRIC_UNMET"
    assert measured.outcomes["not_equal"]["recorded"]["rows"] == [250]
    assert sorted(measured.outcomes["each"]["recorded"]["n"]) == [1, 2, 3]


def test_a_metric_not_recorded_because_its_test_failed_is_inconclusive(measured: Verified):
    assert measured.verdicts["red"] == {"tests[0]": "failed", "metrics[0]": "inconclusive"}, str(measured)


READS = """\
    def test_it(planverify):
        assert planverify.fixture_path.is_absolute()
        assert planverify.fixture_path.read_text() == "right"
"""


@pytest.fixture(scope="module", params=[(), ("--planverify-isolate",)], ids=str)
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(
        tmp_path_factory.mktemp("data"),
        {
            "test_it.py": READS,
            "test_any.py": "def test_it(): pass\n",
            "data/right.json": "right",
            "data/wrong.json": "wrong",
        },
    )
    example.plan(
        todo("right", {"cmd": "pytest test_it.py", "fixture": "data/right.json"}),
        todo("wrong", {"cmd": "pytest test_it.py", "fixture": "data/wrong.json"}),
        todo("none", "pytest test_it.py"),
        todo("missing", {"cmd": "pytest test_any.py", "fixture": "data/missing.json"}),
        todo("unread", {"cmd": "pytest test_any.py", "fixture": "data/right.json"}),
    )
    return example.verify(*request.param)


def test_two_todos_may_run_the_same_tests_on_different_files(read: Verified):
    names = ("right", "wrong", "none")

    assert {name: read.verdicts[name] for name in names} == {
        "right": "passed",
        "wrong": "failed",
        "none": "failed",
    }, str(read)


def test_the_digest_of_a_fixture_file_is_recorded(read: Verified):
    digest = hashlib.sha256(b"right").hexdigest()

    assert read.check("unread")["fixture"] == {"path": "data/right.json", "sha256": digest}
    assert read.verdicts["unread"] == "passed"


def test_a_missing_fixture_file_fails_its_criterion(read: Verified):
    assert read.verdicts["missing"] == "failed", str(read)
    assert read.check("missing")["fixture"] == {"path": "data/missing.json", "sha256": None}
    assert "data/missing.json" in read.output
