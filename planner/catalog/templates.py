"""Templates of plans, as data: which steps a plan of a known kind takes, in order, and who does each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.taxonomy import Role

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStep:
    """One step that every plan of the kind has."""

    name: str
    """Short, for messages."""
    title: str
    """As a plan would write it."""
    words: frozenset[str]
    """Beginnings of words; a todo whose title or id has the most of them is this step."""
    roles: tuple[Role, ...]
    """Who usually does it, the first by default."""
    criterion: str
    """What usually proves it."""
    fixtures: tuple[str, ...] = ()
    """Data that makes its tests repeatable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of plan."""

    name: str
    summary: str
    steps: tuple[TemplateStep, ...]


STRATEGY = Template(
    name="strategy",
    summary="A trading strategy in four steps, each built on the one before.",
    steps=(
        TemplateStep(
            name="data loading",
            title="Data Loading Integration",
            words=frozenset({"data", "load", "adapter", "fetch", "feed", "ohlcv", "ingest"}),
            roles=(Role.CODER,),
            criterion="pytest tests/test_adapter.py::test_fetch -q",
            fixtures=("fixtures/sample_aapl.csv",),
        ),
        TemplateStep(
            name="indicators and patterns",
            title="Indicator & Candle Patterns",
            words=frozenset({"indicator", "pattern", "candle"}),
            roles=(Role.ARCHITECT, Role.CODER),
            criterion="pytest tests/test_indicators.py::test_rsi_values -q",
            fixtures=("fixtures/rsi_expected.json", "fixtures/pattern_cases.json"),
        ),
        TemplateStep(
            name="entry conditions",
            title="Entry Conditions",
            words=frozenset({"entry", "entries", "enter", "buy"}),
            roles=(Role.CODER,),
            criterion="pytest tests/test_entry.py::test_entry_true_false -q",
            fixtures=("fixtures/entry_scenarios.json",),
        ),
        TemplateStep(
            name="exit conditions",
            title="Exit Conditions",
            words=frozenset({"exit", "sell", "stop", "target"}),
            roles=(Role.CODER,),
            criterion="pytest tests/test_exit.py::test_stop_loss -q",
            fixtures=("fixtures/exit_scenarios.json",),
        ),
    ),
)

TEMPLATES: Mapping[str, Template] = {template.name: template for template in (STRATEGY,)}
"""Every template by the name that ``x-template`` gives."""
