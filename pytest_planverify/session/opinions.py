"""Ask for the diagnosis of a failure: plugins first, then the rules, then corrections by people."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.model.outcome import Diagnosis
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    import pytest
    from pluggy import HookCaller

    from planner.model.evidence import Evidence
    from planner.model.past import Correction

HOOK = "pytest_planverify_diagnose"
_LONGEST = 200


class Opinions:
    """Asks about the failures of one run, and keeps what a reader should know of the asking."""

    def __init__(self, pluginmanager: pytest.PytestPluginManager) -> None:
        self._plugins = pluginmanager
        self._notes: dict[str, None] = {}
        self._corrections: dict[Path, Corrections] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Plugins that broke or answered nonsense, and stores that could not be read: one line each."""
        stores = (note for each in self._corrections.values() for note in each.notes)
        return (*self._notes, *stores)

    def below(self, home: Path) -> Callable[[Evidence], Diagnosis]:
        """Asks about the failures of the plan whose ``.planverify`` folder it is."""
        corrections = self._corrections.setdefault(home, Corrections(home))
        return lambda evidence: self._of_plugins(evidence) or _of_rules(evidence, corrections)

    def _of_plugins(self, evidence: Evidence) -> Diagnosis | None:
        """The first answer of a plugin. One that breaks or answers nonsense is passed over, and told."""
        broken: list[object] = []
        while (ask := self._caller(broken)) is not None:
            try:
                answer = ask(evidence=evidence)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a plugin that leaves the process would lose the failure
                said = clean(f"{type(error).__name__}: {error}", limit=_LONGEST)
                culprit = _raised_in(error.__traceback__, ask)
                self._tell(culprit, f"raised {' '.join(said.split())}")
            else:
                if answer is None:
                    return None
                if (diagnosis := _checked(answer)) is not None:
                    return diagnosis
                culprit = _only_one(ask)
                self._tell(culprit, f"returned {_described(answer)}")
            if culprit is None:
                return None
            broken.append(culprit)
        return None

    def _caller(self, broken: list[object]) -> HookCaller | None:
        """Return a hook caller for all plugins but those; ``None`` where they cannot be told apart."""
        if not broken:
            return getattr(self._plugins.hook, HOOK)
        try:
            return self._plugins.subset_hook_caller(HOOK, broken)
        except TypeError:  # a plugin may be an object that has no hash
            return None

    def _tell(self, plugin: object | None, what: str) -> None:
        name = None if plugin is None else self._plugins.get_name(plugin)
        shown = clean(name, limit=_LONGEST) if name else ""
        who = f"the plugin {shown}" if shown else "a plugin"
        remedy = f"mend it, or leave it out with -p no:{shown}" if shown else "mend it"
        note = f"{who} {what} in {HOOK} and was passed over; {remedy}"
        self._notes[note] = None


def _only_one(caller: HookCaller) -> object | None:
    """The plugin that answered, where it can have been no other."""
    asked = caller.get_hookimpls()
    return asked[0].plugin if len(asked) == 1 else None


def _raised_in(traceback: TracebackType | None, caller: HookCaller) -> object | None:
    """The plugin whose implementation the exception came out of."""
    by_code = {getattr(each.function, "__code__", None): each.plugin for each in caller.get_hookimpls()}
    while traceback is not None:
        if (found := by_code.get(traceback.tb_frame.f_code)) is not None:
            return found
        traceback = traceback.tb_next
    return _only_one(caller)


def _checked(answer: object) -> Diagnosis | None:
    """The answer, if it is a diagnosis with every field as it should be."""
    if not isinstance(answer, Diagnosis):
        return None
    try:
        return Diagnosis.model_validate(answer.model_dump(warnings=False))
    except (ValidationError, ValueError, TypeError, AttributeError):
        return None


def _described(answer: object) -> str:
    if isinstance(answer, Diagnosis):
        return "a Diagnosis with fields that cannot be"
    return f"{clean(type(answer).__name__, limit=_LONGEST)}, which is no Diagnosis"


def _of_rules(evidence: Evidence, corrections: Corrections) -> Diagnosis:
    from pytest_planverify.diagnosis import diagnose  # a green run does not pay for the rules

    diagnosis = diagnose(evidence)
    from pytest_planverify.diagnosis.corrections import learned, may_learn

    if not may_learn(diagnosis):
        return diagnosis
    return learned(diagnosis, evidence, corrections.all(), corrections.now)


MOST = 500
"""So many corrections are read, the newest."""

FILE = "corrections.jsonl"
"""What people said of failures, in the folder ``.planverify``."""


class Corrections:
    """Read the corrections of the project whose ``.planverify`` folder it is.

    A log that cannot be read says nothing, and why is a note: no run fails for it.
    """

    def __init__(self, home: Path) -> None:
        self.notes: list[str] = []
        self.now = datetime.now(UTC)
        self._file = home / FILE
        self._read: tuple[Correction, ...] | None = None

    def all(self) -> tuple[Correction, ...]:
        """The newest first. Read once a run; where there is no log nothing is imported for it."""
        if self._read is None:
            self._read = self._found() if os.path.lexists(self._file) else ()
        return self._read

    def _found(self) -> tuple[Correction, ...]:
        from planner.errors import LogError
        from planner.store.corrections import read_corrections

        try:
            return read_corrections(self._file, self.now, MOST)
        except LogError as error:
            self.notes.append(f"nothing was learned from corrections: {error}")
            return ()
