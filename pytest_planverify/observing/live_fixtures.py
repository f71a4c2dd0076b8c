"""Follows the fixtures that outlive a test: which are alive, and which is being set up now."""

from __future__ import annotations

from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.observing.leaks import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_FRAMEWORK = ("_pytest.", "pytest_planverify.", "xdist.", "pytest_cov.")


class LiveFixtures:
    """A plugin that only listens to pytest's fixture hooks."""

    def __init__(self) -> None:
        self._alive: dict[int, tuple[pytest.FixtureDef[Any], object]] = {}
        self._starting: list[str] = []
        self.wide_one_made: Callable[[], None] | None = None
        """Called after the set-up of a wide fixture that undoes at its end what it has done."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        self._starting.append(fixturedef.argname)
        try:
            result = yield
        finally:
            self._starting.pop()
        if not (fixturedef.func.__module__ or "").startswith(_FRAMEWORK):
            self._alive[id(fixturedef)] = fixturedef, fingerprint_of(result)
            if self.wide_one_made is not None and isgeneratorfunction(fixturedef.func):
                self.wide_one_made()
        return result

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        self._alive.pop(id(fixturedef), None)

    @property
    def starting(self) -> str | None:
        """The wide fixture that is being set up, the innermost one."""
        return self._starting[-1] if self._starting else None

    def values(self) -> list[tuple[str, Any, object]]:
        """Name, value and first fingerprint of each that is alive; another instance has another name."""
        values: list[tuple[str, Any, object]] = []
        for definition, when_made in self._alive.values():
            cached = definition.cached_result
            if cached is not None and cached[2] is None:
                values.append((f"{definition.argname} {id(cached[0]):x}", cached[0], when_made))
        return values
