"""The report as tables, for a terminal of 100 columns and for Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_planverify.corpus.figures import Figures, Share
    from pytest_planverify.corpus.report import Report
    from pytest_planverify.corpus.resampling import Interval

_CODES: dict[Category, str] = {
    Category.TEST_REGRESSION: "REG",
    Category.TEST_TIMEOUT: "TMO",
    Category.FLAKY_TEST: "FLK",
    Category.TEST_CRASH: "CRA",
    Category.TEST_NOT_FOUND: "NFD",
    Category.COMPILATION_ERROR: "CMP",
    Category.TYPE_ERROR: "TYP",
    Category.LINT_ERROR: "LNT",
    Category.IMPORT_ERROR: "IMP",
    Category.SPEC_MISMATCH: "SPC",
    Category.ARTIFACT_MISSING: "ART",
    Category.METRIC_UNMET: "MET",
    Category.SANDBOX_VIOLATION: "SBX",
    Category.HYGIENE_VIOLATION: "HYG",
    Category.ALLOWLIST_VIOLATION: "ALW",
    Category.BUDGET_EXCEEDED: "BUD",
    Category.ENVIRONMENT_ERROR: "ENV",
    Category.HARNESS_ERROR: "HAR",
    Category.UNKNOWN: "UNK",
}
"""Short names, for the columns of the confusion matrix."""

_NONE = "-"
_MANY = 10
"""More columns than this stand one space apart, not two: 100 columns hold them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a head; the first column is text, the others are numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def as_text(report: Report) -> str:
    """The report for a terminal: no line is longer than 100 columns."""
    return "\n\n".join([summary(report), *(_text(table) for table in tables(report))]) + "\n"


def as_markdown(report: Report) -> str:
    """The report for a page of the documentation."""
    parts = [summary(report)]
    for table in tables(report):
        head = f"| {' | '.join(table.head)} |"
        line = f"| --- |{' ---: |' * (len(table.head) - 1)}"
        rows = (f"| {' | '.join(row)} |" for row in table.rows)
        parts.append("\n".join([f"**{table.title}**", "", head, line, *rows]))
        if table.note:
            parts.append(table.note)
    return "\n\n".join(parts) + "\n"


def summary(report: Report) -> str:
    """What was judged, and the answer in one sentence."""
    lead = report.ladder
    assert lead.ahead is not None
    ahead = report.ours.figures.macro_f1 - lead.figures.macro_f1
    return "\n".join(
        [
            f"Part {report.part} of the corpus ({report.digest}): {report.cases} failures in "
            f"{report.packages} packages and small projects,",
            f"{report.kinds} kinds of fault; {report.ambiguous.count} have a second accepted reading.",
            f"Macro-F1 is {ahead:.3f} above the ladder of regular expressions ({report.level:.0%} of "
            f"{report.resamples} resamples: {lead.ahead.low:.2f} to {lead.ahead.high:.2f}).",
            f"Honest changes that were flagged: {_of(report.controls)}. "
            f"Diagnoses a second on one core: {report.diagnoses_per_second:,}.",
        ]
    )


def tables(report: Report) -> Iterator[Table]:
    """Every table of the report."""
    yield _systems(report)
    yield _categories(report)
    yield _confusion(report)
    yield _reliability(report)
    if report.subsets:
        yield _subsets(report)
    if report.root_causes:
        yield _root_causes(report)
    yield _counts(report)


def _text(table: Table) -> str:
    rows = [table.head, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    lines = [table.title, ""]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append((" " if len(cells) > _MANY else "  ").join(cells).rstrip())
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines)


def _systems(report: Report) -> Table:
    first = report.ours.figures
    rows: list[tuple[str, ...]] = [
        ("macro-F1", *(_number(each.figures.macro_f1) for each in report.systems)),
        (f"  {report.level:.0%} of resamples", *(_span(each.macro_f1_interval) for each in report.systems)),
    ]
    plain: dict[str, Callable[[Figures], Share]] = {
        "category right": lambda found: found.category,
        "category and owner right": lambda found: found.whole,
        "routed to the right role": lambda found: found.routing,
        "owner right": lambda found: found.owner,
        f"false blame, of {first.false_blame.of}": lambda found: found.false_blame,
    }
    rows += [_row(label, report, read) for label, read in plain.items()]
    rows += [
        (
            f"  {name}, of {found.of}",
            *(_share(each.figures.false_blame_by[name]) for each in report.systems),
        )
        for name, found in first.false_blame_by.items()
    ]
    rows.append(
        _row(f"regressions called flaky, of {first.dismissed.of}", report, lambda found: found.dismissed)
    )
    rows.append(_row("repeatability right", report, lambda found: found.repeatability))
    rows += [
        (
            f"place: {name} right, of {found.of}",
            *(_share(each.figures.pointers[name]) for each in report.systems),
        )
        for name, found in first.pointers.items()
    ]
    rows.append(
        ("calibration error", *(_number(each.figures.calibration_error) for each in report.systems))
    )
    rows.append(
        (
            "  by bins of equal size",
            *(_number(each.figures.calibration_error_adaptive) for each in report.systems),
        )
    )
    for place, covered in enumerate(first.coverage):
        label = f"accuracy of the surest {covered.coverage:.0%}"
        rows.append((label, *(_number(each.figures.coverage[place].accuracy) for each in report.systems)))
    return Table(
        title="How well failures are told apart",
        head=("", *(each.name for each in report.systems)),
        rows=tuple(rows),
        note="\n".join(f"{each.name}: {each.title}." for each in report.systems[1:]),
    )


def _categories(report: Report) -> Table:
    ladder = report.ladder.figures.by_category
    return Table(
        title="By category",
        head=("", "cases", "precision", "recall", "F1", "F1 of the ladder"),
        rows=tuple(
            (
                category.value,
                str(found.cases),
                _number(found.precision),
                _number(found.recall),
                _number(found.f1),
                _number(ladder[category].f1),
            )
            for category, found in report.ours.figures.by_category.items()
        ),
    )


def _confusion(report: Report) -> Table:
    table = report.ours.figures.confusion
    said = [each for each in Category if each in table or any(each in row for row in table.values())]
    return Table(
        title="What was said (columns) of what is true (rows)",
        head=("", *(_CODES[category] for category in said)),
        rows=tuple(
            (truth.value, *(str(row[each]) if each in row else "." for each in said))
            for truth, row in table.items()
        ),
        note="The columns: the categories in the order of the rows"
        + ("." if len(said) == len(table) else ", and those that were said only."),
    )


def _reliability(report: Report) -> Table:
    found = report.ours.figures
    return Table(
        title="Of the diagnoses that are so sure, how many are right",
        head=("confidence", "cases", "said", "right"),
        rows=tuple(
            (
                f"{each.low:.2f} to {each.high:.2f}",
                str(each.cases),
                _number(each.confidence),
                _number(each.accuracy),
            )
            for each in found.reliability
        ),
        note=f"Calibration error {_number(found.calibration_error)}; right is category and owner together.",
    )


def _subsets(report: Report) -> Table:
    return Table(
        title="By what is new to the rules, and by how the cases came to be",
        head=(
            "",
            "cases",
            "macro-F1",
            "of ladder",
            "routed",
            "of ladder",
            "whole",
            "of ladder",
            "calibration",
        ),
        rows=tuple(
            (
                each.name,
                str(each.ours.cases),
                _number(each.ours.macro_f1),
                _number(each.ladder.macro_f1),
                _share(each.ours.routing),
                _share(each.ladder.routing),
                _share(each.ours.whole),
                _share(each.ladder.whole),
                _number(each.ours.calibration_error),
            )
            for each in report.subsets
        ),
    )


def _root_causes(report: Report) -> Table:
    found = list(report.root_causes.values())
    labels = {
        "precision": "pairs put together that have one fault",
        "recall": "pairs of one fault that were put together",
        "causes_a_fault": "causes that a fault is told as",
        "first": "runs whose first is a fault to repair first",
    }
    return Table(
        title=f"Root causes, in {found[0]['runs']:.0f} runs with {found[0]['failures']:.0f} failures",
        head=("", *report.root_causes),
        rows=tuple((label, *(_number(each[name]) for each in found)) for name, label in labels.items()),
    )


def _counts(report: Report) -> Table:
    groups = list(report.counts)
    true = {category for row in report.counts.values() for category in row}
    rows: list[tuple[str, ...]] = []
    for category in Category:
        if category in true:
            numbers = [report.counts[group].get(category, 0) for group in groups]
            rows.append((category.value, *map(str, numbers), str(sum(numbers))))
    sums = [sum(report.counts[group].values()) for group in groups]
    rows.append(("all", *map(str, sums), str(sum(sums))))
    return Table(
        title="How many cases, by what they truly are and how they came to be",
        head=("", *(group.value for group in groups), "all"),
        rows=tuple(rows),
        note=f"Beside them {report.controls.of} honest controls.",
    )


def _row(label: str, report: Report, read: Callable[[Figures], Share]) -> tuple[str, ...]:
    return (label, *(_share(read(each.figures)) for each in report.systems))


def _share(found: Share) -> str:
    return _NONE if found.value is None else _number(found.value)


def _of(found: Share) -> str:
    return f"{found.count} of {found.of}"


def _number(value: float) -> str:
    return f"{value:.3f}"


def _span(interval: Interval) -> str:
    return f"{interval.low:.2f}-{interval.high:.2f}"
