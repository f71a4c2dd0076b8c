"""The examples do what their READMEs say: the real command runs in the root of a copy of the checkout."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_commands import PLUGINS_OF_A_READER
from real_command import Finished, read_outcomes, run_pytest

CHECKOUT = Path(__file__).resolve().parents[2]
LEFT_BEHIND = (".planverify", "diagnostics", "__pycache__", ".pytest_cache", ".report.json")
ONLY_REQUIRED = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": ",".join(PLUGINS_OF_A_READER)}
"""Variables that load only required plugins. The momentum plan is verified with all installed plugins."""

TODOS = ["t1_data_integration", "t2_indicators", "t3_entry_conditions", "t4_exit_conditions"]
DOWNSTREAM_OF_RSI = [
    "tests/test_entry.py::test_entry_true_false",
    "tests/test_exit.py::test_stop_loss",
    "tests/test_exit.py::test_take_profit",
    "tests/test_backtest.py::test_the_strategy_trades",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A finished run of an example's plan."""

    checkout: Path
    root: Path
    run: Finished
    document: dict[str, Any]

    @property
    def outcomes(self) -> dict[str, dict[str, Any]]:
        """The outcomes by todo, in the order of the file."""
        return {outcome["todo_id"]: outcome for outcome in self.document["outcomes"]}


@pytest.fixture(scope="module")
def momentum(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return the run of the momentum plan by the command of its README."""
    return verify("momentum", copy_of_the_checkout(tmp_path_factory.mktemp("momentum")))


@pytest.fixture(scope="module")
def rsi_bug(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return the run of the plan with the wrong RSI by the command of its README."""
    return verify("rsi_bug", copy_of_the_checkout(tmp_path_factory.mktemp("rsi_bug")), env=ONLY_REQUIRED)


def copy_of_the_checkout(folder: Path) -> Path:
    """Return a folder with the examples and the project's pytest configuration."""
    root = folder / "checkout"
    shutil.copytree(CHECKOUT / "examples", root / "examples", ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    shutil.copy(CHECKOUT / "pyproject.toml", root)
    return root


def verify(example: str, checkout: Path, env: dict[str, str] | None = None) -> Verified:
    root = checkout / "examples" / example
    run = run_pytest(*command_of_readme(example), cwd=checkout, env=env)
    assert (root / ".planverify/outcomes.json").is_file(), str(run)
    return Verified(checkout=checkout, root=root, run=run, document=read_outcomes(root))


def command_of_readme(example: str) -> list[str]:
    """Return the arguments of the only pytest command in a console block of the README."""
    readme = (CHECKOUT / "examples" / example / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```console\npytest (.*)\n```", readme)
    return shlex.split(command)


def test_the_momentum_plan_is_accepted(momentum: Verified):
    document = momentum.document

    assert momentum.run.exit_code == 0, str(momentum.run)
    assert document["schema_version"] == 1
    (plan,) = document["plans"]
    assert plan["todo_list_id"] == "workflow_momentum_001"
    assert plan["digest"] == f"sha256:{sha256(momentum.root / 'plan.yaml')}"
    assert document["summary"]["todos"] == {"done": 4}
    assert list(momentum.outcomes) == TODOS
    for outcome in momentum.outcomes.values():
        assert (outcome["verified"], outcome["success"], outcome["tests_passed"]) == (True, True, True)
        assert outcome["failure_evidence"] is None
        assert {check["verdict"] for check in outcome["checks"]} == {"passed"}, outcome


def test_every_criterion_of_the_momentum_plan_is_checked_and_recorded(momentum: Verified):
    outcomes = momentum.outcomes

    items = yaml.safe_load((momentum.root / "plan.yaml").read_text(encoding="utf-8"))["items"]
    for item in items:
        criteria = item["acceptance_criteria"]
        checks = {f"{kind}[{number}]" for kind in criteria for number in range(len(criteria[kind]))}
        assert {check["id"] for check in outcomes[item["id"]]["checks"]} == {"contract_path", *checks}
    assert outcomes["t1_data_integration"]["recorded"] == {"rows_min": [260]}
    assert outcomes["t4_exit_conditions"]["recorded"] == {"trades": [2]}
    (rsi,) = [check for check in outcomes["t2_indicators"]["checks"] if check["id"] == "tests[0]"]
    assert rsi["cmd"] == "pytest tests/test_indicators.py::test_rsi_values -q --json-report"
    assert rsi["timeout_seconds"] == 20
    assert rsi["fixture"] == {
        "path": "fixtures/rsi_expected.json",
        "sha256": sha256(momentum.root / "fixtures/rsi_expected.json"),
    }
    (test,) = rsi["tests"]
    assert (test["nodeid"], test["outcome"]) == ("tests/test_indicators.py::test_rsi_values", "passed")


def test_a_wrong_rsi_is_a_regression_that_blocks_dependent_todos(rsi_bug: Verified):
    outcomes = rsi_bug.outcomes

    assert rsi_bug.run.exit_code == 1, str(rsi_bug.run)
    states = {todo: outcome["state"] for todo, outcome in outcomes.items()}
    assert states == dict(zip(TODOS, ["done", "test_failed", "blocked", "blocked"], strict=True))
    verdicts = {check["id"]: check["verdict"] for check in outcomes["t2_indicators"]["checks"]}
    assert verdicts.pop("tests[0]") == "failed"
    assert set(verdicts.values()) == {"passed"}, "only the RSI is wrong"
    for todo in TODOS[2:]:
        assert {check["verdict"] for check in outcomes[todo]["checks"]} == {"blocked"}
        assert outcomes[todo]["success"] is False


def test_the_diagnosis_of_the_wrong_rsi_has_category_owner_and_location(rsi_bug: Verified):
    evidence = rsi_bug.outcomes["t2_indicators"]["failure_evidence"]

    nodeid = "tests/test_indicators.py::test_rsi_values"
    told = {name: evidence[name] for name in ("category", "owner", "repeatability", "check_id", "phase")}
    assert told == {
        "category": "TEST_REGRESSION",
        "owner": "product",
        "repeatability": "deterministic",
        "check_id": "tests[0]",
        "phase": "call",
    }
    assert (evidence["routing_key"], evidence["target_agent"]) == ("implementation_bug", "coder")
    assert evidence["top_failing_tests"] == [nodeid]
    assert evidence["rerun"] == "pytest --planverify examples/rsi_bug/plan.yaml::t2_indicators"
    head = "AssertionError: RSI at 2024-05-24: expected 28.5 ± 0.1, got 32.1"
    assert evidence["stack_trace_head"].startswith(head)
    assert (rsi_bug.root / "diagnostics/t2_indicators_failure_report.json").is_file()
    product = (rsi_bug.root / "indicators/rsi.py").read_text(encoding="utf-8").splitlines()
    location: dict[str, Any] = evidence["location"]
    assert (location["path"], location["function"]) == ("indicators/rsi.py", "compute_rsi")
    line: int = location["line"]
    assert product[line - 1].startswith("def compute_rsi(")


def test_tests_of_the_blocked_todos_pass_in_plain_pytest_with_the_configuration_of_the_example(
    tmp_path: Path,
):
    """The todos of these tests are blocked only by the dependencies in the plan."""
    checkout = copy_of_the_checkout(tmp_path)
    tests = [f"examples/rsi_bug/{test}" for test in DOWNSTREAM_OF_RSI]

    run = run_pytest(*tests, "-p", "no:cacheprovider", cwd=checkout, env=ONLY_REQUIRED)

    assert run.exit_code == 0, str(run)
    assert "4 passed" in run.output
    assert f"rootdir: {checkout / 'examples/rsi_bug'}" in run.output
    assert "configfile: pytest.ini" in run.output


def test_the_examples_differ_only_in_the_rsi_and_in_their_names():
    momentum, rsi_bug = CHECKOUT / "examples/momentum", CHECKOUT / "examples/rsi_bug"

    making_the_data = {"fixtures/make_sample.py", "tests/test_fixtures.py"}
    assert {name for name, _ in contents(momentum) ^ contents(rsi_bug)} == {
        "README.md",
        "indicators/rsi.py",
        "plan.yaml",
        *making_the_data,  # only in the momentum example
    }
    ours, theirs = (lines_without_names(folder / "plan.yaml") for folder in (momentum, rsi_bug))
    assert ours == theirs


def contents(folder: Path) -> set[tuple[str, bytes]]:
    """Return the path and content of each file, except files left by a run."""
    names = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    kept = (name for name in names if not {*LEFT_BEHIND} & {*name.parts})
    return {(name.as_posix(), (folder / name).read_bytes()) for name in kept}


def lines_without_names(plan: Path) -> list[str]:
    named = ("#", "todo_list_id:", "workflow_name:")
    return [line for line in plan.read_text(encoding="utf-8").splitlines() if not line.startswith(named)]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
