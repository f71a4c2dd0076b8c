"""The corpus as files: what is written is read again, each part by the names alone."""

from __future__ import annotations

from pathlib import Path

from corpus_making import C, case, label, raising

from pytest_planverify.corpus.case import Case, FaultyRun
from pytest_planverify.corpus.files import digest_of, read_cases, read_runs, write_cases, write_runs
from pytest_planverify.corpus.splitting import (
    PACKAGES,
    TEST_PACKAGES,
    Part,
    is_test_kind,
    is_test_package,
    part_of,
)


def of_both_parts() -> list[Case]:
    evidence = raising("KeyError", "'ä'")
    return [
        case(f"{package}-{kind}", label(C.TEST_REGRESSION), evidence, package=package, kind=kind)
        for package in ("z", "y", "x", "w")
        for kind in ("k", "l", "m", "n")
    ]


def test_cases_are_read_as_they_were_written_in_the_order_of_their_ids(tmp_path: Path) -> None:
    cases = of_both_parts()
    write_cases(tmp_path, "builder", cases)
    read = [*read_cases(tmp_path, Part.DEVELOP), *read_cases(tmp_path, Part.TEST)]
    assert {each.id: each for each in read} == {each.id: each for each in cases}
    for part in Part:
        found = read_cases(tmp_path, part)
        assert found
        assert [each.id for each in found] == sorted(each.id for each in found)
        assert {part_of(each.origin.package, each.origin.kind) for each in found} == {part}


def test_a_case_is_for_testing_by_its_package_or_by_its_kind() -> None:
    for each in of_both_parts():
        package, kind = each.origin.package, each.origin.kind
        expected = is_test_package(package) or is_test_kind(kind)
        assert part_of(package, kind) is (Part.TEST if expected else Part.DEVELOP)


def test_three_of_the_published_packages_are_kept_for_testing() -> None:
    assert sum(map(is_test_package, PACKAGES)) == TEST_PACKAGES


def test_a_builder_that_makes_nothing_for_a_part_leaves_no_file_of_it(tmp_path: Path) -> None:
    write_cases(tmp_path, "builder", of_both_parts())
    write_cases(tmp_path, "builder", [])
    assert not [*tmp_path.rglob("*.jsonl")]


def test_a_run_with_one_kind_that_is_kept_for_testing_is_for_testing(tmp_path: Path) -> None:
    known, kept = (
        next(kind for kind in map(str, range(99)) if is_test_kind(kind) is test) for test in (False, True)
    )
    package = next(name for name in map(str, range(99)) if not is_test_package(name))
    runs = [
        FaultyRun(id=name, package=package, kinds=kinds, labels=(), todos=("t",), failures=(), first=(0,))
        for name, kinds in (("mixed", (known, kept)), ("plain", (known, known)))
    ]
    write_runs(tmp_path, "runs", runs)
    assert [each.id for each in read_runs(tmp_path, Part.TEST)] == ["mixed"]
    assert read_runs(tmp_path, Part.DEVELOP) == (runs[1],)
    assert read_runs(tmp_path / "elsewhere", Part.TEST) == ()


def test_the_digest_changes_with_the_cases_and_with_their_part(tmp_path: Path) -> None:
    write_cases(tmp_path, "builder", of_both_parts())
    develop, test = digest_of(tmp_path, Part.DEVELOP), digest_of(tmp_path, Part.TEST)
    assert len({develop, test, digest_of(tmp_path, *Part)}) == 3
    write_cases(tmp_path, "builder", of_both_parts()[:-1])
    assert {develop, test} != {digest_of(tmp_path, Part.DEVELOP), digest_of(tmp_path, Part.TEST)}
