"""The summary of a run on the terminal, and the tree of a plan with its sub-plans."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import outcome_samples as samples
import pytest
from _pytest._io.wcwidth import wcswidth
from hypothesis import given
from hypothesis import strategies as st
from outcome_samples import RSI_FAILURE, check, document, momentum_plan, outcome, screen_text, summary
from text_bundles import unpack_bundle

from planner.model.outcome import Failure, Outcome, OutcomeDocument, PlanRef
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind, Since, TestOutcome, TodoState, Verdict
from planner.planfile.loader import LoadedPlan
from planner.planfile.tree import load_tree
from pytest_planverify.reports.terminal import final_line, render_tree
from pytest_planverify.reports.words import Standing, standing

OUTCOMES = ".planverify/outcomes.json"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def test_green_run_has_the_name_of_the_plan_and_one_line_per_todo_with_a_wrapped_title(
    tmp_path: Path,
) -> None:
    plans = [samples.momentum_plan(tmp_path)]
    shown = summary(samples.green_document(), outcomes_path=OUTCOMES, plans=plans)
    assert "✗" not in shown
    assert shown.startswith("\nMomentum Strategy with RSI  examples/momentum/plan.yaml\n")
    assert (
        dedent("""\
        ✓ done  t2_indicators        Indicator & Candle         1 check   3 tests  0.21s
                                     Patterns
        ✓ done  t3_entry             Entry Strategy             1 check   3 tests  0.10s
        ✓ done  t4_exit              Exit & Risk Rules          2 checks  3 tests  3.12s

        outcomes  .planverify/outcomes.json
        =============================== 4 done in 1.24s ================================
        """)
        in shown
    )


def test_failed_todo_shows_reasons_and_next_steps() -> None:
    assert summary(samples.red_document(), outcomes_path=OUTCOMES, width=100) == dedent("""\

        workflow_momentum_001  examples/momentum/plan.yaml
        ✓ done     t1_data_integration  Data Integration Adapter       3 checks    3 tests  0.21s
            rows_min=250 (>= 10)
        ✗ failed   t2_indicators        Indicator & Candle Patterns  1/3 checks  2/5 tests  0.10s
            signals=3 (>= 5)
            why    TEST_REGRESSION: the product is at fault, 97% sure
            test   tests/test_indicators.py::test_rsi_values and 2 more
            says   AssertionError: assert 32.1 == 28.5 ± 0.1
            where  indicators/rsi.py:31 in compute_rsi
            fix    compute_rsi returned 32.1 where 28.5 ± 0.1 is expected: look at the smoothing in
                   indicators/rsi.py:31, and leave the test as it is.
            who    coder
            also   METRIC_UNMET (coder): signals recorded 3, must be >= 5
            rerun  pytest --planverify examples/momentum/plan.yaml::t2_indicators

        – blocked  t3_entry             Entry Strategy               by t2_indicators
        – blocked  t4_exit              Exit & Risk Rules            by t3_entry and 1 more

        outcomes  .planverify/outcomes.json
        =============================== 1 done, 1 failed, 2 blocked in 1.24s ===============================
        """)


def test_narrow_terminal_moves_titles_below_and_breaks_no_name() -> None:
    shown = summary(samples.red_document(), width=40).splitlines()
    assert shown[2:5] == [
        "✓ done     t1_data_integration    3 checks    3 tests  0.21s",
        "    Data Integration Adapter,",
        "    rows_min=250 (>= 10)",
    ]
    assert "    test   tests/test_indicators.py::test_rsi_values and 2 more" in shown
    assert shown[-1] == "= 1 done, 1 failed, 2 blocked in 1.24s ="


def test_title_with_a_word_wider_than_its_column_moves_below_the_line_on_a_terminal() -> None:
    path = f"packages/alpha/{'tests/' * 4}test_core.py"
    found = document(outcome("packages-alpha", f"{path} passes", TodoState.DONE))
    assert f"packages-alpha  no checks  0.21s\n    {path}\n    passes\n" in summary(found, width=60)
    assert f"packages-alpha  {path} passes  no checks  0.21s\n" in summary(found, width=None)


def test_reused_verdicts_are_one_dim_line() -> None:
    old = {"taken_from": "20261122T0327"}
    kept = outcome("t1", "One", TodoState.DONE, check("tests[0]").model_copy(update=old))
    checks = [check("tests[0]").model_copy(update=old), check("tests[1]")]
    shown = summary(document(kept, outcome("t2", "Two", TodoState.DONE, *checks)), color=True)
    plain = ESCAPES.sub("", shown)
    line = next(line for line in shown.splitlines() if "t1  " in line)
    assert "✓ done  t1  One  from run 20261122T0327 (unchanged since)\n" in plain
    assert set(ESCAPES.findall(line)) == {"\x1b[2m", "\x1b[0m"}
    assert "✓ done  t2  Two  2 checks  0.21s  1 check from run 20261122T0327\n" in plain


def test_failed_todo_of_which_no_command_ran_has_one_line_unless_verbose() -> None:
    old = {"taken_from": "20261122T0327", "cmd": "pytest tests"}
    red = check("tests[0]", verdict=Verdict.FAILED).model_copy(update=old)
    missing = check("expected_artifacts[0]", CheckKind.ARTIFACT, Verdict.FAILED)
    shown = document(of_rsi().model_copy(update={"checks": (red, missing)}))
    assert "1 check from run 20261122T0327\n\noutcomes" in summary(shown, outcomes_path=OUTCOMES, width=100)
    assert "    why    TEST_REGRESSION" in summary(shown, verbosity=1)
    rerun = shown.outcomes[0].model_copy(update={"checks": (red, check("tests[1]", cmd="pytest"))})
    assert "    why    TEST_REGRESSION" in summary(document(rerun))


def test_reason_for_omitted_todos_is_shown_once() -> None:
    reasons = {
        name: f"not selected in this run; it {'changed' if name == 'c' else 'is new'}" for name in "abcd"
    }
    left_out = {
        name: check("tests[0]", verdict=Verdict.NOT_RUN, reason=why) for name, why in reasons.items()
    }
    todos = [outcome(name, "Todo", TodoState.PENDING, each) for name, each in left_out.items()]
    text = summary(document(*todos, exit_status=1))
    assert [text.count(words) for words in ("it is new", "it changed", "· not run")] == [1, 1, 4]


def test_unfinished_todos_show_their_reason() -> None:
    shown = summary(samples.mixed_document())
    assert shown.endswith(
        dedent("""\
        – blocked       t3_entry             Entry Strategy            by t2_indicators
        ? needs human   t5_review            Chart review              1/2 checks  0.21s
            asks   Does the equity curve look right to someone who trades?

        ! inconclusive  t6_types             Types                     0/1 check   0.21s
            why    tests[0] is inconclusive: the virtual environment .venv has no
                   python: create it, then run again

        · not run       t7_exit              Exit rules
            narrowed by -k rsi
        ! inconclusive  t8_slippage          Slippage model            0/1 check   0.21s
            why    tests[0] is inconclusive: all 2 tests were skipped (needs a broker):
                   skipped tests prove nothing

        note      the session ended with exit status 1 though no test failed: coverage
                  of 71 % is below 80 %
        1 done, 1 failed, 1 blocked, 1 needs human, 2 inconclusive, 1 not run in 1.24s
        """)
    )


FLAKY = check("tests[0]", verdict=Verdict.FLAKY, reason="red once, green twice")
RED = check("tests[1]", verdict=Verdict.FAILED, reason="is gone")


def test_quiet_summary_has_one_line_per_failed_todo_and_a_final_line() -> None:
    assert summary(samples.red_document(), verbosity=-1) == dedent("""\
        ✗ failed t2_indicators: TEST_REGRESSION (coder): AssertionError: assert 32.1 == 28.5 ± 0.1
        ===================== 1 done, 1 failed, 2 blocked in 1.24s =====================
        """)
    assert summary(samples.mixed_document(), verbosity=-1).splitlines()[1:3] == [
        "? needs human t5_review: Does the equity curve look right to someone who trades?",
        "! inconclusive t6_types: the virtual environment .venv has no python: create it, then run again",
    ]


def test_verbose_summary_shows_every_check_and_rule() -> None:
    shown = summary(samples.red_document(), verbosity=1, width=100)
    lines = [line.strip() for line in shown.splitlines()]
    first = lines.index("✓ passed  tests[0]               pytest tests/test_adapter.py -q  3 tests  0.19s")
    assert lines[first + 1 : first + 3] == [
        "✓ passed  expected_artifacts[0]  data/ohlcv.csv  1ms",
        "✓ passed  metrics[0]             rows_min >= 10",
    ]
    assert "    ✓ passed  tests[1]    ruff check indicators  0.02s\n" in shown
    assert "    rule   assertion-in-test: an assertion of the test compared a value" in shown
    assert "    or     SPEC_MISMATCH (2%)\n" in shown
    assert "PASSED" not in shown


def test_traceback_is_shown_once_and_only_when_verbose() -> None:
    text = "    def test_rsi():\n>       assert x == 1\nE       assert 2 == 1\n"
    key = (samples.PLAN, "t2_indicators", "tests[0]")
    longreprs = {key: [("a.py::t", text)], (samples.PLAN, "t9", "tests[0]"): [("a.py::t", text)]}
    assert "assert x == 1" not in summary(samples.red_document(), longreprs=longreprs)
    shown = summary(samples.red_document(), longreprs=longreprs, verbosity=1)
    assert shown.count(">       assert x == 1\nE       assert 2 == 1\n") == 1
    assert shown.splitlines()[1] == " t2_indicators: a.py::t ".center(80, "_")


def test_ascii_stream_gets_ascii_marks_and_escaped_text() -> None:
    shown = summary(samples.red_document(), encoding="ascii")
    assert "x failed   t2_indicators        Indicator &" in shown
    assert "+ done     t1_data_integration" in shown
    assert "- blocked  t3_entry" in shown
    assert r"    says   AssertionError: assert 32.1 == 28.5 \xb1 0.1" in shown


def test_colour_adds_only_escape_sequences() -> None:
    shown = samples.mixed_document()
    plain = summary(shown, verbosity=2, outcomes_path=OUTCOMES)
    coloured = summary(shown, verbosity=2, outcomes_path=OUTCOMES, color=True)
    assert ESCAPES.sub("", coloured) != coloured
    stripped = [line.rstrip() for line in ESCAPES.sub("", coloured).splitlines()]
    assert stripped == plain.splitlines()


@pytest.mark.parametrize(
    ("shown", "text", "colour"),
    [
        (samples.green_document(), "4 done in 1.24s", "\x1b[32m"),
        (samples.red_document(), "1 done, 1 failed, 2 blocked in 1.24s", "\x1b[31m"),
        (document(outcome("t", "T", TodoState.TEST_FAILED, FLAKY)), "1 flaky in 1.24s", "\x1b[33m"),
        (document(samples.TODOS["t7_exit"], exit_status=0), "1 not run in 1.24s", "\x1b[33m"),
        (document(exit_status=5, duration_ms=7), "nothing to verify in 7ms", "\x1b[33m"),
        (document(samples.TODOS["t7_exit"], exit_status=2), "interrupted, 1 not run in 1.24s", "\x1b[31m"),
    ],
)
def test_final_line_has_counts_and_one_colour(shown: OutcomeDocument, text: str, colour: str) -> None:
    assert final_line(shown)[0] == text
    last = summary(shown, color=True).splitlines()[-1]
    assert last.startswith(colour)
    assert last.count("\x1b[0m") == 1
    assert f" {text} " in last


@pytest.mark.parametrize(
    ("verified", "kept", "text"),
    [
        ("a", "b", "1 done in 1.24s; kept from earlier runs: 1 failed"),
        ("bc", "ad", "1 failed, 1 blocked in 1.24s; kept from earlier runs: 2 done"),
        ("", "ab", "nothing verified in 1.24s; kept from earlier runs: 1 done, 1 failed"),
    ],
)
def test_final_line_counts_kept_todos_apart(verified: str, kept: str, text: str) -> None:
    states = {"a": TodoState.DONE, "b": TodoState.TEST_FAILED, "c": TodoState.BLOCKED, "d": TodoState.DONE}
    todos: list[Outcome] = []
    for todo_id in sorted(verified + kept):
        verdict = Verdict.FAILED if todo_id == "b" else Verdict.PASSED
        run_id = "20261122T0327" if todo_id in kept + "c" else None  # its own check passed before
        checks = (
            check("tests[0]", verdict=verdict, cmd="pytest", taken_from=run_id),
            check("metrics[0]", CheckKind.METRIC),  # evaluated in every run
        )
        todos.append(outcome(todo_id, "Title", states[todo_id], *checks))

    assert final_line(document(*todos))[0] == text


def failing(*failures: Failure, **rest: Any) -> Outcome:
    red = check("tests[0]", verdict=Verdict.FAILED, cmd="pytest tests")
    return outcome(
        "t2",
        "Two",
        TodoState.TEST_FAILED,
        red,
        failure_evidence=failures[0] if failures else None,
        failures=failures,
        **rest,
    )


def of_rsi(**changes: Any) -> Outcome:
    return failing(RSI_FAILURE.model_copy(update=changes))


LONG_ID = f"tests/test_{'long_' * 30}name.py::test_it[a b, c d]"
LONG_COMMAND = "pytest --planverify " + "a" * 200 + ".yaml::t2"


def test_text_to_be_copied_is_never_truncated() -> None:
    red = of_rsi(top_failing_tests=(LONG_ID,), tests=(LONG_ID,), rerun=LONG_COMMAND)
    text = summary(document(outcome("a" * 90, "Title", TodoState.DONE), red), width=60)
    assert f"✓ done    {'a' * 90}  " in text
    assert f"    test   {LONG_ID}\n" in text
    assert f"    rerun  {LONG_COMMAND}\n" in text


OLD_ANSWER = "the answer is of an older plan"
ASKED = check("manual[0]", CheckKind.MANUAL, Verdict.NEEDS_HUMAN, title="Right?", reason=OLD_ANSWER)
ANSWER = "planner answer plan.yaml t yes"
TO_ANSWER = f"question for human: Is the answer: 42? answer: {ANSWER}"
MANUAL = ASKED.model_copy(update={"title": "Is the answer: 42?", "reason": TO_ANSWER})


@pytest.mark.parametrize(
    ("todo", "shown"),
    [
        (of_rsi(runs=2, reds=2), "the product is at fault, 97% sure, failed 2 of 2\n"),
        (of_rsi(since=Since.PRE_EXISTING), "97% sure, failed before the work began"),
        (failing(samples.METRIC_FAILURE), "    check  metrics[0]\n"),
        (failing(), "    why    tests[0] failed\n"),  # without a reason, none is invented
        (outcome("t", "T", TodoState.TEST_FAILED, RED), "    why    tests[1] failed: is gone\n"),
        (outcome("t", "T", TodoState.TEST_FAILED, FLAKY), "~ flaky  t  T"),
        (outcome("t", "T", TodoState.TEST_FAILED, FLAKY, RED), "✗ failed  t  T"),
        (outcome("t", "T", TodoState.TESTING), "0.21s\n    why    nothing was checked"),
        (outcome("t", "T", TodoState.DONE, verified=False), "not verified"),
        (outcome("t", "T", TodoState.TESTING, ASKED), f"    asks   Right?\n           {OLD_ANSWER}\n"),
        (outcome("t", "T", TodoState.TESTING, MANUAL), f"asks   Is the answer: 42?\n    answer {ANSWER}\n"),
    ],
)
def test_details_are_listed_below_their_todo(todo: Outcome, shown: str) -> None:
    assert shown in summary(document(todo), width=120)


def test_long_message_is_limited_to_whole_lines_with_a_count() -> None:
    found = document(of_rsi(stack_trace_head="AssertionError: " + "many words " * 100))
    lines = summary(found).splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("    says"))
    assert lines[first + 8] == "           and 9 more lines; -v shows them"
    assert lines[first + 9].startswith("    where")
    assert "more lines" not in summary(found, verbosity=1)


def test_failures_beyond_three_are_counted_by_tests() -> None:
    several = [
        RSI_FAILURE.model_copy(update={"stack_trace_head": f"Error: {n}", "tests": (f"{n}[a]", f"{n}[b]")})
        for n in range(20)
    ]
    lines = summary(document(failing(*several)), outcomes_path=OUTCOMES).splitlines()
    also = [line.rpartition(" ")[2] for line in lines if line.startswith("    also")]
    assert also == ["1", "2", "3"]
    assert f"           and 32 more; every node id is in {OUTCOMES}" in lines


def test_failure_shared_by_two_todos_is_described_once() -> None:
    shared = {"category": Category.HYGIENE_VIOLATION, "target_agent": Role.HUMAN}
    other = of_rsi(**shared, signature="f" * 12).model_copy(update={"todo_id": "t3"})
    shown = summary(document(of_rsi(**shared), other), width=100)
    assert shown.count("says ") == shown.count("fix ") == 1
    assert "    why    HYGIENE_VIOLATION: as for t2\n    test   tests" in shown
    assert shown.count("    who    human\n") == shown.count("    rerun") == 1


def test_reason_names_what_is_at_fault() -> None:
    for category, owner, words in (
        (Category.HYGIENE_VIOLATION, Owner.PRODUCT, "the change is at fault"),
        (Category.HARNESS_ERROR, Owner.HARNESS, "the verifier is at fault"),
        (Category.UNKNOWN, Owner.UNKNOWN, "owner unknown"),
    ):
        text = summary(document(of_rsi(category=category, owner=owner)), width=100)
        assert f"why    {category}: {words}, " in text


def test_several_plans_are_grouped_under_their_names_which_quiet_lines_have_too() -> None:
    both = document(
        outcome("a1", "First", TodoState.DONE, plan="alpha"),
        outcome("b1", "Second", TodoState.DONE, plan="beta"),
        outcome("a2", "Third", TodoState.DONE, plan="alpha"),
        outcome("c1", "Lost", TodoState.DONE, plan="gamma"),
        outcome("d1", "Red", TodoState.TEST_FAILED, RED, plan="gamma"),
    )
    refs = tuple(PlanRef(todo_list_id=name, path=f"{name}.yaml", digest="") for name in ("alpha", "beta"))
    both = both.model_copy(update={"plans": refs})
    shown = summary(both)
    texts = ("alpha  alpha.yaml", " a1 ", " a2 ", "beta  beta.yaml", " b1 ", "gamma", " c1 ", " d1 ")
    places = [shown.index(text) for text in texts]
    assert places == sorted(places)
    assert "✗ failed gamma::d1" in summary(both, verbosity=-1)


def test_shared_tests_count_once_and_skipped_ones_separately() -> None:
    tests = samples.results("t.py", "a", "b") + samples.results("t.py", "c", outcome=TestOutcome.SKIPPED)
    checks = (check(name, tests=tests) for name in ("tests[0]", "tests[1]"))
    shown = summary(document(outcome("t1", "One", TodoState.DONE, *checks)))
    assert "2 checks  2 tests  0.21s  1 skipped\n" in shown


@pytest.mark.parametrize(
    ("recorded", "text"),
    [
        ({"rows": (250, 250)}, "rows=250"),
        ({"share": (0.5, 0.25)}, "share=[0.5, 0.25]"),
        ({"x": (1, 2, 3, 4, 5)}, "x=[1, 2, 3, 4, ...]"),
        ({"x": (1,), "y": (2,)}, "x=1, y=2"),
    ],
)
def test_metric_values_are_formatted_for_reading(recorded: dict[str, Any], text: str) -> None:
    shown = summary(document(outcome("t1", "One", TodoState.DONE, recorded=recorded)))
    assert f"  {text}\n" in shown


ANY_TEXTS = st.text(max_size=60) | st.sampled_from(
    ["日本語のテスト" * 8, "e\u0301" * 50, "word " * 30, "x" * 300, "\ud800"]
)
SHORT_TEXTS = st.text("ab c.:{", max_size=9).map("a".__add__)
"""Texts that fit beside a label on a terminal of 80 columns."""

PROSE = SHORT_TEXTS | st.sampled_from(["word " * 30, "日本 " * 30])


PROSE_KEYS = {"title", "reason", "stack_trace_head", "suggestion", "because", "notes"}
NAME_KEYS = {"todo_id", "id", "nodeid", "cmd", "check_id", "rule"}
NAME_KEYS |= {"tests", "top_failing_tests", "blocked_by"}
WHOLE = {("checks", "title"), ("tests", "reason")}
"""Prose fields that are shown in full, because they may be a command to copy."""

SAMPLES = [samples.green_document(), samples.red_document(), samples.mixed_document()]


@st.composite
def documents(
    draw: st.DrawFn, names: st.SearchStrategy[str], prose: st.SearchStrategy[str]
) -> OutcomeDocument:
    """Draw a document with other names and prose, and other states, verdicts, durations and exit status."""

    def rewritten(value: Any, key: str = "") -> Any:
        if isinstance(value, str) and key in PROSE_KEYS | NAME_KEYS:
            return draw(prose if key in PROSE_KEYS else names)
        if isinstance(value, list):
            return [rewritten(each, key) for each in value]
        if isinstance(value, dict):
            return {
                name: rewritten(each, "id" if (key, name) in WHOLE else name)
                for name, each in value.items()
            }
        return value

    sample = draw(st.sampled_from(SAMPLES)).model_dump(mode="json")
    sample["run"]["exit_status"] = draw(st.integers(0, 14))
    sample["outcomes"] = draw(st.permutations(sample["outcomes"]))[: draw(st.integers(0, 5))]
    for each in sample["outcomes"]:
        each["state"] = draw(st.sampled_from(TodoState)).value
        each["metrics"]["duration_ms"] = draw(st.integers(0, 10**9))
        for found in each["checks"]:
            found["verdict"] = draw(st.sampled_from(Verdict)).value
    return OutcomeDocument.model_validate(rewritten(sample))


@given(
    shown=documents(ANY_TEXTS, ANY_TEXTS),
    width=st.none() | st.integers(24, 200),
    verbosity=st.integers(-1, 2),
    encoding=st.sampled_from(["utf-8", "ascii", "latin-1"]),
    longrepr=ANY_TEXTS,
)
def test_summary_is_always_printable(
    shown: OutcomeDocument, width: int | None, verbosity: int, encoding: str, longrepr: str
) -> None:
    longreprs = {("p", "t", "c"): [(longrepr, longrepr)]}
    text = summary(shown, width=width, verbosity=verbosity, encoding=encoding, longreprs=longreprs)
    assert all(wcswidth(line) >= 0 for line in text.split("\n"))


@given(shown=documents(SHORT_TEXTS, PROSE), width=st.integers(80, 200), verbosity=st.integers(0, 2))
def test_prose_never_exceeds_the_terminal_width(shown: OutcomeDocument, width: int, verbosity: int) -> None:
    text = summary(shown, width=width, verbosity=verbosity)
    assert not [line for line in text.split("\n") if wcswidth(line) > width]


# -- the tree of a plan ------------------------------------------------------------------------------

ROWS, TYPES = "tests/test_adapter.py::test_rows", "tests/test_adapter.py::test_types"
RSI = "tests/test_indicators.py::test_rsi_values"
SELECTED = {("t1_data_integration", "tests[0]"): [ROWS, TYPES], ("t2_indicators", "tests[0]"): [RSI, ROWS]}
PROBLEMS = {("t2_indicators", "tests[1]"): ["ruff is not installed: install it, or take the criterion out"]}


@pytest.fixture
def plan(tmp_path: Path) -> LoadedPlan:
    return momentum_plan(tmp_path)


def tree(plan: LoadedPlan, *, verbosity: int = 0) -> str:
    return screen_text(lambda tw: render_tree(tw, plan, SELECTED, PROBLEMS, verbosity=verbosity), width=40)


def test_the_tree_shows_todos_criteria_and_tests_or_quietly_each_node_id_once(plan: LoadedPlan) -> None:
    assert tree(plan, verbosity=-1).splitlines() == [ROWS, TYPES, RSI]
    assert tree(plan) == dedent("""\
        Momentum Strategy with RSI  (2 todos, 3 tests)
          t1_data_integration  Data Integration Adapter  (2 criteria, 2 tests)
            tests[0]  pytest tests/test_adapter.py -q  (2 tests)
              tests/test_adapter.py::test_rows
              tests/test_adapter.py::test_types
            metrics[0]  rows_min >= 10
          t2_indicators  Indicator & Candle Patterns  (5 criteria, 2 tests)
            tests[0]  pytest tests/test_indicators.py -q  (2 tests)
              tests/test_indicators.py::test_rsi_values
              tests/test_adapter.py::test_rows
            tests[1]  ruff check indicators
              ! ruff is not installed: install it, or take the criterion out
            expected_artifacts[0]  indicators/rsi.py
            manual[0]  Does the chart look right?
            contract_path  contracts/indicator_contract.json
    """)


def test_tree_shows_only_the_requested_todos(plan: LoadedPlan) -> None:
    selected = {("t2_indicators", "tests[0]"): ["a.py::b"]}
    shown = screen_text(lambda tw: render_tree(tw, plan, selected, todo_ids={"t2_indicators"}))
    assert shown.splitlines()[:2] == [
        "Momentum Strategy with RSI  (1 todo, 1 test)",
        "  t2_indicators  Indicator & Candle Patterns  (5 criteria, 1 test)",
    ]


def test_todos_of_a_sub_plan_are_shown_below_their_parent(tmp_path: Path) -> None:
    phases = unpack_bundle(Path(__file__).parents[3] / "fixtures/projects/phases.txt", tmp_path)
    flat = load_tree(phases / "plan.yaml", boundary=phases).load_all().flat()

    names = "phase-1/text-impl phase-2 phase-2/buffer-impl phase-3 phase-3/cursor phase-3/cursor/up-down"

    shown = screen_text(lambda tw: render_tree(tw, flat.loaded, {}, todo_ids=names.split()))

    assert shown == dedent("""\
        A small editor in three phases  (6 todos, 0 tests)
          phase-1/text-impl  Lines of a text  (1 criterion)
            tests[0]  pytest tests/test_text.py -q  (0 tests)
          phase-2  Phase 2: Buffer Management  (1 todo, 1 criterion)
            tests[0]  pytest tests/test_integration.py -q  (0 tests)
            buffer-impl  The buffer  (2 criteria)
              tests[0]  pytest tests/test_text.py -q  (0 tests)
              metrics[0]  lines >= 3
          phase-3  Phase 3: Navigation  (1 todo)
            cursor  The cursor  (1 todo)
              up-down  Up and down  (1 criterion)
                tests[0]  pytest tests/test_cursor.py -q -k 'up or down'  (0 tests)
    """)


DONE, FAILED, TESTING = TodoState.DONE, TodoState.TEST_FAILED, TodoState.TESTING


def parent(todo_id: str, title: str, state: TodoState, verdict: Verdict, *own: Verdict) -> Outcome:
    below = check("sub_plan", CheckKind.SUB_PLAN, verdict, title="phases/two.yaml", reason="p/a failed")
    rest = [check(f"tests[{number}]", verdict=each, cmd="pytest x.py") for number, each in enumerate(own)]
    return outcome(todo_id, title, state, below, *rest, verified=False)


def child(todo_id: str, state: TodoState = DONE) -> Outcome:
    verdict = Verdict.PASSED if state is DONE else Verdict.FAILED
    return outcome(todo_id, "Some todo", state, check("tests[0]", verdict=verdict, cmd="pytest y.py"))


PHASES = (
    parent("phase-2", "Phase 2: Buffer Management", TESTING, Verdict.FAILED),
    child("phase-2/buffer-tests"),
    child("phase-2/buffer-impl", FAILED),
    parent("phase-2/deep", "Deep", DONE, Verdict.PASSED),
    child("phase-2/deep/x"),
    child("other/todo"),
)


def lines_of(*shown: Outcome, **how: Any) -> list[str]:
    return [line.rstrip() for line in summary(document(*shown), width=90, **how).splitlines()]


def test_todos_are_indented_below_shown_parents() -> None:
    columns = [line for line in lines_of(*PHASES) if line[:1] in ("✓", "✗", "!")]
    assert [line[15:40].rstrip() for line in columns] == [
        "phase-2         Phase 2:",
        "  buffer-tests  Some todo",
        "  buffer-impl   Some todo",
        "  deep          Deep (1/1",
        "    x           Some todo",
        "other/todo      Some todo",
    ]


def test_parent_line_shows_its_progress() -> None:
    (line,) = (line for line in lines_of(*PHASES) if "phase-2 " in line and "Phase" in line)
    assert "Phase 2: Buffer Management (2/3)" in line
    assert "! in progress  phase-2" in line
    assert "    why    sub_plan failed: p/a failed" in lines_of(*PHASES)
    assert "! in progress phase-2: p/a failed" in lines_of(*PHASES, verbosity=-1), "quietly by its full id"
    assert final_line(document(*PHASES))[0].startswith("4 done, 1 failed, 1 in progress in")
    without_title = lines_of(parent("p", "p", DONE, Verdict.PASSED), child("p/a"))
    assert any(line.startswith("✓ done  p    (1/1)") for line in without_title)
    assert not any("not verified" in line for line in without_title), "it is so through its todos"


@pytest.mark.parametrize(
    ("verdict", "own", "expected"),
    [
        (Verdict.FAILED, [], Standing.IN_PROGRESS),
        (Verdict.FAILED, [Verdict.NOT_RUN], Standing.IN_PROGRESS),
        (Verdict.NOT_RUN, [Verdict.PASSED], Standing.IN_PROGRESS),
        (Verdict.NEEDS_HUMAN, [], Standing.IN_PROGRESS),
        (Verdict.PASSED, [Verdict.NEEDS_HUMAN], Standing.NEEDS_HUMAN),
        (Verdict.NOT_RUN, [Verdict.INCONCLUSIVE], Standing.INCONCLUSIVE),
    ],
)
def test_parent_is_in_progress_while_only_its_todos_are_unfinished(
    verdict: Verdict, own: list[Verdict], expected: Standing
) -> None:
    assert standing(parent("p", "P", TESTING, verdict, *own)) is expected


def test_equally_named_tests_of_two_sub_plans_show_both_tracebacks() -> None:
    longreprs = {(samples.PLAN, todo, "tests[0]"): [("a.py::t", todo)] for todo in ("p/a", "p/b", "q/a")}
    shown = lines_of(*PHASES, longreprs=longreprs, verbosity=1)
    assert [line for line in shown if line in ("p/a", "p/b", "q/a")] == ["p/a", "q/a"]
