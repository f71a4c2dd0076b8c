"""Compares the signature that a contract promises with the one that the code has, and writes both down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.rules.contracts.annotations import Likeness, Names, compare_annotations, compare_defaults

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.contract import FunctionContract, ParameterContract

MAX_NAMED = 5
"""So many differences of one signature are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFunction:
    """A function as the source has it."""

    signature: FunctionContract
    """``self`` and ``cls`` among its parameters."""
    line: int
    decorators: tuple[tuple[str, str], ...] = ()
    """As written, and by the full name as far as it is known."""
    type_parameters: frozenset[str] = frozenset()

    @property
    def strange_decorator(self) -> str | None:
        """The first decorator that may change the signature, as written."""
        return next(
            (name for name, full in self.decorators if full not in _KEEP_SIGNATURE | _KEEP_PARAMETERS), None
        )

    def bound(self, *, is_method: bool) -> FunctionContract:
        """The signature as a caller meets it: without ``self`` or ``cls``."""
        decorators = {full for _, full in self.decorators}
        parameters = self.signature.parameters or ()
        if not is_method or "staticmethod" in decorators or not parameters:
            return self.signature
        if parameters[0].kind.startswith("var_"):
            return self.signature
        return self.signature.model_copy(update={"parameters": parameters[1:]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How a promise and the code compare."""

    likeness: Likeness
    why: str = ""
    """What differs, or what cannot be told."""
    actual: FunctionContract
    """What the code has, as far as it was compared."""


def compare_signature(
    wanted: FunctionContract, found: FoundFunction, names: Names, *, is_method: bool = False
) -> Comparison:
    """Compare names, kinds and order of all parameters, and whatever else the contract gives.

    A difference that can be proved outweighs one that cannot.
    """
    actual = found.bound(is_method=is_method)
    promised = [each.name for each in wanted.parameters or ()]
    whole = [each.name for each in found.signature.parameters or ()]
    if len(whole) > len(actual.parameters or ()) and promised[:1] == whole[:1]:
        actual = found.signature  # the contract counts self or cls too
    if found.strange_decorator:
        why = f"the decorator {found.strange_decorator} may change its signature"
        return Comparison(likeness=Likeness.UNKNOWN, why=why, actual=actual)
    if found.type_parameters:  # what they are called is nobody's business
        names = replace(names, assigned=names.assigned | found.type_parameters)
    keeps_result = not any(full in _KEEP_PARAMETERS for _, full in found.decorators)
    differences = list(_differences(wanted, actual, names, keeps_result=keeps_result))
    for likeness in (Likeness.DIFFERENT, Likeness.UNKNOWN):
        said = [why for each, why in differences if each is likeness]
        if said:
            return Comparison(likeness=likeness, why=_several(said), actual=actual)
    return Comparison(likeness=Likeness.SAME, actual=actual)


def render(function: FunctionContract) -> str:
    """A signature with its name, as source: ``rsi(series: pd.Series, period: int = 14) -> pd.Series``."""
    return f"{'async ' if function.is_async else ''}{function.name}{render_signature(function)}"


def render_signature(function: FunctionContract) -> str:
    """A signature without its name: ``(series: pd.Series, period: int = 14) -> pd.Series``."""
    shown = "…" if function.parameters is None else _render(function.parameters)
    returns = f" -> {function.returns}" if function.returns else ""
    return f"({shown}){returns}"


_KEEP_SIGNATURE = frozenset(
    {
        "staticmethod",
        "classmethod",
        "abc.abstractmethod",
        "abstractmethod",
        "functools.lru_cache",
        "functools.cache",
        "functools.singledispatch",
        "typing.final",
        "typing.override",
        "typing.no_type_check",
        "typing_extensions.override",
        "typing_extensions.final",
        "typing_extensions.deprecated",
        "warnings.deprecated",
        "numba.jit",
        "numba.njit",
    }
)
"""Decorators that leave parameters and result as they are."""

_KEEP_PARAMETERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})
"""Decorators that leave the parameters as they are, but give something else than the function returns."""

_Difference = tuple[Likeness, str]
_Note = Callable[[Likeness, str], None]


def _differences(
    wanted: FunctionContract, found: FunctionContract, names: Names, *, keeps_result: bool
) -> list[_Difference]:
    differences: list[_Difference] = []

    def note(likeness: Likeness, why: str) -> None:
        if likeness is not Likeness.SAME:
            differences.append((likeness, why))

    if wanted.is_async is not None and wanted.is_async is not bool(found.is_async):
        note(Likeness.DIFFERENT, "it is async" if found.is_async else "it is not async")
    if wanted.parameters is not None:
        _compare_parameters(wanted.parameters, found.parameters or (), names, note)
    if wanted.returns is not None:
        _compare_returns(wanted.returns, found.returns, names, note, keeps_result=keeps_result)
    return differences


def _compare_returns(
    expected: str, actual: str | None, names: Names, note: _Note, *, keeps_result: bool
) -> None:
    if actual is None:
        note(Likeness.DIFFERENT if keeps_result else Likeness.UNKNOWN, "it does not say what it returns")
        return
    likeness = compare_annotations(expected, actual, names)
    if likeness is Likeness.DIFFERENT and not keeps_result:
        likeness = Likeness.UNKNOWN
    note(likeness, f"it returns {actual}, not {expected}")


def _compare_parameters(
    promised: Sequence[ParameterContract], found: Sequence[ParameterContract], names: Names, note: _Note
) -> None:
    if [(each.name, each.kind) for each in promised] != [(each.name, each.kind) for each in found]:
        for why in _what_differs(promised, found):
            note(Likeness.DIFFERENT, why)
    by_name = {each.name: each for each in found}
    for expected in promised:
        if expected.name in by_name:
            _compare_parameter(expected, by_name[expected.name], names, note)


def _compare_parameter(
    expected: ParameterContract, actual: ParameterContract, names: Names, note: _Note
) -> None:
    if expected.annotation is not None:
        if actual.annotation is None:
            note(Likeness.DIFFERENT, f"{actual.name} has no annotation")
        else:
            likeness = compare_annotations(expected.annotation, actual.annotation, names)
            note(likeness, f"{actual.name} is {actual.annotation}, not {expected.annotation}")
    if expected.default is not None:
        if actual.default is None:
            note(Likeness.DIFFERENT, f"{actual.name} has no default")
        else:
            likeness = compare_defaults(expected.default, actual.default, names)
            note(likeness, f"the default of {actual.name} is {actual.default}, not {expected.default}")


def _what_differs(
    promised: Sequence[ParameterContract], found: Sequence[ParameterContract]
) -> Iterable[str]:
    wanted, there = [each.name for each in promised], [each.name for each in found]
    renamed = {
        old: new
        for old, new in zip(wanted, there, strict=False)
        if len(wanted) == len(there) and old not in there and new not in wanted
    }
    yield from (f"the parameter {old} is renamed to {new}" for old, new in renamed.items())
    yield from (
        f"it lacks the parameter {name}" for name in wanted if name not in there and name not in renamed
    )
    new_names = set(renamed.values())
    yield from (
        f"it has the parameter {name} besides"
        for name in there
        if name not in wanted and name not in new_names
    )
    kinds = {each.name: each.kind for each in promised}
    yield from (
        f"{each.name} is {_in_words(each.kind)}, not {_in_words(kinds[each.name])}"
        for each in found
        if each.name in kinds and each.kind != kinds[each.name]
    )
    for old, new in renamed.items():
        kind = found[there.index(new)].kind
        if kind != kinds[old]:
            yield f"{new} is {_in_words(kind)}, not {_in_words(kinds[old])}"
    common = [name for name in wanted if name in there]
    if common != [name for name in there if name in wanted]:
        yield "its parameters stand in another order"


def _in_words(kind: str) -> str:
    return kind.replace("_", " ")


def _several(said: Sequence[str]) -> str:
    more = [f"and {len(said) - MAX_NAMED} more"] if len(said) > MAX_NAMED else []
    return "; ".join([*said[:MAX_NAMED], *more])


_STARS = {"var_positional": "*", "var_keyword": "**"}


def _render(parameters: Sequence[ParameterContract]) -> str:
    shown: list[str] = []
    kinds = [parameter.kind for parameter in parameters]
    for at, parameter in enumerate(parameters):
        if parameter.kind == "keyword_only" and not {"keyword_only", "var_positional"} & set(kinds[:at]):
            shown.append("*")
        annotation = f": {parameter.annotation}" if parameter.annotation else ""
        equals = " = " if annotation else "="
        default = f"{equals}{parameter.default}" if parameter.default else ""
        shown.append(f"{_STARS.get(parameter.kind, '')}{parameter.name}{annotation}{default}")
        if parameter.kind == "positional_only" and kinds[at + 1 : at + 2] != ["positional_only"]:
            shown.append("/")
    return ", ".join(shown)
