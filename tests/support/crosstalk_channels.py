"""Ways in which one test can reach another, as `fixtures/crosstalk/channels.yaml` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

LIST = Path(__file__).parents[2] / "fixtures/crosstalk/channels.yaml"


@dataclass(frozen=True, slots=True)
class Channel:
    """One kind of state that outlives a test."""

    name: str
    disturb: str
    """Statements that change it."""
    disturbed: str
    """An expression: whether it was changed. It is false in a fresh process."""
    product: str | None = None
    """The text of the product module, if the state lies in one."""

    def code(self, text: str, number: int) -> str:
        """A text of this channel, for one use of it."""
        return text.strip("\n").replace("PROD", f"prod_{number}").replace("TAG", f"tag{number}")

    def files(self, number: int) -> dict[str, str]:
        """The product module, and what else the texts name."""
        tag = f"tag{number}"
        used = self.code(self.disturb, number) + self.code(self.disturbed, number)
        files = {
            f"{tag}_keep.py": f"import prod_{number}\nclass K(prod_{number}.B): pass\n",
            f"shared_{tag}.py": "import pytest\nKEY = pytest.StashKey()\n",
        }
        found = {path: text for path, text in files.items() if path.removesuffix(".py") in used}
        if self.product is not None:
            found[f"prod_{number}.py"] = self.code(self.product, number) + "\n"
        return found

    def importing(self, number: int) -> str:
        """The statement by which a test gets at the product module."""
        return "" if self.product is None else f"import prod_{number}\n"


def _read() -> dict[str, Channel]:
    groups: dict[str, dict[str, dict[str, str]]] = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    return {name: Channel(name, **texts) for group in groups.values() for name, texts in group.items()}


CHANNELS = _read()
