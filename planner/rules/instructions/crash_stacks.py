"""Reads the stack that faulthandler writes when a process dies: the calls of the project, without those of
the test runner beneath them."""

from __future__ import annotations

import re

_CALL = re.compile(r"\s+File \"(?P<path>[^\"]*)\"")
_RUNNER = re.compile(r"/(?:_?pytest|pluggy|pytest_\w+|xdist|execnet)(?:/|\.py)|^<frozen ")
_THREAD = re.compile(r"(?:Current thread|Thread) 0x")
_MOST_LINES = 30


def own_stack(stack: str) -> str:
    """The thread that died, each run of the test runner's calls made one line."""
    lines = stack.strip("\n").split("\n")
    heads = [index for index, line in enumerate(lines) if _THREAD.match(line)]
    current = next((index for index in heads if lines[index].startswith("Current")), None)
    if current is not None:
        after = next((index for index in heads if index > current), len(lines))
        lines = [*lines[: heads[0]], *lines[current:after]]
    kept: list[str] = []
    hidden = 0
    for line in lines:
        call = _CALL.match(line)
        if call and _RUNNER.search(call["path"]):
            hidden += 1
            continue
        if hidden:
            kept.append(_hidden(hidden))
            hidden = 0
        if line.strip() and not line.startswith("Extension modules:"):
            kept.append(line)
    if hidden:
        kept.append(_hidden(hidden))
    if len(kept) > _MOST_LINES:
        kept = [*kept[:_MOST_LINES], f"… {len(kept) - _MOST_LINES} more lines"]
    return "\n".join(kept)


def _hidden(count: int) -> str:
    return f"  … {count} {'call' if count == 1 else 'calls'} of the test runner"
