"""Settings: what is read from the command line and the ini file, and which plans are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_planverify.options import GIVEN, Settings, read_settings


@pytest.fixture
def settings(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Read the settings that a command line leads to, in a folder that holds three plans."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("plan.yaml", "other.yaml", "todo.yaml"):
        (pytester.path / name).touch()

    def read(*args: str) -> Settings:
        config = pytester.parseconfig("-p", "pytest_planverify.plugin", "--planverify", *args)
        assert GIVEN in config.stash
        return read_settings(config)

    return read


def test_what_holds_when_nothing_is_said(settings, pytester: pytest.Pytester):
    found = settings("plan.yaml")

    assert [plan.path for plan in found.plans] == [pytester.path / "plan.yaml"]
    assert (found.plans[0].shown, found.plans[0].todo_ids) == ("plan.yaml", ())
    assert (found.scope, found.confirmations, found.maxfail, found.verbosity) == ("all", 4, 0, 0)
    assert not any((found.isolate, found.keep_going, found.collect_only, found.narrows))
    assert found.workers == 1
    assert found.outcomes is None
    assert found.worker_args[:2] == ("-p", "pytest_planverify.plugin")


def test_what_is_said_is_kept(settings, pytester: pytest.Pytester):
    found = settings(
        "plan.yaml::a,phase/b", "--planverify-isolate", "--planverify-keep-going",
        "--planverify-scope=ready",
        "--planverify-outcomes=out/o.json", "--planverify-confirm=9", "-vv",
    )  # fmt: skip

    assert found.plans[0].todo_ids == ("a", "phase/b")
    assert (found.isolate, found.keep_going, found.scope, found.confirmations) == (True, True, "ready", 9)
    assert found.outcomes == pytester.path / "out/o.json"
    assert found.verbosity == 2


@pytest.mark.parametrize(
    ("option", "narrows"),
    [
        ("-kx", True),
        ("-k ", False),
        ("-mx", True),
        ("--deselect=x", True),
        ("--lf", False),
        ("-x", False),
        ("-v", False),
    ],
)
def test_what_leaves_tests_out_narrows(option: str, narrows: bool, settings):
    assert settings("plan.yaml", option).narrows is narrows


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("plan.yaml", "--planverify-confirm=-1"),
            "--planverify-confirm: -1 is not a number from 0 to 1000",
        ),
        (("plan.yaml", "--planverify-confirm=1001"), "1001 is not a number from 0 to 1000"),
        (("plan.yaml", "-k", "(("), "-k: '((' is not an expression"),
        (("plan.yaml", "-m", "a b"), "-m: 'a b' is not an expression"),
        (("gone.txt",), "gone.txt: there is no such plan"),
    ],
)
def test_what_cannot_be_meant_is_refused(args: tuple[str, ...], said: str, settings):
    with pytest.raises(pytest.UsageError) as refused:
        settings(*args)

    assert said in str(refused.value)


def test_without_an_argument_the_ini_file_names_the_plan(settings, pytester: pytest.Pytester):
    pytester.makeini("[pytest]\nplanverify_plan = todo.yaml::x\n")

    assert [(plan.shown, plan.todo_ids) for plan in settings().plans] == [("todo.yaml", ("x",))]


def test_a_plans_root_may_not_leave_the_widest_folder_around_it(settings, pytester: pytest.Pytester):
    (pytester.path / "sub").mkdir()
    (pytester.path / "sub/plan.yaml").touch()
    outside = pytester.path.parent / "outside.yaml"
    outside.touch()
    pytester.makeini("[pytest]\n")

    assert settings("sub/plan.yaml").plans[0].boundary == pytester.path
    assert settings(str(outside)).plans[0].boundary == outside.parent
    assert settings(str(outside)).plans[0].shown == str(Path("..") / "outside.yaml")
    outside.unlink()


def test_without_the_option_nothing_is_put_aside(pytester: pytest.Pytester):
    config = pytester.parseconfig()

    assert GIVEN not in config.stash
    assert not config.option.planverify
