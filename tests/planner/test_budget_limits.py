"""What a run has spent, held against its budgets: exactly all of one is allowed, and no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.plan import Budget
from planner.policy.budget import Exceeded, Spent, exceeded, left, used_up

FULL = Budget(tokens=100, cycles=5, wall_seconds=60, new_files=3)
NAMES = ("tokens", "cycles", "wall_seconds", "new_files")
AMOUNTS = st.none() | st.integers(0, 4)


def spent_so(name: str, amount: int) -> tuple[Spent, float]:
    """Nothing but that much of one budget."""
    return (Spent(), amount) if name == "wall_seconds" else (Spent(**{name: amount}), 0)


@pytest.mark.parametrize(
    ("name", "limit"), [("tokens", 100), ("cycles", 5), ("wall_seconds", 60), ("new_files", 3)]
)
def test_each_budget_at_its_edge(name: str, limit: int) -> None:
    for amount, over, done in ((limit - 1, False, False), (limit, False, True), (limit + 1, True, True)):
        spent, seconds = spent_so(name, amount)
        found = Exceeded(name, limit, amount)
        assert exceeded(FULL, spent, seconds) == (found if over else None)
        # No turn of work has to make a file, so with as many files as are allowed there may be another.
        used = done if name != "new_files" else over
        assert used_up(FULL, spent, seconds) == (found if used else None)
        assert left(FULL, spent, seconds)[name] == (max(limit - amount, 0), limit)


def test_a_budget_of_nothing_is_used_up_before_anything_is_spent() -> None:
    assert used_up(Budget(tokens=0), Spent(), 0) == Exceeded("tokens", 0, 0)
    assert exceeded(Budget(tokens=0), Spent(), 0) is None
    assert used_up(Budget(new_files=0), Spent(), 0) is None
    assert exceeded(Budget(new_files=0), Spent(new_files=1), 0) == Exceeded("new_files", 0, 1)


def test_the_first_in_the_order_of_budgets_is_told() -> None:
    spent, seconds = Spent(tokens=101, cycles=6, new_files=4), 61.5
    budgets = [FULL]
    for name in NAMES[:3]:
        budgets.append(budgets[-1].model_copy(update={name: None}))
    found = [exceeded(budget, spent, seconds) for budget in budgets]
    assert [each and each.name for each in found] == list(NAMES)
    assert str(found[2]) == "wall_seconds: 61.5 spent, 60 allowed"
    assert str(exceeded(Budget(tokens=0), Spent(tokens=10**400), 0)).startswith("tokens: more than")


def test_what_has_no_limit_is_never_used_up() -> None:
    spent = Spent(tokens=10**15, cycles=10**15, new_files=10**15)
    assert exceeded(Budget(), spent, 1e12) is None
    assert used_up(Budget(), spent, 1e12) is None
    assert left(Budget(), spent, 1e12) == {}


@given(
    limits=st.fixed_dictionaries({"tokens": AMOUNTS, "cycles": AMOUNTS, "new_files": AMOUNTS}),
    turns=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), max_size=5),
)
def test_what_is_spent_only_grows_and_what_is_exceeded_stays_so(
    limits: dict[str, int | None], turns: list[tuple[int, int, int]]
) -> None:
    budget, spent = Budget.model_validate(limits), Spent()
    for tokens, cycles, new_files in turns:
        more = spent.plus(tokens, cycles, new_files)
        assert exceeded(budget, more, 0) or not exceeded(budget, spent, 0)
        assert used_up(budget, more, 0) or not exceeded(budget, more, 0)
        assert all(amount <= left(budget, spent, 0)[name] for name, amount in left(budget, more, 0).items())
        spent = more
    assert spent == Spent(*(sum(column) for column in zip(*turns, strict=True))) or not turns
