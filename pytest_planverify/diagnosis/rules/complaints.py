"""What a tool's complaint is about: source that does not parse, a module, a name, a type, style."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path

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
_ABOUT_TYPES = ("Argument ", "Type ", "No overloads for ", "Cannot ", "Operator ", "Object of type ",
                "Could not ", "Method ", "Return type ", "Expression ", "\"__")  # fmt: skip
"""How pyright begins what it says of types over several lines, the last of which holds the code."""
_RUST = (".rs", "Cargo.toml")
_RUST_SYNTAX = re.compile(
    r"^(?:expected |this file contains an |mismatched closing |unexpected closing |"
    r"un(?:closed|terminated) |"
    r"unknown start of token|unexpected token|unexpected end of )"
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
    r"(?:module named |[Cc]annot find module |Unable to import |Import |stubs for (?:module )?|"
    r"find the module |could not resolve |to module |path to module )[\"'`](?P<name>[^\"'`]+)[\"'`]"
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
_NOT_DECLARED = re.compile(
    r"^(?:too (?:few|many) arguments to |implicit declaration of function |unknown type name |"
    r".* has no member named |'\w+' was not declared |no matching function for call )"
)
_TYPE_CODE = re.compile(r"^(?:TS\d+|report[A-Z]\w+)$")
_KEBAB = re.compile(r"^[a-z]+(?:-[a-z]+)*$")
_LINT_CODE = re.compile(r"^[A-Z]{1,6}\d{2,4}$")
_LINT_SAYS = ("would be reformatted", "is not formatted", "Imports are incorrectly sorted", "unformatted")
_WARNING_FLAG = re.compile(r"\[-W(?:error=)?(?P<flag>[\w+-]+)[^\]]*\]$")
_TYPE_FLAGS = frozenset(
    {"incompatible-pointer-types", "int-conversion", "incompatible-function-pointer-types",
     "discarded-qualifiers", "return-mismatch", "sign-conversion", "conversion"}
)  # fmt: skip
_HARD_FLAGS = _TYPE_FLAGS | {"implicit-function-declaration", "implicit-int"}
"""What no compiler of today lets pass as a mere warning."""
_SCRIPTS = (".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".vue")
_SOURCES = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".mm", ".f90", ".rs", ".go", ".java", ".kt",
     ".cs", ".ts", ".tsx", ".swift", ".scala"}
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
    # of a file of Python only pyright complains without a code, and then it could not parse it
    uncoded = not code and finding.severity == "error" and finding.column is not None
    uncoded = uncoded and not finding.message.startswith(_ABOUT_TYPES)
    return (uncoded and _is_python(finding.path)) or (
        not code and bool(_RUST_SYNTAX.match(finding.message)) and (finding.path or "").endswith(_RUST)
    )


def _is_python(path: str | None) -> bool:
    return (path or "").endswith((".py", ".pyi"))


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
    return case.is_first_party(top) or case.is_test_package(top)


def is_promise(case: Case, finding: Finding) -> bool:
    """Whether a test that nobody changed uses a name or a signature that the changed product lacks."""
    if not is_unchanged_test(case, finding.path):
        in_test = bool(finding.path) and is_test_path(finding.path or "")
        return in_test and case.only_tests_changed and _is_undeclared(finding)
    code = finding.code or ""
    if code in _PROMISE_CODES or (code == "attr-defined" and bool(_NO_NAME.match(finding.message))):
        return True
    return _is_undeclared(finding)


def _is_undeclared(finding: Finding) -> bool:
    """Whether a compiler without codes says that a name or a signature is another."""
    return not finding.code and is_compilers(finding) and bool(_NOT_DECLARED.match(finding.message))


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
    return bool(_KEBAB.match(code)) and finding.severity == "error" and _is_python(finding.path)


def is_style(finding: Finding) -> bool:
    """Whether it is the complaint of a linter or formatter, by its manner."""
    code = finding.code or ""
    if code == "unformatted" or finding.message.startswith(_LINT_SAYS) or _LINT_CODE.match(code):
        return True
    if (
        finding.severity
        and _KEBAB.match(code.rpartition("/")[2])
        and (finding.path or "").endswith(_SCRIPTS)
    ):
        return True
    found = _WARNING_FLAG.search(finding.message)
    return found is not None and found["flag"] not in _HARD_FLAGS and "error=" in found[0]


def is_compilers(finding: Finding) -> bool:
    """Whether a compiler complains of a source file."""
    return PurePosixPath(finding.path or "").suffix in _SOURCES
