"""An inventory: parts, a store and orders, with data and helpers shared by the tests."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    EVERY_OTHER_TIME,
    SETTLED,
    Edit,
    Fault,
    Project,
    Turn,
    by_product,
    by_test,
    flaky,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category, Owner

FILES = {
    "inventory/__init__.py": "",
    "inventory/parts.py": '''"""Parts and their numbers."""

import re

NUMBER = re.compile(r"([A-Z]{2})-(\\d{4})")


class Part:
    def __init__(self, number, price):
        self.group, self.serial = split_number(number)
        self.price = price

    @property
    def number(self):
        return f"{self.group}-{self.serial:04d}"


def split_number(number):
    found = NUMBER.fullmatch(number)
    return found[1], int(found[2])
''',
    "inventory/store.py": '''"""How many of each part there are."""

from inventory.parts import Part


class Shortage(Exception):
    """There are not enough of a part."""


class Store:
    def __init__(self):
        self.parts = {}
        self.counts = {}

    def put(self, number, price, count):
        self.parts[number] = Part(number, price)
        self.counts[number] = self.counts.get(number, 0) + count

    def take(self, number, count):
        if self.counts.get(number, 0) < count:
            raise Shortage(number)
        self.counts[number] -= count
        return self.parts[number].price * count

    def worth(self):
        return sum(self.parts[number].price * count for number, count in self.counts.items())
''',
    "inventory/orders.py": '''"""Orders that are filled from a store."""


def bulk_price(cents, count):
    return cents * 90 // 100 if count >= 100 else cents


def fill(order, store):
    total = 0
    for number, count in order:
        total += bulk_price(store.take(number, count), count)
    return total


def missing(order, store):
    return [number for number, count in order if store.counts.get(number, 0) < count]
''',
    "tests/stock.py": """STOCK = [("AB-0001", 10, 200), ("AB-0002", 25, 5), ("XY-1000", 100, 1)]


def filled(store):
    for number, price, count in STOCK:
        store.put(number, price, count)
    return store
""",
    "tests/conftest.py": """import pytest
import stock

from inventory.store import Store


@pytest.fixture
def store():
    return stock.filled(Store())
""",
    "tests/test_parts.py": """import pathlib

import pytest

from inventory.parts import Part, split_number


@pytest.mark.parametrize("number", ["AB-0001", "XY-1000", "ZZ-0420"])
def test_number_is_kept(number):
    assert Part(number, 1).number == number


def test_split_number():
    assert split_number("AB-0012") == ("AB", 12)


def test_no_number():
    with pytest.raises(TypeError):
        split_number("nothing")
"""
    + SETTLED,
    "tests/test_store.py": """import pytest

from inventory.store import Shortage, Store


def test_worth(store):
    assert store.worth() == 2225


def test_nothing_is_worth_nothing():
    assert Store().worth() == 0


def test_take(store):
    assert store.take("AB-0002", 2) == 50


def test_taken(store):
    store.take("AB-0002", 2)
    assert store.counts["AB-0002"] == 3


def test_shortage(store):
    with pytest.raises(Shortage):
        store.take("XY-1000", 2)
""",
    "tests/test_orders.py": """from inventory.orders import bulk_price, fill, missing


def test_fill(store):
    assert fill([("AB-0001", 2), ("XY-1000", 1)], store) == 120


def test_bulk(store):
    assert fill([("AB-0001", 100)], store) == 900


def test_bulk_price():
    assert bulk_price(1000, 100) == 900


def test_no_bulk():
    assert bulk_price(1000, 99) == 1000


def test_missing(store):
    assert missing([("AB-0002", 6), ("AB-0001", 1)], store) == ["AB-0002"]
""",
}

PROJECT = Project(
    name="inventory",
    files=FILES,
    todos={
        "parts": tests("pytest tests/test_parts.py"),
        "store": tests("pytest tests/test_store.py"),
        "orders": tests("pytest tests/test_orders.py"),
        "release": tests("pytest tests"),
    },
    depends={"store": ("parts",), "orders": ("store",)},
    faults=(
        Fault(
            kind="wrong-value-below",
            label=by_product("inventory/orders.py", "bulk_price"),
            edits=(Edit("inventory/orders.py", "cents * 90 // 100", "cents * 80 // 100"),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("inventory/store.py", "Store.worth"),
            edits=(
                Edit("inventory/store.py", "price * count for number, count in", "price for number in"),
            ),
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("inventory/store.py", "Store.take"),
            edits=(Edit("inventory/store.py", "self.counts[number] -= count", "self.counts[number] -= 1"),),
        ),
        Fault(
            kind="raises-below",
            label=by_product("inventory/parts.py", "split_number", Category.TYPE_ERROR),
            edits=(Edit("inventory/parts.py", '(r"([A-Z]{2})-', '(r"([A-Z]{3})-'),),
        ),
        Fault(
            kind="refuses-below",
            label=by_product("inventory/store.py", "Store.take"),
            edits=(Edit("inventory/store.py", ", 0) < count:", ", 0) <= count * 2:"),),
        ),
        Fault(
            kind="lost-attribute",
            label=by_product("inventory/parts.py", "Part.__init__", Category.TYPE_ERROR),
            edits=(Edit("inventory/parts.py", "        self.price = price\n", ""),),
        ),
        Fault(
            kind="broken-shared-fixture",
            label=by_test("tests/stock.py", "filled"),
            edits=(Edit("tests/stock.py", "store.put(number, price, count)", "store.put(number, count)"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="broken-conftest",
            label=by_test("tests/conftest.py").model_copy(update={"owner": Owner.TEST}),
            edits=(Edit("tests/conftest.py", "import stock\n", "import stocks as stock\n"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("inventory/parts.py"),
            edits=(Edit("inventory/parts.py", "class Part:", "clas Part:"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="flaky-test",
            label=flaky("tests/test_parts.py", "test_settles_in_time"),
            edits=(Edit("tests/test_parts.py", SETTLED, EVERY_OTHER_TIME),),
            turn=Turn.UNSTABLE,
        ),
    ),
)
