"""Serialization of events and actions: the lines of a run's log, and the events that a driver sends.

::

    {"n":1,"event":{"event":"run_started",…},"actions":[{"action":"implement",…}],"digest":"sha256:…"}

Lines are JSON in ASCII; the first has the number 0 and contains a ``plan_submitted``. Serialization is
deterministic: a replay compares actions with those of the log byte for byte.
"""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from planner.errors import LogError, RefusedEvent
from planner.model.base import ReadValue, Value
from planner.model.events import Event, PlanRevised, PlanSubmitted, SubPlanLoaded
from planner.model.outcome import Outcome
from planner.planfile.writer import plain
from planner.text.display import did_you_mean
from planner.text.redaction import redact
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from planner.model.actions import Action

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Limit in bytes of one line that a driver sends."""

_LONGEST = 300
"""Limit in characters of a message to a driver."""


class LogLine(ReadValue):
    """The parsed part of a line. Its actions are not parsed, as a fold computes them again."""

    event: Event


# Built on first use: the schemas of all events would make every import slower.
_EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))

EVENT_NAMES: tuple[str, ...] = tuple(
    each.model_fields["event"].default for each in get_args(get_args(Event)[0]) if each is not PlanSubmitted
)
"""Names of events that drivers may report; ``plan_submitted`` is added by the session."""


# -- the lines of a log --------------------------------------------------------------------------------


def body(n: int, event: Event, actions: Iterable[Action]) -> str:
    """Return line ``n`` without its digest, as :meth:`planner.store.chain.ChainedFile.write` takes it."""
    serialized = ",".join(map(action_text, actions))
    return f'{{"n":{n},"event":{event_text(event)},"actions":[{serialized}]'


def parse_line(text: str, n: int) -> Event:
    """Return the event of line ``n``. Raises :class:`planner.errors.LogError` if it is invalid."""
    try:
        return LogLine.model_validate_json(text).event
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise LogError(f"line {n} cannot be read: {where}: {first['msg']}") from None


def action_text(action: Action) -> str:
    """Serialize an action, without values that are ``None``; equal actions give equal texts."""
    return _compact({"action": action.action, **plainly(action)})


def event_text(event: Event) -> str:
    """Serialize an event; :func:`parse_event` returns an equal event."""
    return _compact({"event": event.event, **plainly(event)})


def logged_actions(text: str) -> list[str]:
    """Return the actions of a line, each as JSON text like that of :func:`action_text`."""
    return [_compact(each) for each in json.loads(text)["actions"]]


def parse_event(text: str) -> Event:
    """Parse an event. Raises pydantic's ``ValidationError``, a ``ValueError``, if it is invalid."""
    return _EVENTS.validate_json(text)


def without_secrets(event: Event) -> Event:
    """Return the event with secrets removed from its texts, so that none is written to the log.

    Events with plans are returned unchanged: plans are in their files anyway, and their digest covers every
    byte.
    """
    if isinstance(event, PlanSubmitted | SubPlanLoaded | PlanRevised):
        return event
    # As JSON, where every text is found the same way, in whatever field of whatever event.
    content = json.loads(event_text(event))
    redacted = _redacted(content)
    return event if redacted == content else parse_event(json.dumps(redacted))


_IDENTIFIER_KEYS = frozenset(
    ("event", "at", "todo_id", "plan", "id", "question_id", "approval_id", "signature")
)
"""Keys whose values are identifiers: they cannot contain secrets, and redacting them would break links."""


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: item if name in _IDENTIFIER_KEYS else _redacted(item) for name, item in members.items()
        }
    return value


def _compact(value: Any) -> str:
    """Return JSON in ASCII, on one line without blanks."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def plainly(value: Any) -> Any:
    """Return a value as JSON data without ``None`` members; plans and todos are as in plan files.

    Of outcomes, the values that were set are kept, even if they are ``None`` or a default.
    """
    if isinstance(value, Outcome):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, ReadValue):
        members = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: plainly(item) for name, item in members if item is not None}
    if isinstance(value, Value):
        return plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plainly(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {str(name): plainly(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


# -- the lines of a driver -----------------------------------------------------------------------------

_START = '{"event": "run_started", "at": "2026-01-31T09:30:00Z"}'


def read_event(raw: bytes) -> Event:
    """Parse a line that a driver sent.

    Raises :class:`planner.errors.RefusedEvent` if it is too long, not an event, or a ``plan_submitted``.
    """
    if len(raw) > MAX_EVENT_BYTES:
        problem = f"the line is longer than {MAX_EVENT_BYTES >> 20} MiB"
        raise RefusedEvent("unreadable-line", problem, "split the event")
    try:
        # Some programs begin their output with a byte order mark.
        event = _EVENTS.validate_json(raw.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_input=False)) from None
    if isinstance(event, PlanSubmitted):
        problem = "planner step itself submits the plan"
        raise RefusedEvent("plan-is-submitted", problem, f"start with {_START}")
    return event


def _refusal(errors: list[ErrorDetails]) -> RefusedEvent:
    """Return the refusal for an event that pydantic rejected; it quotes at most three errors."""
    first = errors[0]
    if first["loc"]:  # its first part is the name of the event, which precedes all of them
        quoted = (f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in errors[:3])
        problem = f"{first['loc'][0]}: {'; '.join(quoted)}"
        remedy = f"planner schema event shows the fields of events; write times as in {_START}"
        return RefusedEvent("unfit-event", one_line(problem, limit=_LONGEST), remedy)
    if first["type"].startswith("union_tag"):  # without a name, or with an unknown one
        name = one_line(first.get("ctx", {}).get("tag", ""), limit=_LONGEST)
        remedy = did_you_mean(name, EVENT_NAMES, f"the events are {', '.join(EVENT_NAMES)}")
        return RefusedEvent("unknown-event", f"there is no event '{name}'", remedy)
    problem = one_line(f"the line is not a JSON object: {first['msg']}", limit=_LONGEST)
    return RefusedEvent("unreadable-line", problem, f"write one object on one line, like {_START}")
