"""Parsing of a plan's commands into argument vectors; a refusal names the alternative."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from planner.catalog import RECIPES, TOOLS, Purpose, parse_command
from planner.catalog.commands import split_words
from planner.errors import CommandSyntaxError


def refusal(cmd: str) -> str:
    with pytest.raises(CommandSyntaxError) as caught:
        parse_command(cmd)
    assert caught.value.problem
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize(
    ("cmd", "argv"),
    [
        ("  pytest\ttests \n", ("pytest", "tests")),
        ("pytest \\\n  tests", ("pytest", "tests")),
        ('pytest "a\\$b\\"c\\d"', ("pytest", 'a$b"c\\d')),
        ("pytest tests/a.py::b[a*b?]", ("pytest", "tests/a.py::b[a*b?]")),
        ("pytest tests/a.py::b[a#b~c!d^e]", ("pytest", "tests/a.py::b[a#b~c!d^e]")),
        ("pytest tests/a.py::b[5$]", ("pytest", "tests/a.py::b[5$]")),
        ("pytest a\\\\ \n", ("pytest", "a\\")),
    ],
)
def test_quoted_and_harmless_characters_are_passed_on_unchanged(cmd: str, argv: tuple[str, ...]) -> None:
    assert parse_command(cmd).argv == argv


@pytest.mark.parametrize(
    ("cmd", "said"),
    [
        ("pytest a && pytest b", "a criterion of its own"),
        ("pytest a || pytest b", "'||'"),
        ("pytest; ruff check", "a criterion of its own"),
        ("pytest & ", "background"),
        ("pytest | tee log", "pipe"),
        ("pytest tests\\test_a.py", "write '/' between folders"),
        ("pytest > log", "captured"),
        ("(pytest)", "subshell"),
        ("pytest\nruff check", "more than one line"),
        ("pytest `ls`", "substitutes"),
        ("pytest $(ls)", "substitutes"),
        ("pytest $TESTS", "'$TESTS'"),
        ("pytest $'a'", "expands"),
        ('pytest "$TESTS"', "single quotes"),
        ("pytest tests/*.py", "glob '*'"),
        ("pytest ~/tests", "'~'"),
        ("pytest {a,b}", "braces"),
        ("{ pytest", "braces"),
        ("pytest # all", "comment"),
        ("pytest 'a", "never closed"),
        ('pytest "a', "never closed"),
        ("pytest \\", "backslash"),
        ("pytest a\0b", "NUL"),
        ("pytest a\ud800", "surrogate"),
        ("python -m coverage run " * 400, "hundreds of launchers"),
        ("pytest a\fb", "control character"),
        ("pytest " + "a" * 20_000, "20007 characters"),
        ("cd sub && pytest", "set the plan's root"),
    ],
)
def test_shell_syntax_is_refused_with_an_alternative(cmd: str, said: str) -> None:
    assert said in refusal(cmd)


def test_leading_variables_are_separated_from_the_arguments() -> None:
    command = parse_command('A=1 B_2="x y" C= pytest D=4')
    assert command.env == (("A", "1"), ("B_2", "x y"), ("C", ""))
    assert command.argv == ("pytest", "D=4")


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "PYTHONHOME", "MAKEFLAGS"])
def test_variables_that_alter_the_meaning_of_programs_are_refused(name: str) -> None:
    assert name in refusal(f"{name}=x pytest")


@pytest.mark.parametrize(
    ("cmd", "tool", "purpose"),
    [
        ("py.test a", "pytest", Purpose.TEST),
        ("python -m unittest tests.test_buffer", "unittest", Purpose.TEST),
        ("python -m compileall -q src", "compileall", Purpose.VALIDATE),
        ("python -m mypkg.check --all", "python", Purpose.TEST),
        ("python -u sub/../check.py", "python", Purpose.TEST),
        ("python -W error -X dev check.py", "python", Purpose.TEST),
        ("ruff --config x.toml check .", "ruff", Purpose.LINT),
        (".venv/bin/mypy src", "mypy", Purpose.TYPE_CHECK),
        ("pyright.exe", "pyright", Purpose.TYPE_CHECK),
        ("make -C sub lint", "make", Purpose.LINT),
        ("make -fintegration.mk all", "make", Purpose.BUILD),
        ("npm --prefix web run lint", "npm", Purpose.LINT),
        ("pnpm run typecheck", "pnpm", Purpose.TYPE_CHECK),
        ("npx --no-install -p eslint eslint .", "eslint", Purpose.LINT),
        ("npm exec -- jest", "jest", Purpose.TEST),
        ("node check.js", "node", Purpose.TEST),
        ("cargo +nightly clippy", "cargo", Purpose.LINT),
        ("go -C sub test ./...", "go", Purpose.TEST),
        ("tox -e lint", "tox", Purpose.LINT),
        ("git -C sub status --porcelain", "git", Purpose.VALIDATE),
        ("uv run --extra dev ruff check", "ruff", Purpose.LINT),
        ("poetry run python -m mypy src", "mypy", Purpose.TYPE_CHECK),
        ("coverage report --fail-under=90", "coverage", Purpose.TEST),
        ("python -m coverage report", "coverage", Purpose.TEST),
    ],
)
def test_a_command_has_a_tool_and_a_purpose(cmd: str, tool: str, purpose: Purpose) -> None:
    command = parse_command(cmd)
    assert (command.tool.name, command.tool.purpose) == (tool, purpose)
    assert command.text == cmd


@pytest.mark.parametrize(
    ("cmd", "said"),
    [
        ("", "names no program"),
        ("bash -c 'pytest'", "write the command that the shell would run"),
        ("env A=1 pytest", "NAME=value"),
        ("timeout 5 pytest", "timeout_seconds"),
        ("! pytest", "asserts the failure"),
        ("pytets", "did you mean pytest?"),
        ("zzzz", "name it in the plan: metadata: {tools: [{name: zzzz, kind: validate, argv: [zzzz]}]}"),
        ("./check.py", "write python ./check.py"),
        ("tests/test_a.py", "write pytest tests/test_a.py"),
        ("checks.py::test_a", "write pytest checks.py::test_a"),
        ("python-full", "verify: python-full"),
        ("python", "neither a module nor a script"),
        ("python -cpass", "python -c contains code"),
        ("python -m 'a b'", "lacks the name"),
        ("python -m pip install x", "installs"),
        ("python -m http.server", "no tool of the catalog"),
        ("python ../x.py", "outside"),
        ("uv pip install x", "the known commands of uv are: build, lock, run TOOL, tool run TOOL"),
        ("uv run", "starts nothing"),
        ("uv run bash -c pytest", "shell"),
        ("npx -c 'rm x'", "script of the command line"),
        ("yarn lint", "yarn run lint"),
        ("cargo tets", "the known commands of cargo are: test"),
        ("ruff", "alone"),
        ("black .", "add --check"),
        ("ruff check --fix", "remove --fix"),
        ("mypy --version", "only prints information on mypy"),
        ("make -sn test", "remove -sn"),
        ("node", "no script"),
        ("node ../x.js", "outside"),
        ("git diff", "add --check"),
        ("git -c core.pager=x diff --check", "not allowed"),
        ("go test -exec=./x ./...", "remove -exec=./x"),
    ],
)
def test_a_command_outside_the_catalog_or_without_proof_is_refused(cmd: str, said: str) -> None:
    assert said in refusal(cmd)


def test_options_after_a_double_dash_are_not_refused() -> None:
    for cmd in ("npm test -- --version", "cargo test -- --help"):
        assert parse_command(cmd).argv == tuple(cmd.split())


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_command_of_a_recipe_is_allowed(recipe: str) -> None:
    assert RECIPES[recipe]
    assert [parse_command(cmd).text for cmd in RECIPES[recipe]] == list(RECIPES[recipe])


def test_catalog_rows_of_one_program_have_different_subcommands() -> None:
    seen: set[tuple[str, str]] = set()
    for tool in TOOLS:
        for program in tool.programs:
            for subcommand in tool.subcommands or ("",):
                assert (program, subcommand) not in seen
                seen.add((program, subcommand))


WORDS = (
    "pytest python -m uv run poetry coverage npx npm test ruff check make -n -k -x -C ' \" \\ $ * [ ] "
    "--cov= a.py { } ; & | ~ # = :: - -- A=1 hatch x:pytest node --test git diff unittest tests/a.py::b[1]"
)
mixtures = st.lists(st.sampled_from(WORDS.split()), max_size=8)


@settings(max_examples=80)
@given(st.text() | mixtures.map(" ".join) | mixtures.map("".join))
@example("$")
@example("python -m coverage run")
@example("hatch run :")
@example("uv run -m")
@example("A='\\")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    refusals: list[CommandSyntaxError] = []
    try:
        assert parse_command(text).argv
    except CommandSyntaxError as error:
        refusals.append(error)
    assert all(each.problem and each.remedy and len(str(each)) < 2_000 for each in refusals)


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))))
def test_quoted_words_are_split_back_exactly(words: list[str]) -> None:
    assert split_words(shlex.join(words)) == words


@given(st.text(alphabet="ab '\"\\/.:[]-=", max_size=30))
def test_splitting_agrees_with_shlex_for_commands_without_shell_syntax(text: str) -> None:
    try:
        ours = split_words(text)
    except CommandSyntaxError as error:
        if "blank inside" not in str(error):
            with pytest.raises(ValueError, match="No"):
                shlex.split(text)
    else:
        assert ours == shlex.split(text)
