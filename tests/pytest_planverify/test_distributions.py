"""What is remembered of installed distributions is what their metadata says, also when it has changed."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from pytest_planverify.observing import distributions


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sample_thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-thing\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[pytest11]\nsample = sample_thing\n")
    (folder / "RECORD").write_text("sample_thing.py,,\n")
    (tmp_path / "sample_thing.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(distributions, "_known", {})
    distributions.remember()
    return folder


def facts() -> tuple[str, list[str], list[str]]:
    (found,) = importlib.metadata.distributions(name="sample-thing")
    return (
        found.version,
        [each.name for each in found.entry_points],
        [str(each) for each in found.files or []],
    )


def test_what_is_remembered_is_what_would_be_read(installed: Path):
    usual = facts()

    with distributions.remembered_distributions():
        (found,) = importlib.metadata.distributions(name="sample-thing")
        assert found is next(iter(importlib.metadata.distributions(name="sample-thing")))
        assert facts() == usual == ("1.0", ["sample"], ["sample_thing.py"])
        assert len(list(importlib.metadata.distributions())) > 1

    assert found is not next(iter(importlib.metadata.distributions(name="sample-thing")))


def test_metadata_that_was_written_anew_is_read_anew(installed: Path):
    with distributions.remembered_distributions():
        assert facts()[:2] == ("1.0", ["sample"])
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-thing\nVersion: 2.0.1\n")
        (installed / "entry_points.txt").unlink()

        assert facts()[:2] == ("2.0.1", [])


def test_whoever_replaces_the_search_for_distributions_keeps_it_replaced(
    installed: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(importlib.metadata, "distributions", importlib.metadata.distributions)
    with distributions.remembered_distributions():
        importlib.metadata.distributions = list  # type: ignore[assignment]

    assert importlib.metadata.distributions is list
