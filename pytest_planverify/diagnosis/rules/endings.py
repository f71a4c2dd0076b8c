"""Rules for limits that were passed, processes that died, and sessions that did not end in order."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind, Side
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.known import CRASH_SIGNALS
from pytest_planverify.diagnosis.reading import Case, last_frame_of, top_level
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import place, quote, said

if TYPE_CHECKING:
    from planner.model.evidence import Frame

_OURSELVES = frozenset({"pytest_planverify", "planner"})
_OUR_PATH = re.compile(r"(?:^|/)(?:pytest_planverify|planner)/")
_INTERRUPTED, _INTERNAL, _USAGE = 2, 3, 4
_PYTEST_SAYS = (_INTERRUPTED, _INTERNAL, _USAGE)
_FROM_A_TERMINAL = ("SIGINT", "SIGHUP", "SIGQUIT")
_LEAVING = ("builtins.SystemExit", "_pytest.outcomes.Exit", "builtins.KeyboardInterrupt")
_CLOSED = "I/O operation on closed file"
_CAPTURE = "_pytest/capture.py"
_SILENT_KINDS = (EvidenceKind.SESSION, EvidenceKind.TEST, EvidenceKind.COLLECTION)


def _where_it_was(case: Case) -> Frame | None:
    frames = case.error.frames if case.error else ()
    return last_frame_of(frames, Side.PRODUCT) or case.stuck_at or last_frame_of(frames, Side.TEST)


def _what(case: Case) -> str:
    evidence = case.evidence
    if evidence.nodeid:
        return evidence.nodeid
    return " ".join(evidence.command.argv) if evidence.command else evidence.check_id or "The session"


def _limit(case: Case) -> str:
    evidence = case.evidence
    limit = f" of {evidence.limit_seconds:g} s" if evidence.limit_seconds else ""
    took = f" after {evidence.duration_seconds:.1f} s" if evidence.duration_seconds else ""
    return f"its limit{limit}{took}"


def _owner_at(case: Case, frame: Frame | None) -> Owner | None:
    """Of where it stood: a test that waits for a product that was changed is not to blame for it."""
    if frame is None or frame.side is not Side.TEST:
        return None
    return Owner.PRODUCT if case.product_changed and not case.is_changed(frame.path) else Owner.TEST


def _timed_out(case: Case) -> Hit | None:
    if not (case.evidence.timed_out or case.process.timed_out):
        return None
    frame = _where_it_was(case)
    stood = f" It was ended in {place(frame)}." if frame else " Where it stood is not known."
    return Hit(
        suggestion=f"{_what(case)} passed {_limit(case)}.{stood}", frame=frame, owner=_owner_at(case, frame)
    )


def _swallowed(case: Case) -> Hit | None:
    if not case.evidence.swallowed_timeout:
        return None
    return Hit(
        suggestion=f"{_what(case)} says that it passed, but it passed {_limit(case)}: something in it "
        f"catches the "
        "timeout and goes on."
    )


def _crash(signals: frozenset[str]):
    def read(case: Case) -> Hit | None:
        signal = case.process.signal
        if signal not in signals:
            return None
        frame = case.stuck_at
        stood = f" in {place(frame)}" if frame else ""
        return Hit(
            suggestion=f"{_what(case)} was ended by {signal}{stood}: run it alone under faulthandler.",
            frame=frame,
            owner=_owner_at(case, frame),
        )

    return read


def _killed(case: Case) -> Hit | None:
    signal = case.process.signal
    if signal is None or signal in _FROM_A_TERMINAL:
        return None
    hint = "; where memory is scarce this is how the system ends a process" if signal == "SIGKILL" else ""
    return Hit(suggestion=f"{_what(case)} was ended by {signal}{hint}.", frame=case.stuck_at)


def _happened_again(case: Case) -> bool:
    """Whether it was red each time that it was run, and so is its own doing."""
    told = case.evidence.confirmations
    return len(told) > 1 and not any(each.passed for each in told)


def _signalled_itself(case: Case) -> Hit | None:
    signal = case.process.signal
    if signal not in _FROM_A_TERMINAL or case.evidence.kind is EvidenceKind.COMMAND:
        return None
    if not _happened_again(case):
        return None
    return Hit(
        suggestion=f"{_what(case)} was ended by {signal} each time that it was run: it sends it to itself.",
        frame=case.stuck_at,
    )


def _interrupted(case: Case) -> Hit | None:
    by_signal = case.process.signal in _FROM_A_TERMINAL
    if not (
        by_signal
        or (case.evidence.kind is EvidenceKind.SESSION and case.is_error("builtins.KeyboardInterrupt"))
    ):
        return None
    return Hit(suggestion=f"{_what(case)} was interrupted from outside: run it again.")


def _ended_by_itself(case: Case) -> Hit | None:
    if not case.is_error(*_LEAVING) or case.raised_at is None:
        return None
    if case.evidence.kind is EvidenceKind.TEST and case.evidence.process is None:
        return None  # the test alone is over
    if case.is_error("builtins.KeyboardInterrupt") and not _is_its_own(case):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)} ended the whole session: {_exit(case)}.",
        owner=_owner_at(case, case.raised_at),
        frame=case.raised_at,
    )


def _is_its_own(case: Case) -> bool:
    """An interrupt that no person sent: it came from within a test, or comes each time."""
    if case.evidence.kind is EvidenceKind.COMMAND:
        return False
    return case.evidence.kind is not EvidenceKind.SESSION or _happened_again(case)


def _left_by_the_test(case: Case) -> Hit | None:
    """A test, or what prepares it, leaves the program by itself: no product asked for it."""
    if case.evidence.kind is not EvidenceKind.TEST or not case.is_error("builtins.SystemExit"):
        return None
    if not case.in_test:
        return None
    return Hit(
        suggestion=f"{place(case.raised_at) if case.raised_at else 'The test'} leaves the program: "
        f"{_exit(case)}; a test that is over returns."
    )


def _closed_output(case: Case) -> Hit | None:
    """pytest itself stumbles over the streams that it had put in the place of standard output."""
    error, last = case.error, case.innermost
    if error is None or last is None or not last.path.endswith(_CAPTURE):
        return None
    if error.message != _CLOSED and error.errno != errno.EBADF:
        return None
    return Hit(
        suggestion=f"{_what(case)} closes sys.stdout or sys.stderr, which are not its own: let it leave "
        "them open, or put a stream of its own in their place.",
        owner=Owner.PRODUCT if case.product_changed and not case.tests_on_way_changed else None,
    )


def _exit(case: Case) -> str:
    return quote(f"{case.error.type}({case.error.message})") if case.error else "an exit"


def _left_early(case: Case) -> Hit | None:
    process = case.evidence.process
    if (
        process is None
        or process.complete
        or case.evidence.kind not in _SILENT_KINDS
        or case.error is not None
    ):
        return None
    if case.evidence.kind is EvidenceKind.SESSION and process.exit_code in _PYTEST_SAYS:
        return None
    frame = case.stuck_at
    code = f"exit code {process.exit_code}" if process.exit_code is not None else "no exit code"
    return Hit(
        suggestion=f"{_what(case)}: the process left with {code} before the session was over; look for "
        "os._exit, sys.exit or a crash in native code.",
        frame=frame,
        owner=_owner_at(case, frame),
        weight=1.0 if process.exit_code is not None else 0.8,
    )


def _our_own_error(case: Case) -> Hit | None:
    """An error whose innermost frame is this plugin's, with nobody of the project on the way."""
    frames = [frame for frame in case.frames if frame.side is not Side.STDLIB]
    if (
        not frames
        or case.error is None
        or (case.raised_at and case.evidence.kind is not EvidenceKind.SESSION)
    ):
        return None
    last = frames[-1]
    if last.side is not Side.FRAMEWORK:
        return None
    if top_level(last.module or "") not in _OURSELVES and not _OUR_PATH.search(last.path):
        return None
    return Hit(
        suggestion=f"pytest-planverify failed in {place(last)}: {said(case.error)}. Report it; the "
        f"project is "
        "not to blame.",
        frame=last,
    )


def _others_internal_error(case: Case) -> Hit | None:
    if case.evidence.kind is not EvidenceKind.SESSION or case.error is None or not case.in_nobody:
        return None
    last = case.innermost
    if last is None:
        return None
    return Hit(
        suggestion=f"pytest or a plugin failed in {place(last)}: {said(case.error)}. Check which "
        f"plugins are "
        "installed here, and in which versions.",
        frame=last,
    )


def _status(code: int, sentence: str):
    def read(case: Case) -> Hit | None:
        if case.evidence.kind is not EvidenceKind.SESSION or case.process.exit_code != code or case.error:
            return None
        detail = quote(case.evidence.headline)
        return Hit(suggestion=f"{sentence}{': ' + detail if detail else ''}.")

    return read


def _red_without_a_failure(case: Case) -> Hit | None:
    process = case.process
    if (
        case.evidence.kind is not EvidenceKind.SESSION
        or not process.complete
        or not process.exit_code
        or case.error
    ):
        return None
    return Hit(
        suggestion=f"The session ended with exit code {process.exit_code} without a failing test: "
        "a hook of the project or a plugin's threshold, such as that of coverage, decides it."
    )


TIMEOUT_RULES: tuple[Rule, ...] = (
    Rule(
        id="limit-passed",
        because="A time limit was passed.",
        category=Category.TEST_TIMEOUT,
        confidence=0.96,
        read=_timed_out,
    ),
    Rule(
        id="limit-swallowed",
        because="The test passed, but long after its limit: it swallowed the timeout.",
        category=Category.TEST_TIMEOUT,
        confidence=0.93,
        read=_swallowed,
    ),
)

PROCESS_RULES: tuple[Rule, ...] = (
    Rule(
        id="crash-signal",
        because="The process ended by a signal that its own doing brings.",
        category=Category.TEST_CRASH,
        confidence=0.96,
        read=_crash(CRASH_SIGNALS),
    ),
    Rule(
        id="signalled-itself",
        because="The process ended by a signal, each time that it was run.",
        category=Category.TEST_CRASH,
        confidence=0.85,
        read=_signalled_itself,
    ),
    Rule(
        id="session-ended-by-project",
        because="Code of the project ended the session on purpose.",
        category=Category.TEST_CRASH,
        confidence=0.85,
        read=_ended_by_itself,
    ),
    Rule(
        id="interrupted",
        because="Somebody interrupted the run.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.TEST_CRASH, 0.2),
        read=_interrupted,
    ),
    Rule(
        id="killed",
        because="The process was killed, and not by this run.",
        category=Category.TEST_CRASH,
        confidence=0.65,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.35),
        read=_killed,
    ),
    Rule(
        id="own-internal-error",
        because="The error was raised by this plugin.",
        category=Category.HARNESS_ERROR,
        confidence=0.9,
        read=_our_own_error,
    ),
    Rule(
        id="left-by-the-test",
        because="The test, or what prepares it, leaves the program.",
        category=Category.TEST_CRASH,
        confidence=0.8,
        owner=Owner.TEST,
        runner_up=(Category.TEST_REGRESSION, 0.2),
        read=_left_by_the_test,
    ),
    Rule(
        id="output-closed",
        because="Standard output was closed while pytest was still using it.",
        category=Category.TEST_CRASH,
        confidence=0.8,
        owner=Owner.TEST,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.2),
        read=_closed_output,
    ),
)

EARLY_END_RULES: tuple[Rule, ...] = (
    Rule(
        id="process-left-early",
        because="The process ended before its session said that it was over.",
        category=Category.TEST_CRASH,
        confidence=0.85,
        runner_up=(Category.HYGIENE_VIOLATION, 0.2),
        read=_left_early,
    ),
)

SESSION_FALLBACKS: tuple[Rule, ...] = (
    Rule(
        id="plugin-internal-error",
        because="pytest or one of its plugins failed, with nobody of the project on the way.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.HARNESS_ERROR, 0.2),
        read=_others_internal_error,
    ),
    Rule(
        id="usage-error",
        because="pytest refused its arguments or its configuration.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.6,
        runner_up=(Category.TEST_NOT_FOUND, 0.3),
        read=_status(_USAGE, "pytest refused its arguments or its configuration"),
    ),
    Rule(
        id="unexplained-internal-error",
        because="The session ended with an internal error that left no trace.",
        category=Category.HARNESS_ERROR,
        confidence=0.5,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.4),
        read=_status(_INTERNAL, "pytest ended with an internal error that it did not explain"),
    ),
    Rule(
        id="unexplained-interruption",
        because="The session was interrupted, and nothing says by what.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.5,
        runner_up=(Category.TEST_CRASH, 0.3),
        read=_status(_INTERRUPTED, "The session was interrupted"),
    ),
    Rule(
        id="red-without-a-failure",
        because="The session ended red although no test failed.",
        category=Category.TEST_REGRESSION,
        confidence=0.4,
        owner=Owner.UNKNOWN,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.3),
        read=_red_without_a_failure,
    ),
)
