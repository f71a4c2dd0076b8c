"""The guards of a run: budget, allowlist and sandbox."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.model.evidence import Evidence, HygieneSignal
from planner.model.outcome import TestResult
from planner.model.plan import Budget
from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, EvidenceKind, TestOutcome, Verdict
from planner.planfile.left_files import RECORD, left_by_runs, remember_run
from pytest_planverify.checks.result import Judgement
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.guards.budget import BudgetExceeded, BudgetWatch, is_expected, violation
from pytest_planverify.guards.hygiene.source import has_same_tree
from pytest_planverify.guards.plan_guards import (
    LOST,
    UNCHECKED,
    Author,
    Ground,
    Guards,
    lost_baseline,
    outside_allowlist,
)
from pytest_planverify.guards.sandbox import MOST_EVENTS, hold
from pytest_planverify.guards.sandbox_policy import (
    CONNECT,
    PROCESS,
    WRITE,
    Reached,
    Sandbox,
    denies_anything,
    grants_of,
    is_loopback,
    outside_of,
    readers,
    resolve_path,
)


def watch(root: Path, expected: tuple[str, ...] = (), **limits: float) -> BudgetWatch:
    started = BudgetWatch(Budget.model_validate(limits), root, expected=expected)
    started.start()
    return started


@pytest.fixture
def large() -> Iterator[subprocess.Popen[str]]:
    code = "data = bytearray(b'1') * (120 << 20); print('there', flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process
        process.kill()


def test_memory_of_child_processes_is_summed_and_the_largest_is_named(
    tmp_path: Path, large: subprocess.Popen[str]
):
    watch(tmp_path, memory_mb=4_000).check()

    with pytest.raises(BudgetExceeded) as caught:
        watch(tmp_path, memory_mb=100).check()

    fact = caught.value.fact
    assert 100 < fact.used < 1_000
    assert any(example.startswith(f"{large.pid} ") for example in fact.examples)
    spared = BudgetWatch(Budget(memory_mb=100), tmp_path, spared=lambda: [large.pid])
    spared.check()


def test_new_files_are_counted_except_artifacts_and_caches(tmp_path: Path):
    (tmp_path / "before.txt").touch()
    started = watch(tmp_path, expected=("out/*.json",), new_files=1)
    for name in ("out/a.json", "__pycache__/a.pyc", ".planverify/x", "one.txt", ".coverage"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    started.check()
    started.finish()
    (tmp_path / "two.txt").touch()

    started.check()  # skipped so soon after the last check
    with pytest.raises(
        BudgetExceeded, match=r"2 new files, more than budget\.new_files \(1\): one\.txt, two\.txt"
    ):
        started.finish()


def test_file_added_before_the_run_exceeds_the_budget_which_is_a_failed_guard_check(tmp_path: Path):
    with pytest.raises(BudgetExceeded) as caught:
        BudgetWatch(Budget(new_files=0), tmp_path).start(["a.py"])

    check, evidence = violation("t", caught.value.fact).check()

    assert (check.id, check.kind, check.verdict) == ("budget", CheckKind.GUARD, Verdict.FAILED)
    assert diagnose(evidence).category is Category.BUDGET_EXCEEDED


ROOT = Path("/root/of/plan")
BELOW = ROOT / "phase"


def author(todo_id: str, *allowed: str, root: Path = ROOT) -> Author:
    return Author(todo_id=todo_id, root=root, allowed_files=allowed or None)


def found(
    authors: list[Author],
    *files: str,
    root: Path = ROOT,
    expected: tuple[str, ...] = (),
    protected: tuple[str, ...] = (),
) -> dict[str, tuple[str, ...]]:
    ground = Ground(root=root, changed=files, expected=expected, protected=protected)
    return {each.todo_id: each.evidence.outside for each in outside_allowlist(authors, [ground])}


def test_file_allowed_to_any_author_is_not_a_violation():
    authors = [author("a", "a/**"), author("b", "b/*.py", "!b/secret.py")]

    assert found(authors, "a/x", "b/y.py") == {}
    assert found(authors, "b/secret.py", "c") == {"a": ("b/secret.py", "c"), "b": ("b/secret.py", "c")}


def test_author_without_allowed_files_may_change_everything_unprotected():
    authors = [author("a", "a/**"), author("b")]

    assert found(authors, "anything") == {}
    assert found(authors, "tests/t.py", protected=("tests/**",)) == {"a": ("tests/t.py",)}
    assert found([author("b")], "tests/t.py", protected=("tests/**",)) == {"b": ("tests/t.py",)}


def test_artifacts_plans_and_caches_count_only_if_protected():
    files = ("out/x.json", "plan.yaml", "a/__pycache__/b.pyc", ".coverage.host", "x.egg-info/PKG-INFO")
    expected = ("out/*.json", "plan.yaml")

    assert found([author("a", "a.py")], *files, expected=expected) == {}
    blamed = found([author("a", "a.py")], *files, expected=expected, protected=("plan.yaml",))
    assert blamed == {"a": ("plan.yaml",)}


def test_paths_of_a_sub_plan_are_relative_to_its_root():
    authors = [author("top", "phase/a.py"), author("below", "b.py", root=BELOW)]

    assert found(authors, "a.py", "b.py", root=BELOW) == {}
    assert found(authors, "c.py", root=BELOW) == {"top": ("phase/c.py",), "below": ("phase/c.py",)}
    assert found(authors, "b.py") == {"top": ("b.py",), "below": ("b.py",)}


def test_changed_fields_of_a_class_are_more_than_format():
    point = "class Point(NamedTuple):\n    x: int\n    y: int = 0\n"
    for now in (
        point.replace("    x: int\n", ""),
        point.replace("x: int", "x: str"),
        point.replace(": int =", " ="),
    ):
        assert not has_same_tree("point.py", point.encode(), now.encode())
    formatted = point.replace(":\n", ":\n    # The fields\n", 1).replace(" = 0", "=0")
    assert has_same_tree("point.py", point.encode(), formatted.encode())


def test_violation_evidence_names_the_files_and_is_diagnosed():
    ground = Ground(root=ROOT, changed=[f"f{n}" for n in range(9)])
    (violation,) = outside_allowlist([author("a", "a.py")], [ground])

    reason = "f0, f1, f2 and 6 more changed, but not in the allowed_files of any todo"
    assert violation.evidence.headline == reason
    check, evidence = violation.check()
    assert (check.id, evidence.check_id, evidence.granted) == ("allowlist", "allowlist", ("a.py",))
    assert diagnose(evidence).category is Category.ALLOWLIST_VIOLATION


def test_change_of_records_is_never_to_be_accepted():
    signals = [HygieneSignal(sign=sign, message="m") for sign in ("x", "records-touched")]
    found = [
        diagnose(Evidence(kind=EvidenceKind.HYGIENE, signals=(signal,))).suggestion for signal in signals
    ]

    assert ["baseline accept" in text for text in found] == [True, False]
    assert "planverify baseline PLAN --reason" in found[1]


def test_project_files_are_not_caches():
    assert not any(is_expected(path, ()) for path in (".coveragerc", "a/cache.py", "egg-info.txt"))


def test_tree_with_changes_that_could_not_be_compared_is_not_clean():
    guards: Any = object.__new__(Guards)
    guards._hygiene = SimpleNamespace(notes=["a.py is unknown"], summary="checked")
    for violated, wanted in (False, "unchecked: a.py is unknown"), (True, "violated: checked"):
        guards._violated = violated
        assert guards.hygiene == wanted


@pytest.mark.parametrize(
    ("was", "is_lost"),
    [
        ("clean: checked against the baseline of 2026-01-01T00:00:00Z", True),
        (LOST, True),
        (UNCHECKED, False),
        ("violated: records of planverify were changed; no baseline", False),
    ],
)
def test_baseline_of_earlier_runs_that_is_gone_is_noted(tmp_path: Path, was: str, is_lost: bool):
    outcomes = tmp_path / "outcomes.json"
    assert lost_baseline(outcomes) is None
    outcomes.write_text("[")
    assert lost_baseline(outcomes) is None

    outcomes.write_text(json.dumps({"run": {"hygiene": was}}))

    assert (was in (lost_baseline(outcomes) or "")) is is_lost


def test_new_file_left_by_a_run_is_remembered_while_unchanged(tmp_path: Path):
    def remember(before: list[str], after: list[str], **more: Any):
        remember_run(tmp_path, tmp_path, before, after, **more)

    def left(*files: str) -> set[str]:
        return set(left_by_runs(tmp_path, tmp_path, list(files)))

    for name in ("junk.txt", "code.py", "mine.txt"):
        (tmp_path / name).write_text("1")
    remember(["mine.txt"], ["junk.txt", "code.py", "mine.txt", "gone.txt"])
    assert left("junk.txt", "code.py", "mine.txt") == {"junk.txt"}
    remember(["junk.txt", "mine.txt"], ["junk.txt", "mine.txt"])
    assert left("junk.txt") == {"junk.txt"}
    (tmp_path / "junk.txt").write_text("by the next run")
    assert left("junk.txt") == set()
    remember(["junk.txt"], ["junk.txt"], left=["junk.txt"])
    assert left("junk.txt") == {"junk.txt"}
    remember([], ["mine.txt"], started=time.time() + 1)
    assert left("mine.txt") == set()
    (tmp_path / RECORD).write_text("[]")
    assert left("junk.txt") == set()


NODEID = "tests/test_a.py::test_a"


def record(**facts: Any) -> dict[str, Any]:
    plain = {"event": "connect", "target": "example.org:443", "nodeid": None, "path": None, "phase": None}
    return {**plain, "denied": True, **facts}


def held(*records: dict[str, Any], verdict: Verdict = Verdict.PASSED) -> Judgement:
    test = TestResult(nodeid=NODEID, outcome=TestOutcome.PASSED)
    judgement = Judgement(verdict=verdict, tests=(test,))
    return hold(judgement, records, check_id="tests[0]", nodeids={NODEID})


@pytest.mark.parametrize("facts", [{"target": None}, {"nodeid": NODEID, "phase": "never"}], ids=str)
def test_forged_event_of_another_form_is_left_out(facts: dict[str, Any]):
    judgement = held(record(**facts))

    assert (judgement.verdict, judgement.events) == (Verdict.PASSED, ())


@pytest.mark.parametrize(
    ("facts", "nodeid", "path"),
    [
        ({"nodeid": NODEID, "path": "tests/test_a.py"}, NODEID, None),
        ({"nodeid": "tests/test_a.py::test_b", "path": "tests/conftest.py"}, None, "tests/conftest.py"),
        ({"path": "product/start.py"}, None, "product/start.py"),
        ({}, None, None),
    ],
    ids=["its test", "left out", "an import", "nobody's"],
)
def test_criterion_is_responsible_for_all_accesses_of_its_worker(
    facts: dict[str, Any], nodeid: str | None, path: str | None
):
    denied, recorded = held(record(**facts)), held(record(**facts, denied=False))

    assert (denied.verdict, recorded.verdict) == (Verdict.FAILED, Verdict.PASSED)
    for judgement in (denied, recorded):
        assert [(event.nodeid, event.path) for event in judgement.events] == [(nodeid, path)]


def test_denied_access_fails_a_criterion_that_ran_but_keeps_test_outcomes():
    judgement = held(record(nodeid=NODEID), record(nodeid=NODEID))

    assert judgement.verdict is Verdict.FAILED
    assert [test.outcome for test in judgement.tests] == [TestOutcome.PASSED]
    assert [event.denied for event in judgement.events] == [True]
    (evidence,) = judgement.evidence
    assert (evidence.kind, evidence.tests) == (EvidenceKind.SANDBOX, (NODEID,))
    assert evidence.headline == f"{NODEID} accessed example.org:443, which the plan denies"
    assert diagnose(evidence).category is Category.SANDBOX_VIOLATION
    deselected = held(record(nodeid=NODEID), verdict=Verdict.NOT_RUN)
    assert (deselected.verdict, deselected.events) == (Verdict.NOT_RUN, judgement.events)


def test_events_are_limited_and_denied_ones_come_first():
    many = [record(nodeid=NODEID, target=str(number), denied=number == 99) for number in range(100)]
    events = held(*many).events

    assert len(events) == MOST_EVENTS
    assert events[0].target == "99"
    two = held(record(nodeid=NODEID), record(nodeid=NODEID, event="write", target="/x"))
    assert "and 1 more" in str(two.reason)


# -- recorded accesses --------------------------------------------------------------------------

READ = readers(outside_of(["/inside", "/tmp"]))
CREATE = os.O_WRONLY | os.O_CREAT


def targets(event: str, *args: Any) -> list[str]:
    return [reached.target for reached in READ[event](args)]


@pytest.mark.parametrize(
    ("event", "args", "expected"),
    [
        ("socket.connect", (None, ("198.51.100.1", 443)), ["198.51.100.1:443"]),
        ("socket.connect", (None, ("2001:db8::1", 443, 0, 0)), ["[2001:db8::1]:443"]),
        ("socket.connect", (None, (b"example.org", 80)), ["example.org:80"]),
        ("socket.connect", (None, ("127.0.0.53", 53)), []),
        ("socket.connect", (None, "/run/service.sock"), []),
        ("socket.connect", (None, (16, 0)), []),
        ("socket.sendmsg", (None, None), []),
        ("socket.getaddrinfo", ("example.org", "https", 0, 0, 0), ["example.org:https"]),
        ("socket.getaddrinfo", ("198.51.100.1", 80, 0, 0, 0), []),
        ("socket.gethostbyname", ("example.org",), ["example.org"]),
        ("socket.gethostbyname", (socket.gethostname(),), []),
        ("socket.getnameinfo", (("example.org", 80),), ["example.org"]),
        ("subprocess.Popen", ("/bin/sh", ["sh", "-c", "curl x | sh"], None, None), ["/bin/sh -c curl"]),
        ("subprocess.Popen", (Path("/bin/ls"), "ls", None, None), ["/bin/ls"]),
        ("os.exec", ("/bin/ls", ["ls"], None), ["/bin/ls"]),
        ("os.spawn", (0, "/bin/ls", ["ls"], None), ["/bin/ls"]),
        ("os.posix_spawn", ("/bin/ls", ["ls"], None), ["/bin/ls"]),
        ("pty.spawn", (["ls", "-l"],), ["ls"]),
        ("os.system", (b"rm -rf x",), ["/bin/sh -c rm"]),
        ("open", ("/elsewhere/a", "w", CREATE), ["/elsewhere/a"]),
        ("open", (b"/elsewhere/a", "a", os.O_APPEND), ["/elsewhere/a"]),
        ("open", (Path("/inside/../elsewhere/a"), None, CREATE), ["/elsewhere/a"]),
        ("open", ("/elsewhere/a", "r", os.O_CLOEXEC), []),
        ("open", ("/inside/a", "w", CREATE), []),
        ("open", ("/tmp/a", "w", CREATE), []),
        ("open", ("/dev/null", "w", CREATE), []),
        ("open", (3, "w", CREATE), []),
        ("open", ("/elsewhere/__pycache__/x.pyc", "wb", CREATE), []),
        ("open", ("/elsewhere/.coverage.host", "wb", CREATE), []),
        ("os.mkdir", ("/elsewhere", 0o777, -1), ["/elsewhere"]),
        ("os.mkdir", ("/usr", 0o777, -1), []),
        ("os.remove", ("/elsewhere/not-there", -1), []),
        ("os.remove", ("/etc/passwd", -1), ["/etc/passwd"]),
        ("os.rename", ("/etc/passwd", "/inside/b", -1, -1), ["/etc/passwd"]),
        ("os.rename", ("/inside/a", "/elsewhere/b", -1, -1), ["/elsewhere/b"]),
        ("os.symlink", ("/etc/passwd", "/inside/b", -1), []),
        ("os.link", ("/inside/a", "/elsewhere/b", -1, -1), ["/elsewhere/b"]),
        ("os.chmod", ("/etc/passwd", 0o600, -1), ["/etc/passwd"]),
        ("os.truncate", (5, 0), []),
        ("os.truncate", ("/etc/passwd", 0), ["/etc/passwd"]),
        ("ctypes.dlsym", (None, "system"), ["system of C, by ctypes"]),
        ("ctypes.dlsym", (None, b"connect"), ["connect of C, by ctypes"]),
        ("ctypes.dlsym", (None, "strlen"), []),
        ("ctypes.dlsym", (None,), []),
        ("sqlite3.connect", ("/elsewhere/db",), ["/elsewhere/db"]),
        ("sqlite3.connect", (":memory:",), []),
        ("sqlite3.connect", ("file:/elsewhere/db?mode=ro",), []),
        ("sqlite3.connect", ("file:///elsewhere/db?x=1",), ["/elsewhere/db"]),
    ],
)
def test_audit_event_yields_its_targets(event: str, args: tuple[Any, ...], expected: list[str]):
    assert targets(event, *args) == expected


def test_relative_path_is_resolved_against_its_folder_descriptor(tmp_path: Path):
    descriptor = os.open("/etc", os.O_RDONLY)
    try:
        assert targets("os.remove", "passwd", descriptor) == ["/etc/passwd"]
        assert targets("os.remove", "passwd", 9999) == []
    finally:
        os.close(descriptor)


def test_multiprocessing_start_is_detected_by_its_pipe():
    launcher = str(Path(os.__file__).parent / "multiprocessing" / "popen_spawn_posix.py")
    reached: dict[str, list[Reached]] = {}
    for file in (launcher, "/elsewhere/popen_spawn_posix.py"):
        names: dict[str, Any] = {"hook": lambda args: READ["open"](args), "CREATE": CREATE}
        exec(compile("found = hook((7, 'w', CREATE))", file, "exec"), names)
        reached[file] = list(names["found"])
    (started,) = reached.pop(launcher)
    assert (started.kind, started.name) == ("process", sys.executable)
    assert list(reached.values()) == [[]]


def test_links_are_resolved_where_the_call_follows_them(tmp_path: Path):
    (tmp_path / "link").symlink_to("/elsewhere")
    (tmp_path / "loop").symlink_to("loop")

    assert resolve_path(tmp_path / "link" / "a", -1, True) == "/elsewhere/a"
    assert resolve_path(str(tmp_path / "link"), -1, False) == str(tmp_path / "link")
    assert resolve_path(str(tmp_path / "loop"), -1, True) == str(tmp_path / "loop")
    assert resolve_path("/", -1, True) == "/"


LOOPBACK = ("localhost", "127.0.0.1", "127.1", "::1", "::ffff:127.0.0.1", "a.localhost", "", "0.0.0.0")
OTHERS = ("127.example.org", "::2", "localhost.example.org", "::ffff:198.51.100.1", "1:2", "10.0.0.1")


@pytest.mark.parametrize("host", [*LOOPBACK, *OTHERS])
def test_loopback_addresses_are_recognised(host: str):
    assert is_loopback(host) is (host in LOOPBACK)


# -- permissions -----------------------------------------------------------------------------------


def granted(reached: Reached, **policy: Any) -> bool:
    return grants_of([Sandbox(root="/root/of/plan", **policy)])(reached)


def host(name: str, port: int | None = 443, *, lookup: bool = False) -> Reached:
    return Reached(CONNECT, name, name, port, lookup)


@pytest.mark.parametrize(
    ("policy", "reached", "expected"),
    [
        ("record", host("example.org"), True),
        ("deny", host("example.org"), False),
        (("example.org",), host("example.org"), True),
        (("example.org:443",), host("example.org", 80), False),
        (("example.org:443",), host("example.org", None, lookup=True), True),
        (("*.example.org",), host("a.b.example.org"), True),
        (("*.example.org",), host("example.org"), False),
        (("example.org:²", "example.org:" + "9" * 5_000), host("example.org"), False),
        (("2001:db8::1",), host("2001:db8::1"), True),
        (("[2001:db8::1]:443",), host("2001:db8::1", 80), False),
        (("other.example",), host("example.org", lookup=True), False),
        (("198.51.100.1",), host("198.51.100.2"), False),
    ],
)
def test_hosts_are_allowed_by_name_pattern_and_port(policy: Any, reached: Reached, expected: bool):
    assert granted(reached, network=policy) is expected


def test_allowed_host_name_allows_its_addresses():
    judge = grants_of([Sandbox(root="/", network=("localhost:80", "no-such-host.invalid"))])

    assert judge(host("127.0.0.1", 80))
    assert not judge(host("127.0.0.1", 81))
    assert not judge(host("198.51.100.1", 80))


@pytest.mark.parametrize(
    ("policy", "program", "expected"),
    [
        (("git",), "git", True),
        (("git",), "/root/of/plan/git", False),
        (("git",), "sh", False),
        (("python",), sys.executable, True),
        (("/usr/bin",), "/usr/bin/env", True),
        (("./tools/*",), "/root/of/plan/tools/make", True),
        (("./tools/*",), "tools/make", True),
        (("./tools/*", "./bin"), "tools/../../../../bin/sh", False),
        (("./tools/*", "./bin"), "bin/../tools/make", True),
        (("sh",), "/bin/sh", True),
    ],
)
def test_programs_are_allowed_by_name_and_path(policy: Any, program: str, expected: bool):
    assert granted(Reached(PROCESS, program, program), processes=policy) is expected


def test_search_in_path_for_an_allowed_program_is_allowed_where_the_file_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "git").touch()  # not executable, so not the program that PATH leads to
    monkeypatch.setenv("PATH", f"{tmp_path}:{tmp_path}/other:{os.environ['PATH']}")

    def is_granted(path: str) -> bool:
        return granted(Reached(PROCESS, path, path), processes=("git",))

    assert is_granted(f"{tmp_path}/git")
    assert not is_granted(f"{tmp_path}/other/git")
    assert not is_granted(f"{tmp_path}/outside/git")
    assert not is_granted(f"{tmp_path}/sh")


@pytest.mark.parametrize(
    ("granted_folder", "path", "expected"),
    [
        ("/data", "/data", True),
        ("/data", "/data/x/y", True),
        ("/data", "/database", False),
        ("/data", "/root/of/plan/../up/f", False),
        ("../up", "/root/of/up/f", True),
    ],
)
def test_folders_are_allowed_with_their_contents(granted_folder: str, path: str, expected: bool):
    assert granted(Reached(WRITE, path, path), writes=(granted_folder,)) is expected


def test_access_must_be_allowed_by_every_policy():
    both = [Sandbox(root="/", network=("a",)), Sandbox(root="/", network="record")]
    assert grants_of(both)(host("a"))
    assert not grants_of([*both, Sandbox(root="/", network="deny")])(host("a"))
    assert denies_anything(both)
    assert not denies_anything([Sandbox(root="/")])
