"""Faults that end, stop or block a process, at every place: the run continues and reports them.

By default a sample of the cells runs, with every fault, and with every place in each mode. With
``PLANVERIFY_TESTS=full`` all cells run, in twenty parts, of which ``-k serial-call`` selects one.
"""

from __future__ import annotations

import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from fault_projects import FAULTS, PLACES, cells, faulty_test, files_of, files_with, healthy_test
from real_command import FULL, Finished

MODES = {
    "serial": (),
    "workers": ("-p", "xdist", "-n2"),
    "isolated": ("--planverify-isolate",),
}
MORE_MODES = {"worksteal": ("-p", "xdist", "-n2", "--dist=worksteal")}
OPTIONS = ("-p", "pytest_timeout", "--planverify-confirm=1")
UNCONFIRMED = () if FULL else ("--planverify-confirm=0",)
"""By default, only failures with workers of xdist are confirmed."""
TURNS = ("serial", "isolated", "workers", "serial", "serial")
"""Modes to which faults are assigned in turn by default; cold workers and those of xdist cost most."""
LIMIT, LIMIT_OF_HANGS, LIMIT_OF_COLD_HANGS = 20, 1, 2
ALL_FILES_CLOSED = {("setup", "close_all"), ("teardown", "close_files")}
"""Cells whose failed phase is reported although the files that report it were closed."""
CONFIRMED = {("call", "memory"), ("conftest", "sighup")}
"""Cells whose category depends on the confirmation."""

Cell = tuple[str, str]


def in_part(part: str) -> list[Cell]:
    """Return the cells of a place in a mode, `serial-call`, or the default cells of a mode, `serial`."""
    mode, _, place = part.partition("-")
    if place:
        return [cell for cell in cells() if cell[0] == place]
    shift = list(MODES).index(mode)
    wanted: set[Cell] = set()
    for hangs in (False, True):
        names = [name for name, each in FAULTS.items() if each.hangs is hangs and not each.only_conftest]
        mine = [name for number, name in enumerate(names) if TURNS[number % len(TURNS)] == mode]
        wanted |= {(PLACES[(number + shift) % len(PLACES)], name) for number, name in enumerate(mine)}
    hooks = [name for name, fault in FAULTS.items() if fault.only_conftest][shift :: len(MODES)]
    if mode == "serial":
        wanted |= ALL_FILES_CLOSED
    wanted = wanted | CONFIRMED if mode == "workers" else wanted - CONFIRMED
    return [cell for cell in cells() if cell in wanted or cell in {("conftest", name) for name in hooks}]


def parts() -> list[str]:
    if not FULL:
        return list(MODES)
    return [f"{mode}-{place}" for mode in MODES | MORE_MODES for place in PLACES]


def name_of(cell: Cell) -> str:
    return "_".join(cell)


def limited(name: str, test: str, seconds: int = LIMIT) -> dict[str, Any]:
    return todo(name, {"cmd": f"pytest {test}", "timeout_seconds": seconds})


class Matrix:
    """One run of a plan with a todo for each cell, and with todos for healthy tests."""

    def __init__(self, example: Example, part: str) -> None:
        self.cells = in_part(part)
        example.write({"test_healthy.py": "def test_first(): pass\ndef test_last(): pass\n"})
        todos = [limited("first", "test_healthy.py::test_first")]
        of_hangs = LIMIT_OF_COLD_HANGS if part.startswith("isolated") else LIMIT_OF_HANGS
        for cell in self.cells:
            limit = of_hangs if FAULTS[cell[1]].hangs else LIMIT
            example.write(files_of(*cell))
            todos.append(limited(name_of(cell), faulty_test(*cell), limit))
            beside = healthy_test(*cell)
            if beside and part != "isolated":  # where no other test is in the process with the fault
                todos.append(limited(f"beside_{name_of(cell)}", beside))
        todos.append(limited("last", "test_healthy.py::test_last"))
        example.plan(*todos)
        faulty = {name_of(cell) for cell in self.cells}
        self.bystanders = [each["id"] for each in todos if each["id"] not in faulty]
        self.limits = sum(each["acceptance_criteria"]["tests"][0]["timeout_seconds"] for each in todos)
        mode = (MODES | MORE_MODES)[part.partition("-")[0]]
        confirmation = () if part == "workers" else UNCONFIRMED
        self.run: Verified = example.verify(
            *OPTIONS, *confirmation, *mode, timeout_seconds=self.limits + 600, measured=part == "serial"
        )

    def failure(self, cell: Cell) -> dict[str, Any]:
        """Return the failure evidence of a cell from the outcome file; empty if there is none."""
        return self.run.outcomes[name_of(cell)]["failure_evidence"] or {}

    def differences(self, what: str) -> dict[str, tuple[object, object]]:
        """Return, by cell, the expected and the actual value where they differ."""
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


@pytest.mark.parametrize("what", ["category", "phase", "signal", "exit_code", "leaves_a_stack"])
def test_every_fault_has_its_expected_diagnosis(what: str, matrix: Matrix):
    assert matrix.differences(what) == {}, str(matrix.run)


def test_healthy_todos_keep_their_verdicts_despite_faults(matrix: Matrix):
    verdicts = {name: matrix.run.verdicts[name] for name in matrix.bystanders}

    assert verdicts == dict.fromkeys(matrix.bystanders, "passed"), str(matrix.run)


def test_no_process_is_left(matrix: Matrix):
    assert not matrix.run.left_running


def test_the_run_with_faults_stays_within_its_time_limits(matrix: Matrix):
    assert matrix.run.document is not None, str(matrix.run)
    assert matrix.run.document["run"]["duration_ms"] / 1000 < matrix.limits + 60


STARTS = "import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(600)"


@pytest.mark.skipif(
    not FULL, reason="by default the call is enough, which test_interrupted_runs.py looks at"
)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_in_any_phase_ends_the_run_and_keeps_its_verdicts(
    mode: str, place: str, tmp_path: Path
):
    files = {**files_with(STARTS, place, "interrupted"), "test_healthy.py": "def test_it(): pass\n"}
    example = Example(tmp_path, files)
    slow = limited("slow", faulty_test(place, "interrupted"), 300)
    example.plan(limited("healthy", "test_healthy.py"), slow)
    mark = uuid.uuid4().hex
    process = example.start(*OPTIONS, *MODES[mode], mark=mark)
    while not (tmp_path / "started").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)

    run = example.verified(Finished(exit_code=process.returncode, output=output), mark)
    assert run.exit_code == 2, str(run)
    assert run.verdicts["slow"] == "not_run", str(run)
    assert run.verdicts["healthy"] in ("passed", "not_run"), str(run)
    assert not run.left_running


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

    run = example.verify("--planverify-isolate", *OPTIONS)

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

    run = example.verify(*OPTIONS)

    assert run.verdicts["forges"] == run.verdicts["red"] == "failed", str(run)
    assert run.verdicts["healthy"] == "passed", str(run)
    assert run.category("forges") == "TEST_CRASH"
    assert run.category("red") == "TEST_REGRESSION"
    assert run.category("truncates") == "HYGIENE_VIOLATION"
    assert run.category("ends_its_parent") == "TEST_CRASH"
    assert run.exit_code == 13
    assert not run.left_running
