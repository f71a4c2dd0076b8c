"""Facts about the installation and the source that explain a failure, and their effect on the diagnosis."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from diagnosis_samples import error, failed, frame
from text_bundles import write_files

from planner.model.evidence import ChangedFile, Evidence, ExceptionFact, Frame, RequirementFact
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner, Role
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.session import installation
from pytest_planverify.session.installation import unmet_requirements, with_installation, with_promise

PRODUCT = frame("shop/cart.py", "<module>")
TEST = frame("tests/test_cart.py", "test_total", 3)
LIBRARY = frame("/v/lib/attr/x.py", "f", side=Side.THIRD_PARTY, module="attr.x")
CART = (ChangedFile(path="shop/cart.py", side=Side.PRODUCT),)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Forget the requirements of earlier folders: pytest 8 gives their names to later tests."""
    unmet_requirements.cache_clear()


def missing(module: str, *frames: Frame, **more: object) -> ExceptionFact:
    message = f"No module named '{module}'"
    return error("ModuleNotFoundError", message, *frames, bases="ImportError", name=module, **more)


def evidence(*errors: ExceptionFact, **more: object) -> Evidence:
    """Return evidence of a test that failed although nothing was changed; ``more`` overrides its fields."""
    return failed(*errors, **{"changed": (), **more})


def test_unmet_requirements_are_reported(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "shop"\n'
        'dependencies = ["pytest>1", "pytest<0.1", "no-such-thing>=2", "odd = [bad"]\n'
        "[project.optional-dependencies]\ntest = [\"other-gone; python_version >= '3'\"]\n"
        "[dependency-groups]\ndev = [\"never; python_version < '3'\", {include-group = 'x'}]\n"
    )
    (tmp_path / "requirements-dev.txt").write_text("# a comment\n-r x.txt\nthird_gone==1  # why\n")
    found = {each.name: each for each in unmet_requirements(tmp_path)}
    assert set(found) == {"pytest", "no-such-thing", "other-gone", "third-gone"}
    assert found["pytest"].installed
    assert "_pytest" in found["pytest"].modules
    assert found["third-gone"].file == "requirements-dev.txt"
    assert unmet_requirements(tmp_path / "nowhere") == ()


def test_setup_py_and_repeated_options_of_setup_cfg_are_parsed_and_pipes_are_not(tmp_path: Path) -> None:
    options = "[options]\ninstall_requires =\n    first-gone\n"
    setup = "raise SystemExit\nsetup(install_requires=NEEDS, tests_require=['t-gone', x])\n"
    write_files(tmp_path, {"setup.cfg": options + options.replace("first", "last") + "    pytest\n"})
    write_files(tmp_path, {"setup.py": f"NEEDS = ['py-gone>=1.0']\n{setup}"})
    for name in ("pyproject.toml", "requirements.txt"):
        os.mkfifo(tmp_path / name)  # which must not block
    found = {each.name: each.file for each in unmet_requirements(tmp_path)}
    assert found == {"last-gone": "setup.cfg", "py-gone": "setup.py", "t-gone": "setup.py"}


@pytest.mark.parametrize(
    "lacks",
    [
        *(missing(name, TEST) for name in ("a" * 300 + ".b", "a\0.b", "/.b")),
        error("ImportError", "cannot import name 'x' from 'a' (a.so)", name="a", path="a\0.so"),
    ],
    ids=["long", "null byte", "path", "extension module"],
)
def test_missing_module_of_any_name_has_no_similar_ones(lacks: ExceptionFact, tmp_path: Path) -> None:
    assert with_installation(evidence(lacks), tmp_path).exceptions[0].nearest == ()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("metadata", "installed"),
    [("Name: odd\nVersion: 1.1build1\n", []), ("Name: odd\nVersion: 1\n", ["1"]), ("", [None])],
    ids=["not comparable", "too old", "no name"],
)
def test_first_distribution_on_the_path_of_the_commands_counts_if_its_version_can_be_compared(
    metadata: str, installed: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"given/odd-1.dist-info/METADATA": metadata, "requirements.txt": "odd>=2\n"})
    if metadata:
        write_files(tmp_path, {"parent/odd-3.dist-info/METADATA": "Name: odd\nVersion: 3\n"})
    monkeypatch.syspath_prepend(tmp_path / "parent")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "given"))
    assert [each.installed for each in unmet_requirements(tmp_path)] == installed


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[project]\nrequires-python = '>=9.1'\n"),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = '^9.1'\n"),
        ("setup.cfg", "[options]\npython_requires = >=9.1\n"),
    ],
)
def test_source_for_another_python_than_the_one_that_runs_is_not_at_fault(
    file: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    newer = error("SyntaxError", "", TEST, path="shop/cart.py", line=1, object_side=Side.PRODUCT)
    lacking = error("AttributeError", "", TEST, PRODUCT, name="batched", object_type="module itertools")
    for each in (newer, lacking):
        found = diagnose(with_installation(evidence(each), tmp_path))
        assert (found.owner, found.rule) == (Owner.ENVIRONMENT, "requirement-unmet")
        assert f"but {file} requires >=9.1" in found.suggestion
        found = diagnose(with_installation(evidence(each, changed=CART), tmp_path))
        assert found.owner is not Owner.ENVIRONMENT


@pytest.mark.parametrize(("age", "is_stale"), [(-100, True), (100, False)])
def test_name_that_a_built_module_lacks_is_the_builds_fault_if_its_source_is_newer(
    age: int, is_stale: bool, tmp_path: Path
) -> None:
    source, built = tmp_path / "shop/_fast.c", tmp_path / "shop/_fast.cpython-311.so"
    write_files(tmp_path / "shop", {source.name: "", built.name: ""})
    os.utime(built, (source.stat().st_mtime + age,) * 2)
    message = f"cannot import name 'total' from 'shop._fast' ({built})"
    path = "shop/_fast.cpython-311.so"
    lacks = error("ImportError", message, PRODUCT, name="shop._fast", path=path)
    found = diagnose(with_installation(evidence(lacks, changed=CART), tmp_path))
    assert (found.rule == "own-module-not-installed") is is_stale
    assert ("was not built from shop/_fast.c" in found.suggestion) is is_stale


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("setup.py", "T = ['py-gone>=1']\nE = {'test': T, 'dev': ['b']}\nsetup(extras_require=E)\n"),
        ("setup.cfg", "[options.extras_require]\ntest =\n    py-gone>=1\n"),
        ("tox.ini", "[testenv]\ndeps =\n    py-gone>=1\n    py39: b-gone\n    -r more.txt\n"),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = '^3.9'\npy-gone = '^1'\n"),
        ("pyproject.toml", "[tool.poetry.group.test.dependencies]\npy-gone = {version = '1.0'}\n"),
        ("pyproject.toml", "[tool.poetry.dev-dependencies]\npy-gone = '*'\npytest = '^1.0'\n"),
        ("pyproject.toml", "[tool.uv]\ndev-dependencies = ['py-gone>=1']\n"),
        ("pyproject.toml", "[tool.pdm.dev-dependencies]\ntest = ['py-gone>=1']\n"),
        ("test-requirements.txt", "".join(f"no-such{number}==1\n" for number in range(120)) + "py-gone==1"),
    ],
)
def test_requirements_of_tests_are_declared_wherever_build_tools_put_them(
    file: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    found = diagnose(with_installation(evidence(missing("py_gone", TEST)), tmp_path))
    assert found.rule == "requirement-unmet"
    assert f"{file} declares py-gone" in (found.suggestion or "")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[tool]\npoetry = 1\n"),
        ("pyproject.toml", "[tool.poetry]\ndependencies = ['a']\n"),
        ("pyproject.toml", "[tool.poetry.group]\na = 1\n"),
        ("pyproject.toml", "a = " + "[" * 100_000),
        ("setup.py", "print 'for Python 2'\nsetup(install_requires=['py-gone'])\n"),
    ],
    ids=["tool", "dependencies", "group", "deep", "another Python"],
)
def test_file_of_another_shape_declares_nothing(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    assert unmet_requirements(tmp_path) == ()


def test_missing_module_that_the_last_commit_deleted_is_the_fault_of_the_product(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"src/shop/cart.py": "", "old.py": "", "shop/never.txt": ""})
    commit_all(tmp_path)
    for name in ("src/shop/cart.py", "old.py"):
        (tmp_path / name).unlink()
    commit_all(tmp_path)

    def rule(module: str) -> tuple[str, Owner]:
        lacks = evidence(missing(module, PRODUCT), first_party=("shop",))
        found = diagnose(with_installation(lacks, tmp_path))
        return found.rule, found.owner

    assert rule("shop.cart") == rule("old") == ("own-module-missing", Owner.PRODUCT)
    monkeypatch.setattr(installation, "ask", lambda *_: pytest.fail("git was asked for each failure"))
    assert rule("shop.never") == ("own-module-not-installed", Owner.ENVIRONMENT)


def test_missing_module_lists_similar_modules_and_unbuilt_sources(tmp_path: Path) -> None:
    names = ("__init__.py", "slugify.py", "_speed.pyx")
    write_files(tmp_path / "slugify", dict.fromkeys(names, ""))

    def nearest(module: str) -> tuple[str, ...]:
        return with_installation(evidence(missing(module, PRODUCT)), tmp_path).exceptions[0].nearest

    assert nearest("slugify.slugifi") == ("slugify",)
    assert nearest("slugify._speed") == ("slugify/_speed.pyx",)
    assert nearest("slugifi") == nearest("shop") == ()
    lacks = "cannot import name '{}' from 'slugify' (/x/slugify/__init__.py)"
    for name, source in {"_speed": ("slugify/_speed.pyx",), "slugifi": ()}.items():
        by_name = error("ImportError", lacks.format(name), PRODUCT, name="slugify")
        assert with_installation(evidence(by_name), tmp_path).exceptions[0].nearest == source
    quiet = Evidence(kind=EvidenceKind.ARTIFACT)
    assert with_installation(quiet, tmp_path) is quiet


UNMET = RequirementFact(name="pyyaml", asked=">=5", file="pyproject.toml")
OLD = RequirementFact(
    name="attrs", asked=">=22", installed="19.1", modules=("attr",), file="pyproject.toml"
)
BY_HAND = PRODUCT.model_copy(update={"function": "total", "source": "raise Error(...)"})
WRONG_TYPE = error("TypeError", "odd", TEST, PRODUCT, LIBRARY)
LACKING = error("AttributeError", "", PRODUCT, object_type="module lib", object_side=Side.THIRD_PARTY)
FULL = error("OSError", "No space left", PRODUCT, errno=28)
ODD = error("ValueError", "x", TEST, PRODUCT)
DATA_OF_PRODUCT = error("FileNotFoundError", "", PRODUCT, path="data/a.json", errno=2)
NOT_BUILT = missing("shop._fast", PRODUCT, nearest=("shop/_fast.c",))
MISSPELT = missing("shop.slugifi", PRODUCT, nearest=("slugify",))
ENVIRONMENT = C.ENVIRONMENT_ERROR, Owner.ENVIRONMENT
OF_PRODUCT = C.TEST_REGRESSION, Owner.PRODUCT
DIAGNOSES = {
    "not installed": (evidence(missing("yaml", PRODUCT), unmet=(UNMET,)), ENVIRONMENT, "requirement-unmet"),
    "excluded version": (evidence(WRONG_TYPE, unmet=(OLD,)), ENVIRONMENT, "requirement-unmet"),
    "not built": (evidence(NOT_BUILT), ENVIRONMENT, "own-module-not-installed"),
    "no module": (evidence(missing("shop._version", PRODUCT)), ENVIRONMENT, "own-module-not-installed"),
    "other library": (evidence(LACKING), ENVIRONMENT, "library-differs"),
    "full disk": (evidence(FULL, changed=CART), ENVIRONMENT, None),
    "excluded version of an unrelated package": (evidence(ODD, unmet=(OLD,)), OF_PRODUCT, None),
    "no file and changed code": (evidence(DATA_OF_PRODUCT, changed=CART), OF_PRODUCT, None),
    "misspelt": (evidence(MISSPELT, changed=CART), (C.IMPORT_ERROR, Owner.PRODUCT), None),
}


@pytest.mark.parametrize(("found", "expected", "rule"), DIAGNOSES.values(), ids=DIAGNOSES)
def test_problems_of_the_installation_are_told_from_faults_of_the_product(
    found: Evidence, expected: tuple[C, Owner], rule: str | None
) -> None:
    diagnosis = diagnose(found)
    assert (diagnosis.category, diagnosis.owner) == expected
    assert rule in (None, diagnosis.rule)
    assert ("did you mean shop.slugify?" in diagnosis.suggestion) == (MISSPELT in found.exceptions)


@pytest.mark.parametrize(
    ("kind", "message", "is_asked_for"),
    [
        ("ImportError", "PyYAML is required to load carts", True),
        ("RuntimeError", "cannot import pyyaml.loader", True),
        ("RuntimeError", "please install the package 'PyYAML'", True),
        ("RuntimeError", "pyyaml has no such cart", False),
        ("RuntimeError", "cannot import cart 3 of pyyaml", False),
    ],
)
def test_an_error_that_asks_for_a_declared_package_is_the_environment(
    kind: str, message: str, is_asked_for: bool
) -> None:
    found = diagnose(evidence(error(kind, message, TEST, BY_HAND), unmet=(UNMET,)))
    assert (found.rule == "requirement-unmet") is is_asked_for
    assert found.owner is (Owner.ENVIRONMENT if is_asked_for else Owner.PRODUCT)


def test_loop_in_the_product_goes_to_the_coder_but_not_one_in_the_test() -> None:
    loops = PRODUCT.model_copy(update={"function": "total"})
    stuck = evidence(error("TimeoutError", "", TEST, loops), timed_out=True)
    assert diagnose(stuck).target_agent is Role.CODER
    assert diagnose(evidence(error("TimeoutError", "", TEST), timed_out=True)).target_agent is None


# -- signatures of a function that a test failed to call ----------------------------------------------

SOURCE = """
class Cart:
    def add(self, item, *, count=1): ...
    def drop(self, item): ...
    @odd
    def move(self, item): ...
    def open(self, item): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text(SOURCE)
    count = {"name": "count", "default": "1"}
    methods = [
        {"name": "add", "parameters": [{"name": "item"}, count]},
        {"name": "drop", "parameters": [{"name": "item"}]},
        {"name": "move", "parameters": [{"name": "item"}]},
        {"name": "open"},
    ]
    classes = [{"name": "Cart", "methods": methods}]
    for name, module in (("cart.json", "shop.cart"), ("lost.json", "shop.lost")):
        contract = {"contract_version": 1, "module": module, "classes": classes}
        (tmp_path / name).write_text(json.dumps(contract))
    return tmp_path


def failed_call(message: str, file: str = "shop/cart.py", **more: Any) -> Evidence:
    error = ExceptionFact(type="TypeError", qualified="builtins.TypeError", message=message)
    subjects = (Frame(path=file, line=2, function="Cart", side=Side.PRODUCT),)
    return Evidence(kind=EvidenceKind.TEST, exceptions=(error,), subjects=subjects, **more)


@pytest.mark.parametrize(
    ("method", "file", "contract", "promised", "actual"),
    [
        ("add", "shop/cart.py", "cart.json", "Cart.add(item, count=1)", "add(item, *, count=1)"),
        ("drop", "src/shop/cart.py", "cart.json", "Cart.drop(item)", "Cart.drop(item)"),
        ("move", "shop/cart.py", "cart.json", "Cart.move(item)", "move(item)"),
        ("open", "shop/cart.py", "cart.json", "Cart.open(…)", None),
        ("drop", "shop/other.py", "cart.json", "Cart.drop(item)", None),
        ("drop", "shop/lost.py", "lost.json", "Cart.drop(item)", None),
    ],
    ids=["broken", "kept", "inconclusive", "left open", "another module", "no module"],
)
def test_failed_call_reports_promised_and_actual_signature(
    method: str, file: str, contract: str, promised: str, actual: str | None, root: Path
) -> None:
    message = f"Cart.{method}() takes 2 positional arguments but 3 were given"
    found = with_promise(failed_call(message, file, contract_path=contract), root)
    assert (found.promised, found.actual_signature) == (promised, actual)


@pytest.mark.parametrize(
    ("message", "contract"),
    [
        ("unsupported operand", "cart.json"),
        ("gone() takes 1 positional argument", "cart.json"),
        ("Cart.add() takes 2 positional arguments", "gone.json"),
        ("Cart.add() takes 2 positional arguments", None),
    ],
)
def test_signatures_are_not_read_for_other_failures(message: str, contract: str | None, root: Path) -> None:
    evidence = failed_call(message, contract_path=contract)
    assert with_promise(evidence, root) is evidence
    nothing = Evidence(kind=EvidenceKind.TEST)
    assert with_promise(nothing, root) is nothing
