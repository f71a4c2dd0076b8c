"""Rewriting of a plan file for a revised plan: text changes only where the plans differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import PlannerError
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, CommandSpec, Plan, RiskLevel, Todo
from planner.model.taxonomy import Role, RoutingKey
from planner.planfile.loader import load_plan
from planner.planfile.writer import Rewritten, rewrite

HERE = Path(__file__).parents[3]
NEW = Todo(id="new", title="New")

PLAN = """\
# The shop.
todo_list_id: shop   # its name

# What may happen.
metadata:
  max_debug_branch_depth: 1 # one

items:
  # Prices come first.
  - step_id: a
    title: "A: prices" # quoted
    description: >
      A long text,
      folded.
    acceptance_criteria:
      tests:
        # fast
        - cmd: pytest a.py # beside
          timeout_seconds: 20
        - cmd: pytest b.py
      expected_artifacts:
        - path: a.txt # why
        - b.txt
    # of a, still
      # and further in

  # Then b.
  - id: b
    title: B
    dependencies: [a]
# The end.
"""


def changed(value: Any, **fields: Any) -> Any:
    return value.model_copy(update=fields)


def without(todo: Todo, *names: str) -> Todo:
    return Todo(**{name: getattr(todo, name) for name in todo.model_fields_set - set(names)})


def with_todo(plan: Plan, todo: Todo) -> Plan:
    return changed(plan, items=tuple(todo if item.id == todo.id else item for item in plan.items))


def inserted(plan: Plan, at: int, *todos: Todo) -> Plan:
    return changed(plan, items=(*plan.items[:at], *todos, *plan.items[at:]))


class Example:
    """A plan file, and the results of rewriting it."""

    def __init__(self, folder: Path, text: str, name: str = "plan.yaml") -> None:
        self.path = folder / name
        self.path.write_bytes(text.encode())
        self.text = text
        self.loaded = load_plan(self.path)
        self.plan = self.loaded.plan

    def rewritten(self, revised: Plan, target: str | None = None) -> Rewritten:
        path = self.path.with_name(target or f"new{self.path.suffix}")
        found = rewrite(self.loaded, revised, target=path)
        path.write_bytes(found.text.encode())
        assert load_plan(path).plan == revised
        return found

    def text_of(self, revised: Plan) -> str:
        found = self.rewritten(revised)
        assert found.faithful
        return found.text

    def expect(self, revised: Plan, *replacements: tuple[str, str]) -> None:
        expected = self.text
        for old, new in replacements:
            assert expected.count(old) == 1, old
            expected = expected.replace(old, new)
        assert self.text_of(revised) == expected

    def refusal(self, revised: Plan, target: str = "new.yaml") -> str:
        with pytest.raises(PlannerError) as refused:
            rewrite(self.loaded, revised, target=self.path.with_name(target))
        return str(refused.value)


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example(tmp_path, PLAN)


@pytest.mark.parametrize(
    ("at", "old", "new"),
    [
        (0, "  # Prices come first.\n", "  - id: new\n    title: New\n\n  # Prices come first.\n"),
        (1, "      # and further in\n", "      # and further in\n\n  - id: new\n    title: New\n"),
    ],
)
def test_a_new_todo_is_inserted_between_the_comments_of_its_neighbours(
    example: Example, at: int, old: str, new: str
) -> None:
    example.expect(inserted(example.plan, at, NEW), (old, new))


def test_a_removed_todo_takes_its_comments_with_it(example: Example) -> None:
    start = PLAN.index("\n  # Then b.")
    end = PLAN.index("# The end.")
    revised = changed(example.plan, items=example.plan.items[:1])
    assert example.text_of(revised) == PLAN[:start] + PLAN[end:]
    start = PLAN.index("  # Prices come first.")
    end = PLAN.index("  # Then b.")
    revised = changed(example.plan, items=(without(example.plan.items[1], "dependencies"),))
    text = PLAN[:start] + PLAN[end:].replace("    dependencies: [a]\n", "")
    assert example.text_of(revised) == text


def test_an_edited_text_keeps_its_quotes_and_trailing_comment(example: Example) -> None:
    example.expect(
        with_todo(example.plan, changed(example.plan.items[0], title='It\'s "B"')),
        ('"A: prices" # quoted', '"It\'s \\"B\\"" # quoted'),
    )


def test_a_new_check_is_written_as_a_new_list_item(example: Example) -> None:
    todo = example.plan.items[0]
    criteria = todo.acceptance_criteria
    first, last = CommandSpec(cmd="ruff check ."), CommandSpec(cmd="pytest c.py", timeout_seconds=1.0)
    revised = changed(
        criteria,
        tests=(first, *criteria.tests, last),
        expected_artifacts=(*criteria.expected_artifacts, ArtifactSpec(path="c.txt")),
    )
    example.expect(
        with_todo(example.plan, changed(todo, acceptance_criteria=revised)),
        ("        # fast\n", "        - cmd: ruff check .\n        # fast\n"),
        (
            "        - cmd: pytest b.py\n",
            "        - cmd: pytest b.py\n        - cmd: pytest c.py\n          timeout_seconds: 1\n",
        ),
        ("        - b.txt\n", "        - b.txt\n        - c.txt\n"),
    )


WIDE = """\
todo_list_id: p
items:
-   id: a
    title: A
    acceptance_criteria:
        tests:
        -   cmd: pytest a.py
-
    id: b
    title: B
"""


def test_new_items_use_the_indentation_of_their_siblings(tmp_path: Path) -> None:
    example = Example(tmp_path, WIDE)
    todo = changed(
        example.plan.items[0], id="c", intent="One\nTwo", failure_routing={RoutingKey.TIMEOUT: Role.CODER}
    )
    example.expect(
        inserted(example.plan, 2, todo),
        (
            "    title: B\n",
            "    title: B\n-   id: c\n    title: A\n    intent: |-\n        One\n        Two\n"
            "    acceptance_criteria:\n        tests:\n        -   cmd: pytest a.py\n"
            "    failure_routing:\n        timeout: coder\n",
        ),
    )


@pytest.mark.parametrize("text", [PLAN, PLAN.rstrip("\n"), PLAN[: PLAN.index("# The end.") - 1]])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_endings_of_a_plan_are_kept(tmp_path: Path, text: str, newline: str) -> None:
    example = Example(tmp_path, text.replace("\n", newline))
    todo = changed(NEW, debug_instructions="One\n\n\tTwo \n  Three")
    found = example.text_of(inserted(example.plan, 2, todo))
    added = "\n\n  - id: new\n    title: New\n    debug_instructions: |-\n"
    added += "      One\n\n      \tTwo \n        Three"
    expected = text.replace("    dependencies: [a]", "    dependencies: [a]" + added)
    assert found == expected.replace("\n", newline)


FLOW = """\
todo_list_id: p
items: [
  {id: a, title: A, verify: pytest a.py},  # the first
  {id: b, title: B, dependencies: [a]} # the second
]
x-a: {one: 1, two: }
"""


def test_flow_style_yaml_stays_in_flow_style_and_reports_lost_comments(tmp_path: Path) -> None:
    example = Example(tmp_path, FLOW)
    a, b = example.plan.items
    found = example.rewritten(changed(example.plan, items=(changed(a, title="no", intent="x\ny"), NEW, b)))
    assert not found.faithful
    assert found.text == (
        'todo_list_id: p\nitems: [{id: a, title: "no", intent: "x\\ny", verify: pytest a.py}, '
        "{id: new, title: New}, {id: b, title: B, dependencies: [a]}]\nx-a: {one: 1, two: }\n"
    )
    extensions = {"x-a": {"one": True, "two": 2, "three, four": [None]}}
    text = example.text_of(changed(example.plan, extensions=extensions))
    said = "x-a: {one: true, two: 2, 'three, four': [null]}"
    assert text == FLOW.replace("x-a: {one: 1, two: }", said)


PRETTY = """\
{
  "todo_list_id": "p",
  "items": [
    {
      "id": "a",
      "title": "A",
      "dependencies": [],
      "allowed_files": ["a", "b"]
    },
    {
      "id": "b",
      "title": "B"
    }
  ]
}
"""


@pytest.mark.parametrize("tab", ["  ", "\t", "        "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_json_keeps_its_indentation_and_line_endings(tmp_path: Path, tab: str, newline: str) -> None:
    def spaced(text: str) -> str:
        return text.replace("  ", tab).replace("\n", newline)

    example = Example(tmp_path, spaced(PRETTY), "plan.json")
    a, b = example.plan.items
    todo = changed(NEW, debug_instructions="é\n", dependencies=("a",))
    a = changed(a, title="Ä", allowed_files=("b", "c"))
    revised = changed(example.plan, items=(a, todo, changed(b, priority=2)))
    example.expect(
        revised,
        ('"A"', '"Ä"'),
        ('["a", "b"]', '["b", "c"]'),
        (
            spaced("    },\n    {\n"),
            spaced(
                '    },\n    {\n      "id": "new",\n      "title": "New",\n      "dependencies": ["a"],\n'
                '      "debug_instructions": "é\\n"\n    },\n    {\n'
            ),
        ),
        (spaced('"B"\n'), spaced('"B",\n      "priority": 2\n')),
    )


def test_compact_json_stays_compact(tmp_path: Path) -> None:
    text = '{"todo_list_id":"p","items":[{"id":"a","title":"A","dependencies":[]},{"id":"b","title":"B"}]}'
    example = Example(tmp_path, text, "plan.json")
    a, b = example.plan.items
    todo = changed(NEW, allowed_files=("x", "y"))
    example.expect(
        changed(example.plan, items=(without(a, "dependencies"), todo, b)),
        (',"dependencies":[]},', '},{"id":"new","title":"New","allowed_files":["x","y"]},'),
    )


SHARED = """\
todo_list_id: p
x-base: &base
  priority: 3
  max_retries: 1
x-more: &more {risk_level: LOW}
items:
  - &first
    id: a
    title: A
    <<: *base
    acceptance_criteria: &criteria
      tests: [{cmd: pytest a.py}]
  - id: b
    title: B  # beside b
    <<: *base
    <<: *more
    acceptance_criteria: *criteria
"""


def test_an_edited_alias_beside_two_merge_keys_is_replaced_in_place(tmp_path: Path) -> None:
    example = Example(tmp_path, SHARED)
    assert (example.plan.items[1].priority, example.plan.items[1].risk_level) == (3, RiskLevel.LOW)
    other = AcceptanceCriteria(tests=(CommandSpec(cmd="pytest b.py"),))
    b = changed(example.plan.items[1], acceptance_criteria=other, priority=4)
    example.expect(
        inserted(with_todo(example.plan, b), 2, NEW),
        ("    acceptance_criteria: *criteria\n", "    acceptance_criteria:\n      tests:\n"
         "        - cmd: pytest b.py\n    priority: 4\n  - id: new\n    title: New\n"),
    )  # fmt: skip


def test_an_edit_of_an_anchored_value_regenerates_the_whole_plan(tmp_path: Path) -> None:
    example = Example(tmp_path, SHARED)
    other = AcceptanceCriteria(tests=(CommandSpec(cmd="pytest b.py"),))
    revised = with_todo(example.plan, changed(example.plan.items[0], acceptance_criteria=other))
    assert not example.rewritten(revised).faithful


ODD = """\
workflow_name: W
<<: &more
  x-y: 2
todo_list_id: p
x-a:
- - 1
  - 2
- |+
  kept

- x: 1
  y: 2
- ~
-
x-b: &b !!map
  k: 1
? x-c
: [1,
  2]
x-d: &d !!seq # d
- 1
x-e: 'a
  b'
x-f:
  |
  text
? x-g
x-h: []
items: &items
- {id: a, title: A}
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-a", [[2], "kept\n\n", {"y": 2}, {"z": []}, [1]]),
        ("x-a", []),
        ("x-b", {"l": 2}),
        ("x-c", [1, 2, 3]),
        ("x-d", {"now": "a\nmapping"}),
        ("x-e", ["a", "b"]),
        ("x-f", None),
        ("x-h", [{"a": 1}, {}]),
        ("x-y", "own"),
    ],
)
def test_unusual_yaml_spellings_are_edited_correctly(tmp_path: Path, name: str, value: object) -> None:
    example = Example(tmp_path, ODD)
    new = "\n- id: new\n  title: New"
    extensions = {**example.plan.extensions, name: value}
    revised = changed(example.plan, extensions=extensions)
    for place in (0, 1):
        text = example.text_of(inserted(revised, place, NEW))
        assert f"{new * (not place)}\n- {{id: a, title: A}}{new * place}\n" in text


def test_several_todos_are_removed_with_the_blank_lines_between_them(tmp_path: Path) -> None:
    parts = [f"- id: {name}\n  title: T\n" for name in "abcd"]
    head = "todo_list_id: p\nitems:\n"
    example = Example(tmp_path, head + "\n".join(parts))
    for kept in ("a", "b", "d", "ac", "bc", "bd", "abd"):
        items = tuple(todo for todo in example.plan.items if todo.id in kept)
        left = [part for part in parts if part[6] in kept]
        assert example.text_of(changed(example.plan, items=items)) == head + "\n".join(left)


@pytest.mark.parametrize(
    "path",
    sorted([*HERE.glob("examples/*/plan.yaml"), *HERE.glob("fixtures/plans/*.yaml")]),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_an_added_todo_leaves_every_line_of_a_real_plan_unchanged(path: Path) -> None:
    loaded = load_plan(path)
    todo = changed(
        NEW,
        acceptance_criteria=loaded.plan.items[0].acceptance_criteria,
        debug_instructions="# What failed\n\n    assert 1 == 2\n",
        extensions={"x-mine": {"attempts": 0}},
    )
    found = rewrite(loaded, inserted(loaded.plan, 1, todo), target=path.with_name("next.yaml"))
    assert found.faithful
    lines = iter(found.text.splitlines())
    assert all(line in lines for line in path.read_bytes().decode("utf-8-sig").splitlines())


def test_another_file_format_and_a_single_flow_mapping_are_written_from_scratch(example: Example) -> None:
    found = example.rewritten(example.plan, "new.json")
    assert found.text.startswith("{")
    assert not found.faithful
    flow = Example(example.path.parent, "{todo_list_id: p, items: [{id: a, title: A}]}\n")
    assert not flow.rewritten(inserted(flow.plan, 1, NEW)).faithful


def test_an_invalid_revision_is_refused_with_its_faults(example: Example) -> None:
    unknown = inserted(example.plan, 2, changed(NEW, dependencies=("nobody",)))
    assert "there is no todo 'nobody'" in example.refusal(unknown)
    twice = inserted(example.plan, 2, example.plan.items[0])
    assert "is taken by" in example.refusal(twice)
    odd_key = changed(example.plan, extensions={"y-a": 1})
    assert "'y-a' is not a key here" in example.refusal(odd_key)
    odd_value = changed(example.plan, extensions={"x-a": (1, 2)})
    assert "has a value that a plan file cannot have" in example.refusal(odd_value, "new.json")


def test_a_file_changed_since_loading_is_refused(example: Example) -> None:
    example.path.write_text(PLAN + "\n")
    assert "has changed since it was loaded; run the command again" in example.refusal(example.plan)
    example.path.unlink()
    assert "the file does not exist" in example.refusal(example.plan)


def test_a_copy_in_another_folder_gets_an_adjusted_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "plans").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("plans")
    example = Example(tmp_path / "plans", PLAN)
    monkeypatch.chdir(tmp_path)
    for target, root in {
        "elsewhere/new.yaml": "root: ../plans\n",
        "new.yaml": "root: plans\n",
        "link/new.yaml": "",
    }.items():
        found = rewrite(example.loaded, example.plan, target=Path(target))
        assert found.faithful
        assert found.text == PLAN.replace("# its name\n", f"# its name\n{root}")
    example = Example(tmp_path, PLAN.replace("# its name", "# its name\nroot: plans # there"))
    found = rewrite(example.loaded, example.plan, target=tmp_path / "plans" / "new.yaml")
    assert "\nroot: . # there\n" in found.text
