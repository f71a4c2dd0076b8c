"""Removal of secrets from what is observed, before it is written or shown.

A worker does it as it writes a record, the parent as it reads output. All that follows, such as
diagnoses, outcomes and reports, has no secrets then.
"""

from __future__ import annotations

import os
from functools import cache
from json import dumps, loads  # bound early: tests may monkeypatch this module
from typing import TYPE_CHECKING, Any

from planner.text.redaction import redact_data, secret_values

if TYPE_CHECKING:
    from planner.model.evidence import Evidence

_IDENTIFIERS = frozenset(
    {"argv", "check_id", "contract_path", "file", "module_path", "nodeid", "path", "place", "tests"}
)
"""Keys of identifiers: redacting them would break links. ``argv`` is the plan's own text."""
_TEXTS = ("evidence", "message", "properties", "reason", "text", "value")
"""Members of records that may have texts of the project."""
_MARKS = tuple(f'"{name}": ' for name in _TEXTS)


@cache
def environment_secrets() -> tuple[str, ...]:
    """Return the secrets among the environment variables of this process, at the first call."""
    return secret_values(os.environ)


def without_secrets(data: Any) -> Any:
    """Return a text, or JSON data, without secrets of known shapes and those of the environment."""
    return redact_data(data, environment_secrets(), _IDENTIFIERS)


def record_without_secrets(body: str) -> str:
    """Return the members of a worker's record, JSON text without braces, without secrets."""
    # Most records, such as that of a passed test, have none of these members.
    if not any(mark in body for mark in _MARKS):
        return body
    facts = loads(f"{{{body}}}")
    texts = {name: facts[name] for name in facts.keys() & _TEXTS}
    if is_text := isinstance(facts.get("evidence"), str):  # JSON in JSON, of a hidden failure
        texts["evidence"] = loads(texts["evidence"])
    redacted = without_secrets(texts)
    if redacted is texts:
        return body
    if is_text:
        redacted["evidence"] = dumps(redacted["evidence"])
    return dumps(facts | redacted)[1:-1]


def evidence_without_secrets(evidence: Evidence) -> Evidence:
    """Return evidence that the parent observed without secrets."""
    facts = evidence.model_dump()
    redacted = without_secrets(facts)
    return evidence if redacted is facts else type(evidence).model_validate(redacted)
