"""What a template may speak of: the goal, and what the repository says about itself."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.authoring.first_plan import fresh_id
from planner.authoring.goals import LONGEST_GOAL
from planner.authoring.repository import read_repository
from planner.model.verdicts import Purpose
from planner.planfile.discovery import project_root
from planner.planfile.dump import plain
from planner.planfile.project_files import walk
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_TITLE = 120
_MOST_PLACES = 20


class Language(NamedTuple):
    """How files and commands of a language are written; ``{}`` is the name of a piece of work."""

    manifest: str
    test_file: str
    test: str
    sources: str
    every_test: str


LANGUAGES = {
    "go": Language("go.mod", "{}_test.go", "go test ./...", "**/*.go !**/*_test.go", "go test ./..."),
    "rust": Language("Cargo.toml", "tests/{}.rs", "cargo test --test {}", "src/**", "cargo test"),
    "node": Language("package.json", "test/{}.test.js", "npm test", "src/**", "npm test"),
}
"""Those that a manifest tells; everything else is Python."""


def read_values(goal: str, folder: Path) -> dict[str, Any]:
    """Return the names that templates may use, for a goal in the repository of a folder."""
    repository = read_repository(folder)
    files = list(walk(folder))
    is_python = bool(repository.test_files) or any(each.endswith(".py") for each in files)
    language = next((name for name, each in LANGUAGES.items() if each.manifest in files), "python")
    language = "python" if is_python else language
    root = project_root(folder)

    def existing(paths: list[str]) -> list[str]:
        return [each for each in paths if (folder / each).is_file()]

    of_repository: dict[str, Any] = {
        "repository": repository.name,
        "tools": [plain(each) for each in repository.tools],
        "language": language,
        "files": len(files),
        "test_files": repository.test_files,
        "existing": existing,
        "markers": [each.partition(":")[0].strip() for each in root.lines("markers")],
        "checks": [
            each.cmd for each in repository.checks if each.is_installed and each.purpose is not Purpose.TEST
        ],
    }
    if language == "python":
        tops = sorted({each.place.partition("/")[0] for each in repository.tests})
        places = (each.rstrip("/") for each in root.words("testpaths"))
        of_repository |= {
            "tests": next((each for each in places if (folder / each).is_dir()), "tests"),
            "pytest": repository.runner,
            "sources": list(repository.sources)
            or [f"{fresh_id(repository.name, set()).replace('-', '_')}/**"],
            "every_test": [_every_test(repository.runner, tops)] if tops else [],
        }
    else:
        rules = LANGUAGES[language]
        of_repository |= {"sources": rules.sources.split(), "every_test": [rules.every_test]}
        of_repository |= {"tests": "tests", "pytest": "pytest"}  # for templates that are about Python
    return of_repository | values_of_goal(goal, of_repository)


def _every_test(runner: str, places: list[str]) -> str:
    """Return the command that runs all tests; of many places pytest finds them itself."""
    return " ".join([runner, *map(shlex.quote, places if len(places) <= _MOST_PLACES else ())])


def values_of_goal(
    goal: str, of_repository: dict[str, Any], *, taken: set[str] | None = None
) -> dict[str, Any]:
    """Return the names that speak of the goal: its id, none of those taken, its title, files of tests."""
    title = one_line(goal, limit=LONGEST_GOAL)
    todo_id = fresh_id(title, set() if taken is None else taken)
    module = re.sub(r"\W", "_", todo_id)
    values = {
        "goal": clean(goal, limit=LONGEST_GOAL).strip(),
        "title": title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1].rstrip()}…",
        "id": todo_id,
        "module": module,
    }
    if of_repository["language"] == "python":
        test_file = f"{of_repository['tests']}/test_{module}.py"
        return values | {"test_file": test_file, "test": f"{of_repository['pytest']} {test_file}"}
    rules = LANGUAGES[of_repository["language"]]
    return values | {"test_file": rules.test_file.format(module), "test": rules.test.format(module)}
