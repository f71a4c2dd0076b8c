"""Tells the hook that watches the process who uses a fixture, and ends with the session what it notes."""

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
        wanted_by: Callable[[pytest.Item], Iterable[str]],
    ) -> None:
        """``wanted_by`` gives the criteria that want an item."""
        self._audit = audit
        self._spec = spec
        self._wanted_by = wanted_by
        self._items: list[pytest.Item] = []
        audit.users_of = self._users_of

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_setupnodes(self) -> None:
        os.environ[WORKER_VARIABLE] = spec_for_workers(self._spec)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._items = session.items

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
