"""Structured access to evidence for rules: the exception in focus, the raising frame, the changed files.

A :class:`Case` wraps one :class:`Evidence`. Its properties are computed on first use and cached, since most
rules are rejected after one or two queries. For commands and sessions without observed exceptions the
exception is parsed from the printed output (:mod:`pytest_planverify.diagnosis.tool_output`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from planner.catalog.test_paths import is_test_module, is_test_path
from planner.model.evidence import CommandFact, Evidence, ExceptionFact, Frame, Hunk, ProcessEnd
from planner.model.taxonomy import Repeatability
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis.known import names_in
from pytest_planverify.diagnosis.messages import alike
from pytest_planverify.diagnosis.tool_output import (
    CANNOT_IMPORT,
    INTERNAL_ERROR,
    MARKS_OF_ERRORS,
    read_script_error,
    read_stuck_frame,
    read_traceback,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

PROJECT_SIDES = (Side.TEST, Side.PRODUCT)
"""Sides whose files belong to the project."""

NO_ERROR = ExceptionFact(type="", qualified="")
"""Null object for a missing exception: without class and frames."""

SCRIPT_PURPOSES = frozenset({"test", "validate", "build", "other"})
"""Purposes of commands that run code of the project."""
_IN_SESSION = ("session", "test", "collection")
"""Kinds of evidence from a session of pytest."""
_NO_PROCESS = ProcessEnd()
_NO_COMMAND = CommandFact(argv=(), tool="", purpose="")
_OF_PEERS = (*names_in("peer_errors"), "TimeoutError")
_DELEGATING = (".__getattr__", ".__getattribute__")
_ASSERTION = "builtins.AssertionError"
_ROOTS = frozenset({"src", "lib", "python"})
"""Folders that contain packages but are no packages themselves."""
PROSE = (".md", ".rst", ".txt", ".pyc")
"""Suffixes of files that rarely cause failures; other files may be data or configuration."""
_NAME = re.compile(r"(?<!\bas )\b[A-Za-z_]\w*")  # without the names that imports give
_DEFINES = re.compile(r"^\+\s*(?:async )?def ", re.MULTILINE)
_REMOVED_TEXT = re.compile(r"^-[^\S\n]*\S", re.MULTILINE)
_CHANGED_CODE = re.compile(r"^[+-][^\S\n]*[^\s#]", re.MULTILINE)


class lazy(Generic[T]):
    """A cached property, like ``functools.cached_property`` without a lock."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> T:
        # Without ``__set__`` the instance's entry shadows the descriptor, so this runs once per instance.
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value


_FACTS = (
    *(kind.value for kind in EvidenceKind),
    "selectors",
    "all-skipped",
    "nothing-checked",  # no test ran, or a selection proves nothing
    "strict-xpass",
    "unmet",  # the installation does not meet the project's requirements
    "collect",  # the phase
    "flaky",  # a confirming run passed
    "limit",  # a time limit was exceeded
    "ended",  # a signal ended the process, or it is a session
    "signal",
    "died",  # the process ended before its session
    "no-error",
    "error",  # an exception is in focus; the following facts are about it
    "in-test",  # the innermost project frame
    "in-product",
    "in-project",  # one of these two
    "outside",  # no frame belongs to the project
    "framework",  # the innermost frame outside of the standard library is of pytest or of a plugin
    "library",  # the innermost frame is of an installed package
    "by-hand",  # the innermost frame is on a ``raise`` statement
    "not-by-hand",
    "accidental",  # raised on purpose neither by the project nor by a mock
    "changed-place",  # the raising project file is known to have changed
    "unchanged-place",
    "nothing-changed",  # it is known that no file changed
)
FACTS = {name: 1 << place for place, name in enumerate(_FACTS)}
"""Bits of the facts that rules may require, by name."""


class Case:
    """Evidence with one exception in focus. Rules query it instead of searching texts.

    Compared and hashed by identity, so functions of a case can be cached.
    """

    def __init__(self, evidence: Evidence, error: ExceptionFact = NO_ERROR, printed: bool = False) -> None:
        """Create the case; ``printed`` says that the exception was parsed from printed output."""
        self.evidence = evidence
        self.error = error
        """The exception in focus: the surfacing one, or a cause or member that a rule inspects."""
        self.printed = printed
        self.has_error = error is not NO_ERROR
        self.frames = frames_of(error)
        self.innermost: Frame | None = self.frames[-1] if self.frames else None
        """The innermost frame, whichever side it belongs to."""
        self.raised_at: Frame | None = None
        """The innermost frame that belongs to the project (product or test)."""
        for frame in reversed(self.frames):
            if frame.side in PROJECT_SIDES:
                self.raised_at = frame
                break
        self.in_product = self.raised_at is not None and self.raised_at.side is Side.PRODUCT
        self.in_test = self.raised_at is not None and self.raised_at.side is Side.TEST
        self.is_by_hand = raises_by_hand(self.innermost)
        """The innermost frame is on a ``raise`` statement: the error is deliberate."""
        self.process = evidence.process or _NO_PROCESS

    @classmethod
    def of(cls, evidence: Evidence) -> Case:
        """Return the case with the surfacing exception in focus.

        Without an observed exception, sessions and commands get the one that their output prints, if any.
        """
        if evidence.exceptions:
            return cls(evidence, evidence.exceptions[0])
        # pytest prints an internal error, and ends with status 3, perhaps in the middle of a test.
        has_internal_error = (
            evidence.process is not None
            and evidence.process.exit_code == 3
            and INTERNAL_ERROR in evidence.stderr_tail + evidence.stdout_tail
        )
        if evidence.kind in (EvidenceKind.SESSION, EvidenceKind.COMMAND) or has_internal_error:
            return cls(evidence, _printed_error(evidence) or NO_ERROR, printed=True)
        return cls(evidence)

    def at(self, error: ExceptionFact) -> Case:
        """Return a case of the same evidence with another exception in focus."""
        return Case(self.evidence, error, self.printed)

    @lazy
    def leaves(self) -> tuple[Case, ...]:
        """Cases with each member of the surfacing exception group in focus."""
        return tuple(map(self.at, self.evidence.exceptions_in_group))

    @lazy
    def deeper(self) -> tuple[Case, ...]:
        """Cases for each cause or context of the surfacing exception, then for each group member."""
        printed = tuple(each for each in (self.server_error, self.quoted_error) if each)
        return (*map(self.at, self.evidence.exceptions[1:]), *printed, *self.leaves)

    @lazy
    def server_error(self) -> Case | None:
        """Case of the project's error that a server in the test's own process printed.

        ``None`` unless the test itself fails because its peer did not answer.
        """
        evidence = self.evidence
        if self.error not in evidence.exceptions[:1] or not self.is_error(*_OF_PEERS):
            return None
        texts, first_party = (evidence.stderr_tail, evidence.stdout_tail), frozenset(evidence.first_party)
        errors = (read_traceback(text, first_party) for text in texts)
        cases = (Case(evidence, error, printed=True) for error in errors if error)
        return next((each for each in cases if each.raised_at), None)

    @lazy
    def quoted_error(self) -> Case | None:
        """Case of the error of a program that a test started, which the message of its assertion quotes.

        ``None`` if the product was changed: the quoted error may then be one that the test expects.
        """
        evidence = self.evidence
        is_assertion = self.in_test and self.is_error("AssertionError")
        if self.product_changed or not is_assertion or self.error not in evidence.exceptions[:1]:
            return None
        error = read_traceback(self.error.message, frozenset(evidence.first_party))
        return error and Case(evidence, _within_project(error, evidence), printed=True)

    @lazy
    def command(self) -> CommandFact:
        """The failed command; an empty one for other criteria."""
        evidence = self.evidence
        return (evidence.kind is EvidenceKind.COMMAND and evidence.command) or _NO_COMMAND

    @property
    def timed_out(self) -> bool:
        """Return whether a time limit was exceeded, whoever enforced it."""
        return self.evidence.timed_out or self.process.timed_out

    @lazy
    def repeatability(self) -> Repeatability:
        """Repeatability of the failure: flaky if a confirming run passed, unconfirmed without such runs."""
        runs = self.evidence.confirmations
        if not runs:
            return Repeatability.UNCONFIRMED
        return Repeatability.FLAKY if any(run.passed for run in runs) else Repeatability.DETERMINISTIC

    @property
    def happened_again(self) -> bool:
        """Return whether there were several confirming runs and each of them failed."""
        runs = self.evidence.confirmations
        return len(runs) > 1 and not any(each.passed for each in runs)

    @lazy
    def stuck_at(self) -> Frame | None:
        """The project frame in which a killed process was executing, read from its printed stack.

        The innermost product frame, else the innermost test frame.
        """
        return read_stuck_frame(self.process.stack or self.evidence.stderr_tail, self.first_party)

    @lazy
    def facts(self) -> int:
        """Bits of the facts that hold."""
        evidence, process, bits = self.evidence, self.process, FACTS
        kind = evidence.kind._value_  # the plain text: enums hash slowly
        found = bits[kind] | (self._facts_of_error() if self.has_error else bits["no-error"])
        if kind in _IN_SESSION and evidence.process is not None and not process.complete:
            found |= bits["died"]
        if kind == "session":
            found |= bits["ended"]
        elif kind == "fixture":  # the data file of a criterion is an artifact, too
            found |= bits["artifact"]
        if process.signal is not None:
            found |= bits["signal"] | bits["ended"]
        if self.timed_out or evidence.swallowed_timeout:
            found |= bits["limit"]
        if self.repeatability is Repeatability.FLAKY:
            found |= bits["flaky"]
        if evidence.phase is Phase.COLLECT:
            found |= bits["collect"]
        if evidence.strict_xpass:
            found |= bits["strict-xpass"]
        if evidence.unmet:
            found |= bits["unmet"]
        if evidence.selectors:
            found |= bits["selectors"]
        # 5 is pytest's exit code for a session without tests.
        is_silent = kind == "session" and process.exit_code == 5
        if evidence.vacuous == "all_skipped":
            found |= bits["all-skipped"]
        elif kind == "selection" or is_silent or evidence.vacuous == "nothing_collected":
            found |= bits["nothing-checked"]
        return found

    def _facts_of_error(self) -> int:
        """Return the bits of the facts about the exception in focus."""
        bits, last = FACTS, self.innermost
        found = bits["error"] | bits["by-hand" if self.is_by_hand else "not-by-hand"]
        if self.raised_at is None:
            found |= bits["outside"]
        else:
            found |= bits["in-project"] | bits["in-test" if self.in_test else "in-product"]
        if last is None:
            found |= bits["accidental"]
        else:
            is_own = self.is_by_hand and last.side in PROJECT_SIDES
            if not is_own and not (last.module or "").startswith("unittest.mock"):
                found |= bits["accidental"]
            if last.side is Side.THIRD_PARTY:
                found |= bits["library"]
            own = next((frame for frame in reversed(self.frames) if frame.side is not Side.STDLIB), last)
            if own.side is Side.FRAMEWORK:
                found |= bits["framework"]
        found |= bits["changed-place" if self.raised_in_changed else "unchanged-place"]
        return found | (bits["nothing-changed"] if self.nothing_changed else 0)

    @lazy
    def first_party(self) -> frozenset[str]:
        """Top-level module names of the project: as recorded, or for commands derived from its files."""
        evidence = self.evidence
        if evidence.first_party or evidence.command is None:
            return frozenset(evidence.first_party)
        return own_names(evidence)

    def is_error(self, *names: str) -> bool:
        """Return whether the exception in focus is an instance of one of these types.

        Builtin types are given without a module, others by their qualified names.
        """
        return not self.classes.isdisjoint(names)

    @lazy
    def classes(self) -> frozenset[str]:
        """Qualified names of the exception's class and its bases; of builtin classes the bare names.

        Of a class of the project only its own name: deriving from ``OSError`` determines what callers may
        catch, not what happened. Assertion classes of test helpers keep their bases, so that they remain
        assertions.
        """
        error = self.error
        module = top_level(error.qualified)
        is_own = module != "builtins" and (self.is_first_party(module) or self.is_test_package(module))
        bases = () if is_own and _ASSERTION not in error.bases else error.bases
        return _bare_names(error.qualified, bases)

    @lazy
    def changed(self) -> frozenset[str] | None:
        """Changed files, except those in which only comments changed; ``None`` if changes are unknown.

        ``evidence.changed_since`` names the state that they are compared with.
        """
        evidence = self.evidence
        if evidence.changed is None:
            return None
        remarks = {hunk.path for hunk in evidence.hunks if is_remark(hunk)}
        if remarks:
            remarks -= {hunk.path for hunk in evidence.hunks if not is_remark(hunk)}
        return frozenset(file.path for file in evidence.changed if file.path not in remarks)

    @property
    def nothing_changed(self) -> bool:
        """Return whether it is known that no file changed."""
        return self.changed == frozenset()

    def is_changed(self, path: str) -> bool:
        """Return whether a file (relative or absolute) is known to have changed."""
        if not self.changed:
            return False
        return path in self.changed or (
            not is_relative(path) and any(path.endswith(f"/{name}") for name in self.changed)
        )

    def removed_file(self, module: str) -> str | None:
        """Return the product file of this module that a change may have removed, or ``None``."""
        path = module.replace(".", "/")
        ends = (f"/{path}.py", f"/{path}/__init__.py")
        named = (file for file, side in self._sides.items() if side is Side.PRODUCT)
        return next(
            (file for file in named if f"/{file}".endswith(ends) and self.may_be_deleted(file)), None
        )

    @lazy
    def raised_in_changed(self) -> bool:
        """Return whether the raising project file is known to have changed."""
        return self.raised_at is not None and self.is_changed(self.raised_at.path)

    @lazy
    def _sides(self) -> dict[str, Side | None]:
        """Sides of the changed files, by path."""
        changed = self.changed
        if not changed:
            return {}
        return {file.path: file.side for file in self.evidence.changed or () if file.path in changed}

    @lazy
    def tests_changed(self) -> bool:
        """Return whether test files are known to have changed."""
        return Side.TEST in self._sides.values()

    @lazy
    def product_changed(self) -> bool:
        """Return whether product files are known to have changed."""
        return Side.PRODUCT in self._sides.values()

    @lazy
    def only_tests_changed(self) -> bool:
        """Return whether only test code changed, so that no product change can be the cause.

        Files of neither side count as possible causes, unless they are documents.
        """
        if not self.tests_changed or self.product_changed:
            return False
        return all(side is not None or path.endswith(PROSE) for path, side in self._sides.items())

    @lazy
    def tests_on_way_changed(self) -> bool:
        """Return whether a changed test file takes part in the failure.

        Changed test files other than test modules count always, because any test may use such a helper; new
        ones do not, unless pytest loads them itself.
        """
        if not self.tests_changed:
            return False
        own = {(self.evidence.nodeid or "").partition("::")[0], self.error.path or ""}
        own.update(frame.path for frame in self.frames)
        own.update(finding.path or "" for finding in self.command.findings)
        helpers = (
            path for path, side in self._sides.items() if side is Side.TEST and not is_test_module(path)
        )
        return any(self.is_changed(path) for path in own) or any(
            path.endswith("conftest.py") or self._signs_in(path) != {"+"} for path in helpers
        )

    def _signs_in(self, path: str) -> set[str]:
        """Return the first characters of the lines in a file's diff; ``+`` only for a new file."""
        hunks = [each for each in self.evidence.hunks if each.path == path]
        signs = {line[:1] for each in hunks for line in each.text.split("\n")}
        # Of a large hunk the text lacks the last lines, or the docstrings.
        return signs | {"+" for each in hunks if each.added} | {"-" for each in hunks if each.removed}

    def may_be_deleted(self, path: str) -> bool:
        """Return whether a changed file may no longer exist: its diff, if known, has only removed lines."""
        return self.is_changed(path) and self._signs_in(path) <= {"-"}

    def remedy_for_missing(self, name: str) -> str:
        """Return what to do about a name that the product lacks: restore it if a change removed it."""
        if removals := removals_of(name, self.evidence):
            # Several classes may lose the name: of their changes the one of the object that is asked.
            holder = re.split(r"\W", self.error.object_type or "")[-1]
            own = (each for each in removals if holder in re.split(r"\W", f"{each.path} {each.function}"))
            hunk = next(own, removals[-1])
            return f"restore it; the change at {hunk.path}:{hunk.line} removed it"
        return "add it, or correct the name"

    @lazy
    def is_new_promise(self) -> bool:
        """Return whether the failing test, or the name that a test file imports, is new and never passed.

        Such a test expects behaviour that the product does not have yet, so its change is no fault.
        """
        file, _, name = (self.evidence.nodeid or "").partition("::")
        function = name.partition("[")[0].replace("::", ".")
        imported = CANNOT_IMPORT.match(self.error.message)
        wanted = imported["what"] if imported else (self.error.name or "").rpartition(".")[2]
        hunks = [hunk for hunk in self.evidence.hunks if hunk.side is Side.TEST]
        if function:
            return any(
                is_new_function(hunk) for hunk in hunks if (hunk.path, hunk.function) == (file, function)
            )
        # Without a test function the file failed to import: compare the module-level changes on the stack.
        stack = {frame.path for frame in self.frames}
        module_level = [hunk for hunk in hunks if hunk.function is None and hunk.path in stack]
        added, removed = (set(_names_of(module_level, sign)) for sign in "+-")
        # A misspelled name replaces a similar one, or resembles a module: a mistake and not a new demand.
        is_misspelt = bool(self.error.nearest) or alike(wanted, removed - added) is not None
        return wanted in added and not is_misspelt

    @lazy
    def is_of_changed_tests(self) -> bool:
        """Return whether only tests changed, some of them take part, and none of them is a new test."""
        return self.only_tests_changed and self.tests_on_way_changed and not self.is_new_promise

    def is_first_party(self, module: str) -> bool:
        """Return whether a dotted name, or the relative path that a script imports, is of the project."""
        return module.startswith((".", "/")) or top_level(module) in self.first_party

    def is_test_package(self, module: str) -> bool:
        """Return whether the top-level name of a dotted name is provided by tests only."""
        return top_level(module) in self.evidence.test_packages


@lru_cache(maxsize=4096)
def _bare_names(qualified: str, bases: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.removeprefix("builtins.") for name in (qualified, *bases))


def frames_of(error: ExceptionFact) -> tuple[Frame, ...]:
    """Return the frames of an exception, up to the code that is at fault for it.

    An AttributeError from a ``__getattr__`` is the fault of the code that asked for the attribute.
    """
    frames = error.frames
    while len(frames) > 1 and frames[-1].function.endswith(_DELEGATING) and error.type == "AttributeError":
        frames = frames[:-1]
    return frames


def removals_of(name: str, evidence: Evidence) -> list[Hunk]:
    """Return the product's changes that remove a definition or import of a name; none if one adds it."""
    signs: dict[str, list[Hunk]] = {}
    for hunk in evidence.hunks if name else ():
        # In a function a name without self is a variable. An argument has no blanks around its sign.
        is_of_function = not (hunk.function or "A").rpartition(".")[2].lstrip("_")[:1].isupper()
        owner = r"self\." if is_of_function else r"(?:self\.)?"
        found = rf"(?:(?:async )?def |class ){re.escape(name)}\b|{owner}{re.escape(name)}(?:: | = )"
        if not is_of_function:
            found += rf"|(?:from \S+ )?import .*\b{re.escape(name)}\b"
        if hunk.side is Side.PRODUCT:
            # Blanks of the same line only: the next one may be unchanged.
            for sign in re.findall(rf"^([+-])[^\S\n]*(?:{found})", hunk.text, re.MULTILINE):
                signs.setdefault(sign, []).append(hunk)
    return signs.get("-", []) if "+" not in signs else []


def last_frame_of(frames: tuple[Frame, ...], side: Side) -> Frame | None:
    """Return the innermost frame of that side."""
    return next((frame for frame in reversed(frames) if frame.side is side), None)


def is_class(frame: Frame) -> bool:
    """Return whether a subject is a class: as recorded, else by the upper-case initial of its name."""
    name = frame.function.rpartition(".")[2].lstrip("_")
    return (frame.source or "").startswith("class ") or name[:1].isupper()


def is_remark(hunk: Hunk) -> bool:
    """Return whether a hunk of Python code changes comments and blank lines only."""
    if not hunk.path.endswith(".py") or _CHANGED_CODE.search(hunk.text):
        return False
    remarks = sum(line[:1] in ("+", "-") for line in hunk.text.splitlines())
    return remarks == hunk.added + hunk.removed > 0  # fewer lines: the text was truncated


def is_new_function(hunk: Hunk) -> bool:
    """Return whether a hunk adds a complete function, and removes blank lines at most."""
    is_kept = not hunk.removed or (hunk.text and not _REMOVED_TEXT.search(hunk.text))
    return bool(is_kept) and hunk.function is not None and _DEFINES.search(hunk.text) is not None


def _names_of(hunks: Iterable[Hunk], sign: str) -> Iterator[str]:
    """Yield the names in the added or removed lines of hunks."""
    for hunk in hunks:
        for line in hunk.text.splitlines():
            if line.startswith(sign):
                yield from _NAME.findall(line)


def top_level(module: str) -> str:
    """Return ``shop`` of ``shop.cart``."""
    return module.partition(".")[0]


def is_relative(path: str) -> bool:
    """Return whether a recorded path lies below the plan's root."""
    return not path.startswith(("/", "\\")) and path[1:3] not in (":\\", ":/")


def raises_by_hand(frame: Frame | None) -> bool:
    """Return whether a frame is on a ``raise`` statement."""
    return frame is not None and frame.source is not None and frame.source.startswith("raise ")


def own_names(evidence: Evidence) -> frozenset[str]:
    """Return the top-level names that the project's files provide."""
    found = (_top_of_path(path) for path in _named_files(evidence) if not is_test_path(path))
    return frozenset(evidence.first_party or filter(None, found))


def within_project(path: str, evidence: Evidence) -> str:
    """Return a path relative to the project's root: by the known file that it ends with, else unchanged."""
    if not path.startswith("/"):
        return path.removeprefix("./")
    return next((file for file in _named_files(evidence) if path.endswith(f"/{file}")), path)


def _named_files(evidence: Evidence) -> Iterator[str]:
    """Yield the project files that the evidence names: changed files, and files of a tool's findings."""
    for file in evidence.changed or ():
        yield file.path
    for finding in evidence.command.findings if evidence.command else ():
        if finding.path and not finding.path.startswith(("/", "<")) and "/" in finding.path:
            yield finding.path


@lru_cache(maxsize=4096)
def _top_of_path(path: str) -> str:
    """Return ``shop`` for ``shop/cart.py``, ``src/shop/cart.py`` and ``shop.py``."""
    if not path.endswith((".py", ".pyi")):
        return ""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if len(parts) > 1 and parts[0] in _ROOTS else parts
    return parts[0] if len(parts) > 1 else PurePosixPath(path).stem


def _printed_error(evidence: Evidence) -> ExceptionFact | None:
    """Return the first exception that can be parsed from the streams, the output or pytest's report."""
    command = evidence.command
    texts = (evidence.stderr_tail, command.output_tail if command else "", evidence.stdout_tail)
    if not any(mark in text for text in (*texts, evidence.longrepr) for mark in MARKS_OF_ERRORS):
        return None
    first_party = own_names(evidence) if command else frozenset(evidence.first_party)
    for text in (*texts, evidence.longrepr):
        if error := read_traceback(text, first_party):
            return _within_project(error, evidence) if command else error
    is_script = command is not None and command.purpose in SCRIPT_PURPOSES
    error = read_script_error(command.output_tail) if command is not None and is_script else None
    return error and _within_project(error, evidence)


def _within_project(error: ExceptionFact, evidence: Evidence) -> ExceptionFact:
    """Return the exception with frame paths relative to the project's root."""
    frames = tuple(
        frame.model_copy(update={"path": within_project(frame.path, evidence)})
        if frame.side in PROJECT_SIDES
        else frame
        for frame in error.frames
    )
    does_not_parse = error.line is not None and error.path is not None
    path = within_project(error.path, evidence) if does_not_parse and error.path else error.path
    return error.model_copy(update={"frames": frames, "path": path})
