"""Commands that are not pytest: run without a shell, judged by what they prove, in order of effects."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from example_project import Example, Verified, todo

FILES = {
    "good.py": '"""Good."""\n',
    "unused.py": "import os\n",
    "broken.py": "def f(:\n",
    "test_unit.py": "import unittest\nclass Test(unittest.TestCase):\n    def test_it(self): pass\n",
    "no_tests.py": "",
    "Makefile": "good:\n\t@echo fine\nbad:\n\t@false\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node -e 0", "bad": "node b"}}',
    "b.js": "process.exit(3)\n",
    "says.py": "import os, sys\n"
    "sys.exit(0 if os.environ.get('WORD') == 'yes' and sys.argv[1] == '*.py' else 7)\n",
    "test_it.py": "def test_it(): pass\n",
}

COMMANDS = {
    "python_module": ("python -m compileall -q good.py", "passed"),
    "compiled": ("python -m py_compile good.py", "passed"),
    "not_compiled": ("python -m py_compile broken.py", "failed"),
    "linted": ("ruff check good.py --isolated", "passed"),
    "not_linted": ("ruff check unused.py --isolated", "failed"),
    "unittest": ("python -m unittest test_unit", "passed"),
    "unittest_of_nothing": ("python -m unittest no_tests", "failed"),
    "make_good": ("make good", "passed"),
    "make_bad": ("make bad", "failed"),
    "npm_good": ("npm test", "passed"),
    "npm_bad": ("npm run bad", "failed"),
    "no_shell": ("WORD=yes python says.py '*.py'", "passed"),
    "no_such_script": ("python nothing_here.py", "failed"),
}
NEEDS = {"make_good": "make", "make_bad": "make", "npm_good": "npm", "npm_bad": "npm"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("commands"), FILES)
    example.plan(*(todo(name, command) for name, (command, _) in COMMANDS.items()))
    return example.verify()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_judged_by_what_it_proves(name: str, ran: Verified):
    if name in NEEDS and shutil.which(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")

    assert ran.verdicts[name] == COMMANDS[name][1], str(ran)
    assert ran.check(name)["kind"] == "command"


def test_a_failed_command_is_diagnosed_by_its_kind(ran: Verified):
    assert ran.category("not_compiled") == "COMPILATION_ERROR"
    assert ran.category("not_linted") == "LINT_ERROR"


def test_a_tool_that_the_plan_names_is_judged_by_its_exit_status(tmp_path: Path):
    tools = [{"name": "in-order", "kind": "lint", "argv": ["sort", "--check"]}]
    example = Example(tmp_path, {"good.txt": "a\nb\n", "bad.txt": "b\na\n"})
    example.plan(
        todo("good", "in-order good.txt"),
        todo("bad", "sort --check bad.txt"),
        metadata={"tools": tools},
    )

    run = example.verify()

    assert run.verdicts == {"good": "passed", "bad": "failed"}, str(run)
    assert run.category("bad") == "LINT_ERROR"


def test_a_tool_that_nobody_names_is_refused_with_the_line_to_add(tmp_path: Path):
    example = Example(tmp_path, {"a.txt": ""})
    example.plan(todo("a", "sort --check a.txt"))

    run = example.verify()

    assert run.exit_code == 4
    assert "metadata: {tools: [{name: sort, kind: validate, argv: [sort]}]}" in run.output


def test_a_tool_that_is_missing_is_inconclusive(tmp_path: Path):
    example = Example(tmp_path, FILES)
    example.plan(todo("rust", "cargo test"), todo("green", "pytest test_it.py"))

    run = example.verify(env={"PATH": str(tmp_path)})

    assert run.verdicts == {"rust": "inconclusive", "green": "passed"}, str(run)
    assert run.exit_code == 10
    assert run.category("rust") in (None, "ENVIRONMENT_ERROR")
    assert "cargo is not installed" in run.output


# -- the order of effects ------------------------------------------------------------------------------

GENERATING = {
    "generate.py": "import pathlib\npathlib.Path('generated.py').write_text('VALUE = 42')\n",
    "test_generated.py": "import generated\ndef test_it(): assert generated.VALUE == 42\n",
    "test_before.py": "import pathlib\ndef test_it(): assert not pathlib.Path('generated.py').exists()\n",
    "conftest.py": "",
}


@pytest.mark.parametrize("options", [(), ("--planverify-isolate",)], ids=["folded", "isolated"])
def test_what_a_command_makes_is_there_for_the_todos_that_depend_on_it(
    options: tuple[str, ...], tmp_path: Path
):
    example = Example(tmp_path, GENERATING)
    example.plan(
        todo("use", "pytest test_generated.py", after=("make",)),
        todo("before", "pytest test_before.py"),
        todo("make", "python generate.py", after=("before",)),
    )

    run = example.verify(*options)

    assert run.verdicts == {"use": "passed", "before": "passed", "make": "passed"}, str(run)


def test_within_a_todo_commands_run_in_their_order(tmp_path: Path):
    example = Example(tmp_path, GENERATING)
    example.plan(todo("all", "pytest test_before.py", "python generate.py", "pytest test_generated.py"))

    run = example.verify()

    assert run.verdicts == {"all": dict.fromkeys(("tests[0]", "tests[1]", "tests[2]"), "passed")}, str(run)
