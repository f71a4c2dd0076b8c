"""A changed file outside the allowed files is a violation of the todos that may have changed it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from baseline_samples import commit_all, git
from example_project import Example, Verified, todo
from real_planner import Ran, forked, planner

FILES = {
    "a/x.py": "x = 1\n",
    "b/y.py": "y = 1\n",
    "tests/test_all.py": """
        import pathlib
        def test_all():
            pathlib.Path("left.txt").write_text("by the test")
    """,
}
COMMAND = "pytest tests/test_all.py"


@pytest.fixture
def project(tmp_path: Path) -> Example:
    example = Example(tmp_path, FILES)
    example.plan(
        todo(
            "a",
            COMMAND,
            status="claimed",
            allowed_files=["a/**", "!a/secret*"],
            expected_artifacts=["out.json"],
        ),
        todo("b", COMMAND, allowed_files=["b/**"]),
        todo("c", COMMAND, after=("a",)),
        metadata={"protected_files": ["tests/**"]},
    )
    commit_all(tmp_path)
    example.write({"out.json": "{}"})
    return example


def outside(run: Verified) -> str | None:
    checks = {check["id"]: check for check in run.outcomes["a"]["checks"]}
    return checks["allowlist"]["reason"] if "allowlist" in checks else None


def test_files_written_by_planverify_or_left_by_tests_are_not_attributed_to_a_todo(project: Example):
    reports = ("--planverify-report", "junit=reports.xml", "--junitxml=own.xml")
    planverify(project, "init", "--agents")
    project.verify(*reports)
    planverify(project, "gaps", "-o", "gaps.json")
    planverify(project, "report", "sarif=reports.sarif")
    run = project.verify(*reports)

    assert run.exit_code == 0, str(run)
    assert (project.root / "left.txt").exists()
    planverify(project, "gaps", "-o", "tests/gaps.json")
    planverify(project, "gaps", "-o", "code.py")
    project.write({"AGENTS.md": "by hand", "left.txt": "by hand"})
    shown = str(outside(project.verify()))
    assert "tests/gaps.json changed, but protected" in shown
    assert "AGENTS.md, code.py, left.txt changed, but not in the allowed_files" in shown


def planverify(project: Example, *words: str) -> Ran:
    done = forked(words, project.root, program="planverify")
    assert done.status in (0, 1), f"{words}: {done.out}{done.err}"
    return done


def test_only_changes_outside_allowed_files_halt_the_run_and_are_listed(project: Example):
    git(project.root, "mv", "b/y.py", "new\nline.py")
    project.write({"a/x.py": "x = 2\n", "a/deep/new.py": "", "a/__pycache__/x.pyc": "", ".coverage": ""})
    project.write({"a/secret.py": "", "tests/test_all.py": "def test_all(): pass\n"})

    run = project.verify()

    assert run.exit_code == 13, str(run)
    assert run.category("a") == "ALLOWLIST_VIOLATION"
    listed = "a/secret.py, b/y.py, new line.py changed"
    assert outside(run) == (
        f"{listed}, but not in the allowed_files of any claimed or selected todo; "
        "tests/test_all.py changed, but protected by the plan"
    )
    assert {"a/deep/new.py", "a/x.py"} <= set(run.outcomes["a"]["touched_files"])
    assert run.check("a")["verdict"] == "passed"
    assert run.states == {"a": "test_failed", "b": "done", "c": "blocked"}
    assert "No claimed or selected todo may change" in " ".join(run.output.split())
    assert "commit it if it is older than the work" in " ".join(run.output.split())
    halted = planner("next", "plan.yaml", cwd=project.root)
    assert f"stop   ALLOWLIST_VIOLATION in a: {listed}" in halted.out, halted.err


def test_other_plans_in_the_root_are_not_the_work_of_a_plan_in_a_folder(project: Example):
    """A plan of ``planverify iterate`` is in a folder of its own, and the plan of the root may be new."""
    item = f'{{id: a, title: A, verify: {COMMAND}, allowed_files: ["a/**", out.json]}}'
    plan = f"todo_list_id: one\nitems: [{item}]\n"
    project.write({"new.yaml": plan, "iterations/one.yaml": f"root: ..\n{plan}"})

    assert project.verify("iterations/one.yaml").exit_code == 0


def test_a_change_is_checked_against_claimed_or_selected_todos(project: Example):
    project.write({"b/y.py": "y = 2\n"})

    asked = project.verify("plan.yaml::b")
    assert asked.exit_code == 0, str(asked)
    alone = project.verify("plan.yaml::a")
    assert outside(alone) == "b/y.py changed, but not in the allowed_files of any claimed or selected todo"
    assert "verify the todo that made it, too" in " ".join(alone.output.split())
    assert project.verify("plan.yaml::a", "--planverify-worked", "b").exit_code == 0
    claimed = project.verify("--planverify-scope", "claimed")  # only a is claimed
    assert claimed.exit_code == 13
    assert "b/y.py" in str(outside(claimed))


def test_a_selected_branch_follows_the_work_on_the_dependencies_of_its_todo(tmp_path: Path):
    example = Example(tmp_path, FILES)
    repair = {"parent_id": "b", "branch_depth": 1, "branch_reason": "test_failure", "is_temporary": True}
    example.plan(
        todo("a", COMMAND, allowed_files=["a/**"]),
        todo("b", COMMAND, after=("a",), allowed_files=["b/**"]),
        todo("b_branch_01", COMMAND, allowed_files=["b/**"], **repair),
    )
    commit_all(tmp_path)
    example.write({"a/x.py": "x = 2\n", "b/y.py": "y = 2\n"})
    assert example.verify("plan.yaml::b_branch_01").exit_code == 0


def test_allowed_files_without_git_or_a_baseline_give_a_note(tmp_path: Path):
    example = Example(tmp_path, FILES)
    example.plan(todo("a", COMMAND, allowed_files=["a/**"]))

    run = example.verify()

    assert run.exit_code == 0
    assert run.document is not None
    assert any("allowed_files" in note and "baseline" in note for note in run.document["run"]["notes"])


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_that_git_refuses_gives_a_note_with_the_remedy(project: Example):
    os.chown(project.root, 12345, -1)
    home = {"HOME": str(project.root)}  # without a safe.directory in the user's settings
    status = subprocess.run(["git", "status"], cwd=project.root, env={**os.environ, **home}, check=False)
    if status.returncode == 0:
        pytest.skip("the settings of this machine make every repository a safe.directory")

    run = project.verify(env=home)

    text = " ".join(run.output.split())
    assert "allowed_files and protected_files were not checked: git refuses to answer" in text, str(run)
    assert f"git config --global --add safe.directory {project.root}" in text


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "no-git"])
def test_changes_are_counted_from_the_baseline_even_if_committed_since(tmp_path: Path, with_git: bool):
    example = Example(tmp_path, {**FILES, "tests/test_all.py": "def test_all(): pass\n", "old.txt": ""})
    example.plan(
        todo("a", COMMAND, allowed_files=["a/**"]),
        metadata={"budget": {"new_files": 2}},
    )
    if with_git:
        commit_all(tmp_path)
    example.write({"dirty.txt": "before the work"})
    done = planverify(example, "baseline", "plan.yaml")
    assert ("no git revision" in done.out) is not with_git

    example.write({"a/x.py": "x = 2\n", "b/y.py": "y = 2\n"})
    if with_git:
        commit_all(tmp_path)
    run = example.verify()
    assert run.exit_code == 13, str(run)
    assert run.outcomes["a"]["touched_files"] == ["a/x.py"]
    assert run.outcomes["a"]["diff_hash"].startswith("sha256:")
    assert outside(run) == "b/y.py changed, but not in the allowed_files of any todo"

    if with_git:
        asked = example.verify("--planverify-baseline", "HEAD~1")  # instead of the recorded baseline
        assert outside(asked) == "b/y.py, dirty.txt changed, but not in the allowed_files of any todo"
        return
    example.write({f"a/new{number}.py": "" for number in range(3)} | {"b/y.py": "y = 1\n"})
    grown = example.verify()
    assert grown.exit_code == 12, str(grown)
    assert grown.verdicts["a"] == {"tests[0]": "not_run", "budget": "failed"}


def test_a_missing_file_is_suggested_only_where_the_todo_may_write_it(tmp_path: Path):
    example = Example(
        tmp_path,
        {
            "conftest.py": "",
            "shop/__init__.py": "from .totals import total\n",
            "shop/prices.py": "",
            "tests/test_shop.py": "import shop\ndef test_total(): assert shop.total([1]) == 1\n",
        },
    )
    example.plan(
        todo("may", "pytest tests/test_shop.py", allowed_files=["shop/**"]),
        todo("may_not", "pytest tests/test_shop.py", allowed_files=["shop/prices.py"]),
    )

    run = example.verify("--planverify-confirm=0")

    assert {run.category(name) for name in ("may", "may_not")} == {"ARTIFACT_MISSING"}
    suggestions = {name: found["failure_evidence"]["suggestion"] for name, found in run.outcomes.items()}
    assert "write shop/totals.py" in suggestions["may"]
    assert suggestions["may_not"] is None
