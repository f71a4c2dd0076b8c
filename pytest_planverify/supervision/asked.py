"""What a criterion asks of a session, as far as its verdict is concerned."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.catalog import PytestInvocation
    from pytest_planverify.judgement import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What of a criterion matters for its verdict."""

    key: str
    check_id: str
    limit_seconds: float
    selections: tuple[str, ...]
    expression: str = ""
    """``-k``, ``-m`` and ``--deselect`` as the command gives them."""
    contract_path: str | None = None
    view: Callable[[Judgement], Judgement] | None = None
    """What a comparison with the baseline makes of what the tests said."""

    def seen(self, judgement: Judgement) -> Judgement:
        """What the tests said, as it is to be looked at."""
        return judgement if self.view is None else self.view(judgement)

    def concerns(self, nodeid: str) -> bool:
        """Whether what failed to be collected lies in what the criterion names, or around it."""
        if not self.selections:
            return True
        failed = nodeid.partition("[")[0].split("::")[0].strip("/")
        for selection in self.selections:
            named = file_of(selection)
            if named in ("", ".") or failed == named or failed.startswith(named + "/"):
                return True
            if failed in ("", ".") or named.startswith(failed + "/"):
                return True
        return False


def expression_of(invocation: PytestInvocation) -> str:
    """``-k``, ``-m`` and ``--deselect`` as a command gives them."""
    given = (("-k", invocation.keyword), ("-m", invocation.markexpr))
    texts = [f"{option} {text!r}" for option, text in given if text and text.strip()]
    return " ".join([*texts, *(f"--deselect {prefix}" for prefix in invocation.deselect)])


def file_of(selection: str) -> str:
    """The file or folder that an argument of pytest names, without detours."""
    return posixpath.normpath(selection.partition("[")[0].split("::")[0].replace("\\", "/"))
