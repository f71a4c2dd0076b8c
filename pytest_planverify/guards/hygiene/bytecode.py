"""Caches of bytecode that were written since the baseline, held against the sources they stand for.

Python and pytest run a cached file instead of its source; one that is forged leaves the source untouched.
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import os
import posixpath
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

from pytest_planverify.guards.hygiene.signals import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import CodeType

BUDGET_SECONDS = 1.0
"""So long caches are compared; the tests come first."""
_HEADER = 16
_UNCHECKED, _BY_HASH = b"\x01\0\0\0", b"\x03\0\0\0"
_OF_PYTEST = "-pytest-"


class Cache(NamedTuple):
    """A cached file and its source, relative to the root."""

    path: str
    source: str


def forged(root: Path, sources: Iterable[str], since: float) -> tuple[list[Finding], int]:
    """What is found in caches that are younger than the baseline, and how many were not looked at."""
    caches = sorted(young_caches(root, sources, since), key=lambda cache: _OF_PYTEST not in cache.path)
    if not caches or not hasattr(os, "fork"):
        return [], 0
    told = _compared_apart(root, caches)
    finds = [
        Finding(
            sign="forged-bytecode",
            message=f"{path} is not what {source} says",
            path=path,
        )
        for path, source, weight in told
        if weight == "hard"
    ]
    return finds, len(caches) - len(told)


def young_caches(root: Path, sources: Iterable[str], since: float) -> Iterator[Cache]:
    """The caches that Python or pytest would take for the source, and that were written after a moment."""
    folders: dict[str, dict[str, str]] = {}
    for source in sources:
        if source.endswith(".py") and not source.startswith(("../", "/")):
            folder, name = posixpath.split(source)
            folders.setdefault(folder, {})[name.removesuffix(".py")] = source
    endings = _endings()
    for folder, names in folders.items():
        with suppress(OSError), os.scandir(root / folder / "__pycache__") as entries:
            for entry in entries:
                stem = next(
                    (entry.name.removesuffix(end) for end in endings if entry.name.endswith(end)), ""
                )
                if stem not in names:
                    continue
                # Its times can be set to anything but the one of the last change of the entry itself.
                if entry.stat().st_ctime >= since:
                    yield Cache(posixpath.join(folder, "__pycache__", entry.name), names[stem])


def _endings() -> tuple[str, ...]:
    """Of what Python and this pytest take: others, such as typeguard, keep caches of their own beside."""
    import pytest

    tag = f".{sys.implementation.cache_tag}"
    return (
        f"{tag}.pyc",
        f"{tag}.opt-1.pyc",
        f"{tag}.opt-2.pyc",
        f"{tag}{_OF_PYTEST}{pytest.__version__}.pyc",
    )


def weight_of(root: Path, cache: Cache) -> str:
    """``same`` where the cache is of no use or right, ``hard`` where it says something else, ``soft`` where
    only its code differs, as that of another release of Python may."""
    source, data = (root / cache.source).read_bytes(), (root / cache.path).read_bytes()
    if not _is_taken(data, root / cache.source, source):
        return "same"
    try:
        held = marshal.loads(data[_HEADER:])
        expected = list(_compiled(cache, source, str(root / cache.source)))
    except (SyntaxError, ValueError, EOFError, TypeError):
        return "same"
    if not hasattr(held, "co_code") or any(held == code for code in expected):
        return "same"
    told = _telling(cast("CodeType", held))
    return "soft" if any(told == _telling(code) for code in expected) else "hard"


def _is_taken(data: bytes, path: Path, source: bytes) -> bool:
    """Whether whoever reads the cache believes that it is up to date."""
    if len(data) < _HEADER or data[:4] != importlib.util.MAGIC_NUMBER:
        return False
    if data[4:8] == _UNCHECKED:
        return True
    if data[4:8] == _BY_HASH:
        return data[8:16] == importlib.util.source_hash(source)
    stamp, size = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
    return stamp == int(path.stat().st_mtime) & 0xFFFFFFFF and size == len(source) & 0xFFFFFFFF


def _compiled(cache: Cache, source: bytes, path: str) -> Iterator[CodeType]:
    if _OF_PYTEST in cache.path:
        yield from _rewritten(source, path)
        return
    level = 2 if ".opt-2." in cache.path else 1 if ".opt-1." in cache.path else 0
    yield compile(source, path, "exec", dont_inherit=True, optimize=level)


def _rewritten(source: bytes, path: str) -> Iterator[CodeType]:
    """As pytest rewrites it, with and without its hook for assertions that hold."""
    import ast

    from _pytest.assertion.rewrite import rewrite_asserts

    class Asked:
        def getini(self, _name: str) -> bool:
            return True

    for config in (None, Asked()):
        tree = ast.parse(source, filename=path)
        rewrite_asserts(tree, source, path, config)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        yield compile(tree, path, "exec", dont_inherit=True)


def _telling(code: CodeType) -> tuple[object, ...]:
    """What a piece of code names and holds, the functions within included."""
    inner = tuple(
        _telling(cast("CodeType", each)) if hasattr(each, "co_code") else repr(each)
        for each in code.co_consts
    )
    return code.co_name, code.co_names, code.co_varnames, inner


def _compared_apart(root: Path, caches: list[Cache]) -> list[tuple[str, str, str]]:
    """In a process of its own: what is read may be made to break whoever reads it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _tell(root, caches, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    told = [cast("tuple[str, str, str]", tuple(json.loads(line))) for line in lines if line.endswith(b"]")]
    if os.WIFSIGNALED(status) and len(told) < len(caches):
        broken = caches[len(told)]
        told.append((broken.path, broken.source, "hard"))
    return told


def _tell(root: Path, caches: list[Cache], writing: int) -> None:
    until = time.monotonic() + BUDGET_SECONDS
    for cache in caches:
        if time.monotonic() > until:
            return
        weight = "same"
        with suppress(OSError, RecursionError, MemoryError):
            weight = weight_of(root, cache)
        os.write(writing, json.dumps([*cache, weight]).encode() + b"\n")
