"""The frame of the command: its help costs little more than the library that prints it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLAN = Path(__file__).parents[3] / "examples" / "rsi_bug" / "plan.yaml"


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

    assert "Show what comes next" in done.stdout
    assert done.stderr == "[] ['planner.cli.app', 'planner.cli.exits']\n"


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("next", {"planner.lint", "planner.model.baseline", "planner.model.contract"}),
        ("validate", {"planner.engine", "planner.store", "planner.model.actions", "planner.model.outcome"}),
    ],
)
def test_a_frequent_command_imports_only_what_it_needs(command: str, unneeded: set[str]) -> None:
    heavy = {"sqlalchemy", "griffe", "jsonschema", "jinja2", "rich", "ruamel", "prometheus_client"}
    code = f"""\
import sys
sys.argv = ["planner", "{command}", "{PLAN}", *sys.argv[1:]]
from planner.cli import main
try:
    main()
finally:
    print(sorted({heavy | unneeded} & {{*sys.modules}}), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert done.stderr == "[]\n"


def test_no_validator_is_built_while_the_vocabulary_is_imported() -> None:
    """A validator takes milliseconds to build, and most commands need few of a hundred."""
    code = """\
from pydantic import BaseModel
import planner.model.actions, planner.model.baseline, planner.model.events, planner.model.journal
classes = [BaseModel]
for each in classes:
    classes += each.__subclasses__()
ours = [each for each in classes if each.__module__.startswith("planner.model")]
print(len(ours) > 80, [each.__name__ for each in ours if each.__pydantic_complete__])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "True []\n"
