"""What differs below a root, by a baseline, by its part of one, or by a commit."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from planner.model.baseline import Baseline
from planner.planfile.tree import FlatPlan, load_tree
from pytest_planverify.baseline import KeptBaseline
from pytest_planverify.baseline.kept_baseline import keep_baseline
from pytest_planverify.guards.plan_guards import Differing, since


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, encoding="utf-8"
    ).stdout.strip()


def held(plan: str, files: dict[str, str], accepted: dict[str, str] | None = None) -> Baseline:
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    blessed = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in (accepted or {}).items()}
    fields: dict[str, Any] = {"plan": plan, "plan_digest": "", "made_at": "", "python": "", "pytest": ""}
    return Baseline.model_validate(
        {
            **fields,
            "files": {name: {"sha256": digest, "size": 1} for name, digest in digests.items()},
            "accepted": [{"todo_id": "t", "reason": "r", "at": "", "files": blessed}] if blessed else [],
        }
    )


@pytest.fixture
def flat(tmp_path: Path) -> FlatPlan:
    """A plan below `top`, a sub-plan below `top/part`, and another one beside them."""
    for folder in ("top/part", "beside"):
        (tmp_path / folder).mkdir(parents=True)
    items = (
        "- {id: p, title: P, sub_plan: part/plan.yaml}\n- {id: b, title: B, sub_plan: part/beside.yaml}\n"
    )
    (tmp_path / "top" / "plan.yaml").write_text(f"todo_list_id: top\nitems:\n{items}")
    for name, root in (("plan", "."), ("beside", "../../beside")):
        (tmp_path / "top" / "part" / f"{name}.yaml").write_text(
            f"todo_list_id: {name}\nroot: {root}\nitems:\n- {{id: t, title: T, verify: pytest t.py}}\n"
        )
    for name in ("top/part/x.py", "beside/x.py", "beside/y.py"):
        (tmp_path / name).write_text("2\n")
    return load_tree(tmp_path / "top" / "plan.yaml", boundary=tmp_path).load_all().flat()


def test_a_root_below_the_top_one_has_its_part_of_the_same_baseline(flat: FlatPlan) -> None:
    top = flat.loaded.root
    files = {path.relative_to(top).as_posix(): path.read_text() for path in top.rglob("*.*")}
    then = held("top", {**files, "part/x.py": "1\n", "part/gone.py": ""}, {"part/new.py": ""})
    (top / "part" / "new.py").write_text("")
    (top / "part" / "other.py").write_text("")
    kept = KeptBaseline(top, then, path=Path("x"))
    assert since(top / "part", flat, kept) == Differing(("gone.py", "other.py", "x.py"), ("other.py",))
    assert since(top, flat, kept) == Differing(
        ("part/gone.py", "part/other.py", "part/x.py"), ("part/other.py",)
    )


def test_a_root_elsewhere_has_its_own_or_is_compared_with_the_commit_that_was_asked_for(
    flat: FlatPlan, tmp_path: Path
) -> None:
    beside = tmp_path / "beside"
    assert since(beside, flat, None) is None
    assert since(beside, flat, None, "0" * 40) is None
    keep_baseline(beside, held("beside", {"y.py": "2\n", "x.py": "1\n"}), {})
    assert since(beside, flat, None) == Differing(("x.py",), ())

    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "x")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (beside / "x.py").unlink()
    (beside / "b c.py").write_text("")
    (beside / "y.py").write_text("3\n")
    git(tmp_path, "add", "-A")
    (beside / "later.py").write_text("")
    assert since(beside, flat, None, commit) == Differing(
        ("b c.py", "later.py", "x.py", "y.py"), ("b c.py", "later.py")
    )
    assert since(beside, flat, None, "0" * 40) is None
