"""The instructions of one worker: plain data that crosses a pipe, a file or an xdist channel."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, cast

from pytest_planverify.guards.sandbox_policy import Sandbox

HARMLESS_PLUGINS = frozenset(
    {
        "_hypothesis_pytestplugin", "_pytest", "allure_pytest", "anyio", "ctrf", "faker", "hypothesis",
        "inline_snapshot", "pytest_asyncio", "pytest_benchmark", "pytest_cov",
        "pytest_github_actions_annotate_failures", "pytest_html", "pytest_httpbin", "pytest_httpserver",
        "pytest_json_ctrf", "pytest_jsonreport", "pytest_metadata", "pytest_mock", "pytest_planverify",
        "pytest_randomly", "pytest_reportlog", "pytest_rerunfailures", "pytest_subtests", "pytest_timeout",
        "requests_mock", "respx", "typeguard", "xdist",
    }
)  # fmt: skip
"""Plugins whose part in configuration and session start is the same for every worker of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """Tests that the user of this run leaves out: never failed, never green, just not run."""

    keyword: str | None = None
    markexpr: str | None = None
    deselect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """All that must be equal for two commands to start alike, so that one server can fork both."""

    root: str
    """The plan's root, the working directory."""
    options: tuple[str, ...] = ()
    """The command's options without its positional arguments, ``-k``, ``-m`` and ``--deselect``."""
    probe: tuple[str, ...] = ()
    """Positional arguments of one of the commands: pytest finds rootdir and ini file by them."""
    rootdir: str = ""
    inifile: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    as_module: bool = False
    """Started as ``python -m pytest``: the working directory is on ``sys.path``."""
    script_paths: tuple[str, ...] = ()
    """Entries of ``sys.path`` that only say how this run itself was started."""
    unwarmed: str | None = None
    """Why pytest cannot be configured ahead of the command."""
    modules: tuple[str, ...] = ()
    """Third-party modules that earlier workers imported, to be imported once for all."""

    @property
    def key(self) -> Start:
        """The same without what only helps, for comparison."""
        return dataclasses.replace(self, probe=(), modules=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """One criterion's worker: an ordinary pytest session with exactly its command's arguments."""

    worker_id: str
    """Names the worker within the run and in its records."""
    check: str
    """Names the criterion: plan, todo and check id."""
    start: Start
    args: tuple[str, ...]
    """The arguments of ``pytest.main``."""
    selections: tuple[str, ...] = ()
    """Those of them that name what to collect."""
    keyword: str | None = None
    markexpr: str | None = None
    deselect: tuple[str, ...] = ()
    journal: str
    key: str = ""
    """Signs the records of the worker."""
    log: str | None
    """File of the worker's own output; ``None`` leaves it on the terminal."""
    stacks: str
    """File that faulthandler writes to when the process is made to end."""
    board: str
    """File whose byte at ``slot`` tells the phase of the running test."""
    slot: int = 0
    env: tuple[tuple[str, str], ...] = ()
    """Variables of this worker alone."""
    relay: str | None = None
    """File that takes the serialized reports, for the reporters of the user."""
    limit_seconds: float | None = None
    """The criterion's limit, enforced softly inside; ``None`` where a debugger may stop the clock."""
    fixture_path: str | None = None
    """Absolute path of the data file that the criterion names."""
    narrowing: Narrowing = Narrowing()
    collect_only: bool = False
    confirming: bool = False
    """The command has been run before, and nobody reads how its failures are rendered now."""
    recorded_tests: tuple[str, ...] = ()
    """The tests of which the functions that they execute are written down."""
    planned: tuple[str, ...] = ()
    """Paths below the root that the plan expects, whether or not they exist yet."""
    sandbox: tuple[Sandbox, ...] = ()
    """The grants of the top plan and of the one whose command runs."""

    @property
    def root(self) -> str:
        """The plan's root; node ids are relative to it."""
        return self.start.root

    def to_json(self) -> str:
        """Return the spec as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WorkerSpec:
        """Return the spec that :meth:`to_json` wrote."""
        data = _frozen(json.loads(text))
        data["start"] = Start(**data["start"])
        data["narrowing"] = Narrowing(**data["narrowing"])
        data["sandbox"] = tuple(Sandbox(**each) for each in data["sandbox"])
        return cls(**data)


def _frozen(value: Any) -> Any:
    """Return JSON with tuples in the place of arrays."""
    if isinstance(value, dict):
        return {name: _frozen(each) for name, each in cast("dict[str, Any]", value).items()}
    return tuple(map(_frozen, cast("list[Any]", value))) if isinstance(value, list) else value
