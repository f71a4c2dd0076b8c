"""Finds the modules of a project and reads their source by griffe; nothing of them is imported or run."""

from __future__ import annotations

import ast
import difflib
import re
import sys
import warnings
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import griffe

from planner.contracts.annotations import Names, dotted
from planner.contracts.signatures import FoundFunction
from planner.edges.project.confinement import Confinement
from planner.model.contract import FunctionContract, ParameterContract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """How a body binds its names: griffe tells only what a name is bound to last."""

    assigned: frozenset[str]
    """Names that are bound by something else than ``def``, ``class`` or ``import``."""
    unsure: frozenset[str]
    """Bound inside ``if``, ``try``, a loop …, or more than once in different ways."""
    is_open: bool
    """It may have names that its source does not show: a star import, a ``__getattr__``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a module, or a class body, defines."""

    names: Names
    bindings: Bindings
    imported: Mapping[str, str]
    """Local name to full dotted name."""
    functions: Mapping[str, FoundFunction]
    classes: Mapping[str, FoundClass]
    properties: Mapping[str, str | None]
    """With the annotation of what each gives."""
    exports: tuple[str, ...] | None = None
    """What ``__all__`` names, where it can be read."""

    @property
    def defined(self) -> list[str]:
        """The functions and classes that it defines itself, in the order of the source."""
        lines = {name: each.line for name, each in (*self.functions.items(), *self.classes.items())}
        return sorted(lines, key=lines.__getitem__)

    def uncertain(self, name: str) -> str | None:
        """Return why only running the code would tell what the name is, or ``None``."""
        if name in self.bindings.unsure:
            return "is defined under a condition, or more than once"
        if name in self.functions or name in self.classes:
            return None
        if name in self.properties:
            return "is a property"
        if name in self.imported:
            return f"comes from {self.imported[name]}, which the project's source does not show"
        if name in self.bindings.assigned:
            return "is assigned, not defined"
        return "may come from a star import or __getattr__" if self.bindings.is_open else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClass:
    """A class as the source has it."""

    line: int
    bases: tuple[str, ...]
    """As written."""
    scope: Scope
    is_changed: bool
    """A decorator or a metaclass may give it methods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModule:
    """One module of the project."""

    name: str
    path: str
    """Relative to the root."""
    scope: Scope


class ModuleReader:
    """Reads modules below one root, each once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._confinement = Confinement(self.root)
        self._read: dict[str, FoundModule] = {}

    def read(self, name: str) -> FoundModule:
        """Read a module. Raises :class:`ModuleProblem` or ``OSError``."""
        if name not in self._read:
            if len(self._read) >= MAX_MODULES:
                problem = f"{name} is reached through more than {MAX_MODULES} modules"
                raise ModuleProblem("unresolved", problem)
            self._read[name] = self._visit(name, self._find(name))
        return self._read[name]

    def follow(self, module: FoundModule, name: str) -> tuple[FoundModule, str]:
        """Return where a name is defined: in the module, or in one of the project that it comes from."""
        for _ in range(MAX_REEXPORTS):
            scope = module.scope
            if name in scope.bindings.unsure or name not in scope.imported or name in scope.defined:
                break
            origin = self.module_of(scope.imported[name])
            if origin is None or "." in origin[1]:
                break
            try:
                module, name = self.read(origin[0]), origin[1]
            except (OSError, ModuleProblem):
                break
        return module, name

    def module_of(self, full: str) -> tuple[str, str] | None:
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
        outside = False
        for folder in SOURCE_FOLDERS:
            for candidate in (f"{folder}{stem}/__init__.py", f"{folder}{stem}.py"):
                if (self.root / candidate).is_file():
                    if self._confinement.fault(candidate) is None:
                        return candidate
                    outside = True
        if outside:
            raise ModuleProblem("missing_module", f"the module {name} leads out of the root")
        package, _, last = stem.rpartition("/")
        beside = [entry for folder in SOURCE_FOLDERS for entry in self._entries(f"{folder}{package}")]
        for entry in beside:
            if entry.name.partition(".")[0] == last and entry.suffix in COMPILED_SUFFIXES:
                problem = f"{name} is only there as {entry.name}, which cannot be read without running it"
                raise ModuleProblem("unresolved", problem)
        problem = f"there is no module {name} below the root"
        near = difflib.get_close_matches(
            last, sorted({entry.stem for entry in beside if entry.suffix == ".py" or entry.is_dir()}), n=1
        )
        if any((self.root / folder / stem).is_dir() for folder in SOURCE_FOLDERS):
            problem += ", only a folder without __init__.py"
        elif near:
            problem += f"; did you mean {name.removesuffix(last)}{near[0]}?"
        raise ModuleProblem("missing_module", problem)

    def _entries(self, folder: str) -> list[Path]:
        parent = self.root / folder
        if self._confinement.fault(folder or ".") is not None or not parent.is_dir():
            return []
        return list(islice(parent.iterdir(), MAX_SIBLINGS))

    def _visit(self, name: str, path: str) -> FoundModule:
        file = self.root / path
        module, bodies = _visited(name, file, path)
        stub, lent = file.with_suffix(".pyi"), dict[str, str]()
        shown = str(stub.relative_to(self.root))
        if stub.is_file() and self._confinement.fault(shown) is None:
            promised, _ = _visited(name, stub, shown)
            _annotate(module, promised)
            lent = promised.imports
        return FoundModule(name=name, path=path, scope=_scope(module, bodies, lent))


class _Extension(griffe.Extension):
    """Notes what griffe leaves out: how each body binds its names, and annotations that it cannot read."""

    def __init__(self, *, has_globals: bool) -> None:
        self.bodies: dict[str, Bindings] = {}
        self._has_globals = has_globals

    def on_module_instance(self, *, node: Any, mod: griffe.Module, **_: Any) -> None:
        if isinstance(node, ast.Module):
            self.bodies[mod.path] = _read_bindings(node.body, has_globals=self._has_globals)

    def on_class_instance(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        if isinstance(node, ast.ClassDef):
            self.bodies[cls.path] = _read_bindings(node.body, has_globals=False)

    def on_function_instance(self, *, node: Any, func: griffe.Function, **_: Any) -> None:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        func.lineno = node.lineno  # not the line of its first decorator
        if func.returns is None and node.returns is not None:
            func.returns = ast.unparse(node.returns)
        for argument in (each for each in ast.walk(node.args) if isinstance(each, ast.arg)):
            if argument.annotation is not None and func.parameters[argument.arg].annotation is None:
                func.parameters[argument.arg].annotation = ast.unparse(argument.annotation)


def _visited(name: str, file: Path, shown: str) -> tuple[griffe.Module, dict[str, Bindings]]:
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
        if _is_newer(error):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            problem = f"{where} is written for a newer Python than {version}, which reads it here"
            raise ModuleProblem("unresolved", problem) from error
        problem = f"{where}: {type(error).__name__}: {error.msg}"
        raise ModuleProblem("unreadable", problem, shown, error) from error
    except (RecursionError, MemoryError) as error:
        raise ModuleProblem("unresolved", f"{shown} is nested too deeply to be read") from error
    except ValueError as error:
        raise ModuleProblem("unreadable", f"{shown}: cannot be read: {error}", shown) from error
    return module, extension.bodies


_NEWER_SYNTAX = re.compile(r"\s*(?:(?:async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[|type\s+\w+\s*[\[=])")


def _is_newer(error: SyntaxError) -> bool:
    """Return whether it is no fault but the syntax of a newer Python: type parameters, type aliases."""
    return sys.version_info < (3, 12) and bool(
        _NEWER_SYNTAX.match(error.text or "") or (error.msg or "").startswith("f-string")
    )


def _add_dataclass_methods(module: griffe.Module) -> None:
    try:
        griffe.DataclassesExtension().on_package(pkg=module)
    except (griffe.GriffeError, LookupError, AttributeError):
        return  # then the methods that dataclasses make stay unknown


def _annotate(module: Any, stub: Any) -> None:
    """Give the functions of a module the annotations of its stub where they have none themselves."""
    for name, member in module.members.items():
        other = stub.members.get(name)
        if other is None or other.is_alias or member.is_alias or other.kind is not member.kind:
            continue
        if member.is_class:
            _annotate(member, other)
        elif member.is_function and not stub.overloads.get(name):
            if [each.name for each in member.parameters] != [each.name for each in other.parameters]:
                continue
            for mine, its in zip(member.parameters, other.parameters, strict=True):
                mine.annotation = its.annotation if mine.annotation is None else mine.annotation
            member.returns = other.returns if member.returns is None else member.returns


# -- how a body binds its names -----------------------------------------------------------------------

_STAR = "*"
_TYPE_CHECKING = frozenset({"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"})
_KINDS: Mapping[type[ast.AST], str] = {
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "function",
    ast.ClassDef: "class",
    ast.alias: "imported",
}


def _read_bindings(body: Sequence[ast.stmt], *, has_globals: bool) -> Bindings:
    """Read what a body binds; with ``has_globals``, also by functions that declare a name ``global``."""
    kinds: dict[str, list[str]] = {}
    unsure: set[str] = set()
    for name, node, is_conditional in _bound(body):
        kinds.setdefault(name, []).append(_KINDS.get(type(node), "assigned"))
        if is_conditional:
            unsure.add(name)
    for name, those in kinds.items():
        # Of several definitions by `def` or by `import`, the last one counts.
        if len(those) > 1 and (len({*those}) > 1 or "assigned" in those):
            unsure.add(name)
    if has_globals:  # to look for them takes as long as all the rest
        nodes = (node for statement in body for node in ast.walk(statement))
        unsure.update(name for node in nodes if isinstance(node, ast.Global) for name in node.names)
    return Bindings(
        assigned=frozenset(name for name, those in kinds.items() if "assigned" in those),
        unsure=frozenset(unsure),
        is_open=_STAR in kinds or "function" in kinds.get("__getattr__", ()),
    )


def _bound(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield each name that a body binds itself, by which node, and whether only under a condition."""
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in body]
    while pending:  # no recursion: a sum of a thousand terms is a thousand levels deep
        node, is_conditional = pending.pop()
        children = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node, is_conditional
                continue
            case ast.alias():
                yield node.asname or node.name.partition(".")[0], node, is_conditional
            case ast.Name(ctx=ast.Store() | ast.Del()):
                yield node.id, node, is_conditional
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name, node, is_conditional
            case ast.MatchMapping(rest=str(name)):
                yield name, node, is_conditional
            case ast.AnnAssign(value=None) | ast.Lambda():
                continue  # it says of what type a name will be; its names are its own
            case ast.comprehension():
                children = [node.iter, *node.ifs]
            case ast.If() if dotted(node.test) in _TYPE_CHECKING:
                pending += [(each, is_conditional) for each in node.body]
                pending += [(each, True) for each in node.orelse]
                continue
            case _:
                pass
        is_block = isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case)
        is_certain = not is_block or isinstance(node, ast.With | ast.AsyncWith)
        pending += [
            (
                each,
                is_conditional or not (is_certain or isinstance(each, ast.expr | ast.alias | ast.withitem)),
            )
            for each in children
        ]


# -- what griffe has read, in the words of contracts --------------------------------------------------


def _scope(
    owner: Any, bodies: Mapping[str, Bindings], lent: Mapping[str, str], above: Names | None = None
) -> Scope:
    """Return what a module, or a class inside of the names ``above``, defines.

    ``bodies`` are the bindings of the module and of each class by its path; ``lent`` are names that only
    the stub of the module imports.
    """
    bindings = bodies[owner.path]
    members = {name: member for name, member in owner.members.items() if not member.is_alias}
    names = (
        _module_names(owner, members, bindings, lent)
        if above is None
        else _class_names(owner, bindings, above)
    )
    functions: dict[str, FoundFunction] = {}
    for name, member in members.items():
        # The methods that a dataclass makes stand in no line.
        if member.is_function and (member.lineno or _is_plain_dataclass(owner, bindings)):
            functions[name] = _function(member, member.lineno or owner.lineno)
    exports = owner.exports
    return Scope(
        names=names,
        bindings=bindings,
        imported=dict(owner.imports),
        functions=functions,
        classes={name: _class(each, bodies, names) for name, each in members.items() if each.is_class},
        properties={
            name: _source(member.annotation)
            for name, member in members.items()
            if member.is_attribute and "property" in member.labels
        },
        exports=None if exports is None else tuple(dict.fromkeys(map(str, exports))),
    )


def _module_names(
    module: Any, members: Mapping[str, Any], bindings: Bindings, lent: Mapping[str, str]
) -> Names:
    imported = {**lent, **module.imports}
    defined = {name for name, member in members.items() if member.is_function or member.is_class}
    others = (set(module.members) - defined) | bindings.assigned | bindings.unsure
    return Names(
        imported=imported,
        defined=frozenset(defined),
        assigned=frozenset(others - set(imported)),
        module=module.path,
        # Names that are bound once: `Price = float`, `N = 14`.
        aliases={
            name: str(member.value)
            for name, member in members.items()
            if (member.is_attribute or member.is_type_alias)
            and member.value is not None
            and name not in bindings.unsure
            and not isinstance(member.value, griffe.ExprCall)
        },
        is_open=bindings.is_open,
    )


def _class_names(found: Any, bindings: Bindings, above: Names) -> Names:
    """Return the names inside of a class: what it binds hides what the module calls by the same name."""
    bound = (set(found.members) - above.defined) | bindings.assigned
    hidden = bound | {each.name for each in found.type_parameters}
    around = {name: full for name, full in above.imported.items() if name not in hidden}
    return Names(
        imported={**around, **found.imports},
        defined=above.defined - hidden,
        assigned=above.assigned | (hidden - set(found.imports)),
        module=above.module,
        aliases={name: value for name, value in above.aliases.items() if name not in hidden},
        is_open=above.is_open,
    )


def _class(found: Any, bodies: Mapping[str, Bindings], names: Names) -> FoundClass:
    own_dataclass = _is_plain_dataclass(found, bodies[found.path])
    return FoundClass(
        line=found.lineno or 0,
        bases=tuple(map(str, found.bases)),
        scope=_scope(found, bodies, {}, names),
        is_changed=bool((found.decorators and not own_dataclass) or found.keywords),
    )


def _function(found: griffe.Function, line: int) -> FoundFunction:
    return FoundFunction(
        signature=FunctionContract.model_construct(
            name=found.name,
            parameters=tuple(map(_parameter, found.parameters)),
            returns=_source(found.returns),
            is_async="async" in found.labels,
        ),
        line=line,
        decorators=tuple(map(_decorator, found.decorators)),
        type_parameters=frozenset(each.name for each in found.type_parameters),
    )


def _decorator(found: griffe.Decorator) -> tuple[str, str]:
    value: Any = found.value.function if isinstance(found.value, griffe.ExprCall) else found.value
    is_name = isinstance(value, str | griffe.ExprName | griffe.ExprAttribute)
    return (str(value), found.callable_path) if is_name else ("?", "?")


def _parameter(found: griffe.Parameter) -> ParameterContract:
    kind = (found.kind or griffe.ParameterKind.positional_or_keyword).name
    return ParameterContract.model_construct(
        name=found.name,
        kind=kind,
        annotation=_source(found.annotation),
        default=None if kind.startswith("var_") else _source(found.default),
    )


def _source(expression: str | griffe.Expr | None) -> str | None:
    return None if expression is None else str(expression)


_FIELD_ARGUMENTS = frozenset(
    {"default", "default_factory", "init", "kw_only", "repr", "hash", "compare", "metadata", "doc"}
)


def _is_plain_dataclass(found: Any, bindings: Bindings) -> bool:
    """Return whether what ``dataclass`` makes of the class can be told for certain."""
    if not found.is_class or len(found.decorators) != 1 or found.bases or found.keywords:
        return False
    (decorator,) = found.decorators
    if decorator.callable_path != "dataclasses.dataclass" or not _is_written_out(decorator.value):
        return False
    fields = {
        name: each
        for name, each in found.members.items()
        if each.is_attribute and each.annotation is not None
    }
    return not bindings.unsure & set(fields) and all(
        _is_written_out(each.value, _FIELD_ARGUMENTS)
        for each in fields.values()
        if isinstance(each.value, griffe.ExprCall) and each.value.canonical_path == "dataclasses.field"
    )


def _is_written_out(value: Any, known: frozenset[str] | None = None) -> bool:
    """Return whether a ``dataclass(…)`` or ``field(…)`` has its arguments written out."""
    if not isinstance(value, griffe.ExprCall):
        return True
    return (known is None or bool(value.arguments)) and all(
        isinstance(each, griffe.ExprKeyword)
        and (known is None or each.name in known)
        and (each.name not in ("init", "kw_only") or str(each.value) in ("True", "False"))
        for each in value.arguments
    )
