"""The command ``planner`` on as many todos as a plan may have, of which every seventh failed, beside
loading the plan and the outcomes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench_plan_loading import plan_text
from measuring import Command, interleaved
from table import Row

from planner.model.plan import MAX_TODOS as TODOS

FAILED_EVERY = 7
MOST_TIMES = 3.0
MOST_HELP_TIMES = 1.5

_LOAD = """\
import sys
from pathlib import Path
from planner.planfile.record_files import read_outcomes
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import PlanFolder
load_plan(Path(sys.argv[1])); read_outcomes(Path(sys.argv[2])); print("loaded")
"""


def rows(folder: Path, rounds: int) -> list[Row]:
    """How many times loading takes each command, and the help beside the import of the library it uses."""
    plan, outcomes = _write(folder, branches=5)
    _write(folder / "side_by_side", branches=1_000)
    planner = str(Path(sys.executable).parent / "planner")

    def command(*argv: str, says: str, exit_code: int = 0) -> Command:
        def check(output: str) -> None:
            assert says in output, output[:2000]

        return Command(argv=argv, cwd=folder, check=check, exit_code=exit_code)

    big = {
        "load": command(sys.executable, "-c", _LOAD, str(plan), str(outcomes), says="loaded"),
        "next": command(planner, "next", "plan.yaml", says="branch_01"),
        "next with 1,000 branches": command(
            planner, "next", "side_by_side/plan.yaml", says="t00049_branch_01"
        ),
        "next --json": command(planner, "next", "plan.yaml", "--json", says="branch_01"),
        "status": command(planner, "status", "plan.yaml", says="t00000"),
        "validate": command(planner, "validate", "plan.yaml", says="warning", exit_code=1),
    }
    small = {
        "import typer": command(sys.executable, "-c", "import typer", says=""),
        "planner --help": command(planner, "--help", says="Usage"),
    }
    seconds = interleaved(big, max(rounds // 2, 2)) | interleaved(small, rounds * 3)
    on = f"on {TODOS} todos, {TODOS // FAILED_EVERY} failed / loading both files"
    found = [_row(f"planner {name} {on}", seconds, name, "load", MOST_TIMES) for name in list(big)[1:]]
    name = "planner --help / python -c 'import typer'"
    return [*found, _row(name, seconds, "planner --help", "import typer", MOST_HELP_TIMES)]


def _row(name: str, seconds: dict[str, float], ours: str, theirs: str, at_most: float) -> Row:
    how = f"{seconds[ours]:.3f} s, {theirs} {seconds[theirs]:.3f} s"
    return Row(name=name, figure=seconds[ours] / seconds[theirs], unit="x", at_most=at_most, from_what=how)


def _write(folder: Path, *, branches: int) -> tuple[Path, Path]:
    from planner.planfile.loader import load_plan
    from planner.planfile.plan_folder import PlanFolder
    from planner.planfile.record_files import write_outcomes
    from planner.testing import sample_document, simulate_failure, simulate_success

    path = folder / "plan.yaml"
    policy = f"max_branch_depth: 2, max_concurrent_branches: {branches}, notify_after_n_failures: 1000"
    text = plan_text().replace("max_branch_depth: 2", policy).replace("max_retries: 2", "max_retries: 0")
    folder.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    loaded = load_plan(path)
    found = [
        simulate_failure(todo, message=f"failure {number}")
        if number % FAILED_EVERY == 0
        else simulate_success(todo)
        for number, todo in enumerate(loaded.plan.items)
    ]
    document = sample_document(loaded.plan, found)
    ref = document.plans[0].model_copy(update={"digest": loaded.digest})
    outcomes = PlanFolder(folder, loaded.plan.todo_list_id).outcomes
    write_outcomes(document.model_copy(update={"plans": (ref,)}), outcomes)
    assert json.loads(outcomes.read_text(encoding="utf-8"))["schema_version"] == 1
    return path, outcomes
