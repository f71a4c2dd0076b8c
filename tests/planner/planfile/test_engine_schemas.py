"""What stands in a log is what the shipped schemas of events and actions say."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator
from simulation import Simulation

from planner.planfile.schemas import schema
from planner.store.lines import action_text, event_text


def test_every_event_and_action_of_a_log_is_as_its_schema_says() -> None:
    events, actions = (Draft202012Validator(schema(name)) for name in ("event", "action"))
    seen: set[str] = set()
    for seed in range(40):
        for event, called_for in Simulation.begin(seed).run().history:
            told = json.loads(event_text(event))
            if told["event"] in seen and not called_for:
                continue
            seen.add(told["event"])
            events.validate(told)
            for action in called_for:
                written = json.loads(action_text(action))
                if written["action"] not in seen or written["action"] in ("publish_plan", "ask_human"):
                    seen.add(written["action"])
                    actions.validate(written)
    assert len(seen) > 15, f"too little was seen: {sorted(seen)}"
