"""The same code gives the same verdict: no chance, clock or network in the tests, or a fixture is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.reading.determinism import HazardKind
from planner.rules.validation.facts import Facts, Found, command_loc, listed, named_fixture
from planner.text.glob_patterns import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog import Command
    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion
    from planner.rules.validation.facts import Loc

_RULES = {
    HazardKind.RANDOM: "unseeded-random",
    HazardKind.CLOCK: "wall-clock",
    HazardKind.NETWORK: "network-access",
    HazardKind.ORDER: "hash-order",
}
_SAYS = {
    HazardKind.RANDOM: "draws unseeded random values",
    HazardKind.CLOCK: "reads the wall clock",
    HazardKind.NETWORK: "opens a network connection",
    HazardKind.ORDER: "shows the order of a set",
}
_FIXES = {
    HazardKind.RANDOM: "seed it ({seed}), or take the values from a data file and name it: "
    "fixture: fixtures/{stem}_cases.json",
    HazardKind.CLOCK: "pass the moment in as an argument, or freeze it (monkeypatch, freezegun or "
    "time-machine), or name recorded data: fixture: fixtures/{stem}_cases.json",
    HazardKind.NETWORK: "replace the connection (monkeypatch, responses, respx, vcr or pytest-httpserver) "
    "and keep the recorded answers: fixture: fixtures/{stem}_response.json",
    HazardKind.ORDER: "sort it first: sorted(…)",
}
_SEED_HINTS = (
    ("numpy.", "numpy.random.default_rng(0)"),
    ("random.", "random.Random(0)"),
    ("torch.", "torch.manual_seed(0)"),
    ("faker.", "Faker.seed(0)"),
    ("hypothesis.", "@settings(derandomize=True)"),
    ("uuid.", "uuid.UUID(int=1), or patch it"),
    ("", "replace it by a seeded generator"),
)
_LAST_RUN = frozenset(
    [
        "--lf",
        "--last-failed",
        "--ff",
        "--failed-first",
        "--nf",
        "--new-first",
        "--sw",
        "--stepwise",
        "--sw-skip",
        "--stepwise-skip",
    ]
)
_SEEDING_OPTIONS = {
    "--randomly-seed": ("random", "numpy", "faker", "torch"),
    "--hypothesis-seed": ("hypothesis",),
}
MAX_TESTS = 200
"""How many selected tests of one criterion are looked through."""


def check(facts: Facts) -> Iterator[Found]:
    """Rules about repeatability."""
    for index, todo in facts.primaries:
        for criterion in facts.criteria.get(todo.id, ()):
            command = criterion.command
            if command is None or command.pytest is None:
                continue
            loc = command_loc(index, criterion.id)
            yield from _last_run(command, todo, loc)
            yield from _hazards(facts, command, criterion, todo, loc)


def _last_run(command: Command, todo: Todo, loc: Loc) -> Iterator[Found]:
    assert command.pytest is not None
    for word in command.pytest.args:
        if word in _LAST_RUN:
            yield Found(
                "depends-on-last-run",
                loc,
                todo.id,
                f"{word} lets the last run decide which tests are run, and when",
                f"leave {word} out",
            )


def _hazards(facts: Facts, command: Command, criterion: Criterion, todo: Todo, loc: Loc) -> Iterator[Found]:
    seeded, tamed = _tamed(facts, command)
    found: dict[HazardKind, dict[tuple[str, int, str], None]] = {}
    tests = facts.selector.of(command).tests[:MAX_TESTS]
    for file, name in tests:
        for where, hazard in facts.selector.hazards(file, name, seeded):
            if hazard.kind not in tamed:
                found.setdefault(hazard.kind, {})[where, hazard.line, hazard.what] = None
    fixture = named_fixture(criterion)
    for kind in HazardKind:
        places = list(found.get(kind, ()))
        if not places:
            continue
        shown = listed([f"{where}:{line} {what}" for where, line, what in places], 3)
        fix = _FIXES[kind].format(stem=stem_of(tests[0][0]), seed=_seed_hint(places[0][2]))
        message = f"the selected test code {_SAYS[kind]}: {shown}"
        if fixture is None:
            yield Found(_RULES[kind], loc, todo.id, message, fix)
        else:
            yield Found(
                "fixture-not-enough",
                loc,
                todo.id,
                f"{fixture} is named, yet {message}",
                fix.partition(", or name")[0].partition(", or take")[0].partition(" and keep")[0],
            )


def _tamed(facts: Facts, command: Command) -> tuple[tuple[str, ...], frozenset[HazardKind]]:
    """What the options of a command, and of the project's settings, seed or keep out."""
    assert command.pytest is not None
    seeded: list[str] = []
    kept_out: set[HazardKind] = set()
    words = (*facts.project.settings.addopts, *command.pytest.args)
    for word, following in zip(words, (*words[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name in _SEEDING_OPTIONS and (value if equals else following) != "last":
            seeded.extend(_SEEDING_OPTIONS[name])
        if name in ("--disable-socket", "--block-network"):
            kept_out.add(HazardKind.NETWORK)
    seeds = dict(command.env)
    if seeds.get("PYTHONHASHSEED", "random") != "random":
        kept_out.add(HazardKind.ORDER)
    return tuple(seeded), frozenset(kept_out)


def stem_of(path: str) -> str:
    """``rsi`` of ``tests/test_rsi.py``."""
    name = plain(path).rpartition("/")[2].removesuffix(".py")
    return name.removeprefix("test_").removesuffix("_test") or name


def _seed_hint(what: str) -> str:
    return next(hint for prefix, hint in _SEED_HINTS if what.startswith(prefix))
