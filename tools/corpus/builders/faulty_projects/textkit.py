"""Tools for text: words, wrapping, tables and slugs, with many parametrised tests."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    EVERY_OTHER_TIME,
    SETTLED,
    Edit,
    Fault,
    Project,
    Turn,
    by_product,
    by_test,
    flaky,
    removed_module,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "textkit/__init__.py": '"""Tools for text."""\n\nfrom textkit.words import count, words\n',
    "textkit/words.py": '''"""Words of a text."""

import re


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def count(text):
    return len(words(text))


def longest(text):
    return max(words(text), key=len, default="")
''',
    "textkit/slugs.py": '''"""Slugs for addresses."""

from textkit.words import words


def slug(text, separator="-"):
    return separator.join(words(text))


def short_slug(text, most):
    found = ""
    for word in words(text):
        longer = f"{found}-{word}" if found else word
        if len(longer) > most:
            break
        found = longer
    return found
''',
    "textkit/wrapping.py": '''"""Lines of a width."""


def wrap(text, width):
    if width < 1:
        raise ValueError("a line has at least one column")
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines


def indent(lines, by):
    return [" " * by + line for line in lines]
''',
    "textkit/tables.py": '''"""Plain tables."""

from textkit.wrapping import indent


def widths(rows):
    return [max(len(str(cell)) for cell in column) for column in zip(*rows)]


def table(rows):
    columns = widths(rows)
    made = ["  ".join(str(cell).ljust(width) for cell, width in zip(row, columns)).rstrip() for row in rows]
    return indent(made, 1)
''',
    "tests/__init__.py": "",
    "tests/samples.py": """TEXTS = {
    "short": "A cat",
    "long": "The quick brown fox jumps over it",
    "odd": "it's 2 o'clock",
}


def sample(name):
    return TEXTS[name]
""",
    "tests/test_words.py": """import pathlib

import pytest

from tests.samples import sample
from textkit import count, words
from textkit.words import longest


@pytest.mark.parametrize("name, expected", [("short", 2), ("long", 7), ("odd", 3)])
def test_count(name, expected):
    assert count(sample(name)) == expected


def test_words():
    assert words("A cat, a DOG") == ["a", "cat", "a", "dog"]


def test_longest():
    assert longest(sample("long")) == "quick"


def test_longest_of_nothing():
    assert longest("") == ""
"""
    + SETTLED,
    "tests/test_slugs.py": """import pytest

from tests.samples import sample
from textkit.slugs import short_slug, slug


@pytest.mark.parametrize("name, expected", [("short", "a-cat"), ("odd", "it's-2-o'clock")])
def test_slug(name, expected):
    assert slug(sample(name)) == expected


def test_other_separator():
    assert slug("A cat", "_") == "a_cat"


@pytest.mark.parametrize("most, expected", [(3, "the"), (9, "the-quick"), (14, "the-quick")])
def test_short_slug(most, expected):
    assert short_slug(sample("long"), most) == expected
""",
    "tests/test_wrapping.py": """import pytest

from textkit.wrapping import indent, wrap


@pytest.mark.parametrize(
    "text, width, expected",
    [("", 5, []), ("a b c", 3, ["a b", "c"]), ("abc de", 3, ["abc", "de"]), ("a b", 9, ["a b"])],
)
def test_wrap(text, width, expected):
    assert wrap(text, width) == expected


def test_no_width():
    with pytest.raises(ValueError, match="at least one column"):
        wrap("a", 0)


def test_indent():
    assert indent(["a", "b"], 2) == ["  a", "  b"]
""",
    "tests/test_tables.py": """from textkit.tables import table, widths

ROWS = [("name", "count"), ("apples", 12)]


def test_widths():
    assert widths(ROWS) == [6, 5]


def test_table():
    assert table(ROWS) == [" name    count", " apples  12"]


def test_one_row():
    assert table(ROWS[:1]) == [" name  count"]
""",
}

PROJECT = Project(
    name="textkit",
    files=FILES,
    todos={
        "words": tests("pytest tests/test_words.py"),
        "slugs": tests("pytest tests/test_slugs.py"),
        "wrapping": tests("pytest tests/test_wrapping.py"),
        "tables": tests("pytest tests/test_tables.py"),
        "all": tests("pytest tests -k 'slug or table or wrap'"),
    },
    depends={"slugs": ("words",), "tables": ("wrapping",)},
    faults=(
        Fault(
            kind="wrong-value-below",
            label=by_product("textkit/words.py", "words"),
            edits=(Edit("textkit/words.py", "[a-z0-9']+", "[a-z0-9]+"),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("textkit/wrapping.py", "wrap"),
            edits=(Edit("textkit/wrapping.py", "+ len(word) > width", "+ len(word) >= width"),),
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("textkit/wrapping.py", "indent"),
            edits=(Edit("textkit/wrapping.py", '" " * by + line', '" " * by + " " + line'),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("textkit/tables.py", "widths"),
            edits=(Edit("textkit/tables.py", "max(len(str(cell))", "min(len(str(cell))"),),
        ),
        Fault(
            kind="changed-signature",
            label=by_product("textkit/slugs.py", "short_slug", Category.SPEC_MISMATCH),
            edits=(
                Edit(
                    "textkit/slugs.py", "def short_slug(text, most):", "def short_slug(text):\n    most = 9"
                ),
            ),
        ),
        Fault(
            kind="wrong-helper",
            label=by_test("tests/samples.py", "sample"),
            edits=(Edit("tests/samples.py", "return TEXTS[name]", "return TEXTS[name + 's']"),),
        ),
        Fault(
            kind="missing-module",
            label=removed_module("textkit/wrapping.py"),
            edits=(Edit("textkit/wrapping.py"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="missing-dependency",
            label=by_product("textkit/words.py", None, Category.IMPORT_ERROR),
            edits=(Edit("textkit/words.py", "import re\n", "import re\n\nimport unidecode\n"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("textkit/tables.py"),
            edits=(
                Edit("textkit/tables.py", "    columns = widths(rows)\n", "    columns = = widths(rows)\n"),
            ),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="flaky-test",
            label=flaky("tests/test_words.py", "test_settles_in_time"),
            edits=(Edit("tests/test_words.py", SETTLED, EVERY_OTHER_TIME),),
            turn=Turn.UNSTABLE,
        ),
    ),
)
