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
from textwrap import dedent
from types import ModuleType
from typing import Any

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
    del sys.heavy_count  # type: ignore[attr-defined]
    world.hand_out()

    import heavy  # type: ignore[import-not-found]
    import heavy.part  # type: ignore[import-not-found]

    assert not hasattr(sys, "heavy_count")
    assert heavy.part is sys.modules["heavy.part"]
    assert heavy.__spec__.origin == str(world.installed / "heavy/__init__.py")
    assert world.restarts == []


@in_a_fork
def test_project_module_takes_precedence_over_a_preloaded_one(world: World):
    world.install(HEAVY)

    world.preload("heavy", project=SHADOWING)

    import heavy  # type: ignore[import-not-found]

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

    import heavy  # type: ignore[import-not-found]

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


@pytest.mark.parametrize(
    "text", ["__import__('json', fromlist=['loads'])", "import os\nos.environb.get(b'HEAVY')"]
)
@in_a_fork
def test_module_may_import_and_read_the_environment_in_any_way(text: str, world: World):
    world.install({"heavy.py": text})

    world.preload("heavy")
    __import__("heavy")

    assert world.restarts == []


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
    warnings.filters[:] = before  # type: ignore[index]
    del sys.modules["heavy"]
    __import__("heavy")
    assert ahead == warnings.filters != before


@in_a_fork
def test_module_that_cannot_be_preloaded_is_left_to_the_worker(world: World):
    world.shelf.fill(["no_such_module"])

    assert "no_such_module" not in sys.modules


@in_a_fork
def test_submodule_is_not_an_attribute_before_its_import(world: World):
    world.install(HEAVY)

    import heavy  # type: ignore[import-not-found]

    world.preload("heavy.part")
    assert not hasattr(heavy, "part")

    import heavy.part  # type: ignore[import-not-found]

    assert heavy.part is sys.modules["heavy.part"]


@in_a_fork
def test_module_provides_only_what_its_own_import_loads(world: World):
    package = {"heavy/__init__.py": "from heavy import own\n", "heavy/own.py": "", "heavy/part.py": ""}
    world.install({**package, "user.py": "import heavy.part\n"})

    world.preload("user")

    import heavy  # type: ignore[import-not-found]

    assert heavy.own is sys.modules["heavy.own"]
    assert not hasattr(heavy, "part")
    assert sys.modules.keys() & {"heavy.part", "user"} == set()

    import user  # type: ignore[import-not-found]

    assert user.heavy.part is sys.modules["heavy.part"]


@pytest.mark.parametrize(
    "import_of_part", ["import heavy.part", "import importlib; importlib.import_module('heavy.part')"]
)
@in_a_fork
def test_module_provides_its_imports_even_if_another_loaded_them(import_of_part: str, world: World):
    world.install({**HEAVY, "user.py": f"{import_of_part}\nimport heavy\n"})

    world.preload("heavy", "heavy.part", "user")
    import user  # type: ignore[import-not-found]

    assert user.heavy.part.value is sys.modules["heavy.part"].value


@in_a_fork
def test_package_attribute_that_shadows_a_submodule_is_kept(world: World):
    world.install({"heavy/__init__.py": "from heavy.part import part\n", "heavy/part.py": "part = 5\n"})

    world.preload("heavy")

    import heavy  # type: ignore[import-not-found]

    assert heavy.part == 5


@in_a_fork
def test_dependent_of_a_shadowed_module_is_reimported(world: World):
    world.install({**HEAVY, "user.py": "import heavy\nkept = heavy\n"})

    world.preload("user", project=SHADOWING, collecting=False)

    import heavy  # type: ignore[import-not-found]
    import user  # type: ignore[import-not-found]

    assert user.kept is heavy
    assert heavy.place == "the project"


@pytest.mark.parametrize("stub", [ModuleType("heavy"), None], ids=["a stub", "none"])
@in_a_fork
def test_dependent_of_a_stubbed_module_is_reimported(stub: ModuleType | None, world: World):
    text = "try: import heavy\nexcept ImportError: heavy = None\n"
    world.install({**HEAVY, "user.py": text})

    world.preload("user", collecting=False)
    sys.modules["heavy"] = stub  # type: ignore[assignment]

    import user  # type: ignore[import-not-found]

    assert user.heavy is stub


@pytest.mark.parametrize("stub", [ModuleType("heavy"), None], ids=["a stub", "a file of the project"])
@in_a_fork
def test_dependent_of_a_module_that_was_missing_is_reimported(stub: ModuleType | None, world: World):
    world.install({"user.py": "try: import heavy\nexcept ImportError: heavy = None\n"})

    world.preload("user", project={} if stub else SHADOWING)
    if stub:
        sys.modules["heavy"] = stub

    import user  # type: ignore[import-not-found]

    assert user.heavy is sys.modules["heavy"]


@in_a_fork
def test_dependent_of_a_module_that_is_still_missing_is_served(world: World):
    world.install({"user.py": "try: import heavy\nexcept ImportError: heavy = None\n"})
    world.install({"heavy.py": "from json import JSONDecodeError, scanner\nimport absent\n"})

    world.preload("user")

    import user  # type: ignore[import-not-found]

    assert user.heavy is None
    assert world.restarts == []


@pytest.mark.parametrize(
    "user",
    [
        "try: import heavy\nexcept ImportError: pass",
        "from importlib.util import find_spec\nfind_spec('heavy')",
    ],
    ids=["imported", "searched for"],
)
@in_a_fork
def test_dependent_of_a_module_that_is_not_loaded_although_it_exists_is_served(user: str, world: World):
    world.install({"heavy.py": "raise ImportError('made for another system')", "user.py": user})

    world.preload("user")

    importlib.import_module("user")

    assert world.restarts == []


@in_a_fork
def test_dependent_of_a_module_that_a_finder_hides_is_reimported(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    class Hiding:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == "heavy":
                raise ModuleNotFoundError(name)

    world.install({**HEAVY, "user.py": "try: import heavy\nexcept ImportError: heavy = None\n"})

    world.preload("user")
    monkeypatch.setattr(sys, "meta_path", [Hiding, *sys.meta_path])

    import user  # type: ignore[import-not-found]

    assert user.heavy is None


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

    import heavy.part  # type: ignore[import-not-found]

    assert not hasattr(heavy.part, "@pytest_ar")
    assert world.restarts == []


@in_a_fork
def test_modules_inserted_by_hand_stay_attributes_of_their_package(world: World):
    text = """
    import sys, types
    native, part = types.ModuleType("native"), types.ModuleType("native.part")
    native.part = part
    sys.modules |= {"native.part": part, "native": native}
    """
    world.install({"heavy.py": dedent(text)})

    world.preload("heavy")

    import heavy  # type: ignore[import-not-found]

    assert sys.modules["native"].part is heavy.part


@in_a_fork
def test_runtime_that_modules_share_does_not_prevent_serving(world: World):
    insert = "import sys, types\nshared = sys.modules.setdefault('runtime', types.ModuleType('runtime'))\n"
    world.install({"heavy.py": insert, "other.py": insert})

    world.preload("heavy")

    import other  # type: ignore[import-not-found] # isort: skip
    import heavy  # type: ignore[import-not-found]

    assert heavy.shared is other.shared
    assert world.restarts == []


@in_a_fork
def test_object_that_a_module_inserts_in_its_own_place_is_served(world: World):
    text = """
    import sys, types
    stand_in = sys.modules[__name__] = types.ModuleType(__name__)
    stand_in.value = 1
    """
    world.install({**HEAVY, "heavy/part.py": dedent(text)})

    world.preload("heavy", "heavy.part")

    import heavy.part  # type: ignore[import-not-found]

    assert (heavy.part.value, world.restarts) == (1, [])
    assert heavy.part is sys.modules["heavy.part"]


@in_a_fork
def test_module_that_a_test_imports_is_executed_under_the_conditions_of_the_test(world: World):
    world.install({"heavy.py": "import sys\nplace = sys.platform\n"})

    world.preload("heavy")
    world.shelf.begin_tests()
    sys.platform = "elsewhere"

    import heavy  # type: ignore[import-not-found]

    assert heavy.place == "elsewhere"
    assert world.restarts == []


@in_a_fork
def test_dependent_of_a_stubbed_module_that_was_loaded_before_is_reimported(world: World):
    world.install({"user.py": "try: import colorsys\nexcept ImportError: colorsys = None\n"})

    import colorsys  # noqa: F401

    world.preload("user")
    sys.modules["colorsys"] = None  # type: ignore[assignment]

    import user  # type: ignore[import-not-found]

    assert user.colorsys is None
    assert len(world.restarts) == 1


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


@in_a_fork
def test_object_of_any_class_that_a_module_inserts_in_its_own_place_is_served(world: World):
    text = "import sys\nclass Facade:\n    value = 1\nsys.modules[__name__] = Facade()\n"
    world.install({**HEAVY, "heavy/part.py": text})

    world.preload("heavy", "heavy.part")

    import heavy.part  # type: ignore[import-not-found]

    assert (heavy.part.value, world.restarts) == (1, [])
