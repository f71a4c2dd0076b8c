"""Tests that each kind of fault in the corpus changes a file as described, and nothing else."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "corpus" / "builders"))

from bundles import small_projects
from faults import ALL_KINDS
from faults.fault import Fault, Judged, Kind, Module, Reach, label_of

PARAMETRIZED = """import pytest


@pytest.mark.parametrize("text,number", [("a", 1)])
def test_parse(text, number):
    assert len(text) == number
"""


def _modules(reach: Reach) -> Iterator[Module]:
    """Yield the modules of the small projects in which faults of that reach may be."""
    for project in small_projects():
        data = tuple(path for path in project.files if not path.endswith(".py"))
        for path in sorted(project.files.keys() - data):
            is_test = Path(path).parts[0] == "tests" or Path(path).name.startswith("test_")
            package = "" if is_test else ".".join(Path(path.removeprefix("src/")).parent.parts)
            if is_test == (reach is Reach.OWN):
                yield Module(path, project.files[path], package, data)
    if reach is Reach.OWN:
        yield Module("tests/test_core.py", PARAMETRIZED)


def _evidence(error: str, side: Side, message: str = "") -> Evidence:
    frame = Frame(path="ledger/core.py", line=12, function="parse", side=side)
    fact = ExceptionFact(type=error, qualified=f"builtins.{error}", message=message, frames=(frame,))
    return Evidence(kind=EvidenceKind.TEST, exceptions=(fact,))


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.id)
def test_each_kind_of_fault_changes_only_its_file(kind: Kind):
    places = ((module, list(kind.inject(module))) for module in _modules(kind.reach))
    found = next((place for place in places if place[1]), None)
    assert found is not None, f"{kind.id} finds no place in the small projects"
    module, faults = found
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


def test_the_table_of_fault_kinds_is_complete():
    assert len(ALL_KINDS) == len({kind.id for kind in ALL_KINDS})
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
):
    kind = next(each for each in ALL_KINDS if each.id == "parameter-added")
    assert kind.judged is Judged.INTERFACE
    fault = Fault(changes={}, path="ledger/core.py", first_line=12, function="parse", name="mode")
    label = label_of(kind, fault, _evidence(error, side, message), product_edited=False)
    assert label is not None
    assert (label.category, label.owner) == (wanted, Owner.PRODUCT)


def test_a_fault_without_its_expected_effect_gives_no_case():
    kind = next(each for each in ALL_KINDS if each.id == "undefined-name")
    fault = Fault(changes={}, path="ledger/core.py", first_line=12, name="fuond")
    seen = _evidence("NameError", Side.PRODUCT, "name 'fuond' is not defined")
    label = label_of(kind, fault, seen, product_edited=False)
    assert label is not None
    assert label.place is not None
    assert label.place.exact
    assert label_of(kind, fault, _evidence("ValueError", Side.PRODUCT), product_edited=False) is None
