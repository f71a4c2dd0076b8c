"""Changes of tests and other protected files: each loss is found, and harmless changes are not flagged."""

from __future__ import annotations

import textwrap

import pytest
from hygiene_samples import (
    CONFTEST,
    FORBIDDEN,
    GRANTED,
    OPEN,
    TESTS,
    TREE,
    held,
    signals,
    signs,
    with_tests,
)

from pytest_planverify.baseline.kinds import Judges
from pytest_planverify.guards.hygiene import compare, violations
from pytest_planverify.guards.hygiene.grants import Grants, TodoReach

SIGN_TEST = """def test_sign():
    parts = split("one;two", sign=";")
    assert parts == ["one", "two"]
    assert len(parts) == 2
"""
NEAR = "assert 0.1 + 0.2 == pytest.approx(0.3, abs=1e-9)"
EQUAL = 'assert parts == ["one", "two"]'

LOSSES = {
    "deleted": ("test-deleted", SIGN_TEST, ""),
    "renamed away": ("test-deleted", "def test_sign", "def _test_sign"),
    "renamed apart": ("test-deleted", "def test_sign", "def check_sign"),
    "hidden": ("assertion-void", NEAR, NEAR + "\n\ndef test_sign():\n    pass"),
    "deleted by name": ("test-deleted", NEAR, NEAR + "\n\ndel test_sign"),
    "told to be none": ("test-deleted", NEAR, NEAR + "\n\ntest_sign.__test__ = False"),
    "emptied": ("assertion-void", SIGN_TEST, "def test_sign():\n    split('one;two', sign=';')\n"),
    "skipped": ("test-skipped", "def test_sign", "@pytest.mark.skip(reason='later')\ndef test_sign"),
    "skipped by constant": (
        "test-skipped",
        "def test_sign",
        "@pytest.mark.skipif(1 == 1, reason='x')\ndef test_sign",
    ),
    "skipped by version": (
        "test-skipped",
        "def test_sign",
        "import sys\n@pytest.mark.skipif(sys.version_info >= (3, 6), reason='x')\ndef test_sign",
    ),
    "skipped inside": (
        "test-skipped",
        'parts = split("one;two"',
        'pytest.skip("no")\n    parts = split("one;two"',
    ),
    "skipped by unittest": (
        "test-skipped",
        'parts = split("one;two"',
        'import unittest\n    raise unittest.SkipTest("no")\n    parts = split("one;two"',
    ),
    "all skipped": ("test-skipped", "import pytest\n", "import pytest\npytestmark = pytest.mark.skip\n"),
    "module skipped": (
        "test-skipped",
        "import pytest\n",
        "import pytest\npytest.skip('no', allow_module_level=True)\n",
    ),
    "xfailed": ("test-xfailed", "def test_sign", "@pytest.mark.xfail\ndef test_sign"),
    "assertion removed": ("assertions-fewer", "    assert len(parts) == 2\n", ""),
    "assertion turned round": ("assertion-lost", EQUAL, 'assert parts != ["one", "two"]'),
    "assertion on presence": ("assertion-lost", EQUAL, "assert parts is not None"),
    "assertion on kind": ("assertion-lost", EQUAL, "assert isinstance(parts, list)"),
    "assertion on truth": ("assertion-lost", EQUAL, "assert parts"),
    "assertion within": ("assertion-lost", "assert len(parts) == 2", "assert len(parts) in (1, 2, 3)"),
    "assertion at least": ("assertion-lost", "assert len(parts) == 2", "assert len(parts) >= 1"),
    "or true": ("assertion-void", EQUAL, EQUAL + " or True"),
    "in a dead branch": ("assertion-void", EQUAL, "if False:\n        " + EQUAL),
    "in a loop over nothing": ("assertion-void", EQUAL, "for _ in ():\n        " + EQUAL),
    "after a return in a block": (
        "assertion-void",
        EQUAL,
        "with open(__file__):\n        return\n        " + EQUAL,
    ),
    "for type checkers": (
        "assertion-void",
        EQUAL,
        "from typing import TYPE_CHECKING\n    if TYPE_CHECKING:\n        " + EQUAL,
    ),
    "a lambda": ("assertion-void", EQUAL, 'same = lambda: parts == ["one", "two"]\n    assert same'),
    "a generator": ("assertion-void", EQUAL, 'assert (each == "one" for each in parts)'),
    "a tuple": ("assertion-void", EQUAL, 'assert (parts == ["one", "two"], "no")'),
    "itself": ("assertion-void", EQUAL, "assert parts == parts"),
    "under a condition": ("judge-changed", EQUAL, "if len(parts) == 2:\n        " + EQUAL),
    "wider": ("assertion-lost", "abs=1e-9", "abs=10"),
    "any exception": ("assertion-lost", "raises(AttributeError", "raises(Exception"),
    "any message": ("assertion-lost", ', match="NoneType"', ""),
    "early return": (
        "assertion-void",
        '    assert parts == ["one"',
        '    return\n    assert parts == ["one"',
    ),
    "early return if": (
        "judge-changed",
        '    assert parts == ["one"',
        '    if parts != []:\n        return\n    assert parts == ["one"',
    ),
    "swallowed": (
        "assertion-swallowed",
        "    " + EQUAL + "\n",
        "    try:\n        " + EQUAL + "\n    except AssertionError:\n        pass\n",
    ),
    "suppressed": (
        "assertion-swallowed",
        "    " + EQUAL + "\n",
        "    import contextlib\n    with contextlib.suppress(Exception):\n        " + EQUAL + "\n",
    ),
    "another value": ("assertion-lost", EQUAL, 'assert parts == ["one;two"]'),
    "case removed": ("judge-changed", ', ("x,y,z", ["x", "y", "z"])', ""),
    "case changed": ("judge-changed", '("a, b", ["a", "b"])', '("a, b", ["a, b"])'),
    "mocked": (
        "judge-changed",
        'parts = split("one;two"',
        'monkeypatch.setattr("pkg.words.split", lambda *a, **k: ["one", "two"])\n    parts = '
        'split("one;two"',
    ),
    "redefined": (
        "judge-changed",
        "from pkg.words import split\n",
        "from pkg.words import split\n\ndef split(text, sign=','):\n    return ['one', 'two']\n",
    ),
    "own conftest values": (
        "outcome-hook",
        NEAR,
        NEAR + "\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0",
    ),
}

HARMLESS = {
    "comments": ("def test_sign", "# of signs\ndef test_sign"),
    "quotes": ('"one;two"', "'one;two'"),
    "docstrings": ("def test_sign():", 'def test_sign():\n    """Signs."""'),
    "annotations": ("def test_sign():", "def test_sign() -> None:"),
    "order of imports": (
        "import pytest\nfrom pkg.words import split",
        "from pkg.words import split\nimport pytest",
    ),
    "a new test": (NEAR, NEAR + "\n\ndef test_more():\n    assert split('q') == ['q']"),
    "a new fixture": (NEAR, NEAR + "\n\n@pytest.fixture\ndef text():\n    return 'q'"),
    "an import and a constant": (NEAR, NEAR + "\n\nimport json\nWORDS = ['q']"),
}

REFACTORED = {
    "renamed": ("def test_sign", "def test_another_sign"),
    "with another variable": (
        SIGN_TEST,
        'def test_sign():\n    found = split("one;two", sign=";")\n    assert found == ["one", '
        '"two"]\n    assert len(found) == 2\n',
    ),
    "in two": (
        SIGN_TEST,
        'def test_sign():\n    assert split("one;two", sign=";") == ["one", "two"]\n\n'
        'def test_sign_count():\n    assert len(split("one;two", sign=";")) == 2\n',
    ),
    "stronger": ("assert len(parts) == 2", "assert len(parts) == 2\n    assert parts[0] == 'one'"),
    "of a thing with itself": (
        "assert len(parts) == 2",
        "assert len(parts) == 2\n    assert parts == parts",
    ),
    "to a helper": (
        SIGN_TEST,
        "def same(found, wanted):\n    assert found == wanted\n    assert len(found) == len(wanted)\n\n"
        'def test_sign():\n    parts = split("one;two", sign=";")\n    same(parts, ["one", "two"])\n'
        "    assert len(parts) == 2\n",
    ),
    "skipped elsewhere": (
        "def test_sign",
        "import sys\n@pytest.mark.skipif(sys.platform == 'win32', reason='x')\ndef test_sign",
    ),
    "a new xfail": (
        NEAR,
        NEAR + "\n\n@pytest.mark.xfail(strict=True)\ndef test_gap():\n    assert split(1) == [1]",
    ),
    "expected to fail elsewhere": (
        "def test_sign",
        "@pytest.mark.xfail(False, reason='x')\n@pytest.mark.skipif(False, reason='x')\ndef test_sign",
    ),
    "an environment for all": (
        NEAR,
        NEAR
        + "\n\n@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n    monkeypatch.setenv('A', 'b')",
    ),
    "an object of its own": (
        NEAR,
        NEAR + "\n\nclass Box:\n    pass\n\n"
        "@pytest.fixture(autouse=True)\ndef quiet():\n    box = Box()\n    box.x = 1\n    yield",
    ),
    "a skip without a library": (
        "def test_sign",
        "def test_other():\n    pytest.importorskip('numpy')\n    assert split('z') == ['z']\n\n\n"
        "def test_sign",
    ),
    "more cases": ('("", [""])', '("", [""]), ("q", ["q"])'),
    "cases in a constant": (
        '[("a, b", ["a", "b"]), ("", [""]), ("x,y,z", ["x", "y", "z"])],\n)',
        "CASES,\n)",
    ),
    "a collaborator mocked": (
        NEAR,
        NEAR + "\n\ndef test_time(monkeypatch):\n    import time\n    monkeypatch.setattr(time, 'time', "
        "lambda: 1)\n    assert time.time() == 1",
    ),
}

HOOKS = {
    "report": (
        "outcome-hook",
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n    report = yield\n"
        "    report.outcome = 'passed'\n    return report",
    ),
    "report by setattr": (
        "outcome-hook",
        "def pytest_runtest_logreport(report):\n    setattr(report, 'outcome', 'passed')",
    ),
    "forced": (
        "outcome-hook",
        "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_call(item):\n    o = yield\n    "
        "o.force_result(None)",
    ),
    "swallowed": ("outcome-hook", "def pytest_pyfunc_call(pyfuncitem):\n    return True"),
    "exit": ("outcome-hook", "import os\ndef pytest_unconfigure(config):\n    os._exit(0)"),
    "status": ("outcome-hook", "def pytest_report_teststatus(report):\n    return 'passed', '.', 'PASSED'"),
    "dropped": ("outcome-hook", "def pytest_collection_modifyitems(items):\n    del items[1:]"),
    "filtered": (
        "outcome-hook",
        "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'sign' not "
        "in i.name]",
    ),
    "skipped": (
        "outcome-hook",
        "def pytest_collection_modifyitems(items):\n    for i in items:\n        "
        "i.add_marker(pytest.mark.skip)",
    ),
    "ignored": ("outcome-hook", "def pytest_ignore_collect(collection_path):\n    return True"),
    "ignored by list": ("test-deselected", "collect_ignore = ['test_words.py']"),
    "ignored by glob": ("test-deselected", "collect_ignore_glob = ['test_*']"),
    "by another name": (
        "outcome-hook",
        "@pytest.hookimpl(specname='pytest_sessionfinish')\ndef end(session):\n    session.exitstatus = 0",
    ),
    "by a class": (
        "outcome-hook",
        "class Plugin:\n    def pytest_runtest_logreport(self, report):\n        report.outcome = 'passed'",
    ),
    "skipped by a name": (
        "outcome-hook",
        "def pytest_collection_modifyitems(items):\n    mark = pytest.mark.skip(reason='x')\n"
        "    for i in items:\n        i.add_marker(mark)",
    ),
    "replaced report": (
        "outcome-hook",
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n    try:\n"
        "        return (yield)\n    except Exception:\n        return None",
    ),
    "suppressed": (
        "outcome-hook",
        "import contextlib\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_call(item):\n"
        "    with contextlib.suppress(AssertionError):\n        yield",
    ),
    "loop": ("outcome-hook", "def pytest_runtestloop(session):\n    return True"),
    "nothing made": ("outcome-hook", "def pytest_pycollect_makeitem(name):\n    return []"),
    "told of": (
        "outcome-hook",
        "def pytest_collection_modifyitems(config, items):\n    config.hook.pytest_deselected(items=items)",
    ),
    "removed": ("outcome-hook", "def pytest_collection_modifyitems(items):\n    items.clear()"),
    "added to a list": ("test-deselected", "collect_ignore = []\ncollect_ignore.append('test_words.py')"),
    "exit at import": ("exit", "import os\nos._exit(0)"),
    "patched for all": (
        "fixture-overridden",
        "@pytest.fixture(autouse=True)\ndef _all(monkeypatch):\n    "
        "monkeypatch.setattr('pkg.words.split', list)",
    ),
}

ALL_PERMISSIONS = pytest.mark.parametrize(
    "grants", [FORBIDDEN, GRANTED, OPEN], ids=["forbidden", "granted", "open"]
)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("grants", [FORBIDDEN, OPEN], ids=["forbidden", "by default"])
def test_weakened_tests_are_found_without_permission(name: str, grants: Grants) -> None:
    sign, old, new = LOSSES[name]
    assert sign in signs(with_tests(old, new), grants=grants)


@pytest.mark.parametrize("name", HARMLESS)
@ALL_PERMISSIONS
def test_harmless_test_changes_need_no_permission(name: str, grants: Grants) -> None:
    assert signals(with_tests(*HARMLESS[name]), grants=grants) == ()


@pytest.mark.parametrize("name", REFACTORED)
def test_permitted_todo_may_refactor_tests(name: str) -> None:
    assert signals(with_tests(*REFACTORED[name]), grants=GRANTED) == ()


@pytest.mark.parametrize("name", HOOKS)
@ALL_PERMISSIONS
def test_conftest_that_changes_outcomes_is_found_despite_permission(name: str, grants: Grants) -> None:
    sign, code = HOOKS[name]
    if name == "patched for all" and grants is GRANTED:
        return  # it affects only tests that may also be changed
    assert sign in signs(
        {"tests/conftest.py": textwrap.dedent(CONFTEST) + "\n\n" + code + "\n"}, grants=grants
    )


def test_observing_hooks_are_allowed_with_permission() -> None:
    code = textwrap.dedent(CONFTEST) + textwrap.dedent("""
        def pytest_addoption(parser):
            parser.addoption("--slow", action="store_true")

        def pytest_configure(config):
            config.addinivalue_line("markers", "slow: takes long")

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
        """)
    assert signals({"tests/conftest.py": code}, grants=GRANTED) == ()


def test_fixture_that_overrides_one_of_protected_tests_is_found() -> None:
    grants = Grants(todos=(TodoReach(todo_id="work", allowed_files=("tests/unit/conftest.py",)),))
    tree = {**TREE, "tests/unit/test_more.py": "def test_words(words):\n    assert words\n"}
    code = "import pytest\n\n@pytest.fixture\ndef words():\n    return ['a', 'b']\n"
    assert signs({"tests/unit/conftest.py": code}, grants=grants, tree=tree) == {"fixture-overridden"}


@pytest.mark.parametrize("name", ["deleted", "skipped", "xfailed", "assertion removed"])
def test_red_test_may_be_edited_but_not_removed_by_a_permitted_todo(name: str) -> None:
    red = "tests/test_words.py::test_sign"

    def told(change: dict[str, str | None]) -> list[str]:
        tree = held(TREE)
        now = held({path: text for path, text in {**TREE, **change}.items() if text is not None})
        kinds = {path: Judges().kind_of(path) for path in TREE}
        found = compare(tree, now, kinds=kinds, grants=GRANTED, is_red=red.__eq__)
        return [each.sign for each in found]

    sign, old, new = LOSSES[name]
    assert told(with_tests(old, new)) == [sign]
    assert told(with_tests('["one", "two"]', '["one", "three"]')) == []
    assert signals(with_tests(old, new), grants=GRANTED) == ()


def test_removed_test_file_is_found_but_not_a_moved_one() -> None:
    text = textwrap.dedent(TESTS)
    gone: dict[str, str | None] = {"tests/test_words.py": None}
    assert "judge-removed" in signs(gone, grants=OPEN)
    assert signs({**gone, "tests/unit/test_words.py": text}, grants=OPEN) == set()
    assert signs({**gone, "tests/unit/words.py": text}, grants=GRANTED) == set()


def test_changed_data_is_found_but_reformatted_data_is_not() -> None:
    path = "tests/data/words.json"
    assert signs({path: '[{"count": 2, "text": "Hello, World"}]\n'}) == set()
    assert signs({path: '[{"text": "Hello, World", "count": 3}]'}, grants=OPEN) == {"data-changed"}
    more = '[{"text": "Hello, World", "count": 2}, {"text": "x", "count": 1}]'
    assert signs({path: more}, grants=OPEN) == set()


def test_unparsable_test_file_is_a_signal() -> None:
    assert "judge-unreadable" in signs({"tests/test_words.py": "def test_(:\n"})


def test_unusual_valid_sources_are_compared() -> None:
    deep = "assert " + "+".join(["1"] * 800) + "\n"
    odd = "\x0cdef test_odd():\n    " + deep
    tree = {**TREE, "tests/test_odd.py": odd}
    assert signs({"tests/test_odd.py": "# -*- coding: utf-8 -*-\n" + odd}, tree=tree) == set()
    emptied = {"tests/test_odd.py": "def test_odd():\n    pass\n"}
    assert "assertion-void" in signs(emptied, tree=tree)


def test_accepted_change_is_not_a_signal() -> None:
    now = {**TREE, **{path: text or "" for path, text in with_tests(EQUAL, "assert parts").items()}}
    before, after = held(TREE), held(now)
    digest = after.digests()["tests/test_words.py"]
    kinds = {path: Judges().kind_of(path) for path in TREE}
    assert compare(before, after, kinds=kinds, grants=FORBIDDEN)
    assert not compare(
        before, after, kinds=kinds, grants=FORBIDDEN, accepted=lambda path, held: held == digest
    )


def test_signal_is_attributed_to_the_affected_todo() -> None:
    grants = Grants(
        todos=(
            TodoReach(todo_id="code", allowed_files=("pkg/**",), selections=("tests/test_words.py",)),
            TodoReach(todo_id="other", allowed_files=("docs/**",), selections=("tests/test_other.py",)),
        )
    )
    changed = signals(with_tests(EQUAL, "assert parts"), grants=grants)
    tricks = signals({"pkg/words.py": "import os\n\ndef split(text):\n    os._exit(0)\n"}, grants=grants)
    for found in (changed, tricks):
        told = violations(found, grants=grants, passed={"code", "other"})
        assert [each.todo_id for each in told] == ["code"]
    (violation,) = violations(changed, grants=grants, passed=(), present={"code"})
    assert violation.evidence.headline == "test_sign asserts something else (tests/test_words.py:12)"
