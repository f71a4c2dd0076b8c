"""Projects whose tests end, stop or block their process, for each kind of fault and each place."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

PLACES = ("import", "setup", "call", "teardown", "conftest")
"""Places of a fault: while a file is imported, in a phase of a test, while a conftest is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to end, stop or block a process, and the expected result."""

    code: str
    hangs: bool = False
    verdict: str = "failed"
    category: str | None = "TEST_CRASH"
    signal: str | None = None
    """The signal that ends the process."""
    exit_code: int | None = None
    """The exit status of the process, at every place."""
    leaves_a_stack: bool = False
    only_conftest: bool = False
    """Whether the fault is a hook, which works only in a conftest."""
    late: bool = False
    """Whether the fault shows only at the end of the session."""
    pytest_may_stumble: tuple[str, ...] = ()
    """The places where pytest itself may fail on the fault, so that the verdict is undefined."""


def _hangs(code: str, *, late: bool = False) -> Fault:
    return Fault(code=code, hangs=True, category="TEST_TIMEOUT", late=late)


def _hook(code: str, **more: Any) -> Fault:
    return Fault(code=code, only_conftest=True, **more)


def _harmless(code: str, but_for_pytest: tuple[str, ...] = ()) -> Fault:
    return Fault(code=code, verdict="passed", category=None, pytest_may_stumble=but_for_pytest)


_FAR_CHILD = """\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.execvp('sleep', ['sleep', '600'])
    os._exit(0)
"""

FAULTS: dict[str, Fault] = {
    "segfault": Fault(code="import ctypes\nctypes.string_at(0)", signal="SIGSEGV", leaves_a_stack=True),
    "os_exit_0": Fault(code="import os\nos._exit(0)", exit_code=0),
    "sys_exit_0": Fault(code="import sys\nsys.exit(0)"),
    "pytest_exit": Fault(code="import pytest\npytest.exit('enough', returncode=0)"),
    "keyboard_interrupt": Fault(code="raise KeyboardInterrupt"),
    "sigkill": Fault(code="import os\nos.kill(os.getpid(), 9)", signal="SIGKILL"),
    "sigterm": Fault(code="import os\nos.kill(os.getpid(), 15)", signal="SIGTERM"),
    "sigint": Fault(code="import os, time\nos.kill(os.getpid(), 2)\ntime.sleep(0.2)"),
    "sighup": Fault(code="import os\nos.kill(os.getpid(), 1)", signal="SIGHUP"),
    "group_sigkill": Fault(code="import os\nos.killpg(0, 9)", signal="SIGKILL"),
    "memory": Fault(
        code="import resource\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)\n"
        "kept = [bytearray(8 << 20) for _ in range(100)]",
        category="TEST_REGRESSION",
    ),
    "close_stdout": Fault(code="import os, sys\nsys.stdout.close()\nos.close(1)"),
    "close_all": Fault(code="import os\nos.closerange(0, 65536)"),
    "close_files": Fault(code="import os\nos.closerange(3, 65536)"),
    "takes_files": Fault(
        code="import os\nos.closerange(3, 65536)\nkept = [open(os.devnull, 'w') for _ in range(64)]",
        late=True,
    ),
    "silent_segfault": Fault(
        code="import ctypes, faulthandler\nfaulthandler.disable()\nctypes.string_at(0)", signal="SIGSEGV"
    ),
    "no_room": Fault(code="import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", late=True),
    "deep_pickle": Fault(
        code="import pickle, sys\nsys.setrecursionlimit(10**8)\ndeep = []\n"
        "for _ in range(10**6): deep = [deep]\npickle.dumps(deep)",
        category=None,
    ),
    "alarm": Fault(
        code="import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)",
        signal="SIGALRM",
    ),
    "executes": Fault(code="import os\nos.execv('/bin/true', ['true'])", exit_code=0),
    "kills_parent": Fault(code="import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(0.2)"),
    "aborts_at_exit": Fault(
        code="import atexit, os\natexit.register(os.abort)", signal="SIGABRT", late=True
    ),
    "copies_itself": Fault(code="import os\nif os.fork(): os._exit(0)", exit_code=0),
    "few_files": _harmless(
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))", ("import", "conftest")
    ),
    "exits_at_exit": _harmless("import atexit, os\natexit.register(os._exit, 0)"),
    "no_stdout": _harmless("import sys\nsys.stdout = sys.stderr = None"),
    "no_folder": _harmless(
        "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.rmdir(os.getcwd())", ("import", "conftest")
    ),
    "no_hook": _harmless("import sys\nsys.excepthook = lambda *error: 1 / 0"),
    "thread_raises": _harmless("import threading\nthreading.Thread(target=lambda: 1 / 0).start()"),
    "terminates_parent": _harmless("import os\nos.kill(os.getppid(), 15)"),
    "no_records": _harmless("import shutil\nshutil.rmtree('.planverify/runs', ignore_errors=True)"),
    "leaves_far_child": Fault(code=_FAR_CHILD, verdict="passed", category=None),
    "loop": _hangs("while True: pass"),
    "c_sleep": _hangs("import ctypes\nctypes.PyDLL(None).sleep(600)"),
    "far_child": _hangs(_FAR_CHILD + "time.sleep(600)"),
    "deaf": _hangs(
        "import signal, time\n"
        "for each in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(each, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "time.sleep(600)"
    ),
    "swallows": _hangs(
        "import time\nwhile True:\n    try: time.sleep(600)\n    except BaseException: pass"
    ),
    "stops_parent": _hangs("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)", late=True),
    "stopped": _hangs("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "atexit": _hangs("import atexit, time\natexit.register(time.sleep, 600)", late=True),
    # Last of the tests, as the forked copy repeats everything after it.
    "goes_on_twice": _harmless("import os\nos.fork()"),
    "at_configure": _hook("import os\ndef pytest_configure(): os._exit(0)", exit_code=0),
    "at_collection": _hook("import os\ndef pytest_collection_modifyitems(): os._exit(0)", exit_code=0),
    "at_unconfigure": _hook("import os\ndef pytest_unconfigure(): os._exit(0)", exit_code=0),
    "finish_hangs": Fault(
        code="import time\ndef pytest_sessionfinish(): time.sleep(600)",
        hangs=True,
        category="TEST_TIMEOUT",
        only_conftest=True,
        late=True,
    ),
    "no_protocol": _hook("def pytest_runtest_protocol(item, nextitem): return True"),
    "no_loop": _hook("def pytest_runtestloop(session): return True", verdict="inconclusive", category=None),
    "no_collection": _hook("def pytest_collection(session): return True", category="TEST_NOT_FOUND"),
}


def cells() -> list[tuple[str, str]]:
    """Return every valid combination of place and fault."""
    return [
        (place, name)
        for name, fault in FAULTS.items()
        for place in PLACES
        if place == "conftest" or not fault.only_conftest
    ]


def files_of(place: str, name: str) -> dict[str, str]:
    """Return the files of one combination by path."""
    code = FAULTS[name].code
    inside = textwrap.indent(code, "    ")
    fixture = "import pytest\n@pytest.fixture\ndef prepared():\n"
    prepared = "def test_it(prepared): pass\n"
    file = _file_of(place, name)
    return {
        "import": {file: f"{code}\ndef test_it(): pass\n"},
        "setup": {file: f"{fixture}{inside}\n    yield\n{prepared}"},
        "call": {file: f"def test_it():\n{inside}\n"},
        "teardown": {file: f"{fixture}    yield\n{inside}\n{prepared}"},
        "conftest": {file: "def test_it(): pass\n", f"with_{name}/conftest.py": f"{code}\n"},
    }[place]


def faulty_test(place: str, name: str) -> str:
    """Return the selection for a criterion: the faulty test or its file."""
    file = _file_of(place, name)
    return file if place in ("import", "conftest") else f"{file}::test_it"


def _file_of(place: str, name: str) -> str:
    file = f"test_{place}_{name}.py"
    return f"with_{name}/{file}" if place == "conftest" else file
