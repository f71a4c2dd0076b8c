"""Small corpora made by hand, from evidence that was recorded."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from planner.model.evidence import Confirmation, Evidence, ExceptionFact
from planner.model.kinds import EvidenceKind
from planner.model.taxonomy import Category, Owner, Repeatability
from pytest_planverify.corpus.case import Case, Gates, Group, Label, Origin, Place, Reading
from pytest_planverify.corpus.files import render
from pytest_planverify.corpus.guessing import Guess
from pytest_planverify.corpus.scoring import Failed, Judged, judge, labelled

RECORDED = Path(__file__).parents[2] / "fixtures" / "evidence"
GATES = Gates(green_before=True, red_runs=3, runs=3)
C, O = Category, Owner  # noqa: E741


@cache
def recorded(name: str) -> Evidence:
    return Evidence.model_validate(json.loads((RECORDED / f"{name}.json").read_text())["evidence"])


def label(
    category: Category,
    owner: Owner = Owner.PRODUCT,
    *,
    also: tuple[tuple[Category, Owner], ...] = (),
    repeatability: Repeatability | None = None,
    place: Place | None = None,
) -> Label:
    readings = tuple(Reading(category=one, owner=two, why="both are fair") for one, two in also)
    return Label(category=category, owner=owner, also=readings, repeatability=repeatability, place=place)


def case(
    name: str,
    truth: Label | None,
    evidence: Evidence | None = None,
    *,
    package: str = "shop",
    kind: str = "wrong-value",
    group: Group = Group.INJECTED,
    flagged: tuple[str, ...] = (),
) -> Case:
    return Case(
        id=name,
        group=group,
        origin=Origin(package=package, kind=kind),
        gates=GATES,
        label=truth,
        evidence=evidence,
        flagged=flagged,
    )


def raising(name: str, message: str = "", *, passed_again: bool = False) -> Evidence:
    """Evidence of a test that raised an exception of the builtins."""
    return Evidence(
        kind=EvidenceKind.TEST,
        exceptions=(ExceptionFact(type=name, qualified=f"builtins.{name}", message=message),),
        headline=f"{name}: {message}",
        confirmations=(Confirmation(where="alone", passed=passed_again),),
    )


def judged(
    truth: Label,
    said: Category,
    owner: Owner = Owner.PRODUCT,
    confidence: float = 0.9,
    package: str = "shop",
) -> Judged:
    return judge(failed(truth, package=package), Guess(said, owner, confidence))


def failed(truth: Label, evidence: Evidence | None = None, *, package: str = "shop") -> Failed:
    return labelled([case("one", truth, evidence or raising("KeyError"), package=package)])[0]


THREE: tuple[Case, ...] = (
    case("mypy", label(C.TYPE_ERROR), recorded("command-mypy-complains"), package="a", kind="wrong-type"),
    case("crash", label(C.TEST_CRASH), recorded("session-segfault"), package="b", kind="crash"),
    case(
        "option",
        label(C.ENVIRONMENT_ERROR, O.ENVIRONMENT),
        recorded("session-option-of-absent-plugin"),
        package="c",
        kind="absent-plugin",
        group=Group.ENVIRONMENT,
    ),
)


def write_part(corpus: Path, part: str, *cases: Case) -> Path:
    """The corpus, with these cases in one part, whatever the split says of them."""
    folder = corpus / part
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.jsonl").write_text("".join(f"{render(each)}\n" for each in cases))
    return corpus
