"""Artifact criteria: existence, size, digest and, for JSON, schema of files.

Artifacts and schemas are written by the work under verification. So none is read outside of the plan's
root, from a pipe or device, or, as JSON, beyond a limit of size, and other schemas are never fetched. Each
file is reported with its first fault only.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from planner.model.evidence import ArtifactFact, Evidence
from planner.model.outcome import FixtureUse
from planner.model.plan import ArtifactSpec
from planner.model.verdicts import EvidenceKind, Verdict
from planner.planfile.project_files import RootedFiles
from planner.text.display import counted
from planner.text.sanitizing import clean
from pytest_planverify.checks.result import Judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    _Validate = Callable[[str, Any], None]

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Size of a JSON file above which it is refused unread."""
MAX_SCHEMA_ERRORS = 100
"""Number of schema errors among which the one nearest to the top is reported."""
MAX_SCHEMA_SECONDS = 10
"""Time for the comparison of a document with its schema, whose patterns may backtrack without end."""
MAX_FAULTS = 20
"""Number of faulty matches that are reported."""

_SHALLOW = 20
"""Depth up to which a document cannot be what makes its validation endless."""
_DEFAULT_MIN_BYTES = ArtifactSpec.model_fields["min_bytes"].default
"""Minimum size that holds without any in the plan; for a folder it demands at least one such file in it."""


def check_artifact(spec: ArtifactSpec, root: Path, *, check_id: str = "") -> Judgement:
    """Return the judgement of an artifact, or of all matches of its glob. Never raises.

    One faulty match is enough for ``failed``. Faults that only consist in unreadable files are
    ``inconclusive``.
    """
    faults = _faults(spec, root)
    evidence = tuple(fault.evidence(check_id) for fault in faults[:MAX_FAULTS])
    if not faults:
        return Judgement(verdict=Verdict.PASSED)
    only_unreadable = all(fault.problem == "unreadable" for fault in faults)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return Judgement(
        verdict=Verdict.INCONCLUSIVE if only_unreadable else Verdict.FAILED,
        reason=f"{evidence[0].headline}{more}",
        evidence=evidence,
    )


def read_fixture(path: str, root: Path, *, check_id: str = "") -> tuple[FixtureUse, Evidence | None]:
    """Return the digest of a criterion's data file for the outcome, and evidence if it is unusable.

    With evidence the criterion has failed. Never raises.
    """
    try:
        with _reading(path):
            return FixtureUse(path=path, sha256=file_sha256(_existing(root, path))), None
    except _Fault as fault:
        return FixtureUse(path=path, sha256=None), fault.evidence(check_id, EvidenceKind.FIXTURE)


_MESSAGES = {
    "missing": "{path} does not exist",
    "empty": "{path} is empty",
    "too_small": "{path} has {actual}, less than {expected}",
    "too_large": "{path} has {actual}, more than {expected}",
    "not_a_file": "{path} is {actual}, not {expected}",
    "outside_root": "{path} is outside of the plan's root",
    "not_json": "{path} is not JSON: {actual}",
    "schema": "{path} does not satisfy {expected}: {actual}",
    "bad_schema": "the schema {expected} cannot be used: {actual}",
    "sha256": "{path} has the sha256 {actual}, not {expected}",
    "unreadable": "{path} cannot be read: {actual}",
    "no_match": "nothing matches {path}",
}
"""Messages by problem, which is also the ``problem`` of the evidence."""


@dataclass(eq=False)
class _Fault(Exception):
    """A fault of one file, raised or collected."""

    problem: str
    """Key of :data:`_MESSAGES`."""
    path: str
    expected: str | None = None
    actual: str | None = None
    nearest: str | None = None
    """An existing path with a similar name, for a missing file."""

    def __str__(self) -> str:
        text = _MESSAGES[self.problem].format(path=self.path, expected=self.expected, actual=self.actual)
        return f"{text}; did you mean {self.nearest}?" if self.nearest else text

    def evidence(self, check_id: str, kind: EvidenceKind = EvidenceKind.ARTIFACT) -> Evidence:
        prefix = "the fixture " if kind is EvidenceKind.FIXTURE else ""
        return Evidence(
            kind=kind,
            check_id=check_id,
            headline=clean(f"{prefix}{self}", limit=1_000),
            artifact=ArtifactFact(
                path=self.path,
                problem=self.problem,
                expected=self.expected,
                actual=clean(self.actual, limit=500) if self.actual else None,
                nearest=(self.nearest,) if self.nearest else (),
            ),
        )


@contextmanager
def _reading(path: str) -> Generator[None]:
    """Turn errors of the operating system into a :class:`_Fault` of the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise _Fault("unreadable", path, actual=reason) from error


def _faults(spec: ArtifactSpec, root: Path) -> list[_Fault]:
    """Return the faults of all files; a fault of the schema or the glob is the only one."""
    named = spec.json_schema
    try:
        with _reading(spec.path):
            validate = _validator(spec, root)
            paths = _paths(spec.path, root)
    except _Fault as fault:
        return [fault]
    except RecursionError:
        return [_Fault("bad_schema", str(named), expected=named, actual="it is nested too deeply")]
    faults: list[_Fault] = []
    for path in paths:
        try:
            with _reading(path):
                _check_one(path, spec, root, validate)
        except _Fault as fault:
            faults.append(fault)
        except RecursionError:  # the validator descends into the document
            faults.append(_Fault("schema", path, expected=named, actual="nested too deeply to be checked"))
    return faults


def _paths(pattern: str, root: Path) -> list[str]:
    """Return the path itself, or the matches of its glob, relative to the root."""
    # A name may contain the characters of a glob: an existing file is meant literally.
    if not glob.has_magic(pattern) or os.path.lexists(root / pattern):
        return [pattern]
    # Each match is resolved again, but the search must not read folders outside of the root either.
    parts = Path(pattern).parts
    if Path(pattern).is_absolute() or ".." in parts:
        raise _Fault("outside_root", pattern)
    try:
        found = sorted(path.relative_to(root).as_posix() for path in root.glob(pattern))
    except (ValueError, NotImplementedError, IndexError) as error:  # of pathlib, for an invalid pattern
        raise _Fault("no_match", pattern, actual=str(error)) from error
    if not found:
        raise _Fault("no_match", pattern)
    return found


def _check_one(path: str, spec: ArtifactSpec, root: Path, validate: _Validate | None) -> None:
    """Raise :class:`_Fault` for the first fault of a file or folder."""
    # ``min_bytes`` has a default, so only a larger one was written for a file.
    has_size = spec.max_bytes is not None or spec.min_bytes > _DEFAULT_MIN_BYTES
    is_of_file = has_size or spec.sha256 is not None or spec.json_schema is not None
    file = _existing(root, path, may_be_folder=not is_of_file)
    if file.is_dir():
        files = (os.path.join(folder, name) for folder, _, names in os.walk(file) for name in names)
        if spec.min_bytes and not any(os.path.isfile(each) and os.path.getsize(each) for each in files):
            raise _Fault("empty", path)
        return
    # The cheapest conditions come first: a file of the wrong size need not be read.
    size = file.stat().st_size
    if size < spec.min_bytes:
        problem = "too_small" if size else "empty"
        raise _Fault(problem, path, **_sizes(spec.min_bytes, size))
    if spec.max_bytes is not None and size > spec.max_bytes:
        raise _Fault("too_large", path, **_sizes(spec.max_bytes, size))
    if spec.sha256 is not None and (digest := file_sha256(file)) != spec.sha256:
        raise _Fault("sha256", path, expected=spec.sha256, actual=digest)
    if validate is not None:
        validate(path, _read_json(path, file))


def _sizes(limit: int, size: int) -> dict[str, str]:
    return {"expected": counted(limit, "byte"), "actual": counted(size, "byte")}


def _existing(root: Path, path: str, *, may_be_folder: bool = False) -> Path:
    """Return the path of an existing file, without links. Raises :class:`_Fault` for others."""
    try:
        base = root.resolve()
        file = (base / path).resolve()
    except (ValueError, RuntimeError) as error:  # null byte, or cyclic symbolic links
        raise OSError(str(error)) from error
    if not file.is_relative_to(base):
        raise _Fault("outside_root", path)
    if not file.exists():
        raise _Fault("missing", path, nearest=RootedFiles(root).near(path))
    if path.endswith("/") and not file.is_dir():
        raise _Fault("not_a_file", path, expected="a folder", actual="a file")
    # Reading a pipe would wait for ever, and a device may have no end.
    if not file.is_file() and not (may_be_folder and file.is_dir()):
        kind = "a folder" if file.is_dir() else "a device, socket or pipe"
        raise _Fault("not_a_file", path, expected="a file", actual=kind)
    return file


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Raises ``OSError``."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_constant(name: str) -> NoReturn:
    """Reject ``NaN`` and ``Infinity``, which Python's parser accepts though they are no JSON."""
    raise ValueError(f"{name} is not a JSON value")


def _read_json(path: str, file: Path) -> Any:
    """Return the parsed file, with or without a byte order mark. Raises :class:`_Fault` or ``OSError``."""
    if (size := file.stat().st_size) > MAX_JSON_BYTES:
        raise _Fault("too_large", path, **_sizes(MAX_JSON_BYTES, size))
    try:
        # "-sig" accepts a byte order mark, which programs on Windows write.
        return json.loads(file.read_text("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise _Fault("not_json", path, actual="it is nested too deeply") from error
    except ValueError as error:
        raise _Fault("not_json", path, actual=str(error)) from error


@contextmanager
def _time_limit(seconds: float) -> Generator[None]:
    """Raise :class:`TimeoutError` in the body after a time, where the system can interrupt a match."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> NoReturn:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)


def _depth(value: Any) -> int:
    """Return how deeply lists and objects are nested in a JSON document."""
    if not isinstance(value, dict | list):
        return 0
    parts = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
    return 1 + max(map(_depth, parts), default=0)


def _validator(spec: ArtifactSpec, root: Path) -> _Validate | None:
    """Return a function that raises :class:`_Fault` for documents that violate the schema.

    Returns ``None`` without a schema. Raises :class:`_Fault` for an unusable schema.
    """
    if spec.json_schema is None:
        return None
    # Imported late: only plans with a schema need these packages.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import EMPTY_REGISTRY

    named = spec.json_schema

    def bad(actual: str) -> _Fault:
        return _Fault("bad_schema", named, expected=named, actual=clean(actual, limit=300))

    try:
        with _reading(named):
            schema = _read_json(named, _existing(root, named))
    except _Fault as fault:
        raise bad(str(fault)) from fault
    # true and false are schemas, too: they accept everything or nothing.
    if type(schema) not in (dict, bool):
        raise bad("it is not an object")

    @contextmanager
    def using() -> Generator[None]:
        try:
            with _time_limit(MAX_SCHEMA_SECONDS):
                yield
        except TimeoutError as error:
            raise bad(f"it takes more than {MAX_SCHEMA_SECONDS} s; simplify its patterns") from error
        except SchemaError as error:
            raise bad(f"{error.json_path}: {error.message}") from error
        except Unresolvable as unresolvable:
            problem = f"it refers to {unresolvable.ref}, which is not in it, and not fetched"
            raise bad(f"{problem}; copy that below its $defs") from unresolvable
        except re.error as error:
            raise bad(f"it has a pattern that is not a regular expression: {error}") from error
        except (RecursionError, ArithmeticError):
            raise
        except Exception as error:  # what jsonschema does not foresee, such as a reference that is no text
            raise bad(f"{type(error).__name__}: {error}") from error

    try:
        with using():
            chosen: Any = validator_for(schema, default=Draft202012Validator)
            chosen.check_schema(schema)
            # With its default registry, jsonschema would fetch the schemas that this one refers to.
            validator: Any = chosen(schema, registry=EMPTY_REGISTRY)
    except ArithmeticError as error:  # a pattern that repeats more often than re can count
        raise bad(str(error)) from error

    def validate(path: str, document: Any) -> None:
        try:
            with using():  # references and patterns are only resolved while a document is validated
                errors: list[Any] = list(islice(validator.iter_errors(document), MAX_SCHEMA_ERRORS))
        except RecursionError as error:
            if _depth(document) > _SHALLOW:
                raise
            raise bad("it refers to itself without end") from error
        except ArithmeticError as error:  # a number beyond those of floats
            raise _Fault("schema", path, expected=named, actual=f"it cannot be checked: {error}") from error
        if errors:
            nearest = min(errors, key=lambda each: len(each.absolute_path))
            actual = f"{nearest.json_path}: {clean(nearest.message, limit=300)}"
            raise _Fault("schema", path, expected=named, actual=actual)

    return validate
