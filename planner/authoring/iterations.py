"""Planning of one iteration: collect gaps, and choose the most critical one that has not failed too often.

The planner reads ``CONTRACT.md`` and ``SPEC.md`` of the modules concerned through a port and changes
nothing. It is deterministic: the same gaps, records, state and documents give the same plan. Target files
are found by rules on the words of a description: paths, names of modules, and a few fixed beginnings.

The log, ``.planverify/iterations.jsonl``, has a line for each iteration that was planned and one for each
that ended. Whether an iteration succeeded is decided by the outcomes of its plan alone; only a rollback is
recorded on a person's word.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Sequence  # noqa: TC003 - the port is used at run time
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, cast

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from planner.authoring.outline import read_outline
from planner.catalog.commands import accepted_command
from planner.catalog.test_paths import is_test_path
from planner.errors import PlannerError
from planner.model.base import ReadValue, Value
from planner.model.plan import Plan
from planner.planfile.file_writer import replace_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.loader import load_plan, shown_path
from planner.planfile.plan_folder import HOME, make_home
from planner.planfile.project_files import read_regular
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.authoring.outline import Piece
    from planner.model.outcome import OutcomeDocument


MOST_RECORDS = 5
"""The number of the newest records in which failures of a gap are counted."""

MOST_FAILURES = 3
"""The number of failures in a row after which a gap is passed over in favour of the others."""

PROTECTED_FILES = ("seed.py", "VISION.md")
PROTECTED_FOLDERS = ("kernel/",)
TOOL_CRITERIA = {
    "All new/modified files pass ruff check": "ruff check",
    "All new/modified files pass pyright strict": "pyright",
}
"""The criteria of every iteration, each with the command that checks it where the tool is installed."""

# Not inside of URLs and longer paths, and neither of the abbreviations that look like a file.
_PATH = re.compile(
    r"(?<![\w./:-])(?!e\.g\b|i\.e\b)"
    r"((?:\.{0,2}/)?(?:[\w.+-]+/)*[\w+-][\w.+-]*\.[A-Za-z][A-Za-z0-9]{0,4})(?![\w/])"
)
_FOLDER = re.compile(r"`((?:[\w.+-]+/)+)`")
_MODULE = re.compile(r"\bmodules?\s+[`'\"]?([A-Za-z_]\w*)", re.IGNORECASE)
_OTHER_MODULE = re.compile(r"\b([A-Za-z_]\w*)[`'\"]?\s+module\b", re.IGNORECASE)
_FORBIDDING = re.compile(r"\b(?:not|never|no|without|unchanged|untouched)\b", re.IGNORECASE)
_TOOLS = ("ruff", "pyright", "mypy", "pytest", "flake8", "black", "basedpyright", "planverify")
_ARTICLES = frozenset({"a", "an", "the", "this", "that", "each", "every", "new", "of", "in", "for", "and"})
_DOCUMENTS = ("CONTRACT.md", "SPEC.md")
_GENERATED = ("build/", "dist/", "node_modules/")


class IterationOutcome(StrEnum):
    """The result of an iteration."""

    SUCCESS = "success"
    FAILURE = "failure"
    ROLLBACK = "rollback"


def _texts(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
"""A list of texts; a single text is accepted as a list of one."""


class Gap(Value):
    """Something that is missing or wrong in a project."""

    category: Literal["quality", "inbox", "roadmap"]
    description: str = Field(min_length=1, max_length=2_000)
    evidence: Texts = ()
    """Output of a tool, the path of an inbox item, the line of a roadmap."""
    constraints: Texts = ()
    """Conditions that an inbox item sets for the change."""
    commands: Texts = ()
    """Commands that fail as long as the gap exists."""
    tool: str | None = None

    def is_same(self, category: str, description: str) -> bool:
        """Return whether a record of that category and description is about this gap."""
        texts = {" ".join(each.split()).casefold() for each in (self.description, description)}
        return self.category == category and len(texts) == 1


class GapReport(Value):
    """The gaps of a project, the most critical first unless ``most_critical`` names another."""

    gaps: tuple[Gap, ...] = ()
    most_critical: Gap | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_the_first(cls, value: Any) -> Any:
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        # A null that is stated stays: then nothing is planned.
        if fields.get("gaps") and "most_critical" not in fields:
            return {**fields, "most_critical": fields["gaps"][0]}
        return cast("Any", value)


class IterationRecord(Value):
    """The record of an iteration and its outcome."""

    iteration_id: str
    gap_category: str
    gap_description: str
    outcome: IterationOutcome
    note: str = ""


class ProjectState(Value):
    """The project's files and the current time, as the planner sees them."""

    files: tuple[str, ...] = ()
    """Relative to the root, with ``/``."""
    now: datetime | None = None
    """The time from which ids are made; ``None`` means the current time."""


class IterationAction(Value):
    """A change of files."""

    action_type: Literal["create", "modify"]
    target_files: tuple[str, ...] = ()
    """Files, or folders that end in ``/``; empty where the implementer has to determine them."""
    description: str
    context: tuple[str, ...] = ()
    """The documents with which the change has to comply."""


class IterationPlan(Value):
    """The plan of one iteration for one gap."""

    iteration_id: str
    gap: Gap
    actions: tuple[IterationAction, ...]
    acceptance_criteria: tuple[str, ...]
    estimated_risk: Literal["low", "medium", "high"]


class FileSystemPort(Protocol):
    """The files that the planner may read, by paths relative to the root of the project."""

    def read_text(self, path: str) -> str | None:
        """Return the text of a file; ``None`` if there is none that can be read."""
        ...


class Planner:
    """Chooses a gap and plans the iteration that closes it."""

    def __init__(self, fs: FileSystemPort) -> None:
        self._fs = fs

    def plan(
        self, gap_report: GapReport, recent_records: Sequence[IterationRecord], state: ProjectState
    ) -> IterationPlan | None:
        """Return the plan of the next iteration. ``recent_records`` are ordered oldest first.

        The most critical gap is planned unless it has failed ``MOST_FAILURES`` times in a row; then the
        first other gap that has not. If all have, the most critical one is planned with a warning and high
        risk. A gap that has failed before is of high risk, too.
        Actions on protected files are left out. Return ``None`` if there is no gap or no action remains.
        """
        first = gap_report.most_critical
        if first is None:
            return None
        candidates = [first, *(each for each in gap_report.gaps if each != first)]
        records = recent_records[-MOST_RECORDS:]
        gap = next((each for each in candidates if failures_in_a_row(each, records) < MOST_FAILURES), None)
        is_exhausted = gap is None
        gap = gap or first
        actions = [
            each for each in self._actions(gap, state) if not any(map(is_protected, each.target_files))
        ]
        if not actions:
            return None
        if is_exhausted:
            count = failures_in_a_row(gap, records)
            warning = f"Warning: this gap and all others have failed {count} times in a row. "
            actions[0] = actions[0].model_copy(update={"description": warning + actions[0].description})
        # Of all records: an old failure no longer postpones the gap, but is a risk as before.
        has_failed = any(
            each.outcome is not IterationOutcome.SUCCESS
            and gap.is_same(each.gap_category, each.gap_description)
            for each in recent_records
        )
        own = {
            "quality": (f"{tool_of(gap)} no longer reports the failures: {gap.description}",),
            "inbox": (gap.description, *gap.constraints),
            "roadmap": (f"The roadmap item is done: {gap.description}",),
        }[gap.category]
        documents = dict.fromkeys(each for action in actions for each in action.context)
        now = state.now or datetime.now(UTC)
        return IterationPlan(
            iteration_id=f"iter-{len(recent_records) + 1:04d}-{now:%Y%m%d-%H%M%S}",
            gap=gap,
            actions=tuple(actions),
            acceptance_criteria=(
                *TOOL_CRITERIA,
                *own,
                *(f"The changes respect {each}" for each in documents),
            ),
            estimated_risk="high" if has_failed or is_exhausted else _risk(actions, state),
        )

    # -- actions ------------------------------------------------------------------------------------------

    def _actions(self, gap: Gap, state: ProjectState) -> list[IterationAction]:
        """Return the actions for a gap, by its category and the first words of its description."""
        description = gap.description
        begin = description.casefold().lstrip("-*[] ")
        evident = _known(_paths_in(*gap.evidence), state)
        if gap.category == "quality":
            return [self._action("modify", evident, f"Fix {tool_of(gap)} failures")]
        if gap.category == "inbox":
            pages = [each for each in _paths_in(*gap.evidence) if each.endswith(".md")]
            texts = (self._fs.read_text(page) for page in pages)
            written = (each for text in texts for each in constraints_of(text or ""))
            constraints = gap.constraints or tuple(written)
            # "Do not change cart.py" names a file that has to stay as it is.
            kept = {path for each in constraints if _forbids(each) for path in _paths_in(each)}
            targets = self._targets(description, constraints, state)
            if constraints:
                description += f". Constraints: {'; '.join(constraints)}"
            return self._split([each for each in targets if each not in kept], description, state)
        # These beginnings are the words with which a roadmap says what kind of change it wants.
        if begin.startswith("all code passes"):
            return [self._action("modify", evident, description)]
        if begin.startswith("tests for"):
            return [self._action("create", _test_targets(description, begin, state), description)]
        targets = self._targets(description, (), state)
        if begin.startswith("create"):
            return [self._action("create", targets, description)]
        return self._split(targets, description, state)

    def _split(self, targets: list[str], description: str, state: ProjectState) -> list[IterationAction]:
        """Return one action for the targets that do not exist, and one for those that do.

        Without targets, return a single ``create`` action.
        """
        folders = {f"{folder}/" for file in state.files for folder in _folders_above(file)}
        existing = [each for each in targets if each in state.files or each in folders]
        new = [each for each in targets if each not in existing]
        actions = [self._action("create", new, description)] if new or not existing else []
        return [*actions, self._action("modify", existing, description)] if existing else actions

    def _action(
        self, kind: Literal["create", "modify"], targets: Iterable[str], description: str
    ) -> IterationAction:
        found = tuple(dict.fromkeys(targets))
        return IterationAction(
            action_type=kind if found else "create",
            target_files=found,
            description=description,
            context=tuple(dict.fromkeys(doc for each in found for doc in self._documents_of(each))),
        )

    # -- targets ------------------------------------------------------------------------------------------

    def _targets(self, description: str, constraints: Sequence[str], state: ProjectState) -> list[str]:
        """Return the files and folders that a description names.

        If it or a constraint that forbids nothing has paths, these are the targets. Else each module that
        it names contributes the files of its specification, or its existing files, or its folder. A
        description without either that mentions ``domain`` means the Python files of that folder.
        """
        allowed = [each for each in constraints if not _forbids(each)]
        found = _paths_in(description, *allowed) + _FOLDER.findall(description)
        if found:
            return [each for each in map(_normal, found) if each is not None]
        for name in _modules_in(description):
            folder = _module_folder(name, state)
            files = [each for each in state.files if each.startswith(folder)]
            files = [each for each in files if posixpath.basename(each) not in _DOCUMENTS]
            found += self._files_of_spec(folder) or files
            found = found or [folder]
        if not found and re.search(r"\bdomain\b", description, re.IGNORECASE):
            files = [each for each in state.files if fnmatchcase(each, "domain/*.py")]
            found = files or ["domain/"]
        return list(dict.fromkeys(found))

    def _files_of_spec(self, folder: str) -> list[str]:
        """Return the files in the folder that a module's contract or specification names in back quotes."""
        for document in self._documents_of(folder):
            names = re.findall(r"`([\w/]+\.\w{1,5})`", self._fs.read_text(document) or "")
            files = [posixpath.join(folder, each) for each in names if "/" not in each]
            if files:
                return files
        return []

    def _documents_of(self, target: str) -> Iterator[str]:
        """Yield ``CONTRACT.md`` and ``SPEC.md`` of the innermost folder around a target that has any."""
        for folder in _folders_above(target):
            paths = [f"{folder}/{name}" for name in _DOCUMENTS]
            if found := [each for each in paths if self._fs.read_text(each) is not None]:
                yield from found
                return


# -- rules -------------------------------------------------------------------------------------------------


def failures_in_a_row(gap: Gap, records: Sequence[IterationRecord]) -> int:
    """Return how many of these records are failures or rollbacks of the gap since its last success."""
    count = 0
    for record in reversed(records):
        if gap.is_same(record.gap_category, record.gap_description):
            if record.outcome is IterationOutcome.SUCCESS:
                break
            count += 1
    return count


def is_protected(target: str) -> bool:
    """Return whether no iteration may change the path; paths that lead out of the project are protected."""
    path = _normal(target)
    if path is None:
        return True
    folded = path.casefold()  # file systems without case distinction: Seed.py is seed.py there
    return folded in {each.casefold() for each in PROTECTED_FILES} or f"{folded}/".startswith(
        PROTECTED_FOLDERS
    )


def constraints_of(text: str) -> list[str]:
    """Return the items of the list below a heading ``Constraints`` of a Markdown text."""
    section = re.search(r"^#+ *constraints?\b.*$\n((?:(?!#).*\n?)*)", text, re.IGNORECASE | re.MULTILINE)
    return re.findall(r"^\s*[-*+] +(.*\S)", section[1], re.MULTILINE) if section else []


def tool_of(gap: Gap) -> str:
    """Return the tool that the gap names, or else mentions in its texts; ``quality`` if there is none."""
    text = " ".join((gap.description, *gap.evidence)).casefold()
    return gap.tool or next((each for each in _TOOLS if re.search(rf"\b{each}\b", text)), "quality")


def _risk(actions: Sequence[IterationAction], state: ProjectState) -> Literal["low", "medium", "high"]:
    """Return ``high`` for changes of existing files in ``domain/``, ``medium`` for others but tests."""
    changed = [
        target
        for action in actions
        for target in action.target_files
        if action.action_type == "modify" or target in state.files
    ]
    if any(each.startswith("domain/") or "/domain/" in each for each in changed):
        return "high"
    return "medium" if any(not is_test_path(each) for each in changed) else "low"


def _known(paths: Iterable[str], state: ProjectState) -> list[str]:
    """Return paths that a tool printed, maybe absolute, as the project has them; no generated files."""
    found: list[str] = []
    for path in paths:
        tails = [each for each in state.files if path == each or path.endswith(f"/{each}")]
        name = max(tails, key=len, default=_normal(path))
        if name is not None and not name.startswith(_GENERATED):
            found.append(name)
    return list(dict.fromkeys(found))


def _paths_in(*texts: str) -> list[str]:
    return list(dict.fromkeys(path for text in texts for path in _PATH.findall(text)))


def _modules_in(description: str) -> Iterator[str]:
    for pattern in (_MODULE, _OTHER_MODULE):
        yield from (name for name in pattern.findall(description) if name.casefold() not in _ARTICLES)


def _test_targets(description: str, begin: str, state: ProjectState) -> list[str]:
    """Return the test files that a description names, else the ``tests/`` folders of its modules."""
    paths = _paths_in(description)
    if tests := [each for each in paths if is_test_path(each)]:
        return tests
    names = [
        parts[1] if parts[0] == "modules" and len(parts) > 2 else parts[-1].partition(".")[0]
        for parts in (each.split("/") for each in paths)
    ]
    names = names or list(_modules_in(description))
    names = names or re.findall(r"^tests for (?:the )?`?(\w+)", begin)[:1]
    return [f"{_module_folder(name, state)}tests/" for name in names]


def _module_folder(name: str, state: ProjectState) -> str:
    """Return the folder of a module: ``modules/NAME/``, or an existing package of that name elsewhere."""
    usual = f"modules/{name}/"
    if any(each.startswith(usual) for each in state.files):
        return usual
    package = re.compile(rf"(?:^|.*/){re.escape(name)}/(?=__init__\.py$)")
    return next((found[0] for each in state.files if (found := package.match(each))), usual)


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders around a path, the innermost first."""
    while path := posixpath.dirname(path):
        yield path


def _forbids(constraint: str) -> bool:
    return _FORBIDDING.search(constraint) is not None


def _normal(path: str) -> str | None:
    """Return a path normalized, with ``/``; ``None`` if it is absolute or leads out of the project."""
    path = path.replace("\\", "/")
    found = posixpath.normpath(path)
    if path.startswith(("/", "~")) or found == ".." or found.startswith("../"):
        return None
    return f"{found}/" if path.endswith("/") and found != "." else found


# -- the plan file and the log of iterations -----------------------------------------------------------


_LOG = "iterations.jsonl"
_SLUG_WORDS = 5
_LONGEST_SLUG = 100  # an id may have 200 characters, a file name 255


class Planned(Value):
    """A line of the log: an iteration was planned; ``file`` is its plan file, relative to the root."""

    kind: Literal["planned"] = "planned"
    plan: IterationPlan
    file: str


class Ended(Value):
    """A line of the log: an iteration has ended."""

    kind: Literal["ended"] = "ended"
    record: IterationRecord


_LINE: TypeAdapter[Planned | Ended] = TypeAdapter(Planned | Ended)


class IterationLog:
    """The log of a project's iterations, read once and rewritten for each line that is added."""

    def __init__(self, root: Path) -> None:
        """Read the log. Raises :class:`planner.errors.PlannerError` if one of its lines is not valid."""
        self._root = root
        self._path = root / HOME / _LOG
        self._lines: list[Planned | Ended] = []
        # As bytes, as lines of text also end at characters that JSON does not escape, such as U+2028.
        data = self._path.read_bytes() if self._path.exists() else b""
        for number, line in enumerate(data.splitlines(), 1):
            try:
                self._lines.append(_LINE.validate_json(line))
            except ValidationError:
                raise PlannerError(
                    f"{self._path}:{number}: this line is not an iteration; delete it, or move the file "
                    "away"
                ) from None

    @property
    def records(self) -> list[IterationRecord]:
        """The iterations that have ended, oldest first."""
        return [each.record for each in self._lines if isinstance(each, Ended)]

    @property
    def open(self) -> Planned | None:
        """The iteration that was planned last, if it has not ended."""
        last = self._lines[-1] if self._lines else None
        return last if isinstance(last, Planned) else None

    def begin(self, plan: IterationPlan, file: str) -> None:
        """Record that an iteration was planned in ``file``."""
        self._add(Planned(plan=plan, file=file))

    def end(self, outcome: IterationOutcome, note: str = "") -> IterationRecord:
        """Record how the open iteration ended; return the record. There must be an open one."""
        assert self.open is not None  # callers check ``open`` first
        plan = self.open.plan
        record = IterationRecord(
            iteration_id=plan.iteration_id,
            gap_category=plan.gap.category,
            gap_description=plan.gap.description,
            outcome=outcome,
            note=note,
        )
        self._add(Ended(record=record))
        return record

    def judged(self) -> tuple[IterationOutcome, str] | None:
        """Return the result of the open iteration by the outcomes of its plan, and a note.

        Return ``None`` if the plan was not verified, not completely, or has changed since. Raises
        :class:`planner.errors.PlannerError` if the plan or its outcomes cannot be read.
        """
        assert self.open is not None
        loaded = load_plan(self._root / self.open.file)
        found = find_outcomes(loaded)
        if found.document is None or found.plan_change is not None:
            return None
        red = [each.todo_id for each in found.document.outcomes if not each.success]
        # A run of only some todos decides nothing.
        if len(found.document.outcomes) < len(loaded.plan.items):
            return None
        if red:
            return IterationOutcome.FAILURE, f"red: {', '.join(red)}"
        return IterationOutcome.SUCCESS, ""

    def _add(self, line: Planned | Ended) -> None:
        make_home(self._root)
        self._lines.append(line)
        # Written as a whole, so that an interruption cannot leave half a line.
        text = "".join(f"{each.model_dump_json()}\n" for each in self._lines)
        replace_file(self._path, text)


def plan_of_iteration(iteration: IterationPlan, *, tools: Sequence[str]) -> Plan:
    """Return the plan that ``pytest --planverify`` verifies for an iteration; it has one todo.

    Its criteria are the gap's own commands and those of ``tools``: ``ruff check`` and ``pyright``, if they
    are installed. Where the gap names no usable command, the tests of its target folders must pass, or else
    a new test file. The files that no iteration may change are protected.
    """
    actions = iteration.actions
    targets = list(dict.fromkeys(each for action in actions for each in action.target_files))
    created = {each for action in actions if action.action_type == "create" for each in action.target_files}
    allowed = [f"{each}**" if each.endswith("/") else each for each in targets]
    made = [each for each in targets if each in created and not each.endswith("/")]
    # A gap report may come from another program; with a refused command the plan could not be loaded.
    own = [each for each in iteration.gap.commands if accepted_command(each)]
    if not own:
        folders = [each for each in targets if each.endswith("tests/")]
        test = f"tests/test_{_slug(iteration.gap.description)}.py"
        own = [f"pytest {shlex.quote(each)}" for each in folders or [test]]
        if not folders:
            allowed.append(test)
            made.append(test)
    checked = [each for each in targets if each.endswith(("/", ".py"))]
    checks = [*own, *(f"{command} {shlex.join(checked or ['.'])}" for command in tools)]
    todo: dict[str, Any] = {
        "id": _slug(iteration.gap.description),
        "title": iteration.gap.description,
        "intent": _instructions(iteration, tools),
        "acceptance_criteria": {"tests": [{"cmd": each} for each in checks], "expected_artifacts": made},
        "risk_level": iteration.estimated_risk.upper(),
    }
    # Without targets, whoever works on it has to find the files.
    if targets:
        todo["allowed_files"] = allowed
    protected = [*PROTECTED_FILES, *(f"{each}**" for each in PROTECTED_FOLDERS)]
    return Plan.model_validate(
        {
            "todo_list_id": iteration.iteration_id,
            "workflow_name": iteration.gap.description,
            "metadata": {"protected_files": protected},
            "items": [todo],
        }
    )


def _instructions(iteration: IterationPlan, tools: Sequence[str]) -> str:
    """Return the todo's intent: the actions, the documents to read first, and what no command checks."""
    lines = [
        f"{each.action_type} {', '.join(each.target_files) or 'files to be determined'}: {each.description}"
        for each in iteration.actions
    ]
    documents = dict.fromkeys(each for action in iteration.actions for each in action.context)
    lines += [f"Read first: {', '.join(documents)}."] if documents else []
    unchecked = [each for each in iteration.acceptance_criteria if TOOL_CRITERIA.get(each) not in tools]
    return "\n".join(
        [*lines, "Required, but not checked by a command:", *(f"- {each}" for each in unchecked)]
    )


def _slug(text: str) -> str:
    """Return the first significant words of a text, joined by underscores; at most ``_LONGEST_SLUG``."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    kept = [each for each in words if each not in ("a", "an", "the", "is", "of", "for", "to")]
    return "_".join((kept or words or ["iteration"])[:_SLUG_WORDS])[:_LONGEST_SLUG]


# -- collection of gaps --------------------------------------------------------------------------------


MOST_BYTES = 8 * 1024 * 1024
"""The size from which on files are refused."""

MOST_FILES = 50
"""The most files that a gap names."""

MOST_TEXT = 300
"""The most characters of a description."""

_Output = TypeVar("_Output")

INBOX = "inbox"
ROADMAP = "ROADMAP.md"


def gaps_of_outcomes(document: OutcomeDocument) -> Iterator[Gap]:
    """Yield a gap for each failed todo of a run; of several with the same failure signature, the first."""
    seen: set[str] = set()
    for outcome in document.outcomes:
        failure = outcome.failure_evidence
        if outcome.success or failure is None or (failure.signature or outcome.todo_id) in seen:
            continue
        seen.add(failure.signature or outcome.todo_id)
        head = one_line(
            failure.stack_trace_head or failure.because or failure.category.value, limit=MOST_TEXT
        )
        place = failure.location
        where = [] if place is None else [f"{place.path}:{place.line}" if place.line else place.path]
        yield Gap(
            category="quality",
            description=f"{outcome.todo_id} fails: {failure.category.value}",
            evidence=(*where, head),
            commands=tuple(
                each.cmd for each in outcome.checks if each.cmd is not None and each.counts_as.is_red
            ),
            tool="planverify",
        )


class _RuffFinding(ReadValue):
    filename: str = ""


class _PyrightFinding(ReadValue):
    severity: str = ""
    file: str = ""


class _PyrightOutput(ReadValue):
    found: tuple[_PyrightFinding, ...] = Field(alias="generalDiagnostics")


def gaps_of_ruff(path: Path) -> Iterator[Gap]:
    """Yield one gap for the output of ``ruff check --output-format json``, if it has findings."""
    found = _parse(path, tuple[_RuffFinding, ...], "the output of ruff check --output-format json")
    yield from _gap_of_tool("ruff", "ruff check", (each.filename for each in found))


def gaps_of_pyright(path: Path) -> Iterator[Gap]:
    """Yield one gap for the output of ``pyright --outputjson``, if it has errors."""
    found = _parse(path, _PyrightOutput, "the output of pyright --outputjson").found
    yield from _gap_of_tool("pyright", "pyright", (each.file for each in found if each.severity == "error"))


def gaps_of_inbox(folder: Path, root: Path) -> Iterator[Gap]:
    """Yield a gap for each Markdown file of a folder but a README; its first line is the description."""
    for path in sorted(folder.glob("*.md")):
        text = _read(path).decode("utf-8", "replace")
        lines = (line.strip().lstrip("#").strip() for line in text.splitlines())
        title = next(filter(None, lines), "")
        if title and path.name.casefold() != "readme.md":
            yield Gap(
                category="inbox",
                description=one_line(title, limit=MOST_TEXT),
                evidence=(_relative(path, root),),
                constraints=tuple(one_line(each, limit=MOST_TEXT) for each in constraints_of(text)),
                commands=tuple(each for item in read_outline(text).boxes() for each in item.commands),
            )


def gaps_of_roadmap(path: Path, root: Path) -> Iterator[Gap]:
    """Yield a gap for each unchecked box all of whose sub-boxes are checked."""

    def innermost(items: Iterable[Piece]) -> Iterator[Piece]:
        for item in items:
            yield from innermost(item.parts)
            if not item.is_checked and all(each.is_checked for each in item.parts):
                yield item

    for item in innermost(read_outline(_read(path).decode("utf-8", "replace")).boxes()):
        yield Gap(
            category="roadmap",
            description=one_line(item.title, limit=MOST_TEXT),
            evidence=(f"{_relative(path, root)}:{item.line}",),
            commands=tuple(item.commands),
        )


def read_gap_report(path: Path) -> GapReport:
    """Read a gap report in JSON, as ``planner gaps -o`` writes it. Raises :class:`PlannerError`."""
    try:
        return GapReport.model_validate_json(_read(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the report"
        raise PlannerError(
            f"{shown_path(path)}: {place}: {first['msg']}; write it with planner gaps -o FILE"
        ) from None


def _gap_of_tool(tool: str, command: str, files: Iterable[str]) -> Iterator[Gap]:
    """Yield one gap for the findings of a tool, given the file of each; the most frequent come first.

    The gap's command checks only these files, or everything where they are more than ``MOST_FILES``.
    """
    # In their JSON output, ruff and pyright print absolute paths.
    counts = Counter(os.path.relpath(each) if os.path.isabs(each) else each for each in files if each)
    named = sorted(counts, key=lambda each: (-counts[each], each))
    if named:
        yield Gap(
            category="quality",
            description=f"{command} fails",
            evidence=tuple(named[:MOST_FILES]),
            commands=(f"{command} {shlex.join(named)}" if len(named) <= MOST_FILES else command,),
            tool=tool,
        )


def _parse(path: Path, kind: type[_Output], what: str) -> _Output:
    """Parse the JSON output of a tool. Raises :class:`PlannerError` if it is not ``what``."""
    try:
        return TypeAdapter(kind).validate_json(_read(path))
    except ValidationError:
        raise PlannerError(f"{shown_path(path)}: this is not {what}; write the file again") from None


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror}); name a readable file"
        raise PlannerError(f"{shown_path(path)}: {problem}") from None


def _relative(path: Path, root: Path) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
