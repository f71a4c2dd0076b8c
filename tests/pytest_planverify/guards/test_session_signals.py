"""Tampering signals in the sessions of a run, compared with the baseline: only new ones count."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planner.model.baseline import (
    Baseline,
    BaselineCheck,
    BaselineFile,
    BaselineTest,
    BaselineTodo,
    HookUse,
    JudgeKind,
    JudgePatch,
    SessionInventory,
)
from planner.model.evidence import HygieneSignal
from planner.model.outcome import Check, TestResult
from planner.model.verdicts import CheckKind, Hardness, TestOutcome, Verdict
from planner.planfile.tree import FlatPlan, load_tree
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.baseline.record import inventory_of
from pytest_planverify.guards.hygiene import Grants
from pytest_planverify.guards.plan_guards import OwnFiles
from pytest_planverify.guards.session_signals import Shown, signals, without_known

CMD = "pytest tests"
PLAN = {
    "todo_list_id": "p",
    "items": [
        {
            "id": "a",
            "title": "A",
            "allowed_files": ["prod/**", "tests/own/**"],
            "acceptance_criteria": {
                "tests": [{"cmd": CMD}, {"cmd": "python make.py"}],
                "expected_artifacts": ["out/a.txt", "out/*.json"],
            },
        }
    ],
}
KINDS = {
    "prod/a.py": JudgeKind.PRODUCT,
    "prod/kept.py": JudgeKind.PRODUCT,
    "conftest.py": JudgeKind.CONFTEST,
    "tests/conftest.py": JudgeKind.CONFTEST,
    "tests/test_a.py": JudgeKind.TEST,
    "tests/test_edited.py": JudgeKind.TEST,
    "tests/own/test_b.py": JudgeKind.TEST,
}
UNCHANGED = {"prod/kept.py", "tests/test_a.py", "tests/conftest.py"}


@dataclass
class Ended:
    """A finished session as seen by the run."""

    inventories: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    forged: int = 0
    journal_lost: bool = False
    collected: bool = True
    exit_status: int | None = 0
    collection_failures: dict[str, object] = field(default_factory=dict[str, object])
    results: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Result:
    outcome: str


@pytest.fixture
def flat(tmp_path: Path) -> FlatPlan:
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN), encoding="utf-8")
    return load_tree(tmp_path / "plan.yaml").load_all().flat()


def kept(flat: FlatPlan, inventory: SessionInventory | None = None, **more: Any) -> KeptBaseline:
    files = {path: BaselineFile(sha256="0", size=1, kind=kind) for path, kind in KINDS.items()}
    document = Baseline(
        plan="p",
        plan_digest="",
        made_at="",
        python="",
        pytest="",
        files=files,
        inventory=inventory or SessionInventory(),
        **more,
    )
    return KeptBaseline(flat.loaded.root, document, path=flat.loaded.root / "baseline.json")


def judge(
    flat: FlatPlan,
    now: SessionInventory | None = None,
    *,
    before: SessionInventory | None = None,
    sessions: tuple[Ended, ...] = (Ended(),),
    checks: tuple[Check, ...] = (),
    baseline: KeptBaseline | None = None,
    narrowed: bool = False,
    changed: bool = True,
) -> list[HygieneSignal]:
    digests = {path: "0" if path in UNCHANGED or not changed else "1" for path in KINDS}
    shown = Shown(sessions, {"a": checks}, now or SessionInventory(), narrowed)
    found = signals(shown, baseline or kept(flat, before), flat, Grants.of(flat), digests)
    return list(found)


def signs(found: list[HygieneSignal]) -> list[tuple[str, str, str | None]]:
    return [(each.sign, each.hardness.value, each.path) for each in found]


def hooks(*uses: tuple[str, str]) -> SessionInventory:
    return SessionInventory(hooks=tuple(HookUse(hook=hook, file=file) for hook, file in uses))


@pytest.mark.parametrize(
    ("hook", "file", "hardness"),
    [
        ("pytest_runtest_makereport", "conftest.py", "hard"),
        ("pytest_configure", "conftest.py", None),
        ("pytest_runtest_makereport", "prod/a.py", "hard"),
        ("pytest_runtest_makereport", "prod/pytest_plugin.py", None),
        ("pytest_report_header", "conftest.py", None),
        ("pytest_runtest_makereport", "tests/own/conftest.py", None),
        ("pytest_configure", "tests/own/conftest.py", None),
        ("pytest_runtest_makereport", "/elsewhere/plugin.py", None),
        ("pytest_runtest_makereport", "../conftest.py", "hard"),
        ("pytest_runtest_makereport", "prod/kept.py", None),
        ("pytest_runtest_makereport", "tests/conftest.py", None),
    ],
)
def test_hardness_of_a_new_hook_depends_on_hook_and_file(
    flat: FlatPlan, hook: str, file: str, hardness: str | None
) -> None:
    expected = [] if hardness is None else [("hook-added", hardness, file)]
    assert signs(judge(flat, hooks((hook, file)))) == expected


def test_moved_hook_is_not_new(flat: FlatPlan) -> None:
    name = "pytest_collection_modifyitems"
    before = hooks((name, "conftest.py"))
    assert judge(flat, hooks((name, "moved/conftest.py")), before=before) == []
    above = hooks((name, "/repository/shared.py"))
    assert judge(flat, hooks((name, "/tmp/worktree/shared.py")), before=above) == []
    twice = hooks((name, "moved/conftest.py"), (name, "other/conftest.py"))
    assert signs(judge(flat, twice, before=before)) == [("hook-added", "hard", "other/conftest.py")]


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("builtins.all", "prod/a.py", ("patches-judge", "hard", "prod/a.py")),
        ("builtins.all", "", ("patches-judge", "hard", None)),
        ("builtins.all", "prod/kept.py", None),
        ("builtins.all", pytest.__file__, None),
        ("pytest.approx()", pytest.__file__, ("patches-judge", "hard", None)),
    ],
)
def test_hardness_of_a_patch_depends_on_target_and_file(
    flat: FlatPlan, name: str, file: str, expected: tuple[str, str, str | None] | None
) -> None:
    now = SessionInventory(patched=(JudgePatch(name=name, file=file),))
    assert signs(judge(flat, now)) == ([] if expected is None else [expected])
    assert judge(flat, now, before=now) == []


def test_forged_or_lost_records_are_signals(flat: FlatPlan) -> None:
    assert signs(judge(flat, sessions=(Ended(forged=2),))) == [("records-touched", "hard", None)]
    assert signs(judge(flat, sessions=(Ended(journal_lost=True),))) == [("records-touched", "hard", None)]
    lost = SessionInventory(records_lost=True)
    assert judge(flat, sessions=(Ended(journal_lost=True),), before=lost) == []
    for silent in ([], [{"incomplete": True}]):
        assert signs(judge(flat, sessions=(Ended(inventories=silent),))) == [
            ("witness-silenced", "hard", None)
        ]
    ends: list[dict[str, Any]] = [{"exit_status": None}, {"collected": False}]
    for ended in ends:
        assert judge(flat, sessions=(Ended(inventories=[], **ended),)) == []


def test_exit_status_that_contradicts_failed_tests_is_a_signal(flat: FlatPlan) -> None:
    red = Ended(results={"t.py::a": Result("failed"), "t.py::b": Result("passed")})
    assert signs(judge(flat, sessions=(red,))) == [("exit-status-overturned", "hard", None)]
    assert judge(flat, sessions=(red,), before=SessionInventory(status_overturned=True)) == []
    red.exit_status = 1
    assert judge(flat, sessions=(red,)) == []


def test_passed_test_whose_body_did_not_run_is_a_signal(flat: FlatPlan) -> None:
    told = [{"without_body": ["tests/test_a.py::t", "tests/test_a.py::skipped", "gone.py::t"]}]
    results = {"tests/test_a.py::t": Result("passed"), "tests/test_a.py::skipped": Result("skipped")}
    session = Ended(inventories=told, results=results)
    assert signs(judge(flat, sessions=(session,))) == [("body-not-run", "hard", "tests/test_a.py")]
    assert judge(flat, sessions=(session,), before=SessionInventory(bodies_elsewhere=True)) == []


def check(*tests: tuple[str, str], verdict: Verdict = Verdict.PASSED, cmd: str = CMD) -> Check:
    found = tuple(TestResult(nodeid=name, outcome=TestOutcome(outcome)) for name, outcome in tests)
    return Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, cmd=cmd, tests=found)


def with_tests(flat: FlatPlan, **outcomes: str) -> KeptBaseline:
    """Return a baseline whose criterion selected these tests; ``a__t`` is ``tests/test_a.py::t``."""
    places = {"a": "tests/test_a.py", "edited": "tests/test_edited.py", "own": "tests/own/test_b.py"}
    tests = {
        f"{places[name.partition('__')[0]]}::{name.partition('__')[2]}": BaselineTest(
            outcome=TestOutcome(outcome)
        )
        for name, outcome in outcomes.items()
    }
    known = BaselineCheck(verdict=Verdict.FAILED, cmd=CMD, tests=tuple(tests))
    return kept(flat, todos={"a": BaselineTodo(checks={"tests[0]": known})}, tests=tests)


def test_test_no_longer_selected_by_its_command_is_a_signal(flat: FlatPlan) -> None:
    baseline = with_tests(flat, a__t="failed", a__u="passed", own__v="passed")
    left = check(("tests/test_a.py::u", "passed"))
    found = judge(flat, checks=(left,), baseline=baseline)
    assert signs(found) == [("test-vanished", "hard", "tests/test_a.py")]
    assert found[0].message == "tests/test_a.py::t of tests[0] of a is no longer collected"
    assert judge(flat, checks=(left,), baseline=baseline, narrowed=True) == []
    assert judge(flat, checks=(left.model_copy(update={"cmd": "pytest x"}),), baseline=baseline) == []
    unread = Ended(collection_failures={"tests/test_a.py": object()})
    assert judge(flat, checks=(left,), baseline=baseline, sessions=(unread,)) == []
    nothing = left.model_copy(update={"tests": ()})
    assert judge(flat, checks=(nothing,), baseline=baseline) == []


def test_changed_parameters_are_the_same_test(flat: FlatPlan) -> None:
    baseline = with_tests(flat, **{"a__t[1]": "passed", "a__t[2]": "passed"})
    assert judge(flat, checks=(check(("tests/test_a.py::t[3]", "passed")),), baseline=baseline) == []


@pytest.mark.parametrize(
    ("was", "now", "hardness"),
    [
        ("failed", "skipped", "hard"),
        ("error", "xfailed", "hard"),
        ("passed", "skipped", None),
        ("skipped", "skipped", None),
        ("failed", "passed", None),
    ],
)
def test_red_test_that_is_now_skipped_is_a_signal(
    flat: FlatPlan, was: str, now: str, hardness: str | None
) -> None:
    baseline = with_tests(flat, a__t=was, own__v=was)
    checks = (check(("tests/test_a.py::t", now), ("tests/own/test_b.py::v", now)),)
    files = {"hard": ["tests/test_a.py", "tests/own/test_b.py"]}
    # A todo that may change a test may skip it, unless the test was red.
    expected = [("test-skipped-since", hardness, file) for file in files.get(hardness or "", [])]
    assert signs(judge(flat, checks=checks, baseline=baseline)) == expected


def test_accepted_file_causes_no_signals(flat: FlatPlan) -> None:
    blessing: Any = {"todo_id": "a", "reason": "r", "at": "", "files": {"conftest.py": "1"}}
    baseline = with_tests(flat, a__t="failed", a__u="passed")
    document = baseline.document.model_copy(
        update={"accepted": kept(flat, accepted=(blessing,)).document.accepted}
    )
    blessed = KeptBaseline(flat.loaded.root, document, path=baseline.path)
    now = SessionInventory(
        hooks=(HookUse(hook="pytest_runtest_call", file="conftest.py"),),
        patched=(JudgePatch(name="builtins.all", file="conftest.py"),),
    )
    assert judge(flat, now, checks=(check(("tests/test_a.py::u", "passed")),), baseline=blessed) == []


def test_signal_already_found_by_comparison_counts_once() -> None:
    def sign(name: str, path: str | None) -> HygieneSignal:
        return HygieneSignal(sign=name, hardness=Hardness.HARD, message="", path=path)

    known = [sign("outcome-hook", "conftest.py"), sign("hook-added", None)]
    found = [sign("hook-added", "conftest.py"), sign("hook-added", "other.py"), sign("hook-added", None)]
    assert list(without_known(found, known)) == found[1:]


def test_inventory_merges_all_processes_with_relative_paths(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "root").mkdir()
    link.symlink_to(tmp_path / "root")
    real = f"{tmp_path}/root/a.py"
    records: list[dict[str, Any]] = [
        {
            "record": "session_inventory",
            "hooks": [["h", real], ["up", f"{tmp_path}/conftest.py"], ["h"], 3],
            "patched": "no",
        },
        {
            "record": "session_inventory",
            "patched": [["builtins.all", ""]],
            "without_body": ["t"],
        },
        {"record": "test_finished", "session": "s1", "outcome": "failed", "pen": "1", "number": 1},
        {"record": "session_ended", "session": "s1", "exit_status": 0, "pen": "1", "number": 3},
    ]
    found = inventory_of(records, link)
    assert found.hooks == (HookUse(hook="h", file="a.py"), HookUse(hook="up", file="../conftest.py"))
    assert found.patched == (JudgePatch(name="builtins.all"),)
    assert (found.bodies_elsewhere, found.status_overturned, found.records_lost) == (True, True, True)


# -- our own files --------------------------------------------------------------------------------


def own_files(root: Path) -> OwnFiles:
    return OwnFiles(root, [root / "plan.yaml"])


def test_changes_of_planverify_files_are_found(tmp_path: Path) -> None:
    home = tmp_path / ".planverify"
    (home / "baseline" / "objects").mkdir(parents=True)
    plan = home / "plans" / "p"
    plan.mkdir(parents=True)
    (plan / "baselines").mkdir()
    for path in ("plan.yaml", ".planverify/answers.json", ".planverify/plans/p/baselines/p.json"):
        (tmp_path / path).write_text("1")
    (home / "baseline" / "objects" / "abc").write_text("1")
    watch = own_files(tmp_path)
    assert list(watch.signals()) == []
    (tmp_path / "plan.yaml").write_text("2")
    (home / "answers.json").unlink()
    (plan / "qualification.json").symlink_to("elsewhere")
    (plan / "baselines" / "p.json").write_text("2")
    (home / "baseline" / "objects" / "abc").unlink()
    assert {each.message for each in watch.signals()} == {
        f"{path} was {how} during the run"
        for path, how in {
            "plan.yaml": "changed",
            ".planverify/answers.json": "removed",
            ".planverify/plans/p/qualification.json": "made",
            ".planverify/plans/p/baselines/p.json": "changed",
            ".planverify/baseline/objects/abc": "removed",
        }.items()
    }


def test_concurrent_run_may_write_its_outcomes(tmp_path: Path) -> None:
    home = tmp_path / ".planverify"
    watch = own_files(tmp_path)
    (home / "runs" / "r2").mkdir(parents=True)
    (home / "runs" / "r2" / "journal.jsonl").write_text("")
    (home / "plans" / "p").mkdir(parents=True)
    (home / "plans" / "p" / ".outcomes.json.1.tmp").write_text("")
    for path in (home / "outcomes.json", home / "plans" / "p" / "outcomes.json"):
        path.write_text('{"run": {"run_id": "r2"}}')
    assert list(watch.signals()) == []
    for text in ('{"run": {"run_id": "r3"}}', "no", '{"run": 3}'):
        (home / "outcomes.json").write_text(text)
        assert [each.path for each in watch.signals()] == [".planverify/outcomes.json"]


def test_outcomes_of_an_earlier_run_are_not_those_of_a_concurrent_run(tmp_path: Path) -> None:
    home = tmp_path / ".planverify"
    for run in ("ended", "running"):
        (home / "runs" / run).mkdir(parents=True)
        (home / "runs" / run / "journal.jsonl").write_text("1")
    watch = own_files(tmp_path)
    with (home / "runs" / "running" / "journal.jsonl").open("a") as journal:
        journal.write("2")
    for run, expected in (("running", []), ("ended", [".planverify/outcomes.json"])):
        (home / "outcomes.json").write_text(f'{{"run": {{"run_id": "{run}"}}}}')
        assert [each.path for each in watch.signals()] == expected


def test_unknown_record_file_is_a_signal(tmp_path: Path) -> None:
    (tmp_path / ".planverify").mkdir()
    for name in ("journal.jsonl", "notes.txt", "planverify.db"):
        (tmp_path / ".planverify" / name).write_text("")
    assert [each.path for each in own_files(tmp_path).signals()] == [".planverify/journal.jsonl"]
