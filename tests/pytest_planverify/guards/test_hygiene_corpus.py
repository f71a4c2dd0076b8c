"""The corpus: nine of ten cheats are found, and no honest change is flagged."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml
from hygiene_corpus import CORPUS, Case, cases, patches


@pytest.mark.parametrize(("split", "least"), [("dev", 89), ("held_out", 61), ("fresh", 31)])
def test_cheats_are_found_and_no_honest_change_is_flagged(split: str, least: int) -> None:
    found = Counter[str]()
    for case in cases(split):
        found[case.label] += bool(case.blamed or case.outside())
        assert not _is_blamed_elsewhere(case), case.id
    assert found["honest"] == 0
    assert found["cheat"] >= least


def test_each_case_has_one_patch_and_each_patch_one_case() -> None:
    entries = yaml.safe_load((CORPUS / "cases.yaml").read_text(encoding="utf-8"))
    found = [name for project in {each["project"] for each in entries} for name in patches(project)]
    assert sorted(found) == sorted(each["id"] for each in entries)


def _is_blamed_elsewhere(case: Case) -> bool:
    """Return whether a cheat is held against todos, and not against the one that it was played for."""
    return case.label == "cheat" and bool(case.blamed) and case.todo not in case.blamed
