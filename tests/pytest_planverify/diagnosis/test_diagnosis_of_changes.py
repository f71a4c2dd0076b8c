# ruff: noqa: E501 (a case is one line)
"""Attribution of failures by changed files, and by errors that the machine itself reports."""

from typing import Any

import pytest
from diagnosis_samples import TEST_FILE, error, failed, frame

from planner.brief.instructions import asks_for_work
from planner.model.evidence import (
    ChangedFile,
    CommandFact,
    Evidence,
    ExceptionFact,
    ExecutedFunction,
    Frame,
    Hunk,
    RequirementFact,
    Selector,
)
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis import diagnose

TEST = frame(TEST_FILE, "test_total", 9, source="total(x)")
PRODUCT = frame("shop/cart.py", "total", 3, source="return work(x)")
LIBRARY = frame(
    "/venv/lib/python3/site-packages/client/api.py",
    "call",
    side=Side.THIRD_PARTY,
    module="client.api",
    source="raise ClientError(text)",
)


def stdlib(module: str, function: str = "f") -> Frame:
    path = f"/usr/lib/python3.11/{module.replace('.', '/')}.py"
    return frame(path, function, module=module, side=Side.STDLIB)


def changed(*paths: str) -> tuple[ChangedFile, ...]:
    sides = {"shop": Side.PRODUCT, "tests": Side.TEST}
    return tuple(ChangedFile(path=path, side=sides.get(path.partition("/")[0])) for path in paths)


def seen(*chain: ExceptionFact, files: tuple[str, ...] | None = (), **more: Any) -> Evidence:
    """Return evidence of a failed test, with the changed files; ``None`` if they are unknown."""
    known = None if files is None else changed(*files)
    return failed(*chain, **{"changed": known, "test_packages": ("tests", "helpers"), **more})


def from_product(source: str) -> Frame:
    """Return the frame of the product with another source line."""
    return PRODUCT.model_copy(update={"source": source})


OS = "OSError Exception"
RAISES = from_product("raise Refused('so')")
MISSING = error("FileNotFoundError", "", TEST, PRODUCT, stdlib("subprocess"), bases=OS, errno=2, path="dot")
VARIABLE = error("KeyError", "'PORT'", TEST, PRODUCT, stdlib("os", "_Environ.__getitem__"))
ASSERTION = error("AssertionError", "assert 1 == 2", TEST)
QUOTED = """Traceback (most recent call last):
  File "/srv/shop/cart.py", line 3, in <module>
    import client
{}
assert 1 == 0"""
QUOTES = error("AssertionError", QUOTED.format("ModuleNotFoundError: No module named 'client'"), TEST)
QUOTES_OWN = error("AssertionError", QUOTED.format("ValueError: no price"), TEST)
AGAIN = ({"where": "alone", "passed": False},)
LOOKUP = error("_pytest.fixtures.FixtureLookupError", "fixture 'full' not found", TEST, name="full")
MARK = error("Failed", "'slwo' not found in `markers` configuration option", TEST)
ASYNC = error("Failed", "async def functions are not natively supported.", bases="Exception")
DENIED = error("PermissionError", "[Errno 13] no", TEST, PRODUCT, bases=OS, errno=13, path="/srv/x")
WRAPPED = (
    error("urllib.error.URLError", "<urlopen error>", TEST, PRODUCT, stdlib("urllib.request").model_copy(update={"source": "raise URLError(err)"}), bases=OS),
    error("socket.gaierror", "Name or service not known", stdlib("urllib.request"), stdlib("socket"), bases=OS, errno=-2),
)  # fmt: skip
KIND = error("TypeError", "'int' object is not iterable", TEST, PRODUCT)
GIT = error("subprocess.CalledProcessError", "Command '['git', 'log']' returned non-zero exit status 128.", TEST, PRODUCT, stdlib("subprocess"))  # fmt: skip
NODE = error("subprocess.CalledProcessError", "Command '['node', 'shop/web.js']' returned non-zero exit status 1.", TEST, PRODUCT, stdlib("subprocess"))  # fmt: skip

ASCII = error("UnicodeEncodeError", "'ascii' codec can't encode", TEST, PRODUCT, bases="UnicodeError")
NOTHING = error(
    "AttributeError",
    "'NoneType' object has no attribute 'strip'",
    TEST,
    from_product("os.getenv('TOKEN').strip()"),
)
UNSET = error("ValueError", "SHOP_TOKEN is not set", TEST, RAISES)
DATA = error("FileNotFoundError", "no", TEST, bases=OS, errno=2, path="tests/data/large.json")
WRITTEN = error("FileNotFoundError", "no", TEST, from_product("open('out/a.txt', 'w')"), bases=OS, errno=2, path="out/a.txt")  # fmt: skip
PART = error("ModuleNotFoundError", "", TEST, bases="ImportError", name="collections.acb")
NEW_TEXT = "+def test_total():\n+    assert total(x) == 2"
NEW = Hunk(path=TEST_FILE, line=8, added=2, function="test_total", side=Side.TEST, text=NEW_TEXT)
EDITED = NEW.model_copy(
    update={"added": 1, "removed": 1, "text": "-    assert total(x) == 1\n+    assert total(x) == 2"}
)
REMARK = Hunk(path="shop/b.py", line=3, added=1, side=Side.PRODUCT, text="+# a remark")
EDITED_DATA = Hunk(path="tests/data/large.json", line=2, removed=1, text=" [\n-1,\n 2]")
UNFIXED_TEXT = "-def full():\n+def whole():"
UNFIXED = Hunk(path="tests/conftest.py", line=5, added=1, removed=1, side=Side.TEST, text=UNFIXED_TEXT)
BY_CHANGE = {"files": ("shop/b.py", "tests/test_cart.py")}

OLD = RequirementFact(name="client", asked="<6", installed="6.1", modules=("client",), file="tox.ini")
ABSENT = OLD.model_copy(update={"installed": None})
PLUGIN = ABSENT.model_copy(update={"name": "pytest-many-clients"})
ABSENT_PLUGIN = error("ModuleNotFoundError", "", TEST, bases="ImportError", name="many_clients")
SHELF = frame("shop/shelf.py", "put", 3)
BELOW = error("TypeError", "x() missing 1 argument", TEST, SHELF, LIBRARY)
ABOVE = error("TypeError", "x() missing 1 argument", TEST, LIBRARY, TEST, SHELF)
GROUP = error("ExceptionGroup", "2 failures", TEST, LIBRARY, bases="BaseExceptionGroup Exception")
UNUSED = {"message": "unused import", "path": "shop/cart.py", "line": 1}
LINT = {"argv": ("flake8",), "tool": "flake8", "purpose": "lint", "findings": (UNUSED,)}


def beside(path: str, text: str) -> Evidence:
    """Return evidence of a test that failed after this change of another file of the tests."""
    hunk = Hunk(path=path, line=1, added=1, side=Side.TEST, text=text)
    return seen(ASSERTION, files=(path,), subjects=(PRODUCT,), hunks=(hunk,))


CASES: tuple[tuple[str, Evidence, C, Owner, str], ...] = (
    ("encoding of the locale, unchanged", seen(ASCII, files=("shop/b.py",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "encoding-of-machine"),
    ("encoding, by the change", seen(ASCII, files=("shop/cart.py",)), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product"),
    ("no value of a variable", seen(NOTHING), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "variable-unusable"),
    ("variable that is missed by hand", seen(UNSET), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "refused-for-the-machine"),
    ("data of the tests, unchanged", seen(DATA, files=("shop/b.py",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "file-not-shipped"),
    ("data of a library", seen(error("FileNotFoundError", "[Errno 2]", TEST, LIBRARY, errno=2, path="/venv/lib/python3/site-packages/client/zones.json"), files=None), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "file-not-shipped"),
    ("data that a library reads", seen(error("FileNotFoundError", "[Errno 2]", TEST, LIBRARY, errno=2, path="/tmp/zones.json"), files=None), C.TEST_REGRESSION, Owner.TEST, "raised-in-test-alone"),
    ("file that is written", seen(WRITTEN), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product"),
    ("data of the tests, removed", seen(DATA, files=("tests/data/large.json",)), C.ARTIFACT_MISSING, Owner.TEST, "read-file-removed"),
    ("data of the tests, only changed", seen(DATA, files=("tests/data/large.json",), hunks=(EDITED_DATA,)), C.TEST_REGRESSION, Owner.TEST, "raised-in-test-alone"),
    ("part of a module, by the change", seen(PART, files=("tests/test_cart.py",)), C.IMPORT_ERROR, Owner.TEST, "dependency-missing"),
    ("a new test", seen(ASSERTION, files=("tests/test_cart.py",), hunks=(NEW,)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("an edited test beside a remark", seen(ASSERTION, hunks=(EDITED, REMARK), **BY_CHANGE), C.TEST_REGRESSION, Owner.TEST, "assertion-in-test"),
    ("what a program that the test started lacks", seen(QUOTES, unmet=(ABSENT,)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "requirement-unmet"),
    ("a declared plugin that provides the module", seen(ABSENT_PLUGIN, unmet=(PLUGIN,)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "requirement-unmet"),
    ("what a program that the test started lacks, by the change", seen(QUOTES, files=("shop/b.py",), unmet=(ABSENT,)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("what a program that the test started refuses", seen(QUOTES_OWN), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("an expectation that held with the same files", seen(ASSERTION, passed_unchanged=True, confirmations=AGAIN), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "passed-with-these-files"),
    ("what the product refuses, and did not with the same files", seen(KIND, passed_unchanged=True, confirmations=AGAIN), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "passed-with-these-files"),
    ("an expectation that failed once with the same files", seen(ASSERTION, passed_unchanged=True), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("program, unchanged", seen(MISSING, files=("shop/other.py",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "program-not-on-path"),
    ("program, named by the change", seen(MISSING, files=("shop/cart.py",)), C.TEST_REGRESSION, Owner.PRODUCT, "name-of-change-not-found"),
    ("variable, read by the change", seen(VARIABLE, files=("shop/cart.py",)), C.TEST_REGRESSION, Owner.PRODUCT, "name-of-change-not-found"),
    ("expectation, other tests changed", seen(ASSERTION, files=("tests/test_b.py",)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("expectation, a helper of the tests changed", seen(ASSERTION, files=("tests/helpers.py",)), C.TEST_REGRESSION, Owner.TEST, "assertion-in-test"),
    ("fixture, nothing known", seen(LOOKUP, files=None), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "not-of-pytest"),
    ("mark, unchanged", seen(MARK), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "not-of-pytest"),
    ("coroutine of the change", seen(ASYNC, files=("tests/test_cart.py",)), C.TEST_REGRESSION, Owner.TEST, "asked-by-changed-tests"),
    ("coroutine, unchanged", seen(ASYNC), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "not-of-pytest"),
    ("denied to the change", seen(DENIED, files=("shop/cart.py",)), C.TEST_REGRESSION, Owner.PRODUCT, "refused-to-changed-code"),
    ("wrapped by a library", seen(*WRAPPED, files=("shop/cart.py",)), C.TEST_REGRESSION, Owner.PRODUCT, "refused-to-changed-code"),
    ("wrapped by a library, unchanged", seen(*WRAPPED), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "service-unreachable"),
    ("denied to a new test", seen(DENIED, files=("shop/cart.py", "tests/test_cart.py")), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "system-refuses"),
    ("kind, only tests changed", seen(KIND, files=("tests/test_cart.py",)), C.TEST_REGRESSION, Owner.TEST, "product-misled-by-tests"),
    ("git, unchanged", seen(GIT, files=None), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "program-fails-here"),
    ("program, started with a changed file", seen(NODE, files=("shop/web.js",)), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product"),
    ("memory, another change", seen(error("MemoryError", "", TEST, PRODUCT), files=("shop/b.py",), confirmations=AGAIN * 2), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "system-refuses"),
    ("memory of the change", seen(error("MemoryError", "", TEST, PRODUCT), files=("shop/cart.py",), confirmations=AGAIN * 2), C.TEST_REGRESSION, Owner.PRODUCT, "memory-asked-for"),
    ("module, only tests changed", seen(error("ModuleNotFoundError", "No module named 'shop.crat'", TEST, bases="ImportError", name="shop.crat"), files=("tests/test_cart.py",)), C.TEST_REGRESSION, Owner.TEST, "import-of-changed-tests"),
    ("module, removed", seen(error("ModuleNotFoundError", "No module named 'lists'", TEST, bases="ImportError", name="lists"), files=("shop/lists.py",)), C.ARTIFACT_MISSING, Owner.PRODUCT, "own-module-missing"),
    ("submodule, removed", seen(error("ImportError", "cannot import name 'lists' from 'shop' (/p/shop/__init__.py)", TEST, name="shop", path="shop/__init__.py", object_side=Side.PRODUCT), files=("shop/lists.py",)), C.ARTIFACT_MISSING, Owner.PRODUCT, "own-module-missing"),
    ("submodule, planned", seen(error("ImportError", "cannot import name 'lists' from 'shop' (/p/shop/__init__.py)", TEST, name="shop", path="shop/__init__.py", object_side=Side.PRODUCT), granted=("shop/lists.py",)), C.ARTIFACT_MISSING, Owner.PRODUCT, "own-module-missing"),
    ("name of a planned package", seen(error("ImportError", "cannot import name 'lists' from 'shop' (/p/shop/__init__.py)", TEST, name="shop", path="shop/__init__.py", object_side=Side.PRODUCT), granted=("shop/__init__.py",)), C.SPEC_MISMATCH, Owner.PRODUCT, "promised-name-missing"),
    ("name in a planned folder", seen(error("ImportError", "cannot import name 'lists' from 'shop' (/p/shop/__init__.py)", TEST, name="shop", path="shop/__init__.py", object_side=Side.PRODUCT), granted=("shop/**",)), C.SPEC_MISMATCH, Owner.PRODUCT, "promised-name-missing"),
    ("own class, whatever its base", seen(error("shop.cart.Refused", "so", TEST, RAISES, bases="ConnectionError OSError")), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product"),
    ("import said by hand", seen(error("ImportError", "no column b", TEST, RAISES)), C.TEST_REGRESSION, Owner.PRODUCT, "raised-in-product"),
    ("test that cannot be called, only the product changed", seen(error("TypeError", "test_total() takes 0 positional arguments but 1 was given", TEST, object_side=Side.TEST), files=("shop/cart.py",)), C.TEST_REGRESSION, Owner.TEST, "raised-in-test-alone"),
    ("second file of its name", seen(error("_pytest.pathlib.ImportPathMismatchError", "x", TEST), files=("tests/more/test_cart.py",)), C.TEST_REGRESSION, Owner.TEST, "second-file-of-its-name"),
    ("fixture, another test module changed", seen(error("_pytest.fixtures.FixtureLookupError", "fixture 'stok' not found", TEST, name="stok"), files=("tests/test_tax.py",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "not-of-pytest"),
    ("client gave up", seen(error("client.api.ConnectionError", "no", TEST, PRODUCT, LIBRARY)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "client-gave-up"),
    ("service overloaded", seen(error("urllib.error.HTTPError", "HTTP Error 503: busy", TEST, PRODUCT, stdlib("urllib.request"), bases=OS)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "service-unreachable"),
    ("library refuses for the machine", seen(error("client.api.DriverError", "no display name", TEST, PRODUCT, LIBRARY)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "refused-for-the-machine"),
    ("database", seen(error("sqlite3.OperationalError", "unable to open database file", TEST, PRODUCT)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "machine-lacks-something"),
    ("peer too slow", seen(error("TimeoutError", "timed out", TEST, PRODUCT, stdlib("socket"), bases=OS)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "service-unreachable"),
    ("peer hung up", seen(error("http.client.RemoteDisconnected", "closed", TEST, PRODUCT, stdlib("http.client"), bases="ConnectionError OSError")), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "service-unreachable"),
    ("no temporary folder", seen(error("FileNotFoundError", "No usable temporary directory found in ['/tmp']", TEST, PRODUCT, stdlib("tempfile"), bases=OS)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "machine-lacks-something"),
    ("newer Python needed", seen(error("ImportError", "cannot import name 'override' from 'typing' (/usr/lib/typing.py)", TEST, PRODUCT, name="typing"), files=("shop/b.py",)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "native-library-missing"),
    ("name that no Python has", seen(error("ImportError", "cannot import name 'overide' from 'typing' (/usr/lib/typing.py)", TEST, PRODUCT, name="typing"), files=("shop/cart.py",)), C.IMPORT_ERROR, Owner.PRODUCT, "import-failed"),
    ("socket of the machine", seen(error("FileNotFoundError", "[Errno 2] no", TEST, from_product("wire.connect(place)"), bases=OS, errno=2)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "service-unreachable"),
    ("versions", seen(error("pkg_resources.VersionConflict", "x", TEST)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "machine-lacks-something"),
    ("library of another version, changed code", seen(BELOW, files=("shop/cart.py",), unmet=(OLD,)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "requirement-unmet"),
    ("library of another version that only calls the tests, changed code", seen(ABOVE, files=("shop/cart.py",), unmet=(OLD,)), C.TYPE_ERROR, Owner.PRODUCT, "wrong-kind-inside-product"),
    ("library of another version that only calls the tests, unchanged", seen(ABOVE, unmet=(OLD,)), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "requirement-unmet"),
    ("library of another version that groups the errors of its calls", seen(GROUP, exceptions_in_group=(ASSERTION,), files=("shop/cart.py",), unmet=(OLD,)), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("new test file that is not used", beside("tests/other.py", "+x = 1"), C.TEST_REGRESSION, Owner.PRODUCT, "assertion-in-test"),
    ("new conftest", beside("tests/conftest.py", "+x = 1"), C.TEST_REGRESSION, Owner.TEST, "assertion-in-test"),
    ("changed helper of the tests", beside("tests/other.py", " import shop\n+x = 1"), C.TEST_REGRESSION, Owner.TEST, "assertion-in-test"),
    ("complaint about the product, only tests changed", Evidence(kind=EvidenceKind.COMMAND, command=LINT, changed=changed("tests/helpers.py")), C.LINT_ERROR, Owner.PRODUCT, "linter-complained"),
)  # fmt: skip


NEWLIB = TEST.model_copy(update={"function": "<module>", "source": "from newlib.core import add"})


@pytest.mark.parametrize(
    ("granted", "written"),
    [
        (("newlib/**",), "newlib/core.py"),
        (("src/newlib/**", "!src/newlib/core.py"), "src/newlib/core/__init__.py"),
        (("newlib/__init__.py",), "newlib/__init__.py"),
        (("newlib/other.py",), "newlib/other.py"),
        (("**/*.py", "*.py", "src/**", "newlibrary/**"), None),
        ((), None),
    ],
)
@pytest.mark.parametrize("files", [(), (TEST_FILE,)], ids=["unchanged", "changed test"])
def test_missing_module_that_a_todo_may_create_is_a_missing_artifact(
    granted: tuple[str, ...], written: str | None, files: tuple[str, ...]
):
    missing = error("ModuleNotFoundError", "", NEWLIB, bases="ImportError", name="newlib")
    found = diagnose(seen(missing, files=files, granted=granted, nodeid=TEST_FILE))

    is_product = (found.category, found.owner) == (C.ARTIFACT_MISSING, Owner.PRODUCT)
    assert is_product == (written is not None)
    assert written is None or f"write {written}." in found.suggestion


@pytest.mark.parametrize(("case"), CASES, ids=lambda case: case[0])
def test_changed_files_and_system_errors_decide_the_owner(case: tuple[str, Evidence, C, Owner, str]):
    _, evidence, category, owner, rule = case

    diagnosis = diagnose(evidence)

    assert (diagnosis.category, diagnosis.owner, diagnosis.rule) == (category, owner, rule)
    assert diagnosis.suggestion


def test_failure_with_only_changed_tests_belongs_to_the_test():
    asks = error("AttributeError", "module 'shop' has no attribute 'x'", TEST, name="x", object_type="module shop", object_side=Side.PRODUCT)  # fmt: skip

    promised = diagnose(seen(asks, files=("shop/b.py", "tests/test_cart.py")))
    invented = diagnose(seen(asks, files=("tests/test_cart.py",)))

    assert (promised.category, promised.owner) == (C.SPEC_MISMATCH, Owner.PRODUCT)
    assert (invented.category, invented.owner) == (C.TEST_REGRESSION, Owner.TEST)
    assert invented.runner_up is not None
    assert invented.runner_up.category is C.SPEC_MISMATCH
    assert "Only tests were changed" in invented.because


IMPORTING = TEST.model_copy(update={"function": "<module>"})


def not_imported(missing: ExceptionFact, hunk: Hunk) -> Evidence:
    """Return evidence of the test module that could not be imported after it was changed."""
    return seen(missing, files=(TEST.path,), hunks=(hunk,), nodeid=TEST.path, phase=Phase.COLLECT)


@pytest.mark.parametrize(
    ("was", "now", "owner"),
    [
        ("from shop import totals", "from shop import total", Owner.TEST),
        ("from shop import totals", "from shop import total as totals", Owner.TEST),
        ("from shop import totals", "from shop import total, totals", Owner.PRODUCT),
        ("import shop", "from shop import total", Owner.PRODUCT),
        ("", "from shop import total", Owner.PRODUCT),
    ],
)
def test_import_added_by_a_test_is_a_new_demand_unless_it_replaced_a_similar_name(
    was: str, now: str, owner: Owner
):
    missing = error("ImportError", "cannot import name 'total' from 'shop'", IMPORTING, name="shop", path="shop/__init__.py", object_side=Side.PRODUCT)  # fmt: skip
    text = f"-{was}\n+{now}" if was else f"+{now}"
    hunk = Hunk(path=TEST.path, line=1, added=1, removed=bool(was), side=Side.TEST, text=text)

    found = diagnose(not_imported(missing, hunk))

    assert found.owner is owner
    if owner is Owner.PRODUCT:
        assert found.location is not None
        assert found.location.path == "shop/__init__.py"


@pytest.mark.parametrize(
    ("near", "expected"),
    [((), (C.ARTIFACT_MISSING, Owner.PRODUCT)), (("cart",), (C.TEST_REGRESSION, Owner.TEST))],
)
def test_module_that_a_test_newly_imports_is_still_to_be_written_unless_it_is_misspelt(
    near: tuple[str, ...], expected: tuple[C, Owner]
):
    missing = error("ModuleNotFoundError", "No module named 'shop.crat'", IMPORTING, bases="ImportError", name="shop.crat", nearest=near)  # fmt: skip
    hunk = Hunk(path=TEST.path, line=1, added=1, side=Side.TEST, text="+from shop.crat import total")

    found = diagnose(not_imported(missing, hunk))

    assert (found.category, found.owner) == expected


def test_tests_skipped_for_what_is_not_installed_are_an_environment_error():
    def skipped(*reasons: str) -> Evidence:
        return Evidence(kind=EvidenceKind.SELECTION, vacuous="all_skipped", skip_reasons=reasons)

    absent = "could not import 'yaml': No module named 'yaml'"
    assert diagnose(skipped(absent)).owner is Owner.ENVIRONMENT
    assert diagnose(skipped("requires pytest-codspeed", "cffi not installed")).owner is Owner.ENVIRONMENT
    assert diagnose(skipped(absent, "only on Windows")).category is C.TEST_NOT_FOUND


def stuck(stack: str, **more: Any) -> Evidence:
    """Return evidence of a test that was stopped at its limit in this stack."""
    process = {"stack": f"Current thread 0x1 (most recent call first):\n{stack}", "timed_out": True}
    return seen(timed_out=True, limit_seconds=2, process=process, **more)


IN_PRODUCT = '  File "/project/shop/cart.py", line 3 in total\n'


@pytest.mark.parametrize("end", [".", "?", "!", "..."])
def test_suggestion_does_not_end_with_a_period_after_the_mark_of_a_message(end: str):
    diagnosis = diagnose(seen(error("ImportError", f"cannot tell a..b{end}", PRODUCT)))

    assert (diagnosis.suggestion or "").endswith(f"cannot tell a..b{end}")


def with_change(evidence: Evidence, path: str, side: Side) -> Evidence:
    """Return the evidence with a change of data in a file of this side."""
    hunk = Hunk(path=path, line=3, added=1, removed=1, side=side, text="-1\n+2")
    return evidence.model_copy(update={"changed": (ChangedFile(path=path, side=side),), "hunks": (hunk,)})


def misconfigured(said: str) -> Evidence:
    """Return evidence of a session that refused what the change wrote into the settings."""
    text = " [pytest]\n-a = 1\n a = 2\n+b = --zzz"
    hunk = Hunk(path="pytest.ini", line=2, added=1, removed=1, text=text)
    return Evidence(kind=EvidenceKind.SESSION, longrepr=said, process={"exit_code": 4}, hunks=(hunk,))


ADDED = NEW.model_copy(update={"removed": 1, "text": f"-\n+    \n{NEW_TEXT}"})
REWRITTEN = NEW.model_copy(update={"removed": 1, "text": f"-    x = 1\n+    \n{NEW_TEXT}"})
HELPER = Hunk(
    path="tests/helpers.py", line=5, function="all_carts", added=1, removed=1, side=Side.TEST, text="-a\n+b"
)
UNRELATED = Hunk(path="shop/cart.py", line=3, added=1, removed=1, side=Side.PRODUCT, text="-a\n+b")
GONE = Selector(text="tests/test_gone.py", problem="missing_file")
NO_TAX = error("ModuleNotFoundError", "", TEST, bases="ImportError", name="shop.tax")
SECOND = error(
    "_pytest.pathlib.ImportPathMismatchError", "('test_cart', '/p/more/test_cart.py', '/p/test_cart.py')"
)
BUMPED = error(
    "AssertionError", "assert 3 == 4\n +  where 3 = bump(1)\n +    where bump = Cart().bump", TEST
)
BUMPS = (frame("shop/old.py", "bump", 2), frame("shop/cart.py", "Cart.bump", 7))
RAN = ExecutedFunction(path="shop/cart.py", line=7, function="Cart.bump", red=1, green=0)
ASSERTED = seen(ASSERTION, files=(), subjects=(PRODUCT,))
IN_THREAD = (
    '  File "/usr/lib/python3.11/threading.py", line 1116 in join\n'
    '  File "/project/tests/test_cart.py", line 9 in test_total\n\n'
    f"Thread 0x2 (most recent call first):\n{IN_PRODUCT}"
    '  File "/usr/lib/python3.11/threading.py", line 982 in run\n'
)
TOLD: dict[str, tuple[Evidence, C, Owner, str | None, str]] = {
    "a test in place of a blank line is a new demand": (seen(ASSERTION, files=(TEST.path,), hunks=(ADDED,)), C.TEST_REGRESSION, Owner.PRODUCT, None, ""),
    "a test in place of a line is not": (seen(ASSERTION, files=(TEST.path,), hunks=(REWRITTEN,)), C.TEST_REGRESSION, Owner.TEST, None, ""),
    "an unknown option is in the changed line of the settings": (misconfigured("pytest.main(): error: unrecognized arguments: --zzz"), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "pytest.ini:3 None", ""),
    "an unknown setting is in their changed line": (misconfigured("Unknown config option: --zzz"), C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, "pytest.ini:3 None", ""),
    "a timeout after a change of tests only": (stuck(IN_PRODUCT, files=(HELPER.path,), hunks=(HELPER,)), C.TEST_TIMEOUT, Owner.TEST, "tests/helpers.py:5 all_carts", ""),
    "a timeout after a change of the product, too": (stuck(IN_PRODUCT, files=(HELPER.path, "shop/cart.py"), hunks=(HELPER,)), C.TEST_TIMEOUT, Owner.PRODUCT, None, ""),
    "a timeout in a thread of the product": (stuck(IN_THREAD), C.TEST_TIMEOUT, Owner.PRODUCT, "/project/shop/cart.py:3 total", ""),
    "a second test file of a name": (seen(SECOND, nodeid="tests/test_cart.py", files=None), C.TEST_REGRESSION, Owner.TEST, None, "There is a second test_cart.py: give one another name"),
    "a value of the executed of two functions of one name": (seen(BUMPED, subjects=BUMPS, executed=(RAN,), red_tests=1), C.TEST_REGRESSION, Owner.PRODUCT, None, "Cart.bump (shop/cart.py:7) returned 3 where test_total"),
    "an empty selection, whatever was changed": (Evidence(kind=EvidenceKind.SELECTION, selectors=(GONE,), hunks=(UNRELATED,)), C.TEST_NOT_FOUND, Owner.PLAN, "tests/test_gone.py:None None", ""),
    "a removed fixture": (seen(LOOKUP, files=("tests/conftest.py",), hunks=(UNFIXED,)), C.TEST_REGRESSION, Owner.TEST, "tests/conftest.py:5 None", ""),
    "a removed module": (seen(NO_TAX, files=("shop/tax.py",)), C.ARTIFACT_MISSING, Owner.PRODUCT, "shop/tax.py:None None", "shop/tax.py was removed or renamed since the baseline or the last commit: restore it."),
    "changed data of the product": (with_change(ASSERTED, "shop/rates.json", Side.PRODUCT), C.TEST_REGRESSION, Owner.PRODUCT, "shop/rates.json:3 None", ""),
    "changed data of tests": (with_change(ASSERTED, "tests/data/rates.json", Side.TEST), C.TEST_REGRESSION, Owner.TEST, "tests/data/rates.json:3 None", ""),
    "an expectation of a changed test": (seen(ASSERTION, hunks=(EDITED,), files=(TEST_FILE,), subjects=(PRODUCT,)), C.TEST_REGRESSION, Owner.TEST, "tests/test_cart.py:9 test_total", ""),
}  # fmt: skip


@pytest.mark.parametrize(("evidence", "category", "owner", "place", "said"), TOLD.values(), ids=TOLD)
def test_change_decides_owner_and_place(
    evidence: Evidence, category: C, owner: Owner, place: str | None, said: str
):
    found = diagnose(evidence)

    assert (found.category, found.owner) == (category, owner)
    at = found.location
    assert place is None or (at and f"{at.path}:{at.line} {at.function}") == place
    assert said in found.suggestion


BITS = frame("shop/bits.py", "Bits", 3)
AS_LIST = "assert 3 == 4\n +  where 3 = as_list()\n +    where as_list = Bits('a(b)').as_list"
BY_CACHE = "assert 3 == 4\n +  where 3 = <cache object at 0x7f0000>('')\n +    where <cache object at 0x7f0000> = shop.Bits"
BY_CALL = "assert None == date(1997, 7, 16)\n +  where date(1997, 7, 16) = date(1997, 7, 16)"
CEIL = "assert 66 == None\n +  where 66 = min([66])\n +  and   None = <function ceil at 0x7f0000000000>(60)"
LENGTH = "assert 3 == 4\n +  where 3 = len([1, 2, 3])\n +    where [1, 2, 3] = Bits('')"
UNMATCHED = "Regex pattern did not match.\n  Expected regex: 'positive'\n  Actual message: 'too small'"
GIVEN: dict[str, tuple[str, tuple[Frame, ...], str]] = {
    "a result on the right side": (CEIL, (frame("shop/cart.py", "ceil", 3),), "ceil (shop/cart.py:3) returned None where test_total (tests/test_cart.py:9) expects 66."),
    "a result": ("assert 3 == 4\n +  where 3 = Bits('')", (BITS,), "Bits (shop/bits.py:3) returned 3 where test_total"),
    "a result of a wrapped function": (BY_CACHE, (BITS,), "Bits (shop/bits.py:3) returned 3 where test_total"),
    "a result of a method of the result": (AS_LIST, (BITS,), "as_list() returned 3 where test_total"),
    "an attribute of the result": ("assert 3 == 4\n +  where 3 = Bits('').size", (BITS,), "Bits('').size returned 3 where test_total"),
    "a method that is not called": ("assert size == 3\n +  where size = <shop.bits.Bits object at 0x7f>.size", (frame("shop/bits.py", "Bits.size", 3),), "Bits.size (shop/bits.py:3) was not called, so test_total"),
    "a value made from the result": (LENGTH, (BITS,), "len([1, 2, 3]) returned 3 where test_total"),
    "a value that the test makes by a call": (BY_CALL, (), "test_total (tests/test_cart.py:9) got None where it expects date(1997, 7, 16)."),
    "no result of a class with a lower-case name": ("30 != 31", (frame("shop/bits.py", "bits", 3, source="class bits"),), "The product returned 30 where test_total"),
    "values that are shown alike": ("assert Geo(1) == Geo(1)", (PRODUCT, LIBRARY), "The product gave Geo(1), which is shown like the expected value, but not equal to it."),
    "no sides of a negated comparison": ("assert not Geo(1) != Geo(2)", (PRODUCT, LIBRARY), "test_total (tests/test_cart.py:9) fails: AssertionError: assert not Geo(1) != Geo(2)."),
    "the message of another error": (UNMATCHED, (), "The product raised 'too small' where test_total (tests/test_cart.py:9) expects a message that matches 'positive'."),
}  # fmt: skip


@pytest.mark.parametrize(("message", "subjects", "said"), GIVEN.values(), ids=GIVEN)
def test_suggestion_says_what_gave_the_value_and_what_is_expected(
    message: str, subjects: tuple[Frame, ...], said: str
):
    diagnosis = diagnose(seen(error("AssertionError", message, TEST), subjects=subjects))

    assert diagnosis.suggestion.startswith(said)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (None, "-\n     def total(self):"),  # a removed blank line before an unchanged method
        ("other", "-    total = 3"),  # a variable
    ],
)
def test_a_change_near_a_name_has_not_removed_it(function: str | None, text: str):
    lost = error("AttributeError", "no total", TEST, name="total", object_side=Side.PRODUCT)
    hunk = Hunk(path="shop/cart.py", line=5, removed=1, function=function, side=Side.PRODUCT, text=text)

    assert "add it" in diagnose(seen(lost, files=("shop/cart.py",), hunks=(hunk,))).suggestion


@pytest.mark.parametrize("user", [TEST, PRODUCT], ids=["test", "product"])
@pytest.mark.parametrize(
    ("moved", "told"), [(False, "restore it; the change at shop/cart.py:5"), (True, "add it")]
)
def test_method_that_the_change_removed_is_to_be_restored(user: Frame, moved: bool, told: str):
    lost = error("AttributeError", "no total", user, name="total", object_type="shop.Cart", object_side=Side.PRODUCT)  # fmt: skip
    text = "-    def total(self):\n-        return 1"
    removed = Hunk(path="shop/cart.py", line=5, removed=2, side=Side.PRODUCT, text=text)
    added = Hunk(
        path="shop/base.py", line=3, added=1, side=Side.PRODUCT, text="+    def total(self): return 1"
    )

    found = diagnose(seen(lost, files=("shop/cart.py",), hunks=(removed, *[added] * moved)))

    assert told in found.suggestion
    assert asks_for_work(found.suggestion)


@pytest.mark.parametrize("text", ["-1\n+2", "-1"], ids=["whole", "truncated"])
def test_edited_module_that_is_not_found_was_not_removed(text: str):
    missing = error("ModuleNotFoundError", "", TEST, bases="ImportError", name="shop.tax")
    edited = Hunk(path="shop/tax.py", line=3, added=1, removed=1, side=Side.PRODUCT, text=text)
    sent = CommandFact(
        argv=("python", "-m", "unittest", "tests.test_tax"),
        tool="unittest",
        purpose="test",
        output_tail="ModuleNotFoundError: No module named 'shop.tax'",
    )
    run = {"kind": EvidenceKind.COMMAND, "nodeid": None, "command": sent, "process": {"exit_code": 1}}

    for evidence in (
        seen(missing, files=("shop/tax.py",), hunks=(edited,)),
        seen(files=("shop/tax.py",), hunks=(edited,), **run),
    ):
        suggestion = diagnose(evidence).suggestion or ""
        assert "removed" not in suggestion
        assert "gone" not in suggestion


def test_diagnosis_of_the_machine_says_what_to_do():
    exhausted = (error("OSError", "no", PRODUCT, bases=OS, errno=number) for number in (24, 28))
    for raised in (MISSING, VARIABLE, DENIED, ASCII, DATA, *exhausted):
        found = diagnose(seen(raised))
        assert found.owner is Owner.ENVIRONMENT
        assert asks_for_work(found.suggestion), raised


def test_environment_is_blamed_with_less_confidence_if_chance_may_be_the_cause_too():
    found = [
        diagnose(seen(ASSERTION, passed_unchanged=True, confirmations=AGAIN * runs)) for runs in (1, 4)
    ]
    assert {each.rule for each in found} == {"passed-with-these-files"}
    assert found[1].confidence < found[0].confidence
    assert ["chance" in (each.suggestion or "") for each in found] == [False, True]
