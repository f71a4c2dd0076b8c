"""Signatures: equal for one root cause despite other numbers, lines or folders; different otherwise."""

from typing import Any

import pytest
from diagnosis_samples import error, failed, frame
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.evidence import Evidence, Frame
from planner.model.taxonomy import Category
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis import signature
from pytest_planverify.diagnosis.signatures import mask

TOTAL = frame("shop/cart.py", "total")


def _of(message: str, raised_at: Frame = TOTAL) -> str:
    """Return the signature of a test that failed with this message."""
    return signature(failed(error("ValueError", message, raised_at)), Category.TEST_REGRESSION)


IGNORED = {
    "numbers": ("assert {} == 1", st.integers() | st.floats()),
    "quoted strings": ("bad name {!r} here", st.text()),
    "uuids": ("job {} failed", st.uuids()),
    "timestamps": ("seen at {} again", st.datetimes()),
    "addresses": ("<Cart object at {:#x}> is bad", st.integers(0, 2**64)),
}


@pytest.mark.parametrize(("message", "values"), IGNORED.values(), ids=IGNORED)
@settings(max_examples=15)
@given(data=st.data())
def test_signature_ignores_values(message: str, values: st.SearchStrategy[object], data: st.DataObject):
    one, other = data.draw(values), data.draw(values)
    assert _of(message.format(one)) == _of(message.format(other))


@given(st.permutations(["None", "1", "True", "'x'"]))
def test_signature_ignores_the_order_of_a_set(members: list[str]):
    assert _of(f"assert {{{', '.join(members)}}} == 1") == _of("assert {None, 1, True, 'x'} == 1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no file /home/a/p/x.txt", "no file /tmp/b/q/r/y.txt"),
        (r"no file C:\users\a\x.txt", r"no file D:\b\y.txt"),
        ("Timeout (>0.2s) after 5ms", "Timeout (>10.0s) after 70ms"),
        ("commit 1a2b3c4d5e failed", "commit ff00ff00aa failed"),
        ("assert [1, 2, 3] == [1]", "assert [4] == [5, 6]"),
    ],
)
def test_signature_ignores_paths_digests_and_durations(one: str, other: str):
    assert _of(one) == _of(other)


def test_signature_ignores_folder_and_line_but_not_file_function_and_words():
    known = _of("no", frame("/a/shop/cart.py", "total"))
    assert _of("no", frame("/b/c/shop/cart.py", "total", line=9)) == known
    assert _of("no", frame("shop/basket.py", "total")) != known
    assert _of("no", frame("shop/cart.py", "price")) != known
    assert _of("yes") != known


def test_signature_keeps_words():
    assert mask("cannot parse item2 of can't-stop") == "cannot parse item2 of can't-stop"


def test_signature_depends_on_the_category():
    failure = failed(error("ValueError", "no", TOTAL))
    assert signature(failure, Category.TEST_REGRESSION) != signature(failure, Category.TYPE_ERROR)


def _does_not_parse(path: str, *importers: str) -> str:
    frames = (frame(each, "<module>") for each in importers)
    raised = error("SyntaxError", "expected ':'", *frames, path=path, line=6)
    return signature(failed(raised, kind=EvidenceKind.COLLECTION), Category.COMPILATION_ERROR)


def test_syntax_error_has_one_signature_for_all_importers():
    cart, order = "tests/test_cart.py", "tests/test_order.py"
    alone = _does_not_parse("shop/cart.py")

    assert _does_not_parse("shop/cart.py", cart) == alone
    assert _does_not_parse("shop/order.py", order) != alone
    assert _does_not_parse("<string>", order) != _does_not_parse("<string>", cart)


def test_signatures_of_different_missing_modules_differ():
    def missing(name: str) -> str:
        raised = error("ModuleNotFoundError", f"No module named '{name}'", name=name)
        return signature(failed(raised, kind=EvidenceKind.COLLECTION), Category.IMPORT_ERROR)

    assert missing("numpy") != missing("pandas")


def metric(*recorded: str) -> dict[str, Any]:
    fact = {"name": "rows", "operator": ">=", "expected": 1, "problem": "unmet", "recorded": recorded}
    return {"kind": "metric", "metric": fact}


LINT = {"argv": ["ruff"], "tool": "ruff", "purpose": "lint", "findings": [{"message": "`os` unused"}]}
ENDED = {"exit_code": 4, "complete": True}
STACK = 'Current thread 0x01 (most recent call first):\n  File "a.py", line 1 in f'
FACTS: dict[str, dict[str, Any]] = {
    "artifact": {"kind": "artifact", "artifact": {"path": "a.json", "problem": "missing"}},
    "artifact-2": {"kind": "artifact", "artifact": {"path": "b.json", "problem": "missing"}},
    "metric": metric(),
    "contract": {"kind": "contract", "contract": {"path": "c", "function": "f", "problem": "signature"}},
    "selector": {"kind": "selection", "selectors": [{"text": "a.py", "problem": "missing_file"}]},
    "command": {"kind": "command", "command": LINT},
    "process": {"kind": "session", "process": {"signal": "SIGSEGV"}},
    "process-2": {"kind": "session", "process": {"signal": "SIGSEGV", "stack": STACK}},
    "session": {"kind": "session", "process": ENDED, "headline": "invalid action"},
    "session-2": {"kind": "session", "process": ENDED, "headline": "a plugin is required"},
    "vacuous": {"kind": "selection", "vacuous": "all_skipped"},
}


def test_facts_without_exceptions_have_distinct_signatures():
    found = {signature(Evidence.model_validate(each), Category.UNKNOWN) for each in FACTS.values()}
    assert len(found) == len(FACTS)


def test_signature_ignores_metric_values():
    one, other = (Evidence.model_validate(each) for each in (metric("1"), metric("2", "3")))
    assert signature(one, Category.METRIC_UNMET) == signature(other, Category.METRIC_UNMET)
