"""Choice of the tests to record in a confirmation, and the resulting facts for fault localization."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from planner.model.evidence import ExecutedFunction
from planner.model.verdicts import TestOutcome
from pytest_planverify.session.records import PROVING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.model.evidence import Evidence
    from planner.model.outcome import TestResult
    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.session.records import FunctionKey

Executed: TypeAlias = "Mapping[str, Mapping[FunctionKey, tuple[int, int]]]"
"""By test, its executed functions with depth and lines (as bits)."""

MOST_RED, MOST_GREEN = 30, 100
MOST_FUNCTIONS = 150
"""Limit of functions kept per test."""

_SECONDS, _SHARE = 0.3, 0.25
"""Limits of the recorded tests' total duration in the first run: seconds, and share of all tests."""

_LONGEST = 5.0
"""Seconds above which a test is not recorded, even if it is the only failing one."""


def choose_recorded_tests(tests: Iterable[TestResult]) -> tuple[str, ...]:
    """Return failing tests, and passing ones of the same files, that can be recorded without much delay."""
    ran = [test for test in tests if test.outcome.is_red or test.outcome.value in PROVING]
    red = sorted((test for test in ran if _is_red(test)), key=lambda test: test.duration_ms)
    files = {_file(test.nodeid) for test in red}
    green = [test for test in ran if not test.outcome.is_red and _file(test.nodeid) in files]
    limit = 1000 * _SECONDS + _SHARE * sum(test.duration_ms for test in ran)
    if not red or red[0].duration_ms > 1000 * _LONGEST:
        return ()
    chosen = red[:1]
    spent = red[0].duration_ms
    # Passing tests are taken at equal distances, so that they come from all parts of their files.
    step = max(len(green) / MOST_GREEN, 1.0)
    spread = [green[int(number * step)] for number in range(min(len(green), MOST_GREEN))]
    for test in (*red[1:MOST_RED], *spread):
        if spent + test.duration_ms <= limit:
            chosen.append(test)
            spent += test.duration_ms
    return tuple(test.nodeid for test in chosen)


def with_executed(judgement: Judgement, executed: Executed | None) -> Judgement:
    """Add to each recorded failure the functions that its test executed, and how many other tests did."""
    if not executed:
        return judgement
    outcomes = {test.nodeid: test.outcome for test in judgement.tests}
    red = [ran for nodeid, ran in executed.items() if nodeid in outcomes and outcomes[nodeid].is_red]
    green = [ran for nodeid, ran in executed.items() if nodeid in outcomes and not outcomes[nodeid].is_red]
    counts = _Counts(red), _Counts(green)

    def with_spectrum(piece: Evidence) -> Evidence:
        ran = executed.get(piece.nodeid or "")
        if ran is None:
            return piece
        functions = [_function(key, *seen, *counts) for key, seen in ran.items()]
        functions.sort(
            key=lambda each: (
                _share(each.red, each.green)
                if each.suspect_line is None
                else _share(each.line_red, each.line_green)
            ),
            reverse=True,
        )
        update = {
            "executed": tuple(functions[:MOST_FUNCTIONS]),
            "red_tests": len(red),
            "green_tests": len(green),
        }
        return piece.model_copy(update=update)

    judgement.evidence = tuple(map(with_spectrum, judgement.evidence))
    return judgement


class _Counts:
    """Number of tests that executed each function and each line."""

    def __init__(self, tests: Iterable[Mapping[FunctionKey, tuple[int, int]]]) -> None:
        self.functions: Counter[FunctionKey] = Counter()
        self.lines: Counter[tuple[FunctionKey, int]] = Counter()
        for ran in tests:
            self.functions.update(ran.keys())
            self.lines.update((key, bit) for key, (_, lines) in ran.items() for bit in _bits(lines))


def _function(key: FunctionKey, depth: int, lines: int, red: _Counts, green: _Counts) -> ExecutedFunction:
    """Return a function's counts, with those of its most suspicious line.

    ``lines`` has a bit for each executed line, counted from the function's first line.
    """
    path, line, name = key
    shares = {bit: _share(red.lines[key, bit], green.lines[key, bit]) for bit in _bits(lines)}
    best = max(shares, key=lambda bit: shares[bit], default=None)
    return ExecutedFunction(
        path=path,
        line=line,
        function=name,
        red=red.functions[key],
        green=green.functions[key],
        suspect_line=None if best is None else line + best,
        line_red=0 if best is None else red.lines[key, best],
        line_green=0 if best is None else green.lines[key, best],
        depth=depth,
    )


def _bits(number: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, the lowest first."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _share(red: int, green: int) -> float:
    """Return the suspicion of code that so many failing and passing tests executed.

    It ranks as Ochiai's coefficient does, whose other factor is the same for all code of a run.
    """
    return red / math.sqrt(red + green) if red else 0.0


def _is_red(test: TestResult) -> bool:
    """Return whether a test failed; not by its time limit, as a test that timed out is not recorded."""
    return test.outcome.is_red and test.outcome is not TestOutcome.TIMEOUT


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
