"""How to go about a repair: what the kind of check asks for, where not to repair, and when to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind
from planner.rules.instructions.advice import Hint

if TYPE_CHECKING:
    from collections.abc import Mapping

_C = Category

CHECK_HINTS: Mapping[CheckKind, tuple[Hint, ...]] = {
    CheckKind.SUB_PLAN: (
        Hint(
            "The failure lies in a todo of the plan below: {sub_plan}. Repair that todo; this "
            "one follows from it."
        ),
    ),
    CheckKind.MANUAL: (
        Hint("A person answered the question with no: find out what they saw before you change anything."),
    ),
}

HALTING = frozenset(
    (
        _C.SANDBOX_VIOLATION,
        _C.HYGIENE_VIOLATION,
        _C.ALLOWLIST_VIOLATION,
        _C.BUDGET_EXCEEDED,
        _C.ENVIRONMENT_ERROR,
        _C.HARNESS_ERROR,
    )
)
"""Where a repair of the code is not what is called for."""

TESTS_MAY_CHANGE = frozenset((_C.FLAKY_TEST, _C.TEST_NOT_FOUND))
"""Where the tests themselves may be what has to change."""

STOP: tuple[Hint, ...] = (
    Hint(
        "The test, the contract or the plan contradicts the purpose of the todo, or another "
        "of them: do not bend the code to a wrong expectation.",
        ("repairable",),
    ),
    Hint("The repair needs a file that you may not change, a new dependency, the network, or a secret."),
    Hint(
        "{attempts} attempts have not changed the failure, or each one breaks something else.",
        ("repairable",),
    ),
    Hint("The failure that you see when you run the command is another one than is described here."),
    Hint(
        "The only way that you see is to skip, weaken, delete or special-case the check.", ("repairable",)
    ),
)

TEST_AT_FAULT = Hint(
    "The test itself seems to be wrong: compare what it does with what the todo is for before "
    "you change either."
)
