"""Tricks that the work itself can play on its judge, a detector each: they say what a source holds, and
only what it did not hold before is a sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.tricks.agreeing import agreeing
from pytest_planverify.guards.hygiene.tricks.counting import counting
from pytest_planverify.guards.hygiene.tricks.deciding import deciding
from pytest_planverify.guards.hygiene.tricks.digests import digests
from pytest_planverify.guards.hygiene.tricks.encoded import encoded
from pytest_planverify.guards.hygiene.tricks.ending import ending
from pytest_planverify.guards.hygiene.tricks.looking_around import looking_around
from pytest_planverify.guards.hygiene.tricks.patching import patching
from pytest_planverify.guards.hygiene.tricks.reading_tests import reading_tests
from pytest_planverify.guards.hygiene.tricks.stack import stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_planverify.guards.hygiene.reading import Module
    from pytest_planverify.guards.hygiene.signs import Find
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

DETECTORS: tuple[Callable[[Module, Surroundings], Iterator[Find]], ...] = (
    ending,
    agreeing,
    looking_around,
    stack,
    reading_tests,
    patching,
    counting,
    encoded,
    digests,
    deciding,
)
"""For product code."""

IN_TESTS: tuple[Callable[[Module, Surroundings], Iterator[Find]], ...] = (ending, patching, agreeing)
"""For files that judge: what tests may do as well as products is left out."""


def tricks_in(module: Module, around: Surroundings) -> Iterator[Find]:
    """All that the detectors find in a source."""
    for detector in IN_TESTS if around.is_judge else DETECTORS:
        yield from detector(module, around)
