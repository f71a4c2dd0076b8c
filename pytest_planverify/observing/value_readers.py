"""How the interpreter's own types tell what they hold, without running the code of the project.

Each reader takes a value of its type and returns the parts that can change.
"""

from __future__ import annotations

import _random
import _thread
import contextvars
import functools
import gc
import io
import itertools
import sys
import types
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Reader: TypeAlias = "Callable[[Any], Iterable[Any]]"

NUMBERS: frozenset[type[Any]] = frozenset({int, str, bytes, bool, complex, type(None), type(Ellipsis)})
"""Types whose values compare by content; subclasses of them may compare otherwise."""
_MAPPINGS = (dict, defaultdict, OrderedDict, Counter)

class_members: Callable[[object], Any] = type.__dict__["__dict__"].__get__
module_members: Callable[[object], dict[str, Any]] = class_members(types.ModuleType)["__dict__"].__get__
"""What a namespace holds, past any ``__getattribute__`` by which it would answer for itself."""
_keys: Callable[[Any], Iterable[Any]] = dict.__dict__["keys"]
_values: Callable[[Any], Iterable[Any]] = dict.__dict__["values"]


def learn_types() -> None:
    """Learn to read the types of modules that have been imported by now; none is imported for that."""
    for (module, name), reader in _LATER.items():
        loaded = sys.modules.get(module)
        kind = module_members(loaded).get(name) if type(loaded) is types.ModuleType else None
        if isinstance(kind, type):
            READERS.setdefault(cast("type[Any]", kind), reader)


def is_number(kind: object) -> bool:
    """Whether values of a type compare by content; a metaclass of its own may not even be hashed."""
    return type(kind) is type and kind in NUMBERS


def is_plain(value: object) -> bool:
    """Whether a value compares by content."""
    return is_number(type(value))


def contents(cells: Iterable[types.CellType]) -> list[object]:
    """What a closure holds."""
    found: list[object] = []
    for cell in cells:
        try:
            found.append(cell.cell_contents)
        except ValueError:  # an empty one
            found.append(None)
    return found


def _dict_parts(value: Any) -> Iterable[Any]:
    return (*_keys(value), *_values(value))


def _set_parts(value: set[Any] | frozenset[Any]) -> Iterable[Any]:
    return (len(value), *list[Any](value))


def _generator_parts(value: Any) -> Iterable[Any]:
    frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None)
    return ("ended",) if frame is None else (frame.f_lasti, *frame.f_locals.values())


def _cache_parts(value: Any) -> Iterable[Any]:
    info = value.cache_info()
    return (info.misses, info.currsize, value.__wrapped__)


def _count_parts(value: Any) -> Iterable[Any]:
    plain = all(is_plain(each) for each in gc.get_referents(value))
    return (repr(value) if plain else None,)


def _buffer_parts(value: Any) -> Iterable[Any]:
    return (
        value.closed,
        None if value.closed else hash(value.getvalue()),
        None if value.closed else value.tell(),
    )


def _file_parts(value: Any) -> Iterable[Any]:
    return (value.closed, None if value.closed or not value.seekable() else value.tell())


def _text_file_parts(value: Any) -> Iterable[Any]:
    return (value.buffer,)


def _variable_parts(value: contextvars.ContextVar[Any]) -> Iterable[Any]:
    return (value.get(None),)


def _partial_parts(value: functools.partial[Any]) -> Iterable[Any]:
    return (value.func, value.args, value.keywords)


_local_members: Any = _thread._local.__getattribute__
_random_state: Callable[[Any], tuple[int, ...]] = _random.Random.getstate

_EMPTY: tuple[Any, ...] = ([], (), range(0), {}, set[int](), "")
_ITERATORS = [cast("type[Any]", type(each)) for each in (*map(iter, _EMPTY), reversed(_EMPTY[0]))]

READERS: dict[type[Any], Reader] = {
    list: list,
    tuple: tuple,
    deque: list,
    **dict.fromkeys(_MAPPINGS, _dict_parts),
    set: _set_parts,
    frozenset: _set_parts,
    bytearray: lambda value: (hash(bytes(value)),),
    types.MappingProxyType: gc.get_referents,
    types.MethodType: lambda value: (value.__self__, value.__func__),
    staticmethod: lambda value: (value.__func__,),
    classmethod: lambda value: (value.__func__,),
    property: lambda value: (value.fget, value.fset, value.fdel),
    types.CellType: lambda value: contents((value,)),
    types.GeneratorType: _generator_parts,
    types.CoroutineType: _generator_parts,
    functools.partial: _partial_parts,
    functools._lru_cache_wrapper: _cache_parts,
    itertools.count: _count_parts,
    **dict.fromkeys(_ITERATORS, lambda value: (length_hint(value), *gc.get_referents(value))),
    io.StringIO: _buffer_parts,
    io.BytesIO: _buffer_parts,
    **dict.fromkeys((io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO), _file_parts),
    io.TextIOWrapper: _text_file_parts,
    _thread._local: lambda value: _dict_parts(_local_members(value, "__dict__")),
    _thread.LockType: lambda value: (value.locked(),),
    _thread.RLock: lambda value: (repr(value),),
    contextvars.ContextVar: _variable_parts,
    weakref.ref: lambda value: (id(value()),),
}
SIZED = frozenset({list, tuple, set, frozenset, *_MAPPINGS})

BASES: tuple[tuple[type[Any], Reader], ...] = (
    (list, lambda value: list[Any].__iter__(value)),
    (tuple, lambda value: tuple[Any, ...].__iter__(value)),
    (dict, _dict_parts),
    (set, lambda value: set[Any].__iter__(value)),
    (frozenset, lambda value: frozenset[Any].__iter__(value)),
    (deque, lambda value: deque[Any].__iter__(value)),
    (bytearray, lambda value: (hash(bytes(memoryview(value))),)),
    (int, lambda value: (int.__repr__(value),)),
    (float, lambda value: (float.__repr__(value),)),
    (str, lambda value: (str.__str__(value),)),
    (bytes, lambda value: (bytes.__repr__(value),)),
    (_random.Random, lambda value: (hash(_random_state(value)),)),
)
"""What instances of subclasses hold, read past any method of their own."""


_LATER: dict[tuple[str, str], Reader] = {
    ("array", "array"): lambda value: (value.typecode, hash(value.tobytes())),
    ("_queue", "SimpleQueue"): lambda value: (value.qsize(),),
    ("sqlite3", "Connection"): lambda value: (value.total_changes, value.in_transaction),
}
