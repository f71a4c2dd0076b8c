"""``planverify init`` writes a first plan that is valid and can be verified, and replaces none unasked."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from real_command import LEAN_TERMINAL
from real_planner import Ran, forked

from planner.planfile.loader import load_plan

FILES = {
    "shop.py": "def x(): return 1\n",
    "tests/test_shop.py": "from shop import x\n\n\ndef test_x():\n    assert x() == 1\n",
    "pyproject.toml": "[project]\nname = 'my shop'\n\n[tool.ruff]\n[tool.basedpyright]\n",
    "tox.ini": "[testenv]\ncommands =\n    python -m compileall -q shop.py\n    pytest {posargs}\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def ran(*words: str, cwd: Path, status: int = 0) -> Ran:
    done = forked(words, cwd, program="planverify", env=LEAN_TERMINAL)
    assert done.status == status, done.out + done.err
    assert "Traceback" not in done.err
    return done


def test_the_first_plan_of_a_repository_validates_and_names_checks_that_it_leaves_out(shop: Path) -> None:
    made = ran("init", cwd=shop)
    text = (shop / "planverify.yaml").read_text()

    assert "3 todos" in made.out
    assert "todo_list_id: my-shop\n" in text
    assert "verify: python -m pytest tests/test_shop.py" in text
    assert "# - basedpyright (pyproject.toml)\n" in text
    assert ": error" not in ran("validate", cwd=shop).out
    assert not (shop / "AGENTS.md").exists()
    # A plan in JSON has no comments.
    assert "planverify: - basedpyright (pyproject.toml)\n" in ran("init", "-o", "plan.json", cwd=shop).err


def test_an_existing_plan_is_replaced_only_with_force(shop: Path) -> None:
    (shop / "plan.yaml").write_text("mine: true\n")

    refused = ran("init", cwd=shop, status=2)

    assert refused.err == (
        "planverify: plan.yaml exists already; name another file with -o, or add --force\n"
    )
    assert not (shop / "planverify.yaml").exists()
    ran("init", "-o", "plan.yaml", cwd=shop, status=2)
    shown = ran("init", "-o", "-", cwd=shop)
    assert shown.out.startswith("# Made by planverify init")
    ran("init", "-o", "plan.yaml", "--force", cwd=shop)
    assert "items:" in (shop / "plan.yaml").read_text()


def test_a_plan_in_another_folder_has_the_root_of_the_repository(shop: Path) -> None:
    (shop / "pytest.ini").write_text("[pytest]\n")
    ran("init", "-o", "plans/first.yaml", cwd=shop)

    assert "root: ..\n" in (shop / "plans/first.yaml").read_text()
    assert "is not written yet" not in ran("validate", "plans/first.yaml", cwd=shop).out


def test_init_makes_a_plan_from_check_boxes_and_a_section_in_agents_md(shop: Path) -> None:
    (shop / "TODO.md").write_text(
        "# Shop\n\n- [x] Count: `python -m pytest tests/test_shop.py`\n- [ ] Sell\n  - [ ] Pack\n"
    )
    (shop / "AGENTS.md").write_text("Be kind.\n")

    made = ran("init", "--from", "TODO.md", "--agents", cwd=shop)

    assert "wrote planverify.yaml: 3 todos" in made.out
    assert "1 done" in ran("verify", cwd=shop).out
    page = (shop / "AGENTS.md").read_text()
    assert page.startswith("Be kind.\n\n<!-- planverify: begin -->")
    assert "`planverify next`" in page
    assert "is up to date" in ran("init", "--agents", cwd=shop).out
    assert (shop / "AGENTS.md").read_text() == page


def test_a_command_of_a_list_that_the_catalog_does_not_know_is_told(shop: Path) -> None:
    blocks = "  ```console\n  $ papermill a b\n  ```\n  ```python\n  return a\n  ```\n"
    box = "- [ ] Count: `jupyter nbconvert x` with `f(x) + 1`\n"
    (shop / "TODO.md").write_text(f"# Shop\n\nSee `git log`.\n\n{box}{blocks}")

    ran("init", "--from", "TODO.md", cwd=shop)

    comment = (shop / "planverify.yaml").read_text().partition("# No criteria")[2]
    assert comment.splitlines()[1:] == ["# - line 5: jupyter nbconvert x", "# - line 5: papermill a b"]


def test_the_commands_in_agents_md_work_and_verify_the_first_plan(shop: Path) -> None:
    ran("init", "--agents", cwd=shop)
    section = (shop / "AGENTS.md").read_text()
    todo_id = load_plan(shop / "planverify.yaml").plan.items[0].id

    told = re.findall(r"`planverify ([^`]+)`", section)
    assert len(told) >= 5
    done = {
        command: ran(*shlex.split(command.replace("TODO", todo_id)), cwd=shop)
        for command in dict.fromkeys(told)
    }
    assert "3 done" in done["verify"].out


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("init",), 1, "there are no tests here"),
        (("init", "--from", "none.md"), 4, "none.md: it cannot be read (No such file"),
        (("init", "--from", "empty.md"), 1, "empty.md: it has no check boxes"),
        (("init", "--from", "."), 4, "it is a directory"),
    ],
)
def test_init_without_input_explains_why_in_one_line(
    tmp_path: Path, words: tuple[str, ...], status: int, text: str
) -> None:
    (tmp_path / "empty.md").write_text("Nothing to do.\n")

    refused = ran(*words, cwd=tmp_path, status=status)

    assert text in refused.err
    assert len(refused.err.splitlines()) == 1
    assert not (tmp_path / "planverify.yaml").exists()
