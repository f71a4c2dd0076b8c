"""Writing a plan and loading it again changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.model.plan import (
    AcceptanceCriteria,
    ArtifactSpec,
    Budget,
    CommandSpec,
    ControllerTaskSpec,
    FlakyRetry,
    ManualSpec,
    MetricSpec,
    Operator,
    Plan,
    Policy,
    Quarantine,
    RiskLevel,
    Todo,
    TodoStatus,
)
from planner.model.taxonomy import BranchReason, Category, Role, RoutingKey
from planner.planfile.loader import load_plan
from planner.planfile.writer import dump_plan

WORDS = [
    "on",
    "no",
    "~",
    "null",
    "007",
    "1.0",
    "2026-01-01",
    "1e3",
    "true",
    "=",
    "<<",
    "- a",
    "a: b",
    "# c",
    "x ",
]
ODD = "\u2028\x85\xa0\u200b\ufeff\U0001f600\t\r\n\x1b \"'\\:#-%@"
text = st.sampled_from(WORDS) | st.text(
    st.sampled_from("ab é" + ODD) | st.characters(exclude_categories=["Cs"])
)
line = text.filter(bool)
ids = st.from_regex(r"[A-Za-z0-9_.\-]{1,12}", fullmatch=True)
names = st.from_regex(r"[A-Za-z0-9_ é\-]{1,8}(/[a-z0-9.]{1,5}x)?", fullmatch=True)
commands = st.sampled_from(
    ["pytest a.py", "pytest 'tests/a b.py::test_x[1]' -q", "python -m pytest x.py", "ruff check ."]
)
counts = st.integers(0, 1_000_000)
seconds = st.floats(0.001, 604_800, allow_nan=False)
numbers = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
extensions = st.dictionaries(text.map("x-".__add__), anything, max_size=2)


def some(model: type, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """The model with any selection of the optional fields set; a field named ``*`` in front is required."""
    required = {name.removeprefix("_"): value for name, value in fields.items() if name.startswith("_")}
    optional = {name: value for name, value in fields.items() if not name.startswith("_")}
    if "extensions" in model.model_fields:
        optional["extensions"] = extensions
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: model(**values))


def many(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(values, max_size=2).map(tuple)


artifacts = st.builds(ArtifactSpec, path=names) | some(
    ArtifactSpec,
    _path=names,
    json_schema=names | st.none(),
    min_bytes=counts,
    max_bytes=counts.map((2**21).__add__) | st.none(),
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
)
criteria = some(
    AcceptanceCriteria,
    _tests=st.lists(
        some(CommandSpec, _cmd=commands, timeout_seconds=seconds, fixture=names), min_size=1, max_size=2
    ).map(tuple),
    expected_artifacts=many(artifacts),
    metrics=many(some(MetricSpec, _name=line, _operator=st.sampled_from(Operator), _value=numbers)),
    manual=many(some(ManualSpec, _question=line, role=st.sampled_from(Role))),
)
todos = some(
    Todo,
    _title=line,
    intent=text | st.none(),
    status=st.sampled_from(TodoStatus),
    agent_role=st.sampled_from(Role),
    acceptance_criteria=criteria,
    verify=commands | st.just("python-quick"),
    test_command=commands,
    test_file=names,
    contract_path=names,
    allowed_files=many(names),
    risk_level=st.sampled_from(RiskLevel),
    controller_task_spec=some(ControllerTaskSpec, _type=line, target_file=names, hint=text),
    failure_routing=st.dictionaries(
        st.sampled_from([*RoutingKey, *Category]), st.sampled_from(Role), max_size=3
    ),
    max_retries=counts,
    timeout_seconds=seconds,
    priority=st.integers(-(10**6), 10**6),
    requires_testing=st.booleans(),
    sub_plan=names,
    is_parent=st.booleans(),
    sub_project_id=line,
    parent_id=ids,
    branch_depth=counts,
    via=ids,
    branch_reason=st.sampled_from(BranchReason),
    debug_instructions=text,
    is_temporary=st.booleans(),
    max_debug_attempts=counts,
    max_lifetime_seconds=seconds,
    target_agent_role=st.sampled_from(Role),
    _id=st.just("replaced"),
)
policies = some(
    Policy,
    auto_fix_mode=st.booleans(),
    require_planner_approval=st.booleans() | st.none(),
    max_branch_depth=counts,
    branch_timeout_seconds=seconds,
    flaky_retry=some(
        FlakyRetry,
        attempts=counts,
        quarantine=many(
            some(Quarantine, _nodeid=line, _owner=line, _ticket=line, _expires=st.dates().map(str))
        ),
    ),
    budget=some(Budget, wall_seconds=seconds, tokens=counts, cycles=counts, new_files=counts),
    network=st.sampled_from(["record", "deny"]) | many(line),
    protected_files=many(names),
)


def _named(todo: Todo) -> Todo:
    """A parent names the plan of its todos."""
    update = {"is_parent": todo.sub_plan is not None or todo.sub_project_id is not None}
    return todo.model_copy(update=update) if todo.is_parent else todo


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    order = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    items = [
        _named(draw(todos)).model_copy(
            update={
                "id": todo_id,
                "dependencies": tuple(draw(st.lists(st.sampled_from(order[:at]), unique=True)))
                if at
                else (),
            }
        )
        for at, todo_id in enumerate(order)
    ]
    optional = {"workflow_name": line, "metadata": policies, "root": st.just("."), "extensions": extensions}
    rest = draw(st.fixed_dictionaries({"todo_list_id": line}, optional=optional))
    return Plan(items=tuple(items), **rest)


@pytest.mark.parametrize("format", ["yaml", "json"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans())
def test_loading_what_was_written_gives_an_equal_plan(tmp_path: Path, plan: Plan, format: str) -> None:
    path = tmp_path / f"plan.{format}"
    path.write_text(dump_plan(plan, format=format), encoding="utf-8", newline="")
    assert load_plan(path).plan == plan


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_odd_texts_are_written_so_that_they_are_read_again(tmp_path: Path, format: str) -> None:
    around = (f"a{char}b" for char in ODD)
    odd = (*around, *ODD, *WORDS, "x\x85\n\x85y", " \n a", "a\n\n", "a \nb", "14809e546193")
    items = (
        Todo(id=f"t{number}", title=each, intent=each, extensions={"x-" + each: each})
        for number, each in enumerate(odd)
    )
    plan = Plan(todo_list_id=ODD, items=tuple(items))
    path = tmp_path / f"plan.{format}"
    path.write_text(dump_plan(plan, format=format), encoding="utf-8", newline="")

    assert load_plan(path).plan == plan


def test_only_what_was_set_is_written() -> None:
    plan = Plan(
        todo_list_id="p",
        items=(
            Todo(
                id="on",
                title="Two\nlines",
                acceptance_criteria=AcceptanceCriteria(
                    tests=(CommandSpec(cmd="pytest a.py", timeout_seconds=20),),
                    expected_artifacts=(
                        ArtifactSpec(path="a.txt", extensions={}),
                        ArtifactSpec(path="b", json_schema="s.json"),
                    ),
                ),
            ),
            Todo(id="b", title="B", acceptance_criteria=AcceptanceCriteria(), extensions={"x-n": 1.0}),
        ),
    )
    assert dump_plan(plan, format="yaml") == (
        "todo_list_id: p\n"
        "items:\n"
        '- id: "on"\n'
        "  title: |-\n"
        "    Two\n"
        "    lines\n"
        "  acceptance_criteria:\n"
        "    tests:\n"
        "    - cmd: pytest a.py\n"
        "      timeout_seconds: 20\n"
        "    expected_artifacts:\n"
        "    - a.txt\n"
        "    - path: b\n"
        "      schema: s.json\n"
        "- id: b\n"
        "  title: B\n"
        "  x-n: 1.0\n"
    )
    assert json.loads(dump_plan(plan, format="json"))["items"][1] == {"id": "b", "title": "B", "x-n": 1.0}
