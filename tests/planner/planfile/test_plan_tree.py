"""Plans with sub-plans: lookup, refusal, traversal and flattening."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import PlanFileError, PlannerError, PlanTreeError
from planner.model.plan import TodoStatus
from planner.planfile import tree as tree_module
from planner.planfile.loader import load_plan
from planner.planfile.tree import PlanTree, load_tree
from planner.policy.dependencies import dependency_order


def write(path: Path, *items: dict[str, Any], plan_id: str | None = None, **keys: Any) -> Path:
    """Write a plan with each of these todos on a separate line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(item) for item in items)
    head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())
    path.write_text(f"todo_list_id: {plan_id or path.stem}\n{head}items: [\n{lines}\n]\n")
    return path


def todo(todo_id: str, *after: str, **keys: Any) -> dict[str, Any]:
    return {"id": todo_id, "title": todo_id, "dependencies": list(after), **keys}


def parent(todo_id: str, file: str, *after: str, **keys: Any) -> dict[str, Any]:
    return todo(todo_id, *after, sub_plan=file, **keys)


def error_of(tree: PlanTree) -> str:
    with pytest.raises(PlannerError) as refused:
        tree.load_all()
    return str(refused.value)


@pytest.fixture
def phases(tmp_path: Path) -> Path:
    """Return a plan with two phases, the second of which has a nested sub-plan."""
    write(tmp_path / "phases/deep/cursor.yaml", todo("left"), todo("right", "left"), plan_id="one")
    cursor = parent("cursor", "phases/deep/cursor.yaml")
    write(tmp_path / "phases/two.yaml", cursor, todo("words", "cursor"), root="..")
    write(tmp_path / "phases/one.yaml", todo("text"), todo("lines", "text"))
    first, second = parent("p1", "phases/one.yaml"), parent("p2", "phases/two.yaml", "p1")
    return write(tmp_path / "plan.yaml", first, second)


def test_a_sub_plan_is_loaded_lazily_and_only_once(phases: Path, monkeypatch: pytest.MonkeyPatch):
    loaded: list[str] = []

    def noting(path: Path, **how: Any) -> Any:
        loaded.append(path.name)
        return load_plan(path, **how)

    monkeypatch.setattr(tree_module, "load_plan", noting)
    tree = load_tree(phases)
    assert loaded == ["plan.yaml"]

    assert tree.child("p2").child("cursor").loaded.plan.todo("left").title == "left"
    assert loaded == ["plan.yaml", "two.yaml", "cursor.yaml"]
    assert tree.child("p2") is tree.child("p2")
    tree.load_all().load_all()
    assert loaded == ["plan.yaml", "two.yaml", "cursor.yaml", "one.yaml"]


def test_a_sub_plan_that_only_the_revised_todo_names_is_known_afterwards(tmp_path: Path):
    write(tmp_path / "one.yaml", todo("text"))
    tree = load_tree(write(tmp_path / "plan.yaml", todo("a")))
    (alone,) = tree.loaded.plan.items
    sub = tree.child_of(alone.model_copy(update={"sub_plan": "one.yaml"}))
    assert tree.child("a") is sub


def test_a_flattened_plan_has_qualified_ids_and_references(tmp_path: Path):
    write(
        tmp_path / "sub.yaml", todo("a"), todo("a_branch_01", "a", parent_id="a", via="a", status="claimed")
    )
    path = write(tmp_path / "plan.yaml", todo("first"), parent("p", "sub.yaml", "first"), todo("last", "p"))

    flat = load_tree(path).load_all().flat()

    first, p, a, branch, last = flat.loaded.plan.items
    assert [p.id, a.id, branch.id] == ["p", "p/a", "p/a_branch_01"]
    assert (first.dependencies, p.dependencies, last.dependencies) == ((), ("first",), ("p",))
    assert a.dependencies == ("first",)
    assert branch.dependencies == ("p/a", "first")
    assert (branch.parent_id, branch.via) == ("p/a", "p/a")
    assert (a.status, branch.status) == (TodoStatus.OPEN, TodoStatus.CLAIMED)
    assert flat.children == {"p": ("p/a", "p/a_branch_01")}
    assert set(flat.loaded.criteria) == {"first", "p", "p/a", "p/a_branch_01", "last"}
    assert flat.owner("p/a").path.name == "sub.yaml"
    assert flat.owner("last").path.name == "plan.yaml"
    assert [part.path.name for part in flat.parts] == ["plan.yaml", "sub.yaml"]


@pytest.mark.parametrize("place", ["X.yml", "phases/X.yaml", "sub_plans/X.yml", "plans/X.json"])
def test_a_sub_project_is_found_by_its_file_name(place: str, tmp_path: Path):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(json.dumps({"todo_list_id": "other", "items": [todo("a")]}))
    path = write(tmp_path / "plan.yaml", todo("p", is_parent=True, sub_project_id="X"))
    assert load_tree(path).child("p").loaded.path == tmp_path / place


@pytest.mark.parametrize("name", ["X", "any name: with / signs"])
def test_a_sub_project_is_found_by_its_id(name: str, tmp_path: Path):
    for other in ("aaa", "zzz"):
        write(tmp_path / f"phases/{other}.yaml", todo("a"))
    (tmp_path / "phases/broken.yaml").write_text("[")
    (tmp_path / "phases/list.yaml").write_text("todo_list_id: [X]")
    (tmp_path / "phases/folder.yaml").mkdir()
    write(tmp_path / "phases/mine.yaml", todo("a"), plan_id=json.dumps(name))
    path = write(tmp_path / "plan.yaml", todo("p", sub_project_id=name))
    assert load_tree(path).child("p").loaded.path.name == "mine.yaml"


def test_a_missing_sub_project_is_reported_with_the_places_searched(tmp_path: Path):
    path = write(tmp_path / "plan.yaml", todo("a"), todo("p", is_parent=True, sub_project_id="X"))
    said = error_of(load_tree(path))
    column = path.read_text().splitlines()[3].index('"X"') + 1
    assert f"plan.yaml:4:{column} items[1].sub_project_id: there is no plan 'X' in {tmp_path}" in said
    for word in ("X.yaml", ".json", "todo_list_id", "phases/", "sub_plans/", "plans/", "sub_plan"):
        assert word in said


@pytest.mark.parametrize("places", [("X.yaml", "phases/X.yaml"), ("a.yaml", "phases/b.yaml")])
def test_an_ambiguous_sub_project_is_refused(places: tuple[str, str], tmp_path: Path):
    for place in places:
        write(tmp_path / place, todo("a"), plan_id="X")
    path = write(tmp_path / "plan.yaml", todo("p", sub_project_id="X"))
    assert f"'X' may be {places[0]} or {places[1]} in" in error_of(load_tree(path))


def test_two_paths_to_one_file_are_not_ambiguous(tmp_path: Path):
    write(tmp_path / "phases/X.yaml", todo("a"))
    (tmp_path / "X.yaml").symlink_to("phases/X.yaml")
    path = write(tmp_path / "plan.yaml", todo("p", sub_project_id="X"))
    assert load_tree(path).child("p").loaded.path == tmp_path / "X.yaml"


def test_a_sub_project_outside_the_folder_is_refused(tmp_path: Path):
    write(tmp_path / "outside.yaml", todo("a"))
    path = write(tmp_path / "in/plan.yaml", todo("p", sub_project_id="X"), todo("q", sub_project_id="../o"))
    (tmp_path / "in/X.yaml").symlink_to("../outside.yaml")
    said = error_of(load_tree(path))
    assert "items[0].sub_project_id: X.yaml leaves" in said
    assert "items[1].sub_project_id: there is no plan '../o'" in said


def test_a_parent_without_a_sub_plan_is_refused_with_its_position(tmp_path: Path):
    path = write(tmp_path / "plan.yaml", todo("p", is_parent=True))
    with pytest.raises(PlanFileError, match=r"plan\.yaml:3:\d+ items\[0\]\.is_parent: .*add sub_plan"):
        load_tree(path)


def test_a_missing_sub_plan_is_a_fault_of_the_plan_that_names_it(tmp_path: Path):
    parents = parent("p", "phases/none.yaml"), parent("q", "folder"), parent("r", "x" * 300)
    path = write(tmp_path / "plan.yaml", *parents)
    (tmp_path / "folder").mkdir()
    tree = load_tree(path)

    with pytest.raises(PlanFileError) as refused:
        tree.child("p")

    (fault,) = refused.value.faults
    assert "plan.yaml:3:" in fault
    assert "items[0].sub_plan: the file 'phases/none.yaml' below" in fault
    with pytest.raises(PlanFileError, match="this is a directory"):
        tree.child("q")
    with pytest.raises(PlanFileError, match="does not exist"):
        tree.child("r")


def test_the_faults_of_all_files_are_reported_together_with_their_positions(tmp_path: Path):
    write(tmp_path / "b.yaml", todo("x", "nobody"), todo("y", unknown=1))
    write(tmp_path / "c.yaml", parent("x", "none.yaml"), parent("y", "b.yaml"))
    items = [parent(name, f"{name}.yaml") for name in ("a", "b", "c")]
    tree = load_tree(write(tmp_path / "plan.yaml", *items, parent("again", "none.yaml")))
    with pytest.raises(PlanTreeError) as refused:
        tree.load_all()
    told = sorted((Path(error.path).name, len(error.faults)) for error in refused.value.errors)
    assert told == [("b.yaml", 2), ("c.yaml", 1), ("plan.yaml", 1), ("plan.yaml", 1)]
    assert re.search(r"b\.yaml:3:\d+ items\[0\]\.dependencies\[0\]: there is no", str(refused.value))
    assert str(refused.value).count("nobody") == 1


@pytest.mark.parametrize("link", [False, True])
def test_a_plan_that_contains_itself_is_refused_with_the_cycle(link: bool, tmp_path: Path):
    path = write(tmp_path / "plan.yaml", parent("p", "sub.yaml"))
    write(tmp_path / "sub.yaml", todo("a"), parent("q", "link.yaml" if link else "plan.yaml"))
    (tmp_path / "link.yaml").symlink_to("plan.yaml")
    said = error_of(load_tree(path))
    last = "link.yaml" if link else "plan.yaml"
    assert f"items[1].sub_plan: the plan contains itself: plan.yaml -> sub.yaml -> {last}" in said
    assert "sub.yaml:4:" in said


def test_sub_plans_deeper_than_three_levels_are_refused(tmp_path: Path):
    write(tmp_path / "s4.yaml", todo("leaf"))
    for level in (3, 2, 1):
        write(tmp_path / f"s{level}.yaml", parent("p", f"s{level + 1}.yaml"))
    path = write(tmp_path / "plan.yaml", parent("p", "s1.yaml"))
    said = error_of(load_tree(path))
    below = load_tree(tmp_path / "s1.yaml").load_all()
    assert "s3.yaml:3:" in said
    assert "at most 3 levels deep" in said
    assert "plan.yaml -> s1.yaml -> s2.yaml -> s3.yaml -> s4.yaml" in said
    assert below.flat().loaded.plan.items[-1].id == "p/p/p/leaf"


def test_a_tree_with_too_many_todos_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tree_module, "MAX_TODOS", 100)
    for level in (1, 2):
        items = [parent(f"t{number}", f"s{level + 1}.yaml") for number in range(10)]
        write(tmp_path / f"s{level}.yaml", *items)
    write(tmp_path / "s3.yaml", *(todo(f"t{number}") for number in range(10)))
    assert "more than 100 todos" in error_of(load_tree(tmp_path / "s1.yaml"))


def test_the_root_of_a_sub_plan_may_reach_the_root_of_the_top_plan_or_the_boundary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir("/")
    top = tmp_path / "repo/app"
    write(top / "phases/sub.yaml", todo("a"), root="../..")
    path = write(top / "plan.yaml", parent("p", "phases/sub.yaml"))
    assert load_tree(path, boundary=tmp_path / "repo").child("p").loaded.root == tmp_path / "repo"
    with pytest.raises(PlanFileError, match=r"sub\.yaml:2:\d+ root: the root '\.\./\.\.' is outside of"):
        load_tree(path, boundary=top).child("p")


@settings(max_examples=35, deadline=None)
@given(st.data())
def test_a_random_flattened_tree_has_valid_acyclic_dependencies(data: st.DataObject):
    """Every dependency exists, no todo depends on its parent, and there is no cycle."""
    with tempfile.TemporaryDirectory() as folder:
        _write_level(Path(folder), "plan", data, depth=0)
        flat = load_tree(Path(folder) / "plan.yaml").load_all().flat()

    items = flat.loaded.plan.items
    ids = [each.id for each in items]
    assert len(set(ids)) == len(ids) == len(flat.loaded.criteria)
    assert len(dependency_order(items)) == len(items)
    for each in items:
        assert set(each.dependencies) <= set(ids)
        parents = each.id.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            above = flat.loaded.plan.todo("/".join(parents[:depth]))
            assert above.id not in each.dependencies
            assert set(above.dependencies) <= set(each.dependencies)
            assert any(
                each.id == name or each.id.startswith(name + "/") for name in flat.children[above.id]
            )


def _write_level(folder: Path, name: str, data: st.DataObject, depth: int) -> None:
    items: list[dict[str, Any]] = []
    for number in range(data.draw(st.integers(1, 3))):
        earlier = [item["id"] for item in items]
        after = data.draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
        keys: dict[str, Any] = {}
        if depth < tree_module.MAX_LEVELS and data.draw(st.booleans()):
            _write_level(folder, f"{name}-{number}", data, depth + 1)
            keys = {"sub_plan": f"{name}-{number}.yaml"}
        items.append(todo(f"t{number}", *after, **keys))
    write(folder / f"{name}.yaml", *items)
