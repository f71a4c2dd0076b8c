"""The store of runs: an append-only log of events, what is made from it, and what is remembered.

Importing it imports SQLAlchemy: do so only where a store is wanted.
"""

from planner.edges.store.opening import USUAL
from planner.edges.store.projecting import project
from planner.edges.store.remembering import CachedPlan
from planner.edges.store.rows import Rows
from planner.edges.store.store import Store, goal_of
from planner.errors import LineTaken, StoreError

__all__ = ["USUAL", "CachedPlan", "LineTaken", "Rows", "Store", "StoreError", "goal_of", "project"]
