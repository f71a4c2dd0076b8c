"""``python -m tools.mutants TARGET …`` counts the mutants of a module that no test detects.

In a copy of the checkout, cosmic-ray applies one mutation after the other to TARGET (``planner/policy`` and
``pytest_planverify/session/judge.py``): it replaces an operator, negates a condition, changes a number. For
each, the tests that import the module directly or through another module are run; a mutant without a
failing test has survived. A random sample is enough, and takes minutes: ``pip install cosmic-ray``, then
``python -m tools.mutants --sample 150``.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGETS = ("planner/policy", "pytest_planverify/session/judge.py")
THROUGH = {"planner/policy": ("tests/planner/engine/test_engine_recorded.py",)}
"""Further tests of a target that import another module: the engine calls the policy."""
LEFT_OUT = (".git", ".venv", "__pycache__", ".pytest_cache", ".hypothesis", "build")
CONFIGURATION = """\
[cosmic-ray]
module-path = "{target}"
timeout = {timeout}
excluded-modules = []
test-command = {command}
[cosmic-ray.distributor]
name = "local"
"""
LEFT_ALONE = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr")
"""Excluded operators: without its decorator a dataclass breaks imports; most unions are annotations."""


def tests_of(target: str) -> list[str]:
    """Return the test files that import the target, or a helper that imports it."""
    module = target.removesuffix(".py").replace("/", ".")
    files = sorted((ROOT / "tests").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    helpers = {path for path in files if not path.name.startswith("test_")}
    near = {path.stem for path in helpers if module in texts[path]}
    found = [
        path
        for path, text in texts.items()
        if path.name.startswith("test_")
        and "acceptance" not in path.parts
        and (module in text or any(f"from {name} import" in text for name in near))
    ]
    return [*(path.relative_to(ROOT).as_posix() for path in found), *THROUGH.get(target, ())]


def sample(session: Path, size: int, seed: int) -> int:
    """Keep a random part of the mutants; return how many there were."""
    with sqlite3.connect(session) as rows:
        # Ids are made anew each time: the places of the faults make a seed mean the same sample.
        order = "module_path, start_pos_row, start_pos_col, operator_name, occurrence"
        query = f"SELECT job_id, operator_name FROM mutation_specs ORDER BY {order}"
        every = rows.execute(query).fetchall()
        those = [job for job, operator in every if not operator.startswith(LEFT_ALONE)]
        kept = set(random.Random(seed).sample(those, min(size, len(those))))
        gone = [(job,) for job, _ in every if job not in kept]
        for table in ("mutation_specs", "work_items"):
            rows.executemany(f"DELETE FROM {table} WHERE job_id = ?", gone)
    return len(those)


def measure(target: str, size: int, seed: int) -> None:
    tests = tests_of(target)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        configuration, session = Path(place) / "mutants.toml", Path(place) / "session.sqlite"
        command = '"' + shlex.join(words).replace('"', '\\"') + '"'
        configuration.write_text(CONFIGURATION.format(target=target, timeout=120, command=command))
        env = {**os.environ, "PYTHONPATH": f"{copy}:{copy / 'tests/support'}"}

        def run(*words: str) -> str:
            done = subprocess.run(words, cwd=copy, env=env, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{shlex.join(words)}: {done.stdout}{done.stderr}")
            return done.stdout

        tool = shutil.which("cosmic-ray", path=str(Path(sys.executable).parent)) or "cosmic-ray"
        run(tool, "init", str(configuration), str(session))
        total = sample(session, size, seed)
        run(tool, "baseline", str(configuration))
        run(tool, "exec", str(configuration), str(session))
        with sqlite3.connect(session) as rows:
            query = (
                "SELECT module_path, start_pos_row, operator_name, test_outcome FROM work_results "
                "JOIN mutation_specs USING (job_id) ORDER BY module_path, start_pos_row"
            )
            results = rows.execute(query).fetchall()
    survived = [each for each in results if str(each[3]).upper().endswith("SURVIVED")]
    for path, line, operator, _ in survived:
        print(f"  {path}:{line} {operator}")
    share = len(survived) / len(results) if results else 0.0
    shown = f"{len(survived)} of {len(results)} survived ({share:.0%})"
    print(f"{target}: {shown}; {total} faults could be made, seed {seed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for each in given.targets:
        measure(each, given.sample, given.seed)
