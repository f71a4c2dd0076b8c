"""Initial plans from a repository, a Markdown list or a template: each of them loads."""

from __future__ import annotations

import textwrap
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_bundles import write_files

from planner.authoring.decomposition import fill_template, read_values, template_names
from planner.authoring.first_plan import fresh_id, plan_of_list, plan_of_repository, plan_text
from planner.authoring.outline import MAX_PIECES, read_outline
from planner.authoring.repository import read_repository
from planner.errors import PlannerError
from planner.model.plan import Plan, TodoStatus
from planner.planfile.loader import load_plan_text
from planner.planfile.validation import validate_plan
from planner.text.sanitizing import clean

TEST = "from shop import x\n\ndef test_it():\n    assert x() == 1\n"


def written(folder: Path, files: dict[str, str]) -> None:
    write_files(folder, {name: textwrap.dedent(text) for name, text in files.items()})


def loaded(plan: Plan, folder: Path = Path()) -> Plan:
    """Return the plan as it is loaded from its file; assert that it is the same."""
    found = load_plan_text(plan_text(plan, ["a\nb"], ["c: `d`"]), folder / "planverify.yaml").plan
    assert found == plan
    return found


def plan_of(folder: Path) -> Plan:
    return loaded(plan_of_repository(read_repository(folder)), folder)


def commands(plan: Plan) -> dict[str, list[str]]:
    """Return the commands that verify each todo."""
    return {
        todo.id: [todo.verify] if todo.verify else [each.cmd for each in todo.acceptance_criteria.tests]
        for todo in plan.items
    }


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every tool be installed."""
    monkeypatch.setattr("planner.authoring.repository.shutil.which", lambda name, path=None: "there")


def test_a_few_test_files_become_one_todo_each(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "src/shop/__init__.py": "",
            "tests/test_cart.py": TEST,
            "tests/api/test_cart.py": TEST,
            "tests/helpers.py": TEST,
            "tests/test_empty.py": "X = 1\n",
            "tests/data/test_template.py": TEST,
            ".tox/py/test_other.py": TEST,
        },
    )

    assert commands(plan_of(tmp_path)) == {
        "api-cart": ["pytest tests/api/test_cart.py"],
        "cart": ["pytest tests/test_cart.py"],
    }


def test_many_test_files_are_grouped_by_folder_without_overlap(tmp_path: Path) -> None:
    written(tmp_path, {f"tests/{part}/test_{n}.py": TEST for part in ("api", "db") for n in range(8)})
    written(tmp_path, {"tests/test_top.py": TEST})
    assert commands(plan_of(tmp_path)) == {
        "tests": ["pytest tests --ignore=tests/api --ignore=tests/db"],
        "api": ["pytest tests/api"],
        "db": ["pytest tests/db"],
    }


@pytest.mark.parametrize("testpaths", ["checks/", "c*s", "missing checks"])
def test_pytest_settings_decide_which_test_files_are_found(tmp_path: Path, testpaths: str) -> None:
    written(
        tmp_path,
        {
            "pytest.ini": f"[pytest]\ntestpaths = {testpaths}\npython_files = check_*.py\n",
            "checks/check_it.py": TEST,
            "other/check_it.py": TEST,
        },
    )
    assert commands(plan_of(tmp_path)) == {"checks-check_it": ["pytest checks/check_it.py"]}


def test_new_tests_go_into_the_folder_in_which_the_repository_has_its_tests(tmp_path: Path) -> None:
    written(tmp_path, {"test/test_shop.py": TEST})
    assert read_values("x", tmp_path)["test_file"] == "test/test_x.py"


def test_pytest_is_run_as_a_module_if_the_product_is_otherwise_not_importable(tmp_path: Path) -> None:
    written(tmp_path, {"shop.py": "def x(): return 1\n", "tests/test_shop.py": TEST})
    assert commands(plan_of(tmp_path)) == {"shop": ["python -m pytest tests/test_shop.py"]}
    written(tmp_path, {"conftest.py": ""})
    assert commands(plan_of(tmp_path)) == {"shop": ["pytest tests/test_shop.py"]}


@pytest.mark.parametrize(
    ("title", "todo_id"), [("Größe – prüfen", "grosse-prufen"), ("Café №2", "cafe-no2"), ("日本", "todo")]
)
def test_ids_keep_letters_without_their_accents(title: str, todo_id: str) -> None:
    assert fresh_id(title, set()) == todo_id


@pytest.mark.usefixtures("tools")
def test_each_tool_that_the_repository_runs_becomes_one_check(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "tests/test_it.py": TEST,
            "tox.ini": """\
                [testenv]
                commands = pytest {posargs}
                [testenv:lint]
                commands =
                    ruff check src {posargs:tests}
                    ruff check --fix .
                    - flake8
                    python -c "print(1)"
            """,
            "noxfile.py": 'def types(session):\n    session.run("mypy", "src")\n    session.run(*words)\n',
            ".github/workflows/ci.yml": """\
                on: push
                jobs:
                  a:
                    steps:
                      - run: |
                          pip install -e . && ruff format --check .
                          echo ${{ secrets.X }}; pyright | tee out
                      - {run: bandit -r src, working-directory: x}
            """,
            "Makefile": "lint:\n\t@pylint shop\ntest:\n\tpytest\n",
            ".pre-commit-config.yaml": "repos: [{repo: x, hooks: [{id: black}, {id: mypy}, {id: odd}]}]\n",
            "pyproject.toml": "[tool.ruff]\n[tool.pyright]\n",
        },
    )

    found = commands(plan_of(tmp_path))

    assert found == {
        "it": ["pytest tests/test_it.py"],
        "style": ["ruff check src tests", "ruff format --check .", "black --check ."],
        "types": ["mypy src", "pyright"],
    }


@pytest.mark.parametrize(
    "text",
    ["def (", f"x = {'-' * 200_000}1\n", 'repos: !!int ""', f"x: 1{':00' * 300}.5", f"x = {'1' * 5_000}"],
    ids=["invalid", "deep", "tag", "sexagesimal", "digits"],
)
def test_files_that_cannot_be_parsed_have_no_checks(tmp_path: Path, text: str) -> None:
    written(tmp_path, dict.fromkeys(("noxfile.py", ".pre-commit-config.yaml", "pyproject.toml"), text))
    assert read_repository(tmp_path).checks == ()


def test_a_hostile_repository_is_read_in_bounded_time(tmp_path: Path) -> None:
    lists = [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise("abcdefgh")]
    hooks = ["a: &a [x]", *lists, "repos: [{hooks: [{id: *h}]}]"]
    written(tmp_path, {"test_x.py": "\n" * 20_000, ".pre-commit-config.yaml": "\n".join(hooks)})
    started = time.process_time()
    assert read_repository(tmp_path).checks == ()
    assert time.process_time() - started < 2


@pytest.mark.parametrize("text", ["# #{}#x", "- `{}`x", "- [{}", "- -{}-x"])
def test_a_hostile_page_is_read_in_linear_time(text: str) -> None:
    started = time.process_time()
    read_outline(text.format(text[2] * 40_000))
    assert time.process_time() - started < 2


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("paths", "text", "command"),
    [
        ("Cargo.toml", "[package]\n", "cargo test"),
        ("Makefile", "test: build\n\tsh check.sh\n", "make test"),
        ("manage.py", "import django\n", "python manage.py test"),
        ("Makefile manage.py", "test: build\n", "python manage.py test"),
        ("Makefile Cargo.toml", "test: build\n", "cargo test"),
    ],
)
def test_without_tests_for_pytest_the_test_command_of_the_project_is_used(
    tmp_path: Path, paths: str, text: str, command: str
) -> None:
    written(tmp_path, {**dict.fromkeys(paths.split(), text), "shop/tests.py": "def test_price(): ...\n"})
    assert commands(plan_of(tmp_path)) == {"tests": [command]}


def test_a_checkbox_becomes_a_todo_with_its_commands_as_criteria(tmp_path: Path) -> None:
    page = """\
    # Release

    - [x] Write the **parser**: `pytest tests/test_parser.py`
    - [ ] Prices
      - [ ] net prices

        ```console
        $ pytest tests/test_net.py -q
        rm -rf /
        ```
      - [ ] gross
        - run `pytest tests/test_gross.py` after `gross()`
    * [ ] Docs
    - no box, `pytest tests/test_none.py`
    """

    plan = loaded(plan_of_list(read_outline(textwrap.dedent(page)), "shop"), tmp_path)

    assert plan.workflow_name == "Release"
    assert commands(plan) == {
        "write-the-parser": ["pytest tests/test_parser.py"],
        "net-prices": ["pytest tests/test_net.py -q"],
        "gross": ["pytest tests/test_gross.py"],
        "prices": [],
        "docs": [],
    }
    assert [todo.id for todo in plan.items if todo.status is TodoStatus.CLAIMED] == ["write-the-parser"]
    assert plan.todo("prices").dependencies == ("net-prices", "gross")
    assert not plan.todo("docs").requires_testing


lines = st.lists(
    st.tuples(
        st.sampled_from(["- [ ] ", "  - [x] ", "    * [ ] ", "\t1. [ ] ", "# ", "```\n", "- ", ""]),
        st.text(max_size=30)
        | st.sampled_from(["`pytest x.py`", "yes", "2026-01-01", "007", "# x", "[a](b)"]),
    ).map("".join),
    max_size=12,
)


@settings(max_examples=20)
@given(lines)
def test_any_task_list_gives_a_plan_that_loads(found: list[str]) -> None:
    page = read_outline("\n".join(["- [ ] first", *found]))
    plan = loaded(plan_of_list(page, "x"))
    assert len(plan.items) == sum(each.is_checked is not None for each in page.walk())


def test_a_page_with_too_many_items_is_refused() -> None:
    with pytest.raises(PlannerError, match="split the page"):
        read_outline("- x\n" * (MAX_PIECES + 1))


def filled(folder: Path, name: str, goal: str) -> str:
    return fill_template(name, {**read_values(goal, folder), "root": "."})


@pytest.mark.parametrize("name", template_names())
@pytest.mark.parametrize(
    "manifest",
    [
        *("tests/test_a.py", "src/shop/tests/test_a.py", "src/shop/test_a.py", "src/shop/a_test.py"),
        *("go.mod", "Cargo.toml"),
    ],
)
def test_a_plan_from_a_template_has_no_findings(tmp_path: Path, name: str, manifest: str) -> None:
    (tmp_path / manifest).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / manifest).write_text("def test_a(): ...\n" if manifest.endswith(".py") else "")
    (tmp_path / "plan.yaml").write_text(filled(tmp_path, name, "Export orders as CSV"))
    assert validate_plan(tmp_path / "plan.yaml") == ()


@settings(max_examples=20)
@given(goal=st.text(min_size=1, max_size=200).filter(lambda text: clean(text).strip()))
def test_any_goal_is_inserted_into_a_template_as_plain_text(
    goal: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "without-tests"
    folder.mkdir(exist_ok=True)
    plan = load_plan_text(filled(folder, "feature", goal), folder / "p.yaml").plan
    assert [todo.agent_role for todo in plan.items] == ["tester", "coder"]


def test_the_strategy_template_has_four_steps_with_contracts_fixtures_and_routing(tmp_path: Path) -> None:
    plan = load_plan_text(filled(tmp_path, "strategy", "momentum with RSI"), tmp_path / "p.yaml").plan
    steps = {todo.id: todo for todo in plan.items}
    names = ["t1_data_integration", "t2_indicators", "t3_entry_conditions", "t4_exit_conditions"]
    assert [each for each in steps if each[1] != "0"] == names
    assert all(steps[name].contract_path and steps[name].failure_routing for name in names)
    assert all(each.fixture for name in names for each in steps[name].acceptance_criteria.tests)
    assert [each.name for each in steps[names[0]].acceptance_criteria.metrics] == ["rows_min"]
