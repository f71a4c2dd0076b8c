"""Gets the pinned source distributions by pip, checks their digests, and makes green repositories."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

from packages import DEPENDENCIES, Package

CHECKOUT = Path(__file__).parents[3]

COMMITTED_AT = 1_700_000_000
"""When the files of a green project were last changed, in seconds: compiled files are held to it."""

GENERATED = "plan.json\n.planverify/\n.planverify-recorded.jsonl\n__pycache__/\n.pytest_cache/\n"
"""What runs leave behind, for the repository's ``.git/info/exclude``."""


class FetchError(Exception):
    """A package cannot be had as it is pinned; the message says which and why."""


def interpreter(work: Path) -> Path:
    """The Python of a virtual environment with this plugin and what the suites need; made when absent."""
    python = work / "venv" / "bin" / "python"
    ready = work / "venv" / "ready"
    if not ready.exists():
        venv.create(work / "venv", with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "--quiet", str(CHECKOUT), *DEPENDENCIES], work)
        ready.write_text("", encoding="utf-8")
    return python


def repository(package: Package, work: Path) -> Path:
    """A git repository of the package as it was published, with one commit; made when absent."""
    project = work / "projects" / package.name
    if not (project / ".git").is_dir():
        shutil.rmtree(project, ignore_errors=True)
        shutil.move(unpacked(package, work), project)
        commit(project)
    return project


def restore(project: Path) -> None:
    """Take back every change since the commit; compiled files stay, as they are still true."""
    _run(["git", "reset", "-q", "--hard"], project)
    _run(["git", "clean", "-q", "-f", "-d", "-x", "--exclude=__pycache__"], project)
    for file in sorted(project.rglob("*.py")):
        if file.stat().st_mtime != COMMITTED_AT:
            os.utime(file, (COMMITTED_AT, COMMITTED_AT))


def compile_all(package: Package, project: Path, python: Path) -> None:
    """Let pytest write the compiled files of product and tests once: every later run is faster for it."""
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(project / package.import_path)}
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", package.tests]
    subprocess.run(command, cwd=project, env=variables, capture_output=True, check=False)


def unpacked(package: Package, work: Path) -> Path:
    """Return the folder of the pinned source distribution, fetched where it is absent."""
    archive = _archive(package, work / "sdists")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != package.sha256:
        raise FetchError(f"{archive.name}: sha256 is {digest}, pinned is {package.sha256}; it is not used")
    folder = work / "unpacked" / package.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (work / "projects").mkdir(exist_ok=True)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(folder.iterdir())


def _archive(package: Package, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pattern = f"{package.name.replace('-', '?')}-{package.version}.tar.gz"
    if not any(folder.glob(pattern)):
        wanted = f"{package.name}=={package.version}"
        # Named alone: with ``:all:`` its build tools would be built from source as well.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary"]
        _run([*command, package.name, "--dest", str(folder), wanted], folder)
    found = sorted(folder.glob(pattern))
    if not found:
        raise FetchError(f"{package.name} {package.version}: pip brought no source distribution")
    return found[0]


def commit(project: Path) -> None:
    """Make a repository of a folder, with all its files in one commit."""
    _run(["git", "init", "-q"], project)
    (project / ".git" / "info" / "exclude").write_text(GENERATED, encoding="utf-8")
    _run(["git", "add", "--all", "--force"], project)
    author = ["-c", "user.name=corpus", "-c", "user.email=corpus@example.org"]
    _run(["git", *author, "commit", "-q", "--message", "As published"], project)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FetchError(f"{' '.join(command[:6])} …: exit {done.returncode}: {done.stderr.strip()[-400:]}")
