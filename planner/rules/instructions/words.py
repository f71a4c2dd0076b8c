"""The words of the vocabulary as a newcomer understands them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Owner, Repeatability
from planner.model.verdicts import CheckKind, Since

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECK_WORDS: Mapping[CheckKind, str] = {
    CheckKind.TEST: "a pytest command",
    CheckKind.COMMAND: "a command",
    CheckKind.ARTIFACT: "a file that must be there",
    CheckKind.METRIC: "a number that the tests must record",
    CheckKind.CONTRACT: "a contract that the code must keep",
    CheckKind.MANUAL: "a question to a person",
    CheckKind.SUB_PLAN: "a plan below this one",
    CheckKind.GUARD: "a rule that every todo is held to",
}

OWNERS: Mapping[Owner, str] = {
    Owner.PRODUCT: "the project's code",
    Owner.TEST: "the test",
    Owner.PLAN: "the plan",
    Owner.ENVIRONMENT: "the environment",
    Owner.HARNESS: "the verifier",
    Owner.UNKNOWN: "not known",
}

REPEATABILITY: Mapping[Repeatability, str] = {
    Repeatability.DETERMINISTIC: "red every time that it was run",
    Repeatability.FLAKY: "now red, now green",
    Repeatability.ORDER_DEPENDENT: "red in the company of other tests, green alone",
    Repeatability.HASH_ORDER: "red with some hash seeds, green with others",
    Repeatability.UNCONFIRMED: "seen once",
}

SINCE: Mapping[Since, str] = {
    Since.NEW: "It was green before the work began, or not there.",
    Since.PRE_EXISTING: "It was red already before the work began: this todo did not cause it.",
    Since.FIXED: "It was red before the work began.",
    Since.FLAKY_AT_BASE: "It was flaky already before the work began.",
}
