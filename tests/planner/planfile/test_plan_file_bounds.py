"""Hostile and hapless files: none crashes, hangs or fills the memory; each gets one clear line."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest

from planner.errors import PlanFileError
from planner.model.plan import MAX_TODOS
from planner.planfile import document
from planner.planfile.loader import load_plan

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
        (b"", ": the file is empty; a plan needs at least a todo_list_id and one item"),
        (b" \n\t\n", ": the file is empty; a plan needs at least a todo_list_id and one item"),
        (b"\x7fELF\x02\x01\0\0", ": the file is binary or UTF-16; a plan is YAML or JSON, saved as UTF-8"),
        ("todo".encode("utf-16"), ": the file is binary or UTF-16; a plan is YAML or JSON, saved as UTF-8"),
        (b"a: \xc3\xa4\nb: \xff\n", ":2:4: the byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"\xef\xbb\xbfab\xc3\n", ":1:3: the byte 0xc3 is not UTF-8; save the file as UTF-8"),
        (b"a: \x07\n", ":1:4: the control character U+0007 is not allowed in YAML; delete it"),
        (
            b"a: [1, 2\n",
            ":2:1: invalid YAML: while parsing a flow sequence: did not find expected ',' or ']'; "
            "close the bracket, or put a comma between its parts",
        ),
    ],
)
def test_a_file_that_is_no_text_of_a_plan_says_why(tmp_path: Path, data: bytes, fault: str) -> None:
    assert fault_of_bytes(tmp_path, data) == fault


def test_a_path_that_is_no_file_says_why(tmp_path: Path) -> None:
    assert fault_of(tmp_path) == ": this is a directory; name the plan file in it"
    assert fault_of(tmp_path / "none.yaml") == ": the file does not exist; check the path"
    (tmp_path / "plain").write_text("x")
    assert "Not a directory" in fault_of(tmp_path / "plain" / "plan.yaml")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "symbolic links" in fault_of(tmp_path / "loop")
    assert "too long" in fault_of(tmp_path / ("x" * 300))
    with pytest.raises(PlanFileError, match="cannot be read"):
        load_plan(tmp_path / "nul\0.yaml")


def test_a_pipe_or_a_device_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero")):
        assert "it is a pipe, a socket or a device" in fault_of(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(HEAD)
    path.chmod(0)
    assert "may not be read" in fault_of(path)


@pytest.mark.parametrize("name", ["plan.yaml", "plan.json"])
@pytest.mark.parametrize("unit", [b"[", b'{"a":', b"[\n", b"{a: "])
def test_a_megabyte_of_nesting_is_refused_at_once(tmp_path: Path, name: str, unit: bytes) -> None:
    start = time.perf_counter()
    shown = fault_of_bytes(tmp_path, unit * (2**20 // len(unit)), name)
    assert "the nesting is deeper than 64" in shown or (name == "plan.json" and unit == b"{a: ")
    assert time.perf_counter() - start < 60


def test_depth_through_aliases_counts_as_depth(tmp_path: Path) -> None:
    lines = ["x-0: &a0 [1]", *(f"x-{i}: &a{i} [*a{i - 1}]" for i in range(1, 200))]
    shown = fault_of_bytes(tmp_path, ("\n".join(lines) + "\n" + HEAD).encode())
    assert "the nesting is deeper than 64" in shown


def test_aliases_of_one_long_text_are_weighed(tmp_path: Path) -> None:
    text = f"x-a: &a {'y' * 90_000}\nx-b: [{', '.join(['*a'] * 1000)}]\n" + HEAD
    assert "with aliases expanded" in fault_of_bytes(tmp_path, text.encode())


def test_more_bytes_or_values_than_a_plan_can_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.planfile.document.MAX_BYTES", 1000)
    monkeypatch.setattr("planner.planfile.document.MAX_NODES", 100)
    values = b"[" + b"1, " * 100 + b"1]"

    assert "is larger than" in fault_of_bytes(tmp_path, HEAD.encode() + b"#" * 1000)
    assert "holds more than" in fault_of_bytes(tmp_path, b"x-a: " + values)
    assert "holds more than" in fault_of_bytes(tmp_path, b'{"x-a": ' + values + b"}", "plan.json")


def test_loading_leaves_the_garbage_collector_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(HEAD)
    load_plan(tmp_path / "plan.yaml")
    assert gc.isenabled()
    gc.disable()
    try:
        load_plan(tmp_path / "plan.yaml")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_pure_python_parser_serves_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import yaml

    class Pure(document.NodeBounds, yaml.SafeLoader): ...

    monkeypatch.setattr(document, "_Loader", Pure)
    (tmp_path / "plan.yaml").write_text(HEAD + "  # end\n- id: 'no'\n  title: 'x'\n  intent: |\n    a\n")
    plan = load_plan(tmp_path / "plan.yaml").plan
    assert [item.id for item in plan.items] == ["a", "no"]
    assert fault_of_bytes(tmp_path, b"a: b: c\n").startswith(":1:5: invalid YAML: mapping values")
    assert "deeper than 64" in fault_of_bytes(tmp_path, b"[" * 10_000)


def test_a_plan_of_too_many_todos_is_refused_at_the_first_that_is_too_many(tmp_path: Path) -> None:
    items = [f"- {{id: t{number}, title: A}}\n" for number in range(MAX_TODOS + 1)]
    path = tmp_path / "plan.yaml"
    path.write_text("todo_list_id: p\nitems:\n" + "".join(items[:-1]))
    assert len(load_plan(path).plan.items) == MAX_TODOS
    branch = "- {id: t0_branch_01, title: B, parent_id: t0, branch_reason: timeout, is_temporary: true}\n"
    path.write_text("todo_list_id: p\nitems:\n" + branch + "".join(items[:-1]))
    assert len(load_plan(path).plan.items) == MAX_TODOS + 1, "a repair of a plan at its limit"
    fault = fault_of_bytes(tmp_path, ("todo_list_id: p\nitems:\n" + "".join(items)).encode())
    assert fault == (
        ":2003:3 items[2000]: the plan has 2,001 todos, more than 2,000; split it into several plans"
    )
