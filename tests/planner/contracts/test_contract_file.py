"""Contract files: faults have positions, and types are compared by meaning."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.contracts.comparison import Likeness, compare_annotations, compare_defaults, read_contract_file
from planner.contracts.source import ModuleReader, ScopeNames
from planner.errors import ContractFileError
from planner.model.contract import Contract

SERIES = {"name": "series", "kind": "positional_or_keyword", "annotation": "pd.Series"}
PERIOD = {"name": "period", "kind": "keyword_only", "annotation": "int", "default": "14"}
FULL = {
    "contract_version": 1,
    "module": "indicators.rsi",
    "functions": [
        {"name": "compute_rsi", "parameters": [SERIES, PERIOD], "returns": "pd.Series", "async": False},
        {"name": "nothing", "parameters": []},
        {"name": "anything"},
    ],
    "classes": [{"name": "Outer.Inner", "bases": ["Base"], "methods": [{"name": "run", "async": True}]}],
    "schemas": [{"type": "object", "x-of": "any", "properties": {"a": {"type": "integer"}}}],
}


def refused(text: str | bytes, folder: Path) -> str:
    file = folder / "c.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ContractFileError) as caught:
        read_contract_file(Path("c.json"), root=folder)
    lines = str(caught.value).split("\n")
    assert lines == list(caught.value.faults)
    assert all(line.startswith("c.json") for line in lines)
    return str(caught.value)


def test_every_key_of_a_contract_is_read(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps(FULL))
    assert read_contract_file(file) == Contract.model_validate(FULL)


def started(rest: str, module: str = "a") -> str:
    return f'{{"contract_version": 1, "module": "{module}", {rest}}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "c.json:1:2: "),
        ("[]", "c.json:1:1: the file is not a mapping"),
        ('{"contract_version": 1,\n "module": "a",\n "module": "b"}', "c.json:3:2"),
        ('{"module": "a"}', "c.json:1:1 contract_version: the key 'contract_version' is missing"),
        ('{"contract_version": 2, "module": "a"}', "c.json:1:22 contract_version: '2' is not allowed here"),
        ('{"contract_version": 1, "module": "../a"}', 'c.json:1:35 module: "../a" is refused'),
        ('{"contract_version": 1, "module": "a"}', "the contract is empty; name functions"),
        (started('"functoins": []'), "'functoins' is not a key here; did you mean 'functions'?"),
        (started('"functions": [{"name": "a b"}]'), 'functions[0].name: "a b" is refused'),
        (started('"functions": {"f": 1}'), "functions: a mapping is given; write a list"),
        (
            started('"functions": [{"name": "f", "parameters": [{"name": "a", "kind": "positional"}]}]'),
            'kind: "positional" is not allowed here; did you mean',
        ),
        (
            started('"functions": [{"name": "f", "returns": "str["}]'),
            'functions[0].returns: "str[" is refused: it is not a Python expression; correct it',
        ),
        (
            started('"schemas": [{}, {"type": "x"}]'),
            "c.json:1:56 schemas[1]: this is not a JSON Schema: $.type: 'x' is not valid",
        ),
        (started('"schemas": [{"$schema": "//["}]'), "schemas[0]: this is not a JSON Schema: Invalid"),
        (started('"schemas": [{"pattern": "a{99999999999}"}]'), "JSON Schema: the repetition number"),
        ("[" * 100_000, "c.json:1:"),
        (b'{"a": "\xe4"}', "c.json:1:8: the byte 0xe4 is not UTF-8"),
    ],
)
def test_a_fault_in_a_contract_is_reported_with_position_and_remedy(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    assert said in refused(text, tmp_path)


def test_all_faults_of_a_contract_are_reported_together(tmp_path: Path) -> None:
    text = started('"functions": [{"async": "often"}, {"name": "f", "x": 1}]', module="a-b")
    faults = refused(text, tmp_path).split("\n")
    columns = [int(line.split(":")[2].split()[0]) for line in faults]
    assert (len(faults), columns) == (4, sorted(columns))


def test_unknown_keys_of_a_contract_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text("\ufeff" + started('"x-why": "so", "functions": [{"name": "f", "x-a": 1}]'))
    assert [each.name for each in read_contract_file(file).functions] == ["f"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone.json", "gone.json: the file does not exist; check the path"),
        ("../c.json", "leaves the plan's root"),
        ("/etc/passwd", "is an absolute path"),
        ("link.json", "leaves the plan's root through a symbolic link"),
        ("folder", "this is a directory; name the file in it"),
        ("pipe", "it is a pipe"),
        ("right.json/c.json", "the file cannot be read: Not a directory; check its path"),
    ],
)
def test_only_a_regular_file_below_the_root_is_read(tmp_path: Path, path: str, said: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    os.mkfifo(root / "pipe")
    (tmp_path / "elsewhere.json").write_text(json.dumps(FULL))
    (root / "link.json").symlink_to(tmp_path / "elsewhere.json")
    (root / "right.json").write_text(json.dumps(FULL))
    with pytest.raises(ContractFileError, match=r"^[^\n]*$") as caught:
        read_contract_file(Path(path), root=root)
    assert said in str(caught.value)
    read_contract_file(Path("right.json"), root=root)


def test_a_default_may_be_a_json_value(tmp_path: Path) -> None:
    """A null counts as omitted, because it could mean either no default or the default None."""
    values = ["14", "-1.5", "true", "null", '"N"']
    parameters = ", ".join(f'{{"name": "p{at}", "default": {value}}}' for at, value in enumerate(values))
    file = tmp_path / "c.json"
    function = f'{{"name": "f", "parameters": [{parameters}]}}'
    file.write_text(started(f'"functions": [{function}]'))
    (function,) = read_contract_file(file).functions
    assert [each.default for each in function.parameters or ()] == ["14", "-1.5", "True", None, "N"]


KEYS = st.sampled_from(
    [
        *("contract_version", "module", "functions", "classes", "schemas", "name", "kind", "parameters"),
        *("methods", "returns", "async", "default", "annotation", "bases", "x-own", "zz"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=80)
    | st.dictionaries(KEYS, VALUES, max_size=5).map(
        lambda more: json.dumps({"contract_version": 1, "module": "a.b", **more}).encode()
    )
)
def test_any_file_is_a_contract_or_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(data)
    lines = list[str]()
    try:
        assert not read_contract_file(file).is_empty
    except ContractFileError as refused:
        lines = str(refused).split("\n")
    assert all(line.startswith(str(file)) for line in lines)


def names_of(source: str) -> ScopeNames:
    with TemporaryDirectory() as folder:
        (Path(folder) / "m.py").write_text(source)
        return ScopeNames(ModuleReader(Path(folder)).read("m"))


NAMES = names_of(
    "import pandas as pd, numpy as np\nfrom typing import List, Optional as Opt\nclass Candle: ...\n"
    "Price = make()\nAmount = float\nRows = List[Amount]\nLoop = Loop\nN = 14\n"
)


@pytest.mark.parametrize(
    ("expected", "actual", "likeness"),
    [
        ("int", "int", Likeness.SAME),
        ("int", "str", Likeness.DIFFERENT),
        ("pd.Series", "pandas.Series", Likeness.SAME),
        ("DataFrame", "pd.Series", Likeness.DIFFERENT),
        ("list[Candle]", "List[m.Candle]", Likeness.SAME),
        ("Candle | None", "Opt[Candle]", Likeness.SAME),
        ("Union[int, str, None]", "None | str | int", Likeness.SAME),
        ("Optional[dict[str, int | None]]", "dict[str, None | int] | None", Likeness.SAME),
        ("'Optional[\"int\"]'", "int | None", Likeness.SAME),
        ("Callable[[int], 'Candle | None']", "'Callable[[int], Optional[Candle]]'", Likeness.SAME),
        ("typing.Sequence[int]", "collections.abc.Sequence[int]", Likeness.SAME),
        ("Callable[[int], str]", "typing.Callable[[int], str]", Likeness.SAME),
        ("Literal['a', 'b']", "Literal['b', 'a']", Likeness.SAME),
        ("Literal['a', None]", "Optional[Literal['a']]", Likeness.SAME),
        ("Literal['a', 'b']", "Literal['a'] | Literal['b']", Likeness.SAME),
        ("Never", "typing.NoReturn", Likeness.SAME),
        ("Annotated[int, 5]", "int", Likeness.SAME),
        ("float", "Price", Likeness.UNKNOWN),
        ("list[Thing]", "list[other.Thing]", Likeness.SAME),
        ("int |", "int", Likeness.UNKNOWN),
        ("int", "type(x)", Likeness.UNKNOWN),
        ("float", "Amount", Likeness.SAME),
        ("list[float]", "Rows", Likeness.SAME),
        ("int", "Loop", Likeness.UNKNOWN),
        ("pandas.core.series.Series", "pd.Series", Likeness.SAME),
        ("pandas.core.indexes.base.Index", "pd.Index", Likeness.UNKNOWN),
        ("pandas.Series", "polars.Series", Likeness.DIFFERENT),
        ("int", "Unheard", Likeness.DIFFERENT),
    ],
)
def test_annotations_are_compared_by_meaning(expected: str, actual: str, likeness: Likeness) -> None:
    assert compare_annotations(expected, actual, NAMES) is likeness


@pytest.mark.parametrize(
    ("expected", "actual", "likeness"),
    [
        ("14", "0xe", Likeness.SAME),
        ("14", "14.0", Likeness.DIFFERENT),
        ("'a'", '"a"', Likeness.SAME),
        ("N", "14", Likeness.UNKNOWN),
        ("{[]}", "{1}", Likeness.UNKNOWN),
        ("14", "N", Likeness.SAME),
        ("15", "N", Likeness.DIFFERENT),
    ],
)
def test_defaults_are_compared_by_value(expected: str, actual: str, likeness: Likeness) -> None:
    assert compare_defaults(expected, actual, NAMES) is likeness


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_annotations_and_defaults_can_be_compared(expected: str, actual: str) -> None:
    assert isinstance(compare_annotations(expected, actual, NAMES), Likeness)
    assert compare_defaults(expected, actual) is compare_defaults(actual, expected)
    assert compare_defaults(actual, actual) is Likeness.SAME


def test_an_unknown_name_may_come_from_a_star_import() -> None:
    names = names_of("from lib import *\n")
    assert compare_annotations("int", "Unheard", names) is Likeness.UNKNOWN
    assert compare_annotations("int", "str", names) is Likeness.DIFFERENT
    assert compare_annotations("Unheard", "Unheard", names) is Likeness.SAME


def test_source_in_a_contract_may_end_with_a_comment(tmp_path: Path) -> None:
    parameter = (
        '{"name": "a", "annotation": "*Ts", "kind": "var_positional"}, {"name": "b", "default": "1  # one"}'
    )
    file = tmp_path / "c.json"
    file.write_text(started(f'"functions": [{{"name": "f", "parameters": [{parameter}]}}]'))
    (function,) = read_contract_file(file).functions
    assert [each.default for each in function.parameters or ()] == [None, "1  # one"]
