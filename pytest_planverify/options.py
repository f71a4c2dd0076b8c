"""Command line and ini file, read once into frozen :class:`Settings`.

pytest parses the command line as usual, but the parent must not load anything of the repository. So
:func:`take_over` stashes the parsed options, and replaces the arguments, before pytest loads conftests.
:func:`read_settings` then splits everything beyond this plugin's own options into what narrows the run,
what the parent handles itself, and what every worker receives. It works on the words as typed, as workers
need them unchanged, and some belong to conftests or plugins that only workers load.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
from _pytest.assertion.rewrite import assertstate_key
from _pytest.mark.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_planverify.observe.spec import Narrowing
    from pytest_planverify.reports.formats import Report

Scope = Literal["claimed", "ready", "all"]
"""Which todos decide the exit status: the claimed ones, those whose dependencies are done, or all."""
DEFAULT_CONFIRMATIONS = 4

GIVEN = pytest.StashKey[dict[str, Any]]()
"""The original options as parsed by pytest, including the ini file's ``addopts``."""


class PlanArgument(NamedTuple):
    """A plan on the command line, or some of its todos."""

    path: Path
    shown: str
    """Path relative to the invocation directory, as it is printed."""
    todo_ids: tuple[str, ...]
    """Empty for the whole plan."""
    boundary: Path
    """Folder that must contain the plan's root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The words of the command line besides this plugin's own options, sorted by purpose."""

    plan_words: tuple[str, ...] = ()
    worker_args: tuple[str, ...] = ()
    """Arguments for every worker."""
    collect_only: bool = False
    last_failed: bool = False
    maxfail: int = 0
    """Number of failures after which the run stops; 0 for no limit."""
    narrowing: Narrowing
    workers: int = 1
    """Number of concurrent workers."""
    interactive: bool = False
    """Workers keep the terminal, for uncaptured output or a debugger."""
    debugger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(CommandLine):
    """All settings of this run."""

    plans: tuple[PlanArgument, ...]
    invocation_dir: Path
    isolate: bool
    """Start every worker cold; also set where forking is unsafe."""
    keep_going: bool
    scope: Scope
    outcomes: Path | None
    """File of the outcomes, ``-`` for standard output; ``None`` for the usual place under each root."""
    reports: tuple[Report, ...]
    confirmations: int
    """Limit of repeated runs of a failing check; 0 confirms nothing."""
    resume: bool
    """Continue a killed run with its verdicts."""
    baseline: str | None
    """Git revision to compare with instead of the recorded baseline."""
    recording: bool
    """The run records a baseline: it compares with none and writes no reports."""
    worked: tuple[str, ...]
    """Further todos that have been worked on, as known by a driver."""
    baseline_file: Path | None
    """Baseline file of a driver, used if none was recorded."""
    verbosity: int

    @property
    def narrows(self) -> bool:
        """Return whether the user excluded tests, so that no pass covers a whole criterion."""
        return any(astuple(self.narrowing))

    @property
    def may_stop_or_narrow(self) -> bool:
        """Return whether criteria may stay without a verdict of this run and keep their last one."""
        return self.narrows or self.last_failed or bool(self.maxfail)


_FLAGS = {
    "--planverify": "Verify the plans given as arguments (PLAN.yaml, PLAN.yaml::todo_id, "
    "PLAN.yaml::one,two); without any, the ini's planverify_plan, or planverify.yaml, plan.yaml or "
    "todo.yaml.",
    "--planverify-isolate": "Run every command in a new interpreter instead of a forked worker.",
    "--planverify-keep-going": "Also run the checks of todos whose dependencies failed; they stay blocked.",
    "--planverify-resume": "Resume the last run of the plan, if it was killed or interrupted: run only "
    "what it had not judged, and what depends on files that have changed since.",
    "--planverify-recording": argparse.SUPPRESS,
}
"""Help of the options without a value; what drivers use is not shown."""

_OPTIONS: Mapping[str, dict[str, Any]] = {
    "--planverify-scope": {
        "choices": ["claimed", "ready", "all"],
        "default": "all",
        "help": "Which todos decide the exit status: those claimed to be done, those whose dependencies "
        "are done, or all (default).",
    },
    "--planverify-outcomes": {
        "metavar": "PATH",
        "help": "Write the outcomes to PATH instead of .planverify/ under the plan's root; - is standard "
        "output; the terminal output then goes to standard error.",
    },
    "--planverify-report": {
        "metavar": "FORMAT[=PATH]",
        "action": "append",
        "default": [],
        "help": "Write a report, to PATH instead of .planverify/reports/; may be repeated. Formats: "
        "ctrf, gitlab, html, junit, markdown, prometheus, sarif.",
    },
    "--planverify-confirm": {
        "metavar": "N",
        "type": int,
        "default": DEFAULT_CONFIRMATIONS,
        "help": "Run a failing check once more, or up to N times if its code uses random numbers or time, "
        f"to tell flaky from deterministic; 0 disables it (default: {DEFAULT_CONFIRMATIONS}).",
    },
    "--planverify-baseline": {
        "metavar": "REV",
        "help": "Compare with that git revision, which is verified in a temporary work tree, instead of "
        "with the baseline that `planverify baseline` recorded.",
    },
    "--planverify-worked": {
        "metavar": "TODO,...",
        "default": "",
        "help": "Further todos that have been worked on, so that the files that they may change are no "
        "violation; for drivers that verify one todo at a time.",
    },
    "--planverify-baseline-file": {"type": Path, "help": argparse.SUPPRESS},
}
"""Declarations of the options with a value."""

_TAKEN_AS_THEY_ARE = ("keep_going", "scope", "resume", "baseline", "recording", "baseline_file")
"""Options whose parsed values are fields of the settings."""


def add_options(parser: pytest.Parser) -> None:
    """Declare the options in their own group of ``pytest --help``."""
    group = parser.getgroup("planverify", "verification of plans")
    for name, text in _FLAGS.items():
        group.addoption(name, action="store_true", help=text)
    for name, declaration in _OPTIONS.items():
        group.addoption(name, **declaration)
    parser.addini("planverify_plan", "The plans that --planverify verifies if none is given.", type="args")


def take_over(early_config: pytest.Config, args: list[str]) -> None:
    """Stash the command line, so that the parent parses and loads nothing of the repository.

    ``args`` is changed in place, as pytest continues with it. In a worker the option is switched off
    instead.
    """
    from planner.planfile.file_writer import open_closed_streams
    from pytest_planverify.observe import in_worker

    if in_worker():
        early_config.known_args_namespace.planverify = False
        return
    open_closed_streams()  # before pytest captures them, which puts objects in the place of missing ones
    known = early_config.known_args_namespace
    _disable_assertion_rewriting(early_config)
    _disable_preparations(early_config)
    early_config.stash[GIVEN] = dict(vars(known))
    known.noconftest = True
    # Only the option that also affects the parent's own output remains.
    words = map(str, early_config.invocation_params.args)
    args[:] = ["--planverify", *(word for word in words if word.startswith("--color="))]


def _disable_assertion_rewriting(config: pytest.Config) -> None:
    """Remove pytest's assertion rewriting, which would process this plugin's modules, too.

    The parent runs no tests.
    """
    state = config.stash.get(assertstate_key, None)
    hook = getattr(state, "hook", None)
    if hook in sys.meta_path:
        sys.meta_path.remove(hook)


def _disable_preparations(config: pytest.Config) -> None:
    """Disable the preparations of other plugins in the parent.

    They import a project's settings or start measurements; workers would inherit the effects and repeat
    them.
    """
    for implementation in config.hook.pytest_load_initial_conftests.get_hookimpls():
        plugin = implementation.plugin
        module = str(getattr(plugin, "__name__", type(plugin).__module__))
        # Wrappers stay, as pluggy needs a generator from them. pytest's own implementations stay, too: they
        # load nothing with the arguments that the parent continues with.
        wraps = implementation.wrapper or implementation.hookwrapper
        if not wraps and not module.startswith("_pytest."):
            # The call of this hook has begun, and pluggy cannot remove an implementation from it.
            implementation.function = lambda *arguments: None  # pyright: ignore


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings, from the command line that :func:`take_over` has stashed.

    Raises :class:`pytest.UsageError` for invalid values, words that are no plans, and if there is no plan.
    """
    # Imported late: runs without a plan do not need these.
    from planner.errors import CommandSyntaxError
    from pytest_planverify.checks.intermediate_process import can_fork
    from pytest_planverify.reports.formats import parse_report

    option = config.stash[GIVEN]
    directory = config.invocation_params.dir
    # Without addopts, which workers read from the ini file themselves.
    try:
        typed = sort_words(config.invocation_params.args, directory, option["file_or_dir"])
    except CommandSyntaxError as error:
        raise pytest.UsageError(str(error)) from None
    confirmations = option["planverify_confirm"]
    if confirmations < 0:
        raise pytest.UsageError(f"--planverify-confirm: {confirmations} is negative; 0 confirms nothing")
    outcomes = option["planverify_outcomes"]
    plans = _plans(typed.plan_words, config)
    try:
        reports = tuple(parse_report(text, directory) for text in option["planverify_report"])
    except ValueError as error:
        raise pytest.UsageError(f"--planverify-report: {error}") from None
    return Settings(
        plans=plans,
        invocation_dir=directory,
        isolate=option["planverify_isolate"] or not can_fork(),
        # "-" is standard output, not a path.
        outcomes=None if outcomes is None else Path(outcomes) if outcomes == "-" else directory / outcomes,
        reports=reports,
        confirmations=confirmations,
        worked=tuple(filter(None, option["planverify_worked"].split(","))),
        verbosity=int(option["verbose"]),
        **{name: option[f"planverify_{name}"] for name in _TAKEN_AS_THEY_ARE},
        **{each.name: getattr(typed, each.name) for each in fields(typed)},
    )


def require_known_options(config: pytest.Config, settings: Settings, root: Path) -> None:
    """Refuse options that no worker can know. Raises :class:`pytest.UsageError`.

    Otherwise a misspelt option would fail every worker. Options may be declared in conftests, which only
    workers load; so the text of those near ``root`` is searched for the option, and one that occurs there
    counts as known.
    """
    from planner.catalog.pytest_arguments import known_options, split_options
    from planner.text.display import did_you_mean

    parser: Any = config._parser  # pyright: ignore[reportPrivateUsage]
    # A copy, as pytest's parser stores the options that it knows in the namespace.
    namespace = copy.copy(config.option)
    _, unknown = parser.parse_known_and_unknown_args(list(settings.worker_args), namespace=namespace)
    text = ""
    conftests = [root / "conftest.py", *root.glob("test*/conftest.py"), *root.glob("*/test*/conftest.py")]
    for path in filter(Path.is_file, conftests):
        with suppress(OSError):  # unreadable, as the workers' pytest will report
            text += path.read_text(encoding="utf-8", errors="replace")
    for name in (option.name for option in split_options(unknown)):
        # A word without a dash is the value of an unknown option, of which the option itself is reported.
        if name.startswith("-") and name not in text:
            known = [*_FLAGS, *_OPTIONS, *known_options()]
            hint = did_you_mean(name, known, "correct it, or leave it out")
            raise pytest.UsageError(
                f"{name}: neither pytest, nor an installed plugin, nor a conftest of {root} knows this "
                f"option; {hint}"
            )


def spare_required_plugins(config: pytest.Config | None) -> None:
    """Ignore ``required_plugins`` in the parent, so that workers report a missing plugin.

    pytest would stop the parent before the plan is read, without any diagnosis. ``config`` is ``None`` if
    pytest has not registered it.
    """
    if config is not None and "--planverify" in config.invocation_params.args:
        config._validate_plugins = lambda: None  # type: ignore[method-assign]


def _plans(words: Sequence[str], config: pytest.Config) -> tuple[PlanArgument, ...]:
    """Return the plans that were named, else those of the ini file or of a usual name."""
    from planner.planfile.discovery import PLAN_NAMES, parse_choice, plan_boundary, usual_plans
    from planner.text.sanitizing import without_surrogates

    directory = config.invocation_params.dir
    if words:
        found = [parse_choice(word, directory) for word in words]
    else:
        found = usual_plans(directory, config.rootpath, config.getini("planverify_plan"), config.inipath)
    if not found:
        raise pytest.UsageError(
            "--planverify: there is no plan to verify; name one (pytest --planverify plan.yaml), set "
            f"planverify_plan in the ini file, or write {' or '.join(PLAN_NAMES)} in {config.rootpath}, as "
            "planverify init does"
        )
    return tuple(
        PlanArgument(
            path=choice.path,
            shown=without_surrogates(os.path.relpath(choice.path, directory)),
            todo_ids=choice.todo_ids or (),
            boundary=plan_boundary(choice.path, directory, config.rootpath),
        )
        for choice in found
    )


def _expression(option: str, text: str | None) -> str | None:
    """Return a ``-k`` or ``-m`` expression; ``None`` if it is empty.

    Raises :class:`pytest.UsageError` for an invalid one: ignoring it would run too much.
    """
    if text is None or not text.strip():
        return None
    try:
        Expression.compile(text)
    except Exception as error:  # a SyntaxError only from pytest 9
        raise pytest.UsageError(f"{option}: {text!r} is not an expression: {error}") from None
    return text


# -- words of the command line ----------------------------------------------------------------------------

_IGNORED_OPTIONS = frozenset(
    {"--ff", "--failed-first", "--nf", "--new-first", "--sw", "--stepwise", "--sw-skip", "--stepwise-skip"}
    | {"--sw-reset", "--stepwise-reset"}
    | {"--cache-clear", "--continue-on-collection-errors"}
    | {"--dist", "--maxprocesses", "--max-worker-restart", "--maxschedchunk", "--testrunuid"}
)
"""Options that are ignored: they would change a criterion's selection, or distribute by pytest-xdist."""
_XDIST_OPTIONS = frozenset({"--tx", "--px", "-d", "--rsyncdir", "-f", "--looponfail"})
"""Options of pytest-xdist that are refused: they distribute tests or repeat runs in its own way."""
_SELECTING_SETTINGS = frozenset(
    {"addopts", "python_files", "python_classes", "python_functions", "testpaths", "norecursedirs"}
    | {"collect_imported_tests"}
)
"""Settings of pytest that decide which tests a command selects."""
_PATH_VALUES = frozenset({"--rootdir", "-c", "--config-file", "--confcutdir", "--basetemp", "--log-file"})
"""Options whose values are paths relative to the invocation directory."""


def sort_words(words: Iterable[object], directory: Path, positional: Collection[str]) -> CommandLine:
    """Sort the words of a command line by purpose.

    Relative paths are resolved against ``directory``. ``positional`` are the positional arguments as parsed
    by pytest, which knows the options of all plugins: a plan among them cannot be the value of an unknown
    option. Raises :class:`pytest.UsageError` for invalid words, and ``CommandSyntaxError`` for an option
    that lacks its value while its plugin is absent.
    """
    from planner.catalog.pytest_arguments import split_options
    from pytest_planverify.observe.spec import Narrowing

    plans: list[str] = []
    passed: list[str] = []
    more: dict[str, Any] = {}
    narrowing: dict[str, Any] = {"deselect": (), "ignore": (), "ignore_glob": ()}
    may_be_value = False
    given = split_options(map(str, words))
    for option in given:
        name, taken, value = option.name, option.words, option.value
        match name:
            case "":
                (word,) = taken
                if may_be_value and not (word in positional and _looks_like_plan(word)):
                    passed.append(word)
                elif word != "--":
                    _require_plan(word, directory)
                    plans.append(word)
            case _ if name in _FLAGS or name in _OPTIONS:
                if name in _OPTIONS and value is None:
                    next(given, None)  # its value is the next word
            case "-x" | "--exitfirst":
                more["maxfail"] = 1
            case "--maxfail":
                if value is None or not value.isdecimal():
                    raise pytest.UsageError(f"--maxfail: {value!r} is not a number")
                more["maxfail"] = int(value)
            case "-n" | "--numprocesses":
                more["workers"] = _worker_count(str(value))
            case "--lf" | "--last-failed":
                more["last_failed"] = True
            case "--co" | "--collect-only" | "--collectonly":
                more["collect_only"] = True
            case "-k" | "-m":
                narrowing["keyword" if name == "-k" else "markexpr"] = _expression(name, value)
            case "--deselect":
                narrowing["deselect"] += (str(value),)
            case "--ignore" | "--ignore-glob":
                narrowing[name[2:].replace("-", "_")] += (os.path.abspath(directory / str(value)),)
            case "-o" | "--override-ini" if str(value).partition("=")[0].strip() in _SELECTING_SETTINGS:
                # The tests that a criterion loses by it would be missing without a word.
                raise pytest.UsageError(
                    f"{name} {value}: it changes which tests the criteria select; change the ini file, or "
                    "leave tests out of this run with -k, -m, --deselect or --ignore"
                )
            case _ if name in _XDIST_OPTIONS:
                raise pytest.UsageError(
                    f"{name}: --planverify runs criteria only on this machine; set the number of "
                    "workers with -n N"
                )
            case _ if name in _IGNORED_OPTIONS:
                pass
            case _:
                if name in _PATH_VALUES:
                    # Sessions run in the plan's root, so relative paths become absolute.
                    path = str(directory / str(value))
                    taken = (f"{name}={path}",) if name.startswith("--") else (name, path)
                passed += taken
                if name in ("--pdb", "--trace"):
                    more |= {"debugger": True, "interactive": True}
                elif name == "-s" or (name, value) == ("--capture", "no"):
                    more["interactive"] = True
        # An unknown option may take the next word as its value, which is then passed on with it.
        is_unknown = name.startswith("--") and not (option.known or name in _FLAGS or name in _OPTIONS)
        may_be_value = is_unknown and value is None
    if more.get("interactive"):  # concurrent workers cannot share the terminal
        more["workers"] = 1
    return CommandLine(
        plan_words=tuple(plans), worker_args=tuple(passed), narrowing=Narrowing(**narrowing), **more
    )


def _looks_like_plan(word: str) -> bool:
    """Return whether a word may name a plan, or todos of one."""
    from planner.planfile.discovery import PLAN_ENDINGS, SEPARATOR

    return word.partition(SEPARATOR)[0].endswith(PLAN_ENDINGS)


def _worker_count(text: str) -> int:
    """Return the number of workers for the value of ``-n``; ``0`` means one.

    ``auto`` is the number of usable processors. Raises :class:`pytest.UsageError`.
    """
    if text in ("auto", "logical"):
        # Of a container's or a batch system's processors often only some may be used.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal():
        raise pytest.UsageError(f"-n {text}: it is neither a number nor auto")
    return max(int(text), 1)


def _require_plan(word: str, directory: Path) -> None:
    """Refuse a positional argument that is no plan. Raises :class:`pytest.UsageError`.

    An existing file of another kind is accepted here; the loader reports what is wrong with it.
    """
    path = directory / word.partition("::")[0]
    # Unlike the methods of Path, this function accepts words of any length.
    if not _looks_like_plan(word) and (path.suffix == ".py" or not os.path.isfile(path)):
        raise pytest.UsageError(
            f"{word}: there is no such plan; --planverify takes plan files (.yaml, .yml, .json), or one "
            "todo of a plan as plan.yaml::todo_id; narrow a run to tests with -k EXPRESSION"
        )
