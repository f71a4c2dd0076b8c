"""Makes a contract of what a module of the project defines now, from its source alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.edges.contracts.comparison import problem_of
from planner.edges.contracts.modules import BrokenSource, FoundModule, ModuleReader, NoModule, NoSource
from planner.errors import ModuleSourceError
from planner.model.contract import (
    CONTRACT_VERSION,
    ClassContract,
    Contract,
    FunctionContract,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.edges.contracts.scopes import FoundClass, FoundScope
    from planner.rules.contracts.signatures import FoundFunction


_TOO_LONG = "has names or values that are too long for a contract, or unusual"


@dataclass(frozen=True, slots=True)
class Written:
    """A contract made of code, and what could not be taken into it."""

    contract: Contract
    left_out: tuple[str, ...] = ()
    """One line each: the name, and why only running the code would tell its signature."""


def read_contract(module: str, root: Path, *, private: bool = False) -> Contract:
    """What a module promises now: its public functions and classes, or all of them with ``private``.

    Raises :class:`planner.errors.ModuleSourceError` where the source does not tell, and ``OSError``.
    """
    return write_contract(module, root, private=private).contract


def write_contract(module: str, root: Path, *, private: bool = False) -> Written:
    """The contract of a module, which its code keeps, and what was left out of it and why.

    Public is what ``__all__`` names; without it, every definition whose name has no leading underscore.
    """
    reader = ModuleReader(root)
    try:
        found = reader.read(module)
    except (NoModule, NoSource, BrokenSource) as problem:
        raise ModuleSourceError(problem_of(module, problem).message) from None
    writer = _Writer(reader, found, private=private)
    functions, classes = writer.functions(), writer.classes()
    contract = Contract(
        contract_version=CONTRACT_VERSION, module=module, functions=functions, classes=classes
    )
    return Written(contract, tuple(writer.left_out))


class _Writer:
    """Turns the definitions of one module into promises."""

    def __init__(self, reader: ModuleReader, module: FoundModule, *, private: bool) -> None:
        self.left_out: list[str] = []
        self._private = private
        self._homes = {name: reader.follow(module, name) for name in self._names(module.scope)}

    def functions(self) -> tuple[FunctionContract, ...]:
        """In the order of the source; what is defined elsewhere follows in the order of ``__all__``."""
        made: list[FunctionContract] = []
        for name, (home, local) in self._homes.items():
            uncertain = home.scope.uncertain(local)
            if uncertain:
                self.left_out.append(f"{name} {uncertain}")
            elif local in home.scope.functions:
                made.extend(self._function(name, home.scope.functions[local]))
        return tuple(made)

    def classes(self) -> tuple[ClassContract, ...]:
        """Nested classes stand behind the class that holds them."""
        return tuple(
            each
            for name, (home, local) in self._homes.items()
            if local in home.scope.classes and not home.scope.uncertain(local)
            for each in self._class(name, home.scope.classes[local])
        )

    def _names(self, scope: FoundScope) -> Iterable[str]:
        own = [name for name in scope.defined if self._private or not name.startswith("_")]
        if scope.exports is None or self._private:
            return own
        known = [name for name in scope.defined if name in scope.exports]
        return [*known, *(name for name in scope.exports if self._may_be_promised(scope, name, known))]

    def _may_be_promised(self, scope: FoundScope, name: str, known: list[str]) -> bool:
        """Constants, and modules that are exported, are nothing that a contract can name."""
        return name not in known and name in scope.imported

    def _function(
        self, name: str, found: FoundFunction, *, prefix: str = "", is_method: bool = False
    ) -> Iterator[FunctionContract]:
        if found.strange_decorator:
            self.left_out.append(
                f"{prefix}{name} has the decorator {found.strange_decorator}, "
                "which may change its signature"
            )
            return
        signature = found.bound(is_method=is_method)
        try:
            yield FunctionContract.model_validate({**signature.model_dump(), "name": name})
        except ValidationError:
            self.left_out.append(f"{prefix}{name} {_TOO_LONG}")

    def _class(self, name: str, found: FoundClass) -> Iterator[ClassContract]:
        scope = found.scope
        methods: list[FunctionContract] = []
        for method in self._members(scope.functions):
            uncertain = scope.uncertain(method)
            if uncertain:
                self.left_out.append(f"{name}.{method} {uncertain}")
            else:
                made = self._function(method, scope.functions[method], prefix=f"{name}.", is_method=True)
                methods.extend(made)
        properties = [
            {"name": each, "returns": scope.properties[each]}
            for each in self._members(scope.properties)
            if each not in scope.bindings.unsure
        ]
        promised = {"name": name, "bases": found.bases, "methods": methods, "properties": properties}
        try:
            yield ClassContract.model_validate(promised)
        except ValidationError:
            self.left_out.append(f"{name} {_TOO_LONG}")
        for inner in self._members(scope.classes):
            uncertain = scope.uncertain(inner)
            if uncertain:
                self.left_out.append(f"{name}.{inner} {uncertain}")
            else:
                yield from self._class(f"{name}.{inner}", scope.classes[inner])

    def _members(self, names: Iterable[str]) -> list[str]:
        """The special methods of a class are public: operators and constructors are called by them."""
        return [
            name
            for name in names
            if self._private or not name.startswith("_") or (name.startswith("__") and name.endswith("__"))
        ]
