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
from planner.errors import PlannerError
from planner.planfile.loader import shown_path
from planner.planfile.project_files import read_regular
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 8 * 1024 * 1024
"""The size from which on files are refused."""
LONGEST_GOAL = 20_000
"""The most characters of a goal."""
MAX_PIECES = 10_000
"""The most pieces of a page; it is refused if it has more."""
MAX_DEPTH = 50
"""The deepest nesting; items below it become siblings of the deepest."""

_PIECE = re.compile(
    r"(?P<indent>\s*)(?:(?P<level>#{1,6})|[-*+]|(?P<number>\d{1,9}[.)]))\s+"
    r"(?:\[(?P<box>[ xX])\]\s+)?(?P<words>\S.*)"
)
_PHASE = re.compile(r"(?:phase|stage|milestone|step)\s+\w+\s*[:.–-]\s*(.+)", re.IGNORECASE)
_FENCE = re.compile(r"\s*(```+|~~~+)")
_SPAN = re.compile(r"(?<!`)(`++)(.+?)(?<!`)\1(?!`)")
_SHELLS = ("", "sh", "bash", "zsh", "shell", "console")
"""The languages of fences whose lines may be commands; in others, only those of the catalog are."""
_LIKE_COMMAND = re.compile(r"(?:\./)?[a-z][\w./-]* [^=(\s].*")
_LINK = re.compile(r"\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)")
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
    refused: list[str] = field(default_factory=list[str])
    """Code that looks like a command, but is none that the catalog accepts."""
    parts: list[Piece] = field(default_factory=list["Piece"])

    @property
    def goal(self) -> str:
        """The title and the text, as instructions for the piece."""
        return "\n".join([self.title, *self.lines]).strip()

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
        return self._split()[0]

    def _split(self) -> tuple[list[Piece], list[str]]:
        """Return the check boxes below this piece, and the commands that belong to it or a box above."""
        boxes: list[Piece] = []
        commands = list(self.commands)
        for part in self.parts:
            below, own = part._split()
            if part.is_checked is None:
                boxes += below
                commands += own
            else:
                boxes.append(replace(part, parts=below, commands=own))
        return boxes, commands


def read_bounded(path: Path) -> bytes:
    """Return the content of a file. Raises :class:`planner.errors.PlannerError`, also if it is large."""
    try:
        return read_regular(path, MAX_BYTES)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror}); name a readable file"
        raise PlannerError(f"{shown_path(path)}: {problem}") from None


def read_page(path: Path) -> Piece:
    """Return the outline of a Markdown file. Raises :class:`planner.errors.PlannerError`."""
    return read_outline(read_bounded(path).decode("utf-8", "replace"))


def read_outline(text: str) -> Piece:
    """Return a page as a root piece whose parts are its headings and items, nested as they are written.

    Other lines are text of the piece above them; those before the first piece are title and text of the
    root. Raises :class:`planner.errors.PlannerError` if it has more than ``MAX_PIECES``.
    """
    root = Piece(title="")
    above: list[tuple[int, Piece]] = [(-1, root)]
    fence, language, count = "", "", 0
    for number, raw in enumerate(clean(text).splitlines(), 1):
        line = raw.expandtabs(_TAB).rstrip()
        depth = _BELOW_HEADINGS + len(line) - len(line.lstrip())
        marker = _FENCE.match(line)
        found = None if fence or marker else _PIECE.fullmatch(line)
        if found is not None:
            depth = len(found["level"]) if found["level"] else depth
            # Bounded, as walk() and boxes() descend by recursion.
            while above[-1][0] >= depth or len(above) > MAX_DEPTH:
                above.pop()
            piece, parent = _piece(found, number), above[-1][1]
            parent.parts.append(piece)
            parent.in_order |= piece.is_phase or found["number"] is not None
            above.append((depth, piece))
            count += 1
            if count > MAX_PIECES:
                raise PlannerError(f"there are more than {MAX_PIECES:,} headings and items; split the page")
            continue
        texts = [span for _, span in _SPAN.findall(line)]
        if fence or marker:
            texts = [line.strip().removeprefix("$ ")] if fence else []
            # A fence is closed by one of the same characters that is not shorter.
            if marker:
                language = language if fence else line.strip().strip(marker[1][0]).strip()
                fence = "" if fence and marker[1].startswith(fence) else fence or marker[1]
        else:
            # A line continues the nearest item above with a smaller indent, but never leaves its heading.
            while line and above[-1][0] >= depth and above[-2][0] >= _BELOW_HEADINGS:
                above.pop()
            line = line.strip()
        current = above[-1][1]
        if not (root.title or root.parts or fence or marker):
            root.title = one_line(line, limit=LONGEST_GOAL)
        elif line:
            current.lines.append(line)
            _add_commands(current, texts, is_code=bool(fence) and language not in _SHELLS)
    return root


def read_goal(goal: str) -> Piece:
    """Return the outline of a goal: a sentence, several separated by semicolons, or a page of Markdown."""
    root = read_outline(clean(goal, limit=LONGEST_GOAL).strip())
    if not root.title and len(root.parts) == 1:
        root = root.parts[0]  # the only heading above all others is the goal itself
    title = root.title or "; ".join(each.title for each in root.parts) or root.goal
    root.title = one_line(title, limit=LONGEST_GOAL)
    sentences = [each.strip(" .") for each in root.title.split(";") if each.strip(" .")]
    if not root.parts and len(sentences) > 1:
        root.parts = [Piece(title=each) for each in sentences]
    return root


def _piece(found: re.Match[str], line: int) -> Piece:
    """Return the piece of a heading or item: commands are moved out of its title."""
    words = found["words"].rstrip("#").rstrip() if found["level"] else found["words"]
    phase = _PHASE.fullmatch(words)
    text = title = one_line(phase[1] if phase else words, limit=LONGEST_GOAL)
    piece = Piece(title="", line=line, is_phase=phase is not None or found["level"] is not None)
    if found["box"] is not None:
        piece.is_checked = found["box"] != " "
    for whole in _SPAN.finditer(text):
        # Other code, such as the name of a function, belongs to the title.
        is_subject = not whole.start() and text[whole.end() :].lstrip()[:1].isalpha()  # "`pytest` passes"
        if _add_commands(piece, [whole[2]]) and not is_subject:
            title = title.replace(whole[0], "")
    # A title that was nothing but a command keeps it.
    piece.title = _plain_title(title) or _plain_title(text) or f"Line {line}"
    return piece


def _plain_title(text: str) -> str:
    """Return a title without Markdown emphasis and links, and without the rest of a removed command."""
    text = _LINK.sub(r"\1", text)
    # Where a command was removed, empty parentheses or punctuation at the ends may remain. In code, nothing
    # is emphasis, and nowhere underscores are: most belong to names, such as __init__.py.
    text = re.sub(r"`([^`]*)`|\*{2,3}(?=\S)|(?<=\S)\*{2,3}|`|\s*\(\s*\)", r"\1", text)
    return " ".join(text.split()).lstrip(" :;,\u2013\u2014").rstrip(" :;,\u2013\u2014-")


def _add_commands(piece: Piece, texts: list[str], *, is_code: bool = False) -> bool:
    """Add those texts to the piece that the catalog accepts as commands; return whether there are any.

    Others that look like commands are added to ``refused``, unless they are code of another language.
    """
    # A single word in a code span is more often a name than a command; ``pytest`` is the exception.
    words = [" ".join(text.split()) for text in texts]
    found = [each for each in words if (" " in each or each[:6] == "pytest") and accepted_command(each)]
    piece.commands += [each for each in dict.fromkeys(found) if each not in piece.commands]
    if not is_code:
        piece.refused += [each for each in words if _LIKE_COMMAND.fullmatch(each) and each not in found]
    return bool(found)
