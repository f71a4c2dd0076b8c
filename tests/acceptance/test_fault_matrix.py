"""Faults that end, stop or block a process, at every place: the run continues and reports them.

By default a sample of the cells runs, with every fault, and with every place in each mode. With
``PLANVERIFY_TESTS=full`` all cells run, in fifteen parts, of which ``-k serial-call`` selects one.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from fault_projects import FAULTS, PLACES, cells, faulty_test, files_of
from real_command import FULL

MODES = {
    "serial": (),
    "workers": ("-p", "xdist", "-n4"),
    "isolated": ("--planverify-isolate",),
}
OPTIONS = ("-p", "pytest_timeout", "--planverify-confirm=0")
IN_FULL = ("--planverify-confirm=1",) if FULL else ()
TURNS = ("serial", "isolated", "workers", "serial", "serial")
"""Modes to which faults are assigned in turn by default; cold workers and those of xdist cost most."""
TURNS_OF_HANGS = ("workers", "workers", "serial", "workers", "isolated")
"""The same for faults that hang; with workers of xdist they do so at the same time."""
LIMIT, LIMIT_OF_HANGS = 20, 2
ALL_FILES_CLOSED = {("setup", "close_all"), ("teardown", "close_files")}
"""Cells whose failed phase is reported although the files that report it were closed."""
CONFIRMED = ["memory", "sighup"]
"""Faults whose category depends on the confirmation. By default, no other failures are confirmed."""

Cell = tuple[str, str]


def in_part(part: str) -> list[Cell]:
    """Return the cells of a place in a mode, `serial-call`, or the default cells of a mode, `serial`."""
    if part == "confirmed":
        return [("call", name) for name in CONFIRMED]
    mode, _, place = part.partition("-")
    if place:
        return [cell for cell in cells() if cell[0] == place]
    anywhere = {name: fault for name, fault in FAULTS.items() if not fault.only_conftest}
    hooks = [name for name in FAULTS if name not in anywhere]
    wanted = {("conftest", name) for name in hooks[list(MODES).index(mode) :: len(MODES)]}
    for hangs, turns in ((False, TURNS), (True, TURNS_OF_HANGS)):
        names = [name for name, fault in anywhere.items() if fault.hangs is hangs and name not in CONFIRMED]
        mine = [name for number, name in enumerate(names) if turns[number % len(turns)] == mode]
        wanted |= set(zip(itertools.cycle(PLACES), mine, strict=False))
    if mode == "serial":
        wanted |= ALL_FILES_CLOSED
    return [cell for cell in cells() if cell in wanted]


def parts() -> list[str]:
    return [f"{mode}-{place}" for mode in MODES for place in PLACES] if FULL else [*MODES, "confirmed"]


def name_of(cell: Cell) -> str:
    return "_".join(cell)


class Matrix:
    """One run of a plan with a todo for each cell, between two todos for healthy tests."""

    def __init__(self, example: Example, part: str) -> None:
        self.cells = in_part(part)
        example.write({"test_healthy.py": "def test_first(): pass\ndef test_last(): pass\n"})
        tests = {"first": ("test_healthy.py::test_first", LIMIT)}
        for cell in self.cells:
            example.write(files_of(*cell))
            tests[name_of(cell)] = (faulty_test(*cell), LIMIT_OF_HANGS if FAULTS[cell[1]].hangs else LIMIT)
        tests["last"] = ("test_healthy.py::test_last", LIMIT)
        example.plan(
            *(
                todo(name, {"cmd": f"pytest {test}", "timeout_seconds": limit})
                for name, (test, limit) in tests.items()
            )
        )
        self.limits = sum(limit for _, limit in tests.values())
        mode = part.partition("-")[0]
        options = (*MODES["workers"], "--planverify-confirm=1") if part == "confirmed" else MODES[mode]
        self.run: Verified = example.verify(
            *OPTIONS, *IN_FULL, *options, timeout_seconds=self.limits + 600, forked=False
        )

    def differences(self, what: str) -> dict[str, tuple[object, object]]:
        """Return, by cell, the expected and the actual value where they differ."""
        both = {name_of(cell): (_expected(cell, what), self._found(cell, what)) for cell in self.cells}
        return {name: pair for name, pair in both.items() if pair[0] is not None and pair[0] != pair[1]}

    def _found(self, cell: Cell, what: str) -> object:
        failure: dict[str, Any] = self.run.outcomes[name_of(cell)]["failure_evidence"] or {}
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
    """Return the expected value; ``None`` if the fault does not determine it."""
    place, name = cell
    fault = FAULTS[name]
    if what == "verdict" and place in fault.pytest_may_stumble:
        return None
    if what == "phase":
        if fault.category is None or fault.only_conftest or fault.late:
            return None
        return place if place in ("setup", "call", "teardown") else "collect"
    return getattr(fault, what) or (0 if what == "exit_code" and fault.exit_code == 0 else None)


@pytest.fixture(scope="module", params=parts())
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(Example(tmp_path_factory.mktemp(request.param)), request.param)


def test_every_fault_has_its_expected_verdict(matrix: Matrix):
    assert matrix.run.document is not None, str(matrix.run)
    assert matrix.differences("verdict") == {}, str(matrix.run)
    assert matrix.run.exit_code == 1


def test_every_fault_has_its_expected_diagnosis(matrix: Matrix):
    kinds = ("category", "phase", "signal", "exit_code", "leaves_a_stack")
    differences = {what: found for what in kinds if (found := matrix.differences(what))}
    # Before pytest 9.2 the last steps of a session raise an error if stdout is closed.
    earlier = {"category": {"import_close_stdout": ("TEST_CRASH", "TEST_REGRESSION")}}
    if pytest.version_tuple < (9, 2) and differences == earlier:
        differences = {}

    assert differences == {}, str(matrix.run)


def test_healthy_todos_keep_their_verdicts_despite_faults(matrix: Matrix):
    assert [matrix.run.verdicts[name] for name in ("first", "last")] == ["passed"] * 2, str(matrix.run)


def test_no_process_is_left(matrix: Matrix):
    assert matrix.run.left_running == ()


def test_the_run_with_faults_stays_within_its_time_limits(matrix: Matrix):
    assert matrix.run.document is not None, str(matrix.run)
    assert matrix.run.document["run"]["duration_ms"] / 1000 < matrix.limits + 60


PUT_IN_PLACE = """\
    import glob, os, pathlib, shutil
    (PATH,) = glob.glob(".planverify/runs/*/journal.jsonl")
    def test_pipe(): os.remove(PATH); os.mkfifo(PATH)
    def test_folder(): os.remove(PATH); os.mkdir(PATH)
    def test_link(): os.remove(PATH); os.symlink(os.path.abspath("data.txt"), PATH)
    def test_null(): os.remove(PATH); os.symlink("/dev/null", PATH)
    def test_run(): shutil.rmtree(os.path.dirname(PATH)); pathlib.Path(os.path.dirname(PATH)).touch()
    def test_all(): shutil.rmtree(".planverify"); os.symlink("nowhere", ".planverify")
    def test_outcomes(): os.makedirs(".planverify/outcomes.json/inside")
"""


def test_records_replaced_by_tests_change_no_verdict(tmp_path: Path):
    names = ("pipe", "folder", "link", "null", "run", "all", "outcomes")
    example = Example(tmp_path, {"test_it.py": PUT_IN_PLACE, "data.txt": "as it was", "healthy.py": ""})
    todos = (todo(name, f"pytest test_it.py::test_{name}") for name in names)
    example.plan(*todos, todo("healthy", "python healthy.py"), todo("last", "pytest test_it.py::test_null"))

    run = example.verify(*OPTIONS)

    assert set(run.verdicts.values()) == {"passed"}, str(run)
    assert (tmp_path / "data.txt").read_text() == "as it was"


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


def test_forged_or_removed_records_change_no_verdict(tmp_path: Path):
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
    names = ("forges", "red", "ends_its_parent", "truncates", "healthy")
    example.plan(*(todo(name, f"pytest test_{name}.py") for name in names))

    run = example.verify(*OPTIONS, forked=False)

    assert run.verdicts["forges"] == run.verdicts["red"] == "failed", str(run)
    assert run.verdicts["healthy"] == "passed", str(run)
    assert run.category("forges") == "TEST_CRASH"
    assert run.category("red") == "TEST_REGRESSION"
    assert run.category("truncates") == "HYGIENE_VIOLATION"
    assert run.category("ends_its_parent") == "TEST_CRASH"
    assert run.exit_code == 13
    assert run.left_running == ()
