"""Tells the story of a run, of one todo in it, or how well the way of working did."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.arguments import plan_or_usual
from planner.cli.ending import Status, UsageMistake, complain
from planner.edges.offering import PLAN_ENDINGS
from planner.errors import LogError
from planner.model.events import PlanSubmitted
from planner.planfile.loader import collector_paused, shown_path
from planner.rules.reviewing import Reviewing, judge
from planner.rules.telling import run_stands, tell, todo_stands
from planner.store.recorded_run import run_of_log
from planner.store.run_log import is_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.cli.screen import Screen
    from planner.planfile.loader import LoadedPlan
    from planner.rules.run_view import RunView
    from planner.rules.telling import Sentence
    from planner.store.recorded_run import RecordedRun
    from planner.store.run_log import Step

_ROOM = 10
"""Columns of the time beside a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which run is to be told of, and what of it."""

    path: Path | None = None
    """A plan, or the log of a run."""
    todo: str | None = None
    log: Path | None = None
    store: str | None = None
    run_id: str | None = None
    review: bool = False


def asked_for(
    word: str | None,
    todo: str | None,
    plan: Path | None,
    *,
    log: Path | None,
    store: str | None,
    run_id: str | None,
    review: bool,
) -> Asked | None:
    """The run whose story the words of the command line ask for; ``None`` where a meaning is asked for.

    ``word`` is a plan or a log where there is such a file; else, where options name a run, a todo of it.
    """
    if log is not None and (store is not None or run_id is not None):
        raise UsageMistake("--log names one run; give it without --store and --run")
    if review and todo is not None:
        raise UsageMistake("--review is of a whole run; leave the todo out")
    names_run = log is not None or store is not None
    path = (
        Path(word) if word is not None and _is_file_of_a_run(word, todo is not None or names_run) else None
    )
    if path is not None and names_run and is_log(path):
        raise UsageMistake(f"{path} is the log of a run; leave --log and --store out")
    if path is None:
        if todo is not None:
            raise UsageMistake(f"there is no plan '{word}' in which '{todo}' could be explained")
        if not (names_run or run_id is not None or review):
            return None
        path, todo = plan if names_run else plan_or_usual(plan), word
        if review and todo is not None:
            raise UsageMistake(f"there is no plan '{todo}'; --review is of a whole run")
    asked = Asked(path=path, todo=todo, log=log, store=store, run_id=run_id, review=review)
    is_kept = names_run or path is None or is_log(path) or usual_story(path, run_id) is not None
    return asked if is_kept or todo is None or review else None


def _is_file_of_a_run(word: str, is_meant: bool) -> bool:
    """Whether it is the path of a plan or of a log, and no word that a file happens to be called by."""
    path = Path(word)
    return path.is_file() and (is_meant or path.suffix in PLAN_ENDINGS or is_log(path))


def tell_story(screen: Screen, asked: Asked) -> int:
    """Tell it. Raises :class:`planner.errors.PlannerError` where the run cannot be read, at that place."""
    with ExitStack() as held, collector_paused():
        run = _run(asked, held)
        first = next(run.steps)
        for remark in _of_this_plan(asked, first):
            screen.remark(remark)
        steps = chain([first], run.steps)
        status = _review(screen, steps) if asked.review else _story(screen, first, steps, asked.todo)
        for remark in run.remarks:
            complain(remark)
        return status


def usual_story(plan: Path, run_id: str | None) -> Path | None:
    """The log of a run that no option names, where it is there."""
    from planner.store.run_log import latest_log

    path = latest_log(_plan(plan), run_id)
    return path if path.is_file() else None


def _run(asked: Asked, held: ExitStack) -> RecordedRun:
    if asked.store is not None:
        return _stored(asked, asked.store, held)
    if asked.log is not None:
        return run_of_log(asked.log)
    assert asked.path is not None
    if is_log(asked.path):
        return run_of_log(asked.path)
    usual = usual_story(asked.path, asked.run_id)
    if usual is None:
        raise UsageMistake(
            f"there is no log of a run of {shown_path(asked.path)}; name it with --log, or its store with "
            "--store"
        )
    return run_of_log(usual)


def _stored(asked: Asked, url: str, held: ExitStack) -> RecordedRun:
    """The run of that id; without one, the latest, of the plan where one is named."""
    from planner.store.index import Index

    index = held.enter_context(Index.open(url, create=False))
    plan_id = None if asked.path is None else _plan(asked.path).plan.todo_list_id
    runs = index.logs(plan_id, asked.run_id)
    if not runs:
        which = "" if asked.run_id is None else f" '{asked.run_id}'"
        which += "" if plan_id is None else f" of the plan '{plan_id}'"
        raise LogError(f"{index.name}: there is no run{which}; planner history lists those that are there")
    return run_of_log(runs[0])


def _of_this_plan(asked: Asked, first: Step) -> Iterator[str]:
    """Refuse the run of another plan than the one that was named."""
    event = first.event
    assert isinstance(event, PlanSubmitted)  # a fold begins with it
    if asked.path is None or is_log(asked.path):
        return
    loaded = _plan(asked.path)
    shown, name = shown_path(asked.path), loaded.plan.todo_list_id
    if name != event.plan.todo_list_id:
        raise LogError(
            f"this is a run of the plan '{event.plan.todo_list_id}', and {shown} is '{name}'; name the log "
            "of another run"
        )
    if loaded.digest != event.digest:
        yield f"{shown} has changed since the run began; what follows is of the plan as it was then"


def _plan(path: Path) -> LoadedPlan:
    from planner.planfile.loader import load_plan

    return load_plan(path)


def _story(screen: Screen, first: Step, steps: Iterable[Step], todo: str | None) -> int:
    since, run = first.after.now, first.after
    began = datetime.fromtimestamp(since, UTC)
    event = first.event
    assert isinstance(event, PlanSubmitted)
    whose = event.plan.todo_list_id if todo is None else f"{todo} of {event.plan.todo_list_id}"
    title = screen.style(screen.one_line(whose), "strong")
    run_id = f", run {screen.one_line(event.run_id)}" if event.run_id else ""
    screen.line(f"{title}  times count from {began:%Y-%m-%d %H:%M:%S} UTC{run_id}")
    for event, actions, before, run in steps:
        _tell(screen, elapsed(run.now - since), tell(event, actions, before, run, todo))
        if todo is None:
            screen.show()
    return _end(screen, run, todo)


def _end(screen: Screen, run: RunView, todo: str | None) -> int:
    if todo is not None and todo not in run.records:
        from planner.cli.arguments import nearest

        complain(f"the run has no todo '{todo}'; {nearest(todo, sorted(run.records), 'the todos are')}")
        return Status.FOUND
    _tell(screen, "now", run_stands(run) if todo is None else todo_stands(run, todo))
    screen.line()
    screen.line("planner explain RULE tells of a rule in brackets.")
    screen.show()
    return Status.OK


def _review(screen: Screen, steps: Iterable[Step]) -> int:
    reviewing, run = Reviewing(), None
    for event, actions, before, run in steps:
        reviewing.see(event, actions, before, run)
    assert run is not None  # there is a first step
    marks = {True: (screen.glyphs.done, "good"), False: (screen.glyphs.failed, "bad"), None: ("-", "quiet")}
    for each in judge(reviewing.tally(run)):
        mark, style = marks[each.met]
        lead = f"{screen.style(mark, style)} {each.id:<18} "
        screen.paragraph(each.sentence, indent=21, first=lead)
    screen.show()
    return Status.OK


def _tell(screen: Screen, when: str, told: Iterable[Sentence]) -> None:
    """Sentences of one moment: the time stands beside the first."""
    label = when
    for each in told:
        room = max(_ROOM, len(label) + 1)
        first = screen.style(f"{label:<{room}}", "quiet")
        screen.paragraph(each.with_rule, indent=_ROOM, first=first)
        label = ""


def elapsed(seconds: float) -> str:
    """A time since the beginning: ``+0:00:04``, ``+1d 02:00:00``."""
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"+{days}d {hours:02}:{minutes:02}:{rest:02}"
    return f"+{hours}:{minutes:02}:{rest:02}"
