"""How decisions are shown: everything that somebody must know, and nothing that could trick a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.cli import words
from planner.cli.ending import Status, UsageMistake
from planner.cli.next import refuse_unknown, status_of
from planner.cli.next_screen import MOST_LINES, MOST_REPAIRS, show_decisions
from planner.model.decision import (
    Approval,
    BlockedTodo,
    Decisions,
    Halt,
    HumanNeed,
    Move,
    NeedKind,
    Notice,
    PlanState,
    Progress,
    ReadyTodo,
    Repair,
)
from planner.model.edits import (
    AddBranch,
    AddCheck,
    AddContext,
    AddContract,
    AddDependency,
    AddTodoBefore,
    Edit,
    Isolate,
    NameArtifact,
    NarrowFiles,
    QuarantineTest,
    RaiseLimit,
    RecordAttempt,
    RetargetCheck,
    SplitTodo,
)
from planner.model.outcome import Failure, PlanRef
from planner.model.plan import CommandSpec, Todo
from planner.model.taxonomy import Category, Role

BRANCH = Todo(id="a_branch_01", title="Repair a", parent_id="a")
WHY: dict[str, Any] = {"rule": "some-rule", "because": "it must be"}
EDITS: tuple[Edit, ...] = (
    AddBranch(todo=BRANCH, **WHY),
    AddTodoBefore(todo_id="a_branch_01", todo=Todo(id="deps", title="Find the package"), **WHY),
    AddDependency(todo_id="a", on="deps", **WHY),
    NarrowFiles(todo_id="a_branch_01", allowed_files=("src/a.py",), **WHY),
    AddCheck(todo_id="a_branch_01", check=CommandSpec(cmd="mypy src"), **WHY),
    Isolate(todo_id="a_branch_01", tests=(CommandSpec(cmd="pytest t.py::x"),), **WHY),
    AddContext(todo_id="a_branch_01", text="# What failed\n\n    x = 1\n", **WHY),
    NameArtifact(todo_id="a_branch_01", path="out/x.json", **WHY),
    AddContract(todo_id="a", contract_path="c.json", requires_approval=True, **WHY),
    RaiseLimit(
        todo_id="a", check_id="tests[0]", from_seconds=10, to_seconds=20.5, requires_approval=True, **WHY
    ),
    RaiseLimit(
        todo_id="a", check_id="tests[1]", from_seconds=10, to_seconds=30, requires_approval=True, **WHY
    ),
    RetargetCheck(
        todo_id="a", check_id="tests[0]", from_cmd="pytest t.py::x", to_cmd="pytest t.py::y", **WHY
    ),
    SplitTodo(todo_id="a", parts=(Todo(id="a1", title="A1"), Todo(id="a", title="A")), **WHY),
    QuarantineTest(todo_id="a", nodeid="t.py::x", owner="Robin", ticket="T-1", expires="2026-02-01", **WHY),
    RecordAttempt(todo_id="a_branch_01", attempts=2, **WHY),
)


def decisions(**keys: Any) -> Decisions:
    return Decisions(
        plan=PlanRef(todo_list_id="shop", path="plan.yaml", digest="sha256:00"),
        **{"state": PlanState.REVISING, "progress": Progress(done=1, failed=1, total=2), **keys},
    )


def repair(todo_id: str = "a", move: Move = Move.BRANCH, **keys: Any) -> Repair:
    return Repair(**{"todo_id": todo_id, "move": move, "role": Role.CODER, **WHY, **keys})


def shown(capsys: pytest.CaptureFixture[str], found: Decisions, plan: str = "plan.yaml") -> str:
    show_decisions(found, Path(plan))
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_the_head_tells_the_state_and_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, decisions(run_id="r1"))

    assert text.splitlines()[:2] == ["shop  to be revised: 1 of 2 todos done, 1 failed", "from the run r1"]


def test_a_halt_comes_before_everything_else(capsys: pytest.CaptureFixture[str]) -> None:
    halt = Halt(
        rule="halt-on-violation", category=Category.SANDBOX_VIOLATION, todo_ids=("a",), because="it dialled"
    )
    text = shown(capsys, decisions(state=PlanState.HALTED, halt=halt, repairs=(repair(move=Move.HALT),)))

    assert text.index("HALT  SANDBOX_VIOLATION") < text.index("✗ a")
    assert "it dialled [halt-on-violation]" in text


def test_a_repair_tells_who_does_what_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(
        capsys,
        decisions(
            repairs=(
                repair(
                    branch_id="a_branch_01",
                    category=Category.TEST_CRASH,
                    confidence=0.87,
                    blocks=("b", "c"),
                    edits=EDITS[:1],
                ),
            )
        ),
    )

    assert "✗ a  TEST_CRASH: the process died under a test, 87% sure" in text
    assert "  do       make the branch a_branch_01 for the coder" in text
    assert "  why      it must be [some-rule]" in text
    assert "  blocks   b, c" in text
    assert "add the todo a_branch_01 after a [some-rule]" in text


def test_the_instructions_stand_below_their_branch_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, decisions(repairs=(repair(branch_id="a_branch_01", edits=EDITS[:7]),)))

    assert "  instructions of a_branch_01:\n  │ # What failed\n  │\n  │     x = 1\n" in text


def test_instructions_of_the_branch_itself_are_shown_where_no_edit_tells_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    branch = BRANCH.model_copy(update={"debug_instructions": "Look here"})
    text = shown(capsys, decisions(repairs=(repair(branch=branch, branch_id=branch.id),)))

    assert "  │ Look here" in text


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.edit)
def test_every_edit_is_said_in_words(edit: Edit) -> None:
    said = words.edit(edit)

    assert "None" not in said
    assert "a" in said.split() or "a_branch_01" in said or "t.py::x" in said


@pytest.mark.parametrize("move", list(Move))
def test_every_move_is_said_in_words(move: Move) -> None:
    assert words.move(repair(move=move, role=None)).strip()
    assert "{" not in words.move(repair(move=move))


def test_every_category_state_and_need_has_its_words() -> None:
    assert set(words.CATEGORIES) == set(Category)
    assert set(words.STATES) == set(PlanState)
    assert set(words.NEEDS) == set(NeedKind)


def test_what_needs_approval_comes_with_the_exact_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(
        capsys,
        decisions(repairs=(repair(branch_id="a_branch_01", approval=Approval.NEEDED, edits=EDITS[8:11]),)),
        plan="my plans/plan.yaml",
    )

    for name in ("a_branch_01", "a:add_contract", "a:raise_limit", "a:raise_limit:2"):
        assert f"planner next 'my plans/plan.yaml' --approve {name} --output FILE\n" in text
    assert "(needs approval: a:raise_limit:2)" in " ".join(text.split())


def test_a_granted_approval_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "  approved a_branch_01" in shown(
        capsys, decisions(repairs=(repair(branch_id="a_branch_01", approval=Approval.GRANTED),))
    )


def test_ready_blocked_needs_and_notices_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(
        capsys,
        decisions(
            ready=(
                ReadyTodo(todo_id="r", title="Rest", role=Role.TESTER, because="it depends on nothing"),
            ),
            blocked=(BlockedTodo(todo_id="b", by=("a",), since="2026-01-01T00:00:00Z"),),
            needs_human=(
                HumanNeed(
                    kind=NeedKind.ANSWER, todo_id="q", what="Right?", why="the plan asks", how="answer it"
                ),
                HumanNeed(
                    kind=NeedKind.APPROVE_EDIT, todo_id="a", what="may it?", why="w", approval_id="a:x"
                ),
            ),
            notices=(Notice(rule="r", to=Role.PLANNER, todo_id="a", message="planner.review_required: x"),),
        ),
    )

    assert "Ready (1)\n  r Rest\n    for the tester: it depends on nothing" in text
    assert "Blocked (1)\n  b by a, since 2026-01-01 00:00 UTC" in text
    assert "  answer   q: Right?\n           the plan asks\n           answer it" in text
    assert "  approve  a: may it? (a:x)" in text
    assert "notice planner.review_required: x (for the planner)" in text


def test_long_lists_are_cut_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(
        capsys,
        decisions(
            repairs=(
                *(repair(f"v{n}", Move.VERIFY, role=None) for n in range(MOST_REPAIRS + 3)),
                *(repair(f"w{n}", Move.WAIT, role=None) for n in range(MOST_LINES + 4)),
            ),
            blocked=tuple(BlockedTodo(todo_id=f"b{n}", by=("a",)) for n in range(MOST_LINES + 2)),
        ),
    )

    assert "and 3 more; --json has all of them\n\nWaiting (24)\n  w0: " in text
    assert "  and 4 more; --json has all of them\n\nBlocked" in text
    assert "  and 2 more; --json has all of them" in text
    assert f"b{MOST_LINES} " not in text


HOSTILE = "\x1b[31mred\x1b[0m\x1b]0;title\x07 \u202eevil\u200b\rover\nnew"


def test_no_untrusted_text_reaches_the_terminal_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    failure = Failure(category=Category.UNKNOWN, stack_trace_head=HOSTILE, suggestion=HOSTILE)
    text = shown(
        capsys,
        decisions(
            run_id=HOSTILE,
            repairs=(
                repair(
                    HOSTILE,
                    Move.WAIT,
                    failure=failure,
                    because=HOSTILE,
                    blocks=(HOSTILE,),
                    branch_id=HOSTILE,
                ),
                repair(
                    "a", edits=(AddContext(todo_id="a", text=HOSTILE, **WHY),), approval=Approval.NEEDED
                ),
            ),
            ready=(ReadyTodo(todo_id="r", title=HOSTILE, role=Role.CODER, because=HOSTILE),),
            blocked=(BlockedTodo(todo_id=HOSTILE, by=(HOSTILE,), since=HOSTILE),),
            needs_human=(
                HumanNeed(kind=NeedKind.WORK, todo_id=HOSTILE, what=HOSTILE, why=HOSTILE, how=HOSTILE),
            ),
            notices=(Notice(rule="r", to=Role.HUMAN, message=HOSTILE),),
            halt=Halt(rule="r", category=Category.BUDGET_EXCEEDED, todo_ids=(HOSTILE,), because=HOSTILE),
        ),
    )

    assert not set("\x1b\x07\u202e\u200b\r") & set(text)


def test_the_same_decisions_are_shown_in_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    found = decisions(repairs=(repair(edits=EDITS),))

    assert shown(capsys, found) == shown(capsys, found)


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_prose_fits_the_terminal(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(
        capsys,
        decisions(
            repairs=(repair(because="word " * 60, move=Move.ESCALATE),),
            blocked=(BlockedTodo(todo_id="b", by=("aa", "bb", "cc"), since="2026-01-01T00:00:00Z"),),
        ),
    )

    assert max(map(len, text.splitlines())) <= int(columns)


# -- the exit status -----------------------------------------------------------------------------------


def need(kind: NeedKind) -> HumanNeed:
    return HumanNeed(kind=kind, what="w", why="y")


READY = ReadyTodo(todo_id="r", role=Role.CODER, because="b")


def halted(category: Category) -> Decisions:
    return decisions(halt=Halt(rule="r", category=category, todo_ids=(), because="b"), ready=(READY,))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (decisions(state=PlanState.COMPLETED), Status.OK),
        (decisions(repairs=(repair(),)), Status.OK),
        (decisions(repairs=(repair(move=Move.VERIFY, role=None),)), Status.OK),
        (decisions(repairs=(repair(approval=Approval.GRANTED),)), Status.OK),
        (
            decisions(
                repairs=(repair(approval=Approval.NEEDED),), needs_human=(need(NeedKind.APPROVE_BRANCH),)
            ),
            Status.HUMAN_NEEDED,
        ),
        (
            decisions(repairs=(repair(role=Role.HUMAN),), needs_human=(need(NeedKind.WORK),)),
            Status.HUMAN_NEEDED,
        ),
        (decisions(repairs=(repair(move=Move.ESCALATE),), needs_human=(need(NeedKind.REVIEW),)), 11),
        (decisions(needs_human=(need(NeedKind.REVIEW),), ready=(READY,)), Status.OK),
        (decisions(ready=(READY.model_copy(update={"role": Role.HUMAN}),)), Status.HUMAN_NEEDED),
        (
            decisions(
                repairs=(repair(move=Move.RETRY_LATER),), needs_human=(need(NeedKind.MEND_ENVIRONMENT),)
            ),
            Status.ENVIRONMENT,
        ),
        (
            decisions(
                repairs=(repair(move=Move.RETRY_LATER), repair("b")),
                needs_human=(need(NeedKind.MEND_ENVIRONMENT),),
            ),
            Status.OK,
        ),
        (halted(Category.SANDBOX_VIOLATION), Status.SECURITY_HALT),
        (halted(Category.ALLOWLIST_VIOLATION), Status.SECURITY_HALT),
        (halted(Category.BUDGET_EXCEEDED), Status.BUDGET_HALT),
        (halted(Category.TEST_REGRESSION), Status.HUMAN_NEEDED),
    ],
)
def test_the_exit_status_tells_what_stands_in_the_way(found: Decisions, expected: int) -> None:
    assert status_of(found) == expected


def test_an_approval_of_what_nobody_asks_is_refused_with_the_nearest() -> None:
    found = decisions(repairs=(repair(branch_id="a_branch_01", edits=EDITS[9:10]),))

    refuse_unknown(["all", "a_branch_01", "a:raise_limit"], found)
    with pytest.raises(
        UsageMistake, match=r"--approve a_branch_02: nothing of that id .* did you mean 'a_branch_01'"
    ):
        refuse_unknown(["a_branch_02"], found)
    with pytest.raises(UsageMistake, match="there are none"):
        refuse_unknown(["x"], decisions())
