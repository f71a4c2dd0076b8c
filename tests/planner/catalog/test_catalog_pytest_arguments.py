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
    ("cmd", "launcher", "foreign", "as_module"),
    [
        ("pytest a", ("pytest",), False, False),
        ("py.test a", ("py.test",), False, False),
        ("python -m pytest a", ("python", "-m", "pytest"), False, True),
        ("python3 -m pytest a", ("python3", "-m", "pytest"), False, True),
        ("python3.12 -m pytest a", ("python3.12", "-m", "pytest"), True, True),
        ("python -X dev -m pytest a", ("python", "-X", "dev", "-m", "pytest"), True, True),
        ("python -I -m pytest a", ("python", "-I", "-m", "pytest"), True, True),
        (".venv/bin/python -m pytest a", (".venv/bin/python", "-m", "pytest"), True, True),
        (".venv/bin/pytest a", (".venv/bin/pytest",), True, False),
        ("py -3.12 -m pytest a", ("py", "-3.12", "-m", "pytest"), True, True),
        ("uv run pytest a", ("uv", "run", "pytest"), True, False),
        (
            "uv --quiet run --with x pytest a",
            ("uv", "--quiet", "run", "--with", "x", "pytest"),
            True,
            False,
        ),
        ("uv run -m pytest a", ("uv", "run", "-m", "pytest"), True, True),
        ("uv run -- pytest a", ("uv", "run", "--", "pytest"), True, False),
        ("hatch run test:pytest a", ("hatch", "run", "test:pytest"), True, False),
        ("poetry run python -m pytest a", ("poetry", "run", "python", "-m", "pytest"), True, True),
        ("coverage run -m pytest a", ("coverage", "run", "-m", "pytest"), True, True),
        (
            "python -m coverage run --source b -m pytest a",
            ("python", "-m", "coverage", "run", "--source", "b", "-m", "pytest"),
            True,
            True,
        ),
    ],
)
def test_the_launcher_is_separated_from_the_arguments(
    cmd: str, launcher: tuple[str, ...], foreign: bool, as_module: bool
) -> None:
    command = parse_command(cmd)
    found = command.pytest
    assert found is not None
    assert (found.launcher, found.foreign, found.as_module) == (launcher, foreign, as_module)
    assert found.args == found.selections == ("a",)
    assert command.argv == (*launcher, "a")


@pytest.mark.parametrize(
    "arguments",
    [
        "-q",
        "-qq -vv -x -l",
        "-qxl",
        "-rA",
        "-r fE",
        "-qrA",
        "--tb=short",
        "--tb short",
        "--maxfail 1",
        "--maxfail=1",
        "--exitfirst",
        "--durations 5 --durations-min=0.1",
        "--json-report",
        "--json-report --json-report-file .report.json",
        "--json-report-file=none --json-report-indent=2",
        "--no-header --no-summary --color=no --verbosity=2 --full-trace --showlocals",
        "--disable-warnings --show-capture no",
    ],
)
def test_options_are_distinguished_from_selections(arguments: str) -> None:
    found = read(f"{arguments} tests/a.py")
    assert found.selections == ("tests/a.py",)
    assert found.args == (*arguments.split(), "tests/a.py")


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("-qs", ("-q", "-s")),
        ("--capture sys", ("--capture", "sys")),
        ("-pno:randomly", ("-p", "no:randomly")),
        ("-c x.ini", ("-c", "x.ini")),
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


@pytest.mark.parametrize(
    "arguments",
    ["--cov", "-n2", "--lf", "--junitxml=x", "--json-report-file=x.json", "-p no:planverify", "--pdb"],
)
def test_a_command_with_a_per_run_option_is_run_alone(arguments: str) -> None:
    assert read(arguments).alone


def test_a_word_after_an_option_with_an_optional_value_is_a_selection() -> None:
    assert read("--cov src tests").selections == ("tests",)
    assert read("--cov -q tests").selections == ("tests",)
    assert read("--cov=src tests").selections == ("tests",)
    assert read("tests --cov").selections == ("tests",)


def test_the_last_of_several_expressions_applies() -> None:
    assert read("-k a -k b").keyword == "b"
    assert read("-m a -mb").markexpr == "b"


def test_combined_short_options_are_split() -> None:
    found = read("-qk 'a and b' -xvm slow -kc=d")
    assert (found.keyword, found.markexpr) == ("c=d", "slow")
    assert read("-k=a").keyword == "a"


def test_every_deselect_option_counts() -> None:
    assert read("--deselect a.py::b --deselect=c.py").deselect == ("a.py::b", "c.py")


def test_everything_after_a_double_dash_is_a_selection() -> None:
    assert read("-q -- -k a").selections == ("-k", "a")


@pytest.mark.parametrize("arguments", ["-k", "--tb", "-q --maxfail", "--metadata a", "-qm"])
def test_a_missing_value_is_refused(arguments: str) -> None:
    with pytest.raises(CommandSyntaxError, match="lacks its value"):
        read(arguments)


def test_a_value_for_a_flag_is_refused() -> None:
    with pytest.raises(CommandSyntaxError, match="takes no value"):
        read("--lf=yes")


@pytest.mark.parametrize(
    ("args", "paths"),
    [
        ("--rootdir=.. --confcutdir ../..", (("--rootdir", ".."), ("--confcutdir", "../.."))),
        ("-qc../x.ini", (("-c", "../x.ini"),)),
        ("--config-file=a.ini --basetemp /", (("--config-file", "a.ini"), ("--basetemp", "/"))),
        ("--junitxml=../x --log-file=y", (("--junitxml", "../x"), ("--log-file", "y"))),
        ("--debug ../trace", (("--debug", "../trace"),)),
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
        ("-n=2 -r fE", [("-n", ("-n", "2")), ("-r", ("-r", "fE"))]),
        ("--html a.html --css=b", [("--html", ("--html", "a.html")), ("--css", ("--css=b",))]),
        ("--cov pkg --cov -x", [("--cov", ("--cov", "pkg")), ("--cov", ("--cov",)), ("-x", ("-x",))]),
        (
            "--json-report-omit log streams -q",
            [("--json-report-omit", ("--json-report-omit", "log", "streams")), ("-q", ("-q",))],
        ),
        ("--metadata a b t.py", [("--metadata", ("--metadata", "a", "b")), ("", ("t.py",))]),
        ("--strange=1 -- -x", [("--strange", ("--strange=1",)), ("", ("--",)), ("", ("-x",))]),
    ],
)
def test_a_command_line_is_split_into_options_with_their_values(
    words: str, options: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert [(each.name, each.words) for each in module.split_options(words.split())] == options


def test_only_unknown_options_are_marked_unknown() -> None:
    assert [
        each.name for each in module.split_options(["-q", "--strange", "t.py", "-Z"]) if not each.known
    ] == ["--strange", "-Z"]
