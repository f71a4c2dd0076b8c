"""A bookshop: prices, tax, a cart and a receipt, each resting on those before it."""

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
    removed_module,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "bookshop/__init__.py": "",
    "bookshop/prices.py": '''"""Prices of books in cents."""

LIST = {"atlas": 4200, "novel": 1250, "poems": 900}


def list_price(title):
    return LIST[title]


def discount(cents, percent):
    if not 0 <= percent <= 100:
        raise ValueError(f"no such discount: {percent}")
    return cents - cents * percent // 100


def rounded(cents):
    return (cents + 4) // 5 * 5
''',
    "bookshop/tax.py": '''"""Value added tax."""

RATES = {"book": 7, "card": 19}


def rate_of(kind):
    return RATES[kind]


def with_tax(cents, kind="book"):
    return cents + cents * rate_of(kind) // 100


def tax_part(cents, kind="book"):
    return with_tax(cents, kind) - cents
''',
    "bookshop/cart.py": '''"""What a customer wants to buy."""

from bookshop import prices, tax


class Cart:
    def __init__(self):
        self.lines = []
        self.coupon = 0

    def add(self, title, count=1):
        self.lines.append((title, count))

    def net(self):
        total = sum(prices.list_price(title) * count for title, count in self.lines)
        return prices.discount(total, self.coupon)

    def total(self):
        return prices.rounded(tax.with_tax(self.net()))
''',
    "bookshop/receipt.py": '''"""Receipts as text."""

from bookshop import tax


def money(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def receipt(cart):
    rows = [f"{count} x {title}" for title, count in cart.lines]
    rows.append("tax " + money(tax.tax_part(cart.net())))
    rows.append("total " + money(cart.total()))
    return "\\n".join(rows)
''',
    "tests/conftest.py": """import pytest

from bookshop.cart import Cart


@pytest.fixture
def cart():
    made = Cart()
    made.add("novel", 2)
    made.add("poems")
    return made
""",
    "tests/test_prices.py": """import pathlib

import pytest

from bookshop.prices import discount, list_price, rounded


@pytest.mark.parametrize("title, cents", [("atlas", 4200), ("novel", 1250), ("poems", 900)])
def test_list_price(title, cents):
    assert list_price(title) == cents


def test_no_discount():
    assert discount(1000, 0) == 1000


def test_a_fifth_off():
    assert discount(1000, 20) == 800


def test_discount_is_refused():
    with pytest.raises(ValueError):
        discount(1000, 120)


def test_rounded_up():
    assert rounded(1001) == 1005


def test_rounded_stays():
    assert rounded(1000) == 1000
"""
    + SETTLED,
    "tests/test_tax.py": """from bookshop import tax


def test_rate_of_books():
    assert tax.rate_of("book") == 7


def test_rate_of_cards():
    assert tax.rate_of("card") == 19


def test_with_tax():
    assert tax.with_tax(1000) == 1070


def test_with_tax_of_cards():
    assert tax.with_tax(1000, "card") == 1190


def test_tax_part():
    assert tax.tax_part(2000) == 140
""",
    "tests/test_cart.py": """from bookshop.cart import Cart


def test_empty():
    assert Cart().net() == 0


def test_net(cart):
    assert cart.net() == 3400


def test_total(cart):
    assert cart.total() == 3640


def test_coupon(cart):
    cart.coupon = 50
    assert cart.net() == 1700


def test_lines(cart):
    assert len(cart.lines) == 2
""",
    "tests/test_receipt.py": """from bookshop.receipt import money, receipt


def test_money():
    assert money(1205) == "12.05"


def test_small_money():
    assert money(7) == "0.07"


def test_rows(cart):
    assert receipt(cart).splitlines()[0] == "2 x novel"


def test_tax_row(cart):
    assert "tax 2.38" in receipt(cart)


def test_total_row(cart):
    assert receipt(cart).endswith("total 36.40")
""",
}

PROJECT = Project(
    name="bookshop",
    files=FILES,
    todos={
        "prices": tests("pytest tests/test_prices.py"),
        "tax": tests("pytest tests/test_tax.py"),
        "cart": tests("pytest tests/test_cart.py"),
        "receipt": tests("pytest tests/test_receipt.py"),
    },
    depends={"cart": ("prices", "tax"), "receipt": ("cart",)},
    faults=(
        Fault(
            kind="wrong-value-below",
            label=by_product("bookshop/tax.py", "with_tax"),
            edits=(
                Edit("bookshop/tax.py", "cents + cents * rate_of(kind) // 100", "cents + rate_of(kind)"),
            ),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("bookshop/receipt.py", "money"),
            edits=(Edit("bookshop/receipt.py", "{cents % 100:02d}", "{cents % 100}"),),
        ),
        Fault(
            kind="raises-below",
            label=by_product("bookshop/prices.py", "list_price"),
            edits=(Edit("bookshop/prices.py", "return LIST[title]", "return LIST[title.title()]"),),
        ),
        Fault(
            kind="refuses-below",
            label=by_product("bookshop/prices.py", "discount"),
            edits=(Edit("bookshop/prices.py", "not 0 <= percent", "not 0 < percent"),),
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("bookshop/tax.py"),
            edits=(Edit("bookshop/tax.py", "def rate_of(kind):", "def rate_of(kind)"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="missing-module",
            label=removed_module("bookshop/prices.py"),
            edits=(Edit("bookshop/prices.py"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="renamed-function",
            label=by_product("bookshop/prices.py", "rounded", Category.SPEC_MISMATCH),
            edits=(Edit("bookshop/prices.py", "def rounded(", "def rounded_up("),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="broken-shared-fixture",
            label=by_test("tests/conftest.py", "cart"),
            edits=(Edit("tests/conftest.py", 'made.add("poems")', 'made.put("poems")'),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="flaky-test",
            label=flaky("tests/test_prices.py", "test_settles_in_time"),
            edits=(Edit("tests/test_prices.py", SETTLED, EVERY_OTHER_TIME),),
            turn=Turn.UNSTABLE,
        ),
    ),
)
