"""A criterion has the verdict of its command run alone, however its worker is started.

Each command of a project runs as a plain `pytest` process; in a worker, serially and two at once; and
cold. All verdicts must agree. The projects are those in `fixtures/projects`, and generated ones whose tests
would affect each other in one process. For more seeds:
``python tests/support/crosstalk_generator.py --seeds 0:300``.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from crosstalk_generator import PLAIN_READING, WAYS, Crosstalk, disagreements, generated, of_surroundings
from example_project import Example, todo
from pytest_server import verdicts_alone
from real_command import (
    FULL,
    LEAN_TERMINAL,
    WORKER,
    outer_environment,
    planverify,
    read_outcomes,
    unmeasured,
)
from text_bundles import read_bundle, unpack_bundle

from pytest_planverify import python_command

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures/projects"
NAMES = sorted(path.stem for path in PROJECTS.glob("*.txt") if "expected.yaml" in read_bundle(path))

Criterion = tuple[str, str]
"""The id of a todo and the id of one of its checks."""

EVERY = 1 if FULL else 6
"""Sampling step of commands to run alone; no change of planverify affects their verdicts."""


def expected_of(name: str) -> dict[Criterion, str]:
    todos: dict[str, dict[str, str]] = read_yaml(name, "expected.yaml")
    return {(todo, check): checks[check] for todo, checks in todos.items() for check in checks}


def read_yaml(name: str, file: str) -> Any:
    return yaml.safe_load(read_bundle(PROJECTS / f"{name}.txt")[file])


ALL = {name: list(dict.fromkeys(todo for todo, _ in expected_of(name))) for name in NAMES}
COLD = {"broken": ["syntax"], "nested": ["packages"], "vacuous": ["modules_skipped"]}
"""The todos to run in cold workers, by project; all of them take minutes."""

SEEDS = (0, 31) if FULL else (31,)
"""Seeds of projects with many features and few commands."""

GENERATED_IN = tuple(WAYS) if FULL else ("workers",)
"""Ways to run generated projects; by default all other projects run in two workers at once."""

FORKED_AT_ONCE = tuple(WAYS) if FULL else ("two workers at once",)
"""Ways to run projects with surroundings, which can affect only the preparation of forked workers."""

JSON_REPORTS = {"PYTEST_ADDOPTS": "-p pytest_jsonreport.plugin"}
"""The variable that loads the only plugin that the projects use."""

ONLY_POSIX = {
    "os": "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK getpgid getsid killpg pread pwrite"
    " sched_getaffinity uname waitid",
    "signal": "SIGALRM SIGCONT SIGHUP SIGRTMIN setitimer",
    "socket": "recv_fds send_fds",
    "time": "tzset",
}
"""Names that Windows lacks, by module, as far as the standard library works without them here."""


def test_expected_verdicts_hold_for_commands_run_alone(tmp_path: Path):
    commands: list[tuple[Path, str]] = []
    wanted: list[str] = []
    for name in NAMES:
        root, expected = copy_of(name, tmp_path), expected_of(name)
        assert set(commands_of(name)) == set(expected)
        assert set(expected.values()) == {"passed", "failed"}
        for criterion, command in list(commands_of(name).items())[::EVERY]:
            commands.append((root, command))
            wanted.append(expected[criterion])

    found = verdicts_alone(commands, unmeasured(outer_environment()) | LEAN_TERMINAL | JSON_REPORTS)

    wrong = [
        f"{root.name}: expected {verdict}, got {each}: {command}"
        for (root, command), verdict, each in zip(commands, wanted, found, strict=True)
        if verdict != each
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("todos", "way"),
    [(ALL, "two workers at once"), (ALL if FULL else COLD, "cold")],
    ids=["workers", "cold"],
)
def test_verdicts_equal_those_of_commands_run_alone(todos: dict[str, list[str]], way: str, tmp_path: Path):
    plans = [f"{copy_of(name, tmp_path).name}/plan.yaml::{','.join(todos[name])}" for name in todos]
    # Failures would run again cold, which this tests for some.
    options = ("--planverify-confirm=0", *WAYS[way])

    run = Example(tmp_path).verify(*plans, *options, env=JSON_REPORTS, timeout_seconds=600)

    wrong = [line for name in todos for line in differences(tmp_path / name, name, todos[name])]
    assert not wrong, "\n".join([*wrong, str(run)])


@pytest.mark.parametrize(
    ("project", "ways"),
    [
        *((generated(seed), GENERATED_IN) for seed in SEEDS),
        (of_surroundings("options of a conftest"), FORKED_AT_ONCE),
        (of_surroundings("plugin modules", "importlib mode and pythonpath"), FORKED_AT_ONCE),
    ],
    ids=lambda value: "+".join(getattr(value, "about", value)),
)
def test_generated_projects_have_the_same_verdicts_in_all_modes(
    project: Crosstalk, ways: tuple[str, ...], tmp_path: Path
):
    assert disagreements(project, tmp_path, ways) == []


def copy_of(name: str, folder: Path) -> Path:
    """Unpack the project into the folder; return its root, in which runs may write files."""
    return unpack_bundle(PROJECTS / f"{name}.txt", folder / name)


def commands_of(name: str) -> dict[Criterion, str]:
    plan: dict[str, Any] = read_yaml(name, "plan.yaml")
    return {
        (todo["id"], f"tests[{number}]"): test["cmd"]
        for todo in plan["items"]
        for number, test in enumerate(todo["acceptance_criteria"]["tests"])
    }


def differences(root: Path, name: str, todos: list[str]) -> list[str]:
    """Return one line for each criterion of these todos whose verdict is not the expected one."""
    commands = commands_of(name)
    expected = {
        criterion: verdict for criterion, verdict in expected_of(name).items() if criterion[0] in todos
    }
    said = {
        (outcome["todo_id"], check["id"]): check["verdict"]
        for outcome in read_outcomes(root)["outcomes"]
        for check in outcome["checks"]
        if outcome["todo_id"] in todos
    }
    assert said.keys() == expected.keys()
    return [
        f"{name} {todo} {check}: expected {expected[todo, check]}, got {verdict}: {commands[todo, check]}"
        for (todo, check), verdict in said.items()
        if PLAIN_READING.get(verdict) != expected[todo, check]
    ]


def test_option_of_the_run_takes_no_word_of_a_command(tmp_path: Path):
    test = "def test_a(): pass\n"
    example = Example(tmp_path, {"test_a.py": test, "test_b.py": "def test_b(): assert 0\n"})
    example.plan(todo("a", "pytest test_a.py"))

    run = example.verify("--debug")

    assert run.exit_code == 0, str(run)
    assert (tmp_path / "test_a.py").read_text() == test


def test_flags_of_a_worker_are_those_of_its_command(tmp_path: Path):
    test = """\
        import subprocess, sys
        def test_flags():
            flags = subprocess._args_from_interpreter_flags()
            assert subprocess.run([sys.executable, *flags, "-c", "import shop"]).returncode == 0
    """
    example = Example(tmp_path, {"shop.py": "", "test_a.py": test})
    # Another interpreter, as this is read when it starts.
    example.plan(todo("forked", "pytest test_a.py"), todo("cold", "PYTHONHASHSEED=1 pytest test_a.py"))

    run = planverify("verify", "plan.yaml", cwd=tmp_path)

    assert run.returncode == 0, run.stdout
    isolations = [outcome["checks"][0]["isolation"] for outcome in read_outcomes(tmp_path)["outcomes"]]
    assert isolations == [WORKER, "spawned"]


def test_module_of_the_project_replaces_none_that_starts_its_verification(tmp_path: Path):
    (tmp_path / "types.py").write_text("raise SystemExit(0)")
    command = python_command("print(runpy.__name__)")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "runpy\n"


def test_workers_at_the_same_time_empty_no_common_basetemp(tmp_path: Path):
    waiting = """\
        import pathlib, time
        def test_kept(tmp_path):
            (tmp_path / "file").touch()
            pathlib.Path(f"{__name__}.started").touch()
            give_up = time.monotonic() + 20
            while len(list(pathlib.Path().glob("*.started"))) < 3 and time.monotonic() < give_up:
                time.sleep(0.01)
            assert (tmp_path / "file").exists()
    """
    example = Example(tmp_path, {f"test_{name}.py": waiting for name in "abc"})
    example.plan(*(todo(name, f"pytest test_{name}.py") for name in "abc"))

    run = example.verify("-p", "xdist", "-n", "3", "--basetemp=scratch/tmp")

    assert run.exit_code == 0, str(run)
    assert len(list((tmp_path / "scratch/tmp").iterdir())) == 3


def test_a_plan_is_verified_and_repaired_without_the_calls_of_posix(tmp_path: Path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(
        f"import os, signal, socket, time\nfor module, names in {ONLY_POSIX}.items():\n"
        "    for name in names.split():\n        vars(globals()[module]).pop(name, None)\n"
    )
    paths = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("PLANVERIFY_NO_FORK", "1")
    example = Example(tmp_path / "root", {"test_it.py": "def test_a(): pass\ndef test_b(): assert 0\n"})
    example.plan(*(todo(name, f"pytest test_it.py::test_{name}") for name in ("a", "b")))

    run = example.verify("--planverify-confirm=0")
    told = planverify("next", "plan.yaml", cwd=example.root)

    assert run.verdicts == {"a": "passed", "b": "failed"}, str(run)
    assert run.exit_code == 1
    assert "1 of 2 todos done, 1 failed" in told.stdout, told.stderr
