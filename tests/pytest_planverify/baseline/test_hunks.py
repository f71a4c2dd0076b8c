"""The pieces of functions that differ from the last commit or the baseline."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hygiene_samples import HeldFiles

from planner.model.evidence import Hunk
from planner.model.verdicts import Side
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.baseline.hunks import MOST_HUNKS, compare, function_at, hunks_of, spans_of

BEFORE = """\
RATES = {"a": 1}


def total(items):
    found = 0
    for item in items:
        found += item
    return found


class Cart:
    limit = 3

    @property
    def size(self):
        return 1

    def add(self, item):
        def check(value):
            return value > 0

        return check(item)


def spare():
    return 1
"""


def changed(old: str, new: str) -> list[tuple[str | None, int, int, int]]:
    now = BEFORE.replace(old, new)
    assert now != BEFORE
    found = hunks_of("shop.py", compare(BEFORE, now), now, Side.PRODUCT)
    return [(each.function, each.line, each.added, each.removed) for each in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("found += item", "found -= item", [("total", 7, 1, 1)]),
        ("return 1\n\n    def add", "return 2\n\n    def add", [("Cart.size", 16, 1, 1)]),
        ("value > 0", "value >= 0", [("Cart.add.check", 20, 1, 1)]),
        ("    @property\n", "", [("Cart", 14, 0, 1)]),
        ("limit = 3", "limit = 4", [("Cart", 12, 1, 1)]),
        ('{"a": 1}', '{"a": 2}', [(None, 1, 1, 1)]),
        ("    return found\n", "", [("total", 8, 0, 1)]),
        ("\n\ndef spare():\n    return 1\n", "", [(None, 23, 0, 4)]),
    ],
)
def test_a_change_belongs_to_the_innermost_function_around_it(
    old: str, new: str, expected: list[tuple[str | None, int, int, int]]
):
    assert changed(old, new) == expected


def test_all_changes_of_a_function_are_one_hunk_and_other_functions_have_their_own():
    now = BEFORE.replace("found = 0", "found = 1").replace("return found", "return 0").replace("> 0", "> 1")

    found = list(hunks_of("shop.py", compare(BEFORE, now), now, Side.PRODUCT))

    assert [(each.function, each.added, each.removed) for each in found] == [
        ("total", 2, 2),
        ("Cart.add.check", 1, 1),
    ]
    assert "-    return found\n+    return 0" in found[0].text


def test_new_functions_side_by_side_are_told_apart():
    now = BEFORE.replace(
        "def spare", "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef spare"
    )

    names = [each.function for each in hunks_of("shop.py", compare(BEFORE, now), now, Side.PRODUCT)]

    assert names == ["one", "two"]


def test_a_file_that_does_not_parse_has_hunks_without_functions():
    now = BEFORE.replace("def total(items):", "def total(items:")

    (hunk,) = hunks_of("shop.py", compare(BEFORE, now), now, Side.PRODUCT)

    assert (hunk.function, hunk.line) == (None, 4)


def test_a_table_of_data_leaves_room_for_other_files_and_its_last_hunk_counts_the_rest():
    before = "".join(f"A{number} = {number}\nB{number} = x\n" for number in range(60))
    now = before.replace("= x\n", "= y\n")

    found = list(hunks_of("tables.py", compare(before, now), now, Side.PRODUCT))

    assert len(found) == 20
    assert sum(each.added for each in found) == 60


def test_a_secret_in_a_changed_line_is_not_kept():
    token = "ghp_" + "a1B2" * 9
    now = BEFORE.replace('RATES = {"a": 1}', f'TOKEN = "{token}"\x1b[2J')

    (hunk,) = hunks_of("shop.py", compare(BEFORE, now), now, Side.PRODUCT)

    assert "+TOKEN" in hunk.text
    assert token not in hunk.text
    assert "\x1b" not in hunk.text


def test_a_decorator_is_a_line_of_its_function():
    assert function_at(spans_of(BEFORE), 14) == "Cart.size"


def git(folder: Path, *args: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")


NAMES = ("shop.py", "new.py", "gone.py", "b\N{LATIN SMALL LETTER AE} r.py")
SIDES: dict[str, Side | None] = dict.fromkeys(NAMES, Side.PRODUCT)


def names(hunks: tuple[Hunk, ...]) -> list[tuple[str, str | None, int, int]]:
    return [(each.path, each.function, each.added, each.removed) for each in hunks]


def test_git_tells_changed_new_and_deleted_files(tmp_path: Path):
    (tmp_path / "shop.py").write_text(BEFORE)
    (tmp_path / "gone.py").write_text("x = 1\n")
    (tmp_path / NAMES[-1]).write_text("x = 1\n")
    commit(tmp_path)
    (tmp_path / "shop.py").write_text(BEFORE.replace("> 0", "> 1"))
    (tmp_path / "new.py").write_text("def made():\n    return 1\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / NAMES[-1]).write_text("x = 2\n")

    assert names(Changes(tmp_path).hunks(SIDES)) == [
        ("shop.py", "Cart.add.check", 1, 1),
        ("new.py", "made", 2, 0),
        ("gone.py", None, 0, 1),
        (NAMES[-1], None, 1, 1),
    ]


def test_the_settings_of_a_user_do_not_change_what_git_tells(tmp_path: Path):
    (tmp_path / "shop.py").write_text(BEFORE)
    commit(tmp_path)
    for name, value in (("diff.noprefix", "true"), ("color.ui", "always"), ("diff.context", "0")):
        git(tmp_path, "config", name, value)
    (tmp_path / "shop.py").write_text(BEFORE.replace("> 0", "> 1"))

    assert names(Changes(tmp_path).hunks(SIDES)) == [("shop.py", "Cart.add.check", 1, 1)]


def test_without_git_the_files_of_the_baseline_are_compared(tmp_path: Path):
    (tmp_path / "shop.py").write_text(BEFORE.replace("> 0", "> 1"))
    (tmp_path / "new.py").write_text("def made():\n    return 1\n")
    changes = Changes(tmp_path)
    before = HeldFiles({"shop.py": BEFORE.encode()})
    changes.compare(before.digests(), {"shop.py": "other", "new.py": "other"})

    assert names(changes.hunks(SIDES, before)) == [
        ("shop.py", "Cart.add.check", 1, 1),
        ("new.py", "made", 2, 0),
    ]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (BEFORE.encode(), b"\0" + BEFORE.encode()),
        (b"\0" + BEFORE.encode(), BEFORE.encode()),
        (BEFORE.encode(), BEFORE.encode() * 4_000),
    ],
    ids=["binary now", "binary before", "too large now"],
)
def test_a_file_that_cannot_be_compared_with_the_baseline_has_no_hunks(
    then: bytes, now: bytes, tmp_path: Path
):
    (tmp_path / "shop.py").write_bytes(now)
    changes = Changes(tmp_path)
    before = HeldFiles({"shop.py": then})
    changes.compare(before.digests(), {"shop.py": "other"})

    assert changes.hunks(SIDES, before) == ()


def test_without_git_and_baseline_nothing_is_known_to_have_changed(tmp_path: Path):
    (tmp_path / "shop.py").write_text(BEFORE)

    assert Changes(tmp_path).hunks(SIDES) == ()


def test_binary_files_are_passed_over_and_the_number_of_hunks_is_bounded(tmp_path: Path):
    (tmp_path / "shop.py").write_text(
        "\n\n".join(f"def f{n}():\n    return 1" for n in range(MOST_HUNKS + 9))
    )
    (tmp_path / "new.py").write_bytes(b"\0\1")
    commit(tmp_path)
    (tmp_path / "shop.py").write_text((tmp_path / "shop.py").read_text().replace("return 1", "return 2"))
    (tmp_path / "new.py").write_bytes(b"\0\2")

    found = Changes(tmp_path).hunks(SIDES)

    assert len(found) == MOST_HUNKS
    assert {each.path for each in found} == {"shop.py"}
