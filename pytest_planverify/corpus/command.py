"""``python -m pytest_planverify.corpus``: build the corpus, diagnose it, report how well that went."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command_app
from planner.cli.ending import Status, complain, ends, say
from pytest_planverify.corpus.files import CorpusError
from pytest_planverify.corpus.splitting import Part

if TYPE_CHECKING:
    from planner.model.outcome import Diagnosis
    from pytest_planverify.corpus.case import Case, Label

BUILDER = Path("tests", "corpus", "build.py")
"""What makes the corpus, in a checkout of this project."""

USUAL_CORPUS = Path("fixtures", "corpus")

app = command_app(
    no_args_is_help=True,
    help="The labelled corpus of real failures: build it, diagnose it, report how well that goes.",
    epilog="Exit status: 0 done, 2 wrong usage, 4 there is no corpus, or it cannot be read or built.",
)


class Parts(StrEnum):
    """What ``--part`` takes."""

    DEVELOP = "develop"
    TEST = "test"
    ALL = "all"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are meant."""
        return tuple(Part) if self is Parts.ALL else (Part(self.value),)


CorpusOption = Annotated[
    Path,
    typer.Option("--corpus", metavar="DIR", help="The folder of the corpus, with develop and test in it."),
]


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Exit status: that of the builder, 4 where there is no checkout.",
)
@ends
def build(context: typer.Context) -> int:
    """Make the corpus anew, in a checkout of this project.

    Faults are put into published packages and small projects, each is verified by pytest --planverify, and
    what was recorded is kept. It takes long. Every word that follows goes to the builder.
    """
    if not BUILDER.is_file():
        raise CorpusError(f"{BUILDER}: the corpus is built in a checkout of this project; start it there")
    return subprocess.run([sys.executable, str(BUILDER), *context.args], check=False).returncode


@app.command(epilog="Exit status: 0 all were diagnosed, 2 wrong usage, 4 the corpus cannot be read.")
@ends
def run(
    corpus: CorpusOption = USUAL_CORPUS,
    part: Annotated[
        Parts,
        typer.Option("--part", help="Which part. Rules are not to be made by what the part test shows."),
    ] = Parts.DEVELOP,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where the lines go. Default: printed.")
    ] = None,
) -> int:
    """Diagnose every recorded failure, one line of JSON each.

    Each line holds the label, the diagnosis, and whether it is accepted.
    """
    lines = _diagnosed(corpus, part)
    if output is None:
        for line in lines:
            say(line)
    else:
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Status.OK


@app.command(
    epilog="Exit status: 0 reported, 2 wrong usage, 4 the corpus cannot be read, or a file not written."
)
@ends
def report(
    corpus: CorpusOption = USUAL_CORPUS,
    part: Annotated[
        Parts, typer.Option("--part", help="Which part. What counts is test: the rules have not seen it.")
    ] = Parts.TEST,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON, too.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw calibration and errors, too.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            help="Put the tables into this page, too: between its two markers, if it has some.",
        ),
    ] = None,
) -> int:
    """Report how well the diagnosis does, and its rivals."""
    from pytest_planverify.corpus import tables
    from pytest_planverify.corpus.pages import with_figures
    from pytest_planverify.corpus.plotting import as_svg
    from pytest_planverify.corpus.report import report_on

    found = report_on(corpus, part.parts)
    say(tables.as_text(found).rstrip("\n"))
    files: dict[Path, str] = {}
    if json_file is not None:
        files[json_file] = json.dumps(asdict(found), indent=1, ensure_ascii=False) + "\n"
    if svg is not None:
        files[svg] = as_svg(found)
    if markdown is not None:
        files[markdown] = with_figures(markdown, found.part, tables.as_markdown(found))
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
        complain(f"wrote {file}")
    return Status.OK


def _diagnosed(corpus: Path, part: Parts) -> list[str]:
    from pytest_planverify.corpus.files import read_cases
    from pytest_planverify.corpus.scoring import labelled
    from pytest_planverify.diagnosis import diagnose

    cases = (each for one in part.parts for each in read_cases(corpus, one))
    return [
        json.dumps(_line(case, label, diagnose(evidence)), ensure_ascii=False)
        for case, label, evidence in labelled(cases)
    ]


def _line(case: Case, label: Label, diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "id": case.id,
        "accepted": label.accepts(diagnosis.category, diagnosis.owner),
        "group": case.group.value,
        "package": case.origin.package,
        "kind": case.origin.kind,
        "label": label.model_dump(mode="json", exclude_defaults=True),
        "diagnosis": diagnosis.model_dump(mode="json", exclude_defaults=True),
    }
