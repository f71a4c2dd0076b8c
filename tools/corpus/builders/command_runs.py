"""Run one command criterion: recorded through ``pytest --planverify``, and again on its own as a gate."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recording import KEPT_VARIABLES, Recording, plan_of, record
from tool_projects import Project
from toolbox import Toolbox

from planner.model.evidence import Evidence

SERVICE_PORT = 15_971
"""Port of the service that the tests of ``service`` projects need."""

GREEN_LIMIT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Result of one recorded run."""

    evidence: Evidence
    python: str
    pytest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Environment in which the command runs."""

    python: Path
    variables: Mapping[str, str]
    node_modules: bool = True


def surroundings_of(name: str, toolbox: Toolbox) -> Surroundings:
    """Return the usual surroundings for an empty name, else those in which something is missing."""
    return _SURROUNDINGS[name](toolbox)


def _usual(toolbox: Toolbox) -> Surroundings:
    variables = {
        "PATH": toolbox.path,
        "RUSTUP_AUTO_INSTALL": "0",
        "CARGO_NET_OFFLINE": "true",
        "NPM_CONFIG_USERCONFIG": os.devnull,
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    }
    return Surroundings(python=toolbox.python, variables=variables)


def _with(toolbox: Toolbox, **variables: str) -> Surroundings:
    usual = _usual(toolbox)
    return Surroundings(python=usual.python, variables={**usual.variables, **variables})


def _no_python_tools(toolbox: Toolbox) -> Surroundings:
    path = toolbox.path_without(_PYTHON_PROGRAMS, python_tools=False)
    usual = _usual(toolbox)
    return Surroundings(python=toolbox.bare, variables={**usual.variables, "PATH": path})


def _without(*names: str) -> Callable[[Toolbox], Surroundings]:
    return lambda toolbox: _with(toolbox, PATH=toolbox.path_without(names))


def _broken_installation(toolbox: Toolbox) -> Surroundings:
    """Install only half of a package that the tools import, as after an interrupted update."""
    folder = toolbox.farms / "half"
    for name, text in _HALF_PACKAGES.items():
        file = folder / name / "__init__.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return _with(toolbox, PYTHONPATH=str(folder))


def _no_modules(toolbox: Toolbox) -> Surroundings:
    usual = _usual(toolbox)
    return Surroundings(python=usual.python, variables=usual.variables, node_modules=False)


_PYTHON_PROGRAMS = (
    *("mypy", "dmypy", "pyright", "ruff", "flake8", "pylint", "black", "isort", "bandit", "lint-imports"),
    *("coverage", "coverage3", "tox", "vulture", "pycodestyle"),
)
_HALF_PACKAGES = {
    "pathspec": "from pathspec._meta import __version__\n",
    "pyflakes": "from pyflakes.version import __version__\n",
    "astroid": "from astroid.__pkginfo__ import version\n",
    "coverage": "from coverage.version import __version__\n",
    "isort": "from isort._version import __version__\n",
    "mypy_extensions": "raise ImportError('mypy_extensions: the installation is incomplete')\n",
}

_SURROUNDINGS: dict[str, Callable[[Toolbox], Surroundings]] = {
    "": _usual,
    "no-python-tools": _no_python_tools,
    "broken-installation": _broken_installation,
    "no-node": _without("node", "nodejs"),
    "no-compiler": _without("gcc", "cc", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-gcc-12"),
    "no-make": _without("make", "gmake"),
    "no-cargo": _without("cargo"),
    "no-linker": _without("gcc", "cc", "ld", "clang"),
    "no-node-modules": _no_modules,
    "no-service": _usual,
    "colours": lambda toolbox: _with(
        toolbox,
        NO_COLOR="",
        FORCE_COLOR="1",
        CLICOLOR_FORCE="1",
        MYPY_FORCE_COLOR="1",
        CARGO_TERM_COLOR="always",
        TERM="xterm-256color",
    ),
}


@dataclass(slots=True)
class Runner:
    """Writes projects into one folder, and runs commands there."""

    toolbox: Toolbox
    folder_of_cases: Path
    _green: dict[str, bool] = field(default_factory=dict)
    _project: str = ""

    @property
    def folder(self) -> Path:
        """Return the folder of the current project."""
        return self.folder_of_cases / self._project

    def lay_out(self, project: Project) -> None:
        """Write the project as committed, without leftovers of earlier ones."""
        shutil.rmtree(self.folder_of_cases, ignore_errors=True)
        self._project = project.name
        project.lay_out(self.folder)

    def green(self, project: Project, command: str, *, service: bool = False) -> bool:
        """Return whether the command passes on the committed project with nothing missing."""
        key = hashlib.sha256(f"{project.digest}{command}".encode()).hexdigest()
        kept = self.folder_of_cases.with_name("green") / key
        known = True if kept.exists() else self._green.get(key)
        if known is None:
            self.lay_out(project)
            around = _usual(self.toolbox)
            self._link_modules(around)
            with _service(on=service):
                known = not self.is_red(command, GREEN_LIMIT, around)
            self._green[key] = known
            if known:
                kept.parent.mkdir(exist_ok=True)
                kept.touch()
        return known

    def record(self, checks: list[tuple[str, float]], around: Surroundings) -> list[Seen | str]:
        """Return the result of each command, with its limit, of one verification of the current project.

        For a command that cannot become a case, the result is the reason.
        """
        self._link_modules(around)
        tests = [{"cmd": command, "timeout_seconds": limit} for command, limit in checks]
        plan = plan_of({"check": {"tests": tests}})
        limit = sum(each for _, each in checks) + 120
        try:
            ran = record(
                self.folder, plan, python=around.python, environment=around.variables, timeout=limit
            )
        except RuntimeError as error:
            return [" ".join(str(error).split())[-300:]] * len(checks)
        return [self._seen(ran, position) for position in range(len(checks))]

    def _seen(self, ran: Recording, position: int) -> Seen | str:
        found = ran.of(check_id=f"tests[{position}]")
        if len(found) != 1:
            return f"{len(found)} failures were recorded, exit status {ran.exit_code}"
        line = self.toolbox.scrubbed(found[0].model_dump_json(exclude_defaults=True))
        run = ran.document.get("run", {})
        return Seen(
            evidence=Evidence.model_validate_json(line),
            python=str(run.get("python", "")),
            pytest=str(run.get("pytest", "")),
        )

    def is_red(self, command: str, limit: float, around: Surroundings) -> bool:
        """Return whether the command also fails on its own, outside any verification."""
        words = shlex.split(command)
        variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        variables |= {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", **around.variables}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        program = _program(words[0], around.python, variables["PATH"])
        if program is None:
            return True
        process = subprocess.Popen(
            (program, *words[1:]),
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=limit) != 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return True

    def _link_modules(self, around: Surroundings) -> None:
        link = self.folder / "node_modules"
        if (self.folder / "package.json").exists() and around.node_modules and not link.is_symlink():
            link.symlink_to(self.toolbox.node_modules)


def _program(name: str, python: Path, path: str) -> str | None:
    if name in ("python", "python3"):
        return str(python)
    beside = python.parent / name
    return str(beside) if beside.is_file() else shutil.which(name, path=path)


@contextmanager
def _service(*, on: bool) -> Iterator[None]:
    """Accept connections on the port of the service."""
    if not on:
        yield
        return
    with socket.create_server(("127.0.0.1", SERVICE_PORT)) as server:
        done = threading.Event()

        def accept() -> None:
            server.settimeout(0.1)
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                connection.sendall(b"ready\n")
                connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
