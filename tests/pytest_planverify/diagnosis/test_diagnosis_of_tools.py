"""Category, owner and place of a failure by the output of tools, as a table."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import parse_command
from planner.catalog.output import read_findings
from planner.model.evidence import (
    ChangedFile,
    CommandFact,
    Evidence,
    ExceptionFact,
    Hunk,
    ProcessEnd,
)
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.case import own_names, within_project
from pytest_planverify.diagnosis.known import literal_in
from pytest_planverify.diagnosis.tool_output import read_stuck_frame, read_traceback


def changed_file(path: str) -> ChangedFile:
    side = Side.TEST if path.startswith("tests/") else Side.PRODUCT
    return ChangedFile(path=path, side=side if path.endswith(".py") else None)


def evidence_of(cmd: str, output: str, changed: Sequence[str] = ("kite/wind.py",), **_: object) -> Evidence:
    """Return evidence of a failed command with its output and the changed files."""
    command = parse_command(cmd)
    return Evidence(
        kind=EvidenceKind.COMMAND,
        changed=tuple(map(changed_file, changed)),
        process=ProcessEnd(exit_code=1, complete=True),
        command=CommandFact(
            argv=command.argv,
            tool=command.tool.name,
            purpose=command.tool.purpose.value,
            output_tail=output,
            findings=read_findings(command.tool, output, ""),
        ),
    )


TESTS = ("tests/test_wind.py",)
_ROWS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[3] / "fixtures/diagnosed_output.yaml").read_text(encoding="utf-8")
)
OUTPUTS = {row["name"]: row for row in _ROWS}


@pytest.mark.parametrize("row", OUTPUTS.values(), ids=OUTPUTS)
def test_tool_output_decides_the_diagnosis(row: dict[str, Any]):
    found = diagnose(evidence_of(**row))
    assert (found.category.value, found.owner.value) == (row["category"], row["owner"]), found.rule
    if "place" in row:
        assert found.location is not None
        assert f"{found.location.path}:{found.location.line}" == row["place"]


ABSENT = {
    "shellcheck kite.sh": "kite.sh: kite.sh: openBinaryFile: does not exist (No such file or directory)",
    "shfmt -d kite.sh": "lstat kite.sh: no such file or directory",
    "vulture kites": "Error: kites could not be found.",
    "rstcheck kites.rst": "WARNING:rstcheck_core.runner:Path does not exist or is not a file: 'kites.rst'.",
    "typos kites": "argument `kites` is not found",
    "sqlfluff lint kites": "User Error: Specified path does not exist. Check it/they exist(s): kites.",
    "just fly": "error: justfile does not contain recipe `fly`",
    "task fly": 'task: Task "fly" does not exist',
    "pre-commit run fly": "No hook with id `fly` in stage `pre-commit`",
    "python -m build kites": "ERROR Source kites is not a directory",
    "npm run fly:high": 'npm error Missing script: "fly:high"',
    "cc kite.c": "cc: error: kite.c: No such file or directory",
}


@pytest.mark.parametrize(("cmd", "output"), ABSENT.items(), ids=ABSENT)
def test_a_word_of_the_command_that_a_tool_does_not_find_is_a_fault_of_the_plan(cmd: str, output: str):
    found = diagnose(evidence_of(cmd, output))
    assert (found.category, found.rule) == (Category.TEST_NOT_FOUND, "command-asks-for-nothing")
    assert f" {cmd.split()[-1]}, which" in (found.suggestion or "")


def test_a_command_that_a_checker_refuses_is_a_fault_of_the_plan():
    usage = "usage: mypy [-h] [-v]\n            [files ...]\nmypy: error: Missing target module or files.\n"
    hunk = Hunk(path="notes.txt", line=1, added=1, text="+x")
    evidence = evidence_of("mypy", usage).model_copy(update={"hunks": (hunk,)})
    found = diagnose(evidence)
    assert (found.rule, found.owner, found.location) == ("command-asks-for-nothing", Owner.PLAN, None)
    assert found.candidates == (), "no change is at fault if the plan is"
    assert found.suggestion == "mypy refuses the plan's command: Missing target module or files."


@pytest.mark.parametrize(
    ("cmd", "output"),
    [
        ("npm run build", "Error: ENOENT: no such file or directory, open '/app/build'"),
        ("make build", "cd: build: No such file or directory\nmake: *** [Makefile:3: build] Error 1"),
        ("python manage.py test shop", "django.db.utils.OperationalError: no such table: shop"),
        ("python -m unittest tests.test_cart", "KeyError: 'no such user: test_cart'"),
        ("go test ./store", "--- FAIL: TestStore (0.00s)\npanic: store does not exist"),
        ("python shop.py data.csv", "FileNotFoundError: [Errno 2] No such file or directory: '/a.csv'"),
        ("make kite.h", "main.c:3:10: fatal error: kite.h: No such file or directory"),
    ],
)
def test_what_code_of_the_project_does_not_find_is_no_fault_of_the_command(cmd: str, output: str):
    assert diagnose(evidence_of(cmd, output)).category is not Category.TEST_NOT_FOUND


NOT_FOUND = """bash: kite: command not found
FAILED tests/test_wind.py::test_gust - assert 127 == 0
make: *** [Makefile:2: test] Error 1"""


@pytest.mark.parametrize(
    ("cmd", "output"),
    [
        *(
            (cmd, "Invalid value for price: -1\nFAILED")
            for cmd in ("make test", "npm test", "go test ./...")
        ),
        ("python manage.py test", "invalid config: no port\nFAILED"),
        ("make test", NOT_FOUND),
    ],
)
def test_what_code_of_the_project_refuses_or_does_not_run_is_no_fault_of_the_set_up(cmd: str, output: str):
    assert diagnose(evidence_of(cmd, output)).category is Category.TEST_REGRESSION


@pytest.mark.parametrize(
    ("cmd", "output", "rule"),
    [
        ("mvn compile", "[ERROR] /w/src/A.java:[3,4] cannot find symbol", "compiler-complained"),
        ("bun build a.ts", 'error: Could not resolve: "x"\n    at /w/a.ts:1:5', "compiler-complained"),
        # The output is that of both streams, one after the other.
        ("tox", "py: exit 127 (0.01 seconds)\npyenv: kite: command not found", "tool-missing-in-command"),
    ],
    ids=["builder of Java", "builder of TypeScript", "shim after the exit status"],
)
def test_complaint_of_what_a_command_runs_is_found_in_its_output(cmd: str, output: str, rule: str):
    assert diagnose(evidence_of(cmd, output)).rule == rule


_ABSENT = "py99: {} could not find python interpreter matching any of the specs py99\n"


@pytest.mark.parametrize(
    ("cmd", "output", "category"),
    [
        (
            "tox",
            f"{_ABSENT.format('failed with')}  py99: FAIL code 1 (0.1 seconds)",
            Category.ENVIRONMENT_ERROR,
        ),
        (
            "tox",
            f"{_ABSENT.format('skipped because')}  py99: SKIP (0.1 seconds)",
            Category.ENVIRONMENT_ERROR,
        ),
        (
            "tox",
            f"{_ABSENT.format('skipped because')}  py: FAIL code 1 (1 seconds)",
            Category.TEST_REGRESSION,
        ),
        (
            "nox",
            "nox > Session a-3.9 failed: Python interpreter 3.9 not found.",
            Category.ENVIRONMENT_ERROR,
        ),
    ],
)
def test_interpreter_that_a_runner_does_not_find_is_missing_in_the_environment(
    cmd: str, output: str, category: Category
):
    assert diagnose(evidence_of(cmd, output)).category is category


def test_tool_output_before_a_timeout_is_not_the_cause():
    evidence = evidence_of(**OUTPUTS["mypy-of-a-changed-test"])
    assert diagnose(evidence.model_copy(update={"timed_out": True})).category is Category.TEST_TIMEOUT


def parsed(text: str, first_party: frozenset[str] = frozenset()) -> ExceptionFact:
    """Return the exception that a text shows."""
    error = read_traceback(text, first_party)
    assert error is not None
    return error


def test_pytest_report_is_parsed_like_a_traceback():
    error = parsed(
        "=== ERRORS ===\n____ ERROR collecting tests/test_wind.py ____\ntests/test_wind.py:5: in <module>\n"
        "    from kite.rope import length\nkite/rope.py:3: in <module>\n    import requestz\n"
        "E   ModuleNotFoundError: No module named 'requestz'\n"
    )
    assert (error.type, error.name) == ("ModuleNotFoundError", "requestz")
    assert [(frame.path, frame.line) for frame in error.frames] == [
        ("tests/test_wind.py", 5),
        ("kite/rope.py", 3),
    ]


def test_pytest_report_names_the_file_with_the_syntax_error():
    error = parsed(
        '____ ERROR collecting tests/test_wind.py ____\nE     File "/p/kite/wind.py", line 6\n'
        "E       return round(1\nE   SyntaxError: '(' was never closed\n"
    )
    assert (error.path, error.line) == ("/p/kite/wind.py", 6)


def test_first_party_names_default_to_those_of_changed_files():
    evidence = evidence_of("make x", "", changed=("src/kite/a.py", "run.py", "a.md", *TESTS))
    assert own_names(evidence) == {"kite", "run"}
    assert own_names(evidence.model_copy(update={"first_party": ("shop",)})) == {"shop"}


def test_printed_path_is_made_relative_to_the_root():
    evidence = evidence_of("make x", 'File "/p/kite/wind.py", line 1')
    paths = {"/p/kite/wind.py": "kite/wind.py", "/usr/a.py": "/usr/a.py", "./a.py": "a.py"}
    assert {path: within_project(path, evidence) for path in paths} == paths


TRACEBACK = """noise
Traceback (most recent call last):
  File "/usr/lib/python3.12/runpy.py", line 198, in _run_module_as_main
    return _run_code(code)
  File "/p/site-packages/requests/api.py", line 1, in get
  File "/p/site-packages/shop/api.py", line 1, in get
  File "/p/site-packages/_pytest/x.py", line 1, in get
  File "/p/tests/test_a.py", line 3, in test_a
    f()
    ^^^
  File "/p/shop/cart.py", line 31, in Cart.total
    raise E
shop.errors.CartError: bad: cart
more noise
"""
STACK = """Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File "/p/shop/other.py", line 9 in wait

Current thread 0x00007f02 (most recent call first):
  File "/p/shop/cart.py", line 3 in crash
  File "/p/test_a.py", line 4 in test_a
  ...

Extension modules: numpy (total: 1)
"""


def test_traceback_is_parsed_into_frames_and_exception():
    error = parsed(TRACEBACK, frozenset({"shop"}))
    named = (error.type, error.qualified, error.message)
    assert named == ("CartError", "shop.errors.CartError", "bad: cart")
    sides = ["stdlib", "third_party", "product", "framework", "test", "product"]
    assert [frame.side.value for frame in error.frames] == sides
    last = error.frames[-1]
    assert (last.line, last.function, last.source) == (31, "Cart.total", "raise E")


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("ModuleNotFoundError: No module named 'x.y'", {"name": "x.y"}),
        ("ImportError: cannot import name 'a' from 'b.c' (/p/b/c.py)", {"name": "b.c"}),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x.txt'", {"errno": 2, "path": "x.txt"}),
        ("OSError: [Errno 28] No space left on device", {"errno": 28, "path": None}),
        (
            "AttributeError: 'NoneType' object has no attribute 'a'",
            {"name": "a", "object_type": "builtins.NoneType"},
        ),
        ("AttributeError: module 'shop.cart' has no attribute 'a'", {"object_side": Side.PRODUCT}),
        ("AttributeError: module 'numpy' has no attribute 'a'", {"object_side": Side.THIRD_PARTY}),
        (
            "AttributeError: 'Cart' object has no attribute 'a'",
            {"object_type": "Cart", "object_side": None},
        ),
        ("KeyboardInterrupt", {"message": "", "bases": ("builtins.BaseException",)}),
    ],
)
def test_details_of_the_last_traceback_line_are_kept(last: str, expected: dict[str, object]):
    text = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{last}\n'
    error = parsed(text, frozenset({"shop"}))
    assert {key: getattr(error, key) for key in expected} == expected


def test_last_of_several_tracebacks_counts():
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\nDuring…\n\n'
    assert parsed(text.replace("KeyError: 1", "ValueError: 2") + text + TRACEBACK).type == "CartError"


@pytest.mark.parametrize("path", ["shop/a.py", "./shop/a.py"])
def test_syntax_error_without_a_header_is_parsed(path: str):
    error = parsed(f'  File "{path}", line 7\n    def (\n        ^\nSyntaxError: invalid syntax\n')
    assert (error.type, error.path, error.line) == ("SyntaxError", "shop/a.py", 7)
    assert error.object_side is Side.PRODUCT


def test_truncated_internal_error_is_parsed():
    lines = ('  File "/p/conftest.py", line 2, in hook', "    raise", "ValueError: no")
    error = parsed("".join(f"INTERNALERROR> {line}\n" for line in lines))
    assert error.frames[0].side is Side.TEST


WAITS = """Current thread 0x1 (most recent call first):
  File "/p/tests/test_a.py", line 4 in test_a

Thread 0x2 (most recent call first):
  File "/p/shop/other.py", line 9 in work
  File "/p/shop/other.py", line 2 in run
"""


OF_THE_VERIFIER = """Current thread 0x1 (most recent call first):
  File "/p/tests/test_a.py", line 4 in test_a
  File "/v/site-packages/pytest_planverify/observe/worker.py", line 5 in run
  File "/p/plan_runner.py", line 1 in main
"""


@pytest.mark.parametrize(
    ("text", "function"),
    [
        (STACK, "crash"),
        (OF_THE_VERIFIER, "test_a"),
        (WAITS, "work"),
        (WAITS.partition("\n\n")[0], "test_a"),
        ('  File "/p/a.py", line 1 in f\n', "f"),
        ('  File "/usr/lib/python3.11/a.py", line 1 in f\n', None),
        ("nothing", None),
    ],
    ids=[
        "current thread",
        "thread with the verifier",
        "thread of the product",
        "test",
        "no header",
        "no project",
        "no stack",
    ],
)
def test_stuck_frame_is_the_innermost_one_of_the_product(text: str, function: str | None):
    found = read_stuck_frame(text)
    assert (found and found.function) == function


@given(st.text())
def test_traceback_parser_accepts_any_text(text: str):
    for prefix in (
        "",
        "Traceback (most recent call last):\n",
        'Traceback (most recent call last):\n  File "a", line 1, in f\n',
    ):
        error = read_traceback(prefix + text)
        assert error is None or error.qualified
        read_stuck_frame(prefix + text)


@pytest.mark.parametrize(
    "text",
    [
        "\nE  nothing",
        "____ a ____\nE  \n",
        "____ a ____\nE   assert 1 == 2\n",
        '  File "a.py", line 7\n    def (\nValueError: no\n',
    ],
)
def test_text_without_an_exception_is_not_parsed(text: str):
    assert read_traceback(text) is None


@pytest.mark.parametrize(
    "text",
    [
        'Traceback (most recent call last):\n  File "a.py", line 9, in f\nOSError: [Errno {}] x',
        'Traceback (most recent call last):\n  File "a.py", line {}, in f\nOSError: x',
        '  File "a.py", line {}\n    def (\nSyntaxError: no',
        "____ a ____\na.py:{}: in f\nE   ValueError: x",
        "TypeError: x\n    at f (a.js:{}:1)",
    ],
)
def test_printed_number_of_any_length_is_diagnosed(text: str):
    assert diagnose(evidence_of("make", text.format("9" * 5_000))).suggestion


@pytest.mark.parametrize(
    "text", ["Error: {}x", "TypeError: x\n{}x", "error: unrecognized arguments: {}x", "{}x", "/{}"]
)
def test_printed_blanks_are_read_in_linear_time(text: str):
    printed = text.format(" " * 20_000) if text != "/{}" else "/" * 20_000
    started = time.process_time()
    diagnose(evidence_of("make", printed))
    diagnose(Evidence(kind=EvidenceKind.SESSION, stdout_tail=printed, process=ProcessEnd(exit_code=4)))
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"(?:.*: )?no such option: (\S+)", "no such option: "),
        (r".*: error: unrecognized arguments?: (\S+)", ": error: unrecognized argument"),
        (r"\[Errno 2\] No [Ff]ile+", "[Errno 2] No "),
        ("one|another", ""),
        ("(?:one|another)", ""),
    ],
)
def test_longest_literal_of_a_pattern_is_outside_of_groups(pattern: str, literal: str):
    assert literal_in(pattern) == literal
