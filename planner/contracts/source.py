"""Reader of a project's modules: finds them below the root and parses them by griffe.

Nothing is imported or run. griffe keeps only the last binding of a name, so an extension records how each
body binds its names (:class:`Bindings`): a name that is defined under a condition, or in several ways, is
uncertain, and must not be reported as a difference.
"""

from __future__ import annotations

import ast
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import griffe

from planner.model.contract import ContractDifference, FunctionContract, ParameterContract
from planner.planfile.project_files import Confinement, read_regular
from planner.text.python_text import dotted_name
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SOURCE_FOLDERS = ("", "src/", "lib/")
"""Folders in which the project's own modules are searched, relative to the root, in this order."""

COMPILED_SUFFIXES = (".so", ".pyd", ".pyi", ".pyx")
"""Endings of modules without a Python source that could be compared."""
MAX_SOURCE_BYTES = 16 * 1024 * 1024
MAX_REEXPORTS = 50
"""Limit of the chain of imports through which a name is followed."""


Scope: TypeAlias = griffe.Module | griffe.Class

_TYPE_CHECKING = frozenset({"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"})
_KINDS: Mapping[type[ast.AST], str] = {
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "function",
    ast.ClassDef: "class",
    ast.alias: "imported",
}
_MAY_NOT_RUN = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)
"""Statements of which a part may not run."""

_EXTRA = "contracts"
"""Key of this module's data in griffe's ``extra``."""


MAX_MESSAGE = 1_000
"""Limit in characters of each text of a difference."""


def difference(problem: Any, message: str, **facts: Any) -> ContractDifference:
    """Return a difference with cleaned and limited texts, as they quote untrusted source."""
    shown: dict[str, Any] = {
        key: clean(value, limit=MAX_MESSAGE) if isinstance(value, str) else value
        for key, value in facts.items()
    }
    return ContractDifference(problem=problem, message=one_line(message, limit=MAX_MESSAGE), **shown)


class ModuleProblem(Exception):
    """A module cannot be compared: it is missing, invalid Python, or its source is not available."""

    def __init__(self, problem: str, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.difference = difference(problem, message, **facts)


class ModuleReader:
    """Cached reader of the modules below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._confinement = Confinement(self.root)
        self._read: dict[str, griffe.Module] = {}

    def read(self, name: str) -> griffe.Module:
        """Return a module by its dotted name. Raises :class:`ModuleProblem` or ``OSError``."""
        if name not in self._read:
            path = self._find(name)
            self._read[name] = _visited(name, self.root / path, path)
        return self._read[name]

    def path_of(self, found: Scope) -> str:
        """Return the path of the file that defines a module or class, relative to the root."""
        filepath = found.module.filepath
        assert not isinstance(filepath, list)
        return filepath.relative_to(self.root).as_posix()

    def follow(self, module: griffe.Module, name: str) -> tuple[griffe.Module, str]:
        """Follow the imports of a name; return the project's module that defines it, and its name there.

        The last module that could be read is returned if the chain leaves the project or is too long.
        """
        for _ in range(MAX_REEXPORTS):
            # A name that is bound in several ways is not followed: any of its bindings may be the one
            # that counts.
            is_here = name in bindings_of(module).unsure or name in definitions(module)
            if is_here or name not in module.imports:
                break
            origin, _, original = module.imports[name].rpartition(".")
            if not origin:  # a module: import prices
                break
            try:
                module, name = self.read(origin), original
            except (OSError, ModuleProblem):
                break
        return module, name

    def _find(self, name: str) -> str:
        """Return the path of a module's source, relative to the root. Raises :class:`ModuleProblem`."""
        stem = name.replace(".", "/")
        for folder in SOURCE_FOLDERS:
            # In the order of Python's import, where a package hides a module of its name.
            for candidate in (f"{folder}{stem}/__init__.py", f"{folder}{stem}.py"):
                if (self.root / candidate).is_file():
                    if self._confinement.fault(candidate) is not None:
                        problem = f"the module {name} leads out of the root"
                        raise ModuleProblem("missing_module", problem, expected=name)
                    return candidate
        last = stem.rpartition("/")[2]
        for folder in SOURCE_FOLDERS:
            for entry in sorted((self.root / folder / stem).parent.glob(f"{last}.*")):
                if entry.suffix in COMPILED_SUFFIXES:
                    problem = f"{name} exists only as {entry.name}, without a Python source to compare"
                    raise ModuleProblem("unresolved", problem)
        problem = f"there is no module {name} below the root"
        raise ModuleProblem("missing_module", problem, expected=name)


class _Extension(griffe.Extension):
    """Extension of griffe that records the bindings of each module and class body."""

    def __init__(self, *, has_globals: bool) -> None:
        self._has_globals = has_globals

    # The nodes are those of ast, as sources are visited; griffe has others for modules that it imports.

    def on_module_instance(self, *, node: Any, mod: griffe.Module, **_: Any) -> None:
        mod.extra[_EXTRA]["bindings"] = read_bindings(node.body, has_globals=self._has_globals)

    def on_class_instance(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        cls.extra[_EXTRA]["bindings"] = read_bindings(node.body)

    def on_function_instance(self, *, node: Any, func: griffe.Function, **_: Any) -> None:
        func.lineno = node.lineno  # griffe sets the line of the first decorator


def _visited(name: str, file: Path, shown: str) -> griffe.Module:
    """Parse a module. Raises :class:`ModuleProblem`, which names the file as ``shown``."""
    try:
        # As bytes: the parser detects the encoding of a source itself.
        code: Any = read_regular(file, MAX_SOURCE_BYTES)
    except OSError as error:
        problem = f"{shown}: cannot be read: {error.strerror}"
        raise ModuleProblem("unreadable", problem, path=shown) from error
    extension = _Extension(has_globals=b"global" in code)
    # Relative imports and full names are resolved by the parents, which need no content.
    *packages, last = name.split(".")
    parent: griffe.Module | None = None
    for package in packages:
        parent = griffe.Module(package, filepath=file.parent / "__init__.py", parent=parent)
    try:
        # griffe's log and the parser's warnings about the project's code would go to standard error.
        with griffe.logger.disable(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = griffe.visit(last, file, code, extensions=griffe.Extensions(extension), parent=parent)
            _add_dataclass_methods(module)
    except SyntaxError as error:
        where = f"{shown}:{error.lineno}" if error.lineno else shown
        problem = f"{where}: {type(error).__name__}: {error.msg}"
        facts: dict[str, Any] = {"line": error.lineno, "exception": (type(error).__name__, error.msg)}
        raise ModuleProblem("unreadable", problem, path=shown, **facts) from error
    except (RecursionError, MemoryError) as error:
        raise ModuleProblem("unresolved", f"{shown} is nested too deeply to be read") from error
    except ValueError as error:
        raise ModuleProblem("unreadable", f"{shown}: cannot be read: {error}", path=shown) from error
    return module


_SPECIAL_METHODS = {"repr": "__repr__", "eq": "__eq__", "order": "__lt__ __le__ __gt__ __ge__"}
"""Generated methods by the option of ``dataclass``; the others depend on several options."""


def _add_dataclass_methods(module: griffe.Module) -> None:
    """Add the generated methods of dataclasses, as far as the source determines them."""
    with suppress(griffe.GriffeError, LookupError, AttributeError):  # then they stay unknown
        griffe.DataclassesExtension().on_package(pkg=module)
    pending: list[Scope] = [module]
    while pending:
        owner = pending.pop()
        is_plain = _is_plain_dataclass(owner)
        for name, each in members(owner, griffe.Kind.FUNCTION).items():
            # Only generated methods have no line.
            if not each.lineno and is_plain:
                each.lineno = owner.lineno
            elif not each.lineno:
                del owner.members[name]
        if is_plain:
            _add_special_methods(owner)
        pending += members(owner, griffe.Kind.CLASS).values()


def _add_special_methods(owner: Any) -> None:
    """Add the special methods beside ``__init__`` that a plain dataclass generates with its options."""
    (decorator,) = owner.decorators
    given: Any = decorator.value.arguments if isinstance(decorator.value, griffe.ExprCall) else ()
    options = {"repr": "True", "eq": "True", "order": "False"} | {
        each.name: str(each.value) for each in given
    }
    for option, names in _SPECIAL_METHODS.items():
        for name in names.split() if options[option] == "True" else ():
            other = () if option == "repr" else ("other",)
            parameters = griffe.Parameters(*(griffe.Parameter(each) for each in ("self", *other)))
            if name not in owner.members:
                owner.set_member(name, griffe.Function(name, lineno=owner.lineno, parameters=parameters))


# -- names ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """Bindings of names in the body of a module or class."""

    assigned: frozenset[str]
    """Names that are bound other than by ``def``, ``class`` or ``import``."""
    unsure: frozenset[str]
    """Names that are bound inside ``if``, ``try``, a loop and the like, or more than once in different
    ways."""
    is_open: bool
    """Whether there may be names that the source does not show: by a star import or a ``__getattr__``."""


def read_bindings(body: Sequence[ast.stmt], *, has_globals: bool = False) -> Bindings:
    """Return the bindings of a body.

    With ``has_globals``, names that a function in it declares ``global`` are unsure, too.
    """
    kinds: dict[str, list[str]] = {}
    unsure: set[str] = set()
    for name, node, is_conditional in _bound(body):
        kinds.setdefault(name, []).append(_KINDS.get(type(node), "assigned"))
        if is_conditional:
            unsure.add(name)
    for name, ways in kinds.items():
        # Of several definitions by `def` (overloads, setters) or by `import`, the last one counts.
        if len(ways) > 1 and (len({*ways}) > 1 or "assigned" in ways):
            unsure.add(name)
    if has_globals:  # only on demand: this walk takes as long as everything else
        nodes = (node for statement in body for node in ast.walk(statement))
        unsure.update(name for node in nodes if isinstance(node, ast.Global) for name in node.names)
    return Bindings(
        assigned=frozenset(name for name, ways in kinds.items() if "assigned" in ways),
        unsure=frozenset(unsure),
        is_open="*" in kinds or "function" in kinds.get("__getattr__", ()),
    )


def _bound(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield each name that a body binds, with the binding node and whether that is conditional.

    Bodies of nested functions and classes are not searched: they have names of their own.
    """
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in body]
    # Iterative, as a sum of a thousand terms is a thousand levels deep.
    while pending:
        node, is_conditional = pending.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node, is_conditional
                continue
            # An annotation without value binds nothing; lambdas and comprehensions have names of their own.
            case ast.AnnAssign(value=None) | ast.Lambda() | ast.comprehension():
                continue
            case ast.alias():
                yield node.asname or node.name.partition(".")[0], node, is_conditional
            case ast.Name(ctx=ast.Store() | ast.Del()):
                yield node.id, node, is_conditional
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                yield name, node, is_conditional
            # For annotations, the imports under TYPE_CHECKING are the unconditional ones.
            case ast.If() if dotted_name(node.test) in _TYPE_CHECKING:
                pending += [(each, is_conditional) for each in node.body]
                pending += [(each, True) for each in node.orelse]
                continue
            case _:
                is_conditional = is_conditional or isinstance(node, _MAY_NOT_RUN)
        pending += [(each, is_conditional) for each in ast.iter_child_nodes(node)]


def bindings_of(owner: Any) -> Bindings:
    """Return the bindings that were recorded for a module or class of griffe."""
    return owner.extra[_EXTRA]["bindings"]


@dataclass(frozen=True, slots=True)
class ScopeNames:
    """Name resolution at a module, class or function of griffe, in the scopes around it, too."""

    scope: Any

    def find(self, name: str) -> str | None:
        """Return the full name; ``""`` if the source binds it but does not show it, ``None`` if unbound."""
        try:
            path: str = self.scope.resolve(name)
        except griffe.NameResolutionError:
            scope = self.scope.parent if self.scope.is_function else self.scope
            while not scope.is_module and name not in bindings_of(scope).assigned:
                scope = scope.parent
            bindings = bindings_of(scope)
            return "" if name in bindings.assigned or name in bindings.unsure else None
        module = self.scope.module
        if path.startswith(f"{module.path}.") and path != f"{module.path}.{name}":
            return ""  # a name of a class body, or a type parameter
        member = module.members.get(name)
        # A name of this module is a type only if it is imported, or a function or class.
        is_known = path != f"{module.path}.{name}" or (
            member is not None and (member.is_alias or member.is_function or member.is_class)
        )
        return path if is_known else ""

    def value(self, name: str) -> str | None:
        """Return the source of the value that the module assigns once to a name; ``None`` for a call."""
        module = self.scope.module
        member = module.members.get(name)
        if member is None or member.is_alias or not (member.is_attribute or member.is_type_alias):
            return None
        is_other = name in bindings_of(module).unsure or self.scope.resolve(name) != member.path
        # What a call returns is no alias: T = TypeVar("T").
        is_call = isinstance(member.value, griffe.ExprCall)
        return None if is_other or is_call or member.value is None else str(member.value)

    @property
    def is_open(self) -> bool:
        """Return whether the module may have names that its source does not show."""
        return bindings_of(self.scope.module).is_open


# -- conversion from griffe to contracts --------------------------------------------------------------


def members(owner: Scope, kind: griffe.Kind) -> dict[str, Any]:
    """Return the members of a kind, by name, that the body of a module or class defines itself."""
    return {name: each for name, each in owner.members.items() if not each.is_alias and each.kind is kind}


def definitions(owner: Scope) -> dict[str, Any]:
    """Return the functions and classes that a module or class defines, by name, in source order."""
    found = {**members(owner, griffe.Kind.FUNCTION), **members(owner, griffe.Kind.CLASS)}
    return dict(sorted(found.items(), key=lambda item: item[1].lineno or 0))


def uncertainty(owner: Scope, name: str) -> str | None:
    """Return why the source does not show what a name is; ``None`` if it does."""
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
        return f"comes from {owner.imports[name]}, which is not in the source of the project"
    if name in bindings.assigned:
        return "is assigned, not defined"
    return "may come from a star import or __getattr__" if bindings.is_open else None


def may_define(found: griffe.Class, name: str) -> bool:
    """Return whether a decorator or a metaclass may add this method to a class."""
    is_special = name.startswith("__") and name.endswith("__")
    is_known = not is_special and _is_plain_dataclass(found)
    return bool((found.decorators and not is_known) or found.keywords)


def signature_of(found: griffe.Function) -> FunctionContract:
    """Return the whole signature of a function, whose annotations and defaults stay source texts."""
    parameters = [
        (each, (each.kind or griffe.ParameterKind.positional_or_keyword).name) for each in found.parameters
    ]
    return FunctionContract.model_construct(
        name=found.name,
        parameters=tuple(
            ParameterContract.model_construct(
                name=each.name,
                kind=kind,
                annotation=_source(each.annotation),
                # griffe gives () to *args and {} to **options.
                default=None if kind.startswith("var_") else _source(each.default),
            )
            for each, kind in parameters
        ),
        returns=_source(found.returns),
        is_async="async" in found.labels,
    )


def decorators_of(found: griffe.Function) -> Iterator[tuple[str, str]]:
    """Yield the name of each decorator as written, and its full name; ``?`` if it is no name."""
    for each in found.decorators:
        value: Any = each.value.function if isinstance(each.value, griffe.ExprCall) else each.value
        is_name = isinstance(value, str | griffe.ExprName | griffe.ExprAttribute)
        yield (str(value), each.callable_path) if is_name else ("?", "?")


def _source(expression: str | griffe.Expr | None) -> str | None:
    return None if expression is None else str(expression)


def _is_plain_dataclass(found: Any) -> bool:
    """Return whether a class is a dataclass whose generated methods are known for certain.

    That excludes other decorators, bases, fields with an uncertain binding, and options that are no
    literals.
    """
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
            and (
                each.name not in ("init", "kw_only", *_SPECIAL_METHODS)
                or str(each.value) in ("True", "False")
            )
            for call in (*calls, *options)
            for each in call.arguments
        )
    )
