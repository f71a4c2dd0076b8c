"""Sentences of a story, and the phrases that they are made of. Text from outside passes :func:`quoted`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.actions import Action

EVERYBODY = ("*",)
"""Concerns every todo of the run."""

_LONGEST_QUOTE = 200
_LONGEST_SENTENCE = 1_500
_MOST_NAMED = 8


class Sentence(NamedTuple):
    """One sentence about a run, clean and on one line."""

    text: str
    about: tuple[str, ...] = ()
    """The qualified ids of the todos that it concerns; of all of them :data:`EVERYBODY`."""
    rule: str | None = None
    """The rule that made what it tells of."""

    @property
    def with_rule(self) -> str:
        """The sentence, and the rule in brackets."""
        return self.text if self.rule is None else f"{self.text} [{self.rule}]"


def sentence(text: str, *about: str, rule: str | None = None) -> Sentence:
    """A sentence of these words, whatever is in them."""
    line = " ".join(clean(text).split())
    if len(line) > _LONGEST_SENTENCE:
        line = f"{line[:_LONGEST_SENTENCE].rstrip()} …"
    ended = line if line.endswith((".", "?", "!", "…", ".'", "?'")) else f"{line}."
    return Sentence(ended, about, None if rule is None else quoted(rule))


def because(action: Action) -> str:
    """Why an action was made, as the end of a sentence."""
    reason = " ".join(clean(action.because).split()).rstrip(".")
    return f", because {reason}" if reason else ""


def quoted(text: str) -> str:
    """Text from outside, clean, on one line and short."""
    line = " ".join(clean(text, limit=20 * _LONGEST_QUOTE).split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[: _LONGEST_QUOTE - 2].rstrip()} …"


def reason_given(text: str | None) -> str:
    """What a person said about it, as the end of a sentence."""
    return f": '{quoted(text)}'" if text and quoted(text) else ""


def somebody(by: str | None) -> str:
    """Who it was, at the beginning of a sentence."""
    return quoted(by) if by and quoted(by) else "A person"


def choices(options: Iterable[str]) -> str:
    """What may be answered, as the end of a sentence."""
    *some, last = [quoted(option) for option in options] or [""]
    return f" ({', '.join(some)} or {last})" if some else ""


def listed(names: Iterable[str]) -> str:
    """``a, b and c``; of many only the first."""
    known = [quoted(name) for name in names]
    if len(known) > _MOST_NAMED:
        return f"{', '.join(known[:_MOST_NAMED])} and {len(known) - _MOST_NAMED} more"
    return " and ".join(part for part in (", ".join(known[:-1]), known[-1] if known else "") if part)


def counted(count: int, noun: str) -> str:
    """``1 token``, ``2 tokens``."""
    plural = {"branch": "branches", "criterion": "criteria"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"


def amounts(*found: tuple[int | None, str]) -> str:
    """``1200 tokens and 2 cycles``, of what is not nothing."""
    return listed(counted(count, noun) for count, noun in found if count)
