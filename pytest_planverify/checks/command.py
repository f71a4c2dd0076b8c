"""Command criteria other than pytest: run as argument vectors, interpreted by the tool catalog.

No shell takes part. An exit status of 0 alone is no pass: the tool's output must not show that nothing was
checked. :mod:`planner.catalog.output` knows the output of each tool, and reads its findings.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalog.output import hidden_failures, proves_nothing, read_findings
from planner.model.evidence import CommandFact, Evidence, Finding, ProcessEnd
from planner.model.verdicts import EvidenceKind, Verdict
from planner.planfile.project_files import RootedFiles
from planner.text.python_text import uncalled_tests
from planner.text.sanitizing import clean
from pytest_planverify.checks.processes import ProcessResult, run_process
from pytest_planverify.checks.result import Judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.catalog import Command

MAX_NAMES = 20_000
"""Limit of names that are searched below the given folders; with more, one of them is taken to fit."""
OUTPUT_CHARACTERS = 8_000
"""Characters of a failed command's output that are kept as evidence."""


def run_command(
    command: Command,
    root: Path,
    timeout_seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    check_id: str = "",
    watch: Callable[[], None] | None = None,
) -> Judgement:
    """Run a command in the root and judge it by exit status and output.

    ``env`` is the complete environment, by default this process's; the command's own variables are
    added. ``watch`` is called regularly, see :func:`run_process`. Success that proves nothing is
    ``failed``, as is an exceeded limit; a missing program, or module of ``python -m``, is ``inconclusive``.
    """
    environment = {**(os.environ if env is None else env), **dict(command.env)}
    program = find_program(command.argv[0], root, environment.get("PATH"))
    if program is None:
        return _not_passed(command, Verdict.INCONCLUSIVE, f"{command.argv[0]} is not installed", check_id)
    try:
        process = run_process(
            # Plans are UTF-8, even if the locale's encoding is not.
            [os.fsdecode(word.encode("utf-8", "surrogateescape")) for word in (program, *command.argv[1:])],
            cwd=root,
            env=environment,
            timeout_seconds=timeout_seconds,
            watch=watch,
        )
    except (OSError, ValueError) as error:
        reason = f"{command.argv[0]} cannot be started: {error}"
        return _not_passed(command, Verdict.INCONCLUSIVE, reason, check_id)
    return _judge(command, process, root, timeout_seconds, check_id)


def find_program(name: str, root: Path, search_path: str | None = None) -> str | None:
    """Return the path of a program, or ``None`` if there is none.

    A name with ``/`` is relative to ``root``. ``python`` and ``python3`` are this interpreter. Other
    programs are looked up beside this interpreter, then on ``search_path`` (by default this process's).
    """
    if "/" in name:
        return shutil.which(str(root.absolute() / name))
    if name in ("python", "python3"):
        return sys.executable
    # First beside this interpreter, as its virtual environment need not be activated.
    beside = shutil.which(name, path=str(Path(sys.executable).parent))
    return beside or shutil.which(name, path=search_path)


_NO_MODULE = re.compile(r": No module named '?(?P<name>[\w.]+)'?(?:;.*)?$", re.MULTILINE)
"""Message of the interpreter if ``python -m`` does not find a module, or one that the module imports."""

_NO_TESTS = 5
"""Exit code of unittest, from Python 3.12 on, and of pytest for a run without tests."""

_SKIPPED = re.compile(r"\bskipped: +(\S.*)$", re.MULTILINE)
_AFTER_ERROR = re.compile(r"\s+at .*:\d+:\d+\)?|Node\.js v[\d.]+")
"""Lines that node prints after the message of an uncaught error."""


def _judge(
    command: Command, process: ProcessResult, root: Path, timeout_seconds: float, check_id: str
) -> Judgement:
    """Judge a process that was started and has ended."""
    tool = command.tool
    # First, as a missing module exits with 1, like a tool that has found something.
    missing_module = _module_that_is_missing(command, process)
    if missing_module:
        reason = f"the module {missing_module} is not installed"
        return _not_passed(command, Verdict.INCONCLUSIVE, reason, check_id, process)
    proof = None
    if process.timed_out:
        reason = f"it was stopped after its limit of {timeout_seconds:g} s"
    elif process.signal:
        reason = f"it was killed by {process.signal}"
    elif process.exit_code != 0:
        reason = f"it exited with {process.exit_code}"
        if process.exit_code == _NO_TESTS and not hidden_failures(tool, process.stdout, process.stderr):
            proof = proves_nothing(tool, process.stdout, process.stderr)
    elif hidden := hidden_failures(tool, process.stdout, process.stderr):
        reason = f"it exited with 0, but its output reports failures: {clean(hidden, limit=200)}"
    else:
        proof = proves_nothing(tool, process.stdout, process.stderr) or _judges_no_file(command, root)
        if proof is None:
            return Judgement(verdict=Verdict.PASSED, duration_ms=process.duration_ms, exit_code=0)
        reason = f"it exited with 0, but that proves nothing: {proof}"
    vacuous = proof and ("all_skipped" if "skipped" in proof else "nothing_collected")
    findings = tuple(
        each.model_copy(
            update={
                "path": each.path and _below(root, each.path).removeprefix("./"),
                "message": _below(root, each.message),
            }
        )
        for each in read_findings(tool, process.stdout, process.stderr)
    )
    process = replace(process, stdout=_below(root, process.stdout), stderr=_below(root, process.stderr))
    more = {"vacuous": vacuous, "limit_seconds": timeout_seconds}
    return _not_passed(command, Verdict.FAILED, reason, check_id, process, findings, **more)


def _not_passed(
    command: Command,
    verdict: Verdict,
    reason: str,
    check_id: str,
    process: ProcessResult | None = None,
    findings: tuple[Finding, ...] = (),
    **more: Any,
) -> Judgement:
    """Return the judgement of a failed command, or (inconclusive) of one whose program is missing.

    ``process`` is ``None`` if none was started; ``more`` are further fields of the evidence.
    """
    reason = clean(reason, limit=500)
    stdout = clean(process.stdout, limit=OUTPUT_CHARACTERS) if process else ""
    stderr = clean(process.stderr, limit=OUTPUT_CHARACTERS) if process else ""
    if more.get("vacuous") == "all_skipped":
        more["skip_reasons"] = tuple(dict.fromkeys(_SKIPPED.findall(f"{stdout}\n{stderr}")))[:20]
    if process is not None:
        more["duration_seconds"] = process.duration_ms / 1000
        more["timed_out"] = process.timed_out
        more["process"] = ProcessEnd(
            exit_code=process.exit_code, signal=process.signal, timed_out=process.timed_out, complete=True
        )
    evidence = Evidence(
        kind=EvidenceKind.COMMAND,
        check_id=check_id,
        headline=_headline(findings, stdout, stderr, reason, process.exit_code if process else None),
        stdout_tail=stdout,
        stderr_tail=stderr,
        command=CommandFact(
            argv=command.argv,
            tool=command.tool.name,
            purpose=command.tool.purpose.value,
            found=verdict is Verdict.FAILED,
            output_tail=clean(f"{stdout}\n{stderr}".strip(), limit=OUTPUT_CHARACTERS),
            findings=findings,
        ),
        **more,
    )
    return Judgement(
        verdict=verdict,
        reason=reason,
        evidence=(evidence,),
        duration_ms=process.duration_ms if process else 0,
        exit_code=process.exit_code if process else None,
    )


def _module_that_is_missing(command: Command, process: ProcessResult) -> str | None:
    """Return the tool's own module if ``python -m`` did not find it.

    A missing module of the project is a failure of the command instead.
    """
    # Another tool's -m may be its last word.
    if "-m" not in command.argv[:-1] or process.exit_code != 1:
        return None
    module = command.argv[command.argv.index("-m") + 1]
    match = _NO_MODULE.search(process.stderr)
    is_own = match is not None and match["name"].partition(".")[0] == module.partition(".")[0]
    return module if is_own and module in command.tool.modules else None


def _headline(
    findings: tuple[Finding, ...], stdout: str, stderr: str, reason: str, exit_code: int | None
) -> str:
    """Return the first finding, preferably with a file, else the last line with a word, else the reason."""
    if findings:
        first = next((each for each in findings if each.path), findings[0])
        place = ":".join(str(part) for part in (first.path, first.line) if part is not None)
        said = ": ".join(part for part in (place, first.code, first.message) if part)
        return f"{said} (exit status 0)" if exit_code == 0 else said
    output = [line for line in (stderr or stdout).splitlines() if re.search(r"\w", line)]
    lines = [line.strip() for line in output if not _AFTER_ERROR.fullmatch(line.rstrip())] or output
    # The last line of a success that proves nothing, such as "All done", is no reason.
    return clean(lines[-1], limit=500) if lines and exit_code != 0 else reason


def _below(root: Path, text: str) -> str:
    """Return a text with paths relative to the root where they lie below it."""
    # Tools print paths as they were given the root, or resolved.
    bases = {re.escape(f"{each}/") for each in (root.absolute(), root.resolve())}
    # Not in the middle of another path: ``/home/app/`` is no folder of ``/app``.
    return re.sub(rf"(?<![\w./~-])(?:file://)?(?:{'|'.join(sorted(bases))})", "", text)


# -- success that proves nothing ------------------------------------------------------------------------

# Many tools succeed without a word if there is nothing for them to check. Others say so in their output,
# which planner.catalog.output reads.


def _judges_no_file(command: Command, root: Path) -> str | None:
    """Return in a few words why the success of a command in the root proves nothing; ``None`` in doubt.

    So for a script that only defines tests, for a folder without a file of the tool's kind, and for files
    without what the tool looks for, such as examples in docstrings that are not skipped.
    """
    if (script := command.script) is not None:
        file = RootedFiles(root).read(script)
        # Python does not call the tests that a script only defines.
        tests = uncalled_tests(file.data.decode("utf-8-sig", "replace")) if file is not None else ()
        if not tests:
            return None
        shown = tests[0] if len(tests) == 1 else f"{tests[0]} and {len(tests) - 1} more"
        return f"python runs no test of {script}, which defines {shown}; write pytest {script}"
    tool, words = command.tool, command.arguments
    paths = [word for word in words if not word.startswith("-")]
    present = [path for path in paths if os.path.exists(root / path)]
    if not present:
        # Only the first word is certainly a path: one behind an option may be the value of that.
        is_missing = tool.lenient and bool(paths) and words[0] == paths[0]
        return f"{paths[0]} does not exist" if is_missing else None
    if tool.holds:
        files = RootedFiles(root)
        read = [file for path in present if (file := files.read(path)) is not None]
        holds = any(re.search(tool.holds.encode(), file.data) for file in read)
        return None if holds or not read else f"{present[0]} contains nothing that {tool.name} runs"
    if not tool.files or any(os.path.isfile(root / path) for path in present):
        return None
    names = [name for path in present for name in islice(_names_below(root / path), MAX_NAMES)]
    if len(names) >= MAX_NAMES or any(name.endswith(tool.files) for name in names):
        return None
    return f"{present[0]} contains no file that {tool.name} reads"


def _names_below(folder: Path) -> Iterator[str]:
    """Yield the names of the files below a folder; hidden folders are left out, as the tools do."""
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from names
