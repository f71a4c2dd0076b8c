"""``planner explain``: what a word, a rule or a todo means, and the story of a run."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from planner.cli.app import command_app
from planner.cli.arguments import nearest, plan_or_usual, usual_plan
from planner.cli.completing import complete_plan, complete_todo, complete_word
from planner.cli.ending import Status, UsageMistake, complain, ends

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.cli.figures import Step
    from planner.cli.glossary import Explanation, Glossary
    from planner.cli.screen import Screen
    from planner.cli.story import Sentence
    from planner.edges.told_runs import ToldRun

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
    wanted = _wanted_run(word, todo, plan, log=log, store=store, run_id=run, review=review)
    if wanted is not None:
        return _tell_run(screen, wanted, review=review)
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
        from planner.cli.explain_todo import explain_todo

        todos = explain_todo(screen, plan, outcomes, word, known.words())
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


# -- runs ----------------------------------------------------------------------------------------------


class _WantedRun(NamedTuple):
    """Which run is to be told of."""

    plan: Path | None
    log: Path | None
    store: str | None
    run_id: str | None
    todo: str | None
    """Only what concerns this todo."""


def _wanted_run(
    word: str | None,
    todo: str | None,
    plan: Path | None,
    *,
    log: Path | None,
    store: str | None,
    run_id: str | None,
    review: bool,
) -> _WantedRun | None:
    """Return the run that the command line asks for; ``None`` where a meaning is asked for.

    ``word`` is a plan or a log where there is such a file; else, where options name a run, a todo of it.
    """
    from planner.edges.offering import PLAN_ENDINGS
    from planner.edges.told_runs import is_log

    if log is not None and (store is not None or run_id is not None):
        raise UsageMistake("--log names one run; give it without --store and --run")
    if review and todo is not None:
        raise UsageMistake("--review is of a whole run; leave the todo out")
    is_named = log is not None or store is not None
    path = None if word is None else Path(word)
    # A word is no file's name unless it looks like that of a plan or log, or a run of it must be meant.
    if path is not None and not (
        path.is_file() and (is_named or todo is not None or path.suffix in PLAN_ENDINGS or is_log(path))
    ):
        path = None
    if path is None:
        if todo is not None:
            raise UsageMistake(f"there is no plan '{word}' in which '{todo}' could be explained")
        if review and word is not None:
            raise UsageMistake(f"there is no plan '{word}'; --review is of a whole run")
        if not (is_named or run_id is not None or review):
            return None
        path, todo = plan if is_named else plan_or_usual(plan), word
    elif is_log(path):
        if is_named:
            raise UsageMistake(f"{path} is the log of a run; leave --log and --store out")
        path, log = None, path
    if log is None and store is None:
        assert path is not None
        log = _usual_log(path, run_id)
        if log is None and todo is not None:
            return None
    return _WantedRun(path, log, store, run_id, todo)


def _usual_log(plan: Path, run_id: str | None) -> Path | None:
    from planner.edges.usual_log import usual_log
    from planner.planfile.loader import load_plan

    path = usual_log(load_plan(plan), run_id)
    return path if path.is_file() else None


def _tell_run(screen: Screen, wanted: _WantedRun, *, review: bool) -> int:
    """Tell it. Raises :class:`planner.errors.PlannerError` where the run cannot be read, at that place."""
    from planner.planfile.loader import collector_paused

    with ExitStack() as held, collector_paused():
        run = _open(wanted, held)
        first = next(run.steps)
        for remark in _differences(wanted.plan, first):
            screen.remark(remark)
        steps = chain([first], run.steps)
        if review:
            _show_review(screen, steps)
            status = Status.OK
        else:
            status = _show_story(screen, steps, wanted.todo)
        for remark in run.remarks:
            complain(remark)
        return status


def _open(wanted: _WantedRun, held: ExitStack) -> ToldRun:
    from planner.edges.told_runs import run_of_log, run_of_store
    from planner.errors import LogError
    from planner.planfile.loader import load_plan, shown_path

    if wanted.log is not None:
        return run_of_log(wanted.log)
    if wanted.store is None:
        assert wanted.plan is not None
        raise UsageMistake(
            f"there is no log of a run of {shown_path(wanted.plan)}; name it with --log, or its store with "
            "--store"
        )
    from planner.edges.store import Store

    store = held.enter_context(Store.open(wanted.store, create=False))
    if wanted.run_id is not None:
        return run_of_store(store, wanted.run_id)
    plan_id = None if wanted.plan is None else load_plan(wanted.plan).plan.todo_list_id
    runs = store.runs(plan_id)
    if not runs:
        of_plan = "" if plan_id is None else f" of the plan '{plan_id}'"
        raise LogError(
            f"{store.name}: there is no run{of_plan}; planner history lists those that are there"
        )
    return run_of_store(store, runs[0].run_id)


def _differences(plan: Path | None, first: Step) -> Iterable[str]:
    """Refuse the run of another plan than the one that was named; remark on a plan that has changed."""
    from planner.errors import LogError
    from planner.model.events import PlanSubmitted
    from planner.planfile.loader import load_plan, shown_path

    event = first[0]
    assert isinstance(event, PlanSubmitted)  # a fold begins with it
    if plan is None:
        return
    loaded, shown = load_plan(plan), shown_path(plan)
    if loaded.plan.todo_list_id != event.plan.todo_list_id:
        raise LogError(
            f"this is a run of the plan '{event.plan.todo_list_id}', and {shown} is "
            f"'{loaded.plan.todo_list_id}'; name the log of another run"
        )
    if loaded.digest != event.digest:
        yield f"{shown} has changed since the run began; what follows is of the plan as it was then"


def _show_story(screen: Screen, steps: Iterable[Step], todo: str | None) -> int:
    from planner.cli.story import run_stands, tell, todo_stands
    from planner.model.events import PlanSubmitted

    since, run = 0.0, None
    for event, actions, before, run in steps:
        if before is None and isinstance(event, PlanSubmitted):
            since = run.now
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
    screen.line("planner explain RULE tells of a rule in brackets.")
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
