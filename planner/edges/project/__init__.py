"""The project that a plan is about: its files, found, bounded and confined to the plan's root."""
