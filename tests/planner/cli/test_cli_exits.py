"""However a command ends, the user sees one line and an exit status, and never a traceback."""

from __future__ import annotations

import io
import sys

import pytest
from planner_command import Command

from planner.cli import exits
from planner.cli.exits import INTERRUPTED, TRACEBACK, Status, UsageMistake, guarded
from planner.errors import PlanFileError


def ended(capsys: pytest.CaptureFixture[str], error: BaseException) -> tuple[object, str]:
    def run() -> None:
        raise error

    with pytest.raises(SystemExit) as raised:
        guarded(run)
    return raised.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UsageMistake("no\nsuch\x1b[2J thing"), Status.USAGE, "planner: no such thing\n"),
        (
            PlanFileError("p.yaml", ("p.yaml:1:2 x: y", "p.yaml:3:4 z: w")),
            Status.UNREADABLE,
            "planner: p.yaml: the plan cannot be used (2 faults)\np.yaml:1:2 x: y\np.yaml:3:4 z: w\n",
        ),
        (
            PlanFileError("p.yaml", ("p.yaml:1:2 x: y",)),
            Status.UNREADABLE,
            "planner: p.yaml:1:2 x: y\n",
        ),
        (
            PermissionError(13, "Permission denied", "p.yaml"),
            Status.UNREADABLE,
            "planner: p.yaml: Permission denied; name a usable file\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "planner: interrupted\n"),
        (SystemExit(11), 11, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_is_one_line_and_a_status(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, said: str
) -> None:
    assert ended(capsys, error) == (status, said)


def test_a_fault_of_the_program_is_called_one_and_tells_where(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = ended(capsys, ZeroDivisionError("oh\nno"))

    assert status == Status.INTERNAL_ERROR
    assert said.count("\n") == 1
    assert (
        "a bug of planner, not a fault of your input: ZeroDivisionError: oh no (test_cli_exits.py:" in said
    )


def test_the_whole_of_a_fault_is_shown_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACEBACK, "1")

    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 / 0)


def test_standard_error_that_nobody_reads_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        asked = 0

        def write(self, text: str) -> int:
            self.asked += 1
            raise BrokenPipeError

    closed = Closed()
    monkeypatch.setattr(sys, "stderr", closed)

    exits.complain("x")

    assert closed.asked == 1


def test_help_lists_every_command_and_every_exit_status(command: Command) -> None:
    ran = command("--help")
    version = command("--version")

    assert (ran.status, version.status) == (0, 0)
    assert version.out.startswith("planner ")
    for name in ("next", "validate", "status", "explain", "schema", "contract"):
        assert f"\n  {name} " in ran.out
    for status in (*Status, INTERRUPTED):
        assert f" {int(status)}  " in ran.out


@pytest.mark.parametrize("name", ["next", "validate", "status", "explain", "schema"])
def test_every_command_tells_its_exit_statuses(command: Command, name: str) -> None:
    ran = command(name, "--help")

    assert ran.status == 0
    assert "Exit status" in ran.out
    assert f"Usage: planner {name}" in ran.out


def test_an_unknown_command_or_option_is_wrong_usage(command: Command) -> None:
    assert "did you mean 'status'" in command("statsu").err
    assert "the commands are init, new" in command("xyzzy").err
    assert command("--nonsense").status == 2
    assert command().status == 2
