"""What a failing test or line goes through is found from the source, the likeliest culprit first."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest
import repair_samples as samples
from repair_samples import document, failure, outcome, project, report

from planner.edges.failure_contexts import gather
from planner.edges.project.essential_lines import essential, in_docstring, words_of
from planner.model.evidence import Frame, ProcessEnd, Side
from planner.model.failure_report import ReportedException
from planner.model.outcome import Location

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.context import FailureContext
    from planner.model.failure_report import Observation

PADDING = "\n".join(f"def padding_{number}():\n    return {number}\n\n" for number in range(40))
TEST = "tests/test_cart.py"


def context(
    root: Path, files: dict[str, str], seen: Observation | None = None, **fields: Any
) -> FailureContext:
    plan = project(root)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    if seen is not None:
        (root / "diagnostics").mkdir(exist_ok=True)
        (root / "diagnostics/t1_failure_report.json").write_text(report(None, seen).model_dump_json())
    known: dict[str, Any] = {"location": None, "suggestion": None, "stack_trace_head": None, **fields}
    return gather(plan, document(outcome(failure(**known))), ["t1"])["t1"]


def shown(found: FailureContext) -> dict[str, str]:
    texts: dict[str, str] = {}
    for excerpt in found.excerpts:
        texts[excerpt.path] = texts.get(excerpt.path, "") + "\n".join(excerpt.lines) + "\n"
    return texts


def test_what_the_called_function_calls_in_another_module_is_shown(tmp_path: Path) -> None:
    found = context(
        tmp_path,
        {
            "shop/cart.py": f"from shop.tax import vat\n\n\n{PADDING}\n"
            "def total(orders):\n    return vat(orders)\n",
            "shop/tax.py": f"{PADDING}\ndef vat(orders):\n    return len(orders) * 0.2\n",
            TEST: "from shop.cart import total\n\n\ndef test_total():\n    assert total([]) == 3\n",
        },
    )
    assert "return len(orders) * 0.2" in shown(found)["shop/tax.py"]
    assert "padding_3" not in shown(found)["shop/tax.py"]


@pytest.mark.parametrize(
    "statement",
    ["from shop import *", "from shop.cart import *", "import shop.cart", "import shop.cart as c"],
)
def test_star_imports_and_dotted_names_are_followed(tmp_path: Path, statement: str) -> None:
    call = {"import shop.cart": "shop.cart.total", "import shop.cart as c": "c.total"}.get(
        statement, "total"
    )
    found = context(
        tmp_path,
        {
            "shop/__init__.py": "from .cart import *\n",
            "shop/cart.py": f"{PADDING}\ndef total(orders):\n    return 41\n",
            TEST: f"{statement}\n\n\ndef test_total():\n    assert {call}([]) == 3\n",
        },
    )
    assert "return 41" in shown(found)["shop/cart.py"]


def test_an_import_within_a_function_counts_before_one_of_the_same_name_elsewhere(tmp_path: Path) -> None:
    maker = "def {name}():\n    from shop.{module} import make\n    return make()\n\n\n"
    found = context(
        tmp_path,
        {
            "shop/cart.py": maker.format(name="total", module="one") + maker.format(name="x", module="two"),
            "shop/one.py": "def make():\n    return 1\n",
            "shop/two.py": "def make():\n    return 2\n",
            TEST: "from shop.cart import total\n\n\ndef test_total():\n    assert total() == 3\n",
        },
    )
    assert "return 1" in shown(found)["shop/one.py"]
    assert "shop/two.py" not in shown(found)


def test_of_a_class_the_methods_that_are_used_are_shown_those_of_its_bases_too(tmp_path: Path) -> None:
    base = "class Base:\n    def __getitem__(self, key):\n        return self._find(key)\n\n"
    base += (
        "    def _find(self, key):\n        return key + 1\n\n    def never(self):\n        return 7\n\n"
    )
    found = context(
        tmp_path,
        {
            "shop/base.py": f"{PADDING}\n{base}",
            "shop/cart.py": f"from .base import Base\n\n\n{PADDING}\nclass Cart(Base):\n    size = 3\n",
            TEST: "from shop.cart import Cart\n\n\ndef test_total():\n    assert Cart()[0] == 0\n",
        },
    )
    assert "return key + 1" in shown(found)["shop/base.py"]
    assert "never" not in shown(found)["shop/base.py"]
    assert "class Cart(Base):" in shown(found)["shop/cart.py"]


def test_methods_that_a_base_of_another_project_may_call_are_shown(tmp_path: Path) -> None:
    body = "class Wrap(TextWrapper):\n    def _wrap_chunks(self, chunks):\n        chunks\n"
    found = context(
        tmp_path,
        {
            "shop/cart.py": f"from textwrap import TextWrapper\n\n\n{PADDING}\n{body}",
            TEST: "from shop.cart import Wrap\n\n\n"
            "def test_total():\n    assert Wrap().wrap('a') == ['a']\n",
        },
    )
    assert "def _wrap_chunks" in shown(found)["shop/cart.py"]


def test_an_inherited_test_is_shown_with_the_class_that_inherits_it(tmp_path: Path) -> None:
    mixin = "class Mixin:\n    def test_total(self):\n        assert self.make() == 3\n"
    found = context(
        tmp_path,
        {
            "shop/cart.py": f"{PADDING}\nclass Cart:\n    size = 5\n",
            "tests/mixins.py": f"{PADDING}\n{mixin}",
            TEST: f"from shop.cart import Cart\nfrom .mixins import Mixin\n\n\n{PADDING}\n"
            "class TestCart(Mixin):\n    make = Cart\n",
        },
        top_failing_tests=(f"{TEST}::TestCart::test_total",),
    )
    texts = shown(found)
    assert "assert self.make() == 3" in texts["tests/mixins.py"]
    assert "make = Cart" in texts[TEST]
    assert "padding_3" not in texts[TEST]
    assert "size = 5" in texts["shop/cart.py"]


def test_the_functions_that_speak_of_the_failure_are_shown_first(tmp_path: Path) -> None:
    other = "def {name}(value):\n" + "    value = value + 1\n" * 35 + "    return value\n\n\n"
    names = [f"step_{letter}" for letter in "abcdef"]
    calls = "".join(f"    value = {name}(value)\n" for name in (*names, "round_shipping"))
    text = "".join(other.format(name=name) for name in (*names, "round_shipping"))
    found = context(
        tmp_path,
        {
            "shop/cart.py": f"{text}def total(value):\n{calls}    return value\n",
            TEST: "from shop.cart import total\n\n\ndef test_total():\n"
            "    shipping = total(1)\n    assert shipping == 3\n",
        },
    )
    assert "def round_shipping" in shown(found)["shop/cart.py"]
    assert "def step_f" not in shown(found)["shop/cart.py"]


def test_the_newest_calls_of_a_stack_are_shown(tmp_path: Path) -> None:
    text = f"{PADDING}\ndef wait():\n    wait()\n"
    line = text.count("\n")
    stack = (
        'Thread 0x1 (most recent call first):\n  File "shop/idle.py", line 1 in idle\n\n'
        f'Current thread 0x2 (most recent call first):\n  File "shop/cart.py", line {line} in wait\n'
        f'  File "/usr/lib/python3/os.py", line 3 in x\n  File "{TEST}", line 5 in test_total\n'
    )
    seen = samples.observation(exceptions=(), process=ProcessEnd(stack=stack))
    found = context(tmp_path, {"shop/cart.py": text, "shop/idle.py": "x = 1\n"}, seen)
    assert shown(found)["shop/cart.py"] == "def wait():\n    wait()\n"
    assert "shop/idle.py" not in shown(found)


def test_of_a_helper_of_the_tests_only_the_function_is_shown(tmp_path: Path) -> None:
    helper = "def other():\n    return 0\n\n\ndef check(a):\n    assert a == 3\n"
    frames = (
        Frame(path=TEST, line=6, function="test_total", side=Side.TEST),
        Frame(path="tests/common.py", line=6, function="check", side=Side.TEST),
    )
    seen = samples.observation(exceptions=(ReportedException(type="AssertionError", frames=frames),))
    found = context(
        tmp_path,
        {
            "tests/common.py": helper,
            TEST: "from common import check\nfrom shop.cart import total\n\n\n"
            "def test_total():\n    check(total([]))\n",
        },
        seen,
        location=Location(path="tests/common.py", line=6, function="check"),
    )
    assert "other" not in shown(found)["tests/common.py"]
    assert "shop/cart.py" in shown(found)


# -- names that are missing ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("module 'shop.cart' has no attribute 'totals'", "total"),
        ("cannot import name 'totals' from 'shop.cart' (/x/shop/cart.py)", "total"),
        ("name 'totall' is not defined", "total"),
        ("'Cart' object has no attribute 'sise'", "Cart.size"),
        ("type object 'Cart' has no attribute 'first'", "Base.get_first"),
    ],
)
def test_where_a_name_is_missing_the_names_that_are_there_are_told(
    tmp_path: Path, words: str, name: str
) -> None:
    code = "class Base:\n    def get_first(self):\n        return 1\n\n\nclass Cart(Base):\n"
    code += "    def size(self):\n        return 1\n\n\ndef total(orders):\n    return Cart().sise\n"
    found = context(
        tmp_path,
        {
            "shop/cart.py": code,
            TEST: "from shop.cart import total\n\n\ndef test_total():\n    assert total([]) == 3\n",
        },
        location=Location(path="shop/cart.py", line=12, function="total"),
        stack_trace_head=words,
    )
    assert name in [each.name for each in found.names]
    assert {each.path for each in found.names} == {"shop/cart.py"}


def test_the_lines_that_speak_of_a_missing_name_are_shown(tmp_path: Path) -> None:
    found = context(
        tmp_path,
        {"shop/cart.py": f"__all__ = ['totals']\n\n\n{PADDING}"},
        stack_trace_head="AttributeError: module 'shop.cart' has no attribute 'totals'",
    )
    assert "__all__ = ['totals']" in shown(found)["shop/cart.py"]


# -- the lines of one definition -----------------------------------------------------------------


def regions(text: str, words: str = "", at: int | None = None, most: int = 20) -> set[int]:
    node = ast.parse(text).body[0]
    found = essential(text.split("\n"), node, 1, words_of(words), at, most)
    return {line for first, last in found for line in range(first, last + 1)}


def test_a_short_definition_is_shown_whole() -> None:
    assert regions("def f():\n    return 1") == {1, 2}


def test_of_a_long_docstring_the_beginning_is_shown() -> None:
    text = 'def f():\n    """One.\n' + "    two\n" * 20 + '    """\n    return 1'
    assert regions(text) == {1, 2, 3, 4, 24}


def test_of_a_long_function_the_lines_that_speak_of_the_failure_are_shown() -> None:
    text = "def f(value):\n" + "    value += 1\n" * 40 + "    shipping = 3\n" + "    value += 1\n" * 40
    assert {1, 41, 42, 43} <= regions(text, "the shipping is wrong")
    assert 42 not in regions(text)
    assert len(regions(text, "shipping")) <= 20


def test_of_a_long_function_the_line_that_raised_is_shown() -> None:
    text = "def f(value):\n" + "    value += 1\n" * 90
    assert {1, 48, 50, 52} <= regions(text, at=50)


def test_words_of_any_program_say_nothing() -> None:
    assert words_of("assert self.total_price == None") == {"total_price", "total", "price"}


def test_only_the_lines_of_a_docstring_are_in_it() -> None:
    node = ast.parse('def f():\n    """One.\n\n    two\n    """\n    return 1').body[0]
    assert [in_docstring(node, line) for line in range(1, 7)] == [False, True, True, True, True, False]
