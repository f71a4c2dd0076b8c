"""Files written by a run: plans that share a folder, outcomes in links and pipes, reports."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from example_project import ONLY_THIS_PLUGIN, Example, todo
from real_command import null_device, outer_environment
from real_planner import planner

GREEN_AND_RED = {"test_it.py": "def test_green(): pass\ndef test_red(): assert 1 == 2\n"}
SCRIPTS = Path(sys.executable).parent


def run(*argv: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command that is installed beside this interpreter; capture its two streams separately."""
    inherited = outer_environment()
    done = subprocess.run(
        [SCRIPTS / argv[0], *argv[1:]],
        cwd=cwd,
        env=inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NO_COLOR": "1"} | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done


def verify(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `pytest --planverify WORDS`."""
    options = (*ONLY_THIS_PLUGIN, "--planverify-confirm", "1")
    return run("pytest", *options, "--planverify", *words, cwd=cwd, **env)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Return a folder with two plans that have a todo with the same id, one green and one red."""
    example = Example(tmp_path, GREEN_AND_RED)
    example.plan(todo("it", "pytest test_it.py::test_green"), path="a.yaml", todo_list_id="shop/a")
    example.plan(todo("it", "pytest test_it.py::test_red"), path="b.yaml", todo_list_id="shop/b")
    return tmp_path


# -- plans that share a folder -----------------------------------------------------------------------


def test_each_plan_of_a_folder_has_its_own_baseline_and_outcomes(two: Path) -> None:
    assert run("planverify", "baseline", "a.yaml", cwd=two).returncode == 0
    assert verify("b.yaml", cwd=two).returncode == 1
    assert run("planverify", "baseline", "b.yaml", cwd=two).returncode == 0
    assert verify("a.yaml", cwd=two).returncode == 0

    for command in ("next", "status"):
        of_a, of_b = (planner(command, plan, cwd=two) for plan in ("a.yaml", "b.yaml"))
        assert (of_a.err, of_b.err) == ("", "")
        assert "another version" not in of_a.out + of_b.out
    assert "1 of 1 todo done" in planner("next", "a.yaml", cwd=two).out
    assert "0 of 1 todo done, 1 failed" in planner("next", "b.yaml", cwd=two).out
    assert "✗ failed" in planner("status", "b.yaml", "it", cwd=two).out
    assert read(two / ".planverify/outcomes.json")["plans"][0]["path"] == "a.yaml"
    (failure,) = read(two / ".planverify/plans/shop%2Fb/outcomes.json")["outcomes"][0]["failures"]
    assert failure["since"] == "unknown", "b was verified before it had a baseline"


def test_last_failed_uses_the_failures_of_the_same_plan(two: Path) -> None:
    verify("b.yaml", cwd=two)
    verify("a.yaml", cwd=two)
    outcomes = two / ".planverify/plans/shop%2Fb/outcomes.json"

    assert verify("b.yaml", "--lf", cwd=two).returncode == 1
    assert [test["outcome"] for test in read(outcomes)["outcomes"][0]["checks"][0]["tests"]] == ["failed"]


def test_a_run_of_several_plans_writes_the_outcomes_of_each(two: Path) -> None:
    assert verify("a.yaml", "b.yaml", cwd=two).returncode == 1

    latest = read(two / ".planverify/outcomes.json")
    a, b = (read(two / f".planverify/plans/shop%2F{name}/outcomes.json") for name in "ab")
    assert [plan["path"] for plan in latest["plans"]] == ["a.yaml", "b.yaml"]
    assert latest["run"]["exit_status"] == 1
    assert [len(document["outcomes"]) for document in (latest, a, b)] == [2, 1, 1]
    assert (a["run"]["exit_status"], b["run"]["exit_status"]) == (0, 1)
    assert a["summary"]["todos"] == {"done": 1}
    assert (len(a["causes"]), len(b["causes"])) == (0, 1)
    assert planner("next", "a.yaml", cwd=two).status == 0


def test_plans_with_different_roots_write_below_their_root(tmp_path: Path) -> None:
    for name in ("one", "two"):
        example = Example(tmp_path / name, GREEN_AND_RED)
        example.plan(todo("it", "pytest test_it.py::test_green"), todo_list_id=name)

    done = verify("one/plan.yaml", "two/plan.yaml", cwd=tmp_path)

    assert done.returncode == 0, done.stdout
    assert "outcomes  one/.planverify/outcomes.json, two/.planverify/outcomes.json" in done.stdout
    for name in ("one", "two"):
        for file in ("outcomes.json", f"plans/{name}/outcomes.json"):
            document = read(tmp_path / name / ".planverify" / file)
            assert [plan["todo_list_id"] for plan in document["plans"]] == [name]


# -- destinations of the outcomes --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_with_outcomes_on_standard_output_messages_go_to_standard_error(two: Path, name: str) -> None:
    done = verify("a.yaml", "b.yaml", f"--planverify-outcomes={name}", cwd=two)

    assert done.returncode == 1
    assert json.loads(done.stdout)["summary"]["todos"] == {"done": 1, "test_failed": 1}
    assert "1 done, 1 failed" in done.stderr
    assert not (two / ".planverify/outcomes.json").exists()


def test_outcomes_can_be_written_to_links_pipes_and_devices(two: Path) -> None:
    (two / "link.json").symlink_to("there.json")
    (two / "there.json").write_text("old")
    (two / "there.json").chmod(0o640)
    os.mkfifo(two / "pipe")
    null = null_device(two)
    read_from_pipe: list[str] = []
    reader = threading.Thread(target=lambda: read_from_pipe.append((two / "pipe").read_text()))
    reader.start()

    for name in ("link.json", "pipe", str(null)):
        assert verify("a.yaml", "--planverify-outcomes", name, cwd=two).returncode == 0
    reader.join(10)

    assert (two / "link.json").is_symlink()
    assert read(two / "there.json")["run"]["exit_status"] == 0
    assert (two / "there.json").stat().st_mode & 0o777 == 0o640
    assert json.loads(read_from_pipe[0])["run"]["exit_status"] == 0
    assert (two / "pipe").is_fifo()
    assert null.is_char_device()


def test_outcomes_for_a_pipe_without_a_reader_are_an_error(two: Path) -> None:
    os.mkfifo(two / "pipe")

    done = verify("a.yaml", "--planverify-outcomes", "pipe", cwd=two)

    assert done.returncode == 4
    assert "pipe: cannot be written: nothing reads this pipe" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [(".", "it is a folder; name a file in it"), ("a.yaml/x", "a part of its path is not a folder")],
)
def test_an_unwritable_outcome_file_is_reported_before_any_test_runs(
    two: Path, name: str, said: str
) -> None:
    done = verify("a.yaml", "--planverify-outcomes", name, cwd=two)

    assert done.returncode == 4
    assert f"cannot be written: {said}" in done.stdout
    assert not (two / ".planverify").exists()


@pytest.mark.parametrize("name", ["план.yaml", os.fsdecode(b"\xff\xfe.yaml")])
def test_names_that_the_locale_cannot_encode_are_supported(tmp_path: Path, name: str) -> None:
    example = Example(tmp_path, GREEN_AND_RED)
    example.plan(todo("it", "pytest test_it.py::test_red", title="Заголовок"), todo_list_id="заказы")
    (tmp_path / "plan.yaml").rename(tmp_path / name)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0"}

    done = verify(name, cwd=tmp_path, **ascii_only)
    decided = run("planner", "next", name, cwd=tmp_path, **ascii_only)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "\\u0437\\u0430\\u043a\\u0430\\u0437\\u044b" in done.stdout
    document = read(tmp_path / ".planverify/outcomes.json")
    assert document["plans"][0]["todo_list_id"] == "заказы"
    assert document["plans"][0]["path"] == name.encode("utf-8", "surrogateescape").decode(
        "utf-8", "replace"
    )
    assert "1 failed" in decided.stdout, decided.stderr


def test_a_selector_that_the_locale_cannot_encode_is_refused_with_a_remedy(tmp_path: Path) -> None:
    example = Example(tmp_path, {"test_тест.py": "def test(): pass\n"})
    example.plan(todo("it", "pytest test_тест.py"))

    done = verify("plan.yaml", cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0")

    assert done.returncode == 4
    assert "this locale cannot encode (ascii); run with LC_ALL=C.UTF-8 or PYTHONUTF8=1" in done.stdout
    example.plan(todo("it", "python -m py_compile test_тест.py"))
    assert verify("plan.yaml", cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0").returncode == 0


# -- reports of failed todos -------------------------------------------------------------------------


def git_status(folder: Path) -> str:
    words = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_git_status_ignores_the_files_of_a_run(two: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=two, check=True)
    before = git_status(two)

    verify("b.yaml", "-p", "no:cacheprovider", cwd=two, PYTHONDONTWRITEBYTECODE="1")

    assert (two / "diagnostics/it_failure_report.json").is_file()
    assert git_status(two) == before
    (two / "diagnostics/mine.txt").touch()
    assert git_status(two).replace(before, "") != ""
    assert "diagnostics/mine.txt" in git_status(two)


def test_no_gitignore_is_added_to_an_existing_diagnostics_folder(two: Path) -> None:
    (two / "diagnostics").mkdir()

    verify("b.yaml", cwd=two)

    assert os.listdir(two / "diagnostics") == ["it_failure_report.json"]


def test_a_failure_report_is_removed_when_its_todo_passes(tmp_path: Path) -> None:
    example = Example(tmp_path, GREEN_AND_RED)
    example.plan(todo("a", "pytest test_it.py::test_red"), todo("b", "pytest test_it.py::test_red"))
    verify("plan.yaml", cwd=tmp_path)
    reports = tmp_path / "diagnostics"
    (reports / "c_failure_report.json").write_text("{}")
    assert len(list(reports.glob("*.json"))) == 3
    example.write({"test_it.py": "def test_red(): pass\n"})

    verify("plan.yaml::a", cwd=tmp_path)
    assert sorted(path.name for path in reports.glob("*.json")) == [
        "b_failure_report.json",
        "c_failure_report.json",
    ]
    verify("plan.yaml", "-k", "nothing", cwd=tmp_path)
    assert (reports / "b_failure_report.json").exists(), "it was not run"


def test_failure_reports_of_other_plans_or_the_user_are_kept(two: Path) -> None:
    verify("b.yaml", cwd=two)
    report = two / "diagnostics/it_failure_report.json"
    before = report.read_bytes()

    for kept in (before, b"mine", b"[]"):
        report.write_bytes(kept)
        assert verify("a.yaml", cwd=two).returncode == 0
        assert report.read_bytes() == kept


def an_example(folder: Path, seconds: float = 0) -> Example:
    text = f"import time\ndef test_it(): time.sleep({seconds})\ndef test_red(): assert 0\n"
    example = Example(folder, {"test_it.py": text})
    example.plan(todo("draw", "pytest test_it.py::test_it"), todo("paint", "pytest test_it.py::test_red"))
    return example


def test_simultaneous_runs_have_separate_journals_and_valid_outcomes(tmp_path: Path):
    example = an_example(tmp_path, seconds=0.3)

    with ThreadPoolExecutor(2) as pool:
        runs = [each.result() for each in [pool.submit(example.verify), pool.submit(example.verify)]]

    assert [run.exit_code for run in runs] == [1, 1], str(runs[0]) + str(runs[1])
    assert example.verify("--collect-only").document is not None
    journals = [
        run / "journal.jsonl" for run in example.runs if (run / "journal.jsonl").read_text().count("\n") > 2
    ]
    for journal in journals[:2]:
        records = [json.loads(line) for line in journal.read_text().splitlines()]
        assert len({record["run_id"] for record in records if "run_id" in record}) == 1
        assert {record["nodeid"] for record in records if record["record"] == "test_finished"} == {
            "test_it.py::test_it",
            "test_it.py::test_red",
        }
    document = json.loads(example.outcome_file.read_text())
    assert document["run"]["run_id"] in {run.name for run in example.runs}


def test_the_records_of_the_last_twenty_runs_are_kept(tmp_path: Path):
    example = an_example(tmp_path)
    for number in range(25):
        old = tmp_path / ".planverify/runs" / f"20200101T0000{number:02}-1-abc"
        old.mkdir(parents=True)
        os.utime(old, (number, number))

    example.verify("plan.yaml::draw")

    names = [run.name for run in example.runs]
    assert len(names) == 20
    assert names[0] == "20200101T000006-1-abc"


def test_the_planverify_folder_is_git_ignored_and_private(tmp_path: Path):
    example = an_example(tmp_path)

    example.verify("plan.yaml::draw")

    folder = tmp_path / ".planverify"
    assert "*" in (folder / ".gitignore").read_text().splitlines()
    private = [example.outcome_file, *example.runs]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in private} == {0}


def test_a_root_that_cannot_be_written_to_is_a_usage_error(tmp_path: Path):
    example = an_example(tmp_path)
    (tmp_path / ".planverify").write_text("")

    run = example.verify()

    assert run.exit_code == 4, str(run)
    assert "cannot be written" in run.output
    assert "Traceback" not in run.output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_root_is_a_usage_error(tmp_path: Path):
    example = an_example(tmp_path)
    tmp_path.chmod(0o555)
    try:
        run = example.verify()
    finally:
        tmp_path.chmod(0o755)

    assert run.exit_code == 4, str(run)
    assert "make the plan's root writable" in run.output


def test_an_outcome_file_may_lie_in_a_folder_that_does_not_exist_yet(tmp_path: Path):
    example = an_example(tmp_path)
    path = tmp_path / "build/reports/outcomes.json"

    run = example.verify(
        "plan.yaml::draw", "--planverify-outcomes", "build/reports/outcomes.json", outcomes=path
    )

    assert run.exit_code == 0, str(run)
    assert run.states["draw"] == "done"
