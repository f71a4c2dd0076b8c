"""Reader, writer and generator of contract files.

All errors of a file are reported at once, with line and column. :func:`write_contract` generates a contract
from the definitions that the source of a module has now; its code fulfils that contract.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import griffe
from pydantic import ValidationError

from planner.contracts.source import (
    ModuleProblem,
    ModuleReader,
    bound_signature,
    definitions,
    members,
    strange_decorator,
    uncertainty,
)
from planner.errors import ContractFileError, Fault, ModuleSourceError
from planner.model.contract import CONTRACT_VERSION, ClassContract, Contract, FunctionContract
from planner.planfile.document import Document, Refused, compose, decode, plan_file_error
from planner.planfile.project_facts import ProjectFiles
from planner.planfile.project_files import Confinement, read_regular
from planner.planfile.values import read_model
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.contracts.source import Scope


MAX_BYTES = 4 * 1024 * 1024
"""Limit in bytes of a contract file that is read."""


def read_contract_file(path: Path, *, root: Path | None = None) -> Contract:
    """Read a contract. Raises :class:`planner.errors.ContractFileError` with all errors of the file.

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
    """Return the text of a contract file, without values that promise nothing; deterministic."""
    dumped = contract.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps(dumped, indent=2, ensure_ascii=False) + "\n"


def _bytes(file: Path) -> bytes:
    """Return the content of a contract file. Raises ``Refused`` if it cannot be one, or ``OSError``."""
    try:
        data = read_regular(file, MAX_BYTES)
    except FileNotFoundError:
        near = ProjectFiles(file.parent).near(file.name)
        remedy = (
            f"did you mean {near}?" if near else "check the path, or write the file: planner contract write"
        )
        raise Refused(f"the file does not exist; {remedy}") from None
    if not data.strip() or b"\0" in data:
        raise Refused("the file is not JSON; write it with: planner contract write MODULE")
    return data


def _contract(document: Document) -> Contract:
    """Return the contract of a parsed document; its errors are added to ``document.faults``."""
    # First of all, as a newer version may have keys that would be reported as faults here.
    place = document.find(("contract_version",))
    version = str(place.node.value) if place.is_there and place.node.style is None else ""
    # Cut, as int() refuses numbers of thousands of digits.
    if version.isdecimal() and int(version[:9]) > CONTRACT_VERSION:
        problem = (
            f"contract_version {version[:9]} is newer than {CONTRACT_VERSION}, the newest that this "
            "version reads; update pytest-planverify"
        )
        raise document.refusal(place.node.at, problem, place.path)
    contract, is_sound = read_model(document, Contract)
    if is_sound and contract.is_empty:
        problem = "the contract is empty; name functions, classes or schemas"
        document.mark(document.root.at, "", problem)
    for number, problem in _bad_schemas(contract) if is_sound else ():
        schema = document.find(("schemas", number))
        document.mark(schema.node.at, schema.path, f"this is not a JSON Schema: {problem}; correct it")
    return contract


def _bad_schemas(contract: Contract) -> Iterator[tuple[int, str]]:
    """Yield position and problem of each schema of the contract that is no valid JSON Schema."""
    if not contract.schemas:
        return
    # Imported here, as the import is slow and few contracts have schemas.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    for number, schema in enumerate(contract.schemas):
        chosen: Any = validator_for(schema, default=Draft202012Validator)
        try:
            chosen.check_schema(schema)
        except SchemaError as error:
            yield number, f"{error.json_path}: {error.message}"


# -- generation ----------------------------------------------------------------------------------------

_TOO_LONG = "has names or values that do not fit into a contract"
_MAX_MESSAGE = 1_000


def write_contract(module: str, root: Path) -> tuple[Contract, list[str]]:
    """Generate the contract that a module fulfils now. Nothing is written to a file.

    It covers the public definitions: those in ``__all__``, or without that, those whose name has no leading
    underscore. Nested classes follow the class around them. The second value has a line for each definition
    that is left out: its name, and why the source does not show its signature.
    Raises :class:`planner.errors.ModuleSourceError` if the module is missing or cannot be parsed, and
    ``OSError``.
    """
    reader = ModuleReader(root)
    try:
        found = reader.read(module)
    except ModuleProblem as problem:
        raise ModuleSourceError(" ".join(clean(str(problem), limit=_MAX_MESSAGE).split())) from None
    writer = _Writer()
    functions: list[FunctionContract] = []
    classes: list[ClassContract] = []
    homes = [(name, *reader.follow(found, name)) for name in writer.public(found)]
    for name, home, local in homes:
        # Uncertain classes are left out here, too, so that each name is listed once.
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
    return contract, writer.left_out


class _Writer:
    """Converts definitions of griffe to contracts, and collects those that cannot be converted."""

    def __init__(self) -> None:
        self.left_out: list[str] = []

    def public(self, module: griffe.Module) -> list[str]:
        """Return the names that the contract covers: the module's own, then imported ones."""
        own = definitions(module)
        if module.exports is None:
            return [name for name in own if not name.startswith("_")]
        exports = list(dict.fromkeys(map(str, module.exports)))
        known = [name for name in own if name in exports]
        # A contract cannot name constants and modules.
        return [*known, *(name for name in exports if name not in known and name in module.imports)]

    def function(self, name: str, found: Any, *, prefix: str = "") -> Iterator[FunctionContract]:
        """Yield the contract of a function, unless a decorator may change its signature."""
        if decorator := strange_decorator(found):
            self.left_out.append(
                f"{prefix}{name} has the decorator {decorator}, which may change its signature"
            )
            return
        try:
            yield FunctionContract.model_validate({**bound_signature(found).model_dump(), "name": name})
        except ValidationError:
            self.left_out.append(f"{prefix}{name} {_TOO_LONG}")

    def class_(self, name: str, found: Any) -> Iterator[ClassContract]:
        """Yield the contract of a class, then those of its nested classes."""
        promised = {
            "name": name,
            "bases": [str(base) for base in found.bases],
            "methods": [
                each
                for method in self._certain(name, found, griffe.Kind.FUNCTION)
                for each in self.function(method, found.members[method], prefix=f"{name}.")
            ],
        }
        try:
            yield ClassContract.model_validate(promised)
        except ValidationError:
            self.left_out.append(f"{name} {_TOO_LONG}")
        for inner in self._certain(name, found, griffe.Kind.CLASS):
            yield from self.class_(f"{name}.{inner}", found.members[inner])

    def _certain(self, owner: str, found: Scope, kind: griffe.Kind) -> Iterator[str]:
        """Yield the names of the public members of a kind; those that are uncertain are left out."""
        for name in members(found, kind):
            # Special methods are part of the interface: operators and constructors call them.
            is_special = name.startswith("__") and name.endswith("__")
            if name.startswith("_") and not is_special:
                continue
            why = uncertainty(found, name)
            if why:
                self.left_out.append(f"{owner}.{name} {why}")
            else:
                yield name
