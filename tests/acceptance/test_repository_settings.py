"""Options set by the repository or the environment have the same effect in a plan as in plain pytest."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo

FILES = {
    "test_it.py": """\
        import pytest
        def test_fast(): pass
        @pytest.mark.slow
        def test_slow(): pass
    """,
    "shop.py": "def price(): return 1\n",
}


def an_example(folder: Path, addopts: str, more: str = "") -> Example:
    example = Example(
        folder, {**FILES, "pytest.ini": f"[pytest]\nmarkers = slow\naddopts = {addopts}\n{more}"}
    )
    example.plan(todo("all", "pytest test_it.py"), todo("slow", "pytest test_it.py::test_slow"))
    return example


@pytest.mark.parametrize(
    "addopts",
    [
        "-q --tb=short -x --durations=3 --strict-markers --strict-config",
        "-s -p pytest_cov --cov=shop --junitxml=junit.xml -p pytest_jsonreport.plugin --json-report",
        "-v -W error --import-mode=importlib -p no:doctest -p no:cacheprovider",
        "-p pytest_timeout --timeout=20 -p xdist -n2",
    ],
)
def test_options_of_the_ini_file_change_no_verdict(addopts: str, tmp_path: Path):
    run = an_example(tmp_path, addopts).verify(measured=False)

    assert run.exit_code == 0, str(run)
    assert run.states == {"all": "done", "slow": "done"}
    assert run.tests("all") == {"test_it.py::test_fast": "passed", "test_it.py::test_slow": "passed"}


@pytest.mark.parametrize("addopts", ['-m "not slow"', "-k fast"])
def test_a_selection_in_the_ini_file_works_as_in_plain_pytest(addopts: str, tmp_path: Path):
    run = an_example(tmp_path, addopts).verify(measured=False)

    assert run.verdicts == {"all": "passed", "slow": "failed"}, str(run)
    assert run.tests("all") == {"test_it.py::test_fast": "passed"}


def test_a_marker_expression_of_a_command_overrides_the_ini_file(tmp_path: Path):
    example = an_example(tmp_path, '-m "not slow"')
    example.plan(todo("all", 'pytest test_it.py -m "slow or not slow"'))

    run = example.verify()

    assert run.tests("all") == {"test_it.py::test_fast": "passed", "test_it.py::test_slow": "passed"}, str(
        run
    )


def test_an_unknown_marker_fails_where_markers_are_strict(tmp_path: Path):
    example = an_example(tmp_path, "--strict-markers")
    example.write({"pytest.ini": "[pytest]\naddopts = --strict-markers\n"})

    run = example.verify()

    assert run.verdicts == {"all": "failed", "slow": "failed"}, str(run)
    assert "'slow' not found in `markers`" in run.output


def test_options_of_the_environment_reach_the_sessions(tmp_path: Path):
    example = an_example(tmp_path, "")
    example.write(
        {"test_it.py": "def test_it(pytestconfig): assert pytestconfig.option.tbstyle == 'line'\n"}
    )
    example.plan(todo("all", "pytest test_it.py"))

    given = example.verify(env={"PYTEST_ADDOPTS": "--tb=line"})
    without = example.verify()

    assert (given.exit_code, without.exit_code) == (0, 1), f"{given}\n{without}"


def test_a_selection_in_the_environment_works_as_in_plain_pytest(tmp_path: Path):
    run = an_example(tmp_path, "").verify(env={"PYTEST_ADDOPTS": "-k fast --color=no"})

    assert run.verdicts == {"all": "passed", "slow": "failed"}, str(run)


def test_a_conftest_with_options_and_plugins_works(tmp_path: Path):
    example = an_example(tmp_path, "--flavour=sweet")
    example.write(
        {
            "conftest.py": "pytest_plugins = ['own_plugin']\n"
            "def pytest_addoption(parser): parser.addoption('--flavour')\n",
            "own_plugin.py": "import pytest\n@pytest.fixture\ndef flavour(pytestconfig):\n"
            "    return pytestconfig.getoption('flavour')\n",
            "test_it.py": "def test_it(flavour): assert flavour == 'sweet'\n",
        }
    )
    example.plan(todo("all", "pytest test_it.py"), todo("sour", "pytest test_it.py --flavour=sour"))

    run = example.verify(autoload=True)

    assert run.verdicts == {"all": "passed", "sour": "failed"}, str(run)


def test_importing_an_installed_copy_of_the_project_is_reported(tmp_path: Path):
    files = {
        "src/shop/__init__.py": "PRICE = 2\n",
        "test_shop.py": "from shop import PRICE\ndef test_it(): assert PRICE == 1\n",
        "test_other.py": "def test_it(): pass\n",
    }
    example = Example(tmp_path / "project", files)
    example.plan(todo("shop", "pytest test_shop.py"), todo("other", "pytest test_other.py"))
    copy = tmp_path / "site-packages/shop/__init__.py"
    copy.parent.mkdir(parents=True)
    copy.write_text("PRICE = 1\n")
    env = {"PYTHONPATH": str(tmp_path / "site-packages")}

    stale = example.verify(env=env)
    assert stale.exit_code == 0, str(stale)
    assert stale.document is not None
    (note,) = [each for each in stale.document["run"]["notes"] if "not tested" in each]
    assert "site-packages/shop/__init__.py, which differs from src/shop/__init__.py" in note

    example.write({"src/shop/__init__.py": "PRICE = 1\n"})
    assert "not tested" not in str(example.verify(env=env))
