"""Decides what comes next; never executes anything and never writes into the work tree.

PYTEST_DONT_REWRITE: nothing here is a test whose assertions would have to be explained.
"""
