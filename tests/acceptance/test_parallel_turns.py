"""`planverify run --jobs N` works on several todos at once, with the same result as one at a time."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from baseline_samples import commit_all
from module_project import write_module_project
from test_run_with_agents import (
    agent,
    assert_ended_as_resumable,
    carry_out,
    interrupt,
    run,
    run_forked,
    start,
)

from planner.errors import PlannerError
from pytest_planverify.harness import turns
from pytest_planverify.harness.turns import TurnPool

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git keeps the files of each turn")

MEETING = """\
import os, pathlib, sys, time
todo = os.environ["PLANVERIFY_TODO"].partition("_branch_")[0]
root = pathlib.Path(os.environ["PLANVERIFY_ROOT"])
assert pathlib.Path.cwd() == root
assert (root / "secret.env").read_text() == "ignored"
here = pathlib.Path(__file__).with_suffix("")
here.mkdir(exist_ok=True)
(here / todo).touch()
give_up = time.monotonic() + 60
while len(list(here.iterdir())) < 2:
    assert time.monotonic() < give_up, "nobody works at the same time"
    time.sleep(0.05)
pathlib.Path(f"shop/{todo}.py").write_text(f"NAME = '{todo}'\\n")
pathlib.Path(os.environ["PLANVERIFY_RESULT"]).write_text('{"tokens": 7}')
"""
SHARING = """\
names = pathlib.Path("shop/__init__.py")
held = names.read_text()
time.sleep(0.3 if todo == "left" else 0)  # so that the later turn ends first
names.write_text(held + f"{todo} = 1\\n")
"""


ONE_OF_TWO = ("--jobs", "2", "--only", "left")
"""Options for one turn that could be one of two at a time."""


def make_project(root: Path, *, limited: bool = True) -> Path:
    write_module_project(root, ("left", "right"), {".gitignore": "*.env\n"}, limited=limited)
    commit_all(root)
    (root / "secret.env").write_text("ignored")
    return root


def changed(root: Path) -> list[str]:
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True)
    return sorted(line[3:] for line in done.stdout.splitlines())


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new folder for temporary files, without the work trees of other runs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))  # for forks of this process
    return folder


def test_parallel_turns_are_merged_and_work_that_conflicts_is_repeated(tmp_path: Path, temporary: Path):
    root = make_project(tmp_path / "project", limited=False)
    done = carry_out(root, MEETING + SHARING, "--jobs", "2")
    assert done.exit_code == 0, str(done)
    assert "completed: 2 of 2 todos done, 3 turns" in done.output
    assert "right: what was merged meanwhile changes shop/__init__.py otherwise" in done.output
    assert changed(root) == ["shop/__init__.py", "shop/left.py", "shop/right.py"]
    assert (root / "shop/__init__.py").read_text() == "left = 1\nright = 1\n"
    assert list(temporary.glob("planverify-tree-*")) == []


def test_what_turns_wrote_outside_their_limits_is_restored_even_after_termination(tmp_path: Path):
    """In the tree of the user, and while a turn is ended also in the records of the run."""
    root = make_project(tmp_path / "project")
    code = (
        "import os, pathlib, signal, sys, time\n"
        f"root = pathlib.Path({str(root)!r})\n"
        "ready = pathlib.Path(__file__ + '.ready')\n"
        "def write(*signals):\n"
        "    for name in ('.planverify/answers.json', 'tests/test_left.py')[not signals:]:\n"
        "        (root / name).write_text('')\n"
        "    sys.exit()\n"
        "if os.environ['PLANVERIFY_TODO'] == 'left':\n"
        "    while not ready.exists():\n"
        "        time.sleep(0.01)\n"
        "    write()\n"
        "signal.signal(signal.SIGTERM, write)  # the other turn is over and undone by then\n"
        "ready.touch()\n"
        "time.sleep(60)\n"
    )
    done = carry_out(root, code, "--jobs", "2")
    assert done.exit_code == 13, str(done)
    assert "changed tests/test_left.py, outside of its allowed_files; the turn is undone" in done.output
    assert changed(root) == []
    assert not (root / ".planverify/answers.json").exists()

    (back,) = re.findall(r"to get the changes back: planverify (undo plan.yaml --to \w+)", done.output)
    undone = run_forked(root, *back.split())
    assert undone.exit_code == 0, str(undone)
    assert changed(root) == ["tests/test_left.py"]


def test_a_closed_terminal_ends_agents_restores_files_and_prints_the_resume_command(
    tmp_path: Path, temporary: Path
):
    root = make_project(tmp_path / "project")
    slow = (
        "import os, pathlib, time\n"
        "pathlib.Path('shop/left.py').write_text('half = ')\n"
        "pathlib.Path(__file__ + '.pid').write_text(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    pid = root.parent / "agent.py.pid"
    process = start(root, slow, *ONE_OF_TWO)
    output = interrupt(process, lambda: pid.exists() and pid.read_text(), signal.SIGHUP)
    assert_ended_as_resumable(process, output, pid)
    assert changed(root) == []
    assert list(temporary.glob("planverify-tree-*")) == []


DYING = """\
import os, pathlib, time
import psutil
first = pathlib.Path(__file__ + ".first")
if not first.exists():
    first.touch()
    between, worker, *_ = psutil.Process().parents()
    assert between.cmdline() == worker.cmdline()
    worker.kill()
    time.sleep(60)
todo = os.environ["PLANVERIFY_TODO"]
pathlib.Path(f"shop/{todo}.py").write_text(f"NAME = '{todo}'\\n")
"""


def test_a_cluster_gives_the_same_result_even_if_a_worker_dies(tmp_path: Path):
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    root = make_project(tmp_path / "project")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        words = ("--executor", f"dask://{address}", "--agent", agent(root, DYING))
        done = run(root, "run", "plan.yaml", *words)
    assert done.exit_code == 0, str(done)
    assert "completed: 2 of 2 todos done, 2 turns" in done.output
    assert changed(root) == ["shop/left.py", "shop/right.py"]


@pytest.mark.parametrize("is_silent", [False, True], ids=["closed", "silent"])
def test_a_cluster_without_a_scheduler_is_refused(monkeypatch: pytest.MonkeyPatch, is_silent: bool):
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    monkeypatch.setattr(turns, "_ANSWER_SECONDS", 0.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(PlannerError, match="no scheduler answers there"),
    ):
        TurnPool(2, f"dask://127.0.0.1:{silent.getsockname()[1] if is_silent else 1}")
