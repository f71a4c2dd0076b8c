from pathlib import Path

import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.display.status import describe_place, render_status
from vi_editor.files.document import Document


@pytest.mark.parametrize(
    ("line", "lines", "place"), [(0, 1, "All"), (0, 5, "Top"), (4, 5, "Bot"), (1, 5, "25%"), (3, 5, "75%")]
)
def test_the_place_in_the_text(line: int, lines: int, place: str):
    assert describe_place(Position(line, 0), lines) == place


def test_the_file_and_the_place():
    document = Document(Buffer(["one"]), Path("text"), saved="")
    row = render_status(document, Position(0, 1), mode="insert", width=40)
    assert row == "-- INSERT -- text [+]            1,2 All"


def test_a_message_stands_for_the_file_and_may_be_cut():
    row = render_status(Document(), Position(0, 0), message="a message that is long", width=20)
    assert row == "a message t… 1,1 All"
