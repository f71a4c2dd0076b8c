"""Measure `planner` in and out of process: loading, its commands, waves, reports and dashboard.

Plans have as many todos as a plan may have; the dashboard shows ten thousand logs.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import yaml
from engine_logs import plan_of, run_of
from fastapi.testclient import TestClient
from measuring import Command, Row, paired
from outcome_samples import check, document, outcome, results
from sample_documents import sample_document

from planner.model.events import PlanSubmitted
from planner.model.outcome import Failure, Location, Outcome
from planner.model.plan import MAX_TODOS, Todo
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import TestOutcome, TodoState, Verdict
from planner.planfile.loader import load_plan
from planner.planfile.writer import dump_plan
from planner.policy.dependencies import waves
from planner.store.chain import GENESIS, chained
from planner.store.index import open_index
from planner.store.run_log import FOLDER, body
from planner.web.app import create_app
from pytest_planverify.reports.cases import ReportInput
from pytest_planverify.reports.formats import FORMATS, render

MOST_LOADING_TIMES = 4.0


def plan_loading(folder: Path, rounds: int) -> list[Row]:
    """Return the loading time relative to that of PyYAML."""
    path = folder / "plan.yaml"
    text = plan_text()
    path.write_text(text, encoding="utf-8")
    load_plan(path)

    def load() -> None:
        assert len(load_plan(path).plan.items) == MAX_TODOS

    def parse() -> None:
        # Without the collector, which takes longer than the parser: the bound is not met by that alone.
        gc.disable()
        try:
            assert len(yaml.load(text, Loader=yaml.CSafeLoader)["items"]) == MAX_TODOS
        finally:
            gc.enable()

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_seconds(load))
        theirs.append(_seconds(parse))
    ratio = statistics.median(ours) / statistics.median(theirs)
    how = f"{statistics.median(ours):.2f} s, yaml.CSafeLoader {statistics.median(theirs):.2f} s"
    name = f"loading a plan of {MAX_TODOS} todos / PyYAML's C loader"
    return [Row(name=name, figure=ratio, unit="x", at_most=MOST_LOADING_TIMES, from_what=how)]


def plan_text() -> str:
    """Return the text of the plan."""
    return "todo_list_id: large\nmetadata: {max_branch_depth: 2}\nitems:\n" + "".join(
        map(_written_todo, range(MAX_TODOS))
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _written_todo(number: int) -> str:
    needs = f"t{number - 1:05d}" if number % 5 else ""
    package = f"package_{number % 40}"
    return f"""\
- id: t{number:05d}
  title: Module {number} does its part
  intent: >-
    Read the plan_loading of table {number}, check them and hand them on to the next module
    without losing any.
  agent_role: coder
  acceptance_criteria:
    tests:
    - cmd: pytest tests/{package}/test_module_{number}.py::test_values -q --json-report
      timeout_seconds: 20
      fixture: fixtures/module_{number}.json
    - cmd: pytest tests/{package}/test_module_{number}.py::test_columns -q --json-report
      timeout_seconds: 30
    expected_artifacts:
    - src/{package}/module_{number}.py
    - path: out/{package}/module_{number}.json
      min_bytes: 10
    metrics:
    - {{name: rows_min, operator: ">=", value: {number}}}
  allowed_files: ["src/{package}/**", "tests/{package}/**"]
  failure_routing:
    implementation_bug: coder
    spec_mismatch: architect
  dependencies: [{needs}]
  max_retries: 2
  priority: {number}
"""


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


def planner(folder: Path, rounds: int) -> list[Row]:
    """Return the times of commands relative to loading, and of the help relative to importing typer."""
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
    seconds = paired(big, max(rounds // 2, 2)).medians() | paired(small, rounds * 3).medians()
    on = f"on {MAX_TODOS} todos, {MAX_TODOS // FAILED_EVERY} failed / loading both files"
    found = [_row(f"planner {name} {on}", seconds, name, "load", MOST_TIMES) for name in list(big)[1:]]
    name = "planner --help / python -c 'import typer'"
    return [*found, _row(name, seconds, "planner --help", "import typer", MOST_HELP_TIMES)]


def _row(name: str, seconds: dict[str, float], ours: str, theirs: str, at_most: float) -> Row:
    how = f"{seconds[ours]:.3f} s, {theirs} {seconds[theirs]:.3f} s"
    return Row(name=name, figure=seconds[ours] / seconds[theirs], unit="x", at_most=at_most, from_what=how)


def _write(folder: Path, *, branches: int) -> tuple[Path, Path]:
    from planner.planfile.plan_folder import PlanFolder
    from planner.planfile.record_files import write_outcomes
    from planner.testing import simulate_failure, simulate_success

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
    document = sample_document(loaded.plan, found, at=datetime.now(UTC))
    ref = document.plans[0].model_copy(update={"digest": loaded.digest})
    outcomes = PlanFolder(folder, loaded.plan.todo_list_id).outcomes
    write_outcomes(document.model_copy(update={"plans": (ref,)}), outcomes)
    assert json.loads(outcomes.read_text(encoding="utf-8"))["schema_version"] == 1
    return path, outcomes


LAYER = 50
MOST_WAVE_SECONDS = 4.0


def waves_of_plans(folder: Path, rounds: int) -> list[Row]:
    """Return the time to compute the waves of the largest plan; needs no files."""
    return [_wave_row(name, shape, max(rounds // 2, 2)) for name, shape in SHAPES.items()]


def _wave_row(name: str, shape: Callable[[int], Todo], rounds: int) -> Row:
    todos = [shape(number) for number in range(MAX_TODOS)]
    found = waves(todos)
    assert sum(map(len, found)) == MAX_TODOS
    return Row(
        name=f"waves of {MAX_TODOS:,} todos: {name}",
        figure=statistics.median(_wave_seconds(todos) for _ in range(rounds)),
        unit="s",
        at_most=MOST_WAVE_SECONDS,
        from_what=f"{len(found):,} waves",
    )


def _wave_seconds(todos: Sequence[Todo]) -> float:
    """Return the processor time, in seconds."""
    gc.collect()
    start = time.process_time()
    waves(todos)
    return time.process_time() - start


def _planned_todo(number: int, *files: str, after: Sequence[int] = (), priority: int = 0) -> Todo:
    return Todo(
        id=f"t{number}",
        title="A todo",
        dependencies=tuple(f"t{each}" for each in after),
        allowed_files=files or None,
        priority=priority,
    )


def _chained(number: int) -> Todo:
    return _planned_todo(number, f"src/mod_{number}.py", after=[number - 1] if number else [])


def _layered(number: int) -> Todo:
    """Return a todo with three dependencies in the layer before; some share a file, all have a test."""
    chance = random.Random(number)
    start = number // LAYER * LAYER
    after = chance.sample(range(start - LAYER, start), 3) if start else []
    module = f"src/package_{number % 97}/mod_{chance.randrange(MAX_TODOS)}.py"
    test, priority = f"tests/test_{number}.py", chance.randrange(3)
    return _planned_todo(number, module, test, after=after, priority=priority)


def _globbed(number: int) -> Todo:
    if number % 10:
        return _planned_todo(number, f"src/package_{number}/**", f"tests/test_{number}_*.py")
    return _planned_todo(number, "src/package_1*/setup.py", "docs/**")


SHAPES: dict[str, Callable[[int], Todo]] = {
    "side by side": _planned_todo,
    "one after the other": _chained,
    "random layers": _layered,
    "three files of their own": lambda number: _planned_todo(
        number,
        f"src/package_{number % 100}/mod_{number}.py",
        f"tests/test_{number}.py",
        f"docs/{number}.md",
    ),
    "one file for all": lambda number: _planned_todo(number, "CHANGELOG.md", f"src/mod_{number}.py"),
    "globs": _globbed,
    "exclusions": lambda number: _planned_todo(
        number, f"src/package_{number}/**", f"!src/package_{number}/data/**"
    ),
}
"""Functions that create a todo by its number, by the shape of the plan."""


RED_OF = 7
"""One of this many todos is red."""

MOST_REPORT_SECONDS = 1.0


def reports(folder: Path, rounds: int) -> list[Row]:
    """Return the time of all formats together, without importing their libraries."""
    given = ReportInput(document(*map(_verified_todo, range(MAX_TODOS))), {}, {})
    for name in FORMATS:
        render(name, given)
    medians = {
        name: statistics.median(_seconds(partial(render, name, given)) for _ in range(rounds))
        for name in FORMATS
    }
    slowest = max(medians, key=medians.__getitem__)
    how = f"{len(medians)} formats, the slowest {slowest} with {medians[slowest]:.2f} s"
    name = f"all reports of {MAX_TODOS} todos"
    figure = sum(medians.values())
    return [Row(name=name, figure=figure, unit="s", at_most=MOST_REPORT_SECONDS, from_what=how)]


def _verified_todo(number: int) -> Outcome:
    todo_id, path = f"todo-{number}", f"tests/test_{number}.py"
    if number % RED_OF:
        tests = results(path, "test_it", "test_other")
        return outcome(todo_id, f"Todo {number}", TodoState.DONE, check("tests[0]", tests=tests))
    failure = Failure(
        category=Category.TEST_REGRESSION,
        owner=Owner.PRODUCT,
        signature=f"s{number % 50}",
        target_agent=Role.CODER,
        check_id="tests[0]",
        tests=(f"{path}::test_it",),
        stack_trace_head=f"AssertionError: assert {number} == 1",
        location=Location(path=f"shop/part_{number}.py", line=7, function="price"),
        rerun=f"pytest --planverify plan.yaml::{todo_id}",
    )
    tests = results(path, "test_it", outcome=TestOutcome.FAILED)
    return outcome(
        todo_id,
        f"Todo {number}",
        TodoState.TEST_FAILED,
        check("tests[0]", verdict=Verdict.FAILED, tests=tests),
        failure_evidence=failure,
        failures=(failure,),
    )


LOGS = 1_000
LOGGED_TODOS = 3
MOST_MS = 200.0
MOST_INDEXING_SECONDS = 2.5


def dashboard(folder: Path, rounds: int) -> list[Row]:
    """Return the time of a page, and the processor time for indexing all logs."""
    _write_logs(folder)
    begun = time.process_time()
    open_index(folder).close()
    indexing = time.process_time() - begun
    app = create_app(folder / "plan.yaml", folder, "secret", {"testserver"}, _record)
    client = TestClient(app)
    client.get("/?token=secret")
    taken: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        assert client.get("/").status_code == 200
        taken.append((time.perf_counter() - start) * 1000)
    return [
        Row(
            name=f"page of the dashboard, {LOGS:,} logs",
            figure=statistics.median(taken),
            unit="ms",
            at_most=MOST_MS,
            from_what=f"slowest {max(taken):.1f} ms of {len(taken)}",
        ),
        Row(
            name=f"first indexing of {LOGS:,} logs",
            figure=indexing,
            unit="s",
            at_most=MOST_INDEXING_SECONDS,
            from_what="processor time",
        ),
    ]


def _record(_plan: Path, _form: Mapping[str, str]) -> list[str]:
    """Record nothing, since no question is answered here."""
    return []


def _write_logs(folder: Path) -> None:
    """Write logs of one run each that differ in their ids only."""
    (folder / FOLDER).mkdir(parents=True)
    (folder / "plan.yaml").write_text(dump_plan(plan_of(LOGGED_TODOS), format="yaml"), encoding="utf-8")
    steps = [(event, actions) for event, actions, _ in run_of(LOGGED_TODOS)]
    bodies = [body(at, *step) for at, step in enumerate(steps)]
    first, actions = steps[0]
    assert isinstance(first, PlanSubmitted)
    for number in range(LOGS):
        run_id, digest, lines = f"run-{number:05}", GENESIS, list[str]()
        named = body(0, first.model_copy(update={"run_id": run_id}), actions)
        for each in (named, *bodies[1:]):
            line, digest = chained(each, digest)
            lines.append(f"{line}\n")
        (folder / FOLDER / f"{run_id}.jsonl").write_text("".join(lines), encoding="utf-8")
