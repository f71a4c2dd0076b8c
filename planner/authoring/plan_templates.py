"""Plan templates: YAML with Jinja2, rendered in its sandbox, and the variables that templates can use.

Every ``{{ expression }}`` is written as one YAML value, quoted where needed, so that no text that is
inserted can become syntax. Templates are those of this package and those of a folder of the user. They
are not trusted: they are rendered in a sandbox, and their size, their output and their arithmetic are
bounded.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import FunctionLoader, StrictUndefined, TemplateNotFound
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError
from markupsafe import Markup

from planner.authoring.first_plan import fresh_id, short_title
from planner.authoring.outline import LONGEST_GOAL
from planner.authoring.repository import LANGUAGES, read_repository
from planner.errors import PlannerError
from planner.model.verdicts import Purpose
from planner.planfile.discovery import project_root
from planner.planfile.project_files import RootedFiles
from planner.planfile.writer import plain, yaml_flow
from planner.text.display import did_you_mean
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

ENDING = ".yaml"
MAX_CHARACTERS = 1 << 20
"""The size limit of a plan that is made of a template."""
_OWN = Path(__file__).with_name("templates")
_MOST_FACTOR = 10_000


class TemplateFault(PlannerError):
    """A template cannot be read or rendered; the message names it, the fault and a remedy."""


class PlanTemplates:
    """Templates by name; those in the user's folder replace those of the package with the same name."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use the templates in ``folder``, too. Raises :class:`TemplateFault` if it is no folder."""
        if folder is not None and not folder.is_dir():
            raise TemplateFault(f"{folder}: the template folder does not exist; name another, or create it")
        self._folders = (_OWN,) if folder is None else (folder, _OWN)
        # Templates name further files to include, and are not trusted: nothing outside is read.
        self._files = [RootedFiles(each) for each in self._folders]
        self._environment = _Sandbox(
            loader=FunctionLoader(self._source),
            undefined=StrictUndefined,
            autoescape=True,  # makes results of macros Markup, unlike inserted texts
            finalize=_as_yaml,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def names(self) -> dict[str, str]:
        """Return the purpose of each template by its name: the comment in its first line."""
        found = {each.stem for folder in self._folders for each in folder.glob(f"[!_]*{ENDING}")}
        texts = {name: self._source(f"{name}{ENDING}") for name in sorted(found)}
        firsts = {name: text.partition("\n")[0] for name, text in texts.items() if text is not None}
        return {
            name: one_line(first.strip("{#} -"), limit=100) if first.startswith(("#", "{#")) else ""
            for name, first in firsts.items()
        }

    def fill(self, name: str, values: Mapping[str, Any]) -> str:
        """Render a template; return the text of the plan.

        Raises ``TemplateFault`` if there is no such template, or it fails or makes too much text.
        """
        parts: list[str] = []
        room = MAX_CHARACTERS
        try:
            for part in self._environment.get_template(f"{name}{ENDING}").generate(**values):
                parts.append(part)
                room -= len(part)
                if room < 0:
                    raise ValueError(f"it renders more than {MAX_CHARACTERS:,} characters")
        except TemplateNotFound as error:
            missing = str(error).removesuffix(ENDING)
            known = self.names()
            hint = did_you_mean(missing, known, f"the templates are {', '.join(known)}")
            problem = f"there is no template '{one_line(missing, limit=100)}'; {hint}"
            raise TemplateFault(f"template {name}: {problem}") from None
        except Exception as error:  # an expression of a template can raise anything
            line = getattr(error, "lineno", None)
            problem = one_line(error, limit=300) or type(error).__name__
            at = f", line {line}" if line else ""
            raise TemplateFault(f"template {name}{at}: {problem}; correct the template") from None
        # A line that had template statements only is left blank.
        return "".join(line for line in "".join(parts).splitlines(keepends=True) if line.strip())

    def _source(self, file: str) -> str | None:
        """Return the text of a template file; ``None`` if there is none that may be read."""
        if not file.endswith(ENDING):
            return None
        found = (files.read(file) for files in self._files)
        return next((each.text for each in found if each is not None and each.is_whole), None)


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox, without operators by which a short template could use unbounded time or memory."""

    # The sandbox bounds range(), but not the size of 'a' * 10**9 or '%1000000000d' % 1.
    intercepted_binops = frozenset(("*", "**", "%"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Apply ``*`` and ``%`` to small numbers. Raises ``SecurityError`` for others, and for ``**``."""
        numbers = all(isinstance(each, int | float) and abs(each) <= _MOST_FACTOR for each in (left, right))
        if operator == "**" or not numbers:
            raise SecurityError(f"'{operator}' is for numbers up to {_MOST_FACTOR:,} here, and no powers")
        return super().call_binop(context, operator, left, right)


def _as_yaml(value: Any) -> Any:
    """Return a value as YAML on one line, as ``Markup``; the result of a macro is YAML already.

    Undefined values are returned as they are, so that rendering raises the error that names them.
    """
    if isinstance(value, Markup | StrictUndefined):
        return value
    # By way of JSON, tuples and other sequences become lists, and what YAML cannot hold raises here.
    data = value if isinstance(value, str) else json.loads(json.dumps(value, allow_nan=False, default=list))
    return Markup(yaml_flow(data))


# -- the variables of templates ------------------------------------------------------------------------


def read_values(goal: str, folder: Path) -> dict[str, Any]:
    """Return the variables of templates for a goal in the repository in ``folder``."""
    repository = read_repository(folder)
    places = [each.rstrip("/") for each in project_root(folder).words("testpaths")]
    tops = sorted({each.place.partition("/")[0] for each in repository.tests})
    checks = (each for each in repository.checks if each.is_installed and each.purpose is not Purpose.TEST)
    package = fresh_id(repository.name, set()).replace("-", "_")
    values: dict[str, Any] = {
        "repository": repository.name,
        "tools": [plain(each) for each in repository.tools],
        "language": repository.language,
        "existing": lambda paths: [each for each in paths if (folder / each).is_file()],
        "checks": [each.cmd for each in checks],
        "tests": next((each for each in places if (folder / each).is_dir()), "tests"),
        "pytest": repository.runner,
        "sources": list(repository.sources) or [f"{package}/**"],
        "every_test": [" ".join([repository.runner, *map(shlex.quote, tops)])] if tops else [],
    }
    if (rules := LANGUAGES.get(repository.language)) is not None:
        values |= {"sources": rules["sources"], "every_test": [rules["every_test"]]}
    return values | values_of_goal(goal, values)


def values_of_goal(
    goal: str, of_repository: Mapping[str, Any], *, taken: set[str] | None = None
) -> dict[str, Any]:
    """Return the variables that depend on the goal: text, title, id, module, and its test file and command.

    The id is none of ``taken``, and is added there.
    """
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
