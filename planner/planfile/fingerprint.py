"""By what a repository is known again: what it says about itself, and how it is tested.

Two checkouts of one project have the same fingerprint; so has the project after any work that leaves its
manifests as they are. What is remembered of a repository with another fingerprint counts less.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from planner.catalog import Purpose, parse_command
from planner.errors import CommandSyntaxError
from planner.planfile.rooted_files import RootedFiles
from planner.policy.criteria import commands_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.model.plan import Plan

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod")
"""Files in which a project says what it is and what it is made of."""

_PREFIX = "sha256:"


def repository_fingerprint(root: Path, plan: Plan) -> str:
    """``sha256:`` and 64 hexadecimal digits, of the manifests in the root and the plan's test commands.

    A manifest that is missing, no ordinary file, or led out of the root by a link counts as absent; of a
    long one only the first MiB counts. Ends of lines are all alike. Of a test command its tool counts, not
    what it selects: every todo selects other tests of one repository. Without any command it is ``pytest``.
    """
    files = RootedFiles(root)
    told: dict[str, object] = {"commands": sorted(set(_testers(plan))) or ["pytest"]}
    for name in MANIFESTS:
        held = files.read(name)
        if held is not None:
            told[name] = [held.total_bytes > len(held.data), hashlib.sha256(_plain(held.data)).hexdigest()]
    return _PREFIX + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _testers(plan: Plan) -> Iterator[str]:
    for todo in plan.items:
        for _, spec in commands_of(todo):
            try:
                tool = parse_command(spec.cmd).tool
            except CommandSyntaxError:  # validation speaks of it, and nothing is run by it
                continue
            if tool.purpose is Purpose.TEST:
                yield tool.name


def _plain(data: bytes) -> bytes:
    return data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
