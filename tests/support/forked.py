"""Runs a function in a process that is forked from the tests', and brings back what it returns."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def in_fork(work: Callable[[], Result]) -> Result:
    """Return its result. Raises ``AssertionError`` with what was raised there."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # pytest collects garbage when it ends: what the tests' process holds is none, and much.
        gc.freeze()
        try:
            answer: tuple[bool, object] = (True, work())
        except BaseException as error:
            answer = (False, repr(error))
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(answer, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(pid, 0)
    succeeded, result = pickle.loads(data) if data else (False, "the process died")
    assert succeeded, result
    return result
