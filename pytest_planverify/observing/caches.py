"""What a project calls a cache, by its type or by its name, and may be made to hold nothing again."""

from __future__ import annotations

import functools
import re
from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from pytest_planverify.observing.value_readers import class_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STORES = frozenset({dict, OrderedDict, defaultdict, Counter, list, set, deque})
_SAYS_CACHE = re.compile(r"cache|memo(?!ry)", re.IGNORECASE)
_OF_FUNCTION = functools._lru_cache_wrapper

_clear: Callable[[Any], None] = class_members(_OF_FUNCTION)["cache_clear"]
_info: Callable[[Any], Any] = class_members(_OF_FUNCTION)["cache_info"]


def called_caches(named: Iterable[tuple[Any, Any]]) -> list[Any]:
    """The containers among these values whose name calls them a cache."""
    return [value for name, value in named if is_store(value) and says_cache(str(name))]


def is_store(value: object) -> bool:
    """Whether it is a container of Python itself."""
    kind = type(value)
    return type(kind) is type and kind in _STORES  # a metaclass of its own may not even be hashed


def says_cache(name: str) -> bool:
    """Whether what bears the name is called a cache."""
    return _SAYS_CACHE.search(name) is not None


def is_unused(cache: Any) -> bool:
    """Whether nobody has put anything into it."""
    if type(cache) is not _OF_FUNCTION:
        return not cache
    info = _info(cache)
    return not info.misses and not info.currsize


def make_empty(cache: Any) -> None:
    """Let it hold nothing again."""
    if type(cache) is _OF_FUNCTION:
        _clear(cache)
    else:
        cache.clear()
