"""``planner next``: what to do now, for people, agents and programs.

It opens the plan's run (:class:`planner.store.plan_run.PlanRun`), whose engine decides which actions are
outstanding, and renders these actions. The screen uses at most eight lines for a todo, and always shows a
command to continue with. The exit status tells a program whether somebody can continue.
"""

from __future__ import annotations

import json
import math
import shlex
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from planner.brief.page import edit_in_short
from planner.cli.app import command
from planner.cli.arguments import (
    JsonOption,
    LogOption,
    OutcomesOption,
    TodosArgument,
    choose_plan,
    nearest,
    option,
)
from planner.cli.exits import Status, UsageMistake, complain, program
from planner.cli.screen import Screen, print_json, write
from planner.engine.intake import time_of
from planner.engine.progress import repair_turn
from planner.engine.requests import brief_of, instructions_for
from planner.engine.state import revised_plans
from planner.model.actions import AskHuman, Implement, LoadSubPlan, QuestionKind, Verify
from planner.model.base import qualified
from planner.model.taxonomy import Category, Family, Role
from planner.model.verdicts import PlanState, TodoLife, Verdict
from planner.planfile.loader import shown_path
from planner.policy.dependencies import waves
from planner.policy.outcomes import failures_of
from planner.store.plan_run import PlanRun
from planner.store.run_log import action_text, turn_is_alive
from planner.text.display import counted, listed
from planner.text.markdown import code
from planner.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from planner.engine import State, TodoRecord
    from planner.model.actions import Action
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Todo

EPILOG = """\
\b
Exit status
   0  there is work for a role, or the plan is completed
   1  all todos are done, but the run was not accepted
   2  wrong usage
   4  the plan or its outcomes cannot be read, or do not fit each other
  10  repair the environment, then verify again
  11  a person must approve, answer or decide first
  12  halted because the budget is used up
  13  halted by a violation of the sandbox, of hygiene or of the allowed files

The results of each verification are kept in .planverify/logs below the plan's root, so that attempts and
limits are counted across runs. Outcomes named with --outcomes are used alone.
"""

MOST_TODOS = 20
"""The most todos of each kind that are shown; ``--json`` has all of them."""

_LONGEST_QUESTION = 3
"""The most lines of a question, about."""

_LONG = frozenset(("brief", "bounds", "branch", "edits", "failure", "digest"))
"""Fields of actions that ``--json`` leaves out unless ``--full`` asks for them."""

_BLAME_NOBODY = frozenset(("environment-blames-nobody", "harness-blames-nobody"))
"""Rules that request another verification because the environment or the verifier failed, not the todo."""


@command(EPILOG)
def next_(
    plan: TodosArgument = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
    full: Annotated[
        bool, option("--full", "With --json: print all fields of the actions, with instructions.")
    ] = False,
    brief: Annotated[
        str | None, option("--brief TODO", "Print only the instructions for this todo or branch.")
    ] = None,
    output: Annotated[
        Path | None, option("--output, -o FILE", "Write the revised plan to this file.")
    ] = None,
    in_place: Annotated[
        bool, option("--in-place", "Replace the plan by the revised one; planner undo restores it.")
    ] = False,
    log: LogOption = None,
) -> int:
    """Show what to do now: repairs with their roles, ready todos, open questions, or the command to run."""
    if output is not None and in_place:
        raise UsageMistake("--output and --in-place exclude each other; name one of them")
    choice = choose_plan(plan)
    run = PlanRun.open(choice.path, outcomes, log, keep=True)
    is_shown = _selection(run.state, [known_todo(run, each) for each in choice.todo_ids or ()])
    if brief is not None:
        asked = run.state.questions.get(brief)
        if asked is not None and asked.branch is not None:  # it becomes a todo only by the approval
            text = brief_of(run.state, brief)
        else:
            text = _brief(run, _worker(run.state, known_todo(run, brief)))
        write(f"{text}\n")
        return Status.OK
    actions = [each for each in run.outstanding() if any(map(is_shown, _todos_of(each)))]
    written = [] if output is None and not in_place else _write_revision(run, output)
    if as_json:
        _print_json(run, actions, full=full)
        # Standard output has the JSON document alone.
        for line in written:
            complain(line)
    else:
        screen = _NextScreen(run, choice.path)
        screen.add_actions(actions, is_shown)
        for line in written:
            screen.paragraph(line)
        screen.show()
    return _status(run, actions)


def _brief(run: PlanRun, todo_id: str) -> str:
    """Return the brief of a todo or branch, with the message of a verification before any work on it."""
    record, outcome = run.state.records[todo_id], outcome_of(run, todo_id)
    failure = None if outcome is None else outcome.failure_evidence
    if outcome is not None and failure is not None and record.waited:
        tried = record._replace(outcome=outcome, context=run.context(outcome))
        return instructions_for(run.state, record, tried, record.todo).rstrip("\n")
    brief = brief_of(run.state, todo_id)
    if outcome is None or failure is None or record.outcome:
        return brief
    facts = failure_facts(run, record, outcome)
    found = "found no test" if failure.category is Category.TEST_NOT_FOUND else "failed"
    says = code(failure.stack_trace_head or failure.category, limit=300)  # may be the words of the tests
    where = f", at {code(facts['where'])}" if "where" in facts else ""
    return f"{brief}\n\nThe last run {found}: {says}{where}. {facts.get('edit', '')}".rstrip()


def _selection(state: State, named: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a todo or branch is to be shown; all are if none is ``named``.

    These are the named todos, the todos below them, their branches, and the steps inserted before them.
    """
    records = [state.records[name] for name in named]
    later = [*records, *filter(None, map(state.last_branch, records))]
    steps = (each.id for record in later for each in state.dependencies(record) if each.todo.is_temporary)
    wanted = {*named, *steps}

    def is_shown(name: str) -> bool:
        record = state.records.get(name)
        names = (name, (record and record.parent_id) or name)
        below = tuple(f"{each}/" for each in named)
        return not named or any(each in wanted or each.startswith(below) for each in names)

    return is_shown


def _todos_of(action: Action) -> tuple[str, ...]:
    """Return the todos that an action is about; one without a name is about the plan."""
    return getattr(action, "todo_ids", ()) or (getattr(action, "todo_id", None) or "",)


def _worker(state: State, todo_id: str) -> str:
    """Return the id of the open branch of a todo, else the id of the todo itself."""
    branches = state.records[todo_id].branches
    return branches[-1] if branches and not state.records[branches[-1]].life.is_final else todo_id


def _write_revision(run: PlanRun, output: Path | None) -> list[str]:
    """Write the plan as revised by the run, over the old one or to ``output``; return lines to print."""
    from planner.planfile.versions import write_beside, write_in_place

    policies = {name: sub.loaded.plan.metadata for name, sub in run.tree.sub_plans().items()}
    plans = revised_plans(run.state, policies)
    made = write_in_place(run.tree, plans) if output is None else write_beside(run.tree, plans, output)
    if not made:
        return ["nothing was written: the plan needs no change"]
    lines = [f"wrote {shown_path(each.path)}" for each in made]
    lines += [
        f"{shown_path(each.path)} lost its layout and comments, which could not be kept"
        for each in made
        if not each.faithful
    ]
    if output is None:
        plan = shlex.quote(shown_path(run.tree.loaded.path))
        lines.append(f"{program()} undo {plan} restores the previous version")
    return lines


# -- the run -------------------------------------------------------------------------------------------


def known_todo(run: PlanRun, name: str) -> str:
    """Return the qualified id of a todo of a run; its last part is enough where it is unique.

    Raises ``UsageMistake`` with similar names if there is no such todo.
    """
    state = run.state
    later = [qualified(parent, todo.id) for parent, plan in run.later_plans.items() for todo in plan.items]
    for known in (state.records, later):
        found = [name] if name in known else [each for each in known if each.endswith(f"/{name}")]
        if len(found) == 1 and known is later:
            raise UsageMistake(f"{found[0]} has not begun; {program()} next shows what comes first")
        if len(found) == 1:
            return found[0]
    if name in state.questions:  # a proposal becomes a todo only by an approval
        raise UsageMistake(f"{name} waits for a person; {program()} next shows the question")
    if name.partition("/")[0] in run.left_out:
        raise UsageMistake(
            f"the run of the plan leaves {name} out; verify it first: {run.found.verify}::{name}"
        )
    near = nearest(name, sorted({*state.records, *later}), "its todos are")
    raise UsageMistake(f"there is no todo '{name}' in the plan; {near}")


def words_of(run: PlanRun, plan: Path) -> str:
    """Return the arguments that name this run, quoted for a shell: ``--log`` if one was given, the plan."""
    words = [str(plan)] if run.named_log is None else ["--log", str(run.named_log), str(plan)]
    return shlex.join(words)


class Readiness(NamedTuple):
    """State of the outcomes beside the files, and the command that makes them up to date."""

    command: str | None = None
    """The command to run first; ``None`` where the outcomes are up to date, or a run is under way."""
    remarks: tuple[str, ...] = ()
    """The reasons for the command, and further remarks on the run."""
    unaccepted: str | None = None
    """Why a run in which no criterion failed was not accepted."""


def readiness(run: PlanRun) -> Readiness:
    """Return the command to run before any action, and why: there are no outcomes, or outdated ones."""
    reason, command = _obstacle(run) or (None, None)
    unaccepted = None if run.found.document is None else run.found.document.run.unexplained
    refusal = f"the run was not accepted: {unaccepted}" if unaccepted else None
    remarks = (*filter(None, (reason, refusal)), *run.remarks)
    return Readiness(command if run.is_verifiable else None, remarks, unaccepted)


def _obstacle(run: PlanRun) -> tuple[str, str | None] | None:
    """Return why the outcomes say less than they might, and the command against it, if there is one."""
    found = run.found
    if run.log is not None and (is_alive := turn_is_alive(run.log)) is not None:
        ended = "a turn of planverify run was interrupted: run it again with --resume, or planverify undo"
        return ("planverify run is in a turn" if is_alive else ended), None
    if found.unfinished is not None:
        checks = counted(len(found.unfinished.checks), "criterion")
        if found.unfinished.state == "running":
            return f"the newest run is still running after {checks}", None
        resume = f"{found.verify} --planverify-resume"
        return f"the newest run was {found.unfinished.state} after {checks}", resume
    if found.document is None and not run.is_driven:
        return "the plan was not verified yet", found.verify
    if found.plan_change is not None and run.log is not None and not run.state.reds:
        return "the plan has changed since it was verified", found.verify
    if found.changed_todos:
        todos = listed(found.changed_todos, 5)
        return f"added or changed in the plan since the run: {todos}", found.verify
    if answered := _answered_since(run):
        return f"answered since the run: {listed(answered, 5)}", f"{found.verify}::{','.join(answered)}"
    if found.files.paths:
        changed, old = listed(found.files.paths, 3), listed(found.files.by_todo, 5)
        verdicts = f"; the verdicts of {old} are out of date" if old else ""
        return f"{changed} changed since the run{verdicts}", found.verify
    return None


def _answered_since(run: PlanRun) -> list[str]:
    """Return the todos with an answer that is newer than the outcomes and not awaited by the engine."""
    document = run.found.document
    if document is None or run.is_driven:
        return []
    # Answers are kept to the second: one of the second in which the run started does not count as newer.
    # Without a start time, none does.
    started = time_of(document.run.started_at, datetime.max.replace(tzinfo=UTC)).replace(microsecond=0)
    records, found = run.state.records, list[str]()
    for each in run.answers():
        record = records.get(each.todo_id)
        if (
            each.plan == run.state.plan_id
            and record is not None
            and not (record.life is TodoLife.TESTING and record.question is None)
            and time_of(each.at or "", started) > started
        ):
            found.append(each.todo_id)
    return list(dict.fromkeys(found))


# -- JSON and the exit status --------------------------------------------------------------------------


def _print_json(run: PlanRun, actions: list[Action], *, full: bool) -> None:
    """Print the state and the actions; without ``full``, a short form of each action and its failure."""

    def plain(action: Action) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(action_text(action))
        if full:
            return fields
        short = {key: value for key, value in fields.items() if key not in _LONG and value}
        record = run.state.records.get(fields.get("todo_id", ""))
        facts = {} if record is None else failure_facts(run, record)
        return short | {"failure": facts} if facts else short

    state, document, ready = run.state, run.found.document, readiness(run)
    fields = {
        "plan": state.plan_id,
        "state": state.plan_state.value,
        "run_id": None if document is None else document.run.run_id or None,
        "do": ready.command,
        "remarks": list(ready.remarks),
        "actions": [plain(action) for action in actions],
        "blocked": state.blocked(),
        "stopped": None if state.stopped is None else plain(state.stopped),
    }
    print_json({key: value for key, value in fields.items() if value not in (None, [], {})})


def _primary(run: PlanRun, record: TodoRecord) -> TodoRecord:
    """Return the todo that a branch repairs; a record that is no branch is returned itself."""
    return run.state.records[record.parent_id] if record.parent_id else record


def failure_facts(run: PlanRun, record: TodoRecord, outcome: Outcome | None = None) -> dict[str, str]:
    """Return what a person or a program needs to know of a todo's failure at first; no empty facts.

    For a branch without a failure of its own, it is that of the todo which it repairs. ``outcome`` is one
    that the engine has not applied.
    """
    primary = _primary(run, record)
    failure = record.failure or primary.failure if outcome is None else outcome.failure_evidence
    context = primary.context if outcome is None else run.context(outcome)
    outcome = outcome or primary.outcome
    if failure is None:
        return {}
    # An outcome of another program may list its top failing tests alone.
    tests = failure.tests or failure.top_failing_tests
    failed = f"{tests[0]}{f' (+{len(tests) - 1})' if tests[1:] else ''}" if tests else failure.check_id
    checks = () if tests or outcome is None else outcome.checks
    if found := next((each.cmd or each.title for each in checks if each.id == failure.check_id), None):
        failed = f"{failure.check_id}: {found}"
    plan = run.state.parts[primary.within].plan
    edit = "" if outcome is None else edit_in_short(plan, primary.todo, outcome, context)
    facts = {
        "category": failure.category,
        "owner": failure.owner,
        "failed": failed,
        "says": failure.stack_trace_head,
        "where": _where(failure),
        "edit": edit.replace("`", ""),
    }
    # Those in the log are redacted already, those in a file of outcomes are not.
    return {key: redact(str(value)) for key, value in facts.items() if value}


def outcome_of(run: PlanRun, todo_id: str) -> Outcome | None:
    """Return the outcome of a todo in the last verification, applied by the engine or not."""
    outcomes = () if run.found.document is None else run.found.document.outcomes
    return next((each for each in outcomes if each.todo_id == todo_id), None)


def _status(run: PlanRun, actions: list[Action]) -> Status:
    """Return the exit status: whether somebody can continue, and what blocks the plan if not."""
    state = run.state
    if state.plan_state is PlanState.COMPLETED:
        return Status.FOUND if readiness(run).unaccepted else Status.OK
    if state.plan_state is PlanState.HALTED:
        category = getattr(state.stopped, "category", None)
        family = None if category is None else category.facts.family
        halted_by: dict[Family | None, Status] = {
            Family.SANDBOX: Status.SECURITY_HALT,
            Family.BUDGET: Status.BUDGET_HALT,
        }
        return halted_by.get(family, Status.HUMAN_NEEDED)
    # For a program, a plan with errors is the same as one that cannot be read.
    if state.plan_state is PlanState.REJECTED:
        return Status.UNREADABLE
    asked = [action for action in actions if isinstance(action, AskHuman)]
    # A turn of a person is no work for a program, so it does not count as work that can go on.
    rest = [
        each
        for each in actions
        if not isinstance(each, AskHuman) and not (isinstance(each, Implement) and each.role is Role.HUMAN)
    ]
    # A verification after a failed environment is no work: the environment has to be repaired first.
    later = [each for each in rest if each.rule in _BLAME_NOBODY]
    if len(later) < len(rest):
        return Status.OK
    if later or (asked and all(each.kind is QuestionKind.MEND_ENVIRONMENT for each in asked)):
        return Status.ENVIRONMENT
    return Status.HUMAN_NEEDED if actions else Status.OK


# -- the screen ----------------------------------------------------------------------------------------


def show_remarks(screen: Screen, run: PlanRun) -> None:
    """Show the remarks on the state of the files, and the command to run first, above the rest."""
    ready = readiness(run)
    for remark in ready.remarks:
        screen.remark(remark)
    if ready.command is not None:
        screen.line(f"  {screen.style(ready.command, 'command')}")


class _NextScreen(Screen):
    """The output of ``planner next`` for a run."""

    def __init__(self, run: PlanRun, plan: Path) -> None:
        super().__init__()
        self._run = run
        self._records = run.state.records
        self._plan = plan
        self._words = words_of(run, plan)

    def add_actions(self, actions: Sequence[Action], is_shown: Callable[[str], bool]) -> None:
        """Add the whole output, restricted to the todos for which ``is_shown`` is true.

        The order is: the head, remarks, a stop, repairs, questions, verifications, todos that can begin,
        sub-plans to write, and what waits for something else.
        """
        self._head()
        show_remarks(self, self._run)
        self._stop()
        works = [each for each in actions if isinstance(each, Implement)]
        # An action on a branch or on a verified todo is a repair; any other is the first work on a todo.
        repairs = [each for each in works if (red := self._records[each.todo_id]).is_branch or red.outcome]
        self._most(repairs, lambda each: self._red(self._records[each.todo_id], each))
        behind = [each for each in self._records.values() if self._steps_before(each)]
        self._most([each for each in behind if is_shown(each.id)], self._red)
        shown = {_primary(self._run, self._records[each.todo_id]).id for each in repairs[:MOST_TODOS]}
        questions = [each for each in actions if isinstance(each, AskHuman)]
        self._most(questions, lambda each: self._question(each, shown_above=each.todo_id in shown))
        self._verifications([each for each in actions if isinstance(each, Verify)])
        # Repair steps first, then as the engine started them: by priority, memory and place in the plan.
        order = {name: place for place, name in enumerate(self._run.state.live)}
        ready = [each for each in works if each not in repairs]
        ready.sort(key=lambda each: order.get(each.todo_id, len(order)))
        ready.sort(key=lambda each: not self._records[each.todo_id].todo.is_temporary)
        parallel = ", in parallel" if len(ready) > 1 else ""
        self._section(f"Ready ({len(ready)}){parallel}", ready, self._begin)
        self._not_run(ready)
        if ready:
            self._brief(ready[0].todo_id)
        for action in actions:
            if isinstance(action, LoadSubPlan):
                where = action.sub_plan or action.sub_project_id
                text = f"{action.todo_id}: write or correct its sub-plan, {where}"
                self.paragraph(text, first="plan   ", indent=7)
        clip = partial(self.clipped, "  ")
        waiting = [f"{name}: {why}" for name, why in self._waiting() if is_shown(name)]
        self._section(f"Waiting ({len(waiting)})", waiting, clip)
        self._section("Later", [*_later_waves(self._run.state, is_shown)], clip)

    def _section(self, title: str, items: Sequence[Any], show: Callable[[Any], None]) -> None:
        """Add a blank line, a title, and the items, each by ``show``; nothing if there are none."""
        if items:
            self.line()
            self.line(self.style(title, "strong"))
            self._most(items, show)

    def _most(self, items: Sequence[Any], show: Callable[[Any], None]) -> None:
        """Show the first ``MOST_TODOS`` items, and how many more there are."""
        for item in items[:MOST_TODOS]:
            show(item)
        if len(items) > MOST_TODOS:
            self.line()
            self.line(f"and {len(items) - MOST_TODOS} more; --json shows all")

    def _head(self) -> None:
        """Add the plan's name and state, and how many todos are in which state."""
        state = self._run.state
        tree = self._run.status()
        states = tree.counts()
        counts = [f"{tree.done} of {counted(tree.total, 'todo')} done"]
        # A parent is waited for by its todos.
        records = (each for each in state.todos.values() if not (each.is_branch or each.children))
        unverified = sum(record.life is TodoLife.TESTING and record.waited > 0 for record in records)
        for count, word in (
            (states.get("test_failed", 0), "failed"),
            (states.get("failed", 0), "given up"),
            (states.get("skipped", 0), "skipped"),
            (states.get("blocked", 0), "blocked"),
            (unverified, "could not be verified"),
        ):
            counts += [f"{count} {word}"] if count else []
        is_refused = state.plan_state is PlanState.COMPLETED and readiness(self._run).unaccepted
        styled = self.plan_state(state.plan_state.value, "not accepted" if is_refused else "")
        name = self.style(self.one_line(state.plan_id), "strong")
        self.line(f"{name}  {styled}: {', '.join(counts)}")

    def _stop(self) -> None:
        """Add why the run stopped, and the command to run once the cause is removed."""
        state = self._run.state
        stopped = state.stopped
        if state.plan_state is PlanState.COMPLETED:
            if not readiness(self._run).remarks:
                self.line("nothing is left to do")
            return
        if stopped is None:
            return
        self.paragraph(
            f"{stopped.because} [{stopped.rule}]", first=f"{self.style('stop', 'bad')}   ", indent=7
        )
        for problem in getattr(stopped, "problems", ()):
            self.paragraph(problem, indent=7)
        if state.plan_state is PlanState.HALTED:
            self.paragraph("remove the cause, then verify again:", indent=7)
            self.line(f"       {self.style(self._run.found.verify, 'command')}")
            # A halted run has no actions, so its failures are listed, one of each root cause, unless the
            # last verification shows the todo without the recorded failure.
            reds: list[TodoRecord] = []
            for each in self._records.values():
                if each.failure and not each.parent_id and not each.behind:
                    found, signature = outcome_of(self._run, each.id), each.failure.signature
                    if found is None or any(known.signature == signature for known in failures_of(found)):
                        reds.append(each)
            self._most(reds, self._red)

    def _title(self, mark: str, name: str, about: str, style: str) -> None:
        """Add a blank line and the heading of a todo."""
        self.line()
        about = self.style(about and f"  {about}", style)
        self.line(f"{self.style(mark, style)} {self.style(self.one_line(name), 'strong')}{about}")

    def _red(self, record: TodoRecord, action: Implement | None = None) -> None:
        """Add a failed todo: the failure, who repairs it, and the commands to read and to run.

        ``action`` is missing if the run stopped before a repair was requested, or if a step comes before.
        """
        primary = _primary(self._run, record)
        failure = record.failure or primary.failure
        about = ""
        if failure is not None:
            sure = "" if failure.confidence is None else f" {failure.confidence:.0%}"
            fault = f"fault of the {failure.blamed}" if failure.blamed else "owner unknown"
            turn = "" if action is None else f"; for the {action.role}"
            about = f"{failure.category}{sure}, {fault}{turn}"
        self._title(self.glyphs.failed, primary.id, about, "bad")
        self._failure(failure_facts(self._run, record))
        # Todos with the same root cause wait for one branch, and may be done when it passes.
        followers = [each.id for each in self._records.values() if each.behind == primary.id]
        more = f"; also {listed(followers, 5)}, with the same cause" if followers else ""
        if steps := self._steps_before(record):
            self.clipped("  first  ", f"{steps}, before {record.branches[-1]}{more}")
            return
        if action is None:
            self._brief(record.id)
            return
        what = repair_turn(record)
        if record.is_branch:
            allowed = record.todo.max_debug_attempts
            what = f"{record.todo.id}, attempt {action.attempt}{f' of {allowed}' if allowed else ''}"
        self.clipped("  repair ", f"{what}, by the {action.role} [{action.rule}]{more}")
        self._brief(record.id)
        # The todo itself is verified, not the branch: it is done only when its own criteria pass.
        self.command("then", f"pytest --planverify {shlex.quote(f'{self._plan}::{primary.id}')}")

    def _steps_before(self, record: TodoRecord) -> str:
        """Return the steps that come before the repair of a failed todo; empty if there are none."""
        branch = self._run.state.last_branch(record) if record.life is TodoLife.TEST_FAILED else None
        waits = branch is not None and self._run.state.waits(branch)
        return listed(branch.todo.dependencies, 3) if branch is not None and waits else ""

    def _failure(self, facts: Mapping[str, str]) -> None:
        """Add those facts of a failure that are not in the title, a line each."""
        for label in ("failed", "says", "where", "edit"):
            if label in facts:
                (self.whole if label == "edit" else self.clipped)(f"  {label:<6} ", facts[label])

    def _brief(self, todo_id: str) -> None:
        self.command("brief", f"{program()} next {self._words} --brief {shlex.quote(todo_id)}")

    def _question(self, question: AskHuman, *, shown_above: bool) -> None:
        """Add a question: the reason, the failure if it is not shown above, and the command to answer."""
        record = self._records.get(question.todo_id)
        self._title(self.glyphs.testing, question.todo_id or "the plan", "waits for a person", "warn")
        room = _LONGEST_QUESTION * (self.width - 9)
        text = self.one_line(question.question)
        if len(text) > room:  # planner status TODO shows all of it
            text = f"{text[: room - 1]}…"
        if question.branch is not None:
            name = shlex.quote(question.question_id)
            text += f" Read it: {program()} next {self._words} --brief {name}"
        self.paragraph(text, first="  ask    ", indent=9)
        self.clipped("  why    ", f"{question.because} [{question.rule}]")
        if record is not None and question.kind is not QuestionKind.ANSWER and not shown_above:
            self._failure(failure_facts(self._run, record))
        target = shlex.quote(question.todo_id or question.question_id)
        others = ", ".join(question.options[1:])
        answers = [f"answer {self._words} {target} {question.options[0]} # or {others}"]
        if question.kind is QuestionKind.ANSWER:
            checks = self._run.asked_questions(question.todo_id) if record is not None else {}
            which = [f" --check {shlex.quote(each)}" for each in checks] if len(checks) > 1 else [""]
            answers = [f"answer {self._words} {target} yes{each} # or no, or a reason" for each in which]
        elif question.kind.is_approval:
            others = ", ".join(each for each in question.options if each in ("reject", "modify"))
            answers = [f"approve {self._words} {shlex.quote(question.question_id)} # or {others}"]
        for each in answers:
            self.command("answer", f"{program()} {each}")

    def _verifications(self, actions: Sequence[Verify]) -> None:
        """Add the todos to verify, together if for the same reason, and one command for all of them.

        The command is left out where the plan was never verified: the remarks above show it already.
        """
        alike: dict[tuple[str, str], list[str]] = {}
        for action in actions:
            record = self._records[action.todo_ids[0]]
            why, edit = action.because, ""
            if record.waited:
                # If the last attempt proved nothing, its message tells more than the rule.
                why = (record.failure and record.failure.stack_trace_head) or why
                outcome = outcome_of(self._run, record.id)
                failure = None if outcome is None else outcome.failure_evidence
                if failure is not None and failure.category.facts.family is Family.ENVIRONMENT:
                    edit = failure_facts(self._run, record, outcome).get("edit", "")
            alike.setdefault((why, edit), []).append(record.id)
        if not alike:
            return

        def show(group: tuple[tuple[str, str], list[str]]) -> None:
            (why, edit), names = group
            self.clipped("verify ", f"{listed(names, 5)}: {why}")
            if edit:
                self._failure({"edit": edit})

        self.line()
        self._most([*alike.items()], show)
        if self._run.found.document is not None or self._run.is_driven:
            self.command("run", self._verify([each.todo_ids[0] for each in actions]))

    def _begin(self, action: Implement) -> None:
        """Add a todo that can begin, with the files that it may write."""
        todo = self._records[action.todo_id].todo
        title = f" {todo.title}" if todo.title and todo.title != todo.id else ""
        self.clipped("  ", f"{action.todo_id}{title}: for the {action.role}")
        if action.bounds.allowed_files is not None:
            self.clipped("    may write ", listed(action.bounds.allowed_files, 4))
        found = outcome_of(self._run, action.todo_id)
        if found is not None and (failure := found.failure_evidence) is not None:
            said = failure.stack_trace_head or failure.category
            # Its own work may be as it was: it fails because of another todo.
            reds = (each for each in self._records.values() if each.failure and not each.parent_id)
            if shared := next((each.id for each in reds if each.signature == failure.signature), None):
                said = f"it fails as {shared} does, which is repaired first: {said}"
            self.clipped("    not begun: ", said)
            if failure.category is Category.TEST_NOT_FOUND:
                facts = failure_facts(self._run, self._records[action.todo_id], found)
                self.whole("    edit ", facts["edit"])

    def _not_run(self, actions: Sequence[Implement]) -> None:
        """Add which todos did not run, by reason: they may pass, so that they only have to be verified."""
        alike: dict[str, list[str]] = {}
        for name in (each.todo_id for each in actions):
            found = outcome_of(self._run, name)
            checks = () if found is None else found.checks
            if why := next((each.reason for each in checks if each.verdict is Verdict.NOT_RUN), None):
                alike.setdefault(why, []).append(name)
        for why, names in alike.items():
            self.clipped("  not run ", f"{listed(names, 5)}: {why}")
        if alike:
            self.command("verify", self._verify([*chain(*alike.values())]))

    def _verify(self, names: Sequence[str]) -> str:
        """Return the command that verifies some todos; the whole plan if they are many."""
        verify = self._run.found.verify
        return verify if len(names) > MOST_TODOS else f"{verify}::{','.join(names)}"

    def _waiting(self) -> Iterator[tuple[str, str]]:
        """Yield the todos that wait for a failed todo, for files, or for another branch, each with why."""
        state = self._run.state
        for name, red in state.blocked().items():
            yield name, f"blocked by {red}"
        steps = ((each.next_step.behind, each.id) for each in self._records.values() if each.next_step)
        for holder, name in sorted(steps):
            if holder in state.live:
                yield name, f"after {holder}, which may write the same files"
        for record in self._records.values():
            step = record.next_step
            if step is not None and step.kind == "branch" and record.question is None:
                yield record.id, "its branch waits for another branch to end (max_concurrent_branches)"


def _later_waves(state: State, is_shown: Callable[[str], bool]) -> Iterator[str]:
    """Yield the todos that wait for others, by the waves in which they can be worked on together.

    The todos of the first wave are those that can begin, or that are under way.
    """
    open_ = [each for each in state.todos.values() if not each.is_branch and not each.life.is_final]
    # What waits for a person is shown with its question.
    waiting = (each for each in open_ if each.life is TodoLife.PENDING and each.question is None)
    later = {each.id for each in waiting if each.next_step is None}
    # Nothing begins in a halted plan, and the todos of a rejected one may depend on each other in a circle.
    if not later or state.plan_state.is_final:
        return
    todos: list[Todo] = []
    for each in open_:
        before = (qualified(each.within, name) for name in each.todo.dependencies)
        changes = {
            "id": each.id,
            # A parent is done when the todos of its sub-plan are, so it comes after them.
            "dependencies": (*before, *each.children),
            "allowed_files": each.files,
            # What is under way has its files already.
            "priority": each.todo.priority if each.life is TodoLife.PENDING else -math.inf,
        }
        todos.append(each.todo.model_copy(update=changes))
    # A parent under way is no work of its own.
    begun = {each.id for each in open_ if each.children} - later
    for number, wave in enumerate((each for each in waves(todos) if not begun.issuperset(each)), 1):
        if names := [name for name in wave if name in later and is_shown(name)]:
            yield f"wave {number}: {listed(names)}"


def _where(failure: Failure) -> str:
    """Return the place of the fault, and the likeliest change that can have caused it.

    A change of the function at fault replaces its place, as does one of the line at fault.
    """
    place = failure.location
    function = None if place is None or place.function == "<module>" else place.function
    shown = "" if place is None else f"{place.shown} in {function}" if function else place.shown
    for hunk in failure.suspected_changes:
        change = f"changed {hunk.path}:{hunk.line} (+{hunk.added} -{hunk.removed})"
        change += f" in {hunk.function}" if hunk.function else ""
        if place is None:
            return change
        lines = range(hunk.line, hunk.line + max(hunk.added, 1))
        # Without a function, as in a finding of a tool, another change of the file is elsewhere.
        is_there = hunk.function == function if function else place.line is None or place.line in lines
        return change if is_there and hunk.path == place.path else f"{shown}; {change}"
    return shown
