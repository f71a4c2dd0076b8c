"""Whatever fails: every failure is in exactly one cause, and equal runs have equal causes in one order."""

from __future__ import annotations

import random

from cause_samples import PLAN, absent, asserted, error, failing, frame, uncollected
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.evidence import Evidence
from planner.model.outcome import Diagnosis
from planner.model.taxonomy import Category
from planner.model.verdicts import Phase
from pytest_planverify.diagnosis.causes import SeenFailure, find_causes, grouping

TODOS = ("a", "b", "c", "d")
NAMES = st.sampled_from(("one", "two", "three"))


def _test(name: str, other: str, phase: Phase) -> Evidence:
    steps = [frame(f"tests/test_{name}.py", f"test_{other}"), frame(f"shop/{other}.py", name)]
    return failing(f"tests/test_{name}.py::test_{other}", error("KeyError", other, *steps), phase=phase)


def _file(name: str, other: str) -> Evidence:
    path = f"tests/test_{name}.py"
    failed = error("ModuleNotFoundError", f"No module named '{other}'", frame(path, "<module>"), name=other)
    return uncollected(path, failed)


def _value(name: str, other: str) -> Evidence:
    subject = frame(f"shop/{other}.py", other)
    return asserted(
        f"tests/test_{name}.py::test_{other}", f"assert 1 == 2\n +  where 1 = {other}()", subject
    )


EVIDENCE = st.one_of(
    st.builds(_test, NAMES, NAMES, st.sampled_from((Phase.CALL, Phase.SETUP))),
    st.builds(_file, NAMES, NAMES),
    st.builds(_value, NAMES, NAMES),
    st.builds(absent, NAMES),
)
DIAGNOSIS = st.builds(
    lambda category, confidence, signature: Diagnosis(
        category=category,
        owner=category.facts.usual_owner,
        confidence=confidence,
        rule="a",
        because="b",
        signature=f"{category}{signature}",
        suggestion="c",
    ),
    st.sampled_from(Category),
    st.sampled_from((0.5, 0.9)),
    st.integers(0, 3),
)
SEEN = st.builds(
    lambda todo, evidence, diagnosis: SeenFailure((PLAN, todo), evidence, diagnosis),
    st.sampled_from((*TODOS, "unknown")),
    EVIDENCE,
    DIAGNOSIS,
)
DEPENDS = st.fixed_dictionaries(
    {
        (PLAN, todo): st.lists(st.sampled_from([(PLAN, each) for each in TODOS]), max_size=2)
        for todo in TODOS
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(SEEN, max_size=8), DEPENDS, st.randoms(use_true_random=False))
def test_every_failure_is_in_one_cause_and_the_order_is_total(
    found: list[SeenFailure],
    depends: dict[tuple[str | None, str], list[tuple[str | None, str]]],
    chance: random.Random,
) -> None:
    causes = find_causes(found, depends)
    groups = grouping(found, depends)
    assert sorted(place for group in groups for place in group) == list(range(len(found)))
    assert [cause.rank for cause in causes] == list(range(1, len(groups) + 1))
    for cause, group in zip(causes, groups, strict=True):
        assert {found[place].diagnosis.signature for place in group} == set(cause.signatures)
        assert cause.because

    signatures = [signature for cause in causes for signature in cause.signatures]
    assert len(signatures) == len(set(signatures))
    ranks = {signature: cause.rank for cause in causes for signature in cause.signatures}
    assert all(ranks[other] > cause.rank for cause in causes for other in cause.explains)

    shuffled = list(found)
    chance.shuffle(shuffled)
    assert find_causes(shuffled, depends) == causes
