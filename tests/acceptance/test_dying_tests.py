"""A test that ends its process is never green, costs nobody else a verdict, and leaves nothing running."""

from __future__ import annotations

import pytest
from example_project import Example, Verified, todo

ENDINGS = {
    "segfault": "import ctypes; ctypes.string_at(0)",
    "exit_zero": "import os; os._exit(0)",
    "system_exit": "import sys; sys.exit(0)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "stopped": "import pytest; pytest.exit('enough', returncode=0)",
    "aborted": "import os; os.abort()",
    "interrupts": "raise KeyboardInterrupt",
    "exits_later": "import atexit, os; atexit.register(os._exit, 0); os.kill(os.getpid(), 15)",
}
"""By name, what a test does to end its process."""

AT_IMPORT = {
    "import_exit": "import sys; sys.exit(0)",
    "import_os_exit": "import os; os._exit(0)",
    "import_segfault": "import ctypes; ctypes.string_at(0)",
    "import_stops": "import pytest; pytest.exit('enough', returncode=0)",
}

CONFTEST_EXITS = "import sys\nsys.exit(0)\n"


def a_file_that_ends_by(statement: str) -> str:
    return f"def test_before(): pass\ndef test_dies():\n    {statement}\ndef test_after(): pass\n"


def an_example(folder) -> Example:  # type: ignore[no-untyped-def]
    example = Example(folder)
    todos = [todo("first", "pytest test_healthy.py::test_first")]
    for name, statement in ENDINGS.items():
        example.write({f"test_{name}.py": a_file_that_ends_by(statement)})
        todos.append(todo(name, f"pytest test_{name}.py::test_dies"))
        todos.append(
            todo(f"beside_{name}", f"pytest test_{name}.py::test_before test_{name}.py::test_after")
        )
    for name, statement in AT_IMPORT.items():
        example.write({f"test_{name}.py": f"{statement}\ndef test_it(): pass\n"})
        todos.append(todo(name, f"pytest test_{name}.py"))
    example.write(
        {
            "test_healthy.py": "def test_first(): pass\ndef test_last(): pass\n",
            "below/conftest.py": CONFTEST_EXITS,
            "below/test_it.py": "def test_it(): pass\n",
        }
    )
    todos += [
        todo("conftest_exit", "pytest below/test_it.py"),
        todo("last", "pytest test_healthy.py::test_last"),
    ]
    example.plan(*todos)
    return example


@pytest.fixture(scope="module", params=["folded", "workers"])
def dying(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = an_example(tmp_path_factory.mktemp(request.param))
    options = {
        "folded": ("--planverify-confirm=1",),
        "workers": ("-p", "xdist", "-n2", "--planverify-confirm=1"),
    }
    return example.verify(*options[request.param], timeout_seconds=90)


def test_a_test_that_ends_its_process_is_never_green(dying: Verified):
    verdicts = {name: dying.verdicts[name] for name in ENDINGS}

    assert set(verdicts.values()) == {"failed"}, f"{verdicts}\n{dying}"
    assert dying.exit_code == 1


def test_a_file_that_ends_the_process_at_its_import_is_never_green(dying: Verified):
    verdicts = {name: dying.verdicts[name] for name in (*AT_IMPORT, "conftest_exit")}

    assert set(verdicts.values()) == {"failed"}, f"{verdicts}\n{dying}"


def test_the_tests_around_it_keep_their_verdicts(dying: Verified):
    others = ["first", "last", *(f"beside_{name}" for name in ENDINGS)]

    assert {name: dying.verdicts[name] for name in others} == dict.fromkeys(others, "passed"), str(dying)


def test_a_crash_is_told_as_one(dying: Verified):
    crashes = ("segfault", "exit_zero", "killed", "aborted", "import_os_exit", "import_segfault")

    assert {name: dying.category(name) for name in crashes} == dict.fromkeys(crashes, "TEST_CRASH")


def test_nothing_is_left_running(dying: Verified):
    assert not dying.left_running
