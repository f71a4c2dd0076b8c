"""Corrections of diagnoses: loaded on demand by unsure diagnoses, and never a reason for a run to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from diagnosis_samples import TEST_FILE, error, failed, frame

from planner.model.evidence import Evidence
from planner.model.past import Correction
from planner.model.taxonomy import Category, Owner, Role
from planner.store.corrections import CorrectionLog, append_correction, read_corrections
from pytest_planverify import hookspecs
from pytest_planverify.diagnosis import RULES, diagnose
from pytest_planverify.diagnosis.corrections import HARD, LEARNED, RULE, learned
from pytest_planverify.session import outcomes as asking
from pytest_planverify.session.outcomes import FILE, Opinions

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.outcome import Diagnosis


NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def unusable(function: str = "test_total") -> Evidence:
    """Return evidence of a test that raised a TypeError on the value it received."""
    raised = error("TypeError", "'int' object is not iterable", frame(TEST_FILE, function))
    return failed(raised, nodeid=f"{TEST_FILE}::{function}")


FAILURE = unusable()
BUILT_IN = diagnose(FAILURE)
SPEC, ENVIRONMENT = Category.SPEC_MISMATCH, Category.ENVIRONMENT_ERROR


def by(
    *names: str | None,
    category: Category | None = SPEC,
    owner: Owner | None = None,
    days_ago: float = 0.5,
    of: Diagnosis = BUILT_IN,
    **more: Any,
) -> tuple[Correction, ...]:
    """Return equal corrections of a diagnosis by several people."""
    fields: dict[str, Any] = {
        "at": NOW - timedelta(days=days_ago),
        "fingerprint": "here",
        "signature": of.signature,
        "category": of.category,
        "role": (category or of.category).facts.default_role,
        "right_category": category,
        "right_owner": owner,
    }
    return tuple(Correction(**fields | more, by=name) for name in names)


TWICE = by("ann", "bob")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".planverify"
    folder.mkdir()
    return folder


@pytest.fixture
def opinions() -> Opinions:
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    return Opinions(manager)


def correct(home: Path, corrections: tuple[Correction, ...] = TWICE) -> None:
    for each in corrections:
        append_correction(home.parent, each)


def test_correction_is_applied_as_a_learned_diagnosis(
    home: Path, opinions: Opinions, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(home)
    monkeypatch.setattr(opinions, "_now", NOW)

    found = opinions.below(home)(FAILURE)

    assert (found.category, found.rule) == (Category.SPEC_MISMATCH, "learned")
    assert found.target_agent is None
    assert opinions.notes == ()


def test_rules_decide_without_corrections(home: Path, opinions: Opinions) -> None:
    assert opinions.below(home)(FAILURE).rule == diagnose(FAILURE).rule
    (home / FILE).touch()
    assert opinions.below(home)(FAILURE).rule == diagnose(FAILURE).rule
    assert opinions.notes == ()


@pytest.mark.parametrize("damage", ["text", "changed", "large", "folder", "link"])
def test_unreadable_correction_log_is_a_note(damage: str, home: Path, opinions: Opinions) -> None:
    file = home / FILE
    if damage == "text":
        file.write_text("no log at all, but long enough to be looked at as one\n")
    elif damage == "folder":
        file.mkdir()
    elif damage == "link":
        file.symlink_to(home / "elsewhere.jsonl")
    else:
        correct(home)
        if damage == "changed":
            file.write_text(file.read_text().replace("ann", "eve"))
        else:
            os.truncate(file, 20 * 1024 * 1024)
    ask = opinions.below(home)

    assert ask(FAILURE) == ask(FAILURE)

    (note,) = opinions.notes
    assert note.startswith(f"corrections were not used: {file}")
    assert "\n" not in note
    assert ask(FAILURE).rule != "learned"


@pytest.mark.parametrize(
    "field",
    ['"role":"king"', '"at":"x"', "no JSON", f'"a":{"[" * 9_000}{"]" * 9_000}'],
    ids=["role", "time", "text", "deep"],
)
def test_unknown_correction_entries_are_ignored(field: str, home: Path, opinions: Opinions) -> None:
    correct(home)
    with closing(CorrectionLog.append_to(home / FILE)) as log, log.hold():
        assert len(list(log.entries())) == 2
        log.write([f'{{"n":2,"correction":{{{field}}}'])
    opinions.below(home)(FAILURE)
    assert len(opinions.corrections(home)) == 2
    assert opinions.notes == ()


def test_newest_corrections_come_first_and_future_ones_are_ignored(home: Path) -> None:
    correct(home, (*TWICE, *by("eve", days_ago=-1), *by("zoe", category=None), *by("old", days_ago=9)))

    found = read_corrections(home / FILE, NOW, 2)

    assert [each.by for each in found] == ["bob", "ann"]
    assert read_corrections(home / "gone.jsonl", NOW, 5) == ()


def test_rules_and_database_are_imported_only_for_a_failure() -> None:
    names = ("sqlalchemy", "planner.store", "planner.engine", "pytest_planverify.diagnosis")
    program = (
        f"import sys; before = set(sys.modules); import {asking.__name__}\n"  # coverage may be loaded
        f"print([name for name in {names} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def after(*corrections: Correction, built_in: Diagnosis = BUILT_IN) -> Diagnosis:
    return learned(built_in, corrections)


def test_corrections_of_two_people_override_the_rule() -> None:
    found = after(*TWICE)

    assert (found.category, found.owner, found.rule) == (SPEC, Owner.PRODUCT, RULE)
    assert found.runner_up is not None
    assert found.runner_up.category is BUILT_IN.category
    assert 0.85 < found.confidence < 0.9
    assert found.because == (
        "2 corrections of this failure say SPEC_MISMATCH of the product; the rule raised-in-test-alone "
        "alone would say TEST_REGRESSION of the test."
    )
    kept = ("signature", "location", "suggestion", "repeatability")
    assert {name: getattr(found, name) for name in kept} == {name: getattr(BUILT_IN, name) for name in kept}


@pytest.mark.parametrize("rule", sorted(HARD))
def test_hard_evidence_is_never_corrected(rule: str) -> None:
    hard = BUILT_IN.model_copy(update={"rule": rule})
    assert after(*TWICE, built_in=hard) is hard


def test_hard_rules_cover_every_category_that_is_not_learned() -> None:
    assert {rule.id for rule in RULES} > HARD
    by_category = {rule.category for rule in RULES if rule.id in HARD}
    assert by_category >= set(Category) - LEARNED - {Category.UNKNOWN}
    assert not HARD & {"contract-unresolved", "answered-no", "raised-in-test", "unknown"}


TOO_FEW: dict[str, tuple[Correction, ...]] = {
    "none": (),
    "one person once": by("ann"),
    "one person twice a day": by("ann", "ann"),
    "nobody twice a day": by(None, None),
    "of another failure": by("ann", "bob", "cy", of=diagnose(unusable("test_sum"))),
    "of the role alone": by("ann", "bob", "cy", category=None),
    "taken back by their author": (
        *by("ann"),
        *by("ann", days_ago=2),
        *by("ann", category=ENVIRONMENT, days_ago=0.1),
    ),
    "as many against them": (*TWICE, *by("cy", "dan", category=ENVIRONMENT)),
    "as many for the rule": (*TWICE, *by("cy", "di", category=BUILT_IN.category)),
}
ENOUGH: dict[str, tuple[Correction, ...]] = {
    "one person on two days": (*by("ann"), *by("ann", days_ago=2)),
    "two people, one of whom changed the mind": (*by("ann", category=ENVIRONMENT, days_ago=9), *TWICE),
    "most people": (*TWICE, *by("eve", "flo"), *by("cy", category=ENVIRONMENT)),
}


@pytest.mark.parametrize("corrections", TOO_FEW.values(), ids=TOO_FEW)
def test_too_few_agreeing_corrections_change_nothing(corrections: tuple[Correction, ...]) -> None:
    assert after(*corrections) is BUILT_IN


@pytest.mark.parametrize("corrections", ENOUGH.values(), ids=ENOUGH)
def test_enough_agreeing_corrections_prevail(corrections: tuple[Correction, ...]) -> None:
    assert after(*corrections).category is SPEC


@pytest.mark.parametrize("category", sorted(set(Category) - LEARNED))
def test_categories_that_need_proof_are_not_learned(category: Category) -> None:
    assert after(*by("ann", "bob", "cy", category=category)) is BUILT_IN


def test_owner_can_be_corrected_without_the_category() -> None:
    found = after(*by("ann", "bob", category=None, owner=Owner.ENVIRONMENT))

    assert (found.category, found.owner, found.rule) == (BUILT_IN.category, Owner.ENVIRONMENT, RULE)
    assert found.runner_up == BUILT_IN.runner_up


def test_corrected_owner_is_the_majority_choice() -> None:
    found = after(*by("ann", "bob", owner=Owner.TEST), *by("cy"))
    assert (found.category, found.owner) == (SPEC, Owner.TEST)


def test_corrected_role_needs_two_people() -> None:
    named = by("ann", "bob", role=Role.DEBUGGER)
    assert after(*named).target_agent is Role.DEBUGGER
    assert after(named[0], *by("cy")).target_agent is None


def test_order_of_corrections_is_irrelevant() -> None:
    corrections = [*TWICE, *by("cy", category=ENVIRONMENT)]
    assert after(*corrections) == after(*reversed(corrections))
