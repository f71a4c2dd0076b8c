"""Storage and loading of baselines, detection of changes to them, and the commit that broke a todo."""

import os
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import baseline, commit_all, git, sha256
from example_project import Example, todo
from hypothesis import example, given, settings
from hypothesis import strategies as st
from real_command import planverify
from real_planner import planner

from planner.errors import BaselineError, FileWriteError
from planner.model.base import ReadValue
from planner.model.baseline import (
    Acceptance,
    Baseline,
    BaselineCheck,
    BaselineFile,
    BaselineTest,
    BaselineTodo,
    HookUse,
    JudgeKind,
    JudgePatch,
    Remake,
    SessionInventory,
)
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.record_files import baseline_bytes, parse_baseline, read_baseline
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.changes import Changes, GreenRevisions
from pytest_planverify.baseline.kept_baseline import KeptBaseline, keep_baseline


def any_of(model: type[ReadValue]) -> st.SearchStrategy[Any]:
    """Return a strategy that draws every field of a model by its type."""
    return st.builds(model, **dict.fromkeys(model.model_fields.keys() - {"schema_version"}, ...))


PARTS = (BaselineCheck, BaselineTodo, BaselineTest, BaselineFile, Acceptance, Remake)
for part in (*PARTS, SessionInventory, HookUse, JudgePatch):
    st.register_type_strategy(part, any_of(part))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    commit_all(root)
    return root


def loaded(root: Path, plan: str = "p") -> KeptBaseline:
    kept = load_baseline(root, plan)
    assert kept is not None
    return kept


@settings(max_examples=10)
@example(baseline(files={os.fsdecode(b"not UTF-8 \xff"): {"sha256": "1"}}))
@given(any_of(Baseline))
def test_baseline_round_trips_through_its_file(held: Baseline):
    assert parse_baseline(baseline_bytes(held), "x") == held


def test_baseline_file_is_private_and_ignored_by_git(repository: Path):
    assert load_baseline(repository, "p") is None
    path, unkept = keep_baseline(repository, baseline(), {})
    assert unkept is None
    assert path.stat().st_mode & 0o077 == 0
    assert git(repository, "status", "--porcelain") == ""
    assert not list(path.parent.glob("*.tmp"))


def test_any_plan_name_is_a_valid_git_ref(repository: Path):
    plan = "-a b/../\u00e4@{.lock"
    _, unkept = keep_baseline(repository, baseline(plan), {})
    assert unkept is None
    PlanFolder(repository, plan).baseline.unlink()
    assert loaded(repository, plan).document.plan == plan


def test_each_plan_of_a_root_has_its_own_baseline(tmp_path: Path):
    keep_baseline(tmp_path, baseline("one"), {})
    keep_baseline(tmp_path, baseline("two"), {})
    assert loaded(tmp_path, "one").document.plan == "one"
    assert loaded(tmp_path, "two").document.plan == "two"
    assert load_baseline(tmp_path, "three") is None
    PlanFolder(tmp_path, "one").baseline.replace(PlanFolder(tmp_path, "two").baseline)
    with pytest.raises(BaselineError, match="of the plan 'one', not of 'two'"):
        load_baseline(tmp_path, "two")


def test_sub_plan_alone_uses_its_part_of_the_parent_baseline(tmp_path: Path):
    todos = {"p": BaselineTodo(), "p/a": BaselineTodo(claimed=True), "q": BaselineTodo()}
    keep_baseline(tmp_path, baseline(todos=todos, sub_plans={"p": "part"}), {})
    assert loaded(tmp_path, "part").document.todos == {"a": BaselineTodo(claimed=True)}


def test_two_roots_of_a_repository_have_separate_refs(repository: Path):
    for name in ("a", "b"):
        (repository / name).mkdir()
        keep_baseline(repository / name, baseline(revision=name), {})
    assert loaded(repository / "a").document.revision == "a"
    assert loaded(repository / "b").doubts == ()


def test_linked_work_tree_has_its_own_baseline_or_that_of_the_repository(repository: Path, tmp_path: Path):
    keep_baseline(repository, baseline(revision="main"), {})
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert loaded(tmp_path / "linked").document.revision == "main"
    keep_baseline(tmp_path / "linked", baseline(revision="linked"), {})
    assert loaded(tmp_path / "linked").document.revision == "linked"
    assert loaded(repository).document.revision == "main"
    assert loaded(repository).doubts == ()


def test_edited_baseline_file_is_reported_and_ignored(repository: Path):
    path, _ = keep_baseline(repository, baseline(revision="true"), {})
    path.write_bytes(baseline_bytes(baseline(revision="false")))
    assert loaded(repository).document.revision == "true"
    assert "differs from the copy of the baseline that git keeps" in loaded(repository).doubts[0]
    path.write_text("broken")
    assert loaded(repository).document.revision == "true"
    assert loaded(repository).doubts
    git(repository, "pack-refs", "--all")
    path.unlink()
    assert loaded(repository).doubts == ()


def test_contents_stay_readable_after_the_history_was_rewritten(repository: Path):
    files = {"a.txt": BaselineFile(sha256=sha256(b"one\n"), committed=True)}
    revision = git(repository, "rev-parse", "HEAD")
    keep_baseline(repository, baseline(revision=revision, files=files), {})
    (repository / "a.txt").write_text("two\n")
    git(repository, "checkout", "-q", "--orphan", "other")
    commit_all(repository)
    git(repository, "branch", "-D", "main")
    git(repository, "reflog", "expire", "--expire=now", "--all")
    git(repository, "gc", "-q", "--prune=now")
    assert loaded(repository).read("a.txt") == b"one\n"


def test_contents_are_read_from_git_or_a_copy_and_verified(repository: Path):
    def of(content: bytes, **keys: bool) -> BaselineFile:
        return BaselineFile(sha256=sha256(content), **keys)

    files = {
        "a.txt": of(b"one\n", committed=True),
        "b.txt": of(b"two\n"),
        "wrong.txt": of(b"three\n", committed=True),
        "lost.txt": of(b"four\n"),
    }
    held = baseline(revision=git(repository, "rev-parse", "HEAD"), files=files)
    keep_baseline(repository, held, {files["b.txt"].sha256: b"two\n"})
    (repository / "a.txt").write_text("changed\n")
    before = loaded(repository)
    assert {path: before.read(path) for path in (*files, "else")} == {
        "a.txt": b"one\n",
        "b.txt": b"two\n",
        "wrong.txt": None,
        "lost.txt": None,
        "else": None,
    }
    assert before.digests() == {path: file.sha256 for path, file in files.items()}
    copy = repository / ".planverify" / "baseline" / "objects" / files["b.txt"].sha256
    copy.write_text("forged\n")
    assert loaded(repository).read("b.txt") is None
    keep_baseline(repository, held, {files["b.txt"].sha256: b"two\n"})
    assert loaded(repository).read("b.txt") == b"two\n"


def test_acceptance_applies_only_to_the_exact_content(tmp_path: Path):
    entry = Acceptance(todo_id="t", reason="r", at="now", files={"a.py": "1" * 64, "gone.py": None})
    keep_baseline(tmp_path, baseline(accepted=(entry,)), {})
    kept = loaded(tmp_path)
    assert kept.accepted("a.py", "1" * 64)
    assert kept.accepted("gone.py", None)
    assert not kept.accepted("a.py", "2" * 64)
    assert not kept.accepted("b.py", "1" * 64)


@pytest.mark.parametrize(
    ("nodeid", "standing"),
    [
        ("test_a.py::test_run", "green"),
        ("test_a.py::test_run[2]", "absent"),
        ("test_a.py::test_other", "unknown"),
        ("test_a.py::test_othe", "absent"),
        ("test_a.py::Test::test_inner", "unknown"),
        ("test_b.py::test_x", "absent"),
        ("test_broken.py::test_x", "red"),
        ("test_lost.py::test_x", "unknown"),
    ],
)
def test_test_existed_if_it_was_run_or_its_file_may_define_it(tmp_path: Path, nodeid: str, standing: str):
    content = b"def test_run(n): ...\ndef test_other(): ...\nclass Test:\n    def test_inner(self): ...\n"
    digest = sha256(content)
    tests = {"test_a.py::test_run": {"outcome": "passed"}, "test_broken.py": {"outcome": "error"}}
    files = {"test_a.py": {"sha256": digest, "kind": "test"}, "test_lost.py": {"sha256": "0"}}
    keep_baseline(tmp_path, baseline(tests=tests, files=files), {digest: content})
    kept = loaded(tmp_path)
    assert kept.standing(nodeid) == standing
    assert kept.kind_of("test_a.py") is JudgeKind.TEST
    assert kept.kind_of("new/conftest.py") is JudgeKind.CONFTEST


def test_renamed_file_keeps_its_tests(tmp_path: Path):
    contents = {"test_a.py": b"1", "test_b.py": b"2", "test_c.py": b"2"}
    files = {name: {"sha256": sha256(text), "kind": "test"} for name, text in contents.items()}
    tests = {"test_a.py::test_x[1]": {"outcome": "failed"}, "test_b.py": {"outcome": "error"}}
    keep_baseline(tmp_path, baseline(tests=tests, files=files), {})
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "test_z.py").write_bytes(b"1")
    (tmp_path / "test_d.py").write_bytes(b"2")
    kept = loaded(tmp_path)
    assert kept.former("moved/test_z.py::test_x[1]") == "test_a.py::test_x[1]"
    assert kept.standing("moved/test_z.py::test_x[1]") == "red"
    assert kept.former("test_d.py::test") == "test_d.py::test"  # two missing files had this content
    assert kept.former("nowhere.py::test") == "nowhere.py::test"
    (tmp_path / "test_c.py").write_bytes(b"2")
    assert loaded(tmp_path).former("test_d.py") == "test_b.py"
    (tmp_path / "test_a.py").write_bytes(b"1")  # a copy is not a rename
    assert loaded(tmp_path).standing("moved/test_z.py::test_x[1]") == "absent"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "it is not valid JSON"),
        (b"\xff", "it is not valid JSON"),
        (b"[" * 100_000, "it is not valid JSON"),
        (b'{"schema_version": 2}', "newer than 1"),
        (b'{"plan": 1}', "does not fit a baseline"),
    ],
)
def test_invalid_baseline_is_refused_in_one_line(tmp_path: Path, data: bytes, said: str):
    path = tmp_path / "baseline.json"
    path.write_bytes(data)
    with pytest.raises(BaselineError, match=said) as caught:
        read_baseline(path)
    assert "\n" not in str(caught.value)


def test_unreadable_or_unwritable_file_is_named(tmp_path: Path):
    path = PlanFolder(tmp_path, "p").baseline
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BaselineError, match="cannot be read"):
        load_baseline(tmp_path, "p")
    path.unlink()
    path.mkdir()
    with pytest.raises(FileWriteError, match="it is a folder"):
        keep_baseline(tmp_path, baseline(), {})
    path.rmdir()
    (tmp_path / ".planverify" / "baseline").write_text("")
    with pytest.raises(FileWriteError, match="cannot be written"):
        keep_baseline(tmp_path, baseline(), {"0" * 64: b"x"})


SHOP = """\
def total(prices):
    return sum(prices) - discount(prices)


def discount(prices):
    return 1 if len(prices) >= 3 else 0


def name():
    return "shop"
"""
TESTS = """\
from shop import total


def test_discount():
    assert total([1, 2, 3]) == 5
"""
RED = SHOP.replace(">= 3", "> 3")


def test_commit_that_broke_the_todo_is_located_and_shown_in_the_brief(tmp_path: Path):
    ignored = "__pycache__\n.planverify\n.pytest_cache\ndiagnostics\n"
    project = Example(tmp_path, {"test_shop.py": TESTS, ".gitignore": ignored, "shop.py": SHOP})
    project.plan(todo("t", "pytest test_shop.py"))
    commit_all(tmp_path)
    assert project.verify().states == {"t": "done"}
    project.write({"shop.py": RED})
    commit_all(tmp_path)
    project.write({"shop.py": RED.replace('"shop"', '"Shop"')})

    failure = project.verify().outcomes["t"]["failure_evidence"]

    hunks = [each["hunk"] for each in failure["candidates"] if each["hunk"]]
    found = [(each["path"], each["function"], each["line"]) for each in hunks]
    assert found == [("shop.py", "discount", 6), ("shop.py", "name", 10)]
    assert failure["location"] == {"path": "shop.py", "line": 6, "function": "discount"}
    brief = planner("next", "plan.yaml", "--brief", "t_branch_01", cwd=project.root)
    assert "-    return 1 if len(prices) >= 3 else 0" in brief.out, brief


RAISES = 'def total(prices):\n    raise ValueError(f"{len(prices)} prices")\n'
SUM, ADDED = "sum(prices) - discount(prices)", f"{TESTS}\n\ndef test_added():\n    assert "
CHANGES: dict[str, tuple[str, dict[str, str]]] = {
    "alike": (RED, {"shop.py": RED.replace("sum(prices)", "sum(prices) + 0")}),
    "otherwise": (RED, {"shop.py": RED.replace(SUM, f"[{SUM}]")}),
    "green": (RAISES, {"test_shop.py": f"{ADDED}total\n"}),
    "red": (RAISES, {"test_shop.py": f"{ADDED}total([7]) == 7\n"}),
}
"""The product at the baseline, and what is changed since, by the folder of both."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return outcomes by todo: one for each folder, and ``lint`` with a branch that repairs it."""
    project = Example(tmp_path_factory.mktemp("shops"), {"lint.py": f"import os\n{SHOP}"})
    for name, (product, _) in CHANGES.items():
        project.write({f"{name}/shop.py": product, f"{name}/test_shop.py": TESTS})
    lint = todo("lint", "ruff check lint.py --select F")
    todos = [*(todo(name, f"pytest {name}/test_shop.py") for name in CHANGES), lint]
    project.plan(*todos)
    planverify("baseline", "plan.yaml", cwd=project.root)
    for name, (_, change) in CHANGES.items():
        project.write({f"{name}/{file}": text for file, text in change.items()})
    project.plan(*todos, {**lint, "id": "lint_branch_01", "parent_id": "lint", "is_temporary": True})
    return project.verify().outcomes


@pytest.mark.parametrize(("name", "function"), [("alike", "discount"), ("otherwise", "total")])
def test_failure_that_the_baseline_has_alike_is_not_located_at_a_later_change(
    outcomes: dict[str, dict[str, Any]], name: str, function: str
):
    failure = outcomes[name]["failure_evidence"]
    assert (failure["location"]["function"], failure["since"]) == (function, "pre_existing")


@pytest.mark.parametrize(
    ("name", "added"), [("green", {}), ("red", {"new": ("product", "ValueError: 1 prices")})]
)
def test_an_added_test_changes_neither_owner_nor_message_of_an_older_failure(
    outcomes: dict[str, dict[str, Any]], name: str, added: dict[str, tuple[str, str]]
):
    found = {
        each["since"]: (each["owner"], each["stack_trace_head"]) for each in outcomes[name]["failures"]
    }
    assert found == {"pre_existing": ("product", "ValueError: 3 prices"), **added}


@pytest.mark.parametrize("name", ["lint", "lint_branch_01"])
def test_a_failure_of_a_tool_is_as_old_for_a_branch_as_for_the_todo_that_it_repairs(
    outcomes: dict[str, dict[str, Any]], name: str
):
    assert outcomes[name]["failure_evidence"]["since"] == "pre_existing"
    assert outcomes[name]["checks"][0]["at_base"] == "red"


def test_uncommitted_green_work_belongs_to_the_commit_that_contains_it(repository: Path):
    green = GreenRevisions(repository, "p")
    (repository / "a.txt").write_text("two\n")
    (repository / "notes.txt").write_text("never committed")
    green.note(["t"], Changes(repository))
    (repository / "notes.txt").unlink()
    containing = commit_all(repository)
    (repository / "a.txt").write_text("three\n")
    commit_all(repository)

    assert green.revision_of("t") == containing
    assert green.revision_of("other") is None


@pytest.mark.parametrize("text", ["{", '{"todos": {"t": {"commit": 1, "files": 1}}}'])
def test_damaged_green_state_is_unknown(repository: Path, text: str):
    green = GreenRevisions(repository, "p")
    green.note(["t"], Changes(repository))
    assert green.revision_of("t") is not None

    PlanFolder(repository, "p").green.write_text(text)

    assert green.revision_of("t") is None
