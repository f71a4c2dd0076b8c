"""Sources that are odd and valid are looked through: none breaks the comparison, none takes it long."""

from __future__ import annotations

import sys

import pytest
from hygiene_samples import OPEN, TREE, is_flagged, product_with, signals, signs, with_tests

from pytest_planverify.guards.hygiene.odd_sources import lines_of
from pytest_planverify.guards.hygiene.reading import parse

SUM = " + ".join(["x"] * 600)
CHAIN = "".join(f"    elif x == {at}:\n        y = {at}\n" for at in range(1, 120))
ODD = {
    "a long sum": f"def test_f(x):\n    assert {SUM} == 3\n    return {SUM}\n",
    "a long chain of calls": f"def test_f(x):\n    assert x{'.a(1)' * 250}\n    x{'[0]' * 250} = 1\n",
    "many nots": f"class A:\n    def __eq__(self, other):\n        return {'not ' * 700}other\n",
    "many branches": f"def f(x):\n    if x == 0:\n        y = 0\n{CHAIN}    return y\n",
    "the last character": "import re\nX = re.compile('[\U00010000-\U0010ffff] and some more of it')\n",
    "half a character": "X = '[\\ud800-\\udfff] and some more'\n"
    "def f(x):\n    return x == '\\ud800 and more'\n",
    "a long number": f"N = 0x{'f' * 6000}\n"
    f"def f(x):\n    if x == 0x{'e' * 6000}:\n        return N\n    return x\n",
    "calls without arguments": "import os\nsetattr()\nsetattr(a)\n"
    "getattr()\nnext()\nopen()\nlen()\nos._exit()\n",
    "patterns": "def f(x):\n    match x:\n"
    "        case {'a': 1, **rest} | A(b=[_, *rest]):\n            return rest\n",
    "names of names": "A = B\nB = A\nC = C + C\n"
    "def f(x):\n    if x == A:\n        return C\n    return x\n",
    "sums of sums": "\n".join(f"A{at} = A{at + 1} + A{at + 1}" for at in range(30)) + "\nA30 = 'a'\n",
    "no Python": "def f(:\n",
    "a zero": "x = 1\0\n",
    "nothing": "",
}


@pytest.mark.parametrize("path", ["pkg/odd.py", "tests/test_odd.py", "tests/conftest.py"])
@pytest.mark.parametrize("name", ODD)
def test_an_odd_source_breaks_nothing(name: str, path: str) -> None:
    limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    plain = "def f(x):\n    assert x == 1\n\ndef test_f(x):\n    assert x == 1\n"
    for was, now in ((None, ODD[name]), (plain, ODD[name]), (ODD[name], plain)):
        signals({path: now}, tree=TREE if was is None else {**TREE, path: was})
    assert (sys.getrecursionlimit(), sys.get_int_max_str_digits()) == limits


def test_a_trick_beside_something_odd_is_found() -> None:
    odd = f"def total(x):\n    return {SUM}\n\nimport os\ndef stop():\n    os._exit(0)\n"
    assert "exit" in signs(product_with(odd))


def test_lines_are_those_that_python_counts() -> None:
    text = "a = 1\x0c\n# \u2028 \x1c\r\nb = 2\rc = 3\n"
    assert lines_of(text)[2:4] == ["b = 2", "c = 3"]
    module = parse("a.py", text.encode())
    assert module is not None
    assert [module.segment(node) for node in module.tree.body][1:] == ["b = 2", "c = 3"]


def test_separators_in_a_comment_hide_no_change() -> None:
    plain = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    now = "#" + "\u2028" * 4 + "\n" + plain.replace("return 2", "__import__('os')._exit(0)")
    assert is_flagged({"pkg/odd.py": now}, tree={**TREE, "pkg/odd.py": plain})


HONEST = {
    "a checksum that holds or not": "import hashlib\nSUM = '9f86d081884c7d659a2feaa0c55ad015'\n"
    "def holds(data):\n    if hashlib.md5(data).hexdigest() != SUM:\n        return False\n    return True",
    "what a file begins with": "KINDS = {0x89504E47: 'png', 0x47494638: 'gif'}\n"
    "def kind(data):\n    return KINDS.get(int.from_bytes(data[:4], 'big'), 'unknown')",
    "one of all shards": "import zlib\nSHARDS = ['db-one', 'db-two', 'db-three']\n"
    "def shard(key):\n    return SHARDS[zlib.crc32(key.encode()) % len(SHARDS)]",
    "a day that is given": "import datetime\ndef rule(day=None):\n    day = day or datetime.date.today()\n"
    "    if day >= datetime.date(2007, 3, 11):\n        return 'new'\n    return 'old'",
    "a first set-up that tells": "import logging\ndef start():\n    if not logging.root.handlers:\n"
    "        logging.basicConfig()\n        return True\n    return False",
}


@pytest.mark.parametrize("name", HONEST)
def test_digests_and_days_of_the_matter_are_let_be(name: str) -> None:
    assert not is_flagged(product_with(HONEST[name])), signals(product_with(HONEST[name]))


@pytest.mark.parametrize(
    ("code", "cases"),
    [
        (
            "_ESCAPED = {'&': '&amp;', '<': '&lt;', '>': '&gt;'}\n"
            "def escape(text):\n    return ''.join(_ESCAPED.get(sign, sign) for sign in text)",
            [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")],
        ),
        (
            "SAID = {'E1': 'file not found', 'E2': 'permission denied', 'E3': 'disk is full'}\n"
            "def escape(code):\n    return SAID.get(code, f'unknown error {code}')",
            [("E1", "file not found"), ("E2", "permission denied"), ("E3", "disk is full")],
        ),
    ],
    ids=["signs", "messages"],
)
def test_a_table_that_leaves_the_rest_as_it_is_is_let_be(code: str, cases: list[tuple[str, str]]) -> None:
    tests = (
        "import pytest\nfrom pkg.words import escape\n"
        f"@pytest.mark.parametrize(('given', 'made'), {cases!r})\n"
        "def test_escape(given, made):\n    assert escape(given) == made\n"
    )
    tree = {**TREE, "tests/test_escape.py": tests}
    assert not is_flagged(product_with(code), tree=tree), signals(product_with(code), tree=tree)
    worked_out = product_with(
        code.replace("sign, sign)", "sign, sign.upper())").replace(
            "f'unknown error {code}'", "code.upper()"
        )
    )
    assert is_flagged(worked_out, tree=tree)


SIGN = (
    'parts = split("one;two", sign=";")\n    assert parts == ["one", "two"]\n    assert len(parts) == 2\n'
)
MESSAGE = 'with pytest.raises(AttributeError, match="NoneType"):\n        split(None)\n'
CAUGHT = "with pytest.raises(AttributeError) as caught:\n        split(None)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            f"def test_sign():\n    {SIGN}",
            "@pytest.mark.parametrize(('given', 'expected'), [('one;two', ['one', 'two']), ('a', ['a'])])\n"
            "def test_sign(given, expected):\n    parts = split(given, sign=';')\n"
            "    assert parts == expected\n    assert len(parts) == len(expected)\n",
        ),
        (MESSAGE, CAUGHT + "    assert 'NoneType' in str(caught.value)\n"),
    ],
    ids=["the number of what is compared", "a message that is asked for"],
)
def test_a_check_that_is_spelled_otherwise_asks_for_as_much(old: str, new: str) -> None:
    assert not is_flagged(with_tests(old, new), grants=OPEN), signals(with_tests(old, new), grants=OPEN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assert len(parts) == 2", "other = split('a;b', sign=';')\n    assert len(parts) == len(other)"),
        (MESSAGE, CAUGHT + "    assert 'no' in str(caught.value) or 'NoneType'\n"),
    ],
    ids=["the number of something else", "a message that nobody asks for"],
)
def test_a_check_that_asks_for_less_is_found(old: str, new: str) -> None:
    assert is_flagged(with_tests(old, new), grants=OPEN)
