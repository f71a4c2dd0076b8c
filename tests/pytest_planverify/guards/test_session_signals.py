"""Tampering signals in the sessions of a run, compared with the baseline: only new ones count."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from baseline_samples import TODO, baseline, flat_plan, write_plan

from planner.model.baseline import (
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
from planner.model.verdicts import CheckKind, TestOutcome, Verdict
from planner.planfile.tree import FlatPlan, load_tree
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.baseline.record import inventory_of
from pytest_planverify.guards.hygiene.grants import Grants
from pytest_planverify.guards.plan_guards import OwnFiles
from pytest_planverify.guards.session_signals import SessionComparison

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
    "tests/own/test_b.py": JudgeKind.TEST,
}
UNCHANGED = {"prod/kept.py", "tests/test_a.py", "tests/conftest.py"}


def ended(results: dict[str, str] | None = None, **facts: Any) -> Any:
    """Return a finished session as seen by the run; ``results`` are outcomes by node id."""
    plain = {"inventories": [{}], "forged": 0, "journal_lost": False, "collected": True, "exit_status": 0}
    shown = {name: SimpleNamespace(outcome=outcome) for name, outcome in (results or {}).items()}
    return SimpleNamespace(**{**plain, "collection_failures": {}, "results": shown, **facts})


@pytest.fixture
def flat(tmp_path: Path) -> FlatPlan:
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN), encoding="utf-8")
    return load_tree(tmp_path / "plan.yaml").load_all().flat()


def kept(flat: FlatPlan, inventory: SessionInventory | None = None, **more: Any) -> KeptBaseline:
    files = {path: BaselineFile(sha256="0", kind=kind) for path, kind in KINDS.items()}
    document = baseline(files=files, inventory=inventory or SessionInventory(), **more)
    return KeptBaseline(flat.loaded.root, document, path=flat.loaded.root / "baseline.json")


def judge(
    flat: FlatPlan,
    now: SessionInventory | None = None,
    *checks: Check,
    before: SessionInventory | None = None,
    session: Any = None,
    baseline: KeptBaseline | None = None,
    narrowed: bool = False,
) -> list[HygieneSignal]:
    digests = {path: "0" if path in UNCHANGED else "1" for path in KINDS}
    session = session or ended()
    if now is not None:
        shown = {"hooks": [[each.hook, each.file] for each in now.hooks]}
        shown["patched"] = [[each.name, each.file] for each in now.patched]
        session.inventories = [{"record": "session_inventory", **shown}]
    runs = {each.id: SimpleNamespace(check=each) for each in checks}
    compared = SessionComparison(flat, baseline or kept(flat, before), Grants.of(flat), digests)
    result: Any = SimpleNamespace(records=[session], checks={"a": runs})
    return list(compared.signals(result, narrowed=narrowed))


def signs(found: list[HygieneSignal]) -> list[tuple[str, str | None]]:
    return [(each.sign, each.path) for each in found]


def hooks(*uses: tuple[str, str]) -> SessionInventory:
    return SessionInventory(hooks=tuple(HookUse(hook=hook, file=file) for hook, file in uses))


@pytest.mark.parametrize(
    ("hook", "file", "is_signal"),
    [
        ("pytest_runtest_makereport", "conftest.py", True),
        ("pytest_configure", "conftest.py", False),
        ("pytest_runtest_makereport", "prod/a.py", True),
        ("pytest_runtest_makereport", "prod/pytest_plugin.py", False),
        ("pytest_runtest_makereport", "tests/own/conftest.py", False),
        ("pytest_runtest_makereport", "/elsewhere/plugin.py", False),
        ("pytest_runtest_makereport", "../conftest.py", True),
        ("pytest_runtest_makereport", "prod/kept.py", False),
        ("pytest_runtest_makereport", "tests/conftest.py", False),
    ],
)
def test_new_deciding_hook_of_the_product_or_a_forbidden_file_is_a_signal(
    flat: FlatPlan, hook: str, file: str, is_signal: bool
):
    expected = [("hook-added", file)] if is_signal else []
    assert signs(judge(flat, hooks((hook, file)))) == expected


def test_moved_hook_is_not_new(flat: FlatPlan):
    name = "pytest_collection_modifyitems"
    before = hooks((name, "conftest.py"))
    assert judge(flat, hooks((name, "moved/conftest.py")), before=before) == []
    twice = hooks((name, "moved/conftest.py"), (name, "other/conftest.py"))
    assert signs(judge(flat, twice, before=before)) == [("hook-added", "other/conftest.py")]


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("builtins.all", "prod/a.py", ("patches-judge", "prod/a.py")),
        ("builtins.all", "", ("patches-judge", None)),
        ("builtins.all", "prod/kept.py", None),
        ("builtins.all", pytest.__file__, None),
        ("pytest.approx()", pytest.__file__, ("patches-judge", None)),
    ],
)
def test_patch_is_a_signal_depending_on_target_and_file(
    flat: FlatPlan, name: str, file: str, expected: tuple[str, str | None] | None
):
    now = SessionInventory(patched=(JudgePatch(name=name, file=file),))
    assert signs(judge(flat, now)) == ([] if expected is None else [expected])
    assert judge(flat, now, before=now) == []


SESSIONS: dict[str, tuple[Any, dict[str, bool], str | None]] = {
    "forged records": (ended(forged=2), {}, "records-touched"),
    "lost records": (ended(journal_lost=True), {}, "records-touched"),
    "records lost before, too": (ended(journal_lost=True), {"records_lost": True}, None),
    "no inventory": (ended(inventories=[]), {}, "witness-silenced"),
    "incomplete inventory": (ended(inventories=[{"incomplete": True}]), {}, "witness-silenced"),
    "killed": (ended(inventories=[], exit_status=None), {}, None),
    "not collected": (ended(inventories=[], collected=False), {}, None),
    "success despite a failure": (ended({"a": "failed", "b": "passed"}), {}, "exit-status-overturned"),
    "such a success before, too": (ended({"a": "failed"}), {"status_overturned": True}, None),
    "failure": (ended({"a": "failed"}, exit_status=1), {}, None),
}


@pytest.mark.parametrize(("session", "before", "expected"), SESSIONS.values(), ids=SESSIONS)
def test_contradiction_in_the_records_of_a_session_is_a_signal(
    flat: FlatPlan, session: Any, before: dict[str, bool], expected: str | None
):
    found = judge(flat, session=session, before=SessionInventory.model_validate(before))
    assert signs(found) == ([] if expected is None else [(expected, None)])


def test_passed_test_whose_body_did_not_run_is_a_signal(flat: FlatPlan):
    without_body = [{"without_body": ["tests/test_a.py::t", "tests/test_a.py::skipped", "gone.py::t"]}]
    results = {"tests/test_a.py::t": "passed", "tests/test_a.py::skipped": "skipped"}
    session = ended(results, inventories=without_body)
    assert signs(judge(flat, session=session)) == [("body-not-run", "tests/test_a.py")]
    assert judge(flat, session=session, before=SessionInventory(bodies_elsewhere=True)) == []


def nodeid_of(name: str) -> str:
    """Return the node id of a test by a short name: ``a__t`` is ``tests/test_a.py::t``."""
    file, _, function = name.partition("__")
    path = {"a": "tests/test_a.py", "own": "tests/own/test_b.py"}[file]
    return f"{path}::{function}"


def check(cmd: str = CMD, **outcomes: str) -> Check:
    """Return a check with the outcomes of these tests; names as of :func:`nodeid_of`."""
    results = tuple(
        TestResult(nodeid=nodeid_of(name), outcome=TestOutcome(outcome))
        for name, outcome in outcomes.items()
    )
    return Check(id="tests[0]", kind=CheckKind.TEST, verdict=Verdict.PASSED, cmd=cmd, tests=results)


def with_tests(flat: FlatPlan, **outcomes: str) -> KeptBaseline:
    """Return a baseline whose criterion selected these tests; names as of :func:`nodeid_of`."""
    tests = {
        nodeid_of(name): BaselineTest(outcome=TestOutcome(outcome)) for name, outcome in outcomes.items()
    }
    known = BaselineCheck(verdict=Verdict.FAILED, cmd=CMD, tests=tuple(tests))
    return kept(flat, todos={"a": BaselineTodo(checks={"tests[0]": known})}, tests=tests)


def test_test_no_longer_selected_by_its_command_is_a_signal(flat: FlatPlan):
    baseline = with_tests(flat, a__t="failed", a__u="passed", own__v="passed")

    (found,) = judge(flat, None, check(a__u="passed"), baseline=baseline)

    assert (found.sign, found.path) == ("test-vanished", "tests/test_a.py")
    assert found.message == "tests/test_a.py::t of tests[0] of a is no longer collected"


UNREAD = ended(collection_failures={"tests/test_a.py": object()})
OTHER_REASONS: dict[str, tuple[Check, dict[str, Any]]] = {
    "excluded by the user": (check(a__u="passed"), {"narrowed": True}),
    "another command": (check("pytest x", a__u="passed"), {}),
    "file not collected": (check(a__u="passed"), {"session": UNREAD}),
    "no test at all": (check(), {}),
    "other parameters": (check(**{"a__u": "passed", "a__t[3]": "passed", "a__t[4]": "passed"}), {}),
}


@pytest.mark.parametrize(("seen", "more"), OTHER_REASONS.values(), ids=OTHER_REASONS)
def test_missing_test_with_another_reason_is_not_a_signal(
    flat: FlatPlan, seen: Check, more: dict[str, Any]
):
    baseline = with_tests(flat, **{"a__t[1]": "failed", "a__t[2]": "passed", "a__u": "passed"})
    assert judge(flat, None, seen, baseline=baseline, **more) == []


def test_failed_test_may_not_lose_cases(flat: FlatPlan):
    seen = check(**{"a__u": "passed", "a__t[2]": "passed"})
    for was, wanted in (("failed", ["test-vanished"]), ("passed", [])):
        baseline = with_tests(flat, **{"a__t[1]": was, "a__t[2]": "passed", "a__u": "passed"})
        assert [each.sign for each in judge(flat, None, seen, baseline=baseline)] == wanted


@pytest.mark.parametrize(
    ("was", "others", "is_found"),
    [("failed", {}, True), ("passed", {}, False), ("failed", {"own__X::renamed": "passed"}, False)],
)
def test_failed_test_that_a_class_inherits_may_not_vanish(
    flat: FlatPlan, monkeypatch: pytest.MonkeyPatch, was: str, others: dict[str, str], is_found: bool
) -> None:
    # Its file may be changed, but the function is in another one.
    monkeypatch.setattr(KeptBaseline, "read", lambda self, path: b"class X(Common): ...")
    baseline = with_tests(flat, **{"own__X::t": was, "a__u": "passed"})
    found = judge(flat, None, check(a__u="passed", **others), baseline=baseline)
    assert [each.sign for each in found] == (["test-vanished"] if is_found else [])


def test_failed_test_of_a_sub_plan_may_not_lose_cases(tmp_path: Path):
    write_plan(tmp_path / "part/plan.yaml", TODO, plan_id="q")
    flat = flat_plan(tmp_path, "{id: up, title: U, sub_plan: part/plan.yaml}")
    names = ("tests/test_a.py::t[1]", "tests/test_a.py::t[2]")
    known = BaselineCheck(verdict=Verdict.FAILED, cmd=CMD, tests=names)
    tests = {f"part/{name}": BaselineTest(outcome=TestOutcome.FAILED) for name in names}
    baseline = kept(flat, todos={"up/t": BaselineTodo(checks={"tests[0]": known})}, tests=tests)
    runs = {"tests[0]": SimpleNamespace(check=check(**{"a__t[1]": "passed"}))}
    result: Any = SimpleNamespace(records=[ended()], checks={"up/t": runs})

    (found,) = SessionComparison(flat, baseline, Grants.of(flat), {}).signals(result)

    assert (found.sign, found.path) == ("test-vanished", "part/tests/test_a.py")


@pytest.mark.parametrize(
    ("was", "now", "is_found"),
    [
        ("failed", "skipped", True),
        ("error", "xfailed", True),
        ("passed", "skipped", False),
        ("skipped", "skipped", False),
        ("failed", "passed", False),
    ],
)
def test_red_test_that_is_now_skipped_is_a_signal(flat: FlatPlan, was: str, now: str, is_found: bool):
    # A todo that may change a test may skip it, unless the test was red.
    baseline = with_tests(flat, a__t=was, own__v=was)
    found = signs(judge(flat, None, check(a__t=now, own__v=now), baseline=baseline))
    files = ["tests/test_a.py", "tests/own/test_b.py"] if is_found else []
    assert found == [("test-skipped-since", file) for file in files]


def test_accepted_file_causes_no_signals(flat: FlatPlan):
    blessing: Any = {"todo_id": "a", "reason": "r", "at": "", "files": {"conftest.py": "1"}}
    accepted = kept(flat, accepted=(blessing,)).document.accepted
    baseline = with_tests(flat, a__t="failed", a__u="passed")
    document = baseline.document.model_copy(update={"accepted": accepted})
    blessed = KeptBaseline(flat.loaded.root, document, path=baseline.path)
    now = SessionInventory(
        hooks=(HookUse(hook="pytest_runtest_call", file="conftest.py"),),
        patched=(JudgePatch(name="builtins.all", file="conftest.py"),),
    )
    assert judge(flat, now, check(a__u="passed"), baseline=blessed) == []


def test_inventory_merges_all_processes_with_relative_paths(tmp_path: Path):
    link = tmp_path / "link"
    (tmp_path / "root").mkdir()
    link.symlink_to(tmp_path / "root")
    real = f"{tmp_path}/root/a.py"
    records: list[dict[str, Any]] = [
        {
            "record": "session_inventory",
            "patched": [["p", real], ["up", f"{tmp_path}/conftest.py"], ["p"], 3, ["q", "\0"]],
        },
        {"record": "session_inventory", "patched": "no"},
        {"record": "session_inventory", "patched": [["builtins.all", ""]], "without_body": ["t"]},
        {"record": "test_finished", "session": [], "outcome": "failed", "pen": [], "number": 1},
        {"record": "test_finished", "session": "s1", "outcome": "failed", "pen": "1", "number": 1},
        {"record": "session_ended", "session": "s1", "exit_status": 0, "pen": "1", "number": 3},
    ]
    found = inventory_of(records, link)
    assert [(each.name, each.file) for each in found.patched] == [
        ("builtins.all", ""),
        ("p", "a.py"),
        ("q", "\0"),
        ("up", "../conftest.py"),
    ]
    assert (found.bodies_elsewhere, found.status_overturned, found.records_lost) == (True, True, True)


# -- our own files --------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".planverify"
    folder.mkdir()
    return folder


def written(path: Path, text: str = "1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def own_files(home: Path) -> OwnFiles:
    return OwnFiles(home.parent, [home.parent / "plan.yaml"])


def test_changes_of_planverify_files_are_found(home: Path):
    plan = written(home.parent / "plan.yaml")
    answers = written(home / "answers.json")
    baseline = written(home / "plans/p/baseline.json")
    content = written(home / "baseline/objects/abc")
    watch = own_files(home)
    assert list(watch.signals()) == []

    for path in (plan, baseline):
        path.write_text("2")
    for path in (answers, content):
        path.unlink()
    (home / "plans/p/qualification.json").symlink_to("elsewhere")

    assert {each.message for each in watch.signals()} == {
        "plan.yaml was changed during the run",
        ".planverify/answers.json was removed during the run",
        ".planverify/plans/p/qualification.json was made during the run",
        ".planverify/plans/p/baseline.json was changed during the run",
        ".planverify/baseline/objects/abc was removed during the run",
    }


def test_large_plan_of_equal_content_is_unchanged(home: Path):
    plan = written(home.parent / "plan.yaml", "#" * 400_000)
    watch = own_files(home)
    os.utime(plan, (1, 1))
    assert list(watch.signals()) == []

    plan.write_text("#" * 399_999 + "-")
    assert [each.path for each in watch.signals()] == ["plan.yaml"]


def test_concurrent_run_may_write_its_outcomes(home: Path):
    watch = own_files(home)
    written(home / "runs/r2/journal.jsonl", "")
    written(home / "plans/p/.outcomes.json.1.tmp", "")
    for path in (home / "outcomes.json", home / "plans/p/outcomes.json"):
        written(path, '{"run": {"run_id": "r2"}}')
    assert list(watch.signals()) == []
    runs = (f'{{"run": {{"run_id": "{each}"}}}}' for each in ("r3", "\\u0000", "\\ud800"))
    for text in (*runs, "no", '{"run": 3}', "[" * 100_000):
        (home / "outcomes.json").write_text(text)
        assert [each.path for each in watch.signals()] == [".planverify/outcomes.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no pipes with names")
def test_pipe_in_place_of_the_outcomes_is_a_signal(home: Path):
    outcomes = written(home / "plans/p/outcomes.json")
    watch = own_files(home)
    outcomes.unlink()
    os.mkfifo(outcomes)

    assert [each.path for each in watch.signals()] == [".planverify/plans/p/outcomes.json"]


def test_outcomes_of_an_earlier_run_are_not_those_of_a_concurrent_run(home: Path):
    for run in ("ended", "running"):
        written(home / "runs" / run / "journal.jsonl")
    watch = own_files(home)
    written(home / "runs/running/journal.jsonl", "12")
    for run, expected in (("running", []), ("ended", [".planverify/outcomes.json"])):
        written(home / "outcomes.json", f'{{"run": {{"run_id": "{run}"}}}}')
        assert [each.path for each in watch.signals()] == expected
