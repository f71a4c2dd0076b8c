"""pytest is not as the project needs it: absent plugins, their marks and options; an old pytest."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.scene import Edit, Machine, Scene, machine, of_tests, product, reading

FIXTURES = Machine(installed=("plugin-fixtures",), plugins=("more_fixtures",))
OPTIONS = Machine(installed=("plugin-options",), plugins=("more_options",))
COROUTINES = Machine(installed=("plugin-async", "plugin-options"), plugins=("coroutines", "more_options"))

SUMMARY = '''
    """A summary of NOUNS."""


    def summary(names):
        if not names:
            return "no NOUNS"
        return f"{len(names)} NOUNS, first {sorted(names)[0]}"
'''
SUMMARY_TEST = """
    from PKG.summary import summary


    def test_nothing_is_told_as_such():
        assert summary([]) == "no NOUNS"


    def test_the_first_is_named():
        assert summary(["b", "a"]) == "2 NOUNS, first a"
"""

_FIXTURE_TESTS = {
    "mocker": """
        from PKG import summary


        def test_the_summary_can_be_replaced(mocker):
            mocker.patch("PKG.summary.summary", return_value="nothing")
            assert summary.summary(["a"]) == "nothing"


        def test_an_empty_one():
            assert summary.summary([]) == "no NOUNS"
    """,
    "benchmark": """
        from PKG.summary import summary


        def test_a_long_list_is_summed_up_quickly(benchmark):
            names = [f"NOUN-{number}" for number in range(500)]
            assert benchmark(summary, names).startswith("500 NOUNS")
    """,
    "freezer": """
        from PKG.summary import summary


        def test_the_summary_does_not_depend_on_the_day(freezer):
            freezer.move_to("2026-02-28")
            assert summary(["x"]) == "1 NOUNS, first x"
    """,
    "faker": """
        import pytest

        from PKG.summary import summary


        @pytest.fixture
        def names(faker):
            return [faker.name(), faker.city()]


        def test_names_of_people_and_towns(names):
            assert summary(names).startswith("2 NOUNS")


        def test_without_names():
            assert summary(()) == "no NOUNS"
    """,
    "snapshot": """
        from PKG.summary import summary


        def test_the_summary_looks_as_it_did(snapshot):
            snapshot.assert_match(summary(["b", "c"]))
    """,
    "httpserver": """
        from PKG.summary import summary


        def test_names_from_a_server(httpserver):
            httpserver.expect("/names")
            assert summary([httpserver.url]).endswith(":1")
    """,
}
_FIXTURE_PROJECTS = {
    "mocker": ("parcelpost", "cartulary"),
    "benchmark": ("weathervane", "beehive"),
    "freezer": ("tidepool",),
    "faker": ("mealplan",),
    "snapshot": ("inkwell",),
    "httpserver": ("signalbox",),
}


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
    return (*_fixtures(), *_marks(), *_options(), *_coroutines(), *_versions())


def _fixtures() -> tuple[Scene, ...]:
    absent = tuple(
        Scene(
            kind="plugin-fixture-absent",
            says="A test asks for a fixture of a plugin that is not installed.",
            shape=name,
            projects=_FIXTURE_PROJECTS[name],
            truth=machine(),
            module="summary",
            product=SUMMARY,
            test=test,
            healthy=FIXTURES,
        )
        for name, test in _FIXTURE_TESTS.items()
    )
    own = """
        import pytest

        from PKG.summary import summary


        @pytest.fixture
        def two_names():
            return ["b", "a"]


        def test_the_first_is_named(two_names):
            assert summary(two_names) == "2 NOUNS, first a"


        def test_nothing_is_told_as_such():
            assert summary([]) == "no NOUNS"
    """
    shelf = {
        "TESTS/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef full_list():\n"
        "    return ['z', 'm', 'k']\n"
    }
    asks = """
        from PKG.summary import summary


        def test_the_first_of_a_full_list(full_list):
            assert summary(full_list) == "3 NOUNS, first k"
    """
    return (
        *absent,
        Scene(
            kind="own-fixture-misspelt",
            says="A test was changed and misspells a fixture of its own file.",
            projects=("parcelpost", "tidepool", "signalbox"),
            truth=of_tests(),
            module="summary",
            product=SUMMARY,
            test=own,
            edits=(Edit(path="TESTS/test_summary.py", before="named(two_names)", after="named(to_names)"),),
            styled=False,
            cmd="pytest TESTS/test_summary.py::test_the_first_is_named",
        ),
        Scene(
            kind="own-fixture-renamed",
            says="A fixture of the conftest was renamed, and the test that uses it was not.",
            projects=("inkwell", "weathervane"),
            truth=of_tests(),
            module="summary",
            product=SUMMARY,
            test=asks,
            files=shelf,
            edits=(Edit(path="TESTS/conftest.py", before="def full_list", after="def whole_list"),),
        ),
    )


def _marks() -> tuple[Scene, ...]:
    def marked(mark: str) -> str:
        return f"""
            import pytest

            from PKG.summary import summary


            @pytest.mark.{mark}
            def test_the_first_is_named():
                assert summary(["b", "a"]) == "2 NOUNS, first a"
        """

    strict = "pytest --strict-markers TESTS/test_summary.py"
    return (
        *(
            Scene(
                kind="plugin-mark-unknown",
                says="A mark of a plugin that is not installed is unknown, and unknown marks are errors.",
                shape=shape,
                projects=projects,
                truth=machine(),
                module="summary",
                product=SUMMARY,
                test=marked(mark),
                healthy=OPTIONS,
                cmd=strict,
                styled=False,
            )
            for shape, mark, projects in (
                ("timeout", "timeout(5)", ("parcelpost", "trackside")),
                ("django", "django_db", ("cartulary",)),
                ("flaky", "flaky(reruns=2)", ("beehive",)),
            )
        ),
        Scene(
            kind="own-mark-misspelt",
            says="A mark of the project is misspelt in a changed test, and unknown marks are errors.",
            projects=("mealplan", "inkwell", "trackside"),
            truth=of_tests(),
            module="summary",
            product=SUMMARY,
            test=marked("slow"),
            files={
                "TESTS/conftest.py": """
                    def pytest_configure(config):
                        config.addinivalue_line("markers", "slow: takes its time")
                """
            },
            edits=(Edit(path="TESTS/test_summary.py", before="mark.slow", after="mark.slwo"),),
            cmd=strict,
            styled=False,
        ),
    )


def _options() -> tuple[Scene, ...]:
    def ini(lines: str) -> dict[str, str]:
        return {"pytest.ini": f"[pytest]\npythonpath = . src lib\n{lines}\n"}

    absent = (
        ("cov", "addopts = --cov=PKG --cov-report=term", ("parcelpost", "cartulary")),
        ("benchmark", "addopts = -ra --benchmark-disable", ("weathervane",)),
    )
    return (
        *(
            Scene(
                kind="plugin-option-absent",
                says="The settings pass an option of a plugin that is not installed.",
                shape=shape,
                projects=projects,
                truth=machine(),
                module="summary",
                product=SUMMARY,
                test=SUMMARY_TEST,
                files=ini(line),
                healthy=OPTIONS,
            )
            for shape, line, projects in absent
        ),
        Scene(
            kind="required-plugin-absent",
            says="The settings require a plugin that is not installed.",
            projects=("beehive", "ledgerline", "tidepool"),
            truth=machine(),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            files={"required.ini": "[pytest]\npythonpath = . src lib\nrequired_plugins = pytest-cov>=2\n"},
            healthy=Machine(variables={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}),
            cmd="pytest -c required.ini TESTS/test_summary.py",
        ),
        Scene(
            kind="own-option-misspelt",
            says="The settings were changed, and misspell an option of pytest.",
            projects=("inkwell", "parcelpost"),
            truth=of_tests(
                Category.TEST_REGRESSION,
                reading(
                    Category.ENVIRONMENT_ERROR,
                    Owner.ENVIRONMENT,
                    "an option that pytest does not know is mostly that of an absent plugin",
                ),
            ),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            files=ini("addopts = --strict-markers"),
            edits=(Edit(path="pytest.ini", before="--strict-markers", after="--strict-marker-names"),),
        ),
    )


def _coroutines() -> tuple[Scene, ...]:
    code = '''
        """Waits for NOUNS."""

        import asyncio


        async def first(names):
            for name in names:
                await asyncio.sleep(0)
                return name
            return None
    '''
    test = """
        import asyncio

        from PKG.arrivals import first


        def test_nobody_comes():
            assert asyncio.run(first([])) is None


        async def test_the_first_one():
            assert await first(["a", "b"]) == "a"
    """
    plain = test.replace("async def test", "def test").replace(
        'await first(["a", "b"])', 'asyncio.run(first(["a", "b"]))'
    )
    return (
        Scene(
            kind="coroutines-without-plugin",
            says="Tests are coroutines, and the plugin that runs them is not installed.",
            projects=("beehive", "trackside", "inkwell"),
            truth=machine(),
            module="arrivals",
            product=code,
            test=test,
            healthy=COROUTINES,
            styled=False,
        ),
        Scene(
            kind="test-made-a-coroutine",
            says="A changed test became a coroutine in a project that has no plugin for them.",
            projects=("signalbox", "parcelpost"),
            truth=of_tests(),
            module="arrivals",
            product=code,
            test=plain,
            edits=(
                Edit(
                    path="TESTS/test_arrivals.py",
                    before='def test_the_first_one():\n    assert asyncio.run(first(["a", "b"])) == "a"',
                    after='async def test_the_first_one():\n    assert await first(["a", "b"]) == "a"',
                ),
            ),
            styled=False,
        ),
        Scene(
            kind="product-made-a-coroutine",
            says="A function of the product became a coroutine, and its test compares the coroutine.",
            projects=("mealplan", "tidepool"),
            truth=product(
                Category.TEST_REGRESSION,
                reading(
                    Category.SPEC_MISMATCH, Owner.PRODUCT, "the kind of call that the tests use has changed"
                ),
            ),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            edits=(Edit(path="SRC/summary.py", before="def summary", after="async def summary"),),
        ),
    )


def _versions() -> tuple[Scene, ...]:
    return (
        Scene(
            kind="pytest-too-old",
            says="The settings ask for a newer pytest than the one that is installed.",
            projects=("weathervane", "cartulary", "inkwell"),
            truth=machine(),
            module="summary",
            product=SUMMARY,
            test=SUMMARY_TEST,
            files={"new.ini": "[pytest]\npythonpath = . src lib\nminversion = 99.1\n"},
            healthy=Machine(installed=("newer-pytest",)),
            cmd="pytest -c new.ini TESTS/test_summary.py",
        ),
    )
