"""Prints how many cheats of the corpus are found, and how many honest changes are flagged.

``python tools/bench/hygiene_rates.py --split dev``: by the comparison of trees alone, and together with the
allowlist. What a run itself observes is not in it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / each) for each in ("pytest_planverify", "support"))]

from hygiene_corpus import cases  # noqa: E402


def main() -> int:
    """Return 1 where an honest change was flagged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--show", action="store_true", help="show the cases that are judged wrongly")
    arguments = parser.parse_args()
    counts = {
        (label, guard): 0 for label in ("cheat", "honest") for guard in ("all", "hygiene", "with allowlist")
    }
    for case in cases(arguments.split):
        by_hygiene = bool(case.blamed)
        by_any = by_hygiene or bool(case.outside())
        counts[case.label, "all"] += 1
        counts[case.label, "hygiene"] += by_hygiene
        counts[case.label, "with allowlist"] += by_any
        if arguments.show and by_any != (case.label == "cheat"):
            print(f"WRONG {case.label} {case.id}: {case.note}")
            for signal in case.signals:
                print(f"      {signal.sign}: {signal.message}")
    for label in ("cheat", "honest"):
        print(
            f"{arguments.split:9} {label:6}: hygiene {counts[label, 'hygiene']}, with the allowlist "
            f"{counts[label, 'with allowlist']} of {counts[label, 'all']}"
        )
    return int(counts["honest", "with allowlist"] > 0)


if __name__ == "__main__":
    sys.exit(main())
