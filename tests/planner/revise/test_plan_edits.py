"""Edits of a plan; an edit that does not fit is refused and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from revision_samples import apply_edits, commands, plan, todo

from planner.errors import EditConflictError
from planner.model.edits import (
    AddBranch,
    AddCheck,
    AddContext,
    AddDependency,
    AddTodoBefore,
    Edit,
    Isolate,
    NameArtifact,
    NarrowFiles,
    RaiseLimit,
    RetargetCheck,
)
from planner.model.plan import CommandSpec, Plan, Todo
from planner.planfile.writer import dump_plan
from planner.policy.dependencies import find_cycle

WHY: dict[str, Any] = {"rule": "r", "because": "b"}
CMD = "pytest tests/test_a.py -q"


def branch(id: str = "t2_branch_01", parent: str = "t2", *cmds: str, **fields: Any) -> Todo:
    return todo(id, *(cmds or (CMD,)), parent_id=parent, **fields)


def add_branch(id: str = "t2_branch_01", parent: str = "t2", *cmds: str, **fields: Any) -> AddBranch:
    return AddBranch(**WHY, todo=branch(id, parent, *cmds, **fields))


def sample(**fields: Any) -> Plan:
    return plan(
        todo("t1", CMD),
        todo("t2", CMD, dependencies=["t1"]),
        todo("t3", CMD, dependencies=["t2"], allowed_files=["pkg/**"]),
        **fields,
    )


def ids(given: Plan) -> list[str]:
    return [item.id for item in given.items]


def after(*edits: Edit, of: Plan | None = None) -> Plan:
    return apply_edits(of or sample(), edits)


def refused(*edits: Edit, of: Plan | None = None) -> EditConflictError:
    with pytest.raises(EditConflictError) as caught:
        apply_edits(of or sample(), edits)
    error = caught.value
    assert "\n" not in str(error)
    assert error.todo_id in str(error)
    assert error.edit in str(error)
    assert str(error).endswith(error.problem)
    return error


def add_before(todo_id: str, step: str, **fields: Any) -> AddTodoBefore:
    return AddTodoBefore(**WHY, todo_id=todo_id, todo=todo(step, CMD, **fields))


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([add_branch("t1")], "the id 't1' is taken"),
        ([add_branch(parent="nobody")], "'nobody' is not a todo"),
        ([AddBranch(**WHY, todo=todo("x", CMD))], "is not a todo of the plan"),
        ([add_branch(dependencies=["nobody"])], "'nobody', which is not a todo"),
        ([add_branch(dependencies=["t2_branch_01"])], "'t2_branch_01', which is not a todo"),
        ([add_branch(), add_branch("deeper", "t2_branch_01")], "itself a branch of 't2'"),
        ([add_before("t2", "s", dependencies=["t3"])], "circular"),
        ([add_before("t2", "s", dependencies=["t2"])], "circular"),
        ([add_before("t2", "t3")], "the id 't3' is taken"),
        ([add_before("t9", "s")], "no such todo"),
        ([AddDependency(**WHY, todo_id="t1", on="t3")], "circular"),
        ([AddDependency(**WHY, todo_id="t1", on="t1")], "circular"),
        ([AddDependency(**WHY, todo_id="t3", on="t2")], "already"),
        ([AddDependency(**WHY, todo_id="t3", on="t9")], "no todo 't9'"),
    ],
)
def test_an_invalid_branch_or_order_is_refused(edits: list[Edit], said: str) -> None:
    assert said in refused(*edits).problem


def test_new_dependencies_follow_the_existing_ones() -> None:
    result = after(add_before("t2", "step"), AddDependency(**WHY, todo_id="t3", on="t1"))
    assert set(ids(result)) == {"t1", "t2", "t3", "step"}
    assert result.todo("t2").dependencies == ("t1", "step")
    assert result.todo("t3").dependencies == ("t2", "t1")


def test_allowed_files_can_be_narrowed_but_not_widened() -> None:
    def narrow(*files: str, name: str = "t3") -> NarrowFiles:
        return NarrowFiles(**WHY, todo_id=name, allowed_files=files)

    assert after(narrow("pkg/a.py")).todo("t3").allowed_files == ("pkg/a.py",)
    assert after(narrow("x/**", name="t1")).todo("t1").allowed_files == ("x/**",)
    assert "'x/**' is not within its allowed_files (pkg/**)" in refused(narrow("x/**")).problem
    assert "'pkg/b.py' is not within" in refused(narrow("pkg/a.py"), narrow("pkg/b.py")).problem


def test_an_added_check_comes_first_and_replaces_no_other() -> None:
    lint = AddCheck(**WHY, todo_id="t1", check=CommandSpec(cmd="ruff check ."))
    assert commands(after(lint).todo("t1")) == ["ruff check .", CMD]
    assert "already" in refused(lint, lint).problem
    assert "already" in refused(lint, of=plan(todo("t1", verify="ruff  check ."))).problem
    assert "by convention" in refused(lint, of=plan(todo("t1"))).problem


def isolate(*cmds: str, name: str = "b", **fields: Any) -> Isolate:
    return Isolate(**WHY, todo_id=name, tests=tuple(CommandSpec(cmd=cmd) for cmd in cmds), **fields)


FULL = branch(
    "b",
    "t1",
    criteria={
        "expected_artifacts": ["a.json", "diagnostics/t1_failure_report.json"],
        "metrics": [{"name": "m", "operator": ">=", "value": 1}],
        "manual": [{"question": "?"}],
        "extensions": {"x-note": 1},
    },
    verify="python-quick",
    test_command="pytest",
    test_file="tests/test_x.py",
    contract_path="c.json",
)


def test_isolation_keeps_the_tests_of_a_branch_and_its_failure_report() -> None:
    given = plan(todo("t1", CMD), FULL)
    left = after(isolate("pytest a.py::x"), of=given).todo("b")
    text = dump_plan(plan(left), format="yaml")
    assert commands(left) == ["pytest a.py::x"]
    (report,) = left.acceptance_criteria.expected_artifacts
    assert report.path == "diagnostics/t1_failure_report.json"
    assert left.acceptance_criteria.extensions == {"x-note": 1}
    for gone in ("verify", "test_command", "test_file", "contract_path", "metrics", "manual"):
        assert gone not in text


def test_isolation_applies_only_to_branches_and_leaves_a_criterion() -> None:
    assert "not a branch" in refused(isolate(CMD, name="t1")).problem
    given = plan(todo("t1", CMD), FULL)
    assert "no criterion would be left" in refused(isolate(), of=given).problem
    assert "joins two commands" in refused(isolate("pytest && pytest"), of=given).problem


def test_context_and_artifacts_are_written_into_the_todo() -> None:
    result = after(
        AddContext(**WHY, todo_id="t1", text="look"),
        NameArtifact(**WHY, todo_id="t1", path="a.py", hint="write it"),
        NameArtifact(**WHY, todo_id="t1", path="b.py"),
    ).todo("t1")
    assert result.debug_instructions == "look"
    task = result.controller_task_spec
    assert task is not None
    assert (task.target_file, task.hint) == ("b.py", "write it")


def raise_limit(old: float, new: float, where: str = "tests[0]", name: str = "t1") -> RaiseLimit:
    return RaiseLimit(**WHY, todo_id=name, check_id=where, from_seconds=old, to_seconds=new)


def test_a_raised_limit_must_exceed_the_current_limit() -> None:
    result = after(raise_limit(300, 600), raise_limit(600, 700)).todo("t1")
    assert result.acceptance_criteria.tests[0].timeout_seconds == 700
    assert "is 300 s, not 20 s" in refused(raise_limit(20, 40)).problem
    assert "not more than the current limit" in refused(raise_limit(300, 300)).problem
    assert "no time limit" in refused(raise_limit(300, 600, "verify")).problem
    assert "no time limit" in refused(raise_limit(300, 600, "tests[1]")).problem


def retarget(where: str, old: str, new: str, name: str = "t1") -> RetargetCheck:
    return RetargetCheck(**WHY, todo_id=name, check_id=where, from_cmd=old, to_cmd=new)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"criteria": {"tests": [{"cmd": "pytest a.py", "timeout_seconds": 7}]}}, "tests[0]"),
        ({"verify": "pytest a.py"}, "verify"),
        ({"test_command": "pytest a.py"}, "test_command"),
    ],
)
def test_a_command_is_retargeted_in_whichever_key_contains_it(fields: dict[str, Any], where: str) -> None:
    given = plan(todo("t1", **fields))
    new = after(retarget(where, "pytest a.py", "pytest b.py"), of=given).todo("t1")
    text = dump_plan(plan(new), format="json")
    assert "b.py" in text
    assert "a.py" not in text
    assert "not 'pytest c.py'" in refused(retarget(where, "pytest c.py", "pytest b.py"), of=given).problem
    assert "cannot be run" in refused(retarget(where, "pytest a.py", "nonsense b.py"), of=given).problem


names = st.sampled_from(["t1", "t2", "t3", "t1_branch_01", "t2_branch_01", "s1", "s2", "t2_part_01"])
cmds = st.sampled_from([CMD, "pytest a.py::x", "ruff check .", "python -m py_compile a.py", "nonsense"])
globs = st.sampled_from(["pkg/**", "pkg/a.py", "**", "x.py", "!pkg/b.py"])
patterns = st.lists(globs, max_size=3).map(tuple)
specs = st.lists(cmds.map(lambda cmd: CommandSpec(cmd=cmd)), max_size=2).map(tuple)
new_todos = st.builds(
    lambda name, cmd, deps: todo(name, cmd, dependencies=deps),
    names,
    cmds,
    st.lists(names, max_size=2, unique=True),
)
edits = st.one_of(
    st.builds(lambda a, b: AddBranch(**WHY, todo=a.model_copy(update={"parent_id": b})), new_todos, names),
    st.builds(lambda a, b: AddTodoBefore(**WHY, todo_id=a, todo=b), names, new_todos),
    st.builds(lambda a, b: AddDependency(**WHY, todo_id=a, on=b), names, names),
    st.builds(lambda a, b: NarrowFiles(**WHY, todo_id=a, allowed_files=b), names, patterns),
    st.builds(lambda a, b: AddCheck(**WHY, todo_id=a, check=CommandSpec(cmd=b)), names, cmds),
    st.builds(lambda a, b: Isolate(**WHY, todo_id=a, tests=b), names, specs),
    st.builds(lambda a, b: AddContext(**WHY, todo_id=a, text=b), names, st.text(max_size=3)),
    st.builds(lambda a: NameArtifact(**WHY, todo_id=a, path="a.py"), names),
    st.builds(lambda a, b: raise_limit(b, b * 2, name=a), names, st.sampled_from([300, 600])),
    st.builds(lambda a, b, c: retarget("tests[0]", b, c, name=a), names, cmds, cmds),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(edits, max_size=8))
def test_edits_keep_the_plan_valid_singly_and_together(batch: list[Edit]) -> None:
    start = sample()
    end, fitting = start, list[Edit]()
    for edit in batch:
        try:
            end = apply_edits(end, [edit])
        except EditConflictError:
            continue
        fitting.append(edit)
    assert apply_edits(start, fitting) == end
    found = ids(end)
    assert len(set(found)) == len(found)
    assert {name for item in end.items for name in item.dependencies} <= set(found)
    assert find_cycle(end.items) == ()
    assert Plan.model_validate(end.model_dump(by_alias=True)) == end
