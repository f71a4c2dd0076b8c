"""In which language the work of a todo is written, told by its files and commands."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.rules.criteria import commands_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.plan import Todo

PYTHON = "python"
"""What is taken where nothing tells: pytest runs what a plan names."""

_BY_SUFFIX: Mapping[str, str] = {
    ".py": PYTHON,
    ".pyi": PYTHON,
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue"), "node"),
    ".go": "go",
    ".rs": "rust",
}

_BY_PROGRAM: Mapping[str, str] = {
    "pytest": PYTHON,
    "python": PYTHON,
    **dict.fromkeys(("npm", "npx", "node", "yarn", "pnpm", "jest", "vitest", "eslint", "tsc"), "node"),
    "go": "go",
    "cargo": "rust",
}


def language_of(todo: Todo) -> str:
    """``python``, ``node``, ``go`` or ``rust``: the language of the first file, else of the first command,
    that tells it."""
    return next(_languages(todo), PYTHON)


def _languages(todo: Todo) -> Iterator[str]:
    for file in _files(todo):
        suffix = PurePosixPath(file).suffix
        if suffix in _BY_SUFFIX:
            yield _BY_SUFFIX[suffix]
    for _, spec in commands_of(todo):
        for word in spec.cmd.split():
            if word in _BY_PROGRAM:
                yield _BY_PROGRAM[word]


def _files(todo: Todo) -> Iterator[str]:
    spec = todo.controller_task_spec
    if spec is not None and spec.target_file is not None:
        yield spec.target_file
    yield from todo.allowed_files or ()
    yield from (artifact.path for artifact in todo.acceptance_criteria.expected_artifacts)
