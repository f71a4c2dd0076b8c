"""Plans as text: dumping, and rewriting that keeps everything unchanged by the revision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from planner.errors import PlanFileError
from planner.model.plan import AcceptanceCriteria, Plan, Policy, Todo
from planner.planfile.loader import load_plan, load_plan_text
from planner.planfile.writer import PlanDumper, dump_plan, plain, rewrite

WORDS = [
    *("on", "no", "~", "null", "007", "1.0", "2026-01-01", "1e3", "true", "=", "<<"),
    *("- a", "a: b", "# c", "x "),
]
ODD = "\u2028\x85\xa0\u200b\ufeff\U0001f600\t\r\n\x1b \"'\\:#-%@"
text = st.sampled_from(WORDS) | st.text(
    st.sampled_from("ab é" + ODD) | st.characters(exclude_categories=["Cs"])
)
line = text.filter(bool)
ids = st.from_regex(r"[A-Za-z0-9_.\-]{1,12}", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
extensions = st.dictionaries(text.map("x-".__add__), anything, max_size=2)

EVERY_FIELD = load_plan(Path(__file__).parents[3] / "fixtures/plans/every_field.yaml").plan
FIELDS = [(name, getattr(each, name)) for each in EVERY_FIELD.items for name in each.model_fields_set]
"""A name and a value for each key of the todos of a plan that has all keys."""
DRAWN = {"id", "title", "intent", "dependencies", "extensions", "is_parent", "acceptance_criteria"}
policies = st.sampled_from([Policy(), EVERY_FIELD.metadata])


@st.composite
def todos(draw: st.DrawFn) -> Todo:
    """Draw a todo with some of the fields of a plan that has all, and with texts of its own."""
    known = draw(st.lists(st.sampled_from(FIELDS), max_size=6))
    fields = {name: value for name, value in known if name not in DRAWN}
    if criteria := draw(st.none() | st.just(EVERY_FIELD.items[0].acceptance_criteria)):
        fields["acceptance_criteria"] = criteria
    return Todo(id="replaced", title=draw(line), intent=draw(text), extensions=draw(extensions), **fields)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    order = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    items: list[Todo] = []
    for at, todo_id in enumerate(order):
        earlier = tuple(draw(st.lists(st.sampled_from(order[:at]), unique=True))) if at else ()
        items.append(draw(todos()).model_copy(update={"id": todo_id, "dependencies": earlier}))
    optional = {"workflow_name": line, "metadata": policies, "root": st.just("."), "extensions": extensions}
    rest = draw(st.fixed_dictionaries({"todo_list_id": line}, optional=optional))
    return Plan(items=tuple(items), **rest)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans())
def test_a_written_plan_loads_as_an_equal_plan(tmp_path: Path, plan: Plan) -> None:
    for format in ("yaml", "json"):
        path = tmp_path / f"plan.{format}"
        path.write_text(dump_plan(plan, format=format), encoding="utf-8", newline="")
        assert load_plan(path).plan == plan


WRITTEN = """\
todo_list_id: p
items:
- id: "on"
  title: |-
    Two
    lines
  acceptance_criteria:
    tests:
    - cmd: pytest a.py
      timeout_seconds: 20
    expected_artifacts:
    - a.txt
    - path: b
      schema: s.json
- id: b
  title: B
  x-n: 1.0
"""


def test_only_explicitly_set_keys_are_written() -> None:
    plan = load_plan_text(WRITTEN, Path("plan.yaml")).plan
    empty = {"acceptance_criteria": AcceptanceCriteria()}
    plan = plan.model_copy(update={"items": (plan.items[0], plan.items[1].model_copy(update=empty))})
    assert dump_plan(plan, format="yaml") == WRITTEN
    assert json.loads(dump_plan(plan, format="json"))["items"][1] == {"id": "b", "title": "B", "x-n": 1.0}


class Indented(PlanDumper):
    """A dumper that indents the dashes of a list more than its key."""

    indents_lists = True


@st.composite
def block_texts(draw: st.DrawFn, plan: Plan) -> str:
    """Draw the plan as text in block style, or with its innermost values in flow style."""
    return yaml.dump(
        plain(plan),
        Dumper=draw(st.sampled_from([PlanDumper, Indented])),
        sort_keys=False,
        allow_unicode=True,
        indent=draw(st.sampled_from([2, 4])),
        width=draw(st.sampled_from([40, 100, 10_000])),
        default_flow_style=draw(st.sampled_from([False, None])),
    )


def json_text(draw: st.DrawFn, plan: Plan) -> str:
    indent = draw(st.sampled_from([None, 2, 4, "\t", 0]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), None]))
    return json.dumps(plain(plan), indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))


@st.composite
def revisions(draw: st.DrawFn, plan: Plan) -> Plan:
    """Draw the plan with some todos inserted, removed and changed, and other keys around them."""
    items = list(plan.items)
    for number in range(draw(st.integers(0, 3))):
        edit = draw(st.sampled_from(["insert", "remove", "change"]))
        at = draw(st.integers(0, len(items) - 1))
        if edit == "insert":
            known = [item.id for item in items]
            depends = draw(st.lists(st.sampled_from(known), max_size=2, unique=True))
            new = draw(todos()).model_copy(update={"id": f"new-{number}", "dependencies": tuple(depends)})
            items.insert(at + draw(st.integers(0, 1)), new)
        elif edit == "remove" and len(items) > 1:
            gone = items.pop(at).id
            items = [independent(item, gone) for item in items]
        elif edit == "change":
            items[at] = mixed(draw, items[at], draw(todos()))
    update: dict[str, Any] = {"items": tuple(items)}
    if draw(st.booleans()):
        update["metadata"] = draw(policies)
    if draw(st.booleans()):
        update["extensions"] = {**plan.extensions, **draw(extensions)}
    return plan.model_copy(update=update)


def independent(todo: Todo, gone: str) -> Todo:
    if gone not in todo.dependencies:
        return todo
    return todo.model_copy(
        update={"dependencies": tuple(each for each in todo.dependencies if each != gone)}
    )


def mixed(draw: st.DrawFn, todo: Todo, other: Todo) -> Todo:
    """Draw the todo with some of its fields replaced by those of another, whether set or not."""
    fields = {name: getattr(todo, name) for name in todo.model_fields_set}
    for name in sorted((todo.model_fields_set | other.model_fields_set) - {"id", "title", "dependencies"}):
        if draw(st.booleans()):
            fields.pop(name, None)
            if name in other.model_fields_set:
                fields[name] = getattr(other, name)
    return Todo(**fields)


def texts_of_todos(text: str, plan: Plan) -> dict[str, str]:
    """Return the text of each todo in a block text by id."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    items = next(value for key, value in root.value if key.value == "items")
    return {
        todo.id: text[node.start_mark.index : node.end_mark.index].rstrip()
        for todo, node in zip(plan.items, items.value, strict=True)
    }


def loaded_from(folder: Path, text: str, name: str) -> Any:
    path = folder / name
    path.write_bytes(text.encode())
    try:
        return load_plan_text(text, path)
    except PlanFileError:
        return None


def check(folder: Path, text: str, name: str, draw: st.DrawFn) -> tuple[Any, Plan, str]:
    """Check that a text is edited for a drawn revision; return loaded plan, revision and new text."""
    loaded = loaded_from(folder, text, name)
    assume(loaded is not None)
    revised = draw(revisions(loaded.plan))
    # Other tests cover revisions that break a rule for plans.
    assume(loaded_from(folder, dump_plan(revised, format="json"), "dumped.json") is not None)
    target = folder / f"new-{name}"
    found = rewrite(loaded, revised, target=target)
    again = load_plan_text(found.text, target).plan
    assert again == revised
    assert json.loads(dump_plan(again, format="json")) == json.loads(dump_plan(revised, format="json"))
    assert found.faithful
    assert rewrite(loaded, loaded.plan, target=target).text == loaded.path.read_bytes().decode()
    return loaded, revised, found.text


checked = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@checked
@given(data=st.data())
def test_a_revised_block_style_plan_is_correct_and_keeps_unchanged_todos(
    tmp_path: Path, data: st.DataObject
) -> None:
    text = data.draw(block_texts(data.draw(plans()))).rstrip("\n")
    text += data.draw(st.sampled_from(["", "\n", "\n\n"]))
    loaded, revised, found = check(tmp_path, text, "plan.yaml", data.draw)
    if not any(char in text for char in "\r\x85\u2028\u2029"):
        unchanged = {id(todo) for todo in loaded.plan.items}
        before, after = texts_of_todos(text, loaded.plan), texts_of_todos(found, revised)
        for todo in revised.items:
            if id(todo) in unchanged:
                assert after[todo.id] == before[todo.id]


@checked
@given(data=st.data())
def test_a_revised_json_plan_is_correct(tmp_path: Path, data: st.DataObject) -> None:
    check(tmp_path, json_text(data.draw, data.draw(plans())), "plan.json", data.draw)
