"""Contracts: satisfied, broken, or inconclusive if the source alone does not decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.evidence import ContractFact
from planner.model.verdicts import Verdict
from pytest_planverify.checks.contract import check_contract
from pytest_planverify.checks.result import Judgement

RSI = {
    "name": "compute_rsi",
    "parameters": [
        {"name": "series", "kind": "positional_or_keyword", "annotation": "pd.Series"},
        {"name": "period", "annotation": "int", "default": "14"},
    ],
    "returns": "pd.Series",
}


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> Project:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return self

    def check(self, **contract: Any) -> Judgement:
        document = {"contract_version": 1, "module": "indicators.rsi", **contract}
        self.write("contracts/c.json", json.dumps(document))
        result = check_contract("contracts/c.json", self.root, check_id="contract_path")
        assert (result.verdict is Verdict.PASSED) == (not result.evidence)
        assert all(evidence.contract_path == "contracts/c.json" for evidence in result.evidence)
        return result

    def source(self, text: str, function: dict[str, Any] | None = None, **contract: Any) -> Judgement:
        self.write("indicators/rsi.py", text)
        return self.check(functions=[function] if function else [], **contract)


def fact(result: Judgement) -> ContractFact:
    assert result.evidence[0].contract is not None
    return result.evidence[0].contract


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "import pandas as pd\ndef compute_rsi(series: pd.Series, period: int = 14) -> pd.Series: ...",
        "import pandas\ndef compute_rsi(series: pandas.Series, period: int = 14) -> pandas.Series: ...",
        "from pandas import Series as S\ndef compute_rsi(series: S, period: int = 14) -> S: ...",
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    import pandas as pd\n"
        "def compute_rsi(series: 'pd.Series', period: int = 14) -> 'pd.Series': ...",
        "import pandas as pd\nimport functools\n@functools.lru_cache(maxsize=1)\n"
        "def compute_rsi(series: pd.Series, period: int = 14) -> pd.Series: ...",
        "import pandas as pd\nfrom typing import overload\n"
        "@overload\ndef compute_rsi(series: int) -> int: ...\n"
        "def compute_rsi(series: pd.Series, period: int = 14) -> pd.Series: ...",
    ],
)
def test_satisfied_contract_passes_in_any_spelling(project: Project, source: str) -> None:
    result = project.source(source, RSI)
    assert (result.verdict, result.reason) == (Verdict.PASSED, None)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def compute_rsi(series: pd.Series) -> pd.Series: ...", "it lacks the parameter period"),
        (
            "def compute_rsi(series: pd.Series, period: int = 14, x=1) -> pd.Series: ...",
            "the additional parameter x",
        ),
        ("def compute_rsi(period: int, series: pd.Series = 1) -> pd.Series: ...", "another order"),
        (
            "def compute_rsi(series: pd.Series, *, period: int = 14) -> pd.Series: ...",
            "period is keyword only",
        ),
        (
            "def compute_rsi(series: pd.Series, /, period: int = 14) -> pd.Series: ...",
            "series is positional only",
        ),
        (
            "def compute_rsi(series: list, period: int = 14) -> pd.Series: ...",
            "series is list, not pd.Series",
        ),
        ("def compute_rsi(series: pd.DataFrame, period: int = 14) -> pd.Series: ...", "not pd.Series"),
        ("def compute_rsi(series, period: int = 14) -> pd.Series: ...", "series has no annotation"),
        (
            "def compute_rsi(series: pd.Series, period: int = 9) -> pd.Series: ...",
            "default of period is 9, not 14",
        ),
        ("def compute_rsi(series: pd.Series, period: int) -> pd.Series: ...", "period has no default"),
        ("def compute_rsi(series: pd.Series, period: int = 14) -> float: ...", "it returns float"),
        ("def compute_rsi(series: pd.Series, period: int = 14): ...", "has no return annotation"),
        ("class compute_rsi: ...", "is a class"),
    ],
)
def test_violated_contract_reports_expected_and_actual_signature(
    project: Project, source: str, said: str
) -> None:
    result = project.source(f"import pandas as pd\n{source}", RSI)
    assert result.verdict is Verdict.FAILED
    assert said in (result.reason or "")
    broken = fact(result)
    assert (broken.problem, broken.function, broken.module_path) == (
        "signature",
        "compute_rsi",
        "indicators/rsi.py",
    )
    assert broken.expected == "compute_rsi(series: pd.Series, period: int = 14) -> pd.Series"
    assert broken.actual
    assert broken.line == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("@traced\ndef compute_rsi(x): ...", "the decorator traced"),
        ("@a.b(1)\ndef compute_rsi(x): ...", "the decorator a.b"),
        ("@(lambda f: f)\ndef compute_rsi(x): ...", "the decorator ?"),
        ("if FAST:\n    def compute_rsi(x): ...", "under a condition"),
        (
            "try:\n    from x import compute_rsi\nexcept ImportError:\n    def compute_rsi(x): ...",
            "under a condition",
        ),
        ("match x:\n    case 1:\n        def compute_rsi(x): ...", "under a condition"),
        ("def compute_rsi(x): ...\ncompute_rsi = wrap(compute_rsi)", "more than once"),
        ("compute_rsi = lambda series: series", "assigned"),
        ("from fast import compute_rsi", "comes from fast.compute_rsi"),
        ("from fast import *", "star import"),
        ("def __getattr__(name): ...", "__getattr__"),
        (
            "Series = object()\ndef compute_rsi(series: Series, period: int = 14) -> Series: ...",
            "series is Series",
        ),
        ("def compute_rsi(series: f(), period: int = 14) -> 1 + 1: ...", "series is f()"),
        (
            "import pandas as pd\ndef compute_rsi(series: pd.Series, period: int = N) -> pd.Series: ...",
            "is N, not 14",
        ),
    ],
)
def test_contract_that_needs_execution_is_inconclusive(project: Project, source: str, said: str) -> None:
    result = project.source(source, RSI)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert said in (result.reason or "")
    assert fact(result).problem == "unresolved"


def test_missing_function_lists_the_defined_names(project: Project) -> None:
    result = project.source("def rsi(series): ...", RSI)
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "missing_function")
    assert fact(result).actual == "it defines rsi"


def test_parts_omitted_from_the_contract_are_not_compared(project: Project) -> None:
    source = "async def f(a: int = 1, *args, b, **kw) -> str: ..."
    assert project.source(source, {"name": "f"}).verdict is Verdict.PASSED
    parameters = [
        {"name": "a"},
        {"name": "args", "kind": "var_positional"},
        {"name": "b", "kind": "keyword_only"},
        {"name": "kw", "kind": "var_keyword"},
    ]
    assert (
        project.source(source, {"name": "f", "parameters": parameters, "async": True}).verdict
        is Verdict.PASSED
    )
    result = project.source(source, {"name": "f", "parameters": parameters, "async": False})
    assert result.verdict is Verdict.FAILED
    assert "it is async" in (result.reason or "")
    assert fact(result).actual == "async f(a: int = 1, *args, b, **kw) -> str"
    assert project.source("def f(): ...", {"name": "f", "async": True}).verdict is Verdict.FAILED


def test_default_in_a_contract_may_be_a_number(project: Project) -> None:
    function = {"name": "f", "parameters": [{"name": "a", "default": 14}, {"name": "b", "default": None}]}
    assert project.source("def f(a=14, b=None): ...", function).verdict is Verdict.PASSED


def test_reexported_name_is_followed_to_its_definition(project: Project) -> None:
    project.write("indicators/__init__.py", "from .rsi import compute as compute_rsi\nfrom . import rsi\n")
    project.write("indicators/rsi.py", "def compute(a): ...\nclass C: ...\n")
    function = {"name": "compute_rsi", "parameters": [{"name": "a"}]}
    assert project.check(module="indicators", functions=[function]).verdict is Verdict.PASSED
    function = {"name": "compute_rsi", "parameters": [{"name": "b"}]}
    result = project.check(module="indicators", functions=[function])
    assert (result.verdict, fact(result).module_path) == (Verdict.FAILED, "indicators/rsi.py")
    project.write("indicators/__init__.py", "from indicators.rsi import C as D\n")
    assert project.check(module="indicators", classes=[{"name": "D"}]).verdict is Verdict.PASSED


def test_cyclic_imports_are_inconclusive(project: Project) -> None:
    project.write("a.py", "from b import f\n").write("b.py", "from a import f\n")
    assert project.check(module="a", functions=[{"name": "f"}]).verdict is Verdict.INCONCLUSIVE
    project.write("b.py", "def (")
    assert project.check(module="a", functions=[{"name": "f"}]).verdict is Verdict.INCONCLUSIVE


def test_modules_are_found_in_usual_source_folders(project: Project) -> None:
    project.write("src/pkg/sub/__init__.py", "def f(): ...")
    assert project.check(module="pkg.sub", functions=[{"name": "f"}]).verdict is Verdict.PASSED


def test_missing_compiled_and_broken_modules_are_distinguished(project: Project) -> None:
    result = project.check(functions=[RSI])
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "missing_module")
    project.write("indicators/rsi.cpython-311.so", "")
    result = project.check(functions=[RSI])
    assert (result.verdict, fact(result).problem) == (Verdict.INCONCLUSIVE, "unresolved")
    result = project.source("def g(:\n", RSI)
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "unreadable")
    assert result.evidence[0].exceptions[0].type == "SyntaxError"
    assert (result.reason or "").startswith("indicators/rsi.py:1: SyntaxError")
    (project.root / "indicators/rsi.py").write_bytes(b"\0\xff")
    assert project.check(functions=[RSI]).verdict is Verdict.FAILED
    project.source("x = " + "-" * 50_000 + "1", RSI)


def test_module_outside_the_root_is_missing(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "rsi.py").write_text("def f(): ...")
    (project.root / "indicators").symlink_to(elsewhere)
    result = project.check(functions=[{"name": "f"}])
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "missing_module")


CLASS = """
import abc
from dataclasses import dataclass
class Base: ...
class Strategy(Base, abc.ABC):
    def __init__(self, period: int = 14) -> None: ...
    @staticmethod
    def parse(text: str) -> int: ...
    @classmethod
    def make(cls, text: str): ...
    @property
    def name(self) -> str: ...
    if True:
        def sometimes(self): ...
class Plain:
    def run(this): ...
@dataclass
class Data:
    x: int
"""


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        ({"name": "Strategy"}, Verdict.PASSED),
        ({"name": "Strategy", "bases": ["Base", "abc.ABC"]}, Verdict.PASSED),
        ({"name": "Strategy", "bases": ["Other"]}, Verdict.FAILED),
        ({"name": "Missing"}, Verdict.FAILED),
        (
            {
                "name": "Strategy",
                "methods": [
                    {"name": "__init__", "parameters": [{"name": "period", "default": "14"}]},
                    {
                        "name": "parse",
                        "parameters": [{"name": "text", "annotation": "str"}],
                        "returns": "int",
                    },
                    {"name": "make", "parameters": [{"name": "text"}]},
                    {"name": "make", "parameters": [{"name": "cls"}, {"name": "text"}]},
                ],
            },
            Verdict.PASSED,
        ),
        ({"name": "Strategy", "methods": [{"name": "name"}]}, Verdict.INCONCLUSIVE),
        ({"name": "Strategy", "methods": [{"name": "sometimes"}]}, Verdict.INCONCLUSIVE),
        ({"name": "Strategy", "methods": [{"name": "inherited"}]}, Verdict.INCONCLUSIVE),
        (
            {"name": "Data", "methods": [{"name": "__init__", "parameters": [{"name": "x"}]}]},
            Verdict.PASSED,
        ),
        ({"name": "Data", "methods": [{"name": "__init__", "parameters": []}]}, Verdict.FAILED),
        ({"name": "Plain", "methods": [{"name": "run", "parameters": []}]}, Verdict.PASSED),
        ({"name": "Plain", "methods": [{"name": "stop"}]}, Verdict.FAILED),
        ({"name": "Plain", "methods": [{"name": "run", "parameters": [{"name": "x"}]}]}, Verdict.FAILED),
        ({"name": "abc"}, Verdict.INCONCLUSIVE),
    ],
)
def test_classes_are_compared_with_their_methods(
    project: Project, wanted: dict[str, Any], verdict: Verdict
) -> None:
    assert project.source(CLASS, classes=[wanted]).verdict is verdict


def test_violated_contract_outweighs_an_unresolved_one(project: Project) -> None:
    project.write("indicators/rsi.py", "f = 1\n")
    result = project.check(functions=[{"name": "f"}, {"name": "g"}])
    assert result.verdict is Verdict.FAILED
    assert result.reason == "indicators.rsi does not define g, it defines nothing (and 1 more: f)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "invalid JSON"),
        ("[]", "cannot be used"),
        ('{"contract_version": 2, "module": "a"}', "contract_version"),
        ('{"contract_version": 1, "module": "../a"}', "module"),
        ('{"contract_version": 1, "module": "a"}', "the contract is empty"),
        (
            '{"contract_version": 1, "module": "a", "functions": [{"name": "f", "kind": 1}]}',
            "c.json:1:68 functions[0].kind: 'kind' is not a key of a function",
        ),
        (
            '{"contract_version": 1, "module": "a", "schemas": [{"type": "x"}]}',
            "schemas[0]: this is not a JSON Schema: $.type",
        ),
        ("[" * 100_000, "contract"),
    ],
)
def test_unusable_contract_fails(project: Project, text: str, said: str) -> None:
    project.write("c.json", text)
    result = check_contract("c.json", project.root)
    assert result.verdict is Verdict.FAILED
    assert said in (result.reason or "")
    assert fact(result).problem == "unreadable"


@pytest.mark.parametrize("path", ["gone.json", "../c.json", "folder", "a\0b"])
def test_missing_contract_fails(project: Project, path: str) -> None:
    (project.root / "folder").mkdir()
    assert check_contract(path, project.root).verdict is Verdict.FAILED


def test_contract_with_only_schemas_needs_its_module(project: Project) -> None:
    schemas = [{"type": "object"}]
    assert project.check(schemas=schemas).verdict is Verdict.FAILED
    assert project.source("", schemas=schemas).verdict is Verdict.PASSED


def test_module_path_that_the_system_rejects_fails(project: Project) -> None:
    result = project.check(module="a" * 300, functions=[RSI])
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "unreadable")
    assert "cannot be checked" in (result.reason or "")


def test_each_contract_violation_is_separate_evidence(project: Project) -> None:
    project.write("indicators/rsi.py", "def f(a): ...\ndef g(): ...\nh = 1")
    promised = [{"name": name, "parameters": []} for name in "fghi"]
    result = project.check(functions=promised)
    facts = [evidence.contract for evidence in result.evidence]
    assert [(each.function, each.problem) for each in facts if each] == [
        ("f", "signature"),
        ("i", "missing_function"),
        ("h", "unresolved"),
    ]
    assert (result.reason or "").endswith("(and 2 more: i, h)")
