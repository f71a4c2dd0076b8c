"""The kinds of fault that are inserted into published packages: one row a kind."""

from __future__ import annotations

from faults.behaviour import (
    ERROR_KINDS,
    FLOW_KINDS,
    OPERATOR_KINDS,
    PROCESS_KINDS,
    STATE_KINDS,
    VALUE_KINDS,
    WARNING_KINDS,
)
from faults.fault import Kind
from faults.own_tests import DATA_KINDS, TEST_KINDS
from faults.structure import IMPORT_KINDS, INTERFACE_KINDS, SYNTAX_KINDS, TEST_SYNTAX_KINDS

ALL_KINDS: tuple[Kind, ...] = (
    *OPERATOR_KINDS,
    *FLOW_KINDS,
    *ERROR_KINDS,
    *VALUE_KINDS,
    *INTERFACE_KINDS,
    *IMPORT_KINDS,
    *SYNTAX_KINDS,
    *PROCESS_KINDS,
    *STATE_KINDS,
    *WARNING_KINDS,
    *TEST_KINDS,
    *TEST_SYNTAX_KINDS,
    *DATA_KINDS,
)
"""Every kind of fault, in the order of the families."""
