"""Ask for the diagnosis of a failure: plugins first, then the rules, then corrections by people."""

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
"""What people said of failures, in the folder ``.planverify``."""

MOST = 500
"""So many corrections are read, the newest."""

_LONGEST = 200


class Opinions:
    """Asks about the failures of one run, and keeps what a reader should know of the asking."""

    def __init__(self, pluginmanager: pytest.PytestPluginManager) -> None:
        self._plugins = pluginmanager
        self._notes: dict[str, None] = {}
        self._now = datetime.now(UTC)
        self._corrections: dict[Path, tuple[Correction, ...]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Plugins that broke or answered nonsense, and stores that could not be read: one line each."""
        return tuple(self._notes)

    def below(self, home: Path) -> Callable[[Evidence], Diagnosis]:
        """Return what asks about the failures of the plan whose ``.planverify`` folder it is."""
        return lambda evidence: self._of_plugins(evidence) or self._of_rules(evidence, home)

    def _of_rules(self, evidence: Evidence, home: Path) -> Diagnosis:
        from pytest_planverify.diagnosis import diagnose  # a green run does not pay for the rules
        from pytest_planverify.diagnosis.corrections import learned, may_learn

        diagnosis = diagnose(evidence)
        if not may_learn(diagnosis):
            return diagnosis
        return learned(diagnosis, self.corrections(home))

    def corrections(self, home: Path) -> tuple[Correction, ...]:
        """Return what people corrected, the newest first; read once a run.

        A log that cannot be read says nothing, and why is a note: no run fails for it.
        """
        file = home / FILE
        if home not in self._corrections:
            self._corrections[home] = ()
            if os.path.lexists(file):  # else nothing is imported for it
                from planner.errors import LogError
                from planner.store.corrections import read_corrections

                try:
                    self._corrections[home] = read_corrections(file, self._now, MOST)
                except LogError as error:
                    self._notes[f"nothing was learned from corrections: {error}"] = None
        return self._corrections[home]

    def _of_plugins(self, evidence: Evidence) -> Diagnosis | None:
        """Return the first answer of a plugin; one that breaks or answers nonsense is passed over.

        The implementations are called one by one, as pluggy would not tell which of them raised.
        """
        for each in reversed(getattr(self._plugins.hook, HOOK).get_hookimpls()):
            if each.wrapper or each.hookwrapper:
                continue
            try:
                answer = each.function(*(evidence for _ in each.argnames))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a plugin that leaves the process would lose the failure
                said = clean(f"{type(error).__name__}: {error}", limit=_LONGEST)
                self._note(each.plugin, f"raised {' '.join(said.split())}")
                continue
            if answer is None:
                continue
            if not isinstance(answer, Diagnosis):
                kind = clean(type(answer).__name__, limit=_LONGEST)
                self._note(each.plugin, f"returned {kind}, which is no Diagnosis")
                continue
            try:
                return Diagnosis.model_validate(answer.model_dump(warnings=False))
            except (ValueError, TypeError, AttributeError):
                self._note(each.plugin, "returned a Diagnosis with fields that cannot be")
        return None

    def _note(self, plugin: object, what: str) -> None:
        name = clean(self._plugins.get_name(plugin) or "", limit=_LONGEST)
        self._notes[
            f"the plugin {name} {what} in {HOOK} and was passed over; "
            f"fix it, or leave it out with -p no:{name}"
        ] = None
