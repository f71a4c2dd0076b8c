"""Commands that are not pytest are run for real, and judged by what they say beside their exit status."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from planner.catalog import parse_command
from planner.model.verdicts import Verdict
from pytest_planverify.checks import command as module
from pytest_planverify.checks.command import find_program, run_command
from pytest_planverify.checks.result import Judgement


def run(cmd: str, root: Path, timeout_seconds: float = 60, **options: object) -> Judgement:
    return run_command(parse_command(cmd), root, timeout_seconds, check_id="verify", **options)  # type: ignore[arg-type]


def needs(program: str) -> pytest.MarkDecorator:
    found = find_program(program, Path(), os.environ.get("PATH"))
    return pytest.mark.skipif(found is None, reason=f"{program} is not installed")


def test_a_command_that_succeeds_passes(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("import os\nprint(os.environ['A'], os.getcwd())\n")
    result = run("A=1 python ok.py", tmp_path)
    assert (result.verdict, result.exit_code, result.evidence) == (Verdict.PASSED, 0, ())


def test_a_failure_carries_its_place_relative_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text("def f():\n    raise ValueError('x')\nf()\n")
    result = run("python boom.py", tmp_path)
    assert (result.verdict, result.exit_code, result.reason) == (Verdict.FAILED, 1, "it exited with 1")
    (evidence,) = result.evidence
    assert evidence.headline == "boom.py:2: ValueError: x"
    assert evidence.check_id == "verify"
    assert evidence.command is not None
    assert (evidence.command.tool, evidence.command.purpose) == ("python", "test")
    assert evidence.command.findings[0].path == "boom.py"
    assert "Traceback" in evidence.command.output_tail


def test_a_syntax_error_is_found_by_py_compile(tmp_path: Path) -> None:
    (tmp_path / "syn.py").write_text("def g(:\n")
    (evidence,) = run("python -m py_compile syn.py", tmp_path).evidence
    assert evidence.command is not None
    finding = evidence.command.findings[0]
    assert (finding.path, finding.line, finding.code) == ("syn.py", 1, "SyntaxError")
    assert evidence.command.purpose == "validate"


def test_compiling_a_folder_that_is_not_there_proves_nothing(tmp_path: Path) -> None:
    result = run("python -m compileall -q missing", tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.FAILED, 0)
    assert result.evidence[0].vacuous == "nothing_collected"
    assert "proves nothing" in (result.reason or "")


def test_unit_tests_that_fail_are_named_and_skipped_ones_prove_nothing(tmp_path: Path) -> None:
    case = "import unittest\nclass T(unittest.TestCase):\n"
    (tmp_path / "test_u.py").write_text(f"{case}    def test_a(self): self.assertEqual(1, 2)\n")
    (tmp_path / "test_s.py").write_text(f"{case}    @unittest.skip('x')\n    def test(self): pass\n")
    (evidence,) = run("python -m unittest test_u", tmp_path).evidence
    assert evidence.headline == "test_u.py:3: AssertionError: test_a: 1 != 2"
    result = run("python -m unittest test_s", tmp_path)
    assert result.verdict is Verdict.FAILED
    if result.exit_code == 0:
        assert result.evidence[0].vacuous == "all_skipped"


@needs("ruff")
def test_ruff_really_complains_as_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    (evidence,) = run("ruff check --no-cache --isolated a.py", tmp_path).evidence
    assert evidence.command is not None
    assert [(f.path, f.line, f.code) for f in evidence.command.findings] == [("a.py", 1, "F401")]
    (tmp_path / "empty").mkdir()
    assert run("ruff check --no-cache --isolated empty", tmp_path).verdict is Verdict.FAILED


@needs("mypy")
def test_mypy_really_complains_as_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x: int = 'a'\n")
    (evidence,) = run("mypy --no-incremental a.py", tmp_path).evidence
    assert evidence.command is not None
    assert [(f.path, f.line, f.code) for f in evidence.command.findings] == [("a.py", 1, "assignment")]


@needs("make")
def test_make_really_complains_as_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text('fail:\n\t@python3 -c "raise SystemExit(3)"\n')
    (evidence,) = run("make fail", tmp_path).evidence
    assert evidence.headline == "Makefile:2: fail: Error 3"


@needs("node")
def test_node_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("const x = {\n")
    (evidence,) = run("node a.js", tmp_path).evidence
    assert evidence.headline.startswith("a.js:2: SyntaxError")


def test_a_limit_that_passed_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    result = run("python slow.py", tmp_path, 0.5)
    (evidence,) = result.evidence
    assert (result.verdict, result.reason) == (Verdict.FAILED, "it was stopped after its limit of 0.5 s")
    assert (evidence.timed_out, evidence.limit_seconds) == (True, 0.5)
    assert evidence.process is not None
    assert evidence.process.timed_out


def test_a_signal_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "die.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    result = run("python die.py", tmp_path)
    assert (result.verdict, result.reason, result.exit_code) == (
        Verdict.FAILED,
        "it was killed by SIGKILL",
        None,
    )
    assert result.evidence[0].process is not None
    assert result.evidence[0].process.signal == "SIGKILL"


@pytest.mark.parametrize("cmd", ["./gradlew test", "lib/mypy src"])
def test_a_program_that_is_not_there_is_inconclusive(cmd: str, tmp_path: Path) -> None:
    result = run(cmd, tmp_path)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason == f"{cmd.split()[0]} is not installed"
    assert result.evidence[0].command is not None
    assert not result.evidence[0].command.found


def test_a_program_that_cannot_be_started_is_inconclusive(tmp_path: Path) -> None:
    broken = tmp_path / "gradlew"
    broken.write_text("\x7fELF no program")
    broken.chmod(0o755)
    result = run("./gradlew test", tmp_path)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "cannot be started" in (result.reason or "")


def test_a_root_that_is_gone_is_inconclusive(tmp_path: Path) -> None:
    assert run("python -m compileall -q .", tmp_path / "gone").verdict is Verdict.INCONCLUSIVE


def test_a_tool_whose_module_is_missing_is_inconclusive(tmp_path: Path) -> None:
    isolated = tmp_path / "python"
    isolated.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    isolated.chmod(0o755)
    result = run("./python -m mypy src", tmp_path)
    assert (result.verdict, result.reason) == (
        Verdict.INCONCLUSIVE,
        "the module mypy is not installed",
    )
    assert run("./python -m mypkg.check", tmp_path).verdict is Verdict.FAILED


def test_python_is_the_running_interpreter_and_tools_beside_it_come_first(tmp_path: Path) -> None:
    assert find_program("python", tmp_path) == find_program("python3", tmp_path) == sys.executable
    assert find_program("sh", tmp_path, os.defpath) == shutil.which("sh", path=os.defpath)
    assert find_program("nonexistent-program", tmp_path, "") is None
    beside = Path(sys.executable).parent / "pytest"
    if beside.exists():
        assert find_program("pytest", tmp_path, "") == str(beside)


def test_output_in_evidence_is_clean_and_bounded(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('\\x1b[31mred\\u202e' + 'x' * 100_000); raise SystemExit(1)")
    (evidence,) = run("python loud.py", tmp_path).evidence
    assert evidence.stdout_tail.startswith("redx")
    assert len(evidence.stdout_tail) < module.OUTPUT_CHARACTERS + 100
    assert evidence.model_dump_json()


def test_the_environment_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text(
        "import os\nassert 'HOME' not in os.environ and os.environ['B'] == '2'\n"
    )
    assert run("B=2 python ok.py", tmp_path, env={"B": "1"}).verdict is Verdict.PASSED
