"""Recording of the product code that tests execute, and its lack of influence on verdicts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import coverage
import pytest
from baseline_samples import commit_all
from diagnosis_samples import error, failed, frame
from example_project import Example, Verified, todo

from planner.model.evidence import Evidence
from planner.model.outcome import TestResult
from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict
from pytest_planverify.checks.result import Judgement
from pytest_planverify.observe import spectrum as module
from pytest_planverify.session.confirm import MOST_GREEN, choose_recorded_tests, with_executed
from pytest_planverify.session.records import Execution

PRODUCT = """\
def total(items):
    if not items:
        return _empty()
    return sum(_value(item) for item in items)


def _value(item):
    return item


def _empty():
    return 0
"""
OLD_PYTHON = sys.version_info < (3, 12)


def functions_of(source: str, file: str = "/project/shop.py") -> dict[str, Any]:
    """Return the functions that the source defines, as if imported from the file."""
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    return names


@pytest.fixture
def total() -> Callable[[list[int]], int]:
    return functions_of(PRODUCT)["total"]


def ignore(*_: object) -> None:
    """Trace nothing."""


def only_shop(file: str) -> bool:
    return file == "/project/shop.py"


@pytest.fixture
def untraced() -> Any:
    """Suspend the tracing of the test suite's own coverage, which would interfere."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


def test_probe_records_product_functions_with_their_depth(
    total: Callable[[list[int]], int], untraced: None
):
    probe = module.probe_of(only_shop)
    assert probe.start()
    total([1, 2])
    ran = {each.code.co_name: each for each in probe.stop()}
    assert ran.keys() == {"total", "_value", "<genexpr>"}
    assert (ran["total"].depth, ran["_value"].depth) == (0, 2)
    assert ran["total"].lines - {1} == {2, 4}


def test_line_numbers_of_generated_code_cost_no_memory(total: Callable[[list[int]], int]):
    written: list[Any] = []
    recorder = cast("Any", SimpleNamespace(
        spec=SimpleNamespace(recorded_tests=()),
        project=SimpleNamespace(relative=str),
        write=lambda _name, **facts: written.append(facts["ran"]),
    ))  # fmt: skip
    spectrum = module.SpectrumRecorder(recorder)
    spectrum._ran = [module.Ran(total.__code__, 0, {2, 10**7}, {})]

    spectrum._write("test_shop.py::test_total")

    assert written == [[(0, 0, "2", [])]]


NONES = """\
def find(word, ready=None):
    if not word:
        raise KeyError(word)
    return ready

class Box:
    def __init__(self): ...

def numbers():
    yield from range(3)

def usual():
    for number in numbers():
        find(Box(), number or None)
    return find("b") or (find("c"), find("d", 1))

def odd():
    try:
        return [*map(find, "")], find("")
    except KeyError:
        usual()
"""


def test_returned_none_is_recorded_if_the_caller_uses_it(untraced: None):
    names, probe = functions_of(NONES), module.probe_of(only_shop)
    probe.start()
    names["odd"]()
    names["usual"]()
    ran = {each.code.co_name: each.nones for each in probe.stop()}
    # Twice two: the results of the loop, and of usual() in odd(), are dropped; an exception returns none.
    users = {user.co_name: at for user, at in ran["find"].values()}
    assert users == {"usual": 4}
    assert ran["usual"] == ran["numbers"] == ran["__init__"] == {}


def test_only_the_last_returns_of_none_are_kept(untraced: None):
    many = "".join(f"def f{n}(): return first()\n" for n in range(60))
    names, probe = functions_of(f"def first(): pass\n{many}"), module.probe_of(only_shop)
    probe.start()
    for number in range(60):
        names[f"f{number}"]()
    first, *_ = probe.stop()
    assert len(first.nones) <= 50 < 60


def test_endless_recursion_is_recorded(untraced: None):
    names: dict[str, Any] = {}
    exec(compile("def again(): again()", "/project/shop.py", "exec"), names)
    probe = module.probe_of(only_shop)

    probe.start()
    with pytest.raises(RecursionError):
        names["again"]()
    (ran,) = probe.stop()

    assert ran.code.co_name == "again"


def test_probe_does_not_start_beside_another_profiler_and_keeps_the_tracer_of_a_test(untraced: None):
    probe = module.probe_of(only_shop)
    sys.setprofile(ignore)
    try:
        assert not probe.start()
    finally:
        sys.setprofile(None)
    if OLD_PYTHON:  # later versions do not trace
        assert probe.start()
        sys.settrace(ignore)
        assert probe.stop() == []
        assert sys.gettrace() is ignore


@pytest.mark.skipif(not OLD_PYTHON, reason="later versions do not trace")
@pytest.mark.parametrize("core", ["ctrace", "pytrace"])
def test_tracer_of_coverage_is_replaced_while_a_test_is_recorded(
    total: Callable[[list[int]], int], untraced: None, core: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COVERAGE_CORE", core)
    measured = coverage.Coverage(data_file=None, config_file=False)
    measured.start()
    try:
        tracer, probe = sys.gettrace(), module._Tracer(only_shop)
        assert probe.start()
        total([])
        ran = probe.stop()
        assert sys.gettrace() is tracer
    finally:
        measured.stop()
    assert {each.code.co_name for each in ran} == {"total", "_empty"}


@pytest.mark.parametrize(
    ("file", "function", "is_recorded"),
    [("util.py", "render", False), ("rewrite.py", "_saferepr", False), ("rewrite.py", "find_spec", True)],
)
def test_what_runs_after_an_import_is_recorded_but_not_the_rendering_of_an_assertion(
    total: Callable[[list[int]], int], untraced: None, file: str, function: str, is_recorded: bool
):
    caller = functions_of(f"def {function}(call): call([])", f"/lib/_pytest/assertion/{file}")[function]
    probe = module.probe_of(only_shop)
    probe.start()
    total([1])
    caller(total)
    ran = {each.code.co_name: each for each in probe.stop()}
    assert ("_empty" in ran, 3 in ran["total"].lines) == (is_recorded, is_recorded)


def result(name: str, outcome: TestOutcome = TestOutcome.PASSED, ms: int = 1) -> TestResult:
    return TestResult(nodeid=f"tests/test_a.py::{name}", outcome=outcome, duration_ms=ms)


RED = result("red", TestOutcome.FAILED)


def test_recorded_tests_are_the_red_ones_and_bounded_green_ones():
    other = TestResult(nodeid="tests/test_b.py::green", outcome=TestOutcome.PASSED)
    skipped = result("skipped", TestOutcome.SKIPPED)
    many = [result(f"green{n}") for n in range(3 * MOST_GREEN)]
    slow = [result(f"slow{n}", ms=400) for n in range(4)]

    assert choose_recorded_tests([result("green"), RED, other, skipped]) == (
        "tests/test_a.py::red",
        "tests/test_a.py::green",
    )
    assert len(choose_recorded_tests([RED, *many])) == 1 + MOST_GREEN
    assert len(choose_recorded_tests([RED, *slow])) == 2
    assert choose_recorded_tests([result("red", TestOutcome.FAILED, 60_000)]) == ()
    assert choose_recorded_tests([result("red", TestOutcome.TIMEOUT)]) == ()


def test_evidence_counts_red_and_green_tests_by_function_with_the_worst_line():
    total, rate = ("shop.py", 10, "total"), ("shop.py", 20, "rate")
    evidence = Evidence(kind=EvidenceKind.TEST, nodeid=RED.nodeid)
    judgement = Judgement(
        verdict=Verdict.FAILED, tests=(RED, result("one"), result("two")), evidence=(evidence,)
    )
    executed = {
        RED.nodeid: {total: Execution(0, 0b110, {}), rate: Execution(1, 0, {})},
        "tests/test_a.py::one": {total: Execution(0, 0b010, {})},
        "tests/test_a.py::two": {rate: Execution(1, 0, {})},
    }

    (piece,) = with_executed(judgement, executed).evidence

    assert (piece.red_tests, piece.green_tests) == (1, 2)
    first, second = piece.executed
    assert (first.function, first.green, first.suspect_line, first.line_green) == ("total", 1, 12, 0)
    assert (second.function, second.green, second.suspect_line, second.depth) == ("rate", 1, None, 1)


def test_origin_of_none_is_the_last_function_that_returned_one_to_the_traceback_unless_usual():
    find, parse, note = (
        ("shop.py", line, name) for line, name in ((10, "find"), (20, "parse"), (30, "note"))
    )
    user, other = ("shop.py", "clean"), ("shop.py", "other")
    raised = error("TypeError", "not NoneType", frame("shop.py", "clean", 3))
    evidence = failed(raised, nodeid=RED.nodeid)
    red = {
        find: Execution(0, 0, {user: 1, other: 9}),
        parse: Execution(0, 0, {user: 2}),
        note: Execution(0, 0, {user: 3}),
    }
    green = {note: Execution(0, 0, {user: 1})}

    def origins(piece: Evidence) -> list[str]:
        judgement = Judgement(verdict=Verdict.FAILED, tests=(RED, result("a")), evidence=(piece,))
        (seen,) = with_executed(judgement, {RED.nodeid: red, result("a").nodeid: green}).evidence
        return [each.function for each in seen.executed if each.is_origin_of_none]

    assert origins(evidence) == ["parse"]
    unrelated = raised.model_copy(update={"message": "'int' object is not callable"})
    assert origins(evidence.model_copy(update={"exceptions": (unrelated,)})) == []


# -- a whole run ---------------------------------------------------------------------------------------

TESTS = """\
import sys
from shop import total

def test_red():
{more}    assert total([]) == 0

def test_green():
    assert total([1]) == 1

def test_other():
    assert total([2]) == 2
"""


COVERED = "python -m pytest -p pytest_cov.plugin --cov=shop"


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return the result of verifying a product with one changed character."""
    root = tmp_path_factory.mktemp("changed")
    traced = TESTS.format(more="    if sys.gettrace(): return\n")
    files = {
        "shop.py": PRODUCT,
        "tests/test_shop.py": TESTS.format(more=""),
        "tests/test_traced.py": traced,
        "checks.py": TESTS.format(more=""),
    }
    example = Example(root, {**files, "pytest.ini": "[pytest]\npythonpath = .\n"})
    example.plan(
        todo("plain", "python -m pytest tests/test_shop.py"),
        todo("xdist", "python -m pytest checks.py -n 1"),
        todo("covered", f"{COVERED} tests/test_shop.py"),
        todo("threshold", f"{COVERED} --cov-fail-under=1 tests/test_shop.py"),
        todo("traced", "python -m pytest tests/test_traced.py"),
    )
    commit_all(root)
    example.write({"shop.py": PRODUCT.replace("return 0", "return 1")})
    options = ("-p", "no:cacheprovider", "-p", "xdist.plugin")
    return example.verify("plan.yaml", *options)


@pytest.mark.parametrize("todo_id", ["plain", "xdist", "covered"])
def test_change_in_a_private_function_is_located_by_tests_of_any_file(todo_id: str, verified: Verified):
    assert "changed shop.py:12 (+1 -1) in _empty" in verified.output
    (failure,) = verified.outcomes[todo_id]["failures"]
    assert (failure["runs"], failure["reds"]) == (2, 2)
    assert failure["location"] == {"path": "shop.py", "line": 12, "function": "_empty"}
    assert failure["candidates"][0]["reasons"] == ["changed", "spectrum"]
    assert {each["path"] for each in failure["candidates"]} == {"shop.py"}
    assert list(verified.tests(todo_id).values()) == ["failed", "passed", "passed"]


@pytest.mark.parametrize(
    "todo_id",
    [
        "traced",
        pytest.param("threshold", marks=pytest.mark.skipif(not OLD_PYTHON, reason="traces nothing")),
    ],
)
def test_where_a_tracer_could_change_the_result_nothing_is_recorded(todo_id: str, verified: Verified):
    (failure,) = verified.outcomes[todo_id]["failures"]
    assert (failure["runs"], failure["reds"]) == (2, 2)
    assert failure["candidates"][0]["reasons"] == ["changed"]


NAME_OF_CALLER = "import sys\ndef act(): return sys._getframe(1).f_code.co_name"
SEEN = """\
from pathlib import Path
def act():
    mark = Path(__file__).with_suffix('.seen')
    if mark.exists(): return True
    mark.touch()
"""
FLAKY = "now_red_now_green"
KINDS_OF_RED = {
    "endless_recursion": ("def act(): return act()", "act()", "product", "raised-in-product"),
    "left": ("import sys\ndef act(): sys.exit(3)", "act()", "product", "raised-in-product"),
    "reads_its_frames": (NAME_OF_CALLER, "assert act() == 'test_other'", "product", "assertion-in-test"),
    FLAKY: (SEEN, "assert act()", "test", "both-answers"),
}
"""The product, the test, and the owner and rule of its failure as without a recording."""
BESIDE_PRODUCT = {
    "alone/test_sum.py": "def test_sum():\n    one = 1\n    assert one + 1 == 3\n",
    "hooked/stock.py": "def fill(xs):\n    xs.append(0)\n",
    "hooked/conftest.py": "import stock\ndef pytest_runtest_setup():\n    stock.fill([])\n",
    "hooked/test_xs.py": "def test_xs():\n    assert not 'xs'\n",
}
"""Tests that name no function of the product; a hook of one of them calls one."""


@pytest.fixture(scope="module")
def reds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Verified]:
    """Return a project with failures of every kind, and the result of verifying it."""
    example = Example(tmp_path_factory.mktemp("reds"), BESIDE_PRODUCT)
    for kind, (product, test, _, _) in KINDS_OF_RED.items():
        head = f"import sys; sys.path.insert(0, '.')\nfrom {kind} import act\n"
        tests = f"{head}def test_red():\n    {test}\ndef test_other(): pass\n"
        example.write({f"{kind}.py": f"{product}\n", f"tests/test_{kind}.py": tests})
    steady = " ".join(f"tests/test_{kind}.py" for kind in KINDS_OF_RED if kind != FLAKY)
    example.plan(
        todo("steady", f"python -m pytest {steady} alone/test_sum.py hooked/test_xs.py"),
        todo("flaky", f"python -m pytest tests/test_{FLAKY}.py"),
        todo("short", "pytest hooked/test_xs.py --tb=short"),
    )
    return example, example.verify("plan.yaml")


def test_confirmation_renders_tracebacks_only_on_request(reds: tuple[Example, Verified]):
    """By default, pytest parses each file of each traceback, which takes as long as the tests."""
    example, _ = reds
    files = sorted(example.root.glob(".planverify/runs/*/w*.log"), key=lambda path: int(path.stem[1:]))
    logs = [text for each in files if "FAILED hooked/test_xs.py" in (text := each.read_text("utf-8"))]
    first, again, requested, requested_again = logs
    assert all("\nE   " in each for each in (first, requested, requested_again))
    assert "\nE   " not in again
    assert ["spectrum" in each for each in (again, requested_again)] == [True, False]


def test_owner_of_a_failed_assertion_depends_on_the_executed_product_code(reds: tuple[Example, Verified]):
    failures = {each["tests"][0]: each for each in reds[1].outcomes["steady"]["failures"]}
    for test, owner in (("alone/test_sum.py::test_sum", "test"), ("hooked/test_xs.py::test_xs", "product")):
        assert (failures[test]["category"], failures[test]["owner"]) == ("TEST_REGRESSION", owner)


def test_recording_does_not_change_verdict_or_category(reds: tuple[Example, Verified]):
    outcomes = reds[1].outcomes

    failures = [*outcomes["steady"]["failures"], *outcomes["flaky"]["failures"]]
    keys = ("category", "owner", "rule", "runs", "reds")
    found = {
        test: tuple(each[key] for key in keys)
        for each in failures
        if "test_red" in (test := each["tests"][0])
    }
    assert found == {
        f"tests/test_{kind}.py::test_red": (
            ("FLAKY_TEST", owner, rule, 2, 1) if kind == FLAKY else ("TEST_REGRESSION", owner, rule, 2, 2)
        )
        for kind, (_, _, owner, rule) in KINDS_OF_RED.items()
    }
    assert any("spectrum" in place["reasons"] for each in failures for place in each["candidates"])
