"""Where pytest's ``prepend`` import mode makes a test file importable from."""

from __future__ import annotations

import os
from functools import cache


@cache
def import_path(file: str) -> str:
    """The folder that is put on ``sys.path`` for a test file: the first one that is no package."""
    folder = os.path.dirname(file)
    while os.path.exists(os.path.join(folder, "__init__.py")):
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return folder
