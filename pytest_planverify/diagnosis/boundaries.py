"""The two sides of a broken promise: what was promised, what the code has, and which of them changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.verdicts import Side
from planner.text.python_messages import callee_of
from pytest_planverify.diagnosis.case import last_frame_of
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.evidence import ChangedFile, Evidence, Frame
    from pytest_planverify.diagnosis.case import Case
    from pytest_planverify.diagnosis.rule import Hit, Reader

_SINCE = {"baseline": "the baseline", "commit": "the last commit", "green": "the last green run"}
_EARLIER = "the baseline or the last commit"

MOST_TOLD = 50
"""Evidence holds at most so many changed files: then the absence of one says nothing."""

LONGEST = 110
"""Of a message or a signature in a suggestion that says several."""

_MOST_NAMED = 2
_MODULE = "module "


def who_changed(evidence: Evidence, *, product: str | None, test: str | None) -> str:
    """`` Since the baseline shop/cart.py changed, tests/test_cart.py and the contract did not.``

    Empty where nothing is known of what changed. ``product`` and ``test`` are the files where the two sides
    stand, as far as they are known; without that of the product, its first changed files are named.
    """
    changed = evidence.changed
    if changed is None:
        return ""
    sides = dict(_sides(evidence, changed, product=product, test=test))
    paths = {each.path for each in changed}
    moved = [name for path, name in sides.items() if path in paths]
    still = [name for path, name in sides.items() if path not in paths]
    if len(changed) >= MOST_TOLD:
        still = []
    since = f"Since {_SINCE.get(evidence.changed_since or '', _EARLIER)}"
    if moved and still:
        return f" {since} {_listed(moved)} changed, {_listed(still)} did not."
    if moved:
        return f" {since} {_listed(moved)} changed."
    if len(still) > 1:
        return f" {since} neither {' nor '.join(still)} changed."
    return f" {since} {still[0]} has not changed." if still else ""


def telling_changes(reader: Reader) -> Reader:
    """What the reader says, and which side of the broken promise is not as it was."""

    def read(case: Case) -> Hit | None:
        hit = reader(case)
        if hit is None:
            return None
        changes = who_changed(case.evidence, product=_product_file(case), test=_test_file(case))
        return replace(hit, suggestion=hit.suggestion + changes)

    return read


def signatures_told(case: Case) -> str:
    """What the todo's contract promises of the function that was called, and what its source has."""
    evidence = case.evidence
    said = ""
    if evidence.promised:
        said = f" {evidence.contract_path} promises {quote(evidence.promised, LONGEST)}."
    if keeps_contract(case):
        return f"{said} The code has it so, and the test calls it otherwise."
    if evidence.actual_signature:
        said += f" The code has {quote(evidence.actual_signature, LONGEST)}."
    return said


def keeps_contract(case: Case) -> bool:
    """Whether the product's function is as its contract says."""
    promised = case.evidence.promised
    return promised is not None and promised == case.evidence.actual_signature


def failed_callee(case: Case) -> str | None:
    """The function whose call failed because the arguments do not fit, by the exception in focus."""
    if case.error is None or not case.is_error("builtins.TypeError"):
        return None
    return callee_of(case.error.message)


def definition_of(case: Case, name: str) -> Frame | None:
    """Where the named product function is defined, or the class that holds it, if that is known."""
    owner, _, bare = name.rpartition(".")
    subjects = case.evidence.subjects
    for frame in subjects:
        if frame.function == name:
            return frame
    for wanted in (owner, "" if owner else bare):  # a function of that name in no class is another
        for frame in subjects:
            if wanted and frame.function.rpartition(".")[2] == wanted:
                return frame
    return None


def _product_file(case: Case) -> str | None:
    """The file of the product's side, as far as it is known."""
    if case.raised_at is not None and case.in_product:
        return case.raised_at.path
    subjects = case.evidence.subjects
    callee = failed_callee(case)
    if callee is not None and (defined := definition_of(case, callee)) is not None:
        return defined.path
    owner = (case.error.object_type if case.error is not None else None) or ""
    if owner.startswith(_MODULE):
        stem = owner.removeprefix(_MODULE).replace(".", "/")
        known = [frame.path for frame in subjects] + [each.path for each in case.evidence.changed or ()]
        ends = (f"{stem}.py", f"{stem}/__init__.py")
        return next((path for path in known if path.endswith(ends)), None)
    files = {frame.path for frame in subjects}
    return files.pop() if len(files) == 1 else None


def _test_file(case: Case) -> str | None:
    frame = last_frame_of(case.frames, Side.TEST)
    return None if frame is None else frame.path


def _sides(
    evidence: Evidence, changed: tuple[ChangedFile, ...], *, product: str | None, test: str | None
) -> Iterator[tuple[str, str]]:
    """The files of both sides and of the contract, each with what it is called."""
    if product is not None:
        yield product, product
    else:
        named = [each.path for each in changed if each.side is Side.PRODUCT][:_MOST_NAMED]
        yield from ((path, path) for path in named) if named else iter([("", "the product")])
    if test is not None and test != product:
        yield test, test
    if evidence.contract_path is not None:
        yield evidence.contract_path.removeprefix("./"), "the contract"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
