"""Sessions in real processes: however one ends, the record says so and nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_planverify.observing.spec import SessionSpec, Wanted
from pytest_planverify.supervision import forkserver, watching
from pytest_planverify.supervision.forkserver import Exited, ForkServer, ForkServerDied
from pytest_planverify.supervision.records import SessionRecord
from pytest_planverify.supervision.watching import Limits, SessionRunner

TESTS: dict[str, str] = {
    "normal": "def test_1(): pass\ndef test_2(): pass\n",
    "segfault": "import os\ndef test_1(): os.kill(os.getpid(), 11)\ndef test_2(): pass\n",
    "exit": "import os\ndef test_1(): os._exit(0)\ndef test_2(): pass\n",
    "system exit": "import sys\ndef test_1(): sys.exit(0)\ndef test_2(): pass\n",
    "killed": "import os\ndef test_1(): os.kill(os.getpid(), 9)\ndef test_2(): pass\n",
    "loop": "def test_1():\n    while True: pass\ndef test_2(): pass\n",
    "deaf": (
        "import signal, time\n"
        "def test_1():\n    signal.signal(signal.SIGABRT, signal.SIG_IGN)\n    time.sleep(60)\n"
        "def test_2(): pass\n"
    ),
    "import": "import time\ntime.sleep(60)\ndef test_1(): pass\n",
    "import dies": "import os\nos._exit(3)\ndef test_1(): pass\n",
    "setup": (
        "import pytest, time\n@pytest.fixture\ndef slow(): time.sleep(60)\n"
        "def test_1(slow): pass\ndef test_2(): pass\n"
    ),
    "leaves something": (
        "import subprocess, sys\ndef test_1():\n"
        "    command = [sys.executable, '-c', 'import time; time.sleep(60)', 'GRANDCHILD' + __file__]\n"
        "    subprocess.Popen(command, start_new_session=True)\n"
        "def test_2(): pass\n"
    ),
    "copies itself": ("import os\ndef test_1():\n    if os.fork(): os._exit(0)\ndef test_2(): pass\n"),
    "forges": (
        "import json, os, time\ndef forge(**facts):\n"
        "    line = {'session': 's1', 'at': time.time(), **facts}\n"
        "    open('journal.jsonl', 'a').write(json.dumps(line) + chr(10))\n"
        "def test_1():\n"
        "    for name in ('test_x.py::test_1', 'test_x.py::test_2'):\n"
        "        forge(record='test_finished', nodeid=name, outcome='passed', duration_ms=1)\n"
        "    forge(record='session_ended', exit_status=0)\n"
        "    os._exit(0)\n"
        "def test_2(): assert 0\n"
    ),
    "cuts": "def test_1(): open('journal.jsonl', 'w').close()\ndef test_2(): pass\n",
    "import stops": "raise KeyboardInterrupt\ndef test_1(): pass\n",
    "import closes": "import sys\nsys.exit(0)\ndef test_1(): pass\n",
    "stops": "import pytest\ndef test_1(): pytest.exit('enough')\ndef test_2(): pass\n",
    "dies in setup": (
        "import os, pytest\n@pytest.fixture\ndef f(): os._exit(0)\n"
        "def test_1(f): pass\ndef test_2(): pass\n"
    ),
    "dies in call": "import os\ndef test_1(): os._exit(0)\ndef test_2(): pass\n",
    "dies in teardown": (
        "import os, pytest\n@pytest.fixture\ndef f():\n    yield\n    os._exit(0)\n"
        "def test_1(f): pass\ndef test_2(): pass\n"
    ),
    "dies in call after a subtest": (
        "import os\ndef test_1(subtests):\n    with subtests.test('a'): pass\n    os._exit(0)\n"
        "def test_2(): pass\n"
    ),
    "dies in call when run again": (
        "import os\nruns = []\ndef test_1():\n    runs.append(1)\n    if len(runs) > 1: os._exit(0)\n"
        "    assert 0\ndef test_2(): pass\n"
    ),
    "collects as others": (
        "import gc\ndef test_1(): assert gc.get_threshold()[0] != 123_456\ndef test_2(): pass\n"
    ),
    "stays": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
        "def test_1(): pass\ndef test_2(): pass\n"
    ),
    "stops and stays": (
        "import pytest, threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
        "def test_1(): pytest.exit('enough')\ndef test_2(): pass\n"
    ),
    "stops its parent": (
        "import os, signal\ndef test_1(): os.kill(os.getppid(), signal.SIGSTOP)\ndef test_2(): pass\n"
    ),
    "closes output": "import sys\ndef test_1(): sys.stdout.close()\ndef test_2(): pass\n",
    "grandchild": (
        "import subprocess, sys\ndef test_1():\n"
        "    command = [sys.executable, '-c', 'import time; time.sleep(60)', 'GRANDCHILD' + __file__]\n"
        "    subprocess.Popen(command, start_new_session=True)\n"
        "    while True: pass\n"
    ),
}


class Heard:
    """What a listener is told."""

    def __init__(self) -> None:
        self.count = self.ticks = 0
        self.tests: list[tuple[str, str]] = []

    def tick(self) -> None:
        self.ticks += 1

    def collected(self, count: int) -> None:
        self.count = count

    def test_finished(self, nodeid: str, outcome: str, duration_ms: int) -> None:
        self.tests.append((nodeid, outcome))


class Bench:
    """One fork server, and sessions over tiny files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.server = ForkServer()
        self.heard = Heard()
        self.journal = root / "journal.jsonl"
        self.runner = SessionRunner(self.server, self.journal, self.heard)

    def spec(self, what: str, **more: object) -> SessionSpec:
        (self.root / "test_x.py").write_text(TESTS[what])
        settings: dict[str, object] = {
            "session_id": "s1",
            "root": str(self.root),
            "args": ("-p", "no:cacheprovider", "test_x.py"),
            "wanted": (Wanted(key="k", selections=("test_x.py",)),),
            "journal": str(self.journal),
            "log": str(self.root / "s1.log"),
            "stacks": str(self.root / "s1.stacks"),
            "soft_limits": False,
        }
        return SessionSpec(**{**settings, **more})  # type: ignore[arg-type]

    def wait_for_a_test(self) -> None:
        """Return when a test has been running for a moment."""
        while not self.journal.exists() or b"test_started" not in self.journal.read_bytes():
            time.sleep(0.02)
        time.sleep(0.3)

    def run(self, what: str, *, seconds: float = 20, resume: bool = True, **more: object) -> SessionRecord:
        record = SessionRecord()
        self.runner.run(self.spec(what, **more), Limits(step=seconds), record, resume=resume)
        return record


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(watching, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(watching, "DUMP_SECONDS", 0.3)
    bench = Bench(tmp_path)
    yield bench
    bench.server.close()


def outcomes(record: SessionRecord) -> list[str]:
    return [record.results[f"test_x.py::test_{number}"].outcome for number in (1, 2)]


def test_a_session_that_ends_in_order(bench: Bench):
    record = bench.run("normal")

    assert outcomes(record) == ["passed", "passed"]
    assert (record.exit_status, record.deaths) == (0, [])
    assert bench.heard.count == 2
    assert bench.heard.tests == [("test_x.py::test_1", "passed"), ("test_x.py::test_2", "passed")]


@pytest.mark.parametrize(
    ("what", "exited"),
    [
        ("segfault", Exited(None, signal.SIGSEGV)),
        ("exit", Exited(0, None)),
        ("killed", Exited(None, signal.SIGKILL)),
    ],
)
def test_a_test_that_ends_its_process_costs_itself_only(what: str, exited: Exited, bench: Bench):
    record = bench.run(what)

    assert outcomes(record) == ["crashed", "passed"]
    (death,) = record.deaths
    assert (death.nodeid, death.exited, death.timed_out) == ("test_x.py::test_1", exited, False)
    assert record.exit_status == 0  # of the process that took up the rest


def test_a_test_that_raises_system_exit_is_an_ordinary_failure(bench: Bench):
    record = bench.run("system exit")

    assert outcomes(record) == ["failed", "passed"]
    assert record.deaths == []


@pytest.mark.parametrize("what", ["loop", "deaf", "setup"])
def test_a_test_that_does_not_end_is_ended(what: str, bench: Bench):
    record = bench.run(what, seconds=1.5)

    assert outcomes(record) == ["timeout", "passed"]
    (death,) = record.deaths
    assert death.timed_out
    if what == "loop":
        assert "test_x.py" in death.stack


def test_an_import_that_does_not_end_is_ended_with_its_file(bench: Bench):
    record = bench.run("import", seconds=1.5)

    (death,) = record.deaths
    assert (death.file, death.nodeid, death.timed_out) == ("test_x.py", None, True)


def test_an_import_that_ends_the_process_is_told_with_its_file(bench: Bench):
    record = bench.run("import dies")

    (death,) = record.deaths
    assert (death.file, death.exited) == ("test_x.py", Exited(3, None))
    assert record.collected  # by the process that passed over the file


def test_a_process_that_says_zero_and_dies_otherwise_is_not_believed(bench: Bench):
    (bench.root / "conftest.py").write_text(
        "import os\ndef pytest_unconfigure(): os._exit(0)\n"  # before the session itself has said so
    )

    record = bench.run("normal")

    assert outcomes(record) == ["passed", "passed"]
    assert record.exit_status is None
    (death,) = record.deaths
    assert (death.nodeid, death.file) == (None, None)


def test_without_resuming_a_death_is_the_end(bench: Bench):
    record = bench.run("segfault", resume=False)

    assert record.unfinished == ["test_x.py::test_2"]
    assert record.exit_status is None


def test_the_whole_session_has_a_limit_of_its_own(bench: Bench):
    record = SessionRecord()

    bench.runner.run(bench.spec("setup"), Limits(session=1.5), record, resume=False)

    (death,) = record.deaths
    assert (death.nodeid, death.timed_out) == ("test_x.py::test_1", True)


def test_what_a_session_started_ends_with_it(bench: Bench):
    bench.run("grandchild", seconds=3)

    mark = f"GRANDCHILD{bench.root / 'test_x.py'}"
    everything = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [words for words in everything if mark in words] == []


def test_an_interrupt_of_the_parent_ends_the_session_and_keeps_what_was_seen(bench: Bench):
    bench.spec("loop")
    record = SessionRecord()
    main = threading.main_thread().ident
    assert main is not None
    threading.Thread(
        target=lambda: (bench.wait_for_a_test(), signal.pthread_kill(main, signal.SIGINT))
    ).start()
    with pytest.raises(KeyboardInterrupt):
        bench.runner.run(bench.spec("loop"), Limits(step=30), record, resume=True)

    assert record.collected
    assert record.results == {}
    children = psutil.Process(bench.server.pid).children(recursive=True)
    assert [child for child in children if child.status() != psutil.STATUS_ZOMBIE] == []


def test_a_test_that_ends_the_server_costs_itself_only(bench: Bench):
    first = bench.server.pid
    record = SessionRecord()
    threading.Thread(target=lambda: (bench.wait_for_a_test(), os.kill(first, signal.SIGKILL))).start()

    bench.runner.run(bench.spec("loop"), Limits(step=30), record, resume=True)

    assert outcomes(record) == ["crashed", "passed"]
    assert bench.server.pid != first
    assert outcomes(bench.run("normal", session_id="s2")) == ["passed", "passed"]


def test_a_server_that_is_gone_between_sessions_is_replaced(bench: Bench):
    os.kill(bench.server.pid, signal.SIGKILL)

    assert outcomes(bench.run("normal")) == ["passed", "passed"]


def test_a_conftest_that_ends_the_server_is_not_tried_for_ever(bench: Bench):
    conftest = bench.root / "conftest.py"
    conftest.write_text("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(5)\n")

    record = bench.run("normal")

    assert [death.cost_something for death in record.deaths] == [False]
    conftest.unlink()
    assert outcomes(bench.run("normal", session_id="s2")) == ["passed", "passed"]


def test_a_session_that_is_over_and_does_not_leave_is_ended_before_its_limit(bench: Bench):
    stays, stops = SessionRecord(), SessionRecord()
    limits = Limits(step=600, leaving=0.3)

    bench.runner.run(bench.spec("stays"), limits, stays, resume=True)
    bench.runner.run(bench.spec("stops and stays", session_id="s2"), limits, stops, resume=True)

    assert outcomes(stays) == ["passed", "passed"]
    assert [(death.timed_out, death.cost_something) for death in stays.deaths] == [(True, False)]
    assert outcomes(stops) == ["crashed", "passed"], "what stopped it is another matter"
    assert (stops.deaths[0].timed_out, stops.deaths[0].nodeid) == (False, "test_x.py::test_1")


def test_a_test_that_stops_its_parent_does_not_stop_the_run(bench: Bench):
    record = SessionRecord()

    bench.runner.run(bench.spec("stops its parent"), Limits(session=1), record, resume=False)

    assert outcomes(record) == ["passed", "passed"]
    assert [death.timed_out for death in record.deaths] == [True]
    assert outcomes(bench.run("normal", session_id="s2")) == ["passed", "passed"]


def test_a_server_that_will_not_stay_is_an_error_and_never_a_result(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "MOST_RENEWALS", 0)
    os.kill(bench.server.pid, signal.SIGKILL)

    with pytest.raises(ForkServerDied):
        bench.run("normal")


def test_what_an_orderly_session_leaves_running_is_ended(bench: Bench):
    record = bench.run("leaves something")

    assert record.exit_status == 0
    assert record.deaths == []
    mark = f"GRANDCHILD{bench.root / 'test_x.py'}"
    everything = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [words for words in everything if mark in words] == []


def test_a_copy_of_the_process_does_not_speak_for_the_session(bench: Bench):
    record = bench.run("copies itself")

    assert outcomes(record) == ["crashed", "passed"]


def test_a_forged_record_is_none(bench: Bench):
    record = bench.run("forges")

    assert outcomes(record) == ["crashed", "failed"]
    assert record.forged == 3


def test_records_that_are_cut_off_are_missed(bench: Bench):
    assert bench.run("cuts").journal_lost
    assert not bench.run("normal", session_id="s2").journal_lost


@pytest.mark.parametrize("what", ["import stops", "import closes"])
def test_an_import_that_ends_the_session_in_order_costs_its_file(what: str, bench: Bench):
    record = bench.run(what)

    (death,) = record.deaths
    assert death.file == "test_x.py"
    assert record.collected


HAS_SUBTESTS = pytest.mark.skipif(pytest.version_tuple < (9,), reason="this pytest has no subtests")


@pytest.mark.parametrize(
    "what",
    [
        "setup",
        "call",
        "teardown",
        pytest.param("call after a subtest", marks=HAS_SUBTESTS),
        "call when run again",
    ],
)
def test_the_phase_of_the_test_that_died_is_known(what: str, bench: Bench):
    again = ("-p", "pytest_rerunfailures", "--reruns=1") if what.endswith("again") else ()
    record = bench.run(f"dies in {what}", args=("-p", "no:cacheprovider", *again, "test_x.py"))

    (death,) = record.deaths
    assert (death.nodeid, death.phase) == ("test_x.py::test_1", what.split()[0])


def test_the_exception_that_ended_the_session_is_kept(bench: Bench):
    (death,) = bench.run("stops").deaths

    assert death.raised is not None
    assert death.raised["exceptions"][0]["message"] == "enough"


def test_tests_after_one_that_closes_the_output_are_not_its_victims(bench: Bench):
    record = bench.run("closes output")

    assert outcomes(record) == ["failed", "passed"]
    assert (record.exit_status, record.deaths) == (1, [])


def test_what_is_to_be_done_meanwhile_is_done_once(bench: Bench):
    done: list[int] = []
    bench.runner = SessionRunner(bench.server, bench.journal, bench.heard, lambda: done.append(1))

    bench.run("normal")
    bench.run("normal", session_id="s2")

    assert done == [1]


def test_the_limit_of_a_test_is_the_largest_of_those_who_want_it():
    record = SessionRecord()
    selections = [{"key": key, "nodeids": ["a"], "narrowed": [], "problems": []} for key in ("x", "y")]
    record.feed(
        {"record": "collected", "session": "s", "at": 1, "planned": ["a"], "selections": selections}
    )
    limits = Limits(step=1, by_key={"x": 3, "y": 7, "z": 9})

    assert (limits.of_test("a", record), limits.of_test("b", record)) == (7, 1)


def test_a_session_that_cannot_be_set_up_says_why(bench: Bench):
    record = bench.run("normal", root=str(bench.root / "missing"))

    assert record.exit_status == 70
    assert "FileNotFoundError" in record.internal_errors[0]
    assert not record.collected


def test_the_server_reports_that_a_session_still_runs(bench: Bench):
    pid = bench.server.start(bench.spec("loop"), own_session=True)

    assert bench.server.poll(0) is None
    assert os.getsid(pid) == pid or time.sleep(0.2) is None
    os.kill(pid, signal.SIGKILL)
    assert bench.server.poll(10) == Exited(None, signal.SIGKILL)


def test_who_stands_by_is_known_as_no_session(bench: Bench):
    bench.run("normal")  # so that nobody stands by yet, and the session's process is late

    pid = bench.server.start(bench.spec("setup", session_id="s2", verbatim=True), own_session=True)
    server, deadline = psutil.Process(bench.server.pid), time.monotonic() + 60
    while len(server.children()) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    children = {process.pid for process in server.children()}
    os.kill(pid, signal.SIGKILL)

    assert bench.server.own_pids - {bench.server.pid} == children - {pid}
    assert len(children) == 2
    assert bench.server.poll(10) == Exited(None, signal.SIGKILL)


def test_another_server_collects_garbage_as_the_first_one_did(bench: Bench):
    before = gc.get_threshold()
    gc.set_threshold(123_456)
    try:
        bench.server.renew()
    finally:
        gc.set_threshold(*before)

    assert outcomes(bench.run("collects as others")) == ["passed", "passed"]


def test_the_server_starts_without_the_libraries_that_the_parent_uses():
    code = (
        "import sys, pytest, pytest_planverify.plugin\n"
        "from pytest_planverify.supervision.forkserver import ForkServer\n"
        "from pytest_planverify.supervision.warming import warm_up\n"
        "warm_up(None)\n"
        "print([name for name in ('pydantic', 'yaml', 'psutil') if name in sys.modules])\n"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_closing_ends_a_session_that_nobody_watches(bench: Bench):
    pid = bench.server.start(bench.spec("loop"), own_session=True)
    bench.wait_for_a_test()

    bench.server.close()

    assert not psutil.pid_exists(bench.server.pid)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    bench.server = ForkServer()


def test_a_server_whose_processes_are_all_gone_before_their_orders_ends_and_forks_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forkserver._Waiting, "hand_over", lambda waiting, request: waiting.dismiss())
    bench = Bench(tmp_path)

    with pytest.raises(ForkServerDied):
        bench.server.start(bench.spec("normal"), own_session=False)

    bench.server.close()
    assert not psutil.pid_exists(bench.server.pid)
