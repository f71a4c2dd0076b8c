"""Common behaviour of all commands: arguments, help, schemas, exit statuses and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from jsonschema import Draft202012Validator
from planner_command import Command

from planner.cli import exits
from planner.cli.exits import INTERRUPTED, TRACEBACK, Status, UsageMistake, guarded, say
from planner.cli.plan_file import SCHEMAS
from planner.errors import PlanFileError
from planner.planfile import schemas

PLAN = Path(__file__).parents[3] / "examples" / "rsi_bug" / "plan.yaml"


RUN = """\
import sys
sys.argv = ["planner", *sys.argv[1:]]
from planner.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
HEAVY = {"sqlalchemy", "griffe", "jsonschema", "jinja2", "rich", "ruamel", "prometheus_client"}


def imported_by(*words: str) -> set[str]:
    """Return the names of all modules that a command imports in a process of its own."""
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_no_command_and_no_heavy_dependency() -> None:
    modules = imported_by("--help")
    assert modules & {*HEAVY, "pydantic", "yaml", "planner.engine"} == set()
    commands = {name for name in modules if name.startswith("planner.cli.")}
    assert commands == {"planner.cli.app", "planner.cli.exits"}


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("next", {"planner.lint", "planner.model.baseline", "planner.model.contract"}),
        ("validate", {"planner.engine", "planner.store", "planner.model.actions", "planner.model.outcome"}),
    ],
)
def test_a_frequent_command_imports_only_its_dependencies(command: str, unneeded: set[str]) -> None:
    assert imported_by(command, str(PLAN)) & (HEAVY | unneeded) == set()


def test_importing_the_model_builds_no_validator() -> None:
    """Building a validator takes milliseconds, and most commands need few of about a hundred."""
    code = """\
from pydantic import BaseModel
import planner.model.actions, planner.model.baseline, planner.model.events, planner.model.journal
classes = [BaseModel]
for each in classes:
    classes += each.__subclasses__()
ours = [each for each in classes if each.__module__.startswith("planner.model")]
print(len(ours) > 80, [each.__name__ for each in ours if each.__pydantic_complete__])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "True []\n"


def ended(capsys: pytest.CaptureFixture[str], error: BaseException) -> tuple[object, str]:
    def run() -> None:
        raise error

    with pytest.raises(SystemExit) as raised:
        guarded(run)
    return raised.value.code, capsys.readouterr().err


def test_a_plan_with_many_faults_shows_them_and_where_the_others_are() -> None:
    faults = tuple(f"p.yaml:{number}:1 x: y" for number in range(52))
    assert str(PlanFileError("p.yaml", faults[:50])).count("\n") == 50
    shown = str(PlanFileError("p.yaml", faults))
    assert shown.endswith("\n… and 2 more; planner validate --json lists all")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UsageMistake("no\nsuch\x1b[2J thing"), Status.USAGE, "planner: no such thing\n"),
        (
            PlanFileError("p.yaml", ("p.yaml:1:2 x: y", "p.yaml:3:4 z: w")),
            Status.UNREADABLE,
            "planner: p.yaml: the plan cannot be used (2 faults)\np.yaml:1:2 x: y\np.yaml:3:4 z: w\n",
        ),
        (PlanFileError("p.yaml", ("p.yaml:1:2 x: y",)), Status.UNREADABLE, "planner: p.yaml:1:2 x: y\n"),
        (
            PermissionError(13, "Permission denied", "p.yaml"),
            Status.UNREADABLE,
            "planner: p.yaml: Permission denied; make it usable, or name another file\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "planner: interrupted\n"),
        (SystemExit(11), 11, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_has_one_line_and_an_exit_status(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, said: str
) -> None:
    assert ended(capsys, error) == (status, said)


def test_an_internal_error_is_reported_as_a_bug_with_its_location(capsys: pytest.CaptureFixture[str]):
    status, said = ended(capsys, ZeroDivisionError("oh\nno"))
    assert status == Status.INTERNAL_ERROR
    assert said.count("\n") == 1
    assert "a bug of planner, not a fault of your input: ZeroDivisionError: oh no (test_cli_app.py:" in said


def test_a_full_traceback_is_shown_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 / 0)


def test_a_line_of_output_has_no_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    say("wrote \x1b[31ma\nb")
    assert capsys.readouterr().out == "wrote a b\n"


def test_a_closed_standard_error_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = mock.Mock(encoding="utf-8", write=mock.Mock(side_effect=BrokenPipeError))
    monkeypatch.setattr(sys, "stderr", closed)
    exits.complain("x")
    closed.write.assert_called_once()


def test_help_lists_every_command_and_every_exit_status(command: Command) -> None:
    ran = command("--help")
    assert "Show what comes next" in ran.out
    assert command("--version").out.startswith("planner ")
    for name in ("next", "validate", "status", "explain", "schema"):
        assert f"\n  {name} " in ran.out
        own = command(name, "--help").out
        assert f"Usage: planner {name}" in own
        assert "Exit status" in own
    for status in (*Status, INTERRUPTED):
        assert f" {int(status)}  " in ran.out


def test_an_unknown_command_or_option_is_a_usage_error(command: Command) -> None:
    assert "did you mean 'status'" in command("statsu").err
    assert "the commands are init, new" in command("xyzzy").err
    assert command("--nonsense").status == 2
    assert command().status == 2


def test_every_schema_is_named_and_printed(command: Command) -> None:
    assert set(SCHEMAS) == set(schemas.names())
    definitions: dict[str, Any] = {}
    for name in SCHEMAS:
        ran = command("schema", name)
        document = ran.json

        assert ran.status == 0
        assert "$id" not in document
        assert document["title"]
        definitions |= {json.dumps(each): each for each in document.pop("$defs", {}).values()}
        Draft202012Validator.check_schema(document)
    Draft202012Validator.check_schema({"$defs": definitions})  # once, as most schemas have the same


def test_an_unknown_schema_is_reported(command: Command) -> None:
    ran = command("schema", "basline")
    assert (ran.status, ran.err) == (2, "planner: unknown schema 'basline'; did you mean 'baseline'?\n")
