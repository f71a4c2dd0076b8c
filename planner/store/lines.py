"""Events and actions as JSON, the lines of a run's log, and the events that a driver writes.

::

    {"n":1,"event":{"event":"run_started",…},"actions":[{"action":"implement",…}],"digest":"sha256:…"}

Lines are JSON in ASCII; the first has the number 0 and holds a ``plan_submitted``.
"""

from __future__ import annotations

import json
from datetime import datetime
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from planner.errors import LogError, RefusedEvent
from planner.model.actions import AskHuman, PublishPlan
from planner.model.base import ReadValue, Value
from planner.model.events import Event, PlanRevised, PlanSubmitted, SubPlanLoaded, Verified
from planner.planfile.dump import plain
from planner.store.chain import body_of, chained, check_link
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

    from planner.model.actions import Action

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Of one line of a driver."""

_EXTENSION = '"x-'
_DEEPEST = 200
_PARTS_OF_PLANS = frozenset(("plan", "edits"))
_HOLDS_PLAN_PARTS = (AskHuman, PublishPlan, PlanSubmitted, SubPlanLoaded, PlanRevised)


class LogLine(ReadValue):
    """One line as it is read. Its actions are text: a fold makes them anew."""

    n: int
    event: Event
    digest: str


_LINES: TypeAdapter[LogLine] = TypeAdapter(LogLine)
_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)

EVENT_NAMES: tuple[str, ...] = tuple(
    each.model_fields["event"].default for each in get_args(get_args(Event)[0]) if each is not PlanSubmitted
)
"""The events that a driver may tell: the plan is submitted for it."""


# -- the lines of a log --------------------------------------------------------------------------------


def body(n: int, event: Event, actions: Iterable[Action]) -> str:
    """Return the line with that number, up to its digest."""
    made = ",".join(map(action_text, actions))
    return f'{{"n":{n},"event":{event_text(event)},"actions":[{made}]'


def encode(n: int, event: Event, actions: Iterable[Action], previous: str) -> tuple[str, str]:
    """Return the line with that number, without its newline, and its digest.

    ``previous`` is the digest of the line before, :data:`planner.store.chain.GENESIS` for the first.
    """
    return chained(body(n, event, actions), previous)


def decode(text: str, n: int, previous: str) -> LogLine:
    """Return the line with that number. Raises :class:`planner.errors.LogError` for any other text."""
    check_link(text, n, previous)
    return parse_line(text, n)


def parse_line(text: str, n: int) -> LogLine:
    """Return a line whose place in the chain was checked. Raises :class:`planner.errors.LogError`."""
    try:
        if _EXTENSION not in text:
            return _LINES.validate_json(text)
        held: Any = _loaded(text)
        if isinstance(held, dict) and "event" in held:
            held["event"] = _gathered(cast("Any", held["event"]))
        return _LINES.validate_python(held)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise LogError(f"line {n} cannot be read: {where}: {first['msg']}") from None
    except ValueError as error:
        raise LogError(f"line {n} cannot be read: {error}") from None


def action_text(action: Action) -> str:
    """Return an action as JSON: the same bytes for the same action. What is absent is left out."""
    return _text(action, "action", action.action)


def event_text(event: Event) -> str:
    """Return an event as JSON. Reading it gives the same event."""
    if isinstance(event, Verified):
        outcome = event.outcome.model_dump_json(exclude_unset=True)
        rest = _ascii(event.model_dump_json(exclude_none=True, exclude={"event", "outcome"}))
        return f'{{"event":"verified",{rest[1:-1]},"outcome":{_ascii(outcome)}}}'
    return _text(event, "event", event.event)


def logged_actions(text: str) -> list[str]:
    """Return each action of a line as it is written; nothing else of it is looked at."""
    decoder = json.JSONDecoder()
    at = decoder.raw_decode(text, text.index('"event":') + len('"event":'))[1] + len(',"actions":[')
    found: list[str] = []
    while text[at] != "]":
        end = decoder.raw_decode(text, at)[1]
        found.append(text[at:end])
        at = end + (text[end] == ",")
    return found


def calls_for(text: str, actions: Iterable[Action]) -> bool:
    """Return whether these are the actions of a line that :func:`decode` has read, byte for byte."""
    made = ",".join(map(action_text, actions))
    # Brackets pair up: what ends like this began with the one bracket that opens the actions.
    return body_of(text).endswith(f',"actions":[{made}]')


def parse_event(text: str) -> Event:
    """Return the event of one line of JSON. Raises ``ValueError``; ``ValidationError`` is one."""
    if _EXTENSION in text:
        return _EVENTS.validate_python(_gathered(_bounded(_loaded(text))))
    return _EVENTS.validate_json(text)


def without_secrets(event: Event) -> Event:
    """Return the event with secrets taken out of its texts, as it is to be written.

    A plan is left as it is: it stands in its file, and its digest is of every byte.
    """
    if isinstance(event, PlanSubmitted | SubPlanLoaded | PlanRevised):
        return event
    held = json.loads(event_text(event))
    clear = _redacted(held)
    return event if clear == held else parse_event(json.dumps(clear))


_NAMES = frozenset(("event", "at", "todo_id", "plan", "id", "question_id", "approval_id", "signature"))
"""Keys whose values name something: they are no text in which a secret could be quoted."""


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {name: item if name in _NAMES else _redacted(item) for name, item in held.items()}
    return value


def _text(value: ReadValue, tag: str, kind: str) -> str:
    """Return the value with what it is in front."""
    if isinstance(value, _HOLDS_PLAN_PARTS):
        plain = {tag: kind, **plainly(value)}
        return json.dumps(plain, separators=(",", ":"), allow_nan=False)
    rest = _ascii(value.model_dump_json(exclude_none=True, exclude={tag}))
    return f'{{"{tag}":"{kind}",{rest[1:]}'


def _loaded(text: str) -> Any:
    """Return what JSON says, without what only Python's reader takes for JSON. Raises ``ValueError``."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _bounded(value: Any) -> Any:
    """Return a value that is nested no deeper than pydantic's own reader allows. Raises ``ValueError``."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(cast("dict[str, Any]", each).values())
            elif isinstance(each, list):
                below.extend(cast("list[Any]", each))
        if not below:
            return value
        level = below
    raise ValueError("it is nested too deeply")


def _gathered(event: Any) -> Any:
    """Return an event in which the ``x-`` keys of a plan stand where the models have them."""
    if not isinstance(event, dict):
        return event
    held = cast("dict[str, Any]", event)
    return {
        name: _extensions_gathered(item) if name in _PARTS_OF_PLANS else item for name, item in held.items()
    }


def _extensions_gathered(value: Any) -> Any:
    if isinstance(value, list):
        return [_extensions_gathered(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, Any]", value)
    loose = {name: item for name, item in held.items() if name.startswith("x-")}
    kept = {name: _extensions_gathered(item) for name, item in held.items() if name not in loose}
    return kept | {"extensions": loose} if loose else kept


def _ascii(text: str) -> str:
    """Return JSON that does not depend on the terminal's encoding."""
    return text if text.isascii() else json.dumps(json.loads(text), separators=(",", ":"))


# -- the lines of a driver -----------------------------------------------------------------------------

_MARK = b"\xef\xbb\xbf"
_MOST_NAMED = 3
_LONGEST = 300
_START = '{"event": "run_started", "at": "2026-01-31T09:30:00Z"}'
_NO_TIME = ("is no time", "write the time as 2026-01-31T09:30:00Z")
_MISTAKES: Mapping[str, tuple[str, str]] = {
    "missing": ("is missing", "add it"),
    "timezone_aware": ("tells no offset from UTC", "write the time with an offset, 2026-01-31T09:30:00Z"),
    "datetime_from_date_parsing": _NO_TIME,
    "datetime_parsing": _NO_TIME,
    "union_tag_invalid": ("is of no known kind", ""),
    "union_tag_not_found": ("does not say of which kind it is", ""),
}
"""By pydantic's type of an error: what is wrong, and what to do."""


def read_event(raw: bytes) -> Event:
    """Return the event of one line of a driver. Raises :class:`planner.errors.RefusedEvent`."""
    if len(raw) > MAX_EVENT_BYTES:
        raise _unreadable(f"the line is longer than {MAX_EVENT_BYTES >> 20} MiB", "tell less in one event")
    try:
        text = raw.removeprefix(_MARK).decode()
    except UnicodeDecodeError as error:
        raise _unreadable(f"byte {error.start} of the line is not UTF-8", "write UTF-8") from None
    try:
        event = parse_event(text)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_input=False)) from None
    except ValueError as error:
        raise _unreadable(f"the line is no JSON: {error}", "write one JSON object on one line") from None
    if isinstance(event, PlanSubmitted):
        raise _submitted_by_hand()
    return event


def _submitted_by_hand() -> RefusedEvent:
    problem = "the plan is submitted by planner step itself"
    return RefusedEvent("plan-is-submitted", problem, f"begin with {_START}")


def _refusal(errors: list[ErrorDetails]) -> RefusedEvent:
    first = errors[0]
    kind, place, context = first["type"], first["loc"], first.get("ctx", {})
    if kind == "json_invalid":
        detail = str(context.get("error", first["msg"]))
        return _unreadable(f"the line is no JSON: {detail}", "write one JSON object on one line")
    if not place:
        if kind == "union_tag_not_found":
            return RefusedEvent("unknown-event", "the line names no event", f"write it like {_START}")
        if kind == "union_tag_invalid":
            name = str(context.get("tag", ""))
            near = get_close_matches(name[:_LONGEST], EVENT_NAMES, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else f"the events are {', '.join(EVENT_NAMES)}"
            return RefusedEvent("unknown-event", f"there is no event '{_line(name)}'", remedy)
        return _unreadable("the line is no JSON object", f"write one, like {_START}")
    event = str(place[0])
    if event == "plan_submitted":
        return _submitted_by_hand()
    if len(errors) > 1:  # what is wrong with a part makes the whole too short
        errors = [each for each in errors if each["type"] != "too_short"] or errors
    told = "; ".join(map(_mistake, errors[:_MOST_NAMED]))
    more = f" (and {len(errors) - _MOST_NAMED} more)" if len(errors) > _MOST_NAMED else ""
    remedy = _MISTAKES.get(kind, ("", ""))[1] or "mend it: planner schema event tells what an event holds"
    return RefusedEvent("unfit-event", _line(f"{event}: {told}{more}"), remedy)


def _mistake(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"][1:]))
    return (
        f"{place} {_MISTAKES[error['type']][0]}"
        if error["type"] in _MISTAKES
        else f"{place}: {error['msg']}"
    )


def _unreadable(problem: str, remedy: str) -> RefusedEvent:
    return RefusedEvent("unreadable-line", _line(problem), remedy)


def _line(text: str) -> str:
    return " ".join(clean(text, limit=_LONGEST).split())


def plainly(value: Any) -> Any:
    """Return a value as JSON has it, parts of plans as plan files write them, without what is absent."""
    if isinstance(value, ReadValue):
        held = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: plainly(item) for name, item in held if item is not None}
    if isinstance(value, Value):
        return plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plainly(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {str(name): plainly(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
