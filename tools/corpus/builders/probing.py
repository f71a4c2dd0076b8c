"""Run a few tests in forks of a warm process; return their outcomes and the executed product lines.

As a script it is the warm process, in the interpreter of the suites: a request is one line of JSON on
standard input, the answer one line on standard output. As a module it is the client.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of the tests."""

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Node ids of failed tests, or the file if it could not be collected."""
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """Tests that executed a line, by file and line; the empty id for lines executed by an import."""
    ended: str = "whole"
    """``whole``, ``died`` or ``late``."""


class Prober:
    """The warm process, during a ``with`` block."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Prober:
        variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        variables |= {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": "120",
        }
        self._process = subprocess.Popen(
            [str(self._python), str(Path(__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables,
        )
        return self

    def __exit__(self, *_: object) -> None:
        process = self._running
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)

    def ask(
        self,
        project: Path,
        import_path: str,
        tests: Iterable[str],
        *,
        cover: Iterable[str] = (),
        timeout: float = 20,
    ) -> Answer:
        """Run tests (node ids, files or folders), and record the executed lines below ``cover``."""
        process = self._running
        assert process.stdin is not None
        assert process.stdout is not None
        request = {
            "project": str(project),
            "import_path": str(project / import_path),
            "tests": list(tests),
            "cover": [str(project / each) for each in cover],
            "timeout": timeout,
        }
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{project}: the probing process has ended")
        answer = json.loads(line)
        lines = {
            str(Path(file).relative_to(project)): {int(number): ids for number, ids in found.items()}
            for file, found in answer.pop("lines", {}).items()
        }
        return Answer(
            passed=tuple(answer.get("passed", ())),
            failed=tuple(answer.get("failed", ())),
            lines=lines,
            ended=answer["ended"],
        )

    @property
    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise RuntimeError("a prober is used in a with block")
        return self._process


def serve() -> None:
    """Answer requests until standard input ends."""
    import _pytest.assertion.rewrite  # noqa: F401 - what every fork would import again
    import coverage
    import coverage.sqldata  # noqa: F401

    own = ("", str(Path(__file__).parent))
    sys.path[:] = [each for each in sys.path if each not in own]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = json.loads(line)
        out.write(json.dumps(_answer(request)) + "\n")
        out.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        child = os.fork()
        if child == 0:
            try:
                _run(request, file)
            finally:
                os._exit(1)
        ended = _wait(child, request["timeout"])
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if found and ended == "whole":
        return {**found, "ended": "whole"}
    return {**found, "ended": "late" if ended == "late" else "died"}


def _wait(child: int, seconds: float) -> str:
    descriptor = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        if not ready:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(descriptor)
    if not ready:
        return "late"
    return "whole" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 97 else "died"


def _run(request: dict[str, Any], file: Path) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir(request["project"])
    sys.path.insert(0, request["project"])
    sys.path.insert(0, request["import_path"])
    os.environ["PYTHONPATH"] = request["import_path"]
    covered = _coverage(request["cover"])
    watcher = _Watcher(covered)
    if covered is not None:
        covered.start()
    pytest.main(["-q", "-p", "no:cacheprovider", *request["tests"]], [watcher])
    if covered is not None:
        covered.stop()
    answer = {"passed": watcher.passed, "failed": watcher.failed, "lines": _lines(covered)}
    part = file.with_suffix(".part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(file)
    os._exit(97)


def _coverage(places: list[str]) -> Any:
    if not places:
        return None
    import coverage

    include = [f"{each}/*" if os.path.isdir(each) else each for each in places]
    return coverage.Coverage(data_file=None, include=include, config_file=False)


def _lines(covered: Any) -> dict[str, dict[int, list[str]]]:
    if covered is None:
        return {}
    data = covered.get_data()
    return {file: data.contexts_by_lineno(file) for file in sorted(data.measured_files())}


class _Watcher:
    """Records outcomes, and sets the current test as the context of the coverage."""

    def __init__(self, covered: Any) -> None:
        self.passed: list[str] = []
        self.failed: list[str] = []
        self._covered = covered

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        if self._covered is not None:
            self._covered.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            if self._covered is not None:
                self._covered.switch_context("")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)


if __name__ == "__main__":
    serve()
