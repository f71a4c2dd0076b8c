"""Rules for source that does not parse, modules that cannot be imported, and names that they lack."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import Side
from planner.text.glob_patterns import allowed, is_glob, literal_prefix
from pytest_planverify.diagnosis.case import PROJECT_SIDES, Case, is_relative, raises_by_hand, top_level
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
    if _planned_file(case, module):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at) if case.raised_at else 'A test'}, which was changed, imports "
        f"{module}, which is not there; nothing else was changed: is the name right?"
    )


def _own_module_misspelt(case: Case) -> Hit | None:
    """The product asks for a module of its own that is not there, beside one that is called nearly so."""
    module = _missing_module(case)
    error = case.error
    if module is None or error is None or not error.nearest or "/" in error.nearest[0]:
        return None
    if not case.in_product or not case.is_first_party(module) or _was_removed(case, module):
        return None
    package = module.rpartition(".")[0]
    near = ".".join(filter(None, (package, error.nearest[0])))
    return Hit(suggestion=f"There is no module {module}{_at(case)}; did you mean {near}?")


def _own_module_not_built(case: Case) -> Hit | None:
    """A module that the committed product imports of itself: a build makes it, or it was not shipped."""
    module, error = _missing_module(case), case.error
    if module is None or error is None or not case.is_first_party(module) or _was_removed(case, module):
        return None
    source = next((each for each in error.nearest if "/" in each), None)
    if source is not None:
        return Hit(suggestion=f"{module} is not built here from {source}{_at(case)}: build the project.")
    if case.changed != frozenset() or not case.in_product or _planned_file(case, module):
        return None
    return Hit(
        suggestion=f"{module} is not here{_at(case)}, and nothing was changed: a build makes it, or it was "
        "not shipped. Install the project again.",
        weight=0.85,
    )


def _own_module_missing(case: Case) -> Hit | None:
    module = _missing_module(case) or _removed_submodule(case)
    if module is None:
        return None
    planned = _planned_file(case, module)
    if not (planned or case.is_first_party(module) or _was_removed(case, module)):
        return None
    path = planned or module.replace(".", "/") + ".py"
    promised = f"; {case.evidence.contract_path} describes it" if case.evidence.contract_path else ""
    near = f", or did you mean {case.error.nearest[0]}?" if case.error and case.error.nearest else "."
    what = f"The module {module} does not exist{_at(case)}"
    return Hit(suggestion=f"{what}: write {path}{promised}{near}")


def _planned_file(case: Case, module: str) -> str | None:
    """Return the file that a todo may write to make the module; none by globs that name no package."""
    top = top_level(module)
    source = (case.raised_at.source if case.raised_at is not None else None) or ""
    asked = [name for name in _IMPORTED.findall(source) if name.startswith(f"{module}.")]
    starts = [
        (start, pattern)
        for start in ("", "src/", "lib/")
        for pattern in case.evidence.granted
        if literal_prefix(pattern).startswith((f"{start}{top}/", f"{start}{top}.py"))
        or literal_prefix(pattern) == f"{start}{top}"
    ]
    for name in (*asked, module):
        for start, pattern in starts:
            for end in (".py", "/__init__.py"):
                path = f"{start}{name.replace('.', '/')}{end}"
                if allowed(path, (pattern, *(each for each in case.evidence.granted if each[:1] == "!"))):
                    return path
    return next((pattern for _, pattern in starts if not is_glob(pattern)), None)


_IMPORTED = re.compile(r"^(?:from|import) ([\w.]+)")


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


_OTHER_NAMES = {
    "PIL": "pillow", "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python",
    "dateutil": "python-dateutil", "dotenv": "python-dotenv", "git": "gitpython", "jwt": "pyjwt",
    "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip
"""Modules whose distributions have another name."""


def _declared_not_installed(case: Case) -> Hit | None:
    module = _missing_module(case)
    if module is None or case.is_first_party(module):
        return None
    top = top_level(module)
    names = {_OTHER_NAMES.get(top, top).lower().replace("_", "-"), top.lower().replace("_", "-")}
    for each in case.evidence.unmet:
        if each.installed is None and each.name in names:
            return Hit(
                suggestion=f"{each.file} declares {each.name}{each.asked}, and it is not installed here"
                f"{_at(case)}: install what the project declares."
            )
    return None


def _version_out_of_bounds(case: Case) -> Hit | None:
    """An installed version that the metadata excludes, on the way of the failure or in its words."""
    error = case.error
    if error is None or case.raised_in_changed or case.is_error("builtins.SyntaxError"):
        return None
    for each in case.evidence.unmet:
        if each.installed is None:
            continue
        seen = {top_level(frame.module or "") for frame in case.frames if frame.side is Side.THIRD_PARTY}
        seen.update(top_level(word) for word in _MODULE_WORDS.findall(error.message))
        seen.update(
            top_level(word)
            for word in (error.name or "", (error.object_type or "").removeprefix("module "))
        )
        takes_part = not seen.isdisjoint(each.modules)
        if takes_part or case.changed == frozenset():
            return Hit(
                suggestion=f"{each.name} {each.installed} is installed, and {each.file} asks for "
                f"{each.asked}: install what the project declares, then run again.",
                weight=1.0 if takes_part else 0.75,
            )
    return None


_MODULE_WORDS = re.compile(r"'([A-Za-z_][\w.]*)'")


def _library_differs(case: Case) -> Hit | None:
    """Unchanged code asks an installed library for what this version does not have, or has otherwise."""
    error = case.error
    if error is None or case.changed != frozenset() or case.in_nobody:
        return None
    found = imported_name(case)
    module = found[0] if found else (error.object_type or "").removeprefix("module ")
    is_foreign = error.object_side is Side.THIRD_PARTY or (
        bool(found) and not _is_first_party_name(case, module) and not case.is_test_package(module)
    )
    if not is_foreign or not (found or case.is_error("builtins.AttributeError", "builtins.TypeError")):
        return None
    if top_level(module) in sys.stdlib_module_names:
        return None
    return Hit(
        suggestion=f"The installed {top_level(module) or 'library'} is not what unchanged code "
        f"expects{_at(case)}: {said(error)}. Install a version that fits."
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


# fmt: off
LOADING_RULES: tuple[Rule, ...] = (
    Rule("declared-not-installed", Category.ENVIRONMENT_ERROR, 0.96, _declared_not_installed,
         about=("builtins.ImportError",),
         because="A package that the project declares is not installed here."),
    Rule("version-out-of-bounds", Category.ENVIRONMENT_ERROR, 0.85, _version_out_of_bounds,
         second=(Category.TEST_REGRESSION, 0.15),
         because="An installed version is one that the project's metadata excludes."),
    Rule("library-differs", Category.ENVIRONMENT_ERROR, 0.7, _library_differs,
         about=("builtins.AttributeError", "builtins.ImportError", "builtins.TypeError"),
         second=(Category.IMPORT_ERROR, 0.25),
         because="Nothing was changed, and an installed library lacks what the code asks of it."),
    Rule("source-does-not-parse", Category.COMPILATION_ERROR, 0.97, _syntax,
         about=("builtins.SyntaxError",),
         because="A source file of the project is not Python."),
    Rule("dependency-does-not-parse", Category.ENVIRONMENT_ERROR, 0.75, _foreign_syntax,
         about=("builtins.SyntaxError",), second=(Category.IMPORT_ERROR, 0.2),
         because="A source file of an installed package is not Python of this version."),
    Rule("circular-import", Category.TEST_REGRESSION, 0.93, _circular,
         about=("builtins.AttributeError", "builtins.ImportError",), second=(Category.IMPORT_ERROR, 0.2),
         because="A module was used while it was still being imported."),
    Rule("tests-not-importable", Category.ENVIRONMENT_ERROR, 0.9, _test_package,
         about=("builtins.ImportError",), second=(Category.ARTIFACT_MISSING, 0.2),
         because="What belongs to the tests cannot be imported from where they run."),
    Rule("own-module-not-importable", Category.ENVIRONMENT_ERROR, 0.85, _own_module_elsewhere,
         about=("builtins.ImportError",), second=(Category.IMPORT_ERROR, 0.2),
         because="A module of the project is there, but not where the interpreter looks."),
    Rule("import-of-changed-tests", Category.TEST_REGRESSION, 0.65, _import_of_changed_tests,
         owner=Owner.TEST, about=("builtins.ImportError",), second=(Category.IMPORT_ERROR, 0.3),
         because="Only tests were changed, and they import a module that is not there."),
    Rule("own-module-misspelt", Category.IMPORT_ERROR, 0.9, _own_module_misspelt,
         about=("builtins.ImportError",), second=(Category.ARTIFACT_MISSING, 0.1),
         because="The product imports a module of its own by a name that is nearly that of another."),
    Rule("own-module-not-built", Category.ENVIRONMENT_ERROR, 0.85, _own_module_not_built,
         about=("builtins.ImportError",), second=(Category.ARTIFACT_MISSING, 0.15),
         because="A module of the project that a build makes, or that was not shipped, is not here."),
    Rule("own-module-missing", Category.ARTIFACT_MISSING, 0.88, _own_module_missing,
         about=("builtins.ImportError",), second=(Category.SPEC_MISMATCH, 0.2),
         because="A module of the project does not exist."),
    Rule("native-library-missing", Category.ENVIRONMENT_ERROR, 0.88, _native_library,
         about=("builtins.ImportError", "builtins.OSError",),
         because="A native library that a module needs is not on this machine."),
    Rule("part-of-python-missing", Category.ENVIRONMENT_ERROR, 0.8, _part_of_python,
         about=("builtins.ImportError",), second=(Category.IMPORT_ERROR, 0.25),
         because="A module of the standard library is missing from this interpreter."),
    Rule("dependency-missing", Category.IMPORT_ERROR, 0.95, _dependency, about=("builtins.ImportError",),
         second=(Category.ENVIRONMENT_ERROR, 0.1),
         because="A module that is not of the project cannot be found."),
)
# fmt: on


_DEPENDENCY_WORDS = re.compile(r"\b(?:dependenc|install|pip |librar)", re.IGNORECASE)


def _is_first_party_name(case: Case, module: str) -> bool:
    if case.error is not None and case.error.object_side is not None:
        return case.error.object_side is Side.PRODUCT
    return case.is_first_party(module)


def _promised_name(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None or not case.in_test or not _is_first_party_name(case, found[0]):
        return None
    module, name = found
    where = f" ({case.error.path})" if case.error and case.error.path else ""
    return Hit(
        suggestion=f"{module}{where} has no {name}, which {_by(case)} asks for: add it, or settle its name."
    )


def _by(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "the test"


def _helper_of_tests(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None or not case.in_test or case.error is None or not is_own_file(case.error):
        return None
    if not case.is_test_package(found[0]) and case.error.object_side is not Side.TEST:
        return None
    return Hit(
        suggestion=f"{found[0]}, which belongs to the tests, has no {found[1]}, which {_by(case)} imports."
    )


def _own_name(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None or not (_is_first_party_name(case, found[0]) or case.is_test_package(found[0])):
        return None
    module, name = found
    owner = Owner.TEST if case.is_test_package(module) and case.in_test else Owner.PRODUCT
    return Hit(suggestion=f"{module} has no {name}, which {_by(case)} imports.", owner=owner)


def _foreign_name(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None:
        return None
    module, name = found
    if top_level(module) in sys.stdlib_module_names:
        return Hit(
            suggestion=f"{module} of this Python has no {name}{_at(case)}: it came, or went, with another "
            "version of Python.",
            owner=Owner.ENVIRONMENT if case.way_unchanged else None,
        )
    return Hit(
        suggestion=f"The installed {top_level(module)} has no {name} in {module}{_at(case)}: pin a "
        f"version that has it.",
        owner=Owner.ENVIRONMENT if case.in_test else Owner.PRODUCT,
    )


def _other_import(case: Case) -> Hit | None:
    if case.error is None or not case.is_error("builtins.ImportError"):
        return None
    if is_said_by_hand(case) and not _DEPENDENCY_WORDS.search(case.error.message):
        return None
    return Hit(
        suggestion=f"An import failed{_at(case)}: {said(case.error)}.",
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


# fmt: off
IMPORTED_NAME_RULES: tuple[Rule, ...] = (
    Rule("promised-name-missing", Category.SPEC_MISMATCH, 0.92, _promised_name,
         about=("builtins.ImportError",), second=(Category.IMPORT_ERROR, 0.15),
         because="A test imports a name that an existing module of the project lacks."),
    Rule("helper-of-tests-missing", Category.TEST_REGRESSION, 0.85, _helper_of_tests, owner=Owner.TEST,
         about=("builtins.ImportError",), second=(Category.IMPORT_ERROR, 0.2),
         because="A test imports a name that a helper module of the tests lacks."),
    Rule("own-name-missing", Category.IMPORT_ERROR, 0.8, _own_name, about=("builtins.ImportError",),
         second=(Category.SPEC_MISMATCH, 0.25),
         because="The project imports a name that its own module lacks."),
    Rule("name-missing-in-dependency", Category.IMPORT_ERROR, 0.87, _foreign_name,
         about=("builtins.ImportError",), second=(Category.ENVIRONMENT_ERROR, 0.2),
         because="An installed package lacks a name that is imported from it."),
    Rule("import-failed", Category.IMPORT_ERROR, 0.8, _other_import, about=("builtins.ImportError",),
         because="An import failed."),
)
# fmt: on
