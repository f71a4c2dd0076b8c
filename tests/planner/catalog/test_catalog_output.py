"""Parsing of the real output of each tool into findings."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import TOOLS, Purpose, parse_command
from planner.catalog.output import (
    MAX_FINDINGS,
    hidden_failures,
    output_table,
    proves_nothing,
    read_findings,
)
from planner.catalog.tables import load_table
from planner.model.evidence import Finding

RUFF = """F401 [*] `os` imported but unused
 --> pkg/bad.py:1:8
  |
1 | import os
help: Remove unused import: `os`

F821 Undefined name `x`
  --> pkg/bad.py:10:7
"""
COMPILEALL = """*** Error compiling './syn.py'...
  File "./syn.py", line 1
    def g(:
          ^
SyntaxError: invalid syntax

"""
PYRIGHT = """/tmp/x/pkg/bad.py
  /tmp/x/pkg/bad.py:6:12 - error: Type "int" is not assignable to return type "str"
    "int" is not assignable to "str" (reportReturnType)
  /tmp/x/pkg/bad.py:11:7 - warning: Import "x" could not be resolved from source (reportMissingModuleSource)
  /tmp/x/pkg/bad.py:2:5 - error: Expected expression
2 errors, 0 warnings, 0 informations
"""
UNITTEST = """FEs
======================================================================
ERROR: test_e (test_u.T.test_e)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/tmp/x/test_u.py", line 6, in test_e
    raise ValueError("boom")
ValueError: boom

======================================================================
FAIL: test_a (test_u.T.test_a)
----------------------------------------------------------------------
  File "/tmp/x/test_u.py", line 4, in test_a
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 3 tests in 0.000s
"""
ESLINT = """
/tmp/x/b.js
  1:5   error    'a' is assigned a value but never used  no-unused-vars
  2:1   warning  'foo' is not defined                    no-undef

/tmp/x/broken.js
  2:1  error  Parsing error: Unexpected token

✖ 3 problems (2 errors, 1 warning)
"""
JEST = """FAIL t/a.test.js
  ● adds

    expect(received).toBe(expected) // Object.is equality

      at Object.toBe (t/a.test.js:1:34)
"""
VITEST = """
\x1b[31m\u276f\x1b[39m v/a.test.mjs (1 test | 1 failed) 6ms

\x1b[41m\x1b[1m FAIL \x1b[22m\x1b[49m v/a.test.mjs > adds
\x1b[31mAssertionError: expected 2 to be 3 // Object.is equality\x1b[39m

+ Received

 \u276f v/a.test.mjs:2:34
"""
MOCHA = """
  1) d
       fails:

      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

      at Context.<anonymous> (m/a.js:1:73)
      at process.processImmediate (node:internal/timers:483:21)
"""
NODE = """not ok 1 - n
  ---
  duration_ms: 1.703286
  location: '/tmp/x/n/a.test.js:1:64'
"""
CARGO = """warning: unused: `x`
 --> src/lib.rs:1:25
  |
error[E0308]: mismatched types
 --> src/lib.rs:1:21
error: could not compile `foo` (lib) due to 1 previous error
"""
CARGO_TEST = """
---- t stdout ----

thread 't' (17460) panicked at src/lib.rs:2:10:
assertion `left == right` failed
  left: 1
"""
MAKE = """a.c: In function 'main':
a.c:1:19: error: 'x' undeclared
a.c:1:19: note: each undeclared identifier is reported only once
make[1]: *** [Makefile:4: fail] Error 3
"""
BANDIT = """>> Issue: [B404:blacklist] Consider possible security implications of subprocess.
   Severity: Low   Confidence: High
   Location: fm/ugly.py:4:0
"""
RUFF_FORMAT = """unformatted: File would be reformatted
 --> fm/boom.py:3:1
  |
1 file would be reformatted
"""
TRACEBACK = """Traceback (most recent call last):
  File "/tmp/x/boom.py", line 3, in <module>
  File "/tmp/x/boom.py", line 2, in t
    raise ValueError("x")
ValueError: x
"""
DOCTEST = """**********************************************************************
File "/tmp/x/doc.py", line 3, in doc.d
Failed example:
    1+1
Expected:
    3
"""

SHELLCHECK = """
In a.sh line 2:
echo $x
     ^-- SC2154 (warning): x is referenced but not assigned.
     ^-- SC2086 (info): Double quote to prevent globbing and word splitting.

In a.sh line 3:
        ^-- SC3014 (error): In POSIX sh, == in place of = is undefined.
"""
YAMLLINT = """bad.yaml
  1:1       warning  missing document start "---"  (document-start)
  1:5       error    too many spaces after colon  (colons)
  3:1       error    syntax error: expected ',' or ']' (syntax)

"""

EXPECTED: list[tuple[str, str, list[str]]] = [  # path:line:column code message
    (
        "ruff check .",
        RUFF,
        ["pkg/bad.py:1:8 F401 `os` imported but unused", "pkg/bad.py:10:7 F821 Undefined name `x`"],
    ),
    (
        "ruff check --output-format concise .",
        "a.py:1:8: F401 [*] `os` unused\nb.py:1:7: invalid-syntax: Expected x\n",
        ["a.py:1:8 F401 `os` unused", "b.py:1:7 invalid-syntax Expected x"],
    ),
    ("ruff check x", "invalid-syntax: Expected x\n--> a.py:1:8\n", ["a.py:1:8 invalid-syntax Expected x"]),
    ("ruff format --check .", RUFF_FORMAT, ["fm/boom.py:3:1 unformatted File would be reformatted"]),
    ("ruff format --check .", "Would reformat: a.py\n", ["a.py:-:- - would be reformatted"]),
    (
        "black --check .",
        "error: cannot parse: syn.py:1:6\nwould reformat /tmp/x/b.py\n",
        ["/tmp/x/b.py:-:- - would be reformatted", "syn.py:1:6 - cannot parse"],
    ),
    (
        "isort -c",
        "ERROR: a.py Imports are incorrectly sorted.\n",
        ["a.py:-:- - Imports are incorrectly sorted."],
    ),
    ("flake8", "a.py:1:8: E999 SyntaxError: invalid\n", ["a.py:1:8 E999 SyntaxError: invalid"]),
    ("pylint pkg", "*** Module bad\na.py:1:0: C0114: No doc (c)\n", ["a.py:1:0 C0114 No doc (c)"]),
    ("bandit -r .", BANDIT, ["fm/ugly.py:4:0 B404 Consider possible security implications of subprocess."]),
    ("mypy src", "a.py:6: error: Bad return  [return-value]\n", ["a.py:6:- return-value Bad return"]),
    ("mypy src", "a.py:7: note: hint\nb.py: error: Cannot read file\n", ["b.py:-:- - Cannot read file"]),
    (
        "pyright",
        PYRIGHT,
        [
            '/tmp/x/pkg/bad.py:6:12 reportReturnType Type "int" is not assignable to return type "str" '
            '"int" is not assignable to "str"',
            "/tmp/x/pkg/bad.py:2:5 - Expected expression",
            '/tmp/x/pkg/bad.py:11:7 reportMissingModuleSource Import "x" could not be resolved from source',
        ],
    ),
    ("python -m compileall -q .", COMPILEALL, ["./syn.py:1:- SyntaxError invalid syntax"]),
    ("python -m py_compile syn.py", COMPILEALL, ["./syn.py:1:- SyntaxError invalid syntax"]),
    ("python -m py_compile a.py", "[Errno 2] No such file: 'a.py'", ["a.py:-:- - No such file"]),
    (
        "python -m unittest test_u",
        UNITTEST,
        [
            "/tmp/x/test_u.py:6:- ValueError test_e: boom",
            "/tmp/x/test_u.py:4:- AssertionError test_a: 1 != 2",
        ],
    ),
    ("python -m doctest doc.py", DOCTEST, ["/tmp/x/doc.py:3:- doc.d Failed example: 1+1"]),
    ("python boom.py", TRACEBACK, ["/tmp/x/boom.py:2:- ValueError x"]),
    *(
        ("python -m a", f"{folder}/python: No module named a\n", ["-:-:- - No module named a"])
        for folder in ("/usr/bin", "/home/a b/.venv/bin", "C:")
    ),
    (
        "python -m a.b",
        "python: Error while finding module specification for 'a.b' (E)\n",
        ["-:-:- - Error while finding module specification for 'a.b' (E)"],
    ),
    ("make fail", MAKE, ["a.c:1:19 - 'x' undeclared", "Makefile:4:- fail Error 3"]),
    ("make b", "make: *** No rule to make 'b'.  Stop.\n", ["-:-:- - No rule to make 'b'. Stop."]),
    ("npx tsc --noEmit", "a.ts(1,7): error TS2322: Not assignable.\n", ["a.ts:1:7 TS2322 Not assignable."]),
    ("npx tsc --noEmit", "error TS6053: File 'm.ts' not found.\n", ["-:-:- TS6053 File 'm.ts' not found."]),
    (
        "tsc --pretty",
        "\x1b[96ma.ts\x1b[0m:\x1b[93m1\x1b[0m:7 - \x1b[91merror\x1b[0m\x1b[90m TS2322: \x1b[0mBad.\n",
        ["a.ts:1:7 TS2322 Bad."],
    ),
    (
        "eslint .",
        ESLINT,
        [
            "/tmp/x/b.js:1:5 no-unused-vars 'a' is assigned a value but never used",
            "/tmp/x/broken.js:2:1 - Parsing error: Unexpected token",
            "/tmp/x/b.js:2:1 no-undef 'foo' is not defined",
        ],
    ),
    (
        "prettier --check .",
        "[warn] b.js\n[error] broken.js: SyntaxError: Unexpected token (2:1)\n[error]   1 | const x = {\n",
        ["b.js:-:- - would be reformatted", "broken.js:2:1 SyntaxError Unexpected token"],
    ),
    ("jest", JEST, ["t/a.test.js:1:34 adds failed"]),
    (
        "npx vitest run",
        VITEST,
        ["v/a.test.mjs:2:34 v/a.test.mjs > adds AssertionError: expected 2 to be 3 // Object.is equality"],
    ),
    ("mocha", MOCHA, ["m/a.js:1:73 d fails"]),
    ("node --test", NODE, ["/tmp/x/n/a.test.js:1:64 n failed"]),
    (
        "node x.js",
        "/x/x.js:2\n\n\n\nSyntaxError: Bad input\n    at wrapSafe (node:1464:18)\n",
        ["/x/x.js:2:- SyntaxError Bad input", "-:-:- SyntaxError Bad input"],
    ),
    ("npm run b", "npm error No b\nnpm error\nnpm error A complete log of x\n", ["-:-:- - No b"]),
    ("cargo check", CARGO, ["src/lib.rs:1:21 E0308 mismatched types", "src/lib.rs:1:25 - unused: `x`"]),
    ("cargo test", CARGO_TEST, ["src/lib.rs:2:10 t assertion `left == right` failed"]),
    ("cargo fmt --check", "Diff in /tmp/x/src/lib.rs:1:\n", ["/tmp/x/src/lib.rs:1:- - is not formatted"]),
    ("go vet ./...", "# example\nvet: ./a.go:4:2: undefined: x\n", ["./a.go:4:2 - undefined: x"]),
    (
        "go test ./...",
        "--- FAIL: TestA (0.00s)\n    a_test.go:5: got 1\nFAIL\nFAIL\texample\t0.002s\n",
        ["a_test.go:5:- - got 1", "-:-:- TestA (0.00s)"],
    ),
    ("gofmt -l .", "a.go\n", ["a.go:-:- - is not formatted"]),
    ("git diff --check", "ws.txt:1: trailing whitespace.\n+a  \n", ["ws.txt:1:- - trailing whitespace"]),
    ("tox -e py", "py: exit 3 (0 seconds) /x> a\n  py: FAIL code 3 (1 s)\n", ["-:-:- py code 3 (1 s)"]),
    (
        "nox",
        "nox > Running session t\nnox > Command x failed with exit code 2\nnox > Session t failed.\n",
        ["-:-:- - Command x failed with exit code 2"],
    ),
    ("coverage report", "No data to report.\n", ["-:-:- - No data to report."]),
    ("lint-imports", "layers BROKEN\n", ["-:-:- - layers"]),
    ("vulture src", "a.py:3: unused import 'x' (90% sure)\n", ["a.py:3:- - unused import 'x' (90% sure)"]),
    ("ruff check", "odd.txt:3: something else\n", ["odd.txt:3:- - something else"]),
    ("mypy src", "nothing that is a complaint\n", []),
    (
        "shellcheck a.sh",
        SHELLCHECK,
        [
            "a.sh:3:- SC3014 In POSIX sh, == in place of = is undefined.",
            "a.sh:2:- SC2154 x is referenced but not assigned.",
            "a.sh:2:- SC2086 Double quote to prevent globbing and word splitting.",
        ],
    ),
    ("shellcheck -f gcc a.sh", "a.sh:2:6: note: Quote it. [SC2086]\n", ["a.sh:2:6 SC2086 Quote it."]),
    (
        "yamllint .",
        YAMLLINT,
        [
            "bad.yaml:1:5 colons too many spaces after colon",
            "bad.yaml:3:1 syntax syntax error: expected ',' or ']'",
            'bad.yaml:1:1 document-start missing document start "---"',
        ],
    ),
    ("ty check", "error[import]: No `x`\n --> a.py:2:8\n  |\n", ["a.py:2:8 import No `x`"]),
    ("pyrefly check", "ERROR No `x` [import]\n --> a.py:2:8\n  |\n", ["a.py:2:8 import No `x`"]),
    (
        "hadolint Dockerfile",
        "Dockerfile:1 DL3006 \x1b[1m\x1b[93mwarning\x1b[0m: Always tag the version\n",
        ["Dockerfile:1:- DL3006 Always tag the version"],
    ),
    ("sqlfluff lint", "== [q.sql] FAIL\nL:   1 | P:  11 | CP01 | Bad.\n", ["q.sql:1:11 CP01 Bad."]),
    ("sphinx-build -W docs out", "i.rst:4: WARNING: no: 'a' [ref.doc]\n", ["i.rst:4:- ref.doc no: 'a'"]),
    (
        "mkdocs build --strict",
        "INFO    -  Cleaning\nWARNING -  Doc file 'a.md' has a link\n\nAborted with 1 warnings!\n",
        ["-:-:- - Aborted with 1 warnings!", "-:-:- - Doc file 'a.md' has a link"],
    ),
    ("twine check a", "\x1b[31mERROR   \x1b[0m Invalid: No 'x'\n", ["-:-:- - Invalid: No 'x'"]),
    (
        "terraform validate",
        "\x1b[31m╷\x1b[0m\n│ \x1b[1mError: \x1b[0mUnsupported\x1b[0m\n│ \x1b[0m\n│   on main.tf line 1:\n",
        ["main.tf:1:- - Unsupported"],
    ),
    ("terraform fmt -check", "main.tf\n", ["main.tf:-:- - is not formatted"]),
    ("doc8 docs", "bad.rst:5: D002 Trailing whitespace\n", ["bad.rst:5:- D002 Trailing whitespace"]),
    ("rstcheck a.rst", 'a.rst:4: (ERROR/3) No role "b".\nError! Issues.\n', ['a.rst:4:- - No role "b".']),
]


@pytest.mark.parametrize(
    ("cmd", "output", "rows"), EXPECTED, ids=[f"{n}-{row[0]}" for n, row in enumerate(EXPECTED)]
)
def test_findings_are_read_with_their_places_and_errors_come_first(
    cmd: str, output: str, rows: list[str]
) -> None:
    tool = parse_command(cmd).tool
    for streams in ((output, ""), ("", output)):
        assert list(map(shown, read_findings(tool, *streams))) == rows


def shown(finding: Finding) -> str:
    """Return the finding as a row of the table, with a dash for each None."""
    place = (finding.path, finding.line, finding.column, finding.code)
    path, line, column, code = ("-" if each is None else each for each in place)
    return f"{path}:{line}:{column} {code} {finding.message}"


def test_every_name_in_the_output_tables_exists() -> None:
    rows = [row for rows in load_table("tools")["tools"].values() for row in rows]
    table = output_table()
    formats = table["formats"]

    assert {row["output"] for row in rows if "output" in row} <= set(formats)
    for form in formats.values():
        assert {each[1:] for each in form.get("patterns", ()) if each.startswith("@")} <= set(formats)
        assert set(form.get("runs", ())) <= set(table["runs"])
        assert set(form.get("readers", ())) <= {"unittest", "traceback", *table["grouped"]}
    assert set(table["failures"]) <= set(table["runs"])
    assert set(table["headings"]) <= set(table["grouped"])


def test_the_number_of_findings_is_limited() -> None:
    lines = "".join(f"a.py:{number}:1: E501 too long\n" for number in range(1, 1_000))
    assert len(read_findings(parse_command("flake8").tool, lines, "")) == MAX_FINDINGS


def test_an_invalid_line_number_is_omitted() -> None:
    (finding,) = read_findings(parse_command("flake8").tool, f"a.py:{'9' * 50}:1: E501 too long\n", "")
    assert (finding.path, finding.line) == ("a.py", None)


PASSED = "1 passed in 0.01s"
NO_FILES = "No Python files found under the given path(s)"


def unittest_summary(ran: int, notes: str = "") -> str:
    return f"\n----\nRan {ran} tests in 0.000s\n\nOK{notes}\n"


def cargo_summary(passed: int, ignored: int = 0) -> str:
    return f"test result: ok. {passed} passed; 0 failed; {ignored} ignored; 0 measured; 0 filtered out\n"


@pytest.mark.parametrize(
    ("cmd", "output", "said"),
    [
        ("python -m unittest x", unittest_summary(0), "Ran 0 tests"),
        ("python -m unittest x", unittest_summary(2, " (skipped=1, expected failures=1)"), "skipped"),
        ("python -m unittest x", unittest_summary(2, " (skipped=1)"), None),
        ("tox", "============ 3 skipped in 0.12s ============\n", "3 skipped"),
        ("tox", "no tests ran in 0.80s\n", "no tests ran"),
        ("tox", f"3 skipped in 0.12s\n{PASSED}\n", None),
        ("tox", "  py: OK (0.09 seconds)\n  congratulations :) (0.1 seconds)\n", "ran no command"),
        ("tox", "  a: OK (0.1 seconds)\n  b: OK (0.19=setup[0.02]+cmd[0.17] seconds)\n", None),
        ("nox", "2 xfailed in 0.12s\n", "2 xfailed"),
        ("make test", unittest_summary(0), "Ran 0 tests"),
        ("make", unittest_summary(0), None),
        ("make test", "make: 'test' is up to date.\n", "make ran nothing: 'test' is up to date"),
        ("make unit-tests", "make: Nothing to be done for 'unit-tests'.\n", "make ran nothing"),
        ("make build test", "make: Nothing to be done for 'build'.\nall well\n", None),
        ("make test", f"make: 'test' is up to date.\n{PASSED}\n", None),
        ("make test", "make: 'latest' is up to date.\nall well\n", None),
        ("python runtests.py", unittest_summary(0), "Ran 0 tests"),
        ("cargo test", cargo_summary(0) * 2, "running 0 tests"),
        ("cargo test", cargo_summary(0, ignored=2), "skipped"),
        ("cargo test", cargo_summary(1) + cargo_summary(0), None),
        ("cargo nextest run", "     Summary [   0.1s] 0 tests run: 0 passed, 0 skipped\n", "0 tests run"),
        ("cargo build", cargo_summary(0), None),
        ("go test ./...", "?   \texample/a\t[no test files]\n", "no test files"),
        ("go test ./...", "?   \texample/a\t[no test files]\nok  \texample/b\t0.002s\n", None),
        ("go test ./...", "ok  \texample/b\t0.002s [no tests to run]\n", "no tests to run"),
        ("go test ./...", "ok  \texample/b\t(cached)\n", None),
        ("npm test", "Error: no test specified\n", "no test specified"),
        ("npm test", "Tests:       1 skipped, 1 total\n", "1 skipped"),
        ("npm test", "Tests:       1 skipped, 1 passed, 2 total\n", None),
        ("jest", "No tests found, exiting with code 0\n", "no tests"),
        ("npx vitest run", "      Tests  2 skipped (2)\n", "skipped"),
        ("npx mocha", "\n\n  0 passing (1ms)\n", "0 passing"),
        ("npx mocha", "\n\n  3 passing (1ms)\n", None),
        ("node --test", "# tests 0\n# pass 0\n", "0 passing"),
        ("ruff check x", f"All checks passed!\nwarning: {NO_FILES}\n", "Python files"),
        ("ruff format --check x", f"warning: {NO_FILES}\n", "Python files"),
        ("black --check x", "No Python files are present to be formatted. 😴\n", "Python files"),
        ("mypy x", "There are no .py[i] files in directory 'empty'\n", "Python files"),
        ("mypy x", "Success: no issues found in 1 source file\n", None),
        ("pyright x", "No source files found.\n0 errors\n", "source files"),
        ("python -m compileall x", "Listing 'x'...\nCan't list 'x'\n", "could not list"),
        ("bandit -r x", "\tTotal lines of code: 0\n", "no line"),
        ("gofmt -l .", "a.go\n", "not formatted"),
        ("git status --porcelain", "?? a\n", "has changes"),
        ("git status -sb", "## main\n", None),
        ("git status", "On branch main\nnothing to commit, working tree clean\n", None),
        ("git status", "On branch main\nUntracked files:\n\ta\n", "has changes"),
        ("pre-commit run", "ruff.....(no files to check)Skipped\n", "skipped"),
        ("pre-commit run", "ruff.....(no files to check)Skipped\nmypy..............Passed\n", None),
        ("pre-commit run", "", "ran no hook"),
        ("ctest", "No tests were found!!!\n", "no tests"),
        ("ctest", "100% tests passed, 0 tests failed out of 3\n", None),
        ("dotnet test", "No test is available in x.dll.\n", "no tests"),
        ("dotnet test", "Skipped! - Failed: 0, Passed: 0, Skipped: 3, Total: 3\n", "no test passed"),
        ("mvn test", "[INFO] No tests to run.\n", "no tests to run"),
        ("mvn test", "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n", "skipped"),
        ("mvn test", "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 1\n", None),
        ("./gradlew test", "> Task :app:test NO-SOURCE\n", "no tests to run"),
        ("ty check x", "All passed!\nWARN No python files found under the given path(s)\n", "no Python"),
        ("doc8 x", "Total files scanned = 0\n", "scanned no file"),
        ("shfmt -l .", "a.sh\n", "shfmt succeeds although it names files"),
        ("bundle exec rspec", "0 examples, 0 failures\n", "0 examples"),
        ("bundle exec rspec", "2 examples, 0 failures, 2 pending\n", "all 2 examples are pending"),
        ("bundle exec rspec", "2 examples, 0 failures, 1 pending\n", None),
        ("phpunit", "No tests executed!\n", "no tests"),
        ("swift test", "Executed 0 tests, with 0 failures (0 unexpected) in 0.0 seconds\n", "0 tests"),
        ("swift test", "Executed 0 tests, with 0 failures\nTest run with 3 tests passed after 1.\n", None),
        ("deno test", "ok | 0 passed | 0 failed | 2 ignored (3ms)\n", "no test passed"),
        ("mix test", "2 doctests, 3 tests, 0 failures, 1 skipped\n", None),
    ],
)
def test_success_without_any_work_is_distinguished_from_success(
    cmd: str, output: str, said: str | None
) -> None:
    reason = proves_nothing(parse_command(cmd).tool, output, "")
    assert (said is None) == (reason is None), reason
    assert (said or "") in (reason or "")


@pytest.mark.parametrize(
    ("cmd", "output", "said"),
    [
        ("make test", "=== 1 failed, 1 passed in 0.1s ===\n", "1 failed, 1 passed in 0.1s"),
        ("python run_tests.py", "1 passed, 2 errors in 0.1s\n", "1 passed, 2 errors in 0.1s"),
        ("make test", "1 passed in 0.1s\nRan 1 test in 0s\n\nFAILED (errors=1)\n", "FAILED (errors=1)"),
        ("make test", "FAIL\texample/b\t0.002s\n", "FAIL\texample/b\t0.002s"),
        (
            "npm test",
            "Tests:       1 failed, 2 passed, 3 total\n",
            "Tests:       1 failed, 2 passed, 3 total",
        ),
        ("npx mocha", "  2 passing (1ms)\n  1 failing\n", "1 failing"),
        ("cargo test", "test result: FAILED. 1 passed; 1 failed; 0 ignored\n", "test result: FAILED. 1"),
        ("mvn test", "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n", "Tests run: 2"),
        ("bundle exec rspec", "2 examples, 1 failure\n", "2 examples, 1 failure"),
        ("make test", "3 passed, 1 xfailed in 0.1s\n", None),
        ("make test", "0 failed, 1 passed\nTests:  2 passed, 2 total\n", None),
        ("make", "1 failed, 1 passed in 0.1s\n", None),
        ("ruff check x", "1 failed, 1 passed in 0.1s\n", None),
    ],
)
def test_failures_in_the_output_of_a_success_are_found(cmd: str, output: str, said: str | None) -> None:
    found = hidden_failures(parse_command(cmd).tool, output, "")
    assert (said is None) == (found is None), found
    assert (said or "") in (found or "")


@given(st.sampled_from(TOOLS), st.text(), st.text())
def test_any_output_is_read_without_an_exception(tool: object, stdout: str, stderr: str) -> None:
    assert all(found.message for found in read_findings(tool, stdout, stderr))  # type: ignore[arg-type]
    assert proves_nothing(tool, stdout, stderr) != ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "tool", {tool.output: tool for tool in TOOLS}.values(), ids=lambda tool: tool.output
)
def test_hostile_output_is_read_in_bounded_time(tool: object) -> None:
    hostile = ["a" * 100_000, " \n" * 50_000, "a:1:1: " * 15_000, "  ● a\n" * 20_000, "error: x\n" * 10_000]
    hostile += ['  File "a", line 1\n' * 6_000, "Traceback (most recent call last):\n" * 3_000]
    hostile += ["1 passed, " * 10_000]
    hostile += ["  a.py:1:1 - error: x\n    y" * 5_000, ">> Issue: [B1:a] b\n" * 5_000, "F401 x\n" * 10_000]
    asked = dataclasses.replace(tool, purpose=Purpose.TEST)  # type: ignore[type-var]
    for text in hostile:
        started = time.perf_counter()
        read_findings(asked, text, "")
        proves_nothing(asked, text, "")
        hidden_failures(asked, text, "")
        assert time.perf_counter() - started < 60, text[:20]
