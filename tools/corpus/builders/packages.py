"""The published packages into which faults are inserted, with their download and set-up."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One pinned source distribution, and the layout of its files."""

    name: str
    """Name in the package index; the corpus is split by it."""
    version: str
    sha256: str
    """Digest of the source distribution."""
    sources: str
    """Folder of the product's modules."""
    tests: str
    """Folder of its tests."""
    import_path: str = "."
    """Folder from which the product is imported."""
    cases: int
    """Most cases that are built of it."""

    @property
    def module(self) -> str:
        """Return the import name of the product."""
        return self.sources.rsplit("/", 1)[-1]


DEPENDENCIES = (
    "pytest==9.2.0",
    "coverage==7.17.3",
    "more-itertools==11.2.1",
    "typeguard==4.6.0",
    "trio==0.35.0",
    "markupsafe==3.0.4",
    "text-unidecode==1.3",
    "mdurl==0.1.2",
    "linkify-it-py==2.2.0",
    "wcwidth==0.9.4",
    "whatever==0.7",
    "jaraco.functools==4.6.0",
    "freezegun==1.5.5",
    "pytest-codspeed==5.0.4",
)
"""Distributions that the test suites need besides the packages themselves."""

PYTEST = DEPENDENCIES[0].partition("==")[2]
"""Version of pytest with which the cases are recorded."""

PACKAGES = (
    Package(
        name="inflect",
        version="7.6.0",
        sha256="b46875b50534a7cd5fcfb5a7c971bb93fe68948c43ca53e9833bd1e1a69221bd",
        sources="inflect",
        tests="tests",
        cases=120,
    ),
    Package(
        name="jinja2",
        version="3.1.6",
        sha256="0137fb05990d35f1275a587e9aee6d56da821fc83491a0fb838183be43f66d6d",
        sources="src/jinja2",
        tests="tests",
        import_path="src",
        cases=130,
    ),
    Package(
        name="cachetools",
        version="8.0.1",
        sha256="deb1d376d4d28c2f33f3e3058043b005e0af75c35c094bd54053e27d2906ad95",
        sources="src/cachetools",
        tests="tests",
        import_path="src",
        cases=110,
    ),
    Package(
        name="markdown-it-py",
        version="4.3.0",
        sha256="91a58fa5b72c71a40cf7177250fd767480d7a2bb3ac426ccfb76fb90305fdaaa",
        sources="markdown_it",
        tests="tests",
        cases=120,
    ),
    Package(
        name="funcy",
        version="2.1",
        sha256="8979feb3de7120afd1d00e5a8eae810c1942e4bfbc91697151e9ee1e49f79284",
        sources="funcy",
        tests="tests",
        cases=110,
    ),
    Package(
        name="tabulate",
        version="0.10.0",
        sha256="e2cfde8f79420f6deeffdeda9aaec3b6bc5abce947655d17ac662b126e48a60d",
        sources="tabulate",
        tests="test",
        cases=80,
    ),
    Package(
        name="python-slugify",
        version="9.2.0",
        sha256="cee32948083476013804de1667724fb1362dacb71e47b1d5d92adf8db6ee3298",
        sources="slugify",
        tests="tests",
        cases=70,
    ),
    Package(
        name="markupsafe",
        version="3.0.4",
        sha256="2e9ad7dd851bf45fab9f75cbff4cb493fee9979e8d8c7c9c3ee119022518edd6",
        sources="src/markupsafe",
        tests="tests",
        import_path="src",
        cases=60,
    ),
    Package(
        name="boltons",
        version="26.2.0",
        sha256="d39cfd15c1a1c3bd4d705c82252fa9edb8e4f5e8cc039f8e39afac7b1b47e92c",
        sources="boltons",
        tests="tests",
        cases=60,
    ),
    Package(
        name="humanize",
        version="4.17.0",
        sha256="1d6a36c453dbfbb3f0b34601d2e0b4ce5d48d780305cd45714843f0068fde6ac",
        sources="src/humanize",
        tests="tests",
        import_path="src",
        cases=60,
    ),
    Package(
        name="isodate",
        version="0.7.2",
        sha256="4cd1aa0f43ca76f4a6c6c0292a85f40b35ec2e43e315b59f06e6d32171a953e6",
        sources="src/isodate",
        tests="tests",
        import_path="src",
        cases=60,
    ),
)
"""The pinned packages, in the order in which their cases are built."""


CHECKOUT = Path(__file__).parents[3]

COMMITTED_AT = 1_700_000_000
"""Modification time of the files of an unchanged project, in seconds, which compiled files refer to."""

GENERATED = "plan.json\n.planverify/\n.planverify-recorded.jsonl\n__pycache__/\n.pytest_cache/\n"
"""Files that runs leave behind, for the repository's ``.git/info/exclude``."""


class FetchError(Exception):
    """A package is not available as pinned; the message says which and why."""


def interpreter(work: Path) -> Path:
    """Return the Python of a virtual environment with this plugin and the dependencies of the suites."""
    python = work / "venv" / "bin" / "python"
    ready = work / "venv" / "ready"
    if not ready.exists():
        venv.create(work / "venv", with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "--quiet", str(CHECKOUT), *DEPENDENCIES], work)
        ready.write_text("", encoding="utf-8")
    return python


def repository(package: Package, work: Path) -> Path:
    """Return a git repository of the published package with one commit; it is created if missing."""
    project = work / "projects" / package.name
    if not (project / ".git").is_dir():
        shutil.rmtree(project, ignore_errors=True)
        shutil.move(unpacked(package, work), project)
        commit(project)
    return project


def restore(project: Path) -> None:
    """Undo every change since the commit; compiled files stay, since they are still valid."""
    _run(["git", "reset", "-q", "--hard"], project)
    _run(["git", "clean", "-q", "-f", "-d", "-x", "--exclude=__pycache__"], project)
    for file in sorted(project.rglob("*.py")):
        if file.stat().st_mtime != COMMITTED_AT:
            os.utime(file, (COMMITTED_AT, COMMITTED_AT))


def compile_all(package: Package, project: Path, python: Path) -> None:
    """Let pytest write the compiled files of product and tests once, which makes every later run faster."""
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(project / package.import_path)}
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", package.tests]
    subprocess.run(command, cwd=project, env=variables, capture_output=True, check=False)


def unpacked(package: Package, work: Path) -> Path:
    """Return the folder of the pinned source distribution, which is downloaded if missing."""
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
    """Create a repository in a folder, with all its files in one commit."""
    _run(["git", "init", "-q"], project)
    (project / ".git" / "info" / "exclude").write_text(GENERATED, encoding="utf-8")
    _run(["git", "add", "--all", "--force"], project)
    author = ["-c", "user.name=corpus", "-c", "user.email=corpus@example.org"]
    _run(["git", *author, "commit", "-q", "--message", "As published"], project)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FetchError(f"{' '.join(command[:6])} …: exit {done.returncode}: {done.stderr.strip()[-400:]}")
