"""Web application of ``planner serve``: the runs of a project, and a form for each open question.

A middleware checks host name and token of each request first. A browser logs in by an address with the
token, and has a cookie from then on. Runs are read from the index, open questions from the run itself, as
the command line does. Answers are recorded by the functions of the command line.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from planner.cli.answer import give_answer, give_decision, login_name
from planner.cli.exits import UsageMistake, program
from planner.errors import PlannerError
from planner.model.actions import AskHuman, QuestionKind
from planner.model.events import BranchChanges
from planner.planfile.writer import plain, yaml_text
from planner.store.index import open_index
from planner.store.plan_run import PlanRun
from planner.text.display import moment
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

HERE = Path(__file__).parent
MOST_SHOWN = 50
"""Limit of the runs, and of the verifications, on the page; ``planner history --json`` has all of them."""
MAX_FORM_BYTES = 64 * 1024

COOKIE = "planverify"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Host names that requests may have."""
# The pages show text from code under test: even if a template failed to escape it, no script in it would
# run.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def create_app(plan: Path, root: Path, token: str) -> FastAPI:
    """Create the application for a plan and the runs below ``root``; ``token`` is the login token."""
    app = FastAPI(openapi_url=None)  # there are pages only, nothing for programs
    # Token in every form, which a page of another origin cannot read.
    csrf = secrets.token_urlsafe(24)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    pages = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        # Applied to each inserted value: no template can forget to remove control characters.
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["moment"] = moment

    def page(name: str, status: int = 200, **shown: Any) -> HTMLResponse:
        text = pages.get_template(name).render(csrf=csrf, program=program(), plan=str(plan), **shown)
        return HTMLResponse(text, status)

    # As middleware, it also covers static files and unknown paths.
    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = _refusal(request, token) or await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(PlannerError)
    def tell_error(_: Request, error: Exception) -> Response:
        return page("message.html", 500, title="This cannot be shown", messages=[str(error)])

    @app.get("/")
    def dashboard() -> Response:
        with open_index(root) as index:
            shown, verified = index.runs(limit=MOST_SHOWN), index.verifications(limit=MOST_SHOWN)
        return page("dashboard.html", runs=shown, verified=verified, remarks=index.remarks)

    @app.get("/questions")
    def waiting() -> Response:
        run = PlanRun.open(plan)
        asked: list[tuple[AskHuman, str, dict[str, str]]] = []
        for each in run.state.questions.values():
            # A question of the engine has none of the plan.
            is_of_plan = each.kind is QuestionKind.ANSWER and each.todo_id in run.state.records
            asked.append((each, _proposal(each), run.asked_questions(each.todo_id) if is_of_plan else {}))
        return page("questions.html", person=login_name(), asked=asked, remarks=run.remarks)

    @app.post("/questions")
    async def decide(request: Request) -> Response:
        form = await _form(request)
        if form is None or not _same(form.get("csrf", ""), csrf):
            messages = ["The form is not from this server, or from before its start: load the page again."]
            return page("message.html", 403, title="Nothing was recorded", messages=messages)
        try:
            messages = _record(plan, form)
        except (PlannerError, UsageMistake, ValueError) as error:
            return page("message.html", 409, title="Nothing was recorded", messages=[str(error)])
        return page("message.html", title="Recorded", messages=messages)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return RedirectResponse("/static/icon.svg")

    return app


def _shown(value: object) -> object:
    """Clean each text that a template inserts."""
    return clean(value) if isinstance(value, str) else value


def _proposal(question: AskHuman) -> str:
    """Return the proposed branch and edits as YAML, as in a plan file; empty if there are none."""
    proposed = [plain(each) for each in (question.branch, *question.edits) if each]
    shown = [
        {key: each[key] for key in each if key != "extensions" and key[:2] != "x-"} for each in proposed
    ]
    return "\n".join(yaml_text(each) for each in shown)


def _record(plan: Path, form: Mapping[str, str]) -> list[str]:
    """Record the answer in the fields of a form, as ``planner approve`` and ``planner answer`` do.

    Return lines that say what was recorded. Raises ``UsageMistake`` if the question is closed, or a field
    is not valid, and :class:`planner.errors.PlannerError`.
    """
    run, name, because = PlanRun.open(plan), form.get("id", ""), form.get("because")
    by = one_line(form.get("by", ""), limit=100) or login_name()
    if name not in run.state.questions:
        raise UsageMistake("the question is closed: somebody has answered it, or the plan has changed")
    if (decision := form.get("decision")) is None:
        lines = give_answer(run, name, form.get("answer", ""), by, form.get("check"), because)
    else:
        changes: dict[str, object] = {}
        if decision == "modify":
            changes = {key: form[key] for key in BranchChanges.model_fields if key in form}
            if not changes:
                raise UsageMistake("no change is given; fill in a field, or approve it unchanged")
            if "allowed_files" in form:
                changes["allowed_files"] = form["allowed_files"].split()
        # Never None: an answer without a digest must not count for whatever is proposed by now.
        lines = [give_decision(run, name, decision, by, because, form.get("digest", ""), changes)]
    run.save()
    return lines


async def _form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form that are filled in; ``None`` if it is too large or invalid."""
    body = b""
    # Read by hand: the parser of Starlette needs one more package. The length that the request states may
    # be missing or wrong, so the limit is applied while reading.
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode(), max_num_fields=50)
    except ValueError:
        return None
    return {name: text for name, values in fields.items() if (text := values[-1].strip())}


def _refusal(request: Request, token: str) -> Response | None:
    """Return the response to a request that must not reach a page; ``None`` if it may."""
    # Without this check, a page of another site could reach the server by DNS rebinding.
    try:
        name = urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        name = None
    if name not in LOOPBACK:
        return PlainTextResponse("This server does not answer under that name.", 421)
    if request.method == "GET" and _same(request.query_params.get("token", ""), token):
        # Without the token in the address, so that it is not kept in the history of the browser.
        response = RedirectResponse(request.url.path, 303)
        response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
        return response
    if not _same(request.cookies.get(COOKIE, ""), token):
        return PlainTextResponse("Open the address that planner serve printed.", 401)
    return None


def _same(one: str, other: str) -> bool:
    """Compare in constant time, so that the time does not reveal a token."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
