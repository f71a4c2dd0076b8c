"""Faults of the data that tests read."""

from __future__ import annotations

from collections.abc import Iterator

from faults.fault import Fault, Kind, Module, Reach
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

_BROKEN = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.TEST,
    why="The data belong to the tests, which cannot run without them.",
)


def _deleted(module: Module) -> Iterator[Fault]:
    for path in _named(module):
        yield Fault(changes={path: None}, path=path, before=path, reader=module.path)


def _emptied(module: Module) -> Iterator[Fault]:
    for path in _named(module):
        yield Fault(changes={path: ""}, path=path, before=path, reader=module.path)


def _named(module: Module) -> Iterator[str]:
    """The data files that a test file names."""
    for path in module.data:
        if path.rsplit("/", 1)[-1] in module.text:
            yield path


KINDS = (
    Kind(
        id="test-data-deleted",
        sentence="A data file of the tests was deleted.",
        inject=_deleted,
        category=Category.ARTIFACT_MISSING,
        owner=Owner.TEST,
        also=(_BROKEN,),
        reach=Reach.OWN,
    ),
    Kind(
        id="test-data-emptied",
        sentence="A data file of the tests is empty.",
        inject=_emptied,
        owner=Owner.TEST,
        reach=Reach.OWN,
    ),
)
