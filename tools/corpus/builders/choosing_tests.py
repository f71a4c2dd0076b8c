"""Choose the tests of a case: one or two that passed before and execute the fault."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from faults.fault import Fault, Kind
from faults.fault import Reach as Reached
from packages import Package
from probing import Prober

from planner.model.taxonomy import Repeatability

SUITE_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Coverage of the passing test suite."""

    passed: tuple[str, ...]
    """Node ids of the passing tests, in their order."""
    lines: Mapping[str, Mapping[int, tuple[str, ...]]]
    """Tests that execute a line, by product file and line."""

    def of(self, path: str, line: int) -> tuple[str, ...]:
        """Return the tests that execute a line."""
        return self.lines.get(path, {}).get(line, ())

    def users(self, path: str) -> tuple[str, ...]:
        """Return the tests that execute any line of a file."""
        return tuple(sorted({test for tests in self.lines.get(path, {}).values() for test in tests}))


def reach(package: Package, project: Path, prober: Prober, work: Path) -> Reach:
    """Return the coverage of a project's suite; it is stored in ``work`` and reused."""
    kept = work / "reach" / f"{package.name}-{package.version}.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(_measured(package, project, prober)), encoding="utf-8")
    found = json.loads(kept.read_text(encoding="utf-8"))
    passed = tuple(found["passed"])
    lines = {
        path: {int(line): tuple(passed[at] for at in tests) for line, tests in by_line.items()}
        for path, by_line in found["lines"].items()
    }
    return Reach(passed=passed, lines=lines)


def _measured(package: Package, project: Path, prober: Prober) -> dict[str, object]:
    answer = prober.ask(
        project, package.import_path, [package.tests], cover=[package.sources], timeout=SUITE_SECONDS
    )
    if answer.ended != "whole" or not answer.passed:
        raise RuntimeError(f"{package.name}: the suite did not run ({answer.ended}); see what it needs")
    number = {test: at for at, test in enumerate(answer.passed)}
    lines = {
        path: {
            str(line): sorted(number[test] for test in tests if test in number)
            for line, tests in sorted(by_line.items())
            if any(test in number for test in tests)
        }
        for path, by_line in sorted(answer.lines.items())
    }
    return {"passed": answer.passed, "lines": lines}


PROBED_TESTS = 10
LONGEST_ID = 110
SAFE_ID = re.compile(r"[\w./:\[\] ,=<>+*()-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A fault together with the tests that execute it."""

    fault: Fault
    tests: tuple[str, ...]
    executed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """Chooses tests of a package by coverage, and checks that they fail with a fault."""

    package: Package
    project: Path
    prober: Prober
    reach: Reach
    green: frozenset[str]

    def chosen(self, kind: Kind, fault: Fault, chance: random.Random) -> Chosen | None:
        """Return one or two tests that execute the fault, and fail."""
        candidates = [each for each in self._candidates(kind, fault) if self._usable(each)]
        if not candidates:
            return None
        wanted = chance.choice((1, 2))
        chance.shuffle(candidates)
        if kind.ends_process or kind.repeatability is not Repeatability.DETERMINISTIC:
            return Chosen(fault=fault, tests=tuple(candidates[:1]), executed=kind.reach is Reached.LINE)
        if kind.raises and kind.reach is not Reached.OWN:  # whoever meets it fails: nothing to find out
            return Chosen(fault=fault, tests=tuple(candidates[:wanted]), executed=None)
        probed = candidates[:PROBED_TESTS]
        answer = self.prober.ask(
            self.project, self.package.import_path, [*kind.options_for_probe, *probed], cover=[fault.path]
        )
        if answer.ended != "whole":
            return None
        failed = [test for test in probed if _is_failed(test, answer.failed, answer.passed)]
        if not failed:
            return None
        return Chosen(fault=fault, tests=tuple(failed[:wanted]), executed=_ran(answer.lines, fault))

    def _usable(self, test: str) -> bool:
        return test in self.green and len(test) <= LONGEST_ID and SAFE_ID.fullmatch(test) is not None

    def _candidates(self, kind: Kind, fault: Fault) -> list[str]:
        if kind.reach is Reached.LINE:
            return list(self.reach.of(fault.path, fault.runs or 0))
        if kind.reach is Reached.IMPORT:
            return list(self.reach.users(fault.path) or self.reach.passed)
        folder, _, file = fault.read_by.rpartition("/")
        whole = (
            folder
            if file in ("conftest.py", "__init__.py") or not file.startswith("test_")
            else fault.read_by
        )
        found = [test for test in self.reach.passed if test.startswith((f"{whole}/", f"{whole}::"))]
        return [test for test in found if not fault.tests or _function(test) in fault.tests]


def _function(test: str) -> str:
    return test.split("::")[-1].split("[")[0]


def _is_failed(test: str, failed: tuple[str, ...], passed: tuple[str, ...]) -> bool:
    """Return whether a test failed itself, or nothing of its file could be collected."""
    if test in passed and test not in failed:
        return False
    return test in failed or test.split("::")[0] in failed or not (failed or passed)


def _ran(lines: dict[str, dict[int, list[str]]], fault: Fault) -> bool:
    if fault.first_line is None:
        return True
    ran = lines.get(fault.path, {})
    return any(line in ran for line in range(fault.first_line, (fault.last_line or fault.first_line) + 1))
