"""Nothing that a terminal acts on, and nothing that a person cannot see, survives cleaning."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.sanitizing import clean


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mred\x1b[K", "red"),
        ("\x1b[2J\x1b[1;1Htop", "top"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9d0;title\x9ctext", "text"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x1b(Btext\x1bM", "text"),
        ("\x1b", ""),
        ("\x1b]0;never ended", "0;never ended"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00b\x07c\x08d\x7fe\x85f", "abcdef"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("a\u200bb\u2060c\ufeffd\xade", "abcde"),
        ("a\U000e0041\U000e007fb", "ab"),
        ("a\ufe0fb\U000e0100c", "abc"),
        ("a\ud800b\udfff", "a\ufffdb\ufffd"),
        ("naïve Ω 漢字 🙂 ± ≥", "naïve Ω 漢字 🙂 ± ≥"),
    ],
)
def test_control_sequences_and_invisible_characters_are_removed(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text(st.characters()) | st.text(alphabet="\x1b[]0;m\x07\\P\x9b\u202ea\n\r"))
def test_whatever_comes_in_only_visible_text_comes_out(text: str) -> None:
    cleaned = clean(text)
    for char in cleaned:
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs"), repr(char)
        assert unicodedata.bidirectional(char) not in DIRECTIONS
    cleaned.encode()
    assert clean(cleaned) == cleaned


def test_format_characters_of_unicode_are_all_removed_but_those_that_are_seen() -> None:
    seen = {
        char for code in range(0x110000) if unicodedata.category(char := chr(code)) == "Cf" and clean(char)
    }
    assert seen <= {chr(code) for code in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2)}


def test_a_limit_keeps_head_and_tail_and_shows_the_cut() -> None:
    text = "head" + "x" * 1_000 + "tail"
    cut = clean(text, limit=90)
    assert cut.startswith("head")
    assert cut.endswith("tail")
    assert "… 918 characters cut …" in cut
    assert len(cut) < 90 + 40
    assert clean("short", limit=5) == "short"


@given(st.text(), st.integers(0, 50))
def test_no_more_than_the_limit_is_kept(text: str, limit: int) -> None:
    cleaned = clean(text, limit=limit)
    assert cleaned == clean(text) or len(cleaned) <= limit + 40


def test_an_endless_sequence_costs_no_more_than_its_length() -> None:
    assert clean("\x1b]" * 50_000) == ""
    assert clean("\x1b[" + "0" * 100_000) == "0" * 100_000
