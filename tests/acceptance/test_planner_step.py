"""`planner step` as its drivers use it: through pipes, killed at any moment, with answers of a person."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from baseline_samples import commit_all
from documented_commands import environment_of_a_reader, live_through
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from real_command import PYTHON
from real_planner import planner
from stepping import BARE, FAILED, PASSED, Step, event, shop, told

from planner.model.actions import Action
from planner.model.events import Event
from planner.store.run_log import RunLog, run_of_log

REPOSITORY = Path(__file__).parents[2]
DRIVERS = REPOSITORY / "examples" / "drivers"
PAGE = REPOSITORY / "docs" / "engine-protocol.md"
SPENT = event("budget_spent", 1, tokens=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shop(tmp_path)
    return tmp_path


def logged(folder: Path) -> list[Any]:
    return [entry.event for entry in RunLog.read(folder / "run.jsonl").entries()]


def test_a_pass_without_checks_counts_only_with_allow_unproved(folder: Path) -> None:
    bare = [event("run_started"), event("verified", 1, outcome={"todo_id": "t1", **BARE})]
    refused = told(folder, bare)[-1].last

    assert refused["error"]["rule"] == "no-proof"
    assert "--allow-unproved" in refused["error"]["remedy"]

    words = ("plan.yaml", "--log", "bare.jsonl", "--allow-unproved")
    answers = told(folder, [*bare, event("verified", 2, outcome={"todo_id": "t2", **PASSED})], *words)

    assert answers[1].last["state"]["unproved"] == ["t1"]
    assert answers[2].last["state"] == {
        "plan": "completed", "todos": {"t1": "done", "t2": "done"}, "unproved": ["t1"],
    }  # fmt: skip
    shown = planner("status", "plan.yaml", "--log", "bare.jsonl", cwd=folder).out
    assert [line.endswith("not verified") for line in shown.splitlines() if " done" in line][:2] == [
        True,
        False,
    ], shown


def test_the_approve_command_shown_by_next_answers_a_driver(folder: Path) -> None:
    shop(folder, metadata={"auto_fix_mode": False})
    step = Step(folder)
    step.tell(event("run_started"))
    step.tell(event("work_finished", 1, todo_id="t1"))
    step.tell(event("verified", 2, outcome={"todo_id": "t1", **FAILED}))

    shown = planner("next", "plan.yaml", "--log", "run.jsonl", cwd=folder).out
    found = re.search(r"planner (approve .* t1_branch_01)", shown)
    assert found is not None, shown
    approved = planner(*found[1].split(), cwd=folder)
    answer = step.tell(event("clock_ticked", 3))

    assert approved.status == 0, approved.err
    assert answer.kinds == ["publish_plan", "implement"]
    assert answer.todos["t1_branch_01"] == "active"
    assert step.end() == 0


def test_an_invalid_event_is_answered_and_leaves_the_log_unchanged(folder: Path) -> None:
    step = Step(folder)
    step.tell(event("run_started"))
    before = (folder / "run.jsonl").read_bytes()

    for line, rule in (
        (b"no json", "unfit-event"),
        (b'{"event": "clock_ticked", "x-a": "' + b"a" * (17 << 20) + b'"}', "unfit-event"),
        (json.dumps(event("work_finished", 1, todo_id="t2")).encode(), "illegal-transition"),
    ):
        answer = step.tell(line)
        assert answer.actions == []
        assert answer.last["error"]["rule"] == rule, answer.last
        assert answer.last["error"]["message"]
        assert answer.last["error"]["remedy"]
    assert (folder / "run.jsonl").read_bytes() == before

    step.write(b"\r\n\n  \n")
    assert step.tell(json.dumps(event("clock_ticked", 2)) + "\r").last["state"]["plan"] == "executing"
    step.write(json.dumps(event("clock_ticked", 3)).encode())  # without a newline
    assert step.end() == 0
    assert step.acknowledged == 6
    assert step.err == ""


def test_a_driver_that_closes_its_pipe_is_no_error(folder: Path) -> None:
    step = Step(folder)
    step.tell(event("run_started"))
    step.hear_no_more()
    step.write(json.dumps(SPENT).encode() + b"\n")
    assert step.end(drain=False) == 0
    assert logged(folder)[-1].event == "budget_spent"

    silent = Step(folder)
    assert silent.end() == 0


def test_an_interrupt_ends_step_with_one_line(folder: Path) -> None:
    step = Step(folder)
    step.tell(event("run_started"))
    os.kill(step.pid, signal.SIGINT)

    assert step.end() == 130
    assert step.err == "planner: interrupted\n"


def test_step_without_standard_input_does_nothing(folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{PYTHON} -m planner step plan.yaml --log run.jsonl <&-"],
        cwd=folder,
        env={**environment_of_a_reader(), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_kill_at_any_moment_loses_no_acknowledged_event(folder: Path) -> None:
    chance = random.Random(1)
    told(folder, [event("run_started")])
    acknowledged = sent = 0
    for _ in range(10):
        step = Step(folder)
        step.write((json.dumps(SPENT) + "\n").encode() * 60)
        for _ in range(chance.randrange(12)):
            step.answer()
        time.sleep(chance.random() * 0.003)
        step.kill()
        acknowledged += step.acknowledged
        sent += 60
        if chance.random() < 0.3:  # also in the middle of a line
            lines = (folder / "run.jsonl").read_bytes().split(b"\n")
            if not lines[-1]:
                lines[-1] = b'{"n":%d,"event":{"event":"bud' % (len(lines) - 1)
                (folder / "run.jsonl").write_bytes(b"\n".join(lines)[: -chance.randrange(1, 20)])

    (last,) = told(folder, [event("run_resumed", 2)])

    assert last.kinds == ["implement"]
    kept = sum(each.event == "budget_spent" for each in logged(folder))
    assert 0 < acknowledged <= kept <= sent
    *_, step = run_of_log(folder / "run.jsonl").steps
    assert step.after.spent.tokens == kept
    assert planner("replay", "run.jsonl", cwd=folder).status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan.yaml", "--log", "no/such/run.jsonl"), "(No such file or directory); name another file"),
        (("other.yaml", "--log", "run.jsonl"), "other.yaml"),
        (("plan.yaml", "--log", "damaged.jsonl"), "damaged.jsonl: line 1 was changed"),
        (("plan.yaml", "--plan-out", "plan.yaml"), "plan.yaml: this is the plan itself; name another file"),
    ],
)
def test_unusable_files_of_step_are_reported_in_one_line(
    folder: Path, words: tuple[str, ...], said: str
) -> None:
    told(folder, [event("run_started")], "plan.yaml", "--log", "damaged.jsonl")
    lines = (folder / "damaged.jsonl").read_text().splitlines()
    (folder / "damaged.jsonl").write_text(f"{lines[0]}\n{lines[1][:-9]}\n{lines[1]}\n")

    ran = planner("step", *words, cwd=folder)

    assert ran.status == 4
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_the_log_does_not_depend_on_the_hash_seed(folder: Path) -> None:
    shop(folder, *({"id": f"t{number}"} for number in range(6)))
    told(folder, [event("run_started"), event("run_resumed", 1)])

    ran = planner("replay", "run.jsonl", cwd=folder, env={"PYTHONHASHSEED": "1"})
    assert ran.out == "3 events, 12 actions: the same, byte for byte\n"


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Step]:
    """Yield one process that reads the input of all examples."""
    folder = tmp_path_factory.mktemp("lasting")
    shop(folder)
    step = Step(folder)
    step.tell(event("run_started"))
    yield step
    assert step.end() == 0


WORDS = "event clock_ticked verified sub_plan_loaded at 2026-01-01T10:00:00Z todo_id t1 outcome plan x-a"
PARTS = st.sampled_from([*WORDS.split(), *'{}[],:"', "null", "-0", "NaN", "1e999", "\\ud800", "\r", "\x00"])


def _quoted(parts: list[str]) -> bytes:
    return "".join(f'"{part}"' if part in WORDS.split() else part for part in parts).encode()


LINES = st.lists(st.binary(max_size=40) | st.lists(PARTS, max_size=20).map(_quoted), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES)
@example(lines=[b"\x00", b'{"event":"clock_ticked","at":"0001-01-01T00:00:00+23:59"}'])
@example(
    lines=[b'{"event":"clock_ticked","at":"9999-12-31T23:59:59-23:59"}', b'{"event":"run_resumed","at":1}']
)
def test_any_input_bytes_are_answered(lasting: Step, lines: list[bytes]) -> None:
    raw = b"\n".join(lines) + b"\n"

    lasting.write(raw)

    for line in raw.split(b"\n"):
        if line.strip():
            assert lasting.answer().last.keys() & {"state", "error"}


# Drivers.


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Return a project with a bug that an agent fixes at attempt ``FIXED_AT``."""
    shop(tmp_path, {"id": "t1", "max_retries": 1})
    agent = tmp_path / "agent"
    agent.write_text(
        '#!/bin/sh\necho "$1" >>turns\n'
        'if [ "$(wc -l <turns)" -ge "$FIXED_AT" ]; then echo "def price(x): return 2 * x" >shop.py; fi\n'
    )
    agent.chmod(0o755)
    return tmp_path


def drive(
    desk: Path, *words: str, fixed_at: int, last: str = "t1", env: dict[str, str] | None = None
) -> str:
    done = subprocess.run(
        [*words, "plan.yaml", "./agent"],
        cwd=desk,
        env={**environment_of_a_reader(), "FIXED_AT": f"{fixed_at}", **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (desk / "turns").read_text() == "t1\n" * (fixed_at - 1) + f"{last}\n"
    ran = planner("replay", "run.jsonl", cwd=desk)
    assert ran.status == 0
    return done.stdout


def test_the_log_that_a_driver_keeps_beside_the_plan_is_no_work_of_a_branch(desk: Path) -> None:
    shop(desk, {"id": "t1"})
    (desk / "pytest.ini").write_text("[pytest]\naddopts = --planverify-confirm=0\npythonpath = .\n")
    (desk / ".gitignore").write_text("turns\n")
    commit_all(desk)

    said = drive(desk, sys.executable, str(DRIVERS / "driver.py"), fixed_at=2, last="t1_branch_01")

    assert '"allowed_files": ["shop.py"]' in said
    assert '"plan": "completed"' in said
    assert "late-answer" not in said, "no outcome of another todo was told"


def test_the_shell_driver_completes_a_plan(desk: Path) -> None:
    """Runs with a `pytest` stub, as this driver reads only the exit status."""
    quick = desk / "bin"
    quick.mkdir()
    (quick / "pytest").write_text(
        '#!/bin/sh\ncase $3 in newest.yaml::t1) exec grep -q "2 [*]" shop.py;; esac\n'
    )
    (quick / "pytest").chmod(0o755)
    path = f"{quick}{os.pathsep}{environment_of_a_reader()['PATH']}"

    said = drive(desk, "sh", str(DRIVERS / "driver.sh"), fixed_at=1, env={"PATH": path})

    assert '"plan": "completed"' in said


@pytest.mark.parametrize("name", ["driver.sh", "driver.py"])
def test_the_drivers_are_short_and_documented_in_full(name: str) -> None:
    text = (DRIVERS / name).read_text(encoding="utf-8")
    counted = [line for line in text.splitlines() if line and not line.startswith(("#", "import", '"""'))]

    assert len(counted) <= 24
    assert text in PAGE.read_text(encoding="utf-8")


def test_the_commands_of_the_protocol_page_print_the_output_shown(tmp_path: Path) -> None:
    assert live_through(PAGE, tmp_path, "console planner") == 3


@pytest.mark.parametrize("name", ["step", "replay"])
def test_every_option_is_on_the_page(name: str, tmp_path: Path) -> None:
    shown = planner(name, "--help", cwd=tmp_path).out
    text = PAGE.read_text(encoding="utf-8")

    for option in set(re.findall(r"--[a-z-]+", shown)) - {"--help", "--planverify"}:
        assert f"`{option}" in text, option


def test_every_event_and_action_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")

    for union, tag in ((Event, "event"), (Action, "action")):
        for model in get_args(get_args(union)[0]):
            kind = model.model_fields[tag].default
            assert kind == "plan_submitted" or f"| `{kind}` |" in text, kind
