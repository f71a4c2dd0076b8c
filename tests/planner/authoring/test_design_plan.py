"""The design plan: schema, references, changes, rendered page, and immutability once frozen."""

from __future__ import annotations

import copy
import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from design_samples import CONTEXT, CONTEXT_KEYS, begin, begin_complete, complete
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from planner_command import Command
from pydantic import ValidationError

from planner.authoring.design.parts import KINDS, add_part, blank_of, fields_of
from planner.authoring.design.plan import DesignPlan, Milestone
from planner.authoring.design.state_folder import StateFolder, render
from planner.errors import DesignError
from planner.planfile.locks import locked_folder

FIELDS = {
    "decision": "decision reasoning_chain timestamp",
    "alternative": "alternative rejection_reason decision_ref",
    "constraint": "type description source",
    "risk": "risk mitigation anchor decision_ref",
    "milestone": "number name files flags requirements acceptance_criteria "
    "tests.files tests.type tests.backing tests.scenarios.normal tests.scenarios.edge "
    "tests.scenarios.error tests.skip_reason documentation.module_comment documentation.docstrings "
    "documentation.algorithm_blocks documentation.inline_comments is_documentation_only delegated_to",
    "intent": "file function behavior decision_refs params",
    "change": "intent_ref file diff context_lines why_comments",
    "wave": "wave milestones",
    "item": "scope check severity status finding",
}
SINGLE = {
    "overview": "title problem approach",
    "invisible_knowledge": "architecture.diagram_ascii architecture.description data_flow.diagram_ascii "
    "data_flow.description structure_rationale invariants tradeoffs",
    "milestone_dependencies": "diagram_ascii",
}
"""The fields that can be assigned of each kind of part, and of the parts that every plan has once."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the data of a complete plan with at least one part of each kind."""
    data = begin(tmp_path_factory.mktemp("state")).plan().model_dump(mode="json")
    complete(data)
    words = ["alternative=bank", "rejection_reason=not the law", "decision_ref=DL-001"]
    add_part(data, "alternative", words)
    add_part(data, "constraint", ["type=MUST", "description=half up", "source=the user"])
    add_part(data, "risk", ["risk=floats", "mitigation=decimals", "anchor=shop/cart.py:total"])
    return data


@pytest.fixture
def made(whole: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(whole)


def test_each_part_has_the_fields_of_the_schema(made: dict[str, Any]) -> None:
    assert {name: " ".join(fields_of(blank_of(kind.model))) for name, kind in KINDS.items()} == FIELDS
    assert {name: " ".join(fields_of(made[name])) for name in SINGLE} == SINGLE


def test_an_id_has_the_prefix_of_its_kind_and_three_or_more_digits(made: dict[str, Any]) -> None:
    plan = DesignPlan.model_validate(made)
    text = plan.model_dump_json()
    prefixes = {each.id.partition("-")[0] for each in plan.parts()}
    assert prefixes == {kind.prefix for kind in KINDS.values()} - {"W", "qa"}
    for prefix in prefixes:
        for wrong in ("X-001", f"{prefix}-01", f"{prefix}-abc"):
            with pytest.raises(ValidationError, match=f"an id of this kind is {prefix}- and three"):
                DesignPlan.model_validate_json(text.replace(f'"id":"{prefix}-001"', f'"id":"{wrong}"'))


@pytest.mark.parametrize(
    "file", ["/etc/passwd", "../a.py", "a/../../b.py", "a\\b.py", "", "a\nb", ".", "a//b"]
)
def test_a_file_outside_the_project_is_invalid(file: str) -> None:
    with pytest.raises(ValidationError):
        Milestone.model_validate({"id": "M-001", "number": 1, "name": "a", "files": [file]})


def test_a_file_may_have_any_name() -> None:
    files = ["a.py", ".github/a.yml", "..a/b", "a b/c..d", "ä.py"]
    assert Milestone.model_validate({"id": "M-001", "number": 1, "name": "a", "files": files})


def test_every_broken_reference_and_duplicate_is_reported_with_its_place(made: dict[str, Any]) -> None:
    first, second = made["milestones"]
    made["planning_context"]["rejected_alternatives"][0]["decision_ref"] = "DL-101"
    made["planning_context"]["known_risks"][0]["decision_ref"] = "DL-102"
    first["code_intents"][0]["decision_refs"] = ["DL-103", "DL-104"]
    first["code_changes"][0] |= {"intent_ref": "CI-002", "why_comments": ["see\nDL-105"]}
    first["documentation"]["docstrings"] = ["DL-106"]
    second["number"] = 1
    second["code_intents"][0]["id"] = "CI-001"
    made["milestone_dependencies"]["waves"][0] |= {"milestones": ["M-107", "M-002"], "wave": 2}

    with pytest.raises(ValidationError) as refused:
        DesignPlan.model_validate(made)

    for violation in (
        "RA-001: the decision DL-101 does not exist",
        "R-001: the decision DL-102",
        "CI-001: the decision DL-103",
        "CI-001: the decision DL-104",
        "CC-001: M-001 has no code intent CI-002",
        "CC-001: the decision DL-105",
        "M-001: the decision DL-106",
        "W-2: the milestone M-107",
        "the milestone number 1 occurs 2 times",
        "CI-001 occurs 2 times",
        "W-2 occurs 2 times",
        "M-002 in the waves occurs 2 times",
    ):
        assert violation in str(refused.value)


def test_a_referenced_part_cannot_be_removed(planner: Command, folder: StateFolder) -> None:
    done = planner("design", "remove", "DL-001")
    assert (done.status, "the change is refused: 4 violations" in done.err) == (4, True)
    assert folder.plan().planning_context.decision_log


@pytest.mark.parametrize(
    ("kind", "words", "field"),
    [
        ("decision", "decision=a", "decision"),
        ("alternative", "alternative=a rejection_reason=b decision_ref=DL-001", "alternative"),
        ("constraint", "type=MUST description=a", "description"),
        ("risk", "risk=a mitigation=b", "risk"),
        ("milestone", "name=a", "name"),
        ("intent", "file=a.py behavior=b --to M-001", "file"),
        ("change", "intent_ref=CI-001 file=a.py diff=@@-1+1@@ --to M-001", "file"),
        ("wave", "milestones=", "wave"),
    ],
)
def test_every_kind_of_part_can_be_added_set_shown_and_removed(
    kind: str, words: str, field: str, planner: Command, folder: StateFolder
) -> None:
    name = planner("design", "add", kind, *words.split()).out.strip()
    assert name.startswith(KINDS[kind].prefix + "-")
    changed = planner("design", "set", name, f"{field}=7")
    renamed = "W-7" if kind == "wave" else name
    assert changed.status == 0, changed.err
    assert str(planner("design", "show", renamed).json[field]) == "7"
    assert planner("design", "remove", renamed).status == 0
    assert planner("design", "show", renamed).status == 4


@pytest.mark.parametrize(
    ("part", "words", "field", "value"),
    [
        ("M-001", ["files=a.py", "files=b.py"], "files", ["a.py", "b.py"]),
        ("M-001", ["files+=a.py"], "files", ["shop/cart.py", "a.py"]),
        ("M-001", ["delegated_to="], "delegated_to", None),
        ("M-001", ["number=7"], "number", 7),
        ("M-001", ["is_documentation_only=true"], "is_documentation_only", True),
        ("M-001", ["tests.scenarios.error=none"], "tests.scenarios.error", ["none"]),
        ("CI-001", ["params.window=14", "params.mode=fast"], "params", {"window": "14", "mode": "fast"}),
        ("milestone_dependencies", ["diagram_ascii=a"], "diagram_ascii", "a"),
        ("invisible_knowledge", ["architecture.description=a"], "architecture.description", "a"),
        ("CI-001", ["function=\udcff"], "function", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_assigned_words_are_converted_to_the_type_of_the_field(
    part: str, words: list[str], field: str, value: object, planner: Command, folder: StateFolder
) -> None:
    done = planner("design", "set", part, *words)
    shown = planner("design", "show", part).json
    for key in field.split("."):
        shown = shown[key]
    assert (done.err, shown) == ("", value)


def test_texts_can_be_read_from_files(planner: Command, folder: StateFolder) -> None:
    (planner.folder / "a.diff").write_text("@@ -1 +1 @@\n-a\n+b\n")
    (planner.folder / "latin").write_bytes(b"\xff")

    assert planner("design", "set", "CC-001", "diff=@a.diff").status == 0
    assert planner("design", "set", "CC-002", "diff=@@ -1 +1 @@").status == 0

    milestone, other = folder.plan().milestones
    assert milestone.code_changes[0].diff == "@@ -1 +1 @@\n-a\n+b\n"
    assert other.code_changes[0].diff == "@@ -1 +1 @@"
    for wrong in ("@none", "@.", "@/dev/zero", "@latin"):
        refused = planner("design", "set", "M-001", f"name={wrong}")
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        assert f"{wrong}: it cannot be read (" in refused.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("set M-001 nmae=a", 4, "'nmae=a': this assigns to no field; write FIELD=VALUE, with one of"),
        ("set M-001 id=M-002", 4, "this assigns to no field"),
        ("set M-001 name+=a", 4, "name is not a list"),
        ("set M-001 name=' '", 4, "M-001.name: "),
        ("set M-009 name=a", 4, "unknown part; the parts are: DL-001, M-001, M-002, W-1"),
        ("set M-001", 2, "name a field"),
        ("add mile", 2, "did you mean 'milestone'?"),
        ("add milestone", 2, "name its fields: number, name, files"),
        ("add milestone files=a", 4, "M-003.name: Field required"),
        ("add wave milestones=M-999", 4, "W-3: the milestone M-999 does not exist"),
        ("add intent file=a.py", 4, "it has no place in no milestone; only intents and changes need one"),
        ("add risk risk=a --to M-001", 4, "it has no place in M-001"),
        ("add item check=a --to plan", 2, "'plan' is not a phase"),
        ("remove overview", 4, "overview: every plan has it; set its fields instead"),
        ("add risk risk=a --state-dir none", 4, "none: No such file or directory"),
        ("gate plan-design pass", 4, "nothing was reviewed; add items: planner design add item --to"),
    ],
)
def test_a_wrong_command_is_refused_and_changes_nothing(
    words: str, status: int, message: str, planner: Command, folder: StateFolder
) -> None:
    before = folder.plan_file.read_bytes()
    done = planner("design", *shlex.split(words))
    assert (done.status, done.err.count("\n")) == (status, 1)
    assert message in done.err
    assert folder.plan_file.read_bytes() == before


def test_a_new_part_gets_the_next_free_number(made: dict[str, Any]) -> None:
    assert add_part(made, "decision", ["decision=a"]) == "DL-002"
    made["planning_context"]["decision_log"][1]["id"] = "DL-1007"
    assert add_part(made, "decision", ["decision=a"]) == "DL-1008"
    made["milestones"][0]["number"] = 9
    assert add_part(made, "milestone", ["name=a"]) == "M-010"
    assert DesignPlan.model_validate(made).milestones[2].number == 10


def test_init_creates_a_temporary_folder_and_shows_the_next_step(
    planner: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANNER_STATE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(planner.folder))

    done = planner("design", "init", "title=Round prices")

    (path,) = planner.folder.glob("design-*")
    assert done.out == (
        f"wrote {path}/plan.json\nnext: planner workflow plan --step 2 --state-dir {path}\n"
    )
    assert StateFolder(path).plan().overview.title == "Round prices"
    for wrong in (["title=b", "--state-dir", str(path)], ["titel=b"], ["title="], []):
        refused = planner("design", "init", *wrong)
        assert (refused.status, refused.err.count("\n")) == (4, 1)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("plan.json", None, "it cannot be read (No such file"),
        ("plan.json", "[" * 100_000, "it is not valid JSON"),
        ("context.json", None, "write it with the keys that planner workflow plan --step 2 shows"),
        ("gates.json", '{"schema_version": 9}', "schema_version: Input should be 1; restore it"),
        ("qr-plan-design.json", '{"schema_version": "2", "phase": "plan-design"}', "Input should be '1.0'"),
        ("qr-plan-design.json", '{"phase": "plan-code"}', "it is the review of plan-code; remove it"),
    ],
)
def test_an_unusable_file_is_reported_in_one_line_with_a_remedy(
    file: str, text: str | None, message: str, planner: Command
) -> None:
    path = begin_complete(planner.folder / "state").path / file
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    done = planner("design", "gate", "plan-design", "pass")
    assert (done.status, done.err.count("\n")) == (4, 1)
    assert message in done.err
    assert "; " in done.err


def test_every_fault_of_a_design_file_is_reported(planner: Command, folder: StateFolder) -> None:
    data = json.loads(folder.plan_file.read_text())
    data["milestones"][0] |= {"number": "one", "nmae": "a"}
    data["milestones"][1]["code_intents"][0]["file"] = 1
    folder.plan_file.write_text(json.dumps(data))
    shown = planner("design", "show").err
    for place in ("M-001.number: ", "M-001.nmae: ", "CI-002.file: "):
        assert place in shown


def test_every_context_key_must_be_a_list_of_texts(planner: Command) -> None:
    folder = begin(planner.folder / "state")
    for wrong in ({}, dict.fromkeys(CONTEXT_KEYS, "text")):
        folder.context_file.write_text(json.dumps(wrong))
        done = planner("design", "context")
        assert done.status == 4
        assert [key for key in CONTEXT_KEYS if f"{key}: " not in done.err] == []
    folder.context_file.write_text(json.dumps({**CONTEXT, "user_quotes": ["words"], "more": 1}))
    assert planner("design", "context").status == 0


def test_context_json_is_frozen_after_step_2(planner: Command, folder: StateFolder) -> None:
    folder.context_file.write_text(json.dumps({**CONTEXT, "user_quotes": ["later"]}))
    for words in ("design context", "workflow plan --step 3", "design gate plan-design"):
        done = planner(*words.split())
        assert done.status == 4
        assert "changed after it was frozen" in done.err


def test_concurrent_writers_lose_no_changes(tmp_path: Path) -> None:
    folder = begin(tmp_path)

    def add(_: int) -> None:
        with StateFolder(tmp_path).edit() as data:
            add_part(data, "decision", ["decision=a"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert [each.id[-1] for each in folder.plan().planning_context.decision_log] == list("12345678")


def test_plan_md_is_derived_and_reproducible_byte_for_byte(planner: Command, frozen: StateFolder) -> None:
    before = frozen.page_file.read_bytes()
    frozen.page_file.unlink()
    assert planner("design", "render").status == 0
    assert frozen.page_file.read_bytes() == before
    assert planner("design", "show").out.encode() == before


def test_plan_md_contains_every_text_of_the_plan(made: dict[str, Any]) -> None:
    kept = ("id", "_ref", "_refs", "_at", "_version", "_only", "number", "wave", "timestamp", "milestones")
    marks: list[str] = []

    def mark(held: Any, key: str = "") -> Any:
        if isinstance(held, dict):
            return {name: mark(inner, name) for name, inner in held.items()}
        if isinstance(held, list):
            return [mark(inner, key) for inner in held]
        if not isinstance(held, str) or key.endswith(kept):
            return held
        marks.append(f"mark{len(marks)}")
        return f"{marks[-1]} `x`" if key not in ("file", "files") else f"{marks[-1]}.py"

    page = render("plan.md", plan=DesignPlan.model_validate(mark(made)))
    assert len(marks) > 25
    assert [each for each in marks if each not in page] == []


def test_frozen_plan_json_is_immutable(planner: Command, frozen: StateFolder) -> None:
    before = frozen.plan_file.read_bytes()
    for words in ("add decision decision=a", "set M-001 name=b", "gate plan-docs fail", "init title=c"):
        assert planner("design", *words.split()).status == 4
    assert frozen.plan_file.read_bytes() == before
    assert frozen.plan().frozen_at is not None


def test_a_manual_change_after_the_freeze_is_detected(planner: Command, frozen: StateFolder) -> None:
    text = frozen.plan_file.read_text()

    @settings(deadline=None, max_examples=30)
    @given(where=st.integers(0, len(text) - 1), letter=st.characters(codec="ascii"))
    def is_detected(where: int, letter: str) -> None:
        assume(letter != text[where])
        frozen.plan_file.write_text(text[:where] + letter + text[where + 1 :])
        with pytest.raises(DesignError):
            frozen.plan()

    is_detected()
    frozen.plan_file.write_text(json.dumps({**json.loads(text), "frozen_at": None}))
    done = planner("design", "set", "M-001", "name=b")
    assert done.status == 4
    assert "it was changed after it was frozen; restore it from a copy" in done.err


def test_a_folder_that_another_process_keeps_locked_is_refused_in_one_line(
    planner: Command, folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.authoring.design.state_folder._WAIT_SECONDS", 0)
    before = folder.plan_file.read_bytes()
    with locked_folder(folder.path, 0):
        ran = planner("design", "set", "overview", "problem=Another", "--state-dir", folder.path)
    said = "another process has locked this folder for 0 s; end that process, then repeat"
    assert (ran.status, ran.err) == (4, f"planner: {folder.path}: {said}\n")
    assert folder.plan_file.read_bytes() == before
