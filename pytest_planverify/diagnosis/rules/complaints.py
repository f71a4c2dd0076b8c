"""What a tool's complaint is about: source that does not parse, a module, a promised name, a type, style."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.printed_scripts import is_test_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import Finding
    from pytest_planverify.diagnosis.reading import Case

_SYNTAX_CODES = frozenset({"invalid-syntax", "syntax-error", "syntax", "E999", "E0001"})
_TYPESCRIPT_SYNTAX = re.compile(r"^TS1\d{3}$")
_PARSING = (
    "Parsing error:",
    "SyntaxError:",
    "Failed to parse",
    "cannot parse",
    "Cannot parse",
    "expected \u2018",
    "expected '",
    "expected expression",
)
_IMPORT_CODES = frozenset(
    {
        "import",
        "import-not-found",
        "import-untyped",
        "import-error",
        "reportMissingImports",
        "reportMissingModuleSource",
        "unresolved-import",
        "E0401",
        "TS2307",
        "TS2792",
        "TS7016",
        "n/no-missing-import",
        "n/no-missing-require",
        "import/no-unresolved",
    }
)
_MODULE = re.compile(
    r"(?:module named |[Cc]annot find module |Unable to import |Import |stubs for (?:module )?|find the module |"
    r"could not resolve |to module |path to module )[\"'`](?P<name>[^\"'`]+)[\"'`]"
)
_PROMISE_CODES = frozenset(
    {
        "reportAttributeAccessIssue",
        "reportCallIssue",
        "reportPrivateImportUsage",
        "call-arg",
        "E0611",
        "E1101",
        "E1120",
        "E1121",
        "E1123",
        "TS2305",
        "TS2339",
        "TS2459",
        "TS2551",
        "TS2554",
        "TS2614",
        "TS2724",
    }
)
_NO_NAME = re.compile(r"^Module \"[\w.]+\" (?:has no attribute|does not explicitly export attribute) ")
_TYPE_CODE = re.compile(r"^(?:TS\d+|report[A-Z]\w+)$")
_MYPY_CODE = re.compile(r"^[a-z]+(?:-[a-z]+)*$")
_LINT_CODE = re.compile(r"^[A-Z]{1,6}\d{2,4}$")
_LINT_SAYS = ("would be reformatted", "is not formatted", "Imports are incorrectly sorted", "unformatted")
_WARNING_FLAG = re.compile(r"\[-W(?:error=)?(?P<flag>[\w+-]+)[^\]]*\]$")
_TYPE_FLAGS = frozenset(
    {"incompatible-pointer-types", "int-conversion", "incompatible-function-pointer-types",
     "discarded-qualifiers", "return-mismatch", "sign-conversion", "conversion"}
)  # fmt: skip
_SOURCES = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".mm", ".f90", ".rs", ".go", ".java", ".kt", ".cs",
     ".ts", ".tsx", ".swift", ".scala"}
)  # fmt: skip
_RUNNER_SAYS = re.compile(
    r"^(?:Error \d+|Aborted|Killed|Segmentation fault|.* failed with exit code .+|Failed)"
)
_RUNNER_FILE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$")


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that make a tool fail: its errors where it tells errors from lesser complaints.

    What a runner says about its recipe is left out where a tool under it says more.
    """
    findings = tuple(findings)
    findings = tuple(each for each in findings if not is_runners(each)) or findings
    errors = tuple(finding for finding in findings if (finding.severity or "error").lower() in _ERRORS)
    return errors or findings


_ERRORS = frozenset({"error", "fatal error"})


def is_runners(finding: Finding) -> bool:
    """Whether only a runner speaks: a recipe of its failed."""
    if finding.path is not None and not _RUNNER_FILE.search(finding.path):
        return False
    return bool(_RUNNER_SAYS.match(finding.message)) or finding.message.startswith("code ")


def is_syntax(finding: Finding) -> bool:
    """Whether the tool says that it could not parse a file."""
    code = finding.code or ""
    if code in _SYNTAX_CODES or _TYPESCRIPT_SYNTAX.match(code) or finding.message.startswith(_PARSING):
        return True
    return code in ("", "None") and finding.severity == "error" and _is_python(finding)


def _is_python(finding: Finding) -> bool:
    """Of a file of Python only pyright complains without a code, and then it could not parse it."""
    return (finding.path or "").endswith((".py", ".pyi")) and finding.column is not None


def is_import(finding: Finding) -> bool:
    """Whether the tool says that it could not find a module."""
    return (finding.code or "") in _IMPORT_CODES


def is_own_module(case: Case, finding: Finding) -> bool:
    """Whether the module that was not found is one of the project."""
    found = _MODULE.search(finding.message)
    if found is None:
        return False
    name = found["name"]
    if name.startswith((".", "/")):
        return True
    return is_own_name(case, name)


def is_own_name(case: Case, module: str) -> bool:
    """Whether a dotted name belongs to the project, by what is known of it and by its files."""
    top = module.partition(".")[0].partition("/")[0]
    if case.is_first_party(top) or case.is_test_package(top):
        return True
    return any(_provides(path, top) for path in paths_of(case))


def paths_of(case: Case) -> Iterable[str]:
    """Files of the project that the evidence names."""
    yield from case.changed or ()
    command = case.evidence.command
    for finding in command.findings if command else ():
        if finding.path and not finding.path.startswith("/") and "/" in finding.path:
            yield finding.path


def _provides(path: str, top: str) -> bool:
    """Whether ``shop/cart.py`` or ``src/shop/cart.py`` is a file of the package ``shop``, or a module of it."""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if len(parts) > 1 and parts[0] in ("src", "lib", "python") else parts
    if not parts:
        return False
    return (len(parts) > 1 and parts[0] == top) or (len(parts) == 1 and parts[0] == f"{top}.py")


def is_promise(case: Case, finding: Finding) -> bool:
    """Whether a test that nobody changed uses a name or a signature that the changed product lacks."""
    if not is_unchanged_test(case, finding.path):
        return False
    code = finding.code or ""
    return code in _PROMISE_CODES or (code == "attr-defined" and bool(_NO_NAME.match(finding.message)))


def is_unchanged_test(case: Case, path: str | None) -> bool:
    """Whether a file of the tests is as it was, while the product is not."""
    return (
        bool(path) and is_test_path(path or "") and case.product_changed and not case.is_changed(path or "")
    )


def is_type(finding: Finding) -> bool:
    """Whether it is a type checker's complaint, by its manner."""
    code = finding.code or ""
    if _TYPE_CODE.match(code):
        return True
    if found := _WARNING_FLAG.search(finding.message):
        return found["flag"] in _TYPE_FLAGS
    return bool(_MYPY_CODE.match(code)) and finding.severity == "error"


def is_style(finding: Finding) -> bool:
    """Whether it is the complaint of a linter or formatter, by its manner."""
    if finding.message.startswith(_LINT_SAYS) or _LINT_CODE.match(finding.code or ""):
        return True
    found = _WARNING_FLAG.search(finding.message)
    return found is not None and found["flag"] not in _TYPE_FLAGS and "error=" in found[0]


def is_compilers(finding: Finding) -> bool:
    """Whether a compiler complains of a source file."""
    return PurePosixPath(finding.path or "").suffix in _SOURCES
