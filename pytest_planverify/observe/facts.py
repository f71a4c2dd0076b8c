"""Plain records of what is observed, in the shape of :mod:`planner.model.evidence`.

A session must not import the libraries that those models are made of: the project under test may be one
of them. So it writes plain data, and the parent reads it back into the models.
"""

from __future__ import annotations

from typing import Any


class Facts(dict[str, Any]):
    """A JSON object whose members are also attributes; one that is not there is ``None``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)


def evidence(**facts: Any) -> Facts:
    """The facts about one failure: the fields of ``Evidence``."""
    return Facts(facts)


def exception_fact(**facts: Any) -> Facts:
    """One exception of a chain: the fields of ``ExceptionFact``."""
    return Facts(facts)


def frame(**facts: Any) -> Facts:
    """One frame of a traceback: the fields of ``Frame``."""
    return Facts(facts)
