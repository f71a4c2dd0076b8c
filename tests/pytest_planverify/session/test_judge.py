"""Verdicts: each row of the table from the record of a session to the verdict of its criterion."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_samples import FAILURE, Session, command

from planner.catalog.pytest_arguments import parse_pytest_arguments
from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict
from pytest_planverify.checks.result import Judgement
from pytest_planverify.session.judge import judge, judge_missing_files, options_of
from pytest_planverify.session.records import WorkerRecord


def session_of(*outcomes: str, narrowed: tuple[str, ...] = (), duration_ms: float = 5) -> Session:
    """Return a session that collected one test per outcome; ``-`` is a test that never ran."""
    session = Session().collected(
        *(f"a.py::{number}" for number in range(len(outcomes))), narrowed=narrowed
    )
    for number, outcome in enumerate(outcomes):
        if outcome != "-":
            session.test(f"a.py::{number}", outcome, duration_ms)
    return session


VERDICTS: list[tuple[tuple[str, ...], Verdict]] = [
    (("passed", "skipped", "xfailed"), Verdict.PASSED),
    (("xpassed",), Verdict.PASSED),
    (("failed",), Verdict.FAILED),
    (("passed", "failed"), Verdict.FAILED),
    (("failed", "-"), Verdict.FAILED),
    (("passed", "-"), Verdict.INCONCLUSIVE),
    (("skipped", "-"), Verdict.INCONCLUSIVE),
]
VACUOUS = {
    (): "nothing_collected",
    ("skipped",): "all_skipped",
    ("xfailed",): "only_xfailed",
    ("skipped", "xfailed"): "only_xfailed",
}


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [*VERDICTS, *((outcomes, Verdict.FAILED) for outcomes in VACUOUS)],
    ids=lambda value: "+".join(value) or "none",
)
def test_verdict_follows_from_test_outcomes_and_vacuous_checks_have_a_reason(
    outcomes: tuple[str, ...], verdict: Verdict
):
    judgement = judge(command("a.py"), session_of(*outcomes).ended(0))
    assert judgement.verdict is verdict
    assert [test.outcome for test in judgement.tests] == [
        TestOutcome.NOT_RUN if outcome == "-" else TestOutcome(outcome) for outcome in outcomes
    ]
    if outcomes in VACUOUS:
        (evidence,) = judgement.evidence
        assert (evidence.kind, evidence.vacuous) == (EvidenceKind.SELECTION, VACUOUS[outcomes])


def test_skip_reason_is_reported_also_for_skipped_files():
    session = Session().collected("a.py::0").test("a.py::0", "skipped", reason="needs a GPU")
    session.feed("file_skipped", nodeid="b.py", reason="needs numpy")
    (evidence,) = judge(command("a.py", "b.py"), session.ended(0)).evidence
    assert evidence.headline == "no test ran: all were skipped (needs a GPU)"
    assert evidence.skip_reasons == ("needs a GPU", "needs numpy")
    file_alone = Session().collected().feed("file_skipped", nodeid="b.py", reason="needs numpy")
    (evidence,) = judge(command("b.py"), file_alone.ended(5)).evidence
    assert evidence.vacuous == "all_skipped"


def test_expression_that_selects_no_test_is_named():
    wanted = command("a.py", expression="-k 'not test'")
    (evidence,) = judge(wanted, Session().collected().ended(5)).evidence
    assert evidence.headline == "-k 'not test' selects no test"
    assert [(each.text, each.problem) for each in evidence.selectors] == [("-k 'not test'", "no_match")]


@pytest.mark.parametrize(
    ("durations", "reason", "swallowed"),
    [
        ((700, 300), None, False),
        ((700, 600), "took 1.3 s of the 1 s allowed", False),
        ((1_700,), "took 1.7 s of the 1 s allowed", True),
    ],
    ids=["within the limit", "together too long", "one test alone too long"],
)
def test_total_duration_of_tests_is_limited_by_the_criterion(
    durations: tuple[int, ...], reason: str | None, swallowed: bool
):
    names = "ab"[: len(durations)]
    session = Session().collected(*names)
    for nodeid, duration in zip(names, durations, strict=True):
        session.test(nodeid, duration_ms=duration)

    judgement = judge(command(limit_seconds=1), session.ended())

    assert judgement.verdict is (Verdict.FAILED if reason else Verdict.PASSED)
    assert (judgement.reason, judgement.duration_ms) == (reason, sum(durations))
    late = [each for each in judgement.evidence if each.timed_out]
    assert [(each.nodeid, each.duration_seconds, each.swallowed_timeout) for each in late] == (
        [("a", sum(durations) / 1000, swallowed)] if reason else []
    )


def test_a_pass_of_a_test_that_was_interrupted_at_the_limit_the_parent_observed_is_a_timeout():
    session = Session().feed("session_started", pid=1).collected("a", "b")
    session.test("a").test("b", duration_ms=1e12).ended()
    assert judge(command(limit_seconds=10), session.record).verdict is Verdict.PASSED
    session.record.interrupted = {"a", "of another command"}
    (evidence,) = judge(command(limit_seconds=10), session.record).evidence
    assert (evidence.nodeid, evidence.timed_out, evidence.swallowed_timeout) == ("a", True, True)


KILLED = {"signal": "SIGKILL", "timed_out": True}
IN_TEST = {"nodeid": "a.py::0"}
OF_SESSION, OF_FILE, OF_TEST = EvidenceKind.SESSION, EvidenceKind.COLLECTION, EvidenceKind.TEST
GREEN_BUT, STOPPED = "the tests passed, but then the session", "was stopped after 10 s"
DEATHS: dict[str, tuple[tuple[str, ...] | None, dict[str, Any], EvidenceKind, str]] = {
    "before the collection": (None, {}, OF_SESSION, "the session ended the process with SIGSEGV"),
    "killed before it": (None, KILLED, OF_SESSION, "the session was stopped after 10 s"),
    "in a file": (None, {"file": "a.py"}, OF_FILE, "a.py ended the process with SIGSEGV"),
    "in a test": (("crashed", "passed"), IN_TEST, OF_TEST, "a.py::0 ended the process with SIGSEGV"),
    "killed in a test": (("timeout",), IN_TEST | KILLED, OF_TEST, "a.py::0 was stopped after 10 s"),
    "after green tests": (("passed",), {}, OF_SESSION, f"{GREEN_BUT} ended with SIGSEGV"),
    "killed after them": (("passed",), KILLED, OF_SESSION, f"{GREEN_BUT} did not end, and {STOPPED}"),
}


@pytest.mark.parametrize(("outcomes", "facts", "kind", "headline"), DEATHS.values(), ids=DEATHS)
def test_crashed_session_fails_with_its_exit_and_last_output(
    outcomes: tuple[str, ...] | None, facts: dict[str, Any], kind: EvidenceKind, headline: str
):
    session = Session() if outcomes is None else session_of(*outcomes)

    judgement = judge(command("a.py"), session.died(output="x" * 5_000 + "the end", **facts))

    assert judgement.verdict is Verdict.FAILED
    (evidence,) = judgement.evidence
    assert (evidence.kind, evidence.headline) == (kind, headline)
    assert (len(evidence.stderr_tail), evidence.stderr_tail[-7:]) == (4_000, "the end")
    end = evidence.process
    was_killed = "timed_out" in facts
    assert evidence.timed_out is end.timed_out is was_killed
    assert (end.signal, end.complete) == ("SIGKILL" if was_killed else "SIGSEGV", False)


def test_soft_limit_is_a_timeout_of_the_test_and_the_limit_of_pytest_timeout_none_of_the_criterion():
    timeout = [{**FAILURE, "timed_out": True}]
    session = Session().collected("a").test("a", "failed", duration_ms=2_500, evidence=timeout)
    judgement = judge(command(), session.record)
    assert [test.outcome for test in judgement.tests] == [TestOutcome.TIMEOUT]
    assert [(each.duration_seconds, each.limit_seconds) for each in judgement.evidence] == [(2.5, 10)]
    ended = session_of("timeout").died(code=1, timed_out=True, **IN_TEST)
    (evidence,) = judge(command("a.py"), ended).evidence
    assert (evidence.timed_out, evidence.limit_seconds) == (True, None)
    assert evidence.headline == "a.py::0 ended the process with exit status 1"


def test_test_that_passed_only_on_rerun_is_flaky():
    session = Session().collected("a").feed("test_failure", nodeid="a", attempt=1, evidence=FAILURE)
    judgement = judge(command(), session.test("a", reruns=1).ended(0))
    assert judgement.verdict is Verdict.FLAKY
    (evidence,) = judgement.evidence
    assert [each.passed for each in evidence.confirmations] == [False, True]
    assert evidence.headline == FAILURE["headline"]
    first_left_nothing = Session().collected("a").test("a", reruns=1)
    assert judge(command(), first_left_nothing.ended(0)).verdict is Verdict.FLAKY


def test_collection_error_fails_the_command():
    session = Session().feed(
        "collection_failure", nodeid="a.py", path="/x", evidence={"kind": "collection"}
    )
    session.collected("b.py::test_1").test("b.py::test_1")
    judgement = judge(command("a.py", "b.py"), session.ended())
    assert judgement.verdict is Verdict.FAILED
    assert [each.nodeid for each in judgement.evidence] == ["a.py"]


@pytest.mark.parametrize(
    ("outcomes", "verdict", "reason"),
    [
        (("passed",), Verdict.NOT_RUN, "2 of its tests were deselected"),
        (("failed",), Verdict.FAILED, None),
        (("skipped",), Verdict.NOT_RUN, "all of its tests were deselected"),
        ((), Verdict.NOT_RUN, "all of its tests were deselected"),
    ],
)
def test_narrowed_criterion_is_never_passed(
    outcomes: tuple[str, ...], verdict: Verdict, reason: str | None
):
    judgement = judge(command("a.py"), session_of(*outcomes, narrowed=("left", "out")).ended(0))
    assert (judgement.verdict, judgement.reason) == (verdict, reason)


# -- sessions that ran no tests --------------------------------------------------------------------


def test_missing_test_or_file_is_named_with_similar_ones():
    missing = "/root/sub/extra_a.py::gone"
    session = Session().feed("not_found", arguments=[missing], nearest={missing: ["went"]}).ended(4)
    of_test = judge(command("a.py::gone", "./sub//b/../extra_a.py::gone"), session)
    of_file = judge_missing_files(command("test_on.py", "b.py"), [("test_on.py", ["test_one.py"])])
    for judgement, nearest in ((of_test, "sub/extra_a.py::went"), (of_file, "test_one.py")):
        assert (judgement.verdict, judgement.exit_code) == (Verdict.FAILED, 4)
        assert [each.nearest for each in judgement.evidence[0].selectors] == [(nearest,)]
    assert of_file.evidence[0].headline == "test_on.py does not exist"


COMPLAINT = "pytest: error: unrecognized arguments: --foo"


@pytest.mark.parametrize(
    ("messages", "headline"),
    [
        ((f"usage: pytest [options]\n{COMPLAINT}\n  inifile: /x/tox.ini\n  rootdir: /x",), COMPLAINT),
        (("first", "second\nthe last\n"), "the last"),
    ],
)
def test_refused_options_report_the_message_of_pytest(messages: tuple[str, ...], headline: str):
    session = Session()
    for message in messages:
        session.feed("usage_error", message=message)
    (evidence,) = judge(command(), session.ended(4)).evidence
    assert (evidence.kind, evidence.headline) == (EvidenceKind.SESSION, headline)
    assert evidence.longrepr == messages[-1].strip()
    assert (evidence.process.exit_code, evidence.process.complete) == (4, True)


def test_unknown_option_is_a_plan_fault_with_a_suggestion():
    session = Session().feed("usage_error", message="unrecognized arguments: --maxfial=1 --other")
    (evidence,) = judge(command(args=("--maxfial=1",)), session.ended(4)).evidence
    assert evidence.kind is EvidenceKind.SELECTION
    assert evidence.headline == "pytest does not know --maxfial=1"
    (selector,) = evidence.selectors
    assert (selector.text, selector.nearest[0]) == ("--maxfial=1", "--maxfail")


@pytest.mark.parametrize(
    ("name", "value", "args"),
    [
        ("PYTEST_ADDOPTS", "-k 'a b'", ("-k", "a b")),
        ("PYTEST_ADDOPTS", "-k '", ()),
        ("PYTEST_PLUGINS", "a,b.c", ("-p", "a", "-p", "b.c")),
        ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1", ("--disable-plugin-autoload",)),
    ],
)
def test_variables_of_a_command_stand_for_options(name: str, value: str, args: tuple[str, ...]):
    invocation = parse_pytest_arguments(("pytest",), ("a.py",), foreign=False, as_module=False)
    assert options_of(invocation, {name: value}).args == (*args, "a.py")


_CONFIG = "Config file '/p/no.ini' not found. Check your '-c/--config-file' option."
_PROFILE = "hypothesis.errors.InvalidArgument: Profile 'x' is not registered"
_WARNING = "while parsing the following warning configuration:\n\n  no::x\n\ninvalid action: 'no'"


@pytest.mark.parametrize(
    ("args", "message", "refused"),
    [
        (("-c", "no.ini"), _CONFIG, "-c no.ini"),
        (("--maxfail=x",), "usage: pytest\npytest: error: argument --maxfail: invalid", "--maxfail=x"),
        (("-k", "a or"), "Wrong expression passed to '-k': a or: at column 5", "-k 'a or'"),
        (("-o", "no"), "-o/--override-ini expects option=value style (got: 'no').", "-o no"),
        (("-W", "no::x"), _WARNING, "-W no::x"),
        (("-m", "slow"), "Unknown marker(s) in '-m' expression: slow. Use 'pytest --markers'", "-m slow"),
        (("--hypothesis-profile=x",), _PROFILE, "--hypothesis-profile=x"),
        (("-p", "no:cov", "-p", "no:x"), "error: unrecognized arguments: -q9 --cov-report=x", "-p no:cov"),
        (("-p", "no:pytest_cov"), "error: unrecognized arguments: --cov", "-p no:pytest_cov"),
        (("-p", "no:xdist", "-p", "no:cov"), "error: unrecognized arguments: -n 4", "-p no:xdist"),
        (("-p", "no:cov", "-p", "no:asyncio"), "Unknown config option: asyncio_mode", "-p no:asyncio"),
        (("--disable-plugin-autoload",), "Unknown config option: a_mode", "--disable-plugin-autoload"),
        (("-p", "cov", "-p", "x"), "ValueError: option names {'--cov'} already added", "-p cov"),
        (("-p", "no.x", "-p", "y"), "Error importing plugin \"no.x\": No module named 'no'", "-p no.x"),
    ],
)
def test_refused_value_is_a_plan_fault_if_the_command_gives_it(
    args: tuple[str, ...], message: str, refused: str
):
    session = Session().feed("usage_error", message=message).ended(4)
    (own,) = judge(command(args=args), session).evidence
    (other,) = judge(command(args=("-v",)), session).evidence
    assert [(each.text, each.problem) for each in own.selectors] == [(refused, "bad_value")]
    assert own.headline in message
    starting = Session().feed("startup_failure", evidence={"kind": "session", "headline": message})
    assert judge(command(args=args), starting.ended(4)).evidence[0].selectors == own.selectors
    # It stands in an ini file or in PYTEST_ADDOPTS.
    assert other.kind is EvidenceKind.SESSION
    ran = session_of("failed").feed("usage_error", message=message).ended(1)
    assert judge(command("a.py", args=args), ran).tests[0].outcome is TestOutcome.FAILED


def test_session_that_cannot_start_fails_with_or_without_a_record():
    failure = {"kind": "session", "headline": "ImportError: conftest"}
    for session, headline in (
        (Session().feed("startup_failure", evidence=failure), "ImportError: conftest"),
        (Session(), "the session returned None and ran no test"),
    ):
        judgement = judge(command("a.py"), session.record)
        assert judgement.verdict is Verdict.FAILED
        assert [each.headline for each in judgement.evidence] == [headline]


def test_internal_error_after_collection_fails_the_session():
    source = 'Traceback:\n  File "a.py", line 1, in f\n    warn(f"Unknown config option: {key}\\n")\n'
    text = f"{source}pytest.PytestConfigWarning: Unknown config option: x_mode\nSee the manual."
    session = Session().collected("test_a.py::test_a").feed("internal_error", text=text).ended(3)

    judgement = judge(command(), session)
    (caused,) = judge(command(args=("-p", "no:x")), session).evidence

    assert (judgement.verdict, judgement.exit_code) == (Verdict.FAILED, 3)
    assert judgement.reason == "pytest.PytestConfigWarning: Unknown config option: x_mode"
    assert [each.kind for each in judgement.evidence] == [EvidenceKind.SESSION]
    assert [each.text for each in caused.selectors] == ["-p no:x"]


# -- how the session ended ---------------------------------------------------------------------------


def finished(*outcomes: str, **facts: Any) -> Session:
    return session_of(*outcomes).feed("session_finished", exit_status=1, **facts)


def stopped(reason: str) -> WorkerRecord:
    return session_of("passed", "-").feed("stopped", reason=reason).ended(2)


def unfinished_xdist(status: int) -> WorkerRecord:
    """Return the record of a session one of whose pytest-xdist workers did not finish."""
    session = Session().feed("session_started", worker="gw0", pid=1)
    return session.collected("a").test("a").ended(status)


WARNING = "pytest.PytestConfigWarning: Unknown config option: x"
INTERNAL_ERROR = {"text": f"Traceback (most recent call last):\n{WARNING}"}
BUT, NOT_RUN = "the tests passed, but", "1 test did not run:"
ENDS: dict[str, tuple[WorkerRecord, int | None, str]] = {
    "status 1": (session_of("passed").ended(1), 1, f"{BUT} the session returned 1"),
    "status 5": (session_of("passed").ended(5), 5, f"{BUT} the session returned 5"),
    "no status": (session_of("passed").record, None, f"{GREEN_BUT} ended with no exit status"),
    "coverage": (
        finished("passed", coverage=[60.25, 90]).ended(1),
        1,
        f"{BUT} they cover 60.25 %, and the limit is 90 %",
    ),
    "xdist": (unfinished_xdist(0), 0, f"{BUT} a process of pytest-xdist did not finish its session"),
    "xdist and 1": (unfinished_xdist(1), 1, f"{BUT} the session returned 1"),
    "own code": (stopped("a"), 2, f"{NOT_RUN} a"),
    "internal error": (session_of("-").feed("internal_error", **INTERNAL_ERROR).ended(3), 3, WARNING),
}
INCONCLUSIVE: dict[str, tuple[WorkerRecord, int | None, str]] = {
    "early end": (finished("passed", "-").record, None, f"{NOT_RUN} the session ended before they ran"),
    "limit": (finished("passed", "-", stopped="after 1").record, None, f"{NOT_RUN} after 1"),
    "death": (session_of("-").died(code=7), None, f"{NOT_RUN} the session ended with exit status 7"),
    "interrupt": (stopped("KeyboardInterrupt: "), 2, f"{NOT_RUN} KeyboardInterrupt: "),
}


@pytest.mark.parametrize("name", [*ENDS, *INCONCLUSIVE])
def test_session_that_ended_otherwise_than_its_passed_tests_does_not_pass_and_says_why(name: str):
    record, status, reason = (ENDS | INCONCLUSIVE)[name]
    judgement = judge(command(), record)
    verdict = Verdict.FAILED if name in ENDS else Verdict.INCONCLUSIVE
    kind = EvidenceKind.METRIC if name == "coverage" else EvidenceKind.SESSION
    assert (judgement.verdict, judgement.exit_code, judgement.reason) == (verdict, status, reason)
    assert [each.kind for each in judgement.evidence] == ([kind] if name in ENDS else [])


@pytest.mark.parametrize(("coverage", "verdict"), [(None, Verdict.PASSED), ([60.25, 90], Verdict.FAILED)])
def test_forgiven_failures_do_not_excuse_too_little_coverage(
    coverage: list[float] | None, verdict: Verdict
):
    def forgive(judgement: Judgement) -> Judgement:
        return dataclasses.replace(judgement, verdict=Verdict.PASSED, evidence=(), forgiven=True)

    session = session_of("passed", "failed").feed("session_finished", exit_status=1, coverage=coverage)

    assert judge(command(view=forgive), session.ended(1)).verdict is verdict


def test_session_that_returns_0_without_a_test_fails_and_names_the_option():
    for session in (session_of("-"), Session()):
        judgement = judge(command("a.py", args=("a.py", "--co")), session.ended(0))
        (evidence,) = judgement.evidence
        assert judgement.verdict is Verdict.FAILED
        assert evidence.headline == "no test ran, and the session returned 0 (--co)"
        assert [each.text for each in evidence.selectors] == ["--co"]


def test_first_of_several_overturned_reports_is_named_in_the_reason():
    session = Session().collected("a", "b")
    for name in ("a", "b"):
        for headline in ("once", f"{name} is wrong"):
            raw = FAILURE | {"headline": headline}
            session.feed("test_failure", nodeid=name, attempt=1, evidence=raw)
        session.test(name, "passed").feed("hidden_failure", nodeid=name, count=1, runs=1)
    judgement = judge(command(), session.ended(0))
    assert judgement.reason == "a failed and was reported as passed: a is wrong"
    assert [piece.nodeid for piece in judgement.evidence] == ["a", "b"]


def test_metrics_are_kept_only_from_tests_that_ran():
    session = Session().collected("a", "b").feed("metric", name="rows", value=7)
    session.test("b", "skipped", properties=[["rows", 5]])
    assert judge(command(), session.record).properties == []
    session.test("a", properties=[["rows", 6]])
    assert judge(command(), session.ended(0)).properties == [("rows", 6), ("rows", 7)]


RESULTS = st.lists(
    st.sampled_from(
        ["passed", "failed", "error", "skipped", "xfailed", "xpassed", "crashed", "timeout", "-"]
    ),
    max_size=5,
)


@given(
    outcomes=RESULTS,
    status=st.sampled_from([None, 0, 1, 2, 3, 5]),
    narrowed=st.booleans(),
    died=st.booleans(),
    duration=st.sampled_from([1.0, 20_000.0]),
)
def test_only_proven_sessions_pass(
    outcomes: list[str], status: int | None, narrowed: bool, died: bool, duration: float
):
    session = session_of(*outcomes, narrowed=("left",) if narrowed else (), duration_ms=duration)
    if died:
        session.died()
    record = session.record if status is None else session.ended(status)
    proven = (
        bool({"passed", "xpassed"} & set(outcomes))
        and not {"failed", "error", "crashed", "timeout", "-"} & set(outcomes)
        and not narrowed
        and duration * len(outcomes) <= 10_000
    )

    judgement = judge(command("a.py"), record)

    assert (judgement.verdict is Verdict.PASSED) == (proven and status == 0)
    assert judgement.is_red == bool(judgement.evidence)


def test_missing_records_make_a_failure_inconclusive():
    session = Session()
    assert session.record.follows({"pen": "1.1", "number": 1})
    assert session.record.follows({"pen": "1.1", "number": 3})
    assert judge(command("a.py"), session.ended(0)).verdict is Verdict.INCONCLUSIVE
    session.collected("a.py::0").test("a.py::0", "failed")
    assert judge(command("a.py"), session.record).verdict is Verdict.FAILED


@pytest.mark.parametrize("outcomes", [(), ("passed",), ("failed",)], ids="-".join)
def test_truncated_journal_is_a_tampering_signal(outcomes: tuple[str, ...]):
    session = session_of(*outcomes) if outcomes else Session()
    session.record.journal_cut = True
    judgement = judge(command("a.py"), session.ended(0))
    assert judgement.verdict is Verdict.FAILED
    assert [each.sign for piece in judgement.evidence for each in piece.signals] == ["records-touched"]
    assert len(judgement.evidence) == 1 + outcomes.count("failed")
