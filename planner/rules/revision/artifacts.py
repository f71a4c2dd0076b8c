"""When a file is missing, or a test to be written: the branch is told which file it has to make."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.edits import NameArtifact
from planner.rules.criteria import commands_of
from planner.rules.editing.allowed_files import WILDCARDS
from planner.rules.revision.facts import check_ids, listed, observed, quoted
from planner.rules.revision.files import below_root, located_files
from planner.rules.revision.imports import missing_import
from planner.rules.revision.layout import module_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation

_PROBLEMS: dict[str, str] = {
    "missing": "does not exist",
    "no_match": "has no match",
    "empty": "is empty",
    "too_small": "is too small",
    "too_large": "is too large",
    "not_a_file": "is no file",
    "not_json": "is no JSON",
    "schema": "does not satisfy its schema",
    "sha256": "has another content than promised",
}
_NO_FILE = re.compile(r"No such file or directory:? '(?P<path>[^'\n]+)'")


def after_missing_artifact(situation: Situation) -> Iterator[Edit]:
    """Names the file in the branch's task."""
    branch = situation.branch
    if branch is None:
        return
    for wanted, why in _candidates(situation):
        fixed = _fixed_part(wanted)
        path = below_root(fixed)
        if path is None:
            continue
        yield NameArtifact(
            rule="artifact-named",
            because=f"{quoted(wanted)} {why}",
            todo_id=branch.id,
            path=path,
            hint=_hint(situation, wanted, why),
        )
        return


def _candidates(situation: Situation) -> Iterator[tuple[str, str]]:
    """Paths that may be the missing one, the surest first, each with what is wrong with it."""
    for observation in observed(situation):
        fact = observation.artifact
        if fact is not None:
            yield fact.path, _PROBLEMS.get(fact.problem, f"is not as the plan expects it: {fact.problem}")
        if observation.contract is not None and observation.contract.module_path:
            yield (
                observation.contract.module_path,
                f"is described by {observation.contract.path} and missing",
            )
    wanted = situation.todo.acceptance_criteria
    artifacts = {
        f"expected_artifacts[{index}]": each.path for index, each in enumerate(wanted.expected_artifacts)
    }
    for check_id in check_ids(situation):
        if check_id in artifacts:
            yield artifacts[check_id], f"is expected by {check_id} and missing"
    missing = missing_import(situation)
    module = None if missing is None or missing.is_node else module_file(situation, missing.module)
    if module is not None:
        yield module, "is imported and missing"
    found = _NO_FILE.search(situation.failure.stack_trace_head or "")
    if found is not None:
        yield found["path"], "is read and missing"
    for path in located_files(situation):
        yield path, "is where the failure is located"
    fixtures = {where: spec.fixture for where, spec in commands_of(situation.todo)}
    for check_id in check_ids(situation):
        if fixture := fixtures.get(check_id):
            yield fixture, f"is the data that {check_id} needs"


def _fixed_part(pattern: str) -> str:
    """A path as it is; of a glob, the folder before its first wildcard."""
    kept: list[str] = []
    for part in pattern.split("/"):
        if WILDCARDS & set(part):
            break
        kept.append(part)
    return "/".join(kept)


def _hint(situation: Situation, wanted: str, why: str) -> str:
    nearest = [
        name
        for observation in observed(situation)
        if observation.artifact is not None and observation.artifact.path == wanted
        for name in observation.artifact.nearest
    ]
    near = f" What looks like it: {listed(nearest)}." if nearest else ""
    form = "a file that matches " if WILDCARDS & set(wanted) else ""
    return f"Make {form}{quoted(wanted)}, which {why}.{near}"
