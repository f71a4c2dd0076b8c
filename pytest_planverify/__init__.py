"""Executes the acceptance criteria of a plan and observes what they say.

PYTEST_DONT_REWRITE: nothing here is a test, and sessions find these modules already imported.
"""

import os
import sys


def verify_command(*words: str, start: tuple[str, str] = ("-m", "pytest")) -> list[str]:
    """Return the argument vector of ``pytest --planverify`` in a process of its own.

    ``start`` are the words by which the interpreter starts pytest.
    """
    # -P: a pytest.py in the project must not shadow the real one.
    command = [sys.executable, "-P", *start, "--planverify", *words]
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):  # then the plugin has to be loaded explicitly
        command += ["-p", "pytest_planverify.plugin"]
    return command
