"""Contracts that the code no longer keeps."""

from __future__ import annotations

import json
from typing import Any

from planner.model.taxonomy import Category, Owner
from scenes.guard_criteria import BROKEN, criterion_scene
from scenes.guard_hygiene import FEES
from scenes.scene import Edit, Scene, Truth, reading


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
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
