"""Plans with third-party plugins, among them pytest-cov."""

from __future__ import annotations

from pathlib import Path

import coverage
import pytest
from example_project import Example, Verified, todo
from real_command import WORKER

PLUGIN = '''
"""Does what plugins for databases, event loops, sockets, timing and gathered checks do."""

import asyncio
import gc
import socket

import pytest


class Database:
    def connect(self):
        return "connected"


class Guarded(socket.socket):
    pass


def refuse(self):
    raise RuntimeError("no access to the database without its fixture")


def count(phase, info):
    pass


TRUE_SOCKET = socket.socket
ACCESS = {}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    import settings

    assert settings.NAME == "shop"
    ACCESS["allowed"] = Database.connect
    Database.connect = refuse


@pytest.fixture
def database(monkeypatch):
    monkeypatch.setattr(Database, "connect", ACCESS["allowed"])
    return Database()


@pytest.fixture(scope="session", autouse=True)
def patched_editor():
    yield


@pytest.fixture(scope="session", autouse=True)
def loop_policy():
    return asyncio.get_event_loop_policy()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    socket.socket = Guarded
    item.checks = []
    if count not in gc.callbacks:
        gc.callbacks.append(count)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    socket.socket = TRUE_SOCKET


@pytest.fixture
def check(request):
    def equal(found, expected):
        if found != expected:
            request.node.checks.append(f"check {found} == {expected}")

    return equal


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and item.checks and not call.excinfo:
        try:
            raise AssertionError("; ".join(item.checks))
        except AssertionError:
            call.excinfo = pytest.ExceptionInfo.from_current()
        report.outcome, report.longrepr = "failed", "; ".join(item.checks)
    return report
'''

PROJECT = {
    "settings.py": "NAME = 'shop'\n",
    "shop.py": """
        import functools

        @functools.cache
        def price(name): return len(name)

        def double(number): return number * 3
    """,
    "test_query.py": """
        import asyncio, shop

        def test_query(database): assert database.connect() == "connected"
        def test_loop(): assert asyncio.run(asyncio.sleep(0, shop.price("tea"))) == 3
    """,
    "test_prices.py": """
        import shop

        def test_price(database): assert shop.price("milk") == 4 and database.connect()
        def test_again(): assert shop.price("tea") == 3
    """,
    "test_checks.py": """
        import shop

        def test_double(check):
            check(shop.price("jam"), 3)
            check(shop.double(2), 4)
    """,
    "test_plain.py": "def test_plain(): pass\n",
}


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return the run of the project in an environment with the plugin."""
    installed = tmp_path_factory.mktemp("environment") / "site-packages"
    installed.mkdir()
    (installed / "busy_plugin.py").write_text(PLUGIN)
    example = Example(tmp_path_factory.mktemp("project"), PROJECT)
    names = ("query", "prices", "checks", "plain")
    example.plan(*(todo(name, f"pytest test_{name}.py") for name in names))
    env = {"PYTHONPATH": f"{installed}:{example.root}"}
    return example.verify("-p", "busy_plugin", "--planverify-confirm=0", "plan.yaml", env=env)


def test_side_effects_of_plugins_fail_no_criterion(verified: Verified):
    found = {name: verified.check(name) for name in ("query", "prices", "plain")}

    assert {check["verdict"] for check in found.values()} == {"passed"}, str(verified)
    assert {check["isolation"] for check in found.values()} == {WORKER}, str(verified)
    assert "Traceback (most recent call last)" not in verified.output
    assert "INTERNAL" not in verified.output


def test_soft_assertions_of_a_plugin_are_product_failures(verified: Verified):
    evidence = verified.outcomes["checks"]["failure_evidence"]

    assert verified.exit_code == 1, str(verified)
    assert (evidence["category"], evidence["owner"]) == ("TEST_REGRESSION", "product")
    assert "check 6 == 4" in evidence["stack_trace_head"]


def test_hypothesis_is_imported_only_where_a_test_uses_it(tmp_path: Path):
    """Its plugin would import it in each worker, for half a second, to report that no test used it."""
    files = {
        "conftest.py": """
            import pathlib, sys
            def pytest_unconfigure(config):
                file = pathlib.Path(config.args[0]).with_suffix(".imported")
                file.write_text(str("hypothesis" in sys.modules))
        """,
        "test_plain.py": "def test_plain(): pass",
        "test_property.py": """
            from hypothesis import given, strategies
            @given(strategies.booleans())
            def test_booleans(n): assert isinstance(n, bool)
        """,
    }
    example = Example(tmp_path, files)
    example.plan(
        todo("plain", "pytest test_plain.py"), todo("property", "pytest -W error test_property.py")
    )

    verified = example.verify("-p", "_hypothesis_pytestplugin")

    assert verified.exit_code == 0, str(verified)
    imported = {file.stem: file.read_text() for file in tmp_path.glob("*.imported")}
    assert imported == {"test_plain": "False", "test_property": "True"}


def test_xdist_workers_of_a_command_without_plugin_autoloading_are_observed(tmp_path: Path):
    tests = """
        import os
        def test_own_plugins(): assert os.environ.get("PYTEST_PLUGINS") is None
        def test_red(): assert 1 == 2
    """
    example = Example(tmp_path, {"test_a.py": tests})
    example.plan(todo("it", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -p xdist -n 1 test_a.py"))

    run = example.verify("--planverify-confirm", "0", autoload=True)

    assert run.tests("it") == {"test_a.py::test_own_plugins": "passed", "test_a.py::test_red": "failed"}
    assert "assert 1 == 2" in str(run.outcomes["it"]["failure_evidence"])


FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": "def price():\n    return 1\n\ndef discount():\n    return 2\n\n"
    "def unused():\n    return 3\n",
    "conftest.py": "",
    "tests/test_price.py": "from shop.prices import price\ndef test_price(): assert price() == 1\n",
    "tests/test_discount.py": "import os\nfrom shop.prices import discount\n"
    "def test_discount(): assert discount() == 2 and os.environ['SALE'] == '1'\n",
}


def test_one_coverage_report_combines_all_workers(tmp_path: Path):
    """Of cold workers at the same time; forked ones are in test_reporters.py."""
    example = Example(tmp_path / "project", FILES)
    example.plan(
        todo("price", "pytest tests/test_price.py"),
        todo("discount", "SALE=1 pytest tests/test_discount.py"),
    )
    run = example.verify(
        *("-p", "pytest_cov", "--cov=shop", "--cov-report=term-missing", "--cov-fail-under=10"),
        *("project/plan.yaml", "--planverify-isolate", "-p", "xdist", "-n2"),
        cwd=tmp_path,
    )

    assert run.exit_code == 0, str(run)
    assert "prices.py" in run.output, str(run)
    assert "83%" in run.output, str(run)
    assert run.output.count("TOTAL") == 1, "one report of the whole, not one a worker"
    (file,) = (path for path in (example.root / ".coverage", tmp_path / ".coverage") if path.exists())
    data = coverage.CoverageData(basename=str(file))
    data.read()
    (measured,) = (name for name in data.measured_files() if name.endswith("prices.py"))
    assert set(data.lines(measured) or ()) == {1, 2, 4, 5, 7}


def test_a_coverage_limit_in_addopts_fails_a_command_unless_it_overrides_them(tmp_path: Path):
    ini = "[pytest]\naddopts = --cov=shop --cov-fail-under=80\n"
    example = Example(tmp_path, {**FILES, "pytest.ini": ini})
    example.plan(
        todo("price", "pytest tests/test_price.py"),
        todo("both", "SALE=1 pytest tests"),
        todo("reported", "pytest --cov-report=xml tests/test_price.py"),
        todo("less", "pytest --cov-fail-under=1 tests/test_price.py"),
        todo("unlimited", "pytest -o addopts= tests/test_price.py"),
    )

    run = example.verify("-p", "pytest_cov", "--planverify-confirm=0")

    green = dict.fromkeys(("both", "less", "unlimited"), "passed")
    assert run.verdicts == {"price": "failed", "reported": "failed", **green}, str(run)
    assert "METRIC_UNMET" in run.output, str(run)


def test_no_cov_causes_no_warning(tmp_path: Path):
    """A project may turn warnings into errors, and pytest-cov warns of options that follow ``--no-cov``."""
    ini = "[pytest]\naddopts = --cov=shop --cov-report=html\nfilterwarnings = error\n"
    example = Example(tmp_path, {**FILES, "pytest.ini": ini})
    example.plan(
        todo("price", "pytest tests/test_price.py"),
        todo("confirmed", "pytest tests/test_discount.py"),  # it fails, as SALE is not set
    )

    run = example.verify("-p", "pytest_cov", "--no-cov")

    assert run.verdicts == {"price": "passed", "confirmed": "failed"}, str(run)
    assert run.outcomes["confirmed"]["failure_evidence"]["repeatability"] == "deterministic"
    assert "CovDisabledWarning" not in str(run)
    assert "htmlcov" not in {path.name for path in tmp_path.iterdir()}
    assert "internal_error" not in (example.runs[-1] / "journal.jsonl").read_text(encoding="utf-8")
