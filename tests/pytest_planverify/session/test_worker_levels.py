"""Workers have the outcomes of plain pytest, regardless of the level of their server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from worker_bench import Bench

from pytest_planverify.observe.spec import Level
from pytest_planverify.session.records import WorkerRecord

TEST = "def test_it(request):\n    assert getattr(request.config, 'told', None) == {!r}\n"
HOOK = "def pytest_{}: {}\n"
FILES: dict[str, tuple[dict[str, str], str, int]] = {
    "a fixture in a conftest, and a test that fails": (
        {
            "conftest.py": "import pytest\n@pytest.fixture\ndef five(): return 5\n",
            "test_x.py": "def test_it(five): assert five == 5\ndef test_red(five): assert five == 6\n",
        },
        "",
        Level.STARTED,
    ),
    "pytest_configure": (
        {
            "conftest.py": HOOK.format("configure(config)", "config.told = 'configure'"),
            "test_x.py": TEST.format("configure"),
        },
        "",
        Level.PARSED,
    ),
    "pytest_sessionstart": (
        {
            "conftest.py": HOOK.format("sessionstart(session)", "session.config.told = 'start'"),
            "test_x.py": TEST.format("start"),
        },
        "",
        Level.PARSED,
    ),
    "pytest_addoption": (
        {
            "conftest.py": HOOK.format("addoption(parser)", "parser.addoption('--shop', default='x')"),
            "test_x.py": "def test_it(request): assert request.config.option.shop == 'y'\n",
        },
        "--shop=y",
        Level.IMPORTED,
    ),
    "a hook that the text of the conftest does not show": (
        {
            "conftest.py": (
                "globals()['pytest_' + 'configure'] = lambda config: vars(config).update(told=1)\n"
            ),
            "test_x.py": TEST.format(1),
        },
        "",
        Level.PARSED,
    ),
    "an early hook that the text of the conftest does not show": (
        {
            "conftest.py": (
                "globals()['pytest_' + 'addoption'] = "
                "lambda parser: parser.addoption('--shop', default='x')\n"
            ),
            "test_x.py": "def test_it(request): assert request.config.option.shop == 'x'\n",
        },
        "",
        Level.IMPORTED,
    ),
    "a conftest below that has pytest_configure": (
        {
            "sub/conftest.py": HOOK.format("configure(config)", "config.told = 1"),
            "sub/test_y.py": TEST.format(1),
            "test_x.py": "def test_it(): pass\n",
        },
        "sub",
        Level.PARSED,
    ),
    "a conftest that raises": (
        {"conftest.py": "raise RuntimeError('broken')\n", "test_x.py": "def test_it(): pass\n"},
        "",
        Level.IMPORTED,
    ),
    "a plugin of the project that implements pytest_configure": (
        {"own.py": HOOK.format("configure(config)", "config.told = 1"), "test_x.py": TEST.format(1)},
        "-p own",
        Level.IMPORTED,
    ),
    "a conftest that names a plugin of the project": (
        {
            "conftest.py": "pytest_plugins = ['own']\n",
            "own.py": HOOK.format("configure(config)", "config.told = 1"),
            "test_x.py": TEST.format(1),
        },
        "",
        Level.PARSED,
    ),
    "a conftest that looks at files beside the one that is named": (
        {
            "conftest.py": "seen = []\ndef pytest_collect_file(file_path): seen.append(file_path.name)\n",
            "sub/test_y.py": "raise RuntimeError\n",
            "sub/test_z.py": (
                "import conftest\n"
                "def test_it(): assert sorted(conftest.seen) == ['test_y.py', 'test_z.py']\n"
            ),
        },
        "sub/test_z.py",
        Level.STARTED,
    ),
    "files in packages, one of them twice": (
        {
            "sub/__init__.py": "",
            "sub/deep/__init__.py": "",
            "sub/deep/test_y.py": "class TestIt:\n    def test_a(self): pass\n    def test_b(self): pass\n",
            "sub/deep/test_z.py": "raise RuntimeError\n",
            "test_x.py": "def test_it(): pass\n",
        },
        "sub/deep/test_y.py::TestIt::test_b test_x.py sub/deep/test_y.py::TestIt",
        Level.STARTED,
    ),
    "an expression over a file and a folder": (
        {
            "sub/test_y.py": "def test_it(): pass\n",
            "test_x.py": "def test_it(): pass\ndef test_no(): assert 0\n",
        },
        "test_x.py sub -k it",
        Level.STARTED,
    ),
    "a plugin that would start a thread for workers of pytest-xdist": (
        {"test_x.py": "runs = []\ndef test_it():\n    runs.append(1)\n    assert len(runs) == 2\n"},
        "-p pytest_rerunfailures -p xdist --reruns 1",
        Level.STARTED,
    ),
    "an option that pytest does not know": (
        {"test_x.py": "def test_it(): pass\n"},
        "--frobnicate",
        Level.IMPORTED,
    ),
}
PYTHONPATH = {"a plugin of the project that implements pytest_configure": "PYTHONPATH=. "}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def plain(bench: Bench, what: str, words: str) -> tuple[int, dict[str, str]]:
    """Return the exit status and outcomes of the command in a separate process."""
    environment = {**os.environ, "PYTHONPATH": "."} if what in PYTHONPATH else dict(os.environ)
    done = subprocess.run(
        [Path(sys.executable).with_name("pytest"), "-p", "no:cacheprovider", "-rA", "-q", *words.split()],
        cwd=bench.root,
        env=environment,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^(PASSED|FAILED|ERROR) (\S+::\S+)", done.stdout, re.MULTILINE)
    return done.returncode, {nodeid: outcome.lower() for outcome, nodeid in found}


def seen(record: WorkerRecord) -> tuple[int | None, dict[str, str]]:
    return record.exit_status, {name: result.outcome for name, result in record.results.items()}


@pytest.mark.parametrize("what", FILES)
def test_worker_has_the_outcomes_of_plain_pytest_at_every_level(what: str, bench: Bench):
    files, words, level = FILES[what]
    bench.write(files)
    command = f"{PYTHONPATH.get(what, '')}pytest {words}"

    expected = plain(bench, what, words)
    first, again = bench.run(command), bench.run(command)

    assert seen(first) == seen(again) == seen(bench.run(command, cold=True)) == expected
    assert bench.levels == {level}


def test_thread_started_by_a_plugin_prevents_forking_after_it(bench: Bench):
    bench.write(
        {
            "conftest.py": (
                "import threading, time\n"
                "def pytest_sessionstart(session):\n"
                "    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
            ),
            "test_x.py": "import threading\ndef test_it(): assert threading.active_count() == 2\n",
        }
    )

    assert seen(bench.run()) == (0, {"test_x.py::test_it": "passed"})


def test_workers_share_no_imported_modules_of_the_project(bench: Bench):
    bench.write(
        {
            "shop.py": "prices = []\n",
            "test_x.py": "import sys\ndef test_a():\n    import shop\n    shop.prices.append(1)\n",
            "test_y.py": "import sys\ndef test_b():\n    assert 'shop' not in sys.modules\n",
        }
    )

    assert seen(bench.run("pytest test_x.py"))[0] == 0
    assert seen(bench.run("pytest test_y.py"))[0] == 0


def test_test_that_imports_a_shadowing_module_runs_only_once(bench: Bench):
    # The server is forked from this process, so the package must not be imported here yet.
    name = next(each for each in ("sortedcontainers", "zict", "truststore") if each not in sys.modules)
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
    # A server that preloads what the first worker reports takes over as soon as it is ready.
    for _ in range(100):
        if name in bench.preloaded:
            break
        bench.run("pytest test_x.py")
    assert name in bench.preloaded

    assert seen(bench.run("pytest test_y.py")) == (0, {"test_y.py::test_b": "passed"})
    assert (bench.root / "runs").read_text() == "1"
