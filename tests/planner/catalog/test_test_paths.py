"""Which paths are those of tests, by their names in any language."""

from __future__ import annotations

import pytest

from planner.catalog.test_paths import is_test_module, is_test_path


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "test_a.py",
        "conftest.py",
        "pkg/a_test.go",
        "pkg/rsi_tests.py",
        "src/a.test.ts",
        "src/tests.rs",
        "a/__tests__/b.js",
        "tests\\data\\a.txt",
    ],
)
def test_names_and_folders_of_tests_are_known(path: str):
    assert is_test_path(path)


@pytest.mark.parametrize("path", ["pkg/contest.py", "latest.py", "pkg/testable.py", "src/attest/a.py", ""])
def test_other_names_are_the_products(path: str):
    assert not is_test_path(path)


def test_pytest_collects_two_kinds_of_names():
    assert is_test_module("tests/test_a.py")
    assert is_test_module("pkg/a_test.py")
    assert not is_test_module("tests/helpers.py")
    assert not is_test_module("tests/test_a.json")
