"""Build the injected part of the corpus: one fault in a published package, and the failures of its tests.

A case is accepted if its tests pass on the published package, fail every time with the fault (or only
sometimes, if the kind is flaky), and execute the line of the fault.
"""

from __future__ import annotations

import json
import random
import re
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from choosing_tests import Chooser, Chosen, reach
from faults import ALL_KINDS
from faults.fault import Fault, Judged, Kind, Module, label_of, met
from faults.fault import Reach as Reached
from packages import PACKAGES, PYTEST, Package, compile_all, interpreter, repository, restore
from probing import Prober
from recording import Criteria, Recording, plan_of, record

from planner.model.evidence import Evidence
from planner.model.taxonomy import Repeatability
from tools.corpus.case import Case, Gates, Group, Label, Origin, render

KINDS = {kind.id: kind.sentence for kind in ALL_KINDS}
"""All kinds of fault, with a sentence about each."""

TRIES = 8
"""Number of places of a module that are tried for one case."""
SLOW_TRIES = 3
FLAKY_TRIES = 5
FEW_USES = 4
"""Most uses of a name in the product that is hardly used: definition, export and documentation."""
CONFIRMATIONS = 3


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case]:
    """Build the cases; ``only`` names packages or kinds. Built cases are stored in ``work``."""
    names, asked = {each.name for each in PACKAGES}, set(only)
    if asked and not asked & (names | set(KINDS)):
        return
    packages = [each for each in PACKAGES if each.name in asked or not names & asked]
    kinds = [each for each in ALL_KINDS if each.id in asked or not set(KINDS) & asked]
    work.mkdir(parents=True, exist_ok=True)
    python = interpreter(work)
    with Prober(python) as prober:
        builders = [PackageBuilder(package, work, seed, python, prober) for package in packages]
        for round_, kind in _turns(kinds, seed):
            for builder in builders:
                yield from builder.cases((kind,), (round_,))
        for builder in builders:
            print(
                f"{builder.package.name}: dropped {json.dumps(builder.dropped)}",
                file=sys.stderr,
                flush=True,
            )


def _turns(kinds: list[Kind], seed: int) -> Iterator[tuple[int, Kind]]:
    """Yield rounds over the kinds in mixed order, for interrupted builds; slow kinds come last."""
    quick = [each for each in kinds if not each.slow]
    slow = [each for each in kinds if each.slow]
    later = range(1, ROUNDS)
    for rounds, turn in ((range(1), quick), (range(1), slow), (later, quick), (later, slow)):
        for round_ in rounds:
            for kind in random.Random(seed + round_).sample(turn, len(turn)):
                yield round_, kind


@dataclass
class PackageBuilder:
    """Builds the cases of one package in one working copy, one after the other."""

    package: Package
    work: Path
    seed: int
    python: Path
    prober: Prober
    dropped: Counter[str] = field(default_factory=Counter)
    """Number of dropped cases, by kind and gate."""
    _left: dict[tuple[str, str], list[Fault]] = field(default_factory=dict)
    """Places that were not tried yet, by kind and module."""
    _used: set[tuple[str, str, int | None]] = field(default_factory=set)
    """Used places, as kind, file and line."""
    _made: dict[str, Case] = field(default_factory=dict)
    _exhausted: set[str] = field(default_factory=set)
    _product: tuple[Module, ...] = ()
    _tests: tuple[Module, ...] = ()

    def cases(self, kinds: Iterable[Kind], rounds: Iterable[int]) -> Iterator[Case]:
        """Yield one case of each kind in turn, until there are enough; stored ones come first."""
        self._start()
        for round_, kind in ((round_, kind) for round_ in rounds for kind in kinds):
            name = self._id(kind, round_)
            if len(self._made) >= self.package.cases and name not in self._made:
                continue
            if name not in self._made and kind.id not in self._exhausted:
                case = self._case(kind, round_)
                if case is None:
                    self._exhausted.add(kind.id)
                    continue
                self._made[name] = case
                with self._journal.open("a", encoding="utf-8") as file:
                    file.write(render(case) + "\n")
            if name in self._made:
                yield self._made[name]

    @property
    def _journal(self) -> Path:
        return self.work / "made" / f"{self.package.name}-{self.seed}.jsonl"

    def _id(self, kind: Kind, round_: int) -> str:
        return f"{self.package.name}-{kind.id}-{round_}"

    def _start(self) -> None:
        if self._product:
            return
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        self._project = repository(self.package, self.work)
        restore(self._project)
        compile_all(self.package, self._project, self.python)
        self._reach = reach(self.package, self._project, self.prober, self.work)
        self._chooser = Chooser(
            package=self.package,
            project=self._project,
            prober=self.prober,
            reach=self._reach,
            green=self._green(),
        )
        self._product = _modules(self._project, self.package)
        self._tests = _test_modules(self._project, self.package)
        for case in kept(self.work, self.package.name, self.seed):
            self._made[case.id] = case
            self._used.add((case.origin.kind, case.origin.file or "", case.origin.line))

    def _case(self, kind: Kind, round_: int) -> Case | None:
        chance = random.Random(f"{self.seed}:{self.package.name}:{kind.id}:{round_}")
        tried = 0
        for fault in self._places(kind, chance):
            key = (kind.id, fault.path, fault.first_line)
            if key in self._used:
                continue
            self._used.add(key)
            tried += 1
            if tried > (SLOW_TRIES if kind.slow else TRIES):
                return None
            try:
                case = self._tried(kind, fault, round_, chance)
            finally:
                restore(self._project)
            if case is not None:
                return case
        return None

    def _places(self, kind: Kind, chance: random.Random) -> Iterator[Fault]:
        """Yield the places of a kind in random order; each module has the same probability."""
        own = kind.reach is Reached.OWN
        open_modules = list(self._tests if own else self._product)
        while open_modules:
            module = chance.choice(open_modules)
            key = (kind.id, module.path)
            if key not in self._left:
                found = [fault for fault in kind.inject(module) if own or self._may_run(kind, fault)]
                chance.shuffle(found)
                if kind.judged is Judged.INTERFACE:  # the last is taken first
                    found.sort(key=self._is_for_tests)
                self._left[key] = found
            if self._left[key]:
                yield self._left[key].pop()
            else:
                open_modules.remove(module)

    def _is_for_tests(self, fault: Fault) -> bool:
        """Return whether the tests use the changed name and the product itself hardly does."""
        names = [each for each in (fault.function or "").split(".") if not each.startswith("__")]
        if not names:
            return False
        word = re.compile(rf"\b{re.escape(names[-1])}\b")
        uses = sum(len(word.findall(each.text)) for each in self._product)
        return uses <= FEW_USES and any(word.search(each.text) for each in self._tests)

    def _may_run(self, kind: Kind, fault: Fault) -> bool:
        if kind.reach is Reached.IMPORT:
            return True
        return fault.runs is not None and bool(self._reach.of(fault.path, fault.runs))

    def _tried(self, kind: Kind, fault: Fault, round_: int, chance: random.Random) -> Case | None:
        self._apply(fault)
        chosen = self._chooser.chosen(kind, fault, chance)
        if chosen is None:
            return self._drop(kind, "survived")
        edited = self._edit_harmlessly(fault, chosen.tests, chance)
        recording, evidence = self._recorded(kind, chosen)
        if recording is None or evidence is None:
            return self._drop(kind, "not red as it should be")
        label = label_of(kind, fault, evidence, product_edited=edited == "product")
        if label is None:
            return self._drop(kind, "another failure than the fault's")
        executed = chosen.executed or met(evidence, fault)
        if not executed and fault.first_line is not None:
            return self._drop(kind, "not executed")
        case = self._labelled(kind, chosen, evidence, label, round_)
        if len(render(case)) > LARGEST_CASE:
            return self._drop(kind, "too large")
        return case

    def _drop(self, kind: Kind, gate: str) -> None:
        self.dropped[f"{kind.id}: {gate}"] += 1
        with (self.work / "made" / f"{self.package.name}-dropped.txt").open("a", encoding="utf-8") as file:
            file.write(f"{kind.id}: {gate}\n")

    def _apply(self, fault: Fault) -> None:
        for path, content in fault.changes.items():
            file = self._project / path
            if content is None:
                file.unlink()
            elif isinstance(content, bytes):
                file.write_bytes(content)
            else:
                file.write_text(content, encoding="utf-8")

    def _edit_harmlessly(self, fault: Fault, tests: tuple[str, ...], chance: random.Random) -> str | None:
        """Make a harmless edit in about half of all cases: a comment or a passing test. Return its side."""
        side = chance.choice(("product", "test", None, None))
        files = {test.split("::")[0] for test in tests} | set(fault.changes)
        modules = self._product if side == "product" else self._tests
        free = [each.path for each in modules if each.path not in files and _takes_edits(each.path, side)]
        if side is None or not free:
            return None
        path = chance.choice(free)
        with (self._project / path).open("a", encoding="utf-8") as file:
            file.write(_COMMENT if side == "product" else _PASSING)
        return side

    def _recorded(self, kind: Kind, chosen: Chosen) -> tuple[Recording | None, Evidence | None]:
        flaky = kind.repeatability is not Repeatability.DETERMINISTIC
        by_chance = kind.repeatability is Repeatability.FLAKY
        for _ in range(FLAKY_TRIES if by_chance else 1):
            recording = self._record(kind, chosen.tests)
            if recording is None or recording.exit_code == 0 or not recording.evidence:
                continue
            evidence = next((each for each in recording.evidence if each.exceptions), recording.evidence[0])
            answers = [each.passed for each in evidence.confirmations]
            if flaky == any(answers) and (flaky or len(answers) >= 2 or _needs_none(evidence)):
                return recording, evidence
        return None, None

    def _record(self, kind: Kind, tests: tuple[str, ...]) -> Recording | None:
        try:
            return record(
                self._project,
                plan_of({"work": _criteria(kind, tests)}),
                python=self.python,
                environment=self._environment,
                confirmations=CONFIRMATIONS,
                timeout=120,
            )
        except RuntimeError:
            return None

    @property
    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self._project / self.package.import_path)}

    def _green(self) -> frozenset[str]:
        """Return the tests that pass on the committed state, run in the same way as the recorded cases."""
        kept = self.work / "green" / f"{self.package.name}-{self.package.version}.json"
        if not kept.is_file():
            plan = plan_of({"work": {"tests": [{"cmd": f"pytest {self.package.tests}"}]}})
            recording = record(
                self._project,
                plan,
                python=self.python,
                environment=self._environment,
                confirmations=1,
                timeout=600,
            )
            red = {test for each in recording.evidence for test in (each.nodeid or "", *each.tests)}
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps([test for test in self._reach.passed if test not in red]))
        return frozenset(json.loads(kept.read_text(encoding="utf-8")))

    def _labelled(self, kind: Kind, chosen: Chosen, evidence: Evidence, label: Label, round_: int) -> Case:
        fault = chosen.fault
        answers = [each.passed for each in evidence.confirmations]
        return Case(
            id=self._id(kind, round_),
            group=Group.INJECTED,
            origin=Origin(
                package=self.package.name,
                version=self.package.version,
                sha256=self.package.sha256,
                kind=kind.id,
                seed=self.seed,
                file=fault.path,
                line=fault.first_line,
                before=fault.before,
                after=fault.after,
                command=_command(kind, chosen.tests),
                python=".".join(map(str, sys.version_info[:3])),
                pytest=PYTEST,
            ),
            gates=Gates(
                green_before=True,
                red_runs=1 + answers.count(False),
                runs=1 + len(answers),
                executed=True if fault.first_line is not None else None,
            ),
            label=label,
            evidence=evidence,
        )


ROUNDS = 4
LARGEST_CASE = 14_000
_COMMENT = "\n# Kept at the end: nothing below may be imported by others.\n"
_PASSING = "\n\ndef test_that_numbers_add_up():\n    assert sum([1, 2, 3]) == 6\n"


def _modules(project: Path, package: Package) -> tuple[Module, ...]:
    root = project / package.import_path
    found: list[Module] = []
    for file in sorted((project / package.sources).rglob("*.py")):
        parts = file.relative_to(root).parts[:-1]
        text = file.read_text(encoding="utf-8")
        found.append(Module(str(file.relative_to(project)), text, ".".join(parts)))
    return tuple(found)


def _test_modules(project: Path, package: Package) -> tuple[Module, ...]:
    folder = project / package.tests
    data = tuple(
        str(file.relative_to(project))
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix not in (".py", ".pyc")
    )
    return tuple(
        Module(str(file.relative_to(project)), file.read_text(encoding="utf-8"), data=data)
        for file in sorted(folder.rglob("*.py"))
    )


def _criteria(kind: Kind, tests: tuple[str, ...]) -> Criteria:
    criterion: dict[str, object] = {"cmd": _command(kind, tests)}
    if kind.timeout_seconds is not None:
        criterion["timeout_seconds"] = kind.timeout_seconds
    return {"tests": [criterion]}


def _command(kind: Kind, tests: tuple[str, ...]) -> str:
    return " ".join(["pytest", *([kind.options] if kind.options else []), *map(shlex.quote, tests)])


def _needs_none(evidence: Evidence) -> bool:
    """Return whether fewer confirmations are enough, as for a timeout, where each costs the whole limit."""
    return evidence.timed_out and len(evidence.confirmations) > 0


def _takes_edits(path: str, side: str | None) -> bool:
    if side == "product":
        return not path.endswith("__init__.py")
    return path.rsplit("/", 1)[-1].startswith("test_")


def kept(work: Path, package: str, seed: int) -> tuple[Case, ...]:
    """Return the cases of a package that builds in ``work`` have stored, including interrupted builds."""
    file = work / "made" / f"{package}-{seed}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return tuple(Case.model_validate_json(line) for line in lines)
