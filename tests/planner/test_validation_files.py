"""Contracts, fixtures and schemas exist or are made in time; todos may touch what they owe, and no more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from validation_samples import GOOD_TEST, findings, only, rules, todo

from planner.text.glob_patterns import allowed, globs_overlap, matches

CONTRACT = json.dumps({"contract_version": 1, "module": "m", "functions": [{"name": "f"}]})
FILES = {"t.py": GOOD_TEST, "u.py": GOOD_TEST, "c.json": CONTRACT, "src/a.py": "x = 1\n", "data.json": "1"}


def judge(
    folder: Path, *todos: dict[str, Any], files: dict[str, Any] | None = None, **plan: Any
) -> list[str]:
    return rules(folder, *todos, files={**FILES, **(files or {})}, **plan)


def own(**keys: Any) -> dict[str, Any]:
    return todo("a", "pytest t.py", **keys)


def test_a_contract_that_is_there_is_fine(tmp_path: Path) -> None:
    assert judge(tmp_path, own(contract_path="c.json")) == []


def test_a_contract_that_nobody_makes_is_an_error(tmp_path: Path) -> None:
    found = only("contract-missing", tmp_path, own(contract_path="cc.json"), files=FILES)
    assert (found.severity, found.place) == ("error", "items[0].contract_path")
    assert found.fix.startswith("did you mean c.json?")
    assert "architect" in found.fix


def test_a_contract_may_be_made_here_or_before(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["new.json"]}
    assert judge(tmp_path, own(contract_path="new.json", criteria=makes)) == []
    assert judge(tmp_path, own(contract_path="new.json", agent_role="architect")) == []
    architect = todo("b", "pytest u.py", agent_role="architect", contract_path="new.json")
    assert judge(tmp_path, architect, own(contract_path="new.json", dependencies=["b"])) == []
    assert judge(tmp_path, architect, own(contract_path="new.json")) == ["dependency-missing"]


def test_the_architect_before_it_is_asked_for_a_missing_contract(tmp_path: Path) -> None:
    plan = (
        todo("b", "pytest u.py", agent_role="architect"),
        own(contract_path="new.json", dependencies=["b"]),
    )
    assert "the architect's 'b'" in only("contract-missing", tmp_path, *plan, files=FILES).fix


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"contract_version": 2, "module": "m"}',
        '{"contract_version": 1, "module": "m", "functoins": []}',
        '{"contract_version": 1, "module": "m", "schemas": [{"type": 3}]}',
        "[" * 100_000,
        b"\xff\xfe",
        b"\0",
    ],
)
def test_a_contract_that_cannot_be_read_is_an_error(tmp_path: Path, text: str | bytes) -> None:
    assert judge(tmp_path, own(contract_path="x.json"), files={"x.json": text}) == ["contract-invalid"]


def test_a_contract_that_promises_nothing_is_found(tmp_path: Path) -> None:
    text = '{"contract_version": 1, "module": "m"}'
    assert judge(tmp_path, own(contract_path="x.json"), files={"x.json": text}) == ["contract-empty"]


def test_a_fixture_exists_or_is_made_before(tmp_path: Path) -> None:
    missing = own(spec={"fixture": "fixtures/x.json"})
    found = only("fixture-missing", tmp_path, missing, files=FILES)
    assert (found.severity, found.place) == ("error", "items[0].acceptance_criteria.tests[0].fixture")
    assert judge(tmp_path, own(spec={"fixture": "data.json"})) == []
    makes = {"expected_artifacts": ["fixtures/x.json"]}
    assert judge(tmp_path, own(spec={"fixture": "fixtures/x.json"}, criteria=makes)) == []
    first = todo("b", "pytest u.py", criteria=makes, spec={"fixture": "data.json"})
    late = own(spec={"fixture": "fixtures/x.json"})
    assert judge(tmp_path, first, {**late, "dependencies": ["b"]}) == []
    assert judge(tmp_path, first, late) == ["dependency-missing"]


def test_a_fixture_that_is_a_folder_is_found(tmp_path: Path) -> None:
    assert (
        "is a folder"
        in only("fixture-missing", tmp_path, own(spec={"fixture": "src"}), files=FILES).message
    )


def test_a_fixture_is_missed_once_for_each_todo(tmp_path: Path) -> None:
    plan = todo("a", "pytest t.py", "pytest u.py", spec={"fixture": "x.json"})
    plan["acceptance_criteria"]["tests"][1]["fixture"] = "x.json"
    assert judge(tmp_path, plan) == ["fixture-missing"]


def test_schemas_of_artifacts_are_read(tmp_path: Path) -> None:
    def artifact(schema: str) -> dict[str, Any]:
        return own(criteria={"expected_artifacts": [{"path": "out.json", "schema": schema}]})

    assert judge(tmp_path, artifact("no.json")) == ["schema-missing"]
    assert judge(tmp_path, artifact("s.json"), files={"s.json": '{"type": "object"}'}) == []
    for text in ('{"type": 3}', "3", "{"):
        assert judge(tmp_path, artifact("s.json"), files={"s.json": text}) == ["schema-invalid"]
    found = only("schema-invalid", tmp_path, artifact("s.json"), files=FILES)
    assert found.place == "items[0].acceptance_criteria.expected_artifacts[0].schema"


def test_what_a_todo_owes_is_among_its_allowed_files(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["src/a.py", "out/x.json", "gen/*.json"]}
    found = list(findings(tmp_path, own(criteria=makes, allowed_files=["src/**"]), files=FILES))
    assert [each.rule for each in found] == ["outside-allowed-files"] * 2
    assert '"out/x.json"' in found[0].fix
    assert '"gen/**"' in found[1].fix
    wide = own(criteria=makes, allowed_files=["src/**", "out", "gen/**"])
    assert judge(tmp_path, wide) == []
    assert judge(tmp_path, own(criteria=makes)) == []


def test_an_artifact_of_a_todo_before_need_not_be_touched(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["out/x.json"]}
    first = todo("b", "pytest u.py", criteria=makes)
    second = own(criteria=makes, allowed_files=["src/**"], dependencies=["b"])
    assert judge(tmp_path, first, second) == []


def test_the_target_file_is_allowed_and_not_protected(tmp_path: Path) -> None:
    task = {"type": "PATCH", "target_file": "src/a.py"}
    assert judge(tmp_path, own(controller_task_spec=task, allowed_files=["lib/**"])) == [
        "outside-allowed-files"
    ]
    assert judge(tmp_path, own(controller_task_spec=task, allowed_files=["src/**"])) == []
    plan = {"metadata": {"protected_files": ["src/**"]}}
    assert judge(tmp_path, own(controller_task_spec=task), **plan) == ["protected-artifact"]


def test_a_contract_that_an_architect_must_write_is_allowed(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"contract_path": "contracts/n.json", "agent_role": "architect"}
    assert judge(tmp_path, own(allowed_files=["src/**"], **keys)) == ["outside-allowed-files"]
    assert judge(tmp_path, own(allowed_files=["contracts/**"], **keys)) == []
    there = own(allowed_files=["src/**"], contract_path="c.json", agent_role="architect")
    assert judge(tmp_path, there) == []


def test_a_protected_file_that_must_be_made_is_an_error(tmp_path: Path) -> None:
    plan = {"metadata": {"protected_files": ["out/**"]}}
    assert judge(tmp_path, own(criteria={"expected_artifacts": ["out/x.json"]}), **plan) == [
        "protected-artifact"
    ]
    assert judge(tmp_path, own(criteria={"expected_artifacts": ["src/a.py"]}), **plan) == []
    there = {"metadata": {"protected_files": ["src/**"]}}
    assert judge(tmp_path, own(criteria={"expected_artifacts": ["src/a.py"]}), **there) == []


def test_the_judging_tests_are_out_of_reach(tmp_path: Path) -> None:
    found = only("judge-in-reach", tmp_path, own(allowed_files=["src/**", "*.py"]), files=FILES)
    assert found.place == "items[0].allowed_files[1]"
    assert "t.py" in found.message
    assert judge(tmp_path, own(allowed_files=["src/**"])) == []
    assert judge(tmp_path, own(allowed_files=["**", "!t.py"])) == []
    assert judge(tmp_path, own(allowed_files=["**"], agent_role="tester")) == []
    writes = own(allowed_files=["**"], criteria={"expected_artifacts": ["t.py"]})
    assert judge(tmp_path, writes) == []


def test_fixtures_and_test_folders_judge_too(tmp_path: Path) -> None:
    assert judge(tmp_path, own(allowed_files=["data.json"], spec={"fixture": "data.json"})) == [
        "judge-in-reach"
    ]
    files = {"tests/test_x.py": GOOD_TEST}
    folder = todo("a", "pytest tests", allowed_files=["tests/**"])
    found = only("judge-in-reach", tmp_path, folder, files=files)
    assert found.fix.startswith('remove "tests/**"')
    folder = todo("a", "pytest tests", allowed_files=["**"])
    assert 'add "!tests/**"' in only("judge-in-reach", tmp_path, folder, files=files).fix


def test_what_is_protected_is_not_allowed(tmp_path: Path) -> None:
    plan = {"metadata": {"protected_files": ["src/core/**"]}}
    found = only("protected-and-allowed", tmp_path, own(allowed_files=["src/**"]), files=FILES, **plan)
    assert '"!src/core/**"' in found.fix
    assert judge(tmp_path, own(allowed_files=["src/**", "!src/core/**"]), **plan) == []
    assert judge(tmp_path, own(allowed_files=["lib/**"]), **plan) == []


@pytest.mark.parametrize("pattern", ["**", "*", "**/*", "."])
def test_high_risk_grants_few_files(tmp_path: Path, pattern: str) -> None:
    keys = {"agent_role": "tester", "criteria": {"expected_artifacts": ["src/a.py"]}}
    assert judge(tmp_path, own(risk_level="HIGH", allowed_files=[pattern], **keys)) == ["risk-wide"]
    assert judge(tmp_path, own(risk_level="LOW", allowed_files=[pattern], **keys)) == []


def test_high_risk_without_a_list_of_files_is_found(tmp_path: Path) -> None:
    found = only(
        "risk-wide",
        tmp_path,
        own(risk_level="HIGH", criteria={"expected_artifacts": ["src/a.py"]}),
        files=FILES,
    )
    assert found.fix == 'write allowed_files: ["src/a.py"]'
    assert judge(tmp_path, own(risk_level="HIGH", allowed_files=["src/a.py"])) == []


def test_a_branch_may_name_its_report_and_nothing_else_that_it_may_not_touch(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["diagnostics/a_failure_report.json"]}
    branch = todo(
        "a1", "pytest t.py", parent_id="a", is_temporary=True, criteria=makes, allowed_files=["src/**"]
    )
    assert judge(tmp_path, own(allowed_files=["src/**"]), branch) == []


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_links_out_of_the_root_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("this is no Python, as reading it would tell\n")
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "conftest.py").symlink_to(tmp_path / "secret.py")
    (root / "tests" / "test_link.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(root / "pipe.json")
    assert rules(root, todo("a", "pytest tests"), files={"tests/test_a.py": GOOD_TEST}) == []
    assert "contract-missing" in rules(root, todo("a", "pytest tests", contract_path="pipe.json"))


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("src/a.py", "src/**", True),
        ("src/x/y/a.py", "src/**/a.py", True),
        ("src/a.py", "src/**/a.py", True),
        ("src/a.py", "src", True),
        ("src/a.py", "src/", True),
        ("srcs/a.py", "src", False),
        ("src/x/a.py", "src/*", True),
        ("src/x/a.py", "src/*.py", False),
        ("deep/in/a.py", "*.py", True),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "src/[ab].py", True),
        ("src/a.py", "src/?.py", True),
        ("src/ab.py", "src/?.py", False),
        ("a.py", "**", True),
        ("a.py", ".", True),
        ("a+b.py", "a+b.py", True),
        ("aab.py", "a+b.py", False),
    ],
)
def test_globs_name_paths(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


def test_later_patterns_take_out_and_put_in_again() -> None:
    assert allowed("src/a.py", ["src/**"])
    assert not allowed("src/a.py", ["src/**", "!src/a.py"])
    assert allowed("src/a.py", ["src/**", "!src/**", "src/a.py"])
    assert not allowed("src/a.py", [])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/**", "src/core/**", True),
        ("src/*.py", "src/test_*", True),
        ("src/*.py", "src/*.js", False),
        ("src/a/*.py", "lib/**", False),
        ("*.py", "src/a.py", True),
        ("**/secret", "src/**", True),
        ("a?c", "abc", True),
        ("a?c", "abd", False),
        ("a" + "/a" * 70, "b", False),
    ],
)
def test_whether_globs_can_meet(one: str, other: str, expected: bool) -> None:
    assert globs_overlap(one, other) is expected
    assert globs_overlap(other, one) is expected


_PARTS = st.sampled_from(["a", "b", "a*", "?", "**", "*", "[ab]"])


@given(st.lists(_PARTS, min_size=1, max_size=4), st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_a_path_that_both_globs_name_lets_them_meet(parts: list[str], names: list[str]) -> None:
    pattern, path = "/".join(parts), "/".join(names)
    if matches(path, pattern):
        assert globs_overlap(pattern, path)
