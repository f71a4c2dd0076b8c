"""Runs that crash, hang or end early, flaky tests, and selections without tests."""

from __future__ import annotations

from typing import Any

from planner.model.taxonomy import Category, Owner, Repeatability
from scenes.guard_hygiene import FEES, FEES_TEST
from scenes.scene import Edit, Machine, Scene, Truth, machine, of_tests, product, reading

RUN_DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
TIMEOUT = product(Category.TEST_TIMEOUT)
CRASH = product(Category.TEST_CRASH)
_COST = "    cost = BASE + 15 * count\n"
_HASTE = "    assert fee(2, urgent=True) == 140\n"
ONE = "pytest TESTS/test_fees.py::test_haste_costs_twice_as_much"


def run_scenes() -> tuple[Scene, ...]:
    """Return all scenes with such runs."""
    return (*_endless(), *_dead(), *_plugins(), *_silent())


def run_scene(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: Any
) -> Scene:
    given = {"product": FEES, "test": FEES_TEST, "files": RUN_DATA, "module": "fees"} | more
    return Scene(kind=kind, says=says, projects=projects, truth=truth, edits=edits, styled=False, **given)


def product_does(lines: str, modules: str = "time") -> tuple[Edit, ...]:
    """Return the edits by which the product executes these lines before it counts."""
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
    empty = RUN_DATA | {"TESTS/conftest.py": '"""Nothing is shared yet."""\n'}
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
    files = RUN_DATA | {"tools/check_fees.py": script, "Makefile": makefile}
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


def flaky_scenes() -> tuple[Scene, ...]:
    """Return all scenes with flaky tests, and similar faults of the product."""
    return (*_undecided(),)


def _undecided() -> tuple[Scene, ...]:
    def flaky(how: Repeatability, owner: Owner = Owner.TEST) -> Truth:
        return Truth(category=Category.FLAKY_TEST, owner=owner, repeatability=how)

    whole = {"flaky": True}
    return (
        run_scene(
            "random-in-test",
            "A changed test draws lots.",
            ("parcelpost", "cartulary", "signalbox"),
            flaky(Repeatability.FLAKY),
            test_does("    import random\n\n    assert random.random() < 0.5\n"),
            **whole,
        ),
        run_scene(
            "time-in-test",
            "A changed test depends on the time of the day.",
            ("weathervane", "mealplan"),
            flaky(Repeatability.FLAKY),
            test_does("    import time\n\n    assert time.time_ns() // 1_000_000 % 2\n"),
            **whole,
        ),
        run_scene(
            "race-in-test",
            "A changed test waits a chance time for a thread.",
            ("beehive", "trackside"),
            flaky(Repeatability.FLAKY),
            test_does(
                "    import random\n    import threading\n    import time\n\n    done = []\n\n"
                "    def work():\n"
                "        time.sleep(random.choice((0, 0.2)))\n        done.append(1)\n\n"
                "    threading.Thread(target=work, daemon=True).start()\n    time.sleep(0.1)\n"
                "    assert done\n"
            ),
            **whole,
        ),
        run_scene(
            "file-left-behind",
            "A changed test leaves a file behind, and stumbles over it the next time.",
            ("inkwell", "tidepool"),
            flaky(Repeatability.FLAKY),
            test_does(
                "    mark = Path(__file__).with_name('busy.tmp')\n    if mark.exists():\n"
                "        mark.unlink()\n"
                "        raise AssertionError('somebody is at work')\n    mark.touch()\n"
            ),
            **whole,
        ),
        *(
            run_scene(
                kind,
                says,
                projects,
                flaky(Repeatability.FLAKY),
                (
                    Edit(
                        path="TESTS/test_fees.py",
                        before="def test_a_label():\n",
                        after=f"def test_a_label({given}):\n{lines}",
                    ),
                ),
                test=f"{FEES_TEST}\n\n    def test_that_comes_last():\n        {last}\n",
                files=RUN_DATA | {"README.txt": "About NOUNS.\n"},
                **whole,
            )
            for kind, says, projects, given, lines, last in (
                (
                    "module-changed-by-other-test",
                    "A changed test leaves a constant of the product changed.",
                    ("parcelpost", "ledgerline"),
                    "",
                    "    import PKG.fees\n\n    PKG.fees.BASE, kept = 40, PKG.fees.BASE\n"
                    "    PKG.fees.label = str\n",
                    "import PKG.fees; assert PKG.fees.label(0) == '0 NOUNS: 0.40'",
                ),
                (
                    "variable-left-by-other-test",
                    "A changed test leaves a variable of the environment set.",
                    ("weathervane", "mealplan"),
                    "",
                    "    import os\n\n    os.environ['ENVNAME_CURRENCY'] = 'DKK'\n",
                    "import os; assert os.environ.get('ENVNAME_CURRENCY', 'EUR') == 'EUR'",
                ),
                (
                    "folder-left-by-other-test",
                    "A changed test leaves the process in another folder.",
                    ("trackside", "beehive"),
                    "tmp_path",
                    "    import os\n\n    os.chdir(tmp_path)\n",
                    "assert (Path.cwd() / 'README.txt').exists()",
                ),
                (
                    "list-filled-by-other-test",
                    "A changed test leaves something in a list that all tests share.",
                    ("signalbox", "cartulary"),
                    "",
                    "    known.calls.append(4) if hasattr(known, 'calls') else setattr(known, "
                    "'calls', [4])\n",
                    "assert not getattr(known, 'calls', [])",
                ),
            )
        ),
        run_scene(
            "order-of-a-set",
            "A changed test relies on the order of a set.",
            ("inkwell", "tidepool", "weathervane"),
            flaky(Repeatability.FLAKY),
            test_does("    assert next(iter({'first', 'second', 'third'})) == 'first'\n"),
            **whole,
        ),
        run_scene(
            "random-in-product",
            "A changed line of the product draws lots.",
            ("ledgerline", "beehive"),
            Truth(
                category=Category.FLAKY_TEST,
                owner=Owner.PRODUCT,
                repeatability=Repeatability.FLAKY,
                also=(
                    reading(
                        Category.FLAKY_TEST, Owner.TEST, "who looks after the test has to look at it first"
                    ),
                ),
            ),
            product_does("    count += random.random() < 0.4\n", "random"),
            cmd=ONE,
            **whole,
        ),
    )


SELECTION_DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
PLAN = Truth(category=Category.TEST_NOT_FOUND, owner=Owner.PLAN, repeatability=None)
BY_TEST = Truth(
    category=Category.TEST_NOT_FOUND,
    owner=Owner.TEST,
    repeatability=None,
    also=(reading(Category.TEST_NOT_FOUND, Owner.PLAN, "the plan asks for tests as they were before"),),
)
VACUOUS = Truth(
    category=Category.TEST_NOT_FOUND,
    owner=Owner.PLAN,
    repeatability=None,
    also=(reading(Category.TEST_NOT_FOUND, Owner.TEST, "the tests are there and prove nothing"),),
)
SKIPPED = """
    import pytest

    from PKG.fees import fee

    pytestmark = pytest.mark.skipif(True, reason="only where fees are charged")


    def test_none():
        assert fee(0) == 40


    def test_one():
        assert fee(1) == 55
"""
XFAILED = """
    import pytest

    from PKG.fees import fee


    @pytest.mark.xfail(reason="fees in euros are not there yet")
    def test_euros():
        assert fee(0) == 0.4
"""
EMPTY = '"""Tests of late fees will be here."""\n'


def selection_scenes() -> tuple[Scene, ...]:
    """Return all scenes whose selection contains no test, or none that is useful."""
    return (*_wrong(), *_vacuous(), *_changed())


def _scene(
    kind: str, says: str, projects: tuple[str, ...], cmd: str, truth: Truth = PLAN, **more: Any
) -> Scene:
    given = {"green_cmd": "pytest TESTS/test_fees.py"} | more
    files = SELECTION_DATA | given.pop("files", {})
    return Scene(
        kind=kind,
        says=says,
        projects=projects,
        truth=truth,
        module="fees",
        product=FEES,
        test=FEES_TEST,
        files=files,
        cmd=cmd,
        styled=False,
        **given,
    )


def _wrong() -> tuple[Scene, ...]:
    file = "TESTS/test_fees.py"
    return (
        _scene(
            "file-not-there",
            "The command names a file that does not exist.",
            ("parcelpost", "trackside", "inkwell"),
            "pytest TESTS/test_fee.py",
        ),
        _scene(
            "folder-not-there",
            "The command names a folder that does not exist.",
            ("mealplan", "cartulary"),
            "pytest TESTS/fees",
        ),
        _scene(
            "test-not-there",
            "The command names a test that the file does not have.",
            ("weathervane", "beehive", "signalbox"),
            f"pytest {file}::test_haste_costs_twice",
        ),
        _scene(
            "class-not-there",
            "The command names a class that the file does not have.",
            ("ledgerline", "tidepool"),
            f"pytest {file}::TestFees::test_a_label",
        ),
        _scene(
            "case-not-there",
            "The command names a case that a parametrised test does not have.",
            ("parcelpost", "signalbox"),
            f'pytest "{file}::test_fifteen_for_each[5-115]"',
        ),
        _scene(
            "expression-without-match",
            "No test matches the expression of the command.",
            ("inkwell", "beehive"),
            f"pytest {file} -k discount",
        ),
        _scene(
            "mark-without-match",
            "No test has the mark that the command asks for.",
            ("trackside", "cartulary"),
            f"pytest {file} -m smoke",
        ),
        _scene(
            "expression-malformed",
            "The expression of the command cannot be read.",
            ("weathervane", "ledgerline"),
            f'pytest {file} -k "haste and and label"',
        ),
        _scene(
            "everything-deselected",
            "The command deselects all that it selects.",
            ("mealplan", "tidepool"),
            f"pytest {file}::test_a_label --deselect {file}::test_a_label",
        ),
    )


def _vacuous() -> tuple[Scene, ...]:
    return (
        _scene(
            "everything-skipped",
            "Every test that the command selects is skipped.",
            ("parcelpost", "beehive", "tidepool"),
            "pytest TESTS/test_more_fees.py",
            VACUOUS,
            files={"TESTS/test_more_fees.py": SKIPPED},
        ),
        _scene(
            "only-expected-failures",
            "Every test that the command selects is expected to fail, and does.",
            ("weathervane", "signalbox"),
            "pytest TESTS/test_more_fees.py",
            VACUOUS,
            files={"TESTS/test_more_fees.py": XFAILED},
        ),
        _scene(
            "file-without-tests",
            "The file that the command names holds no test.",
            ("mealplan", "ledgerline", "inkwell"),
            "pytest TESTS/test_late_fees.py",
            files={"TESTS/test_late_fees.py": EMPTY},
        ),
    )


def _changed() -> tuple[Scene, ...]:
    file = "TESTS/test_fees.py"
    return (
        _scene(
            "test-renamed",
            "A changed test has another name than the command says.",
            ("trackside", "cartulary"),
            f"pytest {file}::test_a_label",
            BY_TEST,
            edits=(Edit(path=file, before="def test_a_label", after="def test_the_label"),),
        ),
        _scene(
            "test-file-removed",
            "The file that the command names was removed.",
            ("beehive", "inkwell"),
            f"pytest {file}",
            BY_TEST,
            edits=(Edit(path=file),),
        ),
    )
