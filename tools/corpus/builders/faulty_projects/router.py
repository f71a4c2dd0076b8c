"""A router of web addresses whose tests need a service that is running."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    SERVICE_FIXTURE,
    Edit,
    Fault,
    Project,
    Turn,
    by_environment,
    by_product,
    by_test,
    tests,
)

from planner.model.taxonomy import Category, Owner

FILES = {
    "router/__init__.py": "",
    "router/paths.py": '''"""Paths and their parts."""


def parts(path):
    return [part for part in path.split("/") if part]


def is_variable(part):
    return part.startswith("<") and part.endswith(">")


def variable(part):
    return part[1:-1]
''',
    "router/routes.py": '''"""Routes and what they match."""

from router.paths import is_variable, parts, variable


class Route:
    def __init__(self, pattern, name):
        self.pattern = parts(pattern)
        self.name = name

    def match(self, path):
        given = parts(path)
        if len(given) != len(self.pattern):
            return None
        found = {}
        for part, expected in zip(given, self.pattern):
            if is_variable(expected):
                found[variable(expected)] = part
            elif part != expected:
                return None
        return found


class Router:
    def __init__(self):
        self.routes = []

    def add(self, pattern, name):
        self.routes.append(Route(pattern, name))

    def find(self, path):
        for route in self.routes:
            found = route.match(path)
            if found is not None:
                return route.name, found
        raise LookupError(path)

    def names(self):
        return sorted(route.name for route in self.routes)
''',
    "router/queries.py": '''"""Query strings."""


def parse(query):
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return {name: value for name, _, value in pairs}


def build(values):
    return "&".join(f"{name}={values[name]}" for name in sorted(values))


def merged(query, **more):
    return build({**parse(query), **more})
''',
    "tests/conftest.py": "import os\nimport socket\n\nimport pytest\n\nfrom router.routes import Router\n"
    + SERVICE_FIXTURE
    + """

@pytest.fixture
def router(service):
    made = Router()
    made.add("/", "home")
    made.add("/users/<id>", "user")
    made.add("/users/<id>/files/<name>", "file")
    return made
""",
    "tests/test_paths.py": """import pytest

from router.paths import is_variable, parts, variable


@pytest.mark.parametrize("path, expected", [("/", []), ("/a/b", ["a", "b"]), ("a//b/", ["a", "b"])])
def test_parts(path, expected):
    assert parts(path) == expected


def test_is_variable():
    assert is_variable("<id>")


def test_is_no_variable():
    assert not is_variable("id")


def test_variable():
    assert variable("<id>") == "id"
""",
    "tests/test_router.py": """import pytest


def test_home(router):
    assert router.find("/") == ("home", {})


def test_user(router):
    assert router.find("/users/7") == ("user", {"id": "7"})


def test_file(router):
    name, found = router.find("/users/7/files/a.txt")
    assert name == "file"
    assert found["name"] == "a.txt"


def test_unknown(router):
    with pytest.raises(LookupError):
        router.find("/nowhere")


def test_names(router):
    assert router.names() == ["file", "home", "user"]
""",
    "tests/test_queries.py": """import pytest

from router import queries


@pytest.mark.parametrize(
    "query, expected", [("", {}), ("a=1", {"a": "1"}), ("a=1&b=2", {"a": "1", "b": "2"})]
)
def test_parse(query, expected):
    assert queries.parse(query) == expected


def test_build():
    assert queries.build({"b": 2, "a": 1}) == "a=1&b=2"


def test_merged():
    assert queries.merged("a=1", b=2) == "a=1&b=2"


def test_asked_for(service):
    assert queries.merged("port=0", port=service.getpeername()[1]).startswith("port=")
""",
}

PROJECT = Project(
    name="router",
    files=FILES,
    service=True,
    todos={
        "paths": tests("pytest tests/test_paths.py"),
        "router": tests("pytest tests/test_router.py"),
        "queries": tests("pytest tests/test_queries.py"),
        "asking": tests("pytest tests/test_queries.py::test_asked_for tests/test_router.py::test_names"),
    },
    depends={"router": ("paths",)},
    faults=(
        Fault(
            kind="absent-service",
            label=by_environment("tests/conftest.py", "service"),
            without_service=True,
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("router/paths.py", "variable"),
            edits=(Edit("router/paths.py", "part[1:-1]", "part[1:]"),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("router/queries.py", "build"),
            edits=(Edit("router/queries.py", "in sorted(values)", "in reversed(sorted(values))"),),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("router/queries.py", "parse"),
            edits=(Edit("router/queries.py", "{name: value for", "{name: value.upper() + name for"),),
        ),
        Fault(
            kind="none-below",
            label=by_product("router/paths.py", "parts", Category.TYPE_ERROR),
            edits=(Edit("router/paths.py", "return [part for", "[part for"),),
        ),
        Fault(
            kind="renamed-function",
            label=by_product("router/paths.py", "is_variable", Category.SPEC_MISMATCH),
            edits=(Edit("router/paths.py", "def is_variable(", "def is_placeholder("),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="broken-conftest",
            label=by_test("tests/conftest.py").model_copy(
                update={"category": Category.COMPILATION_ERROR, "owner": Owner.TEST}
            ),
            edits=(Edit("tests/conftest.py", "made = Router()", "made = Router("),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="typo-in-test",
            label=by_test("tests/test_paths.py", "test_variable"),
            edits=(Edit("tests/test_paths.py", 'variable("<id>") == "id"', 'varable("<id>") == "id"'),),
        ),
    ),
)
