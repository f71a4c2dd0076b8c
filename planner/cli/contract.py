"""``planner contract``: makes contract files from code, and compares them with code; runs none of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.ending import Status, UsageMistake, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.contracts.generation import Written
    from planner.model.contract import Contract, ContractDifference

RootOption = Annotated[
    Path,
    typer.Option(
        "--root", metavar="DIR", help="The folder that modules are looked for in, and src/ in it."
    ),
]

app = command_app(no_args_is_help=True)


@app.callback()
def contract() -> None:
    """Make contract files from code, and compare them with it.

    A contract says which functions and classes a module promises. It is compared by reading the source;
    nothing is imported or run.
    """


@app.command(epilog="Exit status: 0 written, 2 wrong usage, 4 the module's source cannot be used.")
@ends
def write(
    module: Annotated[str, typer.Argument(metavar="MODULE", help="Its dotted name: indicators.rsi")],
    root: RootOption = Path(),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of printing.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Take in names with an underscore too.")
    ] = False,
) -> int:
    """Make a contract of what a module defines now."""
    from planner.contracts.file import render_contract, write_contract_file
    from planner.contracts.generation import write_contract

    _refuse_strange(module, root)
    if force and output is None:
        raise UsageMistake("--force replaces a file; name it with --output")
    written = write_contract(module, root, private=private)
    _tell_left_out(written)
    if written.contract.is_empty:
        hint = "" if private else "; with --private, names with an underscore are taken in too"
        raise _source_error(f"{module} has no function and no class to promise{hint}")
    if output is None:
        from planner.cli.screen import write as write_out

        write_out(render_contract(written.contract))
        return Status.OK
    if output.parent.exists() and not output.parent.is_dir():
        raise UsageMistake(f"{output.parent} is no folder; name a file in one")
    if output.is_dir():
        raise UsageMistake(f"{output} is a folder; name a file in it")
    if os.path.lexists(output) and not force:
        raise UsageMistake(f"{output} is there already; replace it with --force, or name another file")
    write_contract_file(written.contract, output, replace=force)
    typer.echo(f"{output}: {_counted(written.contract)} of {module}")
    return Status.OK


@app.command(
    epilog="Exit status: 0 the code keeps the contract, 1 it does not or its source cannot tell, "
    "2 wrong usage, 4 the contract cannot be used."
)
@ends
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The contract file.")],
    root: RootOption = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> int:
    """Compare a contract with the code, and say each difference."""
    from planner.contracts.comparison import compare_contract
    from planner.contracts.file import read_contract_file

    promised = read_contract_file(file)
    _refuse_strange(promised.module, root)
    differences = compare_contract(promised, root)
    if as_json:
        _print_json(promised, differences)
    else:
        _print(file, promised, differences)
    return Status.FOUND if differences else Status.OK


def _refuse_strange(module: str, root: Path) -> None:
    if not root.is_dir():
        raise UsageMistake(f"--root {root} is no folder; name the one that the project's modules lie in")
    if module.endswith(".py") or "/" in module:
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        raise UsageMistake(f"'{module}' is a path; write the module's dotted name: {dotted}")


def _source_error(problem: str) -> Exception:
    from planner.errors import ModuleSourceError

    return ModuleSourceError(problem)


def _tell_left_out(written: Written) -> None:
    from planner.text.sanitizing import clean

    for said in written.left_out:
        typer.echo(f"planner: left out: {' '.join(clean(said, limit=400).split())}", err=True)


def _counted(promised: Contract) -> str:
    parts = [
        f"{len(names)} {word if len(names) == 1 else plural}"
        for names, word, plural in (
            (promised.functions, "function", "functions"),
            (promised.classes, "class", "classes"),
        )
        if names
    ]
    return " and ".join(parts)


def _print(file: Path, promised: Contract, differences: Sequence[ContractDifference]) -> None:
    from planner.cli.screen import Screen

    screen = Screen()
    broken = [each for each in differences if not each.is_open]
    for each in differences:
        mark = "cannot be told: " if each.is_open else ""
        if each.why is None or each.expected is None or each.actual is None:
            screen.line(screen.one_line(f"{mark}{each.message}"))
            continue
        screen.line(screen.one_line(f"{each.name} ({each.path}:{each.line}): {each.why}"))
        screen.line(f"contract  {screen.one_line(each.expected)}", indent=4)
        screen.line(f"code      {screen.one_line(each.actual)}", indent=4)
    if not differences:
        screen.line(f"{file}: {promised.module} keeps it ({_counted(promised) or 'schemas only'})")
    else:
        screen.line(f"{file}: {len(broken)} broken, {len(differences) - len(broken)} cannot be told")
    screen.show()


def _print_json(promised: Contract, differences: Sequence[ContractDifference]) -> None:
    import json

    from planner.cli.screen import write as write_out

    found = [each.model_dump(mode="json", exclude_none=True) for each in differences]
    verdict = "kept" if not found else "inconclusive" if differences[0].is_open else "broken"
    document = {"module": promised.module, "verdict": verdict, "differences": found}
    write_out(json.dumps(document, indent=2) + "\n")
