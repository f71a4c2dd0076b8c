"""The log file: appended to by several processes, killed at any moment, damaged in any way."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.engine import State
from planner.errors import LogError
from planner.model.actions import Notify
from planner.model.events import Event, PlanSubmitted
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Role
from planner.store.chain import GENESIS, LogEntry
from planner.store.lines import encode, parse_event
from planner.store.run_log import RunLog, Step

TICK = parse_event('{"event": "clock_ticked", "at": "2026-01-01T10:00:00Z"}')
PLAN = Plan(todo_list_id="shop", items=(Todo(id="t1", title="One"),))
FIRST = PlanSubmitted(at=TICK.at, plan=PLAN, digest="sha256:1")
STATE = cast(State, None)


def taken(event: Event) -> Step:
    action = Notify(rule="r", because="b", topic="t", to=Role.PLANNER, message="m")
    return Step(event, (action,), None, STATE)


def write(log: RunLog, *events: Event) -> list[LogEntry]:
    """Write events; return what others have written before."""
    with log.hold():
        found = list(log.entries())
        log.append(*map(taken, events))
        return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[RunLog]:
    """A log with three lines."""
    opened = RunLog.append_to(path)
    write(opened, FIRST, TICK, TICK)
    yield opened
    opened.close()


def test_what_was_appended_is_read_in_its_order(log: RunLog, path: Path) -> None:
    reader = RunLog.read(path)

    read = list(reader.entries())

    assert [entry.n for entry in read] == [0, 1, 2]
    assert [entry.event for entry in read] == [FIRST, TICK, TICK]
    assert "".join(f"{entry.text}\n" for entry in read) == path.read_text()
    assert list(reader.entries()) == []
    write(log, TICK)
    assert [entry.n for entry in reader.entries()] == [3]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_many_writers_at_once_lose_nothing_and_fork_nothing(path: Path) -> None:
    write(RunLog.append_to(path), FIRST)

    def writes() -> None:
        mine = RunLog.append_to(path)
        for _ in range(20):
            write(mine, TICK)
        mine.close()

    threads = [threading.Thread(target=writes) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(list(RunLog.read(path).entries())) == 101


@pytest.mark.parametrize("kept", [1, 30, -2])
def test_a_torn_last_line_is_cut_off_with_a_remark(log: RunLog, path: Path, kept: int) -> None:
    whole = path.read_bytes()
    torn = encode(3, TICK, (), GENESIS)[0].encode()[:kept]
    path.write_bytes(whole + torn)
    reader, writer = RunLog.read(path), RunLog.append_to(path)

    assert len(list(reader.entries())) == 3
    assert "line 3 was torn by a kill, and is left out" in reader.remarks[0]
    assert path.read_bytes() == whole + torn, "who reads changes nothing"
    assert [entry.n for entry in write(writer, TICK)] == [0, 1, 2]
    assert "line 3 was torn by a kill, and was cut off" in writer.remarks[0]
    assert len(list(RunLog.read(path).entries())) == 4
    assert [entry.n for entry in write(log, TICK)] == [3]


@pytest.mark.parametrize("content", ["my notes", '{"n":1,', "{'n':0,", '{"event": "run_started"', "\0a"])
def test_a_file_that_is_no_log_is_left_as_it_is(path: Path, content: str) -> None:
    path.write_text(content)

    with pytest.raises(LogError, match="line 0 is not a line of a log; restore"):
        write(RunLog.append_to(path), FIRST)
    assert path.read_text() == content


@pytest.mark.parametrize("left", ["\0\0\0", '{"n":0,"ev\0\0', '{"n":0,"event":{"event":"plan_sub'])
def test_what_a_crash_of_the_machine_leaves_is_torn(path: Path, left: str) -> None:
    path.write_text(left)

    assert write(RunLog.append_to(path), FIRST) == []
    assert [entry.event for entry in RunLog.read(path).entries()] == [FIRST]


def test_a_last_line_that_lacks_only_its_end_was_written(log: RunLog, path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    writer = RunLog.append_to(path)

    assert len(list(RunLog.read(path).entries())) == 3
    assert [entry.n for entry in write(writer, TICK)] == [0, 1, 2]
    assert path.read_bytes().startswith(whole)
    assert writer.remarks == []


def test_a_last_line_with_another_end_is_damage(log: RunLog, path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b" ")

    with pytest.raises(LogError, match="line 2 does not end where it should"):
        list(RunLog.append_to(path).entries())
    assert path.read_bytes() == whole[:-1] + b" "


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_any_change_of_one_byte_of_a_log_is_noticed(log: RunLog, path: Path, at: int, byte: int) -> None:
    raw = bytearray(_content(path))
    if raw[at % len(raw)] == byte:
        return
    raw[at % len(raw)] = byte
    changed = path.with_name("changed.jsonl")
    changed.write_bytes(raw)

    with pytest.raises(LogError):
        list(RunLog.append_to(changed).entries())
    assert changed.read_bytes() == raw, "what is damaged is left as it is"


def _content(path: Path, held: dict[Path, bytes] = {}) -> bytes:  # noqa: B006  # read once a test
    return held.setdefault(path, path.read_bytes())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda lines: [lines[0], lines[2]],
            "line 1 has the number 2: a line was dropped",
        ),
        (lambda lines: lines[1:], "line 0 has the number 1"),
        (
            lambda lines: [lines[0], lines[1].replace("clock_ticked", "run_resumed"), lines[2]],
            "was changed",
        ),
        (lambda lines: [lines[0], "", *lines[1:]], "line 1 cannot be read"),
        (lambda lines: [lines[0], "\x00\x00", *lines[1:]], "line 1 cannot be read"),
        (lambda lines: [lines[0], "é", *lines[1:]], "line 1 cannot be read: byte 0 is not ASCII"),
        (lambda lines: [lines[0] + "\r", *lines[1:]], "line 0"),
        (lambda lines: [*lines, encode(3, FIRST, (), _digest(lines[2]))[0]], "line 3 has plan_submitted"),
        (lambda _: [encode(0, TICK, (), GENESIS)[0]], "line 0 has clock_ticked"),
        (lambda _: ['{"n": 0}'], "line 0 was changed"),
    ],
)
def test_any_other_damage_is_refused_with_its_line(log: RunLog, path: Path, damage: Any, said: str) -> None:
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in damage(lines)))
    reader = RunLog.read(path)

    with pytest.raises(LogError) as refused:
        list(reader.entries())
    told = str(refused.value)
    assert said in told
    assert "restore the log from a copy" in told
    assert (f"planner replay {path} --until {reader.count - 1} shows" in told) == (reader.count > 0)
    assert "\n" not in told


def _digest(line: str) -> str:
    return line.rpartition('"digest":"')[2].removesuffix('"}')


def test_a_full_disk_takes_no_event_in_and_the_log_can_go_on(
    log: RunLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    written = os.pwrite

    def half(handle: int, data: bytes, at: int) -> int:
        if len(data) < 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(handle, data[: len(data) // 2], at)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(LogError) as refused:
        write(log, TICK)
    monkeypatch.undo()

    told = (
        f"{path}: the event cannot be written (No space left on device) and was not recorded; free space, "
    )
    assert str(refused.value).startswith(told)
    assert path.read_bytes() == before
    assert write(log, TICK) == []
    assert len(list(RunLog.read(path).entries())) == 4


def test_an_interrupt_while_a_line_is_written_takes_it_back(
    log: RunLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(log, TICK)
    os.truncate(path, len(before))  # which could not be synchronised either

    assert write(log, TICK) == []
    assert len(list(RunLog.read(path).entries())) == 4


@pytest.mark.parametrize("how", ["removed", "replaced", "shortened"])
def test_nothing_is_written_into_a_log_that_was_taken_away(log: RunLog, path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "shortened":
        os.truncate(path, 10)
    else:
        path.unlink()
    if how == "replaced":
        path.write_bytes(content)

    with pytest.raises(LogError, match=r"lost lines|removed or replaced"):
        write(log, TICK)


def test_a_line_without_end_is_not_read_to_it(
    log: RunLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunLog, "longest_line", 1000)
    with path.open("ab") as file:
        file.write(b"a" * 2000)

    with pytest.raises(LogError, match="line 3 is longer than any line of a log"):
        write(log)


def test_what_no_log_can_be_is_refused_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for place, said in (
        ("", "cannot be opened"),
        ("pipe", "not a regular file"),
        ("link", "Too many levels of symbolic links"),
        ("no/such/folder", "No such file or directory"),
        ("a\0b", "null byte"),
    ):
        with pytest.raises(LogError, match=said) as refused:
            RunLog.append_to(tmp_path / place)
        assert str(refused.value).endswith("name another file with --log")
    with pytest.raises(LogError, match=r"cannot be opened .*; name the log of a run"):
        RunLog.read(tmp_path / "none")
