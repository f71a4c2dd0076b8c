"""Small projects, each with a property that could make a shared session differ from a single command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OddProject:
    """A project, and the verdict of each of its commands when run alone."""

    name: str
    why: str
    """The unusual property."""
    files: dict[str, str]
    """Text by path; may be indented."""
    verdicts: dict[str, str]
    """Verdict by command, in the order of the plan: `passed` or `failed`."""
    plugins: tuple[str, ...] = ()
    """Modules of the required pytest plugins."""


ODD_PROJECTS: tuple[OddProject, ...] = (
    OddProject(
        "session_fixture_teardown",
        "a session fixture's teardown fails, which pytest blames on whatever test ran last",
        files={
            "tests/conftest.py": """
            import pytest
            @pytest.fixture(scope='session')
            def db():
                yield 1
                raise RuntimeError('teardown')
            """,
            "tests/test_a.py": """
            def test_1(db): pass
            def test_2(db): pass
            """,
            "tests/test_b.py": "def test_b(): pass\n",
        },
        verdicts={
            "pytest tests/test_a.py::test_1": "failed",
            "pytest tests/test_a.py::test_2": "failed",
            "pytest tests/test_b.py": "passed",
        },
    ),
    OddProject(
        "late_warning",
        "one test's garbage warns while another test runs, and warnings are errors",
        files={
            "tests/test_a.py": """
            class L: pass
            def test_a():
                l = L(); l.me = l; l.f = open(__file__)
            """,
            "tests/test_b.py": """
            import gc
            def test_b(): gc.collect()
            """,
            "tests/test_c.py": "def test_c(): pass\n",
        },
        verdicts={
            "pytest -W error tests/test_a.py": "failed",
            "pytest -W error tests/test_b.py": "passed",
            "pytest -W error tests/test_c.py": "passed",
        },
    ),
    OddProject(
        "cov_fail_under",
        "the ini file demands a coverage that only all tests together reach",
        files={
            "pyproject.toml": """
            [tool.pytest.ini_options]
            addopts='--cov=prod --cov-fail-under=95'
            pythonpath=['.']
            """,
            "prod.py": """
            def f():
                return 1
            def g():
                return 2
            """,
            "tests/test_a.py": """
            import prod
            def test_a(): prod.f()
            """,
            "tests/test_b.py": """
            import prod
            def test_b(): prod.g()
            """,
        },
        verdicts={
            "pytest tests/test_a.py": "failed",
            "pytest tests/test_b.py": "failed",
            "pytest tests": "passed",
        },
        plugins=("pytest_cov.plugin",),
    ),
    OddProject(
        "expressions_in_the_ini_file",
        "the ini file gives -k and -m, which a command's own replace even when they are empty",
        files={
            "pyproject.toml": """
            [tool.pytest.ini_options]
            addopts='-k test_a -m "not slow"'
            markers=['slow']
            """,
            "tests/test_it.py": """
            import pytest
            def test_a(): pass
            def test_b(): assert 0
            @pytest.mark.slow
            def test_a_slow(): assert 0
            """,
        },
        verdicts={
            "pytest tests": "passed",
            "pytest tests -k ''": "failed",
            "pytest tests -k test_b": "failed",
            "pytest tests -m ''": "failed",
        },
    ),
    OddProject(
        "conftest_reads_k",
        "a conftest skips slow tests unless -k or -m was given",
        files={
            "tests/conftest.py": """
            import pytest
            def pytest_configure(config): config.addinivalue_line('markers','slow: x')
            def pytest_collection_modifyitems(config, items):
                if config.option.keyword or config.option.markexpr: return
                for i in items:
                    if 'slow' in i.keywords: i.add_marker(pytest.mark.skip)
            """,
            "tests/test_a.py": """
            import pytest
            def test_foo(): pass
            @pytest.mark.slow
            def test_foo_slow(): assert 0
            def test_bar(): pass
            """,
        },
        verdicts={
            "pytest tests -k foo": "failed",
            "pytest tests": "passed",
            "pytest tests -m slow": "failed",
        },
    ),
    OddProject(
        "order_of_paths",
        "a test passes only after that of a file which its command names later",
        files={
            "st.py": "S=[]\n",
            "conftest.py": "",
            "tests/test_a.py": """
            import st
            def test_1(): st.S.append(1)
            """,
            "tests/test_b.py": """
            import st
            def test_2(): assert st.S
            """,
        },
        verdicts={"pytest tests/test_a.py": "passed", "pytest tests/test_b.py tests/test_a.py": "failed"},
    ),
    OddProject(
        "subtests",
        "subtests pass, fail, are skipped or are expected to fail, and their tests otherwise pass",
        files={
            "tests/test_a.py": """
            import unittest

            class T(unittest.TestCase):
                def test_1(self):
                    for i in range(3):
                        with self.subTest(i=i):
                            if i == 1:
                                self.skipTest("x")

                def test_2(self):
                    with self.subTest():
                        self.fail("x")

                def test_3(self):
                    with self.subTest():
                        pass
            """,
            "tests/test_b.py": """
            import pytest

            def test_xfail(subtests):
                with subtests.test(): pytest.xfail("x")
                with subtests.test(): pass

            def test_skip(subtests):
                with subtests.test(): pytest.skip("x")

            def test_fail(subtests):
                with subtests.test(): assert 0
                with subtests.test(): pass
            """,
        },
        verdicts={
            "pytest tests/test_a.py::T::test_1": "passed",
            "pytest tests/test_a.py::T::test_2": "failed",
            "pytest tests/test_a.py::T::test_3": "passed",
            "pytest tests/test_b.py --deselect tests/test_b.py::test_fail": "passed",
            "pytest tests/test_b.py::test_skip": "passed",
            "pytest tests/test_b.py::test_fail": "failed",
        },
    ),
    OddProject(
        "start_variables",
        "variables that the interpreter, pytest or the C library read when they start, such as PYTHONPATH",
        files={
            "scratch/.keep": "",
            "lib/thing2.py": "",
            "tests/test_a.py": """
            import os
            import sys
            import tempfile
            import time

            def test_opt(): assert sys.flags.optimize == 1
            def test_hash(): assert sys.flags.hash_randomization == 0
            def test_tz(): assert time.timezone == -9 * 3600
            def test_warn_env(): assert sys.warnoptions
            def test_tmp(): assert tempfile.gettempdir() == os.path.abspath("scratch")
            def test_addopts(): pass
            """,
            "tests/test_b.py": """
            import thing2
            def test_b(): pass
            """,
        },
        verdicts={
            "PYTHONOPTIMIZE=1 pytest tests/test_a.py::test_opt": "passed",
            "PYTHONHASHSEED=0 pytest tests/test_a.py::test_hash": "passed",
            "TZ=Asia/Tokyo pytest tests/test_a.py::test_tz": "passed",
            "PYTHONWARNINGS=error pytest tests/test_a.py::test_warn_env": "passed",
            "TMPDIR=scratch pytest tests/test_a.py::test_tmp": "passed",
            "PYTEST_ADDOPTS='-k opt' pytest tests/test_a.py": "failed",
            "PYTEST_ADDOPTS='-k addopts' pytest tests/test_a.py": "passed",
            "PYTHONPATH=lib pytest tests/test_b.py": "passed",
            "pytest tests/test_b.py": "failed",
            "PYTHONPATH=lib python -m pytest tests/test_b.py::test_b": "passed",
        },
    ),
    OddProject(
        "process_of_a_test",
        "tests look at their process: its arguments, signals, session, and room for recursion",
        files={
            "tests/test_a.py": """
            import os
            import signal
            import sys

            def deep(number):
                try: return deep(number + 1)
                except RecursionError: return number

            def test_prog():
                assert os.path.isabs(sys.argv[0])
                assert sys.argv[0].endswith("bin/pytest")

            def test_module(): assert sys.argv[0].endswith("__main__.py")
            def test_args(): assert sys.argv[1:] == ["tests/test_a.py::test_args", "-q"]
            def test_few_args(): assert len(sys.argv) > 2
            def test_alarm(): assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
            def test_timer(): assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
            def test_mark(request): assert request.node.get_closest_marker("timeout") is None
            def test_lonely(request): assert len(request.session.items) == 1
            def test_company(request): assert len(request.session.items) > 1
            def test_room(): assert deep(0) > sys.getrecursionlimit() - 50
            def test_no_more(): assert deep(0) > sys.getrecursionlimit() - 25
            """
        },
        verdicts={
            "pytest tests/test_a.py::test_prog": "passed",
            "python -m pytest tests/test_a.py::test_module": "passed",
            "pytest tests/test_a.py::test_args -q": "passed",
            "pytest tests/test_a.py::test_few_args": "failed",
            "pytest tests/test_a.py -k 'alarm or timer'": "passed",
            "pytest tests/test_a.py::test_mark": "passed",
            "pytest tests/test_a.py::test_lonely": "passed",
            "pytest tests/test_a.py::test_company": "failed",
            "pytest tests/test_a.py::test_room": "passed",
            "pytest tests/test_a.py::test_no_more": "failed",
        },
        plugins=("pytest_timeout",),
    ),
    OddProject(
        "option_of_a_deep_conftest",
        "a conftest far below the root adds an option",
        files={
            "src/pkg/checks/conftest.py": """
            def pytest_addoption(parser):
                parser.addoption('--zz', default='1')
            """,
            "src/pkg/checks/test_a.py": """
            def test_a(request):
                assert request.config.getoption('--zz') == '1'
            """,
        },
        verdicts={"pytest . -k test_a": "passed", "pytest src/pkg/checks/test_a.py": "passed"},
    ),
    OddProject(
        "packages_named_like_ours",
        "the project has packages named like the verifier, and like those that the verifier imports",
        files={
            "conftest.py": "",
            "yaml/__init__.py": "MINE = 1\n",
            "psutil/__init__.py": "MINE = 1\n",
            "jsonschema/__init__.py": "MINE = 1\n",
            "pydantic/__init__.py": "MINE = 1\n",
            "typing_inspection.py": "MINE = 1\n",
            "planner/__init__.py": "MINE = 1\n",
            "tests/test_y.py": """
            import yaml, planner
            def test_y(): assert yaml.MINE
            def test_o(): assert planner.MINE
            def test_fail(): assert yaml.MINE == 2
            """,
            "tests/test_p.py": """
            import jsonschema, psutil, typing_inspection
            def test_p(): assert jsonschema.MINE and psutil.MINE and typing_inspection.MINE
            """,
            "tests/test_pd.py": """
            import pydantic
            def test_p(): assert pydantic.MINE
            def test_fail(): assert pydantic.MINE == 2
            """,
        },
        verdicts={
            "pytest tests/test_y.py": "failed",
            "python -m pytest tests/test_y.py -k 'not fail'": "passed",
            "pytest tests/test_p.py": "passed",
            "pytest tests/test_pd.py": "failed",
            "pytest tests/test_pd.py::test_p": "passed",
        },
    ),
    OddProject(
        "duplicate_ids",
        "two items of one file have one node id, and only the second passes",
        files={
            "tests/conftest.py": """
            import pytest

            class Item(pytest.Item):
                def __init__(self, *, ok, **kwargs):
                    super().__init__(**kwargs)
                    self.ok = ok

                def runtest(self):
                    assert self.ok

            class File(pytest.File):
                def collect(self):
                    yield Item.from_parent(self, name="x", ok=False)
                    yield Item.from_parent(self, name="x", ok=True)

            def pytest_collect_file(file_path, parent):
                if file_path.suffix == ".zz":
                    return File.from_parent(parent, path=file_path)
            """,
            "tests/a.zz": "",
            "tests/test_a.py": "def test_a(): pass\n",
        },
        verdicts={
            "pytest tests": "failed",
            "pytest tests/a.zz": "failed",
            "pytest tests/test_a.py": "passed",
        },
    ),
    OddProject(
        "sessionfinish_status",
        "a conftest, or a function called at the exit, changes the exit status after one test",
        files={
            "tests/conftest.py": """
            BAD=[]
            def pytest_runtest_teardown(item):
                if item.name=='test_a': BAD.append(1)
            def pytest_sessionfinish(session):
                if BAD: session.exitstatus = 9
            """,
            "tests/test_a.py": "def test_a(): pass\n",
            "tests/test_b.py": "def test_b(): assert 0\n",
            "tests/test_c.py": "def test_c(): pass\n",
            "tests/test_d.py": """
            import atexit, os
            def test_d(): atexit.register(lambda: os._exit(3))
            """,
        },
        verdicts={
            "pytest tests/test_a.py": "failed",
            "pytest tests/test_b.py": "failed",
            "pytest tests/test_c.py": "passed",
            "pytest tests/test_d.py": "failed",
        },
    ),
    OddProject(
        "skip_module_with_id",
        "a file skips itself as a whole, and a command names a test of it",
        files={
            "tests/test_a.py": """
            import pytest
            pytest.skip('x', allow_module_level=True)
            def test_x(): pass
            """,
            "tests/test_b.py": "def test_b(): pass\n",
        },
        verdicts={
            "pytest tests/test_a.py::test_x tests/test_b.py": "failed",
            "pytest tests/test_a.py tests/test_b.py": "passed",
        },
    ),
    OddProject(
        "parameters_of_a_class",
        "a class has parameters, whose values stand after the name of each of its tests",
        files={
            "tests/test_a.py": """
            import pytest
            @pytest.mark.parametrize('p',[1,2])
            class TestX:
                def test_m(self,p): assert p==1
            """
        },
        verdicts={
            "pytest tests/test_a.py -k 'test_m and 2'": "failed",
            "pytest 'tests/test_a.py::TestX[1]::test_m'": "failed",
            "pytest 'tests/test_a.py::TestX::test_m[1]'": "passed",
            "pytest tests/test_a.py::TestX::test_m": "failed",
            "pytest 'tests/test_a.py::TestX::test_m[1' ": "failed",
        },
    ),
    OddProject(
        "files_passed_over",
        "tests in files and folders that pytest passes over unless they are named",
        files={
            "build/test_x.py": "def test_x(): pass\n",
            ".hid/test_h.py": "def test_h(): pass\n",
            "test_ok.py": "def test_ok(): pass\n",
            "checks/checks.py": "def test_a(): pass\n",
            "broken/test_a.py": "import nope_nope\n",
            "broken/test_b.py": "def test_b(): pass\n",
        },
        verdicts={
            "pytest . --ignore=broken": "passed",
            "pytest build/test_x.py": "passed",
            "pytest .hid/test_h.py": "passed",
            "pytest build": "passed",
            "pytest checks": "failed",
            "pytest checks/checks.py": "passed",
            "pytest broken --continue-on-collection-errors": "failed",
        },
    ),
    OddProject(
        "conftests_that_change_the_items",
        "one conftest reverses the tests, of which one depends on the other, and one skips the first",
        files={
            "reversed/conftest.py": "def pytest_collection_modifyitems(config, items): items.reverse()\n",
            "reversed/test_a.py": """
            S=[]
            def test_1(): S.append(1)
            def test_2(): assert S
            """,
            "first/conftest.py": """
            import pytest
            def pytest_collection_modifyitems(items):
                items[0].add_marker(pytest.mark.skip('the first one'))
            """,
            "first/test_b.py": """
            def test_1(): pass
            def test_2(): pass
            """,
        },
        verdicts={
            "pytest reversed/test_a.py": "failed",
            "pytest reversed": "failed",
            "pytest reversed/test_a.py::test_1": "passed",
            "pytest first/test_b.py::test_1": "failed",
            "pytest first/test_b.py::test_2": "failed",
            "pytest first": "passed",
        },
    ),
    OddProject(
        "borrowed_submodule",
        "files use a part of a package that only another file imports",
        files={
            "conftest.py": "",
            "pack/__init__.py": "",
            "pack/deep.py": "def f(): return 1\n",
            "pack/user.py": """
            import pack
            def g(): return pack.deep.f()
            """,
            "tests/test_a.py": """
            import pack.deep
            def test_a(): assert pack.deep.f() == 1
            """,
            "tests/test_b.py": """
            import pack
            def test_b(): assert pack.deep.f() == 1
            """,
            "tests/test_c.py": """
            import pack.user
            def test_c(): assert pack.user.g() == 1
            """,
            "tests/test_d.py": """
            import sys
            def test_d(): assert 'pack.deep' in sys.modules
            """,
        },
        verdicts={
            "pytest tests/test_a.py": "passed",
            "pytest tests/test_b.py": "failed",
            "pytest tests/test_c.py": "failed",
            "pytest tests/test_d.py": "failed",
        },
    ),
    OddProject(
        "streams_at_import",
        "a conftest imports code that keeps the streams of its import",
        files={
            "pytest.ini": "[pytest]\npythonpath = .\n",
            "shop.py": "from sys import stdout\n",
            "conftest.py": "import shop\n",
            "test_a.py": """
            import sys, shop
            def test_kept(): assert shop.stdout is sys.stdout
            def test_names(): assert [sys.__stdin__.name, sys.__stdout__.name] == ['<stdin>', '<stdout>']
            def test_alone(): assert shop.stdout is sys.__stdout__
            """,
        },
        verdicts={
            "pytest test_a.py::test_kept": "passed",
            "pytest test_a.py::test_names": "passed",
            "pytest test_a.py::test_alone": "failed",
        },
    ),
)
