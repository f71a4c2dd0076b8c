"""A record of the relay is one line of JSON, whatever objects a report holds."""

from __future__ import annotations

import enum
import json
from decimal import Decimal
from typing import Any

import pytest

from pytest_planverify.observe.relay import dump_line


class Level(enum.IntEnum):
    HIGH = 3


class Unprintable:
    def __str__(self) -> str:
        pytest.fail("no text")


def circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (Level.HIGH, 3),
        ("\udcff", "\udcff"),
        ({1}, "{1}"),
        pytest.param(10**5000, "a int that cannot be shown", id="longer than Python writes in decimal"),
        (Unprintable(), "a Unprintable that cannot be shown"),
        (circle(), "a list that cannot be shown"),
        ({("a", 1): 2}, "a dict that cannot be shown"),
    ],
)
def test_what_json_cannot_hold_is_told_in_a_word_and_the_rest_stays(
    value: object, expected: object
) -> None:
    data: dict[str, Any] = {"nodeid": "a.py::test_a", "metadata": value}
    data["user_properties"] = [("odd", value), ("plain", [1, None])]

    line = dump_line({"kind": "report", "data": data})

    assert line.endswith(b"\n")
    told = json.loads(line)["data"]
    assert (told["nodeid"], told["metadata"]) == ("a.py::test_a", expected)
    assert told["user_properties"] == [["odd", expected], ["plain", [1, None]]]
