"""Build the groups ``environment`` and ``guard``: write the project of each scene, record its failure."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from edits import Edit, EditError, Files, changed_files, commit_files, write_files
from recording import PLUGIN_FOLDER, Recording, plan_of, record
from scenes.scene import PROJECTS, Project, Scene, Style, read_scenes
from scenes.surroundings import Around, around, is_free, possible

from planner.model.evidence import Evidence
from tools.corpus.case import Case, Gates, Group, Label, Origin, Place


def in_style(source: str, style: Style, name: str) -> str:
    """Return the test module, with its test functions in a class if the style requires one.

    A ``TestCase`` supports neither fixtures as parameters nor parametrized tests: these get a plain class.
    """
    tests = [
        node
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    ]
    if style is Style.FUNCTIONS or not tests:
        return source
    lines = source.splitlines()
    methods: list[str] = []
    for node in reversed(tests):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
        text = "\n".join(lines[first : node.end_lineno])
        given = "self, " if node.args.args else "self"
        methods.insert(0, text.replace(f"{node.name}(", f"{node.name}({given}", 1))
        del lines[first : node.end_lineno]
    plain = style is Style.UNITTEST and all(
        isinstance(node, ast.FunctionDef) and not node.args.args and not node.decorator_list
        for node in tests
    )
    head = "\n".join(lines).rstrip()
    title = "".join(word.capitalize() for word in name.split("_"))
    opened = f"class {title}Test(unittest.TestCase):" if plain else f"class Test{title}:"
    body = indent("\n\n".join(methods), "    ")
    if plain:
        head = f"import unittest\n{head}"
    return f"{head}\n\n\n{opened}\n{body}\n"


IGNORED = ".planverify/\nplan.json\n.planverify-recorded.jsonl\n__pycache__/\n.pytest_cache/\n"
"""Files that runs leave in a project."""


def naming(scene: Scene, project: Project, port: int) -> Callable[[str], str]:
    """Return a function that replaces the placeholders for the names of project, module and port."""

    def named(text: str) -> str:
        own = text.replace("MODULE", scene.module).replace("PORTNUMBER", str(port))
        return project.named(own)

    return named


def files_of(scene: Scene, project: Project, named: Callable[[str], str]) -> Files:
    """Return the files of the project with those of the scene, as committed."""
    files = project.tree()
    style = project.style if scene.styled else Style.FUNCTIONS
    if scene.product:
        files["SRC/MODULE.py"] = scene.product
    if scene.test:
        files["TESTS/test_MODULE.py"] = in_style(scene.test, style, scene.module)
    laid = {named(path): named(text) for path, text in files.items()}
    laid |= {named(path): named(text) for path, text in scene.files.items()}
    return {**laid, ".gitignore": laid.get(".gitignore", "") + IGNORED}


def edited(files: Mapping[str, str], scene: Scene, named: Callable[[str], str]) -> Files:
    """Return the files after the edits of the scene. Raises :class:`EditError` if one does not fit."""
    return changed_files(
        files,
        (
            Edit(path=named(edit.path), before=named(edit.before), after=named(edit.after))
            for edit in scene.edits
        ),
    )


RUNS = 3
"""Number of red runs that a fault needs unless it is flaky."""

FLAKY_TRIES = 8
"""Most recordings of a flaky fault until it has both passed and failed."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A scene without a case, and the reason."""

    case_id: str
    kind: str
    reason: str


class _Refused(Exception):
    """A gate is not passed."""


@dataclass(frozen=True, slots=True)
class _Stage:
    scene: Scene
    project: Project
    case_id: str
    folder: Path
    """The project's files."""
    port: int
    chance: random.Random

    def said(self, text: str) -> str:
        return naming(self.scene, self.project, self.port)(text)

    @property
    def needs_port(self) -> bool:
        scene = self.scene
        values = (*scene.healthy.variables.values(), *scene.ill.variables.values(), scene.product)
        return any("PORTNUMBER" in text for text in values)

    @property
    def command(self) -> str:
        return self.said(self.scene.cmd)


def make(scene: Scene, name: str, group: Group, work: Path, seed: int) -> Case | Dropped:
    """Return the case of a scene in one project, or the reason why there is none."""
    case_id = "-".join(part for part in (group.value, name, scene.kind, scene.shape) if part)
    digest = hashlib.sha256(f"{seed}:{case_id}".encode()).digest()
    port = 20_000 + int.from_bytes(digest[:4]) % 9_000
    folder = work / case_id / "project"
    stage = _Stage(scene, PROJECTS[name], case_id, folder, port, random.Random(digest))
    try:
        return _made(stage, group, seed)
    except (_Refused, EditError, RuntimeError) as error:
        return Dropped(case_id, scene.kind, str(error))
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)


def _made(stage: _Stage, group: Group, seed: int) -> Case:
    scene = stage.scene
    if not all(possible(state) for state in (scene.healthy, scene.ill)):
        raise _Refused("this machine cannot be put in place here: it takes root and namespaces")
    if stage.needs_port and not is_free(stage.port):
        raise _Refused(f"the port {stage.port} is taken")
    _lay_out(stage)
    _see_green(stage)
    _change(stage)
    with around(stage.folder, scene.ill, stage.port, stage.said) as state:
        evidence, red, runs = _recorded(stage, state)
        executed = _executed(stage, evidence, state)
    if executed is False:
        raise _Refused("the changed line did not run")
    return Case(
        id=stage.case_id,
        group=group,
        origin=_origin(stage, seed),
        gates=Gates(green_before=True, red_runs=red, runs=runs, executed=executed),
        label=_label(stage, evidence),
        evidence=_without_cut_paths(evidence, stage.folder),
    )


def _without_cut_paths(evidence: Evidence, folder: Path) -> Evidence:
    """Remove rests of paths of this machine, which pytest leaves when it shortens long values."""
    top = re.escape(str(Path(*folder.resolve().parts[:2])))
    text = re.sub(rf"{top}/(?!pytest)[^\s'\":]*?\.\.\.", "/venv/...", evidence.model_dump_json())
    return Evidence.model_validate_json(text)


def _lay_out(stage: _Stage) -> None:
    scene = stage.scene
    shutil.rmtree(stage.folder.parent, ignore_errors=True)
    write_files(stage.folder, files_of(scene, stage.project, stage.said))
    if scene.git:
        commit_files(stage.folder, f"{stage.project.name}: {scene.module}")


def _see_green(stage: _Stage) -> None:
    with around(stage.folder, stage.scene.healthy, stage.port, stage.said) as state:
        if stage.scene.green_plan:
            seen = _record(stage, state, confirmations=1)
            if seen.exit_code != 0:
                raise _Refused(f"it is not green before: {seen.output[-1_500:]}")
        else:
            code, output = _plain(stage, state, stage.said(stage.scene.green_cmd or stage.scene.cmd))
            if code != 0:
                raise _Refused(f"it is not green before: {output[-1_500:]}")
        if stage.scene.baseline:
            _baseline(stage, state)
    if stage.needs_port and not is_free(stage.port):
        raise _Refused(f"the port {stage.port} is still taken")


def _baseline(stage: _Stage, state: Around) -> None:
    (stage.folder / "plan.json").write_text(json.dumps(_plan(stage), indent=1), encoding="utf-8")
    started = "from pytest_planverify.cli import main; raise SystemExit(main())"
    command = [str(state.python), "-c", started, "baseline", "plan.json"]
    ended = subprocess.run(
        command, cwd=stage.folder, env=_variables(state), capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise _Refused(f"no baseline: {ended.stdout}{ended.stderr}"[-1_500:])


def _variables(state: Around) -> dict[str, str]:
    given = dict(state.variables)
    given["PYTHONPATH"] = os.pathsep.join([str(PLUGIN_FOLDER), given["PYTHONPATH"]])
    return {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NO_COLOR": "1"} | given


def _plain(stage: _Stage, state: Around, cmd: str, first: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run a command with pytest alone."""
    words = shlex.split(cmd)
    if words[0] != "pytest":
        raise _Refused(f"{cmd}: only pytest can be asked alone")
    command = [str(state.python), *first, "-m", "pytest"]
    command += [word for name in state.plugins for word in ("-p", name)]
    try:
        ended = subprocess.run(
            [*command, *words[1:], "-p", "no:cacheprovider"],
            cwd=stage.folder,
            env=_variables(state),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "it did not end within 60 s"
    return ended.returncode, ended.stdout + ended.stderr


def _change(stage: _Stage) -> None:
    before = files_of(stage.scene, stage.project, stage.said)
    write_files(stage.folder, edited(before, stage.scene, stage.said), before)
    _edit_something_harmless(stage)


def _edit_something_harmless(stage: _Stage) -> None:
    """Make a harmless edit in about half of the cases, so that the changed files alone reveal nothing."""
    if stage.chance.random() < 0.5 or stage.scene.todo.get("allowed_files") or stage.scene.baseline:
        return
    if stage.chance.random() < 0.6:
        file = stage.folder / stage.project.base_module
        file.write_text(file.read_text() + "\n# Numbers are checked by whoever gives them.\n")
        return
    file = stage.folder / stage.project.base_test
    file.write_text(file.read_text() + "\n\ndef test_numbers_are_whole():\n    assert float(2) == 2\n")


def _plan(stage: _Stage) -> dict[str, Any]:
    scene = stage.scene
    criteria = _said(stage, scene.criteria or {"tests": [{"cmd": scene.cmd}]})
    plan = plan_of(
        {"work": criteria}, **({"metadata": _said(stage, dict(scene.metadata))} if scene.metadata else {})
    )
    plan["items"][0].update(_said(stage, dict(scene.todo)))
    return plan


def _said(stage: _Stage, value: Any) -> Any:
    if isinstance(value, str):
        return stage.said(value)
    if isinstance(value, dict):
        return {key: _said(stage, each) for key, each in value.items()}
    return [_said(stage, each) for each in value] if isinstance(value, (list, tuple)) else value


def _record(stage: _Stage, state: Around, *, confirmations: int = 3) -> Recording:
    return record(
        stage.folder,
        _plan(stage),
        python=state.python,
        environment=state.variables,
        plugins=state.plugins,
        confirmations=confirmations,
        options=stage.scene.options,
    )


def _recorded(stage: _Stage, state: Around) -> tuple[Evidence, int, int]:
    """Return the failure, the number of red runs, and the number of runs."""
    if stage.scene.flaky:
        return _recorded_flaky(stage, state)
    evidence = _failure(stage, _record(stage, state))
    repeated = [each.passed for each in evidence.confirmations]
    red, runs = 1 + repeated.count(False), 1 + len(repeated)
    while runs < RUNS:
        red, runs = red + _again(stage, state), runs + 1
    if red != runs:
        raise _Refused(f"it was red only {red} times of {runs}")
    return evidence, red, runs


def _recorded_flaky(stage: _Stage, state: Around) -> tuple[Evidence, int, int]:
    """Return the failure of the first run whose repetitions both passed and failed."""
    for _ in range(FLAKY_TRIES):
        seen = _record(stage, state)
        for evidence in seen.evidence:
            passed = [each.passed for each in evidence.confirmations]
            if any(passed):
                return evidence, 1 + passed.count(False), 1 + len(passed)
    raise _Refused(f"{FLAKY_TRIES} runs did not give both answers")


def _failure(stage: _Stage, seen: Recording) -> Evidence:
    wanted = stage.scene.check
    found = [each for each in seen.evidence if each.check_id == wanted]
    if not found:
        others = sorted({each.check_id for each in seen.evidence})
        raise _Refused(f"no failure of {wanted} was recorded, but of {others}: {seen.output[-800:]}")
    return found[0]


def _again(stage: _Stage, state: Around) -> bool:
    """Return whether it fails once more."""
    scene = stage.scene
    if (
        scene.criteria is None
        and not scene.todo
        and not scene.metadata
        and stage.command.startswith("pytest ")
    ):
        return _plain(stage, state, stage.command)[0] != 0
    return _record(stage, state, confirmations=1).exit_code != 0


def _edited(stage: _Stage) -> tuple[Edit, int, int] | None:
    """Return the first edit of Python code, with the lines that it covers afterwards."""
    for edit in stage.scene.edits:
        path = stage.said(edit.path)
        if path.endswith(".py") and not edit.removes:
            text = (stage.folder / path).read_text(encoding="utf-8")
            after = stage.said(edit.after)
            first = text[: text.index(after)].count("\n") + 1 if after else 1
            return edit, first, first + after.rstrip("\n").count("\n")
    return None


def _executed(stage: _Stage, evidence: Evidence, state: Around) -> bool | None:
    """Return whether a line of the edit was executed; ``None`` if there is no such line."""
    found = _edited(stage)
    on_its_own = (
        not stage.command.startswith("pytest ") or evidence.process is not None or evidence.timed_out
    )
    if found is None or on_its_own or stage.scene.flaky or not stage.scene.check.startswith("tests"):
        return None
    edit, first, last = found
    path = stage.said(edit.path)
    chain = (*evidence.exceptions, *evidence.exceptions_in_group)
    if any(f.path == path and first <= f.line <= last for each in chain for f in each.frames):
        return True
    if any(each.path is not None and each.path.endswith(path) for each in chain):
        return True  # a file that cannot be parsed: it was read
    data = stage.folder.parent / "covered"
    _plain(
        stage,
        state,
        stage.command,
        ("-m", "coverage", "run", f"--data-file={data}", f"--include={stage.folder / path}"),
    )
    if not data.exists():
        return None
    import coverage

    read = coverage.CoverageData(str(data))
    read.read()
    lines = {line for file in read.measured_files() for line in read.lines(file) or ()}
    return any(line in lines for line in range(first, last + 1))


def _label(stage: _Stage, evidence: Evidence) -> Label:
    truth, found = stage.scene.truth, _edited(stage)
    place = None
    if found is not None and not stage.scene.flaky:
        edit, first, last = found
        place = Place(path=stage.said(edit.path), first_line=first, last_line=last, exact=truth.exact)
    return Label(
        category=truth.category,
        owner=truth.owner,
        repeatability=truth.repeatability if evidence.confirmations else None,
        also=truth.also,
        place=place,
    )


def _origin(stage: _Stage, seed: int) -> Origin:
    found = _edited(stage)
    edit, line = (found[0], found[1]) if found else (next(iter(stage.scene.edits), None), None)
    return Origin(
        package=stage.project.name,
        kind=stage.scene.kind,
        seed=seed,
        file=stage.said(edit.path) if edit else None,
        line=line,
        before=stage.said(edit.before)[:400] if edit else "",
        after=stage.said(edit.after)[:400] if edit else "",
        command=stage.command,
        python=platform.python_version(),
        pytest=pytest.__version__,
    )


class SceneBuilder:
    """Builder of the cases of one group."""

    def __init__(self, group: Group) -> None:
        self._group = group

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """Return the scenes in the order in which their cases are built."""
        return read_scenes(self._group)

    @property
    def KINDS(self) -> dict[str, str]:
        """Return every kind of fault, with one sentence about it."""
        return {each.kind: each.says for each in sorted(self.scenes, key=lambda scene: scene.kind)}

    def build(self, work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case]:
        """Yield every case, or those of some kinds or projects. Reports dropped cases on standard error."""
        dropped: list[Dropped] = []
        for scene in self.scenes:
            for project in scene.projects:
                if only and scene.kind not in only and project not in only:
                    continue
                made = make(scene, project, self._group, work, seed)
                if isinstance(made, Dropped):
                    dropped.append(made)
                    print(f"dropped {made.case_id}: {made.reason}", file=sys.stderr)
                else:
                    yield made
        for kind, count in sorted(Counter(each.kind for each in dropped).items()):
            print(f"dropped {count} of {kind}", file=sys.stderr)


ENVIRONMENTS = SceneBuilder(Group.ENVIRONMENT)
"""Faults of the machine, and similar faults of the project itself."""

GUARDS = SceneBuilder(Group.GUARD)
"""Findings of guards and of criteria other than tests, and aborted runs."""
