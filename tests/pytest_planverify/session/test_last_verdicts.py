"""Verdicts of earlier runs: which are kept, on which files they rest, and what has changed since."""

from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import outcome_samples as samples
import pytest
from baseline_samples import baseline, commit_all, git
from example_project import todo
from hypothesis import given
from hypothesis import strategies as st
from module_project import write_files
from past_run_samples import PLAN, Killed, plan_in, settings

from planner.model.journal import CheckRun, RestsOn
from planner.planfile import project_files
from planner.planfile.project_files import digest_of
from pytest_planverify.baseline import repository
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.journal import read_journal
from pytest_planverify.session.last_verdicts import (
    HAS_CHANGED,
    FileDigests,
    LastVerdicts,
    Present,
    TreeState,
    UnknownChangesError,
    difference,
    last_verdicts,
    read_tree,
    start_reading,
)
from pytest_planverify.session.plans import reference_of
from pytest_planverify.session.records import WorkerRecord
from pytest_planverify.session.run_folder import RunJournal, baseline_digest

MODULE = "pytest_planverify.session.last_verdicts"
FIRST, SECOND = "20260101T000000-1-a", "20260102T000000-1-b"
A, MAKE, B, C = ("a", "tests[0]"), ("a", "tests[1]"), ("b", "tests[0]"), ("c", "tests[0]")


def last(root: Path, *, unfinished: bool = False, **given: Any) -> LastVerdicts:
    chosen = plan_in(root)
    own = [chosen.plan.path]
    compared: Any = given.pop("baseline", None)
    now = Present(
        flat=chosen.flat,
        settings=settings(**given),
        reference=reference_of(chosen.flat, "plan.yaml"),
        tree=read_tree([root], own),
        apart=own,
        baseline=compared,
    )
    return last_verdicts(now, unfinished=unfinished)


def why(root: Path, **given: Any) -> str:
    """Return why the verdict on the first command of todo ``a`` does not hold."""
    found = last(root, **given)
    assert A not in found.held
    return found.why_not(A)


def test_final_verdict_is_reused_with_its_evidence_and_run_id(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", "tests[1]", "flaky").judged("b", verdict="failed")
    found = last(tmp_path)
    assert found.held.keys() == {A, MAKE, B}
    assert {run.check.taken_from for run in found.held.values()} == {FIRST}
    assert found.held[A].properties == (("rows", 3),)
    assert found.held[B].evidence[0].headline == "assert 1 == 2"
    assert found.why_not(C) == "no earlier run has verified it"


@hypothesis.settings(max_examples=20)
@given(length=st.integers(min_value=0, max_value=6000))
def test_truncated_journal_never_yields_a_new_verdict(
    tmp_path_factory: pytest.TempPathFactory, length: int
):
    root = tmp_path_factory.mktemp("lost")
    killed = Killed(root).judged("a").judged("b", verdict="failed").judged("a", "tests[1]")
    os.truncate(killed.folder.journal, min(length, killed.folder.journal.stat().st_size))
    found = last(root).held
    recorded = {A: "passed", B: "failed", MAKE: "passed"}
    assert {key: run.check.verdict for key, run in found.items()}.items() <= recorded.items()
    # A torn line costs no record after it.
    assert not found or last(killed.judged("c").root).held.keys() == {*found, C}


def test_doubtful_and_cheap_verdicts_are_not_reused(tmp_path: Path):
    killed = Killed(tmp_path).judged("a", final=False).judged("a", "expected_artifacts[0]")
    killed.judged("b", verdict="inconclusive").judged("c", "tests[9]").judged("x")
    assert not last(tmp_path).held
    assert why(tmp_path) == f"run {FIRST} had reached no final verdict on it"
    killed.judged("a").judged("a").judged("c").judged("c", verdict="failed")
    assert last(tmp_path).held.keys() == {A}, "two different verdicts"


def test_newest_run_with_a_verdict_counts(tmp_path: Path):
    Killed(tmp_path, FIRST).judged("a").judged("b", verdict="failed")
    Killed(tmp_path, SECOND).judged("c").judged("b", final=False)
    Killed(tmp_path, "20260103T000000-1-c")
    found = last(tmp_path)
    assert {key: run.check.taken_from for key, run in found.held.items()} == {A: FIRST, C: SECOND}
    assert SECOND in found.why_not(B)
    assert found.newest.run_id == SECOND


def test_only_unfinished_runs_are_resumed(tmp_path: Path):
    ended = Killed(tmp_path, FIRST).judged("a")
    ended.journal.close(samples.document().run)
    stopped = Killed(tmp_path, SECOND).judged("b")
    stopped.journal.close(samples.document(interrupted=True, exit_status=2).run)
    assert last(tmp_path, unfinished=True).held.keys() == {B}
    assert last(tmp_path).held.keys() == {A, B}


def test_verdicts_are_reused_only_under_equivalent_options(tmp_path: Path):
    Killed(tmp_path).judged("a")
    assert last(tmp_path, worker_args=("-v", "--tb", "short", "--durations=3", "--pdb")).held
    assert last(tmp_path, keyword="x", markexpr="y", deselect=("z",)).held
    assert last(tmp_path, last_failed=True, maxfail=1).held
    assert why(tmp_path, worker_args=("--cov=x",)) == "coverage needs a complete run"
    for other in ({"worker_args": ("-p", "no:x")}, {"isolate": True}):
        assert why(tmp_path, **other) == f"not the same options as in run {FIRST}"


def test_verdicts_are_not_reused_in_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Killed(tmp_path).judged("a")

    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert why(tmp_path) == f"not the same environment as in run {FIRST}"
    monkeypatch.undo()
    site = tmp_path.with_name("site")
    (site / "thing-2.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    assert "not the same installed packages" in why(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr("sys.version", "3.99")
    assert "not the same interpreter" in why(tmp_path)
    monkeypatch.undo()
    recorded = SimpleNamespace(document=samples.check("tests[0]"))
    assert "not the same baseline" in why(tmp_path, baseline=recorded)
    assert last(tmp_path).held


@pytest.mark.parametrize("installed", ["thing-1.0.dist-info", "thing.py", "__editable__.thing.pth"])
def test_verdicts_are_not_reused_after_a_reinstallation_of_the_same_version(
    installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    site = tmp_path.with_name(f"{tmp_path.name}_site-packages")
    (site / installed).mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    Killed(tmp_path).judged("a")
    assert last(tmp_path).held
    os.utime(site / installed, (1e9, 1e9))
    assert why(tmp_path) == f"not the same installed packages as in run {FIRST}"


def test_verdicts_are_not_reused_for_an_unreadable_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    killed = Killed(tmp_path).judged("a")
    with monkeypatch.context() as patch:
        patch.setattr(f"{MODULE}.MOST_FILES", -1)
        assert "the changed files are unknown: git does not answer" in why(tmp_path)
    (killed.folder.path / "tree.json").write_text("[")
    assert "the changed files are unknown: run" in why(tmp_path)


def test_verdicts_are_not_reused_after_a_sub_plan_changed(tmp_path: Path):
    sub = {"todo_list_id": "sub", "items": [todo("x", "pytest test_x.py")]}
    (tmp_path / "sub.yaml").write_text(json.dumps(sub))
    plan_in(tmp_path, {"id": "phase", "title": "P", "sub_plan": "sub.yaml"})
    Killed(tmp_path).judged("phase/x")
    key = ("phase/x", "tests[0]")
    assert last(tmp_path).held.keys() == {key}
    (tmp_path / "sub.yaml").write_text(json.dumps(sub).replace("test_x.py", "test_x.py -x"))
    assert last(tmp_path).why_not(key) == f"its part of the plan has changed since run {FIRST}"


def test_verdicts_of_running_or_unexplained_runs_are_not_reused(tmp_path: Path):
    killed = Killed(tmp_path).judged("a")
    killed.journal.append("run_unexplained", reason="the session returned 7")
    assert why(tmp_path) == f"run {FIRST} could not be accepted: the session returned 7"
    journal = killed.folder.journal
    journal.write_text(journal.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {os.getppid()}'))
    assert why(tmp_path) == f"run {FIRST} is still running"


def test_time_and_run_of_a_recording_are_no_part_of_the_digest_of_a_baseline(tmp_path: Path):
    held = baseline(PLAN)

    def digest(**changes: str) -> str:
        return baseline_digest(
            KeptBaseline(tmp_path, held.model_copy(update=changes), path=tmp_path / "b.json")
        )

    assert digest(made_at="later", run_id="another") == digest() != digest(python="other")


# -- the basis of a verdict --------------------------------------------------------------------------

THERE = ("a.py", "b.py", "data.csv", "pytest.ini", "lib.so", "docs/text.md")
NAMES = (*THERE, "new.py", "new.csv")


@hypothesis.settings(max_examples=60)
@given(
    changes=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["2", None]), max_size=2),
    read=st.frozensets(st.sampled_from(NAMES)),
    known=st.booleans(),
    native=st.booleans(),
)
def test_verdict_holds_only_while_its_basis_is_unchanged(
    changes: dict[str, str | None],
    read: frozenset[str],
    known: bool,
    native: bool,
    tmp_path_factory: pytest.TempPathFactory,
):
    """The changes are new texts by file; ``None`` removes it."""
    root = tmp_path_factory.mktemp("tree")
    write_files(root, dict.fromkeys(THERE, "1"))
    before = read_tree([root])
    digests = FileDigests(root)
    basis = RestsOn(files={name: digests.of(name) for name in read}, native=native) if known else None
    for name, text in changes.items():
        if text is None:
            (root / name).unlink(missing_ok=True)
        else:
            write_files(root, {name: text})
    after = read_tree([root])
    found = difference(before, after, root, began=0, ended=0)

    why = FileDigests(root).why_stale(basis, found)

    other = {name for name, text in changes.items() if text is not None or name in THERE}
    changed = {name for name in other if name in THERE and changes[name] is not None}
    always, data = {"pytest.ini", "lib.so"}, {"data.csv", "docs/text.md"}
    may_rest_on = set(THERE) if basis is None else read | always | (data if native else set())
    assert (why is None) == (other == changed and not changed & may_rest_on), (why, other)
    if why is not None:
        assert any(f"{name} {found[name]}" in why for name in other)


def worker(**facts: Any) -> WorkerRecord:
    record = WorkerRecord()
    record.launched_at = time.time() + 1
    record.feed({"record": "files_read", "at": 0, **facts})
    return record


def test_basis_of_a_worker_is_the_files_read_and_the_files_named(tmp_path: Path):
    write_files(tmp_path, {"a.py": "1", "pytest.ini": "1"})
    os.mkfifo(tmp_path / "pipe.py")  # which must not block
    record = worker(files=[str(tmp_path / name) for name in ("a.py", "none.py", "pipe.py")], native=True)

    basis, stayed = FileDigests(tmp_path).basis(record, [str(tmp_path / "pytest.ini"), None])

    assert stayed
    assert basis.files.keys() == {"a.py", "none.py", "pipe.py", "pytest.ini"}
    assert basis.files["none.py"] == "gone"
    assert basis.native
    record.launched_at = time.time() - 1
    assert not FileDigests(tmp_path).basis(record, [])[1], "a.py has changed while the worker ran"


def test_data_that_was_read_is_known_although_a_connection_makes_the_basis_unknown(tmp_path: Path):
    record = worker(files=[str(tmp_path / name) for name in ("a.py", "tests/data.json")])
    record.audit["x",] = {"event": "connect"}
    assert FileDigests(tmp_path).basis(record, []) == (None, True)
    assert FileDigests(tmp_path).read_data(record) == ("tests/data.json",)


@pytest.mark.parametrize("code", ["os.path.getsize(FILE)", "file.stat().st_size", "filecmp.cmp(a, b)", ""])
def test_code_that_looks_at_sizes_of_files_depends_on_all_data_files(code: str, tmp_path: Path):
    write_files(tmp_path, {"a.py": code or "def status(state): ...", "data.csv": "1"})
    basis, _ = FileDigests(tmp_path).basis(worker(files=[str(tmp_path / "a.py")]), [])
    assert bool(FileDigests(tmp_path).why_stale(basis, {"data.csv": HAS_CHANGED})) is bool(code)
    assert FileDigests(tmp_path).why_stale(basis, {"b.py": HAS_CHANGED}) is None


UNKNOWN_READS = {
    "files_read": None,
    "death": object(),
    "cut_short": True,
    "journal_cut": True,
    "xdist_workers": {"gw0": 1},
    "audit": {("x",): {"event": "connect"}},
}


@pytest.mark.parametrize("fact", [*UNKNOWN_READS, "it started a process"])
def test_verdict_depends_on_every_file_when_reads_are_unknown(fact: str, tmp_path: Path):
    record = worker(files=[])
    if fact in UNKNOWN_READS:
        setattr(record, fact, UNKNOWN_READS[fact])
    else:
        record.feed({"record": "files_read", "at": 0, "unknown": fact})
    assert FileDigests(tmp_path).basis(record, []) == (None, True)


def test_digest_of_a_link_is_that_of_its_target(tmp_path: Path):
    write_files(tmp_path, {"a": "1", "b": "2"})
    (tmp_path / "link").symlink_to("a")
    digests = FileDigests(tmp_path)
    before = digests.of("link")
    assert before == digests.of("a")
    write_files(tmp_path, {"a": "22"})
    assert digests.of("link") != before


# -- differences between the files now and then ------------------------------------------------------


def write(folder: Path, *names: str, text: str = "1\n") -> None:
    write_files(folder, dict.fromkeys(names, text))


@pytest.fixture(params=["git", "no git"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the plan's root, the folder ``inner`` of a work tree with or without git."""
    root = tmp_path / "inner"
    write(root, "product.py", "né w.txt", "data.json")
    write(tmp_path, ".gitignore", text="*.log\n*.local.py\nbuild/\n")
    if request.param == "git":
        commit_all(tmp_path)
    write(root, "loose.json", "started")
    return root


def state(root: Path) -> TreeState | None:
    return read_tree([root])


def changed(then: TreeState, root: Path, *, began: float = 0, ended: float = 0) -> str | None:
    """Return the first difference in words, or why the state is unknown; ``None`` without difference."""
    try:
        found = difference(then, state(root), root, began=began, ended=ended)
    except UnknownChangesError as error:
        return str(error)
    return next((f"{name} {how}" for name, how in found.items()), None)


def test_unchanged_tree_has_no_difference(project: Path):
    write(project, "product.py", text="2\n")
    then = state(project)

    assert changed(then, project) is None
    write(project, "__pycache__/x.pyc", ".planverify/outcomes.json", ".pytest_cache/v", "a/.coverage.1")
    write(project, "venv/pyvenv.cfg", "venv/lib.txt")
    (project / "venv" / ".gitignore").write_text("*\n")
    if (project.parent / ".git").exists():
        write(project, "run.log", "build/lib.py")  # ignored, and not importable by location
    os.utime(project / "né w.txt", (1, 1))
    assert changed(then, project) is None


def test_changed_or_removed_file_is_reported(project: Path):
    then = state(project)
    for name in ("product.py", "data.json", "né w.txt", "loose.json"):
        write(project, name, text="2\n")
        assert changed(then, project, began=0, ended=time.time() + 1) == f"{name} has changed"
        (project / name).unlink()
        assert changed(then, project) == f"{name} is gone"
        write(project, name)
        assert changed(then, project) is None


def test_new_code_and_configuration_is_always_reported(project: Path):
    then = state(project)
    for name in ("conftest.py", "sub/test_new.py", "setup.cfg", "Makefile", "x.local.py"):
        write(project, name)
        assert changed(then, project, began=0, ended=time.time()) == f"{name} is new"
        (project / name).unlink()


@pytest.mark.parametrize("name", ["out.json", "deep/er/rows.csv"])
def test_new_data_written_by_the_run_is_not_a_difference(name: str, project: Path):
    then, began = state(project), time.time() - 1
    write(project, name, text="3\n")
    ended = time.time() + 1
    assert changed(then, project, began=began, ended=ended) is None
    assert changed(then, project, began=began - 60, ended=began - 30) is not None, "written after it"
    assert changed(then, project, began=began + 30, ended=began + 60) is not None, "written before it"
    os.utime(project / name, (began - 45, began - 45))
    assert changed(then, project, began=began - 60, ended=began - 30) is not None, "a time that is set"


def test_added_repository_and_lost_history_are_reported(tmp_path: Path):
    write(tmp_path, "a.py")
    loose = state(tmp_path)
    git(tmp_path, "init", "-q")
    assert changed(loose, tmp_path) == "the files were added to git, or removed from it"
    commit_all(tmp_path)
    then = TreeState(heads={".": "0" * 40}, files={}, loose=frozenset())
    assert "HEAD is another commit" in str(changed(then, tmp_path))


def test_files_are_compared_between_two_commits(tmp_path: Path):
    write(tmp_path, "a.py", "b.py", "c.py", ".gitignore")
    commit_all(tmp_path)
    write(tmp_path, "a.py", text="2\n")
    write(tmp_path, "new.py")
    then = state(tmp_path)

    commit_all(tmp_path)
    assert changed(then, tmp_path) is None
    write(tmp_path, "b.py", text="3\n")
    write(tmp_path, "more.py")
    (tmp_path / "c.py").unlink()
    commit_all(tmp_path)

    found = difference(then, state(tmp_path), tmp_path, began=0, ended=0)
    assert found == {"b.py": "has changed", "c.py": "is gone", "more.py": "is new"}
    write(tmp_path, "a.py")
    assert changed(then, tmp_path) == "a.py has changed"


def test_unmerged_files_are_compared(tmp_path: Path):
    write(tmp_path, "a.py")
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-qb", "other")
    write(tmp_path, "a.py", text="other\n")
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    write(tmp_path, "a.py", text="mine\n")
    commit_all(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        git(tmp_path, "merge", "other")

    then = state(tmp_path)

    assert set(then.files) == {"a.py"}
    write(tmp_path, "a.py", text="solved\n")
    assert changed(then, tmp_path) == "a.py has changed"


def test_links_and_large_files_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(project_files, "LARGEST_HASHED", 1)
    write(tmp_path, "large.bin", text="12345")
    (tmp_path / "link").symlink_to("large.bin")
    os.mkfifo(tmp_path / "pipe")
    then = state(tmp_path)
    assert changed(then, tmp_path) is None

    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("nowhere")
    assert changed(then, tmp_path) == "link is another link"
    write(tmp_path, "large.bin", text="123456")
    assert changed(then, tmp_path) == "large.bin has changed"
    assert digest_of(tmp_path / "large.bin" / "no folder") == "gone"


def test_state_of_too_many_files_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path, "a", "b")
    monkeypatch.setattr(f"{MODULE}.MOST_FILES", 1)
    assert read_tree([tmp_path]) is None
    git(tmp_path, "init", "-q")
    assert read_tree([tmp_path]) is None


@pytest.mark.parametrize("script", ["exit 1", "exec sleep 5", None], ids=["fails", "hangs", "missing"])
def test_state_is_unknown_when_git_fails(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root, programs = tmp_path / "root", tmp_path / "bin"
    write(root, ".git/HEAD", "a.py")
    programs.mkdir()
    if script is not None:
        write(programs, "git", text=f"#!/bin/sh\n{script}\n")
        (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin" if script else str(programs))
    monkeypatch.setattr(repository, "TIMEOUT_SECONDS", 0.3)
    assert read_tree([root]) is None


names = st.text(st.characters(), min_size=1, max_size=8)
"""With surrogates, which stand for the bytes of a file name that is not UTF-8."""


@given(
    heads=st.dictionaries(names, names, max_size=3),
    files=st.dictionaries(names, names, max_size=5),
    loose=st.frozensets(names, max_size=5),
)
def test_state_round_trips_through_its_file(
    heads: dict[str, str],
    files: dict[str, str],
    loose: frozenset[str],
    tmp_path_factory: pytest.TempPathFactory,
):
    path = tmp_path_factory.getbasetemp() / "tree.json"
    written = TreeState(heads=heads, files=files, loose=loose)
    reading: Future[TreeState | None] = Future()
    reading.set_result(written)
    journal = RunJournal(path.with_name("journal"), "p", reading)
    journal.check_judged("a", CheckRun(check=samples.check("tests[0]")), final=True)
    assert TreeState.read(path) == written
    assert path.stat().st_mode & 0o777 == 0o600


def test_invalid_state_file_is_read_as_none(tmp_path: Path):
    newer = '{"version": 2, "heads": {}, "files": {}, "loose": []}'
    for text in ("", "{}", "[]", "[" * 100_000, newer):
        (tmp_path / "tree.json").write_text(text)
        assert TreeState.read(tmp_path / "tree.json") is None
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "pipe"):
        assert TreeState.read(tmp_path / name) is None


def test_state_is_written_without_excluded_paths_before_the_first_verdict(tmp_path: Path):
    write(tmp_path, "root/a.py", "root/plan.yaml", "root/reports/a.json")
    apart = [tmp_path / "root/plan.yaml", tmp_path / "root/reports"]
    run = CheckRun(check=samples.check("tests[0]"))

    (tmp_path / "no" / "tree.json").mkdir(parents=True)
    for folder in ("there", "no"):  # a state that cannot be written costs no verdict
        (tmp_path / folder).mkdir(exist_ok=True)
        journal = RunJournal(tmp_path / folder / "journal", "p", start_reading([tmp_path / "root"], apart))
        journal.check_judged("a", run, final=True)

    kept = TreeState.read(tmp_path / "there" / "tree.json")
    assert set(kept.files) == {"a.py"}
    assert len(read_journal(tmp_path / "no" / "journal")) == 1
