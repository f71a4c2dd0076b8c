"""Unusual or hostile projects: each criterion has the verdict of its command run alone."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from crosstalk_generator import PLAIN_READING
from example_project import ONLY_THIS_PLUGIN, Example, Verified, todo
from pytest_server import verdicts_alone
from real_command import LEAN_TERMINAL, PYTHON, outer_environment, unmeasured

UNCONFIRMED = "--planverify-confirm=0"
"""A confirmation of each failure would start a new interpreter."""


REPLACED = (
    "json, 'dumps', lambda *a, **k: 1 / 0",
    "os, 'write', lambda *a: 0",
    "os.path, 'exists', lambda path: 1 / 0",
    "builtins, 'open', lambda *a, **k: 1 / 0",
)

DISTURBING = {
    "frozen_clock/conftest.py": """
        import time, pytest
        @pytest.fixture(autouse=True, scope="session")
        def stopped():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(time, "time", lambda: 1_000_000.0)
                yield
    """,
    "frozen_clock/test_clock.py": """
        import threading
        def test_first(): pass
        def test_second(): threading.Event().wait(0.5)
    """,
    "test_forges.py": """
        import glob
        def test_it():
            (journal,) = glob.glob(".planverify/runs/*/journal.jsonl")
            with open(journal, "a") as stream:
                for name in ("collected", "test_finished", "session_ended", "metric", "leak"):
                    stream.write('{"record": "%s", "session": "s1", "at": "noon"}\\n' % name)
            assert False
    """,
    "test_metric.py": """
        circle = []
        circle.append(circle)
        def test_it(record_property): record_property("m", circle)
    """,
    "test_other.py": "def test_other(): pass\n",
}


SETUP_ONLY = ("only", "plan")
"""Options `--setup-…` of pytest with which it runs no body of a test, and exits with 0."""


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run with tests that disturb it, and a link to its own folder."""
    project = Example(tmp_path_factory.mktemp("disturbed"), DISTURBING)
    (project.root / "around").symlink_to("around")
    todos = [todo("clock", "pytest frozen_clock"), todo("forges", "pytest test_forges.py")]
    for number, replaced in enumerate(REPLACED):
        text = f"""
        import builtins, json, os
        def test_it(monkeypatch):
            monkeypatch.setattr({replaced})
            assert 1 == 2
        def test_after(): pass
        """
        project.write({f"test_{number}.py": text})
        todos.append(todo(f"replaced{number}", f"pytest test_{number}.py"))
    todos.append(
        todo("metric", "pytest test_metric.py", metrics=[{"name": "m", "operator": ">=", "value": 1}])
    )
    todos += [todo(option, f"pytest test_other.py --setup-{option}") for option in SETUP_ONLY]
    project.plan(*todos, todo("other", "pytest test_other.py"))
    return project.verify(UNCONFIRMED)


def test_tests_that_disturb_the_run_affect_no_other_test(disturbed: Verified) -> None:
    """Patched functions, a frozen clock, forged records and an endless value."""
    expected: dict[str, object] = {"clock": "passed", "forges": "failed", "other": "passed"}
    expected["metric"] = {"tests[0]": "passed", "metrics[0]": "failed"}
    for number in range(len(REPLACED)):
        expected[f"replaced{number}"] = "failed"
        file = f"test_{number}.py"
        found = disturbed.tests(f"replaced{number}")
        assert found == {f"{file}::test_it": "failed", f"{file}::test_after": "passed"}
    assert {name: disturbed.verdicts[name] for name in expected} == expected, str(disturbed)
    assert disturbed.exit_code == 1
    assert "Traceback" not in disturbed.output


def test_setup_only_and_setup_plan_fail_the_criterion(disturbed: Verified) -> None:
    for option in SETUP_ONLY:
        assert disturbed.verdicts[option] == "failed", str(disturbed)
        assert "its body was not run" in disturbed.check(option)["reason"]


ODD_PROJECTS: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "support/odd_projects.yaml").read_text(encoding="utf-8")
)
if pytest.version_tuple < (9,):
    del ODD_PROJECTS["subtests"]  # pytest has them since then

TELLING = (
    "session_fixture_teardown",
    "expressions_in_the_ini_file",
    "duplicate_ids",
    "sessionfinish_status",
    "skip_module_with_id",
)
"""Projects with the least obvious verdicts, which are those of plain pytest."""

SETTINGS = {"conftest.py", "pytest.ini", "pyproject.toml"}
TOGETHER = [name for name, project in ODD_PROJECTS.items() if not SETTINGS & project["files"].keys()]
"""Projects without settings that also affect the pytest that verifies the plan."""

NAMED_LIKE_OURS = {"packages_named_like_ours", "borrowed_submodule", *TOGETHER}
"""Projects, or some of them, with modules that a forked verification has imported before its plugin."""


def verified(root: Path, *names: str) -> dict[str, Verified]:
    """Verify the plans of these projects in one run, started in a folder with all, or in the only one."""
    folders = {name: root / name for name in names}
    plugins: set[str] = set()
    for name, folder in folders.items():
        project = ODD_PROJECTS[name]
        each = Example(folder, project["files"])
        todos = [todo(f"t{number}", command) for number, command in enumerate(project["verdicts"])]
        each.plan(*todos, todo_list_id=name)
        plugins.update(project.get("plugins", ()))
    cwd = root if len(names) > 1 else next(iter(folders.values()))
    plans = [str(folder.relative_to(cwd) / "plan.yaml") for folder in folders.values()]
    # Without a change of the command line, which some tests look at
    modules = ",".join(["pytest_planverify.plugin", *sorted(plugins)])
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": modules}
    options = [option for name in names for option in ODD_PROJECTS[name].get("options", ())]
    forked = not NAMED_LIKE_OURS & {*names}
    run = Example(cwd).verify(UNCONFIRMED, *options, *plans, autoload=True, env=env, forked=forked)
    return {
        name: replace(run, document=json.loads((folder / ".planverify/outcomes.json").read_text()))
        for name, folder in folders.items()
    }


def test_verdicts_of_unusual_projects_in_one_run_equal_those_of_plain_pytest(tmp_path: Path):
    for name, run in verified(tmp_path, *TOGETHER).items():
        assert_as_in_plain_pytest(name, run)


@pytest.mark.parametrize("name", [name for name in ODD_PROJECTS if name not in TOGETHER])
def test_verdicts_in_projects_with_unusual_settings_equal_those_of_plain_pytest(name: str, tmp_path: Path):
    assert_as_in_plain_pytest(name, verified(tmp_path, name)[name])


def assert_as_in_plain_pytest(name: str, run: Verified) -> None:
    project = ODD_PROJECTS[name]
    checks = [run.check(f"t{number}") for number, _ in enumerate(project["verdicts"])]
    said = {check["cmd"]: PLAIN_READING.get(check["verdict"], check["verdict"]) for check in checks}
    assert said == project["verdicts"], f"{name}: {project['why']}\n{run}"


def test_expected_verdicts_of_unusual_projects_hold_in_plain_pytest(tmp_path: Path):
    commands: dict[tuple[Path, str], str] = {}
    for name in TELLING:
        root = Example(tmp_path / name, ODD_PROJECTS[name]["files"]).root
        commands |= {
            (root, command): verdict for command, verdict in ODD_PROJECTS[name]["verdicts"].items()
        }

    verdicts = verdicts_alone(list(commands), unmeasured(outer_environment()) | LEAN_TERMINAL)

    assert dict(zip(commands, verdicts, strict=True)) == commands


def test_a_project_with_a_package_named_planner_has_evidence_and_its_own_search_path(tmp_path: Path):
    """In processes of xdist, and in a cold worker."""
    files = {
        "planner/__init__.py": "def one():\n    return 1\n",
        "test_p.py": "import planner\n\n\ndef test_one():\n    assert planner.one() == 2\n",
        "tests/test_shop.py": "import planner\n\n\ndef test_one():\n    assert planner.one() == 1\n",
    }
    example = Example(tmp_path, files)
    commands = {"cold": "python -m pytest", "xdist": "python -m pytest -p xdist -n 1"}
    example.plan(*(todo(name, f"{command} test_p.py tests") for name, command in commands.items()))

    run = example.verify(UNCONFIRMED, "--planverify-isolate")

    for name in commands:
        found = run.tests(name)
        assert found == {"test_p.py::test_one": "failed", "tests/test_shop.py::test_one": "passed"}, str(
            run
        )
        assert "assert 1 == 2" in str(run.outcomes[name]["failure_evidence"])


def test_where_warnings_are_errors_those_of_conftests_fail_and_planverify_adds_none(tmp_path: Path):
    files = {
        # pytest-asyncio, if installed, warns about an option that is not set.
        "pytest.ini": "[pytest]\nfilterwarnings = error\naddopts = -p no:asyncio\n",
        "conftest.py": "def pytest_configure(): pass\n",  # so that workers are configured late
        "test_a.py": "def test_a(): pass\n",
        "tests/conftest.py": "import warnings\nwarnings.warn('old')\n",
        "tests/test_b.py": "def test_b(): pass\n",
    }
    example = Example(tmp_path, files)
    example.plan(todo("t0", "pytest test_a.py"), todo("t1", "pytest tests", after=("t0",)))

    run = example.verify(UNCONFIRMED, autoload=True)

    assert run.check("t0")["verdict"] == "passed"
    assert run.check("t1")["verdict"] == "failed"
    assert "UserWarning: old" in str(run)


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX closes the streams")
@pytest.mark.parametrize("streams", ["<&- 2>&-", ">&-", "<&- >&- 2>&-", ">/dev/full 2>&1"])
def test_closed_and_full_standard_streams_change_no_verdict(tmp_path: Path, streams: str):
    example = Example(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    example.plan(todo("t0", "pytest test_a.py"))
    if "full" in streams and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    command = f"{PYTHON} -m pytest {' '.join(ONLY_THIS_PLUGIN)} --planverify plan.yaml {streams}"
    env = outer_environment() | LEAN_TERMINAL

    run = subprocess.run(
        command, shell=True, cwd=example.root, env=env, capture_output=True, text=True, timeout=120
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr
    assert "1 done" in run.stdout or streams != "<&- 2>&-"
