"""Services that are not there, do not answer, or are not trusted; and products that break connections."""

from __future__ import annotations

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


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
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
