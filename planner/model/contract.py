"""Contracts: the interface that a module of the project promises, as written in a contract file."""

import ast
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from planner.model.base import Value


def _as_source(value: Any) -> Any:
    """Convert ``14`` and ``true`` of JSON to Python source; ``null`` has the effect of an omitted key."""
    return value if isinstance(value, str) else repr(value)


def _checked_source(text: str) -> str:
    """Return Python source that is an expression; another text can equal no annotation, default or base."""
    try:
        # In brackets, for the *Ts of *args; on a line of their own, as the text may end with a comment.
        ast.parse(f"_[{text.strip()}\n]", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PydanticCustomError("python_source", "it is not a Python expression; correct it") from None
    return text


Name = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*$", max_length=200)]
DottedName = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*(?:\.[^\W\d]\w*)*$", max_length=500)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=10_000), AfterValidator(_checked_source)]

ParameterKind = Literal[
    "positional_only", "positional_or_keyword", "var_positional", "keyword_only", "var_keyword"
]


class ParameterContract(Value):
    """One parameter. Omitted keys are not compared, except the kind."""

    name: Name
    kind: ParameterKind = "positional_or_keyword"
    annotation: Source | None = None
    default: Annotated[Source, BeforeValidator(_as_source)] | None = Field(default=None)
    """Python source: ``14``, ``"close"``, ``None``."""


class FunctionContract(Value):
    """One function or method, without ``self`` and ``cls``."""

    name: Name
    parameters: tuple[ParameterContract, ...] | None = None
    """All parameters in order; if omitted, they are not compared."""
    returns: Source | None = None
    is_async: bool | None = Field(default=None, alias="async")


class ClassContract(Value):
    """One class. Omitted keys are not compared."""

    name: DottedName
    """``Outer.Inner`` for a nested class."""
    bases: tuple[Source, ...] = ()
    """Base classes that it must name."""
    methods: tuple[FunctionContract, ...] = ()


class Contract(Value):
    """The contract file."""

    contract_version: Literal[1]
    module: DottedName
    functions: tuple[FunctionContract, ...] = ()
    classes: tuple[ClassContract, ...] = ()
    schemas: tuple[dict[str, Any], ...] = ()
    """JSON Schemas of the data that the module accepts or returns; each must be a valid schema."""

    @property
    def is_empty(self) -> bool:
        """Return whether the contract promises nothing."""
        return not (self.functions or self.classes or self.schemas)


class ContractDifference(Value):
    """One promise of a contract that the code does not fulfil, or for which the source does not show it."""

    problem: Literal["missing_module", "missing_function", "signature", "unreadable", "unresolved"]
    message: str
    """One line: what is promised, what exists, and where."""
    name: str | None = None
    """Name of the function or class, with the enclosing class: ``Strategy.run``."""
    why: str | None = None
    """For a signature, the difference: ``it lacks the parameter period``."""
    expected: str | None = None
    actual: str | None = None
    path: str | None = None
    """Path of the module, relative to the root."""
    line: int | None = None
    exception: tuple[str, str] | None = None
    """Type and message of the module's syntax error."""

    @property
    def is_open(self) -> bool:
        """Return whether the source leaves open if the code fulfils the promise; never called broken."""
        return self.problem == "unresolved"
