"""Changes of what judges: each loss is found by what was lost, and what loses nothing is let be."""

from __future__ import annotations

import textwrap

import pytest
from hygiene_samples import (
    CONFTEST,
    FORBIDDEN,
    GRANTED,
    OPEN,
    TESTS,
    is_flagged,
    signals,
    signs,
    with_tests,
)

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
    "renamed away": ("test-renamed-away", "def test_sign", "def _test_sign"),
    "renamed apart": ("test-renamed-away", "def test_sign", "def check_sign"),
    "hidden": ("test-emptied", NEAR, NEAR + "\n\ndef test_sign():\n    pass"),
    "deleted by name": ("test-renamed-away", NEAR, NEAR + "\n\ndel test_sign"),
    "told to be none": ("test-renamed-away", NEAR, NEAR + "\n\ntest_sign.__test__ = False"),
    "emptied": ("test-emptied", SIGN_TEST, "def test_sign():\n    split('one;two', sign=';')\n"),
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
    "assertion removed": ("assertion-removed", "    assert len(parts) == 2\n", ""),
    "assertion turned round": ("assertion-weakened", EQUAL, 'assert parts != ["one", "two"]'),
    "assertion on presence": ("assertion-weakened", EQUAL, "assert parts is not None"),
    "assertion on kind": ("assertion-weakened", EQUAL, "assert isinstance(parts, list)"),
    "assertion on truth": ("assertion-weakened", EQUAL, "assert parts"),
    "assertion within": ("assertion-weakened", "assert len(parts) == 2", "assert len(parts) in (1, 2, 3)"),
    "assertion at least": ("assertion-weakened", "assert len(parts) == 2", "assert len(parts) >= 1"),
    "or true": ("assertion-always-true", EQUAL, EQUAL + " or True"),
    "a tuple": ("assertion-always-true", EQUAL, 'assert (parts == ["one", "two"], "no")'),
    "itself": ("assertion-always-true", EQUAL, "assert parts == parts"),
    "under a condition": ("assertion-weakened", EQUAL, "if len(parts) == 2:\n        " + EQUAL),
    "wider": ("assertion-weakened", "abs=1e-9", "abs=10"),
    "any exception": ("assertion-weakened", "raises(AttributeError", "raises(Exception"),
    "any message": ("assertion-weakened", ', match="NoneType"', ""),
    "early return": (
        "assertion-unreachable",
        '    assert parts == ["one"',
        '    return\n    assert parts == ["one"',
    ),
    "early return if": (
        "assertion-unreachable",
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
    "another value": ("expected-changed", EQUAL, 'assert parts == ["one;two"]'),
    "case removed": ("cases-removed", ', ("x,y,z", ["x", "y", "z"])', ""),
    "case changed": ("expected-changed", '("a, b", ["a", "b"])', '("a, b", ["a, b"])'),
    "mocked": (
        "product-mocked",
        'parts = split("one;two"',
        'monkeypatch.setattr("pkg.words.split", lambda *a, **k: ["one", "two"])\n    parts = '
        'split("one;two"',
    ),
    "redefined": (
        "product-replaced",
        "from pkg.words import split\n",
        "from pkg.words import split\n\ndef split(text, sign=','):\n    return ['one', 'two']\n",
    ),
    "own conftest values": (
        "outcome-hook",
        NEAR,
        NEAR + "\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0",
    ),
}

MORE_LOSSES = {
    "marked by a list": (
        "test-skipped",
        "import pytest\n",
        "import pytest\npytestmark = [pytest.mark.skip('x')]\n",
    ),
    "skipped by text": (
        "test-skipped",
        "def test_sign",
        "@pytest.mark.skipif('1 == 1', reason='x')\ndef test_sign",
    ),
    "xfailed inside": (
        "test-xfailed",
        'parts = split("one;two"',
        'pytest.xfail("no")\n    parts = split("one;two"',
    ),
    "skipped where it fails": (
        "test-skipped",
        "    " + EQUAL + "\n",
        "    try:\n        " + EQUAL + "\n    except AssertionError:\n        pytest.skip('x')\n",
    ),
    "skipped if true": (
        "test-skipped",
        'parts = split("one;two"',
        'if True:\n        pytest.skip("no")\n    parts = split("one;two"',
    ),
    "from fakes": (
        "product-mocked",
        "from pkg.words import split\n",
        "from tests.fake_words import split\n",
    ),
    "bound anew": (
        "product-replaced",
        "from pkg.words import split\n",
        "from pkg.words import split\nsplit = list\n",
    ),
    "patched by setattr": (
        "product-replaced",
        "from pkg.words import split\n",
        "from pkg.words import split\nsetattr(split, '__code__', list)\n",
    ),
    "patched by decorator": (
        "product-mocked",
        "def test_sign(",
        "from unittest import mock\n\n@mock.patch('pkg.words.split')\ndef test_sign(",
    ),
    "no loop": (
        "assertion-unreachable",
        "    " + EQUAL + "\n    assert len(parts) == 2\n",
        "    for _ in []:\n        " + EQUAL + "\n        assert len(parts) == 2\n",
    ),
    "false branch": (
        "assertion-unreachable",
        "    " + EQUAL + "\n    assert len(parts) == 2\n",
        "    while False:\n        " + EQUAL + "\n        assert len(parts) == 2\n",
    ),
    "returned at last": (
        "assertion-swallowed",
        "    " + EQUAL + "\n",
        "    try:\n        " + EQUAL + "\n    finally:\n        return\n",
    ),
    "hidden by an import": ("test-renamed-away", NEAR, NEAR + "\n\nfrom other import test_sign"),
    "bound to nothing": ("test-renamed-away", NEAR, NEAR + "\n\ntest_sign = None"),
    "a fixture by name": (
        "fixture-overridden",
        NEAR,
        NEAR + "\n\n@pytest.fixture(name='words')\ndef w():\n    return []",
    ),
    "assigned for all": (
        "autouse-patch",
        NEAR,
        NEAR + "\n\n@pytest.fixture(autouse=True)\ndef all_():\n    import pkg.words\n    "
        "pkg.words.split = list\n",
    ),
    "plugins": ("plugin-added", NEAR, NEAR + "\n\npytest_plugins = ['shim']"),
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
    "dropped": ("test-deselected", "def pytest_collection_modifyitems(items):\n    del items[1:]"),
    "filtered": (
        "test-deselected",
        "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'sign' not "
        "in i.name]",
    ),
    "skipped": (
        "test-deselected",
        "def pytest_collection_modifyitems(items):\n    for i in items:\n        "
        "i.add_marker(pytest.mark.skip)",
    ),
    "ignored": ("test-deselected", "def pytest_ignore_collect(collection_path):\n    return True"),
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
        "test-deselected",
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
    "nothing made": ("test-deselected", "def pytest_pycollect_makeitem(name):\n    return []"),
    "told of": (
        "test-deselected",
        "def pytest_collection_modifyitems(config, items):\n    config.hook.pytest_deselected(items=items)",
    ),
    "removed": ("test-deselected", "def pytest_collection_modifyitems(items):\n    items.clear()"),
    "added to a list": ("test-deselected", "collect_ignore = []\ncollect_ignore.append('test_words.py')"),
    "setup": ("hook-added", "def pytest_runtest_setup(item):\n    pytest.skip('x')"),
    "protocol": ("hook-added", "def pytest_runtest_protocol(item, nextitem):\n    print(item)"),
    "exit at import": ("exit", "import os\nos._exit(0)"),
    "builtins": ("patches-judge", "import builtins\nbuiltins.sum = lambda x: 1"),
    "overridden": ("fixture-overridden", "@pytest.fixture\ndef tmp_path():\n    return 1"),
    "patched for all": (
        "autouse-patch",
        "@pytest.fixture(autouse=True)\ndef _all(monkeypatch):\n    "
        "monkeypatch.setattr('pkg.words.split', list)",
    ),
    "assigned": ("product-replaced", "import pkg.words\npkg.words.split = list"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_found_where_nobody_may_change_the_tests(name: str) -> None:
    sign, old, new = LOSSES[name]
    found = signals(with_tests(old, new))
    assert (sign, "hard") in {(each.sign, each.hardness) for each in found}, found


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_found_where_no_allowlist_speaks_of_the_tests(name: str) -> None:
    sign, old, new = LOSSES[name]
    found = signals(with_tests(old, new), grants=OPEN)
    assert (sign, "hard") in {(each.sign, each.hardness) for each in found}, found


@pytest.mark.parametrize("name", MORE_LOSSES)
def test_a_loss_in_another_spelling_is_found(name: str) -> None:
    sign, old, new = MORE_LOSSES[name]
    found = signals(with_tests(old, new))
    assert (sign, "hard") in {(each.sign, each.hardness) for each in found}, found


@pytest.mark.parametrize("name", HARMLESS)
def test_what_takes_nothing_away_needs_no_leave(name: str) -> None:
    old, new = HARMLESS[name]
    assert signals(with_tests(old, new)) == ()


@pytest.mark.parametrize("name", [*HARMLESS, *REFACTORED])
@pytest.mark.parametrize("grants", [GRANTED, OPEN], ids=["granted", "open"])
def test_who_may_change_the_tests_may_refactor_them(name: str, grants: Grants) -> None:
    old, new = {**HARMLESS, **REFACTORED}[name]
    change = with_tests(old, new)
    if name == "cases in a constant":
        constant = 'CASES = [("x,y,z", ["x", "y", "z"]), ("a, b", ["a", "b"]), ("", [""])]\n\n'
        text = change["tests/test_words.py"] or ""
        change = {
            "tests/test_words.py": text.replace("@pytest.mark.param", constant + "@pytest.mark.param")
        }
    assert not is_flagged(change, grants=grants), signals(change, grants=grants)


@pytest.mark.parametrize(
    "name", sorted(set(REFACTORED) - {"a new xfail", "a collaborator mocked", "a skip without a library"})
)
def test_who_may_not_change_the_tests_may_not_refactor_them(name: str) -> None:
    assert is_flagged(with_tests(*REFACTORED[name]))


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("grants", [FORBIDDEN, GRANTED, OPEN], ids=["forbidden", "granted", "open"])
def test_a_conftest_that_decides_is_found_whoever_may_write_it(name: str, grants: Grants) -> None:
    sign, code = HOOKS[name]
    change: dict[str, str | None] = {"tests/conftest.py": textwrap.dedent(CONFTEST) + "\n\n" + code}
    if sign == "hook-added":
        assert is_flagged(change, grants=grants) is (grants is FORBIDDEN)
        return
    assert sign in signs(change, grants=grants), signals(change, grants=grants)
    if grants is not GRANTED or sign in ("outcome-hook", "test-deselected", "exit", "patches-judge"):
        assert is_flagged(change, grants=grants), signals(change, grants=grants)


def test_hooks_that_only_look_are_let_be_where_the_conftest_may_be_changed() -> None:
    code = """
        def pytest_addoption(parser):
            parser.addoption("--slow", action="store_true")

        def pytest_configure(config):
            config.addinivalue_line("markers", "slow: takes long")

        def pytest_collection_modifyitems(config, items):
            if not config.getoption("--slow"):
                for item in items:
                    if "slow" in item.keywords:
                        item.add_marker(pytest.mark.skip(reason="needs --slow"))

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            item.report = report
            return report
    """
    change: dict[str, str | None] = {"tests/conftest.py": textwrap.dedent(CONFTEST) + textwrap.dedent(code)}
    assert not is_flagged(change, grants=GRANTED)
    assert is_flagged(change)


def test_a_file_of_tests_that_is_gone_or_moved_out_of_reach_is_missed() -> None:
    text = textwrap.dedent(TESTS)
    assert signs({"tests/test_words.py": None}) >= {"test-deleted"}
    assert is_flagged({"tests/test_words.py": None, "tests/old_words.py": text})
    assert signs({"tests/test_words.py": None, "tests/test_moved.py": text}) == {"judge-moved-away"}
    assert signs({"tests/test_words.py": None, "tests/test_moved.py": text}, grants=GRANTED) == set()


def test_other_inputs_are_a_soft_sign_where_tests_may_be_changed_at_all() -> None:
    change = with_tests('split("one;two", sign=";")', 'split("uno;dos", sign=";")')
    assert {each.sign: each.hardness.value for each in signals(change)} == {
        "expected-changed": "soft",
        "judge-changed": "hard",
    }
    assert [each.hardness.value for each in signals(change, grants=OPEN)] == ["soft"]
    assert signals(change, grants=GRANTED) == ()


def test_data_that_says_something_else_is_a_sign_and_data_that_says_the_same_is_none() -> None:
    path = "tests/data/words.json"
    assert signs({path: '[\n {"count": 2, "text": "Hello, World"}\n]'}) == set()
    assert signs({path: '[{"text": "Hello, World", "count": 3}]'}) == {"data-changed"}
    assert signs({path: None}) == {"judge-removed"}
    longer = '[{"text": "Hello, World", "count": 2}, {"text": "q", "count": 1}]'
    assert signs({path: longer}) == {"data-changed"}
    assert signs({path: longer}, grants=GRANTED) == set()
    assert signs({"tests/data/more.json": "[]"}) == set()


def test_a_judge_that_cannot_be_parsed_is_no_judge() -> None:
    assert "judge-unreadable" in signs({"tests/test_words.py": "def test_sign(:\n"})


def test_one_soft_sign_is_no_violation_and_two_are() -> None:
    one: dict[str, str | None] = {"pkg/a.py": "import atexit\ndef close(): pass\natexit.register(close)\n"}
    assert not is_flagged(one)
    assert is_flagged({**one, "pkg/b.py.orig": "x"})


def test_what_a_person_has_accepted_is_no_change() -> None:
    from hashlib import sha256

    from hygiene_samples import TREE, held

    from pytest_planverify.guards.hygiene import compare

    change = with_tests(SIGN_TEST, "")
    now = held({**TREE, **{path: text or "" for path, text in change.items()}})
    blessed = sha256(now.read("tests/test_words.py") or b"").hexdigest()
    for digest, expected in ((blessed, ()), ("0" * 64, ("test-deleted",))):
        found = compare(
            held(TREE),
            now,
            kinds={},
            grants=FORBIDDEN,
            accepted=lambda path, sha, digest=digest: (path, sha) == ("tests/test_words.py", digest),
        )
        assert tuple(each.sign for each in found) == expected


def test_a_sign_is_held_against_whom_it_concerns() -> None:
    from pytest_planverify.guards.hygiene import violations

    grants = Grants(
        todos=(
            TodoReach(todo_id="work", allowed_files=("pkg/**",), selections=("tests/test_words.py",)),
            TodoReach(todo_id="other", allowed_files=("lib/**",), selections=("tests/test_other.py",)),
        )
    )
    everybody = ("work", "other")

    def blamed(change: dict[str, str | None], present: tuple[str, ...] = everybody) -> list[str]:
        found = violations(signals(change, grants=grants), grants=grants, passed=present, present=present)
        return [each.todo_id for each in found]

    trick = "import os\ndef f():\n    os._exit(0)\n"
    assert blamed(with_tests(SIGN_TEST, "")) == ["work"]
    assert blamed({"pkg/new.py": trick}) == ["work"]
    assert blamed({"lib/new.py": trick}) == ["other"]
    assert blamed({"elsewhere.py": trick}) == ["work", "other"]
    assert blamed({"lib/new.py": trick}, present=("work",)) == ["work"]
    assert blamed(with_tests(SIGN_TEST, ""), present=("other",)) == []
