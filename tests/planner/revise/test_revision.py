"""Edits for each failure category, and the limits of every revision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from revision_samples import (
    BRANCH,
    EvidenceKind,
    Side,
    added,
    apply_edits,
    check,
    commands,
    edits_of,
    failure,
    frame,
    only,
    raised,
    revised,
    seen,
    situation,
    todo,
)

from planner.catalog import Purpose, parse_command
from planner.catalog.commands import accepted_command
from planner.model.edits import (
    AddCheck,
    AddTodoBefore,
    Isolate,
    NameArtifact,
    NarrowFiles,
    RaiseLimit,
    RetargetCheck,
)
from planner.model.evidence import ArtifactFact, CommandFact, Confirmation, ContractFact, Finding, Selector
from planner.model.outcome import Failure, Outcome
from planner.model.plan import CommandSpec, Todo
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind, Since
from planner.planfile.checks import judge_plan
from planner.policy.criteria import criteria_of
from planner.revise.situation import Situation, below_root, fixing_command, narrowed_command
from planner.revise.strategies import (
    REVISION_RULES,
    STRATEGIES,
    narrowed,
    near_selection,
    revise,
    set_apart,
)
from planner.text.glob_patterns import allowed

RSI = "tests/test_rsi.py::test_values"
BANDS = "tests/test_rsi.py::test_bands"
ODD = "tests/test_rsi.py::test_values[a b-'x'-$HOME]"
FILE = "pytest tests/test_rsi.py -q"


def case_of(failed: Failure, **fields: Any) -> Situation:
    """Return the situation of a todo with one red test."""
    return situation(failed, todo("t2", FILE), check("tests[0]", FILE, RSI), **fields)


EDITS = {  # all other categories halt the run, or need no edit
    Category.TEST_REGRESSION: ["narrow_files", "isolate"],
    Category.TEST_TIMEOUT: ["isolate", "raise_limit"],
    Category.FLAKY_TEST: ["isolate"],
    Category.TEST_CRASH: ["isolate"],
    Category.TEST_NOT_FOUND: ["name_artifact"],
    Category.COMPILATION_ERROR: ["add_check", "narrow_files"],
    Category.TYPE_ERROR: ["add_check"],
    Category.LINT_ERROR: ["add_todo_before", "narrow_files"],
    Category.IMPORT_ERROR: ["add_todo_before"],
    Category.SPEC_MISMATCH: ["add_todo_before"],
    Category.ARTIFACT_MISSING: ["name_artifact"],
    Category.UNKNOWN: ["narrow_files"],
}


@pytest.mark.parametrize("category", Category)
def test_each_category_has_its_edits_with_documented_rules(category: Category) -> None:
    facts = seen(
        artifact=ArtifactFact(path="out/x.json", problem="missing"),
        contract=ContractFact(path="c.json", problem="signature"),
        confirmations=(Confirmation(where="alone", passed=True, duration_ms=100),),
    )
    tools = frozenset({"mypy"})
    edits = revise(case_of(failure(category, RSI, at="pkg/calc.py"), observations=(facts,), tools=tools))
    assert [edit.edit for edit in edits] == EDITS.get(category, [])
    assert all(edit.rule in REVISION_RULES and edit.because for edit in edits)

    minimal = Outcome(todo_id="t2", success=False, tests_passed=False)
    revised(replace(situation(failure(category, check_id=None), todo("t2")), outcome=minimal))


def test_a_regression_narrows_the_files_and_isolates_the_failing_tests() -> None:
    failed = failure(Category.TEST_REGRESSION, RSI, at="indicators/rsi.py", owner=Owner.PRODUCT)
    item = todo("t2", FILE, contract_path="c.json")
    case = situation(failed, item, check("tests[0]", FILE, RSI, green=(BANDS,)))
    assert [edit.rule for edit in revise(case)] == ["regression-narrows-files", "regression-isolates"]
    branch = revised(case).todo(BRANCH)
    assert branch.allowed_files == ("indicators/**",)
    assert commands(branch) == [f"pytest {RSI} -q"]
    assert branch.contract_path is None
    assert revised(case).todo("t2") == case.todo


def test_a_spec_mismatch_adds_a_contract_step_for_the_architect() -> None:
    step = only(case_of(failure(Category.SPEC_MISMATCH, RSI)), AddTodoBefore).todo
    (contract,) = step.acceptance_criteria.expected_artifacts
    assert (step.agent_role, contract.path) == (Role.ARCHITECT, "contracts/t2_contract.json")


def test_a_missing_test_retargets_the_command_only_with_approval() -> None:
    wrong = "tests/test_rsi.py::test_valuse"
    cmd = f"pytest {wrong} -q"
    selector = Selector(text=wrong, problem="missing_id", nearest=(RSI,))
    case = situation(
        failure(Category.TEST_NOT_FOUND, at="tests/test_rsi.py"),
        todo("t2", cmd),
        check("tests[0]", cmd),
        observations=(seen(EvidenceKind.SELECTION, selectors=(selector,)),),
    )
    edit = only(case, RetargetCheck)
    assert (edit.todo_id, edit.from_cmd, edit.to_cmd) == ("t2", cmd, f"pytest {RSI} -q")
    assert edit.requires_approval
    assert edits_of(case, NameArtifact) == []
    assert commands(revised(case).todo("t2")) == [f"pytest {RSI} -q"]


def test_a_success_has_no_edits() -> None:
    case = case_of(failure(Category.TEST_REGRESSION, RSI, at="pkg/calc.py"))
    passed = case.outcome.model_copy(update={"success": True})
    assert revise(replace(case, outcome=passed)) == ()


def test_a_metric_check_is_not_isolated() -> None:
    item = todo("t2", FILE, criteria={"metrics": [{"name": "rows", "operator": ">=", "value": 1}]})
    shown = check("metrics[0]", None, kind=CheckKind.METRIC)
    case = situation(failure(Category.TEST_REGRESSION, check_id="metrics[0]"), item, shown)
    assert edits_of(case, Isolate) == []
    assert len(added(case)) == 1


def test_a_product_frame_narrows_the_files_and_a_test_frame_does_not() -> None:
    error = raised("AssertionError", "", frame("tests/test_rsi.py", Side.TEST), frame("src/pkg/core.py"))
    failed = failure(Category.TEST_REGRESSION, RSI, at="tests/test_rsi.py")
    case = case_of(failed, observations=(seen(exceptions=(error,)),))
    assert only(case, NarrowFiles).allowed_files == ("src/pkg/**",)


def narrow(cmd: str, *nodeids: str) -> str:
    return narrowed_command(CommandSpec(cmd=cmd), nodeids).cmd


@pytest.mark.parametrize(
    ("cmd", "narrower"),
    [
        ("pytest", f"pytest {RSI}"),
        ("pytest tests", f"pytest {RSI}"),
        ("pytest ./tests/ -q", f"pytest {RSI} -q"),
        ("pytest -q tests/test_rsi.py --json-report", f"pytest {RSI} -q --json-report"),
        ("pytest tests/test_rsi.py -k 'values or bands'", f"pytest {RSI} -k 'values or bands'"),
        ("pytest -m slow -- tests", f"pytest {RSI} -m slow"),
        ("A='x y' python -m pytest tests -p no:x", f"A='x y' python -m pytest {RSI} -p no:x"),
        ("uv run pytest tests --cov pkg", f"uv run pytest {RSI} --cov pkg"),
        ("pytest -p tests tests", f"pytest {RSI} -p tests"),
        ("pytest tests -p tests", f"pytest {RSI} -p tests"),
        ("pytest -p tests -q tests", f"pytest {RSI} -p tests -q"),
        (f"pytest {RSI}", f"pytest {RSI}"),
        ("pytest tests --unheard-of value", "pytest tests --unheard-of value"),
        ("pytest tests --lf", "pytest tests --lf"),
        ("pytest --pyargs pkg.tests", "pytest --pyargs pkg.tests"),
        ("pytest tests --cov=pkg --cov-fail-under=90", "pytest tests --cov=pkg --cov-fail-under=90"),
        ("pytest other", "pytest other"),
        ("ruff check .", "ruff check ."),
    ],
)
def test_a_narrowed_command_selects_the_failing_tests_and_keeps_its_options_and_meaning(
    cmd: str, narrower: str
):
    assert narrow(cmd, RSI) == narrower


def test_a_command_is_narrowed_to_few_tests_with_usable_ids() -> None:
    ids = [f"tests/test_a.py::test_{n}" for n in range(21)]
    assert narrow("pytest tests", *ids) == "pytest tests"
    assert narrow("pytest tests", *ids[:20]).count("::") == 20
    long = [f"tests/test_a.py::test_x[{n}{'y' * 900}]" for n in range(15)]
    assert narrow("pytest tests", *long) == "pytest tests"
    for nodeid in ("/etc/a.py::x", "../a.py::x", "tests/test_rsi.py", "", "a\x00.py::x", "-x::y"):
        assert narrow("pytest", nodeid) == "pytest"
    assert narrow("pytest tests/test_a.py -v", "test_a.py::test_b") == "pytest tests/test_a.py::test_b -v"


@pytest.mark.parametrize(
    ("fields", "check_id", "cmd", "isolated", "seconds"),
    [
        ({"verify": FILE}, "verify", FILE, f"pytest {RSI} -q", 300),
        ({"verify": "python-full"}, "verify[3]", "pytest", f"pytest {RSI}", 300),
        ({"test_command": FILE}, "test_command", FILE, f"pytest {RSI} -q", 300),
        ({"test_file": "tests/test_rsi.py"}, "test_file", "pytest tests/test_rsi.py", f"pytest {RSI}", 300),
        ({}, "convention", FILE, f"pytest {RSI} -q", 20),
    ],
)
def test_isolation_works_for_a_command_in_any_key(
    fields: dict[str, Any], check_id: str, cmd: str, isolated: str, seconds: int
) -> None:
    shown = check(check_id, cmd, RSI, timeout_seconds=20)
    case = situation(failure(Category.TEST_REGRESSION, RSI, check_id=check_id), todo("t2", **fields), shown)
    branch = revised(case).todo(BRANCH)
    assert [each.id for each in criteria_of(branch) if each.command] == ["tests[0]"]
    (test,) = branch.acceptance_criteria.tests
    assert (test.cmd, test.timeout_seconds) == (isolated, seconds)


def test_only_new_failures_of_the_same_category_are_isolated() -> None:
    cmds = [f"pytest tests/test_{name}.py" for name in "abcd"]
    ids = [f"tests/test_{name}.py::x" for name in "abcd"]
    first, second, old, other = (
        failure(Category.TEST_REGRESSION, ids[0], check_id="tests[0]"),
        failure(Category.TEST_REGRESSION, ids[1], check_id="tests[1]"),
        failure(Category.TEST_REGRESSION, ids[2], check_id="tests[2]", since=Since.PRE_EXISTING),
        failure(Category.TEST_TIMEOUT, ids[3], check_id="tests[3]"),
    )
    shown = [check(f"tests[{n}]", cmd, ids[n]) for n, cmd in enumerate(cmds)]
    case = situation(first, todo("t2", *cmds), *shown, failures=(second, old, other))
    assert [spec.cmd for spec in only(case, Isolate).tests] == [f"pytest {ids[0]}", f"pytest {ids[1]}"]


def test_without_a_check_id_isolation_uses_the_selections_of_the_commands() -> None:
    bare = failure(Category.TEST_REGRESSION, check_id=None, top_failing_tests=("test_auth.py::test_login",))
    case = situation(bare, todo("t2", "ruff check .", verify="pytest tests/test_auth.py -v"))
    assert [spec.cmd for spec in only(case, Isolate).tests] == ["pytest tests/test_auth.py::test_login -v"]
    other = "pytest tests/test_b.py"
    red = situation(bare, todo("t2", FILE, other), check("tests[1]", other))
    assert [spec.cmd for spec in only(red, Isolate).tests] == [other]


@pytest.mark.parametrize(
    ("old", "files", "new"),
    [
        (None, ["pkg/a.py", "pkg/sub/b.py", "c.py"], ("pkg/**", "c.py")),
        (["pkg/**", "docs/**"], ["pkg/a.py"], ("pkg/**",)),
        (["src/**"], ["src/pkg/a.py"], ("src/pkg/**",)),
        (["pkg/**"], ["pkg/a.py"], None),
        (["docs/**"], ["pkg/a.py"], None),
        (["pkg/**", "docs/**", "!pkg/x.py"], ["pkg/a.py"], ("pkg/**", "!pkg/x.py")),
        (["pkg/**", "docs/**", "!pkg/x.py"], ["pkg/x.py"], None),
        (["*.py", "docs/**"], ["pkg/a.py"], ("*.py",)),
        (["*.py"], ["pkg/a.py"], None),
        ([], ["pkg/a.py"], None),
        (None, ["app/[id]/page.py"], ("app/**",)),
        (None, ["[id]/page.py"], None),
        (None, ["[id].py"], None),
    ],
)
def test_the_scope_is_narrowed_within_the_allowed_files(
    old: list[str] | None, files: list[str], new: tuple[str, ...] | None
) -> None:
    assert narrowed(None if old is None else tuple(old), files, folders=True) == new


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("./pkg//a.py", "pkg/a.py"),
        ("/abs/a.py", None),
        ("../a.py", None),
        ("a/../b.py", None),
        ("C:/a.py", None),
        ("a\\b.py", None),
        ("~/a.py", None),
        ("a\nb.py", None),
        (".venv/lib/a.py", None),
        ("lib/site-packages/a.py", None),
        (".planverify/x", None),
        ("pkg/", None),
        ("", None),
        (None, None),
        ("x" * 5000, None),
    ],
)
def test_only_paths_below_the_root_are_accepted(path: str | None, plain: str | None) -> None:
    assert below_root(path) == plain


TARGET = {"controller_task_spec": {"type": "PATCH", "target_file": "core/x.py"}}
MAKES = {"criteria": {"expected_artifacts": ["out/made.py"]}}


@pytest.mark.parametrize(
    ("failed", "item", "fields", "allowed"),
    [
        ({"at": "tests/test_rsi.py", "owner": Owner.TEST, "confidence": 0.9}, {}, {}, [("tests/**",)]),
        *(
            ({"at": "pkg/a.py", "owner": owner}, {}, {}, [])
            for owner in (Owner.TEST, Owner.PLAN, Owner.ENVIRONMENT, Owner.HARNESS)
        ),
        ({"at": "pkg/a.py"}, MAKES, {}, [("pkg/**", "out/**")]),
        ({"at": "pkg/a.py"}, TARGET, {"metadata": {"protected_files": ["pkg/**"]}}, [("core/**",)]),
    ],
    ids=[
        *("a test surely at fault", "a test", "the plan", "the environment", "the harness"),
        *("touched files that are promised", "the target but no protected file"),
    ],
)
def test_only_files_that_may_be_at_fault_may_be_changed(
    failed: dict[str, Any], item: dict[str, Any], fields: dict[str, Any], allowed: list[tuple[str, ...]]
) -> None:
    case = situation(
        failure(Category.TEST_REGRESSION, RSI, **failed),
        todo("t2", FILE, **item),
        check("tests[0]", FILE, RSI),
        touched=("pkg/b.py", "out/made.py", "other/c.py", "tests/test_rsi.py"),
        **fields,
    )
    assert [edit.allowed_files for edit in edits_of(case, NarrowFiles)] == allowed


@pytest.mark.parametrize(
    ("cmd", "check_cmd"),
    [
        (".venv/bin/python -m pytest tests", ".venv/bin/python -m py_compile 'a b.py'"),
        ("uv run pytest tests", "uv run python -m py_compile 'a b.py'"),
        ("coverage run -m pytest tests", "python -m py_compile 'a b.py'"),
        ("tox -e py311", "python -m py_compile 'a b.py'"),
    ],
)
def test_a_syntax_check_with_the_interpreter_of_the_tests_comes_first_for_the_broken_file(
    cmd: str, check_cmd: str
) -> None:
    failed = failure(Category.COMPILATION_ERROR, at="a b.py")
    branch = revised(situation(failed, todo("t2", cmd), check("tests[0]", cmd))).todo(BRANCH)
    assert commands(branch) == [check_cmd, cmd]
    assert branch.allowed_files == ("a b.py",)


def type_case(
    *cmds: str, at: str | None = "pkg/a.py", elsewhere: str = "ruff check .", **fields: Any
) -> Situation:
    failed, others = failure(Category.TYPE_ERROR, at=at), (todo("t1", elsewhere),)
    return situation(failed, todo("t2", *cmds), others=others, **fields)


@pytest.mark.parametrize(
    ("case", "added"),
    [
        (type_case(FILE, elsewhere="mypy --strict ."), [("mypy --strict .", False)]),
        (type_case(FILE, tools=frozenset({"mypy", "pyright"})), [("mypy pkg/a.py", False)]),
        (type_case(FILE, tools=frozenset({"ruff"})), []),
        (type_case(FILE, at="src/a.ts", elsewhere="npx tsc -b"), [("npx tsc -b", False)]),
        (type_case(FILE, at=None, elsewhere="mypy ."), [("mypy .", False)]),
        (type_case("mypy pkg/a.py"), []),
        (type_case(FILE, at="src/a.ts"), []),
        (type_case(FILE, at=None), []),
        (type_case("mypy .", at=None), []),
    ],
    ids=[
        *("of the plan", "of the project", "none of the project", "of another language"),
        *("without a file", "stated already", "none for the language", "no file", "stated, no file"),
    ],
)
def test_a_type_checker_of_the_plan_or_project_is_preferred_and_never_duplicated(
    case: Situation, added: list[tuple[str, bool]]
) -> None:
    assert [(edit.check.cmd, edit.requires_approval) for edit in edits_of(case, AddCheck)] == added
    assert len(revise(case)) == len(added)


def test_no_command_is_parsed_that_names_no_tool_for_the_purpose() -> None:
    case = type_case(FILE, elsewhere="make parsed-by-nobody")
    accepted_command(FILE)
    before = accepted_command.cache_info().misses
    assert case.command_for(Purpose.TYPE_CHECK, *case.plan.items) is None
    assert accepted_command.cache_info().misses == before


@pytest.mark.parametrize(
    ("cmd", "fix"),
    [
        ("ruff check pkg --no-fix", "ruff check --fix pkg"),
        ("uv run ruff check .", "uv run ruff check --fix ."),
        ("python -m ruff format --check .", "python -m ruff format ."),
        ("black --check --line-length 100 .", "black --line-length 100 ."),
        ("isort -c --df pkg", "isort pkg"),
        ("npx eslint src", "npx eslint --fix src"),
        ("prettier --check 'src/**'", "prettier --write 'src/**'"),
        ("pre-commit run --all-files", "pre-commit run --all-files"),
        ("A=1 black --check .", "A=1 black ."),
        ("hatch run lint:ruff check .", None),
        ("flake8 pkg", None),
    ],
)
def test_a_linter_with_a_fix_option_gets_a_fix_command(cmd: str, fix: str | None) -> None:
    assert fixing_command(parse_command(cmd)) == fix


def lint_case(cmd: str, *files: str, **fields: Any) -> Situation:
    """Return the situation of a todo whose linter complains about these files."""
    findings = tuple(Finding(path=path, line=7, code="E501", message="too long") for path in files)
    fact = CommandFact(argv=(cmd,), tool=cmd.split()[0], purpose="lint", findings=findings)
    item = todo("t2", cmd, allowed_files=["pkg/**"])
    facts = (seen(EvidenceKind.COMMAND, command=fact),)
    return situation(
        failure(Category.LINT_ERROR), item, check("tests[0]", cmd), observations=facts, **fields
    )


def test_a_lint_error_adds_an_auto_fix_step_and_narrows_to_the_files_with_findings() -> None:
    case = lint_case("ruff check .", "pkg/a.py", "pkg/b.py")
    step = only(case, AddTodoBefore).todo
    assert (step.id, step.is_temporary, step.requires_testing) == ("t2_step_01", True, False)
    assert step.controller_task_spec.type == "AUTO_FIX"
    assert "ruff check --fix ." in step.controller_task_spec.hint
    branch = revised(case).todo(BRANCH)
    assert (branch.dependencies, branch.allowed_files) == (("t2_step_01",), ("pkg/a.py", "pkg/b.py"))


def test_findings_without_a_fix_go_to_manual_edits_or_to_a_linter_with_a_fix() -> None:
    by_hand = only(lint_case("flake8 pkg", "pkg/a.py"), AddTodoBefore).todo
    assert by_hand.controller_task_spec.type == "FIX"
    assert "pkg/a.py:7 E501 too long" in by_hand.controller_task_spec.hint
    assert by_hand.allowed_files == ("pkg/a.py",)
    by_ruff = only(lint_case("flake8 pkg", "pkg/a.py", tools=frozenset({"ruff"})), AddTodoBefore).todo
    assert "ruff check --fix pkg/a.py" in by_ruff.controller_task_spec.hint


@pytest.mark.parametrize(
    ("files", "fix"),
    [
        (["pkg/a.py"], ["ruff check --fix ."]),
        (["pkg/a.py", "tests/test_a.py"], ["ruff check --fix pkg/a.py"]),
        (["tests/test_a.py"], []),
    ],
)
def test_automatic_fixes_change_only_files_that_the_todo_may_change(files: list[str], fix: list[str]):
    case = lint_case("ruff check .", *files, tools=frozenset({"ruff"}))
    hints = [edit.todo.controller_task_spec.hint for edit in edits_of(case, AddTodoBefore)]
    assert [hint.splitlines()[1] for hint in hints] == fix
    assert not any("tests/" in hint for hint in hints)


def import_step(message: str, item: Todo | None = None, **facts: Any) -> Any:
    error = raised("ModuleNotFoundError", message).model_copy(update=facts)
    facts_seen = (seen(exceptions=(error,)),)
    case = situation(failure(Category.IMPORT_ERROR), item or todo("t2", FILE), observations=facts_seen)
    revised(case)
    return only(case, AddTodoBefore).todo


@pytest.mark.parametrize(
    ("message", "facts", "file", "proofs"),
    [
        ("No module named 'pkg.a'", {"name": "pkg.a", "place": "pkg/a.py"}, "pkg/a.py", ["pkg/a.py"]),
        ("No module named 'tool'", {"name": "tool", "path": "tool.py"}, "tool.py", []),
        ("cannot import name 'f' from 'pkg' (x)", {"name": "pkg", "path": "pkg/b.py"}, "pkg/b.py", []),
    ],
)
def test_a_module_of_the_project_is_provided_where_its_import_looked_for_it(
    message: str, facts: dict[str, str], file: str, proofs: list[str]
) -> None:
    step = import_step(message, **facts)
    assert [each.path for each in step.acceptance_criteria.expected_artifacts] == proofs
    assert step.requires_testing is bool(proofs)
    assert step.allowed_files == (file,)


def test_the_step_for_a_missing_name_may_correct_the_import_instead() -> None:
    lacks = raised("ImportError", "cannot import name 'f' from 'pkg.b' (x)")
    case = situation(
        failure(Category.IMPORT_ERROR, at="pkg/a.py"),
        todo("t2", FILE),
        observations=(seen(exceptions=(lacks.model_copy(update={"name": "pkg.b", "path": "pkg/b.py"}),)),),
    )
    step = only(case, AddTodoBefore).todo
    assert step.allowed_files == ("pkg/b.py", "pkg/a.py")
    assert step.controller_task_spec.hint.endswith("or import it by its real name in pkg/a.py.")


def test_a_module_promised_by_the_todo_belongs_to_the_project() -> None:
    item = todo("t2", FILE, criteria={"expected_artifacts": ["python/new/thing.py"]})
    assert import_step("No module named 'new.thing'", item=item).allowed_files == ("python/new/thing.py",)
    allowed = todo("t2", FILE, allowed_files=["src/new/**"])
    assert import_step("No module named 'new.other'", item=allowed).allowed_files == ("src/new/other.py",)
    within = todo("t2", FILE, allowed_files=["new/**"])
    assert import_step("No module named 'new'", item=within).allowed_files == ("new/__init__.py",)
    target = todo("t2", FILE, controller_task_spec={"type": "PATCH", "target_file": "lone.py"})
    assert import_step("No module named 'lone'", item=target).allowed_files == ("lone.py",)


MISSING = ArtifactFact(path="x/y.bin", problem="missing", nearest=("x/z.bin",))
UNWRITTEN = ContractFact(path="c.json", problem="missing_module", module_path="pkg/m.py")


def test_a_third_party_module_is_declared_without_an_invented_command() -> None:
    step = import_step("No module named 'yaml.nodes'", name="yaml.nodes")
    task = step.controller_task_spec
    assert (task.type, step.requires_testing) == ("RESOLVE_DEPENDENCY", False)
    assert "package of yaml" in step.title
    assert "module yaml" in task.hint
    assert "install" in task.hint
    assert "pip" not in task.hint
    # Also in those of a package, of a repository with several.
    for path in ("pyproject.toml", "packages/b/pyproject.toml", "docs/requirements.txt"):
        assert allowed(path, step.allowed_files)
    assert not allowed("packages/b/b.py", step.allowed_files)
    installed = "/x/numpy/linalg.py"
    newer = import_step("cannot import name 'x' from 'numpy.linalg'", name="numpy.linalg", path=installed)
    assert "in a version that has x of numpy.linalg" in newer.controller_task_spec.hint


def test_a_named_contract_is_reconciled() -> None:
    fact = ContractFact(path="c.json", function="f", problem="signature", expected="f(a)", actual="f(a, b)")
    case = situation(
        failure(Category.SPEC_MISMATCH, check_id="contract_path"),
        todo("t2", FILE, contract_path="contracts/own.json"),
        observations=(seen(EvidenceKind.CONTRACT, contract=fact),),
    )
    step = only(case, AddTodoBefore)
    assert step.todo.allowed_files == ("contracts/own.json",)
    assert not step.todo.requires_testing
    assert "f is promised as f(a) and found as f(a, b)" in step.because


@pytest.mark.parametrize(
    ("check_id", "observations", "path"),
    [
        ("expected_artifacts[0]", (), "out/a.json"),
        ("expected_artifacts[1]", (), "out"),
        (None, (seen(artifact=MISSING),), "x/y.bin"),
        (None, (seen(contract=UNWRITTEN),), "pkg/m.py"),
    ],
)
def test_the_missing_file_is_found_in_any_evidence(
    check_id: str | None, observations: tuple[Any, ...], path: str
) -> None:
    item = todo("t2", FILE, criteria={"expected_artifacts": ["out/a.json", "out/*.csv"]})
    failed = failure(Category.ARTIFACT_MISSING, check_id=check_id)
    edit = only(situation(failed, item, observations=observations), NameArtifact)
    assert edit.path == path
    assert edit.hint


def test_creation_of_an_existing_file_is_never_requested() -> None:
    test = "tests/test_report.py"
    item = todo("t2", f"pytest {test}")
    failed = failure(Category.ARTIFACT_MISSING, at=test)
    assert revise(situation(failed, item, check("tests[0]", f"pytest {test}"))) == ()
    empty = seen(artifact=ArtifactFact(path="out/x.csv", problem="empty"))
    edit = only(situation(failed, item, observations=(empty,)), NameArtifact)
    assert (edit.path, edit.task) == ("out/x.csv", "PATCH")
    skipped = failure(Category.TEST_NOT_FOUND, rule="all-skipped", at=test)
    case = situation(skipped, item, check("tests[0]", f"pytest {test}"))
    task: Any = revised(case).todo(BRANCH).controller_task_spec
    assert (task.type, task.target_file) == ("PATCH", test)
    assert task.hint == f"{test} must run, and fail until the work is done."


@pytest.mark.parametrize(
    "failed",
    [
        failure(Category.ARTIFACT_MISSING, stack_trace_head="No such file or directory: 'data/in.csv'"),
        failure(Category.TEST_NOT_FOUND, at="tests/test_x.py"),
    ],
)
def test_creation_of_a_file_outside_the_allowed_files_is_never_requested(failed: Any) -> None:
    assert revise(situation(failed, todo("t2", FILE, allowed_files=["pkg/**"]))) == ()
    protected = {"protected_files": ["data/**", "tests/**"]}
    assert edits_of(situation(failed, todo("t2", FILE), metadata=protected), NameArtifact) == []


@pytest.mark.parametrize(
    ("allowed", "approval"), [(None, False), (["*.toml", "pkg/**"], True), (["**"], False), ([], True)]
)
def test_a_step_outside_the_allowed_files_needs_approval(allowed: list[str] | None, approval: bool) -> None:
    failed = failure(Category.IMPORT_ERROR, stack_trace_head="No module named 'yaml'")
    item = todo("t2", FILE, **({} if allowed is None else {"allowed_files": allowed}))
    assert only(situation(failed, item), AddTodoBefore).requires_approval is approval


def slow(*observations: Any, **fields: Any) -> Situation:
    item = todo("t2", criteria={"tests": [{"cmd": FILE, "timeout_seconds": 20}]}, **fields.pop("todo", {}))
    return situation(failure(Category.TEST_TIMEOUT, RSI), item, observations=observations, **fields)


def test_a_time_limit_is_doubled_with_approval_within_the_limits_of_todo_and_plan() -> None:
    edit = only(slow(), RaiseLimit)
    assert (edit.todo_id, edit.check_id, edit.from_seconds, edit.to_seconds) == ("t2", "tests[0]", 20, 40)
    assert edit.requires_approval
    assert "may never end" in edit.because
    assert only(slow(todo={"timeout_seconds": 30}), RaiseLimit).to_seconds == 30
    assert only(slow(metadata={"max_todo_seconds": 25}), RaiseLimit).to_seconds == 25
    assert edits_of(slow(metadata={"max_todo_seconds": 20}), RaiseLimit) == []


def test_a_hang_in_the_product_does_not_raise_the_time_limit() -> None:
    in_test, in_product = frame("tests/test_a.py", Side.TEST), frame("pkg/a.py")
    in_library = frame("/lib/queue.py", Side.STDLIB)
    for stack in ([in_product], [in_library], [in_test, in_product], [in_product, in_library]):
        case = slow(seen(exceptions=(raised("Timeout", "", *stack),)))
        assert [edit.edit for edit in revise(case)] == ["isolate"]
    located = failure(Category.TEST_TIMEOUT, RSI, at="pkg/a.py")
    assert edits_of(situation(located, todo("t2", FILE)), RaiseLimit) == []


def test_slow_work_of_a_test_or_a_repeated_pass_raises_the_time_limit() -> None:
    in_test = raised("Timeout", "", frame("tests/test_a.py", Side.TEST), frame("/lib/x.py", Side.STDLIB))
    assert len(edits_of(slow(seen(exceptions=(in_test, raised("X")))), RaiseLimit)) == 1
    passed = Confirmation(where="alone", passed=True, duration_ms=1500)
    ended = seen(exceptions=(raised("Timeout", "", frame("pkg/a.py")),), confirmations=(passed,))
    assert "1.5 s" in only(slow(ended), RaiseLimit).because


def test_pre_existing_failures_of_a_todo_with_a_long_id_get_a_todo_each() -> None:
    failures = [Failure(category=each) for each in (Category.TEST_REGRESSION, Category.LINT_ERROR)]
    outcome = case_of(failure(Category.UNKNOWN)).outcome
    edits = set_apart(todo("t" * 120, FILE), outcome, failures, lambda _: False)
    assert len({edit.todo.id for edit in edits if isinstance(edit, AddTodoBefore)}) == 2


@pytest.mark.parametrize(("excluded", "needs"), [("contracts/a.json", True), ("contracts/b.json", False)])
def test_a_step_that_changes_a_file_that_the_todo_excludes_needs_approval(excluded: str, needs: bool):
    files = ["contracts/**", f"!{excluded}"]
    item = todo("t2", FILE, contract_path="contracts/a.json", allowed_files=files)
    case = situation(failure(Category.SPEC_MISMATCH), item)
    assert only(case, AddTodoBefore).requires_approval is needs


def test_nobody_is_asked_for_a_contract_that_the_plan_does_not_mention() -> None:
    files = [["src/**"], ["src/**", "contracts/**"], None]
    items = [todo("t2", FILE, allowed_files=each) for each in files]
    steps = [edits_of(situation(failure(Category.SPEC_MISMATCH), each), AddTodoBefore) for each in items]
    assert [[each.requires_approval for each in found] for found in steps] == [[], [False], [False]]


def test_secrets_are_not_quoted_in_edits() -> None:
    head = "TypeError: token ghp_abcdefghijklmnopqrstuvwxyz0123456789 refused"
    case = situation(failure(Category.SPEC_MISMATCH, stack_trace_head=head), todo("t2", FILE))
    assert "ghp_abc" not in only(case, AddTodoBefore).model_dump_json()


@pytest.mark.parametrize(
    ("problem", "text", "nearest", "near"),
    [
        ("missing_id", "a.py::test_x", "a.py::test_y", "a.py::test_y"),
        ("missing_id", "a.py::test_x", "a.py::TestA::test_x", "a.py::TestA::test_x"),
        ("missing_id", "a.py::TestA::check", "a.py::TestA", None),
        ("missing_id", "a.py::test_x[1]", "a.py::test_x", None),
        ("missing_id", "a.py::test_x[1]", "a.py::test_x[2]", "a.py::test_x[2]"),
        ("missing_id", "a.py::test_x", "b.py::test_x", None),
        ("missing_id", "a.py::test_x", "a.py", None),
        ("missing_file", "tests/test_a.py::test_x", "test_b.py", "tests/test_b.py::test_x"),
        ("missing_file", "tests/test_a.py", "tests", None),
        ("missing_file", "test/test_a.py", "test_a.py", None),
        ("missing_file", "tests/test_a.py", "test_a.txt", None),
        ("no_match", "-k foo", "foo", None),
        ("missing_id", "a.py::test_x", None, None),
    ],
)
def test_a_similar_name_never_selects_more_tests(
    problem: str, text: str, nearest: str | None, near: str | None
) -> None:
    names = () if nearest is None else (nearest,)
    assert near_selection(Selector(text=text, problem=problem, nearest=names)) == near


def missing(
    cmd: str, selector: Selector, check_id: str = "tests[0]", item: Todo | None = None
) -> Situation:
    failed = failure(Category.TEST_NOT_FOUND, check_id=check_id)
    facts = (seen(EvidenceKind.SELECTION, selectors=(selector,)),)
    return situation(failed, item or todo("t2", cmd), check(check_id, cmd), observations=facts)


def test_only_commands_stated_in_the_plan_are_retargeted() -> None:
    selector = Selector(text="tests/test_t2.py", problem="missing_file", nearest=("test_t3.py",))
    case = missing("pytest tests/test_t2.py", selector, check_id="convention", item=todo("t2"))
    assert edits_of(case, RetargetCheck) == []
    assert only(case, NameArtifact).path == "tests/test_t2.py"


def test_an_empty_selection_names_the_file_that_lacks_a_test() -> None:
    cmd = "pytest tests/test_a.py -k nothing"
    case = missing(cmd, Selector(text="-k nothing", problem="no_match"))
    assert [edit.edit for edit in revise(case)] == ["name_artifact"]
    assert only(case, NameArtifact).path == "tests/test_a.py"
    assert revise(missing("pytest -k nothing", Selector(text="-k nothing", problem="no_match"))) == ()


def test_tests_that_cannot_run_on_this_machine_are_neither_written_nor_retargeted() -> None:
    failed = failure(Category.TEST_NOT_FOUND, owner=Owner.ENVIRONMENT, at="tests/test_a.py")
    assert revise(situation(failed, todo("t2", FILE))) == ()


PLAIN = (
    "a.py pkg/a.py tests/test_rsi.py /etc/passwd ../x.py [id]/x.py -rf.py !a.py C:\\a.py é.ts pkg/'q\".rs"
)
hostile = st.sampled_from(
    [*PLAIN.split(), "**", "", "a\x00b", "x\u202ey.py", "pkg/ a.py", "a" * 5000, "\ud800.py"]
)
ODD_IDS = "tests/test_rsi.py::T::t test_rsi.py::x :: a.py -k::x"
nodeids = st.sampled_from([RSI, ODD, *ODD_IDS.split(), "\n::x", "tests/b.py::t[\x1b]"])
command_texts = st.sampled_from(
    [
        *(FILE, "pytest", f"pytest {RSI}", "pytest tests -k 'a b'", "uv run pytest tests", "mypy ."),
        *("ruff check .", "python scripts/x.py", "pytest tests --weird x", "tox -e lint"),
        *("black --check .", "npx eslint src"),
    ]
)
CHECK_IDS = (
    "tests[0] tests[1] tests[99] verify verify[1] test_command test_file convention metrics[0] nonsense"
)
places = st.none() | st.sampled_from([*CHECK_IDS.split(), "expected_artifacts[0]", "contract_path"])
messages = st.sampled_from(
    [
        *("No module named 'pkg.x'", "No module named 'yaml'", "cannot import name 'a' from 'b.c'"),
        *("\x1b[31m", "", "No such file or directory: '../../etc/x'", "Cannot find module 'left-pad'"),
    ]
)
texts = st.none() | messages | st.text(max_size=20)
failures = st.builds(
    lambda category, tests, place, path, text, owner: failure(
        category, *tests, check_id=place, at=path, stack_trace_head=text, suggestion=text, owner=owner
    ),
    st.sampled_from(list(STRATEGIES)) | st.sampled_from(Category),
    st.lists(st.just(RSI) | nodeids, min_size=1, max_size=3) | st.just([]),
    st.just("tests[0]") | places,
    st.just("pkg/a.py") | hostile,
    texts,
    st.none() | st.sampled_from(Owner),
)
observations = st.builds(
    lambda path, text, selector, near, problem, passed, cmd: seen(
        nodeid=path or None,
        exceptions=(
            raised("E", text or "", frame(path, Side.PRODUCT), frame(path, Side.STDLIB, source="while 1:")),
        ),
        selectors=(Selector(text=selector, problem=problem, nearest=near),),
        artifact=ArtifactFact(path=path, problem="missing", nearest=near),
        contract=ContractFact(path=path, problem="signature", module_path=path, expected="x", actual="y"),
        confirmations=(Confirmation(where="alone", passed=passed),),
        command=CommandFact(
            argv=("x",), tool="x", purpose=cmd, findings=(Finding(path=path, message=text or ""),)
        ),
    ),
    hostile,
    texts,
    nodeids | st.sampled_from(["tests/test_rsi.py", "tests"]),
    st.lists(nodeids | hostile, max_size=2).map(tuple),
    st.sampled_from(["missing_file", "missing_id", "no_match", "strange"]),
    st.booleans(),
    st.sampled_from(["lint", "type_check"]),
)
globs = st.lists(st.sampled_from(["pkg/**", "*.py", "tests/**", "!pkg/a.py"]), max_size=3)
criteria = st.fixed_dictionaries(
    {"expected_artifacts": st.lists(st.sampled_from(["out/x.json", "pkg/a.py", "*.csv"]), max_size=2)},
    optional={"metrics": st.just([{"name": "m", "operator": ">=", "value": 1}])},
)
keys = st.fixed_dictionaries(
    {},
    optional={
        "verify": command_texts | st.just("python-full"),
        "test_command": command_texts,
        "test_file": st.just("tests/test_rsi.py"),
        "contract_path": st.just("c.json"),
        "allowed_files": globs,
    },
)
todos = st.builds(
    lambda cmds, wanted, fields: todo("t2", *cmds, criteria=wanted, **fields),
    st.lists(command_texts, min_size=1, max_size=7),
    criteria,
    keys,
) | st.builds(
    lambda fields: todo("t2", **fields),  # tested by convention
    st.fixed_dictionaries({}, optional={"allowed_files": globs}),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    todos,
    failures,
    st.lists(failures, max_size=2),
    st.lists(st.tuples(places.filter(bool), command_texts, st.lists(nodeids, max_size=3)), max_size=3),
    st.none() | st.lists(observations, max_size=2).map(tuple),
    st.lists(hostile, max_size=2),
    st.sets(st.sampled_from(["mypy", "pyright", "ruff", "tsc"])).map(frozenset),
)
def test_revisions_apply_can_be_undone_and_never_weaken_a_check(
    item: Todo,
    failed: Any,
    more: list[Any],
    checks: list[Any],
    observations: Any,
    touched: list[str],
    tools: frozenset[str],
) -> None:
    case = situation(
        failed,
        item,
        *(check(place, cmd, *red) for place, cmd, red in {each[0]: each for each in checks}.values()),
        failures=tuple(more),
        observations=observations,
        touched=tuple(touched),
        tools=tools,
        others=(todo("t1", "mypy ."), todo("t3", FILE, dependencies=["t2"])),
    )
    edits = added(case)
    assert edits == added(case)
    result = revised(case)
    assert judge_plan(result, Path(__file__).parent)[0] == []
    for each in result.items:
        criteria_of(each)
        allowed = [file for file in each.allowed_files or () if file[0] != "!"]
        assert all(below_root(file.replace("*", "x")) for file in allowed)
    free = [edit for edit in edits if not edit.requires_approval]
    assert criteria_of(apply_edits(case.plan, free).todo("t2")) == criteria_of(case.todo)
    for edit in edits:
        assert "\n" not in edit.because
        assert "\x1b" not in edit.because
        text = edit.model_dump_json()
        assert type(edit).model_validate_json(text) == edit
