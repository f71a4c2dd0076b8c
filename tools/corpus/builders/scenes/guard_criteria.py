"""Findings of criteria other than tests: artifacts, metrics, contracts, budgets and sandboxes."""

from __future__ import annotations

import json
from typing import Any

from planner.model.taxonomy import Category, Owner
from scenes.guard_hygiene import FEES, FEES_TEST
from scenes.scene import Edit, Machine, Scene, Truth, product, reading

CRITERION_DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
REPORT = {
    **CRITERION_DATA,
    "out/report.json": '{"NOUNS": 3, "total": 165, "rows": [40, 55, 70]}\n',
    "out/rows.csv": "count,fee\n0,40\n1,55\n2,70\n",
    "schemas/report.json": '{"type": "object", "required": ["total"], "properties": {"total": '
    '{"type": "integer"}}}\n',
}
MISSING = product(Category.ARTIFACT_MISSING)
UNMET = product(Category.METRIC_UNMET)
BROKEN = product(Category.SPEC_MISMATCH)


def criterion_scenes() -> tuple[Scene, ...]:
    """Return all scenes with unmet criteria."""
    return (*_artifacts(), *_metrics())


def criterion_scene(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: Any
) -> Scene:
    given = {"product": FEES, "test": FEES_TEST, "files": CRITERION_DATA, "module": "fees"} | more
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
            files=CRITERION_DATA | {"SRC/late.py": '"""Late fees."""\n'},
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


def contract_scenes() -> tuple[Scene, ...]:
    """Return all scenes with contracts, broken by the product or by the contract."""
    return (*_contracts(),)


def _contracts() -> tuple[Scene, ...]:
    contract = json.dumps(
        {
            "contract_version": 1,
            "module": "PKG.fees",
            "functions": [
                {
                    "name": "fee",
                    "parameters": [
                        {"name": "count"},
                        {"name": "urgent", "kind": "keyword_only", "default": "False"},
                    ],
                },
                {"name": "label", "parameters": [{"name": "count"}], "async": False},
            ],
            "classes": [
                {
                    "name": "Tariff",
                    "methods": [{"name": "price", "parameters": [{"name": "count"}]}, {"name": "names"}],
                }
            ],
        },
        indent=1,
    )
    tariff = (
        FEES
        + '''

    class Tariff:
        """Fees under a name."""

        def __init__(self, name):
            self.name = name

        def price(self, count):
            return fee(count)

        def names(self):
            return [self.name]
    '''
    )

    def kept(
        kind: str, says: str, projects: tuple[str, ...], before: str, after: str, **more: Any
    ) -> Scene:
        edit = Edit(path="SRC/fees.py", before=before, after=after)
        given = {"truth": BROKEN, "edits": (edit,)} | more
        return criterion_scene(
            f"contract-{kind}",
            says,
            projects,
            given["truth"],
            given["edits"],
            product=tariff,
            test="from PKG.fees import fee\n\n\ndef test_none():\n    assert fee(0) == 40\n",
            files={"contracts/fees.json": contract},
            criteria={"tests": [{"cmd": "pytest TESTS/test_fees.py"}]},
            todo={"contract_path": "contracts/fees.json"},
            check="contract_path",
        )

    gone = (Edit(path="contracts/fees.json", before='"PKG.fees"', after='"PKG.fee_table"'),)
    return (
        kept(
            "function-renamed",
            "A function has another name.",
            ("parcelpost", "beehive"),
            "def label(",
            "def title(",
        ),
        kept(
            "parameter-renamed",
            "A parameter has another name.",
            ("weathervane", "cartulary"),
            'def label(count):\n    return f"{count} NOUNS: {fee(count)',
            'def label(number):\n    return f"{number} NOUNS: {fee(number)',
        ),
        kept(
            "default-changed",
            "A default is another one.",
            ("mealplan", "signalbox"),
            "urgent=False):",
            "urgent=None):",
        ),
        kept(
            "method-renamed",
            "A method has another name.",
            ("inkwell", "trackside"),
            "def names(self)",
            "def titles(self)",
        ),
        kept(
            "parameter-added",
            "A function needs one more argument.",
            ("ledgerline", "tidepool"),
            "def label(count):",
            "def label(count, language):",
        ),
        kept(
            "kind-of-parameter-changed",
            "A parameter that had to be named may be given by place.",
            ("parcelpost", "inkwell"),
            "def fee(count, *, urgent",
            "def fee(count, urgent",
        ),
        kept(
            "made-a-coroutine",
            "A function became a coroutine.",
            ("beehive", "signalbox"),
            "def label(count):",
            "async def label(count):",
        ),
        kept(
            "of-no-module",
            "The contract was changed, and names a module that nobody wrote.",
            ("trackside", "mealplan"),
            "",
            "",
            edits=gone,
            truth=Truth(
                category=Category.SPEC_MISMATCH,
                owner=Owner.PRODUCT,
                also=(
                    reading(Category.SPEC_MISMATCH, Owner.PLAN, "the contract is what has changed"),
                    reading(
                        Category.ARTIFACT_MISSING, Owner.PRODUCT, "a module that is promised is not there"
                    ),
                ),
            ),
        ),
    )


SANDBOX = Truth(category=Category.SANDBOX_VIOLATION, owner=Owner.PRODUCT)
BY_TEST = Truth(
    category=Category.SANDBOX_VIOLATION,
    owner=Owner.TEST,
    also=(reading(Category.SANDBOX_VIOLATION, Owner.PRODUCT, "whoever did the work wrote the test"),),
)
ALLOWLIST = Truth(category=Category.ALLOWLIST_VIOLATION, owner=Owner.PLAN)
BUDGET = Truth(
    category=Category.BUDGET_EXCEEDED,
    owner=Owner.PLAN,
    also=(reading(Category.BUDGET_EXCEEDED, Owner.PRODUCT, "the change of the product made it need more"),),
)
BOUND_DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
LOOSE = Machine(apart="-m -n", before="mount -t tmpfs tmpfs /srv; touch /srv/old-fees.txt")
"""A machine on which a program that escapes the sandbox does no harm."""

_IMPORTS = Edit(
    path="SRC/fees.py",
    before="BASE = 40\n",
    after="import os\nimport socket\nimport subprocess\n\nBASE = 40\n",
)
_COST = "    cost = BASE + 15 * count\n"


def _reach(line: str) -> tuple[Edit, ...]:
    return (Edit(path="SRC/fees.py", before=_COST, after=f"{line}\n{_COST}"), _IMPORTS)


_NETWORK = {"network": "deny"}
_PROCESSES = {"processes": "deny"}
_WRITES = {"writes": "deny"}

_REACHES: tuple[tuple[str, str, str, tuple[str, ...], dict[str, object], tuple[Edit, ...]], ...] = (
    (
        "network-denied",
        "connect",
        "The product connects to another host, which the plan denies.",
        ("parcelpost", "ledgerline"),
        _NETWORK,
        _reach('    socket.create_connection(("192.0.2.7", 443), timeout=1).close()'),
    ),
    (
        "network-denied",
        "swallowed",
        "The product connects to another host, which the plan denies, and swallows the refusal.",
        ("weathervane", "inkwell"),
        _NETWORK,
        _reach(
            '    try:\n        socket.create_connection(("192.0.2.7", 443), timeout=1)\n'
            "    except OSError:\n        pass"
        ),
    ),
    (
        "network-denied",
        "lookup",
        "The product asks for the address of another host, which the plan denies.",
        ("mealplan", "signalbox"),
        {"network": ["fees.example.org"]},
        _reach('    socket.getaddrinfo("rates.example.net", 443)'),
    ),
    (
        "network-denied-at-import",
        "",
        "The product reaches for the network while it is imported, which the plan denies.",
        ("trackside", "beehive"),
        _NETWORK,
        (
            Edit(
                path="SRC/fees.py",
                before="BASE = 40\n",
                after='import socket\n\ntry:\n    socket.create_connection(("192.0.2.9", 80), timeout=1)\n'
                "except OSError:\n    pass\n\nBASE = 40\n",
            ),
        ),
    ),
    (
        "process-denied",
        "run",
        "The product starts a program, which the plan denies.",
        ("cartulary", "tidepool"),
        _PROCESSES,
        _reach('    subprocess.run(["git", "--version"], check=True, capture_output=True)'),
    ),
    (
        "process-denied",
        "shell",
        "The product has a shell do something, which the plan denies.",
        ("signalbox", "parcelpost"),
        {"processes": ["git"]},
        _reach('    os.system("true")'),
    ),
    (
        "write-denied",
        "file",
        "The product writes outside of the project, which the plan denies.",
        ("inkwell", "weathervane"),
        _WRITES,
        _reach('    open("/srv/PKG-fees.log", "a").write(str(count))'),
    ),
    (
        "write-denied",
        "folder",
        "The product makes a folder outside of the project, which the plan denies.",
        ("beehive", "ledgerline"),
        _WRITES,
        _reach('    os.makedirs("/srv/PKG/cache", exist_ok=True)'),
    ),
    (
        "write-denied",
        "remove",
        "The product removes a file outside of the project, which the plan denies.",
        ("trackside",),
        _WRITES,
        _reach(
            '    try:\n        os.remove("/srv/old-fees.txt")\n    except FileNotFoundError:\n        pass'
        ),
    ),
)
_BY_TESTS: tuple[tuple[str, str, str, tuple[str, ...], dict[str, object], str], ...] = (
    (
        "process-denied-to-test",
        "call",
        "A changed test starts a program, which the plan denies.",
        ("mealplan", "cartulary"),
        _PROCESSES,
        '    import subprocess\n\n    subprocess.check_output(["git", "--version"])\n',
    ),
    (
        "network-denied-to-test",
        "call",
        "A changed test reaches for the network, which the plan denies.",
        ("tidepool", "parcelpost"),
        _NETWORK,
        '    import socket\n\n    socket.create_connection(("192.0.2.5", 80), timeout=1)\n',
    ),
)


def bound_scenes() -> tuple[Scene, ...]:
    """Return all scenes with exceeded bounds."""
    return (*_sandbox(), *_allowlist(), *_budget())


def _scene(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: object
) -> Scene:
    given: dict[str, object] = {
        "product": FEES,
        "test": FEES_TEST,
        "files": BOUND_DATA,
        "module": "fees",
    } | more
    return Scene(
        kind=kind,
        says=says,
        projects=projects,
        truth=truth,
        edits=edits,
        styled=False,
        green_plan=True,
        **given,  # type: ignore[arg-type]
    )


def _sandbox() -> tuple[Scene, ...]:
    by_product = tuple(
        _scene(
            kind, says, projects, SANDBOX, edits, shape=shape, metadata=metadata, healthy=LOOSE, ill=LOOSE
        )
        for kind, shape, says, projects, metadata, edits in _REACHES
    )
    by_tests = tuple(
        _scene(
            kind,
            says,
            projects,
            BY_TEST,
            (
                Edit(
                    path="TESTS/test_fees.py",
                    before="def test_a_label():\n",
                    after=f"def test_a_label():\n{lines}",
                ),
            ),
            shape=shape,
            metadata=metadata,
            healthy=LOOSE,
            ill=LOOSE,
        )
        for kind, shape, says, projects, metadata, lines in _BY_TESTS
    )
    return by_product + by_tests


def _allowlist() -> tuple[Scene, ...]:
    label = Edit(path="SRC/fees.py", before='return f"{count} NOUNS: ', after='return f"{count:d} NOUNS: ')
    other = Edit(path="SRC/more_fees.py", after='"""More fees."""\n\nLATE = 5\n')
    note = Edit(path="docs/fees.md", after="Fees are told in cents.\n")
    settings = Edit(path="tools/release.cfg", after="[release]\nsign = no\n")
    protected = {"protected_files": ["SRC/fees.py"]}
    return (
        _scene(
            "file-not-allowed",
            "The work changed a module that its todo does not name.",
            ("parcelpost", "trackside", "tidepool"),
            ALLOWLIST,
            (label,),
            check="allowlist",
            todo={"allowed_files": ["TESTS/**"]},
        ),
        _scene(
            "new-file-not-allowed",
            "The work added a file that its todo does not name.",
            ("mealplan", "ledgerline"),
            ALLOWLIST,
            (other, label),
            check="allowlist",
            todo={"allowed_files": ["SRC/fees.py"]},
        ),
        _scene(
            "document-not-allowed",
            "The work added documents and settings that its todo does not name.",
            ("weathervane", "signalbox"),
            ALLOWLIST,
            (note, settings, label),
            check="allowlist",
            todo={"allowed_files": ["SRC/**", "TESTS/**"]},
        ),
        _scene(
            "protected-file-changed",
            "The work changed a file that the plan protects.",
            ("beehive", "inkwell", "cartulary"),
            ALLOWLIST,
            (label,),
            check="allowlist",
            metadata=protected,
            todo={"allowed_files": ["SRC/**"]},
        ),
    )


def _budget() -> tuple[Scene, ...]:
    slow = (
        Edit(path="SRC/fees.py", before=_COST, after=f"    time.sleep(1.5)\n{_COST}"),
        Edit(path="SRC/fees.py", before="BASE = 40\n", after="import time\n\nBASE = 40\n"),
    )
    big = (
        Edit(
            path="SRC/fees.py",
            before=_COST,
            after=f"    spare = [bytearray(b'x' * 40_000_000) for _ in range(20)]\n    time.sleep(3)\n"
            f"{_COST}",
        ),
        Edit(path="SRC/fees.py", before="BASE = 40\n", after="import time\n\nBASE = 40\n"),
    )
    litter = (
        Edit(
            path="SRC/fees.py",
            before=_COST,
            after="    for number in range(40):\n"
            "        with open(f'fee-{time.time_ns()}-{number}.log', 'w') as file:\n"
            f"            file.write(str(count))\n{_COST}",
        ),
        Edit(path="SRC/fees.py", before="BASE = 40\n", after="import time\n\nBASE = 40\n"),
    )
    return (
        _scene(
            "wall-time-used-up",
            "The work takes longer than the budget of the plan.",
            ("parcelpost", "cartulary"),
            BUDGET,
            slow,
            check="budget",
            metadata={"budget": {"wall_seconds": 3}},
        ),
        _scene(
            "memory-used-up",
            "The work takes more memory than the budget of the plan.",
            ("weathervane", "mealplan"),
            BUDGET,
            big,
            check="budget",
            metadata={"budget": {"memory_mb": 400}},
        ),
        _scene(
            "files-used-up",
            "The work leaves more new files than the budget of the plan.",
            ("signalbox", "beehive", "inkwell"),
            BUDGET,
            litter,
            check="budget",
            metadata={"budget": {"new_files": 10}},
        ),
    )
