"""Bounds of the plan that are passed: the sandbox, the allowed files, the budget."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.guard_hygiene import FEES, FEES_TEST
from scenes.scene import Edit, Machine, Scene, Truth, reading

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
DATA = {"TESTS/fees.json": '{"first": [40, 55, 70]}\n'}
LOOSE = Machine(apart="-m -n", before="mount -t tmpfs tmpfs /srv; touch /srv/old-fees.txt")
"""What a sandbox fails to hold back does no harm there."""

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


def scenes() -> tuple[Scene, ...]:
    """Every bound that is passed."""
    return (*_sandbox(), *_allowlist(), *_budget())


def _scene(
    kind: str, says: str, projects: tuple[str, ...], truth: Truth, edits: tuple[Edit, ...], **more: object
) -> Scene:
    given: dict[str, object] = {"product": FEES, "test": FEES_TEST, "files": DATA, "module": "fees"} | more
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
