"""Rules for what the Rust compiler says, by its error codes, whichever command of cargo started it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.rules.complaints import errors_of, is_syntax
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.evidence import Finding
    from pytest_planverify.diagnosis.reading import Case

_TOOLS = frozenset({"cargo", "rustc"})
_CODE = re.compile(r"^E0\d{3}$")
_KINDS = frozenset(
    {
        "E0023", "E0026", "E0027", "E0053", "E0069", "E0070", "E0277", "E0282", "E0283", "E0308", "E0369",
        "E0600", "E0604", "E0605", "E0606", "E0607", "E0608", "E0614", "E0618",
    }
)  # fmt: skip
"""Errors about the type of a value."""
_INTERFACE = frozenset(
    {"E0046", "E0050", "E0060", "E0061", "E0063", "E0107", "E0186", "E0407", "E0412", "E0423", "E0425",
     "E0432", "E0433", "E0437", "E0560", "E0599", "E0603", "E0609", "E0616", "E0624"}
)  # fmt: skip
"""Errors about a name, a field or a signature that is another than the caller believes."""
_IMPORTS = frozenset({"E0432", "E0433", "E0463"})
_CRATE = re.compile(
    r"(?:unresolved import|(?:undeclared|unresolved) (?:crate or )?module(?: or unlinked crate)?) `\w+`$|"
    r"^can't find crate for `"
)
_NO_FILE = "E0583"
_GONE = re.compile(
    r"^error: (?:could not find `(?P<manifest>Cargo\.toml)` in |failed to get `(?P<package>[^`]+)` as "
    r"a dependency(?=[\s\S]*\bNo such file or directory\b))|"
    r"^Error writing files: failed to resolve mod `(?P<module>\w+)`: .* does not exist$|"
    r"^error: couldn't read `(?P<file>[^`]+)`: No such file",
    re.MULTILINE,
)
_NO_PACKAGE = re.compile(r"^error: no matching package named `(?P<name>[^`]+)` found", re.MULTILINE)


def _error(case: Case) -> Finding | None:
    """The compiler's first error; a failing test is none."""
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.tool not in _TOOLS:
        return None
    if command.purpose == "lint" and not any(map(_is_compilers, command.findings)):
        return None
    errors = (
        each
        for each in errors_of(command.findings)
        if (each.severity or "error") == "error" and (each.code is None or _CODE.match(each.code))
    )
    return next(errors, None)


def _is_compilers(finding: Finding) -> bool:
    """What the linter under cargo would not say by itself: the source does not compile."""
    return bool(_CODE.match(finding.code or "")) or is_syntax(finding)


def _reading(wanted: Callable[[Finding], bool], owner: Owner | None = None) -> Reader:
    def read(case: Case) -> Hit | None:
        error = _error(case)
        if error is None or not wanted(error):
            return None
        where = f" at {error.path}:{error.line}" if error.path else ""
        code = f" [{error.code}]" if error.code else ""
        in_test = error.path is not None and is_test_path(error.path)
        return Hit(
            suggestion=f"rustc{where}: {quote(error.message).rstrip('.')}{code}.",
            location=Location(path=error.path, line=error.line) if error.path else None,
            owner=owner or (Owner.TEST if in_test else None),
        )

    return read


def _is_import(error: Finding) -> bool:
    return error.code in _IMPORTS and bool(_CRATE.search(error.message))


def _is_promise(error: Finding) -> bool:
    return error.code in _INTERFACE and error.path is not None and is_test_path(error.path)


def _no_package(case: Case) -> Hit | None:
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.tool not in _TOOLS:
        return None
    found = _NO_PACKAGE.search(command.output_tail)
    if found is None:
        return None
    return Hit(
        suggestion=f"cargo finds no package {found['name']}: correct Cargo.toml, or make it available."
    )


def _gone(case: Case) -> Hit | None:
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.tool not in _TOOLS:
        return None
    found = _GONE.search(command.output_tail)
    if found is None:
        return None
    name = next(group for group in found.groups() if group)
    return Hit(
        suggestion=f"cargo does not find {quote(name, 80)}, which belongs to the project: put it back."
    )


RUST_RULES: tuple[Rule, ...] = (
    Rule(
        id="rust-file-missing",
        because="Cargo does not find a file that belongs to the project.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.88,
        runner_up=(Category.COMPILATION_ERROR, 0.1),
        read=_gone,
    ),
    Rule(
        id="rust-module-missing",
        because="A module is declared whose file does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.9,
        runner_up=(Category.COMPILATION_ERROR, 0.1),
        read=_reading(lambda error: error.code == _NO_FILE),
    ),
    Rule(
        id="rust-package-not-found",
        because="Cargo found no package of the name that the project declares.",
        category=Category.IMPORT_ERROR,
        confidence=0.88,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.1),
        read=_no_package,
    ),
    Rule(
        id="rust-crate-missing",
        because="A crate is used that the project does not have.",
        category=Category.IMPORT_ERROR,
        confidence=0.9,
        read=_reading(_is_import),
    ),
    Rule(
        id="rust-interface-broken",
        because="A test uses a name or a signature that the crate does not have.",
        category=Category.SPEC_MISMATCH,
        confidence=0.85,
        runner_up=(Category.COMPILATION_ERROR, 0.15),
        read=_reading(_is_promise, Owner.PRODUCT),
    ),
    Rule(
        id="rust-types-do-not-fit",
        because="The compiler refused the type of a value.",
        category=Category.TYPE_ERROR,
        confidence=0.85,
        runner_up=(Category.COMPILATION_ERROR, 0.15),
        read=_reading(lambda error: error.code in _KINDS),
    ),
    Rule(
        id="rust-does-not-compile",
        because="The compiler refused a source file.",
        category=Category.COMPILATION_ERROR,
        confidence=0.9,
        read=_reading(lambda error: True),
    ),
)
