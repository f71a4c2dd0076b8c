"""Two snapshots of a tree compared: every sign that a verdict was bought, with its place and weight."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.planfile.loader import collector_paused
from pytest_planverify.guards.hygiene.changes import Changes
from pytest_planverify.guards.hygiene.configuration import compare_configuration
from pytest_planverify.guards.hygiene.judge_files import JudgeFiles
from pytest_planverify.guards.hygiene.judges import CONFIGURATIONS
from pytest_planverify.guards.hygiene.odd_sources import room_for_odd_sources
from pytest_planverify.guards.hygiene.product_files import ProductFiles
from pytest_planverify.guards.hygiene.signs import SIGNS, Find, Leave, weigh
from pytest_planverify.guards.hygiene.trees import compare_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from planner.model.plan import Plan
    from pytest_planverify.guards.hygiene.grants import Grants
    from pytest_planverify.snapshots import Snapshot


def compare(
    before: Snapshot,
    now: Snapshot,
    *,
    kinds: Mapping[str, JudgeKind],
    grants: Grants,
    accepted: Callable[[str, str | None], bool] | None = None,
    is_red: Callable[[str], bool] | None = None,
) -> tuple[HygieneSignal, ...]:
    """What is suspicious in the difference of two trees, the hardest signs first.

    ``kinds`` says what the files of before are; of others the name decides. ``accepted`` says whether a
    person has blessed a content, by its sha256; ``is_red`` whether a test, without its parameters, failed
    before.
    """
    changes = Changes(before, now, kinds, grants, accepted)
    # Trees of sources are many small objects, and no garbage in circles.
    with collector_paused(), room_for_odd_sources():
        signals = [
            signal for find in find_all(changes) if (signal := weigh(find, grants.leave(find.path), is_red))
        ]
    unique = {(signal.sign, signal.path, signal.line, signal.message): signal for signal in signals}
    return tuple(sorted(_gathered(unique.values(), grants), key=lambda each: each.hardness))


def find_all(changes: Changes) -> Iterator[Find]:
    """Everything that the detectors find, once."""
    if not changes.changed:
        return
    judges = JudgeFiles(changes)
    yield from judges.finds()
    product = ProductFiles(changes)
    tricks = list(product.finds())
    yield from tricks
    tests = [path for path in changes.old if path in changes.new and changes.kind(path) is JudgeKind.TEST]
    configured = {
        path for path in changes.changed if posixpath.basename(path) in CONFIGURATIONS | {"setup.py"}
    }
    yield from compare_configuration(changes.before, changes.now, configured, tests)
    yield from compare_names(
        changes.old,
        changes.new,
        changes.changed,
        changes.grants,
        made_anew=product.has_sources and all(find.sign != "artifact-kept" for find in tricks),
        imported=_imported(changes),
    )
    for path in changes.of_kind(JudgeKind.PLAN):
        yield from _plan(changes, path)


def _imported(changes: Changes) -> frozenset[str]:
    """The top-level modules that tests and their support imported before; where files are new only."""
    if not any(path not in changes.old and path in changes.new for path in changes.changed):
        return frozenset()
    return frozenset(
        meaning.partition(".")[0]
        for path in changes.old
        if path.endswith(".py")
        and changes.kind(path) is not JudgeKind.PRODUCT
        and (module := changes.module(path, now=False)) is not None
        for meaning in module.aliases.values()
    )


def _plan(changes: Changes, path: str) -> Iterator[Find]:
    from planner.planfile.loader import plan_as_it_stands
    from pytest_planverify.guards.hygiene.plans import compare_plans

    plans: list[Plan | None] = [
        plan_as_it_stands(content, path) if (content := tree.read(path)) is not None else None
        for tree in (changes.before, changes.now)
    ]
    if plans[0] is None:
        return
    if plans[1] is None:
        yield Find(sign="judge-unreadable", message="The plan is gone or cannot be read", path=path)
        return
    yield from compare_plans(plans[0], plans[1], path)


def _gathered(signals: Iterable[HygieneSignal], grants: Grants) -> Iterator[HygieneSignal]:
    """Soft signs of tests that may be changed are one: a change of behaviour changes many of them."""
    first: HygieneSignal | None = None
    more = Counter[str]()
    for signal in signals:
        mild = (
            signal.hardness == "soft"
            and signal.path is not None
            and not SIGNS[signal.sign].in_product
            and grants.leave(signal.path) is not Leave.FORBIDDEN
        )
        if not mild:
            yield signal
            continue
        more[signal.sign] += 1
        first = first or signal
    if first is not None:
        count = more.total()
        said = f"{first.message}; {count - 1} more of the kind" if count > 1 else first.message
        yield first.model_copy(update={"message": said})
