"""All scenes of the group environment, in one order."""

from __future__ import annotations

from scenes import (
    env_accounts,
    env_connections,
    env_dependencies,
    env_disk,
    env_installation,
    env_limits,
    env_network,
    env_plugins,
    env_programs,
    env_rights,
    env_settings,
)

SCENES = tuple(
    scene
    for table in (
        env_plugins,
        env_dependencies,
        env_installation,
        env_programs,
        env_disk,
        env_rights,
        env_limits,
        env_network,
        env_connections,
        env_settings,
        env_accounts,
    )
    for scene in table.scenes()
)
