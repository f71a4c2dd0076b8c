"""Which todo goes first, and which recipe is worth running before a todo is verified."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_samples import (
    ELSEWHERE,
    NOW,
    past_todo,
    records,
    remembering,
    times,
    todo,
    todos,
)

from planner.catalog import RECIPES
from planner.memory import Belief, Memory, RecipeAdvice, believe, jaccard, ngrams, surely_better, text_of
from planner.model.outcome import Failure
from planner.model.past import PastRecords, PastTodo
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Role

LINT = (Category.LINT_ERROR,)


def test_what_went_well_before_goes_first() -> None:
    memory = remembering(
        *[past_todo("Add an indicator of momentum", True)] * 4,
        *[past_todo("Add an adapter for orders", False)] * 4,
    )
    well = memory.order_bias(todo("Add the indicator of trend"), NOW)
    badly = memory.order_bias(todo("Add the adapter for quotes"), NOW)
    other = memory.order_bias(todo("Add the manual"), NOW)

    assert badly < other < well


def test_done_only_after_a_repair_or_never_is_no_first_attempt() -> None:
    once = remembering(past_todo("Add a parser", True)).order_bias(todo("Add a parser"), NOW)
    repaired = remembering(past_todo("Add a parser", False)).order_bias(todo("Add a parser"), NOW)
    never = remembering(past_todo("Add a parser", True, done=False)).order_bias(todo("Add a parser"), NOW)

    assert repaired == never < 0.5 < once


@pytest.mark.parametrize(
    "less",
    [
        {"fingerprint": ELSEWHERE},
        {"role": Role.TESTER},
        {"at": "2026-09-01T00:00:00Z"},
        {"text": "Zzz qqq"},
    ],
    ids=lambda less: next(iter(less)),
)
def test_what_is_farther_off_counts_less(less: dict[str, Any]) -> None:
    near = remembering(*[past_todo("Add a parser", True)] * 3)
    far = remembering(*[past_todo("Add a parser", True, **less)] * 3)

    assert near.order_bias(todo("Add a parser"), NOW) > far.order_bias(todo("Add a parser"), NOW) > 0.5


def test_the_text_of_a_branch_is_that_of_its_todo() -> None:
    branch = todo("Repair Add a parser (timeout)", parent_id="t1")

    assert text_of(branch) == "Add a parser"
    assert text_of(todo("Repair Add a parser (timeout)")) == "Repair Add a parser (timeout)"
    failure = Failure(category=Category.UNKNOWN, stack_trace_head="KeyError: 3" + " x" * 500)
    assert text_of(branch, failure).startswith("Add a parser KeyError: 3 x")
    assert len(text_of(branch, failure)) < 320


# -- recipes -----------------------------------------------------------------------------------------


def test_failures_that_a_recipe_shows_make_it_worth_running_first() -> None:
    memory = remembering(
        *[past_todo("Add a parser", False, categories=LINT)] * 5,
        *[past_todo("Add a parser", False, categories=(*LINT, Category.COMPILATION_ERROR))] * 2,
        *[past_todo("Add a parser", True)] * 5,
    )

    assert memory.recipe(todo("Add a parser"), NOW) == RecipeAdvice(
        "python-quick", "of 12 like this 7 met COMPILATION_ERROR or LINT_ERROR"
    )


@pytest.mark.parametrize(
    ("category", "about", "recipe"),
    [
        (Category.COMPILATION_ERROR, {}, "python-quick"),
        (Category.TYPE_ERROR, {}, "python-full"),
        (Category.IMPORT_ERROR, {"test_file": "tests/test_a.py"}, "python-full"),
        (Category.LINT_ERROR, {"allowed_files": ["web/**/*.ts"]}, "node-full"),
        (Category.LINT_ERROR, {"verify": "npm test"}, "node-full"),
        (
            Category.TYPE_ERROR,
            {"controller_task_spec": {"type": "PATCH", "target_file": "a.go"}},
            "go-full",
        ),
        (Category.COMPILATION_ERROR, {"verify": "cargo test"}, "rust-full"),
        (
            Category.COMPILATION_ERROR,
            {"acceptance_criteria": {"expected_artifacts": ["a.py"]}},
            "python-quick",
        ),
        (Category.LINT_ERROR, {"verify": "go-full"}, None),
        (Category.LINT_ERROR, {"verify": "python-quick"}, None),
        (Category.TYPE_ERROR, {"verify": "python-quick"}, "python-full"),
        (Category.TEST_REGRESSION, {}, None),
    ],
)
def test_the_recipe_is_of_the_language_and_shows_the_category(
    category: Category, about: dict[str, Any], recipe: str | None
) -> None:
    memory = remembering(*[past_todo("Add a parser", False, categories=(category,))] * 5)

    advice = memory.recipe(todo("Add a parser", **about), NOW)

    assert (advice and advice.value) == recipe
    assert recipe is None or recipe in RECIPES


def test_too_little_or_too_old_or_too_rare_is_no_reason_for_a_recipe() -> None:
    def advice(*held: PastTodo) -> RecipeAdvice | None:
        return remembering(*held).recipe(todo("Add a parser"), NOW)

    met, not_met = past_todo("Add a parser", False, categories=LINT), past_todo("Add a parser", True)
    assert advice(*[met] * 3) is not None
    assert advice(met.model_copy(update={"fingerprint": ELSEWHERE})) is None
    assert advice(*[past_todo("Add a parser", False, 90, categories=LINT)] * 3) is None
    assert advice(*[met] * 2, *[not_met] * 20) is None


def test_the_kind_alone_may_be_the_reason() -> None:
    memory = remembering(*[past_todo("Refactor the order book", False, categories=LINT)] * 4)

    assert memory.recipe(todo("Refactor zzzyyy wwwvvv qqqppp uuuttt"), NOW) == RecipeAdvice(
        "python-quick", "of 4 like this 4 met COMPILATION_ERROR or LINT_ERROR"
    )
    assert memory.recipe(todo("Speed up zzz"), NOW) is None


# -- how experiences are counted ---------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 4)), max_size=12), st.floats(0.01, 4))
def test_a_success_raises_the_rate_whatever_the_order(
    found: list[tuple[bool, float]], weight: float
) -> None:
    before = believe(found)

    assert believe(found[::-1]) == before
    assert believe([*found, (False, weight)]).rate < before.rate < believe([*found, (True, weight)]).rate
    assert 0 < before.rate < 1


def test_few_experiences_prove_little() -> None:
    assert believe(()) == Belief(0.5, 0)
    assert surely_better(Belief(0.8, 1), Belief(0.4, 1)) < 0.9
    assert surely_better(Belief(0.8, 48), Belief(0.4, 48)) > 0.999


def test_words_of_one_stem_are_alike_in_any_order() -> None:
    assert ngrams("rsi a") == {" rs", "rsi", "si ", " a "}
    assert ngrams("slow test") == ngrams("test slow")
    assert jaccard(ngrams("?"), ngrams("")) == 1


# -- whatever is remembered --------------------------------------------------------------------------


@settings(max_examples=50)
@given(records, todos, times)
def test_a_chance_and_a_recipe_come_for_any_todo_at_any_time(
    held: PastRecords, about: Todo, now: float
) -> None:
    memory = Memory(held)
    advice = memory.recipe(about, now)

    assert 0 < memory.order_bias(about, now) < 1
    assert advice is None or (advice.value in RECIPES and advice.because)
