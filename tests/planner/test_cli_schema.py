"""`planner schema`, and the records that journals are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from planner_command import Command
from pydantic import TypeAdapter, ValidationError

from planner.cli.schema import NAMES
from planner.model.journal import Record
from planner.planfile import schemas


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


def test_every_schema_has_a_name_and_is_printed(command: Command) -> None:
    assert set(NAMES) == set(schemas.names())
    for name in NAMES:
        ran = command("schema", name)
        assert ran.status == 0
        assert ran.out == schemas.schema_text(name)


@pytest.mark.parametrize("name", ["outcomes", "Failure-Report", "plans"])
def test_a_name_that_is_nearly_right_is_understood(command: Command, name: str) -> None:
    assert command("schema", name).json["title"]


def test_an_unknown_schema_is_answered_with_the_names(command: Command) -> None:
    ran = command("schema", "jurnal")

    assert (ran.status, ran.err) == (2, "planner: there is no schema 'jurnal'; did you mean 'journal'?\n")


MODELS = get_args(get_args(Record)[0])
RECORDS: TypeAdapter[Any] = TypeAdapter(Record)


def test_no_two_records_share_a_tag() -> None:
    tags = [get_args(model.model_fields["record"].annotation)[0] for model in MODELS]

    assert len(tags) == len(set(tags)) > 25


def test_a_record_with_keys_of_a_newer_version_is_read() -> None:
    record = RECORDS.validate_json(
        json.dumps({"record": "session_ended", "session": "s1", "at": 1.5, "exit_status": 0, "newer": [1]})
    )

    assert record.exit_status == 0


@pytest.mark.parametrize(
    "record",
    [
        {"record": "no_such", "session": "s1", "at": 1},
        {"record": "session_ended", "session": "s1", "at": 1},
        {"record": "session_ended", "at": 1, "exit_status": 0},
    ],
)
def test_what_is_no_record_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RECORDS.validate_python(record)
