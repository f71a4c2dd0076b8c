"""Decides what comes next; never executes anything and never writes into the work tree."""
