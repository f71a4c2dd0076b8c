"""Reader of contract files: all errors of a file are reported at once, with line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.errors import ContractFileError
from planner.model.contract import CONTRACT_VERSION, Contract
from planner.planfile.document import Refused, compose, plan_file_error, read_source
from planner.planfile.project_files import Confinement
from planner.planfile.values import read_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_contract_file(path: Path, *, root: Path | None = None) -> Contract:
    """Read a contract. Raises :class:`planner.errors.ContractFileError` with all errors of the file.

    With a ``root``, the path is relative to it and must stay below it.
    """
    shown = path.as_posix()
    try:
        if root is not None and (problem := Confinement(root).fault(shown)) is not None:
            raise Refused(problem)
        document = compose(read_source(path if root is None else root / path), is_json=True)
        # First of all, as a newer version may have keys that would be reported as faults below.
        place = document.find(("contract_version",))
        is_quoted = getattr(place.node, "style", None) is not None
        version = str(place.node.value) if place.is_there and not is_quoted else ""
        # Cut, as int() refuses numbers of thousands of digits.
        if version.isdecimal() and int(version[:9]) > CONTRACT_VERSION:
            problem = (
                f"contract_version {version[:9]} is newer than {CONTRACT_VERSION}, the newest that this "
                "version reads; update pytest-planverify"
            )
            raise document.refusal(place.start, problem, place.path)
        contract, is_sound = read_model(document, Contract)
        if is_sound and contract.is_empty:
            problem = "the contract is empty; name functions, classes or schemas"
            document.mark(document.root.start_mark.index, "", problem)
        for number, problem in _bad_schemas(contract) if is_sound else ():
            schema = document.find(("schemas", number))
            document.mark(schema.start, schema.path, f"this is not a JSON Schema: {problem}; correct it")
        if document.faults:
            raise Refused("", document.faults)
        return contract
    except Refused as refused:
        raise ContractFileError(shown, plan_file_error(shown, refused.faults).faults) from None


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
