"""Generator of projects whose tests interfere in one process, with a comparison of their verdicts.

``python tests/support/crosstalk_generator.py --seeds 0:300`` generates 300 projects, runs each command as
a plain pytest process, in a forked worker, and cold, and prints every disagreement.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import yaml
from example_project import Example, todo
from pytest_server import verdicts_alone
from real_command import LEAN_TERMINAL, outer_environment, unmeasured

MOST_COMMANDS = 15
PLAIN_READING = {"passed": "passed", "failed": "failed", "inconclusive": "failed"}
"""The verdict of the command alone, by criterion verdict; others (`flaky`, `not_run` …) are errors."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A kind of state that outlives a test."""

    name: str
    disturb: str
    """Statements that change the state."""
    disturbed: str
    """An expression that is true once the state has changed, and false in a fresh process."""
    product: str = ""
    """Source of the product module, if the state is in one."""

    def numbered(self, number: int) -> Channel:
        """Return this channel with the placeholders of its texts replaced for one use."""
        texts = (self.disturb, self.disturbed, self.product)
        filled = (
            text.strip("\n").replace("PROD", f"prod_{number}").replace("TAG", f"tag{number}")
            for text in texts
        )
        return Channel(self.name, *filled)


_LISTS = yaml.safe_load((Path(__file__).parents[2] / "fixtures/crosstalk.yaml").read_text(encoding="utf-8"))
CHANNELS = {name: Channel(name, **texts) for name, texts in _LISTS["channels"].items()}
SURROUNDINGS: dict[str, dict[str, Any]] = _LISTS["surroundings"]
"""Files, and the commands that use them, by name."""
PLACEMENTS: dict[str, str] = _LISTS["placements"]
"""Test files by name, with a line ``DISTURB`` in place of the statements."""


@dataclass(slots=True)
class Crosstalk:
    """A project, and its commands in the order of the plan."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    commands: list[str] = field(default_factory=list[str])
    about: list[str] = field(default_factory=list[str])
    """Channels, with their placements, and surroundings in the project."""

    def surround(self, name: str) -> None:
        """Add files and commands; an existing file is kept unless it is empty."""
        for path, text in SURROUNDINGS[name]["files"].items():
            self.files[path] = self.files.get(path) or text
        self.commands += SURROUNDINGS[name]["commands"]
        self.about.append(name)


def generated(seed: int) -> Crosstalk:
    """Return the project that a seed determines."""
    rng = random.Random(seed)
    project = Crosstalk({"conftest.py": ""})
    names = sorted(CHANNELS)
    count = 1 if seed % 2 else rng.randint(2, 3)
    for number, name in enumerate(rng.sample(names, count)):
        _add_channel(project, CHANNELS[name].numbered(number), number, rng)
    if count > 1 or rng.random() < 0.5:
        for surrounding in rng.sample(list(SURROUNDINGS), rng.randint(1, 2)):
            project.surround(surrounding)
    project.commands += rng.sample(project.commands, 2)  # the same tests for several todos
    del project.commands[MOST_COMMANDS:]
    if rng.random() < 0.6:
        rng.shuffle(project.commands)
    return project


def of_surroundings(*names: str) -> Crosstalk:
    """Return a project with these surroundings."""
    project = Crosstalk()
    for name in names:
        project.surround(name)
    return project


def _add_channel(project: Crosstalk, channel: Channel, number: int, rng: random.Random) -> None:
    """Add a file that changes the state, and one with tests that need the change or break by it."""
    importing = ""
    if channel.product:
        project.files[f"prod_{number}.py"] = f"{channel.product}\n"
        importing = f"import prod_{number}\n"
    usable = ["body"] if "request" in channel.disturb else sorted(PLACEMENTS)
    placement = rng.choice(usable)
    folder = rng.choice(["tests", "tests", "tests", f"part{number}", "checks"])
    first, second = (f"{folder}/test_{word}{number}.py" for word in rng.choice((("a", "b"), ("b", "a"))))
    if rng.random() < 0.15 and folder.startswith("part"):
        project.files[f"{folder}/__init__.py"] = ""
    project.files[first] = importing + _placed(PLACEMENTS[placement], channel.disturb, number)
    where = importing if rng.random() < 0.5 else ""
    inside = "" if where or not importing else f"    {importing}"
    project.files[second] = (
        where
        + "def _ok(ask):\n    try: ask()\n    except Exception: return False\n    return True\n"
        + f"def test_needs(request):\n{inside}    assert {channel.disturbed}\n"
        + f"def test_suffers(request):\n{inside}    assert not ({channel.disturbed})\n"
    )
    project.commands += [
        f"pytest {first}",
        f"pytest {second}::test_needs",
        f"pytest {second} -k suffers" if rng.random() < 0.3 else f"pytest {second}::test_suffers",
    ]
    if rng.random() < 0.25:
        project.commands.append(f"pytest {first} {second}::test_needs")
    if rng.random() < 0.25:
        project.commands.append(f"pytest {folder}")
    project.about.append(f"{channel.name} in {placement}")


def _placed(text: str, disturb: str, number: int) -> str:
    """Return a test file with the statements in place of ``DISTURB``."""
    lines: list[str] = []
    for line in text.replace("NUMBER", str(number)).splitlines():
        bare = line.lstrip()
        indent = line[: len(line) - len(bare)]
        lines.append(textwrap.indent(disturb, indent) if bare == "DISTURB" else line)
    return "\n".join(lines) + "\n"


# -- comparing -------------------------------------------------------------------------------------


def _alone(project: Crosstalk, root: Path) -> list[str]:
    """Return the verdict of each command in plain pytest; only exit code 0 with a passed test counts."""
    example = Example(root, project.files)
    env = unmeasured(outer_environment()) | LEAN_TERMINAL
    return verdicts_alone([(example.root, command) for command in project.commands], env)


def _verified(project: Crosstalk, root: Path, *options: str) -> list[str]:
    """Return the verdict of each command in a plan."""
    example = Example(root, project.files)
    example.plan(*(todo(f"t{number}", command) for number, command in enumerate(project.commands)))
    run = example.verify("--planverify-confirm=0", *options)
    verdicts: list[str] = [run.check(f"t{number}")["verdict"] for number, _ in enumerate(project.commands)]
    return [PLAIN_READING.get(verdict, verdict) for verdict in verdicts]


WAYS: dict[str, tuple[str, ...]] = {
    "workers": (),
    "two workers at once": ("-n2",),
    "cold": ("--planverify-isolate", "-n2"),
}


def disagreements(project: Crosstalk, folder: Path, ways: Iterable[str] = WAYS) -> list[str]:
    """Return one line for each command on which plain pytest and the plan disagree."""
    said = {"plain": _alone(project, folder / "plain")}
    for number, way in enumerate(ways):
        said[way] = _verified(project, folder / str(number), *WAYS[way])
    return [
        f"{command}: {', '.join(f'{way} {each[index]}' for way, each in said.items())}"
        for index, command in enumerate(project.commands)
        if len({each[index] for each in said.values()}) > 1
    ]


def _compare(seed: int) -> tuple[str, list[str]]:
    project = generated(seed)
    with tempfile.TemporaryDirectory(prefix="crosstalk-", ignore_cleanup_errors=True) as folder:
        return f"seed {seed} ({', '.join(project.about)})", disagreements(project, Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="0:50", help="a range FROM:TO")
    first, _, last = parser.parse_args().seeds.partition(":")
    wrong = 0
    with ProcessPoolExecutor(2) as pool:
        for label, lines in pool.map(_compare, range(int(first), int(last))):
            print(label, *lines, sep="\n    ", flush=True)
            wrong += len(lines)
    print(f"{wrong} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
