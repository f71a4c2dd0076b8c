"""The shipped JSON Schemas are those of the models, and agree with the loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from planner.edges import json_schemas

FIXTURES = Path(__file__).parents[2] / "fixtures"


def validator(name: str, part: str | None = None) -> Draft202012Validator:
    document = json_schemas.schema(name)
    if part is not None:
        document = {"$defs": document["$defs"], "$ref": f"#/$defs/{part}"}
    return Draft202012Validator(document)


def read(path: str) -> Any:
    text = (FIXTURES / path).read_text(encoding="utf-8-sig")
    return json.loads(text) if path.endswith(".json") else yaml.load(text, Loader=yaml.BaseLoader)


@pytest.mark.parametrize("name", json_schemas.names())
def test_the_shipped_schemas_are_current(name: str) -> None:
    shipped = json_schemas.path_of(name).read_text(encoding="utf-8")
    assert shipped == json_schemas.render(name), "run: python -m planner.edges.json_schemas"


@pytest.mark.parametrize("name", json_schemas.names())
def test_the_shipped_schemas_are_schemas(name: str) -> None:
    document = json_schemas.schema(name)
    Draft202012Validator.check_schema(document)
    assert "$id" not in document
    assert document["title"]


def test_writing_makes_the_files_that_are_shipped(tmp_path: Path) -> None:
    json_schemas.write(tmp_path / "schemas")
    written = {path.name: path.read_text() for path in (tmp_path / "schemas").iterdir()}
    assert written == {path.name: path.read_text() for path in json_schemas.FOLDER.iterdir()}


def test_an_unknown_schema_is_named_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="no schema 'plans'; known are plan"):
        json_schemas.schema("plans")


def test_the_seed_documents_fit_the_schemas() -> None:
    validator("plan").validate(read("seeds/todo_list.json"))
    for name in ("branch_todo", "branch_todo_rsi", "step_spec"):
        validator("plan", "Todo").validate(read(f"seeds/{name}.json"))
    validator("outcome", "Outcome").validate(read("seeds/controller_outcome.json"))


@pytest.mark.parametrize(
    "item",
    [
        {"id": "a", "title": "A"},
        {"step_id": "a", "title": "A", "description": "d", "x-own": [1]},
        {
            "id": "a",
            "title": "A",
            "acceptance_criteria": {"expected_artifacts": ["a", {"path": "b", "schema": "c"}]},
        },
    ],
)
def test_every_spelling_fits_the_schema(item: dict[str, Any]) -> None:
    validator("plan").validate(
        {"todo_list_id": "p", "items": [item], "metadata": {"max_debug_branch_depth": 1}}
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
def test_what_the_loader_refuses_the_schema_refuses(item: dict[str, Any]) -> None:
    assert not validator("plan").is_valid({"todo_list_id": "p", "items": [item]})
