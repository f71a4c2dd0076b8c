"""What a run has shown is held against its baseline: news are signs, what was there before is none."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planner.model.baseline import (
    Agreement,
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
from planner.model.evidence import AuditEvent, HygieneSignal
from planner.model.outcome import Check, TestResult
from planner.model.verdicts import CheckKind, Hardness, TestOutcome, Verdict
from planner.planfile.tree import FlatPlan, load_tree
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.baseline.record import inventory_of
from pytest_planverify.checks.result import CheckRun
from pytest_planverify.guards import environment
from pytest_planverify.guards.artifacts import Artifacts
from pytest_planverify.guards.environment import is_from_index, runs_code
from pytest_planverify.guards.hygiene import Grants
from pytest_planverify.guards.own_files import OwnFiles
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
    """A session as the run has seen it."""

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
def test_a_new_hook_weighs_by_what_it_decides_and_who_may_change_its_file(
    flat: FlatPlan, hook: str, file: str, hardness: str | None
) -> None:
    expected = [] if hardness is None else [("hook-added", hardness, file)]
    assert signs(judge(flat, hooks((hook, file)))) == expected


def test_a_hook_that_went_to_another_file_is_no_news(flat: FlatPlan) -> None:
    name = "pytest_collection_modifyitems"
    before = hooks((name, "conftest.py"))
    assert judge(flat, hooks((name, "moved/conftest.py")), before=before) == []
    above = hooks((name, "/repository/shared.py"))
    assert judge(flat, hooks((name, "/tmp/worktree/shared.py")), before=above) == []
    twice = hooks((name, "moved/conftest.py"), (name, "other/conftest.py"))
    assert signs(judge(flat, twice, before=before)) == [("hook-added", "hard", "other/conftest.py")]


def test_a_plugin_without_which_tests_say_something_else_is_missed(flat: FlatPlan) -> None:
    before = SessionInventory(plugins=("assertion", "cacheprovider", "runner"))
    assert signs(judge(flat, SessionInventory(plugins=("runner",)), before=before)) == [
        ("plugin-added", "hard", None)
    ]


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
def test_a_patch_weighs_by_what_it_replaces_and_who_made_it(
    flat: FlatPlan, name: str, file: str, expected: tuple[str, str, str | None] | None
) -> None:
    now = SessionInventory(patched=(JudgePatch(name=name, file=file),))
    assert signs(judge(flat, now)) == ([] if expected is None else [expected])
    assert judge(flat, now, before=now) == []


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("prod/a.py", "a.X.__eq__", ("always-equal", "hard")),
        ("tests/own/test_b.py", "b.Any.__eq__", None),
        ("conftest.py", "c.Any.__eq__", ("always-equal", "hard")),
        ("prod/kept.py", "kept.X.__eq__", None),
    ],
)
def test_what_agrees_with_everything_weighs_by_what_tests_compare(
    flat: FlatPlan, file: str, name: str, expected: tuple[str, str] | None
) -> None:
    now = SessionInventory(agreeing=(Agreement(file=file, name=name),))
    assert signs(judge(flat, now)) == ([] if expected is None else [(*expected, file)])
    moved = SessionInventory(agreeing=(Agreement(file="old.py", name=f"old.{name.partition('.')[2]}"),))
    assert judge(flat, now, before=moved) == []


def test_records_that_were_forged_or_lost_and_sessions_that_keep_silent_are_signs(flat: FlatPlan) -> None:
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


def test_a_session_that_returns_less_than_its_tests_say_is_a_sign(flat: FlatPlan) -> None:
    red = Ended(results={"t.py::a": Result("failed"), "t.py::b": Result("passed")})
    assert signs(judge(flat, sessions=(red,))) == [("exit-status-overturned", "hard", None)]
    assert judge(flat, sessions=(red,), before=SessionInventory(status_overturned=True)) == []
    red.exit_status = 1
    assert judge(flat, sessions=(red,)) == []


def test_a_test_that_passes_without_being_called_is_a_sign(flat: FlatPlan) -> None:
    told = [{"without_body": ["tests/test_a.py::t", "tests/test_a.py::skipped", "gone.py::t"]}]
    results = {"tests/test_a.py::t": Result("passed"), "tests/test_a.py::skipped": Result("skipped")}
    session = Ended(inventories=told, results=results)
    assert signs(judge(flat, sessions=(session,))) == [("body-not-run", "hard", "tests/test_a.py")]
    assert judge(flat, sessions=(session,), before=SessionInventory(bodies_elsewhere=True)) == []


def check(*tests: tuple[str, str], verdict: Verdict = Verdict.PASSED, cmd: str = CMD) -> Check:
    found = tuple(TestResult(nodeid=name, outcome=TestOutcome(outcome)) for name, outcome in tests)
    return Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, cmd=cmd, tests=found)


def with_tests(flat: FlatPlan, **outcomes: str) -> KeptBaseline:
    """A baseline whose criterion selected these tests, ``a__t`` being ``tests/test_a.py::t``."""
    places = {"a": "tests/test_a.py", "edited": "tests/test_edited.py", "own": "tests/own/test_b.py"}
    tests = {
        f"{places[name.partition('__')[0]]}::{name.partition('__')[2]}": BaselineTest(
            outcome=TestOutcome(outcome)
        )
        for name, outcome in outcomes.items()
    }
    known = BaselineCheck(verdict=Verdict.FAILED, cmd=CMD, tests=tuple(tests))
    return kept(flat, todos={"a": BaselineTodo(checks={"tests[0]": known})}, tests=tests)


def test_a_test_that_its_command_no_longer_selects_is_missed(flat: FlatPlan) -> None:
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


def test_other_parameters_are_the_same_test(flat: FlatPlan) -> None:
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
def test_a_red_test_that_is_skipped_since_has_not_passed(
    flat: FlatPlan, was: str, now: str, hardness: str | None
) -> None:
    baseline = with_tests(flat, a__t=was, own__v=was)
    checks = (check(("tests/test_a.py::t", now), ("tests/own/test_b.py::v", now)),)
    files = {"hard": ["tests/test_a.py", "tests/own/test_b.py"]}
    # Who may change a test may skip it, unless it was red.
    expected = [("test-skipped-since", hardness, file) for file in files.get(hardness or "", [])]
    assert signs(judge(flat, checks=checks, baseline=baseline)) == expected


def test_what_a_person_has_blessed_is_no_sign(flat: FlatPlan) -> None:
    blessing: Any = {"todo_id": "a", "reason": "r", "at": "", "files": {"conftest.py": "1"}}
    baseline = with_tests(flat, a__t="failed", a__u="passed")
    document = baseline.document.model_copy(
        update={"accepted": kept(flat, accepted=(blessing,)).document.accepted}
    )
    blessed = KeptBaseline(flat.loaded.root, document, path=baseline.path)
    now = SessionInventory(
        hooks=(HookUse(hook="pytest_runtest_call", file="conftest.py"),),
        patched=(JudgePatch(name="builtins.all", file="conftest.py"),),
        agreeing=(Agreement(file="conftest.py", name="conftest.X.__eq__"),),
    )
    assert judge(flat, now, checks=(check(("tests/test_a.py::u", "passed")),), baseline=blessed) == []


def test_what_the_comparison_has_found_in_the_same_file_counts_once() -> None:
    def sign(name: str, path: str | None) -> HygieneSignal:
        return HygieneSignal(sign=name, hardness=Hardness.HARD, message="", path=path)

    known = [sign("outcome-hook", "conftest.py"), sign("hook-added", None)]
    found = [sign("hook-added", "conftest.py"), sign("hook-added", "other.py"), sign("hook-added", None)]
    assert list(without_known(found, known)) == found[1:]


def test_an_inventory_is_folded_from_all_processes_and_paths_are_below_the_root(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "root").mkdir()
    link.symlink_to(tmp_path / "root")
    real = f"{tmp_path}/root/a.py"
    records: list[dict[str, Any]] = [
        {
            "record": "session_inventory",
            "plugins": ["x", 1],
            "hooks": [["h", real], ["up", f"{tmp_path}/conftest.py"], ["h"], 3],
            "patched": "no",
        },
        {
            "record": "session_inventory",
            "patched": [["builtins.all", ""]],
            "agreeing": [[real, "a.X", "__eq__"]],
            "without_body": ["t"],
        },
        {"record": "artifacts_written", "artifacts": {"out": "made", "odd": "?"}},
        {"record": "test_finished", "session": "s1", "outcome": "failed", "pen": "1", "number": 1},
        {"record": "session_ended", "session": "s1", "exit_status": 0, "pen": "1", "number": 3},
    ]
    found = inventory_of(records, link)
    assert found.plugins == ("x",)
    assert found.hooks == (HookUse(hook="h", file="a.py"), HookUse(hook="up", file="../conftest.py"))
    assert found.patched == (JudgePatch(name="builtins.all"),)
    assert found.agreeing == (Agreement(file="a.py", name="a.X.__eq__"),)
    assert found.artifacts == {"out": "made"}
    assert (found.bodies_elsewhere, found.status_overturned, found.records_lost) == (True, True, True)
    assert inventory_of([{"record": "artifacts_written", "artifacts": 3}], link).artifacts == {}


# -- the environment ------------------------------------------------------------------------------


def dist(site: Path, name: str, *, direct: bool = False, recorded: bool = True, files: str = "") -> None:
    folder = site / f"{name}-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}.plugin\n")
    if recorded:
        (folder / "RECORD").write_text(f"{name}/plugin.py,,\n{files}")
    if direct:
        (folder / "direct_url.json").write_text("{}")


def test_a_plugin_that_was_not_installed_from_an_index_was_made_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flat: FlatPlan
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    dist(tmp_path / "site", "bought")
    dist(tmp_path / "site", "own", direct=True)
    dist(tmp_path / "site", "strewn", recorded=False)
    points = ("bought = bought.plugin", "own = own.plugin", "strewn = strewn.plugin", "no = no.plugin")
    assert [is_from_index(each) for each in points] == [True, False, False, False]
    found = judge(flat, SessionInventory(entry_points=points))
    assert [each.message.rpartition(": ")[2] for each in found] == list(points[1:])
    assert (
        judge(flat, SessionInventory(entry_points=points), before=SessionInventory(entry_points=points))
        == []
    )


def test_a_start_up_file_is_a_sign_where_it_runs_something_nobody_has_installed(
    tmp_path: Path, flat: FlatPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "else" / "site-packages"
    site.mkdir(parents=True)
    dist(site, "bought", files="installed.pth,,\n")
    (site / "paths.pth").write_text("/some/where\n")
    (site / "code.pth").write_text("import os; os.environ\n")
    (site / "installed.pth").write_text("import os; os.environ\n")
    names = ("sitecustomize.py", "paths.pth", "code.pth", "installed.pth", "gone.pth")
    assert [runs_code(str(site / name)) for name in names] == [True, False, True, False, True]
    now = SessionInventory(start_up={str(site / name): "1" for name in names[:4]})
    found = judge(flat, now)
    assert [os.path.basename(each.message.partition(" ")[0]) for each in found] == [
        "sitecustomize.py",
        "code.pth",
    ]
    elsewhere = SessionInventory(start_up={f"/venv/{name}": "1" for name in names})
    assert judge(flat, now, before=elsewhere) == []
    own = SessionInventory(start_up={f"{flat.loaded.root}/sitecustomize.py": "1"})
    assert judge(flat, own) == []
    # What the sandbox refused, and saw too late, is told by the sandbox.
    late = AuditEvent(event="write", target=str(site / "code.pth"), denied=True)
    held = check().model_copy(update={"events": (late, late.model_copy(update={"denied": False}))})
    assert judge(flat, now, checks=(held,)) == found[:1]
    assert environment.__doc__


# -- our own files --------------------------------------------------------------------------------


def own_files(root: Path) -> OwnFiles:
    return OwnFiles(root, [root / "plan.yaml"])


def test_our_own_files_are_compared_with_what_they_were(tmp_path: Path) -> None:
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
        f"{path} was {how} while the run was on"
        for path, how in {
            "plan.yaml": "changed",
            ".planverify/answers.json": "removed",
            ".planverify/plans/p/qualification.json": "made",
            ".planverify/plans/p/baselines/p.json": "changed",
            ".planverify/baseline/objects/abc": "removed",
        }.items()
    }


def test_a_run_beside_this_one_may_write_its_outcomes(tmp_path: Path) -> None:
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


def test_a_record_that_no_run_of_ours_writes_is_a_sign(tmp_path: Path) -> None:
    (tmp_path / ".planverify").mkdir()
    for name in ("journal.jsonl", "notes.txt", "planverify.db"):
        (tmp_path / ".planverify" / name).write_text("")
    assert [each.path for each in own_files(tmp_path).signals()] == [".planverify/journal.jsonl"]


# -- artifacts ------------------------------------------------------------------------------------


def commands(verdict: Verdict) -> dict[str, dict[str, CheckRun]]:
    made = Check(id="tests[1]", kind=CheckKind.COMMAND, verdict=verdict, cmd="python make.py")
    return {"a": {"tests[1]": CheckRun(check=made)}}


def test_what_the_run_writes_is_told_apart_by_whether_it_was_there(flat: FlatPlan) -> None:
    place = flat.loaded.root / "out" / "a.txt"
    place.parent.mkdir()
    fresh = Artifacts(flat)
    assert fresh.written() == {}
    place.write_text("1")
    assert fresh.written() == {"out/a.txt": "made"}
    there = Artifacts(flat)
    place.write_text("22")
    assert there.written() == {"out/a.txt": "rewritten"}


@pytest.mark.parametrize(
    ("how", "verdict", "hardness"),
    [
        ("rewritten", Verdict.PASSED, "hard"),
        ("made", Verdict.PASSED, None),
        ("rewritten", Verdict.NOT_RUN, None),
        (None, Verdict.PASSED, None),
    ],
)
def test_an_artifact_that_the_run_only_finds_there_is_a_sign_where_it_was_made_before(
    flat: FlatPlan, how: Any, verdict: Verdict, hardness: str | None
) -> None:
    place = flat.loaded.root / "out" / "a.txt"
    place.parent.mkdir()
    before = SessionInventory(artifacts={} if how is None else {"out/a.txt": how})
    assert list(Artifacts(flat).signals(before, commands(verdict))) == []
    place.write_text("by hand")
    artifacts = Artifacts(flat)
    found = list(artifacts.signals(before, commands(verdict)))
    assert signs(found) == ([] if hardness is None else [("artifact-not-made", hardness, "out/a.txt")])
    place.write_text("made by the command")
    assert list(artifacts.signals(before, commands(verdict))) == []
