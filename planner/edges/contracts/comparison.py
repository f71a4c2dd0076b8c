"""Compares a contract with the modules of a project, by their source alone."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.edges.contracts.modules import (
    BrokenSource,
    FoundModule,
    ModuleReader,
    NoModule,
    NoSource,
)
from planner.model.contract import ContractDifference
from planner.rules.contracts.annotations import Likeness, compare_annotations, resolve
from planner.rules.contracts.signatures import FoundFunction, compare_signature, render, render_signature
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.edges.contracts.scopes import FoundClass, FoundScope
    from planner.model.contract import ClassContract, Contract, FunctionContract, PropertyContract

MAX_MESSAGE = 1_000
MAX_NAMES = 20
"""So many of the names that are there instead are told."""

MAX_ANCESTORS = 5


def compare_contract(contract: Contract, root: Path) -> tuple[ContractDifference, ...]:
    """Every promise that the code breaks, then those of which its source cannot tell.

    Raises ``OSError`` where a folder or a file cannot be read.
    """
    reader = ModuleReader(root)
    try:
        module = reader.read(contract.module)
    except (NoModule, NoSource, BrokenSource) as problem:
        return (problem_of(contract.module, problem),)
    found = [
        each.model_copy(update={"name": wanted.name})  # as promised, however its home calls it
        for wanted in contract.functions
        for each in _function(reader, module, wanted)
    ]
    found += [each for wanted in contract.classes for each in _class(reader, module, wanted)]
    return tuple(sorted(found, key=lambda each: each.is_open))


def problem_of(module: str, problem: NoModule | NoSource | BrokenSource) -> ContractDifference:
    """Why a module cannot be compared."""
    if isinstance(problem, NoModule):
        return _difference("missing_module", str(problem), expected=module)
    if isinstance(problem, NoSource):
        return _difference("unresolved", str(problem))
    error = problem.error
    where = f"{problem.path}:{error.lineno}" if error and error.lineno else problem.path
    kind = "cannot be read" if error is None else type(error).__name__
    return _difference(
        "unreadable",
        f"{where}: {kind}: {problem}",
        path=problem.path,
        line=None if error is None else error.lineno,
        exception=None if error is None else (type(error).__name__, error.msg),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A module, or a class of it, in which something is looked for."""

    reader: ModuleReader
    module: FoundModule
    scope: FoundScope
    owner: FoundClass | None = None
    prefix: str = ""
    """The names of the classes around: ``Outer.``."""

    def say(self, problem: str, name: str, message: str, **facts: Any) -> ContractDifference:
        """A difference about a name of this place."""
        return _difference(problem, message, name=self.prefix + name, path=self.module.path, **facts)

    def unresolved(self, name: str, why: str) -> ContractDifference:
        """That only running the code would tell."""
        return self.say("unresolved", name, f"{self.prefix}{name} in {self.module.path} {why}")

    def missing(self, name: str, expected: str) -> ContractDifference:
        """That it is not there, and what is there instead."""
        there = [*self.scope.defined, *self.scope.properties]
        near = difflib.get_close_matches(name, there, n=1)
        owner = self.prefix.rstrip(".") or self.module.name
        remedy = f"; did you mean {near[0]}?" if near else ""
        defined = ", ".join(there[:MAX_NAMES]) or "nothing"
        actual = f"it defines {defined}"
        message = f"{owner} does not define {name}{remedy or f', {actual}'}"
        return self.say("missing_function", name, message, expected=expected, actual=actual)


def _function(
    reader: ModuleReader, start: FoundModule, wanted: FunctionContract
) -> Iterable[ContractDifference]:
    module, name = reader.follow(start, wanted.name)
    place = _Place(reader, module, module.scope)
    uncertain = place.scope.uncertain(name)
    if uncertain:
        return [place.unresolved(name, uncertain)]
    if name in place.scope.classes:
        return [
            place.say(
                "signature",
                name,
                f"{name} is a class, not a function ({module.path}:{place.scope.classes[name].line})",
                expected=render(wanted),
                actual=f"class {name}",
                line=place.scope.classes[name].line,
            )
        ]
    if name not in place.scope.functions:
        return [place.missing(name, render(wanted))]
    return _signature(place, wanted, place.scope.functions[name])


def _signature(
    place: _Place, wanted: FunctionContract, found: FoundFunction
) -> Iterator[ContractDifference]:
    name = place.prefix + wanted.name
    compared = compare_signature(wanted, found, place.scope.names, is_method=place.owner is not None)
    if compared.likeness is Likeness.SAME:
        return
    where = f"{place.module.path}:{found.line}"
    expected, actual = render(wanted), render(compared.actual)
    if compared.likeness is Likeness.UNKNOWN:
        message = f"{name} in {where} cannot be compared: {compared.why}"
        yield place.say("unresolved", wanted.name, message, actual=actual, line=found.line)
        return
    message = (
        f"{name}: the contract says {render_signature(wanted)}, "
        f"the code has {render_signature(compared.actual)} ({where}): {compared.why}"
    )
    yield place.say(
        "signature",
        wanted.name,
        message,
        why=compared.why,
        expected=expected,
        actual=actual,
        line=found.line,
    )


def _class(reader: ModuleReader, start: FoundModule, wanted: ClassContract) -> Iterable[ContractDifference]:
    first, *inner = wanted.name.split(".")
    module, name = reader.follow(start, first)
    place = _Place(reader, module, module.scope)
    for promised, part in zip((first, *inner), (name, *inner), strict=True):
        uncertain = place.scope.uncertain(part)
        if uncertain:
            return [place.unresolved(part, uncertain)]
        found = place.scope.classes.get(part)
        if found is None:
            return [place.missing(part, f"class {wanted.name}")]
        place = _Place(reader, module, found.scope, found, f"{place.prefix}{promised}.")
    return [
        *_bases(place, wanted),
        *(each for method in wanted.methods for each in _method(place, method)),
        *(each for promised in wanted.properties for each in _property(place, promised)),
    ]


def _bases(place: _Place, wanted: ClassContract) -> Iterator[ContractDifference]:
    found = place.owner
    assert found is not None
    name = place.prefix.rstrip(".")
    for base in wanted.bases:
        likenesses = {compare_annotations(base, each, place.scope.names) for each in found.bases}
        if Likeness.SAME in likenesses:
            continue
        where = f"{place.module.path}:{found.line}"
        known = Likeness.UNKNOWN not in likenesses
        yield _difference(
            "signature" if known else "unresolved",
            f"{name} {'is' if known else 'may be'} no subclass of {base} by its source ({where})",
            name=name,
            expected=f"class {name}({base})",
            actual=f"class {name}({', '.join(found.bases)})",
            path=place.module.path,
            line=found.line,
        )


def _method(place: _Place, wanted: FunctionContract) -> Iterable[ContractDifference]:
    name = wanted.name
    home = _home_of(place, name)
    if home is None:
        return [place.unresolved(name, _MAY_BE_INHERITED)]
    uncertain = home.scope.uncertain(name)
    if uncertain:
        return [place.unresolved(name, uncertain)]
    if name not in home.scope.functions:
        return [place.missing(name, render(wanted))]
    return _signature(home, wanted, home.scope.functions[name])


def _property(place: _Place, wanted: PropertyContract) -> Iterable[ContractDifference]:
    name = wanted.name
    home = _home_of(place, name)
    if home is None:
        return [place.unresolved(name, _MAY_BE_INHERITED)]
    expected = f"property {name}" + (f" -> {wanted.returns}" if wanted.returns else "")
    if name in home.scope.functions:
        message = f"{place.prefix}{name} is a method, not a property"
        return [place.say("signature", name, message, expected=expected, actual=f"def {name}")]
    if name not in home.scope.properties or name in home.scope.bindings.unsure:
        uncertain = home.scope.uncertain(name)
        return [place.unresolved(name, uncertain) if uncertain else place.missing(name, expected)]
    returns = home.scope.properties[name]
    if wanted.returns is None:
        return []
    likeness = Likeness.DIFFERENT
    if returns is not None:
        likeness = compare_annotations(wanted.returns, returns, home.scope.names)
    if likeness is Likeness.SAME:
        return []
    said = f"gives {returns}" if returns else "does not say what it gives"
    message = f"{place.prefix}{name}: the contract says it gives {wanted.returns}, the code {said}"
    problem = "signature" if likeness is Likeness.DIFFERENT else "unresolved"
    return [place.say(problem, name, message, expected=expected, actual=f"property {name} -> {returns}")]


_MAY_BE_INHERITED = "may be inherited, or made by a decorator or metaclass"
_PLAIN_BASES = frozenset({"object", "abc.ABC", "typing.Protocol", "typing.Generic"})
"""They give no methods that a contract would name."""


def _home_of(place: _Place, name: str) -> _Place | None:
    """The class that defines a method, through single inheritance; ``None`` where that cannot be told."""
    home = place
    for _ in range(MAX_ANCESTORS):
        owner = home.owner
        assert owner is not None
        if name in home.scope.functions or name in home.scope.properties or home.scope.uncertain(name):
            return home
        if not owner.may_have_more:
            return home if home is place else None
        above = _only_base(home, owner)
        if above is None:
            return None
        home = above
    return None


def _only_base(place: _Place, owner: FoundClass) -> _Place | None:
    names = place.scope.names
    full = [(base, resolve(base.partition("[")[0], names)) for base in owner.bases]
    bases = [base for base, known in full if known not in _PLAIN_BASES]
    if owner.is_changed or len(bases) != 1 or not bases[0].isidentifier():
        return None
    module, name = place.reader.follow(place.module, bases[0])
    found = module.scope.classes.get(name)
    if found is None or name in module.scope.bindings.unsure:
        return None
    return _Place(place.reader, module, found.scope, found, place.prefix)


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
