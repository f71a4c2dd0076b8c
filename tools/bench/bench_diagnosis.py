"""Measure the diagnosis: failures per second from recorded evidence, and its share of a red run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import Command, Row, paired, python
from projects import red_tests

from planner.model.evidence import Evidence
from pytest_planverify.diagnosis import diagnose
from tools.corpus.case import RECORDED, Part, read_cases

CORPUS = RECORDED
TESTS, RED = 2_000, 100
FEW_TESTS, FEW_RED = 200, 10
ONCE = ("--planverify-confirm", "0")
"""Disables confirmation runs."""
SECONDS = 1.0
WANTED = 20_000

UNDIAGNOSED = """\
import hashlib
from planner.model.outcome import Diagnosis

def pytest_planverify_diagnose(evidence):
    signature = hashlib.sha256(evidence.headline.encode()).hexdigest()[:12]
    return Diagnosis(category="UNKNOWN", owner="unknown", confidence=0.5, rule="none", because="Not asked.",
                     signature=signature, suggestion="None.")
"""
"""A plugin that diagnoses before any rule is evaluated, with equally many root causes."""


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measure in a folder, each variant ``rounds`` times."""
    return [_speed(rounds), *_part_of_a_run(folder, rounds)]


def _speed(rounds: int) -> Row:
    evidence = [case.evidence for part in Part for case in read_cases(CORPUS, part) if case.evidence]
    figures = [_diagnoses_in_a_second(evidence) for _ in range(rounds)]
    return Row(
        name="diagnoses in a second, one core, recorded evidence",
        figure=statistics.median(figures),
        unit="/s",
        at_least=WANTED,
        from_what=f"{len(evidence)} cases of the corpus, "
        f"{min(figures):.0f} to {max(figures):.0f} in {rounds} rounds",
    )


def _diagnoses_in_a_second(evidence: Sequence[Evidence]) -> float:
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < SECONDS:
        for each in evidence:
            diagnose(each)
        count += len(evidence)
    return count / spent


def _part_of_a_run(folder: Path, rounds: int) -> list[Row]:
    large, small = folder / "large", folder / "small"
    red_tests(large, tests=TESTS, red=RED)
    red_tests(small, tests=FEW_TESTS, red=FEW_RED)
    (large / "undiagnosed.py").write_text(UNDIAGNOSED)
    runs = paired(
        {
            "plain": _plain(large, RED),
            "diagnosed": _verifying(large, *ONCE),
            "undiagnosed": _verifying(large, *ONCE, "-p", "undiagnosed"),
        },
        rounds,
    )
    confirming = paired(
        {"plain": _plain(small, FEW_RED), "once": _verifying(small, *ONCE), "confirmed": _verifying(small)},
        1,
    )
    return [
        Row(
            name=f"{TESTS} tests, {RED} red: what the rules add to plain pytest",
            figure=runs.difference("diagnosed", "undiagnosed") / runs.median("plain") * 100,
            unit="%",
            at_most=1.0,
            from_what=runs.raw(),
        ),
        Row(
            name=f"{FEW_TESTS} tests, {FEW_RED} red: what confirming adds to plain pytest",
            figure=confirming.difference("confirmed", "once") / confirming.median("plain") * 100,
            unit="%",
            from_what=confirming.raw(),
        ),
    ]


def _plain(folder: Path, red: int) -> Command:
    argv = python("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider")
    return Command(argv=argv, cwd=folder, check=partial(_expect_failed, red=red), exit_code=1)


def _verifying(folder: Path, *options: str) -> Command:
    argv = python("-m", "pytest", "-p", "no:cacheprovider", "--planverify", "plan.yaml", *options)
    return Command(argv=argv, cwd=folder, check=_ran, exit_code=1)


def _expect_failed(output: str, red: int) -> None:
    assert f"{red} failed" in output, output[-2000:]


def _ran(output: str) -> None:
    assert "failed" in output, output[-2000:]
