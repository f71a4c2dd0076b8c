"""Confirmation of a failed command: run it again, cold and alone.

The same result makes the failure deterministic, another makes it flaky, for the command and for each
failed test. If the code involves chance, a few more runs decide. Hangs are not confirmed by hanging
again. The evidence stays that of the first run, with the functions that its tests executed when they ran
again, as facts for fault localization.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from planner.model.evidence import Confirmation, ExecutedFunction
from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict
from pytest_planverify.checks.chance import depends_on_chance
from pytest_planverify.session.records import PROVING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import Evidence
    from planner.model.outcome import TestResult
    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.session.records import Execution, FunctionKey

ExecutedByTest: TypeAlias = "Mapping[FunctionKey, Execution]"
"""The functions that one test executed."""
Executed: TypeAlias = "Mapping[str, ExecutedByTest]"
"""By test, its executed functions."""

MOST_FURTHER_SECONDS = 10.0
"""Total time of further runs as long as only some of the failed tests depend on chance.

Beyond it, a further run is made only if all tests that failed each time depend on chance.
"""

_KINDS_OF_TESTS = (EvidenceKind.TEST, EvidenceKind.COLLECTION)

MOST_ASKED = 50
"""Maximum number of pieces of evidence whose code is searched for chance; each costs milliseconds."""


def is_worth_confirming(judgement: Judgement) -> bool:
    """Return whether another run may change a failed verdict.

    It cannot if a file does not exist, access was denied or the run's records were touched. A hang
    would only cost its time limit again.
    """
    if not judgement.is_red or not judgement.evidence:
        return False
    deterministic = (EvidenceKind.SANDBOX, EvidenceKind.HYGIENE)
    if any(
        each.kind in deterministic or each.timed_out or each.swallowed_timeout
        for each in judgement.evidence
    ):
        return False
    return not all(
        each.selectors and all(selector.problem == "missing_file" for selector in each.selectors)
        for each in judgement.evidence
    )


def confirm(
    first: Judgement,
    again: Callable[[], Judgement],
    *,
    most: int,
    root: Path,
    company: bool = False,
    executed: Sequence[Executed] = (),
) -> Judgement:
    """Decide whether a failure is deterministic or flaky. Return ``first``, updated in place.

    ``again`` runs and judges the command once more; it is called once, or up to ``most`` times if chance
    may decide. ``company`` tells that other criteria ran concurrently with the first run. ``executed``
    holds the recordings of the further runs made so far.
    """
    repeated: list[tuple[Judgement, Mapping[str, TestOutcome]]] = []
    unanswered, started = False, time.monotonic()
    for _ in range(most):
        judgement = again()
        # On a busy machine the run may time out, which is not the failure that is to be confirmed.
        timed_out = any(each.timed_out for each in judgement.evidence)
        if judgement.verdict is not Verdict.PASSED and (timed_out or not judgement.is_red):
            unanswered = True
            break
        # If the session itself failed, by dying for example, its passed tests prove nothing.
        is_of_tests = all(each.kind in _KINDS_OF_TESTS for each in judgement.evidence)
        outcomes = {test.nodeid: test.outcome for test in judgement.tests if is_of_tests}
        repeated.append((judgement, outcomes))
        still_red = [
            each for each in first.evidence if not any(_confirmation(each, *run).passed for run in repeated)
        ]
        # Recorded by the first repetition alone, as recording slows tests down.
        recorded = next(filter(None, executed), None)
        # A further run may pass only if everything that failed each time involves chance. If some of it
        # does, the run may show that to be flaky, which is only worth a cheap one.
        enough = any if time.monotonic() - started < MOST_FURTHER_SECONDS else all
        draws = (depends_on_chance(each, root, recorded) for each in still_red[:MOST_ASKED])
        if not judgement.is_red or not still_red or not enough(draws):
            break
    first.runs, first.reds = 1 + len(repeated), 1 + sum(each.is_red for each, _ in repeated)
    where = "company" if company else "alone"
    seen = Confirmation(where=where, passed=False, duration_ms=first.duration_ms)
    found: list[Evidence] = []
    for piece in first.evidence:
        runs = (*piece.confirmations, seen, *(_confirmation(piece, *run) for run in repeated))
        found.append(piece.model_copy(update={"confirmations": runs}))
    first.evidence = tuple(found)
    if first.reds < first.runs:
        first.verdict = Verdict.FLAKY
        first.reason = f"passed and failed on the same code: failed {first.reds} of {first.runs} times"
    elif unanswered:
        first.reason = f"{first.reason or 'seen once'}; the confirmation gave no result"
    return first


def _confirmation(piece: Evidence, run: Judgement, outcomes: Mapping[str, TestOutcome]) -> Confirmation:
    """Return a further run's result for a piece of evidence: its test's if that ran, else the command's."""
    outcome, passed = outcomes.get(piece.nodeid or ""), not run.is_red
    # A test that was skipped or not run this time neither passed nor failed.
    if outcome is not None and (outcome.is_red or outcome.value in PROVING):
        passed = not outcome.is_red
    return Confirmation(where="alone", passed=passed, duration_ms=run.duration_ms)


# -- what the tests of a confirmation executed ---------------------------------------------------------


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
    # A fixed part, as a share of a quick session would not even pay for one test.
    limit = 1000 * _SECONDS + _SHARE * sum(test.duration_ms for test in ran)
    if not red or red[0].duration_ms > 1000 * _LONGEST:
        return ()
    chosen = red[:1]  # even beyond the limit: without a failing test there is nothing to locate
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
        origin = _origin_of_none(piece, ran, green)
        functions = [_function(key, seen, *counts, is_origin=key == origin) for key, seen in ran.items()]
        functions.sort(
            key=lambda each: (
                each.is_origin_of_none,
                _share(each.red, each.green)
                if each.suspect_line is None
                else _share(each.line_red, each.line_green),
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

    def __init__(self, tests: Iterable[ExecutedByTest]) -> None:
        self.functions: Counter[FunctionKey] = Counter()
        self.lines: Counter[tuple[FunctionKey, int]] = Counter()
        for ran in tests:
            self.functions.update(ran.keys())
            self.lines.update((key, bit) for key, seen in ran.items() for bit in _bits(seen.lines))


def _origin_of_none(
    piece: Evidence, ran: ExecutedByTest, green: Iterable[ExecutedByTest]
) -> FunctionKey | None:
    """Return the function that returned the ``None`` which an exception is about, if there is one.

    The last that returned one to a function of the traceback, unless it did so in a passing test, too.
    """
    if not piece.exceptions or "NoneType" not in piece.exceptions[0].message:
        return None
    frames = {(frame.path, frame.function) for frame in piece.exceptions[0].frames}
    usual = {(key, user) for each in green for key, seen in each.items() for user in seen.nones}
    found = [
        (at, key)
        for key, seen in ran.items()
        for user, at in seen.nones.items()
        if user in frames and (key, user) not in usual
    ]
    return max(found)[1] if found else None


def _function(
    key: FunctionKey, seen: Execution, red: _Counts, green: _Counts, *, is_origin: bool
) -> ExecutedFunction:
    """Return a function's counts, with those of its most suspicious line."""
    path, line, name = key
    shares = {bit: _share(red.lines[key, bit], green.lines[key, bit]) for bit in _bits(seen.lines)}
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
        depth=seen.depth,
        is_origin_of_none=is_origin,
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
