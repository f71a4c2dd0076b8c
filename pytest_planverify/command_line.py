"""Sorts the words that the user typed: plans, what narrows the run, and what each session is passed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_WORKERS = 64
PLAN_SUFFIXES = (".yaml", ".yml", ".json")

_FLAGS_LEFT_OUT = frozenset(
    {"--planverify", "--planverify-isolate", "--planverify-keep-going", "--planverify-resume"}
    | {"--planverify-recording", "--ff", "--failed-first", "--nf", "--new-first", "--sw", "--stepwise"}
    | {"--sw-skip", "--stepwise-skip", "--continue-on-collection-errors", "--cache-clear"}
)
"""Our own, and what would change which tests of a criterion run."""
_VALUES_LEFT_OUT = frozenset(
    {"--planverify-scope", "--planverify-outcomes", "--planverify-report", "--planverify-confirm"}
    | {"--planverify-confirm-seconds", "--planverify-baseline", "--planverify-worked"}
    | {"--planverify-baseline-file"}
)
_OF_XDIST = frozenset(
    {"--dist", "--maxprocesses", "--max-worker-restart", "--maxschedchunk", "--testrunuid"}
)
"""Options of pytest-xdist that say how it hands out tests; here criteria are handed out."""
_OTHER_MACHINES = frozenset({"--tx", "--px", "-d", "--rsyncdir", "-f", "--looponfail"})
_PATH_VALUES = frozenset(
    {"--rootdir", "-c", "--config-file", "--confcutdir", "--basetemp", "--ignore", "--log-file"}
)
_SHORT_VALUES = frozenset({"-k", "-m", "-n", "-c", "-p", "-o", "-W", "-r"})
_SPACED_VALUES = frozenset(
    {"--tb", "--dist", "--maxprocesses", "--cov-report", "--cov-fail-under", "--timeout", "--durations"}
    | {"--color", "--capture", "--pdbcls", "--cov"}
)


def looks_like_plan(word: str) -> bool:
    """Return whether a word of the command line names a plan, or a todo of one."""
    return word.partition("::")[0].endswith(PLAN_SUFFIXES)


def worker_count(text: str) -> int:
    """Return how many workers ``-n`` asks for. Raises :class:`pytest.UsageError`."""
    if text in ("auto", "logical"):
        return min(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            MOST_WORKERS,
        )
    if not text.isdecimal() or int(text) > MOST_WORKERS:
        raise pytest.UsageError(f"-n {text}: it is no number from 0 to {MOST_WORKERS}, nor auto")
    return max(int(text), 1)


class CommandLine:
    """The words that the user typed, each where it belongs once :meth:`sort` has walked them."""

    def __init__(self, words: Iterable[object], directory: Path, positional: Iterable[str]) -> None:
        """``positional`` are the words that pytest's own parser took for arguments."""
        self._words = [str(word) for word in words]
        self._directory = directory
        self._positional = frozenset(positional)
        self.plans: list[str] = []
        self.every: list[str] = []
        """Passed on to every worker."""
        self.collect_only = self.last_failed = False
        self.interactive = self.debugger = False
        self.workers = 1
        self.maxfail = 0
        self.keyword: str | None = None
        self.markexpr: str | None = None
        self.deselect: list[str] = []

    def sort(self) -> CommandLine:
        """Walk the words. Raises :class:`pytest.UsageError` for what cannot be meant."""
        while self._words:
            word = self._words.pop(0)
            if word.startswith("--"):
                name, equals, value = word.partition("=")
                if name != "--":
                    self._option(name, value if equals else None)
            elif word.startswith("-") and len(word) > 1:
                self._letters(word[1:])
            else:
                self._plan(word)
        return self

    def _letters(self, letters: str) -> None:
        """Take options of one letter that stand together; the value of one may stand behind it."""
        for at, letter in enumerate(letters, start=1):
            name, rest = f"-{letter}", letters[at:]
            if name in _SHORT_VALUES:
                self._option(name, rest.removeprefix("=") or self._next_word(name))
                return
            self._option(name, None)

    def _next_word(self, name: str) -> str:
        if not self._words:
            raise pytest.UsageError(f"{name} needs a value")
        return self._words.pop(0)

    def _option(self, name: str, given: str | None) -> None:
        """Take an option; ``given`` is the value that was written in the same word."""
        if name in _FLAGS_LEFT_OUT:
            return
        if name in _VALUES_LEFT_OUT:
            if given is None:
                self._next_word(name)
        elif name in _OTHER_MACHINES:
            raise pytest.UsageError(
                f"{name}: --planverify runs criteria on this machine; say how many at once with -n N"
            )
        elif name in ("-x", "--exitfirst"):
            self.maxfail = 1
        elif name in ("--lf", "--last-failed"):
            self.last_failed = True
        elif name in ("--co", "--collect-only", "--collectonly"):
            self.collect_only = True
        elif name in ("-s", "--pdb", "--trace"):
            self.interactive = True
            self.debugger = self.debugger or name != "-s"
            self.every.append(name)
        elif name in ("-k", "-m", "-n", "--deselect", "--maxfail", "--numprocesses"):
            self._set(name, given if given is not None else self._next_word(name))
        elif name in _PATH_VALUES:
            # Sessions run in the plan's root, so a path is made independent of the folder.
            path = str(self._directory / (given if given is not None else self._next_word(name)))
            self.every += [f"{name}={path}"] if name.startswith("--") else [name, path]
        elif name in _SHORT_VALUES:
            self.every += [name, str(given)]
        else:
            self._pass_on(name, given)

    def _set(self, name: str, value: str) -> None:
        if name == "-k":
            self.keyword = value
        elif name == "-m":
            self.markexpr = value
        elif name == "--deselect":
            self.deselect.append(value)
        elif name != "--maxfail":
            self.workers = worker_count(value)
        elif value.isdecimal():
            self.maxfail = int(value)
        else:
            raise pytest.UsageError(f"--maxfail: {value!r} is no number")

    def _pass_on(self, name: str, given: str | None) -> None:
        words = [name if given is None else f"{name}={given}"]
        if given is None and name.startswith("--") and self._takes_next(name):
            given = self._words.pop(0)
            words.append(given)
        if name == "--capture" and given == "no":
            self.interactive = True
        if name not in _OF_XDIST:
            self.every += words

    def _takes_next(self, name: str) -> bool:
        """Return whether the next word is this option's value, as pytest's own parser has understood it."""
        if not self._words or self._words[0].startswith("-"):
            return False
        following = self._words[0]
        if name in _SPACED_VALUES:
            return name != "--cov" or following not in self._positional
        return following not in self._positional or not looks_like_plan(following)

    def _plan(self, word: str) -> None:
        path = self._directory / word.partition("::")[0]
        if not looks_like_plan(word) and (path.suffix == ".py" or path.is_dir()):
            raise pytest.UsageError(
                f"{word}: this is no plan, and --planverify runs what plans name; narrow a run to a todo "
                "by PLAN::TODO, or by -k EXPRESSION"
            )
        if not looks_like_plan(word) and not path.exists():
            raise pytest.UsageError(
                f"{word}: no such plan; --planverify takes plan files (.yaml, .yml, .json), or one todo "
                "of a plan as plan.yaml::todo_id"
            )
        self.plans.append(word)
