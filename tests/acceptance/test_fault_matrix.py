"""Every way to end, stop or block a process, at every place: the run goes on, and says what happened.

By default a part of the product is run, in which every fault comes up, and every place in each way to run;
`PLANVERIFY_FAULT_MATRIX=full` runs all of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from fault_projects import FAULTS, PLACES, cells, faulty_test, files_of, healthy_test

MODES = {
    "serial": (),
    "workers": ("-p", "xdist", "-n2"),
    "isolated": ("--planverify-isolate",),
}
OPTIONS = ("-p", "pytest_timeout", "--planverify-confirm=1")

Cell = tuple[str, str]


def chosen(mode: str) -> list[Cell]:
    """The cells to run: all of them, or those on a diagonal that lies elsewhere for each mode."""
    if os.environ.get("PLANVERIFY_FAULT_MATRIX") == "full":
        return cells()
    shift = list(MODES).index(mode)
    names = [name for name, fault in FAULTS.items() if not fault.hangs and not fault.only_conftest]
    quick = names if mode == "serial" else names[shift % 2 :: 2]
    slow = [name for name, fault in FAULTS.items() if fault.hangs][shift :: len(MODES)]
    hooks = [name for name, fault in FAULTS.items() if fault.only_conftest][shift :: len(MODES)]
    diagonal = {(PLACES[(number + shift) % len(PLACES)], name) for number, name in enumerate(quick + slow)}
    wanted = diagonal | {("conftest", name) for name in hooks}
    return [cell for cell in cells() if cell in wanted]


def name_of(cell: Cell) -> str:
    return "_".join(cell)


class Matrix:
    """One run over a plan with a todo for each cell, and for what stands beside it."""

    def __init__(self, example: Example, mode: str) -> None:
        self.cells = chosen(mode)
        example.write({"test_healthy.py": "def test_first(): pass\ndef test_last(): pass\n"})
        todos = [todo("first", "pytest test_healthy.py::test_first")]
        for cell in self.cells:
            limit = 1 if FAULTS[cell[1]].hangs else 20
            example.write(files_of(*cell))
            todos.append(
                todo(name_of(cell), {"cmd": f"pytest {faulty_test(*cell)}", "timeout_seconds": limit})
            )
            beside = healthy_test(*cell)
            if beside:
                todos.append(todo(f"beside_{name_of(cell)}", f"pytest {beside}"))
        todos.append(todo("last", "pytest test_healthy.py::test_last"))
        example.plan(*todos)
        faulty = {name_of(cell) for cell in self.cells}
        self.bystanders = [each["id"] for each in todos if each["id"] not in faulty]
        self.run: Verified = example.verify(*OPTIONS, *MODES[mode], timeout_seconds=3_000)

    def failure(self, cell: Cell) -> dict[str, Any]:
        """What the outcome file says of a cell's failure."""
        return self.run.outcomes[name_of(cell)]["failure_evidence"] or {}

    def differences(self, what: str) -> dict[str, tuple[object, object]]:
        """By cell, what was expected and what was found, where that is not the same."""
        both = {name_of(cell): (_expected(cell, what), self._found(cell, what)) for cell in self.cells}
        return {name: pair for name, pair in both.items() if pair[0] is not None and pair[0] != pair[1]}

    def _found(self, cell: Cell, what: str) -> object:
        failure = self.failure(cell)
        process: dict[str, Any] = failure.get("process") or {}
        phase = failure.get("phase")
        return {
            "verdict": self.run.verdicts[name_of(cell)],
            "category": failure.get("category"),
            "phase": "collect" if phase == "session" else phase,
            "signal": process.get("signal"),
            "exit_code": process.get("exit_code"),
            "leaves_a_stack": bool(process.get("stack")),
        }[what]


def _expected(cell: Cell, what: str) -> object:
    """``None`` where the fault does not say."""
    place, name = cell
    fault = FAULTS[name]
    if what == "phase":
        if fault.category is None or fault.only_conftest or fault.late:
            return None
        return place if place in ("setup", "call", "teardown") else "collect"
    return getattr(fault, what) or (0 if what == "exit_code" and fault.exit_code == 0 else None)


@pytest.fixture(scope="module", params=MODES)
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(Example(tmp_path_factory.mktemp(request.param)), request.param)


def test_no_fault_is_green_and_each_has_its_verdict(matrix: Matrix):
    assert matrix.run.document is not None, str(matrix.run)
    assert matrix.differences("verdict") == {}, str(matrix.run)
    assert matrix.run.exit_code == 1


@pytest.mark.parametrize("what", ["category", "phase", "signal", "exit_code", "leaves_a_stack"])
def test_a_fault_is_told_as_what_it_is(what: str, matrix: Matrix):
    assert matrix.differences(what) == {}, str(matrix.run)


def test_no_bystander_loses_its_verdict(matrix: Matrix):
    verdicts = {name: matrix.run.verdicts[name] for name in matrix.bystanders}

    assert verdicts == dict.fromkeys(matrix.bystanders, "passed"), str(matrix.run)


def test_no_process_is_left(matrix: Matrix):
    assert not matrix.run.left_running


def test_the_parts_that_are_run_by_default_cover_every_fault_and_every_place():
    parts = {mode: chosen(mode) for mode in MODES}

    assert {name for part in parts.values() for _, name in part} == set(FAULTS)
    assert all({place for place, _ in part} == set(PLACES) for part in parts.values())


FORGE = """\
    import glob, json, os, time
    def forge(**facts):
        (path,) = glob.glob(".planverify/runs/*/journal.jsonl")
        with open(path) as journal:
            session = json.loads(journal.read().splitlines()[-1])["session"]
        with open(path, "a") as journal:
            journal.write(json.dumps({"session": session, "at": time.time(), **facts}) + "\\n")
    def test_it():
        for nodeid in ("test_forges.py::test_it", "test_red.py::test_it"):
            forge(record="test_started", nodeid=nodeid)
            forge(record="test_finished", nodeid=nodeid, outcome="passed", duration_ms=1)
        forge(record="session_finished", worker="", exit_status=0, stopped=None)
        forge(record="session_ended", exit_status=0)
        os._exit(0)
"""

TRUNCATE = """\
    import glob
    def test_it():
        for path in glob.glob(".planverify/runs/*/journal.jsonl"):
            open(path, "w").close()
"""


def test_records_that_a_test_forges_or_removes_buy_no_verdict(tmp_path: Path):
    example = Example(
        tmp_path,
        {
            "test_forges.py": FORGE,
            "test_red.py": "def test_it(): assert 1 == 2\n",
            "test_truncates.py": TRUNCATE,
            "test_ends_its_parent.py": "import os\ndef test_it(): os.kill(os.getppid(), 9)\n",
            "test_healthy.py": "def test_it(): pass\n",
        },
    )
    names = ("forges", "red", "truncates", "ends_its_parent", "healthy")
    example.plan(*(todo(name, f"pytest test_{name}.py") for name in names))

    run = example.verify(*OPTIONS)

    assert run.verdicts["forges"] == run.verdicts["red"] == "failed", str(run)
    assert run.verdicts["healthy"] == "passed", str(run)
    assert run.verdicts["truncates"] != "flaky"
    assert run.category("forges") == "TEST_CRASH"
    assert run.category("red") == "TEST_REGRESSION"
    assert run.exit_code == 1
    assert not run.left_running
