"""The kinds of fault that node, npm, eslint, prettier, mocha and tsc find."""

from __future__ import annotations

from collections.abc import Iterator

from tool_kinds import MODULE, Kind, kinds_of

from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O
from tools.corpus.case import Reading


def _javascript() -> Iterator[Kind]:
    """What node, npm, eslint, prettier and tsc say of faults that only they meet."""
    for change, tells in (
        ("wrong-argument", "An argument of the wrong type"),
        ("wrong-return", "A result of another type than the annotation says"),
        ("missing-return", "A function that promises a result has a way without one"),
        ("none-attribute", "A property of something that may be undefined"),
        ("unknown-attribute", "A property that the type does not have"),
        ("undefined-name", "A name that is defined nowhere"),
    ):
        yield from kinds_of(change, f"{tells}, in TypeScript", C.TYPE_ERROR, O.PRODUCT, "tsc", exact=True)
    yield from kinds_of(
        "wrong-argument",
        "An argument of the wrong type, in TypeScript",
        C.TYPE_ERROR,
        O.PRODUCT,
        "npm-build npx-tsc",
        exact=True,
    )
    yield from kinds_of(
        "syntax-error",
        "A bracket is missing",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "tsc npm-build node npm-test npm-run eslint npm-lint prettier mocha",
        exact=True,
    )
    yield from kinds_of(
        "test-syntax-error", "A bracket is missing in a test", C.COMPILATION_ERROR, O.TEST, "node npm-test"
    )
    yield from kinds_of(
        "third-party-import",
        "A module of a package that is not installed is imported",
        C.IMPORT_ERROR,
        O.PRODUCT,
        "tsc npm-build node npm-test mocha",
        exact=True,
    )
    yield from kinds_of(
        "module-gone",
        "A module of the project is gone, but is still imported",
        C.ARTIFACT_MISSING,
        O.PRODUCT,
        "tsc npm-build node npm-test",
        also=(MODULE,),
    )
    runners = "node npm-test npm-run"
    for change, tells, category, owner, exact in (
        ("wrong-value", "A wrong result", C.TEST_REGRESSION, O.PRODUCT, False),
        ("product-raises", "The product throws what it should not", C.TEST_REGRESSION, O.PRODUCT, True),
        (
            "noisy-tests",
            "A wrong value, after output that reads like errors",
            C.TEST_REGRESSION,
            O.PRODUCT,
            False,
        ),
        ("type-raises", "A value of the wrong kind inside the product", C.TYPE_ERROR, O.PRODUCT, True),
        (
            "name-gone",
            "A function that the tests import has another name",
            C.SPEC_MISMATCH,
            O.PRODUCT,
            False,
        ),
        ("test-typo", "A name in the tests is misspelt", C.TEST_REGRESSION, O.TEST, True),
        ("dead-process", "The product ends its process", C.TEST_CRASH, O.PRODUCT, False),
    ):
        yield from kinds_of(change, tells, category, owner, runners, exact=exact)
    yield from kinds_of(
        "endless-loop", "A loop in the product never ends", C.TEST_TIMEOUT, O.PRODUCT, runners, limit=5
    )
    yield from kinds_of(
        "silent", "A wrong value that a script answers silently", C.TEST_REGRESSION, O.PRODUCT, "npm-report"
    )
    for change, tells, uses in (
        ("unused-variable", "A variable that nothing uses", "eslint npm-lint"),
        ("undefined-name", "A name that is defined nowhere, seen by a linter", "eslint npm-lint"),
        ("loose-equality", "A comparison that converts", "eslint npm-lint"),
        ("dead-code", "A statement after a return", "eslint"),
        ("bad-format", "Blanks where the style has none", "prettier"),
    ):
        yield from kinds_of(change, tells, C.LINT_ERROR, O.PRODUCT, uses, exact=True)
    yield from kinds_of(
        "unused-local",
        "A variable that nothing uses, seen by a type checker",
        C.TYPE_ERROR,
        O.PRODUCT,
        "tsc",
        exact=True,
        also=(Reading(category=C.LINT_ERROR, owner=O.PRODUCT, why="the option is one of style"),),
    )
    yield from kinds_of(
        "unknown-compiler-option",
        "The settings give an option that the compiler does not have",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "tsc",
        also=(
            Reading(category=C.COMPILATION_ERROR, owner=O.PRODUCT, why="the project's settings are wrong"),
        ),
    )
    yield from kinds_of(
        "missing-types",
        "The settings ask for types of a package that is not installed",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "tsc npm-build",
        also=(Reading(category=C.IMPORT_ERROR, owner=O.PRODUCT, why="the project does not declare them"),),
    )
    for change, tells, uses in (
        ("broken-settings", "The settings have a key that the tool does not know", "eslint"),
        ("unknown-plugin", "The settings load a plugin that is not installed", "eslint npm-lint"),
    ):
        yield from kinds_of(change, tells, C.ENVIRONMENT_ERROR, O.ENVIRONMENT, uses)
    yield from kinds_of(
        "script-gone",
        "The script that the plan names is no longer there",
        C.TEST_NOT_FOUND,
        O.PLAN,
        "npm-test",
        also=(Reading(category=C.SPEC_MISMATCH, owner=O.PRODUCT, why="the change took the script away"),),
    )
    for surroundings, tells, uses in (
        ("no-node", "node is not installed", "npm-test node npm-run tsc"),
        (
            "no-node-modules",
            "The packages of the project are not installed",
            "eslint tsc npm-run mocha npm-build",
        ),
    ):
        yield from kinds_of(
            None, tells, C.ENVIRONMENT_ERROR, O.ENVIRONMENT, uses, surroundings=surroundings
        )


JAVASCRIPT_KINDS: tuple[Kind, ...] = tuple(_javascript())
