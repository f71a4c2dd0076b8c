"""--cov and --junitxml tell of the whole run, however many sessions it took."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import coverage
import pytest
from example_project import Example, Verified, todo

FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": "def price():\n    return 1\n\ndef discount():\n    return 2\n\n"
    "def unused():\n    return 3\n",
    "conftest.py": "",
    "tests/test_price.py": "from shop.prices import price\ndef test_price(): assert price() == 1\n",
    "tests/test_discount.py": "import os\nfrom shop.prices import discount\n"
    "def test_discount(): assert discount() == 2 and os.environ['SALE'] == '1'\n",
}


@pytest.fixture(scope="module", params=[(), ("-p", "xdist", "-n2")], ids=["alone", "workers"])
def covered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Example, Verified]:
    example = Example(tmp_path_factory.mktemp("covered") / "project", FILES)
    example.plan(
        todo("price", "pytest tests/test_price.py"),
        todo("discount", "SALE=1 pytest tests/test_discount.py"),
    )
    run = example.verify(
        *("-p", "pytest_cov", "--cov=shop", "--cov-report=term-missing", "--junitxml=reports/junit.xml"),
        *("project/plan.yaml", *request.param),
        cwd=example.root.parent,
    )
    return example, run


def test_the_report_is_shown(covered: tuple[Example, Verified]):
    _, run = covered

    assert run.exit_code == 0, str(run)
    assert "prices.py" in run.output, str(run)
    assert "83%" in run.output, str(run)
    assert run.output.count("TOTAL") == 1, "one report of the whole, not one a session"


def test_the_data_file_holds_what_every_session_ran(covered: tuple[Example, Verified]):
    example, run = covered
    files = [
        path for path in (example.root / ".coverage", example.root.parent / ".coverage") if path.exists()
    ]

    assert files, str(run)
    data = coverage.CoverageData(basename=str(files[0]))
    data.read()
    (measured,) = (name for name in data.measured_files() if name.endswith("prices.py"))
    assert set(data.lines(measured) or ()) == {1, 2, 4, 5, 7}


def test_one_junit_file_tells_of_every_test_once(covered: tuple[Example, Verified]):
    example, run = covered
    path = example.root.parent / "reports/junit.xml"

    assert path.is_file(), str(run)
    root = ET.parse(path).getroot()
    assert sorted(str(case.get("name")) for case in root.iter("testcase")) == [
        "test_discount",
        "test_price",
    ]
    assert root.get("tests") == "2"


def test_a_failing_test_is_told_once_in_the_junit_file(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": "def test_red(): assert 0\ndef test_it(): pass\n"})
    example.plan(todo("red", "pytest test_it.py"), todo("alone", "pytest --no-header test_it.py::test_it"))

    run = example.verify("--junit-xml", "junit.xml", "--planverify-isolate")

    root = ET.parse(tmp_path / "junit.xml").getroot()
    assert run.exit_code == 1, str(run)
    assert (root.get("tests"), root.get("failures")) == ("2", "1")


def test_a_coverage_that_is_too_low_turns_green_into_red(tmp_path: Path):
    example = Example(tmp_path, FILES)
    example.plan(todo("price", "pytest tests/test_price.py"))

    low = example.verify("-p", "pytest_cov", "--cov=shop", "--cov-fail-under=99")
    enough = example.verify("-p", "pytest_cov", "--cov=shop", "--cov-fail-under=10")

    unmeasured = example.verify(
        "-p", "pytest_cov", "--cov=shop", "--cov-fail-under=10", "--planverify-isolate"
    )

    assert low.exit_code == 1, str(low)
    assert low.verdicts == unmeasured.verdicts == {"price": "passed"}, str(unmeasured)
    assert unmeasured.exit_code == 1
    assert "not accepted: --cov-fail-under" in unmeasured.output
    assert "99" in low.output
    assert enough.exit_code == 0, str(enough)
