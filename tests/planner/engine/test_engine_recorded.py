"""Recorded runs: the engine decides on the same actions again, byte for byte."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from engine_recording import RECORDED, REFUSALS
from text_bundles import read_bundle

from planner.engine import fold, start, step
from planner.errors import RefusedEvent
from planner.model.events import PlanSubmitted
from planner.store.chain import GENESIS, check_link
from planner.store.run_log import action_text, logged_actions, parse_event, parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.events import Event

MEANT = "if that is meant, record them again: python tests/support/engine_recording.py"


LOGS = read_bundle(RECORDED)


def events_of(log: str) -> Iterator[tuple[str, Event]]:
    """Yield each line of a log and its event; check the digest chain."""
    digest = GENESIS
    for number, text in enumerate(log.splitlines()):
        digest = check_link(text, number, digest)
        yield text, parse_line(text, number)


def test_recorded_runs_are_replayed_with_identical_actions():
    count = 0
    for name, log in LOGS.items():
        if name == REFUSALS:
            continue
        state = None
        for number, (text, event) in enumerate(events_of(log)):
            if state is None:
                assert isinstance(event, PlanSubmitted)
                state, actions = start(event)
            else:
                state, actions = step(state, event)
            assert list(map(action_text, actions)) == logged_actions(text), (
                f"{name}, line {number}: {MEANT}"
            )
            count += len(actions)
        assert state is not None
        assert state.plan_state.is_final
    assert count > 300


def test_recorded_refusals_are_replayed_identically():
    for line in LOGS[REFUSALS].splitlines():
        held = json.loads(line)
        events = [event for _, event in islice(events_of(LOGS[held["run"]]), held["after"])]
        state = fold(events)
        event = parse_event(json.dumps(held["event"]))
        try:
            step(state, event)
        except RefusedEvent as refusal:
            said = (refusal.rule, str(refusal))
        else:
            said = ("", "it was taken in")
        assert said == (held["rule"], held["message"]), f"{held['run']}, after {held['after']}: {MEANT}"
