"""Diagnosis of single facts: artifacts, metrics, contracts, selections, commands, crashes, reruns."""

# ruff: noqa: E501 (a case a line reads better)
from typing import Any

import pytest
from diagnosis_samples import error, frame

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.outcome import Diagnosis, Location
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import Side
from pytest_planverify.diagnosis import diagnose

C = Category

TEST = frame("tests/test_a.py", "test_a", 3)
PRODUCT = frame("shop/cart.py", "total", 3)
LIBRARY = frame("/v/site-packages/lib/x.py", "go", module="lib.x", side=Side.THIRD_PARTY)
OURS = frame(
    "/v/site-packages/pytest_planverify/journal.py",
    "write",
    module="pytest_planverify.journal",
    side=Side.FRAMEWORK,
)
GREEN = {"where": "alone", "passed": True}
AGAIN = ({"where": "company", "passed": False}, {"where": "alone", "passed": False})


def _with_source(of: Frame, source: str) -> Frame:
    return of.model_copy(update={"source": source})


def _artifact(problem: str, **more: Any) -> dict[str, Any]:
    return {"kind": "artifact", "artifact": {"path": "out/x.json", "problem": problem, **more}}


def _metric(problem: str, *recorded: str) -> dict[str, Any]:
    return {
        "kind": "metric",
        "metric": {
            "name": "rows",
            "operator": ">=",
            "expected": 10,
            "recorded": recorded,
            "problem": problem,
        },
    }


def _contract(problem: str, **more: Any) -> dict[str, Any]:
    return {"kind": "contract", "contract": {"path": "c.json", "problem": problem, **more}}


def _selected(*selectors: tuple[str, str], nearest: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "kind": "selection",
        "selectors": [{"text": t, "problem": p, "nearest": nearest} for t, p in selectors],
    }


def _command(purpose: str, output: str = "", exit_code: int = 1, **more: Any) -> dict[str, Any]:
    fact = {"argv": ("tool", "x"), "tool": "tool", "purpose": purpose, "output_tail": output, **more}
    return {
        "kind": "command",
        "command": fact,
        "process": {"exit_code": exit_code},
        "first_party": ("shop",),
    }


NOT_OK = {"path": "test/price.test.js", "line": 5, "code": "price of four", "message": "failed"}


INTERNAL_ERROR = """\
INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "/v/lib/python3.11/site-packages/pytest_cluster.py", line 6, in pytest_runtest_logreport
INTERNALERROR>     print(report.node)
INTERNALERROR> AttributeError: 'TestReport' object has no attribute 'node'
"""


def _session(text: str = "", exit_code: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"kind": "session", "stderr_tail": text, "process": {"exit_code": exit_code}, **more}


def _test(*errors: ExceptionFact, phase: str = "call", **more: Any) -> dict[str, Any]:
    return {
        "kind": "test",
        "phase": phase,
        "nodeid": "tests/test_a.py::test_a",
        "exceptions": errors,
        "first_party": ("shop",),
        **more,
    }


def _session_error(text: str, exit_code: int) -> dict[str, Any]:
    """Return a session whose own error message was recorded, as the supervisor does."""
    return {"kind": "session", "longrepr": text, "process": {"exit_code": exit_code, "complete": True}}


TABLE: list[tuple[dict[str, Any], Category, Owner, str, str]] = [
    ({**_artifact("missing"), "headline": "out/x.json does not exist; did you mean out/y.json?"}, C.ARTIFACT_MISSING, Owner.PRODUCT, "artifact-not-as-promised", "out/x.json does not exist; did you mean out/y.json?"),
    ({"kind": "artifact", "artifact": {"path": "tests/test_x.py", "problem": "missing"}}, C.ARTIFACT_MISSING, Owner.TEST, "artifact-not-as-promised", ""),
    (_artifact("outside_root"), C.ARTIFACT_MISSING, Owner.PLAN, "artifact-not-as-promised", ""),
    ({**_artifact("missing"), "kind": "fixture"}, C.ARTIFACT_MISSING, Owner.PLAN, "artifact-not-as-promised", ""),
    ({**_metric("unmet", "3"), "headline": "rows is 3, not >= 10"}, C.METRIC_UNMET, Owner.PRODUCT, "metric-unmet", "rows is 3, not >= 10."),
    ({**_metric("not_recorded"), "headline": "no test recorded rows"}, C.METRIC_UNMET, Owner.TEST, "metric-unmet", "No test recorded rows: record it with record_property('rows', value)"),
    ({**_contract("signature", expected="f(a)", actual="f()"), "headline": "f: it has no a"}, C.SPEC_MISMATCH, Owner.PRODUCT, "contract-broken", "f: it has no a. c.json promises f(a), the code has f()."),
    (_contract("signature", function="f", expected="f(a)", actual="f()", module_path="m.py", line=2, why="it has no a"), C.SPEC_MISMATCH, Owner.PRODUCT, "contract-broken", "f (m.py:2): it has no a. c.json promises f(a)"),
    ({**_contract("missing_function", expected="f(…)"), "headline": "m does not define f, it defines g"}, C.SPEC_MISMATCH, Owner.PRODUCT, "contract-broken", "it defines g. c.json promises f(…)."),
    (_contract("missing_module"), C.SPEC_MISMATCH, Owner.PRODUCT, "contract-broken", "The contract is c.json."),
    ({**_contract("unreadable"), "headline": "the contract cannot be used: c.json: no file"}, C.SPEC_MISMATCH, Owner.PLAN, "contract-broken", "The contract cannot be used: c.json: no file."),
    (_test(error("ModuleNotFoundError", "", TEST, bases="ImportError", name="shop.rsi"), contract_path="contracts/rsi.json"), C.ARTIFACT_MISSING, Owner.PRODUCT, "own-module-missing", "contracts/rsi.json describes it"),
    (_test(error("KeyError", "x", TEST, PRODUCT), confirmations=(GREEN,) * 3), C.FLAKY_TEST, Owner.PRODUCT, "both-answers", "passed 3 of 3 times"),
    (_test(error("FileNotFoundError", "", TEST, bases="OSError", path="data/a.txt", nearest=("tests/data/a.txt",))), C.TEST_REGRESSION, Owner.TEST, "other-working-folder", "data/a.txt, which test_a (tests/test_a.py:3) reads, is tests/data/a.txt: the test depends on the folder in which it runs. Let it find the file from its own path, or verify it by a plan whose root is tests."),
    (_test(error("MemoryError", "", PRODUCT)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "system-refuses", "Memory ran out in total (shop/cart.py:3)"),
    (_test(error("MemoryError", "", PRODUCT), confirmations=AGAIN[1:]), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "system-refuses", "Memory ran out"),
    (_test(error("MemoryError", "", PRODUCT), confirmations=(*AGAIN[1:], GREEN)), C.FLAKY_TEST, Owner.PRODUCT, "both-answers", "passed 1 of 2 times"),
    (_test(error("MemoryError", "", _with_source(PRODUCT, "raise MemoryError")), confirmations=AGAIN), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product", "MemoryError"),
    ({**_contract("unreadable", module_path="m.py"), "headline": "m.py: cannot be read: null bytes"}, C.SPEC_MISMATCH, Owner.PRODUCT, "contract-broken", "m.py: cannot be read: null bytes."),
    ({**_contract("unreadable", module_path="m.py"), "exceptions": (error("SyntaxError", "invalid syntax", path="m.py", line=1),)}, C.COMPILATION_ERROR, Owner.PRODUCT, "source-does-not-parse", "m.py:1 is not valid Python"),
    (_contract("unresolved", function="f"), C.SPEC_MISMATCH, Owner.UNKNOWN, "contract-unresolved", "does not satisfy"),
    ({"kind": "manual", "headline": "ugly"}, C.TEST_REGRESSION, Owner.PRODUCT, "answered-no", "ugly"),
    ({**_selected(("tests/a.py", "missing_file"), ("b.py::c", "missing_id"), nearest=("tests/b.py",)), "headline": "no such file"}, C.TEST_NOT_FOUND, Owner.PLAN, "selection-empty", "tests/a.py: no such file; the nearest existing name is tests/b.py."),
    ({"kind": "selection", "vacuous": "nothing_collected"}, C.TEST_NOT_FOUND, Owner.PLAN, "nothing-checked", "No test of the command ran"),
    ({**_selected(("tests/a.py", "empty")), "vacuous": "all_skipped", "skip_reasons": ("later",)}, C.TEST_NOT_FOUND, Owner.TEST, "all-skipped", "Every test of tests/a.py was skipped: later."),
    ({"kind": "selection"}, C.TEST_NOT_FOUND, Owner.PLAN, "nothing-checked", "do not prove the todo."),
    (_command("lint", found=False), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "tool-not-found", "tool is not installed"),
    (_command("test", exit_code=127), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "tool-not-found", "PATH"),
    (_command("lint"), C.LINT_ERROR, Owner.PRODUCT, "linter-failed", "exit code 1 without output"),
    (_command("type_check", "boom\n"), C.TYPE_ERROR, Owner.PRODUCT, "type-checker-failed", "its last line was: boom"),
    (_command("build", "Traceback (most recent call last):\n  File \"/v/lib/python3.11/site-packages/setuptools/dist.py\", line 2, in f\n    g()\nValueError: no version\nERROR Backend exited\n"), C.COMPILATION_ERROR, Owner.PRODUCT, "build-failed", "exit code 1: ValueError: no version."),
    (_command("test", "assertion failed\nmake: *** [Makefile:2: test] Error 1\n"), C.TEST_REGRESSION, Owner.PRODUCT, "test-command-failed", "its last line was: assertion failed"),
    (_command("test", findings=(NOT_OK,)), C.TEST_REGRESSION, Owner.PRODUCT, "test-command-failed", "of four: failed at test/price.test.js:5"),
    (_command("build", "    sphinx.errors.ExtensionError: Could not import extension copy (exception: No module named 'copy')\n"), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "tool-set-up-wrongly", "Could not import extension copy"),
    (_command("validate", "refused"), C.SPEC_MISMATCH, Owner.PRODUCT, "validation-failed", "tool x"),
    (_command("other", "refused"), C.TEST_REGRESSION, Owner.UNKNOWN, "command-failed", "tool x"),
    (_command("other"), C.UNKNOWN, Owner.UNKNOWN, "unknown", "No rule matches"),
    (_command("validate", "make: *** [Makefile:2: check] Error 7"), C.UNKNOWN, Owner.UNKNOWN, "unknown", "No rule matches"),
    (_command("build", findings=({"message": "mismatched types", "code": "E0308", "path": "src/a.rs", "line": 4},)), C.COMPILATION_ERROR, Owner.PRODUCT, "compiler-complained", "src/a.rs:4"),
    (_command("type_check", findings=({"message": "expected ;", "code": "TS1005"}, {"message": "x"})), C.COMPILATION_ERROR, Owner.PRODUCT, "tool-found-syntax-error", "expected ;"),
    (_command("lint", findings=({"message": "w", "severity": "warning"}, {"message": "e", "code": "X1", "severity": "error"})), C.LINT_ERROR, Owner.PRODUCT, "linter-complained", "e [X1]"),
    (_command("other", "Traceback (most recent call last):\n  File \"docs/conf.py\", line 2, in f\n    g()\nModuleNotFoundError: No module named 'shop.money'\n"), C.ARTIFACT_MISSING, Owner.PRODUCT, "own-module-missing", "was not found (imported by f (docs/conf.py:2)): write it, or correct its name or the search path."),
    (_test(process={"exit_code": 3}, stderr_tail=INTERNAL_ERROR), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "raised-outside-project", "'TestReport' object has no attribute 'node'"),
    (_test(process={"exit_code": 3}, stderr_tail=INTERNAL_ERROR.replace("/v/lib/python3.11/site-packages/pytest_cluster", "tests/conftest")), C.TEST_REGRESSION, Owner.TEST, "raised-in-test-alone", "pytest_runtest_logreport (tests/conftest.py:6) itself raises"),
    (_command("lint", findings=({"message": "a"}, {"message": "b"})), C.LINT_ERROR, Owner.PRODUCT, "linter-complained", "It has 1 more complaint."),
    ({**_command("build"), "process": {"timed_out": True}, "limit_seconds": 5}, C.TEST_TIMEOUT, Owner.PRODUCT, "limit-passed", "tool x exceeded its limit of 5 s"),
    ({**_command("build"), "process": {"timed_out": True}, "limit_seconds": 5, "duration_seconds": 4.9}, C.TEST_TIMEOUT, Owner.PRODUCT, "limit-passed", "tool x exceeded its limit of 5 s."),
    (_test(timed_out=True, limit_seconds=2, duration_seconds=2.5), C.TEST_TIMEOUT, Owner.PRODUCT, "limit-passed", "its limit of 2 s after 2.5 s"),
    (_test(error("Failed", "Timeout (>1s)", TEST), timed_out=True), C.TEST_TIMEOUT, Owner.TEST, "limit-passed", "test_a (tests/test_a.py:3)"),
    (_test(error("Failed", "Timeout (>1.5s) from pytest-timeout.", TEST), timed_out=True, limit_seconds=90), C.TEST_TIMEOUT, Owner.TEST, "limit-passed", "its limit of 1.5 s."),
    (_test(timed_out=True, limit_seconds=0.5, changed=()), C.TEST_TIMEOUT, Owner.PLAN, "limit-passed", "start: the limit in the plan is too short"),
    (_test(error("Failed", "Timeout (>2.0s)", TEST), timed_out=True, limit_seconds=2, changed=()), C.TEST_TIMEOUT, Owner.PLAN, "limit-passed", "nothing was changed: the limit in the plan is too short"),
    (_test(swallowed_timeout=True, limit_seconds=2, duration_seconds=2.01, changed=()), C.TEST_TIMEOUT, Owner.PLAN, "limit-passed", "of 2 s after 2.0 s, and nothing"),
    (_test(timed_out=True, limit_seconds=0.5), C.TEST_TIMEOUT, Owner.PRODUCT, "limit-passed", "its limit of 0.5 s"),
    (_test(swallowed_timeout=True, limit_seconds=1), C.TEST_TIMEOUT, Owner.PRODUCT, "limit-passed", "catches the timeout"),
    (_session(exit_code=None, process={"signal": "SIGABRT"}), C.TEST_CRASH, Owner.PRODUCT, "killed", "SIGABRT"),
    (_session(process={"signal": "SIGINT"}), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "interrupted", "interrupted"),
    (_session(process={"signal": "SIGTERM"}), C.TEST_CRASH, Owner.PRODUCT, "killed", "SIGTERM"),
    (_session(exceptions=(error("KeyboardInterrupt", "", bases="BaseException"),)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "interrupted", "again"),
    (_session(exceptions=(error("KeyboardInterrupt", "", TEST, bases="BaseException"),), confirmations=AGAIN), C.TEST_CRASH, Owner.TEST, "session-ended-by-project", "KeyboardInterrupt"),
    (_session(process={"signal": "SIGHUP"}, confirmations=AGAIN[:1]), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "interrupted", "interrupted"),
    ({**_command("build"), "process": {"signal": "SIGINT"}, "confirmations": AGAIN}, C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "interrupted", "interrupted"),
    (_test(error("KeyboardInterrupt", "", TEST, bases="BaseException"), process={"exit_code": 2}), C.TEST_CRASH, Owner.TEST, "session-ended-by-project", "ended the whole session"),
    (_test(error("SystemExit", "1", TEST, bases="BaseException"), phase="setup"), C.TEST_CRASH, Owner.TEST, "session-ended-by-project", "ends the program"),
    (_test(error("SystemExit", "1", TEST, PRODUCT, bases="BaseException")), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product", "SystemExit"),
    (_session(exceptions=(error("KeyError", "x", OURS),)), C.HARNESS_ERROR, Owner.HARNESS, "own-internal-error", "not at fault"),
    (_session(exceptions=(error("KeyError", "x", TEST, OURS),)), C.HARNESS_ERROR, Owner.HARNESS, "own-internal-error", "write"),
    (_session(exceptions=(error("_pytest.outcomes.Exit", "stop", TEST),)), C.TEST_CRASH, Owner.TEST, "session-ended-by-project", "Exit(stop)"),
    (_session("python3: No module named pytest"), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "pytest-not-installed", "does not have pytest"),
    (_session(exit_code=3), C.TEST_CRASH, Owner.PRODUCT, "process-left-early", "ended with exit code 3"),
    (_session_error("", 3), C.HARNESS_ERROR, Owner.HARNESS, "unexplained-internal-error", "internal error"),
    ({**_session_error("", 4), "headline": "bad ini"}, C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "usage-error", "bad ini"),
    (_session("x: error: unrecognized arguments: -n2 --zzz=/a/b", 4), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "option-of-absent-plugin", "know -n2, --zzz of the command or of addopts: install pytest-xdist"),
    (_session("x: error: unrecognized arguments: --zzz", 4), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "option-of-absent-plugin", "or remove it"),
    (_session("pytest.PytestConfigWarning: Unknown config option: asyncio_mode", 3), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "option-of-absent-plugin", "install pytest-asyncio"),
    (_test(error("ImportError", "libx.so.1: cannot open shared object file: no", PRODUCT)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "native-library-missing", "libx.so.1"),
    (_test(error("ModuleNotFoundError", "No module named '_sqlite3'", PRODUCT, bases="ImportError", name="_sqlite3")), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "native-library-missing", "_sqlite3"),
    (_test(error("ModuleNotFoundError", "No module named 'imp'", PRODUCT, bases="ImportError", name="distutils")), C.IMPORT_ERROR, Owner.PRODUCT, "dependency-missing", "distutils"),
    (_test(error("ModuleNotFoundError", "", TEST, bases="ImportError", name="shopp")), C.IMPORT_ERROR, Owner.ENVIRONMENT, "dependency-missing", "did you mean shop?"),
    (_test(error("ModuleNotFoundError", "", PRODUCT, bases="ImportError", name="lib.gone")), C.IMPORT_ERROR, Owner.PRODUCT, "dependency-missing", "lib has no such module"),
    (_test(error("ModuleNotFoundError", "", TEST, bases="ImportError", name="helpers"), test_packages=("helpers",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "tests-not-importable", "helpers"),
    (_test(error("ImportError", "cannot import name 'x' from 'tests' (/v/site-packages/tests/__init__.py)", TEST, name="tests", path="/v/site-packages/tests/__init__.py"), test_packages=("tests",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "tests-not-importable", "another package"),
    (_test(error("ImportError", "cannot import name 'x' from 'tests.a'", TEST, name="tests.a", path="tests/a.py"), test_packages=("tests",)), C.TEST_REGRESSION, Owner.TEST, "helper-of-tests-missing", "has no x"),
    (_test(error("AttributeError", "partially initialized module 'shop.a' has no attribute 'x' (most likely due to a circular import)", PRODUCT)), C.TEST_REGRESSION, Owner.PRODUCT, "circular-import", "shop.a"),
    (_test(error("SyntaxError", "invalid", path="/v/site-packages/x.py", line=1, object_side=Side.THIRD_PARTY)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "dependency-does-not-parse", "x.py"),
    (_test(error("SyntaxError", "invalid", path="shop/a.py", line=1)), C.COMPILATION_ERROR, Owner.PRODUCT, "source-does-not-parse", "shop/a.py:1"),
    (_test(error("PermissionError", "[Errno 13]", PRODUCT, bases="OSError", errno=13, path="/etc/x")), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "system-refuses", "/etc/x"),
    (_test(error("OSError", "[Errno 24]", PRODUCT, bases="OSError", errno=24)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "system-refuses", "is exhausted"),
    (_test(error("redis.exceptions.ConnectionError", "no", PRODUCT, LIBRARY), phase="setup"), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "client-gave-up", "Redis"),
    ({**_test(error("ValueError", "odd", frame("/v/site-packages/lib/__init__.py", "<module>", side=Side.THIRD_PARTY))), "kind": "collection", "phase": "collect"}, C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "dependency-fails-at-import", "version"),
    (_test(error("TimeoutError", "", _with_source(PRODUCT, "raise TimeoutError"), bases="OSError")), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product", "TimeoutError"),
    (_test(error("AttributeError", "<module 'shop.a' from '/x'> does not have the attribute 'b'", TEST, LIBRARY)), C.SPEC_MISMATCH, Owner.PRODUCT, "promised-attribute-missing", "shop.a has no b"),
    (_test(error("TypeError", "label() missing 1 required positional argument: 'unit'", PRODUCT)), C.TYPE_ERROR, Owner.PRODUCT, "wrong-kind-inside-product", "makes a call that does not fit"),
    (_test(error("TypeError", "period must be int", _with_source(PRODUCT, "raise TypeError(x)"))), C.TYPE_ERROR, Owner.PRODUCT, "wrong-kind-inside-product", "rejects"),
    (_test(error("AttributeError", "'Cart' object has no attribute 'totl'", PRODUCT, name="totl", object_side=Side.PRODUCT)), C.TYPE_ERROR, Owner.PRODUCT, "wrong-kind-inside-product", "uses totl, which its object lacks: add it"),
    (_test(error("ValueError", "No such line.", _with_source(PRODUCT, "raise error"))), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product", "No such line at `raise error`"),
    (_test(headline="contains 2 failed subtests"), C.TEST_REGRESSION, Owner.PRODUCT, "subtests-failed", "2 failed subtests"),
    (_test(error("Failed", "DID NOT WARN. No warnings", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "did-not-raise", "did not warn"),
    (_test(error("AssertionError", f"assert [{'1, ' * 30}2] == [{'1, ' * 30}2, 3]", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "1, 2] where it expects …"),
    (_test(error("AssertionError", f"assert '{'a' * 80}b' == '{'a' * 80}c'", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", f"got …{'a' * 20}b' where it expects …{'a' * 20}c'."),
    (_test(error("AssertionError", "assert (1 == 1 and 2 == 3)", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "test_a (tests/test_a.py:3) fails: AssertionError: assert (1 == 1 and 2 == 3)"),
    (_test(error("AssertionError", "1 != 2", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "got 1 where it expects 2"),
    (_test(error("AssertionError", "assert 1 != 1", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "anything but 1"),
    (_test(error("AssertionError", "a message\nassert 1 != 1", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "anything but 1"),
    (_test(error("AssertionError", "assert None is not None", TEST)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "expects anything but None"),
    (_test(error("AssertionError", "assert 'a' == 'b'", _with_source(TEST, "assert wanted == strip(raw)"))), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "got 'b' where it expects 'a'"),
    (_test(error("AssertionError", "assert 'a' in 'b'", _with_source(TEST, "assert 'a' in out"))), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "got 'b' where it expects one containing 'a'"),
    (_test(error("AssertionError", "assert 3 < 2", TEST), phase="setup"), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test", "expects < 2"),
    ({**_session(), "exceptions": (error("ImportError", 'Error importing plugin "x"', LIBRARY),)}, C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "raised-outside-project", 'plugin "x"'),
    (_test(error("AssertionError", "no lock", LIBRARY), phase="setup"), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "raised-outside-project", "without code of the project"),
    (_test(error("RuntimeError", "wrapped", PRODUCT), error("ConnectionRefusedError", "no", PRODUCT, bases="OSError", errno=111)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "service-unreachable", "could not be reached"),
    (_test(error("pytest_bdd.exceptions.StepDefinitionNotFoundError", 'Step definition is not found: Given "a price"', LIBRARY)), C.TEST_REGRESSION, Owner.TEST, "test-definition-refused", "a price"),
    (_test(), C.UNKNOWN, Owner.UNKNOWN, "unknown", "test_a"),
    (_session_error("usage: x\nx: error: unrecognized arguments: --cov=shop\n  inifile: y", 4), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "option-of-absent-plugin", "pytest-cov"),
    (_session_error("file or directory not found: tests/gone.py", 4), C.TEST_NOT_FOUND, Owner.PLAN, "argument-refused", "tests/gone.py"),
]  # fmt: skip


def _diagnosed(facts: dict[str, Any]) -> Diagnosis:
    return diagnose(Evidence.model_validate(facts))


@pytest.mark.parametrize(
    ("facts", "category", "owner", "rule", "says"),
    TABLE,
    ids=[f"{at}-{row[3]}" for at, row in enumerate(TABLE)],
)
def test_single_facts_get_the_diagnosis_of_the_table(
    facts: dict[str, Any], category: Category, owner: Owner, rule: str, says: str
):
    diagnosis = _diagnosed(facts)
    assert (diagnosis.rule, diagnosis.category, diagnosis.owner) == (rule, category, owner)
    assert says in diagnosis.suggestion
    assert diagnosis.suggestion.count("c.json") <= 1, "a contract is named once"


RUNS: list[tuple[list[tuple[str, bool]], Repeatability, Category]] = [
    ([], Repeatability.UNCONFIRMED, C.TEST_REGRESSION),
    ([("alone", False)], Repeatability.DETERMINISTIC, C.TEST_REGRESSION),
    ([("alone", False), ("company", False)], Repeatability.DETERMINISTIC, C.TEST_REGRESSION),
    ([("alone", True)], Repeatability.FLAKY, C.FLAKY_TEST),
    ([("alone", True), ("alone", False)], Repeatability.FLAKY, C.FLAKY_TEST),
    ([("alone", True), ("company", True)], Repeatability.FLAKY, C.FLAKY_TEST),
    ([("alone", True), ("alone", True), ("company", False)], Repeatability.FLAKY, C.FLAKY_TEST),
    ([("company", True), ("company", False), ("alone", False)], Repeatability.FLAKY, C.FLAKY_TEST),
]


@pytest.mark.parametrize(("runs", "repeatability", "category"), RUNS)
def test_reruns_determine_repeatability(
    runs: list[tuple[str, bool]], repeatability: Repeatability, category: Category
):
    confirmations = tuple({"where": where, "passed": passed} for where, passed in runs)
    facts = _test(error("AssertionError", "assert 1 == 2", TEST), confirmations=confirmations)
    diagnosis = _diagnosed(facts)
    assert (diagnosis.repeatability, diagnosis.category) == (repeatability, category)


def test_raising_frame_is_the_location_and_a_deeper_cause_has_its_own():
    missing = error("ModuleNotFoundError", "", frame("shop/x.py", "f"), bases="ImportError", name="zz")
    deeper = _diagnosed(_test(error("ValueError", "", TEST, PRODUCT), missing))
    assert deeper.location is not None
    assert deeper.location.path == "shop/x.py"
    plain = _diagnosed(_test(error("ValueError", "", TEST, PRODUCT, LIBRARY)))
    assert plain.location == Location(path="shop/cart.py", line=3, function="total")


def test_error_that_a_test_raises_by_hand_is_not_caused_by_what_the_product_returned():
    raises = _with_source(TEST, "raise KeyError(1)")
    subjects = (PRODUCT, frame("shop/net.py", "send"))
    called, alone = (
        _diagnosed({**_test(error("KeyError", "1", *frames, raises)), "subjects": subjects})
        for frames in ((PRODUCT,), ())
    )
    assert called.suggestion == (
        "total (shop/cart.py:3) lets KeyError: 1 pass, which test_a (tests/test_a.py:3) raises."
    )
    assert alone.suggestion == "test_a (tests/test_a.py:3) itself raises KeyError: 1."


@pytest.mark.parametrize("kind", ["ConnectionResetError", "TimeoutError"])
def test_service_that_the_test_itself_runs_is_no_part_of_the_environment(kind: str):
    silent = error(
        kind,
        "",
        TEST,
        frame("/lib/http/client.py", "read", side=Side.STDLIB),
        bases="ConnectionError OSError",
    )
    calls = (
        '  File "tests/test_a.py", line 9, in handle\n    pay()\n  File "shop/cart.py", line 3, in total\n'
    )
    printed = f"Traceback (most recent call last):\n{calls}KeyError: 'tax'\n"
    served = _diagnosed(_test(silent, stderr_tail=printed))

    assert (served.category, served.owner) == (C.TEST_REGRESSION, Owner.PRODUCT)
    assert served.location == Location(path="shop/cart.py", line=3, function="total")
    assert _diagnosed(_test(silent, stderr_tail="no answer\n")).category is C.ENVIRONMENT_ERROR


def test_diagnosis_of_printed_output_is_less_confident():
    last = "ModuleNotFoundError: No module named 'zz'\n"
    text = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{last}'
    printed = _diagnosed(_command("validate", text))
    assert printed.rule == "dependency-missing"
    missing = error("ModuleNotFoundError", "", frame("a.py", "f"), bases="ImportError", name="zz")
    assert printed.confidence < _diagnosed(_test(missing)).confidence


def test_paths_of_libraries_are_searched_in_bounded_time():
    found = _diagnosed(_test(error("ImportError", "/x" + "/lib.so" * 2_000, PRODUCT)))
    assert found.rule != "native-library-missing"


def test_a_cut_list_of_differences_ends_visibly_in_a_suggestion():
    why = f"it lacks a; {'it lacks b; ' * 10}\n… 25 characters cut …\n{'it lacks c; ' * 20}it lacks d"
    seen = _contract("signature", function="f", module_path="m.py", line=2, why=why)
    assert "cut …" in _diagnosed(seen).suggestion
    assert "…. The contract is c.json." in _diagnosed(seen).suggestion


def test_a_long_suggestion_is_clipped():
    assert len(_diagnosed(_selected(("a.py", "missing_file"), nearest=("x" * 2000,))).suggestion) == 600
