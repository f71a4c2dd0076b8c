"""Compares a contract with the modules of a project, by their source alone."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import griffe

from planner.contracts.signatures import (
    Likeness,
    compare_annotations,
    compare_signature,
    render,
    render_signature,
    resolve,
)
from planner.contracts.source import (
    ModuleProblem,
    ModuleReader,
    ScopeNames,
    bindings_of,
    definitions,
    describe_function,
    may_be_changed,
    members,
    properties,
    uncertainty,
)
from planner.model.contract import ContractDifference
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.contracts.source import Scope
    from planner.model.contract import ClassContract, Contract, FunctionContract, PropertyContract

MAX_MESSAGE = 1_000
MAX_NAMES = 20
"""So many of the names that are there instead are told."""

MAX_ANCESTORS = 5
"""So many classes above a class are searched for a method."""

_PLAIN_BASES = frozenset({"object", "abc.ABC", "typing.Protocol", "typing.Generic"})
"""They give no methods that a contract would name."""


def compare_contract(contract: Contract, root: Path) -> tuple[ContractDifference, ...]:
    """Return every promise that the code breaks, then those of which its source cannot tell.

    Raises ``OSError`` where a folder or a file cannot be read.
    """
    reader = ModuleReader(root)
    try:
        module = reader.read(contract.module)
    except ModuleProblem as problem:
        error = problem.error
        facts: dict[str, Any] = (
            {} if error is None else {"line": error.lineno, "exception": (type(error).__name__, error.msg)}
        )
        if problem.problem == "missing_module":
            facts["expected"] = contract.module
        return (_difference(problem.problem, str(problem), path=problem.path, **facts),)
    place = _Place(reader, module)
    found = [each for wanted in contract.functions for each in _function(place, wanted)]
    found += [each for wanted in contract.classes for each in _class(place, wanted)]
    return tuple(sorted(found, key=lambda each: each.is_open))


@dataclass(frozen=True, slots=True)
class _Place:
    """A module, or a class of it, in which something is looked for."""

    reader: ModuleReader
    owner: Scope
    prefix: str = ""
    """The names of the classes around: ``Outer.``."""

    @property
    def path(self) -> str:
        """Of the module, relative to the root."""
        return self.reader.path_of(self.owner)

    @property
    def functions(self) -> dict[str, griffe.Function]:
        """The functions that it defines."""
        return members(self.owner, griffe.Kind.FUNCTION)

    @property
    def classes(self) -> dict[str, griffe.Class]:
        """The classes that it defines."""
        return members(self.owner, griffe.Kind.CLASS)

    def say(self, problem: str, name: str, message: str, **facts: Any) -> ContractDifference:
        """Return a difference about a name of this place."""
        return _difference(problem, message, name=self.prefix + name, path=self.path, **facts)

    def absent(self, name: str, local: str, expected: str) -> ContractDifference:
        """Return that a name is not there and what is there instead, or that only running would tell."""
        why = uncertainty(self.owner, local)
        if why:
            return self.say("unresolved", name, f"{self.prefix}{local} in {self.path} {why}")
        there = [*definitions(self.owner), *properties(self.owner)]
        near = difflib.get_close_matches(local, there, n=1)
        actual = f"it defines {', '.join(there[:MAX_NAMES]) or 'nothing'}"
        owner = self.prefix.rstrip(".") or self.owner.path
        remedy = f"; did you mean {near[0]}?" if near else f", {actual}"
        message = f"{owner} does not define {local}{remedy}"
        return self.say("missing_function", name, message, expected=expected, actual=actual)

    def inherited(self, name: str) -> ContractDifference:
        """Return that a name of a class may come from where its source does not show it."""
        said = "may be inherited, or made by a decorator or metaclass"
        return self.say("unresolved", name, f"{self.prefix}{name} in {self.path} {said}")


def _function(place: _Place, wanted: FunctionContract) -> Iterator[ContractDifference]:
    """Compare a function of a module, or a method of a class."""
    found = _home_of(place, wanted.name)
    if found is None:
        yield place.inherited(wanted.name)
        return
    home, name = found
    expected = render(wanted)
    if uncertainty(home.owner, name) or not (name in home.functions or name in home.classes):
        yield home.absent(wanted.name, name, expected)
        return
    if name in home.classes:
        line, actual = home.classes[name].lineno, f"class {name}"
        message = f"{home.prefix}{name} is a class, not a function ({home.path}:{line})"
        yield home.say("signature", wanted.name, message, expected=expected, actual=actual, line=line)
        return
    function = describe_function(home.functions[name])
    likeness, why, actual = compare_signature(wanted, function)
    if likeness is Likeness.SAME:
        return
    shown, where = home.prefix + wanted.name, f"{home.path}:{function.line}"
    facts = {"actual": render(actual), "line": function.line}
    if likeness is Likeness.UNKNOWN:
        message = f"{shown} in {where} cannot be compared: {why}"
        yield home.say("unresolved", wanted.name, message, **facts)
        return
    message = (
        f"{shown}: the contract says {render_signature(wanted)}, "
        f"the code has {render_signature(actual)} ({where}): {why}"
    )
    yield home.say("signature", wanted.name, message, why=why, expected=expected, **facts)


def _class(start: _Place, wanted: ClassContract) -> Iterator[ContractDifference]:
    place = start
    for name in wanted.name.split("."):
        local = name
        if place is start:
            module, local = start.reader.follow(start.owner.module, name)
            place = _Place(start.reader, module)
        found = place.classes.get(local)
        if found is None or uncertainty(place.owner, local):
            yield place.absent(name, local, f"class {wanted.name}")
            return
        place = _Place(start.reader, found, f"{place.prefix}{name}.")
    assert isinstance(place.owner, griffe.Class)
    yield from _bases(place, place.owner, wanted)
    for method in wanted.methods:
        yield from _function(place, method)
    for promised in wanted.properties:
        yield from _property(place, promised)


def _bases(place: _Place, found: griffe.Class, wanted: ClassContract) -> Iterator[ContractDifference]:
    name = place.prefix.rstrip(".")
    bases = [str(base) for base in found.bases]
    for base in wanted.bases:
        likenesses = {compare_annotations(base, each, ScopeNames(found)) for each in bases}
        if Likeness.SAME not in likenesses:
            known = Likeness.UNKNOWN not in likenesses
            verb, where = "is" if known else "may be", f"{place.path}:{found.lineno}"
            yield _difference(
                "signature" if known else "unresolved",
                f"{name} {verb} no subclass of {base} by its source ({where})",
                name=name,
                expected=f"class {name}({base})",
                actual=f"class {name}({', '.join(bases)})",
                path=place.path,
                line=found.lineno,
            )


def _property(place: _Place, wanted: PropertyContract) -> Iterator[ContractDifference]:
    name = wanted.name
    home, _ = _home_of(place, name) or (None, name)
    expected = f"property {name}" + (f" -> {wanted.returns}" if wanted.returns else "")
    if home is None:
        yield place.inherited(name)
    elif name in home.functions:
        message = f"{place.prefix}{name} is a method, not a property"
        yield place.say("signature", name, message, expected=expected, actual=f"def {name}")
    elif name not in properties(home.owner) or name in bindings_of(home.owner).unsure:
        yield home.absent(name, name, expected)
    elif wanted.returns is not None:
        returns = properties(home.owner)[name]
        likeness = Likeness.DIFFERENT
        if returns is not None:
            likeness = compare_annotations(wanted.returns, returns, ScopeNames(home.owner))
        if likeness is not Likeness.SAME:
            said = f"gives {returns}" if returns else "does not say what it gives"
            message = f"{place.prefix}{name}: the contract says it gives {wanted.returns}, the code {said}"
            problem = "signature" if likeness is Likeness.DIFFERENT else "unresolved"
            actual = f"property {name} -> {returns}"
            yield place.say(problem, name, message, expected=expected, actual=actual)


def _home_of(place: _Place, name: str) -> tuple[_Place, str] | None:
    """Return what defines a name, and its name there; ``None`` if only running the code would tell.

    A name of a module is followed to the module it comes from, one of a class through single inheritance.
    """
    reader, home = place.reader, place
    if isinstance(place.owner, griffe.Module):
        module, local = reader.follow(place.owner, name)
        return _Place(reader, module), local
    for _ in range(MAX_ANCESTORS):
        owner = home.owner
        assert isinstance(owner, griffe.Class)
        if name in home.functions or name in properties(owner) or uncertainty(owner, name):
            return home, name
        bases = [str(base) for base in owner.bases]
        if not may_be_changed(owner) and set(bases) <= {"object"}:
            return (home, name) if home is place else None
        names = ScopeNames(owner)
        bases = [base for base in bases if resolve(base.partition("[")[0], names) not in _PLAIN_BASES]
        if may_be_changed(owner) or len(bases) != 1 or not bases[0].isidentifier():
            return None
        module, base = reader.follow(owner.module, bases[0])
        above = _Place(reader, module).classes.get(base)
        if above is None or base in bindings_of(module).unsure:
            return None
        home = _Place(reader, above, home.prefix)
    return None


def _difference(problem: Any, message: str, **facts: Any) -> ContractDifference:
    shown: dict[str, Any] = {
        key: clean(value, limit=MAX_MESSAGE) if isinstance(value, str) else value
        for key, value in facts.items()
    }
    said = " ".join(clean(message, limit=MAX_MESSAGE).split())
    return ContractDifference(problem=problem, message=said, **shown)
