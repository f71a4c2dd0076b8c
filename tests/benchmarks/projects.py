"""Writes the projects and plans that the benchmarks run, and reads what a run said about them."""

from __future__ import annotations

import json
from pathlib import Path


def one_test_commands(folder: Path, count: int) -> list[str]:
    """A project of so many one-test files, and a plan of so many todos with one command each.

    Returns the commands' node ids; the plan stands in ``plan.yaml``.
    """
    _settings(folder)
    nodeids: list[str] = []
    for number in range(count):
        path = f"tests/test_step_{number:03}.py"
        _write(folder / path, f"def test_value():\n    assert {number} + 1 == {number + 1}\n")
        nodeids.append(f"{path}::test_value")
    _plan(folder, {f"step_{n:03}": f"pytest {nodeid} -q --json-report" for n, nodeid in enumerate(nodeids)})
    return nodeids


def many_tests(folder: Path, *, todos: int, files: int, tests: int) -> int:
    """A project of trivial tests, and a plan whose todos each verify a folder of so many files.

    Returns the number of tests.
    """
    _settings(folder)
    body = "".join(f"def test_{number:04}():\n    assert True\n\n\n" for number in range(tests))
    for todo in range(todos):
        for file in range(files):
            _write(folder / f"tests/part_{todo:02}/test_part_{todo:02}_{file:02}.py", body)
    _plan(folder, {f"part_{todo:02}": f"pytest tests/part_{todo:02} -q" for todo in range(todos)})
    return todos * files * tests


_RED_BODIES = (
    "assert total([{n}]) == {n} + 1",
    "assert price('{n}') == {n}",
    "total(None)",
    "assert names()['{n}']",
    "assert total([{n}, 'x'])",
)


def red_tests(folder: Path, *, tests: int, red: int) -> None:
    """A small shop with so many tests, of which so many fail, in several ways; a plan of four todos."""
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
    _plan(folder, {f"part_{todo}": f"pytest tests/test_part_{todo}.py" for todo in range(4)})


def expect_done(folder: Path, *, todos: int, tests: int) -> None:
    """Raises AssertionError unless the outcome file says that everything was run and holds."""
    path = folder / ".planverify" / "outcomes.json"
    document = json.loads(path.read_text())
    path.unlink()  # the next run has to write its own
    assert document["run"]["exit_status"] == 0, document["run"]
    assert document["summary"]["todos"] == {"done": todos}, document["summary"]
    checks = [check for entry in document["outcomes"] for check in entry["checks"]]
    outcomes = [test["outcome"] for check in checks for test in check["tests"]]
    assert outcomes == ["passed"] * tests, f"{len(outcomes)} tests instead of {tests}"


def _settings(folder: Path) -> None:
    # An ini file of its own, so that the root directory is this folder whatever lies above it.
    _write(folder / "pytest.ini", "[pytest]\ntestpaths = tests\npythonpath = .\n")


def _plan(folder: Path, commands: dict[str, str]) -> None:
    items = [
        {
            "id": todo_id,
            "title": f"Verify {todo_id}",
            "acceptance_criteria": {"tests": [{"cmd": command, "timeout_seconds": 300}]},
        }
        for todo_id, command in commands.items()
    ]
    # JSON is YAML too.
    _write(folder / "plan.yaml", json.dumps({"todo_list_id": "benchmark", "items": items}, indent=1))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
