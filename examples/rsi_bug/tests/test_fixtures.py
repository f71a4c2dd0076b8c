"""The fixtures are what the script that makes them says, to the byte."""

from __future__ import annotations

import runpy
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def test_the_fixtures_can_be_made_again():
    made = runpy.run_path(str(FIXTURES / "make_sample.py"))["render"]()

    assert set(made) == {"sample_aapl.csv", "rsi_expected.json"}
    for name, text in made.items():
        assert (FIXTURES / name).read_bytes() == text.encode(), (
            f"run fixtures/make_sample.py: {name} is stale"
        )
