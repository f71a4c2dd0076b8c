"""Systems without calls that only POSIX has: plans are verified there in new interpreters."""

from __future__ import annotations

import os
from pathlib import Path

from example_project import Example, todo
from real_command import planverify

ONLY_POSIX = {
    "os": "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK getpgid getsid killpg pread pwrite"
    " sched_getaffinity uname waitid",
    "signal": "SIGALRM SIGCONT SIGHUP SIGRTMIN setitimer",
    "socket": "recv_fds send_fds",
    "time": "tzset",
}
"""Names that Windows lacks, by module, as far as the standard library works without them here."""


def test_a_plan_is_verified_and_repaired_without_the_calls_of_posix(tmp_path: Path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(
        f"import os, signal, socket, time\nfor module, names in {ONLY_POSIX}.items():\n"
        "    for name in names.split():\n        vars(globals()[module]).pop(name, None)\n"
    )
    paths = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("PLANVERIFY_NO_FORK", "1")
    example = Example(tmp_path / "root", {"test_it.py": "def test_a(): pass\ndef test_b(): assert 0\n"})
    example.plan(*(todo(name, f"pytest test_it.py::test_{name}") for name in ("a", "b")))

    run = example.verify()
    told = planverify("next", "plan.yaml", cwd=example.root)

    assert run.verdicts == {"a": "passed", "b": "failed"}, str(run)
    assert run.exit_code == 1
    assert "1 of 2 todos done, 1 failed" in told.stdout, told.stderr
