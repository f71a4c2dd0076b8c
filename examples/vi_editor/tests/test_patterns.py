import pytest

from vi_editor.search.patterns import PatternError, compile_pattern


def test_small_letters_find_both_cases():
    assert compile_pattern("one").search("ONE")
    assert not compile_pattern("One").search("one")


def test_words_have_ends():
    assert compile_pattern(r"\<on\>").search("on top")
    assert not compile_pattern(r"\<on\>").search("one")


@pytest.mark.parametrize("text", ["", "(", "[a"])
def test_what_is_no_pattern_is_refused(text: str):
    with pytest.raises(PatternError):
        compile_pattern(text)
