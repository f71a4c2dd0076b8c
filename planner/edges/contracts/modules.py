"""Finds the modules of a project and reads their source by griffe; nothing of them is imported or run."""

from __future__ import annotations

import ast
import difflib
import re
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import griffe

from planner.edges.contracts.bindings import Bindings, read_bindings
from planner.edges.contracts.scopes import FoundScope, module_scope
from planner.planfile.confinement import Confinement

if TYPE_CHECKING:
    from collections.abc import Iterable
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


class NoModule(Exception):
    """There is no such module under the root; the message says what there is instead."""


class NoSource(Exception):
    """The module exists, but its interface cannot be told from Python source by this interpreter."""


class BrokenSource(Exception):
    """The module's source is no Python, or too large. ``error`` is the syntax error, if it is one."""

    def __init__(self, path: str, problem: str, error: SyntaxError | None = None) -> None:
        super().__init__(problem)
        self.path = path
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModule:
    """One module of the project."""

    name: str
    path: str
    """Relative to the root."""
    scope: FoundScope


class ModuleReader:
    """Reads modules below one root, each once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._confinement = Confinement(self.root)
        self._read: dict[str, FoundModule] = {}

    def read(self, name: str) -> FoundModule:
        """Read a module.

        Raises :class:`NoModule`, :class:`NoSource`, :class:`BrokenSource` or ``OSError``.
        """
        if name not in self._read:
            if len(self._read) >= MAX_MODULES:
                raise NoSource(f"{name} is reached through more than {MAX_MODULES} modules")
            self._read[name] = self._visit(name, self._find(name))
        return self._read[name]

    def follow(self, module: FoundModule, name: str) -> tuple[FoundModule, str]:
        """Where a name of a module is defined: there, or in a module of the project that it comes from."""
        for _ in range(MAX_REEXPORTS):
            scope = module.scope
            if name in scope.bindings.unsure or name not in scope.imported or scope.defines(name):
                break
            origin = self.module_of(scope.imported[name])
            if origin is None or "." in origin[1]:
                break
            try:
                module, name = self.read(origin[0]), origin[1]
            except (OSError, NoModule, NoSource, BrokenSource):
                break
        return module, name

    def module_of(self, full: str) -> tuple[str, str] | None:
        """Module and remaining name of a full dotted name, if it is one of the project's own."""
        module, _, rest = full.rpartition(".")
        while module:
            try:
                self._find(module)
            except (OSError, NoModule, NoSource):
                module, _, head = module.rpartition(".")
                rest = f"{head}.{rest}"
            else:
                return module, rest
        return None

    def _find(self, name: str) -> str:
        """The path of a module's source, relative to the root."""
        if not all(part.isidentifier() for part in name.split(".")):
            raise NoModule(f"'{name}' is no name of a module; write it dotted: indicators.rsi")
        stem = name.replace(".", "/")
        outside = False
        for folder in SOURCE_FOLDERS:
            for candidate in (f"{folder}{stem}/__init__.py", f"{folder}{stem}.py"):
                if not (self.root / candidate).is_file():
                    continue
                if self._confinement.fault(candidate) is None:
                    return candidate
                outside = True
        if outside:
            raise NoModule(f"the module {name} leads out of the root")
        self._refuse_compiled(name, stem)
        if any((self.root / folder / stem).is_dir() for folder in SOURCE_FOLDERS):
            raise NoModule(f"there is no module {name} below the root, only a folder without __init__.py")
        raise NoModule(f"there is no module {name} below the root{self._near(name)}")

    def _near(self, name: str) -> str:
        """Which module was meant."""
        package, dot, last = name.rpartition(".")
        there: set[str] = set()
        for folder in SOURCE_FOLDERS:
            for entry in self._entries(f"{folder}{package.replace('.', '/')}"):
                if entry.suffix == ".py" or entry.is_dir():
                    there.add(entry.stem)
        near = difflib.get_close_matches(last, sorted(there), n=1)
        return f"; did you mean {package}{dot}{near[0]}?" if near else ""

    def _entries(self, folder: str) -> list[Path]:
        parent = self.root / folder
        if self._confinement.fault(folder or ".") is not None or not parent.is_dir():
            return []
        return [entry for entry, _ in zip(parent.iterdir(), range(MAX_SIBLINGS), strict=False)]

    def _refuse_compiled(self, name: str, stem: str) -> None:
        package, _, last = stem.rpartition("/")
        for folder in SOURCE_FOLDERS:
            for entry in self._entries(f"{folder}{package}"):
                if entry.name.partition(".")[0] == last and entry.suffix in COMPILED_SUFFIXES:
                    raise NoSource(
                        f"{name} is only there as {entry.name}, which cannot be read without running it"
                    )

    def _visit(self, name: str, path: str) -> FoundModule:
        file = self.root / path
        module, bodies = _visited(name, file, path)
        stub, lent = file.with_suffix(".pyi"), dict[str, str]()
        shown = str(stub.relative_to(self.root))
        if stub.is_file() and self._confinement.fault(shown) is None:
            promised = _visited(name, stub, shown)[0]
            _annotate(module, promised)
            lent = promised.imports
        return FoundModule(name=name, path=path, scope=module_scope(module, bodies, lent))


class _Reading(griffe.Extension):
    """Notes what griffe leaves out: how each body binds its names, and annotations that it cannot read."""

    def __init__(self, *, has_globals: bool) -> None:
        self.bodies: dict[str, Bindings] = {}
        self._has_globals = has_globals

    def on_module_instance(self, *, node: Any, mod: griffe.Module, **_: Any) -> None:
        if isinstance(node, ast.Module):
            self.bodies[mod.path] = read_bindings(node.body, has_globals=self._has_globals)

    def on_class_instance(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        if isinstance(node, ast.ClassDef):
            self.bodies[cls.path] = read_bindings(node.body)

    def on_function_instance(self, *, node: Any, func: griffe.Function, **_: Any) -> None:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        func.lineno = node.lineno  # not the line of its first decorator
        if func.returns is None and node.returns is not None:
            func.returns = ast.unparse(node.returns)
        for argument in _arguments(node.args):
            parameter = func.parameters[argument.arg]
            if parameter.annotation is None and argument.annotation is not None:
                parameter.annotation = ast.unparse(argument.annotation)


def _arguments(arguments: ast.arguments) -> Iterable[ast.arg]:
    variable = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variable]


def _visited(name: str, file: Path, shown: str) -> tuple[griffe.Module, dict[str, Bindings]]:
    if file.stat().st_size > MAX_SOURCE_BYTES:
        raise BrokenSource(shown, f"it has more than {MAX_SOURCE_BYTES} bytes")
    code: Any = file.read_bytes()  # the interpreter knows how its source is encoded
    reading = _Reading(has_globals=b"global" in code)
    *packages, last = name.split(".")
    parent: griffe.Module | None = None
    for package in packages:
        parent = griffe.Module(package, filepath=file.parent / "__init__.py", parent=parent)
    try:
        with griffe.logger.disable(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = griffe.visit(last, file, code, extensions=griffe.Extensions(reading), parent=parent)
            _add_dataclass_methods(module)
    except SyntaxError as error:
        if _is_newer(error):
            raise NoSource(
                f"{shown}:{error.lineno} is written for a newer Python than "
                f"{sys.version_info.major}.{sys.version_info.minor}, which reads it here"
            ) from error
        raise BrokenSource(shown, error.msg, error) from error
    except (RecursionError, MemoryError) as error:
        raise NoSource(f"{shown} is nested too deeply to be read") from error
    except ValueError as error:
        raise BrokenSource(shown, str(error)) from error
    return module, reading.bodies


_NEWER_SYNTAX = re.compile(r"\s*(?:(?:async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[|type\s+\w+\s*[\[=])")


def _is_newer(error: SyntaxError) -> bool:
    """Whether it is no fault but the syntax of a newer Python: type parameters, type aliases."""
    line = error.text or ""
    return sys.version_info < (3, 12) and bool(
        _NEWER_SYNTAX.match(line) or (error.msg or "").startswith("f-string")
    )


def _add_dataclass_methods(module: griffe.Module) -> None:
    try:
        griffe.DataclassesExtension().on_package(pkg=module)
    except (griffe.GriffeError, LookupError, AttributeError):
        return  # then the methods that dataclasses make stay unknown


def _annotate(module: griffe.Module, stub: griffe.Module) -> None:
    """Give the functions of a module the annotations of its stub where they have none themselves."""
    pending: list[tuple[Any, Any]] = [(module, stub)]
    while pending:
        found, promised = pending.pop()
        for name, member in found.members.items():
            other = promised.members.get(name)
            if other is None or other.is_alias or member.is_alias or other.kind is not member.kind:
                continue
            if member.is_class:
                pending.append((member, other))
            elif member.is_function and not promised.overloads.get(name):
                _annotate_function(member, other)


def _annotate_function(found: griffe.Function, stub: griffe.Function) -> None:
    if [each.name for each in found.parameters] != [each.name for each in stub.parameters]:
        return
    for mine, its in zip(found.parameters, stub.parameters, strict=True):
        mine.annotation = its.annotation if mine.annotation is None else mine.annotation
    found.returns = stub.returns if found.returns is None else found.returns
