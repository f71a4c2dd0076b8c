"""Screen output: wrapping, clipping, tables, and colours only where they are wanted."""

from __future__ import annotations

import io

import pytest

from planner.cli.screen import Screen, write
from planner.text.display import cells, counted, listed, moment, padded, wrapped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def test_only_a_terminal_gets_colours() -> None:
    assert Screen(io.StringIO()).style("x", "bad") == "x"
    assert Screen(Terminal()).style("x", "bad") == "\x1b[31;1mx\x1b[0m"
    assert Screen(Terminal()).style("", "bad") == ""


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_disabled_by_environment_variables(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert Screen(Terminal()).style("x", "bad") == "x"


@pytest.mark.parametrize(("columns", "expected"), [("10", 40), ("80", 80), ("400", 120)])
def test_the_line_width_is_bounded(columns: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Screen(io.StringIO()).width == expected


def test_an_encoding_without_the_glyphs_uses_ascii_substitutes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    screen = Screen(stream)
    screen.line(f"{screen.glyphs.done} näïve")
    screen.show()
    write("a\ud800b", stream)
    stream.flush()
    assert raw.getvalue() == b"+ n\\xe4\\xefve\na\\ud800b"


def test_wide_characters_take_two_columns_and_combining_marks_none() -> None:
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert padded("日", 4) == "日  "


def test_a_clipped_text_fits_and_ends_with_an_ellipsis() -> None:
    screen = Screen(io.StringIO())
    assert screen.clip("日本語です", 5) == "日本…"
    assert screen.clip("short", 5) == "short"


def test_an_overlong_word_is_not_split_when_wrapping() -> None:
    assert wrapped("see tests/a_long_name.py now", 10) == ["see", "tests/a_long_name.py", "now"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T09:30:59.123Z", "2026-01-31 09:30 UTC"),
        ("2026-01-31T09:30:59+00:00", "2026-01-31 09:30 UTC"),
        ("2026-01-31T09:30:59+02:00", "2026-01-31T09:30:59+02:00"),
        ("yesterday", "yesterday"),
    ],
)
def test_times_are_shown_to_the_minute(text: str, expected: str) -> None:
    assert moment(text) == expected


def test_counts_and_lists_are_written_in_words() -> None:
    words = [counted(1, "todo"), counted(2, "criterion"), counted(2, "branch")]
    assert words == ["1 todo", "2 criteria", "2 branches"]
    assert listed("abc", 2) == "a, b and 1 more"


def test_a_table_is_fitted_to_a_terminal_but_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [("a", "word " * 20, "", "yes"), ("b\n", "", "", "no")]
    for stream, widest in ((Terminal(), 40), (io.StringIO(), 113)):
        screen = Screen(stream)
        screen.table(("NAME", "RUNS", "EMPTY", "HERE"), rows)
        screen.show()

        lines = stream.getvalue().splitlines()
        assert max(map(cells, lines)) == widest
        assert lines[1].split() == ["NAME", "RUNS", "HERE"], "a column without contents is left out"
        assert lines[2].endswith("  yes")
