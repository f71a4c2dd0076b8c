"""Run the benchmarks and print one table, each figure beside its target.

``python tools/bench/run_all.py [--rounds N] [NAME …]``; exits with 1 when a target is missed.
All figures are ratios or differences within one run, over interleaved rounds: medians of pairs where what
is compared is short. Where nothing else is said, the time is processor time of all processes of a command.
``packages`` needs a package index; pip's own settings, as ``PIP_FIND_LINKS``, name another one.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
import tempfile
from pathlib import Path

import pytest
from table import Row, render

BENCHMARKS = (
    "packages",
    "commands",
    "diagnosis",
    "many_tests",
    "unused",
    "plan_loading",
    "planner",
    "engine",
    "memory",
    "dashboard",
    "waves",
    "run",
    "learning",
    "reports",
    "design",
)
"""Each is a module ``bench_NAME`` with a function ``rows(folder, rounds)``."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each variant is run (default: 5)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")

    rows: list[Row] = []
    for name in options.names or BENCHMARKS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="planverify-bench-") as folder:
            rows += importlib.import_module(f"bench_{name}").rows(Path(folder).resolve(), options.rounds)
    print(f"Python {platform.python_version()}, pytest {pytest.__version__}, {options.rounds} rounds")
    print(render(rows))
    missed = [row.name for row in rows if not row.met]
    if missed:
        print(f"\n{len(missed)} of {len(rows)} figures miss their target: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
