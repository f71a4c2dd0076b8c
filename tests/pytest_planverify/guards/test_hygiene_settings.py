"""Changes of pytest's configuration, of plans and of contracts: only those that demand less are found."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hygiene_samples import GRANTED, OPEN, TREE, signals, signs

from planner.planfile.loader import load_plan, plan_as_it_stands
from planner.planfile.tree import FlatPlan
from pytest_planverify.guards.hygiene.grants import Grants, Permission, TodoReach
from pytest_planverify.guards.hygiene.plan_changes import plan_findings

HEAD = '[project]\nname = "pkg"\n'
SECTION = HEAD + "[tool.pytest.ini_options]\n"
PLAIN = SECTION + 'testpaths = ["tests"]\n'

NARROWED = {
    "by mark": 'addopts = "-m fast"',
    "by file": 'addopts = "--ignore=tests/test_words.py"',
    "without coverage": 'addopts = "--no-cov"',
    "folders left out": 'norecursedirs = ["tests"]',
    "without conftest": 'addopts = "--noconftest"',
    "another configuration": 'addopts = "-c other.ini"',
    "other folders": 'testpaths = ["other"]\naddopts = "-ra"',
}
LET_BE = {
    "display": 'addopts = "-ra -q --durations=5 --strict-markers"',
    "markers": 'addopts = "-ra"\nmarkers = ["slow: takes long"]',
    "logging": 'addopts = "-ra"\nlog_cli = true',
    "another tool": 'addopts = "-ra"\n[tool.ruff]\nline-length = 100',
    "more folders": 'testpaths = ["tests", "more"]\naddopts = "-ra"',
}


def configured(options: str) -> dict[str, str]:
    """Return a change of the configuration of pytest."""
    folders = "" if "testpaths" in options else 'testpaths = ["tests"]\n'
    return {"pyproject.toml": f"{SECTION}{folders}{options}\n"}


@pytest.mark.parametrize("options", NARROWED.values(), ids=NARROWED)
def test_configuration_that_selects_fewer_tests_is_found_despite_permission(options: str):
    assert signs(configured(options), grants=GRANTED) == {"configuration-narrowed"}


@pytest.mark.parametrize("options", LET_BE.values(), ids=LET_BE)
def test_configuration_that_selects_the_same_tests_is_not_flagged(options: str):
    assert signals(configured(options)) == ()


def test_configuration_files_are_compared_by_precedence():
    assert "configuration-narrowed" in signs({"pytest.ini": "[pytest]\naddopts = -k nothing\n"})
    moved = {"pyproject.toml": HEAD, "pytest.ini": "[pytest]\ntestpaths = tests\naddopts = -ra\n"}
    assert signals(moved) == ()
    for text in ("no section\n", "[pytest]\naddopts\n  -ra\n"):
        assert "judge-unreadable" in signs({"pytest.ini": text})
    old: dict[str, str] = {**TREE, "tox.ini": "[pytest]\nxfail_strict = true\n", "pyproject.toml": HEAD}
    assert signs({"tox.ini": "[pytest]\nxfail_strict = false\n"}, tree=old) == {"configuration-narrowed"}


def test_removed_strictness_options_are_a_signal():
    strict = {**TREE, "pyproject.toml": PLAIN + "xfail_strict = true\nfilterwarnings = ['error']\n"}
    assert "configuration-narrowed" in signs({"pyproject.toml": PLAIN}, tree=strict, grants=GRANTED)
    for was, now, wanted in (
        ("-ra --strict-markers", "-ra", {"configuration-narrowed"}),
        ("-W error", "-W default", {"configuration-narrowed"}),
        ("--cov-fail-under=90", "--cov-fail-under 9", {"configuration-narrowed"}),
        ("--cov-fail-under=90", "--cov-fail-under=95", set[str]()),
    ):
        toml = {"pytest.toml": f'[pytest]\naddopts = "{was}"\n'}
        change = {"pytest.toml": f'[pytest]\naddopts = "{now}"\n'}
        assert signs(change, tree={**TREE, **toml}, grants=GRANTED) == wanted, was


RULES = '[tool.ruff.lint]\nselect = ["E", "F"]\n'
MAKE = "check:\n\tpython check.py\n"
CHECKER = "import sys\n\nbad = [each for each in LINKS if not found(each)]\nsys.exit(bool(bad))\n"
TOOLS: dict[str, tuple[str, str, str, str | None]] = {
    "fewer rules": ("ruff", "pyproject.toml", RULES, "configuration-narrowed"),
    "the rules of another tool": ("mypy", "pyproject.toml", RULES, None),
    "a file of its own": ("ruff", ".ruff.toml", 'select = ["E", "F"]\n', "configuration-narrowed"),
    "a section": ("coverage", "setup.cfg", '[coverage:run]\nselect = "E", "F"\n', "configuration-narrowed"),
}


def running(tool: str) -> Grants:
    """Return the permissions of a todo with a command that runs a tool."""
    return Grants(todos=(TodoReach(todo_id="a", tools=(tool,)),))


@pytest.mark.parametrize(("tool", "path", "text", "sign"), TOOLS.values(), ids=TOOLS)
def test_configuration_of_a_tool_that_a_command_runs_needs_permission(
    tool: str, path: str, text: str, sign: str | None
):
    tree = {**TREE, path: text}
    change = {path: text.replace(', "F"', "")}
    assert signs(change, tree=tree, grants=running(tool)) == ({sign} if sign else set())
    assert signs(change, tree=tree, grants=replace(running(tool), protected=())) == set()


@pytest.mark.parametrize(
    ("path", "text", "is_found"),
    [
        ("Makefile", f"{MAKE}docs:\n\tmkdocs build\n", False),
        ("Makefile", MAKE.replace("\tpython", "\t-python"), True),
        ("Makefile", MAKE.replace("check.py", "-c pass"), True),
        ("GNUmakefile", "check:\n\ttrue\n", True),
        ("docs/Makefile", "check:\n\ttrue\n", False),
        ("Makefile.am", "check:\n\ttrue\n", False),
        ("make.bat", "check:\n\ttrue\n", False),
    ],
)
def test_targets_and_makefiles_elsewhere_may_be_added_but_no_target_changed(
    path: str, text: str, is_found: bool
):
    found = signs({path: text}, tree={**TREE, "Makefile": MAKE}, grants=running("make"))
    assert found == ({"configuration-narrowed"} if is_found else set())


def test_configuration_of_tools_that_a_makefile_runs_needs_permission():
    grants = running("make")
    for text, wanted in (("lint:\n\truff check pkg\n", {"configuration-narrowed"}), (MAKE, set[str]())):
        tree = {**TREE, "Makefile": text, "pyproject.toml": RULES}
        change = {"pyproject.toml": RULES.replace(', "F"', "")}
        assert signs(change, tree=tree, grants=grants) == wanted


@pytest.mark.parametrize(
    ("tool", "path", "text"),
    [
        ("flake8", "setup.cfg", "no heading"),
        ("flake8", "setup.cfg", "[flake8]\nselect\n  E\n"),
        ("npm", "package.json", '{"scripts": 5}'),
        ("npm", "package.json", "[" * 100_000),
        ("ruff", "pyproject.toml", "tool = " + "[" * 10_000),
    ],
    ids=["no section", "continued key", "no mapping", "deep JSON", "deep TOML"],
)
def test_configuration_that_became_unreadable_is_a_change(tool: str, path: str, text: str):
    old = {
        "setup.cfg": "[flake8]\nselect = E\n",
        "package.json": '{"scripts": {"a": "b"}}',
        "pyproject.toml": RULES,
    }
    grants = running(tool)
    assert "configuration-narrowed" in signs({path: text}, tree={**TREE, path: old[path]}, grants=grants)


def test_script_of_a_criterion_must_stay_able_to_fail():
    grants = Grants(todos=(TodoReach(todo_id="a", scripts=("ci/check.py",)),))
    tree = {**TREE, "ci/check.py": CHECKER}
    silent = CHECKER.replace("bool(bad)", "0")
    assert signs({"ci/check.py": silent}, tree=tree, grants=grants) == {"assertion-void"}
    other = CHECKER.replace("bool(bad)", "1 if bad else 0")
    assert signs({"ci/check.py": other}, tree=tree, grants=grants) == set()
    returning = "def main():\n    if bad():\n        return 1\n    return 0\n\nsys.exit(main())\n"
    decorated = returning.replace("        return 1\n    return 0", "        report()")
    for other in (
        f"@click.command()\n{decorated}",
        f"bad = bad()\n{returning.replace('exit(main())', 'exit(bad)')}",
    ):
        changed = {"ci/check.py": other}
        assert signs(changed, tree={**TREE, "ci/check.py": returning}, grants=grants) == set()
    silent = {"ci/check.py": returning.replace("return 1", "return 0")}
    assert signs(silent, tree={**TREE, "ci/check.py": returning}, grants=grants) == {"assertion-void"}


@pytest.mark.parametrize("comment", ["# noqa: F401", "# type: ignore[import]", "# pragma: no cover"])
def test_change_of_nothing_but_comments_that_silence_a_tool_is_found(comment: str):
    grants = running("ruff")
    tree = {**TREE, "pkg/a.py": "import os\n"}
    assert signs({"pkg/a.py": f"import os  {comment}\n"}, tree=tree, grants=grants) == {"finding-silenced"}
    wide = f"import{' ' * 100_000}os\n"  # read in linear time
    for text in (wide, f"import os\nimport re  {comment}\n", f"import os  {comment}\nimport re\n"):
        assert signs({"pkg/a.py": text}, tree=tree, grants=grants) == set()


def test_pytest_entry_points_in_setup_files_are_found():
    tree = {**TREE, "setup.cfg": "[metadata]\nname = pkg\n", "setup.py": "setup()\n"}
    cfg = "[metadata]\nname = pkg\n[options.entry_points]\npytest11 =\n    mine = pkg.plugin\n"
    assert signs({"setup.cfg": cfg}, tree=tree) == {"pytest-entry-point"}
    assert signs({"setup.py": "setup(entry_points={'pytest11': ['a = b']})\n"}, tree=tree) == {
        "pytest-entry-point"
    }


# -- plans -------------------------------------------------------------------------------------------

TODO: dict[str, Any] = {
    "id": "work",
    "title": "Work",
    "allowed_files": ["pkg/**"],
    "contract_path": "contracts/words.json",
    "must_stay_green": ["tests/test_words.py::test_sign"],
    "acceptance_criteria": {
        "tests": [
            {"cmd": "pytest tests/test_words.py", "fixture": "tests/data/words.json"},
            {"cmd": "ruff check pkg"},
        ],
        "expected_artifacts": [{"path": "out/a.json", "min_bytes": 10, "schema": "s.json"}],
        "metrics": [{"name": "rows", "operator": ">=", "value": 10}],
        "manual": [{"question": "Is it well?"}],
    },
}
POLICY: dict[str, Any] = {
    "network": "deny",
    "protected_files": ["s.json"],
    "budget": {"wall_seconds": 60},
    "tools": [{"name": "docs", "argv": ["mkdocs", "build", "--strict"]}],
}


def plan(todo: dict[str, Any] | None = None, *more: dict[str, Any], **policy: Any) -> Any:
    items = [TODO if todo is None else todo, *more]
    found = plan_as_it_stands(
        json.dumps({"todo_list_id": "p", "metadata": {**POLICY, **policy}, "items": items}).encode(),
        "plan.json",
    )
    assert found is not None
    return found


def with_criteria(**changes: Any) -> dict[str, Any]:
    return {**TODO, "acceptance_criteria": {**TODO["acceptance_criteria"], **changes}}


PYTEST, RUFF = TODO["acceptance_criteria"]["tests"]


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in TODO.items() if name != field}


LOOSER = {
    "a command less": with_criteria(tests=[PYTEST]),
    "another fixture": with_criteria(tests=[{**PYTEST, "fixture": "other.json"}, RUFF]),
    "no artifact": with_criteria(expected_artifacts=[]),
    "a smaller artifact": with_criteria(expected_artifacts=[{"path": "out/a.json", "schema": "s.json"}]),
    "no schema": with_criteria(expected_artifacts=[{"path": "out/a.json", "min_bytes": 10}]),
    "another comparison": with_criteria(metrics=[{"name": "rows", "operator": "<=", "value": 10}]),
    "no question": with_criteria(manual=[]),
    "no contract": without("contract_path"),
    "no demand": without("must_stay_green"),
    "no allowlist": without("allowed_files"),
}
AS_MUCH = {
    "claimed": {**TODO, "status": "claimed"},
    "worded": {**TODO, "title": "Other words", "intent": "Said better", "priority": 3},
    "more time": with_criteria(tests=[{**PYTEST, "timeout_seconds": 900}, RUFF]),
    "more commands": with_criteria(tests=[PYTEST, RUFF, {"cmd": "pytest"}]),
    "quoted": with_criteria(
        tests=[{**PYTEST, "cmd": "pytest 'tests/test_words.py'"}, {"cmd": "ruff  check pkg"}]
    ),
    "a higher threshold": with_criteria(metrics=[{"name": "rows", "operator": ">=", "value": 11}]),
    "a narrower allowlist": {**TODO, "allowed_files": ["pkg/words.py"]},
    "a narrower glob": {**TODO, "allowed_files": ["pkg/text/*.py"]},
}


@pytest.mark.parametrize("todo", LOOSER.values(), ids=LOOSER)
def test_loosened_plan_is_found(todo: dict[str, Any]):
    found = list(plan_findings(plan(), plan(todo), "plan.json"))
    assert {each.sign for each in found} == {"plan-loosened"}
    assert all("todo work" in each.message for each in found)


def test_each_fixture_of_a_command_and_each_exclusion_that_a_later_glob_undoes_counts():
    def with_fixtures(*names: str) -> Any:
        return plan(with_criteria(tests=[{**PYTEST, "fixture": name} for name in names]))

    def count(before: Any, now: Any) -> int:
        return len(list(plan_findings(before, now, "plan.json")))

    before = with_fixtures("a.json", "b.json")
    assert count(before, before) == 0
    assert count(before, with_fixtures("c.json", "b.json")) == 1
    assert count(before, with_fixtures("b.json")) == 1
    globs = [["pkg/**", "!pkg/data.py"], ["!pkg/data.py", "pkg/**"]]
    assert count(*(plan({**TODO, "allowed_files": each}) for each in globs)) == 1


STRICTER = {"protected_files": ["s.json", "t.json"], "budget": {"wall_seconds": 30}, "processes": "deny"}


@pytest.mark.parametrize(
    "now", [*map(plan, AS_MUCH.values()), plan(**STRICTER)], ids=[*AS_MUCH, "a stricter policy"]
)
def test_equally_strict_plan_is_not_flagged(now: Any):
    assert list(plan_findings(plan(), now, "plan.json")) == []


def test_changes_written_by_the_planner_are_not_flagged():
    branch = {
        "id": "work_branch_01",
        "title": "Repair",
        "parent_id": "work",
        "branch_depth": 1,
        "branch_reason": "test_failure",
        "debug_instructions": "Look.",
        "is_temporary": True,
        "acceptance_criteria": {"tests": [{"cmd": "pytest tests/test_words.py"}]},
    }
    assert list(plan_findings(plan(), plan(None, branch), "plan.json")) == []
    part = {"id": "work_1", "title": "A part", "acceptance_criteria": {"tests": [RUFF]}}
    rest = with_criteria(tests=[PYTEST])
    assert list(plan_findings(plan(), plan(rest, part), "plan.json")) == []


QUARANTINED = {"nodeid": "tests/t.py::t", "owner": "me", "ticket": "T-1", "expires": "2030-01-01"}
(DOCS,) = POLICY["tools"]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"network": "record"}, "requires less (network is limited)"),
        ({"network": ["example.org"]}, "permits more (network: example.org)"),
        ({"protected_files": []}, "requires less (protected: s.json)"),
        ({"budget": {}}, "requires less (budget wall_seconds)"),
        ({"budget": {"wall_seconds": 600}}, "requires less (budget wall_seconds)"),
        ({"tools": []}, "requires less (another tool docs)"),
        ({"tools": [{"name": "docs", "argv": ["mkdocs", "build"]}]}, "requires less (another tool docs)"),
        ({"tools": [{**DOCS, "kind": "test"}]}, "requires less (another tool docs)"),
        ({"tools": [DOCS, {"name": "seq"}]}, "permits more (the tool seq)"),
        ({"flaky_retry": {"quarantine": [QUARANTINED]}}, "permits more (tests/t.py::t is flaky)"),
    ],
    ids=str,
)
def test_loosened_policy_is_found(policy: dict[str, Any], said: str):
    (found,) = plan_findings(plan(), plan(**policy), "plan.json")
    assert (found.sign, found.message) == ("plan-loosened", f"The plan {said} (plan.json)")


def test_plan_file_is_protected_even_without_allowed_files():
    text = json.dumps({"todo_list_id": "p", "items": [TODO]})
    less = json.dumps({"todo_list_id": "p", "items": [with_criteria(metrics=[])]})
    tree = {**TREE, "plan.json": text}
    grants = Grants(todos=OPEN.todos, plans=("plan.json",))
    assert grants.permission("plan.json") is Permission.FORBIDDEN
    for now, expected in ((less, {"plan-loosened"}), ("{", {"judge-unreadable"}), (text + "\n", set())):
        assert signs({"plan.json": now}, tree=tree, grants=grants) == expected


def test_contracts_are_compared_by_content():
    tree = {**TREE, "contracts/words.json": '{"module": "pkg.words", "functions": []}'}
    reach = TodoReach(todo_id="work", allowed_files=("pkg/**",), contract="contracts/words.json")
    grants = Grants(todos=(reach,))
    same = '{"functions": [], "module": "pkg.words"}\n'
    other = '{"module": "pkg.other", "functions": []}'
    assert signs({"contracts/words.json": same}, tree=tree, grants=grants) == set()
    assert signs({"contracts/words.json": other}, tree=tree, grants=grants) == {"data-changed"}


def test_permission_needs_an_explicit_glob_and_no_protection():
    grants = Grants(
        todos=(
            TodoReach(todo_id="a", allowed_files=("pkg/**", "!pkg/x.py")),
            TodoReach(todo_id="b", allowed_files=("tests/own/**",), folder="sub"),
        ),
        protected=("pkg/fixed/**",),
    )
    assert grants.permission("pkg/a.py") is Permission.GRANTED
    assert grants.permission("pkg/x.py") is Permission.FORBIDDEN
    assert grants.permission("pkg/fixed/a.py") is Permission.FORBIDDEN
    assert grants.permission("sub/tests/own/test_a.py") is Permission.GRANTED
    assert grants.permission("tests/own/test_a.py") is Permission.FORBIDDEN
    assert grants.owners("pkg/a.py") == ("a",)


def test_todo_depends_on_its_tests_their_conftests_and_data():
    reach = TodoReach(todo_id="a", selections=("tests/unit/test_a.py",), data=("data/a.json",))
    own = ("tests/unit/test_a.py", "tests/unit/data/a.json", "data/a.json", "pytest.ini")
    for path in (*own, "tests/unit/conftest.py", "tests/conftest.py", "conftest.py"):
        assert reach.depends_on(path), path
    for path in ("tests/unit/test_b.py", "tests/flow/conftest.py", "data/b.json"):
        assert not reach.depends_on(path), path


def test_permissions_added_since_the_baseline_do_not_count(tmp_path: Path):
    work = {"id": "work", "title": "Work", "allowed_files": ["pkg/**"], "verify": "ruff check ."}
    wider = {**work, "allowed_files": ["pkg/**", "tests/**"]}
    mine = {**work, "id": "mine", "allowed_files": ["tests/**"]}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"todo_list_id": "p", "items": [wider, mine]}))
    flat = FlatPlan(loaded=load_plan(path, boundary=tmp_path))
    before = json.dumps({"todo_list_id": "p", "items": [work]}).encode()

    now, then = Grants.of(flat), Grants.of(flat, plan_as_it_stands(before, "plan.json"))

    assert now.permission("tests/test_a.py") is Permission.GRANTED
    assert then.permission("tests/test_a.py") is Permission.FORBIDDEN
    assert then.permission("pkg/a.py") is Permission.GRANTED
    assert now.plans == then.plans == ("plan.json",)
