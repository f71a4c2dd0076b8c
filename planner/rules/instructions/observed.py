"""What was seen of the failure: its words, what was compared, the facts of each kind of check, the chain of
exceptions, the data and the captured output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind
from planner.rules.instructions.case import listed
from planner.rules.instructions.crash_stacks import own_stack
from planner.rules.instructions.excerpts import language
from planner.rules.instructions.quoting import prose, quotation, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.model.context import FileSample
    from planner.model.evidence import Frame
    from planner.model.failure_report import Observation, ReportedException
    from planner.rules.instructions.case import Case
    from planner.text.budgets import Section

_OWN = (Side.PRODUCT, Side.TEST)
_MOST_EXCEPTIONS = 4
_FIRST_FRAMES = 2
_LAST_FRAMES = 8
_MOST_FINDINGS = 20
_MOST_OUTPUT = 30
"""Lines of what was printed."""
_LONG_VALUE = 160
_LIBRARY_WARNING = re.compile(
    r"^\S{1,300}/site-packages/\S{1,300}:\d+: \w+Warning: [^\n]*\n(?:[^\n]*\n){0,6}?  [^\n]*\n?",
    re.MULTILINE,
)
"""What the libraries of the environment warn of has nothing to do with the failure."""


def observed_sections(case: Case) -> Iterator[Section]:
    """What was seen, in the order in which a reader wants it."""
    headline = _words(case)
    if headline:
        yield quotation("## What was seen", headline, priority=4, required=True)
    facts = list(_facts(case))
    if facts:
        heading = "" if headline else "## What was seen"
        yield prose(heading, *facts, priority=3, required=True)
    yield from _blocks(case)


def data_sections(case: Case) -> Iterator[Section]:
    """The data file of the criterion, and the contract."""
    context = case.context
    if context is None:
        return
    if context.fixture is not None:
        yield _sample(
            "## The data", context.fixture, "the file that the failing criterion is about", priority=4
        )
    promised = case.kind is CheckKind.CONTRACT or case.failure.category is Category.SPEC_MISMATCH
    if context.contract is not None and promised:
        yield _sample("## The contract", context.contract, "what the code has promised", priority=6)


def output_sections(case: Case) -> Iterator[Section]:
    """What was printed while it failed."""
    seen = case.seen
    if seen is None:
        return
    heading = "## Captured output"
    shown = seen.command.output_tail if seen.command else ""
    for name, text in (("Standard output", seen.stdout_tail), ("Standard error", seen.stderr_tail)):
        end = _end(text)
        if end.strip() and text.strip() not in shown:
            yield quotation(heading, end, intro=f"{name}, its end:", priority=5)
            heading = ""
    stack = seen.process.stack if seen.process else None
    if stack:
        intro = "The stack when the process ended, the newest call first:"
        yield quotation(heading, own_stack(stack), intro=intro, priority=1)
        heading = ""
    excerpts = case.context.excerpts if case.context else ()
    if seen.longrepr.strip() and not stack and not shown and not (seen.exceptions and excerpts):
        yield quotation(heading, _end(seen.longrepr), intro="The failure as pytest tells it:", priority=5)


def _end(text: str) -> str:
    text = _LIBRARY_WARNING.sub("", text)
    lines = text.strip("\n").split("\n")
    if len(lines) <= _MOST_OUTPUT:
        return text
    return "\n".join([f"… {len(lines) - _MOST_OUTPUT} lines before", *lines[-_MOST_OUTPUT:]])


def _words(case: Case) -> str:
    """The message in full where it has several lines, else the line that a person would quote."""
    seen = case.seen
    head = case.failure.stack_trace_head or (seen.headline if seen else "")
    if seen is not None and seen.exceptions:
        first = seen.exceptions[0]
        if "\n" in first.message.strip():
            return f"{_type(first)}: {first.message}"
    return head or (seen.headline if seen else "") or (case.check.reason if case.check else None) or ""


def _facts(case: Case) -> Iterator[str]:
    compared = case.comparison
    if compared is not None:
        unusual = compared.operator not in (None, "==")
        operator = f"{compared.operator} " if unusual else ""
        yield f"- Expected: {_value(operator + compared.expected)}"
        yield f"- Actual: {_value(compared.actual)}"
    seen = case.seen
    if seen is None:
        return
    if seen.phase is not None and seen.phase.value not in ("call", "session"):
        yield f"- When: during {_PHASES[seen.phase.value]}."
    if seen.timed_out:
        took = f" It had run for {seen.duration_seconds:.1f} s." if seen.duration_seconds else ""
        limit = f"the limit of {seen.limit_seconds:g} s" if seen.limit_seconds else "its limit"
        yield f"- Time: {limit} was passed.{took}"
    for selector in seen.selectors:
        near = f"; the nearest that exist: {listed(selector.nearest)}" if selector.nearest else ""
        why = _phrase(_SELECTORS, selector.problem)
        yield f"- {span(selector.text)}: {why}{near}."
    for describe in _FACTS.values():
        yield from describe(seen)
    if case.context is not None and case.context.names:
        names = (f"{span(each.name)} ({span(each.path)}, line {each.line})" for each in case.context.names)
        yield f"- What is defined there, the likest names first: {', '.join(names)}."
    if "(unknown location)" in seen.headline:
        yield (
            "- The location is unknown: Python found a folder of that name without an `__init__.py` and "
            "took it for an empty package. Where the file was deleted or moved, it has to come back."
        )
    passed = sum(each.passed for each in seen.confirmations)
    if passed:
        red = len(seen.confirmations) - passed
        yield f"- Run again {len(seen.confirmations)} times: {red} red, {passed} green."


def _value(text: str) -> str:
    return span(text, limit=_LONG_VALUE)


def _phrase(phrases: Mapping[str, str], problem: str) -> str:
    """The words for a problem; of one that this version does not know, its name."""
    return phrases.get(problem) or f"has the problem {span(problem)}"


def _process(seen: Observation) -> Iterator[str]:
    end = seen.process
    if end is None or seen.timed_out:
        return  # past its limit it was the verifier that ended it
    if end.signal:
        yield f"- The process was ended by the signal {span(end.signal)}."
    elif end.exit_code is not None:
        yield f"- The process ended with exit status {end.exit_code}."


def _command(seen: Observation) -> Iterator[str]:
    fact = seen.command
    if fact is not None and not fact.found:
        program = span(fact.argv[0] if fact.argv else fact.tool)
        yield f"- The program {program} is not installed, or not on the path."


def _artifact(seen: Observation) -> Iterator[str]:
    fact = seen.artifact
    if fact is None:
        return
    near = f"; files of similar names: {listed(fact.nearest)}" if fact.nearest else ""
    yield f"- The file {span(fact.path)} {_phrase(_ARTIFACTS, fact.problem)}{near}."


def _metric(seen: Observation) -> Iterator[str]:
    fact = seen.metric
    if fact is None:
        return
    recorded = listed(fact.recorded) if fact.recorded else "nothing"
    wanted = span(f"{fact.operator} {fact.expected:g}")
    yield f"- The metric {span(fact.name)} must be {wanted}; the tests recorded {recorded}."


def _contract(seen: Observation) -> Iterator[str]:
    fact = seen.contract
    if fact is None:
        return
    what = span(fact.function) if fact.function else "The module"
    where = (
        f" ({span(fact.module_path)}{f', line {fact.line}' if fact.line else ''})"
        if fact.module_path
        else ""
    )
    yield f"- {what}{where} {_phrase(_CONTRACTS, fact.problem)} by {span(fact.path)}."


_FACTS: Mapping[str, Callable[[Observation], Iterator[str]]] = {
    "process": _process,
    "command": _command,
    "artifact": _artifact,
    "metric": _metric,
    "contract": _contract,
}

_PHASES = {
    "collect": "the collection of the test file, before any test ran",
    "setup": "the set-up of the test, before its first line",
    "teardown": "the tear-down of the test, after its last line",
}
_SELECTORS = {
    "missing_file": "there is no such file",
    "missing_id": "the file is there, but no such test in it",
    "no_match": "no test matches it",
    "bad_expression": "it is no valid expression",
    "empty": "nothing in it is a test",
}
_ARTIFACTS = {
    "missing": "does not exist",
    "no_match": "matches no file",
    "empty": "is empty",
    "too_small": "is too small",
    "too_large": "is too large",
    "not_a_file": "is no ordinary file",
    "outside_root": "leads out of the plan's root",
    "not_json": "is no JSON",
    "schema": "does not satisfy its schema",
    "bad_schema": "cannot be judged, for its schema is broken",
    "sha256": "has another content than was promised",
    "unreadable": "cannot be read",
}
_CONTRACTS = {
    "missing_module": "does not exist, though it is promised",
    "missing_function": "is missing, though it is promised",
    "signature": "has another signature than is promised",
    "unreadable": "cannot be judged",
    "unresolved": "cannot be judged without running it",
}


def _blocks(case: Case) -> Iterator[Section]:
    seen = case.seen
    if seen is None:
        return
    chain = _chain(seen)
    if chain:
        yield quotation("", chain, intro=_chain_intro(seen), priority=2)
    if seen.command is not None and seen.command.findings:
        findings = seen.command.findings
        yield quotation(
            "",
            "\n".join(
                f"{each.path or ''}{f':{each.line}' if each.line else ''}: "
                f"{f'{each.code} ' if each.code else ''}{each.message}".lstrip(": ")
                for each in findings[:_MOST_FINDINGS]
            )
            + (f"\n… {len(findings) - _MOST_FINDINGS} more" if len(findings) > _MOST_FINDINGS else ""),
            intro=f"What {span(seen.command.tool)} complains of:",
            priority=1,
        )
    # Where there are findings, the output says the same once more.
    if seen.command is not None and seen.command.output_tail.strip() and not seen.command.findings:
        yield quotation("", _end(seen.command.output_tail), intro="The end of its output:", priority=1)


def _chain_intro(seen: Observation) -> str:
    count = len(seen.exceptions)
    if count > 1:
        return "The chain of exceptions; the first is the one that surfaced, each further one led to it:"
    return "How the run came there, the raising line last:"


def _chain(seen: Observation) -> str:
    """The exceptions with their frames; nothing where one frame says no more than the source does."""
    shown = seen.exceptions[:_MOST_EXCEPTIONS]
    if not shown or (len(seen.exceptions) == 1 and len(_frames(shown[0])) < 2):
        return ""
    parts: list[str] = []
    for number, raised in enumerate(shown):
        if len(seen.exceptions) > 1:
            parts.append(
                f"{number + 1}. {_type(raised)}: {raised.message.strip().partition(chr(10))[0]}".rstrip(
                    ": "
                )
            )
        parts += [f"   {line}" if len(seen.exceptions) > 1 else line for line in _frames(raised)]
    if len(seen.exceptions) > _MOST_EXCEPTIONS:
        parts.append(f"… {len(seen.exceptions) - _MOST_EXCEPTIONS} more")
    return "\n".join(parts)


def _frames(raised: ReportedException) -> list[str]:
    # What calls the first line of the project's own, such as the import machinery, says nothing.
    first = next((n for n, frame in enumerate(raised.frames) if frame.side in _OWN), 0)
    frames = [frame for frame in raised.frames[first:] if not frame.path.startswith("<frozen ")]
    lines = [_frame(frame) for frame in frames]
    if len(lines) > _FIRST_FRAMES + _LAST_FRAMES + 1:
        left = len(lines) - _FIRST_FRAMES - _LAST_FRAMES
        lines = [*lines[:_FIRST_FRAMES], f"… {left} more calls", *lines[-_LAST_FRAMES:]]
    return lines


def _frame(frame: Frame) -> str:
    path = frame.path
    if frame.side not in _OWN and path.startswith("/"):
        path = "…/" + "/".join(path.split("/")[-3:])  # where a library is installed says nothing
    source = f": {frame.source}" if frame.source else ""
    return f"{path}:{frame.line} in {frame.function}{source}"


def _type(raised: ReportedException) -> str:
    return raised.type.removeprefix("builtins.")


def _sample(heading: str, sample: FileSample, what: str, *, priority: int) -> Section:
    size = f"{sample.total_bytes} bytes"
    if not sample.text.strip():
        kind = "an empty file" if not sample.total_bytes else f"{size}, binary"
        return prose(heading, f"{span(sample.path)}, {what}: {kind}.", priority=priority)
    part = f"{size}, a part of it" if sample.truncated else size
    return quotation(
        heading,
        sample.text,
        intro=f"{span(sample.path)}, {what} ({part}):",
        info=language(sample.path),
        priority=priority,
    )
