"""Faults that never end, or that end the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from faults.fault import Fault, Injector, Judged, Kind, Module, Reach, body_of, inserted
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

LIMIT_SECONDS = 15.0

_ENDS = Reading(
    category=Category.TEST_CRASH,
    owner=Owner.PRODUCT,
    why="The product tells the whole process to end.",
)


def _first(lines: str) -> Injector:
    """At the start of a function."""

    def inject(module: Module) -> Iterator[Fault]:
        for function in module.functions():
            body = body_of(function)
            if body:
                yield inserted(module, body[0], lines)

    return inject


def _top(lines: str) -> Injector:
    """While the module is imported: before its first definition."""

    def inject(module: Module) -> Iterator[Fault]:
        for node in module.tree.body:
            if hasattr(node, "decorator_list"):
                yield inserted(module, node, lines)
                return

    return inject


_LOOP = "attempts = 0\nwhile attempts < 3:\n    attempts = attempts % 3"
_SLOW = "import time\nfor _ in range(1000):\n    time.sleep(0.25)"
_BUSY = "total = 0\nfor _a in range(10**6):\n    for _b in range(10**6):\n        total += _a ^ _b"
_LOCK = "import threading\nguard = threading.Lock()\nguard.acquire()\nguard.acquire()"
_JOIN = "import threading\ndone = threading.Event()\ndone.wait()"


def _hangs(name: str, sentence: str, inject: Callable[[Module], Iterator[Fault]]) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        category=Category.TEST_TIMEOUT,
        exact=True,
        timeout_seconds=LIMIT_SECONDS,
        ends_process=True,
    )


def _dies(name: str, sentence: str, lines: str) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=_first(lines),
        category=Category.TEST_CRASH,
        exact=True,
        ends_process=True,
    )


KINDS = (
    _hangs("endless-loop", "A loop never ends.", _first(_LOOP)),
    _hangs("slow-wait", "A function waits for minutes.", _first(_SLOW)),
    _hangs("busy-work", "A function has too much to do.", _first(_BUSY)),
    _hangs("deadlock", "A lock is taken twice.", _first(_LOCK)),
    _hangs("lost-signal", "A function waits for what nobody says.", _first(_JOIN)),
    _dies("os-exit", "A function ends the process at once.", "import os\nos._exit(3)"),
    _dies("os-exit-zero", "A function ends the process as if all were well.", "import os\nos._exit(0)"),
    _dies("segfault", "A function reads memory that is not its own.", "import ctypes\nctypes.string_at(0)"),
    _dies("abort", "A function aborts the process.", "import os\nos.abort()"),
    _dies("killed", "A function kills its own process.", "import os\nos.kill(os.getpid(), 9)"),
    Kind(
        id="sys-exit",
        sentence="A function raises SystemExit.",
        inject=_first("import sys\nsys.exit(2)"),
        also=(_ENDS,),
        exact=True,
        raises=("SystemExit",),
    ),
    Kind(
        id="sys-exit-at-import",
        sentence="A module raises SystemExit while it is imported.",
        inject=_top("import sys\nsys.exit(1)"),
        also=(_ENDS,),
        exact=True,
        reach=Reach.IMPORT,
        judged=Judged.BEHAVIOUR,
        ends_process=True,
    ),
)
