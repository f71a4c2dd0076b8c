"""What each category of failure means in plain words, and what to check: a table of data.

A hint is given where all that it needs is known. What it names is put in as a quotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.model.taxonomy import Category

if TYPE_CHECKING:
    from collections.abc import Mapping


class Hint(NamedTuple):
    """One thing to check. ``{names}`` in it are what it needs to know; ``needs`` are further conditions."""

    text: str
    needs: tuple[str, ...] = ()


class Meaning(NamedTuple):
    """What a category says to somebody who does not know the word."""

    title: str
    """Completes ``Repair t1: …``."""
    plain: str
    """One sentence."""
    hints: tuple[Hint, ...]


_C = Category

_READ_CODE = Hint(
    "Read {code}, and every function that it calls, line by line: does each do what its "
    "name and its docstring promise?"
)
_CHANGED = Hint("Look at what changed first: {touched}.")

MEANINGS: Mapping[Category, Meaning] = {
    _C.TEST_REGRESSION: Meaning(
        "a test finds a wrong result",
        "The code runs, but does something else than a test expects of it.",
        (
            Hint(
                "Set {actual} beside {expected}: which step of the code is the first to give another value?"
            ),
            _READ_CODE,
            Hint(
                "Find the input that leads to {raised}, and mend the place that lets it come "
                "so far, not the place that complains.",
                ("product_raised",),
            ),
            Hint(
                "The code should have raised an exception and did not: find the check that is missing.",
                ("not_raised",),
            ),
            Hint(
                "Follow one record of {data} through the code by hand; then the first, the "
                "last, an empty and a missing one."
            ),
            _CHANGED,
            Hint(
                "Look at the usual suspects: off by one, empty input, missing values, "
                "rounding, order, units, a wrong default."
            ),
        ),
    ),
    _C.TEST_TIMEOUT: Meaning(
        "a test does not end in time",
        "A test was still running when its time was over, and was ended.",
        (
            Hint(
                "Find the loop or the wait that was running in {location}: what makes it end, "
                "and does that ever happen?"
            ),
            Hint(
                "Look for a wait without a limit of its own: a lock, a queue, a socket, a "
                "child process, a sleep, a read from standard input."
            ),
            Hint(
                "Try it with a tenth of the data: where the time grows faster than the data, "
                "mend the algorithm."
            ),
            _CHANGED,
            Hint("Leave the limit of {limit} as it is; a person decides whether it may be raised."),
        ),
    ),
    _C.FLAKY_TEST: Meaning(
        "a test is now green, now red",
        "The same code gave both answers; a green rerun proves nothing.",
        (
            Hint(
                "Find what differs from run to run: random numbers without a seed, the clock, "
                "the order of sets or of files, threads, the network, a shared temporary "
                "file."
            ),
            Hint(
                "It fails in company and passes alone: look for what other tests leave "
                "behind, such as module variables, caches, the environment or files.",
                ("order_dependent",),
            ),
            Hint(
                "It depends on the hash seed: look for a set, or a hash, whose order shows in "
                "the result, and sort there. `PYTHONHASHSEED=N` repeats either answer.",
                ("hash_order",),
            ),
            Hint(
                "Make that input fixed: pass in the seed or the clock, sort what has no "
                "order, wait for a condition and not for a time."
            ),
            Hint(
                "Run the test at least ten times in a row before you call it mended. Do not "
                "add a rerun, a skip or a longer sleep."
            ),
        ),
    ),
    _C.TEST_CRASH: Meaning(
        "the process dies while a test runs",
        "The test did not fail: the interpreter that ran it ended, and took the results with it.",
        (
            Hint(
                "{signal} ended it: look for native code that is given a wrong value or size, "
                "endless recursion, or memory that runs out."
            ),
            Hint(
                "Look for os._exit(), sys.exit(), os.kill() and os.abort() in the code that "
                "the test reaches."
            ),
            Hint(
                "Read the stack that was written at the end, above: its newest call is where it died.",
                ("stack",),
            ),
            _READ_CODE,
            Hint("Run the one test alone with `python -X faulthandler -m pytest` and the node id."),
        ),
    ),
    _C.TEST_NOT_FOUND: Meaning(
        "the criterion's test is not there",
        "The command selects no test, or none that proves anything.",
        (
            Hint("Something of a similar name exists: {nearest}. Was the test renamed or moved?"),
            Hint(
                "Every test was skipped or expected to fail: find the reason, and make one "
                "that truly runs.",
                ("vacuous",),
            ),
            Hint(
                "Where the test was never written, write it under exactly the name that the "
                "command has: it must fail without the feature and pass with it."
            ),
            Hint(
                "Where the command itself is wrong, do not bend the tests to it: say so, and "
                "a person changes the plan."
            ),
        ),
    ),
    _C.COMPILATION_ERROR: Meaning(
        "the code cannot be compiled",
        "A file is no valid source, so nothing in it could run.",
        (
            Hint(
                "Open {location} and read the marked line and the one before it: an unclosed "
                "bracket or quote is reported where it is noticed, not where it was opened."
            ),
            Hint(
                "Look for a wrong indentation, a missing colon, a merge conflict's markers, "
                "or syntax that is newer than the interpreter."
            ),
            Hint("Check the file by itself with `python -m py_compile` before you run the tests."),
            _CHANGED,
        ),
    ),
    _C.TYPE_ERROR: Meaning(
        "a value has the wrong type",
        "The code does something with a value that values of its kind cannot do, or a type "
        "checker says that it might.",
        (
            Hint(
                "Find where the value in {location} is made: who gives it this type, and who "
                "is wrong about it?"
            ),
            Hint(
                "Ask whether it may be None: a function that forgets to return, a lookup that "
                "finds nothing, a default."
            ),
            Hint(
                "Go through the complaints above one by one; the first often causes those after it.",
                ("findings",),
            ),
            Hint(
                "Mend the type, and do not silence the checker: no ignore comments, no casts to Any.",
                ("findings",),
            ),
            _CHANGED,
        ),
    ),
    _C.LINT_ERROR: Meaning(
        "the linter complains",
        "The tests are not the matter: a linter or formatter does not accept the code as it is written.",
        (
            Hint("Go through the complaints above one by one, in the files that they name.", ("findings",)),
            Hint("Let {tool} mend what it can by itself, then read what it changed.", ("tool",)),
            Hint("Do not silence the rule: no ignore comments, no change of the linter's settings."),
            Hint("Make no other changes on the way: what the code does has to stay the same."),
        ),
    ),
    _C.IMPORT_ERROR: Meaning(
        "something cannot be imported",
        "A module, or a name in one, is not where the code looks for it.",
        (
            Hint("Something of a similar name exists: {nearest}. Was it renamed or misspelt?"),
            Hint(
                "The name that is missing is {missing}: should it be a part of this project "
                "(then it is not written yet, or lies elsewhere) or a package that has to be "
                "installed?"
            ),
            Hint(
                "For a part of this project: is the folder a package (`__init__.py`), is it "
                "on the path, does it import itself in a circle?"
            ),
            Hint(
                "For a package: is it declared among the project's dependencies, under the "
                "name of the distribution? Declare it; do not vendor or stub it. If it is "
                "declared and not installed, that is for a person."
            ),
            _CHANGED,
        ),
    ),
    _C.SPEC_MISMATCH: Meaning(
        "the code's interface is not the one that was promised",
        "What the code offers is not what was promised: a function, class, attribute or "
        "format is missing or "
        "is another one.",
        (
            Hint(
                "Set the two signatures side by side: {expected} is promised, {actual} is there.",
                ("contract_fact",),
            ),
            Hint("The contract {contract} is the promise: bring the code to it, not it to the code."),
            Hint(
                "Look for the name that the test uses: is it spelt otherwise, in another module, or not "
                "written yet?",
                ("by_test",),
            ),
            Hint(
                "Change the definition, and then every other caller of it; find them all before you begin."
            ),
            _READ_CODE,
            Hint(
                "Where test and contract contradict each other, stop and ask: somebody has to "
                "say which one holds."
            ),
        ),
    ),
    _C.ARTIFACT_MISSING: Meaning(
        "a file that should have been made is missing or wrong",
        "The todo has to leave a file behind; it is not there, or not as it should be.",
        (
            Hint(
                "Find out what is to make the file: which code, run by whom, and whether it was run at all."
            ),
            Hint(
                "The module {missing} is not written yet, or lies elsewhere. Where it has to be "
                "written, give "
                "it every name that the test imports of it, and have them do what the test and the purpose "
                "of the todo ask for."
            ),
            Hint(
                "Find the code that should write {artifact}: does it run at all, and does it "
                "write to this path, seen from the plan's root?"
            ),
            Hint("A file of a similar name exists: {nearest}. Is the path wrong?"),
            Hint(
                "Mend the code that writes the file, and run it again; a file mended by hand "
                "is wrong again after the next run.",
                ("artifact_there",),
            ),
            Hint(
                "Where the file is source or documentation of this todo, write it, in full: "
                "an empty file or a stub is no result.",
                ("artifact_absent",),
            ),
            Hint(
                "The file was found with something else than its schema asks for: {actual}. "
                "Look up that place in the file, then in the code that fills it.",
                ("schema",),
            ),
        ),
    ),
    _C.METRIC_UNMET: Meaning(
        "a measured number is not good enough",
        "The tests pass, but a number that they record does not satisfy the plan.",
        (
            Hint(
                "Nobody recorded it: a test that the todo runs has to call `record_property` "
                "with exactly this name.",
                ("not_recorded",),
            ),
            Hint(
                "Find where the number comes from: which test records {metric}, and what of "
                "the product does it measure?"
            ),
            Hint(
                "Raise the number by mending the product, never by recording another one or "
                "by measuring less."
            ),
            Hint("Every recorded value has to satisfy, not only the last or the best."),
            _CHANGED,
        ),
    ),
    _C.SANDBOX_VIOLATION: Meaning(
        "the code reached for something it may not touch",
        "The run left its limits: a file outside the root, the network, or another process.",
        (
            Hint("Do not go on: everything waits until a person has looked at what was attempted."),
            Hint("Say which line of {location} makes the attempt, and whether the todo needs it at all."),
        ),
    ),
    _C.HYGIENE_VIOLATION: Meaning(
        "what judges the work was changed",
        "A test, a conftest, a fixture or a setting that decides the verdict is not as it was.",
        (
            Hint("Do not go on: everything waits until a person has looked at what was changed."),
            Hint(
                "Put back every test, fixture and setting that the todo did not ask to change: {touched}."
            ),
        ),
    ),
    _C.ALLOWLIST_VIOLATION: Meaning(
        "a file was changed that the todo may not change",
        "The todo names the files that its work may touch, and the work touched others.",
        (
            Hint("Do not go on: a person decides whether the list or the change is wrong."),
            Hint(
                "Compare what changed with what is allowed, both below, and say why each "
                "further file was needed: {touched}."
            ),
        ),
    ),
    _C.BUDGET_EXCEEDED: Meaning(
        "the budget is used up",
        "The plan limits time, tokens, cycles or new files, and the limit is passed.",
        (
            Hint("Do not go on: a person decides whether there is more to spend, and on what."),
            Hint("Say what is done, what is left, and what it would cost."),
        ),
    ),
    _C.ENVIRONMENT_ERROR: Meaning(
        "the environment is not ready",
        "A service, a tool, a plugin, a file system or the network was not there; the code "
        "has not been judged.",
        (
            Hint("Do not change the code for it: nothing has shown that it is wrong."),
            Hint("Install, start or free what is named above, then verify again.", ()),
            Hint(
                "If you cannot mend it here, say exactly what is missing, and on which "
                "command it was noticed."
            ),
        ),
    ),
    _C.HARNESS_ERROR: Meaning(
        "the verifier itself failed",
        "Neither the code nor the test has been judged: what runs them broke.",
        (
            Hint("Do not change the code for it: nothing has shown that it is wrong."),
            Hint(
                "Verify once more; if it happens again, report what is quoted above to "
                "whoever looks after the verifier."
            ),
        ),
    ),
    _C.UNKNOWN: Meaning(
        "it fails, and no rule could say why",
        "The check is red, and nothing that was seen of it fits a known kind of failure.",
        (
            Hint("Reproduce it first, with the command below and nothing else running."),
            _READ_CODE,
            _CHANGED,
            Hint("Make it smaller: one test, one input, one file, until the cause stands alone."),
            Hint(
                "Write down what kind of failure it turned out to be; the next one like it "
                "should not start here."
            ),
        ),
    ),
}
