"""Prints what the real command says of each cheat and honest change of the corpus.

``python tools/bench/hygiene_runs.py --split dev [--label cheat] [ID …]``
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / each) for each in ("pytest_planverify", "support"))]

from hygiene_corpus import CORPUS, patches, project_bundle  # noqa: E402
from text_bundles import unpack_bundle  # noqa: E402

TAMPERED = 13
_ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def main() -> int:
    """The exit status is 1 where a cheat's todo is done without a word, or an honest change was flagged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="only these cases")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--label", choices=("cheat", "honest"))
    parser.add_argument("--all", action="store_true", help="show the signs of every case")
    arguments = parser.parse_args()
    cases = [
        case
        for case in yaml.safe_load((CORPUS / "cases.yaml").read_text(encoding="utf-8"))
        if case["split"] == arguments.split
        and arguments.label in (None, case["label"])
        and (not arguments.ids or case["id"] in arguments.ids)
    ]
    wrong = 0
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="hygiene-runs-") as scratch:
        projects = {case["project"]: Path(scratch, case["project"]) for case in cases}
        for name, folder in projects.items():
            _begin(name, folder)
        for case in cases:
            said, is_wrong, signs = _judge(case, projects[case["project"]])
            counts[f"{case['label']}: {said}"] = counts.get(f"{case['label']}: {said}", 0) + 1
            wrong += is_wrong
            if is_wrong or arguments.all:
                print(
                    f"{'WRONG' if is_wrong else 'ok':5} {case['id']} ({case['todo']}): {said}", flush=True
                )
                for sign in signs:
                    print(f"        {sign}", flush=True)
    for said, count in sorted(counts.items()):
        print(f"{count:4} {said}")
    return int(wrong > 0)


def _begin(name: str, folder: Path) -> None:
    """A project with its baseline."""
    unpack_bundle(project_bundle(name), folder)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    done = _command("planverify", "baseline", "plan.yaml", cwd=folder)
    assert done.returncode == 0, done.stdout


def _judge(case: dict[str, Any], project: Path) -> tuple[str, bool, list[str]]:
    place = project.parent / case["id"]
    shutil.copytree(project, place, symlinks=True)
    patch = patches(case["project"])[case["id"]]
    _make_way(patch, place)
    subprocess.run(["git", "apply", "--whitespace=nowarn"], input=patch.encode(), cwd=place, check=True)
    options = ("-p", "pytest_planverify.plugin", "--planverify-confirm", "1", "--planverify")
    done = _command("pytest", *options, f"plan.yaml::{case['todo']}", cwd=place)
    state = "absent"
    signs: list[str] = []
    for outcome in _outcomes(place / ".planverify" / "outcomes.json"):
        if outcome["todo_id"] == case["todo"]:
            state = str(outcome["state"])
        signs += [
            f"{outcome['todo_id']}: {failure['suggestion']}"
            for failure in outcome["failures"]
            if failure["category"] == "HYGIENE_VIOLATION"
        ]
    held = bool(signs)
    shutil.rmtree(place)
    if case["label"] == "cheat":
        said = "tampered" if held or done.returncode == TAMPERED else f"{state}, exit {done.returncode}"
        return said, state == "done" and not held, signs
    return ("flagged" if held else "not flagged"), held, signs


def _make_way(patch: str, place: Path) -> None:
    """Remove what the run of the baseline has made where the patch makes it."""
    for header, path in pairwise(patch.splitlines()):
        if header == "--- /dev/null" and path.startswith("+++ b/"):
            (place / path.removeprefix("+++ b/")).unlink(missing_ok=True)


def _outcomes(file: Path) -> list[dict[str, Any]]:
    """Those of the run; none where a cheat has put something else in their place."""
    try:
        found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["outcomes"]
    except (OSError, ValueError, KeyError):
        return []
    return found


def _command(program: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *args],
        cwd=cwd,
        env=inherited | _ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=300,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
