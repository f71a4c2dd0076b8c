"""The corpus: what a case is, the split into parts, and the files that cases are kept in.

A case is a recorded failure, what is true of it by construction, and how to make it again. A case belongs
to the part ``test`` when its package is kept for testing, or its kind of fault is: decided once, by digests
of names alone.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from planner.errors import PlannerError
from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner, Repeatability

RECORDED = Path(__file__).parent / "recorded"
"""The folder of the recorded cases."""


class Group(StrEnum):
    """How a case came to be."""

    INJECTED = "injected"
    """A fault was put into the code of a published package."""
    DECOY = "decoy"
    """A small project whose failure looks like another kind of failure, or comes in an odd way."""
    ENVIRONMENT = "environment"
    """Something outside the project is not as it should be."""
    GUARD = "guard"
    """What a guard or a criterion other than a test finds: hygiene, sandbox, budget, artifact, metric."""
    COMMAND = "command"
    """The criterion is a command: a type checker, a linter, a compiler, another test runner."""
    RELEASE = "release"
    """The tests of one release of a published package meet the source of the release before."""
    CONTROL = "control"
    """An honest change: nothing may be said against it."""


class Place(ReadValue):
    """Where the fault is, by construction."""

    path: str
    """Relative to the project."""
    first_line: int | None = None
    last_line: int | None = None
    function: str | None = None
    """Qualified name of the function that holds it."""
    exact: bool = False
    """The fault itself raises there: a diagnosis that names another line is wrong."""


class Reading(ReadValue):
    """Another reading that an engineer would accept."""

    category: Category
    owner: Owner
    why: str


class Label(ReadValue):
    """What is true of a failure."""

    category: Category
    owner: Owner
    repeatability: Repeatability | None = None
    """``None`` where repeated runs say nothing, as of commands and selections."""
    also: tuple[Reading, ...] = ()
    """Where the case is truly ambiguous."""
    place: Place | None = None

    def accepts(self, category: Category, owner: Owner) -> bool:
        """Whether this category and owner are the true ones, or acceptable."""
        return (category, owner) in self.readings

    @property
    def readings(self) -> tuple[tuple[Category, Owner], ...]:
        """The true reading first, then those that are accepted."""
        return ((self.category, self.owner), *((each.category, each.owner) for each in self.also))


class Origin(ReadValue):
    """How to make the case again."""

    package: str
    """The package, or the small project, that the failure was made in: the unit of the split."""
    version: str | None = None
    sha256: str | None = None
    """Of the package's source distribution."""
    kind: str
    """The kind of fault, by its name in the builder: the other unit of the split."""
    seed: int = 0
    file: str | None = None
    line: int | None = None
    before: str = ""
    after: str = ""
    """The source as it was and as it is: a few lines."""
    command: str = ""
    """The criterion that failed."""
    python: str = ""
    pytest: str = ""


class Gates(ReadValue):
    """What was checked before the case was let in."""

    green_before: bool
    red_runs: int
    """How often it was red, of ``runs``."""
    runs: int
    executed: bool | None = None
    """The injected line ran; ``None`` where there is no line to run."""


class Case(ReadValue):
    """One case of the corpus."""

    id: str
    group: Group
    origin: Origin
    gates: Gates
    label: Label | None = None
    """``None`` for an honest control."""
    evidence: Evidence | None = None
    """The failure as it was recorded; ``None`` for a control that was not flagged."""
    flagged: tuple[str, ...] = ()
    """What a run said against a control, though it should not."""


class RunFailure(ReadValue):
    """One failure of a run with several faults."""

    todo: str
    evidence: Evidence
    fault: int
    """Which of the faults caused it, counted from 0."""


class FaultyRun(ReadValue):
    """One run of a plan over a project with one or more faults: are their consequences told apart?"""

    id: str
    package: str
    kinds: tuple[str, ...]
    """Of each fault."""
    labels: tuple[Label, ...]
    """Of each fault."""
    todos: tuple[str, ...]
    """In the plan's order."""
    depends: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Todo to the todos that it depends on."""
    failures: tuple[RunFailure, ...]
    first: tuple[int, ...]
    """The faults that an engineer would repair first; any of them is right."""


SEED = "planverify-corpus-1"
"""What the chance was drawn from. Never changed: that would show the test part to the rules."""

TEST_SHARE = 3
"""One of so many small projects, and one of so many kinds of fault, is kept for testing."""

PACKAGES = (
    "cachetools",
    "funcy",
    "inflect",
    "jinja2",
    "markdown-it-py",
    "markupsafe",
    "python-slugify",
    "tabulate",
)
"""The published packages that faults are put into."""

TEST_PACKAGES = 3
"""So many of them are kept for testing: the first in the order of their digests."""


RELEASE_PACKAGES = ("jmespath", "natsort", "packaging", "parse", "pathspec", "python-dotenv", "wcwidth")
"""Packages of the group release: rules were made by what their cases show."""

FRESH_PACKAGES = ("boltons", "humanize", "isodate")
"""Recorded last: no rule, no number and no choice of either was made by what their cases show."""


class Part(StrEnum):
    """The parts of the corpus."""

    DEVELOP = "develop"
    TEST = "test"
    FRESH = "fresh"


def part_of(package: str, kind: str) -> Part:
    """Which part a case of this package, or small project, and kind of fault belongs to."""
    if package in FRESH_PACKAGES:
        return Part.FRESH
    if package in RELEASE_PACKAGES:
        return Part.DEVELOP
    return Part.TEST if is_test_package(package) or is_test_kind(kind) else Part.DEVELOP


def is_test_package(package: str) -> bool:
    """Whether a package is kept for testing."""
    if package in PACKAGES:
        ranked = sorted(PACKAGES, key=lambda name: _digest("package", name))
        return package in ranked[:TEST_PACKAGES]
    return _digest("package", package) % TEST_SHARE == 0


def is_test_kind(kind: str) -> bool:
    """Whether a kind of fault is kept for testing."""
    return _digest("kind", kind) % TEST_SHARE == 0


def _digest(unit: str, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{SEED}:{unit}:{name}".encode()).digest()[:8])


T = TypeVar("T", bound=BaseModel)

RUNS = "runs"
"""The folder of the runs with several faults, in the folder of each part."""


class CorpusError(PlannerError):
    """The corpus cannot be read; the message names the file, the line and the remedy."""


def read_cases(corpus: Path, part: Part) -> tuple[Case, ...]:
    """Every case of a part, in the order of file names and lines. Raises :class:`CorpusError`."""
    return tuple(_read(corpus / part.value, Case))


def read_file(file: Path) -> tuple[Case, ...]:
    """Every case of one file. Raises :class:`CorpusError`."""
    return tuple(_read_file(file, Case))


def read_runs(corpus: Path, part: Part) -> tuple[FaultyRun, ...]:
    """Every run of a part with several faults. Raises :class:`CorpusError`."""
    folder = corpus / part.value / RUNS
    return tuple(_read(folder, FaultyRun)) if folder.is_dir() else ()


def digest_of(corpus: Path, *parts: Part) -> str:
    """What the cases of these parts are, in one short digest of their files."""
    found = hashlib.sha256()
    for part in parts:
        for file in sorted((corpus / part.value).glob("*.jsonl.gz")):
            found.update(f"{part.value}/{file.name}\0".encode() + gzip.decompress(file.read_bytes()))
    return f"sha256:{found.hexdigest()[:16]}"


def write_cases(corpus: Path, name: str, cases: Iterable[Case]) -> None:
    """Write the cases of one builder into ``name.jsonl.gz`` of both parts, in the order of ids."""
    lines: dict[Part, list[str]] = {part: [] for part in Part}
    for case in sorted(cases, key=lambda each: each.id):
        lines[part_of(case.origin.package, case.origin.kind)].append(render(case))
    for part, found in lines.items():
        _write(corpus / part.value / f"{name}.jsonl.gz", found)


def write_runs(corpus: Path, name: str, runs: Iterable[FaultyRun]) -> None:
    """The same for runs with several faults: a run with a kind kept for testing is kept for testing."""
    lines: dict[Part, list[str]] = {part: [] for part in Part}
    for run in sorted(runs, key=lambda each: each.id):
        parts = {part_of(run.package, kind) for kind in run.kinds}
        lines[Part.TEST if Part.TEST in parts else Part.DEVELOP].append(render(run))
    for part, found in lines.items():
        _write(corpus / part.value / RUNS / f"{name}.jsonl.gz", found)


def render(value: Case | FaultyRun) -> str:
    """One line of JSON; what has its usual value is left out."""
    plain = value.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _write(file: Path, lines: list[str]) -> None:
    if not lines:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def _read(folder: Path, kind: type[T]) -> Iterator[T]:
    if not folder.is_dir():
        raise CorpusError(f"{folder}: there is no corpus; name its folder with --corpus")
    for file in sorted(folder.glob("*.jsonl.gz")):
        yield from _read_file(file, kind)


def _read_file(file: Path, kind: type[T]) -> Iterator[T]:
    try:
        lines = gzip.decompress(file.read_bytes()).decode().split("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file}: the corpus cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _case(file, number, line, kind)


def _case(file: Path, number: int, line: str, kind: type[T]) -> T:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "line"
        raise CorpusError(
            f"{file}:{number} {where}: {first['msg']}; build the corpus anew or mend the line"
        ) from error
