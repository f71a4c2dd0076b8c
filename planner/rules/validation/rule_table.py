"""The table of rules by which plans are validated: how much each weighs, why it is there and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """One row."""

    severity: Severity
    why: str
    """One sentence."""
    fix: str
    """What helps in general; each finding says it for its own place."""


_E, _W, _A = Severity.ERROR, Severity.WARNING, Severity.ADVICE
_row = ValidationRule

_TESTS = {
    "no-test": _row(
        _W,
        "Files, metrics, contracts and opinions do not show that the code does what it should.",
        "Add a test under acceptance_criteria.tests, or set requires_testing: false.",
    ),
    "test-assumed": _row(
        _W,
        "A todo without criteria is judged by a test found by its name, and there is none yet.",
        "Write the assumed test file, or name the test that shall judge.",
    ),
    "test-file-missing": _row(
        _W,
        "A command whose test file does not exist fails as TEST_NOT_FOUND, and nobody is said to write it.",
        "List the file among the expected_artifacts of the todo that writes it, or mend the path.",
    ),
    "test-missing": _row(
        _W,
        "A selected test that is not in its file fails as TEST_NOT_FOUND.",
        "Write the test, or mend its name.",
    ),
    "unreadable-test": _row(
        _E,
        "A test file that cannot be parsed proves nothing until it is mended.",
        "Mend the file.",
    ),
    "test-not-examined": _row(
        _A,
        "A test file that is too large, or nested too deeply, is not read, so nothing is known of it.",
        "Split the file.",
    ),
}
_HOLLOW = {
    "command-hollow": _row(
        _E,
        "A command that succeeds whatever the work is like proves nothing.",
        "Write a command that runs the work.",
    ),
    "no-tests": _row(
        _E,
        "A selection without a single test can never pass.",
        "Write a test there, or select where the tests are.",
    ),
    "nothing-selected": _row(
        _E,
        "A command whose options leave no test over can never pass.",
        "Mend -k, -m or --deselect.",
    ),
    "criterion-hollow": _row(
        _E,
        "Tests that pass whatever the product does turn a pass into a mere claim.",
        "Let the tests call the product and assert what it gives.",
    ),
    "test-hollow": _row(
        _W,
        "A test that passes whatever the product does hides that something is not tested.",
        "Let the test call the product and assert what it gives.",
    ),
    "tests-skipped": _row(
        _E,
        "Skipped and expectedly failing tests prove nothing, so the criterion never passes.",
        "Remove the mark, or select other tests.",
    ),
    "target-missing": _row(
        _W,
        "A command for a target or script that is not there fails whatever the work is like.",
        "Add the target, or mend its name.",
    ),
}
_REPEATABLE = {
    "unseeded-random": _row(
        _W,
        "A test that draws other numbers every time may give another verdict for the same code.",
        "Seed the generator, or name a fixture with the data.",
    ),
    "wall-clock": _row(
        _W,
        "A test that reads the clock may give another verdict tomorrow.",
        "Freeze the time, pass the moment in, or name a fixture with the data.",
    ),
    "network-access": _row(
        _W,
        "A test that speaks to other machines fails when they do.",
        "Replace the connection by recorded answers, kept as a fixture.",
    ),
    "hash-order": _row(
        _W,
        "The order of a set of texts differs from run to run.",
        "Sort before the order is seen.",
    ),
    "depends-on-last-run": _row(
        _W,
        "A command whose tests depend on the last run proves something else every time.",
        "Leave the option out.",
    ),
    "fixture-not-enough": _row(
        _A,
        "A fixture makes the data repeatable, but not what the test does besides.",
        "Take chance, clock and network out of the test as well.",
    ),
    "fixture-hint": _row(
        _A,
        "A named fixture must exist and its digest is kept, so a change of the data is seen.",
        "Name the data file as the criterion's fixture.",
    ),
    "fixture-unknown": _row(
        _A,
        "Of tests that are not written yet nobody knows whether they will be repeatable.",
        "Name the data that they shall use as the criterion's fixture.",
    ),
}
_ROUTING = {
    "routing-missing": _row(
        _A,
        "Without an entry in failure_routing, the default role acts, who may not be the one you mean.",
        "Add the entry.",
    ),
    "routing-odd": _row(
        _A,
        "A failure that goes to a role that cannot mend it is handed on, or waits.",
        "Name a role that can.",
    ),
}
_LIMITS = {
    "timeout-long": _row(
        _W,
        "A check of more than an hour is seldom run, and holds up everything that waits for it.",
        "Give the check less data, or split it.",
    ),
    "timeout-short": _row(
        _W,
        "Starting pytest and importing the project may take a second, so a good test may time out.",
        "Allow some seconds.",
    ),
    "timeout-above-todo": _row(
        _W,
        "A check that may take longer than a whole turn of work on its todo ends after that turn is over.",
        "Lower the criterion's limit, or raise the todo's.",
    ),
    "todo-seconds-exceeded": _row(
        _E,
        "A todo that asks for more time than max_todo_seconds is split or refused.",
        "Split the todo, or lower its limits.",
    ),
    "retries-none": _row(
        _A,
        "Without retries, the first slip makes a branch todo.",
        "Set max_retries to 2.",
    ),
    "retries-many": _row(
        _W,
        "Who failed ten times will hardly succeed at the eleventh, and each try costs time and tokens.",
        "Set max_retries to 2 or 3.",
    ),
}
_GRAPH = {
    "parent-unknown": _row(
        _E,
        "A branch repairs its parent; without one, nothing is repaired by it.",
        "Name the todo that the branch repairs.",
    ),
    "parent-is-branch": _row(
        _E,
        "parent_id is always the primary todo; via tells the branch that a branch came out of.",
        "Name the primary todo as parent_id, and the branch as via.",
    ),
    "via-unknown": _row(
        _E,
        "via names the branch that a branch came out of; without it, its depth cannot be known.",
        "Name a branch of the same parent.",
    ),
    "via-cycle": _row(
        _E,
        "Branches that came out of each other in a circle have no depth, and no limit stops them.",
        "Remove one via.",
    ),
    "branch-too-deep": _row(
        _E,
        "Beyond max_branch_depth a person is asked instead.",
        "Remove the branch, or raise max_branch_depth.",
    ),
    "branch-waits-for-parent": _row(
        _E,
        "A branch repairs what its parent could not do; if it waits for the parent, neither is ever done.",
        "Remove the dependency.",
    ),
    "dependency-on-branch": _row(
        _W,
        "A branch goes when its parent is mended; what depends on it may wait for ever.",
        "Depend on the parent.",
    ),
    "dependency-implied": _row(
        _A,
        "A dependency that another one implies says nothing, and hides which ones matter.",
        "Remove it.",
    ),
    "dependency-repeated": _row(_A, "Once is enough.", "Remove the repetition."),
    "dependency-missing": _row(
        _W,
        "A file that another todo makes may not be there yet if nothing makes this todo wait for it.",
        "Add the dependency.",
    ),
    "sub-plan-missing": _row(
        _E,
        "A parent's state comes from the todos of its sub-plan; without it there is nothing to prove.",
        "Write the sub-plan, or mend its path.",
    ),
}
_POLICY = {
    "policy-contradiction": _row(
        _W,
        "Two settings that say the opposite leave it to the order of the rules what happens.",
        "Keep the one that you mean.",
    ),
    "safety-off": _row(
        _W,
        "What stops everything is there for the runs that nobody watches.",
        "Leave the condition at its default, and raise its number where it comes too early.",
    ),
    "quarantine-expired": _row(
        _W,
        "After its date a quarantined test counts as failed again.",
        "Mend the test and remove the entry, or agree on another date.",
    ),
}
_TEMPLATE = {
    "template-unknown": _row(
        _W,
        "A template that nobody knows cannot be followed.",
        "Name a known template, or leave x-template out.",
    ),
    "template-step-missing": _row(
        _W,
        "A plan of this kind is not complete without all steps of its template.",
        "Add the step, or leave x-template out.",
    ),
    "template-order": _row(
        _W,
        "Each step of a template builds on the one before.",
        "Put the steps in order, each depending on the one before.",
    ),
    "template-role": _row(
        _A,
        "The template says who usually does a step.",
        "Give the step its usual role.",
    ),
}
_REFERENCES = {
    "contract-missing": _row(
        _E,
        "A contract that is not there cannot be kept, and nobody is said to write it.",
        "Let an architect's todo, on which this one depends, make it.",
    ),
    "contract-invalid": _row(
        _E,
        "A contract that cannot be read cannot be compared with the code.",
        "Mend the contract file.",
    ),
    "contract-empty": _row(
        _W,
        "A contract that promises nothing is kept by any code.",
        "Add functions, classes or schemas.",
    ),
    "fixture-missing": _row(
        _E,
        "A criterion fails while its fixture is missing, and nobody is said to make it.",
        "Add the file, or let a todo make it as an artifact.",
    ),
    "schema-missing": _row(
        _E,
        "An artifact cannot be compared with a schema that is not there.",
        "Add the schema file, or let a todo make it as an artifact.",
    ),
    "schema-invalid": _row(
        _E,
        "A schema that cannot be read accepts nothing.",
        "Mend the schema file.",
    ),
}
_DUPLICATES = {
    "criterion-repeated": _row(
        _W,
        "The same check twice proves nothing more.",
        "Remove one, or let it check what is still unchecked.",
    ),
    "criterion-shared": _row(
        _A,
        "One check for two todos that do not wait for each other cannot tell which of them is done.",
        "Give each todo the tests of its own part.",
    ),
}
_REACH = {
    "outside-allowed-files": _row(
        _E,
        "A todo that may not touch the file that it is judged by cannot be done.",
        "Add the file to allowed_files, or take it out of the criteria.",
    ),
    "protected-artifact": _row(
        _E,
        "Nobody may touch a protected file, so it cannot be made or changed.",
        "Take it out of protected_files, or out of the todo.",
    ),
    "judge-in-reach": _row(
        _W,
        "Who may change the tests that judge the work can pass without doing it.",
        "Take the tests out of allowed_files.",
    ),
    "protected-and-allowed": _row(
        _W,
        "What one list grants and the other forbids is a halt waiting to happen.",
        "Exclude the protected files from allowed_files.",
    ),
    "risk-wide": _row(
        _W,
        "Work of high risk should be able to break little.",
        "List the files that the work needs.",
    ),
}
_SIZE = {
    "todo-too-large": _row(
        _A,
        "A todo with many criteria fails as a whole for one of them, and is hard to repair.",
        "Split it into todos of one part each.",
    ),
    "hierarchy-suggested": _row(
        _A,
        "Many todos on one level are hard to plan, to run and to follow.",
        "Put each phase into a sub-plan of its own.",
    ),
}

_QUALIFIED = {
    "check-vacuous": _row(
        _E,
        "A check that is green before the work, or on a broken tree, is green whatever the work is like.",
        "Add a test that is red now, or let the check assert what the feature gives.",
    ),
    "check-unrunnable": _row(
        _E,
        "A check that cannot be run to an answer never says whether the work is done.",
        "Mend its command, its data file or the environment.",
    ),
    "check-unstable": _row(
        _E,
        "A check that gives both answers on one tree proves nothing by either.",
        "Take chance, clock, network and order out of it.",
    ),
    "check-unqualified": _row(
        _W,
        "Of a check that was never tried out nobody knows whether it can fail.",
        "Qualify the plan again.",
    ),
}
VALIDATION_RULES: Mapping[str, ValidationRule] = {
    **_TESTS,
    **_HOLLOW,
    **_REPEATABLE,
    **_ROUTING,
    **_LIMITS,
    **_GRAPH,
    **_POLICY,
    **_TEMPLATE,
    **_REFERENCES,
    **_DUPLICATES,
    **_REACH,
    **_SIZE,
    **_QUALIFIED,
}
"""By the id of a rule, what it is."""
