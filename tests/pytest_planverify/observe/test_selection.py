"""Names that look like one that does not exist, for the message about it."""

from __future__ import annotations

from pathlib import Path

from pytest_planverify.observe.selection import alike_names, alike_paths


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_tests_that_look_alike_come_from_the_text_of_the_file(tmp_path: Path):
    text = "def test_total(): pass\nclass TestCart:\n    def test_add(self): pass\ndef helper(): pass\n"
    write(tmp_path, {"test_a.py": text, "test_broken.py": "def test_total(:\n"})

    assert alike_names("test_a.py::test_totla", tmp_path) == ["test_total"]
    assert alike_names("test_a.py::TestCart::test_ad", tmp_path) == ["TestCart::test_add"]
    assert alike_names("test_a.py::helper", tmp_path) == []
    assert alike_names("test_broken.py::test_totla", tmp_path) == []
    assert alike_names("test_gone.py::test_totla", tmp_path) == []


def test_names_that_look_alike_come_from_the_nearest_folder_that_exists(tmp_path: Path):
    write(tmp_path, {"tests/test_one.py": "", "tests/test_two.py": ""})

    assert alike_paths(tmp_path / "tests/test_onee.py") == ["test_one.py"]
    assert alike_paths(tmp_path / "tests/sub/deep/test_one.py") == ["test_one.py"]
    assert alike_paths(tmp_path / "tests/zzz.txt") == []


def test_what_all_tests_have_in_common_makes_no_two_of_them_alike(tmp_path: Path):
    write(tmp_path, {"tests/test_terminal.py": "", "tests/gift_wrap_test.py": ""})

    assert alike_paths(tmp_path / "tests/test_gift_wrap.py") == ["gift_wrap_test.py"]
    assert alike_paths(tmp_path / "tests/test_animals.py") == []
