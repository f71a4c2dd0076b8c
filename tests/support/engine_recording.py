"""Recorded runs: logs that every later version has to reproduce byte for byte, and events it has to refuse.

``fixtures/recorded_runs.txt`` holds the log of one simulated run under each number and, under
``refusals``, a refused event per line, with the run and the number of events before it. After an intended
change of a decision, record them again: ``python tests/support/engine_recording.py``. It selects a small
set of runs that shows every rule and reason of all simulated runs, and the refusals in them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from simulation import Simulation, Watcher
from text_bundles import write_bundle

from planner.errors import RefusedEvent
from planner.model.actions import AskHuman, Implement, Notify, Verify
from planner.store.chain import GENESIS, chained
from planner.store.run_log import body, event_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event

RECORDED = Path(__file__).parents[2] / "fixtures/recorded_runs.txt"
REFUSALS = "refusals"
SEEDS = 4_000
LONGEST = 40
"""Maximum number of events in a recorded run."""

_VARYING = re.compile(r"sha256:[0-9a-f]*|[A-Z]{3,}[A-Z_]*|[\w/*.]*\d[\w/*.,]*|(#, )+")
"""Matches names, numbers, digests, categories, and lists of these."""


class Refused(Watcher):
    """Collects the refused events of a run."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Event, RefusedEvent]] = []

    def refused(self, state: State, event: Event, refusal: RefusedEvent) -> None:
        self.found.append((state.events, event, refusal))


def shown(run: Simulation) -> set[str]:
    """Return the kinds of a run's actions and the parts of their reasons, without names and numbers."""
    return {said for _, actions in run.history for action in actions for said in _said(action)}


def record() -> None:
    """Write all recorded runs and refusals to the fixture."""
    runs = {seed: found for seed in range(SEEDS) if (found := _run(seed)) is not None}
    sizes = {seed: sum(map(len, _lines(run))) for seed, (run, _) in runs.items()}
    chosen = sorted(_fewest({seed: shown(run) for seed, (run, _) in runs.items()}, sizes))
    logs: dict[str, str] = {}
    refusals: dict[str, str] = {}
    for seed in chosen:
        run, refused = runs[seed]
        name = f"{seed:05d}"
        logs[name] = "".join(_lines(run))
        for after, event, refusal in refused.found:
            kind = "; ".join(sorted(_parts(refusal.rule, str(refusal))))
            refusals.setdefault(kind, _refusal_text(name, after, event, refusal))
    write_bundle(RECORDED, {**logs, REFUSALS: "".join(sorted(refusals.values()))})
    print(f"{len(chosen)} runs, {len(refusals)} refusals, {RECORDED.stat().st_size // 1024} KiB")


def _run(seed: int) -> tuple[Simulation, Refused] | None:
    refused = Refused()
    run = Simulation.begin(seed, refused).run()
    return (run, refused) if len(run.history) <= LONGEST else None


def _said(action: Action) -> Iterator[str]:
    yield f"{action.action} {action.rule}"
    yield from _parts(action.rule, action.because)
    if isinstance(action, Implement):
        yield f"{action.bounds.risk_level}"
    elif isinstance(action, AskHuman):
        yield f"{action.kind} {action.options}"
        yield from (edit.edit for edit in action.edits)
    elif isinstance(action, Verify):
        yield f"verify {action.recipe is None} {action.isolate} {action.not_before is None}"
    elif isinstance(action, Notify):
        yield f"{action.topic} {action.to}"


def _parts(rule: str, text: str) -> set[str]:
    parts = (part.strip("# )") for part in re.split("[:;(]", _VARYING.sub("#", text)))
    return {f"{rule}: {part}" for part in parts if part and not part.endswith("Error")}


def _fewest(found: dict[int, set[str]], sizes: dict[int, int]) -> Iterator[int]:
    """Yield runs that together cover all parts, choosing the one that adds most for its size each time."""
    left = set[str]().union(*found.values())
    while left:
        best = max(found, key=lambda seed: (len(found[seed] & left) / sizes[seed], -seed))
        left -= found[best]
        yield best


def _lines(run: Simulation) -> Iterable[str]:
    digest = GENESIS
    for number, (event, actions) in enumerate(run.history):
        line, digest = chained(body(number, event, actions), digest)
        yield line + "\n"


def _refusal_text(name: str, after: int, event: Event, refusal: RefusedEvent) -> str:
    held: dict[str, Any] = {
        "run": name,
        "after": after,
        "event": json.loads(event_text(event)),
        "rule": refusal.rule,
        "message": str(refusal),
    }
    return json.dumps(held) + "\n"


if __name__ == "__main__":
    record()
