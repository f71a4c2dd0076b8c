"""Recognition of test files by their paths alone."""

from __future__ import annotations

import re
from functools import lru_cache

_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs"})
_NAME = re.compile(r"conftest\.py|tests?\.\w+|test_.*|.*_tests?\.\w+|.*[.-](?:test|spec)\.\w+")
_MODULE = re.compile(r"test_.*\.py|.*_test\.py")


@lru_cache(maxsize=4096)
def is_test_path(path: str) -> bool:
    """Return whether a path belongs to a test, or to a file that only tests use, in any language.

    All files below a folder of tests do.
    """
    *folders, name = path.replace("\\", "/").split("/")
    return _NAME.fullmatch(name) is not None or not _FOLDERS.isdisjoint(folders)


def is_test_module(path: str) -> bool:
    """Return whether pytest collects a file of this name by default."""
    return _MODULE.fullmatch(path.rpartition("/")[2]) is not None
