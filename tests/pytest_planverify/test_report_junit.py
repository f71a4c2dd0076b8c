from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from pytest_planverify.reports.junit import merge_junit

if TYPE_CHECKING:
    from pathlib import Path


def part(folder: Path, name: str, *cases: str, attributes: str = "", suite: str = "pytest") -> Path:
    path = folder / name
    path.write_text(
        f'<testsuites name="pytest tests"><testsuite name="{suite}" {attributes}>{"".join(cases)}'
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    return path


def case(name: str, inner: str = "", time: str = "0.100") -> str:
    return f'<testcase classname="tests.test_a" name="{name}" time="{time}">{inner}</testcase>'


FAILED = '<failure message="assert 1 == 2">trace</failure>'
TOTALS = 'tests="2" failures="1" errors="0" skipped="0" time="0.500"'


def test_every_suite_is_kept_and_the_totals_are_the_sums(tmp_path: Path) -> None:
    parts = [
        part(tmp_path, "1.xml", case("a"), case("b", FAILED), attributes=TOTALS, suite="one"),
        part(tmp_path, "2.xml", case("c"), case("d", FAILED), attributes=TOTALS, suite="two"),
    ]
    target = tmp_path / "out" / "junit.xml"
    assert merge_junit(parts, target) == ()
    root = ET.parse(target).getroot()
    assert [suite.get("name") for suite in root] == ["one", "two"]
    assert dict(root.attrib) == {
        "name": "pytest tests",
        "tests": "4",
        "failures": "2",
        "errors": "0",
        "skipped": "0",
        "time": "1.000",
    }
    assert [entry.name for entry in target.parent.iterdir()] == ["junit.xml"]


def test_of_a_test_that_ran_twice_the_later_run_is_kept(tmp_path: Path) -> None:
    parts = [
        part(tmp_path, "1.xml", case("a"), case("b", FAILED), attributes=TOTALS),
        part(tmp_path, "2.xml", case("b"), attributes='tests="1" failures="0" time="oops"'),
    ]
    target = tmp_path / "junit.xml"
    merge_junit(parts, target)
    first, second = ET.parse(target).getroot()
    assert [found.get("name") for found in first] == ["a"]
    assert (first.get("tests"), first.get("failures"), first.get("time")) == ("1", "0", "0.400")
    assert [found.get("name") for found in second] == ["b"]
    assert second.find("testcase/failure") is None


def test_two_entries_of_one_test_in_one_part_are_both_kept(tmp_path: Path) -> None:
    error = '<error message="teardown">trace</error>'
    only = part(tmp_path, "1.xml", case("a", FAILED), case("a", error))
    target = tmp_path / "junit.xml"
    merge_junit([only], target)
    suite = ET.parse(target).getroot()[0]
    assert len(suite) == 2
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")


def test_properties_and_a_bare_suite_survive(tmp_path: Path) -> None:
    bare = tmp_path / "bare.xml"
    bare.write_text(
        f'<testsuite name="b" {TOTALS}><properties><property name="x"/></properties>{case("a")}</testsuite>'
    )
    target = tmp_path / "junit.xml"
    merge_junit([bare], target)
    assert ET.parse(target).getroot().find("testsuite/properties/property") is not None


@pytest.mark.parametrize("text", ["", "<testsuites><testsuite>", "no xml"])
def test_what_a_dead_session_left_is_named_and_left_out(tmp_path: Path, text: str) -> None:
    broken = tmp_path / "broken.xml"
    broken.write_text(text)
    whole = part(tmp_path, "1.xml", case("a"), attributes=TOTALS)
    problems = merge_junit([broken, tmp_path / "missing.xml", whole], tmp_path / "junit.xml")
    assert problems[0].startswith("broken.xml is left out of the JUnit XML file: it is no XML (")
    assert problems[1] == "missing.xml is left out of the JUnit XML file: No such file or directory"
    assert len(ET.parse(tmp_path / "junit.xml").getroot()) == 1


def test_a_target_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "junit.xml"
    target.mkdir()
    with pytest.raises(OSError, match="junit"):
        merge_junit([], target)
    assert [entry.name for entry in tmp_path.iterdir()] == ["junit.xml"]


def test_the_totals_of_a_real_pytest_file_are_kept(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "def test_a(): pass\n"
        "def test_b(): assert 0\n"
        "@pytest.mark.skip\ndef test_c(): pass\n"
        "@pytest.fixture\ndef bad():\n    yield\n    assert 0\n"
        "def test_d(bad): assert 0\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        ".",
    ]
    subprocess.run([*command, "--junitxml=one.xml"], cwd=tmp_path, check=False, capture_output=True)
    one = ET.parse(tmp_path / "one.xml").getroot()[0]
    merge_junit([tmp_path / "one.xml"] * 2, tmp_path / "both.xml")
    emptied, kept = ET.parse(tmp_path / "both.xml").getroot()
    assert emptied.get("tests") == "0"
    names = ("tests", "failures", "errors", "skipped")
    assert [kept.get(name) for name in names] == [one.get(name) for name in names]
