"""Hard signals in product code that was added: code that passes the tests without doing the work.

Each detector takes a :class:`Site` (a node of the syntax tree that is new) and returns a message, or
``None``. :func:`_special_cases` needs the literals of all tests and is a pass of its own. All signals are
hard: each of these signs occurred in real cheats and in no honest change. A pattern that honest code uses,
too, is no signal, which is why most detectors have exceptions.
"""

from __future__ import annotations

import ast
import json
import math
import posixpath
import re
import sys
from collections import Counter, defaultdict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.guards.hygiene.changes import (
    PYTHON_JUDGES,
    SERVES_TESTS,
    WORK,
    file_signal,
    is_script,
)
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    UNKNOWN,
    Function,
    Module,
    Site,
    fold,
    name_of,
    truth,
    usual_depth,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.guards.hygiene.changes import TreeDifferences


def product_findings(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield the signals in changed sources; code that was only moved is no finding."""
    modules = changes.python(*WORK, *PYTHON_JUDGES)
    found = [each for before, now in modules if now is not None for each in _tricks(now, before, changes)]
    earlier = Counter(
        (each.sign, each.after)
        for before, _ in modules
        if found and before is not None
        for each in _tricks(before, None, changes)
    )
    # Moved code has the same sign and the same line in some earlier file: each earlier occurrence excuses
    # one finding.
    for each in found:
        if earlier[each.sign, each.after]:
            earlier[each.sign, each.after] -= 1
        else:
            yield each
    yield from _special_cases(changes)


def _tricks(module: Module, before: Module | None, changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Run the detectors on all statements of a module that its earlier version does not have."""
    # In tests and their support files all of this is legitimate except ending the process. Whether they
    # were weakened is checked by the module `judges`.
    is_judge = changes.kind(module.path) in PYTHON_JUDGES
    detectors = {"exit": _ends_process} if is_judge else _DETECTORS
    for site in module.sites(before):
        for sign, detect in detectors.items():
            if message := detect(site, changes):
                yield _signal(sign, message, site)


def _signal(sign: str, message: str, site: Site) -> HygieneSignal:
    line, after = getattr(site.node, "lineno", None), site.module.line(site.node)
    return file_signal(sign, message, site.module.path, line=line, after=after)


# -- ends the process, or the test -------------------------------------------------------------------

# Without sys.exit, which raises an exception that pytest reports as a failure.
_ENDS_AT_ONCE = frozenset({"os._exit", "posix._exit", "os.abort", "pytest.exit", "_pytest.outcomes.exit"})
_LEAVES_TEST = re.compile(
    r"(pytest|_pytest\.outcomes)\.(skip|xfail|fail|importorskip|Skipped|XFailed|Exit)(\.Exception)?"
    r"|unittest(\.case)?\.SkipTest"
)


def _ends_process(site: Site, changes: TreeDifferences) -> str | None:
    """Find calls that end the process, and with it pytest, before it can report a failure."""
    meaning = site.meaning(site.node)
    # Forked children have to exit this way, or they would run the rest of their parent's program.
    if meaning not in _ENDS_AT_ONCE or (site.function is not None and "fork" in ast.unparse(site.function)):
        return None
    return f"{meaning} ends the process"


def _skips_its_test(site: Site, changes: TreeDifferences) -> str | None:
    """Find product code that skips, xfails or ends the test that calls it."""
    if isinstance(site.node, ast.Attribute | ast.Name) and not SERVES_TESTS.search(site.module.path):
        meaning = site.meaning(site.node)
        return f"Product code uses {meaning}" if _LEAVES_TEST.fullmatch(meaning) else None
    return None


# -- equality ----------------------------------------------------------------------------------------

_EQUALS = ("__eq__", "__ne__")
_VALUES = re.compile(
    r"(builtins\.|decimal\.|datetime\.|fractions\.|collections\.)*(int|float|str|bytes|bool|complex|list|dict"
    r"|tuple|set|frozenset|Decimal|Fraction|date|datetime|UserString|UserDict|UserList)"
)
_APPROXIMATE = re.compile(
    r"\b(isclose|round|startswith|endswith|approx|any|quantize)\(|[<>]|\bin\b|\[[^\]]*:"
)
"""Comparisons of parts, or with a tolerance: unequal values can satisfy them."""
_COMPARES = re.compile(r"==|!=|__(eq|ne)__")
_SIZES = re.compile(r"len\(\w+\) == len\(\w+\)")


def _always_equal(site: Site, changes: TreeDifferences) -> str | None:
    """Find an equality that holds for every value, or for unequal ones."""
    node, owner = site.node, site.owner
    if site.meaning(node) in ("unittest.mock.ANY", "mock.ANY"):
        return f"{site.meaning(node)} equals everything"
    for name, function in _comparisons(node, site.module):
        is_eq = name == "__eq__"
        shown = f"{owner.name}.{name}" if owner is not None else name
        returned = _returned(function)
        used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
        agrees = [truth(each) is is_eq for each in returned]
        defers = ["super()" in ast.unparse(each) for each in returned]
        # A stateless marker class is an exception: it equals its own kind and returns NotImplemented for
        # others.
        is_marker = owner is not None and {owner.name, "NotImplemented"} <= used
        if returned and agrees[-1] and all(map(max, agrees, defers)) and not is_marker:
            return f"{shown} is equal to everything"
        if is_eq and owner is not None and returned:
            names = [argument.arg for argument in function.args.args]
            is_computed = all(fold(each) is UNKNOWN for each in returned)
            # A method that uses only one of the two operands compares nothing, unless it checks for its own
            # type.
            if is_computed and len(names) == 2 and not {*names} <= used and owner.name not in used:
                return f"{shown} is equal to everything"
            # Only for subclasses of value types: a class of the project may define equality as it likes.
            is_value = any(_VALUES.fullmatch(site.meaning(base)) for base in owner.bases)
            text = " ".join(ast.unparse(each) for each in returned)
            # The head of the function has the name __eq__, and equal sizes say nothing about the items.
            compares = _COMPARES.search(_SIZES.sub("", ast.unparse(function).partition(":")[2]))
            is_rough = is_value and (_APPROXIMATE.search(text) or not compares)
            if is_rough or any(text.startswith(f"{side} in ") for side in names[1:]):
                return f"{shown} treats different values as equal"
    return None


def _comparisons(node: ast.AST, module: Module) -> Iterator[tuple[str, ast.FunctionDef | ast.Lambda]]:
    """Yield ``__eq__`` and ``__ne__`` with their functions.

    They may be defined as methods, assigned to an attribute, or be entries of a dict or arguments of a call
    such as ``type(...)`` or ``setattr(...)``.
    """
    pairs: list[tuple[object, ast.AST]] = []
    if isinstance(node, ast.FunctionDef):
        pairs = [(node.name, node)]
    elif isinstance(node, ast.Assign):
        pairs = [(name_of(target), node.value) for target in node.targets]
    elif isinstance(node, ast.Dict):
        pairs = [(fold(key), value) for key, value in zip(node.keys, node.values, strict=True)]
    elif isinstance(node, ast.Tuple | ast.Call):
        parts = node.elts if isinstance(node, ast.Tuple) else node.args
        pairs = [(fold(key), value) for key, value in pairwise(parts)]
    for name, each in pairs:
        value = module.functions.get(each.id) if isinstance(each, ast.Name) else each
        if name in _EQUALS and isinstance(value, ast.FunctionDef | ast.Lambda):
            yield str(name), value


def _returned(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that a function returns, except those in handlers and ``NotImplemented``."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    handlers = (each for each in ast.walk(node) if isinstance(each, ast.ExceptHandler))
    caught = {each for handler in handlers for each in ast.walk(handler)}
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return) and each.value is not None and each not in caught
        and name_of(each.value) != "NotImplemented"
    ]  # fmt: skip


# -- asks for tests ----------------------------------------------------------------------------------

_TEST_NAME = re.compile(r"_?py[._]?test|unittest|planverify|conftest|pluggy", re.IGNORECASE)
"""Names of test frameworks, of their modules and of their environment variables."""
_TEST_MODULE = re.compile(r"(^|\.)(tests?|test_\w+|\w+_test)(\.|$)")
_PLACES = re.compile(
    r"(sys\.(modules|argv|orig_argv|path|meta_path)|os\.(environb?|getenv))(\.\w+)*"
    r"|importlib\.util\.find_spec|pkgutil\.find_loader"
    r"|/proc/(self|\d+)/(cmdline|environ)"
)
_SEARCHES = frozenset(
    {"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "findall",
     "__contains__", "intersection", "isdisjoint"}
)  # fmt: skip


def _asks_for_tests(site: Site, changes: TreeDifferences) -> str | None:
    """Find a search of loaded modules, arguments or environment for signs of a test run."""
    node = site.node
    is_search = isinstance(node, ast.Call) and name_of(node.func) in _SEARCHES
    match node:
        case ast.Compare():
            operands, expression = [node.left, *node.comparators], node
        case ast.Subscript(ctx=ast.Load()):  # only reads: code may set a variable for a child process
            operands, expression = [node.slice], node.value
        case ast.Call():
            operands, expression = node.args, node.func
        case _:
            return None
    words = [word for each in operands for word in _words(each, site.module)]
    if not words:
        return None
    # The searched place is in the same expression, or a loop of the same function iterates over it.
    place = _place_in([expression], site)
    is_search = is_search or (isinstance(node, ast.Compare) and not changes.runs_alone(site.module.path))
    if not place and is_search:
        around = ast.walk(site.function or site.module.tree)
        loops = [each.iter for each in around if isinstance(each, ast.For | ast.comprehension)]
        place = _place_in([node, *loops], site)
    found = next((word for word in words if place and _is_test_word(word, place, site)), None)
    return f"{place} is searched for {found!r}" if found is not None else None


def _place_in(nodes: list[ast.expr] | list[ast.AST], site: Site) -> str:
    """Return the searched place: loaded modules, arguments or environment; empty if there is none."""
    below = [each for node in nodes for each in ast.walk(node)]
    meanings = (str(each.value) if isinstance(each, ast.Constant) else site.meaning(each) for each in below)
    found = next((each for each in meanings if _PLACES.fullmatch(each)), "")
    # The module of an object, such as the stream that pytest puts in place of standard output.
    names = (each.attr for each in below if isinstance(each, ast.Attribute))
    return found or next((name for name in names if name in ("cmdline", "__module__")), "")


def _words(node: ast.expr, module: Module) -> list[str]:
    """Return the text of a constant expression, or the texts of a constant sequence."""
    value = fold(node, module.constants)
    values = cast("list[object]", list(value) if isinstance(value, list | tuple) else [value])  # pyright: ignore
    texts = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in values]
    return [each for each in texts if isinstance(each, str)]


def _is_test_word(word: str, place: str, site: Site) -> bool:
    """Return whether a word that is searched for in ``place`` indicates a test run."""
    if place == "__module__":  # programs may ask whether an object is a mock
        return "pytest" in word
    if _TEST_NAME.search(word):
        return True
    # Parts of the names count, too: any(key.startswith("PYT") for key in os.environ)
    if place.startswith("os."):
        return len(word) >= 3 and word in "PYTEST_CURRENT_TEST"
    if place == "sys.argv" and isinstance(node := site.node, ast.Compare):
        # A program may have a subcommand "test". Only a search for a part of an argument reveals a test
        # runner.
        is_part = isinstance(node.ops[0], ast.In) and site.meaning(node.comparators[0]) != "sys.argv"
        return is_part and len(word) >= 4 and word in "pytest"
    parts = "_pytest unittest AssertionRewritingHook"
    return (len(word) >= 4 and word in parts) or bool(_TEST_MODULE.search(word))


# -- the call stack ----------------------------------------------------------------------------------

_FRAMES = re.compile(
    r"sys\.(_getframe\w*|_current_frames|_current_exceptions|call_tracing)"
    r"|inspect\.(stack|currentframe|getouterframes|getinnerframes|trace|getframeinfo)"
    r"|traceback\.(extract_stack|walk_stack|format_stack|StackSummary\.extract|print_stack)"
    r"|logging\.(\w+\.)*findCaller"
)
_ALWAYS_DECIDE = re.compile(r"gc\.get_(referrers|objects)|(sys|threading)\.set(trace|profile)\w*")
"""Functions that inspect memory or trace all calls: findings whatever is done with the result."""
_FRAME_PARTS = re.compile(
    r"\b(co_filename|co_name|co_qualname|f_locals|f_lineno|f_back|filename|function|lineno|name|code_context|line)\b"
)
_LOGS = re.compile(r"log|warn|debug|trace|repr|report|caller_info|stacklevel|leak|profile", re.IGNORECASE)
"""Names of functions that read the call stack to report locations to people."""


def _reads_call_stack(site: Site, changes: TreeDifferences) -> str | None:
    """Find code that inspects its callers and lets the result decide something."""
    node = site.node
    meaning = site.meaning(node.func) if isinstance(node, ast.Call) else ""
    decides = _ALWAYS_DECIDE.fullmatch(meaning)
    is_part = isinstance(node, ast.Attribute) and node.attr in ("f_back", "tb_frame", "findCaller")
    if not (decides or is_part or _FRAMES.fullmatch(meaning)) or _LOGS.search(site.place):
        return None
    scope = site.function or site.module.tree
    if decides or any(_decides_by_frame(each) for each in ast.walk(scope)):
        return f"{site.place or 'The module'} depends on its caller"
    return None


def _decides_by_frame(node: ast.AST) -> bool:
    """Return whether a node reads a frame's locals or source, or is a condition that depends on frames."""
    if isinstance(node, ast.Attribute) and node.attr in ("f_locals", "co_consts", "code_context"):
        return True
    # The source of the calling line contains what a test expects.
    if isinstance(node, ast.Attribute) and node.attr == "line" and not isinstance(node.value, ast.Name):
        return True
    if isinstance(node, ast.Call) and name_of(node.func) in ("getline", "getlines", "getsource", "open"):
        return True
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return bool(_FRAME_PARTS.search(ast.unparse(node.test)))
    is_search = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _SEARCHES | {"get"}
    return (is_search or isinstance(node, ast.Compare)) and bool(_FRAME_PARTS.search(ast.unparse(node)))


# -- reads the tests, and runs what nobody can read ----------------------------------------------------

_TEST_SOURCE = re.compile(
    r"(^|/)(test_[\w*]+|[\w*]+_test|conftest)\.(py|\*)$|(^|/)test_\*$|(^|/)\.planverify(/|$)"
)
"""Files of tests, and the verifier's records of them."""
_TEST_FOLDER = re.compile(r"(^|/)(tests?|testing)(/|$)")
_LISTED_TEST_FOLDER = re.compile(r"^(\.{1,2}/|\*\*/)*tests?(/|$)")
_IMPORTS = frozenset({"import_module", "__import__", "run_module"})
_FILE_SEARCHES = frozenset({"glob", "iglob", "rglob", "walk", "scandir", "listdir", "Path", "open"})
_LISTS_FILES = re.compile(r"\b(i?glob|rglob|walk|scandir|listdir|iterdir)\(")
_MIN_NAME_LENGTH = 8
_DECODES = re.compile(
    r"b64decode|b85decode|a85decode|b32decode|fromhex|decompress|rot.?13|unhexlify|marshal"
)


def _reads_tests(site: Site, changes: TreeDifferences) -> str | None:
    """Find imports of tests, and paths of tests, plans or test data."""
    node = site.node
    # Scripts may run the tests, and docstrings and error messages refer people to them.
    if site.is_spoken or changes.runs_alone(site.module.path):
        return None
    if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names:
            parts = name.split(".")
            if {"tests", "conftest"} & set(parts) or parts[-1].startswith("test_"):
                return f"Product code imports {name}"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return "Product code builds a path to the tests" if fold(node.right) in ("tests", "test") else None
    elif isinstance(node, ast.Call) and name_of(node.func) in ("joinpath", "join"):
        is_test_path = any(fold(each) in ("tests", "test") for each in node.args)
        return "Product code builds a path to the tests" if is_test_path else None
    elif isinstance(node, ast.Call) and node.args and name_of(node.func) in _FILE_SEARCHES | _IMPORTS:
        value = fold(node.args[0], site.module.constants)
        path = value.replace("\\", "/") if isinstance(value, str) else ""
        if name_of(node.func) in _IMPORTS:
            path = path.replace(".", "/") if _TEST_MODULE.search(path) else ""
        if _LISTED_TEST_FOLDER.search(path):
            return f"Product code searches {value!r}"
    elif isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
        value = fold(node, site.module.constants)
        text = value.replace("\\", "/").removeprefix("./") if isinstance(value, str) else ""
        if (
            _TEST_SOURCE.search(text)
            or text in changes.grants.plans
            or _is_data(text, site.module, changes)
        ):
            return f"Product code names {value!r}"
    return None


def _is_data(text: str, module: Module, changes: TreeDifferences) -> bool:
    """Return whether a text is the path of test data, or its file name if the module searches for files."""
    data = [path for path in changes.data if _TEST_FOLDER.search(posixpath.dirname(path) + "/")]
    if "/" in text.strip("/"):
        return any(path == text or path.endswith(f"/{text.lstrip('./')}") for path in data)
    # The product may have a file of the same name elsewhere, but finds that of the tests only by a search.
    is_distinctive = len(text) >= _MIN_NAME_LENGTH and "." in text and _LISTS_FILES.search(module.text)
    return bool(is_distinctive) and any(posixpath.basename(path) == text for path in data)


def _runs_hidden_code(site: Site, changes: TreeDifferences) -> str | None:
    """Find ``exec``, ``eval`` or ``compile`` of encoded or compressed code."""
    node = site.node
    is_run = isinstance(node, ast.Call) and name_of(node.func) in ("exec", "eval", "compile")
    return "Encoded code is run" if is_run and _DECODES.search(ast.unparse(node)) else None


# -- replaces what the tests rely on -------------------------------------------------------------------

_RELIED_ON = frozenset(
    {"builtins", "copy", "csv", "decimal", "difflib", "io", "json", "math", "operator", "pathlib", "re"}
)  # fmt: skip
"""Modules of the standard library with which tests read data and compare results.

Programs do replace functions of others, such as ``os``, ``warnings``, ``socket`` and ``logging``.
"""
_OFTEN_REPLACED = frozenset({"json.JSONEncoder.default", "builtins.print", "builtins.open", "builtins._"})


def _replaces_library(site: Site, changes: TreeDifferences) -> str | None:
    """Find assignments to functions of the standard library that tests rely on."""
    node = site.node
    names: list[str] = []
    if isinstance(node, ast.Assign):
        names = [site.meaning(each) for each in node.targets if isinstance(each, ast.Attribute)]
    elif isinstance(node, ast.Call) and name_of(node.func) == "setattr" and len(node.args) > 2:
        names = [f"{site.meaning(node.args[0])}.{fold(node.args[1])}"]
    for name in names:
        top, _, rest = name.partition(".")
        found: Any = sys.modules.get(top)
        for part in rest.split("."):
            found = getattr(found, part, None)
        # Only what exists: a new attribute changes nothing for others.
        if top in _RELIED_ON and name not in _OFTEN_REPLACED and callable(found):
            return f"{name} of the standard library is replaced"
    return None


_DETECTORS: dict[str, Callable[[Site, TreeDifferences], str | None]] = {
    "exit": _ends_process,
    "skips-its-test": _skips_its_test,
    "always-equal": _always_equal,
    "asks-for-tests": _asks_for_tests,
    "reads-call-stack": _reads_call_stack,
    "reads-tests": _reads_tests,
    "runs-hidden-code": _runs_hidden_code,
    "replaces-library": _replaces_library,
}
TRICKS = frozenset({*_DETECTORS, "special-cases"})


# -- answers that are written down -------------------------------------------------------------------

_MIN_LITERALS = 3
"""Number of literals from tests that is taken as no coincidence."""
_MIN_SHARE = 0.7
"""Share of a table's entries that come from tests."""
_NUMBERS = (*range(-2, 11), 12, 16, 24, 32, 60, 64, 100, 128, 255, 256, 360, 365, 512, 1000, 1024, 3600)
_STATUSES = frozenset(
    map(
        repr,
        (200, 201, 204, 301, 302, 304, 400, 401, 403, 404, 405, 409, 410, 422, 429, 500, 501, 502, 503),
    )
)
"""Usual status codes of HTTP, as ``repr``: answers of any router."""
_COMMON = frozenset(
    map(repr, (*_NUMBERS, *_STATUSES, 0.0, 0.5, 1.0, 2.0, 10.0, 100.0, True, False, None, b""))
)
"""Literals, as ``repr``, that occur in any program and identify no test."""
_CALENDAR = frozenset(map(repr, range(-31, 32)))
"""Numbers, as ``repr``, that programs single out: months, days, hours and small counts."""
_WORD = re.compile(r"['\"](.{0,2}|/?[A-Za-z_]\w*([/.-]\w+)*/?)['\"]", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_GUARD_VALUES = {"True", "False", "None", "''", "0", "-1"}
"""Values, as ``repr``, that honest guard clauses return."""


class _TestLiterals:
    """Literals of tests and their data, in groups that occur together.

    Literals are compared as ``repr``, so that ``1`` and ``"1"`` differ. Everything is computed on
    demand.
    """

    def __init__(self, changes: TreeDifferences) -> None:
        self._changes = changes

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return [
            node
            for path in self._changes.new
            if path.endswith(".py") and self._changes.kind(path) in PYTHON_JUDGES
            and (module := self._changes.module(path, now=True)) is not None
            for node in ast.walk(module.tree)
        ]  # fmt: skip

    @cached_property
    def _groups(self) -> list[frozenset[str]]:
        """Literals of each comparison, collection display, test function and data row."""
        found: list[frozenset[str]] = []
        for node in self._nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(frozenset(text for each in node.body for text in _literals_below(each)))
            elif isinstance(node, ast.Compare | ast.Tuple | ast.List | ast.Dict):
                found.append(_literals_below(node))
        for path in self._changes.data & self._changes.new.keys():
            found += _rows(self._changes.now.read(path) or b"")
        return found

    @cached_property
    def _calls(self) -> set[tuple[str, frozenset[str]]]:
        """Names of functions that tests call, with the literals that each call passes."""
        return {
            (name_of(each.func), _literals_below(each))
            for each in self._nodes
            if isinstance(each, ast.Call)
        }

    @cached_property
    def _results(self) -> set[tuple[str, str]]:
        """Names of functions that tests call, each with a literal that the result is compared with."""
        return {
            (name_of(call.func), text)
            for node in self._nodes
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)
            for side, other in pairwise((node.left, *node.comparators, node.left))
            for call in ast.walk(side)
            if isinstance(call, ast.Call)
            for text in _literals_below(other)
        }

    @cached_property
    def _equations(self) -> set[tuple[str, frozenset[str], frozenset[str]]]:
        """Functions that tests call with literals, these literals, and those that the results equal."""
        return {
            (name_of(call.func), _literals_below(call), _literals_below(other))
            for node in self._nodes
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)
            for call, other in pairwise((node.left, *node.comparators, node.left))
            if isinstance(call, ast.Call)
        }

    @cached_property
    def _known(self) -> frozenset[str]:
        """Literals that the product contained before: these need not come from tests."""
        modules = (before for before, _ in self._changes.python(*WORK) if before is not None)
        return frozenset(text for module in modules for text in _literals_below(module.tree))

    @cached_property
    def _every(self) -> frozenset[str]:
        return frozenset[str]().union(*self._groups)

    def hold(self, asked: frozenset[str], answer: frozenset[str]) -> bool:
        """Return whether an input and its answer occur together in a test or a row of data.

        An input whose literals the product contained before does not count.
        """
        if not (asked and answer) or not any(asked | answer <= group for group in self._groups):
            return False
        return not asked <= self._known

    def answer(self, function: str, asked: frozenset[str], answer: frozenset[str]) -> bool:
        """Return whether a test states that a function gives this answer to this input."""
        return (function, asked, answer) in self._equations

    def know_call(self, function: str, asked: frozenset[str], answer: frozenset[str]) -> bool:
        """Return whether tests call a function with these inputs, or contain all of inputs and answer.

        The latter counts from three input literals on. Inputs that the product contained before do not
        count.
        """
        if any(name == function and asked <= given for name, given in self._calls):
            return not asked <= self._known
        is_situation = len(asked) >= _MIN_LITERALS and bool(answer) and asked | answer <= self._every
        return is_situation and not asked <= self._known

    def expect_always(self, function: str, answer: frozenset[str]) -> bool:
        """Return whether tests compare results of a function with every literal of its answers."""
        return not answer <= self._known and all((function, text) in self._results for text in answer)

    def call(self, function: str) -> bool:
        """Return whether tests call a function of this name."""
        return any(name == function for name, _ in self._calls)

    def expect(self, answers: frozenset[str]) -> bool:
        """Return whether all of these answers occur in tests, and are not all in the product before.

        Common literals occur anywhere.
        """
        found = answers - _COMMON
        return found <= self._every and not found <= self._known


def _special_cases(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield new code that contains inputs of tests with their answers, or the answers alone.

    A table needs several such entries. A single condition counts if it compares several parts of a call
    that tests make. Otherwise the conditions of a function are weighed together by their distinctive
    literals. Answers alone count in an iterator, which gives them out in the order of the tests, in a
    function that looks at none of its arguments, and in one that computed its result before.
    """
    tests = _TestLiterals(changes)
    for before, module in changes.python(*WORK):
        if module is None or is_script(module.path):
            continue
        conditions: dict[str, list[tuple[Site, frozenset[str], frozenset[str]]]] = defaultdict(list)
        untested: Counter[str] = Counter()
        for site in module.sites(before):
            node = site.node
            if pairs := _pairs(node):
                entries = [
                    (_constant_literals(key, module), _constant_literals(value, module))
                    for key, value in pairs
                ]
                # A key of several arguments, some of them numbers, is a call rather than a name.
                is_call = [isinstance(key, ast.Tuple) for key, _ in pairs]
                matching = [
                    asked | answer if call and any(map(_NUMBER.fullmatch, asked)) else asked
                    for call, (asked, answer) in zip(is_call, entries, strict=True)
                    if tests.hold(asked, answer)
                ]
                distinctive = min(len(matching), sum(map(_weight, matching)))
                # A table with nothing but inputs of the tests needs fewer that are distinctive.
                is_whole = len(matching) == len(entries) > _MIN_LITERALS
                wanted = _MIN_LITERALS - is_whole
                if distinctive >= wanted and len(matching) >= _MIN_SHARE * len(entries):
                    message = f"A table has the answers to {len(matching)} inputs of the tests"
                    yield _signal("special-cases", message, site)
                continue
            if message := _answer_alone(site, module, before, tests):
                yield _signal("special-cases", message, site)
            for asked, answer in _conditions(node, module):
                compares_much = isinstance(node, ast.If) and _compared_count(node.test) >= 2
                # Words alone are the vocabulary of a state machine, a router or a converter.
                is_telling = len(asked) >= 2 and _weight(asked) + _numbers_in(asked) >= 1
                if compares_much and is_telling and tests.know_call(site.place, asked, answer):
                    shown = ", ".join(sorted(asked)[:4])
                    message = f"{site.place} recognizes a call of the tests: {shown}"
                    yield _signal("special-cases", message, site)
                elif tests.hold(asked, answer):
                    conditions[site.place].append((site, asked, answer))
                elif asked and answer and _compared_count(getattr(node, "test", None)) <= 1:
                    untested[site.place] += 1
        for place, found in conditions.items():
            # A table of the domain, written as a chain of cases, has more than the tests ask for.
            if untested[place] >= 2 and 2 * untested[place] >= len(found):
                continue
            asked = frozenset[str]().union(*(asked for _, asked, _ in found))
            given = frozenset[str]().union(*(answer for _, _, answer in found)) - _COMMON - _STATUSES
            weight = _weight(asked) + _weight(given)
            is_exact = any(
                tests.answer(place, inputs, answer)
                for _, inputs, answer in found
                if _weight(inputs) or _numbers_in(inputs - _CALENDAR)
            )
            # Inputs that are words need more than one telling answer.
            is_enough = len(asked) + len(given) >= _MIN_LITERALS and (_weight(asked) or _numbers_in(asked))
            if weight >= 2 or (weight and (is_exact or is_enough)):
                message = (
                    f"{place or 'The module'} has the answers to inputs of the tests: "
                    f"{', '.join(sorted(asked)[:4])}"
                )
                yield _signal("special-cases", message, found[0][0])


def _pairs(node: ast.AST) -> list[tuple[ast.expr | None, ast.expr]]:
    """Return the entries of a table: a dict, or a display of pairs; empty for anything else."""
    if isinstance(node, ast.Dict):
        return list(zip(node.keys, node.values, strict=True))
    rows = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    pairs = [
        (row.elts[0], row.elts[1])
        for row in rows
        if isinstance(row, ast.Tuple | ast.List) and len(row.elts) == 2
    ]
    return list(pairs) if len(pairs) == len(rows) else []


def _answer_alone(site: Site, module: Module, before: Module | None, tests: _TestLiterals) -> str | None:
    """Return a message about code that gives answers of tests without looking at the input."""
    node = site.node
    if isinstance(node, ast.Call) and name_of(node.func) == "iter" and node.args:
        answers = _constant_literals(node.args[0], module)
        if _weight(answers) >= 2 and tests.expect(answers):
            return "Answers of the tests are given out one after the other"
    if not isinstance(node, FUNCTIONS) or not _parameters(node):
        return None
    parts = [_constant_literals(each, module) for each in _returned(node)]
    answer = frozenset[str]().union(*parts)
    # A part without literals is computed.
    if all(parts) and _weight(answer) >= 1:
        earlier = before.functions.get(node.name) if before is not None else None
        # A generator computes what it yields.
        was_computed = earlier is not None and (
            any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(earlier))
            or any(fold(each) is UNKNOWN for each in _returned(earlier))
        )
        if was_computed and tests.expect(answer) and tests.call(node.name):
            return f"{node.name} no longer computes its result, but returns what the tests expect"
        # Methods and decorated functions may have to take arguments that they do not need.
        is_free = site.owner is None and not node.decorator_list
        if is_free and _is_blind(node) and tests.expect_always(node.name, answer):
            return f"{node.name} looks at no argument, and returns what the tests expect"
    return None


def _parameters(function: Function) -> set[str]:
    """Return the names of a function's parameters, except variable ones."""
    arguments = function.args
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _is_blind(function: Function) -> bool:
    """Return whether a function uses none of its arguments, except to refuse an input."""
    body = [
        each
        for each in function.body
        if not isinstance(each, ast.If) or each.orelse or not isinstance(each.body[0], ast.Raise)
    ]
    used = {each.id for part in body for each in ast.walk(part) if isinstance(each, ast.Name)}
    return _parameters(function).isdisjoint(used)


def _conditions(node: ast.AST, module: Module) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield the literals that a condition compares with, and those of its answer (empty if computed)."""
    if isinstance(node, ast.If):
        yield _compared_literals(node.test, module), _answer_literals(node.body, module) - _GUARD_VALUES
    elif isinstance(node, ast.IfExp):
        yield _compared_literals(node.test, module), _constant_literals(node.body, module)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield _literals_below(case.pattern), _answer_literals(case.body, module)


def _answer_literals(body: list[ast.stmt], module: Module) -> frozenset[str]:
    """Return the literals that statements return or assign."""
    values = [each.value for each in body if isinstance(each, ast.Return | ast.Assign)]
    return frozenset(text for each in values for text in _constant_literals(each, module))


def _compared_literals(test: ast.expr, module: Module) -> frozenset[str]:
    """Return the literals in a condition's comparisons for equality, membership, prefix or suffix.

    The left operand counts for every operator.
    """
    sides: list[ast.expr] = []
    for each in ast.walk(test):
        if isinstance(each, ast.Compare):
            single = _only_integer(each)
            if single is not None:
                sides.append(ast.Constant(single))
                continue
            compared = zip(each.ops, each.comparators, strict=True)
            is_same = (ast.Eq, ast.In, ast.Is, ast.NotEq, ast.NotIn)
            sides += [each.left, *(side for operator, side in compared if isinstance(operator, is_same))]
        elif isinstance(each, ast.Call) and name_of(each.func) in ("startswith", "endswith"):
            sides += each.args
    return frozenset(text for side in sides for text in _constant_literals(side, module))


def _only_integer(node: ast.Compare) -> int | None:
    """Return the only integer of a range such as ``998 < x < 1000``; ``None`` if it has none or several."""
    bounds = [fold(node.left), fold(node.comparators[-1])]
    is_range = len(node.ops) == 2 and all(isinstance(each, (ast.Lt, ast.LtE)) for each in node.ops)
    if not is_range or not all(isinstance(each, (int, float)) for each in bounds):
        return None
    low, high = cast("list[float]", bounds)
    first = math.ceil(low) + (isinstance(node.ops[0], ast.Lt) and low == math.ceil(low))
    last = math.floor(high) - (isinstance(node.ops[1], ast.Lt) and high == math.floor(high))
    return first if first == last else None


def _numbers_in(literals: frozenset[str]) -> int:
    return sum(_NUMBER.fullmatch(text) is not None for text in literals)


def _compared_count(test: ast.expr | None) -> int:
    """Return the number of different values that a condition compares; 0 without one."""
    if test is None:
        return 0
    compared = [each for each in ast.walk(test) if isinstance(each, ast.Compare)]
    lefts = {
        ast.unparse(each.left) for each in compared if isinstance(each.ops[0], ast.Eq | ast.Is | ast.In)
    }
    return max(
        [len(lefts), *(len(each.left.elts) for each in compared if isinstance(each.left, ast.Tuple))]
    )


def _constant_literals(node: ast.expr | None, module: Module) -> frozenset[str]:
    """Return the literals of a constant expression; empty if any part of it is computed."""
    value = fold(node, module.constants)
    if value is not UNKNOWN:
        return frozenset(_scalars(value))
    inner: list[ast.expr] = list(getattr(node, "elts", ()))
    if isinstance(node, ast.Dict):
        inner = [each for each in (*node.keys, *node.values) if each is not None]
    elif isinstance(node, ast.Call) and name_of(node.func)[:1].isupper():
        # A literal in a wrapper, such as Decimal("1.5").
        inner = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict | ast.List | ast.Tuple):
        inner = node.value.values if isinstance(node.value, ast.Dict) else node.value.elts
    elif isinstance(node, ast.IfExp):
        inner = [node.body, node.orelse]
    found = [_constant_literals(each, module) for each in inner]
    return frozenset[str]().union(*found) if all(found) else frozenset()


def _scalars(value: Any) -> Iterator[str]:
    """Yield the ``repr`` of all scalars in nested lists, tuples and dicts."""
    if isinstance(value, list | tuple | dict):
        items: list[Any] = [*value, *(value.values() if isinstance(value, dict) else ())]  # pyright: ignore
        for each in items:
            yield from _scalars(each)
    else:
        yield repr(value)


def _literals_below(node: ast.AST) -> frozenset[str]:
    """Return all scalar literals of a tree, as ``repr``."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value is not ...:
            found.add(repr(each.value))
        elif isinstance(each, ast.UnaryOp | ast.BinOp):
            value = fold(each)
            if isinstance(value, int | float | str):
                found.add(repr(value))
    return frozenset(found)


def _rows(content: bytes) -> Iterator[frozenset[str]]:
    """Yield the scalars of each row of a data file, as ``repr``.

    Rows are the lists and objects of JSON, or the lines with their cells. A cell with a number also yields
    the number.
    """
    text = content.decode("utf-8", "replace")
    try:
        with usual_depth():
            pending: list[Any] = [[json.loads(text)]]  # in a list, as the document may be a mere number
    except (ValueError, RecursionError):
        pending = [[line, *re.split(r"[,;\t]", line)] for line in text.splitlines()[:20_000]]
    while pending:
        row = pending.pop()
        cells: list[Any] = [*row, *row.values()] if isinstance(row, dict) else [*row]  # pyright: ignore
        pending += [cell for cell in cells if isinstance(cell, list | dict)]
        scalars = [cell for cell in cells if not isinstance(cell, list | dict)]
        numbers = [
            float(cell) for cell in scalars if isinstance(cell, str) and _NUMBER.fullmatch(cell.strip())
        ]
        whole = [int(each) for each in numbers if each.is_integer()]
        yield frozenset(map(repr, [*scalars, *numbers, *whole]))


def _weight(literals: frozenset[str]) -> int:
    """Return the number of distinctive literals; words and common numbers occur anywhere."""
    return sum(_WORD.fullmatch(text) is None for text in literals - _COMMON)
