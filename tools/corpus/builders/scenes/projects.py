"""The small projects that faults of the surroundings are shown in: green, each of its own make."""

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
