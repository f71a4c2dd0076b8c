"""Comparing the signature that a contract promises with the one that stands in the source."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.checks.annotations import (
    Likeness,
    Names,
    compare_annotations,
    compare_defaults,
    dotted,
    resolve,
)

if TYPE_CHECKING:
    from planner.model.contract import FunctionContract, ParameterContract
    from pytest_planverify.checks.module_source import Function


def compare_signature(
    wanted: FunctionContract, found: Function, names: Names, *, is_method: bool = False
) -> tuple[Likeness, str, str]:
    """How they compare, why they are not the same, and the signature that was found.

    Names, kinds and order of all parameters must agree. Annotations, defaults and the return annotation
    are compared where the contract gives them.
    """
    actual = render_function(found)
    parameters = _parameters(found)
    decorators = [
        dotted(node.func if isinstance(node, ast.Call) else node) or "?" for node in found.decorator_list
    ]
    full = [resolve(name, names) or name for name in decorators]
    strange = [name for name, known in zip(decorators, full, strict=True) if known not in _KEEP_SIGNATURE]
    if strange:
        return Likeness.UNKNOWN, f"the decorator {strange[0]} may change its signature", actual
    if is_method and "staticmethod" not in full and parameters:
        promised = wanted.parameters or ()
        if not promised or promised[0].name != parameters[0].name:
            parameters = parameters[1:]
    unknown: list[str] = []
    for likeness, why in _differences(wanted, found, parameters, names):
        if likeness is Likeness.DIFFERENT:
            return likeness, why, actual
        unknown.append(why)
    return (Likeness.UNKNOWN, unknown[0], actual) if unknown else (Likeness.SAME, "", actual)


def render_contract(wanted: FunctionContract) -> str:
    """The promised signature as source: ``rsi(series: pd.Series, period: int = 14) -> pd.Series``."""
    shown = "…" if wanted.parameters is None else _render([_promised(each) for each in wanted.parameters])
    returns = f" -> {wanted.returns}" if wanted.returns else ""
    return f"{'async ' if wanted.is_async else ''}{wanted.name}({shown}){returns}"


def render_function(found: Function) -> str:
    """The signature that stands in the source."""
    returns = f" -> {ast.unparse(found.returns)}" if found.returns else ""
    prefix = "async " if isinstance(found, ast.AsyncFunctionDef) else ""
    return f"{prefix}{found.name}({_render(_parameters(found))}){returns}"


_Note = Callable[[Likeness, str], None]


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    kind: str
    annotation: str | None
    default: str | None


_KEEP_SIGNATURE = frozenset(
    {
        "staticmethod",
        "classmethod",
        "abc.abstractmethod",
        "abstractmethod",
        "functools.lru_cache",
        "functools.cache",
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


def _differences(
    wanted: FunctionContract, found: Function, parameters: list[_Parameter], names: Names
) -> list[tuple[Likeness, str]]:
    differences: list[tuple[Likeness, str]] = []

    def note(likeness: Likeness, why: str) -> None:
        if likeness is not Likeness.SAME:
            differences.append((likeness, why))

    is_async = isinstance(found, ast.AsyncFunctionDef)
    if wanted.is_async is not None and wanted.is_async is not is_async:
        note(Likeness.DIFFERENT, "it is async" if is_async else "it is not async")
    if wanted.parameters is not None:
        promised = [_promised(each) for each in wanted.parameters]
        if [(each.name, each.kind) for each in promised] != [(each.name, each.kind) for each in parameters]:
            note(Likeness.DIFFERENT, _what_differs(promised, parameters))
        else:
            for expected, actual in zip(promised, parameters, strict=True):
                _compare_parameter(expected, actual, names, note)
    if wanted.returns is not None:
        if found.returns is None:
            note(Likeness.DIFFERENT, "it does not say what it returns")
        else:
            returns = ast.unparse(found.returns)
            note(compare_annotations(wanted.returns, returns, names), f"it returns {returns}")
    return differences


def _compare_parameter(expected: _Parameter, actual: _Parameter, names: Names, note: _Note) -> None:
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
            likeness = compare_defaults(expected.default, actual.default)
            note(likeness, f"the default of {actual.name} is {actual.default}, not {expected.default}")


def _what_differs(promised: list[_Parameter], parameters: list[_Parameter]) -> str:
    wanted, found = [each.name for each in promised], [each.name for each in parameters]
    missing = [name for name in wanted if name not in found]
    surplus = [name for name in found if name not in wanted]
    if missing:
        return f"it lacks the parameter {missing[0]}"
    if surplus:
        return f"it has the parameter {surplus[0]} besides"
    if wanted != found:
        return "its parameters stand in another order"
    kinds = next(
        (each for each, other in zip(parameters, promised, strict=True) if each.kind != other.kind),
        parameters[0],
    )
    return f"{kinds.name} is {kinds.kind.replace('_', ' ')}"


def _promised(parameter: ParameterContract) -> _Parameter:
    return _Parameter(parameter.name, parameter.kind, parameter.annotation, parameter.default)


def _parameters(found: Function) -> list[_Parameter]:
    arguments = found.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults.extend(arguments.defaults)
    parameters = [
        _read(
            argument,
            "positional_only" if at < len(arguments.posonlyargs) else "positional_or_keyword",
            default,
        )
        for at, (argument, default) in enumerate(zip(positional, defaults, strict=True))
    ]
    if arguments.vararg:
        parameters.append(_read(arguments.vararg, "var_positional", None))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(_read(argument, "keyword_only", default))
    if arguments.kwarg:
        parameters.append(_read(arguments.kwarg, "var_keyword", None))
    return parameters


def _read(argument: ast.arg, kind: str, default: ast.expr | None) -> _Parameter:
    return _Parameter(
        argument.arg,
        kind,
        ast.unparse(argument.annotation) if argument.annotation else None,
        ast.unparse(default) if default else None,
    )


_STARS = {"var_positional": "*", "var_keyword": "**"}


def _render(parameters: list[_Parameter]) -> str:
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
