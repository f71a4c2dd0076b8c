"""Plane geometry with a linter and a compiler pass as criteria beside the tests."""

from __future__ import annotations

from faulty_projects.vocabulary import (
    Edit,
    Fault,
    Project,
    Turn,
    by_product,
    removed_module,
    syntax_error,
    tests,
)

from planner.model.taxonomy import Category

FILES = {
    "geometry/__init__.py": "",
    "geometry/vectors.py": '''"""Vectors in the plane."""

import math


class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)

    def length(self):
        return math.hypot(self.x, self.y)

    def turned(self):
        return Vector(-self.y, self.x)


def cross(one, other):
    return one.x * other.y - one.y * other.x
''',
    "geometry/shapes.py": '''"""Shapes that are made of corners."""

from geometry.vectors import Vector, cross


class Polygon:
    def __init__(self, *corners):
        if len(corners) < 3:
            raise ValueError("a polygon has at least three corners")
        self.corners = [Vector(x, y) for x, y in corners]

    def sides(self):
        following = self.corners[1:] + self.corners[:1]
        return [after - before for before, after in zip(self.corners, following)]

    def perimeter(self):
        return sum(side.length() for side in self.sides())

    def area(self):
        following = self.corners[1:] + self.corners[:1]
        return abs(sum(cross(before, after) for before, after in zip(self.corners, following))) / 2


def square(size):
    return Polygon((0, 0), (size, 0), (size, size), (0, size))
''',
    "geometry/describe.py": '''"""Shapes in words."""

NAMES = {3: "triangle", 4: "quadrangle"}


def name(shape):
    return NAMES[len(shape.corners)]


def describe(shape):
    return f"{name(shape)} of area {shape.area():g}"
''',
    "tests/test_vectors.py": """from geometry.vectors import Vector, cross


def test_add():
    made = Vector(1, 2) + Vector(3, 4)
    assert (made.x, made.y) == (4, 6)


def test_subtract():
    made = Vector(3, 4) - Vector(1, 2)
    assert (made.x, made.y) == (2, 2)


def test_length():
    assert Vector(3, 4).length() == 5


def test_turned():
    assert Vector(1, 0).turned().y == 1


def test_cross():
    assert cross(Vector(1, 0), Vector(0, 1)) == 1
""",
    "tests/test_shapes.py": """import pytest

from geometry.shapes import Polygon, square


@pytest.fixture
def triangle():
    return Polygon((0, 0), (3, 0), (0, 4))


def test_perimeter(triangle):
    assert triangle.perimeter() == 12


def test_area(triangle):
    assert triangle.area() == 6


def test_square_area():
    assert square(3).area() == 9


def test_square_perimeter():
    assert square(3).perimeter() == 12


def test_sides():
    assert len(square(1).sides()) == 4


def test_too_few_corners():
    with pytest.raises(ValueError):
        Polygon((0, 0), (1, 1))
""",
    "tests/test_describe.py": """from geometry.describe import describe, name
from geometry.shapes import Polygon, square


def test_name():
    assert name(square(1)) == "quadrangle"


def test_describe():
    assert describe(square(2)) == "quadrangle of area 4"


def test_triangle():
    assert describe(Polygon((0, 0), (2, 0), (0, 2))) == "triangle of area 2"
""",
}

PROJECT = Project(
    name="geometry",
    files=FILES,
    todos={
        "vectors": tests("pytest tests/test_vectors.py"),
        "shapes": tests("pytest tests/test_shapes.py"),
        "describe": tests("pytest tests/test_describe.py"),
        "linted": tests("ruff check geometry --isolated"),
        "typed": tests("mypy geometry"),
    },
    depends={"shapes": ("vectors",), "describe": ("shapes",)},
    faults=(
        Fault(
            kind="wrong-value-below",
            label=by_product("geometry/vectors.py", "cross"),
            edits=(Edit("geometry/vectors.py", "one.x * other.y - one.y", "one.x * other.x - one.y"),),
        ),
        Fault(
            kind="wrong-value-below",
            label=by_product("geometry/vectors.py", "Vector.length"),
            edits=(
                Edit("geometry/vectors.py", "math.hypot(self.x, self.y)", "math.hypot(self.x, self.x)"),
            ),
        ),
        Fault(
            kind="wrong-value",
            label=by_product("geometry/vectors.py", "Vector.turned"),
            edits=(Edit("geometry/vectors.py", "Vector(-self.y, self.x)", "Vector(-self.y, -self.x)"),),
        ),
        Fault(
            kind="raises-below",
            label=by_product("geometry/shapes.py", "Polygon.sides", Category.TYPE_ERROR),
            edits=(Edit("geometry/shapes.py", "return [after - before for", "return [after - 1 for"),),
        ),
        Fault(
            kind="refuses-below",
            label=by_product("geometry/shapes.py", "Polygon.__init__"),
            edits=(Edit("geometry/shapes.py", "len(corners) < 3", "len(corners) < 5"),),
        ),
        Fault(
            kind="type-and-tests",
            label=by_product("geometry/shapes.py", None, Category.SPEC_MISMATCH),
            edits=(Edit("geometry/shapes.py", "import Vector, cross", "import Vector, crossed"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("geometry/vectors.py"),
            edits=(Edit("geometry/vectors.py", "def cross(one, other):", "def cross(one, other:"),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="syntax-error",
            label=syntax_error("geometry/describe.py"),
            edits=(Edit("geometry/describe.py", 'NAMES = {3: "triangle", 4', 'NAMES = {3: "triangle 4'),),
            turn=Turn.UNDERLYING,
        ),
        Fault(
            kind="missing-module",
            label=removed_module("geometry/vectors.py"),
            edits=(Edit("geometry/vectors.py"),),
            turn=Turn.UNDERLYING,
        ),
    ),
)
