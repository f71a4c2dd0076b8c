"""A criterion's limit holds for whatever takes too long, and the run goes on after it."""

from __future__ import annotations

import pytest
from example_project import Example, Verified, todo

HANGS = {
    "python_loop": "def test_it():\n    while True: pass\n",
    "holds_the_interpreter": "import re\ndef test_it(): re.match(r'(a+)+$', 'a' * 40 + 'b')\n",
    "set_up": "import pytest, time\n@pytest.fixture\ndef slow(): time.sleep(60)\ndef test_it(slow): pass\n",
    "at_import": "import time\ntime.sleep(60)\ndef test_it(): pass\n",
}

LIMIT = 2
"""Seconds in which a worker reaches its test however busy the machine is."""


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("hanging"))
    todos = [todo("first", "pytest test_healthy.py::test_first")]
    for name, text in HANGS.items():
        example.write({f"test_{name}.py": text})
        todos.append(todo(name, {"cmd": f"pytest test_{name}.py", "timeout_seconds": LIMIT}))
    example.write(
        {
            "test_healthy.py": "def test_first(): pass\ndef test_last(): pass\n",
            "hang.py": "import time\ntime.sleep(60)\n",
        }
    )
    todos += [
        todo("command", {"cmd": "python hang.py", "timeout_seconds": LIMIT}),
        todo("last", "pytest test_healthy.py::test_last"),
    ]
    example.plan(*todos)
    return example.verify("-p", "pytest_timeout", "--planverify-confirm=0", timeout_seconds=300)


@pytest.mark.parametrize("name", [*HANGS, "command"])
def test_what_takes_too_long_fails_as_a_timeout(name: str, hanging: Verified):
    check_id = "tests[0]"

    assert hanging.check(name, check_id)["verdict"] == "failed", str(hanging)
    assert hanging.category(name) == "TEST_TIMEOUT", str(hanging)


def test_where_the_test_was_when_it_was_ended_is_told(hanging: Verified):
    names = ("python_loop", "holds_the_interpreter", "set_up", "at_import")

    evidence = {name: hanging.outcomes[name]["failure_evidence"] for name in names}
    assert {name: evidence[name]["location"]["path"] for name in names} == {
        name: f"test_{name}.py" for name in names
    }


def test_the_run_goes_on_after_it(hanging: Verified):
    assert (hanging.verdicts["first"], hanging.verdicts["last"]) == ("passed", "passed"), str(hanging)
    assert hanging.exit_code == 1


def test_nothing_is_left_running(hanging: Verified):
    assert not hanging.left_running


def test_a_hang_on_a_worker_is_ended_too(tmp_path):  # type: ignore[no-untyped-def]
    example = Example(tmp_path, {"test_healthy.py": "def test_it(): pass\n"})
    names = ("holds_the_interpreter",)
    example.write({f"test_{name}.py": HANGS[name] for name in names})
    example.plan(
        *(todo(name, {"cmd": f"pytest test_{name}.py", "timeout_seconds": LIMIT}) for name in names),
        todo("healthy", "pytest test_healthy.py"),
    )

    run = example.verify("-p", "xdist", "-p", "pytest_timeout", "-n2", "--planverify-confirm=1")

    assert run.verdicts == dict.fromkeys(names, "failed") | {"healthy": "passed"}, str(run)
    assert {run.category(name) for name in names} == {"TEST_TIMEOUT"}
    assert not run.left_running


def test_many_quick_tests_together_keep_the_limit_or_fail(tmp_path):  # type: ignore[no-untyped-def]
    text = "import pytest, time\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): time.sleep(0.2)\n"
    example = Example(tmp_path, {"test_it.py": text})
    example.plan(
        todo("tight", {"cmd": "pytest test_it.py", "timeout_seconds": 1}),
        todo("wide", {"cmd": "pytest test_it.py", "timeout_seconds": 20}),
    )

    run = example.verify("-p", "pytest_timeout", "--planverify-confirm=1")

    assert run.verdicts == {"tight": "failed", "wide": "passed"}, str(run)
    assert run.category("tight") == "TEST_TIMEOUT"
