"""From the category of a failure to the edits of the plan that it calls for: one function a category.

None widens what the todo may change without a person's approval, or gives more time to product code that
loops; what an edit tells to make or to change is checked by :mod:`planner.brief.instructions`.
"""

from __future__ import annotations

import re
import shlex
from datetime import date
from itertools import count
from typing import TYPE_CHECKING, Any

from planner.brief.instructions import EditScope, Instruction, objection
from planner.catalog import Purpose
from planner.catalog.tables import load_table
from planner.catalog.test_paths import is_test_path
from planner.model.edits import (
    AddCheck,
    AddContract,
    AddTodoBefore,
    Isolate,
    NameArtifact,
    NarrowFiles,
    QuarantineTest,
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
from planner.model.verdicts import Side
from planner.policy.allowed_files import WILDCARDS, is_exclusion, lies_within, without_covered
from planner.policy.branches import role_for
from planner.policy.criteria import commands_of, wants_convention
from planner.revise.commands import (
    PYTHON,
    fixing_command,
    isolated_commands,
    known_commands,
    syntax_check,
    type_check,
    with_selections,
)
from planner.revise.situation import below_root, fixed_part, listed, parsed, quoted
from planner.text.glob_patterns import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from planner.model.edits import Edit
    from planner.model.evidence import Selector
    from planner.revise.situation import Situation

REVISION_RULES: Mapping[str, str] = load_table("rules", "planner.revise")
"""Every rule of a revision with what it does, in the order of the strategies."""

QUARANTINE_DAYS = 14
_MOST_QUARANTINED = 10
_LONGEST_NODEID = 1_000
_LONGEST_STEM = 180
"""Of a todo's id, so much stands in the ids of its steps and parts."""

_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_NO_MODULE = re.compile(r"No module named '?(?P<module>[\w.]+)'?")
_NO_NAME = re.compile(
    r"cannot import name '(?P<name>[^']+)' from (?:partially initialized module )?'(?P<module>[^']+)'"
)
_NO_NODE_MODULE = re.compile(r"Cannot find (?:module|package) ['\"](?P<node>[^'\"]+)['\"]")
_NO_FILE = re.compile(r"No such file or directory:? '(?P<path>[^'\n]+)'")
_ENDLESS = re.compile(r"while\s*\(?\s*(?:True|1)\b")
_WAITING = frozenset(
    {"threading", "queue", "socket", "select", "selectors", "subprocess", "multiprocessing", "ssl"}
    | {"concurrent", "signal", "asyncio"}
)
"""Modules of the standard library in which a process waits for another."""

_PYTHON_MANIFESTS = (
    *("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "requirements/**", "*.lock"),
)
_NODE_MANIFESTS = ("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock")
"""Where dependencies are declared."""

_ARTIFACT_PROBLEMS = {
    "missing": "does not exist",
    "no_match": "has no match",
    "empty": "is empty",
    "too_small": "is too small",
    "too_large": "is too large",
    "not_a_file": "is no file",
    "not_json": "is no JSON",
    "schema": "does not satisfy its schema",
    "sha256": "has another content than promised",
}
_ABSENT = ("missing", "no_match")
_MISSING_TEST = ("missing_file", "missing_id")
_NOT_PROVING = ("all-skipped", "only-expected-failures")
"""Rules of a diagnosis that say: the tests are there, and none of them proves anything."""


def revise(situation: Situation) -> tuple[Edit, ...]:
    """Return the edits that the failure calls for, in the order in which they apply after the branch.

    Telling the branch what was seen is none of them. The same situation gives the same edits.
    """
    strategy = STRATEGIES.get(situation.failure.category)
    if strategy is None or situation.outcome.success:
        return ()
    return tuple(edit for edit in strategy(situation) if _is_right(edit, situation))


def _is_right(edit: Edit, situation: Situation) -> bool:
    """Return whether what an edit tells somebody agrees with the tree and with what they may edit."""
    if isinstance(edit, NameArtifact):
        names = (edit.path,)
        is_change = edit.task is not None
        told = Instruction(edit.hint or "", () if is_change else names, names if is_change else ())
        return objection(told, situation.scope(), situation.tree) is None
    if isinstance(edit, AddTodoBefore):
        made = tuple(each.path for each in edit.todo.acceptance_criteria.expected_artifacts)
        kept = situation.plan.metadata.protected_files
        scope = EditScope(allowed=edit.todo.allowed_files, kept=kept, tests=situation.scope().tests)
        return objection(Instruction(edit.todo.title, makes=made), scope, situation.tree) is None
    return True


# -- tests that fail -----------------------------------------------------------------------------------


def _after_regression(situation: Situation) -> Iterator[Edit]:
    files = situation.implicated_files()
    yield from _narrow(situation, files, "regression-narrows-files", "the failure points to", folders=True)
    yield from _isolate(situation, "regression-isolates", "what fails is run without company")


def _while_unknown(situation: Situation) -> Iterator[Edit]:
    # That the branch is worked on once only is written in the branch.
    files, why = situation.implicated_files(), "the cause is unknown, and the failure points to"
    narrower = tuple(_narrow(situation, files, "unknown-narrows-files", why, folders=True))
    yield from narrower or _isolate(
        situation, "unknown-isolates", "the cause is unknown, so only what fails is run"
    )


def _after_crash(situation: Situation) -> Iterator[Edit]:
    yield from _isolate(situation, "crash-isolates", "what ends its process is run without company")


def _after_unmet_metric(situation: Situation) -> Iterator[Edit]:
    if situation.failing_tests:
        why = "what records the metric is run without company"
        yield from _isolate(situation, "metric-isolates", why, keeps=situation.check_ids)


def _after_flaky_test(situation: Situation) -> Iterator[Edit]:
    yield from _isolate(situation, "flaky-isolates", "what gives both answers is run again, alone")
    today = date.fromisoformat(situation.at[:10])
    expires = date.fromordinal(min(today.toordinal() + QUARANTINE_DAYS, date.max.toordinal()))
    known = {each.nodeid: each.expires for each in situation.plan.metadata.flaky_retry.quarantine}
    ticket = situation.branch.id if situation.branch else situation.todo.id
    for nodeid in situation.failing_tests[:_MOST_QUARANTINED]:
        until = known.get(nodeid, "")
        if not nodeid.isprintable() or until >= today.isoformat():
            continue
        before = f"; an earlier quarantine ended on {until}" if until else ""
        yield QuarantineTest(
            rule="flaky-quarantines",
            because=f"{quoted(nodeid)} gave both answers, and {ticket} is there to repair it{before}",
            requires_approval=True,
            todo_id=situation.todo.id,
            nodeid=nodeid[:_LONGEST_NODEID],
            owner=role_for(situation.failure, situation.todo).value,
            ticket=ticket,
            expires=expires.isoformat(),
        )


def _after_timeout(situation: Situation) -> Iterator[Edit]:
    yield from _isolate(situation, "timeout-isolates", "what passed its limit is run without company")
    confirmations = [run for each in situation.observations for run in each.confirmations if run.passed]
    if not confirmations and _hangs(situation):
        return
    ended = "; whether it would ever have ended is not known"
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
                because=f"{check_id} passed its limit of {spec.timeout_seconds:g} s{ended}",
                requires_approval=True,
                todo_id=todo.id,
                check_id=check_id,
                from_seconds=spec.timeout_seconds,
                to_seconds=limit,
            )


def _hangs(situation: Situation) -> bool:
    """Return whether it was ended in product code, in an endless loop, or while it waited for another."""
    location = situation.failure.location
    if location is not None and not is_test_path(location.path):
        return True
    for exception in situation.exceptions:
        frames = exception.frames
        if any(frame.source and _ENDLESS.search(frame.source) for frame in frames):
            return True
        own = [frame.side for frame in frames if frame.side in (Side.PRODUCT, Side.TEST)]
        if own and own[-1] is Side.PRODUCT:
            return True
        last = frames[-1] if frames else None
        module = (last.module or last.path.rpartition("/")[2].removesuffix(".py")) if last else ""
        if last and last.side is Side.STDLIB and module.partition(".")[0] in _WAITING:
            return True
    return False


# -- tests that are not there --------------------------------------------------------------------------


def _after_missing_test(situation: Situation) -> Iterator[Edit]:
    branch, failure = situation.branch, situation.failure
    if failure.owner is Owner.ENVIRONMENT:
        return  # the tests are there and cannot run on this machine
    retargets = tuple(_retarget(situation))
    yield from retargets
    selectors = [each for seen in situation.observations for each in seen.selectors]
    problems = {each.text: each.problem for each in selectors}
    missing = [each.text for each in selectors if each.problem in _MISSING_TEST]
    commands = (parsed(spec.cmd) for spec in situation.failing_commands())
    selected = [text for each in commands if each and each.pytest for text in each.pytest.selections]
    located = situation.located_files
    for selection in (
        *missing,
        *(text for text in selected if text.partition("::")[0] in located),
        *selected,
    ):
        file = below_root(selection.partition("::")[0])
        # Nobody is told to write what was probably misspelt.
        if branch is None or retargets or file is None or "." not in file.rpartition("/")[2]:
            continue
        problem = problems.get(selection, "" if selectors or "::" in selection else "missing_file")
        is_absent = problem == "missing_file" and failure.rule not in _NOT_PROVING
        exists = situation.tree.exists(file)
        hint = (
            f"Let a test of {quoted(selection)} run that fails while the work is undone."
            if failure.rule in _NOT_PROVING
            else f"Write what {quoted(selection)} names, to fail while the work is undone."
        )
        yield NameArtifact(
            rule="missing-test-written",
            because=f"{quoted(selection)} proves nothing yet",
            todo_id=branch.id,
            path=file,
            hint=f"{hint} {quoted(failure.suggestion or failure.stack_trace_head or '')}".strip(),
            task=None if (is_absent if exists is None else not exists) else "PATCH",
        )
        return


def _retarget(situation: Situation) -> Iterator[RetargetCheck]:
    problems = [selector for each in situation.observations for selector in each.selectors]
    named = {where: spec.cmd for where, spec in commands_of(situation.todo) if "verify[" not in where}
    for check_id in situation.check_ids:
        command = parsed(named.get(check_id, ""))
        if command is None or command.pytest is None or command.pytest.guessed:
            continue
        selections = command.pytest.selections
        missing = {each.text: near_selection(each) for each in problems if each.text in selections}
        near = [each for each in (missing.get(each, each) for each in selections) if each is not None]
        if not missing or len(near) < len(selections):
            continue
        cmd = with_selections(command, near)
        if cmd is None or any(below_root(each.partition("::")[0]) is None for each in near):
            continue
        pairs = (f"{quoted(old)} is not there, {quoted(new or '')} is" for old, new in missing.items())
        yield RetargetCheck(
            rule="missing-test-retargets",
            because=", ".join(pairs),
            requires_approval=True,
            todo_id=situation.todo.id,
            check_id=check_id,
            from_cmd=named[check_id],
            to_cmd=cmd,
        )


def near_selection(selector: Selector) -> str | None:
    """Return the existing selection that was probably meant; never one that selects more."""
    near = selector.nearest[0] if selector.nearest else None
    if near is None or selector.problem not in _MISSING_TEST:
        return None
    path, colons, name = selector.text.partition("::")
    if selector.problem == "missing_file":
        folder, slash, file = path.rpartition("/")
        # The names are those beside the missing file; a folder, or the same name elsewhere, is not meant.
        is_beside = "/" not in near and near != file and "." in near
        if not is_beside or near.rpartition(".")[2] != file.rpartition(".")[2]:
            return None
        return f"{folder}{slash}{near}{colons}{name}"
    other, _, other_name = near.partition("::")
    if other != path or not other_name or ("[" in name and "[" not in other_name):
        return None
    is_function = other_name.rpartition("::")[2].startswith("test")
    return near if is_function or other_name.count("::") >= name.count("::") else None


# -- source that cannot be used ------------------------------------------------------------------------


def _after_compilation_error(situation: Situation) -> Iterator[Edit]:
    files = situation.files_with_findings
    cmd = syntax_check(situation, files)
    because = f"no test says anything before it compiles: {listed(files)}"
    yield from _add_check(situation, cmd, "compilation-checks-syntax-first", because)
    yield from _narrow(situation, files, "compilation-narrows-files", "what does not compile is")


def _after_type_error(situation: Situation) -> Iterator[Edit]:
    files = situation.files_with_findings
    found = type_check(situation, files)
    if found is not None:
        cmd, whose, is_in_use = found
        because = f"{whose} looks at {listed(files) or 'the project'} before the tests do"
        rule = "types-checked-before-retry"
        yield from _add_check(situation, cmd, rule, because, requires_approval=not is_in_use)


def _after_lint_error(situation: Situation) -> Iterator[Edit]:
    files = situation.files_with_findings
    own = {spec.cmd for _, spec in commands_of(situation.todo)}
    linters = (each for each in known_commands(situation) if each.tool.purpose is Purpose.LINT)
    command = next((each for each in linters if each.text in own), None)
    fix = None if command is None else fixing_command(command)
    python = [file for file in files if file.endswith(PYTHON)]
    if fix is None and python and "ruff" in situation.tools:
        fix = shlex.join(["ruff", "check", "--fix", *python])
    linter = quoted(command.text if command is not None else "the linter")
    said = [
        f"{finding.path}:{finding.line} {finding.code or ''} {finding.message}"
        for observation in situation.observations
        if observation.command is not None
        for finding in observation.command.findings
    ]
    hint = f"{linter} cannot fix this by itself: fix each complaint by hand."
    if fix is not None:
        hint = f"Run this, then look at what it changed:\n{fix}"
    old = situation.todo.allowed_files
    because = (
        f"{linter} complains{f' of {listed(files)}' if files else ''}, and what can be fixed by itself"
    )
    task = ControllerTaskSpec(
        type="AUTO_FIX" if fix else "FIX",
        hint=hint + (f"\nIt complains of: {listed(said, at_most=10)}." if said else ""),
        target_file=files[0] if files else None,
    )
    yield from _add_step(
        situation,
        "lint-fixed-first",
        f"{because} needs no branch",
        f"Fix what {linter} can fix by itself",
        task,
        allowed_files=narrowed(old, files, folders=False) or old or (),
    )
    yield from _narrow(situation, files, "lint-narrows-files", "the linter complains of")


def _after_import_error(situation: Situation) -> Iterator[Edit]:
    missing = _missing_import(situation)
    said = situation.failure.stack_trace_head or situation.failure.suggestion or "nothing more is known"
    because, title = (
        f"an import fails: {quoted(said)}",
        f"Resolve the import that {situation.todo.id} lacks",
    )
    hint = (
        "Find out what cannot be imported. Write it if it is the project's own; else declare and install "
        "what provides it."
    )
    files, path, is_new = situation.todo.allowed_files or (), None, False
    if missing is not None:
        module, name, is_node = missing
        what = quoted(f"{name} of {module}" if name else module)
        path = None if is_node else situation.module_file(module)
        near = situation.tree.near.get(path or "")
        if path is None:
            top = quoted(module if is_node else module.partition(".")[0])
            because = f"{what} cannot be imported, and nothing shows that it is the project's own"
            title = f"Declare and install what provides {top}"
            hint = (
                f"Declare the distribution that provides the module {top}"
                f"{f' in a version that has {what}' if name else ''} where the project declares its "
                "dependencies, and install it where the tests run. If the module was to be the project's "
                "own, write it instead."
            )
            files = _NODE_MANIFESTS if is_node else _PYTHON_MANIFESTS
        elif near is not None:
            importing = _importing_file(situation)
            because = f"{what} cannot be imported; {near} is there"
            title, path = f"Correct the import of {what}", importing
            hint = f"{near} exists and {what} does not: correct the import, or rename what is misnamed."
            files = tuple(file for file in (importing, near) if file)
        else:
            # A module that lacks a name is there already: its file would prove nothing.
            exists = situation.tree.exists(path)
            is_new = name is None and path not in situation.product_files and exists is not True
            because = f"{what} is the project's own and cannot be imported"
            title = f"Provide {what}"
            hint = f"Let {path} provide {what}, or import it by the name that it has."
            files = (path,)
    task = ControllerTaskSpec(type="RESOLVE_DEPENDENCY", hint=hint, target_file=path)
    rule = "import-resolved-first"
    yield from _add_step(situation, rule, because, title, task, allowed_files=files, is_new=is_new)


def _importing_file(situation: Situation) -> str | None:
    """Return the file of the product whose import fails."""
    frames = [frame for each in situation.exceptions for frame in each.frames]
    own = [frame.path for frame in frames if frame.side is Side.PRODUCT]
    return below_root(own[-1]) if own else None


def _missing_import(situation: Situation) -> tuple[str, str | None, bool] | None:
    """Return the module that an import lacked, the name in it, and whether it is one of Node."""
    said = [each.message for each in situation.exceptions]
    said += [text or "" for each in situation.failures for text in (each.stack_trace_head, each.suggestion)]
    for message in said:
        for pattern in (_NO_MODULE, _NO_NAME, _NO_NODE_MODULE):
            found = pattern.search(message)
            if found is None:
                continue
            parts = found.groupdict()
            if "node" in parts:
                return parts["node"], None, True
            if _MODULE.fullmatch(parts["module"]):
                return parts["module"], parts.get("name"), False
    return None


# -- promises that are not kept ------------------------------------------------------------------------


def _after_spec_mismatch(situation: Situation) -> Iterator[Edit]:
    todo, failure = situation.todo, situation.failure
    fact = next((each.contract for each in situation.observations if each.contract is not None), None)
    path = (
        todo.contract_path
        or below_root(fact.path if fact else None)
        or f"contracts/{todo.id}_contract.json"
    )
    what = quoted(failure.stack_trace_head or failure.suggestion or failure.because or "the two sides")
    if fact is not None and fact.expected and fact.actual:
        name = quoted(fact.function or "the signature")
        what = f"{name} is promised as {quoted(fact.expected)} and found as {quoted(fact.actual)}"
    # Of a contract that is there already, its being there would prove nothing.
    exists = situation.tree.exists(path)
    if exists is None:
        exists = fact is not None and fact.problem != "unreadable"
    verb = "Reconcile" if exists or todo.contract_path else "Write"
    hint = f"{verb} {path} so that it says what the tests and the callers rely on: {what}. The code is "
    task = ControllerTaskSpec(
        type="CONTRACT", hint=f"{hint}brought in line with it afterwards.", target_file=path
    )
    yield from _add_step(
        situation,
        "contract-settled-first",
        f"code and callers differ in what was agreed: {what}",
        f"Settle the contract of {todo.title}",
        task,
        role=Role.ARCHITECT,
        allowed_files=(path,),
        is_new=not exists,
    )
    if situation.branch is not None and todo.contract_path is None and not wants_convention(todo):
        because = f"no contract of {todo.id} says what was promised, so nothing kept the two sides together"
        yield AddContract(
            rule="contract-binds-todo",
            because=because,
            requires_approval=True,
            todo_id=todo.id,
            contract_path=path,
        )


def _after_missing_artifact(situation: Situation) -> Iterator[Edit]:
    branch, tree = situation.branch, situation.tree
    for wanted, why, is_absent in _wanted_artifacts(situation):
        path = below_root(fixed_part(wanted))
        # What was missing and is there by now needs no edit.
        if branch is None or path is None or (is_absent and tree.exists(path) and "::" not in wanted):
            continue
        if not situation.scope().permits(path):
            return
        facts = (each.artifact for each in situation.observations)
        nearest = [name for each in facts if each and each.path == wanted for name in each.nearest]
        near = f" What looks like it: {listed(nearest)}." if nearest else ""
        form = "a file that matches " if WILDCARDS & set(wanted) else ""
        yield NameArtifact(
            rule="artifact-named",
            because=f"{quoted(wanted)} {why}",
            todo_id=branch.id,
            path=path,
            hint=f"{'Make' if is_absent else 'Correct'} {form}{quoted(wanted)}, which {why}.{near}",
            task=None if is_absent else "PATCH",
        )
        return


def _wanted_artifacts(situation: Situation) -> Iterator[tuple[str, str, bool]]:
    """Yield files that may be the missing one, the surest first, what is wrong, and if it is absent."""
    for observation in situation.observations:
        artifact, contract = observation.artifact, observation.contract
        if artifact is not None:
            why = f"is not as the plan expects it: {artifact.problem}"
            why = _ARTIFACT_PROBLEMS.get(artifact.problem, why)
            yield artifact.path, why, artifact.problem in _ABSENT
        if contract is not None and contract.module_path and contract.problem == "missing_module":
            yield contract.module_path, f"is described by {contract.path} and missing", True
    artifacts = situation.todo.acceptance_criteria.expected_artifacts
    for index, each in enumerate(artifacts):
        if f"expected_artifacts[{index}]" in situation.check_ids:
            yield each.path, f"is expected by expected_artifacts[{index}] and missing", True
    missing = _missing_import(situation)
    module = None if missing is None or missing[1] or missing[2] else situation.module_file(missing[0])
    if module is not None and module not in situation.tree.near:
        yield module, "is imported and missing", True
    found = _NO_FILE.search(situation.failure.stack_trace_head or "")
    if found is not None:
        yield found["path"], "is read and missing", True
    for where, spec in commands_of(situation.todo):
        if where in situation.check_ids and spec.fixture and not situation.tree.exists(spec.fixture):
            yield spec.fixture, f"is the data that {where} needs", True


STRATEGIES: Mapping[Category, Callable[[Situation], Iterator[Edit]]] = {
    Category.TEST_REGRESSION: _after_regression,
    Category.TEST_TIMEOUT: _after_timeout,
    Category.FLAKY_TEST: _after_flaky_test,
    Category.TEST_CRASH: _after_crash,
    Category.TEST_NOT_FOUND: _after_missing_test,
    Category.COMPILATION_ERROR: _after_compilation_error,
    Category.TYPE_ERROR: _after_type_error,
    Category.LINT_ERROR: _after_lint_error,
    Category.IMPORT_ERROR: _after_import_error,
    Category.SPEC_MISMATCH: _after_spec_mismatch,
    Category.ARTIFACT_MISSING: _after_missing_artifact,
    Category.METRIC_UNMET: _after_unmet_metric,
    Category.UNKNOWN: _while_unknown,
}
"""What each category calls for. A category that is not here halts, or calls for no edit."""


# -- edits that several strategies make ----------------------------------------------------------------


def _isolate(
    situation: Situation,
    rule: str,
    why: str,
    *,
    keeps: tuple[str, ...] = (),
    tests: tuple[CommandSpec, ...] | None = None,
) -> Iterator[Isolate]:
    """Leave the branch the failing tests; do nothing where no command is known to show them."""
    tests = isolated_commands(situation) if tests is None else tests
    if situation.branch is not None and tests:
        because = f"{why}: {listed(situation.failing_tests or [spec.cmd for spec in tests])}"
        yield Isolate(rule=rule, because=because, todo_id=situation.branch.id, tests=tests, keeps=keeps)


def _add_check(
    situation: Situation, cmd: str | None, rule: str, because: str, *, requires_approval: bool = False
) -> Iterator[AddCheck]:
    """Put a command first, unless the branch has it, or is tested by convention, which it would end."""
    branch = situation.branch
    if branch is None or cmd is None or parsed(cmd) is None or wants_convention(branch):
        return
    if all(spec.cmd.split() != cmd.split() for _, spec in commands_of(branch)):
        yield AddCheck(
            rule=rule,
            because=because,
            requires_approval=requires_approval,
            todo_id=branch.id,
            check=CommandSpec(cmd=cmd),
        )


def _narrow(
    situation: Situation, files: Sequence[str], rule: str, why: str, *, folders: bool = False
) -> Iterator[NarrowFiles]:
    """Let the branch change only these files, or their folders, where that is less."""
    branch = situation.branch
    patterns = narrowed(branch.allowed_files, files, folders=folders) if branch and files else None
    if branch is not None and patterns is not None:
        because = f"{why} {listed(files)}"
        yield NarrowFiles(rule=rule, because=because, todo_id=branch.id, allowed_files=patterns)


def narrowed(old: tuple[str, ...] | None, files: Sequence[str], *, folders: bool) -> tuple[str, ...] | None:
    """Return the narrower allowlist, or ``None``. It never lets in what the old one does not.

    With ``folders``, patterns of the old list that match the files are kept as they are, as long as that is
    fewer; else the folders within them.
    """
    patterns = (_folder_pattern(file) if folders else _file_pattern(file) for file in files)
    wanted = without_covered(pattern for pattern in patterns if pattern is not None)
    if old is None:
        return wanted or None
    lets_in = [pattern for pattern in old if not is_exclusion(pattern)]
    exclusions = [pattern for pattern in old if is_exclusion(pattern)]
    inside = [file for file in files if not any(matches(file, each[1:]) for each in exclusions)]
    kept = [pattern for pattern in lets_in if any(matches(file, pattern) for file in inside)]
    chosen = kept
    if not folders or len(kept) == len(lets_in):
        chosen = [pattern for pattern in wanted if any(lies_within(pattern, each) for each in kept)]
        left = [file for file in inside if not any(matches(file, pattern) for pattern in chosen)]
        chosen += [pattern for pattern in kept if any(matches(file, pattern) for file in left)]
    allowed = tuple(dict.fromkeys((*chosen, *exclusions)))
    return allowed if chosen and set(allowed) != set(old) else None


def _folder_pattern(path: str) -> str | None:
    """Return the glob of everything in a file's folder; of a file at the root, the file itself."""
    if "/" not in path:
        return _file_pattern(path)
    folder = fixed_part(path.rpartition("/")[0])
    return f"{folder}/**" if folder else None


def _file_pattern(path: str) -> str | None:
    """Return the glob of one file; its folder's where its name would be read as a glob itself."""
    if not WILDCARDS & set(path) and not path.startswith("!"):
        return path
    return _folder_pattern(path) if "/" in path else None


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
    """Put a temporary todo before the branch; do nothing where no branch is made.

    A step whose file ``is_new`` is proved by it; any other is done when its role says so. Where it has to
    change what the todo may not, a person agrees first.
    """
    branch, old, path = situation.branch, situation.todo.allowed_files, task.target_file
    if branch is None:
        return
    fields: dict[str, Any] = {"allowed_files": allowed_files} if allowed_files else {}
    if is_new and path:
        fields["acceptance_criteria"] = AcceptanceCriteria(expected_artifacts=(ArtifactSpec(path=path),))
    else:
        fields["requires_testing"] = False
    if branch.dependencies:
        fields["dependencies"] = branch.dependencies
    prefix = f"{situation.todo.id[:_LONGEST_STEM]}_step_"
    names = (f"{prefix}{number:02d}" for number in count(1))
    step = Todo(
        id=next(name for name in names if situation.is_free(name)),
        title=quoted(title),
        intent=because,
        agent_role=role or role_for(situation.failure, situation.todo),
        controller_task_spec=ControllerTaskSpec(**{name: held for name, held in task if held is not None}),
        priority=situation.todo.priority,
        is_temporary=True,
        **fields,
    )
    yield AddTodoBefore(
        rule=rule,
        because=because,
        requires_approval=old is not None and _leads_outside(old, allowed_files),
        todo_id=branch.id,
        todo=step,
    )


def _leads_outside(old: Iterable[str], new: Iterable[str]) -> bool:
    """Return whether an allowlist lets in what another does not."""
    lets_in = [pattern for pattern in old if not is_exclusion(pattern)]
    wanted = (pattern for pattern in new if not is_exclusion(pattern))
    return any(not any(lies_within(each, held) for held in lets_in) for each in wanted)
