"""Unusual or hostile projects: each criterion has the verdict of its command run alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_project import ONLY_THIS_PLUGIN, Example, Verified, todo
from real_command import FULL, LEAN_TERMINAL, PYTHON, outer_environment, run_pytest

UNCONFIRMED = "--planverify-confirm=0"
"""A confirmation of each failure would start a new interpreter."""


def test_setup_only_and_setup_plan_fail_the_criterion(tmp_path: Path) -> None:
    project = Example(tmp_path, {"test_it.py": "def test_it(): assert False\n"})
    project.plan(*(todo(name, f"pytest test_it.py --setup-{name}") for name in ("only", "plan")))
    of_command = project.verify(UNCONFIRMED)
    project.write({"pytest.ini": "[pytest]\naddopts = --setup-plan\n"})
    project.plan(todo("ini", "pytest test_it.py"))
    of_ini = project.verify(UNCONFIRMED)
    for run in (of_command, of_ini):
        assert run.exit_code == 1, str(run)
        for name, verdict in run.verdicts.items():
            assert verdict == "failed", str(run)
            assert "its body was not run" in run.check(name)["reason"]


REPLACED = (
    "json, 'dumps', lambda *a, **k: 1 / 0",
    "os, 'write', lambda *a: 0",
    "os.path, 'exists', lambda path: 1 / 0",
    "builtins, 'open', lambda *a, **k: 1 / 0",
)


UNUSUAL_VALUES = {
    "10**400": "passed",
    "-(10**400)": "failed",
    "10**6000": "failed",
    "Odd()": "failed",
    "circle": "failed",
    "{object(): 1}": "failed",
}
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
    "test_other.py": "def test_other(): pass\n",
}


def test_tests_that_disturb_the_run_affect_no_other_test(tmp_path: Path) -> None:
    """Patched functions, a frozen clock, forged records, unusual values, and a link to its own folder."""
    project = Example(tmp_path, DISTURBING)
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
        todos += [
            todo(f"replaced{number}", f"pytest test_{number}.py"),
            todo(f"other{number}", "pytest test_other.py"),
        ]
    head = """
    class Odd:
        def __str__(self): raise SystemExit(0)
    circle = []
    circle.append(circle)
    """
    metric = {"name": "m", "operator": ">=", "value": 1}
    for number, value in enumerate(UNUSUAL_VALUES):
        test = f'def test_it(record_property): record_property("m", {value})'
        project.write({f"test_metric{number}.py": f"{head}{test}\n"})
        todos.append(todo(f"metric{number}", f"pytest test_metric{number}.py", metrics=[metric]))
    project.plan(*todos)

    run = project.verify(UNCONFIRMED)

    expected: dict[str, object] = {"clock": "passed", "forges": "failed"}
    for number in range(len(REPLACED)):
        expected |= {f"replaced{number}": "failed", f"other{number}": "passed"}
        file = f"test_{number}.py"
        found = run.tests(f"replaced{number}")
        assert found == {f"{file}::test_it": "failed", f"{file}::test_after": "passed"}
    for number, verdict in enumerate(UNUSUAL_VALUES.values()):
        expected[f"metric{number}"] = {"tests[0]": "passed", "metrics[0]": verdict}
    assert run.verdicts == expected, str(run)
    assert run.exit_code == 1
    assert "Traceback" not in run.output


ODD_PROJECTS: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "support/odd_projects.yaml").read_text(encoding="utf-8")
)
PLAIN_READING = {"passed": "passed", "failed": "failed", "inconclusive": "failed"}
"""The verdict of the command alone, by criterion verdict; others (`flaky`, `not_run` …) are errors."""

SOMETHING_PASSED = re.compile(r"\b[1-9]\d* x?passed\b.* in \d")
"""The last line of a session in which a test passed; passed subtests do not match."""

MOST_TELLING = (
    "session_fixture_teardown",
    "late_warning",
    "expressions_in_the_ini_file",
    "conftest_reads_k",
    "order_of_paths",
    "subtests",
    "start_variables",
    "packages_named_like_ours",
    "duplicate_ids",
    "sessionfinish_status",
    "skip_module_with_id",
)
"""Projects with the least obvious verdicts. Running all alone would take as long as all other tests."""
if not FULL:
    MOST_TELLING = MOST_TELLING[::2]


SETTINGS = {"conftest.py", "pytest.ini", "pyproject.toml"}
TOGETHER = [name for name, project in ODD_PROJECTS.items() if not SETTINGS & project["files"].keys()]
"""Projects without settings that also affect the pytest that verifies the plan."""


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
    # The projects differ only in their files; other tests measure coverage of the product.
    env = only_plugins("pytest_planverify.plugin", *sorted(plugins))
    run = Example(cwd).verify(UNCONFIRMED, *plans, autoload=True, env=env, measured=False)
    return {
        name: replace(run, document=json.loads((folder / ".planverify/outcomes.json").read_text()))
        for name, folder in folders.items()
    }


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verified]:
    return verified(tmp_path_factory.mktemp("together"), *TOGETHER)


@pytest.mark.parametrize("name", TOGETHER)
def test_verdicts_of_unusual_projects_in_one_run_equal_those_of_plain_pytest(
    together: dict[str, Verified], name: str
):
    assert_as_in_plain_pytest(name, together[name])


@pytest.mark.parametrize("name", [name for name in ODD_PROJECTS if name not in TOGETHER])
def test_verdicts_in_projects_with_unusual_settings_equal_those_of_plain_pytest(name: str, tmp_path: Path):
    assert_as_in_plain_pytest(name, verified(tmp_path, name)[name])


def assert_as_in_plain_pytest(name: str, run: Verified) -> None:
    project = ODD_PROJECTS[name]
    checks = [run.check(f"t{number}") for number, _ in enumerate(project["verdicts"])]
    said = {check["cmd"]: PLAIN_READING.get(check["verdict"], check["verdict"]) for check in checks}
    assert said == project["verdicts"], f"{project['why']}\n{run}"


def test_expected_verdicts_of_unusual_projects_hold_in_plain_pytest(tmp_path: Path):
    roots = {name: Example(tmp_path / name, ODD_PROJECTS[name]["files"]).root for name in MOST_TELLING}
    commands = [(name, command) for name in MOST_TELLING for command in ODD_PROJECTS[name]["verdicts"]]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(
            lambda each: run_alone(each[1], roots[each[0]], ODD_PROJECTS[each[0]].get("plugins", ())),
            commands,
        )
        wrong = [
            f"{name}: {command}: {verdict}"
            for (name, command), verdict in zip(commands, said, strict=True)
            if verdict != ODD_PROJECTS[name]["verdicts"][command]
        ]

    assert not wrong, "\n".join(wrong)


def run_alone(command: str, root: Path, plugins: tuple[str, ...]) -> str:
    """Run the command alone; return `passed` for exit code 0 and at least one pass, else `failed`."""
    words = shlex.split(command)
    env = only_plugins(*plugins)
    env["COVERAGE_FILE"] = str(root / f".coverage.{abs(hash(command))}")  # several commands run at a time
    while re.match(r"[A-Z_]+=", words[0]):
        variable, _, value = words.pop(0).partition("=")
        env[variable] = value
    as_module = words[:3] == ["python", "-m", "pytest"]
    run = run_pytest(*words[3 if as_module else 1 :], cwd=root, as_module=as_module, env=env)
    return "passed" if run.exit_code == 0 and SOMETHING_PASSED.search(run.output) else "failed"


def only_plugins(*modules: str) -> dict[str, str]:
    """Return variables that make pytest load only these plugins, without changing the command line."""
    return {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": ",".join(modules)}


@pytest.mark.parametrize("options", [(), ("--planverify-isolate",)], ids=["forked", "cold"])
def test_a_project_with_a_package_named_planner_has_evidence_and_its_own_search_path(
    options: tuple[str, ...], tmp_path: Path
):
    files = {
        "planner/__init__.py": "def one():\n    return 1\n",
        "test_p.py": "import planner\n\n\ndef test_one():\n    assert planner.one() == 2\n",
        "tests/test_shop.py": "import planner\n\n\ndef test_one():\n    assert planner.one() == 1\n",
    }
    example = Example(tmp_path, files)
    with_worker = "python -m pytest -p xdist -n 1"
    red = {"alone": "python -m pytest test_p.py", "with_xdist": f"{with_worker} test_p.py"}
    green = todo("shop", f"{with_worker} tests")
    example.plan(*(todo(name, command) for name, command in red.items()), green)

    run = example.verify(UNCONFIRMED, *options)

    assert run.verdicts == dict.fromkeys(red, "failed") | {"shop": "passed"}, str(run)
    for name in red:
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
@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_closed_standard_streams_change_no_verdict(closed: str, tmp_path: Path):
    example = Example(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    example.plan(todo("t0", "pytest test_a.py"))
    command = f"{PYTHON} -m pytest {' '.join(ONLY_THIS_PLUGIN)} --planverify plan.yaml {closed}"
    env = outer_environment() | LEAN_TERMINAL

    run = subprocess.run(
        command, shell=True, cwd=example.root, env=env, capture_output=True, text=True, timeout=120
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 done" in run.stdout
