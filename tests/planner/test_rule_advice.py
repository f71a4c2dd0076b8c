"""What helps against a failure stands with the rule that explained it."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cli.glossary import load_glossary
from planner.cli.rule_advice import PAGE, advice_for, page_of
from pytest_planverify.diagnosis import RULES
from pytest_planverify.diagnosis.learning import RULE as LEARNED

PAGES = Path(__file__).parents[2] / PAGE


@pytest.mark.parametrize("rule", [LEARNED, *(rule.id for rule in RULES)])
def test_every_rule_of_the_diagnosis_says_what_to_do_and_where_it_is_documented(rule: str):
    steps = advice_for(rule)

    assert steps
    assert all(step.endswith((".", "?")) and step[0].isupper() for step in steps)
    anchor = (page_of(rule) or "").removeprefix(f"{PAGE}#")
    assert f"\n## {anchor}\n" in PAGES.read_text(encoding="utf-8")


def test_a_rule_of_a_plugin_has_neither_advice_nor_page():
    assert (advice_for("ours"), page_of("ours")) == ((), None)


def test_explanations_of_a_rule_hold_its_steps_and_its_page():
    (entry,) = (each for each in load_glossary().find("disk-full") if "diagnosis" in each.kind)

    assert (entry.steps, entry.page) == (advice_for("disk-full"), page_of("disk-full"))
