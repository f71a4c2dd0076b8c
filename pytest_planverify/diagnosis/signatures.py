"""The signature of a failure: equal for one root cause, whatever the numbers, lines and paths."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from planner.model.base import Signature
from pytest_planverify.diagnosis.case import Case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import Evidence, ExceptionFact, Finding
    from planner.model.taxonomy import Category

_DIGITS = 12
_CLIP = 2_000
_ROUNDS = 8

_DECIMALS = frozenset("0123456789")

_MASKS: tuple[tuple[re.Pattern[str], str, frozenset[str]], ...] = (
    (
        re.compile(r"(?<!\w)(?:[rRbBfFuU]{0,2})(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"),
        "S",
        frozenset("'\""),
    ),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "ID", frozenset("-")),
    (
        re.compile(
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
        ),
        "T",
        frozenset("-"),
    ),
    (re.compile(r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b"), "T", frozenset(":")),
    (re.compile(r"(?:\b[A-Za-z]:)?(?:[\w.~@+-]*[/\\])+[\w.~@+-]*(?::\d+)*"), "P", frozenset("/\\")),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b"), "ID", frozenset("xX")),
    (
        re.compile(
            r"(?<![\w.])[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?:[a-zA-Zµ]{1,3})?(?!\w)"
        ),
        "N",
        _DECIMALS,
    ),
    (re.compile(r"(?<![\w.])[-+]?(?:nan|inf)\b"), "N", frozenset("n")),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "ID", _DECIMALS),
)
"""What a message's literals look like, what stands for them, and characters of which they hold one."""

_RUN = re.compile(r"\b(N|S|ID|T|P)(?:(?:, |,| )\1\b)+")
_BRACES = re.compile(r"\{([^{}]*)\}")


def mask(message: str) -> str:
    """The message without numbers, quoted strings, ids, paths and moments; members of sets are sorted."""
    text = message[:_CLIP]
    characters = set(text)
    for pattern, name, marks in _MASKS:
        if not marks.isdisjoint(characters):
            text = pattern.sub(name, text)
    for _ in range(_ROUNDS):
        sorted_once = _BRACES.sub(_sorted_members, text)
        if sorted_once == text:
            break
        text = sorted_once
    return " ".join(_RUN.sub(r"\1", text).split())


def signature(evidence: Evidence, category: Category) -> Signature:
    """Equal for failures of one root cause: category, what failed, where by name, and how it was put."""
    return signature_of(Case.of(evidence), category)


def signature_of(case: Case, category: Category) -> Signature:
    """The same of evidence that has been read."""
    parts = (category.value, *(_exception(case) if case.error else _facts(case)))
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()
    return Signature(digest[:_DIGITS])


def _sorted_members(found: re.Match[str]) -> str:
    members = sorted({member.strip() for member in found[1].split(",")})
    return f"<{','.join(members)}>"


def _exception(case: Case) -> tuple[str, ...]:
    error = case.error
    if error is None:
        return ()
    return (
        error.qualified,
        *_place(case, error),
        error.name or "",
        error.object_type or "",
        mask(_first_line(error.message)),
    )


def _place(case: Case, error: ExceptionFact) -> tuple[str, str]:
    """The function that raised; of source that does not parse the file, whoever came to import it."""
    if case.is_error("builtins.SyntaxError") and error.path and not error.path.startswith("<"):
        return _stem(error.path), ""
    frame = case.raised_at
    return (_stem(frame.path), frame.function) if frame else ("", "")


def _stem(path: str) -> str:
    """The file's bare name: the module's name may change with the folder that it is run from."""
    return re.split(r"[/\\]", path)[-1].removesuffix(".py")


def _first_line(message: str) -> str:
    """Later lines show differences, whose number and order change with the values."""
    return next((line for line in message.splitlines() if line.strip()), "")


def _facts(case: Case) -> Iterable[str]:
    """What identifies a failure without an exception."""
    evidence = case.evidence
    if evidence.artifact:
        return "artifact", evidence.artifact.path, evidence.artifact.problem
    if evidence.metric:
        return "metric", evidence.metric.name, evidence.metric.problem
    if evidence.contract:
        return (
            "contract",
            evidence.contract.path,
            evidence.contract.function or "",
            evidence.contract.problem,
        )
    if evidence.selectors:
        return "selectors", *(f"{selector.problem} {selector.text}" for selector in evidence.selectors[:1])
    if evidence.command:
        return "command", evidence.command.tool, *_complaints(evidence.command.findings)
    if evidence.process and (evidence.process.signal or evidence.process.exit_code is not None):
        frame = case.stuck_at
        stood = f"{_stem(frame.path)}.{frame.function}" if frame else ""
        return "process", evidence.process.signal or str(evidence.process.exit_code), stood
    return (
        evidence.kind.value,
        evidence.vacuous or "",
        mask(_first_line(evidence.headline or evidence.longrepr)),
    )


def _complaints(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(sorted({f"{finding.code or ''} {mask(finding.message)}" for finding in findings})[:10])
