"""Collects the places of the project's source that a repair should see, and reads them as excerpts."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.edges.project.essential_lines import words_of
from planner.edges.project.imported_names import Imported
from planner.edges.project.python_places import WINDOW, PythonFile, contiguous
from planner.edges.project.reached_code import ReachedCode, Unit
from planner.model.failure_report import SourceExcerpt
from planner.text.budgets import estimate_tokens
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.edges.project.essential_lines import Region
    from planner.edges.project.rooted_files import ReadFile, RootedFiles

LONGEST_LINE = 300
MOST_LINES = 260
"""Of all excerpts of one todo."""

NEAR = 3
"""Lines before and after a line that speaks for itself."""

BEGINNING = 60
"""Lines of a file of which no place is known."""

MOST_TOKENS = 4_000
"""The same in tokens, by the estimate that the page is measured by."""

KEPT_FOR_TESTS = 80
"""Lines that the code which is reached leaves to the tests."""

TOKENS_FOR_TESTS = 1_200

_MOST_SUBJECTS = 3
_MOST_MISSES = 4
_NUMBERED = 4
_MOST_NAMES = 12
_MOST_MENTIONS = 3
_LIKE = 0.7
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
        self._tokens = MOST_TOKENS
        self._roots: dict[Unit, int | None] = {}
        self._words: dict[str, float] = {}
        self._code = ReachedCode(self._python, _module_paths)

    def __len__(self) -> int:
        return len(self._wanted)

    def __iter__(self) -> Iterator[str]:
        return iter(self._wanted)

    def speak_of(self, text: str, weight: float = 1.0) -> None:
        """The text tells of the failure: what has the same words is the likelier to matter."""
        for word in words_of(text):
            self._words[word] = max(weight, self._words.get(word, 0.0))

    def start_from(self, path: str, line: int) -> None:
        """The failure goes through this line: begin there to look for the code that it reaches."""
        file = self._python(path)
        names = file.names_at(line) if file else ()
        if names:
            self._roots.setdefault(Unit(path, names), line)

    def start_from_test(self, nodeid: str) -> None:
        """The same for a test."""
        path, names = _parts(nodeid)
        file = self._python(path)
        if file is None or not names:
            return
        known = tuple(names) if file.has(names) else tuple(names[:-1])
        if not known:
            return
        self._roots.setdefault(Unit(path, known), None)
        if len(known) < len(names):  # the test is inherited
            for owner in [*self._code.classes(Unit(path, known))][1:]:
                test = self._code.method(owner, names[-1])
                if test is not None:
                    self._roots.setdefault(test, None)

    def reached(self, most: int) -> None:
        """The product's code that the failure goes through, as many lines of it."""
        for root, line in self._roots.items():
            self._speak_of_root(root, line)
        units = [
            unit for unit in self._code.ranked(self._roots, self._words) if not is_test_path(unit.path)
        ]
        least = max(self._left - most, KEPT_FOR_TESTS)
        misses = 0
        for unit in units:
            file = self._python(unit.path)
            regions = file.regions(unit.names, self._words) if file else []
            lines, tokens = self._price(file, regions) if file else (0, 0)
            if self._left - lines < least or self._tokens - tokens < TOKENS_FOR_TESTS:
                misses += 1
                if misses == _MOST_MISSES:  # what is still smaller says no more
                    return
            elif regions:
                self._want(unit.path, regions[0][0], regions)

    def _speak_of_root(self, root: Unit, line: int | None) -> None:
        """A test tells by its words what it is about, the failing lines most; of the product only those."""
        file = self._python(root.path)
        span = file.span(root.names) if file else None
        if file is None or span is None:
            return
        if not is_test_path(root.path):
            if line is not None:
                self.speak_of(file.text((max(line - 1, span[0]), min(line + 1, span[1]))), 1.5)
            return
        self.speak_of(file.text(span), 1.0 if line is None else 0.5)
        if line is not None:
            self.speak_of(file.text((max(line - NEAR, span[0]), min(line + NEAR, span[1]))), 1.5)

    def at(self, path: str, line: int | None) -> None:
        """Around a line; without one, the beginning of the file."""
        file = self._source(path)
        if file is None:
            return
        if line is None or not 1 <= line <= len(file.lines):
            self.beginning(path)
            return
        regions = self._regions_at(file, line)
        self._want(path, line, regions)

    def _regions_at(self, file: ReadFile, line: int) -> list[Region]:
        if not file.path.endswith(".py"):
            return [_around(file, line)]
        structure = self._structure(file)
        # Of a helper of the tests the rest is of no interest, however short it is.
        names = structure.names_at(line) if is_test_path(file.path) else ()
        return structure.regions(names, self._words) or structure.at_line(line, self._words)

    def near(self, path: str, line: int) -> None:
        """The line with a few around it."""
        file = self._source(path)
        if file is not None and 1 <= line <= len(file.lines):
            self._want(path, line, [_around(file, line, NEAR)])

    def of_test(self, nodeid: str) -> None:
        """The function of a test, with the fixtures and values of its file that it uses."""
        path, names = _parts(nodeid)
        file = self._source(path)
        if file is None:
            return
        found = self._structure(file).of_name(names, self._words)
        if found is not None:
            self._want(path, found[0], found[1])
        elif not self._inherited(path, names):
            self.beginning(path)

    def _inherited(self, path: str, names: list[str]) -> bool:
        """Want a test that a class of the file has from a base, and what the class says of itself."""
        for owner in self._code.classes(Unit(path, tuple(names[:-1]))) if len(names) > 1 else ():
            test = self._code.method(owner, names[-1])
            file = self._python(test.path) if test else None
            mine = self._python(path)
            if test is None or file is None or mine is None:
                continue
            for where, unit in ((file, test), (mine, Unit(path, tuple(names[:-1])))):
                regions = where.regions(unit.names, self._words)
                self._want(unit.path, regions[0][0], regions)
            return True
        return False

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

    def defined(
        self, paths: Iterable[str], module: str | None, owner: str, wanted: str
    ) -> list[tuple[str, int, str]]:
        """What a module, a class or else one of the files defines, as path, line and name.

        The names that are most like the wanted one stand first.
        """
        if module is not None:
            paths = [*_module_paths("", Imported(module, None, 0))]
            for path in paths:
                file = self._python(path)
                for line in file.lines_with(wanted)[:_MOST_MENTIONS] if file else ():
                    self.near(path, line)
        owners = self._classes_named(owner) if owner else []
        found: dict[tuple[str, int, str], float] = {}
        for path in dict.fromkeys([each.path for each in owners] or paths):
            file = self._python(path)
            for line, name in file.outline() if file else ():
                likeness = SequenceMatcher(None, wanted.lower(), name.rpartition(".")[2].lower()).ratio()
                inside = any(path == each.path and name.startswith(f"{each.names[0]}.") for each in owners)
                if inside or (likeness >= _LIKE and not owners):
                    found[path, line, name] = likeness
        return sorted(found, key=lambda each: (-found[each], each))[:_MOST_NAMES]

    def _classes_named(self, owner: str) -> list[Unit]:
        """The class of that name which the failure goes through, and its bases."""
        reached = self._code.ranked(self._roots, self._words)
        own = [unit for unit in reached if unit.names[0] == owner and not is_test_path(unit.path)]
        return [*dict.fromkeys(each for unit in own for each in self._code.classes(unit))]

    def take(self) -> tuple[SourceExcerpt, ...]:
        """The excerpts of all places named since the last time, those named first first."""
        excerpts = [
            self._excerpt(path, region)
            for path, regions in self._wanted.items()
            for region in contiguous(regions)
        ]
        self._wanted, self._lines, self._left = {}, {}, MOST_LINES
        self._roots, self._words, self._tokens = {}, {}, MOST_TOKENS
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
            lines, tokens = self._price(self._structure_of(path), [(first, last)])
            if lines <= self._left and tokens <= self._tokens:
                wanted.append((first, last))
                self._left -= lines
                self._tokens -= tokens
        if not wanted:
            del self._wanted[path]

    def _structure_of(self, path: str) -> PythonFile | None:
        file = self._source(path)
        return None if file is None else self._structure(file)

    def _price(self, file: PythonFile | None, regions: Iterable[Region]) -> tuple[int, int]:
        """What regions cost in lines and in tokens, their numbers included."""
        lines = sum(last - first + 1 for first, last in regions)
        text = (
            "\n".join(file.text(region)[: LONGEST_LINE * MOST_LINES] for region in regions) if file else ""
        )
        return lines, estimate_tokens(text) + _NUMBERED * lines

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

    def _python(self, path: str) -> PythonFile | None:
        file = self._source(path) if path.endswith(".py") else None
        return None if file is None else self._structure(file)

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
