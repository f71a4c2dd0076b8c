"""The JSON Schemas built from the models: they are valid and agree with the loader."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from simulation import Simulation

from planner.planfile import schemas
from planner.store.run_log import action_text, event_text

FIXTURES = Path(__file__).parents[3] / "fixtures"


@cache
def validator(name: str, part: str | None = None) -> Draft202012Validator:
    document = schemas.schema(name)
    if part is not None:
        document = {"$defs": document["$defs"], "$ref": f"#/$defs/{part}"}
    return Draft202012Validator(document)


def read(path: str) -> Any:
    text = (FIXTURES / path).read_text(encoding="utf-8-sig")
    return json.loads(text) if path.endswith(".json") else yaml.load(text, Loader=yaml.BaseLoader)


def test_an_unknown_schema_is_reported_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="unknown schema 'plans'; the schemas are plan"):
        schemas.schema("plans")


def test_the_examples_and_seed_documents_match_the_schemas() -> None:
    plans = sorted((FIXTURES.parent / "examples").glob("*/plan.yaml"))
    assert plans
    for path in plans:
        validator("plan").validate(json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str)))
    validator("plan").validate(read("seeds/todo_list.json"))
    for name in ("branch_todo", "branch_todo_rsi", "step_spec"):
        validator("plan", "Todo").validate(read(f"seeds/{name}.json"))
    validator("outcome", "Outcome").validate(read("seeds/controller_outcome.json"))


def test_every_accepted_spelling_matches_the_schema() -> None:
    artifacts = {"expected_artifacts": ["a", {"path": "b", "schema": "c"}]}
    items = [
        {"id": "a", "title": "A", "acceptance_criteria": artifacts},
        {"step_id": "b", "title": "B", "description": "d", "x-own": [1]},
    ]
    validator("plan").validate(
        {"todo_list_id": "p", "items": items, "metadata": {"max_debug_branch_depth": 1}}
    )


@pytest.mark.parametrize(
    "item",
    [
        {"title": "A"},
        {"id": "a", "step_id": "a", "title": "A"},
        {"id": "a b", "title": "A"},
        {"id": "a", "title": "A", "titel": "A"},
        {"id": "a", "title": "A", "extensions": {}},
        {"id": "a", "title": "A", "acceptance_criteria": {"expected_artifacts": [{"min_bytes": 1}]}},
    ],
)
def test_the_schema_rejects_values_that_the_loader_refuses(item: dict[str, Any]) -> None:
    assert not validator("plan").is_valid({"todo_list_id": "p", "items": [item]})


def test_every_logged_event_and_action_matches_its_schema() -> None:
    seen: set[str] = set()
    for seed in range(6):
        for event, called_for in Simulation.begin(seed).run().history:
            logged = [("event", json.loads(event_text(event)))]
            logged += [("action", json.loads(action_text(action))) for action in called_for]
            for kind, document in logged:
                name = document[kind]
                if name not in seen or name in ("publish_plan", "ask_human"):
                    seen.add(name)
                    validator(kind).validate(document)
    assert len(seen) > 15, f"too little was seen: {sorted(seen)}"
