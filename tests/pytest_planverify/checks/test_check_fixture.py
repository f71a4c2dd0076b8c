"""The data file that a criterion names must be a file below the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_planverify.checks import artifact as module
from pytest_planverify.checks.artifact import read_fixture


@pytest.mark.parametrize(
    ("path", "problem", "said"),
    [
        ("rsi.jsn", "missing", "does not exist; did you mean rsi.json?"),
        ("gone/x", "missing", "does not exist"),
        ("folder", "not_a_file", "is a folder, not a file"),
        ("../x", "outside_root", "is outside of"),
        ("out", "outside_root", "is outside of"),
        ("a\0b", "unreadable", "cannot be read"),
    ],
)
def test_a_fixture_that_cannot_be_used_says_why(tmp_path: Path, path: str, problem: str, said: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "rsi.json").write_text("[1]")
    (root / "out").symlink_to(tmp_path)
    use, evidence = read_fixture(path, root, check_id="tests[0]")
    assert use.sha256 is None
    assert evidence is not None
    assert evidence.artifact is not None
    assert evidence.artifact.problem == problem
    assert said in evidence.headline


def test_a_fixture_that_may_not_be_read_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(module, "file_sha256", refuse)
    (tmp_path / "x").write_text("1")
    _, evidence = read_fixture("x", tmp_path)
    assert evidence is not None
    assert evidence.headline == "the fixture x cannot be read: Permission denied"
