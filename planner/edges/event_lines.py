"""Reads the events that a driver writes, one a line, and says in one sentence what is wrong with a line."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from planner.edges.log_lines import parse_event
from planner.errors import RefusedEvent
from planner.model.events import Event, PlanSubmitted
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Of one line of a driver."""

_MARK = b"\xef\xbb\xbf"
_MOST_TOLD = 3
_LONGEST = 300
_START = '{"event": "run_started", "at": "2026-01-31T09:30:00Z"}'

EVENT_NAMES: tuple[str, ...] = tuple(
    each.model_fields["event"].default for each in get_args(get_args(Event)[0]) if each is not PlanSubmitted
)
"""The events that a driver may tell: the plan is submitted for it."""

_REMEDIES: Mapping[str, str] = {
    "timezone_aware": "write the time with an offset, 2026-01-31T09:30:00Z",
    "datetime_from_date_parsing": "write the time as 2026-01-31T09:30:00Z",
    "datetime_parsing": "write the time as 2026-01-31T09:30:00Z",
    "missing": "add it",
}
_PROBLEMS: Mapping[str, str] = {
    "missing": "is missing",
    "timezone_aware": "tells no offset from UTC",
    "datetime_from_date_parsing": "is no time",
    "datetime_parsing": "is no time",
    "union_tag_invalid": "is of no known kind",
    "union_tag_not_found": "does not say of which kind it is",
}


def read_event(raw: bytes) -> Event:
    """The event of one line. Raises :class:`planner.errors.RefusedEvent` for whatever is none."""
    if len(raw) > MAX_EVENT_BYTES:
        raise too_long()
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
    return RefusedEvent(
        "plan-is-submitted", "the plan is submitted by planner step itself", f"begin with {_START}"
    )


def too_long() -> RefusedEvent:
    """What is said of a line that no event can be."""
    return _unreadable(f"the line is longer than {MAX_EVENT_BYTES >> 20} MiB", "tell less in one event")


def _refusal(errors: list[ErrorDetails]) -> RefusedEvent:
    first = errors[0]
    kind = first["type"]
    if kind == "json_invalid":
        return _unreadable(f"the line is no JSON: {_detail(first)}", "write one JSON object on one line")
    if kind == "union_tag_not_found" and not first["loc"]:
        return RefusedEvent("unknown-event", "the line names no event", f"write it like {_START}")
    if kind == "union_tag_invalid" and not first["loc"]:
        return _unknown(str(first.get("ctx", {}).get("tag", "")))
    if len(first["loc"]) == 0:
        return _unreadable("the line is no JSON object", f"write one, like {_START}")
    event = str(first["loc"][0])
    if event == "plan_submitted":
        return _submitted_by_hand()
    if len(errors) > 1:  # what is wrong with a part makes the whole too short
        errors = [each for each in errors if each["type"] != "too_short"] or errors
    told = "; ".join(_told(each) for each in errors[:_MOST_TOLD])
    more = f" (and {len(errors) - _MOST_TOLD} more)" if len(errors) > _MOST_TOLD else ""
    remedy = _REMEDIES.get(kind, "mend it: planner schema event tells what an event holds")
    return RefusedEvent("unfit-event", _line(f"{event}: {told}{more}"), remedy)


def _unknown(name: str) -> RefusedEvent:
    shown = _line(name)
    near = get_close_matches(name[:_LONGEST], EVENT_NAMES, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"the events are {', '.join(EVENT_NAMES)}"
    return RefusedEvent("unknown-event", f"there is no event '{shown}'", remedy)


def _told(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"][1:]))
    return (
        f"{place} {_PROBLEMS[error['type']]}" if error["type"] in _PROBLEMS else f"{place}: {error['msg']}"
    )


def _detail(error: ErrorDetails) -> str:
    context: dict[str, Any] = error.get("ctx", {})
    return str(context.get("error", error["msg"]))


def _unreadable(problem: str, remedy: str) -> RefusedEvent:
    return RefusedEvent("unreadable-line", _line(problem), remedy)


def _line(text: str) -> str:
    return " ".join(clean(text, limit=_LONGEST).split())
