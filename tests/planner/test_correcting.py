"""`planner history correct`: what a person says of a failure, kept with what the failure was like."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from planner_command import Command
from store_samples import Carried, shop, todo

from planner.edges.correction_reader import read_corrections
from planner.edges.store import Store, sqlite
from planner.model.outcome import Failure, Outcome, OutcomeDocument, RunInfo, Summary
from planner.model.taxonomy import Category, Owner, Role

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.past import Correction

FEATURES = ("kind:test", "side:test", "at:test_tax.test_rate")


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")
    command = Command(tmp_path, monkeypatch, capsys)
    command.plan(todo("tax"))
    return command


def corrections(planner: Command, place: str = ".planverify/planverify.db") -> tuple[Correction, ...]:
    return read_corrections(planner.folder / place, datetime.now(UTC) + timedelta(minutes=1), 10)


def failure(signature: str = "a1b2c3d4e5f6", **fields: Any) -> Failure:
    held: dict[str, Any] = {
        "category": Category.TYPE_ERROR,
        "owner": Owner.PRODUCT,
        "signature": signature,
        "target_agent": Role.TESTER,
        "features": FEATURES,
    }
    return Failure(**held | fields)


def told(planner: Command, *failures: Failure, folder: str = ".planverify") -> None:
    """The last run has left these failures in its outcome file."""
    outcome = Outcome(todo_id="tax", success=False, tests_passed=False, failures=failures)
    moment = "2026-11-21T10:00:00Z"
    run = RunInfo(
        run_id="r",
        started_at=moment,
        finished_at=moment,
        duration_ms=1,
        exit_status=1,
        scope="all",
        python="3",
        pytest="9",
    )
    document = OutcomeDocument(plans=(), run=run, summary=Summary(), outcomes=(outcome,))
    path = planner.folder / folder / "outcomes.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(document.model_dump_json())


def test_a_failure_of_the_last_run_is_corrected_with_its_features_though_no_store_has_seen_it(
    planner: Command,
) -> None:
    told(planner, failure(), failure("ffff"))

    done = planner(
        "history", "correct", "a1b2", "--category", "spec_mismatch", "--owner", "test", "--by", "ann"
    )

    assert (done.status, done.err) == (0, "")
    assert done.out == (
        "remembered: a1b2c3d4e5f6 (TYPE_ERROR) is for the architect and was SPEC_MISMATCH of the test\n"
    )
    (kept,) = corrections(planner)
    assert (kept.signature, kept.category, kept.features) == ("a1b2c3d4e5f6", Category.TYPE_ERROR, FEATURES)
    assert (kept.right_category, kept.right_owner) == (Category.SPEC_MISMATCH, Owner.TEST)
    assert (kept.role, kept.by) == (Role.ARCHITECT, "ann")
    assert kept.fingerprint.startswith("sha256:")


def test_only_the_owner_may_be_corrected_and_the_role_stays(planner: Command) -> None:
    told(planner, failure())
    done = planner("history", "correct", "a1b2c3d4e5f6", "--owner", "environment")
    assert (
        done.out == "remembered: a1b2c3d4e5f6 (TYPE_ERROR) is for the tester and was of the environment\n"
    )
    (kept,) = corrections(planner)
    assert (kept.right_category, kept.right_owner, kept.role) == (None, Owner.ENVIRONMENT, Role.TESTER)
    shown = planner("history", "fixed", "a1b2c3d4e5f6")
    assert "it is for the tester, and it was of the environment" in " ".join(shown.out.split())
    told(planner, failure(target_agent=None), failure("bare", features=None))
    planner("history", "correct", "a1b2c3d4e5f6", "--owner", "plan")
    assert corrections(planner)[0].role is Role.CODER
    planner("history", "correct", "bare", "--category", "lint_error")
    assert corrections(planner)[0].features == ()


def test_who_corrects_nothing_is_told_what_to_say(planner: Command) -> None:
    told(planner, failure())
    done = planner("history", "correct", "a1b2c3d4e5f6", "--by", "ann")
    assert done.status == 2
    assert done.err == (
        "planner: a correction has to correct something: tell with --category what kind of failure it was, "
        "with --owner whose it was, or with --role who should have acted\n"
    )
    assert not (planner.folder / ".planverify" / "planverify.db").exists()


def test_a_failure_that_the_store_has_seen_brings_its_own_features(planner: Command) -> None:
    with Store.open(planner.folder / ".planverify" / "planverify.db") as store:
        run = Carried(store, shop())
        run.tell("run_started")
        run.worked("tax")
        run.failed("tax", failures=[failure("s1").model_dump(mode="json")])
    told(planner, failure("s1", features=("other",)), failure("a1b2c3d4e5f6"))

    planner("history", "correct", "s1", "--category", "spec_mismatch")
    planner("history", "correct", "a1b2", "--category", "spec_mismatch")

    latest, first = corrections(planner)
    assert (first.signature, first.features, first.fingerprint) == ("s1", FEATURES, "here")
    assert (latest.signature, latest.features) == ("a1b2c3d4e5f6", FEATURES), "the older planner kept none"
    assert planner("history", "fixed", "s1", "--json").json["features"] == list(FEATURES)


def test_outcomes_that_cannot_be_read_are_none(planner: Command) -> None:
    told(planner, failure())
    (planner.folder / ".planverify" / "outcomes.json").write_text("{")
    refused = planner("history", "correct", "a1b2", "--role", "coder")
    assert refused.status == 4
    assert "there is no store yet" in refused.err


def test_a_start_that_several_failures_share_names_none(planner: Command) -> None:
    told(planner, failure("ab1"), failure("ab2"))
    assert planner("history", "correct", "ab", "--role", "coder").status == 4
    assert planner("history", "correct", "ab1", "--role", "coder").status == 0


def test_a_store_elsewhere_is_asked_with_the_outcomes_beside_it_or_here(planner: Command) -> None:
    told(planner, failure("here"))
    told(planner, failure("there"), folder="elsewhere")
    named = ("--category", "spec_mismatch", "--store", "elsewhere/runs.db")
    assert planner("history", "correct", "there", *named).status == 0
    assert planner("history", "correct", "here", *named).status == 2
    assert (
        planner("history", "correct", "here", "--category", "spec_mismatch", "--store", "runs.db").status
        == 0
    )
    assert [each.signature for each in corrections(planner, "runs.db")] == ["here"]
    assert json.loads((planner.folder / "elsewhere" / "outcomes.json").read_text())["run"]["run_id"] == "r"
