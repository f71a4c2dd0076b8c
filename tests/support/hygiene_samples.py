"""Small trees before and after a change, for the tests of the hygiene detectors."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from pytest_planverify.baseline.work_tree import Judges
from pytest_planverify.guards.hygiene.compare import compare
from pytest_planverify.guards.hygiene.grants import Grants, TodoReach

PRODUCT = """
    def split(text, sign=","):
        return [part.strip() for part in text.split(sign)]
"""
TESTS = """
    import pytest
    from pkg.words import split

    @pytest.mark.parametrize(
        ("text", "parts"),
        [("a, b", ["a", "b"]), ("", [""]), ("x,y,z", ["x", "y", "z"])],
    )
    def test_split(text, parts):
        assert split(text) == parts

    def test_sign():
        parts = split("one;two", sign=";")
        assert parts == ["one", "two"]
        assert len(parts) == 2

    def test_no_text():
        with pytest.raises(AttributeError, match="NoneType"):
            split(None)

    def test_near():
        assert 0.1 + 0.2 == pytest.approx(0.3, abs=1e-9)

    @pytest.mark.parametrize(
        ("total", "code", "wanted"), [(100, "SPRING", 90.5), (80.4, "VIP", 60.3), (7, "NO", 7.5)]
    )
    def test_rate(total, code, wanted):
        assert rate(total, code) == wanted

    def test_mean():
        assert mean([1.25, 2.5, 8.625]) == 4.125
"""
CONFTEST = """
    import pytest
    from pkg.words import split

    @pytest.fixture
    def words():
        return split("a,b")
"""
TREE = {
    "pkg/__init__.py": "",
    "pkg/words.py": PRODUCT,
    "tests/conftest.py": CONFTEST,
    "tests/test_words.py": TESTS,
    "tests/data/words.json": '[{"text": "Hello, World", "count": 2}]',
    "pyproject.toml": '[project]\nname = "pkg"\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
    'addopts = "-ra"\n',
}
_SNIPPETS = Path(__file__).parents[2] / "fixtures/hygiene/snippets.yaml"
SNIPPETS: dict[str, dict[str, Any]] = yaml.safe_load(_SNIPPETS.read_text(encoding="utf-8"))
"""Code that a change adds, by what it shows."""
FORBIDDEN = Grants(
    todos=(
        TodoReach(
            todo_id="work",
            allowed_files=("pkg/**",),
            selections=("tests/test_words.py",),
            data=("tests/data/words.json",),
        ),
    )
)
OPEN = Grants(todos=(TodoReach(todo_id="work", selections=("tests",)),))
GRANTED = Grants(todos=(TodoReach(todo_id="work", allowed_files=("**",), selections=("tests",)),))


class HeldFiles:
    """A snapshot in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)

    def digests(self) -> Mapping[str, str]:
        return {path: sha256(content).hexdigest() for path, content in self._files.items()}

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)


def held(files: dict[str, str]) -> HeldFiles:
    return HeldFiles({path: textwrap.dedent(text).encode() for path, text in files.items()})


def signals(
    change: Mapping[str, str | None],
    *,
    grants: Grants = FORBIDDEN,
    tree: dict[str, str] | None = None,
    kinds: Mapping[str, JudgeKind] | None = None,
    is_red: Callable[[str], bool] | None = None,
) -> tuple[HygieneSignal, ...]:
    """Return the signals of a change of the tree; ``None`` removes a file."""
    before = TREE if tree is None else tree
    now = {path: text for path, text in {**before, **change}.items() if text is not None}
    judges = Judges(
        data=frozenset({"tests/data/words.json"}),
        plans=frozenset(grants.plans),
        contracts=frozenset(each.contract for each in grants.todos if each.contract),
    )
    kinds = {path: judges.kind_of(path) for path in before} | dict(kinds or {})
    return compare(held(before), held(now), kinds=kinds, grants=grants, is_red=is_red)


def signs(change: Mapping[str, str | None], **keys: object) -> set[str]:
    return {signal.sign for signal in signals(change, **keys)}  # type: ignore[arg-type]


def with_tests(old: str, new: str) -> dict[str, str]:
    """Return a change of the tests that replaces a part of their text."""
    text = textwrap.dedent(TESTS)
    assert old in text
    return {"tests/test_words.py": text.replace(old, new)}


def product_with(added: str) -> dict[str, str]:
    """Return a change of the product that adds code."""
    return {"pkg/words.py": textwrap.dedent(PRODUCT) + "\n\n" + textwrap.dedent(added)}
