"""Every rule of the engine that an action may name, each in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.revise.strategies import REVISION_RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

POLICY_RULES: Mapping[str, str] = {
    "failed-todo-gets-a-branch": "A todo whose criteria failed gets a branch todo, for the role that its "
    "failure is routed to.",
    "deeper-branch": "A branch that passes while its parent is still red is followed by a deeper one.",
    "branch-has-attempts-left": "A branch that is still red is worked on again, up to max_debug_attempts.",
    "branch-limit": "No more than max_concurrent_branches branches are open at once; the others wait.",
    "shared-cause": "Todos that fail by one cause get one branch; the others are verified when it passes.",
    "branch-depth": "Branches are nested no deeper than max_branch_depth; after that a person decides.",
    "attempts-used-up": "A branch that is red after max_debug_attempts attempts goes to a person.",
    "branch-lifetime": "A branch that is red max_lifetime_seconds after work on it began goes to a person.",
    "branches-in-a-circle": "A branch that waits for the todo that it repairs goes to a person.",
    "pre-existing-failure": "What failed before the work began becomes a todo of its own: no blame.",
    "environment-blames-nobody": "What the environment lacks is no role's work: it is verified later.",
    "harness-blames-nobody": "When the run itself went wrong, nothing is concluded about the work.",
    "inconclusive-is-verified-again": "What a run could not tell is verified again.",
    "demand-proves-nothing": "A demand that no run can prove, whatever the work, goes to a person.",
    "question-is-open": "A question of the plan waits for a person's answer.",
    "children-first": "A parent is verified after the todos of its sub-plan.",
    "halt-on-violation": "A violation of the sandbox, of hygiene or of the allowed files stops everything.",
    "halt-on-budget": "A budget that is used up stops everything.",
    "many-failed-branches": "More failed branches than notify_after_n_failures: a person hears of it.",
    "revision-conflict": "Where a strategy's edits do not fit the plan, the branch is made without.",
    "verified-unasked": "A verification that judges a todo ends the turn of work that was asked for.",
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

ENGINE_RULES: Mapping[str, str] = {**REVISION_RULES, **POLICY_RULES}
"""By id. Those of revisions count here, too."""

REFUSALS: Mapping[str, str] = {
    "illegal-transition": "An event may only bring a todo, or the plan, where its life cycle leads.",
    "run-is-over": "A run that is completed, halted or rejected takes in nothing more.",
    "run-not-started": "Nothing is told before run_started.",
    "plan-is-submitted": "A plan is submitted once, as the first event.",
    "unknown-todo": "An event names a todo of the plan, qualified by its parents.",
    "unknown-plan": "A revision names a plan that is loaded.",
    "another-plan": "An outcome of another plan says nothing of this one.",
    "no-proof": "A todo is done by a verification that has a check of each of its criteria.",
    "late-answer": "The answer to an action that no longer counts is not taken for that to a later one.",
    "stale-verification": "A verification counts if it is of the criteria that judge the todo now.",
    "stale-approval": "An approval counts for what was shown to the person, and for nothing else.",
    "no-such-question": "An answer names a question that is open.",
    "no-such-approval": "An approval names something that is to be approved.",
    "no-such-answer": "An answer is one of the options of its question.",
    "no-such-decision": "A decision is one of the options of what is to be approved.",
    "no-such-change": "At the start of a todo a person changes what it is told, and narrows its files.",
    "no-wider-files": "Files may be narrowed, and not widened.",
    "no-attempts": "A branch has at least one attempt.",
    "no-branch-by-hand": "Branches are made by the engine, which counts and ends them.",
    "no-conflict": "A conflict is between two todos.",
    "todo-is-gone": "Nothing can wait for a todo that will never be done.",
    "revision-conflict": "An edit has to fit the plan as it is.",
    "unfit-edit": "An event may say nothing of a plan that a plan file may not.",
    "unfit-event": "An event holds what its schema asks for.",
    "unknown-event": "An event is one of those of the protocol.",
    "unreadable-line": "A line is one JSON object in UTF-8, of bounded length.",
}
"""The rules by which an event is refused; no action bears them."""
