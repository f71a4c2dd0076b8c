"""The two templates of design plans: the page ``plan.md``, and a step of a workflow as XML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.text.markdown import fence, inline
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Return the text of a template, ``plan.md`` or ``step.xml``; equal values give equal bytes."""
    return _environment().get_template(f"{template}.jinja").render(values).rstrip() + "\n"


@cache
def _environment() -> Environment:
    import jinja2  # imported late: editing a plan does not need it

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        # Markdown is not HTML: there, the filters keep each text in its line or fence.
        autoescape=lambda name: name == "step.xml.jinja",
        undefined=jinja2.StrictUndefined,
        # Applied to each inserted value: no template can forget to remove control characters.
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = environment.filters
    filters |= {"one": _one_line, "because": _because, "clean": clean, "fence": fence, "inline": inline}
    return environment


def _clean(value: object) -> str:
    return clean(str(value))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _because(reason: str) -> str:
    return f" \N{EN DASH} {_one_line(reason)}" if reason.strip() else ""
