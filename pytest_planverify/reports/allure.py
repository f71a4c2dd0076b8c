"""One folder of Allure results out of those of several workers, each test in it once.

allure-pytest writes a file a test, a file a fixture, and attachments, while tests run; so each worker has a
folder of its own. Two results of one ``historyId`` would be shown as a retry, of which the later hides the
earlier: of several criteria that ran a test, the first counts, unless only a later one is red.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_RED = frozenset({"failed", "broken"})


def merge_allure_results(parts: Iterable[Path], target: Path, *, clean: bool) -> None:
    """Move what the workers wrote to ``target``, which is emptied first where it is to be ``clean``.

    Raises ``OSError`` where the folder cannot be written.
    """
    folders = [part for part in parts if part.is_dir()]
    if clean:
        shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, tuple[Path, bool]] = {}
    results: list[tuple[Path, Path, dict[str, Any]]] = []
    for folder in folders:
        for path in sorted(folder.glob("*-result.json")):
            result = json.loads(path.read_text(encoding="utf-8"))
            results.append((folder, path, result))
    for folder, _, result in results:
        test, red = _test(result), result.get("status") in _RED
        if test not in chosen or (red and not chosen[test][1] and chosen[test][0] != folder):
            chosen[test] = (folder, red)
        elif chosen[test][0] == folder:  # rerun by the worker itself
            chosen[test] = (folder, chosen[test][1] or red)
    for folder, path, result in results:
        if chosen[_test(result)][0] != folder:
            path.unlink()
    for folder in folders:
        for path in sorted(folder.iterdir()):
            shutil.move(path, target / path.name)


def _test(result: dict[str, Any]) -> str:
    """Return what Allure knows a test by: its name and parameters."""
    return str(result.get("historyId") or result.get("fullName") or result.get("uuid"))
