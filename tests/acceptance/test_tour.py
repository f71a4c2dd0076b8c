"""The tour ends as its `expected.yaml` says, and docs/tour.md shows real output."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_commands import blocks_of, fits, run, typed
from example_project import RUN_MARK, Example, Verified
from real_command import Finished

from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, TodoState
from planner.planfile.loader import load_plan

CHECKOUT = Path(__file__).resolve().parents[2]
TOUR = CHECKOUT / "examples" / "tour"
PAGE = CHECKOUT / "docs" / "tour.md"
LEFT_BEHIND = shutil.ignore_patterns(
    ".planverify", "cache", "diagnostics", "__pycache__", ".pytest_cache", ".ruff_cache", "revised.yaml"
)
WHOLE = {
    "text tour": "pytest --planverify examples/tour/plan.yaml",
    "text next": "planner next examples/tour/plan.yaml",
}
"""Info strings of excerpts, and the command whose output they quote."""

NOT_SHOWN = {
    Category.SANDBOX_VIOLATION,
    Category.HYGIENE_VIOLATION,
    Category.ALLOWLIST_VIOLATION,
    Category.BUDGET_EXCEEDED,
    Category.HARNESS_ERROR,
}
"""Categories that no todo of the tour has; docs/tour.md only mentions them."""

EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((TOUR / "expected.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tour where a checkout has it."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(TOUR, folder / "examples" / "tour", ignore=LEFT_BEHIND)
    shutil.copy(CHECKOUT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def tour(checkout: Path) -> Verified:
    """Return the whole tour, run by the command of the page."""
    mark = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUN_MARK, mark)
        status, output = run(WHOLE["text tour"], checkout)
    return Example(checkout / "examples/tour").verified(Finished(exit_code=status, output=output), mark)


def test_each_todo_ends_as_expected(tour: Verified):
    """One test for all todos: with one for each, every xdist worker would run the tour again."""
    for todo_id, expected in EXPECTED.items():
        said = tour.outcomes[todo_id]
        kept = {key: expected.get(key) for key in ("state", "category", "owner", "role")}
        assert said_of(said) == kept, f"{todo_id}: {said}"
        if said["state"] not in ("done", "pending"):
            verdicts = {check["verdict"] for check in said["checks"]} - {"passed"}
            assert verdicts == {expected.get("verdict", "failed")}, f"{todo_id}: {said}"


def said_of(outcome: dict[str, Any]) -> dict[str, str | None]:
    failure: dict[str, str] = outcome["failure_evidence"] or {}
    return {
        "state": outcome["state"],
        "category": failure.get("category"),
        "owner": failure.get("owner"),
        "role": failure.get("target_agent"),
    }


def test_the_tour_fails_as_a_whole_and_leaves_no_process(tour: Verified):
    assert tour.exit_code == 1, str(tour)
    assert list(tour.outcomes) == list(EXPECTED)
    assert tour.left_running == ()


def test_the_tour_has_a_passing_check_of_every_kind(tour: Verified):
    passing = {
        check["kind"]
        for outcome in tour.outcomes.values()
        for check in outcome["checks"]
        if check["verdict"] == "passed"
    }

    assert passing == set(CheckKind) - {CheckKind.MANUAL, CheckKind.GUARD}


def test_the_tour_shows_every_category_and_state(tour: Verified):
    shown = {tour.category(todo_id) for todo_id in tour.outcomes} - {None}

    assert shown == set(Category) - NOT_SHOWN
    assert {outcome["state"] for outcome in tour.outcomes.values()} == set(TodoState)


def test_a_todo_titled_with_a_category_fails_with_it():
    titles = {todo.id: todo.title for todo in load_plan(TOUR / "plan.yaml").plan.items}
    named = {todo_id: re.match(r"[A-Z_]{5,}", title) for todo_id, title in titles.items()}

    assert {todo_id: found[0] for todo_id, found in named.items() if found} == {
        todo_id: entry["category"]
        for todo_id, entry in EXPECTED.items()
        if entry.get("category") and todo_id not in ("banner", "delivery_branch_01")
    }


# -- decisions ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def decisions(checkout: Path, tour: Verified, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the decisions of `planner next` after the run, before any later command of the page."""
    copy = Example(checkout / "examples/tour").copied_to(tmp_path_factory.mktemp("decisions") / "tour")
    status, output = run("planner next plan.yaml --json --full", copy.root)
    assert status == 0, output
    return json.loads(output)


def test_each_todo_of_the_tour_gets_its_expected_decision(decisions: dict[str, Any]):
    decided = {todo_id: decided_about(todo_id, decisions) for todo_id in EXPECTED}

    assert decided == {todo_id: expected.get("next", {}) for todo_id, expected in EXPECTED.items()}


def decided_about(todo_id: str, decisions: dict[str, Any]) -> dict[str, Any]:
    """Return the decisions about a todo in the terms of `expected.yaml`; empty if there are none."""
    said: dict[str, Any] = {}
    if todo_id in decisions["blocked"]:
        said["blocked_by"] = decisions["blocked"][todo_id]
    for action in decisions["actions"]:
        name: str = action.get("todo_id") or action["todo_ids"][0]
        if name.startswith(f"{todo_id}_step_"):
            said["step_for"] = action["role"]
        if todo_id not in (name, action.get("parent_id")):
            continue
        if action["action"] == "implement":
            is_retry = action["rule"] == "retry-by-the-same-role"
            kind = "branch_for" if action.get("parent_id") else "retry_for" if is_retry else "ready_for"
            said[kind] = action["role"]
        elif action["action"] == "verify":
            said["verify"] = action["rule"]
        elif edits := action.get("edits"):
            said["asks"] = [edit["edit"] for edit in edits]
        else:
            said["asks"] = action["kind"]
    return said


# -- docs/tour.md ------------------------------------------------------------------------------------

VOLATILE = re.compile(r"(?<=shop/reorder\.py:)\d+|\d{4}-\d\d-\d\d")
"""An endless loop may be stopped at any line, and an answer is from any day."""


def test_the_tour_page_shows_the_real_output_of_commands(
    checkout: Path, tour: Verified, decisions: dict[str, Any]
):
    """Commands run in the order of the page; an excerpt is part of the output of a command in `WHOLE`."""
    status, printed = 0, dict.fromkeys(WHOLE.values(), "")
    for block in blocks_of(PAGE):
        if block.info in WHOLE:
            whole = printed[WHOLE[block.info]]
            assert is_part(block.text, whole), f"{block.where}\n{whole}"
        for entry in typed(block) if block.info == "console tour" else ():
            if entry.command == "echo $?":
                assert entry.shown.strip() == str(status), entry.where
                continue
            is_tour = entry.command == WHOLE["text tour"]
            status, output = (tour.exit_code, tour.output) if is_tour else run(entry.command, checkout)
            printed[entry.command] = output
            assert is_part(entry.shown, output), f"{entry.where}: $ {entry.command}\n{output}"


def is_part(excerpt: str, output: str) -> bool:
    """Return whether the output has the lines of the excerpt, in order; `…` stands for any lines."""
    return fits(VOLATILE.sub("–", f"…\n{excerpt}…\n"), VOLATILE.sub("–", output))


def test_the_tour_page_mentions_every_todo_and_category():
    text = PAGE.read_text(encoding="utf-8")

    assert [todo_id for todo_id in EXPECTED if f"`{todo_id}`" not in text] == []
    assert [category for category in Category if f"`{category}`" not in text] == []


def test_every_block_of_the_tour_page_is_tested():
    assert {block.info for block in blocks_of(PAGE)} == {"console tour", *WHOLE}
