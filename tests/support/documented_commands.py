"""Documentation pages whose code blocks are files to write and commands to run, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from real_command import outer_environment, unmeasured
from real_planner import forked

CONFIDENCES = (
    (re.compile(r"\b\d{1,3}%(,?) sure\b"), r"SO\1 sure"),
    (re.compile(r'("confidence": )[01]\.\d+'), r"\1SO"),
    (re.compile(r"\b([A-Z]+_[A-Z]+) \(\d{1,3}%\)"), r"\1 (SO)"),
    (re.compile(r"\b([A-Z]+_[A-Z]+) \d{1,3}%,"), r"\1 SO,"),
)
"""Replacements for the confidence of a diagnosis, which changes whenever the corpus grows."""

VOLATILE = (
    (re.compile(r"(\d+m )?\d+(\.\d+)? ?(ms|s)\b"), "TIME"),
    *CONFIDENCES,
    (re.compile(r"\b\d{8}T\d{6}[\w-]*"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "WHEN"),
    (re.compile(r"iter-\d{4}-\d{8}-\d{6}"), "ITERATION"),
    (re.compile(r"sha256:[0-9a-f]{12}\b"), "DIGEST"),
    (re.compile(r"^={3,}|={3,}$", re.MULTILINE), ""),
)
"""Replacements for text that varies between runs, and whose width moves the line breaks."""


PLUGINS_OF_A_READER = (
    "pytest_metadata.plugin",
    "pytest_jsonreport.plugin",
    "pytest_timeout",
    "pytest_planverify.plugin",
)
"""Plugins loaded by name: autoloading all that the tests need takes more than half of a short run."""

WITHOUT_SHELL = re.compile(r"(planner|planverify) [^<>|&;$]*( < [\w.]+)?( > [\w.]+)?|export \w+=\w*")
"""Lines of a script that mean the same without a shell."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its info string, its location, its text."""

    info: str
    where: str
    text: str

    @property
    def file(self) -> str | None:
        """Path of the file that the block holds, if the second word of the info string is a path."""
        words = self.info.split()
        return words[1] if len(words) == 2 and re.search(r"[./]", words[1]) else None


@dataclass(frozen=True, slots=True)
class Typed:
    """A command of a page, with the output shown below it."""

    command: str
    shown: str
    where: str


def blocks_of(page: Path) -> list[Block]:
    """Return every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1].strip(), f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}", match[2])
        for match in re.finditer(r"^```(.+?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def typed(block: Block) -> Iterator[Typed]:
    """Yield the commands of a console block."""
    assert block.text.startswith("$ "), f"{block.where} does not begin with a command"
    for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = entry.partition("\n")
        yield Typed(command, shown, block.where)


def live_through(page: Path, folder: Path, info: str) -> int:
    """Write the files of a page and run the commands of its blocks with that info string, in order.

    Return the number of commands. Raises ``AssertionError`` if the output differs from the page.
    """
    status, count = 0, 0
    for block in blocks_of(page):
        if block.file is not None:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.info == info:
            for each in typed(block):
                count += 1
                if each.command == "echo $?":
                    assert each.shown.strip() == str(status), each.where
                    continue
                status, printed = run(each.command, folder)
                assert fits(each.shown, printed), f"{each.where}: $ {each.command}\n{printed}"
    return count


def run(command: str, cwd: Path) -> tuple[int, str]:
    """Run a command as a reader would in the active virtual environment; return its status and output.

    Forks run `planner` and `planverify`, also in a script, where no shell is needed.
    """
    lines = (cwd / command[3:]).read_text().splitlines() if command.startswith("sh ") else [command]
    if all(map(WITHOUT_SHELL.fullmatch, lines)):
        return run_forked(lines, cwd)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env=environment_of_a_reader(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def run_forked(lines: list[str], cwd: Path) -> tuple[int, str]:
    """Run the program of each line in a fork, with the variables of lines that export one."""
    env, status, printed = environment_of_a_reader(), 0, ""
    for line in lines:
        command, _, target = line.partition(" > ")
        command, _, source = command.partition(" < ")
        program, *words = shlex.split(command)
        if program == "export":
            name, _, value = words[0].partition("=")
            env[name] = value
            continue
        given = (cwd / source).read_text() if source else ""
        with patch.dict(os.environ, env, clear=True):
            ran = forked(words, cwd, given, program=program)
        if target:
            (cwd / target).write_text(ran.out)
        status, printed = ran.status, printed + ("" if target else ran.out) + ran.err
    return status, printed


def environment_of_a_reader() -> dict[str, str]:
    """Return the environment of a reader who has installed only this plugin and its requirements."""
    kept = outer_environment()
    kept.pop("CI", None)
    return {
        **unmeasured(kept),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": ",".join(PLUGINS_OF_A_READER),
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "TERM": "dumb",
    }


def fits(shown: str, printed: str) -> bool:
    """Return whether the output matches the page; a line `…` matches any lines, blanks are ignored."""
    parts = [re.escape(_settled(part)) for part in re.split(r"^…\n", shown, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.* )?".join(parts), _settled(printed), re.DOTALL) is not None


def _settled(text: str) -> str:
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return "".join(f"{word} " for word in text.split())
