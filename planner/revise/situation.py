"""Input of a revision strategy: a failed todo, its failure, and the branch created for it.

All of it is derived from the plan, the outcome and the recorded evidence; no file is read. Outcome files
are untrusted, so paths are checked (:func:`below_root`) and texts are quoted. A command that is derived
from one of the plan is parsed again and must mean exactly what was intended; otherwise there is none.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.brief.instructions import NOTHING, EditScope, module_paths, scope_of
from planner.catalog import TOOLS
from planner.catalog.commands import accepted_command
from planner.catalog.pytest_arguments import split_options
from planner.catalog.test_paths import is_test_path
from planner.model.outcome import evidence_of
from planner.model.plan import DEFAULT_CRITERION_SECONDS, MAX_SECONDS, CommandSpec
from planner.model.taxonomy import Owner
from planner.model.verdicts import Side
from planner.policy.criteria import commands_of
from planner.policy.outcomes import is_preexisting
from planner.text.glob_patterns import matches
from planner.text.redaction import redact_and_clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planner.catalog import Command, Purpose
    from planner.model.evidence import Evidence, ExceptionFact, Finding
    from planner.model.outcome import Check, Failure, FailureContext, Outcome
    from planner.model.plan import Plan, Todo


MAX_FILES = 20
"""Maximum number of files that a strategy considers."""

SURE = 0.9
"""Confidence required before a repair is restricted to tests because a test is at fault."""

_MAX_WORDS = 200
"""Number of characters to which quoted text is cut."""

_SOURCE_FOLDERS = ("", "src/", "lib/", "python/")
"""Folders that commonly hold a project's packages."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All facts that a revision strategy may use.

    Failures "in this way" are those in :attr:`failures`: the deciding one and its like.
    """

    plan: Plan
    todo: Todo
    """The failed primary todo."""
    outcome: Outcome
    failure: Failure
    """The failure that decides the route."""
    branch: Todo
    """The new branch, which still has all criteria of the todo."""
    context: FailureContext | None
    tools: frozenset[str] = frozenset()
    """Names of type checkers and linters for which the project has a configuration."""
    is_taken: Callable[[str], bool] = frozenset[str]().__contains__
    """Return whether a todo id is in use."""

    # -- what was observed ----------------------------------------------------------------------------

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """The deciding failure, then the todo's other own failures of the same category."""
        first = self.failure
        others = (
            each
            for each in self.outcome.failures
            if each.category is first.category and not is_preexisting(self.todo, self.outcome, each)
        )
        return (first, *(each for each in others if each != first))

    @cached_property
    def observations(self) -> tuple[Evidence, ...]:
        """The recorded evidence of these failures; empty if the context is unknown."""
        if self.context is None:
            return ()
        # By identity, as several failures may share evidence.
        found = [fact for each in self.failures for fact in evidence_of(each, self.context.evidence)]
        return tuple({id(fact): fact for fact in found}.values())

    @cached_property
    def exceptions(self) -> tuple[ExceptionFact, ...]:
        """All exceptions of that evidence: the outermost first, then its causes, then those of groups."""
        return tuple(
            each for fact in self.observations for each in (*fact.exceptions, *fact.exceptions_in_group)
        )

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of tools in that evidence."""
        commands = (each.command for each in self.observations if each.command is not None)
        return tuple(each for command in commands for each in command.findings)

    @cached_property
    def check_ids(self) -> tuple[str, ...]:
        """Ids of the criteria that failed in this way."""
        return tuple(dict.fromkeys(each.check_id for each in self.failures if each.check_id))

    @cached_property
    def failing_tests(self) -> tuple[str, ...]:
        """Node ids of the tests that failed in this way."""
        # Evidence names only the tests that were observed, a failure all that it stands for.
        named = [name for each in self.failures for name in each.tests or each.top_failing_tests]
        seen = [each.nodeid for each in self.observations if each.nodeid and "::" in each.nodeid]
        return tuple(dict.fromkeys(named or seen))

    @cached_property
    def commands(self) -> dict[str, CommandSpec]:
        """The commands of the todo's criteria that can be parsed, by criterion id.

        That of a convention is the one that ran.
        """
        ran = {
            check.id: CommandSpec(cmd=check.cmd, timeout_seconds=limit_of(check))
            for check in self.outcome.checks
            if check.cmd and accepted_command(check.cmd)
        }
        specs = ran | dict(commands_of(self.todo))
        return {name: spec for name, spec in specs.items() if accepted_command(spec.cmd)}

    @cached_property
    def failing_commands(self) -> tuple[CommandSpec, ...]:
        """The commands of the criteria that failed in this way."""
        return tuple(self.commands[name] for name in self.check_ids if name in self.commands)

    def command_for(self, purpose: Purpose, *others: Todo) -> Command | None:
        """Return the first command for a purpose: of the failing criteria, the todo, or ``others``."""
        tools = (tool for tool in TOOLS if tool.purpose is purpose)
        names = {name for tool in tools for name in (*tool.programs, *tool.modules)}
        of_todos = (spec.cmd for todo in (self.todo, *others) for _, spec in commands_of(todo))
        cmds = (*(spec.cmd for spec in self.failing_commands), *of_todos)
        # Only those that name a tool for it are parsed: all commands of 2,000 todos would take a second.
        known = (accepted_command(cmd) for cmd in cmds if any(name in cmd for name in names))
        return next((each for each in known if each is not None and each.tool.purpose is purpose), None)

    def isolated_commands(self) -> tuple[CommandSpec, ...]:
        """Return commands that run exactly the failing tests; empty if none is known to select them.

        They are the commands of the criteria that failed in this way, narrowed if their tests are known.
        """
        failing, checks = self.failing_tests, self.outcome.checks
        own = {
            check.id: [each.nodeid for each in check.tests if each.nodeid in failing]
            for check in checks
            if check.tests
        }
        narrower = {
            name: narrowed_command(spec, own.get(name, failing)) for name, spec in self.commands.items()
        }
        # If the failure names no criterion, use all failing checks, else commands that select a test.
        selected = (
            {*self.check_ids, *(name for name, tests in own.items() if tests)}
            or {check.id for check in checks if check.counts_as.is_red}
            or {
                name
                for name, spec in self.commands.items()
                if (command := accepted_command(spec.cmd)) is not None
                and any(as_selected(each, command) for each in failing)
            }
        )
        found = {spec.cmd: spec for name, spec in narrower.items() if name in selected}
        return tuple(found.values())

    # -- files to which the failure points ------------------------------------------------------------

    @cached_property
    def located_files(self) -> tuple[str, ...]:
        """Files in which these failures are located, that of the deciding one first."""
        return _below_root(each.location.path if each.location else None for each in self.failures)

    @cached_property
    def files_with_findings(self) -> tuple[str, ...]:
        """The located files and the files of tool findings."""
        return _below_root((*self.located_files, *(each.path for each in self.findings)))

    @cached_property
    def promised_files(self) -> tuple[str, ...]:
        """Artifacts that the todo is expected to create, and its target file."""
        task = self.todo.controller_task_spec
        wanted = [artifact.path for artifact in self.todo.acceptance_criteria.expected_artifacts]
        return _below_root([*wanted, task.target_file if task else None])

    @cached_property
    def implicated_files(self) -> tuple[str, ...]:
        """The unprotected product files that may contain the cause of a wrong result, the likeliest first.

        Test files if a test is surely at fault. Empty if it may be either, or neither: a restriction must
        never forbid the right repair.
        """
        frames = [frame for each in self.exceptions for frame in reversed(each.frames)]
        of_tests = {frame.path for frame in frames if frame.side is Side.TEST}
        is_tests = self.failure.owner is Owner.TEST and (self.failure.confidence or 0) >= SURE
        if is_tests:
            found = (test.partition("::")[0] for each in self.failures for test in each.tests)
            named = [*self.located_files, *found]
        elif self.failure.owner in (Owner.TEST, Owner.PLAN, Owner.ENVIRONMENT, Owner.HARNESS):
            return ()
        else:
            task = self.todo.controller_task_spec
            named = [place.path for each in self.failures for place in each.candidates]
            named += [*self.located_files, *(each.path for each in frames if each.side is Side.PRODUCT)]
            named += [task.target_file or ""] if task else []
            named += [path for path in self.outcome.touched_files if path in self.promised_files]
        return tuple(
            path
            for path in _below_root(named)
            if (is_test_path(path) if is_tests else not is_test_path(path) and path not in of_tests)
            and not any(matches(path, each) for each in self.plan.metadata.protected_files)
        )

    # -- limits of the repair -------------------------------------------------------------------------

    @property
    def tree(self) -> FailureContext:
        """The files that were looked up."""
        return self.context or NOTHING

    @cached_property
    def scope(self) -> EditScope:
        """The files that the worker on the repair may edit."""
        return scope_of(self.failure, self.branch, self.plan.metadata.protected_files)

    def module_file(self, module: str) -> str | None:
        """Return the file of a module, existing or to be written; ``None`` if it may be a foreign module.

        A file that the plan expects takes precedence over the one that the failing import shows, and that
        over the place where the todo may write the module's package.
        """
        inner, top = module.replace(".", "/"), module.partition(".")[0]
        # With the slash, so that "cart.py" is not found at the end of "shopcart.py".
        ends = (f"/{inner}.py", f"/{inner}/__init__.py")
        planned = (path for path in self.promised_files if f"/{path}".endswith(ends))
        observed = (each.path or each.place for each in self.exceptions if each.name == module)
        own = [path for fact in self.observations for path in module_paths(fact)]
        known = (path for path in own if path in self.tree.near or self.tree.exists(path))
        granted = (
            # In a package that the todo may write, also the package itself.
            f"{folder}{inner}{'/__init__' if pattern.startswith(f'{folder}{inner}/') else ''}.py"
            for pattern in self.todo.allowed_files or ()
            for folder in _SOURCE_FOLDERS
            if pattern.startswith((f"{folder}{top}/", f"{folder}{top}.py"))
        )
        return next(iter(_below_root((*planned, *observed, *known, *granted, *own))), None)


def limit_of(check: Check | None) -> float:
    """Return the time limit of a check in seconds; the default for one that no plan may state."""
    limit = (check.timeout_seconds if check else None) or 0
    return limit if 0 < limit <= MAX_SECONDS else DEFAULT_CRITERION_SECONDS


def _below_root(paths: Iterable[str | None]) -> tuple[str, ...]:
    """Return the distinct paths of project files, in order, at most :data:`MAX_FILES`."""
    plain = (below_root(path) for path in paths)
    return tuple(dict.fromkeys(path for path in plain if path is not None))[:MAX_FILES]


def quoted(text: str) -> str:
    """Return untrusted text on one bounded line, without control characters and secrets."""
    return " ".join(redact_and_clip(text, _MAX_WORDS).split())


# -- commands derived from those of the plan -----------------------------------------------------------


MAX_IDS = 20
"""Maximum number of selections in a narrowed command."""

_WHOLE = frozenset(
    {"--lf", "--last-failed", "--sw", "--stepwise", "--pyargs", "--cov-fail-under", "--json-report-omit"}
    | {"--collect-only", "--collectonly", "--co", "--looponfail", "-f"}
)
"""Options with which a command means something else, or cannot pass, if it selects fewer tests."""

_FIXERS = {
    "ruff": ("--no-fix --diff -q --quiet", "--fix"),
    "ruff_format": ("--check --diff", ""),
    "black": ("--check --diff", ""),
    "isort": ("--check --check-only -c --diff --df", ""),
    "eslint": ("", "--fix"),
    "prettier": ("--check -c --list-different -l", "--write"),
    "pre_commit": ("", ""),
}
"""Words to remove from the command of a linter or formatter, and words to add, so that it fixes.

The key is the tool's output format.
"""

PYTHON = (".py", ".pyi")

_MAX_PATH = 4_096
# Absolute paths, home folders, Windows drives, control characters, surrogates of undecodable bytes.
_UNUSUAL = re.compile(r"^[/\\~]|^[A-Za-z]:|[\x00-\x1f\x7f\\\ud800-\udfff]")
_FOREIGN = frozenset({"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".tox", ".nox"})
"""Folders of installed code."""

_RECORDS = frozenset({".planverify", "diagnostics"})
"""Top-level folders in which runs are recorded."""


def below_root(path: str | None) -> str | None:
    """Return a path of an outcome in its plain form; ``None`` if it is not one of the project's files.

    Absolute paths, paths that lead out of the root, folders, installed code and records of runs are not.
    """
    if not path or len(path) > _MAX_PATH or _UNUSUAL.search(path):
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.endswith("/"):
        return None
    return None if parts[0] in _RECORDS or not _FOREIGN.isdisjoint(parts) else "/".join(parts)


def narrowed_command(spec: CommandSpec, nodeids: Sequence[str]) -> CommandSpec:
    """Return a criterion's command restricted to these tests; unchanged if it cannot select them, or for
    more than :data:`MAX_IDS`.
    """
    command = accepted_command(spec.cmd)
    # The selections of a command with unknown options are a guess: one may be an option's value.
    if command is None or command.pytest is None or command.pytest.guessed:
        return spec
    if any(option.name in _WHOLE for option in split_options(command.pytest.args)):
        return spec
    named = [name for nodeid in nodeids if (name := as_selected(nodeid, command)) is not None]
    cmd = with_selections(command, named) if 0 < len(named) <= MAX_IDS else None
    return spec if cmd in (None, spec.cmd) else spec.model_copy(update={"cmd": cmd})


def with_selections(command: Command, selections: Sequence[str]) -> str | None:
    """Return a pytest command with other selections; ``None`` if they cannot be written as such.

    ``command`` must run pytest.
    """
    run = command.pytest
    assert run is not None
    options = [word for each in split_options(run.args) if each.name for word in each.words]
    text = _text(command, *run.launcher, *selections, *options)
    # A test whose name looks like an option would be taken for one.
    new = accepted_command(text)
    is_same = new is not None and new.pytest is not None and new.pytest.selections == tuple(selections)
    return text if is_same else None


def _text(command: Command, *words: str) -> str:
    """Return words as a command line, preceded by the environment variables of ``command``."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in command.env), shlex.join(words)])


def as_selected(nodeid: str, command: Command) -> str | None:
    """Return a node id as the command has to name it; ``None`` if the command does not select its file.

    ``None`` also for paths outside of the project, and for a command that does not run pytest.
    """
    path, colons, name = nodeid.partition("::")
    if below_root(path) != path or not colons or command.pytest is None:
        return None
    named = (each.partition("::")[0] for each in command.pytest.selections)
    selections = [each.removeprefix("./").rstrip("/") for each in named]
    if not selections or any(each in ("", ".", path) or path.startswith(f"{each}/") for each in selections):
        return nodeid
    # Some outcomes name a test relative to the folder of the tests.
    return next((f"{each}::{name}" for each in selections if each.endswith(f"/{path}")), None)


def python_of(cmd: str) -> tuple[str, ...]:
    """Return the words that start the interpreter of a pytest command; ``python`` if it names none."""
    command, words = accepted_command(cmd), ()
    run = None if command is None else command.pytest
    if run is not None and run.as_module:
        words = run.launcher[:-2]  # without -m pytest
    # Runners start an interpreter in the same environment as they start pytest.
    elif run is not None and run.launcher[0] in ("uv", "poetry", "pdm", "pipenv", "rye"):
        words = (*run.launcher[:-1], "python")
    return words if words and PurePosixPath(words[-1]).name.startswith("python") else ("python",)


def fixing_command(command: Command) -> str | None:
    """Return the command that fixes the findings of a linter; ``None`` if the tool cannot fix any."""
    argv, tool = command.argv, command.tool
    names = (PurePosixPath(word).name for word in argv)
    at = next((at for at, name in enumerate(names) if name in (*tool.programs, *tool.modules)), None)
    if tool.output not in _FIXERS or at is None:
        return None
    dropped, added = _FIXERS[tool.output]
    tail_start = next((at + 1 for at, word in enumerate(argv) if word in tool.subcommands), at + 1)
    tail = [word for word in argv[tail_start:] if word not in dropped.split()]
    return _text(command, *argv[:tail_start], *added.split(), *tail)
