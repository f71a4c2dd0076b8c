"""The signature that the product's source has for a function that a test could not call."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

from planner.contracts.signatures import render_signature
from planner.model.contract import FunctionContract, ParameterContract, ParameterKind
from planner.planfile.confinement import Confinement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from planner.model.evidence import Frame

MAX_BYTES = 1 << 20
"""Larger files are not read for a sentence."""

_BOUND = frozenset({"classmethod", "abstractmethod", "abc.abstractmethod", "override", "typing.override"})
_UNBOUND = "staticmethod"

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def actual_signature(callee: str, subjects: Sequence[Frame], root: Path) -> str | None:
    """``compute_rsi(series, period=14)`` as its source has it, read but never run.

    ``subjects`` tell which files define what the test used. ``None`` where the source does not tell: no
    such definition there, or a decorator that may change it.
    """
    names = callee.split(".")
    for path in _files(names, subjects):
        found = _definition(_body(root, path), names)
        if found is not None:
            shown = _signature(found, is_method=len(names) > 1)
            return None if shown is None else f"{callee}{shown}"
    return None


def _files(names: Sequence[str], subjects: Iterable[Frame]) -> list[str]:
    """The files of the subjects, first of those that are called like the function or its class."""
    named = sorted(subjects, key=lambda frame: frame.function.split(".")[0] != names[0])
    return list(dict.fromkeys(frame.path for frame in named))


def _body(root: Path, path: str) -> list[ast.stmt]:
    if Confinement(root).fault(path) is not None:
        return []
    file = root / path
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # what is wrong with it is told where it is imported


def _definition(body: Iterable[ast.stmt], names: Sequence[str]) -> _Definition | None:
    """The definition of that dotted name; the only one, as of several nobody can tell which was meant."""
    found = [each for each in _definitions(body) if each.name == names[0]]
    if len(found) != 1:
        return None
    if len(names) == 1:
        return found[0]
    return _definition(found[0].body, names[1:]) if isinstance(found[0], ast.ClassDef) else None


def _definitions(body: Iterable[ast.stmt]) -> Iterator[_Definition]:
    for statement in body:
        if isinstance(statement, _Definition):
            yield statement
        elif isinstance(statement, ast.If):
            yield from _definitions([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handled = [each for handler in statement.handlers for each in handler.body]
            yield from _definitions([*statement.body, *handled, *statement.orelse])


def _signature(found: _Definition, *, is_method: bool) -> str | None:
    if isinstance(found, ast.ClassDef):
        return "()"  # only a class without a constructor is named itself where a call does not fit
    decorators = {ast.unparse(each) for each in found.decorator_list}
    if not decorators <= _BOUND | {_UNBOUND}:
        return None
    parameters = tuple(_parameters(found.args))
    takes_self = is_method and _UNBOUND not in decorators
    if takes_self and parameters and not parameters[0].kind.startswith("var_"):
        parameters = parameters[1:]
    returns = None if found.returns is None else ast.unparse(found.returns)
    return render_signature(
        FunctionContract.model_construct(name=found.name, parameters=parameters, returns=returns)
    )


def _parameters(arguments: ast.arguments) -> Iterator[ParameterContract]:
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = len(plain) - len(arguments.defaults)
    defaults = [None] * missing + list(arguments.defaults)
    for number, (each, default) in enumerate(zip(plain, defaults, strict=True)):
        before_slash = number < len(arguments.posonlyargs)
        yield _parameter(each, "positional_only" if before_slash else "positional_or_keyword", default)
    if arguments.vararg is not None:
        yield _parameter(arguments.vararg, "var_positional")
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, "keyword_only", default)
    if arguments.kwarg is not None:
        yield _parameter(arguments.kwarg, "var_keyword")


def _parameter(found: ast.arg, kind: ParameterKind, default: ast.expr | None = None) -> ParameterContract:
    return ParameterContract.model_construct(
        name=found.arg,
        kind=kind,
        annotation=None if found.annotation is None else ast.unparse(found.annotation),
        default=None if default is None else ast.unparse(default),
    )
