"""The rows that the benchmarks report, and how they are printed beside their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure and the bound that it is held to."""

    name: str
    figure: float
    unit: str
    """``x``, ``s``, ``ms``, ``us``, ``MiB``, or percentage ``points``."""
    at_most: float | None = None
    at_least: float | None = None
    from_what: str = ""
    """The raw measurements that the figure was made of."""

    @property
    def met(self) -> bool:
        """Whether the figure keeps its bounds; a row without any is information only."""
        return (self.at_most is None or self.figure <= self.at_most) and (
            self.at_least is None or self.figure >= self.at_least
        )

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"<= {_number(self.at_most, self.unit)}"
        if self.at_least is not None:
            return f">= {_number(self.at_least, self.unit)}"
        return "-"


def render(rows: Sequence[Row]) -> str:
    """A plain table, one row a line."""
    header = ("what", "figure", "target", "met", "from")
    lines = [
        (
            row.name,
            _number(row.figure, row.unit),
            row.target,
            "-" if row.target == "-" else ("yes" if row.met else "NO"),
            row.from_what,
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, tuple("-" * width for width in widths), *lines)
    )


def _number(value: float, unit: str) -> str:
    digits = 2 if unit == "x" else 1
    return f"{value:.{digits}f} {unit}"
