"""Execution of a function in a fork of the test process."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def in_fork(work: Callable[[], Result]) -> Result:
    """Run the function in a fork and return its result. Raises ``AssertionError`` with its exception."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # pytest collects garbage when it ends; exclude the large heap of the test process.
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
