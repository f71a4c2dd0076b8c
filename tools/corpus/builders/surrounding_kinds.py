"""The kinds of fault of the machine, of the settings and of the plan; and tools that speak in colours."""

from __future__ import annotations

from collections.abc import Iterator

from tool_kinds import SETTINGS, VERSION, Kind, kinds_of

from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O


def _around() -> Iterator[Kind]:
    """What is wrong with the machine, the settings or the plan."""
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
    """The same in colour: the words stand between escape sequences."""
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
