"""Folding: commands share a session exactly where they would have run under the same conditions alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.catalog import parse_command
from pytest_planverify.supervision.conftest_habits import reads_company
from pytest_planverify.supervision.folding import Folding, FoldKey

TEST = "def test_it(): pass\n"


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEST if path.suffix == ".py" else "[pytest]\n")


def keys(root: Path, *commands: str) -> list[FoldKey]:
    parsed = [parse_command(command) for command in commands]
    return Folding(root).keys([(each.pytest, each.env) for each in parsed if each.pytest])


def reads_selection(root: Path, command: str) -> bool:
    invocation = parse_command(command).pytest
    assert invocation is not None
    return Folding(root).reads_selection(invocation)


def share(root: Path, *commands: str) -> bool:
    return len(set(keys(root, *commands))) == 1


ALIKE = [
    ("pytest a/test_a.py", "pytest a/test_b.py"),
    ("pytest a/test_a.py", "pytest a/test_a.py::test_it"),
    ("pytest a/test_a.py", "pytest a/test_a.py::test_it[x/y]"),
    ("pytest a/test_a.py", "pytest -q -vv --tb=short a/test_a.py"),
    ("pytest a/test_a.py", "pytest a/test_a.py -k it -m 'not slow' --deselect a/test_a.py::x"),
    ("pytest a/test_a.py", "py.test ./a/test_b.py"),
    ("pytest a", "pytest a/test_a.py"),
    ("pytest a/test_a.py", "pytest a/test_missing.py"),
    ("FOO=1 pytest a/test_a.py", "FOO=1 pytest a/test_b.py"),
]
DIFFERENT = [
    ("pytest a/test_a.py", "python -m pytest a/test_a.py"),
    ("pytest a/test_a.py", "FOO=1 pytest a/test_a.py"),
    ("FOO=1 pytest a/test_a.py", "FOO=2 pytest a/test_a.py"),
    ("pytest a/test_a.py", "pytest -p no:cacheprovider a/test_a.py"),
    ("pytest a/test_a.py", "pytest -o xfail_strict=true a/test_a.py"),
    ("pytest a/test_a.py", "pytest -W error a/test_a.py"),
    ("pytest a/test_a.py", "pytest -c other.ini a/test_a.py"),
    ("pytest a/test_a.py", "pytest --rootdir=a a/test_a.py"),
    ("pytest a/test_a.py", "pytest"),
]


@pytest.mark.parametrize("commands", ALIKE, ids=" | ".join)
def test_what_only_selects_or_displays_shares(commands: tuple[str, ...], tmp_path: Path):
    write(tmp_path, "a/test_a.py", "a/test_b.py", "other.ini")

    assert share(tmp_path, *commands)


@pytest.mark.parametrize("commands", DIFFERENT, ids=" | ".join)
def test_other_conditions_share_nothing(commands: tuple[str, ...], tmp_path: Path):
    write(tmp_path, "a/test_a.py", "a/test_b.py", "other.ini")

    assert not share(tmp_path, *commands)


def test_another_ini_file_is_another_session(tmp_path: Path):
    write(tmp_path, "a/test_a.py", "b/test_b.py")
    assert share(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")

    write(tmp_path, "b/pytest.ini")
    first, second = keys(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")
    assert first != second
    assert second.inifile == str(tmp_path / "b/pytest.ini")
    assert second.rootdir == str(tmp_path / "b")


def test_the_ini_file_and_rootdir_named_are_used(tmp_path: Path):
    write(tmp_path, "a/test_a.py", "conf/other.ini")

    (key,) = keys(tmp_path, "pytest -c conf/other.ini --rootdir=a a/test_a.py")

    assert key.inifile == str(tmp_path / "conf/other.ini")
    assert key.rootdir == str(tmp_path / "a")


def test_a_broken_ini_file_is_left_to_the_session(tmp_path: Path):
    write(tmp_path, "a/test_a.py")
    (tmp_path / "a/pytest.ini").write_text("[pytest\nnonsense")

    (key,) = keys(tmp_path, "pytest a/test_a.py")

    assert (key.inifile or "").startswith("unusable: ")
    assert key.rootdir == str(tmp_path)


def test_conftests_that_only_one_would_load_keep_them_apart(tmp_path: Path):
    write(tmp_path, "a/test_a.py", "b/test_b.py", "conftest.py")
    assert share(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")

    write(tmp_path, "b/conftest.py")
    assert not share(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")


def test_conftests_below_a_folder_count(tmp_path: Path):
    write(tmp_path, "a/test_a.py", "a/deep/conftest.py", "a/deep/test_d.py")

    whole, part = keys(tmp_path, "pytest a", "pytest a/test_a.py")

    assert whole.conftests == {str(tmp_path / "a/deep/conftest.py")}
    assert part.conftests == frozenset()


def test_modules_beside_the_tests_that_only_one_could_import_keep_them_apart(tmp_path: Path):
    write(tmp_path, "a/test_a.py", "b/test_b.py", "b/support.py")

    first, second = keys(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")

    assert first.import_paths == frozenset()
    assert second.import_paths == {str(tmp_path / "b")}


@pytest.mark.parametrize("offered", ["b/package/__init__.py", "b/namespace/module.py"])
def test_packages_beside_the_tests_count_as_modules(offered: str, tmp_path: Path):
    write(tmp_path, "a/test_a.py", "b/test_b.py", offered)

    assert not share(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")


@pytest.mark.parametrize(
    "beside", ["b/data/x.json", "b/test_other.py", "b/.hidden.py", "b/__pycache__/x.py"]
)
def test_what_cannot_be_imported_by_name_does_not_count(beside: str, tmp_path: Path):
    write(tmp_path, "a/test_a.py", "b/test_b.py", beside)

    assert share(tmp_path, "pytest a/test_a.py", "pytest b/test_b.py")


def test_test_files_of_one_name_keep_their_folders_apart(tmp_path: Path):
    write(tmp_path, "a/test_same.py", "b/test_same.py", "c/test_c.py")

    first, second, third = keys(
        tmp_path, "pytest a/test_same.py", "pytest b/test_same.py", "pytest c/test_c.py"
    )

    assert len({first, second, third}) == 3
    assert third.import_paths == frozenset()


def test_test_files_of_one_name_in_packages_may_share(tmp_path: Path):
    write(tmp_path, "a/__init__.py", "a/test_same.py", "b/__init__.py", "b/test_same.py")

    assert share(tmp_path, "pytest a/test_same.py", "pytest b/test_same.py")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("config.option.keyword", True),
        ("config.option.markexpr", True),
        ("config.getoption('-k')", True),
        ('config.getoption(\n    "keyword", default="")', True),
        ("config.getoption('-m')", True),
        ("config.getvalue('markexpr')", True),
        ("getattr(config.option, 'markexpr', '')", True),
        ("item.keywords", False),
        ("config.getoption('--slow')", False),
        ("subprocess.run([sys.executable, '-m', 'build'])", False),
        ("", False),
    ],
)
def test_a_conftest_that_looks_at_the_selecting_expressions_is_told(text: str, reads: bool, tmp_path: Path):
    write(tmp_path, "a/test_a.py", "b/test_b.py")
    (tmp_path / "a/conftest.py").write_text(text)

    assert reads_selection(tmp_path, "pytest a/test_a.py") is reads
    assert reads_selection(tmp_path, "pytest .") is reads
    assert not reads_selection(tmp_path, "pytest b/test_b.py")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("def pytest_runtestloop(session): return True", True),
        ("@hookimpl(tryfirst=True)\ndef  pytest_collection (session): ...", True),
        ("def pytest_collection_modifyitems(items):\n    for item in items: item.add_marker('x')", False),
        ("def pytest_runtest_protocol(item): ...", False),
    ],
)
def test_a_conftest_that_runs_the_session_itself_needs_its_own(text: str, reads: bool):
    assert reads_company(text) is reads


@pytest.mark.parametrize("plugin", ["tests/support/slow.py", "support/slow.py"])
def test_a_plugin_file_that_a_conftest_names_is_read_too(plugin: str, tmp_path: Path):
    write(tmp_path, "tests/test_a.py", plugin)
    (tmp_path / "tests/conftest.py").write_text("pytest_plugins = ['support.slow', 'pytester']\n")
    assert not reads_selection(tmp_path, "pytest tests")

    (tmp_path / plugin).write_text("def pytest_configure(config): config.option.keyword\n")
    assert reads_selection(tmp_path, "pytest tests")


def test_folders_that_pytest_passes_over_are_not_looked_into(tmp_path: Path):
    write(tmp_path, "test_a.py", "node_modules/conftest.py", ".git/conftest.py", "env/conftest.py")
    (tmp_path / "env/pyvenv.cfg").write_text("")

    (key,) = keys(tmp_path, "pytest .")

    assert key.conftests == frozenset()
