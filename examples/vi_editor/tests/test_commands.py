from pathlib import Path

import pytest

from vi_editor.buffer.position import Position
from vi_editor.command_line.commands import Session, execute
from vi_editor.command_line.parsing import CommandError
from vi_editor.files.document import Document


@pytest.fixture
def session(tmp_path: Path) -> Session:
    path = tmp_path / "text"
    path.write_text("one\ntwo\nthree\n")
    return Session(Document.open(path))


def test_a_number_goes_to_a_line(session: Session):
    execute(session, "2")
    assert session.cursor == Position(1, 0)


def test_lines_are_deleted_and_replaced(session: Session):
    assert execute(session, "1d") == "1 fewer line"
    assert execute(session, "%s/t/T/") == "2 substitutions"
    assert session.document.buffer.lines == ["Two", "Three"]


def test_nothing_is_lost_by_quitting(session: Session):
    execute(session, "1d")
    with pytest.raises(CommandError, match="not saved"):
        execute(session, "q")
    assert not session.finished
    execute(session, "q!")
    assert session.finished


def test_x_writes_and_quits(session: Session):
    execute(session, "1d")
    execute(session, "x")
    assert session.finished
    assert session.document.path is not None
    assert session.document.path.read_text() == "two\nthree\n"


def test_another_file_is_opened(session: Session, tmp_path: Path):
    execute(session, f"e {tmp_path / 'new'}")
    assert session.document.buffer.lines == [""]


def test_options_are_set_and_unset(session: Session):
    execute(session, "set number")
    assert session.options["number"]
    execute(session, "set nonumber")
    assert not session.options["number"]
    with pytest.raises(CommandError, match="no option wrap"):
        execute(session, "set wrap")


def test_unknown_commands_are_told(session: Session):
    with pytest.raises(CommandError, match="not a command: frob"):
        execute(session, "frob")
