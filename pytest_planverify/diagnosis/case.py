"""Read evidence by structure: which exception is looked at, which frame raised, whose file that is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from planner.catalog.test_paths import is_test_module, is_test_path
from planner.model.evidence import CommandFact, Evidence, ExceptionFact, Frame, Hunk, ProcessEnd
from planner.model.taxonomy import Repeatability
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis.messages import alike
from pytest_planverify.diagnosis.tool_output import read_stack, read_traceback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

PROJECT_SIDES = (Side.TEST, Side.PRODUCT)
"""The sides that the people of the project can change."""

NO_ERROR = ExceptionFact(type="", qualified="")
"""Stands for an exception where there is none: it is of no class and has no frames."""

_NO_PROCESS = ProcessEnd()
_NO_COMMAND = CommandFact(argv=(), tool="", purpose="")
_ASSERTION = "builtins.AssertionError"
_DELEGATING = (".__getattr__", ".__getattribute__")
_ROOTS = frozenset({"src", "lib", "python"})
_PROSE = (".md", ".rst", ".txt", ".pyc")
"""What nothing is at fault for, mostly; other files may be data or settings of the product."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFINES = re.compile(r"^\+\s*(?:async )?def ", re.MULTILINE)
_IMPORTED = re.compile(r"^cannot import name '(?P<name>[^']+)'")
_CODE = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".f90", ".rs", ".go", ".java", ".kt", ".cs",
     ".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".vue", ".swift", ".scala", ".rb", ".sh"}
)  # fmt: skip


class lazy(Generic[T]):
    """A property that is worked out once: ``functools.cached_property`` without its lock."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> T:
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value


@dataclass(frozen=True, eq=False)
class Case:
    """Evidence with one of its exceptions in focus; rules ask it, and never search its text."""

    evidence: Evidence
    error: ExceptionFact = NO_ERROR
    """The exception in focus: the one that surfaced, unless a rule looks deeper."""
    printed: bool = False
    """The exception was read from what a process printed, not observed."""

    @classmethod
    def of(cls, evidence: Evidence) -> Case:
        """Return the case with the surfacing exception in focus, or else the one that a process printed."""
        if evidence.exceptions:
            return cls(evidence, evidence.exceptions[0])
        if evidence.kind in (EvidenceKind.SESSION, EvidenceKind.COMMAND):
            return cls(evidence, _printed_error(evidence) or NO_ERROR, printed=True)
        return cls(evidence)

    @property
    def has_error(self) -> bool:
        """Return whether an exception is in focus."""
        return self.error is not NO_ERROR

    def at(self, error: ExceptionFact) -> Case:
        """Return the same case with another exception in focus."""
        return Case(self.evidence, error, self.printed)

    @lazy
    def leaves(self) -> tuple[Case, ...]:
        """The case with each member of the surfacing group in focus."""
        return tuple(map(self.at, self.evidence.exceptions_in_group))

    @lazy
    def deeper(self) -> tuple[Case, ...]:
        """The case with each cause and context in focus, then with each member of its group."""
        return (*map(self.at, self.evidence.exceptions[1:]), *self.leaves)

    @lazy
    def command(self) -> CommandFact:
        """The command that failed, where the criterion is one; an empty one elsewhere."""
        evidence = self.evidence
        return (evidence.kind is EvidenceKind.COMMAND and evidence.command) or _NO_COMMAND

    @lazy
    def process(self) -> ProcessEnd:
        """Return how the process ended; of one that is not known, nothing."""
        return self.evidence.process or _NO_PROCESS

    @property
    def timed_out(self) -> bool:
        """Return whether a limit was passed, whoever noticed."""
        return self.evidence.timed_out or self.process.timed_out

    @lazy
    def output_lines(self) -> tuple[str, ...]:
        """Return the printed lines of the command and its streams, each once, stripped."""
        texts = (self.command.output_tail, self.evidence.stderr_tail, self.evidence.stdout_tail)
        return tuple(dict.fromkeys(line.strip() for text in texts for line in text.splitlines()))

    @lazy
    def repeatability(self) -> Repeatability:
        """Return what the repeated runs say, together with the first red run."""
        runs = self.evidence.confirmations
        if not runs:
            return Repeatability.UNCONFIRMED
        return Repeatability.FLAKY if any(run.passed for run in runs) else Repeatability.DETERMINISTIC

    @property
    def happened_again(self) -> bool:
        """Return whether it was red each time that it was run again, and so is its own doing."""
        runs = self.evidence.confirmations
        return len(runs) > 1 and not any(each.passed for each in runs)

    @lazy
    def frames(self) -> tuple[Frame, ...]:
        """Frames of the exception in focus; those that only hand a missing attribute on are left out."""
        frames = self.error.frames
        while len(frames) > 1 and frames[-1].function.endswith(_DELEGATING):
            if not self.is_error("builtins.AttributeError"):
                break
            frames = frames[:-1]
        return frames

    @lazy
    def raised_at(self) -> Frame | None:
        """The project's frame nearest to the raise: product or test."""
        return next((frame for frame in reversed(self.frames) if frame.side in PROJECT_SIDES), None)

    @lazy
    def stuck_at(self) -> Frame | None:
        """Return where a process that was ended stood, by the stack that it left."""
        stack = read_stack(self.process.stack or self.evidence.stderr_tail, self.first_party)
        return last_frame_of(stack, Side.PRODUCT) or last_frame_of(stack, Side.TEST)

    @property
    def innermost(self) -> Frame | None:
        """The frame that raised, whoever wrote it."""
        return self.frames[-1] if self.frames else None

    @lazy
    def in_product(self) -> bool:
        return self.raised_at is not None and self.raised_at.side is Side.PRODUCT

    @lazy
    def in_test(self) -> bool:
        return self.raised_at is not None and self.raised_at.side is Side.TEST

    @property
    def in_nobody(self) -> bool:
        """No frame of the project was on the way."""
        return self.raised_at is None

    @lazy
    def is_by_hand(self) -> bool:
        """The innermost frame stands on a ``raise`` statement: it was meant, not stumbled into."""
        return raises_by_hand(self.innermost)

    @lazy
    def was_meant(self) -> bool:
        """The project raised it on purpose, or a mock did."""
        last = self.innermost
        if last is None:
            return False
        is_own = self.is_by_hand and last.side in PROJECT_SIDES
        return is_own or (last.module or "").startswith("unittest.mock")

    @lazy
    def first_party(self) -> frozenset[str]:
        """Top-level names that the project's files provide: what was told, or else what its files say."""
        evidence = self.evidence
        if evidence.first_party or evidence.command is None:
            return frozenset(evidence.first_party)
        return own_names(evidence)

    def is_error(self, *names: str) -> bool:
        """Return whether the exception in focus is of one of these qualified types, or derives from one."""
        return not self.classes.isdisjoint(names)

    @lazy
    def classes(self) -> frozenset[str]:
        """The class of the exception in focus and its base classes, by qualified names.

        Of a class that the project defines only itself: that it derives from ``OSError`` or ``TypeError``
        says what callers may catch, not what happened. A check made by a helper of the tests is one still.
        """
        error = self.error
        module = top_level(error.qualified)
        is_own = module != "builtins" and (self.is_first_party(module) or self.is_test_package(module))
        bases = () if is_own and _ASSERTION not in error.bases else error.bases
        return _as_set(error.qualified, bases)

    @lazy
    def changed(self) -> frozenset[str] | None:
        """The files that are not as they were at the baseline or the last commit; ``None`` if unknown.

        Where only comments and blank lines of a file differ, nothing that runs does.
        """
        files = self.evidence.changed
        if files is None:
            return None
        real: set[str] = set()
        remarked: set[str] = set()
        for hunk in self.evidence.hunks:
            (remarked if is_remark(hunk) else real).add(hunk.path)
        return frozenset(file.path for file in files) - (remarked - real)

    @property
    def nothing_changed(self) -> bool:
        """Return whether it is known that no file was changed."""
        return self.changed == frozenset()

    def is_changed(self, path: str) -> bool:
        """Return whether a file, by a relative or an absolute path, is known to be changed."""
        if not self.changed:
            return False
        return path in self.changed or (
            not is_relative(path) and any(path.endswith(f"/{name}") for name in self.changed)
        )

    def was_removed(self, module: str) -> bool:
        """Return whether one of the product's files that were changed, and so are gone, was this module."""
        path = module.replace(".", "/")
        ends = (f"/{path}.py", f"/{path}/__init__.py")
        return any(side is Side.PRODUCT and f"/{file}".endswith(ends) for file, side in self._sides)

    @lazy
    def raised_in_changed(self) -> bool:
        """The file of the project that raised is known to have been changed."""
        return self.raised_at is not None and self.is_changed(self.raised_at.path)

    @lazy
    def _sides(self) -> tuple[tuple[str, Side | None], ...]:
        """The changed files and their sides; of a command's project also those of other languages."""
        has_command = self.evidence.command is not None
        return tuple(
            (file.path, file.side or (_side_by_name(file.path) if has_command else None))
            for file in self.evidence.changed or ()
            if file.path in (self.changed or ())
        )

    @lazy
    def tests_changed(self) -> bool:
        """Files of the tests are known to have been changed."""
        return any(side is Side.TEST for _, side in self._sides)

    @lazy
    def product_changed(self) -> bool:
        """Files of the product are known to have been changed."""
        return any(side is Side.PRODUCT for _, side in self._sides)

    @lazy
    def only_tests_changed(self) -> bool:
        """Of all that runs only tests were changed: no change of the product can have brought this."""
        data = any(side is None and not path.endswith(_PROSE) for path, side in self._sides)
        return self.tests_changed and not self.product_changed and not data

    @property
    def only_product_changed(self) -> bool:
        """The product was changed, and the file of the tests that raised was not."""
        return self.product_changed and not self.raised_in_changed

    @lazy
    def way_unchanged(self) -> bool:
        """No file on the way of the failure was changed, as far as is known, and something is known."""
        if self.changed is None:
            return False
        frames = [frame for error in self.evidence.exceptions for frame in error.frames]
        return not any(self.is_changed(frame.path) for frame in (*frames, *self.evidence.subjects))

    @lazy
    def tests_on_way_changed(self) -> bool:
        """A file of the tests that takes part in the failure was changed; a helper always may."""
        if not self.tests_changed:
            return False
        own = {(self.evidence.nodeid or "").partition("::")[0], *(frame.path for frame in self.frames)}
        own |= {self.error.path or "", *(finding.path or "" for finding in self.command.findings)}
        is_helper = (side is Side.TEST and not is_test_module(path) for path, side in self._sides)
        return any(self.is_changed(path) for path in own) or any(is_helper)

    @lazy
    def is_new_promise(self) -> bool:
        """The test that failed was added as a whole, or the name that it imports: it held never before."""
        file, _, name = (self.evidence.nodeid or "").partition("::")
        function = name.partition("[")[0].replace("::", ".")
        imported = _IMPORTED.match(self.error.message)
        asked = (imported["name"] if imported else "") or self.error.name or ""
        hunks = [hunk for hunk in self.evidence.hunks if hunk.side is Side.TEST]
        if function:
            return any(
                is_new_function(hunk) for hunk in hunks if (hunk.path, hunk.function) == (file, function)
            )
        ways = {frame.path for frame in self.frames}
        loose = [hunk for hunk in hunks if hunk.function is None and hunk.path in ways]
        added, removed = (set(_names_of(loose, sign)) for sign in "+-")
        # Who misspells a name puts it in the place of one that is nearly the same.
        return bool(asked) and asked in added and alike(asked, removed) is None

    @lazy
    def is_of_changed_tests(self) -> bool:
        """Of all code only tests were changed, and some that take part, to say other than they did."""
        return self.only_tests_changed and self.tests_on_way_changed and not self.is_new_promise

    def is_first_party(self, module: str) -> bool:
        """Return whether a dotted name is the project's."""
        return top_level(module) in self.first_party

    def is_test_package(self, module: str) -> bool:
        """Return whether only tests provide a dotted name."""
        return top_level(module) in self.evidence.test_packages


@lru_cache(maxsize=4096)
def _as_set(qualified: str, bases: tuple[str, ...]) -> frozenset[str]:
    return frozenset((qualified, *bases))


def last_frame_of(frames: tuple[Frame, ...], side: Side) -> Frame | None:
    """Return the frame of that side nearest to the raise."""
    return next((frame for frame in reversed(frames) if frame.side is side), None)


def is_remark(hunk: Hunk) -> bool:
    """Return whether a change of Python code is one of comments and blank lines alone."""
    if not hunk.path.endswith(".py"):
        return False
    remarks = 0
    for line in hunk.text.splitlines():
        if line[:1] in ("+", "-"):
            remarks += 1
            if line[1:].strip()[:1] not in ("", "#"):
                return False
    return remarks == hunk.added + hunk.removed > 0  # else the text was cut


def is_new_function(hunk: Hunk) -> bool:
    """Return whether a change adds a function as a whole."""
    return not hunk.removed and hunk.function is not None and _DEFINES.search(hunk.text) is not None


def _names_of(hunks: Iterable[Hunk], sign: str) -> Iterator[str]:
    """Yield the names in the lines of one sign, plus or minus."""
    for hunk in hunks:
        for line in hunk.text.splitlines():
            if line.startswith(sign):
                yield from _NAME.findall(line)


def top_level(module: str) -> str:
    """Return ``shop`` of ``shop.cart``."""
    return module.partition(".")[0]


def is_relative(path: str) -> bool:
    """Return whether a recorded path lies below the plan's root: such paths are recorded relative to it."""
    return not path.startswith(("/", "\\")) and path[1:3] not in (":\\", ":/")


def raises_by_hand(frame: Frame | None) -> bool:
    """Return whether a frame stands on a ``raise`` statement."""
    return frame is not None and frame.source is not None and frame.source.startswith("raise ")


def own_names(evidence: Evidence) -> frozenset[str]:
    """Return the top-level names that the project's own files provide, by the paths of these."""
    found = (_top_of_path(path) for path in _named_files(evidence) if not is_test_path(path))
    return frozenset(evidence.first_party or filter(None, found))


def within_project(path: str, evidence: Evidence) -> str:
    """Return a path as it is below the project's root, where a file that is known stands there."""
    if not path.startswith("/"):
        return path.removeprefix("./")
    return next((file for file in _named_files(evidence) if path.endswith(f"/{file}")), path)


@lru_cache(maxsize=4096)
def _side_by_name(path: str) -> Side | None:
    if PurePosixPath(path).suffix not in _CODE:
        return None
    return Side.TEST if is_test_path(path) else Side.PRODUCT


def _named_files(evidence: Evidence) -> Iterator[str]:
    """Yield the files of the project that the evidence names, relative to its root."""
    for file in evidence.changed or ():
        yield file.path
    for finding in evidence.command.findings if evidence.command else ():
        if finding.path and not finding.path.startswith(("/", "<")) and "/" in finding.path:
            yield finding.path


@lru_cache(maxsize=4096)
def _top_of_path(path: str) -> str:
    """Return ``shop`` of ``shop/cart.py``, of ``src/shop/cart.py`` and of ``shop.py``."""
    if not path.endswith((".py", ".pyi")):
        return ""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if len(parts) > 1 and parts[0] in _ROOTS else parts
    return parts[0] if len(parts) > 1 else PurePosixPath(path).stem


def _printed_error(evidence: Evidence) -> ExceptionFact | None:
    command = evidence.command
    first_party = own_names(evidence) if command else frozenset(evidence.first_party)
    texts = (evidence.stderr_tail, command.output_tail if command else "", evidence.stdout_tail)
    for text in (*texts, evidence.longrepr):
        if error := read_traceback(text, first_party):
            return _within_project(error, evidence) if command else error
    return None


def _within_project(error: ExceptionFact, evidence: Evidence) -> ExceptionFact:
    """Return the same with the paths of its frames as they are below the project's root."""
    frames = tuple(
        frame.model_copy(update={"path": within_project(frame.path, evidence)})
        if frame.side in PROJECT_SIDES
        else frame
        for frame in error.frames
    )
    does_not_parse = error.line is not None and error.path is not None
    path = within_project(error.path, evidence) if does_not_parse and error.path else error.path
    return error.model_copy(update={"frames": frames, "path": path})
