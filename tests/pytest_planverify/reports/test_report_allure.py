"""Allure's folder has each test once, with all that belongs to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_planverify.reports.reporter_session import merge_allure_results


def write(folder: Path, name: str, test: str, status: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    result = {"uuid": name, "historyId": test, "status": status}
    (folder / f"{name}-result.json").write_text(json.dumps(result))


def merged(target: Path) -> list[str]:
    return sorted(path.name.removesuffix("-result.json") for path in target.glob("*-result.json"))


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("passed", "passed", "a"),
        ("passed", "failed", "b"),
        ("failed", "passed", "a"),
        ("broken", "failed", "a"),
        ("skipped", "passed", "a"),
    ],
)
def test_the_first_result_of_a_test_counts_unless_only_a_later_is_red(
    tmp_path: Path, first: str, second: str, kept: str
) -> None:
    write(tmp_path / "c1", "a", "test", first)
    write(tmp_path / "c2", "b", "test", second)

    merge_allure_results(
        [tmp_path / "c1", tmp_path / "c2", tmp_path / "none"], tmp_path / "all", clean=False
    )

    assert merged(tmp_path / "all") == [kept]


def test_reruns_of_one_worker_stay_together(tmp_path: Path) -> None:
    write(tmp_path / "c1", "a1", "test", "failed")
    write(tmp_path / "c1", "a2", "test", "passed")
    write(tmp_path / "c2", "b", "test", "passed")

    merge_allure_results([tmp_path / "c1", tmp_path / "c2"], tmp_path / "all", clean=False)

    assert merged(tmp_path / "all") == ["a1", "a2"]


@pytest.mark.parametrize(("clean", "kept"), [(True, ["a"]), (False, ["a", "old"])])
def test_the_folder_is_emptied_where_that_is_asked_for(
    tmp_path: Path, clean: bool, kept: list[str]
) -> None:
    write(tmp_path / "all", "old", "old", "passed")
    write(tmp_path / "c1", "a", "test", "passed")
    (tmp_path / "c1/shot-attachment.png").write_bytes(b"png")

    merge_allure_results([tmp_path / "c1"], tmp_path / "all", clean=clean)

    assert merged(tmp_path / "all") == kept
    assert (tmp_path / "all/shot-attachment.png").is_file()
