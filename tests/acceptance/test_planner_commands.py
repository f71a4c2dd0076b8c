"""The real `planner` in a separate process: its output, exit status and effects on files."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from example_project import Example
from jsonschema import Draft202012Validator
from real_planner import forked, planner, spawned

from planner.planfile.schemas import schema

PROJECT = {
    "pytest.ini": "[pytest]\npythonpath = .\n",
    "shop/__init__.py": "",
    "shop/prices.py": """
        def with_tax(price):
            return price * 1.1
        """,
    "tests/test_prices.py": """
        from shop.prices import with_tax

        def test_tax():
            assert with_tax(100) == 119
        """,
    "tests/test_names.py": """
        def test_names():
            assert sorted("ba") == ["a", "b"]
        """,
}


@pytest.fixture(scope="module")
def red_shop(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """Return the shop with the outcomes of a run, for tests that change nothing."""
    shop = Example(tmp_path_factory.mktemp("red") / "shop", PROJECT)
    shop.plan(
        {"id": "prices", "title": "Prices with tax", "verify": "pytest tests/test_prices.py"},
        {
            "id": "invoice",
            "title": "Invoices",
            "verify": "pytest tests/test_names.py",
            "dependencies": ["prices"],
        },
        {"id": "names", "title": "Names", "verify": "pytest tests/test_names.py"},
    )
    shop.verify("plan.yaml", "--planverify-confirm=0")
    return shop


def test_a_failed_todo_is_repaired_in_a_branch_until_the_plan_is_completed(
    red_shop: Example, tmp_path: Path
) -> None:
    """The whole cycle: red, branch, repaired, completed. `planner` changes none of its input files."""
    shop = red_shop.copied_to(tmp_path / "shop")
    before = {path: path.read_bytes() for path in shop.root.rglob("*") if path.is_file()}

    first = planner("next", "plan.yaml", "--output", "next.yaml", cwd=shop.root)

    assert first.status == 0
    assert "repair prices_branch_01, attempt 1 of 3, by the coder" in first.out
    assert {path: path.read_bytes() for path in before} == before
    shown = planner("status", "plan.yaml", cwd=shop.root).out
    assert shown.splitlines()[-1] == "1 done, 1 failed, 1 blocked, 1 branch"

    repaired = PROJECT["shop/prices.py"].replace("price * 1.1", "round(price * 1.19, 2)")
    shop.write({"shop/prices.py": repaired})
    verified = shop.verify("next.yaml")
    assert verified.exit_code == 0, verified.output

    last = planner("next", "next.yaml", cwd=shop.root)

    assert (last.status, last.err) == (0, "")
    assert last.out.startswith("example  completed: 3 of 3 todos done")


def test_json_is_the_same_bytes_in_every_process_and_encoding(red_shop: Example) -> None:
    given = ("next", "plan.yaml", "--json", "--full")
    one = spawned(given, red_shop.root, {"PYTHONHASHSEED": "1"})
    other = forked(given, red_shop.root, encoding="ascii")  # with the hash seed of this process

    assert one.out == other.out
    Draft202012Validator(schema("action")).validate(json.loads(one.out)["actions"][0])


@pytest.mark.parametrize("words", [("next",), ("status",), ("validate",), ("explain",)])
def test_an_encoding_without_the_symbols_is_supported(red_shop: Example, words: tuple[str, ...]) -> None:
    ran = forked((*words, "plan.yaml"), red_shop.root, encoding="ascii")

    assert ran.status in (0, 1), ran.err
    assert ran.out.isascii()


def test_the_installed_command_and_the_module_have_the_same_version(red_shop: Example) -> None:
    script = shutil.which("planner", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the command is not installed in this environment")

    installed = spawned(["--version"], red_shop.root, command=[script])
    assert installed == spawned(["--version"], red_shop.root)


def test_a_closed_pipe_is_no_error(red_shop: Example) -> None:
    read, write = os.pipe()
    os.close(read)

    done = spawned(["next", "plan.yaml"], red_shop.root, stdout=write)
    os.close(write)

    assert (done.status, done.err) == (0, "")


def test_a_full_disk_is_reported(red_shop: Example) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = spawned(["status", "plan.yaml"], red_shop.root, stdout=full)

    assert done.status == 4
    assert done.err == (
        "planner: the output cannot be written: No space left on device; write it elsewhere\n"
    )


def test_commands_are_completed_by_scripts_for_common_shells(red_shop: Example) -> None:
    # Otherwise typer looks for the shell that started it, and there may be none.
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for shell in ("bash", "zsh", "fish"):
        assert (
            "_PLANNER_COMPLETE=complete_"
            in forked(("--show-completion", shell), red_shop.root, env=env).out
        )

    env = {"_PLANNER_COMPLETE": "complete_bash", "COMP_WORDS": "planner sta", "COMP_CWORD": "1"}
    assert forked((), red_shop.root, env=env).out.split() == ["status"]
