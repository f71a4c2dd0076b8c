"""The rules: about the plan and its policy, each todo and its files, criteria and their tests, and size."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from planner.catalog.tables import load_table
from planner.lint.facts import LintFinding, is_branch, made_by, pytest_of
from planner.model.findings import PathKind
from planner.model.plan import CommandSpec, MetricSpec, TodoStatus
from planner.model.taxonomy import Role
from planner.policy.criteria import criterion_place
from planner.text.display import did_you_mean, listed
from planner.text.glob_patterns import allowed, is_glob, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog import PytestInvocation
    from planner.lint.facts import LintFacts, Loc
    from planner.model.plan import Todo
    from planner.policy.criteria import Criterion


LONGEST_SECONDS = 3600.0
"""Longest reasonable time limit of one command."""
SHORTEST_SECONDS = 1.0
"""Shortest reasonable time limit of a pytest command; pytest needs about that long to start."""
MOST_RETRIES = 10
"""Maximum reasonable number of retries by the same role."""
TEMPLATE_KEY = "x-template"
"""Key under which a plan names the template from which it was created."""

_WORD = re.compile(r"[a-z0-9]+")


def check(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield all findings: about the plan, about todos, about criteria, about size."""
    yield from _globs(facts)
    yield from _template(facts)
    yield from _routing(facts)
    # The planner inserts temporary todos before branches, and before other such steps.
    steps = {each for todo in facts.plan.items if is_branch(todo) for each in todo.dependencies}
    for todo in facts.plan.items:
        if todo.parent_id is not None:
            yield from _branch(facts, todo, todo.parent_id)
        elif todo.is_temporary and todo.id not in steps:
            message = f"'{todo.id}' is temporary, but repairs no todo, and no branch depends on it"
            fix = "name the todo that it repairs as parent_id, or remove is_temporary"
            yield facts.finding("branch-invalid", todo, ("is_temporary",), message, fix)
        yield from _limits(facts, todo)
        if not is_branch(todo):
            yield from _references(facts, todo)
        yield from _permissions(facts, todo)
        if not is_branch(todo) and not facts.is_sub_plan:
            yield from _missing_modules(facts, todo)
    yield from _criteria(facts)
    yield from _unrecorded(facts)
    yield from _size(facts)


# -- the plan as a whole -------------------------------------------------------------------------------


def _globs(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield globs of ``protected_files`` that protect no file."""
    # Only of these: a glob of ``allowed_files`` may match no file yet, as the work can still make it.
    for index, pattern in enumerate(facts.plan.metadata.protected_files):
        if not facts.project.glob_holds(pattern.removeprefix("!")):
            message = f"'{pattern}' of protected_files matches no file"
            loc = ("metadata", "protected_files", index)
            yield LintFinding("protected-nothing", loc, None, message)


def _template(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield steps of the plan's template for which there is no todo, or one in the wrong place.

    The todos of a step have to come after those of the step before in the plan, and to depend on them.
    """
    if TEMPLATE_KEY not in facts.plan.extensions:
        return
    # Below an extension key there may be any value.
    name, templates = str(facts.plan.extensions[TEMPLATE_KEY])[:100], load_table("templates")
    if name not in templates:
        fix = did_you_mean(name, templates, f"write one of {', '.join(templates)}")
        yield LintFinding("template-mismatch", (TEMPLATE_KEY,), None, f"unknown template '{name}'", fix)
        return
    steps: list[dict[str, str]] = templates[name]["steps"]
    before: list[Todo] = []
    for step in steps:
        found = [each for each in facts.primaries if _step_of(each, steps) is step]
        last = before[-1].id if before else ""
        if not found:
            message = f"the template {name} has the step '{step['name']}', the plan has no such todo"
            fix = f"add a todo '{step['title']}' ({step['role']}, verified by '{step['criterion']}')"
            yield LintFinding("template-mismatch", (TEMPLATE_KEY,), None, message, fix)
            continue
        for todo in found if before else ():
            waits = any(facts.waits_for(todo.id, each.id) for each in before)
            if facts.at[todo.id] < facts.at[before[0].id] or not waits:
                message = f"'{todo.id}' ({step['name']}) does not follow and depend on '{last}'"
                fix = f"move '{todo.id}' behind '{last}', and add that to its dependencies"
                yield facts.finding("template-mismatch", todo, (), message, fix)
        before = found


def _step_of(todo: Todo, steps: list[dict[str, str]]) -> dict[str, str] | None:
    """Return the step to which a todo belongs by its title and id; ``None`` if none or several match."""
    words = _WORD.findall(f"{todo.title} {todo.id.replace('_', ' ')}".lower())
    hits = [sum(word.startswith(tuple(step["words"].split())) for word in words) for step in steps]
    return steps[hits.index(max(hits))] if max(hits) and hits.count(max(hits)) == 1 else None


def _routing(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield a finding if most todos with tests state ``failure_routing`` and some do not."""
    tested = [todo for todo in facts.primaries if not todo.has_sub_plan and facts.has_command(todo)]
    without = [todo for todo in tested if not todo.failure_routing]
    # A plan that states it for few todos or none relies on the default roles, which is fine.
    if without and len(without) * 2 <= len(tested):
        shown = listed([f"'{todo.id}'" for todo in without])
        message = (
            f"{len(tested) - len(without)} of {len(tested)} todos have failure_routing; without: {shown}"
        )
        # The finding is about the plan; the first of the todos gives it a place in the file.
        yield facts.finding("routing-missing", without[0], (), message)._replace(todo_id=None)


# -- one todo ------------------------------------------------------------------------------------------


def _branch(facts: LintFacts, todo: Todo, parent_id: str) -> Iterator[LintFinding]:
    """Yield defects of a branch: its parent, its predecessor (``via``), its dependencies and its depth."""
    parent, via = facts.by_id.get(parent_id), facts.by_id.get(todo.via or "")
    depth, most = todo.branch_depth or 0, facts.plan.metadata.max_branch_depth
    faults: list[tuple[str, str]] = []
    if parent is None:
        faults.append(("parent_id", f"there is no todo '{parent_id}' that '{todo.id}' could repair"))
    elif parent.parent_id is not None:
        problem = f"'{parent_id}' is itself a branch: name its primary todo, and it as via"
        faults.append(("parent_id", problem))
    if "is_temporary" in todo.model_fields_set and not todo.is_temporary:
        faults.append(("is_temporary", f"'{todo.id}' is a branch, which is temporary"))
    if facts.waits_for(todo.id, parent_id):
        faults.append(("dependencies", f"'{todo.id}' repairs '{parent_id}' but waits for it"))
    if todo.via is not None and (via is None or via.parent_id != parent_id):
        faults.append(("via", f"'{todo.via}' is not a branch of '{parent_id}'"))
    if depth > most:
        faults.append(("branch_depth", f"'{todo.id}' is {depth} deep, but max_branch_depth is {most}"))
    for key, message in faults:
        yield facts.finding("branch-invalid", todo, (key,), message)


def _limits(facts: LintFacts, todo: Todo) -> Iterator[LintFinding]:
    """Yield time limits and numbers of retries that are unreasonable or contradict each other."""
    total = 0.0
    for criterion in facts.criteria_of(todo):
        spec = criterion.spec
        if not isinstance(spec, CommandSpec):
            continue
        seconds = spec.timeout_seconds
        total += seconds
        problem = None
        if seconds > LONGEST_SECONDS:
            problem = f"may take {seconds:g} s"
        elif seconds < SHORTEST_SECONDS and pytest_of(criterion) is not None:
            problem = f"has {seconds:g} s, less than pytest needs to start"
        elif todo.timeout_seconds is not None and seconds > todo.timeout_seconds:
            whole = f"a whole turn of work on '{todo.id}' only {todo.timeout_seconds:g} s"
            problem = f"may take {seconds:g} s, {whole}"
        # The default limit is no statement of the plan.
        if problem is not None and "timeout_seconds" in spec.model_fields_set:
            loc = (*criterion_place(criterion.id)[:-1], "timeout_seconds")
            message = f"{criterion.id} of '{todo.id}' {problem}"
            yield facts.finding("timeout-unreasonable", todo, loc, message)
    most = facts.plan.metadata.max_todo_seconds
    for key, what, seconds in (
        ("timeout_seconds", "one turn of work on", todo.timeout_seconds or 0.0),
        ("acceptance_criteria", "the criteria of", total),
    ):
        if most is not None and seconds > most:
            message = (
                f"{what} '{todo.id}' may take {seconds:g} s, the plan allows a todo "
                f"{most:g} s (max_todo_seconds)"
            )
            yield facts.finding("todo-seconds-exceeded", todo, (key,), message)
    named = "max_retries" in todo.model_fields_set and not is_branch(todo) and not todo.has_sub_plan
    if named and not 0 < todo.max_retries <= MOST_RETRIES:
        message = (
            f"'{todo.id}' may be retried {todo.max_retries} times before a branch is made"
            if todo.max_retries
            else f"'{todo.id}' has no retries, so its first failure makes a branch"
        )
        yield facts.finding("retries-unreasonable", todo, ("max_retries",), message)


# -- files ---------------------------------------------------------------------------------------------


def _references(facts: LintFacts, todo: Todo) -> Iterator[LintFinding]:
    """Yield contracts, fixtures and schemas that are missing, and are not created in time."""
    named: dict[tuple[str, str], Loc] = {}
    if todo.contract_path is not None:
        named["contract", plain(todo.contract_path)] = ("contract_path",)
    for criterion in facts.criteria_of(todo):
        loc = criterion_place(criterion.id)[:-1]
        for noun, name in (("fixture", "fixture"), ("schema", "json_schema")):
            path = getattr(criterion.spec, name, None)
            if path is not None:
                named.setdefault((noun, plain(path)), (*loc, name))
    for (noun, path), loc in named.items():
        if facts.project.kind(path) is not PathKind.FILE and not facts.is_made(todo, path):
            owner = "an architect's todo" if noun == "contract" else f"'{todo.id}' or of a todo"
            fix = f"add the file, or list {path} among the expected_artifacts of {owner} before it"
            message = f"the {noun} {path} does not exist, and no todo is to make it"
            yield facts.absent(f"{noun}-missing", todo, loc, path, message, fix)


def _permissions(facts: LintFacts, todo: Todo) -> Iterator[LintFinding]:
    """Yield files that a todo has to create or change but may not, and judges that it may change.

    Files of the first kind are protected, or outside of its ``allowed_files``.
    """
    protected = facts.plan.metadata.protected_files
    patterns = todo.allowed_files
    if not protected and patterns is None:
        return
    for loc, noun, path in _required_files(facts, todo):
        others = [each for each in facts.makers_of(path) if each != todo.id]
        # A todo before this one makes the file, and has to be allowed to.
        if noun != "target_file" and any(facts.waits_for(todo.id, each) for each in others):
            continue
        guard = next((each for each in protected if allowed(path, (each,))), None)
        # An artifact that exists need not be written, so its protection does no harm.
        if guard is not None and (noun == "target_file" or not facts.project.glob_holds(path)):
            message = f"the {noun} {path} is protected by '{guard}'"
            yield facts.finding("outside-allowed-files", todo, loc, message)
        # A glob counts as allowed if a pattern matches its text, as a star matches a star.
        if patterns is not None and not allowed(path, patterns):
            message = (
                f"the {noun} {path} is not among the allowed_files of '{todo.id}': "
                f"{listed(patterns) or 'it may change nothing'}"
            )
            fix = f"add \"{path}\" to the allowed_files of '{todo.id}', or let another todo make {path}"
            yield facts.finding("outside-allowed-files", todo, loc, message, fix)
    # To write tests is the work of a tester.
    if patterns is not None and todo.agent_role is not Role.TESTER and not todo.has_sub_plan:
        yield from _changeable_judges(facts, todo, patterns)


def _required_files(facts: LintFacts, todo: Todo) -> Iterator[tuple[Loc, str, str]]:
    """Yield the files that the work has to create or change: location in the plan, noun, and path."""
    for position, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        path = plain(artifact.path)
        # The failure report that a branch names is written by the verifier, not by whoever works on it.
        if not (is_branch(todo) and path.startswith("diagnostics/")):
            loc = ("acceptance_criteria", "expected_artifacts", position, "path")
            yield loc, "expected artifact", path
    task = todo.controller_task_spec
    if task is not None and task.target_file is not None:
        loc = ("controller_task_spec", "target_file")
        yield loc, "target_file", plain(task.target_file)
    if todo.contract_path is not None and todo.agent_role is Role.ARCHITECT:
        path = plain(todo.contract_path)
        # A contract that exists may stay as it is.
        if facts.project.kind(path) is PathKind.MISSING and facts.makers_of(path) == [todo.id]:
            yield ("contract_path",), "contract", path


def _missing_modules(facts: LintFacts, todo: Todo) -> Iterator[LintFinding]:
    """Yield modules of the project that the tests of a todo import, and that nobody may write by then."""
    before = [each for each in facts.plan.items if each is todo or facts.waits_for(todo.id, each.id)]
    for criterion in facts.criteria_of(todo):
        command = pytest_of(criterion)
        for name, place in facts.imports(facts.selected_by(command)).items() if command else ():
            path = facts.missing_module(name)
            if (
                path is None
                or facts.makers_of(path)
                or any(_may_write(facts, each, path) for each in before)
            ):
                continue
            message = f"{place} imports {name}, but {path} does not exist, and '{todo.id}' may not write it"
            fix = f"correct the import, or add \"{path}\" to the allowed_files of '{todo.id}'"
            loc = criterion_place(criterion.id)
            yield facts.finding("module-missing", todo, loc, message, fix)


def _may_write(facts: LintFacts, todo: Todo, path: str) -> bool:
    """Return whether a todo may write a missing module, as a file or as a package."""
    package = f"{path.removesuffix('.py')}/__init__.py"
    return todo.has_sub_plan or any(
        (todo.allowed_files is None or allowed(each, todo.allowed_files))
        and not allowed(each, facts.plan.metadata.protected_files)
        for each in (path, package)
    )


def _changeable_judges(facts: LintFacts, todo: Todo, patterns: tuple[str, ...]) -> Iterator[LintFinding]:
    """Yield a finding if a todo may change files that judge it, and that it does not create itself."""
    # A dict keeps the order of the criteria, so the finding names the same files each time.
    judges: dict[str, None] = {}
    for criterion in facts.criteria_of(todo):
        spec = criterion.spec
        if isinstance(spec, CommandSpec) and spec.fixture is not None:
            judges[plain(spec.fixture)] = None
        if (command := pytest_of(criterion)) is not None:
            selected = facts.selected_by(command)
            # Bounded, as a command may select all Python files of a project, and each is matched with
            # each pattern.
            paths = [path for path, _ in selected.files[:1_000]]
            judges.update(dict.fromkeys((*paths, *selected.missing)))
    own = set(made_by(todo))
    granted = [path for path in judges if path not in own and allowed(path, patterns)]
    if granted:
        at = next(at for at, each in enumerate(patterns) if allowed(granted[0], (each,)))
        message = f"'{patterns[at]}' allows '{todo.id}' to change its own tests: {listed(granted, 3)}"
        fix = (
            f'add "!{granted[0]}" to them, or list the file among its expected_artifacts if writing it is '
            "the work"
        )
        yield facts.finding("judge-in-reach", todo, ("allowed_files", at), message, fix)


# -- criteria and their tests --------------------------------------------------------------------------


_OPTIONS = {
    option: (row["rule"], row["what"])
    for row in load_table("pytest_options")["doubtful"]
    for option in row["options"].split()
}
"""Options of pytest with which a pass proves nothing or is not repeatable; rule and phrase by option."""

_IMPURE = {
    "chance": ("unseeded-random", "draws unseeded random values", "seed it"),
    "clock": ("wall-clock", "reads the wall clock", "pass the time in, or freeze it"),
    "network": ("network-access", "opens a network connection", "replace it by recorded answers"),
}
"""Rule, phrase and remedy by the kind of an impure call."""


def _criteria(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield findings about the criteria of all todos but branches, which borrow their criteria."""
    for todo in facts.primaries:
        if not facts.has_command(todo) and todo.requires_testing and not todo.has_sub_plan:
            place = ("acceptance_criteria",) if todo.acceptance_criteria else ()
            yield facts.finding("no-test", todo, place, f"'{todo.id}' has no test")
        yield from _metrics(facts, todo)
        for criterion in facts.criteria_of(todo):
            if (command := pytest_of(criterion)) is not None:
                yield from _missing(facts, todo, criterion.id, command)
                yield from _unrepeatable(facts, todo, criterion, command)


def _missing(
    facts: LintFacts, todo: Todo, criterion_id: str, command: PytestInvocation
) -> Iterator[LintFinding]:
    """Yield selected files that are missing, unless an open todo may still write its own."""
    loc = criterion_place(criterion_id)
    for path in dict.fromkeys(facts.selected_by(command).missing):
        if facts.is_made(todo, path):
            continue
        if criterion_id == "convention":
            name = todo.id.replace("-", "_")
            message = (
                f"'{todo.id}' names no criteria, and no test was found; searched for "
                f"tests/test_{name}.py, the target test-{todo.id} of a Makefile, {name}_test.py and "
                f"test_{name}.py in any folder"
            )
            fix = f"write {path}, which is assumed, or name the test to run: test_file: PATH"
            yield facts.finding("test-assumed", todo, loc, message, fix)
            continue
        is_allowed = todo.allowed_files is None or allowed(path, todo.allowed_files)
        is_open = todo.status is TodoStatus.OPEN and is_allowed and not facts.makers_of(path)
        # A similar name shows a misspelling.
        if not is_open or facts.project.near(path) is not None:
            message = f"{path} does not exist, and no todo is to write it"
            fix = f"add {path} to the expected_artifacts of '{todo.id}' or of a todo before it"
            yield facts.absent("test-missing", todo, loc, path, message, fix)


def _unrepeatable(
    facts: LintFacts, todo: Todo, criterion: Criterion, command: PytestInvocation
) -> Iterator[LintFinding]:
    """Yield findings about options and calls by which a pass proves nothing or is not repeatable."""
    loc = criterion_place(criterion.id)
    for word in command.args:
        name = word.partition("=")[0]
        if name in _OPTIONS:
            rule, what = _OPTIONS[name]
            yield facts.finding(rule, todo, loc, f"{name} {what}", f"remove {name}")
    spec = criterion.spec
    # The data, or a seed in the command, may be what makes the calls repeatable.
    if not isinstance(spec, CommandSpec) or spec.fixture is not None or "seed" in spec.cmd.lower():
        return
    for kind, places in facts.impure_calls(facts.selected_by(command)).items():
        rule, what, instead = _IMPURE[kind]
        message = f"the selected test code {what}: {listed(places, 3)}"
        fix = f"{instead}, or name the data: fixture: fixtures/{todo.id}_cases.json"
        yield facts.finding(rule, todo, loc, message, fix)


# -- metrics -------------------------------------------------------------------------------------------


def _metrics(facts: LintFacts, todo: Todo) -> Iterator[LintFinding]:
    """Yield a finding for each metric with two bounds that contradict each other."""
    by_name: dict[str, list[tuple[str, MetricSpec]]] = {}
    for each in facts.criteria_of(todo):
        if isinstance(each.spec, MetricSpec):
            by_name.setdefault(each.spec.name, []).append((each.id, each.spec))
    for found in by_name.values():
        # Bounded, as a metric may have any number of bounds, and each is compared with each.
        for (_, one), (place, other) in combinations(found[:200], 2):
            if not satisfiable(one, other):
                bounds = " and ".join(
                    f"{each.name} {each.operator} {each.value:g}" for each in (one, other)
                )
                message = f"no number satisfies {bounds}"
                yield facts.finding("metric-unsatisfiable", todo, criterion_place(place), message)
                break


def _unrecorded(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield metrics whose name occurs in no source, if the tests of their todo have been written."""
    wanted = [
        (todo, criterion.spec.name, (*criterion_place(criterion.id), "name"))
        for todo in facts.primaries
        for criterion in facts.criteria_of(todo)
        if isinstance(criterion.spec, MetricSpec) and _has_written_tests(facts, todo)
    ]
    # Names may also be those of data.
    fixtures = [
        plain(fixture)
        for todo in {todo.id: todo for todo, _, _ in wanted}.values()
        for criterion in facts.criteria_of(todo)
        if (fixture := getattr(criterion.spec, "fixture", None)) is not None
    ]
    names = {name for _, name, _ in wanted}
    for path in (*fixtures, *facts.project.files(".")) if names else ():
        text = (facts.project.text(path) or "") if names else ""
        names = {name for name in names if name not in text}
    for todo, name, loc in wanted:
        if name in names:
            message = f"no test of '{todo.id}' records the metric '{name}': no Python file has that name"
            yield facts.finding("metric-unrecorded", todo, loc, message)


def _has_written_tests(facts: LintFacts, todo: Todo) -> bool:
    """Return whether all commands of a todo are tests that exist; what others record is not known."""
    commands = [each for each in facts.criteria_of(todo) if each.command is not None]
    selected = [facts.selected_by(found) for each in commands if (found := pytest_of(each)) is not None]
    return len(selected) == len(commands) and all(
        each.files and not each.missing and not any(facts.makers_of(path) for path, _ in each.files)
        for each in selected
    )


def satisfiable(one: MetricSpec, other: MetricSpec) -> bool:
    """Return whether one number satisfies both comparisons."""
    # Either bound, a number between them, and one beyond either end, which is infinite, as a large number
    # plus one is the same number.
    candidates = (one.value, other.value, (one.value + other.value) / 2, -math.inf, math.inf)
    return any(
        one.operator.holds(each, one.value) and other.operator.holds(each, other.value)
        for each in candidates
    )


# -- size ----------------------------------------------------------------------------------------------


MOST_CRITERIA = 8
"""Recommended maximum number of criteria of a todo."""
MANY_TODOS = 15
"""Recommended maximum number of todos on one level; more are hard to follow."""
FEW_TODOS = 6
"""Minimum number of todos of a plan that should be divided, whatever it is about."""
MANY_DOMAINS = 3
"""Number of domains, of two todos each, from which on phases are suggested."""

_SIDE_FOLDERS = (
    ". .. tests test fixtures fixture contracts contract docs doc data out output build src lib "
    "diagnostics schemas reports artifacts"
)
"""Names of folders that do not indicate a domain of the product."""

_PHASE = re.compile(r"\s*(phase|stage|milestone|part|sprint)\s+(\d{1,3}|[ivx]{1,5})\b", re.IGNORECASE)


def _size(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield findings about todos and plans that are too large."""
    for todo in facts.primaries:
        criteria = facts.criteria_of(todo)
        if len(criteria) > MOST_CRITERIA:
            message = f"'{todo.id}' has {len(criteria)} criteria, more than {MOST_CRITERIA}"
            yield facts.finding("todo-too-large", todo, (), message)
    reasons = reasons_for_phases([todo for todo in facts.primaries if not todo.has_sub_plan])
    if reasons:
        yield LintFinding("hierarchy-suggested", ("items",), None, "; ".join(reasons))


def reasons_for_phases(todos: list[Todo]) -> list[str]:
    """Return why a flat plan should be divided into phases; empty if it may stay flat.

    That is its size, phases in its titles such as ``Phase 2: Buffer Management``, or several domains.
    """
    if len(todos) < FEW_TODOS:
        return []
    reasons: list[str] = []
    if len(todos) > MANY_TODOS:
        reasons.append(f"{len(todos)} todos are on one level, more than {MANY_TODOS}")
    phases = dict.fromkeys(found[0].strip() for todo in todos if (found := _PHASE.match(todo.title)))
    if len(phases) > 1:
        reasons.append(f"the titles name {len(phases)} phases: {listed(phases)}")
    domains = [name for name, count in Counter(map(_domain, todos)).items() if name and count > 1]
    if len(domains) >= MANY_DOMAINS:
        reasons.append(f"the todos span {len(domains)} domains: {listed(domains)}")
    return reasons


def _domain(todo: Todo) -> str:
    """Return the first folder of the product among the files that a todo names, or an empty string."""
    paths = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    paths += [pattern for pattern in todo.allowed_files or () if not pattern.startswith("!")]
    folders = (part for path in paths for part in path.split("/")[:-1])
    return next((each for each in folders if each not in _SIDE_FOLDERS.split() and not is_glob(each)), "")
