"""`planverify run` completes a plan with agents, and never reports unfinished work as done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from baseline_samples import commit_all
from module_project import PYTEST_INI, write_files
from real_command import (
    LEAN_TERMINAL,
    PYTHON,
    Finished,
    outer_environment,
    planverify_words,
    unmeasured,
    wait_until,
)
from real_planner import forked

from pytest_planverify.checks.processes import start_time
from pytest_planverify.harness import command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git keeps the files of each turn")

PLAN = """\
todo_list_id: shop
items:
  - id: price
    title: The price has the tax in it
    intent: gross(100) is 119
    allowed_files: ["shop/price.py"]
    acceptance_criteria: {tests: [pytest tests/test_price.py]}
  - id: basket
    title: The basket adds prices up
    allowed_files: ["shop/basket.py"]
    dependencies: [price]
    acceptance_criteria: {tests: [pytest tests/test_basket.py]}
"""
FILES = {
    "plan.yaml": PLAN,
    "pytest.ini": PYTEST_INI,
    "shop/__init__.py": "",
    "shop/price.py": "def gross(net):\n    return net\n",
    "shop/basket.py": "def total(prices):\n    return 0\n",
    "tests/test_price.py": (
        "from shop.price import gross\n\n\ndef test_gross():\n    assert gross(100) == 119\n"
    ),
    "tests/test_basket.py": (
        "from shop.basket import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    ),
}
RIGHT = {
    "price": ("shop/price.py", "def gross(net):\n    return net * 119 // 100\n"),
    "basket": ("shop/basket.py", "def total(prices):\n    return sum(prices)\n"),
}
HONEST = f"""\
import os, pathlib
path, text = {RIGHT!r}[os.environ["PLANVERIFY_TODO"].partition("_branch_")[0]]
pathlib.Path(path).write_text(text)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def agent(root: Path, code: str) -> str:
    path = root.parent / "agent.py"
    path.write_text(code)
    return f"{PYTHON} {path} {{brief}}"


def surroundings() -> dict[str, str]:
    inherited = outer_environment()
    scripts = str(Path(sys.executable).parent)
    path = {"PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])}
    return inherited | LEAN_TERMINAL | path


PRICE = ("--only", "price")
"""Options that limit a run to one todo, where two would show no more."""


def run_forked(root: Path, *words: str, given: str = "") -> Finished:
    """Run `planverify WORDS` in a fork of this process, which saves the imports."""
    with patch.dict(os.environ, unmeasured(surroundings()), clear=True):
        ran = forked(words, root, given, program="planverify", merged=True)
    return Finished(exit_code=ran.status, output=ran.out)


def run(root: Path, *words: str, timeout: float = 300) -> Finished:
    """Run `planverify WORDS` in a new interpreter, for tests that need its command line or time limit."""
    done = subprocess.run(
        planverify_words(*words),
        cwd=root,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Finished(exit_code=done.returncode, output=done.stdout)


def carry_out(root: Path, code: str, *words: str) -> Finished:
    """Run `planverify run plan.yaml WORDS` in a fork, with an agent that executes the code."""
    return run_forked(root, "run", "plan.yaml", "--agent", agent(root, code), *words)


def start(root: Path, code: str, *words: str) -> subprocess.Popen[str]:
    """Start `planverify run plan.yaml WORDS` in a new interpreter, with a pipe for its output."""
    return subprocess.Popen(
        planverify_words("run", "plan.yaml", "--agent", agent(root, code), *words),
        cwd=root,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def interrupt(process: subprocess.Popen[str], at_work: Callable[[], object], number: int) -> str:
    """Send a signal to the process once the agent is at work; return its output when it has ended."""
    try:
        wait_until(at_work, seconds=120)
        process.send_signal(number)
        return process.communicate(timeout=60)[0]
    finally:
        process.kill()
        process.wait()


def assert_ended_as_resumable(process: subprocess.Popen[str], output: str, agent_pid: Path) -> None:
    """Assert that an interrupted run prints how to resume it, and that its agent has ended."""
    assert process.returncode == 130, output
    last = output.splitlines()[-1].strip()
    assert last.startswith("interrupted; resume with: planverify run plan.yaml --resume --agent ")
    with pytest.raises(ProcessLookupError):
        os.kill(int(agent_pid.read_text()), 0)


def test_an_honest_agent_completes_a_plan_and_leaves_only_its_work(project: Path):
    """Reports and the next decision use its last verification, not one from before the run."""
    commit_all(project)
    assert run_forked(project, "verify", "plan.yaml", "-q").exit_code == 1
    done = run(project, "run", "plan.yaml", "--json", "--agent", agent(project, HONEST))
    assert done.exit_code == 0, str(done)
    told = [json.loads(line) for line in done.output.splitlines()]
    assert [each["todo_id"] for each in told if each["event"] == "turn_finished"] == ["price", "basket"]
    assert told[-1]["text"] == "completed: 2 of 2 todos done, 2 turns"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=project, capture_output=True, text=True)
    assert status.stdout.split() == ["M", "shop/basket.py", "M", "shop/price.py"]

    after = run_forked(project, "next", "plan.yaml")
    report = run_forked(project, "report", "markdown=-", "plan.yaml")

    assert "completed: 2 of 2 todos done" in after.output
    assert "changed since the run" not in after.output
    assert "2 done" in report.output, report


BRIEFS = ".planverify/harness/*/turns/*/brief.md"
RED_AMONG_GREENS = "\n\ndef test_nothing():\n    assert gross(0) == 0\n"


def test_an_incomplete_run_repairs_a_test_that_failed_before_and_leaves_its_last_outcomes(project: Path):
    with (project / "tests/test_price.py").open("a") as test:
        test.write(RED_AMONG_GREENS)
    commit_all(project)
    useless = "import pathlib\npathlib.Path('shop/price.py').write_text('def gross(net): return net\\n')\n"
    done = carry_out(project, useless, "--brief-tokens", "200")
    assert done.exit_code == 1, str(done)
    assert max(len(each.read_text()) for each in project.glob(BRIEFS)) < 5 * 200
    assert "repairs price_branch_01" in done.output, "nobody says that it was there before the work"
    assert "0 of 2 todos done" in done.output
    assert "assert 100 == 119" in done.output

    report = run_forked(project, "report", "markdown=-", "plan.yaml")
    after = run_forked(project, "next", "plan.yaml")

    assert report.exit_code == 0, report
    assert "failed" in report.output
    assert "changed since the run" not in after.output
    brief = run_forked(project, "next", "plan.yaml", "--brief", "price").output
    assert "`pytest --planverify plan.yaml::price`" in brief
    assert ".planverify/harness" not in brief, "the copy of the plan that the run has edited"


def test_a_repair_gets_the_confirmed_failure_and_the_outcomes_are_those_of_the_plan(project: Path):
    """Without git, with a limit, and for a todo that needs no turn once its dependency is done."""
    path, text = RIGHT["basket"]
    (project / path).write_text(text)
    (project / "pytest.ini").write_text(PYTEST_INI.partition("addopts")[0])  # failures are confirmed
    wrong_first = HONEST + (
        'brief = pathlib.Path(os.environ["PLANVERIFY_BRIEF"]).read_text()\n'
        'if os.environ["PLANVERIFY_TODO"] == "price":\n'
        '    pathlib.Path("../verified.txt").write_text(str(len(os.listdir(".planverify/runs"))))\n'
        '    pathlib.Path(path).write_text(text.replace("return", "return 1 +"))\n'
        'elif "_branch_" in os.environ["PLANVERIFY_TODO"]:\n'
        '    assert "assert 120 == 119" in brief, brief\n'
    )
    done = carry_out(project, wrong_first, "--only", "basket", "--max-turns", "2")
    assert done.exit_code == 0, str(done)
    assert "because others depend on them: price" in done.output
    assert "completed: 2 of 2 todos done, 2 turns" in done.output
    assert "repairs price_branch_01" in done.output
    assert "recovered 1 of 1 failed todo" in done.output
    assert not (project / ".git").exists()
    before_the_first_turn = (project.parent / "verified.txt").read_text()
    assert before_the_first_turn == "1", "recording the baseline is the first verification"
    report = run_forked(project, "report", "markdown=-", "plan.yaml")
    assert "2 done" in report.output, str(report)


def test_the_todos_of_a_later_sub_plan_count_and_no_turn_may_change_its_file(project: Path):
    later = PLAN.replace("todo_list_id: shop", "todo_list_id: later\nroot: ..")
    tail = "  - {id: later, title: Later, sub_plan: plans/later.yaml, dependencies: [price]}\n"
    first = PLAN.partition("  - id: basket")[0].replace('["shop/price.py"]', "['**']")
    write_files(project, {"plan.yaml": first + tail, "plans/later.yaml": later})

    forger = f"{HONEST}\nopen('plans/later.yaml', 'a').write('# done')"
    done = carry_out(project, forger)

    assert done.exit_code == 13, str(done)
    assert "  0 of 3 done, 0 turns" in done.output
    assert "changed plans/later.yaml, which the plan protects; the turn is undone" in done.output
    # The todos that a run of a part was not to carry out are no todos of that run.
    assert carry_out(project, forger, *PRICE).exit_code == 13
    left_out = run_forked(project, "status", "plan.yaml", "later/basket")
    assert "the run of the plan leaves later/basket out" in left_out.output


def test_a_hanging_turn_is_ended_at_its_time_limit_with_its_processes(project: Path):
    sleep = "import time; time.sleep(60)"
    hanging = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {sleep!r}])\n{sleep}"
    done = carry_out(project, hanging, *PRICE, "--max-turn-seconds", "1", "--max-turns", "1")
    assert done.exit_code == 12, str(done)
    assert "the agent was stopped after 1 s" in done.output
    assert "cycles: 1" in done.output


def questions(root: Path) -> list[str]:
    """Return the ids of the open questions that `planverify next --json` reports."""
    actions = json.loads(run_forked(root, "next", "plan.yaml", "--json").output)["actions"]
    return [each["question_id"] for each in actions if each["action"] == "ask_human"]


def test_a_question_pauses_the_run_until_it_is_answered(project: Path):
    plan = project / "plan.yaml"
    plan.write_text(PLAN.replace("items:", "metadata: {auto_fix_mode: false}\nitems:", 1))
    code = (
        HONEST
        + 'if "_branch_" not in os.environ["PLANVERIFY_TODO"]: pathlib.Path(path).write_text("x = 1\\n")\n'
    )
    waiting = carry_out(project, code, *PRICE, "--wait", "0.3")
    assert (waiting.exit_code, "waiting 0.3 s for an answer" in waiting.output) == (11, True), waiting
    assert "planverify serve" in waiting.output
    assert "answer with planverify answer, approve or reject" in waiting.output
    assert questions(project) == ["price_branch_01"]
    again = carry_out(project, code)
    assert (again.exit_code, "--resume" in again.output) == (2, True)

    for _ in range(6):
        for each in questions(project):
            assert run_forked(project, "approve", "plan.yaml", each).exit_code == 0
        done = carry_out(project, code, "--resume")
        if done.exit_code != 11:
            break
    assert done.exit_code == 0, str(done)


def unfinished(todo: str, before: str = "") -> str:
    """Return the code of an agent that leaves half of its first work on a todo, and then hangs."""
    path, _ = RIGHT[todo]
    return HONEST.replace("import os, pathlib\n", "import os, pathlib, shutil, time\n") + (
        f'if path == "{path}" and not os.path.exists(__file__ + ".pid"):\n'
        '    pathlib.Path(__file__ + ".pid").write_text(str(os.getpid()))\n'
        f"    {before}\n"
        '    pathlib.Path(path).write_text("half = ")\n'
        "    time.sleep(60)\n"
    )


def test_a_killed_run_resumes_from_its_log_and_discards_the_unfinished_turn(project: Path):
    path, work = RIGHT["basket"]
    code = unfinished("basket")
    interrupt(start(project, code), lambda: (project / path).read_text() == "half = ", signal.SIGKILL)
    baseline = project / ".planverify/plans/shop/run-baseline.json"
    recorded = baseline.read_bytes()
    for file in (project / ".planverify/harness/shop/plan.yaml", baseline):
        file.write_text("forged")
    mark = project / ".planverify/harness/shop/turn.json"
    turn = mark.read_text()
    told = run_forked(project, "next", "plan.yaml").output
    mark.write_text("forged")

    refused = carry_out(project, code, "--resume")
    mark.write_text(turn)
    done = carry_out(project, code, "--resume")

    assert "a turn of planverify run was interrupted: run it again with --resume" in told
    assert (refused.exit_code, "run planverify undo plan.yaml" in refused.output) == (4, True), str(refused)
    assert baseline.read_bytes() == recorded
    assert done.exit_code == 0, str(done)
    assert "basket: a turn was interrupted; the files are as before it" in done.output
    assert "works on price" not in done.output
    assert (project / path).read_text() == work


def test_an_interrupt_ends_the_agent_and_restores_files_and_removed_records(project: Path):
    path, _ = RIGHT["price"]
    code = unfinished("price", "shutil.rmtree('.planverify')")
    process = start(project, code, *PRICE)
    output = interrupt(process, lambda: (project / path).read_text() == "half = ", signal.SIGINT)
    assert_ended_as_resumable(process, output, project.parent / "agent.py.pid")
    assert "price: a turn was interrupted; the files are as before it" in output
    assert (project / path).read_text() == FILES[path]
    again = carry_out(project, code)
    assert (again.exit_code, "--resume" in again.output) == (2, True), "the run is not known any more"


def test_a_run_whose_output_is_closed_is_interrupted_and_not_completed(project: Path):
    process = start(project, HONEST, *PRICE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 130


def test_one_run_at_a_time_works_in_a_project(project: Path):
    (project / "other.yaml").write_text(PLAN.replace("todo_list_id: ", "todo_list_id: other_", 1))
    driver = project / ".planverify/harness/driver.json"
    driver.parent.mkdir(parents=True)
    driver.write_text(json.dumps([os.getppid(), start_time(os.getppid()), "shop"]))

    refused = [
        carry_out(project, HONEST),
        run_forked(project, "run", "other.yaml", "--agent", "true"),
        run_forked(project, "undo", "plan.yaml"),
    ]

    assert [each.exit_code for each in refused] == [2, 2, 2], refused
    assert all(f"process {os.getppid()} works on the run" in str(each) for each in refused), refused


def test_a_plan_whose_last_verification_fails_is_carried_out_again_up_to_a_limit(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "MOST_ROUNDS", 2)
    (project / "tests/test_price.py").write_text(
        "import psutil\n\n\ndef test_gross():\n"
        "    words = [each.cmdline() for each in psutil.Process().parents()]\n"
        "    assert not any('--planverify-isolate' in each for each in words)\n"
    )

    done = carry_out(project, HONEST, *PRICE)

    assert done.exit_code == 1, str(done)
    assert done.output.count("the plan is carried out again") == 1, str(done)
    assert "the last verification failed 2 times" in done.output


def test_uncommitted_work_is_refused_by_the_names_of_its_files(project: Path):
    (project / "notes.txt").write_text("notes\n")
    commit_all(project)
    subprocess.run(["git", "mv", "notes.txt", "ideas.txt"], cwd=project, check=True)
    (project / "shop/price.py").write_text("def gross(net):\n    return net + 0\n")
    # Nobody's work: there may be no .gitignore.
    (project / "shop/__pycache__").mkdir(exist_ok=True)
    (project / "shop/__pycache__/price.cpython-311.pyc").write_bytes(b"")
    refused = carry_out(project, HONEST, "--only", "basket")
    assert (refused.exit_code, "--dirty save" in refused.output) == (2, True)
    assert "carried out" not in refused.output, "nothing is"
    assert "ideas.txt, notes.txt, shop/price.py not committed" in refused.output


def test_a_part_with_uncommitted_work_that_git_cannot_stash_is_completed_and_undone(project: Path):
    """Reports that tools leave in a turn are no violation."""
    before = (project / "shop/price.py").read_text()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)  # without a commit there is no stash
    reports = (
        "os.mkdir('htmlcov')\nfor name in ('coverage.xml', 'htmlcov/index.html'):\n    open(name, 'w')\n"
    )
    done = carry_out(project, HONEST + reports, "--dirty", "save", *PRICE)
    assert done.exit_code == 0, str(done)
    assert "your uncommitted work is kept: planverify undo restores it" in done.output
    said = run_forked(project, "next", "plan.yaml").output
    assert said.startswith("shop  executing: 1 of 2 todos done"), said
    assert run_forked(project, "undo", "plan.yaml").exit_code == 0
    assert (project / "shop/price.py").read_text() == before


def test_edits_from_before_the_run_are_saved_in_git_and_blamed_on_no_turn(project: Path):
    commit_all(project)
    run_forked(project, "baseline", "plan.yaml")

    basket = project / "shop/basket.py"
    basket.write_text(f"{FILES['shop/basket.py']}EXTRA = 1\n")
    of_another_todo = carry_out(project, HONEST, "--dirty", "save", "--only", "pri*")
    assert "return 0" in basket.read_text(), "nobody was sent to do the other"
    kept = subprocess.run(
        ["git", "show", "refs/planverify/saved/shop:shop/basket.py"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    (project / "shop/more.py").write_text("EXTRA = 1\n")
    of_no_todo = carry_out(project, HONEST, "--dirty", "save")

    assert of_another_todo.exit_code == 0, of_another_todo
    assert "completed: 1 of 1 todo done" in of_another_todo.output
    assert kept.stdout == basket.read_text()
    assert of_no_todo.exit_code == 13, of_no_todo
    assert "shop/more.py changed, but not in the allowed_files of any todo" in of_no_todo.output
    assert "to continue once the cause is removed: planverify run plan.yaml" in of_no_todo.output
    assert "it was so before the run" in of_no_todo.output
    assert "0 turns" in of_no_todo.output
    assert "works on" not in of_no_todo.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "no agent is configured; name --agent"),
        ("--agent no-such-program", "the program 'no-such-program'"),
        ("--agent coder=builtin", "write --agent debugger=builtin"),
        ("--agent true --resume", "no run of this plan is unfinished"),
        ("--agent true --resume --max-turns 5", "remove --only and --max-…"),
        ("--agent true --dirty keep", "write refuse or save"),
        ("--agent true --only prise", "did you mean 'price'?"),
        ("--agent true --max-turns -1", "Invalid value for '--max-turns'"),
        ("--agent true --jobs 0", "Invalid value for '-j' / '--jobs'"),
        ("--agent true --executor celery", "write threads or dask://HOST:PORT"),
    ],
)
def test_wrong_use_of_run_is_reported_with_a_remedy(project: Path, words: str, said: str):
    done = run_forked(project, "run", "plan.yaml", *words.split())
    is_unusable = words in ("--agent no-such-program", "--agent coder=builtin")
    assert done.exit_code == (4 if is_unusable else 2), str(done)
    assert said in done.output
    assert done.output.count("\n") <= 4
    assert "Traceback" not in done.output
