"""Rules for source that does not parse, modules that cannot be imported, and names that modules lack.

The order matters: an absent module is the environment's fault if the project declares its package, a
missing artifact if it is the project's own, and otherwise an undeclared dependency.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from planner.model.outcome import Location
from planner.model.taxonomy import Owner
from planner.model.verdicts import Side
from planner.text.glob_patterns import allowed, is_glob, literal_prefix
from pytest_planverify.diagnosis.case import PROJECT_SIDES, Case, is_relative, top_level
from pytest_planverify.diagnosis.known import DISTRIBUTION_OF_MODULE, names_in
from pytest_planverify.diagnosis.messages import alike, error_text, place, quote, since
from pytest_planverify.diagnosis.rule import Hit
from pytest_planverify.diagnosis.tool_output import CANNOT_IMPORT

if TYPE_CHECKING:
    from planner.model.evidence import ExceptionFact, Frame

_IMPORT_LINE = re.compile(r"^(?:from|import) ([\w.]+)")
_MODULE_WORDS = re.compile(r"'([A-Za-z_][\w.]*)'")
_DEPENDENCY_WORDS = re.compile(r"\b(?:dependenc|install|pip |librar)", re.IGNORECASE)
_ASKED_FOR = re.compile(
    r"\b(?:import|install)(?:ed|ing)? (?:(?:the|package|module|library) )*['\"`]?([a-z][\w-]*)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Za-z][\w-]*")
_NATIVE = re.compile(
    r"^(?:\S+\.(?:so|dylib)\S*: (?:cannot open shared object file|undefined symbol|version `)|"
    r"DLL load failed|dlopen\()"
)
_REMOVED = frozenset(names_in("removed_modules"))


def _by(case: Case) -> str:
    """Return the frame that imports or asks for a package, as a phrase in parentheses; empty if unknown."""
    verb = "asked for" if _is_raised_by_hand(case) else "imported"
    return f" ({verb} by {place(case.raised_at)})" if case.raised_at else ""


def _is_raised_by_hand(case: Case) -> bool:
    """Return whether a project function raises the import error itself, so that no import failed."""
    last = case.innermost
    is_function = last is not None and last is case.raised_at and last.function != "<module>"
    return is_function and case.is_by_hand


def _missing_module(case: Case) -> str | None:
    """Return the dotted name of a module that was not found, or ``None``."""
    is_missing = case.is_error("ModuleNotFoundError") and not _is_raised_by_hand(case)
    return case.error.name if is_missing else None


def _imported_name(case: Case) -> tuple[str, str] | None:
    """Return module and name of a ``cannot import name``; ``None`` for other errors and import cycles."""
    found = CANNOT_IMPORT.match(case.error.message) if case.is_error("ImportError") else None
    if found is None or found["partial"] or _is_raised_by_hand(case):
        return None
    return case.error.name or found["name"], found["what"]


def requirement_unmet(case: Case) -> str | None:
    """A package that the project's metadata declares is missing, or of another version than it asks for."""
    error, module = case.error, _missing_module(case) or ""
    top = "" if case.is_first_party(module) else top_level(module)
    found = {DISTRIBUTION_OF_MODULE.get(top, top), top}
    if case.is_by_hand:  # "Please install numpy to use this", or "cannot import numpy"
        found.update((_WORDS if case.is_error("ImportError") else _ASKED_FOR).findall(error.message))
    names = {name.lower().replace("_", "-") for name in found if name}
    words = (error.name or "", (error.object_type or "").removeprefix("module "))
    seen = {top_level(word) for word in (*words, *_MODULE_WORDS.findall(error.message))}
    # A library that only calls the tests, such as hypothesis, explains no failure of changed code below it.
    frames = _inside_of_project(case.frames) if case.product_changed else case.frames
    if case.is_error("BaseExceptionGroup"):  # raised by what collected the errors, such as hypothesis
        frames = ()
    seen |= {top_level(frame.module or "") for frame in frames if frame.side is Side.THIRD_PARTY}
    is_unparsed = case.is_error("SyntaxError") and not case.is_changed(error.path or "")
    may_be_old = not case.raised_in_changed and not case.is_error("SyntaxError")
    for each in case.evidence.unmet:
        remedy = "install what the project declares"
        # ``railroad-diagrams`` provides ``railroad``, ``flask-login`` depends on ``flask``, and
        # ``pytest-xprocess`` provides ``xprocess``.
        word = top.lower().replace("_", "-")
        is_similar = each.name.startswith(f"{word}-") or each.name.endswith(f"-{word}")
        is_named = each.name in names or (word and is_similar)
        if each.installed is None and is_named:
            wanted = f"{each.file} declares {each.name}{each.asked}"
            return f"{wanted}, which is not installed{_by(case)}: {remedy}."
        # A violated pin proves nothing by itself, such as one for building documentation: the package has
        # to occur in the failure.
        if each.installed is not None and may_be_old and not seen.isdisjoint(each.modules):
            wanted = f"{each.file} requires {each.asked}"
            return f"{each.name} {each.installed} is installed, but {wanted}: {remedy}."
        # Source for a newer Python does not parse, or asks the standard library for what it does not have.
        if each.name == "python" and (
            is_unparsed or (may_be_old and not seen.isdisjoint(sys.stdlib_module_names))
        ):
            return f"This Python is {each.installed}, but {each.file} requires {each.asked}: use another."
    return None


def _inside_of_project(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the frames below the innermost one of the project."""
    own = [number for number, frame in enumerate(frames, 1) if frame.side in PROJECT_SIDES]
    return frames[max(own, default=0) :]


def library_differs(case: Case) -> str | None:
    """Nothing was changed, and an installed library lacks what the code asks of it."""
    error = case.error
    found = _imported_name(case)
    module = found[0] if found else (error.object_type or "").removeprefix("module ")
    is_foreign = error.object_side is Side.THIRD_PARTY or (
        bool(found) and not _is_own(case, module) and not case.is_test_package(module)
    )
    is_asked = found or case.is_error("AttributeError", "TypeError")
    if not is_foreign or not is_asked or top_level(module) in sys.stdlib_module_names:
        return None
    return (
        f"The installed {top_level(module) or 'library'} differs from what unchanged code "
        f"expects{_by(case)}: {error_text(error)}. Install a suitable version."
    )


def source_does_not_parse(case: Case) -> Hit | None:
    """A source file of the project does not parse."""
    error, side = case.error, _side_of_source(case.error)
    if side not in PROJECT_SIDES or error.path is None:
        return None
    position = f"{error.path}:{error.line}" if error.line else error.path
    language = "Python" if error.path.endswith((".py", ".pyi")) else "source"
    return Hit(
        suggestion=f"{position} is not valid {language}: {error_text(error)}.",
        location=Location(path=error.path, line=error.line),
        owner=Owner.TEST if side is Side.TEST else Owner.PRODUCT,
    )


def _side_of_source(error: ExceptionFact) -> Side | None:
    """Return the side of the file that a ``SyntaxError`` is about; ``None`` for text that is no file."""
    if error.path is None or error.path.startswith("<"):
        return None
    is_product = is_relative(error.path) and error.path.endswith(".py")
    return error.object_side or (Side.PRODUCT if is_product else None)


def dependency_does_not_parse(case: Case) -> str | None:
    """A source file of an installed package is not Python of this version."""
    error = case.error
    if _side_of_source(error) not in (Side.THIRD_PARTY, Side.FRAMEWORK, Side.STDLIB):
        return None
    return (
        f"The installed {error.path}:{error.line} is not valid for this Python: {error_text(error)}. "
        "Install a suitable version."
    )


def circular_import(case: Case) -> Hit | None:
    """A module was used while it was still being imported."""
    if "circular import)" not in case.error.message:
        return None
    owner = Owner.TEST if case.in_test else Owner.PRODUCT
    return Hit(suggestion=f"Resolve the circular import{_by(case)}: {error_text(case.error)}.", owner=owner)


def tests_not_importable(case: Case) -> Hit | str | None:
    """A part of the tests cannot be imported from where they run."""
    error, module = case.error, _missing_module(case)
    folders = (case.evidence.nodeid or "").partition("::")[0].split("/")[:-1]
    if module is not None and (
        case.is_test_package(module)
        # A folder on the test's path, as in ``from tests.helpers import ...``.
        or (top_level(module) in folders and not case.is_first_party(module))
    ):
        state = f"is in {error.path} but" if error.path else "belongs to the tests and"
        return Hit(
            suggestion=f"{module} {state} cannot be imported{_by(case)}: run from the right "
            "folder, add the missing __init__.py, or put it on the path.",
            weight=1.0 if error.path else 0.75,
        )
    name = _imported_name(case)
    if name is None or not case.is_test_package(name[0]) or _is_own_file(error):
        return None
    return (
        f"{name[0]} is another package than the tests of the project, so it has no {name[1]}"
        f"{_by(case)}: an __init__.py is missing, or the path is wrong."
    )


def _is_own_file(error: ExceptionFact) -> bool:
    """Return whether the module that lacks a name is a file of the project, product or test."""
    if error.object_side is not None:
        return error.object_side in PROJECT_SIDES
    return error.path is not None and is_relative(error.path)


def own_module_not_installed(case: Case) -> Hit | str | None:
    """A module of the project is not where the interpreter looks, was not built or not shipped."""
    module, imported = _missing_module(case), _imported_name(case)
    source = next((each for each in case.error.nearest if "/" in each), None)
    if imported is not None and source is not None:  # ``from package import module``
        module = ".".join(imported)
    # What a script imports by a relative path is not a matter of an installation.
    if module is None or top_level(module) not in case.first_party:
        return None
    if source is not None and not case.removed_file(module):
        return f"{module} was not built from {source}{_by(case)}: build the project."
    if case.error.path is not None and imported is None:
        lost = f"{module} is in {case.error.path}, but the interpreter does not find it{_by(case)}"
        return f"{lost}: install the project, or set pythonpath."
    is_misspelt = source is None and bool(case.error.nearest)
    if not case.nothing_changed or not case.in_product or is_misspelt or _planned_file(case, module):
        return None
    unshipped = (
        f"{module} is missing{_by(case)}, and nothing was changed: a build makes it, or it was not shipped"
    )
    return Hit(suggestion=f"{unshipped}. Install the project again.", weight=0.85)


def import_of_changed_tests(case: Case) -> str | None:
    """Only tests were changed, and they import a module that is not there."""
    module = _missing_module(case)
    if module is None or not case.only_tests_changed or case.is_new_promise:
        return None
    is_promised = case.evidence.contract_path or _planned_file(case, module)
    if is_promised or case.removed_file(module) or not case.is_first_party(module):
        return None
    return (
        f"{place(case.raised_at)}, which was changed, imports {module}, which does not exist; nothing else "
        "was changed: is the name right?"
    )


def own_module_misspelt(case: Case) -> str | None:
    """The product imports a module of its own by a name that is nearly that of another."""
    module, near = _missing_module(case), next(iter(case.error.nearest), "/")
    if module is None or "/" in near:
        return None
    if not case.is_first_party(module) or case.removed_file(module):
        return None
    package = module.rpartition(".")[0]
    return (
        f"The module {module} does not exist{_by(case)}; did you mean "
        f"{'.'.join(filter(None, (package, near)))}?"
    )


def own_module_missing(case: Case) -> Hit | str | None:
    """A module of the project does not exist, or a change removed it."""
    absent, imported = _missing_module(case), _imported_name(case)
    module = ".".join(imported) if absent is None and imported else absent  # ``from package import module``
    if module is None:
        return None
    # What a command prints does not tell whether the file is there and only not found.
    lack = "was not found" if case.printed else "does not exist"
    missing, similar = f"The module {module} {lack}{_by(case)}", next(iter(case.error.nearest), None)
    if removed := case.removed_file(module):
        remedy = f"did you mean {similar}?" if similar else "restore it."
        return Hit(
            suggestion=f"{missing}; {removed} was removed or renamed{since(case.evidence)}: {remedy}",
            location=None if similar else Location(path=removed),
        )
    planned, name = _planned_file(case, module), module.rpartition(".")[2]
    if absent is None:
        # What a package lacks may be no module; a todo that names its file shows that it is.
        is_named = planned in case.evidence.granted
        if not is_named or not f"/{planned}".endswith((f"/{name}.py", f"/{name}/__init__.py")):
            return None
    elif not (planned or case.is_first_party(module)):
        return None
    promised = f"; {case.evidence.contract_path} describes it" if case.evidence.contract_path else ""
    path = (
        planned
        or case.error.place
        or ("it, or correct its name or the search path" if case.printed else "it")
    )
    asked = _IMPORT_LINE.findall((case.raised_at.source if case.raised_at is not None else None) or "")
    if not planned and any(name.startswith(f"{module}.") for name in asked):
        path = path.replace(".py", "/__init__.py")  # a submodule is imported, so it has to be a package
    meant = f", or did you mean {similar}?" if similar else "."
    return Hit(suggestion=f"{missing}: write {path}{promised}{meant}", location=_import_of(case))


def _import_of(case: Case) -> Location | None:
    """Return the import that fails: it is the place, whatever else was changed."""
    frame = case.raised_at
    return Location(path=frame.path, line=frame.line, function=frame.function) if frame else None


def _planned_file(case: Case, module: str) -> str | None:
    """Return the file that a todo is allowed to write for a module, or ``None``.

    Globs count only if their literal prefix names the module's top-level package, since ``**`` allows any
    file and so shows no plan to write this one.
    """
    top, granted = top_level(module), case.evidence.granted
    refused = tuple(each for each in granted if each[:1] == "!")
    source = (case.raised_at.source if case.raised_at is not None else None) or ""
    asked = [name for name in _IMPORT_LINE.findall(source) if name.startswith(f"{module}.")]
    starts = [
        (start, pattern)
        for start in ("", "src/", "lib/")
        for pattern in granted
        if literal_prefix(pattern).startswith((f"{start}{top}/", f"{start}{top}.py"))
        or literal_prefix(pattern) == f"{start}{top}"
    ]
    for name in (*asked, module) if starts else ():
        for start, pattern in starts:
            for end in (".py", "/__init__.py"):
                path = f"{start}{name.replace('.', '/')}{end}"
                if allowed(path, (pattern, *refused)):
                    return path
    # None of the patterns matches the module's own path, but a file of its package is granted by name.
    return next((pattern for _, pattern in starts if not is_glob(pattern)), None)


def is_native_library(case: Case) -> bool:
    """Return whether the dynamic linker did not find, or could not load, a native library."""
    is_import = case.is_error("ImportError", "OSError")
    return is_import and bool(_NATIVE.match(case.error.message))


def native_library_missing(case: Case) -> str | None:
    """A native library, or a part of Python that unchanged code needs, is not on this machine."""
    if is_native_library(case):
        return f"A native library is missing on this machine{_by(case)}: {quote(case.error.message)}."
    found = _imported_name(case)
    if found is not None and case.changed is not None and not case.raised_in_changed:
        return _absent_from_python(case, *found)
    module = _missing_module(case)
    if module is None or case.raised_at is None or (case.raised_in_changed and "." in module):
        return None
    if top_level(module) in _REMOVED or top_level(module) not in sys.stdlib_module_names:
        return None
    return f"This Python was built without {module}{_by(case)}, or it is for another system or version."


def dependency_missing(case: Case) -> Hit | None:
    """A module that is not of the project cannot be found."""
    module = _missing_module(case)
    if module is None:
        return None
    package = top_level(module)
    if package in _REMOVED:
        remedy = "it was removed from the standard library: replace it."
    elif similar := alike(package, case.evidence.first_party, cutoff=0.85):
        remedy = f"declare and install {package}, or did you mean {similar}?"
    elif package in sys.stdlib_module_names:
        remedy = f"{package} of this Python has no such module: is the name right?"
    elif package != module:  # without the package, the error would name it alone
        remedy = (
            f"{module.rpartition('.')[0]} has no such module: is the name right, and everything installed?"
        )
    elif case.in_test:
        remedy = f"install {package}, or write it if it belongs to the project."
    else:
        remedy = f"declare and install {package}."
    others = Owner.TEST if case.raised_in_changed else Owner.ENVIRONMENT
    return Hit(
        suggestion=f"No module named {module}{_by(case)}: {remedy}",
        # Without frames a command asked for it, no code of the project.
        owner=others if case.in_test or not case.frames else Owner.PRODUCT,
        location=_import_of(case),
    )


def _is_own(case: Case, module: str) -> bool:
    """Return whether the module that lacks a name is product code: as observed, else by its name."""
    side = case.error.object_side
    return case.is_first_party(module) if side is None else side is Side.PRODUCT


def promised_name_missing(case: Case) -> Hit | None:
    """A test imports a name that an existing module of the project lacks."""
    found = _imported_name(case)
    if found is None or not _is_own(case, found[0]):
        return None
    where = f" ({case.error.path})" if case.error.path else ""
    asks = f"which {place(case.raised_at)} needs"
    return Hit(
        suggestion=f"{found[0]}{where} has no {found[1]}, {asks}: {case.remedy_for_missing(found[1])}.",
        holder=case.error.path,
    )


def helper_of_tests_missing(case: Case) -> str | None:
    """A test imports a name that a helper module of the tests lacks."""
    found = _imported_name(case) if _is_own_file(case.error) else None
    if found is None or not (case.is_test_package(found[0]) or case.error.object_side is Side.TEST):
        return None
    imports = f"which {place(case.raised_at)} imports"
    return f"{found[0]}, which belongs to the tests, has no {found[1]}, {imports}."


def _absent_from_python(case: Case, module: str, name: str) -> str | None:
    """Return the sentence about a name that a module of the standard library lacks; ``None`` for others."""
    if top_level(module) not in sys.stdlib_module_names:
        return None
    return f"{module} of this Python has no {name}{_by(case)}: it exists only in other versions of Python."


def import_failed(case: Case) -> Hit | None:
    """A module lacks a name that is imported from it, or an import failed in another way."""
    found, message = _imported_name(case), case.error.message
    if found is None:
        if case.raised_at is None:  # such as that of a plugin, which pytest imports
            return None
        if _is_raised_by_hand(case) and not _DEPENDENCY_WORDS.search(message):
            return None
        owner = Owner.TEST if case.in_test else Owner.PRODUCT
        return Hit(suggestion=f"An import failed{_by(case)}: {error_text(case.error)}.", owner=owner)
    module, name = found
    top = top_level(module)
    if _is_own(case, module) or case.is_test_package(module):
        is_tests = case.is_test_package(module) and case.in_test
        return Hit(
            suggestion=f"{module} has no {name}, which {place(case.raised_at)} imports: "
            f"{case.remedy_for_missing(name)}.",
            owner=Owner.TEST if is_tests else Owner.PRODUCT,
        )
    if absent := _absent_from_python(case, module, name):
        return Hit(suggestion=absent)
    return Hit(
        suggestion=f"The installed {top} has no {name} in {module}{_by(case)}: pin a version that has it.",
        owner=Owner.ENVIRONMENT if case.in_test else Owner.PRODUCT,
    )
