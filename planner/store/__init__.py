"""Storage: the log of a run, which is its only record, and an SQL index derived from logs and outcomes.

:mod:`.chain` appends chained lines to a file, :mod:`.lines` serializes events and actions,
:mod:`.run_log` is the log of one run and folds it, :mod:`.session` runs the engine for a driver on such
a log, :mod:`.plan_run` does so for runs started by people. :mod:`.corrections` is the log of
corrections. :mod:`.run_rows` derives rows of the index, :mod:`.index` stores them, :mod:`.questions`
queries them; only these three import SQLAlchemy.
"""
