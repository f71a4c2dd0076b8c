"""Contract files, and their comparison with the modules of a project, by the source alone.

All errors of a contract file are reported at once, with line and column.

A difference is either proved by the source, or *open* (``unresolved``): the source does not show
whether the code fulfils the contract, because of a star import, a decorator or a metaclass, for
instance. Annotations and defaults are compared by meaning, not by spelling: ``pd.Series`` is
``pandas.Series`` if the module imports it so, ``Optional[X]`` is ``X | None``, and quotes do not matter.
"""

from __future__ import annotations

import ast
import builtins
import typing
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import griffe

from planner.catalog.tables import load_table
from planner.contracts.source import (
    ModuleProblem,
    ModuleReader,
    ScopeNames,
    decorators_of,
    definitions,
    difference,
    may_define,
    signature_of,
    uncertainty,
)
from planner.errors import ContractFileError
from planner.model.contract import Contract
from planner.planfile.document import Refused, compose, plan_file_error, read_source
from planner.planfile.project_files import Confinement
from planner.planfile.values import read_model
from planner.text.python_text import dotted_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from planner.contracts.source import Scope
    from planner.model.contract import (
        ClassContract,
        ContractDifference,
        FunctionContract,
        ParameterContract,
    )


MAX_NAMES = 20
"""Limit of the existing names that are listed when a promised name is missing."""

_PLAIN_BASES = frozenset({"object", "abc.ABC", "typing.Protocol", "typing.Generic"})
"""Base classes without methods that a contract would name."""


def read_contract_file(path: Path, *, root: Path | None = None) -> Contract:
    """Read a contract. Raises :class:`planner.errors.ContractFileError` with all errors of the file.

    With a ``root``, the path is relative to it and must stay below it.
    """
    shown = path.as_posix()
    try:
        if root is not None and (problem := Confinement(root).fault(shown)) is not None:
            raise Refused(problem)
        document = compose(read_source(path if root is None else root / path), is_json=True)
        contract, is_sound = read_model(document, Contract)
        if is_sound and contract.is_empty:
            problem = "the contract is empty; name functions, classes or schemas"
            document.mark(document.root.start_mark.index, "", problem)
        for number, problem in _bad_schemas(contract) if is_sound else ():
            schema = document.find(("schemas", number))
            document.mark(schema.start, schema.path, f"this is not a JSON Schema: {problem}; correct it")
        if document.faults:
            raise Refused("", document.faults)
        return contract
    except Refused as refused:
        raise ContractFileError(shown, plan_file_error(shown, refused.faults).faults) from None


def _bad_schemas(contract: Contract) -> Iterator[tuple[int, str]]:
    """Yield position and problem of each schema of the contract that is no valid JSON Schema."""
    if not contract.schemas:
        return
    # Imported here, as the import is slow and few contracts have schemas.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    for number, schema in enumerate(contract.schemas):
        try:
            chosen: Any = validator_for(schema, default=Draft202012Validator)
            chosen.check_schema(schema)
        except SchemaError as error:
            yield number, f"{error.json_path}: {error.message}"
        # For a $schema that is no URL, and a pattern that repeats more often than re can count.
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            yield number, str(error)


def compare_contract(contract: Contract, root: Path) -> tuple[ContractDifference, ...]:
    """Return the differences between a contract and the code below ``root``; empty if there are none.

    Proved differences come first, then open ones. Raises ``OSError`` if a folder or a file cannot be read.
    """
    reader = ModuleReader(root)
    try:
        module = reader.read(contract.module)
    except ModuleProblem as problem:
        return (problem.difference,)
    place = _Place(reader, module)
    found = [each for wanted in contract.functions for each in _function(place, wanted)]
    found += [each for wanted in contract.classes for each in _class(place, wanted)]
    return tuple(sorted(found, key=lambda each: each.is_open))


@dataclass(frozen=True, slots=True)
class _Place:
    """A module or class whose definitions are compared."""

    reader: ModuleReader
    owner: Scope
    prefix: str = ""
    """Names of the enclosing classes, each with a dot: ``Outer.``."""

    @property
    def path(self) -> str:
        """Path of the module, relative to the root."""
        return self.reader.path_of(self.owner)

    def follow(self, name: str) -> tuple[_Place, str]:
        """Return the module that defines a name of this module, and the name there; a class is returned."""
        if not isinstance(self.owner, griffe.Module):
            return self, name
        module, local = self.reader.follow(self.owner, name)
        return _Place(self.reader, module), local

    def difference(self, problem: str, name: str, message: str, **facts: Any) -> ContractDifference:
        """Return a difference about a name of this module or class."""
        return difference(problem, message, name=self.prefix + name, path=self.path, **facts)

    def absent(self, name: str, local: str, expected: str) -> ContractDifference:
        """Return the difference for a missing name, with the names that exist instead.

        It is open if the source does not show whether the name exists. ``local`` is the name in this
        module, ``name`` the promised one.
        """
        why, owner = uncertainty(self.owner, local), self.owner
        if why is None and isinstance(owner, griffe.Class):
            bases = {resolve(str(base).partition("[")[0], ScopeNames(owner)) for base in owner.bases}
            if not bases <= _PLAIN_BASES or may_define(owner, local):
                why = "may be inherited, or made by a decorator or metaclass"
        if why:
            return self.difference("unresolved", name, f"{self.prefix}{local} in {self.path} {why}")
        names = ", ".join(list(definitions(owner))[:MAX_NAMES]) or "no function or class"
        message = f"{self.prefix.rstrip('.') or owner.path} does not define {local}, it defines {names}"
        return self.difference("missing_function", name, message, expected=expected)

    def of_other_kind(self, name: str, local: str, expected: str) -> ContractDifference:
        """Return the difference for a class in the place of a function, or the reverse."""
        found = definitions(self.owner)[local]
        kind, actual = "a class, not a function", f"class {local}"
        if not found.is_class:
            kind, actual = "a function, not a class", render(signature_of(found))
        message = f"{self.prefix}{local} is {kind} ({self.path}:{found.lineno})"
        facts = {"expected": expected, "actual": actual, "line": found.lineno}
        return self.difference("signature", name, message, **facts)


def _function(place: _Place, wanted: FunctionContract) -> Iterator[ContractDifference]:
    """Compare a promised function of a module, or method of a class, with the code."""
    home, name = place.follow(wanted.name)
    found, expected = definitions(home.owner).get(name), render(wanted)
    if found is None or uncertainty(home.owner, name):
        yield home.absent(wanted.name, name, expected)
        return
    if found.is_class:
        yield home.of_other_kind(wanted.name, name, expected)
        return
    where, shown = f"{home.path}:{found.lineno}", home.prefix + wanted.name
    likeness, why, actual = compare_signature(wanted, found)
    if likeness is Likeness.SAME:
        return
    facts = {"actual": render(actual), "line": found.lineno}
    if likeness is Likeness.UNKNOWN:
        message = f"{shown} in {where} cannot be compared: {why}"
        yield home.difference("unresolved", wanted.name, message, **facts)
        return
    message = (
        f"{shown}: the contract says {render_signature(wanted)}, "
        f"the code has {render_signature(actual)} ({where}): {why}"
    )
    yield home.difference("signature", wanted.name, message, why=why, expected=expected, **facts)


def _class(start: _Place, wanted: ClassContract) -> Iterator[ContractDifference]:
    """Compare a promised class, its bases and methods with the code."""
    place = start
    for name in wanted.name.split("."):
        home, local = place.follow(name)  # only the outermost class can be imported from another module
        found = definitions(home.owner).get(local)
        if found is None or uncertainty(home.owner, local):
            yield home.absent(name, local, f"class {wanted.name}")
            return
        if not found.is_class:
            yield home.of_other_kind(name, local, f"class {wanted.name}")
            return
        place = _Place(start.reader, found, f"{home.prefix}{name}.")
    found = place.owner
    assert isinstance(found, griffe.Class)  # a name has at least one part
    name, bases = place.prefix.rstrip("."), [str(base) for base in found.bases]
    known_bases = _ancestors(place.reader, found)
    # Base classes that the contract does not promise are allowed.
    for base in wanted.bases:
        likenesses = {compare_annotations(base, each, ScopeNames(found)) for each in known_bases}
        if Likeness.SAME not in likenesses:
            known = Likeness.UNKNOWN not in likenesses
            verb, where = "is not" if known else "may not be", f"{place.path}:{found.lineno}"
            yield difference(
                "signature" if known else "unresolved",
                f"{name} {verb} a subclass of {base} according to its source ({where})",
                name=name,
                expected=f"class {name}({base})",
                actual=f"class {name}({', '.join(bases)})",
                path=place.path,
                line=found.lineno,
            )
    for method in wanted.methods:
        yield from _function(place, method)


def _ancestors(reader: ModuleReader, found: griffe.Class) -> set[str]:
    """Return the base classes of a class, and theirs if the project or Python itself defines them."""
    names = {str(base) for base in found.bases}
    classes = [found]
    for each in classes:  # grows while it is read
        for base in each.bases:
            # A subclass of Sequence[int] is one of Sequence, too.
            name = str(base).partition("[")[0]
            full = resolve(name, ScopeNames(each)) or ""
            builtin = getattr(builtins, full, None)
            names.add(full or (name if each is found else f"{each.module.path}.{name}"))
            names.update(at.__name__ for at in (builtin.__mro__ if isinstance(builtin, type) else ()))
            module, local = each.module, name
            if "." in name:  # an attribute of an imported module
                origin, _, attribute = full.rpartition(".")
                with suppress(OSError, ModuleProblem):
                    module, local = reader.read(origin), attribute
            module, local = reader.follow(module, local)
            inherited = None if uncertainty(module, local) else definitions(module).get(local)
            if inherited is not None and inherited.is_class and inherited not in classes:
                classes.append(inherited)
    return names


# -- signatures, annotations and defaults --------------------------------------------------------------


MAX_ALIASES = 5
"""Limit of the chain of type aliases through which a name is resolved."""


class Likeness(Enum):
    """Result of comparing two annotations."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """One of them has a name that cannot be resolved without running the code."""


def compare_signature(
    wanted: FunctionContract, found: griffe.Function
) -> tuple[Likeness, str, FunctionContract]:
    """Compare names, kinds and order of all parameters, and all other properties that the contract gives.

    Return the result, the reasons (empty for :attr:`Likeness.SAME`), and the signature of the code that was
    compared. A proved difference outweighs an unresolved one.
    """
    actual, decorators = signature_of(found), list(decorators_of(found))
    first, *others = actual.parameters or (None,)
    promised = [each.name for each in wanted.parameters or ()]
    is_method = found.parent is not None and found.parent.is_class
    is_bound = is_method and all(full != "staticmethod" for _, full in decorators)
    # In `def run(*args)`, self is one of the arguments. A contract may list self or cls, or leave it out.
    if is_bound and first and not first.kind.startswith("var_") and promised[:1] != [first.name]:
        actual = actual.model_copy(update={"parameters": tuple(others)})
    if strange := [name for name, full in decorators if full not in _KNOWN_DECORATORS]:
        return Likeness.UNKNOWN, f"the decorator {strange[0]} may change its signature", actual
    differences = list(_differences(wanted, actual, ScopeNames(found)))
    for likeness in (Likeness.DIFFERENT, Likeness.UNKNOWN):
        reasons = [why for each, why in differences if each is likeness]
        if reasons:
            return likeness, "; ".join(reasons), actual
    return Likeness.SAME, "", actual


def _differences(
    wanted: FunctionContract, found: FunctionContract, names: ScopeNames
) -> Iterator[tuple[Likeness, str]]:
    """Yield the result of each comparison, with the message for the case that it is not ``SAME``."""
    if wanted.is_async is not None and wanted.is_async is not bool(found.is_async):
        yield Likeness.DIFFERENT, "it is async" if found.is_async else "it is not async"
    if wanted.parameters is not None:
        for why in _changes(wanted.parameters, found.parameters or ()):
            yield Likeness.DIFFERENT, why
        by_name = {each.name: each for each in found.parameters or ()}
        for expected in (each for each in wanted.parameters if each.name in by_name):
            for what, compare in (("annotation", compare_annotations), ("default", compare_defaults)):
                value = getattr(expected, what)
                actual = getattr(by_name[expected.name], what)
                subject = expected.name if what == "annotation" else f"the default of {expected.name}"
                if value is not None and actual is None:
                    yield Likeness.DIFFERENT, f"{expected.name} has no {what}"
                elif value is not None:
                    yield compare(value, actual, names), f"{subject} is {actual}, not {value}"
    if wanted.returns is not None and found.returns is None:
        yield Likeness.DIFFERENT, "it has no return annotation"
    elif wanted.returns is not None and found.returns is not None:
        why = f"it returns {found.returns}, not {wanted.returns}"
        yield compare_annotations(wanted.returns, found.returns, names), why


def _changes(promised: Sequence[ParameterContract], found: Sequence[ParameterContract]) -> Iterator[str]:
    """Yield the differences in names, kinds and order of the parameters, as messages."""
    wanted = {each.name: each.kind for each in promised}
    actual = {each.name: each.kind for each in found}
    common = [name for name in wanted if name in actual]
    yield from (f"it lacks the parameter {name}" for name in wanted if name not in actual)
    yield from (f"it has the additional parameter {name}" for name in actual if name not in wanted)
    for name in common:
        if wanted[name] != actual[name]:
            yield f"{name} is " + f"{actual[name]}, not {wanted[name]}".replace("_", " ")
    if common != [name for name in actual if name in wanted]:
        yield "its parameters have another order"


def render(function: FunctionContract) -> str:
    """Render a signature with its name: ``rsi(series: pd.Series, period: int = 14) -> pd.Series``."""
    return f"{'async ' if function.is_async else ''}{function.name}{render_signature(function)}"


def render_signature(function: FunctionContract) -> str:
    """Render a signature without its name: ``(series: pd.Series, period: int = 14) -> pd.Series``."""
    returns = f" -> {function.returns}" if function.returns else ""
    if function.parameters is None:
        return f"(…){returns}"
    shown: list[str] = []
    has_star = False
    for parameter, following in pairwise((*function.parameters, None)):
        assert parameter is not None
        kind = parameter.kind
        if kind == "keyword_only" and not has_star:
            shown.append("*")
        has_star = has_star or kind in ("keyword_only", "var_positional")
        star = {"var_positional": "*", "var_keyword": "**"}.get(kind, "")
        annotation = f": {parameter.annotation}" if parameter.annotation else ""
        # Blanks as in PEP 8.
        equals = " = " if annotation else "="
        default = f"{equals}{parameter.default}" if parameter.default else ""
        shown.append(f"{star}{parameter.name}{annotation}{default}")
        if kind == "positional_only" and (following is None or following.kind != kind):
            shown.append("/")
    return f"({', '.join(shown)}){returns}"


# -- annotations and defaults --------------------------------------------------------------------------


def compare_annotations(expected: str, actual: str, names: ScopeNames) -> Likeness:
    """Compare the types that two annotations denote.

    ``expected`` is of the contract, ``actual`` of the code. Annotations that cannot be parsed are the same
    if their texts are, otherwise unknown.
    """
    left, right = _TypeReader(names), _TypeReader(names)

    def match_end(name: str) -> str:
        return next((each for each in sorted(left.loose) if name.endswith(f".{each}")), name)

    try:
        wanted = left.read(expected)
        if wanted == right.read(actual):
            return Likeness.SAME
        if left.unresolved or right.unresolved:
            return Likeness.UNKNOWN
        # A name that neither the module nor convention knows matches any full name that ends with it.
        if wanted == _TypeReader(names, match_end).read(actual):
            return Likeness.SAME
        # A library may expose one type by several paths: pandas.Series is pandas.core.series.Series.
        same_ends = len({_TypeReader(names, _ends).read(each) for each in (expected, actual)}) == 1
        return Likeness.UNKNOWN if same_ends or (right.loose and names.is_open) else Likeness.DIFFERENT
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _compare_texts(expected, actual)


def compare_defaults(expected: str, actual: str, names: ScopeNames | None = None) -> Likeness:
    """Compare the values of two defaults; the name of a constant in the code is replaced by its value.

    Defaults that are no literals are the same if their sources are, otherwise unknown.
    """
    try:
        wanted, found = (ast.parse(each.strip(), mode="eval").body for each in (expected, actual))
        if ast.dump(wanted) == ast.dump(found):
            return Likeness.SAME
        value = None if names is None else names.value(actual)
        if value is not None:
            return compare_defaults(expected, value)
        left, right = ast.literal_eval(wanted), ast.literal_eval(found)
        # With the types, as True == 1 == 1.0.
        return Likeness.SAME if (type(left), left) == (type(right), right) else Likeness.DIFFERENT
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return _compare_texts(expected, actual)


def _compare_texts(expected: str, actual: str) -> Likeness:
    return Likeness.SAME if expected.strip() == actual.strip() else Likeness.UNKNOWN


def resolve(name: str, names: ScopeNames) -> str | None:
    """Return the full name of a dotted name, ``None`` if the source does not show it.

    A name that the module does not bind is taken for a builtin or as contracts usually mean it.
    """
    head, dot, rest = name.partition(".")
    full = names.find(head)
    if full is None:
        full = _CUSTOMARY.get(head) or (head if hasattr(builtins, head) and not dot else None)
    whole = f"{full}{dot}{rest}".replace("typing_extensions.", "typing.")
    return _SAME_AS.get(whole, whole) if full else None


class _TypeReader:
    """Parser of an annotation into a normalized text, in which names are full, and unions are sorted."""

    def __init__(self, names: ScopeNames, rename: Callable[[str], str] = str) -> None:
        self._names = names
        self._rename = rename
        """Converts each name."""
        self.unresolved = False
        """Whether it has an expression or a bound name that the source does not resolve."""
        self.loose: set[str] = set()
        """Names that are not bound at all."""
        self._steps = 0
        """Number of type aliases that are being resolved at the moment."""

    def read(self, source: str) -> str:
        """Return the normalized text. Raises ``SyntaxError`` and other errors of the parser."""
        return self._text(ast.parse(source.strip(), mode="eval").body)

    def _text(self, node: ast.expr) -> str:
        return " | ".join(sorted(self._members(node)))

    def _members(self, node: ast.expr) -> set[str]:
        """Return the members of a union; any other type is its only member."""
        match node:
            case ast.Constant(value=str(text)):  # a quoted annotation
                return self._members(ast.parse(text.strip(), mode="eval").body)
            case ast.Constant(value=value):
                return {repr(value)}
            case ast.Name() | ast.Attribute() if name := dotted_name(node):
                return self._resolved(name)
            case ast.BinOp(op=ast.BitOr()):
                return self._members(node.left) | self._members(node.right)
            case ast.List(elts=elements):
                return {f"[{', '.join(map(self._text, elements))}]"}
            case ast.Subscript():
                return self._subscript(node)
            case _:
                self.unresolved = True
                return {ast.unparse(node)}

    def _resolved(self, name: str) -> set[str]:
        """Resolve a dotted name, through type aliases of the module; record it if that fails."""
        full, value = resolve(name, self._names), self._names.value(name)
        # Bounded, as aliases may refer to each other in a circle.
        if full is None and value is not None and self._steps < MAX_ALIASES:
            self._steps += 1
            members = self._members(ast.parse(value, mode="eval").body)
            self._steps -= 1
            return members
        if full is None and self._names.find(name.partition(".")[0]) is None:
            self.loose.add(name)
        elif full is None:
            self.unresolved = True
        return {self._rename(full or name)}

    def _subscript(self, node: ast.Subscript) -> set[str]:
        base = self._text(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match base:
            case "typing.Literal":  # strings here are values, not quoted types
                values = map(ast.unparse, inner)
                return {each if each == "None" else f"{base}[{each}]" for each in values}
            case "typing.Annotated" | "dataclasses.InitVar" if inner:
                return self._members(inner[0])
            case "typing.Optional" | "typing.Union" if inner:
                none = {"None"} if base == "typing.Optional" else set[str]()
                return none.union(*map(self._members, inner))
            case _:
                return {f"{base}[{', '.join(map(self._text, inner))}]"}


def _ends(name: str) -> str:
    """Return the first and the last part of a dotted name."""
    return f"{name.partition('.')[0]}.{name.rpartition('.')[2]}"


_TABLE = load_table("names", "planner.contracts")
_KNOWN_DECORATORS = frozenset(_TABLE["decorators"].split())
"""Decorators that do not change the signature."""

_CUSTOMARY: dict[str, str] = {
    **{name: name for name in _TABLE["modules"].split()},
    **{name: f"typing.{name}" for name in _TABLE["typing"].split()},
    **_TABLE["customary"],
}
"""Usual meanings of names in contracts, for names that the module does not bind."""

_SAME_AS = {
    f"typing.{name}": f"{origin.__module__}.{origin.__qualname__}".removeprefix("builtins.")
    for name, value in vars(typing).items()
    if isinstance(origin := getattr(value, "__origin__", None), type)
} | _TABLE["same_as"]
"""Canonical names of types with several names; aliases of :mod:`typing` have it in ``__origin__``."""
