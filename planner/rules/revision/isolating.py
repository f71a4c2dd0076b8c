"""Isolation: commands that run the failing tests only, otherwise as the criteria run them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.catalog.splitting import MAX_COMMAND_LENGTH
from planner.model.edits import Isolate
from planner.rules.criteria import commands_of
from planner.rules.revision.facts import (
    check_ids,
    failing_tests,
    judging_command,
    listed,
    understood,
)
from planner.rules.revision.files import below_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.catalog import Command
    from planner.model.outcome import Check
    from planner.model.plan import CommandSpec
    from planner.rules.revision.situation import Situation

MAX_IDS = 20
"""Of more failing tests their files are run."""

_WHOLE = frozenset(
    {"--lf", "--last-failed", "--sw", "--stepwise", "--pyargs", "--cov-fail-under", "--json-report-omit"}
    | {"--collect-only", "--collectonly", "--co", "--looponfail", "-f"}
)
"""With these a command means something else, or cannot pass, when fewer tests are named."""


def isolate(situation: Situation, *, rule: str, why: str, keeps: tuple[str, ...] = ()) -> Iterator[Isolate]:
    """The edit that leaves the branch the failing tests; none where no command is known to show them."""
    branch = situation.branch
    if branch is None:
        return
    tests = failing_commands(situation)
    if tests:
        names = failing_tests(situation)
        because = f"{why}: {listed(names or [spec.cmd for spec in tests])}"
        yield Isolate(rule=rule, because=because, todo_id=branch.id, tests=tests, keeps=keeps)


def isolate_company(situation: Situation, *, rule: str, why: str) -> Iterator[Isolate]:
    """The edit that leaves the branch all tests of the todo and nothing else.

    A test that is red only in company would be green without it, and prove nothing.
    """
    branch = situation.branch
    named = [spec for _, spec in commands_of(situation.todo)]
    given = [judging_command(situation, check_id) for check_id in check_ids(situation)]
    specs = named or [spec for spec in given if spec is not None]
    tests = tuple(spec for spec in specs if (run := understood(spec.cmd)) is not None and run.pytest)
    if branch is not None and tests:
        because = f"{why}: {listed(failing_tests(situation) or [spec.cmd for spec in tests])}"
        yield Isolate(rule=rule, because=because, todo_id=branch.id, tests=tests)


def failing_commands(situation: Situation) -> tuple[CommandSpec, ...]:
    """The commands that run the failing tests and nothing else."""
    wanted = failing_tests(situation)
    found: dict[str, CommandSpec] = {}
    for check_id, own in _showing(situation, wanted):
        spec = judging_command(situation, check_id)
        if spec is not None:
            spec = narrowed_command(spec, own)
            found.setdefault(spec.cmd, spec)
    return tuple(found.values())


def narrowed_command(spec: CommandSpec, nodeids: Sequence[str]) -> CommandSpec:
    """A criterion's command with only these tests; as it was, where they cannot be named in it."""
    command = understood(spec.cmd)
    if command is None or command.pytest is None or command.pytest.guessed:
        return spec
    if _WHOLE & {word.partition("=")[0] for word in command.pytest.args}:
        return spec
    chosen = [name for name in (_fitted(nodeid, command) for nodeid in nodeids) if name is not None]
    if len(chosen) > MAX_IDS:
        chosen = _files(chosen, command)
    cmd = with_selections(command, chosen) if chosen else None
    if cmd is None and chosen:
        files = _files(chosen, command)
        cmd = with_selections(command, files) if files else None
    return spec if cmd is None or cmd == spec.cmd else spec.model_copy(update={"cmd": cmd})


def with_selections(command: Command, selections: Sequence[str]) -> str | None:
    """A pytest command with other selections; ``None`` where it would not mean just that."""
    run = command.pytest
    assert run is not None
    for rest in _without(run.args, run.selections):
        variables = [f"{name}={shlex.quote(value)}" for name, value in command.env]
        words = [shlex.quote(word) for word in (*run.launcher, *selections, *rest)]
        text = " ".join((*variables, *words))
        if len(text) <= MAX_COMMAND_LENGTH and _means(text, command, selections):
            return text
    return None


def _showing(situation: Situation, wanted: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """The criteria in which the tests fail, each with those of the tests that are its own."""
    ids = check_ids(situation)
    checks = {check.id: check for check in situation.outcome.checks}
    shown = [check for check in checks.values() if check.id in ids or _own(check, wanted)]
    for check in shown:
        yield check.id, _own(check, wanted) or ([] if check.tests else wanted)
    for check_id in ids:
        if check_id not in checks:
            yield check_id, wanted
    if not shown and not ids:
        red = [check.id for check in checks.values() if check.counts_as.is_red and check.cmd]
        for check_id in red or _selecting(situation, wanted):
            yield check_id, wanted


def _selecting(situation: Situation, wanted: Sequence[str]) -> list[str]:
    """The criteria whose commands select one of the tests, for an outcome that names no criterion."""
    commands = {where: understood(spec.cmd) for where, spec in commands_of(situation.todo)}
    return [
        where
        for where, command in commands.items()
        if command is not None
        and command.pytest is not None
        and any(_fitted(nodeid, command) for nodeid in wanted)
    ]


def _own(check: Check, wanted: Sequence[str]) -> list[str]:
    names = {test.nodeid for test in check.tests}
    return [name for name in wanted if name in names]


def _fitted(nodeid: str, command: Command) -> str | None:
    """A node id as the command would have to name it; ``None`` where it selects no such file."""
    path, colons, name = nodeid.partition("::")
    assert command.pytest is not None
    if below_root(path) != path or not colons:
        return None
    selections = [_path_of(selection) for selection in command.pytest.selections]
    for selected in selections:
        if selected in ("", ".", path) or path.startswith(f"{selected}/"):
            return nodeid
    for selected in selections:
        if selected.endswith(f"/{path}"):  # told relative to the folder of the tests
            return f"{selected}::{name}"
    return None if selections else nodeid


def _path_of(selection: str) -> str:
    return selection.partition("::")[0].removeprefix("./").rstrip("/")


def _files(nodeids: Sequence[str], command: Command) -> list[str]:
    """The files of the tests, unless the command selects less than those."""
    files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in nodeids))
    assert command.pytest is not None
    single = {_path_of(each) for each in command.pytest.selections if "::" in each}
    return [] if single & set(files) or len(files) > MAX_IDS else files


def _without(args: Sequence[str], selections: Sequence[str]) -> Iterator[list[str]]:
    """The arguments without the selections, taken out from the front or from the back.

    Only one of the two may be right where a selection is also the value of an option.
    """
    for backwards in (False, True):
        words, gone = (args[::-1], selections[::-1]) if backwards else (args, selections)
        rest: list[str] = []
        at = 0
        for word in words:
            if at < len(gone) and word == gone[at]:
                at += 1
            elif word != "--":
                rest.append(word)
        yield rest[::-1] if backwards else rest


def _means(text: str, command: Command, selections: Sequence[str]) -> bool:
    """Whether a command differs from another in its selections only."""
    parsed = understood(text)
    if parsed is None or parsed.pytest is None or command.pytest is None or parsed.env != command.env:
        return False
    new, old = parsed.pytest, command.pytest
    return new.selections == tuple(selections) and all(
        getattr(new, name) == getattr(old, name)
        for name in (
            "launcher",
            "foreign",
            "as_module",
            "keyword",
            "markexpr",
            "deselect",
            "options",
            "option_paths",
            "alone",
            "guessed",
        )
    )
