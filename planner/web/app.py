"""The pages of ``planner serve`` and their addresses."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy.exc import SQLAlchemyError

from planner.errors import PlannerError
from planner.store import questions
from planner.store.index import open_index
from planner.store.plan_run import PlanRun
from planner.text.display import moment
from planner.text.sanitizing import clean
from planner.web.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from planner.model.actions import AskHuman

HERE = Path(__file__).parent
PER_PAGE = 50
MAX_FORM_BYTES = 64 * 1024


def create_app(
    plan: Path,
    root: Path,
    token: str,
    hosts: Collection[str],
    record: Callable[[Path, str, Mapping[str, str]], list[str]],
) -> FastAPI:
    """Return the pages for a plan and the runs below ``root``.

    ``record`` keeps an answer to a question, as the command line does, and returns what was taken in; it
    raises ``ValueError`` or :class:`planner.errors.PlannerError` in words for a person.
    """
    app = FastAPI(title="planner", docs_url=None, redoc_url=None, openapi_url=None)
    guard = Guard(token, hosts)
    app.middleware("http")(guard)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    pages = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["moment"] = moment

    def page(name: str, status: int = 200, **shown: Any) -> HTMLResponse:
        text = pages.get_template(name).render(csrf=guard.csrf, plan=str(plan), **shown)
        return HTMLResponse(text, status)

    @app.exception_handler(PlannerError)
    def tell_error(request: Request, error: Exception) -> Response:
        return page("message.html", 500, title="This cannot be shown", told=[str(error)])

    @app.get("/")
    def dashboard(at: int = 1) -> Response:
        at = max(at, 1)
        with open_index(root) as index, index.reading() as rows:
            runs = questions.runs(rows)
            shown = runs[(at - 1) * PER_PAGE : at * PER_PAGE]
            branches = questions.branches(rows, shown)
            verified = questions.verifications(rows)[:PER_PAGE]
        return page(
            "dashboard.html",
            runs=list(zip(shown, branches, map(questions.mean_resolution, branches), strict=True)),
            total=len(runs),
            blocked=sum(each["blocked_since"] is not None for each in runs),
            verified=verified,
            at=at,
            last=max(1, -(-len(runs) // PER_PAGE)),
            remarks=index.remarks,
        )

    @app.get("/questions")
    def waiting() -> Response:
        run = PlanRun.open(plan)
        asked = list(run.state.questions.values())
        return page(
            "questions.html", asked=[(each, _proposal(each)) for each in asked], remarks=run.remarks
        )

    @app.post("/questions")
    async def decide(request: Request) -> Response:
        form = await _form(request)
        if form is None or not guard.accepts_form(form.get("csrf", "")):
            told = ["The form is not from this server, or from before its start: load the page again."]
            return page("message.html", 403, title="Nothing was recorded", told=told)
        name = form.get("id", "")
        try:
            told = record(plan, name, form)
        except (PlannerError, ValueError) as error:
            told = [*_decided(root, name, form.get("digest", "")), str(error)]
            return page("message.html", 409, title="Nothing was recorded", told=told)
        return page("message.html", title="Recorded", told=told)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return RedirectResponse("/static/icon.svg")

    return app


def _shown(value: object) -> object:
    """Return a value as pages show it: text without control characters."""
    return clean(value) if isinstance(value, str) else value


def _proposal(question: AskHuman) -> str:
    """Return what is proposed, as text; empty where nothing is."""
    proposed = (question.branch, *question.edits)
    return "\n".join(each.model_dump_json(indent=2, exclude_defaults=True) for each in proposed if each)


def _decided(root: Path, name: str, digest: str) -> list[str]:
    """Return who has decided the same before, and how; empty where nobody has."""
    with suppress(PlannerError, SQLAlchemyError), open_index(root) as index, index.reading() as rows:
        for asked in questions.questions(rows, questions.runs(rows)):
            for each in asked:
                if (each["question_id"], each["digest"]) == (name, digest) and each["decision"]:
                    who = each["decided_by"] or "somebody"
                    return [f"{name} was decided already: {each['decision']}, by {who}, {each['decided']}."]
    return []


async def _form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; ``None`` where it is too large or no form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return None
    return {name: values[-1] for name, values in fields.items()}
