"""Workers in real processes: the outcomes of plain pytest, every kind of end, and the pool of servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, cast

import psutil
import pytest
from worker_bench import Bench

import pytest_planverify
from pytest_planverify.checks import processes
from pytest_planverify.observe.spec import CannotServe, Level, Start
from pytest_planverify.session import fork_server, workers
from pytest_planverify.session.fork_server import ForkServer, ForkServerDied, Server
from pytest_planverify.session.records import WorkerRecord
from pytest_planverify.session.schedule import Job
from pytest_planverify.session.workers import MOST_SERVERS, WarmPool

LEAVES_PROCESS = """\
import os, subprocess, sys, time
def test_1():
    command = [sys.executable, '-c', 'import time; time.sleep(60)', 'GRANDCHILD' + __file__]
"""
TESTS: dict[str, str] = {
    "normal": "def test_1(): pass\ndef test_2(): pass\n",
    "sleeps": "import time\ndef test_1(): time.sleep(60)\ndef test_2(): pass\n",
    "waits": (
        "import pathlib, time\ndef test_1():\n    pathlib.Path('begun').touch()\n"
        "    while not pathlib.Path('awake').exists(): time.sleep(0.01)\n"
    ),
    "ends its parent": (
        f"{LEAVES_PROCESS}    subprocess.Popen(command)\n    os.kill(os.getppid(), 9)\n    time.sleep(9)\n"
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
        f"{LEAVES_PROCESS}    subprocess.Popen(command, start_new_session=True)\ndef test_2(): pass\n"
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
    workers.forget_files()  # before 9.2, pytest gives the names of removed folders to later tests
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
    "processes left": ("leaves something", "", ["passed", "passed"], {"death": None}),
    "crash in a rerun": ("dies when run again", OF_RERUNS, ["crashed"], {"death.phase": "call"}),
}


@pytest.mark.parametrize(("what", "options", "results", "facts"), ENDS.values(), ids=ENDS)
def test_record_tells_how_its_worker_ended_and_nothing_is_left_of_it(
    what: str, options: str, results: list[str], facts: dict[str, Any], bench: Bench
):
    record = run(bench, what, *options.split(), seconds=SHORT if what == "sleeps" else 30)
    assert outcomes(record) == results
    assert {name: attrgetter(name)(record) for name in facts} == facts
    assert not is_something_left(bench)
    if what == "import stops":
        assert record.stopped_by["exceptions"][0]["type"] == "KeyboardInterrupt"


@pytest.mark.parametrize("bench", ["cold"], indirect=True)
def test_interpreter_that_starts_no_worker_is_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    for program in ("/no/such/python", "/bin/true"):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(ForkServerDied):
            run(bench, "normal")


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


@pytest.mark.filterwarnings("error")
def test_connection_to_a_server_that_nothing_uses_any_more_is_closed_without_a_warning():
    ours, theirs = socket.socketpair()
    server = Server(ours, set())
    del ours, server
    with theirs:
        assert theirs.recv(1) == b""


# -- levels of servers -------------------------------------------------------------------------------

GREEN = "def test_it(): pass\n"
OWN_PATH = os.pathsep.join((".", str(Path(pytest_planverify.__file__).parents[1])))
"""A PYTHONPATH of the project, by which the workers find the plugin under test, too."""


Seen = tuple[int | None, dict[str, str]]
"""Exit status of a session, and outcomes of its tests by node id."""
PASSED: Seen = (0, {"test_x.py::test_it": "passed"})
REFUSED: Seen = (4, {})


class Case(NamedTuple):
    """Files of a project, the words of the command, what plain pytest reports, and the server's level."""

    level: Level
    files: dict[str, str]
    words: str = ""
    plain: Seen = PASSED
    pythonpath: bool = False


def hook(name: str, body: str) -> str:
    return f"def pytest_{name}: {body}\n"


EXPECTS_VALUE = "def test_it(request): assert getattr(request.config, 'value', None) == 1\n"
"""A test that expects the value that a hook has set."""
CONFIGURE = hook("configure(config)", "config.value = 1")
SETS_A_VALUE = "lambda config: vars(config).update(value=1)"
STARTS_A_THREAD = "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
OPTION = "parser.addoption('--shop', default='x')"
EXPECTS_OPTION = "def test_it(request): assert request.config.option.shop == {!r}\n"
CASES = {
    "a fixture in a conftest, and a test that fails": Case(
        Level.STARTED,
        {
            "conftest.py": "import pytest\n@pytest.fixture\ndef five(): return 5\n",
            "test_x.py": "def test_it(five): assert five == 5\ndef test_red(five): assert five == 6\n",
        },
        plain=(1, {"test_x.py::test_it": "passed", "test_x.py::test_red": "failed"}),
    ),
    "pytest_addoption": Case(
        Level.IMPORTED,
        {"conftest.py": hook("addoption(parser)", OPTION), "test_x.py": EXPECTS_OPTION.format("y")},
        "--shop=y",
    ),
    "a hook that the text of the conftest does not show": Case(
        Level.PARSED,
        {
            "conftest.py": f"globals()['pytest_' + 'configure'] = {SETS_A_VALUE}\n",
            "test_x.py": EXPECTS_VALUE,
        },
    ),
    "an early hook that the text of the conftest does not show": Case(
        Level.IMPORTED,
        {
            "conftest.py": f"globals()['pytest_' + 'addoption'] = lambda parser: {OPTION}\n",
            "test_x.py": EXPECTS_OPTION.format("x"),
        },
    ),
    "a conftest below that has pytest_configure": Case(
        Level.PARSED,
        {"sub/conftest.py": CONFIGURE, "sub/test_y.py": EXPECTS_VALUE, "test_x.py": GREEN},
        "sub",
        (0, {"sub/test_y.py::test_it": "passed"}),
    ),
    "a conftest that raises": Case(
        Level.IMPORTED, {"conftest.py": "raise RuntimeError('broken')\n", "test_x.py": GREEN}, plain=REFUSED
    ),
    "the words with which the interpreter was started": Case(
        Level.STARTED,
        {"test_x.py": "import sys\ndef test_it(): assert sys.orig_argv[1:] == sys.argv\n"},
        "-v",
    ),
    "a session that does not capture output": Case(Level.IMPORTED, {"test_x.py": GREEN}, "-p no:capture"),
    "a plugin of the project that implements pytest_configure": Case(
        Level.IMPORTED, {"own.py": CONFIGURE, "test_x.py": EXPECTS_VALUE}, "-p own", pythonpath=True
    ),
    "a conftest that names a plugin of the project": Case(
        Level.PARSED if pytest.version_tuple >= (9, 0, 1) else Level.IMPORTED,
        {"conftest.py": "pytest_plugins = ['own']\n", "own.py": CONFIGURE, "test_x.py": EXPECTS_VALUE},
    ),
    "a hook that starts a thread": Case(
        Level.PARSED,
        {
            "conftest.py": f"import threading, time\n{hook('sessionstart(session)', STARTS_A_THREAD)}",
            "test_x.py": "import threading\ndef test_it(): assert threading.active_count() == 2\n",
        },
    ),
    "a plugin that would start a thread for workers of pytest-xdist": Case(
        Level.STARTED,
        {"test_x.py": "runs = []\ndef test_it():\n    runs.append(1)\n    assert len(runs) == 2\n"},
        "-p pytest_rerunfailures -p xdist.plugin --reruns 1",
    ),
    "an option that pytest does not know": Case(
        Level.IMPORTED, {"test_x.py": GREEN}, "--frobnicate", REFUSED
    ),
}


def seen(record: WorkerRecord) -> Seen:
    return record.exit_status, {name: result.outcome for name, result in record.results.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_worker_has_the_outcomes_of_plain_pytest_at_every_level(case: Case, bench: Bench):
    bench.write(case.files)
    command = f"{f'PYTHONPATH={OWN_PATH} ' if case.pythonpath else ''}pytest {case.words}"
    first, again = bench.run(command), bench.run(command)
    assert seen(first) == seen(again) == case.plain
    assert bench.levels == {case.level}


def test_test_that_imports_a_shadowing_module_runs_only_once(bench: Bench):
    # The server is forked from this process, so the package must not be imported here yet.
    name = next(each for each in ("toolz", "tomlkit", "regex", "msgpack") if each not in sys.modules)
    bench.write(
        {
            "test_x.py": f"import {name}\ndef test_a(): pass\n",
            f"other/{name}.py": "is_other = True\n",
            "test_y.py": (
                "def test_b(monkeypatch):\n"
                "    with open('runs', 'a') as file: file.write('1')\n"
                "    monkeypatch.syspath_prepend('other')\n"
                f"    import {name}\n"
                f"    assert {name}.is_other\n"
            ),
        }
    )
    bench.run("pytest test_x.py")
    assert name in bench.preloaded

    assert seen(bench.run("pytest test_y.py")) == (0, {"test_y.py::test_b": "passed"})
    assert (bench.root / "runs").read_text() == "1"


# -- the pool of servers -----------------------------------------------------------------------------

START = Start(root="/r", options=("-q",))


class FakeServer:
    """A fake server that is ready, or fails with an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.closed = error, False

    def wait_until_ready(self) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed = True


class FakeBase:
    """A fake base process that makes servers as ordered and records each request, with a pool of them."""

    def __init__(self, home: Path) -> None:
        self.orders: list[Exception | None] = []
        self.requests: list[tuple[int, tuple[str, ...]]] = []
        self.made: list[FakeServer] = []
        self.pool = WarmPool(cast("Any", self), home)

    def server(self, start: Start, level: int) -> FakeServer:
        self.requests.append((level, start.modules))
        self.made.append(FakeServer(self.orders.pop(0) if self.orders else None))
        return self.made[-1]

    def serve(self, start: Start = START, level: Level = Level.STARTED) -> FakeServer:
        """Return the server of the pool for a worker."""
        return cast("Any", self.pool.server(start, level))


@pytest.fixture
def base(tmp_path: Path) -> FakeBase:
    return FakeBase(tmp_path)


def test_commands_with_equal_start_options_share_a_server(base: FakeBase):
    first = base.serve()
    assert base.serve(Start(root="/r", options=("-q",), probe=("b.py",))) is first
    base.serve(Start(root="/r", options=("-v",)), Level.PARSED)
    assert [level for level, _ in base.requests] == [Level.STARTED, Level.PARSED]


def test_servers_of_the_groups_used_least_recently_are_given_up(base: FakeBase):
    starts = [Start(root="/r", options=(str(number),)) for number in range(MOST_SERVERS + 1)]
    servers = [base.serve(start) for start in starts[:-1]]
    assert base.serve(starts[0]) is servers[0]
    base.serve(starts[-1])
    assert base.serve(starts[0]) is servers[0]
    assert base.serve(starts[1]) is not servers[1]


def test_a_new_server_imports_what_was_learned_once_workers_miss_more_than_the_present_one_has(
    base: FakeBase,
):
    base.serve()
    for modules in (["of_no_known_effects", "numpy", "yaml"], ["yaml"], ["pandas"], ["pandas", "PIL"]):
        base.pool.learn(START, modules)
        base.serve()
    learned = ((), ("numpy", "yaml"), ("numpy", "yaml", "pandas", "PIL"))
    assert base.requests == [(Level.STARTED, modules) for modules in learned]


def test_module_unfit_for_preloading_excludes_its_package(base: FakeBase):
    base.orders = [None, CannotServe(Level.STARTED, "scipy.stats: it starts a thread", "scipy.stats")]
    base.serve()
    base.pool.learn(START, ["scipy", "scipy.stats", "yaml"])
    base.serve()
    base.pool.learn(START, ["scipy"])
    base.serve()
    assert base.requests[-1] == (Level.STARTED, ("yaml",))
    assert len(base.requests) == 3


@pytest.mark.parametrize(
    ("failed_at", "next_level"),
    [(Level.PARSED, Level.PARSED), (Level.IMPORTED, Level.IMPORTED), (Level.STARTED, Level.PARSED)],
)
def test_server_that_cannot_reach_its_level_is_replaced_by_an_earlier_level(
    failed_at: Level, next_level: Level, base: FakeBase
):
    base.orders = [CannotServe(failed_at, "a plugin has started a thread")]
    base.serve()
    assert [level for level, _ in base.requests] == [Level.STARTED, next_level]


def test_server_that_cannot_start_is_not_retried_endlessly(base: FakeBase):
    base.orders = [CannotServe(Level.IMPORTED, "the root is gone")] * 9
    with pytest.raises(ForkServerDied, match="the root is gone"):
        base.serve(START, Level.PARSED)
    assert len(base.requests) == 2


def test_a_process_that_does_not_answer_counts_as_dead(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fork_server, "_ANSWER_SECONDS", 0.1)
    with closing(ForkServer()) as base:
        os.kill(base.pid, signal.SIGSTOP)
        with pytest.raises(ForkServerDied, match="does not answer"):
            base.server(START, Level.IMPORTED).wait_until_ready()
        os.kill(base.pid, signal.SIGCONT)


def test_a_dead_server_is_reported_and_renewal_starts_another_that_still_learns(base: FakeBase):
    base.orders = [ForkServerDied("gone")]
    with pytest.raises(ForkServerDied):
        base.serve()
    base.pool.renew(START)
    assert base.serve() is base.made[-1]
    base.pool.learn(START, ["numpy"])
    base.serve()
    assert base.requests[-1] == (Level.STARTED, ("numpy",))


def test_modules_are_not_preloaded_again_after_a_server_died_while_it_imported_them(base: FakeBase):
    base.orders = [None, ForkServerDied("gone")]
    base.serve()
    base.pool.learn(START, ["numpy"])
    with pytest.raises(ForkServerDied):
        base.serve()
    base.pool.renew(START)
    base.serve()
    base.pool.learn(START, ["numpy"])
    assert base.requests == [(Level.STARTED, modules) for modules in ((), ("numpy",), ())]


def test_worker_gets_a_server_of_an_earlier_level_or_without_modules_on_request(base: FakeBase):
    base.serve()
    base.pool.learn(START, ["numpy"])
    base.serve()

    base.pool.replace(START, Level.PARSED)
    base.serve()
    base.pool.replace(START, Level.STARTED)  # from a worker forked earlier: no effect
    base.serve()
    base.pool.replace(START, None)
    base.serve()
    base.pool.learn(START, ["pandas"])

    assert base.requests[2:] == [(Level.PARSED, ("numpy",)), (Level.PARSED, ("numpy",)), (Level.PARSED, ())]


def test_learned_modules_and_levels_persist_to_the_next_run(base: FakeBase, tmp_path: Path):
    base.orders = [None, None, CannotServe(Level.STARTED, "it warns", "lxml")]
    base.serve()
    base.pool.replace(START, Level.PARSED)
    base.pool.learn(START, ["numpy"])
    base.serve()
    base.pool.learn(START, ["lxml", "lxml.etree"])
    base.serve()
    base.pool.remember()

    again = FakeBase(tmp_path)
    again.serve()
    assert again.requests == [(Level.PARSED, ("numpy",))]
    assert json.loads((tmp_path / "warm.json").read_text())["refused"] == ["lxml"]


OTHER_VALUES = '{"version": 1, "groups": {"x": 3}}'


@pytest.mark.parametrize("text", ["", '{"version": 99, "groups": {}}', OTHER_VALUES, "[" * 100_000, None])
def test_invalid_warm_file_or_a_pipe_in_its_place_is_ignored(text: str | None, tmp_path: Path):
    if text is None:
        os.mkfifo(tmp_path / "warm.json")
    else:
        (tmp_path / "warm.json").write_text(text)
    base = FakeBase(tmp_path)
    base.serve()
    assert base.requests == [(Level.STARTED, ())]


def test_close_closes_all_servers(base: FakeBase):
    base.serve()
    base.serve(Start(root="/other"))
    base.pool.close()
    assert [each.closed for each in base.made] == [True, True]
