"""Log of the diagnoses that people corrected, ``.planverify/corrections.jsonl``.

Every verification that applies corrections imports this module, so it imports neither the engine nor
SQLAlchemy.
"""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

from planner.model.past import Correction
from planner.planfile.plan_folder import HOME, make_home
from planner.store.chain import ChainedFile, log_error
from planner.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

CORRECTIONS = f"{HOME}/corrections.jsonl"
MAX_BYTES = 16 * 1024 * 1024
"""Size in bytes up to which a verification reads the log; code under test could have written to it."""


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


def read_corrections(path: Path, now: datetime, limit: int) -> tuple[Correction, ...]:
    """Return the newest ``limit`` corrections of a category or owner that are not later than ``now``.

    They are sorted newest first. Empty without a log. Raises :class:`planner.errors.LogError` if the log is
    too large, damaged or no regular file.
    """
    # lstat(): a link, which code under test could have made, must not have another file read.
    try:
        facts = path.lstat()
    except OSError:
        return ()
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
        raise log_error(path, f"this is not a file of at most {MAX_BYTES >> 20} MiB", "move it away")
    known = (each for each in corrections_of(path) if each.at <= now)
    relevant = [each for each in known if each.right_category is not None or each.right_owner is not None]
    return tuple(reversed(sorted(relevant, key=lambda each: each.at)[-limit:]))


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
