"""Options set by the repository or the environment have the same effect in a plan as in plain pytest."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo

FILES = {
    "test_it.py": """\
        import pytest
        def test_fast(): pass
        def test_other(): pass
        @pytest.mark.slow
        def test_slow(): pass
    """,
    "shop.py": "def price(): return 1\n",
}
ALL = {f"test_it.py::test_{name}": "passed" for name in ("fast", "other", "slow")}
UNCONFIRMED = "--planverify-confirm=0"


def an_example(folder: Path, addopts: str, **files: str) -> Example:
    example = Example(folder, FILES | {f"{name}.py": text for name, text in files.items()})
    example.write({"pytest.ini": f"[pytest]\nmarkers = slow\naddopts = {addopts}\n"})
    example.plan(todo("all", "pytest test_it.py"), todo("slow", "pytest test_it.py::test_slow"))
    return example


@pytest.mark.parametrize(
    "addopts",
    [
        "-q --tb=short -x --durations=3 --strict-markers --strict-config -s -p pytest_cov --cov=shop "
        "--junitxml=junit.xml -p pytest_jsonreport.plugin --json-report",
        "-v -W error --import-mode=importlib -p no:doctest -p no:cacheprovider",
        "-p pytest_timeout --timeout=20 -p xdist -n2",
    ],
)
def test_options_of_the_ini_file_change_no_verdict(addopts: str, tmp_path: Path):
    run = an_example(tmp_path, addopts).verify()

    assert run.exit_code == 0, str(run)
    assert run.states == {"all": "done", "slow": "done"}
    assert run.tests("all") == ALL


def test_options_and_selections_of_the_environment_reach_the_sessions(tmp_path: Path):
    style = "def test_style(pytestconfig): assert pytestconfig.option.tbstyle == 'line'\n"
    example = an_example(tmp_path, "", test_style=style)
    example.plan(
        todo("all", "pytest test_it.py test_style.py"),
        todo("deselected", "pytest test_it.py::test_slow"),
        todo("overridden", "pytest test_style.py --tb=short"),
    )

    run = example.verify(UNCONFIRMED, env={"PYTEST_ADDOPTS": "--tb=line -k 'fast or style' --color=no"})

    assert run.verdicts == {"all": "passed", "deselected": "failed", "overridden": "failed"}, str(run)
    assert set(run.tests("all")) == {"test_it.py::test_fast", "test_style.py::test_style"}


def test_tests_that_the_last_of_all_hooks_deselects_are_no_part_of_the_command(tmp_path: Path):
    conftest = (
        "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n    yield\n    del items[1:]\n"
    )
    example = an_example(tmp_path, "", conftest=conftest)
    example.plan(todo("first", "pytest test_it.py"), todo("none", "pytest test_it.py --lf --lfnf none"))

    run = example.verify(UNCONFIRMED)

    assert run.verdicts == {"first": "passed", "none": "failed"}, str(run)
    assert set(run.tests("first")) == {"test_it.py::test_fast"}


def test_importing_an_installed_copy_of_the_project_is_reported_if_it_differs(tmp_path: Path):
    files = {
        "project/src/shop/__init__.py": "PRICE = 2\n",
        "project/src/cafe/__init__.py": "PRICE = 1\n",
        "site-packages/shop/__init__.py": "PRICE = 1\n",
        "site-packages/cafe/__init__.py": "PRICE = 1\n",
        "project/test_it.py": "import cafe, shop\ndef test_it(): assert cafe.PRICE == shop.PRICE\n",
    }
    Example(tmp_path, files)
    example = Example(tmp_path / "project")
    example.plan(todo("shop", "pytest test_it.py"))

    run = example.verify(env={"PYTHONPATH": str(tmp_path / "site-packages")})

    assert run.exit_code == 0, str(run)
    assert run.document is not None
    (note,) = [each for each in run.document["run"]["notes"] if "not tested" in each]
    assert "site-packages/shop/__init__.py, which differs from src/shop/__init__.py" in note
    assert "cafe" not in note
    assert run.output.count("not tested") == 1
