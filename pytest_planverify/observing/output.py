"""Puts pytest's capturing back in order when a test has closed the streams that it gave out."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def stumbled_over_output(call: pytest.CallInfo[None]) -> bool:
    """Whether pytest failed for a stream that the test has closed."""
    if call.excinfo is None or not isinstance(call.excinfo.value, ValueError):
        return False
    return str(call.excinfo.traceback[-1].path).endswith("_pytest/capture.py")


def restore_output(config: pytest.Config) -> None:
    """Begin to capture anew: as it is, every test to come would fail, whatever it is about."""
    manager: Any = config.pluginmanager.getplugin("capturemanager")
    capturing: Any = getattr(manager, "_global_capturing", None)
    if capturing is None:
        return
    for stream in (capturing.out, capturing.err, capturing.in_):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError, AssertionError):
                stream.done()
    manager._global_capturing = None
    manager.start_global_capturing()
    manager.suspend_global_capture(in_=False)
