"""Measure commands: wall and processor time, peak memory of a process tree; print figures and targets."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_SECONDS = 0.02
"""Interval at which the memory of a process tree is sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to measure, with a check that it did its work."""

    argv: Sequence[str]
    cwd: Path
    check: Callable[[str], None]
    """Receives the output of the command; raises ``AssertionError`` if the work was not done."""
    exit_code: int = 0
    repeat: Sequence[Sequence[str]] = ()
    """Further argument vectors of the command, run one after the other."""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Peaks in MiB."""

    tree_mib: float
    """Highest sum of the proportional set sizes of all processes of the tree at one moment."""
    largest_mib: float
    """Highest resident set of any process of the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one run, in seconds."""

    wall: float
    cpu: float
    """User and system time of the command and of all processes that it started and waited for."""


class Pairs:
    """Runs of several commands, one of each in every round, which are compared round by round.

    A temporary slowdown of the machine affects all runs of a round alike, so the ratio is steadier than
    that of two medians.
    """

    def __init__(self, costs: Mapping[str, Sequence[Cost]]) -> None:
        self._costs = costs

    def ratio(self, ours: str, theirs: str, *, what: str = "cpu") -> float:
        """Return the median over the rounds of the ratio of the costs of two commands."""
        return statistics.median(a / b for a, b in zip(*self._both(ours, theirs, what), strict=True))

    def difference(self, ours: str, theirs: str, *, what: str = "cpu") -> float:
        """Return the median over the rounds of the difference of the costs of two commands, in seconds."""
        return statistics.median(a - b for a, b in zip(*self._both(ours, theirs, what), strict=True))

    def median(self, name: str, *, what: str = "cpu") -> float:
        """Return the median over the rounds of the cost of one command, in seconds."""
        return statistics.median(self._of(name, what))

    def medians(self, *, what: str = "wall") -> dict[str, float]:
        """Return the median over the rounds of the cost of each command, in seconds."""
        return {name: self.median(name, what=what) for name in self._costs}

    def raw(self, *, what: str = "cpu", unit_ms: bool = False) -> str:
        """Return the medians of all commands as text, to print beside a figure."""
        return f"{what} " + ", ".join(
            f"{name} {value * 1e3:.0f} ms" if unit_ms else f"{name} {value:.2f} s"
            for name, value in self.medians(what=what).items()
        )

    def _both(self, ours: str, theirs: str, what: str) -> tuple[list[float], list[float]]:
        return self._of(ours, what), self._of(theirs, what)

    def _of(self, name: str, what: str) -> list[float]:
        return [getattr(cost, what) for cost in self._costs[name]]


def paired(commands: Mapping[str, Command], rounds: int) -> Pairs:
    """Run each command once in every round, in an order that is reversed after each round.

    An unmeasured run comes first, which compiles and fills caches.
    """
    for command in commands.values():
        command.check(_run(command, command.argv))
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds):
        names = list(commands)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            costs[name].append(cost_of(commands[name]))
    return Pairs(costs)


def cost_of(command: Command) -> Cost:
    """Run the command and its repetitions once. Raises ``AssertionError`` if its work was not done."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    outputs = [_run(command, argv) for argv in (command.argv, *command.repeat)]
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for output in outputs:
        command.check(output)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall=wall, cpu=cpu)


def peak_memory(command: Command) -> Memory:
    """Run the command once, and sample its memory, which slows it down: never time the same run."""
    with subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env=environment(command.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        watch = _TreeWatch(process.pid)
        watch.start()
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watch.stop()
    _expect(command, process.returncode, output)
    command.check(output)
    largest_kib = max(watch.largest_kib, usage.ru_maxrss)
    return Memory(tree_mib=watch.peak_kib / 1024, largest_mib=largest_kib / 1024)


def python(*args: str) -> list[str]:
    """Return an argument vector that starts the running interpreter."""
    return [sys.executable, *args]


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that would change the cost of a command."""
    unwanted = ("PYTEST_", "COVERAGE_", "COV_", "PYTHONDONTWRITEBYTECODE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**inherited, "NO_COLOR": "1", **added}


def expect_in(text: str, output: str) -> None:
    """Raise ``AssertionError`` unless the output of a command contains the text."""
    assert text in output, output[-2000:]


def expect_nothing(output: str) -> None:
    """Accept any output, of a command whose exit status is enough."""


class _TreeWatch(threading.Thread):
    """Sample the memory of a process and all its descendants until stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._done = threading.Event()
        self.peak_kib = 0
        self.largest_kib = 0

    def run(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            sizes = [_sizes_kib(pid) for pid in _tree(self._pid)]
            self.peak_kib = max(self.peak_kib, sum(pss for pss, _ in sizes))
            self.largest_kib = max(self.largest_kib, *(rss for _, rss in sizes), 0)

    def stop(self) -> None:
        self._done.set()
        self.join()


def _tree(root: int) -> list[int]:
    pids = [root]
    for pid in pids:
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (thread / "children").read_text().split())
        except OSError:  # it ended while we were looking
            continue
    return pids


def _sizes_kib(pid: int) -> tuple[int, int]:
    """Return the proportional and the resident set size."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0, 0
    values = {line.split(":")[0]: line.split()[1] for line in text.splitlines()[1:]}
    return int(values.get("Pss", 0)), int(values.get("Rss", 0))


def _run(command: Command, argv: Sequence[str]) -> str:
    done = subprocess.run(
        argv,
        cwd=command.cwd,
        env=environment(command.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    _expect(command, done.returncode, done.stdout)
    return done.stdout


def _expect(command: Command, code: int, output: str) -> None:
    assert code == command.exit_code, f"{' '.join(command.argv)} ended with {code}:\n{output[-3000:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure with its bounds."""

    name: str
    figure: float
    unit: str
    """``x``, ``s``, ``ms``, ``us``, ``MiB``, or percentage ``points``."""
    at_most: float | None = None
    at_least: float | None = None
    from_what: str = ""
    """The raw measurements from which the figure is computed."""

    @property
    def met(self) -> bool:
        """Return whether the figure is within its bounds; a row without bounds is information only."""
        return (self.at_most is None or self.figure <= self.at_most) and (
            self.at_least is None or self.figure >= self.at_least
        )

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"<= {_number(self.at_most, self.unit)}"
        if self.at_least is not None:
            return f">= {_number(self.at_least, self.unit)}"
        return "-"


def render(rows: Sequence[Row]) -> str:
    """Return a plain table, one row per line."""
    header = ("what", "figure", "target", "met", "from")
    lines = [
        (
            row.name,
            _number(row.figure, row.unit),
            row.target,
            "-" if row.target == "-" else ("yes" if row.met else "NO"),
            row.from_what,
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, tuple("-" * width for width in widths), *lines)
    )


def _number(value: float, unit: str) -> str:
    digits = 2 if unit == "x" else 1
    return f"{value:.{digits}f} {unit}"
