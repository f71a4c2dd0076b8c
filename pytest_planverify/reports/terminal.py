"""Output of a run at its end: its summary, or, for ``--collect-only``, the tree of todos and tests.

The summary has one line for each todo, details of what is open, and root causes. The lines of the todos
have columns, whose widths are computed for all todos of a plan before the first is written. No text is
truncated: prose is wrapped at words, but a line with a node id, a command or a path is not, so that these
can be copied.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import CheckKind, TestOutcome, Verdict
from planner.policy.outcomes import failures_of
from planner.text.display import cells, counted, padded, wrapped
from pytest_planverify.checks.result import title_of
from pytest_planverify.reports.screen import GAP, INDENT, ReportScreen, Style, StyledText, widest
from pytest_planverify.reports.words import (
    EXIT_WORDS,
    TESTS_SINCE,
    UNCOUNTED,
    WORDS,
    Standing,
    duration,
    facts_of,
    headline,
    name_of,
    number,
    ratio,
    standing,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _pytest._io import TerminalWriter

    from planner.model.outcome import Cause, Check, Failure, Outcome, OutcomeDocument
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan

CheckKey = tuple[str, str, str]
"""Plan id, todo id, check id."""

Longreprs = Mapping[CheckKey, Sequence[tuple[str, str]]]
"""By check, the failed node ids, each with pytest's own rendering of the failure."""

Selected = Mapping[tuple[str, str], Sequence[str]]
"""Node ids selected by each check, by todo id and check id."""

LABEL = 7
"""Width of the label column under a todo: ``where`` and a gap."""

CAUSE_LABEL = 10
"""Width of the label column of the root causes, and of the notes below them."""

SHORTEST_TITLE = 16
"""Cells. If the column of titles had fewer, other columns are left out first."""

MOST_LINES = 8
"""Lines of one error message that are shown without ``-v``."""

MOST_OTHERS = 3
MOST_CHANGES = 3
MOST_CAUSES = 4

_COUNTS = ("checks", "tests", "time")
"""Right-aligned columns, which are empty for a todo that was not run."""


def render_summary(
    tw: TerminalWriter,
    document: OutcomeDocument,
    *,
    plans: Sequence[LoadedPlan] = (),
    verbosity: int = 0,
    outcomes_path: str | None = None,
    longreprs: Longreprs | None = None,
) -> None:
    """Write the summary of a run.

    ``plans`` provide the names of the plans. ``verbosity`` is pytest's: below zero only open todos are
    written, above zero also every check and the tracebacks in ``longreprs``. ``outcomes_path`` is shown as
    the file with all outcomes.
    """
    screen = ReportScreen(tw)
    summary = _Summary(screen, document, verbosity > 0, outcomes_path)
    if verbosity < 0:
        summary.write_quietly()
    else:
        if verbosity > 0 and longreprs:
            _write_tracebacks(longreprs, screen)
        summary.write_plans({loaded.plan.todo_list_id: loaded.plan.workflow_name for loaded in plans})
        summary.write_causes()
        summary.write_comparison()
        summary.write_notes()
    screen.rule(*final_line(document))


def final_line(document: OutcomeDocument) -> tuple[str, Style]:
    """Return the final line, as ``3 done, 1 failed, 2 blocked in 1.24s``, and its style.

    Todos of which this run verified nothing are counted after it, as ``kept from earlier runs: 1 failed``.
    An accepted run is shown in green only if all todos are done.
    """
    outcomes = document.outcomes
    verified = _tally(outcome for outcome in outcomes if not _is_kept(outcome))
    kept = _tally(filter(_is_kept, outcomes))
    word, style = EXIT_WORDS.get(
        document.run.exit_status, (f"exit status {document.run.exit_status}", Style.BAD)
    )
    counts = ", ".join(filter(None, (word, verified))) or ("nothing verified" if kept else "no todos")
    if style is Style.GOOD and any(standing(outcome) is not Standing.DONE for outcome in outcomes):
        style = Style.WARN
    from_before = f"; kept from earlier runs: {kept}" if kept else ""
    return f"{counts} in {duration(document.run.duration_ms)}{from_before}", style


def _tally(outcomes: Iterable[Outcome]) -> str:
    """Return how many todos have each standing, as ``3 done, 1 failed``; empty without todos."""
    tally = Counter(map(standing, outcomes))
    return ", ".join(f"{tally[name]} {WORDS[name].text}" for name in Standing if tally[name])


class _Row(NamedTuple):
    """The line of a todo: its texts by column, and the tail."""

    cells: dict[str, StyledText]
    tail: str
    """Skipped tests, metric values, the blocking todo, or the run that the verdicts are from; it is written
    below the line if it does not fit."""


class _Summary:
    """Writes the parts of a summary; a failure of several todos is written in full once."""

    def __init__(
        self, screen: ReportScreen, document: OutcomeDocument, verbose: bool, outcomes_path: str | None
    ) -> None:
        self._screen = screen
        self._document = document
        self._verbose = verbose
        self._outcomes_path = outcomes_path
        self._written: dict[tuple[object, ...], str] = {}
        """By the content of a failure, the todo under which it was written in full."""

    def write_quietly(self) -> None:
        """Write one line for each open todo with its first reason, so that programs find one for each."""
        for outcome in self._document.outcomes:
            if not standing(outcome).is_open:
                continue
            failures = list(failures_of(outcome))
            checks = (check for check in outcome.checks if check.verdict is not Verdict.PASSED)
            reasons = (check.reason or check.title for check in checks)
            reason = headline(failures[0]) if failures else next(filter(None, reasons), "")
            word = WORDS[standing(outcome)]
            self._screen.line(
                StyledText(f"{word.shown(self._screen.glyphs)} ", word.style),
                StyledText(self._screen.text(name_of(outcome, self._document)), Style.STRONG),
                StyledText(f": {self._screen.text(reason)}" if reason else ""),
            )

    def write_plans(self, names: Mapping[str, str | None]) -> None:
        """Write the todos of each plan under its name, that of the workflow or else its id, and path."""
        screen, document = self._screen, self._document
        screen.blank()
        known = {ref.todo_list_id: ref.path for ref in document.plans}
        todos: dict[str, list[Outcome]] = {plan_id: [] for plan_id in known}
        for outcome in document.outcomes:
            todos.setdefault(outcome.plan or "", []).append(outcome)
        for plan_id, outcomes in todos.items():
            name = StyledText(screen.text(names.get(plan_id) or plan_id), Style.STRONG)
            path = StyledText(screen.text(known.get(plan_id, "")), Style.QUIET)
            screen.line(name, StyledText(GAP), path)
            self._write_todos(outcomes)
            screen.blank()

    def _write_todos(self, outcomes: Sequence[Outcome]) -> None:
        """Write the line and the details of each todo; a blank line follows one that needs attention."""
        rows = _rows_of(outcomes, self._screen)
        columns = _fitted(rows, self._screen)
        detailed = False
        shown_tails: set[str] = set()
        for outcome, row in zip(outcomes, rows, strict=True):
            if detailed:
                self._screen.blank()
            # Many todos can be left out for one reason, which is shown with the first of them only.
            is_repeated = standing(outcome) is Standing.NOT_RUN and row.tail in shown_tails
            shown_tails.add(row.tail)
            _write_row(row._replace(tail="") if is_repeated else row, columns, self._screen)
            if self._verbose:
                self._write_checks(outcome.checks)
            detailed = standing(outcome).is_open and (self._verbose or not _is_known(outcome))
            if detailed:
                self._write_details(outcome)
            else:
                self._write_reasons(outcome)

    # -- what is open ------------------------------------------------------------------------------

    def _write_details(self, outcome: Outcome) -> None:
        """Write why a todo is not done, and what to do next."""
        failures = list(failures_of(outcome))
        is_new = bool(failures) and self._write_failure(failures[0], outcome.todo_id)
        self._write_reasons(outcome)
        self._write_unexplained(outcome, {failure.check_id for failure in failures})
        # Of the todo's other failures a few are shown, and the rest is counted.
        alike: dict[str, list[Failure]] = {}
        for failure in failures[1:]:
            alike.setdefault(headline(failure), []).append(failure)
        for text, same in [*alike.items()][:MOST_OTHERS]:
            self._prose("also", text if len(same) == 1 else f"{len(same)} times {text}")
        if left := [failure for same in [*alike.values()][MOST_OTHERS:] for failure in same]:
            count = sum(max(len(failure.tests), 1) for failure in left)
            where = f"; every node id is in {self._outcomes_path}" if self._outcomes_path else ""
            self._prose("", f"and {count} more{where}")
        if is_new:
            self._line("rerun", failures[0].rerun or "", Style.COMMAND)

    def _write_failure(self, failure: Failure, todo_id: str) -> bool:
        """Write one failure: why, which test, the message, where, what changed, the remedy, who acts.

        Of a failure that is in full under another todo, only a reference and the test are written; then the
        result is ``False``.
        """
        facts = facts_of(failure)
        content = (failure.category, failure.stack_trace_head, failure.suggestion, failure.location)
        # Two failures of which nothing but the category is known need not be the same.
        shown_under = self._written.setdefault(content, todo_id) if any(content[1:]) else todo_id
        if shown_under != todo_id:
            self._prose("why", f"{failure.category}: as for {shown_under}", Style.WARN)
            self._write_tests(failure)
            return False
        self._prose("why", facts["why"], Style.WARN)
        if self._verbose:
            self._prose("rule", facts.get("rule", ""))
            self._prose("or", facts.get("or", ""))
            self._line("more", f"planverify explain {failure.rule}" if failure.rule else "")
        if not self._write_tests(failure):
            self._prose("check", failure.check_id or "")
        self._write_message(failure.stack_trace_head or "")
        if place := failure.location:
            self._line("where", place.shown + (f" in {place.function}" if place.function else ""))
        for hunk in failure.suspected_changes[:MOST_CHANGES]:
            where = f" in {hunk.function}" if hunk.function else ""
            self._line("changed ", f"{hunk.path}:{hunk.line} (+{hunk.added} -{hunk.removed}){where}")
        self._prose("fix", facts.get("fix", ""))
        self._prose("found", facts.get("found", ""))
        self._prose("who", facts.get("who", ""), Style.STRONG)
        return True

    def _write_tests(self, failure: Failure) -> bool:
        """Write the first failing test and the number of others; return whether there is any."""
        tests = failure.top_failing_tests or failure.tests
        if tests:
            more = max(len(set(failure.tests)), len(set(tests))) - 1
            self._line("test", tests[0] + (f" and {more} more" if more > 0 else ""))
        return bool(tests)

    def _write_message(self, message: str) -> None:
        room = self._screen.width - INDENT - LABEL
        parts = [part for line in self._screen.texts(message) for part in wrapped(line, room)]
        # One line too many is shown: the line that counts the omitted ones would take the same room.
        most = len(parts) if self._verbose or len(parts) == MOST_LINES + 1 else MOST_LINES
        for label, part in zip(("says", *[""] * most), parts[:most], strict=False):
            self._line(label, part, Style.QUOTE)
        if parts[most:]:
            self._line("", f"and {len(parts) - most} more lines; -v shows them", Style.QUIET)

    def _write_reasons(self, outcome: Outcome) -> None:
        """Write the reasons of passed checks, and of checks whose quarantine applies or has ended."""
        notable = (
            check.reason
            for check in outcome.checks
            if check.verdict is Verdict.PASSED or check.quarantined or check.quarantine_ended
        )
        for reason in () if self._verbose else dict.fromkeys(notable):  # -v has it below the check itself
            self._prose("note", reason or "")

    def _write_unexplained(self, outcome: Outcome, explained: set[str | None]) -> None:
        """Write for each open check without a diagnosis what it waits for, or why it is not passed."""
        written: set[str] = set()
        for check in outcome.checks:
            if check.verdict in (Verdict.PASSED, Verdict.BLOCKED) or check.id in explained:
                continue
            if check.verdict is Verdict.NEEDS_HUMAN:
                self._write_question(check)
                continue
            reason = f": {check.reason}" if check.reason else ""
            # Several checks may wait for the same thing, which is said once.
            verb = "" if check.verdict is Verdict.FAILED else "is "
            statement = f"{verb}{WORDS[check.verdict].text}{reason}"
            if statement not in written and not (check.reason and self._verbose):
                written.add(statement)
                self._prose("why", f"{check.id} {statement}")
        if not outcome.checks and not explained:
            self._prose("why", "nothing was checked: the todo has no criteria, or none ran")

    def _write_question(self, check: Check) -> None:
        """Write the question of a manual check, a problem with an old answer, and the command to answer."""
        question = check.title or check.cmd or check.id
        self._prose("asks", question, Style.STRONG)
        # As checks.manual words it: a problem with an old answer; the question; "answer: " and the command.
        # From the end, as the question may contain the word, too.
        problem, opening, command = (check.reason or "").rpartition("answer: ")
        self._prose("", problem.partition(question)[0].rpartition("; ")[0] if opening else command)
        self._line("answer", command if opening else "")

    def _write_checks(self, checks: Sequence[Check]) -> None:
        """Write every check with its verdict, for ``-v``."""
        screen = self._screen
        words = widest([WORDS[check.verdict].shown(screen.glyphs) for check in checks])
        ids = widest([screen.text(check.id) for check in checks])
        for check in checks:
            word = WORDS[check.verdict]
            head = (
                StyledText(padded(word.shown(screen.glyphs), words) + GAP, word.style),
                StyledText(padded(screen.text(check.id), ids)),
            )
            text = screen.text(check.title or check.cmd or "")
            facts = StyledText("".join(GAP + fact for fact in _facts(check)), Style.QUIET)
            screen.line(*head, StyledText(text and GAP + text), facts, indent=INDENT)
            # A question is written with its command instead.
            remark = "" if check.verdict is Verdict.NEEDS_HUMAN else check.reason
            if check.exit_code and not check.reason:
                remark = f"exit status {check.exit_code}"
            screen.paragraph(screen.text(remark or ""), style=Style.QUIET, indent=INDENT * 2)

    # -- the run -----------------------------------------------------------------------------------

    def write_causes(self) -> None:
        """Write the root causes in the order of repair, unless the todos already show all of it."""
        causes = self._document.causes
        # One cause that makes one todo fail says nothing more than the todo.
        if max(len(causes), *(len(cause.todos) for cause in causes), 0) < 2:
            return
        shown = causes if self._verbose else causes[:MOST_CAUSES]
        because = ""
        for cause in shown:
            # Neighbours have their places for one reason, which is shown with the first of them only.
            before, because = because, cause.because
            reason = "" if because == before else because
            self._write_cause(cause, str(cause.rank).rjust(len(str(shown[-1].rank))), reason)
        if left := len(causes) - len(shown):
            text = f"and {counted(left, 'cause')} more; -v shows {'it' if left == 1 else 'them'}"
            self._screen.line(StyledText(text, Style.QUIET), indent=CAUSE_LABEL)
        self._screen.blank()

    def _write_cause(self, cause: Cause, rank: str, because: str) -> None:
        screen = self._screen
        head = [
            StyledText(("fix first" if cause.rank == 1 else "then").ljust(CAUSE_LABEL), Style.QUIET),
            StyledText(rank + GAP, Style.STRONG),
            StyledText(str(cause.category), Style.WARN),
        ]
        todos = counted(len(cause.todos), "todo")
        todos = f"'{cause.todos[0].todo_id}'" if len(cause.todos) == 1 else todos
        found = ((cause.tests, "test"), (cause.files, "test file"))
        extent = " and ".join(counted(count, noun) for count, noun in found if count)
        if cause.location:
            head.append(StyledText(GAP + screen.text(cause.location.shown)))
        head.append(StyledText(GAP + screen.text(f"{extent} in {todos}".strip()), Style.STRONG))
        screen.line(*head)
        indent = CAUSE_LABEL + len(head[1].text)
        screen.paragraph(screen.text(cause.headline), style=Style.QUOTE, indent=indent)
        screen.paragraph(screen.text(because), style=Style.QUIET, indent=indent)

    def write_comparison(self) -> None:
        """Write the comparison of the tests with the baseline; earlier failures are counted separately."""
        counts = self._document.summary.tests_since
        if not counts:
            return
        spans = [StyledText("baseline".ljust(CAUSE_LABEL), Style.QUIET)]
        for since, (text, style) in TESTS_SINCE.items():
            if count := counts.get(since, 0):
                spans += [StyledText(", " if spans[1:] else ""), StyledText(f"{count} {text}", style)]
        self._screen.line(*(spans if spans[1:] else [*spans, StyledText("no new failures")]))

    def write_notes(self) -> None:
        """Write the notes of the run, and the file with the outcomes."""
        screen = self._screen
        for note in dict.fromkeys(self._document.run.notes):
            screen.labelled("note", screen.text(note), style=Style.WARN, indent=0, column=CAUSE_LABEL)
        if self._outcomes_path:
            label = StyledText("outcomes".ljust(CAUSE_LABEL), Style.QUIET)
            screen.line(label, StyledText(screen.text(self._outcomes_path)))

    # -- lines below a todo ------------------------------------------------------------------------

    def _prose(self, label: str, text: str, style: Style = Style.PLAIN) -> None:
        """Write a label and wrapped prose, nothing without a text."""
        if text:
            text = self._screen.text(text)
            self._screen.labelled(label, text, style=style, indent=INDENT, column=LABEL)

    def _line(self, label: str, text: str, style: Style = Style.PLAIN) -> None:
        """Write a label and a text without wrapping, nothing without a text."""
        if text:
            spans = StyledText(label.ljust(LABEL), Style.QUIET), StyledText(self._screen.text(text), style)
            self._screen.line(*spans, indent=INDENT)


# -- the lines of the todos -----------------------------------------------------------------------


def _rows_of(outcomes: Sequence[Outcome], screen: ReportScreen) -> list[_Row]:
    """Return the rows of a plan's todos with printable texts; those of sub-plans are indented."""
    above = {each.todo_id: _above(each.todo_id) for each in outcomes}
    parents = {parent for each in above.values() for parent in each} & above.keys()
    rows: list[_Row] = []
    for outcome in outcomes:
        todo_id, name = outcome.todo_id, standing(outcome)
        # All verdicts are from earlier runs: there is no news about the todo.
        is_quiet = (
            name is Standing.DONE and bool(outcome.checks) and all(c.taken_from for c in outcome.checks)
        )
        depth = sum(parent in parents for parent in above[todo_id])
        # Of the todos below, only those without a sub-plan of their own, as ``planner status`` counts them.
        parts = [
            standing(each) is Standing.DONE
            for each in (outcomes if todo_id in parents else ())
            if todo_id in above[each.todo_id] and each.todo_id not in parents
        ]
        title, progress = screen.text(outcome.title or ""), f"({sum(parts)}/{len(parts)})" if parts else ""
        texts = {
            "word": WORDS[name].shown(screen.glyphs),
            "id": GAP * depth + screen.text(todo_id.rpartition("/")[2] if depth else todo_id),
            "title": f"{'' if title == todo_id else title} {progress}".strip(),
        }
        if not is_quiet and name not in (Standing.BLOCKED, Standing.NOT_RUN):
            seen = {  # a test shared by two checks counts once
                test.nodeid: not test.outcome.is_red
                for check in outcome.checks
                for test in check.tests
                if test.outcome not in UNCOUNTED
            }
            spent = outcome.metrics.duration_ms
            texts["checks"] = _ratio(
                [check.counts_as is Verdict.PASSED for check in outcome.checks], "check"
            )
            texts["tests"] = _ratio(list(seen.values()), "test") if seen else ""
            texts["time"] = "" if spent is None else duration(spent)
        styles = {} if is_quiet else {"word": WORDS[name].style, "id": Style.STRONG}
        usual = Style.QUIET if is_quiet else Style.PLAIN
        spans = {column: StyledText(text, styles.get(column, usual)) for column, text in texts.items()}
        rows.append(_Row(spans, screen.text(_tail(outcome, name))))
    return rows


def _is_known(outcome: Outcome) -> bool:
    """Return whether an earlier run has shown why the todo fails, and this one ran none of its commands."""
    return _is_kept(outcome) and any(check.verdict is not Verdict.PASSED for check in outcome.checks)


def _is_kept(outcome: Outcome) -> bool:
    """Return whether the todo stands as an earlier run left it, and this one ran none of its commands."""
    checks = outcome.checks
    decisive = [check for check in checks if check.verdict is not Verdict.PASSED] or checks
    is_carried = all(check.taken_from for check in checks if check.cmd)
    # What blocks a todo can be new.
    is_blocked = standing(outcome) is Standing.BLOCKED
    return is_carried and not is_blocked and any(check.taken_from for check in decisive)


def _above(todo_id: str) -> list[str]:
    """Return the qualified ids of the parents of a todo, the topmost first."""
    parts = todo_id.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _fitted(rows: Sequence[_Row], screen: ReportScreen) -> dict[str, int]:
    """Return the columns that fit, with their widths; without a terminal all fit."""
    found = {
        name: widest([row.cells[name].text for row in rows if name in row.cells])
        for name in ("word", "id", "title", *_COUNTS)
    }
    every = {name: width for name, width in found.items() if width}
    # A path in a title is not broken.
    word = widest([part for row in rows for part in row.cells["title"].text.split()])
    # The title is narrowed and wrapped in its column, then the count of tests is left out, and at last the
    # title moves below the line, again without the tests if they do not fit.
    for left_out in ((), ("tests",), ("title",), ("title", "tests")):
        columns = {name: width for name, width in every.items() if name not in left_out}
        title = columns.get("title", 0)
        total = sum(columns.values()) + len(GAP) * (len(columns) - 1)
        room = title + (screen.columns or total) - total
        if room >= (max(min(title, SHORTEST_TITLE), word) if title else 0):
            return columns | {"title": min(title, room)} if title else columns
    return {name: width for name, width in every.items() if name != "title"}


def _write_row(row: _Row, columns: Mapping[str, int], screen: ReportScreen) -> None:
    """Write the line of one todo, and below it the texts that do not fit."""
    title, below = row.cells["title"], [row.tail]
    # A title has as many lines as its column needs, or is below the line if there is no such column.
    first, *others = wrapped(title.text, columns.get("title", 1)) or [""]
    shown = row.cells | {"title": title._replace(text=first)}
    line = [
        StyledText(padded(cell.text, columns[name], right=name in _COUNTS) + GAP, cell.style)
        for name, cell in shown.items()
        if name in columns
    ]
    if title.text and "title" not in columns:
        below, others = [title.text, row.tail], []
    elif sum(cells(span.text) for span in line) + cells(row.tail) <= (screen.columns or sys.maxsize):
        line.append(StyledText(row.tail, Style.QUIET))
        below = []
    screen.line(*line)
    for text in others:
        screen.line(StyledText(text, title.style), indent=columns["word"] + columns["id"] + 4)
    screen.paragraph(", ".join(filter(None, below)), style=Style.QUIET, indent=INDENT)


def _ratio(results: Sequence[bool], noun: str) -> str:
    """Return the results as :func:`ratio` does, in cells of one column."""
    if not results:
        return f"no {noun}s"
    return ratio(sum(results), len(results), noun) + " " * (len(results) == 1)  # as wide as the plural


def _tail(outcome: Outcome, name: Standing) -> str:
    """Return what :attr:`_Row.tail` is for a todo of that standing; may be empty."""
    if name is Standing.BLOCKED:
        nearest, *rest = outcome.blocked_by or ("a dependency",)
        return f"by {nearest}" + (f" and {len(rest)} more" if rest else "")
    if name is Standing.NOT_RUN:
        parts = (part for check in outcome.checks if check.reason for part in check.reason.split("; "))
        return "; ".join(dict.fromkeys(parts))
    runs = [check.taken_from for check in outcome.checks if check.taken_from]
    # Ids of runs begin with their time, so that the greatest is that of the latest.
    if name is Standing.DONE and runs and len(runs) == len(outcome.checks):
        return f"from run {max(runs)} (unchanged since)"
    is_parent = any(check.kind is CheckKind.SUB_PLAN for check in outcome.checks)
    unproved = name is Standing.DONE and not outcome.verified and not is_parent
    tests = (test for check in outcome.checks for test in check.tests)
    skipped = {test.nodeid for test in tests if test.outcome is TestOutcome.SKIPPED}
    parts = (
        "not verified" if unproved else "",
        f"{len(skipped)} skipped" if skipped and name is Standing.DONE else "",
        f"{counted(len(runs), 'check')} from run {max(runs)}" if runs else "",
        *_metric_values(outcome),
    )
    return ", ".join(filter(None, parts))


def _metric_values(outcome: Outcome) -> Iterator[str]:
    """Yield ``rows_min=250 (>= 10)`` for every recorded metric, with its condition if the plan has one."""
    titles = [check.title or "" for check in outcome.checks if check.kind is CheckKind.METRIC]
    conditions = {name: condition for name, _, condition in (title.partition(" ") for title in titles)}
    for name, values in outcome.recorded.items():
        shown = [number(value) for value in dict.fromkeys(values)]
        listed = ", ".join([*shown[:4], "..."] if len(shown) > 4 else shown)
        condition = f" ({conditions[name].strip()})" if conditions.get(name) else ""
        yield f"{name}={listed if len(shown) == 1 else f'[{listed}]'}{condition}"


def _facts(check: Check) -> Iterator[str]:
    """Yield counts, duration and origin of a check, each a short text; only what is known and not 0."""
    if run := [test for test in check.tests if test.outcome not in UNCOUNTED]:
        yield ratio(sum(not test.outcome.is_red for test in run), len(run), "test")
    if check.runs is not None and check.reds:
        yield f"failed {check.reds} of {check.runs}"
    if check.duration_ms:
        yield duration(check.duration_ms)
    if check.taken_from:
        yield f"from run {check.taken_from}"


def _write_tracebacks(longreprs: Longreprs, screen: ReportScreen) -> None:
    """Write each failing test's traceback once, however many checks share it."""
    shown: set[CheckKey] = set()
    for (plan_id, todo_id, _), failures in longreprs.items():
        for nodeid, longrepr in failures:
            # Another sub-plan may have another root, with tests of the same node ids.
            key = (plan_id, todo_id.rpartition("/")[0], nodeid)
            if key in shown:
                continue
            shown.add(key)
            screen.blank()
            screen.rule(screen.text(f"{todo_id}: {nodeid}"), Style.BAD, fill="_")
            for line in screen.texts(longrepr):
                screen.line(StyledText(line, Style.QUOTE if line.startswith(("E ", ">")) else Style.PLAIN))


# -- the tree of --collect-only -------------------------------------------------------------------


def render_tree(
    tw: TerminalWriter,
    plan: LoadedPlan,
    selected: Selected,
    problems: Mapping[tuple[str, str], Sequence[str]] | None = None,
    *,
    verbosity: int = 0,
    todo_ids: Collection[str] | None = None,
) -> None:
    """Write the tree of a plan, in which each level is indented by two columns more.

    ``problems`` are sentences on what is wrong with the selection of a check, by todo id and check id.
    ``todo_ids`` limits the tree to the requested todos; ``None`` means the whole plan. With a negative
    verbosity only the node ids are written, each once, for use in a pipe.
    """
    screen = ReportScreen(tw)
    nodeids = dict.fromkeys(nodeid for found in selected.values() for nodeid in found)
    if verbosity < 0:
        for nodeid in nodeids:
            screen.line(StyledText(screen.text(nodeid)))
        return

    def write(level: int, text: str, counts: Sequence[str], style: Style = Style.STRONG) -> None:
        total = StyledText(f"  ({', '.join(counts)})" if counts else "", Style.QUIET)
        screen.line(StyledText(screen.text(text), style), total, indent=len(GAP) * level)

    todos = [todo for todo in plan.plan.items if todo_ids is None or todo.id in todo_ids]
    name = plan.plan.workflow_name or plan.plan.todo_list_id
    write(0, name, [counted(len(todos), "todo"), counted(len(nodeids), "test")])
    shown = {todo.id for todo in todos}
    nested: dict[str, list[Todo]] = {}
    """By id of a parent that is shown, the todos of its sub-plan; under ``""`` those at the top."""
    for todo in todos:
        above = todo.id.rpartition("/")[0]
        # Selected todos may be shown without their parents; they then stand at the top.
        nested.setdefault(above if above in shown else "", []).append(todo)

    def write_todos(parent: str, level: int) -> None:
        """Write the todos of one plan, each followed by its criteria and the todos of its sub-plan."""
        for todo in nested.get(parent, ()):
            criteria, below = plan.criteria.get(todo.id, ()), nested.get(todo.id, ())
            tests = {nodeid for each in criteria for nodeid in selected.get((todo.id, each.id), ())}
            counts = [
                *([counted(len(below), "todo")] if below else []),
                *([] if below and not criteria else [counted(len(criteria), "criterion")]),
                *([counted(len(tests), "test")] if tests else []),
            ]
            name = todo.id.removeprefix(f"{parent}/") if parent else todo.id
            write(level, name if todo.title == name else f"{name}{GAP}{todo.title}", counts)
            for criterion in criteria:
                key = todo.id, criterion.id
                found = selected.get(key, ())
                counts = [counted(len(found), "test")] if criterion.kind is CheckKind.TEST else []
                write(level + 1, f"{criterion.id}{GAP}{title_of(criterion)}", counts, Style.PLAIN)
                for problem in (problems or {}).get(key, ()):
                    write(level + 2, f"! {problem}", (), Style.WARN)
                for nodeid in found:
                    write(level + 2, nodeid, (), Style.QUIET)
            write_todos(todo.id, level + 1)

    write_todos("", 1)
