"""`planner brief` tells the root cause of many red tests in a hundred tokens, and no old verdict as new."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from real_command import planverify
from real_planner import Ran, planner

MONEY = "def net(price, tax):\n    return round(price / (1 + tax), 2)\n"
PART = """\
from shop.money import net


def total(prices):
    return sum(net(each, 0.2) for each in prices)
"""
TEST = """\
import pytest

from shop.part{0} import total


@pytest.mark.parametrize("n", range(1, {1}))
def test_total(n):
    assert total([12.0] * n) == pytest.approx(10.0 * n)
"""
TODO = """\
  - id: part{0}
    title: Part {0}
    allowed_files: ["shop/**"]
    verify: pytest tests/test_part{0}.py
"""
TESTS = (10, 10, 9, 9)


def brief(folder: Path, *words: str) -> Ran:
    return planner("brief", *words, cwd=folder)


def make_shop(root: Path) -> Path:
    files = {"shop/__init__.py": "", "shop/money.py": MONEY, "pytest.ini": "[pytest]\npythonpath = .\n"}
    files["plan.yaml"] = "todo_list_id: shop\nitems:\n"
    for number, tests in enumerate(TESTS):
        files[f"shop/part{number}.py"] = PART
        files[f"tests/test_part{number}.py"] = TEST.format(number, tests + 1)
        files["plan.yaml"] += TODO.format(number)
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def red_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop whose tests are all red for one reason."""
    shop = make_shop(tmp_path_factory.mktemp("red"))
    (shop / "shop/money.py").write_text("def net(price, tax):\n    return None\n")
    planverify("verify", "plan.yaml", cwd=shop)
    return shop


def test_the_change_that_broke_38_tests_is_told_in_105_tokens(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    before = brief(shop)
    assert before.status == 4
    assert "there are no outcomes; run first: pytest --planverify plan.yaml" in before.err

    planverify("baseline", "plan.yaml", cwd=shop)
    planverify("verify", "plan.yaml", cwd=shop)
    green = brief(shop)
    assert (green.status, green.out) == (0, "nothing fails: shop is completed\n")

    (shop / "shop/money.py").write_text(MONEY.replace("1 + tax", "1 - tax"))
    planverify("verify", "plan.yaml", cwd=shop)
    told = brief(shop).out

    assert len(told) <= 4 * 105
    assert "38 tests in `part0`, `part1`, `part2` and 1 more" in told
    assert "changed `shop/money.py:2` in `net`" in told
    assert "-    return round(price / (1 + tax), 2)\n+    return round(price / (1 - tax), 2)" in told
    assert "next, coder: Correct `net`" in told
    assert told.endswith("check: `pytest --planverify plan.yaml`\n")


@pytest.mark.parametrize("tokens", [40, 60, 105, 200, 300, 800])
def test_a_brief_is_never_longer_than_asked_for(red_shop: Path, tokens: int) -> None:
    told = brief(red_shop, "--tokens", str(tokens)).out

    assert 0 < len(told) <= 4 * tokens
    assert "part0" in told


def test_a_todo_is_told_of_by_name(red_shop: Path) -> None:
    assert "part2" in brief(red_shop, "--todo", "part2").out
    unknown = brief(red_shop, "--todo", "part9")
    assert unknown.status == 2
    assert "part9" in unknown.err


def test_old_verdicts_are_told_as_old(red_shop: Path, tmp_path: Path) -> None:
    shop = Path(shutil.copytree(red_shop, tmp_path / "shop"))
    (shop / "shop/money.py").write_text(MONEY)

    assert brief(shop).out.startswith("out of date: ")
