"""What a worker's reports hold comes back as it was."""

from __future__ import annotations

import enum
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_planverify.observe.relay import dump_line, load_lines

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.text() | st.integers() | st.tuples(st.text()) | st.sampled_from(["$tuple", "$bytes", "$dict"])


def containers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values) | st.lists(values).map(tuple) | st.dictionaries(KEYS, values)


def sent(value: object) -> object:
    (record,) = load_lines([dump_line({"value": value})])
    return record["value"]


@given(st.recursive(LEAVES, containers, max_leaves=20))
def test_values_come_back_equal_and_of_their_types(value: object) -> None:
    assert repr(sent(value)) == repr(value)


class Level(enum.IntEnum):
    HIGH = 3


class Unprintable:
    def __str__(self) -> str:
        pytest.fail("no text")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (Level.HIGH, 3),
        (Unprintable(), "<Unprintable: __str__ raised Failed>"),
        pytest.param(10**5000, hex(10**5000), id="longer than Python writes in decimal"),
        ("\udcff", "\udcff"),
        ({1}, "{1}"),
    ],
)
def test_what_json_does_not_know_is_sent_as_text(value: object, expected: object) -> None:
    assert sent(value) == expected


def test_a_circle_is_sent_to_some_depth() -> None:
    circle: list[object] = []
    circle.append(circle)

    assert isinstance(sent(circle), list)


def test_a_line_that_was_not_written_to_its_end_is_left_out() -> None:
    whole = dump_line({"kind": "start"})

    assert list(load_lines([whole, whole[:-5], whole])) == [{"kind": "start"}] * 2
