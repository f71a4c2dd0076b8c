"""Sanitizing and fencing of foreign text, glob patterns, assertions and definitions."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.glob_patterns import allowed, globs_overlap, matches
from planner.text.markdown import fence, inline, safe
from planner.text.python_text import (
    is_expected_first,
    is_result_of,
    parse_module,
    removed_definition,
    uncalled_tests,
)
from planner.text.sanitizing import clean


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mred\x1b[K", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Btext\x1bM", "text"),
        ("\x1b", ""),
        ("\x1b]0;never ended", "0;never ended"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00b\x07c\x08d\x7fe\x85f", "abcdef"),
        ("a\u202eb\u200bc\ufeffd", "abcd"),
        ("a\ud800b\udfff", "a\ufffdb\ufffd"),
        ("naïve Ω 漢字 🙂 ± ≥", "naïve Ω 漢字 🙂 ± ≥"),
        pytest.param("\x1b]" * 50_000, "", id="unterminated, in linear time"),
        pytest.param("\x1b[" + "0" * 100_000, "0" * 100_000, id="unterminated digits"),
    ],
)
def test_control_sequences_and_invisible_characters_are_removed(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text(st.characters()) | st.text(alphabet="\x1b[]0;m\x07\\P\x9b\u202ea\n\r"))
def test_cleaned_text_contains_only_visible_characters(text: str) -> None:
    cleaned = clean(text)
    for char in cleaned:
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs"), repr(char)
        assert unicodedata.bidirectional(char) not in DIRECTIONS
    cleaned.encode()
    assert clean(cleaned) == cleaned


def test_unicode_format_characters_are_removed_except_visible_ones() -> None:
    formats = "".join(char for char in map(chr, range(0x110000)) if unicodedata.category(char) == "Cf")
    assert set(clean(formats)) <= set(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2)))


def test_a_length_limit_keeps_head_and_tail_and_marks_the_cut() -> None:
    cut = clean("head" + "x" * 1_000 + "tail", limit=90)
    assert re.fullmatch("head.*\n… 918 characters cut …\n.*tail", cut)
    assert clean("short", limit=5) == "short"


@given(st.text(), st.integers(0, 50))
def test_a_cut_makes_a_text_shorter_up_to_the_limit_and_is_made_once(text: str, limit: int) -> None:
    cleaned, whole = clean(text, limit=limit), clean(text)
    assert cleaned == whole or len(cleaned) < min(len(whole), limit + 41)
    assert clean(cleaned, limit=limit) == cleaned


TICKS = st.text(alphabet="`~\n\r a#|", max_size=40)


@given(TICKS | st.text(), st.text())
def test_no_line_of_fenced_text_closes_the_fence(text: str, info: str) -> None:
    first, *body, last = fence(text, info).split("\n")
    bar = re.match(r"`{3,}", first)
    assert bar is not None
    assert last == bar[0]
    assert not any(bar[0] in line for line in body)
    assert re.fullmatch(r"[A-Za-z0-9_+.#-]*", first[len(bar[0]) :])


@given(TICKS | st.text())
def test_fenced_text_is_unchanged_except_for_line_endings(text: str) -> None:
    body = "\n".join(fence(text).split("\n")[1:-1])
    assert body == text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


@pytest.mark.parametrize(
    ("info", "shown"),
    [("python", "python"), ("c++", "c++"), ("py`\n# head", "py#head"), ("x" * 99, "x" * 30), ("", "")],
)
def test_the_info_string_of_a_fence_contains_only_a_language_name(info: str, shown: str) -> None:
    assert fence("x", info) == f"```{shown}\nx\n```"


def test_a_secret_is_redacted_even_where_a_long_text_is_cut() -> None:
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    for place in range(6_600, 6_700, 5):
        assert "Ae178B4a" not in safe("x" * place + f" {token} ".ljust(20_005 - place, "y"))


@given(TICKS | st.text())
def test_a_code_span_is_one_line_with_a_matching_end(text: str) -> None:
    shown = inline(text)
    assert "\n" not in shown
    if shown == "(empty)":
        assert not text.split()
        return
    bar = re.match(r"`+", shown)
    assert bar is not None
    # The next run of the same length closes the span.
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
def test_inline_text_is_clipped_to_one_line(text: str, shown: str) -> None:
    assert inline(text) == shown


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("src/a.py", "src/**", True),
        ("src/x/y/a.py", "src/**/a.py", True),
        ("src/a.py", "src/**/a.py", True),
        ("src/a.py", "src", True),
        ("srcs/a.py", "src", False),
        ("src/x/a.py", "src/*", True),
        ("deep/in/a.py", "*.py", True),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "src/[ab].py", True),
        ("src/ab.py", "src/?.py", False),
        ("a.py", ".", True),
        ("a+b.py", "a+b.py", True),
        ("aab.py", "a+b.py", False),
    ],
)
def test_globs_match_paths(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


def test_later_patterns_exclude_and_include_again() -> None:
    assert allowed("src/a.py", ["src/**"])
    assert not allowed("src/a.py", ["src/**", "!src/a.py"])
    assert allowed("src/a.py", ["src/**", "!src/**", "src/a.py"])
    assert not allowed("src/a.py", [])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/**", "src/core/**", True),
        ("src/*.py", "src/test_*", True),
        ("src/*.py", "src/*.js", False),
        ("**/secret", "src/**", True),
        ("src/**/a.py", "src/x/y/a.py", True),
        ("a?c", "abc", True),
        ("a?c", "abd", False),
        ("a" + "/a" * 70, "b", False),
    ],
)
def test_globs_overlap_if_a_path_can_match_both(one: str, other: str, expected: bool) -> None:
    assert globs_overlap(one, other) is expected
    assert globs_overlap(other, one) is expected


GIVEN = ("raw", "normalized")


@pytest.mark.parametrize(
    ("source", "operator", "is_left"),
    [
        ("assert 3 == total(cart)", "==", True),
        ("assert normalized == normalize(raw)", "==", True),
        ("assert normalized == normalize(  # and so on in the next line", "==", True),
        ("assert expected_total == result", "==", True),
        ("assert Point(1, y=2) == move(p)", "==", True),
        ("assert pytest.approx(2.5) == mean(values)", "==", True),
        ("self.assertEqual(3, total(cart))", "==", True),
        ('assert "usage" in out', "in", True),
        ("assert name not in text.splitlines()", "not in", True),
        ("assert total(cart) == 3", "==", False),
        ("assert result == normalized", "==", False),
        ("assert result == other", "==", False),
        ("assert f(3 == x) == 3", "==", False),
        ("self.assertEqual(total(cart), 3)", "==", False),
        ("assert status(page) in (200, 204)", "in", False),
        ("assert find(text) in text", "in", False),
        ("assert result in allowed, text", "in", False),
        ("raise ValueError(text)", "==", False),
        ("assert total(cart)", "==", False),
    ],
)
def test_the_expected_value_is_recognised_on_the_left(source: str, operator: str, is_left: bool) -> None:
    assert is_expected_first(source, GIVEN, operator) is is_left


@pytest.mark.parametrize(
    ("source", "may_be"),
    [
        ("assert total(cart) == 3", True),
        ("assert round(shop.total(cart)) == 3", True),
        ("assert result == 3", True),
        ("assert total(", True),
        ('assert os.environ["A"] == "1"', False),
        ("assert path.read_text() == text", False),
        ("self.assertEqual(cart.items, [])", False),
    ],
)
def test_only_a_call_of_a_function_or_a_name_may_be_its_result(source: str, may_be: bool) -> None:
    assert is_result_of("total", source, right=False) is may_be


@given(st.text(), st.sampled_from(["==", "in"]))
def test_any_source_line_is_accepted(text: str, operator: str) -> None:
    is_expected_first(f"assert {text} == {text}", (), operator)
    is_expected_first(f"self.assertEqual({text}, 3)", (), operator)


@pytest.mark.parametrize(
    ("name", "diff", "line"),
    [
        ("io", "-import io\n import json", "import io"),
        ("Path", "-from pathlib import PurePath, Path", "from pathlib import PurePath, Path"),
        ("total", "-    async def total(self):\n-        pass", "async def total(self):"),
        ("LIMIT", " x\n-LIMIT: int = 3", "LIMIT: int = 3"),
        ("LIMIT", "-if LIMIT == 3:", None),
        ("io", "-import io\n+import io, json", None),
        ("io", "+import io", None),
    ],
)
def test_a_removed_definition_is_recognised_by_the_removed_line_that_binds_it(
    name: str, diff: str, line: str | None
) -> None:
    assert removed_definition(name, diff) == line


@pytest.mark.filterwarnings("error")
def test_warnings_about_foreign_source_do_not_keep_it_from_being_parsed() -> None:
    assert parse_module("PATTERN = '\\d'\n").body


TESTS = "def test_a(): ...\nclass TestB:\n    async def test_c(self): ...\n"


@pytest.mark.parametrize(
    "source",
    ["", "import sys\nsys.path.insert(0, '.')\n", "CASES = list(range(3))\n", "if CASES:\n    A = 1\n"],
)
def test_a_module_that_only_defines_tests_runs_none(source: str) -> None:
    assert uncalled_tests(source + TESTS) == ("test_a", "TestB")


@pytest.mark.parametrize(
    "source",
    [
        "if __name__ == '__main__':\n    test_a()\n",
        "for test in (test_a, TestB().test_c):\n    test()\n",
        "if __name__ == '__main__':\n    import unittest\n    unittest.main()\n",
        "sys.exit(pytest.main([__file__]))\n",
        "assert 1 + 1 == 2\n",
        "check_all()\n",
        "def broken(:\n",
    ],
)
def test_a_script_that_may_run_its_tests_or_fail_is_no_module_of_tests(source: str) -> None:
    assert uncalled_tests(TESTS + source) == ()
