"""Unusual or hostile projects: each criterion has the verdict of its command run alone."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_project import Example, todo
from real_command import FULL, PYTHON, run_pytest


def example(root: Path, **files: str) -> Example:
    project = Example(root, {f"{name}.py": text for name, text in files.items()})
    project.write({"test_other.py": "def test_other(): pass\n"})
    project.plan(todo("disturbing", "pytest test_it.py"), todo("other", "pytest test_other.py"))
    return project


def test_setup_only_and_setup_plan_fail_the_criterion(tmp_path: Path) -> None:
    project = Example(tmp_path, {"test_it.py": "def test_it(): assert False\n"})
    project.plan(*(todo(name, f"pytest test_it.py --setup-{name}") for name in ("only", "plan")))
    of_command = project.verify()
    project.write({"pytest.ini": "[pytest]\naddopts = --setup-plan\n"})
    project.plan(todo("ini", "pytest test_it.py"))
    of_ini = project.verify()
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


def test_a_function_patched_by_a_failing_test_affects_no_other_test(tmp_path: Path) -> None:
    project = Example(tmp_path, {"test_other.py": "def test_other(): pass\n"})
    todos: list[dict[str, Any]] = []
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
            todo(f"t{number}", f"pytest test_{number}.py"),
            todo(f"other{number}", "pytest test_other.py"),
        ]
    project.plan(*todos)
    run = project.verify()
    for number, replaced in enumerate(REPLACED):
        file = f"test_{number}.py"
        assert run.verdicts[f"t{number}"] == "failed", f"{replaced}\n{run}"
        assert run.verdicts[f"other{number}"] == "passed", f"{replaced}\n{run}"
        assert run.tests(f"t{number}") == {f"{file}::test_it": "failed", f"{file}::test_after": "passed"}


def test_a_frozen_clock_causes_no_timeout(tmp_path: Path) -> None:
    project = example(
        tmp_path,
        conftest="""
        import time, pytest
        @pytest.fixture(autouse=True, scope="session")
        def stopped():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(time, "time", lambda: 1_000_000.0)
                yield
        """,
        test_it="""
        import threading
        def test_first(): pass
        def test_second(): threading.Event().wait(0.5)
        """,
    )
    run = project.verify()
    assert run.verdicts == {"disturbing": "passed", "other": "passed"}, str(run)


def test_a_test_that_removes_the_folder_of_the_run_fails_only_its_criterion(tmp_path: Path) -> None:
    project = example(
        tmp_path,
        test_it="""
        import shutil
        def test_it():
            shutil.rmtree(".planverify")
            assert False
        """,
    )
    run = project.verify()
    assert run.exit_code == 1, str(run)
    assert run.verdicts == {"disturbing": "failed", "other": "passed"}
    assert "Traceback" not in run.output


def test_malformed_forged_records_cause_no_internal_error(tmp_path: Path) -> None:
    project = example(
        tmp_path,
        test_it="""
        import glob
        def test_it():
            (journal,) = glob.glob(".planverify/runs/*/journal.jsonl")
            with open(journal, "a") as stream:
                for name in ("collected", "test_finished", "session_ended", "metric", "leak"):
                    stream.write('{"record": "%s", "session": "s1", "at": "noon"}\\\\n' % name)
            assert False
        """,
    )
    run = project.verify()
    assert run.exit_code == 1, str(run)
    assert run.verdicts == {"disturbing": "failed", "other": "passed"}


UNUSUAL_VALUES = {
    "10**400": "passed",
    "-(10**400)": "failed",
    "10**6000": "failed",
    "Odd()": "failed",
    "circle": "failed",
    "{object(): 1}": "failed",
}


def test_an_unusual_metric_value_affects_only_the_metric(tmp_path: Path) -> None:
    head = """
    class Odd:
        def __str__(self): raise SystemExit(0)
    circle = []
    circle.append(circle)
    """
    project = Example(tmp_path)
    metric = {"name": "m", "operator": ">=", "value": 1}
    todos: list[dict[str, Any]] = []
    for number, value in enumerate(UNUSUAL_VALUES):
        test = f'def test_it(record_property): record_property("m", {value})'
        project.write({f"test_{number}.py": f"{head}{test}\n"})
        todos.append(todo(f"t{number}", f"pytest test_{number}.py", metrics=[metric]))
    project.plan(*todos)
    run = project.verify()
    assert list(run.verdicts.values()) == [
        {"tests[0]": "passed", "metrics[0]": verdict} for verdict in UNUSUAL_VALUES.values()
    ], str(run)


def test_a_self_referencing_symlink_is_tolerated(tmp_path: Path) -> None:
    project = example(tmp_path, test_it="def test_it(): pass\n")
    (tmp_path / "around").symlink_to("around")
    run = project.verify()
    assert run.exit_code == 0, str(run)


def test_planverify_adds_no_warnings_where_warnings_are_errors(tmp_path: Path) -> None:
    project = Example(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    # pytest-asyncio, if installed, warns about an option that is not set.
    project.write({"pytest.ini": "[pytest]\nfilterwarnings = error\naddopts = -p no:asyncio\n"})
    project.plan(todo("a", "pytest test_it.py"))

    run = project.verify(autoload=True)

    assert run.verdicts == {"a": "passed"}, str(run)


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


@pytest.mark.parametrize("name", ODD_PROJECTS)
def test_verdicts_in_unusual_projects_equal_those_of_plain_pytest(name: str, tmp_path: Path):
    project = ODD_PROJECTS[name]
    example = Example(tmp_path, project["files"])
    example.plan(*(todo(f"t{number}", command) for number, command in enumerate(project["verdicts"])))

    # The projects differ only in their files; other tests measure coverage of the product.
    plugins = only_plugins("pytest_planverify.plugin", *project.get("plugins", ()))
    run = example.verify("--planverify-confirm=0", autoload=True, env=plugins, measured=False)

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


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("python -m pytest test_p.py", ()),
        ("python -m pytest test_p.py", ("--planverify-isolate",)),
        ("python -m pytest -p xdist -n 2 test_p.py", ()),
    ],
    ids=["forked", "cold", "xdist"],
)
def test_a_failure_in_a_project_with_a_package_named_planner_has_evidence(
    command: str, options: tuple[str, ...], tmp_path: Path
):
    files = {
        "planner/__init__.py": "def one():\n    return 1\n",
        "test_p.py": "import planner\n\n\ndef test_one():\n    assert planner.one() == 2\n",
    }
    example = Example(tmp_path, files)
    example.plan(todo("t0", command))

    run = example.verify(*options)

    assert run.check("t0")["verdict"] == "failed"
    assert "assert 1 == 2" in str(run)


def test_workers_of_xdist_have_the_search_path_of_their_command(tmp_path: Path):
    test = "import shop\n\n\ndef test_one():\n    assert shop.ONE == 1\n"
    example = Example(tmp_path, {"shop/__init__.py": "ONE = 1\n", "tests/test_shop.py": test})
    example.plan(todo("t0", "python -m pytest tests -n 2"))

    run = example.verify("--planverify-confirm=0", autoload=True)

    assert run.check("t0")["verdict"] == "passed"


def test_conftest_warnings_are_errors_in_prepared_workers_too(tmp_path: Path):
    files = {
        "pytest.ini": "[pytest]\nfilterwarnings = error\n",
        "conftest.py": "def pytest_configure(): pass\n",  # so that workers are configured late
        "test_a.py": "def test_a(): pass\n",
        "tests/conftest.py": "import warnings\nwarnings.warn('old')\n",
        "tests/test_b.py": "def test_b(): pass\n",
    }
    example = Example(tmp_path, files)
    example.plan(todo("t0", "pytest test_a.py"), todo("t1", "pytest tests", after=("t0",)))

    run = example.verify("--planverify-confirm=0", autoload=True)

    assert run.check("t0")["verdict"] == "passed"
    assert run.check("t1")["verdict"] == "failed"
    assert "UserWarning: old" in str(run)


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX closes the streams")
@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_closed_standard_streams_change_no_verdict(closed: str, tmp_path: Path):
    example = Example(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    example.plan(todo("t0", "pytest test_a.py"))
    command = f"{PYTHON} -m pytest --planverify plan.yaml {closed}"

    run = subprocess.run(command, shell=True, cwd=example.root, capture_output=True, text=True, timeout=120)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 done" in run.stdout
