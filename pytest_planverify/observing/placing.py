"""Tells the hook that watches the process where the session stands: which test runs, who uses a fixture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.observing.audit import WORKER_VARIABLE, spec_for_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from pytest_planverify.observing.audit import Audit
    from pytest_planverify.observing.spec import SessionSpec


class Placing:
    """A plugin of the session and of each of its workers."""

    def __init__(
        self,
        audit: Audit,
        spec: SessionSpec,
        nodeid_of: Callable[[pytest.Item], str],
        wanted_by: Callable[[pytest.Item], Iterable[str]],
    ) -> None:
        """``nodeid_of`` and ``wanted_by`` give the id of an item below the root, and the criteria."""
        self._audit = audit
        self._spec = spec
        self._nodeid_of = nodeid_of
        self._wanted_by = wanted_by
        self._items: list[pytest.Item] = []
        audit.users_of = self._users_of

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_setupnodes(self) -> None:
        os.environ[WORKER_VARIABLE] = spec_for_workers(self._spec)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._items = session.items

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._audit.nodeid = self._nodeid_of(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        yield
        self._audit.flush()

    def _users_of(self, fixture: Any) -> set[str]:
        found: set[str] = set()
        for item in self._items:
            info = getattr(item, "_fixtureinfo", None)
            if info is not None and fixture in info.name2fixturedefs.get(fixture.argname, ()):
                found.update(self._wanted_by(item))
        return found
