"""Selections and session options parsed from a pytest command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import PytestInvocation, parse_command
from planner.catalog import pytest_arguments as module
from planner.errors import CommandSyntaxError


def read(arguments: str) -> PytestInvocation:
    invocation = parse_command(f"pytest {arguments}").pytest
    assert invocation is not None
    return invocation


@pytest.mark.parametrize(
    ("launcher", "foreign", "as_module"),
    [
        ("pytest", False, False),
        ("python -m pytest", False, True),
        ("python3.12 -m pytest", True, True),
        (".venv/bin/pytest", True, False),
        ("py -3.12 -m pytest", True, True),
        ("uv run pytest", True, False),
        ("uv run -m pytest", True, True),
        ("hatch run test:pytest", True, False),
        ("python -m coverage run --source b -m pytest", True, True),
    ],
)
def test_the_launcher_is_separated_from_the_arguments(launcher: str, foreign: bool, as_module: bool):
    command = parse_command(f"{launcher} a")
    found = command.pytest
    assert found is not None
    assert (" ".join(found.launcher), found.foreign, found.as_module) == (launcher, foreign, as_module)
    assert found.args == found.selections == ("a",)
    assert command.argv == (*found.launcher, "a")


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("-qs", ("-q", "-s")),
        ("-pno:randomly", ("-p", "no:randomly")),
        ("--rootdir=. --import-mode importlib", ("--rootdir=.", "--import-mode", "importlib")),
        ("--metadata a b", ("--metadata", "a", "b")),
        ("-k a -m b --deselect c", ()),
        ("--cov -n 2 --lf --junitxml=x.xml --pdb", ()),
    ],
)
def test_options_are_kept_except_those_that_select_or_apply_to_one_run(
    arguments: str, kept: tuple[str, ...]
) -> None:
    found = read(f"tests/a.py {arguments}")
    assert found.options == kept
    assert found.selections == ("tests/a.py",)


@pytest.mark.parametrize("arguments", ["--foo bar", "--foo=bar", "-z", "-qz"])
def test_an_unknown_option_makes_the_selections_uncertain(arguments: str) -> None:
    found, known = read(arguments), read("-q --tb=short -k a --json-report")
    assert (found.guessed, found.alone) == (True, True)
    assert (known.guessed, known.alone) == (False, False)


@pytest.mark.parametrize("arguments", ["-q @args.txt a.py", "a.py -- @args.txt"])
def test_a_file_of_arguments_is_no_selection(arguments: str) -> None:
    found = read(arguments)
    assert (found.selections, found.guessed, found.alone) == (("a.py",), True, True)


@pytest.mark.parametrize(
    "arguments",
    ["--cov", "-n2", "--lf", "--junitxml=x", "--json-report-file=x.json", "-p no:planverify", "--pdb"],
)
def test_a_command_with_a_per_run_option_is_run_alone(arguments: str) -> None:
    assert read(arguments).alone


def test_a_word_after_an_option_with_an_optional_value_is_a_selection() -> None:
    for arguments in ("--cov src tests", "--cov -q tests", "--cov=src tests", "tests --cov"):
        assert read(arguments).selections == ("tests",)


def test_the_last_of_several_expressions_and_every_deselection_applies() -> None:
    found = read("-qk 'a and b' -m a -xvm slow -kc=d --deselect a.py::b --deselect=c.py")
    assert (found.keyword, found.markexpr, found.deselect) == ("c=d", "slow", ("a.py::b", "c.py"))
    assert read("-k=a -mb").keyword == "a"
    assert read("-q -- -k a").selections == ("-k", "a"), "after a double dash"


def test_a_missing_value_and_a_value_for_a_flag_are_refused() -> None:
    for arguments in ("-k", "--tb", "-q --maxfail", "--metadata a", "-qm"):
        with pytest.raises(CommandSyntaxError, match="lacks its value"):
            read(arguments)
    with pytest.raises(CommandSyntaxError, match="takes no value"):
        read("--lf=yes")


def test_debug_does_not_overwrite_the_word_after_it() -> None:
    with pytest.raises(CommandSyntaxError, match=r"--debug would overwrite tests/test_a\.py"):
        read("--debug tests/test_a.py")
    assert read("tests/test_a.py --debug").selections == ("tests/test_a.py",)


@pytest.mark.parametrize(
    ("args", "paths"),
    [
        ("--rootdir=.. --confcutdir ../..", (("--rootdir", ".."), ("--confcutdir", "../.."))),
        ("--config-file=a.ini --basetemp /", (("--config-file", "a.ini"), ("--basetemp", "/"))),
        ("--debug=../trace", (("--debug", "../trace"),)),
        ("-o cache_dir=../c -o xfail_strict=../no", (("-o", "../c"),)),
        ("--override-ini=testpaths=a\\ ../b", (("--override-ini", "a"), ("--override-ini", "../b"))),
        ("--cov-report html:../cov --cov-report=term-missing:skip-covered", (("--cov-report", "../cov"),)),
        ("--json-report-file=/dev/null -c /dev/null -q -k ../x", ()),
    ],
)
def test_paths_in_options_are_listed(args: str, paths: tuple[tuple[str, str], ...]) -> None:
    assert read(args).option_paths == paths


@given(st.lists(st.sampled_from([*module.OPTIONS, "x", "y.py", "--", "-rA"]), max_size=6))
def test_any_sequence_of_known_options_is_parsed_or_refused(words: list[str]) -> None:
    try:
        found = module.parse_pytest_arguments(("pytest",), tuple(words), foreign=False, as_module=False)
    except CommandSyntaxError:
        return
    assert found.args == tuple(words)
    assert set(found.selections) <= set(words)


def test_the_option_table_matches_the_installed_pytest(pytestconfig: pytest.Config) -> None:
    """Each option of pytest is in the table, with the number of values that pytest accepts."""
    parser = pytestconfig._parser
    actions = parser.optparser._actions if hasattr(parser, "optparser") else parser._getparser()._actions
    wrong: list[str] = []
    for action in actions:
        for name in action.option_strings:
            known = module.OPTIONS.get(name)
            if known is None:
                if "planverify" not in name:
                    wrong.append(f"{name} is not known")
                continue
            expected = {0: "flags", None: "one", 2: "two", "?": "optional", "+": "many"}[action.nargs]
            if known.takes != expected:
                wrong.append(f"{name} takes {expected}, not {known.takes}")
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("-qrA", [("-q", ("-q",)), ("-r", ("-r", "A"))]),
        ("--cov pkg --cov -x", [("--cov", ("--cov", "pkg")), ("--cov", ("--cov",)), ("-x", ("-x",))]),
        (
            "--json-report-omit log streams -q",
            [("--json-report-omit", ("--json-report-omit", "log", "streams")), ("-q", ("-q",))],
        ),
        ("--strange=1 -- -x", [("--strange", ("--strange=1",)), ("", ("--",)), ("", ("-x",))]),
    ],
)
def test_a_command_line_is_split_into_options_with_their_values(
    words: str, options: list[tuple[str, tuple[str, ...]]]
) -> None:
    found = list(module.split_options(words.split()))
    assert [(each.name, each.words) for each in found] == options
    assert [each.name for each in found if not each.known] == ["--strange"] * ("--strange" in words)


@pytest.mark.parametrize(
    ("words", "is_open"),
    [
        ("-x --debug", True),
        ("--json-report-omit log streams", True),
        ("--cov pkg", False),
        ("--strange", True),
        ("--strange=1", False),
        ("", False),
    ],
)
def test_last_option_takes_no_word_of_a_command_behind_it(words: str, is_open: bool) -> None:
    end = ("-p", "no:end_of_options") if is_open else ()
    assert module.close_options(words.split()) == (*words.split(), *end)
