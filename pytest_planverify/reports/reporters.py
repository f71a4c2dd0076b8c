"""Distribute the options of reporters: to workers, to confirmations, or to the reporting session.

Every acceptance criterion runs in a worker of its own, and a red one once more to confirm it. A reporter
that writes one file at the end of a session must be there once, in the reporting session
(:mod:`.reporter_session`), wherever it was asked for: on the command line, in ``addopts`` of the ini file,
or in ``PYTEST_ADDOPTS``. One table says so for the reporters that are known. Options that no table knows go
everywhere; the reporting session comes last, so that a file of one name then holds all.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.catalog.pytest_arguments import GivenOption, split_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pytest


_WORKER, _CONFIRMATION, _REPORTING = "wcr"
"""The processes that an option may be for."""

_TABLE = (
    # Read by a reporter at the end.
    (
        _REPORTING,
        "-r --report-chars --no-fold-skipped --force-short-summary --durations --durations-min "
        "--pastebin --max-warnings --junitxml --junit-xml --junitprefix --junit-prefix --html "
        "--self-contained-html --css --json-report --json-report-file --json-report-summary "
        "--json-report-indent --json-report-verbosity --report-log "
        "--report-log-exclude-logs-on-passed-tests --ctrf --exclude-warning-annotations --cov-report "
        "--cov-fail-under --cov-append --no-cov-on-fail --cov-precision",
    ),
    # Measures in each first run, and reports at the end.
    (
        _WORKER + _REPORTING,
        "--cov --cov-reset --cov-branch --cov-config --cov-context --no-cov --json-report-omit "
        "--hypothesis-show-statistics",
    ),
    # Writes while tests run.
    (_WORKER, "--alluredir --allure-no-capture"),
    # Chooses tests or how they run.
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
"""``--clean-alluredir`` is in no row: the folder is emptied when all results are known."""

_IN_WORKERS: Mapping[str, tuple[str, ...]] = {
    # Reporters that add to the reports of a worker, but only where they are asked for.
    "--junitxml": ("--junitxml={unused}",),
    "--junit-xml": ("--junitxml={unused}",),
    "--json-report": ("--json-report", "--json-report-file=none"),
    "--ctrf": ("--ctrf={unused}",),
    # One file a test, which are brought together at the end.
    "--alluredir": ("--alluredir={allure}",),
}

_SHOWN = frozenset({"-r", "--report-chars", "--durations", "--durations-min"})
"""Sections of the terminal's summary, which the screen of a run replaces unless they are typed."""
_ONCE = "--clean-alluredir"
_COVERAGE_UNREPORTED = ("--cov-report=", "--cov-fail-under=0")
"""Where no limit is given, the one of coverage's own configuration would count in every worker."""

_PATHS = frozenset(
    {"--junitxml", "--junit-xml", "--html", "--css", "--json-report-file", "--report-log", "--ctrf"}
    | {"--cov-config", "--alluredir"}
)

_DECIDING = frozenset({"--max-warnings", "--cov-fail-under", "--cov-precision"})
"""Where a plan's command gives one of these, it is a part of the command's verdict."""

ANNOTATIONS = "pytest_github_actions_annotate_failures"
"""This plugin has no option: it reports wherever the environment is that of GitHub Actions."""

_LISTENING = ("pytest_runtest_logreport", "pytest_runtest_logfinish", "pytest_terminal_summary")
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
"""Packages of plugins that listen in every session, and say nothing that no option of theirs asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """The options that a user gave, from each of the places that pytest reads; no plans, no todos."""

    command_line: tuple[str, ...] = ()
    ini: tuple[str, ...] = ()
    """``addopts``, as ``config.getini`` gives it."""
    environment: tuple[str, ...] = ()
    """``PYTEST_ADDOPTS``, split."""
    directory: Path = field(default_factory=Path.cwd)
    """Where the user started: relative paths of report files start there."""
    on_github: bool = field(default_factory=lambda: os.environ.get("GITHUB_ACTIONS") == "true")
    """The plugin for annotations prints wherever it is loaded."""

    @property
    def options(self) -> Iterator[GivenOption]:
        """All of them, in the order in which pytest reads them: later ones win."""
        return split_options((*self.environment, *self.ini, *self.command_line))

    @property
    def demands_coverage(self) -> bool:
        """Return whether the project's own settings measure; a limit there holds for each command."""
        own = {option.name for option in split_options((*self.environment, *self.ini))}
        return "--cov" in own and not any(
            option.name == "--cov" for option in split_options(self.command_line)
        )

    @property
    def is_unmeasured(self) -> bool:
        """Return whether coverage is switched off; pytest-cov then warns of what follows of its options."""
        return any(option.name == "--no-cov" for option in self.options)

    def has(self, *prefixes: str) -> bool:
        """Tell if an option is given whose name begins so."""
        return any(option.name.startswith(prefixes) for option in self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """The arguments of one pytest process, and the variables it has besides those of the run."""

    args: tuple[str, ...]
    env: dict[str, str]


def worker_start(given: GivenOptions, command: Sequence[str], *, scratch: Path, name: str) -> ProcessStart:
    """Return how the first run of a command is started where the run has reporters.

    ``scratch`` is a folder of the run; ``name`` tells the worker's files there from those of others. The
    command's own arguments come last and win. Where it asks for a reporter itself, it has that reporter as
    when it is run alone; where it measures coverage itself, the run's own measurement leaves it out.
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
    if given.has("--cov") and not measures and not given.is_unmeasured:
        args += _COVERAGE_UNREPORTED[:1] if given.demands_coverage else _COVERAGE_UNREPORTED
        env["COVERAGE_FILE"] = str(scratch / "coverage" / f"measured-{name}")
    # Between the user's words and the command's: `--cov` and `--json-report-omit` take what follows them.
    return ProcessStart(args=(*args, *command), env=env)


def confirmation_start(given: GivenOptions, command: Sequence[str], *, scratch: Path) -> ProcessStart:
    """Return how a command is run once more: no reporter, neither the user's nor its own, learns of it.

    A limit on coverage that the command itself sets belongs to its verdict, and stays.
    """

    def keep(option: GivenOption) -> Iterable[str]:
        is_measuring = _place(option) == _WORKER + _REPORTING and "cov" in option.name
        is_kept = given.demands_coverage and (option.name in _DECIDING or is_measuring)
        return option.words if is_kept or _CONFIRMATION in _place(option) else ()

    start = _start(given, keep)
    own = [option for option in split_options(command) if not _is_report_file(option.name)]
    words = (word for option in own for word in option.words)
    args, env = [*start.args, *_without_annotations(given, ()), *words], dict(start.env)
    if not given.is_unmeasured and (
        given.demands_coverage or any(option.name == "--cov" for option in own)
    ):
        args.append("--cov-report=")
        env["COVERAGE_FILE"] = str(scratch / "coverage" / "confirmation")
    return ProcessStart(args=tuple(args), env=env)


def reporting_start(given: GivenOptions) -> ProcessStart:
    """Return the options of the reporting session."""
    return _start(given, lambda option: option.words if _REPORTING in _place(option) else ())


def relay_file(scratch: Path, name: str) -> Path:
    """Return where the worker of that name writes its reports."""
    return scratch / "relay" / f"{name}.jsonl"


def _without_annotations(given: GivenOptions, own: Iterable[str]) -> tuple[str, ...]:
    """Return what keeps GitHub's annotations from being printed by each process."""
    needed = given.on_github and "--exclude-warning-annotations" not in own
    return ("-p", f"no:{ANNOTATIONS}") if needed else ()


def _is_report_file(name: str) -> bool:
    """Tell if an option of a command writes or sends something and decides no verdict."""
    return name in ("--json-report-omit", "--log-file", "--log-file-mode", _ONCE) or (
        _PLACES.get(name) in (_REPORTING, _WORKER) and name not in _DECIDING
    )


def measured_files(scratch: Path) -> list[Path]:
    """Return what the workers measured; a confirmation's is not of the run."""
    return sorted((scratch / "coverage").glob("measured-*"))


def allure_folder(given: GivenOptions) -> tuple[Path, bool] | None:
    """Return the folder for Allure's results, and if it is to be emptied first."""
    folders = [option.value for option in given.options if option.name == "--alluredir" and option.value]
    return (given.directory / folders[-1], given.has(_ONCE)) if folders else None


def is_reporting_needed(
    given: GivenOptions, plugins: Iterable[tuple[str, object]], conftests: Iterable[str]
) -> bool:
    """Tell if anything would be reported, so that a run without reporters need not pay for the session.

    It is needed for each option of the table's reporters; for an option that no table knows, which may
    belong to one; for a plugin that listens in every session, by ``plugins`` (names and plugins of a
    configured or unconfigured pytest); and for a conftest whose text, in ``conftests``, has such a hook. A
    plugin that registers its listener only when it is configured, and has no option, is seen by nobody but
    the one for GitHub's annotations, whose condition is asked here.
    """
    shown = {option.words for option in split_options(given.command_line)}
    for option in given.options:
        if option.name in _SHOWN and option.words not in shown:
            continue  # an ini file with a plain ``-ra`` is no reason to pay for the session
        if not option.known and not option.name.startswith("--planverify"):
            return True
        if _place(option) and _CONFIRMATION not in _place(option):
            return True
    for name, plugin in plugins:
        if name == ANNOTATIONS and given.on_github:
            return True
        module = getattr(plugin, "__name__", None) or type(plugin).__module__
        if module.partition(".")[0] not in _QUIET_PLUGINS and any(
            hasattr(plugin, hook) for hook in _LISTENING
        ):
            return True
    hooks = (*_LISTENING, "pytest_sessionfinish")
    return any(f"def {hook}(" in text for text in conftests for hook in hooks)


def _place(option: GivenOption) -> str:
    """Return the processes that an option is for, all if no table has it; none if it is our own."""
    if option.name == _ONCE or option.name.startswith("--planverify"):
        return ""
    return _PLACES.get(option.name, _WORKER + _CONFIRMATION + _REPORTING)


def _start(given: GivenOptions, keep: Callable[[GivenOption], Iterable[str]]) -> ProcessStart:
    """Return the options that are kept, from the places where they were given."""

    def kept(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            word for option in split_options(words) for word in keep(_absolute(option, given.directory))
        )

    env: dict[str, str] = {}
    args: list[str] = []
    ini = kept(given.ini)
    if ini != given.ini:
        args += ["-o", f"addopts={shlex.join(ini)}"]
    environment = kept(given.environment)
    if environment != given.environment:
        env["PYTEST_ADDOPTS"] = shlex.join(environment)
    return ProcessStart(args=(*args, *kept(given.command_line)), env=env)


def _absolute(option: GivenOption, directory: Path) -> GivenOption:
    """Return the option with the path of its file absolute: sessions run in the plan's root."""
    if option.value is None:
        return option
    value = option.value
    if option.name in _PATHS and value.lower() != "none":
        value = str(directory / Path(os.path.expandvars(value)).expanduser())
    elif option.name == "--cov-report" and ":" in value:
        kind, _, file = value.partition(":")
        value = value if kind.startswith("term") else f"{kind}:{directory / file}"
    elif option.name == "--cov" and (directory / value).is_dir():  # else it is the name of a package
        value = str(directory / value)
    else:
        return option
    return option._replace(words=(f"{option.name}={value}",), value=value)


class Reporting:
    """The reports of one run."""

    def __init__(self, config: pytest.Config, *, wanted: bool = True) -> None:
        """Nothing is reported of a run that is not ``wanted`` by a user, but made to be compared with."""
        self._config = config
        self._wanted = wanted
        self._needed: bool | None = None
        self.given: GivenOptions | None = None
        """The options of the run, where anybody asks for reports."""
        self.relays: dict[tuple[Path, str, str], Path] = {}
        """By plan file, todo and criterion, the file of its worker's serialized reports."""

    def is_needed(self, given: GivenOptions, conftests: Iterable[str]) -> bool:
        """Return whether anybody asks for the reports, as the first command of the run shows."""
        if self._needed is None:
            plugins = self._config.pluginmanager.list_name_plugin()
            self._needed = self._wanted and is_reporting_needed(given, plugins, conftests)
            self.given = given if self._needed else None
        return self._needed
