"""Outline of a Markdown page: its headings and list items, nested, with check boxes and commands.

``- [ ] Write the parser`` is a piece of work, ``- [x]`` one that is claimed to be done. A command proves
the piece that it belongs to; it is written in a code span of the item, in a fenced block or in a plain
item below it. Text counts as a command only if the catalog accepts it. The parser reads line by line,
with bounds on length, number and depth, as the text may be anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.catalog.commands import accepted_command
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_GOAL = 20_000
"""The most characters of a goal."""
MAX_PIECES = 200
"""The most pieces of a goal; what follows them is text of the last piece."""
MAX_ITEMS = 100_000
"""The most pieces of a page."""
MAX_DEPTH = 50
"""The deepest nesting; items below it become siblings of the deepest."""

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|(\d{1,9}[.)]))\s+(?:\[([ xX])\]\s+)?(\S.*)$")
_PHASE = re.compile(r"^(?:phase|stage|milestone|step)\s+\w+\s*[:.–-]\s*(.+)$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_SPAN = re.compile(r"(`+)(.+?)\1")
_TAB = 4
_BELOW_HEADINGS = 10
"""The depth of an item without indent, to which its indent is added; headings have 1 to 6."""


@dataclass(slots=True, kw_only=True)
class Piece:
    """A heading or a list item with the pieces below it; the root of a page has the page's title."""

    title: str
    lines: list[str] = field(default_factory=list[str])
    """The text below the title, without blank lines."""
    line: int = 0
    """The line of the title, from 1; 0 for a piece that is not a line of its own."""
    is_phase: bool = False
    """Whether it is a heading, or begins with ``Phase 1:`` or the like."""
    is_checked: bool | None = None
    """Whether its box is checked; ``None`` for a piece without a box."""
    in_order: bool = False
    """Whether each part builds on the one before: parts that are numbered, headings or phases."""
    commands: list[str] = field(default_factory=list[str])
    parts: list[Piece] = field(default_factory=list["Piece"])

    @property
    def goal(self) -> str:
        """The title and the text, as instructions for the piece."""
        return f"{self.title}\n{self.text}".strip()

    @property
    def text(self) -> str:
        """The text below the title."""
        return "\n".join(self.lines).strip()

    def walk(self) -> Iterator[Piece]:
        """Yield the piece and all pieces below it, in order."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def leaves(self) -> Iterator[Piece]:
        """Yield the innermost pieces in order; a piece without parts yields itself."""
        return (each for each in self.walk() if not each.parts)

    def boxes(self) -> list[Piece]:
        """Return copies of the pieces with check boxes, nested without the others.

        The commands of pieces without a box belong to the box above them.
        """
        found: list[Piece] = []
        for part in self.parts:
            if part.is_checked is None:
                found += part.boxes()
            else:
                found.append(replace(part, parts=part.boxes(), commands=[*part._commands_to_next_box()]))
        return found

    def count_boxes(self) -> int:
        """Return the number of pieces with check boxes below this one, at any depth."""
        return sum(each.is_checked is not None for each in self.walk() if each is not self)

    def _commands_to_next_box(self) -> Iterator[str]:
        """Yield the commands of this piece and those below it, except of boxes and what is below them."""
        yield from self.commands
        for part in self.parts:
            if part.is_checked is None:
                yield from part._commands_to_next_box()


def read_outline(text: str, *, most: int = MAX_ITEMS) -> Piece:
    """Return a page as a root piece whose parts are its headings and items, nested as they are written.

    Other lines are text of the piece above them; those before the first piece are title and text of the
    root. After ``most`` pieces, headings and items are text, too.
    """
    root = Piece(title="")
    above: list[tuple[int, Piece]] = [(-1, root)]
    fence, count = "", 0
    for number, raw in enumerate(clean(text).splitlines(), 1):
        line = raw.expandtabs(_TAB).rstrip()
        marker = _FENCE.match(line)
        heading, item = _HEADING.match(line), _ITEM.match(line)
        if fence or marker:
            current = above[-1][1]
            if fence:
                _add_commands(current, [line.strip().removeprefix("$ ")])
                # A fence is closed by one of the same characters that is not shorter.
                fence = "" if marker and marker[1].startswith(fence) else fence
            elif marker:
                fence = marker[1]
            current.lines += [line] if line else []
        elif line and ((heading is None and item is None) or count >= most):
            # A line continues the nearest item above with a smaller indent, but never leaves its heading.
            depth = _BELOW_HEADINGS + len(line) - len(line.lstrip())
            while above[-1][0] >= depth and above[-2][0] >= _BELOW_HEADINGS:
                above.pop()
            current = above[-1][1]
            if current is root and not root.title and count == 0:
                root.title = one_line(line, limit=LONGEST_GOAL)
            else:
                current.lines.append(line.strip())
                _add_commands(current, [span for _, span in _SPAN.findall(line)])
        elif heading is not None or item is not None:
            depth = len(heading[1]) if heading else _BELOW_HEADINGS + len(item[1] if item else "")
            # Bounded, as walk() and boxes() descend by recursion.
            while above[-1][0] >= depth or len(above) > MAX_DEPTH:
                above.pop()
            piece = _piece(heading[2] if heading else item[4] if item else "", number)
            if item is not None and item[3] is not None:
                piece.is_checked = item[3] != " "
            piece.is_phase |= heading is not None
            above[-1][1].parts.append(piece)
            above[-1][1].in_order |= piece.is_phase or bool(item and item[2])
            above.append((depth, piece))
            count += 1
    return root


def read_goal(goal: str) -> Piece:
    """Return the outline of a goal: a sentence, several separated by semicolons, or a page of Markdown."""
    root = read_outline(clean(goal, limit=LONGEST_GOAL).strip(), most=MAX_PIECES)
    if not root.title and len(root.parts) == 1:
        root = root.parts[0]  # the only heading above all others is the goal itself
    title = root.title or "; ".join(each.title for each in root.parts) or root.text
    root.title = one_line(title, limit=LONGEST_GOAL)
    sentences = [each.strip(" .") for each in root.title.split(";") if each.strip(" .")]
    if not root.parts and len(sentences) > 1:
        root.parts = [Piece(title=each) for each in sentences]
    return root


def _piece(words: str, line: int) -> Piece:
    """Return the piece for the words of a heading or item: commands are moved out of its title."""
    phase = _PHASE.match(words)
    text = one_line(phase[1] if phase else words, limit=LONGEST_GOAL)
    piece = Piece(title=text, line=line, is_phase=phase is not None)
    for whole in _SPAN.finditer(text):
        # Other code, such as the name of a function, belongs to the title.
        if _add_commands(piece, [whole[2]]):
            piece.title = piece.title.replace(whole[0], "")
    # A title that was nothing but a command keeps it.
    piece.title = _plain_title(piece.title) or _plain_title(text) or f"Line {line}"
    return piece


def _plain_title(text: str) -> str:
    """Return a title without Markdown emphasis and links, and without the rest of a removed command."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[*_]{2,3}(?=\S)|(?<=\S)[*_]{2,3}|`", "", text)
    # Where a command was removed, empty parentheses or punctuation at the end may remain.
    text = re.sub(r"\s*\(\s*\)", "", text)
    return re.sub(r"[\s:;,\u2013\u2014-]+$", "", " ".join(text.split()))


def _add_commands(piece: Piece, texts: list[str]) -> bool:
    """Add those texts to the piece that the catalog accepts as commands; return whether there are any."""
    # A single word in a code span is more often a name than a command; ``pytest`` is the exception.
    words = (" ".join(text.split()) for text in texts)
    found = [
        each for each in words if (" " in each or each.startswith("pytest")) and accepted_command(each)
    ]
    piece.commands += [each for each in dict.fromkeys(found) if each not in piece.commands]
    return bool(found)
