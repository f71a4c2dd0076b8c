"""Every rule of the engine that an action may name, each in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.deciding import DECISION_RULES
from planner.rules.revision import REVISION_RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN: Mapping[str, str] = {
    "ready-todo": "A todo whose dependencies are done is worked on.",
    "claimed-is-verified": "A todo that is said to be done already is verified before anybody works on it.",
    "high-risk-asks-first": "A person agrees before a todo of high risk is begun.",
    "done-means-verified": "When work is said to be done, its criteria are verified.",
    "failed-turn-is-diagnosed": "When the last turn of work failed, a verification tells what is wrong.",
    "retry-by-the-same-role": "A todo is tried again by the same role, up to max_retries.",
    "work-failed": "A turn of work whose worker says that it failed is tried again while retries are left.",
    "turn-timed-out": "A turn of work that takes longer than timeout_seconds is cancelled and has failed.",
    "branch-is-worked-on": "A branch that waits for nothing is worked on.",
    "branch-passed": "When a branch passes, the criteria of its todo are verified again.",
    "branch-rejected": "When a person rejects a branch, they are asked how it goes on.",
    "branch-without-use": "A branch whose todo has come to its end is ended, too.",
    "step-failed": "When a step before a branch fails, the branch is left out and a person decides.",
    "mended-is-verified-again": "A red todo that was made to wait is verified when its wait is over.",
    "approved-edits": "Edits that a person has agreed to are published.",
    "revised-by-person": "A person may change the plan by edits of their own.",
    "criteria-have-changed": "A todo whose criteria have changed is verified against the new ones.",
    "person-grants-a-turn": "A person may grant one more turn of work.",
    "answered-is-verified-again": "When a person has answered, the todo is verified again.",
    "conflict-is-done-anew": "Work that does not fit that of another todo is done anew, behind that todo.",
    "violation-asks": "Where the plan says so, a violation is put before a person instead of a stop.",
    "sub-plan-unfit": "When a sub-plan cannot be loaded, or not be carried out, a person decides.",
    "resumed": "When the driver begins anew, everything that is outstanding is asked for again.",
    "halt-on-consecutive-failures": "Too many todos in a row whose repairs are used up stop everything.",
    "halt-on-identical-failure": "The same failure in an unchanged product, too often, stops everything.",
    "halt-on-flaky-streak": "Too many verifications in a row with both answers stop everything.",
    "halt-on-file-growth": "Too many new files from one turn of work stop everything.",
    "stopped-by-person": "A person may stop everything.",
    "nothing-left": "When nothing can go on and not all todos are done, the run ends.",
    "all-done": "When all todos are done, the run ends.",
    "unfit-plan": "A plan that validation refuses is not carried out.",
}

ENGINE_RULES: Mapping[str, str] = {**REVISION_RULES, **DECISION_RULES, **_OWN}
"""By id. Those of decisions and of revisions count here, too."""
