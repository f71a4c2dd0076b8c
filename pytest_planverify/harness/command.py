"""``planverify run``: carry a plan to done with agents."""

from __future__ import annotations

import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from planner.cli.exits import Status, UsageMistake
from planner.errors import PlannerError
from planner.planfile.plan_folder import HOME
from planner.planfile.tree import load_tree
from planner.store.plan_versions import PlanVersions
from planner.store.run_log import is_over, make_log_folder, next_log, plan_logs
from planner.store.session import RunSession, RunSettings
from pytest_planverify.baseline import load_baseline
from pytest_planverify.harness.agents import MANUAL, parse_agents
from pytest_planverify.harness.loop import REQUESTS, Ending, Loop, LoopSettings
from pytest_planverify.harness.progress import describe_recovery, leaf_todos, standard_progress
from pytest_planverify.harness.snapshots import Snapshots
from pytest_planverify.repository import GitFailed, Repository, git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.planfile.tree import PlanTree
    from pytest_planverify.harness.agents import Agents
    from pytest_planverify.harness.progress import Progress

MOST_ROUNDS = 3
"""So often the plan is carried out anew where the last verification of all finds something red."""

SAVED = "refs/planverify/saved"


def run_command(
    plan: Path,
    *,
    agents: Sequence[str],
    resume: bool,
    restart: bool,
    dirty: str,
    turn_seconds: float | None,
    brief_tokens: int,
    as_json: bool,
) -> int:
    """Carry out a plan; return the exit status. Raises :class:`planner.errors.PlannerError`."""
    tree = load_tree(plan)
    root = tree.loaded.root
    parsed = parse_agents(agents, root)
    if not parsed.vectors:
        raise UsageMistake(
            "nobody works; name --agent 'COMMAND {brief}', a preset such as --agent claude, or write "
            "[tool.planverify.agents] in pyproject.toml"
        )
    if any(vector == (MANUAL,) for vector in parsed.vectors.values()) and not sys.stdin.isatty():
        raise UsageMistake("--agent manual needs a terminal; name a program")
    if shutil.which("git") is None:
        raise PlannerError("there is no program 'git', which keeps the files of each turn; install it")
    progress = standard_progress(as_json=as_json)
    log = _choose_log(tree, resume=resume, restart=restart)
    if not resume:
        _refuse_or_save(root, tree, dirty, log.stem, progress)
    if load_baseline(root, tree.loaded.plan.todo_list_id) is None:
        progress.line(
            f"no baseline is kept, so tricks within the product are not seen: planverify baseline {plan}"
        )
    try:
        for number in range(1, MOST_ROUNDS + 1):
            ending, green, loop = _one_round(
                tree, log, parsed, progress, resume, turn_seconds, brief_tokens
            )
            if ending is not Ending.COMPLETED or green:
                return _conclude(loop, ending, progress, plan, root)
            resume, log = False, next_log(tree.loaded)
            if number < MOST_ROUNDS:
                progress.line("the last verification found something red: the plan is carried out anew")
        progress.line(f"the last verification was red {MOST_ROUNDS} times; see planverify next {plan}")
        return Status.FOUND
    finally:
        progress.close()


def _one_round(
    tree: PlanTree,
    log: Path,
    agents: Agents,
    progress: Progress,
    resume: bool,
    turn_seconds: float | None,
    brief_tokens: int,
) -> tuple[Ending, bool, Loop]:
    """Carry out the plan once; return how it ended, and whether all is green after it."""
    root = tree.loaded.root
    folder = root / HOME / "harness" / log.stem
    folder.mkdir(parents=True, exist_ok=True)
    versions = PlanVersions(folder / f"plan{tree.loaded.path.suffix}", tree.loaded.path)
    snapshots = Snapshots(root, log.stem)
    settings = RunSettings(plan=tree.loaded.path, log=log, jobs=1, watch=versions.take)
    with RunSession.open(settings) as session:
        loop = Loop(
            session=session,
            versions=versions,
            snapshots=snapshots,
            settings=LoopSettings(
                plan=tree.loaded.path,
                root=root,
                folder=folder,
                agents=agents,
                turn_seconds=turn_seconds,
                brief_tokens=brief_tokens,
                protected=_plan_files(tree),
            ),
            progress=progress,
        )
        if resume:
            loop.resume()
        else:
            snapshots.take("before-run")
            loop.start()
        ending = loop.run()
        green = ending is Ending.COMPLETED and loop.verify_all().is_green
        return ending, green, loop


def _plan_files(tree: PlanTree) -> tuple[str, ...]:
    root = tree.loaded.root
    paths = [tree.loaded.path, *(sub.loaded.path for sub in tree.sub_plans().values())]
    return tuple(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))


def _choose_log(tree: PlanTree, *, resume: bool, restart: bool) -> Path:
    """Return the log of the run to go on with, or of a new one. Raises ``UsageMistake``."""
    logs = plan_logs(tree.loaded)
    last = logs[-1]
    is_open = last.exists() and not is_over(last) and (last.parent.parent / "harness" / last.stem).is_dir()
    if resume:
        if not is_open:
            raise UsageMistake("no run of this plan is open; leave --resume out")
        return last
    if is_open and not restart:
        raise UsageMistake(
            f"the run in {last.name} is not over; go on with it by --resume, or begin anew by --restart"
        )
    log = last if not last.exists() else next_log(tree.loaded)
    make_log_folder(log)
    return log


def _refuse_or_save(root: Path, tree: PlanTree, dirty: str, name: str, progress: Progress) -> None:
    """Refuse uncommitted work, or keep it under a name in git, as the operator wishes."""
    repository = Repository.around(root)
    if repository is None:
        return
    try:
        listing = git(root, "status", "--porcelain", "-z", "--", ".").decode("utf-8", "replace")
    except GitFailed as error:
        raise PlannerError(f"{root}: {error}; mend the repository") from None
    own = {*_plan_files(tree)}
    files = [entry[3:] for entry in listing.split("\0") if len(entry) > 3]
    files = [each for each in files if each not in own and not each.startswith(HOME)]
    if not files:
        return
    if dirty == "refuse":
        shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        raise UsageMistake(f"{shown} not committed; commit it, or keep it in git by --dirty save")
    stash = git(root, "stash", "create", f"before planverify run {name}").decode().strip()
    if stash:
        git(root, "update-ref", f"{SAVED}/{name}", stash)
        progress.line(f"your uncommitted work is kept as {SAVED}/{name}")


def _conclude(loop: Loop, ending: Ending, progress: Progress, plan: Path, root: Path) -> int:
    words = shlex.quote(str(plan))
    todos = leaf_todos(loop.state)
    done = sum(record.life.value == "done" for record in todos)
    progress.line(f"{ending.value}: {done} of {len(todos)} todos done, {progress.turns} turns")
    if recovery := describe_recovery(loop.state):
        progress.line(recovery)
    if ending is Ending.COMPLETED:
        return Status.OK
    if ending is Ending.WAITING:
        progress.line(
            f"answer with planverify answer, approve or reject (planverify next {words} shows how), "
            f"then: planverify run {words} --resume; asked is in "
            f"{(loop.settings.folder / REQUESTS).relative_to(root)}"
        )
        return Status.HUMAN_NEEDED
    progress.line(f"what is broken: planverify next {words}")
    categories = {action.category for action in loop.halts if action.category is not None}
    if any(category.facts.family.value == "sandbox" for category in categories):
        return Status.SECURITY_HALT
    if any(category.value == "BUDGET_EXCEEDED" for category in categories):
        return Status.BUDGET_HALT
    return Status.FOUND
