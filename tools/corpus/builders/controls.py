"""Build the honest controls: good changes of small projects, for which a run must report no violation.

This program writes them into the recorded corpus and prints what was flagged.
"""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bundles import (
    CONTROL_KINDS,
    Change,
    SmallProject,
    lay_out,
    small_projects,
    snippet,
)
from decoys import Dropped, recorded
from edits import changed_files, write_files
from recording import KEPT_VARIABLES, Recording, plan_of

from tools.corpus.case import Case, Gates, Group, Origin

KINDS = CONTROL_KINDS


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterable[Case]:
    """Make every honest change, or those of ``only``, and record what was reported against it."""
    for result in attempts(work, seed, only):
        if isinstance(result, Case):
            yield result
        else:
            print(f"dropped: {result}", file=sys.stderr)


def attempts(work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case | Dropped]:
    """Yield the same, together with the changes that break the tests by themselves."""
    for project in small_projects():
        for number, change in enumerate(project.controls):
            if not only or project.name in only or change.kind in only:
                yield _attempt(work / project.name / f"control-{number:02d}", project, change, seed)


def granted(project: SmallProject, change: Change) -> tuple[str, ...]:
    """Return globs of the permitted changes; empty for no limit.

    These are the named ones, or product files, with test files if needed.
    """
    if named := change.one("grant").split():
        return () if named == ["none"] else tuple(named)
    product_only = all(_is_in(edit.path, project.product) for edit in change.edits)
    return project.product if product_only else (*project.product, *project.tests, "**/conftest.py")


def _is_in(path: str, globs: Collection[str]) -> bool:
    return any(fnmatch.fnmatch(path, glob) for glob in globs)


def _attempt(folder: Path, project: SmallProject, change: Change, seed: int) -> Case | Dropped:
    plan = _plan(project, change)
    committed = project.files | {"plan.json": json.dumps(plan, indent=1)}
    lay_out(folder, committed)
    if not _is_green(folder, project):
        return Dropped(project.name, change.kind, "not green before")
    if change.one("baseline") != "no":
        _make_baseline(folder)
    write_files(folder, changed_files(committed, change.edits), committed)
    if not _is_green(folder, project):
        return Dropped(project.name, change.kind, "the change breaks the tests")
    recording = recorded(folder, plan, ())
    first = change.edits[0]
    return Case(
        id=f"control-{project.name}-{change.kind}",
        group=Group.CONTROL,
        origin=Origin(
            package=project.name,
            kind=change.kind,
            seed=seed,
            file=first.path,
            before=snippet(first.before),
            after=snippet(first.after),
            command=_command(project),
            python=platform.python_version(),
            pytest=version("pytest"),
        ),
        gates=Gates(green_before=True, red_runs=0, runs=1),
        evidence=next(iter(recording.evidence), None),
        flagged=tuple(_flags(recording)),
    )


def _plan(project: SmallProject, change: Change) -> dict[str, Any]:
    """Return a plan that permits the change."""
    plan = plan_of({"work": {"tests": [{"cmd": _command(project)}]}})
    if allowed := granted(project, change):
        plan["items"][0]["allowed_files"] = list(allowed)
    return plan


def _command(project: SmallProject) -> str:
    """Return the command of the suite with its plugins, as no other plugin is loaded."""
    words = project.suite.split()
    return " ".join([words[0], *(word for name in project.plugins for word in ("-p", name)), *words[1:]])


def _flags(recording: Recording) -> Iterator[str]:
    """Yield everything that a run reported against the change."""
    if recording.exit_code:
        yield f"exit status {recording.exit_code}"
    for todo, outcome in sorted(recording.outcomes.items()):
        for check in outcome["checks"]:
            if check["verdict"] != "passed":
                yield f"{todo} {check['kind']} {check['verdict']}: {check.get('reason') or ''}".rstrip(": ")
    for evidence in recording.evidence:
        for signal in evidence.signals:
            yield f"{signal.sign} {signal.message}"
        yield from (f"outside what is granted: {path}" for path in evidence.outside)


def _is_green(folder: Path, project: SmallProject) -> bool:
    """Return whether plain pytest passes."""
    words = ["-p" + name for name in project.plugins]
    command = shlex.split(project.suite)
    done = subprocess.run(
        [sys.executable, "-m", *command, *words], cwd=folder, env=_environment(), capture_output=True
    )
    return done.returncode == 0


def _make_baseline(folder: Path) -> None:
    planverify = Path(sys.executable).with_name("planverify")
    done = subprocess.run(
        [planverify, "baseline", "plan.json"],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{folder}: there is no baseline: {done.stdout[-500:]}{done.stderr[-500:]}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
