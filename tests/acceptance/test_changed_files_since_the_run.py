"""After a run the planner knows which files have changed since, and whether the run was cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from example_project import ONLY_THIS_PLUGIN
from real_command import LEAN_TERMINAL, run_pytest

from planner.planfile.latest_outcomes import FoundOutcomes, find_outcomes
from planner.planfile.loader import load_plan

PLAN = """\
todo_list_id: shop
items:
  - {id: cart, title: Cart, verify: pytest tests/test_cart.py}
  - {id: price, title: Price, verify: pytest tests/test_price.py}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write(tmp_path, "plan.yaml", PLAN)
    write(tmp_path, "pytest.ini", "[pytest]\npythonpath = .\n")
    write(tmp_path, "cart.py", "def total(cart): return sum(cart)\n")
    write(tmp_path, "price.py", "def gross(net): return net\n")
    write(
        tmp_path,
        "tests/test_cart.py",
        "from cart import *\ndef test_total(): assert total([1, 2]) == 3\n",
    )
    write(tmp_path, "tests/test_price.py", "from price import *\ndef test_gross(): assert gross(2) == 3\n")
    write(tmp_path, "README.md", "A shop.\n")
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(text)


def verify(folder: Path, *options: str) -> int:
    words = (*ONLY_THIS_PLUGIN, "-p", "no:cacheprovider", "--planverify", *options)
    return run_pytest(*words, cwd=folder, env=LEAN_TERMINAL).exit_code


def found(folder: Path) -> FoundOutcomes:
    return find_outcomes(load_plan(folder / "plan.yaml"))


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("under_git", [False, True])
def test_files_that_changed_since_the_run_are_named_with_the_todos_that_rest_on_them(
    shop: Path, under_git: bool
) -> None:
    if under_git:
        git(shop, "init", "-q")
        git(shop, "add", ".")
        git(shop, "commit", "-qm", "first")
    assert verify(shop) == 1
    assert found(shop).files.paths == ()
    assert found(shop).unfinished is None

    write(shop, "README.md", "A shop, and what nobody tests.\n")
    os.utime(shop / "cart.py")
    assert found(shop).files.paths == ()

    write(shop, "cart.py", "def total(cart): return 0\n")
    assert found(shop).files.by_todo == {"cart": ("cart.py",)}

    write(shop, "new.py", "")
    files = found(shop).files
    assert files.paths == ("cart.py", "new.py")
    assert files.by_todo == {"cart": ("cart.py",), "price": ("new.py",)}

    (shop / "price.py").unlink()
    assert "price.py" in found(shop).files.by_todo["price"]

    assert verify(shop) == 1
    assert found(shop).files.paths == ()


def test_before_the_first_run_there_are_no_outcomes_and_the_command_is_named(shop: Path) -> None:
    nothing = found(shop)

    assert (nothing.document, nothing.unfinished, nothing.files.paths) == (None, None, ())
    assert nothing.verify.startswith("pytest --planverify ")


def test_a_run_that_was_killed_is_told_until_another_comes_to_its_end(shop: Path) -> None:
    write(shop, "tests/test_price.py", "import time\ndef test_gross(): time.sleep(60)\n")
    command = [sys.executable, "-m", "pytest", *ONLY_THIS_PLUGIN, "--planverify"]
    process = subprocess.Popen(
        command, cwd=shop, env={**os.environ, **LEAN_TERMINAL}, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while ((run := found(shop).unfinished) is None or run.judged < 1) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert run is not None
    assert (run.state, run.judged) == ("running", 1)
    process.send_signal(signal.SIGKILL)
    process.wait()

    killed = found(shop)

    assert killed.document is None
    assert killed.unfinished is not None
    assert (killed.unfinished.state, killed.unfinished.judged) == ("killed", 1)
    write(shop, "tests/test_price.py", "def test_gross(): pass\n")
    assert verify(shop, "--planverify-resume") == 0
    assert found(shop).unfinished is None


def test_a_run_that_is_not_kept_and_a_journal_that_is_none_tell_nothing(shop: Path) -> None:
    assert verify(shop) == 1
    write(shop, "cart.py", "")
    journal = next((shop / ".planverify/runs").glob("*/journal.jsonl"))
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], "[]", '{"record": "check_judged", "session": "parent", 1']))
    assert found(shop).unfinished is not None

    journal.unlink()
    os.mkfifo(journal)

    assert found(shop).unfinished is None
    assert found(shop).files.paths == ()
    assert json.loads(found(shop).path.read_text())["run"]["run_id"]
