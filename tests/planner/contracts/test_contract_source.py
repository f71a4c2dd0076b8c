"""Contracts compared with code: what the source shows is compared, what it does not is inconclusive."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.contracts.comparison import compare_contract
from planner.contracts.source import MAX_SOURCE_BYTES
from planner.model.contract import Contract, ContractDifference


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, **files: str) -> Project:
        for name, text in files.items():
            package, init, _ = name.partition("____init__")
            file = self.root / f"{package.replace('__', '/')}{'/__init__' if init else ''}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        return self

    def differences(self, module: str = "m", **promised: Any) -> tuple[ContractDifference, ...]:
        contract = Contract.model_validate({"contract_version": 1, "module": module, **promised})
        return compare_contract(contract, self.root)

    def function(self, name: str, *parameters: str, **more: Any) -> tuple[ContractDifference, ...]:
        promised = {"name": name, "parameters": [{"name": each} for each in parameters], **more}
        return self.differences(functions=[promised])

    def wrong(self, *names: str, module: str = "m") -> list[ContractDifference]:
        """Return the differences of functions and methods from a signature that none of them has."""
        found: list[ContractDifference] = []
        for name in names:
            owner, _, last = name.rpartition(".")
            promised = {"name": last, "parameters": [{"name": "none_such"}]}
            whole = {"classes": [{"name": owner, "methods": [promised]}]} if owner else {}
            found += self.differences(module, **(whole or {"functions": [promised]}))
        return found

    def signatures(self, *names: str, module: str = "m") -> list[str | None]:
        return [each.actual for each in self.wrong(*names, module=module)]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_source_that_cannot_be_read_is_named_instead_of_its_contract(tmp_path: Path) -> None:
    with (tmp_path / "m.py").open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    (found,) = Project(tmp_path).function("f")
    assert (found.problem, found.path) == ("unreadable", "m.py")
    assert found.message == "m.py: cannot be read: it is larger than 16 MiB"


def test_a_signature_is_shown_as_in_the_source(project: Project) -> None:
    source = """
        import pandas as pd
        from typing import Literal
        N = 14
        def rsi(series: "pd.Series", /, period: int = N, *rest: float, mode: Literal["a", 'b'] = 'a',
                key=lambda x: x + 1, **options: dict[str, int | None]) -> "list[pd.Series]": ...
        async def fetch(*, a, b=(1, 2)): ...
    """
    assert project.write(m=source).signatures("rsi", "fetch") == [
        "rsi(series: pd.Series, /, period: int = N, *rest: float, mode: Literal['a', 'b'] = 'a', "
        "key=lambda x: x + 1, **options: dict[str, int | None]) -> list[pd.Series]",
        "async fetch(*, a, b=(1, 2))",
    ]


def test_methods_are_compared_as_a_caller_sees_them(project: Project) -> None:
    source = """
        import abc
        class Strategy(Base[int], abc.ABC, metaclass=Meta):
            def run(self, x: int) -> None: ...
            @staticmethod
            def parse(text): ...
            @classmethod
            def make(cls, *, n=1): ...
            class Inner:
                async def go(self): ...
    """
    names = ("Strategy.run", "Strategy.parse", "Strategy.make", "Strategy.Inner.go")
    assert project.write(m=source).signatures(*names) == [
        "run(x: int) -> None",
        "parse(text)",
        "make(*, n=1)",
        "async go()",
    ]
    assert project.differences(classes=[{"name": "Strategy", "bases": ["Base[int]", "abc.ABC"]}]) == ()
    (difference,) = project.differences(classes=[{"name": "Strategy", "bases": ["int"]}])
    assert "is not a subclass of int" in difference.message


def test_a_subclass_of_a_generic_class_is_one_of_the_class_without_parameters(project: Project) -> None:
    source = "from typing import MutableSet, Sequence\nclass S(MutableSet[str], Sequence[str]): ..."
    promised = [{"name": "S", "bases": ["MutableSet", "typing.Sequence"]}]
    assert project.write(m=source).differences(classes=promised) == ()
    (difference,) = project.differences(classes=[{"name": "S", "bases": ["Sequence[int]"]}])
    assert difference.problem == "signature"


def test_a_class_is_a_subclass_of_the_bases_of_its_bases(project: Project) -> None:
    project.write(
        n="class Base(ValueError): ...\nclass Near(Base): ...\nif X:\n    class Far(Base): ...",
        m="import n\nfrom n import Far, Near\nclass E(Near): ...\nclass F(Far): ...\n"
        "class Loop(Loop): ...\nclass Dotted(n.Near): ...\nclass Lost(gone.Near, n.Gone): ...",
    )

    def problems(name: str, *bases: str) -> list[str]:
        return [each.problem for each in project.differences(classes=[{"name": name, "bases": [*bases]}])]

    assert problems("E", "n.Base", "Base", "Exception", "object") == []
    assert problems("Dotted", "n.Base", "ValueError") == []
    assert (
        problems("E", "KeyError")
        == problems("Lost", "ValueError")
        == problems("F", "Base")
        == problems("Loop", "int")
        == ["signature"]
    )


def test_an_init_only_field_has_the_type_of_its_parameter(project: Project) -> None:
    source = "from dataclasses import dataclass, InitVar\n@dataclass\nclass D:\n    a: InitVar[int | None]"
    method = {"name": "__init__", "parameters": [{"name": "a", "annotation": "Optional[int]"}]}
    assert project.write(m=source).differences(classes=[{"name": "D", "methods": [method]}]) == ()


def test_definitions_known_only_at_run_time_are_inconclusive(project: Project) -> None:
    source = """
        import functools
        from os import sep
        @traced(1)
        def a(): ...
        if FAST:
            def b(): ...
        class C:
            @traced
            def d(self): ...
            if FAST:
                def e(self): ...
            @property
            def f(self) -> str: ...
            @f.setter
            def f(self, value): ...
            @functools.cached_property
            def g(self): ...
        LIMIT = 1
    """
    found = project.write(m=source).wrong("a", "b", "C.d", "C.e", "C.f", "C.g", "LIMIT", "sep")
    assert [each.problem for each in found] == ["unresolved"] * 8


@pytest.mark.parametrize(
    ("source", "problem", "said"),
    [
        (None, "missing_module", "there is no module m below the root"),
        ("def (", "unreadable", "m.py:1: SyntaxError: "),
        ("a\0b", "unreadable", "m.py: "),
        ("x = " + "(" * 300, "unreadable", "m.py:1: "),
        ("x = " + "-" * 200_000 + "1", "unresolved", "m.py is nested too deeply to be read"),
    ],
)
def test_an_unreadable_module_is_reported_in_one_line(
    project: Project, source: str | None, problem: str, said: str
) -> None:
    if source is not None:
        project.write(m=source)
    (difference,) = project.function("f")
    assert (difference.problem, difference.message.count("\n")) == (problem, 0)
    assert said in difference.message


def test_project_code_is_never_run_or_imported(project: Project) -> None:
    project.write(
        p____init__="open('ran', 'w').close(); raise SystemExit",
        p__m="import p\nopen('ran', 'w').close()\ndef f(a=open('ran', 'w')): ...",
    )
    assert project.signatures("f", module="p.m") == ["f(a=open('ran', 'w'))"]
    assert not list(project.root.rglob("ran"))
    assert "p" not in sys.modules


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("indicators.rsj", "there is no module indicators.rsj below the root"),
        ("indicators", "there is no module indicators below the root"),
        ("link", "the module link leads out of the root"),
        ("fast", "fast exists only as fast.cpython-311-x86_64-linux-gnu.so"),
        ("stub", "stub exists only as stub.pyi, without a Python source to compare"),
    ],
)
def test_a_missing_module_is_reported_with_the_reason(
    project: Project, tmp_path_factory: pytest.TempPathFactory, module: str, said: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "m.py").write_text("def f(): ...")
    project.write(indicators__rsi="def f(): ...")
    (project.root / "link.py").symlink_to(elsewhere / "m.py")
    (project.root / "fast.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    (project.root / "stub.pyi").write_text("def f(): ...")
    (difference,) = project.differences(module, functions=[{"name": "f"}])
    assert said in difference.message


def test_a_difference_is_shown_as_python_signatures(project: Project) -> None:
    project.write(m="def compute_rsi(series, window=14): ...")
    promised = {
        "name": "compute_rsi",
        "parameters": [
            {"name": "series", "annotation": "pd.Series"},
            {"name": "period", "annotation": "int", "default": "14"},
        ],
        "returns": "pd.Series",
    }
    (difference,) = project.differences(functions=[promised])
    assert difference.message == (
        "compute_rsi: the contract says (series: pd.Series, period: int = 14) -> pd.Series, "
        "the code has (series, window=14) (m.py:1): it lacks the parameter period; "
        "it has the additional parameter window; series has no annotation; it has no return annotation"
    )
    assert difference.expected == "compute_rsi(series: pd.Series, period: int = 14) -> pd.Series"
    assert difference.actual == "compute_rsi(series, window=14)"
    assert (difference.path, difference.line) == ("m.py", 1)


def test_a_missing_name_is_reported_with_the_existing_ones(project: Project) -> None:
    (difference,) = project.write(m="def compute_rsis(): ...\ndef other(): ...").function("compute_rsi")
    assert difference.message == "m does not define compute_rsi, it defines compute_rsis, other"
    assert (difference.expected, difference.actual) == ("compute_rsi()", None)  # no signature to compare
    (difference,) = project.write(m="from os import sep").function("f")
    assert difference.message == "m does not define f, it defines no function or class"


def test_a_function_in_place_of_a_class_is_reported_as_one(project: Project) -> None:
    (difference,) = project.write(m="def Band(): ...").differences(classes=[{"name": "Band"}])
    assert (difference.problem, difference.actual) == ("signature", "Band()")
    assert difference.message == "Band is a function, not a class (m.py:1)"


@pytest.mark.parametrize(
    "source",
    [
        "def f(): ...\ndel f",
        "for f in x: ...\ndef f(): ...",
        "def f(): ...\n(f := 1)",
        "def f(): ...\ndef g():\n    global f\n    f = 1",
        "try: ...\nexcept E as f: ...",
        "from x import f\ndef f(): ...",
        "match x:\n    case {'a': f, **g}: ...",
        "while x:\n    def f(): ...",
        "if TYPE_CHECKING:\n    from x import f\nelse:\n    def f(): ...",
    ],
)
def test_a_name_bound_in_several_ways_is_inconclusive(project: Project, source: str) -> None:
    (difference,) = project.write(m=source).function("f")
    assert (difference.problem, difference.name) == ("unresolved", "f")


@pytest.mark.parametrize(
    "source",
    [
        "def f(a): ...\ndef f(): ...",
        "with x:\n    def f(): ...",
        "[f for f in x]\nlambda f: f\ndef f(): ...",
        "if typing.TYPE_CHECKING:\n    import x\ndef f(): ...",
        "from functools import lru_cache as memo\n@memo\ndef f(): ...",
        "from typing import overload\n@overload\ndef f(a): ...\n@overload\ndef f(a, b): ...\ndef f(): ...",
    ],
)
def test_an_unambiguous_name_is_compared(project: Project, source: str) -> None:
    assert project.write(m=source).function("f") == ()
    assert project.function("f", "x")[0].problem == "signature"


@pytest.mark.parametrize(
    ("fields", "init"),
    [
        ("a: int\n    b: str = 'x'", "(a: int, b: str = 'x') -> None"),
        ("a: int\n    c: ClassVar[int] = 1\n    d = 2", "(a: int) -> None"),
        ("a: int = field(default=1, repr=False)", "(a: int = 1) -> None"),
        ("a: list = field(default_factory=list)", "(a: list = list()) -> None"),
        ("a: int = field(init=False)\n    b: int = 1", "(b: int = 1) -> None"),
        ("a: int = field(kw_only=True)\n    b: int = 1", "(b: int = 1, *, a: int) -> None"),
        ("a: int\n    _: KW_ONLY\n    b: int", "(a: int, *, b: int) -> None"),
        ("a: int\n    def __init__(self, z): ...", "(z)"),
        ("a: int = field()", None),
        ("a: int = field(init=LATER)", None),
        ("if x:\n        a: int = 1", None),
    ],
)
def test_the_constructor_of_a_plain_dataclass_is_derived(project: Project, fields: str, init: str | None):
    imports = "from dataclasses import dataclass, field, KW_ONLY\nfrom typing import ClassVar\n"
    project.write(m=f"{imports}@dataclass\nclass D:\n    {fields}\n")
    (difference,) = project.wrong("D.__init__")
    if init is None:
        assert difference.problem in ("unresolved", "missing_function")
    else:
        assert difference.actual == f"__init__{init}"


@pytest.mark.parametrize(
    ("options", "method", "problem"),
    [
        ("", "__eq__", None),
        ("", "__repr__", "signature"),
        ("(eq=False)", "__eq__", "unresolved"),
        ("(order=True, frozen=True)", "__lt__", None),
        ("(order=True, frozen=True)", "__hash__", "unresolved"),
        ("(repr=LATER)", "__eq__", "unresolved"),
        ("", "equals", "missing_function"),
    ],
)
def test_special_methods_of_a_dataclass_are_derived_or_inconclusive(
    project: Project, options: str, method: str, problem: str | None
) -> None:
    project.write(m=f"from dataclasses import dataclass\n@dataclass{options}\nclass D:\n    a: int\n")
    compared = {"name": method, "parameters": [{"name": "other"}]}
    found = project.differences(classes=[{"name": "D", "methods": [compared]}])
    assert [each.problem for each in found] == [problem] * (problem is not None)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("A", "missing_function"),
        ("A(abc.ABC)", "missing_function"),
        ("A(Base)", "unresolved"),
        ("A(metaclass=Meta)", "unresolved"),
    ],
)
def test_a_method_that_may_be_inherited_is_inconclusive(project: Project, head: str, problem: str) -> None:
    project.write(m=f"import abc\nfrom base import Base\nclass {head}: ...\n")
    (difference,) = project.wrong("A.run")
    assert difference.problem == problem


def test_inner_classes_are_compared(project: Project) -> None:
    project.write(m="class A:\n    class B:\n        T = make()\n        def go(self) -> T: ...\n")
    (difference,) = project.differences(classes=[{"name": "A.C"}])
    assert (difference.name, difference.message) == ("A.C", "A does not define C, it defines B")
    go = {"name": "go", "returns": "T"}
    assert project.differences(classes=[{"name": "A.B", "methods": [go]}]) == ()
    (difference,) = project.differences(classes=[{"name": "A.B", "methods": [{**go, "returns": "int"}]}])
    assert (difference.name, difference.problem) == ("A.B.go", "unresolved")


def test_a_re_export_is_reported_under_its_promised_name(project: Project) -> None:
    project.write(p____init__="from .impl import compute as run")
    sources = {"def compute(a): ...": "signature", "if x:\n    def compute(): ...": "unresolved"}
    for source, problem in sources.items():
        project.write(p__impl=source)
        (difference,) = project.differences("p", functions=[{"name": "run", "parameters": []}])
        found = (difference.name, difference.path, difference.problem)
        assert found == ("run", "p/impl.py", problem)


def test_a_name_is_followed_through_a_long_chain_of_re_exports(project: Project) -> None:
    project.write(**{f"m{at}": f"from m{at + 1} import run" for at in range(9)}, m9="def run(a): ...")
    assert project.differences("m0", functions=[{"name": "run", "parameters": [{"name": "a"}]}]) == ()


HEAD = (
    "import pandas as pd, typing\nfrom typing import Callable, Literal, Optional\n"
    "Alias = list[int]\nN = 1\nclass Thing: ...\nclass Holder:\n    pass\n"
)
SIGNATURES: list[tuple[str, list[dict[str, str]]]] = [
    ("", []),
    (
        "first, /, second: 'Thing', third: Optional[int] = (1, 2)",
        [
            {"name": "first", "kind": "positional_only"},
            {"name": "second", "kind": "positional_or_keyword", "annotation": "'Thing'"},
            {"name": "third", "annotation": "int | None", "default": "(1, 2)"},
        ],
    ),
    (
        "series: pd.Series, *rest: Callable[[int], str], key: Alias, other=N",
        [
            {"name": "series", "annotation": "pd.Series"},
            {"name": "rest", "kind": "var_positional", "annotation": "typing.Callable[[int], str]"},
            {"name": "key", "kind": "keyword_only", "annotation": "Alias"},
            {"name": "other", "kind": "keyword_only", "default": "N"},
        ],
    ),
    (
        "*, mode: Literal['a', 1] = -1.5, **options: None",
        [
            {"name": "mode", "kind": "keyword_only", "annotation": "Literal['a', 1]", "default": "-1.5"},
            {"name": "options", "kind": "var_keyword", "annotation": "None"},
        ],
    ),
]


@pytest.mark.parametrize("is_method", [False, True], ids=["function", "method"])
@pytest.mark.parametrize(("source", "parameters"), SIGNATURES)
def test_a_contract_matches_its_source_until_one_signature_changes(
    project: Project, source: str, parameters: list[dict[str, str]], is_method: bool
) -> None:
    run = {"name": "run", "parameters": parameters, "returns": "str | None", "async": False}
    promised = {"classes": [{"name": "Holder", "methods": [run]}]} if is_method else {"functions": [run]}

    def differences(shown: str, prefix: str = "") -> tuple[ContractDifference, ...]:
        within = f"    {prefix}def run(self, {shown})" if is_method else f"{prefix}def run({shown})"
        return project.write(m=f"{HEAD}{within} -> None | str: ...\n").differences(**promised)

    assert differences(source) == ()
    renamed = [source.replace(each["name"], f"{each['name']}_") for each in parameters]
    for found in (*map(differences, renamed), differences(f"new, {source}"), differences(source, "async ")):
        (difference,) = found
        assert (difference.name, difference.problem) == ("Holder.run" if is_method else "run", "signature")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_source_is_compared_without_an_exception(tmp_path: Path, source: str) -> None:
    (tmp_path / "m.py").write_bytes(source.encode("utf-8", "surrogatepass"))
    contract = Contract.model_validate(
        {"contract_version": 1, "module": "m", "functions": [{"name": "f"}], "classes": [{"name": "C"}]}
    )
    assert compare_contract(contract, tmp_path)
