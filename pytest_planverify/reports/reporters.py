"""Distribute the options of reporter plugins among workers, confirmations and the reporting session.

Every criterion runs in a worker of its own, and a failed one again to confirm the failure. A reporter that
writes one file at the end of a session must therefore run exactly once, in the reporting session
(:mod:`.reporter_session`), wherever it was requested: on the command line, in ``addopts`` of the ini file,
or in ``PYTEST_ADDOPTS``. A table lists the options of the known reporters. Unknown options are passed to
all processes; as the reporting session runs last, a file that each of them writes in the end has all tests.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.catalog.pytest_arguments import GivenOption, close_options, split_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pytest


_WORKER, _CONFIRMATION, _REPORTING = "wcr"
"""Kinds of process that an option can be passed to; the table has strings of these letters."""

_TABLE = (
    # Read by a reporter at the end of a session.
    (
        _REPORTING,
        "-r --report-chars --no-fold-skipped --force-short-summary --durations --durations-min "
        "--pastebin --max-warnings --junitxml --junit-xml --junitprefix --junit-prefix --html "
        "--self-contained-html --css --json-report --json-report-file --json-report-summary "
        "--json-report-indent --json-report-verbosity --report-log "
        "--report-log-exclude-logs-on-passed-tests --ctrf --exclude-warning-annotations --cov-report "
        "--cov-fail-under --cov-append --no-cov-on-fail --cov-precision",
    ),
    # Measures in the first run of each criterion, and reports at the end.
    (
        _WORKER + _REPORTING,
        "--cov --cov-reset --cov-branch --cov-config --cov-context --no-cov --json-report-omit "
        "--hypothesis-show-statistics",
    ),
    # Writes while tests run.
    (_WORKER, "--alluredir --allure-no-capture"),
    # Selects tests or how they run.
    (
        _WORKER + _CONFIRMATION,
        "-n --numprocesses --dist --maxprocesses --max-worker-restart --tx --px -d -f --rsyncdir "
        "--rsyncignore --maxschedchunk --testrunuid --looponfail -x --exitfirst --maxfail -k -m "
        "--deselect --co --collect-only --collectonly --lf --last-failed --ff --failed-first --nf "
        "--new-first --lfnf --last-failed-no-failures --sw --stepwise --sw-skip --stepwise-skip "
        "--sw-reset --stepwise-reset --cache-clear --pdb --trace --pdbcls --basetemp --log-file "
        "--log-file-mode --debug --setup-show --setup-only --setup-plan",
    ),
)
_PLACES: Mapping[str, str] = {name: places for places, names in _TABLE for name in names.split()}
"""The processes of each option. ``--clean-alluredir`` is passed to none: the folder is cleaned by
:func:`.reporter_session.merge_allure_results`, when all results are known."""

# The words that replace an option in a worker.
_IN_WORKERS: Mapping[str, tuple[str, ...]] = {
    # Reporters that add data to the reports of a worker, but only if they are active there.
    "--junitxml": ("--junitxml={unused}",),
    "--junit-xml": ("--junitxml={unused}",),
    "--json-report": ("--json-report", "--json-report-file=none"),
    "--ctrf": ("--ctrf={unused}",),
    # One file for each test, merged at the end.
    "--alluredir": ("--alluredir={allure}",),
}

_SUMMARY_SECTIONS = frozenset({"-r", "--report-chars", "--durations", "--durations-min"})
"""Sections of pytest's terminal summary. The summary of the run replaces them, unless they are requested
on the command line."""
_CLEAN_ALLURE = "--clean-alluredir"
_COVERAGE_UNREPORTED = ("--cov-report=", "--cov-fail-under=0")
"""Arguments of measuring workers. Without an explicit limit, the one of coverage's own configuration would
be applied to every worker, whose share of the coverage is only a part."""

# Options whose value is a path.
_PATHS = frozenset(
    {"--junitxml", "--junit-xml", "--html", "--css", "--json-report-file", "--report-log", "--ctrf"}
    | {"--cov-config", "--alluredir"}
)

_DECIDING = frozenset({"--max-warnings", "--cov-fail-under", "--cov-precision"})
"""Options that can fail a session. In the command of a plan they are part of the command's verdict."""

ANNOTATIONS = "pytest_github_actions_annotate_failures"
"""A plugin without an option: it reports whenever the environment is that of GitHub Actions."""

_REPORTING_HOOKS = ("pytest_runtest_logreport", "pytest_runtest_logfinish", "pytest_terminal_summary")
_QUIET_PLUGINS = frozenset(
    {
        "_pytest",
        "pytest_planverify",
        "xdist",
        "pytest_rerunfailures",
        "_hypothesis_pytestplugin",
        ANNOTATIONS,
    }
)
"""Packages of plugins that implement reporting hooks in every session, but report only what an option of
theirs requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """Options from each of the places that pytest reads, without plan and todo arguments."""

    command_line: tuple[str, ...] = ()
    ini: tuple[str, ...] = ()
    """``addopts`` as returned by ``config.getini``."""
    environment: tuple[str, ...] = ()
    """``PYTEST_ADDOPTS``, split."""
    directory: Path = field(default_factory=Path.cwd)
    """The directory the user started in; relative paths of report files are resolved against it."""
    on_github: bool = field(default_factory=lambda: os.environ.get("GITHUB_ACTIONS") == "true")
    """Whether the run is a job of GitHub Actions, in which :data:`ANNOTATIONS` prints if it is loaded."""

    @property
    def options(self) -> Iterator[GivenOption]:
        """All options in the order in which pytest reads them; later ones win."""
        return split_options((*self.environment, *self.ini, *self.command_line))

    @property
    def demands_coverage(self) -> bool:
        """Return whether only ini file or environment request coverage: a limit then holds per command."""
        own = {option.name for option in split_options((*self.environment, *self.ini))}
        return "--cov" in own and not any(
            option.name == "--cov" for option in split_options(self.command_line)
        )

    @property
    def is_unmeasured(self) -> bool:
        """Return whether ``--no-cov`` switches coverage off; pytest-cov warns of its options behind it."""
        return any(option.name == "--no-cov" for option in self.options)

    def has(self, *prefixes: str) -> bool:
        """Return whether an option with one of these name prefixes is given."""
        return any(option.name.startswith(prefixes) for option in self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
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

    def keep(option: GivenOption) -> Iterable[str]:
        if option.name in _IN_WORKERS:
            words = () if option.name in own else _IN_WORKERS[option.name]
            return (
                word.format(unused=scratch / "unused", allure=scratch / "allure" / name) for word in words
            )
        if measures and option.name.startswith(("--cov", "--no-cov")):
            return ()
        if given.demands_coverage and option.name in _DECIDING:
            return option.words
        return option.words if _WORKER in _place(option) else ()

    start = _start(given, keep)
    args, env = [*start.args, *_without_annotations(given, own)], dict(start.env)
    # A data file of its own for each worker: together they are combined in the reporting session.
    if given.has("--cov") and not measures and not given.is_unmeasured:
        args += _COVERAGE_UNREPORTED[:1] if given.demands_coverage else _COVERAGE_UNREPORTED
        env["COVERAGE_FILE"] = str(scratch / "coverage" / f"measured-{name}")
    return ProcessStart(args=(*close_options(args), *command), env=env)


def confirmation_start(given: GivenOptions, command: Sequence[str], *, scratch: Path) -> ProcessStart:
    """Return arguments and environment for a repeated run, without the reporters of user and command.

    A coverage limit that the command itself sets is part of its verdict, and is kept.
    """

    # Only where a limit holds for each command is the coverage of a confirmation part of its verdict.
    def keep(option: GivenOption) -> Iterable[str]:
        is_measuring = _place(option) == _WORKER + _REPORTING and "cov" in option.name
        is_kept = given.demands_coverage and (option.name in _DECIDING or is_measuring)
        return option.words if is_kept or _CONFIRMATION in _place(option) else ()

    start = _start(given, keep)
    own = [option for option in split_options(command) if not _is_report_file(option.name)]
    words = (word for option in own for word in option.words)
    options = close_options((*start.args, *_without_annotations(given, ())))
    args, env = [*options, *words], dict(start.env)
    if not given.is_unmeasured and (
        given.demands_coverage or any(option.name == "--cov" for option in own)
    ):
        args.append("--cov-report=")
        env["COVERAGE_FILE"] = str(scratch / "coverage" / "confirmation")
    return ProcessStart(args=tuple(args), env=env)


def reporting_start(given: GivenOptions) -> ProcessStart:
    """Return arguments and environment of the reporting session."""
    return _start(given, lambda option: option.words if _REPORTING in _place(option) else ())


def relay_file(scratch: Path, name: str) -> Path:
    """Return the file to which the worker of that name writes its reports."""
    return scratch / "relay" / f"{name}.jsonl"


def _without_annotations(given: GivenOptions, own: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments that prevent each process from printing GitHub annotations, if any are needed.

    The plugin stays if the command configures it, as its options would be unknown without it.
    """
    needed = given.on_github and "--exclude-warning-annotations" not in own
    return ("-p", f"no:{ANNOTATIONS}") if needed else ()


def _is_report_file(name: str) -> bool:
    """Return whether an option of a command only writes or sends reports, without effect on its verdict."""
    return name in ("--json-report-omit", "--log-file", "--log-file-mode", _CLEAN_ALLURE) or (
        _PLACES.get(name) in (_REPORTING, _WORKER) and name not in _DECIDING
    )


def measured_files(scratch: Path) -> list[Path]:
    """Return the coverage data files of the workers; that of confirmations is not part of the run."""
    return sorted((scratch / "coverage").glob("measured-*"))


def allure_folder(given: GivenOptions) -> tuple[Path, bool] | None:
    """Return the folder for Allure's results, and whether to empty it first; ``None`` without Allure."""
    folders = [option.value for option in given.options if option.name == "--alluredir" and option.value]
    return (given.directory / folders[-1], given.has(_CLEAN_ALLURE)) if folders else None


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
    typed = {option.words for option in split_options(given.command_line)}
    for option in given.options:
        if option.name in _SUMMARY_SECTIONS and option.words not in typed:
            continue  # a plain ``-ra`` in an ini file alone does not justify the cost of the session
        if not option.known and not option.name.startswith("--planverify"):
            return True  # it may be of a reporter
        if _place(option) and _CONFIRMATION not in _place(option):
            return True
    for name, plugin in plugins:
        if name == ANNOTATIONS and given.on_github:
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


def _place(option: GivenOption) -> str:
    """Return the processes that an option is passed to: all if it is unknown, none if it is our own."""
    if option.name == _CLEAN_ALLURE or option.name.startswith("--planverify"):
        return ""
    return _PLACES.get(option.name, _WORKER + _CONFIRMATION + _REPORTING)


def _start(given: GivenOptions, keep: Callable[[GivenOption], Iterable[str]]) -> ProcessStart:
    """Return the start of a process with the words that ``keep`` returns for each option.

    Options stay in their place: ini file, environment or command line.
    """

    def kept(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            word for option in split_options(words) for word in keep(_absolute(option, given.directory))
        )

    env: dict[str, str] = {}
    args: list[str] = []
    ini = kept(given.ini)
    # Overridden only where something changed: pytest otherwise reads these places itself.
    if ini != given.ini:
        args += ["-o", f"addopts={shlex.join(ini)}"]
    environment = kept(given.environment)
    if environment != given.environment:
        env["PYTEST_ADDOPTS"] = shlex.join(environment)
    return ProcessStart(args=(*args, *kept(given.command_line)), env=env)


def _absolute(option: GivenOption, directory: Path) -> GivenOption:
    """Return the option with an absolute path, because the sessions run in the plan's root."""
    if option.value is None:
        return option
    value = option.value
    if option.name in _PATHS and value.lower() != "none":  # of pytest-json-report: write no file
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
    return option._replace(words=(f"{option.name}={value}",), value=value)


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
