"""Which changed files no todo may change, whom that is held against, and what runs leave is no work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.taxonomy import Category
from planner.planfile.left_files import RECORD, left_by_runs, remember_run
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.guards.allowlist import Author, Ground, is_cache, violations

ROOT = Path("/root/of/plan")
BELOW = ROOT / "phase"


def author(todo_id: str, *allowed: str, root: Path = ROOT) -> Author:
    return Author(todo_id=todo_id, root=root, allowed_files=allowed or None)


def found(
    authors: list[Author],
    *files: str,
    root: Path = ROOT,
    expected: tuple[str, ...] = (),
    protected: tuple[str, ...] = (),
) -> dict[str, tuple[str, ...]]:
    ground = Ground(root=root, expected=expected, protected=protected)
    return {each.todo_id: each.evidence.outside for each in violations(authors, [ground], {root: files})}


def test_a_file_that_some_author_may_change_is_nobodys_violation():
    authors = [author("a", "a/**"), author("b", "b/*.py", "!b/secret.py")]

    assert found(authors, "a/x", "b/y.py") == {}
    assert found(authors, "b/secret.py", "c") == {"a": ("b/secret.py", "c"), "b": ("b/secret.py", "c")}


def test_an_author_without_a_list_may_change_everything_but_what_is_protected():
    authors = [author("a", "a/**"), author("b")]

    assert found(authors, "anything") == {}
    assert found(authors, "tests/t.py", protected=("tests/**",)) == {"a": ("tests/t.py",)}
    assert found([author("b")], "tests/t.py", protected=("tests/**",)) == {"b": ("tests/t.py",)}


def test_artifacts_plans_and_caches_never_count_unless_they_are_protected():
    files = ("out/x.json", "plan.yaml", "a/__pycache__/b.pyc", ".coverage.host", "x.egg-info/PKG-INFO")
    expected = ("out/*.json", "plan.yaml")

    assert found([author("a", "a.py")], *files, expected=expected) == {}
    assert found([author("a", "a.py")], *files, expected=expected, protected=("plan.yaml",)) == {
        "a": ("plan.yaml",)
    }


def test_the_paths_of_a_sub_plan_start_from_its_own_root():
    authors = [author("top", "phase/a.py"), author("below", "b.py", root=BELOW)]

    assert found(authors, "a.py", "b.py", root=BELOW) == {}
    assert found(authors, "c.py", root=BELOW) == {"top": ("phase/c.py",), "below": ("phase/c.py",)}
    assert found(authors, "b.py") == {"top": ("b.py",), "below": ("b.py",)}


def test_the_evidence_names_the_files_and_is_diagnosed():
    (violation,) = violations(
        [author("a", "a.py")], [Ground(root=ROOT)], {ROOT: [f"f{n}" for n in range(9)]}
    )

    assert violation.reason == "f0, f1, f2 and 6 more changed, but not in the allowed_files of any todo"
    check, evidence = violation.check()
    assert (check.id, evidence.check_id, evidence.granted) == ("allowlist", "allowlist", ("a.py",))
    assert diagnose(evidence).category is Category.ALLOWLIST_VIOLATION


@given(
    st.lists(st.sampled_from(["a/x", "b/y", "c", "d/e/f"]), unique=True),
    st.sampled_from(["a/**", "b", "**", "c"]),
)
def test_what_is_held_against_a_todo_is_just_what_its_globs_do_not_name(files: list[str], glob: str):
    from planner.text.glob_patterns import matches

    outside = found([author("a", glob)], *files).get("a", ())

    assert set(outside) == {file for file in files if not matches(file, glob)}


@pytest.mark.parametrize("path", [".coveragerc", "a/cache.py", "egg-info.txt"])
def test_a_file_of_the_project_is_no_cache(path: str):
    assert not is_cache(path)


def test_a_new_file_that_a_run_left_is_remembered_as_long_as_it_is_the_same(tmp_path: Path):
    for name in ("junk.txt", "code.py", "mine.txt"):
        (tmp_path / name).write_text("1")
    remember_run(tmp_path, tmp_path, ["mine.txt"], ["junk.txt", "code.py", "mine.txt", "gone.txt"])

    assert left_by_runs(tmp_path, tmp_path, ["junk.txt", "code.py", "mine.txt"]) == {"junk.txt"}
    remember_run(tmp_path, tmp_path, ["junk.txt", "mine.txt"], ["junk.txt", "mine.txt"])
    assert left_by_runs(tmp_path, tmp_path, ["junk.txt"]) == {"junk.txt"}
    (tmp_path / "junk.txt").write_text("by the next run")
    assert left_by_runs(tmp_path, tmp_path, ["junk.txt"]) == set()
    remember_run(tmp_path, tmp_path, ["junk.txt"], ["junk.txt"], left=["junk.txt"])
    assert left_by_runs(tmp_path, tmp_path, ["junk.txt"]) == {"junk.txt"}
    remember_run(tmp_path, tmp_path, [], ["mine.txt"], started=time.time() + 1)
    assert left_by_runs(tmp_path, tmp_path, ["mine.txt"]) == set()
    (tmp_path / RECORD).write_text("[]")
    assert left_by_runs(tmp_path, tmp_path, ["junk.txt"]) == set()
