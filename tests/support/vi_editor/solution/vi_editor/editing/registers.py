"""Registers: what was deleted or yanked, to be put somewhere else."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, and whether it is whole lines."""

    text: str
    linewise: bool = False


@dataclass(slots=True)
class Registers:
    """The unnamed register and those from ``a`` to ``z``; a capital letter appends."""

    pieces: dict[str, Piece] = field(default_factory=dict[str, Piece])

    def store(self, piece: Piece, name: str = '"') -> None:
        """Keep a piece under a name, and as the unnamed one. Raises ``ValueError``."""
        if name != '"' and not (name.isascii() and name.isalpha()):
            raise ValueError(f"there is no register {name}")
        before = self.pieces.get(name.lower())
        if name.isupper() and before is not None:
            separator = "\n" if before.linewise or piece.linewise else ""
            text = f"{before.text}{separator}{piece.text}"
            piece = Piece(text, before.linewise or piece.linewise)
        self.pieces[name.lower()] = self.pieces['"'] = piece

    def fetch(self, name: str = '"') -> Piece:
        """Return what is kept. Raises ``KeyError`` where nothing is."""
        if name.lower() not in self.pieces:
            raise KeyError(f"nothing in register {name}")
        return self.pieces[name.lower()]
