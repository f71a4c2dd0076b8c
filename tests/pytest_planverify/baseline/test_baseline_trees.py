"""Files of a project and their kinds, and temporary copies of the project that are removed completely."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from baseline_samples import commit_all, git, sha256
from hygiene_samples import HeldFiles

from planner.errors import BaselineError
from planner.model.baseline import JudgeKind
from planner.planfile.tree import load_tree
from pytest_planverify.baseline import record, work_tree, worktrees
from pytest_planverify.baseline.record import look, verify_apart
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.baseline.work_tree import WorkTree, judges_of
from pytest_planverify.baseline.worktrees import checkout, counterpart, environment_for


def write(root: Path, *names: str):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    write(root, "pkg/mod.py", "tests/test_mod.py", "pytest.ini", "gone.py", "sub/plan/code.py")
    (root / ".gitignore").write_text("ignored/\n*.so\n.venv/\n")
    commit_all(root)
    return root


# -- the files of a project ----------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["a\0b", "\ud800"])
def test_revision_that_no_command_line_can_hold_is_unknown(revision: str, repository: Path):
    assert Repository(repository, repository, "", linked=False).commit(revision) is None


def test_git_ignored_files_count_only_if_they_affect_tests(repository: Path):
    write(repository, "new.py", "ignored/data.txt", "ignored/conftest.py", "a.so", ".venv/pyvenv.cfg")
    write(
        repository, ".venv/conftest.py", ".planverify/x.json", "diagnostics/r.json", "pkg/__pycache__/m.pyc"
    )
    (repository / "gone.py").unlink()
    tree = WorkTree(repository)
    assert set(tree.digests()) == {
        ".gitignore", "pkg/mod.py", "tests/test_mod.py", "pytest.ini", "sub/plan/code.py", "new.py",
        "ignored/conftest.py",
    }  # fmt: skip
    assert tree.digests()["new.py"] == sha256(b"new.py\n")
    write(repository, "ignored/project/a.py")  # a root that is ignored is read without git
    assert Repository.around(repository / "ignored/project") is None
    assert "a.py" in WorkTree(repository / "ignored/project").paths


def test_all_files_but_caches_and_environments_count_without_git(tmp_path: Path):
    write(
        tmp_path, "a.py", "build/b.py", "node_modules/m.js", "env/pyvenv.cfg", "env/lib.py", ".coverage.1"
    )
    write(
        tmp_path,
        ".tox/x.py",
        ".pytest_cache/v",
        ".planverify/runs/j",
        "diagnostics/t.json",
        ".coveragerc.toml",
    )
    write(tmp_path, ".pdm-build/_editable_impl_shop.pth")
    assert set(WorkTree(tmp_path).paths) == {"a.py", "build/b.py", ".coveragerc.toml"}


def test_configuration_above_the_root_belongs_to_the_tree(repository: Path, tmp_path: Path):
    write(repository, "conftest.py", "sub/conftest.py")
    write(repository.parent, "conftest.py")
    tree = WorkTree(repository / "sub" / "plan")
    assert set(tree.paths) == {"code.py", "../conftest.py", "../../conftest.py", "../../pytest.ini"}
    assert tree.read("../conftest.py") == b"sub/conftest.py\n"
    assert tree.read("../../gone.py") is None
    assert tree.read("/etc/hostname") is None

    # Without git, the search ends at the folder of the configuration.
    write(tmp_path, "a/pyproject.toml", "a/conftest.py", "a/b/conftest.py", "a/b/c/x.py")
    names = {"x.py", "../conftest.py", "../../conftest.py", "../../pyproject.toml"}
    assert set(WorkTree(tmp_path / "a/b/c").paths) == names


def test_links_are_not_followed(tmp_path: Path):
    write(tmp_path, "out/secret", "root/a.py")
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "out")
    (tmp_path / "root" / "file").symlink_to("../out/secret")
    os.mkfifo(tmp_path / "root" / "pipe")
    tree = WorkTree(tmp_path / "root")
    assert tree.read("file") == b"../out/secret"
    assert tree.read("folder") == os.fsencode(tmp_path / "out")
    assert set(tree.digests()) == {"a.py", "file", "folder"}


def test_test_files_come_first_when_files_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(work_tree, "MOST_FILES", 2)
    write(tmp_path, "a.py", "b.py", "z/test_z.py", "z/conftest.py")
    assert set(WorkTree(tmp_path).paths) == {"z/conftest.py", "z/test_z.py"}


def test_uncommitted_content_is_kept_whatever_git_variables_a_hook_has_set(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path, "other/x")
    git(tmp_path / "other", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    (repository / "pkg" / "mod.py").write_text("changed\n")
    seen = look(repository)
    assert seen.contents == {seen.files["pkg/mod.py"].sha256: b"changed\n"}


def test_large_uncommitted_files_are_kept_only_as_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(record, "LARGEST_COPY", 10)
    monkeypatch.setattr(record, "MOST_COPIED", 12)
    for name, size in (("a", 11), ("b", 8), ("c", 8), ("d", 4)):
        (tmp_path / name).write_text("x" * size)
    seen = look(tmp_path)
    assert sorted(map(len, seen.contents.values())) == [4, 8]
    assert all(file.sha256 and not file.committed for file in seen.files.values())


# -- kinds of files ------------------------------------------------------------------------------

PLAN = """
todo_list_id: shop
items:
- id: a
  title: A
  contract_path: contracts/shop.json
  acceptance_criteria:
    tests: [{cmd: pytest checks/verify.py, fixture: given/prices.csv}]
    expected_artifacts:
    - {path: out/report.json, schema: schemas/report.json}
    - out/*.csv
    - pkg/generated.py
- {id: b, title: B}
"""
KINDS = {
    "plan.yaml": "plan",
    "conftest.py": "conftest",
    "deep/conftest.py": "conftest",
    "pytest.ini": "config",
    "pyproject.toml": "config",
    "../setup.cfg": "config",
    "sitecustomize.py": "start_up",
    "lib/hook.pth": "start_up",
    "contracts/shop.json": "contract",
    "checks/verify.py": "test",
    "pkg/test_beside.py": "test",
    "pkg/beside_test.py": "test",
    "given/prices.csv": "fixture",
    "schemas/report.json": "fixture",
    "tests/data/x.json": "fixture",
    "fixtures/y.json": "fixture",
    "tests/helper.py": "test_support",
    "quality/test_speed.py": "test",
    "quality/support.py": "test_support",
    "quality/table.csv": "fixture",
    "pkg/plug.py": "test_support",
    "pkg/only_plug.py": "test_support",
    "pkg/option_plug.py": "test_support",
    "out/report.json": "artifact",
    "out/2026.csv": "artifact",
    "pkg/generated.py": "product",
    "pkg/mod.py": "product",
    "pkg/latest.py": "product",
    "pkg/no.py": "product",
    "top.py": "product",
    "README.md": "product",
    # Folders of testpaths that are listed for their doctests.
    "shelf/book.py": "product",
    "shelf/tests/books.csv": "fixture",
    "manual/conf.py": "product",
    "manual/start.rst": "test",
    "manual/page.html": "product",
    # A folder of tests may have more helpers than tests, or no modules.
    "trials/trial_speed.py": "test",
    "trials/wheels.py": "test_support",
    "trials/roads.py": "test_support",
    "stories/buy.yaml": "test",
    "stories/prices.csv": "fixture",
}


def test_every_file_has_its_kind(tmp_path: Path):
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "shop.json").write_text("{}")
    (tmp_path / "plan.yaml").write_text(PLAN)
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()
    contents = dict.fromkeys(KINDS, b"")
    contents["conftest.py"] = b'pytest_plugins = [\n    "pkg.plug",\n]\nNAME = "pkg.mod"\n'
    contents["deep/conftest.py"] = b'pytest_plugins = "pkg.only_plug"\nOTHERS = ["pkg.latest"]\n'
    contents["pytest.ini"] = (
        b"[pytest]\naddopts = -p pkg.option_plug -p no:cacheprovider\ntestpaths =\n    quality\n    .\n"
        b"    shelf\n    manual\n    trials\n    stories\n"
    )
    contents["checks/verify.py"] = b"def verify(): assert True\n"
    collected = {"checks/verify.py::verify", "shelf/book.py::shelf.book.price", "top.py::top"}
    collected |= {"manual/start.rst::start.rst", "trials/trial_speed.py::speed", "stories/buy.yaml::buy"}
    judges = judges_of(flat, collected, HeldFiles(contents))
    assert {path: judges.kind_of(path) for path in KINDS} == {
        path: JudgeKind(kind) for path, kind in KINDS.items()
    }


# -- copies --------------------------------------------------------------------------------------


def checkout_of(root: Path, revision: str) -> AbstractContextManager[Path]:
    repository = Repository.around(root)
    assert repository is not None
    return checkout(repository, repository.commit(revision) or "")


def test_checkout_contains_the_revision_and_imports_and_is_removed_completely(repository: Path):
    write(repository, "pkg/fast.so", "ignored/big.bin", "new.py")
    (repository / "gone.py").unlink()
    hook = repository / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)  # it must not run
    before = git(repository, "status", "--porcelain")
    with checkout_of(repository / "sub" / "plan", "main") as root:
        assert (root / "code.py").exists()
        top = root.parent.parent
        assert sorted(os.listdir(top)) == [
            ".git", ".gitignore", "gone.py", "pkg", "pytest.ini", "sub", "tests"
        ]  # fmt: skip
        assert (top / "pkg" / "fast.so").exists()
        (root / "locked").mkdir()
        write(root, "locked/x")
        (root / "locked").chmod(0)
    assert not top.parent.exists()
    with pytest.raises(KeyboardInterrupt) as caught, checkout_of(repository, "HEAD") as root:
        raise KeyboardInterrupt(root)
    assert not caught.value.args[0].exists()
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "status", "--porcelain") == before


@pytest.fixture
def with_submodules(repository: Path, tmp_path: Path) -> Path:
    """Return a repository with a submodule that contains another submodule."""
    local = ("-c", "protocol.file.allow=always")
    for name, inner in (("deep", None), ("lib", "deep")):
        write(tmp_path, f"{name}/{name}.py")
        git(tmp_path / name, "init", "-q", "-b", "main")
        if inner is not None:
            git(tmp_path / name, *local, "submodule", "add", "-q", str(tmp_path / inner), inner)
        commit_all(tmp_path / name)
    git(repository, *local, "submodule", "add", "-q", str(tmp_path / "lib"), "vendor/lib")
    git(repository, *local, "submodule", "update", "-q", "--init", "--recursive")
    git(repository, "commit", "-qam", "with a submodule")
    return repository


def test_submodules_belong_to_the_tree_but_to_no_checkout(with_submodules: Path):
    repository = with_submodules
    write(repository, "stray/own.py")
    git(repository / "stray", "init", "-q")
    nested = {"stray/own.py", "vendor/lib/lib.py", "vendor/lib/.gitmodules", "vendor/lib/deep/deep.py"}
    assert {
        path for path in WorkTree(repository).digests() if path.startswith(("stray/", "vendor/"))
    } == nested
    (repository / "vendor" / "lib" / "lib.py").write_text("changed\n")
    said = "vendor/lib is a submodule, .* record a baseline instead"
    with pytest.raises(BaselineError, match=said), checkout_of(repository, "HEAD"):
        pass
    git(repository, "submodule", "deinit", "-q", "-f", "vendor/lib")
    with checkout_of(repository, "HEAD") as root:  # the current tests do not need it
        assert not list((root / "vendor" / "lib").iterdir())


def test_commit_without_the_folder_cannot_be_checked_out(repository: Path):
    write(repository, "later/plan.yaml")
    with pytest.raises(BaselineError, match="no folder later/"), checkout_of(repository / "later", "HEAD"):
        pass
    assert git(repository, "worktree", "list").count("\n") == 0


# -- imports of a copy ---------------------------------------------------------------------------


@pytest.fixture
def installed(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return site packages with editable installations of the repository and of another package."""
    site = tmp_path / "site-packages"
    write(site, "readme.txt")
    (site / "src_layout.pth").write_text(f"{repository / 'src'}\n{repository / '.venv' / 'lib'}\n")
    (site / "__editable__.shop.pth").write_text("import __editable___shop_1_0_finder\n")
    mapping = {"pkg": str(repository / "lib" / "pkg"), "a.b": "/x/a/b"}
    (site / "__editable___shop_1_0_finder.py").write_text(f"MAPPING: dict[str, str] = {mapping!r}\n")
    write(repository, "src/x.py", ".venv/pyvenv.cfg", ".venv/lib/x.py")
    program = f"import site\nsite.addsitedir({str(site)!r})\n{worktrees._ASK_FOR_PLACES}"
    monkeypatch.setattr(worktrees, "_ASK_FOR_PLACES", program)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repository / "extra"), "/outside"]))
    return site


@pytest.mark.usefixtures("installed")
def test_import_paths_of_a_copy_match_the_original_without_the_current_directory(
    repository: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(repository)
    with checkout_of(repository / "sub" / "plan", "HEAD") as root:
        top = root.parent.parent
        given = environment_for(root, repository / "sub" / "plan")["PYTHONPATH"].split(os.pathsep)
        assert given == [str(top / "extra"), str(top / "src"), str(top / "lib"), "/outside"]
        assert counterpart(repository / "pkg", root, repository / "sub" / "plan") == top / "pkg"
        assert counterpart(repository.parent, root, repository / "sub" / "plan") is None


def test_verification_for_a_record_leaves_no_file_outside_of_our_own_folder_if_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    item = "{id: a, title: A, verify: pytest a.py}"
    (tmp_path / "plan.yaml").write_text(f"todo_list_id: p\nitems: [{item}]\n")

    def killed(argv: list[str], **_: object):
        Path(argv[argv.index("--planverify-outcomes") + 1]).write_text("{}")
        raise KeyboardInterrupt([path.name for path in (tmp_path / ".planverify").glob("*.json")])

    monkeypatch.setattr(record, "run_process", killed)
    with pytest.raises(KeyboardInterrupt, match=f"recording-{os.getpid()}.json"):
        verify_apart(load_tree(tmp_path / "plan.yaml").load_all().flat(), directory=tmp_path)
    assert list((tmp_path / ".planverify").glob("*.json")) == []
