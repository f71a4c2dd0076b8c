"""``planner serve``: the runs of a project and its open questions, as pages in a browser.

This module starts the server; the pages are in :mod:`.app`. Access needs the token of the printed URL. The
server listens on the loopback address only, because the connection is not encrypted.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from importlib.util import find_spec
from typing import Annotated

from planner.cli.app import command
from planner.cli.arguments import PlanArgument, option, plan_or_usual
from planner.cli.exits import UsageMistake, say
from planner.errors import PlannerError


@command("Exit status: 0 stopped, 2 wrong usage, or FastAPI is not installed, 4 a file cannot be used.")
def serve(
    plan: PlanArgument = None,
    port: Annotated[int, option("--port N", "The port to listen on.", min=1, max=65535)] = 8765,
) -> None:
    """Show the runs of the project in a browser, and record answers to open questions."""
    # Looked for before anything is imported, for one message about all of them.
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UsageMistake("the pages need more packages: pip install 'pytest-planverify[web]'")
    import uvicorn

    from planner.planfile.loader import load_plan
    from planner.web.app import create_app

    path = plan_or_usual(plan)
    token = secrets.token_urlsafe(24)
    app = create_app(path, load_plan(path).root, token)
    try:
        # uvicorn would log that the port is in use, and exit by itself.
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        problem = error.strerror or error
        raise PlannerError(f"127.0.0.1:{port}: {problem}; name another --port") from None
    say(f"http://127.0.0.1:{port}/?token={token}")
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    with suppress(KeyboardInterrupt):  # raised again after an orderly end
        uvicorn.Server(config).run(sockets=[listener])
