"""``planner explain``: what a word or rule means, and the story of a run."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command
from planner.cli.arguments import complete_todo, complete_word, nearest, option, plan_or_usual, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program
from planner.cli.figures import count_run, review, spent
from planner.cli.glossary import load_glossary
from planner.cli.runs import recorded_runs
from planner.cli.screen import PLAN_STATES, Screen
from planner.cli.story import tell
from planner.model.events import PlanSubmitted
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.loader import collector_paused, load_plan, shown_path
from planner.store.run_log import is_log

if TYPE_CHECKING:
    from planner.cli.glossary import Explanation
    from planner.store.recorded_run import RecordedRun

_TIME_ROOM = 10
"""Columns of the time beside a sentence."""


@command(
    "\b\nExit status: 0 explained, 1 nothing of that name, 2 wrong usage, 4 a file cannot be read.\n"
    "Without a word it lists the topics. A plan, or the log of a run, in place of the word has the story\n"
    "of that run told."
)
def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD|PLAN|LOG",
            help="A category, rule, verdict, state, role, recipe, key of a plan, exit status; a topic. Or "
            "a plan, or the log of a run, whose story is told.",
            autocompletion=complete_word,
        ),
    ] = None,
    todo: Annotated[
        str | None,
        typer.Argument(
            metavar="TODO",
            help="After a plan or a log: only what concerns this todo.",
            autocompletion=complete_todo,
        ),
    ] = None,
    log: Annotated[
        Path | None, option("--log FILE", "Tell the story of the run that this log holds.")
    ] = None,
    review: Annotated[
        bool, option("--review", "Tell how well the way of working did in that run, and no story.")
    ] = False,
) -> int:
    """Tell in plain words what something means, what the planner does about it, and what to check.

    Of a run: what happened, in order, and by which rules.
    """
    path = None if word is None else Path(word)
    if path is not None and is_log(path) and log is None:
        path, log = None, path
    elif path is not None and (todo is not None or log is not None or path.suffix in PLAN_ENDINGS):
        path = plan_or_usual(path)
    elif word is not None and not review:
        return _explain_word(word)
    elif review and log is None:
        path = plan_or_usual(path)
    if path is None and log is None:
        return _show_topics()
    if review and todo is not None:
        raise UsageMistake("--review is of a whole run; leave the todo out")
    return _tell_run(path, log, todo, review=review)


# -- words ---------------------------------------------------------------------------------------------


def _show_topics() -> int:
    screen = Screen()
    screen.line("planner explain WORD tells what a word means, planner explain TOPIC lists its words:")
    for kind, words in load_glossary().kinds().items():
        screen.clipped(f"  {kind:<30}{len(words):>4}  {', '.join(words)}")
    screen.line("planner explain PLAN tells the story of the plan's last run.")
    screen.show()
    return Status.OK


def _explain_word(word: str) -> int:
    known, screen = load_glossary(), Screen()
    for position, each in enumerate(known.find(word)):
        if position:
            screen.line()
        _show(screen, each)
    topic = known.topic(word)
    for each in known.entries:
        if each.kind == topic:
            screen.labelled(each.word, each.means, indent=0, room=max(24, len(each.word) + 1))
    if not known.find(word) and topic is None:
        near = nearest(word, known.words(), "planner explain lists the topics; known are")
        plan = usual_plan()
        of_todo = f"; of a todo: {program()} status {plan} {shlex.quote(word)}" if plan else ""
        complain(f"nothing is called '{word}'; {near}{of_todo}")
        return Status.FOUND
    screen.show()
    return Status.OK


def _show(screen: Screen, each: Explanation) -> None:
    screen.line(f"{screen.style(each.word, 'strong')}  {each.kind}")
    screen.paragraph(each.means, indent=2)
    for name, text in each.facts:
        screen.labelled(name, text)
    if each.do:
        screen.labelled("do", each.do)
    for label, texts in (("check", each.check), ("do", each.steps), ("seen", each.examples)):
        for position, text in enumerate(texts):
            screen.labelled("" if position else label, f"- {text}")
    if each.page:
        screen.labelled("page", each.page)


# -- runs ----------------------------------------------------------------------------------------------


def _tell_run(plan: Path | None, log: Path | None, todo: str | None, *, review: bool) -> int:
    """Tell of the newest run. Raises :class:`planner.errors.PlannerError` where it cannot be read on."""
    *_, run = recorded_runs(plan, [] if log is None else [log])
    with collector_paused():
        status = _show_review(run) if review else _show_story(run, plan, todo)
    for remark in run.remarks:
        complain(remark)
    return status


def _show_story(run: RecordedRun, plan: Path | None, todo: str | None) -> int:
    screen, since, state = Screen(), 0.0, None
    for step in run.steps:
        event, state = step.event, step.after
        if isinstance(event, PlanSubmitted):
            since = state.now
            if plan is not None and load_plan(plan).digest != event.digest:
                screen.remark(
                    f"{shown_path(plan)} has changed since the run began; what follows is of the plan as "
                    "it was then"
                )
            began = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S} UTC"
            whose = state.plan_id if todo is None else f"{todo} of {state.plan_id}"
            run_id = f", run {screen.one_line(event.run_id)}" if event.run_id else ""
            title = screen.style(screen.one_line(whose), "strong")
            screen.line(f"{title}  times count from {began}{run_id}")
        label = elapsed(state.now - since)
        for each in tell(step, todo):  # the time stands beside the first
            first = screen.style(f"{label:<{max(_TIME_ROOM, len(label) + 1)}}", "quiet")
            screen.paragraph(each.text, indent=_TIME_ROOM, first=first)
            label = ""
        if todo is None:  # of a todo that is not in the run nothing is shown
            screen.show()
    assert state is not None  # there is a first step
    if todo is not None and todo not in state.records:
        complain(f"the run has no todo '{todo}'; {nearest(todo, sorted(state.records), 'the todos are')}")
        return Status.FOUND
    screen.line(f"{'now':<{_TIME_ROOM}}the plan is {PLAN_STATES[state.plan_state][0]}")
    screen.line()
    where = (
        ""
        if plan is None
        else f"{program()} status {shlex.quote(str(plan))} tells where each todo stands, "
    )
    screen.line(f"{where}{program()} explain RULE of a rule in brackets.")
    screen.show()
    return Status.OK


def _show_review(run: RecordedRun) -> int:
    screen = Screen()
    figures, _ = count_run(run.steps)
    marks = {True: (screen.glyphs.done, "good"), False: (screen.glyphs.failed, "bad"), None: ("-", "quiet")}
    for each in review(figures):
        mark, style = marks[each.met]
        screen.paragraph(each.sentence, indent=21, first=f"{screen.style(mark, style)} {each.id:<18} ")
    if used := spent(figures):
        screen.paragraph(used, indent=21, first=f"- {'spent':<18} ")
    screen.show()
    return Status.OK


def elapsed(seconds: float) -> str:
    """Return a time since the beginning: ``+0:00:04``, ``+1d 02:00:00``."""
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    return f"+{days}d {hours:02}:{minutes:02}:{rest:02}" if days else f"+{hours}:{minutes:02}:{rest:02}"
