"""Journals and folders of killed runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from planner.model.evidence import Evidence
from planner.model.journal import CheckRun
from planner.model.outcome import Check
from planner.model.verdicts import CheckKind, EvidenceKind, Verdict
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.observe.spec import Narrowing
from pytest_planverify.options import PlanArgument, Settings
from pytest_planverify.session.last_verdicts import start_reading
from pytest_planverify.session.plans import ChosenPlan, load_plans, reference_of
from pytest_planverify.session.run_folder import RunFolder, RunJournal

PLAN = "killed"
ITEMS = (
    {
        "id": "a",
        "title": "A",
        "acceptance_criteria": {
            "tests": [{"cmd": "pytest test_a.py"}, {"cmd": "python make.py"}],
            "expected_artifacts": ["made.txt"],
        },
    },
    {"id": "b", "title": "B", "acceptance_criteria": {"tests": [{"cmd": "pytest test_b.py"}]}},
    {
        "id": "c",
        "title": "C",
        "dependencies": ["b"],
        "acceptance_criteria": {"tests": [{"cmd": "pytest test_c.py"}]},
    },
)
KINDS = {("a", "tests[1]"): CheckKind.COMMAND, ("a", "expected_artifacts[0]"): CheckKind.ARTIFACT}


def settings(**given: Any) -> Settings:
    """Return the settings of a command line with only a plan."""
    usual: dict[str, Any] = {
        "scope": "all",
        "confirmations": 5,
        "narrowing": Narrowing(),
        "maxfail": 0,
        "worker_args": (),
    }
    fields = dataclasses.fields(Settings)
    usual |= {field.name: False for field in fields if field.type == "bool"}
    return Settings(**{field.name: given.get(field.name, usual.get(field.name)) for field in fields})


def plan_in(root: Path, *items: dict[str, Any]) -> ChosenPlan:
    """Write the plan unless it exists, and load it."""
    file = root / "plan.yaml"
    if not file.exists():
        file.write_text(json.dumps({"todo_list_id": PLAN, "items": list(items or ITEMS)}))
    (chosen,) = load_plans([PlanArgument(file, file.name, (), root)])
    return chosen


class Killed:
    """A started run whose verdicts are recorded one by one."""

    def __init__(
        self,
        root: Path,
        run_id: str = "20260101T000000-1-a",
        baseline: KeptBaseline | None = None,
        **given: Any,
    ) -> None:
        self.root = root
        self.chosen = plan_in(root)
        self.folder = RunFolder(root, run_id)
        self.folder.create()
        self.own = (self.chosen.plan.path,)
        self.journal = RunJournal(self.folder.journal, PLAN, start_reading([root], self.own))
        self.journal.open(run_id, reference_of(self.chosen.flat, "plan.yaml"), settings(**given), baseline)

    def judged(
        self, todo_id: str, check_id: str = "tests[0]", verdict: str = "passed", *, final: bool = True
    ) -> Killed:
        """Record a verdict."""
        evidence = (Evidence(kind=EvidenceKind.TEST, check_id=check_id, headline="assert 1 == 2"),) * (
            verdict == "failed"
        )
        check = Check(
            id=check_id,
            kind=KINDS.get((todo_id, check_id), CheckKind.TEST),
            verdict=Verdict(verdict),
            cmd="pytest",
        )
        run = CheckRun(check=check, evidence=evidence, properties=(("rows", 3),))
        self.journal.check_judged(todo_id, run, final=final)
        return self
