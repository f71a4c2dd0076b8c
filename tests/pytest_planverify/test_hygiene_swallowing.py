"""Tests that cannot fail any more: nets of their own, overridden unittest, chosen cases, other products."""

from __future__ import annotations

import textwrap

import pytest
from hygiene_samples import FORBIDDEN, GRANTED, OPEN, TREE, is_flagged, signals

from pytest_planverify.guards.hygiene import Grants

PRODUCT = (
    "def cut(text, end):\n    return text[: -len(end)]\n\n\ndef join(parts):\n    return '-'.join(parts)\n"
)
BODY = "    assert cut('name.py', '.py') == 'name'\n    assert cut('name', '.py') == 'name'\n"
TEST = f"def test_cut():\n{BODY}"
SHARED = "def assert_equal(expected, result):\n    print(expected)\n    assert expected == result\n"
CASE = (
    "import unittest\nfrom pkg.ends import join\n\n\nclass TestJoin(unittest.TestCase):\n"
    "    def test_join(self):\n        self.assertEqual(join(['a', 'b']), 'a-b')\n"
)
ROWS = '[("a.py", ".py", "a"), ("b", ".c", "b"), ("d.e", "", "d.e")]'
MANY = (
    "import pytest\nfrom pkg.ends import cut\n\n\n"
    f'@pytest.mark.parametrize(("text", "end", "rest"), {ROWS})\n'
    "def test_many(text, end, rest):\n    assert cut(text, end) == rest\n"
)
ENDS = {
    "pkg/__init__.py": "",
    "pkg/ends.py": PRODUCT,
    "tests/__init__.py": "",
    "tests/test_ends.py": f"from pkg.ends import *\n\n\n{TEST}",
    "tests/test_join.py": CASE,
    "tests/test_many.py": MANY,
    "tests/test_shared.py": "from common import assert_equal\nfrom pkg.ends import join\n\n\n"
    "def test_shared():\n    assert_equal('a-b', join(['a', 'b']))\n",
    "tests/common.py": SHARED,
}
GOOD = "lambda text, end: text.removesuffix(end)"


def _in(body: str, before: str = "") -> dict[str, str | None]:
    """The test of the file of ends with another body."""
    return {"tests/test_ends.py": f"from pkg.ends import *\n{before}\n\ndef test_cut():\n{body}"}


def _below(head: str, before: str = "") -> dict[str, str | None]:
    return _in(f"    {head}\n{textwrap.indent(BODY, '    ')}", before)


def _joined(members: str) -> dict[str, str | None]:
    return {
        "tests/test_join.py": CASE.replace(
            "TestCase):\n", f"TestCase):\n{textwrap.indent(members, '    ')}\n\n"
        )
    }


def _many(old: str, new: str) -> dict[str, str | None]:
    assert old in MANY
    return {"tests/test_many.py": MANY.replace(old, new)}


MANAGER = "import contextlib\n\n@contextlib.contextmanager\ndef calm():\n"
SWALLOWED: dict[str, tuple[str, dict[str, str | None]]] = {
    "its own manager": (
        "assertion-swallowed",
        _below("with calm():", f"{MANAGER}    try:\n        yield\n    except AssertionError:\n"
        f"        pass\n"),
    ),
    "a manager that suppresses": (
        "assertion-swallowed",
        _below("with calm():", f"{MANAGER}    with contextlib.suppress(Exception):\n        yield\n"),
    ),
    "a class of its own": (
        "assertion-swallowed",
        _below(
            "with Calm():",
            "class Calm:\n    def __enter__(self):\n        return self\n"
            "    def __exit__(self, kind, value, tb):\n        return kind is not None\n",
        ),
    ),
    "a class of another file": (
        "assertion-swallowed",
        {
            "tests/support.py": "class Calm:\n    def __enter__(self):\n        pass\n"
            "    def __exit__(self, *args):\n        return True\n",
            **_below("with Calm():", "from .support import Calm\n"),
        },
    ),
    "an exit stack": (
        "assertion-swallowed",
        _in(
            "    with contextlib.ExitStack() as stack:\n        stack.push(lambda *exc: True)\n"
            + textwrap.indent(BODY, "    "),
            "import contextlib\n",
        ),
    ),
    "an exit stack that suppresses": (
        "assertion-swallowed",
        _in(
            "    with contextlib.ExitStack() as stack:\n"
            "        stack.enter_context(contextlib.suppress(AssertionError))\n"
            + textwrap.indent(BODY, "    "),
            "import contextlib\n",
        ),
    ),
    "another thread": (
        "assertion-swallowed",
        _in(
            "    def work():\n"
            + textwrap.indent(BODY, "    ")
            + "    threading.Thread(target=work).start()\n",
            "import threading\n",
        ),
    ),
    "a function that nobody calls": (
        "assertion-unreachable",
        _in("    def work():\n" + textwrap.indent(BODY, "    ") + "    assert work\n"),
    ),
    "no rounds": ("assertion-unreachable", _below("for _ in range(0):")),
    "for the type checker only": (
        "test-renamed-away",
        {
            "tests/test_ends.py": "from typing import TYPE_CHECKING\nfrom pkg.ends import *\n\n"
            f"if TYPE_CHECKING:\n{textwrap.indent(TEST, '    ')}"
        },
    ),
    **{
        f"a decorator that {name}": (
            "assertion-swallowed",
            {"tests/test_ends.py": f"from pkg.ends import *\n\n{maker}\n\n@calm\n{TEST}"},
        )
        for name, maker in {
            "catches": "def calm(test):\n    def run():\n        try:\n            return test()\n"
            "        except AssertionError:\n            return None\n    return run",
            "suppresses": "import contextlib\ndef calm(test):\n    def run():\n"
            "        with contextlib.suppress(Exception):\n            test()\n    return run",
            "does nothing": "def calm(test):\n    return lambda: None",
        }.items()
    },
    "an assertion of its own": ("outcome-hook", _joined("def assertEqual(self, a, b, msg=None):\n"
    "    pass")),
    "a run of its own": ("outcome-hook", _joined("def _callTestMethod(self, method):\n    pass")),
    "another failure": ("outcome-hook", _joined("failureException = unittest.SkipTest")),
    "another comparison": (
        "outcome-hook",
        _joined("def setUp(self):\n    self.addTypeEqualityFunc(str, lambda *a, **k: None)"),
    ),
    "a helper that only tells": (
        "assertion-always-true",
        {"tests/common.py": SHARED.replace("    assert expected == result\n", "    expected == result\n")},
    ),
    "a helper that is always right": (
        "assertion-always-true",
        {"tests/common.py": SHARED.replace("expected == result\n", "expected == result or True\n")},
    ),
    "a helper of the same name": (
        "assertion-always-true",
        {
            "tests/test_shared.py": "from pkg.ends import join\n\n\ndef assert_equal(a, b):\n"
            "    return a, b\n\n\n"
            "def test_shared():\n    assert_equal('a-b', join(['a', 'b']))\n"
        },
    ),
    "the product in its conftest": (
        "product-replaced",
        {"tests/conftest.py": f"import pkg.ends as ends\n\nends.cut = {GOOD}\n"},
    ),
    "the product in its package": (
        "product-replaced",
        {"tests/__init__.py": f"import pkg.ends\n\nsetattr(pkg.ends, 'cut', {GOOD})\n"},
    ),
    "the product's names": (
        "product-replaced",
        {"tests/conftest.py": f"import pkg.ends as ends\n\nvars(ends)['cut'] = {GOOD}\n"
        f"ends.__dict__['cut'] = 1\n"},
    ),
    "what a star gave": ("product-replaced", _in(BODY, f"def cut(text, end):\n"
    f"    return ({GOOD})(text, end)\n")),
    "what another star gives": (
        "product-replaced",
        {
            "tests/other.py": "def cut(text, end):\n    return text.removesuffix(end)\n",
            **_in(BODY, "from .other import *\n"),
        },
    ),
    "what a parameter hides": (
        "product-replaced",
        {"tests/test_ends.py": f"from pkg.ends import *\n\n\ndef test_cut(cut={GOOD}):\n{BODY}"},
    ),
    "the names of the test's module": (
        "autouse-patch",
        {
            "tests/conftest.py": "import pytest\n\n@pytest.fixture(autouse=True)\ndef _ready(request):\n"
            f"    request.function.__globals__['cut'] = {GOOD}\n"
        },
    ),
    "the test's module": (
        "autouse-patch",
        {
            "tests/conftest.py": "import pytest\n\n@pytest.fixture(autouse=True)\n"
            "def _ready(request, monkeypatch):\n"
            f"    monkeypatch.setattr(request.module, 'cut', {GOOD}, raising=False)\n"
        },
    ),
    "a loaded module": (
        "patches-judge",
        {"tests/conftest.py": f"import sys\n\nsys.modules['pkg.ends'].cut = {GOOD}\n"},
    ),
    "another function as the test": (
        "outcome-hook",
        {"tests/conftest.py": "def pytest_itemcollected(item):\n    item.obj = lambda: None\n"},
    ),
    "a selection in the conftest": (
        "test-deselected",
        {"tests/conftest.py": "def pytest_configure(config):\n    config.option.keyword = 'not cut'\n"},
    ),
    "a selection that is set": (
        "test-deselected",
        {"tests/conftest.py": "def pytest_configure(config):\n"
        "    setattr(config.option, 'deselect', ['x'])\n"},
    ),
}  # fmt: skip
"""What stays hard whoever may change the tests."""

LESS: dict[str, tuple[str, dict[str, str | None]]] = {
    "other values": (
        "expected-changed",
        _in("    assert cut('name.py', '.py') == 'name'\n    assert cut('name', '.py') == 'n'\n"),
    ),
    "other values by name": (
        "expected-changed",
        _in(
            "    assert cut('name.py', '.py') == 'name'\n    assert cut('name', '.py') == NAME\n",
            "NAME = 'n'\n",
        ),
    ),
    "while nothing": (
        "assertion-weakened",
        _in(
            "    assert cut('name.py', '.py') == 'name'\n"
            "    while not cut:\n        assert cut('name', '.py') == 'name'\n"
        ),
    ),
    "what the product says": (
        "assertion-weakened",
        _in("    assert cut('name.py', '.py') == 'name'\n"
        "    assert cut('name', '.py') == cut('name', '.py')\n"),
    ),
    "what is left of both": (
        "assertion-weakened",
        _many("cut(text, end) == rest", "cut(text, end).lower() == rest.lower()"),
    ),
    "parts of both": (
        "assertion-weakened",
        {"tests/test_many.py": MANY.replace("cut(text, end) == rest", "cut(text, end)[:1] == rest[:1]")},
    ),
    "the first cases": ("cases-removed", {"tests/test_many.py": MANY.replace(ROWS, f"{ROWS}[:1]")}),
    "chosen cases": (
        "cases-removed",
        {"tests/test_many.py": MANY.replace(ROWS, f"[row for row in {ROWS} if row[1]]")},
    ),
    "filtered cases": (
        "cases-removed",
        {"tests/test_many.py": MANY.replace(ROWS, f"filter(all, {ROWS})")},
    ),
    "a case that may fail": (
        "test-xfailed",
        _many('("b", ".c", "b")', 'pytest.param("b", ".c", "b", marks=pytest.mark.xfail)'),
    ),
    "a case that is skipped": (
        "test-skipped",
        _many('("b", ".c", "b")', 'pytest.param("b", ".c", "b", marks=[pytest.mark.skip])'),
    ),
    "again and again": (
        "test-retried",
        {"tests/test_many.py": MANY.replace("@pytest", "@pytest.mark.flaky(reruns=5)\n@pytest", 1)},
    ),
    "a set-up that skips": (
        "test-skipped",
        _joined("@classmethod\ndef setUpClass(cls):\n    raise unittest.SkipTest('later')"),
    ),
    "a stand-in by a name that is put together": (
        "product-mocked",
        {
            "tests/test_ends.py": "from unittest import mock\nfrom pkg.ends import *\n\n\n"
            f"@mock.patch(__name__ + '.cut', return_value='name')\ndef test_cut(stand_in):\n{BODY}"
        },
    ),
}  # fmt: skip
"""What is soft where the tests may be changed."""

HONEST: dict[str, dict[str, str | None]] = {
    "a manager that cleans up": _below(
        "with ready():",
        "import contextlib\n\n@contextlib.contextmanager\ndef ready():\n    try:\n        yield\n"
        "    finally:\n        print('done')\n",
    ),
    "a manager for one error": _below(
        "with maybe():",
        "class maybe:\n    def __enter__(self):\n        pass\n    def __exit__(self, kind, value, tb):\n"
        "        return kind is KeyError\n",
    ),
    "a decorator that hands on": {
        "tests/test_ends.py": "import functools\nfrom pkg.ends import *\n\n\ndef told(test):\n"
        "    @functools.wraps(test)\n    def run(*args):\n        print(test)\n        return test(*args)\n"
        f"    return run\n\n\n@told\n{TEST}"
    },
    "a decorator that marks": {
        "tests/test_ends.py": "from pkg.ends import *\n\n\ndef slow(test):\n    test.slow = True\n"
        "    return test\n"
        f"\n\n@slow\n{TEST}"
    },
    "a function that is called": _in("    def work():\n" + textwrap.indent(BODY, "    ") + "    work()\n"),
    "methods of its own": _joined(
        "maxDiff = None\n\ndef setUp(self):\n    self.sign = '-'\n\n"
        "def assertJoined(self, parts, text):\n    self.assertEqual(join(parts), text)"
    ),
    "a helper that says more": {
        "tests/common.py": SHARED.replace("== result\n", "== result, f'{expected} is not {result}'\n")
    },
    "the other way round": _in("    assert 'name' == cut('name.py', '.py')\n"
    "    assert 'name' == cut('name', '.py')\n"),
    "names instead of a star": {"tests/test_ends.py": f"from pkg.ends import cut\n\n\n{TEST}"},
    "the module instead of its names": {
        "tests/test_ends.py": f"from pkg import ends\n\n\n"
        f"{TEST.replace('cut(', 'ends.cut(').replace('test_ends.cut', 'test_cut')}"
    },
    "plain assertions": {
        "tests/test_shared.py": "from pkg.ends import join\n\n\ndef test_shared():\n"
        "    assert join(['a', 'b']) == 'a-b'\n"
    },
    "one more case that may fail": _many(
        ROWS, f'{ROWS[:-1]}, pytest.param("", "", "", marks=pytest.mark.xfail)]'
    ),
    "a value from a fixture": {
        "tests/test_ends.py": "import pytest\nfrom pkg.ends import *\n\n\n@pytest.fixture\ndef plain():\n"
        "    return 'name'\n\n\ndef test_cut(plain):\n    assert cut('name.py', '.py') == plain\n"
        "    assert cut(plain, '.py') == plain\n"
    },
    "a set-up of another place": {
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef windows():\n    import sys\n"
        "    if sys.platform != 'win32':\n        pytest.skip('Windows only')\n"
    },
    "a module beside": {"tests/support.py": "def words(text):\n    return text.split()\n"},
}  # fmt: skip
LEAVES = pytest.mark.parametrize("grants", [FORBIDDEN, OPEN, GRANTED], ids=["forbidden", "open", "granted"])


@pytest.mark.parametrize("name", SWALLOWED)
@LEAVES
def test_tests_that_cannot_fail_are_found_whoever_may_change_them(name: str, grants: Grants) -> None:
    sign, change = SWALLOWED[name]
    found = signals(change, tree=ENDS, grants=grants)
    assert (sign, "hard") in {(each.sign, each.hardness) for each in found}, found


@pytest.mark.parametrize("name", LESS)
@LEAVES
def test_tests_that_ask_for_less_are_found(name: str, grants: Grants) -> None:
    sign, change = LESS[name]
    found = {(each.sign, each.hardness.value) for each in signals(change, tree=ENDS, grants=grants)}
    assert (sign, "soft" if grants is GRANTED else "hard") in found, found
    assert is_flagged(change, tree=ENDS, grants=grants) is (grants is not GRANTED)


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("grants", [OPEN, GRANTED], ids=["open", "granted"])
def test_tests_that_are_written_otherwise_are_let_be(name: str, grants: Grants) -> None:
    found = signals(HONEST[name], tree=ENDS, grants=grants)
    assert not is_flagged(HONEST[name], tree=ENDS, grants=grants), found


def test_a_new_file_beside_its_package_hides_nothing() -> None:
    change: dict[str, str | None] = {"pkg/more.py": "X = 1\n", "tests/words.py": "Y = 1\n"}
    assert "shadows-module" not in {each.sign for each in signals(change, tree=TREE, grants=OPEN)}


def test_a_fixture_that_skips_is_found_where_the_tests_are_not_its_own() -> None:
    skipping = (
        "import pytest\n\n@pytest.fixture(autouse=True)\ndef _calm(request):\n    {}pytest.skip('slow')\n"
    )
    named = skipping.format("if request.node.name == 'test_cut':\n        ")
    elsewhere = skipping.format("if not request.config.getoption('slow'):\n        ")
    for grants in (OPEN, FORBIDDEN):
        assert is_flagged({"tests/conftest.py": named}, tree=ENDS, grants=grants)
    found = signals({"tests/conftest.py": elsewhere}, tree=ENDS, grants=OPEN)
    assert [(each.sign, each.hardness.value) for each in found] == [("test-skipped", "soft")]


@pytest.mark.parametrize(
    "path", ["third.py", "third/__init__.py", "tests/pkg.py", "tests/pkg/__init__.py", "pkg.py"]
)
def test_a_new_module_hides_what_the_tests_imported_by_that_name(path: str) -> None:
    flat = {where: text for where, text in ENDS.items() if where != "tests/__init__.py"}
    tree = flat | {"tests/test_third.py": "import third\n\n\ndef test_third():\n    assert third\n"}
    hidden = "shadows-module" in {each.sign for each in signals({path: "X = 1\n"}, tree=tree, grants=OPEN)}
    assert hidden is (path != "pkg.py")  # a package comes before a module of its name
    in_src = {where.replace("pkg/", "src/pkg/"): text for where, text in tree.items()}
    found = signals({"pkg/__init__.py": ""}, tree=in_src, grants=OPEN)
    assert "shadows-module" in {each.sign for each in found}
