"""The frame of the command: its help costs little more than the library that prints it."""

from __future__ import annotations

import subprocess
import sys


def test_help_imports_no_command_and_nothing_that_only_commands_need() -> None:
    code = """\
import sys
sys.argv = ["planner", "--help"]
from planner.cli import main
try:
    main()
finally:
    heavy = {"pydantic", "yaml", "ruamel", "sqlalchemy", "prometheus_client", "rich", "planner.engine"}
    heavy |= {"jsonschema", "griffe"}
    named = {name for name in sys.modules if name.startswith("planner.cli.")}
    print(sorted(heavy & {*sys.modules}), sorted(named), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "What comes next" in done.stdout
    assert done.stderr == "[] ['planner.cli.app', 'planner.cli.exits']\n"
