from pathlib import Path

import pytest

from vi_editor import Editor


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    path = tmp_path / "text"
    path.write_text("one two\n  three\n")
    return Editor.open(path, height=4, width=30)


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        ("x", ["ne two", "  three"]),
        ("dwp", ["tone wo", "  three"]),
        ("yyp", ["one two", "one two", "  three"]),
        ("2J", ["one two three"]),
        ("cwsix \x1b", ["six two", "  three"]),
        ("jIand \x1b", ["one two", "  and three"]),
        ("obetween\x1b", ["one two", "between", "  three"]),
        ("A!\x1bu", ["one two", "  three"]),
        ("ddu\x12", ["  three"]),
        ("wrTl3~", ["one TWO", "  three"]),
        ("/thr\nx", ["one two", "  hree"]),
        (":%s/o/0/g\n", ["0ne tw0", "  three"]),
        ("dgg", ["  three"]),
    ],
)
def test_keys_change_the_text(editor: Editor, keys: str, lines: list[str]):
    editor.type(keys)
    assert editor.buffer.lines == lines, editor.message


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("u", "already at the oldest change"),
        (":0d\n", "there is no line 0"),
        ("Z", "not a command: Z"),
        ("/six\n", "six not found"),
        ("p", 'nothing in register "'),
    ],
)
def test_mistakes_are_told_and_change_nothing(editor: Editor, keys: str, message: str):
    before = editor.buffer.text
    editor.type(keys)
    assert (editor.message, editor.buffer.text) == (message, before)


def test_the_screen_shows_text_and_status(editor: Editor):
    editor.type("j:set number\n")
    assert editor.screen() == ["1 one two", "2   three", "~", "text                   2,1 Bot"]
