"""The core of a small editor in the manner of vi: keys in, rows of text out."""

from vi_editor.command_line.editor import Editor

__all__ = ["Editor"]
