"""Reports of a run: one format a module, all rendered from the outcomes."""
