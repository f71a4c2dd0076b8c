"""The log of a run, which is the only record of it, and the SQL index that is made from logs and outcomes.

``chain`` appends lines to a file, ``lines`` writes events and actions as such lines, ``run_log`` is the log
of one run and folds it again, ``session`` drives the run that is kept there, ``plan_run``
takes up what the last run of a plan has found. ``corrections`` is the log of what people corrected.
``run_rows`` makes rows of the index, ``index`` keeps them, ``questions`` asks them; these three import
SQLAlchemy, and nothing else does.
"""
