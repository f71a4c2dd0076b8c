"""`planner waves`: the waves of a plan, without what is done or only held together, each todo with why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from planner_command import Command, done, failed, with_test

from planner.model.plan import Todo
from planner.policy.dependencies import placed_in_waves, to_be_worked_on
from planner.text.glob_patterns import matches, seen_from_above

if TYPE_CHECKING:
    pass

SUB = {"id": "phase", "is_parent": True, "sub_plan": "phase/plan.yaml"}


def named(found: Any) -> list[list[str]]:
    return [[each["todo_id"] for each in wave] for wave in found["waves"]]


def writing(todo_id: str, *files: str, **keys: Any) -> dict[str, Any]:
    return with_test(todo_id, allowed_files=list(files), **keys)


def test_what_is_done_is_left_out_unless_the_plan_says_something_else_of_it_now(planner: Command) -> None:
    todos = [writing("a", "x.py"), writing("b", "x.py"), with_test("c", dependencies=["a"])]
    planner.plan(*todos)
    assert named(planner("waves", "--json").json) == [["a"], ["b", "c"]]
    planner.outcomes(done("a"), failed("b"), done("c"))
    found = planner("waves", "--json").json
    assert (named(found), found["done"], found["remarks"]) == ([["b"]], ["a", "c"], [])
    assert planner("waves").out.endswith("Wave 1 (1)\n  b  b\n\ndone: a, c\n")
    planner.plan(*todos, workflow_name="changed")
    assert planner("waves", "--json").json["done"] == ["a", "c"]
    planner.plan(writing("a", "y.py"), *todos[1:])
    assert planner("waves", "--json").json["done"] == ["c"]
    planner.plan(*(each | {"allowed_files": ["z.py"]} for each in todos))
    found = planner("waves", "--json").json
    assert (len(named(found)), found["done"]) == (3, [])
    assert "another version of the plan" in found["remarks"][0]
    assert (
        "! .planverify/plans/shop/outcomes.json: the outcomes are of another version"
        in planner("waves").out
    )
    assert planner("waves", "--outcomes", "missing.json").status == 4


def test_the_todos_of_a_sub_plan_stand_for_their_parent_and_their_files_are_below_its_root(
    planner: Command,
) -> None:
    planner.plan(
        SUB,
        with_test("after", dependencies=["phase"]),
        writing("same", "phase/src/x.py", priority=1),
        writing("other", "src/x.py"),
    )
    inner = [
        writing("one", "src/*.py"),
        with_test("two", dependencies=["one"]),
        writing("three", "docs/*.md"),
    ]
    planner.plan(*inner, path="phase/plan.yaml", todo_list_id="phase")
    found = planner("waves", "--json").json
    assert named(found) == [["phase/one", "phase/three", "other"], ["phase/two", "same"], ["after"]]
    files = {each["todo_id"]: each for wave in found["waves"] for each in wave}
    assert files["phase/one"]["files"] == ["phase/src/*.py"]
    assert files["phase/three"]["files"] == ["phase/docs/*.md"]
    assert files["other"]["files"] == ["src/x.py"]
    assert files["same"]["apart_from"] == [
        {"todo_id": "phase/one", "files": ["phase/src/x.py", "phase/src/*.py"]}
    ]
    assert files["after"]["after"] == ["phase/two"]


def test_a_circle_that_a_branch_closes_is_told_in_one_line(planner: Command) -> None:
    branch = with_test("a_branch_01", parent_id="a", dependencies=["b"])
    planner.plan(with_test("a"), with_test("b", dependencies=["a"]), branch)
    ran = planner("waves")
    assert (ran.status, ran.out) == (4, "")
    assert ran.err == (
        "planner: the todos depend on each other in a circle: b -> a_branch_01 -> b; "
        "remove a dependency of the branch among them\n"
    )
    waiting = with_test("a_branch_01", parent_id="a", dependencies=["a"])
    planner.plan(with_test("a"), waiting)
    assert named(planner("waves", "--json").json) == [["a"], ["a_branch_01"]]


def test_only_the_first_of_many_others_are_named(planner: Command) -> None:
    planner.plan(*(writing(f"t{number}", f"{number}.py") for number in range(8)), writing("all", "*.py"))
    found = planner("waves", "--json").json
    assert [each["todo_id"] for each in found["waves"][1][0]["apart_from"]] == [f"t{n}" for n in range(5)]


def test_the_last_todos_of_nested_parents_are_what_others_wait_for() -> None:
    def a_todo(todo_id: str, *after: str) -> Todo:
        return Todo(id=todo_id.replace("/", "."), title="x", dependencies=after)

    todos = [
        a_todo("p"),
        a_todo("p/a"),
        a_todo("p/q", "p.a"),
        a_todo("p/q/x"),
        a_todo("p/q/y"),
        a_todo("z", "p"),
    ]
    children = {"p": ("p.a", "p.q"), "p.q": ("p.q.x", "p.q.y")}
    left = {todo.id: todo.dependencies for todo in to_be_worked_on(todos, children, ())}
    assert left == {"p.a": (), "p.q.x": (), "p.q.y": (), "z": ("p.q.x", "p.q.y")}
    assert [[each.todo.id for each in wave] for wave in placed_in_waves(())] == []


@given(
    pattern=st.sampled_from(["a", "*.py", "*", "**", "a/*", "./a/", "**/a", "a?", "."]),
    folder=st.sampled_from([".", "sub", "sub/deep"]),
    path=st.sampled_from(["a", "a.py", "b/a.py", "a/b", "sub/a", "ab", "b"]),
)
def test_a_glob_names_the_same_files_from_above(pattern: str, folder: str, path: str) -> None:
    above = path if folder == "." else f"{folder}/{path}"
    assert matches(above, seen_from_above(pattern, folder)) == matches(path, pattern)
    assert seen_from_above(f"!{pattern}", folder) == f"!{seen_from_above(pattern, folder)}"
