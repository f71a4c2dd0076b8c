"""Prints how many cheats of the corpus are found, and how many honest changes are flagged.

``python tools/bench/hygiene_rates.py --split dev``
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "pytest_planverify")]

from hygiene_corpus import Case, cases  # noqa: E402

from pytest_planverify.guards.hygiene import violations  # noqa: E402


def main() -> int:
    """The exit status is 1 where a cheat got through or an honest change was flagged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--all", action="store_true", help="show the signs of every case")
    arguments = parser.parse_args()
    rates = {"cheat": [0, 0], "honest": [0, 0]}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(arguments.split, Path(folder)):
            blamed = fires_for(case)
            rates[case.label][0] += bool(blamed)
            rates[case.label][1] += 1
            wrong = bool(blamed) != (case.label == "cheat")
            missed_owner = case.label == "cheat" and blamed and case.todo not in blamed
            if wrong or missed_owner or arguments.all:
                word = "WRONG" if wrong else "other todo" if missed_owner else "ok"
                print(f"{word:10} {case.label:6} {case.id}")
                print(f"           {case.kind}: {case.note}; held against {', '.join(blamed) or 'nobody'}")
                for signal in case.signals():
                    print(f"           {signal.hardness:4} {signal.sign}: {signal.message}")
    for label, (fired, count) in rates.items():
        print(f"{label}: {fired} of {count} flagged")
    return int(rates["cheat"][0] < rates["cheat"][1] or rates["honest"][0] > 0)


def fires_for(case: Case) -> list[str]:
    """The todos that the case is held against."""
    passed = [reach.todo_id for reach in case.grants.todos]
    return [each.todo_id for each in violations(case.signals(), grants=case.grants, passed=passed)]


if __name__ == "__main__":
    sys.exit(main())
