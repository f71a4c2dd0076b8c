"""Which tests of a package run which lines of it: found once by coverage contexts, and kept in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packages import Package
from probing import Prober

SUITE_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the green suite runs."""

    passed: tuple[str, ...]
    """Node ids of the tests that pass, in their order."""
    lines: Mapping[str, Mapping[int, tuple[str, ...]]]
    """Product file, line, and the tests that run it."""

    def of(self, path: str, line: int) -> tuple[str, ...]:
        """The tests that run a line."""
        return self.lines.get(path, {}).get(line, ())

    def users(self, path: str) -> tuple[str, ...]:
        """The tests that run any line of a file."""
        return tuple(sorted({test for tests in self.lines.get(path, {}).values() for test in tests}))


def reach(package: Package, project: Path, prober: Prober, work: Path) -> Reach:
    """What the suite of a green project runs; read from ``work`` where that was found before."""
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
