from pathlib import Path

import pytest

from vi_editor.buffer.text import Buffer
from vi_editor.files.reading import FileError
from vi_editor.files.writing import write_file


def test_a_text_is_written_and_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "text"
    assert write_file(path, Buffer(["one", "twö"])) == '"text" 2L, 9B written'
    assert path.read_bytes() == "one\ntwö\n".encode()
    assert [each.name for each in tmp_path.iterdir()] == ["text"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path):
    with pytest.raises(FileError, match="text: No such file"):
        write_file(tmp_path / "missing" / "text", Buffer(["one"]))
