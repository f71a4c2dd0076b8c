"""Contract files, and the code that they are compared with or written from.

griffe reads the code statically: nothing of a project is imported or run.
"""
