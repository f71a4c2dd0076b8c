"""Temporary copies of a project: as it was at a revision, or as it is now, to be run and thrown away.

Nothing of the user's is touched: neither a branch, nor the index, nor a file below the root. What is given
is the plan's root inside the copy; a copy of a repository holds all of it.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import site
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from planner.errors import BaselineError
from planner.planfile.project_files import OWN_REPORTS, walk
from pytest_planverify.baseline.repository import GitFailed, Repository, git

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MOST_FILES = 50_000
MOST_BYTES = 2 << 30
"""What a copy may hold; a larger tree is refused."""

_BUILT = frozenset({".so", ".pyd", ".dylib", ".py", ".pyi"})
"""What builds leave behind for imports though git ignores it: extension modules, ``_version.py``."""

_LENT = "node_modules"
"""A folder that is too large to copy; the copy has a link to it."""

_MAPPING = re.compile(r"^MAPPING(?:\s*:[^=\n]+)?\s*=\s*(\{.*?\})", re.MULTILINE | re.DOTALL)


@contextmanager
def checkout(root: Path, revision: str) -> Generator[Path]:
    """The tree as it was at a revision, in a work tree of its own.

    What builds have made there now and git ignores, such as extension modules, is taken along. Raises
    :class:`planner.errors.BaselineError` where there is no git, no such revision, or no such folder in it.
    """
    repository = Repository.around(root)
    if repository is None:
        raise BaselineError(f"{root} is under no git repository, so it has no revision '{revision}'")
    commit = repository.commit(revision)
    if commit is None:
        raise BaselineError(
            f"there is no revision '{revision}' in {repository.top}; name a commit, a tag or a branch"
        )
    with _folder() as folder, ExitStack() as added:
        tree = folder / repository.top.name
        try:
            _add(repository, tree, commit)
            _add_submodules(repository.top, tree, commit, added)
            inside = tree / repository.prefix
            if not inside.is_dir():
                raise BaselineError(
                    f"'{revision}' has no folder {repository.prefix}; name a later revision"
                )
            _take_along(repository, tree)
            yield inside
        finally:
            added.close()
            _remove(repository, tree)


@contextmanager
def copy_as_is(root: Path) -> Generator[Path]:
    """The tree as it is now, changes that are in no commit included.

    Left out are virtual environments, caches and our own records. Raises
    :class:`planner.errors.BaselineError` where it is too large or cannot be read.
    """
    repository = Repository.around(root)
    top = root if repository is None else repository.top
    commit = None if repository is None else repository.commit("HEAD")
    with _folder() as folder:
        tree = folder / top.name
        try:
            if repository is not None and commit is not None:
                _add(repository, tree, commit, "--no-checkout")
                with suppress(GitFailed):  # the files of the copy then count as new, which changes no test
                    git(tree, "read-tree", "HEAD")
            _copy_all(top, tree)
            yield tree / root.relative_to(top)
        finally:
            if repository is not None and commit is not None:
                _remove(repository, tree)


def environment_for(tree: Path, root: Path) -> dict[str, str]:
    """The variables with which a process in the copy imports the copy where it would import the original.

    ``tree`` is the root inside the copy, ``root`` the original. Every place that the interpreter imports
    from and that lies in the original is put in front as its counterpart: those of ``PYTHONPATH``, of
    ``.pth`` files, and what editable installations stand for. To be laid over the present environment.
    """
    original, copy = _tops(root, tree)
    places: dict[str, None] = {}
    for place in _import_places():
        path = Path(os.path.realpath(place))
        if path == original or original in path.parents:
            counterpart = copy / path.relative_to(original)
            if not _is_installed(path, original):
                places[str(counterpart)] = None
    for place in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        path = Path(os.path.realpath(place))
        if place and path != original and original not in path.parents:
            places[place] = None
    return {"PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}


def counterpart(path: Path, tree: Path, root: Path) -> Path | None:
    """Return the place of an original path in the copy; ``None`` outside of what was copied."""
    original, copy = _tops(root, tree)
    real = Path(os.path.realpath(path))
    return copy / real.relative_to(original) if real == original or original in real.parents else None


def _tops(root: Path, tree: Path) -> tuple[Path, Path]:
    """The top of the repository, or the root without one, and the same of the copy."""
    original, copy = Path(os.path.realpath(root)), Path(os.path.realpath(tree))
    repository = Repository.around(original)
    if repository is None:
        return original, copy
    for _ in Path(repository.prefix).parts:
        copy = copy.parent
    return Path(os.path.realpath(repository.top)), copy


@contextmanager
def _folder() -> Generator[Path]:
    """A temporary folder that is gone afterwards, also where files in it are write-protected."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="planverify-tree-")))
    try:
        yield folder
    finally:
        delete_folder(folder)


def _add(repository: Repository, tree: Path, commit: str, *options: str) -> None:
    try:
        git(repository.folder, "worktree", "add", "--detach", "--quiet", *options, str(tree), commit)
    except GitFailed as error:
        raise BaselineError(f"git cannot make a work tree of {commit[:12]}: {error}") from None


def _add_submodules(top: Path, tree: Path, commit: str, added: ExitStack) -> None:
    """Lay the submodules of a commit into its tree: without them its tests fail for want of code.

    One that is not there now either is left out: the tests do without it.
    """
    around = Repository.around(top)
    for path, wanted in () if around is None else around.submodules(commit).items():
        inner = Repository.around(top / path)
        if inner is None or inner.prefix:
            continue
        if inner.commit(wanted) is None:
            raise BaselineError(
                f"the submodule {path} lacks {wanted[:12]}, where it was at {commit[:12]}; get it: "
                f"git -C {path} fetch"
            )
        _add(inner, tree / path, wanted)
        added.callback(_remove, inner, tree / path)
        _add_submodules(top / path, tree / path, wanted, added)


def _remove(repository: Repository, tree: Path) -> None:
    """Let git forget the work tree, and no other one; what is left goes with the folder."""
    _make_deletable(tree)
    with suppress(GitFailed):
        git(repository.folder, "worktree", "remove", "--force", "--force", str(tree))


def delete_folder(folder: Path) -> None:
    """Delete a folder, whatever in it is write-protected."""
    _make_deletable(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _make_deletable(folder: Path) -> None:
    """Tests may have left folders behind that nobody may write to."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)


def _take_along(repository: Repository, tree: Path) -> None:
    """Copy what git ignores and imports need: a revision alone cannot be imported without it."""
    whole = Repository(repository.top, repository.top, "", repository.linked)
    ignored = whole.files("--others", "--ignored", "--exclude-standard")
    kept = set(walk(repository.top))
    for path in ignored:
        place = tree / path
        if path in kept and Path(path).suffix in _BUILT and not place.exists() and place.parent.is_dir():
            with suppress(OSError):
                shutil.copy2(repository.top / path, place, follow_symlinks=False)
    _lend(repository.top, tree)


def _copy_all(top: Path, tree: Path) -> None:
    size = 0
    for number, path in enumerate(_to_copy(top)):
        place = tree / path
        try:
            size += os.lstat(top / path).st_size
            if number >= MOST_FILES or size > MOST_BYTES:
                raise BaselineError(
                    f"{top} is too large to be copied: it has more than {MOST_FILES} files or "
                    f"{MOST_BYTES >> 30} GiB; remove what no check needs"
                )
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(top / path, place, follow_symlinks=False)
        except FileNotFoundError:  # gone in the meantime
            continue
        except OSError as error:
            if not os.path.isfile(top / path):  # a socket or a pipe is no part of the project
                continue
            raise BaselineError(f"{top / path}: it cannot be copied: {error.strerror}") from None
    _lend(top, tree)


def _to_copy(top: Path) -> Iterator[str]:
    for path in walk(top):
        if path != ".git":  # a file in a further work tree
            yield path
    for path in walk(top / OWN_REPORTS):
        yield f"{OWN_REPORTS}/{path}"


def _lend(top: Path, tree: Path) -> None:
    for folder in (top, *(each for each in top.iterdir() if each.is_dir() and not each.is_symlink())):
        place = tree / folder.relative_to(top) / _LENT
        if (folder / _LENT).is_dir() and place.parent.is_dir() and not os.path.lexists(place):
            place.symlink_to(folder / _LENT, target_is_directory=True)


def _import_places() -> Iterator[str]:
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # Where this program was started is on its path, and need not be on that of another.
    started = {"", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0] if sys.argv else ""))}
    yield from (entry for entry in sys.path if entry and (entry in given or entry not in started))
    sites = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    for folder in dict.fromkeys([*sites, *site.getsitepackages()]):
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if name.endswith(".pth"):
                yield from _of_pth(Path(folder) / name)
            elif name.startswith("__editable__") and name.endswith("_finder.py"):
                yield from _of_finder(Path(folder) / name)


def _of_pth(file: Path) -> Iterator[str]:
    with suppress(OSError, UnicodeDecodeError):
        for line in file.read_text("utf-8").splitlines():
            if line.strip() and not line.startswith(("#", "import ", "import\t")):
                yield os.path.join(file.parent, line.strip())


def _of_finder(file: Path) -> Iterator[str]:
    """The folders that hold the packages which setuptools' finder of an editable installation maps."""
    with suppress(OSError, UnicodeDecodeError, ValueError, SyntaxError):
        found = _MAPPING.search(file.read_text("utf-8"))
        mapping = cast("dict[object, object]", ast.literal_eval(found[1]) if found is not None else {})
        for name, place in mapping.items():
            # The place of a.b is .../a/b: what is imported from lies above both.
            folder = Path(str(place))
            for _ in str(name).split("."):
                folder = folder.parent
            yield str(folder)


def _is_installed(path: Path, original: Path) -> bool:
    """Return whether it belongs to an interpreter in the project: no virtual environment is copied."""
    for folder in (path, *path.parents):
        if folder == original:
            return False
        if (folder / "pyvenv.cfg").exists():
            return True
    return False
