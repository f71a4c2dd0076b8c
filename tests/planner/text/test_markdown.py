"""No text can end the block that quotes it, or become part of the page around it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.markdown import fence, inline

TICKS = st.text(alphabet="`~\n\r a#|", max_size=40)


@given(TICKS | st.text(), st.text())
def test_no_line_of_the_text_closes_the_fence(text: str, info: str) -> None:
    first, *body, last = fence(text, info).split("\n")
    bar = re.match(r"`{3,}", first)
    assert bar is not None
    assert last == bar[0]
    assert not any(bar[0] in line for line in body)
    assert re.fullmatch(r"[A-Za-z0-9_+.#-]*", first[len(bar[0]) :])


@given(TICKS | st.text())
def test_the_text_is_there_unchanged_but_for_its_line_ends(text: str) -> None:
    body = "\n".join(fence(text).split("\n")[1:-1])
    assert body == text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


@pytest.mark.parametrize(
    ("info", "shown"),
    [("python", "python"), ("c++", "c++"), ("py`\n# head", "py#head"), ("x" * 99, "x" * 30), ("", "")],
)
def test_the_info_string_holds_only_the_name_of_a_language(info: str, shown: str) -> None:
    assert fence("x", info) == f"```{shown}\nx\n```"


@given(TICKS | st.text())
def test_a_code_span_is_one_line_that_ends_where_it_should(text: str) -> None:
    shown = inline(text)
    assert "\n" not in shown
    if shown == "(empty)":
        assert not text.split()
        return
    bar = re.match(r"`+", shown)
    assert bar is not None
    # The first run of that very length closes the span.
    runs = [run.span() for run in re.finditer(r"`+", shown) if len(run[0]) == len(bar[0])]
    assert runs == [bar.span(), (len(shown) - len(bar[0]), len(shown))]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a  b\n# c", "`a b # c`"),
        ("`a`", "`` `a` ``"),
        ("a``b", "```a``b```"),
        ("", "(empty)"),
        ("x" * 500, "`" + "x" * 299 + "…`"),
    ],
)
def test_inline_text_is_clipped_and_kept_on_its_line(text: str, shown: str) -> None:
    assert inline(text) == shown
