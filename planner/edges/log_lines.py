"""The lines of a run's log: an event, the actions that it called for, and a digest in a chain.

::

    {"n":1,"event":{"event":"run_started",…},"actions":[{"action":"implement",…}],"digest":"sha256:…"}

The digest is of the digest before it, a newline, and the bytes of the line up to ``,"digest":``. Whoever
changes, drops or moves a line breaks the chain there. Lines are JSON in ASCII; the first has the number 0
and holds a ``plan_submitted``.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError

from planner.edges.plain_json import plainly
from planner.errors import LogError
from planner.model.actions import AskHuman, PublishPlan
from planner.model.base import ReadValue
from planner.model.events import Event, PlanRevised, PlanSubmitted, SubPlanLoaded, Verified

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.actions import Action

GENESIS = "sha256:" + "0" * 64
"""What stands for the digest before the first line."""

_DIGEST_KEY = ',"digest":"'
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


def parse_event(text: str) -> Event:
    """The event of one line of JSON. Raises ``ValueError``; ``pydantic.ValidationError`` is one."""
    if _EXTENSION in text:
        return _EVENTS.validate_python(_gathered(_bounded(_loaded(text))))
    return _EVENTS.validate_json(text)


def action_text(action: Action) -> str:
    """An action as JSON: the same bytes for the same action. What is absent is left out."""
    return _text(action, "action", action.action)


def event_text(event: Event) -> str:
    """An event as JSON. Reading it gives the same event."""
    if isinstance(event, Verified):
        outcome = event.outcome.model_dump_json(exclude_unset=True)
        rest = _ascii(event.model_dump_json(exclude_none=True, exclude={"event", "outcome"}))
        return f'{{"event":"verified",{rest[1:-1]},"outcome":{_ascii(outcome)}}}'
    return _text(event, "event", event.event)


def encode(n: int, event: Event, actions: Iterable[Action], previous: str) -> tuple[str, str]:
    """The line with that number, without its newline, and its digest.

    ``previous`` is the digest of the line before, :data:`GENESIS` for the first.
    """
    made = ",".join(map(action_text, actions))
    body = f'{{"n":{n},"event":{event_text(event)},"actions":[{made}]'
    digest = digest_of(body, previous)
    return f'{body}{_DIGEST_KEY}{digest}"}}', digest


def decode(text: str, n: int, previous: str) -> LogLine:
    """The line with that number. Raises :class:`planner.errors.LogError` if it is not what was written."""
    try:
        line = _line(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise LogError(f"line {n} cannot be read: {where}: {first['msg']}") from None
    except ValueError as error:
        raise LogError(f"line {n} cannot be read: {error}") from None
    if line.n != n:
        raise LogError(f"line {n} bears the number {line.n}: a line was dropped, added or moved")
    body, _, end = text.rpartition(_DIGEST_KEY)
    if digest_of(body, previous) != line.digest or end != f'{line.digest}"}}':
        raise LogError(f"line {n} was changed, or the line before it: its digest does not fit")
    return line


def actions_text(text: str) -> str:
    """The actions of a line as they were written, ``[…]``; nothing else of it is looked at."""
    start = json.JSONDecoder().raw_decode(text, text.index('"event":') + len('"event":'))[1]
    return text[start + len(',"actions":') : text.rfind(_DIGEST_KEY)]


def calls_for(text: str, actions: Iterable[Action]) -> bool:
    """Whether these are the actions of a line that :func:`decode` has read, byte for byte."""
    made = ",".join(map(action_text, actions))
    # Brackets pair up: what ends like this began with the one bracket that opens the actions.
    return text.endswith(f',"actions":[{made}]', 0, text.rfind(_DIGEST_KEY))


def digest_of(body: str, previous: str) -> str:
    """The digest of a line without its digest, in the chain after ``previous``."""
    return "sha256:" + sha256(f"{previous}\n{body}".encode()).hexdigest()


def _text(value: ReadValue, tag: str, kind: str) -> str:
    """The value with what it is in front."""
    if isinstance(value, _HOLDS_PLAN_PARTS):
        plain = {tag: kind, **plainly(value)}
        return json.dumps(plain, separators=(",", ":"), allow_nan=False)
    rest = _ascii(value.model_dump_json(exclude_none=True, exclude={tag}))
    return f'{{"{tag}":"{kind}",{rest[1:]}'


def _line(text: str) -> LogLine:
    if _EXTENSION not in text:
        return _LINES.validate_json(text)
    held: Any = _loaded(text)
    if isinstance(held, dict) and "event" in held:
        held["event"] = _gathered(cast("Any", held["event"]))
    return _LINES.validate_python(held)


def _loaded(text: str) -> Any:
    """What JSON says, without what only Python's reader takes for JSON. Raises ``ValueError``."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _bounded(value: Any) -> Any:
    """The value, which may be nested as deep as pydantic's own reader allows. Raises ``ValueError``."""
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


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _gathered(event: Any) -> Any:
    """An event in which the ``x-`` keys of a plan stand where the models have them."""
    if not isinstance(event, dict):
        return event
    held = cast("dict[str, Any]", event)
    return {name: _without_loose(item) if name in _PARTS_OF_PLANS else item for name, item in held.items()}


def _without_loose(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_loose(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, Any]", value)
    loose = {name: item for name, item in held.items() if name.startswith("x-")}
    kept = {name: _without_loose(item) for name, item in held.items() if name not in loose}
    return kept | {"extensions": loose} if loose else kept


def _ascii(text: str) -> str:
    """JSON that does not depend on the terminal's encoding."""
    return text if text.isascii() else json.dumps(json.loads(text), separators=(",", ":"))
