"""Node ids relative to the plan's root, whatever directory pytest chose as its own."""

from __future__ import annotations

import os


class NodeIds:
    """Translates pytest's node ids, which are relative to its rootdir."""

    def __init__(self, rootdir: str, root: str) -> None:
        self._strip = ""
        self._prefix = ""
        if rootdir == root:
            return
        relative = os.path.relpath(root, rootdir).replace(os.sep, "/")
        if not relative.startswith(".."):
            self._strip = relative + "/"
        else:
            below = os.path.relpath(rootdir, root).replace(os.sep, "/")
            if not below.startswith(".."):
                self._prefix = below + "/"

    def of(self, nodeid: str) -> str:
        """The node id as the plan's root sees it; one from elsewhere stays as it is."""
        if self._strip:
            return nodeid.removeprefix(self._strip)
        return self._prefix + nodeid if self._prefix else nodeid
