"""Ports that are taken, and products that break their connections by a changed line of their own."""

from __future__ import annotations

from planner.model.taxonomy import Category
from scenes.env_network import (
    DATABASE,
    DATABASE_TEST,
    GUARD,
    GUARD_TEST,
    HTTP,
    HTTP_TEST,
    LINES,
    NOBODY,
    RAW,
    SERVER,
    SERVER_TEST,
    WITH_PORT,
    server_scene,
)
from scenes.scene import Edit, Machine, Scene, product


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
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
