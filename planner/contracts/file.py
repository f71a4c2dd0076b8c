"""Reads and writes contract files; whatever is wrong with one is said with its line and column."""

from __future__ import annotations

import difflib
import json
import stat
from typing import TYPE_CHECKING, Any, cast

from planner.errors import ContractFileError
from planner.model.base import Value
from planner.model.contract import CONTRACT_VERSION, Contract
from planner.planfile.confinement import Confinement
from planner.planfile.document import Document, Fault, Refused, compose, decode, plan_file_error
from planner.planfile.file_writer import create_file, write_file
from planner.planfile.values import fields_of, read_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024
"""The size of the largest contract that is read."""

MAX_SIBLINGS = 5_000
"""Names of a folder that are looked at for look-alikes."""

WIDTH = 100
"""What fits into so many characters is written on one line."""


def read_contract_file(path: Path, *, root: Path | None = None) -> Contract:
    """Read a contract. Raises :class:`planner.errors.ContractFileError` with every fault of the file.

    With a ``root``, the path is relative to it and must stay below it.
    """
    shown = path.as_posix()
    try:
        file = path if root is None else _below(root, path)
        document = compose(decode(_bytes(file)), is_json=True)
        contract = _contract(document)
        if document.faults:
            raise Refused("", tuple(document.faults))
        return contract
    except Refused as refused:
        faults = refused.faults
    except (OSError, ValueError, RecursionError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        faults = (Fault(problem=f"the file cannot be read ({cause}); check the path"),)
    raise ContractFileError(shown, plan_file_error(shown, faults).faults)


def render_contract(contract: Contract) -> str:
    """The text of a contract file, the same for the same contract; what is not promised is left out."""
    return _rendered(_plain(contract), 0) + "\n"


def write_contract_file(contract: Contract, path: Path, *, replace: bool = False) -> None:
    """Write a contract, whole or not at all. Raises :class:`planner.errors.FileWriteError`."""
    if replace:
        write_file(path, render_contract(contract), mode=None)
    else:
        create_file(path, render_contract(contract))


def _below(root: Path, path: Path) -> Path:
    problem = Confinement(root).fault(path.as_posix())
    if problem is not None:
        raise Refused(problem)
    return root / path


def _bytes(file: Path) -> bytes:
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        near = _names_like(file)
        remedy = (
            f"did you mean {near[0]}?" if near else "check the path, or write it: planner contract write"
        )
        raise Refused(f"the file does not exist; {remedy}") from None
    if not stat.S_ISREG(mode):
        raise Refused("this is no ordinary file; name a contract file")
    with file.open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Refused(f"the file is larger than {MAX_BYTES // 2**20} MiB; promise less in one contract")
    if not data.strip() or b"\0" in data:
        raise Refused("the file is no JSON text; write it with: planner contract write MODULE")
    return data


def _names_like(file: Path) -> list[str]:
    try:
        names = [each.name for each, _ in zip(file.parent.iterdir(), range(MAX_SIBLINGS), strict=False)]
    except OSError:
        return []
    return difflib.get_close_matches(file.name, sorted(names), n=1, cutoff=0.75)


def _contract(document: Document) -> Contract:
    """Return the contract that the document holds; faults are added to it."""
    place = document.find(("contract_version",))
    version = str(place.node.value) if place.is_there and place.node.style is None else ""
    if version.isdecimal() and int(version[:9]) > CONTRACT_VERSION:
        problem = (
            f"contract_version {version[:9]} is newer than {CONTRACT_VERSION}, the newest that this "
            "version reads; update pytest-planverify"
        )
        raise document.refusal(place.node.at, problem, place.path)
    contract, is_sound = read_model(document, Contract)
    if is_sound and contract.is_empty:
        problem = "the contract promises nothing; name functions, classes or schemas"
        document.mark(document.root.at, "", problem)
    for number, problem in _bad_schemas(contract) if is_sound else ():
        schema = document.find(("schemas", number))
        document.mark(schema.node.at, schema.path, f"this is no JSON Schema: {problem}; correct it")
    return contract


def _bad_schemas(contract: Contract) -> Iterator[tuple[int, str]]:
    if not contract.schemas:
        return
    # Only contracts with schemas pay for the import.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    for number, schema in enumerate(contract.schemas):
        chosen: Any = validator_for(schema, default=Draft202012Validator)
        try:
            chosen.check_schema(schema)
        except SchemaError as error:
            yield number, f"{error.json_path}: {error.message}"


def _plain(value: Any) -> Any:
    """A contract as JSON has it, in the order of the models, without what is not promised."""
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    if not isinstance(value, Value):
        return value
    fields = fields_of(type(value))
    held = ((info.alias or name, getattr(value, name)) for name, info in fields.items())
    return {key: _plain(item) for key, item in held if item is not None and not _is_left_out(key, item)}


def _is_left_out(key: str, item: object) -> bool:
    return item == () and key != "parameters"  # no parameters is a promise, no list of them is none


def _rendered(value: Any, depth: int) -> str:
    one_line = json.dumps(value, ensure_ascii=False)
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value).values()
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    fits = len(one_line) + 2 * depth <= WIDTH and not any(isinstance(item, dict | list) for item in inner)
    if not value or fits or not isinstance(value, dict | list):
        return one_line
    pad = "  " * (depth + 1)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        parts = [f"{json.dumps(key)}: {_rendered(item, depth + 1)}" for key, item in items]
    else:
        parts = [_rendered(item, depth + 1) for item in cast("list[Any]", value)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(pad + part for part in parts) + f"\n{'  ' * depth}{closing}"
