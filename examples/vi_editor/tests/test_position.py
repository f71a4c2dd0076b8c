import pytest

from vi_editor.buffer.position import Position


def test_earlier_places_are_smaller():
    assert Position(0, 9) < Position(1, 0) < Position(1, 3)


def test_a_place_is_told_from_one():
    assert str(Position(2, 4)) == "3,5"


def test_a_move_does_not_leave_the_text_at_its_start():
    assert Position(1, 1).moved(lines=-3, columns=2) == Position(0, 3)


def test_no_place_lies_before_the_text():
    with pytest.raises(ValueError, match="before the text"):
        Position(0, -1)
