"""``planner explain``: what a word, a rule or a todo means, and the story of a run."""

from __future__ import annotations

import shlex
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from planner.cli.app import command_app
from planner.cli.arguments import nearest, plan_or_usual, usual_plan
from planner.cli.completing import complete_plan, complete_todo, complete_word
from planner.cli.ending import Status, UsageMistake, complain, ends, program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.cli.figures import Step
    from planner.cli.glossary import Explanation, Glossary
    from planner.cli.screen import Screen
    from planner.cli.story import Sentence

app = command_app()

_TIME_ROOM = 10
"""Columns of the time beside a sentence."""


@app.command(
    epilog="\b\nExit status: 0 explained, 1 nothing of that name, 2 wrong usage, 4 a file cannot be read.\n"
    "Without a word it lists the topics. A plan, or the log of a run, in place of the word has the story\n"
    "of that run told."
)
@ends
def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD|PLAN",
            help="A category, rule, verdict, state, role, recipe, key of a plan, exit status; a topic; or "
            "a todo of the plan. Or a plan, or the log of a run, whose story is told.",
            autocompletion=complete_word,
        ),
    ] = None,
    todo: Annotated[
        str | None,
        typer.Argument(
            metavar="TODO",
            help="After a plan: only what concerns this todo.",
            autocompletion=complete_todo,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="PLAN",
            help="Explain a todo of this plan. Default: planverify.yaml, plan.yaml or todo.yaml here.",
            autocompletion=complete_plan,
        ),
    ] = None,
    outcomes: Annotated[
        Path | None, typer.Option("--outcomes", metavar="FILE", help="The outcomes of a run of that plan.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Tell the story of the run that this log holds."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Tell the story of a run in this store: the latest of the plan, or that of --run.",
        ),
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="The run that is meant.")] = None,
    review: Annotated[
        bool,
        typer.Option("--review", help="Tell how well the way of working did in that run, and no story."),
    ] = False,
) -> int:
    """Tell in plain words what something means, what the planner does about it, and what to check.

    Of a run: what happened, in order, by which rules, and where it stands.
    """
    from planner.cli.glossary import load_glossary
    from planner.cli.screen import Screen

    screen = Screen()
    if log is not None and (store is not None or run is not None):
        raise UsageMistake("--log names one run; give it without --store and --run")
    is_named = log is not None or store is not None
    wanted = _wanted_run(word, todo, plan, log, is_named=is_named, is_meant=run is not None, review=review)
    if wanted is not None and (store or wanted.todo is None or review or _is_kept(wanted, run)):
        return _tell_run(screen, wanted, store, run, review)
    if word is not None and todo is not None:  # a todo of a plan whose run nobody has kept
        word, plan = todo, Path(word)
    known = load_glossary()
    if word is None:
        return _show_topics(screen, known)
    found = known.find(word)
    for position, each in enumerate(found):
        if position:
            screen.line()
        _show(screen, each)
    topic = known.topic(word)
    if topic is not None:
        found = _show_topic(screen, known, topic)
    todos: tuple[str, ...] = ()
    if plan is None and not found:
        plan = usual_plan()
    if plan is not None:
        todos = _show_todo(screen, plan, outcomes, word, known)
    elif not found:
        todos = known.words()
    if todos and not found:
        near = nearest(word, todos, "planner explain lists the topics; known are")
        complain(f"nothing is called '{word}'; {near}")
        return Status.FOUND
    screen.show()
    return Status.OK


# -- words ---------------------------------------------------------------------------------------------


def _show_topics(screen: Screen, known: Glossary) -> int:
    screen.line("planner explain WORD tells what a word means, planner explain TOPIC lists its words:")
    for kind, words in known.kinds().items():
        screen.clipped(f"  {kind:<30}{len(words):>4}  {', '.join(words)}")
    screen.line("planner explain PLAN tells the story of the plan's last run.")
    screen.show()
    return Status.OK


def _show_topic(screen: Screen, known: Glossary, topic: str) -> list[Explanation]:
    shown = [each for each in known.entries if each.kind == topic]
    for each in shown:
        screen.labelled(each.word, each.means, indent=0, room=max(24, len(each.word) + 1))
    return shown


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


def _show_todo(
    screen: Screen, path: Path, outcomes: Path | None, word: str, known: Glossary
) -> tuple[str, ...]:
    """Show a todo; where the plan has none of that id, show nothing, and return all that has a name."""
    from planner.cli.next import open_run
    from planner.cli.status_screen import show_todo
    from planner.engine.progress import status_tree

    run = open_run(path, outcomes)
    tree = status_tree(run.state)
    node = tree.find(word)
    if node is None:
        return (*(each.id for each in tree.walk()), *known.words())
    show_todo(screen, run, node)
    screen.line(f"  next     planner next {shlex.quote(str(path))} --todo {shlex.quote(node.id)}")
    return ()


# -- runs ----------------------------------------------------------------------------------------------


class _Wanted(NamedTuple):
    """Which run is to be told of."""

    plan: Path | None
    logs: tuple[Path, ...]
    todo: str | None
    """Only what concerns this todo."""


def _wanted_run(
    word: str | None,
    todo: str | None,
    plan: Path | None,
    log: Path | None,
    *,
    is_named: bool,
    is_meant: bool,
    review: bool,
) -> _Wanted | None:
    """Return the run that the command line asks for; ``None`` where a meaning is asked for.

    ``word`` is a plan or a log where there is such a file; else, where options name a run, a todo of it.
    """
    from planner.planfile.discovery import PLAN_ENDINGS
    from planner.store.run_log import is_log

    if review and todo is not None:
        raise UsageMistake("--review is of a whole run; leave the todo out")
    logs = () if log is None else (log,)
    path = None if word is None else Path(word)
    # A word is no file's name unless it looks like that of a plan or log, or a run of it must be meant.
    is_sure = is_named or todo is not None
    if path is not None and path.is_file() and (is_sure or path.suffix in PLAN_ENDINGS or is_log(path)):
        if not is_log(path):
            return _Wanted(path, logs, todo)
        if is_named:
            raise UsageMistake(f"{path} is the log of a run; leave --log and --store out")
        return _Wanted(None, (path,), todo)
    if todo is not None:
        raise UsageMistake(f"there is no plan '{word}' in which '{todo}' could be explained")
    if review and word is not None:
        raise UsageMistake(f"there is no plan '{word}'; --review is of a whole run")
    if not (is_named or is_meant or review):
        return None
    return _Wanted(plan if is_named else plan_or_usual(plan), logs, word)


def _is_kept(wanted: _Wanted, run_id: str | None) -> bool:
    """Return whether the run of a plan that no option names has left its log."""
    from planner.planfile.loader import load_plan
    from planner.store.run_log import latest_log

    return bool(wanted.logs) or (
        wanted.plan is not None and latest_log(load_plan(wanted.plan), run_id).is_file()
    )


def _tell_run(screen: Screen, wanted: _Wanted, store: str | None, run_id: str | None, review: bool) -> int:
    """Tell it. Raises :class:`planner.errors.PlannerError` where the run cannot be read, at that place."""
    from planner.cli.runs import find_runs
    from planner.planfile.loader import collector_paused

    with closing(find_runs(wanted.plan, wanted.logs, store, run_id)) as runs, collector_paused():
        run = next(runs)
        if review:
            _show_review(screen, run.steps)
            status = Status.OK
        else:
            status = _show_story(screen, run.steps, wanted)
        for remark in run.remarks:
            complain(remark)
        return status


def _show_story(screen: Screen, steps: Iterable[Step], wanted: _Wanted) -> int:
    from planner.cli.story import run_stands, tell, todo_stands
    from planner.model.events import PlanSubmitted
    from planner.planfile.loader import load_plan, shown_path

    since, run, todo = 0.0, None, wanted.todo
    for event, actions, before, run in steps:
        if before is None and isinstance(event, PlanSubmitted):
            since = run.now
            if wanted.plan is not None and load_plan(wanted.plan).digest != event.digest:
                screen.remark(
                    f"{shown_path(wanted.plan)} has changed since the run began; what follows is of the "
                    "plan as it was then"
                )
            began = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S} UTC"
            whose = event.plan.todo_list_id if todo is None else f"{todo} of {event.plan.todo_list_id}"
            run_id = f", run {screen.one_line(event.run_id)}" if event.run_id else ""
            title = screen.style(screen.one_line(whose), "strong")
            screen.line(f"{title}  times count from {began}{run_id}")
        _show_sentences(screen, elapsed(run.now - since), tell(event, actions, before, run, todo))
        if todo is None:  # of a todo that is not in the run nothing is shown
            screen.show()
    assert run is not None  # there is a first step
    if todo is not None and todo not in run.records:
        complain(f"the run has no todo '{todo}'; {nearest(todo, sorted(run.records), 'the todos are')}")
        return Status.FOUND
    _show_sentences(screen, "now", run_stands(run) if todo is None else todo_stands(run, todo))
    screen.line()
    screen.line(f"{program()} explain RULE tells of a rule in brackets.")
    screen.show()
    return Status.OK


def _show_review(screen: Screen, steps: Iterable[Step]) -> None:
    from planner.cli.figures import RunCounter, review, spent

    counter = RunCounter()
    for step in steps:
        counter.see(*step)
    marks = {True: (screen.glyphs.done, "good"), False: (screen.glyphs.failed, "bad"), None: ("-", "quiet")}
    figures = counter.figures()
    for each in review(figures):
        mark, style = marks[each.met]
        screen.paragraph(each.sentence, indent=21, first=f"{screen.style(mark, style)} {each.id:<18} ")
    if used := spent(figures):
        screen.paragraph(used, indent=21, first=f"- {'spent':<18} ")
    screen.show()


def _show_sentences(screen: Screen, when: str, told: Iterable[Sentence]) -> None:
    """Show the sentences of one moment: the time stands beside the first."""
    label = when
    for each in told:
        room = max(_TIME_ROOM, len(label) + 1)
        first = screen.style(f"{label:<{room}}", "quiet")
        screen.paragraph(each.with_rule, indent=_TIME_ROOM, first=first)
        label = ""


def elapsed(seconds: float) -> str:
    """Return a time since the beginning: ``+0:00:04``, ``+1d 02:00:00``."""
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"+{days}d {hours:02}:{minutes:02}:{rest:02}"
    return f"+{hours}:{minutes:02}:{rest:02}"
