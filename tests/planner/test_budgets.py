"""A page stays within its budget, and loses what matters least."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.budgets import Section, cut_middle, estimate_tokens, fit, keep_first
from planner.text.fencing import fence

LINES = "\n".join(f"line number {number}" for number in range(200))
PAGES = st.lists(
    st.builds(
        Section,
        text=st.text(alphabet="ab1 \n`é漢", max_size=300),
        wrap=st.sampled_from([str, fence, "## Heading\n\n{}".format]),
        priority=st.integers(0, 3),
        required=st.booleans(),
    ),
    max_size=6,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("word", 2),
        ("two words", 3),
        ("compute_rsi(14)", 8),
        ("1234567", 4),
        ("a\nb", 3),
        ("        indented", 4),
        ("\t\tx", 2),
        ("é", 2),
        ("漢字", 6),
        ("\N{SNAKE}", 4),
        ("a\ud800", 4),
    ],
)
def test_the_estimate_counts_as_its_rule_says(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_lines_cost_together_what_they_cost_alone(first: str, second: str) -> None:
    assert estimate_tokens(f"{first}\n{second}") == estimate_tokens(first) + 1 + estimate_tokens(second)


@given(st.text(min_size=1))
def test_no_byte_costs_more_than_a_token(text: str) -> None:
    assert estimate_tokens(text) <= len(text.encode())


@given(st.text(alphabet="ab1 \n`é漢", max_size=400), st.integers(0, 200))
def test_a_cut_text_is_never_longer_than_asked_for(text: str, tokens: int) -> None:
    assert estimate_tokens(cut_middle(text, tokens)) <= tokens


def test_the_middle_is_cut_at_line_ends_and_the_cut_is_seen() -> None:
    lines = cut_middle(LINES, 100).split("\n")
    (cut,) = [line for line in lines if "cut" in line]
    head, tail = lines[: lines.index(cut)], lines[lines.index(cut) + 1 :]
    assert head[0] == "line number 0"
    assert tail[-1] == "line number 199"
    assert set(head + tail) <= set(LINES.split("\n"))
    assert cut == f"… {200 - len(head) - len(tail)} lines cut …"


def test_a_line_that_is_too_long_by_itself_keeps_its_ends() -> None:
    shown = cut_middle("A" * 3000 + "Z" * 3000, 100)
    assert shown.startswith("AA")
    assert shown.endswith("ZZ")
    assert "characters cut …" in shown


@given(PAGES, st.integers(0, 400))
def test_the_budget_is_never_exceeded(sections: list[Section], tokens: int) -> None:
    fitted = fit(sections, tokens)
    assert len(fitted) == len(sections)
    assert estimate_tokens("\n\n".join(text for text in fitted if text is not None)) <= tokens


@given(PAGES)
def test_what_fits_stays_as_it_is(sections: list[Section]) -> None:
    whole = tuple(section.whole for section in sections)
    assert fit(sections, estimate_tokens("\n\n".join(whole)) + 2) == whole


def test_the_required_and_the_more_important_are_kept_and_the_rest_goes() -> None:
    sections = [
        Section(text=LINES, priority=2),
        Section(text="essential", required=True, priority=9),
        Section(text="important", priority=0),
        Section(text=LINES, priority=1, wrap=fence),
    ]
    last, essential, important, block = fit(sections, 120)
    assert (essential, important, last) == ("essential", "important", None)
    assert block is not None
    assert block.startswith("```\nline number 0\n")
    assert block.endswith("line number 199\n```")


def test_a_long_required_section_leaves_room_for_the_required_after_it() -> None:
    long, short = fit(
        [
            Section(text=LINES, required=True, priority=0),
            Section(text="run this", required=True, priority=1),
        ],
        200,
    )
    assert short == "run this"
    assert long is not None
    assert "lines cut" in long


def test_equals_share_what_the_small_ones_do_not_need() -> None:
    small, one, two = fit([Section(text="small"), Section(text=LINES), Section(text=LINES)], 300)
    assert small == "small"
    assert one is not None
    assert two is not None
    assert 100 < estimate_tokens(one) <= estimate_tokens(two) < 170


def test_a_wrapping_is_never_cut() -> None:
    heading = partial("## A heading that is long enough to matter here\n\n{}".format)
    assert fit([Section(text=LINES, wrap=heading, required=True)], 15) == (None,)
    (shown,) = fit([Section(text=LINES, wrap=heading)], 90)
    assert shown is not None
    assert shown.startswith("## A heading that is long enough to matter here\n\nline number 0\n")


def test_items_are_kept_or_left_out_but_never_cut() -> None:
    items = [f"- item number {number}\n  with a second line" for number in range(20)]
    assert keep_first(items, 1000) == "\n".join(items)
    *kept, cut = keep_first(items, 100).split("- ")[-1].split("\n")
    assert kept[-1] == "  with a second line"
    assert cut.endswith("lines cut …")
    assert keep_first(items, 12) == ""


@given(st.lists(st.text(alphabet="ab1 \n`é漢", max_size=40), max_size=9), st.integers(0, 200))
def test_kept_items_are_never_longer_than_asked_for(items: list[str], tokens: int) -> None:
    assert estimate_tokens(keep_first(items, tokens)) <= tokens


def test_a_section_may_say_how_it_is_cut() -> None:
    section = Section(text=LINES, cut=lambda text, tokens: text[:5], required=True)
    assert fit([section], 40) == ("line ",)
