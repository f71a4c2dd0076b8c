"""When a metric is not met: the tests that record it, if those are known. The rest is told as context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.revision.facts import check_ids, failing_tests
from planner.rules.revision.isolating import isolate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation


def after_unmet_metric(situation: Situation) -> Iterator[Edit]:
    """Leaves the branch the recording tests and the metric itself."""
    if failing_tests(situation):
        yield from isolate(
            situation,
            rule="metric-isolates",
            why="what records the metric is run without company",
            keeps=check_ids(situation),
        )
