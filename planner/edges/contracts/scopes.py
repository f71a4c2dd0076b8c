"""What a module or a class defines, taken from what griffe has read of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import griffe

from planner.model.contract import FunctionContract, ParameterContract
from planner.rules.contracts.annotations import Names
from planner.rules.contracts.signatures import FoundFunction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.edges.contracts.bindings import Bindings


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClass:
    """A class as the source has it."""

    name: str
    line: int
    bases: tuple[str, ...]
    """As written."""
    scope: FoundScope
    is_changed: bool
    """A decorator or a metaclass may give it methods."""

    @property
    def may_have_more(self) -> bool:
        """Whether it may have methods that do not stand in its body."""
        return self.is_changed or bool(set(self.bases) - {"object"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundScope:
    """What a module or a class body defines."""

    names: Names
    bindings: Bindings
    functions: Mapping[str, FoundFunction]
    classes: Mapping[str, FoundClass]
    imported: Mapping[str, str]
    """Local name to full dotted name."""
    properties: Mapping[str, str | None]
    """With the annotation of what each gives."""
    exports: tuple[str, ...] | None = None
    """What ``__all__`` names, where it can be read."""

    @property
    def defined(self) -> tuple[str, ...]:
        """The functions and classes that it defines itself, in the order of the source."""
        return tuple(
            sorted(
                (*self.functions, *self.classes),
                key=lambda name: (self.functions.get(name) or self.classes[name]).line,
            )
        )

    def defines(self, name: str) -> bool:
        """Whether the name is one of these functions or classes."""
        return name in self.functions or name in self.classes

    def uncertain(self, name: str) -> str | None:
        """Why only running the code would tell what the name is, or ``None``."""
        if name in self.bindings.unsure:
            return "is defined under a condition, or more than once"
        if self.defines(name):
            return None
        if name in self.properties:
            return "is a property"
        if name in self.imported:
            return f"comes from {self.imported[name]}, which the project's source does not show"
        if name in self.bindings.assigned:
            return "is assigned, not defined"
        return "may come from a star import or __getattr__" if self.bindings.is_open else None


def module_scope(
    module: griffe.Module, bodies: Mapping[str, Bindings], lent: Mapping[str, str] | None = None
) -> FoundScope:
    """What a module of griffe's defines.

    ``bodies`` are the bindings of the module and of each class by its path; ``lent`` are names that only
    its stub imports.
    """
    return _scope(module, bodies, _module_names(module, bodies[module.path], lent or {}))


def _scope(owner: Any, bodies: Mapping[str, Bindings], names: Names) -> FoundScope:
    bindings = bodies[owner.path]
    members = {name: member for name, member in owner.members.items() if not member.is_alias}
    made: dict[str, FoundFunction] = {}
    classes: dict[str, FoundClass] = {}
    for name, member in members.items():
        if member.is_function:
            if member.lineno or _is_plain_dataclass(owner, bindings):
                made[name] = _function(member, member.lineno or owner.lineno)
        elif member.is_class:
            classes[name] = _class(member, bodies, names)
    exports: Any = owner.exports
    return FoundScope(
        names=names,
        bindings=bindings,
        imported=dict(owner.imports),
        functions=made,
        classes=classes,
        properties={
            name: None if member.annotation is None else str(member.annotation)
            for name, member in members.items()
            if member.is_attribute and "property" in member.labels
        },
        exports=None if exports is None else tuple(dict.fromkeys(str(each) for each in exports)),
    )


def _module_names(module: griffe.Module, bindings: Bindings, lent: Mapping[str, str]) -> Names:
    imported = {**lent, **module.imports}
    defined = _defined(module)
    others = (set(module.members) - defined) | bindings.assigned | bindings.unsure
    return Names(
        imported=imported,
        defined=frozenset(defined),
        assigned=frozenset(others - set(imported)),
        module=module.path,
        aliases=_aliases(module.members, bindings),
        is_open=bindings.is_open,
    )


def _class_names(found: griffe.Class, bindings: Bindings, above: Names) -> Names:
    """The names inside of a class: what it binds hides what the module calls by the same name."""
    bound = (set(found.members) - above.defined) | bindings.assigned
    hidden = bound | {each.name for each in found.type_parameters}
    around = {name: full for name, full in above.imported.items() if name not in hidden}
    return Names(
        imported={**around, **found.imports},
        defined=above.defined - hidden,
        assigned=above.assigned | (hidden - set(found.imports)),
        module=above.module,
        aliases={name: value for name, value in above.aliases.items() if name not in hidden},
        is_open=above.is_open,
    )


def _defined(owner: Any) -> set[str]:
    members: Mapping[str, Any] = owner.members
    return {
        name
        for name, member in members.items()
        if not member.is_alias and (member.is_function or member.is_class)
    }


def _aliases(members: Mapping[str, Any], bindings: Bindings) -> dict[str, str]:
    """Names that are bound once, with the source of their value: ``Price = float``, ``N = 14``."""
    return {
        name: str(member.value)
        for name, member in members.items()
        if not member.is_alias
        and (member.is_attribute or member.is_type_alias)
        and member.value is not None
        and name not in bindings.unsure
        and not isinstance(member.value, griffe.ExprCall)
    }


def _class(found: griffe.Class, bodies: Mapping[str, Bindings], names: Names) -> FoundClass:
    bases = tuple(str(base) for base in found.bases)
    bindings = bodies[found.path]
    own_dataclass = _is_plain_dataclass(found, bindings)
    return FoundClass(
        name=found.name,
        line=found.lineno or 0,
        bases=bases,
        scope=_scope(found, bodies, _class_names(found, bindings, names)),
        is_changed=bool((found.decorators and not own_dataclass) or found.keywords),
    )


def _function(found: griffe.Function, line: int) -> FoundFunction:
    signature = FunctionContract.model_construct(
        name=found.name,
        parameters=tuple(_parameter(each) for each in found.parameters),
        returns=None if found.returns is None else str(found.returns),
        is_async="async" in found.labels,
    )
    return FoundFunction(
        signature=signature,
        line=line,
        decorators=tuple(_decorator(each) for each in found.decorators),
        type_parameters=frozenset(each.name for each in found.type_parameters),
    )


def _decorator(found: griffe.Decorator) -> tuple[str, str]:
    value: Any = found.value.function if isinstance(found.value, griffe.ExprCall) else found.value
    is_name = isinstance(value, str | griffe.ExprName | griffe.ExprAttribute)
    written = str(value) if is_name else "?"
    full = found.callable_path
    return written, full if written != "?" else "?"


_STARS = {griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword}


def _parameter(found: griffe.Parameter) -> ParameterContract:
    kind = griffe.ParameterKind.positional_or_keyword if found.kind is None else found.kind
    default = None if found.default is None or kind in _STARS else str(found.default)
    return ParameterContract.model_construct(
        name=found.name,
        kind=kind.name,
        annotation=None if found.annotation is None else str(found.annotation),
        default=default,
    )


_FIELD_ARGUMENTS = frozenset(
    {"default", "default_factory", "init", "kw_only", "repr", "hash", "compare", "metadata", "doc"}
)
_LITERALS = frozenset({"True", "False"})


def _is_plain_dataclass(found: Any, bindings: Bindings) -> bool:
    """Whether what ``dataclass`` makes of the class can be told for certain."""
    if not found.is_class or len(found.decorators) != 1 or found.bases or found.keywords:
        return False
    (decorator,) = found.decorators
    if decorator.callable_path != "dataclasses.dataclass":
        return False
    return _is_certain(decorator.value, frozenset({"default", "default_factory"}), None) and all(
        name not in bindings.unsure and _is_certain(member.value, frozenset(), _FIELD_ARGUMENTS)
        for name, member in found.members.items()
        if member.is_attribute and member.annotation is not None
    )


def _is_certain(value: Any, free: frozenset[str], known: frozenset[str] | None) -> bool:
    """Whether the arguments of ``dataclass(…)`` or ``field(…)`` are written out."""
    if not isinstance(value, griffe.ExprCall):
        return True
    if known is not None and value.canonical_path != "dataclasses.field":
        return True
    if known is not None and not value.arguments:
        return False
    for argument in value.arguments:
        if not isinstance(argument, griffe.ExprKeyword):
            return False
        if known is not None and argument.name not in known:
            return False
        if argument.name in ("init", "kw_only") and str(argument.value) not in _LITERALS:
            return False
    return True
