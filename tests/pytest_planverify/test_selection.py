"""Selection: what a folded command selects is what pytest itself selects for the same arguments."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest
from forked import plain_pytest, records, session
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import parse_command
from pytest_planverify.observing.selection import Target, alike_paths, asking_for
from pytest_planverify.observing.spec import Narrowing, Wanted

FILES = {
    "pytest.ini": "[pytest]\nmarkers =\n    slow\n    level(n)\n",
    "tests/test_one.py": """
import pytest

def test_a(): pass

@pytest.mark.slow
def test_ab(): pass

@pytest.mark.level(2)
def test_b(): pass

class TestC:
    def test_a(self): pass

    @pytest.mark.slow
    def test_m(self): pass

    class TestD:
        @pytest.mark.parametrize("n", [1, 2])
        def test_deep(self, n): pass

@pytest.mark.parametrize(
    "text", ["1", "2-x", "a/b", "x::y", "[z]", "é", "with space", "", "tests/test_one.py"]
)
def test_p(text): pass

@pytest.mark.parametrize("left", ["l", "r"])
@pytest.mark.parametrize("right", ["l", "r"])
def test_pq(left, right): pass
""",
    "tests/test_one_more.py": "def test_a(): pass\ndef test_more(): pass\n",
    "tests/sub/test_two.py": "def test_a(): pass\ndef test_other(): pass\n",
    "tests/sub/helper_test.py": "class TestHelper:\n    def test_it(self): pass\n",
    "test_top.py": """
import unittest

class TestCase(unittest.TestCase):
    def test_u(self): pass
    def test_ux(self): pass
""",
}

COMMANDS = [
    "",
    ".",
    "tests",
    "tests/",
    "./tests/../tests",
    "tests/sub",
    "tests/test_one.py",
    "tests/test_one.py::test_a",
    "tests/test_one.py::TestC",
    "tests/test_one.py::TestC::test_a",
    "tests/test_one.py::TestC::TestD",
    "tests/test_one.py::TestC::TestD::test_deep",
    "tests/test_one.py::TestC::TestD::test_deep[1]",
    "tests/test_one.py::test_p",
    "tests/test_one.py::test_p[1]",
    "tests/test_one.py::test_p[a/b]",
    "tests/test_one.py::test_p[x::y]",
    "tests/test_one.py::test_p[[z]]",
    "'tests/test_one.py::test_p[with space]'",
    "tests/test_one.py::test_p[]",
    "tests/test_one.py::test_p[tests/test_one.py]",
    "tests/test_one.py::test_p[2]",
    "tests/test_one.py::test_pq[l-r]",
    "tests/test_one.py::test_gone",
    "tests/test_one.py::TestC::test_gone",
    "tests/test_one.py::test_a::deeper",
    "tests/test_gone.py",
    "tests/test_one.py tests/test_gone.py",
    "test_top.py::TestCase",
    "test_top.py::TestCase::test_u",
    "tests/sub/test_two.py tests/test_one.py::test_b",
    "tests/test_one.py::test_a tests/test_one.py::test_ab",
    "-k test_a",
    "-k 'test_a and not slow'",
    "tests/test_one.py -k 'TestC or other'",
    "-k one_more",
    "-k slow",
    "-k nothing_at_all",
    "-m slow",
    "-m 'not slow' tests",
    "-m 'level(n=2)'",
    "-m 'level'",
    "-k 'test_a' -m slow",
    "--deselect tests/test_one.py",
    "--deselect tests/test_one.py::test_a",
    "--deselect=tests/test_one.py::test_p[1 tests/test_one.py",
    "tests --deselect tests/sub --deselect tests/test_one.py::TestC",
    "-k 'test_p and [z]'",
    "-k 2-x",
    "-k first -k test_b",
]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def wanted_by(command: str) -> Wanted:
    invocation = parse_command(f"pytest {command}").pytest
    assert invocation is not None
    return Wanted(
        key=command,
        selections=invocation.selections,
        keyword=invocation.keyword,
        markexpr=invocation.markexpr,
        deselect=invocation.deselect,
    )


def folded(root: Path, *commands: str, **more: object) -> dict[str, dict]:
    """What one shared session says that each command selects."""
    wanted = tuple(map(wanted_by, commands))
    (collected,) = records(session(root, wanted=wanted, collect_only=True, **more), "collected")
    return {selection["key"]: selection for selection in collected["selections"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("selection")
    write(root, FILES)
    return root


@pytest.fixture(scope="module")
def selections(project: Path) -> dict[str, dict]:
    return folded(project, *COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command or "no arguments")
def test_a_folded_command_selects_what_pytest_does(
    command: str, project: Path, selections: dict[str, dict]
):
    status, nodeids = plain_pytest(project, *shlex.split(command))
    selection = selections[command]

    if status == pytest.ExitCode.USAGE_ERROR:
        assert selection["problems"]
    else:
        assert sorted(selection["nodeids"]) == sorted(nodeids)
        assert bool(selection["problems"]) == (not nodeids)
        if command.count(".py") == 1:
            assert selection["nodeids"] == nodeids


def test_random_projects_and_arguments_agree_too(tmp_path: Path):
    dice = random.Random(20)
    names = ["test_a", "test_ab", "test_b", "TestA", "TestB"]
    files: dict[str, str] = {}
    nodeids: list[str] = []
    for number in range(4):
        path = dice.choice(["", "x/", "x/y/"]) + f"test_{number}.py"
        text = "import pytest\n"
        for name in dice.sample(names, 3):
            if name.startswith("Test"):
                text += f"class {name}:\n    def test_a(self): pass\n    def test_b(self): pass\n"
                nodeids += [f"{path}::{name}", f"{path}::{name}::test_a"]
            else:
                text += f"@pytest.mark.parametrize('v', ['a', 'b/c', 'd::e'])\ndef {name}(v): pass\n"
                nodeids += [f"{path}::{name}", f"{path}::{name}[b/c]", f"{path}::{name}[zz]"]
        files[path] = text
        nodeids.append(path)
    write(tmp_path, files)
    commands: list[str] = []
    for _ in range(14):
        words = dice.sample(nodeids, dice.choice([0, 1, 1, 2]))
        if dice.random() < 0.4:
            words += ["-k", shlex.quote(dice.choice(["test_a", "TestA", "not test_b", "b or TestB"]))]
        if dice.random() < 0.3:
            words += ["--deselect", dice.choice(nodeids)]
        commands.append(" ".join(words))
    commands = list(dict.fromkeys(commands))

    found = folded(tmp_path, *commands)

    for command in commands:
        status, expected = plain_pytest(tmp_path, *shlex.split(command))
        if status == pytest.ExitCode.USAGE_ERROR:
            assert found[command]["problems"], command
        else:
            assert sorted(found[command]["nodeids"]) == sorted(expected), command


@pytest.mark.parametrize(
    ("command", "problem", "nearest"),
    [
        ("tests/test_gone.py", "missing_file", ["test_one.py"]),
        ("tests/test_on.py::test_a", "missing_file", ["test_one.py"]),
        ("tests/test_one.py::test_ba", "missing_id", None),
        ("-k nothing_at_all", "no_match", []),
    ],
)
def test_what_selects_nothing_says_how(
    command: str, problem: str, nearest: list[str] | None, project: Path
):
    (found,) = folded(project, command)[command]["problems"]

    assert found["problem"] == problem
    if nearest:
        assert found["nearest"][0] == nearest[0]
    if problem == "missing_id":
        assert "tests/test_one.py::test_a" in found["nearest"]


def test_an_expression_that_is_none_costs_its_own_command_only(project: Path):
    bad = Wanted(key="bad", keyword="((")
    good = Wanted(key="good", selections=("test_top.py",))
    (collected,) = records(session(project, wanted=(bad, good), collect_only=True), "collected")
    first, second = collected["selections"]

    assert [problem["problem"] for problem in first["problems"]] == ["bad_expression"]
    assert first["nodeids"] == []
    assert len(second["nodeids"]) == 2


def test_the_ini_file_narrows_commands_that_say_nothing_themselves(tmp_path: Path):
    write(tmp_path, {**FILES, "pytest.ini": "[pytest]\nmarkers=\n slow\n level\naddopts = -m slow\n"})

    found = folded(tmp_path, "tests", "tests -m 'not slow'", "tests -k test_m")

    assert found["tests"]["nodeids"] == plain_pytest(tmp_path, "tests")[1]
    assert found["tests -m 'not slow'"]["nodeids"] == plain_pytest(tmp_path, "tests", "-m", "not slow")[1]
    assert found["tests -k test_m"]["nodeids"] == ["tests/test_one.py::TestC::test_m"]


def test_what_a_conftest_deselects_stays_out(tmp_path: Path):
    hook = """
def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if "b" not in item.name]
"""
    write(tmp_path, {**FILES, "conftest.py": hook})

    found = folded(tmp_path, "tests/sub", "tests/test_one.py::test_b")

    assert found["tests/sub"]["nodeids"] == plain_pytest(tmp_path, "tests/sub")[1]
    assert found["tests/test_one.py::test_b"]["nodeids"] == []


def test_what_the_user_leaves_out_is_narrowed_not_missing(project: Path):
    only = ("tests/sub/test_two.py::test_a", "test_top.py::TestCase::test_u")
    cases: list[tuple[Narrowing, list[str]]] = [
        (Narrowing(keyword="other"), ["tests/sub/test_two.py::test_a"]),
        (
            Narrowing(markexpr="slow"),
            ["tests/sub/test_two.py::test_a", "tests/sub/test_two.py::test_other"],
        ),
        (Narrowing(deselect=("tests/sub/test_two.py::test_o",)), ["tests/sub/test_two.py::test_other"]),
        (Narrowing(only=only), ["tests/sub/test_two.py::test_other"]),
    ]
    command = "tests/sub/test_two.py"
    for narrowing, left_out in cases:
        for verbatim in (False, True):
            args = [command] if verbatim else []
            journal = session(
                project,
                *args,
                wanted=(wanted_by(command),),
                narrowing=narrowing,
                verbatim=verbatim,
                collect_only=True,
            )
            (selection,) = records(journal, "collected")[0]["selections"]
            assert selection["narrowed"] == left_out, (narrowing, verbatim)
            assert selection["problems"] == []


def test_what_an_earlier_process_has_finished_is_selected_and_not_run_again(project: Path):
    done = ("tests/sub/test_two.py::test_a",)
    command = "tests/sub/test_two.py"
    for verbatim in (False, True):
        journal = session(
            project,
            *([command] if verbatim else []),
            wanted=(wanted_by(command),),
            skip=done,
            verbatim=verbatim,
        )
        (collected,) = records(journal, "collected")
        assert collected["selections"][0]["nodeids"] == [*done, "tests/sub/test_two.py::test_other"]
        assert collected["planned"] == ["tests/sub/test_two.py::test_other"]


# -- the parts -------------------------------------------------------------------------------------

ROOT = Path("/root")
NAMES = st.text(st.characters(blacklist_characters=":[/\\\x00", blacklist_categories=["Cs"]), min_size=1)
IDS = st.text(st.characters(blacklist_characters="\x00", blacklist_categories=["Cs"]))


@given(names=st.lists(NAMES, min_size=1, max_size=3), parametrization=IDS)
def test_any_id_is_accepted_by_its_own_text(names: list[str], parametrization: str):
    last = f"{names[-1]}[{parametrization}]"
    text = "::".join(["tests/test_x.py", *names[:-1], last])

    target = Target.parse(text, ROOT)

    assert target.path == Path("/root/tests/test_x.py")
    assert target.accepts(target.path, (*names[:-1], last))
    assert not target.accepts(Path("/root/tests/test_y.py"), (*names[:-1], last))
    assert not target.accepts(target.path, (*names[:-1], f"{names[-1]}[{parametrization}+]"))
    assert not target.accepts(target.path, tuple(names[:-1]))


def test_a_folder_accepts_all_below_it():
    target = Target.parse("tests", ROOT)

    assert target.accepts(Path("/root/tests/deep/test_x.py"), ("test_a",))
    assert not target.accepts(Path("/root/tests2/test_x.py"), ("test_a",))


def test_who_imports_a_file_when_it_runs_alone():
    wanted = [
        Wanted(key="all"),
        Wanted(key="file", selections=("a/x.py::t",)),
        Wanted(key="other", selections=("b",)),
    ]

    assert asking_for(Path("/root/a/x.py"), wanted, ROOT) == ["all", "file"]


def test_names_that_look_alike_come_from_the_nearest_folder_that_exists(tmp_path: Path):
    write(tmp_path, {"tests/test_one.py": "", "tests/test_two.py": ""})

    assert alike_paths(tmp_path / "tests/test_onee.py") == ["test_one.py"]
    assert alike_paths(tmp_path / "tests/sub/deep/test_one.py") == ["test_one.py"]
    assert alike_paths(tmp_path / "tests/zzz.txt") == []


def test_what_all_tests_have_in_common_makes_no_two_of_them_alike(tmp_path: Path):
    write(tmp_path, {"tests/test_terminal.py": "", "tests/gift_wrap_test.py": ""})

    assert alike_paths(tmp_path / "tests/test_gift_wrap.py") == ["gift_wrap_test.py"]
    assert alike_paths(tmp_path / "tests/test_animals.py") == []
