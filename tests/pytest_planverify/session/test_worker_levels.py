"""Workers have the outcomes of plain pytest, regardless of the level of their server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from worker_bench import Bench

import pytest_planverify
from pytest_planverify.observe.spec import Level
from pytest_planverify.session.records import WorkerRecord

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
    "a plugin that would start a thread for workers of pytest-xdist": Case(
        Level.STARTED,
        {"test_x.py": "runs = []\ndef test_it():\n    runs.append(1)\n    assert len(runs) == 2\n"},
        "-p pytest_rerunfailures -p xdist --reruns 1",
    ),
    "an option that pytest does not know": Case(
        Level.IMPORTED, {"test_x.py": GREEN}, "--frobnicate", REFUSED
    ),
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def seen(record: WorkerRecord) -> Seen:
    return record.exit_status, {name: result.outcome for name, result in record.results.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_worker_has_the_outcomes_of_plain_pytest_at_every_level(case: Case, bench: Bench):
    bench.write(case.files)
    command = f"{f'PYTHONPATH={OWN_PATH} ' if case.pythonpath else ''}pytest {case.words}"

    first, again = bench.run(command), bench.run(command)

    assert seen(first) == seen(again) == case.plain
    assert bench.levels == {case.level}


def test_thread_started_by_a_plugin_prevents_forking_after_it(bench: Bench):
    starts = "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
    bench.write(
        {
            "conftest.py": f"import threading, time\n{hook('sessionstart(session)', starts)}",
            "test_x.py": "import threading\ndef test_it(): assert threading.active_count() == 2\n",
        }
    )

    assert seen(bench.run()) == PASSED


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
