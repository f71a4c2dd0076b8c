"""Who could have a say in the verdicts when the baseline was made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from planner.model.baseline import HookUse
from pytest_planverify.baseline.record import inventory_of


def test_it_names_plugins_hooks_and_what_the_environment_starts_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    for name in ("one.pth", "sitecustomize.py", "other.py"):
        (packages / name).write_text(name)
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr(sys, "path", [*sys.path, "", str(tmp_path / "nowhere")])
    inside = str(tmp_path / "root" / "conftest.py")
    records = [
        {
            "record": "session_inventory",
            "plugins": ["b", "a", 7],
            "hooks": [["pytest_x", inside], ["short"]],
        },
        {"record": "session_inventory", "plugins": None, "hooks": [["pytest_x", "/else/plug.py"], "odd"]},
        {"record": "test_started"},
    ]
    found = inventory_of(records, tmp_path / "root")
    assert found.plugins == ("a", "b")
    assert found.hooks == (
        HookUse(hook="pytest_x", file="/else/plug.py"),
        HookUse(hook="pytest_x", file="conftest.py"),
    )
    assert "planverify = pytest_planverify.plugin" in found.entry_points
    assert {Path(name).name for name in found.start_up if name.startswith(str(packages))} == {
        "one.pth",
        "sitecustomize.py",
    }
