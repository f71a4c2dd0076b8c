"""The only modules that know YAML, JSON files and paths."""
