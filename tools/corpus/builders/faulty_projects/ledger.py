"""A ledger: amounts, accounts and statements, tested with unittest, and a type checker over all of it."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    Edit,
    Fault,
    Project,
    Turn,
    by_product,
    by_test,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "ledger/__init__.py": "",
    "ledger/amounts.py": '''"""Amounts of money as whole cents."""

from __future__ import annotations


def parse(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int((part + "00")[:2])


def show(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def shares(cents: int, count: int) -> list[int]:
    each, rest = divmod(cents, count)
    return [each + (1 if number < rest else 0) for number in range(count)]
''',
    "ledger/accounts.py": '''"""Accounts and what was booked on them."""

from __future__ import annotations

from ledger.amounts import parse


class Account:
    def __init__(self, name: str) -> None:
        self.name = name
        self.booked: list[int] = []

    def book(self, amount: str) -> None:
        self.booked.append(parse(amount))

    def balance(self) -> int:
        return sum(self.booked)

    def largest(self) -> int:
        return max(self.booked, default=0)


def transfer(source: Account, target: Account, amount: str) -> None:
    source.booked.append(-parse(amount))
    target.book(amount)
''',
    "ledger/statement.py": '''"""Statements for people."""

from __future__ import annotations

from ledger.accounts import Account
from ledger.amounts import show


def heading(account: Account) -> str:
    return f"Account {account.name}"


def statement(account: Account) -> list[str]:
    rows = [show(cents) for cents in account.booked]
    return [heading(account), *rows, f"balance {show(account.balance())}"]
''',
    "tests/test_amounts.py": """import unittest

from ledger.amounts import parse, shares, show


class Parsing(unittest.TestCase):
    def test_whole(self):
        self.assertEqual(parse("12"), 1200)

    def test_cents(self):
        self.assertEqual(parse("12.34"), 1234)

    def test_one_digit(self):
        self.assertEqual(parse("0.5"), 50)


class Showing(unittest.TestCase):
    def test_show(self):
        self.assertEqual(show(1234), "12.34")

    def test_small(self):
        self.assertEqual(show(5), "0.05")


class Sharing(unittest.TestCase):
    def test_even(self):
        self.assertEqual(shares(90, 3), [30, 30, 30])

    def test_rest(self):
        self.assertEqual(shares(100, 3), [34, 33, 33])
""",
    "tests/test_accounts.py": """import unittest

from ledger.accounts import Account, transfer


def account(*amounts):
    made = Account("savings")
    for amount in amounts:
        made.book(amount)
    return made


class Booking(unittest.TestCase):
    def setUp(self):
        self.account = account("10.00", "2.50")

    def test_balance(self):
        self.assertEqual(self.account.balance(), 1250)

    def test_largest(self):
        self.assertEqual(self.account.largest(), 1000)

    def test_nothing_booked(self):
        self.assertEqual(account().largest(), 0)

    def test_transfer(self):
        other = account()
        transfer(self.account, other, "2.50")
        self.assertEqual((self.account.balance(), other.balance()), (1000, 250))
""",
    "tests/test_statement.py": """import unittest

from ledger.accounts import Account
from ledger.statement import heading, statement


class Statements(unittest.TestCase):
    def setUp(self):
        self.account = Account("savings")
        self.account.book("10.00")
        self.account.book("2.05")

    def test_heading(self):
        self.assertEqual(heading(self.account), "Account savings")

    def test_rows(self):
        self.assertEqual(statement(self.account)[1:3], ["10.00", "2.05"])

    def test_balance_row(self):
        self.assertEqual(statement(self.account)[-1], "balance 12.05")
""",
}

PROJECT = Project(
    name="ledger",
    files=FILES,
    todos={
        "amounts": tests("pytest tests/test_amounts.py"),
        "accounts": tests("pytest tests/test_accounts.py"),
        "statement": tests("pytest tests/test_statement.py"),
        "typed": tests("mypy ledger"),
    },
    depends={"accounts": ("amounts",), "statement": ("accounts",)},
    faults=(
        Fault(
            kind="type-and-tests",
            label=by_product("ledger/amounts.py", "show", Category.TYPE_ERROR),
            edits=(
                Edit("ledger/amounts.py", 'return f"{cents // 100}.{cents % 100:02d}"', "return cents"),
            ),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("ledger/amounts.py", "shares"),
            edits=(Edit("ledger/amounts.py", "number < rest", "number <= rest"),),
        ),
        Fault(
            kind="raises-below",
            label=by_product("ledger/amounts.py", "parse"),
            edits=(Edit("ledger/amounts.py", 'int((part + "00")[:2])', 'int(part + "00"[:1] + "x")'),),
        ),
        Fault(
            kind="lost-attribute",
            label=by_product("ledger/accounts.py", "Account.__init__", Category.TYPE_ERROR),
            edits=(
                Edit("ledger/accounts.py", "self.booked: list[int] = []", "self.entries: list[int] = []"),
            ),
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("ledger/accounts.py"),
            edits=(Edit("ledger/accounts.py", "return sum(self.booked)", "return sum(self.booked"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="renamed-function",
            label=by_product("ledger/amounts.py", "show", Category.SPEC_MISMATCH),
            edits=(Edit("ledger/amounts.py", "def show(", "def shown("),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="wrong-helper",
            label=by_test("tests/test_accounts.py", "account"),
            edits=(Edit("tests/test_accounts.py", "made.book(amount)", "made.book(amount, 1)"),),
        ),
        Fault(
            kind="missing-dependency",
            label=by_product("ledger/statement.py", None, Category.IMPORT_ERROR),
            edits=(
                Edit(
                    "ledger/statement.py",
                    "from ledger.accounts import",
                    "import humanize\n\nfrom ledger.accounts import",
                ),
            ),
            turn=Turn.UNDERLYING,
        ),
    ),
)
