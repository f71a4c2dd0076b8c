"""The log of a run: its lines, their digest chain, writing and reading."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from planner_command import failed

from planner.engine import State
from planner.errors import LogError
from planner.model import events
from planner.model.actions import Brief, Implement, Notify
from planner.model.base import Value
from planner.model.events import Event, PlanSubmitted
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Role
from planner.store.chain import GENESIS, LogEntry, chained, check_link
from planner.store.run_log import (
    RunLog,
    Step,
    action_text,
    body,
    event_text,
    is_superseded,
    logged_actions,
    parse_event,
    parse_line,
)

TICK = parse_event('{"event": "clock_ticked", "at": "2026-01-01T10:00:00Z"}')
PLAN = Plan(todo_list_id="shop", items=(Todo(id="t1", title="One"),))
FIRST = PlanSubmitted(at=TICK.at, plan=PLAN, digest="sha256:1")
STATE = cast(State, None)


def taken(event: Event) -> Step:
    action = Notify(rule="r", because="b", topic="t", to=Role.PLANNER)
    return Step(event, (action,), None, STATE)


def write(log: RunLog, *events: Event) -> list[LogEntry]:
    """Append events, and return the entries that other writers added before."""
    with log.hold():
        found = list(log.entries())
        log.append(*map(taken, events))
        return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[RunLog]:
    """Yield a log with three lines."""
    opened = RunLog.append_to(path)
    write(opened, FIRST, TICK, TICK)
    yield opened
    opened.close()


def test_appended_events_are_read_in_order(log: RunLog, path: Path) -> None:
    reader = RunLog.read(path)
    read = list(reader.entries())
    assert [entry.n for entry in read] == [0, 1, 2]
    assert [entry.event for entry in read] == [FIRST, TICK, TICK]
    assert "".join(f"{entry.text}\n" for entry in read) == path.read_text()
    assert list(reader.entries()) == []
    write(log, TICK)
    assert [entry.n for entry in reader.entries()] == [3]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_concurrent_writers_neither_lose_nor_fork_entries(path: Path) -> None:
    write(RunLog.append_to(path), FIRST)

    def writes(_: int) -> None:
        mine = RunLog.append_to(path)
        for _ in range(20):
            write(mine, TICK)
        mine.close()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(writes, range(5)))
    assert len(list(RunLog.read(path).entries())) == 101


@pytest.mark.parametrize("kept", [1, 30, -2])
def test_a_torn_last_line_is_cut_off_with_a_remark(log: RunLog, path: Path, kept: int) -> None:
    whole = path.read_bytes()
    torn = chained(body(3, TICK, ()), GENESIS)[0].encode()[:kept]
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
def test_a_file_that_is_not_a_log_is_left_unchanged(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(LogError, match="line 0 is not a line of a log; restore"):
        write(RunLog.append_to(path), FIRST)
    assert path.read_text() == content


@pytest.mark.parametrize("left", ["\0\0\0", '{"n":0,"ev\0\0', '{"n":0,"event":{"event":"plan_sub'])
def test_remains_of_a_system_crash_are_treated_as_a_torn_line(path: Path, left: str) -> None:
    path.write_text(left)
    assert write(RunLog.append_to(path), FIRST) == []
    assert [entry.event for entry in RunLog.read(path).entries()] == [FIRST]


def test_a_last_line_that_lacks_only_its_newline_is_complete(log: RunLog, path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    writer = RunLog.append_to(path)
    assert len(list(RunLog.read(path).entries())) == 3
    assert [entry.n for entry in write(writer, TICK)] == [0, 1, 2]
    assert path.read_bytes().startswith(whole)
    assert writer.remarks == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_any_changed_byte_of_a_log_is_detected(log: RunLog, path: Path, at: int, byte: int) -> None:
    raw = bytearray(path.read_bytes())
    assume(raw[at % len(raw)] != byte)
    raw[at % len(raw)] = byte
    changed = path.with_name("changed.jsonl")
    changed.write_bytes(raw)
    with pytest.raises(LogError):
        list(RunLog.append_to(changed).entries())
    assert changed.read_bytes() == raw, "what is damaged is left as it is"


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda lines: [lines[0], lines[2]], "line 1 is not that of a log: lines were dropped"),
        (lambda lines: [lines[0], lines[1].replace("ticked", "tucked"), lines[2]], "line 1 was changed"),
        (lambda lines: [lines[0], "é", *lines[1:]], "line 1 cannot be read: byte 0 is not ASCII"),
        (lambda lines: [lines[0] + "\r", *lines[1:]], "line 0"),
        (
            lambda lines: [*lines, chained(body(3, FIRST, ()), _digest(lines[2]))[0]],
            "line 3 has plan_submitted",
        ),
        (lambda _: [chained(body(0, TICK, ()), GENESIS)[0]], "line 0 has clock_ticked"),
    ],
    ids=["dropped", "changed", "no ASCII", "CRLF", "two plans", "no plan"],
)
def test_other_damage_is_refused_with_its_line_number(log: RunLog, path: Path, damage: Any, problem: str):
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in damage(lines)))
    reader = RunLog.read(path)
    with pytest.raises(LogError) as refused:
        list(reader.entries())
    message = str(refused.value)
    assert problem in message
    assert "restore the log from a copy" in message
    assert "\n" not in message


def _digest(line: str) -> str:
    return line.rpartition('"digest":"')[2].removesuffix('"}')


def test_a_full_disk_rejects_the_event_and_leaves_the_log_usable(
    log: RunLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    write_some = os.write

    def half(handle: int, data: bytes) -> int:
        if len(data) < 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_some(handle, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(LogError) as refused:
        write(log, TICK)
    monkeypatch.undo()

    assert "cannot be written (No space left on device) and was not recorded; free" in str(refused.value)
    assert path.read_bytes() == before
    assert write(log, TICK) == []
    assert len(list(RunLog.read(path).entries())) == 4


def test_an_interrupted_write_is_rolled_back(log: RunLog, path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(log, TICK)
    os.truncate(path, len(before))  # the truncation could not be synchronised either

    assert write(log, TICK) == []
    assert len(list(RunLog.read(path).entries())) == 4


@pytest.mark.parametrize("how", ["removed", "replaced", "shortened"])
def test_a_removed_replaced_or_shortened_log_is_not_written_to(log: RunLog, path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "shortened":
        os.truncate(path, 10)
    else:
        path.unlink()
    if how == "replaced":
        path.write_bytes(content)
    with pytest.raises(LogError, match="removed, replaced or shortened"):
        write(log, TICK)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "cannot be opened"),
        ("pipe", "not a regular file"),
        ("link", "Too many levels of symbolic links"),
        ("no/such/folder", "No such file or directory"),
        ("a\0b", "embedded null"),
    ],
)
def test_an_unusable_log_path_is_refused_in_one_line(tmp_path: Path, name: str, problem: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogError, match=rf"{problem}.*; name another file$"):
        RunLog.append_to(tmp_path / name)


@pytest.mark.parametrize("actions", ["", ',"actions":3', ',"actions":[NaN]'])
def test_a_line_without_actions_is_refused(actions: str) -> None:
    with pytest.raises(LogError, match="a line has no actions"):
        logged_actions(f'{{"n":0{actions}}}')


OUTCOME = failed("t1", stack_trace_head="assert 'ü' == 'u'", confidence=0.97, runner_up=None)
ACTION = Implement(
    seq=1, rule="ready-todo", because="it is ready", todo_id="t1", role=Role.CODER, attempt=1,
    facts={"files": ("ä.py",), "share": 0.5, "none": None}, brief=Brief(title="Prices ☃"),
)  # fmt: skip


def test_omitted_optional_fields_are_read_as_none() -> None:
    """Nulls are not written, so an absent optional field must be read as None."""
    for model in below(Value):
        if model.model_config.get("extra") == "ignore":
            for name, field in model.model_fields.items():
                if type(None) in get_args(field.annotation):
                    assert field.is_required() or field.default is None, f"{model.__name__}.{name}"


def below(model: type[Value]) -> Iterator[type[Value]]:
    """Yield all subclasses of a model."""
    for each in model.__subclasses__():
        yield each
        yield from below(each)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LOOSE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    at=st.datetimes(timezones=st.just(UTC)), text=TEXTS, loose=LOOSE, numbers=st.lists(FLOATS, max_size=3)
)
def test_any_event_contents_survive_encoding_and_decoding(
    at: datetime, text: str, loose: Any, numbers: list[float]
) -> None:
    todo = Todo(id="t", title="T", intent=text, extensions={"x-any": loose})
    submitted = events.PlanSubmitted(at=at, plan=Plan(todo_list_id="p", items=(todo,)), digest=text)
    outcome = {**OUTCOME, "recorded": {text: [*numbers, 1e300, "x-1"]}, "title": text}
    verified = events.Verified.model_validate({"at": at, "outcome": outcome})
    for event in (submitted, verified):
        line, _ = chained(body(3, event, (ACTION,)), "p")
        check_link(line, 3, "p")
        read = parse_line(line, 3)
        assert read == event
        assert event_text(read) == event_text(event)
        assert line.isascii()
        assert chained(body(3, read, (ACTION,)), "p")[0] == line
        assert logged_actions(line) == [action_text(ACTION)]


def test_a_log_is_superseded_by_the_next_log_of_its_plan(tmp_path: Path) -> None:
    first, second = tmp_path / "api.jsonl", tmp_path / "api.2.jsonl"
    first.touch()
    assert not is_superseded(first)

    second.touch()
    assert is_superseded(first)
    assert not is_superseded(second)

    dotted = tmp_path / "release-1.2.jsonl"
    dotted.with_name("release-1.3.jsonl").touch()
    assert not is_superseded(dotted)
    dotted.with_name("release-1.2.2.jsonl").touch()
    assert is_superseded(dotted)
