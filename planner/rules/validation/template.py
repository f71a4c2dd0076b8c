"""A plan that names a template follows it: its steps, in their order, each on the one before."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from planner.catalog.templates import TEMPLATES
from planner.rules.validation.facts import Facts, Found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog.templates import Template, TemplateStep
    from planner.model.plan import Todo
    from planner.rules.validation.facts import Loc

KEY = "x-template"

_WORD = re.compile(r"[a-z0-9]+")


def check(facts: Facts) -> Iterator[Found]:
    """Rules about ``x-template``."""
    for loc, value in _named(facts):
        template = TEMPLATES.get(value) if isinstance(value, str) else None
        if template is None:
            yield _unknown(loc, value)
        else:
            yield from _follows(facts, template, loc)
            return


def _named(facts: Facts) -> Iterator[tuple[Loc, Any]]:
    if KEY in facts.plan.extensions:
        yield (KEY,), facts.plan.extensions[KEY]
    if KEY in facts.plan.metadata.extensions:
        yield ("metadata", KEY), facts.plan.metadata.extensions[KEY]


def _unknown(loc: Loc, value: Any) -> Found:
    shown = value if isinstance(value, str) else type(value).__name__
    near = get_close_matches(shown[:100], TEMPLATES, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    return Found(
        "template-unknown",
        loc,
        None,
        f"there is no template '{shown[:100]}'",
        f"{guess}known templates: {', '.join(TEMPLATES)}",
    )


def _follows(facts: Facts, template: Template, loc: Loc) -> Iterator[Found]:
    steps: dict[str, list[tuple[int, Todo]]] = {step.name: [] for step in template.steps}
    for index, todo in facts.primaries:
        step = step_of(todo, template)
        if step is not None:
            steps[step.name].append((index, todo))
    before: tuple[TemplateStep, list[tuple[int, Todo]]] | None = None
    for step in template.steps:
        found = steps[step.name]
        if not found:
            yield _missing(step, before, loc, template)
            continue
        if before is not None:
            yield from _order(facts, before, (step, found))
        yield from _role(step, found)
        before = (step, found)


def step_of(todo: Todo, template: Template) -> TemplateStep | None:
    """Which step a todo is, by the words of its title, then of its id; ``None`` for none, or several."""
    for text in (todo.title, todo.id.replace("_", " ")):
        words = _WORD.findall(text.lower())
        hits = {
            step.name: sum(any(word.startswith(start) for start in step.words) for word in words)
            for step in template.steps
        }
        most = max(hits.values())
        best = [step for step in template.steps if hits[step.name] == most]
        if most and len(best) == 1:
            return best[0]
    return None


def _missing(
    step: TemplateStep,
    before: tuple[TemplateStep, list[tuple[int, Todo]]] | None,
    loc: Loc,
    template: Template,
) -> Found:
    place = f" after '{before[1][-1][1].id}', which it depends on" if before else " as the first todo"
    return Found(
        "template-step-missing",
        loc,
        None,
        f"the template {template.name} has the step '{step.name}', the plan has no such todo",
        f"add a todo '{step.title}' ({step.roles[0].value}, proved by '{step.criterion}'){place}",
    )


def _order(
    facts: Facts,
    before: tuple[TemplateStep, list[tuple[int, Todo]]],
    step: tuple[TemplateStep, list[tuple[int, Todo]]],
) -> Iterator[Found]:
    earlier = [todo.id for _, todo in before[1]]
    first = min(index for index, _ in before[1])
    for index, todo in step[1]:
        if index < first:
            yield Found(
                "template-order",
                ("items", index),
                todo.id,
                f"'{todo.id}' ({step[0].name}) stands before '{earlier[0]}' ({before[0].name})",
                f"move '{todo.id}' behind '{earlier[-1]}'",
            )
        waits = any(facts.ancestry.waits_for(todo.id, each) for each in earlier)
        if not waits:
            yield Found(
                "template-order",
                ("items", index, "dependencies") if todo.dependencies else ("items", index),
                todo.id,
                f"'{todo.id}' ({step[0].name}) does not depend on '{earlier[-1]}' ({before[0].name})",
                f"add '{earlier[-1]}' to the dependencies of '{todo.id}'",
            )


def _role(step: TemplateStep, found: list[tuple[int, Todo]]) -> Iterator[Found]:
    if any(todo.agent_role in step.roles for _, todo in found):
        return
    index, todo = found[0]
    yield Found(
        "template-role",
        ("items", index, "agent_role"),
        todo.id,
        f"'{todo.id}' ({step.name}) is the work of the {todo.agent_role.value}, "
        f"in the template of the {' or '.join(role.value for role in step.roles)}",
        f"write agent_role: {step.roles[0].value}",
    )
