"""Tests that each kind of fault in the corpus changes a file as described, and nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "corpus" / "builders"))

from faults import ALL_KINDS
from faults.fault import Fault, Judged, Kind, Module, Reach, label_of

PRODUCT = '''"""A ledger."""

from __future__ import annotations

import re
from decimal import Decimal

from .rates import lookup

LIMIT = 10


class Ledger:
    def __init__(self, name, entries=()):
        self.entries = list(entries)
        self.names = {"title": name}
        self.total = 0

    def book(self, amount, note="none"):
        self.total += amount
        if amount > LIMIT and note:
            raise ValueError("too large an amount")
        else:
            self.entries.append(amount)
        return self.total + 1

    def copy(self):
        made = self.entries.copy()
        return made[1:]


def parse(text, separator):
    found = None
    if text is None:
        return []
    try:
        found = re.split(separator, text)
    except re.error:
        raise ValueError(text) from None
    for part in found:
        found = part.strip()
    first = text[0]
    size = first.upper()
    return [each == "total" for each in lookup(found, size)]


def title(record, length=20):
    name = record["title"]
    if len(name) > length:
        name = name[: length - 3]
    return name


async def later(job):
    done = await job.run()
    return done
'''

TESTS = '''"""Tests of the ledger."""

import unittest

import pytest

from ledger.core import Ledger, parse
from ledger.rates import lookup


@pytest.fixture
def ledger():
    made = Ledger("sample")
    return made


def sample(number):
    return [number] * LENGTH_OF_SAMPLES


class LedgerTest(unittest.TestCase):
    def test_titles(self):
        given = parse("a;b", separator=";")
        self.assertEqual(given, ["a"])
        self.assertEqual(2, len(sample(2)))


@pytest.mark.parametrize("text,number", [("a", 1)])
def test_parse(text, number):
    found = parse(text, ",")
    assert len(found) == 1
    assert open("samples.json")


def test_total(ledger):
    ledger.book(4)
    assert ledger.total == 5
    with pytest.raises(ValueError):
        ledger.book(40)
    given = Ledger("other", [])
    assert given.names
'''


def _module(kind: Kind) -> Module:
    """Return a module in which a kind of fault finds a place."""
    if kind.reach is Reach.OWN:
        return Module("tests/test_core.py", TESTS, data=("tests/data/samples.json",))
    if kind.id == "not-exported":
        return Module("ledger/__init__.py", "from .core import Ledger, parse\n", "ledger")
    if kind.id == "returns-generator":
        return Module("ledger/core.py", "def ends(text):\n    return sorted(text)\n", "ledger")
    return Module("ledger/core.py", PRODUCT, "ledger")


def _evidence(error: str, side: Side, message: str = "") -> Evidence:
    frame = Frame(path="ledger/core.py", line=12, function="parse", side=side)
    fact = ExceptionFact(type=error, qualified=f"builtins.{error}", message=message, frames=(frame,))
    return Evidence(kind=EvidenceKind.TEST, exceptions=(fact,))


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.id)
def test_each_kind_of_fault_changes_only_its_file(kind: Kind) -> None:
    module = _module(kind)
    faults = list(kind.inject(module))
    assert faults, f"{kind.id} finds no place in the sample"
    for fault in faults:
        assert set(fault.changes) <= {fault.path}
        content = fault.changes[fault.path]
        if not isinstance(content, str):
            assert content is None or kind.category is Category.COMPILATION_ERROR
            continue
        if kind.category is Category.COMPILATION_ERROR:
            with pytest.raises(SyntaxError):
                ast.parse(content)
        else:
            ast.parse(content)
        if fault.path == module.path and kind.id != "emptied-module":
            assert content != module.text
            assert fault.first_line is not None
            above = content.split("\n")[: fault.first_line - 1]
            assert above == module.text.split("\n")[: fault.first_line - 1]


def test_the_table_of_fault_kinds_is_complete() -> None:
    assert len(ALL_KINDS) == len({kind.id for kind in ALL_KINDS})
    assert len(ALL_KINDS) >= 45
    for kind in ALL_KINDS:
        assert kind.sentence.endswith("."), kind.id
        assert (kind.owner is Owner.TEST) == (
            kind.id.startswith("test-") or kind.repeatability != "deterministic"
        )
        assert all(each.why.endswith(".") for each in kind.also), kind.id
        assert not any((each.category, each.owner) == (kind.category, kind.owner) for each in kind.also), (
            kind.id
        )


@pytest.mark.parametrize(
    ("error", "side", "message", "wanted"),
    [
        ("TypeError", Side.TEST, "parse() missing 1 required positional argument: 'mode'", "SPEC_MISMATCH"),
        ("TypeError", Side.PRODUCT, "parse() missing 1 required positional argument", "TYPE_ERROR"),
        ("AssertionError", Side.TEST, "1 != 2", "TEST_REGRESSION"),
        ("TypeError", Side.TEST, "'NoneType' object is not iterable", "TEST_REGRESSION"),
        ("NameError", Side.PRODUCT, "name 'parse' is not defined", "TEST_REGRESSION"),
    ],
)
def test_the_label_of_a_changed_interface_depends_on_the_caller(
    error: str, side: Side, message: str, wanted: str
) -> None:
    kind = next(each for each in ALL_KINDS if each.id == "parameter-added")
    assert kind.judged is Judged.INTERFACE
    fault = Fault(changes={}, path="ledger/core.py", first_line=12, function="parse", name="mode")
    label = label_of(kind, fault, _evidence(error, side, message), product_edited=False)
    assert label is not None
    assert (label.category, label.owner) == (wanted, Owner.PRODUCT)


def test_a_fault_without_its_expected_effect_gives_no_case() -> None:
    kind = next(each for each in ALL_KINDS if each.id == "undefined-name")
    fault = Fault(changes={}, path="ledger/core.py", first_line=12, name="fuond")
    seen = _evidence("NameError", Side.PRODUCT, "name 'fuond' is not defined")
    label = label_of(kind, fault, seen, product_edited=False)
    assert label is not None
    assert label.place is not None
    assert label.place.exact
    assert label_of(kind, fault, _evidence("ValueError", Side.PRODUCT), product_edited=False) is None
