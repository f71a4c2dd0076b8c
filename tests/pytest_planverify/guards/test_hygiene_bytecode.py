"""What is run without standing in any source: caches of bytecode, packages that git ignores."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pytest_planverify.guards.hygiene.compare import ignored_packages, remove_young_caches


@pytest.mark.parametrize(("is_older", "left"), [(True, ["notes.txt"]), (False, None)])
def test_caches_that_are_younger_than_the_baseline_are_not_run(
    tmp_path: Path, is_older: bool, left: list[str] | None
) -> None:
    folder = tmp_path / "pkg" / "__pycache__"
    folder.mkdir(parents=True)
    names = ["a.cpython-311-pytest-9.0.0.pyc", "a.cpython-311.pyc", "notes.txt"]
    for name in names:
        (folder / name).touch()
    remove_young_caches(tmp_path, ["pkg/a.py", "none/b.py", "c.txt"], 0.0 if is_older else time.time() + 60)
    assert sorted(path.name for path in folder.iterdir()) == (names if left is None else left)


def test_a_package_that_git_ignores_hides_no_module(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "words").mkdir(parents=True)
    (tmp_path / "pkg" / "words" / "__init__.py").touch()
    known = ["pkg/__init__.py", "pkg/words.py", "pkg/other.py", "../up.py", "a.txt"]
    assert [each.path for each in ignored_packages(tmp_path, known)] == ["pkg/words/__init__.py"]
    assert list(ignored_packages(tmp_path, [*known, "pkg/words/__init__.py"])) == []
