"""Small projects, and faults of their environment: the material of the groups environment and guard."""
