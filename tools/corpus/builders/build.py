"""Build the corpus: call every builder, and write its cases into the parts that they belong to.

``python -m tools.corpus build [CORPUS] [--only NAME] [--work DIR] [--seed N]``; a NAME is a builder, a kind
of fault, a package or a small project. Cases that are not built again stay as recorded.
"""

from __future__ import annotations

import argparse
import importlib.util
import pkgutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tools.corpus.case import (
    PACKAGES,
    RECORDED,
    Case,
    CorpusError,
    Part,
    read_cases,
    read_file,
    read_runs,
    write_cases,
    write_runs,
)

PLUGINS = {"pytest_asyncio": "pytest-asyncio", "xdist": "pytest-xdist", "pytest_cov": "pytest-cov"}
"""Distributions that the small projects need, by the module that shows whether they are installed."""

USUAL_CORPUS = RECORDED


BUILDERS: Mapping[str, tuple[str, str]] = {
    "injected": ("injected", "injected"),
    "decoys": ("decoys", "decoys"),
    "controls": ("controls", "controls"),
    "environments": ("scenes.making:ENVIRONMENTS", "environment"),
    "guards": ("scenes.making:GUARDS", "guards"),
    "commands": ("commands", "commands"),
    "releases": ("releases", "releases"),
}
"""By the name for ``--only``: the module or object that builds cases, and the stem of its files."""

RUN_BUILDER = "faulty_runs"
"""The module that builds runs with several faults."""

RUN_FILE = "faulty"


def build(corpus: Path, work: Path, *, only: Collection[str] = (), seed: int = 1) -> int:
    """Build the corpus, or a part of it; return the number of built cases.

    Raises ``CorpusError`` if recorded cases that are to be kept cannot be read.
    """
    chosen = [name for name in (*BUILDERS, RUN_BUILDER) if name in only]
    inside = sorted(set(only) - set(chosen))
    for part in Part:
        (corpus / part.value).mkdir(parents=True, exist_ok=True)
    if not chosen:
        _refuse_unknown(inside, corpus)
    made = 0
    for name in BUILDERS:
        if not chosen or name in chosen:
            made += _build_cases(name, corpus, work / name, inside, seed)
    if not chosen or RUN_BUILDER in chosen:
        made += _build_runs(corpus, work / RUN_BUILDER, inside, seed)
    return made


def _refuse_unknown(names: Collection[str], corpus: Path) -> None:
    """Raise ``CorpusError`` for an unknown name before any builder starts, as building takes hours."""
    known = {kind for where, _ in BUILDERS.values() for kind in pkgutil.resolve_name(where).KINDS}
    known |= {*BUILDERS, RUN_BUILDER, *PACKAGES}
    known |= {case.origin.package for part in Part for case in read_cases(corpus, part)}
    known |= {run.package for part in Part for run in read_runs(corpus, part)}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else "name a builder beside it if it is new"
            raise CorpusError(f"--only {name}: no builder, kind or package is called that; {remedy}")


def _build_cases(name: str, corpus: Path, work: Path, inside: Collection[str], seed: int) -> int:
    where, stem = BUILDERS[name]
    builder = pkgutil.resolve_name(where)
    work.mkdir(parents=True, exist_ok=True)
    made = {case.id: case for case in builder.build(work, seed, tuple(inside))}
    skipped: Mapping[str, str] = getattr(builder, "SKIPPED", {})
    recorded = [case for case in _recorded(corpus, stem) if case.id not in made]
    kept = [case for case in recorded if _stays(case, inside, skipped)]
    write_cases(corpus, stem, (*kept, *made.values()))
    _tell(name, len(made), builder, len(kept), skipped)
    return len(made)


def _stays(case: Case, inside: Collection[str], skipped: Mapping[str, str]) -> bool:
    """Return whether a recorded case that was not built is kept: not requested, or its tool is missing."""
    asked = not inside or case.origin.kind in inside or case.origin.package in inside
    return not asked or case.origin.kind in skipped


def _recorded(corpus: Path, stem: str) -> list[Case]:
    """Return the recorded cases of a builder, in all parts."""
    files = (corpus / part.value / f"{stem}.jsonl.gz" for part in Part)
    return [case for file in files if file.exists() for case in read_file(file)]


def _build_runs(corpus: Path, work: Path, inside: Collection[str], seed: int) -> int:
    builder = pkgutil.resolve_name(RUN_BUILDER)
    work.mkdir(parents=True, exist_ok=True)
    made = {run.id: run for run in builder.build_runs(work, seed, tuple(inside))}
    before = [run for part in Part for run in read_runs(corpus, part)]
    kept = [
        run
        for run in before
        if run.id not in made and inside and not {run.package, *run.kinds} & set(inside)
    ]
    write_runs(corpus, RUN_FILE, [*kept, *made.values()])
    _tell(RUN_BUILDER, len(made), builder, len(kept), {})
    return len(made)


def _tell(name: str, made: int, builder: Any, kept: int, skipped: Mapping[str, str]) -> None:
    dropped: Mapping[str, int] | None = getattr(builder, "DROPPED", None)
    gate = "as told above" if dropped is None else str(sum(dropped.values()))
    line = f"{name}: {made} built, dropped by a gate: {gate}"
    if kept:
        line += f", {kept} kept as recorded"
    if skipped:
        tools = ", ".join(sorted(set(skipped.values())))
        line += f", {len(skipped)} kinds skipped: not on this machine: {tools}"
    print(line, flush=True)


def _require_plugins() -> None:
    """Raise :class:`CorpusError` if a plugin is missing.

    Without it the small projects fail, and their recorded cases would be lost.
    """
    absent = [name for module, name in PLUGINS.items() if importlib.util.find_spec(module) is None]
    if absent:
        raise CorpusError(
            f"{sys.executable} lacks {', '.join(absent)}, which the projects of the corpus use; nothing "
            f"was built: pip install {' '.join(absent)}"
        )


def main(words: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="build.py", description="Build the corpus of failures.")
    parser.add_argument(
        "corpus",
        type=Path,
        nargs="?",
        default=USUAL_CORPUS,
        metavar="CORPUS",
        help="default: the recorded one",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a builder, kind or package"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="for scratch; kept, and used again")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    asked = parser.parse_args(words)
    try:
        _require_plugins()
        with tempfile.TemporaryDirectory(prefix="corpus-") as scratch:
            made = build(asked.corpus, asked.work or Path(scratch), only=asked.only, seed=asked.seed)
    except CorpusError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 4
    print(f"{made} made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
