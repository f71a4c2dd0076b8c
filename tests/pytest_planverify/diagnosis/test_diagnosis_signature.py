"""Signatures: equal for one root cause despite other numbers, lines or folders; different otherwise."""

from __future__ import annotations

import pytest
from diagnosis_samples import error, failed, frame
from hypothesis import given
from hypothesis import strategies as st

from planner.model.evidence import (
    ArtifactFact,
    CommandFact,
    ContractFact,
    Evidence,
    Finding,
    Frame,
    MetricFact,
    ProcessEnd,
    Selector,
)
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
@given(data=st.data())
def test_signature_ignores_values(
    message: str, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    one, other = data.draw(values), data.draw(values)
    assert _of(message.format(one)) == _of(message.format(other))


@given(st.permutations(["None", "1", "True", "'x'"]))
def test_signature_ignores_the_order_of_a_set(members: list[str]) -> None:
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
def test_signature_ignores_paths_digests_and_durations(one: str, other: str) -> None:
    assert _of(one) == _of(other)


def test_signature_ignores_folder_and_line_but_not_file_function_and_words() -> None:
    known = _of("no", frame("/a/shop/cart.py", "total"))
    assert _of("no", frame("/b/c/shop/cart.py", "total", line=9)) == known
    assert _of("no", frame("shop/basket.py", "total")) != known
    assert _of("no", frame("shop/cart.py", "price")) != known
    assert _of("yes") != known


def test_signature_keeps_words() -> None:
    assert mask("cannot parse item2 of can't-stop") == "cannot parse item2 of can't-stop"


def test_signature_depends_on_the_category() -> None:
    failure = failed(error("ValueError", "no", TOTAL))
    assert signature(failure, Category.TEST_REGRESSION) != signature(failure, Category.TYPE_ERROR)


def _does_not_parse(path: str, *importers: str) -> str:
    frames = (frame(each, "<module>") for each in importers)
    raised = error("SyntaxError", "expected ':'", *frames, path=path, line=6)
    return signature(failed(raised, kind=EvidenceKind.COLLECTION), Category.COMPILATION_ERROR)


def test_syntax_error_has_one_signature_for_all_importers() -> None:
    cart, order = "tests/test_cart.py", "tests/test_order.py"
    alone = _does_not_parse("shop/cart.py")

    assert _does_not_parse("shop/cart.py", cart) == alone
    assert _does_not_parse("shop/order.py", order) != alone
    assert _does_not_parse("<string>", order) != _does_not_parse("<string>", cart)


def test_signatures_of_different_missing_modules_differ() -> None:
    def missing(name: str) -> str:
        raised = error("ModuleNotFoundError", f"No module named '{name}'", name=name)
        return signature(failed(raised, kind=EvidenceKind.COLLECTION), Category.IMPORT_ERROR)

    assert missing("numpy") != missing("pandas")


def _artifact(path: str) -> Evidence:
    return Evidence(kind=EvidenceKind.ARTIFACT, artifact=ArtifactFact(path=path, problem="missing"))


def _metric(*recorded: str) -> Evidence:
    fact = MetricFact(name="rows", operator=">=", expected=1, problem="unmet", recorded=recorded)
    return Evidence(kind=EvidenceKind.METRIC, metric=fact)


def _crash(stack: str = "") -> Evidence:
    return Evidence(kind=EvidenceKind.SESSION, process=ProcessEnd(signal="SIGSEGV", stack=stack))


def _ended(headline: str) -> Evidence:
    process = ProcessEnd(exit_code=4, complete=True)
    return Evidence(kind=EvidenceKind.SESSION, process=process, headline=headline)


STACK = 'Current thread 0x01 (most recent call first):\n  File "a.py", line 1 in f'
FACTS = {
    "artifact": _artifact("a.json"),
    "artifact-2": _artifact("b.json"),
    "metric": _metric(),
    "contract": Evidence(
        kind=EvidenceKind.CONTRACT, contract=ContractFact(path="c.json", function="f", problem="signature")
    ),
    "selector": Evidence(
        kind=EvidenceKind.SELECTION, selectors=(Selector(text="a.py", problem="missing_file"),)
    ),
    "command": Evidence(
        kind=EvidenceKind.COMMAND,
        command=CommandFact(
            argv=("ruff",),
            tool="ruff",
            purpose="lint",
            findings=(Finding(code="F401", message="`os` unused"),),
        ),
    ),
    "process": _crash(),
    "process-2": _crash(STACK),
    "session": _ended("invalid action"),
    "session-2": _ended("a plugin is required but not installed"),
    "vacuous": Evidence(kind=EvidenceKind.SELECTION, vacuous="all_skipped"),
}


def test_facts_without_exceptions_have_distinct_signatures() -> None:
    found = {name: signature(evidence, Category.UNKNOWN) for name, evidence in FACTS.items()}
    assert len(set(found.values())) == len(FACTS)


def test_signature_ignores_metric_values() -> None:
    one, other = _metric("1"), _metric("2", "3")
    assert signature(one, Category.METRIC_UNMET) == signature(other, Category.METRIC_UNMET)
