"""The tools that the command criteria run: installed at pinned versions into a scratch folder, or found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]

PYTHON_TOOLS = (
    "bandit==1.9.4",
    "black==26.10.1",
    "coverage==7.17.3",
    "flake8==7.5.0",
    "import-linter==2.16",
    "isort==9.0.2",
    "mypy==2.4.1",
    "pycodestyle==2.15.0",
    "pylint==4.1.4",
    "pyright==1.1.414",
    "ruff==0.17.6",
    "tox==4.67.15",
    "vulture==2.16",
)
NODE_TOOLS = ("@types/node@26.6.6", "eslint@10.15.0", "mocha@12.0.3", "prettier@3.10.1", "typescript@7.0.2")
FOUND_TOOLS = ("node", "npm", "cargo", "rustc", "gcc", "make", "git")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Locations of the tools."""

    python: Path
    """Interpreter of the environment with the Python tools."""
    bare: Path
    """Interpreter of an environment without them."""
    node_modules: Path
    farms: Path
    lacking: frozenset[str]
    """Names of tools that are missing from the machine."""

    @property
    def path(self) -> str:
        """Return the search path with all tools."""
        return os.pathsep.join((str(self.python.parent), os.environ.get("PATH", os.defpath)))

    def path_without(self, names: Collection[str], *, python_tools: bool = True) -> str:
        """Return a search path of one folder that has everything except these programs."""
        farm = self.farms / f"without-{'-'.join(sorted(names))}-{'' if python_tools else 'bare'}"
        if not farm.is_dir():
            farm.mkdir(parents=True)
            for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
                _link_programs(Path(folder), farm, names)
        first = self.python if python_tools else self.bare
        return os.pathsep.join((str(first.parent), str(farm)))

    def scrubbed(self, text: str) -> str:
        """Return the text without folders of this machine that only the tools name."""
        stdlib = Path(sys.base_prefix)
        for folder, name in (
            (self.node_modules, "/opt/node/node_modules"),
            (self.python.parents[1], "/venv"),
            (self.bare.parents[1], "/venv"),
            (self.farms, "/opt/bin"),
            (self.farms.parent, "/scratch"),
            (stdlib, "/usr"),
            (Path.home(), "/home/user"),
        ):
            for form in (str(folder), str(folder.resolve())):
                text = text.replace(form, name)
        return text


def prepare(work: Path) -> Toolbox:
    """Install missing tools; unavailable ones are listed in ``lacking``."""
    lacking = {name for name in FOUND_TOOLS if shutil.which(name) is None}
    tools, bare = work / "tools", work / "bare"
    lacking |= _python_tools(tools, [*PYTHON_TOOLS, "pytest-timeout"])
    _python_tools(bare, [])
    node = work / "node"
    if "npm" not in lacking:
        lacking |= _node_tools(node)
    else:
        lacking |= {_node_name(each) for each in NODE_TOOLS}
    return Toolbox(
        python=tools / "bin" / "python",
        bare=bare / "bin" / "python",
        node_modules=node / "node_modules",
        farms=work / "farms",
        lacking=frozenset(lacking),
    )


def _python_tools(folder: Path, requirements: list[str]) -> set[str]:
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run((sys.executable, "-m", "venv", str(folder)), check=True)
        _install(python, ["-e", str(CHECKOUT)])
    names = {each.partition("==")[0]: each for each in requirements}
    missing = [each for name, each in names.items() if not _has(python, name)]
    if missing and not _install(python, missing):
        # One that cannot be had must not take the others with it.
        for each in missing:
            _install(python, [each])
    return {name for name in names if not _has(python, name)}


def _install(python: Path, words: list[str]) -> bool:
    command = (str(python), "-m", "pip", "install", "-q", *words)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _has(python: Path, name: str) -> bool:
    wanted = name.replace("-", "_").lower()
    found = python.parents[1].glob("lib/python*/site-packages/*.dist-info")
    return any(each.name.partition("-")[0].lower() == wanted for each in found)


def _node_tools(folder: Path) -> set[str]:
    if not (folder / "node_modules").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"name": "tools", "private": true}', encoding="utf-8")
        subprocess.run(
            ("npm", "install", "--no-audit", "--no-fund", *NODE_TOOLS),
            cwd=folder,
            capture_output=True,
            check=False,
        )
    return {
        name for each in NODE_TOOLS if not (folder / "node_modules" / (name := _node_name(each))).is_dir()
    }


def _node_name(requirement: str) -> str:
    return requirement[: requirement.rindex("@")]


def _link_programs(folder: Path, farm: Path, names: Collection[str]) -> None:
    if not folder.is_dir():
        return
    for program in sorted(folder.iterdir()):
        link = farm / program.name
        if program.name not in names and not link.is_symlink():
            link.symlink_to(program)
