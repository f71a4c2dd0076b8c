"""Read evidence by structure: which exception is looked at, which frame raised, whose file that is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from planner.catalog.test_paths import is_test_module, is_test_path
from planner.model.evidence import Evidence, ExceptionFact, Frame, ProcessEnd
from planner.model.taxonomy import Repeatability
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis.printed_errors import read_stack, read_traceback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from planner.model.evidence import Confirmation

_ROOTS = frozenset({"src", "lib", "python"})
_CODE = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".f90", ".rs", ".go", ".java", ".kt", ".cs",
     ".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".vue", ".swift", ".scala", ".rb", ".sh"}
)  # fmt: skip
_PYTHON = (".py", ".pyi")
_PRINTED = re.compile(r"(?:^|[\s\"'(`]|file://)(?P<path>/[^\s\"'():`]+)", re.MULTILINE)


def files_of(evidence: Evidence) -> Iterator[str]:
    """The files of the project that the evidence names, relative to its root."""
    for file in evidence.changed or ():
        yield file.path
    for finding in evidence.command.findings if evidence.command else ():
        if finding.path and not finding.path.startswith(("/", "<")) and "/" in finding.path:
            yield finding.path


def sides_of(evidence: Evidence) -> tuple[tuple[str, Side | None], ...]:
    """The changed files and their sides; of a command's project also those of other languages."""
    known = evidence.command is not None
    return tuple(
        (file.path, file.side or (_side_by_name(file.path) if known else None))
        for file in evidence.changed or ()
    )


def _side_by_name(path: str) -> Side | None:
    if PurePosixPath(path).suffix not in _CODE:
        return None
    return Side.TEST if is_test_path(path) else Side.PRODUCT


def own_names(evidence: Evidence) -> frozenset[str]:
    """Top-level names that the project's files provide: what was told, or else what its files say."""
    if evidence.first_party:
        return frozenset(evidence.first_party)
    found = (_top(path) for path in files_of(evidence) if not is_test_path(path))
    return frozenset(name for name in found if name)


def _top(path: str) -> str:
    """``shop`` of ``shop/cart.py``, of ``src/shop/cart.py`` and of ``shop.py``."""
    if not path.endswith(_PYTHON):
        return ""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if len(parts) > 1 and parts[0] in _ROOTS else parts
    return parts[0] if len(parts) > 1 else PurePosixPath(path).stem


def within_project(path: str, evidence: Evidence) -> str:
    """A path as it is below the project's root, where what was printed tells the root."""
    if not path.startswith("/"):
        return path.removeprefix("./")
    files = tuple(dict.fromkeys(files_of(evidence)))
    for file in files:
        if path.endswith(f"/{file}"):
            return file
    root = _root(files, evidence)
    return path[len(root) :] if root and path.startswith(root) else path


def _root(files: Iterable[str], evidence: Evidence) -> str:
    """The root, by a printed path that ends in a file of the project, or in what the command names."""
    command = evidence.command
    if command is None:
        return ""
    named = (word for word in command.argv if "/" in word and not word.startswith(("/", "-", ".")))
    ends = tuple(f"/{name}" for name in (*files, *named))
    if not ends:
        return ""
    for found in _PRINTED.finditer(command.output_tail):
        for end in ends:
            if found["path"].endswith(end):
                return found["path"][: -len(end) + 1]
    return ""


def repeatability(confirmations: tuple[Confirmation, ...]) -> Repeatability:
    """Judged together with the first red run, which is why there are confirmations at all."""
    if not confirmations:
        return Repeatability.UNCONFIRMED
    return Repeatability.FLAKY if any(run.passed for run in confirmations) else Repeatability.DETERMINISTIC


T = TypeVar("T")

PROJECT_SIDES = (Side.TEST, Side.PRODUCT)
"""The sides that the people of the project can change."""

_PROSE = (".md", ".rst", ".txt")
"""What no program reads, mostly; other files may be data or settings of the product."""
_ASSERTION = "builtins.AssertionError"
_NO_PROCESS = ProcessEnd()
_DELEGATING = (".__getattr__", ".__getattribute__")


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


@dataclass(frozen=True)
class Case:
    """Evidence with one of its exceptions in focus; rules ask it, and never search its text."""

    evidence: Evidence
    error: ExceptionFact | None
    """The exception in focus: the one that surfaced, unless a rule looks deeper."""
    printed: bool = False
    """The exception was read from what a process printed, not observed."""

    @classmethod
    def of(cls, evidence: Evidence) -> Case:
        """The case with the surfacing exception in focus, or else the one that a process printed."""
        if evidence.exceptions:
            return cls(evidence, evidence.exceptions[0])
        if evidence.kind in (EvidenceKind.SESSION, EvidenceKind.COMMAND):
            return cls(evidence, _printed_error(evidence), printed=True)
        return cls(evidence, None)

    def at(self, error: ExceptionFact) -> Case:
        """The same case with another exception in focus."""
        return replace(self, error=error)

    @property
    def deeper(self) -> tuple[ExceptionFact, ...]:
        """Causes and contexts of the surfacing exception, then the leaves of its group."""
        return self.evidence.exceptions[1:] + self.evidence.exceptions_in_group

    @lazy
    def deeper_cases(self) -> tuple[Case, ...]:
        """The case with each of these in focus; they are asked by many rules."""
        return tuple(self.at(error) for error in self.deeper)

    @lazy
    def leaves(self) -> tuple[Case, ...]:
        """The case with each member of the surfacing group in focus."""
        return tuple(self.at(error) for error in self.evidence.exceptions_in_group)

    @lazy
    def output_lines(self) -> tuple[str, ...]:
        """What the command and its streams printed, line by line, each once, without blanks around."""
        evidence = self.evidence
        texts = (
            evidence.command.output_tail if evidence.command else "",
            evidence.stderr_tail,
            evidence.stdout_tail,
        )
        return tuple(dict.fromkeys(line.strip() for text in texts for line in text.splitlines()))

    @lazy
    def repeatability(self) -> Repeatability:
        """What the repeated runs say together."""
        return repeatability(self.evidence.confirmations)

    @property
    def process(self) -> ProcessEnd:
        return self.evidence.process or _NO_PROCESS

    @lazy
    def frames(self) -> tuple[Frame, ...]:
        """Frames of the exception in focus; a ``__getattr__`` that only reports a miss is left out."""
        frames = self.error.frames if self.error else ()
        if not self.is_error("builtins.AttributeError"):
            return frames
        while len(frames) > 1 and frames[-1].function.endswith(_DELEGATING):
            frames = frames[:-1]
        return frames

    @lazy
    def raised_at(self) -> Frame | None:
        """The project's frame nearest to the raise: product or test."""
        return last_project_frame(self.frames)

    @lazy
    def stuck_at(self) -> Frame | None:
        """Where a process that was ended stood, by the stack that it left."""
        stack = read_stack(self.process.stack or self.evidence.stderr_tail, self.first_party)
        product = [frame for frame in stack if frame.side is Side.PRODUCT]
        project = product or [frame for frame in stack if frame.side is Side.TEST]
        return project[-1] if project else None

    @property
    def innermost(self) -> Frame | None:
        """The frame that raised, whoever wrote it."""
        return self.frames[-1] if self.frames else None

    @property
    def in_product(self) -> bool:
        return self.raised_at is not None and self.raised_at.side is Side.PRODUCT

    @property
    def in_test(self) -> bool:
        return self.raised_at is not None and self.raised_at.side is Side.TEST

    @property
    def in_nobody(self) -> bool:
        """No frame of the project was on the way."""
        return self.raised_at is None

    @lazy
    def first_party(self) -> frozenset[str]:
        return _first_party(self.evidence)

    def is_error(self, *names: str) -> bool:
        """Whether the exception in focus is of one of these qualified types, or derives from one."""
        return not self.classes.isdisjoint(names)

    @lazy
    def classes(self) -> frozenset[str]:
        """The class of the exception in focus and its base classes, by qualified names.

        Of a class that the project defines only itself: that it derives from ``OSError`` or ``TypeError``
        says what callers may catch, not what happened. A check made by a helper of the tests is one still.
        """
        if self.error is None:
            return frozenset()
        if not self.is_own_class or _ASSERTION in self.error.bases:
            return frozenset((self.error.qualified, *self.error.bases))
        return frozenset((self.error.qualified,))

    @lazy
    def is_own_class(self) -> bool:
        """Whether the project itself defines the class of the exception in focus."""
        if self.error is None:
            return False
        module = top_level(self.error.qualified)
        return module in self.first_party or module in self.evidence.test_packages

    @lazy
    def changed(self) -> frozenset[str] | None:
        """The files that are not as they were at the baseline or the last commit; ``None`` if unknown."""
        files = self.evidence.changed
        return None if files is None else frozenset(file.path for file in files)

    @lazy
    def raised_in_changed(self) -> bool:
        """The file of the project that raised is known to have been changed."""
        return self.raised_at is not None and self.is_changed(self.raised_at.path)

    def is_changed(self, path: str) -> bool:
        """Whether a file, by a path that is relative to the root or absolute, is known to be changed."""
        if not self.changed:
            return False
        return path in self.changed or (
            not is_relative(path) and any(path.endswith(f"/{name}") for name in self.changed)
        )

    @lazy
    def _sides(self) -> tuple[tuple[str, Side | None], ...]:
        """The changed files with their sides."""
        return sides_of(self.evidence)

    @lazy
    def tests_changed(self) -> bool:
        """Files of the tests are known to have been changed."""
        return any(side is Side.TEST for _, side in self._sides)

    @lazy
    def product_changed(self) -> bool:
        """Files of the product are known to have been changed."""
        return any(side is Side.PRODUCT for _, side in self._sides)

    @property
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
        if self.error is not None and self.error.path:
            own.add(self.error.path)
        if self.evidence.command is not None:
            own |= {finding.path or "" for finding in self.evidence.command.findings}
        helpers = (path for path, side in self._sides if side is Side.TEST and not is_test_module(path))
        return any(self.is_changed(path) for path in own) or next(helpers, None) is not None

    def is_first_party(self, module: str) -> bool:
        return top_level(module) in self.first_party

    def is_test_package(self, module: str) -> bool:
        return top_level(module) in self.evidence.test_packages


def is_a(error: ExceptionFact, *names: str) -> bool:
    """Whether an exception's class is one of these qualified names, or derives from one."""
    return error.qualified in names or any(base in names for base in error.bases)


def last_project_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """The project's frame nearest to the raise."""
    return next((frame for frame in reversed(frames) if frame.side in PROJECT_SIDES), None)


def last_frame_of(frames: tuple[Frame, ...], side: Side) -> Frame | None:
    """The frame of that side nearest to the raise."""
    return next((frame for frame in reversed(frames) if frame.side is side), None)


def top_level(module: str) -> str:
    """``shop`` of ``shop.cart``."""
    return module.partition(".")[0]


def is_relative(path: str) -> bool:
    """Whether a recorded path lies below the plan's root: such paths are recorded relative to it."""
    return not path.startswith(("/", "\\")) and path[1:3] not in (":\\", ":/")


def raises_by_hand(frame: Frame | None) -> bool:
    """Whether the frame stands on a ``raise`` statement: the exception was meant, not stumbled into."""
    return frame is not None and frame.source is not None and frame.source.startswith("raise ")


def _printed_error(evidence: Evidence) -> ExceptionFact | None:
    text = evidence.command.output_tail if evidence.command else ""
    first_party = _first_party(evidence)
    for candidate in (evidence.stderr_tail, text, evidence.stdout_tail, evidence.longrepr):
        if error := read_traceback(candidate, first_party):
            return _within_project(error, evidence) if evidence.command else error
    return None


def _first_party(evidence: Evidence) -> frozenset[str]:
    return own_names(evidence) if evidence.command else frozenset(evidence.first_party)


def _within_project(error: ExceptionFact, evidence: Evidence) -> ExceptionFact:
    """The same with the paths of its frames as they are below the project's root."""
    frames = tuple(
        frame.model_copy(update={"path": within_project(frame.path, evidence)})
        if frame.side in PROJECT_SIDES
        else frame
        for frame in error.frames
    )
    does_not_parse = error.line is not None and error.path is not None
    path = within_project(error.path, evidence) if does_not_parse and error.path else error.path
    return error.model_copy(update={"frames": frames, "path": path})
