"""By what a repository is known again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from planner.model.plan import Plan
from planner.planfile.project_facts import MANIFESTS, repository_fingerprint
from planner.planfile.project_files import LARGEST_READ


def plan(*commands: str, **fields: Any) -> Plan:
    items = [
        {"id": f"t{number}", "title": "T", "verify": command} | fields
        for number, command in enumerate(commands)
    ]
    return Plan.model_validate({"todo_list_id": "p", "items": items})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n')
    return tmp_path


def test_a_copy_of_the_project_is_known_again(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    copy = tmp_path_factory.mktemp("copy")
    (copy / "pyproject.toml").write_bytes(b'[project]\r\nname = "a"\r\n')
    (copy / "main.py").write_text("work goes on")

    first = repository_fingerprint(root, plan("pytest tests/test_a.py"))

    assert first == repository_fingerprint(
        copy, plan("python -m pytest -q", "pytest a.py::b", "ruff check .")
    )
    assert len(first.removeprefix("sha256:")) == 64


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_manifest_counts(root: Path, name: str) -> None:
    before = repository_fingerprint(root, plan("pytest"))
    (root / name).write_text("another")
    after = repository_fingerprint(root, plan("pytest"))
    (root / name).write_text("another still")

    assert len({before, after, repository_fingerprint(root, plan("pytest"))}) == 3


def test_the_same_words_in_another_manifest_are_another_repository(tmp_path: Path) -> None:
    found: set[str] = set()
    for name in MANIFESTS:
        (tmp_path / name).write_text("same")
        found.add(repository_fingerprint(tmp_path, plan()))
        (tmp_path / name).unlink()

    assert len(found) == len(MANIFESTS)


def test_the_tools_that_test_count(root: Path) -> None:
    told = [("pytest",), ("npm test",), ("pytest", "npm test"), ("npm test", "pytest a.py")]
    found = [repository_fingerprint(root, plan(*commands)) for commands in told]

    assert len(set(found[:3])) == 3
    assert found[2] == found[3]
    assert repository_fingerprint(root, plan()) == found[0], "pytest where nothing is said"
    assert repository_fingerprint(root, plan("rm -rf .", "pytest")) == found[0], "what nobody may run"


def test_what_cannot_be_read_counts_as_absent(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = repository_fingerprint(root, plan())
    outside = tmp_path_factory.mktemp("outside") / "setup.py"
    outside.write_text("secret")
    (root / "setup.py").symlink_to(outside)
    (root / "setup.cfg").mkdir()
    os.mkfifo(root / "go.mod")
    (root / "Cargo.toml").symlink_to("Cargo.toml")

    assert repository_fingerprint(root, plan()) == before
    assert repository_fingerprint(root / "nowhere", plan()) != before


def test_of_a_long_manifest_the_beginning_counts(root: Path) -> None:
    found: list[str] = []
    for content in (b"x" * LARGEST_READ, b"x" * LARGEST_READ + b"y", b"x" * LARGEST_READ + b"zz"):
        (root / "package.json").write_bytes(content)
        found.append(repository_fingerprint(root, plan()))

    assert found[0] != found[1] == found[2]
