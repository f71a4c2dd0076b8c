"""Tests that give both answers: by chance, time, what other tests leave, or the order of a set."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner, Repeatability
from scenes.guard_hygiene import FEES_TEST
from scenes.guard_runs import DATA, ONE, product_does, run_scene, test_does
from scenes.scene import Edit, Scene, Truth, reading


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
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
                files=DATA | {"README.txt": "About NOUNS.\n"},
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
