"""Storage: the log of a run, which is its only record, and an SQL index derived from logs and outcomes.

:mod:`.chain` appends chained lines to a file, :mod:`.run_log` is the log of one run and folds it,
:mod:`.session` runs the engine on such a log for a driver, :mod:`.plan_run` does so for people without a
driver. :mod:`.corrections` is the log of corrections.
:mod:`.run_rows` derives rows of the index, :mod:`.index` stores and queries them; only that imports
SQLAlchemy.
"""
