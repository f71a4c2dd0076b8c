"""Mail: addresses, templates and an outbox that needs a service and a program of the machine."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    SERVICE_FIXTURE,
    Edit,
    Fault,
    Project,
    Turn,
    by_environment,
    by_product,
    by_test,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "mailer/__init__.py": "",
    "mailer/addresses.py": '''"""Addresses of mail."""


def split(address):
    name, _, domain = address.strip().partition("@")
    if not name or not domain:
        raise ValueError(f"no address: {address!r}")
    return name, domain.lower()


def normal(address):
    return "@".join(split(address))


def unique(addresses):
    return sorted({normal(address) for address in addresses})
''',
    "mailer/templates.py": '''"""Templates with names in braces."""

import re


def names(text):
    return re.findall(r"\\{(\\w+)\\}", text)


def fill(text, values):
    for name in names(text):
        text = text.replace("{" + name + "}", str(values[name]))
    return text


def greeting(person):
    return fill("Dear {title} {name},", {"title": "Dr", "name": person})
''',
    "mailer/outbox.py": '''"""Mail that waits to be sent."""

import subprocess

from mailer.addresses import normal
from mailer.templates import greeting

PRINTER = "cat"


class Outbox:
    def __init__(self, connection):
        self.connection = connection
        self.waiting = []

    def put(self, address, person):
        self.waiting.append((normal(address), greeting(person)))

    def sizes(self):
        return [len(text) for _, text in self.waiting]

    def printed(self):
        text = "\\n".join(text for _, text in self.waiting)
        return subprocess.run([PRINTER], input=text, capture_output=True, text=True, check=True).stdout
''',
    "tests/conftest.py": "import os\nimport socket\n\nimport pytest\n\nfrom mailer.outbox import Outbox\n"
    + SERVICE_FIXTURE
    + """

@pytest.fixture
def outbox(service):
    made = Outbox(service)
    made.put("Ann@Example.org", "Ann")
    made.put("bob@example.org", "Bob Miller")
    return made
""",
    "tests/test_addresses.py": """import pytest

from mailer import addresses


def test_split():
    assert addresses.split("ann@example.org") == ("ann", "example.org")


@pytest.mark.parametrize("text", ["", "ann", "@example.org", "ann@"])
def test_no_address(text):
    with pytest.raises(ValueError):
        addresses.split(text)


def test_normal():
    assert addresses.normal(" ann@EXAMPLE.org") == "ann@example.org"


def test_unique():
    assert addresses.unique(["a@b.c", "a@B.c", "b@b.c"]) == ["a@b.c", "b@b.c"]
""",
    "tests/test_templates.py": """import pytest

from mailer.templates import fill, greeting, names


@pytest.mark.parametrize("text, expected", [("", []), ("{a} and {b}", ["a", "b"]), ("a", [])])
def test_names(text, expected):
    assert names(text) == expected


def test_fill():
    assert fill("{a}-{b}", {"a": 1, "b": 2}) == "1-2"


def test_unknown_name():
    with pytest.raises(KeyError):
        fill("{a}", {})


def test_greeting():
    assert greeting("Ann") == "Dear Dr Ann,"
""",
    "tests/test_outbox.py": """def test_waiting(outbox):
    assert len(outbox.waiting) == 2


def test_address(outbox):
    assert outbox.waiting[0][0] == "Ann@example.org"


def test_text(outbox):
    assert outbox.waiting[1][1] == "Dear Dr Bob Miller,"


def test_sizes(outbox):
    assert outbox.sizes() == [12, 19]
""",
    "tests/test_printing.py": """from mailer.outbox import Outbox


def test_nothing_to_print():
    assert Outbox(None).printed() == ""


def test_printed(outbox):
    assert outbox.printed().splitlines()[0] == "Dear Dr Ann,"


def test_all_printed(outbox):
    assert len(outbox.printed().splitlines()) == 2
""",
}

PROJECT = Project(
    name="mailer",
    files=FILES,
    service=True,
    todos={
        "addresses": tests("pytest tests/test_addresses.py"),
        "templates": tests("pytest tests/test_templates.py"),
        "outbox": tests("pytest tests/test_outbox.py"),
        "printing": tests("pytest tests/test_printing.py"),
    },
    depends={"outbox": ("addresses", "templates"), "printing": ("outbox",)},
    faults=(
        Fault(
            kind="absent-service",
            label=by_environment("tests/conftest.py", "service"),
            without_service=True,
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="absent-tool",
            label=by_environment("mailer/outbox.py", "Outbox.printed"),
            edits=(Edit("mailer/outbox.py", 'PRINTER = "cat"', 'PRINTER = "lpr-to-mail"'),),
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("mailer/addresses.py", "split"),
            edits=(Edit("mailer/addresses.py", "domain.lower()", "domain"),),
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("mailer/templates.py", "fill"),
            edits=(Edit("mailer/templates.py", '"{" + name + "}", str', '" {" + name + "}", str'),),
        ),
        Fault(
            kind="refuses-below",
            label=by_product("mailer/addresses.py", "split"),
            edits=(Edit("mailer/addresses.py", "if not name or not domain:", "if not name or domain:"),),
        ),
        Fault(
            kind="renamed-function",
            label=by_product("mailer/templates.py", "fill", Category.SPEC_MISMATCH),
            edits=(Edit("mailer/templates.py", "def fill(", "def filled("),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="missing-dependency",
            label=by_product("mailer/outbox.py", None, Category.IMPORT_ERROR),
            edits=(
                Edit("mailer/outbox.py", "import subprocess\n", "import subprocess\n\nimport pendulum\n"),
            ),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="typo-in-test",
            label=by_test("tests/test_addresses.py", "test_normal"),
            edits=(Edit("tests/test_addresses.py", "addresses.normal(", "adresses.normal("),),
        ),
    ),
)
