"""Memory about past todos: their kinds, fingerprints of repositories, order and recipes."""

from __future__ import annotations

import doctest
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from memory_samples import ELSEWHERE, NOW, past_todo, records, remembering, times, todo, todos

from planner import memory
from planner.catalog import RECIPES
from planner.memory import (
    Memory,
    RecipeAdvice,
    TaskKind,
    jaccard,
    ngrams,
    own_title,
    task_kind,
    text_of,
    words_of,
)
from planner.model.outcome import Failure
from planner.model.past import PastRecords, PastTodo
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Category, Role
from planner.planfile.project_facts import MANIFESTS, repository_fingerprint
from planner.planfile.project_files import LARGEST_READ

LINT = (Category.LINT_ERROR,)


def bias(memory: Memory) -> float:
    return memory.order_bias(todo("Add a parser"), NOW)


def test_a_repaired_or_unfinished_todo_is_not_a_first_attempt_success() -> None:
    once = bias(remembering(past_todo("Add a parser", True)))
    repaired = bias(remembering(past_todo("Add a parser", False)))
    never = bias(remembering(past_todo("Add a parser", True, done=False)))
    assert repaired == never < 0.5 < once


@pytest.mark.parametrize(
    "less",
    [
        {"fingerprint": ELSEWHERE},
        {"role": Role.TESTER},
        {"at": "2026-09-01T00:00:00Z"},
        {"text": "Add a lexer"},
    ],
    ids=lambda less: next(iter(less)),
)
def test_more_distant_records_count_less(less: dict[str, Any]) -> None:
    near = remembering(*[past_todo("Add a parser", True)] * 3)
    far = remembering(*[past_todo("Add a parser", True, **less)] * 3)
    assert bias(near) > bias(far) > 0.5


def test_the_text_of_a_branch_is_the_text_of_its_todo() -> None:
    branch = todo("Repair Add a parser (timeout)", parent_id="t1")
    assert text_of(branch) == own_title(branch) == "Add a parser"
    assert text_of(todo("Repair Add a parser (timeout)")) == "Repair Add a parser (timeout)"
    assert own_title(todo("Look at the login", parent_id="t1")) == "Look at the login"
    failure = Failure(category=Category.UNKNOWN, stack_trace_head="KeyError: 3" + " x" * 500)
    assert text_of(branch, failure).startswith("Add a parser KeyError: 3 x")
    assert len(text_of(branch, failure)) < 320


@pytest.mark.parametrize(
    ("category", "about", "recipe"),
    [
        (Category.COMPILATION_ERROR, {}, "python-quick"),
        (Category.TYPE_ERROR, {}, "python-full"),
        (Category.IMPORT_ERROR, {"test_file": "tests/test_a.py"}, "python-full"),
        (Category.LINT_ERROR, {"verify": "npm test"}, "node-full"),
        (Category.TYPE_ERROR, {"verify": "go test ./..."}, "go-full"),
        (Category.COMPILATION_ERROR, {"verify": "cargo test"}, "rust-full"),
        (Category.LINT_ERROR, {"acceptance_criteria": {"expected_artifacts": ["a.py"]}}, "python-quick"),
        (Category.LINT_ERROR, {"verify": "go-full"}, None),
        (Category.LINT_ERROR, {"verify": "python-quick"}, None),
        (Category.TYPE_ERROR, {"verify": "python-quick"}, "python-full"),
        (Category.TEST_REGRESSION, {}, None),
    ],
)
def test_a_recipe_must_fit_the_language_and_find_the_category(
    category: Category, about: dict[str, Any], recipe: str | None
) -> None:
    memory = remembering(*[past_todo("Add a parser", False, categories=(category,))] * 5)
    advice = memory.recipe(todo("Add a parser", **about), NOW)
    assert (advice and advice.value) == recipe
    assert recipe is None or recipe in RECIPES


def test_few_old_or_rare_failures_do_not_recommend_a_recipe() -> None:
    def advice(*held: PastTodo) -> RecipeAdvice | None:
        return remembering(*held).recipe(todo("Add a parser"), NOW)

    met, not_met = past_todo("Add a parser", False, categories=LINT), past_todo("Add a parser", True)
    assert advice(*[met] * 3) is not None
    assert advice(met.model_copy(update={"fingerprint": ELSEWHERE})) is None
    assert advice(*[past_todo("Add a parser", False, 90, categories=LINT)] * 3) is None
    assert advice(*[met] * 2, *[not_met] * 20) is None


def test_words_with_one_stem_are_similar_in_any_order() -> None:
    assert ngrams("rsi a") == {" rs", "rsi", "si ", " a "}
    assert ngrams("slow test") == ngrams("test slow")
    assert jaccard(ngrams("?"), ngrams("")) == 1


@settings(max_examples=30)
@given(records, todos, times)
def test_any_todo_gets_a_bounded_order_bias_and_a_known_recipe_or_none(
    held: PastRecords, about: Todo, now: float
) -> None:
    memory = Memory(held)
    advice = memory.recipe(about, now)
    assert 0 < memory.order_bias(about, now) < 1
    assert advice is None or (advice.value in RECIPES and advice.because)


@pytest.mark.parametrize(
    ("title", "fields", "kind"),
    [
        ("Fix failing assertion", {}, "fix_bug"),
        ("Repair the flaky tests", {}, "fix_test"),
        ("Add tests for the parser", {}, "add_test"),
        ("Tests of the parser", {}, "add_test"),
        ("Add a login", {}, "add_feature"),
        ("Extract the session into a module", {}, "refactor"),
        ("renameTheSession", {}, "refactor"),
        ("Write the fix", {}, "add_feature"),
        ("Entry conditions", {"intent": "Implement the rules of buying"}, "add_feature"),
        ("Entry conditions", {"controller_task_spec": {"type": "REFACTOR"}}, "refactor"),
        ("Entry conditions", {"controller_task_spec": {"type": "ADD_TEST"}}, "add_test"),
        ("Entry conditions", {}, "other"),
        ("Repair Add a login (implementation bug)", {"parent_id": "t1"}, "add_feature"),
        ("Repair the login (again)", {}, "fix_bug"),
    ],
)
def test_the_task_kind_follows_from_title_and_fields(title: str, fields: dict[str, Any], kind: str) -> None:
    assert task_kind(todo(title, **fields)) == kind


def test_words_are_split_and_numbers_are_normalised() -> None:
    assert words_of("computeRSI_of 3.14 v2 Größe") == ["compute", "rsi", "of", "0", "v", "0", "grösse"]


def plan(*commands: str) -> Plan:
    items = [{"id": f"t{at}", "title": "T", "verify": command} for at, command in enumerate(commands)]
    return Plan.model_validate({"todo_list_id": "p", "items": items})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n')
    return tmp_path


def test_a_copy_of_a_project_has_the_same_fingerprint(root: Path) -> None:
    copy = root / "copy"
    copy.mkdir()
    (copy / "pyproject.toml").write_bytes(b'[project]\r\nname = "a"\r\n')
    (copy / "main.py").write_text("work goes on")
    first = repository_fingerprint(root, plan("pytest tests/test_a.py"))
    others = plan("python -m pytest -q", "pytest a.py::b", "ruff check .")
    assert first == repository_fingerprint(copy, others)
    assert len(first.removeprefix("sha256:")) == 64


def test_every_manifest_and_its_name_affect_the_fingerprint(root: Path) -> None:
    (root / "pyproject.toml").unlink()
    found = {repository_fingerprint(root, plan("pytest"))}
    for name, text in ((name, text) for name in MANIFESTS for text in ("same", "another")):
        (root / name).write_text(text)
        found.add(repository_fingerprint(root, plan("pytest")))
        (root / name).unlink()
    assert len(found) == 1 + 2 * len(MANIFESTS)


def test_the_test_tools_of_a_plan_affect_the_fingerprint(root: Path) -> None:
    told = [("pytest",), ("npm test",), ("pytest", "npm test"), ("npm test", "pytest a.py")]
    found = [repository_fingerprint(root, plan(*commands)) for commands in told]
    assert len(set(found[:3])) == 3
    assert found[2] == found[3]
    assert repository_fingerprint(root, plan()) == found[0], "pytest where nothing is said"
    assert repository_fingerprint(root, plan("rm -rf .", "pytest")) == found[0], "what nobody may run"


def test_unreadable_manifests_count_as_absent(root: Path) -> None:
    before = repository_fingerprint(root, plan())
    (root / "setup.py").symlink_to("/etc/passwd")
    (root / "setup.cfg").mkdir()
    os.mkfifo(root / "go.mod")
    (root / "Cargo.toml").symlink_to("Cargo.toml")
    assert repository_fingerprint(root, plan()) == before
    assert repository_fingerprint(root / "nowhere", plan()) != before


def test_only_the_beginning_of_a_long_manifest_affects_the_fingerprint(root: Path) -> None:
    found: list[str] = []
    for content in (b"x" * LARGEST_READ, b"x" * LARGEST_READ + b"y", b"x" * LARGEST_READ + b"zz"):
        (root / "package.json").write_bytes(content)
        found.append(repository_fingerprint(root, plan()))
    assert found[0] != found[1] == found[2]


PAGE = Path(__file__).parents[3] / "docs" / "memory.md"


def test_every_example_of_the_memory_page_is_correct() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 30
    assert found.failed == 0


def test_the_memory_page_names_the_constants_of_the_code() -> None:
    words = " ".join(PAGE.read_text(encoding="utf-8").split())
    recipes = [each for rows in memory.SHOWN_BY.values() for each in rows]
    categories = [category for _, shown in recipes for category in shown]
    quoted = [*MANIFESTS, *TaskKind, *(name for name, _ in recipes), *categories]
    constants = [
        f"after each day {100 * memory.DAILY:.0f} % of a weight are left",
        f"Jaccard similarity of {memory.ALIKE} or more",
        f"that they weigh {memory.ENOUGH} or more",
        f"better by {100 * memory.MARGIN:.0f} points at least",
    ]

    assert [each for each in (*constants, *(f"`{name}`" for name in quoted)) if each not in words] == []
