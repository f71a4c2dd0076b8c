"""The failure report of one todo, ``diagnostics/{todo}_failure_report.json`` below the plan's root.

The report may be all that the repairing agent or person gets to see: the diagnosed failures with their
evidence, and excerpts of the source at the locations that these name. Text from the run is stripped of
secrets, control sequences and invisible characters; it remains untrusted.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from planner.errors import FileWriteError
from planner.model.outcome import (
    FAILURE_REPORT_VERSION,
    FailureReport,
    PlanRef,
    ReportedTodo,
    SourceExcerpt,
    evidence_of,
)
from planner.model.plan import Todo
from planner.planfile.file_writer import replace_file
from planner.planfile.project_files import Confinement, RootedFiles, open_regular
from planner.planfile.source_excerpts import read_excerpts
from planner.policy.outcomes import failures_of
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import Evidence
    from planner.model.outcome import Cause, Outcome
    from planner.planfile.loader import LoadedPlan

FOLDER = "diagnostics"
SUFFIX = "_failure_report.json"
IGNORED = f"""\
# Written by pytest-planverify, with the reports of failed todos; other files are not ignored.
/.gitignore
/*{SUFFIX}
"""
MOST_EVIDENCE = 20
"""Pieces of evidence for each failure; all tests that failed the same way are named in any case."""

_IDS = frozenset(("id", "todo_list_id", "run_id", "digest", "sha256", "signature", "signatures"))
"""Keys of identifiers for programs: they are cleaned of control characters, but never redacted."""


def failure_report(
    outcome: Outcome,
    evidence: Sequence[Evidence],
    *,
    plan: LoadedPlan,
    run_id: str | None = None,
    causes: Sequence[Cause] = (),
) -> dict[str, Any]:
    """Return the report as JSON data with the schema of :class:`FailureReport`.

    ``evidence`` is everything observed for the todo's failures, in any order; ``causes`` are those of the
    whole run, of which the relevant ones are selected.
    """
    todo = next(item for item in plan.plan.items if item.id == outcome.todo_id)
    spec, shared = todo.controller_task_spec, ReportedTodo.model_fields.keys() & Todo.model_fields.keys()
    failures = list(failures_of(outcome))
    files = RootedFiles(plan.root)
    # Not model_dump_json(), which refuses the names of files that are not UTF-8.
    facts = list({json.dumps(fact.model_dump(mode="json")): fact for fact in evidence}.values())
    shown: dict[int, Evidence] = {}
    excerpts: dict[tuple[str, int], SourceExcerpt] = {}
    for failure in failures:
        own_evidence = evidence_of(failure, tuple(facts))
        shown |= {id(fact): fact for fact in own_evidence[:MOST_EVIDENCE]}
        taken = set(map(id, own_evidence))  # by identity: comparing thousands of models takes seconds
        facts = [fact for fact in facts if id(fact) not in taken]
        for excerpt in read_excerpts(files, failure, own_evidence):
            excerpts.setdefault((excerpt.path, excerpt.first_line), excerpt)
    shown |= {id(fact): fact for fact in facts[:MOST_EVIDENCE]}  # what no failure rests on comes last
    signatures = {failure.signature for failure in failures if failure.signature}
    is_below = plan.path.is_relative_to(plan.root)
    place = plan.path.relative_to(plan.root).as_posix() if is_below else str(plan.path)
    report = FailureReport(
        run_id=run_id,
        plan=PlanRef(todo_list_id=plan.plan.todo_list_id, path=place, digest=plan.digest),
        todo=ReportedTodo(
            **{name: getattr(todo, name) for name in shared},
            target_file=spec.target_file if spec else None,
            hint=spec.hint if spec else None,
        ),
        state=outcome.state,
        checks=tuple(
            check.model_copy(update={"tests": tuple(test for test in check.tests if test.outcome.is_red)})
            for check in outcome.checks
        ),
        failures=tuple(failures),
        # These fields are inputs of the diagnosis; its result is in the candidates.
        evidence=tuple(fact.model_copy(update={"executed": (), "hunks": ()}) for fact in shown.values()),
        excerpts=tuple(excerpts.values()),
        causes=tuple(each for each in causes if not signatures.isdisjoint(each.signatures)),
    )
    # With defaults included, nulls and empty lists would be most of the file.
    data: dict[str, Any] = _cleaned(report.model_dump(mode="json", exclude_defaults=True))
    return {"schema_version": FAILURE_REPORT_VERSION, **data}


def write_failure_report(report: Mapping[str, Any], *, root: Path, name: str) -> Path:
    """Write the report, readable only by its owner. A folder created for it gets a ``.gitignore``.

    ``name`` is the todo's id as used in file names. Returns the path. Raises ``PlannerError`` if the file
    cannot be written.
    """
    folder = root / FOLDER
    if Confinement(root).fault(FOLDER):
        raise FileWriteError(f"{folder}: a symbolic link leads out of the plan's root; remove the link")
    if not folder.exists():
        replace_file(folder / ".gitignore", IGNORED, mode=None)
    target = folder / f"{name}{SUFFIX}"
    replace_file(target, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return target


def remove_failure_report(plan_id: str, outcome: Outcome, *, root: Path, name: str) -> None:
    """Remove the report of a todo that passes now, if it was written by this plugin for this plan and todo.

    Anything that is no such report, or cannot be read or removed, is left alone.
    """
    path = root / FOLDER / f"{name}{SUFFIX}"
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        with open_regular(path) as file:
            report: Any = json.load(file)
        if (report["plan"]["todo_list_id"], report["todo"]["id"]) == (plan_id, outcome.todo_id):
            path.unlink()


def _cleaned(value: Any, key: str = "") -> Any:
    """Return the data with control sequences, invisible characters and secrets removed from its texts."""
    if isinstance(value, str):
        return clean(value) if key in _IDS else redact(clean(value))
    if key == "argv":
        return _cleaned_words(value)
    if isinstance(value, list):
        return [_cleaned(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _cleaned(entry, key) for key, entry in cast("dict[str, Any]", value).items()}
    return value


def _cleaned_words(words: Sequence[str]) -> list[str]:
    """Return a command's words without secrets.

    A word is also redacted together with the option before it: the value of ``--token`` is a word of its
    own and shows only with the option that it is a secret.
    """
    shown: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        safe = redact(clean(word))
        option, given, value = redact(f"{before} {safe}").partition(f"{before} ")
        if before.startswith("-") and given and not option:
            safe = value
        shown.append(safe)
    return shown
