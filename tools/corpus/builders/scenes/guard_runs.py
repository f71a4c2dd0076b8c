"""Runs that do not end, end too soon, or end this way and that; and those that say nothing at all."""

from __future__ import annotations

from typing import Any

from planner.model.taxonomy import Category, Owner
from scenes.guard_hygiene import FEES, FEES_TEST
from scenes.scene import Edit, Machine, Scene, Truth, machine, of_tests, product, reading

DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
TIMEOUT = product(Category.TEST_TIMEOUT)
CRASH = product(Category.TEST_CRASH)
_COST = "    cost = BASE + 15 * count\n"
_HASTE = "    assert fee(2, urgent=True) == 140\n"
ONE = "pytest TESTS/test_fees.py::test_haste_costs_twice_as_much"


def scenes() -> tuple[Scene, ...]:
    """Every such run."""
    return (*_endless(), *_dead(), *_plugins(), *_silent())


def run_scene(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: Any
) -> Scene:
    given = {"product": FEES, "test": FEES_TEST, "files": DATA, "module": "fees"} | more
    return Scene(kind=kind, says=says, projects=projects, truth=truth, edits=edits, styled=False, **given)


def product_does(lines: str, modules: str = "time") -> tuple[Edit, ...]:
    """The product does this before it counts."""
    imports = "".join(f"import {name}\n" for name in modules.split())
    return (
        Edit(path="SRC/fees.py", before=_COST, after=f"{lines}{_COST}"),
        Edit(path="SRC/fees.py", before="BASE = 40\n", after=f"{imports}\nBASE = 40\n"),
    )


def test_does(lines: str) -> tuple[Edit, ...]:
    return (Edit(path="TESTS/test_fees.py", before=_HASTE, after=f"{lines}{_HASTE}"),)


def _endless() -> tuple[Scene, ...]:
    limited = {"criteria": {"tests": [{"cmd": ONE, "timeout_seconds": 1}]}, "cmd": ONE}
    swallowed = (
        "    started = time.monotonic()\n    while time.monotonic() < started + 4:\n        try:\n"
        "            time.sleep(0.5)\n        except BaseException:\n            continue\n"
    )
    locked = "    with LOCK:\n        LOCK.acquire()\n"
    return (
        run_scene(
            "sleep-in-product",
            "The product waits far too long.",
            ("parcelpost", "weathervane"),
            TIMEOUT,
            product_does("    time.sleep(30)\n"),
            **limited,
        ),
        run_scene(
            "endless-loop-in-product",
            "A loop of the product never ends.",
            ("ledgerline", "mealplan", "signalbox"),
            TIMEOUT,
            product_does("    left = count\n    while left != 0.5:\n        left -= 1\n"),
            **limited,
        ),
        run_scene(
            "lock-held-by-product",
            "The product waits for a lock that it holds itself.",
            ("beehive", "inkwell"),
            TIMEOUT,
            (
                Edit(path="SRC/fees.py", before=_COST, after=locked + _COST),
                Edit(
                    path="SRC/fees.py",
                    before="BASE = 40\n",
                    after="import threading\n\nLOCK = threading.Lock()\nBASE = 40\n",
                ),
            ),
            **limited,
        ),
        run_scene(
            "timeout-swallowed",
            "The product swallows whatever ends it, and goes on.",
            ("trackside", "cartulary"),
            TIMEOUT,
            product_does(swallowed),
            **limited,
        ),
        run_scene(
            "endless-pattern",
            "A pattern of the product takes time without end inside the interpreter's own code.",
            ("tidepool", "parcelpost"),
            TIMEOUT,
            product_does('    re.match("(a|a)*$", "a" * 34 + "b")\n', "re"),
            **limited,
        ),
        run_scene(
            "sleep-in-test",
            "A changed test waits far too long itself.",
            ("weathervane", "signalbox"),
            of_tests(Category.TEST_TIMEOUT),
            test_does("    import time\n\n    time.sleep(30)\n"),
            **limited,
        ),
    )


def _dead() -> tuple[Scene, ...]:
    one = {"cmd": ONE}
    return (
        run_scene(
            "segmentation-fault",
            "The product reads memory that is not there.",
            ("parcelpost", "beehive"),
            CRASH,
            product_does("    ctypes.string_at(8)\n", "ctypes"),
            **one,
        ),
        run_scene(
            "abort",
            "The product aborts its process.",
            ("weathervane", "trackside"),
            CRASH,
            product_does("    os.abort()\n", "os"),
            **one,
        ),
        run_scene(
            "killed-by-itself",
            "The product kills its own process.",
            ("mealplan", "inkwell"),
            CRASH,
            product_does("    os.kill(os.getpid(), signal.SIGKILL)\n", "os signal"),
            **one,
        ),
        run_scene(
            "left-with-success",
            "The product leaves its process with status 0.",
            ("ledgerline", "tidepool"),
            product(
                Category.TEST_CRASH,
                reading(
                    Category.HYGIENE_VIOLATION,
                    Owner.PRODUCT,
                    "who ends the judge with success buys a verdict",
                ),
            ),
            product_does("    os._exit(0)\n", "os"),
            **one,
        ),
        run_scene(
            "left-with-status",
            "The product leaves its process with status 3.",
            ("cartulary", "signalbox"),
            CRASH,
            product_does("    os._exit(3)\n", "os"),
            **one,
        ),
        run_scene(
            "stack-overflow",
            "The product uses up the stack of the interpreter.",
            ("beehive", "weathervane"),
            CRASH,
            product_does(
                "    sys.setrecursionlimit(10**9)\n    text = None\n    for _ in range(2_000_000):\n"
                "        text = [text]\n    repr(text)\n",
                "sys",
            ),
            **one,
        ),
        run_scene(
            "outputs-closed",
            "The product closes the outputs of its process.",
            ("inkwell", "parcelpost"),
            product(
                Category.TEST_CRASH,
                reading(Category.TEST_REGRESSION, Owner.PRODUCT, "pytest shows it as an error of the test"),
                reading(Category.HARNESS_ERROR, Owner.HARNESS, "it is pytest that fails in the end"),
            ),
            product_does(
                "    for number in range(64):\n        try:\n            os.close(number)\n"
                "        except OSError:\n            pass\n",
                "os",
            ),
            **one,
        ),
        run_scene(
            "crash-in-test",
            "A changed test aborts its process.",
            ("trackside", "mealplan"),
            of_tests(Category.TEST_CRASH),
            test_does("    import os\n\n    os.abort()\n"),
            **one,
        ),
    )


def _plugins() -> tuple[Scene, ...]:
    in_set_up = machine(
        reading(
            Category.HARNESS_ERROR,
            Owner.HARNESS,
            "a part of the test runner fails, whoever has installed it",
        )
    )
    as_a_whole = Truth(
        category=Category.HARNESS_ERROR,
        owner=Owner.HARNESS,
        also=(reading(Category.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "a plugin of the machine is broken"),),
    )

    def broken(
        kind: str, says: str, stand_in: str, name: str, projects: tuple[str, ...], truth: Truth
    ) -> Scene:
        ill = Machine(installed=(stand_in,), plugins=(name,))
        return run_scene(kind, says, projects, truth, (), ill=ill)

    hook = (
        "\n\ndef pytest_runtest_setup(item):\n    item.config.known_fees.check(item)\n",
        "\n\ndef pytest_collection_modifyitems(items):\n    items.sort(key=lambda item: item.cost)\n",
    )
    empty = DATA | {"TESTS/conftest.py": '"""Nothing is shared yet."""\n'}
    return (
        broken(
            "plugin-fails-in-set-up",
            "A plugin that is installed fails before every test.",
            "broken-plugin",
            "pytest_sections",
            ("parcelpost", "trackside", "inkwell"),
            in_set_up,
        ),
        broken(
            "plugin-fails-at-collection",
            "A plugin that is installed fails while tests are collected.",
            "broken-collection-plugin",
            "pytest_in_origin_order",
            ("weathervane", "mealplan", "signalbox"),
            as_a_whole,
        ),
        broken(
            "plugin-fails-at-report",
            "A plugin that is installed fails when it is told of a result.",
            "broken-report-plugin",
            "pytest_cluster_log",
            ("cartulary", "parcelpost", "beehive"),
            as_a_whole,
        ),
        broken(
            "plugin-fails-at-start",
            "A plugin that is installed fails when the session starts.",
            "broken-start-plugin",
            "pytest_cluster",
            ("ledgerline", "tidepool", "trackside"),
            as_a_whole,
        ),
        *(
            run_scene(
                kind,
                says,
                projects,
                of_tests(),
                (
                    Edit(
                        path="TESTS/conftest.py",
                        before='"""Nothing is shared yet."""\n',
                        after='"""What tests share."""' + lines,
                    ),
                ),
                files=empty,
            )
            for kind, says, projects, lines in (
                (
                    "own-hook-fails-in-set-up",
                    "A changed hook of the conftest fails.",
                    ("beehive", "ledgerline"),
                    hook[0],
                ),
                (
                    "own-hook-fails-at-collection",
                    "A changed hook of the conftest fails.",
                    ("cartulary", "tidepool"),
                    hook[1],
                ),
            )
        ),
    )


def _silent() -> tuple[Scene, ...]:
    unknown = Truth(
        category=Category.UNKNOWN,
        owner=Owner.UNKNOWN,
        also=(
            reading(
                Category.TEST_REGRESSION, Owner.PRODUCT, "a check of the product fails, without a word"
            ),
        ),
    )
    script = (
        '"""Checks the fees; says nothing."""\n\nimport sys\n\nsys.path[:0] = [".", "src", "lib"]\n\n'
        "from PKG.fees import fee\n\nsys.exit(0 if fee(1) == 55 else 7)\n"
    )
    makefile = "check:\n\t@python3 tools/check_fees.py\n"
    files = DATA | {"tools/check_fees.py": script, "Makefile": makefile}
    broken = (Edit(path="SRC/fees.py", before="15 * count", after="16 * count"),)
    return (
        run_scene(
            "silent-script",
            "A script ends with 7 and says nothing.",
            ("parcelpost", "cartulary", "tidepool"),
            unknown,
            broken,
            files=files,
            cmd="python tools/check_fees.py",
            green_plan=True,
        ),
        run_scene(
            "silent-make",
            "A target of make ends with an error that says nothing.",
            ("weathervane", "signalbox"),
            unknown,
            broken,
            files=files,
            cmd="make check",
            green_plan=True,
        ),
    )
