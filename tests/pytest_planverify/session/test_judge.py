"""Verdicts: every row of the table from what was seen of a session to what a criterion says."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_samples import FAILURE, Told, command

from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict
from pytest_planverify.session.judge import file_of, judge, judge_missing_files
from pytest_planverify.session.records import WorkerRecord


def told(*outcomes: str) -> Told:
    """A session that collected one test an outcome; `-` is a test that never ran."""
    session = Told().collected(*(f"a.py::{number}" for number in range(len(outcomes))))
    for number, outcome in enumerate(outcomes):
        if outcome != "-":
            session.test(f"a.py::{number}", outcome)
    return session


VERDICTS: list[tuple[tuple[str, ...], Verdict]] = [
    (("passed",), Verdict.PASSED),
    (("passed", "passed"), Verdict.PASSED),
    (("passed", "skipped", "xfailed"), Verdict.PASSED),
    (("xpassed",), Verdict.PASSED),
    (("failed",), Verdict.FAILED),
    (("error",), Verdict.FAILED),
    (("crashed",), Verdict.FAILED),
    (("timeout",), Verdict.FAILED),
    (("passed", "failed"), Verdict.FAILED),
    (("failed", "-"), Verdict.FAILED),
    (("skipped",), Verdict.FAILED),
    (("xfailed",), Verdict.FAILED),
    (("skipped", "xfailed"), Verdict.FAILED),
    ((), Verdict.FAILED),
    (("-",), Verdict.INCONCLUSIVE),
    (("passed", "-"), Verdict.INCONCLUSIVE),
    (("skipped", "-"), Verdict.INCONCLUSIVE),
]


@pytest.mark.parametrize(("outcomes", "verdict"), VERDICTS, ids=lambda value: "+".join(value) or "none")
def test_the_verdict_follows_from_the_outcomes_of_the_tests(outcomes: tuple[str, ...], verdict: Verdict):
    judgement = judge(command("a.py"), told(*outcomes).ended(0))

    assert judgement.verdict is verdict
    assert judgement.is_red == bool(judgement.evidence)
    assert [test.outcome for test in judgement.tests] == [
        TestOutcome.NOT_RUN if outcome == "-" else TestOutcome(outcome) for outcome in outcomes
    ]


@pytest.mark.parametrize(
    ("outcomes", "vacuous"),
    [
        ((), "nothing_collected"),
        (("skipped",), "all_skipped"),
        (("xfailed",), "only_xfailed"),
        (("skipped", "xfailed"), "only_xfailed"),
    ],
)
def test_a_check_that_proves_nothing_says_why(outcomes: tuple[str, ...], vacuous: str):
    (evidence,) = judge(command("a.py"), told(*outcomes).ended(0)).evidence

    assert evidence.vacuous == vacuous
    assert evidence.kind is EvidenceKind.SELECTION


def test_the_reason_for_a_skip_is_told():
    session = Told().collected("a.py::0").test("a.py::0", "skipped", reason="needs a GPU")
    session.tell("file_skipped", nodeid="b.py", reason="needs numpy")

    (evidence,) = judge(command("a.py", "b.py"), session.ended(0)).evidence
    assert evidence.headline == "no test ran: all were skipped (needs a GPU)"
    assert evidence.skip_reasons == ("needs a GPU", "needs numpy")

    (elsewhere,) = judge(command("c.py"), Told().collected().ended(0)).evidence
    assert elsewhere.vacuous == "nothing_collected"


def test_an_expression_that_leaves_no_test_is_named_rather_than_the_file():
    wanted = dataclasses.replace(command("a.py"), expression="-k 'not test'")

    (evidence,) = judge(wanted, Told().collected().ended(5)).evidence

    assert evidence.headline == "-k 'not test' selects no test"
    assert [(each.text, each.problem) for each in evidence.selectors] == [("-k 'not test'", "no_match")]


def test_a_file_that_skips_itself_is_all_skipped():
    session = Told().collected().tell("file_skipped", nodeid="b.py", reason="needs numpy")

    (evidence,) = judge(command("b.py"), session.ended(5)).evidence
    assert evidence.vacuous == "all_skipped"


def test_tests_that_take_longer_than_the_criterion_allows_fail_it():
    session = Told().collected("a", "b").test("a", duration_ms=700).test("b", duration_ms=600)

    judgement = judge(command(limit_seconds=1), session.record)

    assert judgement.verdict is Verdict.FAILED
    assert judgement.reason == "took 1.3 s of the 1 s allowed"
    (evidence,) = judgement.evidence
    assert (evidence.timed_out, evidence.swallowed_timeout, evidence.nodeid) == (True, False, "a")


def test_tests_that_take_just_what_is_allowed_pass():
    session = Told().collected("a", "b").test("a", duration_ms=700).test("b", duration_ms=300)

    judgement = judge(command(limit_seconds=1), session.ended())

    assert judgement.verdict is Verdict.PASSED
    assert judgement.duration_ms == 1_000


def test_a_failure_is_told_with_the_seconds_it_took_and_its_limit():
    session = Told().collected("a").test("a", "failed", duration_ms=2_500)

    (evidence,) = judge(command(), session.ended(1)).evidence

    assert (evidence.duration_seconds, evidence.limit_seconds) == (2.5, 10)


@pytest.mark.parametrize("died_in", [{"nodeid": "a"}, {}])
def test_of_what_a_dying_process_said_the_end_is_told(died_in: dict[str, str]):
    session = Told().collected("a").test("a", "crashed") if died_in else Told()

    (evidence,) = judge(command(), session.died(output="x" * 5_000 + "the end", **died_in)).evidence

    assert evidence.stderr_tail.endswith("the end")
    assert len(evidence.stderr_tail) == 4_000


def test_one_test_that_outlives_its_limit_had_swallowed_it():
    session = Told().collected("a").test("a", duration_ms=1700)

    (evidence,) = judge(command(limit_seconds=1), session.record).evidence

    assert evidence.swallowed_timeout


def test_a_soft_limit_shows_as_a_timeout_of_the_test():
    session = Told().collected("a").test("a", "failed", evidence=[{**FAILURE, "timed_out": True}])

    (test,) = judge(command(), session.record).tests

    assert test.outcome is TestOutcome.TIMEOUT


def test_a_test_that_passed_only_when_run_again_is_flaky():
    session = Told().collected("a").tell("test_failure", nodeid="a", attempt=1, evidence=FAILURE)
    judgement = judge(command(), session.test("a", reruns=1).ended(0))

    assert judgement.verdict is Verdict.FLAKY
    (evidence,) = judgement.evidence
    assert [each.passed for each in evidence.confirmations] == [False, True]
    assert evidence.headline == FAILURE["headline"]


def test_a_rerun_whose_first_attempt_left_nothing_is_still_flaky():
    assert judge(command(), Told().collected("a").test("a", reruns=1).ended(0)).verdict is Verdict.FLAKY


def test_a_file_that_does_not_exist_fails_its_command_with_what_looks_like_it():
    judgement = judge_missing_files(command("test_on.py", "b.py"), [("test_on.py", ["test_one.py"])])

    assert (judgement.verdict, judgement.exit_code) == (Verdict.FAILED, 4)
    (evidence,) = judgement.evidence
    assert evidence.headline == "test_on.py does not exist"
    assert evidence.selectors[0].nearest == ("test_one.py",)


def test_a_file_that_cannot_be_collected_fails_its_command():
    session = Told().tell("collection_failure", nodeid="a.py", path="/x", evidence={"kind": "collection"})
    session.collected("b.py::test_1").test("b.py::test_1")

    judgement = judge(command("a.py", "b.py"), session.ended())

    assert judgement.verdict is Verdict.FAILED
    assert [each.nodeid for each in judgement.evidence] == ["a.py"]


def test_a_file_that_ends_the_process_is_told_with_how_it_ended():
    (evidence,) = judge(command("a.py"), Told().died(file="a.py")).evidence

    assert evidence.kind is EvidenceKind.COLLECTION
    assert evidence.headline == "a.py ended the process with SIGSEGV"
    assert evidence.process is not None
    assert evidence.process.signal == "SIGSEGV"


def test_file_names_are_told_without_detours():
    assert file_of("./a//b/../c.py::x[../y]") == "a/c.py"


def test_a_test_that_ended_its_process_is_told_with_how_it_ended():
    session = Told().collected("a", "b").test("a", "crashed").test("b")

    judgement = judge(command(), session.died(nodeid="a"))

    assert judgement.verdict is Verdict.FAILED
    (evidence,) = judgement.evidence
    assert evidence.headline == "a ended the process with SIGSEGV"
    assert evidence.process is not None
    assert not evidence.process.complete


def test_a_test_that_was_ended_is_told_with_its_limit():
    session = Told().collected("a").test("a", "timeout")

    (evidence,) = judge(command(), session.died(nodeid="a", signal=9, timed_out=True)).evidence

    assert evidence.headline == "a was stopped after 10 s"
    assert evidence.timed_out


# -- narrowed by the user --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (("passed",), Verdict.NOT_RUN),
        (("failed",), Verdict.FAILED),
        (("skipped",), Verdict.NOT_RUN),
        (("-",), Verdict.NOT_RUN),
        ((), Verdict.NOT_RUN),
    ],
)
def test_a_narrowed_criterion_is_red_or_not_run_and_never_green(
    outcomes: tuple[str, ...], verdict: Verdict
):
    nodeids = [f"a.py::{number}" for number in range(len(outcomes))]
    session = Told().collected(*nodeids, narrowed=("a.py::left",))
    for nodeid, outcome in zip(nodeids, outcomes, strict=True):
        if outcome != "-":
            session.test(nodeid, outcome)

    judgement = judge(command("a.py"), session.ended(0))

    assert judgement.verdict is verdict


def test_how_many_were_left_out_is_told():
    session = Told().collected("a", narrowed=("b", "c")).test("a")

    assert judge(command(), session.ended(0)).reason == "2 of its tests were deselected"


# -- sessions that ran no tests --------------------------------------------------------------------


def test_a_session_that_could_not_start_fails_with_what_it_wrote_down():
    session = Told().tell(
        "startup_failure", evidence={"kind": "session", "headline": "ImportError: conftest"}
    )

    judgement = judge(command("a.py"), session.ended(4))

    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence[0].headline == "ImportError: conftest"


def test_a_command_whose_test_is_not_found_names_it():
    session = Told().tell(
        "not_found", arguments=["/root/a.py::gone"], nearest={"/root/a.py::gone": ["went"]}
    )

    judgement = judge(command("a.py::gone", "b.py"), session.ended(4))

    (evidence,) = judgement.evidence
    assert [(each.text, each.nearest) for each in evidence.selectors] == [("a.py::gone", ("a.py::went",))]
    assert judgement.exit_code == 4


def test_a_session_that_refused_its_options_says_what_pytest_said():
    complaint = "pytest: error: unrecognized arguments: --foo"
    message = f"usage: pytest [options]\n{complaint}\n  inifile: /shop/tox.ini\n  rootdir: /shop"
    session = Told().tell("usage_error", message=message)

    (evidence,) = judge(command(), session.ended(4)).evidence

    assert evidence.headline == complaint
    assert evidence.kind is EvidenceKind.SESSION


def test_an_option_that_no_plugin_has_is_blamed_on_the_plan_with_the_nearest():
    told = Told().tell("usage_error", message="unrecognized arguments: --maxfial=1 --other")
    session = told.ended(4)

    (evidence,) = judge(command(args=("--maxfial=1",)), session).evidence

    assert evidence.kind is EvidenceKind.SELECTION
    assert evidence.headline == "pytest does not know --maxfial=1"
    (selector,) = evidence.selectors
    assert (selector.text, selector.nearest[0]) == ("--maxfial=1", "--maxfail")


def test_a_session_that_said_nothing_at_all_is_red():
    judgement = judge(command(), WorkerRecord())

    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence


def test_a_session_that_died_before_it_had_collected_is_red():
    (evidence,) = judge(command(), Told().died(signal=9, timed_out=True)).evidence

    assert evidence.timed_out
    assert evidence.process is not None
    assert evidence.process.signal == "SIGKILL"


def test_an_internal_error_behind_the_collection_fails_as_one_before_it():
    text = "Traceback (most recent call last):\npytest.PytestConfigWarning: Unknown config option: x"
    session = Told().collected("test_a.py::test_a").tell("internal_error", text=text).ended(3)

    judgement = judge(command(), session)

    assert (judgement.verdict, judgement.exit_code) == (Verdict.FAILED, 3)
    assert judgement.reason == "pytest.PytestConfigWarning: Unknown config option: x"
    assert [each.kind for each in judgement.evidence] == [EvidenceKind.SESSION]


# -- how the session ended ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [1, 2, 3, 4, 5, 70])
def test_the_exit_status_must_agree(status: int):
    judgement = judge(command(), told("passed").ended(status))

    assert judgement.verdict is Verdict.FAILED
    assert judgement.reason == f"the tests passed, but the session returned {status}"
    assert judgement.exit_code == status


def test_a_process_that_dies_after_its_tests_is_red():
    assert judge(command(), told("passed").died()).reason == (
        "the tests passed, but then the session ended with SIGSEGV"
    )
    assert judge(command(), told("passed").record).reason == (
        "the tests passed, but then the session ended with no exit status"
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"stopped": "stopping after 1 failures"}, "1 test did not run: stopping after 1 failures"),
        ({}, "1 test did not run: the session ended before they ran"),
    ],
)
def test_why_tests_did_not_run_is_told(facts: dict[str, Any], said: str):
    session = told("passed", "-").tell("session_finished", exit_status=1, **facts)

    assert judge(command(), session.record).reason == said


def test_tests_that_a_death_kept_from_running_are_told_with_it():
    assert judge(command(), told("-", "-").died(code=7)).reason == (
        "2 tests did not run: the session ended with exit status 7"
    )


def test_a_session_that_complains_of_its_options_and_still_ran_its_tests_is_judged_by_them():
    session = told("failed").tell("usage_error", message="a warning of a plugin")

    assert judge(command("a.py"), session.ended(1)).tests[0].outcome is TestOutcome.FAILED


def test_of_what_a_session_said_the_last_line_of_the_last_message_is_the_headline():
    session = Told().tell("usage_error", message="first").tell("usage_error", message="second\nthe last\n")

    (evidence,) = judge(command(), session.ended(4)).evidence

    assert evidence.headline == "the last"
    assert evidence.longrepr == "second\nthe last"
    assert evidence.process is not None
    assert (evidence.process.exit_code, evidence.process.complete) == (4, True)


def test_a_session_that_passed_and_died_keeps_the_end_of_what_it_printed():
    session = told("passed")

    (evidence,) = judge(command(), session.died(output="x" * 5_000 + "the end")).evidence

    assert evidence.stderr_tail.endswith("the end")
    assert len(evidence.stderr_tail) == 4_000
    assert evidence.process is not None
    assert evidence.process.signal == "SIGSEGV"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (0, "a process of pytest-xdist did not finish its session"),
        (1, "the session returned 1"),
    ],
)
def test_a_process_of_xdist_that_is_missing_at_the_end_is_red(status: int, said: str):
    session = Told().tell("session_started", worker="gw0", pid=1).collected("a").test("a")

    judgement = judge(command(), session.ended(status))

    assert judgement.verdict is Verdict.FAILED
    assert judgement.reason == f"the tests passed, but {said}"


def test_the_limit_is_compared_with_the_seconds_of_all_tests():
    session = Told().collected("a", "b").test("a", duration_ms=60_000).test("b", duration_ms=40_040)

    judgement = judge(command(limit_seconds=100), session.ended())

    assert judgement.reason == "took 100.0 s of the 100 s allowed"
    assert [each.duration_seconds for each in judgement.evidence] == [100.04]


def test_of_several_overturned_reports_the_first_is_told_with_what_its_test_said_last():
    session = Told().collected("a", "b")
    for name in ("a", "b"):
        for headline in ("once", f"{name} is wrong"):
            raw = FAILURE | {"headline": headline}
            session.tell("test_failure", nodeid=name, attempt=1, evidence=raw)
        session.test(name, "passed").tell("hidden_failure", nodeid=name, count=1, runs=1)

    judgement = judge(command(), session.ended(0))

    assert judgement.reason == "a failed and was reported as passed: a is wrong"
    assert [piece.nodeid for piece in judgement.evidence] == ["a", "b"]


# -- recorded numbers ------------------------------------------------------------------------------


def test_numbers_of_the_tests_and_of_the_suite_are_kept():
    session = Told().collected("a", "b").tell("metric", name="rows", value=7)
    session.test("b", "skipped", properties=[["rows", 5]]).test("a", properties=[["rows", 6]])

    assert judge(command(), session.ended(0)).properties == [("rows", 6), ("rows", 7)]


def test_numbers_of_a_suite_in_which_no_test_ran_count_for_nothing():
    session = Told().collected("a").tell("metric", name="rows", value=7).test("a", "skipped")

    assert judge(command(), session.ended(0)).properties == []


# -- what no session may lead to -------------------------------------------------------------------

RESULTS = st.lists(
    st.sampled_from(
        ["passed", "failed", "error", "skipped", "xfailed", "xpassed", "crashed", "timeout", "-"]
    ),
    max_size=5,
)


@settings(deadline=None)
@given(
    outcomes=RESULTS,
    status=st.sampled_from([None, 0, 1, 2, 3, 5]),
    narrowed=st.booleans(),
    died=st.booleans(),
    duration=st.sampled_from([1.0, 20_000.0]),
)
def test_nothing_passes_that_is_not_proven(
    outcomes: list[str], status: int | None, narrowed: bool, died: bool, duration: float
):
    nodeids = [f"a.py::{number}" for number in range(len(outcomes))]
    session = Told().collected(*nodeids, narrowed=("left",) if narrowed else ())
    for nodeid, outcome in zip(nodeids, outcomes, strict=True):
        if outcome != "-":
            session.test(nodeid, outcome, duration)
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


def test_a_red_for_records_that_are_missing_is_no_answer():
    session = Told()
    assert session.record.follows({"pen": "1.1", "number": 1})
    assert session.record.follows({"pen": "1.1", "number": 3})

    assert judge(command("a.py"), session.ended(0)).verdict is Verdict.INCONCLUSIVE
    session.collected("a.py::0").test("a.py::0", "failed")
    assert judge(command("a.py"), session.record).verdict is Verdict.FAILED


@pytest.mark.parametrize("told", [None, "passed", "failed"])
def test_tests_that_cut_the_records_of_their_own_session_have_tampered(told: str | None):
    session = Told()
    session.record.journal_cut = True
    if told is not None:
        session.collected("a.py::0").test("a.py::0", told)

    judgement = judge(command("a.py"), session.ended(0))

    assert judgement.verdict is Verdict.FAILED
    assert [each.sign for piece in judgement.evidence for each in piece.signals] == ["records-touched"]
    assert len(judgement.evidence) == (2 if told == "failed" else 1)


def test_a_session_that_did_not_end_after_its_tests_is_told_as_a_timeout():
    session = Told().collected("a.py::0").test("a.py::0")
    session.died(signal=6, timed_out=True)

    (evidence,) = judge(command("a.py"), session.record).evidence
    assert evidence.timed_out
    assert evidence.process is not None
    assert evidence.process.timed_out
    assert "did not end" in evidence.headline
