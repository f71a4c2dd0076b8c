"""Facts that the parent adds to a failure: installed packages, nearby modules, promised signatures."""

from __future__ import annotations

import ast
import configparser
import contextlib
import difflib
import os
import platform
import re
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from planner.model.evidence import RequirementFact
from planner.planfile.project_files import LARGEST_READ, read_regular
from planner.text.python_text import callee_of, parse_module
from planner.text.sanitizing import clean
from pytest_planverify.baseline.repository import ask
from pytest_planverify.diagnosis.tool_output import CANNOT_IMPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.evidence import Evidence, ExceptionFact

_MOST_UNMET = 200
"""Limit of unmet requirements in evidence; a compiled requirements file may list more than a hundred."""
_NOT_FOUND, _NAME_NOT_FOUND = "builtins.ModuleNotFoundError", "builtins.ImportError"
_REQUIREMENT_FILES = ("requirements*.txt", "requirements/*.txt", "*requirements.txt")
_SETUP_ARGUMENTS = ("install_requires", "tests_require", "extras_require")
NATIVE_SOURCES = (".pyx", ".c", ".cpp", ".cc", ".rs", ".pxd", ".h", ".hpp")
"""Suffixes of sources and headers from which a build makes an extension module."""
NATIVE_MODULES = (".so", ".pyd")


def with_installation(evidence: Evidence, root: Path, granted: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence with unmet requirements of the project and modules similar to a missing one.

    ``granted`` are the globs that todos may write, among which a missing module may be planned. A module
    that the last commit deleted counts as such, as no change since then shows it.
    """
    if not evidence.exceptions:
        return evidence
    chain = tuple(_with_nearest(each, evidence, root) for each in evidence.exceptions)
    update: dict[str, object] = {"exceptions": chain, "unmet": unmet_requirements(root)}
    if any(each.qualified in (_NOT_FOUND, _NAME_NOT_FOUND) for each in chain):
        update["granted"] = (*granted, *_deleted(root, chain))
    return evidence.model_copy(update=update)


def _deleted(root: Path, chain: tuple[ExceptionFact, ...]) -> Iterator[str]:
    """Yield the files of missing modules that the last commit deleted."""
    modules = [each.name.replace(".", "/") for each in chain if each.qualified == _NOT_FOUND and each.name]
    ends = tuple(f"/{module}{end}" for module in modules for end in (".py", "/__init__.py"))
    for path in _deleted_by_commit(root) if ends else ():
        if f"/{path}".endswith(ends):
            yield path


@cache
def _deleted_by_commit(root: Path) -> tuple[str, ...]:
    """Return the files below the root that the last commit deleted."""
    words = ("diff", "-z", "--relative", "--name-only", "--no-renames", "--diff-filter=D", "HEAD~1", "HEAD")
    return tuple(os.fsdecode(ask(root, *words) or b"").split("\0"))


@cache
def unmet_requirements(root: Path) -> tuple[RequirementFact, ...]:
    """Return the requirements in the project's metadata that are not installed as declared.

    Extras and dependency groups count: a missing test dependency breaks tests as any other.
    """
    found: dict[str, RequirementFact] = {}
    for file, text in _declared_requirements(root):
        try:
            asked = Requirement(text)
            # Without an extra, markers that name one apply to nobody here.
            if asked.marker is not None and not asked.marker.evaluate({"extra": ""}):
                continue
        except (InvalidRequirement, ValueError, KeyError):  # another tool's syntax: ignored
            continue
        fact = _unmet(asked, file)
        if fact is not None:
            found.setdefault(fact.name, fact)
    return tuple(found.values())[:_MOST_UNMET]


def _unmet(asked: Requirement, file: str) -> RequirementFact | None:
    fact = RequirementFact(name=canonicalize_name(asked.name), asked=str(asked.specifier), file=file)
    if asked.name == "python":
        version = platform.python_version()
        is_met = asked.specifier.contains(version, prereleases=True)
        return None if is_met else fact.model_copy(update={"installed": version})
    # The parent has moved PYTHONPATH to the end of its path; the commands have it first.
    path = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *sys.path]
    try:
        distribution = next(iter(metadata.distributions(name=asked.name, path=path)), None)
        # An interrupted removal leaves a folder without metadata.
        if distribution is None or "Version" not in distribution.metadata or not distribution.version:
            return fact
        # What is installed counts, also a pre-release that pip would not have chosen by itself.
        if asked.specifier.contains(Version(distribution.version), prereleases=True):
            return None
    except OSError:
        return fact
    except InvalidVersion:  # distributors number differently, as in "1.1build1"
        return None
    modules = {
        str(path).partition("/")[0].removesuffix(".py")
        for path in distribution.files or ()
        if str(path).endswith(".py") and not str(path).startswith(("..", "tests/"))
    }
    modules = modules or {fact.name.replace("-", "_")}
    return fact.model_copy(update={"installed": distribution.version, "modules": tuple(sorted(modules))})


def _declared_requirements(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each requirement with the file that declares it."""
    try:
        plain = tomllib.loads(_text_of(root / "pyproject.toml"))
    except (OSError, ValueError, RecursionError):
        plain = {}
    for text in _pyproject_requirements(plain):
        yield "pyproject.toml", text
    setup = configparser.ConfigParser(interpolation=None, strict=False)
    for name in ("setup.cfg", "tox.ini"):
        with contextlib.suppress(OSError, ValueError, configparser.Error):
            setup.read_string(_text_of(root / name))
    options = dict(setup["options"]) if "options" in setup else {}
    extras = dict(setup["options.extras_require"]) if "options.extras_require" in setup else {}
    yield "setup.cfg", f"python{options.get('python_requires', '')}"
    for lines in (options.get("install_requires"), options.get("tests_require"), *extras.values()):
        for line in (lines or "").splitlines():
            yield "setup.cfg", line.strip()
    # Requirements of single environments begin with a factor, as in "py311: name"; they are alternatives.
    for line in setup.get("testenv", "deps", fallback="").splitlines():
        yield "tox.ini", line.strip()
    with contextlib.suppress(OSError):
        for text in _setup_requirements(parse_module(read_regular(root / "setup.py", LARGEST_READ))):
            yield "setup.py", text
    for file in dict.fromkeys(
        file for pattern in _REQUIREMENT_FILES for file in sorted(root.glob(pattern))
    ):
        try:
            lines = _text_of(file).splitlines()
        except (OSError, ValueError):
            continue
        for line in lines:
            # Hashes and a continuation may follow it; options and included files start with a dash.
            text = re.split(r"\s#|\s--hash|\\$", line)[0].strip()
            if text and not text.startswith(("#", "-")):
                yield file.relative_to(root).as_posix(), text


def _text_of(file: Path) -> str:
    return read_regular(file, LARGEST_READ).decode()  # which a pipe does not block


def _pyproject_requirements(plain: dict[str, Any]) -> Iterator[str]:
    """Yield the requirements of a ``pyproject.toml``, also those in the tables of usual build tools."""
    project, tools = _table(plain.get("project")), _table(plain.get("tool"))
    groups = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    groups += _table(plain.get("dependency-groups")).values()
    groups += _table(_table(tools.get("pdm")).get("dev-dependencies")).values()
    groups.append(_table(tools.get("uv")).get("dev-dependencies"))
    if isinstance(version := project.get("requires-python"), str):
        yield f"python{version}"
    for group in groups:
        for text in cast("list[object]", group) if isinstance(group, list) else ():
            if isinstance(text, str):
                yield text
    poetry = _table(tools.get("poetry"))
    tables = [_table(each).get("dependencies") for each in _table(poetry.get("group")).values()]
    for table in (poetry.get("dependencies"), poetry.get("dev-dependencies"), *tables):
        for name, asked in _table(table).items():
            version = asked.get("version", "*") if isinstance(asked, dict) else asked  # pyright: ignore
            if isinstance(version, str):
                # Only the lower bound of "^1.2" and "~1.2" counts: newer releases mostly work.
                yield name + re.sub(r"^[\^~](?!=)|^(?=\d)", ">=", "" if version == "*" else version)


def _setup_requirements(tree: ast.Module) -> Iterator[str]:
    """Yield the literal requirements that a ``setup.py`` passes to ``setup``; it is never executed."""
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def texts(node: ast.expr, depth: int = 4) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        inner = [named[node.id]] if isinstance(node, ast.Name) and node.id in named else []
        inner += node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        for each in inner if depth else ():
            yield from texts(each, depth - 1)

    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _SETUP_ARGUMENTS:
            yield from texts(node.value)


def _table(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _with_nearest(error: ExceptionFact, evidence: Evidence, root: Path) -> ExceptionFact:
    """Return the error of a failed import with similar modules beside the missing one.

    ``from package import module`` names the module in its message only. What a package lacks may be no
    module at all, so only a source that was not built is looked for.
    """
    imported = CANNOT_IMPORT.match(error.message) if error.qualified == _NAME_NOT_FOUND else None
    is_missing = error.qualified == _NOT_FOUND and not error.path
    if not error.name or not (imported or is_missing):
        return error
    package, _, name = (f"{error.name}.{imported['what']}" if imported else error.name).rpartition(".")
    if not package and name in evidence.first_party:
        return error
    beside: list[Path] = []
    for base in ("", "src", "lib"):
        # A test chooses the name: it may be too long, no path at all, or absolute and so not in the root.
        with contextlib.suppress(OSError, ValueError):
            folder = root / base / package.replace(".", "/").lstrip("/")
            beside += sorted(folder.iterdir())[:500]  # a folder of data may have any number of files
    unbuilt = [path for path in beside if path.stem == name and path.suffix in NATIVE_SOURCES]
    built = root / (error.path or "")
    if imported and built.suffix in NATIVE_MODULES and built.is_relative_to(root):
        sources = (built.with_name(error.name.rpartition(".")[2] + suffix) for suffix in NATIVE_SOURCES)
        with contextlib.suppress(OSError, ValueError):
            age = built.stat().st_mtime
            unbuilt += [path for path in sources if path.exists() and path.stat().st_mtime > age]
    if unbuilt:
        return error.model_copy(update={"nearest": (unbuilt[0].relative_to(root).as_posix(),)})
    if not package or imported:
        return error
    modules = sorted({path.name.removesuffix(".py") for path in beside if path.suffix in (".py", "")})
    near = difflib.get_close_matches(name, modules, n=3, cutoff=0.75)
    return error.model_copy(update={"nearest": tuple(near)})


# -- signatures --------------------------------------------------------------------------------------

MAX_SIGNATURE = 500


def with_promise(evidence: Evidence, root: Path) -> Evidence:
    """Return the evidence of a failed call with the signature that the todo's contract promises.

    With it comes the signature in the product's source, which is read, never executed, unless the source
    is inconclusive. Other evidence is returned unchanged.
    """
    # Only the first exception is examined, and only if it reports arguments that do not fit.
    first = evidence.exceptions[0] if evidence.exceptions else None
    is_call = first is not None and first.qualified == "builtins.TypeError"
    callee = callee_of(first.message) if first is not None and is_call else None
    if callee is None or evidence.contract_path is None:
        return evidence
    # Imported late: only such a failure needs contracts.
    from planner.contracts.comparison import compare_contract, read_contract_file, render_signature
    from planner.errors import ContractFileError

    try:
        contract = read_contract_file(Path(evidence.contract_path), root=root)
        differences = compare_contract(contract, root)
    except (ContractFileError, OSError):
        return evidence  # reported by the criterion that compares the contract
    functions = {each.name: each for each in contract.functions}
    functions |= {f"{each.name}.{one.name}": one for each in contract.classes for one in each.methods}
    if callee not in functions:
        return evidence
    wanted, module = functions[callee], contract.module.replace(".", "/")
    promised, actual = clean(f"{callee}{render_signature(wanted)}", limit=MAX_SIGNATURE), None
    paths = (each.path.removeprefix("src/") for each in evidence.subjects)
    # Else the test called a function of the same name in another module.
    if any(path.startswith((f"{module}.py", f"{module}/")) for path in paths):
        # A difference that is of no other function may be of the whole module, and so of this one.
        found = [each for each in differences if each.name not in functions.keys() - {callee}]
        actual = next((each.actual for each in found if each.name == callee), None)
        # A contract that leaves the parameters open is kept by any.
        actual = promised if not found and wanted.parameters is not None else actual
    return evidence.model_copy(update={"promised": promised, "actual_signature": actual})
