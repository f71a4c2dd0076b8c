"""Model of a kind of fault, the editing of a module, and the label that follows from a fault."""

from __future__ import annotations

import ast
import bisect
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import EvidenceKind, Side
from tools.corpus.case import Label, Place, Reading

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.ClassDef
T = TypeVar("T", bound=ast.AST)
SHOWN_LINES = 6
"""Most lines of a change that are stored."""


class Reach(StrEnum):
    """The way in which a test reaches the fault."""

    LINE = "line"
    """It executes the line ``Fault.runs``."""
    IMPORT = "import"
    """It imports the file ``Fault.path``."""
    OWN = "own"
    """It is in the file ``Fault.path``, and one of ``Fault.tests`` if these are named."""


class Judged(StrEnum):
    """The way in which the label of a kind is determined."""

    FIXED = "fixed"
    """The label of the row."""
    BEHAVIOUR = "behaviour"
    """The product behaves wrongly; the exception shows whether values or their types are wrong."""
    INTERFACE = "interface"
    """The interface of the product has changed; the label depends on the user of the removed part."""


class Module:
    """A Python file into which faults are inserted."""

    def __init__(self, path: str, text: str, package: str = "", data: tuple[str, ...] = ()) -> None:
        self.path = path
        self.text = text
        self.package = package
        """Dotted name of the enclosing package; empty for tests."""
        self.data = data
        """Paths of the data files of the tests."""
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Return the parent of each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def functions(self) -> Iterator[Function]:
        """Yield every function and method."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node

    def inner(self, *kinds: type[T]) -> Iterator[T]:
        """Yield every node of these kinds inside of functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, kinds) and self.inside(node):
                yield node

    def inside(self, node: ast.AST) -> Function | None:
        """Return the innermost function around a node."""
        return next((each for each in self.above(node) if isinstance(each, Function)), None)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the ancestors of a node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that contains a node, or is it."""
        chain = (node, *self.above(node))
        return next(each for each in chain if isinstance(each, ast.stmt))

    def qualified(self, node: ast.AST) -> str | None:
        """Return the qualified name of the innermost function or class that contains a node, or is it."""
        names = [each.name for each in (node, *self.above(node)) if isinstance(each, Scope)]
        return ".".join(reversed(names)) or None

    def source(self, node: ast.AST) -> str:
        """Return the source text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return start and end of a node, as offsets in the text."""
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        return (
            self._offset(first, getattr(node, "col_offset", 0)),
            self._offset(last, getattr(node, "end_col_offset", 0)),
        )

    def line_start(self, line: int) -> int:
        """Return the offset of the start of a line, counted from 1."""
        return self._starts[line - 1]

    def line_at(self, offset: int) -> int:
        """Return the line of an offset, counted from 1."""
        return bisect.bisect_right(self._starts, offset, hi=len(self.lines))

    def _offset(self, line: int, column: int) -> int:
        if line > len(self.lines):
            return len(self.text)
        return self._starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault that can be inserted into a project."""

    changes: Mapping[str, str | bytes | None]
    """New content by path; ``None`` deletes the file."""
    path: str
    first_line: int | None = None
    last_line: int | None = None
    """Last line of the fault, in the changed file."""
    function: str | None = None
    runs: int | None = None
    """Line, in the original file, that a test has to execute to reach the fault."""
    before: str = ""
    after: str = ""
    name: str = ""
    """Name that the fault is about."""
    tests: tuple[str, ...] = ()
    """Names of the test functions that reach it, if only these do."""
    reader: str = ""
    """The test file that reads ``path``, if ``path`` is no test file itself."""

    @property
    def read_by(self) -> str:
        """Return the test file that reaches a fault of the tests."""
        return self.reader or self.path


Injector = Callable[[Module], Iterator[Fault]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of fault: a row of a table."""

    id: str
    sentence: str
    inject: Injector
    category: Category = Category.TEST_REGRESSION
    owner: Owner = Owner.PRODUCT
    also: tuple[Reading, ...] = ()
    exact: bool = False
    """Whether the fault raises at its own line; for wrong behaviour this is observed instead."""
    raises: tuple[str, ...] = ()
    """Exceptions that must be raised; a place with another effect is not used."""
    judged: Judged = Judged.FIXED
    reach: Reach = Reach.LINE
    repeatability: Repeatability = Repeatability.DETERMINISTIC
    timeout_seconds: float | None = None
    """Time limit of the criterion."""
    options: str = ""
    """Words of the criterion before the node ids."""
    ends_process: bool = False
    """Whether the tests do not end by themselves, or end the process."""
    if_product_edited: Reading | None = field(default=None)
    """Also accepted if a product file has a harmless edit."""

    @property
    def slow(self) -> bool:
        """Return whether a case of it takes many or long runs."""
        return self.timeout_seconds is not None or self.repeatability is not Repeatability.DETERMINISTIC

    @property
    def options_for_probe(self) -> tuple[str, ...]:
        """Return the options as words."""
        return tuple(shlex.split(self.options))


def replaced(module: Module, node: ast.AST, new: str, *, name: str = "", runs: int | None = None) -> Fault:
    """Return the fault that replaces the text of a node."""
    start, end = module.span(node)
    return edited(module, start, end, new, node=node, name=name, runs=runs)


def inserted(module: Module, statement: ast.stmt, new: str, *, name: str = "") -> Fault:
    """Return the fault that inserts lines before a statement, with its indentation."""
    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    indent = " " * statement.col_offset
    lines = "".join(f"{indent}{line}\n" for line in new.split("\n"))
    at = module.line_start(first)
    return edited(module, at, at, lines, node=statement, name=name)


def edited(
    module: Module,
    start: int,
    end: int,
    new: str,
    *,
    node: ast.AST,
    name: str = "",
    runs: int | None = None,
) -> Fault:
    """Return the fault that replaces the text between two offsets.

    ``node`` determines the function, and the line that has to be executed.
    """
    first = module.line_at(start)
    last = first + max(new.rstrip("\n").count("\n"), 0)
    taken = module.text.count("\n", start, end)
    before = module.lines[first - 1 : first + taken]
    tail = module.text.find("\n", end)
    after = (
        module.text[module.line_start(first) : start] + new + module.text[end : tail if tail >= 0 else None]
    )
    return Fault(
        changes=_Spliced(module, start, end, new),
        path=module.path,
        first_line=first,
        last_line=last,
        function=module.qualified(node),
        runs=runs or module.statement(node).lineno,
        before="".join(before[:SHOWN_LINES]).rstrip("\n") if start != end else "",
        after="\n".join(after.split("\n")[: min(last - first + 1, SHOWN_LINES)]),
        name=name,
    )


class _Spliced(Mapping[str, str]):
    """One changed file, created on first use, since most places of a fault are never tried."""

    def __init__(self, module: Module, start: int, end: int, new: str) -> None:
        self._module, self._start, self._end, self._new = module, start, end, new

    def __getitem__(self, path: str) -> str:
        if path != self._module.path:
            raise KeyError(path)
        return self._module.text[: self._start] + self._new + self._module.text[self._end :]

    def __iter__(self) -> Iterator[str]:
        return iter((self._module.path,))

    def __len__(self) -> int:
        return 1


def body_of(function: Function) -> list[ast.stmt]:
    """Return the statements of a function without its docstring."""
    body = function.body
    return body[1:] if ast.get_docstring(function, clean=False) is not None else body


def plain_name(function: ast.AST) -> bool:
    """Return whether a function or class has a public name without a meaning in the language."""
    return isinstance(function, Scope) and not function.name.startswith("_")


def misspelt(name: str) -> str:
    """Return the name with a typing error: two letters near its end exchanged, or one doubled."""
    for at in range(len(name) - 2, 0, -1):
        if name[at] != name[at + 1] and "_" not in name[at : at + 2]:
            return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    return name + name[-1]


_OF_A_VALUE = ("TypeError", "AttributeError")
"""Exceptions about the type of a value."""

_TAKEN = "A name or a call that does not fit inside the product is its bug, whatever the kind of the value."
_IMPORTED = "It is an import of the product itself that fails."

Found = tuple[Category, tuple[Reading, ...]]


def label_of(kind: Kind, fault: Fault, evidence: Evidence, *, product_edited: bool) -> Label | None:
    """Return the true diagnosis of a failure; ``None`` if the fault did not have the effect of its kind."""
    if not _did(kind, fault, evidence):
        return None
    category, also = _JUDGES[kind.judged](kind, fault, evidence)
    if product_edited and kind.if_product_edited is not None:
        also = (*also, kind.if_product_edited)
    return Label(
        category=category,
        owner=kind.owner,
        repeatability=kind.repeatability,
        also=tuple(each for each in also if _adds(each, category, kind.owner, evidence)),
        place=Place(
            path=fault.path,
            first_line=fault.first_line,
            last_line=fault.last_line,
            function=fault.function,
            exact=(kind.exact or kind.judged is Judged.BEHAVIOUR) and stands_on(evidence, fault),
        ),
    )


def stands_on(evidence: Evidence, fault: Fault) -> bool:
    """Return whether the line of the fault raised, or was running when the process was ended."""
    surfaced = _surfaced(evidence)
    if surfaced is None:
        stack = (evidence.process.stack if evidence.process else None) or ""
        found = re.findall(rf'{re.escape(fault.path)}", line (\d+)', stack)
        return any(_within(int(line), fault) for line in found[:1])
    if surfaced.line is not None and surfaced.path is not None:
        return surfaced.path.endswith(fault.path) and _within(surfaced.line, fault)
    frame = _last_own(surfaced)
    return frame is not None and frame.path == fault.path and _within(frame.line, fault)


def met(evidence: Evidence, fault: Fault) -> bool:
    """Return whether the fault was reached: it is in a traceback, or what it removed is named."""
    for error in evidence.exceptions:
        if any(frame.path == fault.path and _within(frame.line, fault) for frame in error.frames):
            return True
        if error.type in ("NameError", "UnboundLocalError") and error.name == fault.name:
            return True
        if error.type == "UnboundLocalError" and f"'{fault.name}'" in error.message:
            return True
    return stands_on(evidence, fault)


def _within(line: int, fault: Fault) -> bool:
    return fault.first_line is not None and fault.first_line <= line <= (
        fault.last_line or fault.first_line
    )


def _adds(reading: Reading, category: Category, owner: Owner, evidence: Evidence) -> bool:
    """Return whether a further reading differs, and fits the exception."""
    if reading.category is Category.IMPORT_ERROR:
        return any(_is_a(error, "ImportError") for error in evidence.exceptions)
    return (reading.category, reading.owner) != (category, owner)


def _did(kind: Kind, fault: Fault, evidence: Evidence) -> bool:
    if evidence.kind is EvidenceKind.SELECTION:  # the fault took the test's id away: another failure
        return False
    if kind.category is Category.TEST_TIMEOUT:
        return evidence.timed_out
    if kind.category is Category.TEST_CRASH:
        return evidence.process is not None and not evidence.timed_out
    if kind.judged is Judged.FIXED and not _names(evidence, fault):
        return False
    surfaced = _surfaced(evidence)
    if not kind.raises:
        return True
    return surfaced is not None and any(_is_a(surfaced, name) for name in kind.raises)


def _names(evidence: Evidence, fault: Fault) -> bool:
    """Return whether the failure names the subject of the fault, if that has a name."""
    said = (evidence.headline, evidence.longrepr, *(error.message for error in evidence.exceptions))
    return any(fault.name.split(".")[0] in each for each in said)


def _fixed(kind: Kind, fault: Fault, evidence: Evidence) -> Found:
    return kind.category, kind.also


def _behaviour(kind: Kind, fault: Fault, evidence: Evidence) -> Found:
    """Return the reading of a wrong result, or of an exception in the product that it causes."""
    surfaced = _surfaced(evidence)
    if evidence.timed_out:
        return Category.TEST_TIMEOUT, kind.also
    if surfaced is None and evidence.process is not None:
        return Category.TEST_CRASH, kind.also
    if surfaced is not None and surfaced.type in _OF_A_VALUE and _side(surfaced) is Side.PRODUCT:
        return Category.TYPE_ERROR, kind.also
    return Category.TEST_REGRESSION, kind.also


def _interface(kind: Kind, fault: Fault, evidence: Evidence) -> Found:
    """Return the reading of a missing or changed interface, by whether a test or the product uses it."""
    surfaced = _surfaced(evidence)
    if surfaced is None:
        return _behaviour(kind, fault, evidence)
    by_product = _side(surfaced) is Side.PRODUCT
    if _is_a(surfaced, "ImportError"):
        why = Reading(category=Category.IMPORT_ERROR, owner=Owner.PRODUCT, why=_IMPORTED)
        return Category.SPEC_MISMATCH, (why,) if by_product else ()
    if surfaced.type in _OF_A_VALUE and by_product:
        why = Reading(category=Category.TEST_REGRESSION, owner=Owner.PRODUCT, why=_TAKEN)
        return Category.TYPE_ERROR, (why,)
    if surfaced.type in _OF_A_VALUE and _is_about(surfaced, fault):
        return Category.SPEC_MISMATCH, ()
    return Category.TEST_REGRESSION, ()


_JUDGES = {Judged.FIXED: _fixed, Judged.BEHAVIOUR: _behaviour, Judged.INTERFACE: _interface}


def _is_about(error: ExceptionFact, fault: Fault) -> bool:
    """Return whether the exception names the change: the name, or the function with its arguments."""
    if not fault.name:
        return True
    function = (fault.function or "").rsplit(".", 1)[-1]
    owner = (fault.function or "").split(".")[0]
    said = error.message
    return (
        error.name == fault.name
        or any(f"{each}()" in said for each in (function, owner) if each)
        or f"'{fault.name}'" in said
    )


def _surfaced(evidence: Evidence) -> ExceptionFact | None:
    return evidence.exceptions[0] if evidence.exceptions else None


def _is_a(error: ExceptionFact, name: str) -> bool:
    return error.type == name or any(each.rsplit(".", 1)[-1] == name for each in error.bases)


def _last_own(error: ExceptionFact) -> Frame | None:
    own = [frame for frame in error.frames if frame.side in (Side.PRODUCT, Side.TEST)]
    return own[-1] if own else None


def _side(error: ExceptionFact) -> Side | None:
    frame = _last_own(error)
    return frame.side if frame else None
