"""Compares a contract with the modules of a project, by their source alone."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.contracts.annotations import Likeness, compare_annotations
from planner.contracts.modules import ModuleProblem, ModuleReader
from planner.contracts.signatures import compare_signature, render, render_signature
from planner.model.contract import ContractDifference
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.contracts.modules import FoundClass, FoundModule, Scope
    from planner.contracts.signatures import FoundFunction
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
        expected = contract.module if problem.problem == "missing_module" else None
        error = problem.error
        return (
            _difference(
                problem.problem,
                str(problem),
                expected=expected,
                path=problem.path,
                line=None if error is None else error.lineno,
                exception=None if error is None else (type(error).__name__, error.msg),
            ),
        )
    found = [
        each.model_copy(update={"name": wanted.name})  # as promised, however its home calls it
        for wanted in contract.functions
        for each in _function(reader, module, wanted)
    ]
    found += [each for wanted in contract.classes for each in _class(reader, module, wanted)]
    return tuple(sorted(found, key=lambda each: each.is_open))


@dataclass(frozen=True, slots=True)
class _Place:
    """A module, or a class of it, in which something is looked for."""

    reader: ModuleReader
    module: FoundModule
    owner: FoundClass | None = None
    prefix: str = ""
    """The names of the classes around: ``Outer.``."""

    @property
    def scope(self) -> Scope:
        return self.module.scope if self.owner is None else self.owner.scope

    def say(self, problem: str, name: str, message: str, **facts: Any) -> ContractDifference:
        """Return a difference about a name of this place."""
        return _difference(problem, message, name=self.prefix + name, path=self.module.path, **facts)

    def absent(self, name: str, expected: str) -> ContractDifference:
        """Return that a name is not there and what is there instead, or that only running would tell."""
        uncertain = self.scope.uncertain(name)
        if uncertain:
            return self.say("unresolved", name, f"{self.prefix}{name} in {self.module.path} {uncertain}")
        there = [*self.scope.defined, *self.scope.properties]
        near = difflib.get_close_matches(name, there, n=1)
        actual = f"it defines {', '.join(there[:MAX_NAMES]) or 'nothing'}"
        owner = self.prefix.rstrip(".") or self.module.name
        remedy = f"; did you mean {near[0]}?" if near else f", {actual}"
        message = f"{owner} does not define {name}{remedy}"
        return self.say("missing_function", name, message, expected=expected, actual=actual)


def _function(
    reader: ModuleReader, start: FoundModule, wanted: FunctionContract
) -> Iterator[ContractDifference]:
    module, name = reader.follow(start, wanted.name)
    place = _Place(reader, module)
    scope = place.scope
    if scope.uncertain(name) or not (name in scope.functions or name in scope.classes):
        yield place.absent(name, render(wanted))
    elif name in scope.classes:
        line = scope.classes[name].line
        message = f"{name} is a class, not a function ({module.path}:{line})"
        yield place.say(
            "signature", name, message, expected=render(wanted), actual=f"class {name}", line=line
        )
    else:
        yield from _signature(place, wanted, scope.functions[name])


def _signature(
    place: _Place, wanted: FunctionContract, found: FoundFunction
) -> Iterator[ContractDifference]:
    name = place.prefix + wanted.name
    compared = compare_signature(wanted, found, place.scope.names, is_method=place.owner is not None)
    if compared.likeness is Likeness.SAME:
        return
    where = f"{place.module.path}:{found.line}"
    facts = {"actual": render(compared.actual), "line": found.line}
    if compared.likeness is Likeness.UNKNOWN:
        message = f"{name} in {where} cannot be compared: {compared.why}"
        yield place.say("unresolved", wanted.name, message, **facts)
        return
    message = (
        f"{name}: the contract says {render_signature(wanted)}, "
        f"the code has {render_signature(compared.actual)} ({where}): {compared.why}"
    )
    yield place.say("signature", wanted.name, message, why=compared.why, expected=render(wanted), **facts)


def _class(reader: ModuleReader, start: FoundModule, wanted: ClassContract) -> Iterator[ContractDifference]:
    first, *inner = wanted.name.split(".")
    module, name = reader.follow(start, first)
    place = _Place(reader, module)
    for promised, part in zip((first, *inner), (name, *inner), strict=True):
        found = place.scope.classes.get(part)
        if found is None or place.scope.uncertain(part):
            yield place.absent(part, f"class {wanted.name}")
            return
        place = _Place(reader, module, found, f"{place.prefix}{promised}.")
    yield from _bases(place, wanted)
    for method in wanted.methods:
        yield from _method(place, method)
    for promised in wanted.properties:
        yield from _property(place, promised)


def _bases(place: _Place, wanted: ClassContract) -> Iterator[ContractDifference]:
    found = place.owner
    assert found is not None
    name = place.prefix.rstrip(".")
    for base in wanted.bases:
        likenesses = {compare_annotations(base, each, place.scope.names) for each in found.bases}
        if Likeness.SAME in likenesses:
            continue
        known = Likeness.UNKNOWN not in likenesses
        where = f"{place.module.path}:{found.line}"
        yield _difference(
            "signature" if known else "unresolved",
            f"{name} {'is' if known else 'may be'} no subclass of {base} by its source ({where})",
            name=name,
            expected=f"class {name}({base})",
            actual=f"class {name}({', '.join(found.bases)})",
            path=place.module.path,
            line=found.line,
        )


def _method(place: _Place, wanted: FunctionContract) -> Iterator[ContractDifference]:
    name = wanted.name
    home = _home_of(place, name)
    if home is None:
        yield _inherited(place, name)
    elif home.scope.uncertain(name) or name not in home.scope.functions:
        yield home.absent(name, render(wanted))
    else:
        yield from _signature(home, wanted, home.scope.functions[name])


def _property(place: _Place, wanted: PropertyContract) -> Iterator[ContractDifference]:
    name = wanted.name
    home = _home_of(place, name)
    expected = f"property {name}" + (f" -> {wanted.returns}" if wanted.returns else "")
    if home is None:
        yield _inherited(place, name)
    elif name in home.scope.functions:
        message = f"{place.prefix}{name} is a method, not a property"
        yield place.say("signature", name, message, expected=expected, actual=f"def {name}")
    elif name not in home.scope.properties or name in home.scope.bindings.unsure:
        yield home.absent(name, expected)
    elif wanted.returns is not None:
        returns = home.scope.properties[name]
        likeness = Likeness.DIFFERENT
        if returns is not None:
            likeness = compare_annotations(wanted.returns, returns, home.scope.names)
        if likeness is not Likeness.SAME:
            said = f"gives {returns}" if returns else "does not say what it gives"
            message = f"{place.prefix}{name}: the contract says it gives {wanted.returns}, the code {said}"
            problem = "signature" if likeness is Likeness.DIFFERENT else "unresolved"
            actual = f"property {name} -> {returns}"
            yield place.say(problem, name, message, expected=expected, actual=actual)


def _inherited(place: _Place, name: str) -> ContractDifference:
    said = "may be inherited, or made by a decorator or metaclass"
    return place.say("unresolved", name, f"{place.prefix}{name} in {place.module.path} {said}")


def _home_of(place: _Place, name: str) -> _Place | None:
    """Return the class that defines a method, through single inheritance; ``None`` if that is unsure."""
    home = place
    for _ in range(MAX_ANCESTORS):
        owner, scope = home.owner, home.scope
        assert owner is not None
        if name in scope.functions or name in scope.properties or scope.uncertain(name):
            return home
        if not owner.is_changed and set(owner.bases) <= {"object"}:
            return home if home is place else None
        bases = [
            base for base in owner.bases if scope.names.resolve(base.partition("[")[0]) not in _PLAIN_BASES
        ]
        if owner.is_changed or len(bases) != 1 or not bases[0].isidentifier():
            return None
        module, base = home.reader.follow(home.module, bases[0])
        above = module.scope.classes.get(base)
        if above is None or base in module.scope.bindings.unsure:
            return None
        home = _Place(home.reader, module, above, home.prefix)
    return None


def _difference(
    problem: Any,
    message: str,
    *,
    line: int | None = None,
    exception: tuple[str, str] | None = None,
    **facts: str | None,
) -> ContractDifference:
    shown: dict[str, Any] = {
        key: value if value is None else clean(value, limit=MAX_MESSAGE) for key, value in facts.items()
    }
    said = " ".join(clean(message, limit=MAX_MESSAGE).split())
    return ContractDifference(problem=problem, message=said, line=line, exception=exception, **shown)
