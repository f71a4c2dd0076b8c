"""Memory: advice from past outcomes on order, recipes, and the repairing role.

Memory only changes an order or a default. It never turns a failure into a pass, never hides a failure
from a person who must see it, and never overrides what a todo states.

Advice depends on past records and the current time only. A record is weighted by similarity, age and
origin. A rate is estimated with a prior of two experiences, one of them a success, so that few records
change little. Texts are compared by trigrams of their words, so that ``compute_rsi`` and ``RSI
computation`` are similar and word order does not matter. Times are epoch seconds; future ones count as
now. A run receives at most some hundred records, so they are searched linearly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog import RECIPES
from planner.model.taxonomy import Category, Family, Owner, Role
from planner.policy.criteria import commands_of
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from planner.model.outcome import Failure
    from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
    from planner.model.plan import Todo

DAILY = 0.95
"""Factor by which the weight of an experience decreases per day."""

ELSEWHERE = 0.5
"""Factor for experiences from another repository, or with todos of another role."""

ALIKE = 0.25
"""Similarity (0 to 1) below which texts are unrelated."""

SAME_SORT = 0.3
"""Weight of an unrelated repair of the same category."""

WORTH_A_RECIPE = 0.25
"""Minimum estimated chance that a recipe finds a failure, as it costs a small part of a turn of work …"""
RECIPE_ENOUGH = 1.0
"""… estimated from at least this weight of experiences."""

CORRECTED = 4.0
"""Weight of a person's correction among repairs of the same failure; for other failures of the category it
is multiplied by :data:`SAME_SORT`."""

ENOUGH = 1.5
"""Minimum weight of experiences with a role before it is advised …"""
MARGIN = 0.15
"""… and minimum difference of its rate from that of the default."""

NOT_MEMORYS = frozenset({Family.SANDBOX, Family.BUDGET, Family.ENVIRONMENT})
"""Families of failures for which memory never changes the role."""
WORKERS = (Role.CODER, Role.ARCHITECT, Role.TESTER, Role.DEBUGGER)
"""Roles that statistics may choose; only a person's correction can choose human or planner."""

_LONGEST = 2_000
"""Limit in characters of a text that is compared."""
_LONGEST_HEAD = 300
"""Limit in characters of a failure's head, so that stack frames that all failures share do not dominate."""
_LONGEST_NAME = 80
"""Limit in characters of a person's name in a reason."""

_SYNTAX = frozenset({Category.COMPILATION_ERROR, Category.LINT_ERROR})
_NAMES = frozenset({Category.TYPE_ERROR, Category.IMPORT_ERROR})

SHOWN_BY: Mapping[str, tuple[tuple[str, frozenset[Category]], ...]] = {
    # python-full has a type checker, which finds wrong types and imports of missing names.
    "python": (("python-full", _NAMES), ("python-quick", _SYNTAX)),
    "node": (("node-full", _SYNTAX | _NAMES),),
    "go": (("go-full", _SYNTAX | _NAMES),),
    "rust": (("rust-full", _SYNTAX | _NAMES),),
}
"""Recipes by language, with the categories of failures that they find before the criteria do.

The first recipe that is worth it is advised."""


class RecipeAdvice(NamedTuple):
    """A recipe to run first, with the reason: ``of 12 like this 5 met LINT_ERROR``."""

    value: str
    because: str


class RoutingAdvice(NamedTuple):
    """The advised role for a failure, with the grounds."""

    role: Role
    confidence: float
    """Estimated chance that this role repairs it, 0 to 1."""
    because: str
    """Reasons and numbers: ``12 of TEST_TIMEOUT; debugger fixed 9 of 10, coder 1 of 2``."""
    changed: bool
    """Whether the role differs from the default."""


class Belief(NamedTuple):
    """An estimate from weighted experiences."""

    rate: float
    """Estimated chance of success."""
    seen: float
    """Total weight of the experiences."""


class _Standing(NamedTuple):
    """Experience of one role with failures of one category: the estimate, and the unweighted counts."""

    belief: Belief
    fixed: int
    tried: int


# The texts of the past are compared with each todo of the plan.
@lru_cache(maxsize=4_096)
def ngrams(text: str) -> frozenset[str]:
    """Return the trigrams of a text's words, padded with spaces."""
    words = [f" {word} " for word in words_of(text[:_LONGEST])]
    return frozenset(word[start : start + 3] for word in words for start in range(len(word) - 2))


def jaccard(one: Set[str], other: Set[str]) -> float:
    """Return the Jaccard similarity of two sets, from 0 to 1."""
    union = len(one | other)
    return len(one & other) / union if union else 1.0


def believe(experiences: Iterable[tuple[bool, float]], well: float = 1.0) -> Belief:
    """Estimate the chance of success from weighted experiences: pairs of success and weight.

    The prior has two experiences, of which ``well`` are successes. The order does not matter.
    """
    pairs = list(experiences)
    # fsum is exact, so the result does not depend on the order of the records.
    seen = fsum(weight for _, weight in pairs)
    return Belief((well + fsum(weight for good, weight in pairs if good)) / (2.0 + seen), seen)


def text_of(todo: Todo, failure: Failure | None = None) -> str:
    """Return the text under which memory stores and compares a todo, or the repair of its failure."""
    head = None if failure is None else failure.stack_trace_head
    return own_title(todo) if head is None else f"{own_title(todo)} {head[:_LONGEST_HEAD]}"


@dataclass(frozen=True)
class Memory:
    """Advice from past records; their order does not matter."""

    records: PastRecords
    _known: dict[str, list[tuple[float, PastTodo]]] = field(
        default_factory=dict[str, "list[tuple[float, PastTodo]]"], repr=False, compare=False
    )
    """Cache of similar todos by description."""

    @property
    def is_empty(self) -> bool:
        """Return whether there are no records, so that all advice is the static default."""
        return not (self.records.repairs or self.records.todos or self.records.corrections)

    def order_bias(self, todo: Todo, now: float) -> float:
        """Return the estimated chance that a todo succeeds at the first attempt; 0.5 if unknown.

        Among todos of equal priority the higher goes first.
        """
        found = (
            (
                past.done and past.first_time,
                like * self._weight(past, now) * (1.0 if past.role is todo.agent_role else ELSEWHERE),
            )
            for like, past in self._similar_todos(todo)
        )
        return round(believe(found).rate, 6)

    def recipe(self, todo: Todo, now: float) -> RecipeAdvice | None:
        """Return a recipe that is likely to find a failure of the todo before its criteria do, if any."""
        near = self._similar_todos(todo)
        # The language is that of the first command with a known program.
        programs = (word for _, command in commands_of(todo) for word in command.cmd.split())
        language = next((_LANGUAGE_OF[word] for word in programs if word in _LANGUAGE_OF), PYTHON)
        for recipe, shown in SHOWN_BY[language]:
            if todo.verify in RECIPES and set(RECIPES[recipe]) <= set(RECIPES[todo.verify]):
                continue  # the todo's criteria include all commands of the recipe
            # The low prior: without experience, a recipe is assumed to find nothing that criteria miss.
            chance = believe(
                (
                    (not shown.isdisjoint(past.categories), like * self._weight(past, now))
                    for like, past in near
                ),
                well=0.2,
            )
            if chance.seen >= RECIPE_ENOUGH and chance.rate >= WORTH_A_RECIPE:
                met = sum(not shown.isdisjoint(past.categories) for _, past in near)
                names = " or ".join(sorted(shown))
                return RecipeAdvice(recipe, f"of {len(near)} like this {met} met {names}")
        return None

    def route(self, failure: Failure, todo: Todo, default: Role, now: float) -> RoutingAdvice:
        """Return the role that should repair a failure; ``default`` is that of the static tables.

        The role differs from the default only if a person corrected this failure, or if the numbers are
        clear (:data:`ENOUGH`, :data:`MARGIN`). It never does for failures of sandbox, budget
        or environment, or if the todo's ``failure_routing`` names the category or its key.
        """
        category = failure.category
        grams = ngrams(f"{task_kind(todo)} {text_of(todo, failure)}")
        standings = {role: self._standing(role, failure, grams, now) for role in Role}
        numbers, best = _counts_reason(category, standings), default
        refusal, word = _refusal(failure, todo, default), self._latest_correction(failure.signature)
        reasons = [refusal]
        # A person's word outweighs all numbers.
        if refusal is None and word is not None:
            best = word.role
            reasons.append(_correction_reason(word))
        reasons.append(numbers)
        if refusal is None and word is None:
            # The default comes first, so that it wins a tie: max() returns the first of equals.
            beliefs = {role: standings[role].belief for role in (default, *WORKERS)}
            better = max(beliefs, key=lambda role: beliefs[role].rate)
            one, other = beliefs[better], beliefs[default]
            # Few or close experiences change nothing: a wrong change costs a whole turn of work. The prior
            # in each rate already keeps few experiences close.
            if one.seen >= ENOUGH and one.rate - other.rate >= MARGIN:
                best = better
            elif one.seen > 0 and one.rate > other.rate:
                reasons.append(f"too few cases to prefer the {better} to the {default}")
        confidence = round(standings[best].belief.rate, 4)
        because = "; ".join(filter(None, reasons)) or "no similar failure is known"
        return RoutingAdvice(best, confidence, because, best is not default)

    def _similar_todos(self, todo: Todo) -> list[tuple[float, PastTodo]]:
        """Return the past todos with a similar kind and text, with their similarity."""
        description = f"{task_kind(todo)} {text_of(todo)}"
        if description not in self._known:
            grams = ngrams(description)
            past = self.records.todos
            found = ((jaccard(grams, ngrams(f"{each.task_kind} {each.text}")), each) for each in past)
            self._known[description] = [pair for pair in found if pair[0] >= ALIKE]
        return self._known[description]

    def _standing(self, role: Role, failure: Failure, grams: Set[str], now: float) -> _Standing:
        """Return the experience of a role with a failure's category; ``grams`` describe the failure."""
        found: list[tuple[bool, float]] = []
        tried = [
            past for past in self.records.repairs if past.role is role and past.category is failure.category
        ]
        for past in tried:
            like = jaccard(grams, ngrams(f"{past.task_kind} {past.text}"))
            # The texts begin with the titles of todos, which may differ for one and the same failure.
            is_same = failure.signature is not None and past.signature == failure.signature
            worth = 1.0 if is_same or like >= ALIKE else SAME_SORT
            attempts = past.attempts if past.fixed else 1  # a success after many attempts weighs less
            found.append((past.fixed, worth * self._weight(past, now) / attempts))
        for word in self.records.corrections:
            if word.role is role and word.category is failure.category:
                worth = CORRECTED if word.signature == failure.signature else CORRECTED * SAME_SORT
                found.append((True, worth * self._weight(word, now)))
        return _Standing(believe(found), sum(past.fixed for past in tried), len(tried))

    def _weight(self, record: PastTodo | PastRepair | Correction, now: float) -> float:
        """Return the weight of a record, from its age and repository."""
        days = max(0.0, now - record.at.timestamp()) / 86_400.0
        return DAILY**days * (1.0 if record.fingerprint == self.records.fingerprint else ELSEWHERE)

    def _latest_correction(self, signature: str | None) -> Correction | None:
        """Return the latest correction of this failure in this repository, if any."""
        own = (
            each
            for each in self.records.corrections
            if signature and each.signature == signature and each.fingerprint == self.records.fingerprint
        )
        # Corrections of the same moment are ordered by content, so that the order of records is irrelevant.
        return max(own, key=lambda each: (each.at.timestamp(), each.model_dump_json()), default=None)


def _refusal(failure: Failure, todo: Todo, default: Role) -> str | None:
    """Return why memory must not choose the role for a failure; ``None`` if it may."""
    category = failure.category
    # No role can repair the environment, except that a missing import can be declared as a dependency.
    is_environment = (
        failure.owner in (Owner.ENVIRONMENT, Owner.HARNESS) and category is not Category.IMPORT_ERROR
    )
    if default is Role.HUMAN or category.facts.family in NOT_MEMORYS or is_environment:
        return f"memory does not decide who acts on {category}"
    for word in (category, category.facts.routing_key):
        if word is not None and word in todo.failure_routing:
            return f"the todo itself sets the role for {word}"
    return None


def _counts_reason(category: Category, standings: Mapping[Role, _Standing]) -> str:
    """Return ``12 of TEST_TIMEOUT; debugger fixed 9 of 10, coder 1 of 2``; empty if nothing is known."""
    rows = [(role, each.fixed, each.tried) for role, each in standings.items() if each.tried]
    rows.sort(key=lambda row: (-row[1], row[2]))
    parts = (f"{role} {'' if n else 'fixed '}{fixed} of {of}" for n, (role, fixed, of) in enumerate(rows))
    return f"{sum(row[2] for row in rows)} of {category}; {', '.join(parts)}" if rows else ""


def _correction_reason(word: Correction) -> str:
    """Return the reason for a role that a person's correction names."""
    who = " ".join(clean(word.by or "", limit=_LONGEST_NAME).split()) or "a person"
    meant = f", as {word.right_category}" if word.right_category is not None else ""
    return f"{who} said on {word.at:%Y-%m-%d} that this is for the {word.role}{meant}"


# -- kinds of work ---------------------------------------------------------------------------------------

# Past work is compared within a kind. A wrong kind makes memory's comparisons less accurate, and does no
# other harm.


class TaskKind(StrEnum):
    """Kind of a todo's work."""

    FIX_TEST = "fix_test"
    FIX_BUG = "fix_bug"
    ADD_TEST = "add_test"
    ADD_FEATURE = "add_feature"
    REFACTOR = "refactor"
    OTHER = "other"


_ACTION_WORDS: Mapping[TaskKind, str] = {
    TaskKind.FIX_BUG: "fix fixes fixed fixing bugfix hotfix bug bugs repair* debug* correct* resolv* "
    "failing fail fails failure broken crash* regression flaky",
    TaskKind.REFACTOR: "refactor* restructur* reorgani* renam* clean* simplif* extract* move moving split* "
    "remov* delet*",
    TaskKind.ADD_FEATURE: "add adds adding implement* creat* build* introduc* support* writ* integrat* "
    "provid* enabl* extend* feature* load* develop*",
}
"""Words that name an action (``*`` for any ending), with the kind of work that they imply.

The first one in a text decides."""

_ACTIONS = {
    kind: re.compile(rf"\b(?:{'|'.join(words.split())})\b".replace("*", r"\w*"))
    for kind, words in _ACTION_WORDS.items()
}
_OF_TESTS = {TaskKind.FIX_BUG: TaskKind.FIX_TEST, TaskKind.ADD_FEATURE: TaskKind.ADD_TEST}
_TESTS = re.compile(r"\b(?:test|tests|testing|pytest|unittest|fixture|fixtures)\b")

_BRANCH_TITLE = re.compile(r"Repair (.+) \([^()]*\)", re.DOTALL)
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_WORD = re.compile(r"[^\W\d]+|\d+(?:\.\d+)*")

PYTHON = "python"
"""Default language."""

_PROGRAMS: Mapping[str, str] = {
    "node": "npm npx node yarn pnpm jest vitest eslint tsc",
    "go": "go",
    "rust": "cargo",
    PYTHON: "pytest python",
}
_LANGUAGE_OF = {program: language for language, words in _PROGRAMS.items() for program in words.split()}
"""Languages by program."""


def task_kind(todo: Todo) -> TaskKind:
    """Return the kind of work; a branch has the kind of the todo that it repairs.

    Task type and title decide; if they name no kind, the intent does.
    """
    spec = todo.controller_task_spec
    for text in (f"{'' if spec is None else spec.type} {own_title(todo)}", (todo.intent or "")[:_LONGEST]):
        words = " ".join(words_of(text))
        found = {kind: match.start() for kind, each in _ACTIONS.items() if (match := each.search(words))}
        kind = min(found, key=lambda each: found[each], default=None)
        # "Fix the failing tests" is work on tests, and "Refactor the tests" stays a refactoring.
        if _TESTS.search(words):
            return TaskKind.ADD_TEST if kind is None else _OF_TESTS.get(kind, kind)
        if kind is not None:
            return kind
    return TaskKind.OTHER


def own_title(todo: Todo) -> str:
    """Return the title; for a branch the title of the repaired todo, if the branch's title quotes it."""
    title = todo.title[:_LONGEST]
    inner = _BRANCH_TITLE.fullmatch(title) if todo.parent_id is not None else None
    # Otherwise all branches would be alike by the words of their titles, whatever they repair.
    return title if inner is None else inner[1]


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text, splitting ``snake_case`` and ``CamelCase``.

    Numbers become ``0``, as they only distinguish similar todos.
    """
    split = _WORD_BOUNDARY.sub(" ", text).casefold()
    return ["0" if word[0].isdigit() else word for word in _WORD.findall(split)]
