"""Temporary copies of a project at a revision, to run checks in.

The user's repository is not changed: no branch, no index, no file below the root. A copy contains the
whole repository. :func:`environment_for` makes processes import the copy's modules, even if the original is
installed in editable mode.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BaselineError
from planner.planfile.project_files import walk
from pytest_planverify.baseline.repository import GitFailed, Repository, ask, git

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_BUILT = frozenset({".so", ".pyd", ".dylib", ".py", ".pyi"})
"""Suffixes of ignored build products that imports need, such as extension modules and ``_version.py``."""

_PLACES_SECONDS = 60
_LINKED_FOLDER = "node_modules"
"""Folder that is linked instead of copied because of its size."""

_ASK_FOR_PLACES = """
import json, sys
finders = [vars(each) for name, each in sys.modules.items() if name.startswith("__editable__")]
print(json.dumps([sys.path, [each.get("MAPPING", {}) for each in finders]]))
"""
"""Program that prints the search path of a new interpreter, and the packages of setuptools' editable
installs, whose finders map them to folders."""


@contextmanager
def checkout(repository: Repository, commit: str) -> Generator[Path]:
    """Check out a commit into a temporary work tree, and yield the repository's folder in it.

    The work tree is deleted afterwards. Ignored build products of the current tree are copied. Raises
    :class:`planner.errors.BaselineError` if the commit lacks the folder, if it needs submodules, or if git
    cannot check it out.
    """
    # Without their code, tests would fail that passed at that revision.
    fetched = (path for path in repository.submodules(commit) if (repository.top / path / ".git").exists())
    if (path := next(fetched, None)) is not None:
        raise BaselineError(
            f"{path} is a submodule, which a checkout of a revision lacks; record a baseline instead: "
            "planverify baseline PLAN"
        )
    with temporary_folder("planverify-tree-") as folder:
        tree = folder / repository.top.name
        try:
            try:
                git(repository.folder, "worktree", "add", "--detach", "--quiet", str(tree), commit)
            except GitFailed as error:
                raise BaselineError(f"git cannot make a work tree of {commit[:12]}: {error}") from None
            inside = tree / repository.prefix
            if not inside.is_dir():
                raise BaselineError(f"there is no folder {repository.prefix}; name a later revision")
            _copy_build_products(repository, tree)
            yield inside
        finally:
            _make_deletable(tree)
            # From git's list; given twice, --force removes locked work trees as well as changed ones.
            ask(repository.folder, "worktree", "remove", "--force", "--force", str(tree))


def environment_for(tree: Path, root: Path) -> dict[str, str]:
    """Return environment variables that make a process import the copy instead of the original.

    ``tree`` is the root in the copy, ``root`` the original. For each import location inside of the original
    (``PYTHONPATH``, ``.pth`` files, editable installs) its counterpart is put on ``PYTHONPATH``. Other
    entries of ``PYTHONPATH`` stay.
    """
    original, copy = _tops(root, tree)
    places: dict[str, None] = {}
    # PYTHONPATH precedes ``.pth`` files and editable installs, which still lead to the original.
    for place in _import_places():
        path = Path(os.path.realpath(place))
        folders = [each for each in (path, *path.parents) if original in each.parents]
        # Virtual environments in the project are not copied.
        if path.is_relative_to(original) and not any((each / "pyvenv.cfg").exists() for each in folders):
            places[str(copy / path.relative_to(original))] = None
    for place in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        path = Path(os.path.realpath(place))
        if place and not path.is_relative_to(original):
            places[place] = None
    return {"PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}


def counterpart(path: Path, tree: Path, root: Path) -> Path | None:
    """Return a path's place in the copy; ``None`` for a path outside of the copied repository or root."""
    original, copy = _tops(root, tree)
    real = Path(os.path.realpath(path))
    return copy / real.relative_to(original) if real.is_relative_to(original) else None


def _tops(root: Path, tree: Path) -> tuple[Path, Path]:
    """Return the top of the repository, or the root without one, and its counterpart in the copy."""
    original, copy = Path(os.path.realpath(root)), Path(os.path.realpath(tree))
    repository = Repository.around(original)
    if repository is None:
        return original, copy
    for _ in Path(repository.prefix).parts:
        copy = copy.parent
    return Path(os.path.realpath(repository.top)), copy


@contextmanager
def temporary_folder(prefix: str) -> Generator[Path]:
    """Create a temporary folder, which is deleted afterwards even if folders in it are write-protected."""
    # Resolved, since the temporary folder is a link on some systems and real paths are compared here.
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix)))
    try:
        yield folder
    finally:
        delete_folder(folder)


def delete_folder(folder: Path) -> None:
    """Delete a folder, including write-protected ones in it; what cannot be deleted is left."""
    _make_deletable(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _make_deletable(folder: Path) -> None:
    """Make folders writable that tests left write-protected."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)


def _copy_build_products(repository: Repository, tree: Path) -> None:
    """Copy ignored build products that imports need, as a revision alone may not be importable.

    Only into existing folders, and never over a file of the revision.
    """
    # Of the whole repository, as in the copy, not only those below the plan's root.
    whole = Repository(repository.top, repository.top, "", repository.linked)
    ignored = whole.files("--others", "--ignored", "--exclude-standard")
    walked = set(walk(repository.top))  # without caches and virtual environments
    for path in ignored:
        place = tree / path
        if path in walked and Path(path).suffix in _BUILT and not place.exists() and place.parent.is_dir():
            with suppress(OSError):
                shutil.copy2(repository.top / path, place, follow_symlinks=False)
    link_environments(repository.top, tree)


def link_environments(top: Path, tree: Path) -> None:
    """Link ``node_modules`` and virtual environments of a tree into its copy, if this machine has them."""
    folders = [each for each in top.iterdir() if each.is_dir()] if top.is_dir() else []
    found = [each for each in folders if (each / "pyvenv.cfg").is_file()]
    found += [each / _LINKED_FOLDER for each in (top, *folders) if each == top or not each.is_symlink()]
    for each in found:
        place = tree / each.relative_to(top)
        # One that the copy has itself stays.
        if each.is_dir() and place.parent.is_dir() and not os.path.lexists(place):
            place.symlink_to(each, target_is_directory=True)


def _import_places() -> Iterator[str]:
    """Yield the folders from which a new process of this interpreter imports modules."""
    # -P: neither this folder nor that of a script; another process has its own instead.
    command = [sys.executable, "-P", "-c", _ASK_FOR_PLACES]
    try:
        found = subprocess.run(command, capture_output=True, check=True, timeout=_PLACES_SECONDS)
        entries: list[str]
        mappings: list[dict[str, str]]
        entries, mappings = json.loads(found.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):  # a broken installation: the run will show it
        return
    yield from entries
    for mapping in mappings:
        for name, place in mapping.items():
            # The location of package ``a.b`` is ``.../a/b``; its import location is the folder above ``a``.
            yield str(Path(place).parents[name.count(".")])
