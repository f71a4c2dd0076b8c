"""Small projects, and what can be wrong around them: the material of the groups environment and guard."""
