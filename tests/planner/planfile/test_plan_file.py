"""Valid contents of a plan file, and the faults reported for an unusable one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from text_bundles import read_bundle

from planner.errors import PlanFileError
from planner.model.plan import TodoStatus
from planner.model.taxonomy import BranchReason, Category, Role, RoutingKey
from planner.planfile.loader import load_plan

FIXTURES = Path(__file__).parents[3] / "fixtures"
INVALID = read_bundle(FIXTURES / "plans/invalid.txt")
EXPECTED: dict[str, list[str]] = json.loads((FIXTURES / "plans/invalid.json").read_text(encoding="utf-8"))


def write(folder: Path, text: str, name: str = "plan.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(path: Path, boundary: Path | None = None) -> str:
    with pytest.raises(PlanFileError) as caught:
        load_plan(path, boundary=boundary)
    return str(caught.value)


def todo(text: str) -> str:
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    return f"todo_list_id: p\nitems:\n- id: a\n  title: A\n{lines}"


@pytest.mark.parametrize("name", INVALID)
def test_a_broken_plan_is_refused_with_every_fault_and_its_position(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, INVALID[name], name)
    monkeypatch.chdir(tmp_path)
    shown = faults_of(Path(name), boundary=tmp_path).replace(os.path.realpath(tmp_path), "{folder}")
    assert shown.splitlines() == EXPECTED[name]


def test_every_spelling_of_a_field_is_read() -> None:
    """Words that YAML would convert stay text; numbers, truth values and aliases have their meaning."""
    plan = load_plan(FIXTURES / "plans" / "every_field.yaml").plan
    first, second, third = plan.items[:3]
    policy = plan.metadata

    assert (plan.todo_list_id, plan.workflow_name) == ("007", "on")
    assert plan.extensions == {
        "x-team": {"size": 3, "names": ["ann", "bob"], "remote": "yes", "since": "2026-01-01"}
    }
    assert (policy.auto_fix_mode, policy.require_planner_approval) == (True, None)
    assert (policy.max_branch_depth, policy.branch_timeout_seconds) == (3, 150.0)
    halt = policy.halt
    assert (halt.consecutive_failures, halt.identical_failures, halt.file_growth) == (None, 4, 0)
    assert (halt.security, policy.auto_approve_branches) == ("ask", False)
    assert policy.network == ("localhost", "10.0.0.1")
    assert (policy.budget.new_files, policy.budget.extensions) == (2, {"x-why": "small"})
    assert policy.flaky_retry.quarantine[0].ticket == "12"
    assert [each.id for each in (first, second, third)] == ["on", "2026-01-01", "1.0"]
    assert (first.title, first.intent, first.status) == ("1.0", "Two lines,\nkept.\n", TodoStatus.CLAIMED)
    assert first.failure_routing == {
        RoutingKey.IMPLEMENTATION_BUG: Role.CODER,
        Category.TEST_CRASH: Role.HUMAN,
    }
    assert first.acceptance_criteria.extensions == {"x-criteria": [None, True, 1, 1.5, "text"]}
    assert (third.acceptance_criteria, third.priority) == (first.acceptance_criteria, 5)


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (b"todo_list_id: small\nitems:\n- id: only\n  title: ok\n", ("small", "only", "ok")),
        (b"\xef\xbb\xbftodo_list_id: w\r\nitems:\r\n- id: a\r\n  title: ok\r\n", ("w", "a", "ok")),
        (
            b'{"todo_list_id": 7, "items": [{"id": true, "title": "\\ud83d\\ude00 ok"}]}',
            ("7", "true", "😀 ok"),
        ),
    ],
)
def test_plans_load_with_any_line_endings_and_record_their_origin(
    content: bytes, ids: tuple[str, str, str], tmp_path: Path
) -> None:
    path = tmp_path / ("p.json" if content.startswith(b"{") else "p.yaml")
    path.write_bytes(content)
    loaded = load_plan(path)
    (todo,) = loaded.plan.items
    assert (loaded.plan.todo_list_id, todo.id, todo.title) == ids
    assert (loaded.path, loaded.root) == (path, path.parent)
    assert loaded.digest == "sha256:" + hashlib.sha256(content).hexdigest()
    assert [criterion.id for criterion in loaded.criteria[todo.id]] == ["convention"]


@pytest.mark.parametrize(("name", "lifetime"), [("branch_todo.json", 600), ("branch_todo_rsi.json", None)])
def test_a_branch_todo_loads_unchanged(tmp_path: Path, name: str, lifetime: float | None) -> None:
    items = [{"id": "t2_indicators", "title": "T"}, json.loads((FIXTURES / "seeds" / name).read_text())]
    path = write(tmp_path, json.dumps({"todo_list_id": "p", "items": items}), "plan.json")
    branch = load_plan(path).plan.items[1]
    assert (branch.id, branch.parent_id) == ("t2_branch_01", "t2_indicators")
    assert (branch.agent_role, branch.branch_reason) == (Role.DEBUGGER, BranchReason.TEST_FAILURE)
    assert branch.is_temporary
    assert (branch.max_debug_attempts, branch.max_lifetime_seconds) == (3, lifetime)
    assert branch.acceptance_criteria.tests[0].timeout_seconds == 20


def test_control_characters_in_a_plan_are_not_shown(tmp_path: Path) -> None:
    text = '{"todo_list_id": "p", "\\u001b[31mred\\u202e\\u0007\\n": 1, "items": []}'
    shown = faults_of(write(tmp_path, text, "plan.json"))
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert "red" in shown
    assert len(shown.splitlines()) == 3


def test_a_todo_may_explicitly_delegate_its_criteria(tmp_path: Path) -> None:
    text = (
        "todo_list_id: p\nitems:\n"
        "- {id: a, title: A, acceptance_criteria: {tests: []}, verify: pytest}\n"
        "- {id: b, title: B, acceptance_criteria: {}, contract_path: c.json}\n"
        "- {id: c, title: C, acceptance_criteria: {}, requires_testing: false}\n"
        "- {id: d, title: D, acceptance_criteria: {}, sub_plan: d.yaml}\n"
    )
    assert len(load_plan(write(tmp_path, text)).plan.items) == 4


def test_a_symbolic_link_may_not_lead_out_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.json").write_text("{}")
    (root / "away").symlink_to(tmp_path / "outside")
    (root / "near").symlink_to(root / "inside")
    (root / "inside" / "x.json").symlink_to(tmp_path / "outside" / "x.json")
    text = todo(
        "contract_path: away/c.json\n"
        "test_file: near/test_a.py\n"
        "allowed_files: [away/**, near/**]\n"
        "acceptance_criteria:\n"
        "  tests: [{cmd: pytest away/test_x.py, fixture: inside/x.json}]\n"
        "  expected_artifacts: [near/../a, away, 'away/*.txt']"
    )
    shown = faults_of(write(root, text))
    refused = [line.split(": ")[0].split(" ")[-1] for line in shown.splitlines()[1:]]
    assert refused == [
        "items[0].contract_path",
        "items[0].allowed_files[0]",
        "items[0].acceptance_criteria.tests[0].cmd",
        "items[0].acceptance_criteria.tests[0].fixture",
        "items[0].acceptance_criteria.expected_artifacts[1]",
        "items[0].acceptance_criteria.expected_artifacts[2]",
    ]
    assert shown.count("through a symbolic link") == 6


def test_the_root_may_be_above_the_plan_but_not_above_the_boundary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project" / "plans"
    folder.mkdir(parents=True)
    path = write(folder, "root: ..\n" + todo(""))
    assert load_plan(path, boundary=tmp_path / "project").root == tmp_path / "project"
    assert "root: the root '..' is outside of" in faults_of(path, boundary=folder)
    monkeypatch.chdir(tmp_path / "project")
    assert load_plan(Path("plans/plan.yaml")).root == tmp_path / "project"
    monkeypatch.chdir(folder)
    assert faults_of(path).startswith("plan.yaml:1:7 root: "), "the boundary is the current directory"
    (folder / "link").symlink_to(tmp_path)
    path = write(folder, "root: link\n" + todo(""))
    assert "root: the root 'link' is outside of" in faults_of(path, boundary=folder)
    path = write(folder, f"root: {tmp_path}\n" + todo(""))
    assert "is an absolute path" in faults_of(path, boundary=tmp_path)


def test_a_number_too_large_in_an_extension_key_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path, todo("x-own: {a: [1e999, 5]}\nx-other: 99999999999999999999"))
    own = load_plan(path).plan.items[0].extensions
    assert own == {"x-own": {"a": ["1e999", 5]}, "x-other": "99999999999999999999"}
