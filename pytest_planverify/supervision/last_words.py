"""What a process that is gone has left for its reader: the stacks of its end, and its output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_planverify.observing.spec import SessionSpec

_LIMIT = 20_000


def last_words(spec: SessionSpec) -> tuple[str, str]:
    """The stacks that faulthandler wrote, with paths below the root, and the end of the output."""
    folder = Path(spec.stacks).parent
    stacks = [_tail(path) for path in sorted(folder.glob(Path(spec.stacks).name + "*"))]
    output = _tail(Path(spec.log)) if spec.log else ""
    shown = "\n".join(filter(None, stacks)).replace(f'"{spec.root}/', '"')
    return shown, output


def _tail(path: Path) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - _LIMIT, 0))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
