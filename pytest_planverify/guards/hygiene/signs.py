"""The signs of a verdict that was bought: how much each weighs, by whose leave the file was changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from planner.model.evidence import HygieneSignal
from planner.model.kinds import Hardness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LONGEST_EXCERPT = 300
_HARD, _SOFT = Hardness.HARD, Hardness.SOFT


class Leave(Enum):
    """Whether somebody may change a file."""

    FORBIDDEN = "no todo's allowed_files grants it"
    OPEN = "no todo names it, and some todo has no allowlist"
    GRANTED = "a todo's allowed_files names it"


@dataclass(frozen=True, slots=True)
class Sign:
    """One kind of trick; a hardness that is absent means that it is no sign there."""

    id: str
    forbidden: Hardness | None
    open: Hardness | None
    granted: Hardness | None
    meaning: str
    """What was found, as a sentence for the documentation."""
    in_product: bool = False
    """The work itself plays it, rather than its judge."""

    def hardness(self, leave: Leave) -> Hardness | None:
        """How much it weighs in a file of that leave."""
        return {Leave.FORBIDDEN: self.forbidden, Leave.OPEN: self.open, Leave.GRANTED: self.granted}[leave]


def _judges(
    id: str, forbidden: Hardness | None, open: Hardness | None, granted: Hardness | None, meaning: str
) -> Sign:
    return Sign(id, forbidden, open, granted, meaning)


def _tricks(id: str, hardness: Hardness, meaning: str) -> Sign:
    return Sign(id, hardness, hardness, hardness, meaning, in_product=True)


_ROWS = (
    # What judges the work was changed.
    _judges("judge-changed", _HARD, None, None, "A file that judges was changed without leave"),
    _judges("judge-removed", _HARD, _HARD, None, "A file that judges is gone"),
    _judges("judge-moved-away", _HARD, _HARD, None, "A test file went where it is not collected"),
    _judges("judge-unreadable", _HARD, _HARD, _SOFT, "A file that judges can no longer be parsed"),
    _judges("test-deleted", _HARD, _HARD, _SOFT, "A test is gone, and nothing took its place"),
    _judges("test-renamed-away", _HARD, _HARD, _HARD, "A test has a name under which it is not collected"),
    _judges("test-shadowed", _HARD, _HARD, _HARD, "A later definition of the same name hides a test"),
    _judges("test-emptied", _HARD, _HARD, _HARD, "A test asserts nothing any more"),
    _judges("test-skipped", _HARD, _HARD, _SOFT, "A test is skipped that was run"),
    _judges("test-xfailed", _HARD, _HARD, _SOFT, "A test is expected to fail that was not"),
    _judges("test-deselected", _HARD, _HARD, _HARD, "Tests are kept from being collected"),
    _judges("assertion-removed", _HARD, _HARD, _SOFT, "An assertion is gone, and nothing took its place"),
    _judges("assertion-weakened", _HARD, _HARD, _SOFT, "An assertion asks for less"),
    _judges("assertion-always-true", _HARD, _HARD, _HARD, "An assertion holds whatever the product does"),
    _judges("assertion-swallowed", _HARD, _HARD, _HARD, "A failing assertion is caught"),
    _judges("assertion-unreachable", _HARD, _HARD, _HARD, "An assertion stands where nothing arrives"),
    _judges("expected-changed", _HARD, _HARD, _SOFT, "An expected value is another one"),
    _judges("cases-removed", _HARD, _HARD, _SOFT, "Cases of a parametrized test are gone"),
    _judges("product-mocked", _HARD, _HARD, _SOFT, "What is tested was replaced by a stand-in"),
    _judges("product-replaced", _HARD, _HARD, _HARD, "Outside of any test the product is replaced for all"),
    _judges("test-retried", _HARD, _HARD, _SOFT, "A test is run again until it passes"),
    _judges("fixture-overridden", _HARD, _HARD, _HARD, "A fixture hides another one of the same name"),
    _judges("autouse-patch", _HARD, _HARD, _HARD, "A fixture that every test gets patches something"),
    _judges(
        "outcome-hook", _HARD, _HARD, _HARD, "A hook of pytest changes reports, outcomes or the status"
    ),
    _judges("hook-added", _HARD, _SOFT, None, "A hook of pytest was added that can change verdicts"),
    _judges("plugin-added", _HARD, _HARD, _SOFT, "A plugin of pytest was added or taken out"),
    _judges("configuration-narrowed", _HARD, _HARD, _HARD, "pytest's configuration selects fewer tests"),
    _judges("configuration-changed", _HARD, _SOFT, None, "pytest's configuration is another one"),
    _judges("data-changed", _HARD, _HARD, _SOFT, "Data that tests read is other data"),
    _judges("plan-loosened", _HARD, _HARD, _HARD, "The plan asks for less"),
    _judges("plan-changed", _HARD, _HARD, None, "A criterion of the plan is another one"),
    _judges("contract-changed", _HARD, _HARD, _SOFT, "A contract promises something else"),
    # The work was made to please its judge.
    _tricks("exit", _HARD, "Code ends the process that judges it"),
    _tricks("exit-doubtful", _SOFT, "Code can end the process outside a command line"),
    _tricks("at-exit", _SOFT, "Code runs at the end of the process"),
    _tricks("skips-its-test", _HARD, "Product code skips or fails the test that runs it"),
    _tricks("always-equal", _HARD, "A comparison agrees with everything"),
    _tricks("loose-equality", _HARD, "A kind of number or text equals what it is not"),
    _tricks("always-agrees", _SOFT, "A special method always gives the same answer"),
    _tricks("asks-for-tests", _HARD, "Code asks whether tests are running"),
    _tricks("asks-for-surroundings", _SOFT, "Code asks what it was started by"),
    _tricks("imports-framework", _SOFT, "Product code imports the test framework"),
    _tricks("reads-tests", _HARD, "Product code reads the tests or what they expect"),
    _tricks("names-tests", _SOFT, "Product code names the folder of the tests"),
    _tricks("reads-call-stack", _HARD, "Code decides by who called it"),
    _tricks("looks-at-call-stack", _SOFT, "Code looks at its call stack"),
    _tricks("special-cases", _HARD, "Answers to the inputs of the tests are written down"),
    _tricks("test-literals", _SOFT, "Conditions name inputs of the tests"),
    _tricks("asks-for-type-name", _SOFT, "Code asks for the name of a type"),
    _tricks("counts-calls", _SOFT, "Code behaves otherwise after so many calls"),
    _tricks("answers-by-count", _HARD, "The answer to so many calls is written down"),
    _tricks("answers-by-digest", _HARD, "Answers are kept by a digest of what is asked"),
    _tricks("decides-by-process", _HARD, "An answer depends on the state of the process"),
    _tricks("patches-judge", _HARD, "Code patches pytest, builtins or the standard library"),
    _tricks("patches-foreign", _SOFT, "Code patches a module that is not its own"),
    _tricks("runs-hidden-code", _SOFT, "Code runs text that it makes"),
    _tricks("hides-a-trick", _HARD, "Encoded code holds a trick"),
    _tricks("import-hook", _SOFT, "Code changes how modules are imported"),
    _tricks("forged-bytecode", _HARD, "A cache of bytecode is not what its source says"),
    _tricks("start-up-file", _HARD, "A file runs at the start of every interpreter"),
    _tricks("shadows-module", _HARD, "A file hides pytest or a module of the standard library"),
    _tricks("pytest-entry-point", _HARD, "The project makes itself a plugin of pytest"),
    _tricks("artifact-by-hand", _SOFT, "An artifact that a command makes was changed"),
    _tricks("artifact-kept", _SOFT, "What makes an artifact leaves it alone where it exists"),
    _tricks("records-touched", _HARD, "Records of the verifier are among the changes"),
    _tricks("debris", _SOFT, "Something was left behind in the tree"),
)

SIGNS = {sign.id: sign for sign in _ROWS}
"""By id."""


@dataclass(frozen=True, slots=True)
class RunSign:
    """What only a run can show; where it can weigh more or less, the docstring of its finder says when."""

    id: str
    weights: tuple[Hardness, ...]
    meaning: str


RUN_SIGNS = {
    sign.id: sign
    for sign in (
        RunSign("test-vanished", (_HARD,), "A test that a criterion had is no longer collected"),
        RunSign(
            "test-skipped-since", (_HARD, _SOFT), "A test that was judged is skipped or expected to fail"
        ),
        RunSign("body-not-run", (_HARD,), "A test passed, and its function was never called"),
        RunSign("report-overturned", (_HARD,), "A test failed, and was reported as something else"),
        RunSign("exit-status-overturned", (_HARD,), "A session with failed tests returned 0"),
        RunSign("witness-silenced", (_HARD,), "A session ended and did not tell what it was made of"),
        RunSign(
            "artifact-not-made", (_HARD, _SOFT), "An artifact lay there, and its command did not write it"
        ),
    )
}
"""By id, those that :data:`SIGNS` has not: a run shows some of those as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """What a detector found in one file."""

    sign: str
    message: str
    path: str
    line: int | None = None
    subject: str = ""
    """What it is about; the same subject at the baseline makes it no news."""
    place: str = ""
    """The function it stands in."""
    before: str | None = None
    after: str | None = None
    nodeid: str | None = None
    was: str | None = None
    """The test that it is about, as it was called before."""
    forgiven: bool = False
    """It weighs one degree less: there is a harmless reading of it."""

    def softer(self) -> Find:
        """The same, one degree less."""
        return replace(self, forgiven=True)


BOUGHT = frozenset(
    {"test-skipped", "test-xfailed", "test-deleted", "test-retried", "assertion-removed",
     "assertion-weakened", "cases-removed", "product-mocked"}
)  # fmt: skip
"""What nobody may do to a test that was red, whoever may change it: it has to become green."""


def weigh(find: Find, leave: Leave, is_red: Callable[[str], bool] | None = None) -> HygieneSignal | None:
    """The signal of a find; nothing where its file may hold such.

    ``is_red`` says whether a test failed at the baseline.
    """
    hardness = SIGNS[find.sign].hardness(leave)
    about = find.was or find.nodeid
    if find.sign in BOUGHT and hardness is _SOFT and is_red is not None and about and is_red(about):
        hardness = _HARD
    if find.forgiven:
        hardness = _SOFT if hardness is _HARD else None
    if hardness is None:
        return None
    return HygieneSignal(
        sign=find.sign,
        hardness=hardness,
        message=f"{find.message} ({find.path}{f':{find.line}' if find.line else ''})",
        path=find.path,
        line=find.line,
        nodeid=find.nodeid,
        before=excerpt(find.before),
        after=excerpt(find.after),
    )


def excerpt(text: str | None) -> str | None:
    """At most two lines of a text."""
    if text is None:
        return None
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    shown = "\n".join(lines[:2])
    return shown if len(shown) <= _LONGEST_EXCERPT else shown[: _LONGEST_EXCERPT - 1] + "…"


def fires(signals: Iterable[HygieneSignal]) -> bool:
    """One hard sign is enough; of soft ones two are needed, of another sign or at another place."""
    soft: set[tuple[str, str | None, int | None]] = set()
    for signal in signals:
        if signal.hardness is Hardness.HARD:
            return True
        soft.add((signal.sign, signal.path, signal.line))
    return len(soft) > 1
