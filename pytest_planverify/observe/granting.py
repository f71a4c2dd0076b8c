"""What the plans of a session let its tests reach for: hosts, programs, folders, or everything."""

from __future__ import annotations

import os
import shutil
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from pytest_planverify.observe.reaching import CONNECT, PROCESS, WRITE, path_resolver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_planverify.observe.reaching import Reached
    from pytest_planverify.observe.spec import Sandbox

RECORD, DENY = "record", "deny"


def judge_of(sandboxes: Sequence[Sandbox]) -> Callable[[Reached], bool]:
    """Says whether something may be reached for: every one of the policies must grant it."""
    grants: dict[str, tuple[Callable[[Reached], bool], ...]] = {}
    for kind, make in ((CONNECT, _network), (PROCESS, _programs), (WRITE, _folders)):
        policies = dict.fromkeys((_policy(each, kind), each.root) for each in sandboxes)
        grants[kind] = tuple(
            make(() if policy == DENY else policy, root)  # type: ignore[arg-type]
            for policy, root in policies
            if policy != RECORD
        )

    def is_granted(reached: Reached) -> bool:
        return all(grant(reached) for grant in grants[reached.kind])

    return is_granted


def denies_anything(sandboxes: Sequence[Sandbox]) -> bool:
    """Whether any policy is more than that things are recorded."""
    return any(_policy(each, kind) != RECORD for each in sandboxes for kind in (CONNECT, PROCESS, WRITE))


def _policy(sandbox: Sandbox, kind: str) -> str | tuple[str, ...]:
    return {CONNECT: sandbox.network, PROCESS: sandbox.processes, WRITE: sandbox.writes}[kind]


# -- hosts -----------------------------------------------------------------------------------------


class _Host(NamedTuple):
    pattern: str
    port: int | None


def _network(named: Sequence[str], root: str) -> Callable[[Reached], bool]:
    import _socket

    hosts = tuple(_host(text) for text in named)
    look_up = _socket.getaddrinfo
    asked: dict[str, int | None] = {
        each.pattern: each.port for each in hosts if not _is_pattern(each.pattern)
    }
    addresses: dict[str, set[int | None]] = {}

    def learn() -> None:
        """The numbers of the hosts that are granted by name, as they are now."""
        for name, port in tuple(asked.items()):
            try:
                found = look_up(name, None)
            except OSError:
                continue
            for entry in found:
                addresses.setdefault(str(entry[4][0]), set()).add(port)

    def is_granted(reached: Reached) -> bool:
        for host in hosts:
            if fnmatchcase(reached.name, host.pattern) and (
                reached.port is None or host.port in (None, reached.port)
            ):
                if reached.is_lookup:
                    asked.setdefault(reached.name, host.port)
                return True
        if reached.is_lookup or not hosts:
            return False
        if reached.name not in addresses:
            learn()
        return bool(addresses.get(reached.name, set()) & {None, reached.port})

    return is_granted


def _host(text: str) -> _Host:
    name, separator, port = text.strip().lower().rpartition(":")
    if not separator or not port.isdigit() or (":" in name and not name.endswith("]")):
        return _Host(text.strip().lower().strip("[]").rstrip("."), None)
    return _Host(name.strip("[]").rstrip("."), int(port))


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


# -- programs --------------------------------------------------------------------------------------


def _programs(named: Sequence[str], root: str) -> Callable[[Reached], bool]:
    names = frozenset(name for name in named if "/" not in name)
    resolve, which, interpreter = path_resolver(), shutil.which, sys.executable
    paths = tuple(_absolute(name, root) for name in named if "/" in name)
    pythons = names & {"python", "python3"}

    def is_granted(reached: Reached) -> bool:
        name = reached.name
        if "/" not in name:
            return name in names
        if name == interpreter and pythons:
            return True
        given = name if name.startswith("/") else f"{root}/{name}"
        if any(given == path or fnmatchcase(given, path) or given.startswith(path + "/") for path in paths):
            return True
        base = name.rpartition("/")[2]
        if base not in names:
            return False
        # A program of that name which the project brought along is another one than was meant.
        meant = which(base)
        return meant is not None and resolve(meant, -1, True) == resolve(given, -1, True)

    return is_granted


def _absolute(text: str, root: str) -> str:
    path = os.path.expanduser(text)
    return os.path.normpath(path if path.startswith("/") else f"{root}/{path}")


# -- folders ---------------------------------------------------------------------------------------


def _folders(named: Sequence[str], root: str) -> Callable[[Reached], bool]:
    resolve = path_resolver()
    paths = tuple(_absolute(text, root) for text in named)
    real = tuple(path if _is_pattern(path) else resolve(path, -1, True) or path for path in paths)

    def is_granted(reached: Reached) -> bool:
        name = reached.name
        return any(
            name == path or name.startswith(path.rstrip("/") + "/") or fnmatchcase(name, path)
            for path in real
        )

    return is_granted
