"""Tools declared by plans and repositories, and recognition of test paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from planner.catalog import RECIPES, TOOLS, Purpose, parse_command
from planner.catalog.output import proves_nothing
from planner.catalog.test_paths import is_test_module, is_test_path
from planner.catalog.tools import PYTEST
from planner.cli.app import app
from planner.errors import CommandSyntaxError, PlannerError
from planner.model.plan import ToolSpec
from planner.planfile.loader import load_plan
from planner.planfile.tree import load_tree

SORTED = ToolSpec(name="sorted", kind=Purpose.LINT, argv=("sort", "--check"))
GREP = ToolSpec(name="grep", argv=("grep", "-q"))
SEQ = ToolSpec(name="seq")
DOCS = ToolSpec(name="docs", kind=Purpose.BUILD, argv=("mkdocs", "build", "--strict"))
CARGO_RUN = ToolSpec(name="cargo-run", kind=Purpose.TEST, argv=("cargo", "run"))
SCRIPT = ToolSpec(name="script", kind=Purpose.LINT, argv=("python", "check.py"))
OWN_TOOLS = (SORTED, GREP, SEQ, DOCS, CARGO_RUN, SCRIPT)


@pytest.mark.parametrize(
    ("cmd", "argv", "tool", "purpose"),
    [
        ("sorted a.txt", "sort --check a.txt", "sorted", Purpose.LINT),
        ("sort --check a.txt", "sort --check a.txt", "sorted", Purpose.LINT),
        ("grep", "grep -q", "grep", Purpose.VALIDATE),
        ("grep -q x y", "grep -q x y", "grep", Purpose.VALIDATE),
        ("bin/grep -q x y", "bin/grep -q x y", "grep", Purpose.VALIDATE),
        ("seq 3", "seq 3", "seq", Purpose.VALIDATE),
        ("uvx --from x sorted a", "uvx --from x sort --check a", "sorted", Purpose.LINT),
        ("cargo run --bin x", "cargo run --bin x", "cargo-run", Purpose.TEST),
        ("docs", "mkdocs build --strict", "mkdocs", Purpose.BUILD),
        ("mkdocs build", "mkdocs build", "mkdocs", Purpose.BUILD),
        ("script", "python check.py", "python", Purpose.TEST),
    ],
)
def test_the_name_of_a_plan_tool_is_replaced_by_its_arguments(
    cmd: str, argv: str, tool: str, purpose: Purpose
) -> None:
    command = parse_command(cmd, OWN_TOOLS)
    assert (" ".join(command.argv), command.tool.name, command.tool.purpose) == (argv, tool, purpose)


@pytest.mark.parametrize(
    ("cmd", "said"),
    [
        ("grep -c x y", "allows grep only as 'grep -q'; start the command with that"),
        ("sort a.txt", "allows sort only as 'sort --check'"),
        ("cargo install x", "cargo install is not allowed"),
        ("seq --version", "only prints information on seq"),
    ],
)
def test_other_uses_of_the_program_of_a_plan_tool_are_refused(cmd: str, said: str) -> None:
    with pytest.raises(CommandSyntaxError) as refused:
        parse_command(cmd, OWN_TOOLS)
    assert said in str(refused.value)


def test_a_plan_tool_is_judged_only_by_its_exit_status() -> None:
    tool = parse_command("seq 0", (ToolSpec(name="seq", kind=Purpose.TEST),)).tool
    assert proves_nothing(tool, "Ran 0 tests in 0.0s\n\nOK\n", "") is None


@given(
    st.from_regex(r"[a-z][a-z0-9_.+-]{0,12}", fullmatch=True), st.sampled_from(["", " check", " a/b -x"])
)
def test_the_entry_suggested_by_a_refusal_makes_the_command_valid(name: str, rest: str) -> None:
    try:
        parse_command(name + rest)
        return
    except CommandSyntaxError as refused:
        text = str(refused)
    if "name it in the plan: " not in text:
        return
    assert "\n" not in text
    added = yaml.safe_load(text.partition("name it in the plan: ")[2])
    specs = tuple(ToolSpec.model_validate(spec) for spec in added["metadata"]["tools"])
    assert parse_command(name + rest, specs).argv == tuple((name + rest).split())


@pytest.mark.parametrize("cmd", ["grep x", "diff a b", "cargo zzz"])
def test_no_hint_suggests_a_name_that_is_only_a_little_similar(cmd: str) -> None:
    with pytest.raises(CommandSyntaxError) as refused:
        parse_command(cmd)
    assert "did you mean" not in str(refused.value)


def write(path: Path, *cmds: str, tools: list[dict[str, Any]] | None = None, **keys: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    todo = {"id": "a", "title": "A", "acceptance_criteria": {"tests": list(cmds)}}
    policy = {} if tools is None else {"metadata": {"tools": tools}}
    path.write_text(json.dumps({"todo_list_id": path.stem, **policy, "items": [{**todo, **keys}]}))
    return path


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"name": "seq"}, "the tool 'seq' is named twice"),
        ({"name": "sh"}, "sh starts a shell"),
        ({"name": "x", "argv": ["bash", "-c", "true"]}, "bash starts a shell"),
        ({"name": "x", "argv": ["uv", "run", "sh"]}, "sh starts a shell"),
        ({"name": "x", "argv": ["python", "-c", "1"]}, "python -c contains code"),
        ({"name": "x", "argv": ["../x"]}, "outside"),
        ({"name": "x", "argv": ["ruff", "check", "--exit-zero"]}, "remove --exit-zero"),
        ({"name": "pytest", "argv": ["tree"]}, "a program of the catalog"),
        ({"name": "a b"}, "a b"),
        ({"name": "x", "kind": "lnit"}, "did you mean 'lint'?"),
    ],
    ids=str,
)
def test_a_plan_tool_may_not_be_named_twice_be_a_shell_or_bypass_the_catalog(
    tool: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(PlannerError) as refused:
        load_plan(write(tmp_path / "plan.yaml", "pytest", tools=[{"name": "seq"}, tool]))
    assert "metadata.tools[1]" in str(refused.value)
    assert said in str(refused.value)


NAMES = st.sampled_from(["a", "b", "pytest", "ruff", "mkdocs"])
WORDS = st.lists(
    st.sampled_from(["a", "b", "pytest", "ruff", "check", "build", "-x", "uv", "run"]), max_size=3
)


@given(
    st.lists(st.tuples(NAMES, WORDS), max_size=4),
    st.lists(st.one_of(NAMES, WORDS.map(" ".join)), max_size=3),
)
def test_with_any_plan_tools_a_command_is_parsed_or_refused(
    tools: list[tuple[str, list[str]]], words: list[str]
) -> None:
    specs = tuple(ToolSpec(name=name, argv=tuple(argv)) for name, argv in dict(tools).items())
    try:
        command = parse_command(" ".join(words), specs)
    except CommandSyntaxError:
        return
    assert command.argv
    assert (command.pytest is not None) == (command.tool is PYTEST)


WIDE_SEQ = {"name": "seq", "argv": ["seq", "-w"]}


@pytest.mark.parametrize(
    ("above", "own", "said"),
    [
        ([{"name": "seq"}], None, None),
        ([{"name": "seq"}], [WIDE_SEQ], None),
        ([{"name": "seq"}], [], "'seq' is no tool of the catalog"),
        ([WIDE_SEQ], [{"name": "seq"}], "the parent plan does not allow the tool 'seq'"),
        (None, [{"name": "seq"}], "the parent plan does not allow the tool 'seq'"),
    ],
    ids=["inherited", "longer", "none", "shorter", "new"],
)
def test_a_sub_plan_inherits_tools_and_may_only_narrow_them(
    above: list[dict[str, Any]] | None, own: list[dict[str, Any]] | None, said: str | None, tmp_path: Path
) -> None:
    write(tmp_path / "sub.json", "seq -w 1", tools=own)
    plan = write(tmp_path / "plan.json", tools=above, sub_plan="sub.json")
    if said is None:
        load_tree(plan, boundary=tmp_path).load_all()
        return
    with pytest.raises(PlannerError) as refused:
        load_tree(plan, boundary=tmp_path).load_all()
    assert said in str(refused.value)


EVERYDAY = """
codespell src | docker build . | bun test | just test | task lint | actionlint | biome check . | ninja
markdownlint README.md | golangci-lint run | rustfmt --check a.rs | pip-audit | check-manifest | rubocop
hatch build | hatch test | poetry check | cmake --build b | stylelint a.css | tflint
uvx ruff@0.14 check | uv run mypy src | ./gradlew test | vendor/bin/phpunit | cargo clippy -- -D warnings
"""
"""Checks of which there is no output in ``fixtures/catalog_output.yaml``, where those of all others are."""


@pytest.mark.parametrize("cmd", [cmd.strip() for cmd in EVERYDAY.strip().replace("\n", "|").split("|")])
def test_common_checks_are_in_the_catalog(cmd: str) -> None:
    assert parse_command(cmd).tool.name


def test_tools_lists_the_tools_of_the_catalog_and_the_recipes() -> None:
    shown = CliRunner().invoke(app, ["tools"]).output
    tools, recipes = (each.splitlines() for each in shown.split("\n\n"))
    assert len(tools) == 1 + len(TOOLS)
    assert len(recipes) == 1 + sum(map(len, RECIPES.values()))
    (row,) = (each.split() for each in tools if each.startswith("  pytest "))
    assert row == ["pytest", "test", "pytest", "yes"]


TESTS = ["tests/a.py", "test_a.py", "conftest.py", "pkg/a_test.go", "pkg/rsi_tests.py", "src/a.test.ts"]
TESTS += ["src/tests.rs", "a/__tests__/b.js", "tests\\data\\a.txt"]
PRODUCT = ["pkg/contest.py", "latest.py", "pkg/testable.py", "src/attest/a.py", ""]
MODULES = ["tests/test_a.py", "pkg/a_test.py", "tests/helpers.py", "tests/test_a.json"]


def test_test_files_are_recognised_by_name_and_folder():
    assert [path for path in (*TESTS, *PRODUCT) if is_test_path(path)] == TESTS
    assert [path for path in MODULES if is_test_module(path)] == MODULES[:2]
