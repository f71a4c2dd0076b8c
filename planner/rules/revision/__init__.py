"""From the category of a failure to the edits of the plan that it calls for.

One strategy a file, behind one table. Every rule that they name stands in :data:`REVISION_RULES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Category
from planner.rules.revision.artifacts import after_missing_artifact
from planner.rules.revision.compilation import after_compilation_error
from planner.rules.revision.contracts import after_spec_mismatch
from planner.rules.revision.imports import after_import_error
from planner.rules.revision.lint import after_lint_error
from planner.rules.revision.metrics import after_unmet_metric
from planner.rules.revision.missing_test import after_missing_test
from planner.rules.revision.regression import after_regression, while_unknown
from planner.rules.revision.repeating import after_crash, after_flaky_test
from planner.rules.revision.sentences import REVISION_RULES
from planner.rules.revision.situation import Situation
from planner.rules.revision.timeouts import after_timeout
from planner.rules.revision.type_check import after_type_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.model.edits import Edit

__all__ = ["REVISION_RULES", "STRATEGIES", "Situation", "revise"]

STRATEGIES: Mapping[Category, Callable[[Situation], Iterator[Edit]]] = {
    Category.TEST_REGRESSION: after_regression,
    Category.TEST_TIMEOUT: after_timeout,
    Category.FLAKY_TEST: after_flaky_test,
    Category.TEST_CRASH: after_crash,
    Category.TEST_NOT_FOUND: after_missing_test,
    Category.COMPILATION_ERROR: after_compilation_error,
    Category.TYPE_ERROR: after_type_error,
    Category.LINT_ERROR: after_lint_error,
    Category.IMPORT_ERROR: after_import_error,
    Category.SPEC_MISMATCH: after_spec_mismatch,
    Category.ARTIFACT_MISSING: after_missing_artifact,
    Category.METRIC_UNMET: after_unmet_metric,
    Category.UNKNOWN: while_unknown,
}
"""What each category calls for. What is not here halts, or is nobody's work: the plan stays as it is."""


def revise(situation: Situation) -> tuple[Edit, ...]:
    """The edits that the failure calls for, in the order in which they apply, after the branch was added.

    Telling the branch what was seen is none of them. The same situation gives the same edits.
    """
    strategy = STRATEGIES.get(situation.failure.category)
    if strategy is None or situation.outcome.success:
        return ()
    return tuple(strategy(situation))
