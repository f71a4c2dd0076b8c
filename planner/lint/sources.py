"""What the text of tests, build files and settings says, told without running any of it."""

from __future__ import annotations

import ast
import fnmatch
import json
import re
import shlex
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from planner.catalog.impure_calls import CHANCE, CLOCK, GENERATORS, NETWORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_IMPURE: Mapping[str, str] = {
    f"{module}.{name}": kind
    for kind, table in (("chance", CHANCE), ("clock", CLOCK), ("network", NETWORK))
    for module, names in table.items()
    for name in names.split()
}
_GUARDS = re.compile(
    r"seed|patch|mock|freez|travel|cassette|vcr|responses|stub|fake|server|transport", re.IGNORECASE
)
"""Names that speak of keeping chance, clock or network out: then nothing is said of the module."""
_LOCAL = re.compile(r"localhost|127\.\d|\[?::1\b|0\.0\.0\.0")
_ASSERTS = re.compile(
    r"assert|check|verif|expect|raises|warns|fail|approx|should|must|match|same|equal|compar|validat|ensure|test",
    re.IGNORECASE,
)
"""What the name of a helper says that asserts for a test."""
_SKIP_CALLS = ("pytest.skip", "pytest.xfail", "unittest.SkipTest")
_MAKES_TESTS = frozenset({"pytest_generate_tests", "pytest_collect_file", "load_tests", "__getattr__"})


# -- Python --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestSettings:
    """What the project's pytest settings say, as far as rules ask."""

    functions: tuple[str, ...] = ("test",)
    classes: tuple[str, ...] = ("Test",)
    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    testpaths: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFunction:
    """One test, as far as its own text tells."""

    __test__ = False

    line: int
    skipped: bool
    """It never runs, or is expected to fail."""
    vacuous: str | None
    """Why nothing that the product does can make it fail."""
    asserts: bool
    impure: tuple[tuple[str, str, int], ...]
    """Calls that make its verdict depend on more than the code: ``chance``, ``clock`` or ``network``, the
    name and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestModule:
    """What reading a test module, or a conftest, tells."""

    __test__ = False

    tests: Mapping[str, TestFunction] = field(default_factory=dict[str, TestFunction])
    """By the name as in a node id: ``test_a``, ``TestA::test_b``."""
    imports: tuple[tuple[str, int], ...] = ()
    """The modules that it cannot be imported without, each with the line."""
    guarded: bool = False
    """It seems to keep chance, clock or network out."""
    open_ended: bool = False
    """It may hold tests that reading does not see: inherited, imported or generated ones."""
    problem: str | None = None
    """``line: why it cannot be parsed``."""


def read_module(text: str, settings: PytestSettings) -> TestModule:
    """Read the source of a test module. Never raises; what cannot be parsed has a ``problem``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        return _ModuleReader(tree, settings).read()
    except SyntaxError as error:
        return TestModule(problem=f"{error.lineno or 1}: it cannot be parsed: {error.msg}")
    except (ValueError, RecursionError, MemoryError):
        return TestModule(open_ended=True)


class _ModuleReader:
    """One pass over a tree; :meth:`read` may be called once."""

    def __init__(self, tree: ast.Module, settings: PytestSettings) -> None:
        self.tree = tree
        self.settings = settings
        self.nodes = list(ast.walk(tree))
        self.aliases = dict(_aliases(self.nodes))
        functions = [node for node in self.nodes if isinstance(node, _Function)]
        self.defined = {node.name for node in functions}
        self.asserting = {node.name for node in functions if _asserts(node, frozenset())}
        self.tests: dict[str, TestFunction] = {}
        self.open_ended = bool(self.defined & _MAKES_TESTS) or any(
            isinstance(node, ast.Name) and node.id in ("globals", "exec") for node in self.nodes
        )

    def read(self) -> TestModule:
        self._read_body(self.tree.body, "", self._skips(_assigned(self.tree.body, "pytestmark")))
        identifiers = (
            getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
            for node in self.nodes
        )
        return TestModule(
            tests=self.tests,
            imports=tuple(_needed_imports(self.tree.body)),
            guarded=any(isinstance(name, str) and _GUARDS.search(name) for name in identifiers),
            open_ended=self.open_ended,
        )

    def dotted(self, node: ast.AST | None) -> str:
        """Return the full name of what an expression names or calls: ``numpy.random.rand``."""
        node = node.func if isinstance(node, ast.Call) else node
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root = node.id if isinstance(node, ast.Name) else ""
        return ".".join([self.aliases.get(root, root), *reversed(parts)])

    def _read_body(
        self, body: Sequence[ast.stmt], owner: str, skipped: bool, prefixes: tuple[str, ...] | None = None
    ) -> None:
        """Read the tests of a module, or of the class that is their ``owner``."""
        skipped = skipped or any(
            isinstance(each, ast.Expr) and self.dotted(each.value) == "pytest.skip" for each in body
        )
        for node in _flat(body):
            if isinstance(node, ast.ClassDef):
                self._read_class(node, owner, skipped)
            elif isinstance(node, _Function):
                is_fixture = any(self.dotted(each).endswith("fixture") for each in node.decorator_list)
                named = _is_named(node.name, self.settings.functions if prefixes is None else prefixes)
                if named and not is_fixture:
                    self._read_test(node, f"{owner}{node.name}", skipped)
            elif isinstance(node, ast.ImportFrom | ast.Assign) and not owner:
                # Tests that are imported or made by a call.
                names = [alias.asname or alias.name for alias in getattr(node, "names", ())]
                names += [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
                patterns = (*self.settings.functions, *self.settings.classes, "[*]")
                self.open_ended |= any(_is_named(name, patterns) for name in names)

    def _read_class(self, node: ast.ClassDef, owner: str, skipped: bool) -> None:
        bases = [self.dotted(base) for base in node.bases]
        unittest = any(base.endswith("TestCase") for base in bases)
        opted_out = any(
            isinstance(each, ast.Constant) and not each.value for each in _assigned(node.body, "__test__")
        )
        made = any(
            isinstance(each, _Function) and each.name in ("__init__", "__new__") for each in node.body
        )
        collected = unittest or (_is_named(node.name, self.settings.classes) and not made)
        if opted_out or not collected:
            return
        if any(base != "object" and not base.endswith("TestCase") for base in bases):
            self.open_ended = True
        skips = self._skips([*node.decorator_list, *_assigned(node.body, "pytestmark")])
        prefixes = ("test",) if unittest else None
        self._read_body(node.body, f"{owner}{node.name}::", skipped or skips, prefixes)

    def _read_test(self, node: _Function, name: str, skipped: bool) -> None:
        parameters = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        parameters -= {"self", "cls"}
        body = [each for each in node.body if not _is_docstring(each)]
        first = body[0] if body else None
        call = first.value if isinstance(first, ast.Expr) else getattr(first, "exc", None)
        self.tests[name] = TestFunction(
            line=node.lineno,
            skipped=skipped or self._skips(node.decorator_list) or self.dotted(call) in _SKIP_CALLS,
            vacuous=None if parameters else _vacuity(body),
            asserts=bool(parameters) or _asserts(node, self.asserting),
            impure=tuple(self._impure_calls(body, parameters)),
        )

    def _skips(self, decorators: Iterable[ast.expr]) -> bool:
        """Return whether a decorator keeps a test from counting, whatever the conditions."""
        for decorator in decorators:
            name = self.dotted(decorator)
            given = list(decorator.args) if isinstance(decorator, ast.Call) else []
            named = decorator.keywords if isinstance(decorator, ast.Call) else []
            words = {each.arg for each in named}
            if name in ("pytest.mark.skip", "unittest.skip", "unittest.expectedFailure"):
                return True
            if name == "pytest.mark.xfail" and not given and words <= {"reason", "strict", "run"}:
                return True
            always = bool(given) and isinstance(given[0], ast.Constant) and bool(given[0].value)
            if name in ("pytest.mark.skipif", "unittest.skipIf") and always:
                return True
        return False

    def _impure_calls(self, body: list[ast.stmt], parameters: set[str]) -> Iterator[tuple[str, str, int]]:
        for each in (part for statement in body for part in ast.walk(statement)):
            if not isinstance(each, ast.Call):
                continue
            name = self.dotted(each)
            bare = name in GENERATORS and not each.args and not each.keywords
            kind = "chance" if bare else _IMPURE.get(name)
            first = each.args[0].value if each.args and isinstance(each.args[0], ast.Constant) else ""
            is_local = isinstance(first, str) and _LOCAL.search(first)
            if kind is not None and name.partition(".")[0] not in parameters and not is_local:
                yield kind, name, each.lineno


def _aliases(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what imports bind, by name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _needed_imports(body: Iterable[ast.stmt]) -> Iterator[tuple[str, int]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements, and the definitions in the branches of conditions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            nested = [each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)]
            for handler in getattr(statement, "handlers", ()):
                nested += handler.body
            yield from (each for each in _flat(nested) if isinstance(each, _Function | ast.ClassDef))


def _assigned(body: Iterable[ast.stmt], name: str) -> list[ast.expr]:
    """Return what is assigned to a name, a list or tuple as its parts."""
    found: list[ast.expr] = []
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == name for each in node.targets
        ):
            found += node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return found


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether pytest would take the name: a pattern is a beginning, or a glob."""
    return any(name.startswith(each) or fnmatch.fnmatch(name, each) for each in patterns)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _vacuity(body: Sequence[ast.stmt]) -> str | None:
    """Return why a body cannot fail by what the product does, or ``None``."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    if {node.id for node in names} - stored - {"print"} or any(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Raise) for node in nodes
    ):
        return None
    asserted = [node.test for node in nodes if isinstance(node, ast.Assert)]
    if any(isinstance(each, ast.Constant) and not each.value for each in asserted):
        return None  # it always fails, which is honest
    return f"it asserts only {ast.unparse(asserted[0])[:60]}" if asserted else "its body does nothing"


def _asserts(node: _Function, helpers: frozenset[str] | set[str]) -> bool:
    """Return whether a function asserts something, itself or by a helper whose name says so."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            constant = isinstance(each.test, ast.Constant) and each.test.value
            if not constant and not isinstance(each.test, ast.Tuple):
                return True
        elif isinstance(each, ast.Raise):
            return True
        elif isinstance(each, ast.Call):
            name = getattr(each.func, "attr", None) or getattr(each.func, "id", "")
            if _ASSERTS.search(name) or name in helpers:
                return True
    return False


# -- build files and settings --------------------------------------------------------------------------

_MAKE_RULE = re.compile(
    r"^(?P<targets>[^\s#:=][^:=#]*?)\s*::?(?![:=])(?P<needs>[^#=;]*)(?:;(?P<recipe>.*)|#.*)?$"
)
_MAKE_UNREADABLE = re.compile(r"^\s*-?(?:include|sinclude|define|\$\(eval)\b", re.MULTILINE)
_DOES_NOTHING = re.compile(
    r"[@\-+]*\s*(?:|:|true|/bin/true|exit(?: 0)?|(?:echo|printf)\b[^|&;`$]*|node -e (?:''|\"\")|#.*)\s*"
)


def make_targets(text: str) -> dict[str, bool] | None:
    """Return by target whether making it does nothing; ``None`` where only running ``make`` tells."""
    if _MAKE_UNREADABLE.search(text):
        return None
    lines: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        found = None if line.startswith("\t") else _MAKE_RULE.match(line)
        if found is not None:
            current = found["targets"].split()
            for target in current:
                lines.setdefault(target, []).extend(found["needs"].split())
        recipe = line if line.startswith("\t") else found["recipe"] if found is not None else None
        for target in current if recipe is not None else ():
            lines[target].append((recipe or "").strip())
    if any("%" in target or "$" in target for target in lines):
        return None
    # What a target needs counts as something that it does.
    return {
        target: all(_DOES_NOTHING.fullmatch(each) for each in does)
        for target, does in lines.items()
        if not (target.startswith(".") and target.isupper())
    }


def npm_scripts(text: str) -> dict[str, bool] | None:
    """Return by script of ``package.json`` whether running it does nothing; ``None`` where it has none."""
    try:
        scripts: Any = json.loads(text)["scripts"]
        return {
            name: _DOES_NOTHING.fullmatch(script.strip()) is not None for name, script in scripts.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def read_settings(read: Callable[[str], str | None]) -> PytestSettings:
    """Return the pytest settings of the first file that holds some. ``read`` gives a file of the root."""
    for name, keys in (
        ("pytest.toml", ("pytest",)),
        (".pytest.toml", ("pytest",)),
        ("pytest.ini", "pytest"),
        (".pytest.ini", "pytest"),
        ("pyproject.toml", ("tool", "pytest", "ini_options")),
        ("pyproject.toml", ("tool", "pytest")),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ):
        text = read(name)
        section = None if text is None else (_ini if isinstance(keys, str) else _toml)(text, keys)
        if section is not None:
            usual = PytestSettings()
            return PytestSettings(
                functions=_words(section.get("python_functions")) or usual.functions,
                classes=_words(section.get("python_classes")) or usual.classes,
                files=_words(section.get("python_files")) or usual.files,
                testpaths=_words(section.get("testpaths")),
                pythonpath=_words(section.get("pythonpath")),
            )
    return PytestSettings()


def _ini(text: str, name: Any) -> Mapping[str, Any] | None:
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return dict(parser.items(name)) if parser.has_section(name) else None


def _toml(text: str, keys: Any) -> Mapping[str, Any] | None:
    import tomllib

    try:
        value: Any = tomllib.loads(text)
        for key in keys:
            value = value[key]
    except (tomllib.TOMLDecodeError, RecursionError, KeyError, TypeError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(each) for each in cast("list[Any]", value))
    try:
        return tuple(shlex.split(value, comments=True)) if isinstance(value, str) else ()
    except ValueError:
        return ()
