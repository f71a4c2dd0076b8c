"""Write the projects and plans that the benchmarks run, and check the results of the runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def one_test_commands(folder: Path, count: int, *, red: int = 0) -> list[str]:
    """Write a project of one-test files, and a plan of as many todos with one command each.

    Of the ``count`` tests, ``red`` fail, evenly spread. Returns the commands' node ids; the plan is
    ``plan.yaml``.
    """
    _settings(folder)
    every = count // red if red else count + 1
    nodeids: list[str] = []
    for number in range(count):
        path = f"tests/test_step_{number:03}.py"
        value = number + 1 + (number % every == every - 1)
        _write(folder / path, f"def test_value():\n    assert {number} + 1 == {value}\n")
        nodeids.append(f"{path}::test_value")
    write_plan(folder, {f"step_{n:03}": f"pytest {nodeid} -q" for n, nodeid in enumerate(nodeids)})
    return nodeids


def hanging_command(folder: Path, *, limit_seconds: int) -> None:
    """Write a project with one test that never ends, and a plan with this time limit."""
    _settings(folder)
    _write(folder / "tests/test_hang.py", "import time\n\n\ndef test_hang():\n    time.sleep(3600)\n")
    write_plan(folder, {"hang": "pytest tests/test_hang.py -q"}, limit_seconds=limit_seconds)


def many_tests(folder: Path, *, files: int, tests: int) -> int:
    """Write a project of trivial tests, and a plan with one command that runs all of them.

    Returns the number of tests.
    """
    _settings(folder)
    body = "".join(f"def test_{number:04}():\n    assert True\n\n\n" for number in range(tests))
    for file in range(files):
        _write(folder / f"tests/test_part_{file:03}.py", body)
    write_plan(folder, {"all": "pytest tests -q"})
    return files * tests


_RED_BODIES = (
    "assert total([{n}]) == {n} + 1",
    "assert price('{n}') == {n}",
    "total(None)",
    "assert names()['{n}']",
    "assert total([{n}, 'x'])",
)


def red_tests(folder: Path, *, tests: int, red: int) -> None:
    """Write a shop with ``tests`` tests, of which ``red`` fail in several ways; a plan of four todos."""
    _settings(folder)
    _write(
        folder / "shop.py",
        "def total(values):\n    return sum(values)\n\n\n"
        "def price(text):\n    raise ValueError(f'no price: {text}')\n\n\n"
        "def names():\n    return {}\n",
    )
    every = tests // red
    for todo in range(4):
        bodies: list[str] = []
        for number in range(todo * tests // 4, (todo + 1) * tests // 4):
            which = number // every % len(_RED_BODIES)
            body = "assert total([1]) == 1" if number % every else _RED_BODIES[which].format(n=number)
            bodies.append(f"def test_{number:05}():\n    {body}\n")
        head = "from shop import names, price, total\n\n\n"
        _write(folder / f"tests/test_part_{todo}.py", head + "\n\n".join(bodies))
    write_plan(folder, {f"part_{todo}": f"pytest tests/test_part_{todo}.py" for todo in range(4)})


def expect_done(folder: Path, *, todos: int, tests: int | None = None) -> None:
    """Raise ``AssertionError`` unless the outcome file says that everything was run and passed.

    ``tests`` is the number of passed tests, if no other outcome is allowed.
    """
    document = _read_outcomes(folder)
    assert document["run"]["exit_status"] == 0, document["run"]
    assert document["summary"]["todos"] == {"done": todos}, document["summary"]
    if tests is not None:
        outcomes = _test_outcomes(document)
        assert outcomes == ["passed"] * tests, f"{len(outcomes)} tests instead of {tests}"


def expect_red(folder: Path, *, red: int) -> None:
    """Raise ``AssertionError`` unless the outcome file says that ``red`` todos are not done."""
    document = _read_outcomes(folder)
    todos = document["summary"]["todos"]
    assert sum(todos.values()) - todos.get("done", 0) == red, todos


def _read_outcomes(folder: Path) -> dict[str, Any]:
    path = folder / ".planverify" / "outcomes.json"
    document = json.loads(path.read_text())
    path.unlink()  # the next run has to write its own
    return document


def _test_outcomes(document: dict[str, Any]) -> list[str]:
    checks = [check for entry in document["outcomes"] for check in entry["checks"]]
    return [test["outcome"] for check in checks for test in check["tests"]]


def _settings(folder: Path) -> None:
    # An ini file of its own, so that the root directory is this folder whatever lies above it.
    _write(folder / "pytest.ini", "[pytest]\ntestpaths = tests\npythonpath = .\n")


def write_plan(folder: Path, commands: dict[str, str], *, limit_seconds: int = 300) -> None:
    """Write ``plan.yaml`` with one todo for each command, by its id."""
    items = [
        {
            "id": todo_id,
            "title": f"Verify {todo_id}",
            "acceptance_criteria": {"tests": [{"cmd": command, "timeout_seconds": limit_seconds}]},
        }
        for todo_id, command in commands.items()
    ]
    # JSON is YAML too.
    _write(folder / "plan.yaml", json.dumps({"todo_list_id": "benchmark", "items": items}, indent=1))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
