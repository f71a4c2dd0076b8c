"""A classifier to compare with: ordered regular expressions over the whole output and the exit.

It is meant to be the best of its kind: order and patterns were tuned on the part ``develop``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner
from tools.corpus.scoring import Guess


class Rung(NamedTuple):
    """A pattern, and the reading of a failure whose output it matches."""

    name: str
    pattern: str
    category: C
    owner: Owner


def _shows(category: C, owner: Owner, **patterns: str) -> tuple[Rung, ...]:
    """Return rungs with the same conclusion."""
    return tuple(Rung(name, pattern, category, owner) for name, pattern in patterns.items())


PRODUCT, TEST, PLAN, MACHINE = Owner.PRODUCT, Owner.TEST, Owner.PLAN, Owner.ENVIRONMENT

_TEST_FILE = r"(?:\S*/)?(?:tests?/\S*|test_\w+|\w+_test|conftest)\.py"
_IN_TEST = rf"^raised at {_TEST_FILE}: "
_IN_PRODUCT = rf"^raised at (?!{_TEST_FILE})(?!/|\.\./|\S*site-packages)\S+: "
_NOT_IN_TEST = rf"\A(?!.*{_IN_TEST[1:]})"
_NOT_IN_PRODUCT = rf"\A(?!.*{_IN_PRODUCT[1:]})"
_IN_LIBRARY = r"^raised at \S*site-packages/(?!_pytest|pluggy|pytest_)\S+: "
_LIBRARY_FILE = r"\(\S*(?:site-packages|/usr/lib/)\S*\)"
_FILE_OF_TESTS = r'File "[^"\n]*(?:tests?/|test_)[^"\n]*", line \d+\n'
_SYNTAX = r"\b(?:SyntaxError|IndentationError|TabError)"
_ERROR = r"^(?:E\s+|said: )(?:\w+\.)*"

_GUARDS = (
    *_shows(C.SANDBOX_VIOLATION, PRODUCT, denied=r"^said: .*which the plan denies"),
    *_shows(
        C.ALLOWLIST_VIOLATION,
        PLAN,
        not_granted=r"^said: .*(?:allowed_files grants|which the plan protects)",
    ),
    *_shows(
        C.BUDGET_EXCEEDED,
        PLAN,
        budget=r"^said: .*(?:budget|new files|wall|memory).*\d+ .*(?:of|limit|only)",
    ),
    *_shows(
        C.HYGIENE_VIOLATION,
        PRODUCT,
        overturned=r"^said: .*(?:was reported as|records of the run)",
        weakened=r"^said: .*(?:assert|check|test|skip|xfail|conftest).*(?:removed|weak|deleted|added|gone)",
        judge=r"^said: .*(?:baseline|judge|tamper|no longer (?:collected|asserts)|is not collected)",
        always_equal=r"^said: \S+__eq__ always says|^said: os\.environ is searched for tests",
        expected_value=r"^said: An expected value of \S+ is another one|never comes to its assertions",
        probing=r"^said: .*(?:takes values from its caller|answers inputs of the tests|os\._exit ends)",
        replaced=r"^said: (?:_?pytest|unittest|builtins)\.\S+ is replaced",
        hooks=r"^said: The hook pytest_\w+ |^said: pytest's option \w+ was changed",
    ),
)

_NO_PYTEST = _shows(
    C.ENVIRONMENT_ERROR, MACHINE, no_pytest=r"^(?:/\S+python\S*: )?No module named '?pytest\b"
)

_CRITERIA = (
    *_shows(
        C.METRIC_UNMET,
        PRODUCT,
        metric=r"^said: \w+ is \S+, not [<>=!]=? ",
        metric_odd=r"^said: \w+ was recorded as .*no finite number",
    ),
    *_shows(C.METRIC_UNMET, TEST, metric_absent=r"^said: no test recorded \w+"),
    *_shows(
        C.ARTIFACT_MISSING,
        PRODUCT,
        artifact=r"^said: (?!.*::)\S+ (?:does not exist|is empty|has [\d.]+ ?\w*, (?:less|more) than)",
        artifact_kind=r"^said: \S+ is .*, not a file",
        artifact_other=r"^said: \S+ (?:has the sha256|is no JSON|does not satisfy)|^said: nothing matches ",
    ),
    *_shows(
        C.SPEC_MISMATCH,
        PRODUCT,
        contract=r"^said: (?!\w*Error).*(?:contract|promise|signature of|not define|is no module)\b",
    ),
)

_SELECTION = (
    *_shows(
        C.TEST_NOT_FOUND,
        PLAN,
        test_file_absent=rf"^said: {_TEST_FILE} does not exist|^said: Wrong expression passed to",
        no_such_test=r"names no test of that file|selects no test|holds no test|is not a valid expression",
        nothing_collected=r"no test was collected|^ERROR: (?:not found|file or directory not found)",
        nothing_ran=r"no tests ran|collected 0 items",
        no_target=r"No rule to make target|Missing script:|no such target",
    ),
    *_shows(C.TEST_NOT_FOUND, TEST, all_skipped=r"^said: no test (?:ran|passed): all (?:were|are)"),
)

_ENDINGS = (
    *_shows(
        C.TEST_TIMEOUT,
        PRODUCT,
        limit=r"^the time limit was passed|^said: .*for a limit of",
        timeout=r"^(?:E\s+|said: )Failed: Timeout|^\++ Timeout \++$",
    ),
    *_shows(
        C.TEST_CRASH,
        PRODUCT,
        fatal=r"^ended by signal SIG(?:SEGV|ABRT|BUS|FPE|ILL)|^(?:Fatal Python error|Segmentation fault)",
        worker_died=r"worker '?gw\d+'? crashed|node down: Not properly terminated",
        killed=r"^ended by signal SIGKILL|^exit status 137$",
        signal=r"^ended by signal ",
        left=r"^said: .*ended (?:the process|with exit status)|^exit status 1(?:3[2-9]|4\d)$",
    ),
)

_ASSERTIONS = (
    *_shows(C.TEST_REGRESSION, TEST, strict_xpass=r"\[XPASS\(strict\)\]"),
    *_shows(
        C.TEST_REGRESSION,
        PRODUCT,
        assertion=r"^said: (?:AssertionError|assert )",
        did_not_raise=r"^said: Failed: DID NOT (?:RAISE|WARN)",
        by_hand=rf"{_IN_TEST}Failed$",
    ),
)

_ENVIRONMENT = (
    *_shows(
        C.ENVIRONMENT_ERROR,
        MACHINE,
        fixture=r"^said: FixtureLookupError|^E\s+fixture '\w+' not found",
        arguments=r"unrecognized arguments|error: argument .*: (?:invalid|expected)|no such option",
        plugins=r"Missing required plugins|requires pytest-\S+|Unknown config option|PluginValidationError",
        mark=r"not found in `markers` configuration option|Unknown pytest\.mark\.",
        async_plugin=r"async def functions are not natively supported",
        two_files=r"import file mismatch",
        no_tool=r"No module named '?(?:pytest|mypy|ruff|flake8|pyright|pylint|black|tox|coverage)\b",
        disk=r"No space left on device|Disk quota exceeded|\[Errno 27\] File too large|disk is full",
        driver=r"executable needs to be in PATH|[Cc]annot find Chrome|Message: .*driver",
        port=r"Address already in use|\[Errno 98\]",
        database=r"too many connections|FATAL: |password authentication failed|database is locked",
        lock=r"is held by process|already locked|could not acquire lock",
        folder_of_machine=r"^said: FileNotFoundError: .*'/(?:srv|var|opt|etc|mnt|data|run)/",
        read_only=r"Read-only file system|\[Errno 30\]",
        open_files=r"Too many open files|\[Errno 24\]",
        connection=r"[Cc]onnection (?:refused|reset by peer)|Max retries exceeded",
        name_service=r"Name or service not known|Temporary failure in name resolution|gaierror",
        service=r"HTTP Error 50[234]|Connect call failed|Error 111 connecting|unable to open database file",
        network=r"Network is unreachable|No route to host|SSLCertVerificationError|[Cc]ould not connect to",
        permission=r"\[Errno 13\] Permission denied|Operation not permitted",
        locale=r"unsupported locale setting|locale\.Error|No time zone found|ZoneInfoNotFoundError",
        shared_library=r"cannot open shared object file|DLL load failed|undefined symbol",
        not_installed=r": (?:command )?not found$|executable file not found|not installed|not on PATH",
        tool_failed=r"CalledProcessError: .*non-zero exit status 12[678]",
        metadata=r"PackageNotFoundError|DistributionNotFound",
        binary=r"compiled against (?:ABI|API|NumPy)|binary incompatib|numpy\.dtype size changed",
        old_library=r"(?s)File \"\S*site-packages/[^\"\n]*\", line \d+\n.{0,200}?SyntaxError:",
        program=r"No such file or directory: '[\w+-]+'$",
        variable=rf"{_ERROR}KeyError: '[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+'",
        threads=r"can't start new thread|Resource temporarily unavailable",
        memory=rf"{_ERROR}MemoryError|Cannot allocate memory",
        display=r"cannot connect to X server|no display name|Docker daemon",
        tests_package=r"No module named '?tests?\b|cannot import name .* from 'tests?' ",
        library=rf"{_IN_LIBRARY}in$|^raised at \S*site-packages/pytest_\w+\.py: ",
        no_such_tool=r"(?s)^raised at /\S*subprocess\.py: .*^said: TypeError: expected str, bytes or os",
    ),
    *_shows(C.HARNESS_ERROR, Owner.HARNESS, own_error=r"^INTERNALERROR>.*planverify"),
    *_shows(C.ENVIRONMENT_ERROR, MACHINE, plugin_error=r"^INTERNALERROR>"),
)

_COMPILING = (
    *_shows(C.TEST_REGRESSION, PRODUCT, syntax_of_data=r"SyntaxError: .*\(<\w+>, line \d+\)"),
    *_shows(
        C.COMPILATION_ERROR,
        TEST,
        syntax_in_test=rf"(?s){_FILE_OF_TESTS}.{{0,300}}?{_SYNTAX}:",
    ),
    *_shows(
        C.COMPILATION_ERROR,
        PRODUCT,
        syntax=rf"{_SYNTAX}: ",
        compiler=r"^error\[E\d+\]|error TS1\d{3}:|^\S+\.go:\d+:\d+: syntax error|cannot parse",
        checker_syntax=r"\[syntax\]$|invalid-syntax|\bE999\b|Parsing error: ",
        expected_token=r"error: expected (?:\W|expression|identifier|declaration)",
    ),
    *_shows(
        C.IMPORT_ERROR, PRODUCT, checker_import=r"\[import-[\w-]+\]$|reportMissingImports|error TS2307"
    ),
    *_shows(
        C.TYPE_ERROR,
        PRODUCT,
        type_checker=r"^\$ .*\b(?:mypy|pyright|tsc|dmypy)\b",
        type_findings=r"error TS\d+:|^Found \d+ errors? in \d+ files?|\(report\w+\)$",
    ),
    *_shows(
        C.LINT_ERROR,
        PRODUCT,
        lint_target=r"^\$ .*\b(?:ruff|flake8|pylint|eslint|black|isort|clippy|vet|golangci-lint|lint)\b",
    ),
    *_shows(
        C.COMPILATION_ERROR,
        PRODUCT,
        build=r"^\S+\.go:\d+:\d+: |\*\*\* .*\.o\]|collect2: error|^error: could not compile",
    ),
)

_IMPORTING = (
    *_shows(C.TEST_REGRESSION, PRODUCT, circular=r"partially initialized module|circular import"),
    *_shows(C.IMPORT_ERROR, PRODUCT, library_name=rf"cannot import name '\w+' from \S+ {_LIBRARY_FILE}"),
    *_shows(
        C.TEST_REGRESSION,
        TEST,
        name_of_tests=r"cannot import name '\w+' from \S+ \(\S*/(?:tests?/|conftest)",
    ),
    *_shows(C.SPEC_MISMATCH, PRODUCT, name_gone=r"ImportError: cannot import name '\w+' from"),
    *_shows(C.ARTIFACT_MISSING, PRODUCT, module_gone=r"ModuleNotFoundError: No module named '\w+\.[\w.]+'"),
    *_shows(
        C.IMPORT_ERROR,
        PRODUCT,
        module_absent=r"ModuleNotFoundError: No module named",
        package_absent=r"Cannot find (?:module|package)|no required module provides",
        import_error=rf"{_ERROR}ImportError\b",
    ),
)

_NODE = (
    *_shows(C.SPEC_MISMATCH, PRODUCT, not_a_function=r"TypeError: \S+ is not a function"),
    *_shows(C.TYPE_ERROR, PRODUCT, no_property=r"TypeError: Cannot read propert"),
    *_shows(
        C.TEST_CRASH, PRODUCT, child_died=r"exitCode: (?:1(?:3\d)|null)|signal: 'SIG|test failed \(signal"
    ),
)

_CALLS = (
    *_shows(C.TEST_REGRESSION, TEST, in_conftest=r"^raised at (?:\S*/)?conftest\.py: "),
    *_shows(
        C.SPEC_MISMATCH,
        PRODUCT,
        call_in_test=rf"(?s){_IN_TEST}TypeError.*\(\) (?:takes|missing \d+ req|got (?:an unexp|multi))",
        call=rf"(?s){_NOT_IN_PRODUCT}.*^said: TypeError: .*\(\) (?:takes|missing \d+ req|got an unexp)",
        module_attribute=r"AttributeError: module '[\w.]+' has no attribute",
        patched=r"AttributeError: <(?:module|class) .*does not have the attribute",
        abstract=r"Can't instantiate abstract class",
    ),
    *_shows(C.TEST_REGRESSION, PRODUCT, none_in_test=rf"(?s){_IN_TEST}.*'NoneType' object "),
    *_shows(C.SPEC_MISMATCH, PRODUCT, attribute_in_test=rf"{_IN_TEST}AttributeError"),
    *_shows(
        C.TYPE_ERROR,
        PRODUCT,
        kind_in_product=rf"{_IN_PRODUCT}(?:TypeError|AttributeError)",
        kind_below=rf"{_IN_PRODUCT}in$(?s:.*)^said: (?:Type|Attribute)Error",
        kind_elsewhere=rf"(?s){_NOT_IN_TEST}.*^said: (?:TypeError|AttributeError): .*(?:NoneType|iterable)",
    ),
    *_shows(
        C.TEST_REGRESSION,
        TEST,
        name_in_test=rf"(?s){_NOT_IN_PRODUCT}.*^said: (?:NameError|UnboundLocalError)",
    ),
)

_BEHAVIOUR = (
    *_shows(
        C.FLAKY_TEST, TEST, unreliable=r"Flaky: |produces unreliable results|Inconsistent(?: data| results)"
    ),
    *_shows(C.ARTIFACT_MISSING, PRODUCT, file_missing=rf"{_ERROR}FileNotFoundError"),
    *_shows(
        C.TEST_REGRESSION,
        PRODUCT,
        recursion=r"RecursionError",
        any_assertion=r"^E\s+(?:AssertionError|assert )",
        doctest=r"^Expected:\n(?s:.*)^Got:",
    ),
    *_shows(C.ENVIRONMENT_ERROR, MACHINE, shell=r"^exit status 12[67]$", usage=r"^exit status 4$|^usage: "),
)

RUNGS: tuple[Rung, ...] = (
    *_GUARDS,
    *_NO_PYTEST,
    *_SELECTION,
    *_CRITERIA,
    *_ENDINGS,
    *_ASSERTIONS,
    *_ENVIRONMENT,
    *_COMPILING,
    *_IMPORTING,
    *_NODE,
    *_CALLS,
    *_BEHAVIOUR,
)

_CONFIDENCE = 0.8
_LAST = Rung("nothing-matched", "", C.TEST_REGRESSION, Owner.PRODUCT)
"""Used if nothing matches, because most failures are regressions."""

_RAISED_AT = re.compile(
    r"^(?P<path>[^\s:][^:\n]*\.py):(?P<line>\d+): (?P<error>[A-Za-z_][\w.]*)", re.MULTILINE
)
_COMPILED = tuple((rung, re.compile(rung.pattern, re.MULTILINE)) for rung in RUNGS)


def guess(evidence: Evidence) -> Guess:
    """Return the reading of the first rung that matches."""
    text = printed(evidence)
    rung = next((rung for rung, pattern in _COMPILED if pattern.search(text)), _LAST)
    return Guess(rung.category, rung.owner, _CONFIDENCE, rule=rung.name)


def printed(evidence: Evidence) -> str:
    """Return the text that the patterns search: exit, place of the exception, then the whole output."""
    lines: list[str] = []
    process = evidence.process
    if process is not None and process.signal:
        lines.append(f"ended by signal {process.signal}")
    if process is not None and process.exit_code is not None:
        lines.append(f"exit status {process.exit_code}")
    if evidence.timed_out or (process is not None and process.timed_out):
        lines.append("the time limit was passed")
    if evidence.command is not None:
        lines.append(f"$ {' '.join(evidence.command.argv)}")
    places = [*_RAISED_AT.finditer(evidence.longrepr)]
    if places:
        lines.append(f"raised at {places[-1]['path']}: {places[-1]['error']}")
    return "\n".join([*lines, f"said: {evidence.headline}", _whole_text(evidence)])


def _whole_text(evidence: Evidence) -> str:
    """Return the whole output: the rendering of the failure and the ends of the captured streams."""
    parts = [evidence.headline, evidence.longrepr, evidence.stdout_tail, evidence.stderr_tail]
    parts += [evidence.command.output_tail] if evidence.command else []
    parts += [evidence.process.stack or ""] if evidence.process else []
    return "\n".join(part for part in parts if part)
