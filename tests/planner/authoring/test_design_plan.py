"""The design plan: schema, references, changes, rendered page, and immutability once frozen."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from design_samples import CONTEXT, CONTEXT_KEYS, NOW, add, begin, begin_complete, begin_frozen, complete
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_command import Command
from pydantic import ValidationError

from planner.authoring.design.plan import (
    KINDS,
    PARTS,
    DesignPlan,
    Milestone,
    Overview,
    add_part,
    change_part,
    fields_of,
    part_of,
    remove_part,
)
from planner.authoring.design.review import ReviewPhase, find_gaps
from planner.authoring.design.state_folder import StateFolder, render_page
from planner.errors import DesignError

FIELDS = {
    "decision": "decision reasoning_chain timestamp",
    "alternative": "alternative rejection_reason decision_ref",
    "constraint": "type description source",
    "risk": "risk mitigation anchor decision_ref",
    "milestone": "number name files[] flags[] requirements[] acceptance_criteria[] "
    "tests.files[] tests.type tests.backing tests.scenarios.normal[] tests.scenarios.edge[] "
    "tests.scenarios.error[] tests.skip_reason documentation.module_comment documentation.docstrings[] "
    "documentation.algorithm_blocks[] documentation.inline_comments[] is_documentation_only delegated_to",
    "intent": "file function behavior decision_refs[] params.KEY",
    "change": "intent_ref file diff context_lines[] why_comments[]",
    "wave": "wave milestones[]",
    "overview": "title problem approach",
    "invisible_knowledge": "architecture.diagram_ascii architecture.description data_flow.diagram_ascii "
    "data_flow.description structure_rationale invariants[] tradeoffs[]",
    "milestone_dependencies": "diagram_ascii",
}
"""The fields that can be assigned, which are the keys of plan.json, of each part."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> DesignPlan:
    """Return a complete plan with at least one part of each kind."""
    plan = complete(begin(tmp_path_factory.mktemp("state")).plan())
    plan = add(
        plan, "alternative", "alternative=bank", "rejection_reason=not the law", "decision_ref=DL-001"
    )
    plan = add(plan, "constraint", "type=MUST", "description=half up", "source=the user")
    return add(plan, "risk", "risk=floats", "mitigation=decimals", "anchor=shop/cart.py:total")


def at(data: Any, place: str) -> Any:
    for key in place.split("."):
        data = data[key]
    return data


# -- the schema ------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", FIELDS)
def test_each_part_has_the_fields_of_the_schema(part: str) -> None:
    models = {**{kind: each.model for kind, each in KINDS.items()}, **PARTS}

    assert " ".join(fields_of(models[part])) == FIELDS[part]


@pytest.mark.parametrize("prefix", [each.prefix for each in KINDS.values() if each.prefix != "W"])
def test_an_id_has_the_prefix_of_its_kind_and_three_or_more_digits(prefix: str, made: DesignPlan) -> None:
    assert f"{prefix}-001" in made.ids()
    text = made.model_dump_json()
    for wrong in ("X-001", f"{prefix}-01", f"{prefix}-abc"):
        with pytest.raises(ValidationError, match=r"String should match"):
            DesignPlan.model_validate_json(text.replace(f'"id":"{prefix}-001"', f'"id":"{wrong}"'))


@pytest.mark.parametrize(
    "file", ["/etc/passwd", "../a.py", "a/../../b.py", "a\\b.py", "", "a\nb", ".", "a//b"]
)
def test_a_file_outside_the_project_is_invalid(file: str) -> None:
    with pytest.raises(ValidationError):
        Milestone.model_validate({"id": "M-001", "number": 1, "name": "a", "files": [file]})


@pytest.mark.parametrize("file", ["a.py", ".github/a.yml", "..a/b", "a b/c..d", "ä.py"])
def test_a_file_may_have_any_name(file: str) -> None:
    assert Milestone.model_validate({"id": "M-001", "number": 1, "name": "a", "files": [file]})


# -- references ------------------------------------------------------------------------------------


def test_every_broken_reference_and_duplicate_is_reported_with_its_place(made: DesignPlan) -> None:
    data = made.model_dump(mode="json")
    data["planning_context"]["rejected_alternatives"][0]["decision_ref"] = "DL-101"
    data["planning_context"]["known_risks"][0]["decision_ref"] = "DL-102"
    data["milestones"][0]["code_intents"][0]["decision_refs"] = ["DL-103", "DL-104"]
    data["milestones"][0]["code_changes"][0] |= {"intent_ref": "CI-002", "why_comments": ["see DL-105"]}
    data["milestones"][0]["documentation"]["docstrings"] = ["DL-106"]
    data["milestones"][1]["number"] = 1
    data["milestones"][1]["code_intents"][0]["id"] = "CI-001"
    data["milestone_dependencies"]["waves"][0] |= {"milestones": ["M-107", "M-002"], "wave": 2}

    with pytest.raises(ValidationError) as refused:
        DesignPlan.model_validate(data)

    for violation in (
        "RA-001.decision_ref: the decision DL-101 does not exist",
        "R-001.decision_ref: the decision DL-102",
        "CI-001.decision_refs: the decision DL-103",
        "CI-001.decision_refs: the decision DL-104",
        "CC-001.intent_ref: M-001 has no code intent CI-002",
        "CC-001.why_comments: the decision DL-105",
        "M-001.documentation: the decision DL-106",
        "W-2.milestones: the milestone M-107",
        "milestone number: 1 occurs 2 times",
        "id: CI-001 occurs 2 times",
        "wave: 2 occurs 2 times",
        "in the waves: M-002 occurs 2 times",
    ):
        assert violation in str(refused.value)


def test_an_unchecked_copy_with_a_broken_reference_is_not_written(folder: StateFolder) -> None:
    before = folder.plan_file.read_bytes()

    with pytest.raises(DesignError, match="the milestone M-001"):
        folder.edit_plan(lambda plan: plan.model_copy(update={"milestones": ()}))
    assert folder.plan_file.read_bytes() == before


def test_a_referenced_part_cannot_be_removed(planner: Command, folder: StateFolder) -> None:
    done = planner("design", "remove", "DL-001")

    assert done.status == 4
    assert "DL-001 cannot be removed: 4 violations" in done.err
    assert planner("design", "remove", "CC-001").out == "CC-001: removed\n"


# -- changes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_part_can_be_added_set_shown_and_removed(
    kind: str, planner: Command, folder: StateFolder
) -> None:
    fields = {
        "decision": ["decision=a"],
        "alternative": ["alternative=a", "rejection_reason=b", "decision_ref=DL-001"],
        "constraint": ["type=MUST", "description=a"],
        "risk": ["risk=a", "mitigation=b"],
        "milestone": ["name=a"],
        "intent": ["file=a.py", "behavior=b"],
        "change": ["intent_ref=CI-001", "file=a.py", "diff=@@ -1 +1 @@"],
        "wave": ["milestones="],
    }[kind]
    to = ["--to", "M-001"] if kind in ("intent", "change") else []

    name = planner("design", "add", kind, *fields, *to).out.strip()

    assert name.startswith(KINDS[kind].prefix + "-")
    first = next(each for each in fields_of(KINDS[kind].model) if each != "number")
    word = "file=other.py" if kind in ("intent", "change") else f"{first.removesuffix('[]')}=7"
    changed = planner("design", "set", name, word)
    renamed = "W-7" if kind == "wave" else name
    assert changed.status == 0, changed.err
    assert str(word.partition("=")[2]) in planner("design", "show", renamed).out
    assert planner("design", "remove", renamed).status == 0
    assert planner("design", "show", renamed).status == 4


@pytest.mark.parametrize("part", PARTS)
def test_a_unique_part_can_be_set_but_not_removed(part: str, planner: Command, folder: StateFolder) -> None:
    field = next(fields_of(PARTS[part])).removesuffix("[]")

    assert planner("design", "set", part, f"{field}=~words~").status == 0
    assert "~words~" in planner("design", "show", part).out
    assert planner("design", "remove", part).status == 4


@pytest.mark.parametrize(
    ("part", "words", "field", "value"),
    [
        ("M-001", ["files=a.py"], "files", ["a.py"]),
        ("M-001", ["files=a.py", "files=b.py"], "files", ["a.py", "b.py"]),
        ("M-001", ["files+=a.py"], "files", ["shop/cart.py", "a.py"]),
        ("M-001", ["files="], "files", []),
        ("M-001", ["delegated_to=Kim"], "delegated_to", "Kim"),
        ("M-001", ["delegated_to="], "delegated_to", None),
        ("M-001", ["number=7"], "number", 7),
        ("M-001", ["is_documentation_only=true"], "is_documentation_only", True),
        ("M-001", ["tests.scenarios.error=none"], "tests.scenarios.error", ["none"]),
        ("M-001", ["name=a=b"], "name", "a=b"),
        ("CI-001", ["params.window=14", "params.mode=fast"], "params", {"window": 14, "mode": "fast"}),
        ("CI-001", ["params.fill=NaN"], "params", {"fill": "NaN"}),
    ],
)
def test_assigned_words_are_converted_to_the_type_of_the_field(
    part: str, words: list[str], field: str, value: object, made: DesignPlan
) -> None:
    assert at(part_of(change_part(made, part, words), part), field) == value


def test_texts_can_be_read_from_files(planner: Command, folder: StateFolder) -> None:
    (planner.folder / "a.diff").write_text("@@ -1 +1 @@\n-a\n+b\n")

    assert planner("design", "set", "CC-001", "diff=@a.diff").status == 0
    assert planner("design", "set", "CC-002", "diff=@@ -1 +1 @@").status == 0

    milestone, other = folder.plan().milestones
    assert milestone.code_changes[0].diff == "@@ -1 +1 @@\n-a\n+b\n"
    assert other.code_changes[0].diff == "@@ -1 +1 @@"
    for wrong in ("@none", "@.", "@/dev/zero", "@latin"):
        (planner.folder / "latin").write_bytes(b"\xff")
        refused = planner("design", "set", "M-001", f"name={wrong}")
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        assert f"{wrong}: it cannot be read (" in refused.err
    assert planner("design", "set", "CI-001", r'params.a="\ud800"').status == 4


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("set M-001 nmae=a", 4, "unknown field 'nmae'; the fields are id, number, name"),
        ("set M-001 name", 4, "'name' assigns nothing; write FIELD=VALUE"),
        ("set M-001 tests=a", 4, "tests is not a text; name one of its fields: tests.files"),
        ("set M-001 code_intents=a", 4, "has parts"),
        ("set M-001 name+=a", 4, "name is not a list"),
        ("set M-001 name.first=a", 4, "name has no fields"),
        ("set M-001 name=' '", 4, "name: "),
        ("set M-001 id=M-002", 4, "the id cannot be changed"),
        ("set M-001 number=x", 4, "number: "),
        ("set CI-001 params=a", 4, "params.KEY=VALUE"),
        ("set M-009 name=a", 4, "unknown part"),
        ("set wave name=a", 4, "unknown part"),
        ("set M-001", 2, "name a field"),
        ("add mile", 2, "did you mean 'milestone'?"),
        ("add milestone", 2, "name its fields: number, name, files[]"),
        ("add wave milestones=M-999", 4, "W-3.milestones: the milestone M-999 does not exist"),
        ("add intent file=a.py", 4, "it belongs to a milestone; name it with --to, one of: M-001"),
        ("add intent file=a.py --to M-9", 4, "no milestone M-9"),
        ("add risk risk=a --to M-001", 4, "it belongs to no milestone"),
        ("add item check=a --to plan", 2, "'plan' is not a phase"),
        ("remove plan-design/qa-001", 2, "an item cannot be removed"),
        ("validate --phase x", 2, "'x' is not a phase"),
        ("show --state-dir none", 2, "the folder does not exist; make it"),
        ("gate plan-design maybe", 2, "'maybe' is not a decision"),
        ("gate plan-design pass", 4, "nothing was reviewed; add items: planner design add item --to"),
        ("add item check=a scope=M-003 --to plan-design", 4, "the plan has no M-003"),
        ("set plan-design/qa-001 status=PASS", 4, "unknown item; the items are: none yet"),
        ("export -o plan.yaml", 4, "the plan is not frozen"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line_and_changes_nothing(
    words: str, status: int, message: str, planner: Command, folder: StateFolder
) -> None:
    before = folder.plan_file.read_bytes()

    done = planner("design", *shlex.split(words))

    assert (done.status, done.err.count("\n")) == (status, 1)
    assert message in done.err
    assert folder.plan_file.read_bytes() == before


# -- the state directory ---------------------------------------------------------------------------


def test_init_creates_a_temporary_folder_and_shows_the_next_step(
    planner: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANNER_STATE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(planner.folder))

    done = planner("design", "init", "title=Round prices")

    (made,) = planner.folder.glob("design-*")
    assert done.out == (
        f"wrote {made}/plan.json\nnext: planner workflow plan --step 2 --state-dir {made}\n"
    )
    assert StateFolder(made).plan().overview == Overview(title="Round prices")
    again = planner("design", "init", "title=b", "--state-dir", str(made))
    assert (again.status, again.err.count("\n")) == (4, 1)
    assert planner("design", "init", "titel=b").status == 4
    assert planner("design", "init", "title=").status == 4


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("plan.json", None, "the file does not exist; start one: planner design init"),
        ("plan.json", "{", "it is not valid JSON"),
        ("plan.json", "[]", "Input should be an object"),
        ("plan.json", "[" * 100_000, "it is not valid JSON"),
        ("plan.json", '{"schema_version": 3}', "its schema_version is not 2"),
        ("context.json", None, "the file does not exist; write it: planner workflow plan --step 2"),
        ("gates.json", '{"schema_version": 9}', "its schema_version is not 1"),
        (
            "qr-plan-design.json",
            '{"schema_version": "2", "phase": "plan-design"}',
            "schema_version is not 1.0",
        ),
        ("qr-plan-design.json", '{"phase": "plan-code"}', "it is the review of another phase, plan-code"),
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
    data["milestones"][1]["files"] = [1]
    folder.plan_file.write_text(json.dumps(data))

    shown = planner("design", "show").err

    for place in ("milestones.0.number", "milestones.0.nmae", "milestones.1.files.0"):
        assert place in shown


@pytest.mark.parametrize("key", CONTEXT_KEYS)
def test_every_context_key_must_be_a_list_of_texts(key: str, planner: Command) -> None:
    folder = begin(planner.folder / "state")
    for wrong in ({name: held for name, held in CONTEXT.items() if name != key}, {**CONTEXT, key: "text"}):
        folder.context_file.write_text(json.dumps(wrong))
        done = planner("design", "context")
        assert done.status == 4
        assert f"{key}: " in done.err
    folder.context_file.write_text(json.dumps({**CONTEXT, key: ["words"], "more": 1}))
    assert planner("design", "context").status == 0


def test_context_json_is_frozen_after_step_2(planner: Command, folder: StateFolder) -> None:
    folder.context_file.write_text(json.dumps({**CONTEXT, "user_quotes": ["later"]}))

    for words in (
        ["design", "context"],
        ["workflow", "plan", "--step", "3"],
        ["design", "gate", "plan-design"],
    ):
        done = planner(*words)
        assert done.status == 4
        assert "changed after it was frozen" in done.err


def test_concurrent_writers_lose_no_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begin(tmp_path)
    monkeypatch.setattr("planner.authoring.design.state_folder.LOCK_SECONDS", 0.1)

    def change(plan: DesignPlan) -> DesignPlan:
        with pytest.raises(DesignError, match="another process has locked the folder"):
            StateFolder(tmp_path).edit_plan(complete)
        return add(plan, "decision", "decision=a")

    assert [each.id for each in folder.edit_plan(change).planning_context.decision_log] == ["DL-001"]


# -- gaps ------------------------------------------------------------------------------------------

GAPS = {
    "overview.problem is empty": ("plan-design", "overview", ["problem="]),
    "overview.approach is empty": ("plan-design", "overview", ["approach="]),
    "M-001 has no requirement": ("plan-design", "M-001", ["requirements="]),
    "M-001 has no acceptance criterion": ("plan-design", "M-001", ["acceptance_criteria="]),
    "M-001 has no test file": ("plan-design", "M-001", ["tests.files="]),
    "M-001 is documentation only but has": ("plan-design", "M-001", ["is_documentation_only=true"]),
    "M-001 is in no wave": ("plan-design", "W-1", ["milestones="]),
    "CC-001.diff is not a unified diff": ("plan-code", "CC-001", ["diff=words"]),
    "M-001 has no documentation": ("plan-docs", "M-001", ["documentation.module_comment="]),
}


@pytest.mark.parametrize("message", GAPS)
def test_each_gap_of_a_phase_is_reported(message: str, made: DesignPlan) -> None:
    phase, part, words = GAPS[message]

    (gap,) = find_gaps(change_part(made, part, words), ReviewPhase(phase))

    assert gap.startswith(message)


def test_milestones_intents_and_changes_are_required(made: DesignPlan) -> None:
    empty = DesignPlan.model_validate({**made.model_dump(), "milestones": (), "milestone_dependencies": {}})
    assert [gap[:21] for gap in find_gaps(empty, ReviewPhase.PLAN_DOCS)] == ["the plan has no miles"]

    without = remove_part(made, "CC-001")
    assert not find_gaps(without, ReviewPhase.PLAN_DESIGN)
    assert find_gaps(without, ReviewPhase.PLAN_CODE)[0].startswith("CI-001 has no code change")
    without = change_part(remove_part(without, "CI-001"), "M-001", ["files="])
    assert [gap[:16] for gap in find_gaps(without, ReviewPhase.PLAN_DESIGN)] == [
        "M-001 names no f",
        "M-001 has no cod",
    ]


def test_a_documentation_only_milestone_needs_neither_tests_nor_code(made: DesignPlan) -> None:
    plan = add(
        made,
        "milestone",
        *("name=Pages", "files=README.md", "requirements=a", "acceptance_criteria=b"),
        *("is_documentation_only=true", "documentation.module_comment=c"),
    )

    assert not find_gaps(change_part(plan, "W-2", ["milestones+=M-003"]), ReviewPhase.PLAN_DOCS)


def test_milestones_of_one_wave_may_not_change_the_same_file(made: DesignPlan) -> None:
    plan = change_part(made, "CI-002", ["file=shop/cart.py"])
    assert not find_gaps(plan, ReviewPhase.PLAN_DESIGN)

    plan = change_part(change_part(plan, "W-2", ["milestones="]), "W-1", ["milestones+=M-002"])

    (gap,) = find_gaps(plan, ReviewPhase.PLAN_DESIGN)
    assert gap.startswith("W-1: M-001 and M-002 both change shop/cart.py")


# -- the page --------------------------------------------------------------------------------------


def test_plan_md_is_derived_and_reproducible_byte_for_byte(
    planner: Command, made: DesignPlan, frozen: StateFolder
) -> None:
    before = frozen.page_file.read_bytes()

    frozen.page_file.unlink()
    assert planner("design", "render").status == 0
    assert frozen.page_file.read_bytes() == before
    assert planner("design", "show").out.encode() == before
    assert render_page(DesignPlan.model_validate_json(made.model_dump_json())) == render_page(made)


def test_plan_md_contains_every_text_of_the_plan(made: DesignPlan) -> None:
    data = made.model_dump(mode="json")
    marks: list[str] = []

    def mark(held: Any, key: str = "") -> Any:
        if isinstance(held, dict):
            return {name: mark(inner, name) for name, inner in held.items()}
        if isinstance(held, list):
            return [mark(inner, key) for inner in held]
        kept = (
            *("id", "_ref", "_refs", "_at", "_version", "_only"),
            *("number", "wave", "timestamp", "milestones"),
        )
        if not isinstance(held, str) or key.endswith(kept):
            return held
        marks.append(f"mark{len(marks)}")
        return f"{marks[-1]} `x`" if key not in ("file", "files") else f"{marks[-1]}.py"

    page = render_page(DesignPlan.model_validate(mark(data)))

    assert len(marks) > 25
    assert [each for each in marks if each not in page] == []


# -- frozen ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "add decision decision=a",
        "add item check=a --to plan-docs",
        "set M-001 name=b",
        "remove CC-001",
        "gate plan-docs fail",
        "init title=c",
    ],
)
def test_frozen_plan_json_is_immutable(words: str, planner: Command, frozen: StateFolder) -> None:
    before = frozen.plan_file.read_bytes()

    assert planner("design", *words.split()).status == 4

    assert frozen.plan_file.read_bytes() == before
    assert frozen.plan().frozen_at == NOW


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_a_manual_change_after_the_freeze_is_detected(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = begin_frozen(tmp_path_factory.mktemp("state"))
    text = folder.plan_file.read_text()
    where = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(codec="ascii").filter(lambda each: each != text[where]))
    folder.plan_file.write_text(text[:where] + letter + text[where + 1 :])

    with pytest.raises(DesignError):
        folder.plan()


def test_removing_frozen_at_by_hand_does_not_unfreeze_the_plan(
    planner: Command, frozen: StateFolder
) -> None:
    data = json.loads(frozen.plan_file.read_text())
    frozen.plan_file.write_text(json.dumps({**data, "frozen_at": None}))

    done = planner("design", "set", "M-001", "name=b")

    assert done.status == 4
    assert "it was changed after it was frozen; restore it from a copy" in done.err


def test_a_new_part_gets_the_next_free_id(made: DesignPlan) -> None:
    assert add_part(made, "decision", ["decision=a"], now=NOW)[1] == "DL-002"
    plan = add(made, "decision", "decision=a", "id=DL-1007")
    assert add_part(plan, "decision", ["decision=a"], now=NOW)[1] == "DL-1008"
    assert plan.planning_context.decision_log[1].timestamp == NOW
