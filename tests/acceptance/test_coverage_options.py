"""--cov tells of the whole run, however many workers it took."""

from __future__ import annotations

from pathlib import Path

import coverage
import pytest
from example_project import Example, Verified, todo
from real_planner import planner

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
        *("-p", "pytest_cov", "--cov=shop", "--cov-report=term-missing"),
        *("project/plan.yaml", *request.param),
        cwd=example.root.parent,
    )
    return example, run


def test_the_report_is_shown(covered: tuple[Example, Verified]):
    _, run = covered

    assert run.exit_code == 0, str(run)
    assert "prices.py" in run.output, str(run)
    assert "83%" in run.output, str(run)
    assert run.output.count("TOTAL") == 1, "one report of the whole, not one a worker"


def test_the_data_file_holds_what_every_worker_ran(covered: tuple[Example, Verified]):
    example, run = covered
    files = [
        path for path in (example.root / ".coverage", example.root.parent / ".coverage") if path.exists()
    ]

    assert files, str(run)
    data = coverage.CoverageData(basename=str(files[0]))
    data.read()
    (measured,) = (name for name in data.measured_files() if name.endswith("prices.py"))
    assert set(data.lines(measured) or ()) == {1, 2, 4, 5, 7}


def test_a_coverage_that_is_too_low_turns_green_into_red(tmp_path: Path):
    example = Example(tmp_path, FILES)
    example.plan(todo("price", "pytest tests/test_price.py"))

    low = example.verify("-p", "pytest_cov", "--cov=shop", "--cov-fail-under=99")
    decided = planner("next", "plan.yaml", cwd=example.root)
    enough = example.verify("-p", "pytest_cov", "--cov=shop", "--cov-fail-under=10")

    cold = example.verify("-p", "pytest_cov", "--cov=shop", "--cov-fail-under=10", "--planverify-isolate")

    assert low.exit_code == 1, str(low)
    assert low.verdicts == enough.verdicts == cold.verdicts == {"price": "passed"}
    assert "99" in low.output
    assert (decided.status, "completed" in decided.out) == (1, False), str(decided)
    assert "is under --cov-fail-under 99" in decided.out
    assert (enough.exit_code, cold.exit_code) == (0, 0), f"{enough}\n{cold}"


@pytest.mark.parametrize("confirmed", [False, True])
def test_measuring_that_is_switched_off_warns_of_nothing(tmp_path: Path, confirmed: bool):
    """A project may make errors of warnings, and pytest-cov warns of options that follow ``--no-cov``."""
    ini = "[pytest]\naddopts = --cov=shop --cov-report=html\nfilterwarnings = error\n"
    example = Example(tmp_path, {**FILES, "pytest.ini": ini})
    red = "tests/test_price.py tests/test_discount.py"  # SALE is not set
    example.plan(todo("price", f"pytest {red if confirmed else 'tests/test_price.py'}"))

    run = example.verify("-p", "pytest_cov", "--no-cov")

    assert run.exit_code == int(confirmed), str(run)
    assert "CovDisabledWarning" not in str(run)
    assert "htmlcov" not in {path.name for path in tmp_path.iterdir()}
    if confirmed:
        journal = (example.runs[-1] / "journal.jsonl").read_text(encoding="utf-8")
        assert "internal_error" not in journal
