"""The rules by which edits are called for, each with the sentence that documents it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REVISION_RULES: Mapping[str, str] = {
    "regression-narrows-files": "After a wrong result the branch may change only the folders of the files "
    "that the failure points to.",
    "regression-isolates": "After a wrong result the branch runs the failing tests only; the parent keeps "
    "all of its own.",
    "compilation-checks-syntax-first": "Before a file that did not compile is tested again, its syntax is "
    "checked.",
    "compilation-narrows-files": "When a file does not compile, the branch may change only that file.",
    "types-checked-before-retry": "After a type error a type checker looks at the file before the tests "
    "run again; one that the project does not use yet needs a person's approval.",
    "lint-fixed-first": "What a linter can mend by itself is mended in a step before the branch.",
    "lint-narrows-files": "After complaints of a linter the branch may change only the files that it "
    "complained of.",
    "import-resolved-first": "What cannot be imported is provided in a step before the branch.",
    "contract-settled-first": "When code and contract differ, the architect settles the contract in a step "
    "before the branch.",
    "contract-binds-todo": "A todo that broke a promise which no contract holds is held to one, if a "
    "person agrees.",
    "artifact-named": "The branch is told which file it has to make.",
    "metric-isolates": "When it is known which tests record a metric, the branch runs those only.",
    "timeout-isolates": "A test that passed its limit is run alone.",
    "timeout-raises-limit": "A test that is slow and does not hang may get twice the time, if a person "
    "agrees.",
    "timeout-splits-todo": "A todo with many commands may be split, the slow ones apart, if a person "
    "agrees.",
    "crash-isolates": "A test that ends its process is run alone.",
    "flaky-isolates": "A test that gives both answers is run again, alone.",
    "flaky-quarantines": "A flaky test may be borne for 14 days, if a person agrees.",
    "missing-test-retargets": "A command that names a test which does not exist may name the one that "
    "looks like it, if a person agrees.",
    "missing-test-written": "The branch is told in which file the missing test belongs.",
    "unknown-narrows-files": "While the cause is unknown, the branch may change only what the failure "
    "points to, and has one attempt.",
    "unknown-isolates": "Where an unknown failure points to no file that is less than what may be changed, "
    "the branch runs the failing tests only.",
}
"""Every rule of a revision with what it does, in the order of the strategies."""
