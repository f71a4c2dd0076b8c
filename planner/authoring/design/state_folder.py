"""The state directory of a design plan, and the workflows that lead through its creation and execution.

:class:`StateFolder` is the only code that reads and writes the files: ``plan.json``, ``context.json``
(written by the planning agent, then frozen), ``qr-{phase}.json`` while a phase is under review, ``plan.md``
(derived), and ``gates.json`` with the gates and the digests of the frozen files. A writer locks the folder;
each file is replaced as a whole, so that readers need no lock.

The steps of the workflows are data (``workflows/*.toml``) and rendered as XML; the pattern of a step
selects guidance that is added to it. Rendering a step decides and changes nothing: its reader does the
work by other commands.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args
from uuid import uuid4
from xml.etree import ElementTree as ET

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.authoring.design.plan import (
    SCHEMA_VERSION,
    DesignPlan,
    Overview,
    Sentence,
    Texts,
    assign,
    faults_of,
)
from planner.authoring.design.review import (
    Gate,
    ItemStatus,
    LoopState,
    ReviewFile,
    ReviewItem,
    ReviewPhase,
    blocking_severities,
    find_gaps,
)
from planner.catalog.tables import load_table
from planner.errors import DesignError
from planner.model.base import Value
from planner.planfile.file_writer import replace_file
from planner.planfile.project_files import read_regular
from planner.text.markdown import fence, inline
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from jinja2 import Template


LOCK_SECONDS = 30.0
"""How long a writer waits for the lock before it gives up."""
LARGEST_READ = 64 * 1024 * 1024
"""The size in bytes of the largest file that is read."""

_LONGEST_FAULT = 400
_REVIEW_FIELDS = ("status", "finding")
"""The only fields of an item that can change: no review is passed by weakening its questions."""

_PART_ID = re.compile(r"(?:DL|RA|C|R|M|CI|CC)-[0-9]+")
_Model = TypeVar("_Model", bound=BaseModel)


class PlanningNotes(BaseModel):
    """``context.json``: what the user has said, in loose JSON; other keys may stand beside these."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    task_spec: tuple[Sentence, ...] = Field(min_length=1)
    constraints: Texts
    entry_points: Texts
    rejected_alternatives: Texts
    current_understanding: Texts
    assumptions: Texts
    invisible_knowledge: Texts
    user_quotes: Texts


class GateFile(Value):
    """``gates.json``: how far the phases have come, and what may not change any more."""

    schema_version: Literal[1] = 1
    context_digest: str | None = None
    plan_digest: str | None = None
    """Of ``plan.json`` since it was frozen."""
    gates: dict[ReviewPhase, Gate] = Field(default_factory=dict[ReviewPhase, Gate])

    def gate(self, phase: ReviewPhase) -> Gate:
        """Return the gate of a phase; a new one if it was never decided."""
        return self.gates.get(phase, Gate())

    @model_validator(mode="after")
    def _refuse_gates_out_of_turn(self) -> GateFile:
        for phase in self.gates:
            if late := [each.value for each in phase.before if not self.gate(each).is_complete]:
                raise ValueError(f"gates: {phase.value} was decided before {', '.join(late)}")
        return self


class StateFolder:
    """A state directory: reads, validates, locks and writes its files.

    Every method raises :class:`planner.errors.DesignError` for a file that is missing, invalid or was
    changed after it was frozen, and for a change that the rules of the gates do not allow.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan_file = path / "plan.json"
        self.page_file = path / "plan.md"
        self.context_file = path / "context.json"
        self.gates_file = path / "gates.json"

    def review_file(self, phase: ReviewPhase) -> Path:
        """Return the path of the file with the items of a phase."""
        return self.path / f"qr-{phase.value}.json"

    @classmethod
    def create(cls, path: Path | None, overview: Overview, *, now: datetime | None = None) -> StateFolder:
        """Create a plan in ``path``, by default in a new temporary folder. An existing plan is an error."""
        folder = cls(Path(tempfile.mkdtemp(prefix="design-")) if path is None else path)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _fault(
                folder.path, f"the folder cannot be created ({error.strerror}); name another"
            ) from None
        with folder._locked():
            # Under the lock, so that of two commands at once only one starts a plan.
            if os.path.lexists(folder.plan_file):
                raise _fault(folder.plan_file, "it already has a plan; name another --state-dir")
            plan = DesignPlan(
                schema_version=SCHEMA_VERSION,
                plan_id=uuid4(),
                created_at=now or datetime.now(UTC),
                overview=overview,
            )
            if not os.path.lexists(ignore := folder.path / ".gitignore"):
                replace_file(ignore, "*\n", mode=None)  # keeps the state out of the project's git
            folder._write(folder.plan_file, plan)
        return folder

    # -- the plan --------------------------------------------------------------------------------------

    def plan(self) -> DesignPlan:
        """Return the plan. A frozen plan is compared with the digest that was recorded at the freeze."""
        # The gates are read first, as the freeze writes them last: whoever reads the digest also reads the
        # plan that it is of, although readers take no lock.
        sealed = self.gates().plan_digest
        remedy = "restore it, and change it only with planner design"
        return self._load(
            self.plan_file, DesignPlan, remedy, absent="start one: planner design init", sealed=sealed
        )[0]

    def edit_plan(self, change: Callable[[DesignPlan], DesignPlan]) -> DesignPlan:
        """Replace the plan by the result of ``change``, under the lock, and return it.

        The result is validated again. A frozen plan cannot be changed.
        """
        with self._locked():
            old = self.plan()
            if old.frozen_at is not None:
                when = f"{old.frozen_at:%Y-%m-%d %H:%M} UTC"
                raise _fault(
                    self.plan_file, f"the plan was frozen on {when}; start another: planner design init"
                )
            try:
                new = DesignPlan.model_validate(change(old).model_dump(warnings=False))
            except ValidationError as error:  # ``model_copy``, which ``change`` may use, validates nothing
                raise DesignError(str(self.plan_file), faults_of(error)) from None
            self._write(self.plan_file, new)
            return new

    def write_page(self) -> Path:
        """Write ``plan.md`` and return its path; the same plan gives the same bytes."""
        with self._locked():
            replace_file(self.page_file, render_page(self.plan()), mode=None)
        return self.page_file

    # -- the context -----------------------------------------------------------------------------------

    def _context(self, gates: GateFile) -> tuple[PlanningNotes, str]:
        """Return the context and its digest; a frozen one is compared with the digest of the freeze."""
        remedy = "correct it, and check it again: planner design context"
        absent = "write it: planner workflow plan --step 2 shows its keys"
        return self._load(
            self.context_file, PlanningNotes, remedy, absent=absent, sealed=gates.context_digest
        )

    def freeze_context(self) -> PlanningNotes:
        """Validate ``context.json``, and freeze it by recording its digest."""
        with self._locked():
            self.plan()
            gates = self.gates()
            notes, digest = self._context(gates)
            self._write(self.gates_file, gates.model_copy(update={"context_digest": digest}))
            return notes

    # -- reviews and gates -----------------------------------------------------------------------------

    def gates(self) -> GateFile:
        """Return the gates and digests; without ``gates.json``, those of a new plan."""
        # Not exists(): behind a dangling link, decided gates would be those of a new plan.
        if not os.path.lexists(self.gates_file):
            return GateFile()
        return self._load(self.gates_file, GateFile, "restore it from a copy")[0]

    def review(self, phase: ReviewPhase) -> ReviewFile:
        """Return the items of a phase; empty before the first is added, and after its gate has passed."""
        path = self.review_file(phase)
        if self.gates().gate(phase).is_complete or not os.path.lexists(path):
            return ReviewFile(phase=phase)
        remedy = "correct it, or remove it and review again"
        review, _ = self._load(path, ReviewFile, remedy)
        if review.phase is not phase:
            raise _fault(path, f"it is the review of another phase, {review.phase.value}; {remedy}")
        return review

    def add_item(self, phase: ReviewPhase, words: Sequence[str]) -> ReviewItem:
        """Add an item with the next free id to the review of a phase; ``words`` assign its fields."""
        with self._reviewed(phase) as items:
            last = max((int(each["id"].removeprefix("qa-")) for each in items), default=0)
            raw: dict[str, Any] = {"id": f"qa-{last + 1:03d}"}
            assign(raw, ReviewItem, words, f"the new item of {phase.value}")
            items.append(raw)
            scope = raw.get("scope", "*")
            # Other scopes are files, which later work may still make.
            if _PART_ID.fullmatch(scope) and scope not in self.plan().ids():
                fault = f"scope: the plan has no {scope}; name a part of the plan, or *"
                raise DesignError(f"{phase.value}/{raw['id']}", [fault])
        return ReviewItem.model_validate(raw)

    def answer_item(self, phase: ReviewPhase, item_id: str, words: Sequence[str]) -> ReviewItem:
        """Set the status and the finding of an item; its other fields must stay."""
        about = f"{phase.value}/{item_id}"
        with self._reviewed(phase) as items:
            raw = next((each for each in items if each["id"] == item_id), None)
            if raw is None:
                known = ", ".join(each["id"] for each in items) or "none yet"
                raise DesignError(about, [f"unknown item; the items are: {known}"])
            before = dict(raw)
            assign(raw, ReviewItem, words, about)
            changed = [key for key in raw if key not in _REVIEW_FIELDS and raw[key] != before.get(key)]
            if changed:
                fault = f"{changed[0]} cannot be changed; set status and finding, or add an item"
                raise DesignError(about, [fault])
        return ReviewItem.model_validate(raw)

    def decide_gate(self, phase: ReviewPhase, *, passed: bool, now: datetime | None = None) -> Gate:
        """Decide a gate; return its new state.

        A pass is refused while an item or a gap blocks the gate, a failure while no item does. The pass of
        ``plan-docs`` freezes the plan and writes its page. The items of a passed phase are removed.
        """
        with self._locked():
            file = self.gates()
            about = f"the gate {phase.value}"
            before = file.gate(phase)
            if before.is_complete:
                raise DesignError(about, ["it has passed, which is final; continue with the next step"])
            obstacles = self.obstacles(phase)
            if passed and obstacles:
                raise DesignError(f"{about} cannot pass", obstacles)
            if not passed and not self.review(phase).blocking(before.iteration):
                raise DesignError(
                    f"{about} cannot fail", ["no item blocks it; set one to FAIL, or pass the gate"]
                )
            after = Gate(
                state=LoopState.COMPLETE if passed else LoopState.RETRY,
                iteration=before.iteration + (not passed),
            )
            update: dict[str, Any] = {"gates": {**file.gates, phase: after}}
            if passed and phase is ReviewPhase.PLAN_DOCS:
                # The plan is written before the gates. After a kill between the two it is frozen already,
                # and keeps its time when the decision is repeated.
                plan = self.plan()
                frozen = plan.model_copy(update={"frozen_at": plan.frozen_at or now or datetime.now(UTC)})
                replace_file(self.page_file, render_page(frozen), mode=None)
                update["plan_digest"] = _digest(self._write(self.plan_file, frozen))
            self._write(self.gates_file, GateFile.model_validate({**file.model_dump(), **update}))
            if passed:
                self.review_file(phase).unlink(missing_ok=True)
            return after

    def obstacles(self, phase: ReviewPhase) -> tuple[str, ...]:
        """Return a message for everything that blocks a gate: items of the review, and gaps of the plan.

        A phase without any items is blocked, too. Raises as :meth:`check_turn` does.
        """
        self.check_turn(phase)
        review = self.review(phase)
        lines = [
            f"{each.id} ({each.severity.value}, {each.scope}) is {each.status.value}: "
            f"{one_line(each.finding or each.check, limit=_LONGEST_FAULT)}"
            for each in review.blocking(self.gates().gate(phase).iteration)
        ]
        if not review.items:
            lines = [
                f"nothing was reviewed; add items: planner design add item --to {phase.value} check=TEXT"
            ]
        return (*lines, *(find_gaps(self.plan(), phase) if phase.is_of_planning else ()))

    def check_turn(self, phase: ReviewPhase) -> None:
        """Raise unless it is the phase's turn: the context is frozen, and all earlier gates have passed."""
        self.plan()
        file = self.gates()
        self._context(file)
        if file.context_digest is None:
            raise DesignError(
                phase.value, ["the context is not frozen; check and freeze it: planner design context"]
            )
        late = [each.value for each in phase.before if not file.gate(each).is_complete]
        if late:
            raise DesignError(
                phase.value, [f"the gate {late[0]} must pass first; see: planner design gate {late[0]}"]
            )

    @contextmanager
    def _reviewed(self, phase: ReviewPhase) -> Generator[list[dict[str, Any]]]:
        """Lock the review of a phase; validate and write its items after the caller has changed them."""
        with self._locked():
            if self.gates().gate(phase).is_complete:
                fault = "its gate has passed, which is final; it cannot be reviewed again"
                raise DesignError(phase.value, [fault])
            self.check_turn(phase)
            data = self.review(phase).model_dump(mode="json")
            yield data["items"]
            # One by one before the whole, so that errors name the item.
            for raw in data["items"]:
                try:
                    ReviewItem.model_validate(raw)
                except ValidationError as error:
                    raise DesignError(f"{phase.value}/{raw['id']}", faults_of(error)) from None
            self._write(self.review_file(phase), ReviewFile.model_validate(data))

    # -- files -----------------------------------------------------------------------------------------

    def _load(
        self,
        path: Path,
        model: type[_Model],
        remedy: str,
        *,
        absent: str = "check its permissions",
        sealed: str | None = None,
    ) -> tuple[_Model, str]:
        """Return the value of a file, and the file's digest, which must be ``sealed`` if that is given.

        Errors end in ``remedy``, or in ``absent`` if the file cannot be read.
        """
        try:
            data = read_regular(path, LARGEST_READ)
        except FileNotFoundError:
            raise _fault(path, f"the file does not exist; {absent}") from None
        except OSError as error:
            raise _fault(path, f"it cannot be read ({error.strerror}); {absent}") from None
        try:
            value = model.model_validate_json(data)
        except ValidationError as error:
            # A wrong version or broken JSON is reported alone: all other faults follow from it.
            faults = faults_of(error)
            first = error.errors(include_url=False)[0]
            if first["loc"][:1] == ("schema_version",):
                (wanted,) = get_args(model.model_fields["schema_version"].annotation)
                faults = (f"its schema_version is not {wanted}; update pytest-planverify, or {remedy}",)
            elif first["type"] == "json_invalid":
                faults = (f"it is not valid JSON ({first['ctx']['error']}); {remedy}",)  # pyright: ignore[reportTypedDictNotRequiredAccess]
            elif len(faults) == 1:
                faults = (f"{faults[0]}; {remedy}",)
            messages = [one_line(each, limit=_LONGEST_FAULT) for each in faults]
            raise DesignError(str(path), messages) from None
        digest = _digest(data)
        if sealed not in (None, digest):
            raise _fault(path, "it was changed after it was frozen; restore it from a copy")
        return value, digest

    def _write(self, path: Path, value: BaseModel) -> bytes:
        try:
            data = (value.model_dump_json(indent=2) + "\n").encode()
        except ValueError:  # a lone surrogate, which JSON allows in a string but UTF-8 cannot encode
            raise _fault(
                path, "it contains invalid Unicode; nothing was written, correct the text"
            ) from None
        replace_file(path, data, mode=None, durable=True)
        return data

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Lock the folder against other writers; wait at most ``LOCK_SECONDS``."""
        # The directory itself is locked, so no lock file remains. The lock ends when the handle is closed,
        # at the latest with the process.
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            raise _fault(
                self.path, "the state directory does not exist; make one: planner design init"
            ) from None
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        problem = (
                            f"another process has locked the folder for {LOCK_SECONDS:g} s; end it first"
                        )
                        raise _fault(self.path, problem) from None
                    time.sleep(0.02)
            yield
        finally:
            os.close(handle)


def _fault(path: Path, problem: str) -> DesignError:
    return DesignError(one_line(path, limit=_LONGEST_FAULT), [problem])


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# -- plan.md, the plan for human readers -----------------------------------------------------------------


def render_page(plan: DesignPlan) -> str:
    """Return the plan as Markdown. Equal plans give equal bytes, frozen or not."""
    return clean(_template().render(plan=plan).rstrip()) + "\n"


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # imported late: editing a plan does not need it

    # Nothing is escaped by Jinja, as the page is Markdown and not HTML: the filters keep each text in its
    # line or fence.
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    filters: dict[str, Any] = environment.filters
    filters |= {"one": _one_line, "because": _because, "clean": clean, "fence": fence, "inline": inline}
    return environment.from_string((files("planner.authoring.design") / "plan.md.jinja").read_text("utf-8"))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _because(reason: str) -> str:
    return f" \N{EN DASH} {_one_line(reason)}" if reason.strip() else ""


# -- workflows -----------------------------------------------------------------------------------------

_MOST_SHOWN = 50
_IN_FOLDER = (".json", ".md")  # endings of inputs and outputs that are files of the state directory
_TAKES_FOLDER = ("design ", "workflow ")  # commands that need --state-dir


class Pattern(StrEnum):
    """The kind of a step, which selects the guidance that it is shown with."""

    INIT = "init"
    VERIFY = "verify"
    EXECUTE = "execute"
    QR = "qr"
    GATE = "gate"


class WorkflowStep(Value):
    """One row of the table of a workflow."""

    name: str
    pattern: Pattern
    agent: str
    phase: ReviewPhase | None = None
    """The phase to whose work, review or gate the step belongs."""
    after: ReviewPhase | None = None
    """The gate that must have passed before a step without a phase."""
    reads: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shows_waves: bool = False


_PACKAGE = "planner.authoring.design"
_GUIDANCE = load_table("guidance", _PACKAGE)
STEPS: Mapping[str, Mapping[int, WorkflowStep]] = {
    name: {
        number: WorkflowStep.model_validate(row)
        for number, row in enumerate(load_table(f"workflows/{name}", _PACKAGE)["steps"], 1)
    }
    for name in ("execute", "plan")
}
"""The steps of each workflow by their numbers, which begin with 1."""


def step_after_gate(phase: ReviewPhase, *, passed: bool) -> tuple[str, int]:
    """Return the workflow and the number of the step that follows a decision at a gate.

    A failure leads back to the work of the phase, two steps before its gate; after the last gate of
    ``plan`` comes the first step of ``execute``.
    """
    workflow, number = next(
        (name, number)
        for name, steps in STEPS.items()
        for number, step in steps.items()
        if step.pattern is Pattern.GATE and step.phase is phase
    )
    if not passed:
        return workflow, number - 2
    return (workflow, number + 1) if number < len(STEPS[workflow]) else ("execute", 1)


def render_step(workflow: str, number: int, state_dir: Path | None, *, program: str) -> str:
    """Return a step as XML: role, inputs, outputs, state of the review, actions, and the next command.

    ``state_dir`` is ``None`` for the first step of ``plan``, which creates it; ``program`` is the name
    under which commands are shown. Raises :class:`planner.errors.DesignError` if it is not the step's
    turn.
    """
    step = STEPS[workflow][number]
    where = "" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}"

    def command(text: str) -> str:
        if text.startswith("planverify "):
            return text
        return f"{program} {text}{where if text.startswith(_TAKES_FOLDER) else ''}"

    root = ET.Element(
        "step", workflow=workflow, number=str(number), of=str(len(STEPS[workflow])), name=step.name
    )
    _add(root, "role", _GUIDANCE["roles"][step.agent], agent=step.agent)
    for tag, names in (("inputs", step.reads), ("outputs", step.mutates)):
        element = _add(root, tag)
        for name in names:
            if state_dir is not None and name.endswith(_IN_FOLDER):
                _add(element, "file", str(state_dir / name))
            else:
                _add(element, "item", name)
    if state_dir is not None and number > 1:
        _add_state(root, step, workflow, StateFolder(state_dir))
    actions = _add(root, "actions")
    for text in (_GUIDANCE["patterns"].get(step.pattern), *step.actions):
        if text is not None:
            _add(actions, "action", text)
    for text in step.commands:
        _add(actions, "command", command(text))
    following = _add(root, "next")
    if step.pattern is Pattern.GATE and step.phase is not None:
        for decision in ("pass", "fail"):
            name, target = step_after_gate(step.phase, passed=decision == "pass")
            then = command(f"workflow {name} --step {target}")
            decide = f"design gate {step.phase.value} {decision}"
            _add(following, "command", command(decide), when=decision.upper(), then=then)
    elif number < len(STEPS[workflow]):
        then = f"workflow {workflow} --step {number + 1}"
        if state_dir is None:
            then += " --state-dir DIR"
        _add(following, "command", command(then))
    else:
        _add(following, "end", "This was the last step: report to the user.")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_state(root: ET.Element, step: WorkflowStep, workflow: str, folder: StateFolder) -> None:
    """Add the state of the phase: its iteration, the items that block it, the gaps, and the waves.

    Raises :class:`planner.errors.DesignError` if it is not the step's turn, or its gate has passed.
    """
    plan = folder.plan()
    if step.after is not None and not folder.gates().gate(step.after).is_complete:
        remedy = f"its gate must pass first, see: planner design gate {step.after.value}"
        raise DesignError(step.name, [f"the phase {step.after.value} is not finished; {remedy}"])
    if step.phase is not None:
        folder.check_turn(step.phase)
        gate = folder.gates().gate(step.phase)
        if gate.is_complete:
            name, number = step_after_gate(step.phase, passed=True)
            raise DesignError(
                step.name,
                [
                    f"the gate {step.phase.value} has passed; continue: planner workflow {name} --step "
                    f"{number}"
                ],
            )
        blocks = " ".join(each.value for each in blocking_severities(gate.iteration))
        loop = _add(
            root,
            "loop",
            phase=step.phase.value,
            state=gate.state.value,
            iteration=str(gate.iteration),
            blocks=blocks,
        )
        review = folder.review(step.phase)
        shown = review.blocking(gate.iteration)
        if step.pattern is Pattern.EXECUTE:
            shown = tuple(each for each in review.items if each.status is ItemStatus.FAIL)
        for item in shown[:_MOST_SHOWN]:
            about = {"id": item.id, "scope": item.scope, "severity": item.severity.value}
            element = _add(loop, "item", **about, status=item.status.value)
            _add(element, "check", item.check)
            if item.finding is not None:
                _add(element, "finding", item.finding)
        if workflow == "plan" and step.pattern is not Pattern.QR:
            for gap in find_gaps(plan, step.phase)[:_MOST_SHOWN]:
                _add(loop, "missing", gap)
    if step.shows_waves:
        names = {each.id: each.name for each in plan.milestones}
        for wave in plan.waves:
            element = _add(root, "wave", number=str(wave.wave))
            for milestone in wave.milestones:
                _add(element, "milestone", names[milestone], id=milestone)


def _add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, {name: clean(value) for name, value in attributes.items()})
    element.text = None if text is None else clean(text)
    return element
