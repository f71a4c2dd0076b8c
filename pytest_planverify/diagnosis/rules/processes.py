"""Rules for exceeded time limits, processes that died, sessions that did not start, and repeated runs."""

from __future__ import annotations

import errno
import re
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

from planner.lint.rules import SHORTEST_SECONDS
from planner.model.outcome import Location
from planner.model.plan import DEFAULT_CRITERION_SECONDS
from planner.model.taxonomy import Owner
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis.case import Case, last_frame_of, top_level
from pytest_planverify.diagnosis.known import PLUGIN_OF_OPTION, PLUGIN_OF_SETTING
from pytest_planverify.diagnosis.messages import error_text, place, quote
from pytest_planverify.diagnosis.rule import Hit

if TYPE_CHECKING:
    from planner.model.evidence import Frame

_CRASH_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"})
"""Signals that a process causes itself, by a fault or by ``abort``."""
_FROM_A_TERMINAL = ("SIGINT", "SIGHUP", "SIGQUIT")
_INTERNAL, _USAGE = 3, 4  # exit codes of pytest
_OURSELVES = frozenset({"pytest_planverify", "planner"})
_OUR_PATH = re.compile(r"(?:^|/)(?:pytest_planverify|planner)/")
_TIMEOUT_MESSAGE = re.compile(r"Timeout \(?>(\d+(?:\.\d+)?)s\b")
_PROOF_AT = 3
"""Number of runs with mixed results that proves flakiness without doubt."""


def both_answers(case: Case) -> Hit:
    """The same code gave both answers."""
    evidence, runs = case.evidence, case.evidence.confirmations
    name = evidence.nodeid or next(iter(evidence.tests), None) or evidence.check_id or "the check"
    headline = quote(evidence.headline, 100)
    by_product = case.in_product and not case.is_error("AssertionError") and not case.is_by_hand
    # If only the product was changed, that change is presumed to have introduced randomness or state.
    is_products = by_product or (case.product_changed and not case.tests_changed)
    by_chance = f"; its failure: {headline}" if headline else ""
    return Hit(
        suggestion=f"{quote(name)} passed {sum(run.passed for run in runs)} of {len(runs)} times on the "
        f"same code{by_chance}. Check it for time, randomness, order of sets, threads or network.",
        owner=Owner.PRODUCT if is_products else None,
        weight=1.0 if len(runs) >= _PROOF_AT else 0.9,
    )


def memory_asked_for(case: Case) -> Hit | None:
    """Memory ran out each time that it was run, or in product code that was changed."""
    # A single failure may come from a machine short of memory; repeated ones from an excessive request.
    is_unchanged = case.changed is not None and not any(case.is_changed(each.path) for each in case.frames)
    is_again = case.happened_again and not is_unchanged
    if not is_again and not (case.in_product and case.raised_in_changed):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)} requests more memory than available.",
        owner=Owner.TEST if case.in_test else None,
    )


def _subject(case: Case) -> str:
    """Return the subject of a sentence: the test, the command, the check or the session."""
    evidence = case.evidence
    if evidence.nodeid:
        return evidence.nodeid
    return " ".join(evidence.command.argv) if evidence.command else evidence.check_id or "The session"


def _owner_at(case: Case, frame: Frame | None) -> Owner | None:
    """Return the owner of a process that ended in a frame; ``None`` for the category's default.

    In a test frame the test; but the product, if it changed and the test did not: the test then waited for
    the product.
    """
    if frame is None or frame.side is not Side.TEST:
        return None
    return Owner.PRODUCT if case.product_changed and not case.is_changed(frame.path) else Owner.TEST


def limit_passed(case: Case) -> Hit:
    """A time limit was passed, whether or not the test noticed."""
    evidence, frames = case.evidence, case.error.frames
    frame = last_frame_of(frames, Side.PRODUCT) or case.stuck_at or last_frame_of(frames, Side.TEST)
    # The project may give pytest-timeout a shorter limit than that of the criterion.
    named = _TIMEOUT_MESSAGE.match(case.error.message)
    seconds = float(named[1]) if named else evidence.limit_seconds
    limit = f" of {seconds:g} s" if seconds else ""
    # The test's own duration may be shorter than the limit, which includes what runs around it.
    duration = evidence.duration_seconds or 0
    took = f" after {duration:.1f} s" if duration > (seconds or 0) else ""
    # Code that has not changed is presumed to end, given time: pytest alone needs a second to start.
    is_of_plan = seconds == evidence.limit_seconds and case.nothing_changed
    if seconds and is_of_plan and seconds < DEFAULT_CRITERION_SECONDS:
        needed = ", less than pytest needs to start" if seconds < SHORTEST_SECONDS else ""
        if evidence.swallowed_timeout or (frame is not None and frame.side is Side.TEST):
            needed = needed or f"{took}, and nothing was changed"
        if needed:
            short = (
                f"{_subject(case)} exceeded its limit{limit}{needed}: the limit in the plan is too short."
            )
            return Hit(suggestion=short, owner=Owner.PLAN)
    if evidence.swallowed_timeout:
        how = ", but reports a pass: its code catches the timeout and continues."
    elif frame is None:
        how = ". The place is not known."
    elif frame.side is Side.PRODUCT:
        how = f". It was still in {place(frame)}: find out why that does not end."
    else:
        how = f". It was stopped in {place(frame)}."
    return Hit(
        suggestion=f"{_subject(case)} exceeded its limit{limit}{took}{how}",
        frame=frame,
        owner=_owner_at(case, frame),
    )


def session_ended_by_project(case: Case) -> Hit | None:
    """Code of the project ended the program or the whole session."""
    kind, frame = case.evidence.kind, case.raised_at
    if frame is None or kind is EvidenceKind.COMMAND:
        return None
    # A single interrupt of a session is probably a person's.
    if kind is EvidenceKind.SESSION and case.is_error("KeyboardInterrupt") and not case.happened_again:
        return None
    said = quote(f"{case.error.type}({case.error.message})")
    if kind is not EvidenceKind.TEST or case.evidence.process is not None:
        sentence = f"{place(frame)} ended the whole session: {said}."
        return Hit(suggestion=sentence, owner=_owner_at(case, frame), frame=frame)
    # The session went on, and an exit in product code is a finding of its test.
    if not (case.in_test and case.is_error("SystemExit")):
        return None
    return Hit(suggestion=f"{place(frame)} ends the program: {said}.", owner=Owner.TEST)


def interrupted(case: Case) -> str | None:
    """Somebody interrupted the run."""
    kind = case.evidence.kind
    by_itself = case.happened_again and kind is not EvidenceKind.COMMAND
    by_signal = case.process.signal in _FROM_A_TERMINAL and not by_itself
    if not by_signal and not (kind is EvidenceKind.SESSION and case.is_error("KeyboardInterrupt")):
        return None
    return f"{_subject(case)} was interrupted from outside: run it again."


def killed(case: Case) -> Hit:
    """The process ended by a signal, and not by this run."""
    frame, signal = case.stuck_at, case.process.signal
    stood = f" in {place(frame)}" if frame else ""
    if signal in _CRASH_SIGNALS:
        return Hit(
            suggestion=f"{_subject(case)} was killed by {signal}{stood}: run it alone with faulthandler.",
            frame=frame,
            owner=_owner_at(case, frame),
        )
    hint = "; the system kills processes like this when memory is low" if signal == "SIGKILL" else ""
    return Hit(
        suggestion=f"{_subject(case)} was killed by {signal}{stood}{hint}.", frame=frame, weight=0.72
    )


def own_internal_error(case: Case) -> Hit | None:
    """The error was raised by this plugin."""
    last = next((frame for frame in reversed(case.frames) if frame.side is not Side.STDLIB), None)
    # Nothing of the project took part, or only as its caller.
    if last is None or (case.raised_at is not None and case.evidence.kind is not EvidenceKind.SESSION):
        return None
    if top_level(last.module or "") not in _OURSELVES and not _OUR_PATH.search(last.path):
        return None
    return Hit(
        suggestion=(
            f"pytest-planverify failed in {place(last)}: {error_text(case.error)}. Report it; the "
            "project is not at fault."
        ),
        frame=last,
    )


def output_closed(case: Case) -> Hit | None:
    """Standard output was closed while pytest was still using it."""
    error, last = case.error, case.innermost
    if last is None or not last.path.endswith("_pytest/capture.py"):
        return None
    if error.message != "I/O operation on closed file" and error.errno != errno.EBADF:
        return None
    return Hit(
        suggestion=f"{_subject(case)} closes sys.stdout or sys.stderr.",
        owner=Owner.PRODUCT if case.product_changed and not case.tests_changed else None,
    )


_COMPLAINT = re.compile(
    r"^[ \t]*+(?:(?:.*: )?error: unrecognized arguments?: (?P<options>.*[^ \t\r\n])|"
    r"(?:.*: )?Unknown config option: (?P<setting>\S+)|"
    r"(?:/.*/[^\s/]*|\S*)python[\w.\-]*: No module named '?(?P<module>_?pytest|pluggy|iniconfig)'?|"
    r"(?:ERROR: )?(?:file or directory not found|not found): (?P<file>.*[^ \t\r\n])|"
    r"(?:ERROR: )?Wrong expression passed to '(?P<flag>-[km])': (?P<why>.*[^ \t\r\n]))[ \t\r]*$",
    re.MULTILINE,
)
"""A line in which pytest, or its interpreter, says why it does not start."""


@lru_cache(maxsize=16)  # several rules query the same case, which is hashed by identity
def _complaint_of_pytest(case: Case) -> dict[str, str | None]:
    """Return the parts of pytest's complaint in the session's report or streams; empty if there is none."""
    evidence = case.evidence
    texts, empty = (evidence.longrepr, evidence.stderr_tail, evidence.stdout_tail), dict[str, str | None]()
    return next((found.groupdict() for found in map(_COMPLAINT.search, texts) if found), empty)


def option_of_absent_plugin(case: Case) -> Hit | None:
    """pytest was given an option or a setting that no installed plugin knows."""
    complaint = _complaint_of_pytest(case)
    if setting := complaint.get("setting"):
        what, plugins = (
            f"the setting {quote(setting)}",
            dict.fromkeys(filter(None, [PLUGIN_OF_SETTING.get(setting)])),
        )
        names, giver = [setting], "of its ini file"
    elif options := (complaint.get("options") or "").split():
        plugins = dict.fromkeys(
            plugin
            for option in options
            for start, plugin in PLUGIN_OF_OPTION.items()
            if option.startswith(start) and (start.startswith("--") or option.rstrip("0123456789") == start)
        )
        # Without values, since a worker's options contain paths that the user did not write.
        given = dict.fromkeys(option.partition("=")[0] for option in options if option.startswith("-"))
        names, giver = list(given or options), "of the command or of addopts"
        what = quote(", ".join(names))
    else:
        return None
    written = _added_setting(case, names[0])
    giver = f"which {written.path}:{written.line} now gives" if written else giver
    brings = ", ".join(plugins) or "the plugin that defines it, or remove it"
    return Hit(
        suggestion=f"pytest does not know {what}{', ' if written else ' '}{giver}: install {brings}.",
        weight=1.0 if plugins else 0.85,
        location=written,
    )


def _added_setting(case: Case, word: str) -> Location | None:
    """Return the line of a changed file, neither product nor test, that the change added with a word."""
    for hunk in case.evidence.hunks:
        lines = hunk.text.splitlines() if hunk.side is None else []
        # The hunk's line is that of its first change, which unchanged lines precede in the text.
        line = hunk.line - len(list(takewhile(lambda text: text.startswith(" "), lines)))
        for text in lines:
            if text.startswith("+") and word in text:
                return Location(path=hunk.path, line=line)
            line += text.startswith((" ", "+"))
    return None


def pytest_not_installed(case: Case) -> str | None:
    """The interpreter of the command cannot start pytest."""
    module = _complaint_of_pytest(case).get("module")
    return module and f"The interpreter of the command does not have {module}: install pytest there."


def argument_refused(case: Case) -> Hit | str | None:
    """pytest was given a file that does not exist, or an expression that it cannot read."""
    complaint = _complaint_of_pytest(case)
    if file := complaint.get("file"):
        named = f"The command names {file}, which does not exist."
        return Hit(suggestion=named, location=Location(path=file.partition("::")[0]))
    flag, why = complaint.get("flag"), complaint.get("why")
    return flag and f"pytest cannot read the expression after {flag}: {quote(why or '')}."


def process_left_early(case: Case) -> Hit | None:
    """The process ended before its session said that it was over."""
    process, frame = case.process, case.stuck_at
    code = "no exit code" if process.exit_code is None else f"exit code {process.exit_code}"
    return Hit(
        suggestion=f"{_subject(case)}: the process ended with {code} before the session was finished; look "
        "for os._exit, sys.exit or a crash in native code.",
        frame=frame,
        owner=_owner_at(case, frame),
        weight=0.8 if process.exit_code is None else 1.0,
    )


def usage_error(case: Case) -> str | None:
    """pytest rejected its arguments or its configuration."""
    detail = quote(case.evidence.headline)
    rejected = f"pytest rejected its arguments or its configuration{f': {detail}' if detail else ''}."
    return rejected if case.process.exit_code == _USAGE else None


def unexplained_internal_error(case: Case) -> str | None:
    """The session ended with an internal error that left no trace."""
    detail = quote(case.evidence.headline)
    ended = f"pytest ended with an internal error that it did not explain{f': {detail}' if detail else ''}."
    return ended if case.process.exit_code == _INTERNAL else None


def red_without_a_failure(case: Case) -> str | None:
    """The session ended red although no test failed."""
    if not case.process.complete or not case.process.exit_code:
        return None
    return (
        f"The session ended with exit code {case.process.exit_code} without a failing test: a hook "
        "of the project or a threshold of a plugin, such as coverage, set it."
    )
