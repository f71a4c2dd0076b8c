"""Parts of the commands that make plans: the section of AGENTS.md, and the question about phases."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from planner.authoring.outline import read_goal
from planner.cli import new_plans
from planner.cli.exits import UsageMistake
from planner.cli.new_plans import BEGIN, END, with_section


def test_the_generated_section_is_replaced_between_its_markers() -> None:
    page = with_section("# Agents\n\nBe kind.\n", "plan.yaml")
    renewed = with_section(page + "\nAfter.\n", "other.yaml")

    assert page.startswith("# Agents\n\nBe kind.\n\n" + BEGIN)
    assert renewed.count(BEGIN) == renewed.count(END) == 1
    assert "`other.yaml`" in renewed
    assert "plan.yaml" not in renewed.replace("other.yaml", "")
    assert renewed.endswith(f"{END}\n\nAfter.\n")
    assert with_section(page, "plan.yaml") == page
    for torn in (f"x {END}", f"{BEGIN} x", f"{END} x {BEGIN}"):
        with pytest.raises(UsageMistake, match="there is no"):
            with_section(torn, "plan.yaml")


def test_a_page_for_agents_in_another_encoding_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("AGENTS.md").write_bytes(b"\xff\xfeB")
    with pytest.raises(UsageMistake, match="not text in UTF-8"):
        new_plans._write_agents(Path("plan.yaml"))
    assert Path("AGENTS.md").read_bytes() == b"\xff\xfeB"


def test_a_goal_from_standard_input_may_have_bytes_that_are_no_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Send \xff"), encoding="utf-8"))
    assert new_plans._checked_goal("-") == "Send \ufffd"


@pytest.mark.parametrize(
    ("answer", "in_phases"), [("yes", True), (" N ", False), ("customize", None), ("perhaps", None)]
)
def test_at_a_terminal_a_person_chooses_phases(
    answer: str, in_phases: bool | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(new_plans.typer, "prompt", lambda *words, **settings: answer)
    found = new_plans._ask(read_goal("# Shop\n## Cart\n- add\n- remove\n## Pay"), ["it is long"])
    assert found is in_phases
    assert capsys.readouterr().out.startswith(
        "this could be planned in phases: it is long\n  1. Cart (2 parts)\n  2. Pay\n"
    )
