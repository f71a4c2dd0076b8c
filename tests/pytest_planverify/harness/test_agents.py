"""Agents of pyproject.toml: what cannot be read as such is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import PlannerError
from planner.model.taxonomy import Role
from pytest_planverify.harness.agents import parse_agents


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[tool]\nplanverify = "x"\n', "is not a table"),
        ("[tool.planverify]\nagents = 3\n", "neither a text nor a list of texts"),
        ("[tool.planverify.agents]\ncoder = 3\n", "coder is neither a text"),
        ('[tool.planverify.agents]\nchief = "x"\n', "unknown role 'chief'"),
    ],
)
def test_agents_of_another_form_are_refused_with_their_place(
    text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)

    with pytest.raises(PlannerError, match=problem) as caught:
        parse_agents((), tmp_path)

    assert "[tool.planverify" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.planverify.agents]\ncoder = "echo"\ntester = ["sh", "x"]\n'
    )

    agents = parse_agents(("coder=cat",), tmp_path)

    assert (agents.vector(Role.CODER) or ())[:1] == ("cat",)
    assert (agents.vector(Role.TESTER) or ())[:2] == ("sh", "x")
