"""Plans from templates: for a goal as a whole, or for its parts, in one plan or one for each phase.

A template is YAML with Jinja2. Every ``{{ expression }}`` is written as one YAML value, quoted where
needed, so that no text that is inserted can become syntax.

To decompose a goal, which is an outline of pieces (:mod:`planner.authoring.outline`), a template is chosen
for each leaf by the leaf's words and filled with facts of the repository; the todos of numbered pieces
depend on those of the piece before. Words and domains are data, in ``goal_words.toml``. No language model
is involved.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from planner.authoring.first_plan import fresh_id, make_plan, root_for, short_title
from planner.authoring.outline import LONGEST_GOAL
from planner.authoring.repository import LANGUAGES, read_repository
from planner.catalog.tables import load_table
from planner.lint.rules import MANY_DOMAINS, MANY_TODOS
from planner.model.plan import CommandSpec
from planner.model.verdicts import Purpose
from planner.planfile.discovery import project_root
from planner.planfile.loader import load_plan_text
from planner.planfile.writer import yaml_flow
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.authoring.outline import Piece
    from planner.model.plan import Plan, Todo

PHASES = "phases"
"""The folder of the plans of phases, beside the plan that names them."""

_TEMPLATES = Path(__file__).with_name("templates")
_WORDS = load_table("goal_words", "planner.authoring")


def template_names() -> dict[str, str]:
    """Return the purpose of each template by its name: the comment in its first line."""
    files = sorted(_TEMPLATES.glob("[!_]*.yaml"))
    return {each.stem: each.read_text(encoding="utf-8").partition("\n")[0].strip("# ") for each in files}


def fill_template(name: str, values: Mapping[str, Any]) -> str:
    """Render the template of that name, which must exist; return the text of the plan."""
    text = _ENVIRONMENT.get_template(f"{name}.yaml").render(**values)
    # A line that had template statements only is left blank.
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def _as_yaml(value: Any) -> Any:
    """Return a value as YAML on one line, as ``Markup``; the result of a macro is YAML already."""
    if isinstance(value, Markup):
        return value
    # By way of JSON, tuples become lists, and what YAML cannot hold raises here.
    data = value if isinstance(value, str) else json.loads(json.dumps(value, allow_nan=False))
    return Markup(yaml_flow(data))


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_TEMPLATES),
    undefined=StrictUndefined,
    autoescape=True,  # makes results of macros Markup, unlike inserted texts
    finalize=_as_yaml,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def read_values(goal: str, folder: Path) -> dict[str, Any]:
    """Return the variables of templates for a goal in the repository in ``folder``."""
    repository = read_repository(folder)
    places = [each.rstrip("/") for each in project_root(folder).words("testpaths")]
    tops = sorted({each.place.partition("/")[0] for each in repository.tests})
    checks = (each for each in repository.checks if each.is_installed and each.purpose is not Purpose.TEST)
    package = fresh_id(repository.name, set()).replace("-", "_")
    values: dict[str, Any] = {
        "repository": repository.name,
        "language": repository.language,
        "checks": [each.cmd for each in checks],
        "tests": next((each for each in (*places, "tests", "test") if (folder / each).is_dir()), "tests"),
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


# -- decomposition -------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Decomposer:
    """Decomposes one goal with the facts of a repository."""

    facts: Mapping[str, Any]
    """The facts of the repository, as :func:`read_values` returns them."""
    folder: Path
    """The folder of the repository."""
    done_before: str = ""
    """The results of earlier work, which are added to the intent of every todo."""
    _todo_ids: set[str] = field(default_factory=set[str], init=False)
    _phase_ids: set[str] = field(default_factory=set[str], init=False)
    """The ids in use in the plans that are being made; names of files follow from both."""

    def plans(self, goal: Piece, output: Path, depth: int) -> dict[Path, Plan]:
        """Return the plan for a goal, and with a ``depth`` above 1 a plan for each phase, by their files.

        The plan of ``output`` comes first. ``depth`` is the greatest number of levels of plans; the todos
        of a plan with levels below are the goal's phases. ``output`` must be inside the repository then.
        """
        if depth == 1:
            return {output: self._plan(goal, self._todos(goal, output), output)}
        plans: dict[Path, Plan] = {}
        items: list[dict[str, Any]] = []
        for number, phase in enumerate(goal.parts, 1):
            phase_id = fresh_id(phase.title, self._phase_ids)
            below = output.parent / PHASES / f"{phase_id}.yaml"
            # A phase whose parts have none of their own is small enough for one plan.
            inner = depth - 1 if any(part.parts for part in phase.parts) else 1
            plans |= self.plans(phase, below, inner)
            items.append(
                {
                    "id": phase_id,
                    "title": short_title(f"Phase {number}: {phase.title}"),
                    "sub_plan": below.resolve().relative_to(self.folder.resolve()).as_posix(),
                    **({"dependencies": [items[-1]["id"]]} if items and goal.in_order else {}),
                }
            )
        return {output: self._plan(goal, items, output), **plans}

    def _todos(self, goal: Piece, output: Path) -> list[Todo]:
        """Return the todos of all leaves.

        Numbered leaves depend on the leaf before. The commands of a piece are criteria of its last todo.
        The last leaf also runs the checks of the whole repository, and depends on all others.
        """
        leaves = list(goal.leaves())
        proofs: dict[int, list[str]] = {}
        for piece in goal.walk():
            *_, final = piece.leaves()  # a command of a heading proves all parts below it
            proofs.setdefault(id(final), []).extend(piece.commands)
        found: list[Todo] = []
        ends: list[str] = []
        for leaf in leaves:
            is_end = leaf is leaves[-1]
            todos = self._fill_template(leaf, goal, is_end=is_end, output=output)
            inner = {name for todo in todos for name in todo.dependencies}
            # A template may make several todos; those on which no other of them depends are the ends of
            # the leaf.
            last = [todo.id for todo in todos if todo.id not in inner]
            after = ends[-1:] if goal.in_order else []
            for todo in todos:
                # The others wait for the leaf before by way of these.
                before = after if not todo.dependencies else []
                commands: list[str] = []
                if todo.id in last:
                    before = [*before, *(ends if is_end else [])]
                    # Earlier todos, such as that of the tests, are done while the commands still fail.
                    commands = proofs[id(leaf)]
                found.append(_extended(todo, before, commands, self.done_before))
            ends += last
        return found

    def _fill_template(self, leaf: Piece, goal: Piece, *, is_end: bool, output: Path) -> Sequence[Todo]:
        """Return the todos of the template for a leaf; repository-wide checks only where ``is_end``."""
        text = leaf.goal if leaf is goal else f"{leaf.goal}\n(Part of: {one_line(goal.title, limit=300)})"
        of_goal = values_of_goal(leaf.title, self.facts, taken=self._todo_ids)
        values = {**self.facts, **of_goal, "goal": text, "root": root_for(output, self.folder)}
        values |= {} if is_end else {"every_test": [], "checks": []}
        filled = fill_template(template_for(leaf.title), values)
        loaded = load_plan_text(filled, output.with_suffix(".yaml"), boundary=self.folder)
        self._todo_ids.update(todo.id for todo in loaded.plan.items)
        return loaded.plan.items

    def _plan(self, goal: Piece, items: Sequence[Any], output: Path) -> Plan:
        return make_plan(goal.title, items, root=root_for(output, self.folder), **{"x-goal": goal.title})


def _extended(todo: Todo, before: Sequence[str], commands: Sequence[str], results: str) -> Todo:
    """Return a todo with further dependencies and criteria, and with earlier results in its intent."""
    changes: dict[str, Any] = {}
    if before:
        changes["dependencies"] = tuple(dict.fromkeys([*before, *todo.dependencies]))
    criteria = todo.acceptance_criteria
    stated = {spec.cmd for spec in criteria.tests}
    if new := [CommandSpec(cmd=each) for each in dict.fromkeys(commands) if each not in stated]:
        changes["acceptance_criteria"] = criteria.model_copy(update={"tests": (*criteria.tests, *new)})
    if results:
        changes["intent"] = f"{todo.intent or ''}\n{results}".strip()
    return todo.model_copy(update=changes)


def template_for(text: str) -> str:
    """Return the first template whose words occur in the text of a piece; ``feature`` if none do."""
    return next((name for name, words in _WORDS["templates"].items() if _mentions(words, text)), "feature")


def reasons_for_phases(goal: Piece, todos: int) -> list[str]:
    """Return why a goal of so many todos should be planned in phases; empty if a flat plan is enough."""
    if len(goal.parts) < 2:
        return []
    reasons: list[str] = []
    if todos > MANY_TODOS:
        reasons.append(f"about {todos} todos, and more than {MANY_TODOS} are hard to follow")
    if any(part.is_phase or part.parts for part in goal.parts):
        reasons.append("the goal lists phases")
    titles = [each.title for each in goal.leaves()]
    domains = sorted(
        name for name, words in _WORDS["domains"].items() if any(_mentions(words, each) for each in titles)
    )
    if len(domains) >= MANY_DOMAINS and todos > 2 * MANY_DOMAINS:
        reasons.append(f"it spans several domains: {', '.join(domains)}")
    return reasons


def _mentions(words: str, text: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None
