"""What a person or a program reads of a run: one format a module, all rendered from the outcomes."""
