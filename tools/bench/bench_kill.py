"""Kill ``planverify run`` at random moments, resume it, and compare the result with an unkilled run.

``python tools/bench/bench_kill.py [--kills N] [--jobs N] [--seed N]`` ends after N runs that were killed
before they finished, with exit status 1 if a result differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from killed_runs import fresh, run_killed, run_unkilled


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="how many runs are killed (default: 100)")
    parser.add_argument("--jobs", type=int, default=2, help="so many turns at the same time (default: 2)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    killed, differing, number = 0, 0, 0
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="planverify-bench-") as name:
        folder = Path(name).resolve()
        wanted, seconds = run_unkilled(fresh(folder / "unkilled"), options.jobs)
        print(f"unkilled: status {wanted.status}, {seconds:.1f} s", flush=True)
        while killed < options.kills:
            number += 1
            place, at = fresh(folder / "killed"), chance.random() * seconds
            try:
                got, was_killed = run_killed(place, options.jobs, at)
                problem = "" if got == wanted else f"{got} is not {wanted}"
            except AssertionError as error:
                was_killed, problem = True, str(error)
            killed += was_killed
            if not was_killed:  # the machine is faster than it was: the later moments are never reached
                seconds = at
            if problem:
                differing += 1
                print(
                    f"killed after {at:.2f} s: {problem}\n{(place / 'output.txt').read_text()}", flush=True
                )
    print(f"{killed} runs were killed before their end, {number - killed} were not; {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
