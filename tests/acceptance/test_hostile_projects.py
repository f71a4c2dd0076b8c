"""Projects whose tests replace, stop or remove what this plugin stands on: the verdicts stay right."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo


def example(root: Path, **files: str) -> Example:
    project = Example(root, {f"{name}.py": text for name, text in files.items()})
    project.write({"test_other.py": "def test_other(): pass\n"})
    project.plan(todo("disturbing", "pytest test_it.py"), todo("other", "pytest test_other.py"))
    return project


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
@pytest.mark.parametrize("where", ["command", "ini"])
def test_a_command_that_only_sets_up_proves_nothing(tmp_path: Path, option: str, where: str) -> None:
    project = Example(tmp_path, {"test_it.py": "def test_it(): assert False\n"})
    project.plan(todo("a", "pytest test_it.py" + (f" {option}" if where == "command" else "")))
    if where == "ini":
        project.write({"pytest.ini": f"[pytest]\naddopts = {option}\n"})
    run = project.verify()
    assert run.exit_code == 1, str(run)
    assert run.verdicts == {"a": "failed"}
    assert "its body was not run" in run.check("a")["reason"]


@pytest.mark.parametrize(
    "replaced",
    [
        "json, 'dumps', lambda *a, **k: 1 / 0",
        "os, 'write', lambda *a: 0",
        "os.path, 'exists', lambda path: 1 / 0",
        "builtins, 'open', lambda *a, **k: 1 / 0",
    ],
)
def test_a_failure_while_a_test_has_replaced_a_function_is_that_tests_failure(
    tmp_path: Path, replaced: str
) -> None:
    project = example(
        tmp_path,
        test_it=f"""
        import builtins, json, os
        def test_it(monkeypatch):
            monkeypatch.setattr({replaced})
            assert 1 == 2
        def test_after(): pass
        """,
    )
    run = project.verify()
    assert run.verdicts == {"disturbing": "failed", "other": "passed"}, str(run)
    assert run.tests("disturbing") == {"test_it.py::test_it": "failed", "test_it.py::test_after": "passed"}


def test_a_stopped_clock_is_no_passed_limit(tmp_path: Path) -> None:
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


def test_a_test_that_removes_the_runs_folder_costs_only_its_own_criterion(tmp_path: Path) -> None:
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


def test_records_that_a_project_forges_badly_are_no_fault_of_the_verifier(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("10**400", "passed"),
        ("-(10**400)", "failed"),
        ("10**6000", "failed"),
        ("Odd()", "failed"),
        ("circle", "failed"),
        ("{object(): 1}", "failed"),
    ],
)
def test_an_odd_value_of_a_metric_costs_the_metric_alone(tmp_path: Path, value: str, verdict: str) -> None:
    project = example(
        tmp_path,
        test_it=f"""
        class Odd:
            def __str__(self): raise SystemExit(0)
        circle = []
        circle.append(circle)
        def test_it(record_property): record_property("m", {value})
        """,
    )
    metric = {"name": "m", "operator": ">=", "value": 1}
    project.plan(todo("disturbing", "pytest test_it.py", metrics=[metric]))
    run = project.verify()
    assert run.verdicts == {"disturbing": {"tests[0]": "passed", "metrics[0]": verdict}}, str(run)


def test_a_link_that_leads_to_itself_stands_in_nobodys_way(tmp_path: Path) -> None:
    project = example(tmp_path, test_it="def test_it(): pass\n")
    (tmp_path / "around").symlink_to("around")
    run = project.verify()
    assert run.exit_code == 0, str(run)


def test_where_every_warning_is_an_error_installed_plugins_bring_none_of_ours(tmp_path: Path) -> None:
    project = Example(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    # pytest-asyncio, where it is installed, warns of a setting that nobody made.
    project.write({"pytest.ini": "[pytest]\nfilterwarnings = error\naddopts = -p no:asyncio\n"})
    project.plan(todo("a", "pytest test_it.py"))

    run = project.verify(autoload=True)

    assert run.verdicts == {"a": "passed"}, str(run)
