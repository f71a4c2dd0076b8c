"""``plan.md``: a design plan for people to read, made of nothing but the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.text.fencing import fence, inline
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.authoring.design.plan import DesignPlan, Diagram, Milestone


def render_page(plan: DesignPlan) -> str:
    """Return the page of a plan. Equal plans give equal bytes, frozen or not."""
    return clean("\n".join(_lines(plan)).rstrip()) + "\n"


def _lines(plan: DesignPlan) -> Iterator[str]:
    context, hidden = plan.planning_context, plan.invisible_knowledge
    yield from (f"# {_one(plan.overview.title)}", "", f"Plan {plan.plan_id}.", "")
    yield from _section("Problem", [plan.overview.problem])
    yield from _section("Approach", [plan.overview.approach])
    yield from _list(
        "Decisions",
        (
            f"**{each.id}** {_one(each.decision)}{_because(each.reasoning_chain)}"
            for each in context.decision_log
        ),
    )
    yield from _list(
        "Rejected alternatives",
        (
            f"**{each.id}** {_one(each.alternative)}: {_one(each.rejection_reason)} ({each.decision_ref})"
            for each in context.rejected_alternatives
        ),
    )
    yield from _list(
        "Constraints",
        (
            f"**{each.id}** ({_one(each.type)}) {_one(each.description)}{_because(each.source)}"
            for each in context.constraints
        ),
    )
    yield from _list(
        "Risks",
        (
            f"**{each.id}** {_one(each.risk)}: {_one(each.mitigation)}"
            + "".join(f" ({_one(ref)})" for ref in (each.anchor, each.decision_ref) if ref)
            for each in context.known_risks
        ),
    )
    yield from _diagram("Architecture", hidden.architecture)
    yield from _diagram("Data flow", hidden.data_flow)
    yield from _section("Structure", [hidden.structure_rationale])
    yield from _list("Invariants", hidden.invariants)
    yield from _list("Tradeoffs", hidden.tradeoffs)
    for milestone in sorted(plan.milestones, key=lambda each: each.number):
        yield from _milestone(milestone)
    waves = (f"wave {each.wave}: {', '.join(each.milestones) or 'nothing'}" for each in plan.waves)
    yield from _list("Waves", waves)
    yield from _block(plan.milestone_dependencies.diagram_ascii)


def _milestone(milestone: Milestone) -> Iterator[str]:
    tests, written = milestone.tests, milestone.documentation
    yield from (f"## {milestone.id} ({milestone.number}): {_one(milestone.name)}", "")
    if milestone.is_documentation_only:
        yield from ("Documentation only.", "")
    if milestone.delegated_to:
        yield from (f"Delegated to {_one(milestone.delegated_to)}.", "")
    kind = ", ".join(_one(each) for each in (tests.type, tests.backing) if each)
    scenarios = [
        f"{name}: {each}" for name in ("normal", "edge", "error") for each in getattr(tests.scenarios, name)
    ]
    for title, texts in (
        ("Files", [inline(each) for each in milestone.files]),
        ("Flags", milestone.flags),
        ("Requirements", milestone.requirements),
        ("Acceptance criteria", milestone.acceptance_criteria),
        (f"Tests ({kind})" if kind else "Tests", [*map(inline, tests.files), *scenarios]),
        ("No tests", [tests.skip_reason] if tests.skip_reason else []),
        ("Documentation", [written.module_comment] if written.module_comment else []),
        ("Docstrings", written.docstrings),
        ("Algorithms", written.algorithm_blocks),
        ("Comments", written.inline_comments),
    ):
        yield from _list(title, texts, level=3)
    for intent in milestone.code_intents:
        place = ", ".join(inline(each) for each in (intent.file, intent.function) if each)
        yield from (f"### {intent.id}: {place}", "", *clean(intent.behavior).splitlines(), "")
        told = [f"{name} = {value}" for name, value in sorted(intent.params.items())]
        told += [f"because of {', '.join(intent.decision_refs)}"] if intent.decision_refs else []
        yield from _items(told)
        for change in milestone.code_changes:
            if change.intent_ref == intent.id:
                yield from (f"{change.id} in {inline(change.file)}:", "")
                yield from _block(change.diff, "diff")
                yield from _items([f"near: {each}" for each in change.context_lines])
                yield from _items(change.why_comments)


def _section(title: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if text.strip():
            yield from (f"## {title}", "", *clean(text).strip().splitlines(), "")


def _list(title: str, texts: Iterable[str], level: int = 2) -> Iterator[str]:
    items = list(texts)
    if items:
        yield from (f"{'#' * level} {title}", "", *_items(items))


def _items(texts: Iterable[str]) -> Iterator[str]:
    lines = [f"- {_one(each)}" for each in texts]
    yield from (*lines, "") if lines else ()


def _diagram(title: str, diagram: Diagram) -> Iterator[str]:
    if diagram.diagram_ascii or diagram.description:
        yield from _section(title, [diagram.description or " \N{EN DASH}"])
        yield from _block(diagram.diagram_ascii)


def _block(text: str, language: str = "") -> Iterator[str]:
    if text.strip():
        yield from (*fence(clean(text).strip("\n"), language).splitlines(), "")


def _because(reason: str) -> str:
    return f" \N{EN DASH} {_one(reason)}" if reason.strip() else ""


def _one(text: str) -> str:
    return " ".join(clean(text).split())
