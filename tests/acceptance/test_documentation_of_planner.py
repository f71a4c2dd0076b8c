"""The tutorial, the how-to pages and the reference are correct: every command and example is tried."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import yaml
from documented_commands import Block, blocks_of, fits, live_through, run
from test_examples import copy_of_the_checkout

from planner.brief.page import CHARACTERS_PER_TOKEN, PAGE_TOKENS
from planner.cli.app import COMMANDS
from planner.cli.exits import INTERRUPTED, Status
from planner.cli.explain import load_glossary
from planner.cli.plan_file import SCHEMAS
from planner.lint import LINT_RULES
from planner.planfile.source_excerpts import FUNCTION_LINES
from planner.planfile.validation import validate_plan
from pytest_planverify.session.exit_status import ExitStatus

DOCS = Path(__file__).parents[2] / "docs"
STORIES = {
    "tutorial.md": 12,
    "how-to-ci.md": 5,
    "how-to-coding-agents.md": 10,
    "iterations.md": 2,
    "new-plans.md": 6,
    "design-plans.md": 24,
}
"""The pages whose commands build on each other, and the minimum number of commands on each."""

ELSEWHERE = {
    **dict.fromkeys(("new", "decompose", "tools"), "new-plans.md"),
    "step": "engine-protocol.md",
    "replay": "engine-protocol.md",
    "history": "store.md",
    "gaps": "iterations.md",
    "iterate": "iterations.md",
    "design": "design-plans.md",
    "workflow": "design-plans.md",
}
"""Commands that are documented on another page than that of the commands, with that page."""

COMMAND_PAGE = DOCS / "planner-commands.md"
COMMAND_TEXT = COMMAND_PAGE.read_text(encoding="utf-8")
CRITERIA = DOCS / "how-to-good-criteria.md"
PLAN = """\
todo_list_id: shop_001
items:
  - id: prices
    title: Prices
    failure_routing: {{implementation_bug: coder}}
{todo}"""


@pytest.mark.parametrize("name", STORIES)
def test_every_command_of_a_tutorial_prints_the_output_shown(name: str, tmp_path: Path) -> None:
    assert live_through(DOCS / name, tmp_path, "console story") >= STORIES[name]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_every_command_block_of_the_documentation_is_tested(page: Path) -> None:
    """Each block with commands has an info string whose blocks are run by a test."""
    kinds = {block.info for block in blocks_of(page) if block.text.startswith("$ ")}
    tried = {"console planner", "console tour", "console history", "console metrics"}

    assert kinds <= tried | ({"console story"} if page.name in STORIES else set())


@pytest.mark.parametrize(
    ("shown", "printed", "fit"),
    [
        ("a\n…\nc\n", "a\nb\nc\n", True),
        ("a\n…\n", "a\nb\nc\n", True),
        ("a  b\n", "a\nb\n", True),
        ("1 done in 0.10s\n", "1 done in 7.25s\n", True),
        ("a\nc\n", "a\nb\nc\n", False),
        ("a\n…\n", "b\na\n", False),
        ("1 done in 0.10s\n", "2 done in 0.10s\n", False),
    ],
)
def test_an_excerpt_matches_only_its_own_output(shown: str, printed: str, fit: bool) -> None:
    assert fits(shown, printed) is fit


# -- continuous integration ------------------------------------------------------------------------


def test_the_ci_workflow_runs_the_script_of_the_page() -> None:
    blocks = blocks_of(DOCS / "how-to-ci.md")
    (workflow,) = [yaml.safe_load(block.text) for block in blocks if block.info == "yaml workflow"]
    files = {block.file for block in blocks}
    commands = [step["run"] for step in workflow["jobs"]["verify"]["steps"] if "run" in step]

    assert commands == ["pip install -e . pytest-planverify", "sh verify.sh"]
    assert "verify.sh" in files


def test_the_ci_script_shows_the_next_action_and_fails_if_a_claimed_todo_fails(tmp_path: Path) -> None:
    live_through(DOCS / "how-to-ci.md", tmp_path, "nothing")
    tests = tmp_path / "tests" / "test_prices.py"
    tests.write_text(tests.read_text().replace("1190", "1191"))

    status, printed = run("sh verify.sh", tmp_path)

    assert status == 1, printed
    assert "repair tax_branch_01, attempt 1 of 3, by the coder [branch-is-worked-on]" in printed
    assert "pytest --planverify plan.yaml::tax" in printed
    assert (tmp_path / "decisions.json").is_file()
    assert (tmp_path / "planverify.xml").is_file()


def test_the_ci_script_ends_at_once_for_an_invalid_plan(tmp_path: Path) -> None:
    live_through(DOCS / "how-to-ci.md", tmp_path, "nothing")
    (tmp_path / "plan.yaml").write_text("items: 1\n")

    status, printed = run("sh verify.sh", tmp_path)

    assert status == 4, printed
    assert not (tmp_path / "planverify.xml").exists()


def test_every_exit_status_of_a_run_is_in_the_table_for_jobs() -> None:
    rows = re.findall(r"^\| (\d[\d, ]*) \|", (DOCS / "how-to-ci.md").read_text(), re.MULTILINE)

    assert sorted(int(number) for row in rows for number in row.split(",")) == sorted(ExitStatus)


# -- good criteria ---------------------------------------------------------------------------------


def examples() -> list[Block]:
    return [block for block in blocks_of(CRITERIA) if {"good", "bad"} & set(block.info.split())]


@pytest.mark.parametrize("block", [pytest.param(block, id=block.where) for block in examples()])
def test_an_example_of_a_criterion_has_exactly_its_stated_finding(block: Block, tmp_path: Path) -> None:
    live_through(CRITERIA, tmp_path, "nothing")
    *kind, judged, rule = block.info.split()
    (tmp_path / "plan.yaml").write_text(PLAN.format(todo=textwrap.indent(todo_of(kind, block), "    ")))
    if kind == ["python"]:
        (tmp_path / "tests" / "test_example.py").write_text(block.text)

    found = [finding.rule for finding in validate_plan(tmp_path / "plan.yaml")]

    assert found == ([rule] if judged == "bad" else [])
    assert rule in LINT_RULES


def todo_of(kind: list[str], block: Block) -> str:
    """Return a todo with the block as its criteria or only test file, or the block if it is a todo."""
    if kind == ["yaml", "todo"]:
        return block.text
    tests = "tests:\n  - cmd: pytest tests/test_example.py\n    timeout_seconds: 20\n"
    criteria = tests if kind == ["python"] else block.text
    return f"acceptance_criteria:\n{textwrap.indent(criteria, '  ')}"


def test_the_tests_of_the_example_project_and_those_shown_as_good_pass(tmp_path: Path) -> None:
    live_through(CRITERIA, tmp_path, "nothing")
    (good,) = [block for block in examples() if block.info == "yaml good test-missing"]
    todo = textwrap.indent(todo_of(["yaml"], good), "    ")
    for number, block in enumerate(each for each in examples() if each.info.startswith("python good")):
        (tmp_path / f"test_good_{number}.py").write_text(block.text)
        todo += f"  - {{id: good_{number}, title: Good, verify: pytest test_good_{number}.py}}\n"
    (tmp_path / "plan.yaml").write_text(PLAN.format(todo=todo))
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')

    status, printed = run("pytest --planverify plan.yaml", tmp_path)

    assert status == 0, printed


# -- reference -------------------------------------------------------------------------------------


def test_every_exit_status_of_both_programs_is_explained() -> None:
    explained = load_glossary().kinds()["exit status"]

    assert set(map(int, explained)) == {*ExitStatus, *Status, INTERRUPTED}


def test_the_index_links_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in re.findall(r"\]\(([^)]+)\)", index)}

    assert {page for page in DOCS.rglob("*.md") if page.name != "README.md"} <= linked


def test_every_command_on_the_planner_page_prints_the_output_shown(tmp_path: Path) -> None:
    checkout = copy_of_the_checkout(tmp_path)

    assert live_through(COMMAND_PAGE, checkout, "console planner") > 15


def test_every_command_has_its_section_or_a_link_to_its_page() -> None:
    sections = set(re.findall(r"^## `planner (\w+)`$", COMMAND_TEXT, re.MULTILINE))

    assert sections == set(COMMANDS) - set(ELSEWHERE)
    for name, page in ELSEWHERE.items():
        assert re.search(rf"^\| .*`{name}`.* \| .*\({page}\)", COMMAND_TEXT, re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(ELSEWHERE)))
def test_every_option_of_a_command_is_in_its_section(name: str, tmp_path: Path) -> None:
    _, shown = run(f"planner {name} --help", tmp_path)
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown, re.MULTILINE)) - {"--help"}
    whole = rf"^## `planner {name}`\n(.*?)(?=^## |\Z)"
    (section,) = re.findall(whole, COMMAND_TEXT, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", section, flags=re.MULTILINE | re.DOTALL)
    documented = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", prose))

    assert options <= documented
    assert {each for each in documented - options if not each.startswith("--planverify")} <= {"--output"}


def test_every_exit_status_is_in_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \|", COMMAND_TEXT, re.MULTILINE)

    assert sorted(map(int, rows)) == sorted({*Status, INTERRUPTED})


def test_the_reference_lists_every_schema() -> None:
    assert not [name for name in SCHEMAS if f"`{name}`" not in COMMAND_TEXT]


def test_the_page_about_agents_states_the_limits_of_a_brief() -> None:
    text = (DOCS / "how-to-coding-agents.md").read_text()

    assert f"{PAGE_TOKENS} tokens ({PAGE_TOKENS * CHARACTERS_PER_TOKEN:,} characters)" in text
    assert f"up to {FUNCTION_LINES} lines of the source" in text
