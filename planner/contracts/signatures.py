"""Compares the signature that a contract promises with the one that the code has, and renders both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.contracts.annotations import Likeness, compare_annotations, compare_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.contracts.names import Names
    from planner.model.contract import FunctionContract, ParameterContract

MAX_NAMED = 5
"""So many differences of one signature are named."""

_KEEP_PARAMETERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})
"""Decorators that leave the parameters as they are, but give something else than the function returns."""

_KNOWN_DECORATORS = _KEEP_PARAMETERS | {
    *("staticmethod", "classmethod", "abc.abstractmethod", "abstractmethod"),
    *("functools.lru_cache", "functools.cache", "functools.singledispatch"),
    *("typing.final", "typing.override", "typing.no_type_check"),
    *("typing_extensions.override", "typing_extensions.final", "typing_extensions.deprecated"),
    *("warnings.deprecated", "numba.jit", "numba.njit"),
}
"""Decorators that leave at least the parameters as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFunction:
    """A function as the source has it."""

    signature: FunctionContract
    """``self`` and ``cls`` among its parameters."""
    line: int
    decorators: tuple[tuple[str, str], ...]
    """As written, and by the full name as far as it is known."""
    names: Names
    is_method: bool

    @property
    def strange_decorator(self) -> str | None:
        """The first decorator that may change the signature, as written."""
        return next((name for name, full in self.decorators if full not in _KNOWN_DECORATORS), None)

    @property
    def bound(self) -> FunctionContract:
        """The signature as a caller meets it: without ``self`` or ``cls``."""
        parameters = self.signature.parameters or ()
        is_static = any(full == "staticmethod" for _, full in self.decorators)
        if not self.is_method or is_static or not parameters or parameters[0].kind.startswith("var_"):
            return self.signature
        return self.signature.model_copy(update={"parameters": parameters[1:]})


def compare_signature(
    wanted: FunctionContract, found: FoundFunction
) -> tuple[Likeness, str, FunctionContract]:
    """Compare names, kinds and order of all parameters, and whatever else the contract gives.

    Returned are how the two compare, what differs or cannot be told, and what of the code was compared.
    A difference that can be proved outweighs one that cannot.
    """
    actual = found.bound
    promised = [each.name for each in wanted.parameters or ()]
    whole = [each.name for each in found.signature.parameters or ()]
    if len(whole) > len(actual.parameters or ()) and promised[:1] == whole[:1]:
        actual = found.signature  # the contract counts self or cls too
    if found.strange_decorator:
        why = f"the decorator {found.strange_decorator} may change its signature"
        return Likeness.UNKNOWN, why, actual
    keeps_result = not any(full in _KEEP_PARAMETERS for _, full in found.decorators)
    differences = list(_differences(wanted, actual, found.names, keeps_result=keeps_result))
    for likeness in (Likeness.DIFFERENT, Likeness.UNKNOWN):
        said = [why for each, why in differences if each is likeness]
        if said:
            more = [f"and {len(said) - MAX_NAMED} more"] if len(said) > MAX_NAMED else []
            return likeness, "; ".join([*said[:MAX_NAMED], *more]), actual
    return Likeness.SAME, "", actual


def _differences(
    wanted: FunctionContract, found: FunctionContract, names: Names, *, keeps_result: bool
) -> Iterator[tuple[Likeness, str]]:
    """Yield what is compared, and what to say of it where it is not the same."""
    if wanted.is_async is not None and wanted.is_async is not bool(found.is_async):
        yield Likeness.DIFFERENT, "it is async" if found.is_async else "it is not async"
    if wanted.parameters is not None:
        for why in _changes(wanted.parameters, found.parameters or ()):
            yield Likeness.DIFFERENT, why
        by_name = {each.name: each for each in found.parameters or ()}
        for expected in wanted.parameters:
            if expected.name in by_name:
                yield from _compare_parameter(expected, by_name[expected.name], names)
    if wanted.returns is not None:
        if found.returns is None:
            likeness, why = Likeness.DIFFERENT, "it does not say what it returns"
        else:
            likeness = compare_annotations(wanted.returns, found.returns, names)
            why = f"it returns {found.returns}, not {wanted.returns}"
        is_sure = keeps_result or likeness is not Likeness.DIFFERENT
        yield likeness if is_sure else Likeness.UNKNOWN, why


def _compare_parameter(
    expected: ParameterContract, actual: ParameterContract, names: Names
) -> Iterator[tuple[Likeness, str]]:
    name = actual.name
    if expected.annotation is not None and actual.annotation is None:
        yield Likeness.DIFFERENT, f"{name} has no annotation"
    elif expected.annotation is not None and actual.annotation is not None:
        likeness = compare_annotations(expected.annotation, actual.annotation, names)
        yield likeness, f"{name} is {actual.annotation}, not {expected.annotation}"
    if expected.default is not None and actual.default is None:
        yield Likeness.DIFFERENT, f"{name} has no default"
    elif expected.default is not None and actual.default is not None:
        likeness = compare_defaults(expected.default, actual.default, names)
        yield likeness, f"the default of {name} is {actual.default}, not {expected.default}"


def _changes(promised: Sequence[ParameterContract], found: Sequence[ParameterContract]) -> Iterator[str]:
    """Yield how names, kinds and order of the parameters differ."""
    wanted = {each.name: each.kind for each in promised}
    there = {each.name: each.kind for each in found}
    gone = [name for name in wanted if name not in there]
    new_ones = [name for name in there if name not in wanted]
    pairs = zip(wanted, there, strict=False) if len(wanted) == len(there) else ()
    renamed = {old: new for old, new in pairs if old in gone and new in new_ones}
    yield from (f"the parameter {old} is renamed to {new}" for old, new in renamed.items())
    yield from (f"it lacks the parameter {name}" for name in gone if name not in renamed)
    yield from (f"it has the parameter {name} besides" for name in new_ones if name not in renamed.values())
    for old, new in [*((name, name) for name in there if name in wanted), *renamed.items()]:
        if wanted[old] != there[new]:
            kinds = f"{there[new]}, not {wanted[old]}".replace("_", " ")
            yield f"{new} is {kinds}"
    common = [each.name for each in promised if each.name in there]
    if common != [each.name for each in found if each.name in wanted]:
        yield "its parameters stand in another order"


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
        equals = " = " if annotation else "="
        default = f"{equals}{parameter.default}" if parameter.default else ""
        shown.append(f"{star}{parameter.name}{annotation}{default}")
        if kind == "positional_only" and (following is None or following.kind != kind):
            shown.append("/")
    return f"({', '.join(shown)}){returns}"
