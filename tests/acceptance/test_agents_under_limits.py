"""Agents that cheat, reach a limit or write a whole editor, and runs that are killed."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from killed_runs import ended_normally, fresh, moments, run_killed
from module_project import PYTEST_INI, write_module_project
from real_command import FULL, PYTHON
from test_run_with_agents import HONEST, PLAN, agent, carry_out, project, pytestmark, run, run_forked
from test_undo import tree
from text_bundles import read_bundle

__all__ = ["project", "pytestmark"]

HOOK = "def pytest_runtest_call(item): item.obj = lambda: None\n"
FORGED_PLAN = """\
for path in map(pathlib.Path, glob.glob('.planverify/harness/*/plan.yaml')):
    write(path, path.read_text().replace('pytest tests/test_NAME.py', 'pytest tests/test_easy.py'))
"""
# Tests that end, replace or patch what runs them are in test_fault_matrix.py and test_witnessed_hygiene.py.
RECORDS = "which only planverify writes; the turn is undone"
CHEATS = {
    "edits the plan of the run": (FORGED_PLAN, RECORDS),
    "writes a baseline": ("write('.planverify/plans/shop/baseline.json', '{}')", RECORDS),
    "writes the outcomes": (
        "turn = os.path.dirname(os.environ['PLANVERIFY_RESULT'])\n"
        "for folder in ('.planverify', os.path.join(turn, '../..')):\n"
        "    outcome = {'todo_id': 'NAME', 'state': 'done', 'success': True}\n"
        "    write(os.path.join(folder, 'outcomes.json'), json.dumps({'outcomes': [outcome]}))",
        "",
    ),
    "writes the log": (
        "[open(p, 'a').write('{\"event\": \"verified\"}\\n') for p in glob.glob('.planverify/logs/*')]",
        RECORDS,
    ),
    "writes an answer beside forbidden files": (
        "for name in ('tests/test_NAME.py', 'plan.yaml', 'conftest.py', '.planverify/answers.json'):\n"
        "    write(name, '')",
        RECORDS,
    ),
    "links the test to another": (
        "write('shop/NAME.py', 'def test_name(): pass'); os.remove('tests/test_NAME.py'); "
        "os.symlink('../shop/NAME.py', 'tests/test_NAME.py')",
        "changed tests/test_NAME.py, outside of its allowed_files; the turn is undone",
    ),
    "links its file out of the root": (
        "os.rename('shop/NAME.py', '../NAME.py'); os.symlink('../../NAME.py', 'shop/NAME.py')",
        "changed shop/NAME.py, a link that leads out of the plan's root; the turn is undone",
    ),
    "says that it is done": (
        "write(os.environ['PLANVERIFY_RESULT'], json.dumps({'tokens': 1, 'notes': 'all tests pass'}))",
        "",
    ),
    "writes outside of the tree": (f"write('../conftest.py', {HOOK!r})", ""),
    "changes git": ("write('.git/info/attributes', '* -diff'); write('.git/info/exclude', 'tests')", ""),
    "removes uncommitted work and records, and commits": (
        "write('shop/NAME.py', '')\n"
        "for words in ('clean -fdxq', 'switch -qc work', 'commit -qam work'):\n"
        "    git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.org', *words.split()]\n"
        "    subprocess.run(git)",
        "changed notes.txt, outside of its allowed_files; the turn is undone",
    ),
    "removes the project": (
        "shutil.rmtree(os.getcwd())",
        "changed plan.yaml, which the plan protects; the turn is undone",
    ),
}
"""The code of each agent, and what is said of its turn if that breaks a rule."""
NAMES = {cheat: f"cheat_{number:02d}" for number, cheat in enumerate(CHEATS)}
AGENT = """\
import glob, json, os, pathlib, shutil, subprocess
def write(name, text):
    path = pathlib.Path(os.path.normpath(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
"""


def make_project(root: Path) -> str:
    """Make a project with a todo for each cheat; return the command of the agent."""
    halt = "{security: ask, consecutive_failures: null, identical_failures: null}"
    metadata = f"{{halt: {halt}, max_debug_attempts: 0}}"
    write_module_project(root, NAMES.values(), {}, metadata=metadata)
    commit_all(root)
    (root / "notes.txt").write_text("not committed")
    code = {NAMES[cheat]: text.replace("NAME", NAMES[cheat]) for cheat, (text, _) in CHEATS.items()}
    cheating = f"exec({code!r}[os.environ['PLANVERIFY_TODO'].partition('_branch_')[0]])\n"
    return agent(root, AGENT + cheating)


def test_cheating_agents_complete_no_todo_and_turns_that_break_a_rule_are_undone(tmp_path: Path):
    """In one run: a person is asked about each cheat, and the next todo follows."""
    root = tmp_path / "project"
    command = make_project(root)
    before = tree(root)
    words = ("--json", "--dirty", "save", "--agent", command)
    done = run_forked(root, "run", "plan.yaml", *words)
    told = [json.loads(line) for line in done.output.splitlines()]
    assert done.exit_code == 11, told[-5:]
    assert f"waiting: 0 of {len(CHEATS)} todos" in done.output
    assert "the records of the run were removed; they are restored" in done.output
    of_todos = {name: [each for each in told if of_todo(each) == name] for name in NAMES.values()}
    for cheat, name in NAMES.items():
        (turn,) = (each for each in of_todos[name] if each["event"] == "turn_finished")
        assert (turn["violation"] or "").endswith(CHEATS[cheat][1].replace("NAME", name)), cheat
        verified = [each for each in of_todos[name] if each["event"] == "verified"]
        assert not any(each["success"] for each in verified), cheat
    assert tree(root) == before
    assert not (root / ".planverify/answers.json").exists()


def of_todo(event: dict[str, Any]) -> str:
    """Return the id of the todo that an event is about, itself or a branch of it."""
    return event.get("todo_id", "").partition("_branch_")[0]


REPORTING = f"""{HONEST}
import json
pathlib.Path(os.environ["PLANVERIFY_RESULT"]).write_text(json.dumps({{"tokens": 900}}))
"""


def test_a_limit_given_as_an_option_halts_the_run_and_is_reported(project: Path) -> None:
    done = carry_out(project, REPORTING, "--max-tokens", "900")

    assert done.exit_code == 12, done.output
    assert "tokens: 900" in done.output
    assert "to continue with a larger budget: planverify run plan.yaml --dirty save --agent" in done.output


def test_a_limit_of_the_plan_halts_the_run_and_an_option_cannot_raise_it(project: Path) -> None:
    text = PLAN.replace('["shop/price.py"]', '["shop/**"]')
    (project / "plan.yaml").write_text(text + "metadata: {budget: {new_files: 0, wall_seconds: 600}}\n")
    code = f"open('shop/more.py', 'w')\n{HONEST}"

    done = carry_out(project, code, "--max-new-files", "50", "--max-seconds", "601")

    assert done.exit_code == 12, done.output
    assert "new_files stays at 0, the limit of the plan" in done.output
    assert "wall_seconds stays at 600, the limit of the plan" in done.output
    assert "new_files: 1" in done.output


MOMENTS = 4 if FULL else 1
"""Number of kills for each number of jobs."""
SECONDS = 2.0
"""Approximate time from the first turn of such a run to its end, if it is not killed."""


@pytest.mark.parametrize("jobs", [1, 2] if FULL else [2])  # one at a time: test_run_with_agents.py
def test_a_killed_and_resumed_run_ends_like_an_uninterrupted_one(tmp_path: Path, jobs: int):
    wanted = ended_normally(tmp_path / "wanted")
    for number, at in enumerate(moments(MOMENTS, SECONDS, seed=jobs)):
        place = fresh(tmp_path / str(number))
        got, _ = run_killed(place, jobs, at, of_work=True)
        assert got == wanted, (at, (place / "output.txt").read_text())


CHECKOUT = Path(__file__).resolve().parents[2]
EDITOR_AGENT = CHECKOUT / "tests/support/vi_editor/agent.py"
SOLUTION = read_bundle(EDITOR_AGENT.parent / "solution.txt")
TODOS, MISTAKES = (29, 12) if FULL else (1, 1)
"""Number of todos, and number of todos whose first attempt fails."""
PLURAL = "s" if FULL else ""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(".planverify", "diagnostics", "__pycache__", ".pytest_cache")
    return Path(shutil.copytree(CHECKOUT / "examples/vi_editor", tmp_path / "vi_editor", ignore=ignored))


def test_an_agent_that_repairs_by_its_brief_completes_all_todos(example: Path):
    if not FULL:  # only the first todo of the first phase
        for name, second in (("plan.yaml", "navigation"), ("phases/buffer.yaml", "text")):
            (example / name).write_text((example / name).read_text().partition(f"  - id: {second}\n")[0])
        (example / "pytest.ini").write_text(PYTEST_INI)
    command = f"{PYTHON} {shlex.quote(str(EDITOR_AGENT))} {{json}}"
    done = run(example, "run", "plan.yaml", "--json", "--agent", command, timeout=900)
    assert done.exit_code == 0, str(done)
    told = [json.loads(line) for line in done.output.splitlines()]
    seen: dict[str, bool] = {}
    for each in told:
        if each["event"] == "verified":
            seen.setdefault(each["todo_id"], each["success"])
    first = [success for todo_id, success in seen.items() if "/" in todo_id and "_branch_" not in todo_id]

    assert (len(first), sum(first)) == (TODOS, TODOS - MISTAKES)
    assert [each["text"] for each in told[-2:]] == [
        f"completed: {TODOS} of {TODOS} todo{PLURAL} done, {TODOS + MISTAKES} turns",
        f"recovered {MISTAKES} of {MISTAKES} failed todo{PLURAL}",
    ]
    worked_on = SOLUTION if FULL else ["vi_editor/buffer/position.py"]
    written = {name: (example / name).read_text(encoding="utf-8") for name in worked_on}
    assert written == {name: SOLUTION[name] for name in worked_on}


def test_the_plan_has_no_findings_and_its_solution_passes(example: Path):
    checked = run_forked(example, "validate", "plan.yaml")
    assert (checked.exit_code, checked.output) == (0, "ready: no findings\n")

    for name, text in SOLUTION.items():
        (example / name).write_text(text, encoding="utf-8")
    solved = run_forked(example, "verify", "plan.yaml")
    assert (solved.exit_code, "37 done" in solved.output) == (0, True), str(solved)
