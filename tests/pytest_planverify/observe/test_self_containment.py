"""A red test that the product has no part in is at fault itself, and goes to the tester."""

from __future__ import annotations

import json

import pytest
from real_command import MEASURING

from pytest_planverify.observe.evidence import is_self_contained

ALONE = {
    "constants": "def test():\n    assert 1 + 1 == 3",
    "variables": "RATE = 3\ndef test():\n    got = [RATE]\n    assert sum(got) == 4",
    "helpers": "import math\ndef area(r):\n    return math.pi * r\ndef test():\n    assert area(1) == 3",
    "class": "class Test:\n    def test(self):\n        try:\n            assert self.f() == 2\n"
    "        except KeyError as error:\n            print(error)\n    def f(self):\n        return 1",
    "parametrized": "import pytest as p\n@p.mark.parametrize('a, b', [(1, 2)])\n"
    "def test(a, b):\n    assert a == b",
    "beside": "import shop\ndef test_shop():\n    assert shop.RATE\ndef test():\n    assert not 'x'",
}
TOUCHING = {
    "import": "import shop\ndef test():\n    assert shop.RATE == 3",
    "import inside": "def test():\n    from shop import RATE\n    assert RATE == 3",
    "relative": "from . import rate\ndef test():\n    assert rate == 3",
    "by a helper": "from shop import rate\ndef f():\n    return rate()\ndef test():\n    assert f() == 3",
    "by mutation": "import shop\ndef test():\n    xs = []\n    shop.fill(xs)\n    assert xs == [1]",
    "fixture": "def test(cart):\n    assert cart == 3",
    "file": "def test():\n    assert open('out.txt').read() == 'x'",
    "process": "import subprocess\ndef test():\n    assert subprocess.call(['x']) == 0",
    "star": "from shop import *\ndef test():\n    assert rate == 3",
    "not Python": "def test(:",
    "another": "def test_other(): pass",
}


@pytest.mark.parametrize("name", [*ALONE, *TOUCHING])
def test_a_test_is_self_contained_only_where_every_name_is_bound_in_its_file(name: str):
    source = (ALONE | TOUCHING)[name]
    owner = "Test" if name == "class" else None

    assert is_self_contained(source, "test", owner) == (name in ALONE)


def failure_of(pytester: pytest.Pytester, **files: str) -> dict[str, object]:
    pytester.makepyfile(**files)
    plan = {
        "todo_list_id": "p",
        "items": [{"id": "t", "title": "T", "acceptance_criteria": {"tests": ["pytest test_sum.py"]}}],
    }
    (pytester.path / "plan.yaml").write_text(json.dumps(plan))
    pytester.runpytest_subprocess("--planverify", "plan.yaml", "-p", "no:cacheprovider")
    written = json.loads((pytester.path / ".planverify/outcomes.json").read_text())
    (failure,) = written["outcomes"][0]["failures"]
    return {name: failure[name] for name in ("category", "owner", "target_agent")}


def test_a_check_that_is_nonsense_goes_to_the_tester(pytester: pytest.Pytester):
    found = failure_of(pytester, test_sum="def test_sum():\n    one = 1\n    assert one + 1 == 3\n")

    assert found == {"category": "TEST_REGRESSION", "owner": "test", "target_agent": "tester"}


def test_what_the_test_executed_of_the_product_keeps_it_the_products(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    for name in MEASURING:  # which would trace already
        monkeypatch.delenv(name, raising=False)
    found = failure_of(
        pytester,
        shop="def fill(xs):\n    xs.append(0)\n",
        conftest="import shop\ndef pytest_runtest_setup():\n    shop.fill([])\n",
        test_sum="def test_sum():\n    assert not 'xs'\n",
    )

    assert found == {"category": "TEST_REGRESSION", "owner": "product", "target_agent": "coder"}
