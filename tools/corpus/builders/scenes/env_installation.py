"""The project itself is not installed as it should be, or another one's tests are installed beside it."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.env_plugins import SUMMARY, SUMMARY_TEST
from scenes.scene import Edit, Machine, Scene, machine, of_tests, product, reading


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
    return (*_foreign_tests(), *_metadata(), *_other_copies(), *_interpreters())


def _foreign_tests() -> tuple[Scene, ...]:
    test = """
        from tests.material import names

        from PKG.summary import summary


        def test_names_of_the_material():
            assert summary(names()) == "2 NOUNS, first ada"
    """
    material = {
        "tests/material.py": "def names():\n    return ['bob', 'ada']\n",
        "pytest.ini": "[pytest]\npythonpath = . src lib\nimport_mode = importlib\n",
    }
    shared = "from tests import material"
    return (
        Scene(
            kind="foreign-tests-package",
            says="The tests lie in no package, and an installed package of the same name comes first.",
            shape="module",
            projects=("parcelpost", "mealplan", "signalbox"),
            truth=machine(),
            module="summary",
            product=SUMMARY,
            test=test,
            files=material,
            ill=Machine(installed=("foreign-tests",)),
        ),
        Scene(
            kind="foreign-tests-package",
            says="The tests lie in no package, and an installed package of the same name comes first.",
            shape="name",
            projects=("weathervane", "beehive"),
            truth=machine(),
            module="summary",
            product=SUMMARY,
            test=test.replace("from tests.material import names", shared).replace(
                "(names())", "(material.names())"
            ),
            files=material,
            ill=Machine(installed=("foreign-tests",)),
        ),
        Scene(
            kind="support-of-tests-renamed",
            says="A function of the tests' own support module was renamed, and a test still asks for "
            "the old name.",
            projects=("parcelpost", "beehive", "signalbox"),
            truth=of_tests(),
            module="summary",
            product=SUMMARY,
            test=test,
            files={**material, "tests/__init__.py": ""},
            edits=(Edit(path="tests/material.py", before="def names", after="def all_names"),),
        ),
    )


def _metadata() -> tuple[Scene, ...]:
    code = '''
        """Which version this is."""

        from importlib.metadata import version


        def banner():
            return f"PKG {version('PKG')}"
    '''
    test = (
        "from PKG.banner import banner\n\n\ndef test_a_version_is_named():\n"
        "    assert banner() == 'PKG 1.4.0'\n"
    )
    installed = Machine(
        before="mkdir -p SITE/PKG-1.4.0.dist-info\n"
        "printf 'Metadata-Version: 2.1\\nName: PKG\\nVersion: 1.4.0\\n' > SITE/PKG-1.4.0.dist-info/METADATA"
    )
    return (
        Scene(
            kind="project-not-installed",
            says="The code asks for the metadata of the project, which is not installed on this machine.",
            projects=("weathervane", "cartulary", "signalbox"),
            truth=machine(),
            module="banner",
            product=code,
            test=test,
            healthy=installed,
        ),
        Scene(
            kind="project-name-misspelt",
            says="A changed line asks for the metadata of a distribution that does not exist.",
            projects=("parcelpost", "beehive"),
            truth=product(exact=True),
            module="banner",
            product=code,
            test=test,
            healthy=installed,
            ill=installed,
            edits=(Edit(path="SRC/banner.py", before="version('PKG')", after="version('PKG-lib')"),),
        ),
    )


def _other_copies() -> tuple[Scene, ...]:
    settings = {"pytest.ini": "[pytest]\naddopts = -ra --import-mode=importlib\n"}
    checkout = {"PYTHONPATH": "PROJECT:PROJECT/src:PROJECT/lib"}
    second = """
        from PKG.summary import summary


        def test_many():
            assert summary(list("cab")) == "3 NOUNS, first a"
    """
    return (
        Scene(
            kind="older-copy-installed",
            says="An older copy of the project is installed, but comes before the one that is worked on.",
            shape="module",
            projects=("parcelpost", "trackside", "inkwell"),
            truth=machine(
                reading(
                    Category.ARTIFACT_MISSING,
                    Owner.PRODUCT,
                    "a module of the project is not where it is used",
                )
            ),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            files=settings,
            healthy=Machine(variables=checkout),
            ill=Machine(before="mkdir -p SITE/PKG; echo '__version__ = \"0.9\"' > SITE/PKG/__init__.py"),
        ),
        Scene(
            kind="two-test-files-of-one-name",
            says="A test file was added that has the name of another one in another folder.",
            projects=("mealplan", "beehive", "signalbox", "parcelpost"),
            truth=of_tests(),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            edits=(Edit(path="TESTS/more/test_summary.py", after=second),),
            cmd="pytest TESTS",
        ),
    )


def _interpreters() -> tuple[Scene, ...]:
    empty = (
        "mkdir -p PROJECT/.venv/bin\nprintf '#!/bin/sh\\nexec PYTHON {}\\n' > PROJECT/.venv/bin/python\n"
        "chmod 755 PROJECT/.venv/bin/python"
    )
    return (
        Scene(
            kind="interpreter-without-pytest",
            says="The interpreter that the plan names has no pytest.",
            projects=("weathervane", "tidepool", "cartulary"),
            truth=machine(),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            files={".gitignore": ".venv/\n"},
            healthy=Machine(before=empty.format('"$@"')),
            ill=Machine(before=empty.format('-I -S "$@"')),
            cmd=".venv/bin/python -m pytest TESTS/test_summary.py",
            green_plan=True,
        ),
    )
