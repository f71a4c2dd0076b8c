"""Contract files: read, and compared with code.

griffe reads the code statically: nothing of a project is imported or run.
"""
