"""The tour ends as its `expected.yaml` says in every way to run it, and docs/tour.md shows real output."""

from __future__ import annotations

import functools
import json
import re
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_commands import CONFIDENCES, environment_of_a_reader
from example_project import RUN_MARK, Example, Verified
from real_command import FULL, Finished

from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, TodoState
from planner.planfile.loader import load_plan

CHECKOUT = Path(__file__).resolve().parents[2]
TOUR = CHECKOUT / "examples" / "tour"
PAGE = CHECKOUT / "docs" / "tour.md"
LEFT_BEHIND = shutil.ignore_patterns(
    ".planverify", "cache", "diagnostics", "__pycache__", ".pytest_cache", ".ruff_cache", "revised.yaml"
)

WAYS: dict[str, tuple[str, ...]] = {"serial": ()}
"""The ways to run a plan, with their options. All must agree; `test_three_ways` always compares them."""
if FULL:
    WAYS |= {"isolated": ("--planverify-isolate",), "workers": ("-p", "xdist", "-n2")}

NOT_SHOWN = {
    Category.SANDBOX_VIOLATION,
    Category.HYGIENE_VIOLATION,
    Category.ALLOWLIST_VIOLATION,
    Category.BUDGET_EXCEEDED,
    Category.HARNESS_ERROR,
}
"""Categories that no todo of the tour has; docs/tour.md only mentions them."""


def read_expected() -> dict[str, dict[str, Any]]:
    return yaml.safe_load((TOUR / "expected.yaml").read_text(encoding="utf-8"))


EXPECTED = read_expected()


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Verified]]:
    """Return a function that runs the whole tour, once for each way, and returns its folder and the run."""

    @functools.cache
    def take(way: str) -> tuple[Path, Verified]:
        """Run the tour; serially as a reader does, in a checkout, with the command of the page."""
        if way != "serial":
            root = copy_to(tmp_path_factory.mktemp(way))
            return root, Example(root).verify("plan.yaml", *WAYS[way], measured=False)
        checkout = tmp_path_factory.mktemp("checkout")
        root, mark = copy_to(checkout / "examples"), uuid.uuid4().hex
        shutil.copy(CHECKOUT / "pyproject.toml", checkout)
        done = run(WHOLE["text tour"], checkout, {RUN_MARK: mark})
        finished = Finished(exit_code=done.returncode, output=done.stdout)
        return root, Example(root).verified(finished, mark)

    return take


def copy_to(folder: Path) -> Path:
    return Path(shutil.copytree(TOUR, folder / "tour", ignore=LEFT_BEHIND))


@pytest.fixture(scope="module", params=list(WAYS))
def tour(request: pytest.FixtureRequest, taken: Callable[[str], tuple[Path, Verified]]) -> Verified:
    return taken(request.param)[1]


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


def test_the_flaky_todo_of_the_tour_is_flaky_in_every_run(tour: Verified, tmp_path: Path):
    again = Example(copy_to(tmp_path)).verify("plan.yaml::rates", "--planverify-isolate", measured=False)

    for each in (tour, again):
        assert each.check("rates", "tests[1]")["verdict"] == "flaky", str(each)
        assert each.outcomes["rates"]["failure_evidence"]["repeatability"] == "flaky"


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
def decisions(
    taken: Callable[[str], tuple[Path, Verified]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Return the decisions of `planner next` after a run, before any later command of the page."""
    root = Example(taken("serial")[0]).copied_to(tmp_path_factory.mktemp("decisions") / "tour").root
    done = run("planner next plan.yaml --json --full", root)
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


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

VOLATILE = (
    *CONFIDENCES,
    (re.compile(r"(\d+m )?\d+(\.\d+)?m?s\b"), "TIME"),
    (re.compile(r"(?<=shop/reorder\.py:)\d+"), "LINE"),  # an endless loop may be stopped at any line
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"={3,}"), "==="),
    (re.compile(r" +"), " "),
)
"""Patterns of text that differs between runs, with replacements."""


WHOLE = {
    "text tour": "pytest --planverify examples/tour/plan.yaml",
    "text next": "planner next examples/tour/plan.yaml",
}
"""Info strings of excerpts, and the command whose output they quote."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page."""

    info: str
    line: int
    text: str

    @property
    def where(self) -> str:
        return f"docs/tour.md:{self.line}"


def read_blocks() -> list[Block]:
    text = PAGE.read_text(encoding="utf-8")
    return [
        Block(match[1].strip(), text.count("\n", 0, match.start()) + 1, match[2])
        for match in re.finditer(r"^```(.+?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def test_the_tour_page_shows_the_real_output_of_commands(
    taken: Callable[[str], tuple[Path, Verified]], decisions: dict[str, Any]
):
    """Commands run in the order of the page; an excerpt is part of the output of a command in `WHOLE`."""
    root, tour = taken("serial")
    status, printed = 0, dict.fromkeys(WHOLE, "")
    for block in read_blocks():
        for info, whole in printed.items():
            missing = lines_not_in(block.text, whole) if block.info == info else []
            assert not missing, f"{block.where}: {missing}\n{whole}"
        if block.info != "console tour":
            continue
        for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = entry.partition("\n")
            if command == "echo $?":
                assert shown.strip() == str(status), block.where
                continue
            if command == WHOLE["text tour"]:
                status, output = tour.exit_code, tour.output
            else:
                done = run(command, root.parents[1])
                status, output = done.returncode, done.stdout
            printed |= {info: output for info, whole in WHOLE.items() if command == whole}
            missing = lines_not_in(shown, output)
            assert not missing, f"{block.where}: $ {command}\n{missing}\n{output}"


def run(command: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of the page as a reader would in the virtual environment, without a shell."""
    program, *words = shlex.split(command)
    env = environment_of_a_reader() | (env or {})
    return subprocess.run(
        [shutil.which(program, path=env["PATH"]) or program, *words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def lines_not_in(shown: str, printed: str) -> list[str]:
    """Return the first part of an excerpt that is missing from the output; empty if there is none.

    `…` separates parts. Parts must be in order, and the lines of a part must be consecutive.
    """
    wanted, found = settled(shown), settled(printed)
    for part in split_at_gaps(wanted):
        starts = (at for at in range(len(found)) if found[at : at + len(part)] == part)
        start = next(starts, None)
        if start is None:
            return part
        found = found[start + len(part) :]
    return []


def split_at_gaps(lines: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == "…":
            parts.append([])
        else:
            parts[-1].append(line)
    return [part for part in parts if part]


def settled(text: str) -> list[str]:
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return [line.strip() for line in text.strip().splitlines()]


def test_the_tour_page_mentions_every_todo_and_category():
    text = PAGE.read_text(encoding="utf-8")

    assert [todo_id for todo_id in EXPECTED if f"`{todo_id}`" not in text] == []
    assert [category for category in Category if f"`{category}`" not in text] == []


def test_every_block_of_the_tour_page_is_tested():
    infos = {block.info for block in read_blocks()}

    assert infos == {"console tour", *WHOLE}
