"""How alike two failures are: what of a failure is compared, and how much two of them have in common."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.reading import PROJECT_SIDES, Case
from pytest_planverify.diagnosis.signatures import mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.evidence import CommandFact, Evidence

FRAMES = 3
"""So many of the project's frames nearest to the raise are compared."""

CHAIN = 4
WORDS = 24
"""So many words of the message."""

FINDINGS = 3
LONGEST = 80
"""Characters of one feature."""

_WORD = re.compile(r"[\w.]+|[=!<>]+|[+*/%-]")
_FILE = re.compile(r"[/\\]")


def features(evidence: Evidence) -> tuple[str, ...]:
    """What of a failure is compared with others, in order: no line numbers, no values, no paths.

    The kind of the check and its phase, the chain of exceptions, whose code raised, the functions of the
    project on the way there, the tool, and the words of the message with its literals masked.
    """
    case = Case.of(evidence)
    return tuple(dict.fromkeys(each[:LONGEST] for each in _named(case))) + tuple(
        word[:LONGEST] for word in _words(case)
    )


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """From 0, nothing in common, to 1: the share of features in common, and that of pairs of neighbours."""
    if not one or not other:
        return 0.0
    ones, one_pairs = _sets(tuple(one))
    others, other_pairs = _sets(tuple(other))
    return (_jaccard(ones, others) + _jaccard(one_pairs, other_pairs)) / 2


def _named(case: Case) -> Iterator[str]:
    evidence = case.evidence
    yield f"kind:{evidence.kind.value}"
    if evidence.phase is not None:
        yield f"phase:{evidence.phase.value}"
    chain = evidence.exceptions or ((case.error,) if case.error else ())
    for error in (*chain[:CHAIN], *evidence.exceptions_in_group[:CHAIN]):
        yield f"error:{error.qualified}"
    if case.innermost is not None:
        yield f"raised:{case.innermost.side.value}"
    mine = [frame for frame in case.frames if frame.side in PROJECT_SIDES]
    if mine:
        yield f"side:{mine[-1].side.value}"
    for frame in reversed(mine[-FRAMES:]):
        yield f"at:{_FILE.split(frame.path)[-1].removesuffix('.py')}.{frame.function}"
    if evidence.command is not None:
        yield f"tool:{evidence.command.tool}"
    process = evidence.process
    if process is not None and (process.signal or process.exit_code is not None):
        yield f"end:{process.signal or process.exit_code}"


def _words(case: Case) -> list[str]:
    return _WORD.findall(mask(_message(case)))[:WORDS]


def _message(case: Case) -> str:
    """What it says of itself: the first lines, as later ones show differences that change with values."""
    evidence = case.evidence
    if evidence.command is not None and evidence.command.findings:
        return _complaints(evidence.command)
    if case.error is not None:
        return _first_line(case.error.message)
    return _first_line(evidence.headline or evidence.longrepr)


def _complaints(command: CommandFact) -> str:
    said = {f"{finding.code or ''} {mask(finding.message)}" for finding in command.findings}
    return " ".join(sorted(said)[:FINDINGS])


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


@lru_cache(maxsize=4_096)
def _sets(one: tuple[str, ...]) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    return frozenset(one), frozenset(zip(("", *one), (*one, ""), strict=True))


def _jaccard(one: frozenset[object], other: frozenset[object]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
