"""Commands other than pytest, executed and judged by their exit status and output."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from text_bundles import write_files

from planner.catalog import parse_command
from planner.model.evidence import CommandFact
from planner.model.outcome import Location
from planner.model.plan import ToolSpec
from planner.model.verdicts import Verdict
from pytest_planverify.checks import command as module
from pytest_planverify.checks.command import find_program, run_command
from pytest_planverify.checks.result import Judgement
from pytest_planverify.diagnosis import diagnose


def run(cmd: str, root: Path, timeout_seconds: float = 60, **options: object) -> Judgement:
    return run_command(parse_command(cmd), root, timeout_seconds, check_id="verify", **options)


def command_fact(result: Judgement) -> CommandFact:
    (evidence,) = result.evidence
    return evidence.command


def test_successful_command_passes_in_the_given_environment_with_its_own_variables(tmp_path: Path) -> None:
    text = "import os\nassert 'HOME' not in os.environ and os.environ['B'] == '2'\n"
    (tmp_path / "ok.py").write_text(text)
    result = run("B=2 python ok.py", tmp_path, env={"B": "1"})
    assert (result.verdict, result.exit_code, result.evidence) == (Verdict.PASSED, 0, ())


OF_NODE = "    at add (/app/check.js:2:29)\n    at node:internal/run:28:49\n\nNode.js v20.20.2"


@pytest.mark.parametrize(
    ("output", "headline"),
    [
        (f"Error: add is wrong: -1\n{OF_NODE}", "Error: add is wrong: -1"),
        ('[{\n"code": 1\n}]', '"code": 1'),
        ("a.py:1: {root}/b.py is no list", "a.py:1: b.py is no list"),
        ("/home{root}/a.py, file://{root}/b.py", "/home{root}/a.py, b.py"),
    ],
    ids=["uncaught error of node", "last line with a word", "below the root", "only ends like the root"],
)
def test_headline_is_the_essential_line_with_paths_relative_to_the_root(
    output: str, headline: str, tmp_path: Path
) -> None:
    output, headline = (each.replace("{root}", str(tmp_path)) for each in (output, headline))
    (tmp_path / "check.py").write_text(f"raise SystemExit({output!r})")
    assert run("python check.py", tmp_path).evidence[0].headline == headline


@pytest.mark.parametrize("command", ["python tests/test_a.py", "python -m tests.test_a"])
def test_a_script_that_only_defines_tests_is_vacuous(command: str, tmp_path: Path) -> None:
    text = "import sys\nsys.path.insert(0, '.')\nBASE = len('1')\ndef test_a(): assert BASE == 2\n"
    write_files(tmp_path, {"tests/test_a.py": text})
    result = run(command, tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.FAILED, 0)
    assert result.evidence[0].vacuous == "nothing_collected"
    assert "runs no test of tests/test_a.py, which defines test_a; write pytest" in (result.reason or "")


@pytest.mark.parametrize(
    ("tool", "argument", "content", "passes"),
    [
        ("python -m flake8", "docs", {"docs/a.md": ""}, False),
        ("python -m flake8", "docs", {"docs/.hidden/a.py": ""}, False),
        ("python -m flake8", "docs", {"docs/deep/a.py": ""}, True),
        ("python -m flake8", "--config a.cfg docs", {"docs/a.md": "", "a.cfg": ""}, True),
        ("python -m flake8", "--select E501", {}, True),
        ("python -m codespell_lib", "nowhere", {}, False),
        ("python -m codespell_lib", "-L nowhere", {}, True),
        ("python -m doctest", "a.py", {"a.py": "A = 1\n"}, False),
        ("python -m doctest", "a.py", {"a.py": '"""\n>>> 1\n1\n"""\n'}, True),
        ("python -m doctest", "a.py", {"a.py": '"""\n>>> 1  # doctest: +SKIP\n"""\n'}, False),
        ("python -m doctest", "a.py", {"a.py": f"# {'>>> # doctest:' * 50_000}\n"}, True),
    ],
)
def test_success_of_a_tool_that_was_given_nothing_to_check_is_vacuous(
    tool: str, argument: str, content: dict[str, str], passes: bool, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    write_files(tmp_path, content)
    silent = tmp_path / tool.rpartition(" ")[2]  # a tool that succeeds without a word, as the real ones do
    if silent.name != "doctest":
        silent.with_suffix(".py").write_text("")
    result = run(f"{tool} {argument}", tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.PASSED if passes else Verdict.FAILED, 0)
    assert [evidence.vacuous for evidence in result.evidence] == ([] if passes else ["nothing_collected"])
    assert passes or "proves nothing" in (result.reason or "")


def test_a_status_of_zero_does_not_hide_failed_tests(tmp_path: Path) -> None:
    test = "def test_a(): assert 1 == 2\ndef test_b(): pass\n"
    program = "import pytest\npytest.main(['-p', 'no:cacheprovider', 'test_a.py'])\n"
    write_files(tmp_path, {"test_a.py": test, "all.py": program})
    result = run("PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python all.py", tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.FAILED, 0)
    assert "exited with 0, but its output reports failures: 1 failed, 1 passed" in (result.reason or "")
    assert result.evidence[0].headline == "test_a.py:1: AssertionError (exit status 0)"
    assert result.evidence[0].vacuous is None


def test_a_goal_of_tests_that_is_up_to_date_is_vacuous(tmp_path: Path) -> None:
    write_files(tmp_path, {"test/a": "", "Makefile": "test:\n\tpython -m pytest\nbuild:\n"})
    hollow = run("make test", tmp_path)
    assert (hollow.verdict, hollow.exit_code) == (Verdict.FAILED, 0)
    assert "make ran nothing: 'test' is up to date" in hollow.evidence[0].headline
    assert run("make build", tmp_path).verdict is Verdict.PASSED


UNITTEST = "import unittest\nclass T(unittest.TestCase):\n"
IDLE_UNITTEST = f"{UNITTEST}    @unittest.skip('later')\n    def test_a(self): pass\n"
FAILED_UNITTEST = f"{UNITTEST}    def test_a(self): self.assertEqual(1, 2)\n"
FAILED_TARGET = 'fail:\n\t@python3 -c "raise SystemExit(3)"\n'


@pytest.mark.parametrize(("text", "vacuous"), [("", "nothing_collected"), (IDLE_UNITTEST, "all_skipped")])
def test_a_run_of_unittest_without_tests_is_vacuous_whatever_its_status(
    text: str, vacuous: str, tmp_path: Path
) -> None:
    write_files(tmp_path, {"test_u.py": text})
    result = run("python -m unittest test_u", tmp_path)  # from Python 3.12 on, it exits with 5
    assert (result.verdict, result.evidence[0].vacuous) == (Verdict.FAILED, vacuous)


@pytest.mark.parametrize(
    ("command", "text", "headline"),
    [
        ("python -m unittest test_u", FAILED_UNITTEST, "test_u.py:3: AssertionError: test_a: 1 != 2"),
        ("ruff check --no-cache --isolated a.py", "import os\n", "a.py:1: F401: `os` imported but unused"),
        ("mypy --no-incremental a.py", "x: int = 'a'\n", "a.py:1: assignment: "),
        ("make fail", FAILED_TARGET, "Makefile:2: fail: Error 3"),
        ("node a.js", "const x = {\n", "a.js:2: SyntaxError"),
    ],
)
def test_output_of_real_tools_is_parsed(command: str, text: str, headline: str, tmp_path: Path) -> None:
    program = command.partition(" ")[0]
    if find_program(program, tmp_path, os.environ.get("PATH")) is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / headline.partition(":")[0]).write_text(text)
    result = run(command, tmp_path)
    assert result.verdict is Verdict.FAILED
    assert result.evidence[0].headline.startswith(headline)


def test_failure_has_a_location_and_paths_relative_to_the_root(tmp_path: Path) -> None:
    cart, check = "def total():\n    return {}['price']\n", "from shop.cart import total\n\ntotal()\n"
    write_files(tmp_path, {"shop/cart.py": cart, "check.py": check})

    result = run("python check.py", tmp_path)

    assert (result.verdict, result.exit_code, result.reason) == (Verdict.FAILED, 1, "it exited with 1")
    (evidence,) = result.evidence
    assert (evidence.headline, evidence.check_id) == ("shop/cart.py:2: KeyError: 'price'", "verify")
    fact = command_fact(result)
    assert (fact.tool, fact.purpose, fact.findings[0].path) == ("python", "test", "shop/cart.py")
    assert "Traceback" in fact.output_tail
    assert diagnose(evidence).location == Location(path="shop/cart.py", line=2, function="total")
    assert str(tmp_path) not in evidence.model_dump_json()


def test_skipped_unittests_are_vacuous(tmp_path: Path) -> None:
    (tmp_path / "test_s.py").write_text(f"{UNITTEST}    @unittest.skip('x')\n    def test(self): pass\n")
    result = run("python -m unittest test_s", tmp_path)
    assert result.verdict is Verdict.FAILED
    if result.exit_code == 0:  # later versions of unittest return 5
        assert result.evidence[0].vacuous == "all_skipped"


def test_skipped_sessions_have_their_reason(tmp_path: Path) -> None:
    reason = "Python interpreter 3.9 not found."
    (tmp_path / "nox.py").write_text(f"print('nox > Session a-3.9 skipped: {reason}')")
    (evidence,) = run("python -m nox", tmp_path).evidence
    assert evidence.skip_reasons == (reason,)
    assert diagnose(evidence).rule == "all-skipped-for-a-module"


def test_command_over_its_time_limit_fails(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    result = run("python slow.py", tmp_path, 0.1)
    (evidence,) = result.evidence
    assert (result.verdict, result.reason) == (Verdict.FAILED, "it was stopped after its limit of 0.1 s")
    assert (evidence.timed_out, evidence.limit_seconds) == (True, 0.1)
    assert evidence.process.timed_out


def test_command_killed_by_a_signal_fails(tmp_path: Path) -> None:
    (tmp_path / "die.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    result = run("python die.py", tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.FAILED, None)
    assert result.reason == "it was killed by SIGKILL"
    assert result.evidence[0].process.signal == "SIGKILL"


def test_program_that_is_missing_or_cannot_be_started_is_inconclusive(tmp_path: Path) -> None:
    missing = run("./gradlew test", tmp_path)
    assert (missing.verdict, missing.reason) == (Verdict.INCONCLUSIVE, "./gradlew is not installed")
    assert not command_fact(missing).found
    broken = tmp_path / "gradlew"
    broken.write_text("\x7fELF no program")
    broken.chmod(0o755)
    for command, root in (("./gradlew test", tmp_path), ("python -m compileall -q .", tmp_path / "gone")):
        result = run(command, root)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert "cannot be started" in (result.reason or "")


def test_tool_with_a_missing_module_is_inconclusive(tmp_path: Path) -> None:
    isolated = tmp_path / "python"
    isolated.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    isolated.chmod(0o755)
    result = run("./python -m mypy src", tmp_path)
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, "the module mypy is not installed")
    assert run("./python -m mypkg.check", tmp_path).verdict is Verdict.FAILED


def test_option_m_without_a_module_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "check").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "check").chmod(0o755)
    command = parse_command("check -m", (ToolSpec(name="check", argv=("./check",)),))
    assert run_command(command, tmp_path, 60).verdict is Verdict.FAILED


def test_python_is_the_running_interpreter_and_its_tools_come_first(tmp_path: Path) -> None:
    assert find_program("python", tmp_path) == find_program("python3", tmp_path) == sys.executable
    assert find_program("sh", tmp_path, os.defpath) == shutil.which("sh", path=os.defpath)
    assert find_program("nonexistent-program", tmp_path, "") is None
    beside = Path(sys.executable).parent / "pytest"
    if beside.exists():
        assert find_program("pytest", tmp_path, "") == str(beside)


def test_output_in_evidence_is_sanitised_and_limited(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('\\x1b[31mred\\u202e' + 'x' * 100_000); raise SystemExit(1)")
    (evidence,) = run("python loud.py", tmp_path).evidence
    assert evidence.stdout_tail.startswith("redx")
    assert len(evidence.stdout_tail) < module.OUTPUT_CHARACTERS + 100
    assert evidence.model_dump_json()
