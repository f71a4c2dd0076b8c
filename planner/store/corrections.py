"""Log of the diagnoses that people corrected, ``.planverify/corrections.jsonl``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.model.past import Correction
from planner.planfile.plan_folder import HOME, make_home
from planner.store.chain import ChainedFile, log_error
from planner.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CORRECTIONS = f"{HOME}/corrections.jsonl"


class CorrectionLog(ChainedFile):
    """The log of corrections: one ``{"n":0,"correction":{…},"digest":"sha256:…"}`` per line."""

    first_key = '"correction":{"'


def corrections_of(path: Path) -> Iterator[Correction]:
    """Yield the corrections of a log in the order in which they were appended.

    Corrections that this version cannot parse are skipped. Raises :class:`planner.errors.LogError` if the
    log is unreadable or damaged.
    """
    with CorrectionLog.read(path) as log:
        for entry in log.entries():
            try:
                yield Correction.model_validate(json.loads(entry.text)["correction"])
            # Such as a category or role that only another version of the program knows; or no JSON, in a
            # line that code under test has added with its digest.
            except (ValueError, LookupError, TypeError, RecursionError):
                continue


def append_correction(root: Path, correction: Correction) -> None:
    """Append a correction, with secrets removed from its reason, and sync it to disk.

    Raises :class:`planner.errors.LogError` if it cannot be written.
    """
    try:
        make_home(root)
    except OSError as error:
        problem = f"the folder cannot be made ({error.strerror})"
        raise log_error(root / HOME, problem, "make its parent folder writable") from None
    content = correction.model_dump(mode="json", exclude_none=True)
    if correction.because is not None:
        content["because"] = redact(correction.because)
    with CorrectionLog.append_to(root / CORRECTIONS) as log, log.hold():
        log.skip()
        log.write([f'{{"n":{log.count},"correction":{json.dumps(content, separators=(",", ":"))}'])
