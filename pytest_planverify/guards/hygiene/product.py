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
from pytest_planverify.guards.hygiene.signals import Finding
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    UNKNOWN,
    Site,
    dotted,
    fold,
    is_always_false,
    is_always_true,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from pytest_planverify.guards.hygiene.changes import Changes
    from pytest_planverify.guards.hygiene.source import Module

    Hits: TypeAlias = Iterator[tuple[str, str, ast.AST]]
    """Signs, what is said of each, and where it stands."""
    Detector: TypeAlias = Callable[[list[Site], Module, Changes, bool], Hits]

WORK = (JudgeKind.PRODUCT, JudgeKind.START_UP, JudgeKind.ARTIFACT)


def product_findings(changes: Changes) -> Iterator[Finding]:
    """Yield the tricks that came with the changed sources; what only moved is no news."""
    files = [path for path in changes.of_kind(*WORK, *PYTHON_JUDGES) if path.endswith(".py")]
    if not files:
        return
    had = Counter(
        (finding.sign, finding.after)
        for path in files
        if (module := changes.module(path, now=False)) is not None
        for finding in _tricks(module, None, changes)
    )
    for path in files:
        now = changes.module(path, now=True)
        for finding in _tricks(now, changes.module(path, now=False), changes) if now is not None else ():
            if had[finding.sign, finding.after]:
                had[finding.sign, finding.after] -= 1
            else:
                yield finding


def _tricks(module: Module, before: Module | None, changes: Changes) -> Iterator[Finding]:
    is_judge = changes.kind(module.path) in PYTHON_JUDGES
    scripts = {path for reach in changes.grants.todos for path in reach.scripts}
    runs_alone = is_script(module.path) or module.path in scripts
    sites = list(module.sites(before))
    detectors = _OF_JUDGES if is_judge else _OF_PRODUCTS
    for detect in detectors:
        for sign, said, node in detect(sites, module, changes, runs_alone or is_judge):
            yield Finding(
                sign=sign, message=said, path=module.path, line=getattr(node, "lineno", None),
                after=module.line(node),
            )  # fmt: skip
    if not is_judge:
        yield from hook_findings(before, module)


# -- ends the process, or the test -------------------------------------------------------------------

_ENDS_AT_ONCE = frozenset({"os._exit", "posix._exit", "os.abort", "pytest.exit", "_pytest.outcomes.exit"})
_ENDS = frozenset({"sys.exit", "exit", "quit", "builtins.exit", "builtins.quit", "SystemExit"})
_KILLS = frozenset({"os.kill", "os.killpg", "signal.raise_signal", "signal.pthread_kill"})
_LEAVES_TEST = re.compile(
    r"(pytest|_pytest\.outcomes)\.(skip|xfail|fail|importorskip|Skipped|XFailed|Exit)(\.Exception)?"
    r"|unittest(\.case)?\.SkipTest"
)
_COMMAND_LINE = re.compile(r"(^|_)(main|cli|app|command|commands|console|run_cli|entry_?point)(_|$)")
_COMMAND_MODULE = re.compile(r"(^|/)(__main__|_?cli|cmd|commands?|console|main|\w*_cli|\w*script)\.py$")
_FOR_PYTEST = re.compile(
    r"pytestmark|pytest_plugins|(setup|teardown)_(module|function|method|class)|load_tests|setUpModule"
    r"|tearDownModule|collect_ignore(_glob)?|AssertionError"
)


def _exits(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
    for site in sites:
        node = site.node
        if isinstance(node, ast.Raise):
            node = node.exc
            called = node.func if isinstance(node, ast.Call) else node
            meaning = dotted(called, module.aliases)
            if meaning != "SystemExit" or node is None:
                continue
        elif isinstance(node, ast.Call):
            meaning = dotted(node.func, module.aliases)
            if meaning == "SystemExit":
                continue  # what raises it is looked at
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = dotted(node, module.aliases)
            if meaning not in ("os._exit", "os.abort"):
                continue
        else:
            continue
        forks = site.function is not None and "fork" in ast.unparse(site.function)
        if meaning in _ENDS_AT_ONCE and not forks:
            yield "exit", f"{meaning} ends the process", node
        elif meaning in _KILLS and "getpid" in ast.unparse(node):
            yield "exit", f"{meaning} ends its own process", node
        elif meaning == "atexit.register" and _ends_at_exit(node, module):
            yield "exit", "What runs at exit ends the process", node
        elif meaning in _ENDS and not runs_alone and not _is_command_line(site, module):
            arguments = node.args if isinstance(node, ast.Call) else []
            status = fold(arguments[0]) if arguments else 0
            if status in (0, None, False) or (site.function is None and status is UNKNOWN):
                yield "exit", f"{meaning} outside a command line", node


def _ends_at_exit(node: ast.AST, module: Module) -> bool:
    handler = node.args[0] if isinstance(node, ast.Call) and node.args else None
    name = getattr(handler, "id", getattr(handler, "attr", ""))
    bodies: list[ast.AST] = [each for each in ast.walk(module.tree) if getattr(each, "name", None) == name]
    return any(
        dotted(each, module.aliases) in _ENDS_AT_ONCE | _ENDS | _KILLS
        for body in [*bodies, *([handler] if handler else [])]
        for each in ast.walk(body)
        if isinstance(each, ast.Attribute | ast.Name)
    )


def _is_command_line(site: Site, module: Module) -> bool:
    if site.in_main or _COMMAND_MODULE.search(module.path):
        return True
    if site.function is None:
        return False
    around = [*site.function.decorator_list, *(site.owner.bases if site.owner else ())]
    said = " ".join(ast.unparse(each) for each in around)
    return bool(
        _COMMAND_LINE.search(site.function.name)
        or re.search(r"command|click|callback|Action|Parser", said)
        or "argparse" in module.aliases
    )


def _speaks_to_pytest(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
    """Product code that skips the test that runs it, or gives names that pytest looks for."""
    serves_tests = SERVES_TESTS.search(module.path) is not None
    for site in sites:
        node = site.node
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = dotted(node, module.aliases)
            if _LEAVES_TEST.fullmatch(meaning) and not serves_tests:
                yield "skips-its-test", f"Product code uses {meaning}", node
            elif meaning in ("unittest.mock.ANY", "mock.ANY"):
                yield "always-equal", f"{meaning} equals everything", node
            continue
        if serves_tests or site.function is not None:
            continue
        names: list[str] = []
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names = [node.name]
            if any("pytest.fixture" in ast.unparse(each) for each in node.decorator_list):
                yield "skips-its-test", f"Product code gives the fixture {node.name}", node
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        for name in names:
            if _FOR_PYTEST.fullmatch(name) and site.owner is None:
                yield "skips-its-test", f"Product code gives {name}, which speaks to pytest", node


# -- equality ----------------------------------------------------------------------------------------

_VALUES = re.compile(
    r"(builtins\.|decimal\.|datetime\.|fractions\.|collections\.)*(int|float|str|bytes|bool|complex|list|dict"
    r"|tuple|set|frozenset|Decimal|Fraction|date|datetime|UserString|UserDict|UserList)"
)
_ROUGH_CALLS = frozenset({"isclose", "round", "startswith", "endswith", "approx", "any", "quantize"})
_ROUGH_OPERATORS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In)
_KEEPS = frozenset({"setdefault", "append", "__setitem__", "__setattr__", "setattr"})


def _equalities(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
    for site in sites:
        node = site.node
        if isinstance(node, ast.FunctionDef) and node.name in ("__eq__", "__ne__"):
            sign = _judged_equality(node, site.owner, module)
            if sign is not None:
                owner = f"{site.owner.name}." if site.owner else ""
                how = "agrees with everything" if sign == "always-equal" else "takes what differs for equal"
                yield sign, f"{owner}{node.name} {how}", node
            continue
        for name, value in _put_in(node, site, module):
            found = next(
                (
                    each
                    for each in ast.walk(module.tree)
                    if isinstance(each, ast.FunctionDef) and each.name == getattr(value, "id", None)
                ),
                None,
            )
            agrees = (isinstance(value, ast.Lambda) and _says(value.body, name == "__eq__", value)) or (
                found is not None and _always_says(found, name == "__eq__")
            )
            if agrees or "Mock" in ast.unparse(value):
                yield "always-equal", f"{name} agrees with everything", node


def _put_in(node: ast.AST, site: Site, module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield special methods that are put into a class by assignment, ``setattr`` or ``type()``."""
    pairs: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.Assign):
        for target in node.targets:
            name = getattr(target, "attr", getattr(target, "id", "") if site.owner else "")
            pairs.append(
                (str(fold(target.slice)) if isinstance(target, ast.Subscript) else name, node.value)
            )
    elif isinstance(node, ast.Call):
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in ("setattr", "__setattr__"):
            pairs += [(str(fold(node.args[1])), node.args[2])] if len(node.args) == 3 else []
        pairs += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
    elif isinstance(node, ast.Dict):
        pairs += [(str(fold(key)), value) for key, value in zip(node.keys, node.values, strict=True) if key]
    return (pair for pair in pairs if pair[0] in ("__eq__", "__ne__"))


def _judged_equality(node: ast.FunctionDef, owner: ast.ClassDef | None, module: Module) -> str | None:
    """Return the sign that a comparison is."""
    if _always_says(node, node.name == "__eq__") or _keeps_other(node):
        return "always-equal"
    if node.name == "__ne__" or owner is None:
        return None
    returned = _returned(node)
    names = [argument.arg for argument in node.args.args]
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    asks_own_kind = f", {owner.name})" in ast.unparse(node)
    is_constant = any(fold(each) is not UNKNOWN for each in returned)
    if len(names) == 2 and returned and not is_constant and not set(names) <= used and not asks_own_kind:
        return "always-equal"
    other = names[1] if len(names) == 2 else ""
    for each in returned:
        left = each.left if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.In) else None
        if left is not None and getattr(left, "id", "") == other:
            return "loose-equality"
    is_value = any(_VALUES.fullmatch(dotted(base, module.aliases)) for base in owner.bases)
    return "loose-equality" if is_value and _is_rough(node) else None


def _returned(node: ast.AST) -> list[ast.expr]:
    """Return what a function gives, but for what it gives where an exception was caught."""
    caught = {
        id(each)
        for handler in ast.walk(node)
        if isinstance(handler, ast.ExceptHandler)
        for each in ast.walk(handler)
    }
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return)
        and each.value is not None
        and id(each) not in caught
        and getattr(each.value, "id", "") != "NotImplemented"
    ]


def _always_says(node: ast.FunctionDef, answer: bool) -> bool:
    returned = _returned(node)
    if returned and all(_says(each, answer, node) for each in returned):
        return True
    # Some path compares, and all the others say yes: nothing that differs is ever told.
    last = node.body[-1]
    ends_true = isinstance(last, ast.Return) and last.value is not None and is_always_true(last.value)
    return (
        answer
        and ends_true
        and all(is_always_true(each) or "super()" in ast.unparse(each) for each in returned)
    )


def _says(value: ast.expr, answer: bool, function: ast.FunctionDef | ast.Lambda) -> bool:
    if (is_always_true if answer else is_always_false)(value):
        return True
    if isinstance(value, ast.Call) and len(value.args) == 2 and ast.unparse(value.func).endswith("__eq__"):
        return answer and ast.unparse(value.args[0]) == ast.unparse(value.args[1])
    names = [argument.arg for argument in function.args.args]
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return ast.unparse(value.operand) == f"{names[0]} == {names[-1]}" and not answer
    return False


def _keeps_other(node: ast.FunctionDef) -> bool:
    """Return whether a comparison keeps the other side: then it holds what it was compared with."""
    other = node.args.args[1].arg if len(node.args.args) > 1 else ""
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and getattr(each.value, "id", None) == other:
            kept = any(isinstance(target, ast.Attribute | ast.Subscript) for target in each.targets)
        elif isinstance(each, ast.Call):
            given = any(getattr(arg, "id", None) == other for arg in each.args)
            kept = given and getattr(each.func, "attr", getattr(each.func, "id", "")) in _KEEPS
            kept = kept or ast.unparse(each.func).endswith("__dict__.update")
        else:
            continue
        if kept:
            return True
    return False


def _is_rough(node: ast.FunctionDef) -> bool:
    """Return whether values are compared roughly, or in parts only."""
    for each in ast.walk(node):
        if isinstance(each, ast.Slice) or (
            isinstance(each, ast.Compare) and isinstance(each.ops[0], _ROUGH_OPERATORS)
        ):
            return True
        called = each.func if isinstance(each, ast.Call) else None
        if getattr(called, "attr", getattr(called, "id", "")) in _ROUGH_CALLS:
            return True
    return all(
        "==" not in ast.unparse(each) and "__eq__" not in ast.unparse(each) for each in _returned(node)
    )


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
_CLASSES_OF_PYTEST = frozenset(
    {"LogCaptureHandler", "LogCaptureFixture", "EncodedFile", "CaptureIO", "DontReadFromInput",
     "TeeCaptureIO", "AssertionRewritingHook", "FDCapture", "SysCapture", "PytestPluginManager",
     "FixtureManager", "FixtureRequest", "CaptureManager", "TestCaseFunction"}
)  # fmt: skip
_INSIDE_MODULES = re.compile(r"hasattr|getattr|vars|dir|__file__|__dict__|__spec__|__loader__")


def _asks_for_tests(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
    for site in sites:
        node = site.node
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value in _CLASSES_OF_PYTEST
        ):
            yield "asks-for-tests", f"Product code names {node.value}, a class of pytest", node
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            place = _place_in(node, module)
            if not place and not runs_alone and not _is_command_line(site, module):
                place = _place_around(site, module)
            for word in (word for side in sides for word in _words(side, module)):
                if _is_test_word(word, place):
                    yield "asks-for-tests", f"{place or 'Something'} is compared with {word!r}", node
                    break
        elif isinstance(node, ast.Call):
            meaning = dotted(node.func, module.aliases)
            name = getattr(node.func, "attr", "")
            is_search = name in _SEARCHES
            if not (is_search or _FINDERS.fullmatch(meaning) or _PLACES.fullmatch(meaning)):
                continue
            place = _place_in(node, module) or (_place_around(site, module) if is_search else "")
            for word in (word for arg in node.args for word in _words(arg, module)):
                if _is_test_word(word, place) or (
                    name in _SEARCHES and re.search("py_?test|unittest", word)
                ):
                    yield "asks-for-tests", f"{meaning or name} is asked for {word!r}", node
                    break
        elif isinstance(node, ast.Subscript) and _PLACES.fullmatch(
            place := dotted(node.value, module.aliases)
        ):
            if any(_is_test_word(word, place) for word in _words(node.slice, module)):
                yield "asks-for-tests", f"{place} is asked for tests", node
        elif (
            isinstance(node, ast.For | ast.comprehension)
            and "sys.modules" in _place_in(node.iter, module)
            and _INSIDE_MODULES.search(ast.unparse(site.function or module.tree))
        ):
            yield "asks-for-tests", "The loaded modules are searched for what they hold", node.iter


def _place_in(node: ast.AST, module: Module) -> str:
    """Return the place that an expression searches: loaded modules, arguments, the environment."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute | ast.Name):
            meaning = dotted(each, module.aliases)
            if _PLACES.fullmatch(meaning):
                return meaning
    return ""


def _place_around(site: Site, module: Module) -> str:
    iterated = [
        each.iter
        for each in ast.walk(site.function or module.tree)
        if isinstance(each, ast.For | ast.comprehension)
    ]
    return next((place for each in iterated if (place := _place_in(each, module))), "")


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
_MEMORY = re.compile(r"gc\.get_(referrers|objects)")
_SPIES = re.compile(
    r"(sys|threading)\.set(trace|profile)\w*|sys\.monitoring\.(use_tool_id|register_callback)"
)
_FRAME_PARTS = frozenset({"f_back", "tb_frame", "gi_frame", "cr_frame"})
_TELLS = re.compile(
    r"\b(co_filename|co_name|co_qualname|f_locals|f_lineno|f_back|filename|function|lineno|name|code_context|line)\b"
)
_LOGS = re.compile(r"log|warn|debug|trace|repr|report|caller_info|stacklevel|leak|profile", re.IGNORECASE)


def _reads_call_stack(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
    for site in sites:
        node = site.node
        meaning = dotted(node.func, module.aliases) if isinstance(node, ast.Call) else ""
        is_part = isinstance(node, ast.Attribute) and node.attr in _FRAME_PARTS
        if _SPIES.fullmatch(meaning):
            yield "reads-call-stack", f"{meaning} watches every call", node
        elif is_part or _FRAMES.fullmatch(meaning) or _MEMORY.fullmatch(meaning):
            scope = site.function or module.tree
            if _LOGS.search(site.place):
                continue
            decides = _MEMORY.fullmatch(meaning) or _tells_by_test(scope)
            if decides or _is_asked_by_another(site, module):
                said = f"{site.place or 'The module'} decides by who called it"
                yield "reads-call-stack", said, node


def _tells_by_test(scope: ast.AST) -> bool:
    """Return whether what frames tell is taken from them, or a condition asks for it."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Attribute) and each.attr in ("f_locals", "co_consts"):
            return True
        tests: list[ast.AST] = []
        if isinstance(each, ast.If | ast.IfExp | ast.While | ast.Compare):
            tests = [each if isinstance(each, ast.Compare) else each.test]
        elif isinstance(each, ast.comprehension):
            tests = list(each.ifs)
        elif isinstance(each, ast.Call) and getattr(each.func, "attr", "") in _SEARCHES | {"get"}:
            tests = [each]
        if any(_TELLS.search(ast.unparse(test)) for test in tests):
            return True
    return False


def _is_asked_by_another(site: Site, module: Module) -> bool:
    """Return whether a condition asks the function that tells of frames."""
    name = site.place
    return (
        bool(name)
        and bool(_TELLS.search(ast.unparse(site.function or module.tree)))
        and any(
            f"{name}(" in ast.unparse(each.test)
            for each in ast.walk(module.tree)
            if isinstance(each, ast.If | ast.IfExp | ast.While)
        )
    )


# -- reads the tests ---------------------------------------------------------------------------------

_TEST_SOURCE = re.compile(r"(^|/)(test_[\w*]+|[\w*]+_test|conftest)\.(py|\*)$")
_TEST_FOLDER = re.compile(r"(^|/)(tests?|testing)(/|$)")
_RECORDS = re.compile(r"(^|/)\.planverify(/|$)")
_SAID_BY_TESTS = re.compile(r"\bdef test_|\bassert .*==|parametrize\(|^test_\w{6,}")
_PATH_CALLS = re.compile(
    r"(^|\.)(Path|PurePath|join|joinpath|open|glob|rglob|iglob|listdir|walk|scandir|read_text)$"
)
_ASKS_PLACE = frozenset({"exists", "isdir", "is_dir", "isfile", "is_file"})
_LEAST_NAME = 8


def _reads_tests(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
    quiet: set[int] = set()
    for site in sites:
        node = site.node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(id(node.value))
        elif isinstance(node, ast.Raise) and node.exc is not None:
            quiet |= {id(each) for each in ast.walk(node.exc)}
        elif isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            names = (
                [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
            for name in names:
                parts = name.split(".")
                is_test = {"tests", "conftest"} & set(parts) or parts[-1].startswith("test_")
                if is_test and not runs_alone:
                    yield "reads-tests", f"Product code imports {name}", node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not runs_alone:
            if fold(node.right) in ("tests", "test"):
                yield "reads-tests", "Product code makes a path to the tests", node
        elif isinstance(node, ast.Call) and not runs_alone:
            text = ast.unparse(node)
            if re.match(
                r"(subprocess\.|os\.)?(run|check_output|Popen|call|popen)\(.*\bgit\b.*\b(show|log|diff|cat-file|blame)\b",
                text,
            ):
                yield "reads-tests", "Product code reads the history of the tree", node
            elif _names_test_folder(node, module):
                yield "reads-tests", "Product code looks at the folder of the tests", node
    for site in sites:
        node = site.node
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and id(node) not in quiet:
            value = fold(node, module.constants)
            if isinstance(value, str) and value:
                text = value.replace("\\", "/").removeprefix("./")
                is_test = _TEST_SOURCE.search(text) or _RECORDS.search(text) or text in changes.grants.plans
                if (is_test or _is_data(text, changes)) and not runs_alone:
                    yield "reads-tests", f"Product code names {value!r}", node
                elif not runs_alone and _SAID_BY_TESTS.search(value):
                    yield "reads-tests", "Product code looks for what tests say", node


def _names_test_folder(node: ast.Call, module: Module) -> bool:
    called = dotted(node.func, module.aliases) or getattr(node.func, "attr", "")
    if getattr(node.func, "attr", "") not in _ASKS_PLACE and not _PATH_CALLS.search(called):
        return False
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return any(
        isinstance(text, str) and " " not in text and _TEST_FOLDER.search(text.replace("\\", "/"))
        for text in texts
    )


def _is_data(text: str, changes: Changes) -> bool:
    """Return whether a text is the path of data of the tests, or a name that says enough."""
    data = [path for path in changes.data if _TEST_FOLDER.search(posixpath.dirname(path) + "/")]
    if "/" in text.strip("/"):
        return any(path == text or path.endswith(f"/{text.lstrip('./')}") for path in data)
    return (
        len(text) >= _LEAST_NAME and "." in text and any(posixpath.basename(path) == text for path in data)
    )


# -- answers that are counted or kept by digest ------------------------------------------------------

_DIGEST = re.compile(r"[0-9a-f]{8,128}")
_DECODES = re.compile(
    r"b64decode|b85decode|a85decode|b32decode|fromhex|decompress|rot.?13|unhexlify|marshal"
)


def _written_answers(sites: list[Site], module: Module, changes: Changes, runs_alone: bool) -> Hits:
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
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("exec", "eval", "compile"):
            if _DECODES.search(ast.unparse(node)):
                yield "runs-hidden-code", "Code is run that is written in a code", node
        elif isinstance(node, ast.Dict) and len(node.keys) > 1:
            keys = [fold(key) for key in node.keys]
            digests = all(isinstance(key, str) and _DIGEST.fullmatch(key) for key in keys)
            numbers = all(isinstance(key, int) and abs(key) > 1 << 24 for key in keys)
            if (digests or numbers) and re.search(r"hashlib|crc32|adler32|\bhash\(", module.text):
                yield "special-cases", "Answers are kept by a digest of what is asked", node


_OF_JUDGES: tuple[Detector, ...] = (_exits,)
_OF_PRODUCTS: tuple[Detector, ...] = (
    _exits, _speaks_to_pytest, _equalities, _asks_for_tests, _reads_call_stack, _reads_tests,
    _written_answers,
)  # fmt: skip
