"""The README and the documentation are correct: examples load, commands run, tables are current."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from documented_commands import Block, blocks_of, run
from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from real_command import PYTHON
from test_examples import copy_of_the_checkout

from planner.catalog import RECIPES
from planner.model import plan as plan_model
from planner.model.answers import Answers
from planner.model.outcome import OutcomeDocument
from planner.model.taxonomy import CATEGORIES
from planner.model.verdicts import Verdict
from planner.planfile.loader import load_plan
from tools import reference_pages

REPOSITORY = Path(__file__).parents[2]
PAGES = {
    page.relative_to(REPOSITORY).as_posix(): page
    for page in (REPOSITORY / "docs").rglob("*.md")
    if page.parent != reference_pages.FOLDER
}
PAGES["README.md"] = REPOSITORY / "README.md"


def blocks(info: str) -> list[Any]:
    """Return every block of all pages with exactly this info string, as test parameters."""
    found = [block for _, page in sorted(PAGES.items()) for block in blocks_of(page)]
    return [pytest.param(block, id=block.where) for block in found if block.info == info]


def section(page: str, heading: str) -> str:
    """Return the text below the heading, up to the next heading of the same or a higher level."""
    text = PAGES[page].read_text()
    match = re.search(
        rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |^\1 |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert match, f"{page} has no heading {heading!r}"
    return match[2]


def table(text: str) -> list[list[str]]:
    """Return the cells of every table row of the text, without header and separator rows."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = {
        number for number, line in enumerate(lines) if re.fullmatch(r"[| :-]+", line) and "---" in line
    }
    kept = [line for number, line in enumerate(lines) if number not in rules and number + 1 not in rules]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in kept]


# -- examples of plans -------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks("yaml plan"))
def test_every_plan_in_the_documentation_loads(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(block.text)

    assert load_plan(path).plan.items


FRAGMENTS = {
    "yaml todo": "items:\n-\n{part}",
    "yaml criteria": "items:\n- id: a\n  title: A\n  acceptance_criteria:\n{part}",
    "yaml metadata": "items: [{{id: a, title: A, verify: pytest tests}}]\nmetadata:\n{part}",
}
"""Templates that complete a part of a plan, by the info string of its block."""


@pytest.mark.parametrize("block", [entry for info in FRAGMENTS for entry in blocks(info)])
def test_every_part_of_a_plan_in_the_documentation_loads(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    around = FRAGMENTS[block.info].format(part=textwrap.indent(block.text, "    "))
    path.write_text(f"todo_list_id: documented\n{around}")

    assert load_plan(path).plan.items


# -- commands ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the examples, with the outcomes of a todo of the momentum example."""
    checkout = copy_of_the_checkout(tmp_path_factory.mktemp("checkout"))
    status, printed = run("pytest --planverify examples/momentum/plan.yaml::t1_data_integration", checkout)
    assert status == 0, printed
    return checkout


@pytest.mark.parametrize("block", blocks("python"))
def test_every_program_in_the_documentation_runs(block: Block, verified: Path) -> None:
    program = verified / "documented.py"
    program.write_text(block.text)

    status, printed = run(f"{PYTHON} documented.py", verified)

    assert status == 0, printed
    assert printed


def test_the_readme_opens_with_its_two_commands() -> None:
    text = PAGES["README.md"].read_text()
    commands = [block.text.strip() for block in blocks_of(PAGES["README.md"]) if block.info == "sh"]

    assert len(commands) == 2
    assert all("\n" not in command and command.startswith("python3 -m venv ") for command in commands)
    assert commands[0].endswith("pytest --planverify examples/momentum/plan.yaml")
    assert commands[1].endswith("-m pytest -n 4 --dist worksteal")
    assert text.index("```sh") < text.index("\n## "), "the commands stand above the first heading"


def test_the_picture_of_the_readme_shows_the_run_of_its_caption() -> None:
    picture = (REPOSITORY / "docs/images/run.svg").read_text("utf-8").replace("&#160;", " ")
    for shown in ("examples/rsi_bug/plan.yaml", "TEST_REGRESSION", "coder", "1 failed, 2 blocked"):
        assert shown in picture


def test_every_option_is_documented_and_every_documented_option_exists(tmp_path: Path) -> None:
    _, shown = run(f"{PYTHON} -m pytest --help", tmp_path)
    # Names of metrics have the same prefix as settings.
    text = "\n".join(page.read_text() for page in PAGES.values() if page.name != "metrics.md")
    option_or_setting = r"--planverify[a-z-]*|\bplanverify_[a-z_]+"

    assert set(re.findall(option_or_setting, text)) == set(re.findall(option_or_setting, shown))


# -- formats -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [*blocks("json outcome"), *blocks("json answers")])
def test_the_documented_files_for_programs_are_valid(block: Block) -> None:
    model = OutcomeDocument if block.info == "json outcome" else Answers
    document = model.model_validate_json(block.text, strict=False)

    assert _known(json.loads(block.text), document.model_dump(mode="json"))


def _known(given: Any, read: Any) -> bool:
    """Return whether no part of the given value was dropped as unknown."""
    if isinstance(given, dict):
        return given.keys() <= read.keys() and all(_known(part, read[key]) for key, part in given.items())
    if isinstance(given, list):
        return len(given) == len(read) and all(map(_known, given, read))
    return True


@pytest.mark.parametrize(
    ("model", "heading"),
    [
        (plan_model.Plan, "The plan"),
        (plan_model.Policy, "`metadata`: what the plan allows"),
        (plan_model.HaltPolicy, "Halts"),
        (plan_model.ToolSpec, "Tools of a plan"),
        (plan_model.CommandSpec, "`tests`: commands"),
        (plan_model.ArtifactSpec, "`expected_artifacts`: files"),
        (plan_model.MetricSpec, "`metrics`: numbers that the tests record"),
        (plan_model.ManualSpec, "`manual`: questions"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_plan_reference_lists_every_key_with_its_default(model: type[BaseModel], heading: str) -> None:
    _expect_listed(model, table(section("docs/plan-reference.md", heading)))


def test_the_plan_reference_lists_every_key_of_a_todo() -> None:
    rows = [
        row
        for heading in ("A todo", "Branch todos")
        for row in table(section("docs/plan-reference.md", heading).split("\n### ")[0])
    ]
    _expect_listed(plan_model.Todo, rows)


def _expect_listed(model: type[BaseModel], rows: list[list[str]]) -> None:
    documented = {re.findall(r"`([^`]+)`", row[0])[0]: row[2] for row in rows}
    fields = {
        field.alias or name: field for name, field in model.model_fields.items() if name != "extensions"
    }

    assert documented.keys() == fields.keys()
    for key, field in fields.items():
        if (expected := _default(field.default, field.is_required())) is not None:
            assert documented[key] in expected, key


def _default(value: Any, required: bool) -> tuple[str, ...] | None:
    """Return the accepted spellings of a default; ``None`` if only words can describe it."""
    if required:
        return ("required",)
    if value is None:
        return ("–", "no limit")
    if value is PydanticUndefined or isinstance(value, BaseModel | tuple):
        return None
    if isinstance(value, bool):
        return (f"`{str(value).lower()}`",)
    return (f"`{value:g}`",) if isinstance(value, int | float) else (f"`{value}`",)


def test_the_table_of_recipes_matches_the_catalog() -> None:
    rows = table(section("docs/plan-reference.md", "Recipes"))

    assert {name.strip("`"): tuple(re.findall(r"`([^`]+)`", text)) for name, text in rows} == {
        name: tuple(command.replace("|", r"\|") for command in commands)
        for name, commands in RECIPES.items()
    }


def test_the_table_of_categories_matches_the_taxonomy() -> None:
    rows = table(section("docs/diagnosis.md", "Categories"))

    assert rows == [
        [
            f"`{category}`",
            facts.family.value,
            f"`{facts.routing_key}`" if facts.routing_key else "–",
            facts.default_role.value,
            facts.usual_owner.value,
        ]
        for category, facts in CATEGORIES.items()
    ]


def test_the_table_of_verdicts_lists_every_verdict() -> None:
    rows = table(section("docs/outcomes.md", "One check"))

    assert [row[0] for row in rows] == [f"`{verdict}`" for verdict in Verdict]


def test_every_record_of_a_journal_is_documented(verified: Path) -> None:
    rows = table(section("docs/outcomes.md", "The journal"))
    documented = {name for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    journals = sorted((verified / "examples/momentum/.planverify/runs").glob("*/journal.jsonl"))

    written = {
        json.loads(line)["record"] for journal in journals for line in journal.read_text().splitlines()
    }

    assert written
    assert written <= documented


# -- links -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built() -> dict[str, str]:
    """Return the pages that the documentation site adds, by file name, which takes a second."""
    return reference_pages.pages()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_link_has_an_existing_target(built: dict[str, str], name: str) -> None:
    page = PAGES[name]
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https:"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        is_built = linked.parent == reference_pages.FOLDER
        assert linked.name in built if is_built else linked.exists(), f"{name} links to {target}"
        text = built[linked.name] if is_built else linked.read_text() if anchor else ""
        assert not anchor or anchor in _anchors(text), f"{name} links to {target}"


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_lines_are_short_enough_to_be_read_in_a_terminal(name: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGES[name].read_text(), flags=re.MULTILINE | re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")]

    assert not long, textwrap.indent("\n".join(long), "  ")
