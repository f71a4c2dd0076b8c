"""What counts as right: an accepted reading does, half of one does not."""

from __future__ import annotations

import pytest
from corpus_making import C, O, case, failed, judged, label

from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner, Repeatability, Role
from pytest_planverify.corpus.case import Place
from pytest_planverify.corpus.figures import figures
from pytest_planverify.corpus.files import CorpusError
from pytest_planverify.corpus.guessing import Guess
from pytest_planverify.corpus.scoring import judge, labelled

AMBIGUOUS = label(C.ARTIFACT_MISSING, also=((C.SPEC_MISMATCH, O.PLAN),))


@pytest.mark.parametrize(
    ("said", "owner", "right", "counted", "owner_right"),
    [
        (C.ARTIFACT_MISSING, O.PRODUCT, True, C.ARTIFACT_MISSING, True),
        (C.SPEC_MISMATCH, O.PLAN, True, C.ARTIFACT_MISSING, True),
        (C.SPEC_MISMATCH, O.PRODUCT, False, C.ARTIFACT_MISSING, True),
        (C.IMPORT_ERROR, O.PRODUCT, False, C.IMPORT_ERROR, True),
        (C.ARTIFACT_MISSING, O.TEST, False, C.ARTIFACT_MISSING, False),
    ],
)
def test_an_accepted_reading_counts_as_the_true_one(
    said: Category, owner: Owner, right: bool, counted: Category, owner_right: bool
) -> None:
    found = judged(AMBIGUOUS, said, owner)
    assert (found.right, found.counted, found.owner_right) == (right, counted, owner_right)


def test_who_is_sent_for_may_be_right_where_the_category_is_not() -> None:
    assert judged(label(C.TEST_REGRESSION), C.TYPE_ERROR).routed_right
    assert not judged(label(C.TEST_REGRESSION), C.ENVIRONMENT_ERROR).routed_right
    assert judged(AMBIGUOUS, C.SPEC_MISMATCH).routed_right


def test_the_role_that_a_diagnosis_names_goes_before_the_default() -> None:
    truth = failed(label(C.TEST_REGRESSION))
    sent = Guess(C.TEST_REGRESSION, O.PRODUCT, 0.9, role=Role.TESTER)
    assert not judge(truth, sent).routed_right


def test_only_what_nobody_accepts_as_the_products_can_be_false_blame() -> None:
    found = figures(
        [
            judged(label(C.ENVIRONMENT_ERROR, O.ENVIRONMENT), C.TEST_REGRESSION),
            judged(label(C.ENVIRONMENT_ERROR, O.ENVIRONMENT), C.ENVIRONMENT_ERROR, O.ENVIRONMENT),
            judged(label(C.TEST_REGRESSION, O.TEST), C.TEST_REGRESSION, O.PRODUCT),
            judged(label(C.FLAKY_TEST, O.TEST), C.FLAKY_TEST, O.TEST),
            judged(
                label(C.TEST_REGRESSION, O.TEST, also=((C.SPEC_MISMATCH, O.PRODUCT),)), C.TEST_REGRESSION
            ),
            judged(label(C.TEST_REGRESSION), C.TEST_REGRESSION),
        ]
    )
    assert (found.false_blame.count, found.false_blame.of) == (2, 4)
    assert {name: (each.count, each.of) for name, each in found.false_blame_by.items()} == {
        "flaky": (0, 1),
        "environment": (1, 2),
        "test": (1, 1),
    }


def test_a_regression_that_is_called_flaky_is_dismissed() -> None:
    found = figures(
        [
            judged(label(C.TEST_REGRESSION), C.FLAKY_TEST, O.TEST),
            judged(label(C.TEST_TIMEOUT), C.TEST_TIMEOUT),
            judged(label(C.TEST_REGRESSION, also=((C.FLAKY_TEST, O.TEST),)), C.FLAKY_TEST, O.TEST),
            judged(label(C.FLAKY_TEST, O.PRODUCT), C.FLAKY_TEST, O.PRODUCT),
            judged(label(C.TEST_REGRESSION, O.TEST), C.FLAKY_TEST, O.TEST),
        ]
    )
    assert (found.dismissed.count, found.dismissed.of) == (1, 2)


def test_macro_f1_is_the_mean_of_the_categories_that_occur() -> None:
    found = figures(
        [
            judged(label(C.TYPE_ERROR), C.TYPE_ERROR),
            judged(label(C.TYPE_ERROR), C.SPEC_MISMATCH),
            judged(label(C.TEST_REGRESSION), C.TEST_REGRESSION),
            judged(label(C.TEST_REGRESSION), C.TYPE_ERROR),
        ]
    )
    of_types, of_tests = found.by_category[C.TYPE_ERROR], found.by_category[C.TEST_REGRESSION]
    assert (of_types.precision, of_types.recall, of_types.f1) == (0.5, 0.5, 0.5)
    assert (of_tests.precision, of_tests.recall, of_tests.f1) == (1.0, 0.5, pytest.approx(2 / 3))
    assert list(found.by_category) == [C.TEST_REGRESSION, C.TYPE_ERROR]
    assert found.macro_f1 == pytest.approx((0.5 + 2 / 3) / 2)
    assert found.confusion[C.TYPE_ERROR] == {C.TYPE_ERROR: 1, C.SPEC_MISMATCH: 1}


@pytest.mark.parametrize(
    ("location", "line", "file", "function"),
    [
        (Location(path="shop/cart.py", line=4, function="Cart.total"), 1, 1, 1),
        (Location(path="shop/cart.py", line=6, function="Cart.sum"), 0, 1, 0),
        (Location(path="shop/cart.py", line=6, function="Cart.total.<locals>.<lambda>"), 0, 1, 1),
        (Location(path="shop/cart.py", line=6, function="total"), 0, 1, 1),
        (Location(path="shop/cart.py"), 0, 1, 0),
        (Location(path="cart.py", line=4, function="total"), 0, 0, 0),
    ],
)
def test_a_place_is_right_by_line_by_file_and_by_function(
    location: Location, line: int, file: int, function: int
) -> None:
    place = Place(path="shop/cart.py", first_line=3, last_line=5, function="Cart.total", exact=True)
    truth = failed(label(C.TEST_REGRESSION, place=place))
    found = figures([judge(truth, Guess(C.TEST_REGRESSION, O.PRODUCT, 0.9, location=location))])
    assert {name: each.count for name, each in found.pointers.items()} == {
        "line": line,
        "file": file,
        "function": function,
    }


def test_who_never_names_a_place_is_not_measured_by_places() -> None:
    found = figures([judged(label(C.TEST_REGRESSION, place=Place(path="a.py")), C.TEST_REGRESSION)])
    assert {each.of for each in found.pointers.values()} == {0}
    assert {each.value for each in found.pointers.values()} == {None}


def test_a_place_that_is_not_named_is_not_the_right_one() -> None:
    place = Place(path="a.py", first_line=1, function="total", exact=True)
    truth = failed(label(C.TEST_REGRESSION, place=place))
    silent = Guess(C.TEST_REGRESSION, O.PRODUCT, 0.9)
    elsewhere = silent._replace(location=Location(path="b.py", line=1, function="total"))
    found = figures([judge(truth, silent), judge(truth, elsewhere)])
    assert {(each.count, each.of) for each in found.pointers.values()} == {(0, 2)}


def test_repeatability_is_measured_where_repeated_runs_say_something() -> None:
    truth = failed(label(C.FLAKY_TEST, O.TEST, repeatability=Repeatability.FLAKY))
    said = Guess(C.FLAKY_TEST, O.TEST, 0.9, repeatability=Repeatability.FLAKY)
    other = said._replace(repeatability=Repeatability.ORDER_DEPENDENT)
    silent = failed(label(C.LINT_ERROR))
    found = figures([judge(truth, said), judge(truth, other), judge(silent, said)])
    assert (found.repeatability.count, found.repeatability.of) == (1, 2)


def test_a_failure_that_was_not_recorded_is_refused_by_its_name() -> None:
    with pytest.raises(CorpusError, match="odd-1: it has a label but no evidence"):
        labelled([case("odd-1", label(C.LINT_ERROR))])
