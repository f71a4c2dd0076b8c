"""Where the records of a plan are: each plan has a folder of its own, whatever its id holds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.planfile.plan_folder import IGNORED, PlanFolder, file_name, make_home

IDS = st.text(min_size=1, max_size=300) | st.text("aA./%+~-:é\udcff", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("todo_list_id", "name"),
    [
        ("workflow_momentum_001", "workflow_momentum_001"),
        ("shop-2.x", "shop-2.x"),
        ("shop/1: first", "shop%2F1%3A%20first"),
        ("..", "%2E%2E"),
        (".hidden", "%2Ehidden"),
        ("-rf", "%2Drf"),
        ("a..b.", "a%2E.b%2E"),
        ("x.lock", "x%2Elock"),
        ("50%", "50%25"),
        ("ä", "%C3%A4"),
    ],
)
def test_an_id_is_read_off_the_name_of_its_folder(todo_list_id: str, name: str) -> None:
    assert file_name(todo_list_id) == name
    assert PlanFolder(Path("root"), todo_list_id).path == Path(f"root/.planverify/plans/{name}")


def test_what_is_long_or_has_capital_letters_ends_with_a_digest() -> None:
    assert re.fullmatch(r"Shop\+[0-9a-f]{16}", file_name("Shop"))
    assert re.fullmatch(r"a{80}\+[0-9a-f]{16}", file_name("a" * 200))


@given(IDS, IDS)
@example("Shop", "shop")
@example("a" * 200, "a" * 201)
@example("a%2Fb", "a/b")
@example("Ä", "ä")
@example("Shop", file_name("Shop"))
def test_two_plans_never_share_a_folder_even_where_case_is_ignored(one: str, other: str) -> None:
    assert (file_name(one).lower() == file_name(other).lower()) == (one == other)


@given(IDS)
def test_any_id_is_a_name_that_file_systems_and_git_take(todo_list_id: str) -> None:
    name = file_name(todo_list_id)
    assert re.fullmatch(r"[A-Za-z0-9_%][A-Za-z0-9_.%+-]{0,99}", name)
    assert ".." not in name
    assert not name.endswith((".", ".lock"))


def test_git_sees_answers_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    home = make_home(tmp_path)
    (home / "plans" / "shop").mkdir(parents=True)
    for name in ("answers.json", "outcomes.json", "plans/shop/outcomes.json", "plans/shop/answers.json"):
        (home / name).write_text("{}")

    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(status, cwd=tmp_path, check=True, capture_output=True, text=True)

    assert done.stdout == "?? .planverify/answers.json\n"
    assert home.stat().st_mode & 0o777 == 0o700


def test_an_ignore_file_of_the_user_stays(tmp_path: Path) -> None:
    make_home(tmp_path)
    assert (tmp_path / ".planverify" / ".gitignore").read_text() == IGNORED
    (tmp_path / ".planverify" / ".gitignore").write_text("mine\n")
    make_home(tmp_path)
    assert (tmp_path / ".planverify" / ".gitignore").read_text() == "mine\n"
