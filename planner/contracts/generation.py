"""Makes a contract of what a module of the project defines now, from its source alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import griffe
from pydantic import ValidationError

from planner.contracts.source import (
    ModuleProblem,
    ModuleReader,
    bindings_of,
    definitions,
    describe_function,
    members,
    properties,
    uncertainty,
)
from planner.errors import ModuleSourceError
from planner.model.contract import CONTRACT_VERSION, ClassContract, Contract, FunctionContract
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.contracts.source import Scope

_TOO_LONG = "has names or values that are too long for a contract, or unusual"
_MAX_MESSAGE = 1_000


@dataclass(frozen=True, slots=True)
class Written:
    """A contract made of code, and what could not be taken into it."""

    contract: Contract
    left_out: tuple[str, ...] = ()
    """One line each: the name, and why only running the code would tell its signature."""


def write_contract(module: str, root: Path, *, private: bool = False) -> Written:
    """Return the contract of a module, which its code keeps, and what was left out of it and why.

    Public is what ``__all__`` names; without it, every definition whose name has no leading underscore.
    With ``private``, all definitions are taken in. Nested classes stand behind the class that holds them.
    Raises :class:`planner.errors.ModuleSourceError` where the source does not tell, and ``OSError``.
    """
    reader = ModuleReader(root)
    try:
        found = reader.read(module)
    except ModuleProblem as problem:
        raise ModuleSourceError(" ".join(clean(str(problem), limit=_MAX_MESSAGE).split())) from None
    writer = _Writer(private=private)
    functions: list[FunctionContract] = []
    classes: list[ClassContract] = []
    homes = [(name, *reader.follow(found, name)) for name in writer.public(found)]
    for name, home, local in homes:
        why = uncertainty(home, local)
        if why:
            writer.left_out.append(f"{name} {why}")
        elif local in members(home, griffe.Kind.FUNCTION):
            functions += writer.function(name, home.members[local])
    for name, home, local in homes:
        if local in members(home, griffe.Kind.CLASS) and not uncertainty(home, local):
            classes += writer.class_(name, home.members[local])
    contract = Contract(
        contract_version=CONTRACT_VERSION,
        module=module,
        functions=tuple(functions),
        classes=tuple(classes),
    )
    return Written(contract, tuple(writer.left_out))


class _Writer:
    """Turns definitions into promises."""

    def __init__(self, *, private: bool) -> None:
        self.left_out: list[str] = []
        self._private = private

    def public(self, module: griffe.Module) -> list[str]:
        """Return the names to promise, those of other modules behind the module's own."""
        own = definitions(module)
        if self._private:
            return own
        if module.exports is None:
            return [name for name in own if not name.startswith("_")]
        exports = list(dict.fromkeys(map(str, module.exports)))
        known = [name for name in own if name in exports]
        # Constants, and modules that are exported, are nothing that a contract can name.
        return [*known, *(name for name in exports if name not in known and name in module.imports)]

    def function(self, name: str, source: Any, *, prefix: str = "") -> Iterator[FunctionContract]:
        found = describe_function(source)
        if found.strange_decorator:
            self.left_out.append(
                f"{prefix}{name} has the decorator {found.strange_decorator}, "
                "which may change its signature"
            )
            return
        try:
            yield FunctionContract.model_validate({**found.bound.model_dump(), "name": name})
        except ValidationError:
            self.left_out.append(f"{prefix}{name} {_TOO_LONG}")

    def class_(self, name: str, found: Any) -> Iterator[ClassContract]:
        promised = {
            "name": name,
            "bases": [str(base) for base in found.bases],
            "methods": [
                each
                for method in self._certain(name, found, griffe.Kind.FUNCTION)
                for each in self.function(method, found.members[method], prefix=f"{name}.")
            ],
            "properties": [
                {"name": each, "returns": returns}
                for each, returns in properties(found).items()
                if self._is_public(each) and each not in bindings_of(found).unsure
            ],
        }
        try:
            yield ClassContract.model_validate(promised)
        except ValidationError:
            self.left_out.append(f"{name} {_TOO_LONG}")
        for inner in self._certain(name, found, griffe.Kind.CLASS):
            yield from self.class_(f"{name}.{inner}", found.members[inner])

    def _certain(self, owner: str, found: Scope, kind: griffe.Kind) -> Iterator[str]:
        for name in filter(self._is_public, members(found, kind)):
            why = uncertainty(found, name)
            if why:
                self.left_out.append(f"{owner}.{name} {why}")
            else:
                yield name

    def _is_public(self, name: str) -> bool:
        """Special methods of a class are public: operators and constructors are called by them."""
        is_special = name.startswith("__") and name.endswith("__")
        return self._private or is_special or not name.startswith("_")
