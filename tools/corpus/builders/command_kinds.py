"""All kinds of fault of command criteria: a use of a tool, a change, and the true diagnosis.

The label of a kind follows from the change to the project, the plan or the machine, never from the output
of a tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O
from tools.corpus.case import Reading

TOOL_NEEDS = {
    "make-test": "make",
    "make-lint": "make",
    "make-typecheck": "make",
    "make-dist": "make",
    "make": "gcc",
    "make-check": "gcc",
    "npm-run": "npm",
    "npm-report": "npm",
    "unittest-one": "",
    "unittest": "",
    "doctest": "",
    "script": "",
    "py-compile": "",
    "compileall": "",
    "json-tool": "",
    "mypy-tests": "mypy",
    "mypy-module": "mypy",
    "ruff-concise": "ruff",
    "ruff-format": "ruff",
    "coverage-run": "coverage",
    "make-coverage": "coverage",
    "lint-imports": "import-linter",
    "npm-test": "npm",
    "npm-lint": "eslint",
    "npm-build": "typescript",
    "npx-tsc": "typescript",
    "npx-eslint": "eslint",
    "tsc": "typescript",
    "unittest-service": "",
    "script-silent": "",
    "git-diff": "git",
    "cargo-test": "cargo",
    "cargo-check": "cargo",
    "cargo-build": "cargo",
    "cargo-clippy": "cargo",
    "cargo-fmt": "cargo",
}
"""The required tool, if it is not named like the use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of fault for one use of a tool."""

    use: str
    """Key of one of the project's commands."""
    change: str | None
    """Key of one of the project's changes; ``None`` if the project is unchanged."""
    tells: str
    category: C
    owner: O
    also: tuple[Reading, ...] = ()
    exact: bool = False
    """Whether the tool names the very line."""
    placed: bool = True
    wrong: bool = False
    """Whether the plan's command names something that never existed."""
    surroundings: str = ""
    """Key of the surroundings in which something is missing from the machine."""
    option: str = ""
    """Additional option of the plan's command."""
    suffix: str = ""
    limit: float = 60
    """Time limit of the criterion, in seconds."""

    @property
    def name(self) -> str:
        """Return the name of the kind: the use of the tool, and the fault."""
        fault = self.suffix or self.change or self.surroundings
        return f"{self.use}-{fault}"

    @property
    def needs(self) -> str:
        """Return the tool without which it cannot be built; empty if every machine has it."""
        return TOOL_NEEDS.get(self.use, self.use)


def kinds_of(
    change: str | None, tells: str, category: C, owner: O, uses: str, **more: object
) -> Iterator[Kind]:
    for use in uses.split():
        yield Kind(use=use, change=change, tells=tells, category=category, owner=owner, **more)  # type: ignore[arg-type]


COMPILER = Reading(category=C.COMPILATION_ERROR, owner=O.PRODUCT, why="the compiler refuses the program")
MODULE = Reading(category=C.SPEC_MISMATCH, owner=O.PRODUCT, why="the tests promise the module")
IMPORT = Reading(
    category=C.IMPORT_ERROR, owner=O.PRODUCT, why="what the checker sees is an import without a module"
)
SETTINGS = Reading(
    category=C.COMPILATION_ERROR, owner=O.PRODUCT, why="a settings file of the project cannot be parsed"
)
VERSION = Reading(
    category=C.ENVIRONMENT_ERROR, owner=O.ENVIRONMENT, why="another version of the tool may know the option"
)


CHECKERS = "mypy pyright"
LINTERS = "ruff flake8 pylint"
RUNNERS = "unittest script make-test"


def _checked() -> Iterator[Kind]:
    """Yield kinds that type checkers find."""
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
    """Yield kinds with code that cannot be parsed, for all tools."""
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
    """Yield kinds that linters and formatters find."""
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
    """Yield kinds that test runners find."""
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


def _javascript() -> Iterator[Kind]:
    """Yield kinds that only node, npm, eslint, prettier and tsc find."""
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


def _rust() -> Iterator[Kind]:
    """Yield kinds that cargo finds."""
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
    """Yield kinds that make finds in C projects, through the compiler, the linker and the tests."""
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


def _around() -> Iterator[Kind]:
    """Yield kinds in which the machine, the settings or the plan are wrong."""
    yield from kinds_of(
        None,
        "The tool is not installed",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "mypy mypy-module ruff flake8 pylint black isort bandit lint-imports coverage-run tox make-lint "
        "make-typecheck",
        surroundings="no-python-tools",
    )
    yield from kinds_of(
        None,
        "The tool's own installation is broken",
        C.ENVIRONMENT_ERROR,
        O.ENVIRONMENT,
        "mypy black flake8 pylint isort coverage-run",
        surroundings="broken-installation",
    )
    for change, tells, uses, also in (
        ("unknown-plugin", "The settings name a plugin that is not installed", "mypy", ()),
        ("required-version", "The settings ask for another version of the tool", "ruff ruff-format", ()),
        ("unknown-rule", "The settings name a rule that this version does not know", "ruff", ()),
        ("broken-toml", "The settings file cannot be parsed", "mypy ruff black", (SETTINGS,)),
        ("recipe-lacks-tool", "A recipe calls a program that is not installed", "make-dist", ()),
    ):
        yield from kinds_of(change, tells, C.ENVIRONMENT_ERROR, O.ENVIRONMENT, uses, also=also)
    yield from kinds_of(
        "prerequisite-gone",
        "A file that a rule needs is not there, and nothing makes it",
        C.ARTIFACT_MISSING,
        O.PRODUCT,
        "make-dist make",
    )
    yield from kinds_of(
        "makefile-broken",
        "A line of the Makefile cannot be parsed",
        C.COMPILATION_ERROR,
        O.PRODUCT,
        "make-lint make",
        exact=True,
    )
    yield from kinds_of(
        None,
        "The plan names what is not there",
        C.TEST_NOT_FOUND,
        O.PLAN,
        "mypy pyright ruff flake8 pylint black py-compile unittest unittest-one doctest script make-test "
        "node npm-test npm-run make tsc cargo-test eslint mocha prettier compileall",
        wrong=True,
        suffix="named-wrongly",
    )
    for use, option in (
        ("mypy", "--strict-everything"),
        ("ruff", "--only-errors"),
        ("flake8", "--max-warnings=0"),
        ("black", "--strict"),
        ("pylint", "--no-warnings"),
        ("tsc", "--strictAll"),
        ("cargo-test", "--fail-on-warnings"),
        ("unittest", "--timeout=5"),
    ):
        yield from kinds_of(
            None,
            "The plan gives the tool an option that it does not have",
            C.TEST_NOT_FOUND,
            O.PLAN,
            use,
            option=option,
            suffix="unknown-option",
            also=(VERSION,),
        )


def _coloured() -> Iterator[Kind]:
    """Yield the same kinds with colours, which put escape sequences between the words."""
    for use, change, category, exact in (
        ("mypy", "wrong-return", C.TYPE_ERROR, True),
        ("ruff", "unused-import", C.LINT_ERROR, True),
        ("make-test", "wrong-value", C.TEST_REGRESSION, False),
        ("black", "syntax-error", C.COMPILATION_ERROR, True),
        ("cargo-test", "wrong-value", C.TEST_REGRESSION, False),
        ("cargo-check", "syntax-error", C.COMPILATION_ERROR, True),
        ("tsc", "wrong-return", C.TYPE_ERROR, True),
        ("make", "syntax-error", C.COMPILATION_ERROR, True),
    ):
        yield from kinds_of(
            change,
            "The tool says it in colours",
            category,
            O.PRODUCT,
            use,
            exact=exact,
            surroundings="colours",
            suffix=f"{change}-in-colour",
        )


SURROUNDING_KINDS: tuple[Kind, ...] = (*_around(), *_coloured())


ALL_KINDS: tuple[Kind, ...] = (*PYTHON_KINDS, *JAVASCRIPT_KINDS, *NATIVE_KINDS, *SURROUNDING_KINDS)
