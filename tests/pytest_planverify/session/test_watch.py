"""Workers in real processes: the record reports every kind of end, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import psutil
import pytest
from worker_bench import Bench

from pytest_planverify.checks import processes
from pytest_planverify.session import workers
from pytest_planverify.session.fork_server import ForkServerDied
from pytest_planverify.session.records import WorkerRecord
from pytest_planverify.session.schedule import Job

TESTS: dict[str, str] = {
    "normal": "def test_1(): pass\ndef test_2(): pass\n",
    "sleeps": "import time\ndef test_1(): time.sleep(60)\ndef test_2(): pass\n",
    "waits": (
        "import pathlib, time\ndef test_1():\n    pathlib.Path('begun').touch()\n"
        "    while not pathlib.Path('awake').exists(): time.sleep(0.01)\n"
    ),
    "ends its parent": (
        "import os, subprocess, sys, time\ndef test_1():\n"
        "    command = [sys.executable, '-c', 'import time; time.sleep(60)', 'GRANDCHILD' + __file__]\n"
        "    subprocess.Popen(command)\n    os.kill(os.getppid(), 9)\n    time.sleep(9)\n"
    ),
    "loop": (
        "def run():\n    while True: len('')\n"
        "def test_1():\n    try: run()\n    except BaseException: run()\ndef test_2(): pass\n"
    ),
    "import dies": "import os\nos._exit(3)\ndef test_1(): pass\n",
    "forges": (
        "import json, os, time\ndef forge(**facts):\n"
        "    line = {'session': 'w1', 'at': time.time(), **facts}\n"
        "    open('.planverify/runs/run/journal.jsonl', 'a').write(json.dumps(line) + chr(10))\n"
        "def test_1():\n"
        "    for name in ('test_x.py::test_1', 'test_x.py::test_2'):\n"
        "        forge(record='test_finished', nodeid=name, outcome='passed', duration_ms=1)\n"
        "    forge(record='session_ended', exit_status=0)\n"
        "    os._exit(0)\n"
        "def test_2(): assert 0\n"
    ),
    "cuts": "def test_1(): open('.planverify/runs/run/journal.jsonl', 'w').close()\ndef test_2(): pass\n",
    "leaves something": (
        "import subprocess, sys\ndef test_1():\n"
        "    command = [sys.executable, '-c', 'import time; time.sleep(60)', 'GRANDCHILD' + __file__]\n"
        "    subprocess.Popen(command, start_new_session=True)\n"
        "def test_2(): pass\n"
    ),
    "leaves pipes": (
        "import os, pathlib\ndef test_1():\n    for name in ('phases', 'w1.stacks', 'w2.log'):\n"
        "        pathlib.Path('.planverify/runs/run', name).unlink(missing_ok=True)\n"
        "        os.mkfifo(f'.planverify/runs/run/{name}')\n    os._exit(3)\n"
    ),
    "import stops": "raise KeyboardInterrupt\ndef test_1(): pass\n",
    "dies when run again": (
        "import os\nruns = []\ndef test_1():\n    runs.append(1)\n    if len(runs) > 1: os._exit(0)\n"
        "    assert 0\ndef test_2(): pass\n"
    ),
}
"""All other ways to end or block a process are covered by tests/acceptance/test_fault_matrix.py."""


@pytest.fixture(params=["forked"])
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    """Yield a bench whose workers are forked, or started in separate interpreters if asked for."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(workers, "DUMP_SECONDS", 0.3)
    bench = Bench(tmp_path, forks=request.param == "forked")
    yield bench
    bench.close()


forked_and_cold = pytest.mark.parametrize("bench", ["forked", "cold"], indirect=True)
SHORT = 1.0
"""A time limit in seconds, for tests that do not end."""


def run(bench: Bench, what: str, *options: str, seconds: float = 30) -> WorkerRecord:
    (bench.root / "test_x.py").write_text(TESTS[what])
    return bench.run(" ".join(["pytest", *options, "test_x.py"]), seconds=seconds)


def outcomes(record: WorkerRecord) -> list[str]:
    return [result.outcome for _, result in sorted(record.results.items())]


def is_something_left(bench: Bench) -> bool:
    mark = f"GRANDCHILD{bench.root / 'test_x.py'}"
    return any(mark in (each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"]))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def has_ended(pid: int | None) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def start(bench: Bench, what: str) -> tuple[Job, Callable[[], object]]:
    """Return the job of the tests, and the function that runs it to its end."""
    (bench.root / "test_x.py").write_text(TESTS[what])
    job = bench.job("pytest test_x.py")
    return job, partial(bench.workers.run, job)


def test_normal_worker_reports_its_tests_and_exit_status(bench: Bench):
    record = run(bench, "normal")

    assert outcomes(record) == ["passed", "passed"]
    assert (record.exit_status, record.death) == (0, None)
    assert bench.heard.count == 2
    assert bench.heard.tests == [("test_x.py::test_1", "passed"), ("test_x.py::test_2", "passed")]
    assert not record.journal_lost


OF_TIMEOUT = "-p pytest_timeout --timeout=0.2 --timeout-method=thread"
OF_RERUNS = "-p pytest_rerunfailures --reruns=1"
OF_FILE = {"death.file": "test_x.py", "death.nodeid": None, "collected": False, "death.end.exit_code": 3}
ENDS: dict[str, tuple[str, str, list[str], dict[str, Any]]] = {
    "end by pytest-timeout": ("sleeps", OF_TIMEOUT, ["timeout"], {"death.end.exit_code": 1}),
    "soft limit": ("sleeps", "", ["failed", "passed"], {"death": None, "timed_out": True}),
    "exit of an import": ("import dies", "", [], {**OF_FILE, "death.end.timed_out": False}),
    "stop by an import": ("import stops", "", [], {"death": None, "collecting": {"": "test_x.py"}}),
    "forged records": ("forges", "", ["crashed"], {"forged": 3}),
    "truncated records": ("cuts", "", ["passed", "passed"], {"journal_lost": True}),
    "crash in a rerun": ("dies when run again", OF_RERUNS, ["crashed"], {"death.phase": "call"}),
}


@pytest.mark.parametrize(("what", "options", "results", "facts"), ENDS.values(), ids=ENDS)
def test_record_tells_how_its_worker_ended(
    what: str, options: str, results: list[str], facts: dict[str, Any], bench: Bench
):
    record = run(bench, what, *options.split(), seconds=SHORT if what == "sleeps" else 30)

    assert outcomes(record) == results
    assert {name: attrgetter(name)(record) for name in facts} == facts
    if what == "import stops":
        assert record.stopped_by["exceptions"][0]["type"] == "KeyboardInterrupt"


@pytest.mark.parametrize("program", ["/no/such/python", "/bin/true"])
def test_interpreter_that_starts_no_worker_is_reported(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", program)

    with pytest.raises(ForkServerDied):
        run(Bench(tmp_path, forks=False), "normal")


@pytest.mark.parametrize("bench", ["cold"], indirect=True)
def test_new_interpreter_keeps_an_installed_folder_that_is_also_the_one_of_the_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    root = str(bench.root)
    monkeypatch.setenv("PYTHONPATH", root, prepend=os.pathsep)
    bench.script_paths = (root,)
    bench.write({"shop.py": "", "tests/test_x.py": "import shop\ndef test_1(): pass\n"})

    record = bench.run("pytest tests/test_x.py")

    assert outcomes(record) == ["passed"]


@forked_and_cold
def test_endless_test_is_killed_with_its_stack(bench: Bench):
    record = run(bench, "loop", seconds=SHORT)

    assert outcomes(record) == ["timeout"]
    assert record.death.end.timed_out
    assert f'"{bench.root}' not in (stack := record.death.end.stack or "")
    assert "test_x.py" in stack


def test_death_by_an_internal_error_has_the_printed_traceback_with_paths_below_the_root(bench: Bench):
    (bench.root / "conftest.py").write_text("def pytest_runtest_logreport(report): report.no_such\n")

    death = run(bench, "normal").death

    assert death.end.exit_code == 3
    assert 'INTERNALERROR>   File "conftest.py", line 1, in pytest_runtest_logreport' in death.output


def test_suspended_time_does_not_count_towards_the_limit_of_a_test(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(processes, "LONGEST_GAP", 0.1)
    begun, awake = bench.root / "begun", bench.root / "awake"

    def sleep_once() -> None:
        if begun.exists() and not awake.exists():
            time.sleep(3 * SHORT)
            awake.touch()

    bench.look = sleep_once

    record = run(bench, "waits", seconds=SHORT)

    assert outcomes(record) == ["passed"]
    assert (record.death, record.timed_out) == (None, False)


def test_pipes_in_the_place_of_files_of_the_run_block_nobody(bench: Bench):
    assert run(bench, "leaves pipes").death.end.exit_code == 3

    assert run(bench, "normal").exit_status == 0


def test_child_processes_of_a_worker_end_with_it(bench: Bench):
    run(bench, "leaves something")

    assert not is_something_left(bench)


@forked_and_cold
def test_interrupt_of_the_parent_ends_the_worker_and_keeps_its_record(bench: Bench):
    def interrupt() -> None:
        journal = bench.folder.journal
        if journal.exists() and b"test_started" in journal.read_bytes():
            raise KeyboardInterrupt

    bench.look = interrupt
    job, run_job = start(bench, "loop")
    with pytest.raises(KeyboardInterrupt):
        run_job()

    assert (job.record.collected, job.record.cut_short, job.record.results) == (True, True, {})
    assert has_ended(job.record.pid)


def test_dead_fork_server_is_replaced_and_without_its_parent_workers_start_cold(bench: Bench):
    run(bench, "normal")
    for pids in (bench.server.pids, [bench.server.pid]):
        for pid in pids:
            kill(pid)
        assert outcomes(run(bench, "normal")) == ["passed", "passed"]


@forked_and_cold
def test_test_that_kills_its_keeper_loses_only_itself_and_leaves_nothing(bench: Bench):
    record = run(bench, "ends its parent")

    assert outcomes(record) == ["crashed"]
    assert not is_something_left(bench)
    assert outcomes(run(bench, "normal")) == ["passed", "passed"]


def test_conftest_that_kills_the_fork_server_is_not_retried_endlessly(bench: Bench):
    conftest = bench.root / "conftest.py"
    conftest.write_text("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(5)\n")

    record = run(bench, "normal")

    assert (record.death.nodeid, record.collected) == (None, False)
    conftest.unlink()
    assert outcomes(run(bench, "normal")) == ["passed", "passed"]


def test_argument_that_lacks_or_misspells_a_class_suggests_the_test_in_it(bench: Bench):
    (bench.root / "test_x.py").write_text("class TestCart:\n    def test_total(self): pass\n")

    for argument in ("test_x.py::test_total", "test_x.py::TestKart::test_total"):
        (similar,) = bench.run(f"pytest {argument}").not_found.values()
        assert similar[0] == "TestCart::test_total"


def test_fork_server_does_not_import_the_libraries_of_the_parent():
    code = (
        "import sys, pytest, pytest_planverify.plugin\n"
        "from pytest_planverify.session.fork_server import _warm_up\n"
        "_warm_up()\n"
        "print([name for name in ('pydantic', 'yaml', 'psutil') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_close_ends_an_unwatched_worker(bench: Bench):
    job, run_job = start(bench, "loop")
    watching = threading.Thread(target=run_job, daemon=True)
    watching.start()
    while watching.is_alive() and (job.record is None or not job.record.running):
        time.sleep(0.02)

    bench.server.close()
    watching.join(20)

    assert not psutil.pid_exists(bench.server.pid)
    assert has_ended(job.record.pid)
