"""Small projects, each failing in one way, with the expected diagnosis."""

# ruff: noqa: E501 (a case a line reads better)
from __future__ import annotations

from diagnosis_capture import Case

from planner.model.taxonomy import Category, Owner

P, T, E = Owner.PRODUCT, Owner.TEST, Owner.ENVIRONMENT
C = Category

RSI = "def compute_rsi(values, period=14):\n    return 32.1\n"
_PKG = {"shop/__init__.py": ""}


def _shop(body: str, test: str, **more: str) -> dict[str, str]:
    return {**_PKG, "shop/cart.py": body, "tests/test_cart.py": test, **more}


CASES: dict[tuple[Category, Owner], dict[str, Case]] = {
    (C.TEST_REGRESSION, P): {
        "assertion": Case(
            {
                "rsi.py": RSI,
                "test_rsi.py": "from rsi import compute_rsi\ndef test_values():\n    assert compute_rsi([1]) == 28.5\n",
            },
            "rsi.py:1",
            "assertion-in-test",
            says="compute_rsi (rsi.py:1) returned 32.1 where test_values (test_rsi.py:3) expects 28.5",
        ),
        "assertion-in-helper-of-tests": Case(
            _shop(
                "def total(xs):\n    return 0\n",
                "from shop.cart import total\nfrom checks import same\ndef test_total():\n    same(total([1]), 1)\n",
                **{"tests/checks.py": "def same(a, b):\n    assert a == b\n"},
            ),
            "tests/checks.py::same",
        ),
        "assertion-that-speaks-of-imports": Case(
            {
                "app.py": "def run():\n    return 'ImportError: No module named numpy'\n",
                "test_app.py": "from app import run\ndef test_run():\n    assert run() == 'ok', 'ImportError: No module named x'\n",
            },
            "app.py:1",
            "assertion-in-test",
        ),
        "did-not-raise": Case(
            _shop(
                "def price(t):\n    return 1\n",
                "import pytest\nfrom shop.cart import price\ndef test_price():\n    with pytest.raises(ValueError):\n        price('x')\n",
            ),
            "shop/cart.py::price",
            "did-not-raise",
            says="price (shop/cart.py:1) did not raise",
        ),
        "key-error-in-test-on-product-value": Case(
            _shop(
                "def load():\n    return {}\n",
                "from shop.cart import load\ndef test_load():\n    assert load()['a'] == 1\n",
            ),
            "shop/cart.py::load",
            "raised-in-test",
        ),
        "unittest-test-case": Case(
            _shop(
                "def one():\n    return 2\n",
                "import unittest\nfrom shop.cart import one\nclass TestOne(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(one(), 1)\n",
            ),
            "shop/cart.py:1",
            "assertion-in-test",
            says="returned 2 where",
        ),
        "pytest-subtest": Case(
            {
                "test_sub.py": "def test_s(subtests):\n    for i in range(2):\n        with subtests.test(i=i):\n            assert i == 0\n"
            },
            "test_sub.py:4",
            "assertion-in-test",
            needs_pytest=(9,),
        ),
        "doctest": Case(
            _shop(
                'def double(x):\n    """Twice.\n\n    >>> double(2)\n    5\n    """\n    return x * 2\n', ""
            ),
            "shop/cart.py:4",
            "doctest-differs",
            args=("--doctest-modules",),
            says="double(2) gave 4 where 5",
        ),
        "thread-that-dies": Case(
            _shop(
                "import threading\ndef start():\n    t = threading.Thread(target=work)\n    t.start()\n    t.join()\ndef work():\n    raise ValueError('no')\n",
                "from shop.cart import start\ndef test_start():\n    start()\n",
            ),
            "shop/cart.py::work",
            args=("-W", "error"),
        ),
        "group-of-one-error": Case(
            _shop(
                "import asyncio\nasync def bad():\n    return {}['k']\nasync def main():\n    async with asyncio.TaskGroup() as g:\n        g.create_task(bad())\n",
                "import asyncio\nfrom shop.cart import main\ndef test_main():\n    asyncio.run(main())\n",
            ),
            "shop/cart.py::bad",
        ),
        "wrapped-by-the-product": Case(
            _shop(
                "class CartError(Exception):\n    pass\ndef load(t):\n    try:\n        return int(t)\n    except ValueError as e:\n        raise CartError('bad') from e\n",
                "from shop.cart import load\ndef test_load():\n    load('x')\n",
            ),
            "shop/cart.py::load",
            "raised-in-product",
        ),
        "mocked-connection-error": Case(
            _shop(
                "def get(client):\n    return client.get()\n",
                "from unittest import mock\nfrom shop.cart import get\ndef test_get():\n    get(mock.Mock(get=mock.Mock(side_effect=ConnectionRefusedError(111, 'no'))))\n",
            ),
            "shop/cart.py::get",
        ),
        "permission-error-by-hand": Case(
            _shop(
                "def guard(user):\n    raise PermissionError('admins only')\n",
                "from shop.cart import guard\ndef test_guard():\n    guard('bob')\n",
            ),
            "shop/cart.py::guard",
        ),
        "syntax-in-a-made-up-file": Case(
            _shop(
                "def calc(t):\n    return compile(t, 'template.py', 'exec')\n",
                "from shop.cart import calc\ndef test_c():\n    calc('1 +')\n",
            ),
            "shop/cart.py::calc",
            "raised-in-product",
        ),
        "import-error-that-was-handled": Case(
            _shop(
                "try:\n    import nonexistent_dep_xyz\nexcept ImportError:\n    nonexistent_dep_xyz = None\ndef go():\n    return 1\n",
                "from shop.cart import go\ndef test_t():\n    assert go() == 2\n",
            ),
            "shop/cart.py:5",
            "assertion-in-test",
        ),
        "import-error-hidden-by-the-product": Case(
            _shop(
                "def go():\n    try:\n        import nonexistent_dep_xyz\n    except ImportError:\n        raise ValueError('bad') from None\n",
                "from shop.cart import go\ndef test_t():\n    go()\n",
            ),
            "shop/cart.py::go",
            "raised-in-product",
        ),
        "circular-import": Case(
            {
                **_PKG,
                "shop/a.py": "from shop.b import y\nx = 1\n",
                "shop/b.py": "from shop.a import x\ny = 1\n",
                "tests/test_a.py": "import shop.a\n",
            },
            "shop/b.py:1",
            "circular-import",
        ),
    },
    (C.TEST_REGRESSION, T): {
        "key-error-in-test-by-itself": Case(
            {"test_own.py": "def test_own():\n    table = {}\n    assert table['a'] == 1\n"},
            "test_own.py::test_own",
            "raised-in-test-alone",
        ),
        "unittest-subtest": Case(
            {
                "test_sub.py": "import unittest\nclass T(unittest.TestCase):\n    def test_s(self):\n        with self.subTest(i=1):\n            self.assertTrue(False)\n"
            },
            "test_sub.py:5",
        ),
        "strict-xpass": Case(
            {"test_x.py": "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_x():\n    pass\n"},
            None,
            "strict-xpass",
        ),
        "parametrize-of-no-argument": Case(
            {"test_p.py": "import pytest\n@pytest.mark.parametrize('x', [1])\ndef test_p():\n    pass\n"},
            None,
            "test-definition-refused",
        ),
        "undefined-name-in-test": Case(
            {"test_n.py": "def test_n():\n    assert undefined_thing == 1\n"},
            "test_n.py:2",
            "undefined-name-in-test",
        ),
    },
    (C.TYPE_ERROR, P): {
        "doctest-that-raises": Case(
            _shop(
                'def double(x):\n    """Twice.\n\n    >>> double(None)\n    5\n    """\n    return x * 2\n',
                "",
            ),
            "shop/cart.py::double",
            args=("--doctest-modules",),
        ),
    },
    (C.COMPILATION_ERROR, P): {
        "syntax-of-product": Case(
            _shop("def total(:\n    pass\n", "from shop.cart import total\ndef test_t():\n    pass\n"),
            "shop/cart.py:1",
            "source-does-not-parse",
        ),
        "syntax-wrapped-by-the-product": Case(
            {
                **_PKG,
                "shop/plug.py": "x = (\n",
                "shop/cart.py": "class Bad(Exception): pass\ndef load():\n    try:\n        import shop.plug\n    except SyntaxError as e:\n        raise Bad('plugin') from e\n",
                "tests/test_cart.py": "from shop.cart import load\ndef test_l():\n    load()\n",
            },
            "shop/plug.py:1",
            "source-does-not-parse",
        ),
    },
    (C.COMPILATION_ERROR, T): {
        "syntax-of-test": Case(
            {"test_s.py": "def test_s(:\n    pass\n"}, "test_s.py:1", "source-does-not-parse"
        ),
    },
    (C.IMPORT_ERROR, P): {
        "dependency-missing-in-product": Case(
            _shop("import nonexistent_dep_xyz\n", "import shop.cart\ndef test_t():\n    pass\n"),
            "shop/cart.py:1",
            "dependency-missing",
            says="nonexistent_dep_xyz",
        ),
        "dependency-missing-behind-a-group": Case(
            _shop(
                "def go():\n    try:\n        import nonexistent_dep_xyz\n    except ImportError as e:\n        raise ExceptionGroup('many', [e])\n",
                "from shop.cart import go\ndef test_t():\n    go()\n",
            ),
            "shop/cart.py::go",
            "dependency-missing",
        ),
        "name-missing-between-product-modules": Case(
            {
                **_PKG,
                "shop/a.py": "",
                "shop/cart.py": "from shop.a import gone\n",
                "tests/test_cart.py": "import shop.cart\n",
            },
            "shop/cart.py:1",
            "import-failed",
        ),
        "name-missing-in-dependency": Case(
            _shop("from collections import Mapping\n", "import shop.cart\n"),
            "shop/cart.py:1",
            "import-failed",
        ),
        "optional-dependency-by-hand": Case(
            _shop(
                "def go():\n    raise ImportError('Missing optional dependency foo')\n",
                "from shop.cart import go\ndef test_t():\n    go()\n",
            ),
            "shop/cart.py::go",
            "import-failed",
        ),
    },
    (C.ARTIFACT_MISSING, P): {
        "own-module-missing": Case(
            {**_PKG, "tests/test_cart.py": "from shop.basket import total\n"},
            "tests/test_cart.py:1",
            "own-module-missing",
            says="shop/basket.py",
        ),
    },
    (C.ENVIRONMENT_ERROR, E): {
        "own-module-not-on-the-path": Case(
            {"src/app/__init__.py": "", "src/app/core.py": "", "tests/test_app.py": "import app.core\n"},
            "tests/test_app.py:1",
            "own-module-not-importable",
            says="src/app",
        ),
        "tests-not-a-package": Case(
            {
                "tests/test_a.py": "from tests.helpers import x\n",
                "tests/helpers/real.py": "x = 1\n",
                "pkg.py": "",
            },
            "tests/test_a.py:1",
            "tests-not-importable",
        ),
        "distribution-not-installed": Case(
            _shop(
                "from importlib.metadata import version\n__version__ = version('shop-of-nobody')\n",
                "import shop.cart\n",
            ),
            "shop/cart.py:2",
            "machine-lacks-something",
        ),
        "program-not-on-path": Case(
            _shop(
                "import subprocess\ndef run():\n    subprocess.run(['no-such-program-xyz'])\n",
                "from shop.cart import run\ndef test_r():\n    run()\n",
            ),
            "shop/cart.py::run",
            "program-not-on-path",
            says="no-such-program-xyz",
        ),
        "service-refuses-in-set-up": Case(
            {
                "conftest.py": "import pytest, socket\n@pytest.fixture\ndef db():\n    return socket.create_connection(('127.0.0.1', 1))\n",
                "test_d.py": "def test_d(db):\n    pass\n",
            },
            "conftest.py::db",
            "service-unreachable",
        ),
        "resources-exhausted": Case(
            _shop(
                "def save():\n    with open('/dev/full', 'w') as f:\n        f.write('x')\n",
                "from shop.cart import save\ndef test_s():\n    save()\n",
            ),
            "shop/cart.py::save",
            "resources-exhausted",
        ),
        "variable-not-set": Case(
            _shop(
                "import os\ndef url():\n    return os.environ['NO_SUCH_VARIABLE_XYZ']\n",
                "from shop.cart import url\ndef test_u():\n    url()\n",
            ),
            "shop/cart.py::url",
            "variable-not-set",
            says="NO_SUCH_VARIABLE_XYZ",
        ),
    },
    (C.SPEC_MISMATCH, P): {
        "name-missing-in-product": Case(
            _shop("def total():\n    pass\n", "from shop.cart import grand_total\n"),
            "shop/cart.py:None",
            "promised-name-missing",
        ),
        "arity-at-boundary": Case(
            _shop(
                "def total(xs, tax):\n    return 1\n",
                "from shop.cart import total\ndef test_t():\n    assert total([1]) == 1\n",
            ),
            "shop/cart.py:1",
            "call-does-not-fit-signature",
            says="total (shop/cart.py:1)",
        ),
        "constructor-at-boundary": Case(
            _shop(
                "class Cart:\n    def __init__(self, owner):\n        pass\n",
                "import shop.cart\ndef test_t():\n    shop.cart.Cart()\n",
            ),
            "tests/test_cart.py:3",
        ),
        "dataclass-at-boundary": Case(
            _shop(
                "from dataclasses import dataclass\n@dataclass\nclass Cart:\n    owner: str\n",
                "from shop.cart import Cart\ndef test_t():\n    Cart(name='x')\n",
            ),
            "tests/test_cart.py:3",
        ),
        "missing-attribute-of-module": Case(
            _shop("", "import shop.cart\ndef test_t():\n    shop.cart.total([1])\n"),
            "tests/test_cart.py:3",
            "promised-attribute-missing",
        ),
        "missing-attribute-behind-getattr": Case(
            _shop(
                "class Cart:\n    def __getattr__(self, name):\n        raise AttributeError(name)\n",
                "from shop.cart import Cart\ndef test_t():\n    Cart().total\n",
            ),
            "shop/cart.py:3",
        ),
        "monkeypatch-of-missing-attribute": Case(
            _shop(
                "",
                "import shop.cart\ndef test_t(monkeypatch):\n    monkeypatch.setattr(shop.cart, 'total', 1)\n",
            ),
            "tests/test_cart.py:3",
            "patched-attribute-missing",
        ),
    },
    (C.TEST_TIMEOUT, P): {
        "timeout-by-plugin": Case(
            _shop(
                "import time\ndef slow():\n    time.sleep(5)\n",
                "import pytest\nfrom shop.cart import slow\n@pytest.mark.timeout(0.2)\ndef test_s():\n    slow()\n",
            ),
            "shop/cart.py::slow",
            "limit-passed",
            says="0.2 s",
        ),
    },
    (C.TEST_CRASH, P): {
        "exit-at-import-of-product": Case(
            _shop("import sys\nsys.exit(0)\n", "import shop.cart\n"),
            "shop/cart.py:2",
            "session-ended-by-project",
        ),
    },
}
