"""Signature of a failure: a digest equal for one root cause, independent of values, lines and folders.

It is computed from the diagnosed category and either the exception (type, raising function, missing name,
masked message) or the facts of the criterion that failed. Signatures are stored in baselines and in the
memory of past failures, so a change of this module makes known failures look new.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.model.base import Signature
from pytest_planverify.diagnosis.case import Case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import CommandFact, Evidence
    from planner.model.taxonomy import Category

_DIGITS = 12
_CLIP = 2_000
"""Limit of characters of a message that are masked."""
_ROUNDS = 8
"""Limit of nested braces whose members are sorted."""

_MASKS: tuple[tuple[str, str, str], ...] = (
    (r"(?<!\w)(?:[rRbBfFuU]{0,2})(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")", "S", "'\""),
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "ID", "-"),
    (r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?", "T", "-"),
    (r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b", "T", ":"),
    (r"(?:\b[A-Za-z]:)?(?:[\w.~@+-]*[/\\])+[\w.~@+-]*(?::\d+)*", "P", "/\\"),
    (r"\b0[xX][0-9a-fA-F]+\b", "ID", "xX"),
    (
        r"(?<![\w.])[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?:[a-zA-Zµ]{1,3})?(?!\w)",
        "N",
        "0123456789",
    ),
    (r"(?<![\w.])[-+]?(?:nan|inf)\b", "N", "n"),
    (r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", "ID", "0123456789"),
)
"""Patterns of literals, their placeholders, and characters of which each match contains at least one.

Applied in this order: strings first, since they may contain any of the others, and paths before numbers.
"""

_COMPILED = tuple((re.compile(pattern), name, frozenset(marks)) for pattern, name, marks in _MASKS)
_RUN = re.compile(r"\b(N|S|ID|T|P)(?:(?:, |,| )\1\b)+")
_BRACES = re.compile(r"\{([^{}]*)\}")
_SEPARATOR = re.compile(r"[/\\]")


@lru_cache(maxsize=4096)  # a broken fixture fails hundreds of tests with the same message
def mask(message: str) -> str:
    """Return a message with literals, ids, paths and times replaced, and members of sets and dicts sorted.

    Runs of one placeholder count as one, so that lists of different lengths give the same text.
    """
    text = message[:_CLIP]
    characters = set(text)
    for pattern, name, marks in _COMPILED:
        if not marks.isdisjoint(characters):  # skips most patterns for most messages
            text = pattern.sub(name, text)
    # Innermost braces first: each round replaces them by angle brackets, which exposes the next level.
    for _ in range(_ROUNDS if "{" in characters else 0):
        sorted_once = _BRACES.sub(_sorted_members, text)
        if sorted_once == text:
            break
        text = sorted_once
    return " ".join(_RUN.sub(r"\1", text).split())


def _sorted_members(found: re.Match[str]) -> str:
    # The order of a set's members differs between processes, by hash randomization.
    members = sorted({member.strip() for member in found[1].split(",")})
    return f"<{','.join(members)}>"


def signature(evidence: Evidence, category: Category) -> Signature:
    """Return the signature of a failure that was diagnosed with that category."""
    return signature_of(Case.of(evidence), category)


def signature_of(case: Case, category: Category) -> Signature:
    """Return the signature of a case: a digest of what failed, where and how."""
    parts = (category.value, *(_exception(case) if case.has_error else _facts(case)))
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()
    return Signature(digest[:_DIGITS])


def _exception(case: Case) -> tuple[str, ...]:
    """Return the identifying facts of the exception in focus."""
    error, frame = case.error, case.raised_at
    place = (stem(frame.path), frame.function) if frame else ("", "")
    if error.path and not error.path.startswith("<") and case.is_error("SyntaxError"):
        place = stem(error.path), ""  # the unparsable file, whichever file imports it
    message = mask(first_line(error.message))
    return error.qualified, *place, error.name or "", error.object_type or "", message


def stem(path: str) -> str:
    """Return a file's base name without ``.py``: paths and module names depend on the folder of the run."""
    return _SEPARATOR.split(path)[-1].removesuffix(".py")


def first_line(message: str) -> str:
    """Return the first non-blank line: later ones show differences that vary with the values."""
    return next((line for line in message.splitlines() if line.strip()), "")


def complaints(command: CommandFact) -> list[str]:
    """Return a tool's distinct findings, as code and masked message, sorted."""
    return sorted({f"{finding.code or ''} {mask(finding.message)}" for finding in command.findings})


def count_findings(command: CommandFact) -> Counter[str]:
    """Return how often a tool reported each finding, by file, code and masked message."""
    return Counter(
        f"{each.path or ''}: {each.code or ''} {mask(each.message)}" for each in command.findings
    )


def _facts(case: Case) -> Iterable[str]:
    """Return the identifying facts of a failure without an exception."""
    evidence = case.evidence
    if fact := evidence.artifact:
        return "artifact", fact.path, fact.problem
    if fact := evidence.metric:
        return "metric", fact.name, fact.problem
    if fact := evidence.contract:
        return "contract", fact.path, fact.function or "", fact.problem
    if evidence.selectors:
        return "selectors", f"{evidence.selectors[0].problem} {evidence.selectors[0].text}"
    if evidence.command:
        return "command", evidence.command.tool, *complaints(evidence.command)[:10]
    headline = mask(first_line(evidence.headline or evidence.longrepr))
    if evidence.process and (evidence.process.signal or evidence.process.exit_code is not None):
        frame = case.stuck_at
        place = f"{stem(frame.path)}.{frame.function}" if frame else ""
        how = evidence.process.signal or str(evidence.process.exit_code)
        # A session that ended by itself said why: other words, another cause.
        return "process", how, place, headline if evidence.process.complete else ""
    return evidence.kind.value, evidence.vacuous or "", headline
