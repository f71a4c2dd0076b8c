"""Which files a failure points to, as far as they are files below the plan's root."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.model.taxonomy import Owner
from planner.rules.editing.allowed_files import WILDCARDS
from planner.rules.revision.facts import exceptions, kindred, observed
from planner.text.glob_patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.rules.revision.situation import Situation

SURE = 0.9
"""How sure a diagnosis has to be that a test is at fault for the repair to be kept to the tests."""

MAX_FILES = 20
"""Of more files than this the first are taken."""

_MAX_PATH = 4_096
_UNUSUAL = re.compile(r"^[/\\~]|^[A-Za-z]:|[\x00-\x1f\x7f\\\ud800-\udfff]")
_FOREIGN = frozenset({"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".tox", ".nox"})
_OWN = frozenset({".planverify", "diagnostics"})
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs"})
_TEST_NAME = re.compile(r"^(?:conftest\.py|test_.*|.*_tests?\.\w+|.*[.-](?:test|spec)\.\w+)$")
_NO_PRODUCT = frozenset({Owner.TEST, Owner.PLAN, Owner.ENVIRONMENT, Owner.HARNESS})


def below_root(path: str | None) -> str | None:
    """A path of an outcome in its plain form, or ``None`` where it is none of the project's files."""
    if not path or len(path) > _MAX_PATH or _UNUSUAL.search(path):
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.endswith("/"):
        return None
    if parts[0] in _OWN or _FOREIGN & set(parts):
        return None
    return "/".join(parts)


def is_test_file(path: str) -> bool:
    """Whether a path looks like that of a test, whatever its language."""
    *folders, name = path.split("/")
    return bool(_TEST_NAME.match(name)) or any(folder in _TEST_FOLDERS for folder in folders)


def located_files(situation: Situation) -> tuple[str, ...]:
    """The files in which the failures of this kind are located, the one that decides first."""
    return _distinct(each.location.path if each.location else None for each in kindred(situation))


def files_with_findings(situation: Situation) -> tuple[str, ...]:
    """The files that a tool complained of, else those in which the failures are located."""
    found = [
        finding.path
        for observation in observed(situation)
        if observation.command is not None
        for finding in observation.command.findings
    ]
    return _distinct((*(each or "" for each in located_files(situation)), *found))


def implicated_files(situation: Situation) -> tuple[str, ...]:
    """The files in which a wrong result may have its cause: the product's, or the test's if it is at fault.

    Files that the plan protects are left out.
    """
    owner = situation.failure.owner
    if owner is Owner.TEST and (situation.failure.confidence or 0.0) < SURE:
        found = ()  # the cause may well lie in the product, and the right repair must not be forbidden
    elif owner is Owner.TEST:
        found = _test_files(situation)
    elif owner in _NO_PRODUCT:
        found = ()
    else:
        found = _product_files(situation)
    protected = situation.plan.metadata.protected_files
    return tuple(file for file in found if not any(matches(file, each) for each in protected))


def folder_pattern(path: str) -> str | None:
    """The glob of everything in a file's folder; of a file at the root, the file itself."""
    folders = path.split("/")[:-1]
    plain: list[str] = []
    for folder in folders:
        if WILDCARDS & set(folder):
            break
        plain.append(folder)
    if plain:
        return "/".join([*plain, "**"])
    return None if folders else file_pattern(path)


def file_pattern(path: str) -> str | None:
    """The glob of one file; its folder's where its name would be read as a glob itself."""
    if not WILDCARDS & set(path) and not path.startswith("!"):
        return path
    return folder_pattern(path) if "/" in path else None


def _product_files(situation: Situation) -> tuple[str, ...]:
    frames = [frame for each in exceptions(situation) for frame in reversed(each.frames)]
    tests = {frame.path for frame in frames if frame.side is Side.TEST}
    task = situation.todo.controller_task_spec
    certain = _distinct(
        (
            *located_files(situation),
            *(frame.path for frame in frames if frame.side is Side.PRODUCT),
            task.target_file if task else None,
        )
    )
    named = {artifact.path for artifact in situation.todo.acceptance_criteria.expected_artifacts}
    near = {file.rpartition("/")[0] for file in certain}
    touched = [
        file
        for file in _distinct(situation.outcome.touched_files)
        if file in named or file.rpartition("/")[0] in near
    ]
    return tuple(
        file for file in _distinct((*certain, *touched)) if file not in tests and not is_test_file(file)
    )


def _test_files(situation: Situation) -> tuple[str, ...]:
    named = (test.partition("::")[0] for each in kindred(situation) for test in each.tests)
    return tuple(file for file in _distinct((*located_files(situation), *named)) if is_test_file(file))


def _distinct(paths: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_plain(paths)))[:MAX_FILES]


def _plain(paths: Iterable[str | None]) -> Iterator[str]:
    for path in paths:
        plain = below_root(path)
        if plain is not None:
            yield plain
