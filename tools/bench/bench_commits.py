"""Compare the commits of real projects as if each were the work of one todo, and list the hygiene signals.

``python tools/bench/bench_commits.py [--commits N] [--seed N] CLONE …`` needs clones with their history. A
commit counts if it changes Python files other than tests; its parent is the baseline. The commits are taken
to be honest, so a signal about the product is a false one. Signals about tests are right: these commits do
delete tests, skip them, or let them assert less, which the todo of a plan may not without permission.
"""

from __future__ import annotations

import argparse
import io
import random
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from hygiene_samples import HeldFiles

from pytest_planverify.baseline.work_tree import Judges
from pytest_planverify.guards.hygiene.compare import compare
from pytest_planverify.guards.hygiene.grants import Grants, TodoReach

LARGEST = 400_000
"""Bytes; larger files are left out."""
OF_TESTS = frozenset(
    {"test-deleted", "test-skipped", "assertions-fewer", "assertion-void", "assertion-swallowed",
     "configuration-narrowed", "outcome-hook"}
)  # fmt: skip
"""Signals that these commits give rise to rightly."""


def git(clone: Path, *words: str) -> bytes:
    """Return the output of a git command in a clone; empty if it fails."""
    return subprocess.run(["git", *words], cwd=clone, capture_output=True, check=False).stdout


def tree_of(clone: Path, commit: str) -> HeldFiles:
    """Return the files of a commit."""
    with tarfile.open(fileobj=io.BytesIO(git(clone, "archive", commit))) as archive:
        members = [each for each in archive.getmembers() if each.isfile() and each.size <= LARGEST]
        contents = ((each.name, archive.extractfile(each)) for each in members)
        return HeldFiles({name: file.read() for name, file in contents if file is not None})


def commits_of(clone: Path, most: int, seed: int) -> list[str]:
    """Return a random sample of the commits that change Python files other than tests."""
    found: list[str] = []
    commits = git(clone, "rev-list", "--no-merges", "--min-parents=1", "HEAD").decode().split()
    random.Random(seed).shuffle(commits)
    for commit in commits:
        changed = (
            git(clone, "diff-tree", "-r", "--name-only", "--no-commit-id", commit).decode().split("\n")
        )
        if any(name.endswith(".py") and "test" not in name for name in changed):
            found.append(commit)
        if len(found) == most:
            break
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clones", nargs="+", type=Path, metavar="CLONE")
    parser.add_argument("--commits", type=int, default=250, help="how many of each clone (default: 250)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total, false = 0, 0
    grants = Grants(todos=(TodoReach(todo_id="work", allowed_files=("**",), selections=()),))
    for clone in options.clones:
        started, signs = time.monotonic(), Counter[str]()
        commits = commits_of(clone, options.commits, options.seed)
        for commit in commits:
            before, now = tree_of(clone, f"{commit}^"), tree_of(clone, commit)
            kinds = {path: Judges(data=frozenset()).kind_of(path) for path in before.digests()}
            found = compare(before, now, kinds=kinds, grants=grants, is_red=lambda _: True)
            signs.update(each.sign for each in found)
            wrong = [each for each in found if each.sign not in OF_TESTS]
            false += bool(wrong)
            for each in wrong:
                print(f"{clone} {commit[:10]} {each.sign}: {each.message}", flush=True)
        total += len(commits)
        told = ", ".join(f"{count} {sign}" for sign, count in signs.most_common()) or "no signal"
        print(f"{clone}: {len(commits)} commits, {told}, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{false} of {total} commits have a signal about the product")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
