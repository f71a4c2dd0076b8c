"""Build cases whose criterion is a command: real tools on small projects with one fault each."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from command_runs import Runner, Seen, surroundings_of
from edits import Edit, EditError, changed_files, write_files
from tool_projects import Change, Project, ProjectError, read_projects
from toolbox import Toolbox, prepare

from planner.model.base import Value
from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Case, Gates, Group, Label, Origin, Place, Reading, render


class Kind(Value):
    """One kind of fault for one use of a tool, from ``command_kinds.yaml``.

    The label of a kind follows from the change to the project, the plan or the machine, never from the
    output of a tool.
    """

    use: str
    """Key of one of the project's commands."""
    change: str | None = None
    """Key of one of the project's changes; ``None`` if the project is unchanged."""
    tells: str
    category: Category
    owner: Owner = Owner.PRODUCT
    also: tuple[Reading, ...] = ()
    exact: bool = False
    """Whether the tool names the very line."""
    placed: bool = True
    wrong: bool = False
    """Whether the plan's command names something that never existed."""
    surroundings: str = ""
    """Key of the surroundings in which something is missing from the machine."""
    option: str = ""
    """Additional option of the plan's command."""
    suffix: str = ""
    limit: int = 60
    """Time limit of the criterion, in seconds."""

    @property
    def name(self) -> str:
        """Return the name of the kind: the use of the tool, and the fault."""
        fault = self.suffix or self.change or self.surroundings
        return f"{self.use}-{fault}"

    @property
    def needs(self) -> str:
        """Return the tool without which it cannot be built; empty if every machine has it."""
        return TOOL_NEEDS.get(self.use, self.use)


_TABLE: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("command_kinds.yaml").read_text(encoding="utf-8")
)
TOOL_NEEDS = {use: tool for tool, uses in _TABLE["needs"].items() for use in uses.split()}
"""The required tool, if it is not named like the use."""

ALL_KINDS = tuple(
    Kind(use=use, **{key: value for key, value in row.items() if key != "uses"})
    for row in _TABLE["kinds"]
    for use in row["uses"].split()
)

MAX_SHOWN = 400
"""Most characters of the source before and after that are stored."""


def case_of(
    kind: Kind,
    project: Project,
    change: Change | None,
    line: int | None,
    command: str,
    seen: Seen,
    seed: int,
    gates: Gates,
) -> Case:
    """Return the case of one kind in one project."""
    first = change.edits[0] if change else None
    return Case(
        id=f"command-{kind.name}-{project.name}",
        group=Group.COMMAND,
        origin=Origin(
            package=project.name,
            kind=kind.name,
            seed=seed,
            file=first.path if first else None,
            line=line,
            before=first.before[:MAX_SHOWN] if first else "",
            after=first.after[:MAX_SHOWN] if first else "",
            command=command,
            python=seen.python,
            pytest=seen.pytest,
        ),
        gates=gates,
        label=Label(
            category=kind.category,
            owner=kind.owner,
            also=kind.also,
            place=_place(kind, change, line, seen.evidence),
        ),
        evidence=seen.evidence,
    )


def _place(kind: Kind, change: Change | None, line: int | None, evidence: Evidence) -> Place | None:
    if change is None or not kind.placed:
        return None
    raised = change.raises or kind.category is not Category.TEST_REGRESSION
    exact = kind.exact and raised and not change.vague and _is_named(change, line, evidence)
    return Place(path=change.path, first_line=line, last_line=line, exact=exact)


def _is_named(change: Change, line: int | None, evidence: Evidence) -> bool:
    """Return whether the output contains the line; otherwise no diagnosis can name it."""
    text = f"{evidence.stdout_tail}\n{evidence.stderr_tail}"
    name = change.path.rpartition("/")[2]
    forms = (f"{name}:{line}", f'{name}", line {line}', f"{name}({line},", f"{name}: line {line}")
    return any(form in text for form in forms)


KINDS: dict[str, str] = {kind.name: f"{kind.tells} ({kind.use})." for kind in ALL_KINDS}

SECOND = 20
"""In each language, this many of the faults are also put into a second project."""

RED_RUNS = 3

DROPPED: Counter[str] = Counter()
"""Number of cases, by kind, that failed a gate in the last build."""

SKIPPED: dict[str, str] = {}
"""Kinds that could not be built on this machine in the last build, with the missing tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One state of one project, with the kinds whose commands are run on it."""

    project: Project
    change: str | None
    surroundings: str
    kinds: tuple[Kind, ...]

    @property
    def name(self) -> str:
        """Return the name from which random choices are seeded."""
        return f"{self.project.name}:{self.change}:{self.surroundings}"


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case]:
    """Build the cases; ``only`` names kinds or projects. Cases stored in ``work`` are not built again."""
    DROPPED.clear()
    SKIPPED.clear()
    work = work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    toolbox = prepare(work)
    SKIPPED.update({kind.name: kind.needs for kind in ALL_KINDS if kind.needs in toolbox.lacking})
    runner = Runner(toolbox, work / f"case-{os.getpid()}")
    try:
        for state in _states(read_projects(), seed, only):
            yield from _made(state, runner, toolbox, work / "made", seed)
    finally:
        shutil.rmtree(runner.folder_of_cases, ignore_errors=True)


def _states(projects: tuple[Project, ...], seed: int, only: Collection[str]) -> Iterator[State]:
    """Yield every fault in one project of each language, then some in a second one."""
    # What this machine lacks is left out last: it must not change which projects are chosen.
    faults = list(dict.fromkeys((kind.change, kind.surroundings) for kind in ALL_KINDS))
    random.Random(f"{seed}:order").shuffle(faults)
    languages = sorted({project.language for project in projects})
    for rank, some in enumerate((faults, faults[:SECOND])):
        for change, surroundings in some:
            kinds = [
                each for each in ALL_KINDS if (each.change, each.surroundings) == (change, surroundings)
            ]
            for language in languages:
                fit = [each for each in projects if each.language == language and fits(kinds, each)]
                random.Random(f"{seed}:{change}:{surroundings}:{language}").shuffle(fit)
                for project in fit[rank : rank + 1]:
                    chosen = tuple(
                        kind
                        for kind in fits(kinds, project)
                        if kind.name not in SKIPPED
                        and (not only or kind.name in only or project.name in only)
                    )
                    if chosen:
                        yield State(project=project, change=change, surroundings=surroundings, kinds=chosen)


def fits(kinds: Iterable[Kind], project: Project) -> tuple[Kind, ...]:
    """Return the kinds that can be built in a project."""
    return tuple(
        kind
        for kind in kinds
        if kind.name not in project.unfit
        and kind.use in project.commands
        and (not kind.wrong or kind.use in project.wrong)
        and (kind.change is None or kind.change in project.changes)
    )


def _made(state: State, runner: Runner, toolbox: Toolbox, made: Path, seed: int) -> Iterator[Case]:
    kept = {kind: made / f"{_key(state, kind, seed)}.json" for kind in state.kinds}
    drops = {kind: file.with_suffix(".dropped") for kind, file in kept.items()}
    new = [kind for kind in state.kinds if not kept[kind].exists() and not drops[kind].exists()]
    if new:
        made.mkdir(exist_ok=True)
        for kind, found in _cases(state, new, runner, toolbox, seed):
            if isinstance(found, Case):
                kept[kind].write_text(render(found), encoding="utf-8")
            else:
                drops[kind].write_text(found, encoding="utf-8")
                print(f"dropped: {kind.name} on {state.project.name}: {found}", file=sys.stderr, flush=True)
    for kind, file in kept.items():
        if file.exists():
            yield Case.model_validate_json(file.read_text(encoding="utf-8"))
        else:
            DROPPED[kind.name] += 1


def _key(state: State, kind: Kind, seed: int) -> str:
    """Return the key under which a case is stored, so that an interrupted build can continue."""
    project = state.project
    change = project.changes.get(state.change or "")
    told = f"{kind!r}{project.digest}{change!r}{_command(kind, project)}{seed}"
    return f"{kind.name}-{project.name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def _cases(
    state: State, kinds: list[Kind], runner: Runner, toolbox: Toolbox, seed: int
) -> Iterator[tuple[Kind, Case | str]]:
    """Yield each kind with its case, or with the gate that it failed."""
    project = state.project
    change = project.changes[state.change] if state.change else None
    around = surroundings_of(state.surroundings, toolbox)
    not_green = {
        kind: f"not green before: {project.commands[kind.use]}"
        for kind in kinds
        if not runner.green(project, project.commands[kind.use], service=state.surroundings == "no-service")
    }
    yield from not_green.items()
    kinds = [kind for kind in kinds if kind not in not_green]
    if not kinds:
        return
    try:
        line = _put_in(state, change, runner, seed)
    except (ProjectError, EditError) as error:
        yield from ((kind, str(error)) for kind in kinds)
        return
    commands = [_command(kind, project) for kind in kinds]
    limits = [kind.limit for kind in kinds]
    recorded = runner.record(list(zip(commands, limits, strict=True)), around)
    for kind, command, seen in zip(kinds, commands, recorded, strict=True):
        if isinstance(seen, str):
            yield kind, seen
            continue
        red = 1 + sum(runner.is_red(command, kind.limit, around) for _ in range(RED_RUNS - 1))
        if red < RED_RUNS:
            yield kind, f"red {red} times of {RED_RUNS}"
            continue
        gates = Gates(green_before=True, red_runs=red, runs=RED_RUNS)
        yield kind, case_of(kind, project, change, line, command, seen, seed, gates)


def _command(kind: Kind, project: Project) -> str:
    command = project.wrong[kind.use] if kind.wrong else project.commands[kind.use]
    return f"{command} {kind.option}".strip()


def _put_in(state: State, change: Change | None, runner: Runner, seed: int) -> int | None:
    """Write the project, apply the fault, and return the line at fault."""
    runner.lay_out(state.project)
    edits = list(change.edits) if change else []
    edits += _beside(state, change, random.Random(f"{seed}:{state.name}"))
    write_files(runner.folder, changed_files(state.project.files, edits), state.project.files)
    return change.line(runner.folder) if change else None


def _beside(state: State, change: Change | None, chance: random.Random) -> list[Edit]:
    """Return a harmless edit for about half of the cases, so that changed files alone reveal nothing."""
    if chance.random() < 0.5:
        return []
    side = chance.choice(("product", "test"))
    edit = state.project.harmless_beside(change, side) or state.project.harmless_beside(change, "product")
    return [edit] if edit else []
