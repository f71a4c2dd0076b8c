"""Criteria by kind, one file each, evaluated in the parent process, outside of any session.

Each check returns a :class:`~pytest_planverify.checks.result.Judgement`. pytest commands of this
interpreter are not among them: they run in workers; :mod:`pytest_planverify.session.judge` judges them.
"""
