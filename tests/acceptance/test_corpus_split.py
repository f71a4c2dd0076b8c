"""The corpus is split as it says: by digests of names, and nothing kept for testing is shown."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_planverify.corpus.files import read_cases, read_runs
from pytest_planverify.corpus.splitting import Part, is_test_kind, is_test_package

CHECKOUT = Path(__file__).parents[2]
CORPUS = CHECKOUT / "fixtures" / "corpus"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The builder, without its folder on the search path."""
    spec = importlib.util.spec_from_file_location(
        "corpus_builder", CHECKOUT / "tests" / "corpus" / "build.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "corpus_builder", module)
    spec.loader.exec_module(module)
    return module


def test_the_split_that_is_told_is_that_of_the_files(builder: ModuleType) -> None:
    """`python tests/corpus/build.py --split-only` writes it anew when cases have changed."""
    told = json.loads((CORPUS / "split.json").read_text(encoding="utf-8"))
    assert told == builder.split_of(CORPUS)


def test_nothing_kept_for_testing_stands_in_the_develop_part() -> None:
    named = {
        (case.origin.package, case.origin.kind): case.id for case in read_cases(CORPUS, Part.DEVELOP)
    } | {(run.package, kind): run.id for run in read_runs(CORPUS, Part.DEVELOP) for kind in run.kinds}
    assert named
    shown = [
        case for (package, kind), case in named.items() if is_test_package(package) or is_test_kind(kind)
    ]
    assert shown == []


def test_every_case_of_the_test_part_is_of_a_package_or_a_kind_kept_for_testing() -> None:
    strangers = [
        case.id
        for case in read_cases(CORPUS, Part.TEST)
        if not is_test_package(case.origin.package) and not is_test_kind(case.origin.kind)
    ]
    assert strangers == []
