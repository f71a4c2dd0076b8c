"""Asking strangers' objects: whatever they raise, and however long they take, the other facts stand."""

from __future__ import annotations

import inspect
import threading
import types
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")

LONGEST_MESSAGE = 4_000
_MESSAGE_SECONDS = 1.0


def readable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    """Text that every encoder takes: no lone surrogates, and no longer than a limit."""
    string = text if isinstance(text, str) else ""
    if len(string) > limit:
        string = f"{string[:limit]}… ({len(string)} characters)"
    return string.encode("utf-8", "backslashreplace").decode("utf-8")


def guarded(ask: Callable[[], Answer], otherwise: Answer) -> Answer:
    """The answer, or something else where asking raises."""
    try:
        return ask()
    except Exception:  # the objects asked are strangers': whatever they raise, the other facts stand
        return otherwise


def within_limit(ask: Callable[[], str]) -> str:
    """Ask in a thread of its own: a ``__str__`` that never returns must not hold up the run."""
    answers: list[str] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # SystemExit from a __str__ included
            answers.append(f"<__str__ raised {type(error).__name__}>")

    thread = threading.Thread(target=run, daemon=True, name="exception-message")
    thread.start()
    thread.join(_MESSAGE_SECONDS)
    return answers[0] if answers else "<__str__ did not return>"


def code_of(value: object) -> types.CodeType | None:
    """The code of a function, of a method, or of a class's first function; may raise."""
    if isinstance(value, type):
        members = (vars(value).get("__init__"), *vars(value).values())
        return next((m.__code__ for m in members if isinstance(m, types.FunctionType)), None)
    function = inspect.unwrap(value) if callable(value) else value
    function = getattr(function, "__func__", function)
    return function.__code__ if isinstance(function, types.FunctionType) else None


def module_name(names: dict[str, Any]) -> str:
    """``__name__`` among a frame's globals."""
    module = names.get("__name__")
    return module if isinstance(module, str) else ""
