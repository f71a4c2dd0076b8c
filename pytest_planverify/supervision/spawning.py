"""Starts sessions in new interpreters, where a forked one would not do: with another hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

from pytest_planverify.processes import TOKEN_VARIABLE
from pytest_planverify.supervision.forkserver import Exited, ForkServerDied

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_planverify.observing.spec import SessionSpec


class Spawner:
    """Starts one session at a time; the counterpart of the server that forks them."""

    def __init__(self, folder: Path, seed: int) -> None:
        """The specs of the sessions are written into the folder."""
        self._folder = folder
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None
        self.token = f"{os.getpid()}-{uuid.uuid4().hex}"
        """Stands in the environment of what is started, and finds again what left its session."""

    @property
    def pid(self) -> int:
        """The process below which all is found that the session started."""
        return 0 if self._process is None else self._process.pid

    def start(self, spec: SessionSpec, *, own_session: bool) -> int:
        """Start the session. Raises :class:`ForkServerDied` if no interpreter can be started."""
        path = self._folder / f"{spec.session_id}.spec.json"
        path.write_text(spec.to_json(), encoding="utf-8")
        environment = {**os.environ, **spec.env, "PYTHONHASHSEED": str(self._seed)}
        environment[TOKEN_VARIABLE] = self.token
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pytest_planverify.supervision.spawned", str(path)],
                cwd=spec.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=own_session,
            )
        except OSError as error:
            raise ForkServerDied(str(error)) from error
        return self._process.pid

    def renew(self) -> None:
        """There is nothing to be renewed. Raises :class:`ForkServerDied`."""
        raise ForkServerDied("no interpreter can be started")

    def poll(self, seconds: float) -> Exited | None:
        """How the session ended, or ``None`` if it still runs after so many seconds."""
        assert self._process is not None
        try:
            code = self._process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None
        # Whether anything is left is not known here: it is looked for each time.
        return Exited(code, None, True) if code >= 0 else Exited(None, -code, True)
