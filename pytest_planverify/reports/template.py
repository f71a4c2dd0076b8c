"""Rendering of the Jinja templates of the text formats.

Texts from a run are untrusted: templates pass them through ``safe_text``, unless they were cleaned before.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.text.markdown import fence, inline
from pytest_planverify.reports.cases import safe
from pytest_planverify.reports.terminal import final_line
from pytest_planverify.reports.words import (
    OWNERS,
    SINCE,
    VERDICT_WORDS,
    WORDS,
    duration,
    standing,
    suggestion_label,
)

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportInput

FOLDER = Path(__file__).with_name("templates")


def render_template(name: str, data: ReportInput, **values: Any) -> str:
    """Return the rendered template. HTML and XML are escaped automatically, Markdown by explicit filters.

    ``values`` are further variables of the template. Undefined variables are errors.
    """
    # Imported here: a run without such a report need not load Jinja.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=not name.endswith(".md"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "safe_text": _safe_text,
        "in_seconds": _in_seconds,
        "duration": duration,
        "suggestion_label": suggestion_label,
        "standing": standing,
        "fence": fence,
        "inline": inline,
    }
    return environment.get_template(name).render(
        data=data,
        document=data.document,
        headline=final_line(data.document)[0],
        words=WORDS,
        verdicts=VERDICT_WORDS,
        owners=OWNERS,
        since_words=SINCE,
        **values,
    )


def _safe_text(text: object, limit: int = 4_000) -> str:
    return safe(str(text), limit)


def _in_seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
