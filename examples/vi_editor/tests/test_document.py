from pathlib import Path

import pytest

from vi_editor.files.document import Document
from vi_editor.files.reading import FileError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("one\n")
    return path


def test_a_text_is_modified_until_it_is_saved(path: Path):
    document = Document.open(path)
    assert not document.modified
    document.buffer.lines.append("two")
    assert document.modified
    document.save()
    assert not document.modified
    assert path.read_text() == "one\ntwo\n"


def test_a_copy_saves_nothing_of_the_text_itself(path: Path, tmp_path: Path):
    document = Document.open(path)
    document.buffer.lines[0] = "two"
    document.save(tmp_path / "copy")
    assert document.modified
    assert path.read_text() == "one\n"


def test_a_text_without_a_name_needs_one(tmp_path: Path):
    document = Document()
    with pytest.raises(FileError, match="no file name"):
        document.save()
    document.save(tmp_path / "named")
    assert document.path == tmp_path / "named"
