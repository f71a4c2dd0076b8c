"""Screens, accounts, browsers and data that a machine does not have."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.scene import Edit, Machine, Scene, machine, of_tests, product, reading


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
    return (
        *_accounts(),
        *_data(),
    )


def _accounts() -> tuple[Scene, ...]:
    screen = '''
        """Shows NOUNS in a window."""

        from screenkit import Window


        def window():
            return Window("NOUNS")
    '''
    cloud = '''
        """NOUNS of a month, kept in an object store."""

        from cloudkit import Bucket


        def months():
            return [name.split("/")[1] for name in Bucket("NOUNS").list()]
    '''
    browser = '''
        """Looks at the pages of NOUNS."""

        from webpilot import Browser


        def title(path):
            return Browser().title(path)
    '''
    here = Machine(installed=("cloudkit",), variables={"CLOUDKIT_ACCESS_KEY": "given"})
    return (
        Scene(
            kind="display-absent",
            says="The machine has no screen.",
            projects=("trackside", "mealplan", "weathervane"),
            truth=machine(),
            module="window",
            product=screen,
            test="from PKG.window import window\n\n\ndef test_its_size():\n"
            "    assert window().size == (640, 480)\n",
            healthy=Machine(installed=("screenkit",), variables={"DISPLAY": ":0"}),
            ill=Machine(installed=("screenkit",)),
        ),
        Scene(
            kind="credentials-absent",
            says="The machine has no key for a service of the cloud.",
            projects=("parcelpost", "tidepool", "ledgerline"),
            truth=machine(),
            module="months",
            product=cloud,
            test="from PKG.months import months\n\n\ndef test_two():\n    assert len(months()) == 2\n",
            healthy=here,
            ill=Machine(installed=("cloudkit",)),
        ),
        Scene(
            kind="browser-driver-absent",
            says="The driver of the browser is not installed.",
            projects=("cartulary", "inkwell", "signalbox"),
            truth=machine(),
            module="pages",
            product=browser,
            test="from PKG.pages import title\n\n\ndef test_the_first_page():\n"
            "    assert title('/home') == 'Home'\n",
            healthy=Machine(installed=("webpilot",), programs={"firefox-driver": "cat"}),
            ill=Machine(installed=("webpilot",)),
        ),
        Scene(
            kind="browser-misnamed-by-product",
            says="A changed line of the product asks for a browser that nobody makes.",
            projects=("beehive", "parcelpost"),
            truth=product(),
            module="pages",
            product=browser.replace("Browser()", 'Browser("firefox")'),
            test="from PKG.pages import title\n\n\ndef test_the_first_page():\n"
            "    assert title('/home') == 'Home'\n",
            healthy=Machine(installed=("webpilot",), programs={"firefox-driver": "cat"}),
            ill=Machine(installed=("webpilot",), programs={"firefox-driver": "cat"}),
            edits=(Edit(path="SRC/pages.py", before='"firefox"', after='"fierfox"'),),
        ),
    )


def _data() -> tuple[Scene, ...]:
    code = '''
        """Sums over NOUNS."""

        import json


        def total(text):
            return sum(json.loads(text).values())
    '''
    test = """
        from pathlib import Path

        import pytest

        from PKG.sums import total

        SAMPLES = Path(__file__).parent / "samples"


        @pytest.fixture
        def sample():
            return (SAMPLES / "large.json").read_text()


        def test_the_large_sample(sample):
            assert total(sample) == 6


        def test_nothing():
            assert total("{}") == 0
    """
    fetched = Machine(
        before='mkdir -p PROJECT/TESTS/samples; echo \'{"a": 2, "b": 4}\' > '
        "PROJECT/TESTS/samples/large.json"
    )
    pointer = "version https://git-lfs.github.com/spec/v1\\noid sha256:9c0d0c4f0f1e\\nsize 26\\n"
    unfetched = (
        "mkdir -p PROJECT/TESTS/samples; printf '" + pointer + "' > PROJECT/TESTS/samples/large.json"
    )
    mine = reading(
        Category.TEST_REGRESSION, Owner.TEST, "the tests rely on data that is not in the project"
    )
    ignored = {".gitignore": "samples/\n"}
    return (
        Scene(
            kind="data-not-fetched",
            says="Data that the tests read is fetched apart, and was not fetched on this machine.",
            shape="missing",
            projects=("weathervane", "signalbox"),
            truth=machine(mine),
            module="sums",
            product=code,
            test=test,
            files=ignored,
            healthy=fetched,
            ill=Machine(before="rm -rf PROJECT/TESTS/samples"),
        ),
        Scene(
            kind="data-not-fetched",
            says="Data that the tests read is fetched apart, and was not fetched on this machine.",
            shape="pointer",
            projects=("mealplan", "inkwell"),
            truth=machine(mine),
            module="sums",
            product=code,
            test=test,
            files=ignored,
            healthy=fetched,
            ill=Machine(before=unfetched),
        ),
        Scene(
            kind="data-path-misspelt-by-test",
            says="A changed test misspells the name of a file of its data.",
            projects=("trackside", "beehive", "ledgerline"),
            truth=of_tests(exact=True),
            module="sums",
            product=code,
            test=test,
            files={"TESTS/samples/large.json": '{"a": 2, "b": 4}\n'},
            edits=(Edit(path="TESTS/test_sums.py", before='"large.json"', after='"larger.json"'),),
        ),
    )
