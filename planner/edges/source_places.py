"""Collects the places of the project's source that a repair should see, and reads them as excerpts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.edges.python_places import WINDOW, Imported, PythonFile, contiguous
from planner.model.failure_report import SourceExcerpt
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.edges.python_places import Region
    from planner.edges.rooted_files import ReadFile, RootedFiles

LONGEST_LINE = 300
MOST_LINES = 220
"""Of all excerpts of one todo."""

NEAR = 3
"""Lines before and after a line that speaks for itself."""

BEGINNING = 60
"""Lines of a file of which no place is known."""

_MOST_SUBJECTS = 3
_DEEPEST_IMPORT = 3
_SOURCE_FOLDERS = ("", "src/")


class SourcePlaces:
    """The places of one todo at a time; files and their structure are kept for the next."""

    def __init__(self, files: RootedFiles) -> None:
        self._files = files
        self._structures: dict[str, PythonFile] = {}
        self._wanted: dict[str, list[Region]] = {}
        self._lines: dict[str, int] = {}
        self._left = MOST_LINES

    def __len__(self) -> int:
        return len(self._wanted)

    def __iter__(self) -> Iterator[str]:
        return iter(self._wanted)

    def at(self, path: str, line: int | None) -> None:
        """Around a line; without one, the beginning of the file."""
        file = self._source(path)
        if file is None:
            return
        if line is None or not 1 <= line <= len(file.lines):
            self.beginning(path)
            return
        regions = self._structure(file).at_line(line) if path.endswith(".py") else [_around(file, line)]
        self._want(path, line, regions)

    def near(self, path: str, line: int) -> None:
        """The line with a few around it."""
        file = self._source(path)
        if file is not None and 1 <= line <= len(file.lines):
            self._want(path, line, [_around(file, line, NEAR)])

    def of_test(self, nodeid: str) -> None:
        """The function of a test, with the fixtures and values of its file that it uses."""
        path, names = _parts(nodeid)
        file = self._source(path)
        found = self._structure(file).of_name(names) if file else None
        if file is not None and found is not None:
            self._want(path, found[0], found[1])
        elif file is not None:
            self.beginning(path)

    def subjects_of(self, nodeid: str) -> None:
        """The project's own code that a test uses."""
        path, names = _parts(nodeid)
        file = self._source(path)
        if file is None:
            return
        shown = 0
        for imported, attribute in self._structure(file).imports_used_by(names):
            shown += self._want_imported(path, imported, attribute, _DEEPEST_IMPORT)
            if shown >= _MOST_SUBJECTS:
                return

    def beginning(self, path: str) -> None:
        """The first lines of a file."""
        file = self._source(path)
        if file is not None and path not in self._wanted:
            self._want(path, 1, [(1, min(len(file.lines), BEGINNING))])

    def take(self) -> tuple[SourceExcerpt, ...]:
        """The excerpts of all places named since the last time, those named first first."""
        excerpts = [
            self._excerpt(path, region)
            for path, regions in self._wanted.items()
            for region in contiguous(regions)
        ]
        self._wanted, self._lines, self._left = {}, {}, MOST_LINES
        return tuple(excerpts)

    def _excerpt(self, path: str, region: Region) -> SourceExcerpt:
        file = self._source(path)
        first, last = region
        line = self._lines[path]
        return SourceExcerpt(
            path=path,
            line=line if first <= line <= last else first,
            first_line=first,
            lines=tuple(_shown(text) for text in file.lines[first - 1 : last]) if file else (),
        )

    def _want(self, path: str, line: int, regions: Iterable[Region]) -> None:
        self._lines.setdefault(path, line)
        wanted = self._wanted.setdefault(path, [])
        for first, last in regions:
            if any(start <= first and last <= end for start, end in wanted):
                continue
            if last - first + 1 <= self._left:
                wanted.append((first, last))
                self._left -= last - first + 1
        if not wanted:
            del self._wanted[path]

    def _want_imported(self, importer: str, source: Imported, attribute: str | None, depth: int) -> int:
        """Want the definition that a name stands for; 1 if it was found in the project, else 0."""
        for path in _module_paths(importer, source):
            file = self._source(path)
            if file is None:
                continue
            name = source.name or attribute
            found = self._structure(file).of_name([name]) if name else None
            if found is not None:
                self._want(path, found[0], found[1])
                return 1
            further = self._structure(file).reexport(name) if name and depth else None
            if further is not None:
                return self._want_imported(path, further, attribute, depth - 1)
            if name is None or not path.endswith("__init__.py"):
                self.beginning(path)
                return 1
        if source.name is not None and attribute is not None:
            module = Imported(f"{source.module}.{source.name}".strip("."), None, source.level)
            return self._want_imported(importer, module, attribute, depth - 1) if depth else 0
        return 0

    def _source(self, path: str) -> ReadFile | None:
        file = self._files.read(path)
        return None if file is None or file.is_binary else file

    def _structure(self, file: ReadFile) -> PythonFile:
        if file.path not in self._structures:
            self._structures[file.path] = PythonFile(file.lines if file.is_whole else ())
        return self._structures[file.path]


def _parts(nodeid: str) -> tuple[str, list[str]]:
    """``tests/test_a.py::TestB::test_c[1]`` as the file and the names in it."""
    path, *names = nodeid.partition("[")[0].split("::")
    return path, names


def _module_paths(importer: str, source: Imported) -> Iterator[str]:
    """Where the module may be, below the root."""
    parts = source.module.replace(".", "/")
    folder, _, _ = importer.rpartition("/")
    if source.level:
        for _ in range(source.level - 1):
            folder, _, _ = folder.rpartition("/")
        starts = [f"{folder}/" if folder else ""]
    else:
        starts = [*_SOURCE_FOLDERS, *([f"{folder}/"] if folder else [])]
    for start in starts:
        base = f"{start}{parts}".rstrip("/")
        if base:
            yield f"{base}.py"
            yield f"{base}/__init__.py"


def _around(file: ReadFile, line: int, lines: int = WINDOW) -> Region:
    return max(line - lines, 1), min(line + lines, len(file.lines))


def _shown(text: str) -> str:
    return clean(text.expandtabs(4).rstrip(), limit=LONGEST_LINE).replace("\n", " ")
