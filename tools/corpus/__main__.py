"""Commands of the corpus: ``python -m tools.corpus report|run|build|fit``, in a checkout."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_planverify.diagnosis import diagnose
from tools.corpus import fitting
from tools.corpus.case import RECORDED, CorpusError, Part, read_cases
from tools.corpus.report import report_on, with_figures
from tools.corpus.scoring import labelled

BUILDER = Path(__file__).parent / "builders" / "build.py"


def _diagnosed(corpus: Path, part: Part) -> str:
    """Return one line of JSON for each failure: label, diagnosis, and whether the diagnosis is accepted."""
    lines: list[str] = []
    for case, label, evidence in labelled(read_cases(corpus, part)):
        said = diagnose(evidence)
        plain = {
            "id": case.id,
            "accepted": label.accepts(said.category, said.owner),
            "kind": case.origin.kind,
            "label": label.model_dump(mode="json", exclude_defaults=True),
            "diagnosis": said.model_dump(mode="json", exclude_defaults=True),
        }
        lines.append(json.dumps(plain, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def main(words: Sequence[str]) -> int:
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.corpus", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, part, about in (
        ("report", Part.TEST, "the figures of one part"),
        ("run", Part.DEVELOP, "the diagnosis of each case, as JSON"),
        ("fit", Part.DEVELOP, "fit the confidence of the diagnosis to the part develop"),
        ("build", Part.DEVELOP, "record cases again; every further word goes to the builder"),
    ):
        command = commands.add_parser(name, help=about, add_help=name != "build")
        command.add_argument("--corpus", type=Path, default=RECORDED, metavar="DIR")
        if name in ("report", "run"):
            command.add_argument("--part", type=Part, choices=list(Part), default=part)
        if name == "report":
            command.add_argument("--markdown", type=Path, metavar="PAGE", help="a page to put it into, too")
    asked, more = parser.parse_known_args(words)
    if more and asked.command != "build":
        parser.error(f"unknown words: {' '.join(more)}")
    try:
        if asked.command == "build":
            paths = os.pathsep.join([str(Path.cwd()), str(BUILDER.parent)])
            environment = {**os.environ, "PYTHONPATH": paths}
            return subprocess.run(
                [sys.executable, str(BUILDER), *more], env=environment, check=False
            ).returncode
        if asked.command == "fit":
            fitting.write(asked.corpus)
        elif asked.command == "run":
            print(_diagnosed(asked.corpus, asked.part), end="")
        else:
            text = report_on(asked.corpus, asked.part)
            print(text, end="")
            if asked.markdown is not None:
                asked.markdown.write_text(with_figures(asked.markdown, asked.part, text), encoding="utf-8")
    except CorpusError as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
