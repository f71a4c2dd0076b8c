"""Capture of exceptions, including hostile ones, and of the reports that carry them."""

# ruff: noqa: E501 (sources and outputs are quoted on one line)
from __future__ import annotations

import ast
import errno
import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from diagnosis_capture import capture
from module_project import write_files

from planner.model.evidence import Evidence, ExceptionFact
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.checks.result import JudgedCommand
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.observe.evidence import (
    LONGEST_CHAIN,
    LONGEST_MESSAGE,
    definition,
    exception_facts,
    headline,
    message_of,
    readable,
    startup_evidence,
)
from pytest_planverify.observe.project_map import ProjectMap
from pytest_planverify.session.outcomes import Assembled

HERE = ProjectMap(root=Path(__file__).resolve().parent)


def _raised(act: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 (any exception)
        act()
    return caught.value


def _raise(error: BaseException) -> BaseException:
    def act() -> None:
        raise error

    return _raised(act)


class _StrRaises(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class _StrSkips(Exception):
    def __str__(self) -> str:
        pytest.skip("no message")


class _ReprRaises:
    def __repr__(self) -> str:
        raise ValueError("no")

    @property
    def __class__(self) -> type:
        raise ValueError("no")


def test_message_that_cannot_be_shown_or_is_huge_is_replaced_or_clipped() -> None:
    assert message_of(_StrRaises()) == "<__str__ raised SystemExit>"
    assert message_of(_StrSkips()) == "<__str__ raised Skipped>"
    assert message_of(ValueError(_ReprRaises())) == "<__str__ raised ValueError>"
    huge = message_of(ValueError("x" * 10_000_000))
    assert len(huge) < LONGEST_MESSAGE + 40
    assert huge.endswith("(10000000 characters)")


def test_lone_surrogates_are_escaped() -> None:
    (fact,), _ = exception_facts(_raise(ValueError("a\udc80b")), HERE)
    assert fact.message == "a\\udc80b"
    assert json.loads(json.dumps(fact))["message"] == fact.message
    assert readable(3) == ""


def test_frames_of_a_recursion_and_causes_in_a_cycle_or_a_long_chain_are_limited() -> None:
    def down(n: int) -> int:
        return down(n + 1)

    (fact, *_), _ = exception_facts(_raised(lambda: down(0)), HERE)
    assert (fact.type, len(fact.frames)) == ("RecursionError", 50)
    a, b = ValueError("a"), KeyError("b")
    a.__cause__, b.__cause__ = b, a
    chain, _ = exception_facts(a, HERE)
    assert [fact.type for fact in chain] == ["ValueError", "KeyError"]
    errors = [ValueError(str(at)) for at in range(50)]
    for outer, inner in pairwise(errors):
        outer.__cause__ = inner
    assert len(exception_facts(errors[0], HERE)[0]) == LONGEST_CHAIN


def test_suppressed_context_is_omitted() -> None:
    def act() -> None:
        try:
            raise ImportError("hidden")
        except ImportError:
            raise ValueError("shown") from None

    assert [fact.type for fact in exception_facts(_raised(act), HERE)[0]] == ["ValueError"]


def test_leaves_of_nested_exception_groups_are_listed_once() -> None:
    shared = ValueError("a")
    group = ExceptionGroup("outer", [shared, ExceptionGroup("inner", [KeyError("b"), shared])])
    error = ValueError("later")
    error.__cause__ = group
    for outermost, first in ((group, "ExceptionGroup"), (error, "ValueError")):
        chain, leaves = exception_facts(outermost, HERE)
        assert chain[0].type == first
        assert [leaf.type for leaf in leaves] == ["ValueError", "KeyError"]


def test_frames_have_function_side_and_source() -> None:
    (fact,), _ = exception_facts(_raise(ValueError("x")), HERE)
    assert fact.frames[-1].side is Side.TEST
    assert fact.frames[-1].path == "test_evidence_capture.py"
    assert fact.frames[-1].function == "_raise.<locals>.act"
    assert fact.frames[-1].source == "raise error"
    evidence = startup_evidence(_raise(ValueError("x")), HERE)
    assert (evidence.kind, evidence.headline) == (EvidenceKind.SESSION, "ValueError: x")


OS_ERROR_BASES = ("builtins.OSError", "builtins.Exception", "builtins.BaseException")


def _no_attribute(obj: object) -> AttributeError:
    return AttributeError("m", name="x", obj=obj)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(111, "no"), {"bases": ("builtins.ConnectionError", *OS_ERROR_BASES)}),
        (OSError(errno.ENOSPC, "No space", b"/x/y"), {"errno": errno.ENOSPC, "path": "/x/y"}),
        (FileNotFoundError(errno.ENOENT, "no", "git"), {"errno": errno.ENOENT, "path": "git"}),
        (FileNotFoundError(errno.ENOENT, "no", Path("/x")), {"path": "/x"}),
        (OSError("plain"), {"errno": None, "path": None}),
        (SyntaxError("bad", ("<string>", 1, 1, "x")), {"path": "<string>", "line": 1, "object_side": None}),
        (ImportError("no name 'a' in 'os'", name="os", path=__file__), {"object_side": Side.TEST}),
        (NameError("x", name="x"), {"name": "x"}),
        (AttributeError("by hand"), {"name": None, "object_type": None}),
        (AttributeError("odd", name="x", obj=_ReprRaises()), {"type": "AttributeError", "message": "odd"}),
        (_no_attribute(errno), {"object_type": "module errno", "object_side": Side.STDLIB}),
        (_no_attribute(None), {"object_type": "builtins.NoneType", "object_side": Side.STDLIB}),
        (_no_attribute(Evidence), {"object_type": "class planner.model.evidence.Evidence"}),
    ],
)
def test_attributes_of_an_exception_are_kept(error: BaseException, expected: dict[str, Any]) -> None:
    (fact,), _ = exception_facts(error, HERE)
    assert {key: getattr(fact, key) for key in expected} == expected


def test_file_that_code_of_the_project_reads_from_another_folder_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"pk/tests/test_a.py": "def reads(path): open(path)", "pk/tests/data.txt": ""})
    (tmp_path / "out").mkdir()
    file, names = tmp_path / "pk/tests/test_a.py", dict[str, Any]()
    exec(compile(file.read_text(), str(file), "exec"), names)

    def nearest(path: str, folder: Path = tmp_path) -> tuple[str, ...]:
        monkeypatch.chdir(folder)
        chain, _ = exception_facts(_raised(lambda: names["reads"](path)), ProjectMap(root=tmp_path))
        return chain[0].nearest or ()

    assert nearest("tests/data.txt") == ("pk/tests/data.txt",)
    assert nearest("data.txt") == ("pk/tests/data.txt",)
    assert nearest("none.txt") == ()
    assert nearest(str(tmp_path / "tests/data.txt")) == (), "it is the same in each folder"
    assert nearest("data.txt", tmp_path / "out") == (), "the test expects a file that is written there"


def test_call_between_functions_outside_of_the_project_keeps_its_frames(tmp_path: Path) -> None:
    def library(needed: int) -> None: ...

    (fact,), _ = exception_facts(_raised(lambda: library()), ProjectMap(root=tmp_path))
    assert fact.frames[-1]["function"].endswith("<lambda>")


def test_only_the_parser_names_the_file_of_a_syntax_error_by_a_variable() -> None:
    def load(filename: str) -> None:
        raise SyntaxError(f"bad value in {filename}")

    by_hand, null = (lambda: load(__file__)), (lambda: ast.parse("'\0'", __file__))
    found = [exception_facts(_raised(act), HERE)[0][0].path for act in (by_hand, null)]
    assert found == [None, Path(__file__).name]


def test_property_whose_error_getattr_replaced_is_the_last_frame() -> None:
    class Box:
        @property
        def size(self) -> int:
            raise AttributeError("lost")

        def __getattr__(self, name: str) -> int:
            raise AttributeError(f"no {name}")

    (fact,), _ = exception_facts(_raised(lambda: Box().size), HERE)
    assert (fact.name, fact.message) == (None, "no size (property size raises AttributeError)")
    assert fact.frames[-1].function.endswith("Box.size")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("assert 32.1 == 28.5\n +  where", "AssertionError: assert 32.1 == 28.5"),
        ("rsi differs\nassert 1 == 2", "AssertionError: rsi differs (assert 1 == 2)"),
        ("assert <a.A object at 0x7f12ab> == 1", "AssertionError: assert <a.A object> == 1"),
        ("", "AssertionError"),
        ("\n\n", "AssertionError"),
    ],
)
def test_headline_is_the_essential_line_of_the_message(message: str, expected: str) -> None:
    fact = ExceptionFact(type="AssertionError", qualified="builtins.AssertionError", message=message)
    assert headline(fact) == expected


def test_only_product_functions_and_classes_have_a_definition() -> None:
    assert definition(len, HERE) is None
    assert definition(test_suppressed_context_is_omitted, HERE) is None
    project = ProjectMap(root=Path(headline.__code__.co_filename).parent.parent)
    for value, name in ((headline, "headline"), (ProjectMap, "ProjectMap")):
        found = definition(value, project)
        assert found.function == name
        assert found.source == (f"class {name}" if isinstance(value, type) else None)
    # A dataclass has a generated __init__, a named tuple a generated __new__.
    for kind, path in ((JudgedCommand, "checks/result.py"), (Assembled, "session/outcomes.py")):
        generated = definition(kind, project)
        assert (generated.path, generated.source) == (path, f"class {kind.__name__}")


def test_values_that_pytest_clips_are_recorded_and_its_message_is_not_changed(
    pytester: pytest.Pytester,
) -> None:
    source = """
        from collections import namedtuple
        Version = namedtuple("Version", "major minor patch")
        def test_a():
            assert Version(1, 2, 0) == Version(1, 3, 0)
    """
    evidence = capture(pytester, {"test_a.py": dedent(source)}).first
    both = "assert Version(major=1, minor=2, patch=0) == Version(major=1, minor=3, patch=0)"
    assert evidence.headline == f"AssertionError: {both}"
    assert "..." in evidence.longrepr


CHECK = """\
import pytest, traceback
from app import f
@pytest.fixture
def late():
    yield
    raise ValueError('late')
def test_a(tmp_path, late):
    print('out')
    try: 1 / 0
    except ZeroDivisionError: traceback.print_exc()
    assert f() == 2
"""


def test_evidence_of_each_phase_has_output_fixtures_and_subjects_with_paths_below_the_root(
    pytester: pytest.Pytester,
) -> None:
    files = {"app.py": "def f():\n    return 1\n", "check_a.py": CHECK}
    evidence, late = capture(pytester, files, "-o", "python_files=check_*.py").evidence
    assert (evidence.kind, evidence.phase, late.phase) == (EvidenceKind.TEST, Phase.CALL, Phase.TEARDOWN)
    assert evidence.nodeid == "check_a.py::test_a"
    assert evidence.stdout_tail == "out\n"
    assert '  File "check_a.py", line 9, in test_a\n' in evidence.stderr_tail
    assert "tmp_path" in evidence.fixtures
    assert [frame.function for frame in evidence.subjects] == ["f"]
    (error,) = evidence.exceptions
    assert [frame.function for frame in error.frames] == ["test_a"], "not how pytest came to call it"
    assert error.frames[-1].side is Side.TEST, "whatever the name of a collected file"
    assert evidence.headline.startswith("AssertionError: assert 1 == 2")
    assert "assert f() == 2" in evidence.longrepr
    assert evidence.first_party == ("app", "check_a")


ALONE = {
    "constants": "def test(): assert 1 + 1 == 3",
    "helper": "import math\ndef area(r): return math.pi * r\ndef test(): assert area(1) == 3",
    "recursion": "def f(n): return f(n - 1) if n else 0\ndef test(): assert f(1)",
    "import inside": "def test():\n    from math import pi\n    assert pi == 3",
    "name of a module": "from math import pi as p, sqrt\ndef test(): assert sqrt(4) == 3",
    "inner function": "def test():\n    one = 1\n    assert [one for _ in '1'] == [2]",
    "beside": "import shop\ndef test(): assert not 'x'\nassert shop.RATE",
    "method": "class TestA:\n    def test(self): assert self.f() == 2\n    def f(self): return 1",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)",
}
TOUCHING = {
    "import": "import shop\ndef test(): assert shop.RATE == 3",
    "import inside": "def test():\n    from shop import RATE\n    assert RATE == 3",
    "name of the product": "from shop import Cart\ndef test(): assert Cart() == 3",
    "value of the module": "import shop\nrate = shop.RATE\ndef test(): assert rate == 3",
    "by a helper": "from shop import Cart\ndef f(): return Cart()\ndef test(): assert f() == 3",
    "by a default": "import shop\ndef f(rate=shop.RATE): return rate\ndef test(): assert f() == 3",
    "inner function": "import shop\ndef test():\n    def f(): return shop.RATE\n    assert f() == 3",
    "fixture": "def test(tmp_path): assert tmp_path == 3",
    "fixture by mark": "import pytest\n@pytest.mark.usefixtures('tmp_path')\ndef test(): assert 0",
    "method": "import shop\nclass TestA:\n    def test(self): assert 0\n    def f(self): shop.RATE",
    "value of the class": "import shop\nclass TestA:\n    a = shop.RATE\n    def test(self): assert self.a == 2",
    "fixture of the class": "import pytest, shop\nclass TestA:\n    @pytest.fixture(autouse=True)\n    def _a(self): self.a = shop.RATE\n    def test(self): assert self.a == 2",
    "method of the product": "import shop\nclass TestA:\n    f = shop.Cart.f\n    def test(self): assert self.f() == 2",
    "test of the product": "from shop import test",
    "base class": "import shop\nclass TestA(shop.Cart):\n    def test(self): assert 0",
    "file": "def test(): assert open(__file__).read() == 'x'",
    "process": "import subprocess\ndef test(): assert subprocess.call(['true'])",
}


@pytest.mark.parametrize(("texts", "expected"), [(ALONE, True), (TOUCHING, False)])
def test_self_contained_test_names_only_what_its_file_defines(
    texts: dict[str, str], expected: bool, pytester: pytest.Pytester
) -> None:
    tests = {f"test_{name.replace(' ', '_')}.py": text for name, text in texts.items()}
    shop = "RATE = 1\nclass Cart:\n    def f(self): return 1\ndef test(): assert 0\n"
    captured = capture(pytester, {"shop.py": shop, **tests}).evidence
    found = {str(each.nodeid).partition("::")[0]: each.self_contained for each in captured}
    assert found == dict.fromkeys(tests, expected)


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="subtests came with pytest 9")
def test_failures_of_subtests_and_their_test_are_captured(pytester: pytest.Pytester) -> None:
    text = "def test_a(subtests):\n    for i in range(3):\n        with subtests.test(i=i): assert i == 1\n"
    captured = capture(pytester, {"test_a.py": text}).evidence
    assert len(captured) >= 2
    assert {diagnose(evidence).category for evidence in captured} == {Category.TEST_REGRESSION}


REFUSED = {
    "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_a(): pass": "strict-xpass",
    "import unittest as u\nclass A(u.TestCase):\n    @u.expectedFailure\n    def test_a(self): pass": "strict-xpass",
    "import pytest\n@pytest.fixture(scope='module')\ndef a(tmp_path): pass\ndef test_a(a): pass": "test-definition-refused",
}


@pytest.mark.parametrize(("source", "rule"), REFUSED.items(), ids=["xfail", "expectedFailure", "scope"])
def test_what_pytest_refuses_of_a_test_is_the_fault_of_the_test(
    pytester: pytest.Pytester, source: str, rule: str
) -> None:
    found = diagnose(capture(pytester, {"test_a.py": source}).first)
    assert (found.rule, found.owner, found.category) == (rule, Owner.TEST, Category.TEST_REGRESSION)


def _tree(root: Path, *names: str) -> None:
    write_files(root, dict.fromkeys(names, ""))


def test_discovery_finds_packages_modules_src_and_the_declared_name(tmp_path: Path) -> None:
    _tree(tmp_path, "a/__init__.py", "b.py", "src/c/core.py", "tests/helpers.py", "test_x.py", "conftest.py", "docs/conf.py",
          "data/x.csv", "env/pyvenv.cfg", "venv2/pyvenv.cfg", "venv2/x.py")  # fmt: skip
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "My-Shop"\n')
    found = ProjectMap.discover(
        tmp_path, planned=["d/e.py", "src/f.py", "tests/test_z.py", "out/x.json", "./g.py"]
    )
    assert found.first_party == {"a", "b", "c", "d", "f", "g", "my_shop"}
    assert found.test_packages >= {"tests", "helpers", "test_x", "conftest"}


@pytest.mark.parametrize("text", ["not toml [", "[project]\nname = 3\n", "project = 1\n", "\udcff", None])
def test_an_unreadable_pyproject_or_a_pipe_in_its_place_declares_nothing(
    tmp_path: Path, text: str | None
) -> None:
    if text is None:
        os.mkfifo(tmp_path / "pyproject.toml")
    else:
        (tmp_path / "pyproject.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert ProjectMap.discover(tmp_path).first_party == frozenset()
    assert ProjectMap.discover(tmp_path / "nowhere").first_party == frozenset()


@pytest.mark.parametrize(
    ("name", "module", "side"),
    [
        ("{root}/shop/cart.py", "", Side.PRODUCT),
        ("{root}/shop/tests/check.py", "", Side.TEST),
        ("{root}/conftest.py", "", Side.TEST),
        ("{root}/shop/cart_test.py", "", Side.TEST),
        ("{root}/.venv/lib/python3.12/site-packages/requests/api.py", "", Side.THIRD_PARTY),
        ("{root}/.venv/lib/python3.12/site-packages/shop/cart.py", "", Side.PRODUCT),
        ("/x/site-packages/_pytest/python.py", "", Side.FRAMEWORK),
        ("/x/site-packages/pytest_mock/plugin.py", "", Side.FRAMEWORK),
        ("/x/dist-packages/six.py", "", Side.THIRD_PARTY),
        (Path.__module__ and __import__("json").__file__, "json", Side.STDLIB),
        (headline.__code__.co_filename, "", Side.FRAMEWORK),
        ("<frozen importlib._bootstrap>", "", Side.STDLIB),
        ("<doctest shop.cart.f[0]>", "", Side.TEST),
        ("<string>", "shop.cart", Side.PRODUCT),
        ("<string>", "tests.x", Side.TEST),
        ("<string>", "json", Side.STDLIB),
        ("<string>", "nobody", Side.THIRD_PARTY),
        ("/elsewhere/shop/cart.py", "shop.cart", Side.PRODUCT),
        ("/elsewhere/foo.py", "foo", Side.THIRD_PARTY),
        ("/elsewhere/pluggy/x.py", "pluggy.x", Side.FRAMEWORK),
    ],
)
def test_every_file_has_a_side(tmp_path: Path, name: str, module: str, side: Side) -> None:
    root = tmp_path.resolve()
    project = ProjectMap(root=root, first_party=frozenset({"shop"}), test_packages=frozenset({"tests"}))
    assert project.side(name.format(root=root), module) is side
    assert project.side(name.format(root=root), module) is side


def test_test_folder_named_like_a_library_does_not_hide_it(tmp_path: Path) -> None:
    packages = ("tests", "tests/redis", "test/fakes")
    _tree(tmp_path, *(f"{folder}/__init__.py" for folder in packages), "test/kafka/test_a.py")
    found = ProjectMap.discover(tmp_path).test_packages
    assert found >= {"tests", "fakes"}
    assert not found & {"redis", "kafka"}


def test_module_is_located_and_paths_are_relative_to_the_root(tmp_path: Path) -> None:
    _tree(tmp_path, "src/shop/cart.py", "tests/helpers.py")
    project = ProjectMap.discover(tmp_path)
    assert project.locate("shop.cart") == "src/shop/cart.py"
    assert project.locate("helpers") == "tests/helpers.py"
    assert project.locate("shop.gone") is None
    assert project.locate("shop." + "a" * 300) is None
    assert project.relative(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert project.relative("/x/b.py") == "/x/b.py"
    assert project.relative("<string>") == "<string>"


def test_declared_test_file_is_on_the_test_side(tmp_path: Path) -> None:
    _tree(tmp_path, "check.py", "other.py")
    project = ProjectMap.discover(tmp_path)
    assert project.side(str(tmp_path / "check.py")) is Side.PRODUCT
    more = project.with_tests([tmp_path / "check.py"])
    assert more.side(str(tmp_path / "check.py")) is Side.TEST
    assert more.side(str(tmp_path / "other.py")) is Side.PRODUCT
    assert more.with_tests([tmp_path / "check.py"]) is more
