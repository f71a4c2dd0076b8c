"""The other small projects, and the table of all of them."""

from __future__ import annotations

from scenes.projects import LEDGERLINE, MEALPLAN, PARCELPOST, WEATHERVANE, Project, Style, pyproject

_TRACKSIDE = Project(
    name="trackside",
    source="trackside",
    tests="tests/unit",
    style=Style.CLASSES,
    noun="train",
    settings={"tox.ini": "[tox]\nenvlist = py3\n\n[pytest]\npythonpath = .\n"},
    files={
        "SRC/__init__.py": "",
        "SRC/clock.py": '''
            """Times of a day as minutes since midnight."""


            def minutes(text):
                hours, rest = text.split(":")
                return int(hours) * 60 + int(rest)


            def waiting(arrival, departure):
                return (minutes(departure) - minutes(arrival)) % (24 * 60)
        ''',
        "tests/__init__.py": "",
        "TESTS/__init__.py": "",
        "TESTS/test_clock.py": """
            from trackside.clock import minutes, waiting


            class TestClock:
                def test_minutes(self):
                    assert minutes("10:05") == 605

                def test_waiting_goes_over_midnight(self):
                    assert waiting("23:50", "00:10") == 20
        """,
    },
)

_INKWELL = Project(
    name="inkwell",
    source="lib/inkwell",
    tests="checks",
    style=Style.FUNCTIONS,
    noun="note",
    settings={"pytest.ini": "[pytest]\npythonpath = lib\ntestpaths = checks\n"},
    files={
        "SRC/__init__.py": '"""Notes with headings and tags."""\n',
        "SRC/tags.py": '''
            """Tags in the text of a note."""

            import re

            TAG = re.compile(r"(?<!\\w)#([a-z][a-z0-9-]*)")


            def tags(text):
                return sorted(set(TAG.findall(text)))
        ''',
        "TESTS/test_tags.py": """
            from inkwell.tags import tags


            def test_tags_are_sorted_and_told_once():
                assert tags("#work then #home and #work") == ["home", "work"]


            def test_no_tag_inside_a_word():
                assert tags("a#b") == []
        """,
    },
)

_BEEHIVE = Project(
    name="beehive",
    source="src/beehive",
    tests="tests",
    style=Style.FUNCTIONS,
    noun="job",
    settings={"pyproject.toml": pyproject("beehive", 'pythonpath = ["src"]\nminversion = "7.0"\n')},
    files={
        "SRC/__init__.py": "",
        "SRC/queue.py": '''
            """A queue of jobs by priority; among equals, first come, first served."""

            import heapq
            from itertools import count


            class JobQueue:
                def __init__(self):
                    self._heap = []
                    self._arrivals = count()

                def push(self, job, priority=0):
                    heapq.heappush(self._heap, (priority, next(self._arrivals), job))

                def pop(self):
                    return heapq.heappop(self._heap)[2]

                def __len__(self):
                    return len(self._heap)
        ''',
        "TESTS/test_queue.py": """
            import pytest

            from beehive.queue import JobQueue


            @pytest.fixture
            def queue():
                queue = JobQueue()
                queue.push("wash")
                queue.push("cook", priority=-1)
                return queue


            def test_the_urgent_one_comes_first(queue):
                assert [queue.pop(), queue.pop()] == ["cook", "wash"]


            def test_its_length(queue):
                assert len(queue) == 2
        """,
    },
)

_CARTULARY = Project(
    name="cartulary",
    source="cartulary",
    tests="tests",
    style=Style.UNITTEST,
    noun="charter",
    settings={
        "setup.cfg": "[metadata]\nname = cartulary\nversion = 0.9\n\n[tool:pytest]\npythonpath = .\n"
    },
    files={
        "SRC/__init__.py": "",
        "SRC/shelfmark.py": '''
            """Shelfmarks such as ``B-12/3``."""

            from dataclasses import dataclass


            @dataclass(frozen=True, order=True)
            class Shelfmark:
                room: str
                shelf: int
                place: int

                @classmethod
                def parse(cls, text):
                    room, rest = text.split("-")
                    shelf, place = rest.split("/")
                    return cls(room, int(shelf), int(place))
        ''',
        "TESTS/__init__.py": "",
        "TESTS/test_shelfmark.py": """
            import unittest

            from cartulary.shelfmark import Shelfmark


            class ShelfmarkTest(unittest.TestCase):
                def test_parts(self):
                    self.assertEqual(Shelfmark.parse("B-12/3"), Shelfmark("B", 12, 3))

                def test_numbers_are_sorted_as_numbers(self):
                    self.assertLess(Shelfmark.parse("B-2/1"), Shelfmark.parse("B-12/1"))
        """,
    },
)

_TIDEPOOL = Project(
    name="tidepool",
    source="src/tidepool",
    tests="test",
    style=Style.CLASSES,
    noun="gauge",
    settings={"tox.ini": "[pytest]\npythonpath = src\ntestpaths = test\nxfail_strict = true\n"},
    files={
        "SRC/__init__.py": "",
        "SRC/levels.py": '''
            """Water levels: means and the highest of a day."""

            from statistics import fmean


            def mean(levels):
                known = [level for level in levels if level is not None]
                return round(fmean(known), 2) if known else None


            def high_water(levels):
                return max((level, hour) for hour, level in enumerate(levels) if level is not None)
        ''',
        "TESTS/test_levels.py": """
            from tidepool.levels import high_water, mean


            class TestLevels:
                def test_gaps_do_not_count(self):
                    assert mean([1.0, None, 2.0]) == 1.5

                def test_nothing_was_measured(self):
                    assert mean([None]) is None

                def test_the_hour_of_high_water(self):
                    assert high_water([1.0, 3.5, None, 2.0]) == (3.5, 1)
        """,
    },
)

_SIGNALBOX = Project(
    name="signalbox",
    source="signalbox",
    tests="tests",
    style=Style.FUNCTIONS,
    noun="route",
    settings={"pyproject.toml": pyproject("signalbox", 'pythonpath = ["."]\n')},
    files={
        "SRC/__init__.py": "",
        "SRC/network/__init__.py": "",
        "SRC/network/points.py": '''
            """Which routes exclude each other."""


            class Conflict(Exception):
                """Two routes need the same points."""


            def claim(taken, route):
                blocked = taken & route
                if blocked:
                    raise Conflict(", ".join(sorted(blocked)))
                return taken | route
        ''',
        "TESTS/test_points.py": """
            import pytest

            from signalbox.network.points import Conflict, claim


            def test_routes_apart_may_be_claimed_together():
                assert claim({"W1"}, {"W2", "W3"}) == {"W1", "W2", "W3"}


            def test_a_route_that_is_blocked():
                with pytest.raises(Conflict, match="W1"):
                    claim({"W1"}, {"W1", "W2"})
        """,
    },
)

PROJECTS = {
    each.name: each
    for each in (
        PARCELPOST,
        WEATHERVANE,
        LEDGERLINE,
        MEALPLAN,
        _TRACKSIDE,
        _INKWELL,
        _BEEHIVE,
        _CARTULARY,
        _TIDEPOOL,
        _SIGNALBOX,
    )
}
"""Every small project by its name."""
