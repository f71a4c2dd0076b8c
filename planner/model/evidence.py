"""Evidence: the facts observed about one failure. No opinion stands here; that is the diagnosis.

Everything in it is data that a rule may look at by structure: the phase, the chain of exceptions with
the frames that raised them and whose files those are, how a process ended, what a tool complained of,
what repeated runs said.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.verdicts import EvidenceKind, Hardness, Phase, Side


class Frame(ReadValue):
    """One frame of a traceback."""

    path: str
    """Relative to the plan's root where it is below it, else absolute."""
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
    """Outermost call first, the raising frame last; at most the 10 first and the 40 last."""
    name: str | None = None
    """``ImportError.name``, ``NameError.name`` or ``AttributeError.name``."""
    path: str | None = None
    """``ImportError.path``, ``OSError.filename`` or ``SyntaxError.filename``."""
    errno: int | None = None
    line: int | None = None
    """``SyntaxError.lineno``."""
    object_type: str | None = None
    """The type of ``AttributeError.obj``, ``module pkg.sub`` where it is a module."""
    object_side: Side | None = None
    """Whose code that type or module is."""
    place: str | None = None
    """Of a missing module whose package is there: the file that it would be."""
    nearest: tuple[str, ...] = ()
    """Of a missing module of the project: modules beside it whose names are near, or its unbuilt source."""


class RequirementFact(ReadValue):
    """A distribution that the project's metadata asks for and that is not installed as asked."""

    name: str
    asked: str = ""
    """The versions that are asked for: ``>=2.1,<3``."""
    installed: str | None = None
    """The version that is installed; ``None`` where none is."""
    modules: tuple[str, ...] = ()
    """Top-level modules of what is installed."""
    file: str = ""
    """Where it is declared."""


class Selector(ReadValue):
    """A part of a command that selects tests, and why it selected none."""

    text: str
    """As the command says it: ``tests/test_a.py::test_b``, ``-k expression``."""
    problem: str
    """``missing_file missing_id no_match bad_expression empty`` or ``unknown_option``."""
    nearest: tuple[str, ...] = ()
    """Existing names that look alike, the most alike first."""


class ProcessEnd(ReadValue):
    """The end of a process: exit code, signal or time limit."""

    exit_code: int | None = None
    signal: str | None = None
    """The name of the signal that ended it: ``SIGSEGV``."""
    stack: str | None = None
    """What faulthandler wrote, the newest call first."""
    complete: bool = False
    """The session said by itself that it was finished."""
    timed_out: bool = False
    """The supervisor ended it because a limit was passed."""


class Finding(ReadValue):
    """One complaint of a tool, read from its output."""

    path: str | None = None
    line: int | None = None
    column: int | None = None
    code: str | None = None
    """The tool's rule: ``F401``, ``arg-type``, ``TS2322``."""
    message: str
    severity: str | None = None


class CommandFact(ReadValue):
    """A command that is not pytest, and what it said."""

    argv: tuple[str, ...]
    tool: str
    """The catalog's name of the tool: ``ruff``."""
    purpose: str
    """The catalog's category: ``test``, ``lint``, ``type_check``, ``build`` or ``validate``."""
    found: bool = True
    """Whether the program is there to be run."""
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
    """What was recorded, as text; values that are no finite numbers too."""
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
    """Of a signature, what differs: ``the parameter period is renamed to window``."""
    module_path: str | None = None
    line: int | None = None


class ChangedFile(ReadValue):
    """A file of the project that is not as it was."""

    path: str
    """Relative to the plan's root."""
    side: Side | None = None
    """Product or test; ``None`` where it is neither, as of a document."""


class Hunk(ReadValue):
    """One changed piece of a file, compared with the baseline, the last green run or the last commit."""

    path: str
    """Relative to the plan's root."""
    line: int
    """The first changed line, in the file as it is now."""
    added: int = 0
    """Lines that are new."""
    removed: int = 0
    """Lines that are gone."""
    function: str | None = None
    """Qualified name of the innermost function or class around it; ``None`` at the level of the module."""
    side: Side | None = None
    """Product or test; ``None`` where it is neither."""
    text: str = ""
    """The lines of a unified diff, without its header; at most 40 lines."""


class ExecutedFunction(ReadValue):
    """A function of the product that a failing test executed, and how many of the tests beside it did."""

    path: str
    """Relative to the plan's root where it is below it, else absolute."""
    line: int
    """Where it begins."""
    function: str
    """Qualified name."""
    red: int = 1
    """How many of the red tests that were recorded executed it."""
    green: int = 0
    """The same of the green tests."""
    suspect_line: int | None = None
    """The line of it that the red tests execute most, and the green ones least; where lines were seen."""
    line_red: int = 0
    line_green: int = 0
    """How many tests executed that line."""
    depth: int = 0
    """How many functions of the product are called on the way to it; 0 where the tests call it."""


class Confirmation(ReadValue):
    """The result of one repeated run of a failing check."""

    where: str
    """``alone`` (its command in a process of its own) or ``company`` (while other criteria ran)."""
    passed: bool
    duration_ms: int = 0


class HygieneSignal(ReadValue):
    """One sign that a verdict was bought, with the exact place."""

    sign: str
    """The id of the detector: ``assertion-removed``, ``report-overturned``."""
    hardness: Hardness
    message: str
    """One sentence that names the thing."""
    path: str | None = None
    """Relative to the plan's root where it is below it, else absolute."""
    line: int | None = None
    """In the file as it is now; of something removed, in the file as it was."""
    nodeid: str | None = None
    before: str | None = None
    """What stood there at the baseline: a line or two."""
    after: str | None = None


class AuditEvent(ReadValue):
    """Something that a process of the run reached for outside itself."""

    event: str
    """``connect``, ``process`` or ``write``."""
    target: str
    """``host:port``, the program, or the path."""
    nodeid: str | None = None
    """The test that was running; absent while files were imported, and between tests."""
    path: str | None = None
    """The file that was being collected, or the conftest that was being imported."""
    phase: Phase | None = None
    denied: bool = False
    """The plan denies it, and it was refused."""
    count: int = 1


class BudgetFact(ReadValue):
    """A limit of the plan's budget that was passed."""

    name: str
    """``wall_seconds``, ``memory_mb`` or ``new_files``."""
    limit: float
    used: float
    examples: tuple[str, ...] = ()
    """Some of the new files, or the processes that used most."""


class Evidence(ReadValue):
    """All facts about one failure of one criterion."""

    kind: EvidenceKind
    check_id: str = ""
    phase: Phase | None = None
    nodeid: str | None = None
    exceptions: tuple[ExceptionFact, ...] = ()
    """The exception that surfaced first, then its cause or context, and so on."""
    exceptions_in_group: tuple[ExceptionFact, ...] = ()
    """The leaves of an ``ExceptionGroup``."""
    headline: str = ""
    """The line that a person would quote: ``AssertionError: assert 32.1 == 28.5``."""
    longrepr: str = ""
    """The tail of pytest's own rendering of the failure."""
    stdout_tail: str = ""
    stderr_tail: str = ""
    limit_seconds: Annotated[float, Field(gt=0)] | None = None
    duration_seconds: float | None = None
    timed_out: bool = False
    """A limit was passed, whether or not the test noticed."""
    strict_xpass: bool = False
    first_party: tuple[str, ...] = ()
    """Top-level names of the project's own packages and modules."""
    test_packages: tuple[str, ...] = ()
    """Top-level names that only tests provide."""
    fixtures: tuple[str, ...] = ()
    """Names of the fixtures that the test uses."""
    known_fixtures: tuple[str, ...] = ()
    """Names of the fixtures that the test could use; told when it asks for one that is not there."""
    subjects: tuple[Frame, ...] = ()
    """The product's functions and classes that the raising test frame names, where they are defined."""
    process: ProcessEnd | None = None
    selectors: tuple[Selector, ...] = ()
    vacuous: str | None = None
    """Why green tests prove nothing: ``nothing_collected``, ``all_skipped`` or ``only_xfailed``."""
    skip_reasons: tuple[str, ...] = ()
    command: CommandFact | None = None
    artifact: ArtifactFact | None = None
    metric: MetricFact | None = None
    contract: ContractFact | None = None
    contract_path: str | None = None
    """The contract that the todo names, whether or not it was checked."""
    promised: str | None = None
    """The signature that this contract promises for the function whose call failed."""
    actual_signature: str | None = None
    """The signature that the product's source has for that function."""
    changed: tuple[ChangedFile, ...] | None = None
    """What differs from the commit at which the todo was green last, else from the baseline, else from the
    last commit; at most 50 files. ``None`` where nothing is known of it."""
    changed_since: str | None = None
    """Since when: ``green``, ``baseline`` or ``commit``."""
    unmet: tuple[RequirementFact, ...] = ()
    """What the project's metadata asks for and the installation does not have."""
    hunks: tuple[Hunk, ...] = ()
    """The pieces of these files that differ; at most 300."""
    executed: tuple[ExecutedFunction, ...] = ()
    """The functions of the product that the test executed when it was confirmed; at most 150."""
    self_contained: bool = False
    """The test uses nothing but builtins, plain modules and what its own file defines."""
    red_tests: int = 0
    """How many red tests were recorded, this one among them."""
    green_tests: int = 0
    """How many green tests of the same files were recorded."""
    confirmations: tuple[Confirmation, ...] = ()
    swallowed_timeout: bool = False
    """The test passed, but longer after its limit than a limit allows."""
    tests: tuple[str, ...] = ()
    """Node ids of every test that failed in this very way."""
    signals: tuple[HygieneSignal, ...] = ()
    events: tuple[AuditEvent, ...] = ()
    outside: tuple[str, ...] = ()
    """Changed files that no todo's ``allowed_files`` grants."""
    granted: tuple[str, ...] = ()
    """The globs that were asked."""
    budget: BudgetFact | None = None
