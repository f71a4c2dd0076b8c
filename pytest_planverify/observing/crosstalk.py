"""Looks, where criteria take turns, for what one has done to the process of the next, and tells of it."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_planverify.observing.chance import Chance
from pytest_planverify.observing.import_paths import import_path
from pytest_planverify.observing.leaks import LeakWatch
from pytest_planverify.observing.process_state import pytest_state
from pytest_planverify.observing.selection import asking_for
from pytest_planverify.observing.spec import COVERAGE_DEMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pytest

    from pytest_planverify.journal import JournalWriter
    from pytest_planverify.observing.live_fixtures import LiveFixtures
    from pytest_planverify.observing.spec import SessionSpec
    from pytest_planverify.observing.witnessing import Witness


class Crosstalk:
    """One session's; it does nothing in a session that only one criterion uses."""

    def __init__(
        self, spec: SessionSpec, journal: JournalWriter, live_fixtures: LiveFixtures, witness: Witness
    ) -> None:
        self.worker = ""
        self.chance = Chance()
        self._spec = spec
        self._journal = journal
        self._live_fixtures = live_fixtures
        self._witness = witness
        self._root = Path(spec.root)
        self._watch: LeakWatch | None = None
        self._config: pytest.Config
        self._import_paths: set[str] = set()
        self._test_files: dict[str, None] = {}
        self._last_group: tuple[str, ...] = ()
        self._last_path: Path | None = None
        self._to_come: Counter[str] = Counter()
        """How many tests each criterion is still waiting for."""
        self._begun: set[str] = set()
        self._dependents: set[tuple[str | None, ...]] = set()
        """Files that were already said to need others, and what of them."""

    def begin(self, config: pytest.Config, side_of: Callable[[], Callable[[str], str]]) -> None:
        """Remember the process as it is before anything is collected.

        ``side_of`` gives what tells whose side a file is on; it is asked at once, for an import that is
        watched cannot be the one that finds it out.
        """
        self._config = config
        if not self._spec.watch_leaks or len(self._spec.wanted) < 2:
            return
        asked = any("--cov-fail-under" in arg for arg in self._spec.args)
        if _demands_coverage(config) and not asked:
            self._write([], [COVERAGE_DEMAND])
        side = side_of()
        self._watch = LeakWatch(
            lambda file: side(file) in ("product", "test"),
            self._live_fixtures.values,
            self._is_expected_path,
            lambda: pytest_state(config),
            self.chance,
        )
        self._live_fixtures.wide_one_made = partial(self._look_at_what_is_large, in_test=True)
        self._import_paths.update(_conftest_paths(config))
        self._watch.start()

    def end(self) -> None:
        """The last test is over."""
        if self._watch is None:
            return
        if self._last_group:
            self._look(self._watch, ())
        self._look_for_dependents(self._watch)
        self._watch.stop()

    # -- collection ------------------------------------------------------------------------------

    def collection_begins(self) -> None:
        """What pytest puts in its place while it collects is no test's doing."""
        if self._watch is not None:
            self._watch.changes(imports_count=False)

    def package_comes(self, package: pytest.Package) -> None:
        """Its ``__init__.py`` is imported before its first test."""
        self._import_paths.add(import_path(str(package.path / "__init__.py")))

    def file_comes(self, file: pytest.File) -> None:
        """A test file is about to be imported."""
        self._import_paths.add(import_path(str(file.path)))
        if self._watch is not None:
            self._watch.import_for(str(file.path))
            self._test_files[str(file.path)] = None

    def file_was_imported(self, file: pytest.File) -> None:
        """Whether that changed the process for the tests of other files."""
        if self._watch is None:
            return
        self._import_paths.update(_conftest_paths(self._config))
        if changed := self._watch.changes(imports_count=False):
            self._write(asking_for(file.path, self._spec.wanted, self._root), changed)

    def collected(self, to_come: Mapping[str, int]) -> None:
        """How many tests of each criterion are to come."""
        self._to_come.update(to_come)
        if self._watch is not None:
            self._look_for_dependents(self._watch)  # now, too: a test may end the process

    # -- running ---------------------------------------------------------------------------------

    def test_begins(self, item: pytest.Item, group: tuple[str, ...], *, is_last: bool) -> None:
        """A test of these criteria comes now."""
        if self._watch is None:
            return
        if group != self._last_group:
            self._look(self._watch, group)
            self._begun.update(group)
        for key in group:
            self._to_come[key] -= 1
        if item.path is not self._last_path:
            self._last_path = item.path
            self._watch.import_for(str(item.path))
        if is_last:
            self._look_at_what_is_large()

    def _look(self, watch: LeakWatch, group: tuple[str, ...]) -> None:
        self._witness.between_criteria()
        if not self._last_group:
            self._look_at_what_is_large()
            watch.start()
        elif changed := watch.changes(imports_count=True, empty_caches=self._between_criteria):
            self._write_changes(watch, changed)
        self._last_group = group

    @property
    def _between_criteria(self) -> bool:
        """Whether all criteria that have begun are over, so that what comes now should find all fresh."""
        return not self.worker and not any(self._to_come[key] for key in self._begun)

    def _write_changes(self, watch: LeakWatch, changed: Collection[str]) -> None:
        """What the tests that ran last have changed, for those who can see it."""
        for file, names in watch.only_for(changed).items():
            keys = list(self._last_group)
            if file is not None:
                asking = asking_for(Path(file), self._spec.wanted, self._root)
                keys += [wanted.key for wanted in self._spec.wanted if wanted.key not in asking]
            self._write(keys, names)

    def _look_for_dependents(self, watch: LeakWatch) -> None:
        """Whose tests may have needed the others, which nothing that was changed would show."""
        keys = [wanted.key for wanted in self._spec.wanted]
        for file, needed in watch.dependents(self._test_files):
            if (file, *needed) in self._dependents:
                continue
            self._dependents.add((file, *needed))
            asking = keys if file is None else asking_for(Path(file), self._spec.wanted, self._root)
            self._write([key for key in keys if key not in asking], needed, from_start=True)

    def _look_at_what_is_large(self, *, in_test: bool = False) -> None:
        """What is not looked at between tests: nobody knows which of them changed it."""
        if self._watch is not None and (changed := self._watch.changes_since_start(in_test=in_test)):
            self._write([], changed, from_start=True)

    def _is_expected_path(self, entry: str) -> bool:
        """Whether pytest itself put the entry on ``sys.path`` for a file that it collected."""
        return entry in self._import_paths

    def _write(self, keys: list[str], changed: list[str], *, from_start: bool = False) -> None:
        self._journal.write(
            "leak", worker=self.worker, keys=keys, changed=changed[:20], from_start=from_start
        )


def _conftest_paths(config: pytest.Config) -> set[str]:
    """What pytest has put on ``sys.path`` for the conftests that are loaded by now."""
    files = (getattr(plugin, "__file__", None) or "" for plugin in config.pluginmanager.get_plugins())
    return {import_path(file) for file in files if os.path.basename(file) == "conftest.py"}


def _demands_coverage(config: pytest.Config) -> bool:
    """Whether pytest-cov fails a run whose tests cover too little."""
    options = getattr(config.pluginmanager.getplugin("_cov"), "options", None)
    return bool(getattr(options, "cov_fail_under", None))
