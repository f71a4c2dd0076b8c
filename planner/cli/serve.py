"""``planner serve``: the runs of a project and its open questions, as pages in a browser.

The pages are in :mod:`planner.web`; this module starts the server and records the answers from their
forms. Access needs the token of the printed URL. The server listens on the loopback address only, because
the connection is not encrypted.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from planner.cli.answer import give_answer, give_decision, login_name
from planner.cli.app import command
from planner.cli.arguments import PlanArgument, option, plan_or_usual
from planner.cli.exits import Status, UsageMistake, say
from planner.errors import PlannerError
from planner.model.events import BranchChanges
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping


@command("Exit status: 0 stopped, 2 wrong usage, or FastAPI is not installed, 4 a file cannot be used.")
def serve(
    plan: PlanArgument = None,
    port: Annotated[int, option("--port N", "The port to listen on.", min=1, max=65535)] = 8765,
) -> int:
    """Show the runs of the project in a browser, and record answers to open questions."""
    # Looked for before anything is imported, for one message about all of them.
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UsageMistake("the pages need more packages: pip install 'pytest-planverify[web]'")
    import uvicorn

    from planner.planfile.loader import load_plan
    from planner.web.app import create_app

    path = plan_or_usual(plan)
    token = secrets.token_urlsafe(24)
    app = create_app(path, load_plan(path).root, token, record, login_name())
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
    return Status.OK


def record(plan: Path, form: Mapping[str, str]) -> list[str]:
    """Record the answer in the fields of a form, as ``planner approve`` and ``planner answer`` do.

    Return lines that say what was recorded. Raises ``ValueError`` if the question is closed, or a field is
    not valid.
    """
    from planner.store.plan_run import PlanRun

    run, name, because = PlanRun.open(plan), form.get("id", ""), form.get("because")
    by = one_line(form.get("by", ""), limit=100) or login_name()
    try:
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
    except UsageMistake as error:
        raise ValueError(str(error)) from None
    run.save()
    return lines
