"""Hostile and malformed files: none crashes, hangs or exhausts memory; each gets a one-line error."""

from __future__ import annotations

import json
import os
import string
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import PlanFileError
from planner.planfile.document import Node, Refused, Source, compose
from planner.planfile.loader import load_plan
from planner.planfile.writer import dump_plan

HEAD = "todo_list_id: p\nitems:\n- {id: a, title: A}\n"


def fault_of(path: Path) -> str:
    with pytest.raises(PlanFileError) as caught:
        load_plan(path)
    assert len(caught.value.faults) == 1
    return caught.value.faults[0].removeprefix(str(path))


def fault_of_bytes(folder: Path, data: bytes, name: str = "plan.yaml") -> str:
    path = folder / name
    path.write_bytes(data)
    return fault_of(path)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b" \n", ":1:1: the file is empty, or contains only comments; write keys and values"),
        (b"\x7fELF\x02\x01\0\0", ":1:1: the control character U+007F is not allowed in YAML; delete it"),
        ("todo".encode("utf-16"), ":1:1: the byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: \xc3\xa4\nb: \xff\n", ":2:4: the byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"\xef\xbb\xbfab\xc3\n", ":1:3: the byte 0xc3 is not UTF-8; save the file as UTF-8"),
        (b"a: \x07\n", ":1:4: the control character U+0007 is not allowed in YAML; delete it"),
        (
            b"a: [1, 2\n",
            ":2:1: invalid YAML: while parsing a flow sequence: did not find expected ',' or ']'; "
            "close the bracket, or put a comma between its parts",
        ),
        (
            b"# Release\n- [ ] Parse *all*\n",
            ":2:7: a Markdown list is no plan in YAML; make one of it: planverify init --from FILE",
        ),
    ],
)
def test_a_file_that_is_not_plan_text_is_refused_with_a_reason(tmp_path: Path, data: bytes, fault: str):
    assert fault_of_bytes(tmp_path, data) == fault


def test_a_path_that_is_not_a_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    assert fault_of(tmp_path) == ": this is a directory; name the file in it"
    assert fault_of(tmp_path / "none.yaml") == ": the file does not exist; check the path"
    (tmp_path / "plain").write_text("x")
    assert "Not a directory" in fault_of(tmp_path / "plain" / "plan.yaml")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "symbolic links" in fault_of(tmp_path / "loop")
    assert "too long" in fault_of(tmp_path / ("x" * 300))
    with pytest.raises(PlanFileError, match="cannot be read"):
        load_plan(tmp_path / "nul\0.yaml")


def test_a_pipe_or_device_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero")):
        assert "it is a pipe, a socket or a device" in fault_of(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_plan_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(HEAD)
    path.chmod(0)
    assert "cannot be read" in fault_of(path)


def test_an_error_behind_blank_lines_is_reported_in_linear_time(tmp_path: Path) -> None:
    start = time.process_time()
    assert "invalid YAML" in fault_of_bytes(tmp_path, b"\n" * 40_000 + b"]", "plan.yaml")
    assert time.process_time() - start < 1


@pytest.mark.parametrize("name", ["plan.yaml", "plan.json"])
@pytest.mark.parametrize("unit", [b"[\n", b'{"a":'])
def test_a_megabyte_of_nesting_is_refused_quickly(tmp_path: Path, name: str, unit: bytes) -> None:
    start = time.perf_counter()
    assert "the nesting is deeper than 64" in fault_of_bytes(tmp_path, unit * (2**20 // len(unit)), name)
    assert time.perf_counter() - start < 60


def test_nesting_through_aliases_counts_as_depth(tmp_path: Path) -> None:
    lines = ["x-0: &a0 [1]", *(f"x-{i}: &a{i} [*a{i - 1}]" for i in range(1, 200))]
    shown = fault_of_bytes(tmp_path, ("\n".join(lines) + "\n" + HEAD).encode())
    assert "the nesting is deeper than 64" in shown


def test_repeated_aliases_of_a_long_text_count_towards_the_size(tmp_path: Path) -> None:
    text = f"x-a: &a {'y' * 90_000}\nx-b: [{', '.join(['*a'] * 1000)}]\n" + HEAD
    assert "with aliases expanded" in fault_of_bytes(tmp_path, text.encode())


def test_a_plan_with_too_many_bytes_or_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("planner.planfile.document.MAX_BYTES", 1000)
    monkeypatch.setattr("planner.planfile.document.MAX_NODES", 100)
    values = b"[" + b"1, " * 100 + b"1]"
    assert "is larger than" in fault_of_bytes(tmp_path, HEAD.encode() + b"#" * 1000)
    assert "holds more than" in fault_of_bytes(tmp_path, b"x-a: " + values)
    assert "holds more than" in fault_of_bytes(tmp_path, b'{"x-a": ' + values + b"}", "plan.json")


def test_a_plan_with_too_many_todos_is_refused_at_the_first_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.planfile.checks.MAX_TODOS", 3)
    branch = "- {id: t0_branch_01, title: B, parent_id: t0, branch_reason: timeout, is_temporary: true}\n"
    items = "".join(f"- {{id: t{number}, title: A}}\n" for number in range(3))
    path = tmp_path / "plan.yaml"
    path.write_text(f"todo_list_id: p\nitems:\n{branch}{items}")
    assert len(load_plan(path).plan.items) == 4, "a repair of a plan at its limit"
    fault = fault_of_bytes(tmp_path, f"todo_list_id: p\nitems:\n{items}- {{id: t3, title: A}}\n".encode())
    assert fault == ":6:3 items[3]: the plan has 4 todos, more than 3; split it into several plans"


TEXT = (Path(__file__).parents[3] / "fixtures/plans/every_field.yaml").read_text(encoding="utf-8")
INLINE = json.dumps(
    {"todo_list_id": "p", "items": [{"id": "a", "title": "A", "priority": 1.0, "verify": "pytest"}]}
)

quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check(folder: Path, data: bytes, name: str) -> None:
    """Check that a file either loads and survives a dump, or is refused with single-line faults."""
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


punctuation = st.text(st.sampled_from("[]{}:,-&*!|>'\"#%@`?~ \n\tab1.<\\é\u2028\x85"), max_size=80)


@quick
@given(data=st.data())
def test_a_mutated_plan_or_punctuation_loads_or_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    name, text = data.draw(
        st.sampled_from([("a.yaml", TEXT), ("a.json", INLINE), ("b.yaml", ""), ("b.json", "")])
    )
    text = text or data.draw(punctuation)
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
def test_known_keys_with_arbitrary_values_load_or_are_refused(
    tmp_path: Path, values: dict[str, object], item: object
) -> None:
    check(tmp_path, json.dumps({"todo_list_id": "p", "items": [item, values], **values}).encode(), "a.json")


@quick
@given(
    text=st.text(alphabet=st.sampled_from('[]{}:,"0123.eE+-truefalsn \n\\u'), max_size=30)
    | plain.map(json.dumps)
)
def test_json_is_accepted_exactly_if_the_standard_library_accepts_it(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=str, parse_int=str, parse_float=str)
    except ValueError:
        with pytest.raises(Refused):
            compose(Source(text), is_json=True)
        return
    document = compose(Source(text), is_json=True)
    if not document.faults:
        assert _plain(document.root) == _texts(expected)


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
