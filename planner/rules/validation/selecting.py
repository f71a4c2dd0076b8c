"""Which tests a pytest command selects, as far as reading files tells, and what code they run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from planner.rules.reading.keyword_expressions import evaluate
from planner.rules.validation.project import Kind
from planner.text.glob_patterns import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.catalog import Command, PytestInvocation
    from planner.rules.reading.determinism import Hazard
    from planner.rules.reading.modules import TestModule, Unit
    from planner.rules.validation.project import Project

MAX_EVALUATIONS = 1_000_000
"""How many times a test is compared with a command before nothing more is said."""

MAX_GUESSES = 50
MAX_UNITS = 500
"""How many functions of one test are followed."""

MAX_LAYERS = 50
"""How many modules the code of one test is looked for in."""

_TEST_FOLDERS = frozenset({"tests", "test", "testing"})
_READS_OTHERWISE = frozenset({"--pyargs", "--doctest-modules", "--doctest-glob", "-c", "--rootdir"})


@dataclass(slots=True)
class Selected:
    """What one command selects."""

    tests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """File and name."""
    certain: bool = True
    """Whether these are all."""
    files: list[str] = field(default_factory=list[str])
    """The test files that exist, whether or not something is selected in them."""
    missing_files: list[str] = field(default_factory=list[str])
    missing_tests: list[tuple[str, str, str | None]] = field(
        default_factory=list[tuple[str, str, str | None]]
    )
    """File, name, and the name that was probably meant."""
    unreadable: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    """File, problem, and whether it was merely left alone."""
    empty: list[str] = field(default_factory=list[str])
    """Selected files and folders without any test."""
    dropped: int = 0
    """How many tests the options leave out."""

    @property
    def sound(self) -> bool:
        """Whether everything that is selected was found and read."""
        return self.certain and not (self.missing_files or self.missing_tests or self.unreadable)


class Selector:
    """Answers for the commands of one plan; equal selections are worked out once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[tuple[object, ...], Selected] = {}
        self._codes: dict[tuple[str, str], _Code] = {}
        self._evaluations = 0
        self._guesses = 0

    def of(self, command: Command) -> Selected:
        """What a pytest command selects."""
        invocation = command.pytest
        assert invocation is not None
        key = (invocation.selections, invocation.keyword, invocation.markexpr, invocation.deselect)
        reads_otherwise = invocation.guessed or any(
            word.partition("=")[0] in _READS_OTHERWISE for word in invocation.args
        )
        if reads_otherwise:
            key = (*key, invocation.args)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._select(invocation)
            if reads_otherwise:
                # What looks like a path may be the value of an option, a package, or relative to elsewhere.
                known.certain = False
                known.missing_files, known.missing_tests, known.empty = [], [], []
        return known

    def _select(self, invocation: PytestInvocation) -> Selected:
        selected = Selected()
        places = invocation.selections or self.project.settings.testpaths or (".",)
        chosen: list[tuple[str, str]] = []
        for place in places:
            path, _, name = place.partition("::")
            path = plain(path)
            kind = self.project.kind(path)
            if kind is Kind.FILE:
                chosen.extend(self._in_file(path, name.partition("[")[0], selected))
            elif kind is Kind.FOLDER:
                chosen.extend(self._in_folder(path, selected))
            elif kind is Kind.OUTSIDE:
                selected.certain = False
            else:
                selected.missing_files.append(path)
        for file, name in dict.fromkeys(chosen):
            kept = self._kept(file, name, invocation, selected)
            if kept:
                selected.tests.append((file, name))
            selected.dropped += not kept
        return selected

    def _in_folder(self, folder: str, selected: Selected) -> Iterator[tuple[str, str]]:
        files, complete = self.project.test_files(folder)
        selected.certain = selected.certain and complete
        if not files and complete:
            selected.empty.append(folder)
        for file in files:
            yield from self._in_file(file, "", selected)

    def _in_file(self, path: str, name: str, selected: Selected) -> Iterator[tuple[str, str]]:
        if not path.endswith(".py"):
            selected.certain = False
            return
        module = self.project.module(path)
        selected.files.append(path)
        for where, each in ((path, module), *self.project.conftests(path)):
            if (
                each.problem is not None
                and (where, each.problem, each.unexamined) not in selected.unreadable
            ):
                selected.unreadable.append((where, each.problem, each.unexamined))
        if module.problem is not None:
            return
        tests = [test for test in module.tests if not name or test == name or test.startswith(f"{name}::")]
        if module.open_ended:
            selected.certain = False
        elif not module.tests:
            selected.empty.append(path)
        elif not tests:
            selected.missing_tests.append((path, name, self._near(name, module.tests)))
        yield from ((path, test) for test in tests)

    def _near(self, name: str, names: tuple[str, ...]) -> str | None:
        self._guesses += 1
        if self._guesses > MAX_GUESSES:
            return None
        return next(iter(get_close_matches(name, names[:2_000], n=1)), None)

    def _kept(self, file: str, name: str, invocation: PytestInvocation, selected: Selected) -> bool:
        """Whether the options of a command leave a test in; where nobody can tell, they do."""
        self._evaluations += 1
        if self._evaluations > MAX_EVALUATIONS:
            selected.certain = False
            return True
        node = f"{file}::{name}"
        if any(
            node == plain(each) or node.startswith((f"{each}::", f"{each}/"))
            for each in invocation.deselect
        ):
            return False
        if invocation.keyword is None and invocation.markexpr is None:
            return True
        unit = self.project.module(file).units[name]
        answers: list[bool | None] = []
        if invocation.keyword is not None:
            answers.append(evaluate(invocation.keyword, lambda word: self._has_keyword(file, unit, word)))
        if invocation.markexpr is not None:
            answers.append(evaluate(invocation.markexpr, lambda word: self._has_mark(file, unit, word)))
        return False not in answers

    def _has_keyword(self, file: str, unit: Unit, word: str) -> bool | None:
        names = [*unit.name.split("::"), file.rpartition("/")[2], *unit.marks]
        if any(word.lower() in name.lower() for name in names):
            return True
        # Packages and parameters have names of their own; other files may mark what they like.
        in_folders = any(word.lower() in part.lower() for part in file.split("/")[:-1])
        return None if in_folders or unit.parametrized or self._is_marked(file) else False

    def _has_mark(self, file: str, unit: Unit, word: str) -> bool | None:
        if word in unit.marks:
            return True
        return None if self._is_marked(file) or (unit.parametrized and word != "parametrize") else False

    def _is_marked(self, file: str) -> bool:
        """Whether a conftest may mark or make tests."""
        hooks = ("pytest_collection_modifyitems", "pytest_itemcollected", "pytest_generate_tests")
        return any(
            module.problem is not None or any(hook in module.units for hook in hooks)
            for _, module in self.project.conftests(file)
        )

    def hazards(self, file: str, name: str, families: tuple[str, ...]) -> tuple[tuple[str, Hazard], ...]:
        """What is not repeatable in the code of a test, each with its file.

        ``families`` are the generators that are seeded from outside.
        """
        return tuple(self._code(file, name).hazards(families))

    def opened(self, file: str, name: str) -> tuple[str, ...]:
        """The existing data files that the code of a test names, relative to the root."""
        return self._code(file, name).opened

    def has_own_fixtures(self, file: str, name: str) -> bool:
        """Whether fixtures of the project run when a test runs: they may prove what its body does not."""
        return any(each.is_fixture for _, each in self._code(file, name).units)

    def _code(self, file: str, name: str) -> _Code:
        known = self._codes.get((file, name))
        if known is None:
            known = self._codes[file, name] = _Code(self.project, file, name)
        return known


class _Code:
    """The code of one test: its own, its module's, that of the fixtures and functions that it uses."""

    def __init__(self, project: Project, file: str, name: str) -> None:
        self._project = project
        self._file = file
        self._name = name

    @cached_property
    def units(self) -> tuple[tuple[str, Unit], ...]:
        """Each unit with its file, the test itself first."""
        module = self._project.module(self._file)
        layers = [(self._file, module), *self._project.conftests(self._file)]
        found: dict[tuple[str, str], Unit] = {}
        pending = deque([(0, self._name), *((depth, "") for depth in range(len(layers)))])
        pending += [(depth, name) for depth, (_, layer) in enumerate(layers) for name in layer.autouse]
        while pending and len(found) < MAX_UNITS:
            depth, name = pending.popleft()
            file, layer = layers[depth]
            unit = layer.units.get(name)
            if unit is None or (file, name) in found:
                continue
            found[file, name] = unit
            for each in unit.uses:
                pending.append(
                    (depth, each) if each in layer.units else self._elsewhere(file, layer, each, layers)
                )
            for request in unit.requests:
                pending.extend(_fixture(request, name, depth, layers))
        return tuple((file, unit) for (file, _), unit in found.items())

    def _elsewhere(
        self, file: str, module: TestModule, name: str, layers: list[tuple[str, TestModule]]
    ) -> tuple[int, str]:
        """Where a name comes from that a test module imports from another module of the tests."""
        where, _, original = module.imports.get(name, "").rpartition(".")
        for start in (file.rpartition("/")[0], ""):
            path = _below(start, f"{where.replace('.', '/')}.py")
            if not where or path is None or not _TEST_FOLDERS & set(path.split("/")[:-1]):
                continue
            if self._project.kind(path) is Kind.FILE and len(layers) < MAX_LAYERS:
                layers.append((path, self._project.module(path)))
                return len(layers) - 1, original
        return 0, name

    def hazards(self, families: Iterable[str] = ()) -> Iterator[tuple[str, Hazard]]:
        """What in it is not repeatable, each with its file. ``families`` are seeded from outside."""
        seeded = set(families)
        guards: set[str] = set()
        for _, unit in self.units:
            seeded |= unit.found.seeds
            guards |= unit.found.guards
        for file, unit in self.units:
            for hazard in unit.found.hazards:
                if hazard.kind not in guards and not (hazard.family and hazard.family in seeded):
                    yield file, hazard

    @cached_property
    def opened(self) -> tuple[str, ...]:
        """The existing files that it names: relative to the root, to its own folder or to the one above."""
        found: dict[str, None] = {}
        for file, unit in self.units:
            folder = file.rpartition("/")[0]
            above = folder.rpartition("/")[0]
            for text in unit.files:
                for start in dict.fromkeys((folder, above, "")):
                    path = _below(start, text)
                    if path is not None and self._project.kind(path) is Kind.FILE:
                        found[path] = None
                        break
        return tuple(found)


def _below(folder: str, path: str) -> str | None:
    """A relative path from a folder, without ``..``; ``None`` where it leaves the root."""
    parts: list[str] = [part for part in folder.split("/") if part]
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or None


def _fixture(
    request: str, asker: str, depth: int, layers: list[tuple[str, TestModule]]
) -> Iterator[tuple[int, str]]:
    """Where the fixture of that name is defined, from a module outwards."""
    for level in range(depth, len(layers)):
        name = layers[level][1].fixtures.get(request)
        # A fixture that asks for its own name means the one further out.
        if name is not None and not (level == depth and name == asker):
            yield level, name
            return
