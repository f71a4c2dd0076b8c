"""Files that git ignores and Python imports: they are in no snapshot, and hide what is."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


def unseen(root: Path, known: Collection[str]) -> Iterator[Find]:
    """Packages that are imported instead of the module beside them; ``known`` are the files of the tree."""
    for path in sorted(known):
        if not path.endswith(".py") or path.startswith(("../", "/")):
            continue
        package = posixpath.join(path.removesuffix(".py"), "__init__.py")
        if (
            package not in known
            and posixpath.basename(path) != "__init__.py"
            and (root / package).is_file()
        ):
            said = f"{package} is ignored by git, and is imported instead of {path}"
            yield Find(sign="shadows-module", message=said, path=package)
