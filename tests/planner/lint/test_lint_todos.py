"""Lint rules for todos and for plans as a whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lint_samples import GOOD_TEST, findings, only, rules, todo
from text_bundles import write_files

from planner import lint
from planner.catalog.tables import load_table
from planner.errors import PlannerError
from planner.lint import LINT_RULES
from planner.lint.facts import TestModule
from planner.lint.rules import reasons_for_phases
from planner.model.plan import AcceptanceCriteria, Todo
from planner.planfile.project_facts import configured_tools
from planner.planfile.tree import load_tree
from planner.planfile.validation import validate_plan, validate_plan_tree

FILES: dict[str, Any] = {
    "t.py": GOOD_TEST,
    "u.py": GOOD_TEST,
    "c.json": "{}",
    "src/a.py": "x = 1\n",
    "data.json": "1",
    "product.py": "",
}


def own(name: str = "a", **keys: Any) -> dict[str, Any]:
    return todo(name, "pytest t.py", **keys)


def judge(
    folder: Path, *todos: dict[str, Any], files: dict[str, Any] | None = None, **plan: Any
) -> list[str]:
    return rules(folder, *todos, files={**FILES, **(files or {})}, **plan)


@pytest.mark.parametrize(
    ("seconds", "keys", "expected"),
    [
        (3601, {}, True),
        (3600, {}, False),
        (0.5, {}, True),
        (90, {"timeout_seconds": 60}, True),
        (60, {"timeout_seconds": 60}, False),
    ],
)
def test_unreasonable_time_limits_are_reported(
    tmp_path: Path, seconds: float, keys: dict[str, Any], expected: bool
) -> None:
    found = judge(tmp_path, own(spec={"timeout_seconds": seconds}, **keys))
    assert found == ["timeout-unreasonable"] * expected
    assert judge(tmp_path, own(timeout_seconds=60)) == [], "the default is not judged"
    assert judge(tmp_path, todo("a", "ruff check .", spec={"timeout_seconds": 0.5})) == []


def test_a_todo_whose_limits_exceed_those_of_the_plan_is_an_error(tmp_path: Path) -> None:
    plan = {"metadata": {"max_todo_seconds": 100}}
    for seconds, found in ((101, ["todo-seconds-exceeded"]), (100, [])):
        assert judge(tmp_path, own(timeout_seconds=seconds, spec={"timeout_seconds": 50}), **plan) == found
    two = todo("a", "pytest t.py", "pytest u.py", spec={"timeout_seconds": 60})
    two["acceptance_criteria"]["tests"][1]["timeout_seconds"] = 70
    assert "130 s" in only("todo-seconds-exceeded", tmp_path, two, files=FILES, **plan).message


@pytest.mark.parametrize(("retries", "found"), [(0, 1), (1, 0), (10, 0), (11, 1)])
def test_unreasonable_retries_are_reported(tmp_path: Path, retries: int, found: int) -> None:
    assert judge(tmp_path, own(max_retries=retries)) == ["retries-unreasonable"] * found


def test_todos_without_the_failure_routing_of_the_others_are_named(tmp_path: Path) -> None:
    routed = [own(name, failure_routing={"timeout": "coder"}) for name in "ab"]
    found = only("routing-missing", tmp_path, *routed, own("c"), own("d"), files=FILES)
    assert (found.message, found.todo_id) == ("2 of 4 todos have failure_routing; without: 'c', 'd'", None)
    assert judge(tmp_path, routed[0], own("c"), own("d")) == []


def branch(name: str, parent: str, **keys: Any) -> dict[str, Any]:
    return own(name, parent_id=parent, is_temporary=True, **keys)


@pytest.mark.parametrize(
    ("branches", "said"),
    [
        ([branch("x", "nobody")], "there is no todo 'nobody'"),
        ([branch("a1", "a"), branch("a2", "a1")], "'a1' is itself a branch"),
        ([branch("a1", "a", via="nobody")], "'nobody' is not a branch of 'a'"),
        ([branch("a1", "a", via="a")], "'a' is not a branch of 'a'"),
        ([branch("a1", "a", branch_depth=3)], "is 3 deep, but max_branch_depth is 2"),
        ([branch("a1", "a", dependencies=["a"])], "'a1' repairs 'a' but waits for it"),
        ([own("b", dependencies=["a"]), branch("a1", "a", dependencies=["b"])], "but waits for it"),
        ([own("b", is_temporary=True)], "'b' is temporary, but repairs no todo"),
        ([own("a1", parent_id="a", is_temporary=False)], "'a1' is a branch, which is temporary"),
        ([own("b", is_temporary=True), branch("a1", "a", dependencies=["b"])], None),
        ([branch("a1", "a", branch_depth=1), branch("a2", "a", via="a1", branch_depth=2)], None),
    ],
)
def test_a_branch_must_repair_a_primary_todo(
    tmp_path: Path, branches: list[dict[str, Any]], said: str | None
) -> None:
    found = [each for each in findings(tmp_path, own(), *branches, files=FILES) if each.severity == "error"]
    assert {each.rule for each in found} == ({"branch-invalid"} if said else set())
    assert said is None or any(said in each.message for each in found)


STEPS = ("data_loading", "indicators", "entry", "exit")


def strategy(*names: str, chained: bool = True) -> list[dict[str, Any]]:
    return [
        own(name, title=name.replace("_", " "), dependencies=[names[at - 1]] if at and chained else [])
        for at, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("todos", "said"),
    [
        (strategy(*STEPS), []),
        (strategy(*STEPS[:3]), ["the step 'exit conditions'"]),
        (strategy(*STEPS, chained=False), ["does not follow and depend on"] * 3),
        (strategy("indicators", "data_loading", "entry", "exit"), ["does not follow and depend on"] * 2),
    ],
)
def test_the_steps_of_a_named_template_must_be_present_and_in_order(
    tmp_path: Path, todos: list[dict[str, Any]], said: list[str]
) -> None:
    found = findings(tmp_path, *todos, files=FILES, **{"x-template": "strategy"})
    assert all(each.rule == "template-mismatch" for each in found)
    assert all(text in each.message for text, each in zip(said, found, strict=False))
    assert bool(found) is bool(said)


def test_an_unknown_template_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    found = only("template-mismatch", tmp_path, own(), files=FILES, **{"x-template": "stratgy"})
    assert found.fix == "did you mean 'strategy'?"


def test_a_contract_must_exist_or_be_made_by_an_earlier_architect_todo(tmp_path: Path) -> None:
    assert judge(tmp_path, own(contract_path="c.json")) == []
    found = only("contract-missing", tmp_path, own(contract_path="cc.json"), files=FILES)
    assert (found.severity, found.place) == ("error", "items[0].contract_path")
    assert found.fix.startswith("did you mean c.json?")
    assert judge(tmp_path, own(contract_path="new.json", agent_role="architect")) == []
    architect = todo("b", "pytest u.py", agent_role="architect", contract_path="new.json")
    assert judge(tmp_path, architect, own(contract_path="new.json", dependencies=["b"])) == []
    assert judge(tmp_path, architect, own(contract_path="new.json")) == ["dependency-missing"]
    assert "an architect's todo before it" in found.fix


def test_fixtures_and_schemas_must_exist_or_be_made_earlier(tmp_path: Path) -> None:
    found = only("fixture-missing", tmp_path, own(spec={"fixture": "fixtures/x.json"}), files=FILES)
    assert (found.severity, found.place) == ("error", "items[0].acceptance_criteria.tests[0].fixture")
    makes = {"expected_artifacts": ["fixtures/x.json"]}
    assert judge(tmp_path, own(spec={"fixture": "fixtures/x.json"}, criteria=makes)) == []
    first = todo("b", "pytest u.py", criteria=makes, spec={"fixture": "data.json"})
    late = own(spec={"fixture": "fixtures/x.json"})
    assert judge(tmp_path, first, {**late, "dependencies": ["b"]}) == []
    assert judge(tmp_path, first, late) == ["dependency-missing"]
    out = {"expected_artifacts": [{"path": "out.json", "schema": "no.json"}]}
    assert judge(tmp_path, own(criteria=out)) == ["schema-missing"]


def test_expected_artifacts_must_be_within_the_allowed_files(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["src/a.py", "out/x.json", "gen/*.json"]}
    found = findings(tmp_path, own(criteria=makes, allowed_files=["src/**"]), files=FILES)
    assert [each.rule for each in found] == ["outside-allowed-files"] * 2
    assert '"out/x.json"' in found[0].fix
    assert judge(tmp_path, own(criteria=makes, allowed_files=["src/**", "out", "gen/**"])) == []
    first = todo("b", "pytest u.py", criteria={"expected_artifacts": ["out/x.json"]})
    second = own(criteria=makes, allowed_files=["src/**", "gen/**"], dependencies=["b"])
    assert judge(tmp_path, first, second) == [], "it is made before"


@pytest.mark.parametrize(
    ("keys", "protected", "expected"),
    [
        ({"controller_task_spec": {"type": "P", "target_file": "src/a.py"}}, [], 0),
        ({"controller_task_spec": {"type": "P", "target_file": "lib/a.py"}}, [], 1),
        ({"controller_task_spec": {"type": "P", "target_file": "src/a.py"}}, ["src/**"], 1),
        ({"contract_path": "contracts/n.json", "agent_role": "architect"}, [], 1),
        ({"criteria": {"expected_artifacts": ["src/new.py"]}}, ["src/**"], 1),
        ({"criteria": {"expected_artifacts": ["src/a.py"]}}, ["src/**"], 0),
    ],
)
def test_targets_and_contracts_must_be_allowed_and_not_protected(
    tmp_path: Path, keys: dict[str, Any], protected: list[str], expected: int
) -> None:
    found = judge(tmp_path, own(allowed_files=["src/**"], **keys), metadata={"protected_files": protected})
    assert found == ["outside-allowed-files"] * expected


@pytest.mark.parametrize(
    ("todos", "expected"),
    [
        ([own(allowed_files=["shop/cart.py"])], 1),
        ([own(allowed_files=["shop/**"])], 0),
        ([own(allowed_files=["shop/invoice/*"])], 0),
        ([own()], 0),
        ([own(allowed_files=["shop/cart.py"], dependencies=["b"]), todo("b", "pytest u.py")], 0),
    ],
)
def test_a_missing_module_that_tests_import_must_be_allowed(
    tmp_path: Path, todos: list[dict[str, Any]], expected: int
) -> None:
    source = "from shop.invoice import total\nimport shop.cart, os.path\n"
    guarded = "try:\n    import shop.fast\nexcept ImportError:\n    pass\n"
    guarded += "if TYPE_CHECKING:\n    import shop.types\nwith raises(ImportError):\n    import shop.no\n"
    inner = "import client.api\n"  # of client/client, as with pythonpath = client
    files = {
        "t.py": source + guarded + inner,
        "u.py": GOOD_TEST,
        "shop/cart.py": "",
        "client/client/api.py": "",
    }
    found = [each.message for each in findings(tmp_path, *todos, files=files)]
    wanted = "t.py:1 imports shop.invoice, but shop/invoice.py does not exist, and 'a' may not write it"
    assert found == [wanted] * expected


def test_a_branch_need_not_be_allowed_to_write_its_failure_report(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["diagnostics/a_failure_report.json"]}
    branched = branch("a1", "a", criteria=makes, allowed_files=["src/**"])
    assert judge(tmp_path, own(allowed_files=["src/**"]), branched) == []


def test_tests_that_judge_a_todo_must_not_be_among_its_allowed_files(tmp_path: Path) -> None:
    found = only("judge-in-reach", tmp_path, own(allowed_files=["src/**", "*.py"]), files=FILES)
    assert found.place == "items[0].allowed_files[1]"
    assert judge(tmp_path, own(allowed_files=["**", "!t.py"])) == []
    assert judge(tmp_path, own(allowed_files=["**"], agent_role="tester")) == []
    assert judge(tmp_path, own(allowed_files=["**"], criteria={"expected_artifacts": ["t.py"]})) == []
    data = own(allowed_files=["data.json"], spec={"fixture": "data.json"})
    assert judge(tmp_path, data) == ["judge-in-reach"]


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_pipes_and_links_that_leave_the_root_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("this is no Python, as reading it would tell\n")
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "conftest.py").symlink_to(tmp_path / "secret.py")
    (root / "tests" / "test_link.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(root / "pipe.json")
    assert rules(root, todo("a", "pytest tests"), files={"tests/test_a.py": GOOD_TEST}) == []
    assert "contract-missing" in rules(root, todo("a", "pytest tests", contract_path="pipe.json"))


def test_a_todo_with_too_many_criteria_should_be_split(tmp_path: Path) -> None:
    many = own(criteria={"expected_artifacts": [f"src/{at}.py" for at in range(8)]})
    assert "has 9 criteria, more than 8" in only("todo-too-large", tmp_path, many, files=FILES).message
    assert judge(tmp_path, own(criteria={"expected_artifacts": ["src/a.py", "docs/b.md"]})) == []


def make(*titles: str, folders: tuple[str, ...] = ()) -> list[Todo]:
    made = [{"expected_artifacts": [f"{each}/m.py"]} if each else {} for each in folders]
    made += [{}] * (len(titles) - len(made))
    return [
        Todo(id=f"t{at}", title=title, acceptance_criteria=AcceptanceCriteria.model_validate(made[at]))
        for at, title in enumerate(titles)
    ]


@pytest.mark.parametrize(
    ("todos", "reason"),
    [
        (make(*"abcdefghijklmnop"), "16 todos are on one level, more than 15"),
        (make(*"abcdefghijklmno"), None),
        (make("Stage I - Load", "b", "c", "d", "e", "Stage II: Fit"), "the titles name 2 phases"),
        (make("Stage I - Load", "b", "c", "d", "Stage II: Fit"), None),
        (make(*"abcdef", folders=("pay", "pay", "ship", "ship", "find", "find")), "span 3 domains: pay"),
        (make(*"abcdef", folders=("pay", "pay", "ship", "ship", "tests", "tests")), None),
    ],
)
def test_phases_are_suggested_for_many_todos_titled_phases_or_domains(
    todos: list[Todo], reason: str | None
) -> None:
    found = reasons_for_phases(todos)
    assert bool(found) is bool(reason)
    assert reason is None or reason in found[0]


def test_a_flat_plan_of_29_todos_should_be_divided(tmp_path: Path) -> None:
    names = [f"part{at}" for at in range(29)]
    found = only("hierarchy-suggested", tmp_path, *(todo(n, requires_testing=False) for n in names))
    assert found.message == "29 todos are on one level, more than 15"


ROOT = Path(__file__).parents[3]
PACKAGE = Path(lint.__file__).parent


@pytest.mark.parametrize(
    "path", ["examples/momentum/plan.yaml", "examples/rsi_bug/plan.yaml", "fixtures/seeds/todo_list.json"]
)
def test_the_example_plans_have_no_findings(path: str) -> None:
    assert validate_plan(ROOT / path) == ()


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_plans_in_the_documentation_have_no_unexpected_findings(page: Path, tmp_path: Path) -> None:
    """This must hold even if only the plan was copied, without the files that it names."""
    for text in re.findall(r"(?ms)^```yaml plan\n(.*?)^```", page.read_text(encoding="utf-8")):
        (tmp_path / "plan.yaml").write_text(text)
        found = validate_plan(tmp_path / "plan.yaml", boundary=tmp_path)
        assert [each.message for each in found] == []


def test_findings_have_positions_and_follow_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "todo_list_id: p\nitems:\n- id: a\n  title: A\n  max_retries: 0\n  verify: pytest no.py\n"
        "  status: claimed\n- step_id: b\n  title: B\n"
        "  acceptance_criteria:\n    tests:\n    - cmd: pytest nope.py --co\n      timeout_seconds: 0.1\n"
    )
    found = validate_plan(path, boundary=tmp_path)
    places = [(each.line, each.column) for each in found]
    assert places == sorted(places)
    assert {
        (5, 16, "retries-unreasonable", "items[0].max_retries"),
        (6, 11, "test-missing", "items[0].verify"),
        (12, 12, "command-hollow", "items[1].acceptance_criteria.tests[0].cmd"),
        (13, 24, "timeout-unreasonable", "items[1].acceptance_criteria.tests[0].timeout_seconds"),
    } <= {(each.line, each.column, each.rule, each.place) for each in found}


@pytest.mark.parametrize(
    ("place", "keys", "root"),
    [
        ("plans/p.json", {}, ".."),
        ("a/b/c/p.json", {}, "../../.."),
        ("a/b/c/d/p.json", {}, None),  # too far
        ("p.json", {}, None),
        ("plans/p.json", {"root": "."}, None),
    ],
)
def test_a_plan_whose_files_exist_only_above_its_root_gets_the_missing_root(
    tmp_path: Path, place: str, keys: dict[str, Any], root: str | None
) -> None:
    path = tmp_path / place
    plan = {"todo_list_id": "p", **keys, "items": [own(criteria={"expected_artifacts": ["product.py"]})]}
    write_files(tmp_path, {"pytest.ini": "", "t.py": GOOD_TEST, place: json.dumps(plan)})
    found = [each.fix for each in validate_plan(path) if each.rule == "root-misplaced"]
    assert found == ([f"add root: {root} to the plan"] if root else [])


def test_the_table_lists_exactly_the_rules_in_use() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
    used = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', sources))
    used |= {each["rule"] for each in load_table("pytest_options")["doubtful"]}
    used |= {f"{noun}-missing" for noun in ("contract", "fixture", "schema")}
    used.add("root-misplaced")  # of planner.planfile, as it looks outside of the root
    assert set(LINT_RULES) <= used
    found = set(re.findall(r'Finding\(\s*"([a-z-]+)"', sources))
    assert found <= set(LINT_RULES)
    assert all(row.why.endswith(".") and row.fix.endswith(".") for row in LINT_RULES.values())


def test_long_messages_are_truncated(tmp_path: Path) -> None:
    missing = todo("a", f"pytest {'x' * 9_000}.py", status="claimed")
    assert len(only("test-missing", tmp_path, missing).message) < 2_000


_CODE = [
    "import random as r",
    "r.random()",
    "x[0]()(r)",
    "class A(B.C): t = r.x(1)",
    "from . import *",
    "def f(",
]


@given(st.lists(st.sampled_from(_CODE)).map("\n".join) | st.text(max_size=300))
def test_any_text_is_read_as_a_module_without_an_exception(text: str) -> None:
    assert isinstance(TestModule.parse(text), TestModule)


def test_each_sub_plan_file_is_validated_once_under_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(
        "todo_list_id: top\nitems:\n"
        "  - {id: one, title: One, sub_plan: part.yaml}\n"
        "  - {id: two, title: Two, sub_plan: part.yaml}\n"
    )
    (tmp_path / "part.yaml").write_text(
        "todo_list_id: part\nitems:\n"
        "  - id: a\n    title: A\n    acceptance_criteria: {expected_artifacts: [a.txt]}\n"
    )
    found = validate_plan_tree(load_tree(tmp_path / "plan.yaml"))
    assert [(each.path, each.line, each.rule) for each in found] == [("part.yaml", 5, "no-test")]
    (tmp_path / "part.yaml").write_text("todo_list_id: part\nitems: 3\n")
    with pytest.raises(PlannerError, match=r"part\.yaml"):
        validate_plan_tree(load_tree(tmp_path / "plan.yaml", boundary=tmp_path))


def test_files_of_a_sub_plan_may_be_made_by_todos_before_its_parent(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(GOOD_TEST)
    (tmp_path / "plan.yaml").write_text(
        "todo_list_id: top\nitems:\n"
        "  - {id: data, title: Data, requires_testing: false, "
        "acceptance_criteria: {expected_artifacts: [data.json]}}\n"
        "  - {id: phase, title: Phase, sub_plan: part.yaml, dependencies: [data]}\n"
    )
    part = "todo_list_id: part\nitems: [{id: a, title: A, acceptance_criteria: {tests: [%s]}}]\n"
    (tmp_path / "part.yaml").write_text(part % "{cmd: pytest t.py, fixture: data.json}")
    assert validate_plan_tree(load_tree(tmp_path / "plan.yaml", boundary=tmp_path)) == ()


@pytest.mark.parametrize(
    ("files", "tools"),
    [
        ({}, set()),
        ({"mypy.ini": "", ".flake8": ""}, {"mypy", "flake8"}),
        ({"pyproject.toml": "[tool.ruff]\n[tool.basedpyright]\n[tool.other]\n"}, {"ruff", "pyright"}),
        ({"setup.cfg": "[isort]\n", "tox.ini": "[pycodestyle]\n[tox]\n"}, {"isort", "pycodestyle"}),
        ({"pyproject.toml": "[[[", "setup.cfg": "]"}, set()),
        ({"pyproject.toml": "tool = 3"}, set()),
    ],
)
def test_configured_tools_are_recognised_by_their_files(
    tmp_path: Path, files: dict[str, str], tools: set[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert configured_tools(tmp_path) == tools


@pytest.mark.parametrize(
    ("pattern", "protects"),
    [
        *(("src", True), ("src/**", True), ("*.py", True), ("a*.py", True)),
        *(("a.py", False), ("test/**", False)),
        *((".", True), ("./", True), ("src/a**", True), ("t.py/", True)),  # other meanings in pathlib
        *((".git/**", True), (".gi/**", False), (".git/config", True), ("empty", True)),  # not searched
    ],
)
def test_a_protected_glob_without_matches_is_reported(tmp_path: Path, pattern: str, protects: bool) -> None:
    (tmp_path / "empty").mkdir()
    files = {".git/config": ""}
    found = judge(tmp_path, own(), files=files, metadata={"protected_files": [pattern]})
    assert found == ["protected-nothing"] * (not protects)
