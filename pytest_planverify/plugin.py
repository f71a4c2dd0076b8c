"""Entry point of the pytest plugin: hook implementations that only delegate.

Without ``--planverify`` nothing here does any work after ``pytest_configure``, and nothing of
:mod:`planner` is imported: the plugin is loaded in every session of an installation, and its imports would
make all of them slower. With it, no session runs in this process: :func:`pytest_cmdline_main` hands over to
:mod:`pytest_planverify.session.parent`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_planverify import hookspecs
from pytest_planverify.observe import in_worker
from pytest_planverify.observe.fixtures import planverify

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["planverify"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the command line and ini options."""
    from pytest_planverify.options import add_options, spare_required_plugins

    add_options(parser)
    if not in_worker():
        # This hook is not given the config, which pytest has registered as a plugin by now.
        spare_required_plugins(pluginmanager.get_plugin("pytestconfig"))


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, args: list[str]
) -> Generator[None, object, object]:
    """Keep the parent from loading anything of the repository; start auditing in xdist workers.

    This hook is the last moment for both: the first conftests are loaded inside of it.
    """
    if "PLANVERIFY_SESSION" in os.environ:
        from pytest_planverify.observe import set_planner_apart
        from pytest_planverify.observe.audit import watch_worker

        set_planner_apart()
        watch_worker()
    if early_config.known_args_namespace.planverify:
        from pytest_planverify.options import take_over

        take_over(early_config, args)
    return (yield)


# First, as the first result counts: pytest's own implementation runs a session here.
@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Verify the plans instead of running a session in this process."""
    if not config.option.planverify:
        return None
    from pytest_planverify.options import GIVEN

    if GIVEN not in config.stash:  # as in a worker, whose session take_over() leaves alone
        return None
    from pytest_planverify.session.parent import supervise

    return supervise(config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder in xdist workers; workers of a plan have it from the beginning."""
    if "planverify" in getattr(config, "workerinput", ()):
        from pytest_planverify.observe.worker import register_in_xdist_worker

        register_in_xdist_worker(config)
