"""An agenda: days, jobs and a queue, with fixtures that rest on each other."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    Edit,
    Fault,
    Project,
    Turn,
    by_product,
    by_test,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "agenda/__init__.py": "",
    "agenda/days.py": '''"""Days as numbers since the first."""


def month_length(month, leap=False):
    lengths = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return lengths[month - 1]


def number(month, day):
    if not 1 <= day <= month_length(month):
        raise ValueError(f"month {month} has no day {day}")
    return sum(month_length(each) for each in range(1, month)) + day


def weekday(month, day):
    return (number(month, day) + 3) % 7
''',
    "agenda/jobs.py": '''"""Jobs and when they are due."""

from agenda.days import number


class Job:
    def __init__(self, name, month, day, weight=1):
        self.name = name
        self.due = number(month, day)
        self.weight = weight
        self.done = False

    def finish(self):
        self.done = True
        return self

    def days_left(self, month, day):
        return self.due - number(month, day)


def most_urgent(jobs):
    return min(jobs, key=lambda job: (job.due, -job.weight))
''',
    "agenda/queue.py": '''"""Jobs in the order in which they are taken up."""

from agenda.jobs import most_urgent


class Queue:
    def __init__(self, jobs=()):
        self.jobs = list(jobs)

    def open(self):
        return [job for job in self.jobs if not job.done]

    def take(self):
        if not self.open():
            raise LookupError("nothing is left")
        return most_urgent(self.open()).finish()

    def order(self):
        names = []
        while self.open():
            names.append(self.take().name)
        return names
''',
    "tests/conftest.py": """import pytest

from agenda.jobs import Job
from agenda.queue import Queue


@pytest.fixture
def jobs():
    return [Job("paint", 3, 1), Job("clean", 1, 15), Job("sell", 3, 1, weight=5)]


@pytest.fixture
def queue(jobs):
    return Queue(jobs)
""",
    "tests/test_days.py": """import pytest

from agenda import days


@pytest.mark.parametrize("month, length", [(1, 31), (2, 28), (4, 30), (12, 31)])
def test_month_length(month, length):
    assert days.month_length(month) == length


@pytest.mark.parametrize("month, day, expected", [(1, 1, 1), (3, 1, 60), (12, 31, 365)])
def test_number(month, day, expected):
    assert days.number(month, day) == expected


def test_no_such_day():
    with pytest.raises(ValueError):
        days.number(2, 30)


def test_weekday():
    assert days.weekday(1, 4) == 0
""",
    "tests/test_jobs.py": """from agenda.jobs import Job, most_urgent


def test_due(jobs):
    assert jobs[0].due == 60


def test_days_left(jobs):
    assert jobs[1].days_left(1, 5) == 10


def test_finish():
    assert Job("walk", 1, 1).finish().done


def test_most_urgent(jobs):
    assert most_urgent(jobs).name == "clean"


def test_heavier_first(jobs):
    assert most_urgent(jobs[::2]).name == "sell"
""",
    "tests/test_queue.py": """import pytest

from agenda.queue import Queue


def test_open(queue):
    assert len(queue.open()) == 3


def test_take(queue):
    assert queue.take().name == "clean"


def test_order(queue):
    assert queue.order() == ["clean", "sell", "paint"]


def test_nothing_left():
    with pytest.raises(LookupError):
        Queue().take()
""",
}

PROJECT = Project(
    name="agenda",
    files=FILES,
    todos={
        "days": tests("pytest tests/test_days.py"),
        "jobs": tests("pytest tests/test_jobs.py"),
        "queue": tests("pytest tests/test_queue.py"),
    },
    depends={"jobs": ("days",), "queue": ("jobs",)},
    faults=(
        Fault(
            kind="wrong-value-below",
            label=by_product("agenda/days.py", "month_length"),
            edits=(Edit("agenda/days.py", "29 if leap else 28", "29 if leap else 27"),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("agenda/days.py", "weekday"),
            edits=(Edit("agenda/days.py", "number(month, day) + 3", "number(month, day) + 4"),),
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("agenda/jobs.py", "most_urgent"),
            edits=(Edit("agenda/jobs.py", "(job.due, -job.weight)", "(job.due, job.weight)"),),
        ),
        Fault(
            kind="refuses-below",
            label=by_product("agenda/days.py", "number"),
            edits=(Edit("agenda/days.py", "if not 1 <= day <=", "if not 1 < day <"),),
        ),
        Fault(
            kind="lost-attribute",
            label=by_product("agenda/jobs.py", "Job.__init__", Category.TYPE_ERROR),
            edits=(Edit("agenda/jobs.py", "        self.weight = weight\n", ""),),
        ),
        Fault(
            kind="none-below",
            label=by_product("agenda/jobs.py", "Job.finish", Category.TYPE_ERROR),
            edits=(Edit("agenda/jobs.py", "        return self\n", ""),),
        ),
        Fault(
            kind="changed-signature",
            label=by_product("agenda/jobs.py", "Job.__init__", Category.SPEC_MISMATCH),
            edits=(
                Edit(
                    "agenda/jobs.py",
                    "name, month, day, weight=1",
                    "name, month, day, heaviness=1, *, weight",
                ),
            ),
        ),
        Fault(
            kind="broken-shared-fixture",
            label=by_test("tests/conftest.py", "jobs"),
            edits=(Edit("tests/conftest.py", 'Job("clean", 1, 15)', 'Job("clean", 2, 31)'),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="broken-conftest",
            label=by_test("tests/conftest.py"),
            edits=(
                Edit(
                    "tests/conftest.py",
                    "\n\n@pytest.fixture\ndef jobs",
                    "\nLIMIT = LIMITS[0]\n\n\n@pytest.fixture\ndef jobs",
                ),
            ),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("agenda/queue.py"),
            edits=(Edit("agenda/queue.py", "        names = []\n", "        names = [\n"),),
            turn=Turn.UNDERLYING,
        ),
    ),
)
