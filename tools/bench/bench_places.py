"""Measure how often the faulty function is named first, on bugs made from published packages.

Of two releases of a package, each product function that differs is set back to the older release, one at
a time, in the newer one. If tests fail because of it, this function is the place of the bug. Each bug is
verified in three settings: ``edit`` (the function is the only uncommitted edit), ``release`` (the whole
older source is the uncommitted edit) and ``committed`` (no change is visible). The baselines are computed
from a plain run of the same tests: the last product frame of the traceback, and Ochiai's coefficient of
the executed functions.

``python tools/bench/bench_places.py [--bugs N] [--folder DIR] [--json FILE] [NAME:OLD:NEW …]``
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

RELEASES = (
    "toolz:0.11.2:0.12.0",
    "more-itertools:9.1.0:10.0.0",
    "tabulate:0.8.9:0.8.10",
    "natsort:8.3.1:8.4.0",
    "schema:0.7.5:0.7.7",
    "glom:22.1.0:23.3.0",
    "mistune:3.0.0:3.0.2",
    "marshmallow:3.13.0:3.20.1",
    "sqlparse:0.4.0:0.4.4",
    "voluptuous:0.11.7:0.13.1",
    "attrs:21.4.0:22.2.0",
    "click:8.0.4:8.1.3",
    "Jinja2:3.0.3:3.1.2",
    "Markdown:3.3.4:3.4.3",
    "pyparsing:3.0.9:3.1.0",
    "arrow:1.1.1:1.2.3",
    "parse:1.20.0:1.20.2",
)
SETTINGS = ("edit", "release", "committed")
TITLES = {
    "edit": "The faulty function is the only uncommitted edit",
    "release": "It is among the changes of a whole release",
    "committed": "No change can be seen",
}
METHODS = ("planverify", "traceback", "ochiai", "ochiai, changed")
LIMIT_SECONDS = 180
TEST_NEEDS = ("pytest", "hypothesis", "simplejson", "pytz", "mock", "pretend", "contextlib2", "PyYAML")

Place = tuple[str, str]
"""Path and qualified name of a function."""


@dataclass(frozen=True, slots=True)
class Function:
    first: int
    last: int
    lines: tuple[str, ...]
    shape: str
    """Syntax tree without docstrings; equal if only comments or layout differ."""


@dataclass(frozen=True, slots=True)
class Bug:
    place: Place
    tests: tuple[str, ...]
    """Tests that pass in the newer release, and fail with this function of the older one."""


def functions(text: str) -> dict[str, Function]:
    """Return the functions and methods of a module by qualified name, without nested functions."""
    lines = text.splitlines(keepends=True)
    found: dict[str, Function] = {}

    def visit(body: Iterable[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                last = node.end_lineno or node.lineno
                if ast.get_docstring(node) is not None:
                    node.body = node.body[1:] or [ast.Pass()]
                found[prefix + node.name] = Function(
                    first, last, tuple(lines[first - 1 : last]), ast.dump(node)
                )

    visit(ast.parse(text).body, "")
    return found


class Package:
    """Two releases of a package: a repository of the newer one, and the older source beside it."""

    def __init__(self, name: str, old: str, new: str, folder: Path, base_python: Path) -> None:
        self.name = name
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.old = _sdist(name, old, self.folder)
        self.root = _sdist(name, new, self.folder)
        self.python = _environment(self.folder / "venv", base_python, self.root)
        self.test_paths = [
            each
            for each in (*self.root.rglob("test*"), *self.root.rglob("conftest.py"))
            if (each.is_dir() and each.name in {"test", "tests"})
            or (each.is_file() and re.fullmatch(r"(test_.*|.*_test|tests|conftest)\.py", each.name))
        ]
        self._git("init", "-q", "-b", "main")
        self._git("config", "user.email", "bench@example.invalid")
        self._git("config", "user.name", "bench")
        (self.root / ".gitignore").write_text(
            "__pycache__/\n.planverify/\n.pytest_cache/\n.hypothesis/\n*.egg-info/\nplan.yaml\n"
        )
        self._git("add", "-A")
        self._git("commit", "-qm", "new release")

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True)

    def restore(self) -> None:
        self._git("checkout", "-q", "main")
        self._git("checkout", "-q", "--", ".")
        self._git("clean", "-qfd")
        shutil.rmtree(self.root / ".planverify", ignore_errors=True)

    def is_test(self, path: Path) -> bool:
        return any(path == each or each in path.parents for each in self.test_paths)

    def products(self) -> Iterator[tuple[Path, Path]]:
        """Yield the modules that both releases have, older and newer."""
        for new in sorted(self.root.rglob("*.py")):
            relative = new.relative_to(self.root)
            old = self.old / relative
            if (
                old.is_file()
                and not self.is_test(new)
                and relative.parts[0] not in {"docs", "doc", "examples", "benchmark", "dev"}
            ) and relative.name not in {"setup.py", "versioneer.py", "_version.py", "conftest.py"}:
                yield old, new

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        surroundings = {**os.environ, "COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": "1", **settings}
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            env=surroundings,
            check=False,
        )

    def red_tests(self, *arguments: str) -> set[str] | None:
        """Return the node ids that fail in a plain run; ``None`` if the session itself fails."""
        try:
            ended = self.run(
                "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:planverify", "-rfE", *arguments
            )
        except subprocess.TimeoutExpired:
            return None
        if ended.returncode not in {0, 1}:
            return None
        found = re.findall(r"^FAILED (.+?)(?: - .*)?$", ended.stdout, re.MULTILINE)
        return None if re.search(r"^ERROR ", ended.stdout, re.MULTILINE) else set(found)

    def bugs(self, most: int) -> Iterator[Bug]:
        """Yield at most ``most`` functions of the older release that make tests of the newer one fail."""
        before = self.red_tests()
        if before is None:
            print(f"{self.name}: its own tests do not run", file=sys.stderr)
            return
        count = 0
        for old, new in self.products():
            text = new.read_text(encoding="utf-8")
            was = functions(old.read_text(encoding="utf-8"))
            for name, now in functions(text).items():
                if name not in was or was[name].shape == now.shape or count >= most:
                    continue
                new.write_text(_with_function(text, now, was[name]), encoding="utf-8")
                reds = self.red_tests("--maxfail=40")
                self.restore()
                if reds and (tests := sorted(reds - before)):
                    count += 1
                    yield Bug((str(new.relative_to(self.root)), name), tuple(tests))

    def prepare(self, bug: Bug, setting: str) -> None:
        """Make the work tree hold the bug."""
        self.restore()
        if setting == "release":
            for old, new in self.products():
                new.write_bytes(old.read_bytes())
            return
        path, name = bug.place
        new = self.root / path
        text = new.read_text(encoding="utf-8")
        was = functions((self.old / path).read_text(encoding="utf-8"))[name]
        new.write_text(_with_function(text, functions(text)[name], was), encoding="utf-8")
        if setting == "committed":
            self._git("checkout", "-qB", "bug")
            self._git("commit", "-qam", "bug")

    def answers(self, bug: Bug, changed: set[Place]) -> dict[str, list[Place]] | None:
        """Return the ranked places of each method; ``None`` if the test does not fail."""
        file = bug.tests[0].partition("::")[0]
        (self.root / "plan.yaml").write_text(
            "todo_list_id: place\nworkflow_name: place\nitems:\n  - id: bug\n    title: bug\n"
            f"    acceptance_criteria:\n      tests:\n        - cmd: pytest {file}\n          timeout_seconds: 150\n"  # noqa: E501
        )
        probed = self.folder / "probe.json"
        probed.unlink(missing_ok=True)
        self.run(
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:planverify",
            "-p",
            "place_probe",
            file,
            PYTHONPATH=str(Path(__file__).parent),
            PLACE_ROOT=str(self.root),
            PLACE_TESTS=os.pathsep.join(map(str, self.test_paths)),
            PLACE_OUTPUT=str(probed),
        )
        tests = json.loads(probed.read_text())
        if not tests.get(bug.tests[0], {}).get("failed"):
            return None
        outcomes = self.folder / "outcomes.json"
        outcomes.unlink(missing_ok=True)
        self.run("-m", "pytest", "--planverify", "plan.yaml", f"--planverify-outcomes={outcomes}")
        outcome = json.loads(outcomes.read_text())["outcomes"][0]
        about = [each for each in outcome["failures"] if bug.tests[0] in each.get("tests", ())]
        found = (about or [outcome["failure_evidence"] or {}])[0]
        names = found.get("candidates") or ([found["location"]] if found.get("location") else [])
        ochiai = _ochiai(tests, bug.tests[0])
        frame = tests[bug.tests[0]]["frame"]
        return {
            "planverify": [(each["path"], _plain(each.get("function"))) for each in names],
            "traceback": [tuple(frame)] if frame else [],
            "ochiai": ochiai,
            "ochiai, changed": [each for each in ochiai if any(_within(each, one) for one in changed)],
        }

    def changed_places(self, bug: Bug, setting: str) -> set[Place]:
        if setting == "edit":
            return {bug.place}
        if setting == "committed":
            return set()
        found: set[Place] = set()
        for old, new in self.products():
            now = functions(
                subprocess.run(
                    ["git", "show", f"main:{new.relative_to(self.root)}"],
                    cwd=self.root,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for name, function in functions(old.read_text(encoding="utf-8")).items():
                if name not in now or now[name].shape != function.shape:
                    found.add((str(new.relative_to(self.root)), name))
        return found


def _with_function(text: str, now: Function, was: Function) -> str:
    lines = text.splitlines(keepends=True)
    lines[now.first - 1 : now.last] = was.lines
    return "".join(lines)


def _plain(name: str | None) -> str:
    return (name or "").replace("<locals>.", "")


def _within(place: Sequence[str], function: Place) -> bool:
    """Return whether the place is this function or nested in it."""
    return place[0] == function[0] and (place[1] + ".").startswith(function[1] + ".")


def _ochiai(tests: Mapping[str, Mapping[str, object]], red: str) -> list[Place]:
    """Rank the executed functions of one failing test by at most a hundred passing tests of its file."""
    greens = [each for each in tests.values() if not each["failed"]][:100]
    executed = [tuple(each) for each in tests[red]["places"]]  # type: ignore[union-attr]

    def score(place: Place) -> float:
        passing = sum(list(place) in each["places"] for each in greens)  # type: ignore[operator]
        return 1 / math.sqrt(1 + passing)

    return sorted(executed, key=score, reverse=True)


def _sdist(name: str, version: str, folder: Path) -> Path:
    target = folder / f"{name}-{version}"
    if not target.exists():
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":all:",
                "-d",
                str(folder),
                f"{name}=={version}",
            ],
            check=True,
            capture_output=True,
        )
        archive = next(iter(folder.glob(f"{name.replace('-', '?')}-{version}.tar.gz")))
        with tarfile.open(archive) as opened:
            opened.extractall(folder / f".{version}", filter="data")
        next((folder / f".{version}").iterdir()).rename(target)
    shutil.rmtree(target / ".git", ignore_errors=True)
    return target


def _environment(folder: Path, base_python: Path, root: Path) -> Path:
    """Create an environment with the package, editable, on top of the one that contains the verifier."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "-e", str(root), *TEST_NEEDS],
            check=True,
            capture_output=True,
        )
        beside = subprocess.run(
            [str(base_python), "-c", "import site; print(site.getsitepackages()[0])"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        mine = next((folder / "lib").glob("python3*")) / "site-packages"
        (mine / "verifier.pth").write_text(f"import site; site.addsitedir({beside!r})\n")
    return python


def measure(package: Package, most: int, collect_only: bool = False) -> list[dict[str, object]]:
    """Return a record for each bug and setting: the rank of the true function by each method."""
    records: list[dict[str, object]] = []
    kept = package.folder / "bugs.json"
    if kept.exists():
        bugs = [Bug(tuple(place), tuple(tests)) for place, tests in json.loads(kept.read_text())]  # type: ignore[arg-type]
    else:
        bugs = list(package.bugs(most))
        kept.write_text(json.dumps([(each.place, each.tests) for each in bugs]))
    print(package.name, len(bugs), "bugs", flush=True)
    if collect_only:
        return []
    for setting in SETTINGS:
        for bug in bugs:
            package.prepare(bug, setting)
            try:
                answers = package.answers(bug, package.changed_places(bug, setting))
            except (subprocess.TimeoutExpired, FileNotFoundError, json.JSONDecodeError) as error:
                print(f"{package.name} {bug.place}: {type(error).__name__}", file=sys.stderr)
                answers = None
            if answers is None:
                continue
            true = {
                each.place
                for each in bugs
                if each.place == bug.place or (setting == "release" and bug.tests[0] in each.tests)
            }
            record: dict[str, object] = {
                "package": package.name,
                "setting": setting,
                "place": bug.place,
                "test": bug.tests[0],
                "named": answers["planverify"],
            }
            for method, places in answers.items():
                ranks = [n for n, each in enumerate(places, 1) if any(_within(each, one) for one in true)]
                record[method] = ranks[0] if ranks else None
            records.append(record)
            print(package.name, setting, bug.place[1], *(f"{m}={record[m]}" for m in METHODS), flush=True)
    package.restore()
    return records


class Row(NamedTuple):
    """Hit rates of one method in one setting."""

    setting: str
    method: str
    bugs: int
    shares: tuple[float, ...]
    """Shares of the bugs whose function is first, among the first three, and among the first five."""


def rows(records: Sequence[Mapping[str, object]]) -> Iterator[Row]:
    for setting in SETTINGS:
        of = [each for each in records if each["setting"] == setting]
        for method in METHODS:
            if of and not (method == "ochiai, changed" and setting == "committed"):
                ranks = [cast("int | None", each[method]) or 99 for each in of]
                shares = (sum(rank <= most for rank in ranks) / len(of) for most in (1, 3, 5))
                yield Row(setting, method, len(of), tuple(shares))


def table(records: Sequence[Mapping[str, object]]) -> str:
    lines = [f"{'setting':10} {'method':18} {'bugs':>5} {'first':>6} {'three':>6} {'five':>6}"]
    for row in rows(records):
        shares = " ".join(f"{share:6.2f}" for share in row.shares)
        lines.append(f"{row.setting:10} {row.method:18} {row.bugs:5} {shares}")
    return "\n".join(lines)


def plot(records: Sequence[Mapping[str, object]]) -> str:
    """Return the table as a bar chart in SVG: dark for the first place, lighter for three and five."""
    found = list(rows(records))
    lines: list[str] = []
    y = 26
    last = ""
    for row in found:
        if row.setting != last:
            last, y = row.setting, y + 14
            lines.append(f'<text x="8" y="{y + 11}" class="h">{TITLES[last]} ({row.bugs} bugs)</text>')
            y += 18
        name = "pytest-planverify" if row.method == "planverify" else row.method
        lines.append(f'<text x="20" y="{y + 11}">{name}</text>')
        color = "#1f6feb" if row.method == "planverify" else "#6e7781"
        for share, opacity in zip(reversed(row.shares), (0.25, 0.45, 1.0), strict=True):
            bar = f'<rect x="150" y="{y}" width="{share * 400:.0f}" height="13" fill="{color}"'
            lines.append(f'{bar} fill-opacity="{opacity}"/>')
        shares = " / ".join(f"{share:.2f}" for share in row.shares)
        lines.append(f'<text x="560" y="{y + 11}">{shares}</text>')
        y += 18
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {y + 10}" role="img">'
    style = "text{font:12px sans-serif;fill:#57606a}.h{font-weight:bold}"
    title = '<text x="8" y="20" class="h">The function at fault is named first / within 3 / within 5</text>'
    return "\n".join((head, f"<style>{style}</style>", title, *lines, "</svg>")) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="NAME:OLD:NEW")
    parser.add_argument("--bugs", type=int, default=10, help="most bugs of one package (default: 10)")
    parser.add_argument(
        "--folder", type=Path, required=True, help="where packages and environments are kept"
    )
    parser.add_argument(
        "--collect", action="store_true", help="only find the bugs, and keep them in the folder"
    )
    parser.add_argument("--json", type=Path, help="write every bug's ranks there")
    parser.add_argument("--plot", type=Path, help="write the table as a bar chart there, an SVG file")
    options = parser.parse_args()
    records: list[dict[str, object]] = []
    for release in options.releases:
        name, old, new = release.split(":")
        try:
            package = Package(name, old, new, options.folder.resolve(), Path(sys.executable))
        except (subprocess.CalledProcessError, StopIteration) as error:
            print(f"skipping {name}: {error}", file=sys.stderr)
            continue
        records += measure(package, options.bugs, options.collect)
        if options.json:
            options.json.write_text(json.dumps(records, indent=1) + "\n")
    print(table(records))
    if options.plot:
        options.plot.write_text(plot(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
