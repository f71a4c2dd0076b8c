"""Recording of the product code that tests execute, and its lack of influence on verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from planner.model.evidence import Evidence
from planner.model.outcome import TestResult
from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict
from pytest_planverify.checks.result import Judgement
from pytest_planverify.observe import spectrum as module
from pytest_planverify.session.confirm import MOST_GREEN, choose_recorded_tests, with_executed

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


@pytest.fixture
def total() -> Callable[[list[int]], int]:
    names: dict[str, Any] = {}
    exec(compile(PRODUCT, "/project/shop.py", "exec"), names)
    return names["total"]


def ignore(*_: object) -> None:
    """Trace nothing."""


def everything(_file: str) -> bool:
    return True


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


def test_probe_does_not_start_beside_another_profiler(untraced: None):
    probe = module.probe_of(everything)
    sys.setprofile(ignore)
    try:
        assert not probe.start()
    finally:
        sys.setprofile(None)


@pytest.mark.skipif(not OLD_PYTHON, reason="later versions do not trace")
def test_tracer_set_by_a_test_is_kept(untraced: None):
    probe = module._Tracer(everything)

    assert probe.start()
    sys.settrace(ignore)
    assert probe.stop() == []
    assert sys.gettrace() is ignore


def test_assertion_rendering_is_not_recorded(total: Callable[[list[int]], int], untraced: None):
    names: dict[str, Any] = {}
    exec(compile("def render(call):\n    call([])", "/lib/_pytest/assertion/util.py", "exec"), names)
    probe = module.probe_of(only_shop)

    probe.start()
    total([1])
    names["render"](total)
    ran = {each.code.co_name: each for each in probe.stop()}

    assert "_empty" not in ran
    assert 3 not in ran["total"].lines


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
        RED.nodeid: {total: (0, 0b110), rate: (1, 0)},
        "tests/test_a.py::one": {total: (0, 0b010)},
        "tests/test_a.py::two": {rate: (1, 0)},
    }

    (piece,) = with_executed(judgement, executed).evidence

    assert (piece.red_tests, piece.green_tests) == (1, 2)
    first, second = piece.executed
    assert (first.function, first.green, first.suspect_line, first.line_green) == ("total", 1, 12, 0)
    assert (second.function, second.green, second.suspect_line, second.depth) == ("rate", 1, None, 1)


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


@pytest.fixture(autouse=True)
def _lean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the autoload of plugins, which takes most of the time of a short run."""
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):  # coverage would already trace
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_planverify.plugin,xdist.plugin")


def verify(pytester: pytest.Pytester, options: str = "", more: str = "") -> tuple[str, dict[str, Any]]:
    """Return the terminal output and the outcome for a product with one changed character."""
    path = pytester.path
    (path / "shop.py").write_text(PRODUCT)
    (path / "tests").mkdir()
    (path / "tests/test_shop.py").write_text(TESTS.format(more=more))
    criteria = {"tests": [f"python -m pytest tests{options}"]}
    plan = {"todo_list_id": "p", "items": [{"id": "t", "title": "T", "acceptance_criteria": criteria}]}
    (path / "plan.yaml").write_text(json.dumps(plan))
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]
    for words in (["init", "-q"], ["add", "."], commit):
        subprocess.run(["git", *words], cwd=path, check=True)
    (path / "shop.py").write_text(PRODUCT.replace("return 0", "return 1"))
    shown = pytester.runpytest_subprocess("--planverify", "plan.yaml", "-p", "no:cacheprovider")
    outcome = json.loads((path / ".planverify/outcomes.json").read_text())["outcomes"][0]
    return shown.stdout.str(), outcome


@pytest.mark.parametrize("options", ["", " -n 1"])
def test_change_in_a_private_function_is_located(pytester: pytest.Pytester, options: str):
    screen, outcome = verify(pytester, options)

    assert "changed shop.py:12 (+1 -1) in _empty" in screen
    (failure,) = outcome["failures"]
    assert (failure["runs"], failure["reds"]) == (2, 2)
    assert failure["location"] == {"path": "shop.py", "line": 12, "function": "_empty"}
    assert failure["candidates"][0]["reasons"] == ["changed", "spectrum"]
    assert [test["outcome"] for test in outcome["checks"][0]["tests"]] == ["failed", "passed", "passed"]


def test_tests_that_check_for_tracers_are_not_recorded(pytester: pytest.Pytester):
    _, outcome = verify(pytester, more="    if sys.gettrace(): return\n")

    (failure,) = outcome["failures"]
    assert (failure["runs"], failure["reds"]) == (2, 2)
    assert failure["candidates"][0]["reasons"] == ["changed"]


KINDS_OF_RED = {
    "wrong_value": ("def act(): return 1", "assert act() == 2"),
    "raised_below": ("def act(): return inner()\ndef inner(): return {}['key']", "assert act()"),
    "endless_recursion": ("def act(): return act()", "act()"),
    "endless_loop": ("def act():\n    while True: pass", "act()"),
    "left": ("import sys\ndef act(): sys.exit(3)", "act()"),
    "reads_its_frames": (
        "import sys\ndef act():\n    return sys._getframe(1).f_code.co_name",
        "assert act() == 'test_other'",
    ),
    "now_red_now_green": (
        "from pathlib import Path\ndef act():\n    mark = Path(__file__).with_suffix('.seen')"
        "\n    if mark.exists(): return True\n    mark.touch()\n    return False",
        "assert act()",
    ),
    "the_test_is_wrong": ("def act(): return 1", "act()\n    assert undefined == 1"),
}


BROKEN_FIXTURE = """\
import pytest, sys
sys.path.insert(0, ".")
import shop

@pytest.fixture
def stock(): return shop.total([]) / 0
"""


@pytest.mark.parametrize(("command", "is_rendered"), [("", False), (" --tb=short", True)])
def test_confirmation_renders_tracebacks_only_on_request(
    command: str, is_rendered: bool, pytester: pytest.Pytester
):
    """By default, pytest parses each file of each traceback, which takes as long as the tests."""
    pytester.makepyfile(shop="def total(items): return 1\n", conftest=BROKEN_FIXTURE)
    pytester.makepyfile(test_stock="def test_red(stock): pass\n")
    criterion = {"tests": [f"pytest test_stock.py{command}"]}
    plan = {"todo_list_id": "p", "items": [{"id": "a", "title": "A", "acceptance_criteria": criterion}]}
    pytester.makefile(".yaml", plan=json.dumps(plan))
    subprocess.run([sys.executable, "-m", "pytest", "--planverify", "plan.yaml"], check=False, timeout=240)

    first, again = sorted(pytester.path.glob(".planverify/runs/*/w?.log"))
    assert "\nE   " in first.read_text(encoding="utf-8")
    text = again.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in text
    assert ("\nE   " in text, "spectrum" not in text) == (is_rendered, is_rendered)


def test_recording_does_not_change_verdict_or_category(pytester: pytest.Pytester):
    """Each kind of failure is verified twice by the same code, with and without a recorded confirmation."""
    unrecorded = (
        "import pytest_planverify.session.run as run\nrun.choose_recorded_tests = lambda tests: ()\n"
    )
    decided: list[dict[str, object]] = []
    reasons: list[set[str]] = []
    for is_recorded in (True, False):
        folder = pytester.mkdir(f"recorded_{is_recorded}".lower())
        (folder / "recording.py").write_text("" if is_recorded else unrecorded)
        (folder / "tests").mkdir()
        items: list[dict[str, object]] = []
        for kind, (product, test) in KINDS_OF_RED.items():
            (folder / f"{kind}.py").write_text(product + "\n")
            file = f"tests/test_{kind}.py"
            (folder / file).write_text(
                f"import sys; sys.path.insert(0, '.')\nfrom {kind} import act\n"
                f"def test_red():\n    {test}\ndef test_other(): pass\n"
            )
            seconds = 1 if kind == "endless_loop" else 30
            criterion = {"cmd": f"python -m pytest {file}", "timeout_seconds": seconds}
            items.append({"id": kind, "title": kind, "acceptance_criteria": {"tests": [criterion]}})
        (folder / "plan.yaml").write_text(json.dumps({"todo_list_id": "p", "items": items}))
        command = [sys.executable, "-m", "pytest", "-p", "recording", "--planverify", "plan.yaml"]
        subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=240)
        outcomes = json.loads((folder / ".planverify/outcomes.json").read_text())["outcomes"]
        reasons.append({why for each in outcomes for why in _reasons(each)})
        decided.append({each["todo_id"]: _decision(each) for each in outcomes})

    recorded, plain = decided
    assert recorded == plain
    assert len(plain) == len(KINDS_OF_RED)
    assert ("spectrum" in reasons[0], "spectrum" in reasons[1]) == (True, False)


def _decision(outcome: dict[str, Any]) -> object:
    keys = ("category", "owner", "repeatability", "rule", "confidence", "runs", "reds")
    tests = [(each["nodeid"], each["outcome"]) for check in outcome["checks"] for each in check["tests"]]
    return outcome["state"], tests, [[each.get(key) for key in keys] for each in outcome["failures"]]


def _reasons(outcome: dict[str, Any]) -> list[str]:
    return [
        why
        for failure in outcome["failures"]
        for each in failure.get("candidates", ())
        for why in each["reasons"]
    ]
