"""Answers that depend on the state of the process rather than on what was asked."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.tricks.special_cases import NOTEBOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_STATE = (
    "gc.get_objects", "gc.get_referrers", "gc.get_stats", "sys._current_frames", "sys.meta_path",
    "sys.path_hooks", "linecache.cache", "atexit._ncallbacks", "faulthandler.is_enabled", "sys.getrefcount",
    "sys.unraisablehook", "sys.__unraisablehook__", "logging.root.handlers", "logging.getLogger.handlers",
    "warnings.filters", "threading.enumerate", "os.getppid", "sys.orig_argv",
    "__main__.__file__", "sys.__stdin__", "sys.getallocatedblocks", "sys.monitoring", "signal.getsignal",
    "sys.flags.hash_randomization", "sys.flags.no_site", "sys.dont_write_bytecode", "sys.warnoptions",
    "sys.getswitchinterval", "sys.breakpointhook", "sys.displayhook",
)  # fmt: skip
"""What no answer should depend on."""
_ENVIRONMENT = ("os.environ.values", "os.environ.items", "os.environb.values", "os.environb.items")
_HERE = frozenset(
    {
        "os.getcwd", "os.getlogin", "getpass.getuser", "platform.node", "socket.gethostname", "os.uname",
        "pathlib.Path.cwd", "os.path.abspath", "pathlib.Path.home", "os.path.expanduser",
    }
)  # fmt: skip
"""Where and as whom it runs: a sign where it is compared with something that is written down."""
_CLOCKS = frozenset(
    {"time.time", "time.time_ns", "datetime.datetime.now", "datetime.datetime.today", "datetime.date.today",
     "datetime.datetime.utcnow"}
)  # fmt: skip
_EPOCH = 1_000_000_000
_OF_LOGGING = frozenset({"basicConfig", "addHandler", "dictConfig", "fileConfig"})
_PROCESS_FILE = re.compile(
    r"^/proc/[^/]*/?(cmdline|environ|maps|stack|comm|exe|fd|status)?$|/proc/(self|%)"
)
_OF_MEMORY = re.compile(r"/proc/self/(status|statm|stat|io|limits|mountinfo|cgroup|ns)|^/proc/[a-z]+$")


def deciding(module: Module, around: Surroundings) -> Iterator[Find]:
    """Conditions that ask for the state of the process, and choose an answer by it."""
    if around.is_script:
        return
    seen: set[tuple[str, str]] = set()
    for site in module.sites:
        for test in _tests(site.node):
            asked = _asked(test, site, module)
            if asked is not None and (site.place, asked) not in seen:
                seen.add((site.place, asked))
                yield _find(asked, test, site, module)


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    """What an answer is chosen by."""
    if isinstance(node, ast.If):
        if _answers(node.body) or _answers(node.orelse) or _defines(node.body):
            yield node.test
    elif isinstance(node, ast.IfExp):
        yield node.test
    elif isinstance(node, ast.For):
        if any(isinstance(each, ast.If) for each in node.body) and _answers(node.body):
            yield node.iter
    elif isinstance(node, ast.Match):
        if any(_answers(case.body) for case in node.cases):
            yield node.subject
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        yield from node.values[:-1]


def _answers(body: list[ast.stmt]) -> bool:
    """Whether something is given back."""
    return any(
        isinstance(each, ast.Return | ast.Yield) and each.value is not None and fold(each.value) is not None
        for statement in body
        for each in ast.walk(statement)
    )


def _defines(body: list[ast.stmt]) -> bool:
    """A function that is another one under a condition."""
    return any(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in body)


def _asked(test: ast.expr, site: Site, module: Module) -> str | None:
    """The state that a condition asks for, local names and functions of the module looked through."""
    for each in _reached(test, site.function, module):
        meaning = _meaning(each, module)
        if meaning == "__debug__":
            return "__debug__"
        if meaning.startswith(_ENVIRONMENT):
            return "all of the environment"
        if meaning.startswith(_STATE):
            if meaning.startswith("logging.") and _sets_up_logging(site.function):
                continue
            return next(state for state in _STATE if meaning.startswith(state))
        if isinstance(each, ast.comprehension):
            if any(_meaning(inner, module).startswith("sys.modules") for inner in ast.walk(each.iter)):
                return "what is loaded"
        elif isinstance(each, ast.Call):
            found = _of_call(each, meaning, module)
            if found is not None:
                return found
        elif isinstance(each, ast.Compare):
            found = _of_comparison(each, site, module)
            if found is not None:
                return found
    return None


def _of_call(node: ast.Call, meaning: str, module: Module) -> str | None:
    meaning = meaning.removesuffix("()")
    if meaning in ("len", "str", "repr", "hash") and node.args:
        inner = _meaning(node.args[0], module)
        if inner.startswith(("sys.modules", "os.environ")):
            return f"{meaning}({inner})"
    if meaning in ("open", "io.open", "pathlib.Path", "os.readlink", "os.listdir", "os.open"):
        word = _text(node.args[0], module) if node.args else ""
        if _PROCESS_FILE.search(word) and not _OF_MEMORY.search(word):
            return word
    return None


def _of_comparison(node: ast.Compare, site: Site, module: Module) -> str | None:
    """The place, the user or the day, compared with what is written down; the kind of a stream."""
    sides = [node.left, *node.comparators]
    written = [fold(side, module.constants) for side in sides]
    texts = [value for value in written if isinstance(value, str) and len(value) > 1]
    given = _arguments(site.function)
    for side in sides:
        is_given = any(isinstance(each, ast.Name) and each.id in given for each in ast.walk(side))
        inner = [_meaning(each, module) for each in _reached(side, site.function, module)]
        is_dated = not is_given and any(_is_moment(each, module) for each in sides)
        for known, applies in ((_HERE, bool(texts)), (_CLOCKS, is_dated)):
            asked = next((m.rstrip("()") for m in inner if m.rstrip("()") in known), None)
            if applies and asked is not None:
                return asked
        is_kind = any(
            isinstance(each, ast.Attribute) and each.attr in ("__name__", "__qualname__", "__module__")
            for each in ast.walk(side)
        )
        if is_kind and texts and not any(NOTEBOOKS.search(text) for text in texts):
            stream = next((m for m in inner if m.startswith(("sys.std", "sys.__std", "logging."))), None)
            if stream is not None:
                return f"the kind of {stream}"
    return None


def _arguments(function: Function | None) -> frozenset[str]:
    """What a function is given: the clock is only what it takes where nobody gives it a moment."""
    if function is None:
        return frozenset()
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return frozenset(arg.arg for arg in every)


def _sets_up_logging(function: Function | None) -> bool:
    return function is not None and any(
        isinstance(each, ast.Call) and getattr(each.func, "attr", "") in _OF_LOGGING
        for each in ast.walk(function)
    )


def _is_moment(node: ast.expr, module: Module) -> bool:
    """A day or a second that is written down."""
    value = fold(node, module.constants)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value > _EPOCH
    if isinstance(node, ast.Call):
        name = _meaning(node, module).removesuffix("()")
        return name.endswith(("datetime", "date")) and all(
            fold(arg, module.constants) is not NOTHING for arg in node.args
        )
    return False


def _reached(test: ast.expr, function: Function | None, module: Module) -> Iterator[ast.AST]:
    """The nodes of a condition, and those of the names and functions that it uses."""
    waiting: list[tuple[ast.AST, int]] = [(test, 0)]
    seen: set[str] = set()
    while waiting:
        top, depth = waiting.pop()
        for each in ast.walk(top):
            yield each
            if depth > 1:
                continue
            if isinstance(each, ast.Name):
                if f"{each.id} {depth}" in seen:
                    continue
                seen.add(f"{each.id} {depth}")
                value = module.constants.get(each.id)
                if value is not None:
                    waiting.append((value, depth + 1))
                elif function is not None:
                    waiting += [(bound, depth + 1) for bound in _bound(function).get(each.id, ())]
            elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                called = module.functions.get(each.func.id)
                if called is not None and called is not function:
                    waiting += [
                        (one.value, depth + 1)
                        for one in ast.walk(called)
                        if isinstance(one, ast.Return) and one.value is not None
                    ]


@lru_cache(maxsize=4)
def _bound(function: Function) -> dict[str, list[ast.expr]]:
    """What a function binds names to: every condition of it asks."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for each in ast.walk(function):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                if isinstance(target, ast.Name):
                    found[target.id].append(each.value)
    return dict(found)


def _meaning(node: ast.AST, module: Module) -> str:
    """What a chain of names means; calls in it count as what they call, with a mark where they are given
    something."""
    if isinstance(node, ast.Call):
        known = dotted(node, module.aliases)
        called = _meaning(node.func, module)
        return known or (f"{called}()" if called and node.args else called)
    if isinstance(node, ast.Attribute):
        owner = _meaning(node.value, module)
        return f"{owner}.{node.attr}" if owner else ""
    return dotted(node, module.aliases)


def _text(node: ast.expr, module: Module) -> str:
    """A text, with a mark where something is put in."""
    value = fold(node, module.constants)
    if isinstance(value, str):
        return value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "%" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, module)
    return ""


def _find(asked: str, test: ast.AST, site: Site, module: Module) -> Find:
    return Find(
        sign="decides-by-process",
        message=f"{site.place or 'The module'} chooses its answer by {asked}",
        path=module.path,
        line=getattr(test, "lineno", None),
        subject=asked,
        place=site.place,
        after=module.line(test),
    )
