"""Record the evidence of a real run: ``pytest --planverify`` as a process, on a project as it is.

Paths of this machine are replaced, so that the corpus does not depend on the machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.model.evidence import Evidence

PLUGIN_FOLDER = Path(__file__).parent / "plugin"
CHECKOUT = Path(__file__).parents[3]
CONFIRMATIONS = 3
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME")

Criteria = Mapping[str, Any]
"""The acceptance criteria of one todo, as in a plan file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Output and evidence of one run."""

    exit_code: int
    output: str
    document: dict[str, Any]
    """The outcome file."""
    evidence: tuple[Evidence, ...]
    """Every failure, in the order in which it was diagnosed."""

    def of(self, *, nodeid: str | None = None, check_id: str | None = None) -> tuple[Evidence, ...]:
        """Return the failures of one test, or of one criterion."""
        return tuple(
            each
            for each in self.evidence
            if (nodeid is None or nodeid == each.nodeid or nodeid in each.tests)
            and (check_id is None or check_id == each.check_id)
        )

    @property
    def outcomes(self) -> dict[str, dict[str, Any]]:
        """Return the outcomes by todo."""
        return {each["todo_id"]: each for each in self.document.get("outcomes", ())}


def plan_of(todos: Mapping[str, Criteria], **more: Any) -> dict[str, Any]:
    """Return a plan with these todos, all claimed; ``more`` are further keys of the plan."""
    items = [
        {"id": name, "title": name, "status": "claimed", "acceptance_criteria": dict(criteria)}
        for name, criteria in todos.items()
    ]
    return {"todo_list_id": "corpus", "workflow_name": "corpus", **more, "items": items}


def record(
    project: Path,
    plan: Mapping[str, Any],
    *,
    options: Iterable[str] = (),
    python: Path = Path(sys.executable),
    environment: Mapping[str, str] | None = None,
    plugins: Iterable[str] = (),
    confirmations: int = CONFIRMATIONS,
    timeout: float = 180,
) -> Recording:
    """Verify a plan in a folder and collect the evidence.

    Only this plugin and those named in ``plugins`` (as ``-p`` takes them) are loaded. The plan is written
    to ``plan.json`` in the project. Raises ``RuntimeError`` if the run wrote no outcomes.
    """
    (project / "plan.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
    recorded = project / ".planverify-recorded.jsonl"
    recorded.unlink(missing_ok=True)
    variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    variables |= {
        "PYTHONPATH": str(PLUGIN_FOLDER),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CORPUS_RECORDER_FILE": str(recorded),
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    given = dict(environment or {})
    if "PYTHONPATH" in given:
        given["PYTHONPATH"] = os.pathsep.join([str(PLUGIN_FOLDER), given["PYTHONPATH"]])
    command = [str(python), "-m", "pytest", "-p", "pytest_planverify.plugin", "-p", "corpus_recorder"]
    command += [word for name in plugins for word in ("-p", name)]
    command += ["--planverify", "plan.json", f"--planverify-confirm={confirmations}", *options]
    process = subprocess.Popen(
        command,
        cwd=project,
        env=variables | given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise RuntimeError(f"{project}: the run took more than {timeout} s") from None
    output = printed.decode(errors="replace")
    outcomes = project / ".planverify" / "outcomes.json"
    if not outcomes.is_file():
        raise RuntimeError(f"{project}: no outcomes were written\n{output[-2_000:]}")
    lines = recorded.read_text(encoding="utf-8").splitlines() if recorded.exists() else []
    recorded.unlink(missing_ok=True)
    return Recording(
        exit_code=process.returncode,
        output=output,
        document=json.loads(outcomes.read_text(encoding="utf-8")),
        evidence=tuple(
            Evidence.model_validate_json(without_machine(line, project, python)) for line in lines
        ),
    )


def without_machine(text: str, project: Path, python: Path = Path(sys.executable)) -> str:
    """Return the text with the folders of this machine replaced by usual names of such folders."""
    site = Path(sysconfig.get_paths()["purelib"])
    names = {
        str(project): "/project",
        str(project.resolve()): "/project",
        str(CHECKOUT): "/venv/lib/python3/site-packages",
        str(site.parents[2]): "/venv",
        str(python.parent.parent): "/venv",
        str(Path(sysconfig.get_paths()["stdlib"]).parents[1]): "/usr",
        str(Path.home()): "/home/user",
    }
    for path in sorted(names, key=len, reverse=True):
        if len(path) > 4:
            text = text.replace(path, names[path])
    text = re.sub(r"/tmp/pytest-of-\w+/pytest-\d+", "/tmp/pytest", text)
    return re.sub(r"\b0x[0-9a-f]{9,16}\b", "0x7f0000000000", text)
