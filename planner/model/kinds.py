"""Enumerations of the evidence that are needed where it is observed; they import nothing else."""

from __future__ import annotations

from enum import StrEnum


class EvidenceKind(StrEnum):
    """What was looking when the failure was seen."""

    TEST = "test"
    """A test's set-up, call or teardown."""
    COLLECTION = "collection"
    """The collection of a test file, or the loading of a conftest."""
    SELECTION = "selection"
    """A command that selected no test, a missing id or file, or only tests that prove nothing."""
    SESSION = "session"
    """The session itself: usage errors, internal errors, an unexplained exit status, a death."""
    COMMAND = "command"
    """A command that is not pytest."""
    ARTIFACT = "artifact"
    METRIC = "metric"
    FIXTURE = "fixture"
    """The data file that a criterion names."""
    CONTRACT = "contract"
    MANUAL = "manual"
    HYGIENE = "hygiene"
    """What judges the work was changed, or the work was made to please its judge."""
    SANDBOX = "sandbox"
    """Something was reached for that the plan denies."""
    ALLOWLIST = "allowlist"
    """Files were changed that no todo may change."""
    BUDGET = "budget"
    """The run used more than the plan grants."""


class Phase(StrEnum):
    """When in the life of a test it was seen."""

    COLLECT = "collect"
    SETUP = "setup"
    CALL = "call"
    TEARDOWN = "teardown"
    SESSION = "session"


class Side(StrEnum):
    """Whose file a frame is in."""

    TEST = "test"
    """A test module, a conftest, or a module beside them that only tests use."""
    PRODUCT = "product"
    """The project's own code, wherever it is installed."""
    THIRD_PARTY = "third_party"
    STDLIB = "stdlib"
    FRAMEWORK = "framework"
    """pytest, its plugins, and this plugin."""


class Hardness(StrEnum):
    """How much a sign of tampering weighs: one hard sign is enough, of soft ones two are needed."""

    HARD = "hard"
    SOFT = "soft"


class Purpose(StrEnum):
    """What a tool is run for."""

    TEST = "test"
    LINT = "lint"
    TYPE_CHECK = "type_check"
    BUILD = "build"
    VALIDATE = "validate"
