"""Criteria that are contracts: what a module promises, compared with its source."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from planner.model.contract import ClassContract, Contract, FunctionContract
from planner.model.evidence import ContractFact, Evidence, EvidenceKind, ExceptionFact
from planner.model.outcome import Verdict
from planner.text.sanitizing import clean
from pytest_planverify.checks.annotations import Likeness, resolve
from pytest_planverify.checks.module_source import (
    Function,
    ModuleSource,
    NoSource,
    Scope,
    find_in_project,
    find_module,
    read_module,
    read_scope,
)
from pytest_planverify.checks.result import CheckResult
from pytest_planverify.checks.rooted import OutsideRoot, is_regular_file, names_like, resolve_under
from pytest_planverify.checks.signatures import compare_signature, render_contract

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_CONTRACT_BYTES = 4 * 1024 * 1024
MAX_REEXPORTS = 5
"""How many modules a name is followed through."""


def check_contract(path: str, root: Path, *, check_id: str = "") -> CheckResult:
    """Whether the module keeps what the contract promises, as far as its source can tell. Never raises.

    A broken promise is ``failed``; what only running the code would tell is ``inconclusive``.
    """
    faults: list[_Fault] = []
    try:
        contract = _read_contract(path, root)
        module = _read_promised_module(contract.module, root)
        faults.extend(_compare(contract, module, root))
    except _Fault as fault:
        faults.append(fault)
    except (OSError, RecursionError, MemoryError) as error:
        faults.append(_Fault("unreadable", f"the contract {path} cannot be checked: {error}"))
    if not faults:
        return CheckResult(verdict=Verdict.PASSED, title=path)
    faults.sort(key=lambda fault: fault.problem == "unresolved")
    open_only = faults[0].problem == "unresolved"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return CheckResult(
        verdict=Verdict.INCONCLUSIVE if open_only else Verdict.FAILED,
        reason=clean(f"{faults[0].message}{more}", limit=1_000),
        evidence=tuple(fault.evidence(path, check_id) for fault in faults),
        title=path,
    )


class _Fault(Exception):
    """One promise that is broken, or that cannot be checked."""

    def __init__(
        self,
        problem: str,
        message: str,
        *,
        function: str | None = None,
        expected: str | None = None,
        actual: str | None = None,
        module_path: str | None = None,
        line: int | None = None,
        exception: ExceptionFact | None = None,
    ) -> None:
        super().__init__(message)
        self.problem = problem
        self.message = message
        self.function = function
        self.expected = expected
        self.actual = actual
        self.module_path = module_path
        self.line = line
        self.exception = exception

    def evidence(self, path: str, check_id: str) -> Evidence:
        return Evidence(
            kind=EvidenceKind.CONTRACT,
            check_id=check_id,
            headline=clean(self.message, limit=1_000),
            contract_path=path,
            exceptions=(self.exception,) if self.exception else (),
            contract=ContractFact(
                path=path,
                function=self.function,
                problem=self.problem,
                expected=self.expected,
                actual=clean(self.actual, limit=1_000) if self.actual else None,
                module_path=self.module_path,
                line=self.line,
            ),
        )


def _read_contract(path: str, root: Path) -> Contract:
    def unusable(why: str) -> _Fault:
        return _Fault("unreadable", f"the contract {path} {clean(why, limit=500)}")

    try:
        file = resolve_under(root, path)
        if not file.exists():
            near = names_like(root, path)
            raise unusable(f"does not exist; did you mean {near[0]}?" if near else "does not exist")
        if not is_regular_file(file) or file.stat().st_size > MAX_CONTRACT_BYTES:
            raise unusable(f"is no file of at most {MAX_CONTRACT_BYTES} bytes")
        contract = Contract.model_validate(json.loads(file.read_text("utf-8-sig")))
    except OutsideRoot as error:
        raise unusable("leads out of the plan's root") from error
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        said = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in details[:3]
        )
        raise unusable(f"cannot be used: {said}") from error
    except ValueError as error:
        raise unusable(f"is no JSON: {error}") from error
    if contract.is_empty:
        raise unusable("promises nothing: name functions, classes or schemas")
    _check_schemas(contract, unusable)
    return contract


def _check_schemas(contract: Contract, unusable: Callable[[str], Exception]) -> None:
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
            raise unusable(
                f"has a bad schema: schemas[{number}] {error.json_path}: {error.message}"
            ) from error


def _read_promised_module(name: str, root: Path) -> ModuleSource:
    try:
        path = find_module(name, root)
    except NoSource as error:
        raise _Fault("unresolved", f"{error}, which cannot be read without running it") from error
    except OutsideRoot as error:
        raise _Fault("missing_module", f"the module {name} leads out of the plan's root") from error
    if path is None:
        raise _Fault("missing_module", f"there is no module {name} below the plan's root", expected=name)
    shown = path.relative_to(root.resolve()).as_posix()
    try:
        return read_module(name, path)
    except SyntaxError as error:
        fact = ExceptionFact(
            type=type(error).__name__,
            qualified=f"builtins.{type(error).__name__}",
            bases=("builtins.SyntaxError", "builtins.Exception", "builtins.BaseException"),
            message=clean(error.msg, limit=500),
            path=shown,
            line=error.lineno,
        )
        message = f"{shown}:{error.lineno}: {type(error).__name__}: {error.msg}"
        raise _Fault("unreadable", message, module_path=shown, line=error.lineno, exception=fact) from error
    except (ValueError, RecursionError) as error:
        raise _Fault("unreadable", f"{shown} cannot be read: {error}", module_path=shown) from error


def _compare(contract: Contract, module: ModuleSource, root: Path) -> list[_Fault]:
    faults: list[_Fault] = []
    for function in contract.functions:
        faults.extend(_check_function(_Place(module, root), function))
    for wanted in contract.classes:
        faults.extend(_check_class(_Place(module, root), wanted))
    return faults


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a promise is looked for."""

    module: ModuleSource
    root: Path
    steps: int = 0

    @property
    def shown(self) -> str:
        return self.module.path.relative_to(self.root.resolve()).as_posix()

    def fault(self, problem: str, message: str, name: str, **facts: Any) -> _Fault:
        return _Fault(problem, message, function=name, module_path=self.shown, **facts)

    def elsewhere(self, name: str) -> tuple[_Place, str] | None:
        """Where an imported name comes from, if that is a module of the project."""
        full = self.module.scope.imported.get(name)
        found = find_in_project(full, self.root) if full and self.steps < MAX_REEXPORTS else None
        if found is None or "." in found[1]:
            return None
        try:
            module = read_module(found[0], found[2])
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None
        return _Place(module, self.root, self.steps + 1), found[1]


def _check_function(place: _Place, wanted: FunctionContract, alias: str | None = None) -> list[_Fault]:
    name = alias or wanted.name
    scope = place.module.scope
    elsewhere = None if name in scope.conditional else place.elsewhere(name)
    if elsewhere and name not in scope.defined:
        return _check_function(elsewhere[0], wanted, elsewhere[1])
    uncertain = _uncertain(scope, name)
    if uncertain:
        return [place.fault("unresolved", f"{name} in {place.shown} {uncertain}", name)]
    if name in scope.classes:
        line = scope.classes[name].lineno
        return [
            place.fault(
                "signature",
                f"{name} is a class, not a function",
                name,
                expected=render_contract(wanted),
                actual=f"class {name}",
                line=line,
            )
        ]
    if name not in scope.functions:
        return [_missing(place, name, render_contract(wanted))]
    return _compare_function(place, wanted, scope.functions[name], wanted.name)


def _uncertain(scope: Scope, name: str) -> str | None:
    """Why only running the code would tell what the name is."""
    if name in scope.conditional:
        return "is defined under a condition, or more than once"
    if name in scope.defined:
        return None
    if name in scope.imported:
        return f"comes from {scope.imported[name]}, which is not in the project"
    if name in scope.assigned:
        return "is assigned, not defined"
    return "may come from a star import or __getattr__" if scope.is_open else None


def _missing(place: _Place, name: str, expected: str) -> _Fault:
    defined = ", ".join(sorted(place.module.scope.defined)[:20]) or "nothing"
    return place.fault(
        "missing_function",
        f"{place.module.name} does not define {name}",
        name,
        expected=expected,
        actual=f"it defines {defined}",
    )


def _compare_function(
    place: _Place, wanted: FunctionContract, found: Function, name: str, *, is_method: bool = False
) -> list[_Fault]:
    likeness, why, actual = compare_signature(wanted, found, place.module.names, is_method=is_method)
    if likeness is Likeness.SAME:
        return []
    if likeness is Likeness.UNKNOWN:
        message = f"{name} in {place.shown}:{found.lineno} cannot be compared: {why}"
        return [place.fault("unresolved", message, name, actual=actual, line=found.lineno)]
    expected = render_contract(wanted)
    message = f"{name}: the contract says {expected}, {place.shown}:{found.lineno} has {actual}: {why}"
    return [place.fault("signature", message, name, expected=expected, actual=actual, line=found.lineno)]


def _check_class(place: _Place, wanted: ClassContract, alias: str | None = None) -> list[_Fault]:
    name = alias or wanted.name
    scope = place.module.scope
    elsewhere = None if name in scope.conditional else place.elsewhere(name)
    if elsewhere and name not in scope.defined:
        return _check_class(elsewhere[0], wanted, elsewhere[1])
    uncertain = _uncertain(scope, name)
    if uncertain:
        return [place.fault("unresolved", f"{name} in {place.shown} {uncertain}", name)]
    found = scope.classes.get(name)
    if found is None:
        return [_missing(place, name, f"class {wanted.name}")]
    names = place.module.names
    bases = [ast.unparse(base) for base in found.bases]
    full_bases = {resolve(base, names) or base for base in bases} | set(bases)
    faults = [
        place.fault(
            "signature",
            f"{name} is no subclass of {base} by its source",
            name,
            expected=f"class {name}({base})",
            actual=f"class {name}({', '.join(bases)})",
            line=found.lineno,
        )
        for base in wanted.bases
        if base not in full_bases and (resolve(base, names) or base) not in full_bases
    ]
    body = read_scope(found.body)
    has_more = bool(found.decorator_list or found.keywords or set(bases) - {"object"})
    for method in wanted.methods:
        faults.extend(_check_method(place, name, method, body, has_more=has_more))
    return faults


def _check_method(
    place: _Place, owner: str, wanted: FunctionContract, body: Scope, *, has_more: bool
) -> list[_Fault]:
    name = f"{owner}.{wanted.name}"
    uncertain = _uncertain(body, wanted.name)
    if not uncertain and wanted.name not in body.functions and has_more:
        uncertain = "may be inherited, or made by a decorator or metaclass"
    if uncertain:
        return [place.fault("unresolved", f"{name} in {place.shown} {uncertain}", name)]
    found = body.functions.get(wanted.name)
    if found is None:
        return [_missing(place, name, render_contract(wanted))]
    return _compare_function(place, wanted, found, name, is_method=True)
