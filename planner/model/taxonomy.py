"""The failure taxonomy: categories, with their usual owners and the roles that act on them.

The table :data:`CATEGORIES` is the only place that relates a category to its family, routing key,
default role and usual owner.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Role(StrEnum):
    """The role that acts on a todo or a failure."""

    CODER = "coder"
    ARCHITECT = "architect"
    TESTER = "tester"
    DEBUGGER = "debugger"
    PLANNER = "planner"
    HUMAN = "human"


class Owner(StrEnum):
    """The owner of a failure."""

    PRODUCT = "product"
    TEST = "test"
    PLAN = "plan"
    ENVIRONMENT = "environment"
    HARNESS = "harness"
    UNKNOWN = "unknown"


class Repeatability(StrEnum):
    """Repeatability of a failure over runs of the same code."""

    DETERMINISTIC = "deterministic"
    """It failed in every run, at least two."""
    FLAKY = "flaky"
    """The same code passed and failed."""
    UNCONFIRMED = "unconfirmed"
    """Observed only once."""


class Family(StrEnum):
    """Groups of categories, most severe first: the most severe family decides a todo's routing."""

    SANDBOX = "sandbox"
    BUDGET = "budget"
    ENVIRONMENT = "environment"
    COMPILE = "compile"
    CONTRACT = "contract"
    TEST = "test"
    UNKNOWN = "unknown"

    @property
    def severity(self) -> int:
        """Rank of the family; 0 is the most severe."""
        return list(Family).index(self)


class RoutingKey(StrEnum):
    """The keys of a todo's ``failure_routing``; also reasons of branches."""

    IMPLEMENTATION_BUG = "implementation_bug"
    SPEC_MISMATCH = "spec_mismatch"
    TIMEOUT = "timeout"
    FLAKY_TEST = "flaky_test"
    MISSING_DEPENDENCY = "missing_dependency"


class BranchReason(StrEnum):
    """Why a branch was created: a routing key, or ``test_failure`` if the category has none."""

    TEST_FAILURE = "test_failure"
    SPEC_MISMATCH = "spec_mismatch"
    TIMEOUT = "timeout"
    IMPLEMENTATION_BUG = "implementation_bug"
    MISSING_DEPENDENCY = "missing_dependency"
    FLAKY_TEST = "flaky_test"


class Category(StrEnum):
    """The category of a failure."""

    TEST_REGRESSION = "TEST_REGRESSION"
    TEST_TIMEOUT = "TEST_TIMEOUT"
    FLAKY_TEST = "FLAKY_TEST"
    TEST_CRASH = "TEST_CRASH"
    TEST_NOT_FOUND = "TEST_NOT_FOUND"
    COMPILATION_ERROR = "COMPILATION_ERROR"
    TYPE_ERROR = "TYPE_ERROR"
    LINT_ERROR = "LINT_ERROR"
    IMPORT_ERROR = "IMPORT_ERROR"
    SPEC_MISMATCH = "SPEC_MISMATCH"
    ARTIFACT_MISSING = "ARTIFACT_MISSING"
    METRIC_UNMET = "METRIC_UNMET"
    SANDBOX_VIOLATION = "SANDBOX_VIOLATION"
    HYGIENE_VIOLATION = "HYGIENE_VIOLATION"
    ALLOWLIST_VIOLATION = "ALLOWLIST_VIOLATION"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    ENVIRONMENT_ERROR = "ENVIRONMENT_ERROR"
    HARNESS_ERROR = "HARNESS_ERROR"
    UNKNOWN = "UNKNOWN"

    @property
    def facts(self) -> CategoryFacts:
        """This category's row of the table."""
        return CATEGORIES[self]


class CategoryFacts(NamedTuple):
    """One row of the taxonomy."""

    family: Family
    routing_key: RoutingKey | None
    default_role: Role
    usual_owner: Owner
    overrides_key: bool = False
    """The category's default role differs from that of its routing key, and takes precedence over it."""


_K = RoutingKey
CATEGORIES: dict[Category, CategoryFacts] = {
    Category.TEST_REGRESSION: CategoryFacts(Family.TEST, _K.IMPLEMENTATION_BUG, Role.CODER, Owner.PRODUCT),
    Category.TEST_TIMEOUT: CategoryFacts(Family.TEST, _K.TIMEOUT, Role.TESTER, Owner.PRODUCT),
    Category.FLAKY_TEST: CategoryFacts(Family.TEST, _K.FLAKY_TEST, Role.TESTER, Owner.TEST),
    Category.TEST_CRASH: CategoryFacts(
        Family.TEST, _K.IMPLEMENTATION_BUG, Role.DEBUGGER, Owner.PRODUCT, overrides_key=True
    ),
    Category.TEST_NOT_FOUND: CategoryFacts(
        Family.TEST, _K.SPEC_MISMATCH, Role.TESTER, Owner.PLAN, overrides_key=True
    ),
    Category.COMPILATION_ERROR: CategoryFacts(
        Family.COMPILE, _K.IMPLEMENTATION_BUG, Role.CODER, Owner.PRODUCT
    ),
    Category.TYPE_ERROR: CategoryFacts(Family.COMPILE, _K.IMPLEMENTATION_BUG, Role.CODER, Owner.PRODUCT),
    Category.LINT_ERROR: CategoryFacts(Family.COMPILE, _K.IMPLEMENTATION_BUG, Role.CODER, Owner.PRODUCT),
    Category.IMPORT_ERROR: CategoryFacts(Family.COMPILE, _K.MISSING_DEPENDENCY, Role.CODER, Owner.PRODUCT),
    Category.SPEC_MISMATCH: CategoryFacts(Family.CONTRACT, _K.SPEC_MISMATCH, Role.ARCHITECT, Owner.PRODUCT),
    Category.ARTIFACT_MISSING: CategoryFacts(
        Family.CONTRACT, _K.MISSING_DEPENDENCY, Role.CODER, Owner.PRODUCT
    ),
    Category.METRIC_UNMET: CategoryFacts(Family.CONTRACT, _K.IMPLEMENTATION_BUG, Role.CODER, Owner.PRODUCT),
    Category.SANDBOX_VIOLATION: CategoryFacts(Family.SANDBOX, None, Role.HUMAN, Owner.PRODUCT),
    Category.HYGIENE_VIOLATION: CategoryFacts(Family.SANDBOX, None, Role.HUMAN, Owner.PRODUCT),
    Category.ALLOWLIST_VIOLATION: CategoryFacts(Family.SANDBOX, None, Role.HUMAN, Owner.PLAN),
    Category.BUDGET_EXCEEDED: CategoryFacts(Family.BUDGET, None, Role.HUMAN, Owner.PLAN),
    Category.ENVIRONMENT_ERROR: CategoryFacts(Family.ENVIRONMENT, None, Role.HUMAN, Owner.ENVIRONMENT),
    Category.HARNESS_ERROR: CategoryFacts(Family.ENVIRONMENT, None, Role.HUMAN, Owner.HARNESS),
    Category.UNKNOWN: CategoryFacts(Family.UNKNOWN, None, Role.DEBUGGER, Owner.UNKNOWN),
}
"""The categories with their family, routing key, default role and usual owner."""
