"""Who may ask the pages, and what a browser may do with the answer: one middleware before every page."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fastapi.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from fastapi import Request, Response

COOKIE = "planverify"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Guard:
    """The login token, the hosts that pages are served under, and the token of forms."""

    def __init__(self, token: str, hosts: Collection[str]) -> None:
        """Accept requests for these host names alone; none named means any."""
        self._token = token
        self._hosts = hosts
        self.csrf = secrets.token_urlsafe(24)
        """Stands in every form: a page of another origin cannot read it."""

    async def __call__(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Answer a request, or refuse it before any page sees it."""
        response = self._refuse(request) or await call_next(request)
        response.headers.update(HEADERS)
        return response

    def accepts_form(self, token: str) -> bool:
        """Return whether a form was made by this server."""
        return _same(token, self.csrf)

    def _refuse(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if self._hosts and name not in self._hosts:
            return PlainTextResponse("This server does not answer under that name.", 421)
        offered = request.query_params.get("token")
        if offered is not None and _same(offered, self._token) and request.method == "GET":
            response = RedirectResponse(request.url.path, 303)
            response.set_cookie(COOKIE, self._token, httponly=True, samesite="strict", path="/")
            return response
        is_program = _same(request.headers.get("authorization", ""), f"Bearer {self._token}")
        if request.url.path.startswith("/api/") and request.method != "GET" and not is_program:
            return PlainTextResponse("Send the token as Authorization: Bearer TOKEN.", 401)
        if not is_program and not _same(request.cookies.get(COOKIE, ""), self._token):
            return PlainTextResponse("Open the address that planner serve has printed.", 401)
        return None


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
