"""One JUnit XML file out of those that several pytest sessions wrote."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""The element within a test case and the attribute of its suite that counts it."""

_ROOT_TOTALS = ("tests", "failures", "errors", "skipped")


def merge_junit(parts: Sequence[Path], target: Path, roots: Sequence[object] = ()) -> tuple[str, ...]:
    """Merge the parts into ``target``, in their order, and say what could not be read.

    Every suite is kept. A test case that a later part has too is dropped from the earlier one, and the
    totals are counted anew. ``roots`` says from where each part names its tests, the same for all unless
    it is given: below another root a test of the same name is another test. A part that is missing or
    broken, as a dead session leaves it, is left out. Raises ``OSError`` where the target cannot be written.
    """
    problems: list[str] = []
    suites: list[list[ET.Element]] = []
    places: list[object] = []
    for part, root in zip(parts, roots or [None] * len(parts), strict=True):
        try:
            suites.append(_suites(ET.parse(part).getroot()))
            places.append(root)
        except (OSError, ET.ParseError) as error:
            problems.append(f"{part.name} is left out of the JUnit XML file: {_reason(error)}")
    changed = [
        suite
        for place in dict.fromkeys(places)
        for suite in _drop_repeated([each for each, at in zip(suites, places, strict=True) if at == place])
    ]
    root = ET.Element("testsuites", {"name": "pytest tests"})
    root.extend(suite for part in suites for suite in part)
    for suite in root:
        if suite in changed or suite.get("tests") is None:
            _count(suite)
    for name in _ROOT_TOTALS:
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(_seconds(suite) for suite in root):.3f}")
    _write(root, target)
    return tuple(problems)


def _suites(root: ET.Element) -> list[ET.Element]:
    return [root] if root.tag == "testsuite" else list(root.findall("testsuite"))


def _drop_repeated(parts: Sequence[Sequence[ET.Element]]) -> list[ET.Element]:
    """Drops test cases that a later part has too; returns the suites that lost some.

    Within one part a name may stand twice: a test whose call and teardown both failed.
    """
    changed: list[ET.Element] = []
    later: set[tuple[str | None, str | None]] = set()
    for part in reversed(parts):
        names: set[tuple[str | None, str | None]] = set()
        for suite in part:
            for case in list(suite.findall("testcase")):
                key = (case.get("classname"), case.get("name"))
                names.add(key)
                if key in later:
                    suite.remove(case)
                    changed.append(suite)
                    suite.set("time", f"{max(_seconds(suite) - _seconds(case), 0):.3f}")
        later |= names
    return changed


def _count(suite: ET.Element) -> None:
    cases = list(suite.iter("testcase"))
    suite.set("tests", str(len(cases)))
    for element, attribute in _COUNTED.items():
        suite.set(attribute, str(sum(len(case.findall(element)) for case in cases)))


def _seconds(element: ET.Element) -> float:
    try:
        return float(element.get("time", "0"))
    except ValueError:
        return 0.0


def _reason(error: OSError | ET.ParseError) -> str:
    return f"it is no XML ({error})" if isinstance(error, ET.ParseError) else (error.strerror or str(error))


def _write(root: ET.Element, target: Path) -> None:
    """Written beside and renamed, so that no reader meets half a file; open to whom pytest's would be."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with beside.open("wb") as stream:
            ET.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
