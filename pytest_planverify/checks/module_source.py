"""What a module of the project defines, read from its source; nothing of it is imported or run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_planverify.checks.annotations import Names, dotted
from pytest_planverify.checks.rooted import OutsideRoot, is_regular_file, resolve_under

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCE_FOLDERS = (".", "src", "lib")
"""Where the project's own modules are looked for, relative to the plan's root."""

COMPILED_SUFFIXES = (".so", ".pyd", ".pyi", ".pyx")

MAX_SOURCE_BYTES = 16 * 1024 * 1024

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that a module or a class body binds, and how."""

    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    classes: dict[str, ast.ClassDef] = field(default_factory=dict[str, ast.ClassDef])
    imported: dict[str, str] = field(default_factory=dict[str, str])
    """Local name to full dotted name."""
    assigned: set[str] = field(default_factory=set[str])
    conditional: set[str] = field(default_factory=set[str])
    """Bound inside ``if``, ``try``, a loop …, or more than once in different ways."""
    is_open: bool = False
    """It may have names that its source does not show: a star import, a ``__getattr__``."""

    @property
    def defined(self) -> tuple[str, ...]:
        return (*self.functions, *self.classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSource:
    """One module of the project."""

    name: str
    path: Path
    scope: Scope

    @property
    def names(self) -> Names:
        """For resolving annotations."""
        scope = self.scope
        return Names(
            imported=scope.imported,
            defined=frozenset(scope.defined),
            assigned=frozenset(scope.assigned | (scope.conditional - set(scope.imported))),
            module=self.name,
        )


class NoSource(Exception):
    """The module exists, but not as Python source."""


def find_module(name: str, root: Path) -> Path | None:
    """The file of a module below the root. Raises ``OSError``, :class:`OutsideRoot`, :class:`NoSource`."""
    stem = name.replace(".", "/")
    for folder in SOURCE_FOLDERS:
        for candidate in (f"{folder}/{stem}.py", f"{folder}/{stem}/__init__.py"):
            path = resolve_under(root, candidate)
            if path.exists() and is_regular_file(path):
                return root.resolve() / candidate
    for folder in SOURCE_FOLDERS:
        parent = (root / folder / stem).parent
        if parent.is_dir():
            for entry in parent.iterdir():
                if entry.name.partition(".")[0] == Path(stem).name and entry.suffix in COMPILED_SUFFIXES:
                    raise NoSource(f"{name} is only there as {entry.name}")
    return None


def read_module(name: str, path: Path) -> ModuleSource:
    """Read a module. Raises ``OSError``, ``SyntaxError``, ``ValueError`` or ``RecursionError``."""
    if path.stat().st_size > MAX_SOURCE_BYTES:
        raise ValueError(f"it has more than {MAX_SOURCE_BYTES} bytes")
    tree = ast.parse(path.read_bytes(), filename=str(path))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return ModuleSource(name=name, path=path, scope=read_scope(tree.body, package))


def read_scope(body: Sequence[ast.stmt], package: str = "") -> Scope:
    """What a body binds. ``package`` resolves relative imports."""
    scope = Scope()
    is_open = False
    bound: set[str] = set()
    for statement, is_conditional in _statements(body):
        for name in _bind(statement, scope, package):
            if name == "*":
                is_open = True
                continue
            if is_conditional or (name in bound and not _is_same_kind_again(statement, name, scope)):
                scope.conditional.add(name)
            bound.add(name)
    if "__getattr__" in scope.functions:
        is_open = True
    return Scope(
        functions=scope.functions,
        classes=scope.classes,
        imported=scope.imported,
        assigned=scope.assigned,
        conditional=scope.conditional,
        is_open=is_open,
    )


def find_in_project(full: str, root: Path) -> tuple[str, str, Path] | None:
    """Module, remaining name and file of a full dotted name, if it is one of the project's own."""
    module, _, rest = full.rpartition(".")
    while module:
        try:
            path = find_module(module, root)
        except (OSError, OutsideRoot, NoSource):
            return None
        if path is not None:
            return module, rest, path
        module, _, head = module.rpartition(".")
        rest = f"{head}.{rest}"
    return None


def _statements(body: Sequence[ast.stmt], *, conditional: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Every statement of a body that may bind a name, and whether it is only run under a condition."""
    for statement in body:
        yield statement, conditional
        if isinstance(statement, ast.If) and _is_for_type_checkers(statement.test):
            yield from _statements(statement.body, conditional=conditional)
            continue
        if isinstance(statement, ast.With | ast.AsyncWith):
            yield from _statements(statement.body, conditional=conditional)
            continue
        for inner in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _statements(getattr(statement, inner, []), conditional=True)
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body, conditional=True)
        for case in getattr(statement, "cases", []):
            yield from _statements(case.body, conditional=True)


def _is_for_type_checkers(test: ast.expr) -> bool:
    return dotted(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING")


def _bind(statement: ast.stmt, scope: Scope, package: str) -> list[str]:
    """Note what one statement binds, and name it."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            scope.functions[name] = statement
            return [name]
        case ast.ClassDef(name=name):
            scope.classes[name] = statement
            return [name]
        case ast.Import(names=aliases):
            for alias in aliases:
                local = alias.asname or alias.name.partition(".")[0]
                scope.imported[local] = alias.name if alias.asname else local
            return [alias.asname or alias.name.partition(".")[0] for alias in aliases]
        case ast.ImportFrom(names=aliases):
            origin = _origin(statement, package)
            for alias in aliases:
                if alias.name != "*":
                    scope.imported[alias.asname or alias.name] = f"{origin}.{alias.name}".lstrip(".")
            return [alias.asname or alias.name for alias in aliases]
        case ast.Assign(targets=targets):
            return _assigned(targets, scope)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            return _assigned([target], scope)
        case ast.Delete(targets=targets):
            return _assigned(targets, scope)
        case _:
            return []


def _origin(statement: ast.ImportFrom, package: str) -> str:
    if not statement.level:
        return statement.module or ""
    base = package.split(".")[: len(package.split(".")) - statement.level + 1]
    return ".".join([*base, *([statement.module] if statement.module else [])])


def _assigned(targets: Sequence[ast.expr], scope: Scope) -> list[str]:
    names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    scope.assigned.update(names)
    return names


def _is_same_kind_again(statement: ast.stmt, name: str, scope: Scope) -> bool:
    """An unconditional definition that replaces one before it: the last one counts."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return name not in scope.classes and name not in scope.assigned and name not in scope.imported
    return isinstance(statement, ast.Import | ast.ImportFrom) and name not in scope.defined
