"""The corpus as files: one JSON line a case, a folder for each part, and runs with several faults."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from planner.errors import PlannerError
from pytest_planverify.corpus.case import Case, FaultyRun
from pytest_planverify.corpus.splitting import Part, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

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
        for file in sorted((corpus / part.value).glob("*.jsonl")):
            found.update(f"{part.value}/{file.name}\0".encode() + file.read_bytes())
    return f"sha256:{found.hexdigest()[:16]}"


def write_cases(corpus: Path, name: str, cases: Iterable[Case]) -> None:
    """Write the cases of one builder into the files ``name.jsonl`` of both parts, in the order of ids."""
    lines: dict[Part, list[str]] = {part: [] for part in Part}
    for case in sorted(cases, key=lambda each: each.id):
        lines[part_of(case.origin.package, case.origin.kind)].append(render(case))
    for part, found in lines.items():
        _write(corpus / part.value / f"{name}.jsonl", found)


def write_runs(corpus: Path, name: str, runs: Iterable[FaultyRun]) -> None:
    """The same for runs with several faults: a run with a kind kept for testing is kept for testing."""
    lines: dict[Part, list[str]] = {part: [] for part in Part}
    for run in sorted(runs, key=lambda each: each.id):
        parts = {part_of(run.package, kind) for kind in run.kinds}
        lines[Part.TEST if Part.TEST in parts else Part.DEVELOP].append(render(run))
    for part, found in lines.items():
        _write(corpus / part.value / RUNS / f"{name}.jsonl", found)


def render(value: Case | FaultyRun) -> str:
    """One line of JSON; what has its usual value is left out."""
    plain = value.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _write(file: Path, lines: list[str]) -> None:
    if not lines:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(folder: Path, kind: type[T]) -> Iterator[T]:
    if not folder.is_dir():
        raise CorpusError(f"{folder}: there is no corpus; name its folder with --corpus")
    for file in sorted(folder.glob("*.jsonl")):
        yield from _read_file(file, kind)


def _read_file(file: Path, kind: type[T]) -> Iterator[T]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
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
