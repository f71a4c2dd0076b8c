"""The pages of docs/reference are what the code says, and every key has a meaning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from planner.cli.glossary import load_glossary, meanings
from planner.engine import ENGINE_RULES
from planner.lint import LINT_RULES
from planner.model.taxonomy import Category
from planner.revise.strategies import REVISION_RULES
from tools import reference_pages
from tools.reference_pages import KeyTables, cell, rows

if TYPE_CHECKING:
    from pathlib import Path

PAGES = reference_pages.pages()


def test_writing_makes_these_pages(tmp_path: Path) -> None:
    reference_pages.write(tmp_path / "reference")

    assert {page.name: page.read_text() for page in (tmp_path / "reference").iterdir()} == PAGES


def test_every_meaning_is_of_a_key_that_there_is() -> None:
    told = {(part, key) for part, keys in meanings().items() for key in keys}

    assert told <= KeyTables(meanings()).used()


def test_a_key_without_a_meaning_is_named() -> None:
    told = meanings()
    del told["Todo"]["title"]

    with pytest.raises(KeyError, match=r"nothing tells what title of Todo means; write it into planner/"):
        KeyTables(told).page("plan")


def test_every_rule_stands_in_a_table() -> None:
    named = set(re.findall(r"^\| `([^`]+)`", PAGES["rules.md"], re.MULTILINE))

    assert named == {*ENGINE_RULES, *REVISION_RULES, *LINT_RULES}


def test_every_rule_of_the_diagnosis_has_its_section() -> None:
    sections = re.findall(r"^## ([\w-]+)$", PAGES["diagnosis-rules.md"], re.MULTILINE)

    assert set(sections) == set(load_glossary().kinds()["rule of the diagnosis"])


def test_every_category_has_its_section() -> None:
    assert re.findall(r"^## (\w+)$", PAGES["failure-categories.md"], re.MULTILINE) == list(Category)


def test_everything_that_can_be_explained_stands_on_a_page() -> None:
    told = "\n".join(PAGES.values())

    assert [
        word for word in load_glossary().words() if f"`{word}`" not in told and f"\n## {word}\n" not in told
    ] == []


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("plan-keys.md", "| `id` (also `step_id`) | id | required |"),
        ("plan-keys.md", "| `timeout_seconds` | number, more than 0 | `300` |"),
        ("plan-keys.md", "| `network` | `record`, `deny` or list: text | `record` |"),
        ("plan-keys.md", "| `failure_routing` | mapping to [role](words.md#role) | `{}` |"),
        ("plan-keys.md", "| `expires` | date | required |"),
        ("outcome-keys.md", "| `category` | [category](failure-categories.md) | required |"),
        ("outcome-keys.md", "| `confidence` | number, at least 0, at most 1 | – |"),
    ],
)
def test_a_row_tells_the_type_and_default_of_a_key(page: str, row: str) -> None:
    assert f"\n{row} " in PAGES[page]


def test_a_table_survives_what_stands_in_its_cells() -> None:
    assert cell("a|b\n c ``d``") == r"a\|b c `d`"
    assert list(rows(("x", "y"), [("1", "a|b")])) == ["| x | y |", "| --- | --- |", r"| 1 | a\|b |"]
