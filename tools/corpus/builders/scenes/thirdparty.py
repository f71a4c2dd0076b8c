"""Stand-ins for third-party packages: as much of each as a small project uses, in several states.

The plugins do what the plugins of these names do, as far as a project here asks for it.
"""

from __future__ import annotations

from textwrap import dedent

PLUGIN_OPTIONS = '''
    """Adds the options of a plugin."""


    def pytest_addoption(parser):
        group = parser.getgroup("more")
        group.addoption("--cov", action="append", default=[])
        group.addoption("--cov-report", action="append", default=[])
        group.addoption("--benchmark-disable", action="store_true")
        group.addoption("--snapshot-update", action="store_true")
        parser.addini("asyncio_mode", "how coroutines are run", default="strict")
        parser.addini("benchmark_rounds", "how often", default="1")
        parser.addini("env", "variables", type="linelist", default=[])


    def pytest_configure(config):
        for name in ("asyncio", "django_db", "benchmark", "timeout", "flaky"):
            config.addinivalue_line("markers", f"{name}: of a plugin")
'''

PLUGIN_FIXTURES = '''
    """Fixtures of plugins that many projects use."""

    import types

    import pytest


    @pytest.fixture
    def mocker(monkeypatch):
        def patch(name, **given):
            monkeypatch.setattr(name, lambda *args, **kwargs: given.get("return_value"))

        return types.SimpleNamespace(patch=patch)


    @pytest.fixture
    def benchmark():
        return lambda function, *args: function(*args)


    @pytest.fixture
    def freezer():
        return types.SimpleNamespace(move_to=lambda when: None)


    @pytest.fixture
    def httpserver():
        return types.SimpleNamespace(url="http://127.0.0.1:1", expect=lambda path: None)


    @pytest.fixture
    def faker():
        return types.SimpleNamespace(name=lambda: "Ada Example", city=lambda: "Aarhus")


    @pytest.fixture
    def requests_mock():
        return types.SimpleNamespace(get=lambda url, text="": None)


    @pytest.fixture
    def snapshot():
        return types.SimpleNamespace(assert_match=lambda value: None)
'''

PLUGIN_ASYNC = '''
    """Runs coroutines as tests."""

    import asyncio
    import inspect

    import pytest


    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem):
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True
'''

BROKEN_PLUGIN = '''
    """A plugin that was written for another version of pytest."""


    def pytest_runtest_setup(item):
        item.config.legacy_reporter.section(item.nodeid)
'''

BROKEN_COLLECTION_PLUGIN = '''
    """A plugin that expects tests to have what they have no more."""


    def pytest_collection_modifyitems(items):
        items.sort(key=lambda item: item.fspath_of_origin)
'''

BROKEN_REPORT_PLUGIN = '''
    """A plugin that looks for what reports do not have."""


    def pytest_runtest_logreport(report):
        if report.when == "call":
            print(report.worker_of_cluster.name, report.nodeid)
'''

BROKEN_START_PLUGIN = '''
    """A plugin that reads its own settings before they are there."""


    def pytest_sessionstart(session):
        session.config.cluster_settings.load()
'''

NEWER_PYTEST = '''
    """As if pytest were a newer one."""

    import pytest

    pytest.__version__ = "99.2"
'''

TINYTABLE = '''
    """Tables as text."""

    __version__ = "2.3"


    def render(rows, sep=" | "):
        return "\\n".join(sep.join(str(cell) for cell in row) for row in rows)


    class Grid:
        def __init__(self, rows):
            self.rows = list(rows)

        def columns(self):
            return list(zip(*self.rows))
'''

TINYTABLE_OLD = '''
    """Tables as text."""

    __version__ = "0.8"


    def draw(rows):
        return "\\n".join(" ".join(str(cell) for cell in row) for row in rows)


    class Grid:
        def __init__(self, rows):
            self.rows = list(rows)
'''

TINYTABLE_BROKEN = '''
    """Tables as text."""

    import sys

    NEEDED = 0x20

    if NEEDED > sys.maxunicode.bit_length():
        raise RuntimeError("tinytable was compiled against ABI version 0x20 but this interpreter has 0x15")
'''

TINYTABLE_PYTHON_2 = '''
    """Tables as text."""


    def render(rows, sep=" | "):
        for row in rows:
            print sep.join(row)
'''

MINIPG = '''
    """A driver of a database server."""

    import socket


    class Error(Exception):
        """What this driver raises."""


    class OperationalError(Error):
        """The server is not there, or does not go on."""


    class ProgrammingError(Error):
        """The statement is wrong."""


    class Connection:
        def __init__(self, wire):
            self._wire = wire
            self._lines = wire.makefile("rb")

        def execute(self, statement):
            if not statement.upper().startswith(("SELECT", "INSERT", "BEGIN")):
                raise ProgrammingError(f'syntax error at or near "{statement.split()[0]}"')
            self._wire.sendall(statement.encode() + b"\\n")
            return self._lines.readline().decode().strip("+\\n")

        def close(self):
            self._lines.close()
            self._wire.close()


    def connect(host="127.0.0.1", port=5432, timeout=2):
        try:
            wire = socket.create_connection((host, port), timeout=timeout)
        except OSError as error:
            place = f'connection to server at "{host}", port {port}'
            raise OperationalError(f"{place} failed: {error}") from error
        greeting = wire.recv(64)
        if greeting.startswith(b"-"):
            wire.close()
            raise OperationalError(f"FATAL: sorry, {greeting[1:].decode().strip()}")
        return Connection(wire)
'''

REDLIKE = '''
    """A client of a key-value store."""

    import socket


    class RedlikeError(Exception):
        """What this client raises."""


    class ConnectionError(RedlikeError):
        """No connection to the server."""


    class Client:
        def __init__(self, host, port):
            self._at = (host, port)

        def ping(self):
            try:
                with socket.create_connection(self._at, timeout=2) as wire:
                    wire.sendall(b"PING\\n")
                    return wire.recv(64).startswith(b"+")
            except OSError as error:
                host, port = self._at
                raise ConnectionError(f"Error {error.errno} connecting to {host}:{port}.") from None
'''

CLOUDKIT = '''
    """A client of an object store."""

    import os


    class NoCredentialsError(Exception):
        """There is no key to sign a request with."""


    class Bucket:
        def __init__(self, name):
            self.name = name

        def list(self):
            if not os.environ.get("CLOUDKIT_ACCESS_KEY"):
                raise NoCredentialsError("Unable to locate credentials")
            return [f"{self.name}/2026-01.csv", f"{self.name}/2026-02.csv"]
'''

WEBPILOT = '''
    """Drives a browser."""

    import shutil


    class WebDriverException(Exception):
        """The browser cannot be driven."""


    class Browser:
        def __init__(self, name="firefox"):
            found = shutil.which(f"{name}-driver")
            if found is None:
                raise WebDriverException(f"Message: '{name}-driver' executable needs to be in PATH.")
            self.driver = found

        def title(self, path):
            return path.strip("/").title()
'''

SCREENKIT = '''
    """Windows on a screen."""

    import os


    class DisplayError(Exception):
        """There is no screen to draw on."""


    class Window:
        def __init__(self, title):
            if not os.environ.get("DISPLAY"):
                raise DisplayError("no display name and no $DISPLAY environment variable")
            self.title = title
            self.size = (640, 480)
'''

FOREIGN_TESTS = '''
    """Tests of a package that was installed with its tests beside it."""
'''


def _module(name: str, text: str) -> dict[str, str]:
    return {f"{name}.py": dedent(text).lstrip("\n")}


def _package(name: str, text: str) -> dict[str, str]:
    return {f"{name}/__init__.py": dedent(text).lstrip("\n")}


STAND_INS: dict[str, dict[str, str]] = {
    "plugin-options": _module("more_options", PLUGIN_OPTIONS),
    "plugin-fixtures": _module("more_fixtures", PLUGIN_FIXTURES),
    "plugin-async": _module("coroutines", PLUGIN_ASYNC),
    "broken-plugin": _module("pytest_sections", BROKEN_PLUGIN),
    "broken-collection-plugin": _module("pytest_in_origin_order", BROKEN_COLLECTION_PLUGIN),
    "newer-pytest": _module("sitecustomize", NEWER_PYTEST),
    "broken-report-plugin": _module("pytest_cluster_log", BROKEN_REPORT_PLUGIN),
    "broken-start-plugin": _module("pytest_cluster", BROKEN_START_PLUGIN),
    "tinytable": _package("tinytable", TINYTABLE),
    "tinytable-old": _package("tinytable", TINYTABLE_OLD),
    "tinytable-broken": _package("tinytable", TINYTABLE_BROKEN),
    "tinytable-python-2": _package("tinytable", TINYTABLE_PYTHON_2),
    "minipg": _package("minipg", MINIPG),
    "redlike": _package("redlike", REDLIKE),
    "cloudkit": _package("cloudkit", CLOUDKIT),
    "webpilot": _package("webpilot", WEBPILOT),
    "screenkit": _package("screenkit", SCREENKIT),
    "foreign-tests": _package("tests", FOREIGN_TESTS),
}
"""The files of each below the folder of installed packages."""
