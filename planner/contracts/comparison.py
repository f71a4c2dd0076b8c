"""Comparison of a contract with the modules of a project, by their source alone.

A difference is either proved by the source, or *open* (``unresolved``): the source does not show
whether the code fulfils the contract, because of a star import, a decorator or a metaclass, for
instance. :mod:`.source` reads modules, :mod:`.signatures` compares signatures.
"""

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
"""Limit in characters of each text of a difference."""
MAX_NAMES = 20
"""Limit of the existing names that are listed when a promised name is missing."""

MAX_ANCESTORS = 5
"""Limit of the classes that are searched for a method: the class itself and those above it."""

_PLAIN_BASES = frozenset({"object", "abc.ABC", "typing.Protocol", "typing.Generic"})
"""Base classes without methods that a contract would name."""


def compare_contract(contract: Contract, root: Path) -> tuple[ContractDifference, ...]:
    """Return the differences between a contract and the code below ``root``; empty if there are none.

    Proved differences come first, then open ones. Raises ``OSError`` if a folder or a file cannot be read.
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
    """A module or class whose definitions are compared."""

    reader: ModuleReader
    owner: Scope
    prefix: str = ""
    """Names of the enclosing classes, each with a dot: ``Outer.``."""

    @property
    def path(self) -> str:
        """Path of the module, relative to the root."""
        return self.reader.path_of(self.owner)

    @property
    def functions(self) -> dict[str, griffe.Function]:
        """Functions that it defines."""
        return members(self.owner, griffe.Kind.FUNCTION)

    @property
    def classes(self) -> dict[str, griffe.Class]:
        """Classes that it defines."""
        return members(self.owner, griffe.Kind.CLASS)

    def difference(self, problem: str, name: str, message: str, **facts: Any) -> ContractDifference:
        """Return a difference about a name of this module or class."""
        return _difference(problem, message, name=self.prefix + name, path=self.path, **facts)

    def absent(self, name: str, local: str, expected: str) -> ContractDifference:
        """Return the difference for a missing name, with the names that exist instead.

        It is open if the source does not show whether the name exists. ``local`` is the name in this
        module, ``name`` the promised one.
        """
        why = uncertainty(self.owner, local)
        if why:
            return self.difference("unresolved", name, f"{self.prefix}{local} in {self.path} {why}")
        existing = [*definitions(self.owner), *properties(self.owner)]
        near = difflib.get_close_matches(local, existing, n=1)
        actual = f"it defines {', '.join(existing[:MAX_NAMES]) or 'nothing'}"
        owner = self.prefix.rstrip(".") or self.owner.path
        remedy = f"; did you mean {near[0]}?" if near else f", {actual}"
        message = f"{owner} does not define {local}{remedy}"
        return self.difference("missing_function", name, message, expected=expected, actual=actual)

    def inherited(self, name: str) -> ContractDifference:
        """Return the open difference for a name whose origin the source of its class does not show."""
        reason = "may be inherited, or made by a decorator or metaclass"
        return self.difference("unresolved", name, f"{self.prefix}{name} in {self.path} {reason}")


def _function(place: _Place, wanted: FunctionContract) -> Iterator[ContractDifference]:
    """Compare a promised function of a module, or method of a class, with the code."""
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
        yield home.difference(
            "signature", wanted.name, message, expected=expected, actual=actual, line=line
        )
        return
    function = describe_function(home.functions[name])
    likeness, why, actual = compare_signature(wanted, function)
    if likeness is Likeness.SAME:
        return
    shown, where = home.prefix + wanted.name, f"{home.path}:{function.line}"
    facts = {"actual": render(actual), "line": function.line}
    if likeness is Likeness.UNKNOWN:
        message = f"{shown} in {where} cannot be compared: {why}"
        yield home.difference("unresolved", wanted.name, message, **facts)
        return
    message = (
        f"{shown}: the contract says {render_signature(wanted)}, "
        f"the code has {render_signature(actual)} ({where}): {why}"
    )
    yield home.difference("signature", wanted.name, message, why=why, expected=expected, **facts)


def _class(start: _Place, wanted: ClassContract) -> Iterator[ContractDifference]:
    """Compare a promised class, its bases, methods and properties with the code."""
    place = start
    for name in wanted.name.split("."):
        local = name
        if place is start:  # only the outermost class can be imported from another module
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
    """Compare the promised base classes with those in the class statement; further ones are allowed."""
    name = place.prefix.rstrip(".")
    bases = [str(base) for base in found.bases]
    for base in wanted.bases:
        likenesses = {compare_annotations(base, each, ScopeNames(found)) for each in bases}
        if Likeness.SAME not in likenesses:
            known = Likeness.UNKNOWN not in likenesses
            verb, where = "is" if known else "may be", f"{place.path}:{found.lineno}"
            yield _difference(
                "signature" if known else "unresolved",
                f"{name} {verb} not a subclass of {base} according to its source ({where})",
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
        yield place.difference("signature", name, message, expected=expected, actual=f"def {name}")
    elif name not in properties(home.owner) or name in bindings_of(home.owner).unsure:
        yield home.absent(name, name, expected)
    elif wanted.returns is not None:
        returns = properties(home.owner)[name]
        likeness = Likeness.DIFFERENT
        if returns is not None:
            likeness = compare_annotations(wanted.returns, returns, ScopeNames(home.owner))
        if likeness is not Likeness.SAME:
            shown = f"gives {returns}" if returns else "has no annotation"
            message = (
                f"{place.prefix}{name}: the contract says that it returns {wanted.returns}, the "
                f"code {shown}"
            )
            problem = "signature" if likeness is Likeness.DIFFERENT else "unresolved"
            actual = f"property {name} -> {returns}"
            yield place.difference(problem, name, message, expected=expected, actual=actual)


def _home_of(place: _Place, name: str) -> tuple[_Place, str] | None:
    """Return the module or class that defines a name, and the name there.

    A name of a module is followed through its imports, a name of a class through single inheritance.
    Returns ``None`` if the source does not show which class defines it, and ``place`` itself if nothing
    does.
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
            # Nothing hidden above the class itself: the name is missing.
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
    """Return a difference with cleaned and limited texts, as they quote untrusted source."""
    shown: dict[str, Any] = {
        key: clean(value, limit=MAX_MESSAGE) if isinstance(value, str) else value
        for key, value in facts.items()
    }
    text = " ".join(clean(message, limit=MAX_MESSAGE).split())
    return ContractDifference(problem=problem, message=text, **shown)
