"""Puts a machine around a project: stand-ins, programs, limits, rights, services; and takes it away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scenes.listening import listening
from scenes.scene import Machine
from scenes.thirdparty import STAND_INS

USER = 64_123
"""An ordinary user that nobody else is: limits of processes count by user."""

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Around:
    """A machine that is in place."""

    python: Path
    """Starts the interpreter in it."""
    variables: Mapping[str, str]
    plugins: tuple[str, ...]


@contextmanager
def around(project: Path, machine: Machine, port: int, named: Callable[[str], str]) -> Iterator[Around]:
    """The machine for one run. Namespaces and limits end with the processes of the run."""
    home = project.parent / "venv"
    shutil.rmtree(home, ignore_errors=True)
    folders = {
        "SITE": home / "lib/python3/site-packages",
        "BIN": home / "tools",
        "VAR": home / "var",
        "PROJECT": project,
        "PYTHON": Path(sys.executable),
    }
    for name in ("SITE", "BIN", "VAR"):
        folders[name].mkdir(parents=True)
    words = {name: str(folder) for name, folder in folders.items()}

    def said(text: str) -> str:
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return named(text)

    for name in machine.installed:
        for path, text in STAND_INS[name].items():
            _write(folders["SITE"] / path, text)
    for name, text in machine.programs.items():
        _write(folders["BIN"] / name, f"#!/bin/sh\n{text}\n", mode=0o755)
    variables = {"PATH": f"{folders['BIN']}:{SYSTEM_PATH}", "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    variables["PYTHONPATH"] = str(folders["SITE"])
    variables |= {named(name): said(value) for name, value in machine.variables.items()}
    launcher = home / "bin" / "python"
    _write(launcher, _launcher(machine, said(machine.before), project), mode=0o755)
    if machine.user:
        _give(project.parent, USER)
    with listening(machine.service, port, home):
        yield Around(launcher, variables, machine.plugins)
    if machine.user:
        _give(project.parent, os.getuid())


def possible(machine: Machine) -> bool:
    """Whether this machine can be put in place here."""
    if (machine.user or machine.apart) and os.getuid() != 0:
        return False
    if machine.apart:
        tried = subprocess.run(
            ["unshare", *machine.apart.split(), "true"], capture_output=True, check=False
        )
        return tried.returncode == 0
    return True


def _launcher(machine: Machine, lines: str, project: Path) -> str:
    started = f'exec {sys.executable} "$@"'
    if machine.user:
        rights = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
        started = (
            f'exec setpriv --reuid {USER} --regid {USER} --clear-groups {rights} {sys.executable} "$@"'
        )
    if not machine.apart:
        return f"#!/bin/sh\n{lines}\n{started}\n"
    inner = project.parent / "venv" / "bin" / "inside"
    _write(inner, f"#!/bin/sh\n{lines}\n{started}\n", mode=0o755)
    return f'#!/bin/sh\nexec unshare {machine.apart} {inner} "$@"\n'


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _give(folder: Path, user: int) -> None:
    subprocess.run(["chown", "-R", f"{user}:{user}", str(folder)], check=True)
