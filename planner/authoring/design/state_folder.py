"""The state directory of a design plan: the only way to read and to change its files.

``plan.json``, ``context.json`` (written by whoever plans, then frozen), ``qr-{phase}.json`` while a phase
is reviewed, ``plan.md`` (derived), and ``gates.json``: the gates, and the digests of what is frozen. A
writer locks the folder; each file is replaced as a whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.authoring.design.edits import assign
from planner.authoring.design.plan import SCHEMA_VERSION, DesignPlan, Overview, Sentence, Texts, faults_of
from planner.authoring.design.review import Gate, ReviewFile, ReviewItem, ReviewPhase, find_gaps
from planner.errors import DesignError
from planner.model.base import Value
from planner.planfile.file_writer import replace_file
from planner.planfile.project_files import open_regular
from planner.text.markdown import fence, inline
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from jinja2 import Template

LOCK_SECONDS = 30.0
LARGEST_READ = 64 * 1024 * 1024

_LONGEST_FAULT = 400
_REVIEW_FIELDS = ("status", "finding")
"""What changes of an item: a review is not passed by asking less."""

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
        """Return the gate of a phase."""
        return self.gates.get(phase, Gate())

    @model_validator(mode="after")
    def _refuse_gates_out_of_turn(self) -> GateFile:
        for phase in self.gates:
            if late := [each.value for each in phase.before if not self.gate(each).is_complete]:
                raise ValueError(f"gates: {phase.value} was decided before {', '.join(late)}")
        return self


class StateFolder:
    """A state directory. Every method raises :class:`planner.errors.DesignError` for what does not fit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan_file = path / "plan.json"
        self.page_file = path / "plan.md"
        self.context_file = path / "context.json"
        self.gates_file = path / "gates.json"

    def review_file(self, phase: ReviewPhase) -> Path:
        """Return where the items of a phase are."""
        return self.path / f"qr-{phase.value}.json"

    @classmethod
    def create(cls, path: Path | None, overview: Overview, *, now: datetime | None = None) -> StateFolder:
        """Begin a plan, by default in a new folder for temporary files; a plan that is there stays."""
        folder = cls(Path(tempfile.mkdtemp(prefix="design-")) if path is None else path)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _fault(
                folder.path, f"the folder cannot be made ({error.strerror}); name another"
            ) from None
        with folder._locked():
            if os.path.lexists(folder.plan_file):
                raise _fault(folder.plan_file, "there is a plan already; name another --state-dir")
            plan = DesignPlan(
                schema_version=SCHEMA_VERSION,
                plan_id=uuid4(),
                created_at=now or datetime.now(UTC),
                overview=overview,
            )
            if not os.path.lexists(ignore := folder.path / ".gitignore"):
                replace_file(ignore, "*\n", mode=None)  # what changes here is no change of the project
            folder._write(folder.plan_file, plan)
        return folder

    # -- the plan --------------------------------------------------------------------------------------

    def plan(self) -> DesignPlan:
        """Return the plan; a frozen one only if it is what was frozen."""
        data = self._bytes(self.plan_file, "begin one: planner design init")
        plan = self._parse(
            self.plan_file, data, DesignPlan, "restore it, and change it by planner design only"
        )
        sealed = self.gates().plan_digest
        if sealed is not None and sealed != _digest(data):
            raise _fault(self.plan_file, "it was changed after it was frozen; restore it from a copy")
        return plan

    def edit_plan(self, change: Callable[[DesignPlan], DesignPlan]) -> DesignPlan:
        """Replace the plan by what a function makes of it. A frozen plan is immutable."""
        with self._locked():
            old = self.plan()
            if old.frozen_at is not None:
                when = f"{old.frozen_at:%Y-%m-%d %H:%M} UTC"
                raise _fault(
                    self.plan_file, f"the plan is frozen since {when}; begin another: planner design init"
                )
            try:
                new = DesignPlan.model_validate(change(old).model_dump(warnings=False))
            except ValidationError as error:  # of a copy that nobody has checked
                raise DesignError(str(self.plan_file), faults_of(error)) from None
            self._write(self.plan_file, new)
            return new

    def write_page(self) -> Path:
        """Write ``plan.md`` again; the same plan gives the same bytes."""
        with self._locked():
            replace_file(self.page_file, render_page(self.plan()), mode=None)
        return self.page_file

    # -- the context -----------------------------------------------------------------------------------

    def context(self) -> PlanningNotes:
        """Return the context; a frozen one only if it is what was frozen."""
        return self._context_with_digest()[0]

    def freeze_context(self) -> PlanningNotes:
        """Check the context that was written, and freeze it."""
        with self._locked():
            self.plan()
            notes, digest = self._context_with_digest()
            self._write(self.gates_file, self.gates().model_copy(update={"context_digest": digest}))
            return notes

    # -- reviews and gates -----------------------------------------------------------------------------

    def gates(self) -> GateFile:
        """Return how far the phases have come."""
        if not os.path.lexists(self.gates_file):
            return GateFile()
        return self._parse(
            self.gates_file, self._bytes(self.gates_file), GateFile, "restore it from a copy"
        )

    def review(self, phase: ReviewPhase) -> ReviewFile:
        """Return the items of a phase; there are none before the first, and after its gate has passed."""
        path = self.review_file(phase)
        if self.gates().gate(phase).is_complete or not os.path.lexists(path):
            return ReviewFile(phase=phase)
        remedy = "correct it, or remove it and review again"
        review = self._parse(path, self._bytes(path), ReviewFile, remedy)
        if review.phase is not phase:
            raise _fault(path, f"it is the review of {review.phase.value}; {remedy}")
        return review

    def add_item(self, phase: ReviewPhase, words: Sequence[str]) -> ReviewItem:
        """Add an item to the review of a phase."""

        def added(items: list[dict[str, Any]]) -> dict[str, Any]:
            last = max((int(each["id"].removeprefix("qa-")) for each in items), default=0)
            raw: dict[str, Any] = {"id": f"qa-{last + 1:03d}"}
            assign(raw, ReviewItem, words, f"the new item of {phase.value}")
            items.append(raw)
            return raw

        return self._edit_review(phase, added)

    def answer_item(self, phase: ReviewPhase, item_id: str, words: Sequence[str]) -> ReviewItem:
        """Set the status and the finding of an item."""

        def answered(items: list[dict[str, Any]]) -> dict[str, Any]:
            about = f"{phase.value}/{item_id}"
            raw = next((each for each in items if each["id"] == item_id), None)
            if raw is None:
                known = ", ".join(each["id"] for each in items) or "none yet"
                raise DesignError(about, [f"there is no such item; there are: {known}"])
            before = dict(raw)
            assign(raw, ReviewItem, words, about)
            changed = [key for key in raw if key not in _REVIEW_FIELDS and raw[key] != before.get(key)]
            if changed:
                raise DesignError(about, [f"{changed[0]} stays; set status and finding, or add an item"])
            return raw

        return self._edit_review(phase, answered)

    def decide_gate(self, phase: ReviewPhase, *, passed: bool, now: datetime | None = None) -> Gate:
        """Take a decision about a gate, if its items and the plan bear it out.

        The pass of ``plan-docs`` writes the page, and freezes the plan. The items of a phase are removed
        when it has passed.
        """
        with self._locked():
            file = self.gates()
            about = f"the gate {phase.value}"
            before = file.gate(phase)
            if before.is_complete:
                raise DesignError(about, ["it has passed, which is final; go on with the next step"])
            obstacles = self.obstacles(phase)
            if passed and obstacles:
                raise DesignError(f"{about} does not pass", obstacles)
            if not passed and not self.review(phase).blocking(before.iteration):
                raise DesignError(
                    f"{about} does not fail", ["no item blocks it; answer one FAIL, or pass it"]
                )
            after = before.decided(passed=passed)
            update: dict[str, Any] = {"gates": {**file.gates, phase: after}}
            if passed and phase is ReviewPhase.PLAN_DOCS:
                plan = self.plan()  # frozen already where a kill came between the two files
                frozen = plan.model_copy(update={"frozen_at": plan.frozen_at or now or datetime.now(UTC)})
                replace_file(self.page_file, render_page(frozen), mode=None)
                update["plan_digest"] = _digest(self._write(self.plan_file, frozen))
            self._write(self.gates_file, GateFile.model_validate({**file.model_dump(), **update}))
            if passed:
                self.review_file(phase).unlink(missing_ok=True)
            return after

    def obstacles(self, phase: ReviewPhase) -> tuple[str, ...]:
        """Return what keeps a gate from passing now: items that block it, and what the plan lacks."""
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
        """Refuse a phase before its turn: the context is frozen, and the gates before it have passed."""
        self.plan()
        self.context()
        file = self.gates()
        if file.context_digest is None:
            raise DesignError(
                phase.value, ["the context is not frozen; check and freeze it: planner design context"]
            )
        late = [each.value for each in phase.before if not file.gate(each).is_complete]
        if late:
            raise DesignError(
                phase.value, [f"the gate {late[0]} comes first; see: planner design gate {late[0]}"]
            )

    def _edit_review(
        self, phase: ReviewPhase, change: Callable[[list[dict[str, Any]]], dict[str, Any]]
    ) -> ReviewItem:
        with self._locked():
            if self.gates().gate(phase).is_complete:
                raise DesignError(phase.value, ["its gate has passed, which is final; nothing is reviewed"])
            self.check_turn(phase)
            plan = self.plan()
            data = self.review(phase).model_dump(mode="json")
            raw = change(data["items"])
            try:
                item = ReviewItem.model_validate(raw)
                review = ReviewFile.model_validate(data)
            except ValidationError as error:
                raise DesignError(f"{phase.value}/{raw['id']}", faults_of(error)) from None
            if _PART_ID.fullmatch(item.scope) and item.scope not in plan.ids():
                raise DesignError(
                    f"{phase.value}/{item.id}", [f"scope: the plan has no {item.scope}; name another, or *"]
                )
            self._write(self.review_file(phase), review)
            return item

    # -- files -----------------------------------------------------------------------------------------

    def _context_with_digest(self) -> tuple[PlanningNotes, str]:
        path = self.context_file
        data = self._bytes(path, "write it: planner workflow plan --step 2 shows its keys")
        notes = self._parse(
            path, data, PlanningNotes, "correct it, and check it again: planner design context"
        )
        frozen, digest = self.gates().context_digest, _digest(data)
        if frozen not in (None, digest):
            raise _fault(path, "it was changed after it was frozen; restore it from a copy")
        return notes, digest

    def _bytes(self, path: Path, remedy: str = "check its permissions") -> bytes:
        try:
            with open_regular(path) as file:
                data = file.read(LARGEST_READ + 1)
        except FileNotFoundError:
            raise _fault(path, f"there is no such file; {remedy}") from None
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise _fault(path, f"it cannot be read ({said}); {remedy}") from None
        if len(data) > LARGEST_READ:
            raise _fault(path, f"it is larger than {LARGEST_READ >> 20} MiB; make a smaller plan")
        return data

    def _parse(self, path: Path, data: bytes, model: type[_Model], remedy: str) -> _Model:
        try:
            return model.model_validate_json(data)
        except ValidationError as error:
            faults = faults_of(error)
            first = error.errors(include_url=False)[0]
            if first["loc"][:1] == ("schema_version",):
                (wanted,) = get_args(model.model_fields["schema_version"].annotation)
                faults = (f"its schema_version is not {wanted}; update pytest-planverify, or {remedy}",)
            elif first["type"] == "json_invalid":
                faults = (f"it is no JSON ({first['ctx']['error']}); {remedy}",)  # pyright: ignore[reportTypedDictNotRequiredAccess]
            elif len(faults) == 1:
                faults = (f"{faults[0]}; {remedy}",)
            told = [one_line(each, limit=_LONGEST_FAULT) for each in faults]
            raise DesignError(str(path), told) from None

    def _write(self, path: Path, value: BaseModel) -> bytes:
        try:
            data = (value.model_dump_json(indent=2) + "\n").encode()
        except ValueError:  # half of a surrogate pair, in a value that may be any JSON
            raise _fault(path, "a text of it is no Unicode; nothing is written, correct the text") from None
        replace_file(path, data, mode=None, durable=True)
        return data

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the folder while its files are read and written."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            raise _fault(
                self.path, "there is no such state directory; make one: planner design init"
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
                            f"another process has held the folder for {LOCK_SECONDS:g} s; end that first"
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


# -- plan.md, for people to read; made of nothing but the plan ---------------------------------------------


def render_page(plan: DesignPlan) -> str:
    """Return the page of a plan. Equal plans give equal bytes, frozen or not."""
    return clean(_template().render(plan=plan).rstrip()) + "\n"


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # not for those who only edit a plan

    # The page is Markdown, no HTML: the filters keep each text to its place.
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    filters: dict[str, Any] = environment.filters
    filters |= {
        "one": _one_line,
        "because": _because,
        "prose": _prose,
        "fence": _fence,
        "inline": inline,
    }
    return environment.from_string((files("planner.authoring.design") / "plan.md.jinja").read_text("utf-8"))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _because(reason: str) -> str:
    return f" \N{EN DASH} {_one_line(reason)}" if reason.strip() else ""


def _prose(text: str) -> str:
    return clean(text).strip()


def _fence(text: str, language: str) -> str:
    return fence(clean(text).strip("\n"), language)
