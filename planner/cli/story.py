"""The story of a run in plain sentences, made from each event, its actions and the states around it.

One table holds a sentence for each event and each action. In it ``{name}`` stands for a fact of the event
or action, or one that is computed (:data:`FACTS`); ``{name:todo}`` counts, ``{name:list}`` lists. What
stands in ``<…>`` is left out where one of its facts is missing. Every fact is cleaned and cut.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from planner.cli import words
from planner.cli.figures import verdict_of
from planner.model import actions as act
from planner.model import events as told
from planner.model.ids import qualified
from planner.model.life import PlanState, TodoLife
from planner.model.verdicts import TodoState, Verdict
from planner.policy.branches import RETRIED_ONCE
from planner.text.display import counted, listed
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from planner.engine import State
    from planner.engine.state import TodoRecord
    from planner.model.outcome import Failure, Outcome

    Teller: TypeAlias = Callable[[Any, State], Any]

EVERYBODY = "*"
"""Concerns every todo of the run."""

_LONGEST_QUOTE = 200
_LONGEST_SENTENCE = 1_500
_MOST_QUESTIONS = 20

SENTENCES: Mapping[type[told.Event] | type[act.Action], str] = {
    told.PlanSubmitted: "The plan {plan.todo_list_id} ({path}) was submitted, with {plan.items:todo}"
    "<; it cannot be carried out ({problems:problem}, the first: {first})>",
    told.RunStarted: "The run was started",
    told.WorkStarted: "Work on {todo_id} has begun",
    told.WorkFinished: "The work on {todo_id} is over< (turn {turn})>: {claim}<, after {used}>"
    "<: '{message}'>",
    told.Verified: "{outcome.todo_id} was verified: {finding:text}",
    told.ApprovalGiven: "{who} {decided} {approval_id}< ({changed})><: '{because}'>",
    told.QuestionAnswered: "{who} answered the question {question_id} with '{answer}'<: '{because}'>",
    told.BudgetSpent: "<Used beside the turns of work: {used}>< (on {spent_on})>",
    told.ClockTicked: "",
    told.ConflictFound: "The work on {todo_ids:list} does not fit together< ({files:list})>",
    told.SubPlanLoaded: "The sub-plan of {todo_id} <was loaded, with {loaded:todo}>{refused}<: {first}>",
    told.PlanRevised: "{who} changed the plan< of {within}>: {edits:text}",
    told.RunResumed: "The driver started again, and is asked again for what is outstanding",
    told.StopRequested: "{who} wants everything to stop<: '{because}'>",
    act.Implement: "The {role} {work:text}",
    act.Verify: "{todo_ids:list} {are} to be verified<, {alone}><, not before {not_before}>",
    act.Cancel: "The work under way on {todo_id} is to be stopped",
    act.AskHuman: "A person is asked{question:text}",
    act.Notify: "The {to} is told by {topic}: '{said}'",
    act.PublishPlan: "The plan< of {within}> now has version {version} ({edits:text})",
    act.LoadSubPlan: "The sub-plan of {todo_id}< ({sub_plan_name})> is to be loaded",
    act.Halt: "Everything stops< at {todo_ids:list}>< ({category})>",
    act.Finish: "The plan is {result}",
}

_DECISIONS = {
    told.Decision.APPROVE: "approved",
    told.Decision.REJECT: "rejected",
    told.Decision.MODIFY: "approved, with changes,",
    told.Decision.APPROVE_SIMILAR: "approved, for every later failure of its class too,",
}

_ASKED = {
    act.QuestionKind.APPROVE_BRANCH: " whether the branch {id} may be made",
    act.QuestionKind.APPROVE_EDITS: " whether the plan may be changed ({id})",
    act.QuestionKind.APPROVE_START: " whether {todo} may be begun ({id})",
}
"""What a person is asked to approve. Other questions are told in their own words."""

_LIVES: Mapping[TodoLife, str] = {
    TodoLife.PENDING: "not begun",
    TodoLife.BLOCKED: "blocked",
    TodoLife.ACTIVE: "worked on",
    TodoLife.TESTING: "being verified",
    TodoLife.TEST_FAILED: "red",
    TodoLife.DONE: "done",
    TodoLife.FAILED: "failed for good",
    TodoLife.SKIPPED: "skipped",
    TodoLife.HALTED: "halted",
}

_PLANS: Mapping[PlanState, str] = {
    PlanState.CREATED: "The plan was made",
    PlanState.VALIDATING: "The plan is being validated",
    PlanState.REJECTED: "The plan was rejected: it cannot be carried out",
    PlanState.READY: "The plan is ready, and waits for the run to be started",
    PlanState.EXECUTING: "The run is under way",
    PlanState.REVISING: "The run is under way, and a revision of the plan is being made",
    PlanState.AWAITING_REVIEW: "Nothing goes on until a person has answered",
    PlanState.COMPLETED: "The plan is completed",
    PlanState.HALTED: "The run was halted",
}


_UNPROVED = ", though no verification has proved it"


class Sentence(NamedTuple):
    """One sentence about a run, clean and on one line."""

    text: str
    about: tuple[str, ...] = ()
    """The qualified ids of the todos that it concerns, or :data:`EVERYBODY`."""
    rule: str | None = None
    """The rule that made what it tells of."""

    @property
    def with_rule(self) -> str:
        """The sentence, and the rule in brackets."""
        return self.text if self.rule is None else f"{self.text} [{self.rule}]"


def tell(
    event: told.Event,
    actions: Sequence[act.Action],
    before: State | None,
    after: State,
    only: str | None = None,
) -> tuple[Sentence, ...]:
    """Tell what happened, what came of it, and what was asked for then.

    ``before`` is absent for the first event. With ``only``, the qualified id of a todo, what concerns
    neither it nor its branches is left out; what concerns everybody stays.
    """
    said = [*tell_one(event, before, after)]
    if before is not None:
        said += _changes(before, after, only)
    for action in actions:
        said += tell_one(action, before, after)
    if only is None:
        return tuple(said)
    runs = [run for run in (before, after) if run is not None and only in run.records]
    family = {only, EVERYBODY, *(name for run in runs for name in run.records[only].branches)}
    return tuple(each for each in said if not family.isdisjoint(each.about))


def tell_one(thing: told.Event | act.Action, before: State | None, after: State) -> Iterator[Sentence]:
    """Tell of one event or action; nothing of what means nothing by itself."""
    text = _filled(SENTENCES[type(thing)], thing, after)
    rule: str | None = getattr(thing, "rule", None)
    if rule is not None and isinstance(why := getattr(thing, "because", None), str):
        why = " ".join(clean(why).split()).rstrip(".")
        text += f", because {why}" if why and not (isinstance(thing, act.Notify) and why in text) else ""
    if text:
        yield sentence(text, *_about(thing, before), rule=rule)


def sentence(text: str, *about: str, rule: str | None = None) -> Sentence:
    """Make a sentence of these words, whatever is in them."""
    line = " ".join(clean(text).split())
    if len(line) > _LONGEST_SENTENCE:
        line = f"{line[:_LONGEST_SENTENCE].rstrip()} …"
    ended = line if line.endswith((".", "?", "!", "…", ".'", "?'")) else f"{line}."
    return Sentence(ended, about, rule and quoted(rule))


def quoted(text: object) -> str:
    """Return text from outside, clean, on one line and short."""
    line = " ".join(clean(str(text), limit=20 * _LONGEST_QUOTE).split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[: _LONGEST_QUOTE - 2].rstrip()} …"


def named(names: Iterable[object]) -> str:
    """Return ``a, b and c``; of many only the first."""
    return listed(map(quoted, names), last=" and ")


# -- facts ---------------------------------------------------------------------------------------------

_OPTIONAL = re.compile(r"<([^<>]*)>")
_FIELD = re.compile(r"\{([\w.]+)(?::(\w+))?\}")


class _MissingError(Exception):
    """A fact that is not there."""


def _filled(template: str, thing: object, after: State) -> str:
    def fact(match: re.Match[str], *, needed: bool) -> str:
        name, kind = match.groups()
        teller = FACTS.get(name)
        value = attrgetter(name)(thing) if teller is None else teller(thing, after)
        if kind == "list":
            text = named(value)
        elif kind == "text":
            text = str(value)
        elif kind is not None:
            text = "" if value is None else counted(len(value), kind)
        else:
            text = quoted("" if value is None else value)
        if needed and not text:
            raise _MissingError
        return text

    def optional(text: str) -> str:
        try:
            return _FIELD.sub(lambda match: fact(match, needed=True), text)
        except _MissingError:
            return ""

    parts = _OPTIONAL.split(template)  # every other part stood in brackets
    return "".join(
        optional(part) if number % 2 else _FIELD.sub(lambda match: fact(match, needed=False), part)
        for number, part in enumerate(parts)
    )


def _used(event: Any, after: State) -> str:
    touched = len(getattr(event, "touched_files", ()))
    new = event.new_files if isinstance(event.new_files, int) else len(event.new_files)
    amounts = (
        (event.tokens, "token"),
        (event.cycles, "cycle"),
        (touched, "touched file"),
        (new, "new file"),
    )
    return named(counted(count, noun) for count, noun in amounts if count)


def _turn(event: Any, after: State) -> int | None:
    record = after.records.get(event.todo_id)
    return None if record is None else record.turns or None


def _loaded(event: Any, after: State) -> object:
    return None if event.plan is None or event.problems else event.plan.items


def _work(action: act.Implement, after: State) -> str:
    record = after.records.get(action.todo_id)
    todo = None if record is None else record.todo
    if action.parent_id is not None:
        attempt = _of(action.attempt, None if todo is None else todo.max_debug_attempts)
        return f"is to work on the branch {action.todo_id} of {action.parent_id} (attempt {attempt})"
    if record is not None and todo is not None and action.rule == "retry-by-the-same-role":
        once = record.failure is not None and record.failure.category in RETRIED_ONCE
        allowed = min(todo.max_retries, 1) if once else todo.max_retries
        return f"tries {action.todo_id} again ({_of(record.retries, allowed)})"
    if action.attempt > 1:
        return f"works on {action.todo_id} again (turn {action.attempt})"
    return f"is to work on {action.todo_id} ('{quoted(action.brief.title)}')"


def _of(count: int, allowed: int | None) -> str:
    """Return ``2 of 3``; what a person has granted beyond the limit is counted alone."""
    return str(count) if allowed is None or count > allowed else f"{count} of {allowed}"


def _question(action: act.AskHuman, after: State) -> str:
    if action.kind in _ASKED:
        what = _ASKED[action.kind].format(id=action.question_id, todo=action.todo_id)
        if action.edits and action.kind is act.QuestionKind.APPROVE_EDITS:
            what += f": {_edits(action)}"
    else:
        whom = f" about {action.todo_id}" if action.todo_id else ""
        what = f"{whom}: '{quoted(action.question)}' ({action.question_id})"
    return what + _choices(action.options)


def _choices(options: Sequence[str]) -> str:
    return f" ({listed(map(quoted, options), last=' or ')})" if len(options) > 1 else ""


def _edits(thing: Any) -> str:
    return "; ".join(quoted(words.edit(each)) for each in thing.edits)


FACTS: Mapping[str, Teller] = {
    "who": lambda event, _: quoted(event.by or "") or "A person",
    "because": lambda event, _: event.because or "",
    "first": lambda event, _: next(iter(event.problems), ""),
    "turn": _turn,
    "claim": lambda event, _: "it is said to be done" if event.success else "it is not done",
    "used": _used,
    "spent_on": lambda event, _: event.todo_id if _used(event, _) else "",
    "finding": lambda event, _: finding(event.outcome),
    "decided": lambda event, _: _DECISIONS[event.decision],
    "changed": lambda event, _: (
        ", ".join(name.replace("_", " ") for name in sorted(event.changes.model_fields_set))
        if event.decision is told.Decision.MODIFY
        else ""
    ),
    "loaded": _loaded,
    "refused": lambda event, _: "cannot be loaded" if _loaded(event, _) is None else "",
    "edits": lambda thing, _: _edits(thing),
    "work": _work,
    "are": lambda action, _: "is" if len(action.todo_ids) == 1 else "are",
    "alone": lambda action, _: "each command in a process of its own" if action.isolate else "",
    "question": _question,
    "said": lambda action, _: action.message.removeprefix(f"{action.topic}: "),
    "sub_plan_name": lambda action, _: action.sub_plan or action.sub_project_id,
}
"""Facts that are computed, by name."""


def finding(outcome: Outcome) -> str:
    """Tell what a verification found."""
    verdict, failure = verdict_of(outcome)
    checks = outcome.checks
    if verdict is Verdict.PASSED:
        held = len(checks)
        return f"{counted(held, 'criterion')} {'holds' if held == 1 else 'hold'}" if held else "it holds"
    if verdict is Verdict.NEEDS_HUMAN:
        asked = [check.title or check.id for check in checks if check.verdict is Verdict.NEEDS_HUMAN]
        return f"a person has to answer: {named(asked)}"
    if failure is not None:
        verb = "could not be judged" if verdict is Verdict.INCONCLUSIVE else "failed"
        head = f": '{quoted(failure.stack_trace_head)}'" if failure.stack_trace_head else ""
        return f"{_failed(outcome, failure)} {verb} ({_diagnosis(failure)}){head}"
    if verdict is Verdict.INCONCLUSIVE:
        if outcome.state in (None, TodoState.DONE, TodoState.TEST_FAILED):
            return "the outcome contradicts itself"
        unsure = next((check for check in checks if check.counts_as is not Verdict.PASSED), None)
        where = "" if unsure is None else f", {unsure.id} is {unsure.counts_as}"
        why = "" if unsure is None or not unsure.reason else f" ({quoted(unsure.reason)})"
        return f"the run could not tell{where}{why}"
    red = named(check.id for check in checks if check.counts_as.is_red)
    return f"{f'{red} failed' if red else 'it does not hold'}, and no failure is described"


def _failed(outcome: Outcome, failure: Failure) -> str:
    first, *others = failure.tests or failure.top_failing_tests or ("",)
    if first:
        more = f" and {counted(len(others), 'other test')}" if others else ""
        return f"{quoted(first.rpartition('::')[2])}{more}"
    check = next((each for each in outcome.checks if each.id == failure.check_id), None)
    shown = failure.check_id if check is None else check.title or check.cmd or check.id
    return quoted(shown or "it")


def _diagnosis(failure: Failure) -> str:
    sure = None if failure.confidence is None else f"{failure.confidence:g}"
    rule = f"by {quoted(failure.rule)}" if failure.rule else None
    opinion = " ".join(filter(None, (sure, rule)))
    return f"{failure.category}, {opinion}" if opinion else str(failure.category)


def _about(thing: Any, before: State | None) -> tuple[str, ...]:
    """Return the todos that an event or action concerns."""
    names: list[str] = [*getattr(thing, "todo_ids", ())]
    for name in ("todo_id", "parent_id", "question_id", "approval_id"):
        if isinstance(held := getattr(thing, name, None), str) and held:
            names.append(held)
            question = None if before is None else before.questions.get(held)
            names += [] if question is None else [question.todo_id]
    if isinstance(thing, told.Verified):
        names.append(thing.outcome.todo_id)
    if isinstance(thing, told.PlanRevised | act.PublishPlan):
        changed = (getattr(edit, "todo_id", None) for edit in thing.edits)
        names += [qualified(thing.within, name) for name in changed if name]
    everybody = isinstance(thing, told.StopRequested | act.Halt | act.Finish)
    if everybody or (isinstance(thing, told.PlanSubmitted) and thing.problems):
        names.append(EVERYBODY)
    return tuple(filter(None, names))


# -- what came of it -----------------------------------------------------------------------------------


def _changes(before: State, after: State, only: str | None) -> Iterator[Sentence]:
    """Tell of the todos that were done, failed, skipped, halted, blocked or freed."""
    moved: dict[str, TodoRecord] = {}
    for name, record in after.records.items():
        earlier = before.records.get(name)
        if earlier is not record and (earlier is None or earlier.life is not record.life):
            moved[name] = record
    gone = (TodoLife.FAILED, TodoLife.HALTED)
    failed = tuple(name for name, each in moved.items() if each.life in gone and not each.is_branch)
    groups: dict[tuple[TodoLife, bool, tuple[str, ...]], list[str]] = {}
    for name, record in moved.items():
        causes: tuple[str, ...] = ()
        if record.life is TodoLife.SKIPPED:
            causes = (failed if only is None else ()) or blockers(after, name)
        if only in (None, name) and record.life in (*gone, TodoLife.DONE, TodoLife.SKIPPED):
            groups.setdefault((record.life, record.verified, causes), []).append(name)
    # What was skipped comes after what it was skipped for.
    for (life, verified, causes), names in sorted(groups.items(), key=lambda each: bool(each[0][2])):
        text = f"{named(names)} {_agreed('has' if life is TodoLife.FAILED else 'is', names)} {_LIVES[life]}"
        if life is TodoLife.SKIPPED:
            text += f", as {_in_the_way(causes)}"
        elif life is TodoLife.DONE and not verified:
            text += _UNPROVED
        yield sentence(text, *names, *causes)
    if before.reds is not after.reds:  # only what is red blocks
        earlier, now = before.blocked(), after.blocked()
        by_cause: dict[str, list[str]] = {}
        for name, cause in now.items():
            if name not in earlier and only in (None, name):
                by_cause.setdefault(cause, []).append(name)
        for cause, names in by_cause.items():
            yield sentence(f"{named(names)} {_agreed('is', names)} blocked by {cause}", *names, cause)
        freed = [name for name in earlier if name not in now and only in (None, name)]
        freed = [name for name in freed if not after.records[name].life.is_final]
        if freed:
            yield sentence(f"{named(freed)} {_agreed('is', freed)} no longer blocked", *freed)
    waits = PlanState.AWAITING_REVIEW
    if only is None and after.plan_state is waits and before.plan_state is not waits:
        yield sentence(_PLANS[waits], EVERYBODY)


def _agreed(verb: str, subjects: Sequence[str] | int) -> str:
    """Return the verb in the number of its subject."""
    count = subjects if isinstance(subjects, int) else len(subjects)
    return verb if count == 1 else {"is": "are", "was": "were", "has": "have", "stands": "stand"}[verb]


def _in_the_way(causes: Sequence[str]) -> str:
    verb = _agreed("stands", causes or ("",))
    return f"{named(causes) or 'something that failed'} {verb} in the way for good"


def blockers(run: State, todo_id: str) -> tuple[str, ...]:
    """Return the failed todos in the way of another, whatever lies between; of a parent, those inside."""
    found: dict[str, None] = {}
    waiting = [todo_id]
    for each in waiting:  # it grows meanwhile
        record = run.records.get(each)
        for name in () if record is None else (*_waits_for(run, record), *record.children):
            other = run.records.get(name)
            if other is None or name in waiting or name in found:
                continue
            red = other.life in (TodoLife.TEST_FAILED, TodoLife.FAILED, TodoLife.HALTED)
            if red and not other.children:
                found[name] = None
            else:
                waiting.append(name)
    return tuple(found)


def _waits_for(run: State, record: TodoRecord) -> list[str]:
    """Return the todos that one depends on and that are not done."""
    names = [qualified(record.within, name) for name in record.todo.dependencies]
    return [
        name for name in names if name not in run.records or run.records[name].life is not TodoLife.DONE
    ]


# -- where it stands -----------------------------------------------------------------------------------


def run_stands(run: State) -> Iterator[Sentence]:
    """Tell where the whole run stands: its state, its todos by theirs, and the questions that are open."""
    stopped = run.stopped if run.plan_state is PlanState.HALTED else None
    why = "" if stopped is None or not stopped.because else f", because {stopped.because.rstrip('.')}"
    yield sentence(f"{_PLANS[run.plan_state]}{why}", EVERYBODY, rule=stopped and stopped.rule)
    blocked = run.blocked()
    lives: Counter[TodoLife] = Counter()
    branches: Counter[TodoLife] = Counter()
    for name, record in run.records.items():
        life = TodoLife.BLOCKED if name in blocked else record.life
        (branches if record.is_branch else lives)[life] += 1
    if lives:
        parts = (
            f"{lives[life]} {_verb(run, life, lives[life])} {_LIVES[life]}"
            for life in _LIVES
            if lives[life]
        )
        yield sentence(f"Of {counted(lives.total(), 'todo')}, {named(parts)}")
    if branches:
        parts = (f"{branches[life]} {_LIVES[life]}" for life in _LIVES if branches[life])
        made = f"{counted(branches.total(), 'branch')} {_agreed('was', branches.total())} made"
        yield sentence(f"{made}: {named(parts)}")
    if not run.plan_state.is_final:
        yield from _open_questions(run, list(run.questions))


def todo_stands(run: State, todo_id: str) -> Iterator[Sentence]:
    """Tell where one todo stands and what it waits for. Raises ``KeyError`` for one that the run lacks."""
    record = run.records[todo_id]
    life = TodoLife.BLOCKED if todo_id in run.blocked() else record.life
    if run.plan_state.is_final and not life.is_final:
        yield sentence(f"{todo_id} was {_LIVES[life]} when the run ended", todo_id)
    else:
        yield sentence(f"{todo_id} {_stands(run, todo_id, record, life)}", todo_id)
    for name in record.branches:
        if branch := run.records.get(name):
            tried = _of(branch.attempts, branch.todo.max_debug_attempts)
            verb = "has" if branch.life is TodoLife.FAILED else "is"
            text = f"The branch {name} {verb} {_LIVES[branch.life]}; attempts that failed: {tried}"
            yield sentence(text, todo_id, name)
    if not run.plan_state.is_final:
        family = (todo_id, *record.branches)
        own = [name for name, each in run.questions.items() if each.todo_id in family or name in family]
        yield from _open_questions(run, own)


def _open_questions(run: State, names: list[str]) -> Iterator[Sentence]:
    names.sort(key=lambda name: (run.questions[name].asked, name))
    for name in names[:_MOST_QUESTIONS]:
        question = run.questions[name]
        whom = f" about {question.todo_id}" if question.todo_id else ""
        said = f"'{quoted(question.text)}'{_choices(question.options)}"
        yield sentence(f"A person has to answer {name}{whom}: {said}", name, question.todo_id or name)
    if len(names) > _MOST_QUESTIONS:
        yield sentence(f"{counted(len(names) - _MOST_QUESTIONS, 'more question')} are open")


def _stands(run: State, todo_id: str, record: TodoRecord, life: TodoLife) -> str:
    why = "" if record.failure is None else f" ({record.failure.category})"
    waits = named(_waits_for(run, record))
    match life:
        case TodoLife.PENDING:
            holders = named(sorted(name for name, held in run.held.items() if todo_id in held))
            if waits:
                reason = f": it waits for {waits}"
            elif run.started is None:
                reason = ", as the run was not started"
            elif record.question is not None:
                reason = ": a person has to agree"
            else:
                place = f"files that {holders} may write" if holders else "a free place"
                reason = f": it waits for {place}"
            return f"has not been begun{reason}"
        case TodoLife.BLOCKED:
            return f"is blocked by {named(blockers(run, todo_id)) or 'something that failed'}"
        case TodoLife.ACTIVE:
            children = [name for name in record.children if run.records[name].life is not TodoLife.DONE]
            if children:
                return f"waits for {counted(len(children), 'todo')} of its sub-plan: {named(children)}"
            if record.todo.has_sub_plan:
                return "waits for its sub-plan to be loaded"
            return f"is worked on (turn {record.turns}), and waits for the end of that work"
        case TodoLife.TESTING:
            asked = record.question is not None
            return f"{'could not be judged' if asked else 'is being verified'}, and waits for " + (
                "a person" if asked else "the verdict"
            )
        case TodoLife.TEST_FAILED:
            branches = (run.records.get(name) for name in record.branches)
            alive = named(each.id for each in branches if each is not None and not each.life.is_final)
            asked = record.question or any(each.todo_id == todo_id for each in run.questions.values())
            repair = f"its repair in {alive}" if alive else ""
            return f"is red{why}, and waits for " + (
                repair or ("a person" if asked else waits or "a free place for its repair")
            )
        case TodoLife.DONE:
            return f"is done{': its criteria hold' if record.verified else _UNPROVED}"
        case TodoLife.SKIPPED:
            return f"is skipped, as {_in_the_way(blockers(run, todo_id))}"
        case TodoLife.HALTED:
            stopped = run.stopped
            if stopped is not None and todo_id in getattr(stopped, "todo_ids", ()):
                return "is halted: it has brought everything to a stop"
            return "was worked on when the run ended"
        case TodoLife.FAILED:
            return f"has failed for good{why}"


def _verb(run: State, life: TodoLife, count: int) -> str:
    """Return the verb of so many todos; in a run that is over, what has not come to its end is past."""
    if life is TodoLife.FAILED:
        return _agreed("has", count)
    return _agreed("was" if run.plan_state.is_final and not life.is_final else "is", count)
