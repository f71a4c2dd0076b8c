"""``planner design`` and ``workflow``: create, review, freeze and export a design plan, step by step.

The commands parse the words of the command line and print results. The plan itself, its reviews and the
rules of its gates are in :mod:`planner.authoring.design`; every change goes through ``StateFolder``,
which validates the whole plan before it writes.

The workflows lead through the creation and the execution of a design plan, step by step. Their steps are
data (``workflows/*.toml``) and rendered as XML; the pattern of a step selects guidance that is added to it.
Rendering a step decides and changes nothing: its reader does the work by other commands.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from planner.authoring.design.export import Match, plan_of_design
from planner.authoring.design.export import reconcile as compare
from planner.authoring.design.parts import (
    KINDS,
    add_part,
    blank_of,
    change_part,
    fields_of,
    part_of,
    remove_part,
)
from planner.authoring.design.plan import ReviewPhase, find_gaps
from planner.authoring.design.state_folder import LARGEST_READ, StateFolder
from planner.authoring.design.state_folder import render as render_template
from planner.authoring.first_plan import plan_text, root_for
from planner.catalog.tables import load_table
from planner.cli.app import CommandGroup, command, command_app
from planner.cli.arguments import nearest, option
from planner.cli.exits import Status, UsageMistake, as_called, program, say
from planner.cli.screen import Screen, print_json, write
from planner.model.base import Value
from planner.planfile.loader import load_plan
from planner.planfile.project_files import open_regular
from planner.text.sanitizing import without_surrogates

STATE_DIR = "PLANNER_STATE_DIR"
"""The environment variable that is used where ``--state-dir`` is not given."""

EPILOG = (
    "Exit status: 0 done, 1 something blocks the gate, is missing or deviates, 2 wrong usage, 4 refused, "
    "or a file cannot be used; then nothing was changed."
)
StateOption = Annotated[
    Path, option("--state-dir DIR", "The folder of the plan and its reviews.", envvar=STATE_DIR)
]
NewStateOption = Annotated[
    Path | None,
    option(
        "--state-dir DIR", "The folder of the plan. Default of init: a temporary one.", envvar=STATE_DIR
    ),
]
WordsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE",
        help="FIELD=TEXT, FIELD=@FILE (@- is standard input), LIST+=TEXT to append, FIELD.INNER=TEXT.",
    ),
]
PartArgument = Annotated[
    str, typer.Argument(metavar="PART", help="M-001, DL-002, W-1, overview, plan-design/qa-001 …")
]

app = command_app(cls=CommandGroup, no_args_is_help=True)


@app.callback()
def design() -> None:
    """Write a design plan, review it at gates, freeze it, and compare it with the result.

    planner workflow plan --step 1 shows what to do and in which order. Do not edit plan.json by hand: each
    command checks the whole plan, and changes nothing if a reference would break.
    """


@app.command(epilog=EPILOG)
def init(words: WordsArgument = None, state_dir: NewStateOption = None) -> None:
    """Start a design plan with title=TEXT, problem=TEXT and approach=TEXT."""
    folder = StateFolder.create(state_dir, _words(words))
    say(f"wrote {folder.plan_file}")
    _say_next(STEPS["plan", 2].command, folder)


@app.command(epilog=EPILOG)
def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS))],
    state_dir: StateOption,
    words: WordsArgument = None,
    to: Annotated[
        str | None, option("--to PLACE", "The milestone of an intent or change; the phase of an item.")
    ] = None,
) -> None:
    """Add a part, or an item of a review.

    Prints its id. Without fields, lists the possible fields.
    """
    if kind not in KINDS:
        raise UsageMistake(f"unknown kind '{kind}'; {nearest(kind, KINDS, 'the kinds are')}")
    if not words:
        raise UsageMistake(
            f"add {kind}: name its fields: {', '.join(fields_of(blank_of(KINDS[kind].model)))}"
        )
    phase = _phase(to or "") if kind == "item" else None
    with StateFolder(state_dir).edit(phase) as data:
        name = add_part(data, kind, _words(words), to=None if phase else to)
    say(f"{phase}/{name}" if phase else name)


@app.command("set", epilog=EPILOG)
def set_(part: PartArgument, state_dir: StateOption, words: WordsArgument = None) -> None:
    """Change a part, or answer an item with status=PASS, or with status=FAIL finding=TEXT."""
    if not words:
        raise UsageMistake(f"set {part}: name a field, FIELD=VALUE; show {part} prints the fields")
    phase, _, name = part.rpartition("/")
    with StateFolder(state_dir).edit(_phase(phase) if phase else None) as data:
        change_part(data, name, _words(words))
    say(f"{part}: changed")


@app.command(epilog=EPILOG)
def remove(part: PartArgument, state_dir: StateOption) -> None:
    """Remove a part that nothing refers to. Review items cannot be removed."""
    with StateFolder(state_dir).edit() as data:
        remove_part(data, part)
    say(f"{part}: removed")


@app.command(epilog=EPILOG)
def show(
    state_dir: StateOption,
    part: Annotated[
        str | None, typer.Argument(metavar="PART", help="A part or a phase. Default: the whole plan.")
    ] = None,
) -> None:
    """Show the plan as its page, or as JSON a part, or the items of a phase."""
    folder = StateFolder(state_dir)
    if part is None:
        write(render_template("plan.md", plan=folder.plan()))
    elif part in tuple(ReviewPhase):
        print_json(folder.review(ReviewPhase(part)).model_dump(mode="json"))
    else:
        print_json(part_of(folder.plan().model_dump(mode="json"), part))


@app.command(epilog=EPILOG)
def context(state_dir: StateOption) -> None:
    """Check context.json, and freeze it."""
    folder = StateFolder(state_dir)
    folder.freeze_context()
    say(f"{folder.context_file}: frozen")


@app.command(epilog=EPILOG)
def render(state_dir: StateOption) -> None:
    """Write plan.md from the plan; the last gate of planning writes it, too."""
    say(f"wrote {StateFolder(state_dir).write_page()}")


@app.command(epilog=EPILOG)
def gate(
    phase: Annotated[ReviewPhase, typer.Argument(help="plan-design, plan-code, plan-docs …")],
    state_dir: StateOption,
    decision: Annotated[
        Literal["pass", "fail"] | None,
        typer.Argument(
            metavar="pass|fail", help="Default: show what blocks the gate.", case_sensitive=False
        ),
    ] = None,
) -> int:
    """Decide a gate, or show what blocks it.

    A phase passes when no item blocks it and the plan lacks nothing. Passing plan-docs freezes the plan
    permanently and writes plan.md.

    In iterations 1 and 2 every item blocks that has not passed, in 3 and 4 MUST and SHOULD, from 5 on MUST.
    """
    folder = StateFolder(state_dir)
    if decision is not None:
        passed = decision == "pass"
        after = folder.decide_gate(phase, passed=passed)
        frozen = ", the plan is frozen" if passed and phase is ReviewPhase.PLAN_DOCS else ""
        say(f"{phase.value}: {after.state.value}, iteration {after.iteration}{frozen}")
        _say_next(step_after_gate(phase, passed=passed).command, folder)
        return Status.OK
    gate = folder.gates().gate(phase)
    obstacles = [] if gate.is_complete else folder.obstacles(phase)
    screen = Screen()
    screen.line(f"{phase.value}: {gate.state.value}, iteration {gate.iteration}")
    for line in obstacles:
        screen.paragraph(as_called(line), indent=2)
    screen.show()
    if obstacles:
        return Status.FOUND
    after = step_after_gate(phase, passed=True).command
    _say_next(after if gate.is_complete else f"planner design gate {phase.value} pass", folder)
    return Status.OK


@app.command(epilog=EPILOG)
def export(
    state_dir: StateOption,
    output: Annotated[Path, option("--output, -o FILE", "The file to write; - is standard output.")],
    force: Annotated[bool, option("--force", "Replace an existing file.")] = False,
) -> None:
    """Write a plan for pytest --planverify.

    Each milestone of the frozen design becomes a todo; it depends on the wave before.
    """
    from planner.cli.new_plans import refuse_existing, write_plans

    refuse_existing(output, force=force)
    here = Path.cwd()
    plan = plan_of_design(StateFolder(state_dir).plan(), root=root_for(here / output, here))
    write_plans({output: plan_text(plan, [f"Made by {program()} design export."])})


@app.command(epilog=EPILOG)
def reconcile(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan that was exported and verified.")],
    state_dir: StateOption,
) -> int:
    """Compare the design with the verified result: each milestone is verified, missing or deviating."""
    screen, counts = Screen(), Counter[Match]()
    for milestone, match, because in compare(StateFolder(state_dir).plan(), load_plan(plan)):
        why = f" \N{EN DASH} {as_called(because)}" if because else ""
        screen.line(screen.one_line(f"{milestone.id} {match.value}: {milestone.name}{why}"))
        counts[match] += 1
    screen.line(", ".join(f"{counts[match]} {match.value}" for match in Match))
    screen.show()
    return Status.OK if set(counts) <= {Match.VERIFIED} else Status.FOUND


def _say_next(then: str, folder: StateFolder) -> None:
    say(as_called(f"next: {then} --state-dir {shlex.quote(str(folder.path))}"))


def _phase(name: str) -> ReviewPhase:
    """Return the phase of that name. Raises ``UsageMistake``."""
    try:
        return ReviewPhase(name)
    except ValueError:
        raise UsageMistake(f"'{name}' is not a phase; the phases are {', '.join(ReviewPhase)}") from None


def _words(words: list[str] | None) -> list[str]:
    """Return the assignments ``FIELD=VALUE`` with each ``@FILE`` replaced by the text of the file.

    A value that begins with ``@@`` is a diff and taken as it is; ``@-`` is standard input. Raises
    ``UsageMistake`` if a file cannot be read or is not UTF-8.
    """
    texts: list[str] = []
    for word in words or ():
        field, sign, text = without_surrogates(word).partition("=")
        if text.startswith("@") and not text.startswith("@@"):
            try:
                # A regular file only: a pipe or device could block, or never end.
                with sys.stdin.buffer if text == "@-" else open_regular(text[1:]) as file:
                    text = file.read(LARGEST_READ).decode()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
                raise UsageMistake(f"{text}: it cannot be read ({reason}); name another file") from None
        texts.append(f"{field}{sign}{text}")
    return texts


# -- workflows -----------------------------------------------------------------------------------------

_PACKAGE = "planner.authoring.design"
_GUIDANCE = load_table("guidance", _PACKAGE)


class WorkflowStep(Value):
    """One row of the table of a workflow."""

    workflow: str
    number: int
    name: str
    pattern: Literal["init", "verify", "execute", "qr", "gate"]
    agent: str
    phase: ReviewPhase | None = None
    """The phase to whose work, review or gate the step belongs."""
    reads: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shows_waves: bool = False

    @property
    def command(self) -> str:
        """The command that shows the step, without the state directory."""
        return f"planner workflow {self.workflow} --step {self.number}"


STEPS = {
    (name, number): WorkflowStep.model_validate({"workflow": name, "number": number, **row})
    for name in ("plan", "execute")
    for number, row in enumerate(load_table(f"workflows/{name}", _PACKAGE)["steps"], 1)
}
"""The steps by workflow and number, which begins with 1, in the order in which they are carried out."""


def step_after_gate(phase: ReviewPhase, *, passed: bool) -> WorkflowStep:
    """Return the step that follows a decision: the next, or the work of the phase, two before its gate."""
    steps = list(STEPS.values())
    place = next(at for at, each in enumerate(steps) if each.pattern == "gate" and each.phase is phase)
    return steps[place + 1 if passed else place - 2]


def render_step(step: WorkflowStep, state_dir: Path | None) -> str:
    """Return a step as XML: role, inputs, outputs, state of the review, actions, and the next command.

    ``state_dir`` is ``None`` for the first step, before the folder is made. Raises
    :class:`planner.errors.DesignError` if it is not the step's turn.
    """
    steps = list(STEPS.values())
    place = steps.index(step)
    shown: dict[str, Any] = {"gate": None, "milestones": (), "waves": ()}
    if state_dir is not None and place > 0:
        folder = StateFolder(state_dir)
        plan = folder.plan()
        folder.check_passed(each.phase for each in steps[:place] if each.phase and each.pattern == "gate")
        if step.phase is not None:
            folder.check_turn(step.phase)
            gate = folder.gates().gate(step.phase)
            items = folder.review(step.phase).blocking(gate)
            shown |= {"gate": gate, "items": items, "gaps": find_gaps(plan, step.phase)}
        if step.shows_waves:
            shown |= {"milestones": plan.milestones, "waves": plan.waves}
    after = steps[place + 1] if place + 1 < len(steps) else None
    if step.phase is not None and step.pattern == "gate":
        shown["on_fail"] = step_after_gate(step.phase, passed=False)
    return render_template(
        "step.xml",
        step=step,
        count=sum(each.workflow == step.workflow for each in steps),
        role=_GUIDANCE["roles"][step.agent],
        guidance=_GUIDANCE["patterns"].get(step.pattern),
        commands=[
            each.replace("{phase}", str(step.phase))
            for each in (*step.commands, *_GUIDANCE["commands"].get(step.pattern, ()))
        ],
        after=after,
        where="" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}",
        **shown,
    )


@command(EPILOG)
def workflow(
    name: Annotated[
        Literal["plan", "execute"], typer.Argument(metavar="plan|execute", help="The workflow.")
    ],
    step: Annotated[int, option("--step N", "The step: 1 to 11 of plan, 1 to 9 of execute.")] = 1,
    state_dir: NewStateOption = None,
) -> None:
    """Print the instructions for a step: the role, the files, the commands, and the next step.

    The output is XML for an agent. Nothing is changed.
    """
    if (name, step) not in STEPS:
        raise UsageMistake(f"--step {step}: the steps are 1 to 11 of plan, 1 to 9 of execute")
    # Only the first step of planning comes before ``design init``, which makes the folder.
    if state_dir is None and (name, step) != ("plan", 1):
        raise UsageMistake(f"--state-dir is missing; name the folder that {program()} design init printed")
    write(as_called(render_step(STEPS[name, step], state_dir)))
