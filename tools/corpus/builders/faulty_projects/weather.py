"""Weather records: reading, units, figures, and a summary that is written to a file."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    Edit,
    Fault,
    Project,
    Turn,
    by_product,
    by_test,
    removed_module,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "weather/__init__.py": "",
    "weather/reading.py": '''"""Readings of a station, one a line: ``day;celsius;millimetres``."""

from dataclasses import dataclass


@dataclass
class Reading:
    day: str
    celsius: float
    rain: float


def read_line(line):
    day, celsius, rain = line.split(";")
    return Reading(day, float(celsius), float(rain))


def read_all(text):
    return [read_line(line) for line in text.splitlines() if line.strip()]
''',
    "weather/units.py": '''"""Other units."""


def fahrenheit(celsius):
    return celsius * 9 / 5 + 32


def inches(millimetres):
    return round(millimetres / 25.4, 2)


def named(value, unit):
    return f"{value:.1f} {unit}"
''',
    "weather/figures.py": '''"""Figures of many readings."""

from weather.units import fahrenheit, named


def mean(values):
    values = list(values)
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def warmest(readings):
    return max(readings, key=lambda each: each.celsius)


def rainy_days(readings):
    return sum(each.rain > 0 for each in readings)


def mean_shown(readings):
    return named(fahrenheit(mean(each.celsius for each in readings)), "F")
''',
    "weather/summary.py": '''"""The summary of a month as JSON."""

import json
import pathlib

from weather import figures
from weather.reading import read_all


def summary(text):
    readings = read_all(text)
    return {
        "mean": figures.mean(each.celsius for each in readings),
        "rainy": figures.rainy_days(readings),
        "warmest": figures.warmest(readings).day,
    }


def write(text, folder):
    target = pathlib.Path(folder) / "summary.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(summary(text)))
    return target
''',
    "data/may.csv": "01;10;0\n02;20;4.5\n03;15;1.5\n",
    "tests/conftest.py": """import pathlib

import pytest

from weather.reading import read_all


@pytest.fixture(scope="session")
def may_text():
    return pathlib.Path("data/may.csv").read_text()


@pytest.fixture
def may(may_text):
    return read_all(may_text)
""",
    "tests/test_reading.py": """import pytest

from weather.reading import read_all, read_line


def test_day():
    assert read_line("01;10;0").day == "01"


def test_numbers():
    reading = read_line("01;10.5;2")
    assert (reading.celsius, reading.rain) == (10.5, 2.0)


def test_blank_lines():
    assert len(read_all("01;1;1\\n\\n02;2;2\\n")) == 2


def test_too_few():
    with pytest.raises(ValueError):
        read_line("01;10")
""",
    "tests/test_units.py": """import pytest

from weather import units


@pytest.mark.parametrize("celsius, expected", [(0, 32), (100, 212), (-40, -40)])
def test_fahrenheit(celsius, expected):
    assert units.fahrenheit(celsius) == expected


@pytest.mark.parametrize("rain, expected", [(25.4, 1.0), (0, 0), (50.8, 2.0)])
def test_inches(rain, expected):
    assert units.inches(rain) == expected


def test_named():
    assert units.named(3, "mm") == "3.0 mm"
""",
    "tests/test_figures.py": """import pytest

from weather import figures


def test_mean():
    assert figures.mean([1, 2, 3]) == 2


def test_mean_of_nothing():
    with pytest.raises(ValueError):
        figures.mean([])


def test_warmest(may):
    assert figures.warmest(may).day == "02"


def test_rainy_days(may):
    assert figures.rainy_days(may) == 2


def test_mean_shown(may):
    assert figures.mean_shown(may) == "59.0 F"
""",
    "tests/test_summary.py": """import json

from weather.summary import summary, write


def test_mean(may_text):
    assert summary(may_text)["mean"] == 15


def test_warmest(may_text):
    assert summary(may_text)["warmest"] == "02"


def test_written(may_text):
    written = write(may_text, "out")
    assert json.loads(written.read_text())["rainy"] == 2
""",
}

PROJECT = Project(
    name="weather",
    files=FILES,
    todos={
        "reading": tests("pytest tests/test_reading.py"),
        "units": tests("pytest tests/test_units.py"),
        "figures": tests("pytest tests/test_figures.py"),
        "summary": {
            **tests("pytest tests/test_summary.py"),
            "expected_artifacts": ["out/summary.json"],
        },
    },
    depends={"figures": ("reading", "units"), "summary": ("figures",)},
    faults=(
        Fault(
            kind="wrong-value-below",
            label=by_product("weather/figures.py", "mean"),
            edits=(
                Edit("weather/figures.py", "sum(values) / len(values)", "sum(values) / (len(values) + 1)"),
            ),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("weather/units.py", "inches"),
            edits=(Edit("weather/units.py", "millimetres / 25.4", "millimetres / 24.5"),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("weather/units.py", "named"),
            edits=(Edit("weather/units.py", "{value:.1f} {unit}", "{value:.2f} {unit}"),),
        ),
        Fault(
            kind="unwritten-artifact",
            label=by_product("weather/summary.py", "write"),
            edits=(
                Edit("weather/summary.py", "json.dumps(summary(text))", "json.dumps(set(summary(text)))"),
            ),
        ),
        Fault(
            kind="changed-signature",
            label=by_product("weather/units.py", "named", Category.SPEC_MISMATCH),
            edits=(Edit("weather/units.py", "def named(value, unit):", "def named(value, *, unit):"),),
        ),
        Fault(
            kind="raises-below",
            label=by_product("weather/reading.py", "read_line"),
            edits=(Edit("weather/reading.py", 'line.split(";")', 'line.split(",")'),),
        ),
        Fault(
            kind="missing-module",
            label=removed_module("weather/units.py"),
            edits=(Edit("weather/units.py"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("weather/reading.py"),
            edits=(Edit("weather/reading.py", "def read_all(text):", "def read_all(text:"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="broken-shared-fixture",
            label=by_test("tests/conftest.py", "may_text"),
            edits=(Edit("tests/conftest.py", "data/may.csv", "data/mai.csv"),),
            turn=Turn.UNDERLYING,
        ),
    ),
)
