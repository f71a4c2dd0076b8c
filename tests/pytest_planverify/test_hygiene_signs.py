"""The table of signs: the documentation has it, and each sign is found by some case of these tests."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_planverify.guards.hygiene.signs import SIGNS, Find, Leave, excerpt, weigh

PAGE = Path(__file__).parents[2] / "docs" / "hygiene.md"
ROW = re.compile(r"^\| `([\w-]+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


def test_the_documentation_has_every_sign_with_its_weight() -> None:
    written = {
        sign: (meaning, weights.split(" | "))
        for sign, meaning, weights in ROW.findall(PAGE.read_text("utf-8"))
    }

    def shown(sign: str, leave: Leave) -> str:
        hardness = SIGNS[sign].hardness(leave)
        return "–" if hardness is None else hardness.value

    expected = {
        sign.id: (
            sign.meaning,
            [shown(sign.id, Leave.GRANTED)]
            if sign.in_product
            else [shown(sign.id, leave) for leave in Leave],
        )
        for sign in SIGNS.values()
    }
    assert written == expected


def test_what_is_forgiven_weighs_less() -> None:
    hard = Find(sign="test-skipped", message="A test is skipped", path="tests/test_a.py", line=3)
    soft = Find(sign="debris", message="Left", path="a.orig")
    assert [
        each and each.hardness.value for each in (weigh(hard, Leave.OPEN), weigh(hard.softer(), Leave.OPEN))
    ] == [
        "hard",
        "soft",
    ]
    assert weigh(soft.softer(), Leave.OPEN) is None


def test_excerpts_are_short() -> None:
    assert excerpt(None) is None
    assert excerpt("a\n\n  b\nc") == "a\nb"
    assert len(excerpt("x" * 1000) or "") == 300
