"""Commands that select no test, or only tests that prove nothing."""

from __future__ import annotations

from typing import Any

from planner.model.taxonomy import Category, Owner
from scenes.guard_hygiene import FEES, FEES_TEST
from scenes.scene import Edit, Scene, Truth, reading

DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
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


def scenes() -> tuple[Scene, ...]:
    """Every selection that finds nothing, or nothing of use."""
    return (*_wrong(), *_vacuous(), *_changed())


def _scene(
    kind: str, says: str, projects: tuple[str, ...], cmd: str, truth: Truth = PLAN, **more: Any
) -> Scene:
    given = {"green_cmd": "pytest TESTS/test_fees.py"} | more
    files = DATA | given.pop("files", {})
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
