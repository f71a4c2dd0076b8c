"""Reports of a run: one module for each format, all rendered from the outcomes."""
