"""Evidence: the facts observed about one failure, without interpretation; that is the diagnosis.

All facts are structured data for rules: the phase, the chain of exceptions with their frames and the owners
of their files, the end of a process, the findings of a tool, the results of repeated runs.
"""

from typing import Annotated

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.verdicts import EvidenceKind, Phase, Side


class Frame(ReadValue):
    """One frame of a traceback."""

    path: str
    """Relative to the plan's root if it is below it, else absolute."""
    line: int
    function: str
    """Qualified name."""
    module: str | None = None
    side: Side
    source: str | None = None
    """The source line, stripped."""


class ExceptionFact(ReadValue):
    """One exception of a chain."""

    type: str
    """The bare class name, ``AssertionError``."""
    qualified: str
    """With its module, ``builtins.AssertionError``."""
    bases: tuple[str, ...] = ()
    """Qualified names of the base classes in method resolution order, without ``object``."""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    """Outermost call first, the raising frame last; at most the first 10 and the last 40."""
    name: str | None = None
    """``ImportError.name``, ``NameError.name`` or ``AttributeError.name``."""
    path: str | None = None
    """``ImportError.path``, ``OSError.filename`` or ``SyntaxError.filename``."""
    errno: int | None = None
    line: int | None = None
    """``SyntaxError.lineno``."""
    object_type: str | None = None
    """The type of ``AttributeError.obj``; ``module pkg.sub`` for a module."""
    object_side: Side | None = None
    """The owner of that type or module."""
    place: str | None = None
    """For a missing module whose package exists: the path that it would have."""
    nearest: tuple[str, ...] = ()
    """For a missing module of the project: siblings with similar names, or its unbuilt source. For a file:
    those that have its relative path seen from a folder around the code that reads it.
    """


class RequirementFact(ReadValue):
    """A distribution that the project's metadata requires, but that is missing or has another version."""

    name: str
    asked: str = ""
    """The required versions: ``>=2.1,<3``."""
    installed: str | None = None
    """The installed version; ``None`` if it is missing."""
    modules: tuple[str, ...] = ()
    """Top-level modules of the installed distribution."""
    file: str = ""
    """The file that declares the requirement."""


class Selector(ReadValue):
    """A part of a command that selects tests, and why it selected none."""

    text: str
    """The text in the command: ``tests/test_a.py::test_b``, ``-k expression``."""
    problem: str
    """``missing_file missing_id no_match empty unknown_option`` or ``bad_value``."""
    nearest: tuple[str, ...] = ()
    """Existing names that are similar, the most similar first."""


class ProcessEnd(ReadValue):
    """The end of a process: exit code, signal or time limit."""

    exit_code: int | None = None
    signal: str | None = None
    """The name of the signal that ended it: ``SIGSEGV``."""
    stack: str | None = None
    """The output of faulthandler, newest call first."""
    complete: bool = False
    """The session reported that it was finished."""
    timed_out: bool = False
    """The supervisor killed it because it exceeded a time limit."""


class Finding(ReadValue):
    """One finding of a tool, parsed from its output."""

    path: str | None = None
    line: int | None = None
    column: int | None = None
    code: str | None = None
    """The tool's rule: ``F401``, ``arg-type``, ``TS2322``."""
    message: str
    severity: str | None = None


class CommandFact(ReadValue):
    """A command other than pytest, and its output."""

    argv: tuple[str, ...]
    tool: str
    """The catalog's name of the tool: ``ruff``."""
    purpose: str
    """The catalog's category: ``test``, ``lint``, ``type_check``, ``build`` or ``validate``."""
    found: bool = True
    """Whether the program is installed."""
    output_tail: str = ""
    """The end of standard output and standard error."""
    findings: tuple[Finding, ...] = ()


class ArtifactFact(ReadValue):
    path: str
    problem: str
    """``missing``, ``empty``, ``too_small``, ``too_large``, ``not_a_file``, ``outside_root``, ``not_json``,
    ``schema``, ``bad_schema``, ``sha256``, ``unreadable`` or ``no_match`` of a glob."""
    expected: str | None = None
    actual: str | None = None
    nearest: tuple[str, ...] = ()


class MetricFact(ReadValue):
    name: str
    operator: str
    expected: float
    recorded: tuple[str, ...] = ()
    """The recorded values as text, including those that are no finite numbers."""
    problem: str
    """``unmet``, ``not_recorded`` or ``not_a_number``."""


class ContractFact(ReadValue):
    path: str
    function: str | None = None
    problem: str
    """``missing_module``, ``missing_function``, ``signature``, ``unreadable`` or ``unresolved``."""
    expected: str | None = None
    actual: str | None = None
    why: str | None = None
    """For a signature, the difference: ``it lacks the parameter period``."""
    module_path: str | None = None
    line: int | None = None


class ChangedFile(ReadValue):
    """A changed file of the project."""

    path: str
    """Relative to the plan's root."""
    side: Side | None = None
    """Product or test; ``None`` if neither, such as a document."""


class Hunk(ReadValue):
    """One change of a file, compared with the baseline, the last passing run or the last commit."""

    path: str
    """Relative to the plan's root."""
    line: int
    """The first changed line, in the current file."""
    added: int = 0
    """Number of added lines."""
    removed: int = 0
    """Number of removed lines."""
    function: str | None = None
    """Qualified name of the innermost function or class around it; ``None`` at module level."""
    side: Side | None = None
    """Product or test; ``None`` if neither."""
    text: str = ""
    """The changed lines of a unified diff, at most 40; of more than 20, docstrings are left out."""
    is_unread: bool = False
    """The failing criterion is known not to have read the file."""


class ExecutedFunction(ReadValue):
    """A function of the product that a failing test executed, with the numbers of tests that did."""

    path: str
    """Relative to the plan's root if it is below it, else absolute."""
    line: int
    """Its first line."""
    function: str
    """Qualified name."""
    red: int = 1
    """Number of recorded failing tests that executed it."""
    green: int = 0
    """Number of recorded passing tests that executed it."""
    suspect_line: int | None = None
    """Its line that most failing and fewest passing tests executed, if lines were recorded."""
    line_red: int = 0
    """Number of failing tests that executed that line."""
    line_green: int = 0
    """Number of passing tests that executed that line."""
    depth: int = 0
    """Number of product functions on the call path to it; 0 if the tests call it."""
    is_origin_of_none: bool = False
    """It returned the ``None`` that the exception is about."""


class Confirmation(ReadValue):
    """The result of one repeated run of a failing check."""

    where: str
    """``alone`` (its command in a process of its own) or ``company`` (while other criteria ran)."""
    passed: bool
    duration_ms: int = 0


class HygieneSignal(ReadValue):
    """One signal of tampering, with its exact position."""

    sign: str
    """The id of the detector: ``assertion-removed``, ``report-overturned``."""
    message: str
    """One sentence that names the object."""
    path: str | None = None
    """Relative to the plan's root if it is below it, else absolute."""
    line: int | None = None
    """Line in the current file; for something removed, in the file at the baseline."""
    nodeid: str | None = None
    before: str | None = None
    """One or two lines of the text at the baseline."""
    after: str | None = None


class AuditEvent(ReadValue):
    """An access to a resource outside of a process of the run."""

    event: str
    """``connect``, ``process`` or ``write``."""
    target: str
    """``host:port``, the program, or the path."""
    nodeid: str | None = None
    """The running test; absent during imports and between tests."""
    path: str | None = None
    """The file that was being collected, or the conftest that was being imported."""
    phase: Phase | None = None
    denied: bool = False
    """The plan denies the access, and it was refused."""


class BudgetFact(ReadValue):
    """A limit of the plan's budget that was exceeded."""

    name: str
    """``wall_seconds``, ``memory_mb`` or ``new_files``."""
    limit: float
    used: float
    examples: tuple[str, ...] = ()
    """Some of the new files, or the processes with the largest use."""


class Evidence(ReadValue):
    """All facts about one failure of one criterion."""

    kind: EvidenceKind
    check_id: str = ""
    phase: Phase | None = None
    nodeid: str | None = None
    exceptions: tuple[ExceptionFact, ...] = ()
    """The exception that was reported, then its cause or context, and so on."""
    exceptions_in_group: tuple[ExceptionFact, ...] = ()
    """The leaves of an ``ExceptionGroup``."""
    headline: str = ""
    """The summary in one line: ``AssertionError: assert 32.1 == 28.5``."""
    longrepr: str = ""
    """The tail of pytest's own rendering of the failure."""
    stdout_tail: str = ""
    stderr_tail: str = ""
    limit_seconds: Annotated[float, Field(gt=0)] | None = None
    duration_seconds: float | None = None
    timed_out: bool = False
    """A time limit was exceeded, even if the test caught the exception."""
    strict_xpass: bool = False
    first_party: tuple[str, ...] = ()
    """Top-level names of the project's own packages and modules."""
    test_packages: tuple[str, ...] = ()
    """Top-level names that only tests provide."""
    fixtures: tuple[str, ...] = ()
    """Names of the fixtures that the test uses."""
    known_fixtures: tuple[str, ...] = ()
    """Names of the fixtures available to the test; recorded if it requests a missing one."""
    subjects: tuple[Frame, ...] = ()
    """Definitions of the product's functions and classes that the raising frame of the test names."""
    process: ProcessEnd | None = None
    selectors: tuple[Selector, ...] = ()
    vacuous: str | None = None
    """Why no failure proves nothing: ``nothing_collected``, ``all_skipped`` or ``only_xfailed``."""
    skip_reasons: tuple[str, ...] = ()
    command: CommandFact | None = None
    artifact: ArtifactFact | None = None
    metric: MetricFact | None = None
    contract: ContractFact | None = None
    contract_path: str | None = None
    """The contract that the todo names, even if it was not checked."""
    promised: str | None = None
    """The signature that this contract promises for the function whose call failed."""
    actual_signature: str | None = None
    """The signature of that function in the product's source."""
    changed: tuple[ChangedFile, ...] | None = None
    """Files that differ from the commit at which the todo last passed, else from the baseline, else from
    the last commit; at most 50. ``None`` if unknown."""
    changed_since: str | None = None
    """What they are compared with: ``green`` (last pass), ``baseline`` or ``commit``."""
    unmet: tuple[RequirementFact, ...] = ()
    """Requirements of the project's metadata that the installation does not meet."""
    hunks: tuple[Hunk, ...] = ()
    """The changes of these files; at most 300."""
    executed: tuple[ExecutedFunction, ...] = ()
    """The functions of the product that the test executed when it was confirmed; at most 150."""
    self_contained: bool = False
    """The test uses only builtins, plain modules and definitions of its own file."""
    red_tests: int = 0
    """Number of recorded failing tests, including this one."""
    green_tests: int = 0
    """Number of recorded passing tests of the same files."""
    confirmations: tuple[Confirmation, ...] = ()
    passed_unchanged: bool = False
    """The failed tests passed at the baseline, and no file has changed since then."""
    swallowed_timeout: bool = False
    """The test passed although it ran longer than its time limit."""
    tests: tuple[str, ...] = ()
    """Node ids of all tests that failed in the same way."""
    signals: tuple[HygieneSignal, ...] = ()
    events: tuple[AuditEvent, ...] = ()
    outside: tuple[str, ...] = ()
    """Changed files that no todo's ``allowed_files`` match."""
    granted: tuple[str, ...] = ()
    """The ``allowed_files`` of the todo that was worked on; for a failed import also files that todos
    produce, and those of the missing module that the last commit deleted.
    """
    budget: BudgetFact | None = None
