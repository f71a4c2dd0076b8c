"""The kinds of fault that tools for Python find in the code and in the tests."""

from __future__ import annotations

from collections.abc import Iterator

from tool_kinds import IMPORT, MODULE, Kind, kinds_of

from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O

CHECKERS = "mypy pyright"
LINTERS = "ruff flake8 pylint"
RUNNERS = "unittest script make-test"


def _checked() -> Iterator[Kind]:
    """What type checkers say."""
    for change, tells, more in (
        ("wrong-argument", "An argument of the wrong type", "mypy-module"),
        ("wrong-return", "A result of another type than the annotation says", "make-typecheck"),
        ("missing-return", "A function that promises a result has a way without one", "make-typecheck"),
        ("none-attribute", "An attribute of something that may be None", "mypy-module"),
        ("unknown-attribute", "An attribute that the type does not have", ""),
        ("undefined-name", "A name that is defined nowhere, seen by a type checker", "make-typecheck"),
    ):
        yield from kinds_of(change, tells, C.TYPE_ERROR, O.PRODUCT, f"{CHECKERS} {more}", exact=True)
    yield from kinds_of(
        "test-type-error", "The wrong type, in the tests", C.TYPE_ERROR, O.TEST, "mypy-tests", exact=True
    )
    yield from kinds_of(
        "third-party-import",
        "A module of a package that is not installed is imported",
        C.IMPORT_ERROR,
        O.PRODUCT,
        f"{CHECKERS} make-typecheck pylint {RUNNERS} tox doctest",
        exact=True,
    )
    yield from kinds_of(
        "module-gone",
        "A module of the project is gone, but is still imported",
        C.ARTIFACT_MISSING,
        O.PRODUCT,
        "mypy pyright pylint",
        also=(IMPORT,),
    )
    yield from kinds_of(
        "module-gone",
        "A module of the project is gone, but is still imported",
        C.ARTIFACT_MISSING,
        O.PRODUCT,
        "unittest tox make-test",
        also=(MODULE,),
    )


def _parsed() -> Iterator[Kind]:
    """What cannot be parsed, whoever finds it."""
    everyone = (
        f"{CHECKERS} {LINTERS} {RUNNERS} ruff-format black py-compile compileall coverage-run tox "
        "doctest make-dist make-lint lint-imports"
    )
    yield from kinds_of(
        "syntax-error", "A colon is missing", C.COMPILATION_ERROR, O.PRODUCT, everyone, exact=True
    )
    yield from kinds_of(
        "indentation-error",
        "A line is indented too far",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "mypy ruff flake8 py-compile compileall unittest black",
        exact=True,
    )
    yield from kinds_of(
        "unclosed-bracket",
        "A bracket is never closed",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "pyright pylint ruff-format compileall unittest script pycodestyle vulture",
    )
    yield from kinds_of(
        "test-syntax-error",
        "A bracket in the tests is never closed",
        C.COMPILATION_ERROR,
        O.TEST,
        "mypy-tests flake8 compileall unittest tox make-test",
    )
    yield from kinds_of(
        "broken-json", "A comma is missing in JSON", C.COMPILATION_ERROR, O.PRODUCT, "json-tool"
    )


def _linted() -> Iterator[Kind]:
    """What linters and formatters say."""
    for change, tells, uses in (
        ("unused-import", "An import that nothing uses", f"{LINTERS} ruff-concise make-lint"),
        ("undefined-name", "A name that is defined nowhere, seen by a linter", f"{LINTERS}"),
        ("unused-variable", "A variable that nothing uses", "ruff flake8 pylint"),
        ("bare-except", "An except without a type", "ruff flake8 pycodestyle pylint"),
        ("mutable-default", "A list as the default of a parameter", "ruff pylint"),
        ("mentions-import-error", "A lint whose message quotes ImportError", "ruff-concise pylint"),
        ("unsafe-call", "A call of eval", "bandit pylint"),
        ("dead-code", "A statement after a return", "vulture pylint"),
        ("bad-format", "Blanks where the style has none", "ruff-format black flake8 pycodestyle"),
        ("import-order", "Imports out of order", "isort ruff"),
        ("forbidden-import", "An import that the layers forbid", "lint-imports"),
        ("trailing-blank", "A line ends with blanks", "git-diff flake8 ruff-format"),
    ):
        yield from kinds_of(change, tells, C.LINT_ERROR, O.PRODUCT, uses, exact=True)
    yield from kinds_of(
        "unused-import-in-test",
        "An import in the tests that nothing uses",
        C.LINT_ERROR,
        O.TEST,
        "ruff ruff-concise flake8 make-lint",
        exact=True,
    )


def _run() -> Iterator[Kind]:
    """What runners of tests say."""
    for change, tells, uses in (
        ("wrong-value", "A wrong result", f"{RUNNERS} unittest-one coverage-run tox"),
        ("wrong-rounding", "A wrong number of digits", f"{RUNNERS} doctest"),
        ("noisy-tests", "A wrong value, after passing tests that print what reads like errors", RUNNERS),
        (
            "long-output",
            "A wrong value, after thousands of lines of other output",
            "unittest script make-test",
        ),
        ("silent", "A wrong value that a script answers with its exit status only", "script-silent"),
    ):
        yield from kinds_of(change, tells, C.TEST_REGRESSION, O.PRODUCT, uses)
    yield from kinds_of(
        "product-raises",
        "The product raises what it should not",
        C.TEST_REGRESSION,
        O.PRODUCT,
        f"{RUNNERS} doctest",
        exact=True,
    )
    yield from kinds_of(
        "undefined-name",
        "A name that is defined nowhere, met by a test",
        C.TEST_REGRESSION,
        O.PRODUCT,
        "unittest script make-test",
        exact=True,
    )
    yield from kinds_of(
        "type-raises",
        "A value of the wrong kind inside the product",
        C.TYPE_ERROR,
        O.PRODUCT,
        RUNNERS,
        exact=True,
    )
    yield from kinds_of(
        "signature-changed",
        "A parameter that the tests use has another name",
        C.SPEC_MISMATCH,
        O.PRODUCT,
        RUNNERS,
    )
    yield from kinds_of(
        "name-gone",
        "A function that the tests import has another name",
        C.SPEC_MISMATCH,
        O.PRODUCT,
        RUNNERS,
    )
    yield from kinds_of(
        "test-typo", "A name in the tests is misspelt", C.TEST_REGRESSION, O.TEST, RUNNERS, exact=True
    )
    yield from kinds_of(
        "test-helper-misused",
        "The tests call their own helper wrongly",
        C.TEST_REGRESSION,
        O.TEST,
        "unittest tox make-test",
        exact=True,
    )
    yield from kinds_of(
        "endless-loop",
        "A loop in the product never ends",
        C.TEST_TIMEOUT,
        O.PRODUCT,
        RUNNERS,
        limit=4,
    )
    yield from kinds_of(
        "dead-process",
        "The product reads where no memory is",
        C.TEST_CRASH,
        O.PRODUCT,
        f"{RUNNERS} coverage-run tox",
        exact=True,
    )
    yield from kinds_of(
        "untested-code",
        "Code that no test reaches, under a threshold of coverage",
        C.METRIC_UNMET,
        O.PRODUCT,
        "make-coverage",
    )
    yield from kinds_of(
        None,
        "The service that the tests speak to is not there",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "unittest-service",
        surroundings="no-service",
        placed=False,
    )


PYTHON_KINDS: tuple[Kind, ...] = (*_checked(), *_parsed(), *_linted(), *_run())
