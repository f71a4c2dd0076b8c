"""Follows the fixtures that outlive a test: which are alive, and which is being set up now."""

from __future__ import annotations

import sys
from inspect import isgeneratorfunction
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_planverify.observing.leaks import fingerprint_of
from pytest_planverify.observing.value_readers import is_plain
from pytest_planverify.observing.values import class_module, is_library, is_library_file

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
            if not _is_without_state(fixturedef, result):
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


def _is_without_state(fixturedef: pytest.FixtureDef[Any], value: object) -> bool:
    """Whether tests can leave nothing in a fixture, nor it hold anything of the project's.

    Plugins have wide fixtures of their own for every test, most of which only give a setting. A policy of
    event loops is what all share anyhow, and is watched with the rest of the process.
    """
    code = getattr(fixturedef.func, "__code__", None)
    if code is None or not is_library_file(code.co_filename):
        return False
    return _is_setting(value) or _is_loop_policy(value)


def _is_setting(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_setting, cast("tuple[object, ...]", value)))
    kind = type(value)
    return is_plain(value) or (issubclass(kind, PurePath) and is_library(class_module(kind)))


def _is_loop_policy(value: object) -> bool:
    events = sys.modules.get("asyncio.events")
    policy: object = getattr(events, "AbstractEventLoopPolicy", None)
    kind = type(value)
    return isinstance(policy, type) and issubclass(kind, policy) and is_library(class_module(kind))
