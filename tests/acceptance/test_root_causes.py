"""Failures with one cause are grouped, and shown with the change that caused them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from baseline_samples import commit_all
from example_project import Example, Verified, todo

INI = "[pytest]\npythonpath = .\naddopts = --planverify-confirm=0\n"
FILES = {
    "shop.py": "def rate():\n    return 7\n\ndef total(:\n    return 1\n",
    "prices.py": "def price():\n    return 3\n",
    "tests/conftest.py": "import pytest\n\n"
    "@pytest.fixture\ndef store():\n    raise RuntimeError('no store')\n",
    "tests/test_a.py": "import shop\n\ndef test_rate():\n    assert shop.rate() == 7\n",
    "tests/test_b.py": "".join(f"def test_{n}(store):\n    assert store\n\n" for n in range(5)),
    "tests/test_c.py": "import prices\n\ndef test_it(store):\n    assert store\n\n"
    "def test_price():\n    assert prices.price() == 4\n",
    "pytest.ini": INI,
}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    made = Example(tmp_path_factory.mktemp("causes"), FILES)
    made.plan(
        todo("a", "pytest tests/test_a.py", expected_artifacts=["out.json"]),
        todo("b", "pytest tests/test_b.py"),
        todo("c", "pytest tests/test_c.py"),
        todo("d", "pytest tests/test_a.py tests/test_b.py::test_0"),
    )
    return made


@pytest.fixture(scope="module")
def verified(example: Example) -> Verified:
    return example.verify()


def test_failures_of_one_fault_are_one_cause(verified: Verified) -> None:
    assert verified.document is not None, str(verified)
    syntax, store, price, artifact = verified.document["causes"]

    assert (syntax["category"], syntax["files"]) == ("COMPILATION_ERROR", 1)
    assert [each["todo_id"] for each in syntax["todos"]] == ["a", "d"]
    assert (store["tests"], [each["todo_id"] for each in store["todos"]]) == (6, ["b", "c"])
    assert price["top_tests"] == ["tests/test_c.py::test_price"]
    assert artifact["category"] == "ARTIFACT_MISSING"
    assert [each["rank"] for each in verified.document["causes"]] == [1, 2, 3, 4]


def test_the_output_ranks_the_causes_to_fix(verified: Verified) -> None:
    assert "fix first 1  COMPILATION_ERROR  shop.py:4  1 test file in 2 todos\n" in verified.output
    assert "6 tests in 2 todos\n" in verified.output


def test_the_failure_report_of_a_todo_lists_its_causes(example: Example, verified: Verified) -> None:
    path = example.root / "diagnostics" / "c_failure_report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [each["rank"] for each in report["causes"]] == [2, 3]
    assert {each["phase"] for each in report["failures"]} == {"setup", "call"}


def test_failures_of_one_cause_share_the_location_of_the_product_code(
    tmp_path: Path,
) -> None:
    example = Example(
        tmp_path,
        {
            "shop.py": "def total(prices):\n    return sum(prices) + 1\n\n\nif __name__ == '__main__':\n"
            "    print(total([1, 2]))\n",
            "tests/common.py": "def same(found, wanted):\n    if found != wanted:\n"
            "        raise AssertionError('they differ')\n",
            "tests/test_program.py": "import subprocess, sys\nfrom common import same\n\n\n"
            "def test_program():\n    words = [sys.executable, 'shop.py']\n"
            "    same(int(subprocess.check_output(words)), 3)\n",
            "tests/test_total.py": "import shop\nfrom common import same\n\n\n"
            "def test_total():\n    same(shop.total([1, 2]), 3)\n",
            "pytest.ini": "[pytest]\npythonpath = .\n",  # the failures are confirmed, which locates them
        },
    )
    example.plan(
        todo("program", "pytest tests/test_program.py"), todo("total", "pytest tests/test_total.py")
    )

    verified = example.verify()

    assert verified.document is not None, str(verified)
    (cause,) = verified.document["causes"]
    places = [verified.outcomes[name]["failure_evidence"]["location"] for name in ("program", "total")]
    assert [place["function"] for place in (cause["location"], *places)] == ["total"] * 3, str(verified)


def test_a_changed_data_line_read_by_a_failing_test_is_its_location(tmp_path: Path) -> None:
    example = Example(
        tmp_path,
        {
            "rates.py": "import json\nfrom pathlib import Path\n\n\ndef rate(name):\n"
            "    return json.loads(Path(__file__).with_name('rates.json').read_text())[name]\n",
            "rates.json": '{\n  "DE": 19,\n  "LU": 17\n}\n',
            "notes.json": "{}\n",
            "tests/test_rates.py": "from rates import rate\n\n"
            "def test_rate():\n    assert rate('LU') == 17\n",
            "pytest.ini": INI,
        },
    )
    example.plan(todo("rates", "pytest tests/test_rates.py"))
    commit_all(tmp_path)
    example.write({"rates.json": '{\n  "DE": 19,\n  "LU": 71\n}\n', "notes.json": "[]\n"})

    verified = example.verify()

    failure = verified.outcomes["rates"]["failure_evidence"]
    assert (failure["location"]["path"], failure["location"]["line"]) == ("rates.json", 3), str(verified)
    assert "changed rates.json:3 (+1 -1)\n" in verified.output
    assert "notes.json" not in verified.output
