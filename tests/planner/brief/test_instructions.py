"""Instructions and suggestions for repairs: none contradicts the existing files or the permissions."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from revision_samples import frame, raised, situation, todo

from planner.brief.instructions import (
    EditScope,
    Instruction,
    asks_for_work,
    fault_location,
    next_action,
    objection,
    read_instruction,
)
from planner.brief.page import write_brief
from planner.catalog.test_paths import is_test_path
from planner.model.edits import AddTodoBefore, NameArtifact, RaiseLimit
from planner.model.evidence import ArtifactFact, ChangedFile, Evidence, Hunk, Selector
from planner.model.outcome import Candidate, Failure, FailureContext, Location
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import EvidenceKind, Side
from planner.planfile.project_files import RootedFiles
from planner.planfile.source_excerpts import look_up
from planner.policy.branches import agent_at, role_for
from planner.revise.strategies import revise
from planner.text.glob_patterns import allowed
from pytest_planverify.diagnosis import diagnose

FIXTURES = Path(__file__).parents[3] / "fixtures"
CORPUS = FIXTURES.parent / "tools" / "corpus" / "recorded"
RERUN = "pytest --planverify plan.yaml"
PERMISSIONS = (None, ["src/**", "lib/**"], ["tests/**"])


def recorded() -> Iterator[Evidence]:
    """Yield the evidence of every failure in the corpora and fixtures."""
    for file in sorted(CORPUS.rglob("*.jsonl.gz")):
        for plain in map(json.loads, gzip.decompress(file.read_bytes()).splitlines()):
            for each in plain.get("failures", [plain]):
                if each.get("evidence"):
                    yield Evidence.model_validate(each["evidence"])
    for line in (FIXTURES / "evidence.jsonl").read_text(encoding="utf-8").splitlines():
        yield Evidence.model_validate(json.loads(line)["evidence"])


MAKES = re.compile(r"\b(?:Write|Make|Create|write) `?([\w./-]+\.\w+)`?")


def is_local(path: str) -> bool:
    return not path.startswith("/") and ".." not in path


def existing(fact: Evidence) -> set[str]:
    """Return the local paths that exist: executed, named in a frame or finding, or added to."""
    frames = {frame.path for raised in fact.exceptions for frame in raised.frames if frame.source}
    complained = {each.path for each in fact.command.findings if each.path} if fact.command else set()
    tests = {fact.nodeid.partition("::")[0]} if fact.nodeid else set[str]()
    ran = {each.path for each in (*fact.executed, *fact.subjects)}
    added = {hunk.path for hunk in fact.hunks if hunk.added}
    return {path for path in frames | complained | tests | ran | added if is_local(path)}


def failed(fact: Evidence) -> Failure:
    said = diagnose(fact)
    return Failure(
        category=said.category,
        owner=said.owner,
        repeatability=said.repeatability,
        confidence=said.confidence,
        rule=said.rule,
        because=said.because,
        check_id=fact.check_id or None,
        tests=(fact.nodeid,) if fact.nodeid else (),
        stack_trace_head=fact.headline,
        location=said.location,
        suggestion=said.suggestion,
        target_agent=said.target_agent or agent_at(said.category, said.owner, said.location),
    )


def check(fact: Evidence, failure: Failure, context: FailureContext, patterns: list[str] | None) -> None:
    """Check the brief and the edits for a failure; `patterns` are the allowed files, or None for all."""
    there = set(context.present)
    item = todo("t1", "pytest tests", **({"allowed_files": patterns} if patterns is not None else {}))
    case = situation(failure, item, observations=None, at_context=context)
    page = write_brief(
        case.plan,
        item,
        case.outcome,
        context,
        rerun=RERUN,
        worker=item.model_copy(update={"agent_role": role_for(failure, item)}),
    )
    for edit in revise(case):
        if isinstance(edit, NameArtifact):
            assert edit.task or edit.path not in there, (fact, edit)
            assert patterns is None or allowed(edit.path, patterns), (fact, edit)
        elif isinstance(edit, AddTodoBefore):
            made = edit.todo.acceptance_criteria.expected_artifacts
            assert there.isdisjoint(each.path for each in made), (fact, edit)
        elif isinstance(edit, RaiseLimit):
            own = [frame.side for each in fact.exceptions for frame in each.frames]
            own = [side for side in own if side in (Side.PRODUCT, Side.TEST)]
            assert not own or own[-1] is Side.TEST, (fact, edit)
    action = next(line for line in page.split("\n") if line.startswith("**Next**"))
    for path in MAKES.findall(action):
        assert path not in there, (fact, action)
        assert patterns is None or allowed(path, patterns), (fact, action)
    place = failure.location
    if re.search(r"\*\*Next\*\*: (?:Correct|Bring|Fix) ", action) and place and place.path in action:
        assert patterns is None or allowed(place.path, patterns), (fact, action)
        assert not is_test_path(place.path) or "a test so that it becomes weaker" in page, (fact, action)
    if role_for(failure, item) is Role.TESTER and failure.owner not in (Owner.PRODUCT, Owner.ENVIRONMENT):
        assert "a test so that it becomes weaker" in page, fact
    assert len(page) <= 800 * 4


def test_instructions_for_recorded_failures_respect_existing_files_and_permissions() -> None:
    count = 0
    # Every 12th one, as neighbours are variants of one fault: each is checked with one of the permissions.
    for count, fact in enumerate(islice(recorded(), 0, None, 12), 1):
        context = FailureContext(todo_id="t1", evidence=(fact,), present=tuple(existing(fact)))
        check(fact, failed(fact), context, PERMISSIONS[count % len(PERMISSIONS)])
    assert count > 200


def test_an_existing_file_is_never_to_be_made_nor_a_missing_one_edited() -> None:
    near = {"shop/slugifi.py": "shop/slugify.py"}
    tree = FailureContext(todo_id="t1", present=("a.py",), absent=("b.py",), near=near)
    free = EditScope(tests=True)
    assert objection(Instruction("Write a.py", makes=("a.py",)), free, tree) == "a.py exists"
    assert objection(Instruction("Correct b.py", changes=("b.py",)), free, tree) == "b.py does not exist"
    assert objection(Instruction("Write b.py", makes=("b.py",)), free, tree) is None
    misspelt = Instruction("Write it", makes=("shop/slugifi.py",))
    assert objection(misspelt, free, tree) == "shop/slugify.py was probably meant"
    of_test = Instruction("Correct tests/test_a.py", changes=("tests/test_a.py",))
    assert objection(of_test, EditScope(), tree)
    assert objection(Instruction("Look around"), EditScope(allowed=()), tree) is None


def test_the_files_of_a_suggestion_are_classified_by_its_verbs() -> None:
    told = read_instruction("slugify.slugifi is missing: write `slugify/slugifi.py`, then fix setup.cfg.")
    assert (told.makes, told.changes) == (("slugify/slugifi.py",), ("setup.cfg",))
    assert read_instruction("total (shop/cart.py:4) gave 0 where 3 is expected.")[1:] == ((), ())
    assert read_instruction("No todo may change shop/cart.py; do not edit shop/tax.py.")[1:] == ((), ())


def test_a_misspelt_module_is_reported_with_the_existing_name(tmp_path: Path) -> None:
    (tmp_path / "slugify").mkdir()
    (tmp_path / "slugify/slugify.py").write_text("")
    files = RootedFiles(tmp_path)
    near = {"slugify/slugifi.py": files.near("slugify/slugifi.py") or ""}
    assert near == {"slugify/slugifi.py": "slugify/slugify.py"}
    assert files.near("../slugify.py") is None
    assert files.near("nowhere/slugify.py") is None
    importing = frame("slugify/__init__.py", source="from .slugifi import *", module="slugify")
    lacking = raised("ModuleNotFoundError", "No module named 'slugify.slugifi'", importing)
    lacking = lacking.model_copy(update={"name": "slugify.slugifi"})
    fact = Evidence(
        kind=EvidenceKind.TEST, check_id="tests[0]", exceptions=(lacking,), first_party=("slugify",)
    )
    item = todo("t1", "pytest tests")
    for category in (Category.IMPORT_ERROR, Category.ARTIFACT_MISSING):
        seen = Failure(category=category, check_id="tests[0]", stack_trace_head=lacking.message)
        context = FailureContext(todo_id="t1", evidence=(fact,), absent=tuple(near), near=near)
        case = situation(seen, item, at_context=context)
        page = write_brief(case.plan, item, case.outcome, context, rerun=RERUN, worker=item)
        assert "did you mean `slugify/slugify.py`?" in page
        assert revise(case) == ()


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("total (shop/cart.py:4) gave 0 where test_total expects 3.", False),
        ("shop/cart.py:4 is not valid Python: SyntaxError: expected ':'.", False),
        ("bandit is not installed: install it, or correct PATH.", True),
        ("test_rate gave both answers. Look for time, randomness or threads in it.", True),
        ("Give the function a value.", True),
        ("total (shop/cart.py:3) raises NameError: name 'net' is not defined at `net`.", False),
        ("drop (shop/cart.py:3) returned 1 where test_drop expects 2.", False),
    ],
)
def test_statements_of_fact_are_distinguished_from_requests_for_work(said: str, asks: bool):
    assert asks_for_work(said) is asks


def test_a_change_of_a_test_is_not_shown_as_the_cause_of_a_product_fault() -> None:
    def change(path: str, side: Side) -> Candidate:
        hunk = Hunk(path=path, line=3, added=1, side=side, text="+import shop")
        return Candidate(path=path, line=3, score=0.5, hunk=hunk)

    lacks = Failure(
        category=Category.SPEC_MISMATCH,
        owner=Owner.PRODUCT,
        location=Location(path="shop/cart.py"),
        candidates=(change("tests/test_a.py", Side.TEST), change("shop/tax.py", Side.PRODUCT)),
    )
    item = todo("t1", "pytest tests")
    context = FailureContext(todo_id="t1")
    case = situation(lacks, item, at_context=context)
    page = write_brief(case.plan, item, case.outcome, context, rerun=RERUN, worker=item)
    assert "**Changed**: `shop/tax.py:3`" in page
    assert "**Where**: `shop/cart.py`\n" in page
    assert "**Next**: Change `shop/cart.py` to the interface" in page


@pytest.mark.parametrize(
    ("was_there", "action"),
    [(True, "Restore `GUIDE.md`"), (False, "Write `GUIDE.md` in full")],
    ids=["removed since the last commit", "never written"],
)
def test_an_artifact_is_only_to_be_restored_if_it_existed(was_there: bool, action: str) -> None:
    failure = Failure(category=Category.ARTIFACT_MISSING, location=Location(path="GUIDE.md"))
    artifact = ArtifactFact(path="GUIDE.md", problem="missing")
    changed = (ChangedFile(path="GUIDE.md"),) if was_there else ()
    fact = Evidence(kind=EvidenceKind.ARTIFACT, artifact=artifact, changed=changed)
    tree = FailureContext(todo_id="t1", absent=("GUIDE.md",))
    assert next_action(failure, fact, EditScope(), tree=tree).startswith(action)


def test_a_removed_module_is_to_be_restored_instead_of_importing_a_similar_one(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "taxes.py").write_text("TAX = 19\n")
    error = raised("ModuleNotFoundError", "No module named 'shop.tax'").model_copy(
        update={"name": "shop.tax"}
    )
    fact = Evidence(kind=EvidenceKind.COLLECTION, first_party=("shop",), exceptions=(error,))
    failure = Failure(category=Category.ARTIFACT_MISSING, owner=Owner.PRODUCT)

    def action(fact: Evidence) -> str:
        tree = look_up(RootedFiles(tmp_path), "t1", failure, (fact,))
        return next_action(failure, fact, EditScope(), tree=tree)

    assert action(fact).endswith("did you mean `shop/taxes.py`?")
    removed = fact.model_copy(update={"changed": (ChangedFile(path="shop/tax.py"),)})
    assert action(removed) == "Restore `shop/tax.py`, which was removed or renamed."


def test_nobody_is_told_to_find_the_loop_in_a_changed_function_outside_of_the_stack() -> None:
    at = Location(path="shop/cart.py", line=30, function="expand")
    for reasons, is_named in ((("changed",), False), (("changed", "traceback"), True)):
        candidate = changed("shop/cart.py", 0.5).model_copy(update={"reasons": reasons})
        failure = Failure(
            category=Category.TEST_TIMEOUT, owner=Owner.PRODUCT, location=at, candidates=(candidate,)
        )
        assert ("`expand`" in next_action(failure, None, EditScope())) == is_named


def test_an_option_that_pytest_does_not_know_is_reported_as_a_fault_of_the_plan() -> None:
    failure = Failure(category=Category.TEST_NOT_FOUND, owner=Owner.PLAN)
    unknown = Selector(text="--nope", problem="unknown_option")
    fact = Evidence(kind=EvidenceKind.SELECTION, selectors=(unknown,))
    said = "Report that the plan has to change: pytest does not know its option `--nope`."
    assert next_action(failure, fact, EditScope()) == said


@pytest.mark.parametrize(
    ("category", "kind", "why"),
    [
        (Category.TEST_NOT_FOUND, EvidenceKind.COMMAND, "the plan's command names 'The'."),
        (Category.TEST_NOT_FOUND, EvidenceKind.COMMAND, "mypy refuses it: The end."),
        (Category.TEST_TIMEOUT, EvidenceKind.TEST, "its time limit is too short."),
    ],
)
def test_whoever_may_not_edit_the_plan_reports_its_faults(
    category: Category, kind: EvidenceKind, why: str
) -> None:
    suggestion = re.sub("^the ", "The ", why)
    failure = Failure(category=category, owner=Owner.PLAN, suggestion=suggestion)
    action = next_action(failure, Evidence(kind=kind), EditScope())
    assert action == f"Report that the plan has to change: {why}"


def test_a_removed_file_is_to_be_restored_by_whoever_may_edit_it() -> None:
    at = Location(path="tests/data/rows.json")
    failure = Failure(category=Category.ARTIFACT_MISSING, owner=Owner.TEST, location=at)
    error = raised("FileNotFoundError").model_copy(update={"path": at.path})
    fact = Evidence(kind=EvidenceKind.TEST, exceptions=(error,))
    tree = FailureContext(todo_id="t1", absent=(at.path,))
    restore = "Write `tests/data/rows.json`, or restore it if it was removed."
    assert next_action(failure, fact, EditScope(tests=True), tree=tree) == restore
    assert next_action(failure, fact, EditScope(), tree=tree).startswith("Report that")


CART = Location(path="shop/cart.py", line=3, function="Cart")
TEST = Location(path="tests/test_tax.py", line=3)
CALLED = Candidate(path="shop/cart.py", line=30, function="expand", score=0.2)


def changed(path: str, score: float) -> Candidate:
    hunk = Hunk(path=path, line=30, side=Side.PRODUCT, text="-a\n+b")
    return Candidate(path=path, line=30, function="expand", score=score, hunk=hunk)


@pytest.mark.parametrize(
    ("category", "owner", "location", "candidates", "expected"),
    [
        (Category.SPEC_MISMATCH, Owner.PRODUCT, CART, [CALLED], CART),
        (
            Category.SPEC_MISMATCH,
            Owner.PRODUCT,
            Location(path="shop/cart.py"),
            [CALLED],
            Location(path="shop/cart.py", line=30, function="expand"),
        ),
        (
            Category.SPEC_MISMATCH,
            Owner.PRODUCT,
            Location(path="shop/cart.py"),
            [changed("shop/cart.py", 0.1)],
            Location(path="shop/cart.py"),
        ),
        (Category.METRIC_UNMET, Owner.TEST, None, [CALLED], None),
        (Category.HYGIENE_VIOLATION, Owner.PRODUCT, TEST, [changed("shop/tax.py", 0.6)], TEST),
    ],
    ids=["known place", "no line", "unrelated change", "test at fault", "violation"],
)
def test_the_location_is_the_likeliest_candidate_unless_the_diagnosis_knows_better(
    category: Category,
    owner: Owner,
    location: Location | None,
    candidates: list[Candidate],
    expected: Location | None,
) -> None:
    failure = Failure(category=category, owner=owner, location=location, candidates=tuple(candidates))
    assert fault_location(failure, None) == expected
