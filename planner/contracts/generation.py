"""Makes a contract of what a module of the project defines now, from its source alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.contracts.modules import ModuleProblem, ModuleReader
from planner.errors import ModuleSourceError
from planner.model.contract import CONTRACT_VERSION, ClassContract, Contract, FunctionContract
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.contracts.modules import FoundClass, Scope
    from planner.contracts.signatures import FoundFunction

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
    homes = [(name, *reader.follow(found, name)) for name in writer.public(found.scope)]
    for name, home, local in homes:
        uncertain = home.scope.uncertain(local)
        if uncertain:
            writer.left_out.append(f"{name} {uncertain}")
        elif local in home.scope.functions:
            functions += writer.function(name, home.scope.functions[local])
    for name, home, local in homes:
        if local in home.scope.classes and not home.scope.uncertain(local):
            classes += writer.class_(name, home.scope.classes[local])
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

    def public(self, scope: Scope) -> list[str]:
        """Return the names to promise, those of other modules behind the module's own."""
        own = [name for name in scope.defined if self._private or not name.startswith("_")]
        if scope.exports is None or self._private:
            return own
        known = [name for name in scope.defined if name in scope.exports]
        # Constants, and modules that are exported, are nothing that a contract can name.
        return [*known, *(name for name in scope.exports if name not in known and name in scope.imported)]

    def function(
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

    def class_(self, name: str, found: FoundClass) -> Iterator[ClassContract]:
        scope = found.scope
        promised = {
            "name": name,
            "bases": found.bases,
            "methods": [
                each
                for method in self._certain(name, scope, scope.functions)
                for each in self.function(
                    method, scope.functions[method], prefix=f"{name}.", is_method=True
                )
            ],
            "properties": [
                {"name": each, "returns": scope.properties[each]}
                for each in self._members(scope.properties)
                if each not in scope.bindings.unsure
            ],
        }
        try:
            yield ClassContract.model_validate(promised)
        except ValidationError:
            self.left_out.append(f"{name} {_TOO_LONG}")
        for inner in self._certain(name, scope, scope.classes):
            yield from self.class_(f"{name}.{inner}", scope.classes[inner])

    def _certain(self, owner: str, scope: Scope, names: Iterable[str]) -> Iterator[str]:
        for name in self._members(names):
            uncertain = scope.uncertain(name)
            if uncertain:
                self.left_out.append(f"{owner}.{name} {uncertain}")
            else:
                yield name

    def _members(self, names: Iterable[str]) -> list[str]:
        """The special methods of a class are public: operators and constructors are called by them."""
        return [
            name
            for name in names
            if self._private or not name.startswith("_") or (name.startswith("__") and name.endswith("__"))
        ]
