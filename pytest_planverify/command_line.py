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

_OWN_FLAGS = frozenset(
    {"--planverify", "--planverify-isolate", "--planverify-keep-going", "--planverify-resume"}
    | {"--planverify-recording"}
)
_OWN_VALUES = frozenset(
    {
        "--planverify-scope",
        "--planverify-outcomes",
        "--planverify-report",
        "--planverify-confirm",
        "--planverify-confirm-seconds",
        "--planverify-baseline",
        "--planverify-worked",
        "--planverify-baseline-file",
    }
)
_DROPPED_FLAGS = frozenset(
    {"--ff", "--failed-first", "--nf", "--new-first", "--sw", "--stepwise", "--sw-skip", "--stepwise-skip"}
    | {"--continue-on-collection-errors", "--cache-clear"}
)
_PATH_VALUES = frozenset(
    {"--rootdir", "-c", "--config-file", "--confcutdir", "--basetemp", "--ignore", "--log-file"}
)
_DEBUGGER_FLAGS = frozenset({"--pdb", "--trace"})
_SELECTION_VALUES = frozenset({"-k", "-m", "--deselect", "--maxfail"})
_SPACED_VALUES = frozenset(
    {"-p", "-o", "-W", "-r", "--tb", "--dist", "-n", "--numprocesses", "--maxprocesses", "--cov-report"}
    | {"--cov-fail-under", "--timeout", "--durations", "--color", "--capture", "--pdbcls", "--tx", "--cov"}
)
_OF_XDIST = frozenset(
    {"--dist", "--maxprocesses", "--max-worker-restart", "--maxschedchunk", "--testrunuid"}
)
"""Options of pytest-xdist that say how it hands out tests; here criteria are handed out."""
_OTHER_MACHINES = frozenset({"--tx", "--px", "-d", "--rsyncdir", "-f", "--looponfail"})


def looks_like_plan(word: str) -> bool:
    """Whether a word of the command line names a plan, or a todo of one."""
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
            if word == "--":
                continue
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and len(word) > 1:
                self._short(word)
            else:
                self._positional_word(word)
        return self

    def _value(self, name: str) -> str:
        if not self._words:
            raise pytest.UsageError(f"{name} needs a value")
        return self._words.pop(0)

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        if name in _OWN_FLAGS:
            return
        if name in _OWN_VALUES:
            if not equals:
                self._value(name)
        elif name in _SELECTION_VALUES:
            self._select(name, value if equals else self._value(name))
        elif name == "--exitfirst":
            self.maxfail = 1
        elif name in ("--lf", "--last-failed"):
            self.last_failed = True
        elif name in ("--co", "--collect-only", "--collectonly"):
            self.collect_only = True
        elif name in _DEBUGGER_FLAGS:
            self.debugger = self.interactive = True
            self.every.append(word)
        elif name in _PATH_VALUES:
            self.every += self._absolute(name, value if equals else self._value(name))
        elif name not in _DROPPED_FLAGS:
            self._pass_on(name, word, equals)

    def _pass_on(self, name: str, word: str, equals: str) -> None:
        words = [word]
        if not equals and self._takes_next(name):
            words.append(self._value(name))
        value = words[-1].partition("=")[2] if equals else words[-1]
        if name == "--capture" and value == "no":
            self.interactive = True
        if name in _OTHER_MACHINES:
            self._refuse_other_machines(name)
        if name == "--numprocesses":
            self.workers = worker_count(value)
        elif name not in _OF_XDIST:
            self.every.extend(words)

    def _refuse_other_machines(self, name: str) -> None:
        raise pytest.UsageError(
            f"{name}: --planverify runs criteria on this machine; say how many at once with -n N"
        )

    def _takes_next(self, name: str) -> bool:
        """Whether the next word is this option's value, as pytest's own parser has understood it."""
        if not self._words or self._words[0].startswith("-"):
            return False
        following = self._words[0]
        if name in _SPACED_VALUES:
            return name != "--cov" or following not in self._positional
        return following not in self._positional or not looks_like_plan(following)

    def _short(self, word: str) -> None:
        for index, letter in enumerate(word[1:], start=1):
            name, rest = f"-{letter}", word[index + 1 :]
            if letter == "x":
                self.maxfail = 1
            elif letter == "s":
                self.interactive = True
                self.every.append(name)
            elif name in ("-k", "-m"):
                self._select(name, rest.removeprefix("=") or self._value(name))
                return
            elif name in _OTHER_MACHINES:
                self._refuse_other_machines(name)
            elif name == "-n":
                self.workers = worker_count(rest.removeprefix("=") or self._value(name))
                return
            elif name == "-c":
                self.every += self._absolute(name, rest.removeprefix("=") or self._value(name))
                return
            elif name in ("-p", "-o", "-W", "-r"):
                self.every += [name, rest or self._value(name)]
                return
            else:
                self.every.append(name)

    def _select(self, name: str, value: str) -> None:
        if name == "-k":
            self.keyword = value
        elif name == "-m":
            self.markexpr = value
        elif name == "--deselect":
            self.deselect.append(value)
        elif not value.isdecimal():
            raise pytest.UsageError(f"--maxfail: {value!r} is no number")
        else:
            self.maxfail = int(value)

    def _absolute(self, name: str, value: str) -> list[str]:
        """Sessions run in the plan's root, so a path given here is made independent of the folder."""
        return (
            [f"{name}={self._directory / value}"]
            if name.startswith("--")
            else [name, str(self._directory / value)]
        )

    def _positional_word(self, word: str) -> None:
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
