"""Diagnosis of failures: plugins are asked first, then the rules, then people's corrections apply."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.model.outcome import Diagnosis
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from planner.model.evidence import Evidence
    from planner.model.past import Correction

HOOK = "pytest_planverify_diagnose"
FILE = "corrections.jsonl"
"""File of people's corrections in the ``.planverify`` folder."""

MOST = 500
"""Number of newest corrections that are read."""

_LONGEST = 200


class Opinions:
    """Diagnoses the failures of a run, and collects notes about plugins and stores that failed."""

    def __init__(self, pluginmanager: pytest.PytestPluginManager) -> None:
        self._plugins = pluginmanager
        self._notes: dict[str, None] = {}
        self._now = datetime.now(UTC)
        self._corrections: dict[Path, tuple[Correction, ...]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """One line each on plugins that raised or returned nonsense, and on unreadable stores."""
        return tuple(self._notes)

    def below(self, home: Path) -> Callable[[Evidence], Diagnosis]:
        """Return the function that diagnoses failures of the plan with that ``.planverify`` folder."""
        return lambda evidence: self._ask_plugins(evidence) or self._apply_rules(evidence, home)

    def _apply_rules(self, evidence: Evidence, home: Path) -> Diagnosis:
        from pytest_planverify.diagnosis import diagnose  # imported late: a passing run needs no rules
        from pytest_planverify.diagnosis.corrections import learned, may_learn

        diagnosis = diagnose(evidence)
        if not may_learn(diagnosis):
            return diagnosis
        return learned(diagnosis, self.corrections(home))

    def corrections(self, home: Path) -> tuple[Correction, ...]:
        """Return people's corrections, newest first; read once per run.

        An unreadable log counts as empty and becomes a note; it never fails a run.
        """
        file = home / FILE
        if home not in self._corrections:
            self._corrections[home] = ()
            if os.path.lexists(file):  # else spare the imports
                from planner.errors import LogError
                from planner.store.corrections import read_corrections

                try:
                    self._corrections[home] = read_corrections(file, self._now, MOST)
                except LogError as error:
                    self._notes[f"corrections were not used: {error}"] = None
        return self._corrections[home]

    def _ask_plugins(self, evidence: Evidence) -> Diagnosis | None:
        """Return the first diagnosis of a plugin; one that raises or returns nonsense is skipped.

        Implementations are called one by one, as pluggy would not tell which one raised.
        """
        for each in reversed(getattr(self._plugins.hook, HOOK).get_hookimpls()):
            if each.wrapper or each.hookwrapper:
                continue
            try:
                answer = each.function(*(evidence for _ in each.argnames))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit of a plugin would lose the failure
                text = clean(f"{type(error).__name__}: {error}", limit=_LONGEST)
                self._note(each.plugin, f"raised {' '.join(text.split())}")
                continue
            if answer is None:
                continue
            if not isinstance(answer, Diagnosis):
                kind = clean(type(answer).__name__, limit=_LONGEST)
                self._note(each.plugin, f"returned {kind}, which is not a Diagnosis")
                continue
            try:
                return Diagnosis.model_validate(answer.model_dump(warnings=False))
            except (ValueError, TypeError, AttributeError):
                self._note(each.plugin, "returned a Diagnosis with invalid fields")
        return None

    def _note(self, plugin: object, what: str) -> None:
        name = clean(self._plugins.get_name(plugin) or "", limit=_LONGEST)
        self._notes[
            f"the plugin {name} {what} in {HOOK} and was ignored; fix it, or disable it with -p no:{name}"
        ] = None
