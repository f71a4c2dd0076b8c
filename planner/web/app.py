"""Web application of ``planner serve``: pages for people, and an interface for programs below ``/api/``.

:class:`AccessGuard` checks each request first. Runs are read from the index, open questions from the run
itself, as the command line does. Decisions are recorded by the function that the command line uses, too.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

from fastapi import FastAPI, Query, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.brief.page import likeliest_change
from planner.errors import PlannerError
from planner.model.actions import AskHuman, QuestionKind
from planner.planfile.writer import plain, yaml_text
from planner.store import questions
from planner.store.index import open_index, source_files
from planner.store.plan_run import PlanRun
from planner.text.display import moment
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

HERE = Path(__file__).parent
PER_PAGE = 50
# SQLite has no larger integers than 64 bits, and fails for a larger offset.
MOST_PAGES = 1_000_000
MAX_FORM_BYTES = 64 * 1024

COOKIE = "planverify"
# The pages show text from code under test: even if a template failed to escape it, no script in it would
# run.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

LOOK_SECONDS = 0.5
"""Interval in seconds at which the stream of changes checks the files."""
QUIET = 30
"""Number of checks without a change after which a comment is sent, which keeps the connection open."""


# -- requests and responses of the interface for programs --------------------------------------------------


class RunRow(BaseModel):
    """A run of the engine."""

    model_config = ConfigDict(extra="ignore")

    run_id: str
    plan_id: str
    path: str
    goal: str
    state: str
    opened: str
    """RFC 3339, as all times."""
    closed: str | None
    blocked: list[str]
    """Todos that wait for a person or for something missing."""
    blocked_since: str | None


class DecisionForm(BaseModel):
    """An answer to a question, or a decision on a proposal. Changes are applied with ``modify`` only."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    digest: str = ""
    """Digest of the question as it was shown: a decision is valid for that question only."""
    answer: str | None = Field(default=None, max_length=10_000)
    check: str | None = Field(default=None, max_length=100)
    """Which question of the plan is answered, if several are open, such as ``manual[0]``."""
    decision: Literal["approve", "approve_similar", "reject", "modify"] | None = None
    by: str | None = Field(default=None, max_length=100)
    because: str | None = Field(default=None, max_length=10_000)
    role: str | None = None
    instructions: str | None = Field(default=None, max_length=10_000)
    allowed_files: list[str] | None = None
    max_debug_attempts: int | None = Field(default=None, ge=1, le=100)


class ServerAnswer(BaseModel):
    """Response to a decision: what was recorded, or why nothing was."""

    messages: list[str]


# -- the pages -------------------------------------------------------------------------------------------


def create_app(
    plan: Path,
    root: Path,
    token: str,
    hosts: Collection[str],
    record: Callable[[Path, str, DecisionForm], list[str]],
    person: str = "",
) -> FastAPI:
    """Create the application for a plan and the runs below ``root``.

    ``token`` is the login token, and ``hosts`` the accepted host names, empty for any. ``record`` records
    an answer to a question (plan, question id), as the command line does, and returns messages on what was
    recorded; it raises ``ValueError`` or :class:`planner.errors.PlannerError` with a message
    for people. ``person`` is the name that forms suggest.
    """
    app = FastAPI(
        title="planner",
        description="Runs of a plan, and the questions that wait for a person. Send the token of the "
        "server as Authorization: Bearer TOKEN.",
        # FastAPI's pages about the API load scripts from another host, which the policy above forbids.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    guard = AccessGuard(token, hosts)
    # As middleware, the guard also covers static files, unknown paths and the API.
    app.middleware("http")(guard)
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
        text = pages.get_template(name).render(csrf=guard.csrf, plan=str(plan), **shown)
        return HTMLResponse(text, status)

    @app.exception_handler(PlannerError)
    def tell_error(request: Request, error: Exception) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse({"messages": [clean(str(error))]}, 500)
        return page("message.html", 500, title="This cannot be shown", messages=[str(error)])

    @app.get("/", include_in_schema=False)
    def dashboard(at: int = 1) -> Response:
        # Out of range, the nearest page is better than an error.
        at = min(max(at, 1), MOST_PAGES)
        with open_index(root) as index, index.reading() as rows:
            total, blocked = questions.count_runs(rows)
            shown = questions.runs(rows, limit=PER_PAGE, offset=(at - 1) * PER_PAGE)
            verified = questions.verifications(rows, limit=PER_PAGE)
            rates = questions.repair_rates(rows)
        return page(
            "dashboard.html",
            live=f"/?at={at}",
            runs=shown,
            total=total,
            blocked=blocked,
            verified=verified,
            rates=rates,
            at=at,
            last=max(1, -(-total // PER_PAGE)),
            remarks=index.remarks,
        )

    @app.get("/events", include_in_schema=False)
    def events() -> Response:
        return StreamingResponse(changes(root, plan), media_type="text/event-stream")

    @app.get("/questions", include_in_schema=False)
    def waiting() -> Response:
        run = PlanRun.open(plan)
        asked = list(run.state.questions.values())
        return page(
            "questions.html",
            live="/questions",
            person=person,
            asked=[(each, _hunk(each), _proposal(each), _open_questions(run, each)) for each in asked],
            remarks=run.remarks,
        )

    @app.get("/api/runs")
    def api_runs(limit: int = Query(PER_PAGE, ge=1, le=1000), offset: int = Query(0, ge=0)) -> list[RunRow]:
        """Return the runs of the engine, the newest first."""
        with open_index(root) as index, index.reading() as rows:
            found = questions.runs(rows, limit=limit, offset=offset)
        return [RunRow.model_validate(each) for each in found]

    @app.get("/api/questions")
    def api_questions() -> list[AskHuman]:
        """Return the open questions to people."""
        return list(PlanRun.open(plan).state.questions.values())

    @app.post("/api/questions/{question_id}", responses={409: {"model": ServerAnswer}})
    def api_decide(question_id: str, decision: DecisionForm) -> Response:
        """Answer a question, or decide on a branch or an edit; 409 and why if nothing was recorded."""
        try:
            messages = record(plan, question_id, decision)
        except (PlannerError, ValueError) as error:
            # Two people may have the page open: the second learns who has decided.
            why = [*_decided(root, question_id, decision.digest), str(error)]
            return JSONResponse({"messages": [clean(each) for each in why]}, 409)
        return JSONResponse({"messages": [clean(each) for each in messages]})

    @app.post("/questions", include_in_schema=False)
    async def decide(request: Request) -> Response:
        # Read by hand: the parser of Starlette needs one more package, python-multipart.
        form = await _form(request)
        if form is None or not _same(form.get("csrf", ""), guard.csrf):
            messages = ["The form is not from this server, or from before its start: load the page again."]
            return page("message.html", 403, title="Nothing was recorded", messages=messages)
        name = form.get("id", "")
        given: dict[str, Any] = {
            key: text for key, text in form.items() if key not in ("id", "csrf") and text
        }
        if "allowed_files" in given:
            given["allowed_files"] = form["allowed_files"].split()
        try:
            messages = record(plan, name, DecisionForm.model_validate(given))
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
            return page("message.html", 409, title="Nothing was recorded", messages=faults)
        except (PlannerError, ValueError) as error:
            messages = [*_decided(root, name, form.get("digest", "")), str(error)]
            return page("message.html", 409, title="Nothing was recorded", messages=messages)
        return page("message.html", title="Recorded", messages=messages)

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return RedirectResponse("/static/icon.svg")

    return app


def _shown(value: object) -> object:
    """Clean each text that a template inserts."""
    return clean(value) if isinstance(value, str) else value


def _open_questions(run: PlanRun, question: AskHuman) -> dict[str, str]:
    """Return the questions of the plan that are asked, by check; empty for a question of the engine."""
    is_of_plan = question.kind is QuestionKind.ANSWER and question.todo_id in run.state.records
    return run.asked_questions(question.todo_id) if is_of_plan else {}


def _hunk(question: AskHuman) -> str:
    """Return the change that most likely caused the failure; empty if there is none."""
    likeliest = None if question.failure is None else likeliest_change(question.failure)
    hunk = None if likeliest is None else likeliest.hunk
    return "" if hunk is None else f"{hunk.path}:{hunk.line}\n{hunk.text}"


def _proposal(question: AskHuman) -> str:
    """Return the proposed branch and edits as YAML, as in a plan file; empty if there are none."""
    proposed = [plain(each) for each in (question.branch, *question.edits) if each]
    shown = [
        {key: each[key] for key in each if key != "extensions" and key[:2] != "x-"} for each in proposed
    ]
    return "\n".join(yaml_text(each) for each in shown)


def _decided(root: Path, name: str, digest: str) -> list[str]:
    """Return a message on an earlier decision of the same question; empty if there is none."""
    with suppress(PlannerError), open_index(root) as index, index.reading() as rows:
        if (each := questions.decided(rows, name, digest)) is not None:
            who = each["decided_by"] or "somebody"
            return [f"{name} was decided already: {each['decision']}, by {who}, {each['decided']}."]
    return []


async def _form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; ``None`` if it is too large or invalid."""
    body = b""
    # The length that the request states may be missing or wrong, so the limit is applied while reading.
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return None
    return {name: values[-1].strip() for name, values in fields.items()}


# -- access and changes ----------------------------------------------------------------------------------


class AccessGuard:
    """Middleware that checks host name and token of each request, and sets the security headers.

    A browser logs in by an address with the token, and has a cookie from then on. Programs send the token
    in a header.
    """

    def __init__(self, token: str, hosts: Collection[str]) -> None:
        """Accept requests for the host names ``hosts`` only; for any if it is empty."""
        self._token = token
        self._hosts = hosts
        self.csrf = secrets.token_urlsafe(24)
        """Token in every form, which a page of another origin cannot read."""

    async def __call__(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Pass a request on to its page, or answer it with a refusal or redirection."""
        response = self._refuse(request) or await call_next(request)
        response.headers.update(HEADERS)
        return response

    def _refuse(self, request: Request) -> Response | None:
        """Return the response to a request that must not reach a page; ``None`` if it may."""
        # Without this check, a page of another site could reach the server by DNS rebinding.
        host = request.headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if self._hosts and name not in self._hosts:
            return PlainTextResponse("This server does not answer under that name.", 421)
        offered = request.query_params.get("token")
        if offered is not None and _same(offered, self._token) and request.method == "GET":
            # Without the token in the address, so that it is not kept in the history of the browser.
            response = RedirectResponse(request.url.path, 303)
            response.set_cookie(COOKIE, self._token, httponly=True, samesite="strict", path="/")
            return response
        # Writing requests below /api/ have no form token, so they need the header: browsers send cookies
        # unasked.
        is_program = _same(request.headers.get("authorization", ""), f"Bearer {self._token}")
        if request.url.path.startswith("/api/") and request.method != "GET" and not is_program:
            return PlainTextResponse("Send the token as Authorization: Bearer TOKEN.", 401)
        if not is_program and not _same(request.cookies.get(COOKIE, ""), self._token):
            return PlainTextResponse("Open the address that planner serve printed.", 401)
        return None


def _same(one: str, other: str) -> bool:
    """Compare in constant time, so that the time does not reveal a token."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


async def changes(root: Path, plan: Path) -> AsyncIterator[str]:
    """Yield server-sent events: ``changed`` whenever a file of the index or the plan's file has changed.

    It ends when the client disconnects.
    """

    def look() -> dict[str, str]:
        return source_files(root, [plan.resolve()])  # the plan may be a link

    # In a thread, as looking at many files would block all other requests.
    before = await asyncio.to_thread(look)
    yield ": open\n\n"
    quiet = 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now, quiet = await asyncio.to_thread(look), quiet + 1
        if now != before:
            before, quiet = now, 0
            yield "event: changed\ndata: \n\n"
        elif quiet >= QUIET:
            quiet = 0
            yield ": quiet\n\n"
