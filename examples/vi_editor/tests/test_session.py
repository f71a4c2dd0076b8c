"""A session at the keyboard, from the first key to the file that it leaves."""

from pathlib import Path

from vi_editor import Editor


def test_a_text_is_written_mended_and_saved(tmp_path: Path):
    path = tmp_path / "poem"
    editor = Editor.open(path, height=5, width=40)
    editor.type("iThe quick fox\njumps over\nthe lazy cat\x1b")
    editor.type("/cat\ncwdog\x1b")
    editor.type("gg2wibrown \x1b")
    editor.type("jyyp:3d\nu:3d\n")
    assert editor.screen() == [
        "The quick brown fox",
        "jumps over",
        "the lazy dog",
        "~",
        "1 fewer line                     3,1 Bot",
    ]
    editor.type(":w\nGAs\x1bu:q\n")
    assert editor.session.finished
    assert path.read_text() == "The quick brown fox\njumps over\nthe lazy dog\n"
