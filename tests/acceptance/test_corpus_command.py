"""The report on a corpus as a developer starts it: on a small corpus, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
RECORDED = CHECKOUT / "fixtures" / "evidence"
TRUTH = {
    "command-mypy-complains": ("TYPE_ERROR", "product"),
    "session-segfault": ("TEST_CRASH", "product"),
    "session-option-of-absent-plugin": ("ENVIRONMENT_ERROR", "environment"),
}


def test_the_report_tells_how_well_three_cases_are_diagnosed(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "id": name,
                "group": "decoy",
                "origin": {"package": name, "kind": name},
                "gates": {"green_before": True, "red_runs": 3, "runs": 3},
                "label": {"category": category, "owner": owner},
                "evidence": json.loads((RECORDED / f"{name}.json").read_text())["evidence"],
            }
        )
        for name, (category, owner) in TRUTH.items()
    ]
    for part in ("develop", "test"):
        folder = tmp_path / "fixtures" / "corpus" / part
        folder.mkdir(parents=True)
        (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "pytest_planverify.corpus", "report", "--json", "figures.json"]
    variables = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Part test of the corpus" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["systems"][0]["figures"]["macro_f1"] == 1.0
