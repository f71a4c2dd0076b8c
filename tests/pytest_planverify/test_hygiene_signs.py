"""The table of signs: the documentation has it, and each sign is found by some case of these tests."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pytest_planverify.guards.hygiene.signs import RUN_SIGNS, SIGNS, Find, Leave, excerpt, weigh

PAGE = Path(__file__).parents[2] / "docs" / "hygiene.md"
PACKAGE = Path(__file__).parents[2] / "pytest_planverify"
NAMED = re.compile(r"""(?:\bsign=|\bsign = |\bsignal\(\s*|_find\(\s*|_judges\(\s*|SIGN = )"([\w-]+)\"""")
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
    expected |= {
        sign.id: (sign.meaning, [" or ".join(weight.value for weight in sign.weights)])
        for sign in RUN_SIGNS.values()
    }
    assert written == expected
    assert not SIGNS.keys() & RUN_SIGNS.keys()


def test_every_sign_that_is_told_has_a_row() -> None:
    told = {
        name
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in NAMED.findall(path.read_text("utf-8"))
        if "-" in name or name in SIGNS
    }
    assert told - SIGNS.keys() - RUN_SIGNS.keys() == set()
    assert RUN_SIGNS.keys() <= told


def test_what_was_red_has_to_become_green_whoever_may_change_its_test() -> None:
    find = Find(
        sign="test-skipped", message="Skipped", path="tests/test_a.py", nodeid="b", was="tests/test_a.py::a"
    )
    red = {"tests/test_a.py::a"}.__contains__
    weights = [
        signal and signal.hardness.value
        for signal in (
            weigh(find, Leave.GRANTED),
            weigh(find, Leave.GRANTED, red),
            weigh(replace(find, was="tests/test_a.py::b"), Leave.GRANTED, red),
            weigh(replace(find, sign="expected-changed"), Leave.GRANTED, red),
        )
    ]
    assert weights == ["soft", "hard", "soft", "soft"]


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
