"""``planner explain``: the meaning of a word or rule, and the story of a run.

:func:`load_glossary` collects the words of plans, outcomes, decisions and screens from the TOML and JSON
files in ``data``, the JSON Schema of plans, and the tables of rules in the engine, revision and lint
packages. The story is rendered by :func:`tell` from the recorded steps of a run: each event, the changes of
state that it caused, and the actions that followed.
"""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from planner.catalog import RECIPES
from planner.catalog.tables import load_table
from planner.cli.app import command
from planner.cli.arguments import plan_or_usual
from planner.cli.exits import Status, UsageMistake, as_called, complain, program
from planner.cli.screen import TODO_STATES, Screen
from planner.engine import ENGINE_RULES, REFUSALS
from planner.engine.progress import is_unproved
from planner.lint import LINT_RULES
from planner.model.base import qualified
from planner.model.events import PlanSubmitted
from planner.model.taxonomy import CATEGORIES
from planner.model.verdicts import TodoState, Verdict
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.loader import load_plan, shown_path
from planner.planfile.schemas import schema
from planner.policy.outcomes import failures_of, state_of
from planner.revise.strategies import REVISION_RULES
from planner.store.plan_run import PlanRun
from planner.store.run_log import plan_logs, run_of_log
from planner.text.display import counted, did_you_mean, listed
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.engine import State
    from planner.model.outcome import Outcome
    from planner.store.run_log import RecordedRun, Step

LOG_ENDING = ".jsonl"
_TIME_ROOM = 10
"""Columns to the left of a sentence, where its time is printed."""


@command(
    "\b\nExit status: 0 explained, 1 nothing has that name, 2 wrong usage, 4 a file cannot be read.\n"
    "Without a word, it lists the topics. With a plan or the log of a run, it shows what happened in\n"
    "that run."
)
def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD|PLAN|LOG",
            help="A category, rule, verdict, state, role, recipe, key of a plan, exit status. Or "
            "a plan, or the log of a run (*.jsonl), to show what happened.",
        ),
    ] = None,
) -> int:
    """Explain what something means, what the planner does about it, and what to check.

    For a run: show what happened, in order, and by which rules.
    """
    if word is None:
        screen, called = Screen(), f"{program()} explain"
        screen.line(f"{called} WORD explains a word. The words by topic:")
        for kind, words in load_glossary().kinds().items():
            screen.clipped(f"  {kind:<30}{len(words):>4}  ", ", ".join(words))
        screen.line(f"{called} PLAN shows what happened in the last run of the plan.")
        screen.show()
        return Status.OK
    path = Path(word)
    if path.suffix not in (LOG_ENDING, *PLAN_ENDINGS):
        return _explain_word(word)
    plan = None if path.suffix == LOG_ENDING else plan_or_usual(path)
    run = run_of_log(path) if plan is None else _newest_run(plan)
    _show_story(run, plan)
    for remark in run.remarks:
        complain(remark)
    return Status.OK


def _newest_run(plan: Path) -> RecordedRun:
    """Return the newest run of a plan; without a log, the one that follows from its last verification.

    Raises ``UsageMistake`` if there is neither.
    """
    # The newest may be empty: a run that begins again begins a new log.
    logs = [log for log in plan_logs(load_plan(plan)) if log.is_file() and log.stat().st_size]
    if logs:
        return run_of_log(logs[-1])
    opened = PlanRun.open(plan)
    if opened.found.document is None:
        raise UsageMistake(f"{plan} has no run yet; run first: {opened.found.verify}, or name a log")
    return opened.recorded()


# -- words ---------------------------------------------------------------------------------------------

PLAN_KEY = "key of a plan"
_DIAGNOSIS = "rule of the diagnosis"
KEYS_PAGE = "docs/reference/plan-keys.md"
PAGE = "docs/reference/diagnosis-rules.md"
"""The page that documents every rule of the diagnosis, relative to the project's root."""


class Explanation(NamedTuple):
    """The meaning of one word."""

    word: str
    kind: str
    """The kind of word: ``category``, ``verdict``, ``rule of the diagnosis`` …"""
    means: str
    facts: tuple[tuple[str, str], ...] = ()
    """Further facts in the order of the screen, as pairs of a label and a text.

    ``check`` says what to inspect, ``do`` what to do about it, and ``page`` is the page of the
    documentation. A label may occur several times.
    """

    def texts(self, label: str) -> list[str]:
        """Return the facts of a label."""
        return [text for name, text in self.facts if name == label]


class Glossary(NamedTuple):
    """All words that ``planner explain`` can explain."""

    entries: tuple[Explanation, ...]

    def find(self, word: str) -> list[Explanation]:
        """Return all meanings of a word; case is ignored, and ``-``, ``_`` and blanks are the same."""

        def folded(text: str) -> str:
            return text.casefold().replace("_", "-").replace(" ", "-")

        return [each for each in self.entries if folded(each.word) == folded(word)]

    def words(self) -> tuple[str, ...]:
        """Return every name, once."""
        return tuple(dict.fromkeys(each.word for each in self.entries))

    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """Return the words by kind."""
        found: dict[str, dict[str, None]] = {}
        for each in self.entries:
            found.setdefault(each.kind, {})[each.word] = None
        return {kind: tuple(words) for kind, words in found.items()}


@cache
def load_glossary() -> Glossary:
    """Return the whole glossary; the files are read on the first call."""
    sources = (_categories, _words, _plan_keys, _diagnosis_rules, _rules_of_the_planner)
    return Glossary(tuple(each for source in sources for each in source()))


def _categories() -> Iterator[Explanation]:
    texts = load_table("data/categories", "planner.cli")
    for category, facts in CATEGORIES.items():
        text, key = texts[category.value], facts.routing_key
        names = f"{category.value}{f' or {key.value}' if key and not facts.overrides_key else ''}"
        acts = f"{facts.default_role.value}, unless the todo's failure_routing names another for {names}"
        pairs = (
            ("family", facts.family.value),
            ("at fault", f"{facts.usual_owner.value}, mostly"),
            ("acts", acts),
            ("routing", f"{key.value}, in a todo's failure_routing" if key else "no key"),
            ("planner", text["planner"]),
            *(("check", each) for each in text["check"]),
        )
        yield Explanation(category.value, "category", text["means"], pairs)


def _words() -> Iterator[Explanation]:
    """Yield the verdicts, states, roles and further words of ``words.toml``, and the recipes."""
    for kind, texts in load_table("data/words", "planner.cli").items():
        for word, text in texts.items():
            means, *steps = [text] if isinstance(text, str) else text
            yield Explanation(word, kind, means, tuple(("do", each) for each in steps))
    means = "A recipe: a todo with this name as verify gets each of these commands as a criterion."
    for name, commands in RECIPES.items():
        yield Explanation(name, "recipe", means, tuple(("runs", command) for command in commands))


def _plan_keys() -> Iterator[Explanation]:
    """Yield the keys of plans that have a description in the schema, or else in ``keys.toml``."""
    document, texts = schema("plan"), meanings()
    for part, about in {"Plan": document, **document["$defs"]}.items():
        # A model that may have several forms has its keys in the forms.
        shapes: list[dict[str, Any]] = [about, *about.get("anyOf", ())]
        for key, shape in (pair for each in shapes for pair in each.get("properties", {}).items()):
            text = shape.get("description") or texts.get(part, {}).get(key)
            if text is not None:
                means = " ".join(text.partition("\n\n")[0].split())
                facts = (("of", part), ("page", f"{KEYS_PAGE}#{part.lower()}"))
                yield Explanation(key, PLAN_KEY, means, facts)


def _diagnosis_rules() -> Iterator[Explanation]:
    categories = load_table("data/categories", "planner.cli")
    data = json.loads(
        Path(__file__).with_name("data").joinpath("diagnosis_rules.json").read_text(encoding="utf-8")
    )
    for rule in data["rules"]:
        facts: dict[str, Sequence[str]] = {
            "says": [rule["category"]],
            "at fault": [f"{rule['owner']}, mostly"],
            "sure": [f"{rule['confidence']:.0%}, at most"],
            "or else": [rule["runner_up"]] if "runner_up" in rule else [],
            "check": categories[rule["category"]]["check"],
            "page": [f"{PAGE}#{rule['id']}"],
        }
        pairs = tuple((label, text) for label, texts in facts.items() for text in texts)
        yield Explanation(rule["id"], _DIAGNOSIS, rule["because"], pairs)


def _rules_of_the_planner() -> Iterator[Explanation]:
    # A rule can be in more than one table; it is explained once, by the first.
    seen: set[str] = set()
    for kind, table in (
        ("rule of the revision", REVISION_RULES),
        ("rule of the engine", ENGINE_RULES),
        ("rule of a refusal", REFUSALS),
    ):
        yield from (Explanation(name, kind, means) for name, means in table.items() if name not in seen)
        seen |= table.keys()
    for name, rule in LINT_RULES.items():
        facts = (("severity", rule.severity.value), ("do", rule.fix))
        yield Explanation(name, "rule of planner validate", rule.why, facts)


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of the keys that the schemas do not describe, by part of the plan and key."""
    return load_table("data/keys", "planner.cli")


def _explain_word(word: str) -> int:
    """Print every meaning of a word; ``FOUND`` if it is unknown."""
    known, screen = load_glossary(), Screen()
    for position, each in enumerate(known.find(word)):
        if position:
            screen.line()
        screen.line(f"{screen.style(each.word, 'strong')}  {each.kind}")
        screen.paragraph(each.means, indent=2)
        before = ""
        for label, text in each.facts:
            # Commands are copied as they stand.
            mark = "- " if label != "runs" and len(each.texts(label)) > 1 else ""
            screen.labelled("" if label == before else label, f"{mark}{as_called(text)}")
            before = label
    if not known.find(word):
        near = did_you_mean(word, known.words(), f"{program()} explain lists the topics", most=3)
        complain(f"nothing has the name '{word}'; {near}")
        return Status.FOUND
    screen.show()
    return Status.OK


# -- runs ----------------------------------------------------------------------------------------------


def _show_story(run: RecordedRun, plan: Path | None) -> None:
    """Print what happened in a run, step by step, with the time since its start.

    ``plan`` is ``None`` where a log was named.
    """
    screen, since, state = Screen(), 0.0, None
    for step in run.steps:
        event, state = step.event, step.after
        if isinstance(event, PlanSubmitted):
            since = state.now
            if plan is not None and load_plan(plan).digest != event.digest:
                screen.remark(
                    f"{shown_path(plan)} has changed since the run began; the story follows the plan as "
                    "it was then"
                )
            began = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S} UTC"
            run_id = f", run {screen.one_line(event.run_id)}" if event.run_id else ""
            title = screen.style(screen.one_line(state.plan_id), "strong")
            screen.line(f"{title}  times are relative to {began}{run_id}")
        label = f"+{timedelta(seconds=int(state.now - since))}"
        for each in tell(step):  # the time is printed beside the first line of a step
            first = screen.style(f"{label:<{max(_TIME_ROOM, len(label) + 1)}}", "quiet")
            screen.paragraph(each, indent=_TIME_ROOM, first=first)
            label = ""
        # Step by step, so that a damaged log tells what came before.
        screen.show()
    assert state is not None  # there is a first step
    screen.line(f"{'now':<{_TIME_ROOM}}the plan is {screen.plan_state(run.state_name(state))}")
    screen.line()
    screen.paragraph(f"{program()} explain RULE explains a rule in brackets.")
    if plan is not None:
        screen.paragraph(f"{program()} status {shlex.quote(str(plan))} shows the state of each todo.")
    screen.show()


# -- the story ----------------------------------------------------------------------------------------

_LONGEST = 200
"""The most characters that are shown of one fact."""

_SUBJECTS = ("outcome", "todo_ids", "todo_id", "approval_id", "question_id", "topic", "within")
"""Fields that name the subject of an event or action; the first that is set is shown."""

_FACTS = (
    *("role", "attempt", "decision", "answer", "success", "message", "question", "options", "not_before"),
    *("edits", "tokens", "cycles", "files", "touched_files", "new_files", "category", "problems", "result"),
    "by",
)
"""Fields that are shown where they have a value, in this order."""

_UNLABELLED = ("role", "decision", "answer", "category", "result")
"""Fields whose values are shown without their names."""


def tell(step: Step) -> Iterator[str]:
    """Yield sentences: the event of a step, the changes of state by it, and the actions that it led to.

    Each is sanitized, and has the rule that decided it in brackets.
    """
    event, actions, before, after = step
    # A tick of the clock is of no interest itself: only what it caused is shown.
    if event.event != "clock_ticked":
        yield _describe(event, event.event)
    if before is not None:
        yield from _changes(before, after)
    yield from (_describe(action, action.action) for action in actions)


def _describe(thing: Any, kind: str) -> str:
    """Return an event or action as ``implement t1_branch_01: coder, attempt 1, because … [a-rule]``."""
    subject = next((value for name in _SUBJECTS if (value := getattr(thing, name, None))), "")
    facts: list[str] = []
    if kind == "verified":
        subject, facts = thing.outcome.todo_id, [_finding(thing.outcome)]
    elif kind in ("plan_submitted", "sub_plan_loaded") and thing.plan is not None:
        subject = subject or thing.plan.todo_list_id
        facts = [counted(len(thing.plan.items), "todo")]
    for name in _FACTS:
        value = getattr(thing, name, None)
        if name == "success" and value is not None:
            facts.append("reported as done" if value else "not done")
        elif name == "edits" and value:
            owners = (getattr(each, "todo_id", None) or each.todo.id for each in value)
            names = dict.fromkeys(qualified(getattr(thing, "within", ""), each) for each in owners)
            facts.append(f"edits {listed(each.edit for each in value)} of {listed(names)}")
        elif value:
            label = "" if name in _UNLABELLED else f"{name.replace('_', ' ')} "
            facts.append(f"{label}{_text(value)}")
    if because := (getattr(thing, "because", None) or "").strip().rstrip("."):
        facts.append(f"because {' '.join(clean(because).split())}")
    rule = getattr(thing, "rule", None)
    head = f"{kind.replace('_', ' ')} {_text(subject)}".rstrip()
    return f"{head}{': ' if facts else ''}{', '.join(facts)}{f' [{_text(rule)}]' if rule else ''}"


def _text(value: object) -> str:
    """Return a value from outside as sanitized text on one line, at most ``_LONGEST`` characters long."""
    if isinstance(value, tuple):
        return listed(map(_text, value))  # pyright: ignore[reportUnknownArgumentType]
    line = one_line(value, limit=20 * _LONGEST)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2].rstrip()} …"


_RESULTS = {TodoState.DONE: "passed", TodoState.TEST_FAILED: "failed"}


def _finding(outcome: Outcome) -> str:
    """Return the result of a verification with the failing tests or the checks that did not pass."""
    result, failure = _RESULTS.get(state_of(outcome), "undecided"), next(failures_of(outcome), None)
    if failure is not None:
        tests = failure.tests or failure.top_failing_tests
        what = _text(tests[0].rpartition("::")[2] if tests else failure.check_id or "it")
        more = f" and {counted(len(tests) - 1, 'other test')}" if len(tests) > 1 else ""
        head = f": '{_text(failure.stack_trace_head)}'" if failure.stack_trace_head else ""
        sure = "" if failure.confidence is None else f", {failure.confidence:.0%}"
        rule = f" by {_text(failure.rule)}" if failure.rule else ""
        return f"{result}, {what}{more} ({failure.category}{sure}{rule}){head}"
    unproved = [each for each in outcome.checks if each.counts_as is not Verdict.PASSED]
    named = listed(_text(each.title or each.id) for each in unproved)
    return f"{result}, {named or counted(len(outcome.checks), 'criterion')}"


def _changes(before: State, after: State) -> Iterator[str]:
    """Yield which todos ended, became blocked, or are no longer blocked."""
    changed: dict[str, list[str]] = {}
    earlier_blocked, now = before.blocked(), after.blocked()
    for name, record in after.records.items():
        earlier = before.records.get(name)
        if record.life.is_final and (earlier is None or earlier.life is not record.life):
            end = (
                f"{TODO_STATES[record.life][1]}{', but not verified' if is_unproved(after, record) else ''}"
            )
            changed.setdefault(end, []).append(name)
        if name in now and name not in earlier_blocked:
            changed.setdefault(f"blocked by {now[name]}", []).append(name)
        elif name in earlier_blocked and name not in now and not record.life.is_final:
            changed.setdefault("no longer blocked", []).append(name)
    for state, names in changed.items():
        yield f"now {state}: {listed(names)}"
