"""Rules for what a machine lacks and says in other ways than by an error number of its own."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.rules.environment import was_meant
from pytest_planverify.diagnosis.wording import place, said

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case

_NETWORK_MODULES = (
    "socket",
    "ssl",
    "http",
    "urllib",
    "smtplib",
    "ftplib",
    "imaplib",
    "poplib",
    "telnetlib",
)
_MAIL_AND_FILES = (
    "smtplib.SMTPServerDisconnected",
    "smtplib.SMTPConnectError",
    "ftplib.error_temp",
    "http.client.RemoteDisconnected",
    "http.client.BadStatusLine",
)
_FAULTY = frozenset(
    {errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOEXEC, errno.ENOSYS, errno.EOPNOTSUPP}
)
_SYSTEM_PATH = re.compile(
    r"^/(?:bin|boot|dev|etc|home|lib\w*|media|mnt|opt|proc|run|sbin|srv|sys|usr|var)/"
)
_NO_TEMPORARY = "No usable temporary directory found in"
_NO_HOME = "Could not determine home directory"
_NO_ACCOUNT = re.compile(r"^['\"]?get(?:pwuid|grgid|pwnam|grnam)\(\)")
_NOT_A_PATH = "expected str, bytes or os.PathLike object, not NoneType"
_SQLITE_BUILD = re.compile(r"^(?:no such (?:module|function|collation sequence): |not authorized$)")
_ASCII = re.compile(r"^'(?:ascii|latin-1|charmap|cp125\d)' codec can't (?:en|de)code ")
_NAMES_CODEC = re.compile(r"\b(?:ascii|latin|encoding=|encode\(|decode\()", re.IGNORECASE)
_VERSIONS = ("pkg_resources.VersionConflict", "pkg_resources.ContextualVersionConflict")


def _at(case: Case) -> str:
    return f" in {place(case.raised_at)}" if case.raised_at else ""


def _from_network(case: Case) -> bool:
    last = case.innermost
    if last is None or last.side is not Side.STDLIB:
        return False
    module = last.module or last.path.rpartition("/")[2].removesuffix(".py")
    return module.partition(".")[0] in _NETWORK_MODULES


def _peer(case: Case) -> Hit | None:
    """A peer that answers too late, hangs up or talks nonsense, seen by the library that talks to it."""
    error = case.error
    if error is None or was_meant(case):
        return None
    slow = case.is_error("builtins.TimeoutError") and _from_network(case)
    gone = case.is_error("builtins.ConnectionError") and not _is_pipe(case)
    if not (slow or gone or case.is_error(*_MAIL_AND_FILES)):
        return None
    return Hit(suggestion=f"What the code talks to did not answer as it should{_at(case)}: {said(error)}.")


def _is_pipe(case: Case) -> bool:
    """A pipe or a loop within the project broke, and no service."""
    return case.is_error("builtins.BrokenPipeError")


def _message(start: str) -> Reader:
    def read(case: Case) -> Hit | None:
        if case.error is None or not case.error.message.startswith(start) or was_meant(case):
            return None
        return Hit(suggestion=f"The machine lacks something{_at(case)}: {said(case.error)}.")

    return read


def _account(case: Case) -> Hit | None:
    if case.error is None or not case.is_error("builtins.KeyError"):
        return None
    if not _NO_ACCOUNT.match(case.error.message):
        return None
    return Hit(suggestion=f"The run is made by an account that the machine does not know{_at(case)}.")


def _faulty(case: Case) -> Hit | None:
    error = case.error
    if error is None or error.errno not in _FAULTY or not case.is_error("builtins.OSError"):
        return None
    if was_meant(case):
        return None
    return Hit(suggestion=f"The system cannot do what is asked of it{_at(case)}: {said(error)}.")


def _system_file(case: Case) -> Hit | None:
    """A file of the machine that unchanged code counts on."""
    error = case.error
    if error is None or not case.is_error("builtins.FileNotFoundError") or case.raised_in_changed:
        return None
    if error.path is None or not _SYSTEM_PATH.match(error.path) or was_meant(case):
        return None
    return Hit(suggestion=f"{error.path}, which is read{_at(case)}, is not on this machine.")


def _program_not_found(case: Case) -> Hit | None:
    """What ``shutil.which`` gave for a program that is not there was started all the same."""
    error, last = case.error, case.innermost
    if error is None or last is None or not error.message.startswith(_NOT_A_PATH) or case.raised_in_changed:
        return None
    module = last.module or last.path.rpartition("/")[2].removesuffix(".py")
    if module not in ("subprocess", "posixpath", "ntpath"):
        return None
    if not any(
        (frame.module or frame.path).rpartition("/")[2].startswith("subprocess") for frame in case.frames
    ):
        return None
    return Hit(suggestion=f"A program that is started{_at(case)} was not found on this machine.")


def _sqlite_build(case: Case) -> Hit | None:
    error = case.error
    if error is None or error.qualified != "sqlite3.OperationalError" or case.raised_in_changed:
        return None
    if not _SQLITE_BUILD.match(error.message):
        return None
    return Hit(suggestion=f"The SQLite of this Python lacks something{_at(case)}: {said(error)}.")


def _encoding(case: Case) -> Hit | None:
    """Text that the machine's own encoding does not hold, written or read by unchanged code."""
    error = case.error
    if error is None or not case.is_error("builtins.UnicodeError") or not case.way_unchanged:
        return None
    frame = case.raised_at
    if (
        not _ASCII.match(error.message)
        or was_meant(case)
        or (frame and _NAMES_CODEC.search(frame.source or ""))
    ):
        return None
    return Hit(suggestion=f"The encoding of this machine does not hold the text{_at(case)}: {said(error)}.")


def _versions(case: Case) -> Hit | None:
    if case.error is None or not case.is_error(*_VERSIONS):
        return None
    return Hit(
        suggestion=f"An installed package has another version than is asked for: {said(case.error)}."
    )


MACHINE_RULES: tuple[Rule, ...] = (
    Rule(
        id="peer-fails",
        about=frozenset({"builtins.TimeoutError", "builtins.ConnectionError", *_MAIL_AND_FILES}),
        because="A peer on the network did not answer, hung up, or answered nonsense.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.8,
        runner_up=(Category.TEST_REGRESSION, 0.2),
        read=_peer,
    ),
    Rule(
        id="no-temporary-folder",
        about=frozenset({"builtins.FileNotFoundError"}),
        because="There is no folder for temporary files that can be written to.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.95,
        read=_message(_NO_TEMPORARY),
    ),
    Rule(
        id="no-home",
        about=frozenset({"builtins.RuntimeError"}),
        because="The account of the run has no home folder.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_message(_NO_HOME),
    ),
    Rule(
        id="account-unknown",
        about=frozenset({"builtins.KeyError"}),
        because="The system does not know the account of the run.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_account,
    ),
    Rule(
        id="system-cannot",
        about=frozenset({"builtins.OSError"}),
        because="A device or a function of the system is not there, or fails.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.82,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=_faulty,
    ),
    Rule(
        id="file-of-machine-missing",
        about=frozenset({"builtins.FileNotFoundError"}),
        because="A file of the machine that unchanged code counts on does not exist.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.25),
        read=_system_file,
    ),
    Rule(
        id="program-was-none",
        about=frozenset({"builtins.TypeError"}),
        because="Unchanged code starts a program that a search on PATH did not find.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.TYPE_ERROR, 0.3),
        read=_program_not_found,
    ),
    Rule(
        id="sqlite-built-without",
        about=frozenset({"sqlite3.OperationalError"}),
        because="The SQLite library was built without what unchanged code uses.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_sqlite_build,
    ),
    Rule(
        id="encoding-of-machine",
        about=frozenset({"builtins.UnicodeError"}),
        because="Unchanged code meets an encoding of the machine that does not hold its text.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.65,
        runner_up=(Category.TEST_REGRESSION, 0.35),
        read=_encoding,
    ),
    Rule(
        id="versions-conflict",
        about=frozenset(_VERSIONS),
        because="Installed packages do not fit what is asked for.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_versions,
    ),
)
