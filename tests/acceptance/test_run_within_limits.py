"""`planverify run` on a part of a plan, and within limits below those of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_run_with_agents import HONEST, PLAN, agent, project, run

__all__ = ["project"]

REPORTING = f"""{HONEST}
import json
pathlib.Path(os.environ["PLANVERIFY_RESULT"]).write_text(json.dumps({{"tokens": 900}}))
"""
IDLE = "open('shop/notes.txt', 'a').write('.')"


def test_the_todo_that_is_named_is_carried_out_with_what_it_depends_on(project: Path) -> None:
    done = run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), "--only", "basket")

    assert done.exit_code == 0, done.output
    assert "because others depend on them: price" in done.output
    assert "completed: 2 of 2 todos done" in done.output


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        pytest.param(REPORTING, ("--max-tokens", "900"), "tokens: 900", id="tokens"),
        pytest.param(HONEST, ("--max-seconds", "1"), "wall_seconds", id="time"),
        pytest.param(
            f"open('shop/more.py', 'w')\n{HONEST}", ("--max-new-files", "0"), "new_files: 1", id="files"
        ),
    ],
)
def test_a_limit_of_the_operator_halts_the_run_and_is_named(
    project: Path, code: str, words: tuple[str, ...], said: str
) -> None:
    text = PLAN.replace('["shop/price.py"]', '["shop/**"]').replace('["shop/basket.py"]', '["shop/**"]')
    (project / "plan.yaml").write_text(text)

    done = run(project, "run", "plan.yaml", "--agent", agent(project, code), *words)

    assert done.exit_code == 12, done.output
    assert said in done.output
    assert "to continue with a larger budget" in done.output


def test_no_branch_has_more_attempts_than_the_operator_allows(project: Path) -> None:
    code = agent(project, IDLE.replace("notes.txt", "price.py"))
    done = run(project, "run", "plan.yaml", "--agent", code, "--max-attempts", "1", "--only", "price")

    assert done.exit_code in (1, 11), done.output
    assert "attempt 2" not in done.output


def test_a_limit_above_that_of_the_plan_has_no_effect_and_is_told(project: Path) -> None:
    (project / "plan.yaml").write_text(PLAN + "metadata: {budget: {cycles: 1}}\n")

    done = run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), "--max-turns", "50")

    assert done.exit_code == 12, done.output
    assert "cycles stays at 1, the limit of the plan" in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "prise"), "did you mean 'price'?"),
        (("--resume", "--max-turns", "5"), "remove --only and --max-…"),
        (("--max-turns", "-1"), "Invalid value"),
    ],
)
def test_wrong_use_is_told(project: Path, words: tuple[str, ...], said: str) -> None:
    done = run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), *words)
    assert done.exit_code == 2
    assert said in done.output
