"""The kinds of fault that cargo finds in Rust, and make in C."""

from __future__ import annotations

from collections.abc import Iterator

from tool_kinds import COMPILER, MODULE, Kind, kinds_of

from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O
from tools.corpus.case import Reading


def _rust() -> Iterator[Kind]:
    """What cargo says."""
    for change, tells in (
        ("wrong-type", "A value of another type than the signature says"),
        ("wrong-argument", "An argument of the wrong type"),
        ("missing-return", "A function that promises a result has none"),
    ):
        yield from kinds_of(change, tells, C.TYPE_ERROR, O.PRODUCT, "cargo-check", exact=True)
        yield from kinds_of(
            change, tells, C.TYPE_ERROR, O.PRODUCT, "cargo-build cargo-test", exact=True, also=(COMPILER,)
        )
    for change, tells in (
        ("syntax-error", "The source cannot be parsed"),
        ("unclosed-bracket", "A bracket is never closed"),
        ("moved-value", "A value is used after it was moved"),
        ("borrowed-twice", "A value is changed while it is borrowed"),
        ("undefined-name", "A name that is defined nowhere"),
    ):
        yield from kinds_of(
            change,
            f"{tells}, in Rust",
            C.COMPILATION_ERROR,
            O.PRODUCT,
            "cargo-check cargo-build cargo-test" if change == "syntax-error" else "cargo-check cargo-test",
            exact=True,
        )
    yield from kinds_of(
        "syntax-error",
        "The source cannot be parsed, in Rust",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "cargo-clippy cargo-fmt",
        exact=True,
    )
    yield from kinds_of(
        "unknown-attribute",
        "A method that the type does not have",
        C.TYPE_ERROR,
        O.PRODUCT,
        "cargo-check",
        exact=True,
        also=(COMPILER,),
    )
    yield from kinds_of(
        "third-party-import",
        "A crate is used that is not declared",
        C.IMPORT_ERROR,
        O.PRODUCT,
        "cargo-check cargo-build cargo-test",
        exact=True,
    )
    yield from kinds_of(
        "crate-not-there",
        "A declared crate is not on the machine, and there is no network",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "cargo-build cargo-test",
        also=(Reading(category=C.IMPORT_ERROR, owner=O.PRODUCT, why="the change declared a new crate"),),
    )
    yield from kinds_of(
        "module-gone",
        "A module is declared, but its file is not there",
        C.ARTIFACT_MISSING,
        O.PRODUCT,
        "cargo-check cargo-test",
        also=(MODULE,),
    )
    for change, tells, category, owner, exact in (
        ("wrong-value", "A wrong result", C.TEST_REGRESSION, O.PRODUCT, False),
        (
            "noisy-tests",
            "A wrong value, after output that reads like errors",
            C.TEST_REGRESSION,
            O.PRODUCT,
            False,
        ),
        ("product-raises", "The product panics", C.TEST_REGRESSION, O.PRODUCT, True),
        (
            "signature-changed",
            "A function that the tests call has other parameters",
            C.SPEC_MISMATCH,
            O.PRODUCT,
            False,
        ),
        ("name-gone", "A function that the tests use has another name", C.SPEC_MISMATCH, O.PRODUCT, False),
        ("dead-process", "The product ends its process", C.TEST_CRASH, O.PRODUCT, False),
        ("deep-recursion", "The product never ends to call itself", C.TEST_CRASH, O.PRODUCT, False),
        ("test-type-error", "The tests compare values of different types", C.TYPE_ERROR, O.TEST, True),
        ("test-typo", "A name in the tests is misspelt", C.COMPILATION_ERROR, O.TEST, True),
    ):
        yield from kinds_of(change, f"{tells}, in Rust", category, owner, "cargo-test", exact=exact)
    yield from kinds_of(
        "endless-loop",
        "A loop in the product never ends",
        C.TEST_TIMEOUT,
        O.PRODUCT,
        "cargo-test",
        limit=12,
    )
    for change, tells, uses in (
        ("clippy-lint", "A form that clippy has a better one for", "cargo-clippy"),
        ("unused-import", "An import that nothing uses", "cargo-clippy"),
        ("unused-variable", "A variable that nothing uses", "cargo-clippy"),
        ("bad-format", "Blanks where the style has none", "cargo-fmt"),
    ):
        yield from kinds_of(change, tells, C.LINT_ERROR, O.PRODUCT, uses, exact=change != "bad-format")
    yield from kinds_of(
        "broken-toml",
        "The manifest cannot be parsed",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "cargo-build cargo-test",
        exact=True,
        also=(Reading(category=C.ENVIRONMENT_ERROR, owner=O.ENVIRONMENT, why="no check could begin"),),
    )
    for change, tells in (
        ("required-version", "The manifest asks for a newer compiler"),
        ("toolchain-not-there", "The project asks for a toolchain that is not installed"),
    ):
        yield from kinds_of(change, tells, C.ENVIRONMENT_ERROR, O.ENVIRONMENT, "cargo-test cargo-check")
    for surroundings, tells, uses in (
        ("no-cargo", "cargo is not installed", "cargo-test cargo-clippy"),
        ("no-linker", "The linker that rustc calls is not installed", "cargo-test cargo-build"),
    ):
        yield from kinds_of(
            None, tells, C.ENVIRONMENT_ERROR, O.ENVIRONMENT, uses, surroundings=surroundings
        )


def _made_by_make() -> Iterator[Kind]:
    """What make says of C, through the compiler, the linker and the tests that it starts."""
    for change, tells in (
        ("syntax-error", "The source cannot be parsed"),
        ("missing-semicolon", "A semicolon is missing"),
        ("undeclared-name", "A name that is declared nowhere"),
    ):
        yield from kinds_of(
            change,
            f"{tells}, in C",
            C.COMPILATION_ERROR,
            O.PRODUCT,
            "make",
            exact=change != "missing-semicolon",
        )
    yield from kinds_of(
        "incompatible-pointer",
        "An argument of the wrong type, in C",
        C.TYPE_ERROR,
        O.PRODUCT,
        "make",
        exact=True,
        also=(COMPILER,),
    )
    yield from kinds_of(
        "unused-variable",
        "A variable that nothing uses, and warnings are errors",
        C.LINT_ERROR,
        O.PRODUCT,
        "make-lint make",
        exact=True,
        also=(COMPILER,),
    )
    yield from kinds_of(
        "undefined-reference",
        "A function is declared and called, but defined nowhere",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "make-test",
        placed=False,
        also=(Reading(category=C.SPEC_MISMATCH, owner=O.PRODUCT, why="the function has another name"),),
    )
    yield from kinds_of(
        "header-gone", "A header of the project is gone", C.ARTIFACT_MISSING, O.PRODUCT, "make make-test"
    )
    yield from kinds_of(
        "system-header",
        "A header of a library that is not installed",
        C.IMPORT_ERROR,
        O.PRODUCT,
        "make make-test",
        exact=True,
        also=(
            Reading(category=C.ENVIRONMENT_ERROR, owner=O.ENVIRONMENT, why="the library is of the system"),
        ),
    )
    yield from kinds_of(
        "missing-library",
        "A library is linked that is not installed",
        C.IMPORT_ERROR,
        O.PRODUCT,
        "make-test",
        also=(
            Reading(category=C.ENVIRONMENT_ERROR, owner=O.ENVIRONMENT, why="the library is of the system"),
        ),
    )
    yield from kinds_of(
        "test-syntax-error",
        "The test program cannot be parsed",
        C.COMPILATION_ERROR,
        O.TEST,
        "make-check",
        exact=True,
    )
    yield from kinds_of(
        "test-typo",
        "A name in the test program is misspelt",
        C.COMPILATION_ERROR,
        O.TEST,
        "make-check",
        exact=True,
    )
    for change, tells, category in (
        ("wrong-value", "A wrong result", C.TEST_REGRESSION),
        ("noisy-tests", "A wrong value, after output that reads like errors", C.TEST_REGRESSION),
        ("dead-process", "The program ends by a signal", C.TEST_CRASH),
    ):
        yield from kinds_of(change, f"{tells}, seen by a script", category, O.PRODUCT, "make-check")
    yield from kinds_of(
        "recipe-lacks-tool",
        "A recipe calls a program that is not installed",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "make-test",
    )
    for surroundings, tells, uses in (
        ("no-compiler", "The compiler is not installed", "make make-check make-lint"),
        ("no-make", "make is not installed", "make make-test make-lint"),
    ):
        yield from kinds_of(
            None, tells, C.ENVIRONMENT_ERROR, O.ENVIRONMENT, uses, surroundings=surroundings
        )


NATIVE_KINDS: tuple[Kind, ...] = (*_rust(), *_made_by_make())
