import pytest

from vi_editor.editing.registers import Piece, Registers


def test_a_piece_is_kept_under_its_name_and_without():
    registers = Registers()
    registers.store(Piece("one"), "a")
    registers.store(Piece("two"))
    assert registers.fetch("a") == Piece("one")
    assert registers.fetch() == Piece("two")


def test_a_capital_letter_appends():
    registers = Registers()
    registers.store(Piece("one", linewise=True), "a")
    registers.store(Piece("two"), "A")
    assert registers.fetch("a") == Piece("one\ntwo", linewise=True)


def test_registers_of_two_editors_are_apart():
    Registers().store(Piece("one"))
    with pytest.raises(KeyError, match="nothing in register"):
        Registers().fetch()


def test_there_is_no_register_of_that_name():
    with pytest.raises(ValueError, match="no register 1"):
        Registers().store(Piece("one"), "1")
