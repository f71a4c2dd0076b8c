"""Real runs of `planner step` are told by the real `planner explain`, the same in every surrounding."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from documented_commands import blocks_of
from real_planner import Ran, planner, spawned

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run that the page about metrics tells of."""
    folder = tmp_path_factory.mktemp("run")
    files = {block.file: block.text for block in blocks_of(PAGE) if block.file is not None}
    (folder / "plan.yaml").write_text(files["plan.yaml"])
    subprocess.run(
        [sys.executable, "-m", "planner", "step", "plan.yaml", "--log", "run.jsonl", "--no-validation"],
        cwd=folder,
        input=files["monday.jsonl"],
        stdout=subprocess.DEVNULL,
        encoding="utf-8",
        timeout=300,
        check=True,
    )
    return folder


def told(run: Path, *words: str, **surroundings: str) -> Ran:
    return spawned(words, run, surroundings)


def test_the_story_and_the_metrics_do_not_depend_on_the_order_of_hashes(run: Path) -> None:
    for words in (("explain", "plan.yaml", "--log", "run.jsonl"), ("metrics", "run.jsonl")):
        first, second = planner(*words, cwd=run), told(run, *words, PYTHONHASHSEED="7")

        assert first == second
        assert first.status == 0
        assert first.err == ""


def test_a_terminal_that_knows_few_letters_gets_the_story_all_the_same(run: Path) -> None:
    ran = told(run, "explain", "run.jsonl", "--review", PYTHONIOENCODING="ascii", COLUMNS="40")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.isascii()
    assert "+ recovery-rate" in ran.out


def test_each_rule_of_a_story_can_be_explained(run: Path) -> None:
    lines = (run / "run.jsonl").read_text().splitlines()
    rules = {action["rule"] for line in lines for action in json.loads(line)["actions"]}

    assert len(rules) > 4
    for rule in sorted(rules):
        assert planner("explain", rule, cwd=run).status == 0, rule


@pytest.mark.parametrize("cut", [1, 2, 30, 2_000])
def test_a_torn_log_is_told_to_its_last_whole_line(run: Path, tmp_path: Path, cut: int) -> None:
    whole = (run / "run.jsonl").read_bytes()
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(whole[:-cut])
    for words in (("explain", "torn.jsonl"), ("metrics", "torn.jsonl")):
        ran = planner(*words, cwd=tmp_path)

        assert ran.status == 0
        assert ("torn by a kill" in ran.err) is (cut > 1), "only the newline is missing"
    assert torn.read_bytes() == whole[:-cut]


def test_a_changed_event_is_never_told(run: Path, tmp_path: Path) -> None:
    lines = (run / "run.jsonl").read_text().splitlines(keepends=True)
    for n, line in enumerate(lines):
        changed = line.replace('"at":"2026', '"at":"2027', 1)
        (tmp_path / "changed.jsonl").write_text("".join([*lines[:n], changed, *lines[n + 1 :]]))
        ran = planner("explain", "changed.jsonl", cwd=tmp_path)

        assert ran.status == 4
        assert f"line {n} was changed" in ran.err
        assert "\nnow " not in ran.out
