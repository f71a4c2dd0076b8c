"""The loop of ``planverify run``: its records, agent commands, concurrent turns."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shlex
import shutil
import sys
import tarfile
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from engine_telling import Told, todo
from text_bundles import write_files

from planner.cli.exits import UsageMistake
from planner.errors import PlannerError
from planner.model.actions import Verify
from planner.model.events import RunResumed, RunStarted
from planner.model.outcome import Outcome
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import TodoState
from planner.planfile.loader import load_plan
from planner.store.run_log import plan_logs
from planner.store.session import RunSession, RunSettings
from pytest_planverify.baseline.repository import git
from pytest_planverify.checks.processes import start_time
from pytest_planverify.harness import turns
from pytest_planverify.harness.agents import Turn, TurnReport, parse_agents, run_turn
from pytest_planverify.harness.command import _register_driver
from pytest_planverify.harness.progress import RunProgress
from pytest_planverify.harness.snapshots import FileChanges, Records, Snapshots
from pytest_planverify.harness.turns import SentTurn, TurnPool
from pytest_planverify.harness.undo import DRIVER, refuse_while_running, restore_snapshot


class Kept(NamedTuple):
    root: Path
    run: Path
    session: RunSession
    records: Records
    snapshots: Snapshots

    @property
    def log(self) -> Path:
        return self.session.log


@pytest.fixture
def kept(tmp_path: Path) -> Generator[Kept]:
    plan = tmp_path / "plan.yaml"
    plan.write_text("todo_list_id: shop\nitems: [{id: a, title: A, verify: pytest tests/test_a.py}]\n")
    home, run = tmp_path / ".planverify", tmp_path / ".planverify/harness/shop"
    (home / "logs").mkdir(parents=True)
    run.mkdir(parents=True)
    (run / "plan.yaml").write_text("the plan")
    snapshots = Snapshots(tmp_path, "shop")
    snapshots.take("before")
    with RunSession.open(RunSettings(plan=plan, log=home / "logs/shop.jsonl")) as session:
        session.tell(RunStarted(at=datetime(2026, 1, 1, tzinfo=UTC)))
        records = Records(tmp_path, run, session)
        records.note()
        records.keep_copy()
        yield Kept(tmp_path, run, session, records, snapshots)
        records.close()


@pytest.mark.parametrize("name", ["plan.yaml", "phases/a.yaml", "turn.json"])
def test_only_plan_and_results_of_the_run_are_restored(kept: Kept, name: str):
    path = kept.run / name
    before = path.read_text() if path.exists() else None
    write_files(kept.run, {name: "forged", "turns/0001/output.txt": "an agent at work"})
    assert kept.records.put_back() == ([f".planverify/harness/shop/{name}"], False)
    assert (path.read_text() if path.exists() else None) == before


@pytest.mark.parametrize(
    ("record", "place"),
    [("harness/shop/plan.yaml",) * 2, ("logs/shop.jsonl",) * 2, ("harness/shop/plan.yaml", "harness")],
)
def test_record_is_restored_where_a_folder_or_file_has_taken_its_place(kept: Kept, record: str, place: str):
    home = kept.root / ".planverify"
    content = (home / record).read_bytes()
    if (home / place).is_dir():
        shutil.rmtree(home / place)
        (home / place).write_text("forged")
    else:
        (home / place).unlink()
        (home / place / "folder").mkdir(parents=True)

    kept.records.put_back()

    assert (home / record).read_bytes() == content


@pytest.mark.parametrize("how", ["emptied", "edited", "removed", "replaced"])
def test_log_is_restored_and_continued(kept: Kept, how: str):
    content = kept.log.read_bytes()
    edited = content.replace(b"run_started", b"run_stopped")
    if how in ("removed", "replaced"):
        kept.log.unlink()
    if how != "removed":
        kept.log.write_bytes({"emptied": b"", "edited": edited, "replaced": content[:-20]}[how])
    assert kept.records.put_back() == ([".planverify/logs/shop.jsonl"], False)
    assert kept.log.read_bytes() == content
    kept.session.tell(RunResumed(at=datetime(2026, 1, 2, tzinfo=UTC)))
    assert kept.log.read_bytes().startswith(content)
    assert len(kept.log.read_bytes()) > len(content)


def test_logs_of_earlier_runs_are_restored(kept: Kept):
    later = kept.log.with_name("shop.2.jsonl")
    with RunSession.open(RunSettings(plan=kept.root / "plan.yaml", log=later)) as session:
        session.tell(RunStarted(at=datetime(2026, 1, 2, tzinfo=UTC)))
        records = Records(kept.root, kept.run, session, (kept.log,))
        records.note()
        shutil.rmtree(kept.log.parent)
        records.put_back()
        records.close()

    assert plan_logs(load_plan(kept.root / "plan.yaml")) == [kept.log, later]
    assert kept.log.stat().st_size


def test_answers_are_restored_only_while_an_agent_works_also_beside_writes_of_the_run(kept: Kept):
    kept.session.tell(RunResumed(at=datetime(2026, 1, 2, tzinfo=UTC)))
    write_files(kept.root, {".planverify/answers.json": "{}"})
    write_files(kept.run, {"plan.yaml": "the next version"})
    kept.records.note(own=True)
    assert kept.records.put_back(by_people=False) == ([], False)
    assert kept.records.put_back() == ([".planverify/answers.json"], False)


@pytest.mark.parametrize(
    ("name", "is_moved"),
    [
        (".planverify", False),
        (".planverify/harness/objects.git/objects", False),
        (".planverify", True),
        (".planverify/harness", True),
    ],
)
def test_tree_cleaned_or_moved_behind_a_link_is_not_forgery_and_can_be_restored(
    kept: Kept, name: str, is_moved: bool
):
    before = kept.snapshots.take("turn")
    kept.records.keep_copy()
    log = kept.log.read_bytes()
    if is_moved:
        (kept.root / name).rename(kept.root / "moved")
        (kept.root / name).symlink_to(kept.root / "moved", target_is_directory=True)
    else:
        shutil.rmtree(kept.root / name)
    (kept.root / "plan.yaml").unlink()

    assert kept.records.put_back() == ([], True)

    assert not (kept.root / name).is_symlink()
    kept.snapshots.restore(before)
    assert (kept.root / "plan.yaml").exists()
    assert (kept.log.read_bytes(), (kept.run / "plan.yaml").read_text()) == (log, "the plan")


@pytest.mark.parametrize("forged", ["HEAD", "config", "index", "objects", "refs/planverify/shop"])
def test_damaged_store_of_snapshots_is_restored_after_a_turn(kept: Kept, forged: str):
    before = kept.snapshots.take("turn")
    kept.records.keep_copy()
    store, (path, *_) = kept.snapshots.store, kept.snapshots.store.glob("objects/??/*")
    path.unlink()
    if (store / forged).is_dir():
        shutil.rmtree(store / forged)
    (store / forged).write_text("forged")
    (kept.root / "plan.yaml").unlink()

    kept.records.put_back()
    kept.records.restore_store()

    kept.snapshots.restore(before)
    assert (kept.root / "plan.yaml").exists()
    git(store, "fsck", "--full")


def test_a_lock_that_a_killed_run_left_does_not_prevent_an_undo(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pytest_planverify.harness.snapshots.LOCK_SECONDS", 0.0)
    before = kept.snapshots.take("before-run")
    (kept.root / "new.txt").write_text("1")
    (kept.snapshots.store / "index.lock").touch()
    restore_snapshot(kept.root / "plan.yaml", before)
    assert not (kept.root / "new.txt").exists()


def test_new_gitignore_that_ignores_itself_hides_no_file_beside_known_ones(tmp_path: Path) -> None:
    write_files(tmp_path, {"shop/old.txt": "1"})
    snapshots = Snapshots(tmp_path, "shop")
    before = snapshots.take("before")
    for folder in ("shop", "cache"):
        write_files(tmp_path / folder, {".gitignore": "*\n", "new.txt": "1"})

    changes = snapshots.compare(before, snapshots.take("after", since=before))
    snapshots.restore(before)

    assert changes.changed == ("shop/.gitignore", "shop/new.txt")
    assert not (tmp_path / "shop/new.txt").exists()
    assert (tmp_path / "cache/new.txt").exists()


def test_files_that_are_tracked_although_ignored_are_kept_and_restored(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    write_files(tmp_path, dict.fromkeys(("kept.log", "other.log", "__pycache__/a.pyc"), "1"))
    write_files(tmp_path, {".gitignore": "*.log\n__pycache__\n"})
    git(tmp_path, "add", "--force", "kept.log", "__pycache__")
    snapshots = Snapshots(tmp_path, "shop")
    snapshots.include_tracked()
    before = snapshots.take("before")
    git(tmp_path, "add", "--force", "other.log")
    git(tmp_path, "rm", "--quiet", "--cached", "kept.log")
    (tmp_path / "kept.log").unlink()

    assert snapshots.compare(before, snapshots.take("after", since=before)).changed == ("kept.log",)
    snapshots.restore(before)
    assert [(tmp_path / name).read_text() for name in ("kept.log", "other.log")] == ["1", "1"]


@pytest.mark.parametrize("rules", ["*\n", "", None])
def test_edited_gitignore_neither_hides_new_files_nor_gives_up_ignored_ones(
    tmp_path: Path, rules: str | None
) -> None:
    ignoring, ignored = (".gitignore", "folder/.gitignore"), ("a.env", "folder/b.env")
    write_files(tmp_path, dict.fromkeys(ignoring, "*.env\n") | dict.fromkeys(ignored, "of the user"))
    snapshots = Snapshots(tmp_path, "shop")
    before = snapshots.take("before")
    for name in ignoring:
        (tmp_path / name).unlink() if rules is None else (tmp_path / name).write_text(rules)
    (tmp_path / "folder/new.txt").write_text("1")

    changes = snapshots.compare(before, snapshots.take("after", since=before))
    assert changes.changed == (*ignoring, "folder/new.txt")
    assert rules is None or (tmp_path / "folder/.gitignore").read_text() == rules

    snapshots.restore(before)
    assert not (tmp_path / "folder/new.txt").exists()
    assert (tmp_path / "folder/.gitignore").read_text() == "*.env\n"
    assert [(tmp_path / name).read_text() for name in ignored] == ["of the user"] * 2


@pytest.mark.parametrize("content", [b"a\r\nb\n", b"SECRET\nb\n", "$Id$ ä\n".encode()])
def test_snapshots_keep_every_byte_whatever_the_attributes_of_the_project_say(
    tmp_path: Path, content: bytes
):
    (tmp_path / ".gitattributes").write_text("* text=auto eol=crlf ident filter=strip\n")
    (tmp_path / "a.txt").write_bytes(content)
    snapshots = Snapshots(tmp_path, "shop")
    before = snapshots.take("before")
    (tmp_path / "a.txt").unlink()
    snapshots.restore(before)
    assert (tmp_path / "a.txt").read_bytes() == content


def test_links_out_of_the_root_in_place_of_files_and_folders_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_files(root, dict.fromkeys(("folder/file", "file", "inside"), ""))
    (root / "old").symlink_to("../outside")
    snapshots = Snapshots(root, "shop")
    before = snapshots.take("before")
    (root / "folder/file").unlink()
    (root / "folder").rmdir()
    (root / "folder").symlink_to("../outside")
    for name, target in (("file", "/usr/lib"), ("inside", root / "old"), ("old", "../other")):
        (root / name).unlink()
        (root / name).symlink_to(target)
    (root / "python").symlink_to("/usr/bin/python3")

    assert snapshots.compare(before, snapshots.take("after")).escaping == ("file", "folder")


def test_files_of_nested_repositories_are_kept_and_restored(tmp_path: Path):
    for folder in ("with_commit", "empty", "with_commit/inner"):
        git(tmp_path, "init", "--quiet", folder)
        (tmp_path / folder / "a.txt").write_text("1")
    author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    git(tmp_path / "with_commit", "add", "a.txt")
    git(tmp_path / "with_commit", *author, "commit", "--quiet", "-m", "a")
    snapshots = Snapshots(tmp_path, "shop")
    before = snapshots.take("before")
    (tmp_path / "with_commit/a.txt").write_text("2")
    (tmp_path / "with_commit/inner/a.txt").unlink()
    git(tmp_path, "init", "--quiet", "later")
    (tmp_path / "later/a.txt").write_text("1")

    changes = snapshots.compare(before, snapshots.take("after"))
    snapshots.restore(before)

    assert changes.changed == ("later/a.txt", "with_commit/a.txt", "with_commit/inner/a.txt")
    assert (tmp_path / "with_commit/a.txt").read_text() == "1"
    assert (tmp_path / "with_commit/inner/a.txt").read_text() == "1"
    assert not (tmp_path / "later/a.txt").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[tool]\nplanverify = "x"\n', "is not a table"),
        ("[tool.planverify]\nagents = 3\n", "neither a text nor a list of texts"),
        ("[tool.planverify.agents]\ncoder = 3\n", "coder is neither a text"),
        ('[tool.planverify.agents]\nchief = "x"\n', "unknown role 'chief'"),
        ('[tool.planverify.agents]\ncoder = ["builtin"]\n', "builtin is only for the role debugger"),
    ],
)
def test_invalid_agents_configuration_is_refused_with_its_location(
    text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(PlannerError, match=problem) as caught:
        parse_agents((), tmp_path)
    assert "[tool.planverify" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_misspelt_role_of_an_agent_is_no_missing_program(tmp_path: Path) -> None:
    with pytest.raises(PlannerError, match=r"'codr' is no role, .*; the roles are .*coder"):
        parse_agents(["codr=cat {brief}"], tmp_path)


def test_command_line_overrides_the_agents_of_the_file_and_keeps_other_braces(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.planverify.agents]\ncoder = "echo"\ntester = ["sh", "x"]\n'
    )
    agents = parse_agents(("coder=cat '{\"x\": 1}' {} {breif} {brief}",), tmp_path)
    assert agents.vector(Role.CODER) == ("cat", '{"x": 1}', "{}", "{breif}", "{brief}")
    assert agents.vector(Role.TESTER)[:2] == ("sh", "x")


def reported_by(folder: Path, program: str, placeholder: str, prompt: str = "") -> TurnReport:
    """Return the report on a turn of an agent that runs a program with one argument."""
    action = cast("Any", SimpleNamespace(todo_id="a"))
    turn = Turn(id="1", action=action, role=Role.CODER, folder=folder, root=folder, timeout_seconds=60)
    agents = parse_agents((f"{sys.executable} -c {shlex.quote(program)} {placeholder}",), folder)
    return run_turn(agents, turn, prompt=prompt)


def test_a_prompt_too_long_for_the_system_is_an_error_and_an_invalid_report_counts_as_none(
    tmp_path: Path,
) -> None:
    with pytest.raises(PlannerError, match=r"cannot be started \(Argument list too long\); fix --agent"):
        reported_by(tmp_path, "pass", "{prompt}", "x" * 200_000)
    write = """import sys; open(sys.argv[1], "w").write('{"tokens": 900, "notes": ["a"]}')"""
    report = reported_by(tmp_path, write, "{result}")
    assert (report.ended_well, report.tokens, report.message) == (True, None, None)


def test_turn_carries_small_ignored_files_but_no_link_to_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MOST_CARRIED", 10)
    write_files(tmp_path, dict.fromkeys((".git", "module/.git"), "gitdir: x"))
    write_files(tmp_path, {"data.bin": "x" * 11, "module/ignored.env": "x" * 10})
    with tarfile.open(fileobj=io.BytesIO(turns._archive(tmp_path, frozenset()))) as archive:
        assert archive.getnames() == ["module/ignored.env"]


@pytest.mark.parametrize(("state", "glyph"), [("done", "✓"), ("testing", "?"), ("test_failed", "✗")])
def test_progress_marks_as_failed_only_what_failed(state: str, glyph: str) -> None:
    stream, is_done = io.TextIOWrapper(io.BytesIO(), "utf-8"), state == "done"
    outcome = Outcome(todo_id="a", state=TodoState(state), success=is_done, tests_passed=is_done)
    RunProgress(stream, {}).verified(outcome)
    stream.seek(0)
    assert stream.read().split() == [glyph, "a", state]


def test_progress_shows_each_wait_once_and_what_an_agent_says_that_changed_nothing() -> None:
    turn = cast("Any", SimpleNamespace(id="1", action=SimpleNamespace(todo_id="a")))
    report, progress = TurnReport(ended_well=True, message="The test\ncontradicts the goal."), io.StringIO()
    for changes in (FileChanges(), FileChanges(changed=("a.py",))):
        RunProgress(progress, {}).turn_finished(turn, report, changes, None)
    first, second = (Verify(seq=seq, rule="r", because="no database", todo_ids=("a",)) for seq in (1, 2))
    shown = RunProgress(progress, {})
    for seconds, action in ((30, first), (25, first), (60, second)):
        shown.waiting(seconds, action)
    assert progress.getvalue().splitlines() == [
        "  a: changed nothing, 0.0 s, The test contradicts the goal.",
        "  a: changed 1 file, 0.0 s",
        "  waiting 30 s: no database",
        "  waiting 60 s: no database",
    ]


def sent(todo_id: str) -> SentTurn:
    turn = SimpleNamespace(action=SimpleNamespace(todo_id=todo_id))
    return SentTurn(cast("Any", SimpleNamespace(turn=turn)))


def test_dropped_turn_ends_and_a_waiting_one_never_starts(monkeypatch: pytest.MonkeyPatch):
    begun, written = threading.Event(), list[str]()

    def perform(job: Any, watch: Any) -> None:
        begun.set()
        try:
            while True:
                watch()
        finally:
            written.append(job.turn.action.todo_id)

    monkeypatch.setattr(turns, "perform_turn", perform)
    pool = TurnPool(1, turns.THREADS)
    at_work, waiting = sent("a"), sent("b")
    pool.send(at_work)
    pool.send(waiting)
    assert begun.wait(60)

    pool.drop("b")
    assert pool.is_busy
    assert written == []
    pool.drop("a")
    assert written == ["a"]
    assert not pool.is_busy
    pool.close()


def test_only_a_record_of_a_running_process_refuses_an_undo(tmp_path: Path) -> None:
    other = os.getppid()
    (tmp_path / DRIVER).write_text(json.dumps([other, start_time(other), "run-1"]))
    with pytest.raises(UsageMistake, match=f"process {other} works on the run run-1"):
        refuse_while_running(tmp_path)
    for content in (
        "{",
        '["a", "b", "c"]',
        "[99999999, 1.0, 1]",
    ):  # damaged, or of an ended process
        (tmp_path / DRIVER).write_text(content)
        refuse_while_running(tmp_path)


def test_of_runs_that_start_together_one_registers_first(tmp_path: Path) -> None:
    harness, other = tmp_path / "harness", os.getppid()
    harness.mkdir()
    errors = list[Exception]()

    def register() -> None:
        try:
            _register_driver(tmp_path / "logs/run-2.jsonl")
        except UsageMistake as error:
            errors.append(error)

    second = threading.Thread(target=register)
    folder = os.open(harness, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as the first one does
    second.start()
    second.join(0.2)
    assert second.is_alive()
    (harness / DRIVER).write_text(json.dumps([other, start_time(other), "run-1"]))
    os.close(folder)
    second.join(60)

    assert [f"process {other} works on the run run-1" in str(error) for error in errors] == [True]


def test_a_step_before_a_repair_is_no_todo_of_the_progress() -> None:
    run = Told(todo("a"))
    run.is_red("a", Category.LINT_ERROR)
    assert run.started == ["a_step_01"]
    assert RunProgress(io.StringIO(), {}).tree(run.state).total == 1
