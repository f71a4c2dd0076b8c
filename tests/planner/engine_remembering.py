"""Invents the first event of a run: a plan, a policy, and what is remembered of the past."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from engine_inventing import REPAIRABLE, SIZES, START, digest_of, invent_plan

from planner.model.events import PlanSubmitted, RunPolicy
from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
from planner.model.taxonomy import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_ROLES = (Role.CODER, Role.ARCHITECT, Role.DEBUGGER)


def invent_submission(random: Random, *, sizes: Sequence[int] = SIZES) -> PlanSubmitted:
    """The first event of a run."""
    problems = ("t1 has no way to be done",) if random.random() < 0.01 else ()
    return PlanSubmitted(
        at=START,
        plan=invent_plan(random, "plan", size=random.choice(sizes), level=0),
        digest=digest_of(random),
        problems=problems,
        policy=RunPolicy(
            jobs=random.choice((None, None, 1, 2, 1000)),
            environment_retries=random.choice((0, 1, 3)),
            environment_delay_seconds=random.choice((0.0, 30.0)),
            tools=random.choice(((), ("ruff", "mypy"))),
            allow_unproved=True,
        ),
        memory=invent_past(random),
    )


def invent_past(random: Random) -> PastRecords:
    """Mostly nothing; else a few weeks of the same repository."""
    if random.random() < 0.8:
        return PastRecords()
    best = random.choice(_ROLES)
    return PastRecords(
        fingerprint="here",
        repairs=tuple(_repair(random, best) for _ in range(random.randrange(20))),
        todos=tuple(_todo(random) for _ in range(random.randrange(10))),
        corrections=tuple(_correction(random, best) for _ in range(random.randrange(3))),
    )


def _repair(random: Random, best: Role) -> PastRepair:
    role = random.choice(_ROLES)
    return PastRepair(
        at=START - timedelta(days=random.randrange(30)),
        fingerprint="here",
        task_kind=random.choice(("fix_test", "add_feature", "refactor")),
        text=random.choice(("Part 0 ValueError: it is 1", "Part 1", "")),
        signature=_signature(random),
        category=random.choice(REPAIRABLE),
        role=role,
        fixed=role is best or random.random() < 0.1,
    )


def _todo(random: Random) -> PastTodo:
    return PastTodo(
        at=START - timedelta(days=random.randrange(30)),
        fingerprint="here",
        task_kind=random.choice(("fix_test", "add_feature", "refactor")),
        text=f"Part {random.randrange(5)}",
        role=random.choice(_ROLES),
        done=random.random() < 0.7,
        first_time=random.random() < 0.5,
        categories=tuple(random.sample(REPAIRABLE, 2)),
    )


def _correction(random: Random, best: Role) -> Correction:
    return Correction(
        at=START - timedelta(days=random.randrange(30)),
        fingerprint="here",
        signature=_signature(random),
        category=random.choice(REPAIRABLE),
        role=best,
        by="ada",
    )


def _signature(random: Random) -> str:
    """Of the failures that runs have, too."""
    return f"{random.randrange(4):012x}"
