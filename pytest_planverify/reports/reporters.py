"""Distribute the options of reporter plugins among workers, confirmations and the reporting session.

Every criterion runs in a worker of its own, and a failed one again to confirm the failure. A reporter that
writes one file at the end of a session must therefore run exactly once, in the reporting session
(:mod:`.reporter_session`), wherever it was requested: on the command line, in ``addopts`` of the ini file,
or in ``PYTEST_ADDOPTS``. ``reporters.toml`` lists the options of the known reporters. Unknown options are
passed to all processes; as the reporting session runs last, a file that each of them writes in the end has
all tests.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog.pytest_arguments import PATH_OPTIONS, GivenOption, close_options, split_options
from planner.catalog.tables import load_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pytest


_WORKER, _CONFIRMATION, _REPORTING = "wcr"
"""Kinds of process that an option can be passed to; ``reporters.toml`` has strings of these letters."""

_TABLE = load_table("reporters", "pytest_planverify.reports")
_PROCESSES = {name: letters for letters, names in _TABLE["processes"].items() for name in names.split()}

_OF_PYTEST = ("junitxml", "terminal")
"""Plugins of pytest itself, which are loaded unless they are disabled by name."""
_IN_WORKERS: dict[str, list[str]] = _TABLE["in_workers"]
"""The words that replace an option in a worker."""

_SUMMARY_SECTIONS, _DECIDING, _WRITING, _QUIET_PLUGINS = (
    frozenset(_TABLE["sets"][name].split()) for name in ("summary", "deciding", "writing", "quiet_plugins")
)

ANNOTATIONS = "pytest_github_actions_annotate_failures"
"""A plugin without an option: it reports whenever the environment is that of GitHub Actions."""

_REPORTING_HOOKS = ("pytest_runtest_logreport", "pytest_runtest_logfinish", "pytest_terminal_summary")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """Options from each of the places that pytest reads, without plan and todo arguments."""

    command_line: tuple[str, ...] = ()
    addopts: tuple[str, ...] = ()
    """``addopts`` as returned by ``config.getini``, then the words of ``PYTEST_ADDOPTS``."""
    directory: Path = field(default_factory=Path.cwd)
    """The directory the user started in; relative paths of report files are resolved against it."""
    on_github: bool = field(default_factory=lambda: os.environ.get("GITHUB_ACTIONS") == "true")
    """Whether the run is a job of GitHub Actions, in which :data:`ANNOTATIONS` prints if it is loaded."""

    @property
    def options(self) -> Iterator[GivenOption]:
        """All options in the order in which pytest reads them, without ``blocked``; later ones win."""
        own = (option for option in split_options(self.addopts) if not _blocks_plugin(option))
        return chain(own, split_options(self.command_line))

    @property
    def blocked(self) -> tuple[str, ...]:
        """The words ``-p no:NAME`` of ``addopts``.

        Plugins that are blocked there have declared their options before; those that are blocked on the
        command line have not.
        """
        options = filter(_blocks_plugin, split_options(self.addopts))
        return tuple(word for option in options for word in option.words)

    @property
    def demands_coverage(self) -> bool:
        """Return whether only ``addopts`` request coverage: a limit then holds for each command."""
        places = (self.addopts, self.command_line)
        in_addopts, typed = ({option.name for option in split_options(words)} for words in places)
        return "--cov" in in_addopts - typed

    def has(self, *names: str) -> bool:
        """Return whether one of these options is given."""
        return any(option.name in names for option in self.options)

    def start(self, args: Iterable[str]) -> ProcessStart:
        """Return the start of a process that reads ``args`` instead of the options in all places."""
        if not self.addopts:
            return ProcessStart(tuple(args), {})
        return ProcessStart(("-o", f"addopts={shlex.join(self.blocked)}", *args), {"PYTEST_ADDOPTS": ""})

    def words_for(self, process: str, option: GivenOption) -> Sequence[str]:
        """Return the words of an option for a kind of process, none if it is not passed there."""
        passed_to = _PROCESSES.get(option.name, process)
        # A limit that holds for each command is part of its verdict, with all that measures for it.
        is_judging = option.name in _DECIDING or ("cov" in option.name and _WORKER in passed_to)
        is_passed = process in passed_to or (is_judging and self.demands_coverage)
        if not is_passed or option.name.startswith("--planverify"):
            return ()
        return _with_absolute_path(option, self.directory).words


def options_for(words: Sequence[str], command: Sequence[str], *, autoload: bool) -> tuple[str, ...]:
    """Return the user's options ``words`` without those of plugins that a command does not load.

    pytest would refuse them as unknown, but alone the command may pass. ``autoload`` is whether the
    command's environment lets pytest load the plugins that are installed.
    """
    own = list(split_options(command))
    named = [option.value or "" for option in (*split_options(words), *own) if option.name == "-p"]
    autoload = autoload and not any(option.name == "--disable-plugin-autoload" for option in own)
    absent = [
        beginning
        for plugin, beginnings in _TABLE["plugins"].items()
        if {f"no:{plugin}", f"no:{plugin.removeprefix('pytest_')}"} & set(named)
        or not (autoload or plugin in _OF_PYTEST or any(name.startswith(plugin) for name in named))
        for beginning in beginnings.split()
    ]
    options = (option for option in split_options(words) if not option.name.startswith(tuple(absent)))
    return tuple(word for option in options for word in option.words)


class ProcessStart(NamedTuple):
    """Arguments of one pytest process, and environment variables in addition to those of the run."""

    args: tuple[str, ...]
    env: dict[str, str]


def worker_start(given: GivenOptions, command: Sequence[str], *, scratch: Path, name: str) -> ProcessStart:
    """Return arguments and environment for the first run of a command in a run with reporters.

    ``scratch`` is a folder of the run, in which ``name`` identifies the files of this worker. The command's
    own arguments come last and win. A reporter that the command requests itself works as when the command
    is run alone; a command that measures coverage itself is left out of the run's measurement.
    """
    own = {option.name for option in split_options(command)}
    measures = any(option.startswith("--cov") for option in own)
    # What only addopts request applies to the command from a shell, too.
    is_alone = measures and not given.demands_coverage
    paths = {"unused": scratch / "unused", "allure": scratch / "allure" / name}
    args: list[str] = []
    for option in given.options:
        if option.name in _IN_WORKERS:
            if option.name not in own:
                args += (word.format(**paths) for word in _IN_WORKERS[option.name])
        elif not (is_alone and option.name.startswith(("--cov", "--no-cov"))):
            args += given.words_for(_WORKER, option)
    args += _without_annotations(given, own)
    # pytest-cov warns of options behind --no-cov.
    is_measured = given.has("--cov") and not measures and not given.has("--no-cov")
    if is_measured:
        # Without an explicit limit, that of coverage's own configuration would be applied to each worker.
        args += ("--cov-report=",) if given.demands_coverage else ("--cov-report=", "--cov-fail-under=0")
    start = given.start((*close_options(args), *command))
    # A data file of its own for each worker: together they are combined in the reporting session.
    data_file = {"COVERAGE_FILE": str(scratch / "coverage" / f"measured-{name}")} if is_measured else {}
    return ProcessStart(start.args, start.env | data_file)


def confirmation_start(given: GivenOptions, command: Sequence[str], *, scratch: Path) -> ProcessStart:
    """Return arguments and environment for a repeated run, without the reporters of user and command.

    A coverage limit that the command itself sets is part of its verdict, and is kept.
    """
    own = [option for option in split_options(command) if not only_writes(option.name)]
    args = [word for option in given.options for word in given.words_for(_CONFIRMATION, option)]
    args += _without_annotations(given, ())
    start = given.start((*close_options(args), *(word for option in own for word in option.words)))
    if given.has("--no-cov") or not (
        given.demands_coverage or any(option.name == "--cov" for option in own)
    ):
        return start
    data_file = {"COVERAGE_FILE": str(scratch / "coverage" / "confirmation")}
    return ProcessStart((*start.args, "--cov-report="), start.env | data_file)


def reporting_start(given: GivenOptions) -> ProcessStart:
    """Return arguments and environment of the reporting session."""
    return given.start(word for option in given.options for word in given.words_for(_REPORTING, option))


def relay_file(scratch: Path, name: str) -> Path:
    """Return the file to which the worker of that name writes its reports."""
    return scratch / "relay" / f"{name}.jsonl"


def measured_files(scratch: Path) -> list[Path]:
    """Return the coverage data files of the workers; that of confirmations is not part of the run."""
    return sorted((scratch / "coverage").glob("measured-*"))


def allure_folder(given: GivenOptions) -> Path | None:
    """Return the folder for Allure's results; ``None`` without Allure."""
    folders = [option.value for option in given.options if option.name == "--alluredir" and option.value]
    return given.directory / folders[-1] if folders else None


def is_reporting_needed(
    given: GivenOptions, plugins: Iterable[tuple[str, object]], conftests: Iterable[str]
) -> bool:
    """Return whether the run needs a reporting session, so that a run without reporters saves its cost.

    It is needed for each option of a known reporter; for an unknown option, which may belong to one; for a
    plugin that implements a reporting hook, among ``plugins`` (names and plugins of a configured or
    unconfigured pytest); and for a conftest whose text, in ``conftests``, defines such a hook. A plugin
    without options that registers its hooks only when it is configured cannot be detected, except the one
    for GitHub annotations, whose condition is tested here.
    """
    # A plain ``-ra`` in an ini file alone does not justify the cost of the session.
    options = [option for option in split_options(given.addopts) if option.name not in _SUMMARY_SECTIONS]
    for option in (*options, *split_options(given.command_line)):
        processes = _PROCESSES.get(option.name, _CONFIRMATION if option.known else _REPORTING)
        if processes and _CONFIRMATION not in processes and not option.name.startswith("--planverify"):
            return True
    for name, plugin in plugins:
        if name.startswith(ANNOTATIONS) and given.on_github:
            return True
        # A plugin is a module, or an object of a class.
        module = getattr(plugin, "__name__", None) or type(plugin).__module__
        if module.partition(".")[0] not in _QUIET_PLUGINS and any(
            hasattr(plugin, hook) for hook in _REPORTING_HOOKS
        ):
            return True
    # By text, as conftests are not loaded in this process; some write a report when their session ends.
    hooks = (*_REPORTING_HOOKS, "pytest_sessionfinish")
    return any(f"def {hook}(" in text for text in conftests for hook in hooks)


def _with_absolute_path(option: GivenOption, directory: Path) -> GivenOption:
    """Return the option of a reporter with an absolute path, because sessions run in the plan's root."""
    value = option.value
    if value is None or _CONFIRMATION in _PROCESSES.get(option.name, _CONFIRMATION):
        return option
    if option.name in PATH_OPTIONS and value.lower() != "none":  # of pytest-json-report: write no file
        # Not Path.expanduser(), which refuses an unknown user: pytest takes the name as it is.
        value = str(directory / os.path.expanduser(os.path.expandvars(value)))
    elif option.name == "--cov-report" and ":" in value:
        kind, _, file = value.partition(":")
        # ``term-missing:skip-covered`` has no path.
        value = value if kind.startswith("term") else f"{kind}:{directory / file}"
    elif option.name == "--cov" and (directory / value).is_dir():  # otherwise it is the name of a package
        value = str(directory / value)
    else:
        return option
    return option._replace(words=(f"{option.name}={value}",))


def _blocks_plugin(option: GivenOption) -> bool:
    return option.name == "-p" and (option.value or "").startswith("no:")


def _without_annotations(given: GivenOptions, own: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments that prevent a process from printing GitHub annotations, if any are needed."""
    # The plugin stays if the command configures it, as its options would be unknown without it.
    needed = given.on_github and "--exclude-warning-annotations" not in own
    # By the name of its entry point, and of its module as in PYTEST_PLUGINS.
    return ("-p", f"no:{ANNOTATIONS}", "-p", f"no:{ANNOTATIONS}.plugin") if needed else ()


def only_writes(name: str) -> bool:
    """Return whether an option of a command only writes or sends reports, without effect on its verdict."""
    is_single = len(_PROCESSES.get(name, "wcr")) <= 1
    return name in _WRITING or (is_single and name not in _DECIDING)


class Reporting:
    """State of the reporters of one run: whether they are needed, their options, the workers' reports."""

    def __init__(self, config: pytest.Config, *, wanted: bool = True) -> None:
        """Create the state; unless ``wanted``, as in a run made for comparison, nothing is reported."""
        self._config = config
        self._wanted = wanted
        self._needed: bool | None = None
        self.given: GivenOptions | None = None
        """The options of the run; ``None`` if no reports are needed, or that is not known yet."""
        self.relays: dict[tuple[Path, str, str], Path] = {}
        """By plan file, todo and criterion, the file with the serialized reports of its worker."""

    def is_needed(self, given: GivenOptions, conftests: Iterable[str]) -> bool:
        """Return whether reports are needed; the answer to the first call is remembered."""
        if self._needed is None:
            plugins = self._config.pluginmanager.list_name_plugin()
            self._needed = self._wanted and is_reporting_needed(given, plugins, conftests)
            self.given = given if self._needed else None
        return self._needed

    def decide_without_workers(self, typed: Sequence[str], directory: Path) -> None:
        """Decide by the options alone if no worker was started: a report of an earlier run must not stay.

        Nothing was measured, so pytest-cov takes no part, nor does its limit.
        """
        if self._needed is not None or not self._wanted:
            return
        blocked = ("-p", "no:pytest_cov")
        addopts = (*self._config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")))
        given = GivenOptions(
            command_line=options_for(typed, blocked, autoload=True),
            addopts=(*options_for(addopts, blocked, autoload=True), *blocked),
            directory=directory,
        )
        self.given = given if is_reporting_needed(given, (), ()) else None
