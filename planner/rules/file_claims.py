"""Which files a todo may write, and which of the todos under work may write the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from immutables import Map

from planner.rules.editing.allowed_files import is_exclusion, lies_within
from planner.rules.glob_patterns import is_glob, literal_start, matches, may_meet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.plan import Todo

_REPORT = "diagnostics/{}_failure_report.json"


def claimed_files(todo: Todo) -> tuple[str, ...]:
    """The globs of the files that a todo may write, those that take files out again (``!``) among them.

    Where it has no ``allowed_files``, they are the files that it names: its target and its artifacts.
    Empty where it names none; it is then taken to be apart from all others, as a parent is, whose files
    are those of its sub-plan.
    """
    if todo.has_sub_plan:
        return ()
    if todo.allowed_files is not None:
        return todo.allowed_files if any(not is_exclusion(each) for each in todo.allowed_files) else ()
    spec = todo.controller_task_spec
    target = () if spec is None or spec.target_file is None else (spec.target_file,)
    made = (artifact.path for artifact in todo.acceptance_criteria.expected_artifacts)
    # The report of its parent's failure is there already, and nobody's work.
    report = _REPORT.format(todo.parent_id)
    return tuple(dict.fromkeys((*target, *(path for path in made if path.removeprefix("./") != report))))


class Grant(NamedTuple):
    """One glob that lets files in, and the globs behind it that take some of them out again."""

    pattern: str
    without: tuple[str, ...] = ()

    def meets(self, other: Grant) -> bool:
        """Whether both may let in the same file, as far as the globs show it."""
        if not may_meet(self.pattern, other.pattern):
            return False
        return not any(
            _holds(out, self.pattern) or _holds(out, other.pattern)
            for out in (*self.without, *other.without)
        )


def grants_of(patterns: Sequence[str]) -> tuple[Grant, ...]:
    """What a list of globs lets in; each glob once, those that are taken out as a whole left out."""
    found: dict[Grant, None] = {}
    out: tuple[str, ...] = ()
    for pattern in reversed(patterns):
        if is_exclusion(pattern):
            out = (pattern[1:], *out)
        elif not any(_holds(each, pattern) for each in out):
            found[Grant(pattern, tuple(each for each in out if may_meet(each, pattern)))] = None
    return tuple(reversed(found))


def may_collide(patterns: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two lists of globs may let in the same file."""
    return any(one.meets(other) for one in grants_of(patterns) for other in grants_of(others))


def _nothing() -> Map[tuple[str, tuple[str, ...]], int]:
    return Map()


@dataclass(frozen=True, slots=True)
class FileClaims:
    """Who has claimed which files. Each change gives a new value; the old one stays as it is.

    A claim of a literal path costs as much as the path is deep, however many others there are.
    """

    _root: _Folder = field(default_factory=lambda: _EMPTY)
    _orders: Map[tuple[str, tuple[str, ...]], int] = field(default_factory=_nothing)
    """By claim, its place in the order of claiming."""
    _added: int = 0
    """How many claims there ever were."""

    def add(self, todo_id: str, patterns: Sequence[str]) -> FileClaims:
        """With a claim of these globs; what is claimed already is not claimed twice."""
        key = (todo_id, tuple(patterns))
        if key in self._orders:
            return self
        root = self._root
        for grant, start in _placed(key[1]):
            root = _with(root, start, _Claim(self._added, todo_id, grant))
        return FileClaims(root, self._orders.set(key, self._added), self._added + 1)

    def remove(self, todo_id: str, patterns: Sequence[str]) -> FileClaims:
        """Without the claim that was added with the same globs; what was never claimed is passed over."""
        key = (todo_id, tuple(patterns))
        order = self._orders.get(key)
        if order is None:
            return self
        root = self._root
        for grant, start in _placed(key[1]):
            root = _without(root, start, _Claim(order, todo_id, grant))
        return FileClaims(root, self._orders.delete(key), self._added)

    def conflicts(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """The ids of those that may write one of the same files, in the order of adding, each once."""
        found = {(claim.order, claim.todo_id) for claim in self._meeting(patterns)}
        return tuple(dict.fromkeys(todo_id for _, todo_id in sorted(found)))

    def is_free(self, patterns: Sequence[str]) -> bool:
        """Whether nobody may write one of the same files; the first who may is enough to know."""
        return next(self._meeting(patterns), None) is None

    def __len__(self) -> int:
        return len(self._orders)

    def _meeting(self, patterns: Sequence[str]) -> Iterator[_Claim]:
        for grant, start in _placed(tuple(patterns)):
            for claim in _near(self._root, start):
                if claim.grant.meets(grant):
                    yield claim


@lru_cache(maxsize=4096)
def _placed(patterns: tuple[str, ...]) -> tuple[tuple[Grant, tuple[str, ...]], ...]:
    """What a list of globs lets in, each with the path that it begins with."""
    return tuple((grant, literal_start(grant.pattern)) for grant in grants_of(patterns))


class _Claim(NamedTuple):
    """One grant of one claim."""

    order: int
    """When the claim was added, as a number."""
    todo_id: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class _Folder:
    """The claims whose globs begin with one literal path and no longer one, and those below that path."""

    claims: Map[_Claim, None]
    below: Map[str, _Folder]

    def __bool__(self) -> bool:
        return bool(self.claims or self.below)


_EMPTY = _Folder(Map(), Map())


def _with(folder: _Folder, path: Sequence[str], claim: _Claim) -> _Folder:
    if not path:
        return _Folder(folder.claims.set(claim, None), folder.below)
    name, rest = path[0], path[1:]
    return _Folder(
        folder.claims, folder.below.set(name, _with(folder.below.get(name, _EMPTY), rest, claim))
    )


def _without(folder: _Folder, path: Sequence[str], claim: _Claim) -> _Folder:
    if not path:
        return _Folder(folder.claims.delete(claim), folder.below)
    name, rest = path[0], path[1:]
    left = _without(folder.below[name], rest, claim)
    return _Folder(folder.claims, folder.below.set(name, left) if left else folder.below.delete(name))


def _near(root: _Folder, path: Sequence[str]) -> Iterator[_Claim]:
    """The claims on the way to a path, those that it has, and those below it."""
    folder: _Folder | None = root
    for name in path:
        yield from folder.claims
        folder = folder.below.get(name)
        if folder is None:
            return
    pending = [folder]
    while pending:
        folder = pending.pop()
        yield from folder.claims
        pending += folder.below.values()


def _holds(out: str, pattern: str) -> bool:
    """Whether a glob names all that another one names; where that cannot be seen, the answer is no."""
    if not is_glob(pattern):
        return matches(pattern, out)
    return lies_within(pattern, out) or lies_within(pattern, f"{out.rstrip('/')}/**")
