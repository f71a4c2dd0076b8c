"""The wheel and the sdist are complete and work outside the working tree; packages keep their contracts."""

from __future__ import annotations

import ast
import email
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from text_bundles import unpack_bundle

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("planner", "pytest_planverify")
EXAMPLE = REPOSITORY / "fixtures" / "projects" / "phases.txt"
"""A plan that passes with only the wheel and its requirements installed."""

CONFIGURATION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build("sdist", REPOSITORY, folder)
    (sdist,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder)
    build("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)
    return folder


def build(kind: str, root: Path, folder: Path) -> None:
    """Build a distribution of the sources below ``root``, as `python -m build` does, into the folder."""
    run(sys.executable, "-c", f"from hatchling import build; build.build_{kind}({str(folder)!r})", cwd=root)


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (path,) = distributions.glob("*.whl")
    return path


def run(*argv: str, cwd: Path) -> str:
    """Run a command without this process's test settings, which has to succeed; return its output."""
    unwanted = ("PYTEST_", "PYTHONPATH", "COVERAGE_", "CI")
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith(unwanted)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}"
    return done.stdout


def test_the_wheel_contains_exactly_both_packages(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {name for name in names if ".dist-info/" not in name}

    assert shipped == {
        path.relative_to(REPOSITORY).as_posix()
        for package in PACKAGES
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped


def test_the_wheel_registers_the_plugin_and_has_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        fields = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        licenses = [name for name in archive.namelist() if name.startswith(f"{info}/licenses/")]

    assert "[pytest11]\nplanverify = pytest_planverify.plugin" in entry_points
    assert fields["Name"] == "pytest-planverify"
    assert fields["License-Expression"] == "MIT"
    assert fields["Requires-Python"] == ">=3.11"
    assert "pandas>=2.2; extra == 'examples'" in fields.get_all("Requires-Dist", [])
    assert {"Framework :: Pytest", "Typing :: Typed"} <= set(fields.get_all("Classifier", []))
    assert fields.get_payload().startswith("# pytest-planverify")
    assert licenses == [f"{info}/licenses/LICENSE"]


def test_the_sdist_contains_everything_that_its_tests_need(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "tox.ini",
        ".ci/run",
        "docs/plan-reference.md",
        "examples/momentum/plan.yaml",
        "tests/acceptance/test_packaging.py",
    } <= names
    assert not [name for name in names if "__pycache__" in name or ".planverify/" in name]


def test_the_installed_wheel_verifies_an_example_in_another_folder(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "another folder"
    environment = folder / "venv"
    venv.create(environment, symlinks=True)
    python = str(environment / "bin" / "python")
    (site,) = environment.glob("lib/python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")  # pip would do the same, but for the scripts
    (installed,) = metadata.distributions(name="pytest-planverify", path=[str(site)])
    link_requirements(installed, site)
    unpack_bundle(EXAMPLE, folder / "editor")

    code = (
        "import planner, pytest_planverify\n"
        "from planner.planfile.schemas import names, schema\n"
        "assert all(map(schema, names()))\n"
        "print(planner.__file__, pytest_planverify.__file__)"
    )
    assert run(python, "-c", code, cwd=folder).count(str(environment)) == 2
    run(python, "-m", "pytest", "--planverify", "editor/plan.yaml", cwd=folder)

    assert (folder / "editor" / ".planverify" / "outcomes.json").is_file()


def link_requirements(distribution: metadata.Distribution, site: Path) -> None:
    """Link what a distribution requires, directly or not, and nothing else, from this environment."""
    for each in map(Requirement, distribution.requires or ()):
        if each.marker is not None and not each.marker.evaluate({"extra": ""}):
            continue
        required = metadata.distribution(each.name)
        for name in {file.parts[0] for file in required.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(str(required.locate_file(name)))
        link_requirements(required, site)


# -- package structure -------------------------------------------------------------------------------


CONTRACTS = {entry["id"]: entry for entry in CONFIGURATION["tool"]["importlinter"]["contracts"]}


def rooms(package: str) -> set[str]:
    """Return the qualified names of the modules directly in that package."""
    return {
        f"{package}.{path.stem}"
        for path in (REPOSITORY / package).iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }


PURE = ("brief", "catalog", "engine", "lint", "memory", "model", "policy", "revise", "text")


def test_the_contract_of_pure_packages_lists_every_pure_package() -> None:
    assert sorted(CONTRACTS["pure-rooms"]["source_modules"]) == [f"planner.{name}" for name in PURE]


IMPURE_NAMES = {"open", "print", "input", "breakpoint", "eval", "exec", "__import__", "environ"}
IMPURE_NAMES |= {"Path", "PosixPath"}


def test_pure_packages_use_no_names_that_read_or_write() -> None:
    planner = REPOSITORY / "planner"
    modules = [
        path for name in PURE for path in (*planner.glob(f"{name}.py"), *planner.glob(f"{name}/**/*.py"))
    ]
    named = {
        f"{path.relative_to(planner)}:{node.lineno} {name}"
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _names(node)
    }

    assert {path.relative_to(planner).parts[0].removesuffix(".py") for path in modules} == {*PURE}
    assert not [entry for entry in named if entry.split()[-1] in IMPURE_NAMES]


def _names(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [name]
        case ast.ImportFrom(names=aliases):
            return [alias.name for alias in aliases]
        case _:
            return []


def test_the_model_may_import_no_other_package_of_planner() -> None:
    forbidden = set(CONTRACTS["model-stands-alone"]["forbidden_modules"])

    assert forbidden == rooms("planner") - {"planner.model"}


def test_no_module_has_a_generic_name() -> None:
    unwanted = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "core"}

    assert not {path.stem for package in PACKAGES for path in (REPOSITORY / package).rglob("*")} & unwanted
