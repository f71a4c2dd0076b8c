"""The kinds of fault that are put into published packages: one module a family, one row a kind."""

from __future__ import annotations

from faults import (
    data_files,
    errors,
    flow,
    imports,
    interfaces,
    operators,
    own_tests,
    processes,
    state,
    syntax,
    values,
    warned,
)
from faults.fault import Kind

ALL_KINDS: tuple[Kind, ...] = (
    *operators.KINDS,
    *flow.KINDS,
    *errors.KINDS,
    *values.KINDS,
    *interfaces.KINDS,
    *imports.KINDS,
    *syntax.KINDS,
    *processes.KINDS,
    *state.KINDS,
    *warned.KINDS,
    *own_tests.KINDS,
    *syntax.TEST_KINDS,
    *data_files.KINDS,
)
"""Every kind of fault, in the order of the families."""
