"""The state directory of a design plan: reads, validates, locks and writes its files.

These are ``plan.json``, ``context.json`` (written by the planning agent, then frozen), ``qr-{phase}.json``
while a phase is under review, ``plan.md`` (derived), and ``gates.json`` with the gates and the digests of
the frozen files. A writer locks the folder; each file is replaced as a whole, so that readers need no lock.

:func:`render` fills the templates of design plans: the page ``plan.md``, and a step of a workflow as XML.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from planner.authoring.design.parts import assign, blank_of, faults_of
from planner.authoring.design.plan import (
    DesignPlan,
    Gate,
    LoopState,
    Overview,
    ReviewFile,
    ReviewPhase,
    Texts,
    find_gaps,
)
from planner.errors import DesignError
from planner.model.base import Value
from planner.planfile.file_writer import replace_file
from planner.planfile.locks import locked_folder
from planner.planfile.project_files import read_regular
from planner.text.markdown import fence, inline
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from jinja2 import Environment

LARGEST_READ = 64 * 1024 * 1024
"""The size in bytes of the largest file that is read."""
_WAIT_SECONDS = 30

_Model = TypeVar("_Model", bound=BaseModel)


class PlanningNotes(BaseModel):
    """``context.json``: what the user has said, in loose JSON; other keys may stand beside these."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    task_spec: Texts = Field(min_length=1)
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


_REMEDIES: dict[type[BaseModel], str] = {
    DesignPlan: "restore it from a copy, or start a plan: planner design init",
    PlanningNotes: "write it with the keys that planner workflow plan --step 2 shows",
    GateFile: "restore it from a copy",
    ReviewFile: "correct it, or remove it and review again",
}


class StateFolder:
    """A state directory.

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
    def create(cls, path: Path | None, words: Sequence[str]) -> StateFolder:
        """Create a plan in ``path``, by default in a new temporary folder. An existing plan is an error.

        ``words`` assign the fields of its overview.
        """
        overview = blank_of(Overview)
        assign(overview, words, "overview")
        data = {"schema_version": 2, "plan_id": uuid4(), "created_at": datetime.now(UTC)}
        plan = _validated(DesignPlan, {**data, "overview": overview}, "the new plan")
        folder = cls(Path(tempfile.mkdtemp(prefix="design-")) if path is None else path)
        folder.path.mkdir(parents=True, exist_ok=True)
        with folder._locked():
            # Under the lock, so that of two commands at once only one starts a plan.
            if os.path.lexists(folder.plan_file):
                raise DesignError(folder.plan_file, "it exists already; name another --state-dir")
            if not os.path.lexists(ignore := folder.path / ".gitignore"):
                replace_file(ignore, "*\n", mode=None)  # keeps the state out of the project's git
            _write(folder.plan_file, plan)
        return folder

    # -- reading ---------------------------------------------------------------------------------------

    def plan(self) -> DesignPlan:
        """Return the plan. A frozen plan is compared with the digest that was recorded at the freeze."""
        # The gates are read first, as the freeze writes them last: whoever reads the digest also reads the
        # plan that it is of, although readers take no lock.
        return _load(self.plan_file, DesignPlan, sealed=self.gates().plan_digest)[0]

    def gates(self) -> GateFile:
        """Return the gates and digests; without ``gates.json``, those of a new plan."""
        # Not exists(): behind a dangling link, decided gates would be those of a new plan.
        return _load(self.gates_file, GateFile)[0] if os.path.lexists(self.gates_file) else GateFile()

    def review(self, phase: ReviewPhase) -> ReviewFile:
        """Return the items of a phase; empty before the first is added, and after its gate has passed."""
        path = self.review_file(phase)
        if self.gates().gate(phase).is_complete or not os.path.lexists(path):
            return ReviewFile(phase=phase)
        review, _ = _load(path, ReviewFile)
        if review.phase is not phase:
            raise DesignError(path, f"it is the review of {review.phase.value}; remove it")
        return review

    def check_turn(self, phase: ReviewPhase) -> None:
        """Raise unless the context is frozen, the gates before a phase have passed, and its own has not."""
        self.plan()
        gates = self.gates()
        _load(self.context_file, PlanningNotes, sealed=gates.context_digest)
        if gates.context_digest is None:
            raise DesignError(self.context_file, "it is not frozen; freeze it: planner design context")
        self.check_passed(phase.before)
        if gates.gate(phase).is_complete:
            raise DesignError(phase.value, "its gate has passed, which is final; go on with the next step")

    def check_passed(self, phases: Iterable[ReviewPhase]) -> None:
        """Raise unless the gates of all these phases have passed."""
        gates = self.gates()
        for name in (each.value for each in phases if not gates.gate(each).is_complete):
            raise DesignError(
                self.path, f"the gate {name} must pass first; see: planner design gate {name}"
            )

    def obstacles(self, phase: ReviewPhase) -> list[str]:
        """Return a message for everything that blocks a gate: items of the review, and gaps of the plan.

        A phase without any items is blocked, too. Raises as :meth:`check_turn` does.
        """
        self.check_turn(phase)
        review = self.review(phase)
        gaps = find_gaps(self.plan(), phase)
        if not review.items:
            command = f"planner design add item --to {phase.value} check=TEXT"
            return [f"nothing was reviewed; add items: {command}", *gaps]
        return [*map(str, review.blocking(self.gates().gate(phase))), *gaps]

    # -- writing ---------------------------------------------------------------------------------------

    @contextmanager
    def edit(self, phase: ReviewPhase | None = None) -> Generator[dict[str, Any]]:
        """Yield the plan, or the review of a phase, as plain data; validate and write it afterwards.

        A frozen plan, and the review of a phase whose turn it is not, cannot be changed.
        """
        with self._locked():
            if phase is None:
                value, path = self.plan(), self.plan_file
                if value.frozen_at is not None:
                    when = f"{value.frozen_at:%Y-%m-%d %H:%M} UTC"
                    raise DesignError(path, f"it was frozen on {when}; start another: planner design init")
            else:
                self.check_turn(phase)
                value, path = self.review(phase), self.review_file(phase)
            data = value.model_dump(mode="json")
            yield data
            _write(path, _validated(type(value), data, "the change is refused"))

    def write_page(self) -> Path:
        """Write ``plan.md`` and return its path; the same plan gives the same bytes."""
        with self._locked():
            replace_file(self.page_file, render("plan.md", plan=self.plan()), mode=None)
        return self.page_file

    def freeze_context(self) -> None:
        """Validate ``context.json``, and freeze it by recording its digest."""
        with self._locked():
            self.plan()
            gates = self.gates()
            digest = _load(self.context_file, PlanningNotes, sealed=gates.context_digest)[1]
            _write(self.gates_file, gates.model_copy(update={"context_digest": digest}))

    def decide_gate(self, phase: ReviewPhase, *, passed: bool) -> Gate:
        """Decide a gate; return its new state.

        A pass is refused while an item or a gap blocks the gate, a failure while no item does. The pass of
        ``plan-docs`` freezes the plan and writes its page. The items of a passed phase are removed.
        """
        with self._locked():
            obstacles = self.obstacles(phase)
            gates = self.gates()
            before = gates.gate(phase)
            if passed and obstacles:
                raise DesignError(f"the gate {phase.value} cannot pass", *obstacles)
            if not passed and not self.review(phase).blocking(before):
                # Gaps alone, which the gate shows, are filled in the same iteration.
                otherwise = "complete the plan" if obstacles else "pass the gate"
                fault = f"no item blocks it; set one to FAIL, or {otherwise}"
                raise DesignError(f"the gate {phase.value} cannot fail", fault)
            state = LoopState.COMPLETE if passed else LoopState.RETRY
            after = Gate(state=state, iteration=before.iteration + (not passed))
            update: dict[str, Any] = {"gates": {**gates.gates, phase: after}}
            if passed and phase is ReviewPhase.PLAN_DOCS:
                # The plan is written before the gates. After a kill between the two it is frozen already,
                # and keeps its time when the decision is repeated.
                plan = self.plan()
                frozen = plan.model_copy(update={"frozen_at": plan.frozen_at or datetime.now(UTC)})
                replace_file(self.page_file, render("plan.md", plan=frozen), mode=None)
                update["plan_digest"] = _write(self.plan_file, frozen)
            _write(self.gates_file, gates.model_copy(update=update))
            if passed:
                self.review_file(phase).unlink(missing_ok=True)
            return after

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Lock the folder against other writers. Raises :class:`planner.errors.DesignError`."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self.path, _WAIT_SECONDS))
            except TimeoutError:  # nobody holds the lock for longer than it takes to write a file
                problem = f"another process has locked this folder for {_WAIT_SECONDS:g} s"
                raise DesignError(self.path, f"{problem}; end that process, then repeat") from None
            yield


def _load(path: Path, model: type[_Model], *, sealed: str | None = None) -> tuple[_Model, str]:
    """Return the value of a file, and the file's digest, which must be ``sealed`` if that is given."""
    remedy = _REMEDIES[model]
    try:
        data = read_regular(path, LARGEST_READ)
        held = from_json(data, allow_inf_nan=False)
    except OSError as error:
        raise DesignError(path, f"it cannot be read ({error.strerror}); {remedy}") from None
    except ValueError as error:
        raise DesignError(path, f"it is not valid JSON ({error}); {remedy}") from None
    value = _validated(model, held, path, remedy)
    digest = _digest(data)
    if sealed not in (None, digest):
        raise DesignError(path, "it was changed after it was frozen; restore it from a copy")
    return value, digest


def _validated(model: type[_Model], data: Any, about: object, *remedy: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        *others, last = faults_of(error, data)
        raise DesignError(about, *others, "; ".join([last, *remedy])) from None


def _write(path: Path, value: BaseModel) -> str:
    """Write a file, and return its digest."""
    data = f"{value.model_dump_json(indent=2)}\n".encode()
    replace_file(path, data, mode=None, durable=True)
    return _digest(data)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# -- templates -----------------------------------------------------------------------------------------


@cache
def _environment() -> Environment:
    import jinja2  # imported late: editing a plan does not need it

    def shown(value: object) -> str:
        return clean(str(value))

    def in_one_line(text: str) -> str:
        return " ".join(clean(text).split())

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        # Markdown is not HTML: there, the filters keep each text in its line or fence.
        autoescape=lambda name: name == "step.xml.jinja",
        undefined=jinja2.StrictUndefined,
        # Applied to each inserted value: no template can forget to remove control characters.
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = environment.filters
    filters |= {"one": in_one_line, "clean": clean, "fence": fence, "inline": inline}
    return environment


def render(template: str, **values: Any) -> str:
    """Return the text of a template, ``plan.md`` or ``step.xml``; equal values give equal bytes."""
    return _environment().get_template(f"{template}.jinja").render(values).rstrip() + "\n"
