"""`planner next` and `planner step`: given the same outcomes, they ask for the same actions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_documents import sample_document

from planner.engine import step
from planner.errors import RefusedEvent
from planner.model.events import RunResumed, RunStarted, Verified
from planner.model.plan import Plan, Policy
from planner.model.taxonomy import Category
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.writer import dump_plan
from planner.store.plan_run import PlanRun
from planner.store.session import RunSession, RunSettings
from planner.testing import create_sample_todo, simulate_failure, simulate_success
from tools.bench.simulated_agents import AGENTS, carry_out, is_broken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.engine import State
    from planner.model.outcome import Outcome, OutcomeDocument


START = datetime(2026, 1, 1, tzinfo=UTC)
CATEGORIES = [
    *(Category.TEST_REGRESSION, Category.FLAKY_TEST, Category.IMPORT_ERROR, Category.ENVIRONMENT_ERROR),
    *(Category.TEST_NOT_FOUND, Category.UNKNOWN, Category.HYGIENE_VIOLATION),
]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(1, 4))
    items = tuple(
        create_sample_todo(
            f"t{at}",
            dependencies=tuple(f"t{on}" for on in draw(st.sets(st.integers(0, max(at - 1, 0)))) if on < at),
            max_retries=draw(st.integers(0, 2)),
            status=draw(st.sampled_from(("open", "claimed"))),
            allowed_files=draw(st.sampled_from((None, ("src/**",), (f"src/m{at}/**",)))),
        )
        for at in range(count)
    )
    policy = Policy(
        auto_fix_mode=draw(st.booleans()),
        max_debug_attempts=draw(st.integers(1, 3)),
        max_branch_depth=draw(st.integers(0, 2)),
        max_concurrent_branches=draw(st.integers(1, 3)),
        branch_timeout_seconds=draw(st.sampled_from((90.0, 600.0))),
    )
    return Plan(todo_list_id="p1", metadata=policy, items=items)


@st.composite
def outcomes(draw: st.DrawFn, plan: Plan, number: int) -> tuple[Outcome, ...]:
    found: list[Outcome] = []
    tree = f"sha256:{draw(st.integers(0, number))}"
    for todo in plan.items:
        if draw(st.booleans()):
            outcome = simulate_success(todo)
        else:
            signature = f"{draw(st.integers(0, 2)):012x}"
            category = draw(st.sampled_from(CATEGORIES))
            outcome = simulate_failure(todo, category, "it broke", signature=signature)
        found.append(outcome.model_copy(update={"diff_hash": tree, "plan": plan.todo_list_id}))
    return tuple(found)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_next_and_step_request_the_same_actions(data: st.DataObject, tmp_path_factory: Any) -> None:
    folder: Path = tmp_path_factory.mktemp("both")
    path = folder / "plan.yaml"
    path.write_text(dump_plan(data.draw(plans()), format="yaml"))
    loaded = load_plan(path)
    driver = RunSession.open(RunSettings(plan=path, log=folder / "driver.jsonl", validates=False))
    try:
        for number in range(data.draw(st.integers(1, 4))):
            at = START + timedelta(seconds=60 * number)
            document = _document(loaded.plan, data.draw(outcomes(loaded.plan, number)), at, loaded.digest)
            own = PlanFolder(folder, "p1").outcomes
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_text(document.model_dump_json())
            run = PlanRun.open(path)
            run.save()
            if number == 0:
                driver.tell(RunStarted(at=at))
            if run.log is None or run.log.name != "p1.jsonl" or _is_over(driver):
                return  # a done todo is red again: a new run, which a driver must begin itself
            _drive(driver, document, at)

            assert _asked(run.state, at) == _asked(_state(driver), at)
            assert run.state.plan_state == _state(driver).plan_state
    finally:
        driver.close()


def _drive(driver: RunSession, document: OutcomeDocument, at: datetime) -> None:
    """Report the outcomes to a driver's session, until none of the remaining ones applies."""
    pending = list(document.outcomes)
    while pending:
        before = len(pending)
        for outcome in list(pending):
            record = _state(driver).records[outcome.todo_id]
            if _is_over(driver) or record.life.is_final:
                pending.remove(outcome)
            elif not _state(driver).waits(record) or outcome.success or _violates(outcome):
                pending.remove(outcome)
                event = Verified(at=at, outcome=outcome, run_id=document.run.run_id)
                try:
                    driver.tell(event)
                except RefusedEvent as refusal:  # no outcome that the plugin writes is refused
                    raise AssertionError(str(refusal)) from refusal
        if len(pending) == before:
            return


def _violates(outcome: Outcome) -> bool:
    failure = outcome.failure_evidence
    return failure is not None and failure.category is Category.HYGIENE_VIOLATION


def _document(plan: Plan, found: Sequence[Outcome], at: datetime, digest: str) -> OutcomeDocument:
    document = sample_document(plan, found, at=at)
    (reference,) = document.plans
    return document.model_copy(update={"plans": (reference.model_copy(update={"digest": digest}),)})


def _state(session: RunSession) -> State:
    assert session.state is not None
    return session.state


def _is_over(session: RunSession) -> bool:
    return session.state is not None and session.state.plan_state.is_final


def _asked(state: State, at: datetime) -> list[str]:
    """Return all outstanding actions without their numbers, or the rule that stopped the plan."""
    if state.plan_state.is_final:
        return [state.stopped.rule if state.stopped is not None else ""]
    return [
        json.dumps(each.model_dump(mode="json", exclude={"seq"}), sort_keys=True)
        for each in step(state, RunResumed(at=at))[1]
    ]


COUNT = 10


@pytest.mark.parametrize("kind", AGENTS)
def test_a_workflow_ends_within_its_limits_and_is_done_only_if_all_is_green(kind: str) -> None:
    told = [carry_out(kind, seed) for seed in range(COUNT)]
    assert [seed for seed, each in enumerate(told) if is_broken(each)] == []
    assert any(each.red_at_first for each in told), "nothing was ever red, and nothing is proved"
    if kind == "honest":
        repaired = sum(each.recovered for each in told)
        assert repaired > 0.8 * sum(each.red_at_first for each in told), "honest workers repair most of it"
