"""Report the figures of the diagnosis, and of a ladder of regular expressions, on one part."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from planner.model.taxonomy import Category
from pytest_planverify.diagnosis import diagnose
from tools.corpus import regex_ladder
from tools.corpus.case import (
    Case,
    CorpusError,
    Group,
    Part,
    digest_of,
    is_test_kind,
    is_test_package,
    read_cases,
    read_runs,
)
from tools.corpus.scoring import (
    Failed,
    Figures,
    Guess,
    Judged,
    by_signature,
    cause_figures,
    causes_of,
    figures,
    judge,
    judged_by,
    labelled,
    ours,
    share,
)

_SPEED_SECONDS = 0.5

Rows = list[tuple[str, ...]]


def report_on(corpus: Path, part: Part) -> str:
    """Return the report as Markdown. Raises :class:`CorpusError` if there are no failures."""
    cases = read_cases(corpus, part)
    failures = labelled(cases)
    if not failures:
        raise CorpusError(f"{corpus}: the part {part.value} holds no failure: python -m tools.corpus build")
    mine = judged_by(ours, failures)
    ladder = _by_ladder(corpus, failures)
    own, theirs = figures(mine), figures(ladder)
    controls = [case for case in cases if case.label is None]
    flagged = share(bool(case.flagged) or case.evidence is not None for case in controls)
    ambiguous = sum(bool(each.label.also) for each in failures)
    summary = (
        f"Part {part.value} ({digest_of(corpus, part)}): {len(failures)} failures in "
        f"{len({case.origin.package for case in cases})} packages and small projects, "
        f"{len({case.origin.kind for case in cases})} kinds of fault; "
        f"{ambiguous} have a second accepted reading. "
        f"Honest changes that were flagged: {flagged.count} of {flagged.of}. "
        f"Diagnoses a second on one core: {_speed(failures):,}."
    )
    paragraphs = [
        textwrap.fill(summary, 100),
        _table("Accuracy", ("", "planverify", "ladder"), _overall(own, theirs)),
        _table(
            "By category",
            ("", "cases", "precision", "recall", "F1", "F1 of the ladder"),
            [
                (each.value, str(row[0]), *map(_number, row[1:]), _number(theirs.by_category[each][3]))
                for each, row in own.by_category.items()
            ],
        ),
        _table("Wrong categories", ("true, diagnosed", "cases"), _confused(mine)),
        _table(
            "Accuracy by confidence",
            ("confidence", "cases", "mean confidence", "accuracy"),
            [
                (
                    f"{each.low:.1f} and more",
                    str(each.cases),
                    _number(each.confidence),
                    _number(each.accuracy),
                )
                for each in own.reliability
            ],
        ),
    ]
    if part is not Part.FRESH:  # one group, and every package is new
        heads = (
            "",
            "cases",
            "macro-F1",
            "of the ladder",
            "category and owner",
            "owner",
            "calibration error",
        )
        paragraphs.append(_table("By novelty and group", heads, list(_subsets(mine, ladder))))
    if runs := read_runs(corpus, part):
        told = [cause_figures(runs, way) for way in (causes_of, by_signature)]
        labels = {
            "precision": "precision of grouped pairs",
            "recall": "recall of grouped pairs",
            "causes_a_fault": "causes per fault",
            "first": "first cause is one to repair first",
        }
        paragraphs.append(
            _table(
                f"Root causes, in {len(runs)} runs with {told[0]['failures']:.0f} failures",
                ("", "planverify", "by signature alone"),
                [(label, *(_number(each[name]) for each in told)) for name, label in labels.items()],
            )
        )
    return "\n\n".join(paragraphs) + "\n"


def with_figures(page: Path, part: Part, text: str) -> str:
    """Return the page with the report between the markers of its part. Raises :class:`CorpusError`."""
    begin, end = f"<!-- corpus {part.value}: begin -->", f"<!-- corpus {part.value}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise CorpusError(f"{page}: it has no place for figures; put {begin} and {end} into it")
    return f"{before}{begin}\n\n{text}\n{end}{after}"


def _by_ladder(corpus: Path, failures: Sequence[Failed]) -> tuple[Judged, ...]:
    """Judge the ladder; the confidence of a rung is its share of correct readings on ``develop``."""
    right: dict[str, list[bool]] = {}
    if (corpus / Part.DEVELOP.value).is_dir():
        for failed in labelled(read_cases(corpus, Part.DEVELOP)):
            guess = regex_ladder.guess(failed.evidence)
            right.setdefault(guess.rule, []).append(judge(failed, guess).right)

    def guess_rated(failed: Failed) -> Guess:
        guess = regex_ladder.guess(failed.evidence)
        seen = right.get(guess.rule, [])
        return guess._replace(confidence=(sum(seen) + 0.8) / (len(seen) + 1))

    return tuple(judge(failed, guess_rated(failed)) for failed in failures)


def _overall(own: Figures, theirs: Figures) -> Rows:
    rows = [("macro-F1", _number(own.macro_f1), _number(theirs.macro_f1))]
    for name, found in own.shares.items():
        other = "–" if name.startswith("place") else _number(theirs.shares[name].value)
        rows.append((f"{name}, of {found.of}", _number(found.value), other))
    rows.append(("calibration error", _number(own.calibration_error), _number(theirs.calibration_error)))
    for part, accuracy in own.surest.items():
        rows.append((f"accuracy of the surest {part:.0%}", _number(accuracy), _number(theirs.surest[part])))
    return rows


def _confused(judged: Sequence[Judged]) -> Rows:
    counts: dict[tuple[Category, Category], int] = {}
    for each in judged:
        pair = each.failed.label.category, each.counted
        if pair[0] is not pair[1]:
            counts[pair] = counts.get(pair, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [(f"{true.value}, {said.value}", str(count)) for (true, said), count in ordered if count > 1]
    if single := sum(count == 1 for _, count in ordered):
        rows.append(("other pairs, one case each", str(single)))
    return rows


def _subsets(mine: Sequence[Judged], ladder: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    wanted: dict[str, Callable[[Case], bool]] = {
        "new package only": lambda case: _novelty(case) == (True, False),
        "new kind of fault only": lambda case: _novelty(case) == (False, True),
        "new package and kind": lambda case: _novelty(case) == (True, True),
    }
    for group in Group:
        wanted[group.value] = lambda case, group=group: case.group is group
    for name, belongs in wanted.items():
        own, theirs = (
            figures([each for each in judged if belongs(each.failed.case)]) for judged in (mine, ladder)
        )
        if own.cases:
            shares = (own.shares["category and owner right"].value, own.shares["owner right"].value)
            yield (
                name,
                str(own.cases),
                *map(_number, (own.macro_f1, theirs.macro_f1, *shares, own.calibration_error)),
            )


def _novelty(case: Case) -> tuple[bool, bool]:
    return is_test_package(case.origin.package), is_test_kind(case.origin.kind)


def _speed(failures: Sequence[Failed]) -> int:
    """Return the number of diagnoses per second of processor time, measured for a fixed time."""
    many = 0
    began = time.process_time()
    while (spent := time.process_time() - began) < _SPEED_SECONDS:
        for failed in failures:
            diagnose(failed.evidence)
        many += len(failures)
    return round(many / spent)


def _table(title: str, head: Sequence[str], rows: Rows) -> str:
    lines = [f"**{title}**", "", f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _number(value: float) -> str:
    return f"{value:.3f}"
