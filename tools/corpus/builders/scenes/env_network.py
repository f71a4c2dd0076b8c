"""Unreachable services, broken connections, limits; and similar faults of the project itself."""

from __future__ import annotations

from planner.model.taxonomy import Category
from scenes.scene import Edit, Machine, Scene, machine, product

WITH_PORT = {"ENVNAME_PORT": "PORTNUMBER"}
LINES = Machine(service="lines", variables=WITH_PORT)
NOBODY = Machine(variables=WITH_PORT)

RAW = '''
    """Asks a NOUN server, line by line."""

    import os
    import socket

    HOST = "127.0.0.1"
    TIMEOUT = 2.0


    def port():
        return int(os.environ["ENVNAME_PORT"])


    def asked(line):
        with socket.create_connection((HOST, port()), timeout=TIMEOUT) as wire:
            with wire.makefile("rwb") as lines:
                lines.readline()
                lines.write(line.encode() + b"\\n")
                lines.flush()
                return lines.readline().decode().strip()
'''
RAW_TEST = """
    from PKG.server import asked


    def test_an_answer():
        assert asked("q7") == "+q7"
"""
ASYNC = '''
    """Asks a NOUN server, line by line."""

    import asyncio
    import os


    async def _asked(line):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["ENVNAME_PORT"]))
        await reader.readline()
        writer.write(line.encode() + b"\\n")
        answer = await reader.readline()
        writer.close()
        return answer.decode().strip()


    def asked(line):
        return asyncio.run(_asked(line))
'''
DATABASE = '''
    """NOUNS in a database server."""

    import os

    import minipg


    class Store:
        def __init__(self, port=None):
            self.base = minipg.connect(port=port or int(os.environ["ENVNAME_PORT"]))

        def names(self):
            return self.base.execute("SELECT name FROM NOUNS").split()[-1]

        def close(self):
            self.base.close()
'''
DATABASE_TEST = """
    import pytest

    from PKG.server import Store


    @pytest.fixture
    def store():
        store = Store()
        yield store
        store.close()


    def test_names_come_from_their_table(store):
        assert store.names() == "NOUNS"
"""
CACHE = '''
    """A cache of NOUNS in a key-value store."""

    import os

    from redlike import Client


    class Unavailable(Exception):
        """The cache cannot be asked."""


    def ready():
        client = Client("127.0.0.1", int(os.environ["ENVNAME_PORT"]))
        return client.ping()
'''
CACHE_TEST = "from PKG.server import ready\n\n\ndef test_the_cache_answers():\n    assert ready()\n"
HTTP = '''
    """Reads NOUNS from a service."""

    import json
    import os
    from urllib.request import urlopen

    PATH = "/v1/items"


    def base():
        return os.environ.get("ENVNAME_URL", "http://127.0.0.1:PORTNUMBER")


    def items():
        with urlopen(base() + PATH, timeout=3) as answer:
            return json.load(answer)["items"]
'''
HTTP_TEST = """
    from PKG.server import items


    def test_items_of_the_service():
        assert items() == [1, 2, 3]
"""
GUARD = '''
    """Keeps a connection to a NOUN server, and says when it is lost."""


    class Link:
        ENOUGH = 3

        def __init__(self):
            self.missed = 0

        def beat(self, answered):
            self.missed = 0 if answered else self.missed + 1
            if self.missed >= self.ENOUGH:
                raise ConnectionError(f"no answer for {self.missed} beats")
            return self.missed
'''
GUARD_TEST = """
    from PKG.server import Link


    def test_two_missed_beats_are_borne():
        link = Link()
        assert [link.beat(False), link.beat(False), link.beat(True)] == [1, 2, 0]
"""
SERVER = '''
    """Serves NOUNS on a port."""

    import os
    import socket


    def listening():
        server = socket.socket()
        server.bind(("127.0.0.1", int(os.environ["ENVNAME_PORT"])))
        server.listen()
        return server
'''
SERVER_TEST = """
    import os

    import pytest

    from PKG.server import listening


    @pytest.fixture
    def server():
        server = listening()
        yield server
        server.close()


    def test_it_listens_where_it_was_told_to(server):
        assert server.getsockname()[1] == int(os.environ["ENVNAME_PORT"])
"""


def network_scenes() -> tuple[Scene, ...]:
    """Return all scenes with unreachable services, and similar faults of the project."""
    return (*_refused(), *_names(), *_answers(), *_trust())


def server_scene(
    kind: str, says: str, projects: tuple[str, ...], ill: Machine, shape: str = "", **more: object
) -> Scene:
    given: dict[str, object] = {
        "product": RAW,
        "test": RAW_TEST,
        "healthy": LINES,
        "truth": machine(),
    } | more
    return Scene(kind=kind, says=says, shape=shape, projects=projects, module="server", ill=ill, **given)  # type: ignore[arg-type]


def _refused() -> tuple[Scene, ...]:
    pg = Machine(service="lines", variables=WITH_PORT, installed=("minipg",))
    red = Machine(service="lines", variables=WITH_PORT, installed=("redlike",))
    return (
        server_scene(
            "service-refused", "A service is not running.", ("parcelpost", "trackside"), NOBODY, "raw"
        ),
        server_scene(
            "service-refused", "A service is not running.", ("inkwell",), NOBODY, "async", product=ASYNC
        ),
        server_scene(
            "database-refused",
            "The database server is not running, as its driver says.",
            ("ledgerline", "cartulary", "weathervane"),
            Machine(variables=WITH_PORT, installed=("minipg",)),
            product=DATABASE,
            test=DATABASE_TEST,
            healthy=pg,
        ),
        server_scene(
            "cache-refused",
            "The key-value store is not running, as its client says.",
            ("beehive", "tidepool", "mealplan"),
            Machine(variables=WITH_PORT, installed=("redlike",)),
            product=CACHE,
            test=CACHE_TEST,
            healthy=red,
        ),
        server_scene(
            "http-refused",
            "A service over HTTP is not running.",
            ("signalbox", "parcelpost", "weathervane"),
            Machine(),
            product=HTTP,
            test=HTTP_TEST,
            healthy=Machine(service="http"),
        ),
    )


def _names() -> tuple[Scene, ...]:
    return (
        server_scene(
            "name-not-resolved",
            "The name of a service has no address on this machine.",
            ("tidepool", "ledgerline"),
            Machine(variables={"ENVNAME_URL": "http://api.PKG.invalid"}),
            "http",
            product=HTTP,
            test=HTTP_TEST,
            healthy=Machine(service="http"),
        ),
        server_scene(
            "name-not-resolved",
            "The name of a service has no address on this machine.",
            ("beehive", "mealplan"),
            Machine(variables=WITH_PORT | {"ENVNAME_HOST": "db.PKG.invalid"}),
            "raw",
            product=RAW.replace('HOST = "127.0.0.1"', 'HOST = os.environ.get("ENVNAME_HOST", "127.0.0.1")'),
        ),
        server_scene(
            "network-unreachable",
            "The machine has no network.",
            ("signalbox", "inkwell", "cartulary"),
            Machine(variables=WITH_PORT, apart="-n"),
        ),
    )


def _answers() -> tuple[Scene, ...]:
    http = Machine(service="http")
    pg = Machine(service="lines", variables=WITH_PORT, installed=("minipg",))
    return (
        server_scene(
            "service-silent",
            "A service takes the connection and never answers.",
            ("weathervane", "parcelpost", "mealplan"),
            Machine(service="silent", variables=WITH_PORT),
        ),
        server_scene(
            "service-overloaded",
            "A service answers that it cannot serve now.",
            ("trackside", "cartulary", "tidepool"),
            Machine(service="http-503"),
            product=HTTP,
            test=HTTP_TEST,
            healthy=http,
        ),
        server_scene(
            "database-full",
            "The database server takes no more connections.",
            ("beehive", "signalbox"),
            Machine(service="full", variables=WITH_PORT, installed=("minipg",)),
            product=DATABASE,
            test=DATABASE_TEST,
            healthy=pg,
        ),
        server_scene(
            "service-refuses-key",
            "A service does not accept the key of this machine.",
            ("inkwell", "ledgerline"),
            Machine(service="http-401"),
            product=HTTP,
            test=HTTP_TEST,
            healthy=http,
        ),
        server_scene(
            "container-daemon-absent",
            "The socket of the container daemon is not there.",
            ("mealplan", "beehive", "trackside"),
            Machine(variables={"ENVNAME_SOCKET": "/run/PKG-engine.sock"}),
            product='''
                """Asks the engine that runs containers for NOUNS."""

                import os
                import socket


                def engine():
                    return os.environ.get("ENVNAME_SOCKET", "")


                def version():
                    if not engine():
                        return "built in"
                    with socket.socket(socket.AF_UNIX) as wire:
                        wire.connect(engine())
                        wire.sendall(b"version\\n")
                        return wire.recv(80).decode()
            ''',
            test="from PKG.server import version\n\n\ndef test_a_version_is_told():\n"
            "    assert version()\n",
            healthy=Machine(),
        ),
    )


def _trust() -> tuple[Scene, ...]:
    secure = HTTP.replace("http://127.0.0.1", "https://localhost")
    trusted = Machine(service="https", before="export SSL_CERT_FILE=VAR/certificate.pem")
    return (
        server_scene(
            "certificate-not-trusted",
            "The certificate of a service is not trusted on this machine.",
            ("parcelpost", "ledgerline", "signalbox"),
            Machine(service="https"),
            product=secure,
            test=HTTP_TEST,
            healthy=trusted,
        ),
        server_scene(
            "certificate-refused-by-product",
            "A changed line of the product calls a service by a name that its certificate does not have.",
            ("weathervane", "beehive"),
            trusted,
            product=secure,
            test=HTTP_TEST,
            healthy=trusted,
            edits=(Edit(path="SRC/server.py", before="https://localhost", after="https://127.0.0.1"),),
            truth=product(),
        ),
    )


def connection_scenes() -> tuple[Scene, ...]:
    """Return all scenes with broken connections, and similar faults of the project."""
    return (
        *_taken(),
        *_own_doing(),
    )


def _taken() -> tuple[Scene, ...]:
    return (
        server_scene(
            "port-in-use",
            "Another program of the machine listens on the port already.",
            ("trackside", "tidepool", "parcelpost"),
            LINES,
            product=SERVER,
            test=SERVER_TEST,
            healthy=NOBODY,
        ),
        server_scene(
            "port-taken-by-product",
            "A changed line of the product binds the same port twice.",
            ("inkwell", "cartulary", "mealplan"),
            NOBODY,
            product=SERVER.replace(
                "    server.listen()\n",
                "    server.listen()\n        spare = socket.socket()\n"
                '        spare.bind(("127.0.0.1", 0))\n        spare.close()\n',
            ),
            test=SERVER_TEST,
            healthy=NOBODY,
            edits=(
                Edit(
                    path="SRC/server.py",
                    before='spare.bind(("127.0.0.1", 0))',
                    after="spare.bind(server.getsockname())",
                ),
            ),
            truth=product(exact=True),
        ),
    )


def _own_doing() -> tuple[Scene, ...]:
    def edited(before: str, after: str) -> tuple[Edit, ...]:
        return (Edit(path="SRC/server.py", before=before, after=after),)

    pg = Machine(service="lines", variables=WITH_PORT, installed=("minipg",))
    return (
        server_scene(
            "port-invented-by-product",
            "A changed line of the product connects to a port that nobody told it.",
            ("signalbox", "ledgerline", "weathervane"),
            LINES,
            "raw",
            edits=edited('int(os.environ["ENVNAME_PORT"])', 'int(os.environ["ENVNAME_PORT"]) + 10_000'),
            truth=product(),
        ),
        server_scene(
            "port-invented-by-product",
            "A changed line of the product connects to a port that nobody told it.",
            ("beehive", "tidepool"),
            pg,
            "database",
            product=DATABASE,
            test=DATABASE_TEST,
            healthy=pg,
            edits=edited('port=port or int(os.environ["ENVNAME_PORT"])', "port=port or 5433"),
            truth=product(exact=True),
        ),
        server_scene(
            "host-misspelt-by-product",
            "A changed line of the product misspells the name of the host.",
            ("cartulary", "parcelpost"),
            LINES,
            edits=edited('HOST = "127.0.0.1"', 'HOST = "loclahost.invalid"'),
            truth=product(),
        ),
        server_scene(
            "connection-error-of-product",
            "The product raises ConnectionError by its own logic, which a changed line broke.",
            ("mealplan", "trackside", "inkwell"),
            Machine(),
            product=GUARD,
            test=GUARD_TEST,
            healthy=Machine(),
            edits=edited("self.missed >= self.ENOUGH", "self.missed + 1 >= self.ENOUGH"),
            truth=product(),
        ),
        server_scene(
            "timeout-of-product-too-short",
            "A changed constant of the product gives a service no time to answer.",
            ("beehive", "cartulary", "ledgerline"),
            LINES,
            product=RAW.replace(
                "lines.write(line.encode()",
                "wire.settimeout(TIMEOUT)\n                lines.write(line.encode()",
            ),
            edits=edited("TIMEOUT = 2.0", "TIMEOUT = 0.0"),
            truth=product(),
        ),
        server_scene(
            "path-misspelt-by-product",
            "A changed line of the product asks a service for a path that it does not have.",
            ("weathervane", "signalbox", "tidepool"),
            Machine(service="http"),
            product=HTTP,
            test=HTTP_TEST,
            healthy=Machine(service="http"),
            edits=edited('"/v1/items"', '"/v1/itmes"'),
            truth=product(),
        ),
        server_scene(
            "statement-of-product-wrong",
            "A changed line of the product sends a statement that the database refuses.",
            ("parcelpost", "inkwell"),
            pg,
            product=DATABASE,
            test=DATABASE_TEST,
            healthy=pg,
            edits=edited('"SELECT name', '"SELCT name'),
            truth=product(
                Category.TEST_REGRESSION,
            ),
        ),
    )


MANY_FILES = '''
    """Merges the files of many NOUNS."""

    from contextlib import ExitStack


    def merged(paths):
        with ExitStack() as stack:
            files = [stack.enter_context(open(path)) for path in paths]
            return sum(int(file.readline()) for file in files)
'''
MANY_FILES_TEST = """
    import pytest

    from PKG.merging import merged


    @pytest.fixture
    def paths(tmp_path):
        for number in range(150):
            (tmp_path / f"{number}.txt").write_text(f"{number}\\n")
        return sorted(tmp_path.iterdir())


    def test_every_file_counts(paths):
        assert merged(paths) == sum(range(150))
"""
MANY_PORTS = '''
    """Waits for news of NOUNS at many ends."""

    import socket


    def ends(count):
        pairs = []
        try:
            for _ in range(count):
                pairs.append(socket.socketpair())
            return len(pairs)
        finally:
            for pair in pairs:
                for end in pair:
                    end.close()
'''
LEAK = '''
    """Looks for NOUNS in a file."""


    class Reader:
        opened = []

        def __init__(self, path):
            self.file = open(path)
            self.opened.append(self.file)

        def names(self):
            return self.file.read().split()

        def close(self):
            self.file.close()


    def found(path, names):
        total = 0
        for name in names:
            reader = Reader(path)
            total += name in reader.names()
            reader.close()
        return total
'''
WORKERS = '''
    """Works on NOUNS with several hands."""

    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    HANDS = 60


    def lengths(names):
        barrier = Barrier(HANDS)

        def measured(name):
            barrier.wait(20)
            return len(name)

        with ThreadPoolExecutor(HANDS) as pool:
            return sum(pool.map(measured, names))
'''
PROCESSES = '''
    """Works on NOUNS in processes of their own."""

    import subprocess
    import sys


    def greeted(count):
        running = [
            subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
            for _ in range(count)
        ]
        for process in running:
            process.communicate(b"\\n")
        return sum(process.returncode == 0 for process in running)
'''
BUFFER = '''
    """A table of all pairs of NOUNS."""

    CELL = 24


    def table(count):
        return bytearray(count * count * CELL)
'''
BUFFER_TEST = """
    from PKG.pairs import table


    def test_its_size():
        assert len(table(4_000)) == 24 * 4_000 * 4_000
"""
POOL = '''
    """Hands out workers for NOUNS."""

    LIMIT = 8


    class Pool:
        def __init__(self):
            self.taken = 0

        def take(self):
            if self.taken >= LIMIT:
                raise RuntimeError("can't start new thread")
            self.taken += 1
            return self.taken


    def taken(count):
        pool = Pool()
        return [pool.take() for _ in range(count)]
'''


def limit_scenes() -> tuple[Scene, ...]:
    """Return all scenes with exceeded limits, and similar faults of the project."""
    return (*_files(), *_processes(), *_memory())


def _files() -> tuple[Scene, ...]:
    few = Machine(before="ulimit -n 80")
    says = "The machine allows fewer open files than the work takes."
    return (
        Scene(
            kind="too-many-open-files",
            says=says,
            shape="files",
            projects=("parcelpost", "tidepool"),
            truth=machine(),
            module="merging",
            product=MANY_FILES,
            test=MANY_FILES_TEST,
            ill=few,
        ),
        Scene(
            kind="too-many-open-files",
            says=says,
            shape="sockets",
            projects=("signalbox", "inkwell"),
            truth=machine(),
            module="ends",
            product=MANY_PORTS,
            test="from PKG.ends import ends\n\n\ndef test_hundred_ends():\n    assert ends(100) == 100\n",
            ill=few,
        ),
        Scene(
            kind="files-leaked-by-product",
            says="A changed line of the product keeps every file open.",
            projects=("weathervane", "beehive", "cartulary"),
            truth=product(),
            module="search",
            product=LEAK,
            test="""
                from PKG.search import found


                def test_every_name_is_looked_for(tmp_path):
                    path = tmp_path / "names.txt"
                    path.write_text("a b c")
                    assert found(path, ["a", "x"] * 400) == 400
            """,
            healthy=Machine(before="ulimit -n 512"),
            ill=Machine(before="ulimit -n 512"),
            edits=(
                Edit(
                    path="SRC/search.py",
                    before="        reader.close()\n",
                    after="        reader.file.seek(0)\n",
                ),
            ),
        ),
    )


def _processes() -> tuple[Scene, ...]:
    enough = Machine(user=True, variables={"HOME": "VAR"})
    few = Machine(user=True, variables={"HOME": "VAR"}, before="prlimit --nproc=30 --pid $$")
    return (
        Scene(
            kind="no-more-threads",
            says="The machine lets the user start fewer threads than the work takes.",
            projects=("trackside", "ledgerline", "mealplan"),
            truth=machine(),
            module="hands",
            product=WORKERS,
            test="from PKG.hands import lengths\n\n\ndef test_sixty():\n"
            "    assert lengths(['ab'] * 60) == 120\n",
            healthy=enough,
            ill=few,
        ),
        Scene(
            kind="no-more-processes",
            says="The machine lets the user start fewer processes than the work takes.",
            projects=("parcelpost", "signalbox", "cartulary"),
            truth=machine(),
            module="greeting",
            product=PROCESSES,
            test="from PKG.greeting import greeted\n\n\ndef test_everybody():\n"
            "    assert greeted(32) == 32\n",
            healthy=enough,
            ill=few,
        ),
        Scene(
            kind="pool-limit-of-product",
            says="The product refuses in the words of the system, by a limit that a changed line "
            "made too small.",
            projects=("beehive", "weathervane", "inkwell"),
            truth=product(),
            module="pool",
            product=POOL,
            test="from PKG.pool import taken\n\n\ndef test_six_are_taken():\n"
            "    assert taken(6)[-1] == 6\n",
            edits=(Edit(path="SRC/pool.py", before="LIMIT = 8", after="LIMIT = 4"),),
        ),
    )


def _memory() -> tuple[Scene, ...]:
    return (
        Scene(
            kind="memory-limited",
            says="The machine allows less memory than the work takes.",
            shape="buffer",
            projects=("mealplan", "weathervane", "tidepool"),
            truth=machine(),
            module="pairs",
            product=BUFFER,
            test=BUFFER_TEST,
            ill=Machine(before="ulimit -v 300000"),
        ),
        Scene(
            kind="memory-asked-for-by-product",
            says="A changed constant of the product asks for more memory than any machine has.",
            projects=("ledgerline", "inkwell", "signalbox"),
            truth=product(),
            module="pairs",
            product=BUFFER,
            test=BUFFER_TEST,
            edits=(Edit(path="SRC/pairs.py", before="CELL = 24", after="CELL = 24_000_000_000"),),
        ),
    )
