"""Hard signals in changed sources: code that was made to please its judge.

Each has been seen in real cheats and in no honest change; what only may be a trick is no signal.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from typing import TYPE_CHECKING, cast

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.files import SERVES_TESTS, is_script
from pytest_planverify.guards.hygiene.hooks import hook_findings
from pytest_planverify.guards.hygiene.judges import PYTHON_JUDGES
from pytest_planverify.guards.hygiene.signals import SignalFinding
from pytest_planverify.guards.hygiene.source import (
    UNKNOWN,
    Site,
    dotted,
    fold,
    is_always_false,
    is_always_true,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from pytest_planverify.guards.hygiene.changes import TreeDifferences
    from pytest_planverify.guards.hygiene.source import Module

    Hits: TypeAlias = Iterator[tuple[str, str, ast.AST]]
    """Signs, what is said of each, and where it stands."""

WORK = (JudgeKind.PRODUCT, JudgeKind.START_UP, JudgeKind.ARTIFACT)


def product_findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    """Yield the tricks that came with the changed sources; what only moved is no news."""
    modules = [
        (changes.module(path, now=False), changes.module(path, now=True))
        for path in changes.of_kind(*WORK, *PYTHON_JUDGES)
        if path.endswith(".py")
    ]
    had = Counter(
        (finding.sign, finding.after)
        for before, _ in modules
        if before is not None
        for finding in _tricks(before, None, changes)
    )
    for before, now in modules:
        for finding in _tricks(now, before, changes) if now is not None else ():
            if had[finding.sign, finding.after]:
                had[finding.sign, finding.after] -= 1
            else:
                yield finding


def _tricks(module: Module, before: Module | None, changes: TreeDifferences) -> Iterator[SignalFinding]:
    is_judge = changes.kind(module.path) in PYTHON_JUDGES
    scripts = {path for reach in changes.grants.todos for path in reach.scripts}
    runs_alone = is_script(module.path) or module.path in scripts
    sites = list(module.sites(before))
    hits = list(_exits(sites, module))
    if not is_judge:
        yield from hook_findings(before, module)
        hits += [*_speaks_to_pytest(sites, module), *_equalities(sites, module), *_written_answers(sites)]
        hits += [*_asks_for_tests(sites, module, runs_alone), *_reads_call_stack(sites, module)]
        hits += [] if runs_alone else _reads_tests(sites, module, changes)
    for sign, said, node in hits:
        line, after = getattr(node, "lineno", None), module.line(node)
        yield SignalFinding(sign=sign, message=said, path=module.path, line=line, after=after)


# -- ends the process, or the test -------------------------------------------------------------------

_ENDS_AT_ONCE = frozenset({"os._exit", "posix._exit", "os.abort", "pytest.exit", "_pytest.outcomes.exit"})
_KILLS = frozenset({"os.kill", "os.killpg", "signal.raise_signal", "signal.pthread_kill"})
_LEAVES_TEST = re.compile(
    r"(pytest|_pytest\.outcomes)\.(skip|xfail|fail|importorskip|Skipped|XFailed|Exit)(\.Exception)?"
    r"|unittest(\.case)?\.SkipTest"
)
_COMMAND_LINE = re.compile(r"(^|_)(main|cli|app|command|commands|console|run_cli|entry_?point)(_|$)")
_COMMAND_MODULE = re.compile(r"(^|/)(__main__|_?cli|cmd|commands?|console|main|\w*_cli|\w*script)\.py$")
_COMMAND_PARTS = re.compile(r"command|click|callback|Action|Parser")


def _exits(sites: list[Site], module: Module) -> Hits:
    """Yield what ends the process; a ``sys.exit`` is seen by pytest, and makes no test green."""
    for site in sites:
        node = site.node
        if isinstance(node, ast.Call | ast.Attribute | ast.Name):
            meaning = dotted(node.func if isinstance(node, ast.Call) else node, module.aliases)
            forks = site.function is not None and "fork" in ast.unparse(site.function)
            kills = meaning in _KILLS and isinstance(node, ast.Call) and "getpid" in ast.unparse(node)
            if kills or (meaning in _ENDS_AT_ONCE and not forks):
                yield "exit", f"{meaning} ends the process", node


def _is_command_line(site: Site, module: Module) -> bool:
    if site.in_main or _COMMAND_MODULE.search(module.path):
        return True
    if site.function is None:
        return False
    around = [*site.function.decorator_list, *(site.owner.bases if site.owner else ())]
    return "argparse" in module.aliases or bool(
        _COMMAND_LINE.search(site.function.name)
        or _COMMAND_PARTS.search(" ".join(ast.unparse(each) for each in around))
    )


def _speaks_to_pytest(sites: list[Site], module: Module) -> Hits:
    """Yield product code that skips the test that runs it, or gives what equals everything."""
    serves_tests = SERVES_TESTS.search(module.path) is not None
    for node in (site.node for site in sites):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = dotted(node, module.aliases)
            if meaning in ("unittest.mock.ANY", "mock.ANY"):
                yield "always-equal", f"{meaning} equals everything", node
            elif _LEAVES_TEST.fullmatch(meaning) and not serves_tests:
                yield "skips-its-test", f"Product code uses {meaning}", node


# -- equality ----------------------------------------------------------------------------------------

_VALUES = re.compile(
    r"(builtins\.|decimal\.|datetime\.|fractions\.|collections\.)*(int|float|str|bytes|bool|complex|list|dict"
    r"|tuple|set|frozenset|Decimal|Fraction|date|datetime|UserString|UserDict|UserList)"
)
_ROUGH_CALLS = frozenset({"isclose", "round", "startswith", "endswith", "approx", "any", "quantize"})
_ROUGH_OPERATORS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In)


def _equalities(sites: list[Site], module: Module) -> Hits:
    """Yield comparisons that agree, as they are written; those that are made otherwise a run finds."""
    for site in sites:
        node = site.node
        if not isinstance(node, ast.FunctionDef) or node.name not in ("__eq__", "__ne__"):
            continue
        name = f"{site.owner.name}.{node.name}" if site.owner else node.name
        if _always_agrees(node, site.owner):
            yield "always-equal", f"{name} agrees with everything", node
        elif site.owner and node.name == "__eq__" and _is_loose(node, site.owner, module):
            yield "loose-equality", f"{name} takes what differs for equal", node


def _always_agrees(node: ast.FunctionDef, owner: ast.ClassDef | None) -> bool:
    returned = _returned(node)
    if returned and all(_says(each, node) for each in returned):
        return True
    if node.name == "__ne__" or not returned:
        return False
    if is_always_true(returned[-1]) and all(
        is_always_true(each) or "super()" in ast.unparse(each) for each in returned
    ):
        return True  # some path compares, and all the others say yes
    names = {argument.arg for argument in node.args.args}
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    asks_own_kind = owner is None or f", {owner.name})" in ast.unparse(node)
    is_constant = any(fold(each) is not UNKNOWN for each in returned)
    return len(names) == 2 and not is_constant and not names <= used and not asks_own_kind


def _is_loose(node: ast.FunctionDef, owner: ast.ClassDef, module: Module) -> bool:
    """Return whether the other side is only one of several, or a kind of value is compared roughly."""
    other = node.args.args[-1].arg
    for each in _returned(node):
        if (
            isinstance(each, ast.Compare)
            and isinstance(each.ops[0], ast.In)
            and name_of(each.left) == other
        ):
            return True
    if not any(_VALUES.fullmatch(dotted(base, module.aliases)) for base in owner.bases):
        return False
    return any(
        isinstance(each, ast.Slice)
        or (isinstance(each, ast.Compare) and isinstance(each.ops[0], _ROUGH_OPERATORS))
        or (isinstance(each, ast.Call) and name_of(each.func) in _ROUGH_CALLS)
        for each in ast.walk(node)
    ) or not any("==" in ast.unparse(each) or "__eq__" in ast.unparse(each) for each in _returned(node))


def _returned(node: ast.AST) -> list[ast.expr]:
    """Return what a function gives, but for what it gives where an exception was caught."""
    handlers = (each for each in ast.walk(node) if isinstance(each, ast.ExceptHandler))
    caught = {each for handler in handlers for each in ast.walk(handler)}
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return) and each.value is not None and each not in caught
        and name_of(each.value) != "NotImplemented"
    ]  # fmt: skip


def _says(value: ast.expr, function: ast.FunctionDef) -> bool:
    """Return whether a comparison says that all is equal."""
    is_equal = function.name == "__eq__"
    if (is_always_true if is_equal else is_always_false)(value):
        return True
    if isinstance(value, ast.Call) and len(value.args) == 2 and name_of(value.func) == "__eq__":
        return is_equal and ast.unparse(value.args[0]) == ast.unparse(value.args[1])
    names = [argument.arg for argument in function.args.args]
    return not is_equal and ast.unparse(value) == f"not {names[0]} == {names[-1]}"


# -- asks for tests ----------------------------------------------------------------------------------

_FRAMEWORK = re.compile(
    r"(pytest_)?planverify|_?py\.?test([._]\w+)*|unittest(\.\w+)*|_pytest[.\w]*|conftest|pluggy|nose2?"
)
_VARIABLE = re.compile(
    r"_?(PYTEST|PLANVERIFY)(_[A-Z0-9_]*)?|PY_TEST|_called_from_(py)?test|TOX_ENV_NAME|UNITTEST"
)
_TEST_MODULE = re.compile(r"(^|\.)(tests?|test_\w+|\w+_test)(\.|$)")
_PLACES = re.compile(r"(sys\.(modules|argv|orig_argv|path|meta_path)|os\.(environb?|getenv))(\.\w+)*")
_FINDERS = re.compile(
    r"importlib\.(util\.find_spec|import_module|find_loader|metadata\.(version|distribution))"
    r"|pkgutil\.find_loader|hasattr|getattr|__import__|os\.getenv"
)
_SEARCHES = frozenset(
    {"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "findall",
     "__contains__", "intersection", "isdisjoint"}
)  # fmt: skip


def _asks_for_tests(sites: list[Site], module: Module, runs_alone: bool) -> Hits:
    for site in sites:
        node = site.node
        place, asked = "", list[ast.expr]()
        is_search = False
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
            place = _place_in(node, module)
            if not place and not runs_alone and not _is_command_line(site, module):
                place = _place_around(site, module)
        elif isinstance(node, ast.Call):
            meaning = dotted(node.func, module.aliases)
            is_search = name_of(node.func) in _SEARCHES
            if is_search or _FINDERS.fullmatch(meaning) or _PLACES.fullmatch(meaning):
                asked = node.args
                place = _place_in(node, module) or (_place_around(site, module) if is_search else "")
        elif isinstance(node, ast.Subscript):
            place = dotted(node.value, module.aliases)
            asked = [node.slice] if _PLACES.fullmatch(place) else []
        for word in (word for each in asked for word in _words(each, module)):
            if _is_test_word(word, place) or (is_search and re.search("py_?test|unittest", word)):
                yield "asks-for-tests", f"{place or 'Something'} is searched for {word!r}", node
                break


def _place_in(node: ast.AST, module: Module) -> str:
    """Return the place that an expression searches: loaded modules, arguments, the environment."""
    for each in ast.walk(node):
        meaning = dotted(each, module.aliases) if isinstance(each, ast.Attribute | ast.Name) else ""
        if _PLACES.fullmatch(meaning):
            return meaning
    return ""


def _place_around(site: Site, module: Module) -> str:
    around = ast.walk(site.function or module.tree)
    loops = (each.iter for each in around if isinstance(each, ast.For | ast.comprehension))
    return next((place for each in loops if (place := _place_in(each, module))), "")


def _words(node: ast.expr, module: Module) -> list[str]:
    value = fold(node, module.constants)
    values = cast("list[object]", list(value) if isinstance(value, list | tuple) else [value])  # pyright: ignore
    texts = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in values]
    return [each for each in texts if isinstance(each, str)]


def _is_test_word(word: str, place: str) -> bool:
    """Return whether a word stands for tests where modules, variables or arguments are searched."""
    if _FRAMEWORK.fullmatch(word) or _VARIABLE.fullmatch(word):
        return True
    if place.startswith("sys."):
        wholes = ("pytest", "_pytest", "unittest", "conftest", "py.test", "pluggy")
        part = len(word) >= 4 and any(word in whole for whole in wholes)
        return part or "pytest" in word or bool(_TEST_MODULE.search(word))
    return place.startswith("os.") and len(word) >= 3 and word in "PYTEST_CURRENT_TEST PYTEST_XDIST_WORKER"


# -- the call stack ----------------------------------------------------------------------------------

_FRAMES = re.compile(
    r"sys\.(_getframe\w*|_current_frames|_current_exceptions|call_tracing)"
    r"|inspect\.(stack|currentframe|getouterframes|getinnerframes|trace|getframeinfo)"
    r"|traceback\.(extract_stack|walk_stack|format_stack|StackSummary\.extract|print_stack)"
)
_ALWAYS_DECIDE = re.compile(r"gc\.get_(referrers|objects)|(sys|threading)\.set(trace|profile)\w*")
"""They look into memory, or watch every call."""
_FRAME_PARTS = frozenset({"f_back", "tb_frame", "gi_frame", "cr_frame"})
_TELLS = re.compile(
    r"\b(co_filename|co_name|co_qualname|f_locals|f_lineno|f_back|filename|function|lineno|name|code_context|line)\b"
)
_LOGS = re.compile(r"log|warn|debug|trace|repr|report|caller_info|stacklevel|leak|profile", re.IGNORECASE)


def _reads_call_stack(sites: list[Site], module: Module) -> Hits:
    for site in sites:
        node = site.node
        meaning = dotted(node.func, module.aliases) if isinstance(node, ast.Call) else ""
        is_part = isinstance(node, ast.Attribute) and node.attr in _FRAME_PARTS
        decides = _ALWAYS_DECIDE.fullmatch(meaning)
        if not (decides or is_part or _FRAMES.fullmatch(meaning)) or _LOGS.search(site.place):
            continue
        if decides or _tells_by_test(site.function or module.tree):
            yield "reads-call-stack", f"{site.place or 'The module'} decides by who called it", node


def _tells_by_test(scope: ast.AST) -> bool:
    """Return whether what frames tell is taken from them, or a condition asks for it."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Attribute) and each.attr in ("f_locals", "co_consts"):
            return True
        tests: list[ast.expr] = []
        if isinstance(each, ast.If | ast.IfExp | ast.While):
            tests = [each.test]
        elif isinstance(each, ast.comprehension):
            tests = each.ifs
        elif isinstance(each, ast.Compare) or (
            isinstance(each, ast.Call) and getattr(each.func, "attr", "") in _SEARCHES | {"get"}
        ):
            tests = [each]
        if any(_TELLS.search(ast.unparse(test)) for test in tests):
            return True
    return False


# -- reads the tests ---------------------------------------------------------------------------------

_TEST_SOURCE = re.compile(r"(^|/)(test_[\w*]+|[\w*]+_test|conftest)\.(py|\*)$|(^|/)\.planverify(/|$)")
"""Tests, and what the verifier records of them."""
_TEST_FOLDER = re.compile(r"(^|/)(tests?|testing)(/|$)")
_SAID_BY_TESTS = re.compile(r"\bdef test_|\bassert .*==|parametrize\(|^test_\w{6,}")
_LEAST_NAME = 8


def _reads_tests(sites: list[Site], module: Module, changes: TreeDifferences) -> Hits:
    """Yield where product code reads the tests; docstrings and what an error says name them as well."""
    spoken = {
        each
        for site in sites
        if isinstance(site.node, ast.Raise) or (
            isinstance(site.node, ast.Expr) and isinstance(site.node.value, ast.Constant)
        )
        for each in ast.walk(site.node)
    }  # fmt: skip
    for site in sites:
        node = site.node
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            names = (
                [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
            for name in names:
                parts = name.split(".")
                if {"tests", "conftest"} & set(parts) or parts[-1].startswith("test_"):
                    yield "reads-tests", f"Product code imports {name}", node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if fold(node.right) in ("tests", "test"):
                yield "reads-tests", "Product code makes a path to the tests", node
        elif isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and node not in spoken:
            value = fold(node, module.constants)
            text = value.replace("\\", "/").removeprefix("./") if isinstance(value, str) else ""
            if _TEST_SOURCE.search(text) or text in changes.grants.plans or _is_data(text, changes):
                yield "reads-tests", f"Product code names {value!r}", node
            elif _SAID_BY_TESTS.search(text):
                yield "reads-tests", "Product code looks for what tests say", node


def _is_data(text: str, changes: TreeDifferences) -> bool:
    """Return whether a text is the path of data of the tests, or a name that says enough."""
    data = [path for path in changes.data if _TEST_FOLDER.search(posixpath.dirname(path) + "/")]
    if "/" in text.strip("/"):
        return any(path == text or path.endswith(f"/{text.lstrip('./')}") for path in data)
    says_enough = len(text) >= _LEAST_NAME and "." in text
    return says_enough and any(posixpath.basename(path) == text for path in data)


# -- answers that are counted, and code that is hidden -----------------------------------------------

_RUNS = ("exec", "eval", "compile")
_DECODES = re.compile(
    r"b64decode|b85decode|a85decode|b32decode|fromhex|decompress|rot.?13|unhexlify|marshal"
)


def _written_answers(sites: list[Site]) -> Hits:
    for site in sites:
        node = site.node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and site.function is not None:
            counted = {
                ast.unparse(each.target)
                for each in ast.walk(site.function)
                if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Attribute)
            }
            asked = isinstance(node.test.ops[0], ast.Eq | ast.In) and ast.unparse(node.test.left) in counted
            given = [fold(each) for each in _returned(ast.Module(body=node.body, type_ignores=[]))]
            if asked and given and all(value is not UNKNOWN and value is not None for value in given):
                yield "answers-by-count", "The answer to so many calls is written down", node
        elif (
            isinstance(node, ast.Call)
            and name_of(node.func) in _RUNS
            and _DECODES.search(ast.unparse(node))
        ):
            yield "runs-hidden-code", "Code is run that is written in a code", node
