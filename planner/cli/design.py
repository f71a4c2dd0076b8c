"""``planner design`` and ``workflow``: create, review, freeze and export a design plan, step by step.

The commands parse the words of the command line and print results. The plan itself, its reviews and the
rules of its gates are in :mod:`planner.authoring.design`; every change goes through ``StateFolder``,
which validates the whole plan before it writes.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from planner.authoring.design.export import Match, plan_of_design
from planner.authoring.design.export import reconcile as compare
from planner.authoring.design.plan import (
    KINDS,
    Overview,
    add_part,
    assign,
    change_part,
    faults_of,
    fields_of,
    part_of,
    remove_part,
)
from planner.authoring.design.review import ReviewItem, ReviewPhase, blocking_severities, find_gaps
from planner.authoring.design.state_folder import (
    LARGEST_READ,
    STEPS,
    StateFolder,
    render_page,
    render_step,
    step_after_gate,
)
from planner.authoring.first_plan import root_for
from planner.cli.app import CommandGroup, command, command_app
from planner.cli.arguments import JsonOption, nearest, option
from planner.cli.exits import Status, UsageMistake, as_called, program, say
from planner.cli.screen import Screen, print_json, write
from planner.errors import DesignError
from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
from planner.planfile.loader import load_plan, load_plan_text
from planner.planfile.project_files import open_regular
from planner.planfile.writer import dump_plan
from planner.text.display import counted

STATE_DIR = "PLANNER_STATE_DIR"
"""The environment variable that is used where ``--state-dir`` is not given."""

EPILOG = "Exit status: 0 done, 2 wrong usage, 4 refused, nothing was changed."
StateOption = Annotated[
    Path, option("--state-dir DIR", "The folder of the plan and its reviews.", envvar=STATE_DIR)
]
WordsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE",
        help="FIELD=TEXT, FIELD=@FILE (@- is standard input), LIST+=TEXT to append, FIELD.INNER=TEXT.",
    ),
]
PhaseArgument = Annotated[str, typer.Argument(metavar="PHASE", help="plan-design, plan-code, plan-docs …")]

app = command_app(cls=CommandGroup, no_args_is_help=True)


@app.callback()
def design() -> None:
    """Write a design plan, review it at gates, freeze it, and compare it with the result.

    planner workflow plan --step 1 shows what to do and in which order. Do not edit plan.json by hand: each
    command checks the whole plan, and changes nothing if a reference would break.
    """


@app.command(epilog="Exit status: 0 made, 4 there is already a plan, or the folder cannot be written.")
def init(
    words: Annotated[
        list[str], typer.Argument(metavar="FIELD=VALUE", help="title=TEXT, problem=TEXT, approach=TEXT")
    ],
    state_dir: Annotated[
        Path | None,
        option(
            "--state-dir DIR", "The folder of the plan. Default: a new temporary folder.", envvar=STATE_DIR
        ),
    ] = None,
) -> int:
    """Start a design plan."""
    raw: dict[str, Any] = {}
    assign(raw, Overview, _words(words), "overview")
    try:
        overview = Overview.model_validate(raw)
    except ValidationError as error:
        raise DesignError("overview", faults_of(error)) from None
    folder = StateFolder.create(state_dir, overview)
    say(f"wrote {folder.plan_file}")
    say(f"next: {program()} workflow plan --step 2 --state-dir {shlex.quote(str(folder.path))}")
    return Status.OK


@app.command(epilog=EPILOG)
def add(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="decision, alternative, constraint, risk, milestone, intent, change, wave or item.",
        ),
    ],
    state_dir: StateOption,
    words: WordsArgument = None,
    to: Annotated[
        str | None, option("--to PLACE", "The milestone of an intent or change; the phase of an item.")
    ] = None,
) -> int:
    """Add a part, or an item of a review.

    Prints its id. Without fields, lists the possible fields.
    """
    models = {**{name: each.model for name, each in KINDS.items()}, "item": ReviewItem}
    if kind not in models:
        raise UsageMistake(f"unknown kind '{kind}'; {nearest(kind, models, 'the kinds are')}")
    if not words:
        raise UsageMistake(f"add {kind}: name its fields: {', '.join(fields_of(models[kind]))}")
    folder, given = _folder(state_dir), _words(words)
    if kind == "item":
        phase = _phase(to or "")
        say(f"{phase.value}/{folder.add_item(phase, given).id}")
        return Status.OK
    # The id is chosen under the lock of the folder, so the edit itself reports it.
    made: list[str] = []

    def added(plan: Any) -> Any:
        new, name = add_part(plan, kind, given, now=datetime.now(UTC), within=to)
        made.append(name)
        return new

    folder.edit_plan(added)
    say(made[0])
    return Status.OK


NameArgument = Annotated[
    str, typer.Argument(metavar="PART", help="M-001, DL-002, W-1, overview, plan-design/qa-001 …")
]


@app.command("set", epilog=EPILOG)
def set_(part: NameArgument, state_dir: StateOption, words: WordsArgument = None) -> int:
    """Change a part, or set the status of an item.

    The status of a review item is set with status=PASS, or with status=FAIL finding=TEXT.
    """
    folder, given = _folder(state_dir), _words(words)
    if not given:
        raise UsageMistake(f"set {part}: name a field, FIELD=VALUE; show {part} prints the fields")
    phase, slash, item_id = part.partition("/")
    if slash:
        item = folder.answer_item(_phase(phase), item_id, given)
        say(f"{part}: {item.status.value}")
        return Status.OK
    folder.edit_plan(lambda plan: change_part(plan, part, given))
    say(f"{part}: changed")
    return Status.OK


@app.command(epilog=EPILOG)
def remove(part: NameArgument, state_dir: StateOption) -> int:
    """Remove a part that nothing refers to. Review items cannot be removed."""
    if "/" in part:
        raise UsageMistake(
            f"{part}: an item cannot be removed; set its status: design set {part} status=PASS"
        )
    _folder(state_dir).edit_plan(lambda plan: remove_part(plan, part))
    say(f"{part}: removed")
    return Status.OK


@app.command(epilog="Exit status: 0 shown, 2 wrong usage, 4 a file that cannot be used.")
def show(
    state_dir: StateOption,
    part: Annotated[
        str | None, typer.Argument(metavar="PART", help="A part or a phase. Default: the whole plan.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the plan, a part, or a review.

    The plan is shown as its page, the others as JSON.
    """
    folder = _folder(state_dir)
    if part in tuple(ReviewPhase):
        print_json(folder.review(ReviewPhase(part)).model_dump(mode="json"))
    elif part is not None:
        print_json(part_of(folder.plan(), part))
    elif as_json:
        print_json(folder.plan().model_dump(mode="json"))
    else:
        write(render_page(folder.plan()))
    return Status.OK


@app.command(
    epilog=(
        "Exit status: 0 nothing is missing, 1 something is missing, 2 wrong usage, 4 a file cannot be used."
    )
)
def validate(
    state_dir: StateOption,
    phase: Annotated[
        str | None,
        option("--phase PHASE", "The phase to check. Default: the first whose gate has not passed."),
    ] = None,
) -> int:
    """List what the plan lacks.

    Every reference is checked, and everything that a phase needs at its end.
    """
    folder = _folder(state_dir)
    planning = [each for each in ReviewPhase if each.is_of_planning]
    gates = folder.gates()
    wanted = (
        next((each for each in planning if not gates.gate(each).is_complete), planning[-1])
        if phase is None
        else _phase(phase)
    )
    gaps = find_gaps(folder.plan(), wanted)
    screen = Screen()
    for gap in gaps:
        screen.paragraph(as_called(gap))
    screen.line(f"{wanted.value}: {'complete' if not gaps else f'{len(gaps)} to fix'}")
    screen.show()
    return Status.FOUND if gaps else Status.OK


@app.command(epilog=EPILOG)
def context(state_dir: StateOption) -> int:
    """Check context.json, and freeze it."""
    folder = _folder(state_dir)
    notes = folder.freeze_context()
    say(f"{folder.context_file}: frozen; the task is: {Screen().one_line(notes.task_spec[0])}")
    return Status.OK


@app.command(epilog=EPILOG)
def render(state_dir: StateOption) -> int:
    """Write plan.md from the plan; the last gate of planning writes it, too."""
    say(f"wrote {_folder(state_dir).write_page()}")
    return Status.OK


@app.command(
    epilog="Exit status: 0 decided, or nothing blocks the gate; 1 something blocks it; 2 wrong usage; "
    "4 the decision is refused."
)
def gate(
    phase: PhaseArgument,
    state_dir: StateOption,
    decision: Annotated[
        str | None,
        typer.Argument(metavar="pass|fail", help="pass or fail. Default: show what blocks the gate."),
    ] = None,
) -> int:
    """Decide a gate, or show what blocks it.

    A phase passes when no item blocks it and the plan lacks nothing. Passing plan-docs freezes the plan
    permanently and writes plan.md.

    In iterations 1 and 2 every item blocks that has not passed, in 3 and 4 MUST and SHOULD, from 5 on MUST.
    """
    folder, which = _folder(state_dir), _phase(phase)
    if decision is None:
        return _show_gate(folder, which)
    if decision.casefold() not in ("pass", "fail"):
        raise UsageMistake(f"'{decision}' is not a decision; write pass or fail")
    passed = decision.casefold() == "pass"
    decided = folder.decide_gate(which, passed=passed)
    frozen = ", the plan is frozen" if passed and which is ReviewPhase.PLAN_DOCS else ""
    say(f"{which.value}: {decided.state.value}, iteration {decided.iteration}{frozen}")
    name, number = step_after_gate(which, passed=passed)
    say(f"next: {program()} workflow {name} --step {number} --state-dir {shlex.quote(str(folder.path))}")
    return Status.OK


@app.command(
    epilog="Exit status: 0 written, 2 wrong usage, 4 the plan is not frozen, or the result cannot be used."
)
def export(
    state_dir: StateOption,
    output: Annotated[Path, option("--output, -o FILE", "The file to write; - is standard output.")],
    force: Annotated[bool, option("--force", "Replace an existing file.")] = False,
) -> int:
    """Write a plan for pytest --planverify.

    Each milestone of the frozen design becomes a todo; it depends on the wave before.
    """
    here = Path.cwd()
    is_shown = output == STANDARD_OUTPUT
    if not is_shown and not force and os.path.lexists(output):
        raise UsageMistake(f"{output} exists already; name another file, or replace it with --force")
    plan = plan_of_design(
        _folder(state_dir).plan(), root="." if is_shown else root_for(here / output, here)
    )
    name = shlex.quote(str(output))
    text = "" if is_shown else f"# Made by planner design export. Verify it: planverify verify {name}\n"
    text += dump_plan(plan, format="yaml")
    load_plan_text(text, Path("plan.yaml") if is_shown else output)  # raises if the plan could not be run
    write_file(output, text, mode=None)
    if not is_shown:
        say(f"wrote {output}: {counted(len(plan.items), 'todo')}")
        say(f"next: {program()} validate {name}")
    return Status.OK


@app.command(
    epilog="Exit status: 0 everything is verified, 1 something is missing or deviates, 2 wrong usage, "
    "4 the plan is of another design, or was not verified in its current state."
)
def reconcile(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan that was exported and verified.")],
    state_dir: StateOption,
    as_json: JsonOption = False,
) -> int:
    """Compare the design with the verified result.

    Each milestone and intent is verified, missing or deviating.
    """
    found = compare(_folder(state_dir).plan(), load_plan(plan))
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        screen = Screen()
        for each in found:
            why = f" \N{EN DASH} {each.because}" if each.because else ""
            line = screen.one_line(f"{each.id} {each.match.value}: {each.title}{why}")
            screen.line(line, indent=2 if each.id.startswith("CI-") else 0)
        counts = Counter(each.match for each in found)
        screen.line(", ".join(f"{counts[match]} {match.value}" for match in Match))
        screen.show()
    return Status.OK if all(each.match is Match.VERIFIED for each in found) else Status.FOUND


def _show_gate(folder: StateFolder, phase: ReviewPhase) -> int:
    """Print the state of a gate and what blocks it; return ``FOUND`` if something does."""
    gate = folder.gates().gate(phase)
    if gate.is_complete:
        say(f"{phase.value}: {gate.state.value}, iteration {gate.iteration}")
        return Status.OK
    obstacles = folder.obstacles(phase)
    screen = Screen()
    severities = ", ".join(each.value for each in blocking_severities(gate.iteration))
    screen.line(f"{phase.value}: {gate.state.value}, iteration {gate.iteration}, blocked by {severities}")
    for line in obstacles:
        screen.paragraph(line, indent=2)
    screen.show()
    return Status.FOUND if obstacles else Status.OK


# -- parsing the command line --------------------------------------------------------------------------


def _folder(path: Path) -> StateFolder:
    if not path.is_dir():
        raise UsageMistake(
            f"--state-dir {path}: the folder does not exist; make it: {program()} design init"
        )
    return StateFolder(path)


def _phase(name: str) -> ReviewPhase:
    """Return the phase of that name, with or without ``qr-``. Raises ``UsageMistake``."""
    try:
        return ReviewPhase(name.removeprefix("qr-"))
    except ValueError:
        phases = ", ".join(each.value for each in ReviewPhase)
        raise UsageMistake(f"'{name}' is not a phase; the phases are {phases}") from None


def _words(words: list[str] | None) -> list[str]:
    """Return the assignments ``FIELD=VALUE`` with each ``@FILE`` replaced by the text of the file."""
    parts = (word.partition("=") for word in words or ())
    return [f"{field}{sign}{_text(text)}" for field, sign, text in parts]


def _text(text: str) -> str:
    """Return the value, or the contents of the file that ``@FILE`` names; ``@-`` is standard input.

    A value that begins with ``@@`` is a diff and taken as it is. At most ``LARGEST_READ`` bytes are read.
    Raises ``UsageMistake`` if the file cannot be read or is not UTF-8.
    """
    if not text.startswith("@") or text.startswith("@@"):
        return text
    try:
        # A regular file only: a pipe or device could block, or never end.
        with sys.stdin.buffer if text == "@-" else open_regular(text[1:]) as file:
            return file.read(LARGEST_READ).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageMistake(f"{text}: it cannot be read ({reason}); name another file") from None


# -- the workflows ------------------------------------------------------------------------------------


@command("Exit status: 0 shown, 2 no such step, 4 an earlier step is missing, or a file cannot be used.")
def workflow(
    name: Annotated[str, typer.Argument(metavar="plan|execute", help="The workflow.")],
    step: Annotated[int, option("--step N", "The step: 1 to 11 of plan, 1 to 9 of execute.")] = 1,
    state_dir: Annotated[
        Path | None,
        option("--state-dir DIR", "The folder of the plan, which step 1 of plan makes.", envvar=STATE_DIR),
    ] = None,
) -> int:
    """Print the instructions for a step: the role, the files, the commands, and the next step.

    The output is XML for an agent. Nothing is changed.
    """
    if name not in STEPS:
        raise UsageMistake(f"unknown workflow '{name}'; {nearest(name, STEPS, 'the workflows are')}")
    if step not in STEPS[name]:
        raise UsageMistake(f"--step {step}: the steps of {name} are 1 to {len(STEPS[name])}")
    # Only the first step of planning comes before ``design init``, which makes the folder.
    if state_dir is None and (name, step) != ("plan", 1):
        raise UsageMistake(f"--state-dir is missing; name the folder that {program()} design init printed")
    write(render_step(name, step, state_dir, program=program()))
    return Status.OK
