"""What to mend first, on the terminal: the root causes of a run, where it is not plain from the todos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.cause_words import consequences, is_worth_telling, place
from pytest_planverify.reports.screen import Screen, Span, Style, cells
from pytest_planverify.reports.words import counted

if TYPE_CHECKING:
    from planner.model.outcome import Cause, OutcomeDocument

LABEL = 10
"""The width of the column of labels; that of the notes below."""

MOST_CAUSES = 4
HEAD_LINES = 2


def write_causes(document: OutcomeDocument, screen: Screen, *, verbosity: int = 0) -> None:
    """The causes in the order in which they are best mended; nothing where one todo has one cause."""
    causes = document.causes
    if not is_worth_telling(causes):
        return
    shown = causes if verbosity > 0 else causes[:MOST_CAUSES]
    number = len(str(shown[-1].rank))
    for cause in shown:
        _write_cause(cause, screen, number)
    if len(shown) < len(causes):
        left = len(causes) - len(shown)
        text = f"and {counted(left, 'cause')} more; -v shows {'it' if left == 1 else 'them'}"
        screen.line(Span(text, Style.QUIET), indent=LABEL)
    screen.blank()


def _write_cause(cause: Cause, screen: Screen, number: int) -> None:
    label = "fix first" if cause.rank == 1 else "then"
    indent = LABEL + number + 2
    head = [
        Span(label.ljust(LABEL), Style.QUIET),
        Span(str(cause.rank).rjust(number) + "  ", Style.STRONG),
        Span(str(cause.category), Style.WARN),
    ]
    where = screen.text(place(cause))
    told = screen.text(consequences(cause))
    room = screen.width - indent - cells(cause.category)
    if where and room >= 4 + cells(told) + cells(where):
        screen.line(*head, Span(f"  {where}"), Span(f"  {told}", Style.STRONG))
    elif room >= 2 + cells(told):
        screen.line(*head, Span(f"  {told}", Style.STRONG))
        if where:
            screen.whole(Span(where), indent=indent)  # never cut: editors open it
    else:
        screen.line(*head)
        screen.paragraph(told, style=Style.STRONG, indent=indent)
        if where:
            screen.whole(Span(where), indent=indent)
    if cause.headline:
        screen.paragraph(screen.text(cause.headline), style=Style.QUOTE, indent=indent, most=HEAD_LINES)
    if cause.because:
        screen.paragraph(screen.text(cause.because), style=Style.QUIET, indent=indent, most=HEAD_LINES)
