"""Which classes make test cases of what they hold, wherever their bases stand."""

from __future__ import annotations

import textwrap

import pytest
from hygiene_samples import GRANTED, TREE, signs

CASES = """
    import unittest
    from pkg.words import split

    class SplitTest(unittest.IsolatedAsyncioTestCase):
        async def test_two(self):
            self.assertEqual(split("a,b"), ["a", "b"])

        async def test_three(self):
            self.assertEqual(split("a,b,c"), ["a", "b", "c"])
"""
BASE = """
    import unittest

    class WordsCase(unittest.IsolatedAsyncioTestCase):
        maxDiff = None
"""


def told(now: str, **files: str) -> set[str]:
    before = {**TREE, "tests/test_cases.py": CASES}
    changed = {f"tests/{name}.py": textwrap.dedent(text) for name, text in files.items()}
    return signs({"tests/test_cases.py": textwrap.dedent(now), **changed}, grants=GRANTED, tree=before)


@pytest.mark.parametrize("place", ["builders", "conftest_helpers"])
def test_a_base_class_of_another_module_makes_test_cases_too(place: str) -> None:
    now = CASES.replace("import unittest", f"from tests.{place} import WordsCase")
    now = now.replace("unittest.IsolatedAsyncioTestCase", "WordsCase")

    assert told(now, **{place: BASE}) == set()


def test_a_base_class_that_nobody_knows_may_make_test_cases() -> None:
    now = CASES.replace("import unittest", "from kit import AsyncCase")

    assert told(now.replace("unittest.IsolatedAsyncioTestCase", "AsyncCase")) == set()


def test_a_class_that_is_no_test_case_any_more_has_lost_its_tests() -> None:
    assert "test-renamed-away" in told(CASES.replace("(unittest.IsolatedAsyncioTestCase)", ""))


def test_coroutines_that_nobody_awaits_are_no_tests() -> None:
    assert "test-renamed-away" in told(CASES.replace("IsolatedAsyncioTestCase", "TestCase"))
