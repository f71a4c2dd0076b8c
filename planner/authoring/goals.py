"""What a goal asks for: its pieces and phases, the sort of work of each, and when phases are worth it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_GOAL = 20_000
"""Characters of a goal."""
MANY_TODOS = 15
"""Of more than so many todos phases are suggested."""
MANY_DOMAINS = 3
"""From so many different domains on phases are suggested."""
MAX_PIECES = 200

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(.+)$")
_NUMBERED = re.compile(r"^\s*\d{1,9}[.)]\s")
_PHASE = re.compile(r"^(?:phase|stage|milestone|step)\s+\w+\s*[:.–-]\s*(.+)$", re.IGNORECASE)
_TAB = 4

_TEMPLATES = (
    ("bugfix", r"fix(?:es|ed|ing)?|bugs?|crash\w*|regressions?|broken|repair\w*"),
    ("refactor", r"refactor\w*|restructur\w*|reorgani[sz]\w*|renam\w+|simplif\w+|optimi[sz]\w+|speed up"),
    ("migration", r"migrat\w*|port(?:ing|ed)? (?:to|from)|replac\w+ .+ (?:with|by)"),
    ("strategy", r"trading|backtest\w*|momentum|rsi|candle\w*|(?:entry|exit) conditions?"),
    ("service", r"services?|servers?|daemon|rest|grpc|web ?hooks?|endpoints?|http api|microservice"),
    ("library", r"library|package|sdk|client library"),
)
"""What words ask for which template; the first that fits, else a feature."""
_DOMAINS = {
    "storage": r"databases?|sql\w*|schema|storage|tables?|cache|persist\w*|files?",
    "interface": r"ui|frontend|pages?|html|css|browser|display|screens?|widgets?|forms?",
    "service": r"api|endpoints?|servers?|http|rest|grpc|backend|services?",
    "command line": r"cli|command[- ]line|commands?|terminal|options?",
    "operation": r"deploy\w*|docker\w*|kubernetes|ci|monitoring|release|packag\w+|install\w*",
    "security": r"auth\w*|login|permissions?|encrypt\w*|tokens?|secrets?",
    "data": r"import\w*|export\w*|csv|parquet|etl|pipelines?|training|models?|statistics",
    "documentation": r"docs?|documentation|guides?|tutorials?|manual",
}


@dataclass(slots=True, kw_only=True)
class Piece:
    """A part of a goal, with the parts below it."""

    title: str
    text: str = ""
    """What was written below the title."""
    is_phase: bool = False
    """Whether it was written as a heading or called a phase."""
    in_order: bool = False
    """Whether the parts below are numbered, so that each builds on the one before."""
    parts: list[Piece] = field(default_factory=list["Piece"])

    @property
    def goal(self) -> str:
        """The title and what belongs to it, for whoever works on the piece."""
        return f"{self.title}\n{self.text}".strip()

    def leaves(self) -> Iterator[Piece]:
        """Yield the parts without parts, in order."""
        for part in self.parts:
            yield from part.leaves()
        if not self.parts:
            yield self


def read_goal(goal: str) -> Piece:
    """Return the pieces of a goal: a sentence, sentences apart by semicolons, or a page of Markdown.

    Headings and items of lists are pieces, nested as they are; other lines belong to the piece above them.
    """
    lines = clean(goal, limit=LONGEST_GOAL).strip().splitlines()
    root = Piece(title="")
    above: list[tuple[float, Piece]] = [(-1.0, root)]
    depth_of_heading, count = 0.0, 0
    for raw in lines:
        line = raw.expandtabs(_TAB).rstrip()
        heading, item = _HEADING.match(line), _ITEM.match(line)
        if not line.strip():
            continue
        if (heading is None and item is None) or count >= MAX_PIECES:
            current = above[-1][1]
            if current is root and not root.title and count == 0:
                root.title = one_line(line, limit=LONGEST_GOAL)
            else:
                current.text = f"{current.text}\n{line.strip()}".strip()
            continue
        # Items stand below the last heading, the deeper indented the further below.
        if heading is not None:
            depth = depth_of_heading = float(len(heading[1]))
        else:
            assert item is not None
            depth = depth_of_heading + 1 + len(item[1]) / 100
        while above[-1][0] >= depth:
            above.pop()
        words = heading[2] if heading is not None else item[2] if item is not None else ""
        phase = _PHASE.match(words)
        piece = Piece(
            title=one_line(phase[1] if phase else words, limit=LONGEST_GOAL).strip("*` "),
            is_phase=heading is not None or phase is not None,
        )
        above[-1][1].parts.append(piece)
        above[-1][1].in_order |= _NUMBERED.match(line) is not None or piece.is_phase
        above.append((depth, piece))
        count += 1
    return _tidy(root)


def template_for(text: str) -> str:
    """Return the template for a piece of work, by its words."""
    return next((name for name, words in _TEMPLATES if _says(words, text)), "feature")


def reasons_for_phases(goal: Piece, todos: int) -> list[str]:
    """Return why a goal of so many todos should be planned in phases; none where a flat plan is better."""
    if len(goal.parts) < 2:
        return []
    reasons: list[str] = []
    if todos > MANY_TODOS:
        reasons.append(f"about {todos} todos, and more than {MANY_TODOS} are hard to overlook")
    if any(part.is_phase or part.parts for part in goal.parts):
        reasons.append("the goal is written in phases")
    domains = sorted(
        {name for each in goal.leaves() for name, words in _DOMAINS.items() if _says(words, each.title)}
    )
    if len(domains) >= MANY_DOMAINS and todos > 2 * MANY_DOMAINS:
        reasons.append(f"it spans several domains: {', '.join(domains)}")
    return reasons


def _tidy(root: Piece) -> Piece:
    """Return the goal: the only heading above all others is the goal itself, semicolons part a sentence."""
    if not root.title and len(root.parts) == 1:
        root = root.parts[0]
    root.title = root.title or "; ".join(each.title for each in root.parts)
    sentences = [each.strip(" .") for each in root.title.split(";") if each.strip(" .")]
    if not root.parts and len(sentences) > 1:
        root.parts = [Piece(title=each) for each in sentences]
    return root


def _says(words: str, text: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None
