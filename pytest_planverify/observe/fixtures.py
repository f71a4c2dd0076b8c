"""Fixtures for tests. They work in any run, with or without a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_planverify.observe.recorder import Recorder

RECORDER = "planverify-recorder"
"""Plugin name of the recorder."""


class PlanverifyFixture:
    """Value of the ``planverify`` fixture."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._item: pytest.Item = request.node  # pyright: ignore[reportUnknownMemberType]  # pytest leaves it untyped
        self._recorder: Recorder | None = request.config.pluginmanager.get_plugin(RECORDER)

    def metric(self, name: str, value: float) -> None:
        """Record a number for the plan's ``metrics``, like ``record_property``."""
        self._item.user_properties.append((name, value))

    @property
    def fixture_path(self) -> Path | None:
        """Path of the criterion's data file; ``None`` without a plan or a data file."""
        path = None if self._recorder is None else self._recorder.fixture_path
        return None if path is None else Path(path)


@pytest.fixture
def planverify(request: pytest.FixtureRequest) -> PlanverifyFixture:
    """Record metrics for the plan (``.metric(name, value)``) and find its data file (``.fixture_path``)."""
    return PlanverifyFixture(request)


class SuitePropertyRecorder:
    """Replacement of pytest's ``record_testsuite_property`` in a worker.

    The original writes to the JUnit file only, and nothing on xdist workers. This one also records the
    value for the plan's ``metrics``.
    """

    @pytest.fixture(scope="session")
    @staticmethod  # pytest warns of a session fixture that is a method
    def record_testsuite_property(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
        """Return a function that records a property of the whole suite, by name and value."""
        from _pytest.junitxml import xml_key

        from pytest_planverify.observe.results import writable

        recorder: Any = request.config.pluginmanager.get_plugin(RECORDER)
        xml = request.config.stash.get(xml_key, None)  # None unless --junitxml is given

        def record(name: str, value: object) -> None:
            recorder.write("metric", name=str(name), value=writable(value))
            if xml is not None:
                xml.add_global_property(name, value)

        return record
