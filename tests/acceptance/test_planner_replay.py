"""`planner replay`: identical decisions, byte for byte; detection of changed logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from real_planner import planner
from stepping import FAILED, PASSED, event, shop, told

from planner.store.chain import GENESIS, chained

SAME = "7 events, 6 actions: the same, byte for byte\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run whose log has seven events."""
    folder = tmp_path_factory.mktemp("recorded")
    shop(folder, {"id": "t1", "title": "Prices"}, {"id": "t2", "dependencies": ["t1"]})
    events = [
        event("run_started"),
        event("work_finished", 1, todo_id="t1", tokens=1200),
        event("verified", 2, outcome={"todo_id": "t1", **FAILED}),
        event("work_finished", 3, todo_id="t1_branch_01", new_files=["a.py"]),
        event("budget_spent", 3, tokens=5),
        event("verified", 4, outcome={"todo_id": "t1_branch_01", **PASSED}),
    ]
    told(folder, events)
    return folder


@pytest.fixture
def log(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the log, in an otherwise empty folder."""
    copy = tmp_path / "run.jsonl"
    copy.write_bytes((recorded / "run.jsonl").read_bytes())
    return copy


def forge(log: Path, change: Callable[[int, str], str]) -> None:
    """Change lines of the log, and compute the chain of digests again."""
    digest, lines = GENESIS, list[str]()
    for n, line in enumerate(log.read_text().splitlines()):
        body = change(n, line.rpartition(',"digest":"')[0])
        text, digest = chained(body, digest)
        lines.append(f"{text}\n")
    log.write_text("".join(lines))


def replaced(at: int, old: str, new: str) -> Callable[[int, str], str]:
    def change(n: int, body: str) -> str:
        assert n != at or old in body, body
        return body.replace(old, new, 1) if n == at else body

    return change


def without_actions(at: int) -> Callable[[int, str], str]:
    return lambda n, body: body if n != at else body[: body.index('"actions":[')] + '"actions":[]'


def test_replay_needs_only_the_log_and_ignores_a_torn_last_line_with_a_note(log: Path) -> None:
    whole = planner("replay", "run.jsonl", cwd=log.parent)
    with log.open("a") as file:
        file.write('{"n":7,"ev')
    torn = planner("replay", "run.jsonl", cwd=log.parent)

    assert (whole.status, whole.out, whole.err) == (0, SAME, "")
    assert (torn.status, torn.out) == (0, SAME)
    assert "line 7 was torn by a kill, and is left out" in torn.err


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (replaced(2, '"todo_id":"t1"', '"todo_id":"t2"'), 2, "refused"),
        (replaced(3, '"success":false', '"success":true'), 3, "publish_plan"),
        (replaced(6, '"success":true', '"success":false'), 6, "now"),
        (replaced(0, '"auto_fix_mode":true', '"auto_fix_mode":false'), 3, "publish_plan"),
        (without_actions(6), 6, "no such action"),
    ],
    ids=["refused", "another result", "other actions now", "another plan", "without its actions"],
)
def test_an_edited_event_in_a_rebuilt_chain_gives_different_decisions(
    log: Path, change: Callable[[int, str], str], line: int, said: str
) -> None:
    forge(log, change)

    ran = planner("replay", "run.jsonl", cwd=log.parent)

    assert ran.status == 1
    assert ran.out.startswith(f"line {line} (")
    assert "different decisions" in ran.out
    assert said in ran.out


def test_an_event_edited_without_rebuilding_the_chain_is_damage(log: Path) -> None:
    log.write_text(log.read_text().replace('"tokens":1200', '"tokens":1201'))

    ran = planner("replay", "run.jsonl", cwd=log.parent)

    assert ran.status == 4
    assert ran.err == (
        "planner: run.jsonl: line 2 was changed, or the line before it: its digest does not fit; restore "
        "the log from a copy, or name another file\n"
    )
    assert "run started" in planner("explain", "run.jsonl", cwd=log.parent).out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "log: the log cannot be opened (No such file or directory); name another file"),
        (b"", "log: the log is empty; name a log that planner step has written"),
        (b'{"n":0,"ev', "line 0 was torn by a kill"),
    ],
)
def test_a_log_that_cannot_be_replayed_is_refused_with_a_reason(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "log").write_bytes(content)

    ran = planner("replay", "log", cwd=tmp_path)

    assert (ran.status, ran.out) == (4, "")
    assert said in ran.err
