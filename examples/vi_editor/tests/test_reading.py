from pathlib import Path

import pytest

from vi_editor.files.reading import FileError, read_file


def test_a_file_is_read(tmp_path: Path):
    path = tmp_path / "text"
    path.write_text("one\ntwö\n", encoding="utf-8")
    assert read_file(path).lines == ["one", "twö"]


def test_a_new_file_is_empty(tmp_path: Path):
    assert read_file(tmp_path / "new").lines == [""]


def test_what_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "image"
    path.write_bytes(b"\xff\xd8")
    with pytest.raises(FileError, match="image: not a text"):
        read_file(path)


def test_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(FileError):
        read_file(tmp_path)
