"""What a session is told before it starts: plain data that crosses a pipe or an xdist channel."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLLOWED_VARIABLES = frozenset({"PYTHONPATH"})
"""Variables that an interpreter reads when it starts, which a forked session follows by itself."""
COVERAGE_DEMAND = "what --cov-fail-under measures"
"""What all tests of a session have in common where pytest-cov fails a run that covers too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The tests that one criterion asks for, as its command selects them."""

    key: str
    """Names the criterion within the session: plan, todo and check id."""
    selections: tuple[str, ...] = ()
    keyword: str | None = None
    markexpr: str | None = None
    deselect: tuple[str, ...] = ()
    limit_seconds: float | None = None
    fixture_path: str | None = None
    """Absolute path of the data file that the criterion names."""


@dataclass(slots=True)
class SharedTests:
    """What the criteria that share tests ask for them."""

    fixture_path: str | None
    conflict: bool
    """They name different data files."""
    limit_seconds: float | None
    tests: int = 0
    """How many tests they share."""

    @classmethod
    def by(cls, wanted: Sequence[Wanted]) -> SharedTests:
        """What these criteria ask for."""
        paths = [each.fixture_path for each in wanted]
        return cls(
            fixture_path=next(filter(None, paths), None),
            conflict=len(set(paths)) > 1,
            limit_seconds=max((each.limit_seconds for each in wanted if each.limit_seconds), default=None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What the user of this run leaves out: never failed, never green, just not run."""

    keyword: str | None = None
    markexpr: str | None = None
    deselect: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    """Node ids relative to the plan's root; everything else is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What one plan lets its tests reach for: ``record``, ``deny``, or what is granted."""

    root: str
    """Where paths that are granted start from."""
    network: str | tuple[str, ...] = "record"
    processes: str | tuple[str, ...] = "record"
    writes: str | tuple[str, ...] = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """One ordinary pytest session."""

    session_id: str
    root: str
    """The plan's root, the session's working directory; node ids are relative to it."""
    args: tuple[str, ...]
    """What ``pytest.main`` is given."""
    wanted: tuple[Wanted, ...]
    journal: str
    key: str = ""
    """Signs the records of the session."""
    log: str | None
    """Where the session's own output goes; ``None`` leaves it on the terminal."""
    stacks: str
    """Where faulthandler writes when the process is made to end."""
    verbatim: bool = False
    """The command's own arguments select; nothing is folded and nothing is overridden."""
    as_module: bool = False
    """Started as ``python -m pytest``: the working directory is on ``sys.path``."""
    script_paths: tuple[str, ...] = ()
    """Entries of ``sys.path`` that only say how this run itself was started."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    narrowing: Narrowing = Narrowing()
    skip: tuple[str, ...] = ()
    """Node ids that an earlier session has finished, or that ended one."""
    skip_files: tuple[str, ...] = ()
    """Test files whose import ended an earlier session."""
    maxfail: int = 0
    distributed: bool = False
    """The user asked for xdist workers."""
    watch_leaks: bool = True
    soft_limits: bool = True
    collect_only: bool = False
    planned: tuple[str, ...] = ()
    """Paths below the root that the plan expects, whether or not they exist yet."""
    sandbox: tuple[Sandbox, ...] = ()
    """What the plans of the session grant: the top plan, and the one whose commands run."""

    def to_json(self) -> str:
        """The spec as one line of JSON, for the channel to an xdist worker."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SessionSpec:
        """The spec that :meth:`to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        data["wanted"] = tuple(Wanted(**_tuples(entry)) for entry in data["wanted"])
        data["narrowing"] = Narrowing(**_tuples(data["narrowing"]))
        data["sandbox"] = tuple(Sandbox(**_tuples(entry)) for entry in data["sandbox"])
        return cls(**_tuples(data))


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        for key, value in data.items()
    }
