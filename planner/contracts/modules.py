"""Finds the modules of a project and reads their source by griffe; nothing of them is imported or run."""

from __future__ import annotations

import ast
import difflib
import warnings
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import griffe

from planner.contracts.names import Names, bindings_of, read_bindings, set_bindings
from planner.contracts.signatures import FoundFunction
from planner.model.contract import FunctionContract, ParameterContract
from planner.planfile.confinement import Confinement

if TYPE_CHECKING:
    from pathlib import Path

SOURCE_FOLDERS = ("", "src/", "lib/")
"""Where the project's own modules are looked for, relative to the root."""

COMPILED_SUFFIXES = (".so", ".pyd", ".pyi", ".pyx")
MAX_SOURCE_BYTES = 16 * 1024 * 1024
MAX_MODULES = 200
"""So many modules are read for one contract."""

MAX_REEXPORTS = 5
"""How many modules a name is followed through."""

MAX_SIBLINGS = 5_000
"""Names of a folder that are looked at for a compiled module."""


Scope: TypeAlias = griffe.Module | griffe.Class


class ModuleProblem(Exception):
    """A module cannot be compared: it is missing, it is no Python, or its source does not tell."""

    def __init__(
        self,
        problem: Literal["missing_module", "unreadable", "unresolved"],
        message: str,
        path: str | None = None,
        error: SyntaxError | None = None,
    ) -> None:
        super().__init__(message)
        self.problem = problem
        self.path = path
        self.error = error


class ModuleReader:
    """Reads modules below one root, each once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._confinement = Confinement(self.root)
        self._read: dict[str, griffe.Module] = {}

    def read(self, name: str) -> griffe.Module:
        """Read a module. Raises :class:`ModuleProblem` or ``OSError``."""
        if name not in self._read:
            if len(self._read) >= MAX_MODULES:
                problem = f"{name} is reached through more than {MAX_MODULES} modules"
                raise ModuleProblem("unresolved", problem)
            path = self._find(name)
            self._read[name] = _visited(name, self.root / path, path)
        return self._read[name]

    def path_of(self, found: Scope) -> str:
        """Return where something is defined, relative to the root."""
        filepath = found.module.filepath
        assert not isinstance(filepath, list)
        return filepath.relative_to(self.root).as_posix()

    def follow(self, module: griffe.Module, name: str) -> tuple[griffe.Module, str]:
        """Return where a name is defined: in the module, or in one of the project that it comes from."""
        for _ in range(MAX_REEXPORTS):
            is_here = name in bindings_of(module).unsure or name in definitions(module)
            origin = None if is_here or name not in module.imports else self._split(module.imports[name])
            if origin is None or "." in origin[1]:
                break
            try:
                module, name = self.read(origin[0]), origin[1]
            except (OSError, ModuleProblem):
                break
        return module, name

    def _split(self, full: str) -> tuple[str, str] | None:
        """Return module and remaining name of a full dotted name, if it is one of the project's own."""
        parts = full.split(".")
        for at in range(len(parts) - 1, 0, -1):
            try:
                self._find(".".join(parts[:at]))
            except (OSError, ModuleProblem):
                continue
            return ".".join(parts[:at]), ".".join(parts[at:])
        return None

    def _find(self, name: str) -> str:
        """Return the path of a module's source, relative to the root."""
        if not all(part.isidentifier() for part in name.split(".")):
            raise ModuleProblem(
                "missing_module", f"'{name}' is no name of a module; write it dotted: indicators.rsi"
            )
        stem = name.replace(".", "/")
        for folder in SOURCE_FOLDERS:
            for candidate in (f"{folder}{stem}/__init__.py", f"{folder}{stem}.py"):
                if (self.root / candidate).is_file():
                    if self._confinement.fault(candidate) is not None:
                        raise ModuleProblem("missing_module", f"the module {name} leads out of the root")
                    return candidate
        package, _, last = stem.rpartition("/")
        beside = [entry for folder in SOURCE_FOLDERS for entry in self._entries(f"{folder}{package}")]
        for entry in beside:
            if entry.name.partition(".")[0] == last and entry.suffix in COMPILED_SUFFIXES:
                problem = f"{name} is only there as {entry.name}, which cannot be read without running it"
                raise ModuleProblem("unresolved", problem)
        problem = f"there is no module {name} below the root"
        near = difflib.get_close_matches(last, sorted({entry.stem for entry in beside}), n=1)
        if last in near:
            problem += ", only a folder without __init__.py"
        elif near:
            problem += f"; did you mean {name.removesuffix(last)}{near[0]}?"
        raise ModuleProblem("missing_module", problem)

    def _entries(self, folder: str) -> list[Path]:
        """Return the folders and modules in a folder of the root."""
        parent = self.root / folder
        if self._confinement.fault(folder or ".") is not None or not parent.is_dir():
            return []
        known = (*COMPILED_SUFFIXES, ".py")
        entries = islice(parent.iterdir(), MAX_SIBLINGS)
        return [each for each in entries if each.suffix in known or each.is_dir()]


class _Extension(griffe.Extension):
    """Note what griffe leaves out: how each body binds its names."""

    def __init__(self, *, has_globals: bool) -> None:
        self._has_globals = has_globals

    def on_module_instance(self, *, node: Any, mod: griffe.Module, **_: Any) -> None:
        if isinstance(node, ast.Module):
            set_bindings(mod, read_bindings(node.body, has_globals=self._has_globals))

    def on_class_instance(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        if isinstance(node, ast.ClassDef):
            set_bindings(cls, read_bindings(node.body))

    def on_function_instance(self, *, node: Any, func: griffe.Function, **_: Any) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            func.lineno = node.lineno  # not the line of its first decorator


def _visited(name: str, file: Path, shown: str) -> griffe.Module:
    if file.stat().st_size > MAX_SOURCE_BYTES:
        problem = f"{shown}: cannot be read: it has more than {MAX_SOURCE_BYTES} bytes"
        raise ModuleProblem("unreadable", problem, shown)
    code: Any = file.read_bytes()  # the interpreter knows how its source is encoded
    extension = _Extension(has_globals=b"global" in code)
    *packages, last = name.split(".")
    parent: griffe.Module | None = None
    for package in packages:
        parent = griffe.Module(package, filepath=file.parent / "__init__.py", parent=parent)
    try:
        with griffe.logger.disable(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = griffe.visit(last, file, code, extensions=griffe.Extensions(extension), parent=parent)
            _add_dataclass_methods(module)
    except SyntaxError as error:
        where = f"{shown}:{error.lineno}" if error.lineno else shown
        problem = f"{where}: {type(error).__name__}: {error.msg}"
        raise ModuleProblem("unreadable", problem, shown, error) from error
    except (RecursionError, MemoryError) as error:
        raise ModuleProblem("unresolved", f"{shown} is nested too deeply to be read") from error
    except ValueError as error:
        raise ModuleProblem("unreadable", f"{shown}: cannot be read: {error}", shown) from error
    return module


def _add_dataclass_methods(module: griffe.Module) -> None:
    with suppress(griffe.GriffeError, LookupError, AttributeError):  # then they stay unknown
        griffe.DataclassesExtension().on_package(pkg=module)
    pending: list[Scope] = [module]
    while pending:
        owner = pending.pop()
        for name, each in members(owner, griffe.Kind.FUNCTION).items():
            if not each.lineno and _is_plain_dataclass(owner):
                each.lineno = owner.lineno
            elif not each.lineno:
                del owner.members[name]
        pending += members(owner, griffe.Kind.CLASS).values()


# -- what griffe has read, in the words of contracts --------------------------------------------------


def members(owner: Scope, kind: griffe.Kind) -> dict[str, Any]:
    """Return the functions, or the classes, that a module or a class body defines itself."""
    return {name: each for name, each in owner.members.items() if not each.is_alias and each.kind is kind}


def properties(owner: Scope) -> dict[str, str | None]:
    """Return the properties of a class with the annotation of what each gives."""
    return {
        name: _source(each.annotation)
        for name, each in members(owner, griffe.Kind.ATTRIBUTE).items()
        if "property" in each.labels
    }


def definitions(owner: Scope) -> list[str]:
    """Return the functions and classes that a module or a class defines, in the order of the source."""
    found = {**members(owner, griffe.Kind.FUNCTION), **members(owner, griffe.Kind.CLASS)}
    return sorted(found, key=lambda name: found[name].lineno or 0)


def uncertainty(owner: Scope, name: str) -> str | None:
    """Return why only running the code would tell what a name is, or ``None``."""
    bindings = bindings_of(owner)
    if name in bindings.unsure:
        return "is defined under a condition, or more than once"
    member = owner.members.get(name)
    if member is not None and not member.is_alias:
        if member.is_function or member.is_class:
            return None
        if "property" in member.labels:
            return "is a property"
    if name in owner.imports:
        return f"comes from {owner.imports[name]}, which the project's source does not show"
    if name in bindings.assigned:
        return "is assigned, not defined"
    return "may come from a star import or __getattr__" if bindings.is_open else None


def may_be_changed(found: griffe.Class) -> bool:
    """Return whether a decorator or a metaclass may give a class methods."""
    return bool((found.decorators and not _is_plain_dataclass(found)) or found.keywords)


def describe_function(found: griffe.Function) -> FoundFunction:
    """Return a function in the words of contracts."""
    parameters = [
        (each, (each.kind or griffe.ParameterKind.positional_or_keyword).name) for each in found.parameters
    ]
    return FoundFunction(
        signature=FunctionContract.model_construct(
            name=found.name,
            parameters=tuple(
                ParameterContract.model_construct(
                    name=each.name,
                    kind=kind,
                    annotation=_source(each.annotation),
                    default=None if kind.startswith("var_") else _source(each.default),
                )
                for each, kind in parameters
            ),
            returns=_source(found.returns),
            is_async="async" in found.labels,
        ),
        line=found.lineno or 0,
        decorators=tuple(map(_decorator, found.decorators)),
        names=Names(found),
        is_method=found.parent is not None and found.parent.is_class,
    )


def _decorator(found: griffe.Decorator) -> tuple[str, str]:
    value: Any = found.value.function if isinstance(found.value, griffe.ExprCall) else found.value
    is_name = isinstance(value, str | griffe.ExprName | griffe.ExprAttribute)
    return (str(value), found.callable_path) if is_name else ("?", "?")


def _source(expression: str | griffe.Expr | None) -> str | None:
    return None if expression is None else str(expression)


def _is_plain_dataclass(found: Any) -> bool:
    """Return whether what ``dataclass`` makes of the class can be told for certain."""
    if not found.is_class or len(found.decorators) != 1 or found.bases or found.keywords:
        return False
    (decorator,) = found.decorators
    fields = [each for each in found.members.values() if each.is_attribute and each.annotation is not None]
    calls = [
        each.value
        for each in fields
        if isinstance(each.value, griffe.ExprCall) and each.value.canonical_path == "dataclasses.field"
    ]
    options = [decorator.value] if isinstance(decorator.value, griffe.ExprCall) else []
    return (
        decorator.callable_path == "dataclasses.dataclass"
        and bindings_of(found).unsure.isdisjoint(each.name for each in fields)
        and all(call.arguments for call in calls)
        and all(
            isinstance(each, griffe.ExprKeyword)  # not an unpacked mapping
            and (each.name not in ("init", "kw_only") or str(each.value) in ("True", "False"))
            for call in (*calls, *options)
            for each in call.arguments
        )
    )
