"""Rules for limits, processes that died, sessions that never began, and repeated runs."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis.case import Case, last_frame_of, raises_by_hand, top_level
from pytest_planverify.diagnosis.known import CRASH_SIGNALS, PLUGIN_OF_OPTION
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
    if frame is not None and frame.side is Side.PRODUCT:
        stood = f" It was still in {place(frame)}: find why that does not come to an end."
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
    if signal is None:
        return None
    hint = "; where memory is scarce this is how the system ends a process" if signal == "SIGKILL" else ""
    return Hit(suggestion=f"{_what(case)} was ended by {signal}{hint}.", frame=case.stuck_at)


def _happened_again(case: Case) -> bool:
    """Whether it was red each time that it was run, and so is its own doing."""
    told = case.evidence.confirmations
    return len(told) > 1 and not any(each.passed for each in told)


def _interrupted(case: Case) -> Hit | None:
    by_itself = _happened_again(case) and case.evidence.kind is not EvidenceKind.COMMAND
    by_signal = case.process.signal in _FROM_A_TERMINAL and not by_itself
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


def _left_by_the_test(case: Case) -> Hit | None:
    if case.evidence.kind is not EvidenceKind.TEST or not case.in_test or case.raised_at is None:
        return None
    return Hit(suggestion=f"{place(case.raised_at)} leaves the program: {_exit(case)}.")


def _closed_output(case: Case) -> Hit | None:
    """pytest stumbles over the streams that it had put in the place of standard output."""
    error, last = case.error, case.innermost
    if error is None or last is None or not last.path.endswith("_pytest/capture.py"):
        return None
    if error.message != "I/O operation on closed file" and error.errno != errno.EBADF:
        return None
    return Hit(
        suggestion=f"{_what(case)} closes sys.stdout or sys.stderr, which are not its own.",
        owner=Owner.PRODUCT if case.product_changed and not case.tests_changed else None,
    )


def _is_its_own(case: Case) -> bool:
    """An interrupt that no person sent: it came from within a test, or comes each time."""
    if case.evidence.kind is EvidenceKind.COMMAND:
        return False
    return case.evidence.kind is not EvidenceKind.SESSION or _happened_again(case)


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


# fmt: off
TIMEOUT_RULES: tuple[Rule, ...] = (
    Rule("limit-passed", Category.TEST_TIMEOUT, 0.96, _timed_out,
         because="A time limit was passed."),
    Rule("limit-swallowed", Category.TEST_TIMEOUT, 0.93, _swallowed,
         because="The test passed, but long after its limit: it swallowed the timeout."),
)
# fmt: on

# fmt: off
PROCESS_RULES: tuple[Rule, ...] = (
    Rule("crash-signal", Category.TEST_CRASH, 0.96, _crash(CRASH_SIGNALS),
         because="The process ended by a signal that its own doing brings."),
    Rule("session-ended-by-project", Category.TEST_CRASH, 0.85, _ended_by_itself,
         because="Code of the project ended the session on purpose."),
    Rule("interrupted", Category.ENVIRONMENT_ERROR, 0.7, _interrupted, second=(Category.TEST_CRASH, 0.2),
         because="Somebody interrupted the run."),
    Rule("killed", Category.TEST_CRASH, 0.65, _killed, second=(Category.ENVIRONMENT_ERROR, 0.35),
         because="The process was killed, and not by this run."),
    Rule("own-internal-error", Category.HARNESS_ERROR, 0.9, _our_own_error,
         because="The error was raised by this plugin."),
    Rule("left-by-test", Category.TEST_CRASH, 0.8, _left_by_the_test, owner=Owner.TEST,
         about=("builtins.SystemExit",), second=(Category.TEST_REGRESSION, 0.2),
         because="The test, or what prepares it, leaves the program."),
    Rule("output-closed", Category.TEST_CRASH, 0.8, _closed_output, owner=Owner.TEST,
         second=(Category.ENVIRONMENT_ERROR, 0.2),
         because="Standard output was closed while pytest was still using it."),
)
# fmt: on

# fmt: off
EARLY_END_RULES: tuple[Rule, ...] = (
    Rule("process-left-early", Category.TEST_CRASH, 0.85, _left_early,
         second=(Category.HYGIENE_VIOLATION, 0.2),
         because="The process ended before its session said that it was over."),
)
# fmt: on

# fmt: off
SESSION_FALLBACKS: tuple[Rule, ...] = (
    Rule("usage-error", Category.ENVIRONMENT_ERROR, 0.6,
         _status(_USAGE, "pytest refused its arguments or its configuration"),
         second=(Category.TEST_NOT_FOUND, 0.3),
         because="pytest refused its arguments or its configuration."),
    Rule("unexplained-internal-error", Category.HARNESS_ERROR, 0.5,
         _status(_INTERNAL, "pytest ended with an internal error that it did not explain"),
         second=(Category.ENVIRONMENT_ERROR, 0.4),
         because="The session ended with an internal error that left no trace."),
    Rule("red-without-a-failure", Category.TEST_REGRESSION, 0.4, _red_without_a_failure,
         owner=Owner.UNKNOWN, second=(Category.ENVIRONMENT_ERROR, 0.3),
         because="The session ended red although no test failed."),
)
# fmt: on


_UNRECOGNIZED = re.compile(r"^(?:.*: )?error: unrecognized arguments?: (?P<options>.+)$")
_NO_PYTEST = re.compile(r"^\S*python[\w.\-]*: No module named '?(?P<module>_?pytest|pluggy|iniconfig)'?$")
_BAD_EXPRESSION = re.compile(r"^(?:ERROR: )?Wrong expression passed to '(?P<option>-[km])': (?P<why>.+)$")
_NO_FILE = re.compile(r"^(?:ERROR: )?(?:file or directory not found|not found): (?P<what>.+)$")


def _line(case: Case, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The first line of the session's own complaint that matches as a whole."""
    for text in (case.evidence.longrepr, case.evidence.stderr_tail, case.evidence.stdout_tail):
        for line in text.splitlines():
            if found := pattern.match(line.strip()):
                return found
    return None


def _absent_plugin(case: Case) -> Hit | None:
    found = _line(case, _UNRECOGNIZED)
    if found is None or case.evidence.kind is not EvidenceKind.SESSION:
        return None
    options = found["options"].split()
    plugins = dict.fromkeys(
        plugin
        for option in options
        for start, plugin in PLUGIN_OF_OPTION.items()
        if option.startswith(start) and (start.startswith("--") or option.rstrip("0123456789") == start)
    )
    brings = (
        f": install {', '.join(plugins)}" if plugins else ": install the plugin that brings it, or drop it"
    )
    return Hit(
        suggestion=f"pytest does not know the option {quote(' '.join(options))} of the command or of "
        f"addopts{brings}.",
        weight=1.0 if plugins else 0.85,
    )


def _no_pytest(case: Case) -> Hit | None:
    found = _line(case, _NO_PYTEST)
    if found is None or case.evidence.kind is not EvidenceKind.SESSION:
        return None
    return Hit(suggestion=f"The interpreter of the command has no {found['module']}: install pytest there.")


def _no_such_file(case: Case) -> Hit | None:
    found = _line(case, _NO_FILE) if case.evidence.kind is EvidenceKind.SESSION else None
    if found is None:
        return None
    return Hit(
        suggestion=f"The command names {found['what']}, which does not exist.",
        location=Location(path=found["what"].partition("::")[0]),
    )


def _bad_expression(case: Case) -> Hit | None:
    found = _line(case, _BAD_EXPRESSION) if case.evidence.kind is EvidenceKind.SESSION else None
    if found is None:
        return None
    return Hit(
        suggestion=f"pytest cannot read the expression after {found['option']}: {quote(found['why'])}."
    )


# fmt: off
STARTING_RULES: tuple[Rule, ...] = (
    Rule("option-of-absent-plugin", Category.ENVIRONMENT_ERROR, 0.92, _absent_plugin,
         because="pytest was given an option that no installed plugin knows."),
    Rule("pytest-not-installed", Category.ENVIRONMENT_ERROR, 0.97, _no_pytest,
         because="The interpreter of the command cannot start pytest."),
    Rule("argument-not-found", Category.TEST_NOT_FOUND, 0.95, _no_such_file,
         because="pytest was given a file or node id that does not exist."),
    Rule("expression-refused", Category.TEST_NOT_FOUND, 0.95, _bad_expression,
         because="pytest was given an expression after -k or -m that it cannot read."),
)
# fmt: on


_PROOF_AT = 3
"""So many runs with both answers leave no doubt."""


def _name(case: Case) -> str:
    evidence = case.evidence
    return quote(
        evidence.nodeid or (evidence.tests[0] if evidence.tests else "") or evidence.check_id or "the check"
    )


def _counts(case: Case) -> str:
    runs = case.evidence.confirmations
    passed = sum(run.passed for run in runs)
    return f"passed {passed} of {len(runs)} times on the same code"


def _owner_by_change(case: Case) -> Owner | None:
    """The product's, where it was changed and no test was: it brought the chance or the state."""
    return Owner.PRODUCT if case.product_changed and not case.tests_changed else None


def _both_answers(case: Case) -> Hit | None:
    if case.repeatability is not Repeatability.FLAKY:
        return None
    clear = len(case.evidence.confirmations) >= _PROOF_AT
    by_product = case.in_product and not case.is_error("builtins.AssertionError")
    said = quote(case.evidence.headline, 100)
    by_chance = f"; when it fails it says {said}" if said else ""
    return Hit(
        suggestion=f"{_name(case)} {_counts(case)}{by_chance}. Look for time, randomness, order of sets, "
        "threads or the network in it.",
        owner=Owner.PRODUCT
        if by_product and not raises_by_hand(case.raised_at)
        else _owner_by_change(case),
        weight=1.0 if clear else 0.9,
    )


def _memory_asked_for(case: Case) -> Hit | None:
    """Seen once, the machine may have been short of memory; each time, too much is asked for."""
    if case.raised_at is None or raises_by_hand(case.innermost):
        return None
    if not _happened_again(case) and not (case.in_product and case.raised_in_changed):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)} asks for more memory than there is.",
        owner=Owner.TEST if case.in_test else None,
    )


# fmt: off
REPETITION_RULES: tuple[Rule, ...] = (
    Rule("both-answers", Category.FLAKY_TEST, 0.95, _both_answers, second=(Category.TEST_REGRESSION, 0.1),
         because="The same code gave both answers."),
    Rule("memory-asked-for", Category.TEST_REGRESSION, 0.75, _memory_asked_for,
         about=("builtins.MemoryError",), second=(Category.ENVIRONMENT_ERROR, 0.25),
         because="Memory ran out each time that it was run, or in product code that was changed."),
)
# fmt: on
