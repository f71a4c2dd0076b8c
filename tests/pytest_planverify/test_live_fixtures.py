"""Wide fixtures are followed from their set-up to their end; the plan's own fixtures serve the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import records, session

from pytest_planverify.observing.live_fixtures import LiveFixtures
from pytest_planverify.observing.spec import Wanted


def test_what_outlives_a_test_is_alive_until_it_is_finalized(pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        import pytest

        OWN = ("outer", "inner", "broken")

        def live(request):
            plugins = request.config.pluginmanager.get_plugins()
            return next(plugin for plugin in plugins if type(plugin).__name__ == "LiveFixtures")

        def alive(request):
            values = live(request).values()
            return {name.split()[0]: str(value) for name, value, _ in values if name.startswith(OWN)}

        @pytest.fixture(scope="module")
        def outer(inner): return {"rows": [inner]}

        @pytest.fixture(scope="session")
        def inner(request):
            assert live(request).starting == "inner"
            return [1]

        @pytest.fixture
        def narrow(): return [2]

        @pytest.fixture(scope="module")
        def broken(): raise ValueError

        def test_uses(outer, narrow, request):
            assert live(request).starting is None
            assert alive(request) == {"inner": "[1]", "outer": "{'rows': [[1]]}"}

        def test_broken(broken): pass

        def test_broken_left_nothing(request):
            assert "broken" not in alive(request)
        """,
        test_z="""
        from test_what_outlives_a_test_is_alive_until_it_is_finalized import alive
        def test_ends(request): assert alive(request) == {"inner": "[1]"}
        """,
    )
    live = LiveFixtures()

    result = pytester.inline_run("-p", "no:randomly", "-q", plugins=[live])

    result.assertoutcome(passed=3, failed=1)
    assert live.values() == []


PLUGIN = """
import asyncio, pathlib, pytest

@pytest.fixture(scope="session", autouse=True)
def nothing():
    yield

@pytest.fixture(scope="session", autouse=True)
def address(): return ("localhost", 0)

@pytest.fixture(scope="session", autouse=True)
def place(): return pathlib.Path("x")

@pytest.fixture(scope="session", autouse=True)
def policy():
    class Policy(asyncio.DefaultEventLoopPolicy):
        __module__ = "asyncio"
    return Policy()

@pytest.fixture(scope="session", autouse=True)
def server(): return {"requests": []}
"""


def test_settings_that_a_plugin_gives_to_every_test_are_not_followed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    installed = pytester.mkdir("site-packages")
    (installed / "wide_settings.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(installed)
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def own(): return None

        def test_it(own, request):
            plugins = request.config.pluginmanager.get_plugins()
            live = next(plugin for plugin in plugins if type(plugin).__name__ == "LiveFixtures")
            alive = {name.split()[0] for name, _, _ in live.values()}
            assert alive >= {"own", "server"}
            assert not alive & {"nothing", "address", "place", "policy"}
        """
    )

    arguments = (
        "-p",
        "no:randomly",
        "-p",
        "no:asyncio",
        "-p",
        "no:hypothesispytest",
        "-p",
        "wide_settings",
    )
    pytester.inline_run(*arguments, plugins=[LiveFixtures()]).assertoutcome(passed=1)


TESTS = """
import pytest

@pytest.fixture(scope="session")
def database(record_testsuite_property):
    record_testsuite_property("rows", 3)

def test_path(planverify):
    planverify.metric("seen", str(planverify.fixture_path))

def test_suite(record_testsuite_property):
    record_testsuite_property("own", 4)

def test_wide(database): pass
"""


def test_tests_tell_the_plan_their_numbers(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(TESTS)
    wanted = (
        Wanted(key="a", selections=("test_it.py::test_path",), fixture_path="/data.json"),
        Wanted(key="b", selections=("test_it.py",)),
    )

    journal = session(
        tmp_path, "-p", "pytest_planverify.plugin", "--junitxml=suite.xml", wanted=wanted, soft_limits=False
    )

    finished = {record["nodeid"]: record for record in records(journal, "test_finished")}
    assert finished["test_it.py::test_path"]["properties"] == [["seen", "/data.json"]]
    metrics = {record["name"]: record for record in records(journal, "metric")}
    assert metrics["own"]["nodeid"] == "test_it.py::test_suite"
    assert (metrics["rows"]["via"], metrics["rows"]["nodeid"]) == ("database", None)
    assert records(journal, "fixture_conflict")[0]["keys"] == ["a", "b"]
    assert "database" in records(journal, "fixtures_used")[-1]["names"]
    assert '<property name="rows" value="3"' in (tmp_path / "suite.xml").read_text()


def test_without_a_plan_the_fixture_records_properties_and_knows_no_path(pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        def test_it(planverify, request):
            planverify.metric("rows", 3)
            assert planverify.fixture_path is None
            assert request.node.user_properties == [("rows", 3)]
        """
    )

    pytester.inline_run("-q").assertoutcome(passed=1)
