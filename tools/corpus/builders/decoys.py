"""Build the decoys: small projects whose failures resemble other kinds, or appear in an unusual form.

This program writes them into the recorded corpus and prints how many were accepted.
"""

from __future__ import annotations

import ast
import difflib
import json
import platform
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bundles import (
    DECOY_KINDS,
    Change,
    SmallProject,
    lay_out,
    place_of,
    small_projects,
    snippet,
    with_company,
)
from edits import changed_files, write_files
from recording import Recording, plan_of, record

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner, Repeatability
from tools.corpus.case import Case, Gates, Group, Label, Origin, Reading

KINDS = DECOY_KINDS
RUNS = 5
"""Number of attempts at a run."""
RED_RUNS = 3
"""Number of red runs that a failure needs unless it is flaky."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A decoy that was not accepted."""

    project: str
    kind: str
    why: str


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterable[Case]:
    """Make every decoy, or those of the kinds or projects in ``only``, and record its failure."""
    for result in attempts(work, seed, only):
        if isinstance(result, Case):
            yield result
        else:
            print(f"dropped: {result}", file=sys.stderr)


def attempts(work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case | Dropped]:
    """Yield the same, together with those that were not accepted."""
    for project in small_projects():
        wanted = [
            change for change in project.decoys if not only or project.name in only or change.kind in only
        ]
        red_before = _red_before(work / project.name / "before", project, wanted) if wanted else {}
        for number, change in enumerate(wanted):
            name = f"decoy-{project.name}-{case_name(project, change)}"
            if name in red_before:
                yield Dropped(project.name, change.kind, f"not green before: {red_before[name]}")
                continue
            yield _attempt(work / project.name / f"{number:02d}", project, change, seed)


def case_name(project: SmallProject, change: Change) -> str:
    """Return the kind, with a number if a project has several decoys of it."""
    same = [each for each in project.decoys if each.kind == change.kind]
    return change.kind if len(same) == 1 else f"{change.kind}-{same.index(change) + 1}"


def label_of(change: Change) -> Label:
    """Return the true diagnosis of the failure, without its place. Raises ``ValueError``."""
    category, owner = change.one("label").split()
    also: list[Reading] = []
    for text in change.all("also"):
        reading, _, why = text.partition(" because ")
        other, whose = reading.split()
        also.append(Reading(category=Category(other), owner=Owner(whose), why=why))
    repeatability = change.one("repeatability", "deterministic")
    return Label(
        category=Category(category),
        owner=Owner(owner),
        repeatability=None if repeatability == "none" else Repeatability(repeatability),
        also=tuple(also),
    )


def criteria_of(change: Change) -> dict[str, Any]:
    """Return the criterion that the fault makes fail."""
    command = change.one("run") or f"pytest {shlex.quote(change.one('test'))} -q"
    limit = change.one("limit")
    return {"tests": [{"cmd": command, **({"timeout_seconds": float(limit)} if limit else {})}]}


def recorded(
    folder: Path, plan: dict[str, Any], plugins: Iterable[str], confirmations: int = 3
) -> Recording:
    """Record a run; retry if there is none, as the code may be changing at the same time."""
    for _ in range(RUNS - 1):
        try:
            return record(folder, plan, plugins=plugins, confirmations=confirmations, timeout=600)
        except RuntimeError as error:
            print(f"once more: {str(error)[-300:]}", file=sys.stderr)
            time.sleep(20)
    return record(folder, plan, plugins=plugins, confirmations=confirmations, timeout=600)


def _red_before(folder: Path, project: SmallProject, changes: list[Change]) -> dict[str, str]:
    """Return the verdicts of decoys whose criterion does not pass on the committed state."""
    todos = {f"decoy-{project.name}-{case_name(project, each)}": criteria_of(each) for each in changes}
    lay_out(folder, project.files)
    plugins = {plugin for each in changes for plugin in _plugins(project, each)}
    recording = recorded(folder, plan_of(todos), sorted(plugins), confirmations=1)
    return {
        name: str(recording.outcomes.get(name, {}).get("state"))
        for name in todos
        if recording.outcomes.get(name, {}).get("state") != "done"
    }


def _attempt(folder: Path, project: SmallProject, change: Change, seed: int) -> Case | Dropped:
    name = case_name(project, change)
    plan = plan_of({"t": criteria_of(change)})
    committed = project.files | {"plan.json": json.dumps(plan, indent=1)}
    lay_out(folder, committed)
    files = changed_files(committed, change.edits)
    with_company(project, files, change.edits, random.Random(f"{seed}:{project.name}:{name}"))
    write_files(folder, files, committed)
    recording = recorded(folder, plan, _plugins(project, change))
    evidence = _chosen(recording, change)
    if evidence is None:
        return Dropped(project.name, name, f"no failure was recorded (exit {recording.exit_code})")
    label = label_of(change)
    red = 1 + sum(not each.passed for each in evidence.confirmations)
    runs = 1 + len(evidence.confirmations)
    if why := _not_as_said(label, change, evidence, red, runs):
        return Dropped(project.name, name, why)
    first = change.edits[0]
    place = place_of(first, files, exact=change.one("exact") == "yes")
    executed = _executed(folder, project, change, evidence, first.path)
    if executed is False:
        return Dropped(project.name, name, "the changed lines do not run")
    return Case(
        id=f"decoy-{project.name}-{name}",
        group=Group.DECOY,
        origin=Origin(
            package=project.name,
            kind=change.kind,
            seed=seed,
            file=first.path,
            line=place.first_line,
            before=snippet(first.before),
            after=snippet(first.after),
            command=criteria_of(change)["tests"][0]["cmd"],
            python=platform.python_version(),
            pytest=version("pytest"),
        ),
        gates=Gates(green_before=True, red_runs=red, runs=runs, executed=executed),
        label=label.model_copy(update={"place": place}),
        evidence=evidence,
    )


def _chosen(recording: Recording, change: Change) -> Evidence | None:
    """Return the failure of the test that the decoy names, else the first one."""
    test = change.one("test")
    exact = [each for each in recording.evidence if test and test in (each.nodeid, *each.tests)]
    near = [each for each in recording.evidence if test and (each.nodeid or "").startswith(test)]
    return next(iter([*exact, *near, *recording.evidence]), None)


def _not_as_said(label: Label, change: Change, evidence: Evidence, red: int, runs: int) -> str:
    """Return why a failure is not the one that the decoy announces, or an empty text."""
    repeatable = label.repeatability is Repeatability.DETERMINISTIC
    if repeatable and (red < runs or runs < RED_RUNS):
        return f"red {red} times of {runs}"
    if not repeatable and red == runs:
        return f"red each of {runs} times"
    if change.one("limit") and not evidence.timed_out:
        return "it passed no limit"
    if label.category is Category.TEST_CRASH and evidence.exceptions:
        return "the process did not end"
    return ""


def _executed(
    folder: Path, project: SmallProject, change: Change, evidence: Evidence, path: str
) -> bool | None:
    """Return whether a changed line is executed.

    ``None`` if there is no such line, or if the process ends before coverage is written.
    """
    if not path.endswith(".py") or change.one("executed") == "unknown":
        return None
    text = (folder / path).read_text(encoding="utf-8") if (folder / path).exists() else ""
    lines = _added_lines(project.files.get(path, ""), text)
    frames = [frame for each in evidence.exceptions for frame in each.frames]
    if any(frame.path == path and frame.line in lines for frame in frames):
        return True
    ran = _lines_run(folder, project, change).get(path)
    return None if ran is None or not lines else bool(lines & ran)


def _added_lines(before: str, after: str) -> set[int]:
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    spans = [(start, end) for tag, _, _, start, end in matcher.get_opcodes() if tag != "equal"]
    added = {line + 1 for start, end in spans for line in range(start, end) if new[line].strip()}
    return added | _statements(after, added)


def _statements(text: str, lines: set[int]) -> set[int]:
    """Return the first lines of the statements of these lines, since coverage reports these."""
    begin: dict[int, int] = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return set()
    compound = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, compound):
            spans = node.decorator_list
        else:
            spans = [node] if isinstance(node, ast.stmt) else []
        for span in spans:
            for line in range(span.lineno, (span.end_lineno or span.lineno) + 1):
                begin[line] = max(span.lineno, begin.get(line, 0))
    return {begin[line] for line in lines if line in begin}


def _lines_run(folder: Path, project: SmallProject, change: Change) -> dict[str, set[int]]:
    """Return the lines that the criterion's command executes, by file; empty if coverage is unknown."""
    words = shlex.split(criteria_of(change)["tests"][0]["cmd"])[1:]
    plugins = [word for name in _plugins(project, change) if name != "xdist" for word in ("-p", name)]
    words = [word for word in words if word not in ("-n", "2", "-n2")]
    python = [sys.executable, "-m", "coverage"]
    run = [*python, "run", "--data-file=.coverage-of-corpus", "--source=.", "-m", "pytest"]
    try:
        subprocess.run([*run, *plugins, *words], cwd=folder, capture_output=True, timeout=20, env=_bare())
        told = subprocess.run(
            [*python, "json", "--data-file=.coverage-of-corpus", "-o", "-", "-q"],
            cwd=folder,
            capture_output=True,
            env=_bare(),
        )
        found = json.loads(told.stdout)["files"]
    except (subprocess.TimeoutExpired, ValueError):
        return {}
    return {path: set(each["executed_lines"]) for path, each in found.items()}


def _bare() -> dict[str, str]:
    return {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


def _plugins(project: SmallProject, change: Change) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*project.plugins, *change.one("plugins").split()]))
