"""Changed files and hunks since the baseline or the last commit."""

import os
import shutil
import time
from pathlib import Path

import pytest
from baseline_samples import TODO, baseline, commit_all, git, sha256, write_plan
from hygiene_samples import HeldFiles

from planner.model.evidence import Hunk
from planner.model.verdicts import Side
from planner.planfile.tree import FlatPlan, load_tree
from pytest_planverify.baseline import repository as repository_module
from pytest_planverify.baseline import work_tree
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.baseline.hunks import MOST_HUNKS, compare, hunks_of, parts_of_diff
from pytest_planverify.baseline.kept_baseline import KeptBaseline, keep_baseline
from pytest_planverify.baseline.work_tree import WorkTree
from pytest_planverify.guards.plan_guards import since


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("a.py", "b.py", "sub/c.py"):
        (tmp_path / name).write_text("1\n")
    commit_all(tmp_path)
    return tmp_path


def test_changed_new_and_deleted_files_are_listed_with_a_digest(repository: Path):
    none, clean = Changes(repository).of(None)
    assert none == ()
    assert (clean or "").startswith("sha256:")
    (repository / "a.py").write_text("2\n")
    (repository / "b.py").unlink()
    (repository / "sub/né w.py").write_text("3\n")

    files, digest = Changes(repository).of(None)

    assert files == ("a.py", "b.py", "sub/né w.py")
    assert Changes(repository / "sub").of(None)[0] == ("né w.py",), "only files below the folder count"
    assert digest != clean
    (repository / "sub/né w.py").write_text("4\n")
    assert Changes(repository).of(None)[1] != digest


def test_changed_files_of_a_todo_are_limited_to_its_allowed_files_and_cached_unlike_new_files(
    repository: Path,
):
    (repository / "sub/d.py").touch()
    (repository / "a.py").write_text("2\n")
    changes = Changes(repository)

    assert changes.of(())[0] == ()
    assert changes.of(("*.py",))[0] == ("a.py", "sub/d.py")
    assert changes.of(("*.py", "!sub/**"))[0] == ("a.py",)
    (repository / "new.py").touch()
    assert (changes.files(), changes.new_files()) == (("a.py", "sub/d.py"), ("new.py", "sub/d.py"))


def test_digest_depends_only_on_content_and_executable_bit(repository: Path):
    file = repository / "tool.sh"
    digests = []
    for mode in (0o644, 0o644, 0o755):
        file.unlink(missing_ok=True)
        file.write_text("x")
        file.chmod(mode)
        digests.append(Changes(repository).of(None)[1])
    assert digests[0] == digests[1] != digests[2]


def test_records_and_caches_are_not_changes(repository: Path):
    before = Changes(repository).of(None)
    for name in (".planverify/outcomes.json", "diagnostics/a_failure_report.json", "__pycache__/a.pyc"):
        (repository / name).parent.mkdir()
        (repository / name).touch()

    assert Changes(repository).of(None) == before


def test_plan_files_are_not_changes_of_the_product(repository: Path):
    plan = "x-a: 1\ntodo_list_id: p\nitems: []\n"
    outside = (repository / "gone/plan.yaml", repository.parent / "elsewhere/plan.yaml", repository)
    below = ("plans/plan.yaml", "sub/phase.json", "sub/diagnostics")
    apart = [*outside, *(repository / name for name in below)]
    (repository / "plans").mkdir()
    (repository / "plans/plan.yaml").write_text(plan)
    commit_all(repository)
    clean = Changes(repository, apart).of(None)[1]

    (repository / "plans/plan.yaml").write_text(plan + "x-b: 1\n")
    (repository / "plans/next.yml").write_text(plan)
    (repository / "sub/phase.json").write_text('{"todo_list_id": "q"}')
    (repository / "sub/other.json").write_text('{"todo_list_id": "r"}')
    (repository / "sub/diagnostics").mkdir()
    (repository / "sub/diagnostics/a.json").write_text("{}")
    (repository / "run.jsonl").write_text('{"n":0,"event":{"event":"plan_submitted","at":""}}\n')
    files, digest = Changes(repository, apart).of(None)

    assert digest == clean
    assert {"plans/plan.yaml", "plans/next.yml", "sub/phase.json"} < set(files)
    (repository / "rows.jsonl").write_text('{"n":0}\n')
    assert Changes(repository, apart).of(None)[1] != clean
    (repository / "rows.jsonl").unlink()
    (repository / "plans/data.yaml").write_text("rows: 3\n")
    assert Changes(repository, apart).of(None)[1] != clean


def test_digest_covers_only_code_without_a_repository(tmp_path: Path):
    (tmp_path / "a.py").write_text("1\n")
    first = Changes(tmp_path).of(None)
    (tmp_path / "out.csv").write_text("data\n")
    again = Changes(tmp_path).of(None)
    (tmp_path / "a.py").write_text("2\n")
    changed = Changes(tmp_path).of(None)

    assert first[0] == ()
    assert first == again, "what the tests write is no change of the product"
    assert changed[1] != first[1]


def test_git_refusal_is_reported_with_a_remedy(repository: Path, monkeypatch: pytest.MonkeyPatch):
    """Git refuses a repository of another user, which is common in containers."""
    assert Changes(repository).refusal() is None
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr(repository_module, "surroundings", lambda: dict(os.environ))

    changed = Changes(repository)

    assert not changed.under_git
    refusal = changed.refusal() or ""
    assert "dubious ownership" in refusal
    assert f"git config --global --add safe.directory {repository}" in refusal
    before = changed.of(None)[1]
    (repository / "a.py").write_text("changed\n")
    assert Changes(repository).of(None)[1] != before, "the files themselves are digested"


@pytest.mark.parametrize("program", [None, "#!/bin/sh\nexec /bin/sleep 60\n"], ids=["missing", "hanging"])
def test_unusable_git_leaves_the_changed_files_unknown(
    program: str | None, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    (repository / "bin").mkdir()
    if program is not None:
        (repository / "bin/git").write_text(program)
        (repository / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(repository / "bin"))
    monkeypatch.setattr(repository_module, "TIMEOUT_SECONDS", 0.1)

    files, digest = Changes(repository).of(None)

    assert files == ()
    assert digest is not None, "the files themselves are digested"


def test_changes_are_unknown_without_a_commit_of_the_folder(tmp_path: Path):
    assert Changes(tmp_path).files() is None
    assert Changes(tmp_path).new_files() == ()
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").touch()
    assert Changes(tmp_path).files() is None
    assert Changes(tmp_path).of(None)[0] == ("a.py",)
    commit_all(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.py").touch()
    assert Changes(tmp_path / "other").files() is None


def test_changed_files_can_be_set_from_an_earlier_state_and_their_data_count(tmp_path: Path):
    def changed(text: str) -> Changes:
        (tmp_path / "page.html").write_text(text)
        changes = Changes(tmp_path, [tmp_path / "plan.yaml"])
        changes.are(["page.html", "a.py", "diagnostics/x.json"])
        return changes

    one = changed("one")
    assert one.files() == ("a.py", "page.html")
    assert one.of(["a.py"])[0] == ("a.py",)
    assert one.apart == ("plan.yaml",)
    assert one.of(None)[1] != changed("two").of(None)[1]


@pytest.fixture
def flat(tmp_path: Path) -> FlatPlan:
    """Return a plan in ``top`` with two sub-plans, whose roots are ``top/part`` and ``beside``."""
    parents = "{id: p, title: P, sub_plan: part/plan.yaml}", "{id: b, title: B, sub_plan: part/beside.yaml}"
    top = write_plan(tmp_path / "top/plan.yaml", *parents, plan_id="top")
    write_plan(tmp_path / "top/part/plan.yaml", TODO, plan_id="plan")
    write_plan(tmp_path / "top/part/beside.yaml", TODO, plan_id="beside", root="../../beside")
    (tmp_path / "beside").mkdir()
    for name in ("top/part/x.py", "beside/x.py", "beside/y.py"):
        (tmp_path / name).write_text("2\n")
    return load_tree(top, boundary=tmp_path).load_all().flat()


def files_of(texts: dict[str, str]) -> dict[str, dict[str, object]]:
    """Return files with these texts as a baseline has them."""
    return {name: {"sha256": sha256(text.encode())} for name, text in texts.items()}


def test_nested_root_shares_its_part_of_the_baseline(flat: FlatPlan):
    top = flat.loaded.root
    files = {path.relative_to(top).as_posix(): path.read_text() for path in top.rglob("*.*")}
    accepted = {"todo_id": "t", "reason": "r", "at": "", "files": {"part/new.py": sha256(b"")}}
    files |= {"part/x.py": "1\n", "part/gone.py": ""}
    kept = KeptBaseline(top, baseline(files=files_of(files), accepted=[accepted]), path=Path("x"))
    (top / "part" / "new.py").write_text("")
    (top / "part" / "other.py").write_text("")

    assert since(top / "part", flat, kept) == (("gone.py", "other.py", "x.py"), ("other.py",))
    assert since(top, flat, kept) == (("part/gone.py", "part/other.py", "part/x.py"), ("part/other.py",))


def test_separate_root_uses_its_own_baseline_or_the_given_commit(flat: FlatPlan, tmp_path: Path):
    beside = tmp_path / "beside"
    assert since(beside, flat, None) is None
    assert since(beside, flat, None, "0" * 40) is None
    keep_baseline(beside, baseline("beside", files=files_of({"y.py": "2\n", "x.py": "1\n"})), {})
    assert since(beside, flat, None) == (("x.py",), ())

    commit = commit_all(tmp_path)
    (beside / "x.py").unlink()
    (beside / "b c.py").write_text("")
    (beside / "y.py").write_text("3\n")
    git(tmp_path, "add", "-A")
    (beside / "later.py").write_text("")
    assert since(beside, flat, None, commit) == (
        ("b c.py", "later.py", "x.py", "y.py"),
        ("b c.py", "later.py"),
    )
    assert since(beside, flat, None, "0" * 40) is None


BEFORE = """\
RATES = {"a": 1}


def total(items):
    found = 0
    for item in items:
        found += item
    return found


class Cart:
    limit = 3

    @property
    def size(self):
        return 1

    def add(self, item):
        def check(value):
            return value > 0

        return check(item)


def spare():
    return 1
"""


def hunks_after(*replacements: tuple[str, str]) -> list[Hunk]:
    """Return the hunks of the module after some of its text was replaced."""
    now = BEFORE
    for old, new in replacements:
        assert old in now
        now = now.replace(old, new)
    return list(hunks_of("shop.py", compare(BEFORE, now), now, Side.PRODUCT))


SPARE = "def spare():\n    return 1\n"
ONE_AND_TWO = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("found += item", "found -= item", [("total", 7, 1, 1)]),
        ("return 1\n\n    def add", "return 2\n\n    def add", [("Cart.size", 16, 1, 1)]),
        ("@property", "@cached", [("Cart.size", 14, 1, 1)]),
        ("    @property\n", "", [("Cart", 14, 0, 1)]),
        ("limit = 3", "limit = 4", [("Cart", 12, 1, 1)]),
        ("    return found\n", "", [("total", 7, 0, 1)]),
        (SPARE, f"{SPARE}\n\ndef last():\n    return 2\n", [("last", 29, 4, 0)]),
        ("(items):\n    found = 0", '(items):\n    """Add."""\n    found = 1', [("total", 6, 2, 1)]),
        ("\n\ndef spare():\n    return 1\n", "", [(None, 23, 0, 4)]),
        ("def spare", f"{ONE_AND_TWO}def spare", [("one", 25, 4, 0), ("two", 29, 4, 0)]),
        ("def total(items):", "def total(items:", [(None, 4, 1, 1)]),
    ],
)
def test_change_belongs_to_its_innermost_function(
    old: str, new: str, expected: list[tuple[str | None, int, int, int]]
):
    found = hunks_after((old, new))

    assert [(each.function, each.line, each.added, each.removed) for each in found] == expected


def test_changes_are_grouped_into_one_hunk_per_function():
    found = hunks_after(("found = 0", "found = 1"), ("return found", "return 0"), ("> 0", "> 1"))

    assert [(each.function, each.added, each.removed) for each in found] == [
        ("total", 2, 2),
        ("Cart.add.check", 1, 1),
    ]
    assert "-    return found\n+    return 0" in found[0].text


def test_hunks_per_file_are_limited_and_the_last_counts_the_rest():
    before = "".join(f"A{number} = {number}\nB{number} = x\n" for number in range(60))
    now = before.replace("= x\n", "= y\n")

    found = list(hunks_of("tables.py", compare(before, now), now, Side.PRODUCT))

    assert len(found) == 20
    assert sum(each.added for each in found) == 60


def test_large_generated_texts_are_read_in_bounded_time(tmp_path: Path):
    stubs = "".join(f"def f{number}(a):\n    return a\n\n" for number in range(5_000))
    (tmp_path / "data.yaml").write_text("\n" * 60_000)
    (tmp_path / "conftest.py").write_text("pytest_plugins:" * 6_000)
    started = time.process_time()

    assert len(list(hunks_of("a.pyi", compare("", stubs), stubs, None))) == 5_000
    assert Changes(tmp_path).apart == ()
    assert list(work_tree._plugins(WorkTree(tmp_path))) == []
    assert time.process_time() - started < 6  # 80 s in quadratic time


def test_secrets_in_changed_lines_are_removed():
    token = "ghp_" + "a1B2" * 9

    (hunk,) = hunks_after(('RATES = {"a": 1}', f'TOKEN = "{token}"\x1b[2J'))

    assert "+TOKEN" in hunk.text
    assert token not in hunk.text
    assert "\x1b" not in hunk.text


NAMES = ("shop.py", "new.py", "gone.py", "binary.py", "b\N{LATIN SMALL LETTER AE} r.py")
SIDES: dict[str, Side | None] = dict.fromkeys(NAMES, Side.PRODUCT)


def names(hunks: tuple[Hunk, ...]) -> list[tuple[str, str | None, int, int]]:
    return [(each.path, each.function, each.added, each.removed) for each in hunks]


def test_hunks_cover_changed_new_and_deleted_files_with_git_or_a_baseline(tmp_path: Path):
    old = {"shop.py": BEFORE.encode(), "gone.py": b"x = 1\n", NAMES[-1]: b"x = 1\n", "binary.py": b"\0\1"}
    assert Changes(tmp_path).hunks(SIDES) == (), "nothing is known without git and baseline"
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    commit_all(tmp_path)
    (tmp_path / "shop.py").write_text(BEFORE.replace("> 0", "> 1"))
    (tmp_path / "new.py").write_text("def made():\n    return 1\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / NAMES[-1]).write_text("x = 2\n")
    (tmp_path / "binary.py").write_bytes(b"\0\2")
    expected = {
        ("shop.py", "Cart.add.check", 1, 1),
        ("new.py", "made", 2, 0),
        ("gone.py", None, 0, 1),
        (NAMES[-1], None, 1, 1),
    }

    assert set(names(Changes(tmp_path).hunks(SIDES))) == expected
    shutil.rmtree(tmp_path / ".git")
    without_git = Changes(tmp_path)
    without_git.are(NAMES)
    assert set(names(without_git.hunks(SIDES, HeldFiles(old)))) == expected


def test_name_that_is_not_utf8_can_be_written_and_its_content_counts(repository: Path):
    digests: set[str | None] = set()
    for content in ("1", "2"):
        Path(os.fsdecode(os.fsencode(repository) + b"/caf\xe9.py")).write_text(content)
        files, digest = Changes(repository).of(None)
        assert files == ("caf\N{REPLACEMENT CHARACTER}.py",)
        digests.add(digest)
    assert len(digests) == 2
    assert Changes(repository, revision=git(repository, "rev-parse", "HEAD")).files() == files


@pytest.mark.parametrize(
    "settings",
    [(), ("diff.noprefix=true", "color.ui=always", "diff.context=0", "diff.renames=false")],
    ids=["usual", "settings of the user"],
)
def test_renamed_file_or_one_with_other_line_ends_has_only_the_hunks_that_changed(
    settings: tuple[str, ...], tmp_path: Path
):
    (tmp_path / "shop.py").write_bytes(BEFORE.replace("\n", "\r\n").encode())
    commit_all(tmp_path)
    for setting in settings:
        git(tmp_path, "config", *setting.split("="))
    (tmp_path / "shop.py").write_text(BEFORE.replace("> 0", "> 1"))
    assert names(Changes(tmp_path).hunks(SIDES)) == [("shop.py", "Cart.add.check", 1, 1)]
    git(tmp_path, "checkout", "-q", "shop.py")
    git(tmp_path, "mv", "shop.py", "new.py")
    assert Changes(tmp_path).hunks(SIDES) == ()

    (tmp_path / "new.py").write_bytes(BEFORE.replace("> 0", "> 1").replace("\n", "\r\n").encode())
    assert names(Changes(tmp_path).hunks(SIDES)) == [("new.py", "Cart.add.check", 1, 1)]


TEXT = BEFORE.encode()


def test_hunks_are_limited(tmp_path: Path):
    old = "\n\n".join(f"def f{n}():\n    return 1" for n in range(MOST_HUNKS + 9))
    (tmp_path / "shop.py").write_text(old.replace("return 1", "return 2"))
    changes = Changes(tmp_path)
    changes.are(["shop.py"])
    assert len(changes.hunks(SIDES, HeldFiles({"shop.py": old.encode()}))) == MOST_HUNKS


@pytest.mark.parametrize(
    ("then", "now"),
    [(TEXT, b"\0" + TEXT), (b"\0" + TEXT, TEXT), (TEXT, TEXT * 4_000)],
    ids=["binary now", "binary before", "too large now"],
)
def test_binary_and_large_files_have_no_hunks(then: bytes, now: bytes, tmp_path: Path):
    (tmp_path / "shop.py").write_bytes(now)
    changes = Changes(tmp_path)
    changes.are(["shop.py"])

    assert changes.hunks(SIDES, HeldFiles({"shop.py": then})) == ()


def test_long_docstring_does_not_crowd_out_the_changed_code():
    before = 'def f(x):\n    """Return x."""\n    return x\n'
    told = "".join(f"    Line {number}.\n" for number in range(50))
    now = f'def f(x):\n    """Return x.\n\n{told}    """\n    return x + 1\n'

    (changed,) = hunks_of("shop.py", compare(before, now), now, None)

    assert (changed.line, changed.added) == (55, 54)
    assert changed.text == '-    """Return x."""\n-    return x\n+    return x + 1'

    now = f'def f(x):\n    """Return x.\n\n{told}    """\n\n    return x\n'
    (spaced,) = hunks_of("shop.py", compare("def f(x):\n    return x\n", now), now, None)
    assert spaced.text.startswith('+    """Return x.'), "there is no code to show instead"

    for head in ("def f(x):", "def f(x, y=1):"):
        removed = f'def f(x):\n    r"""\n    Return x.\n\n{told}    """\n    return x\n'
        now = f"{head}\n    return x + 1\n"
        (changed,) = hunks_of("shop.py", compare(removed, now), now, None)
        assert "-    return x\n+" in changed.text
        assert "+    return x + 1" in changed.text
        assert "Line" not in changed.text


def test_form_feed_ends_no_line():
    before = "def f():\n    return 1\n\f\ndef g():\n    return 2\n\f\ndef h():\n    return 3\n"
    now = before.replace("return 3", "return 4")

    (changed,) = hunks_of("shop.py", compare(before, now), now, None)
    assert (changed.function, changed.line) == ("h", 8)
    assert [each.function for each in hunks_of("shop.py", compare("", now), now, None)] == ["f", "g", "h"]


def test_file_whose_name_git_quotes_adds_nothing_to_another():
    diff = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n"
    quoted = diff.replace(b"a/a.py", b'"a/b\\"c.py"').replace(b"b/a.py", b'"b/b\\"c.py"')

    assert parts_of_diff(diff + quoted)["a.py"] == parts_of_diff(diff)["a.py"][:-1]
