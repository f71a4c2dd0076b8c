"""Preloading of modules: a worker finds them exactly where its own import would."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from forked import in_fork
from module_project import write_files

from pytest_planverify.observe.warm_modules import ModuleShelf, Unfit

HEAVY = {"heavy/__init__.py": "import os\nplace = __file__\n", "heavy/part.py": "value = object()\n"}
SHADOWING = {"heavy.py": "place = 'the project'\n"}
"""A module of the project with the name of an installed package."""


class World:
    """Folders of installed and of project modules on the search path, and a shelf of preloaded modules."""

    def __init__(self, folder: Path) -> None:
        self.installed, self.project = folder / "installed", folder / "project"
        self.shelf = ModuleShelf()
        self.restarts: list[str] = []
        self.extensions: list[str] = []

    def install(self, files: dict[str, str]) -> None:
        write_files(self.installed, files)

    def hand_out(self, *, collecting: bool = True) -> None:
        self.shelf.hand_out(self.restarts.append, self.extensions.append)
        if not collecting:
            self.shelf.begin_tests()

    def preload(self, *names: str, project: dict[str, str] | None = None, collecting: bool = True) -> None:
        """Preload modules and hand them out, to a worker whose project has these files."""
        self.shelf.fill(list(names))
        write_files(self.project, project or {})
        self.hand_out(collecting=collecting)


def in_a_fork(test: Callable[..., None]) -> Callable[..., None]:
    """Run the test in a forked process, because its imports are not undone."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        in_fork(lambda: test(**fixtures))

    return run


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    for folder in (world.installed, world.project):
        folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(world.project), str(world.installed), *sys.path])
    return world


@in_a_fork
def test_preloaded_module_is_imported_once_and_found_on_import(world: World):
    world.install({**HEAVY, "heavy/__init__.py": "import sys\nsys.heavy_count = 1\n"})

    world.shelf.fill(["heavy", "heavy.part"])
    assert "heavy" not in sys.modules
    del sys.heavy_count
    world.hand_out()

    import heavy
    import heavy.part

    assert not hasattr(sys, "heavy_count")
    assert heavy.part is sys.modules["heavy.part"]
    assert heavy.__spec__.origin == str(world.installed / "heavy/__init__.py")
    assert world.restarts == []


@in_a_fork
def test_project_module_takes_precedence_over_a_preloaded_one(world: World):
    world.install(HEAVY)
    world.preload("heavy", project=SHADOWING)
    import heavy

    assert heavy.place == "the project"
    assert world.restarts == ["heavy is another module here, or is imported under other conditions"]


@pytest.mark.parametrize(
    ("value", "collecting", "restarts"),
    [(None, True, 0), ("Agg", True, 1), ("Agg", False, 0)],
    ids=["the same value", "another value", "another value once tests have begun"],
)
@in_a_fork
def test_module_is_reimported_if_an_environment_variable_it_read_has_changed(
    value: str | None, collecting: bool, restarts: int, world: World
):
    world.install({"heavy.py": "import os\nbackend = os.environ.get('HEAVY_BACKEND')\n"})
    world.shelf.fill(["heavy"])
    if value is not None:
        os.environ["HEAVY_BACKEND"] = value
    world.hand_out(collecting=collecting)
    import heavy

    assert (heavy.backend, len(world.restarts)) == (value, restarts)


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("import threading\nthreading.Timer(9, print).start()", "starts a thread"),
        ("import sys\nsys.path.append('/elsewhere')", "changes sys.path"),
        ("import sys\nsys.displayhook = print", "replaces sys.displayhook"),
        ("raise LookupError('settings are missing')", "raises LookupError"),
        ("import warnings\nwarnings.warn('old')", "warns"),
        ("import warnings\nwarnings.resetwarnings()", "changes the warning filters"),
        ("import light.part", "imports light.part, whose effects are not known"),
    ],
    ids=["thread", "path", "displayhook", "error", "warning", "filters", "package"],
)
@in_a_fork
def test_module_with_import_side_effects_is_unfit(text: str, effect: str, world: World):
    world.install({"heavy.py": f"{text}\n", "site-packages/light/part.py": ""})
    sys.path.append(str(world.installed / "site-packages"))
    with pytest.raises(Unfit) as unfit:
        world.shelf.fill(["heavy"])
    assert (unfit.value.module, str(unfit.value)) == ("heavy", f"heavy: importing it {effect}")


@in_a_fork
def test_warning_filters_of_a_preloaded_module_apply_on_its_import(world: World):
    lines = (
        "import warnings",
        "warnings.filterwarnings('ignore', 'heavy.size')",
        "warnings.simplefilter('error', BytesWarning)",
        "warnings.simplefilter('once', BytesWarning, append=True)",
        "warnings.filterwarnings('once', 'heavy.length', append=True)",
    )
    world.install({"heavy.py": "\n".join(lines)})

    before = list(warnings.filters)
    world.shelf.fill(["heavy"])
    assert warnings.filters == before
    world.hand_out()
    __import__("heavy")
    ahead = list(warnings.filters)
    warnings.filters[:] = before
    del sys.modules["heavy"]
    __import__("heavy")
    assert ahead == warnings.filters != before


@in_a_fork
def test_module_that_cannot_be_preloaded_is_left_to_the_worker(world: World):
    world.shelf.fill(["no_such_module"])
    assert "no_such_module" not in sys.modules


class Case(NamedTuple):
    """Installed files, the modules that a worker imports, and what holds then."""

    installed: dict[str, str]
    imports: str
    holds: str = "True"
    project: dict[str, str] = {}
    preload: str = ""
    """The modules to preload, if not those that are imported."""
    earlier: str = ""
    """A module that was imported before the preloading."""
    before: str = ""
    """Code of the worker before its imports."""


OPTIONAL = {"user.py": "try: import heavy\nexcept ImportError: heavy = None\n"}
"""A module that uses another one if it is there."""
BOTH = {**HEAVY, **OPTIONAL}
PACKAGE = {"heavy/__init__.py": "from heavy import own\n", "heavy/own.py": "", "heavy/part.py": ""}
SHADOWED_PART = {"heavy/__init__.py": "from heavy.part import part\n", "heavy/part.py": "part = 5\n"}
HAS_PART = "hasattr(sys.modules['heavy'], 'part')"
PART = "heavy.part is sys.modules['heavy.part']"
OF_USER = "user.heavy.part.value is sys.modules['heavy.part'].value"
BY_NAME = "import importlib; importlib.import_module('heavy.part')"
SHARED = "import sys, types\nshared = sys.modules.setdefault('runtime', types.ModuleType('runtime'))\n"
BY_HAND = """
import sys, types
native, part = types.ModuleType("native"), types.ModuleType("native.part")
native.part = part
sys.modules |= {"native.part": part, "native": native}
"""
STAND_IN = "import sys, types\nit = sys.modules[__name__] = types.ModuleType(__name__)\nit.value = 1\n"
FACADE = "import sys\nclass Facade:\n    value = 1\nsys.modules[__name__] = Facade()\n"
HIDES_HEAVY = """
class Hiding:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "heavy":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hiding)
"""
SERVED = {
    "imports in any way": Case({"heavy.py": "__import__('json', fromlist=['loads'])"}, "heavy"),
    "environment as bytes": Case({"heavy.py": "import os\nos.environb.get(b'A')"}, "heavy"),
    "submodule, which is no attribute before": Case(
        HEAVY, "heavy.part", PART, earlier="heavy", before=f"assert not {HAS_PART}"
    ),
    "only what its own import loads": Case(
        {**PACKAGE, "user.py": "import heavy.part\n"},
        "heavy",
        f"heavy.own is sys.modules['heavy.own'] and not {HAS_PART} and 'heavy.part' not in sys.modules",
        preload="user",
    ),
    "imports of another module": Case(
        {**HEAVY, "user.py": "import heavy.part\nimport heavy\n"},
        "user",
        OF_USER,
        preload="heavy heavy.part user",
    ),
    "imports by name of another module": Case(
        {**HEAVY, "user.py": f"{BY_NAME}\nimport heavy\n"}, "user", OF_USER, preload="heavy heavy.part user"
    ),
    "attribute that shadows a submodule": Case(SHADOWED_PART, "heavy", "heavy.part == 5"),
    "dependent of a module that is still missing": Case(
        {**OPTIONAL, "heavy.py": "from json import JSONDecodeError, scanner\nimport absent\n"},
        "user",
        "user.heavy is None",
    ),
    "dependent of a module that refuses its import": Case(
        {**OPTIONAL, "heavy.py": "raise ImportError('made for another system')"}, "user"
    ),
    "dependent of a module that it only searches": Case(
        {"user.py": "from importlib.util import find_spec\nfind_spec('heavy')", "heavy.py": ""}, "user"
    ),
    "modules inserted by hand": Case(
        {"heavy.py": BY_HAND}, "heavy", "sys.modules['native'].part is heavy.part"
    ),
    "runtime that modules share": Case(
        {"heavy.py": SHARED, "other.py": SHARED},
        "other heavy",
        "heavy.shared is other.shared",
        preload="heavy",
    ),
    "object in its own place": Case(
        {**HEAVY, "heavy/part.py": STAND_IN},
        "heavy.part",
        f"heavy.part.value == 1 and {PART}",
        preload="heavy heavy.part",
    ),
    "object of any class in its own place": Case(
        {**HEAVY, "heavy/part.py": FACADE},
        "heavy.part",
        "heavy.part.value == 1",
        preload="heavy heavy.part",
    ),
}
STUBS, FORBIDS = "sys.modules['heavy'] = stub = type(sys)('heavy')", "sys.modules['{}'] = None"
REIMPORTED = {
    "module that a test imports under other conditions": Case(
        {"heavy.py": "import sys\nplace = sys.platform\n"},
        "heavy",
        "heavy.place == 'elsewhere'",
        before="world.shelf.begin_tests(); sys.platform = 'elsewhere'",
    ),
    "dependent of a shadowed module": Case(
        {**HEAVY, "user.py": "import heavy\nkept = heavy\n"},
        "heavy user",
        "user.kept is heavy and heavy.place == 'the project'",
        SHADOWING,
        preload="user",
        before="world.shelf.begin_tests()",
    ),
    "dependent of a stubbed module": Case(BOTH, "user", "user.heavy is stub", before=STUBS),
    "dependent of a forbidden module": Case(
        BOTH, "user", "user.heavy is None", before=FORBIDS.format("heavy")
    ),
    "dependent of a missing module that is stubbed": Case(
        OPTIONAL, "user", "user.heavy is stub", before=STUBS
    ),
    "dependent of a missing module that the project has": Case(
        OPTIONAL, "user", "user.heavy is sys.modules['heavy']", SHADOWING
    ),
    "dependent of a module that a finder hides": Case(
        BOTH, "user", "user.heavy is None", before=HIDES_HEAVY
    ),
    "dependent of a forbidden module that was loaded before": Case(
        {"user.py": OPTIONAL["user.py"].replace("heavy", "colorsys")},
        "user",
        "user.colorsys is None",
        earlier="colorsys",
        before=FORBIDS.format("colorsys"),
    ),
}


@pytest.mark.parametrize("case", [*SERVED.values(), *REIMPORTED.values()], ids=[*SERVED, *REIMPORTED])
@in_a_fork
def test_preloaded_module_is_served_unless_the_worker_would_import_other_modules(case: Case, world: World):
    world.install(case.installed)
    if case.earlier:
        importlib.import_module(case.earlier)
    world.preload(*(case.preload or case.imports).split(), project=case.project)
    names = {"world": world, "sys": sys}
    exec(case.before, names)

    for name in case.imports.split():
        exec(f"import {name}", names)

    assert eval(case.holds, names), case.holds
    # Once tests have begun, it is too late for a restart.
    assert len(world.restarts) == (case in REIMPORTED.values() and "begin_tests" not in case.before)


@in_a_fork
def test_package_of_a_plugin_is_served_although_pytest_rewrites_its_assertions(
    world: World, pytestconfig: pytest.Config
):
    world.install(HEAVY)
    rewriting = AssertionRewritingHook(pytestconfig)
    rewriting.mark_rewrite("heavy")
    world.preload("heavy.part")
    sys.meta_path.insert(0, rewriting)  # as a worker's pytest does it
    world.shelf.precede_rewriting()
    import heavy.part

    assert not hasattr(heavy.part, "@pytest_ar")
    assert world.restarts == []


def test_extension_modules_are_reported_and_never_loaded_twice(world: World):
    name = "numpy"
    if name in sys.modules or find_spec(name) is None:
        pytest.skip("it is loaded already, or not installed")

    def work() -> None:
        world.preload(name, collecting=False)
        __import__(name)
        assert (world.extensions, world.restarts) == ([name], [])

    def shadowed() -> None:
        world.preload(name, project={f"{name}.py": ""}, collecting=False)
        __import__(name)
        assert (world.extensions, len(world.restarts)) == ([], 1)

    in_fork(work)
    in_fork(shadowed)
