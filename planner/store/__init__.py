"""The log of a run, which is the only record of it, and the SQL index that is made from logs and outcomes.

``chain`` appends lines to a file, ``lines`` writes events and actions as such lines, ``run_log`` is the log
of one run, ``session`` drives a run that is kept there, ``recorded_run`` folds it again. ``corrections`` is
the log of what people corrected. ``tables`` are those of the index, ``run_rows`` makes rows of them,
``index`` keeps them, ``questions`` asks them; these four import SQLAlchemy, and nothing else does.
"""
