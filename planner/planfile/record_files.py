"""Reading and writing of JSON records: outcomes, baselines, qualifications and answers.

Building a record's model classes takes milliseconds, so rarely used ones are imported on use.
"""

from __future__ import annotations

import errno
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import ValidationError

from planner.errors import BaselineError, FileWriteError, OutcomeFileError
from planner.model.outcome import Outcome, OutcomeDocument
from planner.planfile.file_writer import replace_file, write_file
from planner.planfile.locks import locked_folder
from planner.planfile.plan_folder import HOME, make_home
from planner.planfile.project_files import read_regular
from planner.text.sanitizing import one_line, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.errors import PlannerError
    from planner.model.answers import Answer
    from planner.model.base import Value
    from planner.model.baseline import Baseline
    from planner.model.qualification import Qualification

_Model = TypeVar("_Model", bound="Value")

ANSWERS = "answers.json"

_OF_ONE = frozenset(("todo_id", "step_id"))
"""Top-level keys of a file with a single outcome."""

_MAX_LINE = 400
_WAIT_SECONDS = 30


class _Kind(NamedTuple):
    """A kind of record as its errors need it: the name, the exception, and how to get a valid file."""

    name: str
    error: type[PlannerError]
    remedy: str

    def fault(self, shown: object, problem: str) -> PlannerError:
        """Return the one-line error; ``shown`` is the file as messages name it."""
        line = f"{shown}: the {self.name} cannot be used: {problem}"
        return self.error(one_line(line, limit=_MAX_LINE))


_OUTCOMES = _Kind("outcome file", OutcomeFileError, "delete it and run again")
_BASELINE = _Kind("baseline", BaselineError, "record it again: planverify baseline PLAN --reason TEXT")
_ANSWERS = _Kind("answers file", FileWriteError, "correct or remove it")


def read_outcomes(path: Path) -> OutcomeDocument:
    """Read a run's outcomes. Raises :class:`planner.errors.OutcomeFileError` with a one-line message."""
    return _parse(_read(path, _OUTCOMES), path, OutcomeDocument, _OUTCOMES)


def read_any_outcomes(path: Path) -> OutcomeDocument | Outcome:
    """Read a run's outcomes, or a single outcome, which has the id of its todo at the top.

    Raises :class:`planner.errors.OutcomeFileError`.
    """
    return _parse(_read(path, _OUTCOMES), path, OutcomeDocument, _OUTCOMES, alone=Outcome)


def write_outcomes(document: OutcomeDocument, path: Path) -> None:
    """Write outcomes to a path of the user. Raises :class:`planner.errors.FileWriteError`."""
    write_file(path, outcomes_text(document))


def outcomes_text(document: OutcomeDocument) -> str:
    """Return the text of an outcome file."""
    try:
        return document.model_dump_json(indent=2) + "\n"
    except ValueError:  # undecodable bytes of a path, or lone surrogates
        data = document.model_dump(mode="json")
        return without_surrogates(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"


def read_baseline(path: Path) -> tuple[Baseline, bytes]:
    """Read a baseline; return it with its bytes. Raises :class:`planner.errors.BaselineError`."""
    data = _read(path, _BASELINE)
    return parse_baseline(data, str(path)), data


def parse_baseline(data: bytes, shown: str) -> Baseline:
    """Parse a baseline. Raises :class:`planner.errors.BaselineError`."""
    from planner.model.baseline import Baseline

    return _parse(data, shown, Baseline, _BASELINE)


def baseline_bytes(document: Baseline) -> bytes:
    """Serialize a baseline, without defaults except for the version of the schema."""
    # Although it is a default: readers refuse newer versions by it.
    held = {"schema_version": document.schema_version}
    # Not in the mode for JSON, which would rename files whose names are not UTF-8.
    held |= document.model_dump(exclude_defaults=True)
    return (json.dumps(held, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def write_qualification(document: Qualification, path: Path) -> None:
    """Write a qualification to a path of the user. Raises :class:`planner.errors.FileWriteError`."""
    text = json.dumps(document.model_dump(mode="json"), indent=1, ensure_ascii=False)
    write_file(path, text + "\n", durable=True)


def load_answers(root: Path) -> tuple[Answer, ...]:
    """Return the answers below a plan's root, none where there is no file.

    Raises :class:`planner.errors.FileWriteError` if the file cannot be read.
    """
    from planner.model.answers import Answers

    path = root / HOME / ANSWERS
    return _parse(_read(path, _ANSWERS), path, Answers, _ANSWERS).answers if path.exists() else ()


def add_answers(root: Path, added: Sequence[Answer]) -> None:
    """Add answers to the file below a plan's root; the last answer to a question counts.

    Raises :class:`planner.errors.FileWriteError` if the file cannot be read or written.
    """
    from planner.model.answers import Answers

    path = root / HOME / ANSWERS
    replaced = {(each.plan, each.todo_id, each.check_id) for each in added}
    try:
        home = make_home(root)
    except OSError as error:
        raise _ANSWERS.fault(path, f"{error.strerror}; make its folder writable") from None
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_folder(home, _WAIT_SECONDS))
        except TimeoutError:
            problem = f"its folder has been locked for {_WAIT_SECONDS} s; repeat"
            raise _ANSWERS.fault(path, problem) from None
        except OSError:  # a file system without locks
            pass
        old = load_answers(root)
        kept = [each for each in old if (each.plan, each.todo_id, each.check_id) not in replaced]
        document = Answers(answers=(*kept, *added))
        # Code under test may have put a link there, whose target must not be written.
        replace_file(path, document.model_dump_json(indent=2, exclude_none=True) + "\n")


def _read(path: Path, kind: _Kind) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror}); check its path and its permissions"
        if error.errno == errno.EFBIG:  # how read_regular() reports a file beyond the limit
            problem = f"{error.strerror}; {kind.remedy}"
        raise kind.fault(path, problem) from None


def _parse(
    data: bytes, shown: object, model: type[_Model], kind: _Kind, *, alone: type[_Model] | None = None
) -> _Model:
    """Parse and validate a record, or what it holds ``alone``; the error names only the first fault."""
    try:
        held: Any = json.loads(data)
    except (RecursionError, ValueError) as error:
        problem = "the nesting is too deep" if isinstance(error, RecursionError) else error
        raise kind.fault(shown, f"it is not valid JSON: {problem}; {kind.remedy}") from None
    keys = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
    if alone is not None and "outcomes" not in keys and not _OF_ONE.isdisjoint(keys):
        model = alone
    info, version = model.model_fields.get("schema_version"), keys.get("schema_version")
    # First of all: the fields of a newer version would fail with a misleading error.
    if info is not None and isinstance(version, int) and version > info.default:
        problem = (
            f"schema_version {version} is newer than {info.default}, the newest that this version reads"
        )
        raise kind.fault(shown, f"{problem}; update pytest-planverify")
    try:
        return model.model_validate(held)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        article = "an" if kind.name[0] in "ao" else "a"
        problem = f"{where} does not fit {article} {kind.name}: {first['msg']}{more}; {kind.remedy}"
        raise kind.fault(shown, problem) from None
