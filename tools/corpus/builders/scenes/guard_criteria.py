"""Criteria other than tests: files not as promised, numbers not reached, contracts that are broken."""

from __future__ import annotations

from typing import Any

from planner.model.taxonomy import Category, Owner
from scenes.guard_hygiene import FEES, FEES_TEST
from scenes.scene import Edit, Scene, Truth, product

DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
REPORT = {
    **DATA,
    "out/report.json": '{"NOUNS": 3, "total": 165, "rows": [40, 55, 70]}\n',
    "out/rows.csv": "count,fee\n0,40\n1,55\n2,70\n",
    "schemas/report.json": '{"type": "object", "required": ["total"], "properties": {"total": '
    '{"type": "integer"}}}\n',
}
MISSING = product(Category.ARTIFACT_MISSING)
UNMET = product(Category.METRIC_UNMET)
BROKEN = product(Category.SPEC_MISMATCH)


def scenes() -> tuple[Scene, ...]:
    """Every criterion that is not met."""
    return (*_artifacts(), *_metrics())


def criterion_scene(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: Any
) -> Scene:
    given = {"product": FEES, "test": FEES_TEST, "files": DATA, "module": "fees"} | more
    return Scene(
        kind=kind,
        says=says,
        projects=projects,
        truth=truth,
        edits=edits,
        styled=False,
        green_plan=True,
        **given,
    )


def _artifact(
    kind: str, says: str, projects: tuple[str, ...], wanted: object, edits: tuple[Edit, ...], **more: Any
) -> Scene:
    criteria = {"tests": [{"cmd": "pytest TESTS/test_fees.py"}], "expected_artifacts": [wanted]}
    given = {"truth": MISSING, "files": REPORT} | more
    return criterion_scene(
        f"artifact-{kind}",
        says,
        projects,
        given.pop("truth"),
        edits,
        criteria=criteria,
        check="expected_artifacts[0]",
        **given,
    )


def _artifacts() -> tuple[Scene, ...]:
    report, rows = "out/report.json", "out/rows.csv"
    with_schema = {"path": report, "schema": "schemas/report.json"}
    return (
        _artifact(
            "missing",
            "A file that is promised is not there.",
            ("parcelpost", "weathervane"),
            report,
            (Edit(path=report),),
        ),
        _artifact(
            "module-missing",
            "A module that is promised is not there.",
            ("mealplan", "trackside"),
            "SRC/late.py",
            (Edit(path="SRC/late.py"),),
            files=DATA | {"SRC/late.py": '"""Late fees."""\n'},
        ),
        _artifact(
            "empty",
            "A file that is promised is empty.",
            ("ledgerline", "inkwell"),
            report,
            (Edit(path=report, before=REPORT[report].replace("NOUNS", "NOUNS"), after=""),),
        ),
        _artifact(
            "too-small",
            "A file that is promised holds less than it has to.",
            ("cartulary", "beehive"),
            {"path": rows, "min_bytes": 20},
            (Edit(path=rows, before="0,40\n1,55\n2,70\n", after=""),),
        ),
        _artifact(
            "too-large",
            "A file that is promised holds more than it may.",
            ("signalbox",),
            {"path": rows, "max_bytes": 100},
            (
                Edit(
                    path=rows,
                    before="2,70\n",
                    after="2,70\n" + "".join(f"{n},{40 + 15 * n}\n" for n in range(3, 60)),
                ),
            ),
        ),
        _artifact(
            "no-file",
            "A folder lies where a file is promised.",
            ("tidepool", "parcelpost"),
            {"path": "out/summary", "min_bytes": 5},
            (Edit(path="out/summary"), Edit(path="out/summary/part-1.txt", after="none\n")),
            files=REPORT | {"out/summary": "three NOUNS\n"},
        ),
        _artifact(
            "not-json",
            "A file that has to be JSON is none.",
            ("weathervane", "mealplan"),
            with_schema,
            (Edit(path=report, before='"total": 165,', after='"total": 165'),),
        ),
        _artifact(
            "against-schema",
            "A file does not keep its schema.",
            ("trackside", "ledgerline", "beehive"),
            with_schema,
            (Edit(path=report, before='"total": 165', after='"total": "165 cents"'),),
        ),
        _artifact(
            "key-missing",
            "A file lacks a key that its schema requires.",
            ("inkwell", "cartulary"),
            with_schema,
            (Edit(path=report, before='"total": 165, ', after=""),),
        ),
        _artifact(
            "no-match",
            "No file matches the pattern of what is promised.",
            ("signalbox", "tidepool"),
            "out/*.csv",
            (Edit(path=rows),),
        ),
        _artifact(
            "not-the-same",
            "A file is not the one that is promised.",
            ("parcelpost", "weathervane"),
            {
                "path": "LICENSE",
                "sha256": "7d033c128447ea620f442a2c8c75986b846f12bdfbae233e2ba36f3adbc7e856",
            },
            (Edit(path="LICENSE", before="as is", after="as it was"),),
            files=REPORT | {"LICENSE": "Take it as is.\n"},
        ),
    )


def _metric(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: Any
) -> Scene:
    name, operator, value = more.pop("metric", ("rows", ">=", 3))
    criteria = {
        "tests": [{"cmd": "pytest TESTS/test_rows.py"}],
        "metrics": [{"name": name, "operator": operator, "value": value}],
    }
    code = '''
        """Rows about NOUNS."""

        LEAST = 40


        def rows(fees):
            return [fee for fee in fees if fee >= LEAST]


        def mean(fees):
            found = rows(fees)
            return sum(found) / len(found)
    '''
    test = """
        from PKG.rows import mean, rows

        FEES = [40, 55, 70, 85]


        def test_rows(record_property):
            found = rows(FEES)
            record_property("rows", len(found))
            assert found


        def test_mean(planverify):
            found = mean(FEES)
            planverify.metric("mean", found)
            assert found is not None
    """
    return Scene(
        kind=f"metric-{kind}",
        says=says,
        projects=projects,
        truth=truth,
        module="rows",
        product=code,
        test=test,
        edits=edits,
        styled=False,
        green_plan=True,
        criteria=criteria,
        check="metrics[0]",
        **more,
    )


def _metrics() -> tuple[Scene, ...]:
    by_test = Truth(category=Category.METRIC_UNMET, owner=Owner.TEST)
    limit = Edit(path="SRC/rows.py", before="LEAST = 40", after="LEAST = 70")
    return (
        _metric(
            "unmet", "A number is too small.", ("parcelpost", "cartulary", "trackside"), UNMET, (limit,)
        ),
        _metric(
            "unmet-mean",
            "A number is too large.",
            ("inkwell", "signalbox"),
            UNMET,
            (limit,),
            metric=("mean", "<", 65),
        ),
        _metric(
            "not-recorded",
            "A changed test no longer records the number.",
            ("weathervane", "mealplan", "beehive"),
            by_test,
            (
                Edit(
                    path="TESTS/test_rows.py", before='    record_property("rows", len(found))\n', after=""
                ),
            ),
        ),
        _metric(
            "recorded-under-another-name",
            "A changed test records the number under another name.",
            ("ledgerline", "tidepool"),
            by_test,
            (
                Edit(
                    path="TESTS/test_rows.py",
                    before='record_property("rows"',
                    after='record_property("row_count"',
                ),
            ),
        ),
        _metric(
            "no-number",
            "The product makes a number that is none.",
            ("signalbox", "parcelpost"),
            UNMET,
            (
                Edit(
                    path="SRC/rows.py",
                    before="return sum(found) / len(found)",
                    after='return sum(found) * float("nan")',
                ),
            ),
            metric=("mean", ">", 10),
        ),
        _metric(
            "infinite",
            "The product makes a number without end.",
            ("cartulary", "weathervane"),
            UNMET,
            (
                Edit(
                    path="SRC/rows.py",
                    before="return sum(found) / len(found)",
                    after='return sum(found) * float("inf")',
                ),
            ),
            metric=("mean", ">", 10),
        ),
    )
