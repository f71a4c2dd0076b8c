"""Run the benchmarks and print one table, each figure beside its target.

``python tools/bench/run_all.py [--rounds N] [NAME …]`` exits with 1 if a target is missed. All figures are
ratios or differences within one run, over interleaved rounds, with medians of pairs if the compared runs
are short. Unless stated otherwise, times are the processor time of all processes of a command.
``packages`` needs a package index; pip's own settings, such as ``PIP_FIND_LINKS``, name another one.
"""

from __future__ import annotations

import argparse
import pkgutil
import platform
import sys
import tempfile
from pathlib import Path

import pytest
from measuring import Row, render

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(CHECKOUT),
    str(CHECKOUT / "tests" / "support"),
]  # some use the corpus and samples of tests

BENCHMARKS = {
    "packages": "bench_packages:rows",
    "commands": "bench_commands:commands",
    "many_tests": "bench_commands:many_tests_in_one_command",
    "unused": "bench_commands:unused",
    "diagnosis": "bench_diagnosis:rows",
    "plan_loading": "bench_planner:plan_loading",
    "planner": "bench_planner:planner",
    "waves": "bench_planner:waves_of_plans",
    "reports": "bench_planner:reports",
    "dashboard": "bench_planner:dashboard",
    "engine": "bench_engine:rows",
    "memory": "bench_memory:rows",
    "run": "bench_run:rows",
}
"""Module and function of each benchmark, which measures in a folder, each variant ``rounds`` times."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each variant is run (default: 5)")
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHMARKS.keys():
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")

    rows: list[Row] = []
    for name in options.names or BENCHMARKS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="planverify-bench-") as folder:
            measure = pkgutil.resolve_name(BENCHMARKS[name])
            rows += measure(Path(folder).resolve(), options.rounds)
    print(f"Python {platform.python_version()}, pytest {pytest.__version__}, {options.rounds} rounds")
    print(render(rows))
    missed = [row.name for row in rows if not row.met]
    if missed:
        print(f"\n{len(missed)} of {len(rows)} figures miss their target: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
