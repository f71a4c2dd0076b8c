"""Executes the acceptance criteria of a plan and observes what they say.

PYTEST_DONT_REWRITE: nothing here is a test, and sessions find these modules already imported.
"""

import os
import subprocess
import sys
from typing import Any

_OWN_PATH = "import sys; sys.flags.safe_path or sys.path.pop(0)\nimport runpy\n"
"""runpy is imported last, as it imports modules of names that a project may use, such as types."""


def interpreter_flags() -> list[str]:
    """Return the options of this interpreter, such as ``-O`` or ``-W error``, as multiprocessing does."""
    system: Any = subprocess
    return system._args_from_interpreter_flags()


def python_command(code: str) -> list[str]:
    """Return the argument vector that runs code without modules of the working directory.

    ``runpy`` and ``sys`` are imported. The options are those of this interpreter, as in forked workers. No
    -P is added, which tests would pass on with the flags of their interpreter: a process that they start
    could not import the project.
    """
    return [sys.executable, *interpreter_flags(), "-c", _OWN_PATH + code]


def module_code(name: str) -> str:
    """Return the code that runs a module as ``python -m`` does."""
    return f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"


def verify_command(*words: str, code: str = module_code("pytest")) -> list[str]:
    """Return the argument vector of ``pytest --planverify`` in a process of its own.

    ``code`` starts pytest.
    """
    # Without modules of the working directory, as a pytest.py there must not shadow the real one.
    command = [*python_command(code), "--planverify", *words]
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):  # then the plugin has to be loaded explicitly
        command += ["-p", "pytest_planverify.plugin"]
    return command
