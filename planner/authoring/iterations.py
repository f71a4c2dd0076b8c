"""Iterations: the gaps of a project, the plan that closes one of them, and the log of their outcomes.

The :class:`Planner` is deterministic: the same gaps, records, files and documents give the same plan. It
finds target files by rules on the words of a description: paths, names of modules, and the beginnings with
which a roadmap says what kind of change it wants.

The log, ``.planverify/iterations.jsonl``, has a line for each iteration. Whether one succeeded is decided
by the outcomes of its plan alone; only a rollback is recorded on a person's word.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence  # noqa: TC003 - the port is used at run time
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import filter as matching
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import Field, ValidationError

from planner.authoring.first_plan import fresh_id, make_plan, short_title
from planner.authoring.outline import read_bounded, read_page
from planner.catalog.commands import accepted_command
from planner.catalog.test_paths import is_test_module, is_test_path
from planner.errors import PlannerError
from planner.model.base import Value
from planner.planfile.file_writer import replace_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.loader import load_plan, shown_path
from planner.planfile.plan_folder import HOME, make_home
from planner.text.glob_patterns import matches
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.model.outcome import OutcomeDocument
    from planner.model.plan import Plan


MOST_RECORDS = 5
"""The number of the newest records in which failures of a gap are counted."""

MOST_FAILURES = 3
"""The number of failures in a row after which a gap is passed over in favour of the others."""

PROTECTED = ("seed.py", "VISION.md", "kernel/**")
"""The files that no iteration may change."""

TOOL_CRITERIA = {
    "All new/modified files pass ruff check": "ruff check",
    "All new/modified files pass pyright strict": "pyright",
}
"""The criteria of every iteration, each with the command that checks it where the tool is installed."""

MOST_TEXT = 300
"""The most characters of a description that is made here."""

# A file, but neither inside of a URL nor an abbreviation that looks like one; or a folder, but not "w/"; or
# any folder in back quotes.
_PATH = re.compile(
    r"(?<![\w./:+-])(?!e\.g\b|i\.e\b)"
    r"(?:((?:\.{0,2}/)?(?:[\w.+-]+/)*[\w+-][\w.+-]*\.[A-Za-z][A-Za-z0-9]{0,4})(?![\w/])"
    r"|([\w+-]{2,}/(?:[\w.+-]+/)*)(?![\w/]|\.\w))"
    r"|`((?:[\w.+-]+/)+)`"
)
_ONLY = re.compile(
    r"\bonly (?:change|edit|modify|touch)\b|\b(?:change|edit|modify|touch) only\b", re.IGNORECASE
)
_MODULE = re.compile(
    r"(?:^\W*tests for|\bmodules?) (?:(?:the|module) )*[`'\"]?(?!(?:that|for|of|in|and)\b)([a-z_]\w*)",
    re.IGNORECASE,
)
_DOCUMENTS = ("CONTRACT.md", "SPEC.md")

_Parsed = TypeVar("_Parsed", bound=Value)
Risk = Literal["low", "medium", "high"]
ActionType = Literal["create", "modify"]


class Gap(Value):
    """Something that is missing or wrong in a project."""

    category: Literal["quality", "inbox", "roadmap"]
    description: str = Field(min_length=1, max_length=2_000)
    evidence: tuple[str, ...] = ()
    """Output of a tool, the path of an inbox item, the line of a roadmap."""
    constraints: tuple[str, ...] = ()
    """Conditions that an inbox item sets for the change."""
    commands: tuple[str, ...] = ()
    """Commands that fail as long as the gap exists."""


class GapReport(Value):
    """The gaps of a project, the most critical first unless ``most_critical`` names another."""

    gaps: tuple[Gap, ...] = ()
    # A null that is stated stays: then nothing is planned.
    most_critical: Gap | None = Field(default_factory=lambda given: next(iter(given.get("gaps", ())), None))


class IterationOutcome(StrEnum):
    """The result of an iteration."""

    SUCCESS = "success"
    FAILURE = "failure"
    ROLLBACK = "rollback"


class IterationRecord(Value):
    """An iteration: a line of the log."""

    iteration_id: str
    gap_category: str
    gap_description: str
    outcome: IterationOutcome | None = None
    """``None`` as long as the iteration is open."""
    note: str = ""
    file: str = ""
    """Its plan file, relative to the root."""

    def is_about(self, gap: Gap) -> bool:
        """Return whether the iteration was to close this gap."""
        return (self.gap_category, self.gap_description) == (gap.category, gap.description)


class ProjectState(Value):
    """The project's files and the current time, as the planner sees them."""

    files: tuple[str, ...] = ()
    """Relative to the root, with ``/``."""
    now: datetime | None = None
    """The time from which ids are made; ``None`` means the current time."""


class IterationAction(Value):
    """A change of files."""

    action_type: ActionType
    target_files: tuple[str, ...] = ()
    """Files, or folders that end in ``/``; empty where the implementer has to determine them."""
    description: str
    """The change, and the documents with which it has to comply."""


class IterationPlan(Value):
    """The plan of one iteration for one gap."""

    iteration_id: str
    gap: Gap
    actions: tuple[IterationAction, ...]
    acceptance_criteria: tuple[str, ...]
    estimated_risk: Risk


class FileSystemPort(Protocol):
    """The files that the planner may read, by paths relative to the root of the project."""

    def read_text(self, path: str) -> str | None:
        """Return the text of a file; ``None`` if there is none that can be read."""
        ...


# -- from a gap report to an iteration -----------------------------------------------------------------


class Planner:
    """Chooses a gap and plans the iteration that closes it; reads documents through a port."""

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
        records = recent_records[-MOST_RECORDS:]
        fresh = (each for each in (first, *gap_report.gaps) if _failures(each, records) < MOST_FAILURES)
        gap = next(fresh, first)
        actions = [
            each for each in self._actions(gap, state) if not any(map(is_protected, each.target_files))
        ]
        if not actions:
            return None
        if warning := exhaustion(gap, recent_records):
            description = f"Warning: {warning}. {actions[0].description}"
            actions[0] = actions[0].model_copy(update={"description": description})
        # Of all records: an old failure no longer postpones the gap, but is a risk as before.
        has_failed = any(
            each.is_about(gap) and each.outcome not in (None, IterationOutcome.SUCCESS)
            for each in recent_records
        )
        now = state.now or datetime.now(UTC)
        return IterationPlan(
            iteration_id=f"iter-{len(recent_records) + 1:04d}-{now:%Y%m%d-%H%M%S}",
            gap=gap,
            actions=tuple(actions),
            acceptance_criteria=(
                *TOOL_CRITERIA,
                f"{'No longer true' if gap.category == 'quality' else 'Done'}: {gap.description}",
                *gap.constraints,
            ),
            estimated_risk="high" if has_failed else _risk(actions, state),
        )

    def _actions(self, gap: Gap, state: ProjectState) -> list[IterationAction]:
        """Return the actions for a gap, by its category and the first words of its description."""
        description = gap.description
        begin = description.casefold().lstrip("-*[] ")
        if gap.category == "quality":
            tool = description.split(" ")[0]
            return [self._action("modify", _evident(gap, state), f"Fix {tool} failures")]
        if gap.category == "roadmap" and begin.startswith("all code passes"):
            # The roadmap, where the item stands, is no code.
            code = [each for each in _evident(gap, state) if not each.endswith(".md")]
            return [self._action("modify", code, description)]
        if gap.category == "roadmap" and begin.startswith("tests for"):
            return [self._action("create", _test_targets(description, state), description)]
        targets = self._targets(gap, state)
        existing = [each for each in targets if any(_is_in(file, each) for file in state.files)]
        if not existing or (gap.category == "roadmap" and begin.startswith("create")):
            return [self._action("create", targets, description)]
        new = [each for each in targets if each not in existing]
        actions = [self._action("create", new, description)] if new else []
        return [*actions, self._action("modify", existing, description)]

    def _action(self, kind: ActionType, targets: Sequence[str], description: str) -> IterationAction:
        documents = dict.fromkeys(each for target in targets for each in self._documents_of(target))
        description += f" (comply with {', '.join(documents)})" if documents else ""
        return IterationAction(
            # Files that are still to be found cannot be said to exist.
            action_type=kind if targets else "create",
            target_files=tuple(targets),
            description=description,
        )

    def _targets(self, gap: Gap, state: ProjectState) -> list[str]:
        """Return the files and folders that a gap names.

        If its description has paths, these are the targets. Else each module that it names, or the domain,
        contributes the files that its documents name, or its existing Python files, or its folder. What its
        constraints mention, such as "Do not change cart.py", is no target, unless they say "only": then
        "Only change cart.py" leaves nothing else.
        """
        if only := _paths_in(*(each for each in gap.constraints if _ONLY.search(each))):
            return only
        found = [each for each in _paths_in(gap.description) if not _is_outside(each)]
        if not _paths_in(gap.description):
            for folder in _module_folders(gap.description, state):
                # The files in the folder that a contract or specification there names in back quotes.
                texts = (self._fs.read_text(each) or "" for each in self._documents_of(folder))
                named = next(filter(None, (re.findall(r"`(\w+\.\w{1,5})`", text) for text in texts)), ())
                files = [f"{folder}{each}" for each in named] or matching(state.files, f"{folder}*.py")
                found += files or [folder]
        kept = _paths_in(*(each for each in gap.constraints if not re.search(r"\bonly\b", each.lower())))
        return [each for each in dict.fromkeys(found) if each not in kept]

    def _documents_of(self, target: str) -> list[str]:
        """Return ``CONTRACT.md`` and ``SPEC.md`` of the innermost folder around a target that has any."""
        while target := posixpath.dirname(target):
            paths = [f"{target}/{name}" for name in _DOCUMENTS]
            if found := [each for each in paths if self._fs.read_text(each) is not None]:
                return found
        return []


def is_closed(gap: Gap, records: Sequence[IterationRecord]) -> bool:
    """Return whether the last iteration for the gap that has ended was a success."""
    outcomes = (each.outcome for each in reversed(records) if each.is_about(gap))
    return next(filter(None, outcomes), None) is IterationOutcome.SUCCESS


def exhaustion(gap: Gap, records: Sequence[IterationRecord]) -> str:
    """Return the warning for a gap that is planned although it has failed too often, else no text."""
    count = _failures(gap, records[-MOST_RECORDS:])
    return f"this gap and all others have failed {count} times in a row" if count >= MOST_FAILURES else ""


def is_protected(target: str) -> bool:
    """Return whether no iteration may change the path; paths that lead out of the project are protected."""
    path = posixpath.normpath(target)
    # File systems without case distinction: Seed.py is seed.py there.
    patterns = (each.casefold() for each in PROTECTED)
    return _is_outside(path) or any(matches(path.casefold(), each) for each in patterns)


def _is_in(file: str, target: str) -> bool:
    return file == target or (target.endswith("/") and file.startswith(target))


def _is_outside(path: str) -> bool:
    return path.startswith(("/", "../")) or path == ".."


def _failures(gap: Gap, records: Sequence[IterationRecord]) -> int:
    """Return how many of these records are failures or rollbacks of the gap since its last success."""
    # An open iteration has not failed yet.
    outcomes = [each.outcome for each in reversed(records) if each.is_about(gap) and each.outcome]
    return len([*takewhile(lambda each: each is not IterationOutcome.SUCCESS, outcomes)])


def _risk(actions: Sequence[IterationAction], state: ProjectState) -> Risk:
    """Return ``high`` for changes of existing files in ``domain/``, ``medium`` for others but tests."""
    changed = [
        target
        for action in actions
        for target in action.target_files
        if action.action_type == "modify" or target in state.files
    ]
    if any("/domain/" in f"/{each}" for each in changed):
        return "high"
    return "medium" if any(not is_test_path(each) for each in changed) else "low"


def _evident(gap: Gap, state: ProjectState) -> list[str]:
    """Return the files of the project that a tool printed, whose paths may be absolute."""
    found: list[str] = []
    for path in (each for each in _paths_in(*gap.evidence) if not each.endswith("/")):
        known = (each for each in state.files if f"/{path}".endswith(f"/{each}"))
        found.append(max(known, key=len, default=path))
    return [each for each in dict.fromkeys(found) if not _is_outside(each)]


def _paths_in(*texts: str) -> list[str]:
    """Return the paths in texts, normalized; folders end in ``/``."""
    found = (each for text in texts for each in _PATH.finditer(text))
    paths = (posixpath.normpath(each[1]) if each[1] else each[2] or each[3] for each in found)
    return list(dict.fromkeys(paths))


def _test_targets(description: str, state: ProjectState) -> list[str]:
    """Return the test files that a description names, else ``tests/`` beside its files and modules."""
    paths = _paths_in(description)
    if tests := [each for each in paths if is_test_path(each)]:
        return tests
    beside = [posixpath.dirname(each) for each in paths] or _module_folders(description, state)
    return list(dict.fromkeys(posixpath.join(each, "tests/") for each in beside))


def _module_folders(description: str, state: ProjectState) -> list[str]:
    """Return the folders of the modules that a description names, else that of the domain it mentions.

    The folder of a module is ``modules/NAME/``, or an existing package of that name elsewhere.
    """
    found: list[str] = []
    for name in _MODULE.findall(description):
        usual = f"modules/{name}/"
        inits = [each for each in state.files if f"/{each}".endswith(f"/{name}/__init__.py")]
        is_usual = not inits or any(each.startswith(usual) for each in state.files)
        found.append(usual if is_usual else inits[0].removesuffix("__init__.py"))
    return found or (["domain/"] if re.search(r"\bdomain\b", description, re.IGNORECASE) else [])


# -- from an iteration to a plan file ------------------------------------------------------------------


def plan_of_iteration(
    iteration: IterationPlan, *, tools: Sequence[str], files: Sequence[str], root: str = "."
) -> Plan:
    """Return the plan that ``pytest --planverify`` verifies for an iteration; it has one todo.

    Its criteria are the gap's own commands and those of ``tools``: ``ruff check`` and ``pyright``, if the
    project uses them. Where the gap names no usable command, the tests of its target folders must pass, or
    else a new test file, unless all code is to pass one of the tools. Test files of the gap's commands that
    are not among ``files``, those of the project, have to be written. Files that no iteration may change
    are protected.
    """
    description = iteration.gap.description
    todo_id = fresh_id(description, set())
    targets = [each for action in iteration.actions for each in action.target_files]
    created = (each for each in iteration.actions if each.action_type == "create")
    made = [each for action in created for each in action.target_files if not each.endswith("/")]
    allowed = [f"{each}**" if each.endswith("/") else each for each in targets]
    # A gap report may come from another program; with a refused command the plan could not be loaded.
    own = [each for each in iteration.gap.commands if accepted_command(each)]
    commands = [each.pytest for text in own if (each := accepted_command(text)) and each.pytest]
    selected = (posixpath.normpath(one.partition("::")[0]) for each in commands for one in each.selections)
    missing = [
        each
        for each in dict.fromkeys(selected)
        if is_test_module(each) and each not in (*files, *targets) and not is_protected(each)
    ]
    is_of_tool = any(
        re.match(rf"\W*all code passes {each.split()[0]}\b", description, re.IGNORECASE) for each in tools
    )
    if not own and not is_of_tool:
        places = [each for each in targets if each.endswith("tests/")]
        if not places:
            module = re.sub(r"\W", "_", todo_id)
            places = missing = [f"tests/test_{module}.py"]
        own = [f"pytest {shlex.quote(each)}" for each in places]
    allowed += missing
    made += missing
    checked = [each for each in targets if each.endswith(("/", ".py"))] or ["."]
    checks = [*own, *(f"{command} {shlex.join(checked)}" for command in tools)]
    todo: dict[str, Any] = {
        "id": todo_id,
        "title": short_title(description),
        # The actions, and what no command checks.
        "intent": "\n".join(
            [
                *(f"{shown_action(each)}: {each.description}" for each in iteration.actions),
                # A request in the inbox is more than its title.
                *(f"Evidence: {one_line(each, limit=MOST_TEXT)}" for each in iteration.gap.evidence[:3]),
                "Required, but not checked by a command:",
                *(f"- {each}" for each in iteration.acceptance_criteria if each not in TOOL_CRITERIA),
            ]
        ),
        "acceptance_criteria": {"tests": checks, "expected_artifacts": made},
        "risk_level": iteration.estimated_risk.upper(),
    }
    # Without targets, whoever works on it has to find the files.
    todo |= {"allowed_files": allowed} if targets else {}
    # Beside allowed_files, only what exists needs protection.
    protected = [each for each in PROTECTED if not targets or matching(files, each)]
    policy = {"metadata": {"protected_files": protected}} if protected else {}
    return make_plan(description, [todo], root=root, todo_list_id=iteration.iteration_id, **policy)


def shown_action(action: IterationAction) -> str:
    """Return the type of an action and its files, for people."""
    return f"{action.action_type} {', '.join(action.target_files) or 'files to be determined'}"


# -- the log -------------------------------------------------------------------------------------------


def read_log(root: Path) -> list[IterationRecord]:
    """Return the iterations of a project, oldest first; only the last one may be open.

    Raises :class:`planner.errors.PlannerError` if a line of the log is not valid.
    """
    path = root / HOME / "iterations.jsonl"
    # As bytes, as lines of text also end at characters that JSON does not escape, such as U+2028.
    lines = read_bounded(path).splitlines() if path.exists() else []
    remedy = "this is not an iteration; delete the line, or move the file away"
    return [_parse(each, IterationRecord, f"{path}:{at}", remedy) for at, each in enumerate(lines, 1)]


def write_log(root: Path, records: Iterable[IterationRecord]) -> None:
    """Replace the log; as a whole, so that an interruption cannot leave half a line."""
    text = "".join(f"{each.model_dump_json(exclude_defaults=True)}\n" for each in records)
    replace_file(make_home(root) / "iterations.jsonl", text)


def judge(root: Path, record: IterationRecord) -> tuple[IterationOutcome, str] | None:
    """Return the result of an iteration by the outcomes of its plan, and a note.

    Return ``None`` if the plan was not verified, not completely, or has changed since. Raises
    :class:`planner.errors.PlannerError` if the plan or its outcomes cannot be read.
    """
    loaded = load_plan(root / record.file)
    found = find_outcomes(loaded)
    outcomes = found.document.outcomes if found.document is not None and found.plan_change is None else ()
    # A run of only some todos decides nothing.
    if len(outcomes) < len(loaded.plan.items):
        return None
    red = [each.todo_id for each in outcomes if not each.success]
    if red:
        return IterationOutcome.FAILURE, f"red: {', '.join(red)}"
    return IterationOutcome.SUCCESS, ""


# -- the sources of gaps -------------------------------------------------------------------------------


def gaps_of_outcomes(document: OutcomeDocument) -> Iterator[Gap]:
    """Yield a gap for each failed todo of a run; of several with the same failure signature, the first."""
    seen: set[str] = set()
    for outcome in document.outcomes:
        failure = outcome.failure_evidence
        if outcome.success or failure is None or (failure.signature or outcome.todo_id) in seen:
            continue
        seen.add(failure.signature or outcome.todo_id)
        places = (each.location for each in (failure, *outcome.failures) if each.location is not None)
        where = dict.fromkeys(f"{each.path}:{each.line}" if each.line else each.path for each in places)
        category = failure.category.value
        head = one_line(failure.stack_trace_head or failure.because or category, limit=MOST_TEXT)
        red = (each.cmd for each in outcome.checks if each.counts_as.is_red)
        yield Gap(
            category="quality",
            description=f"{outcome.todo_id} fails: {category}",
            evidence=(*where, head),
            commands=tuple(each for each in red if each is not None),
        )


def gaps_of_inbox(folder: Path) -> Iterator[Gap]:
    """Yield a gap for each Markdown file of a folder but a README; its title is the description.

    The list below a heading *Constraints* sets conditions for the change.
    """
    for path in sorted(folder.glob("*.md")):
        page = read_page(path)
        title = next((each.title for each in page.walk() if each.title), "")
        if title and path.name.casefold() != "readme.md":
            headings = (each for each in page.walk() if each.title.casefold().startswith("constraint"))
            constraints = (part.title for heading in headings for part in heading.parts)
            yield Gap(
                category="inbox",
                description=one_line(title, limit=MOST_TEXT),
                evidence=(shown_path(path),),
                constraints=tuple(one_line(each, limit=MOST_TEXT) for each in constraints),
                commands=tuple(each for box in page.boxes() for each in box.commands),
            )


def gaps_of_roadmap(path: Path) -> Iterator[Gap]:
    """Yield a gap for each unchecked box all of whose sub-boxes are checked."""
    for item in (each for box in read_page(path).boxes() for each in box.walk()):
        if not item.is_checked and all(each.is_checked for each in item.parts):
            yield Gap(
                category="roadmap",
                description=one_line(item.title, limit=MOST_TEXT),
                evidence=(f"{shown_path(path)}:{item.line}",),
                commands=tuple(item.commands),
            )


def read_gap_report(path: Path) -> GapReport:
    """Read a gap report in JSON, as ``planner gaps -o`` writes it. Raises :class:`PlannerError`."""
    return _parse(read_bounded(path), GapReport, shown_path(path), "write it with planner gaps -o FILE")


def _parse(data: bytes, model: type[_Parsed], shown: str, remedy: str) -> _Parsed:
    """Parse JSON. Raises :class:`PlannerError`, which names the first fault and ends with ``remedy``."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise PlannerError(f"{shown}: {place}: {first['msg']}; {remedy}") from None
