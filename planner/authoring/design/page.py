"""``plan.md``: a design plan for people to read, made of nothing but the plan."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from planner.text.fencing import fence, inline
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from jinja2 import Template

    from planner.authoring.design.plan import DesignPlan


def render_page(plan: DesignPlan) -> str:
    """Return the page of a plan. Equal plans give equal bytes, frozen or not."""
    return clean(_template().render(plan=plan).rstrip()) + "\n"


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # not for those who only edit a plan

    # The page is Markdown, no HTML: the filters keep each text to its place.
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    filters: dict[str, Any] = environment.filters
    filters.update(one=_one_line, because=_because, prose=_prose, fence=_fence, inline=inline)
    return environment.from_string((files("planner.authoring.design") / "plan.md.jinja").read_text("utf-8"))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _because(reason: str) -> str:
    return f" \N{EN DASH} {_one_line(reason)}" if reason.strip() else ""


def _prose(text: str) -> str:
    return clean(text).strip()


def _fence(text: str, language: str) -> str:
    return fence(clean(text).strip("\n"), language)
