"""Changes of tests and other protected files: each loss is found, and harmless changes are not flagged."""

import textwrap
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hygiene_samples import (
    CONFTEST,
    FORBIDDEN,
    GRANTED,
    OPEN,
    SNIPPETS,
    TESTS,
    TREE,
    held,
    signals,
    signs,
    with_tests,
)

from pytest_planverify.baseline.work_tree import Judges
from pytest_planverify.guards.hygiene.compare import HygieneWatch, compare, violations
from pytest_planverify.guards.hygiene.grants import Grants, TodoReach

SIGN_TEST = """def test_sign():
    parts = split("one;two", sign=";")
    assert parts == ["one", "two"]
    assert len(parts) == 2
"""
HELPER = "def same(found, wanted):\n    assert found == wanted\n    assert len(found) == len(wanted)\n"
NEAR = "assert 0.1 + 0.2 == pytest.approx(0.3, abs=1e-9)"
EQUAL = 'assert parts == ["one", "two"]'


def added(text: str) -> tuple[str, str]:
    """Return a change that adds code after a test."""
    return NEAR, f"{NEAR}\n\n{text}"


def before(text: str, old: str = "def test_sign") -> tuple[str, str]:
    """Return a change that puts code before other code."""
    return old, f"{text}{old}"


WRAPPER = """def calm(test):
    def run():
        try:
            test()
        except AssertionError:
            print("failed")
    return run

@calm
"""
LOSSES = {
    "test-deleted": {"deleted": (SIGN_TEST, "")},
    "assertion-void": {
        "in a dead branch": before("if False:\n        ", EQUAL),
        "in a loop over nothing": before("for _ in ():\n        ", EQUAL),
        "after a return in a block": before("with open(__file__):\n        return\n        ", EQUAL),
        "for type checkers": before("import typing\n    if typing.TYPE_CHECKING:\n        ", EQUAL),
        "a lambda": (EQUAL, 'same = lambda: parts == ["one", "two"]\n    assert same'),
        "a generator": (EQUAL, 'assert (each == "one" for each in parts)'),
        "itself": (EQUAL, "assert parts == parts"),
        "on condition that it holds": before("if parts == ['one', 'two']:\n        ", EQUAL),
        "anything": (EQUAL, "from unittest import mock\n    assert parts == mock.ANY"),
        "constants": (EQUAL, "assert 2 == int('2')"),
        "a helper that asserts nothing": (
            EQUAL,
            'def check(found, wanted):\n        return found == wanted\n\n    check(parts, ["one", "two"])',
        ),
        "return under a condition": before("if parts:\n        return\n    ", EQUAL),
        "equal calls, one of them assigned": (
            f"{EQUAL}\n    assert len(parts) == 2",
            'wanted = split("one;two", sign=";")\n    assert parts == wanted',
        ),
        "a mock in place of the product": (
            EQUAL,
            'split = pytest.Mock(return_value=["one", "two"])\n    assert split("a") == ["one", "two"]',
        ),
    },
    "test-skipped": {"skipped": before("@pytest.mark.skip(reason='later')\n")},
    "test-xfailed": {"xfailed": before("@pytest.mark.xfail\n")},
    "assertions-fewer": {
        "assertion removed": ("    assert len(parts) == 2\n", ""),
        "an alternative": ("assert len(parts) == 2", "assert len(parts) == 2 or len(parts) == 1"),
        "order instead of equality": ("assert len(parts) == 2", "assert len(parts) >= 0"),
    },
    "judge-changed": {"case changed": ('("a, b", ["a", "b"])', '("a, b", ["a, b"])')},
    "assertion-swallowed": {
        "swallowed by a decorator": before(WRAPPER),
        "suppressed by a decorator": before(
            "def calm(test):\n    def run():\n        with contextlib.suppress(AssertionError):\n"
            "            test()\n    return run\n\n@calm\n"
        ),
        "expected by a context": (
            EQUAL,
            "@contextlib.contextmanager\n    def refused():\n        with pytest.raises(Exception):\n"
            f"            yield\n\n    with refused():\n        {EQUAL}",
        ),
        "swallowed by a context": (
            EQUAL,
            "@contextlib.contextmanager\n    def calm():\n        try:\n            yield\n"
            f"        except AssertionError:\n            pass\n\n    with calm():\n        {EQUAL}",
        ),
    },
    "outcome-hook": {
        "own conftest values": added("def pytest_sessionfinish(session):\n    session.exitstatus = 0"),
        "runs its tests itself": added(
            "class Base:\n    def run(self, result=None):\n        result.addSuccess(self)"
        ),
    },
}


REFACTORED = {
    "of a thing with itself": before("assert parts == parts\n    ", EQUAL),
    "to a helper": (SIGN_TEST, f"{HELPER}\n" + SIGN_TEST.replace(EQUAL, 'same(parts, ["one", "two"])')),
    "around unittest's own run": added(
        "class Base:\n    def run(self, result=None):\n        with HOME:\n            super().run(result)"
    ),
    "to a context that expects an exception": (
        f"{EQUAL}\n    assert len(parts) == 2",
        "@contextlib.contextmanager\n    def refused():\n        with pytest.raises(Exception):\n"
        f"            yield\n\n    {EQUAL}\n    assert 2 == len(parts)\n"
        "    with refused():\n        split(None)",
    ),
    "a predicate": (
        EQUAL,
        "def check(found, wanted):\n        return found == wanted\n\n"
        '    assert check(parts, ["one", "two"])',
    ),
    "another call of a stand-in": (
        f"{EQUAL}\n    assert len(parts) == 2",
        "class Key:\n        def verify(self, text):\n            return True\n\n"
        f'    key = Key()\n    key.verify("one")\n    {EQUAL}\n    assert 2 == len(parts)',
    ),
    "expected to fail elsewhere": before(
        "@pytest.mark.xfail(False, reason='x')\n@pytest.mark.skipif(False, reason='x')\n"
    ),
    "an object of its own": added(
        "class Box:\n    pass\n\n"
        "@pytest.fixture(autouse=True)\ndef quiet():\n    box = Box()\n    box.x = 1\n    yield"
    ),
    "a skip without a library": before(
        "def test_other():\n    pytest.importorskip('numpy')\n    assert split('z') == ['z']\n\n\n"
    ),
    "cases in a constant": (
        '[("a, b", ["a", "b"]), ("", [""]), ("x,y,z", ["x", "y", "z"])],\n)',
        "CASES,\n)",
    ),
}


PATCHED_FOR_ALL = """
@pytest.fixture(autouse=True)
def _all(monkeypatch):
    monkeypatch.setattr('pkg.words.split', list)
"""


@pytest.mark.parametrize(
    ("sign", "old", "new"),
    [
        pytest.param(sign, *change, id=name)
        for sign, changes in LOSSES.items()
        for name, change in changes.items()
    ],
)
def test_weakened_tests_are_found_without_permission(sign: str, old: str, new: str):
    assert sign in signs(with_tests(old, new), grants=OPEN)


@pytest.mark.parametrize("sign", LOSSES)
def test_weakened_tests_are_found_where_tests_are_forbidden(sign: str):
    assert sign in signs(with_tests(*next(iter(LOSSES[sign].values()))), grants=FORBIDDEN)


def test_harmless_test_changes_need_no_permission():
    text = textwrap.dedent(TESTS)
    for old, new in (
        before("# of signs\n"),
        ('"one;two"', "'one;two'"),
        ('["one", "two"]', '[u"one", "two"]'),
        ("def test_sign():", 'def test_sign() -> None:\n    """Signs."""'),
        ("import pytest\nfrom pkg.words import split", "from pkg.words import split\nimport pytest"),
        added("@pytest.fixture\ndef text():\n    return 'q'\n\nimport json\nWORDS = ['q']"),
        added("def test_more():\n    assert split('q') == ['q']"),
    ):
        assert old in text
        text = text.replace(old, new)
    assert signals({"tests/test_words.py": text}, grants=FORBIDDEN) == ()


@pytest.mark.parametrize(("old", "new"), REFACTORED.values(), ids=REFACTORED)
def test_permitted_todo_may_refactor_tests(old: str, new: str):
    assert signals(with_tests(old, new), grants=GRANTED) == ()


def conftest_with(code: str) -> dict[str, str]:
    return {"tests/conftest.py": f"{textwrap.dedent(CONFTEST)}\n\n{code}\n"}


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        pytest.param(sign, code, id=name)
        for sign, hooks in SNIPPETS["hooks"].items()
        for name, code in hooks.items()
    ],
)
def test_conftest_that_changes_outcomes_is_found_despite_permission(sign: str, code: str):
    assert sign in signs(conftest_with(code), grants=GRANTED)


ASSIGNED_FOR_ALL = """
import pkg.words

@pytest.fixture(autouse=True)
def _all():
    pkg.words.split = list
"""


SPY_FOR_ALL = """
import pkg.words

@pytest.fixture(autouse=True)
def _all(mocker):
    mocker.patch("pkg.words.split", wraps={wrapped})
"""


DECIDES_FOR_ALL = """
@pytest.fixture(autouse=True)
def _all(request):
    request.node.obj = lambda **values: None
"""


@pytest.mark.parametrize(
    "code", [PATCHED_FOR_ALL, ASSIGNED_FOR_ALL, DECIDES_FOR_ALL], ids=["patched", "assigned", "decides"]
)
@pytest.mark.parametrize(("grants", "is_found"), [(FORBIDDEN, True), (OPEN, True), (GRANTED, False)])
def test_patch_for_all_tests_is_found_unless_they_may_be_changed(grants: Grants, is_found: bool, code: str):
    assert ("fixture-overridden" in signs(conftest_with(code), grants=grants)) is is_found


def test_fixture_that_the_configuration_applies_to_all_tests_is_found():
    conftest = conftest_with(PATCHED_FOR_ALL.replace("autouse=True", ""))
    used = {"pytest.ini": "[pytest]\nusefixtures = _all\n"}

    assert "fixture-overridden" not in signs(conftest, grants=OPEN)
    assert "fixture-overridden" in signs({**conftest, **used}, grants=OPEN)


DECLARING = """
def pytest_addoption(parser):
    'Options of the tests.'
    group = parser.getgroup("shop")
    group.addoption("--slow", action="store_true")

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long")

def pytest_report_header(config):
    return "shop"
"""
OBSERVING = """
def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: item.name)
    for item in items:
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="slow"))

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.sections.append(("shown", "text"))
    return report
"""


def test_observing_hooks_are_allowed_with_permission():
    assert signals(conftest_with(DECLARING + OBSERVING), grants=GRANTED) == ()


@pytest.mark.parametrize("grants", [FORBIDDEN, OPEN], ids=["forbidden", "by default"])
def test_hooks_that_only_declare_need_no_permission(grants: Grants):
    assert signals(conftest_with(DECLARING), grants=grants) == ()
    for old, new in (
        ('"markers"', '"filterwarnings"'),
        ('action="store_true"', 'dest="keyword", default="not slow"'),
        ('return "shop"', 'return setattr(config.option, "keyword", "not slow")'),
        ("group =", "config.option.keyword = group ="),
    ):
        assert signs(conftest_with(DECLARING.replace(old, new)), grants=grants), new


def test_fixture_that_overrides_one_of_protected_tests_is_found():
    grants = Grants(todos=(TodoReach(todo_id="work", allowed_files=("tests/unit/conftest.py",)),))
    tree = {**TREE, "tests/unit/test_more.py": "def test_words(words):\n    assert words\n"}
    code = "import pytest\n\n@pytest.fixture\ndef words():\n    return ['a', 'b']\n"
    assert signs({"tests/unit/conftest.py": code}, grants=grants, tree=tree) == {"fixture-overridden"}


def compared(change: dict[str, str], **more: Any) -> list[str]:
    """Return the signs of a change of the tree; ``more`` are arguments of the comparison."""
    kinds = {path: Judges().kind_of(path) for path in TREE}
    return [each.sign for each in compare(held(TREE), held({**TREE, **change}), kinds=kinds, **more)]


@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("test-deleted", "deleted"),
        ("test-skipped", "skipped"),
        ("test-xfailed", "xfailed"),
        ("assertions-fewer", "assertion removed"),
    ],
)
def test_red_test_may_be_edited_but_not_removed_by_a_permitted_todo(sign: str, name: str):
    red = "tests/test_words.py::test_sign"
    weakened = with_tests(*LOSSES[sign][name])
    edited = with_tests('["one", "two"]', '["one", "three"]')

    assert compared(weakened, grants=GRANTED, is_red=red.__eq__) == [sign]
    assert compared(edited, grants=GRANTED, is_red=red.__eq__) == []
    assert compared(weakened, grants=GRANTED) == []


def test_removed_test_file_is_found_but_not_a_moved_one():
    text = textwrap.dedent(TESTS)
    gone = {"tests/test_words.py": None}
    assert "judge-removed" in signs(gone, grants=OPEN)
    assert signs({**gone, "tests/unit/test_words.py": text}, grants=OPEN) == set()
    assert signs({**gone, "tests/unit/words.py": text}, grants=GRANTED) == set()


def test_changed_data_is_found_but_reformatted_data_is_not():
    path = "tests/data/words.json"
    assert signs({path: '[{"count": 2, "text": "Hello, World"}]\n'}) == set()
    assert signs({path: '[{"text": "Hello, World", "count": 3}]'}, grants=OPEN) == {"data-changed"}
    more = '[{"text": "Hello, World", "count": 2}, {"text": "x", "count": 1}]'
    assert signs({path: more}, grants=OPEN) == set()


def test_unparsable_test_file_is_a_signal():
    assert "judge-unreadable" in signs({"tests/test_words.py": "def test_(:\n"})


def test_unusual_valid_sources_are_compared():
    deep = "assert " + "+".join(["1"] * 800) + "\n"
    odd = "\x0cdef test_odd():\n    " + deep
    tree = {**TREE, "tests/test_odd.py": odd}
    assert signs({"tests/test_odd.py": "# -*- coding: utf-8 -*-\n" + odd}, tree=tree) == set()
    emptied = {"tests/test_odd.py": "def test_odd():\n    pass\n"}
    assert "assertion-void" in signs(emptied, tree=tree)


def test_deeply_nested_data_is_compared_as_text():
    depth = 100_000  # with the raised recursion limit, it overflowed the stack of the process
    text = '{"a":' * depth + "1" + "}" * depth
    tree = {**TREE, "tests/data/words.json": text}
    change = {"tests/data/words.json": f'{{"b":1,{text[1:]}', "pkg/words.py": "X = {1: 2}\n"}
    assert signs(change, tree=tree, grants=OPEN) == {"data-changed"}


def test_data_of_failed_tests_may_change_but_not_lose_entries():
    path, words = "tests/data/words.json", '["one", "two"]'
    read = "def test_words():\n    assert split(load('words'))\n\n\ndef test_one():\n    assert split('')\n"
    tree = {**TREE, path: words, "tests/test_words.py": read}
    assert of_red_tests({path: '["one", "three"]'}, tree) == set()
    assert of_red_tests({path: '["one"]'}, tree) == {"assertions-fewer"}
    is_other = lambda nodeid: nodeid.endswith("test_one")  # noqa: E731
    assert signs({path: '["one"]'}, grants=GRANTED, tree=tree, is_red=is_other) == set()


def test_fixture_may_not_replace_a_helper_that_checks():
    check = "(self, text):\n        assert split(text)\n"
    helper = f"class Words:\n    def same{check}\n    def __init__{check}"
    conftest = (
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef calm(request):\n    request.cls.{} = print\n"
    )
    tree = {**TREE, "tests/test_words.py": helper}
    found = [
        of_red_tests({"tests/conftest.py": conftest.format(name)}, tree)
        for name in ("same", "client", "__init__")
    ]
    assert found == [{"outcome-hook"}, set(), set()]


@pytest.mark.parametrize("added", ["more:\n- b: 3\n", "cases: []\n", "- b: 3\n"])
def test_yaml_may_gain_entries_but_not_lines_that_change_others(added: str):
    path, before, after = "tests/data/words.yaml", "cases:\n- a: 1\n", "- b: 2\nname: x\n"
    tree = {**TREE, path: before + after}
    changes = ({path: before + added + after}, {path: before + after + added})
    found = [signs(change, tree=tree, grants=OPEN) for change in changes]
    is_entry = added.startswith("-")
    assert found[0] == (set() if is_entry else {"data-changed"})
    assert found[1] == (set() if added.startswith("more") else {"data-changed"})


def test_data_that_aliases_expand_without_bound_is_compared_as_text():
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))
    path, text = "tests/data/words.yaml", f"a0: &a0 [1]\n{levels}"
    tree = {**TREE, path: text}
    assert signs({path: text + "# end\n"}, tree=tree, grants=OPEN) == {"data-changed"}


@pytest.mark.parametrize("value", ["!!bool maybe", '!!int ""', "!!timestamp soon", f"1{':00' * 300}.5"])
def test_data_whose_values_do_not_fit_their_tags_is_compared(value: str):
    path = "tests/data/words.yaml"
    tree = {**TREE, path: f"count: {value}"}
    assert signs({path: f"count: [{value}]"}, tree=tree, grants=OPEN) == {"data-changed"}


def test_accepted_change_is_not_a_signal():
    change = with_tests(EQUAL, "assert parts")
    digest = held(change).digests()["tests/test_words.py"]
    assert compared(change, grants=FORBIDDEN)
    assert not compared(change, grants=FORBIDDEN, accepted=lambda path, content: content == digest)


def test_signal_is_attributed_to_the_affected_todo():
    grants = Grants(
        todos=(
            TodoReach(todo_id="code", allowed_files=("pkg/**",), selections=("tests/test_words.py",)),
            TodoReach(todo_id="other", allowed_files=("docs/**",), selections=("tests/test_other.py",)),
        )
    )
    changed = signals(with_tests(EQUAL, "assert parts"), grants=grants)
    tricks = signals({"pkg/words.py": "import os\n\ndef split(text):\n    os._exit(0)\n"}, grants=grants)
    both = {"code", "other"}
    for found in (changed, tricks):
        blamed = violations(found, grants=grants, passed=both, present=both)
        assert [each.todo_id for each in blamed] == ["code"]
    (violation,) = violations(changed, grants=grants, passed=(), present={"code"})
    assert violation.evidence.headline == "test_sign asserts less (tests/test_words.py:12)"


def of_red_tests(change: Mapping[str, str | None], tree: dict[str, str] | None = None) -> set[str]:
    """Return the signs of a change by a todo that may change the tests, all of which failed before."""
    return signs(change, grants=GRANTED, tree=tree, is_red=lambda nodeid: True)


@pytest.mark.parametrize(
    ("condition", "is_found"),
    [
        ("parts is None", False),
        ("not (parts is not None)", False),
        ("parts is not None", True),
        ("parts != ['']", True),
        ("parts is None or parts", True),
    ],
)
def test_a_return_may_replace_the_contrary_condition_of_a_check(condition: str, is_found: bool) -> None:
    was = "    if parts is not None:\n        assert split(text) == parts\n"
    now = f"    if {condition}:\n        return\n    assert split(text) == parts\n"
    change = with_tests("    assert split(text) == parts\n", now)
    tree = {**TREE, **with_tests("    assert split(text) == parts\n", was)}
    assert bool(of_red_tests(change, tree)) is is_found


def test_what_a_block_asserts_after_it_binds_a_name_or_calls_a_method_may_fail() -> None:
    block = f"if len(parts) == 2:\n        {{}}\n        {LENGTH}"
    for change in ("parts = split('a')", "parts.append('c')"):
        assert of_red_tests(with_tests(LENGTH, block.format(change))) == set()
    assert of_red_tests(with_tests(LENGTH, block.format("print(parts)"))) == VOID | FEWER


def test_equal_checks_of_several_values_may_move_into_a_loop() -> None:
    one = "    with self.assertRaises(ValueError):\n        split({})\n"
    loop = "    for number in ({}):\n" + textwrap.indent(one.format("number"), "    ")
    test = "class Words(TestCase):\n  def test_numbers(self):\n    'Numbers.'\n"
    tree = {**TREE, "tests/test_case.py": test + one.format(1) + one.format(2)}
    for values, wanted in (("1, 2", set[str]()), ("1, 1", {"assertions-fewer"})):
        change = {"tests/test_case.py": test.replace("    'Numbers.'\n", "") + loop.format(values)}
        assert of_red_tests(change, tree) == wanted


def test_methods_that_a_protocol_declares_are_no_helpers() -> None:
    tests = (
        "class Checks(Protocol):\n    def assertRaises(self, kind): ...\n\nclass Common(Checks):\n"
        "    def test_one(self):\n        with self.assertRaises(ValueError):\n            split(1)\n"
    )
    tree = {**TREE, "tests/test_case.py": tests}
    change = {"tests/test_case.py": tests.replace("with self.assertRaises(ValueError)", "if True")}
    assert of_red_tests(change, tree) == {"assertion-void", "assertions-fewer"}


def test_an_inherited_test_may_be_renamed_without_a_change_of_the_classes() -> None:
    common = "class Common:\n    def test_one(self):\n        assert split('a') == ['a']\n"
    tree = {
        **TREE,
        "tests/common.py": common,
        "tests/test_case.py": "class WordsTests(Common, TestCase):\n    pass\n",
    }
    assert of_red_tests({"tests/common.py": common.replace("test_one", "test_1")}, tree) == set()


FREE, FEWER, VOID, DELETED = set[str](), {"assertions-fewer"}, {"assertion-void"}, {"test-deleted"}
PLAIN = textwrap.dedent(TESTS)
LENGTH = "assert len(parts) == 2"
BOTH = f"{EQUAL}\n    {LENGTH}"
RAISES = 'raises(AttributeError, match="NoneType")'
HANDLER = f"try:\n        {EQUAL}\n    except AssertionError:\n        {{}}raise"
MEAN = "def test_mean():\n    assert mean([1.25, 2.5, 8.625]) == 4.125\n"
TWO_MEANS = f"{MEAN}\ndef test_mean_of_one():\n    assert mean([0.1]) == 0.1\n"
MEANS = """@pytest.mark.parametrize(("values", "wanted"), [([1.25, 2.5, 8.625], 4.125), ([0.1], 0.1)])
def test_means(values, wanted):
    assert mean(values) == wanted
"""
SHOW = "def test_show():\n    assert '3 pens' in show()\n    assert show().splitlines()[-1] == 'Total 9'\n"
LENGTHS = "split('a') == ['a']\n    assert len(split('b')) == 1"
TITLE = "def test_title():\n    assert title('a b') == 'A B'\n    assert title('  x ') == 'X'\n"
SPLIT = TITLE.replace("    assert title('  x", "\n\ndef test_blanks():\n    assert title('  x")
CASES = "[('a b', 'A B'), ('  x ', 'X')]"
TABLE = f"def test_title():\n    for text, wanted in {CASES}:\n        assert title(text) == wanted\n"
MARKED = SPLIT.replace("def test_blanks", "@pytest.mark.{}\ndef test_blanks")
SKIPPED = "pytestmark = pytest.mark.skipif(sys.platform == 'win32', reason='no shell')\n\n"
FILLED = "@pytest.mark.parametrize('a', {})\ndef test_title(a):\n    assert title(a) == a.upper()\n"
CLASS = "class TestWords:\n    def test_one(self):\n        assert split('a') == ['a']\n"
METHOD = """class Words(TestCase):
    def words(self, text, wanted):
        self.assertEqual(split(text), wanted)

    def test_one(self):
        self.words("a", ["a"])
"""
INHERITED = METHOD.replace("(TestCase)", "").replace(
    "def test", "\nclass WordsTests(Words, TestCase):\n    def test"
)
TRUTH = METHOD.replace("wanted)\n\n", "wanted)\n        assert is_word('a') == True\n\n")
LOOP = """class WordsTests(TestCase):
    def setUp(self):
        pass

    def test_split(self):
        cases = [("a", ["a"]), ("b,c", ["b", "c"])]
        for text, wanted in cases:
            self.assertEqual(split(text), wanted)
"""
SPLIT_IN_LOOP = f"from unittest import TestCase\n\nfrom pkg.words import split\n\n\n{LOOP}"
IN_LOOP = "self.assertEqual(split(text), wanted)"
SAME = "want = list(wanted)\n            self.assertEqual(split(text), want)"
SAME_TWICE = "assert split('') == split('') == split; assert not split('') != split('')"
SOME = "class Some(list):\n    def __eq__(self, other):\n        return True\n\n"
CHANGES_OF_RED_TESTS: dict[str, list[tuple[str, str, str, set[str]]]] = {
    "a case with checks of its own may end a test": [
        (
            PLAIN,
            EQUAL,
            f"if not parts:\n        assert split('') == ['']\n        return\n    {EQUAL}",
            FREE,
        ),
        (PLAIN, EQUAL, f"if not parts:\n        return\n    {EQUAL}", VOID | FEWER),
    ],
    "equal results of equal calls may be one check of several": [
        (PLAIN, LENGTH, 'assert split("a") == split("a")', FREE)
    ],
    "other values may be expected, but no less be asserted": [
        (PLAIN, LENGTH, "assert len(parts) == 3", FREE),
        (PLAIN, LENGTH, "assert len(parts) >= 0", FEWER),
        (PLAIN, BOTH, "assert isinstance(parts, list)\n    assert len(parts) > 0", FEWER),
        (PLAIN, ', (80.4, "VIP", 60.3), (7, "NO", 7.5)', "", FEWER),
    ],
    "a wider exception is less": [
        (PLAIN, "raises(AttributeError", "raises(Exception", FREE),
        (PLAIN, "raises(AttributeError", "raises(TypeError", FREE),
        (PLAIN, RAISES, "raises(Exception)", FEWER),
        (PLAIN, RAISES, "raises((AttributeError, Exception))", FEWER),
        (PLAIN, RAISES, "raises((AttributeError, KeyError))", FEWER),
    ],
    "a small difference of floats is an equality": [
        (PLAIN, NEAR, "assert abs(0.1 + 0.2 - 0.3) < 1e-9", FREE),
        (PLAIN, NEAR, "assert abs(0.1 + 0.2 - 0.3) < 5", FEWER),
    ],
    "what is expected may not be made from the result": [
        (SPLIT_IN_LOOP, IN_LOOP, f"{new}\n            {IN_LOOP}", wanted)
        for new, wanted in {
            "wanted = split(text)": VOID,
            "wanted = [each for each in split(text)]": VOID,
            "wanted = list(wanted)": FREE,
        }.items()
    ]
    + [
        (
            SPLIT_IN_LOOP,
            IN_LOOP,
            f"found = split(text)\n            self.assertEqual(split(text), {of})",
            wanted,
        )
        for of, wanted in {"found": FEWER, "wanted[:]": FREE}.items()
    ]
    + [(SPLIT_IN_LOOP.replace(IN_LOOP, SAME_TWICE), "split('')", "split", FREE)],
    "a new class may not decide what is equal to what is expected": [
        (text, text, text.replace("list(wanted)", "Some(wanted)") + some, wanted)
        for text in [SPLIT_IN_LOOP.replace(IN_LOOP, SAME)]
        for some, wanted in {
            SOME: VOID,
            SOME.replace("(list)", ""): VOID,
            SOME.replace("(list)", "").replace("True", "self.words == other.words"): FREE,
        }.items()
    ],
    "a check may not be left out for some of its cases": [
        (SPLIT_IN_LOOP, old, new, wanted)
        for old, new, wanted in (
            ("in cases", "in cases[1:]", FEWER),
            ("in cases", "in itertools.islice(cases, 0)", FEWER),
            (
                "        for",
                "        cases = [each for each in cases if split(each[0])]\n        for",
                FEWER,
            ),
            (IN_LOOP, f"if split(text) == wanted:\n                {IN_LOOP}", FEWER),
            (IN_LOOP, f"if text:\n                continue\n            {IN_LOOP}", FEWER),
            (IN_LOOP, f"with self.subTest(text):\n                {IN_LOOP}", FREE),
            ("in cases", "in sorted(cases)", FREE),
        )
    ],
    "a rough comparison is less than an equality": [
        (SPLIT_IN_LOOP, IN_LOOP, new, wanted)
        for new, wanted in {
            "self.assertAlmostEqual(split(text), wanted, delta=2)": FEWER,
            "self.assertAlmostEqual(split(text), wanted, delta=1e-9)": FREE,
            "self.assertEqual(split(text) // 10, wanted // 10)": FEWER,
            "self.assertEqual(str(split(text)).lower(), str(wanted).lower())": FEWER,
        }.items()
    ],
    "methods that compare may not be replaced": [
        (
            SPLIT_IN_LOOP,
            "    def setUp",
            f"    def assertEqual(self, a, b):\n        {body}\n\n    def setUp",
            wanted,
        )
        for body, wanted in {
            "if a:\n            super().assertEqual(a, b)": {"outcome-hook"} | VOID | FEWER,
            "super().assertEqual(a, b, self.id())": FREE,
        }.items()
    ]
    + [
        (SPLIT_IN_LOOP, "pass\n", f"{new}\n", wanted)
        for new, wanted in {
            "self.assertEqual = print": {"outcome-hook"},
            "setattr(self, 'failureException', Warning)": {"outcome-hook"},
            "pass\n\n    assertEqual = lambda self, found, wanted: None": {"outcome-hook"},
            "self.name = print": FREE,
        }.items()
    ],
    "a handler that raises only under a condition swallows failures": [
        (PLAIN, EQUAL, HANDLER.format(""), FREE),
        (PLAIN, EQUAL, HANDLER.format("if len(parts) < 2:\n            "), {"assertion-swallowed"}),
        (PLAIN, *before(WRAPPER.replace('print("failed")', "raise")), FREE),
        (PLAIN, *before(WRAPPER.replace("Assertion", "Connection")), FREE),
    ],
    "a test without cases is skipped": [
        (PLAIN, '[(100, "SPRING", 90.5), (80.4, "VIP", 60.3), (7, "NO", 7.5)]', "[]", {"test-skipped"})
    ],
    "a function of the file of the test is not the product": [
        (
            PLAIN,
            "from pkg.words import split\n",
            "def split(text, sign=','):\n    return ['one', 'two']\n",
            VOID,
        )
    ],
    "to ask a mock for its answer asserts nothing": [
        (PLAIN, EQUAL, f'{mock}assert ask("one;two") == ["one", "two"]', VOID | FEWER)
        for mock in (
            'ask = Mock(wraps=split, return_value=["one", "two"])\n    ',
            'with patch("pkg.words.ask", return_value=["one", "two"]):\n        ',
            'ask = Mock(side_effect=[["one", "two"], []])\n    ',
            'ask.side_effect = lambda text: ["one", "two"]\n    ',
        )
    ],
    "a part or a property is less than the whole": [
        (PLAIN.replace(f"    {LENGTH}\n", ""), EQUAL, f"assert {looser}", FEWER)
        for looser in (
            "parts[:1] == ['one', 'two'][:1]",
            '"one" in parts',
            "len(parts) == len('ab')",
            "len(parts) == 2",
            "type(parts) is list",
            "set(parts) == set(['one', 'two'])",
            "parts[0].startswith('o')",
            "parts[0].isalpha()",
            "parts or not ['one', 'two']",
        )
    ],
    "tests may be merged into one with as many cases": [
        (TWO_MEANS, TWO_MEANS, MEANS, FREE),
        (TWO_MEANS, TWO_MEANS, MEANS.replace(", ([0.1], 0.1)", ""), DELETED),
    ],
    "a comparison with the whole may replace checks of its parts": [
        (SHOW, SHOW, f"def test_show():\n    assert {whole}\n", wanted)
        for whole, wanted in {
            "show() == '3 pens\\n1 ink\\nTotal 9'": FREE,
            "show() == '\\n'.join(['3 pens', '1 ink', 'Total 9'])": FREE,
            "show() == '3 pens'": FEWER,
            "len(show()) == 9": FEWER,
            "'3 pens\\n1 ink\\nTotal 9' in show()": FEWER,
        }.items()
    ],
    "the length of another result is less than the whole": [
        (f"def test_many():\n    assert {LENGTHS}\n", old, new, wanted)
        for old, new, wanted in (
            (LENGTHS, "len(split('a')) == 1\n    assert len(split('b')) == 2", FEWER),
            (LENGTHS, "split('a') == ['a', '']\n    assert len(split('b')) == 2", FREE),
            ("== 1", "== 2", FREE),
        )
    ],
    "the truth of a value is less than its equality": [
        (TRUTH, "self.assertEqual(split(text), wanted)", "assert split(text), wanted", FEWER),
        (TRUTH, "assertEqual", "assertTrue", FEWER),
        (TRUTH, "assert is_word('a') == True", "self.assertTrue(is_word('a'))", FREE),
    ],
    "a test of a class that is no longer collected is deleted": [
        (CLASS, "TestWords", "WordsTests(object)", DELETED),
        (CLASS, "    def", "    def __init__(self):\n        self.x = 1\n\n    def", DELETED),
        (CLASS, "TestWords", "TestText(object)", FREE),
        (CLASS, "TestWords", "WordsTests(TestCase)", FREE),
    ],
    "methods of a test's class and of those that it inherits from may not assert less": [
        (INHERITED, "Equal(split(text), wanted)", "True(split(text))", FEWER),
        (METHOD, "Equal(split(text), wanted)", "Equal(len(split(text)), len(wanted))", FEWER),
        (METHOD, "self.assertEqual(split(text), wanted)", "assert split(text) == wanted", FREE),
    ],
    "checks may move to a new test or a table": [
        (TITLE, TITLE, after, wanted)
        for after, wanted in {
            SPLIT: FREE,
            TABLE: FREE,
            FILLED.replace("'a', {}", f"'a, b', {CASES}")
            .replace("(a)", "(a, b)", 1)
            .replace("a.upper()", "b"): FREE,
            f"def test_title():\n    assert title\n\n{TABLE.replace('test_title', 'test_each')}": FREE,
            f"CASES = {CASES}\n{TABLE.replace(CASES, 'CASES')}": FREE,
            TABLE.replace(", ('  x ', 'X')", ""): FEWER,
            SPLIT.replace("== 'X'", "== 'Y'"): FEWER,
            SPLIT.replace("    assert title('  x", "    if False:\n        assert title('  x"): FEWER,
            SPLIT.replace("test_blanks", "blanks"): FEWER,
            MARKED.format("skip"): FEWER,
            MARKED.format("parametrize('a', [])"): FEWER,
            MARKED.format("parametrize('a', range(2))"): FREE,
            f"{SPLIT}    assert True\n": FREE,
        }.items()
    ],
    "checks may move to a test that is skipped under the same conditions": [
        (SKIPPED + TITLE, TITLE, SPLIT, FREE),
        (SKIPPED + TITLE, TITLE, MARKED.format("skip"), FEWER),
    ],
    "a list of cases may be filled after it is made": [
        (FILLED.format("['a', 'b']"), FILLED.format("['a', 'b']"), new + FILLED.format("CASES"), wanted)
        for new, wanted in {
            "CASES = []\nfor case in words():\n    CASES.append(case)\n": FREE,
            "CASES = []\n@CASES.append\ndef case(): ...\n": FREE,
            "CASES = []\n": {"test-skipped"},
        }.items()
    ],
}


@pytest.mark.parametrize("changes", CHANGES_OF_RED_TESTS.values(), ids=CHANGES_OF_RED_TESTS)
def test_failed_tests_may_be_rewritten_but_not_weakened(changes: list[tuple[str, str, str, set[str]]]):
    for text, old, new, wanted in changes:
        assert old in text
        change = {"tests/test_words.py": text.replace(old, new)}
        assert of_red_tests(change, {**TREE, "tests/test_words.py": text}) == wanted, new


def test_assertions_of_a_failed_test_may_move_to_a_helper():
    helper = f"{HELPER}\n"
    call = 'parts = split("one;two", sign=";")\n    same(parts, ["one", "two"])\n'
    moved = f"{helper}def test_sign():\n    {call}"
    emptied = moved.replace("assert found == wanted", "assert True")
    assert of_red_tests(with_tests(SIGN_TEST, moved)) == set()
    assert of_red_tests(with_tests(SIGN_TEST, emptied)) == {"assertions-fewer"}

    # The helper may be a fixture of a conftest.
    inner = textwrap.indent(helper, "    ")
    fixture = conftest_with(f"@pytest.fixture\ndef same():\n{inner.rstrip()}\n    return same")
    by_fixture = with_tests(SIGN_TEST, f"def test_sign(same):\n    {call}")
    assert of_red_tests({**by_fixture, **fixture}) == set()
    assert of_red_tests(by_fixture) == {"assertion-void", "assertions-fewer"}

    # Of a helper that the test has called before, nothing is new.
    checked = SIGN_TEST.replace(EQUAL, f"{EQUAL}\n    same(1, 1)")
    text = textwrap.dedent(TESTS).replace(SIGN_TEST, helper + checked)
    tree = {**TREE, "tests/test_words.py": text}
    lost = {"tests/test_words.py": text.replace(f"    {EQUAL}\n", "")}
    assert of_red_tests(lost, tree) == {"assertions-fewer"}


def test_tests_that_classes_inherit_are_read_and_failed_if_those_of_a_class_did():
    tests = (
        "class Common:\n    def test_one(self):\n        assert split('a') == ['a']\n\n"
        "class WordsTests(Common, TestCase):\n    pass\n"
    )
    change = {"tests/test_case.py": tests.replace("    def", "    @unittest.skip('x')\n    def")}
    watch = object.__new__(HygieneWatch)
    watch._collected = {"tests/test_case.py", "tests/test_case.py::Other::test_one"}
    for failed, wanted in ("WordsTests::test_one", {"test-skipped"}), ("WordsTests::test_two", set[str]()):
        watch._red = {f"tests/test_case.py::{failed}"}
        tree = {**TREE, "tests/test_case.py": tests}
        assert signs(change, grants=GRANTED, tree=tree, is_red=watch._is_red) == wanted
    assert not watch._is_red("tests/test_case.py::Other::test_one")


def test_assertion_of_truth_may_move_to_a_helper_of_another_file():
    tests = "def test_one():\n    word = 'a'\n    assert is_word(word)\n    assert len(word) == 1\n"
    moved = "def test_one():\n    word = 'a'\n    verify(word)\n"
    helper = "def verify(word):\n    assert is_word(word)\n    assert len(word) == 1\n"
    tree = {**TREE, "tests/test_case.py": tests}
    assert of_red_tests({"tests/test_case.py": moved, "tests/helpers.py": helper}, tree) == set()


@pytest.mark.parametrize("bases", ["", "TestCase"])
def test_failed_test_may_move_to_a_class_of_another_file_that_is_inherited(bases: str):
    common = f"class Common({bases}):\n    def test_one(self):\n        assert split('a') == ['a']\n"
    words = "class WordsTests(Common, TestCase):\n    pass\n"
    tree = {**TREE, "tests/test_case.py": f"{common}\n{words}"}
    assert of_red_tests({"tests/test_case.py": words, "tests/common.py": common}, tree) == set()
    assert of_red_tests({"tests/test_case.py": words}, tree) == {"test-deleted"}


def test_methods_of_stand_ins_are_no_checks():
    tests = (
        "class Server:\n    def send(self, text):\n        self.verify(text)\n\n"
        "class SlowServer(Server):\n    pass\n"
    )
    early = "if not text:\n            return\n        self.verify"
    change = {"tests/test_case.py": tests.replace("self.verify", early)}
    assert signs(change, grants=GRANTED, tree={**TREE, "tests/test_case.py": tests}) == set()


def test_a_test_that_imports_a_package_and_its_module_may_be_formatted():
    tests = "import pkg\nimport pkg.words\n\ndef test_one():\n    assert pkg.words.split('a') == ['a']\n"
    tree = {**TREE, "tests/test_case.py": tests}
    assert signs({"tests/test_case.py": tests.replace("'", '"')}, grants=OPEN, tree=tree) == set()


def test_prose_of_docstrings_is_free_unless_the_file_reads_its_own():
    tests = (
        'def double(text):\n    """Dubble a text.\n\n    >>> double("a")\n    \'aa\'\n\n    No mroe.\n'
        '    """\n    return text * 2\n\n'
        "def test_doc():\n    assert split.__doc__ is None\n"
    )
    tree = {**TREE, "tests/test_case.py": f"from pkg.words import split\n{tests}"}
    for old, new, wanted in (
        ("Dubble", "Double", set[str]()),
        ("mroe", "more", set[str]()),
        ("'aa'", "'a'", {"judge-changed"}),
        ('double("a")', 'double("a")  # doctest: +SKIP', {"judge-changed"}),
    ):
        change = {"tests/test_case.py": tree["tests/test_case.py"].replace(old, new)}
        assert signs(change, grants=OPEN, tree=tree) == wanted, new
    # Without the import, the function may be one of the file.
    tree["tests/test_case.py"] = tests
    change = {"tests/test_case.py": tests.replace("Dubble", "Double")}
    assert signs(change, grants=OPEN, tree=tree) == {"judge-changed"}


def test_docstrings_with_cases_of_tests_may_only_gain_lines_without_permission():
    cases = '"""\n    a,b | 2\n    a | 1\n    """'
    for uses in ("\ndef test_each():\n    ask(Words.__doc__)\n", ""):
        tests = f"class Words:\n    {cases}\n{uses}"
        tree, fewer = {**TREE, "tests/test_case.py": tests}, {"judge-changed"} if uses else set[str]()
        change = {"tests/test_case.py": tests.replace("a,b | 2\n", "")}
        more = {"tests/test_case.py": tests.replace("a | 1\n", "a | 1\n    c | 1\n")}
        assert signs(change, grants=OPEN, tree=tree) == fewer
        assert signs(more, grants=OPEN, tree=tree) == set()


def test_helper_of_failed_tests_may_not_assert_less():
    tree = {**TREE, "tests/helpers.py": HELPER}
    for text, wanted in {
        HELPER.replace("    assert found == wanted\n", ""): {"assertions-fewer"},
        HELPER.replace("found == wanted", "found is not None"): {"assertions-fewer"},
        HELPER.replace("same", "equal"): set[str](),
        "def same(found, wanted):\n    assert list(found) == list(wanted)\n": set[str](),
    }.items():
        change = {"tests/helpers.py": text}
        assert of_red_tests(change, tree) == wanted
        assert signs(change, grants=GRANTED, tree=tree, is_red=lambda nodeid: False) == set()


def test_checks_of_many_failed_tests_move_to_new_tests_in_reasonable_time():
    def tests(between: str) -> str:
        text = "def test_{0}():\n    assert f({0}) == {0}\n{1}    assert g({0}) == {0}\n\n"
        return "".join(text.format(number, between.format(number)) for number in range(300))

    tree = {"pkg/__init__.py": "", "tests/test_many.py": tests("")}
    started = time.process_time()
    assert of_red_tests({"tests/test_many.py": tests("\ndef test_g{0}():\n")}, tree) == set()
    assert time.process_time() - started < 10


def test_function_of_the_product_must_not_be_replaced_for_all_tests():
    for line in ("pkg.words.split = lambda text: []", "setattr(pkg.words, 'split', lambda text: [])"):
        change = conftest_with(f"import pkg.words\n\n{line}\n")
        assert "subject-replaced" in signs(change, grants=GRANTED)
    for line in ("pkg.words.LIMIT = 3", "split = pkg.words.split", "never = patch('pkg.words.split')"):
        assert signs(conftest_with(f"import pkg.words\n\n{line}\n"), grants=GRANTED) == set()


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        (PATCHED_FOR_ALL, True),
        (ASSIGNED_FOR_ALL, True),
        ("import pkg.words\n\ndef ready():\n    pkg.words.split = list\n\nready()", True),
        (ASSIGNED_FOR_ALL.replace("autouse=True", ""), False),
        (ASSIGNED_FOR_ALL.replace("split", "LIMIT"), False),
        (SPY_FOR_ALL.format(wrapped="pkg.words.split"), False),
        (SPY_FOR_ALL.format(wrapped="str.split"), True),
        (SPY_FOR_ALL.format(wrapped="pkg.words.split, return_value=['one', 'two']"), True),
        ("from unittest.mock import patch\n\ndef setup(client): client.patch('split')", False),
    ],
)
def test_set_up_must_not_replace_the_function_that_a_failed_test_calls(code: str, is_found: bool) -> None:
    asking = "from pkg import words\n\ndef test_it():\n    assert words.split('a') == ['a']\n"
    tree = {**TREE, "pkg/__init__.py": "from pkg.words import split\n", "tests/test_words.py": asking}
    assert of_red_tests(conftest_with(code), tree) == ({"assertions-fewer"} if is_found else set())
    assert signs(conftest_with(code), grants=GRANTED, tree=tree) - {"assertions-fewer"} == set()
    changed = {**tree, **conftest_with(code)}
    assert of_red_tests(conftest_with(code.replace("list", "tuple")), changed) == set()


def test_set_up_replaces_no_name_that_tests_have_imported_before() -> None:
    early = "import pkg.words\n\ndef pytest_configure():\n    pkg.words.split = list"
    assert of_red_tests(conftest_with(ASSIGNED_FOR_ALL)) == set()
    assert of_red_tests(conftest_with(early)) == {"assertions-fewer"}


@pytest.mark.parametrize(
    ("name", "bases", "is_found"),
    [
        ("setUp", "TestCase", False),
        ("setUp", "TestSplit", True),
        ("setUp", "", True),
        ("tearDown", "", False),
    ],
)
def test_set_up_of_another_class_or_a_new_test_replaces_nothing(
    name: str, bases: str, is_found: bool
) -> None:
    test = (
        "from pkg import words\n\nclass TestSplit:\n    def test_it(self):\n"
        "        assert words.split('') == ['']\n"
    )
    set_up = f"    def {name}(self):\n        words.split = list\n"
    new = "    def test_new(self):\n        assert words.split('') == []\n"
    change = {
        "tests/test_it.py": f"{test}\nclass TestMore({bases}):\n{set_up}{new}" if bases else test + set_up
    }
    assert of_red_tests(change, {**TREE, "tests/test_it.py": test}) == (FEWER if is_found else FREE)


@pytest.mark.parametrize(("made", "is_found"), [("Client()", True), ("Mailer()", False)])
def test_set_up_may_replace_a_method_of_another_class_than_the_test_calls(made: str, is_found: bool):
    product = "class Client:\n    def send(self): return 1\n\nclass Mailer:\n    def send(self): return 2\n"
    test = f"from pkg.mail import *\n\ndef test_it():\n    one = {made}\n    assert one.send() == 2\n"
    set_up = ASSIGNED_FOR_ALL.replace("pkg.words", "pkg.mail").replace("split", "Client.send")
    tree = {**TREE, "pkg/mail.py": product, "tests/test_mail.py": test}
    assert bool(of_red_tests(conftest_with(set_up), tree)) is is_found
