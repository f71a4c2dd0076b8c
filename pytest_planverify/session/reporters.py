"""The reporters of the user, over all workers of a run: are there any, and what do they say at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.session.reporter_options import initial_conftests, is_reporting_needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pytest

    from planner.model.outcome import Check, Outcome, OutcomeDocument
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.session.reporter_options import GivenOptions
    from pytest_planverify.session.reporting import ReportingResult


class Reporting:
    """The reports of one run."""

    def __init__(self, config: pytest.Config, *, wanted: bool = True) -> None:
        """Nothing is reported of a run that is not ``wanted`` by a user, but made to be compared with."""
        self._config = config
        self._wanted = wanted
        self._needed: bool | None = None
        self._given: GivenOptions | None = None
        self.relays: dict[str, Path] = {}
        """By criterion, the file of its worker's serialized reports."""

    def is_needed(self, given: GivenOptions, root: str, selections: Iterable[str]) -> bool:
        """Return whether anybody asks for the reports, as the first command of the run shows."""
        if self._needed is None:
            from pathlib import Path

            self._given = given
            plugins = self._config.pluginmanager.list_name_plugin()
            conftests = initial_conftests(Path(root), selections)
            self._needed = self._wanted and is_reporting_needed(given, plugins, conftests)
        return self._needed

    def report(
        self,
        document: OutcomeDocument,
        plans: Sequence[FlatPlan],
        *,
        scratch: Path,
        started: float,
        script_paths: tuple[str, ...],
        color: bool,
    ) -> ReportingResult | None:
        """Let the reporters tell of all criteria. Return what they say; ``None`` where there are none.

        ``scratch`` is the folder that workers left their reports in, ``started`` when the run began, in
        seconds since 1970.
        """
        if not self._needed or self._given is None:
            return None
        from pytest_planverify.session.criterion_reports import criterion_results
        from pytest_planverify.session.reporting import reporting_spec, run_reporting_session
        from pytest_planverify.session.schedule import criterion_key

        flats = {each.loaded.plan.todo_list_id: each for each in plans}

        def root_of(outcome: Outcome) -> Path:
            return flats[outcome.plan or ""].owner(outcome.todo_id).root

        def relay_of(outcome: Outcome, check: Check) -> Path | None:
            owner = flats[outcome.plan or ""].owner(outcome.todo_id)
            return self.relays.get(criterion_key(owner, outcome.todo_id, check.id))

        selections = [
            text
            for each in plans
            for criteria in each.loaded.criteria.values()
            for criterion in criteria
            if criterion.command is not None and criterion.command.pytest is not None
            for text in criterion.command.pytest.selections
        ]
        spec = reporting_spec(
            self._given,
            root=plans[0].loaded.root,
            selections=selections,
            criteria=criterion_results(document, roots=root_of, relays=relay_of),
            scratch=scratch,
            started=started,
            python_path=script_paths,
            color=color,
        )
        return run_reporting_session(spec)
