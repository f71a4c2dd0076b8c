"""Whatever stands in a file, it is a plan or a PlanFileError; and JSON is what Python takes for JSON."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import PlanFileError
from planner.planfile.document import Node, Refused, Source, compose
from planner.planfile.loader import load_plan
from planner.planfile.writer import dump_plan

VALID = Path(__file__).parents[3] / "fixtures" / "plans" / "valid"
TEXT = (VALID / "every_field.yaml").read_text(encoding="utf-8")
INLINE = json.dumps(
    {"todo_list_id": "p", "items": [{"id": "a", "title": "A", "priority": 1.0, "verify": "pytest"}]}
)

quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check(folder: Path, data: bytes, name: str) -> None:
    """A file is a plan, which is the same when it is dumped, or an error of single lines about it."""
    path = folder / name
    path.write_bytes(data)
    faults: tuple[str, ...] = ()
    plan = None
    try:
        plan = load_plan(path).plan
    except PlanFileError as error:
        faults = error.faults
    assert (plan is None) == bool(faults)
    assert all(line.startswith(str(path)) and min(line) >= " " for line in faults)
    if plan is not None:
        again = folder / f"again_{name}"
        again.write_text(dump_plan(plan, format="json" if name.endswith("json") else "yaml"))
        assert load_plan(again).plan == plan


@quick
@given(data=st.binary(max_size=200), name=st.sampled_from(["a.yaml", "a.json"]))
def test_arbitrary_bytes_are_a_plan_or_an_error(tmp_path: Path, data: bytes, name: str) -> None:
    check(tmp_path, data, name)


@quick
@given(
    text=st.text(alphabet=st.sampled_from("[]{}:,-&*!|>'\"#%@`?~ \n\tab1.<\\é\u2028\x85"), max_size=80),
    name=st.sampled_from(["a.yaml", "a.json"]),
)
def test_arbitrary_marks_are_a_plan_or_an_error(tmp_path: Path, text: str, name: str) -> None:
    check(tmp_path, text.encode(), name)
    check(tmp_path, f"todo_list_id: p\nitems:\n- id: a\n  title: {text}\n".encode(), name)


@quick
@given(data=st.data())
def test_a_mutated_plan_is_a_plan_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([TEXT, INLINE]))
    name = "a.yaml" if text is TEXT else "a.json"
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        insert = data.draw(st.text(alphabet=string.punctuation + " \nab0\x00\ud7ff", max_size=6))
        text = text[:start] + insert + text[end:]
    check(tmp_path, text.encode(), name)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = [
    *("id", "title", "acceptance_criteria", "tests", "expected_artifacts", "metrics", "manual", "verify"),
    *("dependencies", "failure_routing", "sub_plan", "root", "metadata", "items", "network", "x-a"),
]
wild = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=15,
)


@quick
@given(values=st.dictionaries(st.sampled_from(KEYS), wild, max_size=6), item=wild)
def test_known_keys_with_wild_values_are_a_plan_or_an_error(
    tmp_path: Path, values: dict[str, object], item: object
) -> None:
    check(tmp_path, json.dumps({"todo_list_id": "p", "items": [item, values], **values}).encode(), "a.json")


@quick
@given(
    text=st.text(alphabet=st.sampled_from('[]{}:,"0123.eE+-truefalsn \n\\u'), max_size=30)
    | plain.map(json.dumps)
)
def test_json_is_accepted_exactly_where_python_accepts_it(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except ValueError:
        with pytest.raises(Refused):
            compose(Source(text), is_json=True)
        return
    document = compose(Source(text), is_json=True)
    if not document.faults:
        assert _plain(document.root) == _texts(expected)


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _plain(node: Node) -> object:
    if isinstance(node.value, list):
        return [_plain(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: _plain(value) for key, (_, value) in node.value.items()}
    return node.value


def _texts(value: object) -> object:
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    return value if isinstance(value, str) else json.dumps(value)
