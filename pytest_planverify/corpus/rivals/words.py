"""What there is to read of a failure for who looks at text only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.evidence import Evidence


def error_message(evidence: Evidence) -> str:
    """The message of the error: what pytest prints after ``E``, or the line that a person would quote."""
    said = [evidence.headline]
    said += [f"{error.type}: {error.message}" for error in evidence.exceptions[:1]]
    return "\n".join(dict.fromkeys(said))


def whole_text(evidence: Evidence) -> str:
    """Everything that was printed: the rendering of the failure and the ends of the outputs."""
    parts = [evidence.headline, evidence.longrepr, evidence.stdout_tail, evidence.stderr_tail]
    parts += [evidence.command.output_tail] if evidence.command else []
    parts += [evidence.process.stack or ""] if evidence.process else []
    return "\n".join(part for part in parts if part)
