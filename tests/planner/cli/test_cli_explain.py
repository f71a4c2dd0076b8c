"""`planner explain` and the reference pages: every term of the programs is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from planner_command import Command

from planner.catalog import RECIPES
from planner.cli.exits import INTERRUPTED, Status
from planner.cli.explain import load_glossary, meanings
from planner.engine import ENGINE_RULES
from planner.engine.repair import ALERT, REVIEW
from planner.lint import LINT_RULES
from planner.model.edits import Edit
from planner.model.findings import Severity
from planner.model.qualification import Quality
from planner.model.taxonomy import BranchReason, Category, Owner, Repeatability, Role, RoutingKey
from planner.model.verdicts import CheckKind, PlanState, Since, TodoState, Verdict
from planner.revise.strategies import REVISION_RULES
from pytest_planverify.diagnosis import RULES
from pytest_planverify.session.exit_status import ExitStatus
from tools import reference_pages
from tools.corpus import catalogue
from tools.reference_pages import KeyTables, cell, rows

KINDS = load_glossary().kinds()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("category", Category),
        ("verdict", Verdict),
        ("state of a plan", PlanState),
        ("role", Role),
        ("owner", Owner),
        ("repeatability", Repeatability),
        ("kind of check", CheckKind),
        ("severity of a finding", Severity),
        ("topic of a notification", {ALERT, REVIEW}),
        ("routing key", {*RoutingKey, *BranchReason}),
        ("comparison with the baseline", set(Since) - {Since.UNKNOWN}),
        ("rule of the revision", REVISION_RULES),
        ("rule of the engine", ENGINE_RULES.keys() - REVISION_RULES.keys()),
        ("rule of planner validate", LINT_RULES),
        ("rule of the diagnosis", {rule.id for rule in RULES}),
        ("exit status", {str(int(each)) for each in (*Status, *ExitStatus, INTERRUPTED)}),
        ("edit", {model.model_fields["edit"].default for model in Edit.__args__[0].__args__}),  # type: ignore[attr-defined]
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_word_of_the_vocabulary_is_explained(kind: str, words: object) -> None:
    assert set(KINDS[kind]) == set(words)  # type: ignore[call-overload]


def test_every_term_of_the_concepts_page_label_of_a_qualification_and_state_of_a_todo_is_explained() -> (
    None
):
    page = Path(__file__, "../../../../docs/concepts.md").resolve().read_text(encoding="utf-8")
    terms = {term.lower() for term in re.findall(r"^\*\*(.+?)\.\*\*", page, re.MULTILINE)}
    assert len(terms) > 9
    assert terms | {*Quality} <= set(KINDS["concept"])
    assert set(TodoState) <= set(KINDS["state of a todo"])


def test_every_explanation_is_a_sentence() -> None:
    for entry in load_glossary().entries:
        assert entry.means.strip()
        assert entry.means.strip().endswith((".", "?")), f"{entry.kind} {entry.word}: {entry.means}"


def test_the_rule_data_of_the_diagnosis_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "rules.json"
    catalogue.write(written)
    assert catalogue.FILE.read_text(encoding="utf-8") == written.read_text(encoding="utf-8"), (
        "run: python -m tools.corpus.catalogue"
    )


def test_explain_shows_the_meaning_and_remedy_of_a_rule(command: Command) -> None:
    diagnosis = command("explain", "assertion-in-test").out
    assert "rule of the diagnosis" in diagnosis
    assert "says     TEST_REGRESSION" in diagnosis
    assert "rule of the engine" in command("explain", "branch-depth").out
    assert "SPEC_MISMATCH  category" in command("explain", "spec-mismatch").out
    assert "severity warning" in command("explain", "wall-clock").out
    assert "10  exit status" in command("explain", "10").out


def test_explain_without_a_word_lists_the_topics_on_one_screen(command: Command) -> None:
    ran = command("explain")
    assert ran.status == 0
    assert len(ran.out.splitlines()) <= 25
    for kind in KINDS:
        assert f"  {kind}" in ran.out


def test_explain_shows_recipes_and_plan_keys(command: Command) -> None:
    assert "\n           mypy .\n" in command("explain", "python-full").out, "without a mark, to be copied"
    assert set(KINDS["recipe"]) == set(RECIPES)
    key = " ".join(command("explain", "allowed_files").out.split())
    assert "allowed_files key of a plan Globs of the files that it may change" in key
    assert {*KINDS["key of a plan"]} >= {"items", "dependencies", "verify", "budget", "max_retries"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the text of every reference page that is written, by file name."""
    folder = tmp_path_factory.mktemp("pages") / "reference"
    reference_pages.write(folder)
    return {page.name: page.read_text() for page in folder.iterdir()}


def test_every_described_key_exists_and_one_without_a_description_is_reported() -> None:
    told = meanings()
    tables = KeyTables(told)
    assert {(part, key) for part, keys in told.items() for key in keys} <= tables.used()
    del told["Todo"]["title"]
    with pytest.raises(KeyError, match=r"nothing tells what title of Todo means; write it into planner/"):
        tables.page("plan")


def test_every_explained_word_is_on_a_page(pages: dict[str, str]) -> None:
    told = "\n".join(pages.values())
    words = load_glossary().words()
    assert [word for word in words if f"`{word}`" not in told and f"\n## {word}\n" not in told] == []


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
def test_a_table_row_has_the_type_and_default_of_a_key(pages: dict[str, str], page: str, row: str) -> None:
    assert f"\n{row} " in pages[page]


def test_special_characters_in_table_cells_are_escaped() -> None:
    assert cell("a|b\n c ``d``") == r"a\|b c `d`"
    assert list(rows(("x", "y"), [("1", "a|b")])) == ["| x | y |", "| --- | --- |", r"| 1 | a\|b |"]
