"""Packages and libraries around the project: absent, too old, broken, made for another interpreter."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.scene import Edit, Machine, Scene, machine, product, reading

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
NOT_PINNED = reading(
    Category.IMPORT_ERROR, Owner.PRODUCT, "the project may not say which version of the package it needs"
)
UNPINNED = reading(
    Category.TEST_REGRESSION,
    Owner.PRODUCT,
    "the code does not fit the version of the package that is installed",
)


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
    return (*_absent(), *_versions(), *_broken(), *_libraries())


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


def _versions() -> tuple[Scene, ...]:
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
