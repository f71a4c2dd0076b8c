"""Keep what people answer to the manual criteria of plans: ``.planverify/answers.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.errors import FileWriteError
from planner.model.answers import Answer, Answers
from planner.planfile.file_writer import write_file
from planner.planfile.plan_folder import HOME, make_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "answers.json"


def add_answers(root: Path, added: Sequence[Answer]) -> None:
    """Add answers to the file below a plan's root; of several to one question the last counts.

    Raises :class:`planner.errors.FileWriteError` where the file cannot be read or written.
    """
    path = root / HOME / NAME
    try:
        make_home(root)
        known = Answers.model_validate_json(path.read_bytes()).answers if path.exists() else ()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        raise FileWriteError(
            f"{path}: these are no answers ({first}); correct or remove the file"
        ) from None
    except OSError as error:
        raise FileWriteError(f"{path}: cannot be used: {error.strerror}; make it readable") from None
    replaced = {(each.plan, each.todo_id, each.check_id) for each in added}
    kept = [each for each in known if (each.plan, each.todo_id, each.check_id) not in replaced]
    document = Answers(answers=(*kept, *added))
    write_file(path, document.model_dump_json(indent=2, exclude_none=True) + "\n")
