"""Differences between the files now and at the start of a run."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import Future
from pathlib import Path

import outcome_samples as samples
import pytest
from baseline_samples import commit_all, git
from hypothesis import given
from hypothesis import strategies as st
from module_project import write_files

from planner.model.journal import CheckRun
from planner.planfile import project_files
from planner.planfile.project_files import digest_of
from pytest_planverify.baseline import repository
from pytest_planverify.journal import read_journal
from pytest_planverify.session import last_verdicts
from pytest_planverify.session.last_verdicts import (
    TreeState,
    UnknownChangesError,
    difference,
    read_tree,
    start_reading,
)
from pytest_planverify.session.run_folder import RunJournal


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
    monkeypatch.setattr(last_verdicts, "MOST_FILES", 1)

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


@pytest.mark.parametrize(
    "text",
    [None, "", "{}", "[]", "[" * 100_000, '{"version": 2, "heads": {}, "files": {}, "loose": []}'],
    ids=["missing", "empty", "no version", "list", "deep", "newer"],
)
def test_invalid_state_file_is_read_as_none(text: str | None, tmp_path: Path):
    if text is not None:
        (tmp_path / "tree.json").write_text(text)

    assert TreeState.read(tmp_path / "tree.json") is None
    os.mkfifo(tmp_path / "pipe")
    assert TreeState.read(tmp_path / "pipe") is None


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
