import pytest

from vi_editor.buffer.text import Buffer
from vi_editor.search.patterns import PatternError
from vi_editor.search.substitution import Substitution, parse_substitution, substitute


def test_the_parts_are_read_between_any_marks():
    assert parse_substitution("/one/two/g") == Substitution("one", "two", everywhere=True)
    assert parse_substitution("#a/b#c") == Substitution("a/b", "c")
    assert parse_substitution(r"/a\/b/c/") == Substitution("a/b", "c")


@pytest.mark.parametrize("text", ["", "one", "/a/b/z"])
def test_what_is_no_substitution_is_refused(text: str):
    with pytest.raises(PatternError):
        parse_substitution(text)


def test_the_first_match_of_each_line_is_replaced():
    buffer = Buffer(["one one", "two", "one"])
    assert substitute(buffer, 0, 2, Substitution("one", "1")) == 2
    assert buffer.lines == ["1 one", "two", "1"]


def test_every_match_is_replaced():
    buffer = Buffer(["one one", "one"])
    assert substitute(buffer, 0, 0, Substitution("one", "<&>", everywhere=True)) == 2
    assert buffer.lines == ["<one> <one>", "one"]


def test_what_is_not_found_is_told():
    with pytest.raises(PatternError, match="six not found"):
        substitute(Buffer(["one"]), 0, 0, Substitution("six", "6"))
