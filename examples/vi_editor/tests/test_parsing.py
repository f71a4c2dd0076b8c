import pytest

from vi_editor.command_line.parsing import Command, CommandError, parse_command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("w", Command("w")),
        ("q!", Command("q", force=True)),
        ("e other.txt", Command("e", "other.txt")),
        ("3", Command("", lines=(2, 2))),
        ("2,$d", Command("d", lines=(1, 9))),
        (".,+2s/a/b/g", Command("s", "/a/b/g", lines=(4, 6))),
        ("%s/a/b/", Command("s", "/a/b/", lines=(0, 9))),
        ("$-1", Command("", lines=(8, 8))),
    ],
)
def test_a_command_line_is_read(text: str, command: Command):
    assert parse_command(text, current=4, last=9) == command


@pytest.mark.parametrize("text", ["99d", "5,2d", "0d", "!", "#x"])
def test_what_is_no_command_is_refused(text: str):
    with pytest.raises(CommandError):
        parse_command(text, current=4, last=9)
