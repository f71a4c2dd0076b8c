"""Tests that reach each other in every way known: what is said of them in company is what is true alone.

To look further: ``python tests/acceptance/crosstalk_generator.py --seeds 0:300``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from crosstalk_channels import CHANNELS, Channel
from crosstalk_generator import alone, disagreements, generated, of_channel, verified
from crosstalk_surroundings import PLACEMENTS, SURROUNDINGS

from pytest_planverify.observing.leaks import LeakWatch

SEEDS = (31,)
"""A project that has much in it and few commands."""

ONCE_WRONG = (
    ("number", "body"),  # an old number's place in memory was taken by the new one
    ("mutable-default", "teardown"),
    ("library-class-constant", "unittest"),
    ("config-attribute", "body"),
)
"""Channels, and where they were disturbed, of which a green in company was believed before."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generated_project_agrees_with_itself(seed: int, tmp_path: Path):
    assert disagreements(generated(seed), tmp_path) == []


@pytest.mark.parametrize(("channel", "placement"), ONCE_WRONG)
def test_what_only_company_makes_green_is_red(channel: str, placement: str, tmp_path: Path):
    project = of_channel(channel, placement)

    said, output = verified(project, tmp_path)

    assert said == ["passed", "failed", "passed"], output


def test_a_channel_says_alone_what_it_is_made_to_say(tmp_path: Path):
    assert alone(of_channel("number", "import"), tmp_path) == ["passed", "failed", "passed"]


def test_whatever_a_test_changes_is_noticed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wrong: list[str] = []
    monkeypatch.syspath_prepend(tmp_path)
    watch = LeakWatch(lambda file: file.startswith(str(tmp_path)), tuple, lambda entry: False)
    watch.start()
    gc.freeze()
    try:
        for number, channel in enumerate(CHANNELS.values()):
            if "request." in channel.disturb:  # it takes a session
                continue
            seen = _in_fork(partial(_watched, watch, channel, number, tmp_path))
            if seen != "noticed":
                wrong.append(f"{channel.name}: {seen}")
        assert watch.changes(imports_count=True) + watch.changes_since_start() == []
    finally:
        gc.unfreeze()
        watch.stop()

    assert wrong == []


def test_the_same_seed_makes_the_same_project():
    assert all(generated(seed) == generated(seed) for seed in range(20))
    made = [generated(seed) for seed in range(60)]
    assert all(5 <= len(project.commands) <= 15 for project in made)
    names = {about.partition(" in ")[0] for project in made for about in project.about}
    assert len(names & set(CHANNELS)) > 50
    assert len(names & {each.name for each in SURROUNDINGS}) > 20
    assert {about.partition(" in ")[2] for project in made for about in project.about} >= set(PLACEMENTS)


def _watched(watch: LeakWatch, channel: Channel, number: int, folder: Path) -> str:
    """Disturb the process, which is a forked one, and say what the watch makes of it."""
    watch.changes(imports_count=True)  # what the fork itself has changed
    for name, text in channel.files(number).items():
        (folder / name).write_text(text)
    importlib.invalidate_caches()
    names: dict[str, object] = {"_ok": _succeeds}
    exec(channel.importing(number), names)
    if noise := watch.changes(imports_count=True):
        return f"{noise} although nothing happened"
    exec(channel.code(channel.disturb, number), names)
    changed = watch.changes(imports_count=True) + watch.changes_since_start()
    asking = folder / f"asking_{number}.py"
    asking.write_text(channel.code(channel.disturbed, number))
    if "__subclasses__" in asking.read_text():  # which only those who ask for them can see
        changed += [word for _, words in watch.dependents([str(asking)]) for word in words]
    if not eval(channel.code(channel.disturbed, number), names):
        return "it does not do what it says"
    return "noticed" if changed else "not noticed"


def _succeeds(ask: Callable[[], object]) -> bool:
    with contextlib.suppress(Exception):
        ask()
        return True
    return False


def _in_fork(work: Callable[[], str]) -> str:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        sys.settrace(None)  # each copy would be measured, and leave a file of what it has run
        try:
            answer = work()
        except BaseException as error:
            answer = repr(error)
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(answer, stream)
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else "the process died"
