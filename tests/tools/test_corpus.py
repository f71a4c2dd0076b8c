"""Tests of the corpus: reading and writing, scoring of diagnoses, and the shipped fit of confidence."""

import gzip
import json
import re
from pathlib import Path

import pytest

from planner.model.evidence import Evidence
from planner.model.outcome import Location
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis import RULES
from pytest_planverify.diagnosis.decision import FILE, earned, fit_of
from tools.corpus.__main__ import main
from tools.corpus.case import (
    FRESH_PACKAGES,
    RECORDED,
    Case,
    CorpusError,
    Gates,
    Group,
    Label,
    Origin,
    Part,
    Place,
    Reading,
    is_test_kind,
    is_test_package,
    part_of,
    read_cases,
    read_runs,
    write_cases,
)
from tools.corpus.fitting import fit_to, fitted
from tools.corpus.scoring import (
    Failed,
    Guess,
    Judged,
    cause_figures,
    figures,
    judge,
    judged_by,
    labelled,
    ours,
)

EVIDENCE = Evidence(kind=EvidenceKind.TEST, headline="KeyError: 'ä'")


def label(category: C, owner: O = O.PRODUCT, *also: tuple[C, O], place: Place | None = None) -> Label:
    readings = tuple(Reading(category=one, owner=two, why="both are fair") for one, two in also)
    return Label(category=category, owner=owner, also=readings, place=place)


def case(name: str, truth: Label | None, *, package: str = "shop", kind: str = "wrong-value") -> Case:
    return Case(
        id=name,
        group=Group.INJECTED,
        origin=Origin(package=package, kind=kind),
        gates=Gates(green_before=True, red_runs=3, runs=3),
        label=truth,
        evidence=EVIDENCE if truth else None,
    )


def judged(truth: Label, category: C, owner: O = O.PRODUCT, location: Location | None = None) -> Judged:
    return judge(
        Failed(case("one", truth), truth, EVIDENCE), Guess(category, owner, 0.9, location=location)
    )


def test_written_cases_are_read_back_from_their_parts(tmp_path: Path):
    cases = [
        case(f"{package}-{kind}", label(C.TEST_REGRESSION), package=package, kind=kind)
        for package in (*"zyxw", "boltons")
        for kind in "klmn"
    ]
    write_cases(tmp_path, "builder", cases)
    for part in Part:
        read = read_cases(tmp_path, part)
        assert read
        assert [each.id for each in read] == sorted(each.id for each in read)
        assert all(part_of(each.origin.package, each.origin.kind) is part for each in read)
    assert {each.id for part in Part for each in read_cases(tmp_path, part)} == {each.id for each in cases}


def test_no_recorded_case_is_in_the_wrong_part():
    packages: dict[Part, set[str]] = {}
    for part in Part:
        files = (RECORDED / part.value).glob("*.jsonl.gz")
        lines = [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
        for each in map(json.loads, lines):
            origin = each["origin"]
            assert part_of(origin["package"], origin["kind"]) is part, each["id"]
            packages.setdefault(part, set()).add(origin["package"])
        for run in read_runs(RECORDED, part):
            kept = is_test_package(run.package) or any(map(is_test_kind, run.kinds))
            assert kept is (part is Part.TEST), run.id
    assert packages[Part.FRESH] == set(FRESH_PACKAGES)


@pytest.mark.parametrize(
    ("said", "owner", "right", "counted", "owner_right"),
    [
        (C.ARTIFACT_MISSING, O.PRODUCT, True, C.ARTIFACT_MISSING, True),
        (C.SPEC_MISMATCH, O.PLAN, True, C.ARTIFACT_MISSING, True),
        (C.SPEC_MISMATCH, O.PRODUCT, False, C.ARTIFACT_MISSING, True),
        (C.IMPORT_ERROR, O.TEST, False, C.IMPORT_ERROR, False),
    ],
)
def test_an_accepted_alternative_label_counts_as_right(
    said: C, owner: O, right: bool, counted: C, owner_right: bool
):
    found = judged(label(C.ARTIFACT_MISSING, O.PRODUCT, (C.SPEC_MISMATCH, O.PLAN)), said, owner)
    assert (found.right, found.counted, found.owner_right) == (right, counted, owner_right)


def test_figures_are_computed_by_category_and_owner():
    found = figures(
        [
            judged(label(C.TYPE_ERROR), C.TYPE_ERROR),
            judged(label(C.TYPE_ERROR), C.SPEC_MISMATCH),
            judged(label(C.ENVIRONMENT_ERROR, O.ENVIRONMENT), C.TEST_REGRESSION),
            judged(label(C.ENVIRONMENT_ERROR, O.ENVIRONMENT), C.ENVIRONMENT_ERROR, O.ENVIRONMENT),
        ]
    )
    assert found.by_category[C.TYPE_ERROR] == (2, 1.0, 0.5, pytest.approx(2 / 3))
    assert found.macro_f1 == pytest.approx(2 / 3)
    assert found.shares["false blame"] == (1, 2)
    assert found.calibration_error == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("function", "line", "right"),
    [("Cart.total", 4, (1, 1, 1)), ("total", 6, (0, 1, 1)), ("sum", 4, (1, 1, 0))],
)
def test_a_location_is_scored_by_line_file_and_function(function: str, line: int, right: tuple[int, ...]):
    place = Place(path="shop/cart.py", first_line=3, last_line=5, function="Cart.total", exact=True)
    named = Location(path="shop/cart.py", line=line, function=function)
    shares = figures(
        [judged(label(C.TEST_REGRESSION, place=place), C.TEST_REGRESSION, location=named)]
    ).shares
    assert tuple(shares[f"place: {what} right"].count for what in ("line", "file", "function")) == right


def test_an_unlabelled_case_and_a_missing_corpus_are_refused_by_name(tmp_path: Path):
    with pytest.raises(CorpusError, match="odd-1: it has a label but no evidence"):
        labelled([case("odd-1", label(C.LINT_ERROR)).model_copy(update={"evidence": None})])
    with pytest.raises(CorpusError, match="there is no corpus"):
        read_cases(tmp_path, Part.TEST)


def test_failures_of_one_fault_are_scored_by_pairs():
    runs = read_runs(RECORDED, Part.DEVELOP)[:5]
    alone = cause_figures(runs, lambda run: [[place] for place in range(len(run.failures))])
    assert alone["recall"] == 0.0
    together = cause_figures(runs, lambda run: [list(range(len(run.failures)))])
    assert together["recall"] == 1.0


def test_the_calibration_curve_is_monotonic():
    scores, values = fitted([(0.2, 1.0, 1.0), (0.4, 0.0, 1.0), (0.8, 1.0, 2.0)])
    assert (scores, values) == (pytest.approx((0.3, 0.8)), pytest.approx((0.5, 1.0)))


def test_shipped_confidences_match_current_rules_and_cases():
    """After a change of either, run ``python -m tools.corpus fit``."""
    shipped, anew = json.loads(FILE.read_text()), fit_to(RECORDED)
    assert shipped["fitted_on"] == anew["fitted_on"]
    assert list(shipped["rules"]) == [rule.id for rule in RULES]
    for rule in RULES:
        was, now = (earned(fit_of(each), rule.id, rule.confidence) for each in (shipped, anew))
        assert was == pytest.approx(now, abs=0.05), rule.id


@pytest.mark.parametrize("part", [Part.TEST, Part.FRESH])
def test_the_diagnosis_is_as_accurate_as_documented_and_calibrated(part: Part):
    page = (Path(__file__).parents[2] / "docs" / "corpus.md").read_text(encoding="utf-8")
    told = page.partition(f"<!-- corpus {part.value}: begin -->")[2].partition("<!-- corpus")[0]
    found = figures(judged_by(ours, labelled(read_cases(RECORDED, part))))
    for name in ("category right", "category and owner right", "owner right"):
        row = re.search(rf"^\| {name}, of \d+ \| ([\d.]+) ", told, re.MULTILINE)
        assert row is not None
        assert found.shares[name].value >= float(row[1]) - 0.002, name
    assert found.calibration_error <= 0.05


def test_the_report_command_reports_a_part_and_refuses_a_folder_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tools.corpus.report._SPEED_SECONDS", 0.01)
    write_cases(tmp_path, "builder", [case("a", label(C.TEST_REGRESSION)), case("b", None)])
    part = part_of("shop", "wrong-value").value
    page = tmp_path / "page.md"
    page.write_text(
        f"before\n<!-- corpus {part}: begin -->\nstale figures\n<!-- corpus {part}: end -->\nafter\n"
    )
    assert main(["report", "--corpus", str(tmp_path), "--part", part, "--markdown", str(page)]) == 0
    assert "1 failures in 1 packages" in " ".join(capsys.readouterr().out.split())
    assert "stale" not in page.read_text()
    assert main(["run", "--corpus", str(tmp_path), "--part", part]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "a"
    assert main(["report", "--corpus", str(tmp_path / "nowhere")]) == 4
    assert "there is no corpus" in capsys.readouterr().err
