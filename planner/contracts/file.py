"""Read, write and generate contract files; whatever is wrong with one is said with its line and column.

What is generated is what a module of the project defines now, by its source alone.
"""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import griffe
from pydantic import ValidationError

from planner.contracts.source import (
    ModuleProblem,
    ModuleReader,
    bindings_of,
    definitions,
    describe_function,
    members,
    properties,
    uncertainty,
)
from planner.errors import ContractFileError, ModuleSourceError
from planner.model.contract import CONTRACT_VERSION, ClassContract, Contract, FunctionContract
from planner.planfile.document import Document, Fault, Refused, compose, decode, plan_file_error
from planner.planfile.file_writer import create_file, write_file
from planner.planfile.project_facts import ProjectFiles
from planner.planfile.project_files import Confinement
from planner.planfile.values import read_model
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.contracts.source import Scope


MAX_BYTES = 4 * 1024 * 1024
"""The size of the largest contract that is read."""

WIDTH = 100
"""What fits into so many characters is written on one line."""


def read_contract_file(path: Path, *, root: Path | None = None) -> Contract:
    """Read a contract. Raises :class:`planner.errors.ContractFileError` with every fault of the file.

    With a ``root``, the path is relative to it and must stay below it.
    """
    shown = path.as_posix()
    try:
        if root is not None and (problem := Confinement(root).fault(shown)) is not None:
            raise Refused(problem)
        document = compose(decode(_bytes(path if root is None else root / path)), is_json=True)
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
    """Return the text of a contract file, the same for the same contract, of what is promised."""
    dumped = contract.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"schemas"})
    schemas = {"schemas": list(contract.schemas)} if contract.schemas else {}
    return _rendered({**_plain(dumped), **schemas}, 0) + "\n"


def write_contract_file(contract: Contract, path: Path, *, replace: bool = False) -> None:
    """Write a contract, whole or not at all. Raises :class:`planner.errors.FileWriteError`."""
    if replace:
        write_file(path, render_contract(contract), mode=None)
    else:
        create_file(path, render_contract(contract))


def _bytes(file: Path) -> bytes:
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        near = ProjectFiles(file.parent).near(file.name)
        remedy = f"did you mean {near}?" if near else "check the path, or write it: planner contract write"
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
    """Return a dumped contract without lists that promise nothing."""
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, Any]", value).items()
    # No parameters is a promise, no list of them is none.
    return {key: _plain(item) for key, item in held if item != [] or key == "parameters"}


def _rendered(value: dict[str, Any] | list[Any] | str | float | None, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    fits = len(line) + 2 * depth <= WIDTH and not any(isinstance(item, dict | list) for item in inner)
    if not inner or fits:
        return line
    parts = [_rendered(item, depth + 1) for item in inner]
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {part}" for key, part in zip(value, parts, strict=True)]
    pad = "\n" + "  " * (depth + 1)
    return f"{line[0]}{pad}{f',{pad}'.join(parts)}{pad[:-2]}{line[-1]}"


# -- generation ----------------------------------------------------------------------------------------

_TOO_LONG = "has names or values that are too long for a contract, or unusual"
_MAX_MESSAGE = 1_000


@dataclass(frozen=True, slots=True)
class Written:
    """A contract made of code, and what could not be taken into it."""

    contract: Contract
    left_out: tuple[str, ...] = ()
    """One line each: the name, and why only running the code would tell its signature."""


def write_contract(module: str, root: Path, *, private: bool = False) -> Written:
    """Return the contract of a module, which its code keeps, and what was left out of it and why.

    Public is what ``__all__`` names; without it, every definition whose name has no leading underscore.
    With ``private``, all definitions are taken in. Nested classes stand behind the class that holds them.
    Raises :class:`planner.errors.ModuleSourceError` where the source does not tell, and ``OSError``.
    """
    reader = ModuleReader(root)
    try:
        found = reader.read(module)
    except ModuleProblem as problem:
        raise ModuleSourceError(" ".join(clean(str(problem), limit=_MAX_MESSAGE).split())) from None
    writer = _Writer(private=private)
    functions: list[FunctionContract] = []
    classes: list[ClassContract] = []
    homes = [(name, *reader.follow(found, name)) for name in writer.public(found)]
    for name, home, local in homes:
        why = uncertainty(home, local)
        if why:
            writer.left_out.append(f"{name} {why}")
        elif local in members(home, griffe.Kind.FUNCTION):
            functions += writer.function(name, home.members[local])
    for name, home, local in homes:
        if local in members(home, griffe.Kind.CLASS) and not uncertainty(home, local):
            classes += writer.class_(name, home.members[local])
    contract = Contract(
        contract_version=CONTRACT_VERSION,
        module=module,
        functions=tuple(functions),
        classes=tuple(classes),
    )
    return Written(contract, tuple(writer.left_out))


class _Writer:
    """Turns definitions into promises."""

    def __init__(self, *, private: bool) -> None:
        self.left_out: list[str] = []
        self._private = private

    def public(self, module: griffe.Module) -> list[str]:
        """Return the names to promise, those of other modules behind the module's own."""
        own = definitions(module)
        if self._private:
            return own
        if module.exports is None:
            return [name for name in own if not name.startswith("_")]
        exports = list(dict.fromkeys(map(str, module.exports)))
        known = [name for name in own if name in exports]
        # Constants, and modules that are exported, are nothing that a contract can name.
        return [*known, *(name for name in exports if name not in known and name in module.imports)]

    def function(self, name: str, source: Any, *, prefix: str = "") -> Iterator[FunctionContract]:
        found = describe_function(source)
        if found.strange_decorator:
            self.left_out.append(
                f"{prefix}{name} has the decorator {found.strange_decorator}, "
                "which may change its signature"
            )
            return
        try:
            yield FunctionContract.model_validate({**found.bound.model_dump(), "name": name})
        except ValidationError:
            self.left_out.append(f"{prefix}{name} {_TOO_LONG}")

    def class_(self, name: str, found: Any) -> Iterator[ClassContract]:
        promised = {
            "name": name,
            "bases": [str(base) for base in found.bases],
            "methods": [
                each
                for method in self._certain(name, found, griffe.Kind.FUNCTION)
                for each in self.function(method, found.members[method], prefix=f"{name}.")
            ],
            "properties": [
                {"name": each, "returns": returns}
                for each, returns in properties(found).items()
                if self._is_public(each) and each not in bindings_of(found).unsure
            ],
        }
        try:
            yield ClassContract.model_validate(promised)
        except ValidationError:
            self.left_out.append(f"{name} {_TOO_LONG}")
        for inner in self._certain(name, found, griffe.Kind.CLASS):
            yield from self.class_(f"{name}.{inner}", found.members[inner])

    def _certain(self, owner: str, found: Scope, kind: griffe.Kind) -> Iterator[str]:
        for name in filter(self._is_public, members(found, kind)):
            why = uncertainty(found, name)
            if why:
                self.left_out.append(f"{owner}.{name} {why}")
            else:
                yield name

    def _is_public(self, name: str) -> bool:
        """Special methods of a class are public: operators and constructors are called by them."""
        is_special = name.startswith("__") and name.endswith("__")
        return self._private or is_special or not name.startswith("_")
