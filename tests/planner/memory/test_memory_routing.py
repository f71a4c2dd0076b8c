"""Routing of repairs to roles: the changes that memory may and may not make."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_samples import (
    ELSEWHERE,
    NOW,
    SLOW,
    TODAY,
    correction,
    failures,
    records,
    remembering,
    repair,
    todo,
    todos,
)

from planner.memory import NOT_MEMORYS, Memory, RoutingAdvice
from planner.model.outcome import Failure
from planner.model.past import PastRecords, PastRepair
from planner.model.plan import Todo
from planner.model.taxonomy import CATEGORIES, Category, Owner, Role

DEBUGGER = [repair(Role.DEBUGGER, number > 0, number / 4) for number in range(10)]
CODER = [repair(Role.CODER, number > 0, number / 4) for number in range(2)]
TESTER = [repair(Role.TESTER, False, number / 4) for number in range(4)]
OTHER = Failure(category=Category.TEST_TIMEOUT, signature="ffff", stack_trace_head="quite unlike that")
UNLIKE = todo("Zzz")


def route(memory: Memory, failure: Failure = SLOW, about: Todo | None = None) -> RoutingAdvice:
    return memory.route(failure, about or todo(), Role.TESTER, NOW)


def test_an_empty_memory_changes_nothing() -> None:
    memory = Memory(PastRecords())
    assert memory.is_empty
    assert route(memory) == RoutingAdvice(Role.TESTER, 0.5, "no similar failure is known", False)
    assert not remembering(CODER[0]).is_empty
    assert not remembering(correction(Role.CODER)).is_empty


def test_routing_by_the_category_in_the_todo_overrides_memory() -> None:
    advice = route(remembering(*DEBUGGER), about=todo(failure_routing={"TEST_TIMEOUT": "tester"}))
    assert (advice.role, advice.changed) == (Role.TESTER, False)
    assert advice.because.startswith("the todo itself sets the role for TEST_TIMEOUT; ")


def fixed_of_100(role: Role, fixed: int) -> list[PastRepair]:
    return [repair(role, number < fixed) for number in range(100)]


HERE = [repair(Role.DEBUGGER, True)] * 2
AWAY = [repair(Role.DEBUGGER, True, fingerprint=ELSEWHERE)] * 2
OF_TESTER = fixed_of_100(Role.TESTER, 80)
IMPORT = Failure(category=Category.IMPORT_ERROR, owner=Owner.ENVIRONMENT, signature="i1")
DECLARED = [repair(Role.ARCHITECT, True, of=IMPORT)] * 4


@pytest.mark.parametrize(
    ("held", "failure", "days", "role"),
    [
        ([*fixed_of_100(Role.DEBUGGER, 97), *OF_TESTER], SLOW, 0, Role.DEBUGGER),
        ([*fixed_of_100(Role.DEBUGGER, 88), *OF_TESTER], SLOW, 0, Role.TESTER),
        (DEBUGGER, SLOW, 20, Role.DEBUGGER),
        (DEBUGGER, SLOW, 90, Role.TESTER),
        (DEBUGGER[1:2], SLOW, 0, Role.TESTER),
        ([*HERE, *TESTER[:1]], SLOW, 0, Role.DEBUGGER),
        ([*AWAY, *TESTER[:1]], SLOW, 0, Role.TESTER),
        (DEBUGGER, SLOW.model_copy(update={"owner": Owner.ENVIRONMENT}), 0, Role.TESTER),
        (DEBUGGER, SLOW.model_copy(update={"owner": Owner.HARNESS}), 0, Role.TESTER),
        (DECLARED, IMPORT, 0, Role.ARCHITECT),
    ],
    ids=[
        *("a large advantage", "a certain but small advantage", "recent", "old", "only one"),
        *("of this repository", "of another repository", "the environment", "the harness"),
        "an import that was declared before",
    ],
)
def test_only_near_and_clear_evidence_about_a_repairable_failure_changes_the_role(
    held: list[PastRepair], failure: Failure, days: int, role: Role
) -> None:
    advice = remembering(*held).route(failure, todo(), Role.TESTER, NOW + days * 86_400)
    assert (advice.role, advice.changed) == (role, role is not Role.TESTER)


def test_the_same_signature_outweighs_the_category() -> None:
    others = [repair(Role.CODER, True, of=OTHER, text="Zzz quite unlike that") for _ in range(30)]
    own = [*[repair(Role.DEBUGGER, True)] * 6, *[repair(Role.CODER, False)] * 3, *TESTER]
    memory = remembering(*others, *own)
    assert route(memory).role is Role.DEBUGGER
    assert route(memory, OTHER, UNLIKE).role is Role.CODER


def test_a_similar_text_outweighs_the_category() -> None:
    others = [repair(Role.CODER, True, of=OTHER, text="Zzz quite unlike that", signature=None)] * 30
    fixed, missed = repair(Role.DEBUGGER, True, signature=None), repair(Role.CODER, False, signature=None)
    memory = remembering(*others, *[fixed] * 6, *[missed] * 3, *TESTER)
    new = SLOW.model_copy(update={"signature": "never seen"})
    assert route(memory, new).role is Role.DEBUGGER
    assert route(memory, new, UNLIKE).role is Role.DEBUGGER, "the head of the failure is similar too"
    assert route(memory, OTHER, UNLIKE).role is Role.CODER


def test_a_correction_of_the_same_failure_outweighs_all_statistics() -> None:
    word = correction(Role.ARCHITECT, by="Ada\x1b[2J\nLovelace", right_category=Category.SPEC_MISMATCH)
    advice = route(remembering(*DEBUGGER, *[repair(Role.ARCHITECT, False)] * 5, word))
    assert (advice.role, advice.changed) == (Role.ARCHITECT, True)
    assert advice.because == (
        "Ada Lovelace said on 2026-11-20 that this is for the architect, as SPEC_MISMATCH; "
        "15 of TEST_TIMEOUT; debugger fixed 9 of 10, architect 0 of 5"
    )
    assert advice.confidence < 0.5, "but the failures are not hidden"


def test_the_latest_correction_counts_in_any_order() -> None:
    old, new = correction(Role.CODER, at=TODAY - timedelta(days=3)), correction(Role.DEBUGGER)
    assert route(remembering(old, new)).role is route(remembering(new, old)).role is Role.DEBUGGER


def test_a_correction_of_another_failure_counts_only_as_evidence() -> None:
    one, two = correction(Role.DEBUGGER, signature="s1"), correction(Role.DEBUGGER, signature="s2")
    advice = route(remembering(one))
    assert (advice.changed, advice.because) == (False, "too few cases to prefer the debugger to the tester")
    assert route(remembering(one, two)).role is Role.DEBUGGER
    assert not route(remembering(one, two, *[repair(Role.TESTER, True)] * 4)).changed


@pytest.mark.parametrize(
    "category", [each for each in Category if CATEGORIES[each].family in NOT_MEMORYS], ids=str
)
def test_memory_never_routes_a_violation_away_from_a_person(category: Category) -> None:
    failure = SLOW.model_copy(update={"category": category})
    held = [repair(Role.DEBUGGER, True, of=failure)] * 20
    memory = remembering(*held, correction(Role.CODER, category=category))
    for default in (Role.HUMAN, Role.PLANNER):
        advice = memory.route(failure, todo(), default, NOW)
        assert (advice.role, advice.changed) == (default, False)
        assert advice.because.startswith(
            f"memory does not decide who acts on {category}; 20 of {category}; "
        )


@settings(max_examples=30)
@given(records, failures, todos, st.randoms(use_true_random=False))
def test_the_order_of_records_is_irrelevant(
    held: PastRecords, failure: Failure, about: Todo, random: st.random.Random
) -> None:
    lists = {"repairs": held.repairs, "todos": held.todos, "corrections": held.corrections}
    mixed = {name: tuple(random.sample(found, len(found))) for name, found in lists.items()}
    one, other = Memory(held), Memory(held.model_copy(update=mixed))
    assert one.route(failure, about, Role.CODER, NOW) == other.route(failure, about, Role.CODER, NOW)
    assert one.order_bias(about, NOW) == other.order_bias(about, NOW)
    assert one.recipe(about, NOW) == other.recipe(about, NOW)
