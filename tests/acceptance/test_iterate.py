"""`planner gaps` and `planner iterate`, from the gaps of a project to the results of its iterations."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from real_command import LEAN_TERMINAL
from real_planner import forked, planner


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "ROADMAP.md": "# Roadmap\n\n- [x] Begin\n- [ ] Parts\n  - [ ] Create `shop/prices.py`\n",
        "inbox/rounding.md": "# Round in `shop/cart.py`\n\n## Constraints\n\n- No new dependency\n",
        "shop/__init__.py": "",
        "shop/cart.py": "import os\n\n\ndef total(prices):\n    return sum(prices)\n",
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def verify(plan: str, cwd: Path) -> int:
    words = ("verify", plan, "--planverify-confirm=0")
    return forked(words, cwd, program="planverify", env=LEAN_TERMINAL).status


def planned_file(said: str) -> str:
    found = re.search(r"^wrote (\S+)$", said, re.MULTILINE)
    assert found, said
    return found[1]


def test_gaps_come_from_the_inbox_and_the_open_boxes_of_a_roadmap(project: Path) -> None:
    done = planner("gaps", "--json", cwd=project)

    assert done.status == 1
    gaps = done.json["gaps"]
    assert [(each["category"], each["description"]) for each in gaps] == [
        ("inbox", "Round in shop/cart.py"),
        ("roadmap", "Create shop/prices.py"),
    ]
    assert gaps[0]["constraints"] == ["No new dependency"]
    assert done.json["most_critical"] == gaps[0]


def test_a_written_report_is_planned_from(project: Path) -> None:
    written = planner("gaps", "-o", "gaps.json", cwd=project)
    (project / "inbox/rounding.md").unlink()

    assert written.err.endswith("planner iterate --gaps gaps.json\n")
    assert "Round in" in planner("iterate", "--gaps", "gaps.json", cwd=project).out


def test_an_iteration_is_judged_by_its_outcomes_before_the_next_begins(project: Path) -> None:
    (project / "inbox/rounding.md").unlink()
    plan = planned_file(planner("iterate", cwd=project).out)
    assert planner("validate", plan, cwd=project).out == "ready: no findings\n"
    held = (project / plan).read_text()
    assert "shop/prices.py" in held

    early = planner("iterate", cwd=project)
    assert early.status == 1
    assert "was not verified" in early.err

    assert verify(plan, project) == 1
    again = planner("iterate", cwd=project)
    assert "ended: failure" in again.err
    assert "risk high" in again.out

    (project / "shop/prices.py").write_text("PRICE = 1\n")
    (project / "tests").mkdir()
    (project / "tests/test_create_shop_prices_py.py").write_text(
        "from shop.prices import PRICE\n\n\ndef test_price():\n    assert PRICE == 1\n"
    )
    (project / "ROADMAP.md").write_text("- [x] all\n")
    assert verify(planned_file(again.out), project) == 0
    last = planner("iterate", cwd=project)
    assert "ended: success" in last.err
    assert "no gaps" in last.err


def test_a_gap_that_an_iteration_closed_is_not_planned_again_though_its_list_has_it(project: Path) -> None:
    (project / "inbox/rounding.md").write_text(
        "# Add `tests/test_a.py`\n\n- [ ] `pytest tests/test_a.py`\n"
    )
    planner("iterate", "-o", "next.json", cwd=project)
    (project / "tests").mkdir()
    (project / "tests/test_a.py").write_text("def test_a():\n    pass\n")
    assert verify("next.json", project) == 0

    done = planner("iterate", "-o", "next.json", cwd=project)

    assert ": Create shop/prices.py (risk low)" in done.out
    assert "done, but still listed: inbox/rounding.md; check the box, or remove the file\n" in done.err
    gaps = planner("gaps", cwd=project)
    assert "inbox" not in gaps.out
    assert "inbox/rounding.md" in gaps.err


def test_a_failure_that_an_iteration_closed_is_a_gap_again_if_a_later_run_has_it(project: Path) -> None:
    (project / "inbox/rounding.md").unlink()
    test, product = project / "test_cart.py", project / "shop/cart.py"
    test.write_text("from shop.cart import total\n\n\ndef test_total():\n    assert total([1]) == 2\n")
    (project / "plan.yaml").write_text(
        "todo_list_id: shop\nitems: [{id: cart, title: Cart, verify: pytest test_cart.py}]\n"
    )
    assert verify("plan.yaml", project) == 1
    broken = product.read_text()
    planner("iterate", "-o", "next.yaml", cwd=project)
    product.write_text(broken.replace("sum(prices)", "2 * sum(prices)"))
    assert verify("next.yaml", project) == 0

    closed = planner("iterate", "-o", "next.yaml", cwd=project)
    product.write_text(broken)
    assert verify("plan.yaml", project) == 1
    again = planner("gaps", cwd=project)

    assert ": Create shop/prices.py" in closed.out
    assert "the outcomes of plan.yaml are out of date; run: pytest --planverify plan.yaml\n" in closed.err
    assert again.out.startswith("quality  cart fails: TEST_REGRESSION")
    assert "out of date" not in again.err


def test_a_gap_that_comes_later_or_failed_like_all_others_is_mentioned(project: Path) -> None:
    for note in ("1", "2", "3"):
        planner("iterate", "-o", "next.yaml", *(("--rollback", note) if note != "1" else ()), cwd=project)
    later = planner("iterate", "-o", "next.yaml", "--rollback", "3", cwd=project)
    (project / "ROADMAP.md").unlink()
    again = planner("iterate", "-o", "next.yaml", "--rollback", "4", cwd=project)

    assert "'Round in shop/cart.py' has failed too often; it comes later\n" in later.err
    assert "this gap and all others have failed 3 times in a row\n" in again.err


def test_gaps_are_unknown_if_the_only_source_is_a_plan_that_was_not_verified(project: Path) -> None:
    (project / "inbox").rename(project / "old")
    (project / "ROADMAP.md").unlink()
    (project / "plan.yaml").write_text("todo_list_id: new\nitems: [{id: a, title: A, verify: pytest}]\n")
    done = planner("gaps", cwd=project)
    assert (done.status, done.out) == (2, "")
    assert "plan.yaml was not verified, so its failures are unknown" in done.err


def test_gaps_are_unknown_if_none_is_left_and_the_outcomes_are_out_of_date(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert 1\n")
    (tmp_path / "plan.yaml").write_text(
        "todo_list_id: shop\nitems: [{id: a, title: A, verify: pytest test_a.py}]\n"
    )
    assert verify("plan.yaml", tmp_path) == 0
    assert planner("gaps", cwd=tmp_path).out == "there are no gaps\n"
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert 0\n")

    for word in ("gaps", "iterate"):
        ran = planner(word, cwd=tmp_path)
        assert (ran.status, ran.out) == (2, "")
        assert "the outcomes of plan.yaml are out of date; run: pytest --planverify plan.yaml\n" in ran.err


def test_failed_todos_come_first_and_a_rollback_counts_as_a_failure(project: Path) -> None:
    (project / "test_cart.py").write_text(
        "from shop.cart import total\n\n\ndef test_total():\n    assert total([1]) == 2\n"
    )
    (project / "planverify.yaml").write_text(
        "todo_list_id: shop\nitems: [{id: cart, title: Cart, verify: pytest test_cart.py}]\n"
    )
    assert verify("planverify.yaml", project) == 1
    report = planner("gaps", "--json", cwd=project).json
    assert report["most_critical"]["commands"] == ["pytest test_cart.py"]

    found = planner("iterate", "--json", cwd=project).json
    assert found["gap"]["commands"] == report["most_critical"]["commands"]
    taken_back = planner("iterate", "--rollback", "wrong idea", cwd=project)

    assert "ended: rollback (wrong idea)" in taken_back.err
    assert "risk high" in taken_back.out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("gaps", "--plan", "new.yaml"), 2, "new.yaml was not verified"),
        (("iterate", "--gaps", "odd.json"), 4, "odd.json: gapz"),
        (("iterate", "--rollback", "x"), 2, "no iteration is open"),
    ],
)
def test_wrong_use_of_gaps_and_iterate_prints_one_line(
    project: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    (project / "odd.json").write_text('{"gapz": []}')
    (project / "new.yaml").write_text("todo_list_id: new\nitems: [{id: a, title: A, verify: pytest}]\n")
    done = planner(*words, cwd=project)
    assert done.status == status
    assert said in done.err
    assert done.err.count("\n") == 1


def test_the_gap_of_a_report_is_shown_in_one_line_without_control_sequences(project: Path) -> None:
    gap = {"category": "roadmap", "description": "Faster\x1b[2J\nwrote other.yaml"}
    (project / "gaps.json").write_text(json.dumps({"gaps": [gap]}))
    done = planner("iterate", "--gaps", "gaps.json", cwd=project)
    assert done.status == 0
    assert ": Faster wrote other.yaml (risk low)\n" in done.out


def test_files_that_no_plan_can_name_are_not_targets(project: Path) -> None:
    (project / "shop/\x1b[31m\n.py").touch()
    report = {"gaps": [{"category": "roadmap", "description": "module shop"}]}
    (project / "gaps.json").write_text(json.dumps(report))

    done = planner("iterate", "--gaps", "gaps.json", "-o", "next.yaml", cwd=project)

    assert "  modify shop/__init__.py, shop/cart.py\n" in done.out
    assert planner("validate", "next.yaml", cwd=project).status == 0


def test_an_iteration_replaces_the_plan_of_an_earlier_one_but_no_other_file(project: Path) -> None:
    before = (project / "ROADMAP.md").read_text()
    refused = planner("iterate", "-o", "ROADMAP.md", cwd=project)
    assert (refused.status, (project / "ROADMAP.md").read_text()) == (2, before)
    assert "ROADMAP.md exists already" in refused.err

    assert planner("iterate", "-o", "next.yaml", cwd=project).status == 0
    again = planner("iterate", "-o", "next.yaml", "--rollback", "wrong idea", cwd=project)
    assert again.status == 0
    assert planned_file(again.out) == "next.yaml"


def test_an_invalid_line_of_the_iteration_log_is_located(project: Path) -> None:
    planner("iterate", cwd=project)
    log = project / ".planverify/iterations.jsonl"
    log.write_text(log.read_text() + "{}\n")
    done = planner("iterate", cwd=project)
    assert done.status == 4
    assert "iterations.jsonl:2" in done.err


@pytest.mark.parametrize("word", ["gaps", "iterate"])
def test_a_folder_without_sources_of_gaps_is_a_usage_error(word: str, tmp_path: Path) -> None:
    done = planner(word, cwd=tmp_path)

    assert (done.status, done.out) == (2, "")
    assert "there is nothing to read gaps from: no plan" in done.err
