"""Who repairs: the tester where no product is touched, the coder where it is yet to be written."""

from __future__ import annotations

from typing import Any

import pytest
from example_project import Example, Verified, todo

SUM = "def test_sum():\n    assert 1 + 1 == 3\n"


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    uses = "from {0} import go\ndef test_go():\n    go()\n"
    modules = ("pricing", "billing", "elsewhere")
    tests = {f"tests/test_{name}.py": uses.format(name) for name in modules}
    example = Example(tmp_path_factory.mktemp("repairs"), {"tests/test_sum.py": SUM, **tests})
    example.plan(
        todo("sum", "pytest tests/test_sum.py"),
        todo("artifact", "pytest tests/test_pricing.py", expected_artifacts=["pricing.py"]),
        todo(
            "allowed", "pytest tests/test_billing.py", allowed_files=["billing.py", "tests/test_billing.py"]
        ),
        todo("nobody", "pytest tests/test_elsewhere.py"),
    )
    return example.verify()


def failure(verified: Verified, todo_id: str) -> dict[str, Any]:
    return next(
        each for each in verified.outcomes[todo_id]["failures"] if each["check_id"].startswith("tests")
    )


def test_a_test_that_touches_no_product_goes_to_the_tester(verified: Verified) -> None:
    found = failure(verified, "sum")
    assert (found["category"], found["owner"], found["target_agent"]) == (
        "TEST_REGRESSION",
        "test",
        "tester",
    )
    assert found["location"]["path"] == "tests/test_sum.py"


@pytest.mark.parametrize(("todo_id", "file"), [("artifact", "pricing.py"), ("allowed", "billing.py")])
def test_a_module_that_a_todo_is_to_write_is_missing_product(
    verified: Verified, todo_id: str, file: str
) -> None:
    found = failure(verified, todo_id)
    assert (found["category"], found["owner"], found["target_agent"]) == (
        "ARTIFACT_MISSING",
        "product",
        "coder",
    )
    assert f"write {file}" in found["suggestion"]


def test_a_module_that_nobody_is_to_write_is_missing_from_the_installation(verified: Verified) -> None:
    found = failure(verified, "nobody")
    assert (found["category"], found["owner"]) == ("IMPORT_ERROR", "environment")
