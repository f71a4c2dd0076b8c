"""The rest of the tree: what came into the sources that their judge would not like."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.data_files import pairs_of, rows_of
from pytest_planverify.guards.hygiene.judges import is_script
from pytest_planverify.guards.hygiene.suite import literals_in
from pytest_planverify.guards.hygiene.trees import kept_artifacts
from pytest_planverify.guards.hygiene.tricks import tricks_in
from pytest_planverify.guards.hygiene.tricks.special_cases import COMMON, special_cases
from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings
from pytest_planverify.guards.hygiene.tricks.test_facts import TestFacts
from pytest_planverify.guards.hygiene.tricks.written_answers import WrittenAnswers, telling_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_planverify.guards.hygiene.changes import Changes
    from pytest_planverify.guards.hygiene.reading import Module
    from pytest_planverify.guards.hygiene.signs import Find

_JUDGES = (JudgeKind.TEST, JudgeKind.CONFTEST, JudgeKind.TEST_SUPPORT)
_NO_DATA = (
    ".py",
    ".pyi",
    ".md",
    ".rst",
    ".lock",
    ".cfg",
    ".ini",
    ".c",
    ".h",
    ".js",
    ".css",
    ".html",
    "LICENSE",
)
_LARGEST = 1_000_000
_WORK = (JudgeKind.PRODUCT, JudgeKind.START_UP, JudgeKind.ARTIFACT)


class ProductFiles:
    """The changed sources; those of tests are asked for fewer tricks."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._work = [path for path in changes.of_kind(*_WORK) if path.endswith(".py")]
        self._judges = [path for path in changes.of_kind(*_JUDGES) if path.endswith(".py")]

    @property
    def has_sources(self) -> bool:
        """Whether sources have changed that are no scripts."""
        return any(not is_script(path) for path in self._work)

    def finds(self) -> Iterator[Find]:
        """What came, minus what was there or only moved."""
        if self._work or self._judges:
            yield from self._tricks()
        if self._work:
            yield from self._special_cases()
            yield from self._kept_artifacts()

    def _tricks(self) -> Iterator[Find]:
        had: dict[tuple[str, str], list[Find]] = defaultdict(list)
        for path in (*self._work, *self._judges):
            module = self._changes.module(path, now=False)
            if module is not None:
                for find in tricks_in(module, self._around(path)):
                    had[find.sign, find.subject].append(find)
        for path in (*self._work, *self._judges):
            module = self._changes.module(path, now=True)
            if module is not None:
                for find in tricks_in(module, self._around(path)):
                    if not _was_there(find, had[find.sign, find.subject]):
                        yield find

    def _special_cases(self) -> Iterator[Find]:
        modules = [
            module
            for path in self._work
            if not is_script(path) and (module := self._changes.module(path, now=True)) is not None
        ]
        if modules:
            found = list(special_cases(modules, self._known, self._of_tests))
            yield from found
            answers = WrittenAnswers(modules, self._known, self._of_tests, self._telling_texts)
            told = {(find.path, find.line) for find in found if find.sign == "special-cases"}
            yield from (find for find in answers.finds() if (find.path, find.line) not in told)
            yield from self._data_of_work(modules, answers)

    def _data_of_work(self, modules: list[Module], answers: WrittenAnswers) -> Iterator[Find]:
        """Changed files that are no sources, and that a changed source names."""
        for path in self._changes.of_kind(*_WORK):
            name = posixpath.basename(path)
            content = self._changes.now.read(path)
            if content is None or len(content) > _LARGEST or name.endswith(_NO_DATA):
                continue
            loader = next((module for module in modules if _names(module, path)), None)
            if loader is not None:
                rows = [*pairs_of(path, content)]
                yield from answers.in_file(path, content, rows, loader.path)

    def _telling_texts(self) -> frozenset[str]:
        """The texts of the tests and of their data that are no plain words."""
        return self._texts

    @cached_property
    def _texts(self) -> frozenset[str]:
        modules = [
            module
            for path in self._changes.new
            if path.endswith(".py")
            and self._changes.kind(path) in _JUDGES
            and (module := self._changes.module(path, now=True)) is not None
        ]
        return telling_texts(modules, ())

    @cached_property
    def _known(self) -> set[str]:
        """Literals that the sources had before."""
        known: set[str] = set()
        for path in self._work:
            module = self._changes.module(path, now=False)
            if module is not None:
                known |= set(literals_in([module.tree]))
        return known

    def _of_tests(self, literals: Collection[str]) -> TestFacts:
        """What the tests and their data hold of some literals."""
        facts = TestFacts()
        telling = [text for text in literals if text not in COMMON and text not in self._known]
        for path in self._changes.new:
            kind = self._changes.kind(path)
            if kind in _JUDGES and path.endswith(".py"):
                content = self._changes.now.read(path)
                if content is None or not _holds_some(content, telling):
                    continue
                module = self._changes.module(path, now=True)
                if module is not None:
                    facts.add_module(module, literals)
            elif path in self._changes.data:
                for row in rows_of(path, self._changes.now.read(path)):
                    facts.add_group(row, literals)
        return facts

    def _kept_artifacts(self) -> Iterator[Find]:
        for reach in self._changes.grants.todos:
            if not reach.artifacts:
                continue
            for path in self._work:
                now = self._changes.module(path, now=True)
                if now is not None and (path in reach.scripts or is_script(path)):
                    yield from kept_artifacts(self._changes.module(path, now=False), now, reach.artifacts)

    def _around(self, path: str) -> Surroundings:
        return Surroundings(
            is_judge=path in self._judges,
            is_script=is_script(path) or any(path in reach.scripts for reach in self._changes.grants.todos),
            own_packages=self._own_packages,
            test_files=self._test_files,
            plans=frozenset(self._changes.grants.plans),
            data_files=self._changes.data,
        )

    @cached_property
    def _own_packages(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self._changes.new:
            if path.endswith(".py"):
                parts = path.split("/")
                if parts[0] in ("src", "lib") and len(parts) > 1:
                    parts = parts[1:]
                found.add(parts[0].removesuffix(".py"))
        return frozenset(found)

    @cached_property
    def _test_files(self) -> frozenset[str]:
        return frozenset(
            posixpath.basename(path) for path in self._changes.new if self._changes.kind(path) in _JUDGES
        )


def _was_there(find: Find, had: list[Find]) -> bool:
    """Whether the same was found before, in the same function or as the same line; it is used up."""
    for each in had:
        if each.place == find.place or each.after == find.after:
            had.remove(each)
            return True
    return False


def _names(module: Module, path: str) -> bool:
    """Whether a source names a file, or looks for files of its kind beside it."""
    folder, name = posixpath.split(path)
    stem, ending = posixpath.splitext(name)
    beside = folder == posixpath.dirname(module.path) or folder.startswith(
        posixpath.dirname(module.path) + "/"
    )
    return name in module.text or (
        beside and (stem in module.text or (bool(ending) and ending in module.text))
    )


def _holds_some(content: bytes, literals: Collection[str]) -> bool:
    """Whether a text may hold some of the literals, before it is parsed."""
    text = content.decode("utf-8", "replace")
    return any(literal.strip("'\"")[:20] in text for literal in literals)
