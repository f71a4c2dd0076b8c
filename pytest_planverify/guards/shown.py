"""What the run of a plan has shown, and the ground that it is judged on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.model.kinds import Hardness
from pytest_planverify.guards.hygiene.signs import Leave

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.model.baseline import SessionInventory
    from planner.model.outcome import Check
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.guards.hygiene import Grants

HARD, SOFT = Hardness.HARD, Hardness.SOFT
MOST_NAMED = 5


class SessionSeen(Protocol):
    """What is asked of a session that has ended."""

    @property
    def inventories(self) -> Sequence[dict[str, Any]]:
        """What its processes told at their end."""
        ...

    @property
    def forged(self) -> int: ...

    @property
    def journal_lost(self) -> bool: ...

    @property
    def collected(self) -> bool: ...

    @property
    def exit_status(self) -> int | None: ...

    @property
    def collection_failures(self) -> Mapping[str, object]: ...

    @property
    def results(self) -> Mapping[str, TestSeen]: ...


class TestSeen(Protocol):
    """A test that is over."""

    __test__ = False

    @property
    def outcome(self) -> str: ...


class CheckSeen(Protocol):
    """A criterion that was looked at."""

    @property
    def check(self) -> Check: ...


class RunResult(Protocol):
    """What a run of a plan found."""

    @property
    def records(self) -> Sequence[SessionSeen]: ...

    @property
    def checks(self) -> Mapping[str, Mapping[str, CheckSeen]]:
        """By todo and check."""
        ...


class Shown(NamedTuple):
    """What a run has shown."""

    sessions: Sequence[SessionSeen]
    checks: Mapping[str, Iterable[Check]]
    """By todo."""
    inventory: SessionInventory
    narrowed: bool = False
    """The user left tests out."""


class Ground:
    """What is known of files: whether they were changed, and by whose leave."""

    def __init__(self, kept: KeptBaseline, grants: Grants, digests: Mapping[str, str]) -> None:
        self.kept, self._grants, self._digests = kept, grants, digests
        self.inventory = kept.document.inventory

    def leave(self, path: str) -> Leave:
        """Whether somebody may change a file."""
        return self._grants.leave(path)

    def is_blessed(self, path: str) -> bool:
        """Whether a person has accepted the file as it is."""
        digest = self._digests.get(path)
        return digest is not None and self.kept.accepted(path, digest)

    def is_unchanged(self, path: str) -> bool:
        """Whether a file is what it was at the baseline."""
        before = self.kept.document.files.get(path)
        return before is not None and before.sha256 == self._digests.get(path)

    def is_kept_from_change(self, path: str) -> bool:
        """Whether what happens to a file's tests is no work on the file, which is read in its source."""
        leave = self.leave(path)
        if leave is Leave.GRANTED or self.is_blessed(path):
            return False
        return leave is Leave.FORBIDDEN or self.is_unchanged(path)

    def judges_were_blessed(self) -> bool:
        """Whether a person has accepted a change of what says which tests there are."""
        return any(
            self.kept.kind_of(path) in (JudgeKind.CONFTEST, JudgeKind.CONFIG)
            and self._digests.get(path) == digest
            for each in self.kept.document.accepted
            for path, digest in each.files.items()
        )


def named(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def signal(
    sign: str,
    message: str,
    hardness: Hardness = HARD,
    *,
    path: str | None = None,
    nodeid: str | None = None,
) -> HygieneSignal:
    """A sign; it is hard where nothing else is said."""
    return HygieneSignal(sign=sign, hardness=hardness, message=message, path=path, nodeid=nodeid)
