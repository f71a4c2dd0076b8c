"""`planner schema`: the schema of each file that is read or written."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from planner_command import Command

from planner.cli.plan_file import SCHEMAS
from planner.planfile import schemas


def test_every_schema_has_a_name_and_is_printed(command: Command) -> None:
    assert set(SCHEMAS) == set(schemas.names())
    for name in SCHEMAS:
        ran = command("schema", name)
        document = ran.json

        assert ran.status == 0
        Draft202012Validator.check_schema(document)
        assert "$id" not in document
        assert document["title"]


@pytest.mark.parametrize("name", ["outcomes", "Failure-Report", "plans"])
def test_a_name_that_is_nearly_right_is_understood(command: Command, name: str) -> None:
    assert command("schema", name).json["title"]


def test_an_unknown_schema_is_answered_with_the_names(command: Command) -> None:
    ran = command("schema", "basline")

    assert (ran.status, ran.err) == (2, "planner: unknown schema 'basline'; did you mean 'baseline'?\n")
