"""Build the group ``environment``: faults of the machine, and similar faults of the project itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from scenes import env_files, env_network, env_packages, env_programs
from scenes.building import build_scenes, kinds_of
from scenes.scene import Scene

from tools.corpus.case import Case, Group

SCENES: tuple[Scene, ...] = (
    *env_packages.plugin_scenes(),
    *env_packages.dependency_scenes(),
    *env_packages.installation_scenes(),
    *env_programs.program_scenes(),
    *env_files.disk_scenes(),
    *env_files.rights_scenes(),
    *env_network.limit_scenes(),
    *env_network.network_scenes(),
    *env_network.connection_scenes(),
    *env_programs.setting_scenes(),
    *env_files.account_scenes(),
)
"""Scenes in the order in which their cases are built."""

KINDS: dict[str, str] = kinds_of(SCENES)
"""Every kind of fault, with one sentence about it."""


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterable[Case]:
    """Build every case, or those of some kinds or projects. Reports dropped cases on standard error."""
    return build_scenes(SCENES, Group.ENVIRONMENT, work, seed, only)
