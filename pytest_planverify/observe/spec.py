"""Instructions for one worker: plain data that crosses a pipe, a file or an xdist channel.

They are written by the parent and contain everything that a worker must know; it never reads the plan.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import IntEnum
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
"""Plugins whose configuration and session start do not depend on the individual command.

Only these may be configured in a server, once for all commands of a group. Names are those of top-level
modules.
"""

PRELOADED = frozenset(
    {
        "PIL", "_brotli", "_cffi_backend", "_hypothesis_globals", "aiohappyeyeballs", "aiohttp",
        "aiosignal", "annotated_doc", "annotated_types", "anyio", "asgiref", "attr", "attrs", "backports",
        "blinker", "bottleneck", "brotli", "certifi", "cffi", "charset_normalizer", "click", "cloudpickle",
        "colorama", "contourpy", "cryptography", "cycler", "dateutil", "django", "docutils", "factory",
        "faker", "fastapi", "flask", "fontTools", "frozenlist", "fsspec", "graphql", "greenlet", "h11",
        "h2", "h5py", "hpack", "httpcore", "httpcore2", "httpx", "httpx2", "hyperframe", "hypothesis",
        "idna", "itsdangerous", "jinja2", "jsonschema", "jsonschema_specifications", "jwt", "kiwisolver",
        "lxml", "markdown_it", "markupsafe", "marshmallow", "matplotlib", "mdurl", "mpl_toolkits",
        "mpmath", "msgpack", "msgspec", "multidict", "networkx", "numexpr", "numpy", "opentelemetry",
        "orjson", "outcome", "packaging", "pandas", "propcache", "psutil", "psycopg", "psycopg_binary",
        "pyarrow", "pydantic", "pydantic_core", "pygments", "pyparsing", "python_multipart", "pytz",
        "redis", "referencing", "regex", "requests", "rich", "rpds", "scipy", "shapely", "simplejson",
        "six", "sniffio", "sortedcontainers", "sqlalchemy", "sqlmodel", "sqlparse", "starlette", "sympy",
        "tomlkit", "toolz", "tornado", "tqdm", "trio", "truststore", "typing_extensions",
        "typing_inspection", "tzdata", "urllib3", "werkzeug", "yaml", "yarl",
    }
)  # fmt: skip
"""Top-level packages whose import only defines modules, and warning filters before or after all others.

It changes nothing else in the process, patches and registers nothing in other packages, and does not
remember the process id. (six adds an import hook, but for its own modules only.) Preloading pays for
libraries that take long to import; all that these import in turn is listed, too.
"""


class Level(IntEnum):
    """The point up to which a server prepares pytest before it forks workers."""

    IMPORTED = 0
    """pytest and its plugins are imported; the worker runs ``pytest.main``."""
    PARSED = 1
    """Options and the ini file are parsed; plugins are registered."""
    STARTED = 2
    """Plugins are configured and ``pytest_sessionstart`` has been called."""


class CannotServe(Exception):
    """A server cannot prepare pytest as far as requested."""

    def __init__(self, level: Level, reason: str, module: str | None = None) -> None:
        super().__init__(level, reason, module)
        self.level = level
        """The highest level that is possible."""
        self.module = module
        """A third-party module that must not be preloaded, if that is the reason."""

    def __str__(self) -> str:
        return str(self.args[1])


HARNESS_EXIT = 70
"""Exit status of a worker that failed before it called pytest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """The user's selection for this run: tests outside of it are not run, neither passed nor failed."""

    keyword: str | None = None
    markexpr: str | None = None
    deselect: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    """Absolute paths."""
    ignore_glob: tuple[str, ...] = ()
    """Patterns of absolute paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Everything that must be equal for two commands to be forked from one server."""

    root: str
    """The plan's root, the working directory."""
    options: tuple[str, ...] = ()
    """The command's options without its positional arguments, ``-k``, ``-m`` and ``--deselect``."""
    probe: tuple[str, ...] = ()
    """All positional arguments of one of the commands: pytest finds rootdir and ini file by them."""
    rootdir: str = ""
    """pytest's rootdir and ini file, determined by the parent; commands with others start another group."""
    inifile: str | None = None
    ini_stamps: tuple[tuple[str, int, int], ...] = ()
    """Path, size and time of the ini file: if a test changes it, later commands need another server."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of the commands, as pairs of name and value."""
    as_module: bool = False
    """Started as ``python -m pytest``: the working directory is on ``sys.path``."""
    script_paths: tuple[str, ...] = ()
    """Entries of ``sys.path`` that are due to how this run was started."""
    unwarmed: bool = False
    """Whether pytest cannot be configured before the command is known."""
    modules: tuple[str, ...] = ()
    """Third-party modules to preload, learned from earlier workers."""

    @property
    def key(self) -> Start:
        """The value without what does not change a session: two starts with equal keys share a server."""
        return dataclasses.replace(self, probe=(), modules=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """Instructions for the worker of one criterion: a session with exactly the arguments of its command."""

    worker_id: str
    """Id of the worker within the run."""
    check: str
    """The criterion as plan, todo and check id."""
    start: Start
    args: tuple[str, ...]
    """The arguments of ``pytest.main``."""
    selections: tuple[str, ...] = ()
    """The positional ones among them."""
    keyword: str | None = None
    """The command's own ``-k``, ``-m`` and ``--deselect``; those of the user are in ``narrowing``."""
    markexpr: str | None = None
    deselect: tuple[str, ...] = ()
    journal: str
    """Absolute path of the run's journal."""
    key: str = ""
    """Secret key that signs the worker's records."""
    log: str | None
    """File of the worker's own output; ``None`` leaves it on the terminal."""
    stacks: str
    """File for faulthandler's stacks."""
    board: str
    """Board file whose byte at ``slot`` shows the phase of the running test."""
    slot: int = 0
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of this worker only."""
    relay: str | None = None
    """File for serialized reports, if user reporters are active."""
    limit_seconds: float | None = None
    """The criterion's limit, enforced as soft limit; ``None`` under a debugger."""
    fixture_path: str | None = None
    """Absolute path of the data file that the criterion names, if any."""
    narrowing: Narrowing = Narrowing()
    collect_only: bool = False
    confirming: bool = False
    """The run confirms an earlier failure; its rendered tracebacks are not shown."""
    recorded_tests: tuple[str, ...] = ()
    """Node ids whose executed product functions are recorded."""
    planned: tuple[str, ...] = ()
    """Paths that the plan expects below the root, existing or not."""
    sandbox: tuple[Sandbox, ...] = ()
    """Sandbox rules of the top plan and of the plan that owns the command."""

    @property
    def root(self) -> str:
        """The plan's root; node ids are relative to it."""
        return self.start.root

    def to_json(self) -> str:
        """Return the spec as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WorkerSpec:
        """Parse the output of :meth:`to_json`; the result equals the original."""
        data = _arrays_to_tuples(json.loads(text))
        data["start"] = Start(**data["start"])
        data["narrowing"] = Narrowing(**data["narrowing"])
        data["sandbox"] = tuple(Sandbox(**each) for each in data["sandbox"])
        return cls(**data)


def _arrays_to_tuples(value: Any) -> Any:
    """Convert JSON arrays to tuples, recursively."""
    if isinstance(value, dict):
        return {name: _arrays_to_tuples(each) for name, each in cast("dict[str, Any]", value).items()}
    return tuple(map(_arrays_to_tuples, cast("list[Any]", value))) if isinstance(value, list) else value
