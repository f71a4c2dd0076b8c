"""Contracts: what a module of the project promises, as a contract file says it."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from planner.model.base import Value


def _as_source(value: Any) -> Any:
    """``14`` and ``true`` in a contract are the source ``14`` and ``True``; ``null`` is as if left out."""
    return value if isinstance(value, str) else repr(value)


CONTRACT_VERSION = 1
"""Of the contract files that this version reads and writes."""

Name = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*$", max_length=200)]
DottedName = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*(?:\.[^\W\d]\w*)*$", max_length=500)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]

ParameterKind = Literal[
    "positional_only", "positional_or_keyword", "var_positional", "keyword_only", "var_keyword"
]


class ParameterContract(Value):
    """One parameter. What is left out is not compared, but for the kind."""

    name: Name
    kind: ParameterKind = "positional_or_keyword"
    annotation: Source | None = None
    default: Annotated[Source, BeforeValidator(_as_source)] | None = Field(default=None)
    """Python source: ``14``, ``"close"``, ``None``."""


class FunctionContract(Value):
    """One function or method. ``self`` and ``cls`` are left out."""

    name: Name
    parameters: tuple[ParameterContract, ...] | None = None
    """All of them, in order; left out, they are not compared."""
    returns: Source | None = None
    is_async: bool | None = Field(default=None, alias="async")


class PropertyContract(Value):
    """One property of a class, computed or cached."""

    name: Name
    returns: Source | None = None


class ClassContract(Value):
    """One class. What is left out is not compared."""

    name: DottedName
    """``Outer.Inner`` for a class that stands in another one."""
    bases: tuple[Source, ...] = ()
    """Base classes that it must name."""
    methods: tuple[FunctionContract, ...] = ()
    properties: tuple[PropertyContract, ...] = ()


class Contract(Value):
    """The contract file."""

    contract_version: Literal[1]
    module: DottedName
    functions: tuple[FunctionContract, ...] = ()
    classes: tuple[ClassContract, ...] = ()
    schemas: tuple[dict[str, Any], ...] = ()
    """JSON Schemas of the data that the module takes or gives; each must be a valid schema."""

    @property
    def is_empty(self) -> bool:
        """Return whether it promises nothing."""
        return not (self.functions or self.classes or self.schemas)


class ContractDifference(Value):
    """One promise of a contract that the code does not keep, or of which the source cannot tell."""

    problem: Literal["missing_module", "missing_function", "signature", "unreadable", "unresolved"]
    message: str
    """One line: what is promised, what is there, and where."""
    name: str | None = None
    """Of the function or class, with its class: ``Strategy.run``."""
    why: str | None = None
    """Of a signature, what differs: ``the parameter period is renamed to window``."""
    expected: str | None = None
    actual: str | None = None
    path: str | None = None
    """Of the module, relative to the root."""
    line: int | None = None
    exception: tuple[str, str] | None = None
    """Type and message of the syntax error that a module has."""

    @property
    def is_open(self) -> bool:
        """Return whether only running the code would tell; such a one is never called broken."""
        return self.problem == "unresolved"
