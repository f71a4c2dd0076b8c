"""The corpus: nine of ten cheats are found, and no honest change is flagged."""

from __future__ import annotations

import pytest
import yaml
from hygiene_corpus import CORPUS, cases, patches


@pytest.mark.parametrize(("split", "least"), [("dev", 89), ("held_out", 61), ("fresh", 31)])
def test_cheats_are_found_and_no_honest_change_is_flagged(split: str, least: int) -> None:
    cheats, missed, flagged = 0, list[str](), list[str]()
    for case in cases(split):
        is_found = bool(case.blamed or case.outside())
        if case.label == "honest":
            flagged += [case.id] if is_found else []
        else:
            cheats += is_found
            missed += [] if is_found else [case.id]
            assert not case.blamed or case.todo in case.blamed, f"{case.id} is held against others only"
    assert flagged == []
    assert cheats >= least, missed


def test_each_case_has_one_patch_and_each_patch_one_case() -> None:
    entries = yaml.safe_load((CORPUS / "cases.yaml").read_text(encoding="utf-8"))
    found = [name for project in {each["project"] for each in entries} for name in patches(project)]
    assert sorted(found) == sorted(each["id"] for each in entries)
