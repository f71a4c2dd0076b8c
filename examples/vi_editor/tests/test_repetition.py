import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.search.patterns import PatternError
from vi_editor.search.repetition import Search

BUFFER = Buffer(["one", "two", "one", "one"])


def test_a_search_is_repeated_in_its_direction():
    search = Search()
    assert search.start(BUFFER, Position(0, 0), "one") == Position(2, 0)
    assert search.repeat(BUFFER, Position(2, 0)) == Position(3, 0)
    assert search.repeat(BUFFER, Position(2, 0), reverse=True) == Position(0, 0)


def test_a_search_backwards_is_repeated_backwards():
    search = Search()
    assert search.start(BUFFER, Position(2, 0), "one", backward=True) == Position(0, 0)
    assert search.repeat(BUFFER, Position(3, 0)) == Position(2, 0)
    assert search.repeat(BUFFER, Position(2, 0), reverse=True) == Position(3, 0)


def test_an_empty_search_is_the_last_one():
    search = Search("two")
    assert search.start(BUFFER, Position(0, 0), "") == Position(1, 0)


def test_what_is_not_found_is_told():
    with pytest.raises(PatternError, match="six not found"):
        Search().start(BUFFER, Position(0, 0), "six")
