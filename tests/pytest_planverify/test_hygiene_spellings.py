"""One thing in many spellings: constants, conditions that always hold, checks of unittest, data files."""

from __future__ import annotations

import ast
import base64
import zlib

import pytest
from hygiene_samples import FORBIDDEN, GRANTED, OPEN, TREE, is_flagged, product_with, signals, signs
from hypothesis import given
from hypothesis import strategies as st

from pytest_planverify.guards.hygiene.checks import Strength, check_of, checks_in
from pytest_planverify.guards.hygiene.data_files import literals_of, rows_of
from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import parse
from pytest_planverify.guards.hygiene.truths import is_always_false, is_always_true

PACKED = base64.b64encode(zlib.compress(b"pytest")).decode()


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    "text",
    [
        "'py' + 'test'",
        "f'{\"py\"}test'",
        "'%stest' % 'py'",
        "'{}{}'.format('py', 'test')",
        "''.join(['py', 'test'])",
        "'tsetyp'[::-1]",
        "''.join(reversed('tsetyp'))",
        "'PYTEST'.lower()",
        "'qytest'.replace('q', 'p')",
        "chr(112) + 'ytest'",
        "bytes([112, 121, 116, 101, 115, 116]).decode()",
        "bytes.fromhex('707974657374').decode()",
        "''.join(chr(c) for c in (112, 121, 116, 101, 115, 116))",
        "('pytest', 1)[0]",
        "base64.b64decode('cHl0ZXN0').decode()",
        "codecs.decode('clgrfg', 'rot13')",
        "+1 and 'pytest'",
        f"zlib.decompress(base64.b64decode({PACKED!r})).decode()",
        "'pytest' * 1",
        "'x' and 'pytest' or 'y'",
        "''.join(map(chr, [112, 121, 116, 101, 115, 116]))",
        "bytearray(b'pytest').decode()",
        "'pytest' if 1 else ''.join(x)",
    ],
)
def test_constants_are_worked_out_however_they_are_spelled(text: str) -> None:
    assert fold(expression(text)) == "pytest"


@pytest.mark.parametrize(
    "text",
    ["x", "f(1)", "'a' * 10 ** 9", "'%9999999d' % 1", "'{:>9999999}'.format(1)", "1 / 0", "[1][5]",
    "'a' + 1", "[x for x in y]",
     "range(10 ** 9)", "'a'.join(x)", "int('x')", "b'x'.decode('nothing')"],
)  # fmt: skip
def test_what_depends_on_more_or_would_cost_much_is_not_worked_out(text: str) -> None:
    assert fold(expression(text)) is NOTHING


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_of_sources_raise(text: str) -> None:
    module = parse("a.py", text.encode("utf-8", "replace"))
    if module is not None:
        assert isinstance(module.aliases, dict)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("True", True), ("not " "False", True), ("x == x", True), ("x or " "True", True),
        ("x or " "not x", True), ("len(x) " ">= 0", True),
        ("len(x) > -1", True), ("isinstance(x, " "object)", True), ("isinstance(x, " "(int, object))",
        True), ("bool(1)", True),
        ("x in " "[x, y]", True), ("(x, " "'said')", True), ("lambda: x", True), ("1 if " "x else 2",
        True), ("(y := 1)", True),
        ("True and 1", True), ("self is not None", True), ("{1: x}", True),
        ("x", False), ("x == y", False), ("f(x) " "== " "f(x)", False), ("x or y", False),
        ("len(x) " "> 0", False), ("x in y", False),
        ("isinstance(x, int)", False), ("()", False), ("x is not None", False), ("x and True", False),
    ],
)  # fmt: skip
def test_what_always_holds_is_known(text: str, holds: bool) -> None:
    assert is_always_true(expression(text)) is holds
    assert is_always_false(expression(f"not ({text})")) is holds
    assert (check_of(expression(text), expression(text)).strength is Strength.NOTHING) is holds


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("self.assertEqual(f(x), 1)", "assert f(x) == 1"), ("self.assertEqual(1, f(x))",
        "assert f(x) == 1"),
        ("self.assertTrue(f(x))", "assert f(x)"), ("self.assertFalse(f(x))", "assert not f(x)"),
        ("self.assertIsNone(x)", "assert x is None"), ("self.assertIn(x, y)", "assert x in y"),
        ("self.assertListEqual(x, y)", "assert x == y"), ("self.assertIsInstance(x, " "int)",
        "assert isinstance(x, int)"),
        ("self.assertGreaterEqual(x, 2)", "assert x >= 2"), ("assert 1 == x", "assert x == 1"),
        ("with self.assertRaises(KeyError):\n f()", "with pytest.raises(KeyError):\n f()"),
        ("with " "self.assertRaisesRegex(KeyError, " "'a'):\n f()",
        "with pytest.raises(KeyError, " "match='a'):\n f()"),
        ("with self.assertWarns(UserWarning):\n f()", "with pytest.warns(UserWarning):\n f()"),
    ],
)  # fmt: skip
def test_the_checks_of_unittest_are_those_of_pytest(one: str, other: str) -> None:
    texts = [
        [check.text(frozenset()) for check in checks_in(ast.parse(text).body)] for text in (one, other)
    ]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 1


UNITTEST = """
import unittest
from pkg.words import split


class WordsTest(unittest.TestCase):
    def test_split(self):
        self.assertEqual(split("a,b"), ["a", "b"])
        self.assertAlmostEqual(len(split("a,b")) / 3, 0.6667, places=3)

    def test_none(self):
        with self.assertRaisesRegex(AttributeError, "NoneType"):
            split(None)
"""


@pytest.mark.parametrize(
    ("sign", "old", "new"),
    [
        ("test-skipped", "    def test_split", "    @unittest.skip('later')\n    def test_split"),
        ("test-skipped", "    def test_split", "    @unittest.skipIf(True, 'x')\n    def test_split"),
        ("test-skipped", "    def test_split", "    @unittest.skipUnless(False, 'x')\n    def test_split"),
        ("test-skipped", "class Words", "@unittest.skip('x')\nclass Words"),
        ("test-skipped", "def test_none(self):\n", "def test_none(self):\n        self.skipTest('x')\n"),
        ("test-xfailed", "    def test_split", "    @unittest.expectedFailure\n    def test_split"),
        ("test-renamed-away", "unittest.TestCase", "object"),
        ("test-renamed-away", "def test_split", "def tset_split"),
        (
            "assertion-weakened",
            'self.assertEqual(split("a,b"), ["a", "b"])',
            'self.assertTrue(split("a,b"))',
        ),
        (
            "assertion-weakened",
            'self.assertEqual(split("a,b"), ["a", "b"])',
            'self.assertIsNotNone(split("a,b"))',
        ),
        ("assertion-always-true", 'self.assertEqual(split("a,b"), ["a", "b"])', "self.assertTrue(True)"),
        ("assertion-weakened", "places=3", "places=0"),
        ("assertion-weakened", "places=3", "delta=5"),
        ("assertion-weakened", 'RaisesRegex(AttributeError, "NoneType")', "Raises(AttributeError)"),
        ("assertion-removed", '        self.assertEqual(split("a,b"), ["a", "b"])\n', ""),
        ("expected-changed", '["a", "b"]', '["a,b"]'),
    ],
)
def test_losses_of_tests_of_unittest_are_found(sign: str, old: str, new: str) -> None:
    assert old in UNITTEST
    tree = {**TREE, "tests/test_words.py": UNITTEST}
    for grants in (FORBIDDEN, OPEN):
        found = signals({"tests/test_words.py": UNITTEST.replace(old, new)}, tree=tree, grants=grants)
        assert (sign, "hard") in {(each.sign, each.hardness) for each in found}, found


def test_tests_of_unittest_may_become_those_of_pytest() -> None:
    now = """
import pytest
from pkg.words import split


def test_split():
    assert split("a,b") == ["a", "b"]
    assert len(split("a,b")) / 3 == pytest.approx(0.6667, abs=1e-3)


def test_none():
    with pytest.raises(AttributeError, match="NoneType"):
        split(None)
"""
    tree = {**TREE, "tests/test_words.py": UNITTEST}
    assert not is_flagged({"tests/test_words.py": now}, tree=tree, grants=GRANTED)


@pytest.mark.parametrize(
    ("path", "content", "held"),
    [
        ("a.json", '[{"a": 1, "b": ["x"]}, 2.5]', {"'a'", "1", "'x'", "2.5"}),
        ("a.csv", "a,1\nb;2.5\n", {"'a'", "1", "'b'", "2.5"}),
        ("a.toml", "a = 1\n", {"'a'", "1"}),
        ("a.yaml", "a: [1, x]\n", {"'a'", "1", "'x'"}),
        ("a.txt", "one line\n", {"'one line'"}),
        ("a.json", "{", set()),
        ("a.yaml", "a: [", set()),
        ("a.bin", "\0\1", set()),
    ],
)
def test_the_values_of_data_files_are_read(path: str, content: str, held: set[str]) -> None:
    assert held <= literals_of(path, content.encode())
    rows = list(rows_of(path, content.encode()))
    assert all(held_value in set().union(*rows) for held_value in held) if held else rows is not None
    assert literals_of(path, None) == set()
    assert list(rows_of(path, None)) == []


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("a,1\nb,2\n", "a,1\r\nb,2\r\n", False),
        ("a,1\nb,2\n", "a,1\nb,3\n", True),
        ("\0\1", "\0\2", True),
    ],
)
def test_tables_of_text_are_compared_by_lines(old: str, new: str, changed: bool) -> None:
    tree = {**TREE, "tests/data/t.csv": old}
    assert (signs({"tests/data/t.csv": new}, tree=tree) == {"data-changed"}) is changed


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        ("patches-judge", "import sys\nsys.modules['pytest'] = None"),
        ("patches-judge", "import builtins\nvars(builtins)['len'] = lambda x: 2"),
        ("patches-judge", "__builtins__['len'] = lambda x: 2"),
        ("patches-judge", "import unittest\nunittest.TestCase.__dict__.update({})"),
        (
            "patches-judge",
            "from forbiddenfruit import curse\nimport forbiddenfruit\nforbiddenfruit.curse(int, 'x', 1)",
        ),
        ("patches-foreign", "import sys\nsys.excepthook = print"),
        ("patches-foreign", "import requests\nrequests.get = print"),
        ("patches-foreign", "import sys\nsys.modules['requests'] = None"),
        ("patches-foreign", "import ctypes\nctypes.memmove(1, 2, 3)"),
        ("patches-judge", "def f(g):\n    g.__globals__['x'] = 1"),
        ("patches-foreign", "from unittest import mock\nmock.patch('requests.get').start()"),
        ("imports-framework", "import pytest"),
        ("import-hook", "import sys\nsys.meta_path.insert(0, None)"),
        ("runs-hidden-code", "def f(text):\n    return eval(text)"),
        ("runs-hidden-code", "import marshal\nmarshal.loads(b'abc')"),
        ("asks-for-surroundings", "import sys\ndef f():\n    return sys.argv[1]"),
        ("asks-for-surroundings", "import sys\nX = sys.modules['__main__'].__file__"),
        ("asks-for-surroundings", "import __main__"),
        ("asks-for-surroundings", "import sys\nX = sys.gettrace()"),
        ("asks-for-surroundings", "import sys\nX = [m for m in sys.modules]"),
        ("asks-for-tests", "import re, sys\nX = re.search('pytest|nose', ' '.join(sys.argv))"),
        ("asks-for-tests", "def f(name):\n    return name == 'unittest'"),
        ("looks-at-call-stack", "import sys\ndef f():\n    return sys._getframe(1)"),
        ("names-tests", "import inspect\ndef f(x):\n    return inspect.getsource(x)"),
        ("names-tests", "from pathlib import Path\nX = Path('tests')"),
        (
            "always-agrees",
            "class A(str):\n    def __eq__(self, other):\n        return self.lower() == other.lower()",
        ),
        ("always-agrees", "class A:\n    def __contains__(self, x):\n        return True"),
        ("always-equal", "ns = dict()\nA = type('A', (), dict(__eq__=lambda s, o: True))"),
        ("always-equal", "def yes(s, o):\n    return True\nclass A:\n    __eq__ = yes"),
        ("exit-doubtful", "import sys\ndef f(code):\n    sys.exit(code)"),
        ("exit-doubtful", "import signal\ndef f():\n    signal.raise_signal(9)"),
        (
            "counts-calls",
            "class A:\n    n = 0\ndef f():\n    A.n += 1\n    if A.n > 2:\n        print('x')",
        ),
        ("counts-calls", "def f():\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n % 2"),
        ("asks-for-type-name", "def f(x):\n    if type(x).__name__ == 'Manual':\n        print(x)"),
        (
            "test-literals",
            "def f(text):\n    if text in ('a, b', 'x,y,z', 'one;two'):\n        print(text)",
        ),
    ],
)
def test_other_tricks_are_found_too(sign: str, code: str) -> None:
    assert sign in signs(product_with(code)), signals(product_with(code))
