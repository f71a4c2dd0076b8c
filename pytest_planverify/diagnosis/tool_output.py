"""Parser of printed output: Python tracebacks, reports of pytest, faulthandler's stacks, JavaScript errors
and crashes.

For commands and for sessions that died, the output is the only source of an exception. The sides of frames
are judged by path alone.
"""

from __future__ import annotations

import builtins
import re
from functools import lru_cache
from itertools import chain, takewhile
from pathlib import PurePosixPath

from planner.catalog.test_paths import is_test_module, is_test_path
from planner.model.evidence import ExceptionFact, Frame
from planner.model.verdicts import Side

_TRACEBACK = "Traceback (most recent call last):"
_FILE_MARK = ' File "'
_REPORT_MARK = "\nE  "
MARKS_OF_ERRORS = (_FILE_MARK, _REPORT_MARK, "Error", "No module named")
"""Texts of which an output contains one if an exception can be read from it."""
_FILE = re.compile(r'^ +File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9})(?:,? in (?P<function>.+))?$')
_LAST = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_THREAD = re.compile(r"^(?=(?:Current thread|Thread) 0x[0-9a-f]+.*:$)", re.MULTILINE)
"""The beginning of a thread in a dump of faulthandler."""
_CALL = re.compile(
    r'^ +File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9}),? in (?P<function>.+)$', re.MULTILINE
)
INTERNAL_ERROR = "INTERNALERROR> "
"""Prefix of the lines with which pytest reports an exception of its own or of a hook."""
_SESSION_START = re.compile(
    r"pytest_planverify[\/\\](?:observing[\/\\]session|observe[\/\\]worker|session[\/\\]fork_server)\.py$"
)
"""Files of the verifier that call pytest or a test."""
_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})

_REPORT_HEADER = re.compile(r"^_{3,} (?P<name>\S.*?) _{3,}$")
_REPORT_ERROR = re.compile(
    r"^E +(?:(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?|(?P<asserted>assert .+))$"
)
_REPORT_PLACE = re.compile(
    r"^(?P<path>[^\s:][^:]*):(?P<line>\d{1,9}): (?:in (?P<function>\S+)|(?P<type>\w*))$"
)
"""The end of an entry in pytest's traceback: ``path:line: in function`` or ``path:line: ErrorType``."""
_REPORT_SYNTAX = re.compile(r'^E +File "(?P<path>[^"]+)", line (?P<line>\d{1,9})$')
_REPORT_DEFINES = re.compile(r"^ {4}(?:async )?def (?P<name>\w+)\(")
_REPORT_SOURCE = re.compile(r"^> +(?P<source>\S.*)$")

_NOT_STARTED = re.compile(
    r"^(?:/.*/)?python[\d.]*: No module named '?(?P<name>[\w.]+)'?(?:;.*)?$", re.MULTILINE
)
"""What an interpreter says, without a traceback, of a module that ``python -m`` does not find."""
_MISSING_MODULE = re.compile(r"^No module named '(?P<name>[^']+)'")
CANNOT_IMPORT = re.compile(
    r"^cannot import name '(?P<what>[^']+)' from (?P<partial>partially initialized module )?"
    r"'(?P<name>[^']+)'"
)
"""The message of an import of a name that a module lacks."""
_ERRNO = re.compile(r"^\[Errno (?P<errno>\d{1,9})\] [^:]*(?:: '(?P<path>[^']*)')?")
_NO_ATTRIBUTE = re.compile(
    r"^(?:module '(?P<module>[\w.]+)'|'(?P<kind>[\w.]+)' object) has no attribute '(?P<name>\w+)'"
)
_LIBRARY = re.compile(r"(?:/(?:site|dist)-packages|^/.*/bin)/(?P<package>[^/.]+)")
"""A file of a library, or the script in the folder of programs that calls it."""
_STDLIB = re.compile(r"/lib(?:64)?/python\d\.\d+t?/|\\Lib\\|^<frozen ")
_FRAMEWORK = frozenset({"pytest", "_pytest", "pluggy", "xdist", "execnet"})


def read_traceback(text: str, first_party: frozenset[str] = frozenset()) -> ExceptionFact | None:
    """Return the exception that a text prints, or ``None``.

    The last complete traceback, else an internal error of pytest whose traceback has no header, else the
    last syntax error of the compiler, else the first failure in pytest's report, else a module that
    ``python -m`` does not find. ``first_party`` holds the project's top-level names, which count as product
    also below ``site-packages``.
    """
    if _FILE_MARK in text:  # fast path: most output has no traceback
        raw = text.splitlines()
        lines = [line.removeprefix(INTERNAL_ERROR).rstrip() for line in raw]
        starts = [at + 1 for at, line in enumerate(lines) if line.strip() == _TRACEBACK]
        files = [(at, found) for at, line in enumerate(lines) if (found := _FILE.match(line))]
        headless = [at for at, _ in files if raw[at].startswith(INTERNAL_ERROR)]
        # Frames without a function name are printed only for source that the compiler refused.
        unparsed = [at for at, found in files if not found["function"]]
        if start := starts[-1:] or headless[:1] or unparsed[-1:]:
            error = _read_from(lines[start[0] :], first_party)
            if error is not None and (starts or headless or error.type in _SYNTAX_ERRORS):
                return error
    if _REPORT_MARK in text:
        return _read_report(text, first_party)
    absent = _NOT_STARTED.search(text)
    message = absent and f"No module named '{absent['name']}'"
    return _exception("ModuleNotFoundError", message, [], None, first_party) if message else None


def _read_from(lines: list[str], first_party: frozenset[str]) -> ExceptionFact | None:
    """Parse the frames up to the line that names the exception; ``None`` if there is no such line."""
    frames: list[Frame] = []
    syntax: Frame | None = None
    for at, line in enumerate(lines):
        if found := _FILE.match(line):
            below = lines[at + 1] if at + 1 < len(lines) else None
            source = None if below is None or _FILE.match(below) else below.strip()
            frame = _frame(found["path"], found["line"], found["function"], first_party, source)
            if found["function"] is None:
                syntax = frame
            else:
                frames.append(frame)
        elif (frames or syntax) and (last := _LAST.match(line)):
            return _exception(last["type"], last["message"] or "", frames, syntax, first_party)
    return None


def _read_report(text: str, first_party: frozenset[str]) -> ExceptionFact | None:
    """Parse the first failure in pytest's report; ``None`` without a failure that names an exception."""
    lines = text.splitlines()  # not stripped: the place of an outer call ends with a space
    headers = [
        at for at, line in enumerate(lines) if _REPORT_HEADER.match(line) or line.startswith("=====")
    ]
    start = next((at for at in headers if _REPORT_HEADER.match(lines[at])), None)
    if start is None:
        return None
    header = _REPORT_HEADER.match(lines[start])
    name = header["name"] if header else ""
    function = "<module>" if " " in name else name.partition("[")[0]
    frames: list[Frame] = []
    error: tuple[str, str] | None = None
    syntax: Frame | None = None
    source: str | None = None
    for at in range(start + 1, next((at for at in headers if at > start), len(lines))):
        line = lines[at]
        if found := _REPORT_DEFINES.match(line):
            # The header already has the qualified name of a test method: ``TestCart.test_total``.
            function = function if function.endswith(found["name"]) else found["name"]
        elif found := _REPORT_SOURCE.match(line):
            source = found["source"]
        elif found := _REPORT_PLACE.match(line):
            shown = lines[at + 1].strip() if found["function"] and at + 1 < len(lines) else source
            frames.append(
                _frame(found["path"], found["line"], found["function"] or function, first_party, shown)
            )
            source = None
        elif found := _REPORT_SYNTAX.match(line):
            syntax = _frame(found["path"], found["line"], None, first_party, None)
        elif (found := _REPORT_ERROR.match(line.rstrip())) and (
            # The first line names the exception, except for that of a syntax error.
            not f"{lines[at - 1]} ".startswith("E ") or (syntax and found["type"] in _SYNTAX_ERRORS)
        ):
            # A rewritten assertion without a message is shown without its type.
            error = found["type"] or "AssertionError", found["message"] or found["asserted"] or ""
    if error is None or not (frames or syntax):
        return None
    return _exception(*error, frames, syntax, first_party)


def read_stuck_frame(text: str, first_party: frozenset[str] = frozenset()) -> Frame | None:
    """Return the project frame in which a process stood, from a faulthandler dump, or ``None``.

    The innermost product frame of the current thread, or else of another one, since the current thread then
    probably waits for it; without product frames the innermost test frame of the current thread. Frames of
    the verifier and its callers are dropped.
    """
    if _FILE_MARK not in text:
        return None
    threads = sorted(_THREAD.split(text), key=lambda thread: not thread.startswith("Current"))
    # The newest call comes first: a frame of the verifier and those below it are its own.
    stacks = [
        list(takewhile(lambda found: not _SESSION_START.search(found["path"]), _CALL.finditer(thread)))
        for thread in threads
    ]
    stacks = [calls for calls in stacks if calls]
    for side, searched in ((Side.PRODUCT, stacks), (Side.TEST, stacks[:1])):
        for found in chain.from_iterable(searched):
            if _side(found["path"].removeprefix("./"), first_party) is side:
                return _frame(found["path"], found["line"], found["function"], first_party, None)
    return None


def _frame(
    path: str, line: str, function: str | None, first_party: frozenset[str], source: str | None
) -> Frame:
    path = path.removeprefix("./")
    return Frame(
        path=path,
        line=int(line),
        function=function or "<module>",
        side=_side(path, first_party),
        source=source,
    )


@lru_cache(maxsize=4096)
def _side(path: str, first_party: frozenset[str]) -> Side:
    """Return the side of a file by its path; product if nothing else is recognized."""
    plain = path.replace("\\", "/")
    if library := _LIBRARY.search(plain):
        package = library["package"]
        if package in first_party:
            return Side.PRODUCT
        is_framework = package in _FRAMEWORK or package.startswith("pytest_")
        return Side.FRAMEWORK if is_framework else Side.THIRD_PARTY
    if _STDLIB.search(path) or plain.startswith("<"):
        return Side.STDLIB
    pure = PurePosixPath(plain)
    is_test = is_test_module(pure.name) or pure.name == "conftest.py" or "tests" in pure.parts
    return Side.TEST if is_test else Side.PRODUCT


def _exception(
    name: str, message: str, frames: list[Frame], syntax: Frame | None, first_party: frozenset[str]
) -> ExceptionFact:
    """Return the facts of a printed exception, as far as its type and message show them.

    The attributes that an observed exception would have (``name``, ``path``, ``errno``, the type of the
    object that lacks an attribute) are parsed from the standard wording of the message. ``syntax`` is the
    frame of the source that does not parse.
    """
    bare = name.rpartition(".")[2]
    known = getattr(builtins, bare, None) if "." not in name else None
    bases: tuple[str, ...] = ()
    if isinstance(known, type) and issubclass(known, BaseException):
        bases = tuple(f"builtins.{base.__name__}" for base in known.__mro__[1:-1])
    syntax = syntax if bare in _SYNTAX_ERRORS else None
    system = _ERRNO.match(message)
    attribute = _NO_ATTRIBUTE.match(message) if bare == "AttributeError" else None
    named = _MISSING_MODULE.match(message) or CANNOT_IMPORT.match(message) or attribute
    object_type, side = None, syntax.side if syntax else None
    if attribute and attribute["module"]:
        is_own = attribute["module"].partition(".")[0] in first_party
        object_type, side = f"module {attribute['module']}", Side.PRODUCT if is_own else Side.THIRD_PARTY
    elif attribute:
        kind = attribute["kind"]
        is_builtin = isinstance(getattr(builtins, kind, None), type) or kind == "NoneType"
        object_type, side = (f"builtins.{kind}", Side.STDLIB) if is_builtin else (kind, None)
    return ExceptionFact(
        type=bare,
        qualified=name if "." in name else f"builtins.{name}",
        bases=bases,
        message=message,
        frames=tuple(frames),
        name=named["name"] if named else None,
        path=syntax.path if syntax else (system["path"] if system else None),
        line=syntax.line if syntax else None,
        errno=int(system["errno"]) if system else None,
        object_type=object_type,
        object_side=side,
    )


_SCRIPT_ERROR = re.compile(
    r"^[# \t]*(?:Uncaught |Exception during run: )?(?P<type>(?!Assertion)(?:[A-Z]\w*)?Error)(?: \[\w+\])?: "
    r"(?P<message>.*\S)",
    re.MULTILINE,
)
_SCRIPT_YAML = re.compile(
    r"^ +error: (?P<quote>[\"'])(?P<message>.+?)(?P=quote)\n(?: +code: .+\n)? +name: "
    r"'(?P<type>(?!Assertion)\w*Error)'",
    re.MULTILINE,
)
_SCRIPT_FRAME = re.compile(
    r"^[#\s]*+(?:at )?(?:(?P<function>[\w.<>$\[\] ]+?) )?\(?(?:file://)?"
    r"(?P<path>/?[^\s:()]+\.[cm]?[jt]sx?):(?P<line>\d{1,9}):\d+\)?$"
)
_SCRIPT_SYNTAX = re.compile(r"^(?:.*\s)?(?:file://)?(?P<path>/?[^\s:()]+\.[cm]?[jt]sx?):(?P<line>\d{1,9})$")
_SCRIPT_LIBRARY = re.compile(r"(?:^|/)node_modules/|^node:")
_DEATHS = r"Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Killed"
_DEATH = re.compile(
    rf"^(?:(?:/bin/)?(?:ba)?sh: line \d+: +\d+ )?(?P<what>{_DEATHS})(?: .*)?$|"
    r"^ +signal: '(?P<signal>SIG[A-Z]+)'$|\(signal: \d+, (?P<rust>SIG[A-Z]+): |"
    rf"^\S*make(?:\[\d+\])?: \*\*\* \[[^\]]+\] (?P<make>{_DEATHS})(?: .*)?$|"
    r"^[\w.-]+: exit (?P<tox>-\d+) \(|^Fatal Python error: (?P<python>\S.*)$|"
    r"didn't exit successfully: .+ \((?P<status>exit status: (?!101\b)\d+)\)$|"
    r"^#? ?-----? Native stack trace -----$",
    re.MULTILINE,
)
"""A program's death as reported by a shell, Node's test runner, cargo, make, tox or Python's faulthandler.

cargo's exit status 101 is left out: it is a panic, thus an ordinary failure.
"""
_ASSERTED = re.compile(r"^\S+: [^\s:]+:\d+: .*: Assertion [`'].+' failed\.$", re.MULTILINE)
"""The message of a failed ``assert`` of C, which aborts the program."""


_NO_SCRIPT = re.compile(r"^Cannot find (?:module|package) '([^']+)'(?P<resolved> imported from )?")
_NO_EXPORT = re.compile(r"^The requested module '([^']+)' does not provide an export named '([^']+)'")
_NO_FUNCTION = re.compile(r"(\w+) is not a (?:function|constructor)\b")


def read_script_error(text: str) -> ExceptionFact | None:
    """Return the first JavaScript error that is not a failed assertion, as the like exception of Python.

    So the rules about exceptions serve scripts as well. Errors are printed with a stack, or in the YAML
    block of a TAP report.
    """
    found = (_SCRIPT_ERROR.search(text) or _SCRIPT_YAML.search(text)) if "Error" in text else None
    if found is None:
        return None
    name, message, syntax = found["type"], found["message"], None
    own = (_script_frame(line, _SCRIPT_FRAME) for line in text[found.end() :].splitlines())
    frame = next(filter(None, own), None)
    if name == "SyntaxError":
        # Node names the unparsable file in a line above the source line and caret.
        above = text[: found.start()].splitlines()[:-7:-1]
        named = (_script_frame(line.strip(), _SCRIPT_SYNTAX) for line in above)
        frame = syntax = next(filter(None, named), None) or frame
    if export := _NO_EXPORT.match(message):
        name, message = "ImportError", f"cannot import name '{export[2]}' from '{export[1]}'"
    elif module := _NO_SCRIPT.match(message):
        # An import statement names a missing file by its resolved path, from which the root was removed.
        is_file = module["resolved"] and "find module" in message and not module[1].startswith("/")
        name, message = "ModuleNotFoundError", f"No module named '{'./' if is_file else ''}{module[1]}'"
    error = _exception(name, message, [frame] if frame else [], syntax, frozenset())
    lacks = _NO_FUNCTION.search(message) if name == "TypeError" else None
    if lacks is None or frame is None or frame.side is not Side.TEST:
        return error
    absent = {"type": "AttributeError", "qualified": "builtins.AttributeError"}
    return error.model_copy(update={**absent, "name": lacks[1], "object_side": Side.PRODUCT})


def _script_frame(line: str, pattern: re.Pattern[str]) -> Frame | None:
    """Return the place that a line names, unless it is in Node or its packages."""
    found = pattern.match(line)
    if found is None or _SCRIPT_LIBRARY.search(found["path"]):
        return None
    function = (found.groupdict().get("function") or "").strip()
    return Frame(
        path=found["path"],
        line=int(found["line"]),
        function=function or "<module>",
        side=Side.TEST if is_test_path(found["path"]) else Side.PRODUCT,
    )


def read_death(text: str) -> str | None:
    """Return how a started program died, as printed by a shell or test runner, or ``None``.

    A failed C assertion does not count as a crash, although it aborts the program.
    """
    found = _DEATH.search(text)
    if found is None or _ASSERTED.search(text):
        return None
    return next(filter(None, found.groups()), "a crash in native code")
