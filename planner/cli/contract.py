"""``planner contract write``: write contract files from code.

The source is read statically (see :mod:`planner.contracts`); no module is imported or run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.app import CommandGroup, command_app
from planner.cli.arguments import option
from planner.cli.exits import Status, UsageMistake, complain, say
from planner.cli.screen import write as write_out
from planner.contracts.file import render_contract, write_contract
from planner.errors import ModuleSourceError
from planner.planfile.file_writer import create_file, write_file
from planner.text.display import counted

app = command_app(cls=CommandGroup, no_args_is_help=True)


@app.callback()
def contract() -> None:
    """Write contract files from code.

    A contract states the functions and classes of a module. ``pytest --planverify`` compares the contracts
    that todos name in ``contract_path`` with the source; nothing is imported or run.
    """


@app.command(epilog="Exit status: 0 written, 2 wrong usage, 4 the source of the module cannot be used.")
def write(
    module: Annotated[
        str, typer.Argument(metavar="MODULE", help="The dotted name of the module: indicators.rsi")
    ],
    root: Annotated[
        Path, option("--root DIR", "The folder in which modules are searched for, also in its src/.")
    ] = Path(),
    output: Annotated[Path | None, option("--output, -o FILE", "Write here instead of printing.")] = None,
    force: Annotated[bool, option("--force", "Replace an existing file.")] = False,
) -> int:
    """Write a contract of what a module defines now."""
    if not root.is_dir():
        raise UsageMistake(
            f"--root {root} is not a folder; name the folder with the modules of the project"
        )
    if module.endswith(".py") or "/" in module:
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        raise UsageMistake(f"'{module}' is a path; write the module's dotted name: {dotted}")
    made, left_out = write_contract(module, root)
    for reason in left_out:
        complain(f"left out: {reason}")
    # A contract that promises nothing would hold for any module.
    if made.is_empty:
        raise ModuleSourceError(f"{module} defines no public function or class")
    if output is None:
        write_out(render_contract(made))
        return Status.OK
    # A folder is not replaced by a file, even with --force.
    if os.path.lexists(output) and (not force or output.is_dir()):
        raise UsageMistake(f"{output} exists already; replace it with --force, or name another file")
    if force:
        write_file(output, render_contract(made), mode=None)
    else:
        create_file(output, render_contract(made))
    parts = ((made.functions, "function"), (made.classes, "class"))
    counts = " and ".join(counted(len(names), noun) for names, noun in parts if names)
    say(f"{output}: {counts} of {module}")
    return Status.OK
