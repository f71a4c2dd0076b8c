"""``planner explain``: what a word, a rule or a todo means, and the story of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import nearest, usual_plan
from planner.cli.completing import complete_plan, complete_todo, complete_word
from planner.cli.ending import Status, complain, ends

if TYPE_CHECKING:
    from planner.cli.screen import Screen
    from planner.edges.explanations import Explanation, Explanations

app = command_app()


@app.command(
    epilog="\b\nExit status: 0 explained, 1 nothing of that name, 2 wrong usage, 4 a file cannot be read.\n"
    "Without a word it lists all that can be explained. A plan, or the log of a run, in place of the word "
    "has the story of that run told."
)
@ends
def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD|PLAN",
            help="A category, rule, verdict, state, role, edit, exit status; or a todo of the plan. "
            "Or a plan, or the log of a run, whose story is told.",
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
    from planner.cli.explain_story import asked_for, tell_story
    from planner.cli.screen import Screen
    from planner.edges.explanations import load_explanations

    screen = Screen()
    asked = asked_for(word, todo, plan, log=log, store=store, run_id=run, review=review)
    if asked is not None:
        return tell_story(screen, asked)
    if word is not None and todo is not None:  # a todo of a plan whose run nobody has kept
        word, plan = todo, Path(word)
    known = load_explanations()
    if word is None:
        _list(screen, known)
        screen.show()
        return Status.OK
    found = known.find(word)
    for position, each in enumerate(found):
        if position:
            screen.line()
        _show(screen, each)
    todos: tuple[str, ...] = ()
    if plan is None and not found:
        plan = usual_plan()
    if plan is not None:
        from planner.cli.explain_todo import explain_todo

        todos = explain_todo(screen, plan, outcomes, word, known)
    elif not found:
        todos = known.words()
    if todos and not found:
        complain(
            f"nothing is called '{word}'; {nearest(word, todos, 'planner explain lists all; known are')}"
        )
        return Status.FOUND
    screen.show()
    return Status.OK


def _list(screen: Screen, known: Explanations) -> None:
    for kind, words in known.kinds().items():
        screen.labelled(kind, ", ".join(words), indent=0, room=30)


def _show(screen: Screen, each: Explanation) -> None:
    screen.line(f"{screen.style(each.word, 'strong')}  {each.kind}")
    screen.paragraph(each.means, indent=2)
    for name, text in each.facts:
        screen.labelled(name, text)
    if each.do:
        screen.labelled("do", each.do)
    for position, text in enumerate(each.check):
        screen.labelled("check" if not position else "", f"- {text}")
    for position, text in enumerate(each.steps):
        screen.labelled("do" if not position else "", f"- {text}")
    for position, text in enumerate(each.examples):
        screen.labelled("seen" if not position else "", f"- {text}")
    if each.page:
        screen.labelled("page", each.page)
