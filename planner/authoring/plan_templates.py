"""Plans from templates: YAML with Jinja2 in it, in its sandbox, within bounds, and what they may speak of.

Every ``{{ expression }}`` is written as one value of YAML, in quotes where it needs them: no text that is
filled in can become syntax. Templates are those of this package, and those of a folder of the user's own.
"""

from __future__ import annotations

import importlib.resources
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import FunctionLoader, StrictUndefined, TemplateError, TemplateNotFound
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError
from markupsafe import Markup

from planner.authoring.first_plan import fresh_id, short_title
from planner.authoring.outline import LONGEST_GOAL
from planner.authoring.repository import LANGUAGES, read_repository
from planner.errors import PlannerError
from planner.model.verdicts import Purpose
from planner.planfile.discovery import project_root
from planner.planfile.dump import plain, yaml_flow
from planner.planfile.project_files import open_regular
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

ENDING = ".yaml"
MAX_BYTES = 1 << 20
"""Of one template, and of the plan that is made of it."""
_MOST_FACTOR = 10_000
_MOST_PLACES = 20


class TemplateFault(PlannerError):
    """A template cannot be read or filled in; the line names it, the fault and what to do."""


class PlanTemplates:
    """Templates by name: the user's own, and those of the package that they do not replace."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None and not folder.is_dir():
            raise TemplateFault(f"{folder}: there is no such folder of templates; name one, or make it")
        self._folder = folder
        self._environment = _Sandbox(
            loader=FunctionLoader(self._source),
            undefined=StrictUndefined,
            autoescape=True,  # so that the text of a macro is told from a text that was filled in
            finalize=_as_yaml,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def names(self) -> dict[str, str]:
        """Return what each template is for, by its name: its first line, a comment."""
        folders = [importlib.resources.files("planner.authoring") / "templates", self._folder]
        found = {
            each.name.removesuffix(ENDING)
            for folder in folders
            if folder is not None
            for each in folder.iterdir()
            if each.name.endswith(ENDING) and not each.name.startswith("_") and each.is_file()
        }
        purposes: dict[str, str] = {}
        for name in sorted(found):
            first = (self._source(f"{name}{ENDING}") or "").partition("\n")[0]
            purposes[name] = (
                one_line(first.strip("{#} -"), limit=100) if first.startswith(("#", "{#")) else ""
            )
        return purposes

    def fill(self, name: str, values: Mapping[str, Any]) -> str:
        """Return the text of the plan that a template makes of these values. Raises ``TemplateFault``."""
        parts: list[str] = []
        length = 0
        try:
            for part in self._environment.get_template(f"{name}{ENDING}").generate(**values):
                length += len(part)
                if length > MAX_BYTES:
                    raise _TooMuchError(f"it makes more than {MAX_BYTES:,} characters")
                parts.append(part)
        except TemplateNotFound as error:
            raise TemplateFault(
                f"template {name}: there is no template '{one_line(error.name or '', limit=100)}'; "
                f"there are {', '.join(self.names())}"
            ) from None
        except TemplateError as error:
            line = getattr(error, "lineno", None)
            at = f", line {line}" if line else ""
            why = "it may not do that" if isinstance(error, SecurityError) else "correct the template"
            raise TemplateFault(f"template {name}{at}: {one_line(error, limit=300)}; {why}") from None
        except Exception as error:  # whatever an expression of a template may raise
            raise TemplateFault(
                f"template {name}: {one_line(error, limit=300) or type(error).__name__}; correct it"
            ) from None
        return _without_empty_lines("".join(parts))

    def _source(self, file: str) -> str | None:
        """Return the text of a template; a name that leaves the folders has none."""
        parts = Path(file).parts
        if not file.endswith(ENDING) or ".." in parts or Path(file).is_absolute():
            return None
        if self._folder is not None:
            path = (self._folder / file).resolve()
            if path.is_file() and path.is_relative_to(self._folder.resolve()):
                with open_regular(path) as held:
                    data = held.read(MAX_BYTES + 1)
                if len(data) > MAX_BYTES:
                    raise TemplateFault(f"{path}: it is larger than {MAX_BYTES:,} bytes; make it shorter")
                return data.decode("utf-8-sig", "replace")
        own = importlib.resources.files("planner.authoring").joinpath("templates", *parts)
        return own.read_text(encoding="utf-8") if own.is_file() else None


class _TooMuchError(Exception):
    """The template goes beyond a bound."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox, without arithmetic that a few characters of a template make endless."""

    intercepted_binops = frozenset(("*", "**", "%"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply and format small things only."""
        numbers = all(isinstance(each, int | float) and abs(each) <= _MOST_FACTOR for each in (left, right))
        if operator == "**" or not numbers:
            raise SecurityError(f"'{operator}' is for numbers up to {_MOST_FACTOR:,} here, and no powers")
        return super().call_binop(context, operator, left, right)


def _without_empty_lines(text: str) -> str:
    """Return a text without the lines that only statements of the template stood in."""
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def _as_yaml(value: Any) -> Any:
    """Return a value as YAML in one line. What a macro has made is YAML already."""
    if isinstance(value, Markup | StrictUndefined):
        return value
    return Markup(as_yaml(value))


def as_yaml(value: Any) -> str:
    """Return a value in one line that every reader of YAML reads back as it is."""
    if isinstance(value, str):
        return yaml_flow(value)
    return yaml_flow(json.loads(json.dumps(value, allow_nan=False, default=list)))


# -- what templates may speak of -----------------------------------------------------------------------


def read_values(goal: str, folder: Path) -> dict[str, Any]:
    """Return the names that templates may use, for a goal in the repository of a folder."""
    repository = read_repository(folder)
    root = project_root(folder)

    def existing(paths: list[str]) -> list[str]:
        return [each for each in paths if (folder / each).is_file()]

    checks = (each for each in repository.checks if each.is_installed and each.purpose is not Purpose.TEST)
    values: dict[str, Any] = {
        "repository": repository.name,
        "tools": [plain(each) for each in repository.tools],
        "language": repository.language,
        "files": len(repository.files),
        "test_files": repository.test_files,
        "existing": existing,
        "markers": [each.partition(":")[0].strip() for each in root.lines("markers")],
        "checks": [each.cmd for each in checks],
        "tests": "tests",
        "pytest": repository.runner,
    }
    if (rules := LANGUAGES.get(repository.language)) is not None:
        values |= {"sources": rules["sources"], "every_test": [rules["every_test"]]}
    else:
        package = fresh_id(repository.name, set()).replace("-", "_")
        tops = sorted({each.place.partition("/")[0] for each in repository.tests})
        # Of many places pytest finds the tests itself.
        words = map(shlex.quote, tops if len(tops) <= _MOST_PLACES else ())
        values |= {
            "sources": list(repository.sources) or [f"{package}/**"],
            "every_test": [" ".join([repository.runner, *words])] if tops else [],
        }
        places = (each.rstrip("/") for each in root.words("testpaths"))
        values["tests"] = next((each for each in places if (folder / each).is_dir()), "tests")
    return values | values_of_goal(goal, values)


def values_of_goal(
    goal: str, of_repository: dict[str, Any], *, taken: set[str] | None = None
) -> dict[str, Any]:
    """Return the names that speak of the goal: its id, none of those taken, its title, files of tests."""
    title = one_line(goal, limit=LONGEST_GOAL)
    todo_id = fresh_id(title, set() if taken is None else taken)
    module = re.sub(r"\W", "_", todo_id)
    test_file = f"{of_repository['tests']}/test_{module}.py"
    test = f"{of_repository['pytest']} {test_file}"
    if (rules := LANGUAGES.get(of_repository["language"])) is not None:
        test_file, test = rules["test_file"].format(module), rules["test"].format(module)
    return {
        "goal": clean(goal, limit=LONGEST_GOAL).strip(),
        "title": short_title(title),
        "id": todo_id,
        "module": module,
        "test_file": test_file,
        "test": test,
    }
