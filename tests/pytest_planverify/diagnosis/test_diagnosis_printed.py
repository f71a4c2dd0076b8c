"""Reading tracebacks and stacks that a process printed."""

# ruff: noqa: E501 (sources and outputs are quoted on one line)
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.verdicts import Side
from pytest_planverify.diagnosis.tool_output import read_stack, read_traceback

TRACEBACK = """noise
Traceback (most recent call last):
  File "/usr/lib/python3.12/runpy.py", line 198, in _run_module_as_main
    return _run_code(code)
  File "/p/site-packages/requests/api.py", line 1, in get
  File "/p/site-packages/shop/api.py", line 1, in get
  File "/p/site-packages/_pytest/x.py", line 1, in get
  File "/p/tests/test_a.py", line 3, in test_a
    f()
    ^^^
  File "/p/shop/cart.py", line 31, in Cart.total
    raise E
shop.errors.CartError: bad: cart
more noise
"""
STACK = """Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File "/p/shop/other.py", line 9 in wait

Current thread 0x00007f02 (most recent call first):
  File "/p/shop/cart.py", line 3 in crash
  File "/p/test_a.py", line 4 in test_a
  ...

Extension modules: numpy (total: 1)
"""


def test_a_traceback_is_read_into_frames_and_exception() -> None:
    error = read_traceback(TRACEBACK, frozenset({"shop"}))
    assert error is not None
    assert (error.type, error.qualified, error.message) == (
        "CartError",
        "shop.errors.CartError",
        "bad: cart",
    )
    assert [frame.side for frame in error.frames] == [
        Side.STDLIB, Side.THIRD_PARTY, Side.PRODUCT, Side.FRAMEWORK, Side.TEST, Side.PRODUCT,
    ]  # fmt: skip
    assert (error.frames[-1].line, error.frames[-1].function, error.frames[-1].source) == (
        31,
        "Cart.total",
        "raise E",
    )


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("ModuleNotFoundError: No module named 'x.y'", {"name": "x.y"}),
        ("ImportError: cannot import name 'a' from 'b.c' (/p/b/c.py)", {"name": "b.c"}),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x.txt'", {"errno": 2, "path": "x.txt"}),
        ("OSError: [Errno 28] No space left on device", {"errno": 28, "path": None}),
        (
            "AttributeError: 'NoneType' object has no attribute 'a'",
            {"name": "a", "object_type": "builtins.NoneType"},
        ),
        ("AttributeError: module 'shop.cart' has no attribute 'a'", {"object_side": Side.PRODUCT}),
        ("AttributeError: module 'numpy' has no attribute 'a'", {"object_side": Side.THIRD_PARTY}),
        (
            "AttributeError: 'Cart' object has no attribute 'a'",
            {"object_type": "Cart", "object_side": None},
        ),
        ("KeyboardInterrupt", {"message": "", "bases": ("builtins.BaseException",)}),
    ],
)
def test_what_the_last_line_says_is_kept(last: str, expected: dict[str, object]) -> None:
    error = read_traceback(
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{last}\n', frozenset({"shop"})
    )
    assert error is not None
    assert {key: getattr(error, key) for key in expected} == expected


def test_of_several_tracebacks_the_last_counts() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\nDuring…\n\n' * 2
    error = read_traceback(text.replace("KeyError: 1", "ValueError: 2", 1) + TRACEBACK)
    assert error is not None
    assert error.type == "CartError"


def test_a_syntax_error_without_a_header_is_read_with_its_path_from_the_current_folder() -> None:
    for path in ("shop/a.py", "./shop/a.py"):
        error = read_traceback(
            f'  File "{path}", line 7\n    def (\n        ^\nSyntaxError: invalid syntax\n'
        )
        assert error is not None
        assert (error.type, error.path, error.line) == ("SyntaxError", "shop/a.py", 7)
        assert error.object_side is Side.PRODUCT
    assert read_traceback('  File "a.py", line 7\n    def (\nValueError: no\n') is None


def test_an_internal_error_whose_beginning_was_cut_off_is_read() -> None:
    text = 'INTERNALERROR>   File "/p/conftest.py", line 2, in hook\nINTERNALERROR>     raise\nINTERNALERROR> ValueError: no\n'
    error = read_traceback(text)
    assert error is not None
    assert error.frames[0].side is Side.TEST


def test_the_stack_of_the_current_thread_is_read_outermost_first() -> None:
    assert [frame.function for frame in read_stack(STACK)] == ["test_a", "crash"]
    assert read_stack("nothing") == ()
    assert [frame.function for frame in read_stack('  File "/p/a.py", line 1 in f\n')] == ["f"]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for prefix in (
        "",
        "Traceback (most recent call last):\n",
        'Traceback (most recent call last):\n  File "a", line 1, in f\n',
    ):
        told = read_traceback(prefix + text)
        assert told is None or told.qualified
        assert all(frame.line >= 0 for frame in read_stack(prefix + text))


@pytest.mark.parametrize(
    "text", ["", "Traceback (most recent call last):", "Traceback (most recent call last):\n\n"]
)
def test_a_traceback_that_says_nothing_is_none(text: str) -> None:
    assert read_traceback(text) is None


def test_the_verifier_at_the_bottom_of_a_stack_is_left_out_and_what_it_called_stays():
    stack = (
        "Current thread 0x1 (most recent call first):\n"
        '  File "/project/tests/test_cart.py", line 9 in test_total\n'
        '  File "/venv/lib/python3.11/site-packages/pytest_planverify/observe/worker.py", line 5 in run\n'
        '  File "/project/plan_runner.py", line 1 in main\n'
    )

    assert [frame.function for frame in read_stack(stack)] == ["test_total"]
