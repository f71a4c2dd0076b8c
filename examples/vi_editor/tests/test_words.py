from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.navigation.words import next_word, previous_word, word_end, word_ends, word_starts

BUFFER = Buffer(["one two_2 += 3", "", "  end"])


def test_marks_are_words_of_their_own():
    assert word_starts("a+=b c") == [0, 1, 3, 5]
    assert word_ends("a+=b c") == [0, 2, 3, 5]


def test_an_underscore_belongs_to_a_word():
    assert word_starts("two_2 x") == [0, 6]


def test_w_goes_from_word_to_word():
    places, cursor = [], Position(0, 0)
    for _ in range(6):
        cursor = next_word(BUFFER, cursor)
        places.append(str(cursor))
    assert places == ["1,5", "1,11", "1,14", "2,1", "3,3", "3,5"]


def test_b_goes_back():
    assert previous_word(BUFFER, Position(0, 6)) == Position(0, 4)
    assert previous_word(BUFFER, Position(1, 0)) == Position(0, 13)
    assert previous_word(BUFFER, Position(0, 0)) == Position(0, 0)


def test_e_goes_to_ends():
    assert word_end(BUFFER, Position(0, 0)) == Position(0, 2)
    assert word_end(BUFFER, Position(0, 13)) == Position(2, 4)
