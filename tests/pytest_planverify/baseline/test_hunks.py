"""Changed hunks: which functions a module runs while it is imported."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

import pytest

from planner.model.evidence import Hunk
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.baseline.hunks import compare, hunks_of, new_file, parts_of_diff, run_at_import


@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param("def f(): pass\nx = f()\n", {"f"}, id="the body calls it"),
        pytest.param("def f(): pass\nx = f\n", set(), id="the body only names it"),
        pytest.param("def f(): pass\ndef g(): f()\n", set(), id="a function that nobody calls"),
        pytest.param("def f(): pass\ndef g(): f()\ng()\n", {"f", "g"}, id="through another function"),
        pytest.param("def f(): return f()\nf()\n", {"f"}, id="it calls itself"),
        pytest.param("def f(): pass\nclass A:\n    x = f()\n", {"f"}, id="a class body"),
        pytest.param("def f(): pass\ndef g(x=f()): pass\n", {"f"}, id="a default"),
        pytest.param("def f(x): return x\n@f\ndef g(): pass\n", {"f"}, id="a decorator"),
        pytest.param("def f(x): return x\n@f\nclass A: pass\n", {"f"}, id="a decorator of a class"),
        pytest.param("def f(): pass\ng = lambda: f()\n", set(), id="a lambda that nobody calls"),
        pytest.param(
            """
            class A:
                def __init__(self): self.load()
                def load(self): pass
                def save(self): pass
            a = A()
            """,
            {"A.__init__", "A.load"},
            id="an instance is made",
        ),
        pytest.param("def f(:\n", set(), id="a file that does not parse"),
    ],
)
def test_functions_that_run_at_import_are_found(source: str, names: set[str]):
    assert run_at_import(dedent(source)) == names


def test_form_feed_ends_no_line():
    before = "def f():\n    return 1\n\f\ndef g():\n    return 2\n\f\ndef h():\n    return 3\n"
    now = before.replace("return 3", "return 4")

    (changed,) = hunks_of("shop.py", compare(before, now), now, None)
    assert (changed.function, changed.line) == ("h", 8)
    assert [each.function for each in hunks_of("shop.py", new_file(now), now, None)] == ["f", "g", "h"]


def test_file_whose_name_git_quotes_adds_nothing_to_another():
    diff = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n"
    quoted = diff.replace(b"a/a.py", b'"a/b\\"c.py"').replace(b"b/a.py", b'"b/b\\"c.py"')

    assert parts_of_diff(diff + quoted)["a.py"] == parts_of_diff(diff)["a.py"][:-1]


def test_a_module_that_became_a_pipe_is_not_read(tmp_path: Path):
    os.mkfifo(tmp_path / "shop.py")

    assert Changes(tmp_path).at_import([Hunk(path="shop.py", line=1, function="f")]) == ()
