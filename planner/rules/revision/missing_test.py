"""When a command names no test: name the one that was meant, with approval, or write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.edits import NameArtifact, RetargetCheck
from planner.model.taxonomy import Owner
from planner.rules.criteria import commands_of
from planner.rules.revision.facts import check_ids, judging_command, observed, quoted, understood
from planner.rules.revision.files import below_root, located_files
from planner.rules.revision.isolating import with_selections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.model.evidence import Selector
    from planner.rules.revision.situation import Situation

_MISSING = ("missing_file", "missing_id")
_NOT_PROVING = ("all-skipped", "only-expected-failures")
"""Rules of a diagnosis that say: the tests are there, and none of them proves anything."""


def after_missing_test(situation: Situation) -> Iterator[Edit]:
    """Proposes the near name for the todo's command; tells the branch where the test belongs."""
    if situation.failure.owner is Owner.ENVIRONMENT:
        return  # the tests are there and cannot run on this machine
    yield from _retarget(situation)
    yield from _write(situation)


def near_selection(selector: Selector) -> str | None:
    """The existing selection that was probably meant; never one that selects more."""
    near = selector.nearest[0] if selector.nearest else None
    if near is None or selector.problem not in _MISSING:
        return None
    path, colons, name = selector.text.partition("::")
    if selector.problem == "missing_file":
        folder, slash, file = path.rpartition("/")
        # The names are those beside the missing file; a folder, or the same name elsewhere, is not meant.
        if (
            "/" in near
            or near == file
            or near.rpartition(".")[2] != file.rpartition(".")[2]
            or "." not in near
        ):
            return None
        return f"{folder}{slash}{near}{colons}{name}"
    other, _, other_name = near.partition("::")
    if other != path or not other_name or ("[" in name and "[" not in other_name):
        return None
    is_function = other_name.rpartition("::")[2].startswith("test")
    return near if is_function or other_name.count("::") >= name.count("::") else None


def _retarget(situation: Situation) -> Iterator[RetargetCheck]:
    problems = [selector for each in observed(situation) for selector in each.selectors]
    named = {where: spec.cmd for where, spec in commands_of(situation.todo) if "verify[" not in where}
    for check_id in check_ids(situation):
        command = understood(named.get(check_id, ""))
        if command is None or command.pytest is None or command.pytest.guessed:
            continue
        selections = command.pytest.selections
        missing = {each.text: near_selection(each) for each in problems if each.text in selections}
        near = [missing.get(each, each) for each in selections]
        usable = [each for each in near if each is not None]
        if not missing or len(usable) < len(near):
            continue
        cmd = with_selections(command, usable)
        if cmd is None or any(below_root(each.partition("::")[0]) is None for each in usable):
            continue
        pairs = ", ".join(
            f"{quoted(old)} is not there, {quoted(new or '')} is" for old, new in missing.items()
        )
        yield RetargetCheck(
            rule="missing-test-retargets",
            because=pairs,
            requires_approval=True,
            todo_id=situation.todo.id,
            check_id=check_id,
            from_cmd=named[check_id],
            to_cmd=cmd,
        )


def _write(situation: Situation) -> Iterator[NameArtifact]:
    branch = situation.branch
    if branch is None:
        return
    for selection in _named_selections(situation):
        file = below_root(selection.partition("::")[0])
        if file is None or not file.rpartition("/")[2].count("."):
            continue
        yield NameArtifact(
            rule="missing-test-written",
            because=f"{quoted(selection)} proves nothing yet",
            todo_id=branch.id,
            path=file,
            hint=_hint(situation, selection),
        )
        return


def _hint(situation: Situation, selection: str) -> str:
    failure = situation.failure
    said = quoted(failure.suggestion or failure.stack_trace_head or "")
    if failure.rule in _NOT_PROVING:
        return f"Let a test of {quoted(selection)} run that fails while the work is undone. {said}".strip()
    return f"Write what {quoted(selection)} names, to fail while the work is undone. {said}".strip()


def _named_selections(situation: Situation) -> Iterator[str]:
    """What the failing commands select, what is missing in front."""
    for each in observed(situation):
        yield from (selector.text for selector in each.selectors if selector.problem in _MISSING)
    located = located_files(situation)
    specs = [judging_command(situation, check_id) for check_id in check_ids(situation)]
    commands = [understood(spec.cmd) for spec in specs if spec is not None]
    selections = [
        text for each in commands if each is not None and each.pytest for text in each.pytest.selections
    ]
    for text in selections:
        if text.partition("::")[0] in located:
            yield text
    yield from located
    yield from selections
