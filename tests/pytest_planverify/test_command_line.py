"""Command-line parsing, and the settings that result from options and ini files."""

from __future__ import annotations

import re
import shlex
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cli import exits
from planner.cli.app import COMMANDS as PLANNER_COMMANDS
from pytest_planverify import cli
from pytest_planverify.cli import app
from pytest_planverify.options import (
    GIVEN,
    CommandLine,
    Settings,
    read_settings,
    require_known_options,
    sort_words,
)

HERE = Path("/here")


def sort(line: str, *positional: str, folder: Path = HERE) -> CommandLine:
    return sort_words(shlex.split(line), folder, positional or ("plan.yaml",))


def changed_fields(line: CommandLine) -> dict[str, Any]:
    """Return the fields that differ from an empty command line."""
    usual, found = asdict(sort("")), asdict(line)
    found |= found.pop("narrowing")
    usual |= usual.pop("narrowing")
    found = {name: value for name, value in found.items() if value != usual[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {}),
        ("plan.yaml b.json::todo c.yml", {"plan_words": ["plan.yaml", "b.json::todo", "c.yml"]}),
        ("-- plan.yaml", {"plan_words": ["plan.yaml"]}),
        ("--planverify-scope claimed --planverify-outcomes=o.json --planverify-confirm 3", {}),
        ("-k 'a or b'", {"keyword": "a or b"}),
        ("-m 'not slow'", {"markexpr": "not slow"}),
        ("--deselect a --deselect=b", {"deselect": ["a", "b"]}),
        ("--maxfail=3", {"maxfail": 3}),
        ("--maxfail 3 -x", {"maxfail": 1}),
        ("--lf", {"last_failed": True}),
        ("--co", {"collect_only": True}),
        ("--ff --nf --sw --stepwise-skip --sw-reset --cache-clear --continue-on-collection-errors", {}),
        ("-vxk a", {"worker_args": ["-v"], "maxfail": 1, "keyword": "a"}),
        ("-s", {"worker_args": ["-s"], "interactive": True}),
        ("--capture=no", {"worker_args": ["--capture=no"], "interactive": True}),
        ("--pdb", {"worker_args": ["--pdb"], "interactive": True, "debugger": True}),
        ("-p no:x -pfoo", {"worker_args": ["-p", "no:x", "-p", "foo"]}),
        ("-o a=b -W error -rA", {"worker_args": ["-o", "a=b", "-W", "error", "-r", "A"]}),
        ("-c conf.ini", {"worker_args": ["-c", "/here/conf.ini"]}),
        ("--rootdir sub", {"worker_args": ["--rootdir=/here/sub"]}),
        ("--ignore old --ignore-glob=o*", {"ignore": ["/here/old"], "ignore_glob": ["/here/o*"]}),
        ("-n 2", {"workers": 2}),
        ("-n0", {}),
        ("--numprocesses=2", {"workers": 2}),
        ("--dist loadscope --maxprocesses=4 --max-worker-restart=1", {}),
        ("--cov=pkg --cov-report term", {"worker_args": ["--cov=pkg", "--cov-report", "term"]}),
        ("--foo plan.yaml", {"worker_args": ["--foo"], "plan_words": ["plan.yaml"]}),
        ("--foo other.yaml", {"worker_args": ["--foo", "other.yaml"]}),
        ("--foo -v", {"worker_args": ["--foo", "-v"]}),
        ("-y", {"worker_args": ["-y"]}),
    ],
)
def test_command_line_arguments_are_sorted(line: str, found: dict[str, Any]):
    assert changed_fields(sort(line)) == found


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--maxfail=many", "--maxfail: 'many' is not a number"),
        ("tests/test_x.py", "tests/test_x.py: there is no such plan"),
        ("x" * 300, "there is no such plan"),
        ("-n many", "-n many: it is neither a number nor auto"),
        ("--tx 2*popen", "runs criteria only on this machine; set the number of workers with -n N"),
    ],
)
def test_invalid_arguments_are_refused_with_a_remedy(line: str, problem: str):
    with pytest.raises(pytest.UsageError) as refused:
        sort(line)
    assert problem in str(refused.value)


def test_existing_file_of_any_name_may_be_a_plan(tmp_path: Path):
    (tmp_path / "todo.txt").touch()
    assert sort("todo.txt::a", folder=tmp_path).plan_words == ("todo.txt::a",)


@pytest.mark.parametrize("word", ["-nauto", "-n logical", "--numprocesses auto"])
def test_auto_means_one_worker_per_usable_core(word: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert sort(word).workers == 2


def planverify(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


def test_help_names_the_exit_statuses_and_version_the_program() -> None:
    for command in ("", "baseline", "baseline record", "baseline accept", "qualify"):
        status, text = planverify(*command.split(), "--help")
        assert (status, "Exit status" in text) == (0, True), command
    status, text = planverify("--version")
    assert (status, text.partition(" ")[0]) == (0, "planverify")


def test_program_includes_the_planner_commands_under_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "_program", list(exits._program))
    exits.call_program("planverify", PLANNER_COMMANDS)
    status, text = planverify("--help")

    assert status == 0
    assert all(re.search(rf"[\n ]{name}\b", text) for name in (*cli.COMMANDS, *PLANNER_COMMANDS))
    assert "corpus" not in text
    assert len(text.splitlines()) <= 54
    status, text = planverify("next", "--help")
    assert status == 0
    assert re.match(r"Usage: \w+ next \[OPTIONS\]", text)
    assert not re.search(r"\bplanner (next|step|explain|undo)", text)


def test_unknown_word_is_refused_with_the_nearest_command() -> None:
    status, text = planverify("statis")
    assert status == 2
    assert "there is no command or plan 'statis'; did you mean 'status'?" in text
    assert planverify("baseline", "accept")[0] == 2


def test_sigterm_raises_keyboard_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    previous = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(cli, "call_program", lambda *words: None)
    monkeypatch.setattr(cli, "guarded", lambda run: signal.raise_signal(signal.SIGTERM))
    try:
        with pytest.raises(KeyboardInterrupt):
            cli.main()
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_missing_baseline_cannot_be_shown_or_accepted_and_a_new_one_names_the_claimed_todos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = "todo_list_id: p\nitems:\n- {id: add, title: Add, status: claimed, verify: pytest t.py}\n"
    (tmp_path / "plan.yaml").write_text(plan)
    for words, expected in (("show", 1), ("accept add --reason x", 4)):
        status, text = planverify("baseline", *words.split())
        assert status == expected
        assert "the plan has no baseline; record one: planverify baseline plan.yaml" in text
    status, text = planverify("baseline")
    assert (status, "now part of the baseline: add\n" in text) == (0, True), text


@pytest.fixture
def settings(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Return a function that reads the settings of a command line, in a folder with three plans."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("plan.yaml", "other.yaml", "todo.yaml"):
        (pytester.path / name).touch()

    def read(*args: str) -> Settings:
        config = pytester.parseconfig("-p", "pytest_planverify.plugin", "--planverify", *args)
        assert GIVEN in config.stash
        return read_settings(config)

    return read


def test_settings_have_defaults_and_are_stored_only_with_planverify(settings, pytester: pytest.Pytester):
    found = settings("plan.yaml")

    assert [plan.path for plan in found.plans] == [pytester.path / "plan.yaml"]
    assert (found.plans[0].shown, found.plans[0].todo_ids) == ("plan.yaml", ())
    assert (found.scope, found.confirmations, found.maxfail, found.verbosity) == ("all", 4, 0, 0)
    assert not any((found.isolate, found.keep_going, found.collect_only, found.narrows))
    assert found.workers == 1
    assert found.outcomes is None
    assert found.worker_args[:2] == ("-p", "pytest_planverify.plugin")
    without = pytester.parseconfig("-p", "pytest_planverify.plugin")
    assert (GIVEN in without.stash, without.option.planverify) == (False, False)


@pytest.mark.parametrize("words", [("--planverify-confrim", "3"), ("--planverify-confrim=3",)])
def test_misspelt_option_of_the_plugin_is_refused(
    words: tuple[str, ...], settings, pytester: pytest.Pytester
):
    found = settings("plan.yaml", *words)
    with pytest.raises(pytest.UsageError, match="did you mean '--planverify-confirm'"):
        require_known_options(pytester.parseconfig(), found, pytester.path)


def test_settings_follow_the_options(settings, pytester: pytest.Pytester):
    found = settings(
        "plan.yaml::a,phase/b", "--planverify-isolate", "--planverify-keep-going", "--verbosity=2",
        "--planverify-scope=ready", "--planverify-outcomes=out/o.json", "--planverify-confirm=9",
    )  # fmt: skip
    assert found.plans[0].todo_ids == ("a", "phase/b")
    assert (found.isolate, found.keep_going, found.scope, found.confirmations) == (True, True, "ready", 9)
    assert found.outcomes == pytester.path / "out/o.json"
    assert found.verbosity == 2


def test_only_options_that_deselect_tests_narrow_the_run(settings):
    options = ("-kx", "-k ", "-mx", "--deselect=x", "--lf")
    narrowing = [option for option in options if settings("plan.yaml", option).narrows]
    assert narrowing == ["-kx", "-mx", "--deselect=x"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("plan.yaml", "--planverify-confirm=-1"), "--planverify-confirm: -1 is negative"),
        (("plan.yaml", "-k", "(("), "-k: '((' is not an expression"),
        (("plan.yaml", "-m", "a b"), "-m: 'a b' is not an expression"),
        (("gone.txt",), "gone.txt: there is no such plan"),
    ],
)
def test_invalid_option_values_are_refused(args: tuple[str, ...], problem: str, settings):
    with pytest.raises(pytest.UsageError) as refused:
        settings(*args)
    assert problem in str(refused.value)
