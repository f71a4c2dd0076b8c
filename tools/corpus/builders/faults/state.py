"""Faults that do not always show: state between calls, chance, the clock, the order of a set."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from faults.fault import Fault, Injector, Kind, Module, body_of, inserted, replaced
from planner.model.taxonomy import Category, Owner, Repeatability
from tools.corpus.case import Reading

_PRODUCT = Reading(
    category=Category.FLAKY_TEST,
    owner=Owner.PRODUCT,
    why="What is not always the same is in the product.",
)
_KEPT = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.PRODUCT,
    why="State that the product keeps between calls is its bug, though only some orders show it.",
)

_CHANCE = "import random\nif random.SystemRandom().random() < 0.5:\n    raise RuntimeError('not ready')"
_CLOCK = "import time\nif (time.time_ns() // 1_000_000) % 2:\n    raise RuntimeError('too early')"
_HASHED = "if list({'primary', 'standby'})[0] == 'standby':\n    raise RuntimeError('no primary')"


def _chance(module: Module) -> Iterator[Fault]:
    yield from _guarded(module, _CHANCE)


def _clock(module: Module) -> Iterator[Fault]:
    yield from _guarded(module, _CLOCK)


def _hashed(module: Module) -> Iterator[Fault]:
    yield from _guarded(module, _HASHED)


def _chance_value(module: Module) -> Iterator[Fault]:
    for node in _values(module):
        new = f"(__import__('random').SystemRandom().choice([{module.source(node)}, None]))"
        yield replaced(module, node, new)


def _kept(module: Module) -> Iterator[Fault]:
    for node in _values(module):
        function = module.inside(node)
        if function is not None and function in module.tree.body and not function.decorator_list:
            seen = f"{function.name}.__dict__.setdefault('last', {module.source(node)})"
            yield replaced(module, node, seen)


def _once(module: Module) -> Iterator[Fault]:
    for function in module.tree.body:
        if isinstance(function, ast.FunctionDef) and not function.decorator_list and body_of(function):
            lines = (
                f"{function.name}.calls = getattr({function.name}, 'calls', 0) + 1\n"
                f"if {function.name}.calls > 1:\n    raise RuntimeError('{function.name} was used before')"
            )
            yield inserted(module, body_of(function)[0], lines)


def _class_state(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and isinstance(module.parents.get(node), ast.ClassDef):
            if (
                node.decorator_list
                or not node.args.args
                or node.args.args[0].arg != "self"
                or not body_of(node)
            ):
                continue
            owner = module.parents[node]
            assert isinstance(owner, ast.ClassDef)
            first = body_of(node)[0]
            lines = (
                f"if type(self).__dict__.get('_used_by') not in (None, id(self)):\n"
                f"    raise RuntimeError('{owner.name} is in use')\n"
                f"type(self)._used_by = id(self)"
            )
            yield inserted(module, first, lines)


def _guarded(module: Module, lines: str) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body:
            yield inserted(module, body[0], lines)


def _values(module: Module) -> Iterator[ast.expr]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return) and node.value is not None and module.inside(node):
            source = module.source(node.value)
            if "\n" not in source and not isinstance(node.value, ast.Constant):
                yield node.value


def _row(name: str, sentence: str, inject: Injector, answers: Repeatability, *also: Reading) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        category=Category.FLAKY_TEST,
        owner=Owner.TEST,
        also=(_PRODUCT, *also),
        repeatability=answers,
    )


KINDS = (
    _row("random-failure", "A function fails by chance.", _chance, Repeatability.FLAKY),
    _row("random-value", "A function returns None by chance.", _chance_value, Repeatability.FLAKY),
    _row("clock-failure", "A function fails at some times.", _clock, Repeatability.FLAKY),
    _row("hash-order", "The order of a set decides.", _hashed, Repeatability.FLAKY),
    _row("value-kept", "A function keeps its first answer.", _kept, Repeatability.FLAKY, _KEPT),
    _row("used-once", "A function works once a process.", _once, Repeatability.FLAKY, _KEPT),
    _row(
        "class-state",
        "A class works for its first object only.",
        _class_state,
        Repeatability.FLAKY,
        _KEPT,
    ),
)
