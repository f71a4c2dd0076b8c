"""The run of a plan that people look at, where a driver carries it out, or has done so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.model.events import RunStarted, Verified
from planner.model.plan import Plan
from planner.model.taxonomy import Category
from planner.model.verdicts import PlanState
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.record_files import write_outcomes
from planner.policy.limits import lowered
from planner.store.plan_run import PlanRun
from planner.store.run_log import make_log_folder, plan_logs
from planner.store.session import RunSession, RunSettings
from planner.testing import sample_document, simulate_failure, simulate_success

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text("todo_list_id: shop\nitems: [{id: t1, title: A, verify: pytest tests/test_t1.py}]\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_t1.py").write_text("def test_it(): pass\n")
    return path


def drive(plan: Path, *, halts: bool = False) -> None:
    log = plan_logs(load_plan(plan))[-1]
    make_log_folder(log)

    def lower(held: Plan) -> Plan:
        return lowered(held, {"max_debug_attempts": 1})[0]

    with RunSession.open(RunSettings(plan=plan, log=log, adjust=lower)) as session:
        session.tell(RunStarted(at=BEGUN))
        if halts:
            todo = load_plan(plan).plan.items[0]
            session.tell(
                Verified(
                    at=BEGUN, outcome=simulate_failure(todo, Category.HYGIENE_VIOLATION, "a test is gone")
                )
            )


def verify_by_hand(plan: Path, at: datetime) -> None:
    loaded = load_plan(plan)
    document = sample_document(loaded.plan, [simulate_success(loaded.plan.items[0])], at=at)
    reference = document.plans[0].model_copy(update={"digest": loaded.digest})
    target = PlanFolder(loaded.root, "shop").outcomes
    write_outcomes(document.model_copy(update={"plans": (reference,)}), target)


def test_a_run_within_lower_limits_than_those_of_the_plan_is_a_run_of_that_plan(plan: Path):
    drive(plan)
    assert PlanRun.open(plan).is_driven


@pytest.mark.parametrize(
    ("halts", "later", "state"),
    [
        pytest.param(True, 1, PlanState.COMPLETED, id="the run is over"),
        pytest.param(True, -1, PlanState.HALTED, id="it was verified before the run"),
        pytest.param(False, 1, PlanState.EXECUTING, id="the run is not over"),
    ],
)
def test_a_verification_by_hand_counts_after_a_driven_run(
    plan: Path, halts: bool, later: int, state: PlanState
):
    drive(plan, halts=halts)
    verify_by_hand(plan, BEGUN + timedelta(minutes=later))
    assert PlanRun.open(plan).state.plan_state is state
