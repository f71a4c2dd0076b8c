"""Does once, in the process that forks sessions, what each of them would have to do again by itself."""

from __future__ import annotations

import contextlib
import importlib
import platform
import sys
from typing import Any

PRELOAD = (
    "pytest_planverify.observing.session",
    "pytest_planverify.observing.evidence",
    "email.feedparser",
    "email.parser",
    "pdb",
    "tomllib",
)
"""What every session imports anyhow."""

PRELOAD_FOR_PLUGINS = {"_hypothesis_pytestplugin": "hypothesis.internal.observability"}
"""Plugins that import the bulk of their library at the end of every session, and what they import."""

_ASKS_FOR_THE_PLATFORM = "pytest_metadata.plugin"
"""A plugin that asks for it at the start of every session, for which another program has to be run."""


def warm_up(rewriting: Any) -> None:
    """Import what sessions import, and find out what they ask for; nothing of a project is loaded here.

    ``rewriting`` is pytest's import hook, through which a session would import its plugins.
    """
    for name in PRELOAD:
        importlib.import_module(name)
    _preload_for_plugins(rewriting)
    if _ASKS_FOR_THE_PLATFORM in sys.modules:
        platform.platform()
    from pytest_planverify.observing.agreeing import know_classes
    from pytest_planverify.observing.inventory import environment_files
    from pytest_planverify.observing.witnessing import begin

    begin().look("session")
    know_classes(environment_files())


def make_own() -> None:
    """Touch, in a process that waits for its session, what the session will look at.

    A page that is shared with the process it was forked from is copied when it is first touched.
    """
    from pytest_planverify.observing.agreeing import agreeing_classes
    from pytest_planverify.observing.inventory import environment_files
    from pytest_planverify.observing.witnessing import begin

    begin().look("session")
    agreeing_classes(environment_files())


def _preload_for_plugins(rewriting: Any) -> None:
    if rewriting is None:
        return
    # A session warns of a plugin's module that was imported by any other loader than pytest's own.
    sys.meta_path.insert(0, rewriting)
    for plugin, name in PRELOAD_FOR_PLUGINS.items():
        if plugin in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    sys.meta_path.remove(rewriting)
