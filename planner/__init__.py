"""The planner: decides what to do next. It never executes anything and never writes into the work tree.

PYTEST_DONT_REWRITE: pytest need not rewrite the assertions of this package, as none is part of a test.
"""
