"""Files written by a run: plans that share a folder, outcomes in links and pipes, reports."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_project import ONLY_THIS_PLUGIN, Example, Verified, todo
from real_command import LEAN_TERMINAL, outer_environment
from real_planner import forked, planner

GREEN_AND_RED = {"test_it.py": "def test_green(): pass\ndef test_red(): assert 1 == 2\n"}
ASCII_ONLY = {"LC_ALL": "C", "PYTHONUTF8": "0"}
OF_THE_USER = {"mine.txt": "", "mine_failure_report.json": "mine", "list_failure_report.json": "[]"}
"""Files beside the failure reports; two are named like the reports of todos."""


def verify(*words: str, cwd: Path, forked: bool = True, **env: str) -> Verified:
    """Run `pytest --planverify WORDS`."""
    run = Example(cwd).verify("--planverify-confirm=0", *words, env=env, forked=forked)
    assert "Traceback" not in run.output, str(run)
    return run


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_two(tmp_path)


def write_two(folder: Path) -> Path:
    """Write two plans that have a todo with the same id, one green and one red."""
    example = Example(folder, GREEN_AND_RED)
    green = "pytest test_it.py::test_green"
    example.plan(
        *(todo(name, green) for name in ("it", "mine", "list")), path="a.yaml", todo_list_id="shop/a"
    )
    example.plan(todo("it", "pytest test_it.py::test_red"), path="b.yaml", todo_list_id="shop/b")
    return folder


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository in which the red plan was verified, then the green one, which has a baseline.

    In between, the user has written files beside the failure reports.
    """
    root = write_two(tmp_path_factory.mktemp("repository") / "shop")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    unchanged = ("-p", "no:cacheprovider")
    assert forked(("baseline", "a.yaml"), root, program="planverify").status == 0
    assert verify("b.yaml", *unchanged, cwd=root).exit_code == 1
    for name, text in OF_THE_USER.items():
        (root / "diagnostics" / name).write_text(text)
    assert verify("a.yaml", *unchanged, cwd=root).exit_code == 0
    return root


# -- plans that share a folder -----------------------------------------------------------------------


def test_each_plan_of_a_folder_has_its_own_baseline_and_outcomes(repository: Path) -> None:
    for command in ("next", "status"):
        of_a, of_b = (planner(command, plan, cwd=repository) for plan in ("a.yaml", "b.yaml"))
        assert (of_a.err, of_b.err) == ("", "")
        assert "another version" not in of_a.out + of_b.out
    assert "3 of 3 todos done" in planner("next", "a.yaml", cwd=repository).out
    assert "0 of 1 todo done, 1 failed" in planner("next", "b.yaml", cwd=repository).out
    assert "✗ failed" in planner("status", "b.yaml", "it", cwd=repository).out
    assert read(repository / ".planverify/outcomes.json")["plans"][0]["path"] == "a.yaml"
    (failure,) = read(repository / ".planverify/plans/shop%2Fb/outcomes.json")["outcomes"][0]["failures"]
    assert failure["since"] == "unknown", "only a has a baseline"
    baselines = [path.parent.name for path in repository.glob(".planverify/plans/*/baseline.json")]
    assert baselines == ["shop%2Fa"]


def test_last_failed_uses_the_failures_of_the_same_plan(repository: Path, tmp_path: Path) -> None:
    root = Example(repository).copied_to(tmp_path / "copy").root

    assert verify("b.yaml", "--lf", cwd=root).exit_code == 1
    (outcome,) = read(root / ".planverify/plans/shop%2Fb/outcomes.json")["outcomes"]
    assert [test["outcome"] for test in outcome["checks"][0]["tests"]] == ["failed"]


def test_a_run_of_several_plans_writes_the_outcomes_of_each_below_its_root(tmp_path: Path) -> None:
    one = write_two(tmp_path / "one")
    example = Example(tmp_path / "two", GREEN_AND_RED)
    example.plan(todo("it", "pytest test_it.py::test_green"), todo_list_id="two")

    done = verify("one/a.yaml", "one/b.yaml", "two/plan.yaml", cwd=tmp_path)

    assert done.exit_code == 1
    assert "outcomes  one/.planverify/outcomes.json, two/.planverify/outcomes.json" in done.output
    latest = read(one / ".planverify/outcomes.json")
    a, b = (read(one / f".planverify/plans/shop%2F{name}/outcomes.json") for name in "ab")
    assert [plan["todo_list_id"] for plan in latest["plans"]] == ["shop/a", "shop/b"]
    assert latest["run"]["exit_status"] == 1
    assert [len(document["outcomes"]) for document in (latest, a, b)] == [4, 3, 1]
    assert (a["run"]["exit_status"], b["run"]["exit_status"]) == (0, 1)
    assert a["summary"]["todos"] == {"done": 3}
    assert (len(a["causes"]), len(b["causes"])) == (0, 1)
    assert planner("next", "a.yaml", cwd=one).status == 0
    for file in ("outcomes.json", "plans/two/outcomes.json"):
        document = read(example.root / ".planverify" / file)
        assert [plan["todo_list_id"] for plan in document["plans"]] == ["two"]


# -- destinations of the outcomes --------------------------------------------------------------------


def test_with_outcomes_on_standard_output_messages_go_to_standard_error(two: Path) -> None:
    words = (*ONLY_THIS_PLUGIN, "--planverify", "a.yaml::it", "b.yaml", "--planverify-outcomes=-")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--planverify-confirm=0"],
        cwd=two,
        env=outer_environment() | LEAN_TERMINAL,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert json.loads(done.stdout)["summary"]["todos"] == {"done": 1, "pending": 2, "test_failed": 1}
    assert "1 done, 1 failed" in done.stderr
    assert not (two / ".planverify/outcomes.json").exists()


def test_names_that_the_locale_cannot_encode_are_supported_except_in_selectors(tmp_path: Path) -> None:
    example = Example(tmp_path, {**GREEN_AND_RED, "test_тест.py": "def test(): pass\n"})
    names = {"заказы": "план.yaml", "другие": os.fsdecode(b"\xff\xfe.yaml")}
    red = todo("it", "pytest test_it.py::test_red", title="Заголовок")
    compiled = todo("compiled", "python -m py_compile test_тест.py")
    for todo_list_id, name in names.items():
        example.plan(red, compiled, todo_list_id=todo_list_id)
        (tmp_path / "plan.yaml").rename(tmp_path / name)

    done = verify(*names.values(), cwd=tmp_path, **ASCII_ONLY)
    decided = planner("next", names["другие"], cwd=tmp_path, env=ASCII_ONLY)

    assert done.exit_code == 1, str(done)
    assert "\\u0437\\u0430\\u043a\\u0430\\u0437\\u044b" in done.output
    document = read(tmp_path / ".planverify/outcomes.json")
    assert {plan["todo_list_id"]: plan["path"] for plan in document["plans"]} == {
        "заказы": "план.yaml",
        "другие": "\ufffd\ufffd.yaml",
    }
    assert [outcome["state"] for outcome in document["outcomes"]] == ["test_failed", "done"] * 2
    assert "1 failed" in decided.out, decided.err

    # A selector in such a name cannot be passed on to pytest.
    example.plan(todo("it", "pytest test_тест.py"))
    refused = verify("plan.yaml", cwd=tmp_path, **ASCII_ONLY)

    assert refused.exit_code == 4
    assert "this locale cannot encode (ascii); run with LC_ALL=C.UTF-8 or PYTHONUTF8=1" in refused.output


# -- reports of failed todos -------------------------------------------------------------------------


def test_failure_reports_of_other_plans_or_the_user_are_kept(repository: Path) -> None:
    assert read(repository / "diagnostics/it_failure_report.json")["plan"]["todo_list_id"] == "shop/b"
    for name, text in OF_THE_USER.items():
        assert (repository / "diagnostics" / name).read_text() == text


def test_a_failure_report_is_removed_when_its_todo_passes(tmp_path: Path) -> None:
    example = Example(tmp_path, {"test_it.py": "".join(f"def test_{name}(): pass\n" for name in "abc")})
    example.plan(*(todo(name, f"pytest test_it.py::test_{name}") for name in "abc"))
    for name in "abc":
        report = {"plan": {"todo_list_id": "example"}, "todo": {"id": name}}
        example.write({f"diagnostics/{name}_failure_report.json": json.dumps(report)})

    verify("plan.yaml::a,c", "-k", "test_a", cwd=tmp_path)

    left = {path.name for path in (tmp_path / "diagnostics").iterdir()}
    assert left == {"b_failure_report.json", "c_failure_report.json"}, "neither b nor c was run"


# -- runs and their folder ---------------------------------------------------------------------------


def test_the_files_of_a_run_are_git_ignored_and_private(repository: Path) -> None:
    words = ["git", "status", "--porcelain", "--untracked-files=all"]
    shown = subprocess.run(words, cwd=repository, check=True, capture_output=True, text=True).stdout
    example = Example(repository)

    assert shown.split()[1::2] == ["a.yaml", "b.yaml", "diagnostics/mine.txt", "test_it.py"]
    private = [example.outcome_file, *example.runs]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in private} == {0}


def test_a_journal_that_cannot_be_written_is_a_usage_error(two: Path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))  # less than the first record
    try:
        done = verify("a.yaml", cwd=two, forked=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert done.exit_code == 4, str(done)
    assert "the run's records cannot be written: File too large" in done.output


@pytest.mark.parametrize(
    ("option", "obstacle", "remedy"),
    [
        ("--planverify-outcomes=.", None, "cannot be written: it is a folder; name a file in it"),
        ("-q", ".planverify", "make the plan's root writable"),
    ],
    ids=["outcomes", "root"],
)
def test_a_place_that_cannot_be_written_to_is_reported_before_any_test_runs(
    two: Path, option: str, obstacle: str | None, remedy: str
):
    if obstacle:
        (two / obstacle).touch()

    done = verify("a.yaml", option, cwd=two)

    assert done.exit_code == 4, str(done)
    assert remedy in done.output
    assert not (two / ".planverify").is_dir()
