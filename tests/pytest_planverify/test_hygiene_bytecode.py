"""What is run without standing in any source: forged caches of bytecode, packages that git ignores."""

from __future__ import annotations

import importlib.util
import json
import marshal
import os
import py_compile
import sys
import time
from pathlib import Path

import pytest

from pytest_planverify.guards.hygiene import bytecode
from pytest_planverify.guards.hygiene.bytecode import Cache, forged, weight_of, young_caches
from pytest_planverify.guards.hygiene.files import ignored_packages

TAG = sys.implementation.cache_tag
OF_PYTEST = f"{TAG}-pytest-{pytest.__version__}"
SOURCE = "def test_a():\n    assert len('ab') == 3, 'three'\n"
OTHER = "def test_a():\n    assert True\n"


def put(root: Path, tag: str, code: str, header: bytes, source: str = SOURCE) -> Cache:
    """A source, and a cache of other code that says that it belongs to it."""
    path = root / "test_a.py"
    path.write_text(source, encoding="utf-8")
    cache = root / "__pycache__" / f"test_a.{tag}.pyc"
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(
        importlib.util.MAGIC_NUMBER + header + marshal.dumps(compile(code, str(path), "exec"))
    )
    return Cache(f"__pycache__/{cache.name}", "test_a.py")


def by_time(root: Path, source: str = SOURCE) -> bytes:
    (root / "test_a.py").write_text(source, encoding="utf-8")
    facts = (root / "test_a.py").stat()
    return b"\0\0\0\0" + int(facts.st_mtime).to_bytes(4, "little") + facts.st_size.to_bytes(4, "little")


def by_hash(source: str = SOURCE) -> bytes:
    return b"\x03\0\0\0" + importlib.util.source_hash(source.encode())


def test_a_cache_of_other_code_is_found(tmp_path: Path) -> None:
    header = by_time(tmp_path)
    unchecked = b"\x01\0\0\0" + b"\0" * 8
    for tag, head in ((TAG, header), (TAG, by_hash()), (TAG, unchecked), (OF_PYTEST, by_hash())):
        cache = put(tmp_path, tag, OTHER, head)
        os.utime(tmp_path / "test_a.py", (time.time(), int.from_bytes(header[4:8], "little")))
        assert weight_of(tmp_path, cache) == "hard", (tag, head)
        found, left = forged(tmp_path, ["test_a.py"], 0.0)
        assert [(each.sign, each.path) for each in found] == [("forged-bytecode", cache.path)]
        assert left == 0
        (tmp_path / cache.path).unlink()


def test_caches_that_python_and_pytest_write_are_let_be(tmp_path: Path) -> None:
    path = tmp_path / "test_a.py"
    path.write_text(SOURCE, encoding="utf-8")
    for level in (0, 1, 2):
        py_compile.compile(str(path), optimize=level, doraise=True)
    cache = put(tmp_path, OF_PYTEST, OTHER, by_hash())
    for code in bytecode._compiled(cache, SOURCE.encode(), str(path)):  # pyright: ignore[reportPrivateUsage]
        (tmp_path / cache.path).write_bytes(importlib.util.MAGIC_NUMBER + by_hash() + marshal.dumps(code))
        assert weight_of(tmp_path, cache) == "same"
    assert len(list(young_caches(tmp_path, ["test_a.py"], 0.0))) == 4
    assert forged(tmp_path, ["test_a.py"], 0.0) == ([], 0)
    for other in (f"{TAG}.opt-typeguard", f"{TAG}-pytest-1.2.3", f"{TAG}.opt-1.beartype"):
        put(tmp_path, other, OTHER, by_hash())
    assert forged(tmp_path, ["test_a.py"], 0.0) == ([], 0), "nobody takes them for the source"


def test_a_cache_that_nobody_would_take_is_let_be(tmp_path: Path) -> None:
    stale = put(tmp_path, TAG, OTHER, b"\0" * 12)
    assert weight_of(tmp_path, stale) == "same"
    for data in (b"", b"\0" * 40, importlib.util.MAGIC_NUMBER + by_hash() + b"no code"):
        (tmp_path / stale.path).write_bytes(data)
        assert weight_of(tmp_path, stale) == "same"
    broken = put(tmp_path, TAG, OTHER, by_hash("def ("), "def (")
    assert weight_of(tmp_path, broken) == "same"


def test_code_that_only_differs_in_its_instructions_may_be_of_another_release(tmp_path: Path) -> None:
    source, other = "def f(a, b):\n    return a < b\n", "def f(a, b):\n    return a > b\n"
    cache = put(tmp_path, TAG, other, by_hash(source), source)
    assert weight_of(tmp_path, cache) == "soft"
    assert forged(tmp_path, ["test_a.py"], 0.0) == ([], 0)


def test_caches_of_before_the_baseline_are_not_read(tmp_path: Path) -> None:
    put(tmp_path, TAG, OTHER, by_hash())
    assert list(young_caches(tmp_path, ["test_a.py", "../b.py", "c.txt"], time.time() + 60)) == []
    assert forged(tmp_path, ["test_a.py"], time.time() + 60) == ([], 0)


def test_a_cache_that_breaks_its_reader_is_a_forged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, TAG, OTHER, by_hash())
    monkeypatch.setattr(bytecode, "weight_of", lambda *_: os.abort())
    found, left = forged(tmp_path, ["test_a.py"], 0.0)
    assert [each.sign for each in found] == ["forged-bytecode"]
    assert left == 0


def test_caches_are_compared_for_so_long_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = put(tmp_path, TAG, OTHER, by_hash())
    monkeypatch.setattr(bytecode, "BUDGET_SECONDS", -1.0)
    assert forged(tmp_path, ["test_a.py"], 0.0) == ([], 1)
    monkeypatch.undo()
    reading, writing = os.pipe()
    bytecode._tell(tmp_path, [cache, Cache("gone.pyc", "gone.py")], writing)  # pyright: ignore[reportPrivateUsage]
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = [json.loads(line)[2] for line in pipe]
    assert told == ["hard", "same"]


def test_a_package_that_git_ignores_hides_no_module(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "words").mkdir(parents=True)
    (tmp_path / "pkg" / "words" / "__init__.py").touch()
    known = ["pkg/__init__.py", "pkg/words.py", "pkg/other.py", "../up.py", "a.txt"]
    assert [each.path for each in ignored_packages(tmp_path, known)] == ["pkg/words/__init__.py"]
    assert list(ignored_packages(tmp_path, [*known, "pkg/words/__init__.py"])) == []
