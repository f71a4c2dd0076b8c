"""Signals of tampering, gathered inside a worker: who has replaced what judges, or what it reported.

Imports nothing of :mod:`pytest_planverify.observe`, which registers the observer. What it finds is compared
with the baseline by :mod:`pytest_planverify.guards.session_signals`.
"""
