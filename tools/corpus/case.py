"""Models of the corpus, its split into parts, and the files that hold its cases.

A case is a recorded failure with its label, which is known because the fault was planted, and with the
steps to reproduce it. It belongs to the part ``test`` if its package or its kind of fault is reserved for
testing, which digests of the names decide.
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
"""Folder of the recorded cases."""


class Group(StrEnum):
    """The way in which a case was produced."""

    INJECTED = "injected"
    """A fault was inserted into the code of a published package."""
    DECOY = "decoy"
    """A small project whose failure resembles another kind of failure, or appears in an unusual form."""
    ENVIRONMENT = "environment"
    """Something outside the project is broken or missing."""
    GUARD = "guard"
    """Found by a guard or a criterion other than a test: hygiene, sandbox, budget, artifact, metric."""
    COMMAND = "command"
    """The criterion is a command: a type checker, a linter, a compiler, another test runner."""
    RELEASE = "release"
    """The tests of one release of a published package, run on the source of the release before."""
    CONTROL = "control"
    """An honest change, for which no failure may be reported."""


class Place(ReadValue):
    """The place of the fault, known because the fault was planted."""

    path: str
    """Path relative to the project."""
    first_line: int | None = None
    last_line: int | None = None
    function: str | None = None
    """Qualified name of the enclosing function."""
    exact: bool = False
    """The fault itself raises at this line, so a diagnosis that names another line is wrong."""


class Reading(ReadValue):
    """Another category and owner that an engineer would accept."""

    category: Category
    owner: Owner
    why: str


class Label(ReadValue):
    """The true diagnosis of a failure."""

    category: Category
    owner: Owner
    repeatability: Repeatability | None = None
    """``None`` if repeated runs show nothing, as for commands and selections."""
    also: tuple[Reading, ...] = ()
    """Further accepted readings of an ambiguous case."""
    place: Place | None = None

    def accepts(self, category: Category, owner: Owner) -> bool:
        """Return whether this category and owner are the true ones, or accepted."""
        return (category, owner) in self.readings

    @property
    def readings(self) -> tuple[tuple[Category, Owner], ...]:
        """Return the true category and owner, followed by the accepted ones."""
        return ((self.category, self.owner), *((each.category, each.owner) for each in self.also))


class Origin(ReadValue):
    """The steps to reproduce a case."""

    package: str
    """Published package or small project in which the failure was produced; the corpus is split by it."""
    version: str | None = None
    sha256: str | None = None
    """Digest of the package's source distribution."""
    kind: str
    """Name of the kind of fault in the builder; the corpus is also split by it."""
    seed: int = 0
    file: str | None = None
    line: int | None = None
    before: str = ""
    after: str = ""
    """The changed lines of the source, before and after."""
    command: str = ""
    """The failing criterion."""
    python: str = ""
    pytest: str = ""


class Gates(ReadValue):
    """Results of the checks that a case has to pass to be included."""

    green_before: bool
    red_runs: int
    """Number of failing runs, out of ``runs``."""
    runs: int
    executed: bool | None = None
    """Whether the injected line was executed; ``None`` if there is no such line."""


class Case(ReadValue):
    """One case of the corpus."""

    id: str
    group: Group
    origin: Origin
    gates: Gates
    label: Label | None = None
    """``None`` for an honest control."""
    evidence: Evidence | None = None
    """Recorded evidence of the failure; ``None`` for a control without a false report."""
    flagged: tuple[str, ...] = ()
    """False reports about a control."""


class RunFailure(ReadValue):
    """One failure of a run with several faults."""

    todo: str
    evidence: Evidence
    fault: int
    """Index of the fault that caused it."""


class FaultyRun(ReadValue):
    """One run of a plan on a project with several faults, to test how failures are grouped by cause."""

    id: str
    package: str
    kinds: tuple[str, ...]
    """Kind of each fault."""
    labels: tuple[Label, ...]
    """Label of each fault."""
    todos: tuple[str, ...]
    """Ids of the todos, in the order of the plan."""
    depends: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Dependencies of each todo."""
    failures: tuple[RunFailure, ...]
    first: tuple[int, ...]
    """Faults of which any is a correct choice for the first repair."""


SEED = "planverify-corpus-1"
"""Seed of the split. It never changes, because that would show cases of the test part to the rules."""

TEST_SHARE = 3
"""One of this many small projects, and one of this many kinds of fault, is reserved for testing."""

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
"""Published packages into which faults are inserted."""

TEST_PACKAGES = 3
"""Number of these packages that are reserved for testing: the first in the order of their digests."""


RELEASE_PACKAGES = ("jmespath", "natsort", "packaging", "parse", "pathspec", "python-dotenv", "wcwidth")
"""Packages of the group ``release``, whose cases rules were written on."""

FRESH_PACKAGES = ("boltons", "humanize", "isodate")
"""Packages recorded last, on whose cases no rule or number was written or chosen."""


class Part(StrEnum):
    """The parts of the corpus."""

    DEVELOP = "develop"
    TEST = "test"
    FRESH = "fresh"


def part_of(package: str, kind: str) -> Part:
    """Return the part of a case with this package, or small project, and kind of fault."""
    if package in FRESH_PACKAGES:
        return Part.FRESH
    if package in RELEASE_PACKAGES:
        return Part.DEVELOP
    return Part.TEST if is_test_package(package) or is_test_kind(kind) else Part.DEVELOP


def is_test_package(package: str) -> bool:
    """Return whether a package is reserved for testing."""
    if package in PACKAGES:
        ranked = sorted(PACKAGES, key=lambda name: _digest("package", name))
        return package in ranked[:TEST_PACKAGES]
    return _digest("package", package) % TEST_SHARE == 0


def is_test_kind(kind: str) -> bool:
    """Return whether a kind of fault is reserved for testing."""
    return _digest("kind", kind) % TEST_SHARE == 0


def _digest(unit: str, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{SEED}:{unit}:{name}".encode()).digest()[:8])


T = TypeVar("T", bound=BaseModel)

RUNS = "runs"
"""Folder, below each part, of the runs with several faults."""


class CorpusError(PlannerError):
    """The corpus cannot be read; the message names the file, the line and the remedy."""


def read_cases(corpus: Path, part: Part) -> tuple[Case, ...]:
    """Read all cases of a part, in the order of file names and lines. Raises :class:`CorpusError`."""
    return tuple(_read(corpus / part.value, Case))


def read_file(file: Path) -> tuple[Case, ...]:
    """Read all cases of one file. Raises :class:`CorpusError`."""
    return tuple(_read_file(file, Case))


def read_runs(corpus: Path, part: Part) -> tuple[FaultyRun, ...]:
    """Read all runs with several faults of a part. Raises :class:`CorpusError`."""
    folder = corpus / part.value / RUNS
    return tuple(_read(folder, FaultyRun)) if folder.is_dir() else ()


def digest_of(corpus: Path, *parts: Part) -> str:
    """Return a short digest of the contents of the files of these parts."""
    found = hashlib.sha256()
    for part in parts:
        for file in sorted((corpus / part.value).glob("*.jsonl.gz")):
            found.update(f"{part.value}/{file.name}\0".encode() + gzip.decompress(file.read_bytes()))
    return f"sha256:{found.hexdigest()[:16]}"


def write_cases(corpus: Path, name: str, cases: Iterable[Case]) -> None:
    """Write the cases of one builder to ``name.jsonl.gz`` of each part, sorted by id."""
    lines: dict[Part, list[str]] = {part: [] for part in Part}
    for case in sorted(cases, key=lambda each: each.id):
        lines[part_of(case.origin.package, case.origin.kind)].append(render(case))
    for part, found in lines.items():
        _write(corpus / part.value / f"{name}.jsonl.gz", found)


def write_runs(corpus: Path, name: str, runs: Iterable[FaultyRun]) -> None:
    """Write runs with several faults; one with a kind reserved for testing belongs to ``test``."""
    lines: dict[Part, list[str]] = {part: [] for part in Part}
    for run in sorted(runs, key=lambda each: each.id):
        parts = {part_of(run.package, kind) for kind in run.kinds}
        lines[Part.TEST if Part.TEST in parts else Part.DEVELOP].append(render(run))
    for part, found in lines.items():
        _write(corpus / part.value / RUNS / f"{name}.jsonl.gz", found)


def render(value: Case | FaultyRun) -> str:
    """Return one line of JSON without the values that are defaults."""
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
            f"{file}:{number} {where}: {first['msg']}; build the corpus again or correct the line"
        ) from error
