from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.undo.snapshots import restore, take_snapshot


def test_later_changes_do_not_touch_a_snapshot():
    buffer = Buffer(["one"])
    snapshot = take_snapshot(buffer, Position(0, 2))
    buffer.lines[0] = "two"
    buffer.lines.append("three")
    assert restore(buffer, snapshot) == Position(0, 2)
    assert buffer.lines == ["one"]
