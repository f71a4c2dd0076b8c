"""The projects that scenes are laid into, with their names, sizes and styles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from textwrap import dedent


class Style(StrEnum):
    """How the tests of a project are written."""

    FUNCTIONS = "functions"
    CLASSES = "classes"
    UNITTEST = "unittest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as it is before anything is added to it."""

    name: str
    """Also the name of its package."""
    source: str
    """The folder of the package."""
    tests: str
    """The folder of the tests."""
    style: Style
    noun: str
    """What it is about, in the singular."""
    settings: Mapping[str, str]
    """Configuration files by path."""
    files: Mapping[str, str]
    """The others, with ``SRC`` and ``TESTS`` for the two folders."""

    def named(self, text: str) -> str:
        """The text with this project's names for ``PKG``, ``ENVNAME``, ``SRC``, ``TESTS`` and ``NOUN``."""
        words = {
            "ENVNAME": self.name.upper(),
            "PKG": self.name,
            "SRC": self.source,
            "TESTS": self.tests,
            "NOUNS": f"{self.noun}s",
            "Noun": self.noun.capitalize(),
            "NOUN": self.noun,
        }
        for word, name in words.items():
            text = text.replace(word, name)
        return text

    def tree(self) -> dict[str, str]:
        """Every file by its path."""
        written = {self.named(path): dedent(text).lstrip("\n") for path, text in self.files.items()}
        return {**written, **{path: dedent(text).lstrip("\n") for path, text in self.settings.items()}}

    @property
    def base_module(self) -> str:
        """A module that no fault concerns."""
        return self.named(next(path for path in self.files if path.startswith("SRC/") and self.files[path]))

    @property
    def base_test(self) -> str:
        """A test file that no fault concerns."""
        return self.named(next(path for path in self.files if path.startswith("TESTS/test_")))


def pyproject(name: str, options: str) -> str:
    return f'[project]\nname = "{name}"\nversion = "1.4.0"\n\n[tool.pytest.ini_options]\n{options}'


PARCELPOST = Project(
    name="parcelpost",
    source="src/parcelpost",
    tests="tests",
    style=Style.FUNCTIONS,
    noun="parcel",
    settings={
        "pyproject.toml": pyproject("parcelpost", 'pythonpath = ["src"]\ntestpaths = ["tests"]\n'),
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
    },
    files={
        "SRC/__init__.py": "",
        "SRC/rates.py": '''
            """What it costs to send a parcel."""

            ZONES = {"DE": 1, "FR": 2, "NO": 3}


            def price(country, grams):
                """In cents; raises ``KeyError`` for a country that is not served."""
                steps = max(1, -(-grams // 500))
                return 390 + 120 * ZONES[country] + 80 * (steps - 1)
        ''',
        "TESTS/test_rates.py": """
            import pytest

            from parcelpost.rates import price


            @pytest.mark.parametrize("grams, cents", [(200, 510), (501, 590), (1500, 670)])
            def test_price_grows_by_half_kilos(grams, cents):
                assert price("DE", grams) == cents


            def test_a_country_that_is_not_served():
                with pytest.raises(KeyError):
                    price("AQ", 100)
        """,
    },
)

WEATHERVANE = Project(
    name="weathervane",
    source="weathervane",
    tests="tests",
    style=Style.CLASSES,
    noun="reading",
    settings={"setup.cfg": "[metadata]\nname = weathervane\n\n[tool:pytest]\npythonpath = .\n"},
    files={
        "SRC/__init__.py": "",
        "SRC/wind.py": '''
            """Wind: directions and the Beaufort scale."""

            POINTS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
            LIMITS = (0.5, 1.6, 3.4, 5.5, 8.0, 10.8, 13.9, 17.2)


            def point(degrees):
                return POINTS[round(degrees % 360 / 45) % 8]


            def beaufort(metres_a_second):
                return sum(metres_a_second >= limit for limit in LIMITS)
        ''',
        "TESTS/test_wind.py": """
            from weathervane.wind import beaufort, point


            class TestPoints:
                def test_north_is_at_both_ends(self):
                    assert point(2) == point(359) == "N"

                def test_a_quarter_is_two_points(self):
                    assert point(90) == "E"


            class TestBeaufort:
                def test_calm(self):
                    assert beaufort(0.2) == 0

                def test_a_gale(self):
                    assert beaufort(17.2) == 8
        """,
    },
)

LEDGERLINE = Project(
    name="ledgerline",
    source="ledgerline",
    tests="ledgerline/tests",
    style=Style.UNITTEST,
    noun="booking",
    settings={"pytest.ini": "[pytest]\npythonpath = .\npython_files = test_*.py\n"},
    files={
        "SRC/__init__.py": "",
        "SRC/balance.py": '''
            """Sums of bookings by account."""

            from decimal import Decimal


            def balance(bookings):
                totals = {}
                for account, amount in bookings:
                    totals[account] = totals.get(account, Decimal(0)) + Decimal(amount)
                return totals
        ''',
        "TESTS/__init__.py": "",
        "TESTS/test_balance.py": """
            import unittest
            from decimal import Decimal

            from ledgerline.balance import balance


            class BalanceTest(unittest.TestCase):
                def test_amounts_of_an_account_are_added(self):
                    self.assertEqual(balance([("rent", "10.5"), ("rent", "-3")]), {"rent": Decimal("7.5")})

                def test_nothing_is_booked(self):
                    self.assertEqual(balance([]), {})
        """,
    },
)

MEALPLAN = Project(
    name="mealplan",
    source="src/mealplan",
    tests="tests",
    style=Style.FUNCTIONS,
    noun="recipe",
    settings={"pyproject.toml": pyproject("mealplan", 'pythonpath = ["src"]\naddopts = "-ra"\n')},
    files={
        "SRC/__init__.py": "",
        "SRC/portions.py": '''
            """Recipes for more, or fewer, people."""

            from fractions import Fraction


            class Recipe:
                def __init__(self, portions, amounts):
                    self.portions = portions
                    self.amounts = amounts

                def scaled(self, portions):
                    factor = Fraction(portions, self.portions)
                    amounts = {name: amount * factor for name, amount in self.amounts.items()}
                    return Recipe(portions, amounts)
        ''',
        "TESTS/conftest.py": """
            import pytest

            from mealplan.portions import Recipe


            @pytest.fixture
            def soup():
                return Recipe(4, {"carrots": 600, "onions": 2})
        """,
        "TESTS/test_portions.py": """
            def test_half_the_people_eat_half(soup):
                assert soup.scaled(2).amounts == {"carrots": 300, "onions": 1}


            def test_the_recipe_stays_as_it_was(soup):
                soup.scaled(8)
                assert soup.portions == 4
        """,
    },
)


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
