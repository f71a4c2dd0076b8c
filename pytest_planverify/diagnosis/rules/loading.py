"""Rules for source that does not parse and for modules that cannot be imported."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.reading import PROJECT_SIDES, Case, is_relative, raises_by_hand, top_level
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import alike, place, quote, said

if TYPE_CHECKING:
    from planner.model.evidence import ExceptionFact

_CANNOT_IMPORT = re.compile(
    r"^cannot import name '(?P<name>[^']+)' from (?P<partial>partially initialized module "
    r")?'(?P<module>[^']+)'"
)
_PARTIAL_ATTRIBUTE = re.compile(
    r"^(?:partially initialized module '(?P<module>[^']+)'|cannot access submodule '(?P<sub>[^']+)') "
    r".*circular import"
)
_NATIVE = re.compile(
    r"^(?:\S+\.(?:so|dylib)[.\d]*: (?:cannot open shared object file|undefined symbol|version `)|"
    r"DLL load failed|dlopen\(|/\S+/lib\S+\.so\S*: version `)"
)
_REMOVED = frozenset(
    {"asynchat", "asyncore", "cgi", "crypt", "distutils", "imp", "nntplib", "pipes", "smtpd", "telnetlib"}
)
"""Modules that have left the standard library since Python 3.12."""


def _at(case: Case) -> str:
    return f" (imported by {place(case.raised_at)})" if case.raised_at else ""


def _source_side(error: ExceptionFact) -> Side | None:
    """Whose file a ``SyntaxError`` speaks of; ``None`` for text that is no file."""
    if error.path is None or error.path.startswith("<"):
        return None
    if error.object_side is not None:
        return error.object_side
    return Side.PRODUCT if is_relative(error.path) and error.path.endswith(".py") else None


def _syntax(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error("builtins.SyntaxError"):
        return None
    side = _source_side(error)
    if side not in PROJECT_SIDES or error.path is None:
        return None
    position = f"{error.path}:{error.line}" if error.line else error.path
    return Hit(
        suggestion=f"{position} is not Python: {said(error)}.",
        location=Location(path=error.path, line=error.line),
        owner=Owner.TEST if side is Side.TEST else Owner.PRODUCT,
    )


def _foreign_syntax(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error("builtins.SyntaxError"):
        return None
    if _source_side(error) not in (Side.THIRD_PARTY, Side.FRAMEWORK, Side.STDLIB):
        return None
    return Hit(
        suggestion=f"The installed {error.path}:{error.line} is not Python of this version: "
        f"{said(error)}. Install a "
        "version that fits."
    )


def _circular(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error("builtins.ImportError", "builtins.AttributeError"):
        return None
    named = _CANNOT_IMPORT.match(error.message)
    partial = named if named and named["partial"] else _PARTIAL_ATTRIBUTE.match(error.message)
    if partial is None:
        return None
    module = partial["module"] or error.name or "a module"
    return Hit(
        suggestion=f"{module} is imported again while it is still being imported{_at(case)}: break "
        f"the circle.",
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


def _missing_module(case: Case) -> str | None:
    error = case.error
    if error is None or not case.is_error("builtins.ModuleNotFoundError") or is_said_by_hand(case):
        return None
    return error.name


def is_said_by_hand(case: Case) -> bool:
    """A function of the product raises it by its own logic: nothing was imported."""
    last = case.innermost
    return (
        last is not None and last.function != "<module>" and last is case.raised_at and raises_by_hand(last)
    )


def imported_name(case: Case) -> tuple[str, str] | None:
    """Module and name of a ``cannot import name``."""
    if case.error is None or not case.is_error("builtins.ImportError") or is_said_by_hand(case):
        return None
    found = _CANNOT_IMPORT.match(case.error.message)
    if found is None or found["partial"]:
        return None
    return case.error.name or found["module"], found["name"]


def _test_package(case: Case) -> Hit | None:
    error, module = case.error, _missing_module(case)
    if error is None:
        return None
    if module is not None and (case.is_test_package(module) or _is_folder_of_tests(case, module)):
        there = error.path is not None
        state = f"stands in {error.path} but" if there else "belongs to the tests and"
        return Hit(
            suggestion=f"{module} {state} cannot be imported from here{_at(case)}: run from the right "
            f"folder, add the "
            "missing __init__.py, or put it on the path.",
            weight=1.0 if there else 0.75,
            owner=_owner_of_packages(case),
        )
    name = imported_name(case)
    if name is None or not case.is_test_package(name[0]) or is_own_file(error):
        return None
    return Hit(
        suggestion=f"{name[0]} is another package here than the project's own tests, so it has no "
        f"{name[1]}{_at(case)}: "
        "an __init__.py is missing, or the path is wrong."
    )


def _is_folder_of_tests(case: Case, module: str) -> bool:
    """Whether the module is a folder on the way to the test itself."""
    folders = (case.evidence.nodeid or "").partition("::")[0].split("/")[:-1]
    return top_level(module) in folders and not case.is_first_party(module)


def _owner_of_packages(case: Case) -> Owner | None:
    """The tests', where a change of theirs made a folder no package any more."""
    gone = (
        file.side is Side.TEST and file.path.endswith("__init__.py") for file in case.evidence.changed or ()
    )
    return Owner.TEST if any(gone) else None


def is_own_file(error: ExceptionFact) -> bool:
    """Whether the module that lacks a name is a file of the project."""
    if error.object_side is not None:
        return error.object_side in PROJECT_SIDES
    return error.path is not None and is_relative(error.path)


def _own_module_elsewhere(case: Case) -> Hit | None:
    module = _missing_module(case)
    if module is None or case.error is None or not case.is_first_party(module) or case.error.path is None:
        return None
    return Hit(
        suggestion=f"{module} stands in {case.error.path}, but the interpreter does not find "
        f"it{_at(case)}: install the "
        "project, or set pythonpath.",
        owner=_owner_of_packages(case),
    )


def _import_of_changed_tests(case: Case) -> Hit | None:
    """Of all code only tests were changed, and they import what is not there; no contract promises it."""
    module = _missing_module(case)
    if module is None or not case.in_test or not case.raised_in_changed or not case.only_tests_changed:
        return None
    if case.evidence.contract_path or _was_removed(case, module) or not case.is_first_party(module):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at) if case.raised_at else 'A test'}, which was changed, imports "
        f"{module}, which is not there; nothing else was changed: is the name right?"
    )


def _own_module_missing(case: Case) -> Hit | None:
    module = _missing_module(case) or _removed_submodule(case)
    if module is None or not (case.is_first_party(module) or _was_removed(case, module)):
        return None
    path = module.replace(".", "/") + ".py"
    promised = f"; {case.evidence.contract_path} describes it" if case.evidence.contract_path else ""
    return Hit(suggestion=f"The module {module} does not exist{_at(case)}: write {path}{promised}.")


def _removed_submodule(case: Case) -> str | None:
    """The module that ``from package import module`` asked for, where its file was removed."""
    found = imported_name(case)
    module = f"{found[0]}.{found[1]}" if found else ""
    return module if module and _was_removed(case, module) else None


def _was_removed(case: Case, module: str) -> bool:
    """Whether one of the files that were changed, and so are gone, was this module."""
    path = module.replace(".", "/")
    endings = (f"/{path}.py", f"/{path}/__init__.py")
    return any(
        file.side is Side.PRODUCT and f"/{file.path}".endswith(endings)
        for file in case.evidence.changed or ()
    )


def is_native_library(case: Case) -> bool:
    """Whether the system did not find, or could not use, a library that is no Python."""
    if case.error is None or not case.is_error("builtins.ImportError", "builtins.OSError"):
        return False
    return bool(_NATIVE.match(case.error.message))


def _native_library(case: Case) -> Hit | None:
    if not is_native_library(case) or case.error is None:
        return None
    return Hit(
        suggestion=f"A native library is missing on this machine{_at(case)}: {quote(case.error.message)}."
    )


def _part_of_python(case: Case) -> Hit | None:
    module = _missing_module(case)
    if (
        module is None
        or case.raised_at is None
        or top_level(module) not in sys.stdlib_module_names - _REMOVED
    ):
        return None
    if case.raised_in_changed and "." in module:
        return None
    return Hit(
        suggestion=f"This Python was built without {module}{_at(case)}, or it is for another system "
        f"or version."
    )


def _misspelt_part(case: Case) -> Hit | None:
    """A part of a package of the standard library that there is, by a name that there is not."""
    module = _missing_module(case)
    if module is None or "." not in module or not case.raised_in_changed:
        return None
    if top_level(module) not in sys.stdlib_module_names:
        return None
    return Hit(
        suggestion=f"Python has no {module}{_at(case)}, and the file that asks for it was changed: "
        "correct the name.",
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


def _dependency(case: Case) -> Hit | None:
    module = _missing_module(case)
    if module is None:
        return None
    package = top_level(module)
    if package in _REMOVED:
        remedy = "it has left the standard library, so replace it"
    elif similar := alike(package, case.evidence.first_party, cutoff=0.85):
        remedy = f"declare and install {package}, or did you mean {similar[0]}?"
    elif case.in_test:
        remedy = f"install {package}, or write it if it is to be the project's own"
    else:
        remedy = f"declare and install {package}"
    return Hit(
        suggestion=f"No module named {module}{_at(case)}: "
        f"{remedy.rstrip('?')}{'?' if remedy.endswith('?') else '.'}",
        owner=Owner.ENVIRONMENT if case.in_test else Owner.PRODUCT,
    )


LOADING_RULES: tuple[Rule, ...] = (
    Rule(
        id="source-does-not-parse",
        about=frozenset({"builtins.SyntaxError"}),
        because="A source file of the project is not Python.",
        category=Category.COMPILATION_ERROR,
        confidence=0.97,
        read=_syntax,
    ),
    Rule(
        id="dependency-does-not-parse",
        about=frozenset({"builtins.SyntaxError"}),
        because="A source file of an installed package is not Python of this version.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.IMPORT_ERROR, 0.2),
        read=_foreign_syntax,
    ),
    Rule(
        id="circular-import",
        about=frozenset({"builtins.ImportError", "builtins.AttributeError"}),
        because="A module was used while it was still being imported.",
        category=Category.TEST_REGRESSION,
        confidence=0.93,
        runner_up=(Category.IMPORT_ERROR, 0.2),
        read=_circular,
    ),
    Rule(
        id="tests-not-importable",
        about=frozenset({"builtins.ImportError"}),
        because="What belongs to the tests cannot be imported from where they run.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        runner_up=(Category.ARTIFACT_MISSING, 0.2),
        read=_test_package,
    ),
    Rule(
        id="own-module-not-importable",
        about=frozenset({"builtins.ImportError"}),
        because="A module of the project is there, but not where the interpreter looks.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.85,
        runner_up=(Category.IMPORT_ERROR, 0.2),
        read=_own_module_elsewhere,
    ),
    Rule(
        id="import-of-changed-tests",
        about=frozenset({"builtins.ImportError"}),
        because="Only tests were changed, and they import a module that is not there.",
        category=Category.TEST_REGRESSION,
        owner=Owner.TEST,
        confidence=0.65,
        runner_up=(Category.IMPORT_ERROR, 0.3),
        read=_import_of_changed_tests,
    ),
    Rule(
        id="own-module-missing",
        about=frozenset({"builtins.ImportError"}),
        because="A module of the project does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.88,
        runner_up=(Category.SPEC_MISMATCH, 0.2),
        read=_own_module_missing,
    ),
    Rule(
        id="native-library-missing",
        about=frozenset({"builtins.ImportError", "builtins.OSError"}),
        because="A native library that a module needs is not on this machine.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.88,
        read=_native_library,
    ),
    Rule(
        id="part-of-python-missing",
        about=frozenset({"builtins.ImportError"}),
        because="A module of the standard library is missing from this interpreter.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.8,
        runner_up=(Category.IMPORT_ERROR, 0.25),
        read=_part_of_python,
    ),
    Rule(
        id="part-of-python-misspelt",
        about=frozenset({"builtins.ImportError"}),
        because="A file that was changed imports a part of the standard library that never was.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        runner_up=(Category.IMPORT_ERROR, 0.25),
        read=_misspelt_part,
    ),
    Rule(
        id="dependency-missing",
        about=frozenset({"builtins.ImportError"}),
        because="A module that is not of the project cannot be found.",
        category=Category.IMPORT_ERROR,
        confidence=0.95,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.1),
        read=_dependency,
    ),
)
