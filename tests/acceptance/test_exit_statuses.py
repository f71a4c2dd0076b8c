"""The exit status of the real command: of several results, the most serious one decides.

The order of all statuses is tested in `tests/pytest_planverify/session/test_exit_status.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_project import Example, todo

from pytest_planverify.session.exit_status import ExitStatus

FILES = {
    "test_it.py": "def test_it(): pass\n",
    "breaking.py": """
        import pytest_planverify.session.end as end

        def keep_outcomes(document, path):
            raise RuntimeError("a plugin of the user's own")

        end.keep_outcomes = keep_outcomes
    """,
}
PASSES = todo("passes", "pytest test_it.py")
UNDECIDED = todo("undecided", "bandit -r .")
ASKS = todo("asks", manual=[{"question": "Does it look right?"}])


@pytest.mark.parametrize(
    ("status", "todos", "options"),
    [(3, [PASSES], ("-p", "breaking")), (10, [PASSES, UNDECIDED, ASKS], ())],
    ids=["internal-error", "inconclusive-before-human"],
)
def test_the_most_serious_result_decides_the_exit_status(
    tmp_path: Path, status: int, todos: list[dict[str, Any]], options: tuple[str, ...]
):
    project = Example(tmp_path, FILES)
    project.plan(*todos)

    run = project.verify(*options, env={"PYTHONPATH": str(tmp_path)})

    assert run.exit_code == status, str(run)
    if status != ExitStatus.INTERNAL_ERROR:  # then there may be no outcomes
        assert run.document is not None
        assert run.document["run"]["exit_status"] == status


def test_the_page_lists_exit_statuses_in_order_of_precedence():
    page = (Path(__file__).parents[2] / "docs/running.md").read_text(encoding="utf-8")
    table = page.partition("The exit status is the first")[2].partition("\n## ")[0]

    told = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert told[-10:] == ["3", "2", "4", "13", "12", "1", "10", "11", "5", "0"]
    assert {int(status) for status in told[-10:]} == set(ExitStatus)
