"""A corner shop in small modules."""
