"""Signals in product code that was added: code that passes the tests without doing the work.

Each detector takes a :class:`Site` (a node of the syntax tree that is new) and returns a message, or
``None``. :func:`special_cases` needs the literals of all tests and is a pass of its own. Each of these
signs occurred in real cheats and in no honest change. A pattern that honest code uses, too, is no signal,
which is why most detectors have exceptions.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.changes import (
    PYTHON_JUDGES,
    SERVES_TESTS,
    WORK,
    file_signal,
)
from pytest_planverify.guards.hygiene.source import (
    UNKNOWN,
    Module,
    Site,
    dotted,
    fold,
    name_of,
    returned,
    truth,
)
from pytest_planverify.guards.hygiene.special_cases import special_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
    yield from special_cases(changes)


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
    r"|unittest(\.case)?\.(SkipTest|_\w+)"
)


def _ends_process(site: Site, changes: TreeDifferences) -> str | None:
    """Find calls that end the process, and with it pytest, before it can report a failure."""
    meaning = site.meaning(site.node)
    # Forked children have to exit this way, or they would run the rest of their parent's program.
    if meaning not in _ENDS_AT_ONCE or (site.function is not None and _mentions_fork(site.function)):
        return None
    return f"{meaning} ends the process"


@lru_cache(maxsize=16)  # once for all findings in a function, which may be long
def _mentions_fork(function: ast.AST) -> bool:
    return "fork" in ast.unparse(function)


def _skips_its_test(site: Site, changes: TreeDifferences) -> str | None:
    """Find product code that skips, xfails or ends the test that calls it."""
    if isinstance(site.node, ast.Attribute | ast.Name) and not SERVES_TESTS.search(site.module.path):
        meaning = site.meaning(site.node)
        return f"Product code uses {meaning}" if _LEAVES_TEST.fullmatch(meaning) else None
    return None


# -- equality ----------------------------------------------------------------------------------------

_EQUALS = ("__eq__", "__ne__")
_APPROXIMATE = re.compile(
    r"\b(isclose|round|startswith|endswith|approx|any|quantize|sorted|set|strip|sum|abs)\(|[<>]|\bin\b|\[[^\[\]:]*:"
)
"""Comparisons of parts, or with a tolerance: unequal values can satisfy them."""
_COMPARES = re.compile(r"==|!=|__(eq|ne)__|not (\w+) < (\w+) and \(?not \3 < \2")
_VALUES = re.compile(
    r"(builtins\.|decimal\.|datetime\.|fractions\.|collections\.)*(int|float|str|bytes|bool|complex|list|dict"
    r"|tuple|set|frozenset|Decimal|Fraction|date|datetime|UserString|UserDict|UserList)"
)
_SIZES = re.compile(r"\b(len|type|bool)\(\w+\) == \1\(\w+\)")
_ASKS_FOR_KIND = frozenset({"isinstance", "type", "hasattr"})


def _always_equal(site: Site, changes: TreeDifferences) -> str | None:
    """Find an equality that holds for every value, or for unequal ones."""
    node, owner = site.node, site.owner
    if site.meaning(node) in ("unittest.mock.ANY", "mock.ANY"):
        return f"{site.meaning(node)} equals everything"
    for name, function in _comparisons(node, site.module):
        # A class without a name is made by type(), perhaps of a kind of number or text.
        is_value = owner is None or any(_VALUES.fullmatch(site.meaning(base)) for base in owner.bases)
        if problem := _equality_problem(function, site, is_eq=name == "__eq__", is_value=is_value):
            return f"{owner.name}.{name} {problem}" if owner is not None else f"{name} {problem}"
    if isinstance(node, ast.Assign) and any(".__eq__." in ast.unparse(each) for each in node.targets):
        return "The equality of a mock is replaced"
    return None


def _equality_problem(
    function: ast.FunctionDef | ast.Lambda, site: Site, *, is_eq: bool, is_value: bool
) -> str | None:
    """Return how a comparison treats unequal values as equal, ``None`` if it does not.

    Tests compare with plain values. So a class is free in how it compares its own kind, or attributes that
    plain values do not have; if it compares the other operand itself, it must do so exactly. A kind of
    number, text or list (``is_value``) must not be approximate beside that.
    """
    owner, results, nodes = site.owner, returned(function), list(ast.walk(function))
    used = {each.id for each in nodes if isinstance(each, ast.Name)}
    is_of_kind = owner is not None and owner.name in used
    agrees = [truth(each) is is_eq for each in results]
    defers = ["super()" in ast.unparse(each) for each in results]
    # A marker class without state equals its own kind and returns NotImplemented for others.
    is_marker = is_of_kind and "NotImplemented" in used and not _has_state(owner)
    if results and agrees[-1] and all(map(max, agrees, defers)) and not is_marker:
        return "is equal to everything"
    operands = [each.arg for each in function.args.args]
    is_computed = bool(results) and all(fold(each) is UNKNOWN for each in results)
    if not is_eq or is_of_kind or len(operands) != 2 or not is_computed:
        return None
    if not {*operands} <= used:
        return "is equal to everything"
    # Whether the other operand itself is used, and not only its attributes and its kind.
    apart = [each.value for each in nodes if isinstance(each, ast.Attribute)]
    for each in nodes:
        if isinstance(each, ast.Call) and name_of(each.func) in _ASKS_FOR_KIND:
            apart += each.args
    is_whole = any(name_of(each) == operands[1] and each not in apart for each in nodes)
    learns = any(isinstance(each, ast.Assign) and name_of(each.value) == operands[1] for each in nodes)
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    # Another method may do the comparison.
    called = {name_of(each.func) for each in nodes if isinstance(each, ast.Call)}
    body = [*body, *(site.module.functions[each] for each in called & site.module.functions.keys())]
    compares = _COMPARES.search(_SIZES.sub("", " ".join(map(ast.unparse, body))))
    is_rough = not compares or (is_value and _APPROXIMATE.search(" ".join(map(ast.unparse, results))))
    return "treats different values as equal" if is_whole and (is_rough or learns) else None


def _has_state(owner: ast.ClassDef | None) -> bool:
    """Return whether a class has fields, or uses attributes of its instance that its body does not bind."""
    if owner is None:
        return False
    fields = [each.annotation for each in owner.body if isinstance(each, ast.AnnAssign)]
    bound = [each for each in owner.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    own = {getattr(each, "name", "") for each in owner.body}
    own |= {each.id for part in bound for each in ast.walk(part) if isinstance(each, ast.Name)}
    # Others may be set by a base class, or in other ways than by an assignment.
    parts = (each for each in ast.walk(owner) if isinstance(each, ast.Attribute))
    used = (each for each in parts if name_of(each.value) == "self")
    return any(not re.search("ClassVar|Final", ast.unparse(each)) for each in fields) or any(
        isinstance(each.ctx, ast.Store) or not (each.attr in own or each.attr.startswith("__"))
        for each in used
    )


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


# -- asks for tests ----------------------------------------------------------------------------------

_TEST_NAME = re.compile(r"_?py[._]?test|unittest|planverify|conftest|pluggy", re.IGNORECASE)
"""Names of test frameworks, of their modules and of their environment variables."""
_STAND_INS = frozenset({"DontReadFromInput", "EncodedFile", "CaptureIO", "LogCaptureHandler"})
"""Classes of pytest whose instances take the place of the standard streams and of handlers of the log."""
_TEST_MODULE = re.compile(r"(^|\.)(tests?|test_\w+|\w+_test)(\.|$)")
_PLACES = re.compile(
    r"(sys\.(modules|argv|orig_argv|path|meta_path)|os\.(environb?|getenv))(\.\w+)*"
    r"|importlib\.util\.find_spec|pkgutil\.find_loader"
    r"|/proc/(self|\d+)/(cmdline|environ)|__main__\.__(file|spec|package|dict)__"
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
        case ast.BinOp(op=ast.BitAnd()):  # of sets of names
            operands, expression = [node.left, node.right], node
        case _:
            return None
    words = [word for each in operands for word in _words(each, site.module)]
    if stand_in := _STAND_INS.intersection(words):
        return f"{min(stand_in)} is searched for, a class of pytest"
    if isinstance(node, ast.Compare) and "len(sys.modules)" in map(ast.unparse, operands):
        return "The loaded modules are counted"
    if not words:
        return None
    # The searched place is in the same expression, or a loop of the same function iterates over it.
    place = next(filter(None, _places_in([expression], site.module)), "")
    is_search = is_search or (isinstance(node, ast.Compare) and not changes.runs_alone(site.module.path))
    if not place and is_search:
        own, loops = _places_in([node], site.module), _places_of_loops(site.module, site.function)
        place = own[0] or loops[0] or own[1] or loops[1]
    found = next((word for word in words if place and _is_test_word(word, place, site)), None)
    return f"{place} is searched for {found!r}" if found is not None else None


@lru_cache(maxsize=16)  # once for all comparisons in a function, which may be thousands
def _places_of_loops(module: Module, function: ast.AST | None) -> tuple[str, str]:
    """Return the places that loops of a function iterate over, else those of a module's."""
    around = ast.walk(function or module.tree)
    return _places_in(
        [each.iter for each in around if isinstance(each, ast.For | ast.comprehension)], module
    )


def _places_in(nodes: Sequence[ast.AST], module: Module) -> tuple[str, str]:
    """Return the searched place (loaded modules, arguments or environment), and one by attribute's name.

    Each is empty if there is none.
    """
    below = [each for node in nodes for each in ast.walk(node)]
    meanings = (
        str(each.value) if isinstance(each, ast.Constant) else dotted(each, module.aliases)
        for each in below
    )
    found = next((each for each in meanings if _PLACES.fullmatch(each)), "")
    # The module of an object, such as the stream that pytest puts in place of standard output.
    names = (each.attr for each in below if isinstance(each, ast.Attribute))
    return found, next((name for name in names if name in ("cmdline", "__module__")), "")


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
    if decides or _scope_decides_by_frame(site.function or site.module.tree):
        return f"{site.place or 'The module'} depends on its caller"
    return None


@lru_cache(maxsize=16)
def _scope_decides_by_frame(scope: ast.AST) -> bool:
    return any(map(_decides_by_frame, ast.walk(scope)))


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

_LONGEST_PATH = 500
_TEST_SOURCE = re.compile(
    r"(^|/)(test_[\w*]+|[\w*]+_test|conftest)\.(py|\*)$|(^|/)test_\*$|(^|/)\.planverify(/|$)"
)
"""Files of tests, and the verifier's records of them."""
_TEST_FOLDER = re.compile(r"(^|/)(tests?|testing)(/|$)")
_LISTED_TEST_FOLDER = re.compile(r"^(\.{1,2}/|\*\*/)*tests?(/|$)")
_IMPORTS = frozenset({"import_module", "__import__", "run_module"})
_FILE_SEARCHES = frozenset({"glob", "iglob", "rglob", "walk", "scandir", "listdir", "Path", "open"})
_DECODES = re.compile(
    r"b64decode|b85decode|a85decode|b32decode|fromhex|decompress|rot.?13|unhexlify|marshal"
)


def _reads_tests(site: Site, changes: TreeDifferences) -> str | None:
    """Find imports of tests, and paths of tests, plans or test data."""
    node = site.node
    # Scripts may run the tests, and docstrings and error messages refer people to them.
    if site.is_spoken or changes.runs_alone(site.module.path):
        return None
    if isinstance(node, ast.Import | ast.ImportFrom):
        # Without the dots of a relative import; what is imported from a package may be a module.
        start = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names = [".".join([*start, each.name]) for each in node.names]
        modules = names if isinstance(node, ast.Import) else [] if node.level else start
        for name in [*start, *names]:
            parts = name.split(".")
            is_named = {"tests", "conftest"} & set(parts) or parts[-1].startswith("test_")
            if (is_named and name in modules) or _is_test(f"{'/'.join(parts)}.py", site, changes):
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
            path = path.strip(".").replace(".", "/")
            if _is_test(f"{path}.py", site, changes):
                return f"Product code imports {value}"
            path = path if _TEST_MODULE.search(str(value)) else ""
        is_name = name_of(node.func) in ("glob", "rglob") and path.isprintable() and "*" not in path
        if _LISTED_TEST_FOLDER.search(path) or (is_name and path and _finds_data(path, changes)):
            return f"Product code searches {value!r}"
    elif isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
        value = fold(node, site.module.constants)
        text = value.replace("\\", "/").removeprefix("./") if isinstance(value, str) else ""
        if "*" in text and "/" in text and _finds_data(text, changes):
            return f"Product code searches {value!r}"
        is_judge = _TEST_SOURCE.search(text) or text in changes.grants.plans or _is_data(text, changes)
        if is_judge or _is_test(text, site, changes):
            return f"Product code names {value!r}"
    return None


def _is_test(path: str, site: Site, changes: TreeDifferences) -> bool:
    """Return whether a path, from the folder of the module or one above it, is that of a test file."""
    if "." not in path or len(path) > _LONGEST_PATH:  # as most texts, of which a module may have thousands
        return False
    around = (str(folder / path) for folder in PurePosixPath(site.module.path).parents)
    judges = (JudgeKind.TEST, JudgeKind.CONFTEST)
    return any(each in changes.new and changes.kind(each) in judges for each in around)


def _finds_data(pattern: str, changes: TreeDifferences) -> bool:
    """Return whether a pattern of paths matches data of tests, and no other file."""

    plain = pattern.lstrip("./")

    def matches(paths: Iterable[str]) -> bool:
        return any(PurePosixPath(path).match(plain) for path in paths)

    # The data first: the product may have thousands of patterns and files. An empty pattern is an error.
    return (
        bool(plain)
        and matches(changes.data & changes.new.keys())
        and not matches(changes.new.keys() - changes.data)
    )


def _is_data(text: str, changes: TreeDifferences) -> bool:
    """Return whether a text is the path of test data, or its end with a folder."""
    # The product may have a file of the same name elsewhere.
    end = f"/{text.lstrip('./')}"
    return "/" in text.strip("/") and any(
        f"/{path}".endswith(end) and _TEST_FOLDER.search(posixpath.dirname(path) + "/")
        for path in changes.data
    )


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
_FRAMEWORKS = frozenset({"pytest", "_pytest", "unittest"})
_OFTEN_REPLACED = frozenset({"json.JSONEncoder.default", "builtins.print", "builtins.open", "builtins._"})


def _replaces_library(site: Site, changes: TreeDifferences) -> str | None:
    """Find assignments to functions of the libraries that tests rely on."""
    node = site.node
    names: list[str] = []
    relied_on = _RELIED_ON if SERVES_TESTS.search(site.module.path) else _RELIED_ON | _FRAMEWORKS
    if isinstance(node, ast.Assign):
        names = [site.meaning(each) for each in node.targets if isinstance(each, ast.Attribute)]
    elif isinstance(node, ast.Call) and name_of(node.func) == "setattr" and len(node.args) > 2:
        names = [f"{site.meaning(node.args[0])}.{fold(node.args[1])}"]
    for name in names:
        top, _, rest = name.partition(".")
        found: Any = import_module(top) if top in relied_on else None
        for part in rest.split("."):
            found = getattr(found, part, None)
        # Only what exists: a new attribute changes nothing for others.
        if top in relied_on and name not in _OFTEN_REPLACED and callable(found):
            return f"{name} is replaced, on which tests rely"
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
