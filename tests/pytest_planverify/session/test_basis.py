"""The basis of a verdict, and whether the verdict still holds after changes of files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from hypothesis import given, settings
from hypothesis import strategies as st
from module_project import write_files

from planner.model.journal import RestsOn
from planner.model.verdicts import Side
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.session.last_verdicts import HAS_CHANGED, FileDigests, difference, read_tree
from pytest_planverify.session.outcomes import MOST_CHANGED, changed_files
from pytest_planverify.session.records import WorkerRecord

THERE = ("a.py", "b.py", "data.csv", "pytest.ini", "lib.so", "docs/text.md")
NAMES = (*THERE, "new.py", "new.csv")


@settings(max_examples=80)
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
    record = worker(files=[str(tmp_path / "a.py"), str(tmp_path / "none.py")], native=True)

    basis, stayed = FileDigests(tmp_path).basis(record, [str(tmp_path / "pytest.ini"), None])

    assert stayed
    assert basis.files.keys() == {"a.py", "none.py", "pytest.ini"}
    assert basis.files["none.py"] == "gone"
    assert basis.native


def test_data_that_was_read_is_known_although_a_connection_makes_the_basis_unknown(tmp_path: Path):
    record = worker(files=[str(tmp_path / name) for name in ("a.py", "tests/data.json")])
    record.audit["x",] = {"event": "connect"}

    assert FileDigests(tmp_path).basis(record, []) == (None, True)
    assert FileDigests(tmp_path).read_data(record) == ("tests/data.json",)


@pytest.mark.parametrize(
    ("code", "examines"),
    [
        ("assert os.path.getsize(FILE) < 10", True),
        ("assert file.stat().st_size", True),
        ("assert filecmp.cmp(a, b)", True),
        ("def status(state): ...", False),
    ],
)
def test_code_that_looks_at_sizes_of_files_depends_on_all_data_files(
    code: str, examines: bool, tmp_path: Path
):
    write_files(tmp_path, {"a.py": code, "data.csv": "1"})
    record = worker(files=[str(tmp_path / "a.py")])

    basis, _ = FileDigests(tmp_path).basis(record, [])

    assert (FileDigests(tmp_path).why_stale(basis, {"data.csv": HAS_CHANGED}) is not None) == examines
    assert FileDigests(tmp_path).why_stale(basis, {"b.py": HAS_CHANGED}) is None


def test_pipe_that_a_worker_read_does_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.py")

    basis, _ = FileDigests(tmp_path).basis(worker(files=[str(tmp_path / "pipe.py")]), [])

    assert not basis.native


def test_file_changed_during_a_worker_invalidates_its_basis(tmp_path: Path):
    write_files(tmp_path, {"a.py": "1"})
    record = worker(files=[str(tmp_path / "a.py")])
    record.launched_at = time.time() - 1

    assert not FileDigests(tmp_path).basis(record, [])[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: setattr(record, "files_read", None),
        lambda record: record.feed({"record": "files_read", "at": 0, "unknown": "it started a process"}),
        lambda record: setattr(record, "death", object()),
        lambda record: setattr(record, "cut_short", True),
        lambda record: setattr(record, "journal_cut", True),
        lambda record: record.xdist_workers.update(gw0=1),
        lambda record: record.audit.update({("x",): {"event": "connect"}}),
    ],
    ids=["said nothing", "does not know", "died", "cut short", "journal cut", "xdist", "network"],
)
def test_verdict_depends_on_every_file_when_reads_are_unknown(change: Any, tmp_path: Path):
    record = worker(files=[])
    change(record)

    assert FileDigests(tmp_path).basis(record, []) == (None, True)


def test_digest_of_a_link_is_that_of_its_target(tmp_path: Path):
    write_files(tmp_path, {"a": "1", "b": "2"})
    (tmp_path / "link").symlink_to("a")
    digests = FileDigests(tmp_path)
    before = digests.of("link")

    assert before == digests.of("a")
    write_files(tmp_path, {"a": "22"})
    assert digests.of("link") != before


def test_changed_files_have_a_side_and_exclude_plans(tmp_path: Path):
    files = ("cart.py", "tests/test_cart.py", "notes.md", "plan.json")
    write_files(tmp_path, dict.fromkeys(files, "{}\n"))
    commit_all(tmp_path)
    write_files(tmp_path, dict.fromkeys(files, "{} \n"))

    found = changed_files(tmp_path, Changes(tmp_path, [tmp_path / "plan.json"]))

    assert [(each.path, each.side) for each in found] == [
        ("cart.py", Side.PRODUCT),
        ("tests/test_cart.py", Side.TEST),
        ("notes.md", None),
    ]


def test_changed_files_are_unknown_without_a_commit(tmp_path: Path):
    (tmp_path / "cart.py").write_text("")

    assert changed_files(tmp_path, Changes(tmp_path)) is None


def test_code_precedes_other_files_when_changed_files_are_truncated(tmp_path: Path):
    write_files(tmp_path, {"a.md": ""})
    commit_all(tmp_path)
    write_files(tmp_path, {f"a{number:02}.md": "" for number in range(MOST_CHANGED)} | {"z.py": ""})

    found = changed_files(tmp_path, Changes(tmp_path))

    assert (len(found), found[0].path) == (MOST_CHANGED, "z.py")
