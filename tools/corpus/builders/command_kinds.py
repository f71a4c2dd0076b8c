"""Every kind of fault that a command criterion meets.

The label of a kind follows from what was done to the project, the plan or the machine. A tool's words are
never asked.
"""

from __future__ import annotations

from javascript_kinds import JAVASCRIPT_KINDS
from native_kinds import NATIVE_KINDS
from python_tool_kinds import PYTHON_KINDS
from surrounding_kinds import SURROUNDING_KINDS
from tool_kinds import Kind

ALL_KINDS: tuple[Kind, ...] = (*PYTHON_KINDS, *JAVASCRIPT_KINDS, *NATIVE_KINDS, *SURROUNDING_KINDS)
