"""The story of a run: every event and action has its sentence, what comes of them is told, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest
from engine_simulating import Simulation
from pydantic import TypeAdapter
from run_stories import START, Kept, Story, texts, todo

from planner.cli import words
from planner.cli.figures import verdict_of
from planner.cli.story import (
    _LIVES,
    _PLANS,
    EVERYBODY,
    SENTENCES,
    blockers,
    named,
    quoted,
    run_stands,
    sentence,
    tell,
    tell_one,
    todo_stands,
)
from planner.engine import start
from planner.model.actions import Action, Finish, Notify, Verify
from planner.model.edits import Edit, NarrowFiles
from planner.model.events import (
    BranchChanges,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    Event,
    PlanRevised,
    PlanSubmitted,
    RunResumed,
    StopRequested,
    Verified,
    WorkStarted,
)
from planner.model.life import PlanState, TodoLife
from planner.model.outcome import Check, Failure, Outcome
from planner.model.plan import Plan
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import CheckKind, TodoState, Verdict

if TYPE_CHECKING:
    from planner.store.run_log import Step

TOLD_LIVES = frozenset((TodoLife.DONE, TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED))


_STEP = {"id": "s1", "title": "Step"}
_BRANCH = {"id": "t1_branch_01", "title": "Repair", "parent_id": "t1"}


def one(thing: Any, state: Any) -> Any:
    (told,) = tell_one(thing, None, state)
    return told


def kinds(union: Any) -> set[Any]:
    """The types of a union with a discriminator."""
    return set(get_args(get_args(union)[0]))


def test_every_event_every_action_and_every_life_has_its_row() -> None:
    assert set(SENTENCES) == kinds(Event) | kinds(Action)
    assert set(_LIVES) == set(TodoLife)
    assert set(_PLANS) == set(PlanState)


def test_of_every_run_everything_is_told_that_happened_and_in_clean_lines() -> None:
    steps = 0
    for seed in range(100):
        kept = Kept()
        Simulation.begin(seed, kept).run()
        for taken in kept.steps:
            steps += 1
            try:
                _is_told_in_full(taken)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {taken.event.event}: {error}") from error
        _stands(kept.steps[-1])
    assert steps > 1_000


def _is_told_in_full(taken: Step) -> None:
    told = tell(*taken)
    for each in told:
        assert each.text.isprintable(), each.text
        assert each.text.endswith((".", "?", "!", "…", "'")), each.text
    assert [each.rule for each in told if each.rule] == [action.rule for action in taken.actions]
    event = taken.event
    if isinstance(event, Verified):  # it is told as what the engine makes of it
        life = taken.after.records[event.outcome.todo_id].life
        assert (verdict_of(event.outcome)[0] is Verdict.PASSED) is (life is TodoLife.DONE)
    if taken.before is None:
        return
    about = {name for each in told for name in each.about}
    earlier = taken.before.todos
    for name, record in taken.after.todos.items():
        was = earlier[name].life if name in earlier else None
        if was is not record.life and (record.life in TOLD_LIVES or record.life is TodoLife.BLOCKED):
            assert name in about, f"{name} went from {was} to {record.life}"
            narrowed = " ".join(each.text for each in tell(*taken, name))
            assert name in narrowed, f"{name}: {narrowed!r}"
    for name in list(taken.after.records)[:3]:
        family = {name, EVERYBODY, *taken.after.records[name].branches}
        for each in tell(*taken, name):
            assert not family.isdisjoint(each.about), each.text


def _stands(last: Step) -> None:
    assert list(run_stands(last.after))
    for name in last.after.records:
        assert next(iter(todo_stands(last.after, name))).text.startswith(name)


def test_a_failure_is_told_with_its_diagnosis_and_what_is_done_about_it() -> None:
    story = Story(todo("t1", max_retries=2), todo("t2", dependencies=("t1",)))
    story.works(tokens=1200, cycles=2, touched_files=("a.py", "b.py"), new_files=("b.py",), message="done")
    assert story.told()[0] == (
        "The work on t1 is over (turn 1): it is said to be done, after 1200 tokens, 2 cycles, "
        "2 touched files and 1 new file: 'done'."
    )

    story.fails(message="assert 32.1 == 28.5")

    assert story.told() == [
        "t1 was verified: test_it failed (TEST_REGRESSION, 0.9 by injected): 'assert 32.1 == 28.5'.",
        "t2 is blocked by t1.",
        "The coder tries t1 again (1 of 2), because its criteria do not hold; retry 1 of 2. "
        "[retry-by-the-same-role]",
    ]


def test_what_nobody_knows_the_kind_of_is_tried_again_once() -> None:
    story = Story(todo("t1", max_retries=2))
    story.is_red(category=Category.UNKNOWN)

    assert "tries t1 again (1 of 1)" in story.told()[-1]


def test_a_repair_is_told_from_the_question_to_the_freed_todos() -> None:
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)), auto_fix_mode=False)
    story.is_red()
    told = story.told()
    assert "Nothing goes on until a person has answered." in told
    assert any(
        each.startswith("The human is told by planner.review_required: 'its criteria do not hold")
        for each in told
    )
    assert any(
        each.startswith(
            "A person is asked whether the branch t1_branch_01 may be made (approve, reject, modify or "
            "approve_similar), because"
        )
        for each in told
    )
    assert story.stands()[-1].startswith("A person has to answer t1_branch_01 about t1: 'may t1_branch_01")
    assert story.stands("t1")[0] == "t1 is red (TEST_REGRESSION), and waits for a person."

    changes = BranchChanges(role=Role.DEBUGGER, instructions="Look again.")
    story.decides(Decision.MODIFY, story.questions[0], by="ann", because="mind the NaN", changes=changes)
    told = story.told()
    assert told[0] == ("ann approved, with changes, t1_branch_01 (instructions, role): 'mind the NaN'.")
    assert told[1].startswith("The plan now has version 2 (add the todo t1_branch_01 after t1; leave")
    assert told[2].startswith("The debugger is to work on the branch t1_branch_01 of t1 (attempt 1 of 3)")
    assert story.stands("t1") == [
        "t1 is red (TEST_REGRESSION), and waits for its repair in t1_branch_01.",
        "The branch t1_branch_01 is worked on; attempts that failed: 0 of 3.",
    ]
    assert story.stands("t2") == ["t2 is blocked by t1."]
    assert story.stands()[1:] == [
        "Of 2 todos, 1 is blocked and 1 is red.",
        "1 branch was made: 1 worked on.",
    ]

    story.is_done("t1_branch_01")
    story.passes("t1")
    assert story.told() == [
        "t1 was verified: 1 criterion holds.",
        "t1 is done.",
        "t2 is no longer blocked.",
        "The coder is to work on t2 ('T2'), because what it depends on is done. [ready-todo]",
    ]
    assert story.told("t2") == story.told()[2:]


def test_a_story_of_one_todo_is_about_it_and_its_branches_alone() -> None:
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)), todo("other"))
    story.is_done("other")
    story.is_red("t1")
    story.is_done("t1_branch_01")
    story.passes("t1")

    whole = " ".join(story.whole("t1"))
    assert "other" not in whole
    assert "The work on t1_branch_01 is over" in whole
    assert story.whole("t2") == [
        "t2 is blocked by t1.",
        "t2 is no longer blocked.",
        "The coder is to work on t2 ('T2'), because what it depends on is done. [ready-todo]",
    ]


def test_a_story_without_anything_of_a_todo_still_tells_what_ended_it() -> None:
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)))
    story.tell(StopRequested(at=START, by="ann", because="enough"))

    told = story.told("t2")
    assert told[0] == "ann wants everything to stop: 'enough'."
    assert told[-1].startswith("Everything stops, because ann wants everything to stop")
    assert story.stands("t2") == ["t2 was not begun when the run ended."]
    assert story.stands("t1") == ["t1 was worked on when the run ended."]
    assert story.stands() == [
        "The run was halted, because ann wants everything to stop: enough. [stopped-by-person]",
        "Of 2 todos, 1 was not begun and 1 is halted.",
    ]


def test_what_fails_for_good_leaves_out_what_depends_on_it() -> None:
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)), todo("t3"), max_branch_depth=0)
    story.is_red("t1")
    story.answers("give_up", story.questions[0])

    assert story.told() == [
        "A person answered the question t1:review:1 with 'give_up'.",
        "t1 has failed for good.",
        "t2 is skipped, as t1 stands in the way for good.",
    ]
    assert story.stands("t1") == ["t1 has failed for good (TEST_REGRESSION)."]
    assert story.stands()[1] == ("Of 3 todos, 1 is worked on, 1 has failed for good and 1 is skipped.")
    assert story.stands("t2") == ["t2 is skipped, as t1 stands in the way for good."]


@pytest.mark.parametrize(
    ("event", "begins"),
    [
        (WorkStarted(at=START, todo_id="t1"), "Work on t1 has begun."),
        (BudgetSpent(at=START, tokens=5, todo_id="t1"), "Used beside the turns of work: 5 tokens (on t1)."),
        (BudgetSpent(at=START, new_files=1), "Used beside the turns of work: 1 new file."),
        (RunResumed(at=START), "The driver started again, and is asked again for what is outstanding."),
        (StopRequested(at=START), "A person wants everything to stop."),
        (
            PlanRevised(
                at=START,
                by="bob",
                edits=(NarrowFiles(rule="r", because="b", todo_id="t2", allowed_files=("x.py",)),),
            ),
            "bob changed the plan: let t2 change only x.py.",
        ),
    ],
    ids=lambda value: value.event if isinstance(value, WorkStarted | PlanRevised) else None,
)
def test_an_event_is_told_in_one_sentence(event: Event, begins: str) -> None:
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)))
    story.tell(event)

    assert story.told()[0] == begins


@pytest.mark.parametrize(
    "event", [ClockTicked(at=START), BudgetSpent(at=START)], ids=["clock", "nothing spent"]
)
def test_what_means_nothing_is_not_told(event: Event) -> None:
    story = Story(todo("t1"))
    story.tell(event)

    assert story.told() == []


def test_time_that_passes_a_limit_is_told_by_what_comes_of_it() -> None:
    story = Story(todo("t1", timeout_seconds=60, max_retries=1))
    story.waits(61)

    assert story.told()[0].startswith("The work under way on t1 is to be stopped, because")


def test_work_that_does_not_fit_together_is_told() -> None:
    story = Story(todo("t1"), todo("t2", max_retries=1))
    story.works("t1")
    story.works("t2")
    story.tell(ConflictFound(at=START, todo_ids=("t1", "t2"), files=("a.py",)))

    assert story.told() == [
        "The work on t1 and t2 does not fit together (a.py).",
        "The work under way on t2 is to be stopped, because its work does not fit that of t1 (a.py). "
        "[conflict-is-done-anew]",
    ]
    story.passes("t1")
    assert any(each.startswith("The coder works on t2 again (turn 2), because") for each in story.told())


def test_a_sub_plan_is_told_and_its_parent_waits_for_its_todos() -> None:
    story = Story(todo("phase", sub_plan="sub.yaml"), todo("after", dependencies=("phase",)))
    assert story.told()[-1].startswith("The sub-plan of phase (sub.yaml) is to be loaded, because")
    assert story.stands("phase") == ["phase waits for its sub-plan to be loaded."]

    story.loads("phase", todo("a"), todo("b", dependencies=("a",)))
    assert story.told()[0] == "The sub-plan of phase was loaded, with 2 todos."
    assert story.stands("phase") == ["phase waits for 2 todos of its sub-plan: phase/a and phase/b."]

    story.is_red("phase/a")
    assert blockers(story.state, "after") == ("phase/a",)
    assert story.stands("after") == ["after is blocked by phase/a."]


def test_a_sub_plan_that_cannot_be_had_is_told() -> None:
    story = Story(todo("phase", sub_plan="sub.yaml"))
    story.loads("phase", problems=("there is no such file",))

    assert story.told()[0] == "The sub-plan of phase cannot be loaded: there is no such file."


def test_a_plan_that_is_unfit_is_told_with_its_first_problem() -> None:
    plan = Plan(todo_list_id="p1", items=(todo("t1"),))
    event = PlanSubmitted(at=START, plan=plan, digest="d", problems=("no tests", "no title"))
    state, actions = start(event)

    told = texts(tell(event, actions, None, state))
    assert told[0] == (
        "The plan p1 (plan.yaml) was submitted, with 1 todo; it cannot be carried out (2 problems, "
        "the first: no tests)."
    )
    assert told[1].startswith("The plan is rejected, because")


def test_a_plan_that_was_not_started_waits_for_that() -> None:
    state, _ = start(PlanSubmitted(at=START, plan=Plan(todo_list_id="p1", items=(todo("t1"),)), digest="d"))
    assert texts(run_stands(state)) == [
        "The plan is ready, and waits for the run to be started.",
        "Of 1 todo, 1 is not begun.",
    ]
    assert texts(todo_stands(state, "t1")) == ["t1 has not been begun, as the run was not started."]


def test_where_todos_stand_that_nothing_has_failed_of() -> None:
    story = Story(
        todo("t1"),
        todo("t2"),
        todo("free", requires_testing=False),
        todo("risky", risk_level="HIGH"),
        run={"jobs": 1},
    )
    assert story.stands("t2") == ["t2 has not been begun: it waits for a free place."]
    assert story.stands("t1") == ["t1 is worked on (turn 1), and waits for the end of that work."]
    story.works("t1")
    assert story.stands("t1") == ["t1 is being verified, and waits for the verdict."]
    story.passes("t1")
    assert story.stands("t1") == ["t1 is done: its criteria hold."]
    story.is_done("t2")
    story.works("free")
    assert "free is done, though no verification has proved it." in story.told()
    assert story.stands("free") == ["free is done, though no verification has proved it."]
    assert story.stands("risky")[0] == "risky has not been begun: a person has to agree."


def test_a_todo_that_waits_for_files_names_who_has_them() -> None:
    story = Story(todo("t1", allowed_files=("a/**",)), todo("t2", allowed_files=("a/x.py",)))

    assert story.stands("t2") == ["t2 has not been begun: it waits for files that t1 may write."]


def test_a_todo_that_could_not_be_judged_waits_for_a_person() -> None:
    story = Story(todo("t1"))
    story.works("t1")
    story.says(Verdict.NEEDS_HUMAN)

    assert story.stands("t1")[0] == "t1 could not be judged, and waits for a person."


def test_a_red_todo_waits_for_a_place_or_for_what_is_mended_before_it() -> None:
    story = Story(todo("t1"), todo("t2"), todo("t3", dependencies=("t1",)), max_concurrent_branches=1)
    story.is_red("t1")
    story.is_red("t2")
    assert story.stands("t2") == ["t2 is red (TEST_REGRESSION), and waits for a free place for its repair."]


def outcome(**fields: Any) -> Outcome:
    return Outcome.model_validate({"todo_id": "t1", "success": False, "tests_passed": False, **fields})


def check(check_id: str, verdict: Verdict, **fields: Any) -> Check:
    return Check(id=check_id, kind=CheckKind.TEST, verdict=verdict, **fields)


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (outcome(success=True, tests_passed=True), Verdict.PASSED, "it holds"),
        (
            outcome(success=True, checks=(check("tests[0]", Verdict.FAILED),)),
            Verdict.INCONCLUSIVE,
            "the outcome contradicts itself",
        ),
        (
            outcome(checks=(check("tests[0]", Verdict.FAILED),)),
            Verdict.FAILED,
            "tests[0] failed, and no failure is described",
        ),
        (outcome(), Verdict.FAILED, "it does not hold, and no failure is described"),
        (
            outcome(
                state=TodoState.TESTING, checks=(check("m[0]", Verdict.NEEDS_HUMAN, title="Is it fine?"),)
            ),
            Verdict.NEEDS_HUMAN,
            "a person has to answer: Is it fine?",
        ),
        (
            outcome(
                state=TodoState.TESTING,
                checks=(
                    check("a", Verdict.INCONCLUSIVE, reason="no tool"),
                    check("b", Verdict.NEEDS_HUMAN),
                ),
            ),
            Verdict.INCONCLUSIVE,
            "the run could not tell, a is inconclusive (no tool)",
        ),
        (outcome(state=TodoState.PENDING), Verdict.INCONCLUSIVE, "the run could not tell"),
        (
            outcome(failure_evidence=Failure(category=Category.ENVIRONMENT_ERROR, check_id="tests[0]")),
            Verdict.INCONCLUSIVE,
            "tests[0] could not be judged (ENVIRONMENT_ERROR)",
        ),
        (
            outcome(failure_evidence=Failure(category=Category.FLAKY_TEST, confidence=0.8)),
            Verdict.FLAKY,
            "it failed (FLAKY_TEST, 0.8)",
        ),
        (
            outcome(
                checks=(check("tests[1]", Verdict.FAILED, cmd="make x"),),
                failure_evidence=Failure(category=Category.LINT_ERROR, check_id="tests[1]", rule="lint"),
            ),
            Verdict.FAILED,
            "make x failed (LINT_ERROR, by lint)",
        ),
        (
            outcome(
                failure_evidence=Failure(category=Category.TEST_CRASH, tests=("a.py::x", "a.py::y", "a.py"))
            ),
            Verdict.FAILED,
            "x and 2 other tests failed (TEST_CRASH)",
        ),
    ],
)
def test_a_verification_is_told_by_what_it_found(found: Outcome, verdict: Verdict, words: str) -> None:
    story = Story(todo("t1"))
    (told,) = tell_one(Verified(at=START, outcome=found), story.state, story.state)

    assert verdict_of(found)[0] is verdict
    assert told.text == f"t1 was verified: {words}" + ("" if words.endswith("?") else ".")


def test_text_from_outside_cannot_colour_hide_or_break_a_line() -> None:
    story = Story(todo("t1", title="\x1b[2Jgone\u202e"), auto_fix_mode=False)
    story.works(message="\x1b]0;title\x07line\nbreak" + "x" * 5_000)
    story.fails(message="\x1b[31mred\r\n\u200bhidden")
    story.decides(Decision.REJECT, story.questions[0], by="\x1b[1mbob", because="no\x00")

    for text in story.whole():
        assert text.isprintable()
        assert len(text) < 1_600
    assert "'line break" in " ".join(story.whole())
    assert "bob rejected t1_branch_01: 'no'." in story.whole()


def test_a_person_without_a_name_is_a_person_and_a_blank_reason_is_none() -> None:
    story = Story(todo("t1"), auto_fix_mode=False)
    story.is_red()
    story.decides(Decision.APPROVE_SIMILAR, story.questions[0], by=" \x1b[0m ", because="\u200b")

    assert story.told()[0] == ("A person approved, for every later failure of its class too, t1_branch_01.")


def test_what_a_person_says_of_a_todo_stands_in_its_story() -> None:
    story = Story(todo("t1"), todo("t2"), max_branch_depth=0, auto_fix_mode=False)
    story.is_red("t1")
    story.answers("retry", story.questions[0])

    assert story.told("t1")[0] == "A person answered the question t1:review:1 with 'retry'."
    assert story.told("t2") == []


def test_other_questions_are_told_in_their_own_words() -> None:
    story = Story(todo("t1"), max_branch_depth=0)
    story.is_red()

    asks = "A person is asked about t1: 'how does it go on with t1?' (t1:review:1) (retry, give_up or stop)"
    assert any(each.startswith(asks) for each in story.told())


def test_a_question_about_no_todo_names_none() -> None:
    story = Story(todo("t1"), budget={"tokens": 10}, halt={"budget": "ask"})
    story.works(tokens=11)

    assert any(each.startswith("A person is asked: 'the budget is used up") for each in story.told())
    assert any(each.startswith("A person has to answer budget: 'the budget") for each in story.stands())


def test_a_proposed_edit_is_told_with_the_question() -> None:
    from planner.model.actions import AskHuman, QuestionKind

    state = Story(todo("t1")).state
    edit = NarrowFiles(rule="r", because="b", todo_id="t1", allowed_files=())
    ask = AskHuman(
        rule="r", because="", question_id="q", kind=QuestionKind.APPROVE_EDITS, todo_id="t1",
        question="may it?", options=("approve",), edits=(edit,),
    )  # fmt: skip

    assert one(ask, state).with_rule == (
        "A person is asked whether the plan may be changed (q): let t1 change only nothing. [r]"
    )


def test_the_reason_of_an_action_ends_its_sentence_unless_it_says_it_already() -> None:
    state = Story(todo("t1")).state
    heard = Notify(
        rule="r", because="too many", topic="planner.alert", to=Role.HUMAN, message="too many: 4"
    )
    later = Verify(
        rule="r", because="so.", todo_ids=("t1",), isolate=True, not_before="2026-01-01T10:00:30Z"
    )

    assert one(heard, state).text == "The human is told by planner.alert: 'too many: 4'."
    assert one(later, state).text == (
        "t1 is to be verified, each command in a process of its own, not before 2026-01-01T10:00:30Z, "
        "because so."
    )
    ended = one(Finish(rule="all-done", because="", result="completed"), state)
    assert (ended.text, ended.about) == ("The plan is completed.", (EVERYBODY,))


def test_many_questions_are_counted() -> None:
    story = Story(*(todo(f"t{n}", risk_level="HIGH") for n in range(25)))

    assert story.stands()[-1] == "5 more questions are open."
    assert len(story.stands()) == 23


def test_as_many_questions_as_are_shown_leave_none_to_count() -> None:
    story = Story(*(todo(f"t{n}", risk_level="HIGH") for n in range(20)))

    assert story.stands()[-1].startswith("A person has to answer t19:start about t19")


def test_phrases() -> None:
    assert named([]) == ""
    assert named(["a"]) == "a"
    assert named(["a", "b", "c"]) == "a, b and c"
    assert named(map(str, range(10))) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
    assert quoted("x" * 300) == "x" * 198 + " …"
    assert sentence("y" * 2_000).text.endswith("y …")
    assert sentence("y" * 1_500).text == "y" * 1_500 + "."
    assert sentence("why?").text == "why?"


@pytest.mark.parametrize(
    ("edit", "phrase"),
    [
        ({"edit": "add_branch", "todo": _BRANCH}, "add the todo t1_branch_01 after t1"),
        ({"edit": "add_todo_before", "todo": _STEP}, "add the todo s1 (Step) before t1"),
        ({"edit": "add_dependency", "on": "t0"}, "let t1 wait for t0"),
        ({"edit": "narrow_files", "allowed_files": ["a.py"]}, "let t1 change only a.py"),
        ({"edit": "add_check", "check": {"cmd": "ruff check"}}, "check first in t1: ruff check"),
        ({"edit": "isolate", "tests": [{"cmd": "pytest x"}]}, "leave t1 only pytest x"),
        ({"edit": "add_context", "text": "x"}, "tell t1 what was seen"),
        ({"edit": "name_artifact", "path": "a.txt"}, "tell t1 to make a.txt"),
        ({"edit": "add_contract", "contract_path": "c.json"}, "hold t1 to the contract c.json"),
        (
            {"edit": "raise_limit", "check_id": "tests[0]", "from_seconds": 1, "to_seconds": 2.5},
            "give tests[0] of t1 2.5 s instead of 1 s",
        ),
        (
            {"edit": "retarget_check", "check_id": "tests[0]", "from_cmd": "a", "to_cmd": "b"},
            "let tests[0] of t1 run b instead of a",
        ),
        ({"edit": "split_todo", "parts": [_STEP, {**_STEP, "id": "t1"}]}, "split t1 into s1, t1"),
        (
            {"edit": "quarantine", "nodeid": "n", "owner": "o", "ticket": "T-1", "expires": "2026-02-01"},
            "bear the flaky n until 2026-02-01 (o, T-1)",
        ),
    ],
)
def test_every_edit_has_a_phrase(edit: dict[str, Any], phrase: str) -> None:
    given = {"rule": "r", "because": "b", "todo_id": "t1", **edit}

    assert words.edit(TypeAdapter[Edit](Edit).validate_python(given)) == phrase


def test_the_table_of_phrases_has_every_edit() -> None:
    (marked,) = (each for each in test_every_edit_has_a_phrase.pytestmark if each.name == "parametrize")  # type: ignore[attr-defined]

    assert {each[0]["edit"] for each in marked.args[1]} == {
        kind.model_fields["edit"].default for kind in kinds(Edit)
    }


def test_more_attempts_than_the_plan_allows_are_counted_alone() -> None:
    story = Story(todo("t1", max_debug_attempts=3))
    story.is_red("t1")
    branch = story.state.records["t1_branch_01"]._replace(attempts=8)
    state = replace(story.state, records={**story.state.records, "t1_branch_01": branch})

    (_, said) = texts(todo_stands(state, "t1"))
    assert said == "The branch t1_branch_01 is worked on; attempts that failed: 8."
