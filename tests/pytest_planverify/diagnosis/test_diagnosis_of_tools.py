"""Category, owner and place of a failure by the output of tools, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import parse_command
from planner.catalog.output import read_findings
from planner.model.evidence import ChangedFile, CommandFact, Evidence, ProcessEnd
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.case import own_names, within_project
from pytest_planverify.diagnosis.tool_output import read_stack, read_traceback

if TYPE_CHECKING:
    from planner.model.outcome import Diagnosis


C, W = Category, Owner


class Row(NamedTuple):
    """A command with its output and the changed files, and the expected diagnosis."""

    cmd: str
    output: str
    category: Category
    owner: Owner
    place: tuple[str, int | None] | None = None
    changed: tuple[str, ...] = ("kite/wind.py",)
    exit_code: int = 1


def asks_for_nothing(cmd: str, output: str, *, exit_code: int = 1) -> Row:
    """Return a row whose command names something that does not exist."""
    return Row(cmd, output, C.TEST_NOT_FOUND, W.PLAN, exit_code=exit_code)


def of_the_environment(cmd: str, output: str) -> Row:
    return Row(cmd, output, C.ENVIRONMENT_ERROR, W.ENVIRONMENT)


def evidence_of(row: Row) -> Evidence:
    command = parse_command(row.cmd)
    sides = {".py": lambda path: Side.TEST if path.startswith("tests/") else Side.PRODUCT}
    changed = tuple(
        ChangedFile(path=path, side=sides[".py"](path) if path.endswith(".py") else None)
        for path in row.changed
    )
    return Evidence(
        kind=EvidenceKind.COMMAND,
        changed=changed,
        process=ProcessEnd(exit_code=row.exit_code, complete=True),
        command=CommandFact(
            argv=command.argv,
            tool=command.tool.name,
            purpose=command.tool.purpose.value,
            output_tail=row.output,
            findings=read_findings(command.tool, row.output, ""),
        ),
    )


def diagnosed(row: Row) -> Diagnosis:
    return diagnose(evidence_of(row))


NBSP = "\u00a0"
TESTS = ("tests/test_wind.py",)
NONE: tuple[str, ...] = ()

COMPLAINTS = {
    "mypy-type": Row(
        "mypy kite",
        'kite/wind.py:6: error: Incompatible return value type (got "str")  [return-value]',
        C.TYPE_ERROR,
        W.PRODUCT,
        ("kite/wind.py", 6),
    ),
    "mypy-own-module": Row(
        "mypy kite",
        'kite/rope.py:3: error: Cannot find implementation or library stub for module named "kite.wind"  '
        "[import-not-found]\nkite/rope.py:8: error: Returning Any  [no-any-return]",
        C.ARTIFACT_MISSING,
        W.PRODUCT,
        ("kite/rope.py", 3),
    ),
    "mypy-package": Row(
        "mypy kite",
        'kite/wind.py:3: error: Cannot find implementation or library stub for module named "requestz"  '
        "[import-not-found]",
        C.IMPORT_ERROR,
        W.PRODUCT,
        ("kite/wind.py", 3),
    ),
    "mypy-of-a-changed-test": Row(
        "mypy kite tests",
        'tests/test_wind.py:6: error: Module "kite.wind" has no attribute "name"  [attr-defined]',
        C.TYPE_ERROR,
        W.TEST,
        ("tests/test_wind.py", 6),
        TESTS,
    ),
    "pyright-over-two-lines": Row(
        "make typecheck",
        f"pyright kite\n/p/kite/wind.py\n  /p/kite/wind.py:6:12 - error: Type is not assignable\n"
        f'  {NBSP}{NBSP}"Literal" is not assignable to "float" (reportReturnType)\n'
        "make: *** [Makefile:18: typecheck] Error 1",
        C.TYPE_ERROR,
        W.PRODUCT,
        ("kite/wind.py", 6),
    ),
    "black-cannot-parse": Row(
        "black --check kite",
        "error: cannot parse: kite/wind.py:9:0\nParseError: bad input",
        C.COMPILATION_ERROR,
        W.PRODUCT,
        ("kite/wind.py", 9),
        exit_code=123,
    ),
    "black-under-make": Row(
        "make format",
        "black --check\nwould reformat /p/tests/test_wind.py\nmake: *** [Makefile:10: format] Error 1",
        C.LINT_ERROR,
        W.TEST,
        ("tests/test_wind.py", None),
        TESTS,
    ),
    "eslint-under-npm": Row(
        "npm run lint",
        "\n/p/lib/bulb.js\n  3:7  error  'zz' is assigned a value but never used  no-unused-vars\n",
        C.LINT_ERROR,
        W.PRODUCT,
        ("lib/bulb.js", 3),
        ("lib/bulb.js",),
    ),
    "tsc-own-file": Row(
        "tsc -p .",
        "src/lamp.ts(1,21): error TS2307: Cannot find module './wire' or its types.",
        C.ARTIFACT_MISSING,
        W.PRODUCT,
        ("src/lamp.ts", 1),
        ("src/wire.ts",),
    ),
    "gcc-warning-as-error": Row(
        "make all",
        "src/sum.c:4:9: error: unused variable 'z' [-Werror=unused-variable]",
        C.LINT_ERROR,
        W.PRODUCT,
        ("src/sum.c", 4),
        ("src/sum.c",),
    ),
    "clippy-does-not-parse": Row(
        "cargo clippy",
        "error: this file contains an unclosed delimiter\n --> tests/outer.rs:5:3\n",
        C.COMPILATION_ERROR,
        W.TEST,
        ("tests/outer.rs", 5),
        ("tests/outer.rs",),
        101,
    ),
    "cargo-module-gone": Row(
        "cargo build",
        "error[E0583]: file not found for module `leaf`\n --> src/lib.rs:1:1\n",
        C.ARTIFACT_MISSING,
        W.PRODUCT,
        ("src/lib.rs", 1),
        ("src/leaf.rs",),
        101,
    ),
}

NOT_LOOKED_AT = {
    "mypy": asks_for_nothing(
        "mypy kites", "mypy: can't read\nkites: error: Cannot read file: No such file"
    ),
    "ruff": asks_for_nothing("ruff check kites", "kites:1:1: E902 No such file or directory (os error 2)"),
    "ruff-gone": Row(
        "ruff check kite/wind.py",
        "kite/wind.py:1:1: E902 No such file or directory",
        C.ARTIFACT_MISSING,
        W.PRODUCT,
    ),
    "isort": asks_for_nothing("isort --check kites", "Broken 1 paths"),
    "python": asks_for_nothing(
        "python check.py",
        "/usr/bin/python: can't open file '/p/check.py': [Errno 2] No such file or directory",
        exit_code=2,
    ),
    "module-gone": Row(
        "python -m kite",
        "/usr/bin/python: No module named kite.__main__; 'kite' is a package",
        C.ARTIFACT_MISSING,
        W.PRODUCT,
        changed=("kite/__main__.py",),
    ),
    "node": asks_for_nothing("node --test test/a.js", "Could not find '/p/test/a.js'"),
    "mypy-plugin": of_the_environment(
        "mypy kite", "pyproject.toml:1: error: Error importing plugin \"p\": No module named 'p'  [misc]"
    ),
    "tsc-configuration": of_the_environment(
        "tsc -p .", "tsconfig.json(1,21): error TS5023: Unknown compiler option 'stricty'."
    ),
    "flake8-traceback": of_the_environment(
        "flake8 kite",
        'Traceback (most recent call last):\n  File "/v/lib/python3.11/packages/flake8/cli.py", line 2, '
        "in main\n    app.run(argv)\nValueError: bad option",
    ),
}

PROGRAMS = {
    "coverage": Row(
        "coverage report --fail-under=99",
        "TOTAL 7 3 57%\nCoverage failure: total of 57 is less than fail-under=99",
        C.METRIC_UNMET,
        W.PRODUCT,
        exit_code=2,
    ),
    "tox-abort": Row(
        "tox -e unit", "unit: exit -6 (0.1 seconds) /p> python -m unittest", C.TEST_CRASH, W.PRODUCT
    ),
    "shell-tool": of_the_environment("make shell", "scripts/run.sh: 3: nosuch: not found"),
    "node-package": Row(
        "npm test",
        "# Error: Cannot find module 'leftpadz'\n# Require stack:\n# - /p/lib/bulb.js\n"
        "#     at Object.<anonymous> (/p/lib/bulb.js:2:11)\n",
        C.IMPORT_ERROR,
        W.PRODUCT,
        ("lib/bulb.js", 2),
        ("lib/bulb.js",),
    ),
    "node-own-file": Row(
        "mocha spec",
        " Exception during run: Error: Cannot find module '../lib/bulb'\n"
        "    at Object.<anonymous> (/p/spec/bulb.spec.js:3:15)\n",
        C.ARTIFACT_MISSING,
        W.PRODUCT,
        changed=("lib/bulb.js",),
    ),
    "pytest-in-a-child": Row(
        "make test",
        "=== FAILURES ===\n_______ TestWind.test_knots _______\n\n    def test_knots(self):\n"
        ">       self.assertEqual(knotz(1), 1.94)\nE       NameError: name 'knotz' is not defined\n\n"
        "tests/test_wind.py:14: NameError\n=== short test summary info ===\n",
        C.TEST_REGRESSION,
        W.TEST,
        ("tests/test_wind.py", 14),
        TESTS,
    ),
}

ROWS = COMPLAINTS | NOT_LOOKED_AT | PROGRAMS


@pytest.mark.parametrize("name", list(ROWS))
def test_tool_output_decides_the_diagnosis(name: str) -> None:
    row = ROWS[name]
    found = diagnosed(row)
    assert (found.category, found.owner) == (row.category, row.owner), found.rule
    if row.place is not None:
        assert found.location is not None
        assert (found.location.path, found.location.line) == row.place


def test_tool_output_before_a_timeout_is_not_the_cause() -> None:
    evidence = evidence_of(COMPLAINTS["mypy-type"]).model_copy(update={"timed_out": True})
    assert diagnose(evidence).category is C.TEST_TIMEOUT


def test_pytest_report_is_parsed_like_a_traceback() -> None:
    error = read_traceback(
        "=== ERRORS ===\n____ ERROR collecting tests/test_wind.py ____\ntests/test_wind.py:5: in <module>\n"
        "    from kite.rope import length\nkite/rope.py:3: in <module>\n    import requestz\n"
        "E   ModuleNotFoundError: No module named 'requestz'\n"
    )
    assert error is not None
    assert (error.type, error.name) == ("ModuleNotFoundError", "requestz")
    assert [(frame.path, frame.line) for frame in error.frames] == [
        ("tests/test_wind.py", 5),
        ("kite/rope.py", 3),
    ]


def test_pytest_report_names_the_file_with_the_syntax_error() -> None:
    error = read_traceback(
        '____ ERROR collecting tests/test_wind.py ____\nE     File "/p/kite/wind.py", line 6\n'
        "E       return round(1\nE   SyntaxError: '(' was never closed\n"
    )
    assert error is not None
    assert (error.path, error.line) == ("/p/kite/wind.py", 6)


@pytest.mark.parametrize(
    "text", ["", "\nE  nothing", "____ a ____\nE  \n", "____ a ____\nE   assert 1 == 2\n"]
)
def test_other_text_is_not_parsed_as_a_pytest_report(text: str) -> None:
    assert read_traceback(text) is None


def test_first_party_names_default_to_those_of_changed_files() -> None:
    evidence = evidence_of(
        Row("make x", "", C.UNKNOWN, W.UNKNOWN, changed=("src/kite/a.py", "run.py", "a.md", *TESTS))
    )
    assert own_names(evidence) == {"kite", "run"}
    assert own_names(evidence.model_copy(update={"first_party": ("shop",)})) == {"shop"}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/p/kite/wind.py", "kite/wind.py"),
        ("/usr/a.py", "/usr/a.py"),
        ("./a.py", "a.py"),
    ],
)
def test_printed_path_is_made_relative_to_the_root(path: str, shown: str) -> None:
    row = Row("make x", 'File "/p/kite/wind.py", line 1', C.UNKNOWN, W.UNKNOWN)
    assert within_project(path, evidence_of(row)) == shown


# ruff: noqa: E501 (sources and outputs are quoted on one line)


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


def test_traceback_is_parsed_into_frames_and_exception() -> None:
    error = read_traceback(TRACEBACK, frozenset({"shop"}))
    assert error is not None
    assert (error.type, error.qualified, error.message) == (
        "CartError",
        "shop.errors.CartError",
        "bad: cart",
    )
    assert [frame.side for frame in error.frames] == [
        Side.STDLIB, Side.THIRD_PARTY, Side.PRODUCT, Side.FRAMEWORK, Side.TEST, Side.PRODUCT,
    ]  # fmt: skip
    assert (error.frames[-1].line, error.frames[-1].function, error.frames[-1].source) == (
        31,
        "Cart.total",
        "raise E",
    )


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
def test_details_of_the_last_traceback_line_are_kept(last: str, expected: dict[str, object]) -> None:
    error = read_traceback(
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{last}\n', frozenset({"shop"})
    )
    assert error is not None
    assert {key: getattr(error, key) for key in expected} == expected


def test_last_of_several_tracebacks_counts() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\nDuring…\n\n' * 2
    error = read_traceback(text.replace("KeyError: 1", "ValueError: 2", 1) + TRACEBACK)
    assert error is not None
    assert error.type == "CartError"


def test_syntax_error_without_a_header_is_parsed() -> None:
    for path in ("shop/a.py", "./shop/a.py"):
        error = read_traceback(
            f'  File "{path}", line 7\n    def (\n        ^\nSyntaxError: invalid syntax\n'
        )
        assert error is not None
        assert (error.type, error.path, error.line) == ("SyntaxError", "shop/a.py", 7)
        assert error.object_side is Side.PRODUCT
    assert read_traceback('  File "a.py", line 7\n    def (\nValueError: no\n') is None


def test_truncated_internal_error_is_parsed() -> None:
    text = 'INTERNALERROR>   File "/p/conftest.py", line 2, in hook\nINTERNALERROR>     raise\nINTERNALERROR> ValueError: no\n'
    error = read_traceback(text)
    assert error is not None
    assert error.frames[0].side is Side.TEST


def test_stack_of_the_current_thread_is_parsed_outermost_first() -> None:
    assert [frame.function for frame in read_stack(STACK)] == ["test_a", "crash"]
    assert read_stack("nothing") == ()
    assert [frame.function for frame in read_stack('  File "/p/a.py", line 1 in f\n')] == ["f"]


@given(st.text())
def test_traceback_parser_accepts_any_text(text: str) -> None:
    for prefix in (
        "",
        "Traceback (most recent call last):\n",
        'Traceback (most recent call last):\n  File "a", line 1, in f\n',
    ):
        told = read_traceback(prefix + text)
        assert told is None or told.qualified
        assert all(frame.line >= 0 for frame in read_stack(prefix + text))


@pytest.mark.parametrize(
    "text", ["", "Traceback (most recent call last):", "Traceback (most recent call last):\n\n"]
)
def test_empty_traceback_is_none(text: str) -> None:
    assert read_traceback(text) is None


def test_frames_of_the_verifier_are_removed_from_a_stack():
    stack = (
        "Current thread 0x1 (most recent call first):\n"
        '  File "/project/tests/test_cart.py", line 9 in test_total\n'
        '  File "/venv/lib/python3.11/site-packages/pytest_planverify/observe/worker.py", line 5 in run\n'
        '  File "/project/plan_runner.py", line 1 in main\n'
    )

    assert [frame.function for frame in read_stack(stack)] == ["test_total"]
