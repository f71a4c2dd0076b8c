"""Annotations and defaults are compared by meaning; what cannot be resolved is never a mismatch."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contracts.signatures import Likeness, compare_annotations, compare_defaults
from planner.contracts.source import ModuleReader, ScopeNames


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
        ("Series", "pd.Series", Likeness.SAME),
        ("DataFrame", "pd.Series", Likeness.DIFFERENT),
        ("list[Candle]", "List[m.Candle]", Likeness.SAME),
        ("Candle | None", "Opt[Candle]", Likeness.SAME),
        ("Optional[int]", "int | None", Likeness.SAME),
        ("Union[int, str, None]", "None | str | int", Likeness.SAME),
        ("Optional[int | str]", "str | int | None", Likeness.SAME),
        ("Optional[dict[str, int | None]]", "dict[str, None | int] | None", Likeness.SAME),
        ("'int'", "int", Likeness.SAME),
        ("'Optional[\"int\"]'", "int | None", Likeness.SAME),
        ("typing.Sequence[int]", "collections.abc.Sequence[int]", Likeness.SAME),
        ("Callable[[int], str]", "typing.Callable[[int], str]", Likeness.SAME),
        ("Callable[..., str]", "typing.Callable[[int], str]", Likeness.DIFFERENT),
        ("Literal['a', 'b']", "Literal['b', 'a']", Likeness.SAME),
        ("Literal['a']", "Literal['b']", Likeness.DIFFERENT),
        ("Annotated[int, 5]", "int", Likeness.SAME),
        ("None", "None", Likeness.SAME),
        ("float", "Price", Likeness.UNKNOWN),
        ("Price", "Price", Likeness.SAME),
        ("list[Thing]", "list[other.Thing]", Likeness.SAME),
        ("int |", "int", Likeness.UNKNOWN),
        ("int |", "int |", Likeness.SAME),
        ("tuple[()]", "tuple[()]", Likeness.SAME),
        ("int", "type(x)", Likeness.UNKNOWN),
        ("int", "f().g", Likeness.UNKNOWN),
        ("float", "Amount", Likeness.SAME),
        ("list[float]", "Rows", Likeness.SAME),
        ("int", "Rows", Likeness.DIFFERENT),
        ("int", "Loop", Likeness.UNKNOWN),
        ("pandas.core.series.Series", "pd.Series", Likeness.SAME),
        ("pandas.core.indexes.base.Index", "pd.Index", Likeness.UNKNOWN),
        ("pandas.Series", "polars.Series", Likeness.DIFFERENT),
        ("int", "Unheard", Likeness.DIFFERENT),
        ("(" * 300, "int", Likeness.UNKNOWN),
    ],
)
def test_annotations_are_compared_by_meaning(expected: str, actual: str, likeness: Likeness) -> None:
    assert compare_annotations(expected, actual, NAMES) is likeness


@pytest.mark.parametrize(
    ("expected", "actual", "likeness"),
    [
        ("14", "14", Likeness.SAME),
        ("14", "0xe", Likeness.SAME),
        ("14", "14.0", Likeness.DIFFERENT),
        ("'a'", '"a"', Likeness.SAME),
        ("(1,2)", "(1, 2)", Likeness.SAME),
        ("N", "N", Likeness.SAME),
        ("N", "14", Likeness.UNKNOWN),
        ("(", "14", Likeness.UNKNOWN),
        ("{[]}", "{1}", Likeness.UNKNOWN),
        ("14", "N", Likeness.SAME),
        ("15", "N", Likeness.DIFFERENT),
    ],
)
def test_defaults_are_compared_by_value(expected: str, actual: str, likeness: Likeness) -> None:
    assert compare_defaults(expected, actual, NAMES) is likeness


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_annotation_and_no_default_is_an_error(expected: str, actual: str) -> None:
    assert isinstance(compare_annotations(expected, actual, NAMES), Likeness)
    assert compare_defaults(expected, actual) is compare_defaults(actual, expected)
    assert compare_defaults(actual, actual) is Likeness.SAME


TYPES = st.recursive(
    st.sampled_from(["int", "str", "pd.Series", "Candle", "None", "Thing", "Any"]),
    lambda inner: st.one_of(
        st.builds("Optional[{}]".format, inner),
        st.builds("{} | {}".format, inner, inner),
        st.builds("dict[str, {}]".format, inner),
        st.builds("Callable[[{}], {}]".format, inner, inner),
    ),
    max_leaves=6,
)


@given(TYPES)
def test_every_annotation_is_like_itself_in_quotes(annotation: str) -> None:
    assert compare_annotations(annotation, repr(annotation), NAMES) is Likeness.SAME


def test_a_star_import_may_bring_the_name_that_is_not_known() -> None:
    names = names_of("from lib import *\n")
    assert compare_annotations("int", "Unheard", names) is Likeness.UNKNOWN
    assert compare_annotations("int", "str", names) is Likeness.DIFFERENT
    assert compare_annotations("Unheard", "Unheard", names) is Likeness.SAME
