"""Terminal output: quiet, verbose, narrow, coloured or not, with -s, and at the debugger's prompt."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest
from example_project import ONLY_THIS_PLUGIN, Example, Verified, todo
from real_command import outer_environment

ESCAPE = re.compile(r"\x1b\[")
UNCONFIRMED = "--planverify-confirm=0"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    example = Example(
        tmp_path_factory.mktemp("shown"),
        {
            "test_it.py": """\
                def test_green():
                    print("said by the green test")
                def test_red():
                    total = 1
                    assert total == 2, "the total is wrong"
            """,
            "test_returns.py": """\
                import unittest
                def test_sum(): return 1 + 1 == 3
                class Test(unittest.TestCase):
                    def test_product(self): return 2 * 2 == 5
            """,
        },
    )
    example.plan(
        todo("green", "pytest test_it.py::test_green"),
        todo("red", "pytest test_it.py::test_red"),
        todo("blocked", "pytest test_it.py::test_green", after=("red",)),
        todo("returns", "pytest test_returns.py"),
        todo("claimed", status="claimed", requires_testing=False),
    )
    return example


@pytest.fixture(scope="module")
def plain(example: Example) -> Verified:
    return example.verify(UNCONFIRMED)


def test_each_todo_has_a_line_and_a_failed_one_its_diagnosis(plain: Verified):
    assert plain.exit_code == 1
    assert plain.output.startswith("verifying 4 criteria of 1 plan\n"), str(plain)
    decided = {" ".join(line.split()[:3]) for line in plain.output.splitlines()[1:5]}
    assert decided == {"✓ passed green", "✗ failed red", "– blocked blocked", "✓ passed returns"}
    for text in ("green", "TEST_REGRESSION", "test_it.py::test_red", "assert 1 == 2", "the total is wrong"):
        assert text in plain.output, str(plain)
    assert "pytest --planverify plan.yaml::red" in plain.output
    assert "by red" in plain.output
    assert "said by the green test" not in plain.output
    assert not ESCAPE.search(plain.output), repr(plain.output)


def test_a_todo_without_checks_is_shown_only_where_its_state_is(plain: Verified):
    lines = [" ".join(line.split()) for line in plain.output.splitlines() if "claimed" in line.split()]
    assert lines == ["✓ done claimed Todo claimed no checks 0ms not verified"], str(plain)


def test_tests_that_return_a_value_instead_of_asserting_it_are_named(plain: Verified):
    assert plain.states["returns"] == "done", str(plain)
    told = "pytest ignores what a test returns; assert it in test_returns.py::test_sum and 1 more"
    assert told in plain.output


@pytest.mark.parametrize(
    ("options", "env", "coloured"),
    [
        (("--color=no",), {"NO_COLOR": "", "FORCE_COLOR": "1"}, False),
        ((), {"NO_COLOR": "", "FORCE_COLOR": "1"}, True),
    ],
    ids=["--color=no", "FORCE_COLOR"],
)
def test_colour_follows_pytest_options_and_environment_also_of_uncaptured_output(
    options: tuple[str, ...], env: dict[str, str], coloured: bool, example: Example
):
    run = example.verify("plan.yaml::green", "-s", *options, env=env)

    assert run.exit_code == 0, str(run)
    assert "said by the green test" in run.output
    assert bool(ESCAPE.search(run.output)) is coloured, repr(run.output)


def test_a_terminal_shows_progress_and_clears_it_at_the_end(tmp_path: Path):
    waits = "import time\ndef test_waits():\n    time.sleep(1.5)\n"
    example = Example(tmp_path, {"test_it.py": waits})
    example.plan(todo("slow", {"cmd": "pytest test_it.py", "timeout_seconds": 30}))

    output, exit_code = at_a_terminal(example, says=[], TERM="xterm", COLUMNS="")

    assert exit_code == 0, output
    assert re.search(r"slow  \d+s of 30s  0/1  test_it.py::test_waits", output), output
    assert "%" not in output
    head, _, rest = output.rpartition("\x1b[J")
    assert "verifying 1 criterion of 1 plan" in head
    assert "30s" not in rest


def test_the_debugger_prompt_works_in_the_terminal(tmp_path: Path):
    example = Example(
        tmp_path, {"test_it.py": "def test_red():\n    secret = 6 * 7\n    assert not secret\n"}
    )
    example.plan(todo("red", "pytest test_it.py"))

    output, exit_code = at_a_terminal(example, "--pdb", says=["p secret * 1000", "q"])

    assert "(Pdb)" in output, output
    assert "42000" in output, output
    assert exit_code in (1, 2), output
    assert "done" not in output.splitlines()[-1]


def at_a_terminal(example: Example, *options: str, says: list[str], **settings: str) -> tuple[str, int]:
    """Run the command at a new terminal and type a line at each prompt; return the output and exit code."""
    env = outer_environment()
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    env |= settings
    env.pop("CI", None)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(example.root)
        command = [sys.executable, "-m", "pytest", *ONLY_THIS_PLUGIN, "--planverify", *options]
        os.execve(sys.executable, command, env)
    output = b""
    answers = list(says)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1)
        if not ready:
            continue
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
        if answers and output.rstrip().endswith(b"(Pdb)"):
            os.write(terminal, answers.pop(0).encode() + b"\n")
            output += b"\n"
    else:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return output.decode("utf-8", "replace"), os.waitstatus_to_exitcode(status)
