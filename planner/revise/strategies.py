"""Revision strategies: the edits of the plan that are proposed for each failure category.

:data:`STRATEGIES` lists the strategies of each category; :func:`revise` applies them to a
:class:`~planner.revise.situation.Situation`. No strategy widens the files that a todo may change, or
raises a time limit that product code exceeded by looping, without a person's approval. Edits whose
instructions contradict the existing files or the allowlist are dropped, as decided by
:mod:`planner.brief.instructions`.
"""

from __future__ import annotations

import re
import shlex
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from planner.brief.instructions import ABSENT, MISSING_TEST, EditScope, Instruction, objection
from planner.catalog import Purpose
from planner.catalog.commands import accepted_command
from planner.catalog.tables import load_table
from planner.catalog.test_paths import is_test_path
from planner.model.edits import (
    AddCheck,
    AddDependency,
    AddTodoBefore,
    Isolate,
    NameArtifact,
    NarrowFiles,
    RaiseLimit,
    RetargetCheck,
)
from planner.model.plan import (
    MAX_SECONDS,
    AcceptanceCriteria,
    ArtifactSpec,
    CommandSpec,
    ControllerTaskSpec,
    Todo,
)
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind, Side
from planner.policy.allowed_files import (
    claims_overlap,
    is_exclusion,
    lies_within,
    widened_by,
    without_covered,
)
from planner.policy.branches import role_for
from planner.policy.criteria import commands_of, wants_convention
from planner.policy.outcomes import SET_APART
from planner.revise.situation import (
    PYTHON,
    Situation,
    below_root,
    fixing_command,
    limit_of,
    python_of,
    quoted,
    with_selections,
)
from planner.text.display import listed
from planner.text.glob_patterns import allowed, is_glob, matches
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from planner.model.edits import Edit
    from planner.model.evidence import Selector
    from planner.model.outcome import Failure, Outcome

REVISION_RULES: Mapping[str, str] = load_table("rules", "planner.revise")
"""Rule ids of revisions with their explanations, in the order of the strategies."""

_MAX_TESTS = 20
"""Maximum number of tests of a pre-existing failure that are selected singly; above it, their files are."""
_MAX_NAME = 100
_MAX_STEM = 180
"""Number of characters of a todo's id that the ids of its steps repeat."""

_TYPE_CHECKERS = ("mypy", "pyright", "basedpyright")

_NO_MODULE = re.compile(r"No module named '?(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?![\w.])'?")
_NO_NAME = re.compile(
    r"cannot import name '(?P<name>[^']+)' from (?:partially initialized module )?"
    r"'(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)'"
)
_MANIFESTS = (
    *(f"**/{name}" for name in ("pyproject.toml", "setup.cfg", "setup.py", "requirements/**")),
    *("requirements*.txt", "*.lock"),
)
"""Files that declare dependencies of Python, also those of a package in a repository with several."""

_NOT_PROVING = ("all-skipped", "only-expected-failures")
"""Diagnosis rules for tests that exist but prove nothing."""


def revise(situation: Situation) -> tuple[Edit, ...]:
    """Return the edits for a failure, in the order in which to apply them after the branch was added.

    The result is deterministic; empty for a passing outcome and for categories without strategies. The
    engine adds the description of the failure for the branch.
    """
    steps = () if situation.outcome.success else STRATEGIES.get(situation.failure.category, ())
    return tuple(edit for step in steps for edit in step(situation) if _is_feasible(edit, situation))


def _is_feasible(edit: Edit, situation: Situation) -> bool:
    """Return whether an edit asks only for files that can be created, or exist, and may be edited."""
    scope, asked = situation.scope, Instruction("")
    if isinstance(edit, NameArtifact):
        path = (edit.path,)
        asked = Instruction("", makes=path) if edit.task is None else Instruction("", changes=path)
    elif isinstance(edit, AddTodoBefore):
        made = edit.todo.acceptance_criteria.expected_artifacts
        asked = Instruction("", makes=tuple(each.path for each in made))
        scope = EditScope(allowed=edit.todo.allowed_files, kept=scope.kept, tests=scope.tests)
    return objection(asked, scope, situation.tree) is None


# -- tests that fail -----------------------------------------------------------------------------------


def _narrow_or_isolate(situation: Situation) -> Iterator[Edit]:
    """Reduce the search space of an unknown cause: restrict the files, else isolate the failing tests."""
    why = "the cause is unknown, and the failure names"
    narrower = list(_narrow(situation, rule="unknown-narrows-files", why=why, folders=True))
    why = "the cause is unknown, so only the failing tests run"
    yield from narrower or _isolate(situation, rule="unknown-isolates", why=why)


def _raise_limits(situation: Situation) -> Iterator[Edit]:
    """Propose to double the time limit of commands that exceeded it, within the limits of the plan."""
    # A passing confirmation proves that the code ends; without one, a loop would only take longer.
    confirmations = [run for each in situation.observations for run in each.confirmations if run.passed]
    if not confirmations and _hangs(situation):
        return
    ended = "; it may never end"
    if confirmations:
        slowest = max(run.duration_ms for run in confirmations) / 1000
        ended = f" and passes within {slowest:g} s in another run"
    policy, todo = situation.plan.metadata, situation.todo
    most = min(each for each in (policy.max_todo_seconds, todo.timeout_seconds, MAX_SECONDS) if each)
    for index, spec in enumerate(todo.acceptance_criteria.tests):
        check_id, limit = f"tests[{index}]", min(2 * spec.timeout_seconds, most)
        if check_id in situation.check_ids and limit > spec.timeout_seconds:
            yield RaiseLimit(
                rule="timeout-raises-limit",
                because=f"{check_id} exceeded its limit of {spec.timeout_seconds:g} s{ended}",
                requires_approval=True,
                todo_id=todo.id,
                check_id=check_id,
                from_seconds=spec.timeout_seconds,
                to_seconds=limit,
            )


def _hangs(situation: Situation) -> bool:
    """Return whether the time limit was exceeded outside of the test's own code, as far as a stack shows.

    Waiting in a test may be slow work; waiting in product code is taken for a loop or a deadlock.
    """
    location = situation.failure.location
    if location is not None and not is_test_path(location.path):
        return True
    # The innermost frame of the project: behind it there may be a library that waits.
    stacks = (each.frames for each in situation.exceptions if each.frames)
    sides = (
        [frame.side for frame in frames if frame.side in (Side.PRODUCT, Side.TEST)] for frames in stacks
    )
    return any(own[-1:] != [Side.TEST] for own in sides)


# -- missing tests -------------------------------------------------------------------------------------


def _retarget_or_write_test(situation: Situation) -> Iterator[Edit]:
    """Correct the selection of a missing test if an existing one was meant, else request the test."""
    failure = situation.failure
    if failure.owner is Owner.ENVIRONMENT:
        return  # the tests exist but cannot run on this machine
    retargets = tuple(_retarget(situation))
    if retargets:  # probably a misspelling, so a new test of that name would be wrong
        yield from retargets
        return
    problems = {each.text: each.problem for seen in situation.observations for each in seen.selectors}
    missing = [text for text, problem in problems.items() if problem in MISSING_TEST]
    commands = (accepted_command(spec.cmd) for spec in situation.failing_commands)
    selected = [text for each in commands if each and each.pytest for text in each.pytest.selections]
    located = [text for text in selected if text.partition("::")[0] in situation.located_files]
    # A folder cannot be written as a test.
    files = {text: below_root(text.partition("::")[0]) for text in (*missing, *located, *selected)}
    found = ((text, file) for text, file in files.items() if file and "." in file.rpartition("/")[2])
    selection, file = next(found, ("", ""))
    if not file:
        return
    exists = situation.tree.exists(file)
    if exists is None:
        problem = problems.get(selection, "" if problems or "::" in selection else "missing_file")
        exists = failure.rule in _NOT_PROVING or problem != "missing_file"
    yield NameArtifact(
        rule="missing-test-written",
        because=f"{quoted(selection)} proves nothing yet",
        todo_id=situation.branch.id,
        path=file,
        hint=f"{quoted(selection)} must run, and fail until the work is done.",
        task="PATCH" if exists else None,
    )


def _retarget(situation: Situation) -> Iterator[RetargetCheck]:
    """Propose corrected commands for criteria all of whose missing selections have a near existing one.

    Only commands that the plan states: not those of recipes, of files or of node ids.
    """
    found = (selector for each in situation.observations for selector in each.selectors)
    nearest = {each.text: near_selection(each) for each in found}
    todo = situation.todo
    named = {f"tests[{at}]": spec.cmd for at, spec in enumerate(todo.acceptance_criteria.tests)}
    named |= {"test_command": todo.test_command or "", "verify": todo.verify or ""}
    for check_id in situation.check_ids:
        command = accepted_command(named.get(check_id, ""))
        if command is None or command.pytest is None or command.pytest.guessed:
            continue
        selections = command.pytest.selections
        missing = {text: nearest[text] for text in selections if text in nearest}
        near = [each for each in (nearest.get(each, each) for each in selections) if each is not None]
        if not missing or len(near) < len(selections):
            continue
        cmd = with_selections(command, near)
        if cmd is None or any(below_root(each.partition("::")[0]) is None for each in near):
            continue
        pairs = (
            f"{quoted(old)} does not exist, but {quoted(new or '')} does" for old, new in missing.items()
        )
        yield RetargetCheck(
            rule="missing-test-retargets",
            because=", ".join(pairs),
            requires_approval=True,
            todo_id=todo.id,
            check_id=check_id,
            from_cmd=named[check_id],
            to_cmd=cmd,
        )


def near_selection(selector: Selector) -> str | None:
    """Return the existing selection that was probably meant; never a wider one.

    ``None`` if there is none, or if it is uncertain. ``selector`` holds the nearest existing names.
    """
    near = selector.nearest[0] if selector.nearest else None
    if near is None or selector.problem not in MISSING_TEST:
        return None
    path, colons, name = selector.text.partition("::")
    if selector.problem == "missing_file":
        folder, slash, file = path.rpartition("/")
        # Only a sibling of the missing file is a correction, not a folder, or an equal name elsewhere.
        is_beside = "/" not in near and near != file and "." in near
        if not is_beside or near.rpartition(".")[2] != file.rpartition(".")[2]:
            return None
        return f"{folder}{slash}{near}{colons}{name}"
    other, _, other_name = near.partition("::")
    # Without its parameters, a test would select more than was asked for.
    if other != path or not other_name or ("[" in name and "[" not in other_name):
        return None
    # A class instead of one of its tests would select more, too.
    is_function = other_name.rpartition("::")[2].startswith("test")
    return near if is_function or other_name.count("::") >= name.count("::") else None


# -- unusable source -----------------------------------------------------------------------------------


def _check_syntax(situation: Situation) -> Iterator[Edit]:
    """Add a compilation of the files at fault as the branch's first criterion."""
    python = _python_files(situation)
    failing = next((spec.cmd for spec in situation.failing_commands), "")
    cmd = shlex.join([*python_of(failing), "-m", "py_compile", *python]) if python else None
    because = f"no test can run before it compiles: {_few(situation.files_with_findings)}"
    yield from _add_check(situation, cmd, "compilation-checks-syntax-first", because)


def _check_types(situation: Situation) -> Iterator[Edit]:
    """Add the type checker of the plan, else one that the project uses, as the branch's first criterion."""
    planned = situation.command_for(Purpose.TYPE_CHECK, *situation.plan.items)
    python = _python_files(situation)
    program = next((each for each in _TYPE_CHECKERS if each in situation.tools), None)
    cmd = shlex.join([program, *python]) if program and python else None
    whose = f"{program}, which the project uses,"
    if planned is not None:
        cmd, whose = planned.text, "the type checker of the plan"
    because = f"{whose} checks {_few(situation.files_with_findings) or 'the project'} before the tests"
    yield from _add_check(situation, cmd, "types-checked-before-retry", because)


def _python_files(situation: Situation) -> list[str]:
    """Return the Python files with findings, in a form that no program parses as an option."""
    files = (file for file in situation.files_with_findings if file.endswith(PYTHON))
    return [f"./{file}" if file.startswith("-") else file for file in files]


def _fix_lint(situation: Situation) -> Iterator[Edit]:
    """Insert a step that runs the linter's automatic fix, or fixes its findings by hand.

    Only in files that the todo may change; an automatic fix of a command would change the others, too.
    """
    found_in, old = situation.files_with_findings, situation.todo.allowed_files
    files = [file for file in found_in if old is None or allowed(file, old)]
    if found_in and not files:
        return
    is_part = len(files) < len(found_in)
    command = situation.command_for(Purpose.LINT)
    fix = None if command is None or is_part else fixing_command(command)
    python = [file for file in files if file.endswith(PYTHON)]
    if fix is None and python and "ruff" in situation.tools:
        fix = shlex.join(["ruff", "check", "--fix", *python])
    linter = quoted(command.text if command is not None else "the linter")
    hint = f"Run this, then review its changes:\n{fix}"
    if fix is None:
        why = "would change other files, too" if is_part else "cannot fix this automatically"
        hint = f"{linter} {why}: fix each complaint by hand."
    findings = [each for each in situation.findings if not is_part or each.path in files]
    found = [f"{each.path}:{each.line} {each.code or ''} {each.message}" for each in findings]
    hint += f"\nIts complaints: {_few(found, 10)}." if found else ""
    task = ControllerTaskSpec(
        type="AUTO_FIX" if fix else "FIX", hint=hint, target_file=files[0] if files else None
    )
    of_what = f" of {_few(files)}" if files else ""
    yield from _add_step(
        situation,
        "lint-fixed-first",
        f"{linter} complains{of_what}, and {'automatic fixes' if fix else 'corrections'} need no branch",
        f"Apply the automatic fixes of {linter}" if fix else f"Fix what {linter} complains of",
        task,
        allowed_files=narrowed(old, files, folders=False) or old or (),
    )


def _resolve_import(situation: Situation) -> Iterator[Edit]:
    """Insert a step that resolves a failing import.

    It declares and installs a foreign module, or provides a module of the project; without a known module,
    it has to find out. No step is needed if a similar module exists.
    """
    module, name = _missing_import(situation) or (None, None)
    path = None if module is None else situation.module_file(module)
    # A misspelt name is corrected by the repair itself.
    if path is not None and path in situation.tree.near:
        return
    what, files, is_new = quoted(f"{name} of {module}" if name else module or ""), (), False
    if module is None:
        failure, files = situation.failure, situation.todo.allowed_files or ()
        message = failure.stack_trace_head or failure.suggestion or "nothing more is known"
        because = f"an import fails: {quoted(message)}"
        title = f"Resolve the failing import of {situation.todo.id}"
        hint = (
            "Find out what cannot be imported. Write it if it belongs to the project; otherwise declare "
            "and install its package."
        )
    elif path is None:
        top = quoted(module.partition(".")[0])
        because = f"{what} cannot be imported, and was not found in the project's folders of sources"
        title = f"Declare and install the package of {top}"
        hint = (
            f"Declare the distribution that provides the module {top}"
            f"{f' in a version that has {what}' if name else ''} where the project declares its "
            "dependencies, and install it where the tests run. If the module was to be the project's "
            "own, write it instead."
        )
        # These lie outside of most allowlists, so that a person has to approve the step.
        files = _MANIFESTS
    else:
        # A module that lacks only a name exists: its file cannot serve as the step's criterion.
        exists = situation.tree.exists(path) or any(each.path == path for each in situation.exceptions)
        is_new = name is None and not exists
        # The import itself may be what is wrong.
        importing = [each for each in situation.located_files if name and not is_test_path(each)]
        files = tuple(dict.fromkeys((path, *importing)))
        because = f"{what} belongs to the project and cannot be imported"
        title = f"Provide {what}"
        where = f" in {_few(files[1:])}" if files[1:] else ""
        hint = f"Let {path} provide {what}, or import it by its real name{where}."
    task = ControllerTaskSpec(type="RESOLVE_DEPENDENCY", hint=hint, target_file=path)
    rule = "import-resolved-first"
    yield from _add_step(situation, rule, because, title, task, allowed_files=files, is_new=is_new)


def _missing_import(situation: Situation) -> tuple[str, str | None] | None:
    """Return the missing module and the missing name in it, if any; ``None`` if no message names one."""
    messages = [each.message for each in situation.exceptions]
    messages += [
        text or "" for each in situation.failures for text in (each.stack_trace_head, each.suggestion)
    ]
    for message in messages:
        if found := _NO_MODULE.search(message) or _NO_NAME.search(message):
            return found["module"], found.groupdict().get("name")
    return None


# -- contracts and artifacts ---------------------------------------------------------------------------


def _settle_contract(situation: Situation) -> Iterator[Edit]:
    """Insert a step in which the architect writes or corrects the contract.

    A contract that the plan does not name is proposed only if the todo may write it: nobody has to be asked
    whether a file is wanted that nothing mentions.
    """
    todo, failure = situation.todo, situation.failure
    fact = next((each.contract for each in situation.observations if each.contract is not None), None)
    named = todo.contract_path or below_root(fact.path if fact else None)
    path = named or f"contracts/{todo.id}_contract.json"
    if named is None and todo.allowed_files is not None and not allowed(path, todo.allowed_files):
        return
    what = quoted(failure.stack_trace_head or failure.suggestion or failure.because or "the two sides")
    if fact is not None and fact.expected and fact.actual:
        name = quoted(fact.function or "the signature")
        what = f"{name} is promised as {quoted(fact.expected)} and found as {quoted(fact.actual)}"
    # If the contract exists already, its existence cannot serve as the step's criterion.
    exists = situation.tree.exists(path)
    if exists is None:
        exists = fact is not None and fact.problem != "unreadable"
    verb = "Reconcile" if exists or todo.contract_path else "Write"
    hint = (
        f"{verb} {path} so that it says what the tests and the callers rely on: {what}. The code is "
        "brought in line with it afterwards."
    )
    yield from _add_step(
        situation,
        "contract-settled-first",
        f"code and callers differ in what was agreed: {what}",
        f"Define the contract of {todo.title}",
        ControllerTaskSpec(type="CONTRACT", hint=hint, target_file=path),
        role=Role.ARCHITECT,
        allowed_files=(path,),
        is_new=not exists,
    )


def _name_artifact(situation: Situation) -> Iterator[Edit]:
    """Name the file that the branch has to create or correct, if it may edit it."""
    for wanted, why, is_absent in _wanted_artifacts(situation):
        path = below_root(_fixed_part(wanted))
        # It was missing and exists by now.
        if path is None or (is_absent and situation.tree.exists(path)):
            continue
        because, task = f"{quoted(wanted)} {why}", None if is_absent else "PATCH"
        branch_id, hint = situation.branch.id, f"{because}."
        yield NameArtifact(
            rule="artifact-named", because=because, todo_id=branch_id, path=path, hint=hint, task=task
        )
        return


def _wanted_artifacts(situation: Situation) -> Iterator[tuple[str, str, bool]]:
    """Yield files that may be the missing or wrong one, most certain first.

    Each is a path or glob, a phrase on its problem, and whether it is absent.
    """
    for observation in situation.observations:
        artifact, contract = observation.artifact, observation.contract
        if artifact is not None:
            is_absent = artifact.problem in ABSENT
            why = "does not exist" if is_absent else f"is not as the plan expects ({artifact.problem})"
            yield artifact.path, why, is_absent
        if contract is not None and contract.module_path and contract.problem == "missing_module":
            yield contract.module_path, f"is described by {contract.path} and missing", True
    for index, each in enumerate(situation.todo.acceptance_criteria.expected_artifacts):
        if f"expected_artifacts[{index}]" in situation.check_ids:
            yield each.path, f"is expected by expected_artifacts[{index}] and missing", True


# -- edits of several strategies -----------------------------------------------------------------------


def _few(names: Iterable[str], most: int = 3) -> str:
    """Return a list of quoted names as text, at most ``most`` of them by name."""
    return listed(map(quoted, names), most)


def _isolate(situation: Situation, *, rule: str, why: str) -> Iterator[Isolate]:
    """Restrict the branch to the failing tests, if commands are known that select them."""
    tests = situation.isolated_commands()
    if tests:
        because = f"{why}: {_few(situation.failing_tests or [spec.cmd for spec in tests])}"
        yield Isolate(rule=rule, because=because, todo_id=situation.branch.id, tests=tests)


def _add_check(situation: Situation, cmd: str | None, rule: str, because: str) -> Iterator[AddCheck]:
    """Add a command as the branch's first criterion.

    Nothing is added if the branch has it already, or is tested by convention, which a first criterion
    would disable.
    """
    branch = situation.branch
    if cmd is None or accepted_command(cmd) is None or wants_convention(branch):
        return
    if all(spec.cmd.split() != cmd.split() for _, spec in commands_of(branch)):
        check = CommandSpec(cmd=cmd)
        yield AddCheck(rule=rule, because=because, todo_id=branch.id, check=check)


def _narrow(situation: Situation, *, rule: str, why: str, folders: bool = False) -> Iterator[NarrowFiles]:
    """Restrict the branch to the files with findings, or the ``folders`` of those that may be at fault."""
    branch = situation.branch
    files = situation.implicated_files if folders else situation.files_with_findings
    patterns = narrowed(branch.allowed_files, files, folders=folders) if files else None
    if patterns is not None:
        because = f"{why} {_few(files)}"
        yield NarrowFiles(rule=rule, because=because, todo_id=branch.id, allowed_files=patterns)


def narrowed(old: tuple[str, ...] | None, files: Sequence[str], *, folders: bool) -> tuple[str, ...] | None:
    """Return an allowlist restricted to some files, or ``None`` if none is narrower than the old one.

    It never includes more than the old one. With ``folders``, the matching patterns of the old list are
    kept if that drops others; otherwise the files' folders within them are used.
    """
    patterns: list[str] = []
    for file in files:
        is_plain = not is_glob(file) and not file.startswith("!")
        inside = _fixed_part(file.rpartition("/")[0])  # the literal folder of a path with wildcards
        if is_plain and not (folders and "/" in file):
            patterns.append(file)
        elif inside:
            patterns.append(f"{inside}/**")
    wanted = without_covered(patterns)
    if old is None:
        return wanted or None
    inclusions = [pattern for pattern in old if not is_exclusion(pattern)]
    exclusions = [pattern for pattern in old if is_exclusion(pattern)]
    inside = [file for file in files if not any(matches(file, each[1:]) for each in exclusions)]
    kept = [pattern for pattern in inclusions if any(matches(file, pattern) for file in inside)]
    # A file without a pattern of its own within the old list stays allowed by the old pattern.
    chosen = kept
    if not folders or len(kept) == len(inclusions):
        chosen = [pattern for pattern in wanted if any(lies_within(pattern, each) for each in kept)]
        left = [file for file in inside if not any(matches(file, pattern) for pattern in chosen)]
        chosen += [pattern for pattern in kept if any(matches(file, pattern) for file in left)]
    allowed = tuple(dict.fromkeys((*chosen, *exclusions)))
    return allowed if chosen and set(allowed) != set(old) else None


def _fixed_part(pattern: str) -> str:
    """Return a path unchanged; of a glob, the folder before its first wildcard."""
    parts = pattern.split("/")
    wild = (at for at, part in enumerate(parts) if is_glob(part))
    return "/".join(parts[: next(wild, len(parts))])


def _add_step(
    situation: Situation,
    rule: str,
    because: str,
    title: str,
    task: ControllerTaskSpec,
    *,
    role: Role | None = None,
    allowed_files: tuple[str, ...] = (),
    is_new: bool = False,
) -> Iterator[AddTodoBefore]:
    """Insert a temporary todo before the branch.

    A step that creates a new file (``is_new``) has that file as its criterion; any other one is done when
    its role reports it as done. A step that has to change files outside of the todo's allowlist needs
    approval.
    """
    branch, old, path = situation.branch, situation.todo.allowed_files, task.target_file
    fields: dict[str, Any] = {"allowed_files": allowed_files} if allowed_files else {}
    # A file that exists already would pass such a criterion before anybody has worked.
    if is_new and path:
        fields["acceptance_criteria"] = AcceptanceCriteria(expected_artifacts=(ArtifactSpec(path=path),))
    else:
        fields["requires_testing"] = False
    prefix = f"{situation.todo.id[:_MAX_STEM]}_step_"
    names = (f"{prefix}{number:02d}" for number in count(1))
    step = Todo(
        id=next(name for name in names if not situation.is_taken(name)),
        title=quoted(title),
        intent=because,
        agent_role=role or role_for(situation.failure, situation.todo),
        controller_task_spec=ControllerTaskSpec(**{name: held for name, held in task if held is not None}),
        priority=situation.todo.priority,
        is_temporary=True,
        **fields,
    )
    # The exclusions of the todo that the step lacks.
    excluded = tuple(each[1:] for each in old or () if is_exclusion(each) and each not in allowed_files)
    kept = tuple(each for each in old or () if not is_exclusion(each))
    leads_outside = widened_by(kept, allowed_files) is not None or claims_overlap(allowed_files, excluded)
    # A step without a list of its own may change every file.
    leads_outside |= not allowed_files
    yield AddTodoBefore(
        rule=rule,
        because=because,
        requires_approval=old is not None and leads_outside,
        todo_id=branch.id,
        todo=step,
    )


Step: TypeAlias = "Callable[[Situation], Iterator[Edit]]"
STRATEGIES: Mapping[Category, tuple[Step, ...]] = {
    Category.TEST_REGRESSION: (
        partial(_narrow, rule="regression-narrows-files", why="the failure names", folders=True),
        partial(_isolate, rule="regression-isolates", why="what fails runs alone"),
    ),
    Category.TEST_TIMEOUT: (
        partial(_isolate, rule="timeout-isolates", why="the test that exceeded its limit runs alone"),
        _raise_limits,
    ),
    Category.FLAKY_TEST: (
        partial(_isolate, rule="flaky-isolates", why="the flaky test runs again, alone"),
    ),
    Category.TEST_CRASH: (
        partial(_isolate, rule="crash-isolates", why="the test that ends its process runs alone"),
    ),
    Category.TEST_NOT_FOUND: (_retarget_or_write_test,),
    Category.COMPILATION_ERROR: (
        _check_syntax,
        partial(_narrow, rule="compilation-narrows-files", why="what does not compile is"),
    ),
    Category.TYPE_ERROR: (_check_types,),
    Category.LINT_ERROR: (
        _fix_lint,
        partial(_narrow, rule="lint-narrows-files", why="the linter complains of"),
    ),
    Category.IMPORT_ERROR: (_resolve_import,),
    Category.SPEC_MISMATCH: (_settle_contract,),
    Category.ARTIFACT_MISSING: (_name_artifact,),
    Category.UNKNOWN: (_narrow_or_isolate,),
}
"""Strategies of each category, in order. Categories without an entry halt or need no edit."""


# -- pre-existing failures -----------------------------------------------------------------------------


def set_apart(
    todo: Todo, outcome: Outcome, failures: Iterable[Failure], is_known: Callable[[str], bool]
) -> list[AddTodoBefore | AddDependency]:
    """Return edits that give each pre-existing failure a todo of its own, on which the failed todo depends.

    ``is_known`` returns whether a todo id exists; a todo that exists for the same failure is reused.
    """
    edits: dict[str, AddTodoBefore | AddDependency] = {}
    for failure in failures:
        # By signature: other todos that fail in the same way share the todo.
        # The category must survive the cut: it keeps the failures of one todo apart.
        name = failure.signature or f"{todo.id[: _MAX_NAME - 20]}_{failure.category.value.lower()}"
        name = f"{SET_APART}{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:_MAX_NAME]}"
        if name in todo.dependencies or name in edits:
            continue
        because = f"{failure.category} of {todo.id} existed before the work began"
        common: dict[str, Any] = {"rule": "pre-existing-failure", "because": because, "todo_id": todo.id}
        if is_known(name):
            edits[name] = AddDependency(**common, on=name)
            continue
        headline = one_line(failure.stack_trace_head or failure.category.value, limit=_MAX_NAME)
        fields: dict[str, Any] = {
            "id": name,
            "title": f"Fix what failed before: {headline}",
            "intent": f"It failed before the work on {todo.id} began, and was not caused by that todo.",
            "agent_role": role_for(failure, todo),
            "priority": todo.priority,
            **({"failure_routing": todo.failure_routing} if todo.failure_routing else {}),
            **_proof(todo, outcome, failure),
        }
        edits[name] = AddTodoBefore(**common, todo=Todo.model_validate(fields))
    return list(edits.values())


def _proof(todo: Todo, outcome: Outcome, failure: Failure) -> dict[str, Any]:
    """Return fields of a todo with criteria that prove the repair of this failure alone.

    These are its tests, or its check's command or contract; as a last resort all criteria of the todo.
    """
    check = next((check for check in outcome.checks if check.id == failure.check_id), None)
    tests = failure.tests or failure.top_failing_tests
    if len(tests) > _MAX_TESTS:
        tests = tuple(dict.fromkeys(test.partition("::")[0] for test in tests))
    # Outcome files are untrusted input: names must not leave the root or become options.
    is_inside = all(below_root(test.partition("::")[0]) and not test.startswith("-") for test in tests)
    cmd = shlex.join(["pytest", *tests]) if tests and is_inside else None
    if cmd is None or accepted_command(cmd) is None:
        cmd = check.cmd if check else None
    if cmd is not None and accepted_command(cmd) is not None:
        return {"acceptance_criteria": {"tests": [{"cmd": cmd, "timeout_seconds": limit_of(check)}]}}
    if check is not None and check.kind is CheckKind.CONTRACT and todo.contract_path:
        return {"contract_path": todo.contract_path}
    names = ("acceptance_criteria", "verify", "test_command", "test_file")
    return {name: getattr(todo, name) for name in names}
