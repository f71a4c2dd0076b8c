"""Parsing of the real output of each tool into findings."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import TOOLS, Tool, output, parse_command
from planner.catalog.output import MAX_FINDINGS, hidden_failures, proves_nothing, read_findings
from planner.catalog.tables import load_table
from planner.catalog.tools import PYTEST
from planner.model.evidence import Finding

SAMPLES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parents[3] / "fixtures/catalog_output.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("sample", SAMPLES["findings"], ids=lambda each: each["command"])
def test_findings_are_read_with_their_places_and_errors_come_first(sample: dict[str, Any]) -> None:
    tool = parse_command(sample["command"]).tool
    for streams in ((sample["output"], ""), ("", sample["output"])):
        assert list(map(shown, read_findings(tool, *streams))) == sample["rows"]


def shown(finding: Finding) -> str:
    """Return the finding as a row of the table, with a dash for each None."""
    place = (finding.path, finding.line, finding.column, finding.code)
    path, line, column, code = ("-" if each is None else each for each in place)
    return f"{path}:{line}:{column} {code} {finding.message}"


def test_every_name_in_the_output_tables_exists() -> None:
    rows = [row for rows in load_table("tools")["tools"].values() for row in rows]
    table = output.output_table()
    formats = table["formats"]
    assert {row["output"] for row in rows if "output" in row} <= set(formats)
    for form in formats.values():
        assert {each[1:] for each in form.get("patterns", ()) if each.startswith("@")} <= set(formats)
        assert set(form.get("runs", ())) <= set(table["runs"])
        assert set(form.get("readers", ())) <= {"unittest", "traceback", *table["grouped"]}
    assert set(table["failures"]) <= set(table["runs"])
    assert set(table["headings"]) <= set(table["grouped"])


def test_the_number_of_findings_and_the_length_of_their_parts_are_limited() -> None:
    tool, line = parse_command("flake8").tool, f"{'a' * 50_000}.py:1:1: E501 too long"
    many = "".join(f"a.py:{number}:1: E501 too long\n" for number in range(1, 1_000))
    assert len(read_findings(tool, many, "")) == MAX_FINDINGS
    assert all(len(found.path or "") <= 2_000 for found in read_findings(tool, line, ""))
    hidden = hidden_failures(parse_command("make test").tool, f"{'=' * 50_000} 1 failed {'=' * 50_000}", "")
    assert len(hidden or "") <= 2_000


def test_an_invalid_line_number_is_omitted() -> None:
    (finding,) = read_findings(parse_command("flake8").tool, f"a.py:{'9' * 50}:1: E501 too long\n", "")
    assert (finding.path, finding.line) == ("a.py", None)


@pytest.mark.parametrize(
    ("judge", "expected", "sample"),
    [
        *((proves_nothing, "reason", each) for each in SAMPLES["success"]),
        *((hidden_failures, "line", each) for each in SAMPLES["hidden_failures"]),
    ],
)
def test_success_without_work_or_with_hidden_failures_is_distinguished_from_success(
    judge: Callable[..., str | None], expected: str, sample: dict[str, Any]
) -> None:
    found = judge(parse_command(sample["command"]).tool, sample["output"], "")
    assert (sample[expected] is None) == (found is None), found
    assert (sample[expected] or "") in (found or "")


@given(st.sampled_from(TOOLS), st.text(), st.text())
def test_any_output_is_read_without_an_exception(tool: Tool, stdout: str, stderr: str) -> None:
    assert all(found.message for found in read_findings(tool, stdout, stderr))
    assert proves_nothing(tool, stdout, stderr) != ""


def test_hostile_output_is_read_in_bounded_time() -> None:
    """A text takes some milliseconds of processor time; quadratic time would be a second and more."""
    hostile = ["a" * 20_000, " \n" * 5_000, "a:1:1: " * 2_000, "  ● a\n" * 1_000, "error: x\n" * 1_000]
    hostile += ['  File "a", line 1\n' * 700, "Traceback (most recent call last):\n" * 300]
    hostile += ["1 passed, " * 1_000, "F401 x\n" * 1_000, "." * 20_000, "a...b" * 4_000]
    hostile += ["  a.py:1:1 - error: x\n    y" * 400, ">> Issue: [B1:a] b\n" * 500]
    hostile += [(" " * 1_900 + "x\n") * 200]
    for text, form in product(hostile, output.output_table()["formats"]):
        tool = dataclasses.replace(PYTEST, output=form)
        started = time.process_time()
        list(output._read(form, output._whole_text(text, "")))
        proves_nothing(tool, text, "")
        hidden_failures(tool, text, "")
        assert time.process_time() - started < 0.5, (form, text[:20])
