"""Read and write small projects: their files, the faults that become decoys, the honest changes.

A project is one file. Below ``===== files`` are its files, each under ``=== path``; below
``===== decoys`` and ``===== controls`` are changes, each with ``=== kind``, ``key: value`` lines and
edits. An edit is ``--- path``, the existing text, a line ``~~~`` and the new text; without existing text
it appends to the file or creates it, and ``--- path (gone)`` removes it.
"""

from __future__ import annotations

import ast
import fnmatch
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edits import Edit, Files, commit_files, write_files

from tools.corpus.case import Place

DECOY_KINDS: dict[str, str] = {
    "approx-mismatch": "A number is too far from what the test expects with a tolerance.",
    "async-wrong-value": "A coroutine gives a wrong value.",
    "attribute-gone": "The test reads a public attribute that the product has no more.",
    "attribute-machinery": "A property, a descriptor or __getattr__ is wrong, and hides it.",
    "autouse-fixture-broken": "A fixture that every test gets is broken by itself.",
    "both-raise-the-same": "An exception comes from the test or from the product, and is the same in both.",
    "boundary-signature": "The test calls the product as it could be called before.",
    "callback-arguments": "The product calls what it was handed with other arguments.",
    "class-body-fault": "The body of a class raises while the module is imported.",
    "conftest-hook-broken": "A hook in the conftest raises.",
    "conftest-meets-product-fault": "The conftest cannot be imported because the product raises.",
    "context-manager-exit": "A with block cannot be entered, or its end raises or leaves something behind.",
    "coroutine-not-awaited": "A coroutine is used as if it were its result.",
    "dataclass-fault": "Something is wrong with a dataclass: its order, its defaults, that it is frozen.",
    "decorator-fault": "A decorator loses or mixes up what its function returns or is.",
    "did-not-raise": "The product no longer raises what the test expects.",
    "dies-by-signal": "A signal ends the process.",
    "doctest-of-module": "An example in a docstring fails because of the product.",
    "doctest-of-text": "An example in a document fails because of the product.",
    "doctest-wrong-itself": "An example in a document is wrong itself.",
    "encoding-by-own-hand": "The product reads with a wrong encoding, which looks like a locale.",
    "endless-loop": "The product loops without end.",
    "endless-loop-in-test": "A helper of the tests loops without end.",
    "endless-recursion": "The product calls itself without end.",
    "exit-from-product": "The product ends with SystemExit where the test expects something else.",
    "expectation-wrong": "The test expects a wrong value.",
    "fails-by-hand": "The test fails itself by pytest.fail, with words that point elsewhere.",
    "file-not-found-in-product": "The product looks for a file at a wrong place.",
    "fixture-broken-itself": "A fixture of the tests is broken.",
    "fixture-renamed": "A fixture of the tests has another name, and a test still asks for the old one.",
    "fixture-value-wrong": "A fixture of the tests prepares something else than the test expects.",
    "flaky-in-names": "Names speak of flakiness or of the network, and the product is simply wrong.",
    "function-inside-gone": "One product module imports from another what is no longer there.",
    "generator-fault": "A generator raises, or gives wrong values, while it is used up.",
    "group-nested": "An exception group holds another group.",
    "group-of-many": "An exception group holds several exceptions.",
    "group-of-one": "An exception group holds one exception.",
    "helper-assertion": "An assertion of a helper of the tests fails because of the product.",
    "helper-import-typo": "The test imports a helper, or a name, that is not there.",
    "helper-of-tests-wrong": "A helper of the tests is wrong.",
    "implicit-context": "An exception is raised while another one is handled.",
    "import-cycle": "Two product modules import each other.",
    "key-error-in-product": "The product looks up a key that is not there.",
    "key-error-in-test": "The test looks up a key that was never there.",
    "key-missing-from-result": "The test looks up what the product no longer gives.",
    "left-by-other-test": "A test leaves something behind that makes another test fail.",
    "lying-assertion-message": "The message of an assertion names another kind of failure.",
    "mock-not-called": "A mock tells that it was not called as it should have been.",
    "module-gone": "A module of the product is gone.",
    "name-error-in-product": "The product uses a name that is not defined.",
    "name-error-in-test": "The test uses a name that is not defined.",
    "name-gone": "The test imports a public name that the product has no more.",
    "never-returns": "The product waits for ever for a lock or for a value.",
    "none-in-product": "None, or an attribute of None, is met inside the product.",
    "none-in-test": "The product returns None, and the test goes on with it.",
    "notes-that-lie": "An exception carries notes that name another kind of failure.",
    "one-case-of-many": "One case of a parametrized test fails.",
    "os-exit": "The product ends the process by os._exit.",
    "own-connection-error": "The product raises a connection error by its own logic.",
    "own-import-error": "The product raises an import error by its own logic.",
    "own-os-error": "The product raises an error of the operating system by its own logic.",
    "own-permission-error": "The product raises a permission error by its own logic.",
    "own-timeout-error": "The product raises a timeout by its own logic.",
    "own-type-error": "The product raises its own error that derives from TypeError.",
    "parametrize-computation": "The arguments of a parametrized test cannot be computed.",
    "patch-target-gone": "The test replaces a name that the product has no more.",
    "pool-future": "An exception comes out of a thread pool.",
    "product-assertion": "An assertion in the product fails.",
    "raised-from": "An exception is raised from another one.",
    "raised-from-none": "An exception hides another one by from None.",
    "raises-no-match": "The expected exception comes with other words.",
    "raises-other-error": "Another exception comes than the expected one.",
    "stand-in-out-of-date": "A stand-in of the tests is not what the product is handed otherwise.",
    "stdlib-raises-on-output": "The standard library refuses what the product made.",
    "str-fails": "The exception cannot be shown as text.",
    "strict-xfail": "A test passes that is strictly expected to fail.",
    "sub-tests": "One of the subtests of a test fails.",
    "syntax-error-from-data": "The product evaluates text that is not an expression.",
    "syntax-error-in-product": "A module of the product is no Python.",
    "syntax-error-in-test": "A test file is no Python.",
    "teardown-of-fixture-product": "A fixture fails at its end because of the product.",
    "teardown-of-fixture-test": "A fixture fails at its end by itself.",
    "test-data-not-found": "The tests look for their data at a wrong place.",
    "text-that-lies": "A value looks like the report of another failure.",
    "third-party-behind-own-error": "A package is not installed; the product's own error hides it.",
    "thread-unhandled": "An exception in a thread is turned into a failure of the test.",
    "type-error-in-test": "The tests mix up kinds of values.",
    "under-xdist": "A plain wrong value, seen by a worker of pytest-xdist.",
    "unittest-cleanup": "A clean-up of a unittest test case fails.",
    "unittest-set-up": "setUp of a unittest test case fails because of the product.",
    "unittest-set-up-class": "setUpClass of a unittest test case fails because of the product.",
    "unittest-sub-test": "A subTest of a unittest test case fails.",
    "unittest-tear-down": "tearDown of a unittest test case fails because of the product.",
    "wait-never-ends": "Something never comes, and a limit in the test turns that into an exception.",
    "warning-as-error": "A warning of the product is turned into an error.",
    "wide-fixture-product": "A fixture of a class, module or session meets a fault of the product.",
    "words-printed": "The product prints words that point elsewhere, and is simply wrong.",
    "worker-dies": "A worker of pytest-xdist dies.",
    "wrapped-type-error": "A TypeError of the product is wrapped into the product's own error.",
}
CONTROL_KINDS: dict[str, str] = {
    "assertion-strengthened": "A test asserts more than before.",
    "bug-fixed": "A bug is fixed, with a test for it.",
    "cache-added": "Results are remembered.",
    "comments-only": "A comment is written.",
    "constant-extracted": "A value gets a name.",
    "data-added": "A row of data is added.",
    "dataclass-made": "A class becomes a dataclass.",
    "deprecation-added": "An old name gives a warning.",
    "doctest-added": "An example is written into a docstring.",
    "documented-change": "Behaviour, document and expected values change together.",
    "expected-failure-mended": "What was expected to fail works, and the mark is taken away.",
    "faster": "Work is spared.",
    "fixture-scope-changed": "A fixture lives longer.",
    "function-extracted": "A function is taken out of another one.",
    "helper-moved": "A helper of the tests moves to another file.",
    "hook-of-report-changed": "The header of the report tells more.",
    "lock-narrowed": "Less is done under a lock.",
    "logging-added": "The product tells its log what it does.",
    "message-improved": "A message says more, and the test asks for it.",
    "module-split": "A part of a module becomes a module.",
    "new-feature": "Something new, with tests.",
    "new-fixture": "A new fixture, and tests that use it.",
    "new-module": "A new module with tests.",
    "new-test": "A new test.",
    "parametrised": "One case becomes several.",
    "rename-inside": "Private names are renamed.",
    "retries-added": "The product tries again what may fail.",
    "skipped-on-windows": "A new test is skipped on another platform.",
    "statistics-added": "The product counts what it does.",
    "test-renamed": "A test gets a better name.",
    "test-split": "One test becomes two, in a file of their own.",
    "type-hints": "Annotations are written.",
    "unittest-to-pytest": "A test case becomes plain tests with a fixture.",
    "unused-removed": "An import is tidied up.",
}


FOLDER = Path(__file__).with_name("small_projects")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A fault, or an honest change, with its description."""

    kind: str
    said: tuple[tuple[str, str], ...]
    edits: tuple[Edit, ...]

    def one(self, key: str, default: str = "") -> str:
        """Return the value of a key that occurs at most once."""
        return next(iter(self.all(key)), default)

    def all(self, key: str) -> tuple[str, ...]:
        """Return all values of a key."""
        return tuple(value for name, value in self.said if name == key)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallProject:
    """A small project with its faults and changes."""

    name: str
    files: dict[str, str]
    suite: str
    """Command that runs all of its tests."""
    plugins: tuple[str, ...]
    """Pytest plugins that its tests need."""
    product: tuple[str, ...]
    """Globs of its product files."""
    tests: tuple[str, ...]
    """Globs of its test files."""
    decoys: tuple[Change, ...]
    controls: tuple[Change, ...]


@cache
def small_projects() -> tuple[SmallProject, ...]:
    """Return every small project, sorted by name. Raises ``ValueError`` for an invalid description."""
    return tuple(_project(file) for file in sorted(FOLDER.glob("*.txt")))


def _project(file: Path) -> SmallProject:
    _, *parts = re.split(r"^===== (\w+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    part = dict(zip(parts[::2], parts[1::2], strict=True))
    head, *sections = _sections(part["files"])
    said = dict(_said(head[1]))
    return SmallProject(
        name=file.stem,
        files={name: body.strip("\n") + "\n" if body.strip() else "" for name, body in sections},
        suite=said["suite"],
        plugins=tuple(said.get("plugins", "").split()),
        product=tuple(said["product"].split()),
        tests=tuple(said["tests"].split()),
        decoys=tuple(_change(kind, body) for kind, body in _sections(part["decoys"])),
        controls=tuple(_change(kind, body) for kind, body in _sections(part["controls"])),
    )


def _change(kind: str, body: str) -> Change:
    head, *edits = re.split(r"^--- ", body, flags=re.MULTILINE)
    return Change(kind=kind, said=tuple(_said(head)), edits=tuple(_edit(each) for each in edits))


def _edit(text: str) -> Edit:
    path, _, body = text.partition("\n")
    if path.endswith(" (gone)"):
        return Edit(path=path.removesuffix(" (gone)"))
    old, separator, new = ("\n" + body).partition("\n~~~\n")
    if not separator:
        raise ValueError(f"{path}: an edit has no line ~~~ between what was and what is")
    new = new.rstrip("\n")
    return Edit(path=path, before=old.removeprefix("\n"), after=new if old.strip("\n") else new + "\n")


def _said(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    return [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines)]


def _sections(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError(f"'{parts[0].strip()[:80]}': text stands before the first section")
    return list(zip(parts[1::2], parts[2::2], strict=True))


IGNORED = ".planverify/\n.pytest_cache/\n__pycache__/\n"
REMARKS = (
    "# Kept small on purpose: callers depend on every name here.",
    "# See the change log for the history of this module.",
    "# Reviewed together with the tests of this module.",
    "# The order of the definitions follows the documentation.",
)
"""Harmless additions to product files."""
EXTRA_TESTS = (
    "def test_sorting_is_stable():\n    assert sorted([3, 1, 2]) == [1, 2, 3]\n",
    "def test_text_is_stripped_of_blanks():\n    assert '  a '.strip() == 'a'\n",
    "def test_an_empty_list_is_falsy():\n    assert not []\n",
)
"""Harmless additions to the tests."""


def lay_out(folder: Path, files: Files) -> None:
    """Write the files into a new folder and commit them."""
    write_files(folder, {".gitignore": IGNORED, **files})
    commit_files(folder, "All tests are green")


def with_company(
    project: SmallProject, files: dict[str, str], edits: tuple[Edit, ...], rng: random.Random
) -> None:
    """Add a harmless change in a file of its own, in about half of all cases."""
    if rng.random() < 0.5:
        return
    taken = {edit.path for edit in edits}
    tests = _free(project.tests, files, taken)
    product = [path for path in _free(project.product, files, taken) if not _is_test(project, path)]
    side = rng.choice(("product", "test")) if product and tests else "product" if product else "test"
    if side == "product":
        path = rng.choice(product)
        files[path] = f"{files[path]}\n{rng.choice(REMARKS)}\n"
    elif tests:
        path = rng.choice(tests)
        files[path] = f"{files[path]}\n\n{rng.choice(EXTRA_TESTS)}"


def place_of(edit: Edit, after: dict[str, str], *, exact: bool) -> Place:
    """Return the place of an edit in the changed file."""
    text = after.get(edit.path)
    if text is None:
        return Place(path=edit.path)
    old, new = edit.before.splitlines(), edit.after.splitlines()
    at = max(text.find(edit.after), 0)
    first = text.count("\n", 0, at) + 1
    same = _common(old, new)
    last = first + max(len(new) - _common(old[same:][::-1], new[same:][::-1]), same + 1) - 1
    first = min(first + same, text.count("\n"))
    return Place(
        path=edit.path,
        first_line=first,
        last_line=max(first, last),
        function=_function(edit.path, text, first),
        exact=exact,
    )


def snippet(text: str, limit: int = 400) -> str:
    """Return a few lines of source."""
    return text if len(text) <= limit else text[:limit] + "…"


def _is_test(project: SmallProject, path: str) -> bool:
    return any(fnmatch.fnmatch(path, glob) for glob in project.tests)


def _common(one: list[str], other: list[str]) -> int:
    """Return the number of equal lines at the beginning."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _free(globs: tuple[str, ...], files: dict[str, str], taken: set[str]) -> list[str]:
    return [
        path
        for path in sorted(files)
        if path not in taken
        and path.endswith(".py")
        and not path.endswith(("__init__.py", "conftest.py"))
        and any(fnmatch.fnmatch(path, glob) for glob in globs)
    ]


def _function(path: str, text: str, line: int) -> str | None:
    if not path.endswith(".py"):
        return None
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    return _innermost(tree, line)


def _innermost(node: ast.AST, line: int) -> str | None:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if (found := _innermost(child, line)) is not None:
                return found
        elif child.lineno <= line <= (child.end_lineno or child.lineno):
            inner = _innermost(child, line)
            if inner is not None:
                return f"{child.name}.{inner}"
            return None if isinstance(child, ast.ClassDef) else child.name
    return None
