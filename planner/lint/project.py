"""Questions of the rules about the project. The implementation reads files; the rules do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from planner.model.findings import PathKind


class Project(Protocol):
    """The files of one root. Paths are relative to it, with ``/``."""

    def kind(self, path: str) -> PathKind: ...

    def text(self, path: str) -> str | None:
        """Return the text of a file, or ``None`` where it is none, or too large to be read."""
        ...

    def files(self, folder: str) -> tuple[tuple[str, ...], bool]:
        """Return the Python files of a folder and below, and whether these are all."""
        ...

    def pytest_setting(self, name: str) -> tuple[str, ...]:
        """Return the words of a setting of pytest in the root; none where it is not set."""
        ...

    def glob_holds(self, pattern: str) -> bool: ...

    def near(self, path: str) -> str | None:
        """Return an existing path that looks like a missing one."""
        ...

    def parent_holding(self, path: str) -> str | None:
        """Return the folder above the root, as ``..``, below which a path exists that the root lacks."""
        ...

    def is_installed(self, module: str) -> bool:
        """Return whether a top-level module can be imported from outside of the root."""
        ...
