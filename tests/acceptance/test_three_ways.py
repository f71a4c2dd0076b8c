"""A criterion has the verdict of its command run alone, however its worker is started.

Each command of a project runs as a plain `pytest` process; in a worker, serially and two at once; and
cold. All verdicts must agree. The projects are those in `fixtures/projects`, and generated ones whose tests
would affect each other in one process. For more seeds:
``python tests/support/crosstalk_generator.py --seeds 0:300``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from crosstalk_generator import WAYS, disagreements, generated, of_surroundings
from example_project import Example, Verified
from plain_pytest import verdicts_alone
from real_command import FULL, LEAN_TERMINAL, outer_environment, unmeasured
from text_bundles import read_bundle, unpack_bundle

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures/projects"
NAMES = sorted(path.stem for path in PROJECTS.glob("*.txt") if "expected.yaml" in read_bundle(path))

Criterion = tuple[str, str]
"""The id of a todo and the id of one of its checks."""

PLAIN_READING = {"passed": "passed", "failed": "failed", "inconclusive": "failed"}
"""The verdict in `expected.yaml`, by criterion verdict; others (`flaky`, `not_run` …) are errors."""

EVERY = 1 if FULL else 6
"""Sampling step of commands to run alone; no change of planverify affects their verdicts."""

ALL_TODOS = slice(None)
COLD = ALL_TODOS if FULL else slice(1, None, 7)
"""The todos to run in cold workers; all of them take minutes."""
IN_COLD = NAMES if FULL else ["broken", "nested", "vacuous"]
"""Projects to run in cold workers; tests of the others disturb only those of the same process."""

SEEDS = (0, 31) if FULL else (31,)
"""Seeds of projects with many features and few commands."""

GENERATED_IN = tuple(WAYS) if FULL else ("workers",)
"""Ways to run generated projects; by default all other projects run in two workers at once."""

FORKED_AT_ONCE = tuple(WAYS) if FULL else ("two workers at once",)
"""Ways to run projects with surroundings, which can affect only the preparation of forked workers."""

JSON_REPORTS = {"PYTEST_ADDOPTS": "-p pytest_jsonreport.plugin"}
"""The variable that loads the only plugin that the projects use."""


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


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_equal_those_of_commands_run_alone(name: str, tmp_path: Path):
    assert_expected(name, tmp_path, *WAYS["two workers at once"])


@pytest.mark.parametrize("name", IN_COLD)
def test_a_cold_worker_gives_the_same_verdicts(name: str, tmp_path: Path):
    assert_expected(name, tmp_path, *WAYS["cold"], chosen=COLD)


def assert_expected(name: str, folder: Path, *options: str, chosen: slice = ALL_TODOS) -> None:
    root = copy_of(name, folder)
    todos = list(dict.fromkeys(todo for todo, _ in expected_of(name)))[chosen]
    plan = "plan.yaml" if chosen == ALL_TODOS else f"plan.yaml::{','.join(todos)}"
    # Failures would run again cold, which the test of cold workers covers.
    options = (plan, "--planverify-confirm=0", *options)
    run = Example(root).verify(*options, env=JSON_REPORTS, timeout_seconds=600)

    wrong = differences(run, name, todos)
    assert not wrong, "\n".join([*wrong, str(run)])


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_projects_have_the_same_verdicts_in_all_modes(seed: int, tmp_path: Path):
    assert disagreements(generated(seed), tmp_path, GENERATED_IN) == []


@pytest.mark.parametrize(
    "surroundings",
    [("options of a conftest",), ("plugin modules", "importlib mode and pythonpath")],
    ids=" and ".join,
)
def test_settings_that_change_the_start_of_workers_change_no_verdict(
    surroundings: tuple[str, ...], tmp_path: Path
):
    assert disagreements(of_surroundings(*surroundings), tmp_path, FORKED_AT_ONCE) == []


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


def expected_of(name: str) -> dict[Criterion, str]:
    todos: dict[str, dict[str, str]] = read_yaml(name, "expected.yaml")
    return {(todo, check): checks[check] for todo, checks in todos.items() for check in checks}


def read_yaml(name: str, file: str) -> Any:
    return yaml.safe_load(read_bundle(PROJECTS / f"{name}.txt")[file])


def differences(run: Verified, name: str, todos: list[str]) -> list[str]:
    """Return one line for each criterion of these todos whose verdict is not the expected one."""
    expected, commands = expected_of(name), commands_of(name)
    expected = {criterion: verdict for criterion, verdict in expected.items() if criterion[0] in todos}
    said = {
        (todo, check["id"]): check["verdict"] for todo in todos for check in run.outcomes[todo]["checks"]
    }
    assert said.keys() == expected.keys()
    return [
        f"{todo} {check}: expected {expected[todo, check]}, got {verdict}: {commands[todo, check]}"
        for (todo, check), verdict in said.items()
        if PLAIN_READING.get(verdict) != expected[todo, check]
    ]
