"""The ordered table of rules: the first that applies decides.

:data:`RULES` lists the rules of ``data/rules.toml``. :func:`rules_for` returns those that may apply to a
case, in the same order.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.case import FACTS
from pytest_planverify.diagnosis.known import names_in
from pytest_planverify.diagnosis.rule import Reader, Rule
from pytest_planverify.diagnosis.rules import behaviour, commands, criteria, imports, machine, processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from pytest_planverify.diagnosis.case import Case

_FILE = Path(__file__).parents[1] / "data" / "rules.toml"
_SOURCES: dict[str, tuple[ModuleType, str]] = {
    "commands": (commands, "command"),
    "output": (commands, "command"),
    "findings": (commands, "command"),
    "criteria": (criteria, ""),
    "processes": (processes, ""),
    "sessions": (processes, ""),
    "machine": (machine, "error"),
    "imports": (imports, "error"),
    "behaviour": (behaviour, ""),
    "failed_commands": (commands, "command"),
    "last": (behaviour, ""),
}
"""By table of the file: the module of its readers, and the facts that all of its rules require."""


def _rule(name: str, row: dict[str, Any], module: ModuleType, facts: str) -> Rule:
    """Return the rule of a row."""
    read: Reader
    if "finding" in row:
        read = commands.reader_of_finding(row["finding"])
    elif "purpose" in row:
        read = commands.reader_of_purpose(row["purpose"])
    elif "pattern" in row:
        read = commands.reader_of_line(row["marks"], row["pattern"], row["suggestion"])
    else:
        read = getattr(module, name.replace("-", "_"))
    types: list[str] = row.get("types", "").split()
    return Rule(
        id=name,
        category=Category(row["category"]),
        confidence=row["confidence"],
        read=read,
        because=row.get("because") or read.__doc__ or name,
        types=frozenset(
            chain.from_iterable(names_in(each[1:]) if each[0] == "@" else [each] for each in types)
        ),
        facts=sum(FACTS[fact] for fact in {*facts.split(), *row.get("facts", "").split()}),
        owner=Owner(row["owner"]) if "owner" in row else None,
        second=Category(row["second"]) if "second" in row else None,
    )


RULES_OF = {
    table: tuple(_rule(name, row, *_SOURCES[table]) for name, row in rows.items())
    for table, rows in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
"""The rules by table of the file."""
RULES = tuple(chain.from_iterable(RULES_OF.values()))
"""All rules in order of evaluation."""
UNKNOWN_RULE = RULES[-1]

_HARD = (*RULES_OF["machine"], *RULES_OF["imports"])
"""Rules that decide by exception type, also for causes and group members."""
_SOFT = RULES_OF["behaviour"]
"""Rules that decide by the side of the raising frame, also for group members."""
_FIRST = RULES[: RULES.index(_HARD[0])]
_LAST = RULES[RULES.index(_SOFT[-1]) + 1 :]


@lru_cache(maxsize=4096)
def _applicable(
    tables: tuple[tuple[Rule, ...], ...], facts: int, classes: frozenset[str]
) -> tuple[Rule, ...]:
    """Return the rules of some tables that may apply; cached, as cases have few combinations of facts."""
    return tuple(rule for table in tables for rule in table if rule.may_apply(facts, classes))


def rules_for(case: Case) -> Iterator[tuple[tuple[Rule, ...], Case]]:
    """Yield the rules that may apply, in order, with the case to evaluate them on."""
    if not case.has_error or not case.deeper:
        yield _applicable((RULES,), case.facts, case.classes), case
        return
    yield _applicable((_FIRST, _HARD), case.facts, case.classes), case
    for each in case.deeper:
        yield _applicable((_HARD,), each.facts, each.classes), each
    for each in case.leaves:
        yield _applicable((_SOFT,), each.facts, each.classes), each
    yield _applicable((_SOFT, _LAST), case.facts, case.classes), case
