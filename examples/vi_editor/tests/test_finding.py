import re

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.search.finding import find_all, find_backward, find_forward

BUFFER = Buffer(["one two one", "two", "one"])
ONE = re.compile("one")


def test_all_matches_are_found_in_order():
    assert find_all(BUFFER, ONE) == [Position(0, 0), Position(0, 8), Position(2, 0)]


def test_a_search_goes_on_behind_the_cursor():
    assert find_forward(BUFFER, Position(0, 0), ONE) == Position(0, 8)
    assert find_backward(BUFFER, Position(2, 0), ONE) == Position(0, 8)


def test_a_search_goes_round_the_ends():
    assert find_forward(BUFFER, Position(2, 0), ONE) == Position(0, 0)
    assert find_backward(BUFFER, Position(0, 0), ONE) == Position(2, 0)


def test_nothing_is_found():
    assert find_forward(BUFFER, Position(0, 0), re.compile("six")) is None
