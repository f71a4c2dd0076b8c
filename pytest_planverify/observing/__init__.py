"""What the session that runs the tests sees of them, written down as journal records.

Everything here is imported into the process that runs somebody's tests, so it imports nothing but the
standard library and pytest, and nothing of :mod:`planner`.
"""
