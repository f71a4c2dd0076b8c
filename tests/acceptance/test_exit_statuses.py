"""The exit status of the real command: of several results, the most serious one decides.

The order of all statuses is tested in `tests/pytest_planverify/session/test_exit_status.py`.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, todo
from real_command import wait_until

from pytest_planverify.session.exit_status import ExitStatus

FILES = {
    "test_all.py": """
        import os, pathlib, socket, time

        def test_passes(): pass
        def test_fails(): assert False
        def test_sleeps(): time.sleep(60)

        def test_reaches_out():
            try:
                socket.getaddrinfo("example.org", 443)
            except OSError:
                pass

        def test_many_files():
            for number in range(5):
                pathlib.Path(f"file{number}.txt").write_text("x")
    """,
    "breaking.py": """
        import pytest_planverify.session.end as end

        def keep_outcomes(document, path):
            raise RuntimeError("a plugin of the user's own")

        end.keep_outcomes = keep_outcomes
    """,
}


def cmd(name: str) -> str:
    return f"pytest test_all.py::test_{name}"


PASSES = todo("passes", cmd("passes"))
FAILS = todo("fails", cmd("fails"))
REACHES = todo("reaches", cmd("reaches_out"))
FILES_MADE = todo("files", cmd("many_files"))
UNDECIDED = todo("undecided", "bandit -r .")
ASKS = todo("asks", manual=[{"question": "Does it look right?"}])
LIMITS = {"network": "deny", "budget": {"new_files": 0}}


@pytest.mark.parametrize(
    ("status", "todos", "options"),
    [
        (3, [FAILS], ("-p", "breaking")),
        (10, [PASSES, UNDECIDED, ASKS], ()),
        (13, [FAILS, REACHES, FILES_MADE], ()),
    ],
    ids=["internal-error", "inconclusive-before-human", "violation-before-budget"],
)
def test_the_most_serious_result_decides_the_exit_status(
    tmp_path: Path, status: int, todos: list[dict[str, Any]], options: tuple[str, ...]
):
    project = Example(tmp_path, FILES)
    project.plan(*todos, metadata=LIMITS)

    run = project.verify("--planverify-confirm=0", *options, env={"PYTHONPATH": str(tmp_path)})

    assert run.exit_code == status, str(run)
    if status != ExitStatus.INTERNAL_ERROR:  # then there may be no outcomes
        assert run.document is not None
        assert run.document["run"]["exit_status"] == status


def test_an_interrupt_decides_the_exit_status_before_a_violation(tmp_path: Path):
    example = Example(tmp_path, FILES)
    example.plan(REACHES, todo("sleeps", cmd("sleeps")), metadata=LIMITS)
    process = example.start()
    wait_until(lambda: re.search('"test_started".*test_sleeps', journals(example)))
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=300)[0]

    assert process.returncode == 2, output


def journals(example: Example) -> str:
    paths = example.root.glob(".planverify/runs/*/journal.jsonl")
    return "\n".join(path.read_text(errors="replace") for path in paths)


def test_the_page_lists_exit_statuses_in_order_of_precedence():
    page = (Path(__file__).parents[2] / "docs/running.md").read_text(encoding="utf-8")
    table = page.partition("The exit status is the first")[2].partition("\n## ")[0]

    told = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert told[-10:] == ["3", "2", "4", "13", "12", "1", "10", "11", "5", "0"]
    assert {int(status) for status in told[-10:]} == set(ExitStatus)
