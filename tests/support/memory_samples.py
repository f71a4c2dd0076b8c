"""Records of the past for the tests of memory: written samples and Hypothesis strategies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from planner.memory import Memory, task_kind, text_of
from planner.model.outcome import Failure
from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Owner, Role, RoutingKey

TODAY = datetime(2026, 11, 20, tzinfo=UTC)
NOW = TODAY.timestamp()
HERE, ELSEWHERE = "sha256:here", "sha256:elsewhere"
SLOW = Failure(
    category=Category.TEST_TIMEOUT, signature="a1b2c3d4e5f6", stack_trace_head="Timeout in compute_rsi"
)


def todo(title: str = "Fix the RSI of short series", **fields: Any) -> Todo:
    return Todo.model_validate({"id": "t1", "title": title} | fields)


def repair(role: Role, fixed: bool, days: float = 0, of: Failure = SLOW, **fields: Any) -> PastRepair:
    about = {"signature": of.signature, "category": of.category, "role": role, "fixed": fixed}
    return PastRepair.model_validate(_work(todo(), days, of) | about | fields)


def _work(about: Todo, days: float, failure: Failure | None = None) -> dict[str, Any]:
    """Return the fields that every record of work on a todo has, `days` days ago."""
    return {
        "at": TODAY - timedelta(days=days),
        "fingerprint": HERE,
        "task_kind": task_kind(about),
        "text": text_of(about, failure),
    }


def past_todo(title: str, well: bool, days: float = 0, **fields: Any) -> PastTodo:
    about = todo(title)
    result = {"role": about.agent_role, "done": True, "first_time": well}
    return PastTodo.model_validate(_work(about, days) | result | fields)


def correction(role: Role, **fields: Any) -> Correction:
    held: dict[str, Any] = {
        "at": TODAY,
        "fingerprint": HERE,
        "signature": SLOW.signature,
        "category": SLOW.category,
        "role": role,
    }
    return Correction.model_validate(held | fields)


def remembering(*held: PastRepair | PastTodo | Correction) -> Memory:
    return Memory(
        PastRecords(
            fingerprint=HERE,
            repairs=tuple(each for each in held if isinstance(each, PastRepair)),
            todos=tuple(each for each in held if isinstance(each, PastTodo)),
            corrections=tuple(each for each in held if isinstance(each, Correction)),
        )
    )


# -- for Hypothesis ----------------------------------------------------------------------------------

texts = st.lists(
    st.sampled_from(("fix", "the", "RSI", "compute_rsi", "slow", "Timeout", "12", "docs", "é", "系统")),
    max_size=6,
).map(" ".join)
moments = st.integers(-20, 60).map(lambda days: TODAY - timedelta(days=days))
signatures = st.sampled_from(("s1", "s2", "s3"))
categories = st.sampled_from(
    (Category.TEST_TIMEOUT, Category.LINT_ERROR, Category.SANDBOX_VIOLATION, Category.UNKNOWN)
)
roles = st.sampled_from(Role)
facts = {"at": moments, "fingerprint": st.sampled_from(("", HERE, ELSEWHERE)), "role": roles}
work = {"task_kind": st.sampled_from(("fix_bug", "docs", "")), "text": texts, **facts}
repairs = st.builds(
    PastRepair, **work, signature=st.none() | signatures, category=categories, fixed=st.booleans()
)
past_todos = st.builds(
    PastTodo,
    **work,
    done=st.booleans(),
    first_time=st.booleans(),
    categories=st.lists(categories, max_size=2).map(tuple),
)
corrections = st.builds(
    Correction,
    **facts,
    signature=signatures,
    category=categories,
    right_category=st.none() | categories,
    by=st.none() | st.just("Ada\x1b[2J"),
)
records = st.builds(
    PastRecords,
    fingerprint=facts["fingerprint"],
    repairs=st.lists(repairs, max_size=12).map(tuple),
    todos=st.lists(past_todos, max_size=12).map(tuple),
    corrections=st.lists(corrections, max_size=3).map(tuple),
)
failures = st.builds(
    Failure,
    category=st.sampled_from(Category),
    owner=st.none() | st.sampled_from(Owner),
    signature=st.none() | signatures,
    stack_trace_head=st.none() | texts,
)
todos = st.builds(
    todo,
    title=texts.filter(bool),
    agent_role=roles,
    failure_routing=st.dictionaries(st.sampled_from(RoutingKey) | categories, roles, max_size=2),
)
times = st.floats(NOW - 1e7, NOW + 1e7) | st.floats()
"""Any time, as a clock may be wrong."""
