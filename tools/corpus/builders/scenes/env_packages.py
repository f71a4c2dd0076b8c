"""Missing or unsuitable plugins, dependencies and installations; and similar faults of the project."""

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


def plugin_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of plugins, and similar faults of the project."""
    return (*_fixtures(), *_marks(), *_options(), *_coroutines(), *_plugin_versions())


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


def _plugin_versions() -> tuple[Scene, ...]:
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


TABLE = Machine(installed=("tinytable",))

SHEET = '''
    """NOUNS as a sheet."""

    import tinytable


    def sheet(rows):
        return tinytable.render([("NOUN", "count"), *rows])
'''
SHEET_BY_NAME = SHEET.replace("import tinytable", "from tinytable import render").replace(
    "tinytable.render", "render"
)
SHEET_LATE = '''
    """NOUNS as a sheet."""


    def titles():
        return ("NOUN", "count")


    def sheet(rows):
        from tinytable import render

        return render([titles(), *rows])
'''
SHEET_GRID = '''
    """NOUNS in columns."""

    from tinytable import Grid


    def sheet(rows):
        return " / ".join(" ".join(str(cell) for cell in column) for column in Grid(rows).columns())
'''
SHEET_SEPARATED = SHEET.replace("*rows]", '*rows], sep=" | "')
SHEET_TEST = """
    from PKG.sheet import sheet


    def test_a_row_for_each():
        assert sheet([("a", 2)]) == "NOUN | count\\na | 2"
"""
GRID_TEST = """
    from PKG.sheet import sheet


    def test_columns():
        assert sheet([("a", 2), ("b", 3)]) == "a b / 2 3"
"""
TESTS_USE_TABLE = """
    import tinytable

    from PKG.sheet import lines


    def test_a_row_for_each():
        assert lines([("a", 2)]) == tinytable.render([("a", 2)], sep="\\t")
"""
LINES = '''
    """NOUNS as lines."""


    def lines(rows):
        return "\\n".join("\\t".join(str(cell) for cell in row) for row in rows)
'''

NOT_INSTALLED = reading(
    Category.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "the project may declare it: then the machine lacks it"
)
TOO_OLD = reading(
    Category.ENVIRONMENT_ERROR,
    Owner.ENVIRONMENT,
    "another version of the package is installed than the code is for",
)
UNPINNED = reading(
    Category.TEST_REGRESSION,
    Owner.PRODUCT,
    "the code does not fit the version of the package that is installed",
)


def dependency_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of dependencies, and similar faults of the project."""
    return (*_absent(), *_dependency_versions(), *_broken(), *_libraries())


def _absent() -> tuple[Scene, ...]:
    return (
        Scene(
            kind="test-dependency-absent",
            says="The tests import a package that is not installed.",
            projects=("parcelpost", "cartulary", "tidepool"),
            truth=product(Category.IMPORT_ERROR, NOT_INSTALLED),
            module="sheet",
            product=LINES,
            test=TESTS_USE_TABLE,
            healthy=TABLE,
        ),
        Scene(
            kind="dependency-absent",
            says="The product imports a package that is not installed.",
            projects=("weathervane", "mealplan"),
            truth=product(Category.IMPORT_ERROR, NOT_INSTALLED),
            module="sheet",
            product=SHEET_LATE,
            test=SHEET_TEST,
            healthy=TABLE,
        ),
        Scene(
            kind="dependency-added",
            says="A changed line of the product imports a package that nobody installed.",
            projects=("beehive", "signalbox", "ledgerline"),
            truth=product(Category.IMPORT_ERROR, exact=True),
            module="sheet",
            product='"""NOUNS as lines."""\n\nimport json\n\n\ndef lines(rows):\n'
            "    return json.dumps(rows)\n",
            test="from PKG.sheet import lines\n\n\ndef test_nothing():\n    assert lines([]) == '[]'\n",
            edits=(Edit(path="SRC/sheet.py", before="import json\n", after="import orjsonlite as json\n"),),
        ),
    )


def _dependency_versions() -> tuple[Scene, ...]:
    old = Machine(installed=("tinytable-old",))
    wrong_name = (
        Edit(path="SRC/sheet.py", before="from string import", after="from string import Templates, "),
    )
    return (
        Scene(
            kind="dependency-lacks-name",
            says="The version that is installed lacks a name that the product imports.",
            projects=("parcelpost", "inkwell", "trackside"),
            truth=product(Category.IMPORT_ERROR, TOO_OLD),
            module="sheet",
            product=SHEET_BY_NAME,
            test=SHEET_TEST,
            healthy=TABLE,
            ill=old,
        ),
        Scene(
            kind="dependency-lacks-attribute",
            says="The version that is installed lacks a function or a method that the product calls.",
            shape="function",
            projects=("weathervane", "tidepool"),
            truth=machine(UNPINNED),
            module="sheet",
            product=SHEET_SEPARATED,
            test=SHEET_TEST,
            healthy=TABLE,
            ill=old,
        ),
        Scene(
            kind="dependency-lacks-attribute",
            says="The version that is installed lacks a function or a method that the product calls.",
            shape="method",
            projects=("cartulary", "beehive"),
            truth=machine(UNPINNED),
            module="sheet",
            product=SHEET_GRID,
            test=GRID_TEST,
            healthy=TABLE,
            ill=old,
        ),
        Scene(
            kind="wrong-name-imported",
            says="A changed line of the product imports a name that the standard library never had.",
            projects=("mealplan", "ledgerline", "signalbox"),
            truth=product(Category.IMPORT_ERROR, exact=True),
            module="sheet",
            product='"""NOUNS in a text."""\n\nfrom string import Template\n\n\n'
            'def text(name):\n    return Template("NOUN $name").substitute(name=name)\n',
            test="from PKG.sheet import text\n\n\ndef test_a_name():\n    assert text('x') == 'NOUN x'\n",
            edits=wrong_name,
        ),
    )


def _broken() -> tuple[Scene, ...]:
    return (
        Scene(
            kind="dependency-fails-at-import",
            says="A package is installed and broken: it raises while it is imported.",
            projects=("signalbox", "ledgerline", "parcelpost"),
            truth=machine(),
            module="sheet",
            product=SHEET,
            test=SHEET_TEST,
            healthy=TABLE,
            ill=Machine(installed=("tinytable-broken",)),
        ),
        Scene(
            kind="product-fails-at-import",
            says="A changed constant makes a module of the product raise while it is imported.",
            projects=("beehive", "cartulary", "weathervane"),
            truth=product(),
            module="limits",
            product='''
                """Limits of NOUNS."""

                LOWEST = 3
                HIGHEST = 12

                if LOWEST > HIGHEST:
                    raise RuntimeError("limits was built for other bounds than it has")


                def allowed(count):
                    return LOWEST <= count <= HIGHEST
            ''',
            test="from PKG.limits import allowed\n\n\ndef test_the_middle():\n    assert allowed(5)\n",
            edits=(Edit(path="SRC/limits.py", before="LOWEST = 3", after="LOWEST = 13"),),
        ),
        Scene(
            kind="dependency-of-another-python",
            says="A package is installed that was written for an interpreter of another version.",
            projects=("tidepool", "mealplan", "trackside"),
            truth=machine(),
            module="sheet",
            product=SHEET_BY_NAME,
            test=SHEET_TEST,
            healthy=TABLE,
            ill=Machine(installed=("tinytable-python-2",)),
        ),
        Scene(
            kind="product-of-another-python",
            says="A changed line of the product is no syntax of this interpreter.",
            projects=("inkwell", "parcelpost", "cartulary"),
            truth=product(Category.COMPILATION_ERROR, exact=True),
            module="sheet",
            product=LINES + "\n\n    def show(rows):\n        print(lines(rows))\n",
            test="from PKG.sheet import lines\n\n\ndef test_nothing():\n    assert lines([]) == ''\n",
            edits=(Edit(path="SRC/sheet.py", before="print(lines(rows))", after="print lines(rows)"),),
        ),
    )


def _libraries() -> tuple[Scene, ...]:
    build = "gcc -shared -fPIC -o VAR/lib{name}.so -x c - <<'C'\n{code}\nC\n"
    distance = build.format(
        name="PKGgeo", code="int PKG_steps(int a, int b) { return a > b ? a - b : b - a; }"
    )
    path = {"LD_LIBRARY_PATH": "VAR"}
    by_ctypes = '''
        """Steps between NOUNS, counted by a library of the system."""

        import ctypes


        def steps(a, b):
            library = ctypes.CDLL("libPKGgeo.so")
            return library.PKG_steps(a, b)
    '''
    test = "from PKG.steps import steps\n\n\ndef test_backwards():\n    assert steps(2, 9) == 7\n"
    wheel = (
        (
            "gcc -shared -fPIC $(INCLUDE) -o SITE/fastsum.so -x c - -LVAR -lfastsumbase <<'C'\n"
            "#include <Python.h>\n"
            "int base(int);\n"
            "static PyObject *twice(PyObject *self, PyObject *n) {{ return "
            "PyLong_FromLong(base(PyLong_AsLong(n))); }}\n"
            'static PyMethodDef methods[] = {{{{"twice", twice, METH_O, 0}}, {{0, 0, 0, 0}}}};\n'
            'static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "fastsum", 0, -1, methods}};\n'
            "PyMODINIT_FUNC PyInit_fastsum(void) {{ return PyModule_Create(&module); }}\n"
            "C\n"
        )
        .replace("{{", "{")
        .replace("}}", "}")
    )
    wheel = wheel.replace(
        "$(INCLUDE)", "-I$(PYTHON -c 'import sysconfig; print(sysconfig.get_paths()[\"include\"])')"
    )
    base = build.format(name="fastsumbase", code="int base(int n) { return n * 2; }")
    doubled = '''
        """NOUNS, twice as many."""

        import fastsum


        def doubled(count):
            return fastsum.twice(count)
    '''
    doubled_test = "from PKG.doubled import doubled\n\n\ndef test_two():\n    assert doubled(2) == 4\n"
    return (
        Scene(
            kind="system-library-absent",
            says="The product loads a library of the system that is not installed.",
            projects=("parcelpost", "weathervane", "tidepool"),
            truth=machine(),
            module="steps",
            product=by_ctypes,
            test=test,
            healthy=Machine(before=distance, variables=path),
        ),
        Scene(
            kind="system-library-misspelt",
            says="A changed line of the product names a library that does not exist.",
            projects=("inkwell", "trackside"),
            truth=product(exact=True),
            module="steps",
            product=by_ctypes,
            test=test,
            healthy=Machine(before=distance, variables=path),
            ill=Machine(before=distance, variables=path),
            edits=(Edit(path="SRC/steps.py", before="libPKGgeo.so", after="libPKG-geo.so"),),
        ),
        Scene(
            kind="library-of-extension-absent",
            says="An installed extension module needs a library of the system that is not there.",
            projects=("mealplan", "signalbox", "ledgerline"),
            truth=machine(),
            module="doubled",
            product=doubled,
            test=doubled_test,
            healthy=Machine(before=base + wheel, variables=path),
            ill=Machine(before=base + wheel + "rm VAR/libfastsumbase.so\n", variables=path),
        ),
        Scene(
            kind="library-of-extension-too-old",
            says="An installed extension module needs a symbol that the library of the system does "
            "not have.",
            projects=("beehive", "cartulary"),
            truth=machine(),
            module="doubled",
            product=doubled,
            test=doubled_test,
            healthy=Machine(before=base + wheel, variables=path),
            ill=Machine(before=base + wheel + base.replace("int base(", "int sum_base("), variables=path),
        ),
        Scene(
            kind="extension-not-built",
            says="A module of the project that a build step makes has not been made on this machine.",
            projects=("trackside", "inkwell", "mealplan"),
            truth=machine(
                reading(
                    Category.ARTIFACT_MISSING, Owner.PRODUCT, "a module of the project itself is missing"
                )
            ),
            module="about",
            product='''
                """What this is."""

                from PKG._built import VERSION


                def about():
                    return f"PKG {VERSION}"
            ''',
            test="from PKG.about import about\n\n\ndef test_its_name():\n    assert about() == 'PKG 1.4'\n",
            files={".gitignore": "_built.py\n"},
            healthy=Machine(before="echo 'VERSION = \"1.4\"' > PROJECT/SRC/_built.py"),
            ill=Machine(before="rm -f PROJECT/SRC/_built.py"),
        ),
    )


def installation_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of installations, and similar faults of the project."""
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
