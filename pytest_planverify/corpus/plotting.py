"""The report as a picture: a reliability diagram, and the errors among the surest cases. Plain SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_planverify.corpus.calibration import Bin
    from pytest_planverify.corpus.report import Report, System

WIDTH, HEIGHT = 900, 430
_SIDE = 300
"""Both axes of a panel, in pixels."""
_TOP = 56

# The tones are of middle lightness: they can be read on white and on black, where the style is not applied.
_COLOURS = ("#1f77d0", "#d9730d", "#b8860b", "#8b8f98", "#a05cc9", "#2f9e60")
_DASHES = ("", "", "7 4", "2 3", "9 3 2 3", "4 3")
_STYLE = """\
svg{font:13px system-ui,sans-serif;--ink:#24292f}
@media (prefers-color-scheme:dark){svg{--ink:#e6edf3}}
text{fill:#808890;fill:var(--ink)}.title{font-size:15px;font-weight:600}.small{font-size:11px}
.grid{stroke:#808890;stroke-opacity:.4;fill:none}.curve{fill:none;stroke-width:2.2}"""


class Panel(NamedTuple):
    """A square with its axes; turns values into pixels."""

    left: float
    top: float
    highest: float
    """The value at the top of the vertical axis; the horizontal one goes to 1."""

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        kept = min(max(y, 0.0), self.highest)
        return self.left + x * _SIDE, self.top + _SIDE * (1 - kept / self.highest)

    def path(self, points: Iterable[tuple[float, float]]) -> str:
        """Straight lines through points."""
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (self.at(*point) for point in points))


def as_svg(report: Report) -> str:
    """The picture."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>Calibration and errors on the part {escape(report.part)} of the corpus</title>",
        f"<style>{_STYLE}</style>",
        *_reliability(Panel(60, _TOP, 1.0), report),
        *_risks(Panel(440, _TOP, _highest(report)), report),
        *_legend(report.systems),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _reliability(panel: Panel, report: Report) -> Iterator[str]:
    """Where confidence is earned, the circles lie on the diagonal; their size is the number of cases."""
    yield from _frame(panel, "Is confidence earned?", "confidence that is said", "share that is right")
    yield f'<path class="grid" stroke-dasharray="5 4" d="{panel.path(((0, 0), (1, 1)))}"/>'
    for number in (1, 0):
        system = report.systems[number]
        bins = system.figures.reliability
        yield _curve(panel, number, [(each.confidence, each.accuracy) for each in bins])
        yield from (_circle(panel, number, each, system.figures.cases) for each in bins)


def _circle(panel: Panel, number: int, found: Bin, cases: int) -> str:
    x, y = panel.at(found.confidence, found.accuracy)
    radius = 3 + 11 * (found.cases / cases) ** 0.5
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{_COLOURS[number]}" fill-opacity="0.55">'
        f"<title>{found.cases} cases: said {found.confidence:.3f}, right {found.accuracy:.3f}</title>"
        "</circle>"
    )


def _risks(panel: Panel, report: Report) -> Iterator[str]:
    """Who is asked only where it is sure should err less."""
    yield from _frame(
        panel, "How often is it wrong?", "share of the cases, the surest first", "share that is wrong"
    )
    for number in reversed(range(len(report.systems))):
        points = [(each.coverage, 1 - each.accuracy) for each in report.systems[number].figures.curve]
        yield _curve(panel, number, points)


def _highest(report: Report) -> float:
    """The top of the axis of errors: a round number above all that is drawn."""
    worst = max(1 - each.accuracy for system in report.systems for each in system.figures.curve)
    return max(round(worst * 5 + 0.499) / 5, 0.2)


def _curve(panel: Panel, number: int, points: list[tuple[float, float]]) -> str:
    dashes = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
    return f'<path class="curve" stroke="{_COLOURS[number]}"{dashes} d="{panel.path(points)}"/>'


def _frame(panel: Panel, title: str, below: str, beside: str) -> Iterator[str]:
    middle = panel.left + _SIDE / 2
    bottom = panel.top + _SIDE
    yield _words(middle, panel.top - 16, title, 'class="title" text-anchor="middle"')
    yield _words(middle, bottom + 38, below, 'text-anchor="middle"')
    x, y = panel.left - 42, panel.top + _SIDE / 2
    yield _words(x, y, beside, f'text-anchor="middle" transform="rotate(-90 {x:.0f} {y:.0f})"')
    for tenth in range(0, 11, 2):
        share = tenth / 10
        across = panel.path(((0, share * panel.highest), (1, share * panel.highest)))
        along = panel.path(((share, 0), (share, panel.highest)))
        yield f'<path class="grid" d="{across}{along}"/>'
        yield _words(
            panel.at(share, 0)[0], bottom + 17, f"{share:.1f}", 'class="small" text-anchor="middle"'
        )
        height = panel.at(0, share * panel.highest)[1] + 4
        yield _words(
            panel.left - 7, height, f"{share * panel.highest:.2f}", 'class="small" text-anchor="end"'
        )


def _legend(systems: tuple[System, ...]) -> Iterator[str]:
    for number, system in enumerate(systems):
        y = _TOP + 14 + number * 24
        dashes = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
        yield f'<path class="curve" stroke="{_COLOURS[number]}"{dashes} d="M762 {y}H794"/>'
        yield _words(802, y + 4, system.name, "")


def _words(x: float, y: float, text: str, more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'
